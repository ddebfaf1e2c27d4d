//! How a loop tells its sessions that the server stops: each is woken once, and asks one flag
//! whenever it runs.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use throng_types::Error;
use throng_types::error::state;

/// Why the server stops: shared by its loops.
#[derive(Default)]
pub struct Cause {
    storage_failed: AtomicBool,
}

impl Cause {
    /// To be said before the loops are told to stop.
    pub fn storage_failed(&self) {
        self.storage_failed.store(true, Ordering::Release);
    }

    /// What sessions end with.
    fn error(&self) -> Error {
        if !self.storage_failed.load(Ordering::Acquire) {
            let message = "terminating connection due to administrator command";
            return Error::new(state::ADMIN_SHUTDOWN, message);
        }
        let message = "terminating connection because of crash of another server process";
        Error::new(state::CRASH_SHUTDOWN, message)
            .detail("A write to storage has failed; the server starts anew and recovers from its log.")
            .hint("In a moment you should be able to reconnect to the database and repeat your command.")
    }
}

#[derive(Default)]
pub struct Shutdown {
    cause: Arc<Cause>,
    is_said: Cell<bool>,
    sessions: RefCell<HashMap<u64, Waker>>,
    /// Sessions so far.
    count: Cell<u64>,
}

impl Shutdown {
    pub fn new(cause: Arc<Cause>) -> Shutdown {
        Shutdown {
            cause,
            ..Shutdown::default()
        }
    }

    /// What sessions end with, once it is said.
    pub fn error(&self) -> Error {
        self.cause.error()
    }

    pub fn say(&self) {
        self.is_said.set(true);
        for (_, session) in self.sessions.take() {
            session.wake();
        }
    }

    /// Waits for it: of one task.
    pub fn said(self: Rc<Self>) -> Said {
        Said {
            stop: self,
            session: None,
        }
    }
}

pub struct Said {
    stop: Rc<Shutdown>,
    session: Option<u64>,
}

impl Future for Said {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.stop.is_said.get() {
            return Poll::Ready(());
        }
        if self.session.is_none() {
            let number = self.stop.count.get() + 1;
            self.stop.count.set(number);
            self.session = Some(number);
            let waker = cx.waker().clone();
            self.stop.sessions.borrow_mut().insert(number, waker);
        }
        Poll::Pending
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        if let Some(number) = self.session {
            self.stop.sessions.borrow_mut().remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_who_wait_hear_it_and_who_has_gone_is_forgotten() {
        let stop = Rc::new(Shutdown::default());
        let mut gone = Box::pin(stop.clone().said());
        std::future::poll_fn(|cx| {
            assert!(gone.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        assert_eq!(stop.sessions.borrow().len(), 1);
        drop(gone);
        assert!(stop.sessions.borrow().is_empty());
        let says = async {
            tokio::task::yield_now().await;
            stop.say();
        };
        tokio::join!(stop.clone().said(), stop.clone().said(), says);
        stop.clone().said().await;
    }
}
