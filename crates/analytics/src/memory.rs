//! The memory of one job.
//!
//! ```text
//! |<------------------------------- limit -------------------------------->|
//! |  consumers that can spill: an equal share each  |  kept for those that cannot |
//! ```
//! Sorts and groups spill when their share is full, and hold it until they have given out their
//! rows. What merges those rows cannot spill; so a part is kept free for it. Where more is free
//! (nothing spillable runs yet), a join's table may use it. The merge of a sort's partitions comes
//! last, holds a few batches of each, and must find room for them: it is always given. What merges
//! the files of one spilled sort takes all it is given; so each has a share too, and never less
//! than a small part of the limit, be it that many sorts together then exceed it somewhat.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// The part of the limit, one in so many, that is kept for consumers that cannot spill.
const KEPT: usize = 4;
/// The part that a merge of spilled files may have whatever its share: some batches of two files.
const LEAST_MERGE: usize = 16;
/// Files of a spilled sort that are merged at once. So many requests of a share's so-manieth part
/// fill just the share: what is opened never eats into what may be had beyond it.
pub const FAN_IN: usize = 8;

#[derive(Debug)]
pub struct JobMemory {
    limit: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    spillers: usize,
    mergers: usize,
    spillable: usize,
    merging: usize,
    other: usize,
}

impl Used {
    fn registered(&mut self, consumer: &MemoryConsumer) -> Option<&mut usize> {
        if consumer.can_spill() {
            Some(&mut self.spillers)
        } else if is_merge(consumer) {
            Some(&mut self.mergers)
        } else {
            None
        }
    }
}

/// Merges the files of one spilled sort, as many at once as memory lets it.
fn is_merge(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with("ExternalSorterMerge")
}

impl JobMemory {
    /// `limit` in bytes.
    pub fn new(limit: usize) -> JobMemory {
        JobMemory {
            limit,
            used: Mutex::default(),
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        // Counters are right whoever panicked while holding them.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn exhausted(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionError {
        DataFusionError::ResourcesExhausted(format!(
            "{} needs {additional} more bytes beside the {} it has; the statement has {} bytes in all.",
            reservation.consumer().name(),
            reservation.size(),
            self.limit,
        ))
    }
}

/// Takes no more than a few batches of each of its inputs.
fn is_small(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with("SortPreservingMergeExec")
}

impl Used {
    fn of(&mut self, reservation: &MemoryReservation) -> &mut usize {
        let consumer = reservation.consumer();
        if consumer.can_spill() {
            &mut self.spillable
        } else if is_merge(consumer) {
            &mut self.merging
        } else {
            &mut self.other
        }
    }
}

impl fmt::Display for JobMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} bytes)", self.name(), self.limit)
    }
}

impl MemoryPool for JobMemory {
    fn name(&self) -> &str {
        "job"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if let Some(registered) = self.used().registered(consumer) {
            *registered += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if let Some(registered) = self.used().registered(consumer) {
            *registered -= 1;
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.used().of(reservation) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, less: usize) {
        *self.used().of(reservation) -= less;
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut used = self.used();
        let kept = self.limit / KEPT;
        let consumer = reservation.consumer();
        let wanted = reservation.size() + additional;
        let fits = if consumer.can_spill() {
            let all = self.limit - used.other.max(kept).min(self.limit);
            wanted <= all / used.spillers.max(1)
        } else if is_merge(consumer) {
            let share = (kept / used.mergers.max(1)).max(self.limit / LEAST_MERGE);
            // It opens as many files as its share allows, and then needs a little more to go on.
            wanted <= share || (additional <= share / FAN_IN && wanted <= 2 * share)
        } else {
            let free = self.limit.saturating_sub(used.spillable + used.merging);
            is_small(consumer) || used.other + additional <= free.max(kept)
        };
        if !fits {
            drop(used);
            return Err(self.exhausted(reservation, additional));
        }
        *used.of(reservation) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let used = self.used();
        used.spillable + used.other
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_cannot_spill_finds_its_part_free_when_spillers_are_full() {
        let pool: Arc<dyn MemoryPool> = Arc::new(JobMemory::new(1000));
        let sort = |name: &str| {
            MemoryConsumer::new(name)
                .with_can_spill(true)
                .register(&pool)
        };
        let (one, two) = (sort("one"), sort("two"));
        assert!(one.try_grow(375).is_ok() && two.try_grow(375).is_ok());
        assert!(one.try_grow(1).is_err(), "its share is full");
        let merge = MemoryConsumer::new("merge").register(&pool);
        assert!(merge.try_grow(250).is_ok());
        assert!(merge.try_grow(1).is_err());
        drop((one, two));
        assert!(merge.try_grow(750).is_ok(), "all is free");
        assert!(sort("late").try_grow(1).is_err(), "nothing is");
        drop(merge);
        assert_eq!(pool.reserved(), 0);
    }
}
