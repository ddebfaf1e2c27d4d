//! SERIALIZABLE by serializable snapshot isolation.
//!
//! What it promises: whatever serializable transactions commit, there is an order in which one
//! after the other would have done the same; nobody waits for that; and who runs at a lower level
//! pays one branch a statement for it.
//!
//! ```text
//!   a transaction's snapshot ──► a member of the graph                     graph.rs
//!     reads   ──► SIREAD locks: relation, page, row, stretch of keys       targets.rs, gaps.rs
//!             ──► versions met that the snapshot does not show: edges out  reads.rs
//!     writes  ──► those who have read it: edges in
//!   prepare   ──► the last look: it commits, or 40001
//!   end       ──► kept, locks and all, until those who ran beside it have ended; then forgotten.
//!                 Too many kept: the oldest lose their names               old.rs
//! ```
//!
//! It works like REPEATABLE READ, and then watches for two edges in a row. Only serializable
//! transactions take part: what others write is no edge. Neither are looks that go by no snapshot:
//! a unique index's, a foreign key's, those of definitions.
//!
//! Nothing here is durable: a crash ends every transaction, so nothing that committed has anybody
//! beside it.

mod gaps;
mod graph;
mod holders;
mod old;
#[cfg(all(test, shuttle))]
mod schedules;
mod targets;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use throng_sync::atomic::{AtomicBool, AtomicU64, Ordering};

use throng_sync::WakerSlot;
use throng_sync::lock::Mutex;
use throng_types::error::state;
use throng_types::{Csn, Error, FileId, Result, Tid, Xid};

use gaps::Gap;
pub(crate) use graph::Writer;
use graph::{End, Graph, Work};
pub use targets::ReadTarget;
use targets::{Held, Targets, Written};

/// A serializable transaction's number, in the order of their snapshots.
type Id = u64;
/// A moment, counted in prepared and completed commits of serializable transactions.
type Seq = u64;

/// What a serializable transaction has of its own. Who holds it may ask; the graph decides.
pub(crate) struct Member {
    id: Id,
    pid: u32,
    held: Mutex<Held>,
    /// It has to go, or has gone. Set with the graph latched.
    doomed: AtomicBool,
    /// It only reads, and nothing can harm it any more. Set with the graph latched.
    is_safe: AtomicBool,
    /// It has left. Set by its own session.
    over: AtomicBool,
    /// It has written something. Set by its own session.
    wrote: AtomicBool,
    /// Its commit's number, once it has one that others may see.
    csn: AtomicU64,
    /// It waits to be safe.
    waits: AtomicBool,
    waker: WakerSlot,
}

impl Member {
    fn new(id: Id, pid: u32) -> Member {
        Member {
            id,
            pid,
            held: Mutex::default(),
            doomed: AtomicBool::new(false),
            is_safe: AtomicBool::new(false),
            over: AtomicBool::new(false),
            wrote: AtomicBool::new(false),
            csn: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            waker: WakerSlot::new(),
        }
    }

    #[inline]
    pub(crate) fn is_doomed(&self) -> bool {
        // Relaxed: what must not be missed is looked at with the graph latched.
        self.doomed.load(Ordering::Relaxed)
    }
    fn csn(&self) -> Option<Csn> {
        Some(Csn(self.csn.load(Ordering::Relaxed))).filter(|csn| csn.0 != 0)
    }
    fn doom(&self) {
        self.doomed.store(true, Ordering::Relaxed);
    }
    /// Whether its reads and writes are followed. Asked by its own session.
    #[inline]
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Why a transaction has to go, in PostgreSQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    PivotDuringRead,
    PivotDuringConflictIn,
    PivotDuringWrite,
    PivotDuringCommit,
    OutToPivot(Option<Xid>),
    OutToOldPivot(Option<Xid>),
    PivotWithOutToOld(Option<Xid>),
    InFromPreparedPivot,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PIVOT: &str = "identification as a pivot";
        let named = |xid: &Option<Xid>| xid.map_or(String::new(), |xid| format!(" {xid}"));
        match self {
            Reason::PivotDuringRead => write!(f, "{PIVOT}, during conflict out checking."),
            Reason::PivotDuringConflictIn => write!(f, "{PIVOT}, during conflict in checking."),
            Reason::PivotDuringWrite => write!(f, "{PIVOT}, during write."),
            Reason::PivotDuringCommit => write!(f, "{PIVOT}, during commit attempt."),
            Reason::OutToPivot(xid) => {
                write!(f, "conflict out to pivot{}, during read.", named(xid))
            }
            Reason::OutToOldPivot(xid) => write!(f, "conflict out to old pivot{}.", named(xid)),
            Reason::PivotWithOutToOld(xid) => {
                let xid = named(xid);
                write!(
                    f,
                    "{PIVOT}, with conflict out to old committed transaction{xid}."
                )
            }
            Reason::InFromPreparedPivot => {
                f.write_str("commit attempt with conflict in from prepared pivot.")
            }
        }
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Error {
        Error::new(
            state::SERIALIZATION_FAILURE,
            "could not serialize access due to read/write dependencies among transactions",
        )
        .detail(format!("Reason code: Canceled on {reason}"))
        .hint("The transaction might succeed if retried.")
    }
}

/// An SIREAD lock, for `pg_locks`. `pid` is its session's, whose transaction may have committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLock {
    pub file: FileId,
    pub target: ReadTarget,
    pub pid: u32,
}

/// All serializable transactions.
pub(crate) struct Ssi {
    graph: Mutex<Graph>,
    targets: Targets,
    /// Whose each commit is. A latch of its own, held with no other: commits are noted within the
    /// steps that make them visible, and a snapshot that is taken with the graph latched may wait
    /// for those.
    commits: Mutex<HashMap<Csn, Id>>,
}

impl Ssi {
    pub fn new() -> Ssi {
        Ssi {
            graph: Mutex::default(),
            targets: Targets::new(),
            commits: Mutex::default(),
        }
    }

    /// A transaction takes its snapshot, as `take` does. Without a member nothing of it need be
    /// followed.
    pub fn begin<T>(
        &self,
        pid: u32,
        read_only: bool,
        xid: Option<Xid>,
        take: impl FnOnce() -> (T, Csn),
    ) -> (T, Option<Arc<Member>>) {
        // Snapshots and the graph's numbers are in one order: both are taken under its latch.
        self.graph.lock().begin(pid, read_only, xid, take)
    }

    /// The transaction's id, before anything bears it.
    pub fn note_xid(&self, member: &Member, xid: Xid) {
        if !member.is_over() {
            self.graph.lock().note_xid(member.id, xid);
        }
    }

    /// The transaction's commit, before anybody sees it.
    pub fn note_csn(&self, member: &Member, csn: Csn) {
        if !member.is_over() {
            member.csn.store(csn.0, Ordering::Relaxed);
            self.commits.lock().insert(csn, member.id);
        }
    }

    /// The last moment at which the commit can be refused: 40001.
    pub fn prepare(&self, member: &Member) -> Result<(), Reason> {
        if member.is_over() {
            return Ok(());
        }
        self.graph.lock().prepare(member.id)
    }

    pub fn committed(&self, member: &Member) {
        self.end(member, End::Committed);
    }

    pub fn rolled_back(&self, member: &Member) {
        self.end(member, End::RolledBack);
    }

    fn end(&self, member: &Member, end: End) {
        if member.over.swap(true, Ordering::Relaxed) {
            return;
        }
        let wrote = member.wrote.load(Ordering::Relaxed);
        let work = self.graph.lock().finish(member.id, end, wrote);
        self.run(work);
    }

    fn run(&self, work: Work) {
        for member in work.gone.iter().chain(&work.emptied) {
            self.targets.give_back(member, None);
        }
        for (member, seq) in &work.summarised {
            self.targets.give_back(member, Some(*seq));
        }
        if let Some(through) = work.old_through {
            self.targets.forget_old(through);
        }
        if !work.gone.is_empty() || !work.summarised.is_empty() {
            let mut graph = self.graph.lock();
            work.gone.iter().for_each(|m| graph.forget(m.id));
            work.summarised
                .iter()
                .for_each(|(m, _)| graph.summarise(m.id));
            drop(graph);
            // After they are found among the old ones.
            let left = work
                .gone
                .iter()
                .chain(work.summarised.iter().map(|(m, _)| m));
            let mut commits = self.commits.lock();
            left.filter_map(|m| m.csn()).for_each(|csn| {
                commits.remove(&csn);
            });
        }
        for member in &work.decided {
            member.waker.wake();
        }
    }

    /// Whether the transaction's reads are still to be followed; one that has become safe leaves
    /// here.
    #[inline]
    pub(crate) fn follows(&self, member: &Member) -> bool {
        if member.is_over() {
            return false;
        }
        if member.is_safe.load(Ordering::Acquire) {
            self.end(member, End::Safe);
            return false;
        }
        true
    }

    /// A table, or all keys of an index, is going to be read.
    pub(crate) fn reads_relation(&self, member: &Member, file: FileId) {
        self.targets.relation(member, file);
    }

    /// A version of a row has been read. Whether that is new: then it is to be looked at again.
    pub(crate) fn reads_row(&self, member: &Member, file: FileId, tid: Tid) -> bool {
        self.targets.row(member, file, tid)
    }

    /// A stretch of an index's keys has been read, and is to be read once more.
    pub(crate) fn reads_gap(&self, member: &Member, file: FileId, gap: Gap) {
        self.targets.gap(member, file, gap);
    }

    /// Waits until it is known whether a snapshot is safe, and answers that. To be polled by the
    /// member's session.
    pub fn poll_safe(&self, member: &Member, cx: &mut Context<'_>) -> Poll<bool> {
        member.waits.store(true, Ordering::Relaxed);
        // Registered first, looked at after: a decision in between wakes us again.
        member.waker.register(cx.waker());
        let Some(safe) = self.graph.lock().is_safe(member.id) else {
            return Poll::Pending;
        };
        member.waits.store(false, Ordering::Relaxed);
        self.end(member, if safe { End::Safe } else { End::RolledBack });
        Poll::Ready(safe)
    }

    /// Whom a session waits for that waits for a safe snapshot.
    pub fn blocking(&self, pid: u32) -> Vec<u32> {
        self.graph.lock().blocking(pid)
    }

    pub(crate) fn conflict_out(&self, member: &Member, writer: Writer) -> Result<(), Reason> {
        let named = match writer {
            Writer::Running(_) => None,
            Writer::Committed(csn) => self.commits.lock().get(&csn).copied(),
        };
        self.graph.lock().conflict_out(member.id, writer, named)
    }

    /// `member` has written: those who had read it have an edge to it.
    fn wrote(&self, member: &Member, file: FileId, what: Written<'_>) -> Result<(), Reason> {
        if member.is_over() {
            return Ok(());
        }
        if member.is_doomed() {
            return Err(Reason::PivotDuringConflictIn);
        }
        member.wrote.store(true, Ordering::Relaxed);
        let conflict = |readers: &holders::Holders| {
            if !readers.has_others(member.id) {
                return Ok(());
            }
            let mut graph = self.graph.lock();
            for reader in readers.ids() {
                graph.conflict_in(member.id, *reader)?;
            }
            match readers.old() {
                0 => Ok(()),
                seq => graph.conflict_in_of_old(member.id, seq),
            }
        };
        self.targets.readers(file, what, conflict).unwrap_or(Ok(()))
    }

    /// A row was added to a table.
    pub fn wrote_new_row(&self, member: &Member, file: FileId) -> Result<(), Reason> {
        self.wrote(member, file, Written::NewRow)
    }

    /// A version was replaced or deleted.
    pub fn wrote_row(
        &self,
        member: &Member,
        file: FileId,
        tid: throng_types::Tid,
    ) -> Result<(), Reason> {
        self.wrote(member, file, Written::Row(tid))
    }

    /// Entries from `start` up to `end` were, or would have been, added to an index.
    pub fn wrote_keys(
        &self,
        member: &Member,
        file: FileId,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> Result<(), Reason> {
        self.wrote(member, file, Written::Keys(start, end))
    }

    /// A whole table was emptied or dropped.
    pub fn wrote_all(&self, member: &Member, file: FileId) -> Result<(), Reason> {
        self.wrote(member, file, Written::All)
    }

    /// Whether anybody has read anything of a file.
    pub fn is_read(&self, file: FileId) -> bool {
        let found = self
            .targets
            .readers(file, Written::All, |readers| !readers.is_empty());
        found.unwrap_or(false)
    }

    /// A relation's rows have moved to another file: who had read any of it has read the whole of
    /// that one.
    pub fn moved(&self, old: FileId, new: FileId) {
        let found = self
            .targets
            .readers(old, Written::All, holders::Holders::clone);
        let Some(readers) = found.filter(|readers| !readers.is_empty()) else {
            return;
        };
        if readers.old() > 0 {
            self.targets.add_old(new, readers.old());
        }
        for id in readers.ids() {
            let member = self.graph.lock().member(*id);
            // One that has left meanwhile had nobody beside it.
            if let Some(member) = member {
                self.targets.relation(&member, new);
            }
        }
    }

    /// All SIREAD locks of those told apart.
    pub fn list(&self) -> Vec<ReadLock> {
        let members = self.graph.lock().members();
        let mut rows = Vec::new();
        for member in members {
            let pid = member.pid;
            Targets::list(&member, |file, target| {
                rows.push(ReadLock { file, target, pid });
            });
        }
        rows
    }
}
