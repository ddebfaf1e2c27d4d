//! The column cache: what scans took out of rows, kept for the next scan of the same pages.
//!
//! Rows lie together, as transactions want them; taking columns out of them is the larger part of a
//! big query. So a table has two forms, as in Lahiri et al., "Oracle Database In-Memory: A Dual
//! Format In-Memory Database" (ICDE 2015), but nobody keeps the second one up to date:
//!
//! ```text
//!   an extent           page 0: LSN 12   page 1: LSN 9   page 2: LSN 40   …     when its columns were taken out
//!                           l_shipdate ──► array       l_discount ──► array
//! ```
//! * What is kept holds for every snapshot: of such pages each version is there for all, or gone
//!   for all.
//! * It holds until one of the pages changes, which moves that page's LSN on. Whoever reads
//!   compares; writers know nothing of it.
//! * It takes no more than its limit. A column that does not fit takes the place of one that scans
//!   have passed by several times, or is not kept (CLOCK with small counts; a newcomer ages one of
//!   those there, so a scan larger than the cache finds its part again).

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef};
use foldhash::fast::FixedState;
use throng_types::{BlockNo, FileId, Lsn};

use crate::column::Kind;

/// Locks of their own, so that workers rarely meet.
const SHARDS: usize = 16;
/// Newcomers that may pass by before a column that nobody asks for goes.
const PATIENCE: u8 = 2;
/// What an entry takes beside its array.
const OVERHEAD: usize = 160;
/// Extents of which a shard remembers how they were, though it keeps nothing of them.
const MOST_NOTED: usize = 1 << 14;

/// Some neighbouring blocks of a file, named by the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    pub file: FileId,
    pub start: BlockNo,
}

/// A column of a table: its attribute number, and what is made of its values. Number 0
/// ([`Attribute::ROWS`]) is no column but how many rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attribute {
    pub number: i16,
    pub kind: Kind,
}

impl Attribute {
    pub const ROWS: Attribute = Attribute {
        number: 0,
        kind: Kind::Bool,
    };
}

/// A column's values in an extent's rows, with the pages' LSNs when they were taken out.
#[derive(Clone)]
pub struct CachedColumn {
    pub values: ArrayRef,
    pub lsns: Arc<[Lsn]>,
}

/// See the module's page.
pub struct ColumnCache {
    shards: Box<[Mutex<Shard>]>,
    is_open: bool,
}

type Key = (Extent, Attribute);

struct Entry {
    key: Key,
    kept: CachedColumn,
    bytes: usize,
    /// How many more newcomers it outlasts.
    patience: u8,
}

#[derive(Default)]
struct Shard {
    limit: usize,
    bytes: usize,
    entries: Vec<Entry>,
    places: HashMap<Key, usize, FixedState>,
    hand: usize,
    /// Extents that were settled when they were last read, and a hash of their pages' LSNs.
    noted: HashMap<Extent, u64, FixedState>,
}

impl ColumnCache {
    /// `limit` in bytes; 0 keeps nothing.
    pub fn new(limit: usize) -> ColumnCache {
        let shard = || {
            Mutex::new(Shard {
                limit: limit / SHARDS,
                ..Shard::default()
            })
        };
        ColumnCache {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            is_open: limit > 0,
        }
    }

    /// Whether it may keep anything.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    pub fn bytes(&self) -> usize {
        let of_shard =
            |shard: &Mutex<Shard>| shard.lock().unwrap_or_else(PoisonError::into_inner).bytes;
        self.shards.iter().map(of_shard).sum()
    }

    fn shard(&self, extent: Extent) -> MutexGuard<'_, Shard> {
        let at = FixedState::default().hash_one(extent) as usize % SHARDS;
        // Nothing panics half-way through a change.
        self.shards[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept of these columns, whatever has become of the pages since.
    pub fn get(&self, extent: Extent, attributes: &[Attribute]) -> Vec<Option<CachedColumn>> {
        let mut shard = self.shard(extent);
        attributes.iter().map(|a| shard.get((extent, *a))).collect()
    }

    pub fn put(&self, extent: Extent, attribute: Attribute, kept: CachedColumn) {
        self.shard(extent).put((extent, attribute), kept);
    }

    /// Notes how an extent was found, which was settled; whether it was just the same the last
    /// time, and its columns are worth being kept.
    pub fn is_at_rest(&self, extent: Extent, lsns: &[Lsn]) -> bool {
        let hash = FixedState::default().hash_one(lsns);
        let mut shard = self.shard(extent);
        if shard.noted.len() >= MOST_NOTED {
            shard.noted.clear();
        }
        shard.noted.insert(extent, hash) == Some(hash)
    }
}

impl Shard {
    fn get(&mut self, key: Key) -> Option<CachedColumn> {
        let entry = &mut self.entries[*self.places.get(&key)?];
        entry.patience = PATIENCE;
        Some(entry.kept.clone())
    }

    fn put(&mut self, key: Key, kept: CachedColumn) {
        let bytes = kept.values.get_array_memory_size() + OVERHEAD;
        if let Some(at) = self.places.get(&key) {
            self.remove(*at);
        }
        if !self.makes_room(bytes) {
            return;
        }
        self.bytes += bytes;
        self.places.insert(key, self.entries.len());
        self.entries.push(Entry {
            key,
            kept,
            bytes,
            patience: PATIENCE,
        });
    }

    /// Whether so many bytes may be added: what has been passed by for long goes for them.
    fn makes_room(&mut self, bytes: usize) -> bool {
        while self.bytes + bytes > self.limit {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let Some(entry) = self.entries.get_mut(self.hand) else {
                return false;
            };
            if entry.patience > 0 {
                entry.patience -= 1;
                self.hand += 1;
                return false;
            }
            self.remove(self.hand);
        }
        true
    }

    fn remove(&mut self, at: usize) {
        let gone = self.entries.swap_remove(at);
        self.bytes -= gone.bytes;
        self.places.remove(&gone.key);
        if let Some(moved) = self.entries.get(at) {
            self.places.insert(moved.key, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{AsArray, Int32Array};
    use datafusion::arrow::datatypes::Int32Type;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    const ATTRIBUTE: Attribute = Attribute {
        number: 1,
        kind: Kind::Int4,
    };

    fn extent(start: BlockNo) -> Extent {
        Extent {
            file: FileId(7),
            start,
        }
    }

    fn kept(value: i32, values: usize, lsn: u64) -> CachedColumn {
        CachedColumn {
            values: Arc::new(Int32Array::from(vec![value; values])),
            lsns: vec![Lsn(lsn)].into(),
        }
    }

    /// Against a map of all that was ever put: what is found is what was put last, and never is
    /// there too much.
    #[test]
    fn what_is_found_was_put_last() {
        let mut random = StdRng::seed_from_u64(4);
        let limit = 64 << 10;
        let cache = ColumnCache::new(limit);
        let mut put: HashMap<BlockNo, (i32, u64)> = HashMap::new();
        let mut found = 0;
        for step in 0..20_000 {
            let start = random.random_range(0..200);
            if random.random_bool(0.3) {
                put.insert(start, (step, step as u64));
                let values = random.random_range(0..300);
                cache.put(extent(start), ATTRIBUTE, kept(step, values, step as u64));
            } else if let [Some(kept)] = &cache.get(extent(start), &[ATTRIBUTE])[..] {
                let (value, lsn) = put[&start];
                assert_eq!(*kept.lsns, [Lsn(lsn)]);
                let values = kept.values.as_primitive::<Int32Type>();
                assert!(values.values().iter().all(|v| *v == value));
                found += 1;
            }
            for shard in &cache.shards {
                let shard = shard.lock().unwrap();
                assert!(shard.bytes <= shard.limit);
                assert_eq!(
                    shard.bytes,
                    shard.entries.iter().map(|e| e.bytes).sum::<usize>()
                );
                assert_eq!(shard.entries.len(), shard.places.len());
            }
        }
        assert!(found > 1000, "{found}");
    }

    /// A scan of twice what fits, again and again.
    #[test]
    fn a_scan_that_is_too_large_finds_a_part() {
        let cache = ColumnCache::new(1 << 20);
        let mut found = 0;
        for round in 0..10 {
            for start in 0..1000 {
                match &cache.get(extent(start), &[ATTRIBUTE])[..] {
                    [Some(_)] => found += usize::from(round > 0),
                    _ => cache.put(extent(start), ATTRIBUTE, kept(1, 480, 1)),
                }
            }
        }
        assert!(found > 9 * 300, "{found}");
    }

    #[test]
    fn an_extent_at_rest_is_one_seen_twice_as_it_was() {
        let cache = ColumnCache::new(1 << 20);
        let (old, new) = ([Lsn(1), Lsn(2)], [Lsn(1), Lsn(3)]);
        assert!(!cache.is_at_rest(extent(0), &old));
        assert!(!cache.is_at_rest(extent(0), &new));
        assert!(cache.is_at_rest(extent(0), &new));
        let none = ColumnCache::new(0);
        assert!(!none.is_open());
        none.put(extent(0), ATTRIBUTE, kept(1, 1, 1));
        assert!(none.get(extent(0), &[ATTRIBUTE])[0].is_none());
    }
}
