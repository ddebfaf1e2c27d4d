//! How pages come in: by threads that may wait for the disk, and by sessions where nobody has to.

use std::collections::VecDeque;
use std::sync::Arc;

use throng_observe::{Counter, Object, WaitEvent, count, now_nanos, record_wait, stop_point};
use throng_sync::lock::{Condvar, Mutex};
use throng_types::Result;
use throng_types::page::PAGE_SIZE;

use crate::checksum;
use crate::frames::{Entrance, FrameNo, FreeFrame};
use crate::pool::guard::page_lsn;
use crate::pool::{PoolCore, Totals, disk_error};
use crate::request::ReadRequest;
use crate::words;

/// Reads that nobody serves yet, oldest first.
#[derive(Default)]
pub(crate) struct ReadQueue {
    waiting: Mutex<VecDeque<Arc<ReadRequest>>>,
    arrived: Condvar,
}

/// With this many reads waiting, a prefetch would only be in the way of those that somebody waits
/// for.
const BUSY: usize = 64;

impl ReadQueue {
    pub(crate) fn push(&self, request: Arc<ReadRequest>) {
        self.waiting.lock().push_back(request);
        self.arrived.notify_one();
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.waiting.lock().len() >= BUSY
    }

    pub(crate) fn wake_all(&self) {
        // Under the lock, so that nobody is between looking and sleeping.
        let _waiting = self.waiting.lock();
        self.arrived.notify_all();
    }

    /// The next read; `None` once there is none and `stopping` says that none will come.
    fn next(&self, stopping: impl Fn() -> bool) -> Option<Arc<ReadRequest>> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(request) = waiting.pop_front() {
                return Some(request);
            }
            if stopping() {
                return None;
            }
            self.arrived.wait(&mut waiting);
        }
    }
}

impl PoolCore {
    /// An I/O thread's life.
    pub(crate) fn run_reader(&self) {
        let mut buffer = Box::new([0; PAGE_SIZE]);
        while let Some(request) = self.queue.next(|| self.is_stopping()) {
            let result = self.bring_in(&request, &mut buffer);
            self.registry.finish(&request, result);
        }
    }

    /// Reads a page into a frame, which has one pin afterwards. The caller has the page's read
    /// registered.
    fn bring_in(&self, request: &ReadRequest, buffer: &mut [u8; PAGE_SIZE]) -> Result<FrameNo> {
        let page = request.page();
        // 1. Into memory of our own: optimistic readers may still be looking at the frame.
        self.files.read_page(page, buffer).map_err(disk_error)?;
        // 2. Believed only when it is what was written.
        if !checksum::page_is_intact(page, buffer) {
            return Err(checksum::damaged(page));
        }
        let (lsn, end) = (page_lsn(buffer), self.wal.inserted());
        if lsn > end {
            return Err(checksum::beyond_log(page, lsn, end));
        }
        stop_point!("buffer.page_read", page.raw());
        // 3. Published with a pin for those who wait, so that it is still there when they come.
        Ok(self.let_in(request, self.free_frame(request.home())?, buffer))
    }

    /// The same by a session, which does not wait: where the system has the page in memory, and a
    /// frame is to be had. To fetch it takes less time than to have another thread do so. False
    /// when nothing was done, for whatever reason: a reader will meet it.
    pub(crate) fn bring_in_at_once(&self, request: &Arc<ReadRequest>) -> bool {
        let page = request.page();
        let began = now_nanos();
        let mut buffer = [0; PAGE_SIZE];
        if !self.files.read_page_at_once(page, &mut buffer)
            || !checksum::page_is_intact(page, &buffer)
            || page_lsn(&buffer) > self.wal.inserted()
        {
            return false;
        }
        let Some(free) = self.frame_for_session(request.home()) else {
            return false;
        };
        let frame = self.let_in(request, free, &buffer);
        self.registry.finish(request, Ok(frame));
        // A pool that is too small shows, though nobody slept.
        let took = now_nanos().saturating_sub(began);
        record_wait(WaitEvent::PageRead, Object::page(page.raw()), took);
        true
    }

    fn let_in(&self, request: &ReadRequest, free: FreeFrame, bytes: &[u8; PAGE_SIZE]) -> FrameNo {
        count(Counter::PageRead, 1);
        Totals::add(&self.totals.reads, 1);
        let entrance = Entrance {
            referenced: !request.transient(),
            pins: 1,
        };
        self.frames
            .publish(free, request.page(), entrance, |words| {
                words::store_bytes(words, 0, bytes)
            })
    }
}
