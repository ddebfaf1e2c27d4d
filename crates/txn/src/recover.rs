//! Starting: from nothing, from a clean stop, or from whatever a crash has left.
//!
//! Redo is physical and whole: every record after the redo point is done again, whoever wrote it.
//! There is no undo: what a transaction without a commit record wrote is never seen, because its
//! status is aborted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use throng_access::redo;
use throng_buffer::{Pool, PoolConfig};
use throng_disk::{Disk, RelFiles};
use throng_observe::{Object, WaitEvent, blocking};
use throng_types::{Error, FileId, Lsn, Oid, Result, Xid};
use throng_wal::{CheckpointRecord, NextIds, Reader, Record, Wal, WalConfig};

use crate::control::{Control, StartRequirements, missing};
use crate::pieces;
use crate::session::{Core, TxnConfig};
use crate::status::StatusBuilder;
use crate::xact::XactFiles;

/// What a start found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The data directory was empty.
    pub first_start: bool,
    /// The last server had not stopped cleanly.
    pub crashed: bool,
    pub redo: Lsn,
    /// Where the log ended.
    pub end: Lsn,
    pub records: u64,
    pub commits: u64,
    /// Files of transactions that did not commit, or whose removal had been committed.
    pub files_removed: u64,
    pub elapsed: Duration,
}

pub(crate) struct Recovered {
    pub(crate) core: Core,
    pub(crate) control: Control,
    pub(crate) xact: XactFiles,
    pub(crate) report: RecoveryReport,
    /// Something was redone: a checkpoint is due before anybody comes.
    pub(crate) redone: bool,
}

/// Opens the data directory.
pub(crate) fn run(
    disk: &Arc<dyn Disk>,
    pool: PoolConfig,
    wal: WalConfig,
    config: TxnConfig,
) -> Result<Recovered> {
    let began = Instant::now();
    // 1. The control file says where to begin.
    let found = Control::read(&**disk)?;
    let first_start = found.is_none();
    let control = match found {
        Some(control) => control,
        None => first_control(&**disk, wal.segment_size)?,
    };
    let wal = WalConfig {
        segment_size: control.wal_segment_size,
        identifier: control.identifier,
        ..wal
    };
    let mut report = RecoveryReport {
        first_start,
        crashed: !control.clean,
        redo: control.redo,
        ..RecoveryReport::default()
    };

    // 2. How transactions stood at the last checkpoint, and what the log says of them since. Its
    //    end is found on the way.
    let mut found = Found::new(&control);
    let mut xact = XactFiles::default();
    if !first_start {
        pieces::verify_log(&**disk, &control, &wal)?;
        xact = XactFiles::load(&**disk, &control, &mut found.status)?;
        found.read_log(disk, control.redo, &wal, &mut report)?;
        pieces::verify_end(disk, &control, &wal, found.checkpoint, report.end)?;
        let is_remade = |file| found.is_remade(file);
        pieces::verify_files(&**disk, &control, is_remade, &found.truncated)?;
    } else {
        report.end = Wal::FIRST;
    }
    // A directory that has no checkpoint in the log yet gets one: from then on it is known what
    // must be there.
    let unknown = control.kept.checkpoint == Lsn::ZERO;
    let redone = found.has_pages || report.commits > 0;

    // 3. The log goes on where it ended. Until a checkpoint every first change of a page is logged
    //    whole, for pages may be
    // torn that redo does not know of; after a clean stop there are none.
    let segment_size = wal.segment_size;
    let wal = Wal::open(disk.clone(), wal, report.end)?;
    let files = Arc::new(RelFiles::new(disk.clone())?);
    files.expect(&match unknown {
        true => pieces::files_there(&**disk)?,
        false => control.kept.files.clone(),
    });
    let redo_point = if control.clean && !redone {
        control.redo
    } else {
        Lsn::MAX
    };
    let pool = Pool::open(
        PoolConfig {
            redo: redo_point,
            ..pool
        },
        files,
        wal.clone(),
    )?;

    // 4. Redo.
    if redone || !found.files_made.is_empty() {
        redo_all(disk, &pool, control.redo, report.end, segment_size)?;
    }

    // 5. Files that nothing refers to any more.
    for file in found.leftover_files() {
        pool.drop_file(file)?;
        report.files_removed += 1;
    }

    // 6. Who has no commit record is rolled back. Ids go on above all that were used.
    found
        .status
        .first_touched()
        .into_iter()
        .for_each(|segment| xact.touched(segment));
    let (status, first_xid) = found.status.finish(found.next.xid);
    let next = NextIds {
        xid: first_xid,
        ..found.next
    };
    report.elapsed = began.elapsed();
    Ok(Recovered {
        core: Core::new(config, status, next, wal, pool),
        control,
        xact,
        report,
        redone: redone || unknown,
    })
}

/// Makes a new data directory.
fn first_control(disk: &dyn Disk, wal_segment_size: u64) -> Result<Control> {
    for dir in ["base", "xact", "wal"] {
        if disk.list("")?.iter().any(|name| name == dir) && !disk.list(dir)?.is_empty() {
            return Err(missing(format!(
                "the file control is missing, though the data directory holds files in {dir}"
            )));
        }
    }
    XactFiles::create(disk)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64);
    let control = Control {
        identifier: now ^ u64::from(std::process::id()) << 48,
        clean: true,
        redo: Wal::FIRST,
        next: NextIds {
            xid: Xid::FIRST,
            oid: Oid::FIRST_USER,
            file: FileId(1),
        },
        wal_segment_size,
        made: Vec::new(),
        doomed: Vec::new(),
        kept: StartRequirements::default(),
    };
    control.write(disk)?;
    Ok(control)
}

/// All of the log that a data directory still has, for whoever compares it with the pages. None
/// where it never had one.
///
/// # Errors
/// XX001 when the control file is damaged; 58030 from the disk.
pub fn whole_log(disk: &Arc<dyn Disk>) -> Result<Option<Reader>> {
    match Control::read(&**disk)? {
        Some(control) => {
            Reader::oldest(disk.clone(), control.wal_segment_size, control.redo).map(Some)
        }
        None => Ok(None),
    }
}

/// What the log and the last checkpoint say together.
struct Found {
    status: StatusBuilder,
    next: NextIds,
    /// Files by the transaction that made them.
    files_made: HashMap<FileId, Xid>,
    files_gone: HashSet<FileId>,
    /// Files that were made after the redo point: redo makes them again.
    remade: HashSet<FileId>,
    /// Files that were cut after the redo point, and to how many blocks at least.
    truncated: HashMap<FileId, u32>,
    has_pages: bool,
    /// The last checkpoint's own record, and where it ends.
    checkpoint: Option<(CheckpointRecord, Lsn)>,
    redo: Lsn,
}

impl Found {
    fn new(control: &Control) -> Found {
        Found {
            status: StatusBuilder::default(),
            next: control.next,
            files_made: control
                .made
                .iter()
                .map(|&(xid, file)| (file, xid))
                .collect(),
            files_gone: control.doomed.iter().copied().collect(),
            remade: HashSet::new(),
            truncated: HashMap::new(),
            has_pages: false,
            checkpoint: None,
            redo: control.redo,
        }
    }

    fn read_log(
        &mut self,
        disk: &Arc<dyn Disk>,
        from: Lsn,
        wal: &WalConfig,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        let mut reader = Reader::new(disk.clone(), wal.segment_size, from);
        while let Some(entry) = reader.next()? {
            report.records += 1;
            self.note(&entry.record, entry.end, report);
        }
        report.end = reader.end();
        Ok(())
    }

    fn note(&mut self, record: &Record<'_>, end: Lsn, report: &mut RecoveryReport) {
        match record {
            Record::Pages { xid, .. } => {
                self.has_pages = true;
                self.used(*xid);
            }
            Record::Commit {
                xid,
                subxids,
                dropped,
                ..
            } => {
                report.commits += 1;
                for &xid in subxids.iter().chain([xid]) {
                    self.used(xid);
                    self.status.commit(xid);
                }
                self.files_gone.extend(dropped);
            }
            Record::Abort { xid, subxids, .. } => {
                subxids.iter().chain([xid]).for_each(|&xid| self.used(xid))
            }
            Record::FileCreate { xid, file } => {
                self.used(*xid);
                self.files_made.insert(*file, *xid);
                self.remade.insert(*file);
                self.next.file = self.next.file.max(FileId(file.0 + 1));
            }
            Record::FileDrop { file } => {
                self.files_gone.insert(*file);
            }
            Record::NextIds(next) => self.raise(*next),
            Record::Checkpoint(checkpoint) => {
                if checkpoint.redo == self.redo {
                    self.checkpoint = Some((*checkpoint, end));
                }
                self.raise(checkpoint.next);
            }
            Record::FileTruncate { file, blocks } => {
                self.has_pages = true;
                let least = self.truncated.entry(*file).or_insert(*blocks);
                *least = (*least).min(*blocks);
            }
        }
    }

    fn used(&mut self, xid: Xid) {
        self.next.xid = self.next.xid.max(Xid(xid.0 + 1));
    }

    fn raise(&mut self, next: NextIds) {
        self.next.xid = self.next.xid.max(next.xid);
        self.next.oid = self.next.oid.max(next.oid);
        self.next.file = self.next.file.max(next.file);
    }

    /// Whether the file need not be there: redo makes it, or it goes.
    fn is_remade(&self, file: FileId) -> bool {
        let orphan = |xid: &Xid| !self.status.committed(*xid);
        self.remade.contains(&file)
            || self.files_gone.contains(&file)
            || self.files_made.get(&file).is_some_and(orphan)
    }

    /// Files whose makers did not commit, and those that a commit has ended.
    fn leftover_files(&self) -> Vec<FileId> {
        let orphans = self
            .files_made
            .iter()
            .filter(|(_, xid)| !self.status.committed(**xid))
            .map(|(&file, _)| file);
        self.files_gone.iter().copied().chain(orphans).collect()
    }
}

fn redo_all(
    disk: &Arc<dyn Disk>,
    pool: &Pool,
    from: Lsn,
    end: Lsn,
    segment_size: u64,
) -> Result<()> {
    let _wait = blocking(WaitEvent::WalRead, Object::lsn(from.0));
    let mut reader = Reader::new(disk.clone(), segment_size, from);
    while reader.end() < end {
        let Some(entry) = reader.next()? else {
            return Err(Error::corrupted(format!(
                "the log ends at {} on second reading, not at {end}",
                reader.end()
            )));
        };
        redo::apply(pool, entry.end, &entry.record)?;
    }
    Ok(())
}
