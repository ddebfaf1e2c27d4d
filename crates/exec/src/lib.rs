//! Running statements: row operators, writes, COPY and analytics.

pub mod client;
pub mod run;
pub mod store;
pub mod table;
