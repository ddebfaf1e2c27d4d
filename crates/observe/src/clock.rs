//! The clock that waits are measured with.
//!
//! A wait costs two looks at it, and every statement has a few waits, so a look has to be cheap.
//! Where Linux itself keeps time by the processor's time-stamp counter, that is, where it has found
//! the counter to run at one rate and alike on all cores, it is read without going through
//! `clock_gettime`; anywhere else, and under Miri, the standard library's monotonic clock is asked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Nanoseconds on a monotonic clock since the process first asked; never 0. No system call.
#[inline]
pub fn now_nanos() -> u64 {
    // 2^64 ns are five centuries.
    CLOCK.get_or_init(Clock::new).nanos()
}

/// Nanoseconds of processor time that the calling thread has used. A system call, and not known to
/// Miri, for which it is 0.
pub fn thread_cpu_nanos() -> u64 {
    if cfg!(miri) {
        return 0;
    }
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// Nanoseconds for which a look at a thread's processor time is good enough: it is a system call.
const LATELY: u64 = 1_000_000;

/// Processor time that a thread has used, looked at now and then.
pub(crate) struct UsedLately {
    looked: AtomicU64,
    used: AtomicU64,
}

impl UsedLately {
    pub(crate) const fn new() -> UsedLately {
        UsedLately {
            looked: AtomicU64::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// By the slot's own thread, when a session begins to run on it.
    #[inline]
    pub(crate) fn begins(&self, now: u64) {
        if now.saturating_sub(self.looked.load(Ordering::Relaxed)) > LATELY {
            self.look(now);
        }
    }

    #[cold]
    fn look(&self, now: u64) {
        self.looked.store(now, Ordering::Relaxed);
        self.used.store(thread_cpu_nanos(), Ordering::Relaxed);
    }

    /// What was used since, at most: in a stretch of `nanos` that has just ended.
    pub(crate) fn of_last(&self, nanos: u64) -> u64 {
        let used = thread_cpu_nanos().saturating_sub(self.used.load(Ordering::Relaxed));
        used.min(nanos)
    }
}

static CLOCK: OnceLock<Clock> = OnceLock::new();

struct Clock {
    start: Instant,
    counter: Option<Counter>,
}

impl Clock {
    #[cold]
    fn new() -> Clock {
        Clock {
            start: Instant::now(),
            counter: Counter::calibrated(),
        }
    }

    #[inline]
    fn nanos(&self) -> u64 {
        1 + match &self.counter {
            Some(counter) => counter.nanos(),
            None => self.start.elapsed().as_nanos() as u64,
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
use tsc::Counter;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
use none::Counter;

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod tsc {
    use std::time::{Duration, Instant};

    /// How long the counter is compared with the system's clock: an error of 100 ns in that is one
    /// in ten thousand.
    const CALIBRATION: Duration = Duration::from_millis(1);
    /// Binary places of [`Counter::nanos_per_tick`].
    const SHIFT: u32 = 32;

    pub(super) struct Counter {
        first: u64,
        /// Fixed point. Ticks come at 0.1 to 10 a nanosecond, so this fits.
        nanos_per_tick: u64,
    }

    impl Counter {
        /// None where the kernel does not trust the counter.
        pub(super) fn calibrated() -> Option<Counter> {
            let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
            let trusted = std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc");
            if !trusted {
                return None;
            }
            let (began, first) = (Instant::now(), ticks());
            while began.elapsed() < CALIBRATION {
                std::hint::spin_loop();
            }
            let (nanos, passed) = (began.elapsed().as_nanos(), ticks().wrapping_sub(first));
            let nanos_per_tick = (nanos << SHIFT).checked_div(u128::from(passed))?;
            Some(Counter {
                first,
                nanos_per_tick: u64::try_from(nanos_per_tick).ok()?,
            })
        }

        #[inline]
        pub(super) fn nanos(&self) -> u64 {
            // Saturating: another core's counter may be a few ticks behind that of the one that
            // looked first.
            let ticks = ticks().saturating_sub(self.first);
            ((u128::from(ticks) * u128::from(self.nanos_per_tick)) >> SHIFT) as u64
        }
    }

    #[inline]
    fn ticks() -> u64 {
        // SAFETY: RDTSC reads a register and touches no memory; every x86_64 processor has it, and
        // Linux, which uses it for its own clock in user space, has not forbidden it here (a
        // process that did so to itself by PR_SET_TSC would be stopped by a signal, not left in an
        // undefined state).
        unsafe { std::arch::x86_64::_rdtsc() }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
mod none {
    /// No counter that is known to be better than the system's clock.
    pub(super) enum Counter {}

    impl Counter {
        pub(super) fn calibrated() -> Option<Counter> {
            None
        }
        pub(super) fn nanos(&self) -> u64 {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_never_goes_back() {
        let mut last = now_nanos();
        for _ in 0..1000 {
            let now = now_nanos();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn it_goes_at_the_systems_rate() {
        let (began, first) = (Instant::now(), now_nanos());
        while began.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let (system, ours) = (began.elapsed().as_nanos() as f64, now_nanos() - first);
        let ratio = ours as f64 / system;
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }
}
