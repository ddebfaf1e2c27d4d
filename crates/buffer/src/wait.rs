//! Why a call could not go on, and how to wait until it can.
//!
//! Nothing in storage waits for a page. A call that meets a page that is not in memory gives up,
//! holding no latch and having changed nothing, and returns what to wait for; its caller awaits
//! that (or, owning its thread, blocks) and calls again:
//!
//! ```text
//! attempt() ── Ok ──────────────► done
//!     ▲ └───── Err(Wait) ─► await it ─┐
//!     └──── keeping the Wait ─────────┘     until the next attempt has run: it pins the page it brought
//! ```
//!
//! [`retry`] does all that; [`Patience`] is its memory, for callers with a loop of their own.
//!
//! A [`Wait`] that is dropped early costs nothing and loses nothing: the read goes on and its page
//! is then like any other.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use throng_observe::{Holder, Object, WaitEvent, Waiting, holder_named, waiting};
use throng_sync::block_on;
use throng_types::{Error, FileId, Result};

use crate::frames::Frames;
use crate::frames::free_list::FreeList;
use crate::request::ReadRequest;

/// Who makes frames free, and who fills them: what sessions without a page wait for.
pub(crate) const PAGE_WRITER: &str = "page-writer";
pub(crate) const PAGE_READER: &str = "page-reader";

/// Why a restartable call stopped.
#[derive(Debug)]
pub enum Interrupt {
    /// Wait for this, then call again.
    Wait(Wait),
    /// Much was done: let others have the core for a moment, then call again.
    Yield,
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

/// Something that will happen without the caller's doing: a page arrives, a frame comes free, the
/// log has room.
///
/// A future, cancel-safe, and not to be dropped before the next attempt has run (see the module's
/// picture).
#[must_use = "a wait that nobody waits for is a busy loop"]
pub struct Wait {
    event: WaitEvent,
    object: Object,
    /// From when it was first polled and not ready. None for what records itself.
    waiting: Option<Waiting>,
    source: Source,
}

enum Source {
    Read {
        request: Arc<ReadRequest>,
        slot: Option<usize>,
    },
    Frames {
        stock: Arc<FreeList>,
        seen: u64,
    },
    Other(Pin<Box<dyn Future<Output = Result<()>> + Send>>),
    /// A future that records its own wait.
    Recorded(Pin<Box<dyn Future<Output = Result<()>> + Send>>),
}

impl Wait {
    /// `event` tells whether this caller asked for the read or joined another's.
    pub(crate) fn for_read(request: Arc<ReadRequest>, event: WaitEvent) -> Wait {
        let object = Object::page(request.page().raw());
        Wait {
            event,
            object,
            waiting: None,
            source: Source::Read {
                request,
                slot: None,
            },
        }
    }

    /// `seen` is the stock's epoch from before it was found empty.
    pub(crate) fn for_frames(stock: Arc<FreeList>, file: FileId, seen: u64) -> Wait {
        Wait {
            event: WaitEvent::FreeFrame,
            object: Object::file(file.0),
            waiting: None,
            source: Source::Frames { stock, seen },
        }
    }

    /// Waits for any future: what rooms above need beside pages. `event` and `object` are what
    /// monitoring shows meanwhile.
    pub fn for_future(
        event: WaitEvent,
        object: impl Into<Object>,
        future: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Wait {
        Wait {
            event,
            object: object.into(),
            waiting: None,
            source: Source::Other(Box::pin(future)),
        }
    }

    /// As [`for_future`](Wait::for_future), for a future that records its wait itself: nothing is
    /// counted twice.
    pub fn for_recorded(
        event: WaitEvent,
        object: impl Into<Object>,
        future: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Wait {
        Wait {
            event,
            object: object.into(),
            waiting: None,
            source: Source::Recorded(Box::pin(future)),
        }
    }

    /// What `pg_stat_activity` shows while this lasts.
    pub fn event(&self) -> WaitEvent {
        self.event
    }

    /// What is waited for.
    pub fn object(&self) -> Object {
        self.object
    }

    fn try_priority(&self) -> Option<Priority> {
        let Source::Read { request, .. } = &self.source else {
            return None;
        };
        let frames = request.frames();
        frames.try_priority().then(|| Priority(frames.clone()))
    }

    /// Waits on this thread. For threads that serve nobody else: recovery, the cleaner, analytics.
    ///
    /// # Errors
    /// What the awaited thing failed with, such as XX001 for a page that is damaged.
    pub fn block(self) -> Result<()> {
        block_on(self)
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
            Source::Recorded(future) => return future.as_mut().poll(context),
        };
        if polled.is_ready() {
            this.waiting = None;
        } else if this.waiting.is_none() {
            let holder = match &this.source {
                Source::Read { .. } => holder_named(PAGE_READER),
                Source::Frames { .. } => holder_named(PAGE_WRITER),
                Source::Other(_) | Source::Recorded(_) => Holder::NONE,
            };
            this.waiting = Some(waiting(this.event, this.object).held_by(holder));
        }
        polled
    }
}

impl std::fmt::Debug for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wait({:?} on {:?})", self.event, self.object)
    }
}

/// The waits of one restartable call, from its first attempt to its last: what is to be kept
/// between attempts.
///
/// As a rule that is the last wait: a caller that kept more, and waited for yet another page, could
/// be one of many that hold all frames and wait for one. But a call that needs several pages at
/// once may then, in a pool much too small for its sessions, find each time that one of them has
/// gone. So after [`FAIR_WAITS`](Self::FAIR_WAITS) it tries for the pool's one priority, and with
/// that keeps the last [`MOST_HELD`](Self::MOST_HELD) until it is done.
#[derive(Default)]
pub struct Patience {
    held: Vec<Wait>,
    waits: u32,
    priority: Option<Priority>,
}

impl Patience {
    /// Waits after which a call no longer relies on luck.
    pub const FAIR_WAITS: u32 = 12;

    /// Pages kept at most: half of the smallest pool. A call that goes through many pages and keeps
    /// its progress waits for each of them, and needs none but the last.
    pub const MOST_HELD: usize = crate::PoolConfig::MIN_FRAMES / 2;

    /// Waits for what the last attempt lacked.
    ///
    /// # Errors
    /// What the wait failed with.
    pub async fn wait(&mut self, wait: Wait) -> Result<()> {
        self.hold(wait).await
    }

    /// As [`wait`](Self::wait), blocking this thread.
    ///
    /// # Errors
    /// What the wait failed with.
    pub fn block(&mut self, wait: Wait) -> Result<()> {
        block_on(self.hold(wait))
    }

    fn hold(&mut self, wait: Wait) -> &mut Wait {
        self.waits += 1;
        if self.waits > Patience::FAIR_WAITS && self.priority.is_none() {
            self.priority = wait.try_priority();
        }
        if self.priority.is_none() {
            self.held.clear();
        } else if self.held.len() == Patience::MOST_HELD {
            drop(self.held.remove(0));
        }
        self.held.push(wait);
        self.held.last_mut().expect("just pushed")
    }
}

/// The right, of one caller a pool at a time, to keep several pages while waiting for another.
struct Priority(Arc<Frames>);

impl Drop for Priority {
    fn drop(&mut self) {
        self.0.leave_priority();
    }
}

/// Calls `attempt` until it succeeds or fails, awaiting in between. `attempt` starts over each
/// time.
///
/// # Errors
/// What `attempt`, or a wait, failed with.
pub async fn retry<T>(mut attempt: impl FnMut() -> Try<T>) -> Result<T> {
    let mut patience = Patience::default();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Error(error)) => return Err(error),
            Err(Interrupt::Wait(wait)) => patience.wait(wait).await?,
            Err(Interrupt::Yield) => give_way().await,
        }
    }
}

/// Lets the other tasks of this thread run once. Where sessions take turns, their line is the
/// better way.
async fn give_way() {
    let mut given = false;
    poll_fn(|context| {
        if given {
            return Poll::Ready(());
        }
        given = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// As [`retry`], blocking this thread.
///
/// # Errors
/// What `attempt`, or a wait, failed with.
pub fn retry_blocking<T>(mut attempt: impl FnMut() -> Try<T>) -> Result<T> {
    let mut patience = Patience::default();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Error(error)) => return Err(error),
            Err(Interrupt::Wait(wait)) => patience.block(wait)?,
            Err(Interrupt::Yield) => {}
        }
    }
}
