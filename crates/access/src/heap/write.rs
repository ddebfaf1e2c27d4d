//! Inserting: one row or many.

use throng_buffer::{ExclusiveGuard, Mtr, Ring, Try};
use throng_types::error::state;
use throng_types::page::{
    HEADER, KIND_HEAP, OFF_KIND, OFF_LOWER, OFF_SPECIAL, OFF_UPPER, PAGE_SIZE,
};
use throng_types::{Error, PageId, Tid};

use super::Heap;
use super::page::{self, MAX_SLOTS, MAX_TUPLE, SLOT, Slot, aligned};
use super::room::{Room, bounds, is_new, room_in_hole};
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

/// Fills a new page with as many of the rows as go there, the first one in any case, leaving
/// `reserve` bytes free. The page is put together apart and written at once. Returns how many rows
/// there are on it, in slots from 1.
fn fill<R: AsRef<[u8]>>(
    mtr: &mut Mtr<'_>,
    i: usize,
    header: &TupleHeader,
    rows: &[R],
    reserve: usize,
) -> usize {
    let header = header.to_bytes();
    let mut page = [0; PAGE_SIZE];
    let (mut lower, mut upper) = (HEADER, PAGE_SIZE);
    let mut count = 0;
    for row in rows.iter().map(AsRef::as_ref).take(MAX_SLOTS.into()) {
        let len = TUPLE_HEADER + row.len();
        let kept = if count == 0 { 0 } else { reserve };
        if len > MAX_TUPLE || upper - lower < aligned(len) + SLOT + kept {
            break;
        }
        upper -= aligned(len);
        page[upper..upper + TUPLE_HEADER].copy_from_slice(&header);
        page[upper + TUPLE_HEADER..upper + len].copy_from_slice(row);
        let slot = Slot::Normal {
            off: upper as u16,
            len: len as u16,
        };
        page[lower..lower + SLOT].copy_from_slice(&slot.encode().to_le_bytes());
        lower += SLOT;
        count += 1;
    }
    page[OFF_KIND] = KIND_HEAP;
    page[OFF_LOWER..OFF_LOWER + 4].copy_from_slice(&bounds(lower, upper));
    page[OFF_SPECIAL..OFF_SPECIAL + 2].copy_from_slice(&(PAGE_SIZE as u16).to_le_bytes());
    mtr.log_image(i);
    mtr.write(i, 0, &page);
    count
}
const _: () = assert!(OFF_UPPER == OFF_LOWER + 2);

impl Heap {
    /// Adds a row.
    ///
    /// # Errors
    /// 54000 for a row that no page can hold; 53100 when the disk is full.
    pub fn insert(&self, ctx: &dyn TxContext, row: &[u8]) -> Try<Tid> {
        let size = tuple_size(row.len())?;
        let xid = ctx.xid();
        let header = TupleHeader::new(xid, ctx.cid(), 0);
        let (guard, room) = self.page_with_room(ctx, size, |page| self.pool.exclusive(page))?;
        let tid = Tid::new(guard.page_id().block(), room.slot);
        let mut mtr = Mtr::new(&self.pool, xid);
        let i = mtr.add(guard);
        self.put(&mut mtr, i, room, &header, row);
        mtr.commit();
        self.rel.note_inserted(1);
        Ok(tid)
    }

    /// Adds rows to one page, as many as go there and at least one, with one log record. Returns
    /// their tids in order: the caller comes again with the rest. `ring` is the load's own.
    ///
    /// # Errors
    /// As [`Heap::insert`], for the first row; a later row that is too big is left for the next
    /// call to refuse.
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
        let (guard, first) =
            self.page_with_room(ctx, size, |page| self.pool.exclusive_with(page, ring))?;
        let block = guard.page_id().block();
        let empty = is_new(&guard);
        let mut mtr = Mtr::new(&self.pool, xid);
        let i = mtr.add(guard);
        if empty {
            let count = fill(&mut mtr, i, &header, rows, reserve);
            mtr.commit();
            self.rel.note_inserted(count);
            let tid = |slot| Tid::new(block, slot as u16);
            return Ok((1..=count).map(tid).collect());
        }
        let mut room = Some(first);
        let mut tids = Vec::with_capacity(rows.len().min(MAX_SLOTS.into()));
        for row in rows {
            let row = row.as_ref();
            let next = |size| room_in_hole(mtr.page(i), size, reserve);
            let Some(room) = room
                .take()
                .or_else(|| tuple_size(row.len()).ok().and_then(next))
            else {
                break;
            };
            tids.push(Tid::new(block, room.slot));
            self.put(&mut mtr, i, room, &header, row);
        }
        mtr.commit();
        self.rel.note_inserted(tids.len());
        Ok(tids)
    }

    /// A latched page with room for an insert of `size` bytes. Grows the file if need be.
    pub(super) fn page_with_room<'p>(
        &'p self,
        ctx: &dyn TxContext,
        size: usize,
        mut latch: impl FnMut(PageId) -> Try<ExclusiveGuard<'p>>,
    ) -> Try<(ExclusiveGuard<'p>, Room)> {
        admit_write(&self.pool)?;
        let reserve = self.rel.reserve();
        loop {
            let Some(block) = self.rel.target(&self.pool, size)? else {
                if let Some(shared) = self.shared_page(ctx, size)? {
                    return Ok(shared);
                }
                self.rel.extend(&self.pool, size)?;
                continue;
            };
            let guard = latch(self.page_id(block))?;
            let (guard, room) = self.make_room(guard, ctx, size, reserve);
            if let Some(room) = room {
                return Ok((guard, room));
            }
            self.rel.refused(block, size, page::room(&*guard));
        }
    }

    /// The page of a small file that others insert into, if it has room and nobody is at it.
    pub(super) fn shared_page(
        &self,
        ctx: &dyn TxContext,
        size: usize,
    ) -> Try<Option<(ExclusiveGuard<'_>, Room)>> {
        let Some(block) = self.rel.newest_target(&self.pool)? else {
            return Ok(None);
        };
        let Some(guard) = self.pool.try_exclusive(self.page_id(block))? else {
            return Ok(None);
        };
        let (guard, room) = self.make_room(guard, ctx, size, self.rel.reserve());
        Ok(room.map(|room| (guard, room)))
    }
}
