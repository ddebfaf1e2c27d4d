//! Data statements: what a text means, its plan, where plans are cached, and running it.

pub(super) mod custom_plan;
pub(super) mod declared;
pub(super) mod families;
pub(super) mod fast_path;
pub(super) mod plans;
pub(super) mod pooled_query;
pub(super) mod prepared;
pub(super) mod query;
pub(super) mod shape;
pub(super) mod understand;
