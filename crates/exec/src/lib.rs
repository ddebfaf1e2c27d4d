//! Running statements: row operators, writes, COPY, sessions, and the door to analytics.
//!
//! Promises:
//! * Nothing here blocks a thread: an operator that must wait says for what, and its session awaits
//!   that ([`run`]).
//! * A statement that fails leaves no row, lock or file behind.
//! * What a client or its data sends is bounded in time on a core, in memory and in stack.
//!
//! Imported by: `server`, `analytics`.

pub mod analytics;
mod autoanalyze;
mod cleaner;
pub mod client;
pub mod copy;
mod database;
mod engine;
pub mod large;
mod locks;
mod maintenance;
pub mod notify;
mod objects;
pub mod offload;
mod placement;
mod rows;
pub mod run;
mod session;
pub mod spill;
pub mod store;
pub mod table;
pub mod trigger;
mod versions;
pub mod write;

pub use engine::{Engine, EngineConfig, GivenSettings, Passwords, RoleLogin};
pub use placement::Placement;
pub use session::{Login, Session, adopt, drop_leftovers};
pub use throng_txn::Encryption;
