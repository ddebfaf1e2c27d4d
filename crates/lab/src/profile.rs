//! Where a process spends its time: on its cores, by stacks sampled at a steady rate, and off them,
//! by the stack with which each thread left its core.
//!
//! The kernel walks the stacks by frame pointers (the whole workspace is compiled with them) when
//! its own timer fires or its scheduler switches, so the process under test takes no signal and
//! runs no code of ours. Sampling with signals instead once changed what it measured: 30 % CPU fell
//! to 5 % under it (DolphinDB's case).
//!
//! ```text
//! Recorder::start ──► events on every thread ──► a thread empties the rings every few ms into
//!                                                 stack → weight        (counts, or ns off the core)
//! Recorder::stop  ──► names ──► Profile: "thread;outer;…;inner" → weight ──► flame graph, shares
//! ```
//!
//! Where the kernel refuses, [`Recorder::start`] says in words what would permit it.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use crate::{Error, Result};
use event::{Event, Record, Ring};
use fold::{calls, frames};
use symbol::{KernelSymbols, Mappings, Names};

pub use event::Mode;

pub mod command;
mod event;
mod flame;
mod fold;
mod sampled;
mod symbol;

pub use flame::draw;
pub use sampled::Sampled;

/// Often enough for shares of a percent within seconds; a prime, so as to fall in step with no
/// timer.
pub const HERTZ: u64 = 997;
/// Between two emptyings of the rings.
const EMPTIED: Duration = Duration::from_millis(5);
/// Data pages of a ring, the first that the kernel grants: a user without privileges may lock 516
/// KB a core.
const PAGES: [usize; 3] = [256, 64, 8];

/// What is to be recorded, as long as this lives.
pub struct Recorder {
    events: Vec<Event>,
    stop: Arc<AtomicBool>,
    reader: JoinHandle<Tally>,
    mappings: HashMap<u32, Mappings>,
    mode: Mode,
    /// Whether kernel functions are seen.
    kernel: bool,
}

impl Recorder {
    /// Begins to record the threads of these processes, and those they start meanwhile.
    pub fn start(pids: &[u32], mode: Mode) -> Result<Recorder> {
        raise_descriptor_limit();
        let opened = match open(pids, mode, true) {
            Err(e) if is_refusal(&e) => open(pids, mode, false).map(|rings| (rings, false)),
            opened => opened.map(|rings| (rings, true)),
        };
        let ((events, rings), kernel) = opened.map_err(|e| explain(&e, mode))?;
        let stop = Arc::new(AtomicBool::new(false));
        let reader = std::thread::Builder::new().name("profiler".into()).spawn({
            let stop = Arc::clone(&stop);
            let mut own = Vec::new();
            if mode == Mode::OffCpu {
                own.push(thread_id());
            }
            move || read(rings, mode, &stop, own)
        })?;
        for event in &events {
            // A thread that has ended meanwhile has nothing to record.
            let _ = event.enable();
        }
        Ok(Recorder {
            events,
            stop,
            reader,
            mappings: pids.iter().map(|&pid| (pid, Mappings::of(pid))).collect(),
            mode,
            kernel,
        })
    }

    /// Ends recording and names what was recorded.
    pub fn stop(self) -> Result<Profile> {
        for event in &self.events {
            let _ = event.disable();
        }
        self.stop.store(true, Ordering::Release);
        let tally =
            (self.reader.join()).map_err(|_| Error::failed("the profiler's reader panicked"))?;
        let kernel = match self.kernel {
            true => KernelSymbols::load(),
            false => KernelSymbols::none(),
        };
        Ok(tally.named(self.mappings, &kernel, self.mode))
    }
}

/// An event a thread and core, and a ring a core.
fn open(pids: &[u32], mode: Mode, kernel: bool) -> io::Result<(Vec<Event>, Vec<Ring>)> {
    let cores = online_cores()?;
    let mut events = Vec::new();
    let mut rings = Vec::with_capacity(cores.len());
    for core in cores {
        let mut first: Option<usize> = None;
        for tid in threads(pids)? {
            let event = match Event::open(mode, kernel, tid, core) {
                Ok(event) => event,
                // The thread has ended.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(e) => return Err(e),
            };
            match first {
                Some(at) => event.share(&events[at])?,
                None => {
                    rings.push(map(&event)?);
                    first = Some(events.len());
                }
            }
            events.push(event);
        }
    }
    Ok((events, rings))
}

fn map(event: &Event) -> io::Result<Ring> {
    let mut refused = None;
    for pages in PAGES {
        match Ring::map(event, pages) {
            Ok(ring) => return Ok(ring),
            Err(e) => refused = Some(e),
        }
    }
    Err(refused.expect("at least one size was tried"))
}

fn threads(pids: &[u32]) -> io::Result<Vec<u32>> {
    let mut threads = Vec::new();
    for pid in pids {
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            threads.extend(
                entry?
                    .file_name()
                    .to_str()
                    .and_then(|name| name.parse::<u32>().ok()),
            );
        }
    }
    Ok(threads)
}

fn online_cores() -> io::Result<Vec<usize>> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online")?;
    throng_sync::topology::parse_core_list(list.trim())
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))
}

/// Threads times cores descriptors can be more than the usual 1024. If not even the attempt is
/// allowed, opening will say so.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

fn is_refusal(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn explain(e: &io::Error, mode: Mode) -> Error {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let level = level.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    let wanted = match mode {
        Mode::OnCpu { .. } => "2",
        Mode::OffCpu => "1",
    };
    Error::failed(match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "the kernel does not permit performance events here (kernel.perf_event_paranoid is {level}; {wanted} or \
             less, or root, permits them; some containers forbid the system call altogether)"
        ),
        Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => {
            format!("this kernel has no performance events: {e}")
        }
        Some(libc::EMFILE) => format!(
            "an event for each thread and core needs more open files than this process may have: {e}"
        ),
        _ => format!("performance events: {e}"),
    })
}

/// What was recorded, by address.
#[derive(Default)]
struct Tally {
    stacks: HashMap<(u32, Box<[u64]>), Weighed>,
    /// Of threads that are off their core: since when, with which stack.
    away: HashMap<u32, Away>,
    names: HashMap<u32, String>,
    lost: u64,
    /// Threads of the profiler, which are nothing to report: the one that reads, and off the cores
    /// the one that waits until it may stop.
    own: Vec<u32>,
}

#[derive(Default)]
struct Weighed {
    /// Nanoseconds by the thread's name and whether it was ready to go on.
    weights: HashMap<(String, bool), u64>,
}

struct Away {
    since: u64,
    pid: u32,
    stack: Box<[u64]>,
    ready: bool,
}

/// Empties the rings until told to stop, and once more.
///
/// A thread may leave one core and come back on another, whose ring is emptied at another moment.
/// So records are put into order by their time, and those younger than the beginning of an emptying
/// wait for the next one.
fn read(mut rings: Vec<Ring>, mode: Mode, stop: &AtomicBool, mut own: Vec<u32>) -> Tally {
    // A thread of this process, so it is recorded where this process is.
    own.push(thread_id());
    let mut tally = Tally {
        own,
        ..Tally::default()
    };
    let mut pending: Vec<Record> = Vec::new();
    loop {
        let last = stop.load(Ordering::Acquire);
        let began = monotonic_nanos();
        for ring in &mut rings {
            ring.drain(|record| pending.push(record));
        }
        pending.sort_by_key(Record::nanos);
        let ripe = match last {
            true => pending.len(),
            false => pending.partition_point(|record| record.nanos() < began),
        };
        for record in pending.drain(..ripe) {
            tally.take(record, mode);
        }
        if last {
            return tally;
        }
        std::thread::sleep(EMPTIED);
    }
}

fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// The clock that the records' times are on.
fn monotonic_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Tally {
    fn take(&mut self, record: Record, mode: Mode) {
        match (record, mode) {
            (
                Record::Stack {
                    pid, tid, stack, ..
                },
                Mode::OnCpu { .. },
            ) => self.add(pid, tid, stack, false, 1),
            (
                Record::Stack {
                    pid,
                    tid,
                    nanos,
                    stack,
                },
                Mode::OffCpu,
            ) => {
                let away = Away {
                    since: nanos,
                    pid,
                    stack,
                    ready: false,
                };
                self.away.insert(tid, away);
            }
            (Record::Stopped { tid, ready, .. }, _) => {
                if let Some(away) = self.away.get_mut(&tid) {
                    away.ready = ready;
                }
            }
            (Record::Resumed { tid, nanos }, _) => {
                if let Some(away) = self.away.remove(&tid) {
                    let nanos = nanos.saturating_sub(away.since);
                    self.add(away.pid, tid, away.stack, away.ready, nanos);
                }
            }
            (Record::Lost(n), _) => self.lost += n,
        }
    }

    fn add(&mut self, pid: u32, tid: u32, stack: Box<[u64]>, ready: bool, weight: u64) {
        if self.own.contains(&tid) {
            return;
        }
        let name = self
            .names
            .entry(tid)
            .or_insert_with(|| thread_name(pid, tid));
        let weighed = self.stacks.entry((pid, stack)).or_default();
        *weighed.weights.entry((name.clone(), ready)).or_default() += weight;
    }

    fn named(
        self,
        mut mappings: HashMap<u32, Mappings>,
        kernel: &KernelSymbols,
        mode: Mode,
    ) -> Profile {
        let mut addresses: HashMap<u32, BTreeSet<u64>> = HashMap::new();
        for (pid, stack) in self.stacks.keys() {
            addresses.entry(*pid).or_default().extend(calls(stack));
        }
        let names: HashMap<u32, HashMap<u64, Names>> = (addresses.into_iter())
            .map(|(pid, addresses)| {
                let mappings = mappings.entry(pid).or_insert_with(|| Mappings::of(pid));
                (pid, mappings.name(&addresses, kernel))
            })
            .collect();
        let mut folded: HashMap<String, u64> = HashMap::new();
        for ((pid, stack), weighed) in self.stacks {
            let frames = frames(&stack, &names[&pid]);
            for ((thread, ready), weight) in weighed.weights {
                let mut line = format!("{thread}{frames}");
                if ready {
                    line.push_str(";[ready, no core free]");
                }
                *folded.entry(line).or_default() += weight;
            }
        }
        let mut folded: Vec<(String, u64)> = folded.into_iter().collect();
        folded.sort_unstable();
        Profile {
            off_cpu: mode == Mode::OffCpu,
            total: folded.iter().map(|(_, weight)| weight).sum(),
            lost: self.lost,
            folded,
        }
    }
}

/// As the kernel knows it, without the number that tells threads of a kind apart.
fn thread_name(pid: u32, tid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
    let name = name.unwrap_or_else(|_| "[ended]".to_owned());
    name.trim_end()
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '-')
        .replace(';', ",")
}

/// Stacks and how much each weighs.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    pub off_cpu: bool,
    /// Samples, or nanoseconds off the core.
    pub total: u64,
    /// Records that did not fit into the rings.
    pub lost: u64,
    /// `thread;outer;…;inner` and its weight, in the order of the text.
    #[serde(skip)]
    pub folded: Vec<(String, u64)>,
}

/// A function and the share of a profile in which it was innermost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hot {
    pub function: String,
    pub share: f64,
}

impl Profile {
    /// The share of stacks with one of `functions` (parts of names) anywhere in them. None of an
    /// empty profile.
    pub fn share(&self, functions: &[&str]) -> Option<f64> {
        let inside = |stack: &str| functions.iter().any(|function| stack.contains(function));
        let weights = self.folded.iter().filter(|(stack, _)| inside(stack));
        let weight: u64 = weights.map(|(_, weight)| weight).sum();
        (self.total > 0).then(|| weight as f64 / self.total as f64)
    }

    /// The innermost function; of a thread off its core the one that wanted something of the
    /// kernel, since the way through a system call to the scheduler is always the same.
    fn innermost<'a>(&self, stack: &'a str) -> &'a str {
        let mut inward = stack.rsplit(';');
        let last = inward.next().unwrap_or(stack);
        let is_way = |name: &str| symbol::is_kernel(name) || fold::is_system_call(name);
        match self.off_cpu && is_way(last) {
            true => inward.find(|name| !is_way(name)).unwrap_or(last),
            false => last,
        }
    }

    /// The functions that were innermost most often, the hottest first.
    pub fn hottest(&self, count: usize) -> Vec<Hot> {
        let mut weights: HashMap<&str, u64> = HashMap::new();
        for (stack, weight) in &self.folded {
            *weights.entry(self.innermost(stack)).or_default() += weight;
        }
        let mut hottest: Vec<Hot> = (weights.into_iter())
            .map(|(function, weight)| Hot {
                function: function.to_owned(),
                share: weight as f64 / self.total as f64,
            })
            .collect();
        hottest.sort_by(|a, b| {
            b.share
                .total_cmp(&a.share)
                .then_with(|| a.function.cmp(&b.function))
        });
        hottest.truncate(count);
        hottest
    }
}

#[cfg(test)]
mod tests;
