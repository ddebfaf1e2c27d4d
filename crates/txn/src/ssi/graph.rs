//! Who conflicts with whom, and who has to give way.
//!
//! ```text
//!   Tin ──rw──► Tpivot ──rw──► Tout         a dangerous structure, if Tout committed first
//! ```
//!
//! An edge R → W says: W wrote what R read in the state before, and they ran at the same time.
//! Every cycle among serializable transactions has two such edges in a row, the last one's target
//! committing first (Cahill, Röhm, Fekete, "Serializable Isolation for Snapshot Databases", SIGMOD
//! 2008; Ports, Grittner, "Serializable Snapshot Isolation in PostgreSQL", VLDB 2012). So two in a
//! row are not let happen: whoever finds them ends one of the three, the pivot where that can be,
//! at the moment and with the words that PostgreSQL has.
//!
//! What need not be feared: Tin committed before Tout; Tpivot committed before Tout; Tin only reads
//! and its snapshot is from before Tout's commit. A transaction that only reads is *safe* once all
//! writers that ran beside its beginning have ended without an edge to one that had committed
//! before it began: it is then out of the graph and locks nothing.
//!
//! Time here is a counter of its own: a transaction takes a number when it may commit (`prepared`)
//! and one when it has (`committed`).
//!
//! How long one is kept: until all that ran beside it have ended. Of those that have committed
//! [`MOST_FINISHED`] are kept; of older ones remain their locks, without a name, and for each the
//! first commit it had an edge to ([`OldPivots`]).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use throng_sync::atomic::Ordering;

use throng_types::{Csn, Xid};

use super::old::OldPivots;
use super::{Id, Member, Reason, Seq};

/// Committed transactions kept by name: as many as PostgreSQL keeps with a hundred connections.
const MOST_FINISHED: usize = if cfg!(test) { 3 } else { 1000 };

/// How another transaction that wrote something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    Running(Xid),
    Committed(Csn),
}

/// How a transaction leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Committed,
    RolledBack,
    /// It only reads and is known to be safe: it goes on, but not in here.
    Safe,
}

struct Node {
    member: Arc<Member>,
    /// Its snapshot sees commits up to here.
    snapshot: Csn,
    xid: Option<Xid>,
    /// The last number given out when its snapshot was taken.
    began: Seq,
    prepared: Option<Seq>,
    committed: Option<Seq>,
    /// As it said at its beginning.
    declared_read_only: bool,
    /// That, or it committed without having written.
    read_only: bool,
    /// When it committed: the first commit among those it has an edge to that had committed before
    /// it.
    first_out: Option<Seq>,
    /// It has an edge to, or from, one that is not told apart any more.
    old_out: bool,
    old_in: bool,
    /// Edges to others, and from others.
    out: Vec<Id>,
    into: Vec<Id>,
    /// For one that declared to read only: the writers on whose end hangs whether it is safe. For
    /// others: such readers.
    undecided: Vec<Id>,
    /// One of those has ended in a way that may not be safe.
    is_unsafe: bool,
}

/// The reader at an edge's beginning, as the rules need it.
struct Reader<'a> {
    committed: Option<Seq>,
    read_only: bool,
    began: Seq,
    old_in: bool,
    into: &'a [Id],
}

/// What is to be done once the graph is not latched any more.
#[derive(Default)]
pub(super) struct Work {
    /// Their locks go, then they.
    pub gone: Vec<Arc<Member>>,
    /// Their locks go.
    pub emptied: Vec<Arc<Member>>,
    /// Their locks lose their name, then they go.
    pub summarised: Vec<(Arc<Member>, Seq)>,
    /// To be told that their snapshot is safe, or is not.
    pub decided: Vec<Arc<Member>>,
    /// Locks without a name go that were of commits up to here.
    pub old_through: Option<Seq>,
}

#[derive(Default)]
pub(super) struct Graph {
    last_id: Id,
    last_seq: Seq,
    nodes: HashMap<Id, Node>,
    by_xid: HashMap<Xid, Id>,
    /// Those that have not ended, in the order of their snapshots.
    active: BTreeMap<Id, Seq>,
    /// Of these, those that may write.
    writers: usize,
    /// Those that have committed, in that order.
    finished: VecDeque<Id>,
    /// When the last writer had ended with no other left: what had committed by then has no writer
    /// beside it.
    clear_through: Seq,
    cleared_through: Seq,
    old: OldPivots,
    /// Locks without a name may be there.
    any_old_locks: bool,
}

impl Graph {
    /// A transaction takes its snapshot. None: it only reads, and nothing it might meet can harm
    /// it.
    pub fn begin<T>(
        &mut self,
        pid: u32,
        read_only: bool,
        xid: Option<Xid>,
        take: impl FnOnce() -> (T, Csn),
    ) -> (T, Option<Arc<Member>>) {
        let (taken, snapshot) = take();
        let mut undecided = Vec::new();
        if read_only {
            undecided.extend(self.active.keys().copied().filter(|id| {
                let node = &self.nodes[id];
                !node.declared_read_only && !node.member.is_doomed()
            }));
            if undecided.is_empty() {
                return (taken, None);
            }
        } else {
            self.writers += 1;
        }
        self.last_id += 1;
        let id = self.last_id;
        for writer in &undecided {
            self.node(*writer).undecided.push(id);
        }
        let member = Arc::new(Member::new(id, pid));
        self.nodes.insert(
            id,
            Node {
                member: member.clone(),
                snapshot,
                xid,
                began: self.last_seq,
                prepared: None,
                committed: None,
                declared_read_only: read_only,
                read_only,
                first_out: None,
                old_out: false,
                old_in: false,
                out: Vec::new(),
                into: Vec::new(),
                undecided,
                is_unsafe: false,
            },
        );
        self.active.insert(id, self.last_seq);
        if let Some(xid) = xid {
            self.by_xid.insert(xid, id);
        }
        (taken, Some(member))
    }

    fn node(&mut self, id: Id) -> &mut Node {
        self.nodes
            .get_mut(&id)
            .expect("a transaction that has not left is in the graph")
    }

    pub fn note_xid(&mut self, id: Id, xid: Xid) {
        self.node(id).xid = Some(xid);
        self.by_xid.insert(xid, id);
    }

    pub fn members(&self) -> Vec<Arc<Member>> {
        self.nodes.values().map(|n| n.member.clone()).collect()
    }

    pub fn member(&self, id: Id) -> Option<Arc<Member>> {
        self.nodes.get(&id).map(|n| n.member.clone())
    }

    /// Whether a snapshot that is waited for is safe; None: not decided.
    pub fn is_safe(&self, id: Id) -> Option<bool> {
        let node = &self.nodes[&id];
        (node.is_unsafe || node.undecided.is_empty()).then_some(!node.is_unsafe)
    }

    /// The sessions on whose end hangs whether `pid`'s snapshot is safe, if it waits for that.
    pub fn blocking(&self, pid: u32) -> Vec<u32> {
        let waits = |n: &&Node| n.member.pid == pid && n.member.waits.load(Ordering::Relaxed);
        let waiting = self.nodes.values().find(waits);
        let writers = waiting.map_or(&[][..], |n| &n.undecided);
        writers.iter().map(|id| self.nodes[id].member.pid).collect()
    }

    /// `me` has met a version that `writer` made or ended and that is not in its snapshot; `named`:
    /// whose that commit was.
    pub fn conflict_out(
        &mut self,
        me: Id,
        writer: Writer,
        named: Option<Id>,
    ) -> Result<(), Reason> {
        let found = match writer {
            Writer::Running(xid) => self.by_xid.get(&xid).copied(),
            Writer::Committed(_) => named.filter(|id| self.nodes.contains_key(id)),
        };
        let Some(writer) = found else {
            return match writer {
                Writer::Running(_) => Ok(()),
                Writer::Committed(csn) => self.conflict_out_to_old(me, csn),
            };
        };
        let (mine, other) = (&self.nodes[&me], &self.nodes[&writer]);
        if writer == me || other.member.is_doomed() {
            return Ok(());
        }
        if other.old_out {
            // Tout committed first, and nobody knows whether before my snapshot.
            if other.prepared.is_some() {
                return Err(Reason::OutToOldPivot(None));
            }
            other.member.doom();
            return Ok(());
        }
        let appears_later = mine.read_only
            && other.committed.is_some()
            && other.first_out.is_none_or(|first| mine.began < first);
        if appears_later || mine.out.contains(&writer) {
            return Ok(());
        }
        self.check(&reader(mine), writer, me)?;
        self.node(me).out.push(writer);
        self.node(writer).into.push(me);
        Ok(())
    }

    fn conflict_out_to_old(&mut self, me: Id, csn: Csn) -> Result<(), Reason> {
        let Some(pivot) = self.old.get(csn) else {
            // It was not serializable, or it ended before anybody who runs began.
            return Ok(());
        };
        let mine = self.node(me);
        if let Some(first) = pivot.first_out
            && (!mine.read_only || first <= mine.began)
        {
            return Err(Reason::OutToOldPivot(pivot.xid));
        }
        if mine.old_in || !mine.into.is_empty() {
            return Err(Reason::PivotWithOutToOld(pivot.xid));
        }
        mine.old_out = true;
        Ok(())
    }

    /// `me` writes what `reader` has read.
    pub fn conflict_in(&mut self, me: Id, reader_id: Id) -> Result<(), Reason> {
        let began = self.nodes[&me].began;
        let Some(other) = self.nodes.get(&reader_id) else {
            return Ok(());
        };
        let is_over = other.committed.is_some_and(|seq| seq <= began);
        if reader_id == me || other.member.is_doomed() || is_over || other.out.contains(&me) {
            return Ok(());
        }
        self.check(&reader(other), me, me)?;
        self.node(reader_id).out.push(me);
        self.node(me).into.push(reader_id);
        Ok(())
    }

    /// `me` writes what somebody not told apart any more has read, who committed by `seq`.
    pub fn conflict_in_of_old(&mut self, me: Id, seq: Seq) -> Result<(), Reason> {
        if seq <= self.nodes[&me].began {
            return Ok(());
        }
        let old = Reader {
            committed: Some(seq),
            read_only: false,
            began: 0,
            old_in: false,
            into: &[],
        };
        self.check(&old, me, me)?;
        self.node(me).old_in = true;
        Ok(())
    }

    /// What the edge from `reader` to `writer` completes; `me` is one of them. An error: I have to
    /// go. Else the writer may have to, and learns of it when it looks.
    fn check(&self, reader: &Reader<'_>, writer: Id, me: Id) -> Result<(), Reason> {
        if !self.is_dangerous(reader, writer) {
            return Ok(());
        }
        let other = &self.nodes[&writer];
        if writer == me {
            return Err(Reason::PivotDuringWrite);
        }
        if other.prepared.is_some() {
            return Err(Reason::OutToPivot(other.xid));
        }
        other.member.doom();
        Ok(())
    }

    fn is_dangerous(&self, reader: &Reader<'_>, writer: Id) -> bool {
        let w = &self.nodes[&writer];
        // 1. The writer has committed, and somebody it has an edge to before it.
        if w.committed.is_some() && w.first_out.is_some() || w.old_out {
            return true;
        }
        // 2. The writer is the pivot: somebody it has an edge to is the first to commit.
        let is_first = |out: &Id| {
            let t = &self.nodes[out];
            t.prepared.is_some_and(|seq| {
                reader.committed.is_none_or(|r| seq <= r)
                    && w.committed.is_none_or(|w| seq <= w)
                    && (!reader.read_only || seq <= reader.began)
            })
        };
        if w.out.iter().any(is_first) {
            return true;
        }
        // 3. The reader is the pivot, and the writer the first to commit.
        let Some(written) = w.prepared.filter(|_| !reader.read_only) else {
            return false;
        };
        let is_later = |into: &Id| {
            let t = &self.nodes[into];
            !t.member.is_doomed()
                && t.committed.is_none_or(|seq| seq >= written)
                && (!t.read_only || t.began >= written)
        };
        reader.old_in || reader.into.iter().any(is_later)
    }

    /// The last look before a commit: pivots whose third transaction I am have to go.
    pub fn prepare(&mut self, me: Id) -> Result<(), Reason> {
        let mine = &self.nodes[&me];
        if mine.member.is_doomed() {
            return Err(Reason::PivotDuringCommit);
        }
        for near in &mine.into {
            let pivot = &self.nodes[near];
            if pivot.committed.is_some() || pivot.member.is_doomed() {
                continue;
            }
            let is_dangerous = pivot.into.iter().any(|far| {
                let far_node = &self.nodes[far];
                *far == me
                    || far_node.committed.is_none()
                        && !far_node.read_only
                        && !far_node.member.is_doomed()
            });
            if is_dangerous {
                if pivot.prepared.is_some() {
                    return Err(Reason::InFromPreparedPivot);
                }
                pivot.member.doom();
            }
        }
        self.last_seq += 1;
        let seq = self.last_seq;
        self.node(me).prepared = Some(seq);
        Ok(())
    }

    /// A transaction ends.
    pub fn finish(&mut self, me: Id, end: End, wrote: bool) -> Work {
        let mut work = Work::default();
        let commits = end == End::Committed;
        if commits {
            self.last_seq += 1;
        }
        let last_seq = self.last_seq;
        let node = self.node(me);
        if commits {
            node.committed = Some(last_seq);
            node.read_only |= !wrote;
        } else {
            node.member.doom();
            node.prepared = None;
        }
        let (declared_read_only, member) = (node.declared_read_only, node.member.clone());
        if commits && !node.read_only && node.old_out {
            // Nobody knows with whom: as early as can be.
            node.first_out = Some(0);
        }
        self.end_edges(me, commits);
        self.decide(me, commits && wrote, &mut work);
        if !declared_read_only {
            self.writers -= 1;
            if self.writers == 0 {
                self.clear_through = last_seq;
            }
        }
        let was_oldest = self.active.keys().next() == Some(&me);
        self.active.remove(&me);
        if commits {
            self.finished.push_back(me);
        } else {
            work.gone.push(member);
        }
        if was_oldest || self.cleared_through < self.clear_through {
            self.clear(&mut work);
        }
        while self.finished.len() > MOST_FINISHED {
            let oldest = self.finished.pop_front().expect("more than none");
            let node = &self.nodes[&oldest];
            let seq = node.committed.unwrap_or(last_seq);
            work.summarised.push((node.member.clone(), seq));
            self.any_old_locks = true;
        }
        work
    }

    /// Edges that can be in no dangerous structure any more go.
    fn end_edges(&mut self, me: Id, commits: bool) {
        let node = self.node(me);
        let read_only = node.read_only;
        let (out, into) = (
            std::mem::take(&mut node.out),
            std::mem::take(&mut node.into),
        );
        let (mut kept_out, mut first_out) = (Vec::new(), node.first_out);
        for other in out {
            let last_seq = self.last_seq;
            let t = self.node(other);
            if commits && !read_only && t.committed.is_some() {
                let seq = t.prepared.unwrap_or(0);
                first_out = Some(first_out.map_or(seq, |first| first.min(seq)));
            }
            if !commits || t.committed.is_some() || t.began >= last_seq {
                t.into.retain(|id| *id != me);
            } else {
                kept_out.push(other);
            }
        }
        let mut kept_into = Vec::new();
        for other in into {
            let t = self.node(other);
            if !commits || t.committed.is_some() || t.read_only {
                t.out.retain(|id| *id != me);
            } else {
                kept_into.push(other);
            }
        }
        let node = self.node(me);
        (node.out, node.into, node.first_out) = (kept_out, kept_into, first_out);
    }

    /// What this end says of the snapshots of those that only read.
    fn decide(&mut self, me: Id, wrote: bool, work: &mut Work) {
        let node = self.node(me);
        let (declared_read_only, first_out) = (node.declared_read_only, node.first_out);
        for other in std::mem::take(&mut node.undecided) {
            let t = self.node(other);
            t.undecided.retain(|id| *id != me);
            if declared_read_only {
                continue;
            }
            if wrote && first_out.is_some_and(|first| first <= t.began) {
                t.is_unsafe = true;
                for writer in std::mem::take(&mut t.undecided) {
                    self.node(writer).undecided.retain(|id| *id != other);
                }
            }
            let t = self.node(other);
            if t.undecided.is_empty() {
                if !t.is_unsafe {
                    t.member.is_safe.store(true, Ordering::Release);
                }
                work.decided.push(t.member.clone());
            }
        }
    }

    /// Lets go of what has committed and has nobody beside it any more.
    fn clear(&mut self, work: &mut Work) {
        let oldest = self
            .active
            .first_key_value()
            .map(|(id, began)| (*id, *began));
        while let Some(&id) = self.finished.front() {
            let node = &self.nodes[&id];
            if oldest.is_some_and(|(_, began)| node.committed > Some(began)) {
                break;
            }
            work.gone.push(node.member.clone());
            self.finished.pop_front();
        }
        if self.cleared_through < self.clear_through {
            self.clear_of_writers(work);
        }
        match oldest {
            None => self.old = OldPivots::default(),
            Some((id, _)) => self.old.forget(self.nodes[&id].snapshot),
        }
        if self.any_old_locks {
            let began = oldest.map_or(self.last_seq, |(_, began)| began);
            self.any_old_locks = oldest.is_some();
            work.old_through = Some(began.max(self.clear_through));
        }
    }

    /// Those that run beside these only read: what these have read harms nobody, nor who has an
    /// edge to them.
    fn clear_of_writers(&mut self, work: &mut Work) {
        let (from, through) = (self.cleared_through, self.clear_through);
        let finished = std::mem::take(&mut self.finished);
        for id in finished {
            let node = self.node(id);
            let is_meant = node
                .committed
                .is_some_and(|seq| seq > from && seq <= through);
            let (member, read_only) = (node.member.clone(), node.read_only);
            if is_meant && read_only {
                work.gone.push(member);
                continue;
            }
            self.finished.push_back(id);
            if is_meant {
                for other in std::mem::take(&mut self.node(id).into) {
                    self.node(other).out.retain(|t| *t != id);
                }
                work.emptied.push(member);
            }
        }
        self.cleared_through = through;
    }

    /// Its locks are gone: it leaves.
    pub fn forget(&mut self, id: Id) {
        self.remove(id, |_| {}, |_| {});
    }

    /// Its locks have lost their name: what is left of it is that it was there.
    pub fn summarise(&mut self, id: Id) {
        let node = self.remove(id, |t| t.old_in = true, |t| t.old_out = true);
        if let Some(csn) = node.member.csn().filter(|_| !node.read_only) {
            self.old.add(csn, node.xid, node.first_out);
        }
    }

    fn remove(&mut self, id: Id, to: impl Fn(&mut Node), from: impl Fn(&mut Node)) -> Node {
        let node = self.nodes.remove(&id).expect("it leaves once");
        for other in &node.out {
            let t = self.node(*other);
            t.into.retain(|t| *t != id);
            to(t);
        }
        for other in &node.into {
            let t = self.node(*other);
            t.out.retain(|t| *t != id);
            from(t);
        }
        if let Some(xid) = node.xid {
            self.by_xid.remove(&xid);
        }
        node
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.by_xid.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
}

fn reader(node: &Node) -> Reader<'_> {
    Reader {
        committed: node.committed,
        read_only: node.read_only,
        began: node.began,
        old_in: node.old_in,
        into: &node.into,
    }
}
