//! Timers: tokio's or, in a model, which has no time, one turn of the others.

#[cfg(not(shuttle))]
pub(crate) use tokio::time::{Sleep, sleep, sleep_until};

#[cfg(shuttle)]
pub(crate) use model::{Sleep, sleep, sleep_until};

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
