//! Which frame holds which page: hash chains through the frames themselves.
//!
//! ```text
//!  buckets   h(page) ──► frame 7 ──► frame 2 ──► ·      (Frame::next; 0 ends a chain, n + 1 is frame n)
//! ```
//!
//! A look-up takes no lock. It may be led astray by a frame that moves to another chain under its
//! feet, so it gives up after a bounded number of steps and, whenever it has not found the page,
//! looks again under the bucket's lock. What it finds is a candidate: the caller checks the tag
//! once it holds the latch or a version. Changes to a chain are made under the lock of its stripe
//! of buckets.

use throng_sync::atomic::{AtomicU32, Ordering};
use throng_sync::{CachePadded, Spinlock, fetch_ahead};
use throng_types::PageId;

use crate::frames::{Frame, FrameNo};

/// How far a look-up without the lock goes. Chains average half a frame; a longer walk means that
/// it was led astray.
const MAX_STEPS: usize = 16;

/// At most this many locks, each for its share of the buckets.
const MAX_STRIPES: usize = if cfg!(loom) { 1 } else { 1024 };

/// Blocks that follow one another in a file share a cache line of buckets: a table that is read
/// here and there needs as few lines as there can be.
const NEIGHBOURS: u64 = 16;

pub(crate) struct PageTable {
    buckets: Box<[AtomicU32]>,
    stripes: Box<[CachePadded<Spinlock<()>>]>,
}

/// Spreads the bits of a page id: blocks of one file are neighbours, and so are the first blocks of
/// files.
#[inline]
pub(crate) fn hash(page: PageId) -> u64 {
    // A multiplication carries bits up only, so the high half is folded in; twice, for a file's
    // number is in the high half.
    let spread = |bits: u64| {
        let product = bits.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product ^ product >> 32
    };
    spread(spread(page.raw()))
}

#[inline]
fn link(frame: FrameNo) -> u32 {
    frame + 1
}

#[inline]
fn linked(link: u32) -> Option<FrameNo> {
    link.checked_sub(1)
}

impl PageTable {
    pub(crate) fn new(frames: usize) -> PageTable {
        let buckets = if cfg!(loom) {
            1
        } else {
            (frames * 2).next_power_of_two()
        };
        let stripes = buckets.min(MAX_STRIPES);
        PageTable {
            buckets: (0..buckets).map(|_| AtomicU32::new(0)).collect(),
            stripes: (0..stripes)
                .map(|_| CachePadded::new(Spinlock::named("buffer.table", ())))
                .collect(),
        }
    }

    /// All of it: the buckets, and their locks.
    pub(crate) fn memory(&self) -> (&[AtomicU32], &[CachePadded<Spinlock<()>>]) {
        (&self.buckets, &self.stripes)
    }

    #[inline]
    fn bucket(&self, page: PageId) -> usize {
        let line = hash(PageId::from_raw(page.raw() / NEIGHBOURS));
        // Where on its line a file's first block comes differs by line: many files have no other.
        let place = (page.raw() ^ line >> 60) % NEIGHBOURS;
        (line.wrapping_mul(NEIGHBOURS) | place) as usize & (self.buckets.len() - 1)
    }

    fn stripe(&self, bucket: usize) -> &Spinlock<()> {
        &self.stripes[bucket & (self.stripes.len() - 1)]
    }

    /// Has the bucket of a page brought into the core's cache.
    #[inline]
    pub(crate) fn fetch_ahead(&self, page: PageId) {
        fetch_ahead(&self.buckets[self.bucket(page)]);
    }

    /// The frame that most likely has the page: the first in its chain.
    #[inline]
    pub(crate) fn guess(&self, page: PageId) -> Option<FrameNo> {
        linked(self.buckets[self.bucket(page)].load(Ordering::Relaxed))
    }

    /// `ahead` is told of each frame that it may be before that is looked at.
    #[inline]
    pub(crate) fn find(
        &self,
        page: PageId,
        frames: &[Frame],
        ahead: impl Fn(FrameNo),
    ) -> Option<FrameNo> {
        let bucket = self.bucket(page);
        // Acquire, here and along the chain: a frame's tag is set before it is linked.
        let mut at = linked(self.buckets[bucket].load(Ordering::Acquire));
        for _ in 0..MAX_STEPS {
            let Some(number) = at else { break };
            ahead(number);
            let frame = &frames[number as usize];
            if frame.holds(page) {
                return Some(number);
            }
            at = linked(frame.next.load(Ordering::Acquire));
        }
        self.find_locked(bucket, page, frames)
    }

    #[cold]
    fn find_locked(&self, bucket: usize, page: PageId, frames: &[Frame]) -> Option<FrameNo> {
        let _stripe = self.stripe(bucket).lock();
        let mut at = linked(self.buckets[bucket].load(Ordering::Relaxed));
        while let Some(number) = at {
            let frame = &frames[number as usize];
            if frame.holds(page) {
                return Some(number);
            }
            at = linked(frame.next.load(Ordering::Relaxed));
        }
        None
    }

    /// Links a frame whose tag is already `page`.
    ///
    /// # Panics
    /// When the page is there already: two copies of a page are a lost update.
    pub(crate) fn insert(&self, page: PageId, number: FrameNo, frames: &[Frame]) {
        let bucket = self.bucket(page);
        let _stripe = self.stripe(bucket).lock();
        let head = self.buckets[bucket].load(Ordering::Relaxed);
        let mut at = linked(head);
        while let Some(other) = at {
            assert!(
                !frames[other as usize].holds(page),
                "page {page:?} is in the pool twice"
            );
            at = linked(frames[other as usize].next.load(Ordering::Relaxed));
        }
        frames[number as usize].next.store(head, Ordering::Release);
        // Release: who finds the frame sees its tag and its place in the chain.
        self.buckets[bucket].store(link(number), Ordering::Release);
    }

    /// Unlinks a frame.
    ///
    /// # Panics
    /// When it is not in the chain of `page`.
    pub(crate) fn remove(&self, page: PageId, number: FrameNo, frames: &[Frame]) {
        let bucket = self.bucket(page);
        let _stripe = self.stripe(bucket).lock();
        let mut place = &self.buckets[bucket];
        loop {
            let at = linked(place.load(Ordering::Relaxed)).expect("a valid frame is in its chain");
            let next = &frames[at as usize].next;
            if at == number {
                place.store(next.load(Ordering::Relaxed), Ordering::Release);
                return;
            }
            place = next;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use throng_types::FileId;

    #[test]
    fn chains_are_short_whichever_pages_there_are() {
        const FRAMES: u32 = if cfg!(miri) { 256 } else { 1 << 16 };
        let table = PageTable::new(FRAMES as usize);
        for blocks_of_a_file in [1, 3, 16, 1000, FRAMES] {
            let mut lengths = vec![0_u32; table.buckets.len()];
            let mut steps = 0;
            for number in 0..FRAMES {
                let file = FileId(16_384 + number / blocks_of_a_file);
                let page = PageId::new(file, number % blocks_of_a_file);
                let length = &mut lengths[table.bucket(page)];
                *length += 1;
                steps += *length;
            }
            let mean = f64::from(steps) / f64::from(FRAMES);
            // At random it would be 1.25.
            assert!(
                mean < 1.35,
                "{blocks_of_a_file} blocks a file: {mean} steps"
            );
            let longest = *lengths.iter().max().expect("there are buckets");
            assert!(
                longest as usize <= MAX_STEPS,
                "{blocks_of_a_file} blocks a file: {longest} in one chain"
            );
        }
    }
}
