//! Sleeping until a word changes.
//!
//! [`WaitQueue`] is the kernel's futex on the *high half* of an `AtomicU64`, with two kinds of
//! waiter that are woken apart. It has the futex's contract, and users rely on no more than that:
//!
//! * `wait` sleeps only if the high half still has the value that the caller saw, and that check is
//!   atomic with respect to `wake_*`: a waker that changes the word and then wakes cannot be
//!   missed;
//! * `wait` may return for no reason, so callers look at the word again.
//!
//! In models, and under Miri (which does not know the calls), the same contract is kept by a mutex
//! and two condition variables, so that lost wake-ups are found as deadlocks.

use crate::atomic::AtomicU64;
use std::time::Duration;

/// Who waits: [`Latch`](crate::Latch) wakes all of its readers but one of its writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Reader = 0,
    Writer = 1,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A waker chose this thread (or, rarely, nobody did).
    ByWaker,
    /// The word had changed already, a signal came, or the time was over.
    No,
}

#[cfg(not(any(loom, shuttle, miri)))]
pub(crate) use real::WaitQueue;

#[cfg(any(loom, shuttle, miri))]
pub(crate) use model::WaitQueue;

#[cfg(not(any(loom, shuttle, miri)))]
mod real {
    use super::{AtomicU64, Duration, Side, Woken};
    use rustix::thread::futex::Timespec;
    use rustix::thread::futex::{Flags, wait_bitset, wake_bitset};
    use rustix::time::{ClockId, clock_gettime};
    use std::num::NonZeroU32;
    use std::sync::atomic::AtomicU32;

    /// Nothing: the kernel keeps the queue, found by the word's address.
    #[derive(Debug)]
    pub(crate) struct WaitQueue;

    impl Side {
        fn mask(self) -> NonZeroU32 {
            NonZeroU32::MIN.saturating_add(self as u32)
        }
    }
    const _: () = assert!(
        (1 + Side::Reader as u32) & (1 + Side::Writer as u32) == 0,
        "the two sides must not share a bit"
    );

    impl WaitQueue {
        pub(crate) const fn new() -> WaitQueue {
            WaitQueue
        }

        #[cold]
        pub(crate) fn wait(&self, word: &AtomicU64, seen: u64, side: Side) -> Woken {
            sleep(word, seen, None, side)
        }

        #[cold]
        pub(crate) fn wait_timeout(
            &self,
            word: &AtomicU64,
            seen: u64,
            side: Side,
            timeout: Duration,
        ) -> Woken {
            // FUTEX_WAIT_BITSET takes a point in time on the monotonic clock, not a duration.
            let now = clock_gettime(ClockId::Monotonic);
            let nanos = now.tv_nsec as u64 + u64::from(timeout.subsec_nanos());
            let deadline = Timespec {
                tv_sec: now
                    .tv_sec
                    .saturating_add(i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX))
                    .saturating_add((nanos / 1_000_000_000) as i64),
                tv_nsec: (nanos % 1_000_000_000) as i64,
            };
            sleep(word, seen, Some(&deadline), side)
        }

        /// Wakes one waiter of that side; says whether there was one.
        #[cold]
        pub(crate) fn wake_one(&self, word: &AtomicU64, side: Side) -> bool {
            wake(word, 1, side) > 0
        }

        /// Wakes every waiter of that side; says whether there was any.
        #[cold]
        pub(crate) fn wake_all(&self, word: &AtomicU64, side: Side) -> bool {
            wake(word, i32::MAX as u32, side) > 0
        }
    }

    fn sleep(word: &AtomicU64, seen: u64, deadline: Option<&Timespec>, side: Side) -> Woken {
        let seen = (seen >> 32) as u32;
        match wait_bitset(high_half(word), Flags::PRIVATE, seen, deadline, side.mask()) {
            Ok(()) => Woken::ByWaker,
            Err(_) => Woken::No,
        }
    }

    fn wake(word: &AtomicU64, count: u32, side: Side) -> usize {
        // The call fails only for a bad address or bad flags, which a reference and a constant
        // cannot be.
        wake_bitset(high_half(word), Flags::PRIVATE, count, side.mask()).unwrap_or(0)
    }

    fn high_half(word: &AtomicU64) -> &AtomicU32 {
        let half = word.as_ptr().cast::<AtomicU32>();
        let half = if cfg!(target_endian = "little") {
            half.wrapping_add(1)
        } else {
            half
        };
        // SAFETY: the address is one of the two 4-byte halves of a live, 8-byte aligned word, so it
        // is aligned and valid for the word's lifetime, which the result borrows. Both types have
        // interior mutability, so the shared reference claims nothing about the bytes. No code of
        // this process loads or stores through the result (that would mix access sizes): only the
        // kernel reads it.
        unsafe { &*half }
    }
}

#[cfg(any(loom, shuttle, miri))]
mod model {
    use super::{AtomicU64, Duration, Side, Woken};
    use crate::atomic::Ordering;
    #[cfg(loom)]
    use loom::sync::{Condvar, Mutex};
    #[cfg(shuttle)]
    use shuttle::sync::{Condvar, Mutex};
    #[cfg(miri)]
    use std::sync::{Condvar, Mutex};

    #[derive(Debug)]
    pub(crate) struct WaitQueue {
        sides: Mutex<[Sleepers; 2]>,
        wake: [Condvar; 2],
    }

    /// Those who sleep on one side.
    #[derive(Clone, Copy, Debug)]
    struct Sleepers {
        /// Nobody has woken them yet.
        asleep: usize,
        /// Woken, but they have not run yet: a condition variable may wake others for no reason,
        /// who sleep on.
        woken: usize,
    }

    const NOBODY: Sleepers = Sleepers {
        asleep: 0,
        woken: 0,
    };

    impl WaitQueue {
        #[cfg(not(loom))]
        pub(crate) const fn new() -> WaitQueue {
            WaitQueue {
                sides: Mutex::new([NOBODY; 2]),
                wake: [Condvar::new(), Condvar::new()],
            }
        }
        #[cfg(loom)]
        pub(crate) fn new() -> WaitQueue {
            WaitQueue {
                sides: Mutex::new([NOBODY; 2]),
                wake: [Condvar::new(), Condvar::new()],
            }
        }

        pub(crate) fn wait(&self, word: &AtomicU64, seen: u64, side: Side) -> Woken {
            let mut sides = self.sides.lock().expect("nobody panics while holding this");
            if word.load(Ordering::SeqCst) >> 32 != seen >> 32 {
                return Woken::No;
            }
            sides[side as usize].asleep += 1;
            loop {
                sides = self.wake[side as usize].wait(sides).expect("as above");
                let here = &mut sides[side as usize];
                if here.woken > 0 {
                    here.woken -= 1;
                    return Woken::ByWaker;
                }
            }
        }

        /// Time does not pass here: the wait is over at once.
        pub(crate) fn wait_timeout(
            &self,
            _word: &AtomicU64,
            _seen: u64,
            _side: Side,
            _timeout: Duration,
        ) -> Woken {
            crate::thread::yield_now();
            Woken::No
        }

        pub(crate) fn wake_one(&self, _word: &AtomicU64, side: Side) -> bool {
            self.wake_up_to(1, side)
        }

        pub(crate) fn wake_all(&self, _word: &AtomicU64, side: Side) -> bool {
            self.wake_up_to(usize::MAX, side)
        }

        fn wake_up_to(&self, most: usize, side: Side) -> bool {
            let mut sides = self.sides.lock().expect("as above");
            let here = &mut sides[side as usize];
            let chosen = here.asleep.min(most);
            here.asleep -= chosen;
            here.woken += chosen;
            for _ in 0..chosen {
                self.wake[side as usize].notify_one();
            }
            chosen > 0
        }
    }
}
