//! Writing the stream into segment files.

use crate::buffer::LogBuffer;
use crate::segment::Segments;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throng_disk::File;
use throng_observe::{Counter, Object, WaitEvent, blocking, count, stop_point_io};
use throng_types::{Lsn, Result};

/// Writes end on multiples of this where they can: so the system never has to read a block of an
/// old segment that is about to be overwritten anyway.
const BLOCK: u64 = 4096;
/// Writes up to this go out with one call, through a copy.
pub(crate) const SCRATCH: u64 = 64 << 10;

/// Writes the stream into segments. Whoever has locked it makes a round.
pub(crate) struct Writer {
    pub file: Arc<dyn File>,
    pub number: u64,
    /// The segment before, until it is synced.
    left: Option<Arc<dyn File>>,
    /// All below is written.
    pub written: u64,
    scratch: Vec<u8>,
    /// How long a sync takes of late; `MAX` before the first.
    pub sync_time: Duration,
}

impl Writer {
    /// Goes on at `start`, in the segment that the log's end lies in.
    pub fn open(segments: &Segments, start: Lsn) -> Result<Writer> {
        let number = start.0 / segments.size();
        Ok(Writer {
            file: segments.advance(number)?,
            number,
            left: None,
            written: start.0,
            scratch: Vec::new(),
            sync_time: Duration::MAX,
        })
    }

    pub fn sync(&mut self) -> Result<()> {
        let began = Instant::now();
        {
            let _wait = blocking(WaitEvent::WalSync, Object::lsn(self.written));
            stop_point_io!("wal.sync")?;
            self.sync_left()?;
            self.file.sync()?;
        }
        count(Counter::WalSync, 1);
        let took = began.elapsed();
        self.sync_time = match self.sync_time {
            Duration::MAX => took,
            before => (before * 7 + took) / 8,
        };
        Ok(())
    }

    /// Writes `written..to`, and zeros up to the end of the last block: the next bytes to come go
    /// there.
    pub fn write(&mut self, buffer: &LogBuffer, segments: &Segments, to: u64) -> Result<()> {
        let from = self.written;
        let direct = if to - from > SCRATCH {
            to / BLOCK * BLOCK
        } else {
            from
        };
        let mut at = from;
        // SAFETY: `to` is from `copied_to`, `from` what `free_to` was last told (or the start), and
        // who has the writer is the only one to call any of the three.
        unsafe {
            buffer.read(from, direct, |piece| {
                self.put(segments, at, piece)?;
                at += piece.len() as u64;
                Ok::<(), throng_types::Error>(())
            })?;
        }
        let mut tail = std::mem::take(&mut self.scratch);
        tail.clear();
        // SAFETY: as above.
        let copy = unsafe {
            buffer.read(direct, to, |piece| {
                tail.extend_from_slice(piece);
                Ok::<(), std::convert::Infallible>(())
            })
        };
        let Ok(()) = copy;
        tail.resize((to.next_multiple_of(BLOCK) - direct) as usize, 0);
        self.put(segments, direct, &tail)?;
        self.scratch = tail;
        self.written = to;
        Ok(())
    }

    fn sync_left(&mut self) -> Result<()> {
        match self.left.take() {
            Some(file) => Ok(file.sync()?),
            None => Ok(()),
        }
    }

    /// Writes bytes of the stream to the segments they belong to. A segment that is left is synced
    /// when the next one is left, or by the round that comes before: so most of it is on the disk
    /// by then, and a round has two files to sync at most.
    fn put(&mut self, segments: &Segments, mut at: u64, mut bytes: &[u8]) -> Result<()> {
        let size = segments.size();
        while !bytes.is_empty() {
            let number = at / size;
            if number != self.number {
                self.sync_left()?;
                self.file.start_writeback();
                self.left = Some(std::mem::replace(&mut self.file, segments.advance(number)?));
                self.number = number;
            }
            let len = bytes.len().min((size - at % size) as usize);
            self.file.write_at(&bytes[..len], at % size)?;
            at += len as u64;
            bytes = &bytes[len..];
        }
        Ok(())
    }
}
