//! Everything at once, from several threads: no wait is forgotten, no update lost, nothing left
//! behind.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use throng_disk::SimDisk;
use throng_txn::{CancelReason, Isolation, LockMode, LockTag, SnapshotForm, TxnSystem, WaitPolicy};
use throng_types::error::state;
use throng_types::{Error, Oid};
use tokio::task::spawn_local;

use super::support::{Table, open, open_as, run, session, under_each_form};

under_each_form! {
    sessions_that_deadlock_time_out_and_are_cancelled_lose_nothing
}

struct Random(u32);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % n
    }
}

/// Sessions change rows and take locks in any order they like, so circles come and go; some waits
/// are cancelled, some time out. What was committed is there, and in the end nobody holds or waits
/// for anything.
fn sessions_that_deadlock_time_out_and_are_cancelled_lose_nothing(form: SnapshotForm) {
    const ROWS: u32 = 6;
    let sys = open_as(form);
    run(async {
        let session = session(&sys);
        let table = Table::create(&sys, &session).await;
        let txn = session.begin(Isolation::ReadCommitted);
        for key in 0..ROWS {
            table.insert(&txn, key, 0).await;
        }
        txn.commit(true).await.expect("committed");
    });
    let added = Arc::new(AtomicI64::new(0));
    let threads: Vec<_> = (0..3u32)
        .map(|thread| {
            let (sys, added) = (sys.clone(), added.clone());
            std::thread::spawn(move || {
                run(async {
                    let tasks: Vec<_> = (0..4u32)
                        .map(|i| {
                            let (sys, added) = (sys.clone(), added.clone());
                            let random = Random((thread * 4 + i + 1).wrapping_mul(0x9E37_79B9));
                            spawn_local(async move { worker(&sys, &added, random, ROWS).await })
                        })
                        .collect();
                    for task in tasks {
                        task.await.expect("no panic");
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a thread panicked");
    }
    assert!(sys.locks().is_empty(), "{:?}", sys.locks());
    run(async {
        let session = session(&sys);
        let txn = session.begin(Isolation::ReadCommitted);
        let sum: i64 = Table::open(&sys)
            .scan(&txn.snapshot())
            .iter()
            .map(|row| row.1)
            .sum();
        assert_eq!(sum, added.load(Ordering::Relaxed));
    });
}

async fn worker(sys: &Arc<TxnSystem>, added: &AtomicI64, mut random: Random, rows: u32) {
    let session = Rc::new(session(sys));
    let table = Table::open(sys);
    for _ in 0..40 {
        let timeout = [None, Some(Duration::from_millis(5))][random.below(2) as usize];
        session.entry().set_lock_timeout(timeout);
        if random.below(4) == 0 {
            // Now or a little later, hitting whatever the session then does.
            let (sys, pid, turns) = (sys.clone(), session.pid(), random.below(20));
            spawn_local(async move {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                sys.cancel(pid, CancelReason::UserRequest);
            });
        }
        let txn = session.begin(Isolation::ReadCommitted);
        let mut sum = 0;
        let mut failure = None;
        for _ in 0..3 {
            let level = (random.below(3) == 0).then(|| txn.savepoint());
            let step = match random.below(4) {
                0 => {
                    let mode = LockMode::ALL[random.below(8) as usize];
                    txn.lock_relation(Oid(random.below(3)), mode)
                        .await
                        .map(|()| 0)
                }
                1 => {
                    let key = LockTag::Advisory {
                        database: Oid(5),
                        key: random.below(3).into(),
                    };
                    txn.lock(key, LockMode::Exclusive, WaitPolicy::Block)
                        .await
                        .map(|_| 0)
                }
                _ => table.add(&txn, random.below(rows), 1).await.map(i64::from),
            };
            match (step, level) {
                (Ok(done), Some(level)) if random.below(2) == 0 => {
                    txn.rollback_to(level);
                    assert!(done <= 1);
                }
                (Ok(done), _) => sum += done,
                (Err(error), _) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        session.cancel_flag().statement_ended();
        match failure {
            Some(error) => {
                assert!(is_expected(&error), "{error:?}");
                txn.abort();
            }
            None => {
                txn.commit(random.below(2) == 0).await.expect("committed");
                added.fetch_add(sum, Ordering::Relaxed);
            }
        }
    }
}

fn is_expected(error: &Error) -> bool {
    [
        state::DEADLOCK_DETECTED,
        state::LOCK_NOT_AVAILABLE,
        state::QUERY_CANCELED,
    ]
    .contains(&error.code())
}

/// A chain of waits is no circle, however long: everybody gets through, nobody is told off.
#[test]
fn a_long_chain_of_waits_is_no_deadlock() {
    const LENGTH: u32 = 60;
    run(async {
        let (sys, _) = open(&SimDisk::new());
        // Everybody looks as soon as it waits.
        sys.config().deadlock_timeout_ms.store(0, Ordering::Relaxed);
        let first = session(&sys);
        let head = first.begin(Isolation::ReadCommitted);
        head.lock_relation(Oid(0), LockMode::AccessExclusive)
            .await
            .expect("free");
        let tasks: Vec<_> = (1..LENGTH)
            .map(|i| {
                let session = session(&sys);
                spawn_local(async move {
                    let txn = session.begin(Isolation::ReadCommitted);
                    txn.lock_relation(Oid(i), LockMode::AccessExclusive)
                        .await
                        .expect("free");
                    txn.lock_relation(Oid(i - 1), LockMode::AccessShare)
                        .await
                        .expect("in the end");
                })
            })
            .collect();
        let waiting = || sys.locks().iter().filter(|l| !l.granted).count();
        while waiting() < LENGTH as usize - 1 {
            tokio::task::yield_now().await;
        }
        head.abort();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
}
