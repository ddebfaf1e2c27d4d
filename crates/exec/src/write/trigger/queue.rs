//! AFTER triggers that wait for the end of their statement.
//!
//! ```text
//!   statement ─► function ─► statement inside        each has a level: what it queues runs when it ends
//!      0            │              1
//!      ▼            ▼              ▼
//!   [ places of rows … | places of rows … ]          a level's entries lie behind those of the levels around it
//! ```
//! Of a row only the places of its versions are kept: what a transaction itself made or ended stays
//! until it ends. Rows are kept whole only for transition tables.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_buffer::retry;
use throng_catalog::{TriggerDef, fires};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Tid};

use super::{Queued, Rows, Triggers, place_of};
use crate::drive::KeptRows;
use crate::run::Row;
use crate::run::routine::Routines;
use crate::table::Table;
use crate::trigger::Transition;
use crate::write::Context;
use crate::write::deferred::{Due, decoded};

/// How much of `work_mem` times this the places of rows may take that triggers are still to run
/// for: an UPDATE of millions is no reason to stop.
const SHARE: usize = 16;

/// A row, or a statement, that some triggers are to run for.
#[derive(Clone, Copy)]
struct Entry {
    /// Which triggers: by place in [`QueueState::groups`].
    group: u32,
    old: Tid,
    new: Tid,
}

/// Triggers that run for the same rows.
struct Group {
    triggers: Rc<Triggers>,
    event: i16,
    /// By place among the triggers.
    which: Vec<u16>,
    for_each_row: bool,
    /// The role whose statement queued them, as which they run.
    role: Oid,
}

/// The rows that a statement has changed of a table, for triggers that look at all of them.
pub struct Capture {
    level: u32,
    table: Oid,
    event: i16,
    old: RefCell<KeptRows>,
    new: RefCell<KeptRows>,
}

impl Capture {
    /// Notes a row as it was and as it is. 53200 past `work_mem`.
    pub fn add(&self, triggers: &Triggers, rows: Rows<'_>) -> Result<()> {
        for (row, kept) in [(rows.old, &self.old), (rows.new, &self.new)] {
            if let Some(row) = row {
                kept.borrow_mut().keep(&triggers.seen(row))?;
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct QueueState {
    entries: Vec<Entry>,
    groups: Vec<Group>,
    /// Of each level that has entries: its number, and where its entries and groups begin.
    starts: Vec<(u32, usize, usize)>,
    /// Tables and events for which BEFORE STATEMENT triggers have run, by level.
    begun: Vec<(u32, Oid, i16)>,
    captures: Vec<Rc<Capture>>,
    /// How often a trigger ran and how long, where that is asked for.
    counts: Option<Vec<(Arc<TriggerDef>, u64, Duration)>>,
}

/// The AFTER triggers of one transaction that are still to run for statements under way.
#[derive(Default)]
pub struct Queue {
    level: Cell<u32>,
    state: RefCell<QueueState>,
}

impl Queue {
    /// A statement begins.
    #[inline]
    pub fn begin(&self) {
        self.level.set(self.level.get() + 1);
    }

    /// How many statements are under way.
    pub fn level(&self) -> u32 {
        self.level.get()
    }

    /// Back to so many statements; the others have failed.
    pub fn cut(&self, level: u32) {
        self.level.set(level);
        self.forget();
    }

    /// Forgets what belongs to levels that have ended.
    fn forget(&self) {
        let level = self.level.get();
        let mut state = self.state.borrow_mut();
        while let Some(&(of, entries, groups)) = state.starts.last()
            && of > level
        {
            state.entries.truncate(entries);
            state.groups.truncate(groups);
            state.starts.pop();
        }
        state.begun.retain(|(of, ..)| *of <= level);
        state.captures.retain(|capture| capture.level <= level);
    }

    /// The statement has ended: runs what it has queued.
    pub async fn end(&self, cx: &Context<'_>) -> Result<()> {
        let level = self.level.get();
        let start = {
            let state = self.state.borrow();
            let last = state.starts.last();
            last.filter(|start| start.0 == level).map(|start| start.1)
        };
        if let Some(start) = start {
            self.run(start, cx).await?;
        }
        self.level.set(level.saturating_sub(1));
        let state = self.state.borrow();
        if !state.starts.is_empty() || !state.begun.is_empty() || !state.captures.is_empty() {
            drop(state);
            self.forget();
        }
        Ok(())
    }

    async fn run(&self, start: usize, cx: &Context<'_>) -> Result<()> {
        let mut at = start;
        loop {
            let next = {
                let state = self.state.borrow();
                state.entries.get(at).map(|entry| {
                    let group = &state.groups[entry.group as usize];
                    let which = group.which.clone();
                    let kind = (group.event, group.role);
                    (*entry, group.triggers.clone(), kind, which)
                })
            };
            let Some((entry, triggers, kind, which)) = next else {
                return Ok(());
            };
            self.run_entry(entry, &triggers, kind, &which, cx).await?;
            at += 1;
            cx.env.cancel.check()?;
        }
    }

    async fn run_entry(
        &self,
        entry: Entry,
        triggers: &Rc<Triggers>,
        (event, role): (i16, Oid),
        which: &[u16],
        cx: &Context<'_>,
    ) -> Result<()> {
        let mut versions = None;
        for place in which {
            let ready = &triggers.own[usize::from(*place)];
            if cx.deferred.defers(ready.def.oid, ready.def.deferral()) {
                if cx.env.routines.is_some_and(Routines::is_restricted) {
                    return Err(restricted());
                }
                let places = (entry.old, entry.new);
                cx.deferred.add_trigger(&ready.def, (event, role), places);
                continue;
            }
            if versions.is_none() {
                let old = version(triggers, entry.old, cx).await?;
                let new = version(triggers, entry.new, cx).await?;
                versions = Some((old, new));
            }
            let Some((old, new)) = &versions else {
                continue;
            };
            let rows = Rows {
                old: old.as_deref(),
                new: new.as_deref(),
            };
            let queued = Queued {
                role: Some(role),
                transitions: self.transitions(&ready.def, event),
            };
            triggers.call(ready, event, rows, queued, cx).await?;
        }
        Ok(())
    }

    /// The transition tables that a trigger names.
    fn transitions(&self, def: &TriggerDef, event: i16) -> Vec<Transition> {
        if !def.has_transition_tables() {
            return Vec::new();
        }
        let level = self.level.get();
        let state = self.state.borrow();
        let mut captures = state.captures.iter();
        let capture =
            captures.find(|c| c.level == level && c.table == def.table && c.event == event);
        let named = [
            (&def.old_table, capture.map(|c| &c.old)),
            (&def.new_table, capture.map(|c| &c.new)),
        ];
        let mut found = Vec::new();
        for (name, kept) in named {
            if let Some(name) = name {
                let rows = kept.map(|kept| kept.borrow().rows.clone());
                found.push(Transition {
                    name: name.clone(),
                    rows: rows.unwrap_or_default().into(),
                });
            }
        }
        found
    }

    /// Queues triggers for a row.
    pub fn add(
        &self,
        triggers: &Rc<Triggers>,
        event: i16,
        which: Vec<u16>,
        (old, new): (Tid, Tid),
        cx: &Context<'_>,
    ) -> Result<()> {
        let role = cx.env.system.current_user();
        let for_each_row = old != Tid::NONE || new != Tid::NONE;
        let level = self.level.get();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if state.starts.last().is_none_or(|start| start.0 < level) {
            let start = (level, state.entries.len(), state.groups.len());
            state.starts.push(start);
        }
        let first = state.starts.last().map_or(0, |start| start.2);
        let same = |group: &Group| {
            Rc::ptr_eq(&group.triggers, triggers)
                && group.event == event
                && group.which == which
                && group.for_each_row == for_each_row
                && group.role == role
        };
        let group = match state.groups[first..].iter().position(same) {
            Some(at) => first + at,
            None => {
                state.groups.push(Group {
                    triggers: triggers.clone(),
                    event,
                    which,
                    for_each_row,
                    role,
                });
                state.groups.len() - 1
            }
        };
        let limit = cx.work_mem.saturating_mul(SHARE);
        if (state.entries.len() + 1).saturating_mul(size_of::<Entry>()) > limit {
            return Err(too_many(limit));
        }
        state.entries.push(Entry {
            group: group as u32,
            old,
            new,
        });
        Ok(())
    }

    /// Whether BEFORE STATEMENT triggers are to run now: once in a statement for a table and an
    /// event.
    pub(super) fn begins(&self, table: Oid, event: i16) -> bool {
        let begun = (self.level.get(), table, event);
        let mut state = self.state.borrow_mut();
        let first = !state.begun.contains(&begun);
        if first {
            state.begun.push(begun);
        }
        first
    }

    /// Takes back AFTER STATEMENT triggers that this statement has queued for a table and an event:
    /// they run once, at last.
    pub(super) fn take_back(&self, table: Oid, event: i16) {
        let level = self.level.get();
        let mut state = self.state.borrow_mut();
        let QueueState {
            entries,
            groups,
            starts,
            ..
        } = &mut *state;
        let Some((_, start, _)) = starts.last().filter(|start| start.0 == level) else {
            return;
        };
        let is_same = |entry: &Entry| {
            let group = &groups[entry.group as usize];
            !group.for_each_row && group.triggers.def.oid == table && group.event == event
        };
        if let Some(at) = entries[*start..].iter().position(is_same) {
            entries.remove(start + at);
        }
    }

    /// Where the rows of a table that the statement changes are kept.
    pub(super) fn capture(&self, table: Oid, event: i16, work_mem: usize) -> Rc<Capture> {
        let level = self.level.get();
        let mut state = self.state.borrow_mut();
        let mut captures = state.captures.iter();
        let found = captures.find(|c| c.level == level && c.table == table && c.event == event);
        if let Some(found) = found {
            return found.clone();
        }
        let capture = Rc::new(Capture {
            level,
            table,
            event,
            old: RefCell::new(KeptRows::new(work_mem)),
            new: RefCell::new(KeptRows::new(work_mem)),
        });
        state.captures.push(capture.clone());
        capture
    }

    /// Runs a constraint trigger that was put off.
    pub(in crate::write) async fn run_deferred(
        &self,
        triggers: &Rc<Triggers>,
        trigger: Oid,
        due: Due,
        tid: Tid,
        cx: &Context<'_>,
    ) -> Result<()> {
        let (event, role, old, new) = match due {
            Due::Trigger { event, role, old } => match event {
                fires::DELETE => (event, role, tid, Tid::NONE),
                _ => (event, role, old, tid),
            },
            _ => return Err(Error::internal("a check that is no trigger's")),
        };
        // One that was dropped or switched off meanwhile holds nobody up.
        let Some(place) = place_of(triggers, trigger) else {
            return Ok(());
        };
        let ready = &triggers.own[usize::from(place)];
        let (old, new) = (
            version(triggers, old, cx).await?,
            version(triggers, new, cx).await?,
        );
        let rows = Rows {
            old: old.as_deref(),
            new: new.as_deref(),
        };
        let queued = Queued {
            role: Some(role),
            ..Queued::default()
        };
        triggers.call(ready, event, rows, queued, cx).await?;
        Ok(())
    }

    /// From here on it is counted how often triggers run.
    pub fn count(&self) {
        self.state.borrow_mut().counts = Some(Vec::new());
    }

    /// How often each trigger ran since, and how long.
    pub fn take_counts(&self) -> Vec<(Arc<TriggerDef>, u64, Duration)> {
        self.state.borrow_mut().counts.take().unwrap_or_default()
    }

    pub(super) fn starts(&self) -> Option<Instant> {
        let counted = self.state.borrow().counts.is_some();
        counted.then(Instant::now)
    }

    pub(super) fn ran(&self, def: &Arc<TriggerDef>, started: Option<Instant>) {
        let Some(started) = started else { return };
        if let Some(counts) = &mut self.state.borrow_mut().counts {
            match counts.iter_mut().find(|(of, ..)| of.oid == def.oid) {
                Some((_, calls, time)) => {
                    *calls += 1;
                    *time += started.elapsed();
                }
                None => counts.push((def.clone(), 1, started.elapsed())),
            }
        }
    }
}

/// 42501: what is put off would run when the operation that it belongs to is over.
#[cold]
fn restricted() -> Error {
    let message = "cannot fire deferred trigger within security-restricted operation";
    Error::new(state::INSUFFICIENT_PRIVILEGE, message)
}

/// 53200.
#[cold]
fn too_many(limit: usize) -> Error {
    Error::new(state::OUT_OF_MEMORY, "out of memory")
        .detail(format!(
            "The statement changes more rows with AFTER triggers than {SHARE} times work_mem, {} kB, has places for.",
            limit / 1024
        ))
        .hint("Raise work_mem for this session, or change fewer rows in one statement.")
}

/// A row's version that this transaction made or ended.
async fn version(triggers: &Triggers, tid: Tid, cx: &Context<'_>) -> Result<Option<Vec<Datum>>> {
    if tid == Tid::NONE {
        return Ok(None);
    }
    let table = Table::of(&triggers.def, cx.env.store, &cx.env.eval)?;
    let mut bytes = Vec::new();
    if retry(|| table.heap.read_version(tid, &mut bytes))
        .await?
        .is_none()
    {
        return Err(Error::internal("a row that a trigger is to see is gone"));
    }
    let row: Row = decoded(&table, &bytes).await?;
    Ok(Some(row))
}
