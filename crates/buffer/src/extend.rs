//! Files that grow, shrink and go.
//!
//! Growing takes the file's lock for what needs it and nothing else (CASES.md, case 5):
//!
//! ```text
//!   1. free frames, zeroed            no lock: nobody knows them yet
//!   2. lock the file's growth
//!   3. read its length                nobody else starts at the same block
//!   4. publish the frames there       found before the blocks can be: whoever sees the new length finds them
//!   5. make the file longer
//!   6. unlock
//! ```
//!
//! A session never waits for a victim to be written: when there are no free frames it gets a [`Wait`].

use std::ops::Range;

use parking_lot::MutexGuard;
use throng_observe::{Counter, Object, WaitEvent, blocking, count};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, Error, FileId, PageId, Result, error::state};

use crate::frame::{Entrance, FrameNo, FreeFrame};
use crate::guard::ExclusiveGuard;
use crate::pool::PoolCore;
use crate::wait::{Interrupt, Try, Wait};
use crate::words;

/// Frames one call takes at most, and no more than an eighth of the pool: 512 KB, so that a few loads leave room for others.
const MAX_BULK: usize = 64;

impl PoolCore {
    /// Makes the file at least one and at most `pages` pages longer and returns the new blocks, whose pages are zero, in
    /// memory, and logged by nobody until a mini-transaction changes them.
    ///
    /// # Errors
    /// A wait when there is no free frame; 53100 when the disk is full.
    pub fn extend(&self, file: FileId, pages: u32) -> Try<Range<BlockNo>> {
        assert!(pages > 0, "a file grows by at least one page");
        let (new, first) = self.grow(file, pages as usize)?;
        self.frames.at(first).latch.unlock_exclusive_unchanged();
        Ok(new)
    }

    /// Makes the file one page longer; the new page is zero.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn new_page(&self, file: FileId) -> Try<ExclusiveGuard<'_>> {
        let (new, frame) = self.grow(file, 1)?;
        Ok(ExclusiveGuard::of_latched(
            self,
            frame,
            PageId::new(file, new.start),
        ))
    }

    /// The new blocks and the frame of the first, which is left latched exclusively.
    fn grow(&self, file: FileId, pages: usize) -> Try<(Range<BlockNo>, FrameNo)> {
        // 1. Frames, of which nobody knows yet.
        let free = self.zeroed_frames(file, pages)?;
        let count_new = free.len() as u32;
        // 2. From here on nobody else makes this file longer.
        let lock = self.lock_growth(file);
        // 3. and 4.
        let first = match self.room_for(file, count_new) {
            Ok(first) => first,
            Err(error) => {
                drop(lock);
                self.frames.stock.put_all(free);
                return Err(error.into());
            }
        };
        let frames = self.publish_new(file, first, free);
        // 5.
        let grown = self.files.extend(file, count_new).map_err(extension_error);
        // 6.
        drop(lock);
        match grown {
            Ok(at) => {
                assert_eq!(at, first, "only the pool makes files longer");
                count(Counter::PageExtend, count_new.into());
                Ok((first..first + count_new, frames[0]))
            }
            Err(error) => {
                self.frames.at(frames[0]).latch.unlock_exclusive_unchanged();
                for (block, &frame) in (first..).zip(&frames) {
                    self.discard(frame, PageId::new(file, block));
                }
                Err(error.into())
            }
        }
    }

    fn zeroed_frames(&self, file: FileId, pages: usize) -> Try<Vec<FreeFrame>> {
        let seen = self.frames.stock.epoch();
        let wanted = pages.min(MAX_BULK).min(self.frames.len() / 8).max(1);
        let mut free = Vec::with_capacity(wanted);
        self.frames_for_session(wanted, &mut free);
        if free.is_empty() {
            return Err(Interrupt::Wait(Wait::for_frames(
                self.frames.stock.clone(),
                file,
                seen,
            )));
        }
        for frame in &free {
            // No latch: a free frame has no tag that a reader could believe.
            words::store_zeros(self.frames.free_words(frame), 0, PAGE_SIZE);
        }
        Ok(free)
    }

    fn lock_growth(&self, file: FileId) -> MutexGuard<'_, ()> {
        let lock = &self.extensions[file.0 as usize % self.extensions.len()];
        lock.try_lock().unwrap_or_else(|| {
            let _waiting = blocking(WaitEvent::LockExtend, Object::file(file.0));
            lock.lock()
        })
    }

    /// The file's length, if that many pages more leave every block a number.
    fn room_for(&self, file: FileId, pages: u32) -> Result<BlockNo> {
        let first = self.blocks(file)?;
        // The last number means "no block" to others, and its page id "no page" to a frame.
        if first
            .checked_add(pages)
            .is_none_or(|end| end == BlockNo::MAX)
        {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "cannot extend relation base/{file} beyond {} blocks",
                    BlockNo::MAX - 1
                ),
            ));
        }
        Ok(first)
    }

    fn publish_new(&self, file: FileId, first: BlockNo, free: Vec<FreeFrame>) -> Vec<FrameNo> {
        let entrance = Entrance {
            referenced: true,
            pins: 0,
        };
        let publish = |(block, frame): (BlockNo, FreeFrame)| {
            let page = PageId::new(file, block);
            let number = self.frames.publish_latched(frame, page, entrance, |_| ());
            if block != first {
                self.frames.at(number).latch.unlock_exclusive();
            }
            number
        };
        (first..).zip(free).map(publish).collect()
    }

    /// Forgets the file's pages, changed or not, and removes the file. Nobody may use the file any more. Waits for reads and
    /// writes of it that are under way.
    ///
    /// # Errors
    /// 58030 when the file cannot be removed.
    pub fn drop_file(&self, file: FileId) -> Result<()> {
        let lock = self.lock_growth(file);
        self.forget(file, 0);
        drop(lock);
        Ok(self.files.remove(file)?)
    }

    /// Cuts the file to `blocks` pages and forgets those behind, changed or not. Nobody may use them any more.
    ///
    /// # Errors
    /// 58030 when the file cannot be cut.
    pub fn truncate(&self, file: FileId, blocks: BlockNo) -> Result<()> {
        let _lock = self.lock_growth(file);
        self.forget(file, blocks);
        Ok(self.files.truncate(file, blocks)?)
    }

    /// Takes the file's pages from `first` on out of the pool.
    fn forget(&self, file: FileId, first: BlockNo) {
        // 1. Reads under way, prefetches among them, put their page into the pool: let them, then take it out.
        for request in self.registry.of_file(file, first) {
            // Its error is nobody's concern any more.
            let _ = Wait::for_read(request, WaitEvent::PageArrival).block();
        }
        // 2. By block where the file is small, by frame where it is not, or its length cannot be told.
        match self.blocks(file) {
            Ok(end) if (end.saturating_sub(first) as usize) < self.frames.len() / 4 => {
                for page in (first..end).map(|block| PageId::new(file, block)) {
                    if let Some(number) = self.frames.find(page) {
                        self.discard(number, page);
                    }
                }
            }
            _ => {
                for number in 0..self.frames.len() as FrameNo {
                    if let Some(page) = self.frames.at(number).page()
                        && page.file() == file
                        && page.block() >= first
                    {
                        self.discard(number, page);
                    }
                }
            }
        }
    }

    fn discard(&self, number: FrameNo, page: PageId) {
        while !self.frames.discard(number, page) {
            self.wait_for_write(number);
        }
    }
}

#[cold]
fn extension_error(error: std::io::Error) -> Error {
    let error = Error::from(error);
    if error.code() == state::DISK_FULL {
        error.hint("Check free disk space.")
    } else {
        error
    }
}
