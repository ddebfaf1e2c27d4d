//! COPY's binary format.
//!
//! ```text
//! PGCOPY\n\377\r\n\0 | flags u32 | extension length u32 | extension
//! row:  fields i16 | { length i32, -1 for NULL | bytes } …        end: -1 i16
//! ```

use throng_types::Result;

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
    ended: bool,
    finished: bool,
}

/// One row: where its fields are in the reader's buffer.
pub type FieldRanges = Vec<Option<std::ops::Range<usize>>>;

impl BinaryReader {
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.len() + bytes.len() > MAX_RECORD {
            return Err(bad_format("a COPY row is longer than 1 GB"));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The input is complete: a row that is cut off is an error from here on.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    pub fn bytes(&self, field: std::ops::Range<usize>) -> &[u8] {
        &self.buffer[field]
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let bytes = self.buffer.get(at..at + 4)?;
        Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Fills `fields` with the next row; false when more input is needed, or the data has ended.
    pub fn next_row(&mut self, fields: &mut FieldRanges) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if !self.header_read && !self.header()? {
            return self.cut_off("COPY file signature not recognized");
        }
        let Some(count) = self.buffer.get(self.start..self.start + 2) else {
            return self.cut_off("unexpected EOF in COPY data");
        };
        let count = i16::from_be_bytes([count[0], count[1]]);
        if count == -1 {
            self.ended = true;
            return Ok(false);
        }
        let mut at = self.start + 2;
        fields.clear();
        for _ in 0..count.max(0) {
            let Some(length) = self.u32_at(at) else {
                return self.cut_off("unexpected EOF in COPY data");
            };
            at += 4;
            match length as i32 {
                -1 => fields.push(None),
                n if n >= 0 => {
                    let end = at + n as usize;
                    if end > self.buffer.len() {
                        return self.cut_off("unexpected EOF in COPY data");
                    }
                    fields.push(Some(at..end));
                    at = end;
                }
                _ => return Err(bad_format("invalid field size")),
            }
        }
        self.start = at;
        Ok(true)
    }

    /// More input is needed; if there is none to come, that is an error.
    fn cut_off(&self, message: &str) -> Result<bool> {
        if self.finished { Err(bad_format(message)) } else { Ok(false) }
    }

    fn header(&mut self) -> Result<bool> {
        let known = self.buffer.len().min(SIGNATURE.len());
        if self.buffer[..known] != SIGNATURE[..known] {
            return Err(bad_format("COPY file signature not recognized"));
        }
        let at = SIGNATURE.len();
        let (Some(flags), Some(extension)) = (self.u32_at(at), self.u32_at(at + 4)) else {
            return Ok(false);
        };
        if flags & HAS_OIDS != 0 {
            return Err(bad_format("invalid COPY file header (WITH OIDS)"));
        }
        if flags & CRITICAL != 0 {
            return Err(bad_format("unrecognized critical flags in COPY file header"));
        }
        let end = at + 8 + extension as usize;
        if self.buffer.len() < end {
            return Ok(false);
        }
        self.start = end;
        self.header_read = true;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_whole_from_pieces_of_any_size() {
        let mut file = Vec::new();
        write_header(&mut file);
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
                reader.push(piece).expect("short");
                while reader.next_row(&mut fields).expect("well formed") {
                    assert_eq!(fields.len(), 2);
                    let value = fields[0].clone().map(|r| reader.bytes(r).to_vec());
                    assert!(fields[1].is_none());
                    rows.push(value.expect("not NULL"));
                }
            }
            assert_eq!(rows, [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2]]);
        }
    }

    #[test]
    fn cut_off_and_foreign_files_are_errors() {
        let mut reader = BinaryReader::default();
        reader.push(b"PGCOPX").expect("short");
        assert!(reader.next_row(&mut Vec::new()).is_err());
        let mut reader = BinaryReader::default();
        let mut file = Vec::new();
        write_header(&mut file);
        file.extend_from_slice(&1i16.to_be_bytes());
        reader.push(&file).expect("short");
        assert!(!reader.next_row(&mut Vec::new()).expect("may go on"));
        reader.finish();
        assert!(reader.next_row(&mut Vec::new()).is_err());
    }
}
