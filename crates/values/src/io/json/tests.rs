use super::*;

fn fault(text: &str) -> (String, String) {
    let error = check(text).unwrap_err();
    let fields = error.fields();
    (
        fields.detail.clone().unwrap_or_default(),
        fields.context.clone().unwrap_or_default(),
    )
}

/// Texts and what PostgreSQL 18 says of them.
#[test]
fn faults_are_postgresqls() {
    let cases = [
        (
            "",
            "The input string ended unexpectedly.",
            "JSON data, line 1: ",
        ),
        (
            "\"abc",
            "Token \"\"abc\" is invalid.",
            "JSON data, line 1: \"abc",
        ),
        (
            "\"\\v\"",
            "Escape sequence \"\\v\" is invalid.",
            "JSON data, line 1: \"\\v...",
        ),
        (
            "\"\\u00\"",
            "\"\\u\" must be followed by four hexadecimal digits.",
            "JSON data, line 1: \"\\u00\"",
        ),
        ("01", "Token \"01\" is invalid.", "JSON data, line 1: 01"),
        ("1e", "Token \"1e\" is invalid.", "JSON data, line 1: 1e"),
        (
            "[1,2",
            "The input string ended unexpectedly.",
            "JSON data, line 1: [1,2",
        ),
        (
            "[1,2,]",
            "Expected JSON value, but found \"]\".",
            "JSON data, line 1: [1,2,]",
        ),
        (
            "[1 2]",
            "Expected \",\" or \"]\", but found \"2\".",
            "JSON data, line 1: [1 2...",
        ),
        (
            "{\"abc\"}",
            "Expected \":\", but found \"}\".",
            "JSON data, line 1: {\"abc\"}",
        ),
        (
            "{1:\"abc\"}",
            "Expected string or \"}\", but found \"1\".",
            "JSON data, line 1: {1...",
        ),
        (
            "{\"a\":1,}",
            "Expected string, but found \"}\".",
            "JSON data, line 1: {\"a\":1,}",
        ),
        (
            "true false",
            "Expected end of input, but found \"false\".",
            "JSON data, line 1: true false",
        ),
        (
            "{\n \"a\": x}",
            "Token \"x\" is invalid.",
            "JSON data, line 2:  \"a\": x...",
        ),
        (
            "\"a\tb\"",
            "Character with value 0x09 must be escaped.",
            "JSON data, line 1: \"a...",
        ),
    ];
    for (text, detail, context) in cases {
        assert_eq!(
            fault(text),
            (detail.to_string(), context.to_string()),
            "{text}"
        );
    }
}

#[test]
fn escapes_are_read_where_they_are_asked_for() {
    let text = |json: &str| parse_jsonb(json).map(|v| v.root().to_text());
    assert_eq!(
        text(r#""a\u00e9\n\ud83d\ude04\/""#).unwrap(),
        "\"aé\\n😄/\""
    );
    for (json, detail) in [
        (r#""\u0000""#, "\\u0000 cannot be converted to text."),
        (
            r#""\ud83d\ud83d""#,
            "Unicode high surrogate must not follow a high surrogate.",
        ),
        (
            r#""\ude04\ud83d""#,
            "Unicode low surrogate must follow a high surrogate.",
        ),
        (
            r#""\ud83dX""#,
            "Unicode low surrogate must follow a high surrogate.",
        ),
        (
            r#""\ud83d""#,
            "Unicode low surrogate must follow a high surrogate.",
        ),
    ] {
        check(json).unwrap();
        let error = text(json).unwrap_err();
        assert_eq!(error.fields().detail.as_deref(), Some(detail), "{json}");
    }
}

#[test]
fn texts_are_read() {
    let text = |json: &str| parse_jsonb(json).unwrap().root().to_text();
    assert_eq!(
        text(" [ 1.50 , -0 , 1e2 , [ ] , { } ] "),
        "[1.50, 0, 100, [], {}]"
    );
    assert_eq!(
        text(r#"{"b":1,"aa":{"x":null},"b":true}"#),
        r#"{"b": true, "aa": {"x": null}}"#
    );
    assert_eq!(text("\"x\""), "\"x\"");
}

#[test]
fn depth_is_bounded() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    check(&deep(MAX_DEPTH)).unwrap();
    let error = check(&deep(MAX_DEPTH + 1)).unwrap_err();
    assert_eq!(
        error.code(),
        throng_types::error::state::STATEMENT_TOO_COMPLEX
    );
    let thread = std::thread::Builder::new().stack_size(throng_types::stack::SIZE / 16);
    let parsed = thread.spawn(move || parse_jsonb(&deep(MAX_DEPTH)).map(drop));
    parsed.unwrap().join().unwrap().unwrap();
}
