//! The query tree: what a statement's expressions and queries mean, once they are bound.
//!
//! Queries hold expressions, and expressions hold queries (subqueries), windows and samples, so the
//! types of both stand here together. Nothing here knows how a statement is bound.

pub mod aggregate;
pub mod expr;
pub mod query;
pub mod tablesample;
pub mod window;
