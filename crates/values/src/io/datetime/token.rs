//! Cutting date and time text into fields.

use super::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Digits, perhaps with one point.
    Number,
    /// Parts joined by `-`, `/` or `.`; or a zone's name.
    Date,
    /// Digits joined by `:`.
    Time,
    /// A word.
    Word,
    /// A sign and digits: a displacement, or a signed number.
    Signed,
    /// A sign and a word: an infinity.
    Special,
}

/// A field, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
}

/// More fields than any date has.
const MAX_FIELDS: usize = 25;

/// Cuts text into fields. `is_word` tells words with a meaning, which end before a digit or a sign.
pub fn tokenize(text: &str, is_word: impl Fn(&str) -> bool) -> Result<Vec<Token>, Fault> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let run = |from: usize, f: &dyn Fn(u8) -> bool| {
        from + bytes[from.min(bytes.len())..]
            .iter()
            .take_while(|&&b| f(b))
            .count()
    };
    let digit = |b: u8| b.is_ascii_digit();
    while at < bytes.len() {
        let start = at;
        let c = bytes[at];
        let kind = if c.is_ascii_whitespace() || c == b'\x0b' {
            at += 1;
            continue;
        } else if digit(c) {
            at = run(at, &digit);
            match bytes.get(at) {
                Some(b':') => {
                    at = run(at, &|b| digit(b) || b == b':' || b == b'.');
                    Kind::Time
                }
                Some(&delimiter @ (b'-' | b'/' | b'.')) => {
                    at += 1;
                    if bytes.get(at).copied().is_some_and(digit) {
                        at = run(at, &digit);
                        if bytes.get(at) == Some(&delimiter) {
                            at = run(at, &|b| digit(b) || b == delimiter);
                            Kind::Date
                        } else if delimiter == b'.' {
                            Kind::Number
                        } else {
                            Kind::Date
                        }
                    } else {
                        at = run(at, &|b| b.is_ascii_alphanumeric() || b == delimiter);
                        // `1.` is a number whose fraction is empty.
                        if &bytes[at - 1..at] == b"." && at - 1 == run(start, &digit) {
                            Kind::Number
                        } else {
                            Kind::Date
                        }
                    }
                }
                _ => Kind::Number,
            }
        } else if c == b'.' {
            at = run(at + 1, &digit);
            Kind::Number
        } else if c.is_ascii_alphabetic() {
            at = run(at, &|b| b.is_ascii_alphabetic());
            let word = text[start..at].to_ascii_lowercase();
            let joined = match bytes.get(at) {
                Some(b'-' | b'/' | b'.') => true,
                Some(b'+') => !is_word(&word),
                Some(&b) if digit(b) => !is_word(&word),
                _ => false,
            };
            if joined {
                at = run(at, &|b| {
                    b.is_ascii_alphanumeric()
                        || matches!(b, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
                });
                Kind::Date
            } else {
                Kind::Word
            }
        } else if matches!(c, b'+' | b'-') {
            at = run(at + 1, &|b| b.is_ascii_whitespace());
            let body = at;
            let kind = match bytes.get(at) {
                Some(&b) if digit(b) => {
                    at = run(at, &|b| digit(b) || matches!(b, b':' | b'.' | b'-'));
                    Kind::Signed
                }
                Some(b'.') => {
                    at = run(at + 1, &digit);
                    Kind::Signed
                }
                Some(b) if b.is_ascii_alphabetic() => {
                    at = run(at, &|b| b.is_ascii_alphabetic());
                    Kind::Special
                }
                _ => return Err(Fault::Format),
            };
            let text = format!("{}{}", c as char, text[body..at].to_ascii_lowercase());
            tokens.push(Token { kind, text });
            continue;
        } else if c.is_ascii_punctuation() {
            // Other punctuation only separates.
            at += 1;
            continue;
        } else {
            return Err(Fault::Format);
        };
        tokens.push(Token {
            kind,
            text: text[start..at].to_ascii_lowercase(),
        });
        if tokens.len() > MAX_FIELDS {
            return Err(Fault::Format);
        }
    }
    Ok(tokens)
}
