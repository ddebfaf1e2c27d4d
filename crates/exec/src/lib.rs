//! Running statements: row operators, writes, COPY and analytics.
pub mod client;
