//! Files that grow under many hands, shrink, and go while they are being written.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use throng_buffer::{Extended, Extension, Mtr, Victims, retry_blocking};
use throng_disk::{Fault, FaultOp};
use throng_observe::stop;
use throng_sync::Nodes;
use throng_sync::topology::Topology;
use throng_types::page::KIND_HEAP;
use throng_types::{FileId, Xid};

use crate::world::{World, extensions, page_of};

#[test]
fn many_threads_extend_one_file_and_every_block_is_given_out_once() {
    for extension in extensions() {
        for nodes in [Nodes::one(), Nodes::of(&Topology::fake(&[0, 1], 2))] {
            extend_with_many_threads(&World::with(64, extension, nodes));
        }
    }
}

fn extend_with_many_threads(world: &World) {
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

/// Four threads are at a file without room, one of them ahead: it makes the file longer once, by
/// enough for all, and the others find what it has offered instead of making it longer again.
#[test]
fn those_that_wait_for_an_extension_look_again_instead_of_extending_too() {
    if !stop::ENABLED {
        return;
    }
    const THREADS: usize = 4;
    for (extension, file) in extensions().filter(|form| form.bulk > 1).zip(61..) {
        let world = World::with(64, extension, Nodes::one());
        let file = FileId(file);
        world.files.create(file).unwrap();
        let offered = Mutex::new(Vec::new());
        let stop = stop::arm("buffer.extend").object(file.0.into()).block();
        let claim = || {
            let offer = |mut new: std::ops::Range<u32>| {
                // The first is the caller's own.
                new.next();
                offered.lock().unwrap().extend(new);
            };
            let look = || Ok(offered.lock().unwrap().pop());
            let pool = &world.pool;
            match retry_blocking(|| pool.extend_or_find(file, 8, 0, look, offer)).unwrap() {
                Extended::By(new) => (new.start, true),
                Extended::Found(block) => (block, false),
            }
        };
        let mut claims: Vec<(u32, bool)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(claim)).collect();
            stop.wait_until_held(1);
            // The others come to the lock now or after it is free: either way they are late.
            stop.release();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        claims.sort_unstable();
        claims.dedup_by_key(|claim| claim.0);
        assert_eq!(claims.len(), THREADS, "{extension:?}: a block for each");
        let extended = claims.iter().filter(|(_, extended)| *extended).count();
        assert_eq!(extended, 1, "{extension:?}");
        assert_eq!(world.pool.blocks(file).unwrap(), 8, "{extension:?}");
    }
}

#[test]
fn an_extension_that_fails_leaves_no_page_and_no_frame_behind() {
    for extension in extensions() {
        let world = World::with(32, extension, Nodes::one());
        let file = FileId(1);
        world.files.create(file).unwrap();
        world.disk.set_capacity(world.disk.used());
        let refused = retry_blocking(|| world.pool.extend(file, 8)).unwrap_err();
        assert_eq!(refused.code(), throng_types::error::state::DISK_FULL);
        let stats = world.pool.stats();
        assert_eq!((stats.valid, stats.free), (0, 32), "{extension:?}");
        world.disk.set_capacity(u64::MAX);
        assert_eq!(
            retry_blocking(|| world.pool.extend(file, 1)).unwrap(),
            0..1,
            "{extension:?}"
        );
    }
}

/// Case 5's next bottleneck: who makes a file longer writes nobody's pages, unless the pool is
/// opened to do so.
#[test]
fn victims_are_written_by_who_extends_only_where_that_is_asked_for() {
    for victims in [Victims::Outside, Victims::Inside] {
        let extension = Extension {
            victims,
            ..Extension::default()
        };
        let world = World::with(32, extension, Nodes::one());
        world.make_file(1, 200, |block| block as u8);
        let written = world.pool.stats().foreground_writes;
        assert_eq!(
            written > 0,
            victims == Victims::Inside,
            "{victims:?}: {written} pages"
        );
        (0..200).for_each(|block| assert_eq!(world.value(page_of(1, block)), block as u8));
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
    world.checkpoint().unwrap();
    world.fill(page_of(31, 2), 2);
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

#[test]
fn what_a_checkpoint_writes_is_sent_on_to_the_disk_bit_by_bit() {
    let world = World::new(64);
    world.make_file(1, 50, |_| 1);
    world.make_file(2, 10, |_| 1);
    // The smaller file's ten pages are left to the sync.
    for (flush_after, expected) in [(32, 1), (16, 3), (0, 0)] {
        let knob = &world.pool.flush_after().checkpoint;
        knob.store(flush_after, Ordering::Relaxed);
        for page in (0..50)
            .map(|block| page_of(1, block))
            .chain((0..10).map(|block| page_of(2, block)))
        {
            world.fill(page, 2);
        }
        let before = world.disk.writebacks("base/");
        world.checkpoint().unwrap();
        assert_eq!(world.disk.writebacks("base/") - before, expected);
    }
}

#[test]
fn a_checkpoint_writes_neighbours_together_and_fails_with_any_of_them() {
    let world = World::new(64);
    world.make_file(1, 40, |_| 1);
    world.checkpoint().unwrap();
    // Blocks 4 to 19 are one piece, 30 and 31 another.
    let dirty = || (4..20).chain(30..32).map(|block| page_of(1, block));
    for page in dirty() {
        world.fill(page, 2);
    }
    world
        .disk
        .inject(Fault::new(FaultOp::Write, "base/1").after(2));
    world.checkpoint().unwrap();

    // A write that fails leaves all its pages dirty.
    world.disk.clear_faults();
    for page in dirty() {
        world.fill(page, 3);
    }
    world
        .disk
        .inject(Fault::new(FaultOp::Write, "base/1").after(1).times(1));
    assert!(world.checkpoint().is_err());
    assert_eq!(world.pool.stats().dirty, 2);
}
