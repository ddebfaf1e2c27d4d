//! Small dense numbers for threads, so that each can have its own slot of everything.

use crate::pad::CachePadded;

/// How many threads may hold an index at once.
///
/// The server runs one event loop a core and a handful of helpers; 256 leaves room for 200 cores.
/// Models and interpreted tests have few threads, and what there is one a thread of is dear there.
pub const MAX_THREADS: usize = if cfg!(shuttle) {
    24
} else if cfg!(miri) {
    16
} else {
    256
};

/// The calling thread's number, below [`MAX_THREADS`]: the smallest that was free when the thread
/// first asked. It goes back when the thread ends, and what its holder wrote before is seen by the
/// next.
///
/// Panics if more than [`MAX_THREADS`] threads hold one.
#[inline]
pub fn thread_index() -> usize {
    imp::thread_index()
}

/// One more than the largest index ever given out: how far a walk over all threads has to go.
pub fn threads_high_water() -> usize {
    imp::high_water()
}

#[cfg(not(any(loom, shuttle)))]
mod imp {
    use super::MAX_THREADS;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    const WORDS: usize = MAX_THREADS.div_ceil(64);

    /// A bit for each index in use.
    static IN_USE: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
    static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);

    const NONE: usize = usize::MAX;

    thread_local! {
        /// Read on every use: has no destructor, so reading it needs no registration.
        static INDEX: Cell<usize> = const { Cell::new(NONE) };
        /// Gives the index back at the thread's end.
        static LEASE: Lease = const { Lease };
    }

    struct Lease;

    impl Drop for Lease {
        fn drop(&mut self) {
            let index = INDEX.replace(NONE);
            if index != NONE {
                // Release: what this thread wrote to its slots is seen by the thread that takes the
                // index.
                IN_USE[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Release);
            }
        }
    }

    #[inline]
    pub(super) fn thread_index() -> usize {
        let index = INDEX.get();
        if index != NONE { index } else { first_use() }
    }

    pub(super) fn high_water() -> usize {
        HIGH_WATER.load(Ordering::Acquire)
    }

    #[cold]
    fn first_use() -> usize {
        let index = acquire();
        INDEX.set(index);
        // A destructor that runs after the lease's own finds no lease: that index is not given
        // back.
        let _ = LEASE.try_with(|_| ());
        index
    }

    fn acquire() -> usize {
        for (i, word) in IN_USE.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            loop {
                let bit = bits.trailing_ones() as usize;
                let index = i * 64 + bit;
                if bit == 64 || index >= MAX_THREADS {
                    break;
                }
                // Acquire: pairs with the Release of the thread that gave it back.
                match word.compare_exchange_weak(
                    bits,
                    bits | 1 << bit,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        HIGH_WATER.fetch_max(index + 1, Ordering::AcqRel);
                        return index;
                    }
                    Err(now) => bits = now,
                }
            }
        }
        panic!("more than {MAX_THREADS} threads use per-thread slots");
    }
}

#[cfg(any(loom, shuttle))]
mod imp {
    use crate::atomic::{AtomicUsize, Ordering};
    use crate::model;

    // A model's threads are coroutines of one: indexes come from its own thread-locals, and start
    // afresh in every execution. They are not given back: a model has few threads.
    model::lazy_static! {
        static ref NEXT: AtomicUsize = AtomicUsize::new(0);
    }
    model::thread_local! {
        static INDEX: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn thread_index() -> usize {
        INDEX.with(|index| *index)
    }

    pub(super) fn high_water() -> usize {
        NEXT.load(Ordering::Relaxed)
    }
}

/// Slots of a [`PerThread`]: loom's models have very few threads.
const SLOTS: usize = if cfg!(loom) { 4 } else { MAX_THREADS };

/// A value for every thread, each on its own cache lines.
///
/// All of them can be read by anyone; what makes writes cheap is that only the owner writes its
/// own.
#[derive(Debug)]
pub struct PerThread<T> {
    slots: Box<[CachePadded<T>]>,
}

impl<T> PerThread<T> {
    /// `make(i)` for each index.
    pub fn new(mut make: impl FnMut(usize) -> T) -> PerThread<T> {
        PerThread {
            slots: (0..SLOTS).map(|i| CachePadded::new(make(i))).collect(),
        }
    }

    /// The calling thread's.
    #[inline]
    pub fn mine(&self) -> &T {
        &self.slots[thread_index()]
    }

    /// Another thread's; `index` below [`len`](PerThread::len).
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        &self.slots[index]
    }

    /// How many slots there are: [`MAX_THREADS`].
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &**slot)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> PerThread<T> {
        PerThread::new(|_| T::default())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::HashSet;
    use std::sync::{Barrier, atomic::AtomicU64, atomic::Ordering};

    #[test]
    fn living_threads_differ_and_ended_ones_give_back() {
        const THREADS: usize = 8;
        // More threads in all than there are indexes, each needing one.
        const TIMES: usize = if cfg!(miri) {
            2
        } else {
            2 * MAX_THREADS / THREADS
        };
        for _ in 0..TIMES {
            let all_alive = Barrier::new(THREADS);
            let indexes: HashSet<usize> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS)
                    .map(|_| {
                        scope.spawn(|| {
                            let index = thread_index();
                            assert_eq!(thread_index(), index);
                            all_alive.wait();
                            index
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect()
            });
            assert_eq!(indexes.len(), THREADS);
            assert!(indexes.iter().all(|&index| index < threads_high_water()));
        }
    }

    #[test]
    fn each_thread_has_its_slot() {
        let slots: PerThread<AtomicU64> = PerThread::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| slots.mine().fetch_add(1, Ordering::Relaxed));
            }
        });
        assert_eq!(
            slots
                .iter()
                .map(|slot| slot.load(Ordering::Relaxed))
                .sum::<u64>(),
            4
        );
        assert_eq!(slots.len(), SLOTS);
        let here = slots.get(thread_index()) as *const AtomicU64;
        assert_eq!(here, slots.mine() as *const AtomicU64);
    }

    #[test]
    fn a_thread_that_is_ending_can_still_ask() {
        struct AsksAtTheEnd(Cell<Option<std::sync::mpsc::Sender<usize>>>);
        impl Drop for AsksAtTheEnd {
            fn drop(&mut self) {
                if let Some(sender) = self.0.take() {
                    sender.send(thread_index()).unwrap();
                }
            }
        }
        thread_local! {
            static LAST: AsksAtTheEnd = const { AsksAtTheEnd(Cell::new(None)) };
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || LAST.with(|last| last.0.set(Some(sender))))
            .join()
            .unwrap();
        assert!(receiver.recv().unwrap() < MAX_THREADS);
    }
}
