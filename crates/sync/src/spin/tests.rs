//! Every form keeps threads apart; waits are told.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Under Miri each step is a thousand times dearer.
const ROUNDS: u64 = if cfg!(miri) { 15 } else { 10_000 };

fn keeps_threads_apart<R: RawSpin, B: BackOff>() {
    let lock = Spinlock::<u64, R, B>::of(R::NAME, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..ROUNDS {
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
    assert_eq!(*held, 4 * ROUNDS, "{} {}", R::NAME, B::NAME);
    assert!(lock.try_lock().is_none());
    assert!(!R::try_again(&lock.word));
    drop(held);
    assert!(lock.try_lock().is_some());
    assert_eq!(lock.into_inner(), 4 * ROUNDS);
}

#[test]
fn every_form_keeps_threads_apart() {
    keeps_threads_apart::<Tas, Fixed>();
    keeps_threads_apart::<Tas, Adaptive>();
    keeps_threads_apart::<Ttas, Fixed>();
    keeps_threads_apart::<Ttas, Adaptive>();
    keeps_threads_apart::<Cas, Fixed>();
    keeps_threads_apart::<Cas, Adaptive>();
    keeps_threads_apart::<ChosenSpin, ChosenBackOff>();
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[test]
fn every_form_in_assembly_keeps_threads_apart() {
    keeps_threads_apart::<aarch64::LlscFull, Fixed>();
    keeps_threads_apart::<aarch64::LlscFull, Adaptive>();
    keeps_threads_apart::<aarch64::Llsc, Fixed>();
    keeps_threads_apart::<aarch64::Llsc, Adaptive>();
    if crate::lab::SpinForm::Lse.is_available() {
        keeps_threads_apart::<aarch64::Lse, Fixed>();
        keeps_threads_apart::<aarch64::Lse, Adaptive>();
    }
}

#[test]
fn a_wait_is_told_and_a_free_lock_is_not() {
    static BEGUN: AtomicU64 = AtomicU64::new(0);
    static ENDED: AtomicU64 = AtomicU64::new(0);
    let ours = |name| name == "told";
    assert!(ours("told"));
    assert!(set_contention_hook(
        || {
            BEGUN.fetch_add(1, Ordering::Relaxed);
            7
        },
        |name, since| {
            assert_eq!(since, 7);
            if name == "told" {
                ENDED.fetch_add(1, Ordering::Relaxed);
            }
        },
    ));
    let lock = Spinlock::named("told", ());
    drop(lock.lock());
    assert_eq!(ENDED.load(Ordering::Relaxed), 0);
    let held = lock.lock();
    // Other tests' locks count too: this waits until one more wait than before is under way, which
    // may be theirs; so it lets go only when the thread below has surely tried, which its flag and
    // a few yields make likely and the loop around makes certain.
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| drop(lock.lock()));
        let before = BEGUN.load(Ordering::Relaxed);
        while BEGUN.load(Ordering::Relaxed) == before && !waiter.is_finished() {
            std::thread::yield_now();
        }
        drop(held);
        waiter.join().unwrap();
    });
    let second = ENDED.load(Ordering::Relaxed);
    assert!(second <= 1);
    assert!(!set_contention_hook(|| 0, |_, _| ()), "the first stays");
}
