//! Values stored out of line.

use super::*;
use crate::heap::large::{CHUNK, LargeRead, LargeRef, LargeWrite};

fn store(world: &World, ctx: &Ctx<'_>, value: &[u8]) -> LargeRef {
    let mut progress = LargeWrite::default();
    retry_blocking(|| world.heap.store_large(ctx, value, &mut progress)).unwrap()
}

fn read(world: &World, large: &LargeRef) -> throng_types::Result<Vec<u8>> {
    let mut progress = LargeRead::default();
    let mut out = vec![0; large.len as usize];
    retry_blocking(|| world.heap.read_large(large, &mut progress, &mut out)).map(|()| out)
}

fn value(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 / 7) as u8).collect()
}

#[test]
fn values_come_back_and_their_pages_are_used_again() {
    // Fewer frames than the longest value has pages: storing and reading are interrupted and go on.
    let (world, txns) = (World::new(32), Txns::new());
    let lens = [0, 1, CHUNK, CHUNK + 1, 3 * CHUNK, 100 * CHUNK + 17];
    let ctx = txns.begin();
    let stored: Vec<LargeRef> = lens
        .iter()
        .map(|&len| store(&world, &ctx, &value(len)))
        .collect();
    ctx.commit();
    for (large, len) in stored.iter().zip(lens) {
        assert!(
            read(&world, large).unwrap() == value(len),
            "a value of {len} bytes"
        );
    }
    world.check(&|_| false);
    let blocks = world.blocks();

    // Dropped and rolled back: still there. Dropped and committed: there for older snapshots, then
    // gone.
    let ctx = txns.begin();
    retry_blocking(|| world.heap.drop_large(&ctx, &stored[5])).unwrap();
    ctx.abort();
    let old = txns.snapshot();
    let ctx = txns.begin();
    for large in &stored[3..] {
        retry_blocking(|| world.heap.drop_large(&ctx, large)).unwrap();
    }
    ctx.commit();
    let cleaner = txns.begin();
    world.vacuum(&cleaner, |_| {});
    assert!(
        read(&world, &stored[5]).unwrap() == value(lens[5]),
        "a snapshot still wants it"
    );
    txns.release(&old);
    world.vacuum(&cleaner, |_| {});
    assert!(read(&world, &stored[5]).is_err());
    assert!(read(&world, &stored[2]).unwrap() == value(CHUNK));
    world.check(&|_| false);

    let ctx = txns.begin();
    let again = store(&world, &ctx, &value(lens[5]));
    ctx.commit();
    assert!(world.blocks() <= blocks + 1, "freed pages are used first");
    assert!(read(&world, &again).unwrap() == value(lens[5]));
    world.check(&|_| false);
    world.assert_redo_gives_the_same();
}

#[test]
fn what_a_rolled_back_transaction_stored_is_freed() {
    let (world, txns) = (World::new(64), Txns::new());
    let ctx = txns.begin();
    let lost = store(&world, &ctx, &value(10 * CHUNK));
    let xid = ctx.xid;
    ctx.abort();
    world.check(&|x| x == xid);
    let ctx = txns.begin();
    world.vacuum(&ctx, |_| {});
    assert!(read(&world, &lost).is_err());
    assert_eq!(retry_blocking(|| world.heap.truncate_tail()).unwrap(), 0);
    ctx.commit();
}

#[test]
fn rows_and_values_share_a_file() {
    let (world, txns) = (World::new(64), Txns::new());
    let ctx = txns.begin();
    let mut kept = Vec::new();
    for i in 0..40u32 {
        let large = store(&world, &ctx, &value(CHUNK + i as usize));
        let row = [&i.to_le_bytes()[..], &large.to_bytes()[..]].concat();
        retry_blocking(|| world.heap.insert(&ctx, &row)).unwrap();
        kept.push((i, large));
    }
    ctx.commit();
    let mut rows: Vec<Vec<u8>> = world
        .scan(&txns.snapshot())
        .iter()
        .map(|(_, row)| row.to_vec())
        .collect();
    rows.sort_unstable();
    assert_eq!(rows.len(), 40);
    for (i, large) in kept {
        assert!(
            rows.iter()
                .any(|row| row[..4] == i.to_le_bytes() && row[4..] == large.to_bytes())
        );
        assert!(read(&world, &large).unwrap() == value(CHUNK + i as usize));
    }
    world.check(&|_| false);
}
