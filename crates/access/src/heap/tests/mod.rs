//! The heap against models: a disk in memory, and transactions that are a table of how each ended.

mod between;
mod changes;
mod copies;
mod faults;
mod large;
mod model;
mod pages;
mod targets;
mod threads;
mod vain;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use throng_buffer::{Pool, PoolConfig, Ring, retry_blocking};
use throng_disk::{RelFiles, SimDisk};
use throng_sync::lock::Mutex;
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, Cid, Csn, FileId, PageId, Tid, Xid};
use throng_wal::{Reader, RecordBuilder, Wal, WalConfig};

use super::page;
use super::tuple::TupleHeader;
use super::{Heap, TupleBatch};
use crate::check::{FileKind, check_file, first_difference};
use crate::{Gaps, RelationStore, RowLockMode, TxContext, Visibility, XidStatus};

const FILE: FileId = FileId(7);
const SEGMENT: u64 = 1 << 20;

/// One relation on a simulated disk.
struct World {
    disk: Arc<SimDisk>,
    files: Arc<RelFiles>,
    wal: Arc<Wal>,
    pool: Arc<Pool>,
    heap: Heap,
}

impl World {
    fn new(frames: usize) -> World {
        let disk = Arc::new(SimDisk::new());
        let files = Arc::new(RelFiles::new(disk.clone()).expect("an empty disk takes a directory"));
        let config = WalConfig {
            segment_size: SEGMENT,
            buffer: 1 << 20,
            ..WalConfig::default()
        };
        let wal = Wal::open(disk.clone(), config, Wal::FIRST).expect("the log opens");
        // Each page is logged whole once, then by its edits: redo sees both.
        let pool_config = PoolConfig {
            redo: Wal::FIRST,
            io_threads: 1,
            ..PoolConfig::new(frames * PAGE_SIZE)
        };
        let pool = Pool::open(pool_config, files.clone(), wal.clone()).expect("the pool opens");
        let mut create = RecordBuilder::new();
        create.file_create(Xid::FIRST, FILE);
        wal.insert(&mut create);
        files.create(FILE).expect("the file is made");
        let heap = RelationStore::new(pool.clone()).heap(FILE);
        World {
            disk,
            files,
            wal,
            pool,
            heap,
        }
    }

    fn blocks(&self) -> BlockNo {
        self.pool.blocks(FILE).expect("the file is there")
    }

    fn page(&self, block: BlockNo) -> Box<[u8; PAGE_SIZE]> {
        retry_blocking(|| {
            self.pool
                .shared(PageId::new(FILE, block))
                .map(|page| Box::new(*page))
        })
        .expect("the page can be read")
    }

    /// Everything the snapshot sees, by a scan.
    fn scan(&self, vis: &impl Visibility) -> TupleBatch {
        let mut batch = TupleBatch::new();
        let mut ring = Ring::for_scan(&self.pool, self.blocks());
        for block in 0..self.blocks() {
            retry_blocking(|| self.heap.scan_page(block, vis, &mut ring, &mut batch))
                .expect("pages scan");
        }
        batch
    }

    /// Both passes over the whole relation; `forget` is the indexes' part.
    fn vacuum(&self, ctx: &dyn TxContext, forget: impl FnOnce(&[Tid])) {
        let mut dead = Vec::new();
        let mut ring = Ring::for_scan(&self.pool, self.blocks());
        for block in 0..self.blocks() {
            retry_blocking(|| self.heap.vacuum_scan(block, ctx, &mut ring, &mut dead))
                .expect("pages scan");
        }
        forget(&dead);
        for tids in dead.chunk_by(|a, b| a.block == b.block) {
            let slots: Vec<u16> = tids.iter().map(|tid| tid.slot).collect();
            retry_blocking(|| self.heap.vacuum_finish(tids[0].block, &slots))
                .expect("slots are freed");
        }
    }

    /// No page is at odds with itself, in memory or (written out) on the disk.
    fn check(&self, rolled_back: &dyn Fn(Xid) -> bool) {
        self.pool
            .flush_for_checkpoint(&mut |_, _| {})
            .expect("pages are written");
        let faults = check_file(&self.files, FILE, FileKind::Heap, rolled_back);
        assert!(faults.is_empty(), "{faults:?}");
    }

    /// Redoes the whole log on an empty disk and compares all pages.
    fn assert_redo_gives_the_same(&self) {
        self.wal
            .flush_blocking(self.wal.inserted())
            .expect("the log is flushed");
        let other = World::new(256);
        let mut reader = Reader::new(self.disk.clone(), SEGMENT, &Arc::default(), Wal::FIRST);
        while let Some(entry) = reader.next().expect("every record decodes") {
            crate::redo::apply(&other.pool, entry.end, &entry.record)
                .expect("every record can be redone");
        }
        assert_eq!(
            reader.end(),
            self.wal.inserted(),
            "the log ends where it was written to"
        );
        for block in 0..self.blocks() {
            let mine = self.page(block);
            // A page that was added and never used is not in the log.
            let theirs = if block < other.blocks() {
                other.page(block)
            } else {
                Box::new([0; PAGE_SIZE])
            };
            let differs = first_difference(&mine, &theirs);
            assert_eq!(differs, None, "page {block} differs after redo");
        }
    }
}

/// How each transaction ended, who has locked what, and which snapshots are held.
struct Txns {
    state: Mutex<State>,
    next_xid: AtomicU32,
    /// Of the horizon and of rollbacks.
    moves: AtomicU32,
    /// How often a transaction's status was asked for.
    asked: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// By xid less [`Xid::FIRST`].
    ended: Vec<XidStatus>,
    csn: u64,
    /// CSNs of snapshots in use.
    held: Vec<u64>,
    /// Those of readers that follow no row.
    reading: Vec<u64>,
    locks: HashMap<Tid, Vec<(Xid, RowLockMode)>>,
}

impl State {
    fn release(&mut self, csn: u64, of: impl Fn(&mut State) -> &mut Vec<u64>) {
        let held = of(self);
        let at = held.iter().position(|&held| held == csn);
        held.swap_remove(at.expect("a snapshot is held until released"));
    }
}

impl Txns {
    fn new() -> Txns {
        Txns {
            state: Mutex::default(),
            next_xid: AtomicU32::new(0),
            moves: AtomicU32::new(1),
            asked: AtomicUsize::new(0),
        }
    }
    fn begin(&self) -> Ctx<'_> {
        let n = self.next_xid.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        let wanted = n as usize + 1;
        if state.ended.len() < wanted {
            state.ended.resize(wanted, XidStatus::InProgress);
        }
        let xid = Xid(Xid::FIRST.0 + u64::from(n));
        Ctx {
            txns: self,
            xid,
            mine: vec![xid],
            cid: Cid(0),
        }
    }
    fn status(&self, xid: Xid) -> XidStatus {
        self.asked.fetch_add(1, Ordering::Relaxed);
        // Torn headers bring any number here.
        let index = xid.0.wrapping_sub(Xid::FIRST.0);
        let state = self.state.lock();
        usize::try_from(index)
            .ok()
            .and_then(|i| state.ended.get(i).copied())
            .unwrap_or(XidStatus::InProgress)
    }
    fn end(&self, xids: &[Xid], commit: bool) {
        let mut state = self.state.lock();
        state.csn += u64::from(commit);
        let status = if commit {
            XidStatus::Committed(Csn(state.csn))
        } else {
            XidStatus::Aborted
        };
        for xid in xids {
            let at = (xid.0 - Xid::FIRST.0) as usize;
            if state.ended[at] == XidStatus::InProgress {
                state.ended[at] = status;
            }
        }
        state
            .locks
            .values_mut()
            .for_each(|holders| holders.retain(|(xid, _)| !xids.contains(xid)));
        self.moves.fetch_add(1, Ordering::Release);
    }
    /// A snapshot that holds the horizon until [`Txns::release`].
    fn snapshot(&self) -> Snap<'_> {
        let mut state = self.state.lock();
        let csn = state.csn;
        state.held.push(csn);
        Snap {
            txns: self,
            csn,
            mine: Vec::new(),
            cid: Cid(0),
        }
    }
    /// One of which the versions after those that it shows need not stay.
    fn reading(&self) -> Snap<'_> {
        let snap = self.snapshot();
        let mut state = self.state.lock();
        let last = state.held.pop();
        state.reading.extend(last);
        self.moves.fetch_add(1, Ordering::Release);
        snap
    }
    fn release(&self, snap: &Snap<'_>) {
        self.state.lock().release(snap.csn, |state| &mut state.held);
        self.moves.fetch_add(1, Ordering::Release);
    }
    fn release_reading(&self, snap: &Snap<'_>) {
        let mut state = self.state.lock();
        state.release(snap.csn, |state| &mut state.reading);
        self.moves.fetch_add(1, Ordering::Release);
    }
    fn horizon(&self) -> Csn {
        let state = self.state.lock();
        let held = state.held.iter().chain(&state.reading);
        Csn(held.copied().min().unwrap_or(state.csn))
    }
    fn gaps(&self) -> Gaps {
        let state = self.state.lock();
        let rest = state.held.iter().copied().min().unwrap_or(state.csn);
        let mut bounds: Vec<Csn> = state.reading.iter().copied().map(Csn).collect();
        bounds.retain(|csn| csn.0 < rest);
        bounds.push(Csn(rest));
        bounds.sort_unstable();
        bounds.dedup();
        Gaps::between(&bounds)
    }
}

struct Ctx<'a> {
    txns: &'a Txns,
    /// What is written is stamped with this: the innermost subtransaction.
    xid: Xid,
    mine: Vec<Xid>,
    cid: Cid,
}

impl<'a> Ctx<'a> {
    fn commit(self) {
        self.txns.end(&self.mine, true);
    }
    fn abort(self) {
        self.txns.end(&self.mine, false);
    }
    fn savepoint(&mut self) {
        let sub = self.txns.begin().xid;
        self.mine.push(sub);
        self.xid = sub;
    }
    /// Rolls the innermost subtransaction back; false when there is none.
    fn rollback_to(&mut self) -> bool {
        if self.mine.len() == 1 {
            return false;
        }
        let sub = self.mine.pop().expect("there is a subtransaction");
        self.txns.end(&[sub], false);
        self.xid = *self.mine.last().expect("the transaction itself stays");
        true
    }
    /// What this transaction sees with a snapshot's CSN.
    fn sees(&self, csn: u64) -> Snap<'a> {
        Snap {
            txns: self.txns,
            csn,
            mine: self.mine.clone(),
            cid: self.cid,
        }
    }
}

impl TxContext for Ctx<'_> {
    fn xid(&self) -> Xid {
        self.xid
    }
    fn cid(&self) -> Cid {
        self.cid
    }
    fn is_mine(&self, xid: Xid) -> bool {
        self.mine.contains(&xid)
    }
    fn status(&self, xid: Xid) -> XidStatus {
        self.txns.status(xid)
    }
    fn horizon(&self) -> Csn {
        self.txns.horizon()
    }
    fn gaps(&self) -> Gaps {
        self.txns.gaps()
    }
    fn moves(&self) -> Option<u32> {
        Some(self.txns.moves.load(Ordering::Acquire))
    }
    fn row_lock_conflict(&self, _: FileId, tid: Tid, mode: RowLockMode) -> Option<Xid> {
        let state = self.txns.state.lock();
        let conflict =
            |(xid, held): &&(Xid, RowLockMode)| !self.is_mine(*xid) && held.conflicts(mode);
        state
            .locks
            .get(&tid)?
            .iter()
            .find(conflict)
            .map(|(xid, _)| *xid)
    }
    fn row_lock_acquire(&self, file: FileId, tid: Tid, mode: RowLockMode) -> Option<Xid> {
        let conflict = self.row_lock_conflict(file, tid, mode);
        if conflict.is_none() {
            self.txns
                .state
                .lock()
                .locks
                .entry(tid)
                .or_default()
                .push((self.xid, mode));
        }
        conflict
    }
    fn row_moved(&self, _: FileId, old: Tid, new: Tid) {
        let mut state = self.txns.state.lock();
        let moved = state.locks.get(&old).cloned().unwrap_or_default();
        state.locks.entry(new).or_default().extend(moved);
    }
}

struct Snap<'a> {
    txns: &'a Txns,
    csn: u64,
    mine: Vec<Xid>,
    cid: Cid,
}

impl Snap<'_> {
    fn committed(&self, xid: Xid) -> bool {
        matches!(self.txns.status(xid), XidStatus::Committed(csn) if csn.0 <= self.csn)
    }
}

impl Visibility for Snap<'_> {
    fn visible(&self, h: &TupleHeader) -> bool {
        let made = if self.mine.contains(&h.xmin) {
            h.cmin < self.cid
        } else {
            !h.xmin_aborted() && (h.xmin_seen_by_all() || self.committed(h.xmin))
        };
        let ended = if self.mine.contains(&h.xmax) {
            h.cmax < self.cid
        } else {
            !h.xmax_is_void() && (h.xmax_seen_by_all() || self.committed(h.xmax))
        };
        made && !ended
    }
    fn is_gone(&self, h: &TupleHeader) -> bool {
        let is_past = |xid| matches!(self.txns.status(xid), XidStatus::Committed(csn) if csn <= self.txns.horizon());
        let never_made = !h.xmin_seen_by_all() && self.txns.status(h.xmin) == XidStatus::Aborted;
        let ended = !h.xmax_is_void() && (h.xmax_seen_by_all() || is_past(h.xmax));
        h.xmin_aborted() || never_made || ended
    }
}
