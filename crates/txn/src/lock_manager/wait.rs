//! One session's wait: asleep until granted, cancelled, out of time, or found in a deadlock.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use throng_observe::Holder;
use throng_types::error::state;
use throng_types::{Error, Result};

use super::deadlock;
use super::report::WaitLog;
use crate::lock::wait::WaitOn;
use crate::session::SessionEntry;
use crate::timer::{Sleep, sleep};

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
