//! The throng binary: network, sessions, authentication, configuration.

pub mod auth;
pub mod check;
pub mod config;
pub mod log;
pub mod net;
pub mod restart;
pub mod serve;
