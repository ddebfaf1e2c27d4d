//! Recording waits and adding them up.

use crate::clock::now_nanos;
use crate::event::WaitEvent;
use crate::histogram::{HistogramSnapshot, add};
use crate::slots;
use std::sync::atomic::Ordering;

/// Records a wait of `nanos` for `event` on `object` (what the number means is the event's, see
/// [`WaitEvent`]), on the calling thread.
#[inline]
pub fn record_wait(event: WaitEvent, object: u64, nanos: u64) {
    let cell = &slots::mine().waits[event as usize];
    add(&cell.nanos, nanos);
    cell.histogram.record(nanos);
    if nanos > cell.longest.load(Ordering::Relaxed) {
        cell.longest.store(nanos, Ordering::Relaxed);
        cell.longest_object.store(object, Ordering::Relaxed);
    }
}

/// A wait under way; recorded when dropped.
#[derive(Debug)]
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    event: WaitEvent,
    object: u64,
    since: u64,
}

/// Begins a wait.
#[inline]
pub fn waiting(event: WaitEvent, object: u64) -> Waiting {
    Waiting {
        event,
        object,
        since: now_nanos(),
    }
}

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        record_wait(
            self.event,
            self.object,
            now_nanos().saturating_sub(self.since),
        );
    }
}

/// All waits for one event, on all threads, since the process started.
#[derive(Clone, Debug)]
pub struct WaitTotals {
    pub event: WaitEvent,
    pub count: u64,
    pub nanos: u64,
    pub longest_nanos: u64,
    /// What the longest was for.
    pub longest_object: u64,
    pub histogram: HistogramSnapshot,
}

/// The totals of every event that was ever waited for.
pub fn snapshot() -> Vec<WaitTotals> {
    WaitEvent::ALL
        .iter()
        .map(|&event| totals(event))
        .filter(|totals| totals.count > 0)
        .collect()
}

fn totals(event: WaitEvent) -> WaitTotals {
    let mut totals = WaitTotals {
        event,
        count: 0,
        nanos: 0,
        longest_nanos: 0,
        longest_object: 0,
        histogram: HistogramSnapshot::default(),
    };
    for slot in slots::all() {
        let cell = &slot.waits[event as usize];
        totals.nanos += cell.nanos.load(Ordering::Relaxed);
        let longest = cell.longest.load(Ordering::Relaxed);
        if longest > totals.longest_nanos {
            totals.longest_nanos = longest;
            totals.longest_object = cell.longest_object.load(Ordering::Relaxed);
        }
        cell.histogram.add_to(&mut totals.histogram);
    }
    totals.count = totals.histogram.count();
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(event: WaitEvent) -> Option<WaitTotals> {
        snapshot().into_iter().find(|totals| totals.event == event)
    }

    #[test]
    fn waits_of_all_threads_add_up() {
        // An event that no other test of this crate uses.
        let event = WaitEvent::VacuumDelay;
        assert!(of(event).is_none());
        record_wait(event, 7, 100);
        std::thread::spawn(move || record_wait(event, 8, 300))
            .join()
            .unwrap();
        let totals = of(event).unwrap();
        assert_eq!((totals.count, totals.nanos), (2, 400));
        assert_eq!((totals.longest_nanos, totals.longest_object), (300, 8));
        assert!(totals.histogram.quantile(1.0).unwrap() >= 300);
    }

    #[test]
    fn a_dropped_wait_is_recorded() {
        let event = WaitEvent::Sleep;
        let wait = waiting(event, 1);
        while now_nanos() <= wait.since {}
        drop(wait);
        let totals = of(event).unwrap();
        assert_eq!(totals.count, 1);
        assert!(totals.nanos > 0);
    }
}
