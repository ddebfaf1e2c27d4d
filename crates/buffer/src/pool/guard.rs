//! Guards: holding one is the only way to a page's bytes.
//!
//! | guard | others may meanwhile | becomes |
//! |---|---|---|
//! | [`OptimisticPage`] | do anything; `validate` tells | shared or exclusive, if nothing changed |
//! | [`SharedGuard`] | read | exclusive, if nobody else reads |
//! | [`ExclusiveGuard`] | read optimistically, and fail | – |
//!
//! Guards are not `Send` and know no waiting for pages; none may be held across an `.await`. A
//! thread that holds an exclusive guard must not read the same page by any other way: it would wait
//! for itself.

use std::marker::PhantomData;
use std::ops::Deref;

use throng_sync::Version;
use throng_types::page::PAGE_SIZE;
use throng_types::{Lsn, PageId};

use crate::frames::FrameNo;
use crate::pool::PoolCore;
use crate::words::{self, PageRef};

/// A page as it was at one version, for as long as [`validate`](Self::validate) says so.
pub struct OptimisticPage<'p> {
    pool: &'p PoolCore,
    frame: FrameNo,
    page: PageId,
    version: Version,
    view: PageRef<'p>,
    /// Only where the laboratory has readers pin their pages.
    _pin: Option<PagePin<'p>>,
}

/// One pin, which ends with it.
pub(crate) struct PagePin<'p>(&'p PoolCore, FrameNo);

impl<'p> PagePin<'p> {
    /// As [`Frames::pin`](crate::frames::Frames::pin): none when the frame does not hold the page.
    pub(crate) fn of(pool: &'p PoolCore, frame: FrameNo, page: PageId) -> Option<Self> {
        pool.frames.pin(frame, page).then_some(PagePin(pool, frame))
    }
}

impl Drop for PagePin<'_> {
    fn drop(&mut self) {
        self.0.frames.unpin(self.1);
    }
}

impl<'p> OptimisticPage<'p> {
    #[inline(always)]
    pub(crate) fn new(
        pool: &'p PoolCore,
        frame: FrameNo,
        page: PageId,
        version: Version,
        pin: Option<PagePin<'p>>,
    ) -> Self {
        OptimisticPage {
            pool,
            frame,
            page,
            version,
            view: PageRef::new(pool.frames.words(frame)),
            _pin: pin,
        }
    }

    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// What is there now. Not to be believed before [`validate`](Self::validate) has said yes.
    #[inline]
    pub fn page(&self) -> &PageRef<'p> {
        &self.view
    }

    /// Whether everything read through [`page`](Self::page) so far belongs together and is this
    /// page's.
    #[inline]
    pub fn validate(&self) -> bool {
        !self.view.strayed() && self.pool.frames.at(self.frame).latch.validate(self.version)
    }

    /// A shared guard on the same version; `None` when it has changed or a writer is waiting.
    pub fn try_shared(&self) -> Option<SharedGuard<'p>> {
        let frame = self.pool.frames.at(self.frame);
        // The version covers the tag: a frame changes its page under the exclusive latch only.
        (!self.view.strayed() && frame.latch.shared_if(self.version))
            .then(|| SharedGuard::of_latched(self.pool, self.frame, self.page))
    }

    /// An exclusive guard on the same version; `None` when it has changed or is latched. Never
    /// waits, so that it can be used against the order of latches.
    pub fn try_exclusive(&self) -> Option<ExclusiveGuard<'p>> {
        let frame = self.pool.frames.at(self.frame);
        (!self.view.strayed() && frame.latch.try_exclusive_if(self.version))
            .then(|| ExclusiveGuard::of_latched(self.pool, self.frame, self.page))
    }
}

/// A page that nobody changes while this lives. Dereferences to its bytes.
pub struct SharedGuard<'p> {
    pool: &'p PoolCore,
    frame: FrameNo,
    page: PageId,
    /// The latch is its taker's: held for moments, by one thread.
    _not_send: PhantomData<*const ()>,
}

impl<'p> SharedGuard<'p> {
    /// For a caller that holds the frame's latch shared, has seen `page` in it, and hands the latch
    /// over.
    pub(crate) fn of_latched(pool: &'p PoolCore, frame: FrameNo, page: PageId) -> Self {
        SharedGuard {
            pool,
            frame,
            page,
            _not_send: PhantomData,
        }
    }

    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// The page as optimistic readers see it, so that one closure serves both.
    pub fn page(&self) -> PageRef<'_> {
        PageRef::new(self.pool.frames.words(self.frame))
    }

    /// The end of the record of its last change.
    pub fn lsn(&self) -> Lsn {
        page_lsn(self)
    }

    /// The same page exclusively, if no other reader is there; never waits.
    ///
    /// # Errors
    /// Gives the shared guard back.
    pub fn try_upgrade(self) -> Result<ExclusiveGuard<'p>, SharedGuard<'p>> {
        if self.pool.frames.at(self.frame).latch.try_upgrade() {
            let guard = ExclusiveGuard::of_latched(self.pool, self.frame, self.page);
            std::mem::forget(self);
            Ok(guard)
        } else {
            Err(self)
        }
    }
}

impl Deref for SharedGuard<'_> {
    type Target = [u8; PAGE_SIZE];
    #[inline]
    fn deref(&self) -> &[u8; PAGE_SIZE] {
        // SAFETY: this guard holds the frame's latch shared until it is dropped, which the result
        // does not outlive; bytes are written under the exclusive latch only.
        unsafe { self.pool.frames.bytes(self.frame) }
    }
}

impl Drop for SharedGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.pool.frames.at(self.frame).latch.unlock_shared();
    }
}

/// A page that is the holder's alone. Dereferences to its bytes; they are changed through a
/// [`Mtr`](crate::Mtr) only, but for hints.
pub struct ExclusiveGuard<'p> {
    pool: &'p PoolCore,
    frame: FrameNo,
    page: PageId,
    /// Whether optimistic readers must notice that somebody was here.
    changed: bool,
    _not_send: PhantomData<*const ()>,
}

impl<'p> ExclusiveGuard<'p> {
    /// For a caller that holds the frame's latch exclusively, has seen `page` in it, and hands the
    /// latch over.
    pub(crate) fn of_latched(pool: &'p PoolCore, frame: FrameNo, page: PageId) -> Self {
        pool.frames.at(frame).holder.note();
        ExclusiveGuard {
            pool,
            frame,
            page,
            changed: false,
            _not_send: PhantomData,
        }
    }

    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// The page as optimistic readers see it.
    pub fn page(&self) -> PageRef<'_> {
        PageRef::new(self.pool.frames.words(self.frame))
    }

    /// Where the log must be durable before this page may be written: its last change.
    pub fn lsn(&self) -> Lsn {
        page_lsn(self)
    }

    /// Sets bits of one byte: not logged, and lost with the frame. For what can be found out again.
    ///
    /// # Panics
    /// When `offset` is not within the page.
    pub fn hint(&mut self, offset: usize, bits: u8) {
        let byte = self[offset] | bits;
        self.hint_bytes(offset, &[byte]);
    }

    /// Writes bytes: as [`hint`](Self::hint), for what is no flag.
    ///
    /// # Panics
    /// When they are not within the page.
    pub fn hint_bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.changed = true;
        words::store_bytes(self.pool.frames.words(self.frame), offset, bytes);
    }

    /// Gives the latch over to the caller, and whether it must be left with a new version.
    pub(crate) fn into_latched(self) -> (FrameNo, bool) {
        let parts = (self.frame, self.changed);
        std::mem::forget(self);
        parts
    }

    pub(crate) fn pool(&self) -> &'p PoolCore {
        self.pool
    }

    pub(crate) fn frame(&self) -> FrameNo {
        self.frame
    }

    pub(crate) fn set_changed(&mut self) {
        self.changed = true;
    }
}

impl Deref for ExclusiveGuard<'_> {
    type Target = [u8; PAGE_SIZE];
    #[inline]
    fn deref(&self) -> &[u8; PAGE_SIZE] {
        // SAFETY: this guard holds the frame's latch exclusively until it is dropped, so nobody
        // else writes; its holder writes through `&mut self`, or gives it up to a mini-transaction,
        // neither of which can be while the result lives.
        unsafe { self.pool.frames.bytes(self.frame) }
    }
}

impl Drop for ExclusiveGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        release_exclusive(self.pool, self.frame, self.changed);
    }
}

#[inline]
pub(crate) fn release_exclusive(pool: &PoolCore, frame: FrameNo, changed: bool) {
    let latch = &pool.frames.at(frame).latch;
    if changed {
        pool.linger_in_latch();
        latch.unlock_exclusive()
    } else {
        latch.unlock_exclusive_unchanged()
    }
}

/// A page's LSN.
pub(crate) fn page_lsn(page: &[u8; PAGE_SIZE]) -> Lsn {
    let bytes = &page[throng_types::page::OFF_LSN..throng_types::page::OFF_LSN + 8];
    Lsn(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}
