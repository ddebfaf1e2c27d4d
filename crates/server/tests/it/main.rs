//! The server as its clients see it: each test starts one of its own, a child process on a
//! temporary directory.

mod bench;
mod charsets;
mod client;
mod crash;
mod databases;
mod descriptors;
mod domains;
mod extensions;
mod growth;
mod inverted;
mod isolation;
mod logins;
mod long_values;
mod pieces;
mod pipelines;
mod protocol;
mod queues;
mod redo;
mod replication;
mod restart;
mod script;
mod server;
mod sessions;
mod settings;
mod sql;
mod statistics;
mod two_phase;
mod versions;
mod waits;
