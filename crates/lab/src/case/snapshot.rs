//! `snapshot`: what it costs to learn which transactions run, as sessions grow.
//!
//! A transaction system on files of its own for each variant. Most of its sessions are idle; a few
//! run short transactions, each with an id, a snapshot and a commit that does not wait for the
//! disk. A turn has two halves: one thread alone, for the cost of each step in nanoseconds, then
//! several at once, for throughput and the share of time that snapshots take.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use throng_buffer::PoolConfig;
use throng_disk::{Disk, RealDisk};
use throng_txn::{
    Archiving, Isolation, OpenConfig, Session, SessionInfo, SnapshotForm, Txn, TxnConfig, TxnSystem,
};
use throng_wal::WalConfig;

use super::{
    About, Axis, Bench, Case, Effect, Metric, Number, Pace, Role, Sample, Setup, Turn, Variant,
};
use crate::{Error, Result, crew};

pub struct Snapshot;

/// Sessions that run transactions at any time: as many at every point of the axis, so that only the
/// idle ones grow.
const RUNNING: usize = 8;

/// Snapshots taken in a row by the one thread, for one reading of the clock.
const IN_A_ROW: u32 = 64;

impl Case for Snapshot {
    fn name(&self) -> &'static str {
        "snapshot"
    }

    fn about(&self) -> About {
        About {
            title: "who runs: a walk over all sessions, a bitmap of ids, or one number",
            text: "Eight sessions run short transactions among up to 10,000 idle ones, and each takes a snapshot: by \
                   walking over all sessions under a shared latch that every end of a transaction takes exclusively, \
                   by copying a bit for each id that may run, or by reading the last commit's number. \
                   In KingbaseES under TPC-C with 200 terminals the walk's lock (ProcArrayGroupUpdate) was 34.46 % of \
                   wait time; the bitmap took snapshots from over 6 % of time to under 0.2 %, and throughput up by \
                   about 20 % on Intel, 5 to 6 % on Kunpeng 920.",
            source: "KingbaseES against PostgreSQL and MySQL, TPC-C, 200 terminals",
            operations: "transactions",
            inside: "the threads' time spent taking snapshots",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |form: SnapshotForm, role, about| Variant {
            name: form.name(),
            role,
            about,
        };
        vec![
            variant(
                SnapshotForm::Walk,
                Role::Was,
                "every session asked, latch shared; an end takes it exclusively",
            ),
            variant(
                SnapshotForm::Bitmap,
                Role::Became,
                "a bit an id, copied; nobody asked",
            ),
            variant(
                SnapshotForm::Csn,
                Role::Further,
                "the last commit's sequence number (default)",
            ),
        ]
    }

    fn axis(&self) -> Axis {
        Axis::Other("sessions")
    }

    fn default_clients(&self, _cores: usize) -> Vec<usize> {
        vec![10, 100, 1_000, 10_000]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![
            Effect {
                was: SnapshotForm::Walk.name(),
                became: SnapshotForm::Bitmap.name(),
                metric: Metric::Inside,
                published: Some(30.0),
                figure: "snapshots from over 6 % of time to under 0.2 % with 200 terminals",
            },
            Effect {
                was: SnapshotForm::Walk.name(),
                became: SnapshotForm::Csn.name(),
                metric: Metric::Number("snapshot"),
                published: None,
                figure: "beyond what was published: nothing is copied",
            },
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &[
            "throng_txn::snapshot",
            "throng_txn::session::live",
            "throng_txn::active",
        ]
    }

    fn pace(&self) -> Pace {
        Pace {
            budget: Duration::from_secs(45),
            ..Pace::default()
        }
    }

    fn prepare(&self, variant: &Variant, setup: &Setup) -> Result<Box<dyn Bench>> {
        let form = variant
            .name
            .parse()
            .map_err(|()| Error::usage(format!("snapshot has no variant {}", variant.name)))?;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Ok(Box::new(Crowd {
            sys: open(&setup.scratch.join(variant.name), form)?,
            idle: Vec::new(),
            threads: (2 * cores).min(RUNNING),
        }))
    }
}

fn open(dir: &Path, form: SnapshotForm) -> Result<Arc<TxnSystem>> {
    std::fs::create_dir_all(dir)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(dir)?);
    let config = OpenConfig {
        disk,
        pool: PoolConfig::new(1 << 20),
        wal: WalConfig::default(),
        txn: TxnConfig {
            snapshot: form,
            // Small, so that the log's files are used again and again.
            max_wal_size: AtomicU64::new(64 << 20),
            ..TxnConfig::default()
        },
        recovery: None,
        archive: Archiving::Untouched,
    };
    Ok(TxnSystem::open(config)?.0)
}

fn session(sys: &TxnSystem) -> Session {
    sys.register(SessionInfo {
        backend_type: "lab",
        ..SessionInfo::default()
    })
}

/// Drives a future that hardly ever has to wait: a commit waits only while the log's buffer is
/// full.
fn settle<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

fn begin(session: &Session) -> Txn {
    let txn = session.begin(Isolation::ReadCommitted);
    txn.assign_top_xid();
    txn
}

struct Crowd {
    sys: Arc<TxnSystem>,
    idle: Vec<Session>,
    threads: usize,
}

impl Bench for Crowd {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let idle = turn.clients.saturating_sub(RUNNING);
        self.idle.truncate(idle);
        self.idle.resize_with(idle, || session(&self.sys));
        let half = turn.duration / 2;
        let steps = alone(&self.sys, half)?;
        let crowd = Turn {
            clients: self.threads,
            duration: half,
        };
        let mut sample = crew::run(&crowd, |worker| {
            let session = session(&self.sys);
            while worker.goes_on() {
                let txn = begin(&session);
                worker.step(|| txn.snapshot());
                if settle(txn.commit(false)).is_err() {
                    // The log has failed: `alone` meets it in the next turn and says so.
                    return;
                }
            }
        })?;
        let number = |name, value| Number {
            name,
            unit: "ns",
            value,
        };
        sample.numbers = vec![
            number("begin", steps.begin),
            number("snapshot", steps.snapshot),
            number("commit", steps.commit),
        ];
        Ok(sample)
    }
}

/// Nanoseconds of a transaction's steps, with nobody else about.
#[derive(Default)]
struct StepCosts {
    begin: f64,
    snapshot: f64,
    commit: f64,
}

/// Begins [`RUNNING`] transactions, takes snapshots with all of them open, commits them, and again.
fn alone(sys: &TxnSystem, duration: Duration) -> Result<StepCosts> {
    let sessions: Vec<Session> = (0..RUNNING).map(|_| session(sys)).collect();
    let mut took = [Duration::ZERO; 3];
    let mut rounds = 0u32;
    let start = Instant::now();
    while rounds == 0 || start.elapsed() < duration {
        let began = Instant::now();
        let open: Vec<Txn> = sessions.iter().map(begin).collect();
        let looked = Instant::now();
        for _ in 0..IN_A_ROW {
            drop(std::hint::black_box(open[0].snapshot()));
        }
        let ended = Instant::now();
        for txn in open {
            settle(txn.commit(false))?;
        }
        took[0] += looked - began;
        took[1] += ended - looked;
        took[2] += ended.elapsed();
        rounds += 1;
    }
    let each = |took: Duration, times: u32| took.as_nanos() as f64 / f64::from(rounds * times);
    Ok(StepCosts {
        begin: each(took[0], RUNNING as u32),
        snapshot: each(took[1], IN_A_ROW),
        commit: each(took[2], RUNNING as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::run_variants;

    #[test]
    fn every_variant_runs_and_tells_its_steps() {
        let dir = tempfile::tempdir().expect("a directory");
        let turn = Duration::from_millis(20);
        run_variants(&Snapshot, dir.path(), &[50, 10], turn, |_, sample| {
            assert!(sample.numbers.iter().all(|number| number.value > 0.0));
        });
    }
}
