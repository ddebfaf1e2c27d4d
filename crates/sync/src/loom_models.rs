//! Loom models: every interleaving, and every value that the memory model lets a load return.

use crate::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::cell::UnsafeCell;
use crate::lab;
use crate::latch::{ByAdd, ByCas, Chosen, Latch, RawLatch, UnderSpin};
use crate::pin::{self, RawPin};
use crate::spin::{Adaptive, BackOff, Cas, ChosenSpin, Fixed, RawSpin, Tas, Ttas};
use crate::thread::{spawn, yield_now};
use crate::{Parker, PerThread, Spinlock, WakerSlot, thread_index};
use loom::sync::Arc;
use std::task::{Wake, Waker};

/// A value that loom watches for races: only the latch keeps the threads apart.
struct Guarded<R: RawLatch = ByCas> {
    latch: Latch<R>,
    value: UnsafeCell<u64>,
}

impl<R: RawLatch> Guarded<R> {
    fn new() -> Arc<Guarded<R>> {
        Arc::new(Guarded {
            latch: Latch::of(),
            value: UnsafeCell::new(0),
        })
    }
    fn add_one(&self) {
        // SAFETY: the caller holds the latch exclusively; that this keeps others out is what is
        // modelled.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
    fn get(&self) -> u64 {
        // SAFETY: the caller holds the latch; as above.
        self.value.with(|value| unsafe { *value })
    }
}

// SAFETY: the latch orders accesses to the value; loom fails the model if it does not.
unsafe impl<R: RawLatch> Sync for Guarded<R> {}
// SAFETY: nothing here is tied to a thread.
unsafe impl<R: RawLatch> Send for Guarded<R> {}

/// Keeps the number of interleavings bearable: at most so many forced switches in one execution.
fn model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(f);
}

/// Every form of the latch by its name, for models that all of them pass. The other forms take more
/// steps: they get fewer forced switches. (Under the spinlock, with two and three threads, loom
/// lets two waiters yield to each other for ever.)
macro_rules! each_latch {
    ($($model:ident),*) => {
        each_latch!(loom_latch_cas: ByCas, 0, $($model),*);
        each_latch!(loom_latch_spin: UnderSpin, 2, $($model),*);
        each_latch!(loom_latch_add: ByAdd, 1, $($model),*);
    };
    ($name:ident: $form:ident, $fewer:literal, $($model:ident),*) => {
        mod $name {
            $(#[test] fn $model() { super::$model::<super::$form>($fewer) })*
        }
    };
}

each_latch!(
    writers_exclude_each_other_and_wake,
    readers_and_writers_wake_each_other,
    downgrade_lets_nobody_between,
    only_one_reader_upgrades,
    a_torn_read_never_validates,
    from_optimistic_to_exclusive_misses_no_write,
    from_optimistic_to_shared_keeps_writers_out
);

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
fn loom_latch_as_chosen() {
    for &latch in lab::LatchForm::ALL {
        let choice = lab::Choice {
            latch,
            ..lab::Choice::default()
        };
        lab::select(choice).expect("every machine has it");
        only_one_reader_upgrades::<Chosen>(2);
    }
}

fn writers_exclude_each_other_and_wake<R: RawLatch>(fewer: usize) {
    model(3 - fewer, || {
        let shared = Guarded::<R>::new();
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

fn readers_and_writers_wake_each_other<R: RawLatch>(_fewer: usize) {
    // Two writers and two readers: each kind of hand-over, with both kinds asleep. With two forced
    // switches it takes a quarter of an hour.
    model(1, || {
        let shared = Guarded::<R>::new();
        let writer = |shared: Arc<Guarded<R>>| {
            move || {
                shared.latch.exclusive();
                shared.add_one();
                shared.latch.unlock_exclusive();
            }
        };
        let reader = |shared: Arc<Guarded<R>>| {
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

fn downgrade_lets_nobody_between<R: RawLatch>(fewer: usize) {
    model(2usize.saturating_sub(fewer).max(1), || {
        let shared = Guarded::<R>::new();
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

fn only_one_reader_upgrades<R: RawLatch>(fewer: usize) {
    model(2usize.saturating_sub(fewer).max(1), || {
        let shared = Guarded::<R>::new();
        let upgrade = |shared: &Guarded<R>| {
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
struct Pair<R: RawLatch = ByCas> {
    latch: Latch<R>,
    words: [AtomicU64; 2],
}

impl<R: RawLatch> Pair<R> {
    fn new() -> Arc<Pair<R>> {
        Arc::new(Pair {
            latch: Latch::of(),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }
    /// Stores without loading first: loom's search takes a thread's own load for the last access to
    /// a word, and would miss that an earlier reader could have come between.
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

fn a_torn_read_never_validates<R: RawLatch>(fewer: usize) {
    // That torn reads come up at all is part of the model: without, it would show nothing.
    let torn = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = torn.clone();
    model(3 - fewer, move || {
        let pair = Pair::<R>::new();
        let reader = {
            let (pair, torn) = (pair.clone(), counted.clone());
            spawn(move || {
                let Some(version) = pair.latch.optimistic() else {
                    return;
                };
                let (a, b) = pair.read();
                if pair.latch.validate(version) {
                    assert_eq!(a, b);
                } else if a != b {
                    torn.fetch_add(1, Ordering::Relaxed);
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
    assert!(torn.load(Ordering::Relaxed) > 0);
}

fn from_optimistic_to_exclusive_misses_no_write<R: RawLatch>(fewer: usize) {
    model(2usize.saturating_sub(fewer).max(1), || {
        let pair = Pair::<R>::new();
        let increment = |pair: &Pair<R>| {
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

fn from_optimistic_to_shared_keeps_writers_out<R: RawLatch>(fewer: usize) {
    let entered = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = entered.clone();
    model(3 - fewer, move || {
        let pair = Pair::<R>::new();
        let reader = {
            let (pair, entered) = (pair.clone(), counted.clone());
            spawn(move || {
                let Some(version) = pair.latch.optimistic() else {
                    return;
                };
                let before = pair.read();
                if pair.latch.shared_if(version) {
                    assert_eq!(pair.read(), before);
                    assert_eq!(before.0, before.1);
                    entered.fetch_add(before.0 + 1, Ordering::Relaxed);
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
        entered.load(Ordering::Relaxed) > 2,
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

/// A task that is looked at for other reasons registers again and again.
#[test]
fn loom_waker_slot_kept_loses_no_wake_up() {
    model(3, || {
        let slot = Arc::new(WakerSlot::new());
        let done = Arc::new(AtomicU64::new(0));
        let task = std::sync::Arc::new(CountingWaker {
            wakes: AtomicU64::new(0),
            parker: Parker::new(),
        });
        let waker = Waker::from(task.clone());
        slot.register(&waker);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (slot, done) = (slot.clone(), done.clone());
                spawn(move || {
                    done.fetch_add(1, Ordering::Relaxed);
                    slot.wake();
                })
            })
            .collect();
        loop {
            slot.register(&waker);
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

/// What a pin keeps: it may be taken away when there are no pins, and is not to be looked at
/// afterwards.
struct Pinned {
    word: AtomicU64,
    value: UnsafeCell<u64>,
}

// SAFETY: pins order accesses to the value; loom fails the model if they do not.
unsafe impl Sync for Pinned {}
// SAFETY: nothing here is tied to a thread.
unsafe impl Send for Pinned {}

const THERE: u64 = 1 << 33;

fn a_pin_keeps_what_it_pins<P: RawPin>() {
    model(2, || {
        let pinned = Arc::new(Pinned {
            word: AtomicU64::new(THERE),
            value: UnsafeCell::new(1),
        });
        let reader = |pinned: Arc<Pinned>| {
            move || {
                if P::add(&pinned.word) & THERE != 0 {
                    // SAFETY: see `Pinned`.
                    assert_eq!(pinned.value.with(|value| unsafe { *value }), 1);
                }
                assert!(P::take(&pinned.word) & pin::COUNT > 0);
            }
        };
        let readers = [0, 1].map(|_| spawn(reader(pinned.clone())));
        let end = |word| (word & pin::COUNT == 0).then_some(word & !THERE);
        let ended = pinned
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, end);
        if ended.is_ok() {
            // SAFETY: see `Pinned`.
            pinned.value.with_mut(|value| unsafe { *value = 0 });
        }
        for reader in readers {
            reader.join().unwrap();
        }
        let left = pinned.word.load(Ordering::Relaxed);
        assert_eq!(left & (pin::COUNT | pin::LOCKED), 0);
    });
}

#[test]
fn loom_a_pin_by_add_keeps_what_it_pins() {
    a_pin_keeps_what_it_pins::<pin::ByAdd>();
}

#[test]
fn loom_a_pin_by_cas_keeps_what_it_pins() {
    a_pin_keeps_what_it_pins::<pin::ByCas>();
}

#[test]
fn loom_a_pin_under_a_spinlock_keeps_what_it_pins() {
    a_pin_keeps_what_it_pins::<pin::UnderSpin>();
}
