//! What waits, for how long, on what; and stop points for tests.
//!
//! Recording is a clock read and a few plain additions to the calling thread's own cache lines: no lock, no
//! atomic read-modify-write, nothing another core writes. Reading adds the threads' slots up, and sees
//! each number at some recent value, not all of them at one instant.
//!
//! Statics here are the standard library's atomics even under loom: counting is not part of any model.

mod clock;
mod counter;
mod event;
mod histogram;
mod latch;
mod slots;
pub mod stop;
mod wait;

pub use clock::now_nanos;
pub use counter::{Counter, count, counter, counters};
pub use event::{WaitClass, WaitEvent};
pub use histogram::{Histogram, HistogramSnapshot};
pub use latch::LatchExt;
pub use wait::{WaitTotals, Waiting, record_wait, snapshot, waiting};
