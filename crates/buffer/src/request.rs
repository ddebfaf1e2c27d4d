//! Pages on their way in: one request a page, however many want it.
//!
//! ```text
//!              begin(page)                       complete(frame, pinned)          last Arc dropped
//!   (nothing) ─────────────► registered, pending ───────────────────────► done ───────────────────► unpinned
//!                │ others: begin(page) = the same request                  │ wakers called
//!                └─────────────────────────────────────────────────────────┘
//! ```
//!
//! While a request is registered nobody else can bring its page in, so a copy read from disk can
//! never overwrite a newer one that came, changed and went meanwhile. A request leaves the registry
//! only after its page is in the page table: whoever looks at the registry first and the table
//! second meets one of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use foldhash::fast::FixedState;
use throng_sync::{CachePadded, Spinlock};
use throng_types::{Error, FileId, PageId, Result};

use crate::frames::{FrameNo, Frames};

/// A page being read, for everyone who waits for it.
pub(crate) struct ReadRequest {
    page: PageId,
    /// Loaded without the reference bit, so that the clock takes it again at once unless somebody
    /// touches it.
    transient: bool,
    /// The memory node of who asked first: where the page should be.
    home: u16,
    frames: Arc<Frames>,
    outcome: Spinlock<Outcome>,
}

enum Outcome {
    Pending(Vec<Option<Waker>>),
    /// Where the page is; this request holds one pin on it.
    Arrived(FrameNo),
    Failed(Error),
}

impl ReadRequest {
    fn new(page: PageId, transient: bool, frames: Arc<Frames>) -> ReadRequest {
        ReadRequest {
            page,
            transient,
            home: frames.stock.nodes().here() as u16,
            frames,
            outcome: Spinlock::named("buffer.request", Outcome::Pending(Vec::new())),
        }
    }

    pub(crate) fn page(&self) -> PageId {
        self.page
    }

    pub(crate) fn frames(&self) -> &Arc<Frames> {
        &self.frames
    }

    pub(crate) fn transient(&self) -> bool {
        self.transient
    }

    pub(crate) fn home(&self) -> usize {
        self.home.into()
    }

    /// `slot` is the caller's own memory of where its waker is kept.
    pub(crate) fn poll(
        &self,
        slot: &mut Option<usize>,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let mut outcome = self.outcome.lock();
        match &mut *outcome {
            Outcome::Arrived(_) => Poll::Ready(Ok(())),
            Outcome::Failed(error) => Poll::Ready(Err(error.clone())),
            Outcome::Pending(wakers) => {
                match *slot {
                    Some(at) => wakers[at] = Some(context.waker().clone()),
                    None => {
                        *slot = Some(wakers.len());
                        wakers.push(Some(context.waker().clone()));
                    }
                }
                Poll::Pending
            }
        }
    }

    /// Ends the request. On success the frame is already in the page table, with a pin that becomes
    /// this request's.
    pub(crate) fn complete(&self, result: Result<FrameNo>) {
        let outcome = match result {
            Ok(frame) => Outcome::Arrived(frame),
            Err(error) => Outcome::Failed(error),
        };
        let before = std::mem::replace(&mut *self.outcome.lock(), outcome);
        // Outside the lock: a waker may run anything.
        match before {
            Outcome::Pending(wakers) => wakers.into_iter().flatten().for_each(Waker::wake),
            _ => panic!("a read of page {:?} was completed twice", self.page),
        }
    }
}

impl Drop for ReadRequest {
    fn drop(&mut self) {
        if let Outcome::Arrived(frame) = *self.outcome.lock() {
            self.frames.unpin(frame);
        }
    }
}

/// Every read that is under way, by page.
pub(crate) struct Registry {
    frames: Arc<Frames>,
    shards: Box<[CachePadded<Spinlock<Shard>>]>,
}

type Shard = HashMap<PageId, Arc<ReadRequest>, FixedState>;

/// What a miss meets.
pub(crate) enum Begun {
    /// The caller must see to it that the page is read.
    Mine(Arc<ReadRequest>),
    /// Somebody else already does.
    Joined(Arc<ReadRequest>),
    /// It has come in since the caller looked.
    Resident,
}

/// Misses are rare beside hits; this many keep them from meeting each other.
const SHARDS: usize = if throng_sync::IS_MODEL { 1 } else { 64 };

impl Registry {
    pub(crate) fn new(frames: Arc<Frames>) -> Registry {
        let shards = (0..SHARDS)
            .map(|_| CachePadded::new(Spinlock::named("buffer.requests", Shard::default())));
        Registry {
            frames,
            shards: shards.collect(),
        }
    }

    fn shard(&self, page: PageId) -> &Spinlock<Shard> {
        &self.shards[crate::frames::table::hash(page) as usize >> 7 & (SHARDS - 1)]
    }

    /// Joins the read of `page`, or registers one. `resident` is asked under the shard's lock,
    /// after the registry.
    pub(crate) fn begin(
        &self,
        page: PageId,
        transient: bool,
        resident: impl FnOnce() -> bool,
    ) -> Begun {
        let mut shard = self.shard(page).lock();
        if let Some(request) = shard.get(&page) {
            return Begun::Joined(request.clone());
        }
        if resident() {
            return Begun::Resident;
        }
        let request = Arc::new(ReadRequest::new(page, transient, self.frames.clone()));
        shard.insert(page, request.clone());
        Begun::Mine(request)
    }

    /// Takes the request out and ends it.
    pub(crate) fn finish(&self, request: &Arc<ReadRequest>, result: Result<FrameNo>) {
        let registered = self.shard(request.page).lock().remove(&request.page);
        debug_assert!(registered.is_some_and(|found| Arc::ptr_eq(&found, request)));
        request.complete(result);
    }

    /// The reads of a file's pages from `first` on that are under way.
    pub(crate) fn of_file(&self, file: FileId, first: u32) -> Vec<Arc<ReadRequest>> {
        let wanted = |page: &PageId| page.file() == file && page.block() >= first;
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            found.extend(
                shard
                    .iter()
                    .filter(|(page, _)| wanted(page))
                    .map(|(_, r)| r.clone()),
            );
        }
        found
    }
}
