//! Paths read and printed, and walks that must end.

use super::*;
use crate::func::testing::with_context;
use crate::io::json::parse_jsonb;
use proptest::prelude::*;
use throng_types::jsonb::Json;

fn shown(text: &str) -> String {
    match Path::parse(text) {
        Ok(path) => path.to_string(),
        Err(e) => e.message().to_string(),
    }
}

#[test]
fn prints_what_postgresql_prints() {
    for (written, printed) in [
        ("lax $", "$"),
        (
            "strict $.a[*].**{2 to last}",
            "strict $.\"a\"[*].**{2 to last}",
        ),
        ("1 + 2 * 3 - 4", "((1 + 2 * 3) - 4)"),
        ("-(1)", "-1"),
        ("(-1).type()", "(-1).type()"),
        ("$.a/*x*/b", "$.\"b\""),
        ("$?(exists(@.a ? (@ > 1)))", "$?(exists (@.\"a\"?(@ > 1)))"),
        ("$.decimal(-1,+2)", "$.decimal(-1,2)"),
        ("0x1F", "31"),
    ] {
        assert_eq!(shown(written), printed, "{written}");
    }
}

#[test]
fn says_where_it_stops() {
    for (written, said) in [
        ("", "invalid input syntax for type jsonpath: \"\""),
        ("$ foo", "syntax error at end of jsonpath input"),
        (
            "$ foo bar",
            "syntax error at or near \" \" of jsonpath input",
        ),
        (
            "$ == 1 == 2",
            "syntax error at or near \"==\" of jsonpath input",
        ),
        (
            "1a",
            "trailing junk after numeric literal at or near \"1a\" of jsonpath input",
        ),
        ("\"a", "unterminated quoted string at end of jsonpath input"),
        ("@ + 1", "@ is not allowed in root expressions"),
        ("last", "LAST is allowed only in array subscripts"),
        ("$?(@)", "syntax error at or near \")\" of jsonpath input"),
    ] {
        assert_eq!(shown(written), said, "{written}");
    }
}

/// An operator whose result is walked on keeps its parentheses, or it would be read as another
/// path.
#[test]
fn what_is_walked_on_stays_in_parentheses() {
    for text in [
        "2 + (3 * 4).c",
        "(-$).a + 1",
        "($ like_regex \"a\").type() == \"x\"",
    ] {
        let path = Path::parse(text).unwrap();
        assert_eq!(Path::parse(&path.to_string()).unwrap(), path, "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    for text in [
        "(".repeat(100_000),
        format!("{}$", "-".repeat(100_000)),
        format!("$ ? {}", "(@ ? ".repeat(100_000)),
        format!("1{}", "+1".repeat(100_000)),
        format!("$ == 1{}", " && $ == 1".repeat(100_000)),
    ] {
        assert!(Path::parse(&text).is_err());
    }
}

fn count(path: &str, document: &Jsonb) -> Result<usize> {
    let path = Path::parse(path)?;
    with_context(|ctx| {
        let none = Variables::Passed(&[]);
        run(
            ctx,
            &path,
            document,
            none,
            false,
            Answer::Values,
            |ended, found| ended.map(|_| found.len()),
        )
    })
}

use throng_types::Jsonb;

#[test]
fn deep_documents_and_long_paths_end() {
    let mut deep = Json::Number(1.into());
    for _ in 0..1000 {
        deep = Json::Array(vec![deep]);
    }
    let deep = deep.encode().unwrap();
    assert_eq!(count("$.**", &deep).unwrap(), 1001);
    let steps = format!("strict ${}", "[*]".repeat(700));
    assert_eq!(count(&steps, &deep).unwrap(), 1);
    let more = format!("strict ${}", "[0]".repeat(5000));
    assert!(count(&more, &deep).is_err());
    // Every level again for each: what is too much is refused, and not tried to the end.
    let explosion = format!("$.**{}", ".**".repeat(6));
    assert!(count(&explosion, &deep).is_err());
}

#[test]
fn walks_find_what_they_should() {
    let document = parse_jsonb(r#"{"a": [1, 2, {"b": [3, 4]}], "c": "x"}"#).unwrap();
    for (path, found) in [
        ("$.a", 1),
        ("$.a[*]", 3),
        ("$.a[last].b[*]", 2),
        ("$.**", 9),
        ("$.a[*] ? (@ > 1)", 1),
        ("$.keyvalue()", 2),
        ("$.missing", 0),
    ] {
        assert_eq!(count(path, &document).unwrap(), found, "{path}");
    }
}

// Any path: what it prints is read as the same path.

fn key() -> impl Strategy<Value = Text> {
    prop_oneof!["[a-z]{1,3}", "[ -~]{0,4}", "type|last|is|true"].prop_map(Text::from)
}
fn natural() -> impl Strategy<Value = Numeric> {
    (0i64..100_000, 0u16..4).prop_map(|(n, scale)| Numeric::new(n, scale))
}
fn head(subscript: bool, filter: bool) -> impl Strategy<Value = Item> {
    prop_oneof![
        Just(Item::Null),
        any::<bool>().prop_map(Item::Bool),
        natural().prop_map(Item::Number),
        natural().prop_map(|n| Item::Number(n.neg())),
        key().prop_map(Item::String),
        "[a-z]{1,3}".prop_map(|n| Item::Variable(n.into())),
        Just(Item::Root),
        Just(if filter { Item::Current } else { Item::Root }),
        Just(if subscript { Item::Last } else { Item::Root }),
    ]
}
fn level() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..5, Just(LEAVES)]
}
fn plain_step() -> impl Strategy<Value = Item> {
    prop_oneof![
        key().prop_map(Item::Key),
        Just(Item::AnyKey),
        Just(Item::AnyElement),
        (level(), level()).prop_map(|(first, last)| Item::AnyLevel { first, last }),
        Just(Item::Method(Method::Type)),
        Just(Item::Method(Method::KeyValue)),
        Just(Item::Method(Method::Decimal(Some((
            4.into(),
            Some((-2).into())
        ))))),
        key().prop_map(|t| Item::Method(Method::Datetime(Some(t)))),
        Just(Item::Method(Method::Time(Some(3.into())))),
    ]
}

/// Expressions and predicates of a depth.
fn expression(depth: u32, subscript: bool, filter: bool) -> BoxedStrategy<Chain> {
    let leaf = head(subscript, filter).prop_map(|item| vec![item]).boxed();
    if depth == 0 {
        return leaf;
    }
    let inner = move || expression(depth - 1, subscript, filter);
    let operator = prop_oneof![
        Just(Arithmetic::Add),
        Just(Arithmetic::Subtract),
        Just(Arithmetic::Multiply),
        Just(Arithmetic::Divide),
        Just(Arithmetic::Modulo),
    ];
    let step = prop_oneof![
        4 => plain_step(),
        1 => predicate(depth - 1, subscript, true).prop_map(Item::Filter),
        1 => expression(depth - 1, true, filter)
            .prop_map(|from| Item::Subscripts(vec![(from.clone(), None), (from.clone(), Some(from))])),
    ];
    let value = prop_oneof![
        3 => leaf,
        1 => (operator, inner(), inner())
            .prop_map(|(o, a, b)| vec![Item::Arithmetic(o, Box::new((a, b)))]),
        1 => inner().prop_map(|e| match &e[..] {
            // The parser makes a sign part of a number.
            [Item::Number(n)] => vec![Item::Number(n.neg())],
            _ => vec![Item::Sign(Sign::Minus, e)],
        }),
        1 => (predicate(depth - 1, subscript, filter), plain_step()).prop_map(|(mut p, s)| {
            p.push(s);
            p
        }),
    ];
    (value, prop::collection::vec(step, 0..3))
        .prop_map(|(mut chain, steps)| {
            chain.extend(steps);
            chain
        })
        .boxed()
}

fn predicate(depth: u32, subscript: bool, filter: bool) -> BoxedStrategy<Chain> {
    let e = move || expression(depth.saturating_sub(1), subscript, filter);
    let comparison = prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::NotEqual),
        Just(Comparison::Less),
        Just(Comparison::GreaterEqual),
    ];
    let leaf = prop_oneof![
        (comparison, e(), e()).prop_map(|(c, a, b)| Item::Compare(c, Box::new((a, b)))),
        e().prop_map(Item::Exists),
        (e(), key()).prop_map(|(a, k)| Item::StartsWith(Box::new((a, vec![Item::String(k)])))),
        e().prop_map(|subject| Item::LikeRegex(Box::new(LikeRegex {
            subject,
            pattern: "a.b".into(),
            flags: Flags {
                ignore_case: true,
                ..Flags::default()
            },
        }))),
    ]
    .prop_map(|item| vec![item])
    .boxed();
    if depth == 0 {
        return leaf;
    }
    let inner = move || predicate(depth - 1, subscript, filter);
    prop_oneof![
        2 => leaf,
        1 => (inner(), inner()).prop_map(|p| vec![Item::And(Box::new(p))]),
        1 => (inner(), inner()).prop_map(|p| vec![Item::Or(Box::new(p))]),
        1 => inner().prop_map(|p| vec![Item::Not(p)]),
        1 => inner().prop_map(|p| vec![Item::IsUnknown(p)]),
    ]
    .boxed()
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(
        lax in any::<bool>(),
        root in prop_oneof![expression(3, false, false), predicate(3, false, false)],
    ) {
        let path = Path { lax, root };
        let text = path.to_string();
        let read = Path::parse(&text);
        prop_assert!(read.is_ok(), "{text}: {read:?}");
        let read = read.unwrap();
        prop_assert_eq!(&read.to_string(), &text);
        prop_assert_eq!(read, path);
    }

    /// Any text is a path or an error.
    #[test]
    fn reading_ends(text in "[$@.*?()&|!<>=\\[\\]{}a-z0-9\"\\\\ +/-]{0,40}") {
        if let Ok(path) = Path::parse(&text) {
            prop_assert_eq!(Path::parse(&path.to_string()).unwrap(), path);
        }
    }
}
