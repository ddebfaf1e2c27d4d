//! Threads that do one thing together for a given time: what the small cases load a structure with.
//!
//! ```text
//! spawn ──► all ready ──► go ───────── duration ─────────► stop ──► joined
//!                          └── operations are counted here ──┘
//! ```
//!
//! A worker counts on its own stack and publishes once, at its end, so that the crew adds no shared
//! line but the stop flag, which all read and nobody writes meanwhile.

use std::cell::Cell;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use throng_observe::{Histogram, HistogramSnapshot, now_nanos};
use throng_sync::CachePadded;

use crate::turn::{Sample, Turn};
use crate::{Error, Result};

/// One operation in this many is timed by [`Worker::step`]: two clock reads cost about as much as
/// the fastest things measured here, and must not be most of what is measured. A prime, to fall
/// into no pattern.
const TIMED: u64 = 61;

/// One thread of a crew.
pub struct Worker<'a> {
    /// 0 to clients - 1.
    pub index: usize,
    stop: &'a AtomicBool,
    operations: Cell<u64>,
    timed: Cell<u64>,
    inside: Cell<u64>,
    latency: Histogram,
}

impl<'a> Worker<'a> {
    fn new(index: usize, stop: &'a AtomicBool) -> Worker<'a> {
        Worker {
            index,
            stop,
            operations: Cell::new(0),
            timed: Cell::new(0),
            inside: Cell::new(0),
            latency: Histogram::new(),
        }
    }

    /// Until the turn is over.
    #[inline]
    pub fn goes_on(&self) -> bool {
        // Relaxed: seeing it an iteration late harms nothing.
        !self.stop.load(Ordering::Relaxed)
    }

    /// Counts `n` operations that were done without [`Worker::step`].
    #[inline]
    pub fn count(&self, n: u64) {
        self.operations.set(self.operations.get() + n);
    }

    /// Does one operation on the structure under test, and times one in 61.
    #[inline]
    pub fn step<R>(&self, operation: impl FnOnce() -> R) -> R {
        let done = self.operations.get();
        self.operations.set(done + 1);
        if done.is_multiple_of(TIMED) {
            self.timed(operation)
        } else {
            operation()
        }
    }

    /// Does `n` operations at once, between two looks at the stop flag; times the first as
    /// [`Worker::step`] does.
    #[inline]
    pub fn steps(&self, n: u64, operation: impl Fn()) {
        self.step(&operation);
        for _ in 1..n {
            operation();
        }
        self.count(n - 1);
    }

    #[cold]
    fn timed<R>(&self, operation: impl FnOnce() -> R) -> R {
        let since = now_nanos();
        let result = operation();
        let nanos = now_nanos().saturating_sub(since);
        self.latency.record(nanos);
        self.timed.set(self.timed.get() + 1);
        self.inside.set(self.inside.get() + nanos);
        result
    }
}

/// Runs `work` on `turn.clients` threads for `turn.duration`.
///
/// `work` is called once a thread and must return soon after [`Worker::goes_on`] says no. The
/// sample's latencies and its share inside are those of [`Worker::step`], where it was used.
pub fn run(turn: &Turn, work: impl Fn(&Worker<'_>) + Sync) -> Result<Sample> {
    let stop = CachePadded::new(AtomicBool::new(false));
    // Held for writing until all are there; whoever comes reads it once.
    let gate = RwLock::new(());
    std::thread::scope(|scope| {
        let (stop, gate, work) = (&*stop, &gate, &work);
        let closed = gate.write();
        let spawned: std::io::Result<Vec<_>> = (0..turn.clients)
            .map(|index| {
                std::thread::Builder::new()
                    .name(format!("lab-{index}"))
                    .spawn_scoped(scope, move || {
                        let worker = Worker::new(index, stop);
                        drop(gate.read());
                        work(&worker);
                        worker
                    })
            })
            .collect();
        if spawned.is_err() {
            // Those that were spawned are let through and find the turn over.
            stop.store(true, Ordering::Relaxed);
        }
        drop(closed);
        let threads = spawned
            .map_err(|e| Error::failed(format!("{} threads are too many: {e}", turn.clients)))?;
        let since = Instant::now();
        std::thread::sleep(turn.duration);
        stop.store(true, Ordering::Relaxed);
        let elapsed = since.elapsed();
        let workers: Vec<Worker<'_>> = threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        Ok(sum(&workers, elapsed))
    })
}

fn sum(workers: &[Worker<'_>], elapsed: Duration) -> Sample {
    let total = |of: fn(&Worker<'_>) -> u64| workers.iter().map(of).sum::<u64>();
    let operations = total(|w| w.operations.get());
    let timed = total(|w| w.timed.get());
    let mut latency = HistogramSnapshot::default();
    for worker in workers {
        worker.latency.add_to(&mut latency);
    }
    let inside = (timed > 0).then(|| {
        let all = total(|w| w.inside.get()) as f64 * operations as f64 / timed as f64;
        // An estimate from one in 61 may overshoot where all time is inside.
        (all / (elapsed.as_nanos() as f64 * workers.len() as f64)).min(1.0)
    });
    Sample {
        operations,
        elapsed,
        inside,
        latency: (timed > 0).then_some(latency),
        numbers: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_crew_counts_what_its_workers_did() {
        let done = AtomicU64::new(0);
        let turn = Turn {
            clients: 3,
            duration: Duration::from_millis(20),
        };
        let sample = run(&turn, |worker| {
            while worker.goes_on() {
                worker.step(|| done.fetch_add(1, Ordering::Relaxed));
            }
        })
        .expect("three threads");
        assert_eq!(sample.operations, done.load(Ordering::Relaxed));
        assert!(sample.elapsed >= turn.duration);
        assert!(
            sample
                .inside
                .is_some_and(|share| share > 0.0 && share <= 1.0)
        );
        let timed = sample.latency.expect("some were timed").count();
        assert!(timed >= sample.operations / TIMED && timed <= sample.operations / TIMED + 3);
    }
}
