//! `throng.waits`, `throng.waiting_now`, `throng.stalls` and `throng.structures`: what
//! [`throng_observe`] counted, with the names of things.

mod object;
mod remedy;

use std::collections::HashMap;
use std::sync::Arc;

use throng_catalog::system::{HolderInfo, StallInfo, StructureInfo, WaitInfo, WaitingInfo};
use throng_observe::stall::{Stall, Statement, describe_by, stalls};
use throng_observe::{
    Holder, Object, PresentWait, Scope, WaitClass, WaitEvent, WaitRow, background_now, now_nanos,
    present_of_thread, running_nanos, thread_name,
};
use throng_txn::SessionStatus;
use throng_types::Oid;

use crate::engine::Engine;
use crate::session::answers::eval_host::SessionHost;
use object::Names;
use remedy::Remedies;
use throng_values::io::datetime::from_unix;

/// As much of a statement as a row shows.
const SHOWN: usize = 100;
/// As much of a statement as is kept with a stall: enough to run it again.
const KEPT: usize = 4_096;

/// Sessions by number.
type Sessions = HashMap<u32, SessionStatus>;

/// What a session runs or ran last.
fn statement_of(session: &SessionStatus) -> Statement {
    Statement {
        user: session.info.user_oid,
        text: session.query.chars().take(KEPT).collect(),
    }
}

impl Engine {
    /// Has the stalls of the calling thread's event loop shown with what the sessions ran.
    pub fn describe_stalls(self: &Arc<Engine>) {
        let engine = Arc::downgrade(self);
        describe_by(move |pid| {
            let sessions = engine.upgrade()?.sys.sessions();
            sessions.iter().find(|s| s.pid == pid).map(statement_of)
        });
    }
}

impl SessionHost<'_> {
    fn sessions_by_pid(&self) -> Sessions {
        let sessions = self.session.engine.sys.sessions();
        sessions.into_iter().map(|s| (s.pid, s)).collect()
    }

    /// Hold-ups of sessions first, then what the server's own threads waited for, then what holds
    /// nothing up; in each the event with the longest total first, and of an event the object with
    /// the longest.
    pub(in crate::session) fn wait_rows(&self) -> Vec<WaitInfo> {
        let rows = in_order(throng_observe::waits());
        let (names, sessions) = (Names::new(self), self.sessions_by_pid());
        let remedies = Remedies::new(self, &rows);
        rows.iter()
            .map(|row| {
                let quantile = |q| {
                    row.histogram
                        .quantile(q)
                        .unwrap_or(0)
                        .min(row.longest_nanos)
                };
                let holder = holder_info(row.holder, &sessions);
                WaitInfo {
                    event_type: row.event.class().name(),
                    event: row.event.name(),
                    object: names.of(row.event, row.object),
                    waiter: ["session", "background", "idle"][rank(row) as usize],
                    count: row.count,
                    total_nanos: row.nanos,
                    p50_nanos: quantile(0.5),
                    p99_nanos: quantile(0.99),
                    max_nanos: row.longest_nanos,
                    remedy: (rank(row) != IDLE).then(|| remedies.of(row, &holder)),
                    holder,
                }
            })
            .collect()
    }

    /// Who waits now for something that somebody else has or does: the longest wait first.
    pub(in crate::session) fn waiting_rows(&self) -> Vec<WaitingInfo> {
        let (names, sessions) = (Names::new(self), self.sessions_by_pid());
        let rows = throng_observe::waits();
        let remedies = Remedies::new(self, &rows);
        let now = now_nanos();
        let mut found: Vec<WaitingInfo> = sessions
            .values()
            .filter_map(|session| {
                let wait = session.wait.filter(|wait| !wait.event.is_idle())?;
                let (holders, root) = self.blockers(session.pid, wait);
                let root = holder_info(root, &sessions);
                Some(WaitingInfo {
                    pid: Some(session.pid as i32),
                    who: session.info.application_name.clone(),
                    holder_pids: holders,
                    remedy: Some(remedies.of_present(wait, &root)),
                    root,
                    ..waiting_info(&names, wait, now)
                })
            })
            .collect();
        let threads = background_now().into_iter();
        found.extend(
            threads
                .filter(|(_, wait)| !wait.event.is_idle())
                .map(|(name, wait)| WaitingInfo {
                    who: name.to_owned(),
                    remedy: Some(remedies.of_present(wait, &HolderInfo::default())),
                    ..waiting_info(&names, wait, now)
                }),
        );
        found.sort_by_key(|row| std::cmp::Reverse(row.waited_nanos));
        found
    }

    pub(in crate::session) fn stall_rows(&self) -> Vec<StallInfo> {
        let sessions = self.sessions_by_pid();
        let row_of = |stall: Stall| {
            let statement = stall.statement.or_else(|| {
                let session = sessions.get(&stall.pid)?;
                Some(statement_of(session))
            });
            StallInfo {
                core: stall.core as i32,
                began: from_unix(stall.began),
                nanos: stall.nanos,
                used: stall.used,
                running: stall.running,
                session: HolderInfo {
                    pid: Some(stall.pid as i32),
                    user: statement.as_ref().map(|s| Oid(s.user)),
                    does: statement.map(|s| s.text),
                    ..HolderInfo::default()
                },
            }
        };
        stalls().into_iter().map(row_of).collect()
    }

    pub(in crate::session) fn structure_rows(&self) -> Vec<StructureInfo> {
        let running = running_nanos();
        let mut times = throng_observe::structures();
        times.sort_by(|a, b| b.nanos.total_cmp(&a.nanos));
        times
            .into_iter()
            .map(|time| StructureInfo {
                name: time.structure.name(),
                calls: time.calls,
                samples: time.samples,
                total_nanos: time.nanos,
                share: (running > 0).then(|| time.nanos / running as f64),
            })
            .collect()
    }

    /// Whom a session waits for directly, and who waits for nobody at the end of the chain.
    fn blockers(&self, pid: u32, wait: PresentWait) -> (Vec<i32>, Holder) {
        /// Queues of queues end sooner; a circle does not, until it is found to be a deadlock.
        const HOPS: usize = 64;
        if wait.event.class() != WaitClass::Lock {
            return (
                wait.holder
                    .pid()
                    .map(|pid| pid as i32)
                    .into_iter()
                    .collect(),
                wait.holder,
            );
        }
        let direct = self.pids_blocking(pid);
        let mut root = None;
        let mut next = direct.first().copied();
        for _ in 0..HOPS {
            let Some(pid) = next else { break };
            root = Some(pid);
            next = self.pids_blocking(pid as u32).first().copied();
        }
        (
            direct,
            root.map_or(wait.holder, |pid| Holder::session(pid as u32)),
        )
    }
}

const IDLE: u8 = 2;

/// Objects of one event that have rows of their own; what more there are is one row.
const OBJECTS: usize = 8;

fn in_order(rows: Vec<WaitRow>) -> Vec<WaitRow> {
    let mut events: HashMap<(WaitEvent, Scope), Vec<WaitRow>> = HashMap::new();
    for row in rows {
        events.entry((row.event, row.scope)).or_default().push(row);
    }
    let total = |rows: &[WaitRow]| -> u64 { rows.iter().map(|row| row.nanos).sum() };
    let mut events: Vec<Vec<WaitRow>> = events.into_values().collect();
    events.sort_by_key(|rows| (rank(&rows[0]), std::cmp::Reverse(total(rows))));
    events.into_iter().flat_map(with_few_objects).collect()
}

/// The objects waited for longest, then the rest together.
fn with_few_objects(mut rows: Vec<WaitRow>) -> Vec<WaitRow> {
    let is_rest = |row: &WaitRow| row.object == Object::NONE;
    rows.sort_by_key(|row| (is_rest(row), std::cmp::Reverse(row.nanos)));
    if rows.len() > OBJECTS + 1 {
        let last = rows.split_off(OBJECTS);
        let rest = last.into_iter().reduce(|rest, row| rest.with(&row));
        rows.extend(rest);
    }
    rows
}

/// Where a row belongs: what holds statements up before what does not.
fn rank(row: &WaitRow) -> u8 {
    match (row.event.is_idle(), row.scope) {
        (true, _) => IDLE,
        (false, Scope::Sessions) => 0,
        (false, Scope::Background) => 1,
    }
}

fn waiting_info(names: &Names<'_>, wait: PresentWait, now: u64) -> WaitingInfo {
    WaitingInfo {
        event_type: wait.event.class().name(),
        event: wait.event.name(),
        object: names.of(wait.event, wait.object),
        // Not known while waits are not tracked.
        waited_nanos: (wait.since > 0).then(|| now.saturating_sub(wait.since)),
        ..WaitingInfo::default()
    }
}

/// What is to be said of a holder: a session's statement, or a thread's name and what it waits for
/// itself.
fn holder_info(holder: Holder, sessions: &Sessions) -> HolderInfo {
    if let Some(pid) = holder.pid() {
        let session = sessions.get(&pid);
        return HolderInfo {
            pid: Some(pid as i32),
            user: session.map(|s| Oid(s.info.user_oid)),
            state: session.map(|s| s.state.name().to_owned()),
            does: Some(session.map_or("(has gone)".to_owned(), |s| shown(&s.query))),
        };
    }
    let does = thread_name(holder).map(|name| match present_of_thread(holder) {
        Some(wait) if !wait.event.is_idle() => {
            let event: WaitEvent = wait.event;
            format!("{name}, in {}", event.name())
        }
        _ => name.to_owned(),
    });
    HolderInfo {
        does,
        ..HolderInfo::default()
    }
}

/// A statement in one line, its beginning if it is long.
fn shown(query: &str) -> String {
    let line: Vec<&str> = query.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observe::HistogramSnapshot;

    fn row(event: WaitEvent, file: u32, nanos: u64) -> WaitRow {
        WaitRow {
            event,
            scope: Scope::Sessions,
            object: Object::file(file),
            count: 1,
            nanos,
            longest_nanos: nanos,
            histogram: HistogramSnapshot::default(),
            holder: Holder::NONE,
        }
    }

    #[test]
    fn the_greatest_hold_up_comes_first_and_few_objects_of_it() {
        let mut rows: Vec<_> = (1..=20)
            .map(|n| row(WaitEvent::PageRead, n, n.into()))
            .collect();
        rows.push(row(WaitEvent::LockExtend, 1, 100));
        rows.push(row(WaitEvent::ClientRead, 1, 1_000_000));
        rows.push(WaitRow {
            scope: Scope::Background,
            ..row(WaitEvent::PageRead, 1, 1000)
        });
        let told: Vec<_> = in_order(rows)
            .iter()
            .map(|row| (row.event, row.object.number, row.nanos))
            .collect();
        let mut expected: Vec<_> = (13..=20)
            .rev()
            .map(|n| (WaitEvent::PageRead, n, n))
            .collect();
        expected.extend([
            (WaitEvent::PageRead, 0, (1..=12).sum()),
            (WaitEvent::LockExtend, 1, 100),
            (WaitEvent::PageRead, 1, 1000),
            (WaitEvent::ClientRead, 1, 1_000_000),
        ]);
        assert_eq!(told, expected);
    }

    #[test]
    fn a_long_statement_is_shown_in_one_line_up_to_a_character() {
        assert_eq!(shown("select\n   1 "), "select 1");
        let long = shown(&"é".repeat(SHOWN + 1));
        assert_eq!(long.chars().count(), SHOWN + 1);
        assert!(long.ends_with('…'));
    }
}
