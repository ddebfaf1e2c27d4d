//! Values that no row can hold: chains of overflow pages in the relation's own file.
//!
//! A row keeps a 16-byte [`LargeRef`]; which rows share one, and when the last of them lets go, the
//! writer of rows knows: it calls [`Heap::drop_large`] when it deletes a row, or replaces it by one
//! that does not have the reference. Storing and dropping are transactional like rows: the pages
//! carry who stored them, the first one also who dropped them, and vacuum frees them when nobody
//! can want them any more.
//!
//! ```text
//!  0             24         32         40          44          48         52         56
//!  | page header | xmin u64 | xmax u64 | total u32 | index u32 | next u32 | zero u32 | bytes …  up to lower
//! ```
//! * `xmin`: who stored the value; a reference holds the same number, so that a page used anew is
//!   found out.
//! * `xmax`: who dropped the value, 0 for nobody; only on the first page.
//! * `total`: the value's length. `index`: this page's place in the value, from 0. `next`: the
//!   block after it, or 2³²-1.
//!
//! The last page is written first, so that a page's `next` is known when it is written; freeing
//! cuts the second page out of the chain, again and again, and the first page goes last. So every
//! page in use is either reached from its first page or was stored by a transaction that did not
//! commit.

use throng_buffer::{ExclusiveGuard, Interrupt, Mtr, PageRef, Try};
use throng_types::error::state;
use throng_types::page::{HEADER, KIND_OVERFLOW, OFF_KIND, OFF_LOWER, PAGE_SIZE};
use throng_types::{BlockNo, Error, Xid};

use super::page::{self, MAX_TUPLE, PageBytes};
use super::{Heap, room, vacuum};
use crate::{TxContext, XidStatus, admit_write};

const OFF_XMIN: usize = HEADER;
const OFF_XMAX: usize = 32;
const OFF_TOTAL: usize = 40;
const OFF_INDEX: usize = 44;
const OFF_NEXT: usize = 48;
const OFF_DATA: usize = 56;
/// Bytes of a value that one page holds.
pub const CHUNK: usize = PAGE_SIZE - OFF_DATA;
/// The longest value, as in PostgreSQL: one byte less than a gigabyte.
pub const MAX_LARGE: usize = (1 << 30) - 1;
/// No block: the chain's end.
const END: BlockNo = BlockNo::MAX;
/// Pages that storing adds to the file at once.
const EXTENSION: u32 = 64;
/// Pages that are written or read between two turns: half a megabyte, some hundred microseconds.
const STRETCH: u32 = 64;
/// How far ahead of a reader pages are asked for. Values mostly lie in block order.
const READ_AHEAD: BlockNo = 8;

/// Where a value is. 16 bytes in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeRef {
    pub head: BlockNo,
    /// The value's length in bytes.
    pub len: u32,
    /// Who stored it.
    pub xid: Xid,
}

impl LargeRef {
    pub const SIZE: usize = 16;

    pub fn to_bytes(self) -> [u8; LargeRef::SIZE] {
        let mut b = [0; LargeRef::SIZE];
        b[..4].copy_from_slice(&self.head.to_le_bytes());
        b[4..8].copy_from_slice(&self.len.to_le_bytes());
        b[8..].copy_from_slice(&self.xid.0.to_le_bytes());
        b
    }
    pub fn from_bytes(b: [u8; LargeRef::SIZE]) -> LargeRef {
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        LargeRef {
            head: word(0),
            len: word(4),
            xid: Xid(u64::from(word(8)) | u64::from(word(12)) << 32),
        }
    }
}

/// How far a call of [`Heap::store_large`] has come, kept by its caller between attempts.
pub struct LargeWrite {
    /// Blocks taken and not yet used, in order: the last is used first.
    free: Vec<BlockNo>,
    /// Pages written, from the value's end.
    written: usize,
    /// The page written last.
    next: BlockNo,
}

impl Default for LargeWrite {
    fn default() -> LargeWrite {
        LargeWrite {
            free: Vec::new(),
            written: 0,
            next: END,
        }
    }
}

/// How far a call of [`Heap::read_large`] has come, kept by its caller between attempts.
#[derive(Default)]
pub struct LargeRead {
    /// Chunks read.
    index: u32,
    next: BlockNo,
}

/// An overflow page's own fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub xmin: Xid,
    pub xmax: Xid,
    pub total: u32,
    pub index: u32,
    pub next: Option<BlockNo>,
    /// Bytes of the value on this page.
    pub len: usize,
}

impl Chunk {
    /// `None` when this is no overflow page.
    pub fn read(page: &impl PageBytes) -> Option<Chunk> {
        (page.u8(OFF_KIND) == KIND_OVERFLOW).then(|| Chunk {
            xmin: Xid(page.u64(OFF_XMIN)),
            xmax: Xid(page.u64(OFF_XMAX)),
            total: page.u32(OFF_TOTAL),
            index: page.u32(OFF_INDEX),
            next: Some(page.u32(OFF_NEXT)).filter(|&block| block != END),
            len: usize::from(page.u16(OFF_LOWER)).saturating_sub(OFF_DATA),
        })
    }
}

impl Heap {
    /// Stores a value page by page, and gives way now and then. Call again with the same `progress`
    /// after that or a wait; the reference is good once it is returned.
    ///
    /// # Errors
    /// 54000 for a gigabyte and more; 53100 when the disk is full.
    pub fn store_large(
        &self,
        ctx: &dyn TxContext,
        value: &[u8],
        progress: &mut LargeWrite,
    ) -> Try<LargeRef> {
        if value.len() > MAX_LARGE {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "value is too big: size {}, maximum size {MAX_LARGE}",
                    value.len()
                ),
            )
            .into());
        }
        let xid = ctx.xid();
        let chunks = value.len().div_ceil(CHUNK).max(1);
        let turn_ends = progress.written + STRETCH as usize;
        while progress.written < chunks {
            if progress.written == turn_ends {
                return Err(Interrupt::Yield);
            }
            let left = chunks - progress.written;
            let Some(&block) = progress.free.last() else {
                self.take_blocks(progress, left)?;
                continue;
            };
            admit_write(&self.pool)?;
            let guard = self.pool.exclusive(self.page_id(block))?;
            progress.free.pop();
            if !is_empty(&guard) {
                self.rel.report(block, page::room(&*guard));
                continue;
            }
            let start = (left - 1) * CHUNK;
            let bytes = &value[start..value.len().min(start + CHUNK)];
            let mut mtr = Mtr::new(&self.pool, xid);
            let i = mtr.add(guard);
            mtr.init(i, KIND_OVERFLOW, 0);
            let mut fields = [0u8; OFF_DATA - HEADER];
            fields[..8].copy_from_slice(&xid.0.to_le_bytes());
            fields[OFF_TOTAL - HEADER..][..4].copy_from_slice(&(value.len() as u32).to_le_bytes());
            fields[OFF_INDEX - HEADER..][..4].copy_from_slice(&(left as u32 - 1).to_le_bytes());
            fields[OFF_NEXT - HEADER..][..4].copy_from_slice(&progress.next.to_le_bytes());
            mtr.write(
                i,
                OFF_LOWER,
                &((OFF_DATA + bytes.len()) as u16).to_le_bytes(),
            );
            mtr.write(i, HEADER, &fields);
            mtr.write(i, OFF_DATA, bytes);
            mtr.commit();
            progress.written += 1;
            progress.next = block;
        }
        progress
            .free
            .drain(..)
            .for_each(|block| self.rel.report(block, MAX_TUPLE));
        Ok(LargeRef {
            head: progress.next,
            len: value.len() as u32,
            xid,
        })
    }

    fn take_blocks(&self, progress: &mut LargeWrite, left: usize) -> Try<()> {
        if let Some(block) = self.rel.claim_empty(&self.pool)? {
            progress.free.push(block);
            return Ok(());
        }
        let count = u32::try_from(left).unwrap_or(EXTENSION).min(EXTENSION);
        progress.free.extend(self.pool.extend(self.file(), count)?);
        Ok(())
    }

    /// Fills `out`, which is as long as the value, page by page, and gives way now and then. Call
    /// again with the same `progress` and `out` after that or a wait.
    ///
    /// # Errors
    /// XX001 when the value is not there as the reference says.
    pub fn read_large(
        &self,
        large: &LargeRef,
        progress: &mut LargeRead,
        out: &mut [u8],
    ) -> Try<()> {
        let chunks = (large.len as usize).div_ceil(CHUNK).max(1) as u32;
        let turn_ends = progress.index.saturating_add(STRETCH);
        while progress.index < chunks {
            let index = progress.index;
            if index == turn_ends {
                return Err(Interrupt::Yield);
            }
            let block = if index == 0 {
                large.head
            } else {
                progress.next
            };
            self.pool
                .prefetch(self.page_id(block.saturating_add(READ_AHEAD)));
            let start = (index as usize * CHUNK).min(out.len());
            let end = out.len().min(start + CHUNK);
            let part = &mut out[start..end];
            let chunk = self.pool.read(self.page_id(block), |page: &PageRef<'_>| {
                let chunk = Chunk::read(page)?;
                page.copy(OFF_DATA, part);
                Some(chunk)
            })?;
            let good = |c: &Chunk| {
                c.xmin == large.xid
                    && c.total == large.len
                    && c.index == index
                    && c.next.is_some() == (index + 1 < chunks)
                    && c.len == end - start
                    && out.len() == large.len as usize
            };
            let Some(chunk) = chunk.filter(good) else {
                return Err(Error::corrupted(format!(
                    "missing chunk {index} of the large value at block {} of relation base/{}",
                    large.head,
                    self.file()
                ))
                .into());
            };
            progress.index += 1;
            progress.next = chunk.next.unwrap_or(END);
        }
        Ok(())
    }

    /// Lets go of a value: the last row version that will have it is being deleted or replaced by
    /// this transaction. Earlier snapshots still read it; vacuum frees it when none is left.
    ///
    /// # Errors
    /// XX001 when the value is not there.
    pub fn drop_large(&self, ctx: &dyn TxContext, large: &LargeRef) -> Try<()> {
        admit_write(&self.pool)?;
        let xid = ctx.xid();
        let guard = self.pool.exclusive(self.page_id(large.head))?;
        if !Chunk::read(&*guard).is_some_and(|c| c.xmin == large.xid && c.index == 0) {
            return Err(Error::corrupted(format!(
                "no large value at block {} of relation base/{}",
                large.head,
                self.file()
            ))
            .into());
        }
        let mut mtr = Mtr::new(&self.pool, xid);
        let i = mtr.add(guard);
        mtr.write(i, OFF_XMAX, &xid.0.to_le_bytes());
        mtr.commit();
        Ok(())
    }

    /// Frees what hangs on this overflow page, if nobody can want it. Returns the pages freed.
    pub(super) fn vacuum_large(&self, block: BlockNo, ctx: &dyn TxContext) -> Try<u32> {
        let mut freed = 0;
        loop {
            let guard = self.pool.exclusive(self.page_id(block))?;
            let Some(chunk) = Chunk::read(&*guard) else {
                return Ok(freed);
            };
            let never = ctx.status(chunk.xmin) == XidStatus::Aborted;
            let no_more = chunk.index == 0
                && !chunk.xmax.is_none()
                && matches!(ctx.status(chunk.xmax), XidStatus::Committed(csn) if csn <= ctx.horizon());
            // Every page of a value never stored goes by itself: its first page may not exist.
            let after = chunk.next.filter(|_| no_more && !never);
            match after {
                _ if !never && !no_more => return Ok(freed),
                None => {
                    self.free(guard);
                    return Ok(freed + 1);
                }
                Some(second) => {
                    let Some(there) = self.pool.try_exclusive(self.page_id(second))? else {
                        return Ok(freed);
                    };
                    self.cut_out(guard, there, chunk.xmin);
                    freed += 1;
                }
            }
        }
    }

    fn free<'p>(&'p self, guard: ExclusiveGuard<'p>) {
        let block = guard.page_id().block();
        let mut mtr = Mtr::new(&self.pool, Xid::NONE);
        vacuum::empty(&mut mtr, guard);
        mtr.commit();
        self.rel.report(block, MAX_TUPLE);
    }

    /// Frees a chain's second page, in one record with the first page's new `next`.
    fn cut_out<'p>(&'p self, head: ExclusiveGuard<'p>, second: ExclusiveGuard<'p>, xmin: Xid) {
        let block = second.page_id().block();
        let chunk = Chunk::read(&*second).filter(|c| c.xmin == xmin && c.index > 0);
        let next = chunk.and_then(|c| c.next).unwrap_or(END);
        let mut mtr = Mtr::new(&self.pool, Xid::NONE);
        let i = mtr.add(head);
        mtr.write(i, OFF_NEXT, &next.to_le_bytes());
        if chunk.is_some() {
            vacuum::empty(&mut mtr, second);
        }
        mtr.commit();
        if chunk.is_some() {
            self.rel.report(block, MAX_TUPLE);
        }
    }
}

/// Whether the page holds nothing and may become anything.
fn is_empty(page: &[u8; PAGE_SIZE]) -> bool {
    room::is_new(page) || page::is_heap(page) && page::slot_count(page) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_survive_a_row() {
        let large = LargeRef {
            head: 7,
            len: MAX_LARGE as u32,
            xid: Xid(0x0102_0304_0506_0708),
        };
        assert_eq!(LargeRef::from_bytes(large.to_bytes()), large);
    }
}
