//! Constraints that need not hold row by row: what is still to be checked, and when.
//!
//! ```text
//!   a row is written ──► deferred now?  no ──► at the statement's end      (uniqueness: `now`; foreign keys: ForeignKeys)
//!                              │ yes
//!                              ▼
//!                          `later`: which constraint, which version ──► SET CONSTRAINTS … IMMEDIATE, or COMMIT
//! ```
//!
//! Nothing is kept of a row but where its version is: what the transaction itself made or ended
//! stays there until it ends. The check is about the newest version of that row; one that is gone
//! needs none. A check that was made is kept, marked with the savepoint it was made in, until that
//! is released: rolled back, it is due again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use throng_access::TxContext;
use throng_buffer::retry;
use throng_catalog::{ConstraintDef, Deferral, TriggerDef};
use throng_types::{Error, Oid, Result, Tid};

use super::trigger::{Queue, Triggers};
use super::{Context, Target, foreign, row};
use crate::run::Row;
use crate::table::Table;

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// No other row has the key of this one.
    Unique,
    /// What this row points at is there.
    Points,
    /// Nobody points at what this row was.
    Deleted,
    Updated,
    /// A constraint trigger on an event ([`throng_catalog::fires`]); `role`: whose statement
    /// queued it; `old`: the version of a row that was replaced.
    Trigger {
        event: i16,
        role: Oid,
        old: Tid,
    },
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    constraint: Oid,
    table: Oid,
    tid: Tid,
    due: Due,
    /// How many savepoints there were when it was checked.
    checked_in: Option<usize>,
}

#[derive(Clone, Default)]
struct Modes {
    all: Option<bool>,
    each: HashMap<Oid, bool>,
}

/// The checks of one transaction.
#[derive(Default)]
pub struct Deferred {
    state: RefCell<DeferredState>,
    /// AFTER triggers of statements under way.
    pub triggers: Queue,
}

#[derive(Default)]
struct DeferredState {
    modes: Modes,
    /// For the end of the statement.
    now: Vec<Pending>,
    later: Vec<Pending>,
}

impl DeferredState {
    /// Nothing was said or is due.
    fn is_fresh(&self) -> bool {
        let said = self.modes.all.is_some() || !self.modes.each.is_empty();
        !said && self.now.is_empty() && self.later.is_empty()
    }
}

/// Where a rollback to a savepoint goes back to.
#[derive(Clone)]
pub struct Mark {
    modes: Modes,
    later: usize,
    /// How many statements were under way.
    level: u32,
}

impl Deferred {
    /// Whether the constraint's checks wait for the transaction's end.
    pub fn waits(&self, constraint: &ConstraintDef) -> bool {
        self.defers(constraint.oid, constraint.deferral)
    }

    /// Whether what is due for a constraint, or a constraint trigger, waits for the transaction's
    /// end.
    pub fn defers(&self, oid: Oid, deferral: Deferral) -> bool {
        if !deferral.is_deferrable() {
            return false;
        }
        let modes = &self.state.borrow().modes;
        let said = modes.each.get(&oid).copied().or(modes.all);
        said.unwrap_or(deferral == Deferral::InitiallyDeferred)
    }

    /// A constraint trigger is to run later for a row, whose versions' places these are.
    pub fn add_trigger(&self, def: &TriggerDef, (event, role): (i16, Oid), (old, new): (Tid, Tid)) {
        let tid = if new == Tid::NONE { old } else { new };
        self.state.borrow_mut().later.push(Pending {
            constraint: def.oid,
            table: def.table,
            tid,
            due: Due::Trigger { event, role, old },
            checked_in: None,
        });
    }

    /// `SET CONSTRAINTS`; no constraints: all of them.
    pub fn set(&self, constraints: Option<&[Oid]>, deferred: bool) {
        let modes = &mut self.state.borrow_mut().modes;
        match constraints {
            None => {
                *modes = Modes {
                    all: Some(deferred),
                    each: HashMap::new(),
                }
            }
            Some(list) => modes.each.extend(list.iter().map(|oid| (*oid, deferred))),
        }
    }

    /// A version is to be checked, at the statement's end or later.
    pub fn add(&self, constraint: &ConstraintDef, tid: Tid, due: Due) {
        let pending = Pending {
            constraint: constraint.oid,
            table: match (due, constraint.foreign_key()) {
                (Due::Deleted | Due::Updated, Some(key)) => key.ref_table,
                _ => constraint.table,
            },
            tid,
            due,
            checked_in: None,
        };
        let waits = self.waits(constraint);
        let mut state = self.state.borrow_mut();
        match waits {
            true => state.later.push(pending),
            false => state.now.push(pending),
        }
    }

    /// Whether something of the table is still to be checked.
    pub fn concerns(&self, table: Oid) -> bool {
        let state = self.state.borrow();
        let mut due = state.later.iter().filter(|p| p.checked_in.is_none());
        due.any(|pending| pending.table == table)
    }

    pub fn is_empty(&self) -> bool {
        let state = self.state.borrow();
        state.later.is_empty() && state.now.is_empty()
    }

    pub fn mark(&self) -> Mark {
        let state = self.state.borrow();
        Mark {
            modes: state.modes.clone(),
            later: state.later.len(),
            level: self.triggers.level(),
        }
    }

    /// `depth`: how many savepoints are left.
    pub fn rollback_to(&self, mark: &Mark, depth: usize) {
        let mut state = self.state.borrow_mut();
        state.modes = mark.modes.clone();
        self.triggers.cut(mark.level);
        state.now.clear();
        state.later.truncate(mark.later);
        for pending in &mut state.later {
            pending.checked_in = pending.checked_in.filter(|within| *within < depth);
        }
    }

    /// Savepoints down to `depth` are released: what was checked in them was checked in what is
    /// around.
    pub fn release(&self, depth: usize) {
        let mut state = self.state.borrow_mut();
        for pending in &mut state.later {
            pending.checked_in = pending.checked_in.map(|within| within.min(depth));
        }
        if depth == 0 {
            state.later.retain(|pending| pending.checked_in.is_none());
        }
    }

    /// The transaction is over.
    pub fn clear(&mut self) {
        let state = self.state.get_mut();
        if !state.is_fresh() {
            *state = DeferredState::default();
        }
        self.triggers.cut(0);
    }

    /// The statement has ended: uniqueness that could wait for that.
    pub async fn end_statement(&self, cx: &Context<'_>) -> Result<()> {
        if self.state.borrow().now.is_empty() {
            return Ok(());
        }
        // What the statement did is to be seen.
        cx.txn.next_command()?;
        let now = std::mem::take(&mut self.state.borrow_mut().now);
        for pending in now {
            check(&pending, cx).await?;
        }
        Ok(())
    }

    /// Checks what waits of constraints that are due, and runs constraint triggers that are;
    /// `depth`: how many savepoints there are.
    pub async fn check(
        &self,
        is_due: impl Fn(Oid) -> bool,
        depth: usize,
        cx: &Context<'_>,
    ) -> Result<()> {
        if self.state.borrow().later.is_empty() {
            return Ok(());
        }
        cx.txn.next_command()?;
        let mut known = HashMap::new();
        let mut at = 0;
        loop {
            let next = self.state.borrow().later.get(at).copied();
            let Some(pending) = next else {
                break;
            };
            if pending.checked_in.is_none() && is_due(pending.constraint) {
                // What a function does that runs for it is not to be done twice.
                self.state.borrow_mut().later[at].checked_in = Some(depth);
                match pending.due {
                    Due::Trigger { .. } => self.run_trigger(&pending, &mut known, cx).await?,
                    _ => check(&pending, cx).await?,
                }
            }
            at += 1;
            cx.env.cancel.check()?;
        }
        self.release(depth);
        // And what functions did for it is seen by what follows in the transaction.
        cx.txn.next_command()
    }
}

impl Deferred {
    /// Runs a constraint trigger that was put off. `known`: the triggers of tables that were met.
    async fn run_trigger(
        &self,
        pending: &Pending,
        known: &mut HashMap<Oid, Option<Rc<Triggers>>>,
        cx: &Context<'_>,
    ) -> Result<()> {
        let triggers = match known.get(&pending.table) {
            Some(triggers) => triggers.clone(),
            None => {
                let def = cx.env.catalog.table(pending.table);
                let triggers = match def {
                    Some(def) => Triggers::of(def, cx)?,
                    None => None,
                };
                known.insert(pending.table, triggers.clone());
                triggers
            }
        };
        let Some(triggers) = triggers else {
            return Ok(());
        };
        let (trigger, tid) = (pending.constraint, pending.tid);
        let queue = &self.triggers;
        queue
            .run_deferred(&triggers, trigger, pending.due, tid, cx)
            .await
    }
}

/// Checks one row; 23505 or 23503.
async fn check(pending: &Pending, cx: &Context<'_>) -> Result<()> {
    let catalog = cx.env.catalog;
    // A constraint that was dropped meanwhile holds nobody up.
    let Some(constraint) = catalog.constraint(pending.constraint).cloned() else {
        return Ok(());
    };
    let def = catalog
        .table(pending.table)
        .ok_or_else(|| Error::internal("a constraint of a table that is gone"))?;
    match pending.due {
        Due::Unique => {
            let target = Target::of(def, cx)?;
            let index = constraint.index();
            let number = target
                .indexes
                .iter()
                .position(|found| Some(found.def.oid) == index)
                .ok_or_else(|| Error::internal("a key without its index"))?;
            row::check_unique(&target, number, pending.tid, cx).await
        }
        Due::Points => {
            let table = Table::of(def, cx.env.store, &cx.env.eval)?;
            match newest(&table, pending.tid, cx).await? {
                Some(row) => foreign::check(def, &constraint, &row, cx).await,
                None => Ok(()),
            }
        }
        Due::Deleted | Due::Updated => {
            let table = Table::of(def, cx.env.store, &cx.env.eval)?;
            let mut bytes = Vec::new();
            retry(|| table.heap.read_version(pending.tid, &mut bytes)).await?;
            let old = decoded(&table, &bytes).await?;
            let is_update = pending.due == Due::Updated;
            foreign::check_departed(def, &constraint, &old, is_update, cx).await
        }
        Due::Trigger { .. } => Ok(()),
    }
}

/// The row whose version at `tid` this transaction made, as it is now; None if the transaction has
/// deleted it.
pub(super) async fn newest(table: &Table, tid: Tid, cx: &Context<'_>) -> Result<Option<Row>> {
    let mut bytes = Vec::new();
    let mut at = tid;
    loop {
        let Some(header) = retry(|| table.heap.read_version(at, &mut bytes)).await? else {
            return Ok(None);
        };
        if header.xmax_is_void() || !cx.txn.is_mine(header.xmax) {
            return Ok(Some(decoded(table, &bytes).await?));
        }
        let Some(next) = header.successor() else {
            return Ok(None);
        };
        at = next;
    }
}

pub(super) async fn decoded(table: &Table, bytes: &[u8]) -> Result<Row> {
    let mut row = Row::new();
    table.decode(bytes, table.def.columns.len(), &mut row)?;
    table.read_external(&mut row).await?;
    Ok(row)
}
