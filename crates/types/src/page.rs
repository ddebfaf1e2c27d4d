//! The page header's layout, shared by every structure that lives on pages.
//!
//! ```text
//!  0        8          12   13    14    16    18       20         24
//!  | lsn u64 | crc u32 | kind | flags | lower | upper | special | reserved | data …
//! ```
//! `lower..upper` is the hole: free space between slots growing up and data growing down.

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
pub const KIND_FREE_SPACE: u8 = 5;
pub const KIND_SEQUENCE: u8 = 6;
/// A chunk of a value too large for its row.
pub const KIND_OVERFLOW: u8 = 7;
/// A page of an index that is in no tree, waiting for use.
pub const KIND_FREE: u8 = 8;
