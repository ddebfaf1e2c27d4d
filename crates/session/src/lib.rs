//! Sessions and the engine that they share: transaction blocks, prepared statements, portals,
//! utility commands, PL/pgSQL's interpreter, databases, and the server's own work in the
//! background.
//!
//! Promises:
//! * A session never blocks its thread: whatever must wait is a future, and others run meanwhile.
//! * A session that ends, by whatever way, leaves no lock, no transaction and no temporary
//!   relation.
//!
//! Imported by: `server`.

mod archive;
mod autoanalyze;
mod cleaner;
mod database;
mod engine;
mod locks;
mod maintenance;
pub mod notify;
mod objects;
mod prepared;
pub mod replication;
pub mod senders;
mod session;

pub use archive::{PROMOTE, PROMOTED, RECOVERY, STANDBY, adopt_streamed_log};
pub use engine::{Engine, EngineConfig, GivenSettings, Passwords, RoleLogin};
pub use session::{Login, Session, adopt, drop_leftovers};
pub use throng_txn::Encryption;
