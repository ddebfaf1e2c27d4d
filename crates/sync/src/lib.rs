//! Locks, latches, parking, and the placement of threads.
//!
//! Three rungs, by how long the holder keeps others out: [`Spinlock`] for tens of instructions, [`Latch`]
//! for a page visit of microseconds, and (in `txn`) heavyweight locks for as long as a transaction lives.
//!
//! Everything here is written against [`atomic`], [`hint`], [`thread`] and [`cell`], which are the
//! standard library's or, under `--cfg loom`, loom's: the source that ships is the source that is
//! model-checked.
//!
//! Nothing in this crate knows what it protects, and nothing here records waits: the callers that know
//! the object do (`throng_observe::LatchExt`).

pub mod atomic;
mod bit;
pub mod cell;
mod futex;
mod index;
pub mod lab;
pub mod latch;
#[cfg(all(loom, test))]
mod loom_models;
mod nodes;
mod pad;
mod park;
pub mod pin;
pub mod spin;
pub mod topology;
mod waker;

pub use index::{MAX_THREADS, PerThread, thread_index, threads_high_water};
pub use latch::{Latch, Version};
pub use nodes::Nodes;
pub use pad::CachePadded;
pub use park::Parker;
pub use spin::{SpinGuard, SpinWait, Spinlock, set_contention_hook};
pub use topology::pin_current_thread;
pub use waker::WakerSlot;

/// `std::hint`, or loom's: a spin must tell the model checker to run somebody else.
pub mod hint {
    #[cfg(loom)]
    pub use loom::hint::spin_loop;
    #[cfg(not(loom))]
    pub use std::hint::spin_loop;
}

/// `std::thread`, or loom's, as far as shared code needs it.
pub mod thread {
    #[cfg(loom)]
    pub use loom::thread::{JoinHandle, spawn, yield_now};
    #[cfg(not(loom))]
    pub use std::thread::{JoinHandle, spawn, yield_now};
}
