//! PostgreSQL's regular expressions on the `regex` crate.
//!
//! [`compile`] reads an advanced regular expression (ARE), its options included, and writes the same in the crate's syntax. Not there:
//! back references, lookahead and lookbehind, which are refused (0A000). And a match is the first by the order of branches, as in
//! Perl, where PostgreSQL takes the longest: this shows only where one branch of an alternation is the beginning of a later one, or
//! where greedy and non-greedy quantifiers are mixed.

use regex::{Regex, RegexBuilder};
use std::cell::RefCell;
use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;
use throng_types::error::state;
use throng_types::{Error, Result};

/// How the expression is to be read and matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    pub ignore_case: bool,
    /// `.` and `[^…]` do not match a newline.
    pub newline_stops: bool,
    /// `^` and `$` match at lines.
    pub newline_anchors: bool,
    /// Blanks and comments in the expression do not count.
    pub expanded: bool,
    /// The expression is a plain string.
    pub literal: bool,
}

impl Options {
    /// Takes one option letter; false if there is none such. `g` is the caller's.
    pub fn set(&mut self, letter: char) -> bool {
        match letter {
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'n' | 'm' => (self.newline_stops, self.newline_anchors) = (true, true),
            'p' => (self.newline_stops, self.newline_anchors) = (true, false),
            'w' => (self.newline_stops, self.newline_anchors) = (false, true),
            's' => (self.newline_stops, self.newline_anchors) = (false, false),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'e' => self.literal = false,
            _ => return false,
        }
        true
    }
}

#[cold]
fn invalid(what: &str) -> Error {
    Error::new(
        state::INVALID_REGULAR_EXPRESSION,
        format!("invalid regular expression: {what}"),
    )
}

/// Expressions kept compiled by each thread; when there are more, it begins anew.
const KEPT: usize = 64;

thread_local! {
    static COMPILED: RefCell<HashMap<(String, Options), Regex>> = RefCell::default();
}

/// The expression compiled, or found compiled before.
pub fn compile(pattern: &str, options: Options) -> Result<Regex> {
    let key = (pattern.to_string(), options);
    if let Some(found) = COMPILED.with_borrow(|kept| kept.get(&key).cloned()) {
        return Ok(found);
    }
    let (translated, ignore_case) = translate(pattern, options)?;
    let compiled = RegexBuilder::new(&translated)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|e| match e {
            regex::Error::CompiledTooBig(_) => invalid("regular expression is too complex"),
            _ => invalid("quantifier operand invalid"),
        })?;
    COMPILED.with_borrow_mut(|kept| {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, compiled.clone());
    });
    Ok(compiled)
}

/// The expression in the crate's syntax, and whether case counts for nothing.
fn translate(pattern: &str, mut options: Options) -> Result<(String, bool)> {
    let mut rest = pattern;
    if let Some(literal) = rest.strip_prefix("***=") {
        return Ok((regex::escape(literal), options.ignore_case));
    }
    if options.literal {
        return Ok((regex::escape(rest), options.ignore_case));
    }
    if let Some(advanced) = rest.strip_prefix("***:") {
        rest = advanced;
    } else if rest.starts_with("***") {
        return Err(invalid("quantifier operand invalid"));
    }
    if let Some(inner) = rest.strip_prefix("(?")
        && inner.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        let end = inner
            .find(')')
            .ok_or_else(|| invalid("invalid embedded option"))?;
        if !inner[..end].chars().all(|letter| options.set(letter)) {
            return Err(invalid("invalid embedded option"));
        }
        rest = &inner[end + 1..];
        if options.literal {
            return Ok((regex::escape(rest), options.ignore_case));
        }
    }
    let mut translator = Translator {
        rest: rest.chars().peekable(),
        options,
        out: String::with_capacity(rest.len() + 16),
        groups: vec![],
        atom: None,
    };
    translator.run()?;
    Ok((translator.out, options.ignore_case))
}

struct Translator<'a> {
    rest: Peekable<Chars<'a>>,
    options: Options,
    out: String,
    /// Where in the output each open parenthesis stands.
    groups: Vec<usize>,
    /// Where in the output that begins which a quantifier would repeat.
    atom: Option<usize>,
}

impl Translator<'_> {
    fn run(&mut self) -> Result<()> {
        while let Some(c) = self.rest.next() {
            match c {
                c if self.options.expanded && c.is_whitespace() => {}
                '#' if self.options.expanded => {
                    while self.rest.next().is_some_and(|c| c != '\n') {}
                }
                '(' => self.open()?,
                ')' => {
                    let start = self.groups.pop().ok_or_else(unbalanced)?;
                    self.out.push(')');
                    self.atom = Some(start);
                }
                '|' => {
                    self.out.push('|');
                    self.atom = None;
                }
                '*' | '+' | '?' => self.quantifier(c.encode_utf8(&mut [0; 4]))?,
                '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => self.bound()?,
                '^' => self.anchor(if self.options.newline_anchors {
                    "(?m:^)"
                } else {
                    "\\A"
                }),
                '$' => self.anchor(if self.options.newline_anchors {
                    "(?m:$)"
                } else {
                    "\\z"
                }),
                '.' => self.put(if self.options.newline_stops {
                    "[^\\n]"
                } else {
                    "(?s:.)"
                }),
                '[' => self.bracket()?,
                '\\' => self.escape()?,
                c => self.literal(c),
            }
        }
        if !self.groups.is_empty() {
            return Err(unbalanced());
        }
        Ok(())
    }

    fn put(&mut self, atom: &str) {
        self.atom = Some(self.out.len());
        self.out.push_str(atom);
    }
    fn literal(&mut self, c: char) {
        self.put(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }
    /// What matches no characters cannot be repeated.
    fn anchor(&mut self, anchor: &str) {
        self.out.push_str(anchor);
        self.atom = None;
    }

    fn open(&mut self) -> Result<()> {
        self.atom = None;
        let start = self.out.len();
        if self.rest.next_if_eq(&'?').is_none() {
            self.groups.push(start);
            self.out.push('(');
            return Ok(());
        }
        match self.rest.next() {
            Some(':') => {
                self.groups.push(start);
                self.out.push_str("(?:");
                Ok(())
            }
            Some('#') => {
                while self.rest.next().ok_or_else(unbalanced)? != ')' {}
                Ok(())
            }
            Some('=' | '!' | '<') => Err(Error::unsupported("lookaround in regular expressions")),
            _ => Err(invalid("quantifier operand invalid")),
        }
    }

    /// Repeats the atom; a `?` behind makes it non-greedy.
    fn quantifier(&mut self, written: &str) -> Result<()> {
        let start = self
            .atom
            .take()
            .ok_or_else(|| invalid("quantifier operand invalid"))?;
        let reluctant = self.rest.next_if_eq(&'?').is_some();
        if written == "{1,1}" {
            // Once is once: this only says whether what is inside prefers less.
            if reluctant && self.out[start..].starts_with("(?:") {
                self.out.replace_range(start..start + 3, "(?U:");
            }
            return Ok(());
        }
        self.out.push_str(written);
        if reluctant {
            self.out.push('?');
        }
        Ok(())
    }

    /// `{m}`, `{m,}`, `{m,n}`
    fn bound(&mut self) -> Result<()> {
        let mut written = String::from("{");
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(c) if c.is_ascii_digit() || c == ',' => written.push(c),
                Some(_) => return Err(invalid("invalid repetition count(s)")),
                None => return Err(invalid("braces {} not balanced")),
            }
        }
        let (low, high) = written[1..].split_once(',').unwrap_or((&written[1..], ""));
        let number = |s: &str| s.parse::<u32>().ok().filter(|&n| n <= 255);
        let wrong = || invalid("invalid repetition count(s)");
        let low = number(low).ok_or_else(wrong)?;
        if !high.is_empty() && number(high).is_none_or(|high| high < low) {
            return Err(wrong());
        }
        written.push('}');
        self.quantifier(&written)
    }

    fn escape(&mut self) -> Result<()> {
        let Some(c) = self.rest.next() else {
            return Err(bad_escape());
        };
        if let Some(class) = class_escape(c) {
            self.put(&format!("[{class}]"));
            return Ok(());
        }
        match c {
            'D' | 'S' | 'W' => {
                let class = class_escape(c.to_ascii_lowercase()).unwrap_or_default();
                let newline = if self.options.newline_stops && c != 'S' {
                    "\\n"
                } else {
                    ""
                };
                self.put(&format!("[^{class}{newline}]"));
            }
            'A' => self.anchor("\\A"),
            'Z' => self.anchor("\\z"),
            'm' => self.anchor("\\b{start}"),
            'M' => self.anchor("\\b{end}"),
            'y' => self.anchor("\\b"),
            'Y' => self.anchor("\\B"),
            '1'..='9' => {
                return Err(Error::unsupported(
                    "a back reference in a regular expression",
                ));
            }
            c => {
                let c = self.character_escape(c)?;
                self.literal(c);
            }
        }
        Ok(())
    }

    /// The character that `\c` stands for.
    fn character_escape(&mut self, c: char) -> Result<char> {
        Ok(match c {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'c' => {
                let control = self.rest.next().ok_or_else(bad_escape)?;
                char::from((control as u32 & 0x1f) as u8)
            }
            'u' => self.code(4, 4, 16)?,
            'U' => self.code(8, 8, 16)?,
            'x' => self.code(1, 255, 16)?,
            '0' => self.code(0, 2, 8)?,
            c if c.is_ascii_alphanumeric() => return Err(bad_escape()),
            c => c,
        })
    }
    /// A character by its number.
    fn code(&mut self, least: usize, most: usize, radix: u32) -> Result<char> {
        let (mut value, mut count) = (0u32, 0);
        while count < most
            && let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(radix))
        {
            value = value.wrapping_mul(radix) + digit;
            count += 1;
            self.rest.next();
        }
        if count < least {
            return Err(bad_escape());
        }
        char::from_u32(value).ok_or_else(bad_escape)
    }

    /// `[…]`
    fn bracket(&mut self) -> Result<()> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut class = String::from(if negated { "[^" } else { "[" });
        if negated && self.options.newline_stops {
            class.push_str("\\n");
        }
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or_else(open_bracket)?;
            match c {
                ']' if !first => break,
                '[' if self.rest.peek() == Some(&':') => {
                    let name = self.named(':')?;
                    if matches!(name.as_str(), "<" | ">") {
                        return self.word_edge(&name, class == "[");
                    }
                    class.push_str(named_class(&name)?);
                }
                '\\' if self.rest.peek().is_some_and(|&c| class_escape(c).is_some()) => {
                    let letter = self.rest.next().unwrap_or_default();
                    class.push_str(class_escape(letter).unwrap_or_default());
                }
                c => {
                    let low = self.bracket_character(c)?;
                    class.push_str(&class_character(low));
                    let mut ahead = self.rest.clone();
                    if ahead.next_if_eq(&'-').is_some() && ahead.peek().is_some_and(|c| *c != ']') {
                        self.rest.next();
                        let c = self.rest.next().ok_or_else(open_bracket)?;
                        let high = self.bracket_character(c)?;
                        if high < low {
                            return Err(invalid("invalid character range"));
                        }
                        class.push('-');
                        class.push_str(&class_character(high));
                    }
                }
            }
            first = false;
        }
        class.push(']');
        self.put(&class);
        Ok(())
    }
    /// `[[:<:]]` and `[[:>:]]` stand for the beginning and the end of a word.
    fn word_edge(&mut self, name: &str, alone: bool) -> Result<()> {
        if !alone || self.rest.next() != Some(']') {
            return Err(invalid("invalid character class"));
        }
        self.anchor(if name == "<" {
            "\\b{start}"
        } else {
            "\\b{end}"
        });
        Ok(())
    }
    fn bracket_character(&mut self, c: char) -> Result<char> {
        match c {
            '\\' => {
                let c = self.rest.next().ok_or_else(open_bracket)?;
                self.character_escape(c)
            }
            '[' if matches!(self.rest.peek(), Some('.' | '=')) => {
                let mark = *self.rest.peek().unwrap_or(&'.');
                let name = self.named(mark)?;
                let mut characters = name.chars();
                match (characters.next(), characters.next()) {
                    (Some(c), None) => Ok(c),
                    _ => Err(invalid("invalid collating element")),
                }
            }
            c => Ok(c),
        }
    }
    /// What stands between `[:` and `:]`, or other marks.
    fn named(&mut self, mark: char) -> Result<String> {
        self.rest.next();
        let mut name = String::new();
        loop {
            let c = self.rest.next().ok_or_else(open_bracket)?;
            if c == mark && self.rest.next_if_eq(&']').is_some() {
                return Ok(name);
            }
            name.push(c);
        }
    }
}

#[cold]
fn unbalanced() -> Error {
    invalid("parentheses () not balanced")
}
#[cold]
fn open_bracket() -> Error {
    invalid("brackets [] not balanced")
}
#[cold]
fn bad_escape() -> Error {
    invalid("invalid escape \\ sequence")
}

/// The inside of a class for `\d`, `\s` and `\w`.
fn class_escape(c: char) -> Option<&'static str> {
    Some(match c {
        'd' => "0-9",
        's' => "\\s",
        'w' => "\\p{Alphabetic}\\p{Nd}_",
        _ => return None,
    })
}
fn named_class(name: &str) -> Result<&'static str> {
    Ok(match name {
        "alpha" => "\\p{Alphabetic}",
        "digit" => "0-9",
        "alnum" => "\\p{Alphabetic}\\p{Nd}",
        "upper" => "\\p{Uppercase}",
        "lower" => "\\p{Lowercase}",
        "space" => "\\s",
        "blank" => " \\t",
        "punct" => "\\p{P}\\p{S}",
        "cntrl" => "\\p{Cc}",
        "xdigit" => "0-9A-Fa-f",
        "graph" => "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}",
        "print" => "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Zs}",
        "word" => "\\p{Alphabetic}\\p{Nd}_",
        "ascii" => "\\x00-\\x7f",
        _ => return Err(invalid("invalid character class")),
    })
}
/// A character as it may stand in one of the crate's classes, where more of them mean something.
fn class_character(c: char) -> String {
    match c {
        '[' | ']' | '\\' | '^' | '-' | '&' | '~' => format!("\\{c}"),
        c => c.to_string(),
    }
}
