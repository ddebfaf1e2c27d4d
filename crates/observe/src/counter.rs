//! Things counted as they happen.

macro_rules! counters {
    ($(#[doc = $doc:literal] $variant:ident = $name:literal;)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Counter { $(#[doc = $doc] $variant,)* }

        impl Counter {
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];
            pub const COUNT: usize = Counter::ALL.len();

            /// In lower case with underscores, as PostgreSQL's statistics views name their columns.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name,)* }
            }

            /// What it counts, in words.
            pub const fn meaning(self) -> &'static str {
                match self { $(Counter::$variant => $doc.trim_ascii(),)* }
            }
        }
    };
}

counters! {
    /// Pages wanted and found in the pool.
    PageHit = "blks_hit";
    /// Pages read from their files.
    PageRead = "blks_read";
    /// Pages written to their files.
    PageWrite = "blks_written";
    /// Pages added to files.
    PageExtend = "blks_extended";
    /// Pages dropped from the pool for others.
    PageEvict = "blks_evicted";
    /// Optimistic reads of pages that had to start over.
    OptimisticRetry = "optimistic_retries";
    /// Records written to the log.
    WalRecord = "wal_records";
    /// Whole pages in these records.
    WalPageImage = "wal_fpi";
    /// Bytes of log.
    WalByte = "wal_bytes";
    /// Times the log was made durable.
    WalSync = "wal_sync";
    /// Checkpoints begun because checkpoint_timeout had passed.
    CheckpointTimed = "checkpoints_timed";
    /// Checkpoints begun because somebody asked, or much had been logged.
    CheckpointRequested = "checkpoints_requested";
    /// Checkpoints completed.
    CheckpointDone = "checkpoints_done";
    /// Pages that checkpoints wrote to their files.
    CheckpointWrite = "checkpoint_blks_written";
    /// Milliseconds in which checkpoints wrote pages, pauses included.
    CheckpointWriteMs = "checkpoint_write_ms";
    /// Milliseconds in which checkpoints made files durable.
    CheckpointSyncMs = "checkpoint_sync_ms";
    /// Deadlocks found, each ended by an error.
    Deadlock = "deadlocks";
    /// Stretches of more than 10 ms in which a session held its event loop.
    Stall = "stalls";
}
