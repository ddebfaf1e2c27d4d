//! How a latch's word is changed: the three ways that PostgreSQL's lightweight lock went through.
//!
//! | form | a change is | a reader enters by | PostgreSQL |
//! |---|---|---|---|
//! | [`UnderSpin`] | made while one bit of the word is held as a spinlock | a change | before 9.5: `slock_t mutex` in `LWLock` |
//! | [`ByCas`] | a compare-and-swap, tried until it succeeds: the default | a change | from 9.5: `LWLockAttemptLock` |
//! | [`ByAdd`] | as [`ByCas`] | adding itself, looking afterwards, and undoing it if it may not | the change tried on Power8 |
//!
//! What the states mean, who sleeps on which and who wakes whom is the same in all of them, and so
//! is the optimistic read, which changes nothing.

use super::{LOCKED, ONE_SHARED};
use crate::atomic::{AtomicU64, Ordering};
use crate::bit;
use crate::lab::{self, LatchForm};

/// One way of changing a latch's word. The forms may not be mixed on one word.
pub trait RawLatch: 'static {
    /// Whether a reader counts itself first and looks afterwards: see
    /// [`add_shared`](Self::add_shared).
    fn adds_first() -> bool;

    /// Replaces the word by `next` of it, in one step with respect to all other changes. `Ok` is
    /// what was replaced; `Err` the word for which `next` had nothing. `next` may be asked several
    /// times, and must not panic.
    ///
    /// `order` is the least that holds of a change that was made.
    fn change(
        word: &AtomicU64,
        order: Ordering,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64>;

    /// Counts one shared holder less. The word before.
    fn take_shared(word: &AtomicU64, order: Ordering) -> u64;

    /// Counts one shared holder more, whatever the word. The word before. For forms that add first.
    #[inline]
    fn add_shared(word: &AtomicU64) -> u64 {
        // Acquire: if the look says yes, what the last writer wrote is seen by our reads.
        word.fetch_add(ONE_SHARED, Ordering::Acquire)
    }
}

/// A loop of compare-and-swap.
#[derive(Debug)]
pub enum ByCas {}

impl RawLatch for ByCas {
    #[inline(always)]
    fn adds_first() -> bool {
        false
    }

    #[inline(always)]
    fn change(
        word: &AtomicU64,
        order: Ordering,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        let mut seen = word.load(Ordering::Relaxed);
        while let Some(next) = next(seen) {
            match word.compare_exchange_weak(seen, next, order, Ordering::Relaxed) {
                Ok(_) => return Ok(seen),
                Err(now) => seen = now,
            }
        }
        Err(seen)
    }

    #[inline(always)]
    fn take_shared(word: &AtomicU64, order: Ordering) -> u64 {
        word.fetch_sub(ONE_SHARED, order)
    }
}

/// A reader adds itself, looks, and takes itself off again if it may not enter.
///
/// An add never fails, where a compare-and-swap starts over whenever another reader was quicker.
/// The price: for a moment the word counts a holder that is none, and a writer may find it occupied
/// that is free.
#[derive(Debug)]
pub enum ByAdd {}

impl RawLatch for ByAdd {
    #[inline(always)]
    fn adds_first() -> bool {
        true
    }

    #[inline(always)]
    fn change(
        word: &AtomicU64,
        order: Ordering,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        ByCas::change(word, order, next)
    }

    #[inline(always)]
    fn take_shared(word: &AtomicU64, order: Ordering) -> u64 {
        ByCas::take_shared(word, order)
    }
}

/// Every change, even a reader's leaving, is made while the word's LOCKED bit is held.
#[derive(Debug)]
pub enum UnderSpin {}

impl RawLatch for UnderSpin {
    #[inline(always)]
    fn adds_first() -> bool {
        false
    }

    #[inline]
    fn change(
        word: &AtomicU64,
        _at_least: Ordering,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        let seen = bit::lock(word, LOCKED, "latch");
        let next = next(seen);
        // Nobody else stores while the bit is ours, and the bit goes with the store. Release: as
        // strong as any asked for.
        word.store(next.unwrap_or(seen), Ordering::Release);
        next.map(|_| seen).ok_or(seen)
    }

    #[inline]
    fn take_shared(word: &AtomicU64, order: Ordering) -> u64 {
        let less = |seen: u64| seen.checked_sub(ONE_SHARED);
        UnderSpin::change(word, order, less).unwrap_or_else(|seen| seen)
    }
}

/// What `lab_latch` says: see [`crate::lab`].
#[derive(Debug)]
pub enum Chosen {}

impl RawLatch for Chosen {
    #[inline(always)]
    fn adds_first() -> bool {
        !lab::latch_is_default() && lab::latch() == LatchForm::Add
    }

    #[inline(always)]
    fn change(
        word: &AtomicU64,
        order: Ordering,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        if lab::latch_is_default() {
            return ByCas::change(word, order, next);
        }
        change_otherwise(word, order, next)
    }

    #[inline(always)]
    fn take_shared(word: &AtomicU64, order: Ordering) -> u64 {
        if lab::latch_is_default() {
            return ByCas::take_shared(word, order);
        }
        take_shared_otherwise(word, order)
    }
}

#[cold]
fn change_otherwise(
    word: &AtomicU64,
    order: Ordering,
    next: impl Fn(u64) -> Option<u64>,
) -> Result<u64, u64> {
    match lab::latch() {
        LatchForm::Cas | LatchForm::Add => ByCas::change(word, order, next),
        LatchForm::Spin => UnderSpin::change(word, order, next),
    }
}

#[cold]
fn take_shared_otherwise(word: &AtomicU64, order: Ordering) -> u64 {
    match lab::latch() {
        LatchForm::Cas | LatchForm::Add => ByCas::take_shared(word, order),
        LatchForm::Spin => UnderSpin::take_shared(word, order),
    }
}
