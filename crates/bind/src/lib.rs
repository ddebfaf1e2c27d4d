//! From the tree of a statement to what it means: bound expressions and queries, commands, and the
//! definitions that those carry out on a catalog; and back to text.
//!
//! Promises: binding changes nothing and waits for nothing; an error says the place that it is
//! about.
//!
//! Imported by: `analytics`, `session`, `exec`, `plan`.

pub mod binder;
pub mod command;
pub mod definition;
pub mod deparse;
pub mod fold;
#[cfg(test)]
mod function_cases;
pub mod implication;
pub mod inline;
pub mod leakproof;
pub mod route;
#[doc(hidden)]
pub mod testing;
pub mod tree;

pub use tree::{aggregate, expr, query, tablesample, window};
