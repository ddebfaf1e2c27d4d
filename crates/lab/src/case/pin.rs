//! `pin`: one page's pin count, changed by all who read the page.
//!
//! The count is the frame's own, in its three forms, and the read that pins nothing. Now and then
//! somebody tries to evict the page, and succeeds only when nobody has it pinned; two words, which
//! eviction makes unequal for a moment, tell whether a pin keeps its promise.

use std::sync::atomic::{AtomicU64, Ordering};

use throng_sync::pin::{self, ByAdd, ByCas, RawPin, UnderSpin};
use throng_sync::{CachePadded, Latch};

use super::pair::{self, Pair};
use super::{About, Bench, Case, Effect, Metric, Role, Sample, Setup, Turn, Variant};
use crate::{Error, Result};

pub struct Pins;

impl Case for Pins {
    fn name(&self) -> &'static str {
        "pin"
    }

    fn about(&self) -> About {
        About {
            title: "one page's pin count: under a spinlock, by compare-and-swap, by adding, or not counted",
            text: "Every thread pins one page, reads two words of it, and unpins it, as readers of a B-tree's root do in \
                   PostgreSQL; the count is changed under a spinlock, by a loop of compare-and-swap, or by an addition, and \
                   with versions a reader changes nothing. On a Power8 with up to 512 hardware threads s_lock took 32.1 % of \
                   the CPU, called by PinBuffer and UnpinBuffer; with compare-and-swap the linear region doubled, to over \
                   800,000 TPS, and adding instead gained nothing more.",
            source: "PostgreSQL 9.4 to 9.6 on IBM E880 (Power8), pgbench SELECT by primary key, all in memory",
            operations: "reads",
            inside: "the threads' time pinning, reading and unpinning",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name, role, about| Variant { name, role, about };
        vec![
            variant(
                "spin",
                Role::Was,
                "the count changed under a spinlock, as before PostgreSQL 9.6",
            ),
            variant("cas", Role::Became, "a loop of compare-and-swap"),
            variant(
                "add",
                Role::Other,
                "one addition, looked at afterwards: the default where a page is pinned",
            ),
            variant(
                "versions",
                Role::Further,
                "nothing is pinned, and a version is checked: the default where pages are read",
            ),
        ]
    }

    fn default_clients(&self, cores: usize) -> Vec<usize> {
        super::doubling(cores.max(2) * 4)
    }

    fn effects(&self) -> Vec<Effect> {
        let effect = |was, became, published, figure| Effect {
            was,
            became,
            metric: Metric::Throughput,
            published,
            figure,
        };
        vec![
            effect(
                "spin",
                "cas",
                Some(2.0),
                "the linear region doubled, to over 800,000 TPS",
            ),
            effect("cas", "add", Some(1.0), "no gain in PinBuffer"),
            effect(
                "cas",
                "versions",
                None,
                "no figure: this goes beyond what was published",
            ),
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["sync::pin", "sync::bit"]
    }

    fn prepare(&self, variant: &Variant, _setup: &Setup) -> Result<Box<dyn Bench>> {
        Ok(match variant.name {
            "spin" => Box::new(Page::new(Page::read_pinned::<UnderSpin>)),
            "cas" => Box::new(Page::new(Page::read_pinned::<ByCas>)),
            "add" => Box::new(Page::new(Page::read_pinned::<ByAdd>)),
            "versions" => Box::new(Page::new(Page::read_optimistic)),
            other => return Err(Error::usage(format!("pin has no variant {other}"))),
        })
    }
}

/// Beside the pins, as in a frame: the page is there.
const VALID: u64 = 1 << 33;

struct Page {
    state: CachePadded<AtomicU64>,
    latch: CachePadded<Latch>,
    /// Equal as long as the page is there.
    words: CachePadded<Pair>,
    /// None: the page was gone, or changed meanwhile.
    read: fn(&Page) -> Option<[u64; 2]>,
}

impl Page {
    fn new(read: fn(&Page) -> Option<[u64; 2]>) -> Page {
        Page {
            state: CachePadded::new(AtomicU64::new(VALID)),
            latch: CachePadded::default(),
            words: CachePadded::default(),
            read,
        }
    }

    fn read_pinned<P: RawPin>(&self) -> Option<[u64; 2]> {
        let there = P::add(&self.state) & VALID != 0;
        let words = there.then(|| self.words.read());
        P::take(&self.state);
        words
    }

    fn read_optimistic(&self) -> Option<[u64; 2]> {
        let version = self.latch.optimistic()?;
        let words = self.words.read();
        self.latch.validate(version).then_some(words)
    }

    /// As a frame is claimed: under the latch, and if nobody has it pinned. The page comes back at
    /// once, changed.
    fn evict(&self) {
        if !self.latch.try_exclusive() {
            return;
        }
        let end = |state| (state & (VALID | pin::COUNT) == VALID).then_some(state & !VALID);
        let ended = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, end);
        if ended.is_err() {
            self.latch.unlock_exclusive_unchanged();
            return;
        }
        self.words.add_one();
        self.state.fetch_or(VALID, Ordering::Release);
        self.latch.unlock_exclusive();
    }
}

impl Bench for Page {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let torn = "of a page that was kept saw it evicted";
        pair::run(turn, || (self.read)(self), || self.evict(), torn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::run_variants;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn no_variant_sees_a_page_that_it_keeps_evicted() {
        let turn = Duration::from_millis(20);
        run_variants(&Pins, Path::new("."), &[3], turn, |_, _| ());
    }
}
