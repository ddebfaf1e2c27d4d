//! New tuples on pages: inserting, one row or many, and what every change needs.

use throng_buffer::{ExclusiveGuard, Mtr, Ring, Try};
use throng_types::error::state;
use throng_types::page::{
    HEADER, KIND_HEAP, KIND_NEW, OFF_FLAGS, OFF_KIND, OFF_LOWER, OFF_UPPER, PAGE_SIZE,
};
use throng_types::{Error, PageId, Tid};

use super::Heap;
use super::page::{
    self, FREE_SLOTS, MAX_SLOTS, MAX_TUPLE, PRUNABLE, PageBytes, SLOT, Slot, aligned, slot_offset,
};
use super::prune::Plan;
use super::tuple::{TUPLE_HEADER, TupleHeader};
use crate::{TxContext, admit_write};

/// The size of the tuple for a row of `len` bytes.
///
/// # Errors
/// 54000 when no page can hold it.
pub(super) fn tuple_size(len: usize) -> Result<usize, Error> {
    let size = TUPLE_HEADER + len;
    if size > MAX_TUPLE {
        return Err(Error::new(
            state::PROGRAM_LIMIT_EXCEEDED,
            format!("row is too big: size {size}, maximum size {MAX_TUPLE}"),
        ));
    }
    Ok(size)
}

/// `lower` and `upper` as they lie in the header.
pub(super) fn bounds(lower: usize, upper: usize) -> [u8; 4] {
    let (lower, upper) = ((lower as u16).to_le_bytes(), (upper as u16).to_le_bytes());
    [lower[0], lower[1], upper[0], upper[1]]
}

pub(super) fn is_new(page: &[u8; PAGE_SIZE]) -> bool {
    page[OFF_KIND] == KIND_NEW
}

/// The slot that a tuple of `size` bytes would get here, if there is room for it and `reserve` bytes more.
/// An empty page takes any tuple.
pub(super) fn place(page: &[u8; PAGE_SIZE], size: usize, reserve: usize) -> Option<u16> {
    if is_new(page) {
        return Some(1);
    }
    if !page::is_heap(page) {
        return None;
    }
    let count = page::slot_count(page);
    let reserve = if usize::from(page.u16(OFF_UPPER)) == PAGE_SIZE {
        0
    } else {
        reserve
    };
    let hole = page::hole(page);
    if hole < aligned(size) + reserve {
        return None;
    }
    if let Some(slot) = page::unused_slot(page) {
        return Some(slot);
    }
    (count < MAX_SLOTS && hole >= aligned(size) + reserve + SLOT).then_some(count + 1)
}

/// Puts a tuple into the slot that [`place`] gave.
pub(super) fn put(mtr: &mut Mtr<'_>, i: usize, slot: u16, header: &TupleHeader, row: &[u8]) {
    if is_new(mtr.page(i)) {
        mtr.init(i, KIND_HEAP, 0);
    }
    let page = mtr.page(i);
    let count = page::slot_count(page);
    let flags = page.u8(OFF_FLAGS);
    let len = TUPLE_HEADER + row.len();
    let upper = usize::from(page.u16(OFF_UPPER)) - aligned(len);
    mtr.write(i, upper, &header.to_bytes());
    mtr.write(i, upper + TUPLE_HEADER, row);
    let raw = Slot::Normal {
        off: upper as u16,
        len: len as u16,
    }
    .encode();
    mtr.write(i, slot_offset(slot), &raw.to_le_bytes());
    if slot > count {
        mtr.write(
            i,
            OFF_LOWER,
            &bounds(HEADER + usize::from(slot) * SLOT, upper),
        );
        if flags & FREE_SLOTS != 0 {
            // The search for an unused slot was in vain: the next one need not make it.
            mtr.write(i, OFF_FLAGS, &[flags & !FREE_SLOTS]);
        }
    } else {
        mtr.write(i, OFF_UPPER, &(upper as u16).to_le_bytes());
    }
}

impl Heap {
    /// Adds a row.
    ///
    /// # Errors
    /// 54000 for a row that no page can hold; 53100 when the disk is full.
    pub fn insert(&self, ctx: &dyn TxContext, row: &[u8]) -> Try<Tid> {
        let size = tuple_size(row.len())?;
        let xid = ctx.xid();
        let header = TupleHeader::new(xid, ctx.cid(), 0);
        let (guard, slot) = self.page_with_room(ctx, size, |page| self.pool.exclusive(page))?;
        let block = guard.page_id().block();
        let mut mtr = Mtr::new(&self.pool, xid);
        let i = mtr.add(guard);
        put(&mut mtr, i, slot, &header, row);
        mtr.commit();
        self.rel.note_inserted(1);
        Ok(Tid::new(block, slot))
    }

    /// Adds rows to one page, as many as go there and at least one, with one log record. Returns their tids in order:
    /// the caller comes again with the rest. `ring` is the load's own.
    ///
    /// # Errors
    /// As [`Heap::insert`], for the first row; a later row that is too big is left for the next call to refuse.
    pub fn insert_batch<R: AsRef<[u8]>>(
        &self,
        ctx: &dyn TxContext,
        rows: &[R],
        ring: &mut Ring,
    ) -> Try<Vec<Tid>> {
        let Some(first) = rows.first() else {
            return Ok(Vec::new());
        };
        let size = tuple_size(first.as_ref().len())?;
        let xid = ctx.xid();
        let header = TupleHeader::new(xid, ctx.cid(), 0);
        let reserve = self.rel.reserve();
        let (guard, mut slot) =
            self.page_with_room(ctx, size, |page| self.pool.exclusive_with(page, ring))?;
        let block = guard.page_id().block();
        let mut mtr = Mtr::new(&self.pool, xid);
        let i = mtr.add(guard);
        let mut tids = Vec::with_capacity(rows.len().min(MAX_SLOTS.into()));
        for row in rows {
            let row = row.as_ref();
            if !tids.is_empty() {
                let Ok(size) = tuple_size(row.len()) else {
                    break;
                };
                let Some(next) = place(mtr.page(i), size, reserve) else {
                    break;
                };
                slot = next;
            }
            put(&mut mtr, i, slot, &header, row);
            tids.push(Tid::new(block, slot));
        }
        mtr.commit();
        self.rel.note_inserted(tids.len());
        Ok(tids)
    }

    /// A latched page with room for an insert of `size` bytes, and the slot there. Grows the file if need be.
    fn page_with_room<'p>(
        &'p self,
        ctx: &dyn TxContext,
        size: usize,
        mut latch: impl FnMut(PageId) -> Try<ExclusiveGuard<'p>>,
    ) -> Try<(ExclusiveGuard<'p>, u16)> {
        admit_write(&self.pool)?;
        let reserve = self.rel.reserve();
        loop {
            let Some(block) = self.rel.target(&self.pool, size)? else {
                self.rel.extend(&self.pool, size)?;
                continue;
            };
            let guard = latch(self.page_id(block))?;
            let (guard, slot) = self.make_room(guard, ctx, size, reserve);
            if let Some(slot) = slot {
                return Ok((guard, slot));
            }
            self.rel.leave(block, page::room(&*guard));
        }
    }

    /// A place for a tuple on a latched page, after pruning it if that is what it takes.
    pub(super) fn make_room<'p>(
        &'p self,
        guard: ExclusiveGuard<'p>,
        ctx: &dyn TxContext,
        size: usize,
        reserve: usize,
    ) -> (ExclusiveGuard<'p>, Option<u16>) {
        let slot = place(&guard, size, reserve);
        if slot.is_some() || !page::is_heap(&*guard) || guard[OFF_FLAGS] & PRUNABLE == 0 {
            return (guard, slot);
        }
        let plan = Plan::new(&guard, guard.page_id().block(), ctx);
        let (guard, _) = self.carry_out(guard, plan);
        let slot = place(&guard, size, reserve);
        (guard, slot)
    }
}
