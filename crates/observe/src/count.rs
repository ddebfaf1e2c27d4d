//! Counting on the calling thread, and the sums over all threads.

use crate::counter::Counter;
use crate::histogram::add;
use crate::slots;
use std::sync::atomic::Ordering;

/// Counts `n` more on the calling thread.
#[inline]
pub fn count(counter: Counter, n: u64) {
    add(&slots::mine().counters[counter as usize], n);
}

/// The sum over all threads since the process started.
pub fn counter(counter: Counter) -> u64 {
    slots::all()
        .map(|slot| slot.counters[counter as usize].load(Ordering::Relaxed))
        .sum()
}

/// Every counter with its sum.
pub fn counters() -> Vec<(Counter, u64)> {
    Counter::ALL
        .iter()
        .map(|&which| (which, counter(which)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_threads_counted_stays() {
        let before = counter(Counter::Deadlock);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..1000 {
                        count(Counter::Deadlock, 2);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(counter(Counter::Deadlock), before + 8000);
        assert!(counters().contains(&(Counter::Deadlock, before + 8000)));
    }
}
