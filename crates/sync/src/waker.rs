//! A slot for one task's waker.

use crate::atomic::{AtomicU32, Ordering};
use crate::cell::UnsafeCell;
use std::task::Waker;

/// Holds the [`Waker`] of the one task that waits for something, and wakes it from any thread.
///
/// The use is always the same, and loses no wake-up:
///
/// ```text
/// waiting task:  register(waker); then look at the condition
/// other thread:  make the condition true; then wake()
/// ```
///
/// The algorithm is the well-known one of `AtomicWaker` in the `futures` crate.
///
/// | state | the waker's cell belongs to | next |
/// |---|---|---|
/// | `IDLE` | nobody | `REGISTERING`, `WAKING` |
/// | `REGISTERING` | the task that registers | `IDLE`, or both bits when `wake` comes in between |
/// | `WAKING` | the thread that wakes | `IDLE` |
/// | `REGISTERING \| WAKING` | the task that registers, which then wakes itself | `IDLE` |
#[derive(Debug)]
pub struct WakerSlot {
    state: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

const IDLE: u32 = 0;
const REGISTERING: u32 = 1;
const WAKING: u32 = 2;

// SAFETY: the cell is touched only by the thread that moved `state` from IDLE to REGISTERING or to WAKING,
// until it moves it back, as the table says; so access is exclusive. `Waker` is Send and Sync.
unsafe impl Sync for WakerSlot {}
// SAFETY: the slot owns its waker, which is Send.
unsafe impl Send for WakerSlot {}

impl Default for WakerSlot {
    fn default() -> WakerSlot {
        WakerSlot::new()
    }
}

impl WakerSlot {
    #[cfg(not(loom))]
    pub const fn new() -> WakerSlot {
        WakerSlot {
            state: AtomicU32::new(IDLE),
            waker: UnsafeCell::new(None),
        }
    }
    #[cfg(loom)]
    pub fn new() -> WakerSlot {
        WakerSlot {
            state: AtomicU32::new(IDLE),
            waker: UnsafeCell::new(None),
        }
    }

    /// Replaces the waker. To be called by one task at a time, before it looks at its condition.
    pub fn register(&self, waker: &Waker) {
        // Acquire: if a wake has just ended, the condition that it announced is seen by the caller's look.
        match self
            .state
            .compare_exchange(IDLE, REGISTERING, Ordering::Acquire, Ordering::Acquire)
        {
            Ok(_) => self.register_owned(waker),
            // A wake is under way and may have taken the old waker: the task must look again.
            Err(WAKING) => waker.wake_by_ref(),
            Err(_) => panic!("two tasks registered with one WakerSlot at once"),
        }
    }

    fn register_owned(&self, waker: &Waker) {
        self.waker.with_mut(|slot| {
            // SAFETY: `state` is REGISTERING and we set it: the cell is ours (see the table), alive as
            // `self` is, and no reference to it outlives this closure.
            let slot = unsafe { &mut *slot };
            if !slot.as_ref().is_some_and(|old| old.will_wake(waker)) {
                *slot = Some(waker.clone());
            }
        });
        // Release: the waker is in the cell before anybody may take it. Acquire: in case a wake came.
        let back =
            self.state
                .compare_exchange(REGISTERING, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if back.is_err() {
            // Both bits are set: `wake` left the waking to us.
            let taken = self.waker.with_mut(|slot| {
                // SAFETY: as above: with both bits set the cell still belongs to the one who registers.
                unsafe { (*slot).take() }
            });
            self.state.swap(IDLE, Ordering::AcqRel);
            if let Some(waker) = taken {
                waker.wake();
            }
        }
    }

    /// Wakes the task, if one is registered. Any thread; the registration is used up.
    pub fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }

    /// Takes the waker to wake it later, for instance after a lock is released.
    pub fn take(&self) -> Option<Waker> {
        // Release: the condition made true before is seen by whoever registers next. Acquire: the waker
        // registered before is seen here.
        if self.state.fetch_or(WAKING, Ordering::AcqRel) != IDLE {
            // Somebody registers (and sees our bit), or somebody wakes already.
            return None;
        }
        let taken = self.waker.with_mut(|slot| {
            // SAFETY: we moved `state` from IDLE to WAKING: the cell is ours until the bit goes.
            unsafe { (*slot).take() }
        });
        self.state.fetch_and(!WAKING, Ordering::Release);
        taken
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_registration_is_good_for_one_wake() {
        let [first, second] = [(); 2].map(|()| Arc::new(Count(AtomicUsize::new(0))));
        let wakes = || {
            [
                first.0.load(Ordering::Relaxed),
                second.0.load(Ordering::Relaxed),
            ]
        };
        let slot = WakerSlot::new();
        slot.wake();
        slot.register(&Waker::from(first.clone()));
        slot.register(&Waker::from(second.clone()));
        slot.wake();
        slot.wake();
        assert_eq!(wakes(), [0, 1]);
        slot.register(&Waker::from(first.clone()));
        let taken = slot.take().unwrap();
        assert!(slot.take().is_none());
        taken.wake();
        assert_eq!(wakes(), [1, 1]);
    }
}
