//! The pool with its threads, on a real log and a disk in memory, under schedules drawn by lot.
//!
//! Threads read, change, evict and miss pages of a pool that has not room for them, vanish while
//! they wait, and write checkpoints. No change is lost, no read is torn, no page shows another's
//! bytes, and nobody sleeps for ever. Threads that make a file longer than the pool, some of which
//! vanish in the line for a frame, all get one.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};

use throng_buffer::{Interrupt, Mtr, PageRef, PoolConfig, Try, retry_blocking};
use throng_sync::schedules::{below, check, one_in};
use throng_sync::thread;
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, FileId, PageId, Xid};

use crate::world::{World, page_of};

const FILE: u32 = 1;
const BLOCKS: BlockNo = PoolConfig::MIN_FRAMES as BlockNo + 3;
const THREADS: u32 = 3;
const STEPS: u32 = 5;

/// The page's pattern: its block and how often it was changed, at each of these places.
const PLACES: [usize; 3] = [24, 4096, PAGE_SIZE - 8];

struct Scene {
    world: World,
    /// Changes committed, by block.
    changes: [AtomicU64; BLOCKS as usize],
}

fn pattern(block: BlockNo, changes: u64) -> u64 {
    u64::from(block) << 32 | changes
}

/// The page's number of changes, if it is whole. Others have a turn between any two looks.
fn look(page: &PageRef<'_>) -> [u64; PLACES.len()] {
    PLACES.map(|at| {
        thread::yield_now();
        page.u64(at)
    })
}

fn changes_in(page: PageId, seen: [u64; PLACES.len()]) -> u64 {
    assert!(
        seen.iter().all(|&word| word == seen[0]),
        "page {page} is torn: {seen:x?}"
    );
    if seen[0] == 0 {
        return 0;
    }
    assert_eq!(
        (seen[0] >> 32) as BlockNo,
        page.block(),
        "page {page} is another"
    );
    seen[0] & 0xFFFF_FFFF
}

impl Scene {
    fn new() -> Arc<Scene> {
        // How long waits are is not asked here.
        throng_observe::track(false);
        let world = World::new(PoolConfig::MIN_FRAMES);
        // Pages of zeros are valid and new.
        world.files.create(FileId(FILE)).unwrap();
        world.files.ensure(FileId(FILE), BLOCKS).unwrap();
        Arc::new(Scene {
            world,
            changes: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    /// As many changes as were committed when this was asked, at least, must be seen afterwards.
    fn committed(&self, page: PageId) -> u64 {
        self.changes[page.block() as usize].load(Ordering::Relaxed)
    }

    fn step(&self) {
        let page = page_of(FILE, below(BLOCKS));
        let pool = &self.world.pool;
        match below(7) {
            0..=2 => self.change(page),
            3 => {
                let before = self.committed(page);
                let seen = retry_blocking(|| pool.read(page, look)).unwrap();
                assert!(
                    changes_in(page, seen) >= before,
                    "page {page} went back in time"
                );
            }
            4 => {
                let before = self.committed(page);
                let guard = retry_blocking(|| pool.shared(page)).unwrap();
                let seen = look(&guard.page());
                assert!(
                    changes_in(page, seen) >= before,
                    "page {page} went back in time"
                );
            }
            5 => self.two_at_once(),
            _ => {
                // Asks for a page and goes away.
                if let Err(Interrupt::Wait(wait)) = pool.shared(page) {
                    thread::yield_now();
                    drop(wait);
                }
            }
        }
    }

    fn change(&self, page: PageId) {
        let pool = &self.world.pool;
        let mut mtr = Mtr::new(pool, Xid(3));
        mtr.add(retry_blocking(|| pool.exclusive(page)).unwrap());
        let seen = PLACES.map(|at| {
            let bytes = &mtr.page(0)[at..at + 8];
            u64::from_le_bytes(bytes.try_into().unwrap())
        });
        let word = pattern(page.block(), changes_in(page, seen) + 1);
        for at in PLACES {
            thread::yield_now();
            mtr.write(0, at, &word.to_le_bytes());
        }
        mtr.commit();
        self.changes[page.block() as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Latches two pages, in order, as a split does: a page that is missing starts the attempt
    /// over.
    fn two_at_once(&self) {
        let (low, high) = (below(BLOCKS), below(BLOCKS));
        let pool = &self.world.pool;
        let attempt = || -> Try<()> {
            let first = pool.exclusive(page_of(FILE, low.min(high)))?;
            if low != high {
                let second = pool.exclusive(page_of(FILE, low.max(high)))?;
                changes_in(second.page_id(), look(&second.page()));
            }
            changes_in(first.page_id(), look(&first.page()));
            Ok(())
        };
        retry_blocking(attempt).unwrap();
    }

    /// Every page has all of its changes, in memory and, after a checkpoint, on disk.
    fn settle(&self) {
        self.world.checkpoint().unwrap();
        for block in 0..BLOCKS {
            let page = page_of(FILE, block);
            let mut bytes = [0; PAGE_SIZE];
            self.world.files.read_page(page, &mut bytes).unwrap();
            let on_disk = PLACES.map(|at| {
                let bytes = &bytes[at..at + 8];
                u64::from_le_bytes(bytes.try_into().unwrap())
            });
            assert_eq!(
                changes_in(page, on_disk),
                self.committed(page),
                "a change of page {page} never reached the disk"
            );
        }
        assert!(self.world.reports.lock().unwrap().is_empty());
    }
}

#[test]
fn no_change_is_lost_and_no_read_is_torn_under_any_schedule() {
    check(8_000, || {
        let scene = Scene::new();
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let scene = scene.clone();
                thread::spawn(move || (0..STEPS).for_each(|_| scene.step()))
            })
            .collect();
        if one_in(2) {
            scene.world.checkpoint().unwrap();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        scene.settle();
    });
}

/// Who is not there any more when he is called.
struct Gone;

impl Wake for Gone {
    fn wake(self: Arc<Self>) {}
}

/// Makes the file a page longer and changes that: it takes the page writer to make room for the
/// next.
fn grow(world: &World) {
    let pool = &world.pool;
    let blocks = retry_blocking(|| pool.extend(FileId(FILE), 1)).unwrap();
    let mut mtr = Mtr::new(pool, Xid(3));
    mtr.add(retry_blocking(|| pool.exclusive(page_of(FILE, blocks.start))).unwrap());
    mtr.write(0, PLACES[0], &pattern(blocks.start, 1).to_le_bytes());
    mtr.commit();
}

/// Stands in line for a frame, unless there is one, and goes away.
fn stand_in_line_and_go(world: &World) {
    if let Err(Interrupt::Wait(wait)) = world.pool.extend(FileId(FILE), 1) {
        let waker = Waker::from(Arc::new(Gone));
        let _ = pin!(wait).poll(&mut Context::from_waker(&waker));
        thread::yield_now();
    }
}

#[test]
fn whoever_waits_for_a_frame_gets_one_under_any_of_these_schedules() {
    check(4_000, || {
        throng_observe::track(false);
        let world = World::new(PoolConfig::MIN_FRAMES);
        world.files.create(FileId(FILE)).unwrap();
        let world = Arc::new(world);
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || {
                    for _ in 0..PoolConfig::MIN_FRAMES {
                        match one_in(4) {
                            true => stand_in_line_and_go(&world),
                            false => grow(&world),
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(world.reports.lock().unwrap().is_empty());
    });
}
