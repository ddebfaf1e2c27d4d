//! COPY's binary format.
//!
//! ```text
//! PGCOPY\n\377\r\n\0 | flags u32 | extension length i32 | extension
//! row:  fields i16 | { length i32, -1 for NULL | bytes } …        end: -1 i16, or the end of the input
//! ```

use std::ops::Range;

use throng_types::{Error, Result};

use super::{MAX_RECORD, bad_format};

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// Bit 16: the file has oids, a thing of the past.
const HAS_OIDS: u32 = 1 << 16;
/// Bits whose meaning a reader must know.
const CRITICAL: u32 = 0xffff_0000;

/// Appends what comes before the first row.
pub fn write_header(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// Appends what comes after the last row.
pub fn write_trailer(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i16).to_be_bytes());
}

/// Gathers input and gives whole rows.
#[derive(Default)]
pub struct BinaryReader {
    buffer: Vec<u8>,
    start: usize,
    header_read: bool,
    /// The number of the row that is being read, or was read last, from 1.
    row: u64,
    /// A row has been asked for and not been given yet.
    begun: bool,
    /// The trailer has been seen.
    ended: bool,
    finished: bool,
}

/// One row: where its fields are in the reader's buffer.
pub type FieldRanges = Vec<Option<Range<usize>>>;

/// What is wrong with the input, and with which field of the row if it is one.
pub struct BadRow {
    pub field: Option<usize>,
    pub error: Error,
}

impl From<Error> for BadRow {
    fn from(error: Error) -> BadRow {
        BadRow { field: None, error }
    }
}

impl BinaryReader {
    /// Where more input is to be put, behind what is there.
    pub fn input(&mut self) -> Result<&mut Vec<u8>> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.len() > MAX_RECORD {
            return Err(bad_format("a COPY row is longer than 1 GB"));
        }
        Ok(&mut self.buffer)
    }

    /// The input is complete: a row that is cut off is an error from here on.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The row being read, for error contexts.
    pub fn row(&self) -> u64 {
        self.row
    }

    pub fn bytes(&self, field: Range<usize>) -> &[u8] {
        &self.buffer[field]
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let bytes = self.buffer.get(at..at + 4)?;
        Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads the file's header; false when more input is needed.
    pub fn header(&mut self) -> Result<bool> {
        if self.header_read {
            return Ok(true);
        }
        let missing = |what: &str| match self.finished {
            true => Err(bad_format(format!("invalid COPY file header ({what})"))),
            false => Ok(false),
        };
        let at = SIGNATURE.len();
        let known = self.buffer.len().min(at);
        if self.buffer[..known] != SIGNATURE[..known] || (self.finished && known < at) {
            return Err(bad_format("COPY file signature not recognized"));
        }
        let Some(flags) = self.u32_at(at) else {
            return missing("missing flags");
        };
        if flags & HAS_OIDS != 0 {
            return Err(bad_format("invalid COPY file header (WITH OIDS)"));
        }
        if flags & CRITICAL != 0 {
            return Err(bad_format(
                "unrecognized critical flags in COPY file header",
            ));
        }
        let Some(extension) = self.u32_at(at + 4) else {
            return missing("missing length");
        };
        if (extension as i32) < 0 {
            return Err(bad_format("invalid COPY file header (missing length)"));
        }
        let end = at + 8 + extension as usize;
        if self.buffer.len() < end {
            return missing("wrong length");
        }
        self.start = end;
        self.header_read = true;
        Ok(true)
    }

    /// Fills `fields` with the next row, which is to have `expected` of them; false when more input
    /// is needed, or the data has ended.
    pub fn next_row(&mut self, expected: usize, fields: &mut FieldRanges) -> Result<bool, BadRow> {
        if self.ended {
            return self.nothing_follows();
        }
        if !self.begun {
            self.begun = true;
            self.row += 1;
        }
        let Some(count) = self.buffer.get(self.start..self.start + 2) else {
            return Ok(false);
        };
        let count = i16::from_be_bytes([count[0], count[1]]);
        let mut at = self.start + 2;
        if count == -1 {
            self.start = at;
            self.ended = true;
            return self.nothing_follows();
        }
        if usize::try_from(count) != Ok(expected) {
            let message = format!("row field count is {count}, expected {expected}");
            return Err(bad_format(message).into());
        }
        fields.clear();
        for field in 0..expected {
            let bad = |message| BadRow {
                field: Some(field),
                error: bad_format(message),
            };
            let cut_off = || match self.finished {
                true => Err(bad("unexpected EOF in COPY data")),
                false => Ok(false),
            };
            let Some(length) = self.u32_at(at) else {
                return cut_off();
            };
            at += 4;
            match length as i32 {
                -1 => fields.push(None),
                n if n >= 0 => {
                    let end = at + n as usize;
                    if end > self.buffer.len() {
                        return cut_off();
                    }
                    fields.push(Some(at..end));
                    at = end;
                }
                _ => return Err(bad("invalid field size")),
            }
        }
        self.start = at;
        self.begun = false;
        Ok(true)
    }

    /// After the trailer there may be nothing.
    fn nothing_follows(&self) -> Result<bool, BadRow> {
        if self.start < self.buffer.len() {
            return Err(bad_format("received copy data after EOF marker").into());
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Vec<u8> {
        let mut file = Vec::new();
        write_header(&mut file);
        file
    }

    #[test]
    fn rows_come_whole_from_pieces_of_any_size() {
        let mut file = header();
        for n in 0..3i32 {
            file.extend_from_slice(&2i16.to_be_bytes());
            file.extend_from_slice(&4i32.to_be_bytes());
            file.extend_from_slice(&n.to_be_bytes());
            file.extend_from_slice(&(-1i32).to_be_bytes());
        }
        write_trailer(&mut file);
        for size in 1..file.len() {
            let mut reader = BinaryReader::default();
            let mut fields = Vec::new();
            let mut rows = Vec::new();
            for piece in file.chunks(size) {
                reader.input().expect("short").extend_from_slice(piece);
                while reader.header().expect("a header")
                    && reader
                        .next_row(2, &mut fields)
                        .map_err(|e| e.error)
                        .expect("well formed")
                {
                    let value = fields[0].clone().map(|r| reader.bytes(r).to_vec());
                    assert!(fields[1].is_none());
                    rows.push((reader.row(), value.expect("not NULL")));
                }
            }
            assert_eq!(
                rows,
                [
                    (1, vec![0, 0, 0, 0]),
                    (2, vec![0, 0, 0, 1]),
                    (3, vec![0, 0, 0, 2])
                ]
            );
        }
    }

    /// The first error in a file and the field it is about.
    fn complaint(file: &[u8]) -> Option<(Option<usize>, String)> {
        let mut reader = BinaryReader::default();
        reader.input().expect("short").extend_from_slice(file);
        reader.finish();
        if let Err(e) = reader.header() {
            return Some((None, e.message().to_owned()));
        }
        loop {
            match reader.next_row(1, &mut Vec::new()) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => return Some((e.field, e.error.message().to_owned())),
            }
        }
    }

    #[test]
    fn headers_are_checked() {
        for (file, message) in [
            (&b""[..], "COPY file signature not recognized"),
            (b"PGCOPX\n\xff\r\n\0", "COPY file signature not recognized"),
            (
                b"PGCOPY\n\xff\r\n\0\0\0\0",
                "invalid COPY file header (missing flags)",
            ),
            (
                b"PGCOPY\n\xff\r\n\0\0\x01\0\0",
                "invalid COPY file header (WITH OIDS)",
            ),
            (
                b"PGCOPY\n\xff\r\n\0\0\x02\0\0",
                "unrecognized critical flags in COPY file header",
            ),
            (
                b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0",
                "invalid COPY file header (missing length)",
            ),
            (
                b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\x05ab",
                "invalid COPY file header (wrong length)",
            ),
        ] {
            assert_eq!(
                complaint(file),
                Some((None, message.to_owned())),
                "{file:?}"
            );
        }
    }

    #[test]
    fn rows_are_checked() {
        let with = |rest: &[u8]| [&header(), rest].concat();
        let cut_off = "unexpected EOF in COPY data";
        for (rest, field, message) in [
            (
                &b"\0\x02\0\0\0\x01a"[..],
                None,
                "row field count is 2, expected 1",
            ),
            (b"\0\x01\0\0", Some(0), cut_off),
            (b"\0\x01\0\0\0\x05ab", Some(0), cut_off),
            (b"\0\x01\xff\xff\xff\xfe", Some(0), "invalid field size"),
            (b"\xff\xffmore", None, "received copy data after EOF marker"),
        ] {
            assert_eq!(
                complaint(&with(rest)),
                Some((field, message.to_owned())),
                "{rest:?}"
            );
        }
        for rest in [&b""[..], b"\0", b"\xff\xff", b"\0\x01\xff\xff\xff\xff"] {
            assert_eq!(complaint(&with(rest)), None, "{rest:?}");
        }
    }
}
