//! Guards, reads, waits and mini-transactions, one at a time.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use throng_buffer::{Interrupt, Mtr, Wait, retry, retry_blocking};
use throng_observe::stop;
use throng_types::page::{KIND_HEAP, PAGE_SIZE};
use throng_types::{FileId, Lsn, Xid, error::state};
use throng_wal::{PageOp, Reader, Record, Wal};

use crate::world::{SEGMENT, World, page_of};

/// Pushes every page of file 1 out by reading file 9 through.
fn push_out(world: &World) {
    if !world.files.exists(FileId(9)).unwrap() {
        world.make_file(9, 64, |_| 9);
    }
    for _ in 0..2 {
        for block in 0..64 {
            assert_eq!(world.value(page_of(9, block)), 9);
        }
    }
}

#[test]
fn what_is_written_is_read_back_in_every_way_also_after_eviction() {
    let world = World::new(16);
    world.make_file(1, 4, |block| block as u8 + 10);
    for round in 0..2 {
        for block in 0..4 {
            let page = page_of(1, block);
            let want = block as u8 + 10;
            assert_eq!(world.value(page), want);
            assert_eq!(world.exclusive(page)[5000], want);
            let read = retry_blocking(|| {
                world
                    .pool
                    .read(page, |bytes| (bytes.u8(24), bytes.u64(8184)))
            });
            assert_eq!(read.unwrap(), (want, u64::from_le_bytes([want; 8])));
            let optimistic = retry_blocking(|| world.pool.read_with_version(page)).unwrap();
            assert_eq!(optimistic.page().u8(100), want);
            assert!(optimistic.validate());
        }
        let reads = world.pool.stats().reads;
        push_out(&world);
        assert!(world.pool.stats().evictions > 0, "round {round}");
        assert!(world.pool.stats().reads > reads);
    }
    assert!(world.reports.lock().unwrap().is_empty());
}

#[test]
fn what_the_system_has_in_memory_is_not_waited_for() {
    let world = World::new(16);
    world.make_file(1, 1, |_| 5);
    let look = || world.pool.shared(page_of(1, 0)).map(|page| page[5000]);
    push_out(&world);
    assert!(matches!(look(), Err(Interrupt::Wait(_))));
    push_out(&world);
    world.disk.set_cached(true);
    let reads = world.pool.stats().reads;
    assert!(matches!(look(), Ok(5)));
    assert_eq!(world.pool.stats().reads, reads + 1);
}

#[test]
fn a_version_is_stale_after_a_change_and_only_then() {
    let world = World::new(16);
    world.make_file(1, 1, |_| 1);
    let page = page_of(1, 0);
    let look = || retry_blocking(|| world.pool.read_with_version(page)).unwrap();

    let before = look();
    drop(world.exclusive(page));
    assert!(before.validate(), "nothing was written");
    assert!(before.try_exclusive().is_some());
    assert!(before.try_shared().is_some());
    world.fill(page, 2);
    assert!(!before.validate());
    assert!(before.try_exclusive().is_none() && before.try_shared().is_none());

    let before = look();
    world.exclusive(page).hint(24, 0x40);
    assert!(!before.validate(), "a hint is a change too");
    assert_eq!(
        retry_blocking(|| world.pool.read(page, |p| p.u8(24))).unwrap(),
        0x42
    );

    let astray = look();
    assert_eq!(astray.page().u32(PAGE_SIZE), 0);
    assert!(!astray.validate());
}

#[test]
fn shared_guards_upgrade_only_alone_and_try_exclusive_never_waits() {
    let world = World::new(16);
    world.make_file(1, 1, |_| 1);
    let page = page_of(1, 0);
    let shared = || retry_blocking(|| world.pool.shared(page)).unwrap();
    let (one, other) = (shared(), shared());
    let one = one.try_upgrade().err().expect("two readers");
    assert!(matches!(world.pool.try_exclusive(page), Ok(None)));
    drop(other);
    let exclusive = one.try_upgrade().ok().expect("the only reader");
    assert_eq!(exclusive.page_id(), page);
    drop(exclusive);
    assert!(matches!(world.pool.try_exclusive(page), Ok(Some(_))));
}

#[test]
fn hints_are_lost_with_the_frame_and_dirty_nothing() {
    let world = World::new(16);
    world.make_file(1, 1, |_| 1);
    world.checkpoint().unwrap();
    let writes = world.pool.stats().writes;
    world.exclusive(page_of(1, 0)).hint(24, 2);
    world.checkpoint().unwrap();
    assert_eq!(world.pool.stats().writes, writes);
    push_out(&world);
    assert_eq!(world.value(page_of(1, 0)), 1);
}

#[test]
fn a_page_beyond_the_end_is_an_error_and_so_is_a_file_that_is_not_there() {
    let world = World::new(16);
    world.make_file(1, 1, |_| 1);
    let code = |page| match world.pool.read(page, |bytes| bytes.u8(0)) {
        Err(Interrupt::Error(error)) => error.code(),
        other => panic!("{other:?}"),
    };
    assert_eq!(code(page_of(1, 1)), state::DATA_CORRUPTED);
    assert_eq!(code(page_of(2, 0)), state::UNDEFINED_FILE);
}

struct Wakes(AtomicU32);
impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn sessions_that_miss_one_page_share_one_read_and_may_leave() {
    if !stop::ENABLED {
        return;
    }
    let world = World::new(16);
    // A file of this test's own: stop points are the process's.
    world.make_file(32, 1, |_| 7);
    world.checkpoint().unwrap();
    push_out(&world);
    let page = page_of(32, 0);
    let stop = stop::arm("buffer.page_read").object(page.raw()).block();
    let reads = world.pool.stats().reads;
    let miss = || -> Wait {
        match world.pool.shared(page) {
            Err(Interrupt::Wait(wait)) => wait,
            Err(Interrupt::Error(error)) => panic!("{error:?}"),
            Err(Interrupt::Yield) => panic!("nothing long was read"),
            Ok(_) => panic!("the page was pushed out"),
        }
    };
    let mut waits = [miss(), miss(), miss()];
    stop.wait_until_held(1);
    let wakes = Arc::new(Wakes(AtomicU32::new(0)));
    let waker = Waker::from(wakes.clone());
    let mut context = Context::from_waker(&waker);
    for wait in &mut waits {
        assert!(std::pin::Pin::new(wait).poll(&mut context).is_pending());
    }
    let [mut stays, leaves, also_stays] = waits;
    drop(leaves);
    stop.release();
    also_stays.block().unwrap();
    // That one slept in this thread; the other's waker has been called with it.
    let woken = std::pin::Pin::new(&mut stays).poll(&mut context);
    assert!(matches!(woken, Poll::Ready(Ok(()))));
    assert!(wakes.0.load(Ordering::SeqCst) >= 1);
    assert_eq!(world.pool.stats().reads, reads + 1);
    // Whoever keeps its wait keeps the page, whatever the others do.
    push_out(&world);
    assert!(world.pool.shared(page).is_ok());
    drop(stays);
    push_out(&world);
    assert!(world.pool.shared(page).is_err());
}

#[test]
fn retry_awaits_what_is_missing() {
    let world = World::new(16);
    world.make_file(1, 3, |block| block as u8);
    push_out(&world);
    let sum = retry(|| {
        let mut sum = 0;
        for block in 0..3 {
            sum += u32::from(world.pool.shared(page_of(1, block))?[24]);
        }
        Ok(sum)
    });
    let sum = throng_sync::block_on(sum);
    assert_eq!(sum.unwrap(), 3);
}

/// What the log says of the pages, record by record.
fn log_of(world: &World, from: Lsn) -> Vec<Vec<(u32, usize, bool)>> {
    world.wal.flush_blocking(world.wal.inserted()).unwrap();
    let mut reader = Reader::new(Arc::new(world.disk.clone()), SEGMENT, &Arc::default(), from);
    let mut records = Vec::new();
    while let Some(entry) = reader.next().unwrap() {
        let Record::Pages { edits, .. } = entry.record else {
            panic!("only pages were logged")
        };
        let one = |edit: throng_wal::Edit<'_>| {
            (
                edit.page.block(),
                edit.ops.count(),
                edit.ops.replaces_page(),
            )
        };
        records.push(edits.map(one).collect());
    }
    records
}

#[test]
fn the_first_change_after_a_checkpoint_is_an_image_and_later_ones_are_edits() {
    let world = World::new(16);
    world.make_file(1, 2, |_| 1);
    world.checkpoint().unwrap();
    let from = world.wal.inserted();
    let edit = |at: usize| {
        let mut mtr = Mtr::new(&world.pool, Xid(3));
        let (a, b) = (
            mtr.add(world.exclusive(page_of(1, 0))),
            mtr.add(world.exclusive(page_of(1, 1))),
        );
        mtr.write(a, at, b"hello");
        mtr.move_within(a, at, at + 100, 5);
        assert_eq!(&mtr.page(a)[at + 100..at + 105], b"hello");
        mtr.zero(a, at, 5);
        assert_eq!(mtr.page_id(b), page_of(1, 1));
        let lsn = mtr.commit();
        assert_eq!(world.exclusive(page_of(1, 0)).lsn(), lsn);
        assert!(
            world.exclusive(page_of(1, 1)).lsn() < lsn,
            "it was not edited"
        );
    };
    edit(200);
    edit(300);
    world.checkpoint().unwrap();
    edit(400);
    assert_eq!(
        log_of(&world, from),
        [vec![(0, 1, true)], vec![(0, 3, false)], vec![(0, 1, true)]]
    );
}

#[test]
fn init_logs_one_image_of_the_result() {
    let world = World::new(16);
    world.files.create(FileId(1)).unwrap();
    world.checkpoint().unwrap();
    let from = world.wal.inserted();
    let mut mtr = Mtr::new(&world.pool, Xid(3));
    mtr.add(retry_blocking(|| world.pool.new_page(FileId(1))).unwrap());
    mtr.init(0, KIND_HEAP, 16);
    mtr.write(0, 8176, b"special bytes...");
    let (lsn, guards) = mtr.commit_keep();
    assert_eq!(guards.len(), 1);
    assert_eq!(guards[0].lsn(), lsn);
    let header = |at: usize| u16::from_le_bytes([guards[0][at], guards[0][at + 1]]);
    assert_eq!(
        (guards[0][12], header(14), header(16), header(18)),
        (KIND_HEAP, 24, 8176, 8176)
    );
    drop(guards);
    world.wal.flush_blocking(lsn).unwrap();
    let mut reader = Reader::new(Arc::new(world.disk.clone()), SEGMENT, &Arc::default(), from);
    let entry = reader.next().unwrap().expect("one record");
    assert!(entry.end.0 - entry.start.0 < 150, "the hole is left out");
    let Record::Pages { mut edits, .. } = entry.record else {
        panic!()
    };
    let ops: Vec<_> = edits.next().unwrap().ops.collect();
    assert!(matches!(ops[..], [PageOp::Image { .. }]));
}

#[test]
fn a_mini_transaction_without_edits_logs_nothing() {
    let world = World::new(16);
    world.make_file(1, 1, |_| 1);
    let before = world.wal.inserted();
    let mut mtr = Mtr::new(&world.pool, Xid(3));
    assert!(mtr.is_empty());
    mtr.add(world.exclusive(page_of(1, 0)));
    assert_eq!(mtr.len(), 1);
    assert_eq!(mtr.commit(), Lsn::ZERO);
    let mut dropped = Mtr::new(&world.pool, Xid(3));
    dropped.add(world.exclusive(page_of(1, 0)));
    drop(dropped);
    assert_eq!(world.wal.inserted(), before);
    assert!(
        matches!(world.pool.try_exclusive(page_of(1, 0)), Ok(Some(_))),
        "both let go"
    );
    assert!(before > Wal::FIRST);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "dropped without a commit")]
fn dropping_a_mini_transaction_that_has_edits_is_a_bug() {
    let world = World::new(16);
    world.make_file(1, 1, |_| 1);
    let mut mtr = Mtr::new(&world.pool, Xid(3));
    mtr.add(world.exclusive(page_of(1, 0)));
    mtr.write(0, 100, b"!");
}
