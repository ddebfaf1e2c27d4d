//! What waits, for how long, on what, held by whom; and stop points for tests.
//!
//! Recording is a clock read and a few plain additions to the calling thread's own cache lines: no
//! lock, no atomic read-modify-write, nothing another core writes. Reading adds the threads' slots
//! up, and sees each number at some recent value, not all of them at one instant.
//!
//! ```text
//! waiting / blocking ─► the thread's slot ─┬─ per event: count, total, longest, histogram      ┐
//!    │                                     ├─ per (event, object): the same, and the holder   ├─► waits()
//!    │                                     └─ structures, sampled                             ┘
//!    └────────────────► what it waits for now ─────────────────────────────────────────────────► present()
//! ```
//!
//! Statics here are the standard library's atomics even under loom: counting is not part of any
//! model.
//!
//! Imported by: `server`, `session`, `exec`, `lab`, `catalog`, `values`, `txn`, `access`, `buffer`,
//! `wal`, `disk`.

mod clock;
mod count;
mod counter;
mod event;
pub mod heap;
mod histogram;
mod key;
mod latch;
mod object;
mod present;
mod record;
mod sampled;
mod session;
mod slots;
pub mod stall;
pub mod stop;
mod structure;
mod table;
mod wait;

pub use clock::{now_nanos, thread_cpu_nanos};
pub use count::{count, counter, counters};
pub use counter::Counter;
pub use event::{WaitClass, WaitEvent};
pub use histogram::{Histogram, HistogramSnapshot, add};
pub use latch::{HolderCell, LatchExt};
pub use object::{Holder, Object, ObjectKind};
pub use present::PresentWait;
pub use record::record_wait;
pub use sampled::{Sampled, StructureTime, sampled, structures};
pub use session::{Accounted, SessionWaits, accounted, serves_one_session};
pub use slots::{
    Background, background, holder_named, is_tracking, present_of_thread, reset, running_nanos,
    this_is_core, thread_name, track,
};
pub use structure::Structure;
pub use wait::{
    Scope, WaitRow, WaitTotals, Waiting, background_now, blocking, snapshot, waited, waiting, waits,
};
