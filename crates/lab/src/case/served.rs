//! What the cases of the whole server share: a server process a variant, and turns of a load on it.
//!
//! ```text
//! prepare   throng serve --set lab_…=…   on a directory of its own, loaded; then stopped (SIGSTOP)
//! run       continued (SIGCONT) ─► waits reset ─► load ─► what the server saw is read ─► stopped again
//! drop      killed, its directory removed
//! ```
//!
//! A stopped process does nothing at all, so the variants that do not have their turn neither clean
//! nor write nor wake up. A server that refuses a setting ends before it is ready: the case fails
//! with what the server said.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use throng_observe::HistogramSnapshot;

use super::{Bench, Number, Role, Sample, Setup, Turn, Variant};
use crate::load::connection;
use crate::load::drive::{Measured, Plan, drive};
use crate::load::sql::Mode;
use crate::load::trouble::Trouble;
use crate::load::url::Target;
use crate::load::workload::Workload;
use crate::{Error, Result};

/// More failures than this share of all transactions, and a turn is no measurement.
const FAILURES: f64 = 0.01;

/// A server of our own, on a directory of its own.
pub struct Served {
    child: Child,
    target: Target,
    directory: PathBuf,
}

/// What a server is started with.
pub struct Start<'a> {
    /// Names the directory; one server each.
    pub name: &'a str,
    /// Of the buffer pool: "512MB".
    pub memory: &'a str,
    pub settings: &'a [(&'a str, &'a str)],
    /// Connections that will come, besides a few of our own.
    pub clients: usize,
}

impl Served {
    /// Starts the server and waits until it is ready.
    pub fn start(throng: &Path, scratch: &Path, start: &Start<'_>) -> Result<Served> {
        let directory = scratch.join(start.name);
        std::fs::create_dir_all(&directory)?;
        let log = directory.join("log");
        let mut command = Command::new(throng);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--memory", start.memory])
            .arg("--data")
            .arg(directory.join("data"))
            .arg("--set")
            .arg(format!("unix_socket_directories={}", directory.display()))
            .arg("--set")
            .arg(format!("max_connections={}", start.clients + 20));
        for (name, value) in start.settings {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        // SAFETY: between fork and exec the closure makes one system call and touches no memory of
        // the parent's.
        unsafe {
            // A lab that is killed would leave a stopped server behind, which nobody could find.
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .map_err(|e| Error::failed(format!("{}: {e}", throng.display())))?;
        let mut ready = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut ready)?;
        }
        let address = ready
            .split_whitespace()
            .find_map(|word| word.parse::<SocketAddr>().ok());
        let Some(address) = address else {
            // Whatever it is, it is no server that is ready; if it has not ended by itself, it must
            // now.
            let _ = child.kill();
            let _ = child.wait();
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(Error::failed(format!(
                "the server did not start: {}",
                said.trim()
            )));
        };
        Ok(Served {
            child,
            target: Target::local(address),
            directory,
        })
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Lets it do nothing until [`Served::go_on`].
    pub fn halt(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    pub fn go_on(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal).map_err(std::io::Error::from)?)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // What it has is about to be removed: there is nothing to end cleanly. A stopped process
        // dies of this too.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The scratch directory goes with the run; this makes room for the other variants
        // meanwhile.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A variant and the settings that make it; those it does not name are the server's defaults.
pub struct Form {
    pub name: &'static str,
    pub role: Role,
    pub about: &'static str,
    pub settings: &'static [(&'static str, &'static str)],
}

pub fn variants(forms: &[Form]) -> Vec<Variant> {
    let variant = |form: &Form| Variant {
        name: form.name,
        role: form.role,
        about: form.about,
    };
    forms.iter().map(variant).collect()
}

/// What a server of that variant is started with.
pub fn settings(
    forms: &[Form],
    variant: &Variant,
) -> Result<&'static [(&'static str, &'static str)]> {
    let form = forms.iter().find(|form| form.name == variant.name);
    form.map(|form| form.settings)
        .ok_or_else(|| Error::usage(format!("there is no variant {}", variant.name)))
}

/// Where a turn's share inside the structure under test comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// `throng.structures`, these together: of the time in which sessions ran.
    Running(&'static [&'static str]),
    /// `throng.waits`: of all time that sessions waited and were not idle.
    Waiting(&'static str),
}

/// A variant's server under a workload.
pub struct ServedBench {
    pub served: Served,
    pub workload: Box<dyn Workload>,
    pub mode: Mode,
    pub inside: Inside,
    /// Whether each turn begins with the workload's tables made anew.
    pub afresh: bool,
}

impl ServedBench {
    /// Starts the server, loads the workload's data, and halts it until its first turn.
    pub fn prepare(
        setup: &Setup<'_>,
        start: &Start<'_>,
        workload: Box<dyn Workload>,
        inside: Inside,
    ) -> Result<ServedBench> {
        let served = Served::start(setup.throng, setup.scratch, start)?;
        let say = |what: &str| {
            setup
                .progress
                .say(format_args!("loading {}: {what}", start.name))
        };
        workload.load(served.target(), &say)?;
        served.halt()?;
        Ok(ServedBench {
            served,
            workload,
            mode: Mode::Prepared,
            inside,
            afresh: false,
        })
    }

    fn turn(&mut self, turn: &Turn) -> Result<Sample> {
        let target = self.served.target();
        if self.afresh {
            self.workload.load(target, &|_| {})?;
        }
        connection::with(target, async |connection| {
            connection.simple("SELECT throng_reset_waits()").await
        })?;
        let plan = Plan {
            mode: self.mode,
            ..Plan::new(turn.clients, turn.duration)
        };
        let measured = drive(self.workload.as_ref(), target, &plan)?;
        let inside = self.inside.read(target)?;
        judge(&measured)?;
        Ok(sample(&measured, inside))
    }
}

impl Bench for ServedBench {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        self.served.go_on()?;
        let sample = self.turn(turn);
        self.served.halt()?;
        sample
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.served.process()]
    }
}

impl Inside {
    /// The share since the waits were reset; none where the server counted nothing.
    fn read(self, target: &Target) -> Result<Option<f64>> {
        let query = match self {
            Inside::Running(structures) => format!(
                "SELECT sum(percent_of_running) FROM throng.structures WHERE structure IN ('{}')",
                structures.join("', '")
            ),
            Inside::Waiting(event) => format!(
                "SELECT 100 * coalesce(sum(CASE WHEN wait_event = '{event}' THEN total_ms END), 0) / sum(total_ms) \
                 FROM throng.waits WHERE waiter = 'session' HAVING sum(total_ms) > 0"
            ),
        };
        let share = connection::with(target, async |connection| {
            connection.simple(&query).await?;
            match connection.rows().len() {
                0 => Ok(None),
                _ => Ok(connection
                    .rows()
                    .text(0, 0)?
                    .and_then(|t| t.parse::<f64>().ok())),
            }
        })?;
        Ok(share.map(|percent| percent / 100.0))
    }
}

/// A turn in which much failed measures nothing.
fn judge(measured: &Measured) -> Result<()> {
    let failed = measured.failed();
    let all = failed + measured.done();
    if measured.done() > 0 && failed as f64 <= FAILURES * all as f64 && measured.cut_off == 0 {
        return Ok(());
    }
    let first = measured.failures.values().next();
    let why = first.map_or("nothing ended in time", |(_, first)| first);
    Err(Error::failed(format!(
        "{failed} of {all} transactions failed, {} clients were cut off: {why}",
        measured.cut_off
    )))
}

fn sample(measured: &Measured, inside: Option<f64>) -> Sample {
    let mut latency = HistogramSnapshot::default();
    for value in measured.latency().iter_recorded() {
        latency.record(
            value.value_iterated_to(),
            value.count_since_last_iteration(),
        );
    }
    let number = |name, unit, value| Number { name, unit, value };
    Sample {
        operations: measured.done(),
        elapsed: measured.elapsed,
        inside,
        latency: Some(latency),
        numbers: vec![
            number("retries", "", measured.retries as f64),
            number("slowest client", "% of mean", measured.fairness() * 100.0),
            number(
                "load's own CPU",
                "us",
                measured.own_cpu_each().as_secs_f64() * 1e6,
            ),
        ],
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Error {
        match trouble {
            Trouble::Usage(why) => Error::Usage(why),
            other => Error::Failed(other.to_string()),
        }
    }
}
