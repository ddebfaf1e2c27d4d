//! The laboratory: each structure that once collapsed, the one that replaced it and one that goes
//! further, measured side by side on the machine at hand.
//!
//! ```text
//!  case::Case ──prepare(variant)──► case::Bench ──run(turn)──► case::Sample
//!      │                               ▲                           │
//!      │ about, variants, effects      │ turns, in rotating order  │ operations, time inside, latencies
//!      ▼                               │                           ▼
//!  cli ───────────────────────────► runner ──► findings: medians, spreads, fit, verdict ──► text, JSON, HTML
//! ```
//!
//! What it promises:
//! - Variants of a case take turns within one run, in an order that rotates from round to round, so
//!   that what the machine does meanwhile (its clock, its neighbours) falls on all of them alike.
//! - A verdict follows a rule that is printed with it, from the rounds' own spread; it is never a
//!   matter of taste.
//! - Samples of stacks are taken in a round of their own, which the medians leave out.
//! - Nothing in the house imports this crate but the `throng` binary.
//!
//! Imported by: `server`.

pub mod bench;
pub mod case;
pub mod cli;
pub mod crew;
mod error;
pub mod findings;
mod html;
mod interrupt;
pub mod load;
mod numbers;
mod output;
mod print;
pub mod profile;
mod progress;
pub mod report;
mod runner;
pub mod stats;
mod turn;
pub mod usl;

pub use error::{Error, Result};
pub use progress::Progress;
