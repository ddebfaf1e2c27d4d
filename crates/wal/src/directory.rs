//! The log's directory: what its segment files are called.

use throng_disk::Disk;
use throng_types::error::{Severity, state};
use throng_types::{Error, Result};

/// The directory of all segments.
pub(crate) const DIR: &str = "wal";

pub(crate) fn path(number: u64, size: u64) -> String {
    format!("{DIR}/{:016X}", number * size)
}

/// Numbers of the segments in the directory. An error when their names are of another size.
pub(crate) fn numbers(disk: &dyn Disk, size: u64) -> Result<Vec<u64>> {
    let starts = disk.list(DIR)?.into_iter().filter(|name| name.len() == 16);
    let starts: Vec<u64> = starts
        .filter_map(|name| u64::from_str_radix(&name, 16).ok())
        .collect();
    match starts.iter().all(|start| start.is_multiple_of(size)) {
        true => Ok(starts.iter().map(|start| start / size).collect()),
        false => Err(wrong_size(size)),
    }
}

#[cold]
fn wrong_size(size: u64) -> Error {
    let message = format!("the log in \"{DIR}\" was not written with segments of {size} bytes");
    Error::new(state::CONFIG_FILE_ERROR, message).severity(Severity::Fatal)
}

/// Something of a data directory is not there, or not what it was: how that is told.
#[cold]
pub(crate) fn missing(message: String) -> Error {
    Error::corrupted(message)
        .hint("Put the file back, or restore the data directory from a backup.")
}
