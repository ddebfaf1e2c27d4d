//! The time of day, and timers: tokio's or, in a model, which has no time, one turn of the others.

use rustix::time::{ClockId, clock_gettime};

#[cfg(not(shuttle))]
pub(crate) use tokio::time::{Sleep, sleep, sleep_until};

#[cfg(shuttle)]
pub(crate) use model::{Sleep, sleep, sleep_until};

/// Microseconds since 1970.
pub fn now_micros() -> i64 {
    micros(ClockId::Realtime)
}

/// The same, some milliseconds late at most, for an eighth of what it costs.
pub(crate) fn coarse_micros() -> i64 {
    micros(ClockId::RealtimeCoarse)
}

fn micros(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

#[cfg(shuttle)]
mod model {
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    /// Over when it is looked at a second time.
    pub(crate) struct Sleep {
        looked_at: bool,
    }

    pub(crate) fn sleep(_: Duration) -> Sleep {
        Sleep { looked_at: false }
    }

    pub(crate) fn sleep_until(_: tokio::time::Instant) -> Sleep {
        Sleep { looked_at: false }
    }

    impl Future for Sleep {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            if std::mem::replace(&mut self.looked_at, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }
    }
}
