//! What the tests share: a data directory in memory with a log and a pool on it.

use std::sync::{Arc, Mutex};

use throng_buffer::{
    ExclusiveGuard, ExtendLock, Extension, Mtr, Pool, PoolConfig, Victims, retry_blocking,
};
use throng_disk::{Disk, RelFiles, SimDisk};
use throng_sync::Nodes;
use throng_types::page::{KIND_HEAP, PAGE_SIZE};
use throng_types::{BlockNo, FileId, Lsn, PageId, Xid};
use throng_wal::{Reader, Record, Wal, WalConfig};

/// Small in models, which make many.
pub const SEGMENT: u64 = if throng_sync::IS_MODEL {
    32 << 10
} else {
    1 << 20
};
const CONTROL: &str = "control";

pub struct World {
    pub disk: SimDisk,
    pub files: Arc<RelFiles>,
    pub wal: Arc<Wal>,
    pub pool: Arc<Pool>,
    /// What background work has complained about.
    pub reports: Arc<Mutex<Vec<String>>>,
}

/// Every form in which a file can grow.
pub fn extensions() -> impl Iterator<Item = Extension> {
    let locks = [ExtendLock::Narrow, ExtendLock::Wide];
    let forms = locks.into_iter().flat_map(|lock| {
        [Victims::Outside, Victims::Inside].map(|victims| Extension {
            lock,
            victims,
            ..Extension::default()
        })
    });
    forms.flat_map(|form| [1, Extension::USUAL].map(|bulk| Extension { bulk, ..form }))
}

pub fn page_of(file: u32, block: BlockNo) -> PageId {
    PageId::new(FileId(file), block)
}

impl World {
    /// An empty data directory with a pool of so many frames.
    pub fn new(frames: usize) -> World {
        World::with(frames, Extension::default(), Nodes::one())
    }

    /// As [`World::new`], with files that grow so and frames split so.
    pub fn with(frames: usize, extension: Extension, nodes: Nodes) -> World {
        let config = PoolConfig {
            extension,
            nodes,
            ..PoolConfig::new(frames * PAGE_SIZE)
        };
        World::open(SimDisk::new(), config, Wal::FIRST)
    }

    fn open(disk: SimDisk, config: PoolConfig, log_end: Lsn) -> World {
        let files = Arc::new(RelFiles::new(Arc::new(disk.clone())).expect("base can be made"));
        let wal_config = WalConfig {
            segment_size: SEGMENT,
            buffer: SEGMENT as usize,
            ..WalConfig::default()
        };
        let wal = Wal::open(Arc::new(disk.clone()), wal_config, log_end).expect("the log opens");
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = reports.clone();
        let config = PoolConfig {
            report: Arc::new(move |error| sink.lock().unwrap().push(format!("{error:?}"))),
            ..config
        };
        let pool = Pool::open(config, files.clone(), wal.clone()).expect("the pool opens");
        World {
            disk,
            files,
            wal,
            pool,
            reports,
        }
    }

    /// Opens what a crash has left, redoing the log from the last checkpoint.
    pub fn recover(disk: SimDisk, frames: usize) -> World {
        let redo = read_control(&disk);
        let reader = || Reader::new(Arc::new(disk.clone()), SEGMENT, &Arc::default(), redo);
        let mut first = reader();
        while first.next().expect("the log is readable").is_some() {}
        let config = PoolConfig::new(frames * PAGE_SIZE);
        let world = World::open(disk.clone(), config, first.end());
        let mut second = reader();
        while let Some(entry) = second.next().expect("the log is readable") {
            if let Record::Pages { edits, .. } = entry.record {
                for edit in edits {
                    world
                        .pool
                        .redo_apply(edit.page, entry.end, edit.ops)
                        .expect("redo of a page");
                }
            }
        }
        world
    }

    pub fn checkpoint(&self) -> throng_types::Result<()> {
        let redo = self.pool.horizon().begin_checkpoint(|| self.wal.inserted());
        self.pool.flush_for_checkpoint(&mut |_, _| ())?;
        self.files.sync_all_dirty()?;
        self.wal.flush_blocking(redo)?;
        write_control(&self.disk, redo);
        self.wal.recycle_before(redo)
    }

    /// A file of so many pages, each a heap page with `fill(block)` all over.
    pub fn make_file(&self, file: u32, blocks: BlockNo, fill: impl Fn(BlockNo) -> u8) {
        self.files.create(FileId(file)).expect("a file can be made");
        for block in 0..blocks {
            let guard = retry_blocking(|| self.pool.new_page(FileId(file))).expect("a new page");
            assert_eq!(guard.page_id(), page_of(file, block));
            let mut mtr = Mtr::new(&self.pool, Xid(3));
            mtr.add(guard);
            mtr.init(0, KIND_HEAP, 0);
            mtr.write(0, 24, &[fill(block); PAGE_SIZE - 24]);
            // All of it is data.
            mtr.write(0, 14, &(PAGE_SIZE as u16).to_le_bytes());
            mtr.commit();
        }
    }

    pub fn exclusive(&self, page: PageId) -> ExclusiveGuard<'_> {
        retry_blocking(|| self.pool.exclusive(page)).expect("a page")
    }

    /// Sets the page's data bytes.
    pub fn fill(&self, page: PageId, value: u8) -> Lsn {
        let mut mtr = Mtr::new(&self.pool, Xid(3));
        mtr.add(self.exclusive(page));
        mtr.write(0, 24, &[value; PAGE_SIZE - 24]);
        mtr.commit()
    }

    /// One byte of the page's data, after a look that they are all the same.
    pub fn value(&self, page: PageId) -> u8 {
        let guard = retry_blocking(|| self.pool.shared(page)).expect("a page");
        assert!(
            guard[24..].iter().all(|&byte| byte == guard[24]),
            "page {page} is torn"
        );
        guard[24]
    }
}

fn write_control(disk: &SimDisk, redo: Lsn) {
    // Eight bytes of one sector: written whole or not at all.
    let file = disk.open(CONTROL, true).unwrap();
    file.write_at(&redo.0.to_le_bytes(), 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir("").unwrap();
}

fn read_control(disk: &SimDisk) -> Lsn {
    if !disk.exists(CONTROL).unwrap() {
        return Wal::FIRST;
    }
    let mut bytes = [0; 8];
    disk.open(CONTROL, false)
        .unwrap()
        .read_at(&mut bytes, 0)
        .unwrap();
    Lsn(u64::from_le_bytes(bytes))
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough for tests, and the same everywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
