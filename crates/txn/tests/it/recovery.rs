//! What is found after a crash, at whatever moment it comes.

use std::collections::BTreeMap;
use std::rc::Rc;

use throng_access::XidStatus;
use throng_disk::{Fault, FaultOp, SimDisk};
use throng_txn::{Isolation, Txn, TxnSystem};
use throng_types::FileId;
use throng_types::error::Severity;
use tokio::task::spawn_local;

use super::support::{Table, assert_redo_equals_do, open, run, session};

fn contents(sys: &std::sync::Arc<TxnSystem>) -> BTreeMap<u32, i64> {
    let session = session(sys);
    let txn = session.begin(Isolation::ReadCommitted);
    let rows = Table::open(sys).scan(&txn.snapshot());
    let count = rows.len();
    let map: BTreeMap<u32, i64> = rows.into_iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(map.len(), count, "no key is there twice");
    map
}

async fn put(table: &Table, txn: &Txn, keys: std::ops::Range<u32>, value: i64) {
    for key in keys {
        table.insert(txn, key, value).await;
    }
}

#[test]
fn a_clean_stop_needs_no_redo() {
    let disk = SimDisk::new();
    run(async {
        let (sys, report) = open(&disk);
        assert!(report.first_start);
        let session = session(&sys);
        let table = Table::create(&sys, &session).await;
        let txn = session.begin(Isolation::ReadCommitted);
        put(&table, &txn, 0..50, 1).await;
        txn.commit(true).await.expect("committed");
        drop(session);
        sys.shutdown().expect("stopped");
    });
    assert!(assert_redo_equals_do(&disk) > 0);
    for seed in 0..5 {
        let (sys, report) = open(&disk.crash_image(seed));
        assert!(
            !report.first_start && !report.crashed && report.commits == 0,
            "{report:?}"
        );
        assert_eq!(contents(&sys).len(), 50);
    }
}

#[test]
fn what_was_acknowledged_is_there_and_the_rest_is_whole_or_absent() {
    for round in 0..12u64 {
        let disk = SimDisk::new();
        let image = run(async {
            let (sys, _) = open(&disk);
            let session = session(&sys);
            let table = Table::create(&sys, &session).await;
            for batch in 0..10u32 {
                let txn = session.begin(Isolation::ReadCommitted);
                put(&table, &txn, batch * 10..batch * 10 + 10, 1).await;
                txn.commit(true).await.expect("committed");
                if batch == round as u32 {
                    sys.checkpoint_blocking().expect("a checkpoint");
                }
            }
            // Asynchronous: whole or absent.
            let txn = session.begin(Isolation::ReadCommitted);
            put(&table, &txn, 100..110, 1).await;
            txn.commit(false).await.expect("committed");
            // Rolled back, and rolled back in part.
            let txn = session.begin(Isolation::ReadCommitted);
            put(&table, &txn, 200..210, 1).await;
            txn.abort();
            let txn = session.begin(Isolation::ReadCommitted);
            let level = txn.savepoint();
            put(&table, &txn, 300..310, 1).await;
            txn.rollback_to(level);
            put(&table, &txn, 110..115, 1).await;
            txn.release(level);
            txn.commit(true).await.expect("committed");
            // Not ended.
            let txn = session.begin(Isolation::ReadCommitted);
            put(&table, &txn, 400..410, 1).await;
            if round % 2 == 0 {
                sys.checkpoint_blocking().expect("a checkpoint");
            }
            let image = disk.crash_image(round);
            drop(txn);
            image
        });
        assert_redo_equals_do(&image);
        let mut again = image;
        for start in 0..3 {
            let (sys, report) = open(&again);
            assert!(report.crashed);
            let rows = contents(&sys);
            assert!(
                (0..100).chain(110..115).all(|key| rows.contains_key(&key)),
                "round {round}, start {start}"
            );
            let soft = (100..110).filter(|key| rows.contains_key(key)).count();
            assert!(soft == 0 || soft == 10, "half a transaction: {soft}");
            assert_eq!(
                rows.len(),
                105 + soft,
                "nothing that was rolled back or not ended"
            );
            let next = again.crash_image(round * 7 + start);
            drop(sys);
            again = next;
        }
    }
}

/// Money is moved while the disk is copied as a crash would leave it, again and again. Some of who
/// moves it waits for the disk and some does not, so that what is pruned was often replaced by a
/// commit that is not on disk. What a reader was told is there.
#[test]
fn crash_images_taken_under_load_keep_the_sum() {
    const ACCOUNTS: u32 = 10;
    const TO: u32 = ACCOUNTS - 1;
    let disk = SimDisk::new();
    let images = run(async {
        let (sys, _) = open(&disk);
        let first = session(&sys);
        let table = Rc::new(Table::create(&sys, &first).await);
        let txn = first.begin(Isolation::ReadCommitted);
        put(&table, &txn, 0..ACCOUNTS, 100).await;
        txn.commit(true).await.expect("committed");
        let acknowledged = Rc::new(std::cell::Cell::new(0i64));
        let told = Rc::new(std::cell::Cell::new(100i64));
        let mut tasks: Vec<_> = (0..4u32)
            .map(|seed| {
                let (session, table, acknowledged) =
                    (session(&sys), table.clone(), acknowledged.clone());
                spawn_local(async move {
                    for i in 0..120u32 {
                        let from = (seed + i * 3) % TO;
                        let sync = (seed + i) % 4 != 0;
                        let txn = session.begin(Isolation::ReadCommitted);
                        assert!(table.add(&txn, from, -1).await.expect("updated"));
                        assert!(table.add(&txn, TO, 1).await.expect("updated"));
                        txn.commit(sync).await.expect("committed");
                        acknowledged.set(acknowledged.get() + i64::from(sync));
                    }
                })
            })
            .collect();
        tasks.extend((0..2).map(|_| {
            let (session, table, told) = (session(&sys), table.clone(), told.clone());
            spawn_local(async move {
                for _ in 0..200 {
                    let txn = session.begin(Isolation::ReadCommitted);
                    let (value, _) = table.find(&txn.snapshot(), TO).expect("it is there");
                    txn.commit(true).await.expect("committed");
                    told.set(told.get().max(value));
                    tokio::task::yield_now().await;
                }
            })
        }));
        let mut images = Vec::new();
        while tasks.iter().any(|task| !task.is_finished()) {
            let before = acknowledged.get();
            let known = told.get();
            images.push((disk.crash_image(images.len() as u64), before, known));
            if images.len() % 8 == 3 {
                sys.checkpoint().await.expect("a checkpoint");
            }
            while acknowledged.get() < before + 9 && tasks.iter().any(|task| !task.is_finished()) {
                tokio::task::yield_now().await;
            }
        }
        for task in tasks {
            task.await.expect("no panic");
        }
        images
    });
    for (image, acknowledged, told) in images {
        let (sys, _) = open(&image);
        let rows = contents(&sys);
        assert_eq!(
            rows.values().sum::<i64>(),
            100 * i64::from(ACCOUNTS),
            "{rows:?}"
        );
        assert!(
            rows[&TO] >= 100 + acknowledged,
            "an acknowledged transfer is missing"
        );
        assert!(rows[&TO] >= told, "what a reader was told is missing");
    }
}

#[test]
fn files_come_and_go_with_their_transactions() {
    let disk = SimDisk::new();
    let (kept, dropped, aborted, running) = run(async {
        let (sys, _) = open(&disk);
        let (a, b) = (session(&sys), session(&sys));
        let txn = a.begin(Isolation::ReadCommitted);
        let (kept, dropped) = (
            txn.create_file().expect("made"),
            txn.create_file().expect("made"),
        );
        txn.commit(true).await.expect("committed");
        let txn = b.begin(Isolation::ReadCommitted);
        let running = txn.create_file().expect("made");
        sys.checkpoint_blocking().expect("a checkpoint");
        let second = a.begin(Isolation::ReadCommitted);
        let level = second.savepoint();
        let aborted = second.create_file().expect("made");
        second.rollback_to(level);
        second.drop_file(dropped);
        assert!(
            sys.files().exists(dropped).expect("asked"),
            "not before the commit"
        );
        second.commit(true).await.expect("committed");
        let gone = |file: FileId| !sys.files().exists(file).expect("asked");
        while !(gone(dropped) && gone(aborted)) {
            tokio::task::yield_now().await;
        }
        assert!(!gone(kept) && !gone(running));
        std::mem::forget(txn);
        (kept, dropped, aborted, running)
    });
    for seed in 0..10 {
        let (sys, _) = open(&disk.crash_image(seed));
        assert_eq!(
            sys.files().list().expect("listed"),
            [kept],
            "not {dropped}, {aborted} or {running}"
        );
        let session = session(&sys);
        let txn = session.begin(Isolation::ReadCommitted);
        assert!(
            txn.create_file().expect("made") > running,
            "file ids are not used again"
        );
    }
}

#[test]
fn ids_are_never_given_out_twice() {
    let mut disk = SimDisk::new();
    let (mut last_xid, mut last_oid) = (throng_types::Xid(0), throng_types::Oid(0));
    for start in 0..6 {
        let (sys, _) = open(&disk);
        let session = session(&sys);
        for _ in 0..3 {
            let txn = session.begin(Isolation::ReadCommitted);
            let (xid, oid) = (txn.assign_top_xid(), sys.new_oid());
            assert!(xid > last_xid && oid > last_oid);
            (last_xid, last_oid) = (xid, oid);
            run(txn.commit(true)).expect("committed");
            assert!(matches!(sys.status(xid), XidStatus::Committed(_)));
        }
        if start % 2 == 0 {
            sys.checkpoint_blocking().expect("a checkpoint");
        }
        let image = disk.crash_image(start);
        drop(session);
        drop(sys);
        disk = image;
        let (sys, _) = open(&disk);
        assert!(
            matches!(sys.status(last_xid), XidStatus::Committed(_)),
            "start {start}"
        );
    }
}

/// A commit is seen before the disk has it; when the disk never gets it, nobody is told.
#[test]
fn what_is_seen_before_the_disk_has_it_is_no_answer() {
    let disk = SimDisk::new();
    run(async {
        let (sys, _) = open(&disk);
        let (writer, reader) = (session(&sys), session(&sys));
        let table = Table::create(&sys, &writer).await;
        let txn = writer.begin(Isolation::ReadCommitted);
        put(&table, &txn, 0..1, 1).await;
        txn.commit(true).await.expect("committed");
        disk.inject(Fault::new(FaultOp::Sync, "wal/"));
        let txn = writer.begin(Isolation::ReadCommitted);
        assert!(table.add(&txn, 0, 1).await.expect("updated"));
        let mut commit = Box::pin(txn.commit(true));
        let once =
            std::future::poll_fn(|cx| std::task::Poll::Ready(commit.as_mut().poll(cx))).await;

        let old = reader.begin(Isolation::ReadCommitted);
        old.commit(true).await.expect("it has seen nothing");
        for sync in [false, true] {
            let txn = reader.begin(Isolation::ReadCommitted);
            let (value, _) = table.find(&txn.snapshot(), 0).expect("it is there");
            assert_eq!(value, 2, "the row is not held while the disk is waited for");
            assert_eq!(txn.commit(sync).await.is_err(), sync);
        }
        let failed = match once {
            std::task::Poll::Ready(done) => done,
            std::task::Poll::Pending => commit.await,
        };
        let error = failed.expect_err("the log has failed");
        assert_eq!(error.fields().severity, Severity::Panic);
    });
}

#[test]
fn a_commit_whose_future_is_dropped_is_committed_all_the_same() {
    let disk = SimDisk::new();
    run(async {
        let (sys, _) = open(&disk);
        let session = session(&sys);
        let txn = session.begin(Isolation::ReadCommitted);
        let xid = txn.assign_top_xid();
        let mut commit = Box::pin(txn.commit(true));
        // Once: the record is in the log, the answer most likely not there.
        let polled =
            std::future::poll_fn(|cx| std::task::Poll::Ready(commit.as_mut().poll(cx).is_ready()))
                .await;
        drop(commit);
        assert!(
            matches!(sys.status(xid), XidStatus::Committed(_)),
            "polled to its end: {polled}"
        );
        assert!(sys.locks().is_empty());
        let next = session.begin(Isolation::ReadCommitted);
        next.commit(true).await.expect("the session goes on");
    });
}
