//! Changing a row that others may be changing: attempt, wait, follow, answer.
//!
//! ```text
//!   attempt ──► Done ─────────────────────────────────────────────► Done
//!      ▲ │ ├──► Busy(xid) ──► a place in the row's queue ──► wait for xid to end ──► attempt again
//!      │ │ ├──► Updated(next) ──► lock the newest version the same way ──► Updated: check it, then come again
//!      │ │ ├──► Deleted ───────────────────────────────────────────► Deleted
//!      │ │ └──► Moved: 40001, for what it has become is in another relation
//!      └─┘ (a page was not there)                                   REPEATABLE READ and SERIALIZABLE: 40001 for the last two
//! ```
//!
//! The queue is what keeps a crowd that wants one row from being woken by every commit: only its
//! first waits for the running transaction; the rest wait for the first. Its place is the caller's
//! [`RowTurn`], kept from the wait through the check of the newer version until the row is changed,
//! so that the next one is let forward when there is again something to wait for. Queues are named
//! by the chain's root, which heap-only updates keep. Where an update has left the root, the
//! follower takes its place at the new one before it leaves the old.
//!
//! A statement that finds its one row by a unique key lets go of its snapshot while it waits
//! ([`RowTurn::letting_go`]). What its version has become it then does not follow from version to
//! version, which may be gone: it looks for the row anew, by the key, in its place at the head of
//! the queue.

use throng_access::heap::tuple::TupleHeader;
use throng_access::heap::{NewVersion, VersionRef};
use throng_access::{Change, Heap, RowLockMode, TxContext};
use throng_buffer::{Try, retry};
use throng_types::error::state;
use throng_types::{Error, FileId, Result, Tid, Xid};

use crate::lock::{LockMode, LockTag, WaitPolicy};
use crate::lock_manager::QueuePlace;
use crate::snapshot::Snapshot;
use crate::txn::Txn;

/// Which version of which row: the version's place, and that of the slot its index entries name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef {
    pub tid: Tid,
    pub root: Tid,
}

/// What became of changing or locking a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome<T> {
    Done(T),
    /// READ COMMITTED: others have replaced the version. This is the newest one, and it is locked
    /// for us in the mode asked for. If it still meets the statement's conditions, compute from it
    /// and come again with it (a lock is had already).
    Updated(RowRef),
    /// READ COMMITTED: others have replaced the version while the turn was [without its
    /// snapshot](RowTurn::letting_go). The row is to be looked for anew, with [a new
    /// one](RowTurn::renew).
    LookAnew,
    /// READ COMMITTED: others have deleted the row.
    Deleted,
    /// This command has changed the row already, or a later one of the transaction has.
    SelfModified,
    /// Another holds the row, and the policy is not to wait.
    Busy,
}

impl<T> RowOutcome<T> {
    /// What was done, or what came of it instead.
    pub fn done<U>(self) -> std::result::Result<T, RowOutcome<U>> {
        Err(match self {
            RowOutcome::Done(done) => return Ok(done),
            RowOutcome::Updated(newest) => RowOutcome::Updated(newest),
            RowOutcome::LookAnew => RowOutcome::LookAnew,
            RowOutcome::Deleted => RowOutcome::Deleted,
            RowOutcome::SelfModified => RowOutcome::SelfModified,
            RowOutcome::Busy => RowOutcome::Busy,
        })
    }

    /// The same with what was done put in another way.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> RowOutcome<U> {
        match self.done() {
            Ok(done) => RowOutcome::Done(f(done)),
            Err(instead) => instead,
        }
    }
}

/// A place in a row's queue, kept by the caller from call to call until it is through with the row.
#[derive(Default)]
pub struct RowTurn<'s> {
    place: Option<(LockTag, QueuePlace)>,
    /// What the statement lets go of when it has to wait.
    snapshot: Option<&'s Snapshot>,
    /// It has let go of it.
    has_let_go: bool,
    /// Who made the version that was waited for without it.
    made_by: Option<Xid>,
}

impl<'s> RowTurn<'s> {
    /// Of a statement of READ COMMITTED that reads nothing but one row, by a unique key.
    pub fn letting_go(snapshot: &'s Snapshot) -> RowTurn<'s> {
        RowTurn {
            snapshot: Some(snapshot).filter(|snapshot| snapshot.may_go()),
            ..RowTurn::default()
        }
    }

    /// The statement begins anew, with a snapshot of this moment.
    pub fn renew(&mut self) {
        (self.has_let_go, self.made_by) = (false, None);
        if let Some(snapshot) = self.snapshot {
            snapshot.renew();
        }
    }

    /// Lets go of the snapshot, if that is the statement's wish; whether it is.
    fn let_go(&mut self) -> bool {
        if let Some(snapshot) = self.snapshot {
            snapshot.let_go();
            self.has_let_go = true;
        }
        self.has_let_go
    }

    /// Before a version is waited for: lets go of what keeps it, having noted what tells it from
    /// others.
    async fn wait_without(&mut self, heap: &Heap, tid: Tid) -> Result<()> {
        if self.snapshot.is_some() && !self.has_let_go {
            self.made_by = retry(|| heap.maker_of(tid)).await?;
            self.let_go();
        }
        Ok(())
    }

    /// Queues for the row, unless that place is held already.
    async fn take(&mut self, txn: &Txn, file: FileId, root: Tid, mode: RowLockMode) -> Result<()> {
        let tag = LockTag::Tuple { file, tid: root };
        if self.place.as_ref().is_none_or(|(held, _)| *held != tag) {
            // The old place goes when the new one is held.
            let place = txn.session().queue_for(tag, queue_mode(mode)).await?;
            self.place = Some((tag, place));
        }
        Ok(())
    }
}

/// Who share a row need not queue behind each other.
fn queue_mode(mode: RowLockMode) -> LockMode {
    match mode {
        RowLockMode::KeyShare => LockMode::AccessShare,
        RowLockMode::Share => LockMode::RowShare,
        RowLockMode::NoKeyUpdate => LockMode::Exclusive,
        RowLockMode::Update => LockMode::AccessExclusive,
    }
}

/// Replaces a row. `mode` is [`RowLockMode::NoKeyUpdate`] if no key column changes, else
/// [`RowLockMode::Update`]; `hot` says that no indexed column does.
///
/// # Errors
/// 40001 under REPEATABLE READ and SERIALIZABLE when others were first; 40P01, 55P03 and 57014 from
/// waiting; those of [`Heap::update`].
pub async fn update_row(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    new: &[u8],
    mode: RowLockMode,
    hot: bool,
    turn: &mut RowTurn<'_>,
) -> Result<RowOutcome<NewVersion>> {
    let outcome = change(txn, heap, row, mode, WaitPolicy::Block, turn, |which| {
        heap.update(txn, which, new, mode, hot)
    })
    .await?;
    report(txn, heap, row, outcome)
}

/// Deletes a row. Errors as for [`update_row`].
pub async fn delete_row(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    turn: &mut RowTurn<'_>,
) -> Result<RowOutcome<()>> {
    let outcome = change(
        txn,
        heap,
        row,
        RowLockMode::Update,
        WaitPolicy::Block,
        turn,
        |which| heap.delete(txn, which),
    )
    .await?;
    report(txn, heap, row, outcome)
}

/// Takes a row out of its relation, for it goes on in another one. Errors as for [`update_row`].
pub async fn take_out_row(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    turn: &mut RowTurn<'_>,
) -> Result<RowOutcome<()>> {
    let (mode, policy) = (RowLockMode::Update, WaitPolicy::Block);
    let outcome = change(txn, heap, row, mode, policy, turn, |which| {
        heap.take_out(txn, which)
    })
    .await?;
    report(txn, heap, row, outcome)
}

/// Serializable transactions learn of what was written, after it was.
fn report<T>(txn: &Txn, heap: &Heap, row: RowRef, outcome: RowOutcome<T>) -> Result<RowOutcome<T>> {
    match outcome {
        RowOutcome::Done(_) => txn.wrote_row(heap.file(), row.tid)?,
        RowOutcome::Deleted if txn.isolation().keeps_snapshot() => return Err(too_late("delete")),
        _ => {}
    }
    Ok(outcome)
}

/// Locks a row: SELECT FOR UPDATE and its kin. Errors as for [`update_row`]; NOWAIT's and SKIP
/// LOCKED's part is [`RowOutcome::Busy`].
pub async fn lock_row(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    mode: RowLockMode,
    policy: WaitPolicy,
    turn: &mut RowTurn<'_>,
) -> Result<RowOutcome<()>> {
    // A row that is gone is no other to who only wants to lock it than one that has changed, as in
    // PostgreSQL.
    late_by(
        "update",
        txn,
        lock_where(txn, heap, row, mode, policy, turn, |change| change).await?,
    )
}

/// As [`lock_row`], waiting, for who is about to change or delete the row and is told that it is
/// gone.
pub async fn lock_row_to_change(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    mode: RowLockMode,
    turn: &mut RowTurn<'_>,
) -> Result<RowOutcome<()>> {
    let policy = WaitPolicy::Block;
    late_by(
        "delete",
        txn,
        lock_where(txn, heap, row, mode, policy, turn, |change| change).await?,
    )
}

/// 40001 for a row that is gone of a snapshot that is kept.
fn late_by(what: &str, txn: &Txn, outcome: RowOutcome<()>) -> Result<RowOutcome<()>> {
    match outcome {
        RowOutcome::Deleted if txn.isolation().keeps_snapshot() => Err(too_late(what)),
        outcome => Ok(outcome),
    }
}

/// As [`lock_row`], waiting, for who looks for a key: a row that goes on in another relation is
/// gone from this one.
pub async fn lock_row_here(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    mode: RowLockMode,
    turn: &mut RowTurn<'_>,
) -> Result<RowOutcome<()>> {
    let keeps_snapshot = txn.isolation().keeps_snapshot();
    let gone = |change| match change {
        Change::Moved if !keeps_snapshot => Change::Deleted,
        other => other,
    };
    late_by(
        "update",
        txn,
        lock_where(txn, heap, row, mode, WaitPolicy::Block, turn, gone).await?,
    )
}

async fn lock_where(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    mode: RowLockMode,
    policy: WaitPolicy,
    turn: &mut RowTurn<'_>,
    taken_for: impl Fn(Change<()>) -> Change<()>,
) -> Result<RowOutcome<()>> {
    change(txn, heap, row, mode, policy, turn, |which| {
        // A cursor sees what was there when it was declared, also where a later command of the
        // transaction has changed it.
        Ok(match taken_for(heap.lock(txn, which, mode)?) {
            Change::Invisible => Change::SelfModified,
            other => other,
        })
    })
    .await
}

async fn change<T>(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    mode: RowLockMode,
    policy: WaitPolicy,
    turn: &mut RowTurn<'_>,
    attempt: impl FnMut(VersionRef) -> Try<Change<T>>,
) -> Result<RowOutcome<T>> {
    // Given out here, where there is no latch: the id's log record may be due.
    txn.xid();
    match settle(txn, heap, row, mode, policy, turn, attempt).await? {
        Settled::Outcome(outcome) => Ok(outcome),
        Settled::Replaced(next) => follow(txn, heap, next, mode, policy, turn).await,
    }
}

enum Settled<T> {
    Outcome(RowOutcome<T>),
    Replaced(RowRef),
}

/// Attempts until it is not a matter of waiting any more.
async fn settle<T>(
    txn: &Txn,
    heap: &Heap,
    row: RowRef,
    mode: RowLockMode,
    policy: WaitPolicy,
    turn: &mut RowTurn<'_>,
    mut attempt: impl FnMut(VersionRef) -> Try<Change<T>>,
) -> Result<Settled<T>> {
    loop {
        let which = VersionRef {
            tid: row.tid,
            made_by: turn.made_by,
        };
        let outcome = match retry(|| attempt(which)).await? {
            Change::Done(done) => RowOutcome::Done(done),
            Change::SelfModified => RowOutcome::SelfModified,
            Change::Invisible => {
                return Err(Error::internal("attempted to change an invisible tuple"));
            }
            Change::Busy(xid) => {
                if policy == WaitPolicy::NoWait {
                    RowOutcome::Busy
                } else {
                    turn.wait_without(heap, row.tid).await?;
                    // Who holds the row already and asks for more must not queue behind those who
                    // wait for that.
                    if !txn.holds_row(heap.file(), row.tid) {
                        turn.take(txn, heap.file(), row.root, mode).await?;
                    }
                    txn.wait_for_row(xid, heap.file(), row.root).await?;
                    continue;
                }
            }
            Change::Updated(_) | Change::Moved if txn.isolation().keeps_snapshot() => {
                return Err(too_late("update"));
            }
            Change::Moved => return Err(moved_away()),
            Change::Updated(_) | Change::Lost if turn.let_go() => RowOutcome::LookAnew,
            Change::Lost => return Err(Error::internal("a version that was kept is gone")),
            Change::Updated(next) => {
                return Ok(Settled::Replaced(successor(heap, row, next).await?));
            }
            Change::Deleted => RowOutcome::Deleted,
        };
        return Ok(Settled::Outcome(outcome));
    }
}

/// Goes from version to version until one can be locked: the newest.
async fn follow<T>(
    txn: &Txn,
    heap: &Heap,
    mut row: RowRef,
    mode: RowLockMode,
    policy: WaitPolicy,
    turn: &mut RowTurn<'_>,
) -> Result<RowOutcome<T>> {
    loop {
        txn.session().cancel_flag().check()?;
        let lock = |which| heap.lock(txn, which, mode);
        match settle(txn, heap, row, mode, policy, turn, lock).await? {
            Settled::Outcome(RowOutcome::Updated(next)) | Settled::Replaced(next) => row = next,
            Settled::Outcome(outcome) => {
                return Ok(match outcome.done() {
                    Ok(()) => RowOutcome::Updated(row),
                    Err(instead) => instead,
                });
            }
        }
    }
}

/// The row at its next version: the same root if that is heap-only.
async fn successor(heap: &Heap, row: RowRef, next: Tid) -> Result<RowRef> {
    let mut bytes = Vec::new();
    let header = retry(|| heap.read_version(next, &mut bytes)).await?;
    let heap_only = header.as_ref().is_some_and(TupleHeader::is_heap_only);
    Ok(RowRef {
        tid: next,
        root: if heap_only { row.root } else { next },
    })
}

/// 40001, as PostgreSQL words it.
pub fn too_late(what: &str) -> Error {
    Error::new(
        state::SERIALIZATION_FAILURE,
        format!("could not serialize access due to concurrent {what}"),
    )
}

/// 40001: a newer version of the row is where none of this relation is looked for.
fn moved_away() -> Error {
    let message =
        "tuple to be locked was already moved to another partition due to concurrent update";
    Error::new(state::SERIALIZATION_FAILURE, message)
}

/// A unique check found a row that hangs on how `holder` ends: waits for that. The check is to be
/// made again.
pub async fn wait_for_unique(txn: &Txn, holder: Xid) -> Result<()> {
    txn.wait_for_xid(holder).await
}
