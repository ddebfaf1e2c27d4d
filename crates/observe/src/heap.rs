//! How much memory the process's long values take: a crowd that makes them is stopped, not the
//! machine.
//!
//! Whatever is long is one allocation of [`LONG`] bytes or more (a string, an array's items, a
//! message being sent), so the allocator counts those, wherever they are made and whoever frees
//! them. Nothing else is counted, and nobody is refused an allocation: who has made a long value,
//! or is about to, asks whether there is room.
//!
//! ```text
//!   function ─► about to make n bytes: has_room(n)?   no ─► 53200
//!      │
//!      ▼
//!   its value ─► is_full() and the value is long? ─► given up, 53200: no more than one value a core beyond the limit
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What takes less is not counted: rare enough that all threads may count in one place.
pub const LONG: usize = 256 << 10;

/// What takes as much is the system's allocator's: beyond 32 MB glibc maps each block, so that its
/// memory goes back when it is freed, where an allocator made for small blocks keeps the pages for
/// the thread that had them, and so that it grows in place.
const MAPPED: usize = 33 << 20;

/// Bytes in allocations of [`LONG`] bytes and more.
static HELD: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// An allocator that counts what is long, and leaves what is longer than most of it to the
/// system's.
pub struct Counting<A>(pub A);

#[inline]
fn more(bytes: usize) {
    if bytes >= LONG {
        HELD.fetch_add(bytes, Relaxed);
    }
}

#[inline]
fn less(bytes: usize) {
    if bytes >= LONG {
        HELD.fetch_sub(bytes, Relaxed);
    }
}

/// Whether an allocation is the system's.
#[inline]
fn is_mapped(bytes: usize) -> bool {
    bytes >= MAPPED
}

// SAFETY: every call is handed on as it came, to the same allocator for the same size, and its
// answer given back; counting touches no memory that is handed out and cannot unwind.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc`'s contract.
        let at = unsafe {
            match is_mapped(layout.size()) {
                false => self.0.alloc(layout),
                true => System.alloc(layout),
            }
        };
        if !at.is_null() {
            more(layout.size());
        }
        at
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        let at = unsafe {
            match is_mapped(layout.size()) {
                false => self.0.alloc_zeroed(layout),
                true => System.alloc_zeroed(layout),
            }
        };
        if !at.is_null() {
            more(layout.size());
        }
        at
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        less(layout.size());
        // SAFETY: the caller keeps `dealloc`'s contract, and `at` is that allocator's: its size
        // tells.
        unsafe {
            match is_mapped(layout.size()) {
                false => self.0.dealloc(at, layout),
                true => System.dealloc(at, layout),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps `realloc`'s contract, and `at` is the allocator's that its size
        // tells.
        let moved = unsafe {
            match (is_mapped(layout.size()), is_mapped(size)) {
                (false, false) => self.0.realloc(at, layout, size),
                (true, true) => System.realloc(at, layout, size),
                _ => return self.exchange(at, layout, size),
            }
        };
        if !moved.is_null() {
            more(size);
            less(layout.size());
        }
        moved
    }
}

impl<A: GlobalAlloc> Counting<A> {
    /// From one allocator to the other.
    ///
    /// # Safety
    ///
    /// As `realloc`.
    #[cold]
    unsafe fn exchange(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `realloc`'s caller says that the size is one of a layout; both blocks have the
        // bytes that are copied and the old one is freed once, with its own layout.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(at, size.min(layout.size()));
                self.dealloc(at, layout);
            }
            moved
        }
    }
}

/// Bytes that long values may take together.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Relaxed);
}

pub fn limit() -> usize {
    LIMIT.load(Relaxed)
}

/// Bytes that what is long takes now.
pub fn held() -> usize {
    HELD.load(Relaxed)
}

/// Whether what is long takes more than it may.
#[inline]
pub fn is_full() -> bool {
    held() > limit()
}

/// Whether so many bytes more would be within the limit; what is not long always is.
#[inline]
pub fn has_room(bytes: usize) -> bool {
    bytes < LONG || held().saturating_add(bytes) <= limit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// What is counted is the process's: tests of it take turns.
    static TURN: Mutex<()> = Mutex::new(());

    #[test]
    fn what_is_long_is_counted_until_it_is_freed() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let allocator = Counting(System);
        let layout = |size| Layout::from_size_align(size, 8).expect("a layout");
        let before = held();
        // SAFETY: each block is used with the layout it was made with last, and freed once.
        unsafe {
            let short = allocator.alloc(layout(100));
            let long = allocator.alloc_zeroed(layout(LONG));
            assert_eq!(held() - before, LONG);
            let long = allocator.realloc(long, layout(LONG), 3 * LONG);
            assert_eq!(held() - before, 3 * LONG);
            let grown = allocator.realloc(short, layout(100), LONG);
            assert_eq!(held() - before, 4 * LONG);
            let shrunk = allocator.realloc(long, layout(3 * LONG), 10);
            assert_eq!(held() - before, LONG);
            allocator.dealloc(shrunk, layout(10));
            allocator.dealloc(grown, layout(LONG));
        }
        assert_eq!(held(), before);
        assert!(has_room(1) && has_room(usize::MAX / 2) && !is_full());
    }

    #[test]
    fn what_grows_from_one_allocator_to_the_other_keeps_its_bytes() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let allocator = Counting(System);
        let layout = |size| Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: each block is used within its size, with the layout it was made with last, and
        // freed once.
        unsafe {
            let mut at = allocator.alloc(layout(MAPPED - 1));
            at.add(1000).write(7);
            let mut size = MAPPED - 1;
            for next in [MAPPED, 2 * MAPPED, MAPPED - 1, 2000] {
                at = allocator.realloc(at, layout(size), next);
                size = next;
                assert_eq!(at.add(1000).read(), 7);
            }
            allocator.dealloc(at, layout(size));
        }
    }
}
