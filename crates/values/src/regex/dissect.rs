//! Which part of a match each group of an expression kept.
//!
//! The whole match is known before: its parts are given out from left to right, each as long or as
//! short as it prefers among the lengths that leave the rest a match. Sets of such places are made
//! by running the parts' automata backward from the end, so that nothing has to be tried; only
//! where an expression refers back to a group, a way may turn out wrong and the next is taken.

use throng_types::{Error, Result};

use super::node::{Node, Prefer};
use super::program::{Budget, Places, Program, Scan};

/// States gone through after which an expression that refers back is given up.
const MOST_STEPS: u64 = 300_000_000;

/// 57014: nobody waits for the answer any longer.
#[cold]
fn too_long() -> Error {
    let message = "canceling statement due to user request";
    Error::new(throng_types::error::state::QUERY_CANCELED, message)
}

/// What groups kept, the whole match first.
pub(super) type Kept = Vec<Option<(usize, usize)>>;

/// How a part of an expression is taken apart.
pub(super) enum DissectPart {
    /// Nothing in it is kept.
    Plain,
    Group(usize, Box<DissectPart>),
    Back {
        group: usize,
        least: u32,
        most: Option<u32>,
    },
    Sequence(Vec<Segment>),
    Alternatives(Vec<Segment>),
    Iterate {
        inner: Box<Segment>,
        /// The part as often as it likes, read backward.
        rest: Program,
        least: u32,
        most: Option<u32>,
        prefer: Prefer,
    },
}

pub(super) struct Segment {
    part: DissectPart,
    forward: Program,
    backward: Program,
    prefer: Prefer,
    /// The groups in it, as numbers from and to.
    groups: (usize, usize),
}

fn groups_in(node: &Node, range: &mut (usize, usize)) {
    match node {
        Node::Group(number, inner) => {
            *range = (range.0.min(*number), range.1.max(number + 1));
            groups_in(inner, range);
        }
        Node::Concat(items) | Node::Alternatives(items) => {
            items.iter().for_each(|item| groups_in(item, range));
        }
        Node::Repeat { inner, .. } => groups_in(inner, range),
        _ => {}
    }
}

impl Segment {
    fn new(node: &Node, part: DissectPart, budget: &mut Budget) -> Result<Segment> {
        let mut groups = (usize::MAX, 0);
        groups_in(node, &mut groups);
        Ok(Segment {
            part,
            forward: Program::forward(node, budget)?,
            backward: Program::backward(node, budget)?,
            prefer: node.prefers().unwrap_or(Prefer::Longest),
            groups,
        })
    }

    fn of(node: &Node, budget: &mut Budget) -> Result<Segment> {
        let part = DissectPart::of(node, budget)?;
        Segment::new(node, part, budget)
    }

    fn all(nodes: &[Node], budget: &mut Budget) -> Result<Vec<Segment>> {
        nodes.iter().map(|node| Segment::of(node, budget)).collect()
    }

    fn forget(&self, kept: &mut Kept) {
        // Without groups the range is none, and neither are there any to forget.
        if let Some(own) = kept.get_mut(self.groups.0..self.groups.1) {
            own.fill(None);
        }
    }
}

impl DissectPart {
    pub fn of(node: &Node, budget: &mut Budget) -> Result<DissectPart> {
        if !node.keeps() {
            return Ok(DissectPart::Plain);
        }
        Ok(match node {
            Node::Group(number, inner) => {
                DissectPart::Group(*number, Box::new(DissectPart::of(inner, budget)?))
            }
            Node::Back(group, _) => DissectPart::Back {
                group: *group,
                least: 1,
                most: Some(1),
            },
            Node::Concat(items) => {
                DissectPart::Sequence(Segment::all(&Node::segments(items), budget)?)
            }
            Node::Alternatives(items) => DissectPart::Alternatives(Segment::all(items, budget)?),
            Node::Repeat {
                inner,
                least,
                most,
                prefer,
            } => DissectPart::repeated(node, inner, (*least, *most), *prefer, budget)?,
            _ => DissectPart::Plain,
        })
    }

    fn repeated(
        node: &Node,
        inner: &std::sync::Arc<Node>,
        (least, most): (u32, Option<u32>),
        prefer: Option<Prefer>,
        budget: &mut Budget,
    ) -> Result<DissectPart> {
        if let Node::Back(group, _) = **inner {
            return Ok(DissectPart::Back { group, least, most });
        }
        let times = |least, most| Node::Repeat {
            inner: inner.clone(),
            least,
            most,
            prefer,
        };
        match (least, most) {
            (_, Some(0)) => Ok(DissectPart::Plain),
            (1, Some(1)) => DissectPart::of(inner, budget),
            // What is kept is of the last time.
            (1.., _) if !inner.refers_back() => {
                let before = times(least - 1, most.map(|most| most - 1));
                let mut before = Segment::new(&before, DissectPart::Plain, budget)?;
                before.prefer = node.prefers().unwrap_or(Prefer::Longest);
                Ok(DissectPart::Sequence(vec![
                    before,
                    Segment::of(inner, budget)?,
                ]))
            }
            _ => Ok(DissectPart::Iterate {
                inner: Box::new(Segment::of(inner, budget)?),
                rest: Program::backward(&times(0, None), budget)?,
                least,
                most,
                prefer: node.prefers().unwrap_or(Prefer::Longest),
            }),
        }
    }
}

/// A match being taken apart.
pub(super) struct Dissection<'a> {
    pub scan: Scan<'a>,
    pub ignore_case: bool,
    /// Whether the expression refers back to groups: ways may turn out wrong.
    pub refers_back: bool,
}

impl Dissection<'_> {
    /// What was found, unless the search was broken off.
    pub fn unbroken<T>(&self, found: T) -> Result<T> {
        match self.scan.broken.get() {
            false => Ok(found),
            true => Err(too_long()),
        }
    }

    /// Whether a part of the text is a match of a part of the expression, and what is kept of it.
    /// Without references back, it is known to be one.
    pub fn take(
        &self,
        part: &DissectPart,
        from: usize,
        to: usize,
        kept: &mut Kept,
    ) -> Result<bool> {
        self.unbroken(())?;
        if self.refers_back && self.scan.steps.get() > MOST_STEPS {
            return Err(Error::new(
                throng_types::error::state::PROGRAM_LIMIT_EXCEEDED,
                "matching a regular expression took too many steps",
            ));
        }
        match part {
            DissectPart::Plain => Ok(true),
            DissectPart::Group(number, inner) => {
                let taken = self.take(inner, from, to, kept)?;
                if taken {
                    kept[*number] = Some((from, to));
                }
                Ok(taken)
            }
            DissectPart::Back { group, least, most } => {
                Ok(self.repeats(kept[*group], (*least, *most), from, to))
            }
            DissectPart::Alternatives(branches) => {
                for branch in branches {
                    branch.forget(kept);
                    if self.scan.is_exactly(&branch.forward, from, to)
                        && self.take(&branch.part, from, to, kept)?
                    {
                        return Ok(true);
                    }
                    branch.forget(kept);
                }
                Ok(false)
            }
            DissectPart::Sequence(segments) => self.sequence(segments, from, to, kept),
            DissectPart::Iterate {
                inner,
                rest,
                least,
                most,
                prefer,
            } => {
                let times = (*least, *most);
                match self.refers_back {
                    false => self.iterate(inner, rest, times, *prefer, (from, to), kept),
                    true => self.iterate_trying(inner, times, *prefer, (from, to), kept),
                }
            }
        }
    }

    /// Whether a part of the text is what a group kept, so many times.
    fn repeats(
        &self,
        group: Option<(usize, usize)>,
        (least, most): (u32, Option<u32>),
        from: usize,
        to: usize,
    ) -> bool {
        let Some((start, end)) = group else {
            return most == Some(0) && from == to;
        };
        let (text, part) = (&self.scan.text[start..end], &self.scan.text[from..to]);
        if text.is_empty() || part.is_empty() {
            return part.is_empty() && (text.is_empty() || least == 0);
        }
        let fold = |s: &str| match self.ignore_case {
            true => s.chars().flat_map(char::to_lowercase).collect::<String>(),
            false => s.to_string(),
        };
        let (text, mut part) = (fold(text), &*fold(part));
        let mut times = 0;
        while let Some(rest) = part.strip_prefix(&*text) {
            (part, times) = (rest, times + 1);
        }
        part.is_empty() && times >= least && most.is_none_or(|most| times <= most)
    }

    /// The end that is preferred among those allowed; after one that turned out wrong, the next.
    pub fn end(
        &self,
        (program, prefer): (&Program, Prefer),
        (from, limit): (usize, usize),
        wrong: Option<usize>,
        allowed: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut best = None;
        self.scan.ends(program, from, limit, &mut |end| {
            match (prefer, wrong) {
                (Prefer::Longest, Some(wrong)) if end >= wrong => return false,
                (Prefer::Shortest, Some(wrong)) if end <= wrong => return true,
                _ => {}
            }
            if allowed(end) {
                best = Some(end);
            }
            best.is_none() || prefer == Prefer::Longest
        });
        best
    }

    fn sequence(
        &self,
        segments: &[Segment],
        from: usize,
        to: usize,
        kept: &mut Kept,
    ) -> Result<bool> {
        // Where each segment may end for the rest to match.
        let mut ends = vec![Places::only(from, to, to)];
        for segment in segments[1..].iter().rev() {
            let mut starts = Places::new(from, to);
            let behind = &ends[ends.len() - 1];
            self.scan
                .starts(&segment.backward, behind, to, from, &mut |start| {
                    starts.add(start);
                    true
                });
            ends.push(starts);
        }
        ends.reverse();
        // Where each of the segments so far began, and the end it has.
        let mut taken: Vec<(usize, usize)> = Vec::new();
        let mut wrong = None;
        loop {
            let at = taken.len();
            let Some(segment) = segments.get(at) else {
                return Ok(true);
            };
            let start = taken.last().map_or(from, |(_, end)| *end);
            let way = (&segment.forward, segment.prefer);
            let allowed = |end: usize| ends[at].has(end);
            segment.forget(kept);
            match self.end(way, (start, to), wrong, &allowed) {
                Some(end) => match self.take(&segment.part, start, end, kept)? {
                    true => {
                        taken.push((start, end));
                        wrong = None;
                    }
                    false => wrong = Some(end),
                },
                // The segment before has to end elsewhere.
                None => match taken.pop() {
                    Some((_, end)) => wrong = Some(end),
                    None => return Ok(false),
                },
            }
        }
    }

    /// What is kept of the last time; how often it is, is found by what each time prefers.
    fn iterate(
        &self,
        inner: &Segment,
        rest: &Program,
        (least, most): (u32, Option<u32>),
        prefer: Prefer,
        (from, to): (usize, usize),
        kept: &mut Kept,
    ) -> Result<bool> {
        if from == to {
            return self.iterate_nothing(inner, least, from, kept);
        }
        // Where the rest matches, by how many times may be left; the last where any number may.
        let mut layers = vec![Places::only(from, to, to)];
        let rounds = most.map_or(1, |most| most.saturating_sub(1));
        for _ in 0..rounds {
            let mut starts = Places::only(from, to, to);
            let behind = &layers[layers.len() - 1];
            let program = if most.is_none() {
                rest
            } else {
                &inner.backward
            };
            self.scan.starts(program, behind, to, from, &mut |start| {
                starts.add(start);
                true
            });
            layers.push(starts);
        }
        let (mut at, mut times) = (from, 0);
        loop {
            let left = match most {
                None => 1,
                Some(_) => layers.len().saturating_sub(1 + times),
            };
            let allowed = |end: usize| end > at && layers[left].has(end);
            let Some(end) = self.end((&inner.forward, prefer), (at, to), None, &allowed) else {
                return Ok(false);
            };
            if end == to {
                inner.forget(kept);
                return self.take(&inner.part, at, end, kept);
            }
            (at, times) = (end, times + 1);
        }
    }

    fn iterate_nothing(
        &self,
        inner: &Segment,
        least: u32,
        at: usize,
        kept: &mut Kept,
    ) -> Result<bool> {
        inner.forget(kept);
        if self.scan.is_exactly(&inner.forward, at, at) && self.take(&inner.part, at, at, kept)? {
            return Ok(true);
        }
        inner.forget(kept);
        Ok(least == 0)
    }

    /// As `iterate`, where each time may turn out wrong.
    fn iterate_trying(
        &self,
        inner: &Segment,
        (least, most): (u32, Option<u32>),
        prefer: Prefer,
        (from, to): (usize, usize),
        kept: &mut Kept,
    ) -> Result<bool> {
        if from == to {
            return self.iterate_nothing(inner, least, from, kept);
        }
        let most = most.map_or(usize::MAX, |most| most as usize);
        let mut taken: Vec<(usize, Kept)> = Vec::new();
        let (mut at, mut wrong) = (from, None);
        loop {
            let times = taken.len();
            let allowed = |end: usize| {
                (end > at || times + 1 < least as usize) && (times + 1 < most || end == to)
            };
            let before = kept.clone();
            inner.forget(kept);
            match self.end((&inner.forward, prefer), (at, to), wrong, &allowed) {
                Some(end) => {
                    let right = self.take(&inner.part, at, end, kept)?;
                    if right && end == to && times + 1 >= least as usize {
                        return Ok(true);
                    }
                    if right && end < to {
                        taken.push((at, before));
                        (at, wrong) = (end, None);
                    } else {
                        *kept = before;
                        wrong = Some(end);
                    }
                }
                None => {
                    let Some((start, before)) = taken.pop() else {
                        return Ok(false);
                    };
                    wrong = Some(at);
                    at = start;
                    *kept = before;
                }
            }
        }
    }
}
