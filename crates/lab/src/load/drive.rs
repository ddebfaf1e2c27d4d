//! Runs a workload's clients against one target for a while, and measures.
//!
//! ```text
//!  connect all ─► barrier ─► warm-up ─► measured window ─► no new transactions ─► those under way end ─► join
//!                            └────── threads: a reactor each, clients dealt evenly ──────┘
//! ```
//!
//! **Latency.** Without a rate the loop is closed: a client sends its next transaction when the
//! last has ended, and latency is from sending to the end. A server that stalls is then asked less
//! while it stalls, so the long latencies are under-counted (coordinated omission); results say so.
//! With a rate each client has a schedule that does not care how the server does (exponential gaps:
//! together the clients are a Poisson stream), and latency is from the time when the transaction
//! was to start, however late it did.
//!
//! **Counted** are transactions that end inside the window. Of those that start in it and end later
//! nothing is known but that they ended; what has not ended after [`GRACE`] is cut off and
//! reported.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use throng_observe::thread_cpu_nanos;
use throng_sync::CachePadded;

use super::random::Random;
use super::reactor::{Reactor, Task};
use super::sql::Mode;
use super::trouble::{Result, Trouble};
use super::url::Target;
use super::workload::{Client, Done, Link, Workload};

/// How long a transaction may go on after the end of the window.
const GRACE: Duration = Duration::from_secs(60);
/// After a failed connection a client waits this long: a server that refuses is not stormed.
const RECONNECT_WAIT: Duration = Duration::from_millis(20);
/// Nanoseconds that histograms tell apart at best, and the longest they hold (an hour); three
/// digits between.
const FINEST: u64 = 512;
const LONGEST: u64 = 3_600_000_000_000;

/// How to load.
#[derive(Clone, Debug)]
pub struct Plan {
    pub clients: usize,
    /// Of the load's own; no more than clients.
    pub threads: usize,
    pub warm_up: Duration,
    pub window: Duration,
    /// Transactions a second, all clients together; none for a closed loop.
    pub rate: Option<f64>,
    /// How often a transaction is tried that fails with 40001 or 40P01, or MySQL's 1213 or 1205; at
    /// least 1.
    pub tries: u32,
    pub mode: Mode,
    pub seed: u64,
}

impl Plan {
    /// A closed loop of simple statements, deadlocks and serialization failures retried as often as
    /// it takes.
    pub fn new(clients: usize, window: Duration) -> Plan {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Plan {
            clients,
            threads: cores.min(clients),
            warm_up: window.mul_f64(0.1).min(Duration::from_secs(1)),
            window,
            rate: None,
            tries: u32::MAX,
            mode: Mode::Simple,
            seed: 20_260_101,
        }
    }
}

/// What a load measured.
#[derive(Debug)]
pub struct Measured {
    pub clients: usize,
    /// The window, as it was on the clock.
    pub elapsed: Duration,
    /// By kind, in the workload's order.
    pub kinds: Vec<Kind>,
    /// Transactions that each client ended in the window.
    pub per_client: Vec<u64>,
    /// Failed tries that were tried again.
    pub retries: u64,
    /// Failures by SQLSTATE (or a word): how many, and the first one's text.
    pub failures: BTreeMap<String, (u64, String)>,
    /// Clients cut off because their transaction did not end.
    pub cut_off: usize,
    /// CPU time of the load itself, in the window.
    pub own_cpu: Duration,
    /// Whether latencies are from intended starts.
    pub paced: bool,
}

#[derive(Debug)]
pub struct Kind {
    pub name: String,
    pub committed: u64,
    pub rolled_back: u64,
    /// Nanoseconds.
    pub latency: Histogram<u64>,
}

impl Measured {
    /// Transactions that ended as they should, committed or rolled back on purpose.
    pub fn done(&self) -> u64 {
        self.kinds.iter().map(|k| k.committed + k.rolled_back).sum()
    }

    pub fn per_second(&self) -> f64 {
        self.done() as f64 / self.elapsed.as_secs_f64()
    }

    pub fn failed(&self) -> u64 {
        self.failures.values().map(|(count, _)| count).sum()
    }

    /// All kinds' latencies in one.
    pub fn latency(&self) -> Histogram<u64> {
        let mut all = histogram();
        for kind in &self.kinds {
            all.add(&kind.latency).expect("all have the same bounds");
        }
        all
    }

    /// The slowest client's transactions as a share of the mean; 1 is perfectly fair.
    pub fn fairness(&self) -> f64 {
        let least = self.per_client.iter().min().copied().unwrap_or(0) as f64;
        let mean = self.per_client.iter().sum::<u64>() as f64 / self.per_client.len() as f64;
        if mean > 0.0 { least / mean } else { 0.0 }
    }

    /// CPU time the load spent for each transaction.
    pub fn own_cpu_each(&self) -> Duration {
        self.own_cpu.div_f64(self.done().max(1) as f64)
    }
}

/// An empty one, with the bounds that all of a load have.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(FINEST, LONGEST, 3).expect("the bounds are constants")
}

/// More threads than this share counters.
const COUNTERS: usize = 32;

/// What watches a run from outside may ask at any time.
#[derive(Default)]
pub struct Watch {
    /// By thread, so that counting moves no cache line between them.
    done: [CachePadded<AtomicU64>; COUNTERS],
    stop: AtomicBool,
}

impl Watch {
    /// Transactions that ended so far, those of the warm-up included.
    pub fn done(&self) -> u64 {
        // Relaxed: a progress line may be late.
        self.done.iter().map(|c| c.load(Ordering::Relaxed)).sum()
    }

    /// Ends the run early: no client starts another transaction.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Loads the target as planned.
pub fn drive(workload: &dyn Workload, target: &Target, plan: &Plan) -> Result<Measured> {
    drive_watched(workload, target, plan, &Watch::default())
}

/// As [`drive`]; what has been done can be read from `watch` meanwhile.
pub fn drive_watched(
    workload: &dyn Workload,
    target: &Target,
    plan: &Plan,
    watch: &Watch,
) -> Result<Measured> {
    if plan.clients == 0 {
        return Err(Trouble::usage("a load needs at least one client"));
    }
    let threads = plan.threads.clamp(1, plan.clients);
    let barrier = Barrier::new(threads);
    let failed_early = AtomicBool::new(false);
    let share = |thread: usize| (thread..plan.clients).step_by(threads);
    let results: Vec<Result<Option<ThreadResult>>> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads)
            .map(|thread| {
                let crew = Crew {
                    workload,
                    target,
                    plan,
                    watch,
                    barrier: &barrier,
                    failed_early: &failed_early,
                    thread,
                };
                scope.spawn(move || crew.run(share(thread).collect()))
            })
            .collect();
        spawned
            .into_iter()
            .map(|t| {
                t.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let mut measured = Measured {
        clients: plan.clients,
        elapsed: Duration::ZERO,
        kinds: kinds(workload),
        per_client: vec![0; plan.clients],
        retries: 0,
        failures: BTreeMap::new(),
        cut_off: 0,
        own_cpu: Duration::ZERO,
        paced: plan.rate.is_some(),
    };
    for part in results {
        if let Some(part) = part? {
            part.add_to(&mut measured);
        }
    }
    Ok(measured)
}

fn kinds(workload: &dyn Workload) -> Vec<Kind> {
    let kind = |name| Kind {
        name,
        committed: 0,
        rolled_back: 0,
        latency: histogram(),
    };
    workload.kinds().into_iter().map(kind).collect()
}

/// What one thread measured.
struct ThreadResult {
    kinds: Vec<Kind>,
    /// Client numbers and their transactions.
    per_client: Vec<(usize, u64)>,
    retries: u64,
    failures: BTreeMap<String, (u64, String)>,
    cut_off: usize,
    own_cpu: Duration,
    elapsed: Duration,
}

impl ThreadResult {
    fn fail(&mut self, trouble: &Trouble) {
        let class = trouble.class();
        match self.failures.get_mut(class.as_ref()) {
            Some((count, _)) => *count += 1,
            None => {
                let first = (1, trouble.to_string());
                self.failures.insert(class.into_owned(), first);
            }
        }
    }

    fn add_to(self, all: &mut Measured) {
        for (sum, kind) in all.kinds.iter_mut().zip(self.kinds) {
            sum.committed += kind.committed;
            sum.rolled_back += kind.rolled_back;
            sum.latency
                .add(&kind.latency)
                .expect("all have the same bounds");
        }
        for (client, count) in self.per_client {
            all.per_client[client] = count;
        }
        for (class, (count, first)) in self.failures {
            let sum = all.failures.entry(class).or_insert((0, first));
            sum.0 += count;
        }
        all.retries += self.retries;
        all.cut_off += self.cut_off;
        all.own_cpu += self.own_cpu;
        all.elapsed = all.elapsed.max(self.elapsed);
    }
}

/// One thread's way through a run.
#[derive(Clone, Copy)]
struct Crew<'a> {
    workload: &'a dyn Workload,
    target: &'a Target,
    plan: &'a Plan,
    watch: &'a Watch,
    barrier: &'a Barrier,
    failed_early: &'a AtomicBool,
    thread: usize,
}

impl Crew<'_> {
    /// Nothing if another thread could not connect, which then says why.
    fn run(self, numbers: Vec<usize>) -> Result<Option<ThreadResult>> {
        let connected = Reactor::new()
            .map_err(Trouble::from)
            .and_then(|reactor| Ok((self.connect(&reactor, numbers.len())?, reactor)));
        if connected.is_err() {
            self.failed_early.store(true, Ordering::Relaxed);
        }
        // The barrier orders the flag: whoever passes sees what was stored before.
        self.barrier.wait();
        let (links, reactor) = connected?;
        if self.failed_early.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let start = Instant::now();
        let window = Window {
            start,
            from: start + self.plan.warm_up,
            to: start + self.plan.warm_up + self.plan.window,
        };
        let part = Rc::new(RefCell::new(ThreadResult {
            kinds: kinds(self.workload),
            per_client: numbers.iter().map(|n| (*n, 0)).collect(),
            retries: 0,
            failures: BTreeMap::new(),
            cut_off: 0,
            own_cpu: Duration::ZERO,
            elapsed: self.plan.window,
        }));
        let mut tasks: Vec<Task<'_>> = Vec::with_capacity(numbers.len() + 1);
        for (place, (number, link)) in numbers.into_iter().zip(links).enumerate() {
            let turn = Turn {
                crew: self,
                window,
                part: part.clone(),
                place,
                number,
            };
            tasks.push(Box::pin(turn.serve(link)));
        }
        let clock = (reactor.clone(), part.clone());
        tasks.push(Box::pin(async move {
            let (reactor, part) = clock;
            reactor.sleep_until(window.from).await;
            let before = thread_cpu_nanos();
            reactor.sleep_until(window.to).await;
            part.borrow_mut().own_cpu = Duration::from_nanos(thread_cpu_nanos() - before);
        }));
        let cut_off = reactor.run(tasks, Some(window.to + GRACE))?;
        let mut part = Rc::into_inner(part).expect("tasks are gone").into_inner();
        part.cut_off = cut_off;
        Ok(Some(part))
    }

    /// Opens this thread's connections, all at once.
    fn connect(&self, reactor: &Reactor, count: usize) -> Result<Vec<Link>> {
        let mut links: Vec<Link> = (0..count)
            .map(|_| Link::new(reactor, self.target, self.plan.mode))
            .collect();
        if self.workload.connects_itself() {
            return Ok(links);
        }
        let trouble = RefCell::new(None);
        let tasks = links
            .iter_mut()
            .map(|link| -> Task<'_> {
                Box::pin(async {
                    if let Err(e) = link.connection().await {
                        trouble.borrow_mut().get_or_insert(e);
                    }
                })
            })
            .collect();
        let left = reactor.run(tasks, Some(Instant::now() + GRACE))?;
        if let Some(trouble) = trouble.into_inner() {
            return Err(trouble);
        }
        if left > 0 {
            return Err(Trouble::broken(format!(
                "{left} of {count} connections were not answered within {GRACE:?}"
            )));
        }
        Ok(links)
    }
}

/// When things count.
#[derive(Clone, Copy)]
struct Window {
    start: Instant,
    from: Instant,
    to: Instant,
}

impl Window {
    fn holds(&self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }
}

/// One client's life in a run.
struct Turn<'a> {
    crew: Crew<'a>,
    window: Window,
    part: Rc<RefCell<ThreadResult>>,
    /// Among the thread's clients, and among all.
    place: usize,
    number: usize,
}

impl Turn<'_> {
    async fn serve(self, mut link: Link) {
        let plan = self.crew.plan;
        let mut client = self
            .crew
            .workload
            .client(self.number, plan.clients, plan.seed);
        // A stream apart from the client's own, whose numbers must not depend on the pace.
        let mut pace = plan.rate.map(|rate| Pace {
            mean: plan.clients as f64 / rate,
            random: Random::of(!plan.seed, self.number as u64),
            next: self.window.start,
        });
        loop {
            let kind = client.draw();
            let pauses = client.pauses();
            let mut intended = Instant::now();
            if let Some(pace) = &mut pace {
                intended = pace.step();
            }
            if intended >= self.window.to || self.crew.watch.is_stopped() {
                break;
            }
            if pace.is_some() {
                link.reactor().sleep_until(intended).await;
            }
            if !pauses.before.is_zero() {
                intended += pauses.before;
                if intended >= self.window.to {
                    break;
                }
                link.reactor().sleep_until(intended).await;
            }
            if !self
                .transaction(client.as_mut(), &mut link, kind, intended)
                .await
            {
                break;
            }
            if !pauses.after.is_zero() {
                link.reactor().sleep(pauses.after).await;
            }
        }
        link.close().await;
    }

    /// One transaction with its retries. False if the client has nothing more to do.
    async fn transaction(
        &self,
        client: &mut dyn Client,
        link: &mut Link,
        kind: usize,
        intended: Instant,
    ) -> bool {
        let mut tries = 1;
        loop {
            let ended = client.run(link).await;
            let now = Instant::now();
            let trouble = match ended {
                Ok(done) => {
                    self.count(kind, done, intended, now);
                    return true;
                }
                Err(trouble) => trouble,
            };
            if trouble.ends_connection() {
                link.abandon();
            } else {
                link.recover().await;
            }
            let again =
                trouble.is_retryable() && tries < self.crew.plan.tries && now < self.window.to;
            if self.window.holds(now) {
                let mut part = self.part.borrow_mut();
                match again {
                    true => part.retries += 1,
                    false => part.fail(&trouble),
                }
            }
            if !again {
                if trouble.ends_connection() {
                    link.reactor().sleep(RECONNECT_WAIT).await;
                }
                return !matches!(trouble, Trouble::Usage(_));
            }
            tries += 1;
        }
    }

    #[inline]
    fn count(&self, kind: usize, done: Done, intended: Instant, now: Instant) {
        // Relaxed: nobody orders anything by it.
        self.crew.watch.done[self.crew.thread % COUNTERS].fetch_add(1, Ordering::Relaxed);
        if !self.window.holds(now) {
            return;
        }
        let mut part = self.part.borrow_mut();
        part.per_client[self.place].1 += 1;
        let kind = &mut part.kinds[kind];
        match done {
            Done::Committed => kind.committed += 1,
            Done::RolledBack => kind.rolled_back += 1,
        }
        let nanos = now.saturating_duration_since(intended).as_nanos() as u64;
        kind.latency.saturating_record(nanos);
    }
}

/// A client's schedule, which the server's answers do not move.
struct Pace {
    /// Seconds between two starts, on average.
    mean: f64,
    random: Random,
    next: Instant,
}

impl Pace {
    fn step(&mut self) -> Instant {
        self.next += Duration::from_secs_f64(self.random.exponential(self.mean));
        self.next
    }
}
