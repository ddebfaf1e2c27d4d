//! A transaction that is prepared, and ended by another session than its own.

use std::sync::Arc;

use throng_access::RelationStore;
use throng_buffer::retry_blocking;
use throng_sync::atomic::Ordering;
use throng_types::error::state;
use throng_types::{Error, Lsn, Oid, Result, Xid};
use throng_wal::RecordBuilder;

use super::logged::Logged;
use super::{Action, Progress, Txn, WRITERS};
use crate::active::{Form, IdPurpose};
use crate::isolation::Isolation;
use crate::lock::held::LockScope;
use crate::rowlock::LockedRow;
use crate::session::{Core, Session, SessionEntry, SessionInfo};
use crate::timer::now_micros;
use crate::txn::prepared::{
    Claimed, HOLDER, Held, PreparedInfo, PreparedRecord, PreparedTransactions, PreparedWork,
};

/// What a transaction is to be prepared as.
pub struct PrepareRequest {
    pub gid: String,
    pub owner: Oid,
    pub database: Oid,
    /// What ends it after a restart needs to know.
    pub rest: Vec<u8>,
    /// `max_prepared_transactions`.
    pub most: usize,
}

/// Bytes of a Prepare record, by estimate: half of what the log takes.
const LONGEST: usize = throng_wal::MAX_RECORD / 2;

impl Txn {
    /// Prepares the transaction: what it has done is on disk, and waits for whoever says how it
    /// ends. The session has no transaction afterwards, whatever comes of it.
    ///
    /// # Errors
    /// 42710 where the identifier is in use, 53200 where there are too many, 40001 as for a commit,
    /// 0A000 where a lock is held for the session as well; then it is rolled back. What the log
    /// failed with has the severity of [`commit`](Self::commit)'s.
    pub(crate) async fn prepare_in(
        mut self,
        all: &Arc<PreparedTransactions>,
        request: PrepareRequest,
    ) -> Result<()> {
        let mut info = PreparedInfo {
            gid: request.gid,
            xid: Xid::NONE,
            owner: request.owner,
            database: request.database,
            at: now_micros(),
            rest: request.rest.into(),
        };
        let reserved = all.reserve(&info, request.most)?;
        if self.session.shares_locks_with_session() {
            let message = "cannot PREPARE while holding both session-level and transaction-level \
                           locks on the same object";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let levels = self.depth();
        if levels > 0 {
            self.release(0);
        }
        info.xid = self.assign_top_xid();
        let work = self.prepared_work();
        let weight = info.rest.len()
            + 16 * work.locks.len()
            + 24 * work.rows.len()
            + 10 * (work.subs.len() + work.made.len() + work.dropped.len());
        if weight > LONGEST {
            let message = "two-phase state file maximum length exceeded";
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
        }
        if let Some(member) = self.serial.get() {
            self.core().serial.prepare(member)?;
        }
        let core = self.core().clone();
        while !core.wal.has_room() {
            core.wal.room_wait().await?;
        }
        self.move_to_holder(&core);
        let lsn = all.enter(&core, reserved, info, self);
        core.wal.flush(lsn).await
    }

    /// The transaction is a session's of its own from here on.
    fn move_to_holder(&mut self, core: &Arc<Core>) {
        let holder = new_holder(core);
        let (old, new) = (self.session.clone(), holder.entry().clone());
        // What it has seen is another session's.
        self.fixed.get_mut().take();
        let xid = old.top_xid.load(Ordering::Relaxed);
        old.hand_over_locks(&new);
        core.running.hand_over(old.place, new.place);
        // There is a session that has it at any time: who waits for it looks for that.
        new.top_xid.store(xid, Ordering::Release);
        new.in_transaction.store(1, Ordering::Relaxed);
        old.top_xid.store(0, Ordering::Release);
        WRITERS.set(WRITERS.get().saturating_sub(1));
        old.set_xact_start(0);
        old.in_transaction.store(0, Ordering::Relaxed);
        self.session = new;
        self.holder = Some(holder);
    }

    /// What it has done and holds, for its record.
    pub(crate) fn prepared_work(&mut self) -> PreparedWork {
        let core = self.session.core().clone();
        let progress = self.progress.get_mut();
        let (mut dropped, mut made) = (Vec::new(), Vec::new());
        for action in &progress.actions {
            match action {
                Action::FileMade(file) => made.push(*file),
                Action::FileDropped(file) => dropped.push(*file),
                Action::Committed(_) | Action::Aborted(_) => {}
            }
        }
        let lockers = progress.row_lockers.iter();
        PreparedWork {
            subs: progress.subs.clone(),
            dropped,
            made,
            locks: self.session.transaction_locks(),
            rows: lockers.flat_map(|xid| core.rows.of(*xid)).collect(),
        }
    }

    /// A prepared transaction that a start has found in the log: it runs again.
    ///
    /// # Errors
    /// XX001 where its record says nothing that can be.
    pub(crate) fn restore_prepared(
        core: &Arc<Core>,
        xid: Xid,
        record: PreparedRecord,
        held: Held,
    ) -> Result<Txn> {
        let holder = new_holder(core);
        let entry = holder.entry().clone();
        let mut txn = Txn::begin(entry.clone(), Isolation::ReadCommitted);
        entry.set_xact_start(0);
        core.running.begin(entry.place, IdPurpose::Top, || xid);
        for &sub in &record.subxids {
            core.running.begin(entry.place, IdPurpose::Sub, || sub);
        }
        entry.top_xid.store(xid.0, Ordering::Release);
        txn.current.store(xid.0, Ordering::Relaxed);
        for (tag, mode) in held.locks {
            if !entry.try_lock(tag, mode, LockScope::Transaction) {
                return Err(Error::corrupted(format!(
                    "two prepared transactions hold {tag}"
                )));
            }
        }
        let mut row_lockers: Vec<Xid> = held.rows.iter().map(|row| row.xid).collect();
        row_lockers.sort_unstable();
        row_lockers.dedup();
        for row in held.rows {
            core.rows.restore(row);
            lock_newer(core, row)?;
        }
        let mut made = core.made.lock();
        made.extend(record.made.iter().map(|file| (*file, xid)));
        drop(made);
        let made = record.made.into_iter().map(Action::FileMade);
        let dropped = record.dropped.into_iter().map(Action::FileDropped);
        *txn.progress.get_mut() = Progress {
            subs: record.subxids,
            actions: made.chain(dropped).collect(),
            row_lockers,
            ..Progress::default()
        };
        txn.holder = Some(holder);
        Ok(txn)
    }

    /// The server stops, and the next one finds it in the log.
    pub(crate) fn leave_prepared(mut self) {
        self.over = true;
    }
}

/// Updates since the record was written have copied the lock to the versions that they made.
fn lock_newer(core: &Core, row: LockedRow) -> Result<()> {
    let heap = RelationStore::new(core.pool.clone()).heap(row.file);
    let (mut at, mut made_by, mut bytes) = (row.tid, None, Vec::new());
    while let Some(header) = retry_blocking(|| heap.read_version(at, &mut bytes))? {
        if made_by.is_some_and(|xid| xid != header.xmin) {
            break;
        }
        core.rows.restore(LockedRow { tid: at, ..row });
        if header.xmax_is_void() || header.next.is_none() || header.next == at {
            break;
        }
        (made_by, at) = (Some(header.xmax), header.next);
    }
    Ok(())
}

fn new_holder(core: &Arc<Core>) -> Session {
    let info = SessionInfo {
        backend_type: HOLDER,
        ..SessionInfo::default()
    };
    Session::new(core.registry.add(core, info))
}

/// COMMIT PREPARED, for `session`. With `sync`, the answer comes when the commit is on disk.
///
/// # Errors
/// As of [`Txn::commit`].
pub(crate) async fn commit_prepared(
    claimed: Claimed,
    session: &Arc<SessionEntry>,
    sync: bool,
) -> Result<()> {
    let core = session.core();
    while !core.wal.has_room() {
        core.wal.room_wait().await?;
    }
    let xid = claimed.info().xid;
    let Some((txn, lsn)) = claimed.end(|txn| txn.log_commit(core, xid)) else {
        return Err(Error::internal("a prepared transaction that is not there"));
    };
    let logged = Logged {
        txn: Some(txn),
        xid,
    };
    logged.reach_disk(session, lsn, sync).await
}

/// ROLLBACK PREPARED.
///
/// # Errors
/// What the log fails with.
pub(crate) async fn rollback_prepared(claimed: Claimed, core: &Arc<Core>) -> Result<()> {
    while !core.wal.has_room() {
        core.wal.room_wait().await?;
    }
    let xid = claimed.info().xid;
    let Some((txn, lsn)) = claimed.end(|txn| log_abort(txn, core, xid)) else {
        return Err(Error::internal("a prepared transaction that is not there"));
    };
    // Nobody who sees that it is gone may find it again after a crash.
    core.wal.flush(lsn).await?;
    txn.abort_in_turns().await;
    Ok(())
}

fn log_abort(txn: &mut Txn, core: &Core, xid: Xid) -> Lsn {
    let work = txn.prepared_work();
    let mut record = RecordBuilder::new();
    record.abort(xid, &work.subs, &work.made);
    core.wal.insert(&mut record)
}
