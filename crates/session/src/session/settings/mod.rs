//! Settings, roles, time limits and the log, as a session has them.

pub(super) mod config;
pub(super) mod hot;
pub(super) mod limits;
pub(super) mod log;
pub(super) mod roles;
