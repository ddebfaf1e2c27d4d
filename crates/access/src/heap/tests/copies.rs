//! A heap's versions in another heap.

use throng_buffer::{Ring, retry_blocking};

use super::changes::{insert, moved};
use super::{Ctx, Snap, Txns, World};
use crate::RowLockMode::NoKeyUpdate;
use crate::heap::VisibleVersion;

fn rows(world: &World, vis: &Snap<'_>) -> Vec<Vec<u8>> {
    let batch = world.scan(vis);
    let mut rows: Vec<Vec<u8>> = batch.iter().map(|(_, row)| row.to_vec()).collect();
    rows.sort_unstable();
    rows
}

fn copied(from: &World, ctx: &Ctx<'_>) -> World {
    let to = World::new(64);
    let mut ring = Ring::for_scan(&from.pool, from.blocks());
    for block in 0..from.blocks() {
        let mut found: Vec<VisibleVersion> = Vec::new();
        retry_blocking(|| {
            found.clear();
            from.heap.kept_versions(block, ctx, &mut ring, &mut found)
        })
        .unwrap();
        for kept in found {
            let same = retry_blocking(|| from.heap.kept_version(kept.tid, ctx)).unwrap();
            assert_eq!(same.as_ref(), Some(&kept));
            retry_blocking(|| to.heap.insert_kept(ctx, &kept.header, &kept.row)).unwrap();
        }
    }
    to
}

#[test]
fn every_snapshot_sees_in_the_copy_what_it_saw() {
    let (world, txns) = (World::new(64), Txns::new());
    let a = txns.begin();
    let tids: Vec<_> = (0..4).map(|n| insert(&world, &a, &[n; 100])).collect();
    a.commit();
    let first = txns.snapshot();
    let b = txns.begin();
    moved(
        retry_blocking(|| {
            world
                .heap
                .update(&b, tids[0], &[10; 100], NoKeyUpdate, true)
        })
        .unwrap(),
    );
    retry_blocking(|| world.heap.delete(&b, tids[1])).unwrap();
    b.commit();
    let second = txns.snapshot();
    // What was rolled back is not taken along, and what it touched is as if it had not been.
    let c = txns.begin();
    insert(&world, &c, &[99; 100]);
    retry_blocking(|| world.heap.delete(&c, tids[2])).unwrap();
    c.abort();

    let d = txns.begin();
    let copy = copied(&world, &d);
    d.commit();
    assert_eq!(rows(&copy, &first), rows(&world, &first));
    assert_eq!(rows(&copy, &second), rows(&world, &second));
    assert_eq!(rows(&copy, &txns.snapshot()), rows(&world, &second));
    assert_eq!(rows(&copy, &first).len(), 4);
    assert_eq!(rows(&copy, &second).len(), 3);

    // When nobody sees them any more, the old versions go from the copy too.
    txns.release(&first);
    let e = txns.begin();
    copy.vacuum(&e, |_| {});
    let mut ring = Ring::for_scan(&copy.pool, copy.blocks());
    let mut left = Vec::new();
    retry_blocking(|| {
        left.clear();
        copy.heap.kept_versions(0, &e, &mut ring, &mut left)
    })
    .unwrap();
    assert_eq!(left.len(), 3);
    assert_eq!(rows(&copy, &second).len(), 3);
    copy.check(&|_| false);
    copy.assert_redo_gives_the_same();
}
