//! A spinlock of one bit, in a word that it guards.
//!
//! It is tried and waited for as `lab_spinlock` and `lab_spin_backoff` say. The forms that only
//! aarch64 has are [`Spinlock`](crate::Spinlock)'s own: here they are test, then test-and-set.

use crate::atomic::{AtomicU64, Ordering};
use crate::lab::{self, SpinForm};
use crate::spin::{BackOff, ChosenBackOff, contention};

/// Sets `bit`, once nobody else has it set. The word before, in which it is not.
///
/// The holder clears it by whatever it does next, with Release. Nobody who waits changes any other
/// bit, so that the holder may use a plain store if all changes of the word are made under the bit.
#[inline]
pub(crate) fn lock(word: &AtomicU64, bit: u64, name: &'static str) -> u64 {
    try_lock(word, bit).unwrap_or_else(|| wait(word, bit, name))
}

/// Acquire: after whatever the last holder did.
#[inline]
fn try_lock(word: &AtomicU64, bit: u64) -> Option<u64> {
    // In a model each test-and-set in vain would be one more value to read, without end.
    if lab::spin() == SpinForm::Cas || cfg!(loom) {
        return compare_and_swap(word, bit);
    }
    let before = word.fetch_or(bit, Ordering::Acquire);
    (before & bit == 0).then_some(before)
}

#[inline]
fn compare_and_swap(word: &AtomicU64, bit: u64) -> Option<u64> {
    let mut seen = word.load(Ordering::Relaxed) & !bit;
    loop {
        match word.compare_exchange(seen, seen | bit, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return Some(seen),
            Err(now) if now & bit != 0 => return None,
            // Only other bits were not as expected.
            Err(now) => seen = now,
        }
    }
}

#[cold]
fn wait(word: &AtomicU64, bit: u64, name: &'static str) -> u64 {
    // Test-and-set tests nothing first, and compare-and-swap by itself. (In a model a test may
    // answer from the past for ever.)
    let tests = !matches!(lab::spin(), SpinForm::Tas | SpinForm::Cas) && !cfg!(loom);
    let mut before = 0;
    contention::seen(name, || {
        let mut back_off = ChosenBackOff::begin();
        loop {
            back_off.pause();
            if tests && word.load(Ordering::Relaxed) & bit != 0 {
                continue;
            }
            if let Some(got) = try_lock(word, bit) {
                before = got;
                break;
            }
        }
        back_off.end();
    });
    before
}
