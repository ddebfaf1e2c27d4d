//! Many threads, few frames: every page carries a pattern that tells when it is torn, lost or
//! someone else's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use throng_buffer::{AccessStrategy, Mtr, PageRef, PoolConfig, Ring, Try, retry_blocking};
use throng_types::page::{KIND_HEAP, PAGE_SIZE};
use throng_types::{BlockNo, FileId, PageId, Xid};

use crate::world::{Rng, World, page_of};

/// Eight-byte words of a page that hold its pattern: from here to the page's end.
const FIRST: usize = 32;

/// Block number and count of edits, in every word.
fn word(block: BlockNo, edits: u32) -> u64 {
    u64::from(block) << 32 | u64::from(edits)
}

fn make_pages(world: &World, blocks: BlockNo) {
    world.files.create(FileId(1)).unwrap();
    for block in 0..blocks {
        let mut mtr = Mtr::new(&world.pool, Xid(3));
        mtr.add(retry_blocking(|| world.pool.new_page(FileId(1))).unwrap());
        mtr.init(0, KIND_HEAP, (PAGE_SIZE - FIRST) as u16);
        write_pattern(&mut mtr, 0, word(block, 0));
        mtr.commit();
    }
}

fn write_pattern(mtr: &mut Mtr<'_>, index: usize, word: u64) {
    // In pieces, so that an interrupted or torn edit shows.
    for at in (FIRST..PAGE_SIZE).step_by(512) {
        let len = 512.min(PAGE_SIZE - at);
        mtr.write(index, at, &word.to_le_bytes().repeat(len / 8));
    }
}

/// The pattern's word, if all words are the same.
fn read_pattern(page: &PageRef<'_>) -> Option<u64> {
    let first = page.u64(FIRST);
    (FIRST..PAGE_SIZE)
        .step_by(8)
        .all(|at| page.u64(at) == first)
        .then_some(first)
}

fn edits_of(page: PageId, pattern: Option<u64>) -> u32 {
    let word = pattern.unwrap_or_else(|| panic!("page {page} is torn"));
    assert_eq!(
        (word >> 32) as BlockNo,
        page.block(),
        "page {page} is another"
    );
    word as u32
}

#[test]
fn no_edit_is_lost_and_no_read_is_torn() {
    for is_cached in [false, true] {
        edit_and_read(is_cached);
    }
}

fn edit_and_read(is_cached: bool) {
    const BLOCKS: u64 = 120;
    const THREADS: u64 = 5;
    let world = World::new(24);
    world.disk.set_cached(is_cached);
    make_pages(&world, BLOCKS as BlockNo);
    let done: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
    let over = AtomicBool::new(false);
    let pool = &world.pool;

    let editor = |seed: u64| {
        let mut rng = Rng(seed);
        for _ in 0..1500 {
            // Some pages are hot.
            let block = if rng.below(2) == 0 {
                rng.below(8)
            } else {
                rng.below(BLOCKS)
            };
            let page = page_of(1, block as BlockNo);
            match rng.below(4) {
                0 | 1 => {
                    let mut mtr = Mtr::new(pool, Xid(3));
                    mtr.add(retry_blocking(|| pool.exclusive(page)).unwrap());
                    let edits =
                        u32::from_le_bytes(mtr.page(0)[FIRST..FIRST + 4].try_into().unwrap());
                    write_pattern(&mut mtr, 0, word(page.block(), edits + 1));
                    mtr.commit();
                    done[block as usize].fetch_add(1, Ordering::Relaxed);
                }
                2 => {
                    let seen = retry_blocking(|| pool.read(page, read_pattern)).unwrap();
                    edits_of(page, seen);
                }
                _ => {
                    let guard = retry_blocking(|| pool.shared(page)).unwrap();
                    edits_of(page, read_pattern(&guard.page()));
                }
            }
        }
    };
    let scanner = || {
        let mut last = vec![0; BLOCKS as usize];
        while !over.load(Ordering::Relaxed) {
            let mut ring = Ring::new(AccessStrategy::BulkRead);
            for block in 0..BLOCKS as BlockNo {
                let page = page_of(1, block);
                let guard = retry_blocking(|| pool.shared_with(page, &mut ring)).unwrap();
                let edits = edits_of(page, read_pattern(&guard.page()));
                assert!(
                    edits >= last[block as usize],
                    "page {page} went back in time"
                );
                last[block as usize] = edits;
            }
        }
    };
    std::thread::scope(|scope| {
        let editors: Vec<_> = (0..THREADS)
            .map(|seed| scope.spawn(move || editor(seed)))
            .collect();
        scope.spawn(scanner);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                world.checkpoint().unwrap();
            }
        });
        let results: Vec<_> = editors.into_iter().map(|editor| editor.join()).collect();
        over.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
    for (block, done) in done.iter().enumerate() {
        let page = page_of(1, block as BlockNo);
        let seen = retry_blocking(|| pool.read(page, read_pattern)).unwrap();
        assert_eq!(
            u64::from(edits_of(page, seen)),
            done.load(Ordering::Relaxed),
            "page {page}"
        );
    }
    assert!(world.reports.lock().unwrap().is_empty());
    assert!(
        world.pool.stats().evictions > 1000,
        "the pool was too large to prove anything"
    );
}

/// Every attempt needs four pages at once, and there are four times as many threads as fit.
#[test]
fn sessions_that_need_several_pages_get_on_in_the_smallest_pool() {
    const BLOCKS: u64 = 100;
    let world = World::new(PoolConfig::MIN_FRAMES);
    make_pages(&world, BLOCKS as BlockNo);
    let pool = &world.pool;
    std::thread::scope(|scope| {
        for seed in 0..16 {
            scope.spawn(move || {
                let mut rng = Rng(seed);
                for _ in 0..40 {
                    let mut pages: Vec<PageId> = (0..4)
                        .map(|_| page_of(1, rng.below(BLOCKS) as BlockNo))
                        .collect();
                    pages.sort_unstable();
                    pages.dedup();
                    let attempt = || -> Try<()> {
                        let guards: Vec<_> = pages
                            .iter()
                            .map(|&page| pool.exclusive(page))
                            .collect::<Try<_>>()?;
                        for guard in &guards {
                            edits_of(guard.page_id(), read_pattern(&guard.page()));
                        }
                        Ok(())
                    };
                    retry_blocking(attempt).unwrap();
                }
            });
        }
    });
}
