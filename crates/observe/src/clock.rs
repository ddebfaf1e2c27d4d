//! The clock that waits are measured with.

use std::sync::OnceLock;
use std::time::Instant;

static START: OnceLock<Instant> = OnceLock::new();

/// Nanoseconds on the monotonic clock since the process first asked. Linux answers without a system call.
#[inline]
pub fn now_nanos() -> u64 {
    // 2^64 ns are five centuries.
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back() {
        let mut last = now_nanos();
        for _ in 0..1000 {
            let now = now_nanos();
            assert!(now >= last);
            last = now;
        }
    }
}
