//! Backups, archives, and recovery to points in time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_disk::{Disk, SimDisk};
use throng_txn::{
    Archive, ArchiveRecovery, Archiving, Backup, BackupEnd, Isolation, RecoveryReport,
    RecoveryStop, RecoveryTarget, Session, TargetTimeline, TxnSystem, files_to_copy, now_micros,
};
use throng_types::{Lsn, Result};
use throng_wal::TimelineId;

use super::support::{Table, assert_redo_equals_do, open, open_archiving, run, session};

/// An archive in memory, of one disk's files.
#[derive(Clone, Default)]
struct InMemory {
    files: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    /// Attempts that are to fail.
    failures: Arc<Mutex<u32>>,
}

/// The archive as one directory's server stores into it.
struct Storing(InMemory, SimDisk);

impl Archive for Storing {
    fn store(&self, path: &str, name: &str) -> Result<(), String> {
        let mut failures = self.0.failures.lock().expect("not poisoned");
        if *failures > 0 {
            *failures -= 1;
            return Err("not now".into());
        }
        let bytes = read(&self.1, path);
        let before = (self.0.files.lock().expect("not poisoned")).insert(name.into(), bytes);
        match before {
            Some(before) if before != read(&self.1, path) => Err(format!("{name} is there")),
            _ => Ok(()),
        }
    }
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

impl InMemory {
    fn of(&self, disk: &SimDisk) -> Archiving {
        Archiving::To(Box::new(Storing(self.clone(), disk.clone())))
    }

    fn recovery(&self, target: RecoveryTarget) -> Option<ArchiveRecovery> {
        let files = self.files.clone();
        Some(ArchiveRecovery {
            fetch: Box::new(move |name| Ok(files.lock().expect("not poisoned").get(name).cloned())),
            target,
        })
    }

    fn names(&self) -> Vec<String> {
        let files = self.files.lock().expect("not poisoned");
        let mut names: Vec<String> = files.keys().cloned().collect();
        names.sort_unstable();
        names
    }
}

fn read(disk: &SimDisk, path: &str) -> Vec<u8> {
    let file = disk.open(path, false).expect("there");
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_at(&mut bytes, 0).expect("readable");
    bytes
}

fn write(disk: &SimDisk, path: &str, bytes: &[u8]) {
    if let Some((dir, _)) = path.split_once('/') {
        disk.create_dir(dir).expect("made");
    }
    let file = disk.open(path, true).expect("made");
    file.write_at(bytes, 0).expect("written");
}

/// Copies what a backup copies, page by page, each as it is at that moment.
pub async fn copy(backup: Backup, from: &SimDisk) -> (SimDisk, BackupEnd) {
    let to = SimDisk::new();
    for path in files_to_copy(from).expect("listed") {
        if !from.exists(&path).expect("readable") {
            continue;
        }
        let bytes = read(from, &path);
        write(&to, &path, &bytes);
        tokio::task::yield_now().await;
    }
    let end = backup.finish().await.expect("finished");
    write(&to, "control", &end.control);
    (to, end)
}

fn restore(
    backup: &SimDisk,
    archive: &InMemory,
    stop: Option<RecoveryStop>,
    inclusive: bool,
) -> Result<(Arc<TxnSystem>, RecoveryReport, SimDisk)> {
    restore_and_archive(backup, archive, stop, inclusive, &InMemory::default())
}

/// The restored server archives into `to`.
fn restore_and_archive(
    backup: &SimDisk,
    archive: &InMemory,
    stop: Option<RecoveryStop>,
    inclusive: bool,
    to: &InMemory,
) -> Result<(Arc<TxnSystem>, RecoveryReport, SimDisk)> {
    let disk = backup.crash_image(0);
    let target = RecoveryTarget {
        stop,
        inclusive,
        timeline: TargetTimeline::Latest,
    };
    let (sys, report) = open_archiving(&disk, archive.recovery(target), to.of(&disk))?;
    Ok((sys, report, disk))
}

fn count(sys: &Arc<TxnSystem>) -> usize {
    let session = session(sys);
    let txn = session.begin(Isolation::ReadCommitted);
    Table::open(sys).scan(&txn.snapshot()).len()
}

/// Commits one more row, of which there are many kilobytes of log.
async fn commit(table: &Table, session: &Session, key: u32) {
    let txn = session.begin(Isolation::ReadCommitted);
    table.insert(&txn, key, 1).await;
    txn.commit(true).await.expect("committed");
}

/// The disk's files as a crash-proof copy: SimDisk forgets what was never synced.
pub fn durable(disk: &SimDisk) -> SimDisk {
    let copy = SimDisk::new();
    for path in files_to_copy(disk)
        .expect("listed")
        .into_iter()
        .chain(["control".into()])
    {
        write(&copy, &path, &read(disk, &path));
        let file = copy.open(&path, false).expect("there");
        file.sync().expect("synced");
    }
    for dir in ["", "base", "xact"] {
        copy.sync_dir(dir).expect("synced");
    }
    copy
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What was true at a moment: how many rows, where the log was, and when.
struct Moment {
    rows: usize,
    lsn: Lsn,
    time: u64,
}

#[test]
fn a_backup_made_beside_writers_is_restored_to_any_moment() {
    let disk = SimDisk::new();
    let archive = InMemory::default();
    let (backup, end, moments) = run(async {
        let (sys, _) = open_archiving(&disk, None, archive.of(&disk)).expect("opened");
        let writer = session(&sys);
        let table = Table::create(&sys, &writer).await;
        for key in 0..200 {
            commit(&table, &writer, key).await;
        }
        let begun = sys.begin_backup(true).await.expect("begun");
        // Rows come while files are copied.
        let (copied, ()) = tokio::join!(copy(begun, &disk), async {
            for key in 200..400 {
                commit(&table, &writer, key).await;
            }
        });
        let mut moments = Vec::new();
        for key in 400..800 {
            commit(&table, &writer, key).await;
            if key % 50 == 0 {
                let time = now_micros() as u64;
                let lsn = sys.wal().inserted();
                let rows = key as usize + 1;
                let name = format!("after {rows}");
                sys.create_restore_point(&name);
                moments.push(Moment { rows, lsn, time });
                std::thread::sleep(Duration::from_millis(2));
                sys.checkpoint_blocking().expect("a checkpoint");
            }
        }
        drop(writer);
        sys.shutdown().expect("stopped");
        (durable(&copied.0), copied.1.end, moments)
    });
    let everything = restore(&backup, &archive, None, true).expect("restored");
    assert_eq!(count(&everything.0), 800);
    assert_eq!(everything.1.new_timeline, Some(TimelineId(2)));
    drop(everything);
    for moment in &moments {
        for (stop, inclusive) in [
            (RecoveryStop::Lsn(moment.lsn), false),
            (RecoveryStop::Time(moment.time), true),
            (RecoveryStop::Name(format!("after {}", moment.rows)), true),
        ] {
            let restored = restore(&backup, &archive, Some(stop.clone()), inclusive);
            let (sys, _, disk) = restored.expect("restored");
            assert_eq!(count(&sys), moment.rows, "{stop:?}");
            drop(sys);
            assert!(assert_redo_equals_do(&disk) > 0);
        }
    }
    let at_once = restore(&backup, &archive, Some(RecoveryStop::Immediate), true);
    let rows = count(&at_once.expect("restored").0);
    assert!((200..=401).contains(&rows), "{rows} rows at {end}");
    // What cannot be met is told.
    let refusal = |stop, inclusive| {
        let restored = restore(&backup, &archive, Some(stop), inclusive);
        restored.err().expect("refused").message().to_owned()
    };
    let early = refusal(RecoveryStop::Lsn(Lsn(end.0 - 1000)), false);
    assert!(
        early.contains("before consistent recovery point"),
        "{early}"
    );
    let never = refusal(RecoveryStop::Name("never".into()), true);
    assert!(
        never.contains("before configured recovery target"),
        "{never}"
    );
}

#[test]
fn a_backup_without_the_log_up_to_its_end_is_refused() {
    let disk = SimDisk::new();
    let archive = InMemory::default();
    let backup = run(async {
        let (sys, _) = open_archiving(&disk, None, archive.of(&disk)).expect("opened");
        let writer = session(&sys);
        let table = Table::create(&sys, &writer).await;
        let begun = sys.begin_backup(true).await.expect("begun");
        for key in 0..6000 {
            commit(&table, &writer, key).await;
        }
        let copied = copy(begun, &disk).await;
        drop(writer);
        sys.shutdown().expect("stopped");
        durable(&copied.0)
    });
    let names = archive.names();
    assert!(names.len() > 2, "{names:?}");
    assert!(restore(&backup, &archive, None, true).is_ok());
    for name in &names[1..] {
        archive.files.lock().expect("not poisoned").remove(name);
    }
    let refused = restore(&backup, &archive, None, true)
        .err()
        .expect("refused");
    assert!(
        refused.message().contains("before the end of the backup"),
        "{refused}"
    );
    // Nor does it open as it is.
    let refused = open_archiving(&backup.crash_image(0), None, Archiving::Off).err();
    assert!(refused.is_some());
}

#[test]
fn a_recovery_begins_a_timeline_that_the_next_one_follows() {
    let disk = SimDisk::new();
    let archive = InMemory::default();
    let backup = run(async {
        let (sys, _) = open_archiving(&disk, None, archive.of(&disk)).expect("opened");
        let writer = session(&sys);
        let table = Table::create(&sys, &writer).await;
        let begun = sys.begin_backup(true).await.expect("begun");
        let copied = copy(begun, &disk).await;
        for key in 0..100 {
            commit(&table, &writer, key).await;
        }
        sys.create_restore_point("hundred");
        for key in 100..150 {
            commit(&table, &writer, key).await;
        }
        drop(writer);
        sys.shutdown().expect("stopped");
        durable(&copied.0)
    });
    let stop = Some(RecoveryStop::Name("hundred".into()));
    let (sys, report, _) =
        restore_and_archive(&backup, &archive, stop, true, &archive).expect("restored");
    assert_eq!(report.new_timeline, Some(TimelineId(2)));
    assert_eq!(count(&sys), 100);
    run(async {
        let writer = session(&sys);
        for key in 1000..1007 {
            commit(&Table::open(&sys), &writer, key).await;
        }
    });
    sys.shutdown().expect("stopped");
    // The latest timeline has 100 rows and 7, the first one 150.
    let (sys, report, _) = restore(&backup, &archive, None, true).expect("restored");
    assert_eq!(
        (count(&sys), report.new_timeline),
        (107, Some(TimelineId(3)))
    );
    drop(sys);
    let of_first = RecoveryTarget {
        timeline: TargetTimeline::Current,
        ..RecoveryTarget::default()
    };
    let disk = backup.crash_image(0);
    let (sys, report) =
        open_archiving(&disk, archive.recovery(of_first), archive.of(&disk)).expect("restored");
    assert_eq!(count(&sys), 150);
    let taken: Vec<String> = archive.names();
    assert!(
        report.new_timeline > Some(TimelineId(2)),
        "{report:?}, {taken:?}"
    );
}

#[test]
fn segments_are_kept_until_the_archive_has_them() {
    let disk = SimDisk::new();
    let archive = InMemory::default();
    *archive.failures.lock().expect("not poisoned") = 1;
    run(async {
        let (sys, _) = open_archiving(&disk, None, archive.of(&disk)).expect("opened");
        let writer = session(&sys);
        let table = Table::create(&sys, &writer).await;
        let first = sys.wal().oldest();
        for key in 0..1500 {
            commit(&table, &writer, key).await;
        }
        sys.wal().switch_segment();
        for _ in 0..3 {
            sys.checkpoint_blocking().expect("a checkpoint");
        }
        let status = sys.archiver_status().expect("archiving");
        if status.archived == 0 {
            assert_eq!(sys.wal().oldest(), first);
        }
        let (begun, size) = (sys.wal().inserted().0, sys.wal().config().segment_size);
        let whole = begun / size - first.0 / size;
        wait_until("all are archived", || {
            sys.archiver_status()
                .is_some_and(|status| status.archived >= whole)
        });
        let status = sys.archiver_status().expect("archiving");
        assert_eq!(status.failed, 1);
        assert!(status.last_failed.is_some() && status.last_archived.is_some());
        commit(&table, &writer, 5000).await;
        sys.checkpoint_blocking().expect("a checkpoint");
        assert!(sys.wal().oldest() > first);
    });
    // Without an archive nothing is kept for one.
    let (sys, _) = open(&disk.crash_image(3));
    assert!(sys.archiver_status().is_none());
}
