//! A database of one heap on a simulated disk.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use throng_access::check::compare;
use throng_access::{Heap, RelationStore, RowLockMode, TupleBatch};
use throng_buffer::{AccessStrategy, PoolConfig, Ring, retry, retry_blocking};
use throng_disk::{Disk, RelFiles, SimDisk};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, update_row};
use throng_txn::{
    ArchiveRecovery, Archiving, Isolation, OpenConfig, RecoveryReport, Session, SessionInfo,
    Snapshot, SnapshotForm, Txn, TxnConfig, TxnSystem, whole_log,
};
use throng_types::{FileId, Result, Tid};
use throng_wal::WalConfig;

pub fn open(disk: &SimDisk) -> (Arc<TxnSystem>, RecoveryReport) {
    try_open(disk).expect("the data directory opens")
}

pub fn try_open(disk: &SimDisk) -> Result<(Arc<TxnSystem>, RecoveryReport)> {
    open_with(disk, TxnConfig::default())
}

pub fn open_archiving(
    disk: &SimDisk,
    recovery: Option<ArchiveRecovery>,
    archive: Archiving,
) -> Result<(Arc<TxnSystem>, RecoveryReport)> {
    TxnSystem::open(OpenConfig {
        recovery,
        archive,
        ..config(disk, TxnConfig::default())
    })
}

/// An empty database whose snapshots have the form.
pub fn open_as(form: SnapshotForm) -> Arc<TxnSystem> {
    let config = TxnConfig {
        snapshot: form,
        ..TxnConfig::default()
    };
    open_with(&SimDisk::new(), config)
        .expect("the data directory opens")
        .0
}

/// Makes a test of each function for each form of snapshots.
macro_rules! under_each_form {
    ($($test:ident)*) => {
        mod walk { $(#[test] fn $test() { super::$test(throng_txn::SnapshotForm::Walk); })* }
        mod bitmap { $(#[test] fn $test() { super::$test(throng_txn::SnapshotForm::Bitmap); })* }
        mod csn { $(#[test] fn $test() { super::$test(throng_txn::SnapshotForm::Csn); })* }
    };
}
pub(crate) use under_each_form;

fn open_with(disk: &SimDisk, txn: TxnConfig) -> Result<(Arc<TxnSystem>, RecoveryReport)> {
    TxnSystem::open(config(disk, txn))
}

fn config(disk: &SimDisk, txn: TxnConfig) -> OpenConfig {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let wal = WalConfig {
        segment_size: 256 << 10,
        buffer: 256 << 10,
        ..WalConfig::default()
    };
    let txn = TxnConfig {
        deadlock_timeout_ms: AtomicU64::new(20),
        ..txn
    };
    OpenConfig {
        disk,
        pool: PoolConfig::new(2 << 20),
        wal,
        txn,
        recovery: None,
        archive: Archiving::Untouched,
    }
}

/// Every page on the disk that the log tells of is what the log makes of it. Returns how many there
/// were.
pub fn assert_redo_equals_do(disk: &SimDisk) -> u64 {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let log = whole_log(&disk).expect("the log reads").expect("a log");
    let files = RelFiles::new(disk).expect("a directory");
    let compared = compare(&files, log).expect("the log reads");
    assert_eq!(compared.faults, []);
    compared.pages
}

pub fn session(sys: &TxnSystem) -> Session {
    sys.register(SessionInfo {
        backend_type: "client backend",
        ..SessionInfo::default()
    })
}

/// Runs on a runtime of one thread, with timers.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(tokio::task::LocalSet::new().run_until(future))
}

/// A table without a catalog: its file is always the first.
pub struct Table {
    pub heap: Heap,
}

impl Table {
    pub const FILE: FileId = FileId(1);

    pub async fn create(sys: &Arc<TxnSystem>, session: &Session) -> Table {
        let txn = session.begin(Isolation::ReadCommitted);
        let file = txn.create_file().expect("a file");
        assert_eq!(file, Table::FILE);
        txn.commit(true).await.expect("committed");
        Table::open(sys)
    }

    pub fn open(sys: &Arc<TxnSystem>) -> Table {
        Table {
            heap: RelationStore::new(sys.pool().clone()).heap(Table::FILE),
        }
    }

    pub async fn insert(&self, txn: &Txn, key: u32, value: i64) -> RowRef {
        let row = encode(key, value);
        let tid = retry(|| self.heap.insert(txn, &row))
            .await
            .expect("inserted");
        RowRef { tid, root: tid }
    }

    /// All rows a snapshot sees: key, value, where.
    pub fn scan(&self, snapshot: &Snapshot) -> Vec<(u32, i64, RowRef)> {
        let mut rows = Vec::new();
        let mut ring = Ring::new(AccessStrategy::Normal);
        for block in 0..retry_blocking(|| self.heap.blocks()).expect("blocks") {
            let mut batch = TupleBatch::default();
            retry_blocking(|| {
                batch.clear();
                self.heap.scan_page(block, snapshot, &mut ring, &mut batch)
            })
            .expect("a page");
            for i in 0..batch.len() {
                let (key, value) = decode(batch.row(i));
                rows.push((
                    key,
                    value,
                    RowRef {
                        tid: batch.tid(i),
                        root: batch.root(i),
                    },
                ));
            }
        }
        rows
    }

    pub fn find(&self, snapshot: &Snapshot, key: u32) -> Option<(i64, RowRef)> {
        self.scan(snapshot)
            .into_iter()
            .find(|row| row.0 == key)
            .map(|row| (row.1, row.2))
    }

    /// The row as it is at its newest locked version.
    pub fn value_at(&self, tid: Tid) -> i64 {
        let mut bytes = Vec::new();
        retry_blocking(|| self.heap.read_version(tid, &mut bytes))
            .expect("readable")
            .expect("there");
        decode(&bytes).1
    }

    /// `UPDATE … SET value = value + delta WHERE key = …` as READ COMMITTED does it. `false`: the
    /// row is gone.
    pub async fn add(&self, txn: &Txn, key: u32, delta: i64) -> Result<bool> {
        let snapshot = txn.snapshot();
        let Some((mut value, mut row)) = self.find(&snapshot, key) else {
            return Ok(false);
        };
        let mut turn = RowTurn::default();
        loop {
            let new = encode(key, value + delta);
            match update_row(
                txn,
                &self.heap,
                row,
                &new,
                RowLockMode::NoKeyUpdate,
                true,
                &mut turn,
            )
            .await?
            {
                RowOutcome::Done(_) => break,
                RowOutcome::Updated(newer) => {
                    value = self.value_at(newer.tid);
                    row = newer;
                }
                RowOutcome::LookAnew => unreachable!("the snapshot is kept"),
                RowOutcome::Deleted | RowOutcome::SelfModified | RowOutcome::Busy => {
                    return Ok(false);
                }
            }
        }
        txn.next_command()?;
        Ok(true)
    }
}

pub fn encode(key: u32, value: i64) -> Vec<u8> {
    [key.to_le_bytes().as_slice(), &value.to_le_bytes()].concat()
}

pub fn decode(row: &[u8]) -> (u32, i64) {
    let (key, value) = row.split_at(4);
    (
        u32::from_le_bytes(key.try_into().expect("4 bytes")),
        i64::from_le_bytes(value.try_into().expect("8 bytes")),
    )
}
