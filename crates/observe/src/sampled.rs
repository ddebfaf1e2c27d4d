//! How much time goes into a structure that is too quick to be timed every time.
//!
//! One call in [`EVERY`] or so is timed, the others cost a load, a store and a branch on the
//! calling thread's own line. The gap between two timed calls is drawn anew each time, around
//! [`EVERY`]: with a fixed one, a statement that makes four calls in the same order each time would
//! have the same one of them timed always.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::clock::now_nanos;
use crate::histogram::add;
use crate::slots;
use crate::structure::Structure;

/// Calls to one that is timed, on average.
pub const EVERY: u32 = 64;

/// A call under way; its time ends when this is dropped.
#[must_use = "the structure's time ends when this is dropped"]
pub struct Sampled {
    structure: Structure,
    /// 0: not timed.
    since: u64,
}

/// Counts a call of `structure` that lasts until the result is dropped, and times it if it is its
/// turn.
#[inline]
pub fn sampled(structure: Structure) -> Sampled {
    let cell = &slots::mine().structures[structure as usize];
    let left = cell.left.load(Ordering::Relaxed);
    if left > 0 {
        cell.left.store(left - 1, Ordering::Relaxed);
        return Sampled {
            structure,
            since: 0,
        };
    }
    Sampled {
        structure,
        since: begin_sample(structure),
    }
}

#[cold]
fn begin_sample(structure: Structure) -> u64 {
    let cell = &slots::mine_current().structures[structure as usize];
    // The calls since the last timed one, and this one.
    add(&cell.calls, u64::from(cell.gap.load(Ordering::Relaxed)) + 1);
    // From 32 to 95, by the clock's lowest bits well mixed: what they are is nobody's plan.
    let now = now_nanos();
    let random = (now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as u32;
    let gap = EVERY / 2 + random;
    cell.gap.store(gap, Ordering::Relaxed);
    cell.left.store(gap, Ordering::Relaxed);
    if slots::is_tracking() { now_nanos() } else { 0 }
}

impl Drop for Sampled {
    #[inline]
    fn drop(&mut self) {
        if self.since != 0 {
            end_sample(self.structure, self.since);
        }
    }
}

#[cold]
fn end_sample(structure: Structure, since: u64) {
    let took = now_nanos()
        .saturating_sub(since)
        .saturating_sub(clock_cost());
    let cell = &slots::mine_current().structures[structure as usize];
    add(&cell.samples, 1);
    add(&cell.nanos, took);
}

/// What timing nothing comes to.
fn clock_cost() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        let empty = || {
            let began = now_nanos();
            now_nanos() - began
        };
        (0..100).map(|_| empty()).min().unwrap_or(0)
    })
}

/// A structure's calls since the last [`reset`](crate::reset), and what they took together.
#[derive(Clone, Copy, Debug)]
pub struct StructureTime {
    pub structure: Structure,
    pub calls: u64,
    /// Of them, timed.
    pub samples: u64,
    /// All calls' time: that of the timed ones, scaled up.
    pub nanos: f64,
}

/// Every structure that was called.
pub fn structures() -> Vec<StructureTime> {
    let of = |&structure: &Structure| {
        let mut time = StructureTime {
            structure,
            calls: 0,
            samples: 0,
            nanos: 0.0,
        };
        let mut sampled_nanos = 0;
        for slot in slots::all_current() {
            let cell = &slot.structures[structure as usize];
            time.calls += cell.calls();
            time.samples += cell.samples.load(Ordering::Relaxed);
            sampled_nanos += cell.nanos.load(Ordering::Relaxed);
        }
        // Threads are sampled alike, so the sums may be scaled rather than each thread's part.
        if time.samples > 0 {
            time.nanos = sampled_nanos as f64 / time.samples as f64 * time.calls as f64;
        }
        time
    };
    Structure::ALL
        .iter()
        .map(of)
        .filter(|time| time.calls > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_all_counted_and_some_timed() {
        const CALLS: u64 = 20_000;
        let before = of(Structure::Pin);
        std::thread::spawn(|| {
            for _ in 0..CALLS {
                let _call = sampled(Structure::Pin);
            }
        })
        .join()
        .unwrap();
        let after = of(Structure::Pin);
        assert_eq!(after.0 - before.0, CALLS);
        let samples = after.1 - before.1;
        let expected = CALLS / u64::from(EVERY);
        assert!((expected / 2..expected * 2).contains(&samples), "{samples}");
    }

    fn of(structure: Structure) -> (u64, u64) {
        structures()
            .iter()
            .find(|time| time.structure == structure)
            .map_or((0, 0), |time| (time.calls, time.samples))
    }

    /// What a round of calls took, and what the samples of that round make of it.
    fn spent_and_estimated() -> (f64, f64) {
        let so_far = || {
            structures()
                .into_iter()
                .find(|time| time.structure == Structure::Extend)
                .map_or((0.0, 0.0, 0.0), |time| {
                    let (calls, samples) = (time.calls as f64, time.samples as f64);
                    (calls, samples, time.nanos / calls * samples)
                })
        };
        let before = so_far();
        // Every fourth call is long: a fixed gap of 64 would time only long ones, or only short
        // ones.
        let mut spent = 0;
        for i in 0..20_000u64 {
            let began = now_nanos();
            let call = sampled(Structure::Extend);
            if i % 4 == 0 {
                while now_nanos() - began < 2_000 {}
            }
            drop(call);
            if i % 4 == 0 {
                spent += now_nanos() - began;
            }
        }
        let after = so_far();
        let sampled = after.2 - before.2;
        let estimated = sampled / (after.1 - before.1) * (after.0 - before.0);
        (spent as f64, estimated)
    }

    #[test]
    fn the_estimate_is_near_what_was_spent() {
        // A preempted sample weighs 64 times what it took: the bounds are wide, and a disturbed
        // round is taken again.
        let ratios: Vec<f64> = std::iter::repeat_with(spent_and_estimated)
            .map(|(spent, estimated)| estimated / spent)
            .take(20)
            .scan(false, |near, ratio| {
                let go_on = !*near;
                *near = (0.5..4.0).contains(&ratio);
                go_on.then_some(ratio)
            })
            .collect();
        assert!(
            (0.5..4.0).contains(ratios.last().expect("a round")),
            "{ratios:?}"
        );
    }
}
