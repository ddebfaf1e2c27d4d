//! Heaps and B-trees over pages, their redo and their check.
//!
//! Every call here is restartable: when a page is not in memory it returns
//! [`throng_buffer::Interrupt::Wait`] with no latch held and nothing changed, and is called again
//! after the wait. What a transaction is, and what it may see, comes in through [`TxContext`] and
//! [`Visibility`]; the room above implements them, so nothing here knows how a snapshot is made.
//!
//! Imported by: `server`, `analytics`, `session`, `exec`, `lab`, `txn`.

mod admit;
pub mod btree;
pub mod check;
pub mod heap;
mod offline;
pub mod redo;
mod view;

pub use admit::admit_write;
pub use heap::free::FreeSpaceForm;
pub use heap::relation::{RelCounts, RelState, RelationStore};
pub use heap::tuple::TupleHeader;
pub use heap::{Change, Fetched, Heap, Liveness, TupleBatch};
pub use view::{Gaps, RowLockMode, TxContext, Visibility, XidStatus};
