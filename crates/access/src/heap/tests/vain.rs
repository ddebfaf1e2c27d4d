//! Pages that pruning gains nothing on are not planned again for every row that is changed there.

use super::changes::{insert, moved};
use super::*;
use crate::heap::Change;
use RowLockMode::NoKeyUpdate;

const ROW: [u8; 60] = [b'r'; 60];

/// Rows on full pages, committed.
fn filled(world: &World, txns: &Txns) -> Vec<Tid> {
    let ctx = txns.begin();
    let tids = (0..400).map(|_| insert(world, &ctx, &ROW)).collect();
    ctx.commit();
    tids
}

fn update(world: &World, ctx: &Ctx<'_>, tid: Tid) -> Tid {
    let change = retry_blocking(|| world.heap.update(ctx, tid, &ROW, NoKeyUpdate, true)).unwrap();
    moved(change)
}

/// How often a status is asked for while all rows are changed, for each of them.
fn asked_for_each(world: &World, txns: &Txns, ctx: &Ctx<'_>, tids: &mut [Tid]) -> usize {
    let before = txns.asked.load(Ordering::Relaxed);
    for tid in tids.iter_mut() {
        *tid = update(world, ctx, *tid);
    }
    (txns.asked.load(Ordering::Relaxed) - before) / tids.len()
}

#[test]
fn a_statement_that_changes_every_row_plans_a_page_once() {
    let (world, txns) = (World::new(256), Txns::new());
    let tids = filled(&world, &txns);
    let per_page = tids.iter().filter(|tid| tid.block == 0).count();
    assert!(per_page > 60);
    let ctx = Ctx {
        cid: Cid(1),
        ..txns.begin()
    };
    // In the order of the file, and with other pages between those of one.
    let (mut first, mut second): (Vec<Tid>, Vec<Tid>) =
        tids.iter().partition(|tid| tid.slot % 2 == 0);
    second.sort_by_key(|tid| (tid.slot, tid.block));
    for part in [&mut first, &mut second] {
        let asked = asked_for_each(&world, &txns, &ctx, part);
        assert!(asked < 8, "{asked} for each row, {per_page} on a page");
    }
    ctx.abort();
    world.check(&|_| true);
    world.assert_redo_gives_the_same();
}

/// What becomes dead meanwhile is found: by a commit, by the end of a snapshot, by a rollback of a
/// part.
#[test]
fn a_page_is_planned_again_when_more_may_be_dead() {
    let (world, txns) = (World::new(256), Txns::new());
    let tids = filled(&world, &txns);
    let mut on_page = tids.into_iter().filter(|tid| tid.block == 0);
    let mut next = || on_page.next().expect("the page has many rows");
    let begin = || Ctx {
        cid: Cid(1),
        ..txns.begin()
    };
    // Planned in vain: what has gone is not committed.
    let deleter = begin();
    for _ in 0..3 {
        assert_eq!(
            retry_blocking(|| world.heap.delete(&deleter, next())).unwrap(),
            Change::Done(())
        );
    }
    let ctx = begin();
    assert_ne!(update(&world, &ctx, next()).block, 0);
    deleter.commit();
    assert_eq!(update(&world, &ctx, next()).block, 0);
    assert_eq!(update(&world, &ctx, next()).block, 0);
    assert_eq!(update(&world, &ctx, next()).block, 0);
    assert_ne!(update(&world, &ctx, next()).block, 0);
    ctx.commit();
    // A snapshot that shows them, until it ends.
    let old = txns.snapshot();
    let deleter = begin();
    for _ in 0..2 {
        assert_eq!(
            retry_blocking(|| world.heap.delete(&deleter, next())).unwrap(),
            Change::Done(())
        );
    }
    deleter.commit();
    let ctx = begin();
    while update(&world, &ctx, next()).block == 0 {}
    txns.release(&old);
    assert_eq!(update(&world, &ctx, next()).block, 0);
    while update(&world, &ctx, next()).block == 0 {}
    // The next version of a row, of a transaction's part that is rolled back.
    let deleter = begin();
    let gone = retry_blocking(|| world.heap.delete(&deleter, next())).unwrap();
    assert_eq!(gone, Change::Done(()));
    deleter.commit();
    let mut other = begin();
    other.savepoint();
    assert_eq!(update(&world, &other, next()).block, 0);
    assert_ne!(update(&world, &ctx, next()).block, 0);
    assert!(other.rollback_to());
    assert_eq!(update(&world, &ctx, next()).block, 0);
    other.commit();
    ctx.commit();
    world.check(&|xid| txns.status(xid) == XidStatus::Aborted);
    world.assert_redo_gives_the_same();
}
