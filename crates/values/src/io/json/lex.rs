//! JSON's tokens, and PostgreSQL's account of what is wrong with one.

use std::borrow::Cow;
use throng_types::Error;
use throng_types::error::state;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    String,
    Number,
    True,
    False,
    Null,
    End,
}

/// What a text is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Token,
    Escape,
    /// A character that must be escaped.
    Control,
    EscapeDigits,
    HighSurrogate,
    LowSurrogate,
    Zero,
    ExpectedEnd,
    ExpectedValue,
    ExpectedString,
    ExpectedColon,
    ExpectedNextElement,
    ExpectedFirstMember,
    ExpectedNextMember,
}

/// Reads tokens one at a time. Where `escapes`, strings are also read for what they mean.
pub struct Lexer<'a> {
    text: &'a str,
    escapes: bool,
    line: u32,
    line_start: usize,
    /// The current token.
    pub token: Token,
    pub start: usize,
    pub end: usize,
    /// What the current string means, where `escapes`.
    value: Option<Cow<'a, str>>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'a> Lexer<'a> {
    /// At no token yet: [`Lexer::advance`] comes first.
    pub fn new(text: &'a str, escapes: bool) -> Lexer<'a> {
        Lexer {
            text,
            escapes,
            line: 1,
            line_start: 0,
            token: Token::Comma,
            start: 0,
            end: 0,
            value: None,
        }
    }

    /// The current token as it is written.
    pub fn lexeme(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    /// What the current string means.
    pub fn take_string(&mut self) -> Cow<'a, str> {
        match self.value.take() {
            Some(value) => value,
            None => Cow::Borrowed(&self.text[self.start + 1..self.end - 1]),
        }
    }

    pub fn advance(&mut self) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        let mut at = self.end;
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
            if bytes[at] == b'\n' {
                self.line += 1;
                self.line_start = at + 1;
            }
            at += 1;
        }
        self.start = at;
        self.end = at + 1;
        self.token = match bytes.get(at) {
            None => {
                self.end = at;
                Token::End
            }
            Some(b'{') => Token::ObjectStart,
            Some(b'}') => Token::ObjectEnd,
            Some(b'[') => Token::ArrayStart,
            Some(b']') => Token::ArrayEnd,
            Some(b',') => Token::Comma,
            Some(b':') => Token::Colon,
            Some(b'"') => {
                self.string()?;
                Token::String
            }
            Some(b'-') => self.number(at + 1)?,
            Some(b'0'..=b'9') => self.number(at)?,
            Some(_) => self.word()?,
        };
        Ok(())
    }

    fn word(&mut self) -> Result<Token, Error> {
        let rest = &self.text.as_bytes()[self.start..];
        let len = rest.iter().take_while(|b| is_word(**b)).count();
        // Anything else is complained of by its one character.
        self.end = self.start + len.max(1);
        match &rest[..len] {
            b"true" => Ok(Token::True),
            b"false" => Ok(Token::False),
            b"null" => Ok(Token::Null),
            _ => Err(self.fault(Fault::Token)),
        }
    }

    /// Digits, from `at` on: the sign is behind.
    fn number(&mut self, mut at: usize) -> Result<Token, Error> {
        let bytes = self.text.as_bytes();
        let digits = |at: &mut usize| {
            let from = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            *at > from
        };
        let mut good = match bytes.get(at) {
            Some(b'0') => {
                at += 1;
                true
            }
            _ => digits(&mut at),
        };
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            good &= digits(&mut at);
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            if let Some(b'+' | b'-') = bytes.get(at) {
                at += 1;
            }
            good &= digits(&mut at);
        }
        while bytes.get(at).is_some_and(|b| is_word(*b)) {
            at += 1;
            good = false;
        }
        self.end = at;
        match good {
            true => Ok(Token::Number),
            false => Err(self.fault(Fault::Token)),
        }
    }

    fn string(&mut self) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        let mut at = self.start + 1;
        let mut meant: Option<String> = None;
        let mut high: Option<u32> = None;
        let mut copied = at;
        loop {
            let Some(&byte) = bytes.get(at) else {
                return Err(self.fault_at(Fault::Token, at));
            };
            match byte {
                b'"' => break,
                b'\\' => {}
                0..32 => return Err(self.fault_at(Fault::Control, at)),
                _ => {
                    if high.is_some() {
                        return Err(self.fault_at(Fault::LowSurrogate, self.char_end(at)));
                    }
                    at += 1;
                    continue;
                }
            }
            let before = at;
            at += 1;
            let Some(&escape) = bytes.get(at) else {
                return Err(self.fault_at(Fault::Token, at));
            };
            let c = match escape {
                b'u' => {
                    let code = self.hex(&mut at)?;
                    if !self.escapes {
                        at += 1;
                        continue;
                    }
                    match (code, high) {
                        (0xd800..0xdc00, Some(_)) => {
                            return Err(self.fault_at(Fault::HighSurrogate, at + 1));
                        }
                        (0xd800..0xdc00, None) => {
                            let meant = meant.get_or_insert_default();
                            meant.push_str(&self.text[copied..before]);
                            high = Some(code);
                            at += 1;
                            copied = at;
                            continue;
                        }
                        (0xdc00..0xe000, Some(high_code)) => {
                            high = None;
                            0x10000 + ((high_code - 0xd800) << 10) + (code - 0xdc00)
                        }
                        (0xdc00..0xe000, None) | (_, Some(_)) => {
                            return Err(self.fault_at(Fault::LowSurrogate, at + 1));
                        }
                        (0, None) => return Err(self.fault_at(Fault::Zero, at + 1)),
                        (code, None) => code,
                    }
                }
                _ if high.is_some() => {
                    return Err(self.fault_at(Fault::LowSurrogate, self.char_end(at)));
                }
                b'"' | b'\\' | b'/' => u32::from(escape),
                b'b' => 8,
                b'f' => 12,
                b'n' => 10,
                b'r' => 13,
                b't' => 9,
                _ => {
                    // The escape alone is what is shown.
                    self.start = at;
                    return Err(self.fault_at(Fault::Escape, self.char_end(at)));
                }
            };
            at += 1;
            if self.escapes {
                let meant = meant.get_or_insert_default();
                meant.push_str(&self.text[copied..before.max(copied)]);
                meant.push(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
                copied = at;
            }
        }
        if high.is_some() {
            return Err(self.fault_at(Fault::LowSurrogate, at + 1));
        }
        self.value = meant.map(|mut meant| {
            meant.push_str(&self.text[copied..at]);
            Cow::Owned(meant)
        });
        self.end = at + 1;
        Ok(())
    }

    /// Four hexadecimal digits after `at`, which is left on the last of them.
    fn hex(&mut self, at: &mut usize) -> Result<u32, Error> {
        let bytes = self.text.as_bytes();
        let mut code = 0;
        for _ in 0..4 {
            *at += 1;
            let Some(&byte) = bytes.get(*at) else {
                return Err(self.fault_at(Fault::Token, *at));
            };
            match char::from(byte).to_digit(16) {
                Some(digit) => code = code * 16 + digit,
                None => return Err(self.fault_at(Fault::EscapeDigits, self.char_end(*at))),
            }
        }
        Ok(code)
    }

    /// Where the character that starts at `at` ends.
    fn char_end(&self, at: usize) -> usize {
        let c = self.text.get(at..).and_then(|t| t.chars().next());
        at + c.map_or(1, char::len_utf8)
    }

    #[cold]
    fn fault_at(&mut self, fault: Fault, end: usize) -> Error {
        self.end = end;
        self.fault(fault)
    }

    /// The error for the current token.
    #[cold]
    pub fn fault(&self, fault: Fault) -> Error {
        let expected = fault as u8 >= Fault::ExpectedEnd as u8;
        let ended = expected && self.token == Token::End;
        let shown = self.text.get(self.start..self.end).unwrap_or_default();
        let expected = |what: &str| format!("Expected {what}, but found \"{shown}\".");
        let detail = match fault {
            _ if ended => "The input string ended unexpectedly.".into(),
            Fault::Token => format!("Token \"{shown}\" is invalid."),
            Fault::Escape => format!("Escape sequence \"\\{shown}\" is invalid."),
            Fault::Control => {
                let byte = self.text.as_bytes().get(self.end).copied().unwrap_or(0);
                format!("Character with value 0x{byte:02x} must be escaped.")
            }
            Fault::EscapeDigits => "\"\\u\" must be followed by four hexadecimal digits.".into(),
            Fault::HighSurrogate => {
                "Unicode high surrogate must not follow a high surrogate.".into()
            }
            Fault::LowSurrogate => "Unicode low surrogate must follow a high surrogate.".into(),
            Fault::Zero => "\\u0000 cannot be converted to text.".into(),
            Fault::ExpectedEnd => expected("end of input"),
            Fault::ExpectedValue => expected("JSON value"),
            Fault::ExpectedString => expected("string"),
            Fault::ExpectedColon => expected("\":\""),
            Fault::ExpectedNextElement => expected("\",\" or \"]\""),
            Fault::ExpectedFirstMember => expected("string or \"}\""),
            Fault::ExpectedNextMember => expected("\",\" or \"}\""),
        };
        let error = match fault {
            Fault::Zero => Error::new(
                state::UNTRANSLATABLE_CHARACTER,
                "unsupported Unicode escape sequence",
            ),
            _ => Error::new(
                state::INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type json",
            ),
        };
        error.detail(detail).context(self.excerpt())
    }

    /// The line up to the current token's end, at most its last 50 bytes.
    fn excerpt(&self) -> String {
        const SHOWN: usize = 50;
        let mut start = self.line_start;
        while self.end - start >= SHOWN {
            start = self.char_end(start);
        }
        if start - self.line_start <= 3 {
            start = self.line_start;
        }
        let before = if start > self.line_start { "..." } else { "" };
        let goes_on = !matches!(
            self.text.as_bytes().get(self.end),
            None | Some(b'\n' | b'\r')
        );
        let after = if self.token != Token::End && goes_on {
            "..."
        } else {
            ""
        };
        let shown = self.text.get(start..self.end).unwrap_or_default();
        format!("JSON data, line {}: {before}{shown}{after}", self.line)
    }
}
