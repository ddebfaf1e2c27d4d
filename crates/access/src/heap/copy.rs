//! Copying a heap into another with its history: whoever sees a version in the one sees its copy in
//! the other.
//!
//! Copies form no chains. Each is a root of its own, and where a version was replaced its copy says
//! that the row was deleted: who meets it may not change it, and readers tell no difference. The
//! caller keeps everybody away from both heaps.

use throng_buffer::{Mtr, Ring, Try};
use throng_types::page::OFF_FLAGS;
use throng_types::{BlockNo, Cid, Tid, Xid};

use super::page::{self, PRUNABLE, PageBytes};
use super::tuple::{TUPLE_HEADER, TupleHeader};
use super::write::tuple_size;
use super::{Heap, prune};
use crate::{TxContext, XidStatus};

/// A version that somebody sees, or may come to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibleVersion {
    pub tid: Tid,
    /// What its copy is headed by.
    pub header: TupleHeader,
    /// The row's bytes.
    pub row: Vec<u8>,
}

impl VisibleVersion {
    /// It has been deleted or replaced, but not for everybody yet.
    pub fn is_ending(&self) -> bool {
        !self.header.xmax.is_none()
    }
}

impl Heap {
    /// Appends the versions of a block that are not dead to all. `ring` is the scan's own.
    pub fn kept_versions(
        &self,
        block: BlockNo,
        ctx: &dyn TxContext,
        ring: &mut Ring,
        out: &mut Vec<VisibleVersion>,
    ) -> Try<()> {
        let page = self.pool.shared_with(self.page_id(block), ring)?;
        if !page::is_heap(&*page) {
            return Ok(());
        }
        for slot in 1..=page::slot_count(&*page) {
            let Some((at, len, header)) = page::tuple(&*page, slot) else {
                continue;
            };
            if !prune::is_dead_to_all(&header, ctx) {
                let row = page.get(at + TUPLE_HEADER..at + len).unwrap_or_default();
                out.push(VisibleVersion {
                    tid: Tid::new(block, slot),
                    header: heading(&header, ctx),
                    row: row.to_vec(),
                });
            }
        }
        Ok(())
    }

    /// One of the versions that [`Heap::kept_versions`] found.
    pub fn kept_version(&self, tid: Tid, ctx: &dyn TxContext) -> Try<Option<VisibleVersion>> {
        let mut row = Vec::new();
        let found = self.read_version(tid, &mut row)?;
        Ok(found.map(|header| VisibleVersion {
            tid,
            header: heading(&header, ctx),
            row,
        }))
    }

    /// Adds a version as it was elsewhere: `header` is that of [`VisibleVersion`].
    ///
    /// # Errors
    /// As [`Heap::insert`].
    pub fn insert_kept(&self, ctx: &dyn TxContext, header: &TupleHeader, row: &[u8]) -> Try<Tid> {
        let size = tuple_size(row.len())?;
        let (guard, room) = self.page_with_room(ctx, size, |page| self.pool.exclusive(page))?;
        let tid = Tid::new(guard.page_id().block(), room.slot);
        let mut mtr = Mtr::new(&self.pool, ctx.xid());
        let i = mtr.add(guard);
        self.put(&mut mtr, i, room, header, row);
        if !header.xmax.is_none() {
            let flags = mtr.page(i).u8(OFF_FLAGS);
            mtr.write(i, OFF_FLAGS, &[flags | PRUNABLE]);
        }
        mtr.commit();
        Ok(tid)
    }
}

/// A copy's header: who made it and who ended it, without hints and without a place in a chain.
fn heading(header: &TupleHeader, ctx: &dyn TxContext) -> TupleHeader {
    let undone = header.xmax_is_void() || ctx.status(header.xmax) == XidStatus::Aborted;
    let (xmax, cmax) = match undone {
        true => (Xid::NONE, Cid(0)),
        false => (header.xmax, header.cmax),
    };
    TupleHeader {
        xmax,
        cmax,
        ..TupleHeader::new(header.xmin, header.cmin, 0)
    }
}
