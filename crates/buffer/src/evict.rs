//! The clock, and the page writer that keeps the stock of free frames.
//!
//! The hand goes round all frames. A page that was used since it last passed is let live for another round; one that was
//! not is taken if it is clean, and written first if it is dirty. The phases of taking are in `Frames::claim`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use throng_observe::{Counter, count};
use throng_types::{Error, Result, error::state};

use crate::frame::{FrameNo, FreeFrame};
use crate::pool::{PoolCore, Totals};
use crate::write::{Latching, WriteBatch};

/// How far a session turns the clock itself before it leaves the search to the page writer.
const FOREGROUND_STEPS: usize = 256;
/// Dirty pages the page writer writes together, after one look at the log.
const BATCH: usize = 32;
/// How long to leave a disk alone that does not take pages, and pins that do not go away.
const PAUSE: Duration = Duration::from_millis(1);
/// After so many pauses without a single free frame, whoever needs one is told so.
const MAX_PAUSES: usize = 5000;

impl PoolCore {
    /// The next frame under the hand.
    fn advance(&self) -> FrameNo {
        (self.hand.fetch_add(1, Ordering::Relaxed) % self.frames.len() as u64) as FrameNo
    }

    /// Takes an idle page that the hand has passed without its being used since.
    fn take_clean(&self, steps: usize) -> Option<FreeFrame> {
        for _ in 0..steps {
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

    /// Free frames for a session, which does not wait and does not write: from the stock, or a clean page's. May add none.
    pub(crate) fn frames_for_session(&self, wanted: usize, into: &mut Vec<FreeFrame>) {
        self.frames.stock.take_many(wanted, into);
        if into.is_empty() {
            into.extend(self.take_clean(FOREGROUND_STEPS.min(2 * self.frames.len())));
        }
    }

    /// A free frame for a thread that may wait, and writes a page itself if it must.
    ///
    /// # Errors
    /// 53000 when for seconds every page was in use or could not be written.
    pub(crate) fn free_frame(&self) -> Result<FreeFrame> {
        let mut batch = WriteBatch::default();
        for _ in 0..MAX_PAUSES {
            if let Some(free) = self.frames.stock.take() {
                return Ok(free);
            }
            // Twice round: once to take the reference bits, once to find what stayed unused.
            for _ in 0..2 * self.frames.len() {
                let number = self.advance();
                if self.frames.at(number).pass() {
                    continue;
                }
                if self.frames.at(number).only_dirty() && self.prepare_write(number, Latching::Try, &mut batch) {
                    Totals::add(&self.totals.foreground_writes, 1);
                    self.finish_writes(&mut batch);
                }
                if let Some(free) = self.claim(number) {
                    return Ok(free);
                }
            }
            if self.is_stopping() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Err(Error::new(state::INSUFFICIENT_RESOURCES, "no unpinned buffers available")
            .detail("Every page in memory is in use or cannot be written to disk.")
            .hint("Increase shared_buffers, or see the server's log for write errors."))
    }

    /// The page writer's life.
    pub(crate) fn run_page_writer(&self) {
        let mut batch = WriteBatch::default();
        while !self.is_stopping() {
            self.write_behind(&mut batch);
            if self.frames.stock.missing() == 0 {
                self.frames.stock.writer().park();
            } else if !self.refill_stock(&mut batch) {
                // Nothing to be had just now: pages are in use, or the disk refuses them.
                self.frames.stock.writer().park_timeout(PAUSE);
            }
        }
    }

    /// Brings the stock up to its full size. False when a whole search found nothing.
    fn refill_stock(&self, batch: &mut WriteBatch) -> bool {
        let mut found = false;
        let mut steps = 2 * self.frames.len();
        while self.frames.stock.missing() > 0 && steps > 0 && !self.is_stopping() {
            // 1. Clean victims go to the stock at once; dirty ones are collected.
            while self.frames.stock.missing() > batch.len() && batch.len() < BATCH && steps > 0 {
                steps -= 1;
                let number = self.advance();
                let frame = self.frames.at(number);
                if frame.pass() {
                    continue;
                }
                if let Some(free) = self.claim(number) {
                    self.frames.stock.put(free);
                    found = true;
                } else if frame.only_dirty() {
                    self.prepare_write(number, Latching::Try, batch);
                }
            }
            // 2. Those are written, in file order, after the log; 3. what is clean then, and still unused, is taken.
            for number in self.finish_writes(batch) {
                if !self.frames.at(number).referenced()
                    && let Some(free) = self.claim(number)
                {
                    self.frames.stock.put(free);
                    found = true;
                }
            }
        }
        found
    }
}
