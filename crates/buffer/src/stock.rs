//! Free frames, kept ready so that nobody who needs one has to make one.
//!
//! The page writer refills the stock when it runs low; whoever finds it empty, and no clean page to evict, waits for that.

use std::task::{Context, Poll, Waker};

use throng_sync::atomic::{AtomicU64, Ordering};
use throng_sync::{CachePadded, Parker, Spinlock};

use crate::frame::FreeFrame;

pub(crate) struct Stock {
    free: CachePadded<Spinlock<Vec<FreeFrame>>>,
    /// How many there are: a copy for those who only want to know.
    count: AtomicU64,
    /// Below this the page writer is called.
    low: usize,
    /// Rises with every refill of an empty stock that somebody waits for.
    epoch: AtomicU64,
    waiters: Spinlock<Vec<Waker>>,
    writer: Parker,
}

impl Stock {
    pub(crate) fn new(frames: usize) -> Stock {
        Stock {
            free: CachePadded::new(Spinlock::new(Vec::with_capacity(frames))),
            count: AtomicU64::new(0),
            low: (frames / 64).clamp(2, 1024),
            epoch: AtomicU64::new(0),
            waiters: Spinlock::new(Vec::new()),
            writer: Parker::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Frames the page writer should add for the stock to be full.
    pub(crate) fn missing(&self) -> usize {
        (2 * self.low).saturating_sub(self.len())
    }

    pub(crate) fn take(&self) -> Option<FreeFrame> {
        let mut free = self.free.lock();
        let taken = free.pop();
        let left = free.len();
        self.count.store(left as u64, Ordering::Relaxed);
        drop(free);
        if left < self.low {
            self.writer.unpark();
        }
        taken
    }

    /// Takes at most `wanted`.
    pub(crate) fn take_many(&self, wanted: usize, into: &mut Vec<FreeFrame>) {
        let mut free = self.free.lock();
        let keep = free.len() - wanted.min(free.len());
        into.extend(free.drain(keep..));
        self.count.store(keep as u64, Ordering::Relaxed);
        drop(free);
        if keep < self.low {
            self.writer.unpark();
        }
    }

    pub(crate) fn put(&self, frame: FreeFrame) {
        self.put_all([frame]);
    }

    pub(crate) fn put_all(&self, frames: impl IntoIterator<Item = FreeFrame>) {
        let mut free = self.free.lock();
        free.extend(frames);
        self.count.store(free.len() as u64, Ordering::Relaxed);
        drop(free);
        self.refilled();
    }

    /// To be asked before looking for a frame in vain, and given to [`poll_refilled`](Self::poll_refilled).
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Ready once frames have been put back since `seen`. Somebody else may have taken them again.
    pub(crate) fn poll_refilled(&self, seen: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut waiters = self.waiters.lock();
        if self.epoch() != seen {
            return Poll::Ready(());
        }
        if !waiters
            .iter()
            .any(|waiter| waiter.will_wake(context.waker()))
        {
            waiters.push(context.waker().clone());
        }
        drop(waiters);
        self.writer.unpark();
        Poll::Pending
    }

    fn refilled(&self) {
        let mut waiters = self.waiters.lock();
        // Under the lock: a waiter has either seen the new epoch or is in the list.
        self.epoch.fetch_add(1, Ordering::Release);
        let woken = std::mem::take(&mut *waiters);
        drop(waiters);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The page writer sleeps here until the stock runs low.
    pub(crate) fn writer(&self) -> &Parker {
        &self.writer
    }
}
