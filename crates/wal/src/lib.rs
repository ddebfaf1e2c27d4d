//! The write-ahead log: records, parallel insertion, group commit, reading.
//!
//! What it promises:
//! * A record whose end is at or below [`Wal::flushed`] survives any crash, and so does everything
//!   before it.
//! * Any number of threads insert at once; none waits for another's copy, and only a full ring
//!   makes one wait (in the default of three forms of insertion).
//! * One flusher thread writes and syncs; who waits for it holds no thread ([`Wal::flush`] is a
//!   future).
//! * After one failed write or sync nothing is ever acknowledged again.
//! * Reading stops at the first byte that is not a record, and writing goes on exactly there.
//!
//! ```text
//!  insert ──fetch_add──► place in the stream ──copy──► ring ──flusher: write──► segment files ──sync──► flushed
//!                                                       ▲ oldest byte not yet copied = min over busy lanes
//! ```
//!
//! Imported by: `server`, `session`, `lab`, `txn`, `access`, `buffer`.

mod archive;
mod buffer;
mod bytes;
mod config;
mod directory;
mod flusher;
mod horizon;
mod insertion;
mod made;
mod ops;
mod reader;
mod record;
mod retention;
mod ring;
mod segment;
mod shared;
mod tail;
mod timeline;
mod wait;
mod waiters;
mod wal;
mod writer;

pub use archive::{enter_segments, has_segment, import_segment, read_stream, segment_path};
pub use config::WalConfig;
pub use horizon::{ImageHorizon, MtrTicket};
pub use insertion::InsertForm;
pub use ops::{Ops, PageOp, apply};
pub use reader::{Entry, Reader};
pub use record::{
    CheckpointRecord, Edit, Edits, MAX_RECORD, MAX_RESTORE_POINT, NextIds, RECORD_HEADER, Record,
    RecordBuilder,
};
pub use retention::WalHold;
pub use shared::FlushObserver;
pub use timeline::{EndedTimeline, TimelineHistory, TimelineId, parse_segment_name, segment_name};
pub use wait::{FlushWait, RoomWait};
pub use wal::Wal;
