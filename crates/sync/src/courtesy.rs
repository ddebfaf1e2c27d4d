//! Giving one's core away for a moment.
//!
//! On a full core a thread that is about to wait lets others run first: clients that have something to send, sessions that are
//! about to commit. They need microseconds, and on an idle core the call comes back at once. Whoever computes for long would take a whole
//! time slice, which is milliseconds; so while somebody does, nothing is given away.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many there are.
static COMPUTING: AtomicUsize = AtomicUsize::new(0);

/// Held by whoever computes for long beside the threads that serve.
#[derive(Debug)]
#[must_use = "it counts for as long as it is held"]
pub struct Computing(());

impl Computing {
    pub fn begin() -> Computing {
        COMPUTING.fetch_add(1, Ordering::Relaxed);
        Computing(())
    }

    /// Whether anybody does.
    #[inline]
    pub fn is_under_way() -> bool {
        COMPUTING.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        COMPUTING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets those who need this core for a moment have it. May come back at once, and does where somebody computes.
#[inline]
pub fn yield_core() {
    if !Computing::is_under_way() {
        crate::thread::yield_now();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn it_is_under_way_until_the_last_one_ends() {
        assert!(!Computing::is_under_way());
        let (one, other) = (Computing::begin(), Computing::begin());
        drop(one);
        assert!(Computing::is_under_way());
        drop(other);
        assert!(!Computing::is_under_way());
    }
}
