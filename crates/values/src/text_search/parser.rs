//! PostgreSQL's default parser: a text as tokens.
//!
//! Each token is the first of several forms that the text goes on with; a form that breaks off is
//! given up for the next one, from where it branched off. A hyphenated word comes as a whole, then
//! in parts; a URL as a whole, then as host and path. Words between `<script>` or `<style>` and
//! what ends it are blank.
//!
//! The forms are those of the manual, section "Parsers"; where it leaves them open they were asked
//! of PostgreSQL itself (`tests/fuzz/text_search.py`).

use super::token::TokenKind::{self, *};
use std::ops::Range;
use throng_types::{Result, interrupt};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// A piece of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub range: Range<usize>,
}

/// How the next token is to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Any,
    /// Parts of the hyphenated word that was told.
    Parts,
    /// The host of the URL that was told.
    UrlHost,
    /// Its path.
    UrlPath,
}

pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    mode: Mode,
    /// Within a script or a style sheet.
    ignoring: bool,
}

fn is_ascii_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
}
/// Digits of other scripts are letters, as the C library has it.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() || !c.is_ascii() && c.general_category() == GeneralCategory::DecimalNumber
}
fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}
fn is_alnum(c: char) -> bool {
    is_letter(c) || is_digit(c)
}
/// Marks that take no room of their own: they belong to the word before.
fn is_combining(c: char) -> bool {
    !c.is_ascii() && unicode_width::UnicodeWidthChar::width(c) == Some(0)
}
fn is_space(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}')
}
/// What may stand in the path of a URL.
fn is_url_char(c: char) -> bool {
    ('!'..='~').contains(&c) && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Parser<'a> {
        Parser {
            text,
            at: 0,
            mode: Mode::Any,
            ignoring: false,
        }
    }

    /// The next token; None at the end.
    ///
    /// # Errors
    /// Those of cancellation.
    pub fn next_token(&mut self) -> Result<Option<Token>> {
        interrupt::poll()?;
        if self.at >= self.text.len() {
            return Ok(None);
        }
        let from = self.at;
        let (kind, end) = match self.mode {
            Mode::Parts => match self.part(from) {
                Some(part) => part,
                None => {
                    self.mode = Mode::Any;
                    self.any(from)?
                }
            },
            Mode::UrlPath => {
                self.mode = Mode::Any;
                (UrlPath, self.url_path_end(from))
            }
            Mode::Any | Mode::UrlHost => self.any(from)?,
        };
        let token = Token {
            kind,
            range: from..end,
        };
        match kind {
            AsciiHyphenated | Hyphenated | NumHyphenated => self.mode = Mode::Parts,
            Url => self.mode = Mode::UrlHost,
            Host if self.mode == Mode::UrlHost => {
                self.at = end;
                self.mode = Mode::UrlPath;
            }
            _ => self.at = end,
        }
        if kind == Tag {
            self.note_tag(from, end);
        }
        Ok(Some(token))
    }

    fn char_at(&self, at: usize) -> Option<char> {
        match self.text.as_bytes().get(at)? {
            byte @ 0..0x80 => Some(char::from(*byte)),
            _ => self.text[at..].chars().next(),
        }
    }

    /// The end of the stretch of such characters.
    fn end_of(&self, at: usize, is_in: impl Fn(char) -> bool) -> usize {
        let rest = &self.text[at..];
        at + rest.find(|c| !is_in(c)).unwrap_or(rest.len())
    }

    fn after(&self, at: usize, wanted: char) -> Option<usize> {
        (self.char_at(at) == Some(wanted)).then(|| at + wanted.len_utf8())
    }

    fn any(&self, at: usize) -> Result<(TokenKind, usize)> {
        let Some(c) = self.char_at(at) else {
            return Ok((Blank, at));
        };
        let next = at + c.len_utf8();
        let special = match c {
            '<' => self.tag(next)?,
            _ if self.ignoring => None,
            '-' | '+' => self.number(next),
            '&' => self.entity(next),
            '~' => self.twiddle(next),
            '/' => self.file_first(next),
            '.' => self.path_first_first(next),
            _ => None,
        };
        if let Some(found) = special {
            return Ok(found);
        }
        if self.ignoring {
            return Ok((Blank, self.blank_end(next)));
        }
        Ok(match c {
            _ if is_digit(c) => self.unsigned(next),
            _ if is_ascii_letter(c) => self.ascii_word(next),
            _ if is_letter(c) => self.word(next),
            _ => (Blank, self.blank_end(next)),
        })
    }

    fn blank_end(&self, at: usize) -> usize {
        let ignoring = self.ignoring;
        self.end_of(at, |c| match c {
            '<' => false,
            _ if ignoring => true,
            '-' | '+' | '&' | '/' => false,
            c => !is_alnum(c),
        })
    }

    // Words.

    fn ascii_word(&self, at: usize) -> (TokenKind, usize) {
        let end = self.end_of(at, is_ascii_letter);
        let Some(c) = self.char_at(end) else {
            return (AsciiWord, end);
        };
        let next = end + c.len_utf8();
        let longer = match c {
            '.' => self
                .host(next, HostPart::FirstOfDomain)
                .or_else(|| self.file_next(next)),
            '-' => self
                .host(next, HostPart::FirstOfName)
                .or_else(|| self.hyphenated(next, AsciiHyphenated)),
            '_' => self.host(next, HostPart::FirstOfName),
            '@' => self.email(next),
            ':' => self
                .after(next, '/')
                .and_then(|at| self.after(at, '/'))
                .map(|end| (Protocol, end)),
            '/' => self.file_first(next),
            _ if is_digit(c) => self.host(next, HostPart::Name),
            _ => None,
        };
        match longer {
            Some(longer) => longer,
            None if is_digit(c) => self.num_word(next),
            None if is_letter(c) || is_combining(c) => self.word(next),
            None => (AsciiWord, end),
        }
    }

    fn word(&self, at: usize) -> (TokenKind, usize) {
        let end = self.end_of(at, |c| is_letter(c) || is_combining(c));
        match self.char_at(end) {
            Some(c) if is_digit(c) => self.num_word(end + 1),
            Some('-') => self.hyphenated(end + 1, Hyphenated).unwrap_or((Word, end)),
            _ => (Word, end),
        }
    }

    fn num_word(&self, at: usize) -> (TokenKind, usize) {
        let end = self.end_of(at, |c| is_alnum(c) || is_combining(c));
        let next = end + 1;
        let longer = match self.char_at(end) {
            Some('@') => self.email(next),
            Some('/') => self.file_first(next),
            Some('.') => self.file_next(next),
            Some('-') => self.hyphenated(next, NumHyphenated),
            _ => None,
        };
        longer.unwrap_or((NumWord, end))
    }

    /// What follows a word's hyphen; the kind is what the word was so far.
    fn hyphenated(&self, at: usize, kind: TokenKind) -> Option<(TokenKind, usize)> {
        let (mut at, mut kind) = (at, kind);
        let mut found = None;
        loop {
            // A part of digits needs a letter after them.
            let digits = self.end_of(at, is_digit);
            let c = self.char_at(digits);
            kind = match (digits > at, c) {
                (true, Some(c)) if is_letter(c) || is_combining(c) => NumHyphenated,
                (false, Some(c)) if kind == AsciiHyphenated && is_ascii_letter(c) => kind,
                (false, Some(c)) if is_letter(c) && kind == NumHyphenated => kind,
                (false, Some(c)) if is_letter(c) => Hyphenated,
                _ => return found,
            };
            at = digits + c.map_or(0, char::len_utf8);
            if kind == AsciiHyphenated {
                at = self.end_of(at, is_ascii_letter);
                if self
                    .char_at(at)
                    .is_some_and(|c| is_letter(c) && !is_digit(c) || is_combining(c))
                {
                    kind = Hyphenated;
                }
            }
            if kind == Hyphenated {
                at = self.end_of(at, |c| is_letter(c) || is_combining(c));
            }
            if kind == NumHyphenated || self.char_at(at).is_some_and(is_digit) {
                kind = NumHyphenated;
                at = self.end_of(at, |c| is_alnum(c) || is_combining(c));
            }
            found = Some((kind, at));
            match self.after(at, '-') {
                Some(next) => at = next,
                None => return found,
            }
        }
    }

    /// A part of a hyphenated word, or the hyphen before the next one.
    fn part(&self, at: usize) -> Option<(TokenKind, usize)> {
        let c = self.char_at(at)?;
        if c == '-' {
            let follows = self.char_at(at + 1);
            return follows
                .filter(|c| is_alnum(*c) || is_combining(*c))
                .map(|_| (Blank, at + 1));
        }
        if is_digit(c) {
            let digits = self.end_of(at, is_digit);
            let follows = self.char_at(digits);
            follows.filter(|c| is_letter(*c) || is_combining(*c))?;
            return Some((
                HyphenatedNumPart,
                self.end_of(digits, |c| is_alnum(c) || is_combining(c)),
            ));
        }
        if !is_letter(c) {
            return None;
        }
        let ascii = self.end_of(at, is_ascii_letter);
        let letters = self.end_of(ascii, |c| is_letter(c) || is_combining(c));
        let end = match self.char_at(letters) {
            Some(c) if is_digit(c) => self.end_of(letters, |c| is_alnum(c) || is_combining(c)),
            _ => letters,
        };
        let kind = match (end > letters, letters > ascii) {
            (true, _) => HyphenatedNumPart,
            (false, true) => HyphenatedPart,
            (false, false) => HyphenatedAsciiPart,
        };
        Some((kind, end))
    }

    // Numbers.

    fn unsigned(&self, at: usize) -> (TokenKind, usize) {
        let end = self.end_of(at, is_digit);
        let Some(c) = self.char_at(end) else {
            return (UnsignedInt, end);
        };
        let next = end + c.len_utf8();
        let longer = match c {
            '.' => self
                .host(next, HostPart::FirstOfDomain)
                .or_else(|| self.fraction(next)),
            '-' | '_' => self.host(next, HostPart::FirstOfName),
            '/' => self.file_first(next),
            'e' | 'E' => self
                .exponent(next)
                .or_else(|| self.host(next, HostPart::Name)),
            _ if is_ascii_letter(c) => self.host(next, HostPart::Name),
            _ => None,
        };
        match longer {
            Some(longer) => longer,
            None if is_letter(c) || is_combining(c) => self.num_word(next),
            None => (UnsignedInt, end),
        }
    }

    /// What follows a sign.
    fn number(&self, at: usize) -> Option<(TokenKind, usize)> {
        let end = self.end_of(at, is_digit);
        if end == at {
            return None;
        }
        let longer = match self.char_at(end) {
            // A version has no sign.
            Some('.') => match self.fraction(end + 1) {
                Some((Version, _)) => return None,
                longer => longer,
            },
            Some('e' | 'E') => self.exponent(end + 1),
            _ => None,
        };
        Some(longer.unwrap_or((Int, end)))
    }

    fn fraction(&self, at: usize) -> Option<(TokenKind, usize)> {
        let mut end = self.end_of(at, is_digit);
        if end == at {
            return None;
        }
        let longer = match self.char_at(end) {
            Some('e' | 'E') => self.exponent(end + 1),
            Some('.') => {
                let mut kind = Float;
                while self.char_at(end) == Some('.') {
                    let next = self.end_of(end + 1, is_digit);
                    if next == end + 1 {
                        break;
                    }
                    (kind, end) = (Version, next);
                }
                return Some((kind, end));
            }
            _ => None,
        };
        Some(longer.unwrap_or((Float, end)))
    }

    fn exponent(&self, at: usize) -> Option<(TokenKind, usize)> {
        let digits = match self.char_at(at) {
            Some('+' | '-') => at + 1,
            _ => at,
        };
        let end = self.end_of(digits, is_digit);
        (end > digits).then_some((ScientificFloat, end))
    }

    // Hosts, mail addresses, URLs.

    /// A host from the middle of its name on. It ends after a domain of two letters or more.
    fn host(&self, at: usize, from: HostPart) -> Option<(TokenKind, usize)> {
        let (mut at, mut part) = (at, from);
        let mut found = None;
        loop {
            let c = self.char_at(at);
            let step = match (part, c) {
                (HostPart::FirstOfDomain, Some(c)) if is_ascii_letter(c) => {
                    HostPart::SecondOfDomain
                }
                (HostPart::FirstOfDomain | HostPart::FirstOfName, Some(c)) if is_digit(c) => {
                    HostPart::Name
                }
                (HostPart::FirstOfName, Some(c)) if is_ascii_letter(c) => HostPart::Name,
                (HostPart::FirstOfDomain | HostPart::FirstOfName, _) => return found,
                (HostPart::SecondOfDomain | HostPart::Domain, Some(c)) if is_ascii_letter(c) => {
                    HostPart::Domain
                }
                (HostPart::Name, Some(c)) if is_ascii_letter(c) => HostPart::Name,
                (_, Some(c)) if is_digit(c) => HostPart::Name,
                (_, c) => {
                    if part == HostPart::Domain {
                        found = Some((Host, at));
                    }
                    match c {
                        Some('.') => HostPart::FirstOfDomain,
                        Some('-' | '_') => HostPart::FirstOfName,
                        Some('@') => return self.email(at + 1).or(found),
                        Some(':') if part == HostPart::Domain => {
                            return self.port(at + 1).or(found);
                        }
                        Some('/') if part == HostPart::Domain => {
                            return self.with_path(at).or(found);
                        }
                        _ => return found,
                    }
                }
            };
            part = step;
            at += 1;
        }
    }

    fn port(&self, at: usize) -> Option<(TokenKind, usize)> {
        let end = self.end_of(at, is_digit);
        if end == at {
            return None;
        }
        Some(self.with_path(end).unwrap_or((Host, end)))
    }

    /// A URL, where the host is followed by a path.
    fn with_path(&self, at: usize) -> Option<(TokenKind, usize)> {
        if self.mode == Mode::UrlHost || self.char_at(at) != Some('/') {
            return None;
        }
        let end = self.url_path_end(at);
        (end > at + 1).then_some((Url, end))
    }

    fn url_path_end(&self, at: usize) -> usize {
        self.end_of(at, is_url_char)
    }

    /// What follows the `@`.
    fn email(&self, at: usize) -> Option<(TokenKind, usize)> {
        if self.mode == Mode::UrlHost {
            return None;
        }
        let domain = Parser {
            mode: Mode::UrlHost,
            at,
            ..Parser::new(self.text)
        };
        let c = self.char_at(at)?;
        let (kind, end) = match c {
            _ if is_digit(c) => domain.unsigned(at + 1),
            _ if is_ascii_letter(c) => domain.ascii_word(at + 1),
            _ => return None,
        };
        (kind == Host).then_some((Email, end))
    }

    // Files.

    fn file_first(&self, at: usize) -> Option<(TokenKind, usize)> {
        let c = self.char_at(at)?;
        match c {
            '.' => self.path_first(at + 1),
            '~' => self.twiddle(at + 1),
            _ if is_file_char(c) => Some(self.file(at + 1)),
            _ => None,
        }
    }

    fn twiddle(&self, at: usize) -> Option<(TokenKind, usize)> {
        match self.char_at(at)? {
            '/' => self.file_first(at + 1),
            c if is_file_char(c) => Some(self.file(at + 1)),
            _ => None,
        }
    }

    fn path_first(&self, at: usize) -> Option<(TokenKind, usize)> {
        match self.char_at(at)? {
            '.' => self.path_second(at + 1),
            '/' => self.file_first(at + 1),
            c if is_file_char(c) => Some(self.file(at + 1)),
            _ => None,
        }
    }

    fn path_first_first(&self, at: usize) -> Option<(TokenKind, usize)> {
        match self.char_at(at)? {
            '.' => self.path_second(at + 1),
            '/' => self.file_first(at + 1),
            _ => None,
        }
    }

    fn path_second(&self, at: usize) -> Option<(TokenKind, usize)> {
        match self.char_at(at) {
            None => Some((File, at)),
            Some('/') => Some(self.file_first(at + 1).unwrap_or((File, at))),
            Some(c) if is_space(c) => Some((File, at)),
            Some(_) => None,
        }
    }

    fn file(&self, at: usize) -> (TokenKind, usize) {
        let mut at = at;
        loop {
            at = self.end_of(at, |c| is_file_char(c) || c == '-');
            let next = at + 1;
            match self.char_at(at) {
                Some('.') if self.char_at(next).is_some_and(is_file_char) => at = next,
                Some('/') => return self.file_first(next).unwrap_or((File, at)),
                _ => return (File, at),
            }
        }
    }

    fn file_next(&self, at: usize) -> Option<(TokenKind, usize)> {
        self.char_at(at).filter(|c| is_file_char(*c))?;
        Some(self.file(at + 1))
    }

    // Tags and entities.

    /// What follows `<`.
    fn tag(&self, at: usize) -> Result<Option<(TokenKind, usize)>> {
        let Some(c) = self.char_at(at) else {
            return Ok(None);
        };
        let next = at + c.len_utf8();
        match c {
            '/' if self.char_at(next).is_some_and(is_ascii_letter) => self.tag_name(next + 1),
            '!' => match self.char_at(next) {
                Some('-') => match self.after(next + 1, '-') {
                    Some(from) => {
                        interrupt::expect(self.text.len() - from)?;
                        Ok(self.text[from..].find("-->").map(|n| (Tag, from + n + 3)))
                    }
                    None => Ok(None),
                },
                Some('D' | 'd') => self.tag_rest(next + 1),
                _ => Ok(None),
            },
            '?' if self.char_at(next) == Some('x') => self.tag_rest(next + 1),
            ':' | '_' => self.tag_name(next),
            c if is_ascii_letter(c) => self.tag_name(next),
            _ => Ok(None),
        }
    }

    fn tag_name(&self, at: usize) -> Result<Option<(TokenKind, usize)>> {
        let end = self.end_of(at, |c| is_alnum(c) || matches!(c, ':' | '_' | '.'));
        match self.char_at(end) {
            Some('/') => Ok(self.after(end + 1, '>').map(|end| (Tag, end))),
            Some('>') => Ok(Some((Tag, end + 1))),
            Some(c) if is_space(c) => self.tag_rest(end + c.len_utf8()),
            _ => Ok(None),
        }
    }

    fn tag_rest(&self, at: usize) -> Result<Option<(TokenKind, usize)>> {
        let mut at = at;
        loop {
            interrupt::poll()?;
            let Some(c) = self.char_at(at) else {
                return Ok(None);
            };
            at += c.len_utf8();
            match c {
                '>' => return Ok(Some((Tag, at))),
                '\'' | '"' => match self.quoted_end(at, c) {
                    Some(end) => at = end,
                    None => return Ok(None),
                },
                '=' | '-' | '_' | '#' | '/' | ':' | '.' | '&' | '?' | '%' | '~' => {}
                c if is_ascii_letter(c) || is_digit(c) || is_space(c) => {}
                _ => return Ok(None),
            }
        }
    }

    fn quoted_end(&self, at: usize, quote: char) -> Option<usize> {
        let mut escaped = false;
        for (n, c) in self.text[at..].char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == quote => return Some(at + n + 1),
                _ => {}
            }
        }
        None
    }

    /// Scripts and style sheets begin and end with tags.
    fn note_tag(&mut self, from: usize, end: usize) {
        let tag = self.text[from + 1..end].to_ascii_lowercase();
        let (closes, name) = match tag.strip_prefix('/') {
            Some(name) => (true, name),
            None => (false, tag.as_str()),
        };
        let is = |wanted: &str| {
            name.strip_prefix(wanted)
                .and_then(|rest| rest.chars().next())
                .is_some_and(|c| c == '>' || is_space(c))
        };
        if is("script") || is("style") {
            self.ignoring = !closes && !tag.ends_with("/>");
        }
    }

    /// What follows `&`.
    fn entity(&self, at: usize) -> Option<(TokenKind, usize)> {
        let (begin, end) = match self.char_at(at)? {
            '#' => match self.char_at(at + 1)? {
                'x' | 'X' => (at + 2, self.end_of(at + 2, |c| c.is_ascii_hexdigit())),
                _ => (at + 1, self.end_of(at + 1, is_digit)),
            },
            c if is_ascii_letter(c) || matches!(c, ':' | '_') => (
                at,
                self.end_of(at, |c| is_alnum(c) || matches!(c, ':' | '_' | '.' | '-')),
            ),
            _ => return None,
        };
        (end > begin)
            .then(|| self.after(end, ';'))
            .flatten()
            .map(|end| (Entity, end))
    }
}

/// Where in a host's name one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostPart {
    FirstOfDomain,
    SecondOfDomain,
    Domain,
    FirstOfName,
    Name,
}

fn is_file_char(c: char) -> bool {
    is_ascii_letter(c) || is_digit(c) || c == '_'
}
