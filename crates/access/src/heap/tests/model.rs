//! Random transactions against the heap and against a list of versions that forgets nothing.

use super::*;
use crate::heap::{Change, Fetched};

/// A xorshift generator: a seed is all there is to a failing run.
struct Dice(u64);
impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize % sides
    }
}

/// A version as it was made; the model's truth.
struct Version {
    tid: Tid,
    bytes: Vec<u8>,
    made: (Xid, Cid),
    ended: Option<(Xid, Cid)>,
    /// Of the same row.
    next: Option<usize>,
}

/// A row: all its versions, and the roots that its index has.
#[derive(Default)]
struct Row {
    versions: Vec<Version>,
    roots: Vec<Tid>,
}

/// A running transaction and the snapshot it holds.
struct Open<'a> {
    ctx: Ctx<'a>,
    snap: Snap<'a>,
    /// Whether it looks through that one for all of its life, or through a new one each time.
    repeatable: bool,
}

impl<'a> Open<'a> {
    /// What it sees at the CSN `now`.
    fn sees(&self, now: u64) -> Snap<'a> {
        self.ctx
            .sees(if self.repeatable { self.snap.csn } else { now })
    }
}

struct Run<'a> {
    world: &'a World,
    txns: &'a Txns,
    rows: Vec<Row>,
    open: Vec<Open<'a>>,
    /// Snapshots of readers that run long.
    held: Vec<Snap<'a>>,
    dice: Dice,
}

fn ended_for(snap: &Snap<'_>, (xid, cid): (Xid, Cid)) -> bool {
    if snap.mine.contains(&xid) {
        cid < snap.cid
    } else {
        snap.committed(xid)
    }
}

impl Version {
    fn visible(&self, snap: &Snap<'_>) -> bool {
        ended_for(snap, self.made) && !self.ended.is_some_and(|end| ended_for(snap, end))
    }
}

impl Row {
    fn seen(&self, snap: &Snap<'_>) -> Option<usize> {
        let mut seen = (0..self.versions.len()).filter(|&i| self.versions[i].visible(snap));
        let first = seen.next();
        assert!(
            seen.next().is_none(),
            "the model shows two versions of one row"
        );
        first
    }

    /// What a change of version `i` must answer.
    fn expected(&self, i: usize, ctx: &Ctx<'_>) -> Change<()> {
        let version = &self.versions[i];
        let (xmin, cmin) = version.made;
        let made = if ctx.is_mine(xmin) {
            cmin < ctx.cid
        } else {
            matches!(ctx.status(xmin), XidStatus::Committed(_))
        };
        if !made {
            return Change::Invisible;
        }
        match version.ended {
            Some((xid, cid)) if ctx.is_mine(xid) => {
                if cid >= ctx.cid {
                    Change::SelfModified
                } else {
                    Change::Invisible
                }
            }
            Some((xid, _)) => match (ctx.status(xid), version.next) {
                (XidStatus::InProgress, _) => Change::Busy(xid),
                (XidStatus::Aborted, _) => Change::Done(()),
                (XidStatus::Committed(_), Some(next)) => Change::Updated(self.versions[next].tid),
                (XidStatus::Committed(_), None) => Change::Deleted,
            },
            None => Change::Done(()),
        }
    }
}

fn without_value<T>(change: &Change<T>) -> Change<()> {
    match *change {
        Change::Done(_) => Change::Done(()),
        Change::Busy(xid) => Change::Busy(xid),
        Change::Updated(tid) => Change::Updated(tid),
        Change::Moved => Change::Moved,
        Change::Deleted => Change::Deleted,
        Change::Lost => Change::Lost,
        Change::SelfModified => Change::SelfModified,
        Change::Invisible => Change::Invisible,
    }
}

impl<'a> Run<'a> {
    fn new(world: &'a World, txns: &'a Txns, seed: u64) -> Run<'a> {
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Run {
            world,
            txns,
            rows: Vec::new(),
            open: Vec::new(),
            held: Vec::new(),
            dice,
        }
    }

    /// A row's bytes: its number, then padding of any length and content.
    fn bytes(&mut self, row: usize) -> Vec<u8> {
        let len = match self.dice.roll(20) {
            0 => 3000 + self.dice.roll(5000),
            1..6 => 300 + self.dice.roll(1200),
            _ => self.dice.roll(120),
        };
        let fill = self.dice.roll(256) as u8;
        let mut bytes = (row as u32).to_le_bytes().to_vec();
        bytes.resize(4 + len, fill);
        bytes
    }

    fn step(&mut self) {
        match self.dice.roll(100) {
            0..8 if self.open.len() < 4 => self.begin(),
            8..20 => self.insert(),
            20..60 => self.change(false),
            60..68 => self.change(true),
            68..74 => self.end(),
            74..78 => self.savepoint(),
            78..82 if self.held.len() < 3 => self.held.push(self.txns.reading()),
            82..86 => self.release(),
            86..92 => self.prune(),
            92..95 => self.vacuum(),
            _ => self.verify(),
        }
    }

    fn begin(&mut self) {
        let snap = self.txns.snapshot();
        let ctx = Ctx {
            cid: Cid(1),
            ..self.txns.begin()
        };
        let repeatable = self.dice.roll(2) == 0;
        self.open.push(Open {
            ctx,
            snap,
            repeatable,
        });
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.open.is_empty()).then(|| self.dice.roll(self.open.len()))
    }

    fn insert(&mut self) {
        let Some(t) = self.pick() else { return };
        let row = self.rows.len();
        let bytes = self.bytes(row);
        let ctx = &mut self.open[t].ctx;
        let tid = retry_blocking(|| self.world.heap.insert(ctx, &bytes)).unwrap();
        let version = Version {
            tid,
            bytes,
            made: (ctx.xid, ctx.cid),
            ended: None,
            next: None,
        };
        self.rows.push(Row {
            versions: vec![version],
            roots: vec![tid],
        });
        ctx.cid.0 += 1;
    }

    /// Updates or deletes what a transaction sees.
    fn change(&mut self, delete: bool) {
        let Some(t) = self.pick() else { return };
        if self.rows.is_empty() {
            return;
        }
        let row = self.dice.roll(self.rows.len());
        let bytes = self.bytes(row);
        let hot = self.dice.roll(5) != 0;
        let now = self.txns.state.lock().csn;
        let Some(i) = self.rows[row].seen(&self.open[t].sees(now)) else {
            return;
        };
        let ctx = &mut self.open[t].ctx;
        let expected = self.rows[row].expected(i, ctx);
        let tid = self.rows[row].versions[i].tid;
        let end = Some((ctx.xid, ctx.cid));
        let row = &mut self.rows[row];
        if delete {
            let change = retry_blocking(|| self.world.heap.delete(ctx, tid)).unwrap();
            assert_eq!(change, expected);
            if change == Change::Done(()) {
                (row.versions[i].ended, row.versions[i].next) = (end, None);
            }
        } else {
            let mode = RowLockMode::NoKeyUpdate;
            let change =
                retry_blocking(|| self.world.heap.update(ctx, tid, &bytes, mode, hot)).unwrap();
            assert_eq!(without_value(&change), expected);
            if let Change::Done(new) = change {
                assert!(hot || !new.hot);
                (row.versions[i].ended, row.versions[i].next) = (end, Some(row.versions.len()));
                if !new.hot {
                    row.roots.push(new.tid);
                }
                let made = (ctx.xid, ctx.cid);
                row.versions.push(Version {
                    tid: new.tid,
                    bytes,
                    made,
                    ended: None,
                    next: None,
                });
            }
        }
        ctx.cid.0 += 1;
    }

    fn end(&mut self) {
        let Some(t) = self.pick() else { return };
        let Open { ctx, snap, .. } = self.open.swap_remove(t);
        if self.dice.roll(3) == 0 {
            ctx.abort()
        } else {
            ctx.commit()
        }
        self.txns.release(&snap);
    }

    fn savepoint(&mut self) {
        let Some(t) = self.pick() else { return };
        let back = self.dice.roll(2) == 0;
        let ctx = &mut self.open[t].ctx;
        if !back || !ctx.rollback_to() {
            ctx.savepoint();
        }
        ctx.cid.0 += 1;
    }

    fn release(&mut self) {
        if !self.held.is_empty() {
            let snap = self.held.swap_remove(self.dice.roll(self.held.len()));
            self.txns.release_reading(&snap);
        }
    }

    fn prune(&mut self) {
        let blocks = self.world.blocks() as usize;
        if blocks > 0 {
            let block = self.dice.roll(blocks) as BlockNo;
            let ctx = self.txns.begin();
            retry_blocking(|| self.world.heap.prune(block, &ctx)).unwrap();
            ctx.abort();
        }
    }

    fn vacuum(&mut self) {
        let ctx = self.txns.begin();
        let (world, rows) = (self.world, &mut self.rows);
        for root in rows.iter().flat_map(|row| &row.roots) {
            // An entry may go when its row is dead; vacuum lists it in any case.
            retry_blocking(|| world.heap.is_dead(*root, &ctx)).unwrap();
        }
        world.vacuum(&ctx, |dead| {
            rows.iter_mut()
                .for_each(|row| row.roots.retain(|root| dead.binary_search(root).is_err()));
        });
        ctx.abort();
    }

    /// Every snapshot in use sees exactly what the model says, by scan and by index.
    fn verify(&self) {
        let now = self.txns.state.lock().csn;
        let views = self.open.iter().map(|open| open.sees(now));
        let others = self.held.iter().map(|snap| Snap {
            mine: Vec::new(),
            ..*snap
        });
        let latest = Snap {
            txns: self.txns,
            csn: now,
            mine: Vec::new(),
            cid: Cid(0),
        };
        let snaps: Vec<_> = views.chain(others).chain([latest]).collect();
        for snap in &snaps {
            self.verify_scan(snap);
            self.verify_index(snap);
        }
        self.verify_dead(&snaps);
    }

    /// What one snapshot finds dead to everybody none of them shows.
    fn verify_dead(&self, snaps: &[Snap<'_>]) {
        let mut out = Vec::new();
        for &root in self.rows.iter().flat_map(|row| &row.roots) {
            let mut fetch = |snap| {
                retry_blocking(|| self.world.heap.fetch_first(root, snap, PAGE_SIZE, &mut out))
                    .unwrap()
            };
            let found: Vec<Fetched> = snaps.iter().map(&mut fetch).collect();
            let is_shown = found.iter().any(|one| matches!(one, Fetched::Version(_)));
            let is_dead = found.contains(&Fetched::Dead);
            assert!(!(is_shown && is_dead), "{root:?}: {found:?}");
        }
    }

    fn verify_scan(&self, snap: &Snap<'_>) {
        let batch = self.world.scan(snap);
        let mut seen: Vec<(Tid, &[u8])> = batch.iter().collect();
        seen.sort_unstable();
        let visible = |row: &'_ Row| row.seen(snap);
        let mut expected: Vec<(Tid, &[u8])> = Vec::new();
        for row in &self.rows {
            if let Some(i) = visible(row) {
                expected.push((row.versions[i].tid, &row.versions[i].bytes));
            }
        }
        expected.sort_unstable();
        assert!(
            seen == expected,
            "{} rows are seen, {} should be",
            seen.len(),
            expected.len()
        );
        for i in 0..batch.len() {
            let number = u32::from_le_bytes(batch.row(i)[..4].try_into().unwrap());
            assert!(
                self.rows[number as usize].roots.contains(&batch.root(i)),
                "a scan tells a row's root"
            );
        }
    }

    fn verify_index(&self, snap: &Snap<'_>) {
        let mut out = Vec::new();
        for row in &self.rows {
            let mut found = None;
            for &root in &row.roots {
                if let Some(tid) =
                    retry_blocking(|| self.world.heap.fetch(root, snap, &mut out)).unwrap()
                {
                    assert!(
                        found.replace((tid, out.clone())).is_none(),
                        "two roots lead to one row"
                    );
                }
            }
            let expected = row
                .seen(snap)
                .map(|i| (row.versions[i].tid, row.versions[i].bytes.clone()));
            assert!(
                found == expected,
                "{:?} is found, not {:?}",
                found.map(|f| f.0),
                expected.map(|e| e.0)
            );
            if let Some((tid, bytes)) = expected {
                assert!(
                    retry_blocking(|| self.world.heap.fetch_version(tid, snap, &mut out)).unwrap()
                );
                assert_eq!(out, bytes);
            }
        }
    }

    fn check_pages(&self) {
        let mut faults = Vec::new();
        for block in 0..self.world.blocks() {
            let page = self.world.page(block);
            if page::is_heap(&*page) {
                crate::check::check_heap_page(&page, block, &mut faults);
            }
        }
        assert!(faults.is_empty(), "{faults:?}");
    }

    /// Ends everything and cleans up: what is left on the pages is one version of each row that
    /// lives.
    fn finish(mut self) {
        while !self.open.is_empty() {
            self.end();
        }
        while !self.held.is_empty() {
            self.release();
        }
        self.verify();
        self.vacuum();
        self.verify();
        let live = self.world.scan(&self.txns.snapshot()).len();
        let (mut tuples, mut dead) = (0, 0);
        for block in 0..self.world.blocks() {
            let page = self.world.page(block);
            for slot in 1..=page::slot_count(&*page) {
                match page::slot(&*page, slot) {
                    page::Slot::Normal { .. } => tuples += 1,
                    page::Slot::Dead => dead += 1,
                    page::Slot::Unused | page::Slot::Redirect(_) => {}
                }
            }
        }
        assert_eq!((tuples, dead), (live, 0));
        self.check_pages();
        let txns = self.txns;
        self.world
            .check(&|xid| txns.status(xid) == XidStatus::Aborted);
        self.world.assert_redo_gives_the_same();
    }
}

#[test]
fn every_snapshot_sees_what_the_model_says() {
    for seed in 1..=30 {
        // Fewer frames than blocks on some runs: pages come and go, and hints with them.
        let (world, txns) = (
            World::new(if seed % 3 == 0 { 24 } else { 256 }),
            Txns::new(),
        );
        let mut run = Run::new(&world, &txns, seed);
        for step in 0..600 {
            run.step();
            if step % 20 == 0 {
                run.check_pages();
            }
        }
        run.finish();
    }
}
