//! Many threads on few rows: money is moved and none is lost, whoever looks, whenever.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::heap::{Change, Liveness};

const ROWS: u32 = 24;
const MONEY: i64 = 1000;

/// A xorshift generator: enough to pick rows.
struct Dice(u64);
impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 % sides
    }
}

/// A row: its number, its money, and padding of varying length, so that rows outgrow their pages.
fn row(number: u32, money: i64, padding: u32) -> Vec<u8> {
    let mut row = [&number.to_le_bytes()[..], &money.to_le_bytes()[..]].concat();
    row.resize(12 + padding as usize, 7);
    row
}
fn number(row: &[u8]) -> u32 {
    u32::from_le_bytes(row[..4].try_into().unwrap())
}
fn money(row: &[u8]) -> i64 {
    i64::from_le_bytes(row[4..12].try_into().unwrap())
}

struct Bank {
    world: World,
    txns: Txns,
    /// The index: each row's roots, newest last.
    roots: Mutex<Vec<Vec<Tid>>>,
}

impl Bank {
    fn open() -> Bank {
        let (world, txns) = (World::new(128), Txns::new());
        let ctx = txns.begin();
        let roots = (0..ROWS)
            .map(|i| vec![retry_blocking(|| world.heap.insert(&ctx, &row(i, MONEY, 300))).unwrap()])
            .collect();
        ctx.commit();
        Bank {
            world,
            txns,
            roots: Mutex::new(roots),
        }
    }

    /// The row as the snapshot shows it, found through the index.
    fn find(&self, i: u32, snap: &Snap<'_>) -> (Tid, Vec<u8>) {
        let roots = self.roots.lock()[i as usize].clone();
        let mut out = Vec::new();
        let mut found = None;
        for root in roots {
            let tid = retry_blocking(|| self.world.heap.fetch(root, snap, &mut out)).unwrap();
            if let Some(tid) = tid {
                // A slot that was freed and used again since the index was looked at holds nothing
                // this snapshot sees.
                assert_eq!(number(&out), i);
                assert!(found.is_none(), "row {i} is seen twice");
                found = Some((tid, out.clone()));
            }
        }
        found.unwrap_or_else(|| panic!("row {i} is not seen"))
    }

    /// Moves money from one row to another, or gives up.
    fn transfer(&self, dice: &mut Dice) -> bool {
        let snap = self.txns.snapshot();
        let ctx = Ctx {
            cid: Cid(1),
            ..self.txns.begin()
        };
        let (from, to) = (dice.roll(ROWS), dice.roll(ROWS));
        let amount = i64::from(dice.roll(50));
        let done = from != to
            && self.add(&ctx, &snap, from, -amount, dice)
            && self.add(&ctx, &snap, to, amount, dice);
        let commit = done && dice.roll(8) != 0;
        if commit {
            ctx.commit()
        } else {
            ctx.abort()
        }
        self.txns.release(&snap);
        commit
    }

    fn add(&self, ctx: &Ctx<'_>, snap: &Snap<'_>, i: u32, amount: i64, dice: &mut Dice) -> bool {
        let (tid, old) = self.find(i, snap);
        let new = row(i, money(&old) + amount, 200 + dice.roll(400));
        let hot = dice.roll(4) != 0;
        let change = retry_blocking(|| {
            self.world
                .heap
                .update(ctx, tid, &new, RowLockMode::NoKeyUpdate, hot)
        })
        .unwrap();
        match change {
            Change::Done(version) => {
                if !version.hot {
                    self.roots.lock()[i as usize].push(version.tid);
                }
                true
            }
            Change::Busy(_) | Change::Updated(_) => false,
            other => panic!("row {i} cannot be {other:?}"),
        }
    }

    fn audit(&self) {
        let snap = self.txns.snapshot();
        let batch = self.world.scan(&snap);
        let mut seen: Vec<u32> = batch.iter().map(|(_, row)| number(row)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..ROWS).collect::<Vec<_>>());
        assert_eq!(
            batch.iter().map(|(_, row)| money(row)).sum::<i64>(),
            i64::from(ROWS) * MONEY
        );
        let by_index: i64 = (0..ROWS).map(|i| money(&self.find(i, &snap).1)).sum();
        assert_eq!(by_index, i64::from(ROWS) * MONEY);
        self.txns.release(&snap);
    }

    fn clean(&self) {
        let ctx = self.txns.begin();
        self.world.vacuum(&ctx, |dead| {
            self.roots
                .lock()
                .iter_mut()
                .for_each(|roots| roots.retain(|root| !dead.contains(root)));
        });
        ctx.commit();
    }
}

#[test]
fn money_is_moved_and_none_is_lost() {
    let bank = Bank::open();
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    bank.audit();
                }
            });
        }
        s.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                bank.clean();
            }
        });
        let movers: Vec<_> = (1..=4u64)
            .map(|seed| {
                let bank = &bank;
                s.spawn(move || {
                    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                    (0..1500).filter(|_| bank.transfer(&mut dice)).count()
                })
            })
            .collect();
        let moved: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
        stop.store(true, Ordering::Relaxed);
        let moved: usize = moved
            .into_iter()
            .map(|m| m.expect("a mover does not panic"))
            .sum();
        assert!(moved > 100, "only {moved} transfers went through");
    });
    bank.audit();
    bank.clean();
    // 24 rows take two or three pages; the rest is what was dead at once while the cleaner had no
    // core to run on.
    assert!(
        bank.world.blocks() < 500,
        "{} blocks for {ROWS} rows",
        bank.world.blocks()
    );
    let txns = &bank.txns;
    bank.world
        .check(&|xid| txns.status(xid) == XidStatus::Aborted);
    bank.world.assert_redo_gives_the_same();
}

#[test]
fn inserters_fill_pages_of_their_own() {
    let (world, txns) = (World::new(512), Txns::new());
    std::thread::scope(|s| {
        for thread in 0..4u32 {
            let (world, txns) = (&world, &txns);
            s.spawn(move || {
                for i in 0..500 {
                    let ctx = txns.begin();
                    let tid =
                        retry_blocking(|| world.heap.insert(&ctx, &row(thread * 1000 + i, 1, 80)))
                            .unwrap();
                    ctx.commit();
                    let ctx = txns.begin();
                    let live = retry_blocking(|| world.heap.liveness(tid, &ctx)).unwrap();
                    assert_eq!(live, Liveness::Live(tid));
                    ctx.commit();
                }
            });
        }
    });
    let batch = world.scan(&txns.snapshot());
    let mut seen: Vec<u32> = batch.iter().map(|(_, row)| number(row)).collect();
    seen.sort_unstable();
    let expected: Vec<u32> = (0..4)
        .flat_map(|thread| (0..500).map(move |i| thread * 1000 + i))
        .collect();
    assert_eq!(seen, expected);
    // 61 rows a page make 33 pages; each thread may leave one unfilled, and the file grows ahead of
    // need.
    assert!(world.blocks() < 80, "{} blocks", world.blocks());
    world.check(&|_| false);
    world.assert_redo_gives_the_same();
}
