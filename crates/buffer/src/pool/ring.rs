//! Rings: how a scan or a load larger than the pool uses a few frames over and over instead of
//! everybody's.
//!
//! Pages brought in for a ring are not marked as used, and the ring gives each up again some pages
//! later, unless somebody else has used it meanwhile. What a load leaves dirty goes to the page
//! writer, so neither it nor anyone else writes pages in the middle of a statement; while much of
//! the pool is free it stays where it is. (Where the pool is opened with [`Victims::Inside`], it
//! stays where it is, for whoever needs the frame next to write.)
//!
//! Loads share what they may keep: the more there are, the smaller the ring of each.

use std::collections::VecDeque;
use std::sync::Arc;

use throng_sync::atomic::{AtomicUsize, Ordering};
use throng_sync::lock::Mutex;
use throng_types::{BlockNo, PageId};

use crate::growth::Victims;
use crate::pool::PoolCore;
use crate::pool::write::{Latching, WriteBatch};

/// How a caller means to use many pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessStrategy {
    /// Pages are likely to be wanted again.
    Normal,
    /// A scan: each page is read once.
    BulkRead,
    /// A load: each page is filled once.
    BulkWrite,
}

/// Pages a scan keeps: 256 KB, which second-level caches hold.
const READ_RING: usize = 32;
/// Pages a load keeps: 2 MB, so that pages are full, and the log is flushed anyway, when they are
/// written.
const WRITE_RING: usize = 256;
/// All loads together keep this part of the pool, but each at least [`LEAST_RING`] pages.
const LOADS_PART: usize = 4;
/// Fewer would have a load write a page before it is full.
const LEAST_RING: usize = 8;
/// While more than this part of the pool is free, loads leave their pages where they are: nobody
/// needs the frames.
const ROOMY_PART: usize = 4;
/// How far ahead a sequential reader has pages read.
const READ_AHEAD: u32 = 16;
/// Pages handed to the page writer and not yet written. A load that is faster than the disk meets
/// an empty stock instead.
const MAX_BEHIND: usize = 1024;
/// So many of them are written after one look at the log.
const TOGETHER: usize = 32;

/// One scan's or load's memory of what it used. See the module's page.
pub struct Ring {
    strategy: AccessStrategy,
    recent: VecDeque<PageId>,
    last: Option<PageId>,
    /// The first block not yet asked for ahead.
    ahead: BlockNo,
    load: Option<Load>,
}

/// Counts one load for as long as it lives.
struct Load(Arc<AtomicUsize>);

impl Load {
    fn begin(loads: &Arc<AtomicUsize>) -> Load {
        // Relaxed, here and where it is read: a ring of a size that was right a moment ago is right
        // enough.
        loads.fetch_add(1, Ordering::Relaxed);
        Load(loads.clone())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Ring {
    pub fn new(strategy: AccessStrategy) -> Ring {
        Ring {
            strategy,
            recent: VecDeque::new(),
            last: None,
            ahead: 0,
            load: None,
        }
    }

    /// For reading a file through: a ring if it would take more than a quarter of the pool.
    pub fn for_scan(pool: &PoolCore, blocks: BlockNo) -> Ring {
        let large = blocks as usize > pool.frames.len() / 4;
        Ring::new(if large {
            AccessStrategy::BulkRead
        } else {
            AccessStrategy::Normal
        })
    }

    pub fn strategy(&self) -> AccessStrategy {
        self.strategy
    }

    fn capacity(&self, pool: &PoolCore) -> usize {
        let frames = pool.frames.len();
        let most = (frames / 8).max(1);
        if self.strategy != AccessStrategy::BulkWrite {
            return READ_RING.min(most);
        }
        let loads = pool.loads.load(Ordering::Relaxed).max(1);
        (frames / LOADS_PART / loads)
            .clamp(LEAST_RING, WRITE_RING)
            .min(most)
    }

    /// Notes that `page` is used now. Whether it should be brought in for the ring only.
    pub(crate) fn visit(&mut self, pool: &PoolCore, page: PageId) -> bool {
        let transient = self.strategy != AccessStrategy::Normal;
        if self.last == Some(page) {
            return transient;
        }
        if self.strategy != AccessStrategy::BulkWrite {
            self.read_ahead(pool, page, transient);
        } else if self.load.is_none() {
            self.load = Some(Load::begin(&pool.loads));
        }
        self.last = Some(page);
        if transient {
            self.recent.push_back(page);
            let capacity = self.capacity(pool);
            while self.recent.len() > capacity
                && let Some(left) = self.recent.pop_front()
            {
                pool.give_up(left, self.strategy);
            }
        }
        transient
    }

    /// Once two pages in a row were neighbours, has the next ones read, half of [`READ_AHEAD`] at a
    /// time.
    fn read_ahead(&mut self, pool: &PoolCore, page: PageId, transient: bool) {
        let follows = |last: PageId| {
            last.file() == page.file() && last.block().checked_add(1) == Some(page.block())
        };
        if !self.last.is_some_and(follows) {
            self.ahead = 0;
            return;
        }
        let next = page.block().saturating_add(1);
        if self.ahead > next.saturating_add(READ_AHEAD / 2) {
            return;
        }
        let Ok(end) = pool.blocks(page.file()) else {
            return;
        };
        let until = next.saturating_add(READ_AHEAD).min(end);
        for block in self.ahead.max(next)..until {
            pool.prefetch_entering(PageId::new(page.file(), block), transient);
        }
        self.ahead = until.max(next);
    }
}

/// Dirty pages that a load has done with, oldest first.
#[derive(Default)]
pub(crate) struct BehindQueue(Mutex<VecDeque<PageId>>);

impl PoolCore {
    /// A ring has moved on from this page.
    fn give_up(&self, page: PageId, strategy: AccessStrategy) {
        let Some(number) = self.frames.find(page) else {
            return;
        };
        let frame = self.frames.at(number);
        if strategy == AccessStrategy::BulkWrite && frame.only_dirty() {
            // New pages count as used; from here on only others' uses do.
            frame.pass();
            let is_roomy = self.frames.stock.len() > self.frames.len() / ROOMY_PART;
            if is_roomy || self.extension.victims == Victims::Inside {
                return;
            }
            let mut behind = self.behind.0.lock();
            if behind.len() < MAX_BEHIND {
                behind.push_back(page);
                let enough = behind.len() >= TOGETHER;
                drop(behind);
                // The last few are written when frames run low.
                if enough {
                    self.frames.stock.writer().unpark();
                }
            }
        } else if !frame.referenced()
            && let Some(free) = self.claim(number)
        {
            self.frames.stock.put(free);
        }
    }

    /// The page writer's part: writes what loads have given up, and takes it unless somebody else
    /// uses it.
    pub(crate) fn write_behind(&self, batch: &mut WriteBatch) {
        loop {
            let pages: Vec<PageId> = {
                let mut behind = self.behind.0.lock();
                let some = behind.len().min(TOGETHER);
                behind.drain(..some).collect()
            };
            if pages.is_empty() || self.is_stopping() {
                return;
            }
            for page in pages {
                // A frame that holds another page by now is as good to write.
                if let Some(number) = self.frames.find(page) {
                    self.prepare_write(number, Latching::Try, batch);
                }
            }
            self.take_written(batch);
        }
    }
}
