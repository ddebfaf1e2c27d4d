//! A standby: a recovery that goes on, with the log of another server.
//!
//! ```text
//!   primary ──bytes of the log──► append ──► flush ──► replay ──► pages
//!                                   │                    │
//!                               own segments     a checkpoint's record: a restart point
//! ```
//! What is received goes into the standby's own log as it is, at the same positions. A record is
//! redone once it is on disk here, so a page on disk is never ahead of the log, as on any server.
//!
//! A *restart point* is a checkpoint of the standby. It can only be where the primary made one: the
//! redo point is that of the primary's checkpoint, whose record has been replayed. It says what the
//! primary's control file said, of this server's files.
//!
//! A promotion is no business of this module: the standby is closed, and the directory opened by a
//! recovery that begins a timeline ([`crate::ArchiveRecovery`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_access::redo;
use throng_buffer::{Pool, PoolConfig};
use throng_disk::Disk;
use throng_types::{Error, Lsn, Result};
use throng_wal::{CheckpointRecord, Reader, Record, TimelineHistory, Wal, WalConfig};

use crate::control::{Control, StartRequirements};
use crate::recover::{self, Found, RecoveryReport, Redone};
use crate::xact::XactFiles;

/// Bytes of log after which a restart point is due however short a time that took.
const LOG_BETWEEN: u64 = 256 << 20;

/// A data directory that follows another server.
pub struct Standby {
    disk: Arc<dyn Disk>,
    pool: Arc<Pool>,
    wal: Arc<Wal>,
    control: Control,
    xact: XactFiles,
    found: Found,
    reader: Reader,
    report: RecoveryReport,
    /// The last checkpoint of the primary that was replayed, and where its record ends.
    checkpoint: Option<(CheckpointRecord, Lsn)>,
    restarted: Instant,
    /// Restart points are at least so far apart: a checkpoint of the primary in between is passed
    /// over.
    between: Duration,
}

impl Standby {
    /// Opens a directory that was copied from a primary or has followed one, and redoes what it has
    /// of the log.
    ///
    /// # Errors
    /// XX001 when a piece of it is missing or damaged; 58030 and 53100 from the disk.
    pub fn open(
        disk: Arc<dyn Disk>,
        pool: PoolConfig,
        wal: WalConfig,
        between: Duration,
    ) -> Result<Standby> {
        let Redone {
            control,
            xact,
            wal,
            pool,
            found,
            report,
            redone: _,
        } = recover::redo(&disk, pool, wal, None)?;
        let history = wal.config().history.clone();
        let size = wal.config().segment_size;
        let reader = Reader::new(disk.clone(), size, &history, report.end);
        let mut standby = Standby {
            disk,
            pool,
            wal,
            control,
            xact,
            found,
            reader,
            report,
            checkpoint: None,
            restarted: Instant::now(),
            between,
        };
        standby.remove_dropped()?;
        Ok(standby)
    }

    /// Tells the data directories of one cluster from others.
    pub fn system_identifier(&self) -> u64 {
        self.control.identifier
    }

    pub fn history(&self) -> &Arc<TimelineHistory> {
        &self.wal.config().history
    }

    /// Where more of the log goes.
    pub fn received(&self) -> Lsn {
        self.wal.inserted()
    }

    pub fn flushed(&self) -> Lsn {
        self.wal.flushed()
    }

    /// The end of the last record that was redone.
    pub fn replayed(&self) -> Lsn {
        self.reader.end()
    }

    /// When the last transaction committed that was redone, in microseconds since 1970; 0: none.
    pub fn last_commit(&self) -> u64 {
        self.report.last_commit
    }

    pub fn wal(&self) -> &Arc<Wal> {
        &self.wal
    }

    /// Takes in bytes of the log, which come at `at`.
    ///
    /// # Errors
    /// XX000 when they do not come where this log ends.
    pub fn append(&self, at: Lsn, bytes: &[u8]) -> Result<()> {
        self.wal.append(at, bytes)
    }

    /// The directory follows another timeline, which leaves the current one where this standby is.
    /// It is to be opened anew.
    ///
    /// # Errors
    /// XX000 when it does not leave there; those of the disk.
    pub fn branch(&mut self, history: TimelineHistory) -> Result<()> {
        if history.begin() != self.replayed()
            || history.at(self.control.redo) != self.history().at(self.control.redo)
        {
            return Err(Error::internal(
                "a timeline that does not begin where the standby is",
            ));
        }
        self.control.history = Arc::new(history);
        Ok(self.control.write(&*self.disk)?)
    }

    /// Makes durable what was taken in, and redoes it.
    ///
    /// # Errors
    /// XX001 where what was received is no log: opened anew, the standby has it no more, and it is
    /// to be received again.
    pub fn replay(&mut self) -> Result<()> {
        self.wal.flush_blocking(self.wal.inserted())?;
        self.reader.read_up_to(self.wal.flushed());
        while let Some(entry) = self.reader.next()? {
            self.report.records += 1;
            self.found.note(&entry.record, entry.end, &mut self.report);
            redo::apply(&self.pool, entry.end, &entry.record)?;
            match &entry.record {
                Record::Checkpoint(checkpoint) => self.checkpoint = Some((*checkpoint, entry.end)),
                Record::Commit { dropped, .. } if !dropped.is_empty() => {
                    for file in dropped {
                        self.pool.drop_file(*file)?;
                        self.found.files_made.remove(file);
                        self.found.files_gone.remove(file);
                    }
                }
                _ => {}
            }
        }
        if self.reader.is_at_damage()? {
            let at = self.replayed().to_halves();
            let message = format!("what was received at {at} is no record of the log");
            return Err(Error::corrupted(message));
        }
        self.restart_point_if_due()
    }

    /// Files whose end the log had told before this standby began.
    fn remove_dropped(&mut self) -> Result<()> {
        for file in std::mem::take(&mut self.found.files_gone) {
            self.pool.drop_file(file)?;
            self.found.files_made.remove(&file);
        }
        Ok(())
    }

    fn restart_point_if_due(&mut self) -> Result<()> {
        let Some((checkpoint, end)) = self.checkpoint else {
            return Ok(());
        };
        let log = checkpoint.redo.0.saturating_sub(self.control.redo.0);
        if self.restarted.elapsed() < self.between && log < LOG_BETWEEN {
            return Ok(());
        }
        self.checkpoint = None;
        self.restarted = Instant::now();
        self.restart_point(checkpoint, end)
    }

    /// Everything that was replayed is brought to disk; a start begins at the checkpoint's redo
    /// point from here on.
    fn restart_point(&mut self, checkpoint: CheckpointRecord, end: Lsn) -> Result<()> {
        self.pool.flush_for_checkpoint(&mut |_, _| {})?;
        let files = self.pool.files().census();
        self.pool.files().sync_all_dirty()?;
        self.pool.files().sync_names()?;

        let touched = self.found.status.first_touched();
        touched
            .into_iter()
            .for_each(|segment| self.xact.touched(segment));
        let next = self.found.next;
        let (status, _) = self.found.status.clone().finish(next.xid);
        let collected = self.xact.collect(&status, next.xid);
        let identifier = self.control.identifier;
        let xact_files = self.xact.write(&*self.disk, collected, identifier, end)?;

        let committed = &self.found.status;
        self.found
            .files_made
            .retain(|_, xid| !committed.committed(*xid));
        let made = self.found.files_made.iter();
        let control = Control {
            clean: false,
            redo: checkpoint.redo,
            next: checkpoint.next,
            made: made.map(|(file, xid)| (*xid, *file)).collect(),
            doomed: Vec::new(),
            kept: StartRequirements {
                checkpoint: end,
                xact_files,
                files,
            },
            minimum_recovery: Lsn::ZERO,
            ..self.control.clone()
        };
        control.write(&*self.disk)?;
        self.control = control;
        self.wal.recycle_before(checkpoint.redo)
    }

    /// Stops following: what was received is on disk.
    pub fn close(self) -> Result<()> {
        self.wal.shutdown()
    }
}
