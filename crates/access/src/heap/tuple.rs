//! One version of a row: a 32-byte header, then the row's bytes.
//!
//! ```text
//!  0          8          16         20         24               28              30          32
//!  | xmin u64 | xmax u64 | cmin u32 | cmax u32 | next block u32 | next slot u16 | flags u16 | row …
//! ```
//! * `xmin`, `cmin`: the transaction and command that made the version.
//! * `xmax`, `cmax`: the ones that deleted or replaced it; `xmax` 0 means nobody did. An aborted
//!   `xmax` counts as none.
//! * `next`: the version that replaced it; [`Tid::NONE`] when it was deleted, [`Tid::MOVED`] when
//!   the row went to another relation. It means something only while `xmax` counts, and the tuple
//!   it names is the next version only if its `xmin` equals this `xmax`.
//!
//! Little endian. A tuple starts at a multiple of 8, so that a header is four aligned words.
//! Versions on one page that share an index entry form a chain (HOT); the entry names the chain's
//! root slot:
//!
//! ```text
//!  index entry ──► slot 1 ──► v1 [HOT_UPDATED] ──next──► v2 [HEAP_ONLY|HOT_UPDATED] ──next──► v3 [HEAP_ONLY]
//!  after pruning:  slot 1 (redirect to v3's slot) ─────────────────────────────────────────► v3 [HEAP_ONLY]
//! ```
use throng_types::{Cid, Tid, Xid};

use super::page::PageBytes;

/// Bytes of a tuple before its row.
pub const TUPLE_HEADER: usize = 32;

pub const OFF_XMIN: usize = 0;
pub const OFF_XMAX: usize = 8;
pub const OFF_CMIN: usize = 16;
pub const OFF_CMAX: usize = 20;
pub const OFF_NEXT: usize = 24;
pub const OFF_FLAGS: usize = 30;
/// From `xmax` to the header's end less `cmin`: what an update of the old version rewrites is
/// `xmax` and this tail.
pub const OFF_TAIL: usize = OFF_CMAX;

const _: () = assert!(OFF_FLAGS + 2 == TUPLE_HEADER && OFF_TAIL + 12 == TUPLE_HEADER);

/// `xmin` committed at or before the horizon: visible to everyone, for ever.
pub const XMIN_ALL: u16 = 1 << 0;
pub const XMIN_ABORTED: u16 = 1 << 1;
/// `xmax` committed at or before the horizon: gone for everyone, for ever.
pub const XMAX_ALL: u16 = 1 << 2;
pub const XMAX_ABORTED: u16 = 1 << 3;
/// What can be found out again, and is therefore neither logged nor kept: the low byte.
pub const HINTS: u16 = 0x00FF;
/// `next` is on this page and hangs on this version's index entries.
pub const HOT_UPDATED: u16 = 1 << 8;
/// No index entry names this slot: it is reached through its chain.
pub const HEAP_ONLY: u16 = 1 << 9;
/// `xmax` left the key columns alone: [`crate::RowLockMode::KeyShare`] does not conflict with it.
pub const KEEPS_KEY: u16 = 1 << 10;
/// All flags there are; any other bit in a page is a fault.
pub const ALL_FLAGS: u16 =
    XMIN_ALL | XMIN_ABORTED | XMAX_ALL | XMAX_ABORTED | HOT_UPDATED | HEAP_ONLY | KEEPS_KEY;

/// A version's header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TupleHeader {
    pub xmin: Xid,
    pub xmax: Xid,
    pub cmin: Cid,
    pub cmax: Cid,
    pub next: Tid,
    pub flags: u16,
}

impl TupleHeader {
    /// A version just made.
    pub fn new(xmin: Xid, cmin: Cid, flags: u16) -> TupleHeader {
        TupleHeader {
            xmin,
            xmax: Xid::NONE,
            cmin,
            cmax: Cid(0),
            next: Tid::NONE,
            flags,
        }
    }
    #[inline]
    pub(crate) fn read(page: &impl PageBytes, at: usize) -> TupleHeader {
        let commands = page.u64(at + OFF_CMIN);
        let tail = page.u64(at + OFF_NEXT);
        TupleHeader {
            xmin: Xid(page.u64(at + OFF_XMIN)),
            xmax: Xid(page.u64(at + OFF_XMAX)),
            cmin: Cid(commands as u32),
            cmax: Cid((commands >> 32) as u32),
            next: Tid::new(tail as u32, (tail >> 32) as u16),
            flags: (tail >> 48) as u16,
        }
    }
    pub fn to_bytes(&self) -> [u8; TUPLE_HEADER] {
        let mut b = [0; TUPLE_HEADER];
        b[OFF_XMIN..OFF_XMAX].copy_from_slice(&self.xmin.0.to_le_bytes());
        b[OFF_XMAX..OFF_CMIN].copy_from_slice(&self.xmax.0.to_le_bytes());
        b[OFF_CMIN..OFF_CMAX].copy_from_slice(&self.cmin.0.to_le_bytes());
        b[OFF_CMAX..OFF_NEXT].copy_from_slice(&self.cmax.0.to_le_bytes());
        b[OFF_NEXT..OFF_NEXT + 4].copy_from_slice(&self.next.block.to_le_bytes());
        b[OFF_NEXT + 4..OFF_FLAGS].copy_from_slice(&self.next.slot.to_le_bytes());
        b[OFF_FLAGS..].copy_from_slice(&self.flags.to_le_bytes());
        b
    }
    #[inline]
    pub fn is_hot_updated(&self) -> bool {
        self.flags & HOT_UPDATED != 0
    }
    #[inline]
    pub fn is_heap_only(&self) -> bool {
        self.flags & HEAP_ONLY != 0
    }
    /// Whether `xmax` left the row's key as it was.
    #[inline]
    pub fn keeps_key(&self) -> bool {
        self.flags & KEEPS_KEY != 0
    }
    /// The version that replaced this one in the same relation, as far as the header itself says.
    #[inline]
    pub fn successor(&self) -> Option<Tid> {
        (!self.next.is_none() && self.next != Tid::MOVED).then_some(self.next)
    }
    /// The hint that everyone sees `xmin` as committed.
    #[inline]
    pub fn xmin_seen_by_all(&self) -> bool {
        self.flags & XMIN_ALL != 0
    }
    /// The hint that `xmin` was rolled back: nobody ever sees this version.
    #[inline]
    pub fn xmin_aborted(&self) -> bool {
        self.flags & XMIN_ABORTED != 0
    }
    /// The hint that everyone sees `xmax` as committed: nobody sees this version any more.
    #[inline]
    pub fn xmax_seen_by_all(&self) -> bool {
        self.flags & XMAX_ALL != 0
    }
    /// Nobody has deleted or replaced this version, as far as the header itself says.
    #[inline]
    pub fn xmax_is_void(&self) -> bool {
        self.xmax.is_none() || self.flags & XMAX_ABORTED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_types::page::PAGE_SIZE;

    #[test]
    fn headers_survive_the_page() {
        let header = TupleHeader {
            xmin: Xid(0x0102030405060708),
            xmax: Xid(9),
            cmin: Cid(10),
            cmax: Cid(11),
            next: Tid::new(0x0C0D0E0F, 0x1011),
            flags: HOT_UPDATED | XMIN_ALL,
        };
        let mut page = [0u8; PAGE_SIZE];
        page[64..96].copy_from_slice(&header.to_bytes());
        assert_eq!(TupleHeader::read(&page, 64), header);
        assert!(header.is_hot_updated() && !header.is_heap_only() && header.xmin_seen_by_all());
    }
}
