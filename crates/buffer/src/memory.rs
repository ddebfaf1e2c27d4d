//! The frames' bytes: one reservation for the life of the pool, faulted in at first use.
//!
//! All of this crate's raw memory is here. What leaves this module is either words (sound to share,
//! however torn) or bytes whose caller has promised, by a latch, that nobody writes them.

use std::ptr::NonNull;

use throng_types::page::PAGE_SIZE;
use throng_types::{Error, Result, error::state};

use crate::words::PageWords;

/// `frames` pages of memory.
pub(crate) struct FrameMemory {
    base: NonNull<PageWords>,
    frames: usize,
}

// SAFETY: the memory is owned by this value alone and outlives every borrow of it. It is reached as
// atomic words, which any thread may use, or as bytes under the conditions of `bytes`.
unsafe impl Send for FrameMemory {}
// SAFETY: as for `Send`.
unsafe impl Sync for FrameMemory {}

impl FrameMemory {
    /// Reserves memory that reads as zeros. Huge pages are asked for, not required.
    ///
    /// # Errors
    /// 53200 when the system refuses the reservation.
    pub(crate) fn reserve(frames: usize) -> Result<FrameMemory> {
        assert!(frames > 0, "a pool has frames");
        let refused = |reason: &dyn std::fmt::Display| {
            Error::new(
                state::OUT_OF_MEMORY,
                format!("could not reserve {frames} pages of memory: {reason}"),
            )
            .hint("Reduce shared_buffers.")
        };
        let base = imp::reserve(frames * PAGE_SIZE).map_err(|error| refused(&error))?;
        Ok(FrameMemory {
            base: base.cast(),
            frames,
        })
    }

    /// A frame's memory as anyone may use it.
    #[inline]
    pub(crate) fn words(&self, frame: u32) -> &PageWords {
        assert!(
            (frame as usize) < self.frames,
            "frame {frame} of {}",
            self.frames
        );
        // SAFETY: the frame lies within the reservation (just checked), which is readable and
        // writable, page-aligned, and alive as long as `self`. Any bytes are valid atomics. Nobody
        // has a `&mut` to this memory: it is written through these atomics only.
        unsafe { self.base.add(frame as usize).as_ref() }
    }

    /// A frame's memory as plain bytes.
    ///
    /// # Safety
    /// While the result lives, nobody writes the frame: the caller holds its latch, shared or
    /// exclusively, and if exclusively does not write it either.
    #[inline]
    pub(crate) unsafe fn bytes(&self, frame: u32) -> &[u8; PAGE_SIZE] {
        let words: *const PageWords = self.words(frame);
        // SAFETY: `words` points to `PAGE_SIZE` initialised bytes that live as long as `self`;
        // bytes need no alignment. That none of them changes meanwhile is the caller's promise;
        // others may read them, which is no conflict.
        unsafe { &*words.cast() }
    }
}

impl Drop for FrameMemory {
    fn drop(&mut self) {
        // SAFETY: `base` and the length are those of the reservation made in `reserve`, and this is
        // its only release: every borrow of the memory borrows `self`, so none is left.
        unsafe { imp::release(self.base.cast(), self.frames * PAGE_SIZE) }
    }
}

#[cfg(not(miri))]
mod imp {
    use std::ptr::NonNull;

    use rustix::mm;

    pub(super) fn reserve(len: usize) -> std::io::Result<NonNull<u8>> {
        let protection = mm::ProtFlags::READ | mm::ProtFlags::WRITE;
        let flags = mm::MapFlags::PRIVATE | mm::MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choosing touches no memory
        // that exists.
        let base = unsafe { mm::mmap_anonymous(std::ptr::null_mut(), len, protection, flags)? };
        // SAFETY: the range is the mapping just made; the advice changes how it is backed, never
        // what it holds. A kernel without huge pages refuses, which is as good.
        let _ = unsafe { mm::madvise(base, len, mm::Advice::LinuxHugepage) };
        Ok(NonNull::new(base.cast()).expect("the kernel never maps at null unasked"))
    }

    /// # Safety
    /// `base` and `len` are those of a reservation that nothing uses any more.
    pub(super) unsafe fn release(base: NonNull<u8>, len: usize) {
        // SAFETY: this function's own condition. It can fail only for a range that is no mapping.
        unsafe { mm::munmap(base.as_ptr().cast(), len).expect("the pool's own mapping") }
    }
}

/// Miri knows no anonymous mappings: the allocator serves as well.
#[cfg(miri)]
mod imp {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, 4096).expect("a pool's size is a valid layout")
    }

    pub(super) fn reserve(len: usize) -> std::io::Result<NonNull<u8>> {
        // SAFETY: the layout is not empty, since a pool has frames.
        let base = unsafe { alloc_zeroed(layout(len)) };
        NonNull::new(base).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
    }

    /// # Safety
    /// `base` and `len` are those of a reservation that nothing uses any more.
    pub(super) unsafe fn release(base: NonNull<u8>, len: usize) {
        // SAFETY: allocated by `reserve` with this layout.
        unsafe { dealloc(base.as_ptr(), layout(len)) }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;
    use throng_sync::Latch;

    #[test]
    fn a_frame_is_words_to_all_and_bytes_to_who_holds_its_latch() {
        const TURNS: u8 = if cfg!(miri) { 20 } else { 200 };
        let memory = FrameMemory::reserve(2).expect("two pages of memory");
        let latch = Latch::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 1..=TURNS {
                    latch.exclusive();
                    crate::words::store_bytes(memory.words(1), 3, &[turn; 40]);
                    latch.unlock_exclusive();
                }
            });
            for _ in 0..TURNS {
                latch.shared();
                // SAFETY: held shared, and the other thread writes with the latch held exclusively.
                let bytes = unsafe { memory.bytes(1) };
                assert!(bytes[3..43].iter().all(|&byte| byte == bytes[3]));
                latch.unlock_shared();
                if let Some(version) = latch.optimistic() {
                    let [early, late] =
                        [1, 4].map(|word: usize| memory.words(1)[word].load(Relaxed));
                    assert!(!latch.validate(version) || early == late, "torn");
                }
            }
        });
        // SAFETY: the other thread has ended.
        let [first, second] = unsafe { [memory.bytes(0), memory.bytes(1)] };
        assert!(first.iter().all(|&byte| byte == 0), "the neighbour's");
        assert_eq!((second[2], second[3], second[43]), (0, TURNS, 0));
    }
}
