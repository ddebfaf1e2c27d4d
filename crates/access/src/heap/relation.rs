//! What is known in memory of each relation: where the next row goes, and how much there is to
//! clean.
//!
//! ```text
//!  insert ─► shard's target block ──full──► free space: claim a block with room ──none──► extend the file
//!                  ▲                                                                        │ first page
//!                  └────────────────────────────────────────────────────────────────────────┘ the rest is offered
//! ```
//! A shard belongs to the threads whose index falls on it, one each while there are as many shards
//! as cores; so inserters on different cores fill different pages and count in different cache
//! lines. Only while the file has no more blocks than there are shards, an insert that would make
//! it grow goes to another shard's target, if nobody is at it: the rows of a small table stay
//! together, whoever brings them, until its inserters meet.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed,
};

use foldhash::fast::FixedState;
use throng_buffer::{Extended, Pool, Try};
use throng_sync::lock::RwLock;
use throng_sync::{CachePadded, thread_index};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, FileId, Result};

use super::Heap;
use super::free::{FreeSpace, FreeSpaceForm};
use super::page::{self, MAX_TUPLE};

/// No block.
const NONE: u32 = u32::MAX;
/// After a start, this many blocks at the file's end are tried before the file grows.
const TRY_LAST: BlockNo = 16;
/// An extension adds this part of the file's size, so that small relations stay small; the pool
/// bounds it.
const EXTENSION_PART: u32 = 32;
/// … and so much for each that waits.
const EXTENSION_EACH: u32 = 8;

/// One core's share of a relation's state. Relaxed throughout: counters and hints publish nothing.
struct Shard {
    target: AtomicU32,
    live: AtomicI64,
    dead: AtomicI64,
    dead_slots: AtomicI64,
    inserted: AtomicU64,
    updated: AtomicU64,
    hot_updated: AtomicU64,
    deleted: AtomicU64,
}

impl Shard {
    fn new() -> Shard {
        Shard {
            target: AtomicU32::new(NONE),
            live: AtomicI64::new(0),
            dead: AtomicI64::new(0),
            dead_slots: AtomicI64::new(0),
            inserted: AtomicU64::new(0),
            updated: AtomicU64::new(0),
            hot_updated: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
        }
    }
}

/// What a relation holds, as counted since the start (or since [`RelState::set_counts`]).
///
/// `live` and `dead` count what was done, whether it was committed or not;
/// [`RelState::note_rollback`] corrects them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelCounts {
    /// Rows.
    pub live: i64,
    /// Versions that a delete, an update or a rollback has left behind and nobody has taken away.
    pub dead: i64,
    /// Slots that indexes may still name and that hold nothing.
    pub dead_slots: i64,
    pub inserted: u64,
    pub updated: u64,
    pub hot_updated: u64,
    pub deleted: u64,
}

impl RelCounts {
    /// Rows that were inserted, updated or deleted.
    pub fn changes(&self) -> u64 {
        self.inserted + self.updated + self.deleted
    }

    /// Whether cleaning would pay, by PostgreSQL's rule: more than `threshold` and `scale` of the
    /// rows.
    pub fn wants_cleaning(&self, threshold: u64, scale: f64) -> bool {
        (self.dead + self.dead_slots) as f64 > threshold as f64 + scale * self.live.max(0) as f64
    }
}

/// One relation's insertion targets, free space and counters.
pub struct RelState {
    file: FileId,
    free: FreeSpace,
    /// A power of two.
    shards: Box<[CachePadded<Shard>]>,
    /// Whether the blocks that a start left behind have been put into the map.
    seeded: AtomicBool,
    /// Bytes that inserts leave on a page for updates: the fill factor.
    reserve: AtomicU16,
    /// Threads that are making the file longer, or wait to.
    extenders: AtomicU32,
}

impl RelState {
    pub fn new(file: FileId) -> RelState {
        RelState::with_free_space(file, FreeSpaceForm::default())
    }

    fn with_free_space(file: FileId, form: FreeSpaceForm) -> RelState {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shards = cores.next_power_of_two().clamp(4, 64);
        RelState {
            file,
            free: FreeSpace::new(form, shards),
            shards: (0..shards)
                .map(|_| CachePadded::new(Shard::new()))
                .collect(),
            seeded: AtomicBool::new(false),
            reserve: AtomicU16::new(0),
            extenders: AtomicU32::new(0),
        }
    }

    pub fn file(&self) -> FileId {
        self.file
    }

    /// Inserts fill pages to this many percent, 10 to 100; updates may use the rest.
    pub fn set_fill_factor(&self, percent: u32) {
        let kept = PAGE_SIZE as u32 * (100 - percent.clamp(10, 100)) / 100;
        self.reserve.store(kept as u16, Relaxed);
    }
    pub(crate) fn reserve(&self) -> usize {
        self.reserve.load(Relaxed).into()
    }

    pub(crate) fn shard_index(&self) -> usize {
        thread_index() & (self.shards.len() - 1)
    }
    fn shard(&self) -> &Shard {
        &self.shards[self.shard_index()]
    }

    /// The room that a page needs for an insert of so many bytes.
    fn wanted(&self, bytes: usize) -> usize {
        (page::aligned(bytes) + self.reserve()).min(MAX_TUPLE)
    }

    /// A block where this thread's next tuple may go, without growing the file; room for `bytes` is
    /// hoped for, not promised.
    pub(crate) fn target(&self, pool: &Pool, bytes: usize) -> Result<Option<BlockNo>> {
        let core = self.shard_index();
        let held = self.shards[core].target.load(Relaxed);
        if held != NONE {
            return Ok(Some(held));
        }
        if !self.seeded.load(Relaxed) {
            self.seed(pool)?;
        }
        let claimed = self.free.claim(core, self.wanted(bytes));
        Ok(claimed.map(|block| self.adopt(block)))
    }

    /// Of a small file the newest block that any shard inserts into.
    pub(crate) fn newest_target(&self, pool: &Pool) -> Result<Option<BlockNo>> {
        if pool.blocks(self.file)? as usize > self.shards.len() {
            return Ok(None);
        }
        let targets = self.shards.iter().map(|shard| shard.target.load(Relaxed));
        Ok(targets.filter(|&target| target != NONE).max())
    }

    /// A block that nobody inserts into and that is thought to be empty, without growing the file.
    pub(crate) fn claim_empty(&self, pool: &Pool) -> Result<Option<BlockNo>> {
        if !self.seeded.load(Relaxed) {
            self.seed(pool)?;
        }
        Ok(self.free.claim(self.shard_index(), MAX_TUPLE))
    }

    #[cold]
    fn seed(&self, pool: &Pool) -> Result<()> {
        let blocks = pool.blocks(self.file)?;
        if !self.seeded.swap(true, Relaxed) {
            (blocks.saturating_sub(TRY_LAST)..blocks)
                .for_each(|block| self.free.set(block, MAX_TUPLE));
        }
        Ok(())
    }

    /// Makes a claimed block the shard's target, unless another thread of the shard was faster.
    fn adopt(&self, block: BlockNo) -> BlockNo {
        let target = &self.shard().target;
        match target.compare_exchange(NONE, block, Relaxed, Relaxed) {
            Ok(_) => block,
            Err(other) => {
                self.free.set(block, MAX_TUPLE);
                other
            }
        }
    }

    /// The block did not do for an insert of so many bytes: report the room it has, less than that
    /// in any case, and let the next call look elsewhere.
    pub(crate) fn refused(&self, block: BlockNo, bytes: usize, room: usize) {
        let _ = self
            .shard()
            .target
            .compare_exchange(block, NONE, Relaxed, Relaxed);
        let too_little = self.wanted(bytes).saturating_sub(1);
        self.free.set(block, room.min(too_little));
    }

    /// Reports a page's room, unless it is somebody's target (who will report it on leaving).
    pub(crate) fn report(&self, block: BlockNo, room: usize) {
        if !self
            .shards
            .iter()
            .any(|shard| shard.target.load(Relaxed) == block)
        {
            self.free.set(block, room);
        }
    }

    /// Grows the file. The first new page becomes this thread's target, the rest is offered.
    ///
    /// Who had to wait for another's extension looks for free space first: it may have been made
    /// for him.
    pub(crate) fn extend(&self, pool: &Pool, bytes: usize) -> Try<()> {
        let others = self.extenders.fetch_add(1, Relaxed);
        let extended = self.extend_or_find(pool, bytes, others);
        self.extenders.fetch_sub(1, Relaxed);
        extended.map(|_| ())
    }

    fn extend_or_find(&self, pool: &Pool, bytes: usize, others: u32) -> Try<Extended<BlockNo>> {
        let blocks = pool.blocks(self.file)?;
        let wanted = (blocks / EXTENSION_PART)
            .max(EXTENSION_EACH * others)
            .max(1);
        pool.extend_or_find(
            self.file,
            wanted,
            blocks,
            || self.target(pool, bytes),
            |new| {
                let others = self.extenders.load(Relaxed).saturating_sub(1);
                self.adopt(new.start);
                self.free
                    .offer(self.shard_index(), new.start + 1..new.end, others);
            },
        )
    }

    pub(crate) fn truncated(&self, blocks: BlockNo) {
        self.free.truncate(blocks);
        for shard in &self.shards {
            let target = shard.target.load(Relaxed);
            if target != NONE && target >= blocks {
                let _ = shard
                    .target
                    .compare_exchange(target, NONE, Relaxed, Relaxed);
            }
        }
    }

    pub(crate) fn note_inserted(&self, rows: usize) {
        let shard = self.shard();
        shard.inserted.fetch_add(rows as u64, Relaxed);
        shard.live.fetch_add(rows as i64, Relaxed);
    }
    pub(crate) fn note_updated(&self, hot: bool) {
        let shard = self.shard();
        shard.updated.fetch_add(1, Relaxed);
        shard.hot_updated.fetch_add(hot.into(), Relaxed);
        shard.dead.fetch_add(1, Relaxed);
    }
    pub(crate) fn note_deleted(&self) {
        let shard = self.shard();
        shard.deleted.fetch_add(1, Relaxed);
        shard.live.fetch_sub(1, Relaxed);
        shard.dead.fetch_add(1, Relaxed);
    }
    pub(crate) fn note_pruned(&self, versions: usize, new_dead_slots: usize) {
        let shard = self.shard();
        shard.dead.fetch_sub(versions as i64, Relaxed);
        shard.dead_slots.fetch_add(new_dead_slots as i64, Relaxed);
    }
    pub(crate) fn note_reclaimed(&self, dead_slots: usize) {
        self.shard()
            .dead_slots
            .fetch_sub(dead_slots as i64, Relaxed);
    }

    /// A transaction was rolled back that had inserted and deleted so many rows here: what it
    /// inserted is dead, what it deleted is not. (An update leaves one dead version either way.)
    pub fn note_rollback(&self, inserted: u64, deleted: u64) {
        let (inserted, deleted) = (inserted as i64, deleted as i64);
        let shard = self.shard();
        shard.live.fetch_add(deleted - inserted, Relaxed);
        shard.dead.fetch_add(inserted - deleted, Relaxed);
    }

    /// Sets the rows, dead versions and dead slots to what a whole pass over the relation has
    /// found.
    pub fn set_counts(&self, live: i64, dead: i64, dead_slots: i64) {
        let now = self.counts();
        let shard = self.shard();
        shard.live.fetch_add(live - now.live, Relaxed);
        shard.dead.fetch_add(dead - now.dead, Relaxed);
        shard
            .dead_slots
            .fetch_add(dead_slots - now.dead_slots, Relaxed);
    }

    pub fn counts(&self) -> RelCounts {
        self.shards
            .iter()
            .fold(RelCounts::default(), |sum, shard| RelCounts {
                live: sum.live + shard.live.load(Relaxed),
                dead: sum.dead + shard.dead.load(Relaxed),
                dead_slots: sum.dead_slots + shard.dead_slots.load(Relaxed),
                inserted: sum.inserted + shard.inserted.load(Relaxed),
                updated: sum.updated + shard.updated.load(Relaxed),
                hot_updated: sum.hot_updated + shard.hot_updated.load(Relaxed),
                deleted: sum.deleted + shard.deleted.load(Relaxed),
            })
    }
}

/// Every relation's state, made when it is first asked for.
///
/// Asking takes a read lock that all cores share: statements keep the [`Heap`] they were given.
pub struct RelationStore {
    pool: Arc<Pool>,
    free_space: FreeSpaceForm,
    relations: RwLock<HashMap<FileId, Arc<RelState>, FixedState>>,
}

impl RelationStore {
    pub fn new(pool: Arc<Pool>) -> RelationStore {
        RelationStore::with_free_space(pool, FreeSpaceForm::default())
    }

    /// As [`new`](Self::new), with the free space of relations shared or split.
    pub fn with_free_space(pool: Arc<Pool>, free_space: FreeSpaceForm) -> RelationStore {
        RelationStore {
            pool,
            free_space,
            relations: RwLock::default(),
        }
    }

    pub fn rel(&self, file: FileId) -> Arc<RelState> {
        if let Some(rel) = self.relations.read().get(&file) {
            return rel.clone();
        }
        self.relations
            .write()
            .entry(file)
            .or_insert_with(|| Arc::new(RelState::with_free_space(file, self.free_space)))
            .clone()
    }

    pub fn heap(&self, file: FileId) -> Heap {
        Heap::new(self.pool.clone(), self.rel(file))
    }

    /// The file is gone. Whoever still holds its state holds it alone.
    pub fn forget(&self, file: FileId) {
        self.relations.write().remove(&file);
    }

    /// Every relation touched since the start: what a cleaner looks through.
    pub fn all(&self) -> Vec<Arc<RelState>> {
        self.relations.read().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_what_is_done_and_undone() {
        let rel = RelState::new(FileId(1));
        rel.note_inserted(100);
        rel.note_updated(true);
        rel.note_updated(false);
        rel.note_deleted();
        rel.note_rollback(10, 1);
        rel.note_pruned(3, 1);
        let counts = rel.counts();
        assert_eq!((counts.live, counts.dead, counts.dead_slots), (90, 9, 1));
        assert_eq!(
            (
                counts.updated,
                counts.hot_updated,
                counts.deleted,
                counts.inserted
            ),
            (2, 1, 1, 100)
        );
        assert!(counts.wants_cleaning(0, 0.1) && !counts.wants_cleaning(50, 0.2));
        rel.set_counts(7, 0, 0);
        assert_eq!(rel.counts().live, 7);
        assert!(!rel.counts().wants_cleaning(0, 0.0));
    }
}
