//! What a bench found: the one thing that text, JSON and report are made of.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::findings::{Latency, Machine};
use crate::numbers::percent;
use crate::stats::Spread;
use crate::usl::Law;

#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    pub workload: &'static str,
    /// Tables' size in the workload's own measure.
    pub scale: i64,
    pub mode: &'static str,
    pub rounds: usize,
    /// Of each turn's measured window.
    pub seconds: f64,
    /// How latency was taken.
    pub latency_from: &'static str,
    pub machine: Machine,
    /// The share of the cores that was busy before anything was asked of anybody.
    pub busy_before: f64,
    pub targets: Vec<Target>,
}

/// Busy cores from which on a machine has other things to do than to be measured.
const OTHERWISE_BUSY: f64 = 0.1;

impl Findings {
    /// What a reader must know before the first figure, if anything.
    pub fn warning(&self) -> Option<String> {
        (self.busy_before >= OTHERWISE_BUSY).then(|| {
            format!(
                "before the bench began, something else kept the cores {} busy; what the cores do is not the servers' \
                 doing alone",
                percent(self.busy_before)
            )
        })
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Target {
    pub name: String,
    /// As URLs name it.
    pub protocol: &'static str,
    /// As the server says it.
    pub version: String,
    /// Of the server's, what decides how much a commit costs and how much is kept in memory: names
    /// and values.
    pub settings: Vec<(String, String)>,
    pub telling: WaitReporting,
    /// Ascending in clients.
    pub points: Vec<Point>,
    /// The fewest clients with which it does at least [`KNEE`] of its best.
    pub knee: Option<usize>,
    pub law: Law,
    pub conditions: Vec<Checked>,
    /// What limited it at its knee, in words.
    pub limit: String,
    /// Whether it is the constant answerer, which shows what the client can do and is no database.
    pub is_answerer: bool,
}

/// The knee is where this share of the best throughput is reached: beyond it more clients only wait
/// longer.
pub const KNEE: f64 = 0.95;

#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub clients: usize,
    /// Transactions a second.
    pub throughput: Spread,
    /// New orders a minute, of TPC-C.
    pub tpmc: Option<Spread>,
    pub latency: Latency,
    /// By kind of transaction, where there is more than one.
    pub kinds: Vec<(String, Latency)>,
    /// The slowest client's transactions as a share of the mean.
    pub fairness: Spread,
    /// Failed transactions by SQLSTATE: how many, and the first one's text.
    pub failures: BTreeMap<String, (u64, String)>,
    pub retries: u64,
    /// The share of the machine's cores that was busy, whoever used them.
    pub busy: f64,
    /// The share of the machine's cores that the load itself used.
    pub own: f64,
    /// The most first.
    pub waits: Vec<Wait>,
}

/// What a server can say of its sessions' waits.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WaitReporting {
    /// Whether it says anything.
    pub tells: bool,
    /// How it is known, or why it is not: the rest of a sentence that begins with the server.
    pub how: &'static str,
    /// What shares are of.
    pub of: &'static str,
}

/// What a server's sessions did, as far as the server tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wait {
    pub what: String,
    /// Of what [`WaitReporting::of`] says.
    pub share: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    pub condition: String,
    /// What was found instead, where it does not hold.
    pub fault: Option<String>,
}

impl Target {
    /// Version and settings in a line.
    pub fn description(&self) -> String {
        let settings = self
            .settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"));
        let settings: Vec<String> = settings.collect();
        match settings.is_empty() {
            true => self.version.clone(),
            false => format!("{}; {}", self.version, settings.join(", ")),
        }
    }

    pub fn at_knee(&self) -> Option<&Point> {
        self.points.iter().find(|p| Some(p.clients) == self.knee)
    }

    pub fn best(&self) -> f64 {
        self.points
            .iter()
            .map(|p| p.throughput.median)
            .fold(0.0, f64::max)
    }
}

/// The fewest clients that reach [`KNEE`] of the best.
pub fn knee(points: &[Point]) -> Option<usize> {
    let best = points
        .iter()
        .map(|p| p.throughput.median)
        .fold(0.0, f64::max);
    let reached = |p: &&Point| best > 0.0 && p.throughput.median >= KNEE * best;
    points.iter().find(reached).map(|p| p.clients)
}
