//! The latch: shared, exclusive, or optimistic, in one word.
//!
//! Readers that can bear to be wrong and try again take a [`Version`], read through relaxed
//! atomics, and [`validate`](Latch::validate): they write nothing that another core reads. Readers
//! that cannot, take it shared. Writers take it exclusively, and leave a new version behind.
//!
//! # The word
//!
//! ```text
//!  63          62              61 … 51           50 … 40          39 … 1    0
//! | EXCLUSIVE | READERS_WAIT | writers waiting | shared holders | version | LOCKED |
//!              high half: what the kernel compares ↑ (bits 63 … 32)
//! ```
//!
//! How the word is changed is a [`RawLatch`]; a plain `Latch` uses the one that was chosen at start
//! (`lab_latch`), by default compare-and-swap. LOCKED is set only where changes are made under a
//! spinlock, and only during one.
//!
//! # States
//!
//! | state | EXCLUSIVE | shared | enters | who hands over when it ends |
//! |---|---|---|---|---|
//! | free | 0 | 0 | anyone; readers not while a writer waits | – |
//! | shared | 0 | n > 0 | readers while no writer waits | the last reader wakes one writer |
//! | exclusive | 1 | 0 | nobody | the writer wakes all waiting readers or, if there are none, one writer |
//!
//! *Writers do not starve*: a writer counts itself before it sleeps, and while the count is not
//! zero no new reader gets in. *Readers do not starve*: those that slept through a writer go next,
//! past the writers that wait; each such pass is paid for with one writer's turn. A running writer
//! may overtake a sleeping one, which costs fairness among writers and saves a context switch a
//! hand-over.
//!
//! *No wake-up is lost*: a thread sleeps only on a word that shows a holder (or, a reader, a
//! waiting writer), and both the bit and the count that it left in that word stay until it is woken
//! or has got the latch. So whoever ends that state sees them, and the kernel's comparison makes
//! the check and the sleep one step. The version is not compared (but for 8 bits), and need not be:
//! a word that has come back to the same state has a new holder who will see the same bits.
//!
//! *An add that is undone* (see [`ByAdd`]) is a shared holder like any other as long as it lasts,
//! also beside a writer, who leaves the count as it is; undoing it is leaving, and wakes whoever a
//! leaving reader would.
//!
//! A latch is not reentrant, not even shared: with a writer waiting in between, the second entry
//! waits for the writer and the writer for the first.

mod raw;

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::futex::{Side, WaitQueue, Woken};
use crate::spin::SpinWait;
use std::marker::PhantomData;

pub use raw::{ByAdd, ByCas, Chosen, RawLatch, UnderSpin};

const EXCLUSIVE: u64 = 1 << 63;
const READERS_WAIT: u64 = 1 << 62;
const ONE_WRITER: u64 = 1 << 51;
const WRITERS: u64 = (MAX_HOLDERS << 51) & !(READERS_WAIT | EXCLUSIVE);
const ONE_SHARED: u64 = 1 << 40;
const SHARED: u64 = MAX_HOLDERS << 40;
/// 2^39 writes while one reader reads once: at ten million a second, fifteen hours.
const VERSION: u64 = (ONE_SHARED - 1) & !LOCKED;
const ONE_VERSION: u64 = 1 << 1;
const LOCKED: u64 = 1;

/// Shared holders, and waiting writers: far more than threads ([`crate::MAX_THREADS`]), which hold
/// a latch once.
const MAX_HOLDERS: u64 = (1 << 11) - 1;
const _: () = assert!(MAX_HOLDERS as usize > 4 * crate::MAX_THREADS);
const _: () = assert!(
    EXCLUSIVE | READERS_WAIT | WRITERS | SHARED | VERSION | LOCKED == u64::MAX
        && EXCLUSIVE.count_ones()
            + READERS_WAIT.count_ones()
            + WRITERS.count_ones()
            + SHARED.count_ones()
            + VERSION.count_ones()
            + LOCKED.count_ones()
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
    /// The last shared holder, if one leaves now, with no writer beside it who will do the waking.
    #[inline]
    pub(super) fn last_shared(word: u64) -> bool {
        word & (EXCLUSIVE | SHARED) == super::ONE_SHARED
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

/// What an optimistic reader remembers: the latch was not held exclusively, and how often it had
/// been.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version(u64);

/// A shared/exclusive/optimistic latch of one word, with no data of its own. See the module's page.
#[derive(Debug)]
pub struct Latch<R: RawLatch = Chosen> {
    word: AtomicU64,
    queue: WaitQueue,
    _form: PhantomData<fn() -> R>,
}

#[cfg(not(any(loom, shuttle, miri)))]
const _: () = assert!(
    size_of::<Latch>() == 8,
    "a latch is embedded in every buffer frame"
);

impl<R: RawLatch> Default for Latch<R> {
    fn default() -> Self {
        Latch::of()
    }
}

impl Latch {
    #[cfg(not(loom))]
    pub const fn new() -> Latch {
        Latch::of()
    }
    #[cfg(loom)]
    pub fn new() -> Latch {
        Latch::of()
    }
}

impl<R: RawLatch> Latch<R> {
    /// A latch of this form, whatever the settings say.
    #[cfg(not(loom))]
    pub const fn of() -> Self {
        Latch {
            word: AtomicU64::new(0),
            queue: WaitQueue::new(),
            _form: PhantomData,
        }
    }
    #[cfg(loom)]
    pub fn of() -> Self {
        Latch {
            word: AtomicU64::new(0),
            queue: WaitQueue::new(),
            _form: PhantomData,
        }
    }

    /// Enters shared if that needs no waiting: false while held exclusively or wanted by a writer.
    #[inline]
    pub fn try_shared(&self) -> bool {
        self.enter_shared(is::open_to_readers)
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
        self.leave_shared(Ordering::Release);
    }

    /// Enters exclusively if that needs no waiting.
    #[inline]
    pub fn try_exclusive(&self) -> bool {
        self.enter_exclusive(|word| is::free(word).then_some(word | EXCLUSIVE))
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
        self.leave_exclusive(ONE_VERSION, 0);
    }

    /// Leaves exclusive with the version unchanged, for a holder that has written nothing an
    /// optimistic reader may read.
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
        self.leave_exclusive(ONE_VERSION, ONE_SHARED);
    }

    /// From shared to exclusive, if the caller is the only one that holds it shared. Never waits;
    /// on false the caller still holds it shared.
    #[inline]
    pub fn try_upgrade(&self) -> bool {
        debug_assert!(
            is::shared_by(self.word.load(Ordering::Relaxed)) > 0,
            "try_upgrade of a latch that is not held shared"
        );
        self.enter_exclusive(|word| {
            (is::shared_by(word) == 1).then(|| word - ONE_SHARED + EXCLUSIVE)
        })
    }

    /// Begins an optimistic read. None while held exclusively.
    ///
    /// What is read until [`validate`](Latch::validate) must be read through atomics (relaxed will
    /// do) and must not be believed before it has said yes.
    #[inline]
    pub fn optimistic(&self) -> Option<Version> {
        // Acquire: the reads that follow cannot be moved before this look, and see all that the
        // writer who left this version wrote.
        let word = self.word.load(Ordering::Acquire);
        (!is::exclusive(word)).then_some(Version(word & VERSION))
    }

    /// Whether everything read since `version` was taken belongs to that version.
    #[inline]
    pub fn validate(&self, version: Version) -> bool {
        // Acquire fence: the reads before cannot be moved behind the look that follows. It pairs
        // with the Release fence in `enter_exclusive`: if any of our reads saw a writer's byte, the
        // load below sees that writer's EXCLUSIVE bit or something later, and so does not equal
        // `version`.
        fence(Ordering::Acquire);
        is::at(self.word.load(Ordering::Relaxed), version)
    }

    /// Enters exclusively if nothing has been written since `version` was taken: from optimistic to
    /// exclusive.
    ///
    /// Waits for shared holders to leave, but not for a writer: that one makes the version stale.
    #[inline]
    pub fn exclusive_if(&self, version: Version) -> bool {
        if self.try_exclusive_if(version) {
            return true;
        }
        if !is::at(self.word.load(Ordering::Relaxed), version) {
            return false;
        }
        self.exclusive_contended();
        self.keep_exclusive_if(version)
    }

    /// As [`exclusive_if`](Latch::exclusive_if), but waits for nobody: false also while it is held
    /// shared.
    #[inline]
    pub fn try_exclusive_if(&self, version: Version) -> bool {
        self.enter_exclusive(|word| {
            (is::at(word, version) && is::free(word)).then_some(word | EXCLUSIVE)
        })
    }

    /// Enters shared if nothing has been written since `version` was taken: from optimistic to
    /// shared.
    ///
    /// Never waits for a writer; false also when one is waiting.
    #[inline]
    pub fn shared_if(&self, version: Version) -> bool {
        self.enter_shared(|word| is::at(word, version) && is::open_to_readers(word))
    }

    /// Whether somebody holds it exclusively right now. For assertions and reports: it may be over
    /// already.
    pub fn is_exclusive(&self) -> bool {
        is::exclusive(self.word.load(Ordering::Relaxed))
    }

    /// Whether nobody holds it right now. For assertions and victims' first look: it may be over
    /// already.
    pub fn is_free(&self) -> bool {
        is::free(self.word.load(Ordering::Relaxed))
    }

    /// Whether somebody sleeps, or is about to, until it is their turn. For reports: it may be over
    /// already.
    pub fn is_wanted(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (READERS_WAIT | WRITERS) != 0
    }

    /// Enters shared if the word is `open`, without waiting.
    #[inline]
    fn enter_shared(&self, open: impl Fn(u64) -> bool) -> bool {
        if R::adds_first() {
            return self.add_and_look(open);
        }
        // Acquire: what the last writer wrote is seen by our reads.
        let next = |word| open(word).then(|| word + ONE_SHARED);
        let before = R::change(&self.word, Ordering::Acquire, next);
        before.inspect(|&word| assert_not_full(word)).is_ok()
    }

    /// Enters shared optimistically: by adding, looking afterwards, and taking it back.
    fn add_and_look(&self, open: impl Fn(u64) -> bool) -> bool {
        let before = R::add_shared(&self.word);
        assert_not_full(before);
        if open(before) {
            return true;
        }
        // Relaxed: nothing was read. What was held together with us is over when its holder leaves,
        // not when we do.
        self.leave_shared(Ordering::Relaxed);
        false
    }

    #[inline]
    fn leave_shared(&self, order: Ordering) {
        let before = R::take_shared(&self.word, order);
        assert!(
            is::shared_by(before) > 0,
            "unlock_shared of a latch that is not held shared"
        );
        if is::last_shared(before) && is::wanted_by_writer(before) {
            self.wake_writer();
        }
    }

    /// Enters exclusively by a step to `next`, if it has one.
    #[inline]
    fn enter_exclusive(&self, next: impl Fn(u64) -> Option<u64>) -> bool {
        // Acquire: what the last writer wrote is seen, and the last readers have read, before we
        // write.
        if R::change(&self.word, Ordering::Acquire, next).is_err() {
            return false;
        }
        // Release fence: our (relaxed) writes cannot be seen by an optimistic reader without the
        // EXCLUSIVE bit being seen by its validation. Pairs with the Acquire fence in `validate`.
        fence(Ordering::Release);
        true
    }

    #[inline]
    fn leave_exclusive(&self, bump: u64, shared: u64) {
        // Shared holders beside a writer are adds about to be undone: they stay counted until they
        // are.
        let next = |word: u64| {
            let version = (word + bump) & VERSION;
            is::exclusive(word).then(|| ((word & (WRITERS | SHARED)) + shared) | version)
        };
        // Release: all that we wrote is seen by whoever enters next, or reads this version.
        let Ok(word) = R::change(&self.word, Ordering::Release, next) else {
            panic!("leaving a latch that is not held exclusively");
        };
        if word & (READERS_WAIT | WRITERS) != 0 {
            self.hand_over(word, shared != 0);
        }
    }

    /// After an exclusive holder has left, having cleared READERS_WAIT.
    #[cold]
    fn hand_over(&self, word: u64, still_shared: bool) {
        // 1. Readers that slept go first. Each of them gets in or, if a writer was quicker, sleeps
        //    again with its bit set; either way somebody will come by `unlock_shared` or here, and
        //    see the writers.
        if word & READERS_WAIT != 0 && self.queue.wake_all(&self.word, Side::Reader) {
            return;
        }
        // 2. Else one writer. If none sleeps, the ones counted are awake and will try; if we kept
        //    it shared, our own `unlock_shared` sees them.
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
        loop {
            let word = self.word.load(Ordering::Relaxed);
            let open = |word| is::open_to_readers(word) || (my_turn && !is::exclusive(word));
            if open(word) {
                if self.enter_shared(open) {
                    return;
                }
                continue;
            }
            if spin.spin() {
                continue;
            }
            // Sleep on a word that says so.
            let asks = |word| (!open(word)).then_some(word | READERS_WAIT);
            if word & READERS_WAIT == 0 && R::change(&self.word, Ordering::Relaxed, asks).is_err() {
                continue;
            }
            let word = word | READERS_WAIT;
            my_turn = self.queue.wait(&self.word, word, Side::Reader) == Woken::ByWaker;
            spin.reset();
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
        let count = |word: u64| (word & WRITERS != WRITERS).then(|| word + ONE_WRITER);
        let Ok(before) = R::change(&self.word, Ordering::Relaxed, count) else {
            panic!("too many writers wait for a latch");
        };
        // 3. Sleep until it is free, and take ourselves off the count in the step that takes the
        //    latch.
        let mut word = before + ONE_WRITER;
        loop {
            if is::free(word) {
                let enters = |word| is::free(word).then(|| word - ONE_WRITER + EXCLUSIVE);
                if self.enter_exclusive(enters) {
                    return;
                }
            } else {
                self.queue.wait(&self.word, word, Side::Writer);
            }
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

#[inline]
fn assert_not_full(before: u64) {
    assert!(
        is::shared_by(before) < MAX_HOLDERS,
        "a latch is held shared too many times"
    );
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
