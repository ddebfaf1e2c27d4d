//! Cutting COPY's input into records.
//!
//! A record of text format ends at a line break that no backslash escapes; one of CSV at a line break outside quotes. The
//! first line break seen decides what ends lines (`\n`, `\r\n` or `\r`), as PostgreSQL has it; `\.` alone on a line ends the
//! data in text format.

use throng_sql::command::{CopyFormat, CopyOptions};
use throng_types::Result;

use super::{MAX_RECORD, bad_format};

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Newline,
    ReturnNewline,
    Return,
}

/// Gathers input and gives whole records.
pub struct Splitter {
    csv: bool,
    quote: u8,
    escape: u8,
    buffer: Vec<u8>,
    /// Where the next record starts, and how far it has been looked at.
    start: usize,
    scanned: usize,
    quoted: bool,
    line_end: LineEnd,
    ended: bool,
    /// The input is complete: what is left is the last record.
    finished: bool,
}

impl Splitter {
    pub fn new(options: &CopyOptions) -> Splitter {
        Splitter {
            csv: options.format == CopyFormat::Csv,
            quote: options.quote,
            escape: options.escape,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            quoted: false,
            line_end: LineEnd::Unknown,
            ended: false,
            finished: false,
        }
    }

    /// Takes more input.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.ended {
            // What follows the end marker is not looked at, as the old protocol's clients may send it.
            return Ok(());
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.len() + bytes.len() > MAX_RECORD {
            return Err(bad_format("a COPY line is longer than 1 GB"));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The input is complete.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next whole record without its line break; None when more input is needed, or none is left.
    pub fn next_record(&mut self) -> Result<Option<std::ops::Range<usize>>> {
        if self.ended {
            return Ok(None);
        }
        let end = match self.find_end()? {
            Some(end) => end,
            None if self.finished && self.start < self.buffer.len() => {
                if self.quoted {
                    return Err(bad_format("unterminated CSV quoted field"));
                }
                (self.buffer.len(), 0)
            }
            None => return Ok(None),
        };
        let (at, width) = end;
        let record = self.start..at;
        self.start = at + width;
        self.scanned = self.start;
        if &self.buffer[record.clone()] == b"\\." {
            self.ended = true;
            return Ok(None);
        }
        Ok(Some(record))
    }

    pub fn bytes(&self, record: std::ops::Range<usize>) -> &[u8] {
        &self.buffer[record]
    }

    /// Where the record's line break is and how long, once it is there.
    fn find_end(&mut self) -> Result<Option<(usize, usize)>> {
        let mut at = self.scanned;
        while let Some(&byte) = self.buffer.get(at) {
            match byte {
                b'\n' | b'\r' if !self.quoted => match self.line_break(at, byte)? {
                    Break::Here(width) => return Ok(Some((at, width))),
                    Break::Unknown => break,
                },
                b'\\' if !self.csv => {
                    if at + 1 == self.buffer.len() && !self.finished {
                        break;
                    }
                    at += 2;
                }
                // In quotes an escape hides the quote after it; where escape is the quote itself, two in a row leave
                // the state as it was, so that counting quotes is enough.
                b if self.csv && self.quoted && b == self.escape && b != self.quote => {
                    if at + 1 == self.buffer.len() && !self.finished {
                        break;
                    }
                    at += 2;
                }
                b if self.csv && b == self.quote => {
                    self.quoted = !self.quoted;
                    at += 1;
                }
                _ => at += 1,
            }
        }
        self.scanned = at.min(self.buffer.len());
        Ok(None)
    }

    /// What a line break character at `at` means.
    fn line_break(&mut self, at: usize, byte: u8) -> Result<Break> {
        let kind = match (byte, self.buffer.get(at + 1)) {
            (b'\n', _) => LineEnd::Newline,
            (_, Some(b'\n')) => LineEnd::ReturnNewline,
            (_, None) if !self.finished => return Ok(Break::Unknown),
            _ => LineEnd::Return,
        };
        if self.line_end == LineEnd::Unknown {
            self.line_end = kind;
        }
        let width = if kind == LineEnd::ReturnNewline { 2 } else { 1 };
        match (self.line_end, kind) {
            (a, b) if a == b => Ok(Break::Here(width)),
            // A carriage return in a file of plain newlines.
            (LineEnd::Newline, _) | (LineEnd::ReturnNewline, LineEnd::Return) if self.csv => {
                Err(bad_format("unquoted carriage return found in data")
                    .hint("Use quoted CSV field to represent carriage return."))
            }
            (LineEnd::Newline, _) | (LineEnd::ReturnNewline, LineEnd::Return) => {
                Err(bad_format("literal carriage return found in data")
                    .hint("Use \"\\r\" to represent carriage return."))
            }
            (LineEnd::Return, LineEnd::ReturnNewline) => Ok(Break::Here(1)),
            _ if self.csv => Err(bad_format("unquoted newline found in data")
                .hint("Use quoted CSV field to represent newline.")),
            _ => Err(bad_format("literal newline found in data")
                .hint("Use \"\\n\" to represent newline.")),
        }
    }
}

enum Break {
    Here(usize),
    /// A carriage return at the end of what is there.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::text::tests::options;

    /// The records of `input`, fed in pieces of every size.
    fn records(format: CopyFormat, input: &str) -> Vec<String> {
        let mut answers = Vec::new();
        for size in 1..=input.len() {
            let mut splitter = Splitter::new(&options(format));
            let mut found = Vec::new();
            for piece in input.as_bytes().chunks(size) {
                splitter.push(piece).expect("short enough");
                while let Some(r) = splitter.next_record().expect("well formed") {
                    found.push(String::from_utf8_lossy(splitter.bytes(r)).into_owned());
                }
            }
            splitter.finish();
            while let Some(r) = splitter.next_record().expect("well formed") {
                found.push(String::from_utf8_lossy(splitter.bytes(r)).into_owned());
            }
            answers.push(found);
        }
        assert!(answers.windows(2).all(|w| w[0] == w[1]), "{answers:?}");
        answers.swap_remove(0)
    }

    #[test]
    fn text_lines() {
        assert_eq!(records(CopyFormat::Text, "a\tb\nc\\\nd\n\\.\nrest"), ["a\tb", "c\\\nd"]);
        assert_eq!(records(CopyFormat::Text, "a\r\nb\r\n"), ["a", "b"]);
        assert_eq!(records(CopyFormat::Text, "a\n\nlast"), ["a", "", "last"]);
    }

    #[test]
    fn csv_lines() {
        assert_eq!(records(CopyFormat::Csv, "a,\"x\ny\"\"\",b\nc\n"), ["a,\"x\ny\"\"\",b", "c"]);
    }

    #[test]
    fn mixed_line_ends_are_refused() {
        let mut splitter = Splitter::new(&options(CopyFormat::Text));
        splitter.push(b"a\nb\rc\n").expect("short enough");
        assert!(splitter.next_record().is_ok());
        assert!(splitter.next_record().is_err());
    }
}
