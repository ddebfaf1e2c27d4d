//! The tree against models, with pages that hold a few entries each, so that splits, merges and new
//! levels are the rule.

mod concurrent;
mod dead;
mod model;
mod nodes;
mod recovery;
#[cfg(not(miri))]
mod sealed;

use std::collections::BTreeSet;
use std::sync::Arc;

use throng_buffer::{Pool, PoolConfig, retry_blocking};
use throng_disk::{RelFiles, SimDisk};
use throng_types::{FileId, Lsn, Tid, Xid};
use throng_wal::{Wal, WalConfig};

use super::edit::Limit;
use super::node::MAX_KEY;
use super::*;

const FILE: FileId = FileId(1);

/// Small numbers from a seed: the same test every time.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// A database of one index.
struct World {
    tree: BTree,
    pool: Arc<Pool>,
    wal: Arc<Wal>,
    disk: SimDisk,
}

impl World {
    /// An empty index whose pages hold `limit` bytes, in a pool of `frames`.
    fn new(limit: Limit, frames: usize) -> World {
        let disk = SimDisk::new();
        let wal = Wal::open(Arc::new(disk.clone()), log_config(), Wal::FIRST).unwrap();
        let pool = pool_on(&disk, wal.clone(), frames);
        pool.files().create(FILE).unwrap();
        let mut tree = retry_blocking(|| BTree::create(pool.clone(), FILE, Xid::NONE)).unwrap();
        tree.limit = limit;
        World {
            tree,
            pool,
            wal,
            disk,
        }
    }
}

fn log_config() -> WalConfig {
    WalConfig {
        segment_size: 1 << 20,
        buffer: 1 << 20,
        ..WalConfig::default()
    }
}

fn pool_on(disk: &SimDisk, wal: Arc<Wal>, frames: usize) -> Arc<Pool> {
    let files = Arc::new(RelFiles::new(Arc::new(disk.clone())).unwrap());
    let mut config = PoolConfig::new(frames * throng_types::page::PAGE_SIZE);
    // No page is older than this: every change is logged by its edits, and those are what recovery
    // is to get right.
    config.redo = Lsn::ZERO;
    Pool::open(config, files, wal).unwrap()
}

/// Entries: keys with their tids behind them, as the tree orders them.
type Model = BTreeSet<Vec<u8>>;

fn entry(key: &[u8], tid: Tid) -> Vec<u8> {
    [key, &node::tid_bytes(tid)].concat()
}

fn split_entry(entry: &[u8]) -> (&[u8], Tid) {
    let (key, tid) = entry.split_last_chunk().unwrap();
    (key, node::tid_from(*tid))
}

fn tid_of(entry: &[u8]) -> Tid {
    split_entry(entry).1
}

fn insert(tree: &BTree, key: &[u8], tid: Tid) {
    retry_blocking(|| tree.insert(key, tid, Xid::NONE)).unwrap();
}

fn delete(tree: &BTree, key: &[u8], tid: Tid) -> bool {
    retry_blocking(|| tree.delete(key, tid, Xid::NONE)).unwrap()
}

fn get(tree: &BTree, prefix: &[u8]) -> Vec<Tid> {
    let mut tids = Vec::new();
    retry_blocking(|| tree.get(prefix, &mut tids)).unwrap();
    tids
}

/// Everything in a range, as a cursor gives it.
fn scan(tree: &BTree, range: KeyRange, direction: Direction, batch: usize) -> Vec<Vec<u8>> {
    let mut cursor = tree.cursor(range, direction).with_batch(batch);
    let (mut entries, mut all) = (Entries::default(), Vec::new());
    while retry_blocking(|| cursor.next_entries(&mut entries)).unwrap() {
        assert!(entries.len() <= batch);
        all.extend((0..entries.len()).map(|i| entry(entries.key(i), entries.tids[i])));
    }
    all
}

fn vacuum(tree: &BTree, dead: &dyn Fn(Tid) -> bool) -> Vacuumed {
    let mut vacuum = tree.vacuum();
    while retry_blocking(|| vacuum.step(dead)).unwrap() {}
    vacuum.so_far()
}

/// The tree is sound and has exactly what the model has.
fn compare(tree: &BTree, model: &Model) -> check::Census {
    let (census, faults) = tree.check();
    assert_eq!(faults, []);
    assert_eq!(census.entries, model.len() as u64);
    let all = scan(tree, KeyRange::all(), Direction::Forward, usize::MAX);
    assert!(
        all.iter().eq(model),
        "a scan gives the model's entries in order"
    );
    census
}
