//! Locks, latches, parking, and the placement of threads.
//!
//! Three rungs, by how long the holder keeps others out: [`Spinlock`] for tens of instructions,
//! [`Latch`] for a page visit of microseconds, and (in `txn`) heavyweight locks for as long as a
//! transaction lives.
//!
//! Everything here, and every room above that waits, is written against [`atomic`], [`hint`],
//! [`thread`], [`cell`], [`lock`] and [`thread_local!`], which are the standard library's
//! (parking_lot's) or, under `--cfg loom` or `--cfg shuttle`, the model checkers': the source that
//! ships is the source that is checked.
//!
//! Nothing in this crate knows what it protects, and nothing here records waits: the callers that
//! know the object do (`throng_observe::LatchExt`).
//!
//! Imported by: `server`, `analytics`, `session`, `exec`, `lab`, `txn`, `access`, `buffer`, `wal`,
//! `disk`, `observe`.

pub mod atomic;
mod balancing;
mod bit;
pub mod cell;
mod futex;
mod index;
pub mod lab;
pub mod latch;
pub mod lock;
#[cfg(all(loom, test))]
mod loom_models;
mod nodes;
mod pad;
mod park;
pub mod pin;
mod pooled;
mod prefetch;
#[cfg(shuttle)]
pub mod schedules;
mod scheduling;
pub mod spin;
pub mod topology;
mod vector_pool;
mod waker;

pub use balancing::{Load, deal};
pub use index::{MAX_THREADS, PerThread, thread_index, threads_high_water};
pub use latch::{Latch, Version};
pub use nodes::Nodes;
pub use pad::CachePadded;
pub use park::{Parker, block_on};
pub use pooled::Pooled;
pub use prefetch::{fetch_ahead, fetch_span_ahead};
pub use scheduling::{Computing, come_after, yield_core};
pub use spin::{SpinGuard, SpinWait, Spinlock, set_contention_hook};
pub use topology::pin_current_thread;
pub use vector_pool::VectorPool;
pub use waker::WakerSlot;

/// The model checker that this build is for.
#[cfg(loom)]
use loom as model;
#[cfg(shuttle)]
use shuttle as model;

/// A model has no time: there waits are not spun out, and a sleep is over when others have had a
/// turn.
pub const IS_MODEL: bool = cfg!(any(loom, shuttle));

/// `std::hint`, or the model's: a spin must tell the model checker to run somebody else.
pub mod hint {
    #[cfg(any(loom, shuttle))]
    pub use crate::model::hint::spin_loop;
    #[cfg(not(any(loom, shuttle)))]
    pub use std::hint::spin_loop;
}

/// `std::thread`, or the model's, as far as shared code needs it.
pub mod thread {
    #[cfg(any(loom, shuttle))]
    pub use crate::model::thread::{Builder, JoinHandle, Thread, current, park, spawn, yield_now};
    #[cfg(not(any(loom, shuttle)))]
    pub use std::thread::{Builder, JoinHandle, Thread, current, park, sleep, spawn, yield_now};

    /// Time does not pass in a model: the others have a turn.
    #[cfg(any(loom, shuttle))]
    pub fn sleep(_: std::time::Duration) {
        yield_now();
    }
}

/// `std::thread_local!`, or the model's, whose threads are coroutines of one.
#[cfg(any(loom, shuttle))]
pub use model::thread_local;
#[cfg(not(any(loom, shuttle)))]
pub use std::thread_local;
