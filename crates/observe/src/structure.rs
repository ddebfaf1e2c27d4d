//! The structures whose time is sampled, and what a thread keeps of each.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

macro_rules! structures {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// What time is measured in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Structure { $($(#[$doc])* $variant,)* }

        impl Structure {
            pub const ALL: &[Structure] = &[$(Structure::$variant,)*];
            pub const COUNT: usize = Structure::ALL.len();

            /// As `throng.structures` shows it.
            pub const fn name(self) -> &'static str {
                match self { $(Structure::$variant => $name,)* }
            }
        }
    };
}

structures! {
    /// Taking a snapshot.
    Snapshot = "snapshot";
    /// Entering a transaction among those that run.
    TxnBegin = "transaction begin";
    /// Taking it out, for all to see.
    TxnEnd = "transaction end";
    /// Entering pages' latches.
    Latch = "latch";
    /// Pinning and unpinning frames.
    Pin = "pin";
    /// Reserving room in the log and copying a record there.
    WalInsert = "wal insert";
    /// Making a relation longer.
    Extend = "extend";
    /// Taking heavyweight locks by the fast path, or finding them held.
    LockTable = "lock table";
}

/// One structure's numbers on one thread.
pub(crate) struct StructureCell {
    /// Calls that are yet to come before one is timed.
    pub(crate) left: AtomicU32,
    /// From how many `left` counts down.
    pub(crate) gap: AtomicU32,
    /// Calls up to the last one that was timed.
    pub(crate) calls: AtomicU64,
    pub(crate) samples: AtomicU64,
    pub(crate) nanos: AtomicU64,
}

impl StructureCell {
    pub(crate) const fn new() -> StructureCell {
        StructureCell {
            left: AtomicU32::new(0),
            gap: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
        }
    }

    pub(crate) fn clear(&self) {
        for number in [&self.calls, &self.samples, &self.nanos] {
            number.store(0, Ordering::Relaxed);
        }
        self.gap
            .store(self.left.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(crate) fn calls(&self) -> u64 {
        let gap = self.gap.load(Ordering::Relaxed);
        let since = gap.saturating_sub(self.left.load(Ordering::Relaxed));
        self.calls.load(Ordering::Relaxed) + u64::from(since)
    }
}
