//! Pins: a count in a word that others share, in the three forms that PostgreSQL's buffer pins went
//! through.
//!
//! ```text
//!  63       62 … 32          31 … 0
//! | LOCKED | the word's own | pins |
//! ```
//!
//! | form | a pin is | PostgreSQL |
//! |---|---|---|
//! | [`UnderSpin`] | counted while LOCKED is held as a spinlock | before 9.6: `BufferDesc.buf_hdr_lock` |
//! | [`ByCas`] | a compare-and-swap, tried until it succeeds | from 9.6: `PinBuffer` |
//! | [`ByAdd`] | one atomic addition, looked at afterwards: the default | what was tried on Power8 |
//!
//! Whoever owns the word changes its own bits meanwhile by atomic read-modify-write, and leaves
//! LOCKED as it is.

use crate::atomic::{AtomicU64, Ordering};
use crate::bit;
use crate::lab::{self, PinForm};

/// One pin, as it is added to the word.
pub const ONE: u64 = 1;
/// The pins among the word's bits.
pub const COUNT: u64 = (1 << 32) - 1;
/// Set by [`UnderSpin`] while it counts.
pub const LOCKED: u64 = 1 << 63;

/// As waits for [`LOCKED`] are shown.
const NAME: &str = "pin";

/// One way of counting. Each returns the word as it was just before, without LOCKED. The forms may
/// be mixed on one word.
pub trait RawPin: 'static {
    /// One pin more. Acquire: what was published with the word's own bits is seen.
    fn add(word: &AtomicU64) -> u64;
    /// One pin less. Acquire and release: what was done under a pin is over for whoever finds none
    /// left.
    fn take(word: &AtomicU64) -> u64;
}

/// One atomic addition.
#[derive(Debug)]
pub enum ByAdd {}

impl RawPin for ByAdd {
    #[inline(always)]
    fn add(word: &AtomicU64) -> u64 {
        word.fetch_add(ONE, Ordering::Acquire) & !LOCKED
    }

    #[inline(always)]
    fn take(word: &AtomicU64) -> u64 {
        word.fetch_sub(ONE, Ordering::AcqRel) & !LOCKED
    }
}

/// A loop of compare-and-swap, which starts over whenever anybody else has changed the word.
#[derive(Debug)]
pub enum ByCas {}

impl RawPin for ByCas {
    #[inline(always)]
    fn add(word: &AtomicU64) -> u64 {
        change(word, Ordering::Acquire, |seen| seen.wrapping_add(ONE))
    }

    #[inline(always)]
    fn take(word: &AtomicU64) -> u64 {
        change(word, Ordering::AcqRel, |seen| seen.wrapping_sub(ONE))
    }
}

#[inline(always)]
fn change(word: &AtomicU64, order: Ordering, next: impl Fn(u64) -> u64) -> u64 {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        match word.compare_exchange_weak(seen, next(seen), order, Ordering::Relaxed) {
            Ok(_) => return seen & !LOCKED,
            Err(now) => seen = now,
        }
    }
}

/// Counts under a spinlock that is one bit of the word.
#[derive(Debug)]
pub enum UnderSpin {}

impl RawPin for UnderSpin {
    #[inline]
    fn add(word: &AtomicU64) -> u64 {
        bit::lock(word, LOCKED, NAME);
        // The word's own bits may change under the lock, so it is left by an addition, not by a
        // store. Release: the spinlock.
        word.fetch_add(ONE.wrapping_sub(LOCKED), Ordering::AcqRel) & !LOCKED
    }

    #[inline]
    fn take(word: &AtomicU64) -> u64 {
        bit::lock(word, LOCKED, NAME);
        word.fetch_sub(ONE.wrapping_add(LOCKED), Ordering::AcqRel) & !LOCKED
    }
}

/// What `lab_pin` says: see [`crate::lab`].
#[derive(Debug)]
pub enum Chosen {}

impl RawPin for Chosen {
    #[inline(always)]
    fn add(word: &AtomicU64) -> u64 {
        if lab::reads_pin() {
            return add_otherwise(word);
        }
        ByAdd::add(word)
    }

    #[inline(always)]
    fn take(word: &AtomicU64) -> u64 {
        if lab::reads_pin() {
            return take_otherwise(word);
        }
        ByAdd::take(word)
    }
}

#[cold]
fn add_otherwise(word: &AtomicU64) -> u64 {
    match lab::pin() {
        PinForm::None | PinForm::Add => ByAdd::add(word),
        PinForm::Cas => ByCas::add(word),
        PinForm::Spin => UnderSpin::add(word),
    }
}

#[cold]
fn take_otherwise(word: &AtomicU64) -> u64 {
    match lab::pin() {
        PinForm::None | PinForm::Add => ByAdd::take(word),
        PinForm::Cas => ByCas::take(word),
        PinForm::Spin => UnderSpin::take(word),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn counts_beside_changes_of_other_bits<P: RawPin>() {
        const OTHERS: u64 = 1 << 40;
        const TIMES: u32 = if cfg!(miri) { 30 } else { 20_000 };
        let word = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        let before = P::add(&word);
                        assert!(before & COUNT < 3 && before & LOCKED == 0);
                        let before = P::take(&word);
                        assert!((1..=3).contains(&(before & COUNT)));
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..TIMES {
                    word.fetch_or(OTHERS, Ordering::Relaxed);
                    word.fetch_and(!OTHERS, Ordering::Relaxed);
                }
                word.fetch_or(OTHERS, Ordering::Relaxed);
            });
        });
        assert_eq!(word.into_inner(), OTHERS);
    }

    #[test]
    fn every_form_counts_beside_changes_of_other_bits() {
        counts_beside_changes_of_other_bits::<ByAdd>();
        counts_beside_changes_of_other_bits::<ByCas>();
        counts_beside_changes_of_other_bits::<UnderSpin>();
    }
}
