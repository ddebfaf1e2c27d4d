//! PostgreSQL's regular expressions: which part of a text matches, and what groups keep of it.
//!
//! An expression is read as a tree ([`node`]). The `regex` crate finds whether and where the first
//! match begins; how far it goes is PostgreSQL's rule, the longest or the shortest ([`program`]),
//! and so is which part each group keeps ([`dissect`]). Where that rule and the crate's (the first
//! way that matches, as in Perl) cannot differ, the crate does it all; where the crate has no word
//! for something (lookaround, references back), it does nothing.

mod dissect;
mod node;
mod parse;
mod program;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use throng_types::error::state;
use throng_types::{Error, Result, interrupt};

use dissect::{DissectPart, Dissection, Kept};
use node::{Node, Prefer};
use program::{Budget, Program, Scan};

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
#[cold]
fn too_complex() -> Error {
    invalid("regular expression is too complex")
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
    // Half a microsecond a byte, and more where parts of it are repeated.
    interrupt::expect(pattern.len().saturating_mul(512))?;
    interrupt::look()?;
    let compiled = Regex::new(pattern, options)?;
    interrupt::look()?;
    COMPILED.with_borrow_mut(|kept| {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, compiled.clone());
    });
    Ok(compiled)
}

/// A compiled expression.
#[derive(Clone)]
pub struct Regex(Arc<Compiled>);

struct Compiled {
    node: Node,
    groups: usize,
    ignore_case: bool,
    refers_back: bool,
    /// The expression as the crate has it, unless it has no word for part of it.
    search: Option<regex::Regex>,
    /// Whether the crate's matches are PostgreSQL's.
    unambiguous: bool,
    plan: OnceLock<Option<Plan>>,
}

/// What finds the end of a match and takes it apart; made when a match is asked for and not only
/// whether there is one.
struct Plan {
    whole: Program,
    part: DissectPart,
    prefer: Prefer,
}

/// A match: where it is, and where what its groups kept.
pub struct Match(Kept);

impl Match {
    /// The places where the match (0) or what a group kept begins and ends.
    pub fn get(&self, group: usize) -> Option<(usize, usize)> {
        self.0.get(group).copied().flatten()
    }
    pub fn start(&self) -> usize {
        self.get(0).map_or(0, |(start, _)| start)
    }
    pub fn end(&self) -> usize {
        self.get(0).map_or(0, |(_, end)| end)
    }
    /// How many groups there are, the whole match among them.
    pub fn groups(&self) -> usize {
        self.0.len()
    }
}

impl Regex {
    fn new(pattern: &str, options: Options) -> Result<Regex> {
        let (node, groups, options) = parse::parse(pattern, options)?;
        let refers_back = node.refers_back();
        let search = match refers_back || node.looks_around() {
            true => None,
            false => {
                let mut text = String::new();
                node.write(&mut text);
                let built = regex::RegexBuilder::new(&text)
                    .case_insensitive(options.ignore_case)
                    .nest_limit(2_000)
                    .build();
                Some(built.map_err(|_| too_complex())?)
            }
        };
        Ok(Regex(Arc::new(Compiled {
            unambiguous: search.is_some() && node.unambiguous(),
            node,
            groups,
            ignore_case: options.ignore_case,
            refers_back,
            search,
            plan: OnceLock::new(),
        })))
    }

    /// Whether a text has a match in it.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        match &self.0.search {
            Some(search) => Ok(search.is_match(text)),
            None => Ok(self.match_at(text, 0)?.is_some()),
        }
    }

    /// The first match that begins at a byte or behind it.
    pub fn match_at(&self, text: &str, from: usize) -> Result<Option<Match>> {
        interrupt::poll()?;
        let this = &*self.0;
        if this.unambiguous {
            let found = this.search.as_ref().and_then(|s| s.captures_at(text, from));
            return Ok(found.map(|found| {
                let span = |group: Option<regex::Match<'_>>| group.map(|g| (g.start(), g.end()));
                Match(found.iter().map(span).collect())
            }));
        }
        let plan = this.plan.get_or_init(|| Plan::of(&this.node).ok());
        let plan = plan.as_ref().ok_or_else(too_complex)?;
        let dissection = Dissection {
            scan: Scan::new(text),
            ignore_case: this.ignore_case,
            refers_back: this.refers_back,
        };
        let mut start = from;
        // Where the first match ends that begins at `start` or behind it: it begins no later.
        let mut first_end = None;
        loop {
            if let Some(search) = &this.search {
                match search.find_at(text, start) {
                    Some(found) => start = found.start(),
                    None => return Ok(None),
                }
            } else if first_end.is_none_or(|end| start > end) {
                first_end = dissection.scan.first_end(&plan.whole, start);
                if first_end.is_none() {
                    return dissection.unbroken(None);
                }
            }
            let mut wrong = None;
            while let Some(end) = plan.end(&dissection, start, wrong) {
                let mut kept: Kept = vec![None; this.groups + 1];
                kept[0] = Some((start, end));
                if dissection.take(&plan.part, start, end, &mut kept)? {
                    return dissection.unbroken(Some(Match(kept)));
                }
                wrong = Some(end);
            }
            dissection.unbroken(())?;
            match text[start..].chars().next() {
                Some(c) => start += c.len_utf8(),
                None => return Ok(None),
            }
        }
    }
}

impl Plan {
    fn of(node: &Node) -> Result<Plan> {
        let mut budget = Budget::new();
        Ok(Plan {
            whole: Program::forward(node, &mut budget)?,
            part: DissectPart::of(node, &mut budget)?,
            prefer: node.prefers().unwrap_or(Prefer::Longest),
        })
    }

    /// Where a match that begins at `start` ends; after an end that turned out wrong, the next.
    fn end(
        &self,
        dissection: &Dissection<'_>,
        start: usize,
        wrong: Option<usize>,
    ) -> Option<usize> {
        let limit = dissection.scan.text.len();
        let way = (&self.whole, self.prefer);
        dissection.end(way, (start, limit), wrong, &|_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first match's groups, or the match where there are none.
    fn matched(pattern: &str, text: &str) -> Option<Vec<Option<String>>> {
        let regex = compile(pattern, Options::default()).unwrap();
        let found = regex.match_at(text, 0).unwrap()?;
        assert!(regex.is_match(text).unwrap());
        let part = |span: Option<(usize, usize)>| span.map(|(from, to)| text[from..to].to_string());
        let groups = usize::from(found.groups() > 1)..found.groups();
        Some(groups.map(|group| part(found.get(group))).collect())
    }

    #[track_caller]
    fn check(pattern: &str, text: &str, wanted: &[&str]) {
        let found = matched(pattern, text).map(|groups| {
            let shown = groups
                .into_iter()
                .map(|g| g.unwrap_or_else(|| "NULL".into()));
            shown.collect::<Vec<_>>()
        });
        assert_eq!(found.unwrap_or_default(), wanted, "{pattern} on {text}");
    }

    #[test]
    fn the_longest_is_taken() {
        check(".|...", "xyz", &["xyz"]);
        check("(a|ab)(c|bcd)(d*)", "abcd", &["ab", "c", "d"]);
        check("(a*)(ab)*(b*)", "abb", &["a", "NULL", "bb"]);
        check("xx(a|ab)*", "xxaba", &["a"]);
        check("a|ab|abc", "zabcd", &["abc"]);
    }

    #[test]
    fn the_shortest_where_that_is_preferred() {
        check("a+?", "aaa", &["a"]);
        check("^(l*){1,1}?(.*)(f*)$", "llmmmfff", &["", "llmmmfff", ""]);
        check(
            "^(l*){1,1}?(.*){1,1}?(f*)$",
            "llmmmfff",
            &["", "llmmm", "fff"],
        );
        check("^(l*?){1,1}(.*)(f*)$", "llmmmfff", &["ll", "mmmfff", ""]);
        check(
            "^([^/]+?)(?:/([^/]+?))(?:/([^/]+?))?$",
            "foo/bar/baz",
            &["foo", "bar", "baz"],
        );
    }

    #[test]
    fn looking_around() {
        check("a(?=b)b*", "ab", &["ab"]);
        check("a(?=b)b*", "a", &[]);
        check("a*(?<!a)b*", "ab", &[""]);
        check("(?<=foo)b+", "foobar", &["b"]);
        check("a(?!b)b*", "a", &["a"]);
    }

    #[test]
    fn referring_back() {
        check("(\\w)(.*?\\1)", "Programmer", &["r", "ogr"]);
        check("^(\\w+)( \\1)+$", "abc abc abc", &["abc", " abc"]);
        check("^(\\w+)( \\1)+$", "abc abd abc", &[]);
        check("^([bc])\\1*$", "bbbbb", &["b"]);
        check("(.){0}(\\1)", "xxx", &[]);
        assert!(compile("x(\\w)(?=\\1)", Options::default()).is_err());
    }

    #[test]
    fn nothing_takes_for_ever() {
        check("((((((a)*)*)*)*)*)*", "a", &["a", "a", "a", "a", "a", "a"]);
        let long = "a".repeat(3_000);
        assert!(matched("(a|aa)*(b)", &long).is_none());
        let nested = "(".repeat(5_000);
        assert!(compile(&nested, Options::default()).is_err());
        let doubled = (1..30).fold(String::from("()"), |s, i| format!("{s}(\\{i}\\{i})"));
        let regex = compile(&doubled, Options::default()).unwrap();
        assert!(regex.match_at("x", 0).is_err());
    }
}
