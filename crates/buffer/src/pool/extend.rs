//! Files that grow, shrink and go.
//!
//! The order of growing, and its variants, are in [`growth`](crate::growth); here is what each step
//! does to the pool. In the form that is used a session never waits for a victim to be written:
//! when there are no free frames it gets a [`Wait`].

use std::ops::Range;

use throng_observe::{Counter, Object, Structure, WaitEvent, blocking, count, sampled, stop_point};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, Error, FileId, PageId, Result, error::state};

use crate::frames::{Entrance, FrameNo, FreeFrame};
use crate::growth::{Extension, Grow, Growing, Victims, grow};
use crate::pool::PoolCore;
use crate::pool::guard::ExclusiveGuard;
use crate::wait::{Interrupt, Try, Wait};
use crate::words;

/// One call takes at most this part of the pool: a few loads leave room for others.
const MOST_OF_POOL: usize = 8;

/// What came of [`PoolCore::extend_or_find`].
#[derive(Debug, PartialEq, Eq)]
pub enum Extended<T> {
    /// The file has these blocks more.
    By(Range<BlockNo>),
    /// Somebody else was faster: this is what a second look has found.
    Found(T),
}

impl PoolCore {
    /// Makes the file at least one and at most `pages` pages longer and returns the new blocks,
    /// whose pages are zero, in memory, and logged by nobody until a mini-transaction changes them.
    ///
    /// # Errors
    /// A wait when there is no free frame; 53100 when the disk is full.
    pub fn extend(&self, file: FileId, pages: u32) -> Try<Range<BlockNo>> {
        let mut growth = Growth::new(self, file, pages, never, |_| ());
        growth.run(false)?;
        Ok(growth.blocks())
    }

    /// As [`extend`](Self::extend), for who has found no room while the file had `seen` blocks. If
    /// it is longer by the time that nobody else can extend it, or that took waiting, `look_again`
    /// is called first, and the file extended only when that finds nothing. `offer` is told the new
    /// blocks before anyone else can extend the file, and should put those that the caller will not
    /// use itself where others look.
    ///
    /// # Errors
    /// As [`extend`](Self::extend), and what `look_again` fails with.
    pub fn extend_or_find<T>(
        &self,
        file: FileId,
        pages: u32,
        seen: BlockNo,
        look_again: impl FnMut() -> Result<Option<T>>,
        offer: impl FnMut(Range<BlockNo>),
    ) -> Try<Extended<T>> {
        let mut growth = Growth::new(self, file, pages, look_again, offer);
        growth.seen = Some(seen);
        Ok(match growth.run(false)? {
            Some(found) => Extended::Found(found),
            None => Extended::By(growth.blocks()),
        })
    }

    /// Makes the file one page longer; the new page is zero.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn new_page(&self, file: FileId) -> Try<ExclusiveGuard<'_>> {
        let mut growth = Growth::new(self, file, 1, never, |_| ());
        growth.run(true)?;
        let page = PageId::new(file, growth.first);
        Ok(ExclusiveGuard::of_latched(self, growth.frames[0], page))
    }

    /// How files are made longer here.
    pub fn extension(&self) -> Extension {
        self.extension
    }

    fn lock_growth(&self, file: FileId) -> (Growing<'_>, bool) {
        let lock = &self.growth[file.0 as usize % self.growth.len()];
        match lock.try_lock() {
            Some(growing) => (growing, false),
            None => {
                let waiting = blocking(WaitEvent::LockExtend, Object::file(file.0));
                let _waiting = waiting.held_by(lock.holder());
                (lock.lock(), true)
            }
        }
    }
}

/// For extensions that nobody else's can replace.
fn never() -> Result<Option<std::convert::Infallible>> {
    Ok(None)
}

/// One extension of one file.
struct Growth<'p, L, O> {
    pool: &'p PoolCore,
    file: FileId,
    wanted: usize,
    /// The file's length when no room was found in it.
    seen: Option<BlockNo>,
    look_again: L,
    offer: O,
    /// Found, and known to nobody.
    free: Vec<FreeFrame>,
    /// The first new block, once published.
    first: BlockNo,
    /// Published from there on; latched until opened.
    frames: Vec<FrameNo>,
    /// The first frame stays latched.
    keeps_first: bool,
}

impl<'p, T, L, O> Growth<'p, L, O>
where
    L: FnMut() -> Result<Option<T>>,
    O: FnMut(Range<BlockNo>),
{
    fn new(pool: &'p PoolCore, file: FileId, pages: u32, look_again: L, offer: O) -> Self {
        assert!(pages > 0, "a file grows by at least one page");
        let most = (pool.frames.len() / MOST_OF_POOL).min(pool.extension.bulk as usize);
        Growth {
            pool,
            file,
            wanted: (pages as usize).min(most).max(1),
            seen: None,
            look_again,
            offer,
            free: Vec::new(),
            first: 0,
            frames: Vec::new(),
            keeps_first: false,
        }
    }

    fn run(&mut self, keeps_first: bool) -> Try<Option<T>> {
        let _sampled = sampled(Structure::Extend);
        self.keeps_first = keeps_first;
        let (pool, file) = (self.pool, self.file);
        let seen = self.seen;
        let lock = || {
            let (growing, waited) = pool.lock_growth(file);
            let longer = seen.is_some_and(|seen| pool.blocks(file).is_ok_and(|now| now != seen));
            stop_point!("buffer.extend", file.0.into());
            (growing, waited || longer)
        };
        grow(pool.extension, lock, self)
    }

    fn blocks(&self) -> Range<BlockNo> {
        self.first..self.first + self.frames.len() as u32
    }

    /// The file's length, if that many pages more leave every block a number.
    fn room_for(&self, pages: u32) -> Result<BlockNo> {
        let first = self.pool.blocks(self.file)?;
        // The last number means "no block" to others, and its page id "no page" to a frame.
        if first
            .checked_add(pages)
            .is_none_or(|end| end == BlockNo::MAX)
        {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "cannot extend relation base/{} beyond {} blocks",
                    self.file,
                    BlockNo::MAX - 1
                ),
            ));
        }
        Ok(first)
    }
}

impl<T, L, O> Grow for Growth<'_, L, O>
where
    L: FnMut() -> Result<Option<T>>,
    O: FnMut(Range<BlockNo>),
{
    type Found = T;
    type Stop = Interrupt;

    fn find_frames(&mut self, victims: Victims) -> Try<()> {
        let stock = &self.pool.frames.stock;
        let seen = stock.epoch();
        match victims {
            Victims::Outside => self.pool.frames_for_session(self.wanted, &mut self.free),
            Victims::Inside => self.pool.frames_by_cleaning(self.wanted, &mut self.free),
        }
        if self.free.is_empty() {
            let wait = Wait::for_frames(stock.clone(), self.file, seen);
            return Err(Interrupt::Wait(wait));
        }
        Ok(())
    }

    fn zero(&mut self) {
        for frame in &self.free {
            // No latch: a free frame has no tag that a reader could believe.
            words::store_zeros(self.pool.frames.free_words(frame), 0, PAGE_SIZE);
        }
        for &frame in &self.frames {
            // Published means latched exclusively, until `open`.
            words::store_zeros(self.pool.frames.words(frame), 0, PAGE_SIZE);
        }
    }

    fn look_again(&mut self) -> Try<Option<T>> {
        Ok((self.look_again)()?)
    }

    fn publish(&mut self) -> Try<()> {
        self.first = self.room_for(self.free.len() as u32)?;
        let entrance = Entrance {
            referenced: true,
            pins: 0,
        };
        for (block, free) in (self.first..).zip(self.free.drain(..)) {
            let page = PageId::new(self.file, block);
            let frames = &self.pool.frames;
            self.frames
                .push(frames.publish_latched(free, page, entrance, |_| ()));
        }
        Ok(())
    }

    fn lengthen(&mut self) -> Try<()> {
        let added = self.frames.len() as u32;
        match self.pool.files.extend(self.file, added) {
            Ok(at) => {
                assert_eq!(at, self.first, "only the pool makes files longer");
                count(Counter::PageExtend, added.into());
                Ok(())
            }
            Err(error) => {
                for (block, frame) in (self.first..).zip(self.frames.drain(..)) {
                    self.pool.frames.at(frame).latch.unlock_exclusive();
                    self.pool.discard(frame, PageId::new(self.file, block));
                }
                Err(extension_error(error).into())
            }
        }
    }

    fn offer(&mut self) {
        let blocks = self.blocks();
        (self.offer)(blocks);
    }

    fn open(&mut self) {
        for &frame in self.frames.iter().skip(self.keeps_first.into()) {
            self.pool.frames.at(frame).latch.unlock_exclusive();
        }
    }

    fn give_back(&mut self) {
        if !self.free.is_empty() {
            self.pool.frames.stock.put_all(self.free.drain(..));
        }
    }
}

impl PoolCore {
    /// Forgets the file's pages, changed or not, and removes the file. Nobody may use the file any
    /// more. Waits for reads and writes of it that are under way.
    ///
    /// # Errors
    /// 58030 when the file cannot be removed.
    pub fn drop_file(&self, file: FileId) -> Result<()> {
        let (growing, _) = self.lock_growth(file);
        self.forget(file, 0);
        drop(growing);
        Ok(self.files.remove(file)?)
    }

    /// Cuts the file to `blocks` pages and forgets those behind, changed or not. Nobody may use
    /// them any more.
    ///
    /// # Errors
    /// 58030 when the file cannot be cut.
    pub fn truncate(&self, file: FileId, blocks: BlockNo) -> Result<()> {
        let (_growing, _) = self.lock_growth(file);
        self.forget(file, blocks);
        Ok(self.files.truncate(file, blocks)?)
    }

    /// Takes the file's pages from `first` on out of the pool.
    fn forget(&self, file: FileId, first: BlockNo) {
        // 1. Reads under way, prefetches among them, put their page into the pool: let them, then
        //    take it out.
        for request in self.registry.of_file(file, first) {
            // Its error is nobody's concern any more.
            let _ = Wait::for_read(request, WaitEvent::PageArrival).block();
        }
        // 2. By block where the file is small, by frame where it is not, or its length cannot be
        //    told.
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
