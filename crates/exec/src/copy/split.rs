//! Cutting COPY's input into records.
//!
//! A record of text format ends at a line break that no backslash escapes; one of CSV at a line
//! break outside quotes. The first line break seen decides what ends lines (`\n`, `\r\n` or `\r`),
//! as PostgreSQL has it. `\.` alone on a line ends the data in text format; what follows it is not
//! looked at.

use std::ops::Range;

use memchr::memchr3;
use throng_bind::command::{CopyFormat, CopyOptions};
use throng_types::{Error, Result};

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
    /// None where it is the quote itself: then counting quotes is enough.
    escape: Option<u8>,
    buffer: Vec<u8>,
    /// Where the next record starts, and how far it has been looked at.
    start: usize,
    scanned: usize,
    quoted: bool,
    line_end: LineEnd,
    /// The number of the line that is being read, or was read last, from 1; a record's last one.
    line: u64,
    /// A record has been asked for and not been given yet.
    begun: bool,
    /// The end marker has been seen.
    ended: bool,
    /// The input is complete: what is left is the last record.
    finished: bool,
}

/// What is found where a record may end.
enum End {
    /// A line break of so many bytes.
    Break(usize),
    /// The end marker.
    Marker,
    /// Not to be said before more input is there.
    Unknown,
}

impl Splitter {
    pub fn new(options: &CopyOptions) -> Splitter {
        let csv = options.format == CopyFormat::Csv;
        let escape = (csv && options.escape != options.quote).then_some(options.escape);
        Splitter {
            csv,
            quote: options.quote,
            escape,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            quoted: false,
            line_end: LineEnd::Unknown,
            line: 0,
            begun: false,
            ended: false,
            finished: false,
        }
    }

    /// Where more input is to be put, behind what is there.
    ///
    /// # Errors
    /// 22P04 where that is as much as a line may have.
    pub fn input(&mut self) -> Result<&mut Vec<u8>> {
        if self.ended {
            // Not looked at any more.
            self.buffer.clear();
            (self.start, self.scanned) = (0, 0);
        }
        self.buffer.drain(..self.start);
        self.scanned = self.scanned.saturating_sub(self.start);
        self.start = 0;
        if self.buffer.len() > MAX_RECORD {
            return Err(bad_format("a COPY line is longer than 1 GB"));
        }
        Ok(&mut self.buffer)
    }

    /// The input is complete.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The line being read, for error contexts.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next whole record without its line break; None when more input is needed, or none is
    /// left.
    pub fn next_record(&mut self) -> Result<Option<Range<usize>>> {
        if self.ended {
            return Ok(None);
        }
        if !self.begun {
            self.begun = true;
            self.line += 1;
        }
        let (end, width) = match self.find_end()? {
            Some(end) => end,
            // A quote left open is the parser's to complain of.
            None if self.finished && !self.ended && self.start < self.buffer.len() => {
                (self.buffer.len(), 0)
            }
            None => return Ok(None),
        };
        let record = self.start..end;
        self.start = end + width;
        self.scanned = self.start;
        self.quoted = false;
        self.begun = false;
        Ok(Some(record))
    }

    /// The input is complete and no record is left.
    pub fn is_drained(&self) -> bool {
        self.finished && (self.ended || self.start == self.buffer.len())
    }

    pub fn bytes(&self, record: Range<usize>) -> &[u8] {
        &self.buffer[record]
    }

    /// Where the record's line break is and how long, once it is there.
    fn find_end(&mut self) -> Result<Option<(usize, usize)>> {
        loop {
            let rest = &self.buffer[self.scanned..];
            let third = if self.csv { self.quote } else { b'\\' };
            let ahead = match self.escape {
                Some(escape) if self.quoted => rest
                    .iter()
                    .position(|b| [b'\n', b'\r', third, escape].contains(b)),
                _ => memchr3(b'\n', b'\r', third, rest),
            };
            let Some(ahead) = ahead else {
                self.scanned = self.buffer.len();
                return Ok(None);
            };
            let at = self.scanned + ahead;
            self.scanned = at;
            let byte = self.buffer[at];
            let end = match byte {
                b'\n' | b'\r' if !self.quoted => self.line_break(at, byte)?,
                b'\\' if !self.csv => match self.buffer.get(at + 1) {
                    Some(b'.') => self.marker(at)?,
                    None if !self.finished => End::Unknown,
                    // Whatever it is, it does not end the record.
                    _ => {
                        self.scanned = (at + 2).min(self.buffer.len());
                        continue;
                    }
                },
                _ => match self.in_csv(at, byte) {
                    true => continue,
                    false => End::Unknown,
                },
            };
            return match end {
                End::Break(width) => Ok(Some((at, width))),
                End::Marker => {
                    self.ended = true;
                    Ok(None)
                }
                End::Unknown => Ok(None),
            };
        }
    }

    /// Passes a quote, an escape or a quoted line break; false where what follows must be known
    /// first.
    fn in_csv(&mut self, at: usize, byte: u8) -> bool {
        let mut passed = 1;
        if self.quoted && Some(byte) == self.escape {
            // It hides what follows.
            match self.buffer.get(at + 1) {
                None if !self.finished => return false,
                None => {}
                Some(next) => {
                    passed = 2;
                    self.line += u64::from(self.counts(*next));
                }
            }
        } else if byte == self.quote {
            self.quoted = !self.quoted;
        } else if self.quoted {
            self.line += u64::from(self.counts(byte));
        }
        self.scanned = at + passed;
        true
    }

    /// Whether a byte inside quotes begins another line.
    fn counts(&self, byte: u8) -> bool {
        byte == if self.line_end == LineEnd::Newline {
            b'\n'
        } else {
            b'\r'
        }
    }

    /// What a line break character at `at` means.
    fn line_break(&mut self, at: usize, byte: u8) -> Result<End> {
        let kind = match (byte, self.buffer.get(at + 1)) {
            (b'\n', _) => LineEnd::Newline,
            (_, Some(b'\n')) => LineEnd::ReturnNewline,
            (_, None) if !self.finished => return Ok(End::Unknown),
            _ => LineEnd::Return,
        };
        if self.line_end == LineEnd::Unknown {
            self.line_end = kind;
        }
        match (self.line_end, kind) {
            (a, b) if a == b => Ok(End::Break(if kind == LineEnd::ReturnNewline {
                2
            } else {
                1
            })),
            (LineEnd::Return, LineEnd::ReturnNewline) => Ok(End::Break(1)),
            (_, LineEnd::Newline) => Err(self.literal("newline", "\\n")),
            _ => Err(self.literal("carriage return", "\\r")),
        }
    }

    fn literal(&self, what: &str, escape: &str) -> Error {
        if self.csv {
            bad_format(format!("unquoted {what} found in data"))
                .hint(format!("Use quoted CSV field to represent {what}."))
        } else {
            bad_format(format!("literal {what} found in data"))
                .hint(format!("Use \"{escape}\" to represent {what}."))
        }
    }

    /// `\.` at `at`: the end of the data if it has a line of its own.
    fn marker(&self, at: usize) -> Result<End> {
        let not_alone = || Err(bad_format("end-of-copy marker is not alone on its line"));
        let other_style = || {
            Err(bad_format(
                "end-of-copy marker does not match previous newline style",
            ))
        };
        let mut place = at + 2;
        let crlf = self.line_end == LineEnd::ReturnNewline;
        if crlf {
            match self.buffer.get(place) {
                None if !self.finished => return Ok(End::Unknown),
                Some(b'\r') => place += 1,
                Some(b'\n') => return other_style(),
                _ => return not_alone(),
            }
        }
        let wanted = match self.line_end {
            LineEnd::Newline | LineEnd::ReturnNewline => Some(b'\n'),
            LineEnd::Return => Some(b'\r'),
            LineEnd::Unknown => None,
        };
        match self.buffer.get(place).copied() {
            None if !self.finished => Ok(End::Unknown),
            Some(byte @ (b'\n' | b'\r')) => match wanted {
                Some(wanted) if wanted != byte => other_style(),
                _ if at > self.start => not_alone(),
                _ => Ok(End::Marker),
            },
            _ => not_alone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::text::tests::options;

    /// The records of `input` with their line numbers, fed in pieces of every size; the error, if
    /// there is one, last.
    fn records(options: &CopyOptions, input: &str) -> Vec<(u64, String)> {
        let mut answers = Vec::new();
        for size in 1..=input.len() {
            let mut splitter = Splitter::new(options);
            let mut found = Vec::new();
            let mut pieces = input.as_bytes().chunks(size);
            loop {
                match splitter.next_record() {
                    Ok(Some(record)) => {
                        let text = String::from_utf8_lossy(splitter.bytes(record)).into_owned();
                        found.push((splitter.line(), text));
                    }
                    Ok(None) if splitter.finished => break,
                    Ok(None) => match pieces.next() {
                        Some(piece) => {
                            let input = splitter.input().expect("short enough");
                            input.extend_from_slice(piece);
                        }
                        None => splitter.finish(),
                    },
                    Err(e) => {
                        found.push((splitter.line(), e.message().to_owned()));
                        break;
                    }
                }
            }
            answers.push(found);
        }
        assert!(answers.windows(2).all(|w| w[0] == w[1]), "{answers:?}");
        answers.swap_remove(0)
    }

    fn lines(found: &[(u64, &str)]) -> Vec<(u64, String)> {
        found
            .iter()
            .map(|(line, text)| (*line, (*text).to_owned()))
            .collect()
    }

    #[test]
    fn text_lines() {
        let text = options(CopyFormat::Text);
        let found = records(&text, "a\tb\nc\\\nd\n\\.\nrest");
        assert_eq!(found, lines(&[(1, "a\tb"), (2, "c\\\nd")]));
        assert_eq!(records(&text, "a\r\nb\r\n"), lines(&[(1, "a"), (2, "b")]));
        assert_eq!(records(&text, "a\rb\r"), lines(&[(1, "a"), (2, "b")]));
        assert_eq!(
            records(&text, "a\n\nlast\\"),
            lines(&[(1, "a"), (2, ""), (3, "last\\")])
        );
    }

    #[test]
    fn csv_lines() {
        let csv = options(CopyFormat::Csv);
        let found = records(&csv, "a,\"x\"\nb,\"x\ny\n\"\"\",b\n\\.\nc\n");
        assert_eq!(
            found,
            lines(&[
                (1, "a,\"x\""),
                (4, "b,\"x\ny\n\"\"\",b"),
                (5, "\\."),
                (6, "c")
            ])
        );
        let escaped = CopyOptions {
            escape: b'\\',
            ..options(CopyFormat::Csv)
        };
        let found = records(&escaped, "\"a\\\"\n\"\n\"\\\\\"\n");
        assert_eq!(found, lines(&[(1, "\"a\\\"\n\""), (2, "\"\\\\\"")]));
        assert_eq!(
            records(&csv, "a\nb,\"c\n"),
            lines(&[(1, "a"), (3, "b,\"c\n")])
        );
    }

    #[test]
    fn mixed_line_ends_are_refused() {
        let text = options(CopyFormat::Text);
        let csv = options(CopyFormat::Csv);
        let found = records(&text, "a\nb\rc\n");
        assert_eq!(
            found,
            lines(&[(1, "a"), (2, "literal carriage return found in data")])
        );
        let found = records(&csv, "a\r\nb\nc");
        assert_eq!(
            found,
            lines(&[(1, "a"), (2, "unquoted newline found in data")])
        );
        let found = records(&csv, "a\rb\r\nc");
        assert_eq!(
            found,
            lines(&[(1, "a"), (2, "b"), (3, "unquoted newline found in data")])
        );
    }

    #[test]
    fn the_end_marker_has_a_line_of_its_own() {
        let text = options(CopyFormat::Text);
        let not_alone = "end-of-copy marker is not alone on its line";
        let other_style = "end-of-copy marker does not match previous newline style";
        for (input, found) in [
            ("a\n\\.", (2, not_alone)),
            ("a\n\\.x\n", (2, not_alone)),
            ("a\nb\\.\n", (2, not_alone)),
            ("a\n\\.\r\n", (2, other_style)),
            ("a\r\n\\.\n", (2, other_style)),
        ] {
            assert_eq!(
                records(&text, input),
                lines(&[(1, "a"), found]),
                "{input:?}"
            );
        }
        assert_eq!(records(&text, "a\r\n\\.\r\nb"), lines(&[(1, "a")]));
        assert_eq!(records(&text, "\\.\r\n"), lines(&[]));
    }
}
