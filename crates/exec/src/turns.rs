//! Turns of statements that compute, on a core that others want too.
//!
//! A session that waits is woken by what it waits for and runs when its event loop comes to it.
//! One that computes gives way after a slice of time ([`next_turn`]) and would be back at once, so
//! many of them would make everybody else wait for a slice of each. They line up instead:
//!
//! ```text
//! woken by a message, a lock, a page ──► the loop runs them all ──┐
//!                                                                 ▼
//! give way after a slice ──► line ──► one at a time: when the others have nothing to do,
//!                              ▲      or have run for twice as long as the last slice
//!                              └──────────────────────────┘
//! ```
//!
//! So a short statement waits for one slice at most, and computing has a third of the core at
//! least.
//!
//! Those in the line are not alike: a scan of a few milliseconds should not wait for all that take
//! minutes, and a thousand equal ones should not all end at the same late moment. So the line has
//! levels by the time that a statement has computed ("multi-level feedback queue": Corbató,
//! Merwin-Daggett and Daley, "An experimental time-sharing system", AFIPS 1962). Within a level the
//! first goes on until it has used the level's time up; each level has twice the share of the next
//! one.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use throng_buffer::{Interrupt, Patience, Try};
use throng_txn::CancelFlag;
use throng_types::Result;
use tokio::task::Id;

/// How much longer than the last slice the others run before the next one.
const OTHERS: u32 = 2;
/// A round of the loop in which nothing else ran takes less.
const EMPTY_ROUND: Duration = Duration::from_micros(6);
/// What a statement has computed when it leaves a level for the next one.
const LEVELS: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::MAX,
];
/// How long the first on the last level goes on.
const LAST: Duration = Duration::from_millis(100);

/// The line of one event loop.
#[derive(Default)]
struct Line {
    levels: [Level; LEVELS.len()],
    /// What the statements of tasks that have been here have computed.
    used: HashMap<Id, Used>,
    last_turn: Option<LastTurn>,
    last: u64,
    /// Wakes what deals out turns.
    dealer: Option<Waker>,
}

#[derive(Default)]
struct Level {
    waiting: VecDeque<Place>,
    /// Time that it was given, in units of its share.
    pass: Duration,
}

/// Whose turn it is, or was last.
#[derive(Clone, Copy)]
struct LastTurn {
    task: Id,
    level: usize,
    /// None: the turn is over.
    since: Option<Instant>,
}

struct Place {
    number: u64,
    task: Id,
    waker: Waker,
}

#[derive(Clone, Copy, Default)]
struct Used {
    all: Duration,
    /// Since the task was last behind all others of its level.
    in_front: Duration,
}

impl Used {
    fn level(self) -> usize {
        let left = LEVELS.iter().position(|most| self.all < *most);
        left.unwrap_or(LEVELS.len() - 1)
    }
}

impl Line {
    fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.waiting.is_empty())
    }

    fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.levels.iter_mut().flat_map(|level| &mut level.waiting)
    }

    /// Takes a place for a task: the first of its level if it goes on, else the last.
    fn stand(&mut self, task: Id, waker: Waker) -> u64 {
        let before = self.last_turn.filter(|last_turn| last_turn.task == task);
        if before.is_some() {
            self.turn_is_over();
        }
        self.last += 1;
        let place = Place {
            number: self.last,
            task,
            waker,
        };
        let used = self.used.entry(task).or_default();
        let level = used.level();
        let same = before.is_some_and(|before| before.level == level);
        let goes_on = same && used.in_front < LAST;
        if !goes_on {
            used.in_front = Duration::ZERO;
        }
        if self.levels[level].waiting.is_empty() {
            // What it was not there for it has not missed.
            let others = self.levels.iter().filter(|level| !level.waiting.is_empty());
            let least = others.map(|level| level.pass).min().unwrap_or_default();
            self.levels[level].pass = self.levels[level].pass.max(least);
        }
        let waiting = &mut self.levels[level].waiting;
        match goes_on {
            true => waiting.push_front(place),
            false => waiting.push_back(place),
        }
        self.last
    }

    /// Wakes whose turn is next.
    fn deal(&mut self) {
        let levels = self.levels.iter_mut().enumerate();
        let standing = levels.filter(|(_, level)| !level.waiting.is_empty());
        let Some((at, level)) = standing.min_by_key(|(_, level)| level.pass) else {
            return;
        };
        if let Some(place) = level.waiting.pop_front() {
            self.last_turn = Some(LastTurn {
                task: place.task,
                level: at,
                since: Some(Instant::now()),
            });
            place.waker.wake();
        }
    }

    /// Counts the turn that was dealt out last, if that has not been done.
    fn turn_is_over(&mut self) {
        let Some(last_turn) = &mut self.last_turn else {
            return;
        };
        let Some(since) = last_turn.since.take() else {
            return;
        };
        let slice = since.elapsed();
        self.levels[last_turn.level].pass += slice * (1 << last_turn.level);
        if let Some(used) = self.used.get_mut(&last_turn.task) {
            used.all += slice;
            used.in_front += slice;
        }
    }
}

thread_local! {
    /// None on threads where nobody deals out turns.
    static LINE: RefCell<Option<Line>> = const { RefCell::new(None) };
}

/// What the line of this thread's loop gives; None where there is none.
fn with_line<T>(f: impl FnOnce(&mut Line) -> T) -> Option<T> {
    LINE.with_borrow_mut(|line| line.as_mut().map(f))
}

/// The calling task begins a statement, or ends: what it has computed before does not count.
pub fn statement_begins() {
    with_line(|line| {
        if !line.used.is_empty()
            && let Some(task) = tokio::task::try_id()
        {
            line.used.remove(&task);
        }
    });
}

/// Gives way to others: comes back when it is this statement's turn.
pub async fn next_turn() {
    match tokio::task::try_id() {
        Some(task) if with_line(|_| ()).is_some() => Turn { task, number: None }.await,
        _ => tokio::task::yield_now().await,
    }
}

/// Calls `attempt` until it succeeds or fails, waiting for what it lacks, and for this statement's
/// turn where it has done much. Between turns a cancel is noticed, if one is looked for.
///
/// # Errors
/// What `attempt`, or a wait, failed with, and what the cancel says.
pub async fn retry<T>(
    cancel: Option<&CancelFlag>,
    mut attempt: impl FnMut() -> Try<T>,
) -> Result<T> {
    let mut patience = Patience::default();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Error(error)) => return Err(error),
            Err(Interrupt::Wait(wait)) => patience.wait(wait).await?,
            Err(Interrupt::Yield) => {
                cancel.map_or(Ok(()), CancelFlag::check)?;
                next_turn().await;
            }
        }
    }
}

/// A place in the line of the thread on which it is polled.
struct Turn {
    task: Id,
    number: Option<u64>,
}

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let poll = with_line(|line| match self.number {
            None => {
                self.number = Some(line.stand(self.task, context.waker().clone()));
                if let Some(dealer) = line.dealer.take() {
                    dealer.wake();
                }
                Poll::Pending
            }
            Some(number) => match line.places().find(|place| place.number == number) {
                // Woken by something else.
                Some(place) => {
                    place.waker.clone_from(context.waker());
                    Poll::Pending
                }
                None => Poll::Ready(()),
            },
        });
        poll.unwrap_or(Poll::Ready(()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            with_line(|line| {
                for level in &mut line.levels {
                    level.waiting.retain(|place| place.number != number);
                }
            });
        }
    }
}

/// Deals out the turns of the calling thread's event loop, as one of its tasks. `give_core` lets
/// other threads have the core for a moment.
pub async fn deal(give_core: impl Fn()) {
    LINE.set(Some(Line::default()));
    let _closed = Closed;
    loop {
        somebody_waits().await;
        let mut dealt = Instant::now();
        let mut slice = Duration::ZERO;
        let mut core_was_given = false;
        while with_line(|line| !line.is_empty()) == Some(true) {
            let began = Instant::now();
            // What is ready runs before this task does again.
            tokio::task::yield_now().await;
            let now = Instant::now();
            let is_idle = now - began < EMPTY_ROUND;
            if is_idle && !core_was_given {
                // Clients on this core may have something to send.
                give_core();
                core_was_given = true;
                continue;
            }
            if is_idle || now - dealt >= slice * OTHERS {
                let began = Instant::now();
                with_line(Line::deal);
                tokio::task::yield_now().await;
                dealt = Instant::now();
                slice = dealt - began;
                core_was_given = false;
                with_line(Line::turn_is_over);
            }
        }
    }
}

/// Nobody deals out turns any more: who waits for one has it.
struct Closed;

impl Drop for Closed {
    fn drop(&mut self) {
        let line = LINE.take();
        let levels = line.into_iter().flat_map(|line| line.levels);
        let places = levels.flat_map(|level| level.waiting);
        places.for_each(|place| place.waker.wake());
    }
}

async fn somebody_waits() {
    poll_fn(|context| {
        let is_empty = with_line(|line| {
            let is_empty = line.is_empty();
            line.dealer = is_empty.then(|| context.waker().clone());
            is_empty
        });
        match is_empty {
            Some(false) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local};

    use super::*;

    fn compute(time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }

    fn on_a_loop(task: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        runtime.block_on(LocalSet::new().run_until(async {
            spawn_local(deal(|| ()));
            tokio::task::yield_now().await;
            task.await;
        }));
    }

    #[test]
    fn turns_go_round() {
        on_a_loop(async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = (0..3)
                .map(|n| {
                    let order = order.clone();
                    spawn_local(async move {
                        for _ in 0..4 {
                            next_turn().await;
                            // Longer than a level's time.
                            compute(Duration::from_millis(120));
                            order.borrow_mut().push(n);
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("no panic");
            }
            let mut turns = [0_u32; 3];
            for task in order.take() {
                turns[task] += 1;
                // Who comes to the last level first is one turn ahead at times.
                assert!(turns.iter().all(|n| turns[task] <= n + 2), "{turns:?}");
            }
            assert_eq!(turns, [4; 3]);
        });
    }

    /// Beside many that compute, one that has little to do at a time is seldom kept waiting for
    /// more than one slice; and where it always has something to do, they still have their share.
    #[test]
    fn others_wait_for_one_slice() {
        const SLICE: Duration = Duration::from_micros(200);
        on_a_loop(async {
            let computed = Rc::new(Cell::new(0_u32));
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    let computed = computed.clone();
                    spawn_local(async move {
                        loop {
                            compute(SLICE);
                            computed.set(computed.get() + 1);
                            next_turn().await;
                        }
                    })
                })
                .collect();
            tokio::task::yield_now().await;
            let (mut own, mut most) = (0_u32, 0);
            computed.set(0);
            while own < 400 {
                compute(SLICE / 4);
                own += 1;
                let before = computed.get();
                tokio::task::yield_now().await;
                most = most.max(computed.get() - before);
            }
            assert!(most <= 1, "{most} slices in one wait");
            // A third of the time, had nobody disturbed the measurement.
            let computed = computed.get();
            assert!((10..=70).contains(&computed), "{computed} slices");
            tasks.iter().for_each(|task| task.abort());
        });
    }

    /// Equal ones end one after another, and a short one that comes later ends before them.
    #[test]
    fn who_has_computed_less_comes_first() {
        on_a_loop(async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let start = |name: u32, slices: u32| {
                let order = order.clone();
                spawn_local(async move {
                    for slice in 0..slices {
                        compute(Duration::from_millis(1));
                        if slice == 0 {
                            order.borrow_mut().push(100 + name);
                        }
                        next_turn().await;
                    }
                    order.borrow_mut().push(name);
                })
            };
            let mut tasks: Vec<_> = (0..4).map(|name| start(name, 40)).collect();
            while !order.borrow().contains(&1) {
                tokio::task::yield_now().await;
            }
            tasks.push(start(9, 3));
            for task in tasks {
                task.await.expect("no panic");
            }
            let mut ended = order.take();
            ended.retain(|name| *name < 100);
            assert_eq!(ended, [0, 1, 9, 2, 3]);
        });
    }

    #[test]
    fn a_statement_is_not_charged_for_the_one_before() {
        on_a_loop(async {
            let task = spawn_local(async {
                compute(Duration::from_millis(2));
                next_turn().await;
                compute(Duration::from_millis(2));
                next_turn().await;
                let level = || with_line(|line| line.used.values().next().map(|u| u.level()));
                assert_eq!(level(), Some(Some(1)));
                statement_begins();
                assert_eq!(level(), Some(None));
            });
            task.await.expect("no panic");
        });
    }

    #[test]
    fn who_does_not_want_a_turn_any_more_is_passed_over() {
        on_a_loop(async {
            let gone = spawn_local(next_turn());
            gone.abort();
            let _ = gone.await;
            let left = spawn_local(next_turn());
            left.await.expect("its turn comes");
        });
    }

    #[test]
    fn without_a_dealer_it_only_gives_way() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(next_turn());
    }
}
