//! Two-phase commit: what is prepared is there after any crash, until its end is.

use std::collections::BTreeMap;
use std::sync::Arc;

use throng_access::{RowLockMode, XidStatus};
use throng_disk::SimDisk;
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, lock_row};
use throng_txn::{
    Isolation, LockMode, LockTag, PrepareRequest, Session, SnapshotForm, Txn, TxnSystem, WaitPolicy,
};
use throng_types::error::state;
use throng_types::{FileId, Oid, Result, Xid};

use super::support::{Table, assert_redo_equals_do, open, open_as, run, session, under_each_form};

under_each_form! {
    who_looked_before_does_not_see_it
}

const RELATION: LockTag = LockTag::Relation(Oid(77));
const ADVISORY: LockTag = LockTag::Advisory {
    database: Oid(5),
    key: 3,
};

fn request(gid: &str) -> PrepareRequest {
    PrepareRequest {
        gid: gid.into(),
        owner: Oid(10),
        database: Oid(5),
        rest: b"the rest".to_vec(),
        most: 3,
    }
}

async fn finish(sys: &TxnSystem, session: &Session, gid: &str, commit: bool) -> Result<()> {
    let claimed = sys.claim_prepared(gid, |_| Ok(()))?;
    match commit {
        true => sys.commit_prepared(claimed, session, true).await,
        false => sys.rollback_prepared(claimed).await,
    }
}

fn contents(sys: &Arc<TxnSystem>) -> BTreeMap<u32, i64> {
    let session = session(sys);
    let txn = session.begin(Isolation::ReadCommitted);
    let rows = Table::open(sys).scan(&txn.snapshot());
    rows.into_iter().map(|row| (row.0, row.1)).collect()
}

/// A table of a row, and a prepared transaction that has added two (one of them within a
/// savepoint), made a file, dropped the other, and locked this and that. What it made and dropped.
async fn prepare(sys: &Arc<TxnSystem>, session: &Session) -> (RowRef, FileId, FileId) {
    let table = Table::create(sys, session).await;
    let txn = session.begin(Isolation::ReadCommitted);
    let row = table.insert(&txn, 1, 10).await;
    let old = txn.create_file().expect("a file");
    txn.commit(true).await.expect("committed");
    let txn = session.begin(Isolation::ReadCommitted);
    txn.lock(RELATION, LockMode::RowExclusive, WaitPolicy::Block)
        .await
        .expect("locked");
    txn.lock(ADVISORY, LockMode::Exclusive, WaitPolicy::Block)
        .await
        .expect("locked");
    table.insert(&txn, 2, 20).await;
    let level = txn.savepoint();
    table.insert(&txn, 3, 30).await;
    txn.release(level);
    let level = txn.savepoint();
    table.insert(&txn, 4, 40).await;
    txn.rollback_to(level);
    lock(&txn, &table, row, RowLockMode::Share, WaitPolicy::Block).await;
    let new = txn.create_file().expect("a file");
    txn.drop_file(old);
    sys.prepare(txn, request("one")).await.expect("prepared");
    (row, new, old)
}

async fn lock(
    txn: &Txn,
    table: &Table,
    row: RowRef,
    mode: RowLockMode,
    policy: WaitPolicy,
) -> bool {
    let mut turn = RowTurn::default();
    let outcome = lock_row(txn, &table.heap, row, mode, policy, &mut turn).await;
    matches!(outcome, Ok(RowOutcome::Done(())))
}

/// What others find while it is prepared.
async fn assert_prepared(sys: &Arc<TxnSystem>, row: RowRef, files: (FileId, FileId)) {
    let listed = sys.prepared();
    assert_eq!(listed.len(), 1);
    let info = &listed[0];
    assert_eq!(
        (info.gid.as_str(), info.owner, &*info.rest),
        ("one", Oid(10), &b"the rest"[..])
    );
    assert_eq!(sys.status(info.xid), XidStatus::InProgress);
    assert_eq!(contents(sys), BTreeMap::from([(1, 10)]));
    let session = session(sys);
    let txn = session.begin(Isolation::ReadCommitted);
    assert!(txn.try_lock(RELATION, LockMode::RowExclusive));
    assert!(!txn.try_lock(RELATION, LockMode::Exclusive));
    assert!(!txn.try_lock(ADVISORY, LockMode::Share));
    let table = Table::open(sys);
    assert!(lock(&txn, &table, row, RowLockMode::KeyShare, WaitPolicy::NoWait).await);
    assert!(
        !lock(
            &txn,
            &table,
            row,
            RowLockMode::NoKeyUpdate,
            WaitPolicy::NoWait
        )
        .await
    );
    txn.abort();
    let there = sys.files().list().expect("a list");
    assert!(there.contains(&files.0) && there.contains(&files.1));
    assert!(
        sys.sessions()
            .iter()
            .all(|s| s.info.backend_type == "client backend")
    );
}

/// What they find once it has ended.
fn assert_ended(sys: &Arc<TxnSystem>, xid: Xid, files: (FileId, FileId), committed: bool) {
    assert!(sys.prepared().is_empty());
    let status = sys.status(xid);
    assert_eq!(
        matches!(status, XidStatus::Committed(_)),
        committed,
        "{status:?}"
    );
    let all = [(1, 10), (2, 20), (3, 30)];
    let rows = if committed { &all[..] } else { &all[..1] };
    assert_eq!(contents(sys), rows.iter().copied().collect());
    let session = session(sys);
    let txn = session.begin(Isolation::ReadCommitted);
    assert!(txn.try_lock(RELATION, LockMode::AccessExclusive));
    assert!(txn.try_lock(ADVISORY, LockMode::Exclusive));
    txn.abort();
    sys.advance_horizon(true).expect("flushed");
    sys.checkpoint_blocking().expect("a checkpoint");
    let there = sys.files().list().expect("a list");
    let (gone, stays) = if committed {
        (files.1, files.0)
    } else {
        (files.0, files.1)
    };
    assert!(there.contains(&stays));
    // The background thread removes it.
    for _ in 0..2_000 {
        if !sys.files().list().expect("a list").contains(&gone) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("a file that nobody has is still there");
}

#[test]
fn it_holds_what_it_holds_until_its_end() {
    for committed in [true, false] {
        run(async {
            let (sys, _) = open(&SimDisk::new());
            let own = session(&sys);
            let (row, new, old) = prepare(&sys, &own).await;
            let xid = sys.prepared()[0].xid;
            // The session goes on with others.
            let txn = own.begin(Isolation::ReadCommitted);
            assert!(txn.top_xid().is_none());
            assert!(!txn.try_lock(ADVISORY, LockMode::Share));
            txn.abort();
            drop(own);
            assert_prepared(&sys, row, (new, old)).await;
            let other = session(&sys);
            finish(&sys, &other, "one", committed).await.expect("ended");
            assert_ended(&sys, xid, (new, old), committed);
            let gone = finish(&sys, &other, "one", true).await;
            assert_eq!(gone.unwrap_err().code(), state::UNDEFINED_OBJECT);
        });
    }
}

#[test]
fn a_crash_at_any_time_changes_nothing() {
    for seed in 0..8u64 {
        for committed in [true, false] {
            let disk = SimDisk::new();
            let (image, row, xid, files) = run(async {
                let (sys, _) = open(&disk);
                let own = session(&sys);
                let (row, new, old) = prepare(&sys, &own).await;
                for _ in 0..seed % 3 {
                    sys.checkpoint_blocking().expect("a checkpoint");
                }
                if seed % 2 == 1 {
                    // Others go on meanwhile.
                    let txn = own.begin(Isolation::ReadCommitted);
                    txn.assign_top_xid();
                    txn.commit(true).await.expect("committed");
                }
                let image = disk.crash_image(seed);
                (image, row, sys.prepared()[0].xid, (new, old))
            });
            assert_redo_equals_do(&image);
            let mut image = image;
            // As often as one likes, stopped cleanly or not.
            for start in 0..3 {
                image = run(async {
                    let (sys, _) = open(&image);
                    assert_prepared(&sys, row, files).await;
                    if start == 1 {
                        sys.shutdown().expect("stopped");
                    }
                    image.crash_image(seed + start)
                });
            }
            image = run(async {
                let (sys, _) = open(&image);
                let other = session(&sys);
                finish(&sys, &other, "one", committed).await.expect("ended");
                let ended = image.crash_image(seed);
                assert_ended(&sys, xid, files, committed);
                ended
            });
            let (sys, _) = open(&image);
            assert_ended(&sys, xid, files, committed);
        }
    }
}

#[test]
fn identifiers_are_given_once() {
    run(async {
        let (sys, _) = open(&SimDisk::new());
        let own = session(&sys);
        let begin = || own.begin(Isolation::ReadCommitted);
        for gid in ["a", "b"] {
            sys.prepare(begin(), request(gid)).await.expect("prepared");
        }
        let refused = sys.prepare(begin(), request("a")).await.unwrap_err();
        assert_eq!(refused.code(), state::DUPLICATE_OBJECT);
        sys.prepare(begin(), request("c")).await.expect("prepared");
        let refused = sys.prepare(begin(), request("d")).await.unwrap_err();
        assert_eq!(refused.code(), state::OUT_OF_MEMORY);
        let claimed = sys.claim_prepared("a", |_| Ok(())).expect("claimed");
        let busy = sys.claim_prepared("a", |_| Ok(())).err().expect("busy");
        assert_eq!(busy.code(), state::OBJECT_NOT_IN_PREREQUISITE_STATE);
        drop(claimed);
        for gid in ["a", "b", "c"] {
            finish(&sys, &own, gid, gid != "b").await.expect("ended");
        }
        assert!(sys.prepared().is_empty());
    });
}

fn who_looked_before_does_not_see_it(form: SnapshotForm) {
    run(async {
        let sys = open_as(form);
        let own = session(&sys);
        prepare(&sys, &own).await;
        let (reader, other) = (session(&sys), session(&sys));
        let txn = reader.begin(Isolation::RepeatableRead);
        let table = Table::open(&sys);
        assert_eq!(table.scan(&txn.snapshot()).len(), 1);
        finish(&sys, &other, "one", true).await.expect("ended");
        assert_eq!(table.scan(&txn.snapshot()).len(), 1);
        txn.abort();
        assert_eq!(contents(&sys).len(), 3);
    });
}
