//! What a waiter does between two tries: pause, give the core away, sleep.

use std::cell::Cell;
use std::time::Duration;

use crate::lab::{self, BackOffForm};

/// Bounded spinning before something dearer: 1, 2, 4, … pauses a round.
///
/// ```
/// # use throng_sync::SpinWait;
/// let mut spin = SpinWait::new();
/// while spin.spin() { /* look again */ }
/// // … and now park
/// ```
#[derive(Debug, Default)]
pub struct SpinWait {
    round: u32,
}

/// 31 pauses in all, up to a microsecond or two: less than parking and being woken costs.
const SPIN_ROUNDS: u32 = 5;

impl SpinWait {
    pub const fn new() -> SpinWait {
        SpinWait { round: 0 }
    }

    /// Pauses for the next round. False, at once, when spinning no longer pays.
    #[inline]
    pub fn spin(&mut self) -> bool {
        // A model has no time: spinning there only multiplies the interleavings.
        if crate::IS_MODEL || self.round >= SPIN_ROUNDS {
            return false;
        }
        for _ in 0..1 << self.round {
            crate::hint::spin_loop();
        }
        self.round += 1;
        true
    }

    pub fn reset(&mut self) {
        self.round = 0;
    }
}

/// One wait for a spinlock.
pub trait BackOff: Sized {
    /// As `lab_spin_backoff` spells it.
    const NAME: &'static str;

    fn begin() -> Self;
    /// Between a try that failed and the next.
    fn pause(&mut self);
    /// The lock was got: learns for the next wait.
    fn end(self) {}
}

/// A holder that is running is done within so many yields.
const YIELDS: u32 = 16;
/// A holder preempted for longer than that is waiting for a core: take ours away for a while.
const MAX_SLEEP_MICROS: u64 = 1_000;
const MIN_SLEEP_MICROS: u64 = 10;

/// Yields, then sleeps that double.
#[derive(Default)]
struct Patience {
    yields: u32,
    sleep_micros: u64,
}

impl Patience {
    fn wait(&mut self) {
        // A model has no time, and everybody's turn comes by yielding.
        if crate::IS_MODEL || self.yields < YIELDS {
            self.yields += 1;
            crate::thread::yield_now();
            return;
        }
        self.sleep_micros = (self.sleep_micros * 2).clamp(MIN_SLEEP_MICROS, MAX_SLEEP_MICROS);
        crate::thread::sleep(Duration::from_micros(self.sleep_micros));
    }
}

/// The same for every wait: 31 pauses in doubling rounds, 16 yields, then sleeps from 10 µs to 1
/// ms.
#[derive(Default)]
pub struct Fixed {
    spin: SpinWait,
    patience: Patience,
}

impl BackOff for Fixed {
    const NAME: &'static str = "fixed";

    fn begin() -> Fixed {
        Fixed::default()
    }
    fn pause(&mut self) {
        if !self.spin.spin() {
            self.patience.wait();
        }
    }
}

/// Learns how long spinning pays, as PostgreSQL's `s_lock.c` does: each thread keeps its number of
/// tries before a delay. A wait that ended without a delay raises it by 100, one that had to delay
/// lowers it by 1: where the holder runs on another core it climbs to 1,000, on a machine of one
/// core it sinks to 10.
///
/// Two differences from `s_lock.c`: the first 16 delays yield instead of sleeping a millisecond,
/// and nobody gives up ("stuck spinlock detected"), because a holder here is a thread of this
/// process and cannot have died.
pub struct Adaptive {
    spins: u32,
    spins_per_delay: u32,
    patience: Patience,
    delayed: bool,
}

const MIN_SPINS_PER_DELAY: u32 = 10;
const MAX_SPINS_PER_DELAY: u32 = 1_000;
const DEFAULT_SPINS_PER_DELAY: u32 = 100;

thread_local! {
    static SPINS_PER_DELAY: Cell<u32> = const { Cell::new(DEFAULT_SPINS_PER_DELAY) };
}

impl BackOff for Adaptive {
    const NAME: &'static str = "adaptive";

    fn begin() -> Adaptive {
        Adaptive {
            spins: 0,
            spins_per_delay: SPINS_PER_DELAY.get(),
            patience: Patience::default(),
            delayed: false,
        }
    }
    fn pause(&mut self) {
        self.spins += 1;
        if !crate::IS_MODEL && self.spins < self.spins_per_delay {
            crate::hint::spin_loop();
            return;
        }
        self.patience.wait();
        self.delayed = true;
        self.spins = 0;
    }
    fn end(self) {
        SPINS_PER_DELAY.set(learnt(self.spins_per_delay, self.delayed));
    }
}

fn learnt(spins_per_delay: u32, delayed: bool) -> u32 {
    if delayed {
        (spins_per_delay - 1).max(MIN_SPINS_PER_DELAY)
    } else {
        (spins_per_delay + 100).min(MAX_SPINS_PER_DELAY)
    }
}

/// As `lab_spin_backoff` says.
pub enum ChosenBackOff {
    Fixed(Fixed),
    Adaptive(Adaptive),
}

impl BackOff for ChosenBackOff {
    const NAME: &'static str = "chosen";

    fn begin() -> ChosenBackOff {
        match lab::back_off() {
            BackOffForm::Fixed => ChosenBackOff::Fixed(Fixed::begin()),
            BackOffForm::Adaptive => ChosenBackOff::Adaptive(Adaptive::begin()),
        }
    }
    fn pause(&mut self) {
        match self {
            ChosenBackOff::Fixed(fixed) => fixed.pause(),
            ChosenBackOff::Adaptive(adaptive) => adaptive.pause(),
        }
    }
    fn end(self) {
        match self {
            ChosenBackOff::Fixed(fixed) => fixed.end(),
            ChosenBackOff::Adaptive(adaptive) => adaptive.end(),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn spinning_that_pays_is_tried_longer_and_spinning_in_vain_shorter() {
        let mut spins = DEFAULT_SPINS_PER_DELAY;
        for _ in 0..20 {
            spins = learnt(spins, false);
        }
        assert_eq!(spins, MAX_SPINS_PER_DELAY);
        assert_eq!(learnt(spins, true), MAX_SPINS_PER_DELAY - 1);
        for _ in 0..2_000 {
            spins = learnt(spins, true);
        }
        assert_eq!(spins, MIN_SPINS_PER_DELAY);
    }

    #[test]
    fn a_wait_without_a_delay_is_remembered_by_its_thread() {
        std::thread::spawn(|| {
            let mut wait = Adaptive::begin();
            wait.pause();
            wait.end();
            assert_eq!(SPINS_PER_DELAY.get(), DEFAULT_SPINS_PER_DELAY + 100);
            let mut wait = Adaptive::begin();
            for _ in 0..DEFAULT_SPINS_PER_DELAY + 100 {
                wait.pause();
            }
            assert!(wait.delayed);
            wait.end();
            assert_eq!(SPINS_PER_DELAY.get(), DEFAULT_SPINS_PER_DELAY + 99);
        })
        .join()
        .unwrap();
    }
}
