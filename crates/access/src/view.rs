//! What storage must know of transactions: who I am, how others ended, what may be seen, who has
//! locked what.

use throng_types::{Cid, Csn, FileId, Tid, Xid};

use crate::heap::tuple::TupleHeader;

/// How a transaction (or subtransaction) stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidStatus {
    /// Running, or its commit is not yet visible.
    InProgress,
    Committed(Csn),
    /// Rolled back, or lost in a crash.
    Aborted,
}

/// PostgreSQL's four strengths of row lock, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RowLockMode {
    /// The row's key stays: what a foreign key needs of the row it points to.
    KeyShare,
    /// The row stays as it is.
    Share,
    /// Taken by an update that leaves the key columns alone.
    NoKeyUpdate,
    /// Taken by a delete and by an update of key columns.
    Update,
}

impl RowLockMode {
    pub const ALL: [RowLockMode; 4] = [
        RowLockMode::KeyShare,
        RowLockMode::Share,
        RowLockMode::NoKeyUpdate,
        RowLockMode::Update,
    ];

    /// Whether two transactions may not hold these modes on one row at once.
    ///
    /// ```text
    ///               KeyShare  Share  NoKeyUpdate  Update
    /// KeyShare                                      x
    /// Share                            x            x
    /// NoKeyUpdate             x        x            x
    /// Update           x      x        x            x
    /// ```
    pub const fn conflicts(self, other: RowLockMode) -> bool {
        use RowLockMode::*;
        match (self, other) {
            (Update, _)
            | (_, Update)
            | (NoKeyUpdate, NoKeyUpdate | Share)
            | (Share, NoKeyUpdate) => true,
            (KeyShare, _) | (_, KeyShare) | (Share, Share) => false,
        }
    }
}

/// Stretches of commits that no snapshot falls into, now or later: between the oldest ones that are
/// held.
///
/// ```text
///   commits     7   8   9   10   11   12   13   14   15
///               ▲                          ▲    ▲
///               a long query's snapshot    another's, and all there will be
///               ├──────────────────────────┤
///    a version made by 9 and replaced by 12 is seen by nobody
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// The first `len` are the snapshots, oldest first; after the last one comes nothing that is
    /// known.
    bounds: [Csn; Gaps::BOUNDS],
    len: usize,
}

impl Gaps {
    /// Snapshots that are told apart: more are taken for one that sees everything after the last of
    /// these.
    pub const BOUNDS: usize = 17;

    /// Between each of `bounds` and the next, which come in order; those that are too many are left
    /// out.
    pub fn between(bounds: &[Csn]) -> Gaps {
        let mut gaps = Gaps::default();
        if bounds.len() > 1 {
            gaps.len = bounds.len().min(Gaps::BOUNDS);
            gaps.bounds[..gaps.len].copy_from_slice(&bounds[..gaps.len]);
        }
        gaps
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no snapshot shows what the commit `made` made and the commit `ended` replaced.
    pub fn cover(&self, made: Csn, ended: Csn) -> bool {
        let bounds = &self.bounds[..self.len];
        bounds
            .windows(2)
            .any(|gap| gap[0] < made && ended <= gap[1])
    }
}

/// The transaction on whose behalf a page is changed.
///
/// All of it is called while page latches are held: nothing here may wait, and none of it may touch
/// a page.
pub trait TxContext {
    /// What new versions are stamped with: the current subtransaction's id, given out on first use.
    fn xid(&self) -> Xid;
    /// The running command's number: what it writes it does not see, what lower ones wrote it does.
    fn cid(&self) -> Cid;
    /// Whether `xid` is this transaction or one of its subtransactions that has not been rolled
    /// back.
    fn is_mine(&self, xid: Xid) -> bool;
    fn status(&self, xid: Xid) -> XidStatus;
    /// A commit at or before this is visible to every snapshot there is or will be, and its record
    /// is on disk.
    fn horizon(&self) -> Csn;
    /// As [`horizon`](Self::horizon), on disk or not: for what is decided by it and logged, so that
    /// its record comes after the commit's.
    fn prunable(&self) -> Csn {
        self.horizon()
    }
    /// Where, after [`prunable`](Self::prunable), no snapshot is.
    fn gaps(&self) -> Gaps {
        Gaps::default()
    }
    /// A number that moves on with whatever may make more prunable: either horizon, the gaps, a
    /// rollback. So what was looked at in vain need not be looked at again at the same number.
    /// `None` where nobody counts.
    fn moves(&self) -> Option<u32> {
        None
    }
    /// Another transaction that holds a row lock which conflicts with `mode`, if there is one.
    fn row_lock_conflict(&self, file: FileId, tid: Tid, mode: RowLockMode) -> Option<Xid>;
    /// Takes the row lock, or says who holds one that conflicts. Taking it again does no harm.
    fn row_lock_acquire(&self, file: FileId, tid: Tid, mode: RowLockMode) -> Option<Xid>;
    /// A new version was made: whoever has `old` locked has `new` locked too.
    fn row_moved(&self, file: FileId, old: Tid, new: Tid);
}

/// What a reader sees: a snapshot and the reader's own writes.
pub trait Visibility {
    /// Whether this version is the one to see.
    ///
    /// Called from optimistic reads too: the header may then be torn, the answer is thrown away,
    /// and any number in it must be borne without harm. A version is visible when its `xmin` is
    /// (mine with `cmin` below the command's number, or committed within the snapshot) and its
    /// `xmax` is not (none, aborted, mine with `cmax` at or above the command's number, in
    /// progress, or committed after the snapshot). The hints in `flags` save the look-up.
    fn visible(&self, header: &TupleHeader) -> bool;

    /// A page is looked at (once more): what was asked about it before does not count.
    #[inline]
    fn again(&self) {}

    /// Whether everybody, now and later, sees of this version what I see, for as long as its header
    /// is as it is. No is always a right answer.
    fn is_settled(&self, _header: &TupleHeader) -> bool {
        false
    }

    /// Whether nobody sees this version, now or later, by commits that are on disk. No is always a
    /// right answer. Called from optimistic reads too.
    fn is_gone(&self, _header: &TupleHeader) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_covers_what_begins_and_ends_in_it() {
        let csns = |numbers: &[u64]| numbers.iter().copied().map(Csn).collect::<Vec<_>>();
        let gaps = Gaps::between(&csns(&[7, 13, 20]));
        // Whoever is of a bound sees what was there at its commit.
        for (made, ended, covered) in [
            (8, 13, true),
            (9, 9, true),
            (7, 9, false),
            (8, 14, false),
            (14, 20, true),
            (13, 20, false),
            (14, 21, false),
            (21, 22, false),
        ] {
            assert_eq!(gaps.cover(Csn(made), Csn(ended)), covered, "{made} {ended}");
            let seen = |snapshot: u64| made <= snapshot && snapshot < ended;
            let is_seen = [7, 13, 20, 21].into_iter().any(seen);
            assert!(!covered || !is_seen);
        }
        assert!(Gaps::between(&csns(&[7])).is_empty());
        let odd: Vec<u64> = (0..=Gaps::BOUNDS as u64).map(|n| 2 * n + 1).collect();
        let many = Gaps::between(&csns(&odd));
        let last = odd[Gaps::BOUNDS];
        assert!(many.cover(Csn(last - 3), Csn(last - 2)) && !many.cover(Csn(last - 1), Csn(last)));
    }

    #[test]
    fn lock_modes_conflict_as_the_table_says() {
        use RowLockMode::*;
        let table = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true; 4],
        ];
        for (i, a) in [KeyShare, Share, NoKeyUpdate, Update]
            .into_iter()
            .enumerate()
        {
            for (j, b) in RowLockMode::ALL.into_iter().enumerate() {
                assert_eq!(a.conflicts(b), table[i][j], "{a:?} against {b:?}");
            }
        }
    }
}
