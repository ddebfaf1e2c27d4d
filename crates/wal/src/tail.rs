//! What lies behind the log's end: nothing, what a crash has torn, or proof that more was durable than can be read.
//!
//! Records behind a place that is no record may be left of a flush that a crash has cut short, in which sectors reach the disk in
//! any order. But a commit says how far the log was durable when it was made: one that names more than can be read tells a
//! damaged log from a torn one.

use std::sync::Arc;

use throng_disk::Disk;
use throng_types::{Lsn, Result};

use crate::made::missing;
use crate::reader::Reader;
use crate::record::{Header, RECORD_HEADER, Record};
use crate::segment::path;

/// Bytes looked at together.
const CHUNK: usize = 4096;

/// Refuses a log that ends at `end` although more of it was durable.
///
/// # Errors
/// XX001 naming the file and the place; those of reading.
pub(crate) fn verify(disk: &Arc<dyn Disk>, size: u64, end: Lsn) -> Result<()> {
    let mut number = end.0 / size;
    let mut from = end;
    while disk.exists(&path(number, size))? {
        let start = number * size;
        let mut bytes = vec![0; size as usize];
        let read = disk
            .open(&path(number, size), false)?
            .read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        let mut at = (from.0 - start) as usize;
        while let Some(next) = header_at(&bytes, start, at) {
            let place = Lsn(start + next as u64);
            let mut reader = Reader::new(disk.clone(), size, place);
            // What cannot be read as a record proves nothing.
            if let Ok(Some(entry)) = reader.next() {
                if let Record::Commit { durable, .. } = entry.record
                    && durable > end
                {
                    return Err(missing(format!(
                        "the log's file {} is damaged at byte {}: the log ends there, but a commit at {place} says that \
                         it was on disk up to {durable}",
                        path(end.0 / size, size),
                        end.0 % size
                    )));
                }
                let after = (entry.end.0 - start) as usize;
                at = after.min(bytes.len());
            } else {
                at = next + 1;
            }
        }
        number += 1;
        from = Lsn(number * size);
    }
    Ok(())
}

/// The first place from `at` on where a record's header may be.
fn header_at(bytes: &[u8], start: u64, mut at: usize) -> Option<usize> {
    while at + RECORD_HEADER <= bytes.len() {
        // Most of a log that has just begun a segment is zeros.
        if let Some(chunk) = bytes.get(at..at + CHUNK)
            && chunk == [0; CHUNK]
        {
            at += CHUNK - RECORD_HEADER;
            continue;
        }
        let until = (at + CHUNK).min(bytes.len() + 1 - RECORD_HEADER);
        for place in at..until {
            let header = bytes[place..].first_chunk::<RECORD_HEADER>()?;
            if Header::read(header, Lsn(start + place as u64)).is_some() {
                return Some(place);
            }
        }
        at = until;
    }
    None
}
