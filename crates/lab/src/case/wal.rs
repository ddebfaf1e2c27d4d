//! `wal`: how records enter the log, and how commits reach the disk.
//!
//! ```text
//!   lock · lanes · add         records a second into the log's buffer; a file that takes everything at once,
//!                              so that the buffer's way in is what is measured
//!   alone · group · delay      commits a second, on real files with fdatasync
//! ```
//!
//! The first three are one binary's three forms of insertion (`lab_wal_insert`). Of the others,
//! `alone` keeps a lock from its record to its sync, as a log without group commit does; `group` is
//! the flusher as it is; `delay` has `commit_delay` at half of what a sync takes here, which is
//! what PostgreSQL's manual advises.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use throng_disk::{Disk, File, RealDisk};
use throng_observe::{Counter, counter};
use throng_types::{FileId, Lsn, PageId, Xid};
use throng_wal::{FlushObserver, InsertForm, RecordBuilder, Wal, WalConfig};

use super::{About, Bench, Case, Effect, Metric, Number, Role, Sample, Setup, Turn, Variant};
use crate::{Error, Result, crew};

pub struct Log;

/// Bytes changed on a page by the record that is inserted.
const CHANGE: usize = 100;
/// Syncs by which a sync's time is told.
const SYNCS: u32 = 20;

impl Case for Log {
    fn name(&self) -> &'static str {
        "wal"
    }

    fn about(&self) -> About {
        About {
            title: "the log: insertion by lock, lanes or addition; commits alone, in groups, in groups that wait",
            text: "Threads insert records under one lock, under one of eight locks with a spinlock for the position, or by \
                   one atomic addition; then they commit to real files, each with a sync of its own, in groups, and in groups \
                   that wait for more (commit_delay, commit_siblings). \
                   In the TPC-C study group commit was among what PostgreSQL was tuned by, bigger data and log buffers doubled \
                   MySQL's about 80,000 tpmC at 45 % CPU until its longest wait was the binlog's flush, and KingbaseES split its \
                   WAL insertion locks by NUMA node because remote memory is 1.3 to 5 times slower.",
            source: "KingbaseES against PostgreSQL and MySQL, TPC-C",
            operations: "records or commits",
            inside: "the threads' time inserting, or waiting for their commit",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name, role, about| Variant { name, role, about };
        vec![
            variant("lock", Role::Was, "insert: one lock from place to copy"),
            variant(
                "lanes",
                Role::Became,
                "insert: eight locks, a spinlock for the place",
            ),
            variant(
                "add",
                Role::Further,
                "insert: one fetch-and-add for the place (default)",
            ),
            variant("alone", Role::Was, "commit: a sync each"),
            variant(
                "group",
                Role::Became,
                "commit: one sync for all that wait (default)",
            ),
            variant(
                "delay",
                Role::Other,
                "commit: as group, with commit_delay at half a sync",
            ),
        ]
    }

    fn default_clients(&self, cores: usize) -> Vec<usize> {
        // Commits wait for the disk, so many more than there are cores.
        super::doubling(cores.max(2) * 16)
            .into_iter()
            .filter(|n| n.trailing_zeros() % 2 == 0 || *n == cores.max(2) * 16)
            .collect()
    }

    fn effects(&self) -> Vec<Effect> {
        let effect = |was, became, figure| Effect {
            was,
            became,
            metric: Metric::Throughput,
            published: None,
            figure,
        };
        vec![
            effect("alone", "group", "a gain; no figure is given for this step"),
            effect("lock", "lanes", "a gain; no figure is given for this step"),
            effect("lanes", "add", "beyond what was published"),
            effect(
                "group",
                "delay",
                "a gain with commit_siblings at work; no figure is given",
            ),
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["throng_wal::"]
    }

    fn prepare(&self, variant: &Variant, setup: &Setup) -> Result<Box<dyn Bench>> {
        let form: std::result::Result<InsertForm, ()> = variant.name.parse();
        if let Ok(insert) = form {
            let config = WalConfig {
                insert,
                ..WalConfig::default()
            };
            let wal = Wal::open(Arc::new(Nowhere), config, Wal::FIRST)?;
            return Ok(Box::new(Insertion { wal }));
        }
        let delayed = variant.name == "delay";
        let alone = variant.name == "alone";
        if !(alone || delayed || variant.name == "group") {
            return Err(Error::usage(format!("wal has no variant {}", variant.name)));
        }
        let commits = Commits::open(&setup.scratch.join(variant.name), alone)?;
        if delayed {
            let sync = commits.sync_time()?;
            let config = commits.wal.config();
            config
                .commit_delay_us
                .store((sync.as_micros() / 2) as u32, Ordering::Relaxed);
        }
        Ok(Box::new(commits))
    }
}

fn change(record: &mut RecordBuilder, xid: Xid, page: u32) {
    record.pages(xid);
    let page = record.add_page(PageId::new(FileId(1), page));
    record.write(page, 1000, &[1; CHANGE]);
}

/// Threads that insert and wait for nothing.
struct Insertion {
    wal: Arc<Wal>,
}

impl Bench for Insertion {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let before = self.wal.inserted();
        let mut sample = crew::run(turn, |worker| {
            let mut record = RecordBuilder::new();
            while worker.goes_on() {
                change(&mut record, Xid(5), worker.index as u32);
                worker.step(|| self.wal.insert(&mut record));
            }
        })?;
        let end = self.wal.inserted();
        self.wal.flush_blocking(end)?;
        self.wal.recycle_before(end)?;
        sample.numbers = vec![Number {
            name: "log",
            unit: "MB/s",
            value: (end.0 - before.0) as f64 / 1e6 / sample.elapsed.as_secs_f64(),
        }];
        Ok(sample)
    }
}

/// Threads that commit and wait until it is on disk.
struct Commits {
    wal: Arc<Wal>,
    /// Kept from the record to the sync, where commits may not share one.
    alone: Option<Mutex<()>>,
    at_work: Arc<AtomicU32>,
}

/// Tells the flusher how many are at work, for `commit_siblings`.
struct AtWork(Arc<AtomicU32>);

impl FlushObserver for AtWork {
    fn before_flush(&self) -> u64 {
        0
    }
    fn after_flush(&self, _token: u64, _flushed: Lsn) {}
    fn active_transactions(&self, enough: u32) -> u32 {
        self.0.load(Ordering::Relaxed).min(enough)
    }
}

impl Commits {
    fn open(dir: &Path, alone: bool) -> Result<Commits> {
        std::fs::create_dir_all(dir)?;
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(dir)?);
        let wal = Wal::open(disk, WalConfig::default(), Wal::FIRST)?;
        let at_work = Arc::new(AtomicU32::new(0));
        wal.set_flush_observer(Box::new(AtWork(at_work.clone())));
        Ok(Commits {
            wal,
            alone: alone.then(Mutex::default),
            at_work,
        })
    }

    /// How long a commit takes when there is one.
    fn sync_time(&self) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..SYNCS {
            let mut record = RecordBuilder::new();
            record.commit(Xid(5), &[], &[], self.wal.flushed(), 0);
            self.wal.flush_blocking(self.wal.insert(&mut record))?;
        }
        Ok(start.elapsed() / SYNCS)
    }

    fn commit(&self, record: &mut RecordBuilder, page: u32) -> throng_types::Result<()> {
        let _alone = self.alone.as_ref().map(Mutex::lock);
        change(record, Xid(5), page);
        self.wal.insert(record);
        record.commit(Xid(5), &[], &[], self.wal.flushed(), 0);
        let end = self.wal.insert(record);
        self.wal.flush_blocking(end)
    }
}

impl Bench for Commits {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let syncs = counter(Counter::WalSync);
        self.at_work.store(turn.clients as u32, Ordering::Relaxed);
        let failure = Mutex::new(None);
        let mut sample = crew::run(turn, |worker| {
            let mut record = RecordBuilder::new();
            while worker.goes_on() {
                let done = worker.step(|| self.commit(&mut record, worker.index as u32));
                if let Err(error) = done {
                    *failure.lock() = Some(error);
                    return;
                }
            }
        })?;
        if let Some(error) = failure.into_inner() {
            return Err(error.into());
        }
        let syncs = (counter(Counter::WalSync) - syncs).max(1);
        self.wal.recycle_before(self.wal.flushed())?;
        sample.numbers = vec![Number {
            name: "commits a sync",
            unit: "",
            value: sample.operations as f64 / syncs as f64,
        }];
        Ok(sample)
    }
}

/// A disk that takes everything and keeps only lengths: a log on it is bounded by its buffer alone.
struct Nowhere;

struct NowhereFile(AtomicU64);

impl Disk for Nowhere {
    fn open(&self, _path: &str, _create: bool) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(NowhereFile(AtomicU64::new(0))))
    }
    fn exists(&self, _path: &str) -> io::Result<bool> {
        Ok(false)
    }
    fn remove(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }
    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Ok(())
    }
    fn list(&self, _dir: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn create_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }
    fn sync_dir(&self, _dir: &str) -> io::Result<()> {
        Ok(())
    }
}

impl File for NowhereFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let there = self.0.load(Ordering::Relaxed).saturating_sub(offset);
        let len = buf.len().min(there as usize);
        buf[..len].fill(0);
        Ok(len)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0
            .fetch_max(offset + data.len() as u64, Ordering::Relaxed);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.store(len, Ordering::Relaxed);
        Ok(())
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.fetch_max(offset + len, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::run_variants;

    #[test]
    fn every_variant_runs_and_only_a_group_shares_syncs() {
        let dir = tempfile::tempdir().expect("a directory");
        let turn = Duration::from_millis(60);
        run_variants(&Log, dir.path(), &[8], turn, |variant, sample| {
            if variant.name == "alone" {
                let shared = sample.numbers[0].value;
                assert!(shared < 1.5, "{shared} commits a sync");
            }
        });
    }
}
