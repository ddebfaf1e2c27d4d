//! Heavyweight locks: PostgreSQL's eight modes, held for as long as a transaction lives, waited for
//! without a thread.
//!
//! ```text
//!   Txn::lock ──► held already? ──► done                       held.rs    (the session's own list)
//!       │
//!       ├─ weak mode on a relation ──► a word of the session's own        fast.rs
//!       │        no strong locker about: done
//!       ▼
//!   one of many partitions ──► granted, or the queue's end     table.rs
//!       │
//!       ▼ asleep (a `Waker`, a timer or three)                 wait.rs
//!         granted · cancelled · lock_timeout · after deadlock_timeout: a walk over who waits for whom   deadlock.rs
//! ```
//!
//! Here is what is locked, held and waited for; the ways that a session goes through it, and the
//! walk, are the [lock manager's](crate::lock_manager).
//!
//! Waits for a transaction's end (a row it wrote or locked) have their own table, [`xid`], because
//! every writing transaction would otherwise have to take a lock on itself that hardly anybody ever
//! asks for.

mod by_tag;
pub(crate) mod fast;
pub(crate) mod held;
pub(crate) mod table;
pub(crate) mod wait;
pub(crate) mod xid;

use std::fmt;

use throng_types::error::state;
use throng_types::{Error, FileId, Oid, Tid, Xid};

/// The eight modes, weakest first, with PostgreSQL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LockMode {
    /// SELECT.
    AccessShare = 1,
    /// SELECT FOR UPDATE and its kin.
    RowShare = 2,
    /// INSERT, UPDATE, DELETE.
    RowExclusive = 3,
    /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY.
    ShareUpdateExclusive = 4,
    /// CREATE INDEX.
    Share = 5,
    ShareRowExclusive = 6,
    Exclusive = 7,
    /// DROP, TRUNCATE, most of ALTER TABLE.
    AccessExclusive = 8,
}

/// A set of modes: bit n for mode n.
pub(crate) type ModeMask = u16;

impl LockMode {
    pub const ALL: [LockMode; 8] = [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];

    pub(crate) const fn bit(self) -> ModeMask {
        1 << self as u8
    }

    /// The modes that `self` excludes.
    ///
    /// ```text
    ///                        AS RS RX SUX S SRX X AX
    /// AccessShare                                 x
    /// RowShare                                 x  x
    /// RowExclusive                       x  x  x  x
    /// ShareUpdateExclusive            x  x  x  x  x
    /// Share                        x  x     x  x  x
    /// ShareRowExclusive            x  x  x  x  x  x
    /// Exclusive                 x  x  x  x  x  x  x
    /// AccessExclusive        x  x  x  x  x  x  x  x
    /// ```
    pub(crate) const fn conflict_mask(self) -> ModeMask {
        use LockMode::*;
        match self {
            AccessShare => AccessExclusive.bit(),
            RowShare => Exclusive.bit() | AccessExclusive.bit(),
            RowExclusive => 0b1_1110_0000,
            ShareUpdateExclusive => 0b1_1111_0000,
            Share => 0b1_1101_1000,
            ShareRowExclusive => 0b1_1111_1000,
            Exclusive => 0b1_1111_1100,
            AccessExclusive => 0b1_1111_1110,
        }
    }

    /// Whether two sessions may not hold these modes on one object at once.
    pub const fn conflicts(self, other: LockMode) -> bool {
        self.conflict_mask() & other.bit() != 0
    }

    /// Modes that exclude none of each other: they go through the session's own words.
    pub(crate) const fn is_weak(self) -> bool {
        (self as u8) < LockMode::ShareUpdateExclusive as u8
    }

    /// Modes that exclude a weak one: who takes them looks at everybody's words.
    pub(crate) const fn is_strong(self) -> bool {
        self as u8 > LockMode::ShareUpdateExclusive as u8
    }

    /// The name in `pg_locks`.
    pub const fn name(self) -> &'static str {
        match self {
            LockMode::AccessShare => "AccessShareLock",
            LockMode::RowShare => "RowShareLock",
            LockMode::RowExclusive => "RowExclusiveLock",
            LockMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            LockMode::Share => "ShareLock",
            LockMode::ShareRowExclusive => "ShareRowExclusiveLock",
            LockMode::Exclusive => "ExclusiveLock",
            LockMode::AccessExclusive => "AccessExclusiveLock",
        }
    }
}

/// The modes in a mask, weakest first.
pub(crate) fn modes(mask: ModeMask) -> impl Iterator<Item = LockMode> {
    LockMode::ALL
        .into_iter()
        .filter(move |mode| mask & mode.bit() != 0)
}

/// What a lock is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockTag {
    /// A table, index, sequence or view.
    Relation(Oid),
    /// Another catalog object: its catalog's oid and its own.
    Object { class: Oid, object: Oid },
    /// A place in the queue for a row, by its chain's root.
    Tuple { file: FileId, tid: Tid },
    /// `pg_advisory_lock(bigint)`.
    Advisory { database: Oid, key: i64 },
    /// `pg_advisory_lock(int, int)`: another key space.
    AdvisoryPair { database: Oid, keys: (i32, i32) },
    /// A transaction's end; only ever seen in listings and messages.
    Transaction(Xid),
}

impl LockTag {
    pub(crate) fn transaction(&self) -> Option<Xid> {
        match *self {
            LockTag::Transaction(xid) => Some(xid),
            _ => None,
        }
    }

    /// `pg_locks.locktype`.
    pub const fn kind(&self) -> &'static str {
        match self {
            LockTag::Relation(_) => "relation",
            LockTag::Object { .. } => "object",
            LockTag::Tuple { .. } => "tuple",
            LockTag::Advisory { .. } | LockTag::AdvisoryPair { .. } => "advisory",
            LockTag::Transaction(_) => "transactionid",
        }
    }
}

impl fmt::Display for LockTag {
    /// As PostgreSQL's deadlock report names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockTag::Relation(oid) => write!(f, "relation {oid}"),
            LockTag::Object { class, object } => write!(f, "object {object} of class {class}"),
            LockTag::Tuple { file, tid } => write!(f, "tuple {tid} of file {file}"),
            LockTag::Advisory { key, .. } => write!(
                f,
                "advisory lock [{},{},1]",
                (*key as u64) >> 32,
                *key as u32
            ),
            LockTag::AdvisoryPair { keys: (a, b), .. } => {
                write!(f, "advisory lock [{},{},2]", *a as u32, *b as u32)
            }
            LockTag::Transaction(xid) => write!(f, "transaction {xid}"),
        }
    }
}

/// What to do when a lock is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Wait, up to `lock_timeout`.
    Block,
    /// Wait for those who hold the lock; who comes later does not wait for us.
    LetPast,
    /// Say so at once: NOWAIT's 55P03, or `false` from the `try_` functions, or the row skipped.
    NoWait,
}

/// 55P03, as PostgreSQL words it for a relation.
pub(crate) fn not_available(what: &str) -> Error {
    Error::new(
        state::LOCK_NOT_AVAILABLE,
        format!("could not obtain lock on {what}"),
    )
}

/// A row of `pg_locks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    pub tag: LockTag,
    pub pid: u32,
    pub mode: LockMode,
    pub granted: bool,
    /// Held in the session's own words.
    pub fast_path: bool,
    /// When the wait began, in microseconds since 1970.
    pub wait_start: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_conflict_as_postgresql_documents() {
        let rows: [&str; 8] = [
            "       x", "      xx", "    xxxx", "   xxxxx", "  xx xxx", "  xxxxxx", " xxxxxxx",
            "xxxxxxxx",
        ];
        for (i, a) in LockMode::ALL.into_iter().enumerate() {
            for (j, b) in LockMode::ALL.into_iter().enumerate() {
                assert_eq!(
                    a.conflicts(b),
                    rows[i].as_bytes()[j] == b'x',
                    "{a:?} against {b:?}"
                );
                assert_eq!(a.conflicts(b), b.conflicts(a));
            }
        }
    }

    #[test]
    fn weak_modes_exclude_only_strong_ones() {
        for a in LockMode::ALL.into_iter().filter(|m| m.is_weak()) {
            for b in LockMode::ALL {
                assert!(!a.conflicts(b) || b.is_strong(), "{a:?} against {b:?}");
            }
        }
    }
}
