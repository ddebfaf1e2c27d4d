//! The throng binary: network, authentication, configuration, start and stop.
//!
//! Promises: one event loop a core, each connection on one of them for life; no message of a client
//! panics; before login a client costs a bounded number of sockets, bytes and seconds.
//!
//! Imported by: nobody; it is the binary.

pub mod check;
pub mod config;
pub mod log;
pub mod manual;
pub mod net;
pub mod restart;
pub mod serve;
pub mod standby;
