//! The buffer pool: pages in memory, found without a lock, read without a write, changed by
//! mini-transactions.
//!
//! What it promises:
//! * A page is in one frame at most, and what its guard shows is what the last mini-transaction
//!   left.
//! * Nobody is made to wait while holding a latch: a page that is not here is an
//!   [`Interrupt::Wait`].
//! * No page reaches its file before the log that explains it is durable; none is forgotten because
//!   a write failed.
//! * An optimistic read ([`PoolCore::read`]) writes nothing that another core reads, but for one
//!   bit a clock round.
//!
//! ```text
//!            read / shared / exclusive                      new_page / extend
//!                      │ not there                                 │ takes free frames first
//!                      ▼                                           ▼
//!   Wait ◄──── read registry ──► I/O threads ──publish──►  frames + page table
//!                                    ▲ free frames              │ clock
//!                                  stock ◄──── claim ◄──────────┤
//!                                    ▲                          │ dirty: log flushed, then written
//!                                    └────── page writer ◄──────┘
//! ```
//!
//! `unsafe` is in `memory` (the reservation), `seal` (its protection) and where a guard, by the
//! latch it holds, turns words into bytes.
//!
//! Imported by: `server`, `analytics`, `session`, `exec`, `lab`, `txn`, `access`.

mod checksum;
mod frames;
mod growth;
mod memory;
#[cfg(all(test, loom))]
mod model;
mod mtr;
mod pool;
mod redo;
mod request;
mod seal;
mod wait;
mod words;

pub use checksum::{page_checksum, page_is_intact};
pub use growth::{ExtendLock, Extension, Victims};
pub use mtr::{MAX_MTR_PAGES, Mtr};
pub use pool::{
    AccessStrategy, ErrorReport, ExclusiveGuard, Extended, FlushAfter, OptimisticPage, Pool,
    PoolConfig, PoolCore, PoolStats, Ring, SharedGuard,
};
pub use seal::Seal;
pub use wait::{Interrupt, Patience, Try, Wait, retry, retry_blocking};
pub use words::PageRef;
