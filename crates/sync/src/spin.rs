//! The spinlock: for tens of instructions, never across a call that can fault or wait.
//!
//! It never sleeps in the kernel waiting for its holder by name. How its word is tried is a
//! [`RawSpin`], how a waiter pauses a [`BackOff`]; which ones a plain `Spinlock<T>` uses is chosen
//! at start by `lab_spinlock` and `lab_spin_backoff` (see [`crate::lab`]). PostgreSQL's spinlock is
//! described in `src/backend/storage/lmgr/s_lock.c`.

#[cfg(all(target_arch = "aarch64", not(any(loom, shuttle, miri))))]
pub mod aarch64;
mod back_off;
pub(crate) mod contention;
mod raw;

use crate::atomic::AtomicU32;
use crate::cell::{MutPtr, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

pub use back_off::{Adaptive, BackOff, ChosenBackOff, Fixed, SpinWait};
pub use contention::set_contention_hook;
pub use raw::{Cas, ChosenSpin, RawSpin, Tas, Ttas, lock};

/// A value that one thread at a time may use.
#[derive(Debug)]
pub struct Spinlock<T, R: RawSpin = ChosenSpin, B: BackOff = ChosenBackOff> {
    word: AtomicU32,
    name: &'static str,
    value: UnsafeCell<T>,
    _forms: PhantomData<fn() -> (R, B)>,
}

// SAFETY: the value is reached through a `SpinGuard` only, of which there is one at a time, so a
// `&Spinlock` shared between threads moves the value between them but never shares it: `T: Send` is
// enough.
unsafe impl<T: Send, R: RawSpin, B: BackOff> Sync for Spinlock<T, R, B> {}
// SAFETY: the lock owns its value; nothing in it is tied to a thread.
unsafe impl<T: Send, R: RawSpin, B: BackOff> Send for Spinlock<T, R, B> {}

/// Proof that the spinlock is held.
pub struct SpinGuard<'a, T, R: RawSpin = ChosenSpin, B: BackOff = ChosenBackOff> {
    lock: &'a Spinlock<T, R, B>,
    value: MutPtr<T>,
    /// Released by the thread that took it: spinning for another thread's I/O is never meant.
    _not_send: PhantomData<*const ()>,
}

impl<T: Default, R: RawSpin, B: BackOff> Default for Spinlock<T, R, B> {
    fn default() -> Self {
        Spinlock::of("spinlock", T::default())
    }
}

impl<T> Spinlock<T> {
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Spinlock<T> {
        Spinlock::of("spinlock", value)
    }
    #[cfg(loom)]
    pub fn new(value: T) -> Spinlock<T> {
        Spinlock::of("spinlock", value)
    }

    /// A lock that reports of waits call by its name.
    #[cfg(not(loom))]
    pub const fn named(name: &'static str, value: T) -> Spinlock<T> {
        Spinlock::of(name, value)
    }
    #[cfg(loom)]
    pub fn named(name: &'static str, value: T) -> Spinlock<T> {
        Spinlock::of(name, value)
    }
}

impl<T, R: RawSpin, B: BackOff> Spinlock<T, R, B> {
    /// A lock of these forms, whatever the settings say.
    #[cfg(not(loom))]
    pub const fn of(name: &'static str, value: T) -> Self {
        Spinlock {
            word: AtomicU32::new(raw::FREE),
            name,
            value: UnsafeCell::new(value),
            _forms: PhantomData,
        }
    }
    #[cfg(loom)]
    pub fn of(name: &'static str, value: T) -> Self {
        Spinlock {
            word: AtomicU32::new(raw::FREE),
            name,
            value: UnsafeCell::new(value),
            _forms: PhantomData,
        }
    }

    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T, R, B> {
        if !R::try_lock(&self.word) {
            self.wait();
        }
        self.guard()
    }

    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T, R, B>> {
        R::try_lock(&self.word).then(|| self.guard())
    }

    #[cold]
    fn wait(&self) {
        contention::seen(self.name, || raw::lock_contended::<R, B>(&self.word));
    }

    /// For one who has just taken the word.
    #[inline]
    fn guard(&self) -> SpinGuard<'_, T, R, B> {
        SpinGuard {
            lock: self,
            value: self.value.get_mut(),
            _not_send: PhantomData,
        }
    }

    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T, R: RawSpin, B: BackOff> Deref for SpinGuard<'_, T, R, B> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard borrows the lock, so the cell is alive; the word is held from before
        // the guard was made until it is dropped, so no other guard exists; and the result borrows
        // this guard.
        unsafe { self.value.deref() }
    }
}

impl<T, R: RawSpin, B: BackOff> DerefMut for SpinGuard<'_, T, R, B> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the result borrows the one guard mutably.
        unsafe { self.value.deref() }
    }
}

impl<T, R: RawSpin, B: BackOff> Drop for SpinGuard<'_, T, R, B> {
    #[inline]
    fn drop(&mut self) {
        R::unlock(&self.lock.word);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
