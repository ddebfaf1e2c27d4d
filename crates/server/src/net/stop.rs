//! How a loop tells its sessions that the server stops: each is woken once, and asks one flag whenever it runs.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
pub struct Stop {
    is_said: Cell<bool>,
    sessions: RefCell<HashMap<u64, Waker>>,
    /// Sessions so far.
    count: Cell<u64>,
}

impl Stop {
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
    stop: Rc<Stop>,
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
        let stop = Rc::new(Stop::default());
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
