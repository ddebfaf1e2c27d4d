//! Segments that come from elsewhere: from an archive, or with a backup.

use std::io;

use throng_disk::Disk;
use throng_types::{Lsn, Result};

use crate::config::WalConfig;
use crate::directory::{DIR, missing, path};
use crate::made::Made;

/// A segment is written under this name first.
const ARRIVING: &str = "wal/arriving";

/// Puts a whole segment where the log has it, in the place of one that may be there.
///
/// # Errors
/// XX001 when it has not a segment's length; those of the disk.
pub fn import_segment(
    disk: &dyn Disk,
    config: &WalConfig,
    number: u64,
    bytes: &[u8],
) -> Result<()> {
    let (path, size) = (path(number, config.segment_size), config.segment_size);
    if bytes.len() as u64 != size {
        let len = bytes.len();
        return Err(missing(format!(
            "the archive's file for {path} has {len} bytes instead of {size}"
        )));
    }
    disk.create_dir(DIR)?;
    let file = disk.open(ARRIVING, true)?;
    file.set_len(0)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    disk.rename(ARRIVING, &path)?;
    disk.sync_dir(DIR)?;
    Ok(())
}

pub fn has_segment(disk: &dyn Disk, config: &WalConfig, number: u64) -> io::Result<bool> {
    disk.exists(&path(number, config.segment_size))
}

/// Notes that the segments from the one of `redo` on are all there are, as a backup has them. Their
/// number.
pub fn enter_segments(disk: &dyn Disk, config: &WalConfig, redo: Lsn) -> io::Result<u64> {
    let first = redo.0 / config.segment_size;
    let mut after = first;
    while has_segment(disk, config, after)? {
        after += 1;
    }
    if after > first {
        Made::open(disk, config.identifier)?.enter(after - 1)?;
        disk.sync_dir(DIR)?;
    }
    Ok(after - first)
}

/// Reads what the log's files have of `at..at + bytes.len()`, up to a segment's end. Returns how
/// much; 0 where the segment is gone.
pub fn read_stream(
    disk: &dyn Disk,
    segment_size: u64,
    at: Lsn,
    bytes: &mut [u8],
) -> io::Result<usize> {
    let (number, offset) = (at.0 / segment_size, at.0 % segment_size);
    let path = path(number, segment_size);
    if !disk.exists(&path)? {
        return Ok(0);
    }
    let want = bytes.len().min((segment_size - offset) as usize);
    disk.open(&path, false)?.read_at(&mut bytes[..want], offset)
}

/// Where in the data directory a segment is.
pub fn segment_path(number: u64, segment_size: u64) -> String {
    path(number, segment_size)
}
