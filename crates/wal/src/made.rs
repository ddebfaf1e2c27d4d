//! `DIR/wal/made`: up to which one segments have been made, and how far the log was durable, so
//! that what is missing is missed.
//!
//! ```text
//!   | magic u64 | identifier of the data directory u64 | number of the last segment made u64 | durable u64 | crc32c |
//! ```
//!
//! A segment is entered after its name is durable and before it is used, and taken out before it is
//! removed. So each from the redo point's up to the one entered here is there; what is missing of
//! them was taken away.
//!
//! `durable` is noted now and then, without a sync: what it says was true before it was written, so
//! an older one is as true.

use std::io;
use std::sync::Arc;

use throng_disk::{Disk, File};
use throng_sync::atomic::{AtomicU64, Ordering};
use throng_types::{Lsn, Result};

use crate::config::WalConfig;
use crate::directory::{DIR, missing, numbers, path};

const MAGIC: u64 = u64::from_le_bytes(*b"THRGMAD2");
const NAME: &str = "wal/made";
/// Written in place: less than a sector, which a disk writes whole or not at all.
const LEN: usize = 36;

pub(crate) struct Made {
    file: Arc<dyn File>,
    identifier: u64,
    /// What was written last: by one thread at a time.
    last: AtomicU64,
    durable: AtomicU64,
}

impl Made {
    /// Makes the file if there is none; its name is durable after a sync of the directory.
    pub fn open(disk: &dyn Disk, identifier: u64) -> io::Result<Made> {
        let file = disk.open(NAME, true)?;
        Ok(Made {
            file,
            identifier,
            last: AtomicU64::new(0),
            durable: AtomicU64::new(0),
        })
    }

    /// Segments up to `last` are there for good. Durable.
    pub fn enter(&self, last: u64) -> io::Result<()> {
        self.last.store(last, Ordering::Relaxed);
        self.write()?;
        self.file.sync()
    }

    /// The log is durable up to `durable`.
    pub fn note(&self, durable: Lsn) -> io::Result<()> {
        if self.durable.swap(durable.0, Ordering::Relaxed) == durable.0 {
            return Ok(());
        }
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let last = self.last.load(Ordering::Relaxed);
        let durable = self.durable.load(Ordering::Relaxed);
        let mut bytes = Vec::with_capacity(LEN);
        for number in [MAGIC, self.identifier, last, durable] {
            bytes.extend(number.to_le_bytes());
        }
        let sum = crc_fast::crc32_iscsi(&bytes);
        bytes.extend(sum.to_le_bytes());
        self.file.write_at(&bytes, 0)
    }
}

struct Entered {
    identifier: u64,
    last: u64,
    durable: Lsn,
}

fn read(disk: &dyn Disk) -> Result<Option<Entered>> {
    if !disk.exists(NAME)? {
        return Ok(None);
    }
    let mut bytes = [0; LEN];
    let n = disk.open(NAME, false)?.read_at(&mut bytes, 0)?;
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let sum = crc_fast::crc32_iscsi(&bytes[..LEN - 4]);
    if n < LEN || number(0) != MAGIC || sum.to_le_bytes() != bytes[LEN - 4..] {
        return Err(missing(format!("the file {NAME} is damaged")));
    }
    Ok(Some(Entered {
        identifier: number(8),
        last: number(16),
        durable: Lsn(number(24)),
    }))
}

/// Looks whether all segments from the one of `redo` on are there and whole. `complete`: the
/// directory is one of which each segment has been entered.
///
/// # Errors
/// XX001 naming what is missing.
pub(crate) fn verify(disk: &dyn Disk, config: &WalConfig, redo: Lsn, complete: bool) -> Result<()> {
    if !disk.exists(DIR)? {
        return Err(missing(format!("the directory {DIR} is missing")));
    }
    let size = config.segment_size;
    let there = numbers(disk, size)?;
    let entered = read(disk)?;
    match &entered {
        None if complete => return Err(missing(format!("the file {NAME} is missing"))),
        Some(Entered { identifier, .. }) if *identifier != config.identifier => {
            return Err(missing(format!(
                "the log is of data directory {identifier}, the control file of data directory {}",
                config.identifier
            )));
        }
        _ => {}
    }
    let first = redo.0 / size;
    let last = there
        .iter()
        .copied()
        .chain(entered.map(|entered| entered.last))
        .max();
    for number in first..=last.unwrap_or(first).max(first) {
        let path = path(number, size);
        match disk.len_of(&path)? {
            None => return Err(missing(format!("the log's file {path} is missing"))),
            Some(len) if len != size => {
                return Err(missing(format!(
                    "the log's file {path} has {len} bytes instead of {size}"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// How far the log was durable when that was noted last.
pub(crate) fn durable(disk: &dyn Disk) -> Result<Option<Lsn>> {
    Ok(read(disk)?.map(|entered| entered.durable))
}
