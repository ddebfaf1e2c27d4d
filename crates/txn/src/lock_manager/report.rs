//! `log_lock_waits`: what the server's log is told of waits that last, in PostgreSQL's words
//! (`ProcSleep` in `proc.c`).
//!
//! ```text
//!   asleep ── deadlock_timeout ──► looked for a circle
//!                                   │ none:      process 7 still waiting for ShareLock on transaction 9 after 1000.104 ms
//!                                   │ rearranged: process 7 avoided deadlock for …
//!                                   │ found:      process 7 detected deadlock while waiting for …
//!                                   ▼
//!          granted ───────────────► process 7 acquired ShareLock on transaction 9 after 3210.512 ms
//! ```

use std::time::Instant;

use super::deadlock::wanted;
use super::wait::Verdict;
use crate::lock::LockTag;
use crate::lock::wait::WaitOn;
use crate::session::{Core, SessionEntry};

/// One wait, as the log is told of it.
pub(super) struct WaitLog<'a> {
    session: &'a SessionEntry,
    on: &'a WaitOn,
    began: Instant,
    looked: bool,
}

impl<'a> WaitLog<'a> {
    pub(super) fn new(session: &'a SessionEntry, on: &'a WaitOn) -> WaitLog<'a> {
        WaitLog {
            session,
            on,
            began: Instant::now(),
            looked: false,
        }
    }

    /// `deadlock_timeout` has passed, and it has been looked for a circle.
    pub(super) fn looked(&mut self, verdict: &Verdict) {
        self.looked = true;
        match verdict {
            Verdict::Innocent => {}
            Verdict::Rearranged => {
                self.say("avoided deadlock for", " by rearranging queue order", true);
            }
            Verdict::Deadlock(_) => {
                self.say("detected deadlock while waiting for", "", true);
                return;
            }
        }
        // A grant is told of by `granted`, which comes next.
        if !self.on.node().is_granted() {
            self.say("still waiting for", "", true);
        }
    }

    /// The wait is over. Short ones are nobody's business.
    pub(super) fn granted(&self) {
        if self.looked {
            self.say("acquired", "", false);
        }
    }

    #[cold]
    fn say(&self, what: &str, how: &str, with_queue: bool) {
        let core = self.session.core();
        if !self.session.logs_lock_waits() {
            return;
        }
        let Some(reporter) = core.lock_reporter.get() else {
            return;
        };
        let (mode, tag) = wanted(self.on);
        let micros = self.began.elapsed().as_micros();
        let message = format!(
            "process {} {what} {} on {}{how} after {}.{:03} ms",
            self.session.pid(),
            mode.name(),
            core.name_of(&tag),
            micros / 1000,
            micros % 1000
        );
        let detail = with_queue.then(|| queue(core, self.on));
        reporter.log(self.session, &message, detail.as_deref());
    }
}

/// Who holds the lock and who waits for it.
fn queue(core: &Core, on: &WaitOn) -> String {
    let (holders, waiters) = match on {
        WaitOn::Lock { tag, .. } | WaitOn::Holders { tag, .. } => core.locks.queue(*tag),
        WaitOn::Xid { xid, node, .. } => {
            let holder = super::deadlock::holder(core, *xid, node);
            (holder.into_iter().collect(), core.xids.queue(*xid))
        }
    };
    let holding = match holders.len() {
        1 => "Process holding the lock",
        _ => "Processes holding the lock",
    };
    format!(
        "{holding}: {}. Wait queue: {}.",
        list(&holders),
        list(&waiters)
    )
}

fn list(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    pids.join(", ")
}

impl Core {
    /// How messages name what is locked.
    pub(crate) fn name_of(&self, tag: &LockTag) -> String {
        match self.lock_reporter.get() {
            Some(reporter) => reporter.describe(tag),
            None => tag.to_string(),
        }
    }
}
