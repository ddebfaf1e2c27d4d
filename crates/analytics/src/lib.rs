//! Big queries: DataFusion schedules, spills and joins; what a value means stays ours.
//!
//! A plan made by our own binder and planner is laid out as a DataFusion plan of a few of its
//! operators (sort, joins, merge, limit, union) and of nodes of our own ([`execution_node`]): the
//! scan under a snapshot, expressions, grouping. Promises:
//!
//! * The rows are those the row operators would give: every comparison is by our ordered key bytes
//!   or by values whose Arrow order is the same, every expression and aggregate is the definition
//!   in `throng_values::func`.
//! * A job keeps within its memory: sorts, groups and joins spill to files in the data directory.
//! * Jobs run on threads of their own, a few at a time in order of arrival, with a lower priority
//!   than the event loops.
//! * Dropping a job's stream ends it.
//!
//! Imported by: `server`.

mod cache;
mod column;
mod datafusion_plan;
mod execution_node;
mod group;
mod join;
mod kernel;
mod keys;
mod memory;
mod pool;
mod runtime_filter;
mod scan;
mod small_groups;
mod small_nodes;
mod support;
mod table;
mod vector;

pub use pool::{AnalyticsPool, LEAST_MEMORY, PoolConfig};
