//! Who waits for whom, and whether that goes in a circle.
//!
//! A session that has waited for `deadlock_timeout` looks once whether it is in a circle. Nothing
//! is stopped for that: edges are read one partition at a time, and a circle found is then looked
//! at a second time.
//!
//! ```text
//!   A ──waits for──► B ──► C ──► A         first look: the edges, and each wait's number
//!                                          second look: the same numbers, the same edges
//! ```
//!
//! Who waits lets go of nothing, so if every wait in the circle was one and the same in both looks,
//! there was a moment between them at which all of them stood: a deadlock. One search runs at a
//! time and takes its session out of its queue before it ends, so two members of a circle do not
//! both give up.
//!
//! An edge may come from the queue alone (someone before us asks for a mode that excludes ours, but
//! holds nothing that does). Then the circle is broken by letting the later one go first, as
//! PostgreSQL does, and nobody gives up.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use throng_observe::{Counter, count};
use throng_types::error::state;
use throng_types::{Error, Xid};

use super::wait::Verdict;
use crate::lock::table::Blocker;
use crate::lock::wait::{WaitNode, WaitOn};
use crate::lock::{LockMode, LockTag};
use crate::session::{Core, SessionEntry};
use crate::status::Standing;

/// `waiter` waits (in its wait of this number) for `blocker`.
struct Edge {
    waiter: Arc<SessionEntry>,
    number: u64,
    on: WaitOn,
    blocker: Blocker,
}

/// Looks whether `me` waits for itself. If so, and the queue cannot be rearranged, calls `give_up`
/// and reports.
pub(crate) fn check(core: &Core, me: &Arc<SessionEntry>, give_up: impl FnOnce()) -> Verdict {
    let _one_at_a_time = core.detecting.lock();
    let mut verdict = Verdict::Innocent;
    // Each round lets somebody past in a queue; that many circles at most can be broken this way.
    for _ in 0..64 {
        let Some(circle) = Search::new(core).circle_through(me) else {
            return verdict;
        };
        if !still_stands(core, &circle) {
            return verdict;
        }
        // From the far end, in the order in which PostgreSQL tries them.
        if !circle.iter().rev().any(|edge| let_past(core, edge)) {
            give_up();
            return Verdict::Deadlock(report(core, &circle));
        }
        verdict = Verdict::Rearranged;
    }
    verdict
}

fn still_stands(core: &Core, circle: &[Edge]) -> bool {
    let owners = owners(core);
    circle.iter().all(|edge| match edge.waiter.waiting() {
        Some((number, on)) => {
            number == edge.number
                && blockers(core, &owners, &on)
                    .iter()
                    .any(|b| b.pid == edge.blocker.pid)
        }
        None => false,
    })
}

/// Breaks the circle at an edge that only the queue makes.
fn let_past(core: &Core, edge: &Edge) -> bool {
    let WaitOn::Lock { tag, node } = &edge.on else {
        return false;
    };
    let granted = edge.blocker.queued && core.locks.jump_queue(*tag, node);
    if granted {
        node.wake();
    }
    granted
}

fn report(core: &Core, circle: &[Edge]) -> Error {
    count(Counter::Deadlock, 1);
    let mut detail = String::new();
    for (i, edge) in circle.iter().enumerate() {
        let (mode, tag) = wanted(&edge.on);
        let line_end = if i == 0 { "" } else { "\n" };
        let waiter = edge.waiter.pid();
        // Writing to a string does not fail.
        let _ = write!(
            detail,
            "{line_end}Process {waiter} waits for {} on {}; blocked by process {}.",
            mode.name(),
            core.name_of(&tag),
            edge.blocker.pid
        );
    }
    Error::new(state::DEADLOCK_DETECTED, "deadlock detected")
        .detail(detail)
        .hint("See server log for query details.")
}

pub(super) fn wanted(on: &WaitOn) -> (LockMode, LockTag) {
    match on {
        WaitOn::Lock { tag, node } | WaitOn::Holders { tag, node } => (node.mode, *tag),
        WaitOn::Xid { xid, .. } => (LockMode::Share, LockTag::Transaction(*xid)),
    }
}

/// Whose each running transaction is.
fn owners(core: &Core) -> HashMap<Xid, u32> {
    let mut owners = HashMap::new();
    core.registry.each(|session| {
        if let Some(xid) = session.top_xid() {
            owners.insert(xid, session.pid());
        }
    });
    owners
}

fn blockers(core: &Core, owners: &HashMap<Xid, u32>, on: &WaitOn) -> Vec<Blocker> {
    match on {
        WaitOn::Lock { tag, node } => core.locks.blockers(*tag, node),
        WaitOn::Holders { tag, node } => core.locks.watched(*tag, node),
        WaitOn::Xid { xid, node, .. } => holder_of(core, owners, *xid, node).into_iter().collect(),
    }
}

/// Who, at the end of the chain of those who wait for each other, keeps a wait from ending: for
/// reports.
///
/// Finding a transaction's session means asking all sessions, so a thread does it once in a while
/// only; in between, waits for the same thing keep the answer they have.
pub(crate) fn last_blocker(core: &Core, on: &WaitOn) -> Option<u32> {
    /// A hundred looks a second a thread, of some microseconds with a thousand sessions.
    const PAUSE_NANOS: u64 = 10_000_000;
    /// Queues of queues end sooner; a circle does not.
    const HOPS: usize = 16;
    thread_local! {
        static LAST: Cell<u64> = const { Cell::new(0) };
    }
    let now = throng_observe::now_nanos();
    if !throng_observe::is_tracking() || now.saturating_sub(LAST.get()) < PAUSE_NANOS {
        return None;
    }
    LAST.set(now);
    let owners = owners(core);
    let mut last = None;
    let mut on = on.clone();
    for _ in 0..HOPS {
        // Holders come before those who are only ahead.
        let Some(blocker) = blockers(core, &owners, &on).into_iter().next() else {
            break;
        };
        last = Some(blocker.pid);
        match core.registry.get(blocker.pid).and_then(|s| s.waiting()) {
            Some((_, next)) => on = next,
            None => break,
        }
    }
    last
}

/// Who keeps a wait from ending: those who hold the lock, then those before it in its queue.
pub(crate) fn blocking(core: &Core, on: &WaitOn) -> Vec<u32> {
    let blockers = blockers(core, &owners(core), on).into_iter();
    blockers.map(|blocker| blocker.pid).collect()
}

/// Whose transaction a session waits for.
pub(super) fn holder(core: &Core, xid: Xid, node: &Arc<WaitNode>) -> Option<u32> {
    holder_of(core, &owners(core), xid, node).map(|blocker| blocker.pid)
}

fn holder_of(
    core: &Core,
    owners: &HashMap<Xid, u32>,
    xid: Xid,
    node: &Arc<WaitNode>,
) -> Option<Blocker> {
    let Standing::InProgress { top } = core.status.standing(xid) else {
        return None;
    };
    let pid = *owners.get(&top)?;
    (pid != node.pid).then_some(Blocker { pid, queued: false })
}

struct Search<'a> {
    core: &'a Core,
    owners: HashMap<Xid, u32>,
    seen: HashSet<u32>,
}

impl<'a> Search<'a> {
    fn new(core: &'a Core) -> Search<'a> {
        Search {
            core,
            owners: owners(core),
            seen: HashSet::new(),
        }
    }

    /// A circle that begins and ends at `me`, depth first. Not recursive: chains are as long as
    /// there are sessions.
    fn circle_through(&mut self, me: &Arc<SessionEntry>) -> Option<Vec<Edge>> {
        // The way from `me`: at each session, the edges not tried yet.
        let mut path: Vec<(Edge, Vec<Edge>)> = Vec::new();
        let mut untried = self.edges_of(me.clone());
        loop {
            match untried.pop() {
                Some(edge) if edge.blocker.pid == me.pid() => {
                    return Some(
                        path.into_iter()
                            .map(|(edge, _)| edge)
                            .chain([edge])
                            .collect(),
                    );
                }
                Some(edge) => {
                    if !self.seen.insert(edge.blocker.pid) {
                        continue;
                    }
                    let next = self.core.registry.get(edge.blocker.pid);
                    let onward = next
                        .map(|session| self.edges_of(session))
                        .unwrap_or_default();
                    path.push((edge, std::mem::replace(&mut untried, onward)));
                }
                None => untried = path.pop()?.1,
            }
        }
    }

    fn edges_of(&self, waiter: Arc<SessionEntry>) -> Vec<Edge> {
        let Some((number, on)) = waiter.waiting() else {
            return Vec::new();
        };
        let edge = |blocker| Edge {
            waiter: waiter.clone(),
            number,
            on: on.clone(),
            blocker,
        };
        // Popped from the end: holders are looked at before those who are only ahead.
        blockers(self.core, &self.owners, &on)
            .into_iter()
            .rev()
            .map(edge)
            .collect()
    }
}
