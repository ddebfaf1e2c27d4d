//! Insertion of many entries in key order: those that fall between the same two neighbours go in
//! under one latch and one log record.
//!
//! ```text
//!   leaf   … 17 │ 41 …              entries 20 23 30 44
//!               ▲
//!               └── 20, 23 and 30 go here as one run; 44 begins the next
//! ```
//! A load whose keys ascend fills a leaf in a few runs where single insertions descend, latch and
//! log once for each entry.

use std::ops::Range;

use throng_buffer::{Mtr, Try};
use throng_types::{Tid, Xid};

use super::edit::{self, Room};
use super::node::{MAX_KEY, Node, tid_bytes};
use super::split::Coming;
use super::tree::Entry;
use super::unique::{Check, Inserted};
use super::{BTree, MtrPage};
use crate::admit::admit_write;

/// What became of the entries offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// The first so many are in; at least one.
    Added(usize),
    /// None is in: this row is in the first one's way.
    Duplicate(Tid),
    /// None is in: wait for this transaction's end.
    Busy(Xid),
}

impl From<Inserted> for Run {
    fn from(inserted: Inserted) -> Run {
        match inserted {
            Inserted::Done => Run::Added(1),
            Inserted::Duplicate(tid) => Run::Duplicate(tid),
            Inserted::Busy(xid) => Run::Busy(xid),
        }
    }
}

/// What became of an attempt.
enum Tried {
    /// The first so many are in.
    Added(usize),
    /// The leaf is full, and the first two go to the same place on it.
    Full,
    /// The first entry is to go in by itself: its key is there already, or the leaf must be rebuilt
    /// for it.
    Alone,
}

impl BTree {
    /// Adds the first entries of `entries`, which ascend by key, then tid: as many as go in at
    /// once. With `check`, none that begins with a key that is there already, unless `check` has no
    /// objection (see [`BTree::insert_unique`]).
    pub fn insert_run(
        &self,
        entries: &[(&[u8], Tid)],
        xid: Xid,
        check: Option<Check<'_>>,
    ) -> Try<Run> {
        let Some(&(key, tid)) = entries.first() else {
            return Ok(Run::Added(0));
        };
        while entries.len() > 1 {
            admit_write(&self.pool)?;
            match self.try_run(entries, xid, check.is_some())? {
                Tried::Added(count) => return Ok(Run::Added(count)),
                Tried::Full => {
                    self.make_room(self.entry(key, tid)?.bytes(), Coming::Run, xid)?;
                }
                Tried::Alone => break,
            }
        }
        match check {
            Some(check) => self.insert_unique(key, tid, xid, check).map(Run::from),
            None => self.insert(key, tid, xid).map(|()| Run::Added(1)),
        }
    }

    /// Two entries or more.
    fn try_run(&self, entries: &[(&[u8], Tid)], xid: Xid, unique: bool) -> Try<Tried> {
        let (key, tid) = entries[0];
        let first = self.entry(key, tid)?;
        let leaf = self.leaf_exclusive(if unique { key } else { first.bytes() })?;
        let node = Node::read(&*leaf);
        let at = node.lower_bound(first.bytes());
        // 1. An equal key lies beside the gap, if anywhere.
        let met = |key: &[u8]| {
            unique
                && (at < node.count() && node.starts_with(at, key)
                    || at > 0 && node.starts_with(at - 1, key)
                    || node.high_starts_with(key))
        };
        if met(key) || node.is_at(at, first.bytes()) {
            return Ok(Tried::Alone);
        }
        // 2. How many fall into the gap, and fit.
        let mut fit = edit::Fit::new(&node, self.limit);
        let mut bytes = Vec::new();
        let mut run: Vec<Range<usize>> = Vec::new();
        for (i, &(key, tid)) in entries.iter().enumerate() {
            let start = bytes.len();
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&tid_bytes(tid));
            let entry = &bytes[start..];
            let follows = |before: &Range<usize>| {
                bytes[before.clone()] < *entry
                    && !(unique && entries[i - 1].0 == key)
                    && node.is_below(at, entry)
                    && !met(key)
            };
            if key.len() > MAX_KEY || !run.last().is_none_or(follows) || !fit.take(entry) {
                break;
            }
            run.push(start..bytes.len());
        }
        if run.is_empty() {
            let (second, tid) = entries[1];
            let is_full = second.len() <= MAX_KEY
                && node.is_below(at, Entry::new(second, tid).bytes())
                && edit::room(&node, self.limit, at, first.bytes()) == Room::None;
            return Ok(if is_full { Tried::Full } else { Tried::Alone });
        }
        let run: Vec<&[u8]> = run.into_iter().map(|range| &bytes[range]).collect();
        // 3. In with them. Nothing can fail any more.
        let mut mtr = Mtr::new(&self.pool, xid);
        let page = mtr.add(leaf);
        edit::insert_run(&mut MtrPage::new(&mut mtr, page), at, &run);
        mtr.commit();
        Ok(Tried::Added(run.len()))
    }
}
