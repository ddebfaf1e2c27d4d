//! The transaction system of one data directory: opening, sessions, background threads, stopping.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use throng_sync::atomic::Ordering;
use throng_sync::thread::{self, JoinHandle};

use throng_access::{Gaps, RowLockMode, TxContext, XidStatus};
use throng_buffer::{Pool, PoolConfig};
use throng_disk::{Disk, RelFiles};
use throng_observe::background;
use throng_sync::lock::Mutex;
use throng_types::{Cid, Csn, Error, FileId, Lsn, Oid, Result, Tid, Xid};
use throng_wal::{FlushObserver, Wal, WalConfig, WalHold};

use crate::archive_recovery::ArchiveRecovery;
use crate::archiver::{self, Archiver, ArchiverStatus, Archiving};
use crate::backup::{self, Backup};
use crate::checkpoint::{CHECKPOINTER, Checkpointer};
use crate::lock::{LockInfo, LockMode, LockTag};
use crate::lock_manager::deadlock;
use crate::recover::{self, RecoveryReport};
use crate::session::{
    CancelReason, Core, LockReporter, Session, SessionEntry, SessionInfo, SessionStatus, TxnConfig,
};
use crate::slots::ReplicationSlots;
use crate::ssi::ReadLock;
use crate::status::Standing;
use crate::synchronous::SynchronousReplication;
use crate::txn::Txn;
use crate::txn::prepare::{self, PrepareRequest};
use crate::txn::prepared::{self, Claimed, HOLDER, PreparedInfo, PreparedTransactions};

/// How often the horizon moves while transactions commit.
const TICK: Duration = Duration::from_millis(5);
/// How often it is looked whether an old snapshot has been given up, while nothing commits.
const SLOW_TICK: Duration = Duration::from_millis(50);
/// The background thread sleeps this long at most when nothing commits.
const IDLE: Duration = Duration::from_secs(5);
/// Log that nobody waits for is flushed after this many ticks, so that the horizon can pass its
/// commits.
const PATIENCE: u32 = 40;

/// What is opened, and how.
pub struct OpenConfig {
    pub disk: Arc<dyn Disk>,
    pub pool: PoolConfig,
    pub wal: WalConfig,
    pub txn: TxnConfig,
    /// Asked for a recovery from an archive.
    pub recovery: Option<ArchiveRecovery>,
    pub archive: Archiving,
}

/// The transaction system. Dropped without [`TxnSystem::shutdown`], it leaves what a crash leaves.
pub struct TxnSystem {
    core: Arc<Core>,
    checkpointer: Arc<Checkpointer>,
    prepared: Arc<PreparedTransactions>,
    archiver: Option<Arc<Archiver>>,
    /// Of a process that archives nothing itself.
    _unarchived: Option<WalHold>,
    disk: Arc<dyn Disk>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl TxnSystem {
    /// Opens a data directory, making it if there is none, recovering it if need be.
    ///
    /// # Errors
    /// XX001 when what is there is damaged; 58030 and 53100 from the disk.
    pub fn open(config: OpenConfig) -> Result<(Arc<TxnSystem>, RecoveryReport)> {
        let OpenConfig {
            disk,
            pool,
            wal,
            txn,
            recovery,
            archive,
        } = config;
        let report_error = pool.report.clone();
        let recovered = recover::run(&disk, pool, wal, txn, recovery.as_ref())?;
        let core = Arc::new(recovered.core);
        core.wal
            .set_flush_observer(Box::new(Commits(Arc::downgrade(&core))));
        let prepared = Arc::<PreparedTransactions>::default();
        for (xid, record) in recovered.prepared {
            let Some((info, held)) = prepared::decode(xid, &record.state) else {
                let message = format!("the record of prepared transaction {xid} is damaged");
                return Err(Error::corrupted(message));
            };
            let txn = Txn::restore_prepared(&core, xid, record, held)?;
            prepared.restore(info, txn);
        }
        let checkpointer = Arc::new(Checkpointer::new(
            disk.clone(),
            recovered.control,
            recovered.xact,
            prepared.clone(),
        ));
        // Before a checkpoint gives back segments that the archive has not got.
        let archiver = match archive {
            Archiving::To(archive) => Some(Arc::new(Archiver::open(&*disk, &core.wal, archive)?)),
            Archiving::Off => {
                archiver::forget(&*disk)?;
                None
            }
            Archiving::Untouched => None,
        };
        let unarchived = match archiver {
            Some(_) => None,
            None => archiver::hold(&*disk, &core.wal)?,
        };
        if recovered.redone {
            checkpointer.run_now(&core, false)?;
        } else {
            checkpointer.mark_in_use()?;
        }
        let system = TxnSystem {
            core: core.clone(),
            checkpointer: checkpointer.clone(),
            prepared,
            archiver: archiver.clone(),
            _unarchived: unarchived,
            disk: disk.clone(),
            threads: Mutex::default(),
        };
        let for_clock = core.clone();
        let for_errors = report_error.clone();
        if let Some(archiver) = archiver {
            let (wal, report) = (core.wal.clone(), report_error.clone());
            let run = move || archiver.run(&*disk, &wal, &*report);
            system.threads.lock().push(spawn("archiver", run)?);
        }
        let clock = spawn("txn-clock", move || run_clock(&for_clock, &*for_errors))?;
        let checkpoints = spawn(CHECKPOINTER, move || {
            checkpointer.run(&core, &*report_error)
        });
        system.threads.lock().push(clock);
        system.threads.lock().push(checkpoints?);
        Ok((Arc::new(system), recovered.report))
    }

    pub fn pool(&self) -> &Arc<Pool> {
        &self.core.pool
    }
    pub fn wal(&self) -> &Arc<Wal> {
        &self.core.wal
    }
    pub fn files(&self) -> &Arc<RelFiles> {
        self.core.pool.files()
    }
    /// Settings that may be changed at any time.
    pub fn config(&self) -> &TxnConfig {
        &self.core.config
    }
    /// Tells this data directory from all others.
    pub fn system_identifier(&self) -> u64 {
        self.checkpointer.identifier()
    }

    /// Adds a session. To be called on the thread that will run it: what it writes often is kept
    /// beside what other sessions of that thread write.
    pub fn register(&self, info: SessionInfo) -> Session {
        Session::new(self.core.registry.add(&self.core, info))
    }

    /// An object id never used before.
    pub fn new_oid(&self) -> Oid {
        self.core.ids.oid()
    }
    /// `oid` is in use: ids given out later are greater.
    pub fn note_oid(&self, oid: Oid) {
        self.core.ids.oid_at_least(oid);
    }

    /// How a transaction stands.
    pub fn status(&self, xid: Xid) -> XidStatus {
        self.core.status.standing(xid).into()
    }
    /// What a snapshot with that number, which is held, does not show of the transactions that have
    /// begun: those, in order, and the first id not given out.
    pub fn unseen(&self, csn: Csn) -> Result<(Vec<Xid>, Xid)> {
        let next = self.next_xid();
        Ok((self.core.status.unseen(next, csn)?, next))
    }
    /// The first transaction id not given out.
    pub fn next_xid(&self) -> Xid {
        self.core.ids.next_xid()
    }

    /// Commits at or before this are seen by every snapshot and are on disk.
    pub fn horizon(&self) -> Csn {
        self.core.clock.horizon()
    }

    /// Moves the horizon now rather than at the next tick: before VACUUM. With `flush`, commits
    /// that were not waited for are brought to disk first, so that they count; that blocks the
    /// thread.
    pub fn advance_horizon(&self, flush: bool) -> Result<Csn> {
        let _turn = self.core.advancing.lock();
        self.core.note_log();
        if flush {
            self.core.wal.flush_blocking(self.core.wal.inserted())?;
        }
        Ok(self.core.advance_horizon())
    }

    /// Whom to ask how locked things are called, and to tell of long waits. Once; a second one is
    /// dropped.
    pub fn set_lock_reporter(&self, reporter: Box<dyn LockReporter>) {
        let _ = self.core.lock_reporter.set(reporter);
    }

    /// Every session's number and virtual transaction.
    pub fn virtual_transactions(&self) -> Vec<(u32, (u32, u32))> {
        let mut ids = Vec::new();
        self.core
            .registry
            .each(|session| ids.push((session.pid(), session.virtual_transaction())));
        ids
    }

    /// The sessions that keep this one from the lock it waits for: its holders, and those before it
    /// in its queue.
    pub fn blocking_pids(&self, pid: u32) -> Vec<u32> {
        let waiting = self.core.registry.get(pid).and_then(|s| s.waiting());
        let mut pids = waiting.map_or_else(Vec::new, |(_, on)| deadlock::blocking(&self.core, &on));
        let prepared = self.prepared_holders();
        for pid in &mut pids {
            // No session's, as PostgreSQL tells of prepared transactions.
            if prepared.contains_key(pid) {
                *pid = 0;
            }
        }
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// The sessions whose transactions keep this one's snapshot from being known as safe, if it
    /// waits for that.
    pub fn safe_snapshot_blocking_pids(&self, pid: u32) -> Vec<u32> {
        self.core.serial.blocking(pid)
    }

    /// What serializable transactions have read.
    pub fn read_locks(&self) -> Vec<ReadLock> {
        self.core.serial.list()
    }

    /// `pg_locks`.
    pub fn locks(&self) -> Vec<LockInfo> {
        let mut rows = Vec::new();
        self.core.locks.list(&mut rows);
        self.core.registry.each(|session| {
            session.fast.list(session.pid(), &mut rows);
            let row = |tag, mode, granted, wait_start| LockInfo {
                tag,
                pid: session.pid(),
                mode,
                granted,
                fast_path: false,
                wait_start,
            };
            if let Some(xid) = session.top_xid() {
                rows.push(row(
                    LockTag::Transaction(xid),
                    LockMode::Exclusive,
                    true,
                    None,
                ));
            }
            if let Some((xid, since)) = session.waits_for_xid() {
                rows.push(row(
                    LockTag::Transaction(xid),
                    LockMode::Share,
                    false,
                    Some(since),
                ));
            }
        });
        self.add_subtransactions(&mut rows);
        rows
    }

    /// A subtransaction that somebody waits for is held by its transaction's session.
    fn add_subtransactions(&self, rows: &mut Vec<LockInfo>) {
        let awaited: BTreeSet<Xid> = rows
            .iter()
            .filter(|row| !row.granted)
            .filter_map(|row| row.tag.transaction())
            .collect();
        for xid in awaited {
            let Standing::InProgress { top } = self.core.status.standing(xid) else {
                continue;
            };
            let is_top = |row: &&LockInfo| row.granted && row.tag == LockTag::Transaction(top);
            if top != xid
                && let Some(held) = rows.iter().find(is_top).cloned()
            {
                let tag = LockTag::Transaction(xid);
                rows.push(LockInfo { tag, ..held });
            }
        }
    }

    /// Whether another session than this one holds a lock on this, which is no relation.
    pub fn is_held_beside(&self, tag: LockTag, session: &SessionEntry) -> bool {
        let holders = self.core.locks.queue(tag).0;
        holders.iter().any(|pid| *pid != session.pid())
    }

    /// Whether somebody waits for a lock on this.
    pub fn is_waited_for(&self, tag: LockTag) -> bool {
        !self.core.locks.queue(tag).1.is_empty()
    }

    /// `pg_stat_activity`.
    pub fn sessions(&self) -> Vec<SessionStatus> {
        let mut rows = Vec::new();
        self.core
            .registry
            .each(|session| rows.push(session.status()));
        rows.retain(|row| row.info.backend_type != HOLDER);
        rows.sort_by_key(|row| row.pid);
        rows
    }

    /// Interrupts a session. `false`: there is none of that number.
    pub fn cancel(&self, pid: u32, reason: CancelReason) -> bool {
        match self.core.registry.get(pid) {
            Some(session) => {
                session.cancel_flag().raise(reason);
                true
            }
            None => false,
        }
    }

    /// Prepares a session's transaction (`PREPARE TRANSACTION`), which is over for the session.
    ///
    /// # Errors
    /// 42710, 53200, 40001, 0A000; then it is rolled back. What the log failed with.
    pub async fn prepare(&self, txn: Txn, request: PrepareRequest) -> Result<()> {
        txn.prepare_in(&self.prepared, request).await
    }

    /// Prepared transactions, by identifier.
    pub fn prepared(&self) -> Vec<PreparedInfo> {
        self.prepared.list()
    }

    /// Sessions that are nothing but prepared transactions', by number.
    pub fn prepared_holders(&self) -> HashMap<u32, Xid> {
        let mut holders = HashMap::new();
        self.prepared.each(|info, txn| {
            holders.insert(txn.session().pid(), info.xid);
        });
        holders
    }

    /// Looks at each prepared transaction, for what is to be done at its end.
    pub fn each_prepared(&self, hook: impl FnMut(&PreparedInfo, &Txn)) {
        self.prepared.each(hook);
    }

    /// Takes a prepared transaction, to end it.
    ///
    /// # Errors
    /// 42704 where there is none, 55000 where another session has taken it, what `may` says.
    pub fn claim_prepared(
        &self,
        gid: &str,
        may: impl FnOnce(&PreparedInfo) -> Result<()>,
    ) -> Result<Claimed> {
        self.prepared.claim(gid, may)
    }

    /// `COMMIT PREPARED`, by `session`. With `sync`, the answer comes when it is on disk.
    ///
    /// # Errors
    /// As of [`Txn::commit`].
    pub async fn commit_prepared(
        &self,
        claimed: Claimed,
        session: &Session,
        sync: bool,
    ) -> Result<()> {
        prepare::commit_prepared(claimed, session.entry(), sync).await
    }

    /// `ROLLBACK PREPARED`.
    ///
    /// # Errors
    /// What the log fails with.
    pub async fn rollback_prepared(&self, claimed: Claimed) -> Result<()> {
        prepare::rollback_prepared(claimed, &self.core).await
    }

    /// Waits until a checkpoint that began after this call is complete (`CHECKPOINT`).
    pub async fn checkpoint(&self) -> Result<()> {
        self.checkpointer.wait(true).await
    }

    /// Begins a base backup. `fast`: its checkpoint does not take its time.
    pub async fn begin_backup(&self, fast: bool) -> Result<Backup> {
        Backup::begin(&self.core, &self.checkpointer, fast).await
    }

    /// `pg_stat_archiver`; None where nothing is archived.
    pub fn archiver_status(&self) -> Option<ArchiverStatus> {
        self.archiver.as_ref().map(|archiver| archiver.status())
    }

    /// Who keeps the log for when they come back.
    pub fn replication_slots(&self) -> &ReplicationSlots {
        &self.core.slots
    }

    /// Standbys that commits wait for.
    pub fn synchronous_replication(&self) -> &SynchronousReplication {
        &self.core.synchronous
    }

    /// The last checkpoint's redo point.
    pub fn redo_point(&self) -> Lsn {
        self.checkpointer.redo_point()
    }

    /// The disk of the data directory.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Names the log's end, for a recovery to stop at (`pg_create_restore_point`). Returns where
    /// that is.
    pub fn create_restore_point(&self, name: &str) -> Lsn {
        backup::create_restore_point(&self.core, name)
    }

    /// As [`TxnSystem::checkpoint`], made on the calling thread.
    pub fn checkpoint_blocking(&self) -> Result<()> {
        self.checkpointer.run_now(&self.core, false)
    }

    /// Stops for good: a last checkpoint, a control file that says so. All transactions should have
    /// ended; those that have not are rolled back by the next start.
    pub fn shutdown(&self) -> Result<()> {
        self.stop_threads();
        self.core.wal.flush_blocking(self.core.wal.inserted())?;
        self.core.remove_doomed()?;
        self.checkpointer.run_now(&self.core, true)?;
        if let Some(archiver) = &self.archiver {
            let wal = &self.core.wal;
            wal.switch_segment();
            wal.flush_blocking(wal.inserted())?;
            archiver.finish(&*self.disk, wal)?;
        }
        self.prepared.leave_all();
        self.core.wal.shutdown()
    }

    fn stop_threads(&self) {
        self.checkpointer.stop();
        if let Some(archiver) = &self.archiver {
            archiver.stop();
        }
        self.core.background.stop.store(true, Ordering::Release);
        self.core.background.parker.unpark();
        for thread in self.threads.lock().drain(..) {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }

    /// What a cleaner shows to the heap: no transaction of its own, only how others stand.
    pub fn cleaner_context(&self) -> CleanerContext {
        CleanerContext {
            core: self.core.clone(),
        }
    }
}

impl Drop for TxnSystem {
    fn drop(&mut self) {
        self.stop_threads();
        self.prepared.leave_all();
    }
}

fn spawn(name: &'static str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            let _background = background(name);
            body();
        })
        .map_err(Error::from)
}

/// Moves the horizon and removes files, while there is anything to do.
fn run_clock(core: &Core, report: &dyn Fn(&Error)) {
    let background = &core.background;
    let (mut ticks_waiting, mut last) = (0, Csn(0));
    while !background.stop.load(Ordering::Acquire) {
        {
            let _turn = core.advancing.lock();
            core.note_log();
            core.advance_horizon();
        }
        if let Err(error) = core.remove_doomed() {
            report(&error);
        }
        if core.is_settled() {
            ticks_waiting = 0;
            background.asleep.store(true, Ordering::SeqCst);
            // Again, after the flag: a commit that did not see it is seen here.
            if core.is_settled() {
                background.parker.park_timeout(IDLE);
            }
            background.asleep.store(false, Ordering::Relaxed);
        } else {
            let durable = core.clock.is_durable();
            ticks_waiting = if durable { 0 } else { ticks_waiting + 1 };
            if ticks_waiting == PATIENCE {
                core.wal.request_flush(core.wal.inserted());
                ticks_waiting = 0;
            }
            let quiet =
                durable && std::mem::replace(&mut last, core.clock.last()) == core.clock.last();
            background
                .parker
                .park_timeout(if quiet { SLOW_TICK } else { TICK });
        }
    }
}

/// Tells the clock which commits are on disk, and answers the flusher's question for
/// `commit_siblings`.
struct Commits(std::sync::Weak<Core>);

impl FlushObserver for Commits {
    fn before_flush(&self) -> u64 {
        self.0.upgrade().map_or(0, |core| core.clock.last().0)
    }
    fn after_flush(&self, token: u64, _flushed: throng_types::Lsn) {
        if let Some(core) = self.0.upgrade() {
            core.clock.note_durable(Csn(token));
        }
    }
    fn active_transactions(&self, enough: u32) -> u32 {
        // Who waits for a lock will not commit within the delay.
        let at_work =
            |session: &SessionEntry| session.top_xid().is_some() && session.waiting().is_none();
        self.0
            .upgrade()
            .map_or(0, |core| core.registry.count_up_to(enough, at_work))
    }
}

/// A [`TxContext`] that owns nothing: for pruning and vacuum, which change no row.
#[derive(Clone)]
pub struct CleanerContext {
    core: Arc<Core>,
}

impl TxContext for CleanerContext {
    fn xid(&self) -> Xid {
        Xid::NONE
    }
    fn cid(&self) -> Cid {
        Cid(0)
    }
    fn is_mine(&self, _xid: Xid) -> bool {
        false
    }
    fn status(&self, xid: Xid) -> XidStatus {
        self.core.status.standing(xid).into()
    }
    fn horizon(&self) -> Csn {
        self.core.clock.horizon()
    }
    fn prunable(&self) -> Csn {
        self.core.prunable()
    }
    fn gaps(&self) -> Gaps {
        self.core.clock.gaps()
    }
    fn moves(&self) -> Option<u32> {
        Some(self.core.moves())
    }
    fn row_lock_conflict(&self, file: FileId, tid: Tid, mode: RowLockMode) -> Option<Xid> {
        self.core.rows.conflict(file, tid, mode, self)
    }
    fn row_lock_acquire(&self, file: FileId, tid: Tid, mode: RowLockMode) -> Option<Xid> {
        // It takes no rows, but it can tell who would be in the way.
        self.core.rows.conflict(file, tid, mode, self)
    }
    fn row_moved(&self, file: FileId, old: Tid, new: Tid) {
        self.core.rows.moved(file, old, new, self);
    }
}

impl crate::rowlock::TransactionLookup for CleanerContext {
    fn is_mine(&self, _xid: Xid) -> bool {
        false
    }
    fn is_running(&self, xid: Xid) -> bool {
        matches!(self.core.status.standing(xid), Standing::InProgress { .. })
    }
}
