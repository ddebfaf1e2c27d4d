//! What lies behind the log's end: nothing, what a crash has torn, or proof that more was durable
//! than can be read.
//!
//! Records behind a place that is no record may be left of a flush that a crash has cut short, in
//! which sectors reach the disk in any order. But a commit says how far the log was durable when it
//! was made: one that names more than can be read tells a damaged log from a torn one.

use std::sync::Arc;

use throng_disk::Disk;
use throng_types::{Lsn, Result};

use crate::config::WalConfig;
use crate::directory::{missing, path};
use crate::made;
use crate::reader::Reader;
use crate::record::{Header, RECORD_HEADER, Record};

/// Bytes looked at together.
const CHUNK: usize = 4096;
/// So many bytes behind the end are looked at: the next record lies right behind the damage, if
/// there is one. Where more than this is gone, what was noted as durable tells.
const WINDOW: u64 = 2 << 20;

/// Refuses a log that ends at `end` although more of it was durable.
///
/// # Errors
/// XX001 naming the file and the place; those of reading.
pub(crate) fn verify(disk: &Arc<dyn Disk>, config: &WalConfig, end: Lsn) -> Result<()> {
    let size = config.segment_size;
    verify_noted(disk, size, end)?;
    let until = end.0 + WINDOW;
    let mut start = end.0;
    while start < until && disk.exists(&path(start / size, size))? {
        let after = until.min((start / size + 1) * size);
        let file = disk.open(&path(start / size, size), false)?;
        let mut bytes = vec![0; (after - start) as usize];
        let read = file.read_at(&mut bytes, start % size)?;
        bytes.truncate(read);
        let mut at = 0;
        while let Some(next) = header_at(&bytes, start, at) {
            let place = start + next as u64;
            let mut reader = Reader::new(disk.clone(), size, &config.history, Lsn(place));
            // What cannot be read as a record proves nothing.
            while let Ok(Some(entry)) = reader.next() {
                if let Record::Commit { durable, .. } = entry.record
                    && durable > end
                {
                    let at = entry.start;
                    return Err(missing(format!(
                        "{}: the log ends there, but a commit at {at} says that it was on disk up to {durable}",
                        damaged(disk, size, end)?
                    )));
                }
                if entry.end.0 >= until {
                    break;
                }
            }
            at = (reader.end().0.max(place + 1) - start) as usize;
        }
        start = after;
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

/// The files that may be damaged where the log ends at `end`: that one, and the next if a record
/// begins there that it ends in.
fn damaged(disk: &Arc<dyn Disk>, size: u64, end: Lsn) -> Result<String> {
    let (here, at) = (path(end.0 / size, size), end.0 % size);
    let mut header = [0; RECORD_HEADER];
    if disk.exists(&here)? {
        disk.open(&here, false)?.read_at(&mut header, at)?;
    }
    let next = match Header::read(&header, end) {
        Some(header) => (end.0 + header.len as u64 - 1) / size,
        // Too little room for a header: it goes on in the next file.
        None => (end.0 + RECORD_HEADER as u64 - 1) / size,
    };
    Ok(match next > end.0 / size {
        true => format!(
            "the log's file {here} is damaged at byte {at}, or {}",
            path(next, size)
        ),
        false => format!("the log's file {here} is damaged at byte {at}"),
    })
}

/// Looks whether a log that ends at `end` has all that was noted as durable.
fn verify_noted(disk: &Arc<dyn Disk>, size: u64, end: Lsn) -> Result<()> {
    match made::durable(&**disk)? {
        Some(durable) if durable > end => Err(missing(format!(
            "{}: the log ends there, but it was on disk up to {durable}",
            damaged(disk, size, end)?
        ))),
        _ => Ok(()),
    }
}
