//! What functions and virtual relations ask of the session, and its answers.

pub(super) mod address;
pub(super) mod currtid;
pub(super) mod describe;
pub(super) mod eval_host;
pub(super) mod functions;
pub(super) mod identity;
pub(super) mod index_property;
mod log;
mod operators;
pub(super) mod privilege;
pub(crate) mod sequences;
pub(super) mod statistics;
pub(super) mod system;
pub(super) mod waiting;
