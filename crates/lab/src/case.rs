//! What a case of the laboratory is, and which there are.
//!
//! A [`Case`] describes an experiment and prepares one [`Bench`] for each variant; the runner then
//! gives the benches turns, one at a time. A case measures and nothing else: rounds, order,
//! medians, fits and verdicts are the runner's.
//!
//! To add one: a file in `case/`, a type that implements [`Case`], a line in [`ALL`].
//! `case/atomics.rs` is the shortest example.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

pub use crate::turn::{Number, Sample, Turn};
use crate::{Progress, Result};

pub mod atomics;
pub mod dolphin;
pub mod extend;
pub mod greenplum;
pub mod kingbase;
pub mod latch;
pub mod mmap;
mod pair;
pub mod pin;
pub mod placement;
pub mod polar;
pub mod power8;
pub mod served;
pub mod snapshot;
pub mod spinlock;
#[cfg(test)]
mod testing;
pub mod wal;

/// Every case, in the order of `throng lab list`: the small ones first, the whole server last.
pub static ALL: &[&dyn Case] = &[
    &atomics::Atomics,
    &spinlock::Spin,
    &pin::Pins,
    &latch::Latches,
    &snapshot::Snapshot,
    &wal::Log,
    &extend::Extend,
    &mmap::Mmap,
    &placement::Placement,
    &greenplum::Greenplum,
    &kingbase::Kingbase,
    &power8::Power8,
    &dolphin::Dolphin,
    &polar::Polar,
];

/// The case of that name.
pub fn named(name: &str) -> Option<&'static dyn Case> {
    ALL.iter().copied().find(|case| case.name() == name)
}

/// 1, 2, 4, … up to `most`, and `most` itself.
pub fn doubling(most: usize) -> Vec<usize> {
    let powers = (0..usize::BITS).map(|shift| 1 << shift);
    let mut points: Vec<usize> = powers.take_while(|&n| n < most).collect();
    points.push(most);
    points
}

/// An experiment: one structure in several variants under one load.
pub trait Case: Sync {
    /// What the user types: lower case, one word.
    fn name(&self) -> &'static str;

    fn about(&self) -> About;

    /// At least one; those of another architecture are left out, not listed and refused.
    fn variants(&self) -> Vec<Variant>;

    /// What grows along the horizontal axis.
    fn axis(&self) -> Axis {
        Axis::Clients
    }

    /// Points on that axis when the user names none, ascending. `cores` is how many this process
    /// may use.
    fn default_clients(&self, cores: usize) -> Vec<usize>;

    /// What was published, to be held against what is measured here; the first is the main one.
    fn effects(&self) -> Vec<Effect> {
        Vec::new()
    }

    /// Parts of function names (`throng_sync::spin`) that are the structure under test: samples
    /// with one of them anywhere on their stack count as inside it.
    fn functions(&self) -> &'static [&'static str] {
        &[]
    }

    /// How the turns are cut when the user says nothing.
    fn pace(&self) -> Pace {
        Pace::default()
    }

    /// Builds what the variant needs and warms it up. Called once a variant, before the first turn
    /// of any; the benches then live side by side until all turns are done, so an idle one must be
    /// quiet.
    fn prepare(&self, variant: &Variant, setup: &Setup) -> Result<Box<dyn Bench>>;
}

/// One variant, ready to run. Dropping it must leave nothing behind (processes, files).
pub trait Bench {
    /// Runs the load once. The measured time is [`Sample::elapsed`], near `turn.duration`; warming
    /// up within is the bench's affair.
    fn run(&mut self, turn: &Turn) -> Result<Sample>;

    /// The processes whose stacks are worth sampling; this one if the load runs in it.
    fn processes(&self) -> Vec<u32> {
        vec![std::process::id()]
    }
}

/// What the reader is told before the first number.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct About {
    /// One line for the list.
    pub title: &'static str,
    /// Two sentences: what is tried here, and why it once mattered, with the published figures.
    pub text: &'static str,
    /// Whose figures they are: system, hardware, load.
    pub source: &'static str,
    /// What one operation is, in the plural: "snapshots", "transactions".
    pub operations: &'static str,
    /// What [`Sample::inside`] is a share of, to follow "share of": "the clients' time in the
    /// lock".
    pub inside: &'static str,
}

/// One form of the structure under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What the user types.
    pub name: &'static str,
    pub role: Role,
    /// One line.
    pub about: &'static str,
}

/// A variant's place in the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What collapsed.
    Was,
    /// What replaced it.
    Became,
    /// What goes beyond that.
    Further,
    /// A yardstick, or what was tried and dropped.
    Other,
}

/// What grows along the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Threads or connections that load the structure: the scalability law applies.
    Clients,
    /// Something else, in the plural ("sessions"): throughput is plotted against it, and no law is
    /// fitted.
    Other(&'static str),
}

/// What was published, as a ratio that can be measured here.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The names of two variants: the published change led from `was` to `became`.
    pub was: &'static str,
    pub became: &'static str,
    pub metric: Metric,
    /// How many times better `became` was, as published; below 1 where it was worse. None where no
    /// figure is given.
    pub published: Option<f64>,
    /// That figure in the source's words: "805 to 3,800 TPS with 100 clients".
    pub figure: &'static str,
}

/// What two variants are compared by, at the most clients measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Operations a second; more is better.
    Throughput,
    /// [`Sample::inside`]; less is better.
    Inside,
    /// A [`Number`] by its name; less is better.
    Number(&'static str),
}

/// How the turns of a case are cut.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Rounds whose medians count; about one and a half more are sampled.
    pub rounds: usize,
    /// For all turns together; divided evenly.
    pub budget: Duration,
    /// No turn is shorter than this, nor longer than `longest`.
    pub shortest: Duration,
    pub longest: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            rounds: 5,
            budget: Duration::from_secs(60),
            shortest: Duration::from_millis(100),
            longest: Duration::from_secs(2),
        }
    }
}

/// What a case may use to prepare.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// An empty directory of this run's own, shared by its variants and removed after it.
    pub scratch: &'a Path,
    /// The `throng` binary, for cases that start a server.
    pub throng: &'a Path,
    /// To say what takes long.
    pub progress: &'a Progress,
    /// The most clients that any turn will have.
    pub most_clients: usize,
}
