//! Whether a query holds, with three answers: a phrase cannot be judged where positions are
//! missing.
//!
//! A part of a phrase answers the places where it ends. So that `!` can stand within a phrase, the
//! list may be the complement: every place but those.

use super::query::{Node, Operand, TsQuery};
use super::vector::TsVector;
use crate::{Result, interrupt, stack};

/// What is known of an operand or of what joins some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    No,
    Yes,
    Maybe,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Answer {
        match yes {
            true => Answer::Yes,
            false => Answer::No,
        }
    }
}

/// Where a part of a phrase was found.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Everywhere but there.
    pub negated: bool,
    /// In order, the last place of each finding.
    pub at: Vec<i32>,
    /// Places from the first to the last of a finding.
    pub width: i32,
}

/// What is searched: whether an operand is there and, for a phrase, where.
pub trait Document {
    fn holds(&mut self, operand: &Operand, nth: u32) -> Result<Answer>;
    /// The places are told into the list; [`Answer::Maybe`] where they are not known.
    fn places(&mut self, operand: &Operand, nth: u32, at: &mut Vec<i32>) -> Result<Answer>;
}

/// How what is not known is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// A phrase whose places are not known does not hold.
    IsNo,
    /// It may hold: an index that knows of no places asks so.
    IsMaybe,
}

/// The answer of a whole query; one without nodes holds nowhere.
pub fn search(query: &TsQuery, document: &mut dyn Document, unknown: Unknown) -> Result<Answer> {
    match query.root() {
        Some(root) => Search {
            query,
            document,
            unknown,
        }
        .node(root),
        None => Ok(Answer::No),
    }
}

/// Where a term was found that must be there: the last place of each finding.
#[derive(Clone, Debug)]
pub struct Location {
    pub at: Vec<i32>,
    /// Places from the first to the last of a finding.
    pub width: i32,
}

/// Terms that are all there in whatever answers the query, with their places; none where it does
/// not hold.
///
/// A disjunction `(A & B) | (C & D)` holds where `(A | C) & (A | D) & (B | C) & (B | D)` does.
pub fn locations(query: &TsQuery, document: &mut dyn Document) -> Result<Vec<Location>> {
    let Some(root) = query.root() else {
        return Ok(Vec::new());
    };
    let unknown = Unknown::IsNo;
    let mut search = Search {
        query,
        document,
        unknown,
    };
    Ok(search.locations(root)?.unwrap_or_default())
}

struct Search<'a> {
    query: &'a TsQuery,
    document: &'a mut dyn Document,
    unknown: Unknown,
}

impl Search<'_> {
    fn node(&mut self, at: u32) -> Result<Answer> {
        use Answer::*;
        stack::check()?;
        interrupt::poll()?;
        Ok(match *self.query.node(at) {
            Node::Operand(ref operand) => self.document.holds(operand, at)?,
            Node::Not(a) => match self.node(a)? {
                No => Yes,
                Yes => No,
                Maybe => Maybe,
            },
            Node::And(a, b) => match self.node(a)? {
                No => No,
                left => match (left, self.node(b)?) {
                    (_, No) => No,
                    (Yes, Yes) => Yes,
                    _ => Maybe,
                },
            },
            Node::Or(a, b) => match self.node(a)? {
                Yes => Yes,
                left => match (left, self.node(b)?) {
                    (_, Yes) => Yes,
                    (No, No) => No,
                    _ => Maybe,
                },
            },
            Node::Phrase(..) => match (self.places(at)?.0, self.unknown) {
                (Maybe, Unknown::IsNo) => No,
                (answer, _) => answer,
            },
        })
    }

    /// None where the node does not hold.
    fn locations(&mut self, at: u32) -> Result<Option<Vec<Location>>> {
        stack::check()?;
        interrupt::poll()?;
        Ok(match *self.query.node(at) {
            Node::Operand(_) | Node::Phrase(..) => match self.places(at)? {
                (Answer::Yes, found) if !found.negated && !found.at.is_empty() => {
                    Some(vec![Location {
                        at: found.at,
                        width: found.width,
                    }])
                }
                (Answer::Yes, _) => Some(Vec::new()),
                _ => None,
            },
            Node::Not(a) => match self.locations(a)? {
                None => Some(Vec::new()),
                Some(_) => None,
            },
            Node::And(a, b) => match (self.locations(a)?, self.locations(b)?) {
                (Some(mut left), Some(right)) => {
                    left.extend(right);
                    Some(left)
                }
                _ => None,
            },
            Node::Or(a, b) => match (self.locations(a)?, self.locations(b)?) {
                (None, None) => None,
                (Some(one), None) | (None, Some(one)) => Some(one),
                (Some(left), Some(right)) if left.is_empty() || right.is_empty() => {
                    Some(if left.is_empty() { right } else { left })
                }
                (Some(left), Some(right)) => Some(both_ways(&left, &right)?),
            },
        })
    }

    /// A part of a phrase.
    fn places(&mut self, at: u32) -> Result<(Answer, Places)> {
        use Answer::*;
        stack::check()?;
        interrupt::poll()?;
        let mut found = Places::default();
        let (a, b, gap) = match *self.query.node(at) {
            Node::Operand(ref operand) => {
                let answer = self.document.places(operand, at, &mut found.at)?;
                return Ok((answer, found));
            }
            Node::Not(a) => {
                let (answer, mut found) = self.places(a)?;
                return Ok(match answer {
                    No => (
                        Yes,
                        Places {
                            negated: true,
                            ..Places::default()
                        },
                    ),
                    Yes if found.at.is_empty() && found.negated => (No, Places::default()),
                    Yes => {
                        found.negated = !found.negated;
                        (Yes, found)
                    }
                    Maybe => (Maybe, found),
                });
            }
            Node::Or(a, b) => return self.either(a, b),
            Node::And(a, b) => (a, b, None),
            Node::Phrase(a, b, distance) => (a, b, Some(i32::from(distance))),
        };
        let (left, left_places) = self.places(a)?;
        if left == No {
            return Ok((No, found));
        }
        let (right, right_places) = self.places(b)?;
        if right == No {
            return Ok((No, found));
        }
        if left == Maybe || right == Maybe {
            return Ok((Maybe, found));
        }
        let (l, r) = (&left_places, &right_places);
        let (left_by, right_by) = match gap {
            Some(distance) => {
                found.width = distance + l.width + r.width;
                (distance + r.width, 0)
            }
            None => {
                found.width = l.width.max(r.width);
                (found.width - l.width, found.width - r.width)
            }
        };
        let wanted = match (l.negated, r.negated) {
            (true, true) => Wanted::ALL,
            (true, false) => Wanted::RIGHT,
            (false, true) => Wanted::LEFT,
            (false, false) => Wanted::BOTH,
        };
        found.at = merged(l, r, (left_by, right_by), wanted);
        found.negated = l.negated && r.negated;
        Ok((Answer::from(found.negated || !found.at.is_empty()), found))
    }

    fn either(&mut self, a: u32, b: u32) -> Result<(Answer, Places)> {
        use Answer::*;
        let mut found = Places::default();
        let (left, mut l) = self.places(a)?;
        let (right, mut r) = self.places(b)?;
        if left == No && right == No {
            return Ok((No, found));
        }
        if left == Maybe || right == Maybe {
            return Ok((Maybe, found));
        }
        for (answer, places) in [(left, &mut l), (right, &mut r)] {
            if answer == No {
                places.width = 0;
            }
        }
        found.width = l.width.max(r.width);
        let by = (found.width - l.width, found.width - r.width);
        let wanted = match (l.negated, r.negated) {
            (true, true) => Wanted::BOTH,
            (true, false) => Wanted::LEFT,
            (false, true) => Wanted::RIGHT,
            (false, false) => Wanted::ALL,
        };
        found.at = merged(&l, &r, by, wanted);
        found.negated = l.negated || r.negated;
        Ok((Answer::from(found.negated || !found.at.is_empty()), found))
    }
}

/// Each of one side with each of the other: either may be there.
fn both_ways(left: &[Location], right: &[Location]) -> Result<Vec<Location>> {
    /// More terms narrow nothing that is worth their making.
    const MOST: usize = 1_000;
    let mut all = Vec::new();
    for a in left {
        for b in right.iter().take(MOST / left.len().min(MOST)) {
            interrupt::poll()?;
            let places = |location: &Location| Places {
                negated: false,
                at: location.at.clone(),
                width: location.width,
            };
            let width = a.width.max(b.width);
            let by = (width - a.width, width - b.width);
            let at = merged(&places(a), &places(b), by, Wanted::ALL);
            all.push(Location { at, width });
        }
    }
    Ok(all)
}

/// Which places of two lists are taken: those of one alone, of both, or all.
#[derive(Clone, Copy)]
struct Wanted {
    left: bool,
    both: bool,
    right: bool,
}

impl Wanted {
    const ALL: Wanted = Wanted {
        left: true,
        both: true,
        right: true,
    };
    const BOTH: Wanted = Wanted {
        left: false,
        both: true,
        right: false,
    };
    const LEFT: Wanted = Wanted {
        left: true,
        both: false,
        right: false,
    };
    const RIGHT: Wanted = Wanted {
        left: false,
        both: false,
        right: true,
    };
}

fn merged(l: &Places, r: &Places, (left_by, right_by): (i32, i32), wanted: Wanted) -> Vec<i32> {
    let mut at = Vec::new();
    let mut left = l.at.iter().map(|place| place + left_by).peekable();
    let mut right = r.at.iter().map(|place| place + right_by).peekable();
    loop {
        let (place, is_wanted) = match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return at,
            (Some(a), None) => (a, wanted.left),
            (None, Some(b)) => (b, wanted.right),
            (Some(a), Some(b)) if a < b => (a, wanted.left),
            (Some(a), Some(b)) if a > b => (b, wanted.right),
            (Some(a), Some(_)) => (a, wanted.both),
        };
        left.next_if_eq(&place);
        right.next_if_eq(&place);
        if is_wanted {
            at.push(place);
        }
    }
}

impl Document for TsVector<'_> {
    fn holds(&mut self, operand: &Operand, _: u32) -> Result<Answer> {
        let mut entries = self.matching(&operand.lexeme, operand.prefix);
        // A vector without positions has any weight.
        Ok(Answer::from(entries.any(|entry| {
            entry.count() == 0
                || operand.weights == 0
                || entry
                    .positions()
                    .any(|position| operand.allows(position.weight()))
        })))
    }

    fn places(&mut self, operand: &Operand, _: u32, at: &mut Vec<i32>) -> Result<Answer> {
        let mut unknown = false;
        for entry in self.matching(&operand.lexeme, operand.prefix) {
            unknown |= entry.count() == 0;
            let positions = entry.positions().filter(|p| operand.allows(p.weight()));
            at.extend(positions.map(|position| i32::from(position.place())));
        }
        if operand.prefix {
            at.sort_unstable();
            at.dedup();
        }
        Ok(match (at.is_empty(), unknown) {
            (false, false) => Answer::Yes,
            (true, false) => Answer::No,
            (_, true) => Answer::Maybe,
        })
    }
}

/// `vector @@ query`.
pub fn matches(vector: TsVector<'_>, query: &TsQuery) -> Result<bool> {
    let mut document = vector;
    Ok(search(query, &mut document, Unknown::IsNo)? != Answer::No)
}
