//! What a run of a case found: the one thing that the text, the JSON and the report are made of.

use serde::Serialize;

use crate::case::{About, Axis, Role};
use crate::profile::Sampled;
use crate::stats::{Outcome, Spread};
use crate::usl::Law;

#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    pub case: &'static str,
    #[serde(flatten)]
    pub about: About,
    pub axis: &'static str,
    pub machine: Machine,
    pub pace: Cut,
    /// Parts of the names of the functions that are the structure under test.
    pub functions: &'static [&'static str],
    pub variants: Vec<Measured>,
    pub verdicts: Vec<Verdict>,
    /// By which the verdicts were found.
    pub rule: &'static str,
    /// Why there are no samples of stacks, where there are none.
    pub unsampled: Option<String>,
}

/// The machine that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    pub architecture: &'static str,
    pub processor: String,
    /// How many cores this process may use.
    pub cores: usize,
    pub kernel: String,
    pub throng: &'static str,
}

/// How the turns were cut.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cut {
    pub rounds: usize,
    /// Of each turn.
    pub seconds: f64,
}

/// One variant.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub name: &'static str,
    pub role: Role,
    pub about: &'static str,
    /// Ascending in clients.
    pub points: Vec<Point>,
    /// How throughput grows with clients.
    pub law: Law,
    /// With the most clients.
    pub on_cpu: Option<Sampled>,
    pub off_cpu: Option<Sampled>,
}

/// One variant with so many clients.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Or whatever the axis is.
    pub clients: usize,
    /// Operations a second.
    pub throughput: Spread,
    /// The share inside the structure by the case's own counters.
    pub inside: Option<Spread>,
    /// The share of stack samples on a core that pass through the structure's functions.
    pub sampled: Option<f64>,
    /// Over all rounds together.
    pub latency: Option<Latency>,
    pub numbers: Vec<NamedSpread>,
}

/// Quantiles, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
    pub most: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct NamedSpread {
    pub name: &'static str,
    pub unit: &'static str,
    #[serde(flatten)]
    pub spread: Spread,
}

/// What became of a published effect here.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub was: &'static str,
    pub became: &'static str,
    pub metric: &'static str,
    pub clients: usize,
    pub outcome: Outcome,
    /// How many times better `became` was, round by round.
    pub ratio: Spread,
    pub published: Option<f64>,
    pub figure: &'static str,
}

impl Findings {
    pub fn variant(&self, name: &str) -> Option<&Measured> {
        self.variants.iter().find(|v| v.name == name)
    }
}

impl Axis {
    /// In the plural.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Clients => "clients",
            Axis::Other(name) => name,
        }
    }
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Was => "was",
            Role::Became => "became",
            Role::Further => "further",
            Role::Other => "",
        }
    }
}

impl Verdict {
    /// One line for the reader.
    pub fn line(&self, axis: &str) -> String {
        let outcome = match self.outcome {
            Outcome::Reproduced => "reproduced here",
            Outcome::TooSmall => "too small to see here",
            Outcome::OtherWay => "ran the other way here",
        };
        let ratio = &self.ratio;
        format!(
            "{outcome}: {} over {} is {} times better in {} with {} {axis} ({} to {} over {} rounds); published: {}",
            self.became,
            self.was,
            times(ratio.median),
            self.metric,
            self.clients,
            times(ratio.least),
            times(ratio.most),
            ratio.rounds.len(),
            self.figure,
        )
    }
}

/// A ratio with as many digits as mean something.
fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("{r:.0}"),
        r if r >= 10.0 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}
