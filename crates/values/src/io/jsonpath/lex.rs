//! The tokens of a `jsonpath`.
//!
//! Where several readings begin at one place the longest is taken, so `1a` is junk after a number,
//! and `0755` and `1__0` are words. A token keeps what PostgreSQL's scanner has in hand when it
//! gives the token out, which is what an error says it is near: for a word the blanks after it, or
//! nothing.

use crate::io::invalid_syntax;
use throng_types::error::state;
use throng_types::{Error, Result, oid};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    End,
    /// A name without quotes; it may be a word of the language.
    Word,
    String,
    Variable,
    /// Digits only, in any base.
    Int,
    Number,
    And,
    Or,
    Not,
    /// `**`
    Any,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    GreaterEqual,
    Greater,
    /// Every other mark stands for itself.
    Mark(u8),
}

#[derive(Clone, Debug)]
pub struct Token {
    pub kind: Kind,
    /// What a word, string or variable is, escapes read; a number as it is written.
    pub text: String,
    near: String,
}

impl Token {
    /// A word of the language, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }
    /// `syntax error at or near "x" of jsonpath input`, 42601.
    #[cold]
    pub fn syntax_error(&self) -> Error {
        fault("syntax error", &self.near)
    }
}

/// 42601 with what the scanner had in hand.
#[cold]
fn fault(message: &str, near: &str) -> Error {
    let message = match near {
        "" => format!("{message} at end of jsonpath input"),
        near => format!("{message} at or near \"{near}\" of jsonpath input"),
    };
    Error::new(state::SYNTAX_ERROR, message)
}

fn is_special(c: char) -> bool {
    matches!(
        c,
        '?' | '%'
            | '$'
            | '.'
            | '['
            | ']'
            | '{'
            | '}'
            | '('
            | ')'
            | '|'
            | '&'
            | '!'
            | '='
            | '<'
            | '>'
            | '@'
            | '#'
            | ','
            | '*'
            | ':'
            | '-'
            | '+'
            | '/'
    )
}
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}
/// What names are made of.
fn is_other(c: char) -> bool {
    !is_special(c) && !is_blank(c) && c != '\\' && c != '"'
}

pub struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { rest: text }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        self.take(run(self.rest, belongs))
    }

    pub fn next_token(&mut self) -> Result<Token> {
        loop {
            self.take_while(is_blank);
            let Some(first) = self.rest.chars().next() else {
                return Ok(token(Kind::End, "", ""));
            };
            if self.rest.starts_with("/*") {
                self.skip_comment()?;
                continue;
            }
            if let Some(number) = self.number()? {
                return Ok(number);
            }
            return match first {
                '"' => self.quoted(1, Kind::String),
                '$' => self.variable(),
                c if is_special(c) => Ok(self.mark(c)),
                _ => match self.word()? {
                    Some(word) => Ok(word),
                    None => continue,
                },
            };
        }
    }

    fn skip_comment(&mut self) -> Result<()> {
        match self.rest[2..].find("*/") {
            Some(at) => {
                self.take(at + 4);
                Ok(())
            }
            None => Err(fault("unexpected end of comment", "")),
        }
    }

    fn mark(&mut self, first: char) -> Token {
        const DOUBLE: [(&str, Kind); 8] = [
            ("&&", Kind::And),
            ("||", Kind::Or),
            ("**", Kind::Any),
            ("<=", Kind::LessEqual),
            ("==", Kind::Equal),
            ("<>", Kind::NotEqual),
            ("!=", Kind::NotEqual),
            (">=", Kind::GreaterEqual),
        ];
        if let Some((text, kind)) = DOUBLE.iter().find(|(t, _)| self.rest.starts_with(t)) {
            self.take(2);
            return token(*kind, "", text);
        }
        let text = self.take(first.len_utf8());
        let kind = match first {
            '!' => Kind::Not,
            '<' => Kind::Less,
            '>' => Kind::Greater,
            // Marks are ASCII.
            other => Kind::Mark(other as u8),
        };
        token(kind, "", text)
    }

    fn variable(&mut self) -> Result<Token> {
        if self.rest[1..].starts_with('"') {
            return self.quoted(2, Kind::Variable);
        }
        let name = run(&self.rest[1..], is_other);
        if name == 0 {
            return Ok(self.mark('$'));
        }
        let text = self.take(1 + name);
        Ok(token(Kind::Variable, &text[1..], text))
    }

    /// After an opening of so many bytes.
    fn quoted(&mut self, opening: usize, kind: Kind) -> Result<Token> {
        self.take(opening);
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != '"' && c != '\\'));
            if self.rest.is_empty() {
                return Err(fault("unterminated quoted string", ""));
            }
            if self.rest.starts_with('"') {
                self.take(1);
                return Ok(token(kind, &text, "\""));
            }
            self.escape(&mut text)?;
        }
    }

    /// A name; None where a comment follows it without a blank, which makes PostgreSQL forget it.
    fn word(&mut self) -> Result<Option<Token>> {
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(is_other));
            let near = match self.rest.chars().next() {
                Some('\\') => {
                    self.escape(&mut text)?;
                    continue;
                }
                Some(c) if is_blank(c) => self.take_while(is_blank),
                Some('/') if self.rest.starts_with("/*") => {
                    self.skip_comment()?;
                    return Ok(None);
                }
                _ => "",
            };
            return Ok(Some(token(Kind::Word, &text, near)));
        }
    }

    /// A number where it is the longest reading.
    fn number(&mut self) -> Result<Option<Token>> {
        let Some(scan) = Scan::new(self.rest) else {
            return Ok(None);
        };
        let word = run(self.rest, is_other);
        // As long as a number may be, one character after it makes it junk.
        let junk = scan.end
            + self.rest[scan.end..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
        let is_junk = scan.junk && self.rest[scan.end..].starts_with(is_other);
        let longest = if is_junk { junk } else { scan.end };
        if word > longest {
            return Ok(None);
        }
        if let Some(end) = scan.bad_exponent
            && end > longest
        {
            return Err(fault("invalid numeric literal", &self.rest[..end]));
        }
        if is_junk {
            let message = "trailing junk after numeric literal";
            return Err(fault(message, &self.rest[..junk]));
        }
        let text = self.take(scan.end);
        Ok(Some(token(scan.kind, text, text)))
    }

    /// One escape, or a run of Unicode ones, whose surrogates must pair.
    fn escape(&mut self, out: &mut String) -> Result<()> {
        let mut chars = self.rest[1..].chars();
        let plain = match chars.next() {
            Some('u') => return self.unicode(out),
            Some('x') => return self.hexadecimal(out),
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            // A dot of the scanner's patterns is no newline.
            None | Some('\n') => return Err(fault("unexpected end after backslash", "\\")),
            Some(other) => {
                out.push(other);
                self.take(1 + other.len_utf8());
                return Ok(());
            }
        };
        out.push(plain);
        self.take(2);
        Ok(())
    }

    fn hexadecimal(&mut self, out: &mut String) -> Result<()> {
        let digits = hex_digits(&self.rest[2..]).min(2);
        if digits < 2 {
            let message = "invalid hexadecimal character sequence";
            return Err(fault(message, &self.rest[..2 + digits]));
        }
        let code = code_point(&self.rest[2..4]);
        self.take(4);
        push_code(code, &mut None, out)
    }

    fn unicode(&mut self, out: &mut String) -> Result<()> {
        let start = self.rest;
        let mut codes = Vec::new();
        while self.rest.starts_with("\\u") {
            let after = &self.rest[2..];
            let (digits, end, whole) = match after.strip_prefix('{') {
                Some(inside) => {
                    let count = hex_digits(inside).min(6);
                    let closed = count > 0 && inside[count..].starts_with('}');
                    (&inside[..count], 3 + count, closed)
                }
                None => {
                    let count = hex_digits(after).min(4);
                    (&after[..count], 2 + count, count == 4)
                }
            };
            if !whole {
                let near = &start[..start.len() - self.rest.len() + end];
                return Err(fault("invalid Unicode escape sequence", near));
            }
            codes.push(code_point(digits));
            let closing = usize::from(after.starts_with('{'));
            self.take(end + closing);
        }
        let mut high = None;
        for code in codes {
            push_code(code, &mut high, out)?;
        }
        match high {
            Some(_) => Err(surrogate("low surrogate must follow a high surrogate")),
            None => Ok(()),
        }
    }
}

fn token(kind: Kind, text: &str, near: &str) -> Token {
    Token {
        kind,
        text: text.to_string(),
        near: near.to_string(),
    }
}

/// How many bytes at the beginning belong.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}
fn hex_digits(text: &str) -> usize {
    run(text, |c| c.is_ascii_hexdigit())
}
fn code_point(digits: &str) -> u32 {
    u32::from_str_radix(digits, 16).unwrap_or(u32::MAX)
}

#[cold]
fn surrogate(what: &str) -> Error {
    Error::new(
        state::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type jsonpath",
    )
    .detail(format!("Unicode {what}."))
}

/// Adds a code point, or keeps the first half of a pair in `high`.
fn push_code(code: u32, high: &mut Option<u32>, out: &mut String) -> Result<()> {
    let code = match (code, high.take()) {
        (0, None) => {
            return Err(Error::new(
                state::UNTRANSLATABLE_CHARACTER,
                "unsupported Unicode escape sequence",
            )
            .detail("\\u0000 cannot be converted to text."));
        }
        (0xd800..=0xdbff, None) => {
            *high = Some(code);
            return Ok(());
        }
        (0xd800..=0xdbff, Some(_)) => {
            return Err(surrogate("high surrogate must not follow a high surrogate"));
        }
        (0xdc00..=0xdfff, Some(first)) => 0x10000 + ((first - 0xd800) << 10) + (code - 0xdc00),
        (0xdc00..=0xdfff, None) | (_, Some(_)) => {
            return Err(surrogate("low surrogate must follow a high surrogate"));
        }
        (code, None) => code,
    };
    let c = char::from_u32(code)
        .ok_or_else(|| Error::new(state::SYNTAX_ERROR, "invalid Unicode code point"))?;
    out.push(c);
    Ok(())
}

/// The longest number at the beginning of a text.
struct Scan {
    kind: Kind,
    end: usize,
    /// Whether a letter after it is an error; after a hexadecimal one it makes a word.
    junk: bool,
    /// Where an exponent that has a sign and no digits ends.
    bad_exponent: Option<usize>,
}

/// Digits with single underscores between them.
fn digits(text: &str, belongs: fn(&u8) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while bytes.get(end).is_some_and(belongs) {
        end += 1;
        if bytes.get(end) == Some(&b'_') && bytes.get(end + 1).is_some_and(belongs) {
            end += 1;
        }
    }
    end
}

impl Scan {
    fn new(text: &str) -> Option<Scan> {
        let bytes = text.as_bytes();
        let decimal = u8::is_ascii_digit;
        let (mut kind, mut end) = match bytes {
            [b'0', radix, ..] if radix.is_ascii_alphabetic() => {
                let count = match radix.to_ascii_lowercase() {
                    b'x' => digits(&text[2..], u8::is_ascii_hexdigit),
                    b'o' => digits(&text[2..], |b| (b'0'..=b'7').contains(b)),
                    b'b' => digits(&text[2..], |b| matches!(b, b'0' | b'1')),
                    _ => 0,
                };
                if count > 0 {
                    return Some(Scan {
                        kind: Kind::Int,
                        end: 2 + count,
                        junk: false,
                        bad_exponent: None,
                    });
                }
                (Kind::Int, 1)
            }
            [b'0', ..] => (Kind::Int, 1),
            [b'1'..=b'9', ..] => (Kind::Int, digits(text, decimal)),
            [b'.', b'0'..=b'9', ..] => (Kind::Number, 1 + digits(&text[1..], decimal)),
            _ => return None,
        };
        if kind == Kind::Int && bytes.get(end) == Some(&b'.') {
            kind = Kind::Number;
            end += 1 + digits(&text[end + 1..], decimal);
        }
        let mut bad_exponent = None;
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            match digits(&text[end + 1 + sign..], decimal) {
                0 if sign == 1 => bad_exponent = Some(end + 2),
                0 => {}
                count => {
                    kind = Kind::Number;
                    end += 1 + sign + count;
                }
            }
        }
        Some(Scan {
            kind,
            end,
            junk: true,
            bad_exponent,
        })
    }
}

/// `invalid input syntax for type jsonpath: ""`.
#[cold]
pub fn empty_input(text: &str) -> Error {
    invalid_syntax(oid::JSONPATH, text)
}
