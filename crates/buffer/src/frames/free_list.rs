//! Free frames, kept ready so that nobody who needs one has to make one.
//!
//! The page writer refills the stock when it runs low; whoever finds it empty, and no clean page to
//! evict, waits for that, in line. New frames wake the first of the line, and whoever takes some
//! and leaves others the next: a page that comes free does not wake everyone. While somebody waits,
//! a session that makes a file longer does not look for a clean page itself: the page writer, who
//! turns the same clock, has found none.
//!
//! One in the line may have gone away, and take the call for it along. So the page writer, before
//! it sleeps, wakes all if there are frames: who waits has called it.
//!
//! On a machine with several memory nodes there is a part for each: a frame belongs to the part
//! whose node its memory is in, and a thread takes frames of its own node while there are any, then
//! others'.
//!
//! ```text
//!  frames   0 … k-1 | k … 2k-1 | …        part of frame f = f / k
//!  parts       0    |    1     | …        each a list under its own spinlock, on its own cache lines
//! ```

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use throng_sync::atomic::{AtomicU64, Ordering};
use throng_sync::{CachePadded, Nodes, Parker, Spinlock};

use crate::frames::FreeFrame;

/// One node's free frames.
struct NodeFrames {
    free: Spinlock<Vec<FreeFrame>>,
    /// How many there are: a copy for those who only want to know.
    count: AtomicU64,
}

impl NodeFrames {
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

pub(crate) struct FreeList {
    parts: Box<[CachePadded<NodeFrames>]>,
    nodes: Nodes,
    /// Frames of a part, but perhaps for the last.
    part_size: usize,
    /// With fewer in a part the page writer is called.
    low: usize,
    /// Rises whenever frames are put back.
    epoch: AtomicU64,
    waiters: Spinlock<VecDeque<Waker>>,
    /// How many there are: a copy for those who only want to know.
    waiting: AtomicU64,
    writer: Parker,
}

impl FreeList {
    /// For so many frames, split over the nodes; empty.
    pub(crate) fn new(frames: usize, nodes: Nodes) -> FreeList {
        let part_size = frames.div_ceil(nodes.count());
        let part = |_| {
            CachePadded::new(NodeFrames {
                free: Spinlock::named("buffer.stock", Vec::with_capacity(part_size)),
                count: AtomicU64::new(0),
            })
        };
        FreeList {
            parts: (0..nodes.count()).map(part).collect(),
            nodes,
            part_size,
            low: (part_size / 64).clamp(2, 1024),
            epoch: AtomicU64::new(0),
            waiters: Spinlock::named("buffer.stock.waiters", VecDeque::new()),
            waiting: AtomicU64::new(0),
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

    fn missing_in(&self, part: &NodeFrames) -> usize {
        (2 * self.low).saturating_sub(part.len())
    }

    /// Whether the page writer should add this frame, or one of the same node.
    pub(crate) fn lacks(&self, frame: u32) -> bool {
        self.missing_in(&self.parts[self.part_of(frame)]) > 0
    }

    /// The parts in the order in which a thread of `home` asks them.
    fn from(&self, home: usize) -> impl Iterator<Item = &NodeFrames> {
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
                self.pass_on(left);
                return taken;
            }
        }
        None
    }

    /// Takes at most `wanted`, those of the node `home` first.
    pub(crate) fn take_many(&self, home: usize, wanted: usize, into: &mut Vec<FreeFrame>) {
        let most = into.len() + wanted;
        for part in self.from(home) {
            let left = part.take(most - into.len(), into);
            if left < self.low {
                self.writer.unpark();
            }
            if into.len() == most {
                return self.pass_on(left);
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
        self.put_all([frame]);
    }

    pub(crate) fn put_all(&self, frames: impl IntoIterator<Item = FreeFrame>) {
        let mut any = false;
        for frame in frames {
            self.parts[self.part_of(frame.number())].push(frame);
            any = true;
        }
        if any {
            // Before anyone of the line is looked for: a waiter has either seen the new epoch or is
            // in the line.
            self.epoch.fetch_add(1, Ordering::Release);
            self.wake(1);
        }
    }

    /// To be asked before looking for a frame in vain, and given to
    /// [`poll_refilled`](Self::poll_refilled).
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Ready once frames have been put back since `seen`. Somebody else may have taken them again.
    pub(crate) fn poll_refilled(&self, seen: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut waiters = self.waiters.lock();
        let place = waiters
            .iter()
            .position(|waiter| waiter.will_wake(context.waker()));
        if self.epoch() != seen {
            if let Some(place) = place {
                waiters.remove(place);
                self.note(&waiters);
            }
            return Poll::Ready(());
        }
        if place.is_none() {
            waiters.push_back(context.waker().clone());
            self.note(&waiters);
        }
        drop(waiters);
        self.writer.unpark();
        Poll::Pending
    }

    /// Whether somebody waits for a frame.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn note(&self, waiters: &VecDeque<Waker>) {
        self.waiting.store(waiters.len() as u64, Ordering::Relaxed);
    }

    /// Whoever has taken frames and left so many wakes the next in the line.
    fn pass_on(&self, left: usize) {
        if left > 0 && self.is_waited_for() {
            self.wake(1);
        }
    }

    /// Wakes whoever still waits although there are frames. The page writer's part, whenever it is
    /// about to sleep.
    pub(crate) fn wake_left_behind(&self) {
        if self.is_waited_for() && self.len() > 0 {
            self.wake(usize::MAX);
        }
    }

    fn wake(&self, most: usize) {
        let mut waiters = self.waiters.lock();
        let count = most.min(waiters.len());
        let woken: VecDeque<Waker> = waiters.drain(..count).collect();
        self.note(&waiters);
        drop(waiters);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The page writer sleeps here until the stock runs low.
    pub(crate) fn writer(&self) -> &Parker {
        &self.writer
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::frames::Frames;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering as StdOrdering};
    use std::task::Wake;

    #[derive(Default)]
    struct Session(AtomicUsize);

    impl Wake for Session {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, StdOrdering::Relaxed);
        }
    }

    impl Session {
        fn stands_in_line(self: &Arc<Self>, stock: &FreeList) {
            let waker = Waker::from(self.clone());
            let polled = stock.poll_refilled(stock.epoch(), &mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }

        fn woken(&self) -> usize {
            self.0.load(StdOrdering::Relaxed)
        }
    }

    /// Frames whose stock is empty: they are in hand.
    fn all_taken(count: usize) -> (Frames, Vec<FreeFrame>) {
        let frames = Frames::new(count, Nodes::one()).expect("memory for a few frames");
        let mut free = Vec::new();
        frames.stock.take_many(0, count, &mut free);
        assert_eq!(free.len(), count);
        (frames, free)
    }

    fn line(stock: &FreeList) -> [Arc<Session>; 3] {
        let sessions: [Arc<Session>; 3] = Default::default();
        sessions
            .iter()
            .for_each(|session| session.stands_in_line(stock));
        sessions
    }

    #[test]
    fn frames_wake_the_first_in_line_and_who_leaves_some_the_next() {
        let (frames, mut free) = all_taken(8);
        let stock = &frames.stock;
        let sessions = line(stock);
        let woken = || sessions.each_ref().map(|session| session.woken());
        stock.put_all(free.drain(..2));
        assert_eq!(woken(), [1, 0, 0]);
        let one = stock.take(0).expect("two are there");
        assert_eq!(woken(), [1, 1, 0], "one is left");
        let last = stock.take(0).expect("it is left");
        assert_eq!(woken(), [1, 1, 0], "none is left");
        assert!(stock.is_waited_for());
        stock.put_all([one, last]);
        assert_eq!(woken(), [1, 1, 1]);
        assert!(!stock.is_waited_for());
    }

    #[test]
    fn who_has_seen_the_new_frames_leaves_the_line() {
        let (frames, mut free) = all_taken(8);
        let stock = &frames.stock;
        let seen = stock.epoch();
        let [_first, second, third] = line(stock);
        stock.put_all(free.drain(..1));
        let waker = Waker::from(second.clone());
        let polled = stock.poll_refilled(seen, &mut Context::from_waker(&waker));
        assert!(polled.is_ready());
        stock.put_all(free.drain(..1));
        assert_eq!((second.woken(), third.woken()), (0, 1));
    }

    #[test]
    fn who_went_away_holds_nobody_up() {
        let (frames, mut free) = all_taken(8);
        let stock = &frames.stock;
        let [gone, second, third] = line(stock);
        stock.put_all(free.drain(..1));
        assert_eq!((gone.woken(), second.woken()), (1, 0));
        // The page writer is about to sleep.
        stock.wake_left_behind();
        assert_eq!((second.woken(), third.woken()), (1, 1));
        assert!(!stock.is_waited_for());
    }

    #[test]
    fn nobody_is_woken_for_nothing() {
        let (frames, _free) = all_taken(8);
        let [first, ..] = line(&frames.stock);
        frames.stock.put_all([]);
        frames.stock.wake_left_behind();
        assert_eq!(first.woken(), 0);
    }
}
