//! Why a call could not go on, and how to wait until it can.
//!
//! Nothing in storage waits for a page. A call that meets a page that is not in memory gives up, holding no latch and
//! having changed nothing, and returns what to wait for; its caller awaits that (or, owning its thread, blocks) and calls
//! again:
//!
//! ```text
//! attempt() ── Ok ──────────────► done
//!     ▲ └───── Err(Wait) ─► await it ─┐
//!     └──── keeping the Wait ─────────┘     until the next attempt has run: it pins the page it brought
//! ```
//!
//! A [`Wait`] that is dropped early costs nothing and loses nothing: the read goes on and its page is then like any other.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use throng_observe::{WaitEvent, record_wait};
use throng_types::{Error, FileId, Result};

use crate::request::ReadRequest;
use crate::stock::Stock;

/// Why a restartable call stopped.
#[derive(Debug)]
pub enum Interrupt {
    /// Wait for this, then call again.
    Wait(Wait),
    /// Tell the client.
    Error(Error),
}

/// The result of a restartable call.
pub type Try<T> = std::result::Result<T, Interrupt>;

impl From<Error> for Interrupt {
    fn from(error: Error) -> Interrupt {
        Interrupt::Error(error)
    }
}

/// Something that will happen without the caller's doing: a page arrives, a frame comes free, the log has room.
///
/// A future, cancel-safe, and not to be dropped before the next attempt has run (see the module's picture).
#[must_use = "a wait that nobody waits for is a busy loop"]
pub struct Wait {
    event: WaitEvent,
    object: u64,
    since: Option<Instant>,
    source: Source,
}

enum Source {
    Read { request: Arc<ReadRequest>, slot: Option<usize> },
    Frames { stock: Arc<Stock>, seen: u64 },
    Other(Pin<Box<dyn Future<Output = Result<()>> + Send>>),
}

impl Wait {
    /// `event` tells whether this caller asked for the read or joined another's.
    pub(crate) fn for_read(request: Arc<ReadRequest>, event: WaitEvent) -> Wait {
        let object = request.page().raw();
        Wait {
            event,
            object,
            since: None,
            source: Source::Read { request, slot: None },
        }
    }

    /// `seen` is the stock's epoch from before it was found empty.
    pub(crate) fn for_frames(stock: Arc<Stock>, file: FileId, seen: u64) -> Wait {
        Wait {
            event: WaitEvent::FreeFrame,
            object: file.0.into(),
            since: None,
            source: Source::Frames { stock, seen },
        }
    }

    /// Waits for any future: what rooms above need beside pages. `event` and `object` are what monitoring shows meanwhile.
    pub fn for_future(
        event: WaitEvent,
        object: u64,
        future: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Wait {
        Wait { event, object, since: None, source: Source::Other(Box::pin(future)) }
    }

    /// What `pg_stat_activity` shows while this lasts.
    pub fn event(&self) -> WaitEvent {
        self.event
    }

    /// What is waited for: a page id's raw number for pages.
    pub fn object(&self) -> u64 {
        self.object
    }

    /// Waits on this thread. For threads that serve nobody else: recovery, the cleaner, analytics.
    ///
    /// # Errors
    /// What the awaited thing failed with, such as XX001 for a page that is damaged.
    pub fn block(mut self) -> Result<()> {
        self.block_on()
    }

    /// As [`Wait::block`], keeping the page it brought pinned until `self` is dropped.
    pub fn block_on(&mut self) -> Result<()> {
        let waker = thread_waker();
        let mut context = Context::from_waker(&waker);
        let mut this = pin!(self);
        loop {
            match this.as_mut().poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Future for Wait {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        let polled = match &mut this.source {
            Source::Read { request, slot } => request.poll(slot, context),
            Source::Frames { stock, seen } => stock.poll_refilled(*seen, context).map(Ok),
            Source::Other(future) => future.as_mut().poll(context),
        };
        match (&polled, this.since) {
            (Poll::Pending, None) => this.since = Some(Instant::now()),
            (Poll::Ready(_), Some(since)) => {
                record_wait(this.event, this.object, since.elapsed().as_nanos() as u64);
                this.since = None;
            }
            _ => {}
        }
        polled
    }
}

impl std::fmt::Debug for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wait({:?} on {:#x})", self.event, self.object)
    }
}

/// Calls `attempt` until it succeeds or fails, awaiting in between. `attempt` starts over each time.
///
/// # Errors
/// What `attempt`, or a wait, failed with.
pub async fn retry<T>(mut attempt: impl FnMut() -> Try<T>) -> Result<T> {
    // Dropped when replaced, that is after the attempt it was held for.
    let mut held: Option<Wait> = None;
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Error(error)) => return Err(error),
            Err(Interrupt::Wait(wait)) => {
                // Not held while waiting for another: sessions that each pinned a page and waited for a frame would wait forever.
                drop(held.take());
                (&mut *held.insert(wait)).await?;
            }
        }
    }
}

/// As [`retry`], blocking this thread.
///
/// # Errors
/// What `attempt`, or a wait, failed with.
pub fn retry_blocking<T>(mut attempt: impl FnMut() -> Try<T>) -> Result<T> {
    let mut held: Option<Wait> = None;
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Error(error)) => return Err(error),
            Err(Interrupt::Wait(wait)) => {
                drop(held.take());
                held.insert(wait).block_on()?;
            }
        }
    }
}

struct ThreadWaker(std::thread::Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

fn thread_waker() -> Waker {
    thread_local! {
        static WAKER: Waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    }
    WAKER.with(Waker::clone)
}
