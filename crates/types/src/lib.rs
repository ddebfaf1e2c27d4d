//! Identifiers, data, rows, ordered keys and errors shared by every room.
pub mod calendar;
pub mod datum;
pub mod error;
pub mod height;
pub mod ids;
pub mod jsonb;
pub mod key;
pub mod numeric;
pub mod page;
pub mod row;
pub mod sqltype;
pub use datum::{Array, Datum, Dim, EnumValue, Interval, Record, Text, TimeTz};
pub use error::{Error, Result, SqlState};
pub use ids::{BlockNo, Cid, Csn, FileId, Lsn, Oid, PageId, Tid, Xid};
pub use jsonb::Jsonb;
pub use numeric::Numeric;
pub use sqltype::{SqlType, TypeInfo, oid};
