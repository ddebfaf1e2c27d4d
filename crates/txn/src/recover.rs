//! Starting: from nothing, from a clean stop, or from whatever a crash has left.
//!
//! Redo is physical and whole: every record after the redo point is done again, whoever wrote it.
//! There is no undo: what a transaction without a commit record wrote is never seen, because its
//! status is aborted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use throng_access::redo;
use throng_buffer::{Pool, PoolConfig};
use throng_disk::{Disk, RelFiles};
use throng_observe::{Object, WaitEvent, blocking};
use throng_types::error::state;
use throng_types::{Error, FileId, Lsn, Oid, Result, Xid};
use throng_wal::{
    CheckpointRecord, NextIds, Reader, Record, RecordBuilder, TimelineId, Wal, WalConfig,
    enter_segments,
};

use crate::archive_recovery::{ArchiveRecovery, RecoveryStop, RecoveryTarget, StopAt};
use crate::archiver::write_history;
use crate::control::{Control, StartRequirements, missing};
use crate::pieces;
use crate::session::{Core, TxnConfig};
use crate::slots::ReplicationSlots;
use crate::status::{SEGMENT, StatusBuilder};
use crate::timer::now_micros;
use crate::txn::prepared::PreparedRecord;
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
    /// The timeline that an archive recovery has begun.
    pub new_timeline: Option<TimelineId>,
    /// When the last transaction committed that was redone, in microseconds since 1970; 0: none.
    pub last_commit: u64,
    pub elapsed: Duration,
}

pub(crate) struct Recovered {
    pub(crate) core: Core,
    pub(crate) control: Control,
    pub(crate) xact: XactFiles,
    pub(crate) report: RecoveryReport,
    pub(crate) prepared: BTreeMap<Xid, PreparedRecord>,
    /// Something was redone: a checkpoint is due before anybody comes.
    pub(crate) redone: bool,
}

/// A data directory whose log is redone, as far as it goes.
pub(crate) struct Redone {
    pub(crate) control: Control,
    pub(crate) xact: XactFiles,
    pub(crate) wal: Arc<Wal>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) found: Found,
    pub(crate) report: RecoveryReport,
    pub(crate) redone: bool,
}

/// Opens the data directory.
pub(crate) fn run(
    disk: &Arc<dyn Disk>,
    pool: PoolConfig,
    wal: WalConfig,
    config: TxnConfig,
    archive: Option<&ArchiveRecovery>,
) -> Result<Recovered> {
    let began = Instant::now();
    let Redone {
        control,
        mut xact,
        wal,
        pool,
        found,
        mut report,
        redone,
    } = redo(disk, pool, wal, archive)?;

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
    //    But for the prepared ones, which go on.
    let running = found.running();
    let prepared = found.prepared;
    for (xid, _) in &running {
        xact.touched(xid.0 / SEGMENT);
    }
    let (status, first_xid) = found.status.finish_beside(found.next.xid, &running);
    let running: Vec<Xid> = running.into_iter().map(|(xid, _)| xid).collect();
    let next = NextIds {
        xid: first_xid,
        ..found.next
    };
    report.elapsed = began.elapsed();
    let slots = ReplicationSlots::open(disk, &wal)?;
    Ok(Recovered {
        core: Core::new(config, status, next, &running, wal, pool, slots),
        prepared,
        control,
        xact,
        report,
        redone,
    })
}

/// What has to be done again, from the last checkpoint on.
pub(crate) fn redo(
    disk: &Arc<dyn Disk>,
    pool: PoolConfig,
    wal: WalConfig,
    archive: Option<&ArchiveRecovery>,
) -> Result<Redone> {
    // 1. The control file says where to begin.
    let found = Control::read(&**disk)?;
    let first_start = found.is_none();
    let control = match found {
        Some(control) => control,
        None => first_control(&**disk, wal.segment_size)?,
    };
    let archive = archive.filter(|_| !first_start);
    let history = match archive {
        Some(archive) => archive.history(&control)?,
        None => control.history.clone(),
    };
    let wal = WalConfig {
        segment_size: control.wal_segment_size,
        identifier: control.identifier,
        history,
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
    let (mut found, mut xact) = (Found::new(&control), XactFiles::default());
    match first_start {
        true => report.end = Wal::FIRST,
        false => xact = found.learn(disk, &control, &wal, archive, &mut report)?,
    }
    // A directory that has no checkpoint in the log yet gets one: from then on it is known what
    // must be there.
    let unknown = control.kept.checkpoint == Lsn::ZERO;
    let redone = found.has_pages || report.commits > 0 || archive.is_some();

    // 3. The log goes on where it ended. Until a checkpoint every first change of a page is logged
    //    whole, for pages may be torn that redo does not know of; after a clean stop there are
    //    none.
    let segment_size = wal.segment_size;
    let wal = open_log(disk, wal, archive, &mut report)?;
    let history = wal.config().history.clone();
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
        let mut log = Reader::new(disk.clone(), segment_size, &history, control.redo);
        redo_all(&mut log, &pool, report.end)?;
    }
    Ok(Redone {
        control,
        xact,
        wal,
        pool,
        found,
        report,
        redone: redone || unknown,
    })
}

/// Opens the log where it ends. What an archive recovery did not want of it, and what others add to
/// it, is of another timeline than what is logged from here on.
fn open_log(
    disk: &Arc<dyn Disk>,
    wal: WalConfig,
    archive: Option<&ArchiveRecovery>,
    report: &mut RecoveryReport,
) -> Result<Arc<Wal>> {
    let Some(archive) = archive else {
        return Wal::open(disk.clone(), wal, report.end);
    };
    let previous = wal.history.at(report.end);
    let timeline = archive.next_timeline(wal.history.current().max(previous))?;
    let history = Arc::new(wal.history.branched(report.end, timeline));
    let wal = WalConfig {
        history: history.clone(),
        ..wal
    };
    let wal = Wal::open(disk.clone(), wal, report.end)?;
    write_history(&**disk, &history)?;
    let mut record = RecordBuilder::new();
    record.timeline(timeline, previous, now_micros() as u64);
    wal.insert(&mut record);
    report.new_timeline = Some(timeline);
    Ok(wal)
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
        history: Arc::default(),
        minimum_recovery: Lsn::ZERO,
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
            let (size, history) = (control.wal_segment_size, &control.history);
            Reader::oldest(disk.clone(), size, history, control.redo).map(Some)
        }
        None => Ok(None),
    }
}

/// What the log and the last checkpoint say together.
pub(crate) struct Found {
    pub(crate) status: StatusBuilder,
    pub(crate) next: NextIds,
    /// Files by the transaction that made them.
    pub(crate) files_made: HashMap<FileId, Xid>,
    pub(crate) files_gone: HashSet<FileId>,
    /// Transactions that are prepared, as far as the log has been read.
    pub(crate) prepared: BTreeMap<Xid, PreparedRecord>,
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
            prepared: BTreeMap::new(),
            remade: HashSet::new(),
            truncated: HashMap::new(),
            has_pages: false,
            checkpoint: None,
            redo: control.redo,
        }
    }

    /// Reads how transactions stood and what the log says since, and looks whether all pieces are
    /// there.
    fn learn(
        &mut self,
        disk: &Arc<dyn Disk>,
        control: &Control,
        wal: &WalConfig,
        archive: Option<&ArchiveRecovery>,
        report: &mut RecoveryReport,
    ) -> Result<XactFiles> {
        let fetched = match archive {
            Some(archive) => archive.fetch_segments(&**disk, wal, control.redo)?,
            None => Lsn::ZERO,
        };
        if archive.is_some() || control.minimum_recovery > control.redo {
            // What came with a backup, or from an archive, has never been entered.
            enter_segments(&**disk, wal, control.redo)?;
        }
        pieces::verify_log(&**disk, control, wal)?;
        let xact = XactFiles::load(&**disk, control, &mut self.status)?;
        let target = archive.map(|archive| &archive.target);
        let is_met = self.read_log(disk, control, wal, target, report)?;
        verify_target(control, target, is_met, report.end)?;
        if !is_met && report.end < fetched {
            let (end, fetched) = (report.end.to_halves(), fetched.to_halves());
            return Err(missing(format!(
                "the log ends at {end}, but the archive has a segment that begins at {fetched}"
            )));
        }
        pieces::verify_checkpoint(control, wal, self.checkpoint, report.end)?;
        if archive.is_none() {
            Wal::verify_end(disk, wal, report.end)?;
        }
        let is_remade = |file| self.is_remade(file);
        pieces::verify_files(&**disk, control, is_remade, &self.truncated)?;
        Ok(xact)
    }

    /// Reads the log to its end, or to the target; whether that was met.
    fn read_log(
        &mut self,
        disk: &Arc<dyn Disk>,
        control: &Control,
        wal: &WalConfig,
        target: Option<&RecoveryTarget>,
        report: &mut RecoveryReport,
    ) -> Result<bool> {
        let immediate = target.is_some_and(|t| t.stop == Some(RecoveryStop::Immediate));
        let mut reader = Reader::new(disk.clone(), wal.segment_size, &wal.history, control.redo);
        report.end = control.redo;
        while let Some(entry) = reader.next()? {
            let stop =
                target.and_then(|target| target.stops(&entry.record, entry.start, entry.end));
            if stop == Some(StopAt::Before) {
                return Ok(true);
            }
            report.records += 1;
            report.end = entry.end;
            self.note(&entry.record, entry.end, report);
            let is_consistent = entry.end >= control.minimum_recovery;
            if stop == Some(StopAt::After) || immediate && is_consistent {
                return Ok(true);
            }
        }
        report.end = reader.end();
        Ok(false)
    }

    pub(crate) fn note(&mut self, record: &Record<'_>, end: Lsn, report: &mut RecoveryReport) {
        match record {
            Record::Pages { xid, .. } => {
                self.has_pages = true;
                self.used(*xid);
            }
            Record::Commit {
                xid,
                subxids,
                dropped,
                time,
                ..
            } => {
                report.commits += 1;
                report.last_commit = report.last_commit.max(*time);
                for &xid in subxids.iter().chain([xid]) {
                    self.used(xid);
                    self.status.commit(xid);
                }
                self.prepared.remove(xid);
                self.files_gone.extend(dropped);
            }
            Record::Abort { xid, subxids, .. } => {
                self.prepared.remove(xid);
                subxids.iter().chain([xid]).for_each(|&xid| self.used(xid))
            }
            Record::Prepare {
                xid,
                subxids,
                dropped,
                made,
                state,
            } => {
                subxids.iter().chain([xid]).for_each(|&xid| self.used(xid));
                let files = made.iter().map(|file| (*file, *xid));
                self.files_made.extend(files);
                let prepared = PreparedRecord {
                    subxids: subxids.clone(),
                    dropped: dropped.clone(),
                    made: made.clone(),
                    state: state.to_vec(),
                };
                self.prepared.insert(*xid, prepared);
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
            Record::RestorePoint { .. } | Record::Timeline { .. } | Record::Filler => {}
        }
    }

    /// The ids of prepared transactions, each with its top one.
    fn running(&self) -> Vec<(Xid, Xid)> {
        let of = |(top, record): (&Xid, &PreparedRecord)| {
            let ids = record.subxids.iter().copied().chain([*top]);
            ids.map(|xid| (xid, *top)).collect::<Vec<_>>()
        };
        self.prepared.iter().flat_map(of).collect()
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
        let orphan = |xid: &Xid| !self.status.committed(*xid) && !self.prepared.contains_key(xid);
        self.remade.contains(&file)
            || self.files_gone.contains(&file)
            || self.files_made.get(&file).is_some_and(orphan)
    }

    /// Files whose makers did not commit, and those that a commit has ended.
    fn leftover_files(&self) -> Vec<FileId> {
        let orphans = self
            .files_made
            .iter()
            .filter(|(_, xid)| !self.status.committed(**xid) && !self.prepared.contains_key(xid))
            .map(|(&file, _)| file);
        self.files_gone.iter().copied().chain(orphans).collect()
    }
}

/// Whether the recovery has come as far as it must.
fn verify_target(
    control: &Control,
    target: Option<&RecoveryTarget>,
    is_met: bool,
    end: Lsn,
) -> Result<()> {
    let minimum = match is_met {
        true => control.minimum_recovery.max(control.kept.checkpoint),
        false => control.minimum_recovery,
    };
    if end < minimum {
        let (end, minimum) = (end.to_halves(), minimum.to_halves());
        return Err(match is_met {
            true => Error::new(
                state::CONFIG_FILE_ERROR,
                "requested recovery stop point is before consistent recovery point",
            )
            .detail(format!(
                "The target is at {end}, the backup ends at {minimum}."
            )),
            false => missing(format!(
                "the log ends at {end}, before the end of the backup at {minimum}"
            )),
        });
    }
    match target {
        Some(target) if target.must_be_met() && !is_met => Err(Error::new(
            state::CONFIG_FILE_ERROR,
            "recovery ended before configured recovery target was reached",
        )
        .detail(format!("The log ends at {}.", end.to_halves()))),
        _ => Ok(()),
    }
}

fn redo_all(reader: &mut Reader, pool: &Pool, end: Lsn) -> Result<()> {
    let _wait = blocking(WaitEvent::WalRead, Object::lsn(reader.end().0));
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
