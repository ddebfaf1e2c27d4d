//! Each thread's numbers.

use crate::counter::Counter;
use crate::event::WaitEvent;
use crate::histogram::Histogram;
use std::sync::atomic::AtomicU64;
use throng_sync::{CachePadded, MAX_THREADS, thread_index, threads_high_water};

/// What one thread records: written by it alone.
pub(crate) struct Slot {
    pub(crate) counters: [AtomicU64; Counter::COUNT],
    pub(crate) waits: [WaitCell; WaitEvent::COUNT],
}

/// One event's waits on one thread.
pub(crate) struct WaitCell {
    pub(crate) nanos: AtomicU64,
    pub(crate) longest: AtomicU64,
    /// The object of the longest wait.
    pub(crate) longest_object: AtomicU64,
    pub(crate) histogram: Histogram,
}

impl WaitCell {
    const fn new() -> WaitCell {
        WaitCell {
            nanos: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            longest_object: AtomicU64::new(0),
            histogram: Histogram::new(),
        }
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            counters: [const { AtomicU64::new(0) }; Counter::COUNT],
            waits: [const { WaitCell::new() }; WaitEvent::COUNT],
        }
    }
}

/// Zero pages until a thread touches its own, so the size costs address space only.
static SLOTS: [CachePadded<Slot>; MAX_THREADS] =
    [const { CachePadded::new(Slot::new()) }; MAX_THREADS];

#[inline]
pub(crate) fn mine() -> &'static Slot {
    &SLOTS[thread_index()]
}

/// The slots that any thread has used.
pub(crate) fn all() -> impl Iterator<Item = &'static Slot> {
    SLOTS[..threads_high_water()].iter().map(|slot| &**slot)
}
