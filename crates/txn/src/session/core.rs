//! What all sessions share: clock, status, locks, ids, and the work put off until the log allows
//! it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use throng_sync::atomic::{AtomicBool, AtomicU64, Ordering};

use throng_buffer::Pool;
use throng_sync::Parker;
use throng_sync::lock::Mutex;
use throng_types::{Csn, FileId, Lsn, Result, Xid};
use throng_wal::{NextIds, RecordBuilder, Wal};

use super::{Registry, SessionEntry};
use crate::active::{ActiveTransactions, Form, SnapshotForm};
use crate::clock::Clock;
use crate::ids::Ids;
use crate::lock::LockTag;
use crate::lock::fast::StrongLocks;
use crate::lock::table::LockTable;
use crate::lock::xid::XidWaits;
use crate::rowlock::RowLocks;
use crate::slots::ReplicationSlots;
use crate::ssi::Ssi;
use crate::status::StatusLog;
use crate::synchronous::SynchronousReplication;

/// Knobs that can be turned while the server runs.
#[derive(Debug)]
pub struct TxnConfig {
    /// `deadlock_timeout`, in milliseconds.
    pub deadlock_timeout_ms: AtomicU64,
    /// `checkpoint_timeout`, in milliseconds.
    pub checkpoint_timeout_ms: AtomicU64,
    /// `checkpoint_completion_target`, in thousandths.
    pub checkpoint_completion_target: AtomicU64,
    /// `max_wal_size`, in bytes: how much log may come after a checkpoint before the next one is
    /// due.
    pub max_wal_size: AtomicU64,
    /// `wal_keep_size`, in bytes: so much of the log is kept beyond what a start needs.
    pub wal_keep_size: AtomicU64,
    /// `max_slot_wal_keep_size`, in bytes: a slot keeps no more; [`u64::MAX`]: as much as comes.
    pub max_slot_wal_keep_size: AtomicU64,
    /// `lab_snapshot`. Fixed while the server runs.
    pub snapshot: SnapshotForm,
}

impl Default for TxnConfig {
    /// PostgreSQL's defaults.
    fn default() -> TxnConfig {
        TxnConfig {
            deadlock_timeout_ms: AtomicU64::new(1000),
            checkpoint_timeout_ms: AtomicU64::new(300_000),
            checkpoint_completion_target: AtomicU64::new(900),
            max_wal_size: AtomicU64::new(1 << 30),
            wal_keep_size: AtomicU64::new(0),
            max_slot_wal_keep_size: AtomicU64::new(u64::MAX),
            snapshot: SnapshotForm::default(),
        }
    }
}

impl TxnConfig {
    pub(crate) fn deadlock_timeout(&self) -> Duration {
        Duration::from_millis(self.deadlock_timeout_ms.load(Ordering::Relaxed))
    }
}

/// What the lock manager asks of the room that has a catalog and a log.
pub trait LockReporter: Send + Sync {
    /// How messages name what is locked: "relation 16384 of database 5".
    fn describe(&self, tag: &LockTag) -> String;
    /// A line for the server's log, said by the session that waits.
    fn log(&self, session: &SessionEntry, message: &str, detail: Option<&str>);
}

pub(crate) struct Core {
    pub(crate) config: TxnConfig,
    pub(crate) clock: Clock,
    pub(crate) status: StatusLog,
    pub(crate) running: ActiveTransactions,
    pub(crate) ids: Ids,
    pub(crate) registry: Registry,
    pub(crate) locks: LockTable,
    pub(crate) strong: StrongLocks,
    pub(crate) xids: XidWaits,
    pub(crate) rows: RowLocks,
    pub(crate) serial: Ssi,
    pub(crate) lock_reporter: OnceLock<Box<dyn LockReporter>>,
    /// Held by the one session that looks for a deadlock.
    pub(crate) detecting: Mutex<()>,
    /// Held by the one thread that moves the horizon.
    pub(crate) advancing: Mutex<()>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) slots: ReplicationSlots,
    pub(crate) synchronous: SynchronousReplication,
    /// Files made by transactions that have not ended: a crash leaves them to recovery.
    pub(crate) made: Mutex<HashMap<FileId, Xid>>,
    /// Files to be removed, each once the log is on disk up to there.
    pub(crate) doomed: Mutex<HashMap<FileId, Lsn>>,
    pub(crate) background: Background,
}

/// The call bell of the background thread that moves the horizon.
#[derive(Default)]
pub(crate) struct Background {
    pub(crate) parker: Parker,
    pub(crate) asleep: AtomicBool,
    pub(crate) stop: AtomicBool,
}

impl Background {
    /// There is something to do. One load when the thread is awake.
    #[inline]
    pub(crate) fn call(&self) {
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            self.parker.unpark();
        }
    }
}

impl Core {
    pub(crate) fn new(
        config: TxnConfig,
        status: StatusLog,
        next: NextIds,
        running: &[Xid],
        wal: Arc<Wal>,
        pool: Arc<Pool>,
        slots: ReplicationSlots,
    ) -> Core {
        let log = wal.clone();
        let ids = Ids::new(
            next,
            Box::new(move |next| {
                let mut record = RecordBuilder::new();
                record.next_ids(next);
                log.insert(&mut record);
            }),
        );
        Core {
            running: ActiveTransactions::new(config.snapshot, next.xid, running),
            config,
            clock: Clock::default(),
            status,
            ids,
            registry: Registry::new(),
            locks: LockTable::new(),
            strong: StrongLocks::new(),
            xids: XidWaits::new(),
            rows: RowLocks::new(),
            serial: Ssi::new(),
            lock_reporter: OnceLock::new(),
            detecting: Mutex::new(()),
            advancing: Mutex::new(()),
            wal,
            pool,
            slots,
            synchronous: SynchronousReplication::default(),
            made: Mutex::default(),
            doomed: Mutex::default(),
            background: Background::default(),
        }
    }

    /// Notes how far the log is. One caller at a time: who holds `advancing`.
    pub(crate) fn note_log(&self) {
        self.clock
            .note_log(|| self.wal.inserted(), self.wal.flushed());
    }

    /// Moves the horizon and reduces status that nobody needs in full. One caller at a time: who
    /// holds `advancing`.
    pub(crate) fn advance_horizon(&self) -> Csn {
        self.note_log();
        let horizon = self.clock.advance();
        self.status.trim(self.ids.next_xid(), horizon);
        self.running.tidy();
        horizon
    }

    /// Commits at or before this are seen by every snapshot there is or will be, as of now where
    /// many have come of late: else a row that a crowd changes fills its page between two ticks of
    /// the background thread.
    pub(crate) fn prunable(&self) -> Csn {
        if self.clock.is_worth_advancing()
            && let Some(_turn) = self.advancing.try_lock()
        {
            self.clock.advance();
        }
        self.clock.prunable()
    }

    /// Moves on with whatever may make more prunable, as of now where many commits have come of
    /// late.
    pub(crate) fn moves(&self) -> u32 {
        self.prunable();
        self.clock.moves()
    }

    /// Whether a commit is on disk and seen by every snapshot there is or will be, as of now where
    /// many have come of late.
    pub(crate) fn is_past(&self, csn: Csn) -> bool {
        csn <= self.clock.horizon() || {
            self.prunable();
            csn <= self.clock.horizon()
        }
    }

    /// Nothing is left to do for the background thread.
    pub(crate) fn is_settled(&self) -> bool {
        self.clock.is_settled() && self.doomed.lock().is_empty()
    }

    /// Makes a file that a transaction under way has named, unless it is there.
    pub(crate) fn make_if_named(&self, file: FileId) -> Result<()> {
        // Held meanwhile: nobody gives it up before it is there to be removed.
        let made = self.made.lock();
        if made.contains_key(&file) {
            self.pool.files().create(file)?;
        }
        Ok(())
    }

    /// Removes the files whose end is on disk.
    pub(crate) fn remove_doomed(&self) -> Result<()> {
        let flushed = self.wal.flushed();
        let doomed = self.doomed.lock();
        let ready = doomed.iter().filter(|(_, lsn)| **lsn <= flushed);
        let ready: Vec<FileId> = ready.map(|(file, _)| *file).collect();
        drop(doomed);
        for file in ready {
            self.pool.drop_file(file)?;
            // Off the list when it is gone: a checkpoint that does not find it there makes its
            // removal durable.
            self.doomed.lock().remove(&file);
        }
        Ok(())
    }
}
