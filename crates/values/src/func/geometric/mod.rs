//! Functions and operators of the geometric types.
//!
//! What they compute is told in [`crate::geometry`]; here each is one line of [`compute`], which
//! has the names that PostgreSQL gives them.

pub(super) mod compute;
pub(super) mod table;
