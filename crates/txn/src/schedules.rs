//! Sessions, locks and commits under schedules drawn by lot: whole transactions, on the real log
//! and pool with their threads.
//!
//! The clock's and the checkpointer's threads, which go by time, are not there: a thread of the
//! test moves the horizon.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use throng_access::TxContext;
use throng_buffer::PoolConfig;
use throng_disk::{Disk, SimDisk};
use throng_sync::schedules::{below, block_on, check, one_in};
use throng_sync::thread::{self, spawn};
use throng_types::error::state;
use throng_types::{Cid, Csn, Error, Oid, Result, Xid};
use throng_wal::{Reader, Record, Wal, WalConfig};

use crate::active::SnapshotForm;
use crate::isolation::Isolation;
use crate::lock::{LockMode, LockTag, WaitPolicy};
use crate::session::{CancelReason, Core, Session, SessionEntry, SessionInfo, TxnConfig};
use crate::status::Standing;
use crate::txn::Txn;

const SEGMENT: u64 = 16 << 10;

struct Scene {
    core: Arc<Core>,
    disk: SimDisk,
}

impl Scene {
    fn new(snapshot: SnapshotForm) -> Scene {
        // How long waits are is not asked here, and the answer would not be the same twice.
        throng_observe::track(false);
        let disk = SimDisk::new();
        let pool = PoolConfig {
            io_threads: 1,
            ..PoolConfig::new(0)
        };
        let wal = WalConfig {
            segment_size: SEGMENT,
            buffer: 4096,
            ..WalConfig::default()
        };
        let config = TxnConfig {
            snapshot,
            ..TxnConfig::default()
        };
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let recovered = crate::recover::run(&shared, pool, wal, config, None).expect("it opens");
        Scene {
            core: Arc::new(recovered.core),
            disk,
        }
    }

    fn session(&self) -> Session {
        Session::new(self.core.registry.add(&self.core, SessionInfo::default()))
    }
}

/// Runs a statement to its end, or drops it at one of its waits, as a vanished client does: `None`.
async fn or_vanish<T>(statement: impl Future<Output = T>) -> Option<T> {
    let mut statement = pin!(statement);
    poll_fn(|cx| match statement.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if one_in(10) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

fn is_expected(error: &Error) -> bool {
    [
        state::DEADLOCK_DETECTED,
        state::LOCK_NOT_AVAILABLE,
        state::QUERY_CANCELED,
    ]
    .contains(&error.code())
}

const TAGS: [LockTag; 3] = [
    LockTag::Relation(Oid(1)),
    LockTag::Relation(Oid(2)),
    LockTag::Advisory {
        database: Oid(5),
        key: 3,
    },
];

/// Who holds what, as the sessions say it: noted after a lock is got and before it is given back.
#[derive(Default)]
struct Holders(Mutex<Vec<(u32, LockTag, LockMode)>>);

impl Holders {
    fn enter(&self, pid: u32, tag: LockTag, mode: LockMode) {
        let mut all = self.0.lock().unwrap();
        let excluded =
            |h: &&(u32, LockTag, LockMode)| h.0 != pid && h.1 == tag && h.2.conflicts(mode);
        if let Some(other) = all.iter().find(excluded) {
            panic!("{pid} got {mode:?} on {tag} beside {other:?}");
        }
        all.push((pid, tag, mode));
    }

    /// How many locks the session has.
    fn count(&self, pid: u32) -> usize {
        self.0.lock().unwrap().iter().filter(|h| h.0 == pid).count()
    }

    /// Forgets what the session got after its first `keep` locks.
    fn leave(&self, pid: u32, keep: usize) {
        let mut seen = 0;
        self.0.lock().unwrap().retain(|h| {
            seen += usize::from(h.0 == pid);
            h.0 != pid || seen <= keep
        });
    }
}

struct Locking {
    stage: Scene,
    holders: Holders,
    sessions: Mutex<Vec<Arc<SessionEntry>>>,
}

impl Locking {
    fn client(&self) {
        let session = self.stage.session();
        let pid = session.pid();
        self.sessions.lock().unwrap().push(session.entry().clone());
        for _ in 0..2 {
            let timeout = one_in(4).then_some(Duration::from_millis(1));
            session.entry().set_lock_timeout(timeout);
            let txn = session.begin(Isolation::ReadCommitted);
            if let Err(error) = block_on(self.take_some(&txn)) {
                assert!(is_expected(&error), "{error:?}");
            }
            session.cancel_flag().statement_ended();
            self.holders.leave(pid, 0);
            txn.abort();
        }
        let gone = |entry: &Arc<SessionEntry>| !Arc::ptr_eq(entry, session.entry());
        self.sessions.lock().unwrap().retain(gone);
    }

    async fn take_some(&self, txn: &Txn) -> Result<()> {
        let pid = txn.session().pid();
        for _ in 0..1 + below(4) {
            let level = txn.savepoint();
            let before = self.holders.count(pid);
            let tag = TAGS[below(TAGS.len() as u32) as usize];
            let mode = LockMode::ALL[below(8) as usize];
            let policy = match one_in(5) {
                true => WaitPolicy::NoWait,
                false => WaitPolicy::Block,
            };
            if let Some(got) = or_vanish(txn.lock(tag, mode, policy)).await
                && got?
            {
                self.holders.enter(pid, tag, mode);
                thread::yield_now();
            }
            if one_in(4) {
                self.holders.leave(pid, before);
                txn.rollback_to(level);
            }
            txn.release(level);
        }
        Ok(())
    }

    fn cancel_some(&self) {
        for _ in 0..4 {
            thread::yield_now();
            let sessions = self.sessions.lock().unwrap().clone();
            if !sessions.is_empty() && one_in(2) {
                let hit = &sessions[below(sessions.len() as u32) as usize];
                hit.cancel_flag().raise(CancelReason::UserRequest);
            }
        }
    }
}

#[test]
fn locks_exclude_and_nobody_waits_for_ever_under_any_schedule() {
    check(8_000, || {
        let locking = Arc::new(Locking {
            stage: Scene::new(SnapshotForm::Csn),
            holders: Holders::default(),
            sessions: Mutex::default(),
        });
        let mut threads: Vec<_> = (0..3)
            .map(|_| {
                let locking = locking.clone();
                spawn(move || locking.client())
            })
            .collect();
        threads.push({
            let locking = locking.clone();
            spawn(move || locking.cancel_some())
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let core = &locking.stage.core;
        assert!(core.locks.is_empty(), "a lock was left behind");
        for tag in TAGS {
            if let LockTag::Relation(relation) = tag {
                assert!(!core.strong.is_raised(relation), "a counter was left up");
            }
        }
    });
}

/// A transaction and its subtransaction, by their ids.
type Family = (Xid, Xid);

/// What is known of transactions. Locks of the standard library's: no turn is taken while one is
/// held.
#[derive(Default)]
struct Outcomes {
    begun: Mutex<Vec<Family>>,
    /// Their commit has been answered, or completed by a client that vanished.
    committed: Mutex<BTreeSet<Family>>,
    rolled_back: Mutex<BTreeSet<Family>>,
    /// Answered with `sync`.
    durable: Mutex<BTreeSet<Xid>>,
}

struct Committing {
    stage: Scene,
    known: Outcomes,
}

impl Committing {
    fn writer(&self) {
        let session = self.stage.session();
        for _ in 0..2 {
            let txn = session.begin(Isolation::ReadCommitted);
            let top = txn.xid();
            let level = txn.savepoint();
            let family = (top, txn.xid());
            txn.release(level);
            self.known.begun.lock().unwrap().push(family);
            if one_in(2) {
                block_on(self.wait_for_another(&txn));
            }
            let outcome = match below(5) {
                0 => {
                    txn.abort();
                    &self.known.rolled_back
                }
                1 => {
                    // Dropped or not, from its record on it is committed.
                    if let Some(done) = block_on(or_vanish(txn.commit(true))) {
                        done.expect("the log works");
                    }
                    &self.known.committed
                }
                2 => {
                    block_on(txn.commit(false)).expect("the log works");
                    &self.known.committed
                }
                _ => {
                    if one_in(2) {
                        self.stage.core.wal.flush_here();
                    }
                    block_on(txn.commit(true)).expect("the log works");
                    self.known.durable.lock().unwrap().insert(top);
                    &self.known.committed
                }
            };
            outcome.lock().unwrap().insert(family);
        }
    }

    /// Waits for the end of another's transaction or subtransaction.
    async fn wait_for_another(&self, txn: &Txn) {
        let begun = self.known.begun.lock().unwrap().clone();
        let (top, sub) = begun[below(begun.len() as u32) as usize];
        if Some(top) == txn.top_xid() {
            return;
        }
        let other = if one_in(2) { top } else { sub };
        match or_vanish(txn.wait_for_xid(other)).await {
            Some(Ok(())) => {
                let standing = self.stage.core.status.standing(other);
                assert!(
                    !matches!(standing, Standing::InProgress { .. }),
                    "woken before the end of {other}"
                );
            }
            Some(Err(error)) => assert!(is_expected(&error), "{error:?}"),
            None => {}
        }
    }

    fn reader(&self) {
        let session = self.stage.session();
        for _ in 0..3 {
            let committed = self.known.committed.lock().unwrap().clone();
            let txn = session.begin(Isolation::RepeatableRead);
            txn.set_read_only(one_in(2));
            let snapshot = txn.snapshot();
            for _ in 0..below(20) {
                thread::yield_now();
            }
            let further = one_in(2).then(|| txn.latest_snapshot());
            let mut seen: BTreeMap<Family, bool> = BTreeMap::new();
            for _ in 0..2 {
                let begun = self.known.begun.lock().unwrap().clone();
                for family in begun {
                    let [top, sub] = [family.0, family.1].map(|xid| snapshot.sees(xid, Cid(0)));
                    assert_eq!(top, sub, "half of {family:?} is seen");
                    assert!(
                        top || !committed.contains(&family),
                        "{family:?} was committed before and is not seen"
                    );
                    let first = *seen.entry(family).or_insert(top);
                    assert_eq!(first, top, "{family:?} came or went");
                }
                thread::yield_now();
            }
            let rolled_back = self.known.rolled_back.lock().unwrap().clone();
            assert!(
                rolled_back
                    .iter()
                    .all(|family| seen.get(family) != Some(&true))
            );
            assert!(
                self.stage.core.clock.horizon() <= snapshot.csn(),
                "the horizon has passed a snapshot"
            );
            let gaps = self.stage.core.clock.gaps();
            for held in [Some(&snapshot), further.as_ref()].into_iter().flatten() {
                let csn = held.csn();
                assert!(!gaps.cover(csn, Csn(csn.0 + 1)), "a snapshot is in a gap");
            }
            drop((snapshot, further));
            txn.abort();
        }
    }

    fn move_horizon(&self) {
        for _ in 0..12 {
            thread::yield_now();
            let _turn = self.stage.core.advancing.lock();
            self.stage.core.advance_horizon();
        }
    }

    /// What a crash now leaves has every commit that was answered as durable before.
    fn look_after_a_crash(&self) {
        let durable = self.known.durable.lock().unwrap().clone();
        let image: Arc<dyn Disk> = Arc::new(self.stage.disk.crash_image(below(1 << 30).into()));
        let mut log = Reader::new(image, SEGMENT, &Arc::default(), Wal::FIRST);
        let mut found = BTreeSet::new();
        while let Some(entry) = log.next().expect("the log reads") {
            if let Record::Commit { xid, .. } = entry.record {
                found.insert(xid);
            }
        }
        assert!(
            durable.is_subset(&found),
            "answered {durable:?}, and the log has {found:?}"
        );
    }
}

fn commits(form: SnapshotForm) {
    check(2_000, move || {
        let committing = Arc::new(Committing {
            stage: Scene::new(form),
            known: Outcomes::default(),
        });
        let parts: [fn(&Committing); 5] = [
            Committing::writer,
            Committing::writer,
            Committing::writer,
            Committing::reader,
            Committing::move_horizon,
        ];
        let threads = parts.map(|part| {
            let committing = committing.clone();
            spawn(move || part(&committing))
        });
        for _ in 0..below(30) {
            thread::yield_now();
        }
        committing.look_after_a_crash();
        for thread in threads {
            thread.join().unwrap();
        }
        committing.look_after_a_crash();
        assert!(committing.stage.core.locks.is_empty());
    });
}

#[test]
fn commits_are_whole_and_durable_under_any_schedule_as_csn() {
    commits(SnapshotForm::Csn);
}

#[test]
fn commits_are_whole_and_durable_under_any_schedule_as_bitmap() {
    commits(SnapshotForm::Bitmap);
}

#[test]
fn commits_are_whole_and_durable_under_any_schedule_as_walk() {
    commits(SnapshotForm::Walk);
}
