//! Reads an advanced regular expression (ARE), its options included, as a tree.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use throng_types::Result;

use super::node::{Assert, Node, Prefer, Set};
use super::{Options, invalid};

/// How deep parentheses may nest: trees are walked on the stack.
const DEEPEST: usize = 250;

/// The tree, and how many groups it has.
pub(super) fn parse(pattern: &str, mut options: Options) -> Result<(Node, usize, Options)> {
    let mut rest = pattern;
    if let Some(literal) = rest.strip_prefix("***=") {
        options.literal = true;
        rest = literal;
    } else if !options.literal {
        if let Some(advanced) = rest.strip_prefix("***:") {
            rest = advanced;
        } else if rest.starts_with("***") {
            return Err(invalid("quantifier operand invalid"));
        }
        rest = embedded(rest, &mut options)?;
    }
    let mut parser = Parser {
        rest: rest.chars().peekable(),
        options,
        depth: 0,
        looking: 0,
        groups: vec![],
    };
    let node = match options.literal {
        true => {
            let sets = rest.chars().map(|c| parser.character(c));
            Node::Concat(sets.collect::<Result<_>>()?)
        }
        false => parser.alternatives()?,
    };
    match parser.rest.next() {
        Some(_) if !options.literal => Err(unbalanced()),
        _ => Ok((node, parser.groups.len(), options)),
    }
}

/// Options at the expression's beginning: `(?i)`.
fn embedded<'a>(pattern: &'a str, options: &mut Options) -> Result<&'a str> {
    let Some(inner) = pattern.strip_prefix("(?") else {
        return Ok(pattern);
    };
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok(pattern);
    }
    let end = inner
        .find(')')
        .filter(|end| inner[..*end].chars().all(|letter| options.set(letter)))
        .ok_or_else(|| invalid("invalid embedded option"))?;
    Ok(&inner[end + 1..])
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    options: Options,
    depth: usize,
    /// How many lookarounds are open: in them nothing is kept.
    looking: usize,
    /// What each group matches, once it is closed.
    groups: Vec<Option<Arc<Node>>>,
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Node> {
        let mut branches = vec![self.branch()?];
        while self.rest.next_if_eq(&'|').is_some() {
            branches.push(self.branch()?);
        }
        match branches.len() {
            1 => Ok(branches.remove(0)),
            _ => Ok(Node::Alternatives(branches)),
        }
    }

    fn branch(&mut self) -> Result<Node> {
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            match self.rest.peek() {
                None | Some('|') => break,
                Some(')') if self.depth > 0 => break,
                Some(')') => return Err(unbalanced()),
                Some(_) => items.extend(self.item()?),
            }
        }
        match items.len() {
            0 => Ok(Node::Empty),
            1 => Ok(items.remove(0)),
            _ => Ok(Node::Concat(items)),
        }
    }

    /// Blanks and comments that do not count.
    fn skip_blanks(&mut self) {
        while self.options.expanded {
            if self.rest.next_if_eq(&'#').is_some() {
                while self.rest.next().is_some_and(|c| c != '\n') {}
            } else if self.rest.next_if(|c| c.is_whitespace()).is_none() {
                break;
            }
        }
    }

    /// One part and its quantifier; None for a comment. What matches no characters takes no
    /// quantifier.
    fn item(&mut self) -> Result<Option<Node>> {
        let Some(c) = self.rest.next() else {
            return Ok(None);
        };
        let lines = self.options.newline_anchors;
        let atom = match c {
            '(' => match self.open()? {
                None => return Ok(None),
                Some(atom) => atom,
            },
            '*' | '+' | '?' => return Err(invalid("quantifier operand invalid")),
            '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                return Err(invalid("quantifier operand invalid"));
            }
            '^' if lines => Node::Assert(Assert::LineStart),
            '^' => Node::Assert(Assert::TextStart),
            '$' if lines => Node::Assert(Assert::LineEnd),
            '$' => Node::Assert(Assert::TextEnd),
            '.' if self.options.newline_stops => self.set("[^\\n]".into())?,
            '.' => self.set("(?s:.)".into())?,
            '[' => self.bracket()?,
            '\\' => self.escape()?,
            c => self.character(c)?,
        };
        match atom {
            Node::Assert(_) | Node::Look { .. } => Ok(Some(atom)),
            atom => self.quantified(atom).map(Some),
        }
    }

    fn set(&self, text: String) -> Result<Node> {
        let set = Set::new(text, self.options.ignore_case)?;
        Ok(Node::Set(Arc::new(set)))
    }
    fn character(&self, c: char) -> Result<Node> {
        match self.options.ignore_case {
            true => self.set(regex::escape(c.encode_utf8(&mut [0; 4]))),
            false => Ok(Node::Set(Arc::new(Set::one(c)))),
        }
    }

    /// Behind an opening parenthesis.
    fn open(&mut self) -> Result<Option<Node>> {
        let mut group = None;
        let mut look = None;
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next() {
                Some(':') => {}
                Some('#') => {
                    while self.rest.next().ok_or_else(unbalanced)? != ')' {}
                    return Ok(None);
                }
                Some('=') => look = Some((true, false)),
                Some('!') => look = Some((true, true)),
                Some('<') => match self.rest.next() {
                    Some('=') => look = Some((false, false)),
                    Some('!') => look = Some((false, true)),
                    _ => return Err(invalid("quantifier operand invalid")),
                },
                _ => return Err(invalid("quantifier operand invalid")),
            }
        } else if self.looking == 0 {
            group = Some(self.groups.len() + 1);
            self.groups.push(None);
        }
        if self.depth == DEEPEST {
            return Err(super::too_complex());
        }
        self.depth += 1;
        self.looking += usize::from(look.is_some());
        let inner = Arc::new(self.alternatives()?);
        self.looking -= usize::from(look.is_some());
        self.depth -= 1;
        if self.rest.next() != Some(')') {
            return Err(unbalanced());
        }
        if let Some((ahead, negative)) = look {
            return Ok(Some(Node::Look {
                ahead,
                negative,
                inner,
            }));
        }
        let Some(number) = group else {
            return Ok(Some(Arc::unwrap_or_clone(inner)));
        };
        self.groups[number - 1] = Some(inner.clone());
        Ok(Some(Node::Group(number, inner)))
    }

    /// The quantifier behind a part, if there is one; `?` behind that makes it prefer less.
    fn quantified(&mut self, atom: Node) -> Result<Node> {
        self.skip_blanks();
        let bound = {
            let mut ahead = self.rest.clone();
            ahead.next_if_eq(&'{').is_some() && ahead.peek().is_some_and(char::is_ascii_digit)
        };
        let (least, most, open) = match self.rest.peek() {
            Some('*') => (0, None, true),
            Some('+') => (1, None, true),
            Some('?') => (0, Some(1), true),
            Some('{') if bound => {
                self.rest.next();
                self.bound()?
            }
            _ => return Ok(atom),
        };
        if !bound {
            self.rest.next();
        }
        let prefer = match self.rest.next_if_eq(&'?') {
            Some(_) => Prefer::Shortest,
            None => Prefer::Longest,
        };
        Ok(Node::Repeat {
            inner: Arc::new(atom),
            least,
            most,
            prefer: open.then_some(prefer),
        })
    }

    /// `{m}`, `{m,}`, `{m,n}`, and whether it has a preference.
    fn bound(&mut self) -> Result<(u32, Option<u32>, bool)> {
        let mut written = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(c) if c.is_ascii_digit() || c == ',' => written.push(c),
                Some(_) => return Err(invalid("invalid repetition count(s)")),
                None => return Err(invalid("braces {} not balanced")),
            }
        }
        let wrong = || invalid("invalid repetition count(s)");
        let number = |s: &str| {
            s.parse::<u32>()
                .ok()
                .filter(|&n| n <= 255)
                .ok_or_else(wrong)
        };
        let Some((low, high)) = written.split_once(',') else {
            let times = number(&written)?;
            return Ok((times, Some(times), false));
        };
        let low = number(low)?;
        let high = match high {
            "" => None,
            high => Some(number(high)?),
        };
        match high.is_some_and(|high| high < low) {
            true => Err(wrong()),
            false => Ok((low, high, true)),
        }
    }

    fn escape(&mut self) -> Result<Node> {
        let Some(c) = self.rest.next() else {
            return Err(bad_escape());
        };
        if let Some(class) = class_escape(c) {
            return self.set(format!("[{class}]"));
        }
        Ok(match c {
            'D' | 'S' | 'W' => {
                let class = class_escape(c.to_ascii_lowercase()).unwrap_or_default();
                let stops = self.options.newline_stops && c != 'S';
                let newline = if stops { "\\n" } else { "" };
                return self.set(format!("[^{class}{newline}]"));
            }
            'A' => Node::Assert(Assert::TextStart),
            'Z' => Node::Assert(Assert::TextEnd),
            'm' => Node::Assert(Assert::WordStart),
            'M' => Node::Assert(Assert::WordEnd),
            'y' => Node::Assert(Assert::WordEdge),
            'Y' => Node::Assert(Assert::NoWordEdge),
            '1'..='9' => return self.back_reference(c),
            c => {
                let c = self.character_escape(c)?;
                return self.character(c);
            }
        })
    }

    /// `\1`; more digits belong to the number where there are so many groups, else they are a
    /// character's octal number.
    fn back_reference(&mut self, first: char) -> Result<Node> {
        let mut number = first as usize - '0' as usize;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10))
            && number * 10 + digit as usize <= self.groups.len()
        {
            number = number * 10 + digit as usize;
            self.rest.next();
        }
        let body = self.groups.get(number - 1).cloned().flatten();
        match body.filter(|_| self.looking == 0) {
            Some(body) => Ok(Node::Back(number, body)),
            None => Err(invalid("invalid backreference number")),
        }
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
    fn bracket(&mut self) -> Result<Node> {
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
        self.set(class)
    }
    /// `[[:<:]]` and `[[:>:]]` stand for the beginning and the end of a word.
    fn word_edge(&mut self, name: &str, alone: bool) -> Result<Node> {
        if !alone || self.rest.next() != Some(']') {
            return Err(invalid("invalid character class"));
        }
        Ok(Node::Assert(match name {
            "<" => Assert::WordStart,
            _ => Assert::WordEnd,
        }))
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
fn unbalanced() -> throng_types::Error {
    invalid("parentheses () not balanced")
}
#[cold]
fn open_bracket() -> throng_types::Error {
    invalid("brackets [] not balanced")
}
#[cold]
fn bad_escape() -> throng_types::Error {
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
