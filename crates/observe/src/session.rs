//! A session's task, seen from outside: what it waits for, whether it is queued for its core, how
//! long it ran.
//!
//! ```text
//!          wake              poll                pending
//!  waiting ───► queued for core ───► running ──────────► waiting
//!        └ the wait ends here: what follows is the queue's, not its
//! ```
//!
//! [`Accounted`] wraps the task's future. Its waker notes when the session became runnable; its
//! poll adds the time from there to the core's queue, and the time that the poll itself takes to
//! the running time. It was queued only if others ran before it: the time the system takes to wake
//! a thread that had nothing to do belongs to the wait. If the thread was blocked meanwhile (by a
//! latch that another session on it waited for, say) that part of the queueing is counted as a wait
//! for what blocked it: the whole core waited for that.
//!
//! A session becomes runnable when its event loop learns of it: what a client's bytes wait in the
//! socket while the loop is busy with others is not seen.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::clock::now_nanos;
use crate::event::WaitEvent;
use crate::histogram::add;
use crate::object::{Holder, Object};
use crate::present::{Present, PresentWait};
use crate::record::record_held;
use crate::slots::{self, Slot};
use crate::stall;
use throng_sync::fetch_span_ahead;

/// What others see of one session's waiting. Written by the thread that runs the session, on lines
/// of its own.
#[repr(align(128))]
pub struct SessionWaits {
    pid: u32,
    pub(crate) present: Present,
    /// When it became runnable; 0: it runs, or waits.
    runnable: AtomicU64,
    /// What its thread's `blocked` and `running` were then.
    blocked_before: AtomicU64,
    running_before: AtomicU64,
    /// The thread that last ran it, and one.
    thread: AtomicU32,
}

impl SessionWaits {
    /// For the session that is known as `pid`.
    pub fn new(pid: u32) -> Arc<SessionWaits> {
        Arc::new(SessionWaits {
            pid,
            present: Present::new(),
            runnable: AtomicU64::new(0),
            blocked_before: AtomicU64::new(0),
            running_before: AtomicU64::new(0),
            thread: AtomicU32::new(0),
        })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it waits for now: its own wait, its place in the core's queue, or what blocks the
    /// thread that runs it.
    pub fn present(&self) -> Option<PresentWait> {
        let slot = self.slot();
        let runs = slot.is_some_and(|slot| slot.session.load(Ordering::Relaxed) == self.pid);
        if runs {
            return slot.and_then(|slot| slot.present.get());
        }
        match self.runnable.load(Ordering::Relaxed) {
            0 => self.present.get(),
            since => Some(self.queued(slot, since)),
        }
    }

    fn queued(&self, slot: Option<&'static Slot>, since: u64) -> PresentWait {
        let core = slot.map_or(0, |slot| slot.core.load(Ordering::Relaxed));
        let running = slot.map_or(0, |slot| slot.session.load(Ordering::Relaxed));
        PresentWait {
            event: WaitEvent::CoreQueue,
            object: core.checked_sub(1).map_or(Object::NONE, Object::core),
            since,
            holder: match running {
                0 => Holder::NONE,
                pid => Holder::session(pid),
            },
        }
    }

    fn slot(&self) -> Option<&'static Slot> {
        let index = self.thread.load(Ordering::Relaxed).checked_sub(1)?;
        slots::at(index as usize)
    }

    /// Somebody woke it. On any thread; of two at once either may be the first.
    fn note_runnable(&self) {
        if slots::is_tracking() && self.runnable.load(Ordering::Relaxed) == 0 {
            if let Some(slot) = self.slot() {
                let blocked = slot.blocked.load(Ordering::Relaxed);
                let running = slot.running.load(Ordering::Relaxed);
                self.blocked_before.store(blocked, Ordering::Relaxed);
                self.running_before.store(running, Ordering::Relaxed);
            }
            self.runnable.store(now_nanos(), Ordering::Relaxed);
        }
    }
}

thread_local! {
    /// The session that runs on this thread.
    static CURRENT: RefCell<Option<Arc<SessionWaits>>> = const { RefCell::new(None) };
    /// When the session that runs now became runnable; 0: not known. Waits that end in this poll
    /// ended then.
    static RUNNABLE: Cell<u64> = const { Cell::new(0) };
    /// When the session that runs now last began to wait: as a rule the last thing it does, so its
    /// poll's end needs no other look at the clock.
    static SUSPENDED: Cell<u64> = const { Cell::new(0) };
    /// The session that ran last on this thread, and how many times in a row, up to [`ALONE`].
    static IN_A_ROW: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Bytes of a session's future from its beginning that are asked for before it runs: most of one
/// that keeps its statements elsewhere.
const FETCHED: usize = 1024;

/// A session that ran so many times with no other in between has its thread to itself.
const ALONE: u32 = 16;

/// Whether this thread has been running one session, and nobody else, for some time: then it keeps
/// nobody waiting who blocks it for less than a turn.
#[inline]
pub fn serves_one_session() -> bool {
    IN_A_ROW.get().1 == ALONE
}

#[inline]
fn note_run(pid: u32) {
    let (last, times) = IN_A_ROW.get();
    IN_A_ROW.set((pid, if last == pid { ALONE.min(times + 1) } else { 0 }));
}

/// Does something with the session that runs on this thread, if one does.
#[inline]
pub(crate) fn with_current<R>(act: impl FnOnce(Option<&SessionWaits>) -> R) -> R {
    CURRENT.with_borrow(|current| act(current.as_deref()))
}

/// The time at which a wait of the session that runs here begins.
#[inline]
pub(crate) fn began() -> u64 {
    let now = now_nanos();
    SUSPENDED.set(now);
    now
}

/// When a wait that is found to be over now, and began at `since`, was over.
#[inline]
pub(crate) fn ended(since: u64) -> u64 {
    match RUNNABLE.get() {
        runnable if runnable > since => runnable,
        _ => now_nanos(),
    }
}

/// A session's task with its time accounted for. Made by [`accounted`].
pub struct Accounted<F> {
    /// None while it runs: then it is the thread's.
    waits: Option<Arc<SessionWaits>>,
    waker: Option<(Arc<SessionWaker>, Waker)>,
    future: Pin<Box<F>>,
}

/// Runs `future`, all that a session does, accounting its time to `waits` and the threads that poll
/// it.
pub fn accounted<F: Future>(waits: Arc<SessionWaits>, future: F) -> Accounted<F> {
    Accounted {
        waits: Some(waits),
        waker: None,
        future: Box::pin(future),
    }
}

struct SessionWaker {
    waits: Arc<SessionWaits>,
    task: Waker,
}

impl Wake for SessionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        // First: the task may run before we are back.
        self.waits.note_runnable();
        self.task.wake_by_ref();
    }
}

/// While a session runs on this thread; undone also when it panics.
struct RunningTask<'a> {
    slot: &'static Slot,
    since: u64,
    /// Where the session's waits go back to.
    home: &'a mut Option<Arc<SessionWaits>>,
    /// The session inside whose poll this is, where one is.
    before: Option<Arc<SessionWaits>>,
}

impl<'a> RunningTask<'a> {
    fn enter(home: &'a mut Option<Arc<SessionWaits>>) -> RunningTask<'a> {
        let slot = slots::mine_current();
        let tracking = slots::is_tracking();
        let since = if tracking { now_nanos() } else { 0 };
        if let Some(waits) = home {
            RUNNABLE.set(waits.became_runnable(slot, since));
            let index = throng_sync::thread_index() as u32 + 1;
            waits.thread.store(index, Ordering::Relaxed);
            slot.session.store(waits.pid, Ordering::Relaxed);
            slot.since.store(since, Ordering::Relaxed);
            slot.used.begins(since);
            note_run(waits.pid);
        }
        RunningTask {
            slot,
            since,
            before: CURRENT.replace(home.take()),
            home,
        }
    }
}

impl SessionWaits {
    /// When the session that runs from `now` on became runnable, counting the time it was queued
    /// since; 0: it was not queued.
    #[inline]
    fn became_runnable(&self, slot: &Slot, now: u64) -> u64 {
        let runnable = self.runnable.load(Ordering::Relaxed);
        if runnable == 0 {
            return 0;
        }
        self.runnable.store(0, Ordering::Relaxed);
        let running = slot.running.load(Ordering::Relaxed);
        let was_queued = running != self.running_before.load(Ordering::Relaxed);
        if now == 0 || !was_queued {
            return 0;
        }
        count_queueing(slot, now.saturating_sub(runnable), self);
        runnable
    }
}

/// Divides the time that a session was runnable and did not run between its core and what blocked
/// that.
fn count_queueing(slot: &Slot, queued: u64, waits: &SessionWaits) {
    let blocked_before = waits.blocked_before.load(Ordering::Relaxed);
    let blocked_now = slot.blocked.load(Ordering::Relaxed);
    let blocked = blocked_now.wrapping_sub(blocked_before).min(queued);
    if blocked > 0
        && let Some(by) = slot.last_block.get()
    {
        record_held(by.event, by.object, blocked, by.holder);
    }
    let core = slot.core.load(Ordering::Relaxed);
    let object = core.checked_sub(1).map_or(Object::NONE, Object::core);
    record_held(WaitEvent::CoreQueue, object, queued - blocked, Holder::NONE);
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        if self.since != 0 {
            let suspended = SUSPENDED.replace(0);
            let until = if suspended > self.since {
                suspended
            } else {
                now_nanos()
            };
            let ran = until.saturating_sub(self.since);
            add(&self.slot.running, ran);
            let pid = self.slot.session.load(Ordering::Relaxed);
            if ran > stall::LONGEST && pid != 0 {
                stall::note(self.slot, pid, ran);
            }
            self.slot.since.store(0, Ordering::Relaxed);
        }
        RUNNABLE.set(0);
        let outer = self.before.take();
        let pid = outer.as_ref().map_or(0, |waits| waits.pid);
        self.slot.session.store(pid, Ordering::Relaxed);
        *self.home = CURRENT.replace(outer);
    }
}

impl<F: Future> Future for Accounted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        // It lies elsewhere: it comes while the time is accounted for.
        fetch_span_ahead(&*this.future, FETCHED);
        let known = this
            .waker
            .as_ref()
            .is_some_and(|(inner, _)| inner.task.will_wake(context.waker()));
        if !known {
            let waits = this.waits.clone().expect("a task runs once at a time");
            let inner = Arc::new(SessionWaker {
                waits,
                task: context.waker().clone(),
            });
            this.waker = Some((inner.clone(), Waker::from(inner)));
        }
        let (_, waker) = this.waker.as_ref().expect("just made");
        let _running = RunningTask::enter(&mut this.waits);
        this.future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests;
