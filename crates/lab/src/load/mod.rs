//! Load: what the bench and the laboratory's server cases put servers under.
//!
//! ```text
//! workload   tables, transactions, conditions        select update tpcb tpcc copy connect scan script
//!    │
//! drive      clients × threads × time, latency, fairness
//!    │
//! connection PostgreSQL's protocol or MySQL's
//!    │
//! reactor    one epoll loop a thread, one future a client
//! ```
//!
//! The load runs on the machine it measures, so it must be cheap: what it spends a transaction is
//! measured with each run ([`drive::Measured::own_cpu`]).

pub mod connection;
pub mod dialect;
pub mod drive;
mod mysql;
mod postgres;
pub mod random;
pub mod reactor;
pub mod rows;
pub mod sql;
mod stream;
pub mod trouble;
pub mod url;
pub mod workload;
