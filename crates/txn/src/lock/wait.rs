//! One session's wait: asleep until granted, cancelled, out of time, or found in a deadlock.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};
use throng_sync::atomic::{AtomicBool, Ordering};

use throng_observe::{Holder, Object, WaitEvent};
use throng_sync::WakerSlot;
use throng_types::error::state;
use throng_types::{Error, FileId, Result, Tid, Xid};

use super::report::WaitLog;
use super::{LockMode, LockTag, ModeMask, deadlock};
use crate::session::{SessionEntry, now_micros};
use crate::timer::{Sleep, sleep};

/// A place in a queue.
pub(crate) struct WaitNode {
    pub(crate) pid: u32,
    pub(crate) mode: LockMode,
    /// When the wait began, in microseconds since 1970.
    pub(crate) since: i64,
    /// Its session holds the lock already and asks for more of it.
    pub(crate) asks_for_more: bool,
    /// Who comes later need not wait for it.
    pub(crate) lets_past: bool,
    granted: AtomicBool,
    waker: WakerSlot,
}

impl WaitNode {
    pub(crate) fn new(pid: u32, mode: LockMode) -> WaitNode {
        WaitNode {
            pid,
            mode,
            since: now_micros(),
            asks_for_more: false,
            lets_past: false,
            granted: AtomicBool::new(false),
            waker: WakerSlot::new(),
        }
    }

    /// The same, for a session that holds the lock already or not.
    pub(crate) fn of_holder(self, holds: bool) -> WaitNode {
        WaitNode {
            asks_for_more: holds,
            ..self
        }
    }

    pub(crate) fn letting_past(self, lets_past: bool) -> WaitNode {
        WaitNode { lets_past, ..self }
    }

    /// The mode that those behind it in the queue have to mind.
    pub(crate) fn in_the_way(&self) -> ModeMask {
        match self.lets_past {
            true => 0,
            false => self.mode.bit(),
        }
    }

    /// Said with the queue's lock held; [`WaitNode::wake`] follows once it is free.
    pub(crate) fn grant(&self) {
        // Release: what the one who grants did before is seen by the one who waited.
        self.granted.store(true, Ordering::Release);
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}

/// What a session waits for, as others see it.
#[derive(Clone)]
pub(crate) enum WaitOn {
    Lock {
        tag: LockTag,
        node: std::sync::Arc<WaitNode>,
    },
    /// That those who hold it let go, not the lock itself.
    Holders {
        tag: LockTag,
        node: std::sync::Arc<WaitNode>,
    },
    Xid {
        xid: Xid,
        node: std::sync::Arc<WaitNode>,
        /// The row because of which it matters: its file and its chain's root.
        row: Option<(FileId, Tid)>,
    },
}

impl WaitOn {
    pub(crate) fn node(&self) -> &std::sync::Arc<WaitNode> {
        match self {
            WaitOn::Lock { node, .. } | WaitOn::Holders { node, .. } | WaitOn::Xid { node, .. } => {
                node
            }
        }
    }

    /// A transaction is waited for because of a row: that is what it is counted under, where it is
    /// known.
    pub(crate) fn event(&self) -> (WaitEvent, Object) {
        match *self {
            WaitOn::Lock { tag, .. } | WaitOn::Holders { tag, .. } => match tag {
                LockTag::Relation(oid) => (WaitEvent::LockRelation, Object::relation(oid.0)),
                LockTag::Object { class, object } => {
                    (WaitEvent::LockObject, Object::catalog(class.0, object.0))
                }
                LockTag::Tuple { file, tid } => {
                    (WaitEvent::LockTuple, Object::tuple(file.0, tid.to_u64()))
                }
                LockTag::Advisory { key, .. } => (WaitEvent::LockAdvisory, Object::advisory(key)),
                LockTag::AdvisoryPair { keys: (a, b), .. } => {
                    (WaitEvent::LockAdvisory, Object::advisory_pair(a, b))
                }
                LockTag::Transaction(xid) => {
                    (WaitEvent::LockTransaction, Object::transaction(xid.0))
                }
            },
            WaitOn::Xid {
                row: Some((file, tid)),
                ..
            } => (
                WaitEvent::LockTransaction,
                Object::tuple(file.0, tid.to_u64()),
            ),
            WaitOn::Xid { xid, row: None, .. } => {
                (WaitEvent::LockTransaction, Object::transaction(xid.0))
            }
        }
    }
}

/// What looking for a deadlock came to.
pub(crate) enum Verdict {
    /// None that this session is in.
    Innocent,
    /// One that somebody was let past in a queue for.
    Rearranged,
    /// The session is in one and is to give up.
    Deadlock(Error),
}

/// Waits until `on` is granted. An error leaves the node in its queue: the caller withdraws it.
///
/// Polls the node on every wake-up first: who has been granted has it, whatever else happened
/// meanwhile.
pub(crate) async fn wait_until_granted(
    session: &SessionEntry,
    on: &WaitOn,
    mut look_for_deadlock: impl FnMut() -> Verdict,
) -> Result<()> {
    let (event, object) = on.event();
    let holder = deadlock::last_blocker(session.core(), on).map_or(Holder::NONE, Holder::session);
    let _wait = throng_observe::waiting(event, object).held_by(holder);
    let began = Instant::now();
    let mut deadlock = pin!(Some(sleep(session.deadlock_timeout())));
    let mut lock_timeout = pin!(session.lock_timeout().map(sleep));
    let mut statement = pin!(
        session
            .cancel_flag()
            .deadline()
            .map(|at| sleep_until(at, began))
    );
    let node = on.node();
    let mut log = WaitLog::new(session, on);
    poll_fn(|cx| {
        // Registered first, looked at after: whoever grants or cancels in between wakes us again.
        node.waker.register(cx.waker());
        session.cancel_flag().register(cx.waker());
        if node.is_granted() {
            log.granted();
            return Poll::Ready(Ok(()));
        }
        session.cancel_flag().check()?;
        if poll_sleep(statement.as_mut(), cx).is_ready() {
            // The flag's own deadline has passed, so this reports it.
            session.cancel_flag().check()?;
        }
        if poll_sleep(lock_timeout.as_mut(), cx).is_ready() {
            let message = "canceling statement due to lock timeout";
            return Poll::Ready(Err(Error::new(state::LOCK_NOT_AVAILABLE, message)));
        }
        if poll_sleep(deadlock.as_mut(), cx).is_ready() {
            // Once a wait: a later cycle is found by whoever closes it.
            deadlock.set(None);
            let verdict = look_for_deadlock();
            log.looked(&verdict);
            if let Verdict::Deadlock(error) = verdict {
                return Poll::Ready(Err(error));
            }
            if node.is_granted() {
                log.granted();
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Pending
    })
    .await
}

fn sleep_until(at: Instant, now: Instant) -> Sleep {
    // A timer rounds to its own ticks: a little later is better than waking just before.
    sleep(at.saturating_duration_since(now) + Duration::from_millis(1))
}

fn poll_sleep(mut sleep: Pin<&mut Option<Sleep>>, cx: &mut std::task::Context<'_>) -> Poll<()> {
    match sleep.as_mut().as_pin_mut() {
        Some(timer) => timer.poll(cx),
        None => Poll::Pending,
    }
}
