//! Transactions: clock, snapshots, locks, commit, cleaning and recovery.
//!
//! What it promises:
//! * A commit answered with `sync` is found after any crash; one not answered is found whole or not
//!   at all.
//! * A snapshot is one number (in the default of its three forms); taking it walks nobody, and the
//!   clock's background thread keeps what it sees from being cleaned.
//! * Serializable transactions that commit could have run one after the other; nobody waits for
//!   that.
//! * A session that waits (for a lock, a row, another's end) is a future: it holds no thread and no
//!   latch.
//! * Every wait can be cancelled, times out as told, and is looked through for deadlocks.
//!
//! Imported by: `server`, `session`, `exec`, `lab`.

mod active;
mod archive_recovery;
mod archiver;
mod backup;
mod checkpoint;
mod clock;
mod control;
mod growvec;
mod ids;
mod isolation;
mod lock;
mod lock_manager;
mod pieces;
mod reads;
mod recover;
mod rowlock;
pub mod rows;
#[cfg(all(test, shuttle))]
mod schedules;
mod session;
mod slots;
mod snapshot;
mod ssi;
mod standby;
mod status;
mod synchronous;
mod system;
mod timer;
mod txn;
pub mod vacuum;
mod xact;

pub use active::SnapshotForm;
pub use archive_recovery::{
    ArchiveRecovery, FetchFromArchive, RecoveryStop, RecoveryTarget, TargetTimeline,
};
pub use archiver::{Archive, ArchivedFile, ArchiverStatus, Archiving};
pub use backup::{Backup, BackupEnd, files_to_copy};
pub use isolation::Isolation;
pub use lock::held::LockScope;
pub use lock::{LockInfo, LockMode, LockTag, WaitPolicy};
pub use reads::{Reads, Watch};
pub use recover::{RecoveryReport, whole_log};
pub use session::{
    CancelFlag, CancelReason, Encryption, LockReporter, Session, SessionEntry, SessionInfo,
    SessionState, SessionStatus, TxnConfig,
};
pub use slots::{ReplicationSlots, SlotInfo};
pub use snapshot::Snapshot;
pub use ssi::{ReadLock, ReadTarget};
pub use standby::Standby;
pub use synchronous::{
    ReplicationLevel, StandbyPosition, SynchronousReplication, SynchronousStandbys,
};
pub use system::{CleanerContext, OpenConfig, TxnSystem};
pub use timer::now_micros;
pub use txn::prepare::PrepareRequest;
pub use txn::prepared::{Claimed, MAX_GID, PreparedInfo};
pub use txn::{Txn, writers_here};
