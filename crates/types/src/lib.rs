//! Identifiers, values, rows, ordered keys and errors shared by all crates.
//!
//! Promises: what is here is plain data and functions over it; nothing waits, allocates without a
//! bound that its caller set, or knows of pages, files or sessions.
//!
//! Imported by: `server`, `analytics`, `session`, `exec`, `lab`, `plan`, `bind`, `catalog`,
//! `values`, `syntax`, `txn`, `access`, `buffer`, `wal`, `disk`.

pub mod base;
pub mod calendar;
pub mod datum;
pub mod dispose;
pub mod error;
pub mod height;
pub mod ids;
pub mod interrupt;
pub mod jsonb;
pub mod key;
pub mod lexical;
pub mod numeric;
mod ordered;
pub mod page;
pub mod range;
pub mod reach;
pub mod row;
pub mod shared;
pub mod sqltype;
pub mod stack;
pub mod text_search;
pub mod vocabulary;
pub use base::BaseValue;
pub use datum::{Array, Datum, Dim, EnumValue, Interval, Multirange, Range, Record, Text, TimeTz};
pub use error::{Error, Result, SqlState};
pub use ids::{BlockNo, Cid, Csn, FileId, Lsn, Oid, PageId, Tid, Xid};
pub use jsonb::Jsonb;
pub use numeric::Numeric;
pub use range::RangeType;
pub use sqltype::{SqlType, TypeInfo, oid};
