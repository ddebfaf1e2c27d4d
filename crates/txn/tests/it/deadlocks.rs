//! Circles of waits are found and broken, and nothing else is.

use std::rc::Rc;

use throng_disk::SimDisk;
use throng_txn::{Isolation, LockMode, LockTag, Session, Txn, WaitPolicy};
use throng_types::error::state;
use throng_types::{Error, Oid, Result};
use tokio::task::spawn_local;

use super::support::{Table, open, run, session};

fn check(error: &Error, pids: &[u32]) {
    assert_eq!(
        (error.code(), error.message()),
        (state::DEADLOCK_DETECTED, "deadlock detected")
    );
    let detail = error.fields().detail.clone().expect("a detail");
    assert_eq!(detail.lines().count(), pids.len(), "{detail}");
    for line in detail.lines() {
        assert!(
            line.starts_with("Process ") && line.contains("; blocked by process "),
            "{line}"
        );
    }
    for pid in pids {
        assert!(
            detail.contains(&format!("Process {pid} waits for ")),
            "{detail}"
        );
    }
}

/// Each of `n` sessions holds its own relation and wants the next one's.
fn ring(n: usize) {
    run(async move {
        let (sys, _) = open(&SimDisk::new());
        let sessions: Vec<Rc<Session>> = (0..n).map(|_| Rc::new(session(&sys))).collect();
        let pids: Vec<u32> = sessions.iter().map(|s| s.pid()).collect();
        let mut txns = Vec::new();
        for (i, session) in sessions.iter().enumerate() {
            let txn = session.begin(Isolation::ReadCommitted);
            txn.lock_relation(Oid(100 + i as u32), LockMode::Exclusive)
                .await
                .expect("free");
            txns.push(txn);
        }
        let tasks: Vec<_> = txns
            .into_iter()
            .enumerate()
            .map(|(i, txn)| {
                spawn_local(async move {
                    let result = txn
                        .lock_relation(Oid(100 + ((i + 1) % n) as u32), LockMode::Exclusive)
                        .await;
                    txn.abort();
                    result
                })
            })
            .collect();
        let mut failed = Vec::new();
        for task in tasks {
            failed.extend(task.await.expect("no panic").err());
        }
        assert_eq!(
            failed.len(),
            1,
            "one gives up, the others get what they want: {failed:?}"
        );
        check(&failed[0], &pids);
        assert!(
            failed[0]
                .fields()
                .detail
                .as_ref()
                .is_some_and(|d| d.contains("ExclusiveLock on relation 10"))
        );
        assert!(sys.locks().is_empty());
    });
}

#[test]
fn two_sessions_in_a_circle() {
    ring(2);
}

#[test]
fn three_sessions_in_a_circle() {
    ring(3);
}

#[test]
fn many_sessions_in_a_circle() {
    ring(40);
}

#[test]
fn two_sharers_who_both_want_more() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let sessions = [session(&sys), session(&sys)];
        let pids: Vec<u32> = sessions.iter().map(Session::pid).collect();
        let txns: Vec<Txn> = sessions
            .iter()
            .map(|s| s.begin(Isolation::ReadCommitted))
            .collect();
        for txn in &txns {
            txn.lock_relation(Oid(5), LockMode::Share)
                .await
                .expect("shared");
        }
        let upgrade = |txn: Txn| async move {
            let result = txn.lock_relation(Oid(5), LockMode::AccessExclusive).await;
            txn.abort();
            result
        };
        let [a, b]: [Txn; 2] = txns.try_into().ok().expect("two");
        let (a, b) = (spawn_local(upgrade(a)), spawn_local(upgrade(b)));
        let results: [Result<()>; 2] = [a.await.expect("no panic"), b.await.expect("no panic")];
        let failed: Vec<&Error> = results.iter().filter_map(|r| r.as_ref().err()).collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        check(failed[0], &pids);
    });
}

#[test]
fn rows_and_relations_in_one_circle() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let (a, b) = (session(&sys), session(&sys));
        let table = Rc::new(Table::create(&sys, &a).await);
        let txn = a.begin(Isolation::ReadCommitted);
        table.insert(&txn, 1, 10).await;
        txn.commit(true).await.expect("committed");
        let pids = [a.pid(), b.pid()];
        let (first, second) = (
            a.begin(Isolation::ReadCommitted),
            b.begin(Isolation::ReadCommitted),
        );
        assert!(table.add(&first, 1, 1).await.expect("updated"));
        let key = LockTag::Advisory {
            database: Oid(5),
            key: 1,
        };
        assert!(
            second
                .lock(key, LockMode::Exclusive, WaitPolicy::Block)
                .await
                .expect("locked")
        );
        let rows = table.clone();
        let by_row = spawn_local(async move {
            let result = rows.add(&second, 1, 1).await.map(drop);
            second.abort();
            result
        });
        let by_lock = spawn_local(async move {
            let result = first
                .lock(key, LockMode::Exclusive, WaitPolicy::Block)
                .await
                .map(drop);
            first.abort();
            result
        });
        let results = [
            by_row.await.expect("no panic"),
            by_lock.await.expect("no panic"),
        ];
        let failed: Vec<&Error> = results.iter().filter_map(|r| r.as_ref().err()).collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        check(failed[0], &pids);
        let detail = failed[0].fields().detail.clone().unwrap_or_default();
        assert!(
            detail.contains("waits for ShareLock on transaction "),
            "{detail}"
        );
    });
}

/// A circle that only the queue makes: everybody gets the lock, nobody is told off.
#[test]
fn a_queue_that_stands_in_its_own_way_is_rearranged() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let sessions: Vec<Session> = (0..3).map(|_| session(&sys)).collect();
        let [one, two, three]: [Txn; 3] = sessions
            .iter()
            .map(|s| s.begin(Isolation::ReadCommitted))
            .collect::<Vec<_>>()
            .try_into()
            .ok()
            .expect("three");
        let (a, b) = (Oid(1), Oid(2));
        one.lock_relation(a, LockMode::Share).await.expect("free");
        three
            .lock_relation(b, LockMode::Exclusive)
            .await
            .expect("free");
        // Two waits for one; three waits behind two in the queue only; one waits for three.
        let pids: Vec<u32> = sessions.iter().map(Session::pid).collect();
        let waits = |pid: u32| sys.locks().iter().any(|l| l.pid == pid && !l.granted);
        let two = spawn_local(async move { two.lock_relation(a, LockMode::Exclusive).await });
        while !waits(pids[1]) {
            tokio::task::yield_now().await;
        }
        let three = spawn_local(async move { three.lock_relation(a, LockMode::Share).await });
        while !waits(pids[2]) {
            tokio::task::yield_now().await;
        }
        let one = spawn_local(async move { one.lock_relation(b, LockMode::Share).await });
        for task in [one, two, three] {
            task.await.expect("no panic").expect("locked in the end");
        }
    });
}
