//! Reading the log back: record after record, until the first bytes that are none.

use crate::directory;
use crate::record::{Header, RECORD_HEADER, Record};
use crate::timeline::TimelineHistory;
use std::io;
use std::sync::Arc;
use throng_disk::{Disk, File};
use throng_observe::{Object, WaitEvent, blocking};
use throng_types::{Error, Lsn, Result};

/// Bytes read with one call.
const CHUNK: usize = 256 << 10;

/// Reads records from segment files, over their borders.
///
/// Stops for good at the first position where no record starts: there the log ended when the
/// machine or the server died, and there it goes on.
pub struct Reader {
    disk: Arc<dyn Disk>,
    size: u64,
    history: Arc<TimelineHistory>,
    /// The segment being read.
    file: Option<(u64, Arc<dyn File>)>,
    /// Bytes of the stream from `start` on.
    bytes: Vec<u8>,
    start: u64,
    /// Where the next record would start.
    at: u64,
    /// Nothing from here on is looked at.
    limit: u64,
}

/// A record and its place: it takes the bytes `start..end` of the stream.
#[derive(Debug)]
pub struct Entry<'a> {
    pub start: Lsn,
    pub end: Lsn,
    pub record: Record<'a>,
}

impl Reader {
    /// Reads from `from`, where a record must start (or the log end).
    pub fn new(
        disk: Arc<dyn Disk>,
        segment_size: u64,
        history: &Arc<TimelineHistory>,
        from: Lsn,
    ) -> Reader {
        Reader {
            disk,
            size: segment_size,
            history: history.clone(),
            file: None,
            bytes: Vec::new(),
            start: from.0,
            at: from.0,
            limit: u64::MAX,
        }
    }

    /// Looks at nothing from `limit` on, of a log that is being written: where the next record is
    /// not whole before it, [`next`](Self::next) answers `None` until it is raised.
    pub fn read_up_to(&mut self, limit: Lsn) {
        self.limit = limit.0;
    }

    /// Reads everything that the segments before `until` still have, and what follows: from the
    /// first record of the oldest segment that leads there without a gap. `until` where there is no
    /// older one.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn oldest(
        disk: Arc<dyn Disk>,
        segment_size: u64,
        history: &Arc<TimelineHistory>,
        until: Lsn,
    ) -> Result<Reader> {
        let mut first = until.0 / segment_size;
        while first > 0 && disk.exists(&directory::path(first - 1, segment_size))? {
            first -= 1;
        }
        for number in first..until.0 / segment_size {
            if let Some(start) = first_record(&disk, number, segment_size, history)? {
                return Ok(Reader::new(disk, segment_size, history, start));
            }
        }
        // Within the segment of `until` records begin at its start, or in the midst of it.
        let start = first_record(&disk, until.0 / segment_size, segment_size, history)?;
        Ok(Reader::new(
            disk,
            segment_size,
            history,
            start.map_or(until, |start| start.min(until)),
        ))
    }

    /// The end of the last record returned; when [`next`](Self::next) has answered `None`, the
    /// log's end.
    pub fn end(&self) -> Lsn {
        Lsn(self.at)
    }

    /// The next record; `None` where the log ends.
    ///
    /// # Errors
    /// When a file cannot be read, or a whole record says nothing known (a newer server wrote it).
    #[expect(
        clippy::should_implement_trait,
        reason = "lends from the reader's buffer, which an Iterator cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let Some(header) = self.bytes_at_end::<RECORD_HEADER>()? else {
            return Ok(None);
        };
        let Some(header) = Header::read(&header, Lsn(self.at)) else {
            return Ok(None);
        };
        if !self.fill(header.len)? {
            return Ok(None);
        }
        let offset = (self.at - self.start) as usize;
        let body = &self.bytes[offset + RECORD_HEADER..offset + header.len];
        if !header.matches(body, self.history.at(Lsn(self.at))) {
            return Ok(None);
        }
        let start = Lsn(self.at);
        let record = Record::decode(body).ok_or_else(|| {
            Error::corrupted(format!("the log record at {start} is of no known form"))
        })?;
        self.at += header.len as u64;
        Ok(Some(Entry {
            start,
            end: Lsn(self.at),
            record,
        }))
    }

    /// Whether what stands where the next record would is no record, whatever may still come. To be
    /// asked where [`next`](Self::next) has answered `None`.
    pub fn is_at_damage(&mut self) -> io::Result<bool> {
        let Some(header) = self.bytes_at_end::<RECORD_HEADER>()? else {
            return Ok(false);
        };
        match Header::read(&header, Lsn(self.at)) {
            // All of it is there, and it was not taken.
            Some(header) => self.fill(header.len),
            None => Ok(true),
        }
    }

    fn bytes_at_end<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        if !self.fill(N)? {
            return Ok(None);
        }
        let offset = (self.at - self.start) as usize;
        Ok(self.bytes[offset..].first_chunk().copied())
    }

    /// Has `len` bytes from `at` on in the buffer; false when the files have not that many.
    fn fill(&mut self, len: usize) -> io::Result<bool> {
        let mut have = self.bytes.len() - (self.at - self.start) as usize;
        if have >= len {
            return Ok(true);
        }
        self.bytes.drain(..(self.at - self.start) as usize);
        self.start = self.at;
        while have < len {
            let got = self.read_on()?;
            if got == 0 {
                return Ok(false);
            }
            have += got;
        }
        Ok(true)
    }

    /// Appends what follows the buffer, at most to the segment's end. Returns how much; 0 where the
    /// files end.
    fn read_on(&mut self) -> io::Result<usize> {
        let at = self.start + self.bytes.len() as u64;
        if at >= self.limit {
            return Ok(0);
        }
        let (number, offset) = (at / self.size, at % self.size);
        if self.file.as_ref().is_none_or(|(open, _)| *open != number) {
            let path = directory::path(number, self.size);
            if !self.disk.exists(&path)? {
                return Ok(0);
            }
            self.file = Some((number, self.disk.open(&path, false)?));
        }
        let Some((_, file)) = &self.file else {
            return Ok(0);
        };
        let had = self.bytes.len();
        let want = (CHUNK as u64).min(self.size - offset).min(self.limit - at) as usize;
        self.bytes.resize(had + want, 0);
        let read = {
            let _wait = blocking(WaitEvent::WalRead, Object::lsn(at));
            file.read_at(&mut self.bytes[had..], offset)
        };
        self.bytes.truncate(had + *read.as_ref().unwrap_or(&0));
        read
    }
}

/// Where the first whole record of a segment begins.
fn first_record(
    disk: &Arc<dyn Disk>,
    number: u64,
    size: u64,
    history: &Arc<TimelineHistory>,
) -> Result<Option<Lsn>> {
    let path = directory::path(number, size);
    if !disk.exists(&path)? {
        return Ok(None);
    }
    let mut bytes = vec![0; size as usize];
    let read = disk.open(&path, false)?.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    let start = number * size;
    for (offset, header) in bytes.windows(RECORD_HEADER).enumerate() {
        let at = Lsn(start + offset as u64);
        let header = header.try_into().expect("a window of a header");
        if Header::read(header, at).is_some()
            && Reader::new(disk.clone(), size, history, at)
                .next()?
                .is_some()
        {
            return Ok(Some(at));
        }
    }
    Ok(None)
}
