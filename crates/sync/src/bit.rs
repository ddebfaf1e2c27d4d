//! A spinlock of one bit, in a word that it guards.

use crate::atomic::{AtomicU64, Ordering};
use crate::spin::SpinWait;

/// Sets `bit`, once nobody else has it set. The word before, in which it is not.
///
/// The holder clears it by whatever it stores next, with Release. A waiter that fails writes nothing, so that the holder may
/// use a plain store if all changes of the word are made under the bit.
#[inline]
pub(crate) fn lock(word: &AtomicU64, bit: u64) -> u64 {
    let seen = word.load(Ordering::Relaxed) & !bit;
    // Acquire: after whatever the last holder did.
    match word.compare_exchange_weak(seen, seen | bit, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => seen,
        Err(now) => lock_contended(word, bit, now),
    }
}

#[cold]
fn lock_contended(word: &AtomicU64, bit: u64, mut now: u64) -> u64 {
    let mut spin = SpinWait::new();
    loop {
        if now & bit != 0 {
            // A holder that lost its core gets this one.
            if !spin.spin() {
                crate::thread::yield_now();
            }
            // Test before test-and-set. (In a model the test may answer from the past for ever.)
            if !cfg!(loom) {
                now = word.load(Ordering::Relaxed);
                if now & bit != 0 {
                    continue;
                }
            }
        }
        let seen = now & !bit;
        match word.compare_exchange_weak(seen, seen | bit, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return seen,
            Err(after) => now = after,
        }
    }
}
