//! Waiting for the log: as a future, or blocking.

use crate::shared::{FLUSHER, Shared};
use crate::waiters::Ticket;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use throng_observe::{Object, WaitEvent, Waiting, holder_named, waiting};
use throng_sync::block_on;
use throng_types::{Error, Lsn, Result};

/// Ready when everything below an LSN is flushed. See [`Wal::flush`](crate::Wal::flush).
#[must_use = "nothing is waited for until this is awaited"]
pub struct FlushWait(FlushState);

enum FlushState {
    Done(Result<()>),
    New {
        shared: Arc<Shared>,
        lsn: Lsn,
    },
    Listed {
        shared: Arc<Shared>,
        lsn: Lsn,
        ticket: Ticket,
        _wait: Waiting,
    },
}

impl FlushWait {
    #[inline]
    pub(crate) fn new(shared: &Arc<Shared>, lsn: Lsn) -> FlushWait {
        FlushWait(match outcome(shared, lsn) {
            Some(done) => FlushState::Done(done),
            None if lsn.0 > shared.buffer.tail() => {
                FlushState::Done(Err(beyond_the_end(shared, lsn)))
            }
            None => FlushState::New {
                shared: shared.clone(),
                lsn,
            },
        })
    }

    /// Waits on the calling thread.
    pub fn block(self) -> Result<()> {
        block_on(self)
    }
}

/// `None` while everything below `lsn` is neither flushed nor past hope.
fn outcome(shared: &Shared, lsn: Lsn) -> Option<Result<()>> {
    if shared.flushed() >= lsn {
        return Some(Ok(()));
    }
    let error = shared.failed()?;
    // It may have been flushed just before the failure.
    Some(if shared.flushed() >= lsn {
        Ok(())
    } else {
        Err(error.clone())
    })
}

/// No record has this LSN: it was read from a page that is corrupt, or belongs to another log.
#[cold]
fn beyond_the_end(shared: &Shared, lsn: Lsn) -> Error {
    let end = shared.buffer.tail();
    Error::corrupted(format!(
        "the log cannot be flushed up to {lsn}: it ends at {end}"
    ))
}

/// How far waiters need not wait any more.
fn settled(shared: &Shared) -> Lsn {
    if shared.failed().is_some() {
        Lsn::MAX
    } else {
        shared.flushed()
    }
}

impl Future for FlushWait {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match &self.0 {
            FlushState::Done(done) => Poll::Ready(done.clone()),
            FlushState::New { shared, lsn } => {
                let (shared, lsn) = (shared.clone(), *lsn);
                let entered = shared
                    .flush_waiters
                    .enter(lsn, cx.waker(), || outcome(&shared, lsn).is_some());
                match entered {
                    Some(ticket) => {
                        shared.want(lsn);
                        let _wait = flush_waiting(lsn);
                        self.0 = FlushState::Listed {
                            shared,
                            lsn,
                            ticket,
                            _wait,
                        };
                        Poll::Pending
                    }
                    None => self.finish(&shared, lsn),
                }
            }
            FlushState::Listed {
                shared,
                lsn,
                ticket,
                ..
            } => {
                let listed = shared.flush_waiters.renew(*ticket, cx.waker());
                if listed && outcome(shared, *lsn).is_none() {
                    return Poll::Pending;
                }
                let (shared, lsn) = (shared.clone(), *lsn);
                self.leave();
                self.finish(&shared, lsn)
            }
        }
    }
}

fn flush_waiting(lsn: Lsn) -> Waiting {
    waiting(WaitEvent::WalFlush, Object::lsn(lsn.0)).held_by(holder_named(FLUSHER))
}

impl FlushWait {
    fn finish(&mut self, shared: &Shared, lsn: Lsn) -> Poll<Result<()>> {
        let done = outcome(shared, lsn).expect("a waiter leaves its list when its wait is over");
        self.0 = FlushState::Done(done.clone());
        Poll::Ready(done)
    }
    fn leave(&mut self) {
        if let FlushState::Listed { shared, ticket, .. } = &self.0 {
            shared.flush_waiters.leave(*ticket, || settled(shared));
        }
    }
}

impl Drop for FlushWait {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Ready when the ring has room. See [`Wal::room_wait`](crate::Wal::room_wait).
#[must_use = "nothing is waited for until this is awaited"]
pub struct RoomWait {
    shared: Arc<Shared>,
    need: Need,
    wait: Option<Waiting>,
}

#[derive(Clone, Copy)]
enum Need {
    Comfort,
    /// This byte may be copied.
    Position(u64),
}

impl RoomWait {
    pub(crate) fn new(shared: &Arc<Shared>) -> RoomWait {
        RoomWait {
            shared: shared.clone(),
            need: Need::Comfort,
            wait: None,
        }
    }
    pub(crate) fn for_position(shared: &Arc<Shared>, at: u64) -> RoomWait {
        RoomWait {
            shared: shared.clone(),
            need: Need::Position(at),
            wait: None,
        }
    }
    /// Waits on the calling thread.
    pub fn block(self) -> Result<()> {
        block_on(self)
    }
    /// As [`block`](Self::block); a failed log has room for everything.
    pub(crate) fn block_for_insert(self) {
        let _ = block_on(self);
    }

    fn satisfied(&self) -> bool {
        match self.need {
            Need::Comfort => self.shared.has_room(),
            Need::Position(at) => self.shared.buffer.may_copy(at),
        }
    }
}

impl Future for RoomWait {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        for registered in [false, true] {
            if let Some(error) = self.shared.failed() {
                return Poll::Ready(Err(error.clone()));
            }
            if self.satisfied() {
                self.wait = None;
                return Poll::Ready(Ok(()));
            }
            // The flusher frees room first and takes the lock after: we look once more after the
            // lock.
            if !registered {
                self.shared.room_waiters.enter(cx.waker());
            }
        }
        self.shared.kick();
        if self.wait.is_none() {
            let tail = Object::lsn(self.shared.buffer.tail());
            let wait = waiting(WaitEvent::WalInsert, tail).held_by(holder_named(FLUSHER));
            self.wait = Some(wait);
        }
        Poll::Pending
    }
}
