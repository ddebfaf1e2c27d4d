//! The objects that one thread's waits were for, as many as there is room for.
//!
//! Objects are without number and the table is not, so it keeps those that waits were longest for,
//! by the algorithm Space Saving (Metwally, Agrawal and El Abbadi, "Efficient Computation of
//! Frequent and Top-k Elements in Data Streams", ICDT 2005), weighted by the wait's length, within
//! each set of a set-associative table:
//!
//! ```text
//! set = hash(event, object)          way 0     way 1   …   way 7
//!                                  ┌─────────┬─────────┬──┬─────────┐
//!   known: its weight grows        │ key     │ key     │  │ key     │
//!   new:   the lightest makes room,│ weight  │ weight  │  │ weight  │
//!          its weight is inherited │ measured│ measured│  │ measured│
//!                                  └─────────┴─────────┴──┴─────────┘
//! ```
//!
//! *What holds*, for a set through which waits of `n` nanoseconds went: an object for which more
//! than `n / WAYS` of them were waited is in it; what was measured for an object is never more than
//! what was waited for it, and less by at most `n / WAYS`. What is shown is what was measured; the
//! rest of an event's total belongs to objects not named.
//!
//! One thread writes, any thread reads: an entry's sequence number is odd while it is being
//! changed, and a reader who finds it odd or changed looks again (Boehm, "Can Seqlocks Get Along
//! With Programming Language Memory Models?", MSPC 2012).

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::histogram::{Histogram, HistogramSnapshot, add};
use crate::key::Key;
use crate::object::Holder;

/// 128 objects a thread: a server has a few dozen that matter.
const SETS: usize = 16;
const WAYS: usize = 8;

/// What is known of one object's waits.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) key: Key,
    pub(crate) nanos: u64,
    pub(crate) longest: u64,
    /// Who had it in the longest wait of which that is known, and how long that was.
    pub(crate) holder: Holder,
    pub(crate) held: u64,
    pub(crate) histogram: HistogramSnapshot,
}

pub(crate) struct ObjectTable {
    sets: [Set; SETS],
}

struct Set {
    /// Beside each other, so that a search reads two cache lines.
    keys: [[AtomicU64; 2]; WAYS],
    entries: [Entry; WAYS],
}

struct Entry {
    /// Odd while the entry, or its key, is being changed.
    sequence: AtomicU64,
    /// Nanoseconds waited for this object, and those of the objects that were here before at most.
    weight: AtomicU64,
    nanos: AtomicU64,
    longest: AtomicU64,
    holder: AtomicU64,
    held: AtomicU64,
    histogram: Histogram,
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            sequence: AtomicU64::new(0),
            weight: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            holder: AtomicU64::new(0),
            held: AtomicU64::new(0),
            histogram: Histogram::new(),
        }
    }

    /// Changes the entry such that no reader takes part of it for the whole.
    #[inline]
    fn change(&self, change: impl FnOnce()) {
        let before = self.sequence.load(Ordering::Relaxed);
        self.sequence
            .store(before.wrapping_add(1), Ordering::Relaxed);
        // Release: whoever sees any of the changes also sees the odd number, by the fence in
        // `read`.
        fence(Ordering::Release);
        change();
        // Release: the changes are seen by whoever sees the even number.
        self.sequence
            .store(before.wrapping_add(2), Ordering::Release);
    }

    /// What `look` sees between two changes. None where the owner changes it all the time.
    fn read<R>(&self, look: impl Fn() -> R) -> Option<R> {
        /// A change takes some hundred instructions and comes with a wait: a few looks are enough.
        const LOOKS: usize = 100;
        (0..LOOKS).find_map(|_| {
            // Acquire: what `look` reads is not older than this number.
            let before = self.sequence.load(Ordering::Acquire);
            if !before.is_multiple_of(2) {
                std::hint::spin_loop();
                return None;
            }
            let seen = look();
            // Acquire: nor newer than the number read next.
            fence(Ordering::Acquire);
            (self.sequence.load(Ordering::Relaxed) == before).then_some(seen)
        })
    }
}

impl Set {
    const fn new() -> Set {
        Set {
            keys: [const { [const { AtomicU64::new(0) }; 2] }; WAYS],
            entries: [const { Entry::new() }; WAYS],
        }
    }

    fn key_at(&self, way: usize) -> [u64; 2] {
        [0, 1].map(|i| self.keys[way][i].load(Ordering::Relaxed))
    }

    #[inline]
    fn find(&self, key: [u64; 2]) -> Option<usize> {
        (0..WAYS).find(|&way| self.key_at(way) == key)
    }

    fn lightest(&self) -> usize {
        let weight = |way: &usize| self.entries[*way].weight.load(Ordering::Relaxed);
        (0..WAYS).min_by_key(weight).expect("a set has ways")
    }

    /// Gives the lightest entry to another object. Its weight stays: that is the bound of what was
    /// not measured.
    #[cold]
    fn admit(&self, key: [u64; 2]) -> usize {
        let way = self.lightest();
        let entry = &self.entries[way];
        entry.change(|| {
            for (place, word) in self.keys[way].iter().zip(key) {
                place.store(word, Ordering::Relaxed);
            }
            for measured in [&entry.nanos, &entry.longest, &entry.holder, &entry.held] {
                measured.store(0, Ordering::Relaxed);
            }
            entry.histogram.clear();
        });
        way
    }
}

impl ObjectTable {
    pub(crate) const fn new() -> ObjectTable {
        ObjectTable {
            sets: [const { Set::new() }; SETS],
        }
    }

    /// Counts a wait. By the owner only.
    #[inline]
    pub(crate) fn record(&self, key: Key, nanos: u64, holder: Holder) {
        let words = key.to_words();
        let set = &self.sets[set_of(words)];
        let way = set.find(words).unwrap_or_else(|| set.admit(words));
        let entry = &set.entries[way];
        entry.change(|| {
            // A wait too short for the clock still shows that the object is waited for.
            add(&entry.weight, nanos.max(1));
            add(&entry.nanos, nanos);
            entry.histogram.record(nanos);
            if nanos > entry.longest.load(Ordering::Relaxed) {
                entry.longest.store(nanos, Ordering::Relaxed);
            }
            if !holder.is_none() && nanos >= entry.held.load(Ordering::Relaxed) {
                entry.held.store(nanos, Ordering::Relaxed);
                entry.holder.store(holder.raw(), Ordering::Relaxed);
            }
        });
    }

    /// Forgets everything. By the owner only.
    pub(crate) fn clear(&self) {
        for set in &self.sets {
            for (key, entry) in set.keys.iter().zip(&set.entries) {
                if key[0].load(Ordering::Relaxed) == 0 {
                    continue;
                }
                entry.change(|| {
                    key[0].store(0, Ordering::Relaxed);
                    entry.weight.store(0, Ordering::Relaxed);
                });
            }
        }
    }

    /// What is in it now.
    pub(crate) fn measured(&self) -> impl Iterator<Item = Measured> {
        let ways = |set: &Set, way: usize| {
            let entry = &set.entries[way];
            // Most of a table is empty: no need to copy that.
            Key::from_words(set.key_at(way))?;
            entry.read(|| {
                let mut histogram = HistogramSnapshot::default();
                entry.histogram.add_to(&mut histogram);
                Some(Measured {
                    key: Key::from_words(set.key_at(way))?,
                    nanos: entry.nanos.load(Ordering::Relaxed),
                    longest: entry.longest.load(Ordering::Relaxed),
                    holder: Holder::from_raw(entry.holder.load(Ordering::Relaxed)),
                    held: entry.held.load(Ordering::Relaxed),
                    histogram,
                })
            })?
        };
        self.sets
            .iter()
            .flat_map(move |set| (0..WAYS).filter_map(move |way| ways(set, way)))
    }
}

/// Fibonacci hashing (Knuth, "The Art of Computer Programming", 6.4): the product's high bits
/// depend on all of the key's.
#[inline]
fn set_of(key: [u64; 2]) -> usize {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = (key[0].rotate_left(32) ^ key[1].wrapping_mul(GOLDEN)).wrapping_mul(GOLDEN);
    (mixed >> (u64::BITS - SETS.ilog2())) as usize
}
const _: () = assert!(SETS.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::WaitEvent;
    use crate::object::Object;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn key(number: u64) -> Key {
        Key {
            event: WaitEvent::LatchExclusive,
            background: false,
            object: Object::page(number),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 40 }))]

        // Skewed numbers: some objects come again and again, most once.
        #[test]
        fn what_is_kept_is_within_the_bounds(
            waits in proptest::collection::vec(
                (prop_oneof![0u64..8, 0u64..4000], 0u64..10_000), 1..3000),
        ) {
            let table = Box::new(ObjectTable::new());
            let mut exact: HashMap<Key, (u64, u64, u64)> = HashMap::new();
            let mut through: HashMap<usize, u64> = HashMap::new();
            for (number, nanos) in waits {
                table.record(key(number), nanos, Holder::NONE);
                let sums = exact.entry(key(number)).or_default();
                *sums = (sums.0 + 1, sums.1 + nanos, sums.2.max(nanos));
                *through.entry(set_of(key(number).to_words())).or_default() += nanos.max(1);
            }
            let kept: HashMap<Key, Measured> = table.measured().map(|m| (m.key, m)).collect();
            for (key, (count, nanos, longest)) in exact {
                let allowed = through[&set_of(key.to_words())] / WAYS as u64;
                match kept.get(&key) {
                    None => prop_assert!(nanos <= allowed, "{key:?} is missing"),
                    Some(measured) => {
                        prop_assert!(measured.nanos <= nanos && measured.nanos + allowed >= nanos);
                        prop_assert!(measured.histogram.count() <= count);
                        prop_assert!(measured.longest <= longest);
                    }
                }
            }
        }
    }

    #[test]
    fn few_objects_are_counted_exactly() {
        let table = ObjectTable::new();
        for round in 0..10 {
            for number in 0..WAYS as u64 {
                let holder = if round == 3 {
                    Holder::session(9)
                } else {
                    Holder::NONE
                };
                table.record(key(number), number + round, holder);
            }
        }
        let measured: HashMap<u64, Measured> =
            table.measured().map(|m| (m.key.object.number, m)).collect();
        assert_eq!(measured.len(), WAYS);
        for (number, measured) in measured {
            assert_eq!(measured.nanos, 10 * number + 45);
            assert_eq!(measured.histogram.count(), 10);
            assert_eq!(measured.longest, number + 9);
            assert_eq!(measured.holder.pid(), Some(9));
        }
        table.clear();
        assert_eq!(table.measured().count(), 0);
        table.record(key(1), 5, Holder::NONE);
        let again: Vec<_> = table.measured().collect();
        assert_eq!(
            (again.len(), again[0].nanos, again[0].holder),
            (1, 5, Holder::NONE)
        );
    }

    #[test]
    fn a_reader_never_sees_half_an_entry() {
        // Every object's waits are all as long as its number: an entry that mixes two objects
        // shows.
        let table = Box::new(ObjectTable::new());
        let rounds = if cfg!(miri) { 200 } else { 50_000 };
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for i in 0..rounds {
                    let number = 1 + i % 997;
                    table.record(key(number), number, Holder::session(number as u32));
                }
            });
            while !writer.is_finished() {
                for measured in table.measured() {
                    let number = measured.key.object.number;
                    let count = measured.histogram.count();
                    assert_eq!(measured.nanos, number * count);
                    assert!(count == 0 || measured.longest == number);
                    assert!(count == 0 || measured.holder == Holder::session(number as u32));
                }
            }
        });
    }
}
