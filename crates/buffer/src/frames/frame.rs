//! A frame: what is known of one page of memory, in words that change one at a time.
//!
//! # The state word
//!
//! ```text
//!  63       62 … 37   36          35        34      33       32           31 … 0
//! | LOCKED |   0    | DISCARDED | WRITING | DIRTY | VALID | REFERENCED | pins |
//! ```
//!
//! | state | VALID | DIRTY | WRITING | DISCARDED | leaves it by |
//! |---|---|---|---|---|---|
//! | free | 0 | 0 | 0 | 0 | `publish` (a page came in, or the file grew) |
//! | clean | 1 | 0 | 0 | 0 | `mark_dirty`; `claim` (the clock, pins = 0) → free; `discard` |
//! | dirty | 1 | 1 | 0 | 0 | `begin_write` → writing; `discard` |
//! | writing | 1 | 0 | 1 | 0 | `end_write`: ok → clean, failed → dirty; `mark_dirty` → writing and dirty |
//! | writing and dirty | 1 | 1 | 1 | 0 | `end_write` → dirty |
//! | discarded | 0 | 0 | 0 | 1 | the last `unpin` → free |
//!
//! LOCKED belongs to who counts pins under a spinlock (`lab_pin = spin`): pins come and go at any
//! time, in any state.
//!
//! # Who may do what
//!
//! The *tag* (which page this is), VALID and the page's bytes change only while the latch is held
//! exclusively, so whoever holds the latch in any way and has looked at the tag keeps the page;
//! guards need no pin. An optimistic reader is covered by the latch's version: it was not held
//! exclusively from its first look to its last. A *pin* keeps a page from the clock while no latch
//! is held; `publish` sets it for the reader who will come, and whoever is to sleep for the latch
//! sets his own. DIRTY is set under the exclusive latch and cleared, together with setting WRITING,
//! under the shared one: a copy taken there holds every change that DIRTY stood for.

use throng_observe::{HolderCell, LatchExt, Object, Structure, sampled};
use throng_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use throng_sync::pin::{self, RawPin};
use throng_sync::{Latch, Nodes, fetch_ahead};
use throng_types::page::PAGE_SIZE;
use throng_types::{PageId, Result};

use super::free_list::FreeList;
use super::table::PageTable;
use crate::memory::FrameMemory;
use crate::words::{self, PageWords};

/// A frame's number in the pool.
pub(crate) type FrameNo = u32;

const ONE_PIN: u64 = pin::ONE;
const PINS: u64 = pin::COUNT;
/// What belongs to those who pin, and outlives every other change.
const PINNERS: u64 = PINS | pin::LOCKED;
/// Set by a use, cleared by the clock as it passes: a page goes when it was not used for a whole
/// round.
const REFERENCED: u64 = 1 << 32;
const VALID: u64 = 1 << 33;
const DIRTY: u64 = 1 << 34;
const WRITING: u64 = 1 << 35;
/// The page is gone, but somebody still has a pin; the last one out frees the frame.
const DISCARDED: u64 = 1 << 36;

const _: () = assert!(
    PINNERS.count_ones() + (REFERENCED | VALID | DIRTY | WRITING | DISCARDED).count_ones() == 38
        && PINNERS & (REFERENCED | VALID | DIRTY | WRITING | DISCARDED) == 0,
    "the fields do not overlap"
);

/// The tag of a frame without a page. No page has this id: files end below block 2^32 - 1.
const NO_PAGE: u64 = u64::MAX;

/// Predicates over the state word.
mod is {
    use super::*;
    pub(super) fn pinned(state: u64) -> bool {
        state & PINS != 0
    }
    /// Evictable but for REFERENCED: a page, unpinned, with nothing to write.
    pub(super) fn idle(state: u64) -> bool {
        state & (VALID | DIRTY | WRITING | PINS) == VALID
    }
    pub(super) fn writable(state: u64) -> bool {
        state & (VALID | DIRTY | WRITING) == VALID | DIRTY
    }
}

/// One frame's words, on one cache line.
#[repr(align(64))]
pub(crate) struct Frame {
    pub(crate) latch: Latch,
    /// Who last had the latch exclusively: beside it, so that noting it costs a store to a line
    /// already owned.
    pub(crate) holder: HolderCell,
    state: AtomicU64,
    tag: AtomicU64,
    /// The next frame in the page table's chain. Belongs to the table.
    pub(crate) next: AtomicU32,
}

#[cfg(not(any(loom, shuttle, miri)))]
const _: () = assert!(
    size_of::<Frame>() == 64,
    "a look at a frame costs one cache line"
);

impl Frame {
    fn new() -> Frame {
        Frame {
            latch: Latch::new(),
            holder: HolderCell::new(),
            state: AtomicU64::new(0),
            tag: AtomicU64::new(NO_PAGE),
            next: AtomicU32::new(0),
        }
    }

    /// Whether this is `page` now. Stays so while the latch is held; without it, only a version
    /// makes it worth anything.
    #[inline]
    pub(crate) fn holds(&self, page: PageId) -> bool {
        // Relaxed: under the latch the latch orders it; an optimistic reader's fence orders it
        // before its validation.
        self.tag.load(Ordering::Relaxed) == page.raw()
    }

    /// The page it holds, at a glance: may be over already.
    pub(crate) fn page(&self) -> Option<PageId> {
        let raw = self.tag.load(Ordering::Relaxed);
        (raw != NO_PAGE).then(|| PageId::from_raw(raw))
    }

    /// Notes a use. Writes nothing when one has been noted since the clock last passed.
    #[inline]
    pub(crate) fn touch(&self) {
        // Relaxed: a hint to the clock.
        if self.state.load(Ordering::Relaxed) & REFERENCED == 0 {
            self.state.fetch_or(REFERENCED, Ordering::Relaxed);
        }
    }

    /// Takes the use back: true if there was one. The clock's step.
    pub(crate) fn pass(&self) -> bool {
        self.state.load(Ordering::Relaxed) & REFERENCED != 0
            && self.state.fetch_and(!REFERENCED, Ordering::Relaxed) & REFERENCED != 0
    }

    pub(crate) fn referenced(&self) -> bool {
        self.state.load(Ordering::Relaxed) & REFERENCED != 0
    }

    pub(crate) fn writing(&self) -> bool {
        self.state.load(Ordering::Acquire) & WRITING != 0
    }

    /// Worth trying to claim: at a glance.
    pub(crate) fn idle(&self) -> bool {
        is::idle(self.state.load(Ordering::Relaxed))
    }

    /// Worth writing so that it can be claimed: at a glance.
    pub(crate) fn only_dirty(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        is::writable(state) && !is::pinned(state)
    }

    /// Whether a checkpoint that begins now must see this page written, or its writing ended.
    pub(crate) fn owes_write(&self) -> bool {
        self.state.load(Ordering::Acquire) & (DIRTY | WRITING) != 0
    }

    /// Notes that the page differs from its file. The caller holds the latch exclusively.
    pub(crate) fn mark_dirty(&self) {
        if self.state.load(Ordering::Relaxed) & DIRTY == 0 {
            // Release: nothing hangs on it beyond the latch; a checkpoint is ordered by the tickets
            // it waits out.
            self.state.fetch_or(DIRTY, Ordering::Release);
        }
    }

    /// Makes the caller the page's one writer, if there is something to write and nobody else does.
    /// The caller holds the latch shared and copies the page before letting it go.
    pub(crate) fn begin_write(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while is::writable(state) {
            // One step, so that a checkpoint always sees DIRTY or WRITING. Acquire and release:
            // everything that went into and came of the last write is settled.
            let next = state & !DIRTY | WRITING;
            match self
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// The write has ended. After a failure the page is dirty as before.
    pub(crate) fn end_write(&self, written: bool) {
        if !written {
            // Before WRITING goes, so that nobody sees the page clean in between.
            self.state.fetch_or(DIRTY, Ordering::Release);
        }
        // Release: the write itself is over before anyone may claim the frame and read the page
        // back.
        let before = self.state.fetch_and(!WRITING, Ordering::Release);
        assert!(before & WRITING != 0, "a write ended that had not begun");
    }
}

/// A frame that is in no table and holds no page. Owning it is the right to publish it.
#[must_use = "a free frame that is dropped is lost to the pool"]
#[derive(Debug)]
pub(crate) struct FreeFrame(FrameNo);

impl FreeFrame {
    pub(crate) fn number(&self) -> FrameNo {
        self.0
    }
}

/// All frames, their memory, and the table that finds them.
pub(crate) struct Frames {
    frames: Box<[Frame]>,
    memory: FrameMemory,
    pub(crate) table: PageTable,
    pub(crate) stock: std::sync::Arc<FreeList>,
    /// Whether somebody may keep several pages while waiting for another.
    priority: AtomicBool,
}

/// How a page enters the pool.
#[derive(Clone, Copy)]
pub(crate) struct Entrance {
    /// Counts as used, so that the clock lets it live for a round.
    pub(crate) referenced: bool,
    /// Pins it has from the start.
    pub(crate) pins: u32,
}

impl Frames {
    /// `count` free frames, all of them in the stock; their memory, and what is known of them, in
    /// the nodes' own as far as the system lets it be.
    ///
    /// # Errors
    /// 53200 when there is not that much memory.
    pub(crate) fn new(count: usize, nodes: Nodes) -> Result<Frames> {
        assert!(
            count < FrameNo::MAX as usize,
            "frames are numbered by 32 bits, one of which means none"
        );
        let frames = Frames {
            frames: (0..count).map(|_| Frame::new()).collect(),
            memory: FrameMemory::reserve(count)?,
            table: PageTable::new(count),
            stock: std::sync::Arc::new(FreeList::new(count, nodes)),
            priority: AtomicBool::new(false),
        };
        frames.place();
        // Handed out from the back: low addresses first, so that a pool that is not filled touches
        // few huge pages.
        frames
            .stock
            .put_all((0..count as FrameNo).rev().map(FreeFrame));
        Ok(frames)
    }

    /// Puts each node's frames into that node's memory.
    fn place(&self) {
        let nodes = self.stock.nodes();
        if nodes.count() == 1 {
            return;
        }
        for part in 0..nodes.count() {
            let is_its = |frame: &FrameNo| self.stock.part_of(*frame) == part;
            let mut its = (0..self.len() as FrameNo).filter(is_its);
            let Some(first) = its.next() else { continue };
            let count = 1 + its.count();
            let words = self.words(first).as_ptr().cast();
            // Refused, the memory lies where it is first used, which is as good for all but speed.
            let _ = nodes.keep_in(part, words, count * PAGE_SIZE);
            let known = std::ptr::from_ref(self.at(first)).cast();
            let _ = nodes.keep_in(part, known, count * size_of::<Frame>());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn all(&self) -> &[Frame] {
        &self.frames
    }

    #[inline]
    pub(crate) fn at(&self, frame: FrameNo) -> &Frame {
        &self.frames[frame as usize]
    }

    #[inline]
    pub(crate) fn words(&self, frame: FrameNo) -> &PageWords {
        self.memory.words(frame)
    }

    /// A free frame's memory, for its owner to prepare.
    pub(crate) fn free_words(&self, free: &FreeFrame) -> &PageWords {
        self.memory.words(free.0)
    }

    /// The frame's bytes.
    ///
    /// # Safety
    /// As [`FrameMemory::bytes`]: the caller holds the frame's latch for as long as the result
    /// lives, and writes nothing meanwhile.
    #[inline]
    pub(crate) unsafe fn bytes(&self, frame: FrameNo) -> &[u8; PAGE_SIZE] {
        // SAFETY: this function's own condition.
        unsafe { self.memory.bytes(frame) }
    }

    /// Where `page` may be. The answer is to be checked under the latch, or with a version.
    #[inline]
    pub(crate) fn find(&self, page: PageId) -> Option<FrameNo> {
        self.find_to_read(page, 0)
    }

    /// As [`find`](Self::find), for who will read the page's header and the bytes at `near`: both
    /// are on their way while the frame's own line is waited for.
    #[inline]
    pub(crate) fn find_to_read(&self, page: PageId, near: usize) -> Option<FrameNo> {
        self.table
            .find(page, &self.frames, |number| self.fetch_page(number, near))
    }

    #[inline]
    fn fetch_page(&self, number: FrameNo, near: usize) {
        let words = self.words(number);
        fetch_ahead(&words[0]);
        if let Some(word) = words.get(near / 8) {
            fetch_ahead(word);
        }
    }

    /// The first step on the way to a page: what tells its frame is brought in.
    #[inline]
    pub(crate) fn fetch_bucket_ahead(&self, page: PageId) {
        self.table.fetch_ahead(page);
    }

    /// The second one: its frame, its header and the bytes at `near`, if it is where it most likely
    /// is.
    #[inline]
    pub(crate) fn fetch_page_ahead(&self, page: PageId, near: usize) {
        if let Some(number) = self.table.guess(page) {
            fetch_ahead(self.at(number));
            self.fetch_page(number, near);
        }
    }

    /// The word at `near` as it is now, or of another page that has taken the place: to guess by.
    #[inline]
    pub(crate) fn glance(&self, page: PageId, near: usize) -> Option<u64> {
        let number = self.table.guess(page)?;
        let word = self.words(number).get(near / 8)?;
        Some(word.load(Ordering::Relaxed))
    }

    /// Puts a page into a free frame and the frame into the table, still latched exclusively.
    /// `fill` writes its bytes.
    ///
    /// The caller has made sure that nobody else brings the same page in: by the read registry, or
    /// by a block number that the file does not reach yet.
    pub(crate) fn publish_latched(
        &self,
        free: FreeFrame,
        page: PageId,
        entrance: Entrance,
        fill: impl FnOnce(&PageWords),
    ) -> FrameNo {
        let FreeFrame(number) = free;
        let frame = self.at(number);
        // 1. Whoever came here by a stale look-up leaves as soon as it sees the tag.
        frame.latch.exclusive();
        debug_assert!(frame.page().is_none());
        // 2. The page's bytes, then what makes them that page.
        fill(self.words(number));
        frame.tag.store(page.raw(), Ordering::Relaxed);
        let referenced = if entrance.referenced { REFERENCED } else { 0 };
        // Whoever pins it just now, to find that it holds nothing for him, takes that back himself.
        let valid =
            |state| Some(((state & PINNERS) + u64::from(entrance.pins)) | VALID | referenced);
        let before = frame
            .state
            .fetch_update(Ordering::Release, Ordering::Relaxed, valid);
        debug_assert!(before.is_ok_and(|before| before & !(PINNERS | REFERENCED) == 0));
        // 3. From here on it is found.
        self.table.insert(page, number, &self.frames);
        number
    }

    /// As [`publish_latched`](Self::publish_latched), for all to use at once.
    pub(crate) fn publish(
        &self,
        free: FreeFrame,
        page: PageId,
        entrance: Entrance,
        fill: impl FnOnce(&PageWords),
    ) -> FrameNo {
        let number = self.publish_latched(free, page, entrance, fill);
        self.at(number).latch.unlock_exclusive();
        number
    }

    /// Takes a clean, unpinned page out of the pool. Never waits.
    pub(crate) fn claim(&self, number: FrameNo) -> Option<FreeFrame> {
        let frame = self.at(number);
        // 1. A cheap look first: most frames are in use.
        if !frame.idle() {
            return None;
        }
        // 2. Nobody reads or writes it, and nobody starts to.
        if !frame.latch.try_exclusive() {
            return None;
        }
        // 3. Nobody pins it, in one step with the end of VALID: who comes for a pin after that
        //    finds nothing to pin. Acquire: a write that has ended is seen to have ended.
        let end = |state| is::idle(state).then_some(state & PINNERS);
        let ended = frame
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, end);
        if ended.is_err() {
            frame.latch.unlock_exclusive_unchanged();
            return None;
        }
        // 4. Out of the table, out of the frame.
        self.vacate(number);
        // 5. A new version: optimistic readers that are still here throw away what they read.
        frame.latch.unlock_exclusive();
        Some(FreeFrame(number))
    }

    /// Enters shared the latch of the frame where `page` was found: false if it has gone, and then
    /// nothing is held.
    ///
    /// Whoever sleeps here may hold other pages, latched in their order, and must not come to wait
    /// for a page that he did not ask for: the frame's next one, which may be anywhere in the
    /// order. So nobody sleeps but with a pin.
    #[inline]
    pub(crate) fn latch_shared(&self, number: FrameNo, page: PageId) -> bool {
        let _sampled = sampled(Structure::Latch);
        let latch = &self.at(number).latch;
        let entered = latch.try_shared() || self.wait_pinned(number, page, Latch::shared_seen);
        if entered && !self.at(number).holds(page) {
            latch.unlock_shared();
            return false;
        }
        entered
    }

    /// As [`latch_shared`](Self::latch_shared), exclusively.
    #[inline]
    pub(crate) fn latch_exclusive(&self, number: FrameNo, page: PageId) -> bool {
        let _sampled = sampled(Structure::Latch);
        let latch = &self.at(number).latch;
        let entered =
            latch.try_exclusive() || self.wait_pinned(number, page, Latch::exclusive_seen);
        if entered && !self.at(number).holds(page) {
            latch.unlock_exclusive_unchanged();
            return false;
        }
        entered
    }

    /// Enters the latch with the page pinned meanwhile; false when the page is not there.
    #[cold]
    fn wait_pinned(
        &self,
        number: FrameNo,
        page: PageId,
        enter: impl FnOnce(&Latch, Object, &HolderCell),
    ) -> bool {
        let frame = self.at(number);
        let pinned = self.pin(number, page);
        if pinned {
            enter(&frame.latch, Object::page(page.raw()), &frame.holder);
            self.unpin(number);
        }
        pinned
    }

    /// Keeps `page` from the clock until [`unpin`](Self::unpin), if it is in this frame. Needs no
    /// latch.
    pub(crate) fn pin(&self, number: FrameNo, page: PageId) -> bool {
        let _sampled = sampled(Structure::Pin);
        let frame = self.at(number);
        // Acquire: VALID was set after the tag. A `claim` that comes after us sees the pin; one
        // that came before took VALID.
        let before = pin::Chosen::add(&frame.state);
        let pinned = before & VALID != 0 && frame.holds(page);
        if !pinned {
            self.unpin(number);
        }
        pinned
    }

    fn vacate(&self, number: FrameNo) {
        let frame = self.at(number);
        let page = frame.page().expect("a valid frame has a page");
        self.table.remove(page, number, &self.frames);
        frame.tag.store(NO_PAGE, Ordering::Relaxed);
    }

    /// Takes a page out of the pool whatever it holds, dirty or not: its file is going. False when
    /// it is being written just now, and must be tried again after. Waits for latches.
    pub(crate) fn discard(&self, number: FrameNo, page: PageId) -> bool {
        let frame = self.at(number);
        frame.latch.exclusive();
        if !frame.holds(page) {
            frame.latch.unlock_exclusive_unchanged();
            return true;
        }
        if frame.writing() {
            frame.latch.unlock_exclusive_unchanged();
            return false;
        }
        self.vacate(number);
        // In one step with the end of VALID: the last pin frees the frame, unless there is none.
        let clear = |state: u64| {
            let discarded = if is::pinned(state) { DISCARDED } else { 0 };
            Some((state & PINNERS) | discarded)
        };
        let before = frame
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, clear);
        frame.latch.unlock_exclusive();
        if !is::pinned(before.expect("always an update")) {
            self.stock.put(FreeFrame(number));
        }
        true
    }

    /// Takes a pin back.
    pub(crate) fn unpin(&self, number: FrameNo) {
        let _sampled = sampled(Structure::Pin);
        let state = &self.at(number).state;
        let before = pin::Chosen::take(state);
        assert!(is::pinned(before), "more pins were returned than taken");
        if before & (DISCARDED | PINS) == DISCARDED | ONE_PIN {
            // Others may have pinned it for a moment since, and be the last as well: one of all
            // ends the state.
            let end = |state| (state & (DISCARDED | PINS) == DISCARDED).then_some(state & PINNERS);
            if state
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, end)
                .is_ok()
            {
                self.stock.put(FreeFrame(number));
            }
        }
    }

    /// Copies a page out. The caller holds its latch.
    pub(crate) fn copy_page(&self, number: FrameNo, out: &mut [u8; PAGE_SIZE]) {
        words::load_page(self.words(number), out);
    }

    /// Takes the pool's one priority, if nobody has it.
    pub(crate) fn try_priority(&self) -> bool {
        // Relaxed: it decides who may keep pins, and protects nothing else.
        !self.priority.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn leave_priority(&self) {
        self.priority.store(false, Ordering::Relaxed);
    }

    /// How many frames are valid, and how many of those are dirty, at a glance.
    pub(crate) fn count(&self) -> (usize, usize) {
        let states = self
            .frames
            .iter()
            .map(|frame| frame.state.load(Ordering::Relaxed));
        states.fold((0, 0), |(valid, dirty), state| {
            (
                valid + usize::from(state & VALID != 0),
                dirty + usize::from(state & DIRTY != 0),
            )
        })
    }
}
