//! The command line: `throng bench WORKLOAD`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::findings::Findings;
use super::runner::{self, Wishes};
use super::{print, report};
use crate::case::served::{Served, Start};
use crate::load::dialect::Dialect;
use crate::load::drive::Plan;
use crate::load::sql::Mode;
use crate::load::url::Target;
use crate::load::workload::Workload;
use crate::load::workload::connect::Connect;
use crate::load::workload::copy::Copy;
use crate::load::workload::scan::Scan;
use crate::load::workload::script::Script;
use crate::load::workload::select::Select;
use crate::load::workload::tpcb::Tpcb;
use crate::load::workload::tpcc::Tpcc;
use crate::load::workload::update::Update;
use crate::{Error, Progress, Result, interrupt};

/// The most clients that can be asked for: each is a connection here, and a session there.
const MOST_CLIENTS: usize = 50_000;
/// Connections of the bench's own beside the clients', and files that are open anyway.
const OTHER_FILES: u64 = 100;
/// The pool of a server that the bench starts itself.
const MEMORY: &str = "512MB";
/// Sensors of `scan`, and how many readings one query goes through.
const SENSORS: i64 = 200;
const RANGE: i64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// One row by its key, as pgbench's select-only.
    Select,
    /// One row changed by its key, a transaction each.
    Update,
    /// pgbench's default: three updates, a read and an insert.
    Tpcb,
    /// TPC-C's five transactions, by a deck.
    Tpcc,
    /// COPY into one table with a primary key, all clients at once.
    Copy,
    /// Connect, one query, close.
    Connect,
    /// Ranges of sensor readings.
    Scan,
    /// A file in pgbench's language.
    Script,
}

impl Name {
    /// The scale when none is given.
    fn scale(self) -> i64 {
        match self {
            Name::Select | Name::Update | Name::Tpcb | Name::Script => 10,
            Name::Tpcc => 2,
            Name::Copy => 1000,
            Name::Scan => 5000,
            Name::Connect => 1,
        }
    }
}

#[derive(Args, Debug)]
pub struct Bench {
    #[arg(value_enum, value_name = "WORKLOAD")]
    pub workload: Name,
    /// The script, for `script`.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A server: postgres://user:password@host:port/database, or mysql:// for select and tpcc; may
    /// be repeated [default: a Throng of its own].
    #[arg(long = "target", value_name = "URL")]
    pub targets: Vec<String>,
    /// Numbers of clients to sweep.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1,4,16,64,100"
    )]
    pub clients: Vec<usize>,
    /// Seconds measured in each turn.
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    pub seconds: f64,
    /// How often each target is measured with each number of clients.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
    /// How statements are sent: simple, extended or prepared.
    #[arg(long, default_value = "simple")]
    pub mode: String,
    /// Branches of pgbench's tables, warehouses of tpcc, rows of a COPY, readings of a sensor
    /// [default: 10, 2, 1000, 5000].
    #[arg(long, value_name = "N")]
    pub scale: Option<i64>,
    /// Transactions a second, all clients together; latency is then from the intended start
    /// [default: as many as go].
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
    /// Keying and think times of tpcc, as specified.
    #[arg(long)]
    pub think: bool,
    /// Use the tables that are there, as an earlier run left them.
    #[arg(long)]
    pub keep: bool,
    /// Also measure a server that answers from a constant: the most this client can do here (select
    /// only).
    #[arg(long)]
    pub limit: bool,
    /// Threads of the client [default: one a core].
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write the findings as one HTML page with plots.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// Runs the command. What is found goes to standard output, everything else to standard error; the
/// status is 2 where the command line asks for what is not there, 1 where the bench failed or a
/// condition was violated.
pub fn run(args: &Bench) -> ExitCode {
    match obey(args) {
        Ok(found) if is_sound(&found) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("throng bench: {e}");
            ExitCode::from(e.status())
        }
    }
}

/// Whether every condition held.
fn is_sound(found: &Findings) -> bool {
    let mut checked = found.targets.iter().flat_map(|t| &t.conditions);
    checked.all(|c| c.fault.is_none())
}

fn obey(args: &Bench) -> Result<Findings> {
    let scale = args.scale.unwrap_or(args.workload.scale());
    if scale < 1 {
        return Err(Error::usage(format!(
            "--scale {scale}: expected at least 1"
        )));
    }
    let make = |dialect| workload(args, scale, dialect);
    let mut wishes = wishes(args, scale)?;
    // Whatever is wrong with a script, or with a target that it cannot be run on, is said before
    // anything is started.
    make(Dialect::Postgres)?;
    for target in &wishes.targets {
        make(target.dialect).map_err(|e| e.during(target))?;
    }
    let most = wishes.clients.last().copied().unwrap_or(1);
    allow_connections(most)?;
    let progress = Progress::new();
    let own = match wishes.targets.is_empty() {
        true => Some(Own::start(&std::env::current_exe()?, most, &progress)?),
        false => None,
    };
    wishes
        .targets
        .extend(own.as_ref().map(|own| own.served.target().clone()));
    let found = runner::run(&make, &wishes, &progress)?;
    progress.clear();
    if let Some(path) = &args.report {
        std::fs::write(path, report::findings(&found))
            .map_err(|e| Error::failed(format!("{}: {e}", path.display())))?;
    }
    if args.json {
        let json =
            serde_json::to_string_pretty(&found).map_err(|e| Error::failed(e.to_string()))?;
        println!("{json}");
    } else {
        print!("{}", print::findings(&found));
    }
    Ok(found)
}

/// A Throng of the bench's own, on a directory that goes with it. The server is dropped first.
struct Own {
    served: Served,
    _scratch: tempfile::TempDir,
}

impl Own {
    fn start(throng: &Path, clients: usize, progress: &Progress) -> Result<Own> {
        progress.say("starting a server");
        let scratch = tempfile::Builder::new().prefix("throng-bench-").tempdir()?;
        interrupt::clears(scratch.path().to_owned())?;
        let start = Start {
            name: "own",
            memory: MEMORY,
            settings: &[],
            clients,
        };
        Ok(Own {
            served: Served::start(throng, scratch.path(), &start)?,
            _scratch: scratch,
        })
    }
}

fn workload(args: &Bench, scale: i64, dialect: Dialect) -> Result<Box<dyn Workload>> {
    if let (Some(file), true) = (&args.file, args.workload != Name::Script) {
        let message = format!("{}: only `script` takes a file", file.display());
        return Err(Error::usage(message));
    }
    if dialect == Dialect::MySql && !matches!(args.workload, Name::Select | Name::Tpcc) {
        return Err(Error::usage(
            "only select and tpcc are written for MySQL and MariaDB",
        ));
    }
    Ok(match args.workload {
        Name::Select => Box::new(Select::new(scale, dialect)),
        Name::Update => Box::new(Update::new(scale)),
        Name::Tpcb => Box::new(Tpcb::new(scale)),
        Name::Tpcc => Box::new(Tpcc::new(scale, args.think, dialect)),
        Name::Copy => Box::new(Copy::new(scale)),
        Name::Connect => Box::new(Connect::new()),
        Name::Scan => Box::new(Scan::new(SENSORS, scale, RANGE)),
        Name::Script => {
            let file = args.file.as_ref();
            let file = file.ok_or_else(|| Error::usage("script: which file?"))?;
            Box::new(Script::read(file, scale)?)
        }
    })
}

fn wishes(args: &Bench, scale: i64) -> Result<Wishes> {
    let usage = |message: String| Err(Error::usage(message));
    let mut clients = args.clients.clone();
    clients.sort_unstable();
    clients.dedup();
    if let Some(n) = clients.iter().find(|n| **n == 0 || **n > MOST_CLIENTS) {
        return usage(format!("--clients {n}: expected 1 to {MOST_CLIENTS}"));
    }
    if !(args.seconds > 0.0 && args.seconds <= 86_400.0) {
        return usage(format!(
            "--seconds {}: expected more than 0, at most a day",
            args.seconds
        ));
    }
    if args.rounds == 0 {
        return usage("--rounds 0: expected at least 1".to_owned());
    }
    if let Some(rate) = args.rate.filter(|r| !(*r > 0.0 && r.is_finite())) {
        return usage(format!("--rate {rate}: expected more than 0"));
    }
    if args.limit && args.workload != Name::Select {
        return usage("--limit: the constant answerer knows select's answers only".to_owned());
    }
    if args.think && args.workload != Name::Tpcc {
        return usage("--think: only tpcc has keying and think times".to_owned());
    }
    if args.keep && args.workload == Name::Copy {
        return usage(
            "--keep: copy counts what it brought, so it begins with an empty table".to_owned(),
        );
    }
    let mut plan = Plan::new(1, Duration::from_secs_f64(args.seconds));
    plan.mode = Mode::parse(&args.mode)?;
    plan.rate = args.rate;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    plan.threads = args.threads.unwrap_or(cores).max(1);
    let targets = args.targets.iter().map(|url| Target::parse(url));
    Ok(Wishes {
        targets: targets.collect::<std::result::Result<_, _>>()?,
        clients,
        rounds: args.rounds,
        plan,
        load: !args.keep,
        answerer: args.limit,
        scale,
    })
}

/// Raises the limit of open files, as far as the system lets us, to what so many connections need;
/// with the answerer, both ends are here.
fn allow_connections(clients: usize) -> Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let needed = clients as u64 * 2 + OTHER_FILES;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    limit.current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
    setrlimit(Resource::Nofile, limit).map_err(std::io::Error::from)?;
    Ok(())
}
