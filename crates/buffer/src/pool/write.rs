//! Writing pages to their files: the log first, a private copy, one writer a page.
//!
//! ```text
//!   1. latch shared          nobody changes the page
//!   2. DIRTY → WRITING       who changes it from now on makes it dirty again
//!   3. copy, unlatch         nobody waits for the disk
//!   4. flush the log         up to the copy's LSN: the log explains whatever reaches the file
//!   5. checksum, write       neighbours with one call
//!   6. WRITING → (clean)     on failure dirty again, and reported
//! ```

use std::time::{Duration, Instant};

use throng_observe::{Counter, LatchExt, Object, count, stop_point};
use throng_sync::atomic::{AtomicU32, Ordering};
use throng_types::page::PAGE_SIZE;
use throng_types::{Error, Lsn, PageId, Result, error::state};

use crate::checksum;
use crate::frames::FrameNo;
use crate::pool::guard::page_lsn;
use crate::pool::{PoolCore, Totals, disk_error};

/// Whether to wait for a page's latch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Latching {
    Try,
    Wait,
}

const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Pages a checkpoint writes together.
const TOGETHER: usize = 16;

/// Pages between step 3 and step 4. Reuses its memory.
#[derive(Default)]
pub(crate) struct WriteBatch {
    pending: Vec<Pending>,
    /// The pages' copies, then ones kept for their memory.
    copies: Vec<[u8; PAGE_SIZE]>,
    /// A write of the last round has failed.
    failed: bool,
    /// Pages written to a file before the system is asked to send them to the disk; 0 leaves that
    /// to the system.
    flush_after: u32,
}

/// When pages that were written are sent on to the disk, without waiting for them. Left to the
/// system they gather in its cache, and the sync that ends a checkpoint sends them all at once:
/// commits stand behind them.
#[derive(Debug)]
pub struct FlushAfter {
    /// `checkpoint_flush_after`: after so many pages that a checkpoint wrote to a file; 0 is never.
    pub checkpoint: AtomicU32,
    /// `bgwriter_flush_after`: the same of the page writer.
    pub page_writer: AtomicU32,
}

impl Default for FlushAfter {
    /// PostgreSQL's defaults, 256 and 512 KB.
    fn default() -> FlushAfter {
        FlushAfter {
            checkpoint: AtomicU32::new(32),
            page_writer: AtomicU32::new(64),
        }
    }
}

struct Pending {
    page: PageId,
    frame: FrameNo,
    lsn: Lsn,
    /// Which of the copies is its.
    copy: usize,
}

impl Pending {
    /// Whether it is the `n`th page after `first`, in the file as in memory.
    fn follows(&self, first: &Pending, n: usize) -> bool {
        self.page.raw() == first.page.raw() + n as u64 && self.copy == first.copy + n
    }
}

impl WriteBatch {
    pub(crate) fn flush_after(&mut self, pages: &AtomicU32) {
        self.flush_after = pages.load(Ordering::Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// How long to wait before the next round, by how the last one went.
    pub(crate) fn pause_after(&self, success: Duration, failure: Duration) -> Duration {
        if self.failed { failure } else { success }
    }
}

impl PoolCore {
    /// Steps 1 to 3. False when there is nothing to write, or somebody is in the way and `latching`
    /// says not to wait.
    pub(crate) fn prepare_write(
        &self,
        number: FrameNo,
        latching: Latching,
        batch: &mut WriteBatch,
    ) -> bool {
        let frame = self.frames.at(number);
        if latching == Latching::Wait {
            let page = frame
                .page()
                .map_or(Object::NONE, |page| Object::page(page.raw()));
            frame.latch.shared_seen(page, &frame.holder);
        } else if !frame.latch.try_shared() {
            return false;
        }
        if !frame.begin_write() {
            frame.latch.unlock_shared();
            return false;
        }
        let page = frame.page().expect("a dirty frame has a page");
        let at = batch.pending.len();
        if at == batch.copies.len() {
            batch.copies.push([0; PAGE_SIZE]);
        }
        let copy = &mut batch.copies[at];
        self.frames.copy_page(number, copy);
        frame.latch.unlock_shared();
        batch.pending.push(Pending {
            page,
            frame: number,
            lsn: page_lsn(copy),
            copy: at,
        });
        true
    }

    /// Steps 4 to 6 for the whole batch, in file order. Returns the frames that were written;
    /// errors are reported, and their pages stay dirty.
    pub(crate) fn finish_writes(&self, batch: &mut WriteBatch) -> Vec<FrameNo> {
        let mut written = Vec::with_capacity(batch.len());
        let Some(lsn) = batch.pending.iter().map(|pending| pending.lsn).max() else {
            return written;
        };
        batch.failed = false;
        batch.pending.sort_unstable_by_key(|pending| pending.page);
        // One flush for all: the log is flushed in order. Without it no page goes anywhere.
        let flushed = self.wal.flush_blocking(lsn);
        let WriteBatch {
            pending,
            copies,
            failed,
            flush_after,
        } = batch;
        let mut rest = &pending[..];
        while let Some(first) = rest.first() {
            let together = (0..).zip(rest).take_while(|(n, p)| p.follows(first, *n));
            let (run, after) = rest.split_at(together.count());
            rest = after;
            let copies = &mut copies[first.copy..first.copy + run.len()];
            let result = flushed
                .clone()
                .and_then(|_| self.write_copies(first.page, copies, *flush_after));
            for page in run {
                self.frames.at(page.frame).end_write(result.is_ok());
            }
            match result {
                Ok(()) => written.extend(run.iter().map(|page| page.frame)),
                Err(error) => {
                    *failed = true;
                    self.report_write_error(first.page, error);
                }
            }
        }
        pending.clear();
        // Under the lock, so that nobody is between looking at WRITING and sleeping.
        let _lock = self.write_ended.0.lock();
        self.write_ended.1.notify_all();
        written
    }

    /// Step 5 for neighbours, `first` and those after it.
    fn write_copies(
        &self,
        first: PageId,
        copies: &mut [[u8; PAGE_SIZE]],
        flush_after: u32,
    ) -> Result<()> {
        for (raw, copy) in (first.raw()..).zip(&mut *copies) {
            stop_point!("buffer.page_write", raw);
            checksum::stamp(PageId::from_raw(raw), copy);
        }
        self.files.write_pages(first, copies).map_err(disk_error)?;
        if flush_after > 0 {
            let flushed = self.files.flush_after(first.file(), flush_after);
            flushed.map_err(disk_error)?;
        }
        let pages = copies.len() as u64;
        count(Counter::PageWrite, pages);
        Totals::add(&self.totals.writes, pages);
        Ok(())
    }

    /// Counts every failure and reports one a second: a disk that fails, fails for every page.
    #[cold]
    fn report_write_error(&self, page: PageId, error: Error) {
        Totals::add(&self.totals.write_errors, 1);
        let mut last = self.last_report.lock();
        if last.is_some_and(|last| last.elapsed() < REPORT_INTERVAL) {
            return;
        }
        *last = Some(Instant::now());
        drop(last);
        (self.report)(&error.context(format!("writing {}", name(page))));
    }

    /// Returns once the frame's page is not being written.
    pub(crate) fn wait_for_write(&self, number: FrameNo) {
        let mut lock = self.write_ended.0.lock();
        while self.frames.at(number).writing() {
            self.write_ended.1.wait(&mut lock);
        }
    }

    /// Writes every page that is dirty now, in file and block order. `pace(done, total)` is called
    /// before each few pages and may wait, so that the writes are spread; no latch is held then,
    /// and no write begun.
    ///
    /// A checkpoint calls this after `ImageHorizon::begin_checkpoint`: whatever a record before its
    /// redo point changed is marked dirty by then. The pages are in their files afterwards, not yet
    /// durable: sync the files before the checkpoint is recorded.
    ///
    /// # Errors
    /// A page that could not be written: it stays dirty, and the checkpoint must not be completed.
    pub fn flush_for_checkpoint(&self, pace: &mut dyn FnMut(usize, usize)) -> Result<()> {
        let mut due: Vec<(PageId, FrameNo)> = (0..self.frames.len() as FrameNo)
            .filter(|&number| self.frames.at(number).owes_write())
            .filter_map(|number| Some((self.frames.at(number).page()?, number)))
            .collect();
        due.sort_unstable();
        let mut batch = WriteBatch::default();
        batch.flush_after(&self.flush_after.checkpoint);
        let mut done = 0;
        for some in due.chunks(TOGETHER) {
            pace(done, due.len());
            self.flush_frames(some, &mut batch)?;
            done += some.len();
        }
        pace(done, due.len());
        Ok(())
    }

    /// Returns once every change that was in these pages at the call is in their files.
    fn flush_frames(&self, due: &[(PageId, FrameNo)], batch: &mut WriteBatch) -> Result<()> {
        for &(page, number) in due {
            let frame = self.frames.at(number);
            // A frame that holds another page by now was clean, hence written, when it was taken.
            // Whether it is being written is not the question: it may have been, have been changed
            // meanwhile, and now be neither being written nor clean.
            while frame.holds(page) && frame.owes_write() {
                // Who has the latch may wait for a write that was begun here.
                let alone = batch.pending.is_empty();
                let latching = match alone {
                    true => Latching::Wait,
                    false => Latching::Try,
                };
                if self.prepare_write(number, latching, batch) {
                    break;
                }
                if alone {
                    // Begun before the call perhaps, with less in it.
                    self.wait_for_write(number);
                } else {
                    self.finish_all(batch)?;
                }
            }
        }
        self.finish_all(batch)
    }

    fn finish_all(&self, batch: &mut WriteBatch) -> Result<()> {
        let Some(first) = batch.pending.first().map(|pending| pending.page) else {
            return Ok(());
        };
        let written = self.finish_writes(batch);
        count(Counter::CheckpointWrite, written.len() as u64);
        if batch.failed {
            let message = format!("could not write {}", name(first));
            return Err(Error::new(state::IO_ERROR, message));
        }
        Ok(())
    }
}

fn name(page: PageId) -> String {
    format!("block {} of relation base/{}", page.block(), page.file())
}
