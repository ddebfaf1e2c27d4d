//! The latch: shared, exclusive, or optimistic, in one word.
//!
//! Readers that can bear to be wrong and try again take a [`Version`], read through relaxed atomics,
//! and [`validate`](Latch::validate): they write nothing that another core reads. Readers that cannot,
//! take it shared. Writers take it exclusively, and leave a new version behind.
//!
//! # The word
//!
//! ```text
//!  63          62              61 … 51           50 … 40          39 … 0
//! | EXCLUSIVE | READERS_WAIT | writers waiting | shared holders | version |
//!              high half: what the kernel compares ↑ (bits 63 … 32)
//! ```
//!
//! # States
//!
//! | state | EXCLUSIVE | shared | enters | who hands over when it ends |
//! |---|---|---|---|---|
//! | free | 0 | 0 | anyone; readers not while a writer waits | – |
//! | shared | 0 | n > 0 | readers while no writer waits | the last reader wakes one writer |
//! | exclusive | 1 | 0 | nobody | the writer wakes all waiting readers or, if there are none, one writer |
//!
//! *Writers do not starve*: a writer counts itself before it sleeps, and while the count is not zero no
//! new reader gets in. *Readers do not starve*: those that slept through a writer go next, past the
//! writers that wait; each such pass is paid for with one writer's turn. A running writer may overtake a
//! sleeping one, which costs fairness among writers and saves a context switch a hand-over.
//!
//! *No wake-up is lost*: a thread sleeps only on a word that shows a holder (or, a reader, a waiting writer),
//! and both the bit and the count that it left in that word stay until it is woken or has got the latch. So
//! whoever ends that state sees them, and the kernel's comparison makes the check and the sleep one step. The
//! version is not compared (but for 8 bits), and need not be: a word that has come back to the same
//! state has a new holder who will see the same bits.
//!
//! A latch is not reentrant, not even shared: with a writer waiting in between, the second entry waits for
//! the writer and the writer for the first.

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::futex::{Side, WaitQueue, Woken};
use crate::spin::SpinWait;

const EXCLUSIVE: u64 = 1 << 63;
const READERS_WAIT: u64 = 1 << 62;
const ONE_WRITER: u64 = 1 << 51;
const WRITERS: u64 = (MAX_HOLDERS << 51) & !(READERS_WAIT | EXCLUSIVE);
const ONE_SHARED: u64 = 1 << 40;
const SHARED: u64 = MAX_HOLDERS << 40;
/// 2^40 writes while one reader reads once: at ten million a second, thirty hours.
const VERSION: u64 = ONE_SHARED - 1;

/// Shared holders, and waiting writers: far more than threads ([`crate::MAX_THREADS`]), which hold a latch once.
const MAX_HOLDERS: u64 = (1 << 11) - 1;
const _: () = assert!(MAX_HOLDERS as usize > 4 * crate::MAX_THREADS);
const _: () = assert!(
    EXCLUSIVE | READERS_WAIT | WRITERS | SHARED | VERSION == u64::MAX
        && EXCLUSIVE.count_ones()
            + READERS_WAIT.count_ones()
            + WRITERS.count_ones()
            + SHARED.count_ones()
            + VERSION.count_ones()
            == 64,
    "the fields cover the word and do not overlap"
);

/// Predicates over the word.
mod is {
    use super::{EXCLUSIVE, SHARED, VERSION, WRITERS};
    #[inline]
    pub(super) fn exclusive(word: u64) -> bool {
        word & EXCLUSIVE != 0
    }
    #[inline]
    pub(super) fn free(word: u64) -> bool {
        word & (EXCLUSIVE | SHARED) == 0
    }
    #[inline]
    pub(super) fn shared_by(word: u64) -> u64 {
        (word & SHARED) / super::ONE_SHARED
    }
    #[inline]
    pub(super) fn open_to_readers(word: u64) -> bool {
        word & (EXCLUSIVE | WRITERS) == 0
    }
    #[inline]
    pub(super) fn wanted_by_writer(word: u64) -> bool {
        word & WRITERS != 0
    }
    /// Still what an optimistic reader saw: not being written, and not written since.
    #[inline]
    pub(super) fn at(word: u64, version: super::Version) -> bool {
        word & (EXCLUSIVE | VERSION) == version.0
    }
}

/// What an optimistic reader remembers: the latch was not held exclusively, and how often it had been.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version(u64);

/// A shared/exclusive/optimistic latch of one word, with no data of its own. See the module's page.
#[derive(Debug)]
pub struct Latch {
    word: AtomicU64,
    queue: WaitQueue,
}

#[cfg(not(loom))]
const _: () = assert!(
    size_of::<Latch>() == 8,
    "a latch is embedded in every buffer frame"
);

impl Default for Latch {
    fn default() -> Latch {
        Latch::new()
    }
}

impl Latch {
    #[cfg(not(loom))]
    pub const fn new() -> Latch {
        Latch {
            word: AtomicU64::new(0),
            queue: WaitQueue::new(),
        }
    }
    #[cfg(loom)]
    pub fn new() -> Latch {
        Latch {
            word: AtomicU64::new(0),
            queue: WaitQueue::new(),
        }
    }

    /// Enters shared if that needs no waiting: false while held exclusively or wanted by a writer.
    #[inline]
    pub fn try_shared(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while is::open_to_readers(word) {
            match self.enter_shared(word) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Enters shared; waits as long as it takes.
    #[inline]
    pub fn shared(&self) {
        if !self.try_shared() {
            self.shared_contended();
        }
    }

    /// Leaves shared.
    ///
    /// Panics if nobody holds it shared.
    #[inline]
    pub fn unlock_shared(&self) {
        // Release: our reads happen before the next writer's writes.
        let before = self.word.fetch_sub(ONE_SHARED, Ordering::Release);
        assert!(
            is::shared_by(before) > 0,
            "unlock_shared of a latch that is not held shared"
        );
        if is::shared_by(before) == 1 && is::wanted_by_writer(before) {
            self.wake_writer();
        }
    }

    /// Enters exclusively if that needs no waiting.
    #[inline]
    pub fn try_exclusive(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while is::free(word) {
            match self.enter_exclusive(word, word | EXCLUSIVE) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Enters exclusively; waits as long as it takes.
    #[inline]
    pub fn exclusive(&self) {
        if !self.try_exclusive() {
            self.exclusive_contended();
        }
    }

    /// Leaves exclusive with a new version: optimistic readers that overlapped will not validate.
    ///
    /// Panics if it is not held exclusively.
    #[inline]
    pub fn unlock_exclusive(&self) {
        self.leave_exclusive(1, 0);
    }

    /// Leaves exclusive with the version unchanged, for a holder that has written nothing an optimistic
    /// reader may read.
    ///
    /// Panics if it is not held exclusively.
    #[inline]
    pub fn unlock_exclusive_unchanged(&self) {
        self.leave_exclusive(0, 0);
    }

    /// From exclusive to shared, with a new version and nobody in between.
    ///
    /// Panics if it is not held exclusively.
    #[inline]
    pub fn downgrade(&self) {
        self.leave_exclusive(1, ONE_SHARED);
    }

    /// From shared to exclusive, if the caller is the only one that holds it shared. Never waits; on false the
    /// caller still holds it shared.
    #[inline]
    pub fn try_upgrade(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        debug_assert!(
            is::shared_by(word) > 0,
            "try_upgrade of a latch that is not held shared"
        );
        while is::shared_by(word) == 1 {
            match self.enter_exclusive(word, word - ONE_SHARED + EXCLUSIVE) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Begins an optimistic read. None while held exclusively.
    ///
    /// What is read until [`validate`](Latch::validate) must be read through atomics (relaxed will do) and
    /// must not be believed before it has said yes.
    #[inline]
    pub fn optimistic(&self) -> Option<Version> {
        // Acquire: the reads that follow cannot be moved before this look, and see all that the writer who
        // left this version wrote.
        let word = self.word.load(Ordering::Acquire);
        (!is::exclusive(word)).then_some(Version(word & VERSION))
    }

    /// Whether everything read since `version` was taken belongs to that version.
    #[inline]
    pub fn validate(&self, version: Version) -> bool {
        // Acquire fence: the reads before cannot be moved behind the look that follows. It pairs with the
        // Release fence in `enter_exclusive`: if any of our reads saw a writer's byte, the load below sees
        // that writer's EXCLUSIVE bit or something later, and so does not equal `version`.
        fence(Ordering::Acquire);
        is::at(self.word.load(Ordering::Relaxed), version)
    }

    /// Enters exclusively if nothing has been written since `version` was taken: from optimistic to exclusive.
    ///
    /// Waits for shared holders to leave, but not for a writer: that one makes the version stale.
    #[inline]
    pub fn exclusive_if(&self, version: Version) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while is::at(word, version) {
            if !is::free(word) {
                self.exclusive_contended();
                return self.keep_exclusive_if(version);
            }
            match self.enter_exclusive(word, word | EXCLUSIVE) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// As [`exclusive_if`](Latch::exclusive_if), but waits for nobody: false also while it is held shared.
    #[inline]
    pub fn try_exclusive_if(&self, version: Version) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while is::at(word, version) && is::free(word) {
            match self.enter_exclusive(word, word | EXCLUSIVE) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Enters shared if nothing has been written since `version` was taken: from optimistic to shared.
    ///
    /// Never waits for a writer; false also when one is waiting.
    #[inline]
    pub fn shared_if(&self, version: Version) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while is::at(word, version) && is::open_to_readers(word) {
            match self.enter_shared(word) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Whether somebody holds it exclusively right now. For assertions and reports: it may be over already.
    pub fn is_exclusive(&self) -> bool {
        is::exclusive(self.word.load(Ordering::Relaxed))
    }

    /// Whether nobody holds it right now. For assertions and victims' first look: it may be over already.
    pub fn is_free(&self) -> bool {
        is::free(self.word.load(Ordering::Relaxed))
    }

    /// Whether somebody sleeps, or is about to, until it is their turn. For reports: it may be over already.
    pub fn is_wanted(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (READERS_WAIT | WRITERS) != 0
    }

    #[inline]
    fn enter_shared(&self, word: u64) -> Result<(), u64> {
        assert!(
            is::shared_by(word) < MAX_HOLDERS,
            "a latch is held shared too many times"
        );
        // Acquire: what the last writer wrote is seen by our reads.
        self.word
            .compare_exchange_weak(
                word,
                word + ONE_SHARED,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .map(drop)
    }

    #[inline]
    fn enter_exclusive(&self, word: u64, next: u64) -> Result<(), u64> {
        // Acquire: what the last writer wrote is seen, and the last readers have read, before we write.
        self.word
            .compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed)
            .map(drop)?;
        // Release fence: our (relaxed) writes cannot be seen by an optimistic reader without the EXCLUSIVE bit
        // being seen by its validation. Pairs with the Acquire fence in `validate`.
        fence(Ordering::Release);
        Ok(())
    }

    #[inline]
    fn leave_exclusive(&self, bump: u64, shared: u64) {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            assert!(
                is::exclusive(word),
                "leaving a latch that is not held exclusively"
            );
            let version = (word + bump) & VERSION;
            let next = (word & WRITERS) | shared | version;
            // Release: all that we wrote is seen by whoever enters next, or reads this version.
            match self
                .word
                .compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & (READERS_WAIT | WRITERS) != 0 {
            self.hand_over(word, shared != 0);
        }
    }

    /// After an exclusive holder has left, having cleared READERS_WAIT.
    #[cold]
    fn hand_over(&self, word: u64, still_shared: bool) {
        // 1. Readers that slept go first. Each of them gets in or, if a writer was quicker, sleeps again with
        //    its bit set; either way somebody will come by `unlock_shared` or here, and see the writers.
        if word & READERS_WAIT != 0 && self.queue.wake_all(&self.word, Side::Reader) {
            return;
        }
        // 2. Else one writer. If none sleeps, the ones counted are awake and will try; if we kept it shared,
        //    our own `unlock_shared` sees them.
        if is::wanted_by_writer(word) && !still_shared {
            self.wake_writer();
        }
    }

    #[cold]
    fn wake_writer(&self) {
        self.queue.wake_one(&self.word, Side::Writer);
    }

    #[cold]
    fn shared_contended(&self) {
        let mut spin = SpinWait::new();
        // A reader that was woken goes past waiting writers: it has slept through one's turn.
        let mut my_turn = false;
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if is::open_to_readers(word) || (my_turn && !is::exclusive(word)) {
                match self.enter_shared(word) {
                    Ok(()) => return,
                    Err(now) => word = now,
                }
                continue;
            }
            if spin.spin() {
                word = self.word.load(Ordering::Relaxed);
                continue;
            }
            // Sleep on a word that says so.
            if word & READERS_WAIT == 0 {
                let asks = word | READERS_WAIT;
                match self.word.compare_exchange_weak(
                    word,
                    asks,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => word = asks,
                    Err(now) => {
                        word = now;
                        continue;
                    }
                }
            }
            my_turn = self.queue.wait(&self.word, word, Side::Reader) == Woken::ByWaker;
            spin.reset();
            word = self.word.load(Ordering::Relaxed);
        }
    }

    #[cold]
    fn exclusive_contended(&self) {
        // 1. Spin: critical sections are shorter than a context switch.
        let mut spin = SpinWait::new();
        while spin.spin() {
            if self.try_exclusive() {
                return;
            }
        }
        // 2. Count ourselves: from here on no new reader gets in.
        let before = self.word.fetch_add(ONE_WRITER, Ordering::Relaxed);
        assert!(
            before & WRITERS != WRITERS,
            "too many writers wait for a latch"
        );
        // 3. Sleep until it is free, and take ourselves off the count in the step that takes the latch.
        let mut word = before + ONE_WRITER;
        loop {
            if is::free(word) {
                match self.enter_exclusive(word, word - ONE_WRITER + EXCLUSIVE) {
                    Ok(()) => return,
                    Err(now) => word = now,
                }
                continue;
            }
            self.queue.wait(&self.word, word, Side::Writer);
            word = self.word.load(Ordering::Relaxed);
        }
    }

    #[cold]
    fn keep_exclusive_if(&self, version: Version) -> bool {
        let same = self.word.load(Ordering::Relaxed) & VERSION == version.0;
        if !same {
            self.unlock_exclusive_unchanged();
        }
        same
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
