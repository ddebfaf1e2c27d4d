//! What recovery does to pages.
//!
//! Redo runs before there are sessions. It applies a record to a page when the page's LSN is below
//! the record's end, or whenever the record replaces the page: then what is there may be torn, and
//! is not even read.

use throng_observe::WaitEvent;
use throng_types::page::{OFF_LSN, PAGE_SIZE};
use throng_types::{Lsn, PageId, Result};
use throng_wal::Ops;

use crate::frames::Entrance;
use crate::pool::PoolCore;
use crate::pool::guard::{ExclusiveGuard, page_lsn};
use crate::request::Begun;
use crate::wait::{Wait, retry_blocking};
use crate::words::{self, PageWords};

impl PoolCore {
    /// Redoes one record's ops on one page. `end` is the record's end. Makes the file, or makes it
    /// longer, where needed: a file that is dropped later in the log may be gone already. Blocks.
    ///
    /// # Errors
    /// XX001 when the page is damaged and the record does not replace it.
    pub fn redo_apply(&self, page: PageId, end: Lsn, ops: Ops<'_>) -> Result<()> {
        let replaces = ops.replaces_page();
        let mut guard = if replaces {
            self.page_to_replace(page)?
        } else {
            self.redo_page(page)?
        };
        if !replaces && page_lsn(&guard) >= end {
            return Ok(());
        }
        let mut bytes = *guard;
        throng_wal::apply(&mut bytes, ops);
        bytes[OFF_LSN..OFF_LSN + 8].copy_from_slice(&end.0.to_le_bytes());
        self.install_in(&mut guard, &bytes);
        Ok(())
    }

    /// Puts a whole page in place, as of `lsn`, and marks it dirty. Logs nothing. Blocks.
    ///
    /// # Errors
    /// As [`redo_apply`](Self::redo_apply).
    pub fn install(&self, page: PageId, bytes: &[u8; PAGE_SIZE], lsn: Lsn) -> Result<()> {
        let mut guard = self.page_to_replace(page)?;
        let mut bytes = *bytes;
        bytes[OFF_LSN..OFF_LSN + 8].copy_from_slice(&lsn.0.to_le_bytes());
        self.install_in(&mut guard, &bytes);
        Ok(())
    }

    /// The page exclusively; its file is made, and made long enough, if need be. Blocks.
    ///
    /// # Errors
    /// XX001 when it is damaged; 58030 and 53100 from the disk.
    pub fn redo_page(&self, page: PageId) -> Result<ExclusiveGuard<'_>> {
        self.make_room(page)?;
        retry_blocking(|| self.exclusive(page))
    }

    /// As [`redo_page`](Self::redo_page), without reading it from the disk: what it holds is
    /// anything.
    fn page_to_replace(&self, page: PageId) -> Result<ExclusiveGuard<'_>> {
        self.make_room(page)?;
        loop {
            let request = match self.begin_read(page, false) {
                Begun::Mine(request) => request,
                Begun::Resident => return retry_blocking(|| self.exclusive(page)),
                Begun::Joined(request) => {
                    // A page that cannot be read can still be replaced.
                    let _ = Wait::for_read(request, WaitEvent::PageArrival).block();
                    continue;
                }
            };
            let entrance = Entrance {
                referenced: true,
                pins: 1,
            };
            let zero = |words: &PageWords| words::store_zeros(words, 0, PAGE_SIZE);
            let arrived = self
                .free_frame(self.frames.stock.nodes().here())
                .map(|free| self.frames.publish(free, page, entrance, zero));
            let failed = arrived.as_ref().err().cloned();
            self.registry.finish(&request, arrived);
            if let Some(error) = failed {
                return Err(error);
            }
            // The request, and with it the page's pin, lives until the page is latched.
            return retry_blocking(|| self.exclusive(page));
        }
    }

    fn make_room(&self, page: PageId) -> Result<()> {
        self.files.create(page.file())?;
        Ok(self.files.ensure(page.file(), page.block() + 1)?)
    }

    fn install_in(&self, guard: &mut ExclusiveGuard<'_>, bytes: &[u8; PAGE_SIZE]) {
        guard.set_changed();
        self.frames.at(guard.frame()).mark_dirty();
        words::store_bytes(self.frames.words(guard.frame()), 0, bytes);
    }
}
