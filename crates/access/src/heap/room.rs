//! Room for a new tuple on one page, and putting it there.
//!
//! ```text
//!  1. the hole is large enough                     the tuple goes to its upper end
//!  2. a dead tuple is at least as large            the new one takes its place; nothing moves
//!  3. the dead tuples together are large enough    the others slide together, then as 1
//! ```
//! 3 comes before 2 where it makes room for a few tuples more: the next ones then find it done.
//! Pruning for 2 and 3 happens in the mini-transaction that adds the tuple. A place taken by a
//! smaller tuple leaves bytes that nothing names, as does pruning without sliding; they are found
//! again when the page is next planned, which [`PRUNABLE`] asks for.

use throng_buffer::{ExclusiveGuard, Mtr};
use throng_types::page::{
    HEADER, KIND_HEAP, KIND_NEW, OFF_FLAGS, OFF_KIND, OFF_LOWER, OFF_UPPER, PAGE_SIZE,
};

use super::Heap;
use super::page::{
    self, FREE_SLOTS, MAX_SLOTS, OFF_VAIN, PRUNABLE, PageBytes, SLOT, Slot, aligned,
};
use super::prune::Plan;
use super::tuple::{TUPLE_HEADER, TupleHeader};
use crate::TxContext;

/// Tuples slide together when that makes room for so many like the one to be added.
const WORTH_SLIDING: usize = 4;

/// Where a tuple goes on a latched page, and what must be done first.
pub(super) struct Room {
    pub slot: u16,
    /// The dead tuple's place that it takes; `None` for the hole.
    at: Option<u16>,
    plan: Option<Box<Plan>>,
}

impl Room {
    fn in_hole(slot: u16) -> Room {
        Room {
            slot,
            at: None,
            plan: None,
        }
    }
}

/// `lower` and `upper` as they lie in the header.
pub(super) fn bounds(lower: usize, upper: usize) -> [u8; 4] {
    let (lower, upper) = ((lower as u16).to_le_bytes(), (upper as u16).to_le_bytes());
    [lower[0], lower[1], upper[0], upper[1]]
}

pub(super) fn is_new(page: &[u8; PAGE_SIZE]) -> bool {
    page[OFF_KIND] == KIND_NEW
}

/// Room in the hole for a tuple of `size` bytes, with `reserve` bytes more left over. An empty page
/// takes any tuple.
pub(super) fn room_in_hole(page: &[u8; PAGE_SIZE], size: usize, reserve: usize) -> Option<Room> {
    if is_new(page) {
        return Some(Room::in_hole(1));
    }
    if !page::is_heap(page) {
        return None;
    }
    let empty = usize::from(page.u16(OFF_UPPER)) == PAGE_SIZE;
    let wanted = aligned(size) + if empty { 0 } else { reserve };
    let hole = page::hole(page);
    if hole < wanted {
        return None;
    }
    if let Some(slot) = page::unused_slot(page) {
        return Some(Room::in_hole(slot));
    }
    let count = page::slot_count(page);
    (count < MAX_SLOTS && hole >= wanted + SLOT).then(|| Room::in_hole(count + 1))
}

impl Heap {
    /// Room for a tuple on a latched page, by pruning it if that is what it takes. When even that
    /// does not do, what is dead is taken away all the same, and the page is not looked at for this
    /// until more may be dead: a statement that changes all rows of a page comes once for each.
    pub(super) fn make_room<'p>(
        &'p self,
        mut guard: ExclusiveGuard<'p>,
        ctx: &dyn TxContext,
        size: usize,
        reserve: usize,
    ) -> (ExclusiveGuard<'p>, Option<Room>) {
        let room = room_in_hole(&guard, size, reserve);
        if room.is_some() || !page::is_heap(&*guard) || guard[OFF_FLAGS] & PRUNABLE == 0 {
            return (guard, room);
        }
        // Asked for before the plan is made: what moves meanwhile counts for the next one.
        let moves = ctx.moves();
        if moves == Some(guard.u32(OFF_VAIN)) {
            return (guard, None);
        }
        let plan = Plan::new(&guard, guard.page_id().block(), ctx);
        let reserve = if plan.kept == 0 { 0 } else { reserve };
        if !plan.gains() || !plan.fits(size + reserve) {
            let (mut guard, _) = self.carry_out(guard, plan);
            if let Some(moves) = moves {
                guard.hint_bytes(OFF_VAIN, &moves.to_le_bytes());
            }
            return (guard, None);
        }
        plan.set_hints(&mut guard);
        let slot = plan.slot_for_new();
        let upper = usize::from(guard.u16(OFF_UPPER));
        let slot_has_room = page::slot_offset(slot) + SLOT <= upper;
        let in_place = slot_has_room && !plan.fits(WORTH_SLIDING * aligned(size));
        let at = if in_place {
            plan.place_of_dead(&guard, size)
        } else {
            None
        };
        (
            guard,
            Some(Room {
                slot,
                at,
                plan: Some(Box::new(plan)),
            }),
        )
    }

    /// Puts a tuple where there is room for it.
    pub(super) fn put(
        &self,
        mtr: &mut Mtr<'_>,
        i: usize,
        room: Room,
        header: &TupleHeader,
        row: &[u8],
    ) {
        if is_new(mtr.page(i)) {
            mtr.init(i, KIND_HEAP, 0);
        }
        if let Some(mut plan) = room.plan {
            if room.at.is_some() {
                plan.apply_in_place(mtr, i);
            } else {
                plan.apply(mtr, i);
            }
            self.rel
                .note_pruned(plan.removed.into(), plan.new_dead.into());
        }
        let len = TUPLE_HEADER + row.len();
        let page = mtr.page(i);
        let (count, flags) = (page::slot_count(page), page.u8(OFF_FLAGS));
        let upper = usize::from(page.u16(OFF_UPPER));
        let off = room.at.map_or_else(|| upper - aligned(len), usize::from);
        let upper = upper.min(off);
        mtr.write(i, off, &header.to_bytes());
        mtr.write(i, off + TUPLE_HEADER, row);
        let slot = Slot::Normal {
            off: off as u16,
            len: len as u16,
        };
        mtr.write(
            i,
            page::slot_offset(room.slot),
            &slot.encode().to_le_bytes(),
        );
        let lower = HEADER + usize::from(room.slot.max(count)) * SLOT;
        mtr.write(i, OFF_LOWER, &bounds(lower, upper));
        if room.slot > count && flags & FREE_SLOTS != 0 {
            // The search for an unused slot was in vain: the next one need not make it.
            mtr.write(i, OFF_FLAGS, &[flags & !FREE_SLOTS]);
        }
    }
}
