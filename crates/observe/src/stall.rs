//! Stalls: stretches in which a session held its event loop for longer than others should wait.
//!
//! Each poll of a session is timed anyway ([`Accounted`](crate::Accounted)). One longer than
//! [`LONGEST`] is noted with what the session ran, and the last [`KEPT`] of them are shown; one
//! that goes on is seen from other threads meanwhile. The processor time used in it tells a session
//! that computed from a thread that did not get its core, or that slept in the kernel.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::clock::now_nanos;
use crate::count::count;
use crate::counter::Counter;
use crate::slots::{self, Slot};

/// Nanoseconds that a session may hold its event loop in one go.
pub const LONGEST: u64 = 10_000_000;

/// Stalls that are shown.
const KEPT: usize = 256;

/// What a session runs, as [`describe_by`] tells it.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// The oid of its user.
    pub user: u32,
    pub text: String,
}

/// One stretch.
#[derive(Clone, Debug)]
pub struct Stall {
    pub pid: u32,
    /// The event loop's.
    pub core: u32,
    /// Microseconds since 1970.
    pub began: i64,
    pub nanos: u64,
    /// Processor time used in it, a millisecond too much at most; None of one that goes on.
    pub used: Option<u64>,
    /// It goes on.
    pub running: bool,
    /// None of one that goes on: its reader asks the session.
    pub statement: Option<Statement>,
}

static LAST: Mutex<VecDeque<Stall>> = Mutex::new(VecDeque::new());

type Describe = Box<dyn Fn(u32) -> Option<Statement>>;

thread_local! {
    static DESCRIBE: RefCell<Option<Describe>> = const { RefCell::new(None) };
}

/// Has stalls of the calling thread's sessions, known by their pids, described by `f`.
pub fn describe_by(f: impl Fn(u32) -> Option<Statement> + 'static) {
    DESCRIBE.with_borrow_mut(|kept| *kept = Some(Box::new(f)));
}

/// Notes a stretch of the session `pid` that has just ended on the calling thread.
#[cold]
pub(crate) fn note(slot: &Slot, pid: u32, nanos: u64) {
    let Some(core) = core_of(slot) else { return };
    count(Counter::Stall, 1);
    let stall = Stall {
        pid,
        core,
        began: began(nanos),
        nanos,
        used: Some(slot.used.of_last(nanos)),
        running: false,
        statement: DESCRIBE.with_borrow(|describe| describe.as_ref()?(pid)),
    };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.len() == KEPT {
        last.pop_front();
    }
    last.push_back(stall);
}

fn core_of(slot: &Slot) -> Option<u32> {
    slot.core.load(Ordering::Relaxed).checked_sub(1)
}

/// When a stretch began that has lasted so long; microseconds since 1970.
fn began(nanos: u64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as i64) - (nanos / 1000) as i64
}

/// Those that go on, then the last ones, the latest first.
pub fn stalls() -> Vec<Stall> {
    let now = now_nanos();
    let present = slots::all().filter_map(|slot| {
        let since = slot.since.load(Ordering::Relaxed);
        let nanos = now.saturating_sub(since);
        let pid = slot.session.load(Ordering::Relaxed);
        let core = core_of(slot)?;
        (since != 0 && pid != 0 && nanos > LONGEST).then(|| Stall {
            pid,
            core,
            began: began(nanos),
            nanos,
            used: None,
            running: true,
            statement: None,
        })
    });
    let mut found: Vec<Stall> = present.collect();
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    found.extend(last.iter().rev().cloned());
    found
}
