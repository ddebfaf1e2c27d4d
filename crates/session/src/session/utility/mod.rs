//! Commands that are neither queries nor definitions.

pub(super) mod analyze;
pub(super) mod command;
pub(super) mod copy;
pub(super) mod explain;
pub(super) mod vacuum;
