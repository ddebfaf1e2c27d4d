//! COPY: rows as lines of text, as CSV, or in PostgreSQL's binary form, both ways.
//!
//! ```text
//! FROM: client or file ─► Splitter ─► record ─► fields ─► row ─► defaults, WHERE, checks ─► batch ─► heap, indexes
//! TO:   plan ─► row ─► record ─► client or file
//! ```
//! Input comes in pieces with no regard to rows. Whatever the input, memory holds one piece, one record and one batch. The
//! core is given back every millisecond, and a cancel is noticed as often.

mod batch;
pub mod binary;
pub mod context;
mod file;
mod from;
pub mod split;
pub mod text;
mod to;
mod turn;

use throng_sql::command::{CopyFormat, CopyOptions};
use throng_sql::io::binary::check_text;
use throng_types::error::state;
use throng_types::{Error, Result};

pub use file::{Sink, Source};
pub use from::Load;
pub use split::Splitter;
pub use to::copy_to;

/// The longest record we take: PostgreSQL's limit for a line, a gigabyte.
pub const MAX_RECORD: usize = (1 << 30) - 1;

/// One record's fields, reused from record to record.
#[derive(Default)]
pub struct Fields {
    /// All fields' bytes, one after another, escapes undone.
    bytes: Vec<u8>,
    /// Where each ends, and whether it is NULL or stands for the column's default.
    ends: Vec<(usize, FieldKind)>,
    /// An escape gave a byte by its number that may not be text.
    odd: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Value,
    Null,
    Default,
}

impl Fields {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.odd = false;
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The kind and bytes of field `i`.
    pub fn get(&self, i: usize) -> (FieldKind, &[u8]) {
        let start = if i == 0 { 0 } else { self.ends[i - 1].0 };
        let (end, kind) = self.ends[i];
        (kind, &self.bytes[start..end])
    }

    /// A byte given by its number.
    fn numbered(&mut self, byte: u8) -> u8 {
        self.odd |= byte == 0 || byte >= 0x80;
        byte
    }

    /// 22021 where an escape made something that is no text.
    fn check_text(&self) -> Result<()> {
        if self.odd {
            for i in 0..self.len() {
                check_text(self.get(i).1)?;
            }
        }
        Ok(())
    }

    fn end_field(&mut self, kind: FieldKind) {
        self.ends.push((self.bytes.len(), kind));
    }
}

/// Reads one record of text or CSV into `fields`.
pub fn parse_record(options: &CopyOptions, record: &[u8], fields: &mut Fields) -> Result<()> {
    match options.format {
        CopyFormat::Text => text::parse(options, record, fields),
        CopyFormat::Csv => text::parse_csv(options, record, fields),
        CopyFormat::Binary => Err(Error::internal("binary COPY has no lines")),
    }
}

pub(crate) fn bad_format(message: impl Into<String>) -> Error {
    Error::new(state::BAD_COPY_FILE_FORMAT, message)
}
