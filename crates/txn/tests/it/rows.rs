//! Concurrent changes of one row.

use std::rc::Rc;
use std::sync::Arc;

use throng_access::RowLockMode;
use throng_disk::SimDisk;
use throng_txn::rows::{RowOutcome, RowTurn, delete_row, lock_row, update_row};
use throng_txn::vacuum::{CostDelay, vacuum_table};
use throng_txn::{Isolation, LockTag, TxnSystem, WaitPolicy};
use throng_types::error::state;
use tokio::task::{spawn_local, yield_now};

use super::support::{Table, encode, open, run, session};

async fn one_row(sys: &Arc<TxnSystem>) -> Rc<Table> {
    let session = session(sys);
    let table = Table::create(sys, &session).await;
    let txn = session.begin(Isolation::ReadCommitted);
    table.insert(&txn, 1, 0).await;
    txn.commit(true).await.expect("committed");
    Rc::new(table)
}

async fn until_waiting(sys: &TxnSystem, pid: u32) {
    while !sys.locks().iter().any(|l| l.pid == pid && !l.granted) {
        yield_now().await;
    }
}

#[test]
fn read_committed_goes_on_from_the_newest_version() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let table = one_row(&sys).await;
        let (a, b) = (session(&sys), session(&sys));
        let first = a.begin(Isolation::ReadCommitted);
        assert!(table.add(&first, 1, 1).await.expect("updated"));
        let pid = b.pid();
        let rows = table.clone();
        let second = spawn_local(async move {
            let txn = b.begin(Isolation::ReadCommitted);
            assert!(rows.add(&txn, 1, 10).await.expect("updated"));
            txn.commit(true).await.expect("committed");
        });
        until_waiting(&sys, pid).await;
        first.commit(true).await.expect("committed");
        second.await.expect("no panic");
        let reader = a.begin(Isolation::ReadCommitted);
        assert_eq!(
            table.find(&reader.snapshot(), 1).map(|r| r.0),
            Some(11),
            "no update is lost"
        );
    });
}

#[test]
fn repeatable_read_is_told_that_it_is_too_late() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let table = one_row(&sys).await;
        let (a, b) = (session(&sys), session(&sys));
        for deletes in [false, true] {
            let late = b.begin(Isolation::RepeatableRead);
            let row = table.find(&late.snapshot(), 1).expect("seen").1;
            let first = a.begin(Isolation::ReadCommitted);
            let newest = table.find(&first.snapshot(), 1).expect("seen").1;
            if deletes {
                let done = delete_row(&first, &table.heap, newest, &mut RowTurn::default()).await;
                assert_eq!(done.expect("deleted"), RowOutcome::Done(()));
            } else {
                assert!(table.add(&first, 1, 1).await.expect("updated"));
            }
            first.commit(true).await.expect("committed");
            let new = encode(1, 5);
            let turn = &mut RowTurn::default();
            let error = update_row(
                &late,
                &table.heap,
                row,
                &new,
                RowLockMode::NoKeyUpdate,
                true,
                turn,
            )
            .await
            .expect_err("somebody was first");
            let what = if deletes { "delete" } else { "update" };
            assert_eq!(error.code(), state::SERIALIZATION_FAILURE);
            assert_eq!(
                error.message(),
                format!("could not serialize access due to concurrent {what}")
            );
            late.abort();
        }
    });
}

#[test]
fn row_locks_share_and_exclude_as_their_modes_say() {
    use RowLockMode::*;
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let table = one_row(&sys).await;
        let (a, b) = (session(&sys), session(&sys));
        for held in RowLockMode::ALL {
            for wanted in RowLockMode::ALL {
                let (holder, other) = (
                    a.begin(Isolation::ReadCommitted),
                    b.begin(Isolation::ReadCommitted),
                );
                let row = table.find(&holder.snapshot(), 1).expect("seen").1;
                let mut turn = RowTurn::default();
                let got = lock_row(
                    &holder,
                    &table.heap,
                    row,
                    held,
                    WaitPolicy::NoWait,
                    &mut turn,
                )
                .await;
                assert_eq!(got.expect("asked"), RowOutcome::Done(()));
                let got = lock_row(
                    &other,
                    &table.heap,
                    row,
                    wanted,
                    WaitPolicy::NoWait,
                    &mut turn,
                )
                .await;
                let expected = if held.conflicts(wanted) {
                    RowOutcome::Busy
                } else {
                    RowOutcome::Done(())
                };
                assert_eq!(
                    got.expect("asked"),
                    expected,
                    "{held:?} held, {wanted:?} wanted"
                );
                holder.abort();
                let got = lock_row(
                    &other,
                    &table.heap,
                    row,
                    wanted,
                    WaitPolicy::NoWait,
                    &mut turn,
                )
                .await;
                assert_eq!(got.expect("asked"), RowOutcome::Done(()), "free again");
            }
        }
        // A key-share lock is carried over an update that leaves the key alone.
        let (holder, writer) = (
            a.begin(Isolation::ReadCommitted),
            b.begin(Isolation::ReadCommitted),
        );
        let row = table.find(&holder.snapshot(), 1).expect("seen").1;
        let mut turn = RowTurn::default();
        lock_row(
            &holder,
            &table.heap,
            row,
            KeyShare,
            WaitPolicy::Block,
            &mut turn,
        )
        .await
        .expect("locked");
        assert!(table.add(&writer, 1, 1).await.expect("not in its way"));
        writer.commit(true).await.expect("committed");
        let deleter = b.begin(Isolation::ReadCommitted);
        let row = table.find(&deleter.snapshot(), 1).expect("seen").1;
        let got = lock_row(
            &deleter,
            &table.heap,
            row,
            Update,
            WaitPolicy::NoWait,
            &mut turn,
        )
        .await;
        assert_eq!(got.expect("asked"), RowOutcome::Busy);
        holder.commit(true).await.expect("committed");
        let got = lock_row(
            &deleter,
            &table.heap,
            row,
            Update,
            WaitPolicy::NoWait,
            &mut turn,
        )
        .await;
        assert_eq!(got.expect("asked"), RowOutcome::Done(()));
    });
}

#[test]
fn a_rollback_to_a_savepoint_frees_the_rows_and_wakes_who_waits() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let table = one_row(&sys).await;
        let (a, b) = (session(&sys), session(&sys));
        let holder = a.begin(Isolation::ReadCommitted);
        let level = holder.savepoint();
        assert!(table.add(&holder, 1, 1).await.expect("updated"));
        let pid = b.pid();
        let rows = table.clone();
        let waiter = spawn_local(async move {
            let txn = b.begin(Isolation::ReadCommitted);
            assert!(rows.add(&txn, 1, 10).await.expect("updated"));
            txn.commit(true).await.expect("committed");
        });
        until_waiting(&sys, pid).await;
        holder.rollback_to(level);
        waiter.await.expect("no panic");
        holder.commit(true).await.expect("committed");
        let reader = a.begin(Isolation::ReadCommitted);
        assert_eq!(table.find(&reader.snapshot(), 1).map(|r| r.0), Some(10));
    });
}

/// Of a crowd that wants one row, one waits for the transaction that has it, and the rest wait in
/// its queue.
#[test]
fn a_crowd_at_one_row_queues() {
    const CROWD: i64 = 50;
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let table = one_row(&sys).await;
        let a = session(&sys);
        let holder = a.begin(Isolation::ReadCommitted);
        assert!(table.add(&holder, 1, 1000).await.expect("updated"));
        let tasks: Vec<_> = (0..CROWD)
            .map(|_| {
                let (rows, session) = (table.clone(), session(&sys));
                spawn_local(async move {
                    let txn = session.begin(Isolation::ReadCommitted);
                    assert!(rows.add(&txn, 1, 1).await.expect("updated"));
                    txn.commit(false).await.expect("committed");
                })
            })
            .collect();
        let waiting = || {
            sys.locks()
                .into_iter()
                .filter(|l| !l.granted)
                .collect::<Vec<_>>()
        };
        while waiting().len() < CROWD as usize {
            yield_now().await;
        }
        let for_xid = waiting()
            .iter()
            .filter(|l| matches!(l.tag, LockTag::Transaction(_)))
            .count();
        assert_eq!(for_xid, 1, "only the first is woken by the commit");
        holder.commit(true).await.expect("committed");
        for task in tasks {
            task.await.expect("no panic");
        }
        let reader = a.begin(Isolation::ReadCommitted);
        assert_eq!(
            table.find(&reader.snapshot(), 1).map(|r| r.0),
            Some(1000 + CROWD)
        );
        reader.abort();
        assert!(sys.locks().is_empty());
    });
}

#[test]
fn cleaning_keeps_what_somebody_sees_and_nothing_else() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let table = one_row(&sys).await;
        let (a, b) = (session(&sys), session(&sys));
        let old = b.begin(Isolation::RepeatableRead);
        assert_eq!(table.find(&old.snapshot(), 1).map(|r| r.0), Some(0));
        for key in 2..200 {
            let txn = a.begin(Isolation::ReadCommitted);
            table.insert(&txn, key, 1).await;
            txn.next_command().expect("few commands");
            let row = table.find(&txn.snapshot(), key).expect("seen").1;
            let done = delete_row(&txn, &table.heap, row, &mut RowTurn::default())
                .await
                .expect("deleted");
            assert_eq!(done, RowOutcome::Done(()));
            txn.commit(false).await.expect("committed");
        }
        let txn = a.begin(Isolation::ReadCommitted);
        assert!(table.add(&txn, 1, 7).await.expect("updated"));
        txn.commit(true).await.expect("committed");
        let clean = || {
            sys.advance_horizon(true).expect("flushed");
            let mut pacing = CostDelay::new(200, std::time::Duration::ZERO, || false);
            vacuum_table(&sys.cleaner_context(), &table.heap, &[], &mut pacing).expect("cleaned")
        };
        clean();
        assert_eq!(
            table.find(&old.snapshot(), 1).map(|r| r.0),
            Some(0),
            "the old snapshot's version stays"
        );
        old.abort();
        let cleaned = clean();
        assert_eq!(
            (cleaned.kept, cleaned.ending, cleaned.stopped),
            (1, 0, false),
            "{cleaned:?}"
        );
        let reader = a.begin(Isolation::ReadCommitted);
        assert_eq!(table.find(&reader.snapshot(), 1).map(|r| r.0), Some(7));
    });
}
