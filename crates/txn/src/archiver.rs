//! Hands the log's whole segments to an archive, one after the other, and keeps them until it has
//! them.
//!
//! `DIR/archived` says how far that has come:
//!
//! ```text
//!   | magic u64 | timeline u32, whose history is archived | from u64: not archived yet | crc32c |
//! ```
//! It is written after a segment is archived, so a crash between the two archives one twice: the
//! same bytes under the same name.

use std::time::{Duration, Instant};

use throng_disk::Disk;
use throng_observe::{Object, WaitEvent, blocking, waiting};
use throng_sync::Parker;
use throng_sync::atomic::{AtomicBool, Ordering};
use throng_sync::lock::Mutex;
use throng_types::{Error, Lsn, Result};
use throng_wal::{TimelineHistory, TimelineId, Wal, WalHold, segment_name, segment_path};

use crate::control::{Fields, read_file, replace_file, seal, unseal};
use crate::timer::now_micros;

const MAGIC: u64 = u64::from_le_bytes(*b"THRGARC1");
const NAME: &str = "archived";
const TEMPORARY: &str = "archived.new";
/// How often it is looked whether a segment is full.
const LOOK: Duration = Duration::from_millis(250);
/// A segment with no more in it than a checkpoint's record is not filled: else an idle server would
/// archive one after the other.
const AS_GOOD_AS_EMPTY: u64 = 512;
/// After a failure the archive is tried again so soon, and twice as long after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Where segments go.
pub trait Archive: Send + Sync {
    /// Stores the file at `path` of the data directory under `name`.
    ///
    /// # Errors
    /// What became of it: it is tried again.
    fn store(&self, path: &str, name: &str) -> Result<(), String>;
    /// `archive_timeout`: a segment that is not full is filled so long after its first record.
    fn timeout(&self) -> Option<Duration>;
}

/// What becomes of the log's whole segments (`archive_mode`).
#[derive(Default)]
pub enum Archiving {
    /// No server's: what is to be archived stays so.
    #[default]
    Untouched,
    /// Nothing is archived, and what comes meanwhile will not be asked for later.
    Off,
    To(Box<dyn Archive>),
}

/// `pg_stat_archiver`.
#[derive(Clone, Debug, Default)]
pub struct ArchiverStatus {
    pub archived: u64,
    pub last_archived: Option<ArchivedFile>,
    pub failed: u64,
    pub last_failed: Option<ArchivedFile>,
}

#[derive(Clone, Debug)]
pub struct ArchivedFile {
    pub name: String,
    /// In microseconds since 1970.
    pub time: i64,
}

pub(crate) struct Archiver {
    archive: Box<dyn Archive>,
    hold: WalHold,
    /// The timeline whose history is archived.
    timeline: Mutex<TimelineId>,
    status: Mutex<ArchiverStatus>,
    parker: Parker,
    stop: AtomicBool,
}

/// A file to be archived, and what is true when it is.
struct Piece {
    path: String,
    name: String,
    timeline: TimelineId,
    until: Lsn,
}

impl Archiver {
    /// Goes on where it was, or begins with the current segment.
    pub(crate) fn open(disk: &dyn Disk, wal: &Wal, archive: Box<dyn Archive>) -> Result<Archiver> {
        let size = wal.config().segment_size;
        let current = Lsn(wal.inserted().0 / size * size);
        let (timeline, from) = read(disk)?.unwrap_or((TimelineId::FIRST, current));
        // A directory that was copied has no history of its timeline yet.
        let history = &wal.config().history;
        if history.current() > TimelineId::FIRST {
            write_history(disk, history)?;
        }
        Ok(Archiver {
            archive,
            hold: wal.hold(from.min(current)),
            timeline: Mutex::new(timeline),
            status: Mutex::default(),
            parker: Parker::new(),
            stop: AtomicBool::new(false),
        })
    }

    pub(crate) fn status(&self) -> ArchiverStatus {
        self.status.lock().clone()
    }

    /// The thread's life. Errors of the disk go to `report`.
    pub(crate) fn run(&self, disk: &dyn Disk, wal: &Wal, report: &dyn Fn(&Error)) {
        let mut pause = FIRST_PAUSE;
        // When the current segment was first seen with something in it, and which that was.
        let mut begun: Option<(u64, Instant)> = None;
        while !self.stop.load(Ordering::Acquire) {
            let Some(piece) = self.next(wal) else {
                pause = FIRST_PAUSE;
                self.fill_in_time(wal, &mut begun);
                let _idle = waiting(WaitEvent::ArchiverIdle, Object::NONE);
                self.parker.park_timeout(LOOK);
                continue;
            };
            match self.store(disk, &piece) {
                Ok(true) => pause = FIRST_PAUSE,
                Ok(false) => {
                    self.parker.park_timeout(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    report(&error);
                    self.parker.park_timeout(LONGEST_PAUSE);
                }
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.parker.unpark();
    }

    /// Archives what there is by now, until the first failure: at the end.
    pub(crate) fn finish(&self, disk: &dyn Disk, wal: &Wal) -> Result<()> {
        while let Some(piece) = self.next(wal) {
            if !self.store(disk, &piece)? {
                break;
            }
        }
        Ok(())
    }

    /// What is due: histories of timelines first, then segments.
    fn next(&self, wal: &Wal) -> Option<Piece> {
        let history = &wal.config().history;
        let from = self.hold.from();
        let archived = *self.timeline.lock();
        if archived < history.current() {
            let name = history.current().history_name();
            return Some(Piece {
                path: format!("wal/{name}"),
                name,
                timeline: history.current(),
                until: from,
            });
        }
        let size = wal.config().segment_size;
        let number = from.0 / size;
        let end = Lsn((number + 1) * size);
        (wal.flushed() >= end).then(|| Piece {
            path: segment_path(number, size),
            // It is complete only on the timeline that filled it.
            name: segment_name(history.at(Lsn(end.0 - 1)), number, size),
            timeline: archived,
            until: end,
        })
    }

    /// Whether the archive has taken it.
    fn store(&self, disk: &dyn Disk, piece: &Piece) -> Result<bool> {
        let stored = {
            let _wait = blocking(WaitEvent::ArchiveCommand, Object::lsn(piece.until.0));
            self.archive.store(&piece.path, &piece.name)
        };
        let file = ArchivedFile {
            name: piece.name.clone(),
            time: now_micros(),
        };
        if stored.is_err() {
            let mut status = self.status.lock();
            status.failed += 1;
            status.last_failed = Some(file);
            return Ok(false);
        }
        write(disk, piece.timeline, piece.until)?;
        *self.timeline.lock() = piece.timeline;
        self.hold.advance(piece.until);
        let mut status = self.status.lock();
        status.archived += 1;
        status.last_archived = Some(file);
        Ok(true)
    }

    fn fill_in_time(&self, wal: &Wal, begun: &mut Option<(u64, Instant)>) {
        let inserted = wal.inserted().0;
        let (number, within) = (
            inserted / wal.config().segment_size,
            inserted % wal.config().segment_size,
        );
        if within <= AS_GOOD_AS_EMPTY {
            *begun = None;
            return;
        }
        let since = match *begun {
            Some((segment, since)) if segment == number => since,
            _ => begun.insert((number, Instant::now())).1,
        };
        if self
            .archive
            .timeout()
            .is_some_and(|most| since.elapsed() >= most)
        {
            wal.switch_segment();
            wal.request_flush(wal.inserted());
        }
    }
}

/// Keeps what is still to be archived, for a process that archives nothing itself.
pub(crate) fn hold(disk: &dyn Disk, wal: &Wal) -> Result<Option<WalHold>> {
    Ok(read(disk)?.map(|(_, from)| wal.hold(from)))
}

/// Writes the current timeline's history beside the log, from where it is archived.
pub(crate) fn write_history(disk: &dyn Disk, history: &TimelineHistory) -> Result<()> {
    let (name, temporary) = (history.current().history_name(), "history.new");
    replace_file(disk, "wal", &name, temporary, history.to_text().as_bytes())?;
    disk.sync_dir("wal")?;
    Ok(())
}

/// Nothing is archived any more.
pub(crate) fn forget(disk: &dyn Disk) -> Result<()> {
    if disk.exists(NAME)? {
        disk.remove(NAME)?;
        disk.sync_dir("")?;
    }
    Ok(())
}

fn read(disk: &dyn Disk) -> Result<Option<(TimelineId, Lsn)>> {
    if !disk.exists(NAME)? {
        return Ok(None);
    }
    let bytes = read_file(disk, NAME)?;
    let parsed = unseal(&bytes).and_then(|rest| {
        let mut at = Fields { rest };
        (at.u64()? == MAGIC).then_some(())?;
        Some((TimelineId(at.u32()?), Lsn(at.u64()?)))
    });
    match parsed {
        Some(found) => Ok(Some(found)),
        None => Err(crate::control::missing("the file archived is damaged")),
    }
}

fn write(disk: &dyn Disk, timeline: TimelineId, until: Lsn) -> Result<()> {
    let mut bytes = Vec::with_capacity(24);
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend(timeline.0.to_le_bytes());
    bytes.extend(until.0.to_le_bytes());
    seal(&mut bytes);
    replace_file(disk, "", NAME, TEMPORARY, &bytes)?;
    disk.sync_dir("")?;
    Ok(())
}
