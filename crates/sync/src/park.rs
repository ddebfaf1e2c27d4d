//! One thread sleeps until another says so.

use crate::atomic::{AtomicU64, Ordering};
use crate::futex::{Side, WaitQueue};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// A token that one thread waits for and any thread can leave.
///
/// Tokens do not add up: any number of [`unpark`](Parker::unpark)s before a park let one park
/// through. What was written before `unpark` is seen after the `park` that it ended.
///
/// ```text
///            park                     unpark
///   EMPTY ─────────▶ PARKED (sleeps) ─────────▶ NOTIFIED ──the sleeper──▶ EMPTY
///     │ unpark                                     ▲ │ park (returns at once)
///     └────────────────────────────────────────────┘ └──────────────────▶ EMPTY
/// ```
#[derive(Debug)]
pub struct Parker {
    /// The state, in the high half (which is what the kernel compares).
    state: AtomicU64,
    queue: WaitQueue,
}

const EMPTY: u64 = 0;
const PARKED: u64 = 1 << 32;
const NOTIFIED: u64 = 2 << 32;

impl Default for Parker {
    fn default() -> Parker {
        Parker::new()
    }
}

impl Parker {
    #[cfg(not(loom))]
    pub const fn new() -> Parker {
        Parker {
            state: AtomicU64::new(EMPTY),
            queue: WaitQueue::new(),
        }
    }
    #[cfg(loom)]
    pub fn new() -> Parker {
        Parker {
            state: AtomicU64::new(EMPTY),
            queue: WaitQueue::new(),
        }
    }

    /// Sleeps until there is a token, and takes it. One thread at a time: the parker's owner.
    pub fn park(&self) {
        while !self.take_or_announce() {
            self.queue.wait(&self.state, PARKED, Side::Writer);
        }
    }

    /// As [`park`](Parker::park), for at most `timeout`. True if a token was taken.
    pub fn park_timeout(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            if self.take_or_announce() {
                return true;
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            self.queue
                .wait_timeout(&self.state, PARKED, Side::Writer, left);
            if crate::IS_MODEL {
                break;
            }
        }
        // Acquire: a token that came at the last moment still carries what was written before it.
        self.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED
    }

    /// Leaves a token and wakes the owner if it sleeps. Any thread.
    pub fn unpark(&self) {
        // Release: what this thread did before is seen by the thread that takes the token.
        if self.state.swap(NOTIFIED, Ordering::Release) == PARKED {
            self.queue.wake_one(&self.state, Side::Writer);
        }
    }

    /// Takes the token, or leaves word that the owner is about to sleep.
    fn take_or_announce(&self) -> bool {
        // Acquire: pairs with the Release of the `unpark` whose token is taken.
        let take =
            self.state
                .compare_exchange(NOTIFIED, EMPTY, Ordering::Acquire, Ordering::Relaxed);
        if take.is_ok() {
            return true;
        }
        let announce =
            self.state
                .compare_exchange(EMPTY, PARKED, Ordering::Relaxed, Ordering::Relaxed);
        if announce == Err(NOTIFIED) {
            self.state.swap(EMPTY, Ordering::Acquire);
            return true;
        }
        false
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

/// Runs a future to its end on the calling thread, which sleeps whenever it has to wait. For
/// threads that serve nobody else.
///
/// Unlike `std::thread::park`, a sleep ends only when the future's waker is called: a model finds a
/// call that is lost.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let parker = Arc::new(Parker::new());
    let waker = Waker::from(parker.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => parker.park(),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn tokens_do_not_add_up_and_time_runs_out() {
        let parker = Parker::new();
        parker.unpark();
        parker.unpark();
        parker.park();
        assert!(!parker.park_timeout(Duration::from_millis(1)));
        assert!(!parker.park_timeout(Duration::ZERO));
        parker.unpark();
        assert!(parker.park_timeout(Duration::MAX));
    }

    #[test]
    fn two_threads_take_turns() {
        const TURNS: u32 = if cfg!(miri) { 50 } else { 1000 };
        let (ping, pong) = (Parker::new(), Parker::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..TURNS {
                    ping.park();
                    pong.unpark();
                }
            });
            for i in 0..TURNS {
                ping.unpark();
                if i % 2 == 0 {
                    pong.park();
                } else {
                    assert!(pong.park_timeout(Duration::from_secs(60)));
                }
            }
        });
    }
}
