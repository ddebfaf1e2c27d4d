//! The slotted page: slots grow up from the header, tuples grow down from the page's end.
//!
//! ```text
//!  0       24              lower         upper                        8192
//!  | header | slot 1 | slot 2 | …  hole  … | tuple 2 |   tuple 1      |
//! ```
//! A slot is a `u32`: `off: 15 bits | state: 2 bits | len: 15 bits`, lowest first. Slots are
//! numbered from 1 and keep their number for as long as anything may name them:
//!
//! | state    | off, len            | meaning                                                            | becomes |
//! |----------|---------------------|--------------------------------------------------------------------|---------|
//! | unused   | 0, 0                | nothing names it                                                   | normal, by an insert |
//! | normal   | tuple's start, size | a version; size counts the tuple's header                          | redirect or dead (root) or unused (heap-only), by pruning |
//! | redirect | target slot, 0      | a chain's root whose first versions are gone                       | redirect further on, or dead |
//! | dead     | 0, 0                | a chain's root with no version left; indexes may still name it     | unused, when the indexes have forgotten it |
//!
//! Two bits of the header's flags are the heap's: [`PRUNABLE`] and [`FREE_SLOTS`]. Both may be set
//! in vain, never missing.

use throng_buffer::PageRef;
use throng_types::page::{
    HEADER, KIND_HEAP, KIND_NEW, OFF_FLAGS, OFF_KIND, OFF_LOWER, OFF_SPECIAL, OFF_UPPER, PAGE_SIZE,
};

use super::tuple::{TUPLE_HEADER, TupleHeader};

/// Bytes of a slot.
pub const SLOT: usize = 4;
/// Tuples start at multiples of this.
pub const ALIGN: usize = 8;
/// The largest tuple, header included: a page with one slot, rounded down to the alignment.
pub const MAX_TUPLE: usize = (PAGE_SIZE - HEADER - SLOT) / ALIGN * ALIGN;
/// Slots a page may have: what fits when every row is empty. Bounds every walk over a page.
pub const MAX_SLOTS: u16 = ((PAGE_SIZE - HEADER) / (SLOT + TUPLE_HEADER)) as u16;

/// Header flag: a tuple here was deleted or replaced; pruning may gain something.
pub const PRUNABLE: u8 = 1;
/// Where the header keeps, as a hint, the number of moves ([`moves`](crate::TxContext::moves)) at
/// which the page was last planned in vain: until that moves on, pruning gains nothing. Four bytes;
/// of another start's number nothing follows but a late pruning.
pub const OFF_VAIN: usize = OFF_SPECIAL + 2;
/// Header flag: there may be unused slots below `lower`.
pub const FREE_SLOTS: u8 = 2;

const _: () = assert!(
    MAX_TUPLE == 8160,
    "the size that the error for a row too big names"
);
const _: () = assert!(OFF_VAIN + 4 == HEADER, "the header's last field");
const _: () = assert!(PAGE_SIZE < 1 << 15, "offsets and lengths have 15 bits");

/// Reading numbers from a page, owned or optimistic. Out of bounds reads as zero.
pub trait PageBytes {
    fn u8(&self, off: usize) -> u8;
    fn u16(&self, off: usize) -> u16;
    fn u32(&self, off: usize) -> u32;
    fn u64(&self, off: usize) -> u64;
}

macro_rules! read_number {
    ($name:ident, $type:ty) => {
        #[inline]
        fn $name(&self, off: usize) -> $type {
            match self.get(off..off + size_of::<$type>()) {
                Some(b) => {
                    <$type>::from_le_bytes(b.try_into().expect("the range has the number's size"))
                }
                None => 0,
            }
        }
    };
}

impl PageBytes for [u8; PAGE_SIZE] {
    read_number!(u8, u8);
    read_number!(u16, u16);
    read_number!(u32, u32);
    read_number!(u64, u64);
}

impl PageBytes for PageRef<'_> {
    #[inline]
    fn u8(&self, off: usize) -> u8 {
        PageRef::u8(self, off)
    }
    #[inline]
    fn u16(&self, off: usize) -> u16 {
        PageRef::u16(self, off)
    }
    #[inline]
    fn u32(&self, off: usize) -> u32 {
        PageRef::u32(self, off)
    }
    #[inline]
    fn u64(&self, off: usize) -> u64 {
        PageRef::u64(self, off)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Unused,
    Normal { off: u16, len: u16 },
    Redirect(u16),
    Dead,
}

const STATE_SHIFT: u32 = 15;
const LEN_SHIFT: u32 = 17;
const LOW_15: u32 = 0x7FFF;

impl Slot {
    #[inline]
    pub fn decode(raw: u32) -> Slot {
        let off = (raw & LOW_15) as u16;
        match raw >> STATE_SHIFT & 3 {
            0 => Slot::Unused,
            1 => Slot::Normal {
                off,
                len: (raw >> LEN_SHIFT) as u16,
            },
            2 => Slot::Redirect(off),
            _ => Slot::Dead,
        }
    }
    pub fn encode(self) -> u32 {
        match self {
            Slot::Unused => 0,
            Slot::Normal { off, len } => {
                u32::from(off) | 1 << STATE_SHIFT | u32::from(len) << LEN_SHIFT
            }
            Slot::Redirect(target) => u32::from(target) | 2 << STATE_SHIFT,
            Slot::Dead => 3 << STATE_SHIFT,
        }
    }
}

/// Where slot `n` (from 1) is.
#[inline]
pub fn slot_offset(n: u16) -> usize {
    HEADER + (n as usize - 1) * SLOT
}

/// What a tuple of `len` bytes takes on the page.
#[inline]
pub fn aligned(len: usize) -> usize {
    len.next_multiple_of(ALIGN)
}

#[inline]
pub fn is_heap(page: &impl PageBytes) -> bool {
    page.u8(OFF_KIND) == KIND_HEAP
}

/// How many slots the page has, whatever their state. Garbage reads as at most [`MAX_SLOTS`].
#[inline]
pub fn slot_count(page: &impl PageBytes) -> u16 {
    let bytes = usize::from(page.u16(OFF_LOWER)).saturating_sub(HEADER);
    ((bytes / SLOT) as u16).min(MAX_SLOTS)
}

/// Slot `n`; one that the page does not have reads as unused.
#[inline]
pub fn slot(page: &impl PageBytes, n: u16) -> Slot {
    if n == 0 || n > slot_count(page) {
        Slot::Unused
    } else {
        Slot::decode(page.u32(slot_offset(n)))
    }
}

/// The tuple in slot `n`: where it is, its size, its header.
#[inline]
pub fn tuple(page: &impl PageBytes, n: u16) -> Option<(usize, usize, TupleHeader)> {
    match slot(page, n) {
        Slot::Normal { off, len } => {
            Some((off.into(), len.into(), TupleHeader::read(page, off.into())))
        }
        _ => None,
    }
}

/// Bytes between the slots and the tuples.
#[inline]
pub fn hole(page: &impl PageBytes) -> usize {
    usize::from(page.u16(OFF_UPPER)).saturating_sub(page.u16(OFF_LOWER).into())
}

/// The largest tuple that this page could take, in bytes.
pub fn room(page: &impl PageBytes) -> usize {
    match page.u8(OFF_KIND) {
        KIND_NEW => return MAX_TUPLE,
        KIND_HEAP => {}
        _ => return 0,
    }
    if slot_count(page) >= MAX_SLOTS && unused_slot(page).is_none() {
        return 0;
    }
    hole(page).saturating_sub(SLOT)
}

/// An unused slot below `lower`, if there is one.
pub fn unused_slot(page: &impl PageBytes) -> Option<u16> {
    if page.u8(OFF_FLAGS) & FREE_SLOTS == 0 {
        return None;
    }
    (1..=slot_count(page)).find(|&n| slot(page, n) == Slot::Unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_survive_their_encoding() {
        for s in [
            Slot::Unused,
            Slot::Dead,
            Slot::Redirect(226),
            Slot::Normal {
                off: 8184,
                len: 8160,
            },
            Slot::Normal { off: 32, len: 32 },
        ] {
            assert_eq!(Slot::decode(s.encode()), s);
        }
    }

    #[test]
    fn garbage_reads_within_bounds() {
        let page = [0xFF; PAGE_SIZE];
        assert_eq!(slot_count(&page), MAX_SLOTS);
        assert_eq!(slot(&page, 0), Slot::Unused);
        assert_eq!(slot(&page, u16::MAX), Slot::Unused);
        assert_eq!(hole(&page), 0);
        assert_eq!(page.u64(PAGE_SIZE - 4), 0);
    }
}
