//! COPY: rows as lines of text, as CSV, or in PostgreSQL's binary form, both ways.
//!
//! ```text
//! FROM: client or file ─► Splitter ─► record ─► fields ─► row ─► defaults, WHERE, checks ─► batch ─► heap, indexes
//! TO:   plan ─► row ─► record ─► client or file
//! ```
//! Input comes in pieces with no regard to rows. Whatever the input, memory holds one piece, one
//! record and one batch. The core is given back every millisecond, and a cancel is noticed as
//! often.

mod batch;
pub mod binary;
mod charset;
pub mod context;
mod file;
mod from;
pub mod split;
pub mod text;
mod to;

use throng_bind::command::{CopyFormat, CopyOptions};
use throng_types::error::state;
use throng_types::{Error, Result};
use throng_values::charset::check_text;

pub use file::{Sink, Source};
pub use from::Load;
pub use split::Splitter;
pub use to::Records;

/// The longest record we take: PostgreSQL's limit for a line, a gigabyte.
pub const MAX_RECORD: usize = (1 << 30) - 1;

/// One record's fields, reused from record to record. Those without escapes and quotes stay where
/// they are in the record.
#[derive(Default)]
pub struct Fields {
    fields: Vec<Field>,
    /// The other fields' bytes, one after another, escapes and quotes undone.
    undone: Vec<u8>,
    /// An escape gave a byte by its number that may not be text.
    odd: bool,
}

#[derive(Clone, Copy)]
struct Field {
    start: usize,
    end: usize,
    /// In `undone`, not in the record.
    is_undone: bool,
    kind: FieldKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Value,
    Null,
    Default,
}

impl Fields {
    pub fn clear(&mut self) {
        self.fields.clear();
        self.undone.clear();
        self.odd = false;
    }

    pub fn len(&self) -> usize {
        self.fields.len()
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether field `i` is NULL or stands for the column's default.
    pub fn kind(&self, i: usize) -> FieldKind {
        self.fields[i].kind
    }

    /// The bytes of field `i` of `record`, which was read last; none unless it is a value.
    pub fn bytes<'a>(&'a self, i: usize, record: &'a [u8]) -> &'a [u8] {
        let field = self.fields[i];
        match field.kind {
            FieldKind::Value if field.is_undone => &self.undone[field.start..field.end],
            FieldKind::Value => &record[field.start..field.end],
            _ => &[],
        }
    }

    /// As [`bytes`](Self::bytes); none if the field is null.
    pub fn value<'a>(&'a self, i: usize, record: &'a [u8]) -> Option<&'a [u8]> {
        (self.kind(i) != FieldKind::Null).then(|| self.bytes(i, record))
    }

    /// As [`bytes`](Self::bytes), of a record that is text.
    pub fn text<'a>(&'a self, i: usize, record: &'a str) -> Result<&'a str> {
        let field = self.fields[i];
        match field.is_undone {
            // Delimiters are ASCII: a field begins and ends between characters.
            false => Ok(&record[field.start..field.end]),
            true => check_text(self.bytes(i, record.as_bytes())),
        }
    }

    /// A byte given by its number.
    fn numbered(&mut self, byte: u8) -> u8 {
        self.odd |= byte == 0 || byte >= 0x80;
        byte
    }

    /// 22021 where an escape made something that is no text.
    fn check_text(&self) -> Result<()> {
        if self.odd {
            for field in self.fields.iter().filter(|field| field.is_undone) {
                check_text(&self.undone[field.start..field.end])?;
            }
        }
        Ok(())
    }

    /// A field that is so much of the record.
    #[inline]
    fn plain(&mut self, start: usize, end: usize, kind: FieldKind) {
        self.fields.push(Field {
            start,
            end,
            is_undone: false,
            kind,
        });
    }

    /// A field that is what was undone from `start` on.
    fn undone(&mut self, start: usize, kind: FieldKind) {
        if kind != FieldKind::Value {
            self.undone.truncate(start);
        }
        self.fields.push(Field {
            start,
            end: self.undone.len(),
            is_undone: true,
            kind,
        });
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
