//! What each call answers, case by case.

use super::*;
use crate::heap::{Change, Fetched, Liveness, NewVersion, VersionRef};
use RowLockMode::{KeyShare, NoKeyUpdate, Share, Update};
use throng_types::error::state;

struct One {
    world: World,
    txns: Txns,
    tid: Tid,
}

impl One {
    /// A committed row.
    fn row() -> One {
        let (world, txns) = (World::new(64), Txns::new());
        let ctx = txns.begin();
        let tid = insert(&world, &ctx, b"first");
        ctx.commit();
        One { world, txns, tid }
    }
    fn begin(&self) -> Ctx<'_> {
        Ctx {
            cid: Cid(1),
            ..self.txns.begin()
        }
    }
    fn update(&self, ctx: &Ctx<'_>, tid: Tid, mode: RowLockMode) -> Change<NewVersion> {
        retry_blocking(|| self.world.heap.update(ctx, tid, b"second", mode, true)).unwrap()
    }
    fn delete(&self, ctx: &Ctx<'_>, tid: Tid) -> Change<()> {
        retry_blocking(|| self.world.heap.delete(ctx, tid)).unwrap()
    }
    fn lock(&self, ctx: &Ctx<'_>, tid: Tid, mode: RowLockMode) -> Change<()> {
        retry_blocking(|| self.world.heap.lock(ctx, tid, mode)).unwrap()
    }
    fn liveness(&self, ctx: &Ctx<'_>) -> Liveness {
        retry_blocking(|| self.world.heap.liveness(self.tid, ctx)).unwrap()
    }
    fn fetch(&self, vis: &Snap<'_>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        retry_blocking(|| self.world.heap.fetch(self.tid, vis, &mut out))
            .unwrap()
            .map(|_| out)
    }
}

pub(super) fn insert(world: &World, ctx: &Ctx<'_>, row: &[u8]) -> Tid {
    retry_blocking(|| world.heap.insert(ctx, row)).unwrap()
}

pub(super) fn moved(change: Change<NewVersion>) -> Tid {
    match change {
        Change::Done(new) => new.tid,
        other => panic!("the update was refused: {other:?}"),
    }
}

#[test]
fn a_running_change_keeps_others_out_until_it_ends() {
    let one = One::row();
    let (a, b) = (one.begin(), one.begin());
    let new = moved(one.update(&a, one.tid, NoKeyUpdate));
    assert_eq!(one.update(&b, one.tid, NoKeyUpdate), Change::Busy(a.xid));
    assert_eq!(one.delete(&b, one.tid), Change::Busy(a.xid));
    assert_eq!(one.lock(&b, one.tid, Share), Change::Busy(a.xid));
    assert_eq!(one.update(&b, new, NoKeyUpdate), Change::Invisible);
    assert_eq!(one.liveness(&b), Liveness::InProgress(a.xid));
    assert_eq!(one.liveness(&a), Liveness::Live(new));
    a.commit();
    assert_eq!(one.update(&b, one.tid, NoKeyUpdate), Change::Updated(new));
    assert_eq!(one.delete(&b, new), Change::Done(()));
    b.commit();
    let c = one.begin();
    assert_eq!(one.lock(&c, new, KeyShare), Change::Deleted);
    assert_eq!(one.liveness(&c), Liveness::Dead);
    one.world.check(&|_| false);
}

#[test]
fn a_rolled_back_change_never_was() {
    let one = One::row();
    let a = one.begin();
    let lost = moved(one.update(&a, one.tid, Update));
    a.abort();
    let b = one.begin();
    assert_eq!(one.liveness(&b), Liveness::Live(one.tid));
    assert_eq!(one.update(&b, lost, Update), Change::Invisible);
    let snap = one.txns.snapshot();
    assert_eq!(one.fetch(&snap).as_deref(), Some(&b"first"[..]));
    let new = moved(one.update(&b, one.tid, Update));
    assert_ne!(new, lost);
    b.commit();
    assert_eq!(one.fetch(&snap).as_deref(), Some(&b"first"[..]));
    one.txns.release(&snap);
    assert_eq!(
        one.fetch(&one.txns.snapshot()).as_deref(),
        Some(&b"second"[..])
    );
    one.world.assert_redo_gives_the_same();
}

#[test]
fn a_version_that_nobody_keeps_is_told_from_what_took_its_slot() {
    let one = One::row();
    let a = one.begin();
    let maker = retry_blocking(|| one.world.heap.maker_of(one.tid)).unwrap();
    let meant = VersionRef {
        tid: one.tid,
        made_by: maker,
    };
    let another = VersionRef {
        made_by: Some(a.xid),
        ..meant
    };
    let none = VersionRef {
        tid: Tid::new(one.tid.block, one.tid.slot + 1),
        ..meant
    };
    for lost in [another, none] {
        let heap = &one.world.heap;
        let update = retry_blocking(|| heap.update(&a, lost, b"second", NoKeyUpdate, true));
        assert_eq!(update.unwrap(), Change::Lost);
        let lock = retry_blocking(|| heap.lock(&a, lost, Share));
        assert_eq!(lock.unwrap(), Change::Lost);
        let delete = retry_blocking(|| heap.delete(&a, lost));
        assert_eq!(delete.unwrap(), Change::Lost);
    }
    let change = retry_blocking(|| one.world.heap.delete(&a, meant));
    assert_eq!(change.unwrap(), Change::Done(()));
}

#[test]
fn a_command_does_not_see_its_own_work() {
    let one = One::row();
    let mut a = one.begin();
    let new = moved(one.update(&a, one.tid, NoKeyUpdate));
    assert_eq!(one.update(&a, one.tid, NoKeyUpdate), Change::SelfModified);
    assert_eq!(one.update(&a, new, NoKeyUpdate), Change::Invisible);
    let csn = one.txns.snapshot().csn;
    assert_eq!(one.fetch(&a.sees(csn)).as_deref(), Some(&b"first"[..]));
    a.cid = Cid(2);
    assert_eq!(one.fetch(&a.sees(csn)).as_deref(), Some(&b"second"[..]));
    assert_eq!(one.update(&a, one.tid, NoKeyUpdate), Change::Invisible);
    assert_eq!(one.delete(&a, new), Change::Done(()));
    assert_eq!(one.delete(&a, new), Change::SelfModified);
    a.cid = Cid(3);
    assert_eq!(one.fetch(&a.sees(csn)), None);
    assert_eq!(one.liveness(&a), Liveness::Dead);
}

#[test]
fn a_key_share_lock_and_an_update_that_keeps_the_key_live_together() {
    let one = One::row();
    let (a, b) = (one.begin(), one.begin());
    // The lock comes after the update: it must hold for the new version too.
    let new = moved(one.update(&a, one.tid, NoKeyUpdate));
    assert_eq!(one.lock(&b, one.tid, KeyShare), Change::Done(()));
    assert_eq!(one.lock(&b, one.tid, Share), Change::Busy(a.xid));
    a.commit();
    let c = one.begin();
    assert_eq!(one.update(&c, new, Update), Change::Busy(b.xid));
    assert_eq!(one.delete(&c, new), Change::Busy(b.xid));
    // The lock comes before this update, which takes it along.
    let newer = moved(one.update(&c, new, NoKeyUpdate));
    c.commit();
    let d = one.begin();
    assert_eq!(one.update(&d, newer, Update), Change::Busy(b.xid));
    b.commit();
    moved(one.update(&d, newer, Update));
    let e = one.begin();
    assert_eq!(one.lock(&e, newer, KeyShare), Change::Busy(d.xid));
}

#[test]
fn row_locks_keep_each_other_out_as_their_modes_say() {
    let one = One::row();
    let (a, b) = (one.begin(), one.begin());
    assert_eq!(one.lock(&a, one.tid, Share), Change::Done(()));
    assert_eq!(
        one.lock(&a, one.tid, Update),
        Change::Done(()),
        "one's own locks are no hindrance"
    );
    assert_eq!(one.lock(&b, one.tid, KeyShare), Change::Busy(a.xid));
    a.commit();
    assert_eq!(one.lock(&b, one.tid, KeyShare), Change::Done(()));
}

#[test]
fn a_row_that_fits_no_page_is_refused() {
    let one = One::row();
    let a = one.begin();
    let too_big = vec![0; page::MAX_TUPLE - super::super::tuple::TUPLE_HEADER + 1];
    let error = retry_blocking(|| one.world.heap.insert(&a, &too_big)).unwrap_err();
    assert_eq!(error.code(), state::PROGRAM_LIMIT_EXCEEDED);
    assert_eq!(
        error.message(),
        "row is too big: size 8161, maximum size 8160"
    );
    let tid = insert(&one.world, &a, &too_big[1..]);
    let mut out = Vec::new();
    retry_blocking(|| one.world.heap.read_version(tid, &mut out)).unwrap();
    assert_eq!(out.len(), too_big.len() - 1);
}

#[test]
fn updates_of_one_row_stay_on_their_page() {
    let one = One::row();
    let mut tid = one.tid;
    for _ in 0..1000 {
        let ctx = one.begin();
        tid = moved(one.update(&ctx, tid, NoKeyUpdate));
        ctx.commit();
    }
    assert_eq!(one.world.blocks(), 1);
    let counts = one.world.heap.rel().counts();
    assert_eq!(
        (counts.updated, counts.hot_updated, counts.live),
        (1000, 1000, 1)
    );
    assert!(
        counts.dead < 300,
        "pruning has counted what it took: {counts:?}"
    );
    assert_eq!(
        one.fetch(&one.txns.snapshot()).as_deref(),
        Some(&b"second"[..])
    );
    one.world.assert_redo_gives_the_same();
}

#[test]
fn a_batch_fills_pages_in_order() {
    let (world, txns) = (World::new(64), Txns::new());
    world.heap.rel().set_fill_factor(50);
    let ctx = txns.begin();
    let rows: Vec<Vec<u8>> = (0..500u32).map(|i| i.to_le_bytes().repeat(20)).collect();
    let mut ring = Ring::new(throng_buffer::AccessStrategy::BulkWrite);
    let mut tids = Vec::new();
    while tids.len() < rows.len() {
        let more = retry_blocking(|| {
            world
                .heap
                .insert_batch(&ctx, &rows[tids.len()..], &mut ring)
        })
        .unwrap();
        assert!(!more.is_empty());
        tids.extend(more);
    }
    ctx.commit();
    let batch = world.scan(&txns.snapshot());
    let mut seen: Vec<(Tid, Vec<u8>)> =
        batch.iter().map(|(tid, row)| (tid, row.to_vec())).collect();
    seen.sort_unstable();
    let mut expected: Vec<(Tid, Vec<u8>)> = tids.into_iter().zip(rows).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    for block in 0..world.blocks() {
        assert!(
            page::room(&*world.page(block)) >= PAGE_SIZE / 2 - 200,
            "half of each page is kept free"
        );
    }
    world.assert_redo_gives_the_same();
}

#[test]
fn empty_pages_at_the_end_are_cut_off() {
    let (world, txns) = (World::new(64), Txns::new());
    let ctx = Ctx {
        cid: Cid(1),
        ..txns.begin()
    };
    let tids: Vec<Tid> = (0..64).map(|_| insert(&world, &ctx, &[1; 1000])).collect();
    ctx.commit();
    let grown = world.blocks();
    assert!(grown >= 8);
    let ctx = Ctx {
        cid: Cid(1),
        ..txns.begin()
    };
    for &tid in tids.iter().filter(|tid| tid.block > 0) {
        assert_eq!(
            retry_blocking(|| world.heap.delete(&ctx, tid)).unwrap(),
            Change::Done(())
        );
    }
    ctx.commit();
    let ctx = txns.begin();
    world.vacuum(&ctx, |_| {});
    assert_eq!(retry_blocking(|| world.heap.truncate_tail()).unwrap(), 1);
    assert_eq!(world.blocks(), 1);
    insert(&world, &ctx, &[2; 8000]);
    ctx.commit();
    assert_eq!(world.scan(&txns.snapshot()).len(), 8);
    world.check(&|_| false);
    world.assert_redo_gives_the_same();
}

/// What an entry leads to is dead once nobody sees it, whether it was pruned or not.
#[test]
fn a_row_is_dead_when_no_snapshot_shows_it() {
    let one = One::row();
    let found = |tid: Tid, vis: &Snap<'_>| {
        let mut out = Vec::new();
        retry_blocking(|| one.world.heap.fetch_first(tid, vis, PAGE_SIZE, &mut out)).unwrap()
    };
    let now = || {
        let snap = one.txns.snapshot();
        one.txns.release(&snap);
        snap
    };
    // While its deletion runs, while a snapshot shows the row, and then; an update was in between.
    let ctx = one.begin();
    let second = moved(one.update(&ctx, one.tid, NoKeyUpdate));
    ctx.commit();
    let old = one.txns.snapshot();
    let ctx = one.begin();
    assert_eq!(one.delete(&ctx, second), Change::Done(()));
    assert_eq!(found(one.tid, &now()), Fetched::Version(second));
    ctx.commit();
    assert_eq!(found(one.tid, &now()), Fetched::Nothing);
    one.txns.release(&old);
    assert_eq!(found(one.tid, &now()), Fetched::Dead);
    // Pruned to a dead slot; past vacuum no entry leads there any more.
    let ctx = one.begin();
    let pruned = retry_blocking(|| one.world.heap.prune(one.tid.block, &ctx)).unwrap();
    assert_eq!((pruned.removed, pruned.new_dead), (2, 1));
    assert_eq!(found(one.tid, &now()), Fetched::Dead);
    one.world.vacuum(&ctx, |_| {});
    assert_eq!(found(one.tid, &now()), Fetched::Nothing);
    // A row that was never there.
    let third = insert(&one.world, &ctx, b"undone");
    assert_eq!(found(third, &now()), Fetched::Nothing);
    ctx.abort();
    assert_eq!(found(third, &now()), Fetched::Dead);
}
