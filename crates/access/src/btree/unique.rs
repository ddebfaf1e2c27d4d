//! Insertion into a unique index.
//!
//! All who insert entries that begin with one key first latch the same leaf: the one that covers
//! the key itself. Held over check and insertion, it makes them queue. Entries with the key may go
//! on to the right of it; those leaves are latched while they are looked at, from left to right.

use throng_buffer::{ExclusiveGuard, Mtr, Try};
use throng_types::{Tid, Xid};

use super::edit;
use super::node::Node;
use super::split::Coming;
use super::{BTree, MtrPage, ROOT};
use crate::admit::admit_write;

/// What the heap says of a row that has the key already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It is not in the way.
    None,
    /// Nobody will see it again: it is not in the way, and its entry may go.
    Dead,
    /// It is.
    Live(Tid),
    /// That hangs on how this transaction ends.
    Busy(Xid),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    Done,
    /// The row that is in the way.
    Duplicate(Tid),
    /// Wait for this transaction's end, then insert again.
    Busy(Xid),
}

/// Says how the row of an entry stands that begins with the key to be inserted.
pub type Check<'c> = &'c mut dyn FnMut(Tid) -> Try<Conflict>;

impl BTree {
    /// Adds an entry unless `check` objects to one that begins with the same key.
    ///
    /// `check` is called, in tid order, for each such entry, under the leaf's latch: it may latch
    /// heap pages (they come after leaves) and must wait for nothing; its interrupts are passed on
    /// with all latches released.
    pub fn insert_unique(&self, key: &[u8], tid: Tid, xid: Xid, check: Check<'_>) -> Try<Inserted> {
        let entry = self.entry(key, tid)?;
        loop {
            admit_write(&self.pool)?;
            let first = self.leaf_exclusive(key)?;
            let mut dead = Vec::new();
            if let Some(objection) = self.check_equal(&first, key, &mut dead, check)? {
                return Ok(objection);
            }
            let first = self.forget(first, &dead, xid);
            if self.put_from(first, entry.bytes(), xid)? {
                return Ok(Inserted::Done);
            }
            self.make_room(entry.bytes(), Coming::One, xid)?;
        }
    }

    /// Asks `check` about every entry that begins with `key` and is not marked, from `first` on to
    /// the right.
    fn check_equal(
        &self,
        first: &ExclusiveGuard<'_>,
        key: &[u8],
        dead: &mut Vec<usize>,
        check: Check<'_>,
    ) -> Try<Option<Inserted>> {
        let mut next = None;
        loop {
            let node = Node::read(&**next.as_ref().unwrap_or(first));
            let mut at = node.lower_bound(key);
            while at < node.count() && node.starts_with(at, key) {
                let standing = match node.is_marked(at) {
                    true => Conflict::Dead,
                    false => check(node.tid(at))?,
                };
                match standing {
                    Conflict::None => {}
                    Conflict::Dead if next.is_none() => dead.push(at),
                    Conflict::Dead => {}
                    Conflict::Live(tid) => return Ok(Some(Inserted::Duplicate(tid))),
                    Conflict::Busy(xid) => return Ok(Some(Inserted::Busy(xid))),
                }
                at += 1;
            }
            if at < node.count() || !node.high_starts_with(key) {
                return Ok(None);
            }
            next = Some(self.right_of(next.as_ref().unwrap_or(first))?);
        }
    }

    /// Takes dead entries out, keeping the latch.
    pub(super) fn forget<'p>(
        &'p self,
        leaf: ExclusiveGuard<'p>,
        dead: &[usize],
        xid: Xid,
    ) -> ExclusiveGuard<'p> {
        if dead.is_empty() {
            return leaf;
        }
        let mut mtr = Mtr::new(&self.pool, xid);
        let page = mtr.add(leaf);
        edit::remove(&mut MtrPage::new(&mut mtr, page), dead);
        let (_, mut kept) = mtr.commit_keep();
        kept.pop().expect("the page that was added")
    }

    /// Puts `entry` on `first` or on the leaf right of it where it belongs, holding `first` all the
    /// while. False, with all latches released, when that leaf is full.
    fn put_from(&self, first: ExclusiveGuard<'_>, entry: &[u8], xid: Xid) -> Try<bool> {
        if Node::read(&*first).compare_high(entry).is_gt() {
            return Ok(self.put(first, entry, xid));
        }
        let mut leaf = self.right_of(&first)?;
        while Node::read(&*leaf).compare_high(entry).is_le() {
            leaf = self.right_of(&leaf)?;
        }
        Ok(self.put(leaf, entry, xid))
    }

    /// The next leaf. It cannot go away while this one is latched: its deletion would change this
    /// one's link.
    fn right_of(&self, leaf: &ExclusiveGuard<'_>) -> Try<ExclusiveGuard<'_>> {
        let right = Node::read(&**leaf).right();
        if right <= ROOT || right == leaf.page_id().block() {
            return Err(self.corrupted(leaf.page_id()));
        }
        let next = self.latch_exclusive(right)?;
        if Node::read(&*next).is_leaf() {
            Ok(next)
        } else {
            Err(self.corrupted(leaf.page_id()))
        }
    }
}
