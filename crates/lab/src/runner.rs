//! Gives the variants their turns.
//!
//! ```text
//! round 1   for each number of clients:  A B C
//! round 2   for each number of clients:  B C A      so that nobody is always first, or always after the same
//! round 3   for each number of clients:  C A B
//! last      stacks are sampled; throughput is not counted
//! ```

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use throng_observe::HistogramSnapshot;

use crate::case::{Axis, Bench, Case, Effect, Metric, Pace, Sample, Setup, Turn, Variant};
use crate::findings::{Cut, Findings, Latency, Machine, Measured, NamedSpread, Point, Verdict};
use crate::profile::{HERTZ, Mode, Profile, Recorder, Sampled};
use crate::stats::{RULE, Spread, judge};
use crate::usl::{self, Law, Observed};
use crate::{Error, Progress, Result};

/// What the user asks of a run.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Points on the axis; the case's own if empty.
    pub clients: Vec<usize>,
    /// Of each turn; the case's own if none.
    pub turn: Option<Duration>,
    pub rounds: Option<usize>,
    /// Names; all if empty.
    pub variants: Vec<String>,
    /// The `throng` binary; the one that runs if none.
    pub throng: Option<PathBuf>,
}

/// Runs `case` as wished.
///
/// `scratch` is an empty directory for what the variants keep while they run.
pub fn run(
    case: &dyn Case,
    wishes: &Wishes,
    scratch: &Path,
    progress: &Progress,
) -> Result<Findings> {
    let machine = Machine::detect();
    let variants = chosen(case, &wishes.variants)?;
    let clients = points(case, &wishes.clients, machine.cores);
    let cut = cut(case.pace(), wishes, variants.len() * clients.len());
    let throng = match &wishes.throng {
        Some(path) => path.clone(),
        None => std::env::current_exe()?,
    };
    let setup = Setup {
        scratch,
        throng: &throng,
        progress,
        most_clients: clients.iter().copied().max().unwrap_or(1),
    };
    let mut benches = Vec::with_capacity(variants.len());
    for variant in &variants {
        progress.say(format_args!("preparing {}", variant.name));
        let bench = case
            .prepare(variant, &setup)
            .map_err(|e| e.during(format_args!("preparing {}", variant.name)))?;
        benches.push(bench);
    }
    let turns = Turns {
        variants: &variants,
        clients: &clients,
        cut,
        progress,
    };
    let samples = turns.run(&mut benches)?;
    progress.say("sampling stacks");
    let profiles = turns.profiled(&mut benches, case.functions());
    // Servers end and files go before anything is written down: what follows cannot fail.
    drop(benches);
    let (profiles, unsampled) = match profiles {
        Ok(profiles) => (profiles, None),
        Err(e) => (Vec::new(), Some(e.to_string())),
    };
    let mut profiles = profiles.into_iter();
    let variants = (variants.iter().zip(samples))
        .map(|(variant, samples)| {
            let profiled = profiles.next().unwrap_or_default();
            let mut shares = profiled.shares.into_iter();
            let point = |(&clients, rounds): (&usize, Vec<Sample>)| Point {
                sampled: shares.next().flatten(),
                ..point(clients, &rounds)
            };
            let points: Vec<Point> = clients.iter().zip(samples).map(point).collect();
            Measured {
                name: variant.name,
                role: variant.role,
                about: variant.about,
                law: law(case.axis(), &points),
                points,
                on_cpu: profiled.on_cpu,
                off_cpu: profiled.off_cpu,
            }
        })
        .collect();
    let mut findings = Findings {
        case: case.name(),
        about: case.about(),
        axis: case.axis().name(),
        machine,
        pace: cut,
        functions: case.functions(),
        variants,
        verdicts: Vec::new(),
        rule: RULE,
        unsampled,
    };
    findings.verdicts = (case.effects().iter())
        .filter_map(|effect| verdict(&findings, effect))
        .collect();
    Ok(findings)
}

/// The variants named, in the case's order.
fn chosen(case: &dyn Case, names: &[String]) -> Result<Vec<Variant>> {
    let all = case.variants();
    if let Some(unknown) = names
        .iter()
        .find(|n| all.iter().all(|v| v.name != n.as_str()))
    {
        let known: Vec<&str> = all.iter().map(|v| v.name).collect();
        return Err(Error::usage(format!(
            "{} has no variant \"{unknown}\"; it has {}",
            case.name(),
            known.join(", ")
        )));
    }
    let wanted = |v: &Variant| names.is_empty() || names.iter().any(|n| n == v.name);
    Ok(all.into_iter().filter(wanted).collect())
}

/// The points on the axis, ascending, each once.
fn points(case: &dyn Case, wished: &[usize], cores: usize) -> Vec<usize> {
    let mut points = match wished {
        [] => case.default_clients(cores),
        some => some.to_vec(),
    };
    points.sort_unstable();
    points.dedup();
    points
}

/// How long each turn is and how many rounds there are.
fn cut(pace: Pace, wishes: &Wishes, turns_a_round: usize) -> Cut {
    let rounds = wishes.rounds.unwrap_or(pace.rounds).max(1);
    // Two rounds more than count: of the sampled turns, those off the core are fewer than a round.
    let turns = (turns_a_round * (rounds + 2)).max(1) as u32;
    let turn = match wishes.turn {
        Some(turn) => turn,
        None => (pace.budget / turns).clamp(pace.shortest, pace.longest),
    };
    Cut {
        rounds,
        seconds: turn.as_secs_f64(),
    }
}

struct Turns<'a> {
    variants: &'a [Variant],
    clients: &'a [usize],
    cut: Cut,
    progress: &'a Progress,
}

impl Turns<'_> {
    /// All rounds; the samples by variant, then by clients, then by round.
    fn run(&self, benches: &mut [Box<dyn Bench>]) -> Result<Vec<Vec<Vec<Sample>>>> {
        let mut samples = vec![vec![Vec::new(); self.clients.len()]; self.variants.len()];
        let began = Instant::now();
        let total = self.cut.rounds * self.clients.len() * self.variants.len();
        let mut done = 0;
        for round in 0..self.cut.rounds {
            for (at, &clients) in self.clients.iter().enumerate() {
                for step in 0..self.variants.len() {
                    let which = (round + step) % self.variants.len();
                    self.say(done, total, began.elapsed(), round, which, clients);
                    let name = self.variants[which].name;
                    let sample = benches[which]
                        .run(&self.turn(clients))
                        .map_err(|e| e.during(format_args!("{name} with {clients}")))?;
                    samples[which][at].push(sample);
                    done += 1;
                }
            }
        }
        Ok(samples)
    }

    /// One round more, which counts for nothing but its stacks, and for each variant one turn off
    /// the core.
    fn profiled(
        &self,
        benches: &mut [Box<dyn Bench>],
        functions: &[&str],
    ) -> Result<Vec<Profiled>> {
        let on_cpu = Mode::OnCpu { hertz: HERTZ };
        let Some(&most) = self.clients.last() else {
            return Ok(Vec::new());
        };
        let mut profiled = Vec::with_capacity(benches.len());
        for (bench, variant) in benches.iter_mut().zip(self.variants) {
            let mut found = Profiled::default();
            for &clients in self.clients {
                self.progress.say(format_args!(
                    "sampling stacks on the cores: {clients} × {}",
                    variant.name
                ));
                let profile = self.profile(bench.as_mut(), clients, on_cpu)?;
                found.shares.push(match functions {
                    [] => None,
                    some => profile.share(some),
                });
                found.on_cpu = Some(Sampled::of(profile, functions));
            }
            self.progress.say(format_args!(
                "sampling stacks off the cores: {most} × {}",
                variant.name
            ));
            // Needs more permission than the other; what that found is worth having without.
            let off = self.profile(bench.as_mut(), most, Mode::OffCpu);
            found.off_cpu = off.ok().map(|profile| Sampled::of(profile, functions));
            profiled.push(found);
        }
        Ok(profiled)
    }

    fn profile(&self, bench: &mut dyn Bench, clients: usize, mode: Mode) -> Result<Profile> {
        let recorder = Recorder::start(&bench.processes(), mode)?;
        let ran = bench.run(&self.turn(clients));
        let profile = recorder.stop()?;
        ran?;
        Ok(profile)
    }

    fn turn(&self, clients: usize) -> Turn {
        Turn {
            clients,
            duration: Duration::from_secs_f64(self.cut.seconds),
        }
    }

    fn say(
        &self,
        done: usize,
        total: usize,
        spent: Duration,
        round: usize,
        which: usize,
        clients: usize,
    ) {
        let left = match done {
            0 => self.cut.seconds * total as f64,
            _ => spent.as_secs_f64() / done as f64 * (total - done) as f64,
        };
        self.progress.say(format_args!(
            "round {}/{}  {clients} × {}  {}%  {left:.0} s left",
            round + 1,
            self.cut.rounds,
            self.variants[which].name,
            done * 100 / total,
        ));
    }
}

/// The stacks of one variant.
#[derive(Default)]
struct Profiled {
    /// Of samples inside the structure, by number of clients.
    shares: Vec<Option<f64>>,
    /// With the most clients.
    on_cpu: Option<Sampled>,
    off_cpu: Option<Sampled>,
}

/// The scalability law over all rounds.
fn law(axis: Axis, points: &[Point]) -> Law {
    if let Axis::Other(name) = axis {
        let why = format!("the scalability law is about clients, not about {name}");
        return Law::Absent(why);
    }
    let observed: Vec<Observed> = (points.iter())
        .flat_map(|point| {
            let observed = |&throughput: &f64| Observed {
                clients: point.clients as f64,
                throughput,
            };
            point.throughput.rounds.iter().map(observed)
        })
        .collect();
    usl::fit(&observed)
}

/// One variant's rounds with so many clients, put together.
fn point(clients: usize, rounds: &[Sample]) -> Point {
    let spread = |of: &dyn Fn(&Sample) -> Option<f64>| {
        let values: Vec<f64> = rounds.iter().filter_map(of).collect();
        Spread::of(&values)
    };
    let mut names: Vec<(&'static str, &'static str)> = Vec::new();
    for number in rounds.iter().flat_map(|sample| &sample.numbers) {
        if names.iter().all(|(name, _)| *name != number.name) {
            names.push((number.name, number.unit));
        }
    }
    Point {
        clients,
        throughput: spread(&|sample| Some(sample.throughput())).expect("at least one round"),
        inside: spread(&|sample| sample.inside),
        sampled: None,
        latency: latency(rounds),
        numbers: (names.into_iter())
            .filter_map(|(name, unit)| {
                let spread = spread(&|sample| sample.number(name))?;
                Some(NamedSpread { name, unit, spread })
            })
            .collect(),
    }
}

/// The quantiles of the round with the median 99th percentile: histograms of a few rounds are not
/// added up, so that one disturbed round does not own the tail.
fn latency(rounds: &[Sample]) -> Option<Latency> {
    let quantiles = |histogram: &HistogramSnapshot| {
        Some(Latency {
            p50: histogram.quantile(0.50)?,
            p95: histogram.quantile(0.95)?,
            p99: histogram.quantile(0.99)?,
            most: histogram.quantile(1.0)?,
        })
    };
    let mut all: Vec<Latency> = (rounds.iter())
        .filter_map(|sample| sample.latency.as_ref().and_then(quantiles))
        .collect();
    all.sort_unstable_by_key(|latency| latency.p99);
    all.get(all.len() / 2).copied()
}

/// Compares what the effect names at the most clients; None where one of the variants was not run,
/// or measured nothing of the kind.
fn verdict(findings: &Findings, effect: &Effect) -> Option<Verdict> {
    let last = |name| findings.variant(name)?.points.last();
    let (was, became) = (last(effect.was)?, last(effect.became)?);
    let ratios: Vec<f64> = match effect.metric {
        Metric::Throughput => ratios(&became.throughput, &was.throughput),
        Metric::Inside => ratios(was.inside.as_ref()?, became.inside.as_ref()?),
        Metric::Number(name) => ratios(&was.number(name)?.spread, &became.number(name)?.spread),
    };
    Some(Verdict {
        was: effect.was,
        became: effect.became,
        metric: match effect.metric {
            Metric::Throughput => "throughput",
            Metric::Inside => "share inside",
            Metric::Number(name) => name,
        },
        clients: was.clients,
        outcome: judge(&ratios)?,
        ratio: Spread::of(&ratios)?,
        published: effect.published,
        figure: effect.figure,
    })
}

/// Round by round.
fn ratios(over: &Spread, under: &Spread) -> Vec<f64> {
    (over.rounds.iter().zip(&under.rounds))
        .map(|(over, under)| over / under)
        .filter(|ratio| ratio.is_finite())
        .collect()
}

impl Sample {
    fn number(&self, name: &str) -> Option<f64> {
        let found = self.numbers.iter().find(|number| number.name == name);
        found.map(|number| number.value)
    }
}

impl Point {
    fn number(&self, name: &str) -> Option<&NamedSpread> {
        self.numbers.iter().find(|number| number.name == name)
    }
}

impl Machine {
    pub fn detect() -> Machine {
        let cores = throng_sync::topology::allowed_cores().map_or(1, |cores| cores.len());
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = (cpuinfo.lines())
            .find_map(|line| line.strip_prefix("model name")?.split(':').nth(1))
            .map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned());
        Machine {
            architecture: std::env::consts::ARCH,
            processor,
            cores,
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            throng: env!("CARGO_PKG_VERSION"),
        }
    }
}
