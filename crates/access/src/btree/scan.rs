//! Reading in order: equality look-ups and cursors.
//!
//! A cursor keeps no page and no pin, only how far it has come: the key from which (or up to which)
//! entries are still to be read. Each step descends to the leaf there, takes what is in range out
//! of it, and moves on to the leaf's bound. So pages may be split, merged and freed between steps;
//! every entry that stood still all the while is seen exactly once. Entries that are marked as dead
//! rows' are passed over.

use std::ops::Bound;

use throng_buffer::Try;
use throng_types::Tid;

use super::node::{KeyBytes, Node};
use super::tree::{Goal, Leaf, LowKey};
use super::{BTree, LeafVersion, ROOT};

/// Leaves that a step looks at, at most: a long stretch of marked entries is no long turn.
const LEAVES_A_STEP: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// What a cursor reads. A bound stands for all keys that begin with it: `Included` takes them all
/// in, `Excluded` leaves them all out.
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
}

impl KeyRange {
    pub fn all() -> KeyRange {
        KeyRange {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
        }
    }
    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: Vec<u8>) -> KeyRange {
        KeyRange {
            upper: Bound::Included(prefix.clone()),
            lower: Bound::Included(prefix),
        }
    }
    /// The same as a half-open range of strings, `None` standing above everything; `None` when it
    /// is empty.
    pub fn half_open(self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let start = match self.lower {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key,
            Bound::Excluded(key) => after_prefix(key)?,
        };
        let end = match self.upper {
            Bound::Unbounded => None,
            Bound::Included(key) => after_prefix(key),
            Bound::Excluded(key) => Some(key),
        };
        if end.as_ref().is_some_and(|end| *end <= start) {
            None
        } else {
            Some((start, end))
        }
    }

    /// The keys of any of the ranges, as ranges in ascending order of which no two overlap.
    pub fn union(ranges: Vec<KeyRange>) -> Vec<KeyRange> {
        let mut stretches: Vec<_> = ranges.into_iter().filter_map(KeyRange::half_open).collect();
        stretches.sort_unstable();
        let mut merged: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        for (start, end) in stretches {
            match merged.last_mut() {
                Some((_, last)) if last.as_ref().is_none_or(|last| start <= *last) => {
                    // None stands above everything.
                    let beyond = match (&*last, &end) {
                        (None, _) => false,
                        (Some(_), None) => true,
                        (Some(last), Some(end)) => end > last,
                    };
                    if beyond {
                        *last = end;
                    }
                }
                _ => merged.push((start, end)),
            }
        }
        let range = |(start, end): (_, Option<_>)| KeyRange {
            lower: Bound::Included(start),
            upper: end.map_or(Bound::Unbounded, Bound::Excluded),
        };
        merged.into_iter().map(range).collect()
    }
}

/// The lowest string above all that begin with `key`; `None` when there is none.
fn after_prefix(mut key: Vec<u8>) -> Option<Vec<u8>> {
    to_after_prefix(&mut key).then_some(key)
}

/// The same in place; false when there is none.
fn to_after_prefix(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return true;
        }
    }
    false
}

/// Tids with their keys, for readers that the index alone can answer.
#[derive(Default)]
pub struct Entries {
    pub tids: Vec<Tid>,
    keys: Vec<u8>,
    ends: Vec<usize>,
}

impl Entries {
    pub fn len(&self) -> usize {
        self.tids.len()
    }
    pub fn is_empty(&self) -> bool {
        self.tids.is_empty()
    }
    /// The key of entry `i`, without the tid.
    pub fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.keys[start..self.ends[i]]
    }
    pub fn clear(&mut self) {
        self.tids.clear();
        self.keys.clear();
        self.ends.clear();
    }
}

/// Where a cursor's step puts what it finds.
trait Sink {
    fn clear(&mut self);
    fn take<P: KeyBytes>(&mut self, node: &Node<'_, P>, at: usize);
    fn is_empty(&self) -> bool;
}

impl Sink for Vec<Tid> {
    fn clear(&mut self) {
        Vec::clear(self);
    }
    fn take<P: KeyBytes>(&mut self, node: &Node<'_, P>, at: usize) {
        self.push(node.tid(at));
    }
    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }
}

impl Sink for Entries {
    fn clear(&mut self) {
        Entries::clear(self);
    }
    fn take<P: KeyBytes>(&mut self, node: &Node<'_, P>, at: usize) {
        self.tids.push(node.tid(at));
        let start = self.keys.len();
        node.key_append(at, &mut self.keys);
        let end = self.keys.len().saturating_sub(super::node::TID).max(start);
        self.keys.truncate(end);
        self.ends.push(end);
    }
    fn is_empty(&self) -> bool {
        Entries::is_empty(self)
    }
}

/// A walk over a [`KeyRange`]. Holds nothing of the tree between calls.
pub struct Cursor {
    tree: BTree,
    direction: Direction,
    /// What is still to be read: from `start` (inclusive) to `end` (exclusive, `None` above
    /// everything).
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    done: bool,
    batch: usize,
    low: LowKey,
    /// Where the step that is under way ends.
    bound: Vec<u8>,
    /// The leaf that was read last.
    leaf: Option<LeafVersion>,
}

/// How a step over one leaf ended.
enum Reached {
    /// The range is done.
    End,
    /// More is to be read beyond the bound that was noted.
    Bound,
}

impl BTree {
    /// The tids of all entries that begin with `prefix` and are not marked, in order, into `out`,
    /// which is emptied first. A row whose versions did not all fit on a page has an entry a page,
    /// the newest one's last as a rule: files grow at their end. Returns the last leaf that was
    /// read.
    ///
    /// An interrupted call starts over, so what may have very many entries is better read with a
    /// cursor. By the time a tid is used its row may have gone and another come in its place: one
    /// that no snapshot taken before can see.
    pub fn get(&self, prefix: &[u8], out: &mut Vec<Tid>) -> Try<LeafVersion> {
        out.clear();
        let mut from = Vec::new();
        let mut high = Vec::new();
        loop {
            let (taken, goal) = (out.len(), if from.is_empty() { prefix } else { &from[..] });
            let (more, version) = self.read_leaf(Goal::Covering(goal), None, |leaf| {
                let node = leaf.node;
                out.truncate(taken);
                let mut at = node.lower_bound(goal);
                while at < node.count() && node.starts_with(at, prefix) {
                    if !node.is_marked(at) {
                        out.push(node.tid(at));
                    }
                    at += 1;
                }
                let more = at >= node.count()
                    && node.high_starts_with(prefix)
                    && node.high_into(&mut high);
                (more, LeafVersion::of(&leaf))
            })?;
            if !more {
                return Ok(version);
            }
            std::mem::swap(&mut from, &mut high);
        }
    }

    pub fn cursor(&self, range: KeyRange, direction: Direction) -> Cursor {
        let bounds = range.half_open();
        let done = bounds.is_none();
        let (start, end) = bounds.unwrap_or_default();
        Cursor {
            tree: self.clone(),
            direction,
            start,
            end,
            done,
            batch: usize::MAX,
            low: LowKey::default(),
            bound: Vec::new(),
            leaf: None,
        }
    }
}

impl Cursor {
    /// Takes at most this many entries a step, for readers that will not need a whole leaf.
    pub fn with_batch(mut self, entries: usize) -> Cursor {
        self.batch = entries.max(1);
        self
    }

    /// Turns to all keys that begin with `prefix`, from their beginning, as a new cursor over
    /// [`KeyRange::prefix`] would, in the room it has.
    pub fn seek(&mut self, prefix: &[u8]) {
        self.start.clear();
        self.start.extend_from_slice(prefix);
        let end = self.end.get_or_insert_default();
        end.clear();
        end.extend_from_slice(prefix);
        if !to_after_prefix(end) {
            self.end = None;
        }
        self.done = false;
    }

    /// Leaves out what is below `start` of what is still to be read forward.
    pub fn skip_to(&mut self, start: &[u8]) {
        if *self.start < *start {
            self.start.clear();
            self.start.extend_from_slice(start);
            self.done |= self.end.as_deref().is_some_and(|end| end <= start);
        }
    }

    /// The leaf on which the last step found what it gave.
    pub fn leaf(&self) -> Option<LeafVersion> {
        self.leaf
    }

    /// Empties `tids` and puts the next ones there, in the cursor's direction: at most a leaf's,
    /// and none where many leaves held nothing to be read. False when there are no more.
    pub fn next(&mut self, tids: &mut Vec<Tid>) -> Try<bool> {
        self.step(tids)
    }

    /// The same with keys.
    pub fn next_entries(&mut self, entries: &mut Entries) -> Try<bool> {
        self.step(entries)
    }

    /// As [`Cursor::next`], for a reader who must learn of entries that come to where it has read:
    /// `note` is given each stretch of keys (from the first up to the second, `None` standing above
    /// everything), and then the stretch is read once more. So who adds an entry there and then
    /// looks for the note finds it, or the reader finds the entry.
    pub fn next_noting(
        &mut self,
        tids: &mut Vec<Tid>,
        mut note: impl FnMut(&[u8], Option<&[u8]>),
    ) -> Try<bool> {
        tids.clear();
        for _ in 0..LEAVES_A_STEP {
            if self.done || !tids.is_empty() {
                break;
            }
            let (start, end) = (self.start.clone(), self.end.clone());
            let mut noted: Option<(Vec<u8>, Option<Vec<u8>>)> = None;
            loop {
                self.advance(tids)?;
                let (low, high) = match (self.done, self.direction) {
                    (true, _) => (start.clone(), end.clone()),
                    (false, Direction::Forward) => (start.clone(), Some(self.start.clone())),
                    (false, Direction::Backward) => {
                        (self.end.clone().unwrap_or_default(), end.clone())
                    }
                };
                let is_noted = noted.as_ref().is_some_and(|(from, to)| {
                    *from <= low
                        && match (to, &high) {
                            (None, _) => true,
                            (Some(_), None) => false,
                            (Some(to), Some(high)) => high <= to,
                        }
                });
                if is_noted {
                    break;
                }
                note(&low, high.as_deref());
                noted = Some((low, high));
                (self.start, self.end, self.done) = (start.clone(), end.clone(), false);
            }
        }
        Ok(!self.done || !tids.is_empty())
    }

    fn step(&mut self, sink: &mut impl Sink) -> Try<bool> {
        sink.clear();
        for _ in 0..LEAVES_A_STEP {
            if self.done || !sink.is_empty() {
                break;
            }
            self.advance(sink)?;
        }
        Ok(!self.done || !sink.is_empty())
    }

    /// Goes one leaf on.
    fn advance(&mut self, sink: &mut impl Sink) -> Try<()> {
        match self.direction {
            Direction::Forward => self.forward(sink),
            Direction::Backward => self.backward(sink),
        }
    }

    fn forward(&mut self, sink: &mut impl Sink) -> Try<()> {
        let Cursor {
            tree,
            start,
            end,
            batch,
            bound,
            leaf,
            ..
        } = self;
        let (reached, right) = tree.read_leaf(Goal::Covering(start), None, |found| {
            let node = found.node;
            *leaf = Some(LeafVersion::of(&found));
            sink.clear();
            let from = node.lower_bound(start);
            let to = end
                .as_deref()
                .map_or(node.count(), |end| node.lower_bound_from(from, end))
                .max(from);
            let stop = to.min(from.saturating_add(*batch));
            (from..stop)
                .filter(|at| !node.is_marked(*at))
                .for_each(|at| sink.take(&node, at));
            if stop < to {
                node.key_into(stop, bound);
                return (Reached::Bound, 0);
            }
            let beyond = end
                .as_deref()
                .is_some_and(|end| node.compare_high(end).is_ge());
            if beyond || !node.high_into(bound) {
                (Reached::End, 0)
            } else {
                (Reached::Bound, node.right())
            }
        })?;
        match reached {
            Reached::End => self.done = true,
            Reached::Bound => std::mem::swap(&mut self.start, &mut self.bound),
        }
        if right > ROOT {
            self.tree.pool.prefetch(self.tree.page_id(right));
        }
        Ok(())
    }

    fn backward(&mut self, sink: &mut impl Sink) -> Try<()> {
        let Cursor {
            tree,
            start,
            end,
            batch,
            bound,
            low,
            leaf,
            ..
        } = self;
        let read = |found: Leaf<'_>| {
            *leaf = Some(LeafVersion::of(&found));
            let Leaf { node, low, .. } = found;
            sink.clear();
            let from = node.lower_bound(start);
            let to = end
                .as_deref()
                .map_or(node.count(), |end| node.lower_bound(end))
                .max(from);
            let stop = from.max(to.saturating_sub(*batch));
            (stop..to)
                .rev()
                .filter(|at| !node.is_marked(*at))
                .for_each(|at| sink.take(&node, at));
            if stop > from {
                node.key_into(stop, bound);
                return Reached::Bound;
            }
            match low {
                Some(low) if low > &start[..] => {
                    bound.clear();
                    bound.extend_from_slice(low);
                    Reached::Bound
                }
                _ => Reached::End,
            }
        };
        match tree.read_leaf(Goal::Below(end.as_deref()), Some(low), read)? {
            Reached::End => self.done = true,
            Reached::Bound => std::mem::swap(self.end.get_or_insert_default(), &mut self.bound),
        }
        Ok(())
    }
}
