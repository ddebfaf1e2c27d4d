//! A regular expression as a tree, and which length of a match each part of it prefers.
//!
//! PostgreSQL's rules: a quantifier prefers the longest match, or with `?` behind it the shortest;
//! `{m}` and parentheses have the preference of what is inside, several branches prefer the
//! longest, and a branch has the preference of its first part that has one.

use std::sync::Arc;

use throng_types::Result;

use super::invalid;

/// The parts of an expression that may be nested, and those that may stand side by side.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Empty,
    Set(Arc<Set>),
    Assert(Assert),
    /// What follows, or what is before, matches the node, or does not.
    Look {
        ahead: bool,
        negative: bool,
        inner: Arc<Node>,
    },
    Concat(Vec<Node>),
    Alternatives(Vec<Node>),
    /// Parentheses that keep what they match, by their number.
    Group(usize, Arc<Node>),
    Repeat {
        inner: Arc<Node>,
        least: u32,
        most: Option<u32>,
        prefer: Option<Prefer>,
    },
    /// What the group so numbered matched; what it may match.
    Back(usize, Arc<Node>),
}

/// Which of the possible lengths is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefer {
    Longest,
    Shortest,
}

/// What holds at a place in the text and matches no character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assert {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordEdge,
    NoWordEdge,
}

/// The characters of which one is matched.
#[derive(Debug)]
pub(super) struct Set {
    /// In the syntax of the `regex` crate.
    pub text: String,
    ascii: u128,
    /// In ascending order, apart from each other.
    ranges: Vec<(char, char)>,
}

impl Set {
    /// Reads what stands for one character in the crate's syntax.
    pub fn new(text: String, ignore_case: bool) -> Result<Set> {
        let mut parser = regex_syntax::ParserBuilder::new()
            .case_insensitive(ignore_case)
            .build();
        let hir = parser
            .parse(&text)
            .map_err(|_| invalid("invalid character class"))?;
        let ranges = match hir.kind() {
            regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => class
                .ranges()
                .iter()
                .map(|range| (range.start(), range.end()))
                .collect(),
            regex_syntax::hir::HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).unwrap_or_default();
                text.chars().map(|c| (c, c)).collect()
            }
            _ => return Err(invalid("invalid character class")),
        };
        Ok(Set::of_ranges(text, ranges))
    }

    /// One character, case included.
    pub fn one(c: char) -> Set {
        let text = regex::escape(c.encode_utf8(&mut [0; 4]));
        Set::of_ranges(text, vec![(c, c)])
    }

    fn of_ranges(text: String, ranges: Vec<(char, char)>) -> Set {
        let mut ascii = 0;
        for (low, high) in &ranges {
            for c in *low as u32..=(*high as u32).min(127) {
                ascii |= 1 << c;
            }
        }
        Set {
            text,
            ascii,
            ranges,
        }
    }

    pub fn has(&self, c: char) -> bool {
        match c.is_ascii() {
            true => self.ascii >> (c as u32) & 1 == 1,
            false => {
                let place = self.ranges.partition_point(|(_, high)| *high < c);
                self.ranges.get(place).is_some_and(|(low, _)| *low <= c)
            }
        }
    }
}

impl Node {
    pub fn prefers(&self) -> Option<Prefer> {
        match self {
            Node::Empty | Node::Set(_) | Node::Assert(_) | Node::Look { .. } | Node::Back(..) => {
                None
            }
            Node::Concat(items) => items.iter().find_map(Node::prefers),
            Node::Alternatives(_) => Some(Prefer::Longest),
            Node::Group(_, inner) => inner.prefers(),
            Node::Repeat {
                inner,
                least,
                most,
                prefer,
            } => match (least, most) {
                // Once is no quantifier, unless it says another preference than there is.
                (1, Some(1)) if inner.prefers().is_none() => None,
                _ => prefer.or_else(|| inner.prefers()),
            },
        }
    }

    /// Whether it keeps something of a match, or asks for what was kept.
    pub fn keeps(&self) -> bool {
        match self {
            Node::Group(..) | Node::Back(..) => true,
            Node::Concat(items) | Node::Alternatives(items) => items.iter().any(Node::keeps),
            Node::Repeat { inner, .. } => inner.keeps(),
            _ => false,
        }
    }

    pub fn refers_back(&self) -> bool {
        match self {
            Node::Back(..) => true,
            Node::Concat(items) | Node::Alternatives(items) => items.iter().any(Node::refers_back),
            Node::Repeat { inner, .. } | Node::Group(_, inner) => inner.refers_back(),
            _ => false,
        }
    }

    pub fn looks_around(&self) -> bool {
        match self {
            Node::Look { .. } => true,
            Node::Concat(items) | Node::Alternatives(items) => items.iter().any(Node::looks_around),
            Node::Repeat { inner, .. } | Node::Group(_, inner) => inner.looks_around(),
            _ => false,
        }
    }

    /// Whether its length is not a matter of one preference: its parts are then matched one after
    /// the other.
    fn mixed(&self) -> bool {
        let differ = |a: Option<Prefer>, b: Option<Prefer>| a.is_some() && b.is_some() && a != b;
        match self {
            Node::Concat(items) => {
                let first = self.prefers();
                items
                    .iter()
                    .any(|i| i.mixed() || differ(first, i.prefers()))
            }
            Node::Alternatives(items) => items
                .iter()
                .any(|i| i.mixed() || i.prefers() == Some(Prefer::Shortest)),
            Node::Repeat { inner, prefer, .. } => inner.mixed() || differ(*prefer, inner.prefers()),
            Node::Group(_, inner) => inner.mixed(),
            _ => false,
        }
    }

    /// The parts of a sequence that are matched one after the other: runs that keep nothing and
    /// prefer the same are one.
    pub fn segments(items: &[Node]) -> Vec<Node> {
        let mut segments = Vec::new();
        let mut run: Vec<Node> = Vec::new();
        let mut prefer = None;
        for item in items {
            let own = item.prefers();
            let clash = prefer.is_some() && own.is_some() && prefer != own;
            if item.keeps() || item.mixed() || clash {
                if !run.is_empty() {
                    segments.push(Node::Concat(std::mem::take(&mut run)));
                }
                segments.push(item.clone());
                prefer = None;
            } else {
                prefer = prefer.or(own);
                run.push(item.clone());
            }
        }
        if !run.is_empty() {
            segments.push(Node::Concat(run));
        }
        segments
    }

    /// How many quantifiers it has whose length is open, and whether the order of branches could
    /// matter.
    fn open_lengths(&self) -> Option<u32> {
        match self {
            Node::Empty | Node::Set(_) | Node::Assert(_) => Some(0),
            Node::Concat(items) => items.iter().map(Node::open_lengths).sum(),
            Node::Group(_, inner) => inner.open_lengths(),
            Node::Repeat {
                inner, least, most, ..
            } => match **inner {
                Node::Set(_) => Some(u32::from(Some(*least) != *most)),
                _ => None,
            },
            Node::Alternatives(_) | Node::Look { .. } | Node::Back(..) => None,
        }
    }

    /// Whether Perl's rule (the first way that matches) and PostgreSQL's cannot differ.
    pub fn unambiguous(&self) -> bool {
        self.open_lengths().is_some_and(|open| open <= 1)
    }

    /// The expression in the `regex` crate's syntax; nothing that the crate has not may be in it.
    pub fn write(&self, out: &mut String) {
        match self {
            Node::Empty | Node::Look { .. } | Node::Back(..) => {}
            Node::Set(set) => out.push_str(&set.text),
            Node::Assert(assert) => out.push_str(match assert {
                Assert::TextStart => "\\A",
                Assert::TextEnd => "\\z",
                Assert::LineStart => "(?m:^)",
                Assert::LineEnd => "(?m:$)",
                Assert::WordStart => "\\b{start}",
                Assert::WordEnd => "\\b{end}",
                Assert::WordEdge => "\\b",
                Assert::NoWordEdge => "\\B",
            }),
            Node::Concat(items) => items.iter().for_each(|item| match item {
                Node::Alternatives(_) => item.write_whole(out),
                _ => item.write(out),
            }),
            Node::Alternatives(items) => {
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push('|');
                    }
                    item.write(out);
                }
            }
            Node::Group(_, inner) => {
                out.push('(');
                inner.write(out);
                out.push(')');
            }
            Node::Repeat {
                inner,
                least,
                most,
                prefer,
            } => {
                inner.write_whole(out);
                match (least, most) {
                    (0, None) => out.push('*'),
                    (1, None) => out.push('+'),
                    (0, Some(1)) => out.push('?'),
                    (least, None) => out.push_str(&format!("{{{least},}}")),
                    (least, Some(most)) => out.push_str(&format!("{{{least},{most}}}")),
                }
                if *prefer == Some(Prefer::Shortest) {
                    out.push('?');
                }
            }
        }
    }

    fn write_whole(&self, out: &mut String) {
        match self {
            Node::Set(_) | Node::Group(..) => self.write(out),
            _ => {
                out.push_str("(?:");
                self.write(out);
                out.push(')');
            }
        }
    }
}
