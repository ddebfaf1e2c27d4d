//! Writing pages to their files: the log first, a private copy, one writer a page.
//!
//! ```text
//!   1. latch shared          nobody changes the page
//!   2. DIRTY → WRITING       who changes it from now on makes it dirty again
//!   3. copy, unlatch         nobody waits for the disk
//!   4. flush the log         up to the copy's LSN: the log explains whatever reaches the file
//!   5. checksum, write
//!   6. WRITING → (clean)     on failure dirty again, and reported
//! ```

use std::time::{Duration, Instant};

use throng_observe::{Counter, LatchExt, Object, count, stop_point};
use throng_types::page::PAGE_SIZE;
use throng_types::{Error, Lsn, PageId, Result, error::state};

use crate::checksum;
use crate::frame::FrameNo;
use crate::guard::page_lsn;
use crate::pool::{PoolCore, Totals, disk_error};

/// Whether to wait for a page's latch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Latching {
    Try,
    Wait,
}

const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Pages between step 3 and step 4. Reuses its memory.
#[derive(Default)]
pub(crate) struct WriteBatch {
    pending: Vec<Pending>,
    spare: Vec<Box<[u8; PAGE_SIZE]>>,
    /// A write of the last round has failed.
    failed: bool,
}

struct Pending {
    page: PageId,
    frame: FrameNo,
    lsn: Lsn,
    copy: Box<[u8; PAGE_SIZE]>,
}

impl WriteBatch {
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
    /// Steps 1 to 3. False when there is nothing to write, or somebody is in the way and `latching` says not to wait.
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
        let mut copy = batch
            .spare
            .pop()
            .unwrap_or_else(|| Box::new([0; PAGE_SIZE]));
        self.frames.copy_page(number, &mut copy);
        frame.latch.unlock_shared();
        batch.pending.push(Pending {
            page,
            frame: number,
            lsn: page_lsn(&copy),
            copy,
        });
        true
    }

    /// Steps 4 to 6 for the whole batch, in file order. Returns the frames that were written; errors are reported, and
    /// their pages stay dirty.
    pub(crate) fn finish_writes(&self, batch: &mut WriteBatch) -> Vec<FrameNo> {
        let mut written = Vec::with_capacity(batch.len());
        let Some(lsn) = batch.pending.iter().map(|pending| pending.lsn).max() else {
            return written;
        };
        batch.failed = false;
        batch.pending.sort_unstable_by_key(|pending| pending.page);
        // One flush for all: the log is flushed in order. Without it no page goes anywhere.
        let flushed = self.wal.flush_blocking(lsn);
        for mut pending in batch.pending.drain(..) {
            let result = flushed
                .clone()
                .and_then(|_| self.write_copy(pending.page, &mut pending.copy));
            self.frames.at(pending.frame).end_write(result.is_ok());
            match result {
                Ok(()) => written.push(pending.frame),
                Err(error) => {
                    batch.failed = true;
                    self.report_write_error(pending.page, error);
                }
            }
            batch.spare.push(pending.copy);
        }
        // Under the lock, so that nobody is between looking at WRITING and sleeping.
        let _lock = self.write_ended.0.lock();
        self.write_ended.1.notify_all();
        written
    }

    fn write_copy(&self, page: PageId, copy: &mut [u8; PAGE_SIZE]) -> Result<()> {
        stop_point!("buffer.page_write", page.raw());
        checksum::stamp(page, copy);
        self.files.write_page(page, copy).map_err(disk_error)?;
        count(Counter::PageWrite, 1);
        Totals::add(&self.totals.writes, 1);
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

    /// Writes every page that is dirty now, in file and block order. `pace(done, total)` is called before each page and may
    /// wait, so that the writes are spread; no latch is held then.
    ///
    /// A checkpoint calls this after `ImageHorizon::begin_checkpoint`: whatever a record before its redo point changed is
    /// marked dirty by then. The pages are in their files afterwards, not yet durable: sync the files before the
    /// checkpoint is recorded.
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
        for (done, &(page, number)) in due.iter().enumerate() {
            pace(done, due.len());
            self.flush_frame(page, number, &mut batch)?;
        }
        pace(due.len(), due.len());
        Ok(())
    }

    /// Returns once every change that was in the page at the call is in its file.
    fn flush_frame(&self, page: PageId, number: FrameNo, batch: &mut WriteBatch) -> Result<()> {
        let frame = self.frames.at(number);
        // A frame that holds another page by now was clean, hence written, when it was taken.
        while frame.holds(page) {
            if self.prepare_write(number, Latching::Wait, batch) {
                if self.finish_writes(batch).is_empty() {
                    return Err(Error::new(
                        state::IO_ERROR,
                        format!("could not write {}", name(page)),
                    ));
                }
                break;
            }
            // Whether it is being written is not the question: it may have been, have been changed meanwhile, and now be neither
            // being written nor clean.
            if !frame.owes_write() {
                break;
            }
            // Begun before the call perhaps, with less in it.
            self.wait_for_write(number);
        }
        Ok(())
    }
}

fn name(page: PageId) -> String {
    format!("block {} of relation base/{}", page.block(), page.file())
}
