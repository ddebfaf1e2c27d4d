//! `extend`: loads that make one table longer, as 64 concurrent COPYs do.
//!
//! Each thread stores batches of rows in the heap, with a log and real files, through a ring of its
//! own; the pool is much smaller than what is loaded, so frames have to be cleaned all the time.
//! What is different is under which lock that happens: see `throng_buffer::Extension` for the
//! forms.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throng_access::{FreeSpaceForm, Heap, RelationStore, RowLockMode, TxContext, XidStatus};
use throng_buffer::{
    AccessStrategy, ExtendLock, Extension, Pool, PoolConfig, Ring, Victims, retry_blocking,
};
use throng_disk::{CheckedDisk, Disk, RealDisk, RelFiles};
use throng_observe::{Counter, WaitClass, WaitEvent, counter, snapshot};
use throng_types::{Cid, Csn, FileId, Tid, Xid};
use throng_wal::{Wal, WalConfig};

use super::{About, Bench, Case, Effect, Metric, Number, Pace, Role, Sample, Setup, Turn, Variant};
use crate::{Error, Result, crew};

pub struct Extend;

/// The pool: 32 MB, a fraction of what a turn loads.
const POOL: usize = 32 << 20;
/// Bytes of a row as stored.
const ROW: usize = 200;
/// Rows stored together, as by COPY.
const BATCH: usize = 500;

impl Case for Extend {
    fn name(&self) -> &'static str {
        "extend"
    }

    fn about(&self) -> About {
        About {
            title: "one table made longer by many loads: the relation-extension lock",
            text: "Threads load rows into one table whose new pages have to be made room for in a small pool: under the table's \
                   extension lock altogether, frames found, written and zeroed there, or with only the length, the mapping and \
                   the growth under it. \
                   In PolarDB 64 concurrent COPYs spent 98.70 % of their off-CPU time on that lock with a 4 MB bulk extension; \
                   with victims found first and pages initialised after, 7.86 %, and 35.73 became 41.40 TPS.",
            source: "PolarDB for PostgreSQL, 64 concurrent COPY",
            operations: "batches of 500 rows",
            inside: "all waiting that is for the extension lock",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name, role, about| Variant { name, role, about };
        vec![
            variant(
                "wide",
                Role::Was,
                "4 MB at once, all under the lock, one free-space map",
            ),
            variant(
                "narrow",
                Role::Became,
                "4 MB at once, victims before the lock, one free-space map",
            ),
            variant(
                "split",
                Role::Further,
                "512 KB at once, victims cleaned ahead, free space per core (default)",
            ),
            variant(
                "wide-8k",
                Role::Other,
                "a page at a time, all under the lock",
            ),
            variant(
                "narrow-8k",
                Role::Other,
                "a page at a time, victims before the lock",
            ),
        ]
    }

    fn default_clients(&self, cores: usize) -> Vec<usize> {
        vec![1, cores.max(2), 64]
    }

    fn effects(&self) -> Vec<Effect> {
        let effect = |was, became, metric, published, figure| Effect {
            was,
            became,
            metric,
            published,
            figure,
        };
        vec![
            effect(
                "wide",
                "narrow",
                Metric::Inside,
                Some(98.70 / 7.86),
                "the lock's share of off-CPU time 98.70 % to 7.86 %",
            ),
            effect(
                "wide",
                "narrow",
                Metric::Throughput,
                Some(41.40 / 35.73),
                "35.73 to 41.40 TPS with 64 COPYs",
            ),
            effect(
                "wide",
                "split",
                Metric::Throughput,
                None,
                "beyond what was published",
            ),
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["throng_buffer::growth", "throng_buffer::pool::extend"]
    }

    fn pace(&self) -> Pace {
        Pace {
            rounds: 5,
            budget: Duration::from_secs(60),
            shortest: Duration::from_millis(300),
            longest: Duration::from_millis(800),
        }
    }

    fn prepare(&self, variant: &Variant, setup: &Setup) -> Result<Box<dyn Bench>> {
        let bulk = match variant.name {
            "wide" | "narrow" => Extension::MOST,
            "wide-8k" | "narrow-8k" => 1,
            _ => Extension::USUAL,
        };
        let (lock, victims) = match variant.name {
            "wide" | "wide-8k" => (ExtendLock::Wide, Victims::Inside),
            "narrow" | "narrow-8k" | "split" => (ExtendLock::Narrow, Victims::Outside),
            other => return Err(Error::usage(format!("extend has no variant {other}"))),
        };
        let free_space = match variant.name {
            "split" => FreeSpaceForm::Split,
            _ => FreeSpaceForm::Shared,
        };
        let extension = Extension {
            lock,
            victims,
            bulk,
        };
        let path = setup.scratch.join(variant.name);
        Ok(Box::new(Table::open(&path, extension, free_space)?))
    }
}

/// A data directory with one table, empty before each turn.
struct Table {
    path: PathBuf,
    files: Arc<RelFiles>,
    wal: Arc<Wal>,
    pool: Arc<Pool>,
    free_space: FreeSpaceForm,
    /// The file of the next turn.
    next: u32,
}

impl Table {
    fn open(path: &Path, extension: Extension, free_space: FreeSpaceForm) -> Result<Table> {
        let disk: Arc<dyn Disk> = Arc::new(CheckedDisk::new(RealDisk::new(path)?));
        let files = Arc::new(RelFiles::new(disk.clone())?);
        let wal = Wal::open(disk, WalConfig::default(), Wal::FIRST)?;
        let config = PoolConfig {
            extension,
            // New pages are logged by what is put on them, as after a checkpoint.
            redo: Wal::FIRST,
            ..PoolConfig::new(POOL)
        };
        let pool = Pool::open(config, files.clone(), wal.clone())?;
        Ok(Table {
            path: path.to_owned(),
            files,
            wal,
            pool,
            free_space,
            next: 100,
        })
    }

    fn load(&self, heap: &Heap, turn: &Turn) -> Result<Sample> {
        let rows: Vec<[u8; ROW]> = (0..BATCH).map(|i| [i as u8; ROW]).collect();
        crew::run(turn, |worker| {
            let loader = Loader(Xid(Xid::FIRST.0 + worker.index as u64));
            let mut ring = Ring::new(AccessStrategy::BulkWrite);
            while worker.goes_on() {
                let mut stored = 0;
                while stored < BATCH {
                    // A disk that is full ends the load: the turn then has what was stored.
                    match retry_blocking(|| heap.insert_batch(&loader, &rows[stored..], &mut ring))
                    {
                        Ok(tids) => stored += tids.len(),
                        Err(_) => return,
                    }
                }
                worker.count(1);
            }
        })
    }
}

impl Bench for Table {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let file = FileId(self.next);
        self.next += 1;
        self.files.create(file)?;
        let store = RelationStore::with_free_space(self.pool.clone(), self.free_space);
        let heap = store.heap(file);
        let before = Waited::until_now();
        let (extended, written) = (
            counter(Counter::PageExtend),
            self.pool.stats().foreground_writes,
        );
        let mut sample = self.load(&heap, turn)?;
        let (waited, seconds) = (Waited::until_now(), sample.elapsed.as_secs_f64());
        sample.inside = Some(waited.share_of_lock(&before));
        let number = |name, unit, value| Number { name, unit, value };
        let pages = (counter(Counter::PageExtend) - extended) as f64;
        let foreground = (self.pool.stats().foreground_writes - written) as f64;
        sample.numbers = vec![
            number("new pages", "MB/s", pages * 8192.0 / 1e6 / seconds),
            number("pages written by loads", "", foreground),
        ];
        drop(heap);
        // Nothing needs the log of a file that is gone.
        self.pool.drop_file(file)?;
        self.wal.flush_blocking(self.wal.inserted())?;
        self.wal.recycle_before(self.wal.flushed())?;
        Ok(sample)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // What is left of it goes with the run's directory.
        let _ = self.wal.shutdown();
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Nanoseconds that this process has waited.
#[derive(Default)]
struct Waited {
    lock: u64,
    all: u64,
}

impl Waited {
    fn until_now() -> Waited {
        let mut waited = Waited::default();
        for totals in snapshot() {
            if totals.event == WaitEvent::LockExtend {
                waited.lock += totals.nanos;
            }
            // A thread with nothing to do does not wait for anything.
            if totals.event.class() != WaitClass::Activity {
                waited.all += totals.nanos;
            }
        }
        waited
    }

    fn share_of_lock(&self, before: &Waited) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.lock.saturating_sub(before.lock) as f64 / all as f64
    }
}

/// A transaction that only adds rows.
struct Loader(Xid);

impl TxContext for Loader {
    fn xid(&self) -> Xid {
        self.0
    }
    fn cid(&self) -> Cid {
        Cid(0)
    }
    fn is_mine(&self, xid: Xid) -> bool {
        xid == self.0
    }
    fn status(&self, _: Xid) -> XidStatus {
        XidStatus::InProgress
    }
    fn horizon(&self) -> Csn {
        Csn(0)
    }
    fn row_lock_conflict(&self, _: FileId, _: Tid, _: RowLockMode) -> Option<Xid> {
        None
    }
    fn row_lock_acquire(&self, _: FileId, _: Tid, _: RowLockMode) -> Option<Xid> {
        None
    }
    fn row_moved(&self, _: FileId, _: Tid, _: Tid) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::run_variants;

    #[test]
    fn every_variant_loads_and_leaves_nothing_behind() {
        let scratch = tempfile::tempdir().expect("a directory");
        let turn = Duration::from_millis(30);
        run_variants(&Extend, scratch.path(), &[3], turn, |_, sample| {
            assert!(
                sample
                    .inside
                    .is_some_and(|share| (0.0..=1.0).contains(&share))
            );
        });
        assert_eq!(
            std::fs::read_dir(scratch.path()).expect("listed").count(),
            0
        );
    }
}
