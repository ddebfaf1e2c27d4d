//! `atomics`: what one cache line costs when several cores want it.
//!
//! The yardstick for everything else here. A line that all read is copied into every core and costs
//! nothing more; a line that all write travels from core to core, and each visit waits for it. A
//! compare-and-swap loop pays for the trip even when it loses; an add never loses.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use throng_sync::CachePadded;

use super::{About, Bench, Case, Effect, Metric, Role, Sample, Setup, Turn, Variant};
use crate::{Error, Result, crew};

pub struct Atomics;

/// Operations between two looks at the stop flag.
const BATCH: u64 = 16;

impl Case for Atomics {
    fn name(&self) -> &'static str {
        "atomics"
    }

    fn about(&self) -> About {
        About {
            title: "one cache line: read by all, written by all, or one for each",
            text: "Every thread works on one word: it reads it, adds to it, or replaces it by compare-and-swap until \
                   that succeeds; with split each has a word on a line of its own. \
                   On a Power8 with up to 512 hardware threads, PostgreSQL's loop of compare-and-swap in its \
                   lightweight lock was replaced by an add that looks afterwards, with a very large gain, and in \
                   its buffer pin with none.",
            source: "PostgreSQL on IBM E880 (Power8), pgbench SELECT by primary key, all in memory",
            operations: "operations",
            inside: "the threads' time on the word",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name, role, about| Variant { name, role, about };
        vec![
            variant(
                "cas",
                Role::Was,
                "compare-and-swap until it succeeds, one word for all",
            ),
            variant("add", Role::Became, "fetch-and-add, one word for all"),
            variant(
                "split",
                Role::Further,
                "fetch-and-add, a word and a cache line for each",
            ),
            variant(
                "load",
                Role::Other,
                "a plain read, one word for all: what cannot be contended",
            ),
        ]
    }

    fn default_clients(&self, cores: usize) -> Vec<usize> {
        super::doubling(cores.max(2) * 4)
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect {
            was: "cas",
            became: "add",
            metric: Metric::Throughput,
            published: None,
            figure: "a very large gain in the lightweight lock, none in the buffer pin",
        }]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["case::atomics"]
    }

    fn prepare(&self, variant: &Variant, setup: &Setup) -> Result<Box<dyn Bench>> {
        let lines = |count: usize| (0..count).map(|_| CachePadded::default()).collect();
        Ok(match variant.name {
            "cas" => words(lines(1), |word| {
                let mut seen = word.load(RELAXED);
                while let Err(now) = word.compare_exchange(seen, seen + 1, RELAXED, RELAXED) {
                    seen = now;
                }
            }),
            "add" => words(lines(1), add),
            "split" => words(lines(setup.most_clients), add),
            "load" => words(lines(1), |word| {
                black_box(word.load(RELAXED));
            }),
            other => return Err(Error::usage(format!("atomics has no variant {other}"))),
        })
    }
}

const RELAXED: Ordering = Ordering::Relaxed;

type Line = CachePadded<AtomicU64>;

fn add(word: &AtomicU64) {
    word.fetch_add(1, RELAXED);
}

/// Some lines, dealt to the workers in turn, and what is done to them.
struct Words<F> {
    lines: Box<[Line]>,
    operation: F,
}

fn words<F: Fn(&AtomicU64) + Sync + 'static>(lines: Box<[Line]>, operation: F) -> Box<dyn Bench> {
    Box::new(Words { lines, operation })
}

impl<F: Fn(&AtomicU64) + Sync> Bench for Words<F> {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let (lines, operation) = (&self.lines, &self.operation);
        crew::run(turn, |worker| {
            let word = &lines[worker.index % lines.len()];
            while worker.goes_on() {
                worker.steps(BATCH, || operation(word));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::run_variants;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn every_variant_runs() {
        let turn = Duration::from_millis(5);
        run_variants(&Atomics, Path::new("."), &[2], turn, |_, _| ());
    }
}
