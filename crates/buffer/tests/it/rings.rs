//! Big scans and loads beside pages that others use.

use throng_buffer::{AccessStrategy, Mtr, Ring, retry_blocking};
use throng_types::page::KIND_HEAP;
use throng_types::{FileId, Xid};

use crate::world::{World, page_of};

#[test]
fn a_scan_of_a_big_table_leaves_the_pages_of_others_alone() {
    let world = World::new(64);
    world.make_file(2, 300, |block| block as u8);
    world.make_file(1, 20, |_| 1);
    world.checkpoint().unwrap();
    let use_hot = || (0..20).for_each(|block| assert_eq!(world.value(page_of(1, block)), 1));
    use_hot();
    use_hot();
    let before = world.pool.stats().reads;
    use_hot();
    assert_eq!(world.pool.stats().reads, before, "twenty pages fit");
    let mut ring = Ring::for_scan(&world.pool, 300);
    assert_eq!(ring.strategy(), AccessStrategy::BulkRead);
    for block in 0..300 {
        let guard =
            retry_blocking(|| world.pool.shared_with(page_of(2, block), &mut ring)).unwrap();
        assert_eq!(guard[24], block as u8);
    }
    // Asked without waiting. A page or two may have met the clock's hand twice.
    let stayed = (0..20)
        .filter(|&block| world.pool.shared(page_of(1, block)).is_ok())
        .count();
    assert!(
        stayed >= 18,
        "the scan has pushed pages out: {stayed} of 20 are left"
    );
}

#[test]
fn a_sequential_reader_finds_most_pages_read_ahead() {
    let world = World::new(256);
    world.make_file(1, 400, |block| block as u8);
    world.checkpoint().unwrap();
    let mut ring = Ring::new(AccessStrategy::BulkRead);
    for block in 0..400 {
        let guard =
            retry_blocking(|| world.pool.shared_with(page_of(1, block), &mut ring)).unwrap();
        assert_eq!(guard[24], block as u8);
    }
    // Every page was brought in once at most: what was read ahead was not lost again before its
    // turn.
    assert!(
        world.pool.stats().reads <= 400,
        "{}",
        world.pool.stats().reads
    );
}

#[test]
fn a_load_larger_than_the_pool_is_written_by_the_page_writer() {
    let world = World::new(128);
    world.files.create(FileId(1)).unwrap();
    let mut ring = Ring::new(AccessStrategy::BulkWrite);
    let mut loaded = 0;
    while loaded < 1000 {
        let blocks = retry_blocking(|| world.pool.extend(FileId(1), 16)).unwrap();
        for block in blocks {
            let guard =
                retry_blocking(|| world.pool.exclusive_with(page_of(1, block), &mut ring)).unwrap();
            let mut mtr = Mtr::new(&world.pool, Xid(3));
            mtr.add(guard);
            mtr.init(0, KIND_HEAP, 0);
            mtr.write(0, 100, &block.to_le_bytes());
            mtr.commit();
            loaded += 1;
        }
    }
    let stats = world.pool.stats();
    assert!(stats.writes > 500);
    for block in 0..loaded {
        let seen =
            retry_blocking(|| world.pool.read(page_of(1, block), |page| page.u32(100))).unwrap();
        assert_eq!(seen, block);
    }
}
