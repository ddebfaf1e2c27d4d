//! The page header's layout, shared by every structure that lives on pages.
//!
//! ```text
//!  0        8          12   13    14    16    18       20         24
//!  | lsn u64 | crc u32 | kind | flags | lower | upper | special | reserved | data …
//! ```
//! Which bytes of a page hold nothing is its kind's to say: [`hole`].

use std::ops::Range;

/// Bytes in a page, on disk and in memory.
pub const PAGE_SIZE: usize = 8192;

pub const OFF_LSN: usize = 0;
pub const OFF_CHECKSUM: usize = 8;
pub const OFF_KIND: usize = 12;
pub const OFF_FLAGS: usize = 13;
pub const OFF_LOWER: usize = 14;
pub const OFF_UPPER: usize = 16;
pub const OFF_SPECIAL: usize = 18;
/// Where the header ends.
pub const HEADER: usize = 24;

pub const KIND_NEW: u8 = 0;
pub const KIND_HEAP: u8 = 1;
pub const KIND_BTREE_LEAF: u8 = 2;
pub const KIND_BTREE_INNER: u8 = 3;
pub const KIND_BTREE_META: u8 = 4;
/// A counter: its content begins at [`HEADER`] and ends at [`SEQUENCE_END`]; `lower` and `upper`
/// say nothing of it.
pub const KIND_SEQUENCE: u8 = 6;
/// A chunk of a value too large for its row.
pub const KIND_OVERFLOW: u8 = 7;
/// A page of an index that is in no tree, waiting for use.
pub const KIND_FREE: u8 = 8;

/// Where a sequence's content ends: its value in eight bytes, and whether it was given out in one.
pub const SEQUENCE_END: usize = HEADER + 9;

/// The bytes of a page that hold nothing: what the log leaves out of a page's image, and redo makes
/// zeros.
///
/// Only a kind named here has such bytes. Nothing of a page of any other kind, or whose bounds make
/// no sense, is left out.
pub fn hole(page: &[u8; PAGE_SIZE]) -> Range<usize> {
    match page[OFF_KIND] {
        // Slots or fields up to `lower`, data from `upper` on.
        KIND_HEAP | KIND_BTREE_LEAF | KIND_BTREE_INNER | KIND_BTREE_META | KIND_OVERFLOW
        | KIND_FREE => {
            let u16_at = |off: usize| usize::from(u16::from_le_bytes([page[off], page[off + 1]]));
            let (lower, upper) = (u16_at(OFF_LOWER), u16_at(OFF_UPPER));
            match lower >= HEADER && lower < upper && upper <= PAGE_SIZE {
                true => lower..upper,
                false => 0..0,
            }
        }
        KIND_SEQUENCE => SEQUENCE_END..PAGE_SIZE,
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of ones of the kind, with a gap between `lower` and `upper`.
    fn page(kind: u8) -> [u8; PAGE_SIZE] {
        let mut page = [1; PAGE_SIZE];
        page[OFF_KIND] = kind;
        page[OFF_LOWER..OFF_LOWER + 2].copy_from_slice(&(HEADER as u16).to_le_bytes());
        page[OFF_UPPER..OFF_UPPER + 2].copy_from_slice(&(PAGE_SIZE as u16).to_le_bytes());
        page
    }

    #[test]
    fn only_a_kind_that_says_so_has_a_hole() {
        for kind in 0..=u8::MAX {
            let expected = match kind {
                1..=4 | 7 | 8 => HEADER..PAGE_SIZE,
                KIND_SEQUENCE => SEQUENCE_END..PAGE_SIZE,
                _ => 0..0,
            };
            assert_eq!(hole(&page(kind)), expected, "kind {kind}");
        }
    }

    #[test]
    fn bounds_that_make_no_sense_leave_nothing_out() {
        for (lower, upper) in [(0, 100), (23, 100), (100, 100), (200, 100), (100, 8193)] {
            let mut page = page(KIND_HEAP);
            page[OFF_LOWER..OFF_LOWER + 2].copy_from_slice(&u16::to_le_bytes(lower));
            page[OFF_UPPER..OFF_UPPER + 2].copy_from_slice(&u16::to_le_bytes(upper));
            assert!(hole(&page).is_empty(), "{lower}..{upper}");
        }
    }
}
