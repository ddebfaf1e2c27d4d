//! Running statements: row operators, writes, COPY and analytics.

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

pub use engine::{Engine, EngineConfig, Passwords, RoleLogin};
pub use placement::Placement;
pub use session::{Login, Session, adopt, drop_leftovers};
pub use throng_txn::Encryption;
