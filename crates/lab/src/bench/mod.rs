//! `throng bench`: the same workload on several servers, alternately in one run.
//!
//! ```text
//!   load each target once
//!   round 1   for each number of clients:  A B C        each turn: waits begin anew ─► drive ─► waits are read
//!   round 2   for each number of clients:  B C A
//!   …
//!   check each target (balances, consistency conditions)
//!   findings: medians, knee, scalability law, what limited each ─► text, JSON, HTML
//! ```
//!
//! What it promises: targets are asked the same things (the same seeds) by the same client at
//! nearly the same time; nothing that failed is left out of the result; and what limited a target
//! is said from what was measured, or it is said that it is not known.

pub mod answerer;
pub mod cli;
mod findings;
mod limits;
mod print;
mod report;
mod runner;
mod server;
mod waits;

pub use findings::Findings;
