//! Row locks other than an update's own `xmax`: who has which version of a row locked, and how.
//!
//! In memory only: a crash ends every locker. Asked and changed while the row's page is latched, so
//! a locker and an updater of one row always meet: whoever latches the page second sees what the
//! first one did. An updater that makes a new version copies the locks of others onto it.
//!
//! ```text
//!   by page    ── partition: how many locks (0: that is all an updater reads)
//!                            (file, tid) ──► [(xid, modes)…]
//!   by holder  ── xid ──► the rows it has locked, copies included
//! ```
//!
//! A holder that has ended may stand here for a moment. It is passed over, so that nobody waits for
//! it.

use throng_sync::atomic::{AtomicU32, Ordering};

use foldhash::fast::RandomState;
use throng_access::RowLockMode;
use throng_sync::CachePadded;
use throng_sync::lock::Mutex;
use throng_types::{FileId, Tid, Xid};

const PARTITIONS: usize = if cfg!(test) { 4 } else { 1024 };
type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
type RowsByHolder = Mutex<HashMap<Xid, Vec<Row>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    file: FileId,
    tid: Tid,
}

/// A row that a transaction has locked, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockedRow {
    pub(crate) xid: Xid,
    pub(crate) file: FileId,
    pub(crate) tid: Tid,
    /// A bit for each mode.
    pub(crate) modes: u8,
}

/// One transaction's locks on one row: a bit for each mode.
#[derive(Clone, Copy)]
struct Holder {
    xid: Xid,
    modes: u8,
}

#[derive(Default)]
struct Partition {
    /// Rows in `rows`.
    count: AtomicU32,
    rows: Mutex<HashMap<Row, Vec<Holder>>>,
}

/// What the table must know of transactions.
pub(crate) trait TransactionLookup {
    fn is_mine(&self, xid: Xid) -> bool;
    fn is_running(&self, xid: Xid) -> bool;
}

pub(crate) struct RowLocks {
    partitions: Box<[CachePadded<Partition>]>,
    holders: Box<[CachePadded<RowsByHolder>]>,
}

fn bit(mode: RowLockMode) -> u8 {
    1 << mode as u8
}

fn conflicts(modes: u8, wanted: RowLockMode) -> bool {
    RowLockMode::ALL
        .into_iter()
        .any(|held| modes & bit(held) != 0 && held.conflicts(wanted))
}

fn conflicting(holders: &[Holder], mode: RowLockMode, who: &impl TransactionLookup) -> Option<Xid> {
    let in_the_way =
        |h: &&Holder| conflicts(h.modes, mode) && !who.is_mine(h.xid) && who.is_running(h.xid);
    holders.iter().find(in_the_way).map(|h| h.xid)
}

impl RowLocks {
    pub(crate) fn new() -> RowLocks {
        RowLocks {
            partitions: (0..PARTITIONS).map(|_| CachePadded::default()).collect(),
            holders: (0..PARTITIONS).map(|_| CachePadded::default()).collect(),
        }
    }

    /// By page, so that an update whose versions share a page asks one partition.
    fn partition(&self, row: Row) -> &Partition {
        let page = (row.file.0 as u64) << 32 | row.tid.block as u64;
        &self.partitions[(page.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % PARTITIONS]
    }

    fn rows_of(&self, xid: Xid) -> &RowsByHolder {
        &self.holders[xid.0 as usize % PARTITIONS]
    }

    /// Another running transaction whose lock on the row excludes `mode`.
    #[inline]
    pub(crate) fn conflict(
        &self,
        file: FileId,
        tid: Tid,
        mode: RowLockMode,
        who: &impl TransactionLookup,
    ) -> Option<Xid> {
        let row = Row { file, tid };
        let partition = self.partition(row);
        // Relaxed: the page's latch orders this after any locker that has held it.
        if partition.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let rows = partition.rows.lock();
        conflicting(rows.get(&row)?, mode, who)
    }

    /// Whether `who` has locked the row, in whatever mode.
    pub(crate) fn is_held(&self, file: FileId, tid: Tid, who: &impl TransactionLookup) -> bool {
        let row = Row { file, tid };
        let partition = self.partition(row);
        if partition.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let rows = partition.rows.lock();
        let holders = rows.get(&row);
        holders.is_some_and(|holders| holders.iter().any(|h| who.is_mine(h.xid)))
    }

    /// Locks the row for `xid`, or says who is in the way.
    pub(crate) fn acquire(
        &self,
        file: FileId,
        tid: Tid,
        mode: RowLockMode,
        xid: Xid,
        who: &impl TransactionLookup,
    ) -> Option<Xid> {
        let row = Row { file, tid };
        let added = {
            let partition = self.partition(row);
            let mut rows = partition.rows.lock();
            if let Some(holder) = rows
                .get(&row)
                .and_then(|holders| conflicting(holders, mode, who))
            {
                return Some(holder);
            }
            add(
                partition,
                &mut rows,
                row,
                Holder {
                    xid,
                    modes: bit(mode),
                },
            )
        };
        if added {
            self.rows_of(xid).lock().entry(xid).or_default().push(row);
        }
        None
    }

    /// Whoever else has `old` locked has `new` locked too.
    pub(crate) fn moved(&self, file: FileId, old: Tid, new: Tid, who: &impl TransactionLookup) {
        let from = Row { file, tid: old };
        let partition = self.partition(from);
        if partition.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let others: Vec<Holder> = match partition.rows.lock().get(&from) {
            Some(holders) => holders
                .iter()
                .copied()
                .filter(|h| !who.is_mine(h.xid))
                .collect(),
            None => return,
        };
        let row = Row { file, tid: new };
        for holder in others {
            let partition = self.partition(row);
            let added = add(partition, &mut partition.rows.lock(), row, holder);
            if !added {
                continue;
            }
            let mut rows_of = self.rows_of(holder.xid).lock();
            // A holder that ends stores its status before it takes its list from here; so either it
            // is seen to run and will find the row in its list, or it is seen to have ended.
            if who.is_running(holder.xid) {
                rows_of.entry(holder.xid).or_default().push(row);
            } else {
                drop(rows_of);
                self.remove(row, holder.xid);
            }
        }
    }

    /// All of a transaction's locks, copies included.
    pub(crate) fn of(&self, xid: Xid) -> Vec<LockedRow> {
        let rows = self.rows_of(xid).lock().get(&xid).cloned();
        let locked = |row: Row| {
            let rows = self.partition(row).rows.lock();
            let holder = rows.get(&row)?.iter().find(|h| h.xid == xid)?;
            Some(LockedRow {
                xid,
                file: row.file,
                tid: row.tid,
                modes: holder.modes,
            })
        };
        rows.into_iter().flatten().filter_map(locked).collect()
    }

    /// Puts a lock back that the log has told of, before anybody else comes.
    pub(crate) fn restore(&self, lock: LockedRow) {
        let row = Row {
            file: lock.file,
            tid: lock.tid,
        };
        let (xid, modes) = (lock.xid, lock.modes);
        let partition = self.partition(row);
        if add(
            partition,
            &mut partition.rows.lock(),
            row,
            Holder { xid, modes },
        ) {
            self.rows_of(xid).lock().entry(xid).or_default().push(row);
        }
    }

    /// Gives up all of a transaction's locks, copies included. To be called after its status is
    /// stored.
    pub(crate) fn release(&self, xid: Xid) {
        let rows = self.rows_of(xid).lock().remove(&xid).unwrap_or_default();
        for row in rows {
            self.remove(row, xid);
        }
    }

    fn remove(&self, row: Row, xid: Xid) {
        let partition = self.partition(row);
        let mut rows = partition.rows.lock();
        let Some(holders) = rows.get_mut(&row) else {
            return;
        };
        holders.retain(|h| h.xid != xid);
        if holders.is_empty() {
            rows.remove(&row);
            partition.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.partitions
            .iter()
            .all(|p| p.count.load(Ordering::Relaxed) == 0 && p.rows.lock().is_empty())
            && self.holders.iter().all(|h| h.lock().is_empty())
    }
}

/// Adds modes to a holder's entry. Whether there was none before.
fn add(partition: &Partition, rows: &mut HashMap<Row, Vec<Holder>>, row: Row, new: Holder) -> bool {
    let holders = rows.entry(row).or_insert_with(|| {
        partition.count.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    });
    match holders.iter_mut().find(|h| h.xid == new.xid) {
        Some(holder) => {
            holder.modes |= new.modes;
            false
        }
        None => {
            holders.push(new);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    struct Who {
        me: u64,
        ended: HashSet<u64>,
    }
    impl TransactionLookup for Who {
        fn is_mine(&self, xid: Xid) -> bool {
            xid.0 == self.me
        }
        fn is_running(&self, xid: Xid) -> bool {
            !self.ended.contains(&xid.0)
        }
    }
    fn who(me: u64) -> Who {
        Who {
            me,
            ended: HashSet::new(),
        }
    }
    const F: FileId = FileId(1);
    fn tid(slot: u16) -> Tid {
        Tid::new(3, slot)
    }

    #[test]
    fn lockers_share_or_wait_and_an_update_carries_their_locks_on() {
        use RowLockMode::*;
        let locks = RowLocks::new();
        assert_eq!(locks.conflict(F, tid(1), Update, &who(9)), None);
        assert_eq!(locks.acquire(F, tid(1), KeyShare, Xid(10), &who(10)), None);
        assert_eq!(locks.acquire(F, tid(1), Share, Xid(11), &who(11)), None);
        assert_eq!(
            locks.acquire(F, tid(1), NoKeyUpdate, Xid(12), &who(12)),
            Some(Xid(11))
        );
        assert_eq!(locks.conflict(F, tid(1), KeyShare, &who(12)), None);
        locks.release(Xid(11));
        assert_eq!(locks.conflict(F, tid(1), NoKeyUpdate, &who(12)), None);
        locks.moved(F, tid(1), tid(2), &who(12));
        assert_eq!(
            locks.conflict(F, tid(2), Update, &who(13)),
            Some(Xid(10)),
            "carried to the new version"
        );
        assert_eq!(
            locks.conflict(F, tid(2), Update, &who(10)),
            None,
            "one's own lock is no obstacle"
        );
        locks.release(Xid(10));
        assert!(locks.is_empty());
    }

    #[test]
    fn a_holder_that_has_ended_is_in_nobodys_way_and_leaves_no_copies() {
        let locks = RowLocks::new();
        assert_eq!(
            locks.acquire(F, tid(1), RowLockMode::Update, Xid(10), &who(10)),
            None
        );
        let mut other = who(20);
        other.ended.insert(10);
        assert_eq!(locks.conflict(F, tid(1), RowLockMode::Update, &other), None);
        locks.moved(F, tid(1), tid(2), &other);
        locks.release(Xid(10));
        assert!(locks.is_empty());
    }
}
