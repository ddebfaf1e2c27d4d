//! Relation and advisory locks through sessions.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use throng_access::TxContext;
use throng_disk::SimDisk;
use throng_txn::{
    CancelReason, Isolation, LockMode, LockReporter, LockTag, Session, SessionEntry, SessionState,
    WaitPolicy,
};
use throng_types::Oid;
use throng_types::error::state;
use tokio::task::spawn_local;

use super::support::{open, run, session};

const T: Oid = Oid(20000);

async fn until(condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "it never came to that"
        );
        tokio::task::yield_now().await;
    }
}

#[test]
fn weak_locks_stay_with_the_session_until_a_strong_one_comes() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let (a, b) = (session(&sys), session(&sys));
        let reader = a.begin(Isolation::ReadCommitted);
        for oid in 0..100 {
            reader
                .lock_relation(Oid(30000 + oid), LockMode::AccessShare)
                .await
                .expect("locked");
        }
        reader
            .lock_relation(T, LockMode::AccessShare)
            .await
            .expect("locked");
        reader
            .lock_relation(T, LockMode::RowExclusive)
            .await
            .expect("locked");
        assert_eq!(sys.locks().iter().filter(|l| l.fast_path).count(), 102);

        let writer = b.begin(Isolation::ReadCommitted);
        let error = writer
            .lock_relation_nowait(T, "t", LockMode::Exclusive)
            .expect_err("not free");
        assert_eq!(error.code(), state::LOCK_NOT_AVAILABLE);
        assert_eq!(error.message(), "could not obtain lock on relation \"t\"");
        let moved: Vec<_> = sys
            .locks()
            .into_iter()
            .filter(|l| l.tag == LockTag::Relation(T))
            .collect();
        assert_eq!(moved.len(), 2);
        assert!(
            moved
                .iter()
                .all(|l| !l.fast_path && l.granted && l.pid == a.pid())
        );
        reader.commit(true).await.expect("committed");
        writer
            .lock_relation_nowait(T, "t", LockMode::AccessExclusive)
            .expect("free now");

        let again = a.begin(Isolation::ReadCommitted);
        let free = again
            .lock(
                LockTag::Relation(T),
                LockMode::AccessShare,
                WaitPolicy::NoWait,
            )
            .await;
        assert!(!free.expect("asked"));
        writer.abort();
        let free = again
            .lock(
                LockTag::Relation(T),
                LockMode::AccessShare,
                WaitPolicy::NoWait,
            )
            .await;
        assert!(free.expect("asked"));
        assert!(
            sys.locks().iter().any(|l| l.fast_path),
            "the short way is open again"
        );
        drop(again);
        assert!(sys.locks().is_empty());
    });
}

#[test]
fn a_waiter_is_woken_with_the_lock_in_hand_and_shown_while_it_waits() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let (a, b) = (session(&sys), Rc::new(session(&sys)));
        let holder = a.begin(Isolation::ReadCommitted);
        holder
            .lock_relation(T, LockMode::AccessExclusive)
            .await
            .expect("locked");
        let waiter = b.clone();
        let task = spawn_local(async move {
            waiter
                .entry()
                .statement_began("select 1", throng_txn::now_micros());
            let txn = waiter.begin(Isolation::ReadCommitted);
            txn.lock_relation(T, LockMode::AccessShare)
                .await
                .expect("locked in the end");
        });
        let pid = b.pid();
        until(|| sys.locks().iter().any(|l| l.pid == pid && !l.granted)).await;
        let row = sys
            .sessions()
            .into_iter()
            .find(|s| s.pid == pid)
            .expect("listed");
        assert_eq!(
            (row.state, row.query.as_str()),
            (SessionState::Active, "select 1")
        );
        assert_eq!(
            row.wait.map(|w| (w.event.class().name(), w.event.name())),
            Some(("Lock", "relation"))
        );
        assert!(!task.is_finished());
        holder.commit(true).await.expect("committed");
        task.await.expect("no panic");
        assert!(sys.locks().is_empty());
    });
}

#[test]
fn waits_end_by_cancel_by_lock_timeout_and_by_statement_timeout() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let (a, b) = (session(&sys), session(&sys));
        let holder = a.begin(Isolation::ReadCommitted);
        holder
            .lock_relation(T, LockMode::AccessExclusive)
            .await
            .expect("locked");
        let cancelled = async |prepare: &dyn Fn(&Session)| {
            let txn = b.begin(Isolation::ReadCommitted);
            prepare(&b);
            let error = txn
                .lock_relation(T, LockMode::RowShare)
                .await
                .expect_err("it cannot be had");
            b.cancel_flag().statement_ended();
            b.entry().set_lock_timeout(None);
            (error.code(), error.message().to_string())
        };
        let message = |text: &str| format!("canceling statement due to {text}");
        let late =
            cancelled(&|b| b.entry().set_lock_timeout(Some(Duration::from_millis(30)))).await;
        assert_eq!(late, (state::LOCK_NOT_AVAILABLE, message("lock timeout")));
        let late = cancelled(&|b| {
            b.cancel_flag()
                .set_deadline(Some(Instant::now() + Duration::from_millis(30)))
        })
        .await;
        assert_eq!(late, (state::QUERY_CANCELED, message("statement timeout")));
        let by_user = cancelled(&|b| {
            let (sys, pid) = (sys.clone(), b.pid());
            spawn_local(async move {
                until(|| sys.locks().iter().any(|l| l.pid == pid && !l.granted)).await;
                assert!(sys.cancel(pid, CancelReason::UserRequest));
            });
        })
        .await;
        assert_eq!(by_user, (state::QUERY_CANCELED, message("user request")));
        assert!(
            sys.locks().iter().all(|l| l.granted),
            "nobody is left in the queue"
        );
        holder.abort();
        let txn = b.begin(Isolation::ReadCommitted);
        txn.lock_relation(T, LockMode::AccessExclusive)
            .await
            .expect("free");
    });
}

#[test]
fn a_rollback_to_a_savepoint_gives_back_what_was_locked_since() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let a = session(&sys);
        let txn = a.begin(Isolation::ReadCommitted);
        txn.lock_relation(T, LockMode::AccessShare)
            .await
            .expect("locked");
        let level = txn.savepoint();
        txn.lock_relation(T, LockMode::AccessShare)
            .await
            .expect("held already");
        txn.lock_relation(T, LockMode::Exclusive)
            .await
            .expect("locked");
        txn.lock_relation(Oid(7), LockMode::AccessShare)
            .await
            .expect("locked");
        txn.rollback_to(level);
        let left: Vec<_> = sys.locks().into_iter().map(|l| (l.tag, l.mode)).collect();
        assert_eq!(left, [(LockTag::Relation(T), LockMode::AccessShare)]);
        txn.lock_relation(Oid(7), LockMode::AccessShare)
            .await
            .expect("locked");
        txn.release(level);
        assert_eq!(sys.locks().len(), 2, "a released savepoint keeps its locks");
    });
}

#[test]
fn advisory_locks_are_counted_for_the_session_and_not_for_the_transaction() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let (a, b) = (session(&sys), session(&sys));
        let key = LockTag::Advisory {
            database: Oid(5),
            key: 42,
        };
        assert!(
            a.advisory_lock(key, LockMode::Exclusive, WaitPolicy::Block)
                .await
                .expect("locked")
        );
        assert!(
            a.advisory_lock(key, LockMode::Exclusive, WaitPolicy::Block)
                .await
                .expect("locked")
        );
        assert!(
            !b.advisory_lock(key, LockMode::Share, WaitPolicy::NoWait)
                .await
                .expect("asked")
        );
        let txn = a.begin(Isolation::ReadCommitted);
        assert!(
            txn.lock(key, LockMode::Exclusive, WaitPolicy::Block)
                .await
                .expect("its own")
        );
        txn.commit(true).await.expect("committed");
        assert!(a.advisory_unlock(key, LockMode::Exclusive));
        assert!(
            !b.advisory_lock(key, LockMode::Share, WaitPolicy::NoWait)
                .await
                .expect("asked")
        );
        assert!(a.advisory_unlock(key, LockMode::Exclusive));
        assert!(
            !a.advisory_unlock(key, LockMode::Exclusive),
            "not held any more"
        );
        assert!(
            b.advisory_lock(key, LockMode::Share, WaitPolicy::NoWait)
                .await
                .expect("asked")
        );
        assert!(
            a.advisory_lock(key, LockMode::Share, WaitPolicy::NoWait)
                .await
                .expect("shared")
        );
        drop(a);
        assert_eq!(sys.locks().len(), 1, "a session's locks go with it");
        b.advisory_unlock_all();
        assert!(sys.locks().is_empty());
    });
}

/// Sessions on several threads lock a few relations in all modes, in one order; whoever holds
/// checks that nobody else holds what excludes it.
#[test]
fn threads_never_hold_what_excludes_each_other() {
    const RELATIONS: u32 = 3;
    let (sys, _) = open(&SimDisk::new());
    // By relation and mode: how many hold it.
    let held: Arc<Vec<AtomicU32>> =
        Arc::new((0..RELATIONS * 9).map(|_| AtomicU32::new(0)).collect());
    let threads: Vec<_> = (0..4u32)
        .map(|seed| {
            let (sys, held) = (sys.clone(), held.clone());
            std::thread::spawn(move || run(worker(&sys, &held, seed)))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a worker panicked");
    }
    assert!(sys.locks().is_empty());

    async fn worker(sys: &Arc<throng_txn::TxnSystem>, held: &[AtomicU32], seed: u32) {
        let session = session(sys);
        let mut random = seed.wrapping_mul(0x9E37_79B9) | 1;
        let mut next = |below: u32| {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random % below
        };
        for _ in 0..2000 {
            let txn = session.begin(Isolation::ReadCommitted);
            let mut mine = Vec::new();
            for relation in 0..RELATIONS {
                // Weak modes most of the time, so that both ways are taken.
                let mode = if next(4) > 0 { next(3) } else { next(8) };
                let mode = LockMode::ALL[mode as usize];
                txn.lock_relation(Oid(1 + relation), mode)
                    .await
                    .expect("no deadlock in one order");
                held[(relation * 9 + mode as u32) as usize].fetch_add(1, Ordering::SeqCst);
                mine.push((relation, mode));
            }
            for &(relation, mode) in &mine {
                for other in LockMode::ALL.into_iter().filter(|m| m.conflicts(mode)) {
                    let own = mine.iter().filter(|m| **m == (relation, other)).count() as u32;
                    let count = held[(relation * 9 + other as u32) as usize].load(Ordering::SeqCst);
                    assert!(count <= own, "{mode:?} and {other:?} are held at once");
                }
            }
            for &(relation, mode) in &mine {
                held[(relation * 9 + mode as u32) as usize].fetch_sub(1, Ordering::SeqCst);
            }
            txn.abort();
        }
    }
}

/// Whoever touches a thousand tables has a thousand weak locks of its own, and leaves nothing for
/// others to look at.
#[test]
fn a_thousand_tables_are_locked_as_one_is() {
    const TABLES: u32 = 1000;
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let (a, b) = (session(&sys), session(&sys));
        for round in 0..3 {
            let reader = a.begin(Isolation::ReadCommitted);
            for table in 0..TABLES {
                let mode = [LockMode::AccessShare, LockMode::RowExclusive][table as usize % 2];
                reader
                    .lock_relation(Oid(40000 + table), mode)
                    .await
                    .expect("free");
            }
            let locks = sys.locks();
            assert_eq!(locks.len(), TABLES as usize, "round {round}");
            assert!(locks.iter().all(|lock| lock.fast_path && lock.granted));
            let writer = b.begin(Isolation::ReadCommitted);
            for table in [0, 17, TABLES - 1] {
                let tag = LockTag::Relation(Oid(40000 + table));
                assert!(!writer.try_lock(tag, LockMode::AccessExclusive), "{table}");
            }
            assert_eq!(sys.locks().iter().filter(|lock| !lock.fast_path).count(), 3);
            drop(reader);
            assert!(writer.try_lock(LockTag::Relation(Oid(40017)), LockMode::AccessExclusive));
        }
        assert!(sys.locks().is_empty());
    });
}

/// Keeps the lines.
#[derive(Clone, Default)]
struct Lines(Arc<throng_sync::lock::Mutex<Vec<String>>>);

impl LockReporter for Lines {
    fn describe(&self, tag: &LockTag) -> String {
        format!("{tag} of database 5")
    }
    fn log(&self, session: &SessionEntry, message: &str, detail: Option<&str>) {
        assert!(message.contains(&format!("process {} ", session.pid())));
        // The time is not known beforehand.
        let (what, time) = message.rsplit_once(" after ").expect("a time");
        let (whole, part) = time
            .strip_suffix(" ms")
            .and_then(|t| t.split_once('.'))
            .expect("ms");
        assert!(whole.parse::<u32>().is_ok() && part.len() == 3, "{time}");
        self.0
            .lock()
            .push(format!("{what} | {}", detail.unwrap_or_default()));
    }
}

#[test]
fn long_waits_are_logged_as_postgresql_words_them() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let lines = Lines::default();
        sys.set_lock_reporter(Box::new(lines.clone()));
        let (a, b, c) = (session(&sys), session(&sys), session(&sys));
        let (p, q, r) = (a.pid(), b.pid(), c.pid());
        for waiter in [&b, &c] {
            waiter
                .entry()
                .set_deadlock_timeout(Duration::from_millis(1));
            waiter.entry().set_log_lock_waits(true);
        }
        let holder = a.begin(Isolation::ReadCommitted);
        holder
            .lock_relation(T, LockMode::AccessShare)
            .await
            .expect("free");
        let said = lines.clone();
        let mut tasks = Vec::new();
        for (i, session) in [b, c].into_iter().enumerate() {
            tasks.push(spawn_local(async move {
                let txn = session.begin(Isolation::ReadCommitted);
                txn.lock_relation(T, LockMode::AccessExclusive)
                    .await
                    .expect("in the end");
            }));
            until(|| said.0.lock().len() > i).await;
        }
        assert_eq!(sys.blocking_pids(q), [p]);
        assert_eq!(sys.blocking_pids(r), [p, q]);
        drop(holder);
        for task in tasks {
            task.await.expect("no panic");
        }
        let on = "AccessExclusiveLock on relation 20000 of database 5";
        let expected = [
            format!(
                "process {q} still waiting for {on} | Process holding the lock: {p}. Wait queue: {q}."
            ),
            format!(
                "process {r} still waiting for {on} | Process holding the lock: {p}. Wait queue: {q}, {r}."
            ),
            format!("process {q} acquired {on} | "),
            format!("process {r} acquired {on} | "),
        ];
        assert_eq!(*lines.0.lock(), expected);
    });
}

#[test]
fn a_wait_for_a_subtransaction_shows_whose_it_is() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let lines = Lines::default();
        sys.set_lock_reporter(Box::new(lines.clone()));
        let (a, b) = (session(&sys), session(&sys));
        let (p, q) = (a.pid(), b.pid());
        b.entry().set_deadlock_timeout(Duration::from_millis(1));
        b.entry().set_log_lock_waits(true);
        let holder = a.begin(Isolation::ReadCommitted);
        let level = holder.savepoint();
        let xid = holder.xid();
        assert_ne!(Some(xid), holder.top_xid());
        let waiter = spawn_local(async move {
            let txn = b.begin(Isolation::ReadCommitted);
            txn.wait_for_xid(xid).await
        });
        until(|| !lines.0.lock().is_empty()).await;
        assert_eq!(sys.blocking_pids(q), [p]);
        let held = sys.locks().into_iter().find(|lock| {
            lock.granted
                && lock.tag == LockTag::Transaction(xid)
                && lock.mode == LockMode::Exclusive
        });
        assert_eq!(held.map(|lock| lock.pid), Some(p));
        holder.rollback_to(level);
        waiter.await.expect("no panic").expect("it has ended");
        let on = format!("ShareLock on transaction {xid} of database 5");
        assert_eq!(
            *lines.0.lock(),
            [
                format!(
                    "process {q} still waiting for {on} | Process holding the lock: {p}. Wait queue: {q}."
                ),
                format!("process {q} acquired {on} | "),
            ]
        );
    });
}
