//! Power is lost at any moment: what was flushed is there, what was not is there whole or not at
//! all, and no page is torn.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use throng_buffer::{Mtr, PoolConfig, page_is_intact, retry_blocking};
use throng_disk::SimDisk;
use throng_types::page::{KIND_HEAP, PAGE_SIZE};
use throng_types::{BlockNo, FileId, Xid};

use crate::world::{Rng, World, page_of};

const BLOCKS: u64 = 50;
const WORKERS: u64 = 3;
/// A page's balance; the sum over all pages is zero after every mini-transaction.
const BALANCE: usize = 32;
/// How many mini-transactions have changed the page.
const EDITS: usize = 40;
/// Bytes that all say the same: the low byte of EDITS. The second half is moved there from the
/// first.
const PATTERN: usize = 64;
const HALF: usize = 2000;

fn number(page: &[u8; PAGE_SIZE], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().unwrap())
}

fn make_pages(world: &World) {
    world.files.create(FileId(1)).unwrap();
    world.files.sync_names().unwrap();
    for _ in 0..BLOCKS {
        let mut mtr = Mtr::new(&world.pool, Xid(3));
        mtr.add(retry_blocking(|| world.pool.new_page(FileId(1))).unwrap());
        mtr.init(0, KIND_HEAP, (PAGE_SIZE - 32) as u16);
        world.wal.flush_blocking(mtr.commit()).unwrap();
    }
}

/// Moves money between a few pages, now and then waiting for it to be durable. `durable[block]` is
/// then how many changes of the page are known to be.
fn work(world: &World, seed: u64, durable: &[AtomicU64], done: &AtomicU64, over: &AtomicBool) {
    let mut rng = Rng(seed);
    while !over.load(Ordering::Relaxed) {
        let mut blocks: Vec<u64> = (0..2 + rng.below(2)).map(|_| rng.below(BLOCKS)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let guards = retry_blocking(|| {
            blocks
                .iter()
                .map(|&block| world.pool.exclusive(page_of(1, block as BlockNo)))
                .collect::<Result<Vec<_>, _>>()
        });
        let mut mtr = Mtr::new(&world.pool, Xid(3));
        guards.unwrap().into_iter().for_each(|guard| {
            mtr.add(guard);
        });
        let mut edits = Vec::new();
        let mut owed = 0u64;
        for index in 0..blocks.len() {
            let amount = if index + 1 == blocks.len() {
                owed.wrapping_neg()
            } else {
                rng.next()
            };
            owed = owed.wrapping_add(amount);
            let balance = number(mtr.page(index), BALANCE).wrapping_add(amount);
            let count = number(mtr.page(index), EDITS) + 1;
            mtr.write(index, BALANCE, &balance.to_le_bytes());
            mtr.write(index, EDITS, &count.to_le_bytes());
            mtr.zero(index, PATTERN + HALF, HALF);
            mtr.write(index, PATTERN, &[count as u8; HALF]);
            mtr.move_within(index, PATTERN, PATTERN + HALF, HALF);
            edits.push(count);
        }
        let lsn = mtr.commit();
        if rng.below(3) == 0 {
            world.wal.flush_blocking(lsn).unwrap();
            for (&block, &count) in blocks.iter().zip(&edits) {
                durable[block as usize].fetch_max(count, Ordering::SeqCst);
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// What must hold after recovery, and how many changes each page has seen.
fn check(world: &World, at_least: &[u64]) -> Vec<u64> {
    let mut sum = 0u64;
    let mut edits = Vec::new();
    for block in 0..BLOCKS as BlockNo {
        let page = retry_blocking(|| world.pool.shared(page_of(1, block))).unwrap();
        let count = number(&page, EDITS);
        let known = at_least[block as usize];
        assert!(
            count >= known,
            "block {block} has {count} changes, {known} were durable"
        );
        assert!(
            page[PATTERN..PATTERN + 2 * HALF]
                .iter()
                .all(|&b| b == count as u8),
            "block {block} is torn"
        );
        sum = sum.wrapping_add(number(&page, BALANCE));
        edits.push(count);
    }
    assert_eq!(sum, 0, "a mini-transaction is there in part");
    edits
}

/// Runs the load, takes images of the disk at several moments, and recovers each of them. Returns
/// the last image and what it must hold.
fn run(world: &World, start: &[u64], images: u64, seed: u64) -> (SimDisk, Vec<u64>) {
    let durable: Vec<AtomicU64> = start.iter().map(|&count| AtomicU64::new(count)).collect();
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut last = None;
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (durable, done, over) = (&durable, &done, &over);
            scope.spawn(move || work(world, seed * 100 + worker, durable, done, over));
        }
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                world.checkpoint().unwrap();
            }
        });
        for image in 0..images {
            let target = done.load(Ordering::Relaxed) + 150;
            while done.load(Ordering::Relaxed) < target {
                std::thread::yield_now();
            }
            let known: Vec<u64> = durable
                .iter()
                .map(|count| count.load(Ordering::SeqCst))
                .collect();
            let disk = world.disk.crash_image(seed * 1000 + image);
            let recovered = World::recover(disk.clone(), PoolConfig::MIN_FRAMES);
            check(&recovered, &known);
            last = Some((disk.crash_image(image), known));
        }
        over.store(true, Ordering::Relaxed);
    });
    last.expect("at least one image")
}

#[test]
fn every_committed_change_survives_any_crash_and_none_is_there_in_part() {
    for seed in 0..3 {
        let world = World::new(PoolConfig::MIN_FRAMES);
        make_pages(&world);
        let start = vec![0; BLOCKS as usize];
        let (mut image, mut known) = run(&world, &start, 5, seed);
        drop(world);
        // And again from what was left, with a crash during that recovery's own life.
        for generation in 0..3 {
            let world = World::recover(image, PoolConfig::MIN_FRAMES + 8);
            let start = check(&world, &known);
            world.checkpoint().unwrap();
            for block in 0..BLOCKS as BlockNo {
                let mut page = Box::new([0; PAGE_SIZE]);
                world.files.read_page(page_of(1, block), &mut page).unwrap();
                assert!(page_is_intact(page_of(1, block), &page));
            }
            (image, known) = run(&world, &start, 2, seed * 10 + generation + 50);
        }
    }
}
