//! The clock, and the page writer that keeps the stock of free frames.
//!
//! The hand goes round all frames. A page that was used since it last passed is let live for
//! another round; one that was not is taken if it is clean, and written first if it is dirty. The
//! phases of taking are in `Frames::claim`.

use std::time::{Duration, Instant};

use throng_observe::{Counter, Object, WaitEvent, count, waiting};
use throng_sync::atomic::Ordering;
use throng_types::{Error, Result, error::state};

use crate::frames::{FrameNo, FreeFrame};
use crate::pool::write::{Latching, WriteBatch};
use crate::pool::{PoolCore, Totals};

/// How far a session turns the clock itself before it leaves the search to the page writer.
const FOREGROUND_STEPS: usize = 256;
/// Dirty pages the page writer writes together, after one look at the log.
const BATCH: usize = 32;
/// How long to leave pins alone that do not go away.
const PAUSE: Duration = Duration::from_millis(1);
/// How long to leave a disk alone that does not take pages.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);
/// After so long without a single free frame, whoever needs one is told so.
const PATIENCE: Duration = Duration::from_secs(5);

impl PoolCore {
    /// The next frame under the hand.
    fn advance(&self) -> FrameNo {
        (self.hand.fetch_add(1, Ordering::Relaxed) % self.frames.len() as u64) as FrameNo
    }

    /// Takes an idle page that the hand has passed without its being used since.
    fn take_clean(&self) -> Option<FreeFrame> {
        for _ in 0..FOREGROUND_STEPS.min(2 * self.frames.len()) {
            let number = self.advance();
            if !self.frames.at(number).pass()
                && let Some(free) = self.claim(number)
            {
                return Some(free);
            }
        }
        None
    }

    pub(crate) fn claim(&self, number: FrameNo) -> Option<FreeFrame> {
        let free = self.frames.claim(number)?;
        count(Counter::PageEvict, 1);
        Totals::add(&self.totals.evictions, 1);
        Some(free)
    }

    /// Free frames for a session, which does not wait and does not write: from the stock, or a
    /// clean page's. May add none.
    pub(crate) fn frames_for_session(&self, wanted: usize, into: &mut Vec<FreeFrame>) {
        let stock = &self.frames.stock;
        stock.take_many(stock.nodes().here(), wanted, into);
        if into.is_empty() && !stock.is_waited_for() {
            into.extend(self.take_clean());
        }
    }

    /// One, of the node `home` if one is ready there.
    pub(crate) fn frame_for_session(&self, home: usize) -> Option<FreeFrame> {
        self.frames.stock.take(home).or_else(|| self.take_clean())
    }

    /// Free frames for who cleans them itself: frames that were never used, then what the clock
    /// finds, written first where it is dirty. May add none.
    pub(crate) fn frames_by_cleaning(&self, wanted: usize, into: &mut Vec<FreeFrame>) {
        let stock = &self.frames.stock;
        stock.take_surplus(stock.nodes().here(), wanted, into);
        let mut batch = WriteBatch::default();
        while into.len() < wanted {
            let Some(free) = self.take_any(&mut batch) else {
                return;
            };
            into.push(free);
        }
    }

    /// A free frame for a thread that may wait, and writes a page itself if it must; of the node
    /// `home` if one is ready there.
    ///
    /// # Errors
    /// 53000 when for seconds every page was in use or could not be written.
    pub(crate) fn free_frame(&self, home: usize) -> Result<FreeFrame> {
        let mut batch = WriteBatch::default();
        let started = Instant::now();
        loop {
            if let Some(free) = self.frames.stock.take(home) {
                return Ok(free);
            }
            if let Some(free) = self.take_any(&mut batch) {
                return Ok(free);
            }
            if self.is_stopping() || started.elapsed() > PATIENCE {
                break;
            }
            throng_sync::thread::sleep(batch.pause_after(PAUSE, PAUSE_AFTER_ERROR));
        }
        Err(Error::new(
            state::INSUFFICIENT_RESOURCES,
            "no unpinned buffers available",
        )
        .detail("Every page in memory is in use or cannot be written to disk.")
        .hint("Increase shared_buffers, or see the server's log for write errors."))
    }

    /// Turns the clock twice round (once to take the uses back, once to find what stayed unused),
    /// writing dirty pages on the way, until one is free. `None` also after a failed write.
    fn take_any(&self, batch: &mut WriteBatch) -> Option<FreeFrame> {
        for _ in 0..2 * self.frames.len() {
            let number = self.advance();
            let frame = self.frames.at(number);
            if frame.pass() {
                continue;
            }
            if frame.only_dirty() && self.prepare_write(number, Latching::Try, batch) {
                Totals::add(&self.totals.foreground_writes, 1);
                if self.finish_writes(batch).is_empty() {
                    return None;
                }
            }
            if let Some(free) = self.claim(number) {
                return Some(free);
            }
        }
        None
    }

    /// The page writer's life.
    pub(crate) fn run_page_writer(&self) {
        let mut batch = WriteBatch::default();
        while !self.is_stopping() {
            batch.flush_after(&self.flush_after.page_writer);
            self.write_behind(&mut batch);
            let refilled = self.frames.stock.missing() == 0 || self.refill_stock(&mut batch);
            self.frames.stock.wake_left_behind();
            if self.frames.stock.missing() == 0 {
                let _idle = waiting(WaitEvent::PageWriterIdle, Object::NONE);
                self.frames.stock.writer().park();
            } else if !refilled {
                // Nothing to be had just now: pages are in use, or the disk refuses them.
                self.frames
                    .stock
                    .writer()
                    .park_timeout(batch.pause_after(PAUSE, PAUSE_AFTER_ERROR));
            }
        }
    }

    /// Writes what was collected and puts into the stock what is clean then, and still unused.
    /// Whether there was any.
    pub(crate) fn take_written(&self, batch: &mut WriteBatch) -> bool {
        let written = self.finish_writes(batch).into_iter();
        let unused = written.filter(|number| !self.frames.at(*number).referenced());
        let free: Vec<FreeFrame> = unused.filter_map(|number| self.claim(number)).collect();
        let any = !free.is_empty();
        self.frames.stock.put_all(free);
        any
    }

    /// Brings the stock up to its full size. False when a whole search found nothing, or a write
    /// failed.
    fn refill_stock(&self, batch: &mut WriteBatch) -> bool {
        let mut found = false;
        let mut steps = 2 * self.frames.len();
        while self.frames.stock.missing() > 0 && steps > 0 && !self.is_stopping() {
            // 1. Clean victims go to the stock at once; dirty ones are collected.
            while self.frames.stock.missing() > batch.len() && batch.len() < BATCH && steps > 0 {
                steps -= 1;
                let number = self.advance();
                let frame = self.frames.at(number);
                // A node that has enough keeps its pages while another is short of frames.
                if frame.pass() || !self.frames.stock.lacks(number) {
                    continue;
                }
                if let Some(free) = self.claim(number) {
                    self.frames.stock.put(free);
                    found = true;
                } else if frame.only_dirty() {
                    self.prepare_write(number, Latching::Try, batch);
                }
            }
            // 2. Those are written, in file order, after the log; what is clean then, and still
            //    unused, is taken.
            found |= self.take_written(batch);
            if batch.has_failed() {
                return false;
            }
        }
        found
    }
}
