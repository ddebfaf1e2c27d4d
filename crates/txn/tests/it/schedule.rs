//! The lock manager and the way of a commit under schedules drawn by lot.
//!
//! Sessions are futures that one thread polls in an order drawn anew for every pass, woken or not;
//! a statement that waits is dropped now and then, as a vanished client drops it; and the named
//! places of the commit path let other threads run first, by lot. What loom does for a few
//! instructions, every order, this does for whole transactions, many orders:
//!
//! * no snapshot sees half of a transfer, whichever form it has;
//! * what was committed adds up, what was dropped left nothing;
//! * nobody sleeps for good: a pass in which nobody can go on ends the test by its deadline;
//! * in the end nobody holds or waits for anything.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use throng_observe::stop;
use throng_txn::{Isolation, LockMode, LockTag, Session, SnapshotForm, Txn, TxnSystem, WaitPolicy};
use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::support::{Table, open_as, run, session, under_each_form};

under_each_form! {
    transfers_add_up_under_any_schedule
}

const ROWS: u32 = 5;
const SESSIONS: usize = 6;
const TRANSACTIONS: u32 = 6;
const SCHEDULES: u32 = 25;
const PATIENCE: Duration = Duration::from_secs(60);

/// A xorshift generator: the same seed, the same lots.
struct Lots(Cell<u32>);

impl Lots {
    fn new(seed: u32) -> Lots {
        Lots(Cell::new(seed.wrapping_mul(0x9E37_79B9) | 1))
    }
    fn below(&self, n: u32) -> u32 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.0.set(x);
        x % n
    }
    fn one_in(&self, n: u32) -> bool {
        self.below(n) == 0
    }
}

/// Gives the others their turn.
async fn pause() {
    let mut seen = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut seen, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs a statement to its end, or drops it at one of its waits: `None`.
async fn or_vanish<T>(lots: &Lots, statement: impl Future<Output = T>) -> Option<T> {
    let mut statement = Box::pin(statement);
    poll_fn(|cx| match statement.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if lots.one_in(40) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

struct World {
    sys: Arc<TxnSystem>,
    table: Table,
    lots: Lots,
    /// What committed transactions added to row 0, beside transfers.
    added: Cell<i64>,
    /// Transactions committed, those whose answer was lost included.
    finished: Cell<u32>,
}

impl World {
    async fn client(&self, session: Session) {
        let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead];
        for _ in 0..TRANSACTIONS {
            let isolation = isolation[self.lots.below(2) as usize];
            let txn = session.begin(isolation);
            let worked = or_vanish(&self.lots, self.work(&txn)).await;
            pause().await;
            match worked {
                Some(Ok(sum)) if !self.lots.one_in(6) => {
                    let sync = self.lots.one_in(2);
                    // Dropped or not, from its record on it is committed.
                    if let Some(outcome) = or_vanish(&self.lots, txn.commit(sync)).await {
                        outcome.expect("the log works");
                    }
                    self.added.set(self.added.get() + sum);
                    self.finished.set(self.finished.get() + 1);
                }
                Some(Err(error)) => {
                    assert!(is_expected(&error), "{error:?}");
                    txn.abort();
                }
                // Rolled back by being dropped.
                _ => drop(txn),
            }
        }
    }

    /// Some steps of a transaction; answers what it adds to the total.
    async fn work(&self, txn: &Txn) -> Result<i64> {
        let mut sum = 0;
        for _ in 0..1 + self.lots.below(4) {
            pause().await;
            match self.lots.below(5) {
                0 => {
                    let mode = LockMode::ALL[self.lots.below(8) as usize];
                    txn.lock_relation(Oid(self.lots.below(2)), mode).await?;
                }
                1 => {
                    let tag = LockTag::Advisory {
                        database: Oid(5),
                        key: self.lots.below(2).into(),
                    };
                    let policy =
                        [WaitPolicy::Block, WaitPolicy::NoWait][self.lots.below(2) as usize];
                    txn.lock(tag, LockMode::Exclusive, policy).await?;
                }
                2 => self.look(txn),
                3 => {
                    let level = txn.savepoint();
                    self.transfer(txn).await?;
                    if self.lots.one_in(2) {
                        txn.rollback_to(level);
                    }
                    txn.release(level);
                }
                _ => {
                    self.transfer(txn).await?;
                    self.table.add(txn, 0, 1000).await?;
                    sum += 1000;
                }
            }
        }
        self.look(txn);
        Ok(sum)
    }

    async fn transfer(&self, txn: &Txn) -> Result<()> {
        let (from, to) = (self.lots.below(ROWS), self.lots.below(ROWS));
        self.table.add(txn, from, -1).await?;
        pause().await;
        self.table.add(txn, to, 1).await.map(drop)
    }

    /// Transfers are seen whole.
    fn look(&self, txn: &Txn) {
        let rows = self.table.scan(&txn.snapshot());
        assert_eq!(rows.len(), ROWS as usize);
        let sum: i64 = rows.iter().map(|row| row.1).sum();
        assert_eq!(sum.rem_euclid(1000), 0, "half a transfer is seen: {rows:?}");
    }
}

fn is_expected(error: &Error) -> bool {
    [
        state::DEADLOCK_DETECTED,
        state::LOCK_NOT_AVAILABLE,
        state::SERIALIZATION_FAILURE,
    ]
    .contains(&error.code())
}

/// Polls all of them until they are done, in an order drawn for every pass.
async fn by_lot(lots: &Lots, mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>) {
    let began = Instant::now();
    poll_fn(|cx| {
        assert!(began.elapsed() < PATIENCE, "somebody sleeps for good");
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, lots.below(i as u32 + 1) as usize);
        }
        let mut done = Vec::new();
        for i in order {
            // Some are looked at twice in a row, some of these for no reason.
            for _ in 0..1 + lots.below(2) {
                if !done.contains(&i) && tasks[i].as_mut().poll(cx).is_ready() {
                    done.push(i);
                }
            }
        }
        done.sort_unstable();
        for i in done.into_iter().rev() {
            drop(tasks.swap_remove(i));
        }
        match tasks.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

fn transfers_add_up_under_any_schedule(form: SnapshotForm) {
    // Whoever comes there lets the others run, sometimes.
    let turns = AtomicU32::new(1);
    let dawdle = move |_| {
        for _ in 0..turns.fetch_add(7, Ordering::Relaxed) % 4 {
            std::thread::yield_now();
        }
        Ok(())
    };
    let _flusher = stop::arm("wal.round").run(dawdle);
    let mut finished = 0;
    for seed in 1..=SCHEDULES {
        finished += run(schedule(form, seed));
    }
    assert!(
        finished > SCHEDULES,
        "most of it came to nothing: {finished}"
    );
}

async fn schedule(form: SnapshotForm, seed: u32) -> u32 {
    let sys = open_as(form);
    sys.config().deadlock_timeout_ms.store(1, Ordering::Relaxed);
    let setup = session(&sys);
    let table = Table::create(&sys, &setup).await;
    let txn = setup.begin(Isolation::ReadCommitted);
    for key in 0..ROWS {
        table.insert(&txn, key, 0).await;
    }
    txn.commit(true).await.expect("committed");
    let world = Rc::new(World {
        sys: sys.clone(),
        table,
        lots: Lots::new(seed),
        added: Cell::new(0),
        finished: Cell::new(0),
    });
    let clients = (0..SESSIONS).map(|_| {
        let (world, session) = (world.clone(), session(&sys));
        Box::pin(async move { world.client(session).await }) as Pin<Box<dyn Future<Output = ()>>>
    });
    by_lot(&Lots::new(seed ^ 0x5bd1), clients.collect()).await;
    assert!(world.sys.locks().is_empty(), "{:?}", world.sys.locks());
    let txn = setup.begin(Isolation::ReadCommitted);
    let rows = world.table.scan(&txn.snapshot());
    let sum: i64 = rows.iter().map(|row| row.1).sum();
    assert_eq!(sum, world.added.get(), "{form}, seed {seed}: {rows:?}");
    world.finished.get()
}
