//! Is all there that a start needs? Asked before anything is read on, redone or written.
//!
//! A crash tears the log's end and nothing else: files that were synced are there after it, with
//! the lengths that they had. The control file names them
//! ([`StartRequirements`](crate::control::StartRequirements)), so a piece that somebody took away,
//! cut or brought from another directory is told by its name, and the start is refused:
//!
//! | piece | what gives it away |
//! | --- | --- |
//! | control | its checksum; the log and the status are of another directory |
//! | the log's files | one is missing between the redo point's and the last one made; one is too short |
//! | the log | it ends before the checkpoint's record, or a commit behind its end says that more was on disk |
//! | status | a file is missing, damaged, of another directory, older than the control file |
//! | relations | a file is missing or shorter than it was at the checkpoint |
//!
//! The pages in a relation's file have checksums of their own, which are verified when they are
//! read.

use std::collections::HashMap;
use throng_disk::Disk;
use throng_types::page::PAGE_SIZE;
use throng_types::{Error, FileId, Lsn, Result};
use throng_wal::{CheckpointRecord, Wal, WalConfig};

use crate::control::{Control, missing};

/// The directory of the relation files.
const BASE: &str = "base";
/// So many missing files are told by name.
const NAMED: usize = 5;

/// The log's files, from the redo point on.
pub(crate) fn verify_log(disk: &dyn Disk, control: &Control, wal: &WalConfig) -> Result<()> {
    let complete = control.kept.checkpoint != Lsn::ZERO;
    // A first start that was cut short has no log yet, and nothing that would need one.
    if !complete && control.redo == Wal::FIRST && files_there(disk)?.is_empty() {
        return Ok(());
    }
    Wal::verify(disk, wal, control.redo, complete)
}

/// The log reaches the checkpoint that the control file names; `checkpoint` was found in it.
pub(crate) fn verify_checkpoint(
    control: &Control,
    wal: &WalConfig,
    checkpoint: Option<(CheckpointRecord, Lsn)>,
    end: Lsn,
) -> Result<()> {
    let kept = control.kept.checkpoint;
    let expected = kept != Lsn::ZERO || control.redo > Wal::FIRST;
    let found = match checkpoint {
        Some((record, _)) if kept != Lsn::ZERO && record.identifier != control.identifier => {
            return Err(missing(format!(
                "the log is of data directory {}, the control file of data directory {}",
                record.identifier, control.identifier
            )));
        }
        Some((_, at)) => kept == Lsn::ZERO || at == kept,
        None => !expected,
    };
    if !found {
        let redo = control.redo;
        let segment = redo.0 / wal.segment_size * wal.segment_size;
        return Err(missing(format!(
            "the log ends at {end}, before the record of the checkpoint that the control file names: it is damaged in \
             wal/{segment:016X} or after it, or the control file is of another data directory"
        ))
        .detail(format!("Redo would begin at {redo}.")));
    }
    Ok(())
}

/// The relation files that the last checkpoint knew. `is_remade`: not needed.
pub(crate) fn verify_files(
    disk: &dyn Disk,
    control: &Control,
    is_remade: impl Fn(FileId) -> bool,
    truncated: &HashMap<FileId, u32>,
) -> Result<()> {
    let mut faults = Vec::new();
    for &(file, blocks) in &control.kept.files {
        if is_remade(file) {
            continue;
        }
        let blocks = truncated.get(&file).map_or(blocks, |&cut| blocks.min(cut));
        match disk.len_of(&format!("{BASE}/{file}"))? {
            None => faults.push(format!("{BASE}/{file} is missing")),
            Some(len) if len / (PAGE_SIZE as u64) < blocks.into() => faults.push(format!(
                "{BASE}/{file} has {len} bytes instead of {} or more",
                u64::from(blocks) * PAGE_SIZE as u64
            )),
            Some(_) => {}
        }
    }
    let Some(first) = faults.first() else {
        return Ok(());
    };
    let error: Error = missing(format!("the relation file {first}"));
    Err(match faults.len() {
        1 => error,
        n if n <= NAMED => error.detail(format!("Also: {}.", faults[1..].join(", "))),
        n => error.detail(format!(
            "Also: {}, and {} more.",
            faults[1..NAMED].join(", "),
            n - NAMED
        )),
    })
}

/// The relation files that there are, where nothing says which there must be.
pub(crate) fn files_there(disk: &dyn Disk) -> Result<Vec<(FileId, u32)>> {
    if !disk.exists(BASE)? {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for name in disk.list(BASE)? {
        if let Ok(number) = name.parse() {
            let len = disk.len_of(&format!("{BASE}/{name}"))?.unwrap_or(0);
            files.push((FileId(number), (len / PAGE_SIZE as u64) as u32));
        }
    }
    Ok(files)
}
