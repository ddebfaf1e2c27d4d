//! Free frames, kept ready so that nobody who needs one has to make one.
//!
//! The page writer refills the stock when it runs low; whoever finds it empty, and no clean page to evict, waits for that.
//!
//! On a machine with several memory nodes there is a part for each: a frame belongs to the part whose node its memory is in,
//! and a thread takes frames of its own node while there are any, then others'.
//!
//! ```text
//!  frames   0 … k-1 | k … 2k-1 | …        part of frame f = f / k
//!  parts       0    |    1     | …        each a list under its own spinlock, on its own cache lines
//! ```

use std::task::{Context, Poll, Waker};

use throng_sync::atomic::{AtomicU64, Ordering};
use throng_sync::{CachePadded, Nodes, Parker, Spinlock};

use crate::frame::FreeFrame;

/// One node's free frames.
struct Part {
    free: Spinlock<Vec<FreeFrame>>,
    /// How many there are: a copy for those who only want to know.
    count: AtomicU64,
}

impl Part {
    fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Takes at most `wanted`; how many are left.
    fn take(&self, wanted: usize, into: &mut Vec<FreeFrame>) -> usize {
        let mut free = self.free.lock();
        let keep = free.len() - wanted.min(free.len());
        into.extend(free.drain(keep..));
        self.count.store(keep as u64, Ordering::Relaxed);
        keep
    }

    fn pop(&self) -> (Option<FreeFrame>, usize) {
        let mut free = self.free.lock();
        let taken = free.pop();
        let left = free.len();
        self.count.store(left as u64, Ordering::Relaxed);
        (taken, left)
    }

    fn push(&self, frame: FreeFrame) {
        let mut free = self.free.lock();
        free.push(frame);
        self.count.store(free.len() as u64, Ordering::Relaxed);
    }
}

pub(crate) struct Stock {
    parts: Box<[CachePadded<Part>]>,
    nodes: Nodes,
    /// Frames of a part, but perhaps for the last.
    part_size: usize,
    /// With fewer in a part the page writer is called.
    low: usize,
    /// Rises with every refill of an empty stock that somebody waits for.
    epoch: AtomicU64,
    waiters: Spinlock<Vec<Waker>>,
    writer: Parker,
}

impl Stock {
    /// For so many frames, split over the nodes; empty.
    pub(crate) fn new(frames: usize, nodes: Nodes) -> Stock {
        let part_size = frames.div_ceil(nodes.count());
        let part = |_| {
            CachePadded::new(Part {
                free: Spinlock::named("buffer.stock", Vec::with_capacity(part_size)),
                count: AtomicU64::new(0),
            })
        };
        Stock {
            parts: (0..nodes.count()).map(part).collect(),
            nodes,
            part_size,
            low: (part_size / 64).clamp(2, 1024),
            epoch: AtomicU64::new(0),
            waiters: Spinlock::named("buffer.stock.waiters", Vec::new()),
            writer: Parker::new(),
        }
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The part whose node's memory a frame has.
    pub(crate) fn part_of(&self, frame: u32) -> usize {
        if self.parts.len() == 1 {
            0
        } else {
            frame as usize / self.part_size
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// Frames the page writer should add for every part to be full.
    pub(crate) fn missing(&self) -> usize {
        self.parts.iter().map(|part| self.missing_in(part)).sum()
    }

    fn missing_in(&self, part: &Part) -> usize {
        (2 * self.low).saturating_sub(part.len())
    }

    /// Whether the page writer should add this frame, or one of the same node.
    pub(crate) fn lacks(&self, frame: u32) -> bool {
        self.missing_in(&self.parts[self.part_of(frame)]) > 0
    }

    /// The parts in the order in which a thread of `home` asks them.
    fn from(&self, home: usize) -> impl Iterator<Item = &Part> {
        let (before, after) = self.parts.split_at(home.min(self.parts.len() - 1));
        after.iter().chain(before).map(|part| &**part)
    }

    /// A frame of the node `home` if there is one, else any.
    pub(crate) fn take(&self, home: usize) -> Option<FreeFrame> {
        for part in self.from(home) {
            let (taken, left) = part.pop();
            if left < self.low {
                self.writer.unpark();
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Takes at most `wanted`, those of the node `home` first.
    pub(crate) fn take_many(&self, home: usize, wanted: usize, into: &mut Vec<FreeFrame>) {
        let most = into.len() + wanted;
        for part in self.from(home) {
            if part.take(most - into.len(), into) < self.low {
                self.writer.unpark();
            }
            if into.len() == most {
                return;
            }
        }
    }

    /// As [`take_many`](Self::take_many), but leaves what the page writer keeps ready for others.
    pub(crate) fn take_surplus(&self, home: usize, wanted: usize, into: &mut Vec<FreeFrame>) {
        for part in self.from(home) {
            let surplus = part.len().saturating_sub(2 * self.low);
            part.take(surplus.min(wanted.saturating_sub(into.len())), into);
        }
    }

    pub(crate) fn put(&self, frame: FreeFrame) {
        self.parts[self.part_of(frame.number())].push(frame);
        self.refilled();
    }

    pub(crate) fn put_all(&self, frames: impl IntoIterator<Item = FreeFrame>) {
        for frame in frames {
            self.parts[self.part_of(frame.number())].push(frame);
        }
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
