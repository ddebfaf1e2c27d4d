//! Keeping what different cores write on different cache lines.

use std::ops::{Deref, DerefMut};

/// A value alone on its cache lines.
///
/// 128 bytes, because x86 prefetches lines in pairs and some ARM cores have lines that long.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(T);

const _: () = assert!(size_of::<CachePadded<u8>>() == 128);

impl<T> CachePadded<T> {
    pub const fn new(value: T) -> CachePadded<T> {
        CachePadded(value)
    }
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for CachePadded<T> {
    fn from(value: T) -> CachePadded<T> {
        CachePadded(value)
    }
}
