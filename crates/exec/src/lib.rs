//! Running statements: row operators, writes, COPY, and the door to analytics.
//!
//! Promises:
//! * Nothing here blocks a thread: an operator that must wait says for what, and what drives it
//!   ([`drive`]) awaits that.
//! * A statement that fails leaves no row, lock or file behind.
//! * What a client or its data sends is bounded in time on a core, in memory and in stack.
//!
//! Imported by: `server`, `analytics`, `session`.

pub mod analytics;
pub mod client;
pub mod copy;
pub mod drive;
pub mod large;
pub mod offload;
pub mod outgoing;
pub mod placement;
pub mod rows;
pub mod run;
pub mod sequence;
mod slices;
pub mod spill;
pub mod store;
pub mod table;
pub mod trigger;
pub mod turns;
pub mod versions;
pub mod write;
