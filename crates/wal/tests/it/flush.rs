//! Waiting for the log, and its failing.

use super::*;
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use throng_disk::{Fault, FaultOp};
use throng_types::error::{Severity, state};
use throng_wal::FlushObserver;

/// Holds every round at its end until told to go on.
struct Gate {
    at_end: Mutex<Sender<Lsn>>,
    go_on: Mutex<Receiver<()>>,
    tokens: AtomicU64,
}

/// The other side of a [`Gate`].
struct GateKeeper {
    ended: Receiver<Lsn>,
    go_on: Sender<()>,
}

impl FlushObserver for Gate {
    fn before_flush(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }
    fn after_flush(&self, token: u64, flushed: Lsn) {
        assert_eq!(
            token + 1,
            self.tokens.load(Ordering::Relaxed),
            "a token comes back before the next is taken"
        );
        let _ = self.at_end.lock().unwrap().send(flushed);
        // When the keeper is gone there is nothing to hold any more.
        let _ = self.go_on.lock().unwrap().recv();
    }
    fn active_transactions(&self, _enough: u32) -> u32 {
        unreachable!("commit_delay is not set")
    }
}

fn gated(wal: &Wal) -> GateKeeper {
    let (at_end, ended) = channel();
    let (go_on, gate) = channel();
    let gate = Gate {
        at_end: Mutex::new(at_end),
        go_on: Mutex::new(gate),
        tokens: AtomicU64::new(0),
    };
    wal.set_flush_observer(Box::new(gate));
    GateKeeper { ended, go_on }
}

fn poll(
    wait: &mut (impl Future<Output = throng_types::Result<()>> + Unpin),
) -> Poll<throng_types::Result<()>> {
    pin!(wait).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn commits_that_come_during_a_flush_share_the_next() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let keeper = gated(&wal);
    let before = disk.syncs();
    std::thread::scope(|s| {
        let first = insert(&wal, 1);
        let wait = wal.flush(first);
        s.spawn(|| wait.block().unwrap());
        assert_eq!(keeper.ended.recv().unwrap(), first);
        // The first flush is under way.
        let waits: Vec<_> = (2..50).map(|xid| wal.flush(insert(&wal, xid))).collect();
        let last = wal.inserted();
        let waiters: Vec<_> = waits
            .into_iter()
            .map(|wait| s.spawn(|| wait.block().unwrap()))
            .collect();
        keeper.go_on.send(()).unwrap();
        assert_eq!(keeper.ended.recv().unwrap(), last);
        keeper.go_on.send(()).unwrap();
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert_eq!(wal.flushed(), last);
        assert!(keeper.ended.try_recv().is_err(), "there was no third flush");
    });
    let synced = disk.syncs() - before;
    // The maker syncs the segments that it makes ahead and their number, and a segment that is left
    // is synced.
    assert!(
        synced <= 2 + 4 + (wal.flushed().0 - Wal::FIRST.0) / SEGMENT * 3,
        "{synced} syncs"
    );
    drop(keeper);
}

#[test]
fn a_waiter_may_go_away() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let keeper = gated(&wal);
    let lsn = insert(&wal, 1);
    let (mut gone, mut stays) = (wal.flush(lsn), wal.flush(lsn));
    assert!(poll(&mut gone).is_pending());
    assert!(poll(&mut stays).is_pending());
    drop(gone);
    keeper.ended.recv().unwrap();
    drop(keeper);
    stays.block().unwrap();
    assert!(matches!(poll(&mut wal.flush(lsn)), Poll::Ready(Ok(()))));
}

#[test]
fn nothing_is_acknowledged_after_a_failed_sync() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let before = insert(&wal, 1);
    wal.flush_blocking(before).unwrap();
    let early = wal.flush(insert(&wal, 2));
    // The flusher's segment: those being made ahead are synced too.
    let segment = format!("wal/{:016X}", Wal::FIRST.0);
    disk.inject(Fault::new(FaultOp::Sync, segment).times(1));
    let error = early.block().unwrap_err();
    assert_eq!(error.code(), state::IO_ERROR);
    assert_eq!(error.fields().severity, Severity::Panic);
    assert!(
        error.message().contains("could not fsync file"),
        "{}",
        error.message()
    );
    // The disk works again, but what it lost in between nobody knows.
    let late = insert(&wal, 3);
    assert_eq!(
        wal.flush_blocking(late).unwrap_err().fields().severity,
        Severity::Panic
    );
    assert!(wal.failed().is_some());
    // Who does not wait is not held up either: nobody will ever make room.
    for xid in 0..200 {
        insert(&wal, xid);
    }
    wal.flush_blocking(before).unwrap();
    assert_eq!(wal.flushed(), before);
    assert!(wal.room_wait().block().is_err());
    assert!(wal.shutdown().is_err());
}

/// Whoever loads much waits for the disk when he commits, not before.
#[test]
fn a_log_that_fills_is_written_but_not_synced() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let first_segment = format!("wal/{:016X}", Wal::FIRST.0);
    disk.inject(Fault::new(FaultOp::Sync, first_segment).times(1));
    let insert_up_to = |end: u64| {
        while wal.inserted().0 < Wal::FIRST.0 + end {
            insert(&wal, 1);
        }
        wal.room_wait().block().unwrap();
        assert_eq!(wal.flushed(), Wal::FIRST);
    };
    insert_up_to(SEGMENT - SEGMENT / 4);
    // A segment that is left is as little synced, until a commit needs it.
    insert_up_to(SEGMENT + SEGMENT / 2);
    let error = wal.flush_blocking(wal.inserted()).unwrap_err();
    assert_eq!(error.code(), state::IO_ERROR);
    assert_eq!(wal.flushed(), Wal::FIRST);
    // What was written ahead was sent on, and the segment when it was left.
    assert!(disk.writebacks("wal/") > 1);
}

#[test]
fn a_failed_write_wakes_everyone() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let keeper = gated(&wal);
    let first = wal.flush(insert(&wal, 1));
    std::thread::scope(|s| {
        s.spawn(|| first.block().unwrap());
        keeper.ended.recv().unwrap();
        disk.inject(Fault::new(FaultOp::Write, "wal/").disk_full());
        let waits: Vec<_> = (2..10).map(|xid| wal.flush(insert(&wal, xid))).collect();
        let waiters: Vec<_> = waits
            .into_iter()
            .map(|wait| s.spawn(move || wait.block().unwrap_err()))
            .collect();
        keeper.go_on.send(()).unwrap();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap().code(), state::DISK_FULL);
        }
    });
}

#[test]
fn an_asynchronous_commit_is_flushed_before_long() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    wal.config().writer_delay_us.store(500, Ordering::Relaxed);
    for xid in 1..5 {
        let lsn = insert(&wal, xid);
        wal.request_flush(lsn);
        while wal.flushed() < lsn {
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_asynchronous_commit_waits_for_its_time() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    wal.config()
        .writer_delay_us
        .store(u32::MAX, Ordering::Relaxed);
    let lazy = insert(&wal, 1);
    wal.request_flush(lazy);
    // One that is waited for takes it along.
    wal.flush_blocking(insert(&wal, 2)).unwrap();
    assert!(wal.flushed() > lazy);
}

struct Siblings {
    active: AtomicU32,
    asked: AtomicU32,
}

impl FlushObserver for Siblings {
    fn before_flush(&self) -> u64 {
        0
    }
    fn after_flush(&self, _token: u64, _flushed: Lsn) {}
    fn active_transactions(&self, _enough: u32) -> u32 {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.active.load(Ordering::Relaxed)
    }
}

#[test]
fn commit_delay_applies_only_among_siblings() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let siblings = Arc::new(Siblings {
        active: AtomicU32::new(6),
        asked: AtomicU32::new(0),
    });
    wal.set_flush_observer(Box::new(siblings.clone()));
    let commit = |xid| {
        let lsn = insert(&wal, xid);
        let start = Instant::now();
        wal.flush_blocking(lsn).unwrap();
        start.elapsed()
    };
    commit(1);
    assert_eq!(siblings.asked.load(Ordering::Relaxed), 0);
    // Six are active: the committing one and the five that the default asks for.
    wal.config()
        .commit_delay_us
        .store(20_000, Ordering::Relaxed);
    assert!(commit(2) >= Duration::from_millis(20));
    // With one less nobody waits; that a commit takes less than ten minutes is all that is timed
    // here.
    siblings.active.store(5, Ordering::Relaxed);
    wal.config()
        .commit_delay_us
        .store(600_000_000, Ordering::Relaxed);
    commit(3);
    assert_eq!(siblings.asked.load(Ordering::Relaxed), 2);
}

#[test]
fn an_lsn_that_no_record_has_is_an_error() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let end = insert(&wal, 1);
    let error = wal.flush_blocking(Lsn(end.0 + 1)).unwrap_err();
    assert_eq!(error.code(), state::DATA_CORRUPTED);
    wal.flush_blocking(end).unwrap();
}

#[test]
fn who_asks_for_room_first_waits_without_a_reservation() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let keeper = gated(&wal);
    let first = wal.flush(insert(&wal, 1));
    std::thread::scope(|s| {
        s.spawn(|| first.block().unwrap());
        keeper.ended.recv().unwrap();
        // The flusher is held: the ring fills up.
        while wal.has_room() {
            insert(&wal, 3);
        }
        let mut wait = wal.room_wait();
        assert!(poll(&mut wait).is_pending());
        drop(keeper);
        wait.block().unwrap();
    });
}

#[test]
fn shutdown_flushes_everything_and_ends() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let end = insert(&wal, 1);
    wal.shutdown().unwrap();
    assert_eq!(wal.flushed(), end);
    wal.flush_blocking(end).unwrap();
    let late = insert(&wal, 2);
    assert_eq!(
        wal.flush_blocking(late).unwrap_err().code(),
        state::ADMIN_SHUTDOWN
    );
}

/// Says which threads have flushed.
#[derive(Default)]
struct Flushers(Arc<Mutex<Vec<std::thread::ThreadId>>>);

impl FlushObserver for Flushers {
    fn before_flush(&self) -> u64 {
        0
    }
    fn after_flush(&self, _token: u64, _flushed: Lsn) {
        self.0.lock().unwrap().push(std::thread::current().id());
    }
    fn active_transactions(&self, _enough: u32) -> u32 {
        unreachable!("commit_delay is not set")
    }
}

/// A commit that flushes for itself if the log lets it.
fn commit_here(wal: &Wal, xid: u64) -> throng_types::Result<()> {
    let lsn = insert(wal, xid);
    wal.flush_here();
    wal.flush_blocking(lsn)
}

/// Commits until one has flushed for itself: the log must have seen that the disk is quick.
fn until_flushed_here(wal: &Wal) {
    let flushers = Flushers::default();
    let seen = flushers.0.clone();
    wal.set_flush_observer(Box::new(flushers));
    let me = std::thread::current().id();
    for _ in 0..100_000 {
        commit_here(wal, 120).unwrap();
        if seen.lock().unwrap().contains(&me) {
            return;
        }
    }
    panic!("nobody has flushed for himself");
}

#[test]
fn who_flushes_for_himself_takes_turns_with_the_flusher() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    until_flushed_here(&wal);
    let before = wal.inserted();
    std::thread::scope(|s| {
        for thread in 0..4 {
            let wal = &wal;
            s.spawn(move || {
                for i in 0..200 {
                    let xid = 1000 * thread + i + 1;
                    match thread {
                        0 => wal.flush_blocking(insert(wal, xid)).unwrap(),
                        _ => commit_here(wal, xid).unwrap(),
                    }
                }
            });
        }
    });
    assert_eq!(wal.flushed(), wal.inserted());
    wal.shutdown().unwrap();
    let (mut xids, _) = read_all(&disk, before);
    xids.sort_unstable();
    let expected: Vec<u64> = (0..4)
        .flat_map(|t| (1..=200).map(move |i| 1000 * t + i))
        .collect();
    assert_eq!(xids, expected);
}

#[test]
fn who_fails_to_flush_for_himself_fails_for_everyone() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    until_flushed_here(&wal);
    let (flushed, waits) = (wal.flushed(), wal.flush(insert(&wal, 120)));
    // The segments made ahead are synced too, but never written to before.
    disk.inject(Fault::new(FaultOp::Write, "wal/0"));
    wal.flush_here();
    assert_eq!(
        waits.block().unwrap_err().fields().severity,
        Severity::Panic
    );
    assert_eq!(
        commit_here(&wal, 120).unwrap_err().fields().severity,
        Severity::Panic
    );
    assert_eq!(wal.flushed(), flushed);
    assert!(wal.shutdown().is_err());
}
