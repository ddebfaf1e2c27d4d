//! COPY: rows as lines of text, as CSV, or in PostgreSQL's binary form, both ways.
//!
//! Input comes in pieces with no regard to rows; [`Splitter`] cuts it into records, a format turns a record into
//! fields, and the session makes a row of them. Output goes the other way, one record at a time.

pub mod binary;
pub mod split;
pub mod text;

use throng_sql::command::{CopyFormat, CopyOptions};
use throng_types::error::state;
use throng_types::{Error, Result};

pub use split::Splitter;

/// The longest record we take: PostgreSQL's limit for a line, a gigabyte.
pub const MAX_RECORD: usize = (1 << 30) - 1;

/// One record's fields, reused from record to record.
#[derive(Default)]
pub struct Fields {
    /// All fields' bytes, one after another, escapes undone.
    bytes: Vec<u8>,
    /// Where each ends, and whether it is NULL or stands for the column's default.
    ends: Vec<(usize, FieldKind)>,
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
