//! The log with its threads under schedules drawn by lot.
//!
//! Whoever was told that his record is flushed finds it after a crash; nobody sleeps for ever, also
//! when the disk fails.

use super::*;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Waker};
use throng_disk::{Fault, FaultOp};
use throng_sync::schedules::{below, block_on, check, one_in};
use throng_sync::thread::{self, JoinHandle};

/// Xids by what somebody knows of their commits. A lock of the standard library's: no turn is taken
/// within.
type Known = Arc<Mutex<BTreeSet<u64>>>;

const THREADS: u64 = 3;
const EACH: u64 = 3;

/// Larger than the ring: its commit waits for room several times.
const LARGE: u64 = 97;

/// Inserts some commits and waits for them in every way there is. Ends at the first error.
fn committer(wal: Arc<Wal>, xids: Vec<u64>, told: Known) -> impl FnOnce() {
    move || {
        for xid in xids {
            if one_in(3) && block_on(wal.room_wait()).is_err() {
                return;
            }
            let lsn = insert(&wal, xid);
            let flushed = match below(6) {
                0 => wal.flush_blocking(lsn),
                1 => {
                    wal.flush_here();
                    block_on(wal.flush(lsn))
                }
                2 => {
                    wal.request_flush(lsn);
                    continue;
                }
                3 => {
                    // Waits, and goes away.
                    let mut wait = wal.flush(lsn);
                    let _ = Pin::new(&mut wait).poll(&mut Context::from_waker(Waker::noop()));
                    thread::yield_now();
                    continue;
                }
                _ => block_on(wal.flush(lsn)),
            };
            match flushed {
                Ok(()) => told.lock().unwrap().insert(xid),
                Err(_) => return,
            };
        }
    }
}

fn spawn_committers(wal: &Arc<Wal>, told: &Known) -> (Vec<JoinHandle<()>>, BTreeSet<u64>) {
    // How long waits are is not asked here.
    throng_observe::track(false);
    let large = below(4 * THREADS as u32);
    let mut all = BTreeSet::new();
    let committers = (0..THREADS).map(|t| {
        let mut xids: Vec<u64> = (1..=EACH).map(|i| t * 10 + i).collect();
        if u64::from(large) == t {
            xids.insert(1, LARGE);
        }
        all.extend(&xids);
        thread::spawn(committer(wal.clone(), xids, told.clone()))
    });
    let committers = committers.collect();
    (committers, all)
}

/// What a crash now leaves has all that was told before.
fn look_after_a_crash(disk: &SimDisk, told: &Known) {
    let known = told.lock().unwrap().clone();
    let image = disk.crash_image(below(1 << 30).into());
    let (found, _) = read_all(&image, Wal::FIRST);
    let lost: Vec<_> = known.iter().filter(|&xid| !found.contains(xid)).collect();
    assert!(
        lost.is_empty(),
        "told of {lost:?}, and the log has {found:?}"
    );
}

#[test]
fn who_is_told_of_a_flush_finds_his_record_after_a_crash() {
    check(6_000, || {
        let disk = SimDisk::new();
        let wal = open(&disk, Wal::FIRST);
        let told = Known::default();
        let (committers, all) = spawn_committers(&wal, &told);
        for _ in 0..below(30) {
            thread::yield_now();
        }
        look_after_a_crash(&disk, &told);
        for committer in committers {
            committer.join().unwrap();
        }
        look_after_a_crash(&disk, &told);
        wal.shutdown().unwrap();
        let (found, _) = read_all(&disk, Wal::FIRST);
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), all);
    });
}

#[test]
fn a_disk_that_fails_leaves_nobody_asleep_and_nobody_wrongly_told() {
    check(3_000, || {
        let disk = SimDisk::new();
        let wal = open(&disk, Wal::FIRST);
        let told = Known::default();
        let op = if one_in(2) {
            FaultOp::Sync
        } else {
            FaultOp::Write
        };
        let (committers, _) = spawn_committers(&wal, &told);
        for _ in 0..below(20) {
            thread::yield_now();
        }
        disk.inject(Fault::new(op, "wal/").after(below(4).into()));
        for committer in committers {
            committer.join().unwrap();
        }
        look_after_a_crash(&disk, &told);
        // Its end is an error or not, but it is an end.
        let _ = wal.shutdown();
    });
}
