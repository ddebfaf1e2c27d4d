//! Rows that do not fit in memory: temporary files, and what is built on them.
//!
//! ```text
//!  RowList   rows in the order they came, read by number      WITH, cursors, window partitions, recursion
//!  Sorter    rows in the order of their keys                  ORDER BY; groups, DISTINCT, set operations, joins past `work_mem`
//!      │
//!  codec     rows as bytes that tell their own types
//!      │
//!  SpillFile a file without a name, gone with whoever holds it
//! ```
//! Promise: what is built here takes about as much memory as its
//! [`RowMemory`](crate::run::context::RowMemory) grants, however many rows there are. Files are
//! written and read by pieces through the system's cache; nothing is synced.

mod codec;
mod file;
mod list;
mod merge;
mod runs;
mod sorter;

pub use file::{SpillFile, SpillSpace};
pub use list::{RowList, RowStore};
pub use sorter::Sorter;
