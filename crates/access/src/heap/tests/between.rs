//! Versions that only came and went while somebody looked at the table for long.

use super::changes::{insert, moved};
use super::*;
use crate::heap::Change;

fn one_row() -> (World, Txns, Tid) {
    let (world, txns) = (World::new(64), Txns::new());
    let ctx = txns.begin();
    let root = insert(&world, &ctx, &number(0));
    ctx.commit();
    (world, txns, root)
}

/// Commits an update of the version, and returns the next one.
fn replace(world: &World, txns: &Txns, tid: Tid, row: &[u8], mode: RowLockMode) -> Tid {
    let ctx = Ctx {
        cid: Cid(1),
        ..txns.begin()
    };
    let change = retry_blocking(|| world.heap.update(&ctx, tid, row, mode, true));
    let next = moved(change.unwrap());
    ctx.commit();
    next
}

fn fetch(world: &World, root: Tid, snap: &Snap<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let found = retry_blocking(|| world.heap.fetch(root, snap, &mut out)).unwrap();
    found.map(|_| out)
}

fn number(n: usize) -> Vec<u8> {
    let mut row = n.to_le_bytes().to_vec();
    row.resize(300, 7);
    row
}

fn tuples(page: &[u8; PAGE_SIZE]) -> usize {
    let slots = 1..=page::slot_count(page);
    slots
        .filter(|&slot| page::tuple(page, slot).is_some())
        .count()
}

#[test]
fn a_row_that_a_crowd_changes_stays_on_its_page_beside_long_readers() {
    let (world, txns, root) = one_row();
    let mut readers = Vec::new();
    let mut tid = root;
    for n in 1..=2000 {
        if n % 500 == 1 {
            readers.push((n - 1, txns.reading()));
        }
        tid = replace(&world, &txns, tid, &number(n), RowLockMode::NoKeyUpdate);
    }
    assert_eq!(world.blocks(), 1);
    for (n, reader) in &readers {
        assert_eq!(fetch(&world, root, reader), Some(number(*n)));
        assert_eq!(world.scan(reader).len(), 1);
    }
    assert_eq!(fetch(&world, root, &txns.snapshot()), Some(number(2000)));
    world.check(&|xid| txns.status(xid) == XidStatus::Aborted);
    world.assert_redo_gives_the_same();
}

#[test]
fn beside_one_who_may_follow_the_row_all_versions_stay() {
    let (world, txns, root) = one_row();
    let (_reader, _follower) = (txns.reading(), txns.snapshot());
    let mut tid = root;
    for n in 1..=100 {
        tid = replace(&world, &txns, tid, &number(n), RowLockMode::NoKeyUpdate);
    }
    let kept: usize = (0..world.blocks())
        .map(|block| tuples(&world.page(block)))
        .sum();
    assert_eq!(kept, 101);
}

#[test]
fn the_version_that_stays_ends_as_the_last_that_goes_did() {
    let (world, txns, root) = one_row();
    let reader = txns.reading();
    // The key stays, changes, and stays again; then the row is deleted.
    let keeps = RowLockMode::NoKeyUpdate;
    let mut tid = root;
    for mode in [keeps, RowLockMode::Update, keeps] {
        tid = replace(&world, &txns, tid, b"next", mode);
    }
    let prune = || {
        let ctx = txns.begin();
        let pruned = retry_blocking(|| world.heap.prune(0, &ctx)).unwrap();
        ctx.abort();
        pruned.removed
    };
    let first = |world: &World| page::tuple(&*world.page(0), root.slot).unwrap().2;
    let made_by = page::tuple(&*world.page(0), tid.slot).unwrap().2.xmin;
    assert_eq!(prune(), 2);
    assert_eq!((first(&world).xmax, first(&world).next), (made_by, tid));
    assert!(first(&world).is_hot_updated() && !first(&world).keeps_key());
    let ctx = Ctx {
        cid: Cid(1),
        ..txns.begin()
    };
    let deleted_by = ctx.xid;
    let change = retry_blocking(|| world.heap.delete(&ctx, tid)).unwrap();
    assert_eq!(change, Change::Done(()));
    assert_eq!(prune(), 0, "nobody knows yet how that ends");
    ctx.commit();
    assert_eq!(prune(), 1);
    assert_eq!(
        (first(&world).xmax, first(&world).next),
        (deleted_by, Tid::NONE)
    );
    assert_eq!(fetch(&world, root, &reader), Some(number(0)));
    assert_eq!(fetch(&world, root, &txns.snapshot()), None);
    txns.release_reading(&reader);
}

#[test]
fn a_version_that_another_page_leads_to_stays_to_tell_the_way() {
    let (world, txns, root) = one_row();
    let ctx = txns.begin();
    // Nothing else has room beside it.
    insert(&world, &ctx, &vec![0; PAGE_SIZE / 2]);
    insert(&world, &ctx, &vec![0; PAGE_SIZE / 2 - 600]);
    ctx.commit();
    let reader = txns.reading();
    let there = replace(&world, &txns, root, &number(1), RowLockMode::NoKeyUpdate);
    assert_ne!(there.block, root.block);
    let mut tid = there;
    for n in 2..200 {
        tid = replace(&world, &txns, tid, &number(n), RowLockMode::NoKeyUpdate);
    }
    assert_eq!(tid.block, there.block);
    let first = page::tuple(&*world.page(root.block), root.slot).unwrap().2;
    let next = page::tuple(&*world.page(there.block), there.slot)
        .unwrap()
        .2;
    assert_eq!((first.next, first.xmax), (there, next.xmin));
    assert_eq!(fetch(&world, root, &reader), Some(number(0)));
    assert_eq!(fetch(&world, there, &reader), None);
    assert_eq!(fetch(&world, there, &txns.snapshot()), Some(number(199)));
}
