//! Types and functions, the catalog, binding and planning.
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
pub mod func;
pub mod io;
pub mod plan;
pub mod query;
pub mod route;
pub mod sample;
pub mod settings;
pub mod tablesample;
pub mod window;

#[cfg(test)]
pub(crate) mod testing;
