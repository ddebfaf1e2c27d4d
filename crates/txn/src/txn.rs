//! One transaction, from its first snapshot to its commit.
//!
//! ```text
//!   begin ─► snapshot, snapshot, …      no id, nothing logged, nothing shared written but the session's own slot
//!     │      first write: xid
//!     │      savepoint ─► own xid at its first write, standing as the top one does
//!     │         rollback_to: its xids aborted, its locks given back
//!     ▼
//!   commit  1 log the Commit record; the status says LOGGED
//!           2 COMMITTING, take a number, COMMITTED(number): visible (and out of the lists of who runs, if there are any)
//!           3 hooks; row locks, waiters, locks
//!           4 wait until it is on disk (synchronous_commit), and all that it has seen
//!   abort   1 ABORTED: at once, nothing logged
//!           2 the same as 3
//! ```
//!
//! **Rows are not held while the disk is waited for** (early lock release: Johnson et al., "Aether:
//! A Scalable Approach to Logging", VLDB 2010). What others have seen of a commit that a crash
//! undoes must not be told to anybody as a fact. Who goes on to write has its own Commit record
//! behind it in the log, and waits for that. Who only reads notes the newest commit that it has
//! seen before the disk had it ([`SessionEntry::has_seen`]), and waits for it at its end. An end is
//! what makes an answer a fact: before it, a crash ends the reader's transaction, too. A
//! transaction that has hooks, as one that changes definitions or notifies, waits between 1 and 2,
//! for what they do goes other ways than rows; so does a serializable one, whose order with others
//! is settled as it becomes visible.
//!
//! From its Commit record on a transaction cannot be taken back. A commit whose future is dropped
//! while it waits for the disk is therefore completed there and then; what is lost is only the
//! answer.

mod logged;
pub(crate) mod prepare;
pub(crate) mod prepared;

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use throng_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use throng_access::btree::KeyRange;
use throng_access::{Gaps, RowLockMode, TxContext, XidStatus};
use throng_observe::{Object, Structure, WaitEvent, sampled, waiting};
use throng_sync::lock::Mutex;
use throng_types::error::state;
use throng_types::{Cid, Csn, Error, FileId, Lsn, Oid, Result, Tid, Xid};
use throng_wal::RecordBuilder;

use crate::active::{Form, IdPurpose};
use crate::isolation::Isolation;
use crate::lock::held::LockScope;
use crate::lock::{LockMode, LockTag, WaitPolicy, not_available};
use crate::rowlock::TransactionLookup;
use crate::session::{Core, Session, SessionEntry};
use crate::snapshot::Snapshot;
use crate::ssi::Member;
use crate::status::Standing;
use crate::timer::now_micros;
use logged::{Logged, PIECE};

/// What is done when the transaction, or the subtransaction it was said in, ends.
enum Action {
    Committed(Box<dyn FnOnce(Csn) + Send>),
    Aborted(Box<dyn FnOnce() + Send>),
    FileMade(FileId),
    FileDropped(FileId),
}

/// A savepoint: where in its transaction a rollback to it goes back to.
struct Level {
    /// [`Xid::NONE`] until it writes.
    xid: Xid,
    subs: usize,
    locks: usize,
    actions: usize,
}

#[derive(Default)]
struct Progress {
    levels: Vec<Level>,
    /// The xids of all subtransactions not rolled back, ascending.
    subs: Vec<Xid>,
    actions: Vec<Action>,
    /// Of all xids, those that have locked rows.
    row_lockers: Vec<Xid>,
}

thread_local! {
    static WRITERS: Cell<u32> = const { Cell::new(0) };
}

/// How many transactions of this thread have changed rows and not ended: others may wait for them.
pub fn writers_here() -> u32 {
    WRITERS.get()
}

/// A transaction. Dropped without a commit, it is rolled back.
pub struct Txn {
    session: Arc<SessionEntry>,
    isolation: Isolation,
    /// What is written now is stamped with this; 0: not given out yet.
    current: AtomicU64,
    /// What is written now is stamped with this.
    cid: AtomicU32,
    /// The highest of them that was given out: the running command's, or that of one which ran
    /// inside it.
    last_cid: AtomicU32,
    /// The one snapshot of REPEATABLE READ and SERIALIZABLE.
    fixed: Mutex<Option<Snapshot>>,
    read_only: AtomicBool,
    /// What follows a serializable transaction's reads and writes, from its snapshot on.
    serial: OnceLock<Arc<Member>>,
    progress: Mutex<Progress>,
    /// A rollback has begun: others see it as it will be.
    undone: bool,
    over: bool,
    /// It is committed for all to see; what it holds is still to be given back.
    settled: bool,
    /// Of a prepared transaction: its own session, which goes with it.
    holder: Option<Session>,
}

impl Session {
    /// Begins a transaction. One at a time: panics if the last one has not ended.
    pub fn begin(&self, isolation: Isolation) -> Txn {
        Txn::begin(self.entry().clone(), isolation)
    }
}

impl Txn {
    pub(crate) fn begin(session: Arc<SessionEntry>, isolation: Isolation) -> Txn {
        // Written by the session alone, as `top_xid` is: plain stores.
        let before = session.in_transaction.load(Ordering::Relaxed);
        assert_eq!(before, 0, "a session has one transaction at a time");
        session.in_transaction.store(1, Ordering::Relaxed);
        session.count_transaction();
        session.set_xact_start(session.transaction_begins_at());
        Txn {
            session,
            isolation,
            current: AtomicU64::new(0),
            cid: AtomicU32::new(0),
            last_cid: AtomicU32::new(0),
            fixed: Mutex::new(None),
            read_only: AtomicBool::new(false),
            serial: OnceLock::new(),
            progress: Mutex::default(),
            undone: false,
            over: false,
            settled: false,
            holder: None,
        }
    }

    fn core(&self) -> &Arc<Core> {
        self.session.core()
    }

    pub fn session(&self) -> &Arc<SessionEntry> {
        &self.session
    }
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }
    /// May only be changed before the first snapshot; `false` if it is too late.
    pub fn set_isolation(&mut self, isolation: Isolation) -> bool {
        let free = self.isolation == isolation
            || (self.fixed.lock().is_none() && self.top_xid().is_none());
        if free {
            self.isolation = isolation;
        }
        free
    }

    /// The transaction's id, if it has written anything.
    pub fn top_xid(&self) -> Option<Xid> {
        self.session.top_xid()
    }

    /// The transaction's id, given out now if need be (`pg_current_xact_id()`).
    pub fn assign_top_xid(&self) -> Xid {
        match self.top_xid() {
            Some(xid) => xid,
            None => self.assign_top(&mut self.progress.lock()),
        }
    }

    /// What the running command is to see. Under REPEATABLE READ always the same moment.
    pub fn snapshot(&self) -> Snapshot {
        let (top, cid) = (self.top_xid().unwrap_or(Xid::NONE), self.cid());
        match self.isolation {
            Isolation::ReadCommitted => Snapshot::take(&self.session, top, cid),
            Isolation::RepeatableRead => {
                let mut fixed = self.fixed.lock();
                let first = || {
                    let snapshot = Snapshot::take(&self.session, top, cid);
                    if self.read_only.load(Ordering::Relaxed) {
                        snapshot.only_read();
                    }
                    snapshot
                };
                fixed.get_or_insert_with(first).for_command(top, cid)
            }
            Isolation::Serializable => {
                let mut fixed = self.fixed.lock();
                fixed
                    .get_or_insert_with(|| {
                        let (snapshot, member) = self.begin_serial();
                        if let Some(member) = &member {
                            let fresh = self.serial.set(member.clone()).is_ok();
                            assert!(fresh, "a transaction has one snapshot");
                        }
                        snapshot.followed(member)
                    })
                    .for_command(top, cid)
            }
        }
    }

    /// What is committed at this moment, and what earlier commands of this transaction did,
    /// whatever the isolation: for constraint checks, which must not miss what a transaction's own
    /// snapshot does.
    pub fn latest_snapshot(&self) -> Snapshot {
        Snapshot::take(
            &self.session,
            self.top_xid().unwrap_or(Xid::NONE),
            self.cid(),
        )
    }

    /// Whether the transaction always sees a moment before `xid`, which has ended by now,
    /// committed.
    pub fn overlooks(&self, xid: Xid) -> bool {
        let fixed = self.fixed.lock();
        fixed.as_ref().is_some_and(|seen| !seen.sees(xid, Cid(0)))
    }

    /// Waits until no other session holds a snapshot from before `xid`, which has ended by now,
    /// committed.
    pub async fn wait_for_older_snapshots(&self, xid: Xid) -> Result<()> {
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
        let Standing::Committed(csn) = self.core().status.standing(xid) else {
            return Ok(());
        };
        let is_older = |session: &SessionEntry| {
            let oldest = session.snapshots.lock().oldest();
            session.pid() != self.session.pid() && oldest.is_some_and(|held| held < csn)
        };
        while self.core().registry.count_up_to(1, is_older) > 0 {
            let pause = async {
                crate::timer::sleep(PAUSE).await;
                Ok(())
            };
            self.session.cancel_flag().guard(pause).await?;
        }
        Ok(())
    }

    /// What was written so far is seen from here on. To be called between commands.
    pub fn next_command(&self) -> Result<()> {
        let cid = self.last_cid.load(Ordering::Relaxed);
        if cid == u32::MAX - 1 {
            let message = "cannot have more than 2^32-2 commands in a transaction";
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
        }
        self.last_cid.store(cid + 1, Ordering::Relaxed);
        self.cid.store(cid + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether others ran inside the command, whose changes it does not see.
    pub fn has_run_others(&self) -> bool {
        self.last_cid.load(Ordering::Relaxed) != self.cid.load(Ordering::Relaxed)
    }

    /// A command goes on inside which others ran: what it writes is stamped as what it wrote
    /// before. Later commands see what both did.
    pub fn resume_command(&self, cid: Cid) {
        self.cid.store(cid.0, Ordering::Relaxed);
    }

    #[cold]
    fn assign(&self) -> Xid {
        let mut progress = self.progress.lock();
        if progress.levels.is_empty() {
            let xid = self
                .top_xid()
                .unwrap_or_else(|| self.assign_top(&mut progress));
            self.current.store(xid.0, Ordering::Relaxed);
            return xid;
        }
        let top = self
            .top_xid()
            .unwrap_or_else(|| self.assign_top(&mut progress));
        let xid = self.give_out(IdPurpose::Sub);
        self.core().status.set_sub(xid, top);
        progress.subs.push(xid);
        progress.levels.last_mut().expect("not empty").xid = xid;
        self.current.store(xid.0, Ordering::Relaxed);
        xid
    }

    fn assign_top(&self, _progress: &mut Progress) -> Xid {
        let xid = self.give_out(IdPurpose::Top);
        // Release: a search for a deadlock that sees the id sees its status.
        self.session.top_xid.store(xid.0, Ordering::Release);
        WRITERS.set(WRITERS.get() + 1);
        if let Some(member) = self.serial.get() {
            self.core().serial.note_xid(member, xid);
        }
        xid
    }

    fn give_out(&self, part: IdPurpose) -> Xid {
        let core = self.core();
        let _sampled = sampled(Structure::TxnBegin);
        core.running.begin(self.session.place, part, || {
            let xid = core.ids.xid();
            core.status.begin(xid);
            xid
        })
    }

    // Serializable transactions

    /// What the transaction said of itself; counts from its first snapshot on.
    pub fn set_read_only(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::Relaxed);
    }

    fn begin_serial(&self) -> (Snapshot, Option<Arc<Member>>) {
        let xid = self.top_xid();
        let (top, cid) = (xid.unwrap_or(Xid::NONE), self.cid());
        let serial = &self.core().serial;
        serial.begin(
            self.session.pid(),
            self.read_only.load(Ordering::Relaxed),
            xid,
            || {
                let snapshot = Snapshot::take(&self.session, top, cid);
                let csn = snapshot.csn();
                (snapshot, csn)
            },
        )
    }

    /// SERIALIZABLE READ ONLY DEFERRABLE: takes the transaction's snapshot such that nothing can
    /// harm it and its reads need not be followed, waiting for the writers that are under way. To
    /// be called before its first statement.
    pub async fn take_safe_snapshot(&self) -> Result<()> {
        if self.fixed.lock().is_some() {
            return Ok(());
        }
        loop {
            let (snapshot, member) = self.begin_serial();
            let Some(member) = member else {
                *self.fixed.lock() = Some(snapshot);
                return Ok(());
            };
            let serial = &self.core().serial;
            let undecided = Undecided(&self.session, &member);
            let decided = async {
                let _wait = waiting(WaitEvent::SafeSnapshot, Object::NONE);
                Ok(std::future::poll_fn(|cx| serial.poll_safe(&member, cx)).await)
            };
            let is_safe = self.session.cancel_flag().guard(decided).await?;
            drop(undecided);
            if is_safe {
                *self.fixed.lock() = Some(snapshot);
                return Ok(());
            }
        }
    }

    /// A row was added to the table in `file`.
    ///
    /// # Errors
    /// 40001, as for the other reports of writes, where the transaction cannot be put in an order
    /// with others.
    #[inline]
    pub fn wrote_new_row(&self, file: FileId) -> Result<()> {
        match self.serial.get() {
            None => Ok(()),
            Some(member) => Ok(self.core().serial.wrote_new_row(member, file)?),
        }
    }

    /// A version was replaced or deleted.
    #[inline]
    pub(crate) fn wrote_row(&self, file: FileId, tid: Tid) -> Result<()> {
        match self.serial.get() {
            None => Ok(()),
            Some(member) => Ok(self.core().serial.wrote_row(member, file, tid)?),
        }
    }

    /// An entry was, or would have been, added to the index in `file`.
    #[inline]
    pub fn wrote_key(&self, file: FileId, key: &[u8]) -> Result<()> {
        match self.serial.get() {
            None => Ok(()),
            Some(member) => {
                let stretch = KeyRange::prefix(key.to_vec()).half_open();
                let (start, end) = stretch.unwrap_or_default();
                let serial = &self.core().serial;
                Ok(serial.wrote_keys(member, file, &start, end.as_deref())?)
            }
        }
    }

    /// The table in `file` was emptied or dropped.
    pub fn wrote_all(&self, file: FileId) -> Result<()> {
        match self.serial.get() {
            None => Ok(()),
            Some(member) => Ok(self.core().serial.wrote_all(member, file)?),
        }
    }

    /// Whether serializable transactions that count have read anything of a file.
    pub fn is_read(&self, file: FileId) -> bool {
        self.core().serial.is_read(file)
    }

    /// A table's rows, or an index's keys, were written anew into another file.
    pub fn moved_to(&self, old: FileId, new: FileId) {
        self.core().serial.moved(old, new);
    }

    // Subtransactions

    /// How many savepoints there are.
    pub fn depth(&self) -> usize {
        self.progress.lock().levels.len()
    }

    /// Begins a subtransaction. Answers its number: savepoints are counted from 0, inner ones
    /// higher.
    pub fn savepoint(&self) -> usize {
        let mut progress = self.progress.lock();
        let level = Level {
            xid: Xid::NONE,
            subs: progress.subs.len(),
            locks: self.session.lock_count(),
            actions: progress.actions.len(),
        };
        progress.levels.push(level);
        self.current.store(0, Ordering::Relaxed);
        progress.levels.len() - 1
    }

    /// Ends savepoint `level` and those within it; what they did becomes part of what is around.
    pub fn release(&self, level: usize) {
        let mut progress = self.progress.lock();
        progress.levels.truncate(level);
        self.resume(&progress);
    }

    /// Undoes what was done since savepoint `level`, which stays.
    pub fn rollback_to(&self, level: usize) {
        let mut progress = self.progress.lock();
        let mark = &progress.levels[level];
        let (subs, locks, actions) = (mark.subs, mark.locks, mark.actions);
        let undone = progress.subs.split_off(subs);
        let actions = progress.actions.split_off(actions);
        let row_lockers: Vec<Xid> = progress
            .row_lockers
            .extract_if(.., |xid| undone.contains(xid))
            .collect();
        progress.levels.truncate(level + 1);
        progress.levels[level].xid = Xid::NONE;
        self.resume(&progress);
        drop(progress);
        self.mark_aborted(IdPurpose::Sub, &undone, &row_lockers);
        self.run_aborted(actions);
        self.session.unlock_transaction(locks);
    }

    /// What is written next is stamped with the innermost level's id, or the top one's.
    fn resume(&self, progress: &Progress) {
        let xid = match progress.levels.last() {
            Some(level) => level.xid,
            None => self.top_xid().unwrap_or(Xid::NONE),
        };
        self.current.store(xid.0, Ordering::Relaxed);
    }

    fn mark_aborted(&self, part: IdPurpose, xids: &[Xid], row_lockers: &[Xid]) {
        let core = self.core();
        if !xids.is_empty() {
            let _sampled = sampled(Structure::TxnEnd);
            core.running.end(self.session.place, part, xids, || {
                xids.iter().for_each(|&xid| core.status.abort(xid));
            });
            core.clock.note_move();
        }
        for &xid in row_lockers {
            core.rows.release(xid);
        }
        for &xid in xids {
            core.xids.ended(xid);
        }
    }

    /// What a rollback does with what was made, the last first.
    fn run_aborted(&self, actions: Vec<Action>) {
        for action in actions.into_iter().rev() {
            match action {
                Action::Aborted(hook) => hook(),
                Action::FileMade(file) => self.doom_made(file),
                Action::Committed(_) | Action::FileDropped(_) => {}
            }
        }
    }

    fn doom_made(&self, file: FileId) {
        let core = self.core();
        let mut made = core.made.lock();
        // On the list of the doomed before it leaves that of the made: a checkpoint finds it in one
        // of them.
        core.doomed.lock().insert(file, Lsn::ZERO);
        made.remove(&file);
        drop(made);
        core.background.call();
    }

    // Hooks and files

    /// Runs at commit, once it is visible and before any lock is given back. Forgotten by a
    /// rollback.
    pub fn on_commit(&self, hook: impl FnOnce(Csn) + Send + 'static) {
        self.progress
            .lock()
            .actions
            .push(Action::Committed(Box::new(hook)));
    }

    /// Runs when the transaction, or the savepoint it is said in, is rolled back. Last said, first
    /// run.
    pub fn on_abort(&self, hook: impl FnOnce() + Send + 'static) {
        self.progress
            .lock()
            .actions
            .push(Action::Aborted(Box::new(hook)));
    }

    /// Makes an empty relation file, which a rollback (or a crash before the commit) takes away
    /// again.
    pub fn create_file(&self) -> Result<FileId> {
        let file = self.name_file();
        self.make_files(vec![file])()?;
        Ok(file)
    }

    /// Work that makes files which were named, for a thread that may wait for the disk: the
    /// directory may be held there while its names are made durable.
    pub fn make_files(&self, files: Vec<FileId>) -> impl FnOnce() -> Result<()> + Send + use<> {
        let core = self.core().clone();
        move || {
            for file in files {
                core.pool.files().create(file)?;
                // Nobody waited for it, and the transaction was rolled back.
                if !core.made.lock().contains_key(&file) {
                    core.pool.drop_file(file)?;
                }
            }
            Ok(())
        }
    }

    /// Names a relation file that [`Txn::make_files`] is to make, and that a rollback (or a crash
    /// before the commit) takes away again.
    pub fn name_file(&self) -> FileId {
        let core = self.core();
        let file = core.ids.file();
        let xid = self.xid();
        let mut record = RecordBuilder::new();
        record.file_create(xid, file);
        {
            // Held over both: a checkpoint whose redo begins after the record knows the file.
            let _ticket = core.pool.horizon().enter();
            core.wal.insert(&mut record);
            core.made.lock().insert(file, xid);
        }
        self.progress.lock().actions.push(Action::FileMade(file));
        file
    }

    /// The file is removed once this transaction's commit is on disk.
    pub fn drop_file(&self, file: FileId) {
        self.xid();
        self.progress.lock().actions.push(Action::FileDropped(file));
    }

    // Locks

    /// Locks a relation until the transaction (or the savepoint) ends, waiting for it if need be.
    pub async fn lock_relation(&self, relation: Oid, mode: LockMode) -> Result<()> {
        self.lock(LockTag::Relation(relation), mode, WaitPolicy::Block)
            .await
            .map(drop)
    }

    /// Locks anything until the transaction (or the savepoint) ends. `false`: not free, and the
    /// policy is not to wait.
    pub async fn lock(&self, tag: LockTag, mode: LockMode, policy: WaitPolicy) -> Result<bool> {
        self.session
            .lock(tag, mode, LockScope::Transaction, policy)
            .await
    }

    /// As [`Txn::lock`] with [`WaitPolicy::NoWait`], for threads without a runtime.
    pub fn try_lock(&self, tag: LockTag, mode: LockMode) -> bool {
        self.session.try_lock(tag, mode, LockScope::Transaction)
    }

    /// NOWAIT: 55P03 `could not obtain lock on relation "name"` if the lock is not free.
    pub fn lock_relation_nowait(&self, relation: Oid, name: &str, mode: LockMode) -> Result<()> {
        match self.try_lock(LockTag::Relation(relation), mode) {
            true => Ok(()),
            false => Err(not_available(&format!("relation \"{name}\""))),
        }
    }

    /// What is locked until the transaction ends.
    pub fn locks(&self) -> Vec<LockTag> {
        let locks = self.session.transaction_locks().into_iter();
        locks.map(|(tag, _)| tag).collect()
    }

    /// Waits until all who have locked a relation in a mode that `mode` excludes have ended,
    /// without keeping others from it.
    pub async fn wait_for_holders(&self, relation: Oid, mode: LockMode) -> Result<()> {
        let tag = LockTag::Relation(relation);
        Box::pin(self.session.wait_for_holders(tag, mode)).await
    }

    /// Waits until another transaction (or subtransaction) has ended.
    pub async fn wait_for_xid(&self, xid: Xid) -> Result<()> {
        self.session.wait_for_xid(xid, None).await
    }

    /// As [`wait_for_xid`](Txn::wait_for_xid), because of the row whose chain begins at `root`.
    pub(crate) async fn wait_for_row(&self, xid: Xid, file: FileId, root: Tid) -> Result<()> {
        self.session.wait_for_xid(xid, Some((file, root))).await
    }

    /// Whether this transaction has locked this version of a row.
    pub(crate) fn holds_row(&self, file: FileId, tid: Tid) -> bool {
        self.core().rows.is_held(file, tid, self)
    }

    // The end

    /// Commits. With `sync`, the answer comes when the commit is on disk; without, a little before.
    ///
    /// An error before the commit record is in the log rolls back. One after it means that the log
    /// has failed: then nobody knows whether the commit will be found after the restart, and its
    /// severity is PANIC.
    ///
    /// 40001 where a serializable transaction cannot be put in an order with others.
    pub async fn commit(mut self, sync: bool) -> Result<()> {
        let Some(xid) = self.top_xid() else {
            self.commit_unwritten()?;
            return match sync {
                true => self.session.seen_is_durable().await,
                false => Ok(()),
            };
        };
        if let Some(member) = self.serial.get() {
            self.core().serial.prepare(member)?;
        }
        // Not the shared core's: its count of owners would be written by every commit on every
        // core.
        let session = self.session.clone();
        let core = session.core();
        while !core.wal.has_room() {
            core.wal.room_wait().await?;
        }
        let lsn = self.log_commit(core, xid);
        // From here on this is committed, whatever happens to the future.
        let logged = Logged {
            txn: Some(self),
            xid,
        };
        logged.reach_disk(&session, lsn, sync).await
    }

    /// Commits a transaction that has written nothing, where it lies; `false` of another, which is
    /// to be [committed](Self::commit). What it has seen may not be on disk yet
    /// ([`SessionEntry::seen_is_durable`]).
    ///
    /// # Errors
    /// 40001, as for [`commit`](Self::commit).
    pub fn commit_unwritten(&mut self) -> Result<bool> {
        if self.top_xid().is_some() {
            return Ok(false);
        }
        if let Some(member) = self.serial.get() {
            self.core().serial.prepare(member)?;
        }
        let csn = self.core().clock.last();
        self.finish(csn, Vec::new(), &[]);
        Ok(true)
    }

    fn log_commit(&mut self, core: &Core, xid: Xid) -> Lsn {
        let progress = self.progress.get_mut();
        let dropped: Vec<FileId> = progress
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::FileDropped(file) => Some(*file),
                _ => None,
            })
            .collect();
        let mut record = RecordBuilder::new();
        record.commit(
            xid,
            &progress.subs,
            &dropped,
            core.wal.flushed(),
            now_micros() as u64,
        );
        // Held until the status says so: a checkpoint whose redo begins after the record counts it
        // as committed, and knows the files that go with it.
        let _ticket = core.pool.horizon().enter();
        let lsn = core.wal.insert(&mut record);
        core.status.set_logged(xid);
        if !dropped.is_empty() {
            core.doomed
                .lock()
                .extend(dropped.into_iter().map(|file| (file, lsn)));
        }
        lsn
    }

    /// Rolls back. At once, whatever was written: it is simply never seen.
    pub fn abort(mut self) {
        self.end_by_abort();
    }

    /// The same, with the core given to others in between: thousands of files and locks take their
    /// time. Dropped meanwhile, it is done at once.
    pub async fn abort_in_turns(mut self) {
        while !self.abort_some(PIECE) {
            tokio::task::yield_now().await;
        }
    }

    fn end_by_abort(&mut self) {
        while !self.abort_some(usize::MAX) {}
    }

    /// Rolls back: for all to see first, then what it has made, so many of it, then its locks, so
    /// many of them. Whether all is done.
    fn abort_some(&mut self, most: usize) -> bool {
        if !self.undone {
            self.undo();
        }
        let actions = &mut self.progress.get_mut().actions;
        let undone = actions.split_off(actions.len().saturating_sub(most));
        let has_more = !actions.is_empty();
        self.run_aborted(undone);
        if has_more || !self.session.unlock_some(0, most) {
            return false;
        }
        self.leave();
        true
    }

    /// From here on it never was.
    fn undo(&mut self) {
        self.undone = true;
        if let Some(member) = self.serial.get() {
            self.core().serial.rolled_back(member);
        }
        let progress = self.progress.get_mut();
        let mut xids = std::mem::take(&mut progress.subs);
        let row_lockers = std::mem::take(&mut progress.row_lockers);
        xids.extend(self.top_xid());
        self.mark_aborted(IdPurpose::Top, &xids, &row_lockers);
    }

    /// What comes after the status says committed.
    fn finish(&mut self, csn: Csn, xids: Vec<Xid>, row_lockers: &[Xid]) {
        self.settle(csn, xids, row_lockers);
        self.leave();
    }

    /// The same, but for what it holds.
    fn settle(&mut self, csn: Csn, xids: Vec<Xid>, row_lockers: &[Xid]) {
        let core = self.session.core();
        if let Some(member) = self.serial.get() {
            core.serial.committed(member);
        }
        let mut files_gone = false;
        for action in std::mem::take(&mut self.progress.get_mut().actions) {
            match action {
                Action::Committed(hook) => hook(csn),
                Action::FileMade(file) => {
                    core.made.lock().remove(&file);
                }
                Action::FileDropped(_) => files_gone = true,
                Action::Aborted(_) => {}
            }
        }
        for &xid in row_lockers {
            core.rows.release(xid);
        }
        for &xid in &xids {
            core.xids.ended(xid);
        }
        if files_gone || !xids.is_empty() {
            core.background.call();
        }
        self.settled = true;
    }

    /// Gives back what a transaction holds, however it ended.
    fn leave(&mut self) {
        self.fixed.get_mut().take();
        if self.session.top_xid.load(Ordering::Relaxed) != 0 {
            self.session.top_xid.store(0, Ordering::Relaxed);
            // A prepared one has left that thread before.
            if self.holder.is_none() {
                WRITERS.set(WRITERS.get().saturating_sub(1));
            }
        }
        self.session.unlock_transaction(0);
        self.session.set_xact_start(0);
        self.session.in_transaction.store(0, Ordering::Relaxed);
        self.over = true;
    }
}

/// A snapshot of which is not known yet whether it is safe. Dropped before, it is given up.
struct Undecided<'a>(&'a SessionEntry, &'a Member);

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        self.0.core().serial.rolled_back(self.1);
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        match (self.over, self.settled) {
            (true, _) => {}
            (false, true) => self.leave(),
            (false, false) => self.end_by_abort(),
        }
    }
}

impl TransactionLookup for Txn {
    fn is_mine(&self, xid: Xid) -> bool {
        self.top_xid()
            .is_some_and(|top| self.core().status.is_part_of(xid, top))
    }
    fn is_running(&self, xid: Xid) -> bool {
        matches!(
            self.core().status.standing(xid),
            Standing::InProgress { .. }
        )
    }
}

impl TxContext for Txn {
    #[inline]
    fn xid(&self) -> Xid {
        match self.current.load(Ordering::Relaxed) {
            0 => self.assign(),
            xid => Xid(xid),
        }
    }
    fn cid(&self) -> Cid {
        Cid(self.cid.load(Ordering::Relaxed))
    }
    fn is_mine(&self, xid: Xid) -> bool {
        TransactionLookup::is_mine(self, xid)
    }
    fn status(&self, xid: Xid) -> XidStatus {
        self.core().status.standing(xid).into()
    }
    fn horizon(&self) -> Csn {
        self.core().clock.horizon()
    }
    fn prunable(&self) -> Csn {
        self.core().prunable()
    }
    fn gaps(&self) -> Gaps {
        self.core().clock.gaps()
    }
    fn moves(&self) -> Option<u32> {
        Some(self.core().moves())
    }
    fn row_lock_conflict(&self, file: FileId, tid: Tid, mode: RowLockMode) -> Option<Xid> {
        self.core().rows.conflict(file, tid, mode, self)
    }
    fn row_lock_acquire(&self, file: FileId, tid: Tid, mode: RowLockMode) -> Option<Xid> {
        let xid = self.xid();
        let holder = self.core().rows.acquire(file, tid, mode, xid, self);
        let mut progress = self.progress.lock();
        if holder.is_none() && !progress.row_lockers.contains(&xid) {
            progress.row_lockers.push(xid);
        }
        holder
    }
    fn row_moved(&self, file: FileId, old: Tid, new: Tid) {
        self.core().rows.moved(file, old, new, self);
    }
}
