//! A base backup: a copy of the files that is made while others write, and the log that makes it
//! whole.
//!
//! ```text
//!   log   ──────●────────────────────────────────●──────►
//!               R: a checkpoint's redo point     E: the end, when all files are copied
//!               │  files are copied, in whatever order, while pages are written │
//! ```
//! 1. A checkpoint; its redo point is R. From here on the log is kept.
//! 2. The files are copied. A page may be copied as of any moment, or torn between two: each page
//!    that is written after R has an image in the log after R, and redo begins with that.
//! 3. E is the log's end then: no copied page is of after it.
//! 4. The control file of the copy is that of R, with E as the [minimum recovery
//!    point](crate::control::Control::minimum_recovery): where the log does not reach E, the copy
//!    is not opened.
//!
//! So a restored backup is what a server leaves that is killed at E, or later.

use std::sync::Arc;

use throng_disk::Disk;
use throng_types::{Lsn, Result};
use throng_wal::{RecordBuilder, TimelineId, WalHold};

use crate::checkpoint::Checkpointer;
use crate::control::Control;
use crate::session::Core;
use crate::timer::now_micros;

/// A backup that has begun. The log from its start on is kept as long as this is there.
pub struct Backup {
    core: Arc<Core>,
    control: Control,
    hold: WalHold,
}

/// What a backup has when its files are copied.
pub struct BackupEnd {
    /// The log must reach this for the copy to be opened.
    pub end: Lsn,
    /// The copy's file `control`.
    pub control: Vec<u8>,
    /// Keeps the log for whoever copies it, too.
    pub hold: WalHold,
}

impl Backup {
    /// Phase 1. `fast`: the checkpoint does not take its time.
    pub(crate) async fn begin(
        core: &Arc<Core>,
        checkpointer: &Checkpointer,
        fast: bool,
    ) -> Result<Backup> {
        let hold = core.wal.hold(checkpointer.redo_point());
        checkpointer.wait(fast).await?;
        let control = checkpointer.completed();
        hold.advance(control.redo);
        Ok(Backup {
            core: core.clone(),
            control,
            hold,
        })
    }

    /// The redo point.
    pub fn start(&self) -> Lsn {
        self.control.redo
    }

    /// The end of the checkpoint's record.
    pub fn checkpoint(&self) -> Lsn {
        self.control.kept.checkpoint
    }

    pub fn timeline(&self) -> TimelineId {
        self.control.history.current()
    }

    pub fn segment_size(&self) -> u64 {
        self.control.wal_segment_size
    }

    /// Phases 3 and 4, when all files are copied. The log's last segment is full then, so that it
    /// is archived.
    pub async fn finish(self) -> Result<BackupEnd> {
        let wal = &self.core.wal;
        let end = wal.inserted();
        wal.switch_segment();
        wal.flush(wal.inserted()).await?;
        let control = Control {
            clean: false,
            minimum_recovery: end,
            ..self.control
        };
        Ok(BackupEnd {
            end,
            control: control.encode(),
            hold: self.hold,
        })
    }
}

/// The files that a backup copies besides the control file, of the data directory's storage. One
/// that is gone when it is due was dropped meanwhile, which the log tells.
pub fn files_to_copy(disk: &dyn Disk) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for (dir, is_of_it) in [("base", is_number as fn(&str) -> bool), ("xact", is_status)] {
        let mut names = disk.list(dir)?;
        names.retain(|name| is_of_it(name));
        names.sort_unstable();
        paths.extend(names.into_iter().map(|name| format!("{dir}/{name}")));
    }
    Ok(paths)
}

fn is_number(name: &str) -> bool {
    name.parse::<u32>().is_ok()
}

fn is_status(name: &str) -> bool {
    u64::from_str_radix(name, 16).is_ok()
}

/// Logs a restore point, and returns its end. It is on disk before long.
pub(crate) fn create_restore_point(core: &Core, name: &str) -> Lsn {
    let mut record = RecordBuilder::new();
    record.restore_point(name, now_micros() as u64);
    let end = core.wal.insert(&mut record);
    core.wal.request_flush(end);
    end
}
