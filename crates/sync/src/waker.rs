//! A slot for one task's waker.

use crate::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::cell::UnsafeCell;
use std::ptr;
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
/// The algorithm is that of `AtomicWaker` in the `futures` crate, but for one thing: a waker that
/// is still there is not registered anew, which would take two locked instructions each time a task
/// waits. A wake that the task has not seen then has taken the waker, or will: it wakes the task
/// after it has made its condition true, so the task looks again.
///
/// | state | the waker's cell belongs to | next |
/// |---|---|---|
/// | `EMPTY` | nobody | `REGISTERING`, `WAKING` |
/// | `KEPT` | nobody, and a waker is in it | `REGISTERING`, `KEPT \| WAKING` |
/// | `REGISTERING` | the task that registers | `KEPT`, or with `WAKING` when `wake` comes in between |
/// | `WAKING`, with `KEPT` or alone | the thread that wakes | `EMPTY` |
/// | `REGISTERING \| WAKING` | the task that registers, which then wakes itself | `EMPTY` |
#[derive(Debug)]
pub struct WakerSlot {
    state: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
    /// Which waker was last registered, by the two halves of it: read and written by the task that
    /// registers.
    data: AtomicPtr<()>,
    vtable: AtomicPtr<()>,
}

const EMPTY: u32 = 0;
const REGISTERING: u32 = 1;
const WAKING: u32 = 2;
const KEPT: u32 = 4;

// SAFETY: the cell is touched only by the thread that moved `state` from EMPTY or KEPT to
// REGISTERING, or added WAKING to one of the two, until it moves it back, as the table says; so
// access is exclusive. `Waker` is Send and Sync.
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
            state: AtomicU32::new(EMPTY),
            waker: UnsafeCell::new(None),
            data: AtomicPtr::new(ptr::null_mut()),
            vtable: AtomicPtr::new(ptr::null_mut()),
        }
    }
    #[cfg(loom)]
    pub fn new() -> WakerSlot {
        WakerSlot {
            state: AtomicU32::new(EMPTY),
            waker: UnsafeCell::new(None),
            data: AtomicPtr::new(ptr::null_mut()),
            vtable: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Replaces the waker. To be called by one task at a time, before it looks at its condition.
    #[inline]
    pub fn register(&self, waker: &Waker) {
        if self.state.load(Ordering::Acquire) != KEPT || !self.is_of(waker) {
            self.register_anew(waker);
        }
    }

    /// Whether the waker last registered was this one.
    #[inline]
    fn is_of(&self, waker: &Waker) -> bool {
        let (data, vtable) = halves(waker);
        self.data.load(Ordering::Relaxed) == data && self.vtable.load(Ordering::Relaxed) == vtable
    }

    fn register_anew(&self, waker: &Waker) {
        let mut before = self.state.load(Ordering::Relaxed) & KEPT;
        loop {
            // Acquire: if a wake has ended or begun, the condition that it announced is seen by the
            // caller's look.
            let order = Ordering::Acquire;
            match self
                .state
                .compare_exchange(before, REGISTERING, order, order)
            {
                Ok(_) => return self.register_owned(waker),
                Err(now) if now & REGISTERING != 0 => {
                    panic!("two tasks registered with one WakerSlot at once")
                }
                // A wake is under way and may have taken the old waker: the task must look again.
                Err(now) if now & WAKING != 0 => return waker.wake_by_ref(),
                Err(now) => before = now,
            }
        }
    }

    fn register_owned(&self, waker: &Waker) {
        let (data, vtable) = halves(waker);
        self.data.store(data, Ordering::Relaxed);
        self.vtable.store(vtable, Ordering::Relaxed);
        self.waker.with_mut(|slot| {
            // SAFETY: `state` is REGISTERING and we set it: the cell is ours (see the table), alive
            // as `self` is, and no reference to it outlives this closure.
            unsafe { *slot = Some(waker.clone()) };
        });
        // Release: the waker is in the cell before anybody may take it. Acquire: in case a wake
        // came.
        let back =
            self.state
                .compare_exchange(REGISTERING, KEPT, Ordering::AcqRel, Ordering::Acquire);
        if back.is_err() {
            // Both bits are set: `wake` left the waking to us.
            let taken = self.waker.with_mut(|slot| {
                // SAFETY: as above: with both bits set the cell still belongs to the one who
                // registers.
                unsafe { (*slot).take() }
            });
            self.state.swap(EMPTY, Ordering::AcqRel);
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
        // Release: the condition made true before is seen by whoever registers next. Acquire: the
        // waker registered before is seen here.
        if self.state.fetch_or(WAKING, Ordering::AcqRel) & (REGISTERING | WAKING) != 0 {
            // Somebody registers (and sees our bit), or somebody wakes already.
            return None;
        }
        let taken = self.waker.with_mut(|slot| {
            // SAFETY: we added WAKING to EMPTY or KEPT: the cell is ours until the bit goes.
            unsafe { (*slot).take() }
        });
        // A read-modify-write: what others who came meanwhile announced is seen by whoever
        // registers next, too.
        self.state.swap(EMPTY, Ordering::AcqRel);
        taken
    }
}

/// What two wakers that wake the same task have in common, as [`Waker::will_wake`] has it.
#[inline]
fn halves(waker: &Waker) -> (*mut (), *mut ()) {
    let vtable: *const std::task::RawWakerVTable = waker.vtable();
    (waker.data().cast_mut(), vtable.cast_mut().cast())
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

    #[test]
    fn a_waker_that_is_still_there_is_neither_cloned_nor_dropped() {
        let task = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(task.clone());
        let slot = WakerSlot::new();
        slot.register(&waker);
        let owners = Arc::strong_count(&task);
        slot.register(&waker);
        assert_eq!(Arc::strong_count(&task), owners);
        // Of another task, and of the first one again.
        slot.register(Waker::noop());
        assert_eq!(Arc::strong_count(&task), owners - 1);
        slot.register(&waker);
        slot.wake();
        slot.register(&waker);
        slot.wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 2);
    }
}
