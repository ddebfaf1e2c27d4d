//! Checkpoints: from time to time everything is on disk up to some point of the log, and recovery
//! begins there.
//!
//! ```text
//!   log  ──────────●───────────────────────────────●──────────►
//!                  R: redo begins here             the control file names R
//!                  │ pages dirty at R are written, a little at a time, while everybody goes on │
//! ```
//!
//! Due every `checkpoint_timeout` if anything was logged, earlier if the log would outgrow
//! `max_wal_size` or the disk has no room for more of it (a checkpoint frees some), and on demand.
//! Writes are spread over `checkpoint_completion_target` of the time there is until the next one;
//! on demand, at shutdown and after recovery they are not.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use throng_sync::atomic::{AtomicBool, Ordering};

use throng_disk::Disk;
use throng_observe::{Counter, Object, WaitEvent, count, holder_named, stop_point, waiting};
use throng_sync::Parker;
use throng_sync::lock::Mutex;
use throng_types::{Error, Lsn, Result};
use throng_wal::{CheckpointRecord, RecordBuilder};

use crate::control::{Control, StartRequirements};
use crate::session::Core;
use crate::txn::prepared::PreparedTransactions;
use crate::xact::XactFiles;

/// How often a spread checkpoint looks whether it is ahead of its schedule.
const PACE: Duration = Duration::from_millis(100);
/// How often it is looked whether one is due.
const LOOK: Duration = Duration::from_millis(500);

/// Makes checkpoints, one at a time.
pub(crate) struct Checkpointer {
    disk: Arc<dyn Disk>,
    prepared: Arc<PreparedTransactions>,
    parker: Parker,
    stop: AtomicBool,
    /// Somebody waits: write as fast as can be.
    urgent: AtomicBool,
    requests: Mutex<Requests>,
    /// Held while one is made.
    state: Mutex<CheckpointState>,
    /// The control file as the last complete one wrote it.
    completed: Mutex<Control>,
}

/// Checkpoints are numbered as they begin.
#[derive(Default)]
struct Requests {
    begun: u64,
    ended: u64,
    /// The least number that somebody waits for.
    wanted: u64,
    /// What became of the last one that ended.
    failure: Option<Error>,
    wakers: Vec<Waker>,
}

struct CheckpointState {
    control: Control,
    xact: XactFiles,
    last: Instant,
}

impl Checkpointer {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        control: Control,
        xact: XactFiles,
        prepared: Arc<PreparedTransactions>,
    ) -> Checkpointer {
        Checkpointer {
            disk,
            prepared,
            parker: Parker::new(),
            stop: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
            requests: Mutex::default(),
            completed: Mutex::new(control.clone()),
            state: Mutex::new(CheckpointState {
                control,
                xact,
                last: Instant::now(),
            }),
        }
    }

    pub(crate) fn identifier(&self) -> u64 {
        self.completed.lock().identifier
    }

    /// Where a start begins now.
    pub(crate) fn redo_point(&self) -> Lsn {
        self.completed.lock().redo
    }

    /// What the control file says.
    pub(crate) fn completed(&self) -> Control {
        self.completed.lock().clone()
    }

    /// Makes a checkpoint on this thread, without pausing.
    pub(crate) fn run_now(&self, core: &Core, clean: bool) -> Result<()> {
        // One that is under way need not take its time.
        self.urgent.store(true, Ordering::Relaxed);
        let number = self.begin(Counter::CheckpointRequested);
        let result = self.make(core, clean, false);
        self.end(number, &result);
        result
    }

    /// `cause` is what counts it.
    fn begin(&self, cause: Counter) -> u64 {
        count(cause, 1);
        let mut requests = self.requests.lock();
        requests.begun += 1;
        requests.begun
    }

    fn end(&self, number: u64, result: &Result<()>) {
        let mut requests = self.requests.lock();
        requests.ended = requests.ended.max(number);
        requests.failure = result.as_ref().err().cloned();
        if requests.wanted <= requests.ended {
            self.urgent.store(false, Ordering::Relaxed);
        }
        requests.wakers.drain(..).for_each(Waker::wake);
    }

    fn make(&self, core: &Core, clean: bool, paced: bool) -> Result<()> {
        let mut state = self.state.lock();
        let began = Instant::now();
        // 1. The redo point. What was logged before it is on pages that are marked dirty, in the
        //    status, and in the lists.
        let redo = core.pool.horizon().begin_checkpoint(|| core.wal.inserted());
        let next = core.ids.limits();
        let made: Vec<_> = core.made.lock().iter().map(|(f, xid)| (*xid, *f)).collect();
        let doomed = core.doomed.lock().keys().copied().collect();
        stop_point!("checkpoint.redo");

        // 2. The pages dirty then, spread over the time there is.
        let schedule = Schedule::new(core, began, redo);
        core.pool.flush_for_checkpoint(&mut |done, total| {
            if paced {
                self.keep_pace(core, &schedule, done, total);
            }
        })?;

        count(
            Counter::CheckpointWriteMs,
            began.elapsed().as_millis() as u64,
        );

        // 3. The files they are in, and their names: redo will not make those that were named
        //    before its point.
        for (_, file) in &made {
            core.make_if_named(*file)?;
        }
        if clean {
            core.pool.files().trim()?;
        }
        // Before the sync, which makes these lengths durable.
        let files = core.pool.files().census();
        let written = Instant::now();
        core.pool.files().sync_all_dirty()?;
        core.pool.files().sync_names()?;
        count(
            Counter::CheckpointSyncMs,
            written.elapsed().as_millis() as u64,
        );
        stop_point!("checkpoint.synced");

        // 4. How transactions stand: those that committed since are among them, so their records go
        //    to disk first.
        self.prepared.log_again(core);
        let status = state.xact.collect(&core.status, core.ids.next_xid());
        let mut record = RecordBuilder::new();
        let identifier = state.control.identifier;
        record.checkpoint(CheckpointRecord {
            redo,
            next,
            identifier,
        });
        let end = core.wal.insert(&mut record);
        core.wal.flush_blocking(end.max(core.wal.inserted()))?;
        let xact_files = state.xact.write(&*self.disk, status, identifier, end)?;

        // 5. The control file. From here on recovery begins at the new redo point.
        let control = Control {
            clean,
            redo,
            next,
            made,
            doomed,
            kept: StartRequirements {
                checkpoint: end,
                xact_files,
                files,
            },
            identifier,
            wal_segment_size: state.control.wal_segment_size,
            history: core.wal.config().history.clone(),
            minimum_recovery: Lsn::ZERO,
        };
        control.write(&*self.disk)?;
        *self.completed.lock() = control.clone();
        state.control = control;
        state.last = began;
        count(Counter::CheckpointDone, 1);

        // 6. The log before the redo point is needed no more, but by who keeps it.
        let most = core.config.max_slot_wal_keep_size.load(Ordering::Relaxed);
        core.slots.checkpoint((most != u64::MAX).then_some(most))?;
        let keep = core.config.wal_keep_size.load(Ordering::Relaxed);
        let kept_from = Lsn(core.wal.inserted().0.saturating_sub(keep));
        core.wal.recycle_before(redo.min(kept_from))
    }

    /// A server runs on this directory: recovery, should there be one, does not take it for one
    /// that was stopped.
    pub(crate) fn mark_in_use(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.control.clean {
            state.control.clean = false;
            state.control.write(&*self.disk)?;
        }
        Ok(())
    }

    fn keep_pace(&self, core: &Core, schedule: &Schedule, done: usize, total: usize) {
        while !self.urgent.load(Ordering::Relaxed)
            && !self.stop.load(Ordering::Relaxed)
            && schedule.is_ahead(core, done as f64 / total.max(1) as f64)
        {
            let _wait = waiting(WaitEvent::CheckpointPace, Object::lsn(schedule.redo.0));
            self.parker.park_timeout(PACE);
        }
    }

    /// Waits until a checkpoint that begins after this call is complete. `urgent`: it does not take
    /// its time.
    pub(crate) async fn wait(&self, urgent: bool) -> Result<()> {
        let wanted = {
            let mut requests = self.requests.lock();
            let wanted = requests.begun + 1;
            requests.wanted = requests.wanted.max(wanted);
            wanted
        };
        if urgent {
            self.urgent.store(true, Ordering::Relaxed);
        }
        self.parker.unpark();
        let _wait =
            waiting(WaitEvent::CheckpointDone, Object::NONE).held_by(holder_named(CHECKPOINTER));
        std::future::poll_fn(|cx| {
            let mut requests = self.requests.lock();
            if requests.ended >= wanted {
                return Poll::Ready(requests.failure.clone().map_or(Ok(()), Err));
            }
            requests.wakers.push(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// The background thread. Errors go to `report`; the next checkpoint tries again.
    pub(crate) fn run(&self, core: &Core, report: &dyn Fn(&Error)) {
        while !self.stop.load(Ordering::Acquire) {
            let Some(cause) = self.due(core) else {
                let _idle = waiting(WaitEvent::CheckpointerIdle, Object::NONE);
                self.parker.park_timeout(LOOK);
                continue;
            };
            let number = self.begin(cause);
            let result = self.make(core, false, core.wal.check_space().is_ok());
            self.end(number, &result);
            if let Err(error) = &result {
                report(error);
                // Not again at once: a disk that is full stays full for a while.
                self.state.lock().last = Instant::now();
                self.parker.park_timeout(LOOK);
            }
        }
    }

    /// Why a checkpoint is due, if one is.
    fn due(&self, core: &Core) -> Option<Counter> {
        let is_wanted = {
            let requests = self.requests.lock();
            requests.wanted > requests.begun
        };
        if is_wanted {
            return Some(Counter::CheckpointRequested);
        }
        let state = self.state.lock();
        let logged = core.wal.inserted().0.saturating_sub(state.control.redo.0);
        let timeout =
            Duration::from_millis(core.config.checkpoint_timeout_ms.load(Ordering::Relaxed));
        // The record of the last checkpoint itself does not make the next one due.
        if logged <= IDLE_LOG {
            None
        } else if logged >= log_budget(core) || core.wal.check_space().is_err() {
            Some(Counter::CheckpointRequested)
        } else {
            (state.last.elapsed() >= timeout).then_some(Counter::CheckpointTimed)
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.parker.unpark();
    }
}

/// The checkpointer's thread.
pub(crate) const CHECKPOINTER: &str = "checkpointer";

/// Less log than this since the redo point is the last checkpoint's own record, or as good as
/// nothing.
const IDLE_LOG: u64 = 128;

fn completion_target(core: &Core) -> f64 {
    core.config
        .checkpoint_completion_target
        .load(Ordering::Relaxed) as f64
        / 1000.0
}

/// How much log may come before a checkpoint begins. While it runs more comes, and the log since
/// the last one's redo point is still needed: so that all of it stays below `max_wal_size`, it
/// begins well before (as PostgreSQL reckons).
fn log_budget(core: &Core) -> u64 {
    (core.config.max_wal_size.load(Ordering::Relaxed) as f64 / (1.0 + completion_target(core)))
        as u64
}

/// By when how much of a checkpoint is to be written.
struct Schedule {
    began: Instant,
    redo: Lsn,
    /// The time it may take.
    span: Duration,
    /// The log that may come meanwhile.
    log: f64,
}

impl Schedule {
    fn new(core: &Core, began: Instant, redo: Lsn) -> Schedule {
        let target = completion_target(core);
        let timeout =
            Duration::from_millis(core.config.checkpoint_timeout_ms.load(Ordering::Relaxed));
        Schedule {
            began,
            redo,
            span: timeout.mul_f64(target),
            log: log_budget(core) as f64 * target,
        }
    }

    /// Whether `done` (of 1) is more than time and log ask for by now.
    fn is_ahead(&self, core: &Core, done: f64) -> bool {
        let logged = core.wal.inserted().0.saturating_sub(self.redo.0) as f64;
        done * self.span.as_secs_f64() > self.began.elapsed().as_secs_f64()
            && done * self.log > logged
    }
}
