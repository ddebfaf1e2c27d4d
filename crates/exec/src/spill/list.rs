//! Rows in the order in which they came, found by their number.
//!
//! ```text
//!   in a file:  chunk 0 │ chunk 1 │ … │ open chunk (in memory, written when it is full)
//!   chunk       length u32, row | length u32, row | …
//! ```
//! Of a file a few chunks are in memory, those that were read last. Rows that are read one after
//! the other, in either direction, are read from the file once.

use std::sync::Arc;

use throng_types::{Datum, Result};

use super::codec::{read_row, write_row};
use super::file::{SpillFile, SpillSpace};
use crate::run::context::{RowMemory, too_much_kept};
use crate::run::hashed::row_bytes;
use crate::run::{Cx, Row};
use crate::store::Store;

/// Bytes of a chunk; a longer row has one for itself.
const CHUNK: usize = 16 << 10;
/// Chunks of a file in memory, beside the open one.
const READ: usize = 4;

/// A clone is for reading: both would write to one file.
#[derive(Clone, Default)]
pub struct RowList {
    /// All rows, where there is no file.
    rows: Vec<Row>,
    file: Option<Box<InFile>>,
}

#[derive(Clone)]
struct InFile {
    file: SpillFile,
    /// Of each chunk written its first row's number and where it lies.
    chunks: Vec<(usize, u64)>,
    count: usize,
    open: Chunk,
    /// Chunks that were read last, the last one first: for readers in several places.
    read: [Chunk; READ],
    /// The row that was read last.
    row: Row,
}

#[derive(Clone, Default)]
struct Chunk {
    /// The first row's number.
    first: usize,
    bytes: Vec<u8>,
    /// Where each row begins, its length before it.
    starts: Vec<u32>,
}

impl Chunk {
    fn holds(&self, number: usize) -> bool {
        (self.first..self.first + self.starts.len()).contains(&number)
    }

    fn push(&mut self, row: &[Datum]) -> Result<()> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write_row(row, &mut self.bytes)?;
        let len = (self.bytes.len() - start - 4) as u32;
        self.bytes[start..start + 4].copy_from_slice(&len.to_le_bytes());
        self.starts.push(start as u32);
        Ok(())
    }

    /// The length of the row that begins there.
    fn len_at(&self, start: usize) -> usize {
        let len = self.bytes[start..].first_chunk().copied();
        u32::from_le_bytes(len.unwrap_or_default()) as usize
    }

    fn get(&self, number: usize, row: &mut Row) -> Result<()> {
        let start = self.starts[number - self.first] as usize;
        read_row(&self.bytes[start + 4..start + 4 + self.len_at(start)], row)
    }

    /// Notes where the rows of what was read begin.
    fn find_rows(&mut self) {
        self.starts.clear();
        let mut start = 0;
        while start + 4 <= self.bytes.len() {
            self.starts.push(start as u32);
            start += 4 + self.len_at(start);
        }
    }
}

impl InFile {
    fn push(&mut self, row: &[Datum]) -> Result<()> {
        self.open.push(row)?;
        self.count += 1;
        if self.open.bytes.len() < CHUNK {
            return Ok(());
        }
        self.chunks.push((self.open.first, self.file.len()));
        self.file.append(&self.open.bytes)?;
        let Chunk {
            first,
            bytes,
            starts,
        } = &mut self.open;
        *first = self.count;
        starts.clear();
        bytes.clear();
        bytes.shrink_to(2 * CHUNK);
        Ok(())
    }

    fn get(&mut self, number: usize) -> Result<&[Datum]> {
        if self.open.holds(number) {
            self.open.get(number, &mut self.row)?;
            return Ok(&self.row);
        }
        match self.read.iter().position(|chunk| chunk.holds(number)) {
            Some(at) => self.read[..=at].rotate_right(1),
            None => {
                self.read.rotate_right(1);
                self.load(number)?;
            }
        }
        self.read[0].get(number, &mut self.row)?;
        Ok(&self.row)
    }

    /// Reads the chunk that has a row.
    fn load(&mut self, number: usize) -> Result<()> {
        let after = self.chunks.partition_point(|(first, _)| *first <= number);
        let (first, from) = self.chunks[after - 1];
        let to = match self.chunks.get(after) {
            Some((_, to)) => *to,
            None => self.file.len(),
        };
        let chunk = &mut self.read[0];
        chunk.first = first;
        chunk.starts.clear();
        chunk.bytes.resize((to - from) as usize, 0);
        chunk.bytes.shrink_to(2 * CHUNK);
        self.file.read(from, &mut chunk.bytes)?;
        chunk.find_rows();
        Ok(())
    }
}

impl RowList {
    pub fn of(rows: Vec<Row>) -> RowList {
        RowList { rows, file: None }
    }

    pub fn len(&self) -> usize {
        self.file.as_ref().map_or(self.rows.len(), |f| f.count)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// # Errors
    /// 58030 and 53100 from the file system.
    pub fn push(&mut self, row: Row) -> Result<()> {
        match &mut self.file {
            Some(file) => file.push(&row),
            None => {
                self.rows.push(row);
                Ok(())
            }
        }
    }

    /// Copies of the first rows, at most so many.
    ///
    /// # Errors
    /// 58030 from the file system.
    pub fn first(&mut self, most: usize) -> Result<Vec<Row>> {
        let count = most.min(self.len());
        let mut rows = Vec::with_capacity(count);
        while rows.len() < count {
            let row = self.get(rows.len())?;
            rows.push(row.unwrap_or_default().to_vec());
        }
        Ok(rows)
    }

    /// The rows, where they are in memory.
    ///
    /// # Errors
    /// 53200 where they do not fit there; `limit`: how many bytes do.
    pub fn in_memory(self, limit: usize) -> Result<Vec<Row>> {
        match self.file {
            None => Ok(self.rows),
            Some(_) => Err(too_much_kept(limit)),
        }
    }

    /// The row of this number, from 0.
    ///
    /// # Errors
    /// 58030 from the file system.
    pub fn get(&mut self, number: usize) -> Result<Option<&[Datum]>> {
        match &mut self.file {
            None => Ok(self.rows.get(number).map(Vec::as_slice)),
            Some(file) if number < file.count => file.get(number).map(Some),
            Some(_) => Ok(None),
        }
    }

    /// From here on the rows lie in a file.
    ///
    /// # Errors
    /// 58030 and 53100 from the file system.
    pub fn spill(&mut self, space: &SpillSpace) -> Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let mut file = Box::new(InFile {
            file: space.file()?,
            chunks: Vec::new(),
            count: 0,
            open: Chunk::default(),
            read: Default::default(),
            row: Row::new(),
        });
        for row in std::mem::take(&mut self.rows) {
            file.push(&row)?;
        }
        self.file = Some(file);
        Ok(())
    }

    pub fn is_spilled(&self) -> bool {
        self.file.is_some()
    }

    /// One more row of an operator, in memory while there is room there. A row that is alone stays
    /// there: it was there before, and one long value would be written and read again.
    ///
    /// # Errors
    /// 58030 and 53100 from the file system.
    pub fn keep(&mut self, row: Row, kept: &mut RowMemory, cx: &mut Cx) -> Result<()> {
        let bytes = row_bytes(&row);
        if self.file.is_none() && !kept.fits(bytes, cx) {
            if self.is_empty() {
                kept.insist(bytes, cx);
            } else {
                self.spill(&cx.env.store.spill)?;
                kept.release(cx);
            }
        }
        self.push(row)
    }

    pub fn clear(&mut self) {
        *self = RowList::default();
    }
}

/// Rows that a statement keeps for what comes after it.
pub struct RowStore {
    rows: RowList,
    bytes: usize,
    /// Bytes in memory.
    limit: usize,
    space: Arc<SpillSpace>,
}

impl RowStore {
    /// `limit`: bytes in memory.
    pub fn new(limit: usize, store: &Store) -> RowStore {
        RowStore {
            rows: RowList::default(),
            bytes: 0,
            limit,
            space: store.spill.clone(),
        }
    }

    /// One more row, in memory while there is room there, or if it is alone.
    ///
    /// # Errors
    /// 58030 and 53100 from the file system.
    pub fn keep(&mut self, row: &[Datum]) -> Result<()> {
        if !self.rows.is_spilled() {
            self.bytes += row_bytes(row);
            if self.bytes > self.limit && !self.rows.is_empty() {
                self.rows.spill(&self.space)?;
            }
        }
        self.rows.push(row.to_vec())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of this number, from 0.
    ///
    /// # Errors
    /// 58030 from the file system.
    pub fn get(&mut self, number: usize) -> Result<Option<&[Datum]>> {
        self.rows.get(number)
    }

    pub fn into_rows(self) -> RowList {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_number_wherever_they_lie() -> Result<()> {
        let directory = std::env::temp_dir().join(format!("throng-list-{}", std::process::id()));
        let space = SpillSpace::new(&directory);
        let row = |n: usize| vec![Datum::Int8(n as i64), Datum::text("x".repeat(n % 3000))];
        let mut list = RowList::default();
        for n in 0..5000 {
            if n == 100 {
                list.spill(&space)?;
            }
            list.push(row(n))?;
        }
        assert_eq!(list.len(), 5000);
        let forth = 0..5000;
        let back = (0..5000).rev();
        let across = (0..5000).map(|n| n * 1013 % 5000);
        for n in forth.chain(back).chain(across) {
            assert_eq!(list.get(n)?, Some(&row(n)[..]));
        }
        assert_eq!(list.get(5000)?, None);
        // The file has no name any more.
        assert_eq!(std::fs::read_dir(&directory)?.count(), 0);
        Ok(std::fs::remove_dir(&directory)?)
    }
}
