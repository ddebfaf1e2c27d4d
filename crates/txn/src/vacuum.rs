//! Cleaning a table: dead versions out of the heap, their entries out of the indexes, the room back
//! to use.
//!
//! ```text
//!   1 blocks in order: prune, list dead slots      until the list is full or the table done
//!   2 every index, leaf by leaf: drop entries that point at listed slots
//!   3 the listed slots: free for new rows          then on with 1
//! ```
//!
//! Nobody is kept out. Stopped at any point it leaves a correct table: a slot listed and not yet
//! freed is listed again.

use std::collections::HashSet;
use std::time::Duration;

use throng_access::btree::BTree;
use throng_access::{Heap, TxContext};
use throng_buffer::{AccessStrategy, Ring, retry_blocking};
use throng_observe::{Object, WaitEvent, waiting};
use throng_types::{BlockNo, Result, Tid};

/// Dead slots listed before the indexes are visited: 48 MB at the most.
const LIST: usize = 1 << 20;

/// Keeps a cleaner from taking the machine: so much work, then a pause (PostgreSQL's cost-based
/// delay).
pub trait Pacing {
    /// Called after each page; may sleep. `false`: stop here.
    fn spent(&mut self, cost: u32) -> bool;
}

/// PostgreSQL's costs of a page: found, and changed.
const COST_PAGE: u32 = 1;
const COST_CHANGED: u32 = 20;

/// `vacuum_cost_delay` and `vacuum_cost_limit`.
pub struct CostDelay<F: FnMut() -> bool> {
    pub limit: u32,
    /// Zero: no pauses.
    pub delay: Duration,
    /// Asked after each page whether to stop.
    pub stop: F,
    spent: u32,
}

impl<F: FnMut() -> bool> CostDelay<F> {
    pub fn new(limit: u32, delay: Duration, stop: F) -> CostDelay<F> {
        CostDelay {
            limit: limit.max(1),
            delay,
            stop,
            spent: 0,
        }
    }
}

impl<F: FnMut() -> bool> Pacing for CostDelay<F> {
    fn spent(&mut self, cost: u32) -> bool {
        self.spent += cost;
        if self.spent >= self.limit && !self.delay.is_zero() {
            let _wait = waiting(WaitEvent::VacuumDelay, Object::NONE);
            throng_sync::thread::sleep(self.delay);
            self.spent = 0;
        }
        !(self.stop)()
    }
}

/// What a cleaning did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    pub blocks: BlockNo,
    /// Versions taken away.
    pub removed: u64,
    /// Versions that stay: rows, and what somebody may still see of their past.
    pub kept: u64,
    /// Of those, deleted or replaced already.
    pub ending: u64,
    pub slots_freed: u64,
    pub index_entries_removed: u64,
    /// It was stopped before its end.
    pub stopped: bool,
}

/// Cleans a table and its indexes. Blocks the thread: for background threads, and for VACUUM on one
/// of its own.
///
/// # Errors
/// Those of reading and writing pages.
pub fn vacuum_table(
    ctx: &dyn TxContext,
    heap: &Heap,
    indexes: &[BTree],
    pacing: &mut dyn Pacing,
) -> Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    let mut ring = Ring::new(AccessStrategy::BulkRead);
    let mut dead: Vec<Tid> = Vec::new();
    let blocks = retry_blocking(|| heap.blocks())?;
    for block in 0..blocks {
        let page = retry_blocking(|| {
            let listed = dead.len();
            let page = heap.vacuum_scan(block, ctx, &mut ring, &mut dead);
            if page.is_err() {
                dead.truncate(listed);
            }
            page
        })?;
        cleaned.blocks = block + 1;
        cleaned.removed += u64::from(page.removed);
        cleaned.kept += u64::from(page.kept);
        cleaned.ending += u64::from(page.ending);
        if dead.len() >= LIST && !forget(heap, indexes, &mut dead, &mut cleaned, pacing)? {
            return Ok(Cleaned {
                stopped: true,
                ..cleaned
            });
        }
        let changed = if page.removed > 0 { COST_CHANGED } else { 0 };
        if !pacing.spent(COST_PAGE + changed) {
            return Ok(Cleaned {
                stopped: true,
                ..cleaned
            });
        }
    }
    cleaned.stopped = !forget(heap, indexes, &mut dead, &mut cleaned, pacing)?;
    if !cleaned.stopped {
        let (live, ending) = (cleaned.kept - cleaned.ending, cleaned.ending);
        heap.rel().set_counts(live as i64, ending as i64, 0);
    }
    Ok(cleaned)
}

/// Steps 2 and 3 for the slots listed. `false`: stopped.
fn forget(
    heap: &Heap,
    indexes: &[BTree],
    dead: &mut Vec<Tid>,
    cleaned: &mut Cleaned,
    pacing: &mut dyn Pacing,
) -> Result<bool> {
    if dead.is_empty() {
        return Ok(true);
    }
    let listed: HashSet<Tid, foldhash::fast::FixedState> = dead.iter().copied().collect();
    for index in indexes {
        let mut pass = index.vacuum();
        let mut removed = 0;
        while retry_blocking(|| pass.step(&|tid| listed.contains(&tid)))? {
            let now = pass.so_far().entries_removed;
            if !pacing.spent(COST_PAGE + if now > removed { COST_CHANGED } else { 0 }) {
                return Ok(false);
            }
            removed = now;
        }
        cleaned.index_entries_removed += pass.so_far().entries_removed;
    }
    for page in dead.chunk_by(|a, b| a.block == b.block) {
        let slots: Vec<u16> = page.iter().map(|tid| tid.slot).collect();
        retry_blocking(|| heap.vacuum_finish(page[0].block, &slots))?;
        cleaned.slots_freed += slots.len() as u64;
        if !pacing.spent(COST_PAGE + COST_CHANGED) {
            return Ok(false);
        }
    }
    dead.clear();
    Ok(true)
}
