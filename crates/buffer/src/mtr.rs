//! Mini-transactions: changes of one or more pages that reach the log, and so the disk, together or
//! not at all.
//!
//! ```text
//!   1. add      the pages, latched exclusively; anything may still fail, and nothing has changed
//!   2. edit     applied at once and recorded; from the first one on nothing can fail
//!   3. commit   a. pages that were not logged since the last checkpoint began: an image instead of their edits
//!               b. mark them dirty         before the log knows: a checkpoint that counts the record sees the mark
//!               c. one record into the log
//!               d. stamp its end on the pages
//!               e. drop the ticket, release the latches
//! ```
//!
//! A page cannot be written before its record is durable: until e. the latch keeps writers away,
//! and after it the page's LSN makes them flush the log first.

use std::cell::Cell;

use throng_types::page::{HEADER, OFF_KIND, OFF_LOWER, OFF_LSN, OFF_SPECIAL, OFF_UPPER, PAGE_SIZE};
use throng_types::{Lsn, PageId, Xid};
use throng_wal::{MtrTicket, RecordBuilder};

use crate::frames::FrameNo;
use crate::pool::PoolCore;
use crate::pool::guard::{ExclusiveGuard, page_lsn, release_exclusive};
use crate::words;

/// Pages one mini-transaction may hold: a record of that many images is still far from the log's
/// limit.
pub const MAX_MTR_PAGES: usize = 64;
const _: () = assert!(MAX_MTR_PAGES * (PAGE_SIZE + 64) + 64 <= throng_wal::MAX_RECORD);

/// An atomic change of pages. See the module's page.
///
/// Dropping one that has edited nothing releases its pages. Dropping one that has, without a
/// commit, is a bug, with pages in memory that no log explains: it panics, and where that could be
/// swallowed, ends the process, so that recovery puts the pages right.
pub struct Mtr<'p> {
    pool: &'p PoolCore,
    xid: Xid,
    /// From the first edit on.
    ticket: Option<MtrTicket<'p>>,
    /// Taken by `commit`.
    scratch: Option<Box<Scratch>>,
}

/// What mini-transactions of one thread use one after another.
#[derive(Default)]
struct Scratch {
    record: RecordBuilder,
    pages: Vec<HeldPage>,
    moved: Vec<u8>,
}

/// A page whose exclusive latch the mini-transaction holds.
struct HeldPage {
    frame: FrameNo,
    page: PageId,
    /// What the guard it came in as had done.
    hinted: bool,
    logged: Logged,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Logged {
    /// Not edited.
    No,
    /// Its edits, under this index of the record.
    Edits(usize),
    /// The page as it is at commit, under this index.
    Image(usize),
}

thread_local! {
    static SPARE: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl<'p> Mtr<'p> {
    /// Begins a mini-transaction on behalf of `xid` ([`Xid::NONE`] for what belongs to nobody).
    /// Costs nothing until a page is edited.
    pub fn new(pool: &'p PoolCore, xid: Xid) -> Mtr<'p> {
        let scratch = SPARE.take().unwrap_or_default();
        Mtr {
            pool,
            xid,
            ticket: None,
            scratch: Some(scratch),
        }
    }

    /// Takes a page in; edits name it by the index returned, counting from 0.
    ///
    /// # Panics
    /// When it is the 65th, or of another pool.
    pub fn add(&mut self, guard: ExclusiveGuard<'p>) -> usize {
        assert!(
            std::ptr::eq(guard.pool(), self.pool),
            "a mini-transaction has pages of one pool"
        );
        let pages = &mut self.scratch_mut().pages;
        assert!(
            pages.len() < MAX_MTR_PAGES,
            "a mini-transaction has too many pages"
        );
        let page = guard.page_id();
        let (frame, hinted) = guard.into_latched();
        pages.push(HeldPage {
            frame,
            page,
            hinted,
            logged: Logged::No,
        });
        pages.len() - 1
    }

    /// How many pages were added.
    pub fn len(&self) -> usize {
        self.scratch().pages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn page_id(&self, index: usize) -> PageId {
        self.scratch().pages[index].page
    }

    /// The page as edited so far.
    #[inline]
    pub fn page(&self, index: usize) -> &[u8; PAGE_SIZE] {
        let frame = self.scratch().pages[index].frame;
        // SAFETY: the page's exclusive latch is this mini-transaction's until it ends, which
        // consumes or drops it, so nobody else writes; edits need `&mut self`, so none happens
        // while the result lives.
        unsafe { self.pool.frames.bytes(frame) }
    }

    /// Puts `bytes` at `offset`.
    ///
    /// # Panics
    /// Here and in the other edits: when the range leaves the page.
    pub fn write(&mut self, index: usize, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let frame = self.begin_edit(index);
        words::store_bytes(self.pool.frames.words(frame), offset, bytes);
        let scratch = self.scratch_mut();
        if let Logged::Edits(at) = scratch.pages[index].logged {
            scratch.record.write(at, offset, bytes);
        }
    }

    /// Moves `len` bytes from `src` to `dst`, as `memmove`.
    pub fn move_within(&mut self, index: usize, src: usize, dst: usize, len: usize) {
        if len == 0 || src == dst {
            return;
        }
        let frame = self.begin_edit(index);
        let mut moved = std::mem::take(&mut self.scratch_mut().moved);
        moved.clear();
        moved.extend_from_slice(&self.page(index)[src..src + len]);
        words::store_bytes(self.pool.frames.words(frame), dst, &moved);
        let scratch = self.scratch_mut();
        scratch.moved = moved;
        if let Logged::Edits(at) = scratch.pages[index].logged {
            scratch.record.move_within(at, src, dst, len);
        }
    }

    /// Zeroes `len` bytes at `offset`.
    pub fn zero(&mut self, index: usize, offset: usize, len: usize) {
        if len == 0 {
            return;
        }
        let frame = self.begin_edit(index);
        words::store_zeros(self.pool.frames.words(frame), offset, len);
        let scratch = self.scratch_mut();
        if let Logged::Edits(at) = scratch.pages[index].logged {
            scratch.record.zero(at, offset, len);
        }
    }

    /// Makes the page an empty one of `kind`, with `special` bytes at its end for its structure's
    /// own use. The page is logged whole, so filling it in the same mini-transaction costs no more
    /// log than the result.
    pub fn init(&mut self, index: usize, kind: u8, special: u16) {
        assert!(
            usize::from(special) <= PAGE_SIZE - HEADER,
            "a page has room for its header"
        );
        self.log_image(index);
        let upper = (PAGE_SIZE as u16 - special).to_le_bytes();
        self.zero(index, 0, PAGE_SIZE);
        self.write(index, OFF_KIND, &[kind]);
        self.write(index, OFF_LOWER, &(HEADER as u16).to_le_bytes());
        self.write(index, OFF_UPPER, &upper);
        self.write(index, OFF_SPECIAL, &upper);
    }

    /// Has the page logged whole instead of by its edits: for one that is rewritten for the most
    /// part. What its kind calls free ([`throng_types::page::hole`]) is not kept by redo.
    pub fn log_image(&mut self, index: usize) {
        self.begin_edit(index);
        let held = &mut self.scratch_mut().pages[index];
        if let Logged::Edits(at) = held.logged {
            held.logged = Logged::Image(at);
        }
    }

    /// Logs and releases. Returns the end of the record: where the log must be durable for the
    /// change to be. [`Lsn::ZERO`] when nothing was edited.
    pub fn commit(mut self) -> Lsn {
        let lsn = self.log();
        self.release();
        lsn
    }

    /// As [`commit`](Self::commit), giving the pages back still latched, in the order in which they
    /// were added.
    pub fn commit_keep(mut self) -> (Lsn, Vec<ExclusiveGuard<'p>>) {
        let lsn = self.log();
        let mut scratch = self.scratch.take().expect("a scratch until the end");
        let keep = |held: HeldPage| {
            let mut guard = ExclusiveGuard::of_latched(self.pool, held.frame, held.page);
            if held.hinted || held.logged != Logged::No {
                guard.set_changed();
            }
            guard
        };
        let guards = scratch.pages.drain(..).map(keep).collect();
        SPARE.set(Some(scratch));
        (lsn, guards)
    }

    fn scratch(&self) -> &Scratch {
        self.scratch.as_deref().expect("a scratch until the end")
    }

    fn scratch_mut(&mut self) -> &mut Scratch {
        self.scratch
            .as_deref_mut()
            .expect("a scratch until the end")
    }

    /// Sees to it that the page's change will be logged, and says where it is.
    #[inline]
    fn begin_edit(&mut self, index: usize) -> FrameNo {
        let held = &self.scratch().pages[index];
        let frame = held.frame;
        if held.logged == Logged::No {
            self.begin_first_edit(index);
        }
        frame
    }

    fn begin_first_edit(&mut self, index: usize) {
        let (pool, xid) = (self.pool, self.xid);
        if self.ticket.is_none() {
            // Before the horizon is looked at, and until the pages are marked: see `ImageHorizon`.
            self.ticket = Some(pool.horizon.enter());
            self.scratch_mut().record.pages(xid);
        }
        let lsn = page_lsn(self.page(index));
        let image = self
            .ticket
            .as_ref()
            .is_some_and(|ticket| ticket.needs_image(lsn));
        let scratch = self.scratch_mut();
        let at = scratch.record.add_page(scratch.pages[index].page);
        scratch.pages[index].logged = if image {
            Logged::Image(at)
        } else {
            Logged::Edits(at)
        };
    }

    /// Phases a to d and the ticket's end.
    fn log(&mut self) -> Lsn {
        if self.ticket.is_none() {
            return Lsn::ZERO;
        }
        let pool = self.pool;
        let mut scratch = self.scratch.take().expect("a scratch until the end");
        let Scratch { record, pages, .. } = &mut *scratch;
        let edited = |held: &&HeldPage| held.logged != Logged::No;
        // a.
        for held in pages.iter() {
            if let Logged::Image(at) = held.logged {
                // SAFETY: the latch is held exclusively by this mini-transaction; nothing is
                // written until the image is taken.
                record.image(at, unsafe { pool.frames.bytes(held.frame) });
            }
        }
        // b.
        for held in pages.iter().filter(edited) {
            pool.frames.at(held.frame).mark_dirty();
        }
        // c.
        let lsn = pool.wal.insert(record);
        // d.
        for held in pages.iter().filter(edited) {
            words::store_bytes(pool.frames.words(held.frame), OFF_LSN, &lsn.0.to_le_bytes());
        }
        self.scratch = Some(scratch);
        self.ticket = None;
        lsn
    }

    fn release(&mut self) {
        let Some(mut scratch) = self.scratch.take() else {
            return;
        };
        for held in scratch.pages.drain(..) {
            let changed = held.hinted || held.logged != Logged::No;
            release_exclusive(self.pool, held.frame, changed);
        }
        SPARE.set(Some(scratch));
    }
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        if self.ticket.is_none() {
            self.release();
            return;
        }
        let what = "a mini-transaction that has changed pages was dropped without a commit";
        if std::thread::panicking() || !cfg!(debug_assertions) {
            eprintln!("PANIC: {what}");
            std::process::abort();
        }
        // The pages stay latched: what is in them must be seen by nobody.
        panic!("{what}");
    }
}
