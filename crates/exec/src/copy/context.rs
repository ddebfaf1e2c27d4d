//! Where in COPY's input something is wrong, as CONTEXT tells it.

use std::borrow::Cow;

use throng_types::Error;

/// Bytes of a line or value that are shown.
const LONGEST_SHOWN: usize = 100;

/// What of a line is at fault.
#[derive(Clone, Copy)]
pub enum At<'a> {
    Line,
    /// The line, with its text.
    Text(&'a [u8]),
    /// A column of a binary file: its value has no text.
    Column(&'a str),
    /// A column and its value's text, if it is not null.
    Value(&'a str, Option<&'a [u8]>),
}

/// Text for a message, cut where it is long.
pub fn shown(text: &[u8]) -> Cow<'_, str> {
    if text.len() <= LONGEST_SHOWN {
        return String::from_utf8_lossy(text);
    }
    let mut end = LONGEST_SHOWN;
    while end > 0 && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    Cow::Owned(format!("{}...", String::from_utf8_lossy(&text[..end])))
}

/// A value for a message.
pub fn quoted(value: Option<&[u8]>) -> String {
    match value {
        Some(text) => format!("\"{}\"", shown(text)),
        None => String::from("null input"),
    }
}

/// The error with its place in the input.
#[cold]
pub fn placed(mut error: Error, table: &str, line: u64, at: At<'_>) -> Error {
    let mut context = format!("COPY {table}, line {line}");
    match at {
        At::Line => {}
        At::Text(text) => context.push_str(&format!(": \"{}\"", shown(text))),
        At::Column(name) => context.push_str(&format!(", column {name}")),
        At::Value(name, value) => context.push_str(&format!(", column {name}: {}", quoted(value))),
    }
    error.add_context(&context);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(at: At<'_>) -> String {
        let error = placed(Error::internal("test"), "t", 3, at);
        error.fields().context.clone().unwrap_or_default()
    }

    #[test]
    fn as_postgresql_words_it() {
        assert_eq!(context(At::Line), "COPY t, line 3");
        assert_eq!(context(At::Text(b"1\tx")), "COPY t, line 3: \"1\tx\"");
        assert_eq!(context(At::Column("b")), "COPY t, line 3, column b");
        assert_eq!(
            context(At::Value("b", Some(b"abc"))),
            "COPY t, line 3, column b: \"abc\""
        );
        assert_eq!(
            context(At::Value("b", None)),
            "COPY t, line 3, column b: null input"
        );
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let text = format!("x{}", "é".repeat(60));
        assert_eq!(shown(text.as_bytes()), format!("x{}...", "é".repeat(49)));
        assert_eq!(shown(&[b'a'; 100]), "a".repeat(100));
    }
}
