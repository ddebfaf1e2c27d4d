//! Files that grow under many hands, shrink, and go while they are being written.

use std::sync::atomic::{AtomicBool, Ordering};

use throng_buffer::{Mtr, retry_blocking};
use throng_observe::stop;
use throng_types::page::KIND_HEAP;
use throng_types::{FileId, Xid};

use crate::world::{World, page_of};

#[test]
fn many_threads_extend_one_file_and_every_block_is_given_out_once() {
    let world = World::new(64);
    world.files.create(FileId(1)).unwrap();
    let extend = |thread: u32| {
        let mut mine = Vec::new();
        while mine.len() < 100 {
            let blocks = retry_blocking(|| {
                world
                    .pool
                    .extend(FileId(1), 1 + (thread + mine.len() as u32) % 7)
            });
            for block in blocks.unwrap() {
                let mut mtr = Mtr::new(&world.pool, Xid(3));
                mtr.add(world.exclusive(page_of(1, block)));
                assert!(
                    mtr.page(0).iter().all(|&byte| byte == 0),
                    "block {block} is somebody else's"
                );
                mtr.init(0, KIND_HEAP, 0);
                mtr.write(0, 100, &thread.to_le_bytes());
                mtr.commit();
                mine.push((block, thread));
            }
        }
        mine
    };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| scope.spawn(move || extend(thread)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    all.sort_unstable();
    assert_eq!(all.len() as u32, world.pool.blocks(FileId(1)).unwrap());
    for (expected, (block, thread)) in all.into_iter().enumerate() {
        assert_eq!(block, expected as u32);
        let seen = retry_blocking(|| world.pool.read(page_of(1, block), |page| page.u32(100)));
        assert_eq!(seen.unwrap(), thread);
    }
}

#[test]
fn a_truncated_file_grows_again_with_zeros() {
    let world = World::new(16);
    world.make_file(1, 30, |_| 5);
    world.pool.truncate(FileId(1), 10).unwrap();
    assert_eq!(world.pool.blocks(FileId(1)).unwrap(), 10);
    assert!(world.pool.shared(page_of(1, 10)).is_err());
    for _ in 10..30 {
        let guard = retry_blocking(|| world.pool.new_page(FileId(1))).unwrap();
        assert!(guard.iter().all(|&byte| byte == 0));
    }
    (0..10).for_each(|block| assert_eq!(world.value(page_of(1, block)), 5));
    let zero = retry_blocking(|| world.pool.read(page_of(1, 29), |page| page.u64(4000))).unwrap();
    assert_eq!(zero, 0);
}

#[test]
fn a_dropped_file_leaves_no_page_and_may_come_back() {
    let world = World::new(16);
    for round in 0..10 {
        world.make_file(1, 12, |_| round);
        (0..12).for_each(|block| world.pool.prefetch(page_of(1, block)));
        world.pool.drop_file(FileId(1)).unwrap();
        assert!(!world.files.exists(FileId(1)).unwrap());
        let stats = world.pool.stats();
        assert_eq!((stats.valid, stats.dirty), (0, 0));
        assert_eq!(stats.free, stats.frames, "round {round}");
    }
}

#[test]
fn dropping_a_file_waits_for_the_page_that_is_being_written() {
    if !stop::ENABLED {
        return;
    }
    let world = World::new(32);
    // A file of this test's own: stop points are the process's.
    world.make_file(31, 4, |_| 1);
    let stop = stop::arm("buffer.page_write")
        .object(page_of(31, 2).raw())
        .block();
    let dropped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| world.pool.flush_for_checkpoint(&mut |_, _| ()));
        stop.wait_until_held(1);
        let dropper = scope.spawn(|| {
            world.pool.drop_file(FileId(31)).unwrap();
            dropped.store(true, Ordering::SeqCst);
        });
        // It takes the other pages out and stops at this one.
        while world.pool.stats().valid > 2 {
            std::thread::yield_now();
        }
        assert!(!dropped.load(Ordering::SeqCst));
        assert!(world.files.exists(FileId(31)).unwrap());
        stop.release();
        writer.join().unwrap().unwrap();
        dropper.join().unwrap();
    });
    assert!(!world.files.exists(FileId(31)).unwrap());
    assert_eq!(world.pool.stats().free, 32);
    assert!(world.reports.lock().unwrap().is_empty());
}
