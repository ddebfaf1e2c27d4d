//! Sockets and the protocol spoken over them.
pub mod connection;
pub mod listener;
mod local;
pub mod output;
pub mod stream;
pub mod tls;
pub mod wire;
