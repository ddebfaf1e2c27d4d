//! SELECT: its FROM, WITH, grouping, and the names in sight of each clause.

pub(super) mod clauses;
pub(super) mod cursor;
pub(super) mod from;
pub(super) mod grouping;
pub(super) mod row_locks;
pub(super) mod row_query;
pub(super) mod sample;
pub(super) mod scope;
pub(super) mod search;
pub(super) mod select;
pub(super) mod with;
