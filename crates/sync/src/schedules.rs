//! A test under many schedules, for builds with `--cfg shuttle`.
//!
//! Loom asks for every order of a few instructions; this draws some thousand orders of whole
//! threads by lot. A failure prints its schedule, which `THRONG_SCHEDULE` has run once more.

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{RandomScheduler, ReplayScheduler, Scheduler, UrwRandomScheduler};
use shuttle::{Config, MaxSteps, Runner};
use std::sync::Arc;

pub use shuttle::future::block_on;

/// Steps of an execution after which somebody is taken to go round for ever.
const MOST_STEPS: usize = 1_000_000;

/// Stacks are taken from the heap: deep enough for a statement's way through the rooms,
/// unoptimised.
const STACK: usize = 256 << 10;

/// Runs `test` so many times: half with the next thread drawn at each step, half with threads
/// weighted by the steps they have left, so that schedules are drawn about evenly. Fails when one
/// panics, or when all threads of one sleep.
///
/// PCT is not among them: it lets a thread that goes round until another has moved go round for
/// ever.
pub fn check(executions: usize, test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    if let Ok(schedule) = std::env::var("THRONG_SCHEDULE") {
        return run(ReplayScheduler::new_from_encoded(&schedule), &test);
    }
    run(RandomScheduler::new(executions.div_ceil(2)), &test);
    run(UrwRandomScheduler::new(executions / 2), &test);
}

fn run(scheduler: impl Scheduler + 'static, test: &Arc<impl Fn() + Send + Sync + 'static>) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    // Orders are loom's business.
    config.silence_warnings = true;
    let test = test.clone();
    Runner::new(scheduler, config).run(move || test());
}

/// Less than `most`, drawn by lot.
pub fn below(most: u32) -> u32 {
    thread_rng().gen_range(0..most)
}

/// Yes, one time in so many.
pub fn one_in(times: u32) -> bool {
    below(times) == 0
}
