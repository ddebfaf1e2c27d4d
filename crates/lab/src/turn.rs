//! A turn of a variant, and what it measured.

use std::time::Duration;

use throng_observe::HistogramSnapshot;

/// One turn of one variant.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The point on the case's axis.
    pub clients: usize,
    pub duration: Duration,
}

/// What one turn measured.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub operations: u64,
    /// Wall time over which they were counted.
    pub elapsed: Duration,
    /// The share, 0 to 1, that [`About::inside`](crate::case::About::inside) names, by the case's
    /// own counters.
    pub inside: Option<f64>,
    /// Nanoseconds of each operation, or of a fair choice of them.
    pub latency: Option<HistogramSnapshot>,
    /// What else is worth a column.
    pub numbers: Vec<Number>,
}

impl Sample {
    /// Operations a second.
    pub fn throughput(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }
}

/// A measured number with its name.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    pub name: &'static str,
    /// "ns", "%", "MB/s", or empty for a count.
    pub unit: &'static str,
    pub value: f64,
}
