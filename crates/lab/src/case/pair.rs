//! Two words that are equal whenever nobody writes them: what tells whether a latch or a pin keeps
//! its promise.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Sample, Turn};
use crate::{Error, Result, crew};

/// Reads between two looks at the stop flag.
const BATCH: u64 = 16;
/// One batch in so many begins with a write: a root changes seldom.
const WRITES: u64 = 64;

#[derive(Default)]
pub struct Pair([AtomicU64; 2]);

impl Pair {
    #[inline]
    pub fn read(&self) -> [u64; 2] {
        self.0.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// Only one at a time.
    pub fn add_one(&self) {
        for word in &self.0 {
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }
}

/// A turn of readers who now and then write. A read that saw the words differ fails the turn, as a
/// read that was `torn`; one that saw nothing is none.
pub fn run(
    turn: &Turn,
    read: impl Fn() -> Option<[u64; 2]> + Sync,
    write: impl Fn() + Sync,
    torn: &str,
) -> Result<Sample> {
    let seen = AtomicU64::new(0);
    let read = || {
        if let Some([a, b]) = read()
            && a != b
        {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    };
    let sample = crew::run(turn, |worker| {
        let mut batches = 0u64;
        while worker.goes_on() {
            if batches.is_multiple_of(WRITES) {
                write();
            }
            batches += 1;
            worker.steps(BATCH, read);
        }
    })?;
    match seen.into_inner() {
        0 => Ok(sample),
        count => Err(Error::failed(format!("{count} reads {torn}"))),
    }
}
