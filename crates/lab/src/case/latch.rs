//! `latch`: readers of one latch, which is what a B-tree's root is to all who search.
//!
//! The latch is the server's own, in the three forms of its word, and the read that enters nothing;
//! two words under it, which writers keep equal, tell whether it keeps its promise.

use throng_sync::CachePadded;
use throng_sync::latch::{ByAdd, ByCas, Latch, RawLatch, UnderSpin};

use super::pair::{self, Pair};
use super::{About, Bench, Case, Effect, Metric, Role, Sample, Setup, Turn, Variant};
use crate::{Error, Result};

pub struct Latches;

impl Case for Latches {
    fn name(&self) -> &'static str {
        "latch"
    }

    fn about(&self) -> About {
        About {
            title: "one latch, read by all: under a spinlock, by compare-and-swap, by adding first, or not entered",
            text: "Every thread enters one latch shared, reads, and leaves, and once in about a thousand enters it \
                   exclusively and writes; the latch's word is changed under a spinlock, by a loop of compare-and-swap, or by \
                   an add that is looked at afterwards and undone, and with versions a reader changes nothing. \
                   On a Power8 with up to 512 hardware threads PostgreSQL scaled to 32 clients with spinlocks and, with \
                   compare-and-swap, to 64 and over 800,000 TPS; adding first brought the lightweight lock a very large gain \
                   more, and two instances on 48 cores over 2 million TPS.",
            source: "PostgreSQL 9.4 to 9.6 on IBM E880 (Power8), pgbench SELECT by primary key, all in memory",
            operations: "reads",
            inside: "the threads' time reading under the latch",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name, role, about| Variant { name, role, about };
        vec![
            variant(
                "spin",
                Role::Was,
                "every change under a spinlock, as before PostgreSQL 9.5",
            ),
            variant(
                "cas",
                Role::Became,
                "a loop of compare-and-swap: the default where a latch is entered",
            ),
            variant(
                "add",
                Role::Other,
                "readers add themselves, look, and undo it if they may not",
            ),
            variant(
                "versions",
                Role::Further,
                "readers enter nothing and check a version: the default where pages are read",
            ),
        ]
    }

    fn default_clients(&self, cores: usize) -> Vec<usize> {
        super::doubling(cores.max(2) * 4)
    }

    fn effects(&self) -> Vec<Effect> {
        let effect = |was, became, figure| Effect {
            was,
            became,
            metric: Metric::Throughput,
            published: None,
            figure,
        };
        vec![
            effect(
                "cas",
                "add",
                "a very large gain in the lightweight lock; no figure is given for this step",
            ),
            effect(
                "spin",
                "cas",
                "with the pins, from 32 clients to 64 before it fell",
            ),
            effect(
                "cas",
                "versions",
                "no figure: this goes beyond what was published",
            ),
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["sync::latch"]
    }

    fn prepare(&self, variant: &Variant, _setup: &Setup) -> Result<Box<dyn Bench>> {
        Ok(match variant.name {
            "spin" => Box::new(Root::<UnderSpin>::new(Root::read_shared)),
            "cas" => Box::new(Root::<ByCas>::new(Root::read_shared)),
            "add" => Box::new(Root::<ByAdd>::new(Root::read_shared)),
            "versions" => Box::new(Root::<ByCas>::new(Root::read_optimistic)),
            other => return Err(Error::usage(format!("latch has no variant {other}"))),
        })
    }
}

struct Root<R: RawLatch> {
    latch: CachePadded<Latch<R>>,
    /// Equal whenever nobody holds the latch exclusively.
    words: CachePadded<Pair>,
    read: fn(&Root<R>) -> [u64; 2],
}

impl<R: RawLatch> Root<R> {
    fn new(read: fn(&Root<R>) -> [u64; 2]) -> Root<R> {
        Root {
            latch: CachePadded::new(Latch::of()),
            words: CachePadded::default(),
            read,
        }
    }

    fn read_shared(&self) -> [u64; 2] {
        self.latch.shared();
        let words = self.words.read();
        self.latch.unlock_shared();
        words
    }

    fn read_optimistic(&self) -> [u64; 2] {
        if let Some(version) = self.latch.optimistic() {
            let words = self.words.read();
            if self.latch.validate(version) {
                return words;
            }
        }
        self.read_shared()
    }

    fn write(&self) {
        self.latch.exclusive();
        self.words.add_one();
        self.latch.unlock_exclusive();
    }
}

impl<R: RawLatch> Bench for Root<R> {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let read = || Some((self.read)(self));
        let torn = "under the latch were of a write half done";
        pair::run(turn, read, || self.write(), torn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::run_variants;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn every_variant_reads_and_writes_and_none_reads_a_write_half_done() {
        let turn = Duration::from_millis(20);
        run_variants(&Latches, Path::new("."), &[3], turn, |_, _| ());
    }
}
