//! Sorted runs in a file, and their merge.
//!
//! ```text
//!   run      record … in the order of the keys
//!   record   key's length u32, row's length u32, key, row
//! ```

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use throng_types::{Datum, Result};

use super::codec::write_row;
use super::file::SpillFile;

pub(super) const HEAD: usize = 8;

/// Appends a record.
pub(super) fn write_record(key: &[u8], row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(key);
    let from = out.len();
    write_row(row, out)?;
    let len = (out.len() - from) as u32;
    out[start + 4..start + HEAD].copy_from_slice(&len.to_le_bytes());
    Ok(())
}

/// The lengths of the key and the row of the record that begins there.
fn lengths(record: &[u8]) -> (usize, usize) {
    let at = |from: usize| {
        let bytes = record.get(from..).and_then(|rest| rest.first_chunk());
        u32::from_le_bytes(bytes.copied().unwrap_or_default()) as usize
    };
    (at(0), at(4))
}

/// A record's key.
pub(super) fn key_of(record: &[u8]) -> &[u8] {
    &record[HEAD..HEAD + lengths(record).0]
}

/// A record's row, of bytes that begin with the record.
pub(super) fn row_of(record: &[u8]) -> &[u8] {
    let (key, row) = lengths(record);
    &record[HEAD + key..HEAD + key + row]
}

/// The record at the start of these bytes.
pub(super) fn record_of(bytes: &[u8]) -> &[u8] {
    let (key, row) = lengths(bytes);
    &bytes[..HEAD + key + row]
}

/// A run being read.
struct Source {
    /// What has not been read of it.
    left: Range<u64>,
    buffer: Vec<u8>,
    /// Where the current record begins.
    at: usize,
}

impl Source {
    fn unread(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Has the whole record in memory that begins where the last one ended; false at the end.
    fn load(&mut self, file: &SpillFile, piece: usize) -> Result<bool> {
        let have = self.unread().len();
        let wanted = match have {
            0..HEAD => HEAD,
            _ => {
                let (key, row) = lengths(self.unread());
                HEAD + key + row
            }
        };
        if have >= wanted {
            return Ok(true);
        }
        if self.left.is_empty() {
            return Ok(false);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let more = (wanted - have).max(piece.saturating_sub(have)) as u64;
        let more = more.min(self.left.end - self.left.start);
        self.buffer.resize(have + more as usize, 0);
        file.read(self.left.start, &mut self.buffer[have..])?;
        self.left.start += more;
        // What was read of the record may say that it is longer.
        self.load(file, piece)
    }
}

/// The first row of a run that has not been given; the least key is on top of a heap, of equal ones
/// the earlier run's.
pub(super) struct Top<K, R> {
    pub key: K,
    pub run: usize,
    pub row: R,
}

impl<K: Ord, R> PartialEq for Top<K, R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<K: Ord, R> Eq for Top<K, R> {}
impl<K: Ord, R> PartialOrd for Top<K, R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<K: Ord, R> Ord for Top<K, R> {
    fn cmp(&self, other: &Self) -> Ordering {
        (&other.key, other.run).cmp(&(&self.key, self.run))
    }
}

/// Runs of one file, read as one.
pub(super) struct Merge {
    sources: Vec<Source>,
    /// The rows themselves are read from the file when they are given.
    tops: BinaryHeap<Top<Vec<u8>, ()>>,
    /// Bytes read at once.
    piece: usize,
    /// The record on top has been given.
    given: bool,
}

impl Merge {
    pub fn new(file: &SpillFile, runs: &[Range<u64>], piece: usize) -> Result<Merge> {
        let mut merge = Merge {
            sources: Vec::with_capacity(runs.len()),
            tops: BinaryHeap::with_capacity(runs.len()),
            piece,
            given: false,
        };
        for (run, left) in runs.iter().enumerate() {
            let mut source = Source {
                left: left.clone(),
                buffer: Vec::new(),
                at: 0,
            };
            if source.load(file, piece)? {
                let key = key_of(source.unread()).to_vec();
                merge.tops.push(Top { key, run, row: () });
            }
            merge.sources.push(source);
        }
        Ok(merge)
    }

    /// The next record, in the order of the keys.
    pub fn next(&mut self, file: &SpillFile) -> Result<Option<&[u8]>> {
        if self.given {
            self.pass(file)?;
        }
        self.given = true;
        let top = self.tops.peek();
        Ok(top.map(|top| record_of(self.sources[top.run].unread())))
    }

    fn pass(&mut self, file: &SpillFile) -> Result<()> {
        let Some(mut top) = self.tops.peek_mut() else {
            return Ok(());
        };
        let source = &mut self.sources[top.run];
        source.at += record_of(source.unread()).len();
        if source.load(file, self.piece)? {
            top.key.clear();
            top.key.extend_from_slice(key_of(source.unread()));
        } else {
            PeekMut::pop(top);
            source.buffer = Vec::new();
            source.at = 0;
        }
        Ok(())
    }
}
