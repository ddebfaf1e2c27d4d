//! Histograms with buckets that grow with the value.
//!
//! Four buckets to each doubling, so a bucket's bounds are within 25 % of each other, as in
//! HdrHistogram with two significant bits:
//!
//! ```text
//! value   0 1 2 3 | 4 5 6 7 | 8-9 10-11 12-13 14-15 | 16-19 20-23 24-27 28-31 | 32-39 …
//! bucket  0 1 2 3 | 4 5 6 7 |  8    9    10    11   |  12    13    14    15   |  16   …
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

const SUB_BITS: u32 = 2;
const SUB: usize = 1 << SUB_BITS;
/// Values from here on share the last bucket: 2^41 ns are 36 minutes.
const MAX_BITS: u32 = 41;
/// How many buckets there are.
pub(crate) const BUCKETS: usize = SUB * (MAX_BITS - SUB_BITS + 1) as usize;

/// The bucket that counts `value`.
#[inline]
const fn bucket_of(value: u64) -> usize {
    if value < SUB as u64 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() - SUB_BITS;
    let bucket = SUB * octave as usize + (value >> octave) as usize;
    if bucket < BUCKETS {
        bucket
    } else {
        BUCKETS - 1
    }
}

/// The largest value that `bucket` counts.
const fn bucket_end(bucket: usize) -> u64 {
    if bucket < SUB {
        return bucket as u64;
    }
    let octave = (bucket / SUB - 1) as u32;
    (((SUB + bucket % SUB) as u64 + 1) << octave) - 1
}

/// A histogram that one thread writes and any thread reads.
///
/// With several writers counts would be lost: give each its own and add the snapshots.
#[derive(Debug)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    pub const fn new() -> Histogram {
        Histogram {
            counts: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }

    /// Counts `value`. By the owner only.
    #[inline]
    pub fn record(&self, value: u64) {
        add(&self.counts[bucket_of(value)], 1);
    }

    /// Forgets what it counted. By the owner only.
    pub(crate) fn clear(&self) {
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Adds this histogram's counts to `into`.
    pub fn add_to(&self, into: &mut HistogramSnapshot) {
        for (sum, count) in into.counts.iter_mut().zip(&self.counts) {
            *sum += count.load(Ordering::Relaxed);
        }
    }
}

/// Adds to a number that only this thread writes: a load and a store, no locked instruction.
#[inline]
pub fn add(cell: &AtomicU64, n: u64) {
    // Relaxed: each number stands for itself.
    cell.store(
        cell.load(Ordering::Relaxed).wrapping_add(n),
        Ordering::Relaxed,
    );
}

/// The sum of some histograms at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    counts: Box<[u64]>,
}

impl Default for HistogramSnapshot {
    fn default() -> HistogramSnapshot {
        HistogramSnapshot {
            counts: vec![0; BUCKETS].into_boxed_slice(),
        }
    }
}

impl HistogramSnapshot {
    /// Adds the counts of another.
    pub fn add(&mut self, other: &HistogramSnapshot) {
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
    }

    /// Takes away the counts of one that this one contains. Where the two were read while waits
    /// were being counted, nothing goes below zero.
    pub fn subtract(&mut self, part: &HistogramSnapshot) {
        for (sum, count) in self.counts.iter_mut().zip(&part.counts) {
            *sum = sum.saturating_sub(*count);
        }
    }

    /// Counts `value` so many times: what another kind of histogram holds becomes one of these.
    pub fn record(&mut self, value: u64, times: u64) {
        self.counts[bucket_of(value)] += times;
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A value that at least `q` (0 to 1) of the counted ones do not exceed, at most 25 % too high.
    /// None if nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let total = self.count();
        let rank = ((total as f64 * q).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        self.counts.iter().enumerate().find_map(|(bucket, &count)| {
            seen += count;
            (seen >= rank).then(|| bucket_end(bucket))
        })
    }

    /// The buckets that are not empty, as (largest value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, &count)| (bucket_end(bucket), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        let mut start = 0;
        for bucket in 0..BUCKETS {
            let end = bucket_end(bucket);
            assert_eq!(bucket_of(start), bucket, "first of {bucket}");
            assert_eq!(bucket_of(end), bucket, "last of {bucket}");
            assert!((end - start) * 4 <= start.max(1), "width of {bucket}");
            start = end + 1;
        }
        assert_eq!(start, 1 << MAX_BITS);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles() {
        let histogram = Histogram::new();
        let mut snapshot = HistogramSnapshot::default();
        assert_eq!(snapshot.quantile(0.5), None);
        let mut given = HistogramSnapshot::default();
        given.record(7, 3);
        given.record(1, 1);
        assert_eq!((given.count(), given.quantile(0.5)), (4, Some(7)));
        for value in 1..=1000 {
            histogram.record(value);
        }
        histogram.add_to(&mut snapshot);
        assert_eq!(snapshot.count(), 1000);
        for (q, exact) in [(0.0, 1), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let got = snapshot.quantile(q).unwrap();
            assert!(got >= exact && got <= exact + exact / 4, "{q}: {got}");
        }
        assert_eq!(snapshot.buckets().map(|(_, n)| n).sum::<u64>(), 1000);
    }
}
