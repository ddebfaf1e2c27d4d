//! Gives the targets their turns, and makes findings of what they did.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::answerer::Answerer;
use super::findings::{Checked, Findings, Point, Target as Found, Wait, knee};
use super::limits;
use super::server::Server;
use super::waits::{self, Watch};
use crate::findings::{Latency, Machine};
use crate::load::dialect::Dialect;
use crate::load::drive::{self, Measured, Plan, drive_watched};
use crate::load::trouble::Trouble;
use crate::load::url::{Address, Target};
use crate::load::workload::Workload;
use crate::load::workload::tpcc::Tpcc;
use crate::numbers::number;
use crate::stats::Spread;
use crate::usl::{self, Observed};
use crate::{Progress, Result};

/// How often the progress line changes.
const SAY: Duration = Duration::from_millis(500);

/// How long the machine is looked at before anything begins: fifty of /proc/stat's ticks a core.
const LOOK_BEFORE: Duration = Duration::from_millis(500);

/// What a bench is told.
pub struct Wishes {
    pub targets: Vec<Target>,
    /// Ascending, each once.
    pub clients: Vec<usize>,
    pub rounds: usize,
    /// The plan of a turn, but for its clients.
    pub plan: Plan,
    /// Whether tables are made and filled first.
    pub load: bool,
    /// Whether the constant answerer takes turns too.
    pub answerer: bool,
    pub scale: i64,
}

/// One target with its own workload, which remembers what was answered.
struct Side {
    target: Target,
    server: Server,
    workload: Box<dyn Workload>,
    /// By number of clients, then by round.
    turns: Vec<Vec<Turn>>,
}

/// What one turn measured.
struct Turn {
    measured: Measured,
    waits: Vec<Wait>,
    busy: f64,
    own: f64,
}

pub fn run(
    make: &dyn Fn(Dialect) -> Result<Box<dyn Workload>>,
    wishes: &Wishes,
    progress: &Progress,
) -> Result<Findings> {
    let machine = Machine::detect();
    let busy_before = busy_by_others()?;
    let mut sides = Vec::with_capacity(wishes.targets.len());
    for target in &wishes.targets {
        let during = |e: crate::Error| e.during(target);
        let server = Server::identify(target).map_err(|e| during(e.into()))?;
        let workload = make(target.dialect)?;
        if wishes.load {
            let say = |what: &str| progress.say(format_args!("{target}: loading {what}"));
            workload.load(target, &say).map_err(|e| during(e.into()))?;
        }
        sides.push(Side {
            target: target.clone(),
            server,
            workload,
            turns: wishes.clients.iter().map(|_| Vec::new()).collect(),
        });
    }
    let mut answers: Vec<Vec<Turn>> = wishes.clients.iter().map(|_| Vec::new()).collect();
    for round in 0..wishes.rounds {
        for (place, &clients) in wishes.clients.iter().enumerate() {
            let plan = Plan {
                clients,
                threads: wishes.plan.threads.min(clients),
                ..wishes.plan.clone()
            };
            let of = wishes.rounds;
            // In rotating order, so that nobody is always first.
            for turn in 0..sides.len() {
                let count = sides.len();
                let side = &mut sides[(round + turn) % count];
                let label = format!(
                    "round {} of {of}, {clients} clients, {}",
                    round + 1,
                    side.target
                );
                let turn = side.turn(&plan, machine.cores, progress, &label)?;
                side.turns[place].push(turn);
            }
            if wishes.answerer {
                let label = format!(
                    "round {} of {of}, {clients} clients, constant answers",
                    round + 1
                );
                let like = &wishes.targets[0].address;
                answers[place].push(answered(
                    make,
                    &plan,
                    like,
                    machine.cores,
                    progress,
                    &label,
                )?);
            }
        }
    }
    let mut targets = Vec::with_capacity(sides.len() + 1);
    for side in sides {
        progress.say(format_args!("{}: checking", side.target));
        targets.push(side.found(wishes)?);
    }
    if wishes.answerer {
        targets.push(found(None, wishes, &answers, Vec::new()));
    }
    describe(&mut targets, wishes, machine.cores);
    Ok(Findings {
        workload: make(Dialect::Postgres)?.name(),
        scale: wishes.scale,
        mode: wishes.plan.mode.name(),
        rounds: wishes.rounds,
        seconds: wishes.plan.window.as_secs_f64(),
        latency_from: match wishes.plan.rate {
            Some(_) => "the intended start, at a given rate: stalls count in full",
            None => {
                "sending, in a closed loop: while a server stalls it is asked less, so stalls are under-counted"
            }
        },
        machine,
        busy_before,
        targets,
    })
}

/// The share of the cores that others use now, while the bench does nothing.
fn busy_by_others() -> Result<f64> {
    let before = Ticks::now()?;
    std::thread::sleep(LOOK_BEFORE);
    Ok(before.busy_since(Ticks::now()?))
}

fn describe(targets: &mut [Found], wishes: &Wishes, cores: usize) {
    let answerer: BTreeMap<usize, f64> = targets
        .iter()
        .filter(|t| t.is_answerer)
        .flat_map(|t| t.points.iter().map(|p| (p.clients, p.throughput.median)))
        .collect();
    for target in targets {
        // What the client can do in one protocol says nothing of the other.
        let knee = target
            .knee
            .filter(|_| target.protocol == Dialect::Postgres.scheme());
        let most = knee.and_then(|clients| answerer.get(&clients).copied());
        let threads = wishes.plan.threads.min(target.knee.unwrap_or(1));
        target.limit = limits::describe(target, most, threads, cores);
    }
}

impl Side {
    fn turn(&self, plan: &Plan, cores: usize, progress: &Progress, label: &str) -> Result<Turn> {
        let during = |e: crate::Error| e.during(&self.target);
        let watch = Watch::begin(&self.target, &self.server).map_err(|e| during(e.into()))?;
        let turn = watched(
            self.workload.as_ref(),
            &self.target,
            plan,
            cores,
            progress,
            label,
        );
        let waits = watch.read().map_err(|e| during(e.into()))?;
        turn.map(|turn| Turn { waits, ..turn }).map_err(during)
    }

    fn found(self, wishes: &Wishes) -> Result<Found> {
        let during = |e: Trouble| crate::Error::from(e).during(&self.target);
        let conditions = self.workload.check(&self.target).map_err(during)?;
        if conditions.iter().all(|c| c.fault.is_none()) {
            self.workload.tidy(&self.target).map_err(during)?;
        }
        let checked = |c: crate::load::workload::Condition| Checked {
            condition: c.name,
            fault: c.fault,
        };
        let conditions = conditions.into_iter().map(checked).collect();
        let who = Some((&self.target, self.server));
        Ok(found(who, wishes, &self.turns, conditions))
    }
}

/// A turn on the constant answerer, reached the way that `like` is.
fn answered(
    make: &dyn Fn(Dialect) -> Result<Box<dyn Workload>>,
    plan: &Plan,
    like: &Address,
    cores: usize,
    progress: &Progress,
    label: &str,
) -> Result<Turn> {
    let answerer = Answerer::start(plan.clients, cores, like)?;
    let workload = make(Dialect::Postgres)?;
    let turn = watched(
        workload.as_ref(),
        &answerer.target(),
        plan,
        cores,
        progress,
        label,
    )?;
    answerer.finish()?;
    Ok(turn)
}

/// Drives a turn while a line says how it goes.
fn watched(
    workload: &dyn Workload,
    target: &Target,
    plan: &Plan,
    cores: usize,
    progress: &Progress,
    label: &str,
) -> Result<Turn> {
    // What others have left unwritten would be written at this turn's expense.
    progress.say(format_args!("{label}: syncing"));
    rustix::fs::sync();
    let watch = drive::Watch::default();
    let before = Ticks::now()?;
    let measured = std::thread::scope(|scope| {
        let driving = scope.spawn(|| drive_watched(workload, target, plan, &watch));
        let (mut since, mut done) = (Instant::now(), 0);
        while !driving.is_finished() {
            // The driving thread wakes this one by nothing: look often, say seldom.
            std::thread::sleep(Duration::from_millis(20));
            if since.elapsed() >= SAY {
                let now = watch.done();
                let rate = (now - done) as f64 / since.elapsed().as_secs_f64();
                progress.say(format_args!("{label}: {}/s", number(rate)));
                (since, done) = (Instant::now(), now);
            }
        }
        driving
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let busy = before.busy_since(Ticks::now()?);
    let own = measured.own_cpu.as_secs_f64() / measured.elapsed.as_secs_f64() / cores as f64;
    Ok(Turn {
        measured,
        waits: Vec::new(),
        busy,
        own,
    })
}

/// Without a server it is the constant answerer.
fn found(
    who: Option<(&Target, Server)>,
    wishes: &Wishes,
    turns: &[Vec<Turn>],
    conditions: Vec<Checked>,
) -> Found {
    let points: Vec<Point> = turns.iter().filter_map(|rounds| point(rounds)).collect();
    let observed: Vec<Observed> = points
        .iter()
        .flat_map(|p| p.throughput.rounds.iter().map(|t| (p.clients, *t)))
        .filter(|(_, throughput)| *throughput > 0.0)
        .map(|(clients, throughput)| Observed {
            clients: clients as f64,
            throughput,
        })
        .collect();
    debug_assert_eq!(turns.len(), wishes.clients.len());
    let is_answerer = who.is_none();
    let (name, protocol, server) = match who {
        Some((target, server)) => (target.to_string(), target.dialect.scheme(), server),
        None => (
            "constant answers".to_owned(),
            Dialect::Postgres.scheme(),
            Server::answerer(),
        ),
    };
    Found {
        name,
        protocol,
        version: server.version,
        settings: server.settings,
        telling: server.telling,
        knee: knee(&points),
        points,
        law: usl::fit(&observed),
        conditions,
        limit: String::new(),
        is_answerer,
    }
}

/// None if there were no rounds.
fn point(rounds: &[Turn]) -> Option<Point> {
    let spread =
        |of: &dyn Fn(&Turn) -> f64| Spread::of(&rounds.iter().map(of).collect::<Vec<f64>>());
    let first = &rounds.first()?.measured;
    let mut failures: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for (class, (count, text)) in rounds.iter().flat_map(|r| &r.measured.failures) {
        failures
            .entry(class.clone())
            .or_insert_with(|| (0, text.clone()))
            .0 += count;
    }
    let cut_off: usize = rounds.iter().map(|r| r.measured.cut_off).sum();
    if cut_off > 0 {
        let text = "transactions that did not end within a minute".to_owned();
        failures.insert("cut off".to_owned(), (cut_off as u64, text));
    }
    let kinds = match first.kinds.len() {
        1 => Vec::new(),
        count => (0..count)
            .map(|kind| {
                let of = rounds.iter().map(|r| &r.measured.kinds[kind].latency);
                (first.kinds[kind].name.clone(), latency(of))
            })
            .collect(),
    };
    let all: Vec<Histogram<u64>> = rounds.iter().map(|r| r.measured.latency()).collect();
    let is_tpcc = kinds.len() == 5;
    Some(Point {
        clients: first.clients,
        throughput: spread(&|r| r.measured.per_second())?,
        tpmc: is_tpcc
            .then(|| spread(&|r| Tpcc::tpmc(&r.measured)))
            .flatten(),
        latency: latency(all.iter()),
        kinds,
        fairness: spread(&|r| r.measured.fairness())?,
        failures,
        retries: rounds.iter().map(|r| r.measured.retries).sum(),
        busy: spread(&|r| r.busy)?.median,
        own: spread(&|r| r.own)?.median,
        waits: waits::mean(&rounds.iter().map(|r| r.waits.clone()).collect::<Vec<_>>()),
    })
}

/// Of all rounds together.
fn latency<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Latency {
    let mut all = drive::histogram();
    for histogram in histograms {
        all.add(histogram).expect("all have the same bounds");
    }
    Latency {
        p50: all.value_at_quantile(0.50),
        p95: all.value_at_quantile(0.95),
        p99: all.value_at_quantile(0.99),
        most: all.max(),
    }
}

/// The machine's time since it started, all cores together (proc_stat(5), first line).
#[derive(Clone, Copy)]
struct Ticks {
    all: u64,
    idle: u64,
}

impl Ticks {
    fn now() -> Result<Ticks> {
        let text = std::fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal; guest time is within user's.
        let fields: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|f| f.parse().ok())
            .collect();
        let at = |place: usize| fields.get(place).copied().unwrap_or(0);
        Ok(Ticks {
            all: fields.iter().sum(),
            idle: at(3) + at(4),
        })
    }

    /// The share of the time since then that was not idle.
    fn busy_since(self, now: Ticks) -> f64 {
        let all = now.all.saturating_sub(self.all);
        match all {
            0 => 0.0,
            all => 1.0 - now.idle.saturating_sub(self.idle) as f64 / all as f64,
        }
    }
}
