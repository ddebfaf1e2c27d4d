//! The catalog, binding and planning.
//!
//! A statement's way: `throng_syntax` parses it → [`bind`] → [`plan`]; what comes out runs
//! elsewhere.
//!
//! Imported by: `server`, `analytics`, `exec`.

pub mod bind;
pub mod catalog;
pub mod command;
pub mod deparse;
pub mod expr;
pub mod plan;
pub mod query;
pub mod route;
pub mod sample;
pub mod tablesample;
pub mod window;

#[cfg(test)]
mod function_cases;
#[cfg(test)]
pub(crate) mod testing;
