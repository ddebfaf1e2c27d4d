//! Raw bytes addressed by position modulo size: the one place where the log's bytes are shared
//! unsafely.
//!
//! Nothing here knows who may touch what; [`LogBuffer`](crate::buffer::LogBuffer) does.

use throng_sync::cell::UnsafeCell;

pub(crate) struct Ring {
    bytes: Box<[UnsafeCell<u8>]>,
    /// Size less one; the size is a power of two.
    mask: u64,
}

// SAFETY: the bytes are plain data reached through `put` and `read` only, whose callers promise
// that no byte is written while another thread reads or writes it.
unsafe impl Sync for Ring {}

impl Ring {
    pub fn new(size: usize) -> Ring {
        assert!(
            size.is_power_of_two(),
            "a ring of {size} bytes cannot be addressed by a mask"
        );
        // Not zero: every page is touched here, and none faults while a thread copies a record.
        let bytes = (0..size).map(|_| UnsafeCell::new(0xff)).collect();
        Ring {
            bytes,
            mask: size as u64 - 1,
        }
    }
    pub fn size(&self) -> u64 {
        self.mask + 1
    }

    /// Copies `bytes` to positions `at..`.
    ///
    /// # Safety
    /// No other thread reads or writes those positions (modulo size) meanwhile, and there are at
    /// most `size` of them.
    #[inline]
    pub unsafe fn put(&self, at: u64, bytes: &[u8]) {
        debug_assert!(bytes.len() as u64 <= self.size());
        let start = (at & self.mask) as usize;
        let first = bytes.len().min(self.bytes.len() - start);
        // SAFETY: both pieces lie within the ring by the arithmetic above, and are ours by the
        // caller's promise.
        unsafe {
            write(&self.bytes[start..start + first], &bytes[..first]);
            write(&self.bytes[..bytes.len() - first], &bytes[first..]);
        }
    }

    /// Hands positions `from..to` to `f` in contiguous pieces, in order, until it fails.
    ///
    /// # Safety
    /// No other thread writes those positions (modulo size) meanwhile, and there are at most `size`
    /// of them.
    pub unsafe fn read<E>(
        &self,
        from: u64,
        to: u64,
        mut f: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert!(from <= to && to - from <= self.size());
        let len = (to - from) as usize;
        let start = (from & self.mask) as usize;
        let first = len.min(self.bytes.len() - start);
        // SAFETY: both pieces lie within the ring, and nobody writes them, by the caller's promise.
        unsafe {
            if first > 0 {
                read(&self.bytes[start..start + first], &mut f)?;
            }
            if len > first {
                read(&self.bytes[..len - first], &mut f)?;
            }
        }
        Ok(())
    }
}

/// # Safety
/// As [`Ring::put`]; both slices have one length.
#[cfg(not(loom))]
#[inline]
unsafe fn write(cells: &[UnsafeCell<u8>], bytes: &[u8]) {
    if let Some(first) = cells.first() {
        first.with_mut(|_| {
            // SAFETY: `UnsafeCell<u8>` is transparent over `u8` and lets its content be written
            // through a shared reference; the pointer is derived from the whole slice, so it is
            // valid for all of it; nobody else touches it (the caller's promise), and `bytes` is
            // not part of the ring.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    cells.as_ptr().cast_mut().cast(),
                    bytes.len(),
                )
            }
        });
    }
}

/// # Safety
/// As [`Ring::read`].
#[cfg(not(loom))]
unsafe fn read<E>(
    cells: &[UnsafeCell<u8>],
    f: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: the layout is that of `u8`, the pointer covers the slice, and nobody writes it while
    // `f` runs (the caller's promise).
    f(unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) })
}

/// Byte by byte, so that loom watches each.
///
/// # Safety
/// As [`Ring::put`].
#[cfg(loom)]
unsafe fn write(cells: &[UnsafeCell<u8>], bytes: &[u8]) {
    for (cell, &byte) in cells.iter().zip(bytes) {
        // SAFETY: the caller's promise, which loom checks.
        cell.with_mut(|p| unsafe { *p = byte });
    }
}

/// # Safety
/// As [`Ring::read`].
#[cfg(loom)]
unsafe fn read<E>(
    cells: &[UnsafeCell<u8>],
    f: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: the caller's promise, which loom checks.
    let bytes: Vec<u8> = cells
        .iter()
        .map(|cell| cell.with(|p| unsafe { *p }))
        .collect();
    f(&bytes)
}
