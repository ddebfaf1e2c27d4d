//! Loom models: every interleaving, and every value that the memory model lets a load return.

use crate::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::cell::UnsafeCell;
use crate::spin::{Adaptive, BackOff, Cas, ChosenBackOff, ChosenSpin, Fixed, RawSpin, Tas, Ttas};
use crate::thread::{spawn, yield_now};
use crate::{Latch, Parker, PerThread, Spinlock, WakerSlot, thread_index};
use loom::sync::Arc;
use std::task::{Wake, Waker};

/// A value that loom watches for races: only the latch keeps the threads apart.
struct Guarded {
    latch: Latch,
    value: UnsafeCell<u64>,
}

impl Guarded {
    fn new() -> Arc<Guarded> {
        Arc::new(Guarded {
            latch: Latch::new(),
            value: UnsafeCell::new(0),
        })
    }
    fn add_one(&self) {
        // SAFETY: the caller holds the latch exclusively; that this keeps others out is what is modelled.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
    fn get(&self) -> u64 {
        // SAFETY: the caller holds the latch; as above.
        self.value.with(|value| unsafe { *value })
    }
}

// SAFETY: the latch orders accesses to the value; loom fails the model if it does not.
unsafe impl Sync for Guarded {}
// SAFETY: nothing here is tied to a thread.
unsafe impl Send for Guarded {}

/// Keeps the number of interleavings bearable: at most so many forced switches in one execution.
fn model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(f);
}

fn spinlock_excludes<R: RawSpin, B: BackOff + 'static>() {
    model(3, || {
        let lock = Arc::new(Spinlock::<u32, R, B>::of(R::NAME, 0));
        let other = {
            let lock = lock.clone();
            spawn(move || {
                for _ in 0..2 {
                    *lock.lock() += 1;
                }
            })
        };
        *lock.lock() += 1;
        other.join().unwrap();
        assert_eq!(*lock.lock(), 3);
    });
}

#[test]
fn loom_spinlock_test_and_set_excludes() {
    spinlock_excludes::<Tas, Fixed>();
    spinlock_excludes::<Tas, Adaptive>();
}

#[test]
fn loom_spinlock_test_then_test_and_set_excludes() {
    spinlock_excludes::<Ttas, Fixed>();
    spinlock_excludes::<Ttas, Adaptive>();
}

#[test]
fn loom_spinlock_compare_and_swap_excludes() {
    spinlock_excludes::<Cas, Fixed>();
    spinlock_excludes::<Cas, Adaptive>();
}

#[test]
fn loom_spinlock_as_chosen_excludes() {
    spinlock_excludes::<ChosenSpin, Fixed>();
}

#[test]
fn loom_latch_writers_exclude_each_other_and_wake() {
    model(3, || {
        let shared = Guarded::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                spawn(move || {
                    shared.latch.exclusive();
                    shared.add_one();
                    shared.latch.unlock_exclusive();
                })
            })
            .collect();
        shared.latch.exclusive();
        shared.add_one();
        shared.latch.unlock_exclusive();
        for other in others {
            other.join().unwrap();
        }
        shared.latch.shared();
        assert_eq!(shared.get(), 3);
        shared.latch.unlock_shared();
        assert!(shared.latch.is_free());
    });
}

#[test]
fn loom_latch_readers_and_writers_wake_each_other() {
    // Two writers and two readers: each kind of hand-over, with both kinds asleep.
    model(2, || {
        let shared = Guarded::new();
        let writer = |shared: Arc<Guarded>| {
            move || {
                shared.latch.exclusive();
                shared.add_one();
                shared.latch.unlock_exclusive();
            }
        };
        let reader = |shared: Arc<Guarded>| {
            move || {
                shared.latch.shared();
                assert!(shared.get() <= 2);
                shared.latch.unlock_shared();
            }
        };
        let others = [
            spawn(writer(shared.clone())),
            spawn(reader(shared.clone())),
            spawn(reader(shared.clone())),
        ];
        writer(shared.clone())();
        for other in others {
            other.join().unwrap();
        }
        assert!(shared.latch.is_free());
        assert_eq!(shared.get(), 2);
    });
}

#[test]
fn loom_latch_downgrade_lets_nobody_between() {
    model(3, || {
        let shared = Guarded::new();
        let other = {
            let shared = shared.clone();
            spawn(move || {
                shared.latch.exclusive();
                shared.add_one();
                shared.latch.unlock_exclusive();
            })
        };
        let reader = {
            let shared = shared.clone();
            spawn(move || {
                shared.latch.shared();
                shared.get();
                shared.latch.unlock_shared();
            })
        };
        shared.latch.exclusive();
        shared.add_one();
        let mine = shared.get();
        shared.latch.downgrade();
        assert_eq!(shared.get(), mine);
        shared.latch.unlock_shared();
        other.join().unwrap();
        reader.join().unwrap();
        assert!(shared.latch.is_free());
    });
}

#[test]
fn loom_latch_only_one_reader_upgrades() {
    model(3, || {
        let shared = Guarded::new();
        let upgrade = |shared: &Guarded| {
            shared.latch.shared();
            if shared.latch.try_upgrade() {
                shared.add_one();
                shared.latch.unlock_exclusive();
                1
            } else {
                shared.get();
                shared.latch.unlock_shared();
                0
            }
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                spawn(move || upgrade(&shared))
            })
            .collect();
        let mut upgrades = upgrade(&shared);
        for other in others {
            upgrades += other.join().unwrap();
        }
        shared.latch.shared();
        assert_eq!(shared.get(), upgrades);
    });
}

/// Two words that a writer keeps equal, read optimistically.
struct Pair {
    latch: Latch,
    words: [AtomicU64; 2],
}

impl Pair {
    fn new() -> Arc<Pair> {
        Arc::new(Pair {
            latch: Latch::new(),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }
    /// Stores without loading first: loom's search takes a thread's own load for the last access to a word,
    /// and would miss that an earlier reader could have come between.
    fn set(&self, value: u64) {
        for word in &self.words {
            word.store(value, Ordering::Relaxed);
        }
    }
    fn read(&self) -> (u64, u64) {
        (
            self.words[0].load(Ordering::Relaxed),
            self.words[1].load(Ordering::Relaxed),
        )
    }
}

#[test]
fn loom_latch_a_torn_read_never_validates() {
    // That torn reads come up at all is part of the model: without, it would show nothing.
    static TORN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    loom::model(|| {
        let pair = Pair::new();
        let reader = {
            let pair = pair.clone();
            spawn(move || {
                let Some(version) = pair.latch.optimistic() else {
                    return;
                };
                let (a, b) = pair.read();
                if pair.latch.validate(version) {
                    assert_eq!(a, b);
                } else if a != b {
                    TORN.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        for value in 1..=2 {
            pair.latch.exclusive();
            pair.set(value);
            pair.latch.unlock_exclusive();
        }
        reader.join().unwrap();
        let version = pair.latch.optimistic().unwrap();
        assert_eq!(pair.read(), (2, 2));
        assert!(pair.latch.validate(version));
    });
    assert!(TORN.load(Ordering::Relaxed) > 0);
}

#[test]
fn loom_latch_from_optimistic_to_exclusive_misses_no_write() {
    model(2, || {
        let pair = Pair::new();
        let increment = |pair: &Pair| {
            loop {
                let Some(version) = pair.latch.optimistic() else {
                    yield_now();
                    continue;
                };
                let (a, _) = pair.read();
                if pair.latch.exclusive_if(version) {
                    // What was read before is what is there now: no compare needed.
                    pair.set(a + 1);
                    pair.latch.unlock_exclusive();
                    return;
                }
            }
        };
        let other = {
            let pair = pair.clone();
            spawn(move || increment(&pair))
        };
        let reader = {
            let pair = pair.clone();
            spawn(move || {
                pair.latch.shared();
                let (a, b) = pair.read();
                assert_eq!(a, b);
                pair.latch.unlock_shared();
            })
        };
        increment(&pair);
        other.join().unwrap();
        reader.join().unwrap();
        assert_eq!(pair.read(), (2, 2));
    });
}

#[test]
fn loom_latch_from_optimistic_to_shared_keeps_writers_out() {
    static ENTERED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    loom::model(|| {
        let pair = Pair::new();
        let reader = {
            let pair = pair.clone();
            spawn(move || {
                let Some(version) = pair.latch.optimistic() else {
                    return;
                };
                let before = pair.read();
                if pair.latch.shared_if(version) {
                    assert_eq!(pair.read(), before);
                    assert_eq!(before.0, before.1);
                    ENTERED.fetch_add(before.0 + 1, Ordering::Relaxed);
                    pair.latch.unlock_shared();
                }
            })
        };
        pair.latch.exclusive();
        pair.set(1);
        pair.latch.unlock_exclusive();
        reader.join().unwrap();
    });
    assert!(
        ENTERED.load(Ordering::Relaxed) > 2,
        "both before and after the write"
    );
}

#[test]
fn loom_parker_loses_no_token() {
    loom::model(|| {
        let parker = Arc::new(Parker::new());
        let ready = Arc::new(AtomicBool::new(false));
        let other = {
            let (parker, ready) = (parker.clone(), ready.clone());
            spawn(move || {
                ready.store(true, Ordering::Relaxed);
                parker.unpark();
            })
        };
        parker.park();
        assert!(ready.load(Ordering::Relaxed));
        other.join().unwrap();
    });
}

#[test]
fn loom_parker_two_tokens_for_two_parks() {
    model(3, || {
        let parker = Arc::new(Parker::new());
        let done = Arc::new(AtomicU64::new(0));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (parker, done) = (parker.clone(), done.clone());
                spawn(move || {
                    done.fetch_add(1, Ordering::Relaxed);
                    parker.unpark();
                })
            })
            .collect();
        // Tokens merge, so the condition decides, and the last unpark cannot be missed.
        while done.load(Ordering::Relaxed) < 2 {
            parker.park();
        }
        for other in others {
            other.join().unwrap();
        }
    });
}

/// Counts wakes, and passes them to a thread that waits for them.
struct CountingWaker {
    wakes: AtomicU64,
    parker: Parker,
}

impl Wake for CountingWaker {
    fn wake(self: std::sync::Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.parker.unpark();
    }
}

#[test]
fn loom_waker_slot_loses_no_wake_up() {
    loom::model(|| {
        let slot = Arc::new(WakerSlot::new());
        let ready = Arc::new(AtomicBool::new(false));
        let task = std::sync::Arc::new(CountingWaker {
            wakes: AtomicU64::new(0),
            parker: Parker::new(),
        });
        let other = {
            let (slot, ready) = (slot.clone(), ready.clone());
            spawn(move || {
                ready.store(true, Ordering::Relaxed);
                slot.wake();
            })
        };
        let waker = Waker::from(task.clone());
        loop {
            slot.register(&waker);
            if ready.load(Ordering::Relaxed) {
                break;
            }
            task.parker.park();
        }
        other.join().unwrap();
        assert!(task.wakes.load(Ordering::Relaxed) <= 1);
    });
}

#[test]
fn loom_waker_slot_two_wakers_while_registering_anew() {
    model(3, || {
        let slot = Arc::new(WakerSlot::new());
        let done = Arc::new(AtomicU64::new(0));
        let task = std::sync::Arc::new(CountingWaker {
            wakes: AtomicU64::new(0),
            parker: Parker::new(),
        });
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (slot, done) = (slot.clone(), done.clone());
                spawn(move || {
                    done.fetch_add(1, Ordering::Relaxed);
                    slot.wake();
                })
            })
            .collect();
        let waker = Waker::from(task.clone());
        loop {
            slot.register(&waker);
            if done.load(Ordering::Relaxed) == 2 {
                break;
            }
            task.parker.park();
            // A token from a wake still under way would have us spin.
            yield_now();
        }
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn loom_threads_have_their_own_slots() {
    loom::model(|| {
        let slots = Arc::new(PerThread::new(|_| AtomicU64::new(0)));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let slots = slots.clone();
                spawn(move || {
                    slots.mine().store(1, Ordering::Relaxed);
                    thread_index()
                })
            })
            .collect();
        let indexes: Vec<_> = others
            .into_iter()
            .map(|other| other.join().unwrap())
            .collect();
        assert_ne!(indexes[0], indexes[1]);
        assert!(
            indexes
                .iter()
                .all(|&index| slots.get(index).load(Ordering::Relaxed) == 1)
        );
    });
}
