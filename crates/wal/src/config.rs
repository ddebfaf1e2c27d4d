//! How a log is opened.

use crate::insertion::InsertForm;
use crate::timeline::TimelineHistory;
use std::sync::Arc;
use throng_sync::atomic::AtomicU32;

/// Sizes are fixed while the log is open; the knobs may be turned at any time.
#[derive(Debug)]
pub struct WalConfig {
    /// Bytes a segment file holds: a multiple of 4096. The same for a data directory's whole life.
    pub segment_size: u64,
    /// Of the data directory: a log of another one is refused.
    pub identifier: u64,
    /// The timelines that lead to the one that is written.
    pub history: Arc<TimelineHistory>,
    /// Bytes of the ring that records wait in; rounded up to a power of two.
    pub buffer: usize,
    /// `lab_wal_insert`: how a record gets its place.
    pub insert: InsertForm,
    /// `lab_wal_lanes`: how many insertion locks there are in [`InsertForm::Lanes`].
    pub insert_lanes: usize,
    /// `commit_delay`, in microseconds: how long a flush waits for more commits to join.
    pub commit_delay_us: AtomicU32,
    /// `commit_siblings`: the delay applies only while at least so many other transactions are
    /// active.
    pub commit_siblings: AtomicU32,
    /// `wal_writer_delay`, in microseconds: how long an asynchronous commit may stay in memory
    /// only.
    pub writer_delay_us: AtomicU32,
}

impl Default for WalConfig {
    fn default() -> WalConfig {
        WalConfig {
            segment_size: 16 << 20,
            identifier: 0,
            history: Arc::default(),
            buffer: 16 << 20,
            insert: InsertForm::default(),
            insert_lanes: 8,
            commit_delay_us: AtomicU32::new(0),
            commit_siblings: AtomicU32::new(5),
            writer_delay_us: AtomicU32::new(200_000),
        }
    }
}
