//! Memory that ends whoever writes it: how tests show that reading writes nothing.

use std::ops::Range;

use rustix::mm::{MprotectFlags, mprotect};
use throng_types::PageId;
use throng_types::page::PAGE_SIZE;

use crate::frames::Frame;
use crate::pool::PoolCore;

/// The system protects memory by pages of so many bytes.
const SYSTEM_PAGE: usize = 4096;

/// While this lives the pool's shared memory can only be read: the pages' bytes, what is known of
/// the frames, and the table that finds them. A write kills the process.
///
/// The ends of an allocation, where it shares a system page with others, stay writable:
/// [`covers`](Seal::covers) tells.
pub struct Seal<'p> {
    pool: &'p PoolCore,
    ranges: Vec<Range<usize>>,
}

/// The system pages that lie within `len` bytes at `start` as a whole.
fn whole_pages(start: usize, len: usize) -> Range<usize> {
    let first = start.next_multiple_of(SYSTEM_PAGE);
    first..((start + len) / SYSTEM_PAGE * SYSTEM_PAGE).max(first)
}

fn within<T>(memory: &[T]) -> Range<usize> {
    whole_pages(memory.as_ptr().expose_provenance(), size_of_val(memory))
}

fn protect(range: &Range<usize>, flags: MprotectFlags) {
    let start = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the range lies within memory of the pool's, which outlives the seal. That a write to
    // it faults is the purpose; no byte changes.
    let protected = unsafe { mprotect(start, range.len(), flags) };
    protected.expect("the pool's own memory");
}

impl PoolCore {
    /// For tests: see [`Seal`].
    pub fn seal(&self) -> Seal<'_> {
        let pages = std::ptr::from_ref(self.frames.words(0)).expose_provenance();
        let (buckets, locks) = self.frames.table.memory();
        let ranges = vec![
            within(self.frames.all()),
            whole_pages(pages, self.frames.len() * PAGE_SIZE),
            within(buckets),
            within(locks),
        ];
        for range in &ranges {
            protect(range, MprotectFlags::READ);
        }
        Seal { pool: self, ranges }
    }
}

impl Seal<'_> {
    /// Whether the page is in memory and all of it, and of what is known of it, sealed.
    pub fn covers(&self, page: PageId) -> bool {
        let Some(number) = self.pool.frames.find(page) else {
            return false;
        };
        let frame = std::ptr::from_ref(self.pool.frames.at(number)).addr();
        let words = std::ptr::from_ref(self.pool.frames.words(number)).addr();
        let sealed = |at, len| {
            let has = |range: &Range<usize>| range.start <= at && at + len <= range.end;
            self.ranges.iter().any(has)
        };
        sealed(frame, size_of::<Frame>()) && sealed(words, PAGE_SIZE)
    }
}

impl Drop for Seal<'_> {
    fn drop(&mut self) {
        for range in &self.ranges {
            protect(range, MprotectFlags::READ | MprotectFlags::WRITE);
        }
    }
}
