//! Sockets, the protocol spoken over them, and who may come in.

pub mod auth;
pub mod connection;
mod disconnection;
mod door;
pub mod listener;
mod outbox;
pub mod output;
mod plain;
mod recode;
mod replication;
mod ring;
mod shutdown;
pub mod stream;
pub mod tls;
pub mod wire;
