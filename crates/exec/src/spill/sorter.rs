//! Rows in the order of their keys.
//!
//! ```text
//! add ──► in memory ──(no room)──► runs in a file, each sorted ──merged, many at a time──► few enough runs ──merged──► next
//! ```
//! Rows with equal keys come in the order in which they were added. As in Knuth's external merge
//! sort, each level of merges writes all rows once; with a fan-in of sixteen at least, a thousand
//! runs take two.

use std::ops::Range;

use throng_types::{Datum, Result};

use super::codec::read_row;
use super::file::SpillFile;
use super::merge::{Merge, key_of, record_of, row_of, write_record};
use super::runs::Runs;
use crate::run::context::RowMemory;
use crate::run::hashed::row_bytes;
use crate::run::{Cx, Row, Step};

/// Rows in memory that are written with each row that is added once there is a file, so that no
/// call takes long.
const WRITTEN_A_ROW: usize = 8;
/// Bytes written at once.
const WRITTEN: usize = 64 << 10;
/// Bytes of a run: sorting one takes some milliseconds.
const LONGEST_RUN: usize = 8 << 20;
/// Bytes of a run that are read at once.
const PIECES: Range<usize> = 8 << 10..256 << 10;
/// Runs that are merged at once.
const FAN_IN: Range<usize> = 16..256;

#[derive(Default)]
pub struct Sorter {
    /// Keys with their rows: all of them where there is no file, else those that are yet to be
    /// written.
    rows: Runs,
    kept: RowMemory,
    file: Option<Box<InFile>>,
    /// All rows have been added, and those in memory are in order.
    sorted: bool,
    /// The key of the row that was given last.
    key: Vec<u8>,
}

struct InFile {
    file: SpillFile,
    runs: Vec<Range<u64>>,
    /// Records of the next run.
    records: Vec<u8>,
    /// Where each of them begins.
    starts: Vec<usize>,
    kept: RowMemory,
    level: Option<Level>,
    merge: Option<Merge>,
}

/// A level of merges under way.
struct Level {
    to: SpillFile,
    runs: Vec<Range<u64>>,
    /// Runs of the level before that have been merged.
    done: usize,
    merge: Option<Merge>,
    begin: u64,
    buffer: Vec<u8>,
}

impl Sorter {
    /// One more row.
    ///
    /// # Errors
    /// 58030 and 53100 from the file system.
    pub fn add(&mut self, key: Box<[u8]>, row: Row, cx: &mut Cx) -> Result<()> {
        let bytes = key.len() + row_bytes(&row);
        let fits = self.file.is_none() && self.kept.fits(bytes, cx);
        if !fits && self.file.is_none() {
            self.file = Some(Box::new(InFile::new(cx.env.store.spill.file()?)));
        }
        match &mut self.file {
            Some(file) if self.rows.is_empty() => file.add(&key, &row, cx),
            _ => {
                if !fits {
                    self.kept.insist(bytes, cx);
                }
                self.rows.add((key, row));
                self.write(WRITTEN_A_ROW, cx)
            }
        }
    }

    /// Where there is a file, writes so many of the rows in memory.
    fn write(&mut self, most: usize, cx: &mut Cx) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        for (key, row) in (0..most).map_while(|_| self.rows.take()) {
            self.kept.give_back(key.len() + row_bytes(&row), cx);
            file.add(&key, &row, cx)?;
        }
        if self.rows.is_empty() {
            self.kept.release(cx);
        }
        Ok(())
    }

    /// All rows have been added. May stop, to be called again.
    pub fn finish(&mut self, cx: &mut Cx) -> Step<()> {
        while self.file.is_some() && !self.rows.is_empty() {
            self.write(WRITTEN_A_ROW, cx)?;
            cx.tick()?;
        }
        match &mut self.file {
            _ if self.sorted => {}
            None => self.rows.finish(),
            Some(file) => file.finish(cx)?,
        }
        self.sorted = true;
        Ok(())
    }

    /// The next row, after [`finish`](Self::finish); false where there is none.
    ///
    /// # Errors
    /// 58030 from the file system.
    pub fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Result<bool> {
        if let Some(file) = &mut self.file {
            return file.next(&mut self.key, row);
        }
        let Some((key, next)) = self.rows.next() else {
            return Ok(false);
        };
        self.kept.give_back(key.len() + row_bytes(&next), cx);
        self.key = key.into_vec();
        *row = next;
        Ok(true)
    }

    /// The key of the row that was given last.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.file.is_none()
    }

    pub fn clear(&mut self, cx: &mut Cx) {
        self.kept.release(cx);
        if let Some(file) = &mut self.file {
            file.kept.release(cx);
        }
        *self = Sorter::default();
    }
}

impl InFile {
    fn new(file: SpillFile) -> InFile {
        InFile {
            file,
            runs: Vec::new(),
            records: Vec::new(),
            starts: Vec::new(),
            kept: RowMemory::default(),
            level: None,
            merge: None,
        }
    }

    fn add(&mut self, key: &[u8], row: &[Datum], cx: &mut Cx) -> Result<()> {
        let start = self.records.len();
        write_record(key, row, &mut self.records)?;
        self.starts.push(start);
        let bytes = self.records.len() - start + size_of::<usize>();
        if self.records.len() < LONGEST_RUN && self.kept.fits(bytes, cx) {
            return Ok(());
        }
        self.end_run()?;
        self.kept.release(cx);
        cx.worked(u32::MAX);
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        let InFile {
            records, starts, ..
        } = self;
        starts.sort_by(|a, b| key_of(&records[*a..]).cmp(key_of(&records[*b..])));
        let from = self.file.len();
        let mut buffer = Vec::with_capacity(WRITTEN);
        for start in starts.drain(..) {
            write_out(record_of(&records[start..]), &mut buffer, &mut self.file)?;
        }
        self.file.append(&buffer)?;
        self.runs.push(from..self.file.len());
        records.clear();
        records.shrink_to(LONGEST_RUN);
        Ok(())
    }

    fn finish(&mut self, cx: &mut Cx) -> Step<()> {
        if !self.starts.is_empty() {
            self.end_run()?;
            (self.records, self.starts) = (Vec::new(), Vec::new());
            self.kept.release(cx);
        }
        let piece = (cx.limit() / FAN_IN.end).clamp(PIECES.start, PIECES.end);
        let fan_in = (cx.limit() / piece).clamp(FAN_IN.start, FAN_IN.end);
        while self.runs.len() > fan_in {
            self.merge_level(fan_in, piece, cx)?;
        }
        if self.merge.is_none() {
            self.merge = Some(Merge::new(&self.file, &self.runs, piece)?);
        }
        Ok(())
    }

    /// Merges all runs, `fan_in` at a time at most.
    fn merge_level(&mut self, fan_in: usize, piece: usize, cx: &mut Cx) -> Step<()> {
        let mut level = match self.level.take() {
            Some(level) => level,
            None => Level {
                to: cx.env.store.spill.file()?,
                runs: Vec::new(),
                done: 0,
                merge: None,
                begin: 0,
                buffer: Vec::with_capacity(WRITTEN),
            },
        };
        let merges = self.runs.len().div_ceil(fan_in);
        let ran = level.run(
            &self.file,
            &self.runs,
            self.runs.len().div_ceil(merges),
            piece,
            cx,
        );
        match ran {
            Ok(()) => (self.file, self.runs) = (level.to, level.runs),
            Err(_) => self.level = Some(level),
        }
        ran
    }

    fn next(&mut self, key: &mut Vec<u8>, row: &mut Row) -> Result<bool> {
        let Some(merge) = &mut self.merge else {
            return Ok(false);
        };
        let Some(record) = merge.next(&self.file)? else {
            return Ok(false);
        };
        key.clear();
        key.extend_from_slice(key_of(record));
        read_row(row_of(record), row)?;
        Ok(true)
    }
}

impl Level {
    fn run(
        &mut self,
        file: &SpillFile,
        runs: &[Range<u64>],
        at_once: usize,
        piece: usize,
        cx: &mut Cx,
    ) -> Step<()> {
        while self.done < runs.len() {
            let to = runs.len().min(self.done + at_once);
            let merge = match &mut self.merge {
                Some(merge) => merge,
                empty => empty.insert(Merge::new(file, &runs[self.done..to], piece)?),
            };
            while let Some(record) = merge.next(file)? {
                write_out(record, &mut self.buffer, &mut self.to)?;
                cx.tick()?;
            }
            self.to.append(&self.buffer)?;
            self.buffer.clear();
            self.runs.push(self.begin..self.to.len());
            self.begin = self.to.len();
            (self.done, self.merge) = (to, None);
        }
        Ok(())
    }
}

/// Writes a record, through a buffer.
fn write_out(record: &[u8], buffer: &mut Vec<u8>, to: &mut SpillFile) -> Result<()> {
    if buffer.len() + record.len() > WRITTEN {
        to.append(buffer)?;
        buffer.clear();
    }
    if record.len() > WRITTEN {
        return to.append(record);
    }
    buffer.extend_from_slice(record);
    Ok(())
}
