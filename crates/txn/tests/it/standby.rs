//! A standby follows a primary over crashes of either, and takes over.

use std::sync::Arc;
use std::time::Duration;

use throng_buffer::PoolConfig;
use throng_disk::{Disk, SimDisk};
use throng_txn::{
    ArchiveRecovery, Archiving, Isolation, RecoveryTarget, Standby, TargetTimeline, TxnSystem,
};
use throng_types::Lsn;
use throng_wal::{TimelineId, WalConfig, read_stream};

use super::archive::{copy, durable};
use super::support::{Table, assert_redo_equals_do, open, open_archiving, run, session};

const SEGMENT: u64 = 256 << 10;

fn standby(disk: &SimDisk) -> Standby {
    let wal = WalConfig {
        segment_size: SEGMENT,
        buffer: 256 << 10,
        ..WalConfig::default()
    };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Standby::open(disk, PoolConfig::new(2 << 20), wal, Duration::ZERO).expect("a standby")
}

/// Hands what the primary has flushed to the standby, in pieces of no particular size.
fn follow(primary: &Arc<TxnSystem>, standby: &mut Standby) {
    let end = primary.wal().flushed();
    let mut piece = 1;
    while standby.received() < end {
        let at = standby.received();
        piece = piece * 7 % 9973;
        let mut bytes = vec![0; piece.min((end.0 - at.0) as usize)];
        let read = read_stream(&**primary.disk(), SEGMENT, at, &mut bytes).expect("readable");
        assert!(read > 0, "the log is gone at {at}");
        standby
            .append(at, &bytes[..read])
            .expect("it goes on there");
        if piece % 3 == 0 {
            standby.replay().expect("replayed");
        }
    }
    standby.replay().expect("replayed");
    assert_eq!(standby.flushed(), end);
}

fn promote(disk: &SimDisk) -> Arc<TxnSystem> {
    let recovery = ArchiveRecovery {
        fetch: Box::new(|_| Ok(None)),
        target: RecoveryTarget {
            timeline: TargetTimeline::Current,
            ..RecoveryTarget::default()
        },
    };
    let (sys, report) = open_archiving(disk, Some(recovery), Archiving::Off).expect("promoted");
    assert_eq!(report.new_timeline, Some(TimelineId(2)));
    sys
}

fn keys(sys: &Arc<TxnSystem>) -> Vec<u32> {
    let session = session(sys);
    let txn = session.begin(Isolation::ReadCommitted);
    let rows = Table::open(sys).scan(&txn.snapshot());
    let mut keys: Vec<u32> = rows.into_iter().map(|row| row.0).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn a_standby_follows_over_crashes_and_takes_over() {
    for seed in 0..6u64 {
        let disk = SimDisk::new();
        run(async {
            let (primary, _) = open(&disk);
            let writer = session(&primary);
            let table = Table::create(&primary, &writer).await;
            let mut next = 0;
            let mut commit = async |count: u32| {
                for _ in 0..count {
                    let txn = writer.begin(Isolation::ReadCommitted);
                    table.insert(&txn, next, 1).await;
                    // Some are rolled back, and leave what they did to nobody.
                    match next % 5 {
                        4 => txn.abort(),
                        _ => txn.commit(true).await.expect("committed"),
                    }
                    next += 1;
                }
                next
            };
            commit(100).await;
            let hold = primary.wal().hold(Lsn::ZERO);
            let begun = primary.begin_backup(true).await.expect("begun");
            let (copied, end) = copy(begun, &disk).await;
            // The log since the backup began comes with it.
            let mut at = Lsn(end.hold.from().0 / SEGMENT * SEGMENT);
            while at < end.end {
                let mut bytes = vec![0; SEGMENT as usize];
                let read = read_stream(&disk, SEGMENT, at, &mut bytes).expect("readable");
                assert_eq!(read as u64, SEGMENT);
                copied.create_dir("wal").expect("made");
                let file = copied
                    .open(&format!("wal/{:016X}", at.0), true)
                    .expect("made");
                file.write_at(&bytes, 0).expect("written");
                file.sync().expect("synced");
                at = Lsn(at.0 + SEGMENT);
            }
            copied.sync_dir("").expect("synced");
            copied.sync_dir("wal").expect("synced");
            let mut place = durable(&copied);
            for name in copied.list("wal").expect("listed") {
                let from = copied.open(&format!("wal/{name}"), false).expect("there");
                let mut bytes = vec![0; SEGMENT as usize];
                from.read_at(&mut bytes, 0).expect("readable");
                place.create_dir("wal").expect("made");
                let file = place.open(&format!("wal/{name}"), true).expect("made");
                file.write_at(&bytes, 0).expect("written");
                file.sync().expect("synced");
            }
            place.sync_dir("").expect("synced");
            place.sync_dir("wal").expect("synced");

            let mut standby_of = standby(&place);
            for round in 0..8u64 {
                commit(60).await;
                if round % 2 == seed % 2 {
                    primary.checkpoint_blocking().expect("a checkpoint");
                }
                follow(&primary, &mut standby_of);
                assert_eq!(standby_of.replayed(), primary.wal().flushed());
                if round % 3 == seed % 3 {
                    // The standby dies, and follows again from what it has on disk.
                    let image = place.crash_image(seed * 100 + round);
                    drop(standby_of);
                    place = image;
                    standby_of = standby(&place);
                }
            }
            let all = commit(10).await;
            follow(&primary, &mut standby_of);
            // Half a record is received when the primary is lost.
            let flushed = primary.wal().flushed();
            standby_of
                .append(flushed, &[200, 0, 0, 0, 9])
                .expect("taken in");
            standby_of.replay().expect("replayed");
            drop(hold);
            let expected: Vec<u32> = (0..all).filter(|key| key % 5 != 4).collect();
            assert_eq!(keys(&primary), expected);
            standby_of.close().expect("closed");
            let taken_over = promote(&place);
            assert_eq!(keys(&taken_over), expected);
            let writer = session(&taken_over);
            let txn = writer.begin(Isolation::ReadCommitted);
            Table::open(&taken_over).insert(&txn, 1_000_000, 1).await;
            txn.commit(true).await.expect("committed");
            drop(writer);
            taken_over.shutdown().expect("stopped");
            assert!(assert_redo_equals_do(&place) > 0);
            assert_eq!(keys(&open(&place).0).len(), expected.len() + 1);
        });
    }
}

#[test]
fn what_is_no_log_is_dropped_and_received_again() {
    let disk = SimDisk::new();
    run(async {
        let (primary, _) = open(&disk);
        let writer = session(&primary);
        let table = Table::create(&primary, &writer).await;
        primary.shutdown().expect("stopped");
        drop((writer, table, primary));
    });
    // A standby on the same bytes as the primary that goes on.
    let image = disk.crash_image(1);
    run(async {
        let (primary, _) = open(&disk);
        let writer = session(&primary);
        let mut follower = standby(&image);
        let replayed = follower.replayed();
        follower.append(replayed, &[0x41; 64]).expect("taken in");
        let refused = follower.replay().expect_err("no record");
        assert!(refused.message().contains("is no record"), "{refused}");
        follower.close().expect("closed");
        let mut follower = standby(&image);
        assert_eq!(
            (follower.received(), follower.replayed()),
            (replayed, replayed)
        );
        let txn = writer.begin(Isolation::ReadCommitted);
        Table::open(&primary).insert(&txn, 7, 1).await;
        txn.commit(true).await.expect("committed");
        follow(&primary, &mut follower);
        assert_eq!(follower.replayed(), primary.wal().flushed());
    });
}

#[test]
fn bytes_that_come_elsewhere_are_refused() {
    let disk = SimDisk::new();
    let (primary, _) = open(&disk);
    primary.shutdown().expect("stopped");
    drop(primary);
    let standby = standby(&disk);
    let at = standby.received();
    assert!(standby.append(Lsn(at.0 + 1), b"x").is_err());
    assert!(standby.append(Lsn(at.0 - 1), b"x").is_err());
}
