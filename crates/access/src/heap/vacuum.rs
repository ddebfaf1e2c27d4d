//! Vacuum, block by block, in two passes with the indexes between them.
//!
//! ```text
//!  vacuum_scan(every block)          prunes; what indexes may still name becomes (or already was) a dead slot ─► list
//!  every index forgets the list
//!  vacuum_finish(blocks of the list) dead slots become unused
//! ```
//! A slot is not used again before every index has forgotten it. A reader that took a tid from an
//! index just before that may find another row there; it was made after the reader's snapshot, so
//! the reader does not see it.
//!
//! The caller decides the pace: each call is one block and holds one latch.

use throng_buffer::{ExclusiveGuard, Mtr, Pool, Ring, Try};
use throng_types::page::{
    HEADER, KIND_HEAP, KIND_NEW, KIND_OVERFLOW, OFF_FLAGS, OFF_KIND, OFF_LOWER, PAGE_SIZE,
};
use throng_types::{BlockNo, Error, FileId, Tid, Xid};

use super::page::{self, FREE_SLOTS, MAX_TUPLE, PageBytes, SLOT, Slot, slot_offset};
use super::prune::Plan;
use super::relation::RelState;
use super::{Heap, room};
use crate::TxContext;

/// What a pass over one block found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageVacuumed {
    /// Versions taken away.
    pub removed: u32,
    /// Versions that stay.
    pub kept: u32,
    /// Those of them that are deleted or replaced, but not for everybody yet.
    pub ending: u32,
    /// Slots added to the list.
    pub dead_slots: u32,
    /// Pages of large values freed.
    pub large_freed: u32,
}

impl Heap {
    /// The first pass over one block; `ring` is the pass's own. Dead slots are appended to `dead`,
    /// in order.
    pub fn vacuum_scan(
        &self,
        block: BlockNo,
        ctx: &dyn TxContext,
        ring: &mut Ring,
        dead: &mut Vec<Tid>,
    ) -> Try<PageVacuumed> {
        let page = self.pool.shared_with(self.page_id(block), ring)?;
        match page[OFF_KIND] {
            KIND_HEAP => {}
            KIND_OVERFLOW => {
                drop(page);
                let large_freed = self.vacuum_large(block, ctx)?;
                return Ok(PageVacuumed {
                    large_freed,
                    ..PageVacuumed::default()
                });
            }
            kind => {
                if kind == KIND_NEW {
                    self.rel.report(block, MAX_TUPLE);
                }
                return Ok(PageVacuumed::default());
            }
        }
        let mut plan = Plan::new(&page, block, ctx);
        if plan.gains() || !plan.hints.is_empty() {
            drop(page);
            let guard = self.pool.exclusive(self.page_id(block))?;
            if !page::is_heap(&*guard) {
                return Ok(PageVacuumed::default());
            }
            plan = Plan::new(&guard, block, ctx);
            let found = found(&plan);
            let (guard, pruned) = self.carry_out(guard, plan);
            list_dead(&guard, block, dead);
            self.rel.report(block, pruned.room);
            return Ok(found);
        }
        list_dead(&page, block, dead);
        self.rel.report(block, page::room(&*page));
        Ok(found(&plan))
    }

    /// The second pass over one block: `slots`, which the first pass listed and every index has
    /// forgotten, become unused.
    pub fn vacuum_finish(&self, block: BlockNo, slots: &[u16]) -> Try<()> {
        let guard = self.pool.exclusive(self.page_id(block))?;
        if !page::is_heap(&*guard) {
            return Ok(());
        }
        let count = page::slot_count(&*guard);
        let freed: Vec<u16> = slots
            .iter()
            .copied()
            .filter(|&slot| page::slot(&*guard, slot) == Slot::Dead)
            .collect();
        if freed.is_empty() {
            return Ok(());
        }
        let mut mtr = Mtr::new(&self.pool, Xid::NONE);
        let i = mtr.add(guard);
        for &slot in &freed {
            mtr.write(i, slot_offset(slot), &Slot::Unused.encode().to_le_bytes());
        }
        let page = mtr.page(i);
        let keep = (1..=count)
            .rev()
            .find(|&n| page::slot(page, n) != Slot::Unused)
            .unwrap_or(0);
        let unused = (1..=keep).any(|n| page::slot(page, n) == Slot::Unused);
        let flags = page.u8(OFF_FLAGS) & !FREE_SLOTS | if unused { FREE_SLOTS } else { 0 };
        let lower = HEADER + usize::from(keep) * SLOT;
        mtr.write(i, OFF_FLAGS, &[flags]);
        mtr.write(i, OFF_LOWER, &(lower as u16).to_le_bytes());
        let room = page::room(mtr.page(i));
        mtr.commit();
        self.rel.note_reclaimed(freed.len());
        self.rel.report(block, room);
        Ok(())
    }

    /// How many blocks there are, and how many of them stay when empty pages are cut off the file's
    /// end.
    pub fn kept_blocks(&self) -> Try<(BlockNo, BlockNo)> {
        let blocks = self.pool.blocks(self.file())?;
        let mut keep = blocks;
        while keep > 0 {
            let page = self.pool.shared(self.page_id(keep - 1))?;
            let empty =
                room::is_new(&page) || page::is_heap(&*page) && page::slot_count(&*page) == 0;
            if !empty {
                break;
            }
            keep -= 1;
        }
        Ok((blocks, keep))
    }

    /// Cuts empty pages off the file's end; returns how many blocks stay.
    ///
    /// The caller holds the relation locked against everybody (`AccessExclusive`), and owns its
    /// thread: this waits for the log.
    pub fn truncate_tail(&self) -> Try<BlockNo> {
        let (blocks, keep) = self.kept_blocks()?;
        if keep < blocks {
            truncate(&self.pool, &self.rel, self.file(), keep)?;
        }
        Ok(keep)
    }
}

/// Cuts a file, as [`Heap::truncate_tail`] does once it knows where.
fn truncate(pool: &Pool, rel: &RelState, file: FileId, keep: BlockNo) -> Try<()> {
    // 1. Nobody is sent to a block that goes.
    rel.truncated(keep);
    // 2. The record is on disk before the file is shorter: redo of older records may bring the
    //    pages back, and must end by cutting them off again.
    pool.files()
        .will_truncate(file, keep)
        .map_err(Error::from)?;
    let mut record = throng_wal::RecordBuilder::new();
    record.file_truncate(file, keep);
    let end = pool.wal().insert(&mut record);
    pool.wal().flush_blocking(end)?;
    // 3. Frames are dropped, then the file is cut.
    pool.truncate(file, keep)?;
    Ok(())
}

fn found(plan: &Plan) -> PageVacuumed {
    PageVacuumed {
        removed: plan.removed.into(),
        kept: plan.kept.into(),
        ending: plan.ending.into(),
        dead_slots: plan.dead.into(),
        large_freed: 0,
    }
}

fn list_dead(page: &[u8; PAGE_SIZE], block: BlockNo, dead: &mut Vec<Tid>) {
    let slots = 1..=page::slot_count(page);
    dead.extend(
        slots
            .filter(|&n| page::slot(page, n) == Slot::Dead)
            .map(|n| Tid::new(block, n)),
    );
}

/// Makes a latched page an empty heap page.
pub(super) fn empty<'p>(mtr: &mut Mtr<'p>, guard: ExclusiveGuard<'p>) {
    let i = mtr.add(guard);
    mtr.init(i, KIND_HEAP, 0);
}
