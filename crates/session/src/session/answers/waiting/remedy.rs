//! What to change, in a sentence, about a wait.
//!
//! What is said depends on what else is known: a page read is slow because the disk is, or frequent
//! because the pool is small, and these are cured by different things.

use throng_buffer::PoolStats;
use throng_catalog::system::HolderInfo;
use throng_observe::{PresentWait, Scope, WaitEvent, WaitRow};
use throng_values::settings::Id;

use crate::session::answers::eval_host::SessionHost;

/// What remedies depend on.
pub(super) struct Remedies {
    shared_buffers: String,
    /// The pool is full, and half of the pages that came, or more, made others leave.
    pool_is_too_small: bool,
    /// What one takes on average, in nanoseconds, as the server's own threads see it.
    read: Option<u64>,
    write: Option<u64>,
    sync: Option<u64>,
}

/// A disk of today reads or writes a page in a tenth of that.
const SLOW_PAGE: u64 = 2_000_000;
/// A sync that takes longer is what commits spend their time on, however they are gathered.
const SLOW_SYNC: u64 = 5_000_000;

impl Remedies {
    /// `rows` are all waits that there were.
    pub fn new(host: &SessionHost<'_>, rows: &[WaitRow]) -> Remedies {
        let average = |event| {
            let of_event = |row: &&WaitRow| row.event == event && row.scope == Scope::Background;
            let (count, nanos) = rows
                .iter()
                .filter(of_event)
                .fold((0, 0), |(count, nanos), row| {
                    (count + row.count, nanos + row.nanos)
                });
            (count > 0).then(|| nanos / count)
        };
        let engine = &host.session.engine;
        let pool = engine.store.pool.stats();
        Remedies {
            shared_buffers: engine.setting(Id::SharedBuffers),
            pool_is_too_small: is_full(&pool) && pool.evictions * 2 >= pool.reads,
            read: average(WaitEvent::PageRead),
            write: average(WaitEvent::PageWrite),
            sync: average(WaitEvent::WalSync),
        }
    }

    pub fn of(&self, row: &WaitRow, holder: &HolderInfo) -> String {
        self.of_event(row.event, holder)
    }

    pub fn of_present(&self, wait: PresentWait, holder: &HolderInfo) -> String {
        self.of_event(wait.event, holder)
    }

    fn of_event(&self, event: WaitEvent, holder: &HolderInfo) -> String {
        let fixed = match event {
            WaitEvent::PageRead | WaitEvent::PageArrival => return self.reading(),
            WaitEvent::FreeFrame => return self.making_room(),
            WaitEvent::WalFlush | WaitEvent::WalSync => return self.flushing(),
            WaitEvent::LockTransaction | WaitEvent::LockTuple => return row_lock(holder),
            WaitEvent::LockRelation | WaitEvent::LockObject => {
                "Run what takes strong locks (ALTER, TRUNCATE, VACUUM FULL, LOCK TABLE) when few are about, with lock_timeout set, and end its transaction at once."
            }
            WaitEvent::LockAdvisory => {
                "The application takes this lock itself: hold it for less time, or use more keys."
            }
            WaitEvent::LockExtend | WaitEvent::Extend => {
                "Many add rows to this relation at once: load with COPY, which makes it longer by many pages at a time; a slow disk shows in DataFileExtend."
            }
            WaitEvent::LatchShared | WaitEvent::LatchExclusive => {
                "Many change this one page: spread the rows (a lower fillfactor, several counters instead of one, keys that do not all grow at the same end)."
            }
            WaitEvent::ProcArray => {
                "Snapshots walk over all sessions (lab_snapshot = walk): take the default, or fewer connections."
            }
            WaitEvent::SpinLock => {
                "Many cores enter this at once, or its holder lost its core: run fewer threads than cores; see throng.structures."
            }
            WaitEvent::CoreQueue => {
                "The cores are busy: give the server more of them (--cores), or find what they are busy with (throng profile, EXPLAIN ANALYZE)."
            }
            WaitEvent::PageWrite | WaitEvent::DataFlush | WaitEvent::DataSync => {
                "Pages are written out: raise max_wal_size or checkpoint_timeout so that checkpoints come less often, or use a faster disk."
            }
            WaitEvent::WalWrite => "The log's disk is slow to take writes: put it on a faster one.",
            WaitEvent::WalInsert => {
                "More is logged than the disk takes: load in fewer, larger transactions, or put the log on a faster disk."
            }
            WaitEvent::WalRead => "The log is being read by recovery: take checkpoints more often.",
            WaitEvent::CommitDelay => {
                "Commits wait for company: lower commit_delay or raise commit_siblings."
            }
            WaitEvent::AnalyticsQueue | WaitEvent::AnalyticsRun => {
                "A big query runs on the analytics pool: an index may spare it the scan, or raise analytics_above_cost to run it in the session."
            }
            WaitEvent::SafeSnapshot => {
                "A DEFERRABLE transaction waits for serializable writers that ran when it began: have them end sooner, or begin it without DEFERRABLE."
            }
            WaitEvent::DatabaseInUse => {
                "Sessions still use a database that is to go: close them, or DROP DATABASE ... WITH (FORCE)."
            }
            WaitEvent::SyncRep => {
                "Commits wait for standbys: look at pg_stat_replication, or change synchronous_standby_names or synchronous_commit."
            }
            WaitEvent::ArchiveCommand | WaitEvent::RestoreCommand => {
                "The archive's command takes its time: look at what archive_command or restore_command does."
            }
            WaitEvent::CheckpointDone => "A checkpoint was asked for: leave them to the server.",
            WaitEvent::ClientWrite => {
                "The client, or the network, takes its results slowly: fetch fewer rows, or fetch them through a cursor."
            }
            WaitEvent::Truncate => "A relation is cut: nothing to change unless the disk is slow.",
            // What holds nothing up needs none.
            WaitEvent::ClientRead
            | WaitEvent::Sleep
            | WaitEvent::CheckpointPace
            | WaitEvent::VacuumDelay
            | WaitEvent::FlusherIdle
            | WaitEvent::PageWriterIdle
            | WaitEvent::CheckpointerIdle
            | WaitEvent::ArchiverIdle
            | WaitEvent::WalSenderIdle
            | WaitEvent::CleanerIdle => "",
        };
        fixed.to_owned()
    }

    fn reading(&self) -> String {
        let small = format!(
            "The pool (shared_buffers = {}) is smaller than what is read: raise shared_buffers, or read less (an index, fewer columns' tables).",
            self.shared_buffers
        );
        match self.read {
            Some(read) if read > SLOW_PAGE && self.pool_is_too_small => {
                format!("The disk takes {} a page: use a faster one. {small}", ms(read))
            }
            Some(read) if read > SLOW_PAGE => format!(
                "The disk takes {} a page: use a faster one, or read what will be needed before it is.",
                ms(read)
            ),
            _ if self.pool_is_too_small => small,
            _ => "Pages are read for the first time since the start: nothing to change if that passes.".to_owned(),
        }
    }

    fn making_room(&self) -> String {
        let pool = format!(
            "No page in the pool (shared_buffers = {}) is free: raise shared_buffers.",
            self.shared_buffers
        );
        match self.write {
            Some(write) if write > SLOW_PAGE => {
                format!(
                    "{pool} The disk takes {} to write one: use a faster one.",
                    ms(write)
                )
            }
            _ => pool,
        }
    }

    fn flushing(&self) -> String {
        match self.sync {
            Some(sync) if sync > SLOW_SYNC => format!(
                "The disk takes {} to make the log durable: put it on a faster one; where the last commits may be lost in a crash, set synchronous_commit = off.",
                ms(sync)
            ),
            _ => "Commits wait for the disk: commit more work at once; where the last commits may be lost in a crash, set synchronous_commit = off.".to_owned(),
        }
    }
}

/// But for the few frames that are always kept ready.
fn is_full(pool: &PoolStats) -> bool {
    pool.valid * 4 >= pool.frames * 3
}

fn ms(nanos: u64) -> String {
    format!("{:.1} ms", nanos as f64 / 1e6)
}

fn row_lock(holder: &HolderInfo) -> String {
    let shorter = "Shorten the transaction that changes the row: change contended rows last, and commit at once.";
    match (holder.pid, holder.state.as_deref()) {
        (Some(pid), Some(state)) if state.starts_with("idle in transaction") => format!(
            "Session {pid} has left its transaction open: have the application commit, or set idle_in_transaction_session_timeout; to end it now, SELECT pg_terminate_backend({pid})."
        ),
        _ => shorter.to_owned(),
    }
}
