//! Text into tokens, by the rules of PostgreSQL's scanner.
//!
//! Tokens keep their byte range in the whole text, so that any error can point at it.

use throng_types::error::state;
use throng_types::{Error, Result, interrupt};

use throng_types::lexical::unicode::{Fault, Units, unescape};

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// An identifier or keyword, folded to lower case.
    Word(String),
    /// `"…"`: never a keyword.
    Quoted(String),
    /// A string constant, its escapes resolved.
    Text(String),
    /// `B'…'` or `X'…'`: the letter and the digits.
    Bits(char, String),
    /// Digits only.
    Integer(String),
    /// A number with a point or exponent.
    Decimal(String),
    /// `$n`.
    Param(u32),
    /// An operator, also the one-character ones.
    Op(String),
    /// One of `( ) [ ] , ; : .`
    Punct(char),
    /// `::`
    Cast,
    /// `:=` or `=>`
    Arrow,
    /// `..`, which only PL/pgSQL has.
    Dots,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

/// The longest identifier, as PostgreSQL's NAMEDATALEN - 1: more is cut off.
pub const MAX_NAME: usize = 63;

/// An error at a byte offset; [`super::locate`] turns it into a character position.
pub fn error_at(code: throng_types::SqlState, message: impl Into<String>, at: u32) -> Error {
    Error::new(code, message).position(at + 1)
}

fn unicode_fault(fault: Fault, at: u32) -> Error {
    let message = match fault {
        Fault::Escape => "invalid Unicode escape",
        Fault::Pair => "invalid Unicode surrogate pair",
        Fault::Value(_) => "invalid Unicode escape value",
    };
    let error = error_at(state::SYNTAX_ERROR, message, at);
    match fault {
        Fault::Escape => error.hint("Unicode escapes must be \\XXXX or \\+XXXXXX."),
        _ => error,
    }
}

/// All tokens of `sql`, an `End` last.
pub fn tokenize(sql: &str) -> Result<Vec<Token>> {
    tokens_of(sql, false)
}

/// All tokens of a body in PL/pgSQL.
pub fn tokenize_body(text: &str) -> Result<Vec<Token>> {
    tokens_of(text, true)
}

fn tokens_of(sql: &str, with_dots: bool) -> Result<Vec<Token>> {
    let mut lexer = Lexer {
        sql,
        bytes: sql.as_bytes(),
        at: 0,
        with_dots,
    };
    let mut tokens = Vec::with_capacity(sql.len() / 4 + 1);
    loop {
        interrupt::poll()?;
        let token = lexer.next()?;
        let end = token.kind == Kind::End;
        tokens.push(token);
        if end {
            return Ok(tokens);
        }
    }
}

/// Cuts a name to what can be stored, at a character's boundary.
pub fn truncate_name(mut name: String) -> String {
    if name.len() > MAX_NAME {
        let end = (0..=MAX_NAME)
            .rev()
            .find(|&i| name.is_char_boundary(i))
            .unwrap_or(0);
        name.truncate(end);
    }
    name
}

struct Lexer<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    at: usize,
    with_dots: bool,
}

const OPERATOR: &[u8] = b"~!@#^&|`?+-*/%<>=";

fn is_ident_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}
pub(super) fn is_ident(b: u8) -> bool {
    is_ident_start(b) || b.is_ascii_digit() || b == b'$'
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn unterminated(&self, what: &str, start: usize) -> Error {
        let text = &self.sql[start..];
        let message = format!("unterminated {what} at or near \"{text}\"");
        error_at(state::SYNTAX_ERROR, message, start as u32)
    }

    fn next(&mut self) -> Result<Token> {
        self.skip_blank()?;
        let start = self.at;
        let kind = self.kind(start)?;
        Ok(Token {
            kind,
            start: start as u32,
            end: self.at as u32,
        })
    }

    /// White space and comments.
    fn skip_blank(&mut self) -> Result<()> {
        loop {
            match self.peek(0) {
                b'\n' | b'\r' | b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'-' if self.peek(1) == b'-' => {
                    while !matches!(self.peek(0), b'\n' | b'\r') && self.at < self.bytes.len() {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<()> {
        let start = self.at;
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ if self.at >= self.bytes.len() => {
                    return Err(self.unterminated("/* comment", start));
                }
                _ => self.at += 1,
            }
        }
    }

    fn kind(&mut self, start: usize) -> Result<Kind> {
        let b = self.peek(0);
        if self.at >= self.bytes.len() {
            return Ok(Kind::End);
        }
        match b {
            b'\'' => self.string(start, false),
            b'e' | b'E' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.string(start, true)
            }
            b'n' | b'N' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.string(start, false)
            }
            b'b' | b'B' | b'x' | b'X' if self.peek(1) == b'\'' => {
                self.at += 1;
                match self.string(start, false)? {
                    Kind::Text(digits) => Ok(Kind::Bits(b.to_ascii_lowercase() as char, digits)),
                    kind => Ok(kind),
                }
            }
            b'u' | b'U' if self.peek(1) == b'&' && matches!(self.peek(2), b'\'' | b'"') => {
                self.at += 2;
                self.unicode(start)
            }
            b'"' => {
                let name = self.quoted_name(start)?;
                Ok(Kind::Quoted(truncate_name(name)))
            }
            b'$' => self.dollar(start),
            b'0'..=b'9' => self.number(start),
            b'.' if self.peek(1).is_ascii_digit() => self.number(start),
            b'.' if self.peek(1) == b'.' && self.with_dots => {
                self.at += 2;
                Ok(Kind::Dots)
            }
            b'.' if self.peek(1) == b'.' => Err(error_at(
                state::SYNTAX_ERROR,
                "syntax error at or near \"..\"",
                start as u32,
            )),
            b'(' | b')' | b'[' | b']' | b',' | b';' | b'.' => {
                self.at += 1;
                Ok(Kind::Punct(b as char))
            }
            b':' => {
                self.at += 1;
                match self.peek(0) {
                    b':' => {
                        self.at += 1;
                        Ok(Kind::Cast)
                    }
                    b'=' => {
                        self.at += 1;
                        Ok(Kind::Arrow)
                    }
                    _ => Ok(Kind::Punct(':')),
                }
            }
            _ if is_ident_start(b) => {
                while is_ident(self.peek(0)) && self.at < self.bytes.len() {
                    self.at += 1;
                }
                let word = self.sql[start..self.at].to_ascii_lowercase();
                Ok(Kind::Word(truncate_name(word)))
            }
            _ if OPERATOR.contains(&b) => Ok(self.operator(start)),
            _ => {
                let c = self.sql[start..].chars().next().unwrap_or(' ');
                self.at += c.len_utf8();
                let message = format!("syntax error at or near \"{c}\"");
                Err(error_at(state::SYNTAX_ERROR, message, start as u32))
            }
        }
    }

    /// The longest run of operator characters that starts no comment; a trailing `+` or `-` is
    /// given up unless the operator has a character that SQL's own do not.
    fn operator(&mut self, start: usize) -> Kind {
        let mut end = start;
        while end < self.bytes.len() && OPERATOR.contains(&self.bytes[end]) {
            let rest = &self.bytes[end..];
            if end > start && (rest.starts_with(b"--") || rest.starts_with(b"/*")) {
                break;
            }
            end += 1;
        }
        let special = |b: &u8| b"~!@#^&|`?%".contains(b);
        while end - start > 1
            && matches!(self.bytes[end - 1], b'+' | b'-')
            && !self.bytes[start..end - 1].iter().any(special)
        {
            end -= 1;
        }
        self.at = end;
        match &self.sql[start..end] {
            "=>" => Kind::Arrow,
            "!=" => Kind::Op("<>".into()),
            op => Kind::Op(op.into()),
        }
    }

    fn number(&mut self, start: usize) -> Result<Kind> {
        let radix = match (self.peek(0), self.peek(1)) {
            (b'0', b'x' | b'X') => 16,
            (b'0', b'o' | b'O') => 8,
            (b'0', b'b' | b'B') => 2,
            _ => 10,
        };
        if radix != 10 {
            self.at += 2;
            while (self.peek(0) as char).is_digit(radix)
                || (self.peek(0) == b'_' && (self.peek(1) as char).is_digit(radix))
            {
                self.at += 1;
            }
            let digits = self.sql[start + 2..self.at].replace('_', "");
            self.no_junk(start)?;
            let value = u128::from_str_radix(&digits, radix).map_err(|_| {
                let text = &self.sql[start..self.at];
                let kind = match radix {
                    16 => "hexadecimal",
                    8 => "octal",
                    _ => "binary",
                };
                let message = format!("invalid {kind} integer at or near \"{text}\"");
                error_at(state::SYNTAX_ERROR, message, start as u32)
            })?;
            return Ok(Kind::Integer(value.to_string()));
        }
        let mut decimal = false;
        self.digits();
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            decimal = true;
            self.at += 1;
            // An underscore stands between digits only.
            if self.peek(0).is_ascii_digit() {
                self.digits();
            }
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = matches!(self.peek(1), b'+' | b'-') as usize;
            if self.peek(1 + sign).is_ascii_digit() {
                decimal = true;
                self.at += 1 + sign;
                self.digits();
            } else if sign == 1 {
                // An exponent that was begun and has no digits.
                self.at += 2;
                return Err(self.junk(start));
            }
        }
        let text = self.sql[start..self.at].replace('_', "");
        self.no_junk(start)?;
        Ok(if decimal {
            Kind::Decimal(text)
        } else {
            Kind::Integer(text)
        })
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit()
            || (self.peek(0) == b'_' && self.peek(1).is_ascii_digit())
        {
            self.at += 1;
        }
    }

    fn no_junk(&mut self, start: usize) -> Result<()> {
        if !is_ident_start(self.peek(0)) {
            return Ok(());
        }
        while is_ident(self.peek(0)) {
            self.at += 1;
        }
        Err(self.junk(start))
    }

    fn junk(&self, start: usize) -> Error {
        let text = &self.sql[start..self.at];
        let message = format!("trailing junk after numeric literal at or near \"{text}\"");
        error_at(state::SYNTAX_ERROR, message, start as u32)
    }

    /// `$1`, or `$tag$ … $tag$`.
    fn dollar(&mut self, start: usize) -> Result<Kind> {
        if self.peek(1).is_ascii_digit() {
            self.at += 1;
            let digits = self.at;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
            let number = self.sql[digits..self.at]
                .parse::<u32>()
                .ok()
                .filter(|n| *n <= 65535);
            if is_ident_start(self.peek(0)) {
                while is_ident(self.peek(0)) {
                    self.at += 1;
                }
                let text = &self.sql[start..self.at];
                let message = format!("trailing junk after parameter at or near \"{text}\"");
                return Err(error_at(state::SYNTAX_ERROR, message, start as u32));
            }
            let text = &self.sql[start..self.at];
            return number.map(Kind::Param).ok_or_else(|| {
                let message = format!("parameter number too large at or near \"{text}\"");
                error_at(state::SYNTAX_ERROR, message, start as u32)
            });
        }
        let mut end = start + 1;
        while end < self.bytes.len() && is_ident(self.bytes[end]) && self.bytes[end] != b'$' {
            end += 1;
        }
        if end >= self.bytes.len() || self.bytes[end] != b'$' {
            self.at += 1;
            return Err(error_at(
                state::SYNTAX_ERROR,
                "syntax error at or near \"$\"",
                start as u32,
            ));
        }
        let tag = &self.sql[start..=end];
        let body = end + 1;
        let Some(length) = self.sql[body..].find(tag) else {
            return Err(self.unterminated("dollar-quoted string", start));
        };
        self.at = body + length + tag.len();
        Ok(Kind::Text(self.sql[body..body + length].to_string()))
    }

    fn quoted_name(&mut self, start: usize) -> Result<String> {
        self.at += 1;
        let mut name = String::new();
        loop {
            let rest = &self.sql[self.at..];
            let Some(quote) = rest.find('"') else {
                return Err(self.unterminated("quoted identifier", start));
            };
            name.push_str(&rest[..quote]);
            self.at += quote + 1;
            if self.peek(0) != b'"' {
                break;
            }
            name.push('"');
            self.at += 1;
        }
        if name.is_empty() {
            let message = "zero-length delimited identifier at or near \"\"\"\"";
            return Err(error_at(state::SYNTAX_ERROR, message, start as u32));
        }
        Ok(name)
    }

    /// White space with a newline in it and comments to the end of a line, behind which a string
    /// goes on.
    fn skip_to_piece(&mut self) -> bool {
        let mut newline = false;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'\n' | b'\r', _) => {
                    newline = true;
                    self.at += 1;
                }
                (b' ' | b'\t' | 0x0b | 0x0c, _) => self.at += 1,
                (b'-', b'-') => {
                    while !matches!(self.peek(0), b'\n' | b'\r') && self.at < self.bytes.len() {
                        self.at += 1;
                    }
                }
                (b'\'', _) => return newline,
                _ => return false,
            }
        }
    }

    /// A quoted string from its quote; pieces parted by a newline are one string.
    fn string(&mut self, start: usize, escapes: bool) -> Result<Kind> {
        let mut text = Vec::new();
        loop {
            self.at += 1;
            self.string_piece(start, escapes, &mut text)?;
            let end = self.at;
            if !self.skip_to_piece() {
                self.at = end;
                break;
            }
        }
        let text = String::from_utf8(text).map_err(|_| {
            error_at(
                state::CHARACTER_NOT_IN_REPERTOIRE,
                "invalid byte sequence for encoding \"UTF8\"",
                start as u32,
            )
        })?;
        match text.contains('\0') {
            true => Err(error_at(
                state::CHARACTER_NOT_IN_REPERTOIRE,
                "invalid byte sequence for encoding \"UTF8\": 0x00",
                start as u32,
            )),
            false => Ok(Kind::Text(text)),
        }
    }

    fn string_piece(&mut self, start: usize, escapes: bool, text: &mut Vec<u8>) -> Result<()> {
        loop {
            if self.at >= self.bytes.len() {
                return Err(self.unterminated("quoted string", start));
            }
            match self.peek(0) {
                b'\'' if self.peek(1) == b'\'' => {
                    text.push(b'\'');
                    self.at += 2;
                }
                b'\'' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' if escapes => self.escape(start, text)?,
                b => {
                    text.push(b);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, start: usize, text: &mut Vec<u8>) -> Result<()> {
        self.at += 1;
        if self.at >= self.bytes.len() {
            return Err(self.unterminated("quoted string", start));
        }
        let b = self.peek(0);
        self.at += 1;
        match b {
            b'n' => text.push(b'\n'),
            b't' => text.push(b'\t'),
            b'r' => text.push(b'\r'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'v' => text.push(11),
            b'x' if self.peek(0).is_ascii_hexdigit() => text.push(self.radix(16, 2) as u8),
            b'0'..=b'7' => {
                self.at -= 1;
                text.push(self.radix(8, 3) as u8);
            }
            b'u' | b'U' => {
                let c = self.unicode_escape(b)?;
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            b => text.push(b),
        }
        Ok(())
    }

    /// Behind `\u` or `\U`: a character's number, or the two of a surrogate pair.
    fn unicode_escape(&mut self, mut letter: u8) -> Result<char> {
        let mut units = Units::default();
        let near = |fault: Fault, start: usize, text: &str| {
            let error = unicode_fault(fault, start as u32);
            let message = format!("{} at or near \"{text}\"", error.message());
            error_at(state::SYNTAX_ERROR, message, start as u32)
        };
        loop {
            let (at, digits) = (self.at, if letter == b'u' { 4 } else { 8 });
            let start = at - 2;
            let code = self.radix(16, digits);
            if self.at - at != digits {
                let message = "invalid Unicode escape";
                return Err(
                    error_at(state::INVALID_ESCAPE_SEQUENCE, message, start as u32)
                        .hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX."),
                );
            }
            let known = units.add(code);
            if let Some(c) = known.map_err(|f| near(f, start, &self.sql[start..self.at]))? {
                return Ok(c);
            }
            letter = self.peek(1);
            if self.peek(0) != b'\\' || !matches!(letter, b'u' | b'U') {
                let next = self.sql[self.at..].chars().next().map(String::from);
                return Err(near(Fault::Pair, self.at, &next.unwrap_or_default()));
            }
            self.at += 2;
        }
    }

    /// Up to `most` digits as a number.
    fn radix(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0u32;
        for _ in 0..most {
            let Some(digit) = (self.peek(0) as char).to_digit(radix) else {
                break;
            };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
        }
        value
    }

    /// `U&'…'` and `U&"…"`, with the default escape character.
    fn unicode(&mut self, start: usize) -> Result<Kind> {
        let name = self.peek(0) == b'"';
        let raw = match name {
            true => self.quoted_name(start)?,
            false => match self.string(start, false)? {
                Kind::Text(text) => text,
                _ => String::new(),
            },
        };
        // Behind the quote, where no quote was doubled before it.
        let text = unescape(&raw, false)
            .map_err(|(fault, at)| unicode_fault(fault, (start + 3 + at) as u32))?;
        Ok(if name {
            Kind::Quoted(truncate_name(text))
        } else {
            Kind::Text(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sql: &str) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = tokenize(sql).unwrap().into_iter().map(|t| t.kind).collect();
        assert_eq!(kinds.pop(), Some(Kind::End));
        kinds
    }
    fn message(sql: &str) -> String {
        let e = tokenize(sql).unwrap_err();
        format!("{} @{}", e.message(), e.fields().position.unwrap())
    }

    #[test]
    fn operators_split_as_in_postgresql() {
        let op = |s: &str| Kind::Op(s.into());
        let int = |s: &str| Kind::Integer(s.into());
        assert_eq!(kinds("1<-1"), [int("1"), op("<"), op("-"), int("1")]);
        assert_eq!(kinds("a@-1")[1], op("@-"));
        assert_eq!(kinds("1!=2")[1], op("<>"));
        assert_eq!(kinds("1+--c\n2"), [int("1"), op("+"), int("2")]);
        assert_eq!(kinds("a::int")[1], Kind::Cast);
    }

    #[test]
    fn strings_and_numbers() {
        let text = |s: &str| Kind::Text(s.into());
        assert_eq!(kinds("'it''s'"), [text("it's")]);
        assert_eq!(kinds("'a' \n 'b'"), [text("ab")]);
        assert_eq!(kinds("'a' 'b'"), [text("a"), text("b")]);
        assert_eq!(kinds(r"e'\x41\u00e9\n'"), [text("Aé\n")]);
        assert_eq!(kinds("$x$a'b$x$"), [text("a'b")]);
        assert_eq!(
            kinds("1.5e3 .5 1_000 0xff"),
            [
                Kind::Decimal("1.5e3".into()),
                Kind::Decimal(".5".into()),
                Kind::Integer("1000".into()),
                Kind::Integer("255".into()),
            ]
        );
        assert_eq!(
            kinds("U&'\\0041' Ab \"Ab\""),
            [
                text("A"),
                Kind::Word("ab".into()),
                Kind::Quoted("Ab".into())
            ]
        );
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(
            message("select 'abc"),
            "unterminated quoted string at or near \"'abc\" @8"
        );
        assert_eq!(
            message("select 1a"),
            "trailing junk after numeric literal at or near \"1a\" @8"
        );
        assert_eq!(
            message("/* x"),
            "unterminated /* comment at or near \"/* x\" @1"
        );
        assert_eq!(message("select \\"), "syntax error at or near \"\\\" @8");
    }
}
