//! The heap: rows as versions on slotted pages.
//!
//! A row is a chain of versions, oldest first; a reader takes the one its snapshot shows. Promises:
//!
//! * Readers never wait for writers, nor the other way round; they share at most a page's latch for
//!   a moment.
//! * A point read writes nothing to shared memory.
//! * A call that is answered `Err(Interrupt::Wait)` has changed nothing.
//! * Whoever changes a version holds its page exclusively and has, under that latch, looked at
//!   `xmax` and at the row locks.
//! * Two pages are latched at once only by an update that leaves its page, and the second is only
//!   ever tried.
//!
//! [`mod@tuple`] and [`page`] give the bytes, [`prune`] and [`vacuum`] take dead versions away,
//! [`large`] keeps what no row can hold, [`copy`] takes versions to another heap. [`relation`] is
//! what is known of a heap in memory: where the next row goes, and how much there is to clean.

mod copy;
pub(crate) mod free;
pub mod large;
pub mod page;
mod prune;
mod read;
pub(crate) mod relation;
mod room;
mod space;
#[cfg(test)]
mod tests;
pub mod tuple;
mod update;
mod vacuum;
mod write;

use std::sync::Arc;

use throng_buffer::{Pool, Try};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, FileId, PageId, Tid, Xid};

use relation::RelState;

pub use copy::VisibleVersion;
pub use prune::Pruned;
pub use read::{Fetched, RowAt, TupleBatch};
pub use update::VersionRef;
pub use vacuum::PageVacuumed;

/// What became of an attempt to change or lock one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<T> {
    Done(T),
    /// This transaction holds the row, by its `xmax` or by a row lock: wait for its end, then try
    /// again.
    Busy(Xid),
    /// A committed transaction replaced the version; the next one is here.
    Updated(Tid),
    /// A committed transaction took the row to another relation.
    Moved,
    /// A committed transaction deleted the row.
    Deleted,
    /// Another version, or none, is in the slot of the one that was meant, which nobody has kept
    /// there.
    Lost,
    /// My own running command (or a later one) has changed this version already.
    SelfModified,
    /// There is no such version for me: its maker runs, was rolled back, or is a command not before
    /// mine.
    Invisible,
}

/// Where an update put the new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewVersion {
    pub tid: Tid,
    /// The old version's index entries lead to it: none are to be made.
    pub hot: bool,
    /// The old version has values that lie elsewhere.
    pub old_has_large: bool,
}

/// How a row stands now, whatever any snapshot says: what a unique index asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// No version is or can come to be valid.
    Dead,
    /// This version is valid (mine or committed) and nobody is changing it.
    Live(Tid),
    /// It hangs on how this transaction ends.
    InProgress(Xid),
}

/// One relation's heap. Cheap to make and to clone.
#[derive(Clone)]
pub struct Heap {
    pool: Arc<Pool>,
    rel: Arc<RelState>,
}

impl Heap {
    pub fn new(pool: Arc<Pool>, rel: Arc<RelState>) -> Heap {
        Heap { pool, rel }
    }
    pub fn file(&self) -> FileId {
        self.rel.file()
    }
    pub fn rel(&self) -> &Arc<RelState> {
        &self.rel
    }
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
    /// Blocks the relation has now: what a scan that starts now must visit.
    pub fn blocks(&self) -> Try<BlockNo> {
        Ok(self.pool.blocks(self.file())?)
    }
    fn page_id(&self, block: BlockNo) -> PageId {
        PageId::new(self.file(), block)
    }
}

/// The slots of a root's versions, oldest first.
pub(crate) fn chain(page: &[u8; PAGE_SIZE], root: Tid) -> impl Iterator<Item = u16> {
    read::Chain::new(page, root).map(|version| version.slot)
}
