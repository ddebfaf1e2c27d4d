//! The spinlock: for tens of instructions, never across a call that can fault or wait.

use crate::atomic::{AtomicBool, Ordering};
use crate::cell::{MutPtr, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Bounded spinning before something dearer: 1, 2, 4, … pauses a round.
///
/// ```
/// # use throng_sync::SpinWait;
/// let mut spin = SpinWait::new();
/// while spin.spin() { /* look again */ }
/// // … and now park
/// ```
#[derive(Debug, Default)]
pub struct SpinWait {
    round: u32,
}

/// 31 pauses in all, up to a microsecond or two: less than parking and being woken costs.
const SPIN_ROUNDS: u32 = 5;

impl SpinWait {
    pub const fn new() -> SpinWait {
        SpinWait { round: 0 }
    }

    /// Pauses for the next round. False, at once, when spinning no longer pays.
    #[inline]
    pub fn spin(&mut self) -> bool {
        // A model has no time: spinning there only multiplies the interleavings.
        if cfg!(loom) || self.round >= SPIN_ROUNDS {
            return false;
        }
        for _ in 0..1 << self.round {
            crate::hint::spin_loop();
        }
        self.round += 1;
        true
    }

    pub fn reset(&mut self) {
        self.round = 0;
    }
}

/// A lock that never sleeps in the kernel waiting for its holder by name: test, then test-and-set, and a
/// back-off that goes from pausing to yielding to sleeping, so that a preempted holder gets its core back.
///
/// ```text
/// locked: false ──CAS (Acquire)──▶ true ──store (Release)──▶ false
/// ```
#[derive(Debug, Default)]
pub struct Spinlock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a `SpinGuard` only, of which there is one at a time, so a `&Spinlock`
// shared between threads moves the value between them but never shares it: `T: Send` is enough.
unsafe impl<T: Send> Sync for Spinlock<T> {}
// SAFETY: the lock owns its value; nothing in it is tied to a thread.
unsafe impl<T: Send> Send for Spinlock<T> {}

/// Proof that the spinlock is held.
pub struct SpinGuard<'a, T> {
    lock: &'a Spinlock<T>,
    value: MutPtr<T>,
    /// Released by the thread that took it: spinning for another thread's I/O is never meant.
    _not_send: PhantomData<*const ()>,
}

impl<T> Spinlock<T> {
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Spinlock<T> {
        Spinlock {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }
    #[cfg(loom)]
    pub fn new(value: T) -> Spinlock<T> {
        Spinlock {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_contended(),
        }
    }

    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        // Acquire: what the last holder wrote is seen before anything the guard reads.
        self.locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| SpinGuard {
                lock: self,
                value: self.value.get_mut(),
                _not_send: PhantomData,
            })
    }

    #[cold]
    fn lock_contended(&self) -> SpinGuard<'_, T> {
        let mut back_off = BackOff::default();
        loop {
            // Test before test-and-set: waiters share the line until it is worth taking it.
            // (In a model the test may answer from the past for ever; there, only wait.)
            back_off.pause();
            while !cfg!(loom) && self.locked.load(Ordering::Relaxed) {
                back_off.pause();
            }
            if let Some(guard) = self.try_lock() {
                return guard;
            }
        }
    }

    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard borrows the lock, so the cell is alive; `locked` is true from before the guard
        // was made until it is dropped, so no other guard exists; and the result borrows this guard.
        unsafe { self.value.deref() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the result borrows the one guard mutably.
        unsafe { self.value.deref() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: everything done under the lock is seen by the next holder.
        self.lock.locked.store(false, Ordering::Release);
    }
}

/// Pauses that double, then gives the core away, then sleeps.
#[derive(Default)]
struct BackOff {
    spin: SpinWait,
    yields: u32,
    sleep_micros: u64,
}

impl BackOff {
    /// A holder that is running is done within these.
    const YIELDS: u32 = 16;
    /// A holder preempted for longer than that is waiting for a core: take ours away for a while.
    const MAX_SLEEP_MICROS: u64 = 1_000;

    fn pause(&mut self) {
        if self.spin.spin() {
            return;
        }
        if cfg!(loom) || self.yields < Self::YIELDS {
            self.yields += 1;
            crate::thread::yield_now();
            return;
        }
        self.sleep_micros = (self.sleep_micros * 2).clamp(10, Self::MAX_SLEEP_MICROS);
        std::thread::sleep(std::time::Duration::from_micros(self.sleep_micros));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_threads_apart() {
        let lock = Spinlock::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..20_000 {
                        let mut value = lock.lock();
                        let before = *value;
                        if n % 1024 == 0 {
                            std::thread::yield_now();
                        }
                        *value = before + 1;
                    }
                });
            }
        });
        let held = lock.lock();
        assert_eq!(*held, 80_000);
        assert!(lock.try_lock().is_none());
        drop(held);
        assert_eq!(lock.into_inner(), 80_000);
    }
}
