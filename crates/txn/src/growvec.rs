//! A vector that many threads read and grow at once, and whose elements never move.
//!
//! Buckets double in size, so that an index is found with a count of leading zeros and nothing is
//! copied when it grows:
//!
//! ```text
//!  bucket 0: 0..64   bucket 1: 64..128   bucket 2: 128..256   bucket 3: 256..512   …
//! ```
//!
//! Elements are made with `Default` and live until the vector is dropped. Reading an element that
//! has not been made yet answers `None`, whatever the index, so torn numbers do no harm.

use std::sync::OnceLock;

const FIRST_BITS: u32 = 6;
const BUCKETS: usize = 50;

pub(crate) struct GrowVec<T> {
    buckets: [OnceLock<Box<[T]>>; BUCKETS],
}

impl<T: Default> GrowVec<T> {
    pub(crate) fn new() -> GrowVec<T> {
        GrowVec {
            buckets: [const { OnceLock::new() }; BUCKETS],
        }
    }

    /// The element, if something up to its bucket has been asked for with [`GrowVec::at`].
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        let (bucket, offset) = place(index);
        self.buckets.get(bucket)?.get()?.get(offset)
    }

    /// The element, made on first use together with its bucket.
    pub(crate) fn at(&self, index: u64) -> &T {
        let (bucket, offset) = place(index);
        let slots = self.buckets[bucket].get_or_init(|| {
            let len = if bucket == 0 {
                1 << FIRST_BITS
            } else {
                1usize << (FIRST_BITS as usize + bucket - 1)
            };
            (0..len).map(|_| T::default()).collect()
        });
        &slots[offset]
    }

    /// The first `len` elements, as far as they have been made, in pieces without gaps.
    pub(crate) fn pieces(&self, len: u64) -> impl Iterator<Item = &[T]> {
        let mut left = len as usize;
        self.buckets.iter().map_while(move |bucket| {
            let slots = bucket.get().filter(|_| left > 0)?;
            let piece = &slots[..left.min(slots.len())];
            left -= piece.len();
            Some(piece)
        })
    }
}

#[inline]
fn place(index: u64) -> (usize, usize) {
    if index < 1 << FIRST_BITS {
        return (0, index as usize);
    }
    let top = 63 - index.leading_zeros();
    (
        (top - FIRST_BITS + 1) as usize,
        (index - (1 << top)) as usize,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_index_has_a_place_of_its_own() {
        let v: GrowVec<AtomicU64> = GrowVec::new();
        assert!(v.get(0).is_none() && v.get(u64::MAX).is_none());
        for i in 0..5000 {
            v.at(i).store(i + 1, Ordering::Relaxed);
        }
        for i in 0..5000 {
            assert_eq!(v.get(i).map(|c| c.load(Ordering::Relaxed)), Some(i + 1));
        }
        assert!(v.get(1 << 40).is_none());
        let walked: Vec<u64> = v
            .pieces(300)
            .flatten()
            .map(|c| c.load(Ordering::Relaxed))
            .collect();
        assert!(walked.into_iter().eq(1..=300));
    }
}
