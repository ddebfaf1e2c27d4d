//! Triggers: which of a table's run for a row or a statement, and the running of their functions.
//!
//! ```text
//!   statement begins ─► BEFORE STATEMENT
//!   each row         ─► BEFORE ROW (may change the row, or leave it out) ─► stored ─► its place is queued
//!   statement ends   ─► foreign keys, uniqueness ─► AFTER ROW, AFTER STATEMENT, in the order in which they were queued
//! ```
//! A statement on a table without triggers finds that out once, when it looks the table up; a row
//! costs it the test of an `Option`. A function runs inside the statement: commands that it runs
//! get numbers of their own, and the statement goes on with the number it had, so that a row which
//! a function has changed under it is told from one that it changed itself.

mod builtin;
pub mod instead;
pub mod queue;
mod statement;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use throng_access::{Heap, RowLockMode, TxContext};
use throng_bind::binder::{self, BodyResult};
use throng_bind::expr::Expr;
use throng_buffer::retry;
use throng_catalog::{Enabled, RoutineDef, TableDef, TriggerDef, fires};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, lock_row_to_change};
use throng_types::error::state;
use throng_types::{Cid, Datum, Error, Oid, Result, Tid, oid};
use throng_values::func::RelColumn;

pub use queue::Queue;
pub use statement::Named;

use super::{Compute, Context, Target};
use crate::run::Row;
use crate::run::context::Env;
use crate::run::routine::CallRequest;
use crate::trigger::{Transition, TriggerCall, TriggerEvent, TriggerWhen};

/// What a call that was queued has besides its rows.
#[derive(Default)]
pub(in crate::write) struct Queued {
    /// The role whose statement queued it; None: it runs at once.
    pub role: Option<Oid>,
    pub transitions: Vec<Transition>,
}

/// The columns that an UPDATE sets.
#[derive(Clone, Copy)]
pub struct Updated<'a> {
    /// Attribute numbers in the table that the statement names.
    pub set: &'a [u16],
    /// Of each of its columns the number in the table in hand, 0 where it has none; None: they are
    /// one table.
    pub columns: Option<&'a [u16]>,
}

impl Updated<'_> {
    fn has(&self, attnum: u16) -> bool {
        self.set.iter().any(|top| match self.columns {
            None => *top == attnum,
            Some(columns) => columns.get(usize::from(*top) - 1) == Some(&attnum),
        })
    }

    /// Whether one of these columns is set, or computed from one that is.
    fn touches(&self, columns: &[u16], table: &TableDef) -> bool {
        columns.iter().any(|attnum| {
            let column = table.columns.get(usize::from(*attnum) - 1);
            let from = column.and_then(|c| c.generated.as_ref());
            self.has(*attnum) || from.is_some_and(|g| g.columns.iter().any(|n| self.has(*n)))
        })
    }
}

/// What a trigger runs.
enum Callee {
    Routine(Arc<RoutineDef>),
    /// `suppress_redundant_updates_trigger`
    Suppress,
}

/// A trigger that may run.
struct Ready {
    def: Arc<TriggerDef>,
    callee: Callee,
    when: Option<Condition>,
}

/// A condition over the old row and the new one behind it.
struct Condition {
    expr: Expr,
    /// Between rows.
    compute: Cell<Option<Compute>>,
}

impl Condition {
    async fn holds(&self, both: &[Datum], env: Env<'_>) -> Result<bool> {
        let kept = self.compute.take();
        let mut compute = kept.unwrap_or_else(|| Compute::new(vec![self.expr.clone()]));
        let value = compute.row(both, env).await;
        self.compute.set(Some(compute));
        Ok(value?.pop() == Some(Datum::Bool(true)))
    }
}

/// A row that comes, changes or goes.
#[derive(Clone, Copy, Default)]
pub struct Rows<'a> {
    pub old: Option<&'a [Datum]>,
    pub new: Option<&'a [Datum]>,
}

/// Whether the session replays what was done elsewhere.
pub(super) fn replays(env: &Env<'_>) -> bool {
    let role = env.eval.host.show_setting("session_replication_role");
    role.as_deref() == Some("replica")
}

/// The triggers of one table or view that run in this session.
pub struct Triggers {
    pub def: Arc<TableDef>,
    schema: String,
    /// As functions see its rows.
    columns: Arc<[RelColumn]>,
    /// Places of these columns in the rows.
    live: Vec<usize>,
    own: Vec<Ready>,
    /// What is there for each row, by when and on what: see [`fires`].
    for_rows: Vec<i16>,
}

impl Triggers {
    /// None for a relation without triggers that run here.
    pub fn of(def: &Arc<TableDef>, cx: &Context<'_>) -> Result<Option<Rc<Triggers>>> {
        match cx.env.catalog.triggers_of(def.oid) {
            [] => Ok(None),
            triggers => Triggers::made(def, triggers, cx),
        }
    }

    #[cold]
    fn made(
        def: &Arc<TableDef>,
        triggers: &[Arc<TriggerDef>],
        cx: &Context<'_>,
    ) -> Result<Option<Rc<Triggers>>> {
        let env = &cx.env;
        let replays = replays(env);
        let runs = |trigger: &&Arc<TriggerDef>| match trigger.enabled {
            Enabled::Origin => !replays,
            Enabled::Replica => replays,
            Enabled::Always => true,
            Enabled::Disabled => false,
        };
        let mut own = Vec::new();
        for trigger in triggers.iter().filter(runs) {
            let callee = match env.catalog.routine(trigger.function) {
                Some(routine) => Callee::Routine(routine.clone()),
                None if trigger.function == binder::SUPPRESS => Callee::Suppress,
                None => return Err(Error::internal("a trigger without its function")),
            };
            let when = binder::trigger_condition(trigger, def, env.catalog, env.eval)?;
            own.push(Ready {
                def: trigger.clone(),
                callee,
                when: when.map(|expr| Condition {
                    expr,
                    compute: Cell::new(None),
                }),
            });
        }
        if own.is_empty() {
            return Ok(None);
        }
        let schema = env.catalog.schema(def.schema);
        let columns = def.live_columns().map(|(_, column)| RelColumn {
            name: column.name.clone(),
            ty: column.ty,
        });
        let for_rows = own.iter().filter(|t| t.def.for_each_row());
        Ok(Some(Rc::new(Triggers {
            schema: schema.map_or_else(String::new, |s| s.name.clone()),
            columns: columns.collect(),
            live: def
                .live_columns()
                .map(|(attnum, _)| usize::from(attnum) - 1)
                .collect(),
            for_rows: for_rows.map(|t| t.def.fires).collect(),
            own,
            def: def.clone(),
        })))
    }

    /// Whether some trigger for each row runs at this time ([`fires::TIMING`]'s bits) on an event.
    pub fn has_for_rows(&self, timing: i16, event: i16) -> bool {
        let mut all = self.for_rows.iter();
        all.any(|bits| bits & fires::TIMING == timing && bits & event != 0)
    }

    /// The triggers of a level and time that an event sets off, by their places.
    async fn set_off(
        &self,
        bits: i16,
        event: i16,
        updated: Option<Updated<'_>>,
        rows: Rows<'_>,
        cx: &Context<'_>,
    ) -> Result<Vec<u16>> {
        let mut found = Vec::new();
        let mut both = None;
        for (place, ready) in self.own.iter().enumerate() {
            if self.runs(ready, bits, event, updated)
                && self.condition_holds(ready, rows, &mut both, cx).await?
            {
                found.push(place as u16);
            }
        }
        Ok(found)
    }

    fn runs(&self, ready: &Ready, bits: i16, event: i16, updated: Option<Updated<'_>>) -> bool {
        const KIND: i16 = fires::ROW | fires::TIMING;
        let def = &ready.def;
        def.fires & KIND == bits
            && def.is_on(event)
            && (def.columns.is_empty()
                || event != fires::UPDATE
                || updated.is_none_or(|u| u.touches(&def.columns, &self.def)))
    }

    async fn condition_holds(
        &self,
        ready: &Ready,
        rows: Rows<'_>,
        both: &mut Option<Row>,
        cx: &Context<'_>,
    ) -> Result<bool> {
        let Some(condition) = &ready.when else {
            return Ok(true);
        };
        let width = self.def.columns.len();
        let both = both.get_or_insert_with(|| {
            let mut both = vec![Datum::Null; 2 * width];
            for (start, row) in [(0, rows.old), (width, rows.new)] {
                for (place, value) in both[start..].iter_mut().zip(row.into_iter().flatten()) {
                    place.clone_from(value);
                }
            }
            both
        });
        condition.holds(both, cx.env).await
    }

    /// A row as functions see it.
    fn seen(&self, row: &[Datum]) -> Row {
        let place = |at: &usize| row.get(*at).cloned().unwrap_or_default();
        self.live.iter().map(place).collect()
    }

    /// Runs a trigger's function; the row that it gives, as it sees rows.
    async fn call(
        &self,
        ready: &Ready,
        event: i16,
        rows: Rows<'_>,
        queued: Queued,
        cx: &Context<'_>,
    ) -> Result<Option<Row>> {
        let def = &ready.def;
        let call = TriggerCall {
            name: def.name.clone(),
            when: match def.fires & fires::TIMING {
                fires::BEFORE => TriggerWhen::Before,
                fires::INSTEAD => TriggerWhen::InsteadOf,
                _ => TriggerWhen::After,
            },
            event: match event {
                fires::INSERT => TriggerEvent::Insert,
                fires::UPDATE => TriggerEvent::Update,
                fires::DELETE => TriggerEvent::Delete,
                _ => TriggerEvent::Truncate,
            },
            for_each_row: def.for_each_row(),
            relation: self.def.oid,
            relation_name: self.def.name.clone(),
            schema_name: self.schema.clone(),
            columns: self.columns.clone(),
            old: rows.old.map(|row| self.seen(row)),
            new: rows.new.map(|row| self.seen(row)),
            args: def.args.clone(),
            transitions: queued.transitions,
            queued_as: queued.role,
        };
        let started = cx.deferred.triggers.starts();
        let given = match &ready.callee {
            Callee::Suppress => builtin::suppress_redundant_update(&call)?,
            Callee::Routine(routine) => run(routine, call, &self.columns, cx).await?,
        };
        cx.deferred.triggers.ran(def, started);
        Ok(given)
    }

    /// Puts what a function gave into the row that is to be stored; whether that changed it.
    fn take_over(&self, given: Row, row: &mut Row) -> bool {
        let mut changed = false;
        for (at, value) in self.live.iter().zip(given) {
            // What is computed when it is read is never in a row.
            let value = match self.def.columns[*at].is_virtual() {
                true => Datum::Null,
                false => value,
            };
            if row[*at] != value {
                row[*at] = value;
                changed = true;
            }
        }
        changed
    }

    /// BEFORE INSERT; false: the row is left out.
    pub async fn before_insert(&self, row: &mut Row, cx: &Context<'_>) -> Result<bool> {
        const BITS: i16 = fires::ROW | fires::BEFORE;
        for ready in &self.own {
            let rows = Rows {
                old: None,
                new: Some(row),
            };
            if !self.runs(ready, BITS, fires::INSERT, None)
                || !self.condition_holds(ready, rows, &mut None, cx).await?
            {
                continue;
            }
            let given = self
                .call(ready, fires::INSERT, rows, Queued::default(), cx)
                .await?;
            let Some(given) = given else {
                return Ok(false);
            };
            if self.take_over(given, row) && ready.def.parent.is_some() {
                self.must_stay(ready, row, cx).await?;
            }
        }
        Ok(true)
    }

    /// 0A000 for a row that a partition's trigger has made another one's.
    async fn must_stay(&self, ready: &Ready, row: &[Datum], cx: &Context<'_>) -> Result<()> {
        let (catalog, eval) = (cx.env.catalog, cx.env.eval);
        let mut fit = super::partition::Fit::of(&self.def, self.def.oid, catalog, eval)?;
        if fit.takes(row, cx.env).await? {
            return Ok(());
        }
        let message =
            "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported";
        Err(
            Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(format!(
                "Before executing trigger \"{}\", the row was to be in partition \"{}.{}\".",
                ready.def.name, self.schema, self.def.name
            )),
        )
    }

    /// BEFORE UPDATE, of a row that is locked; false: it stays as it is.
    pub async fn before_update(
        &self,
        old: &[Datum],
        new: &mut Row,
        updated: Updated<'_>,
        cx: &Context<'_>,
    ) -> Result<bool> {
        const BITS: i16 = fires::ROW | fires::BEFORE;
        for ready in &self.own {
            let rows = Rows {
                old: Some(old),
                new: Some(new),
            };
            if !self.runs(ready, BITS, fires::UPDATE, Some(updated))
                || !self.condition_holds(ready, rows, &mut None, cx).await?
            {
                continue;
            }
            let given = self
                .call(ready, fires::UPDATE, rows, Queued::default(), cx)
                .await?;
            let Some(given) = given else {
                return Ok(false);
            };
            self.take_over(given, new);
        }
        Ok(true)
    }

    /// BEFORE DELETE, of a row that is locked; false: it stays.
    pub async fn before_delete(&self, old: &[Datum], cx: &Context<'_>) -> Result<bool> {
        const BITS: i16 = fires::ROW | fires::BEFORE;
        let rows = Rows {
            old: Some(old),
            new: None,
        };
        for place in self.set_off(BITS, fires::DELETE, None, rows, cx).await? {
            let ready = &self.own[usize::from(place)];
            let given = self
                .call(ready, fires::DELETE, rows, Queued::default(), cx)
                .await?;
            if given.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// INSTEAD OF; the new row as the functions leave it, None where one of them gives none.
    pub async fn instead(
        &self,
        event: i16,
        old: Option<&[Datum]>,
        mut new: Option<Row>,
        cx: &Context<'_>,
    ) -> Result<Option<Option<Row>>> {
        const BITS: i16 = fires::ROW | fires::INSTEAD;
        for ready in &self.own {
            if !self.runs(ready, BITS, event, None) {
                continue;
            }
            let rows = Rows {
                old,
                new: new.as_deref(),
            };
            let Some(given) = self.call(ready, event, rows, Queued::default(), cx).await? else {
                return Ok(None);
            };
            if let Some(new) = &mut new {
                self.take_over(given, new);
            }
        }
        Ok(Some(new))
    }

    /// A row was stored or has gone: AFTER triggers for it are queued. `places`: of its versions,
    /// old and new.
    pub async fn after_row(
        self: &Rc<Self>,
        event: i16,
        rows: Rows<'_>,
        (old, new): (Tid, Tid),
        updated: Option<Updated<'_>>,
        cx: &Context<'_>,
    ) -> Result<()> {
        if !self.has_for_rows(0, event) {
            return Ok(());
        }
        let which = self.set_off(fires::ROW, event, updated, rows, cx).await?;
        if which.is_empty() {
            return Ok(());
        }
        let queue = &cx.deferred.triggers;
        queue.add(self, event, which, (old, new), cx)
    }
}

/// Runs a user's function for a trigger.
async fn run(
    routine: &Arc<RoutineDef>,
    call: TriggerCall,
    columns: &Arc<[RelColumn]>,
    cx: &Context<'_>,
) -> Result<Option<Row>> {
    let Some(routines) = cx.env.routines else {
        let what = format!("calling the function {} here", routine.name);
        return Err(Error::unsupported(what));
    };
    let wants_row = call.for_each_row && call.when != TriggerWhen::After;
    let request = CallRequest {
        def: routine.clone(),
        args: Vec::new(),
        types: Vec::new(),
        result: BodyResult::of_columns(oid::RECORD, columns),
        trigger: Some(Arc::new(call)),
        place: None,
    };
    let result = routines.call(&request, cx.env.snapshot).await?;
    let row = result.rows.into_iter().next();
    if let Some(row) = row.as_ref().filter(|_| wants_row)
        && row.len() != columns.len()
    {
        let message = "returned row structure does not match the structure of the triggering table";
        let detail = format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            row.len(),
            columns.len()
        );
        return Err(Error::new(state::DATATYPE_MISMATCH, message).detail(detail));
    }
    Ok(row)
}

impl Target {
    /// A row was inserted: foreign keys look at it apart from this.
    #[inline]
    pub async fn after_insert(&self, row: &[Datum], tid: Tid, cx: &Context<'_>) -> Result<()> {
        match &self.triggers {
            None => Ok(()),
            Some(triggers) => {
                let rows = Rows {
                    old: None,
                    new: Some(row),
                };
                let places = (Tid::NONE, tid);
                triggers
                    .after_row(fires::INSERT, rows, places, None, cx)
                    .await
            }
        }
    }

    #[inline]
    pub async fn after_update(
        &self,
        (old, old_tid): (&[Datum], Tid),
        (new, new_tid): (&[Datum], Tid),
        updated: Updated<'_>,
        cx: &Context<'_>,
    ) -> Result<()> {
        match &self.triggers {
            None => Ok(()),
            Some(triggers) => {
                let rows = Rows {
                    old: Some(old),
                    new: Some(new),
                };
                let places = (old_tid, new_tid);
                triggers
                    .after_row(fires::UPDATE, rows, places, Some(updated), cx)
                    .await
            }
        }
    }

    #[inline]
    pub async fn after_delete(&self, row: &[Datum], tid: Tid, cx: &Context<'_>) -> Result<()> {
        match &self.triggers {
            None => Ok(()),
            Some(triggers) => {
                let rows = Rows {
                    old: Some(row),
                    new: None,
                };
                let places = (tid, Tid::NONE);
                triggers
                    .after_row(fires::DELETE, rows, places, None, cx)
                    .await
            }
        }
    }

    /// Whether the table has BEFORE triggers for each row on an event: rows are locked before these
    /// see them.
    pub fn locks_first(&self, event: i16) -> Option<&Rc<Triggers>> {
        let triggers = self.triggers.as_ref()?;
        triggers
            .has_for_rows(fires::BEFORE, event)
            .then_some(triggers)
    }
}

/// Locks a row that BEFORE triggers are about to see. `key`: a column may change that foreign keys
/// point at.
pub async fn lock_for(
    target: &Target,
    at: RowRef,
    key: bool,
    turn: &mut RowTurn<'_>,
    cx: &Context<'_>,
) -> Result<RowOutcome<()>> {
    let mode = match key {
        true => RowLockMode::Update,
        false => RowLockMode::NoKeyUpdate,
    };
    let heap = &target.table.heap;
    lock_row_to_change(cx.txn, heap, at, mode, turn).await
}

/// 27000 for a row that a function has changed which the statement itself has called; one that the
/// statement has changed already is left as it is.
pub async fn changed_by_function(
    target: &Target,
    at: RowRef,
    is_delete: bool,
    cx: &Context<'_>,
) -> Result<()> {
    let heap = &target.table.heap;
    let Some(command) = changed_by_own_command(heap, at, cx).await? else {
        return Ok(());
    };
    if command <= cx.txn.cid() {
        return Ok(());
    }
    let message = match is_delete {
        true => {
            "tuple to be deleted was already modified by an operation triggered by the current command"
        }
        false => {
            "tuple to be updated was already modified by an operation triggered by the current command"
        }
    };
    Err(Error::new(state::TRIGGERED_DATA_CHANGE_VIOLATION, message).hint(
        "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.",
    ))
}

/// The command of this transaction that has changed the version at `at`; where others had done so
/// first, the last one that has changed what they made of it.
async fn changed_by_own_command(heap: &Heap, at: RowRef, cx: &Context<'_>) -> Result<Option<Cid>> {
    let (mut tid, mut command) = (at.tid, None);
    let mut bytes = Vec::new();
    while let Some(header) = retry(|| heap.read_version(tid, &mut bytes)).await? {
        if cx.txn.is_mine(header.xmax) {
            command = Some(header.cmax);
            if tid == at.tid {
                break;
            }
        }
        if header.next == Tid::NONE || header.next == tid {
            break;
        }
        tid = header.next;
    }
    Ok(command)
}

/// A trigger of a table by its oid.
pub(super) fn place_of(triggers: &Triggers, oid: Oid) -> Option<u16> {
    let place = triggers.own.iter().position(|ready| ready.def.oid == oid);
    place.map(|at| at as u16)
}
