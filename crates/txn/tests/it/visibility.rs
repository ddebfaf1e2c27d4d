//! What snapshots see, under commits from many threads, and with subtransactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use throng_access::{TupleHeader, TxContext, Visibility};
use throng_disk::SimDisk;
use throng_txn::{Isolation, SnapshotForm, Txn};
use throng_types::Cid;

use super::support::{Table, open, open_as, run, session, under_each_form};

under_each_form! {
    commits_become_visible_to_later_snapshots_only
    subtransactions_stand_and_fall_with_what_is_around_them
    rolling_back_an_outer_savepoint_takes_released_inner_ones_along
    the_horizon_waits_for_snapshots_and_for_the_disk
    money_is_never_seen_half_moved
}

/// A version as it would stand on a page.
fn version(by: &Txn) -> TupleHeader {
    TupleHeader::new(by.xid(), by.cid(), 0)
}

fn commits_become_visible_to_later_snapshots_only(form: SnapshotForm) {
    run(async {
        let sys = open_as(form);
        let (a, b) = (session(&sys), session(&sys));
        let writer = a.begin(Isolation::ReadCommitted);
        let row = version(&writer);
        let (committed, repeatable) = (session(&sys), b.begin(Isolation::RepeatableRead));
        let before = repeatable.snapshot();
        assert!(!before.visible(&row));
        writer.commit(false).await.expect("committed");
        assert!(
            !before.visible(&row) && !repeatable.snapshot().visible(&row),
            "its moment was before"
        );
        let reader = committed.begin(Isolation::ReadCommitted);
        assert!(reader.snapshot().visible(&row));
        let deleter = a.begin(Isolation::ReadCommitted);
        let gone = TupleHeader {
            xmax: deleter.xid(),
            cmax: deleter.cid(),
            ..row
        };
        let snapshot = reader.snapshot();
        assert!(
            snapshot.visible(&gone) && deleter.snapshot().visible(&gone),
            "a command does not see its own work"
        );
        deleter.next_command().expect("few commands");
        assert!(!deleter.snapshot().visible(&gone) && deleter.snapshot().visible(&row));
        deleter.abort();
        assert!(
            reader.snapshot().visible(&gone),
            "an aborted delete did not happen"
        );
    });
}

fn subtransactions_stand_and_fall_with_what_is_around_them(form: SnapshotForm) {
    run(async {
        let sys = open_as(form);
        let (a, b) = (session(&sys), session(&sys));
        let txn = a.begin(Isolation::ReadCommitted);
        let outer = version(&txn);
        let first = txn.savepoint();
        let kept = version(&txn);
        let inner = txn.savepoint();
        let within = version(&txn);
        txn.release(inner);
        let after_release = version(&txn);
        assert_eq!(after_release.xmin, kept.xmin, "back in the outer savepoint");
        let second = txn.savepoint();
        let undone = version(&txn);
        txn.rollback_to(second);
        let redone = version(&txn);
        txn.release(first);
        txn.next_command().expect("few commands");
        let mine = txn.snapshot();
        for (row, seen) in [
            (&outer, true),
            (&kept, true),
            (&within, true),
            (&undone, false),
            (&redone, true),
        ] {
            assert_eq!(mine.visible(row), seen, "{row:?}");
            assert_eq!(txn.is_mine(row.xmin), seen, "{row:?}");
        }
        let reader = b.begin(Isolation::ReadCommitted);
        let before = reader.snapshot();
        txn.commit(true).await.expect("committed");
        let after = reader.snapshot();
        for (row, seen) in [
            (&outer, true),
            (&kept, true),
            (&within, true),
            (&undone, false),
            (&redone, true),
        ] {
            assert!(!before.visible(row));
            assert_eq!(after.visible(row), seen, "{row:?}");
        }
    });
}

fn rolling_back_an_outer_savepoint_takes_released_inner_ones_along(form: SnapshotForm) {
    run(async {
        let sys = open_as(form);
        let a = session(&sys);
        let txn = a.begin(Isolation::ReadCommitted);
        let outer = txn.savepoint();
        // The inner one writes, the outer one never does.
        let inner = txn.savepoint();
        let row = version(&txn);
        txn.release(inner);
        assert!(txn.is_mine(row.xmin));
        txn.rollback_to(outer);
        assert!(!txn.is_mine(row.xmin));
        assert_eq!(txn.status(row.xmin), throng_access::XidStatus::Aborted);
        // Thousands of savepoints one after another cost no more than few.
        for _ in 0..3000 {
            let level = txn.savepoint();
            txn.xid();
            txn.release(level);
        }
        let row = version(&txn);
        txn.commit(true).await.expect("committed");
        let reader = a.begin(Isolation::ReadCommitted);
        assert!(reader.snapshot().visible(&row));
    });
}

fn the_horizon_waits_for_snapshots_and_for_the_disk(form: SnapshotForm) {
    run(async {
        let sys = open_as(form);
        let (a, b) = (session(&sys), session(&sys));
        let reader = b.begin(Isolation::RepeatableRead);
        let held = reader.snapshot().csn();
        for _ in 0..10 {
            let txn = a.begin(Isolation::ReadCommitted);
            txn.assign_top_xid();
            txn.commit(false).await.expect("committed");
        }
        assert_eq!(
            sys.advance_horizon(true).expect("flushed"),
            held,
            "a transaction's snapshot is kept between statements"
        );
        let copy = reader.snapshot();
        reader.commit(true).await.expect("read only");
        assert_eq!(
            sys.advance_horizon(true).expect("flushed"),
            held,
            "a copy is still out"
        );
        drop(copy);
        assert_eq!(sys.advance_horizon(true).expect("flushed").0, held.0 + 10);
    });
}

#[test]
fn hooks_run_at_the_end_they_belong_to() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let a = session(&sys);
        let said = Arc::new(throng_sync::lock::Mutex::new(Vec::new()));
        let say = |word: &'static str| {
            let said = said.clone();
            move || said.lock().push(word)
        };
        let txn = a.begin(Isolation::ReadCommitted);
        let (committed, undone) = (say("committed"), say("forgotten"));
        txn.on_commit(move |_| committed());
        txn.on_abort(say("aborted"));
        let level = txn.savepoint();
        txn.on_commit(move |_| undone());
        txn.on_abort(say("second"));
        txn.on_abort(say("first"));
        txn.rollback_to(level);
        assert_eq!(*said.lock(), ["first", "second"]);
        txn.commit(true).await.expect("committed");
        assert_eq!(*said.lock(), ["first", "second", "committed"]);
    });
}

/// Writers move money between accounts; whenever a reader looks, none is missing and none is there
/// twice.
fn money_is_never_seen_half_moved(form: SnapshotForm) {
    const ACCOUNTS: u32 = 20;
    let sys = open_as(form);
    let table = Arc::new(run(async {
        let session = session(&sys);
        let table = Table::create(&sys, &session).await;
        let txn = session.begin(Isolation::ReadCommitted);
        for key in 0..ACCOUNTS {
            table.insert(&txn, key, 100).await;
        }
        txn.commit(true).await.expect("committed");
        table
    }));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..3u32)
        .map(|seed| {
            let (sys, table) = (sys.clone(), table.clone());
            std::thread::spawn(move || {
                run(async {
                    let session = session(&sys);
                    for i in 0..150u32 {
                        let from = (seed * 7 + i * 3) % ACCOUNTS;
                        let to = (from + 1 + i % (ACCOUNTS - 1)) % ACCOUNTS;
                        // In one order, so that nobody deadlocks.
                        let moves = if from < to {
                            [(from, -5), (to, 5)]
                        } else {
                            [(to, 5), (from, -5)]
                        };
                        let txn = session.begin(Isolation::ReadCommitted);
                        let level = (i % 3 == 0).then(|| txn.savepoint());
                        for (key, delta) in moves {
                            assert!(table.add(&txn, key, delta).await.expect("updated"));
                        }
                        match (i % 5, level) {
                            (4, _) => txn.abort(),
                            (3, Some(level)) => {
                                txn.rollback_to(level);
                                txn.commit(false).await.expect("committed");
                            }
                            _ => txn.commit(i % 2 == 0).await.expect("committed"),
                        }
                    }
                });
            })
        })
        .collect();
    let readers: Vec<_> = [Isolation::ReadCommitted, Isolation::RepeatableRead]
        .into_iter()
        .map(|isolation| {
            let (sys, table, stop) = (sys.clone(), table.clone(), stop.clone());
            std::thread::spawn(move || {
                run(async {
                    let session = session(&sys);
                    while !stop.load(Ordering::Relaxed) {
                        let txn = session.begin(isolation);
                        for _ in 0..3 {
                            let rows = table.scan(&txn.snapshot());
                            assert_eq!(rows.len(), ACCOUNTS as usize);
                            assert_eq!(
                                rows.iter().map(|row| row.1).sum::<i64>(),
                                100 * i64::from(ACCOUNTS)
                            );
                        }
                    }
                });
            })
        })
        .collect();
    for writer in writers {
        writer.join().expect("a writer panicked");
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("a reader panicked");
    }
    run(async {
        let session = session(&sys);
        let txn = session.begin(Isolation::ReadCommitted);
        assert_eq!(txn.cid(), Cid(0));
        assert_eq!(
            table
                .scan(&txn.snapshot())
                .iter()
                .map(|row| row.1)
                .sum::<i64>(),
            100 * i64::from(ACCOUNTS)
        );
    });
}
