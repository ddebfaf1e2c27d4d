//! INSERT, UPDATE, DELETE and MERGE: rows from the plan's input become versions in the heap and
//! entries in the indexes.
//!
//! ```text
//! row from input ─► new row ─► NOT NULL, CHECK ─► heap ─► indexes (23505) ─► foreign keys ─► RETURNING
//!                      ▲                            │
//!                      └── the input, run again ◄── row changed meanwhile (READ COMMITTED)
//! ```
//! A row that others hold is waited for without holding the core; what was changed meanwhile is
//! checked again against the statement's conditions, as PostgreSQL does.

mod arrival;
pub mod cascade;
mod conflict;
pub mod deferred;
pub mod exclusion;
pub mod foreign;
pub mod index_expression;
mod merge;
mod modify;
pub mod partition;
mod period;
mod policy;
mod referential_action;
pub mod row;
pub mod trigger;

use std::rc::Rc;
use std::sync::Arc;

use throng_access::{RowLockMode, TxContext};
use throng_bind::expr::Expr;
use throng_bind::query::{Arrival, CheckExpr, CheckOf};
use throng_bind::route::Leaf;
use throng_buffer::{Patience, retry};
use throng_catalog::{ConstraintDef, TableDef};
use throng_plan::{Node, Plan};
use throng_txn::Txn;
use throng_txn::rows::{RowOutcome, RowRef, RowTurn};
use throng_types::{Datum, Error, Result, Tid};

use crate::drive::{Returning, lock, not_of_an_expression, wait};
use crate::large;
use crate::run::build::Execution;
use crate::run::context::{Cx, Env};
use crate::run::eval::eval;
use crate::run::{Row, Step, Suspension};
use crate::spill::RowStore;
use crate::table::{COMPUTED, Index, Table};
use deferred::Deferred;
use foreign::ForeignKeys;
use index_expression::Terms;
use trigger::Triggers;

/// What a write works in.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub env: Env<'a>,
    pub txn: &'a Txn,
    /// `work_mem` in bytes.
    pub work_mem: usize,
    pub deferred: &'a Deferred,
}

/// A table with its indexes, as a write needs it.
pub struct Target {
    pub table: Rc<Table>,
    pub indexes: Vec<Rc<Index>>,
    /// Of each index the constraint, if that need not hold row by row.
    pub deferrable: Vec<Option<Arc<ConstraintDef>>>,
    /// For each of them, where it is not on plain columns of all rows.
    pub terms: Vec<Option<Terms>>,
    /// Whether the column, by place, is in some index.
    indexed: Vec<bool>,
    /// Whether it is in a unique one: a foreign key may point at it.
    key: Vec<bool>,
    /// None: it has none that run.
    pub triggers: Option<Rc<Triggers>>,
}

impl Target {
    pub fn of(def: &std::sync::Arc<TableDef>, cx: &Context<'_>) -> Result<Target> {
        let env = &cx.env;
        let table = Table::of(def, env.store, &env.eval)?;
        let indexes: Vec<Rc<Index>> = env
            .catalog
            .indexes_of(def.oid)
            .iter()
            .map(|index| Index::of(index, def, env.store))
            .collect();
        let deferrable = indexes
            .iter()
            .map(|index| {
                let constraint = env.catalog.constraint(index.def.constraint?)?;
                let deferrable = constraint.deferral.is_deferrable();
                deferrable.then(|| constraint.clone())
            })
            .collect();
        let mut indexed = vec![false; def.columns.len()];
        let mut key = vec![false; def.columns.len()];
        for index in &indexes {
            for &at in index.columns.iter().filter(|at| **at < COMPUTED) {
                indexed[at] = true;
                let is_key = index.def.unique || !index.def.terms.exclusion.is_empty();
                key[at] |= is_key && index.def.is_plain();
            }
            for used in &index.def.terms.uses {
                indexed[usize::from(*used) - 1] = true;
            }
        }
        let terms = indexes.iter().map(|index| Terms::of(&index.def, def, *env));
        let terms = terms.collect::<Result<_>>()?;
        Ok(Target {
            table,
            indexes,
            deferrable,
            terms,
            indexed,
            key,
            triggers: Triggers::of(def, cx)?,
        })
    }

    pub fn def(&self) -> &TableDef {
        &self.table.def
    }

    /// Whether a foreign key may point at the column.
    pub fn is_key(&self, attnum: u16) -> bool {
        self.key[usize::from(attnum) - 1]
    }

    /// Whether a row's change is one of a column that a foreign key may point at.
    pub fn changes_key(&self, old: &[Datum], new: &[Datum]) -> bool {
        changed(&self.key, old, new)
    }

    /// The values of an index's expressions over a row, the index by its number; none where it does
    /// not have the row.
    pub async fn computed(
        &self,
        number: usize,
        row: &[Datum],
        cx: &Context<'_>,
    ) -> Result<Option<Row>> {
        match &self.terms[number] {
            None => Ok(Some(Row::new())),
            Some(terms) => terms.of_row(row, cx.env).await,
        }
    }
}

/// Runs a write to its end; the number of rows changed.
pub async fn run(
    execution: &mut Execution,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<u64> {
    let mut keys = Vec::new();
    run_with(execution, cx, false, &mut keys).await?;
    let count = run_one(execution, cx, returning, &mut keys).await?;
    run_with(execution, cx, true, &mut keys).await?;
    finish(keys, cx).await?;
    Ok(count)
}

/// Runs the writes of a query's WITH to their ends, if it has any; its rows come next.
pub async fn run_first(execution: &mut Execution, cx: &Context<'_>) -> Result<()> {
    if execution.is_ready() {
        return Ok(());
    }
    let mut keys = Vec::new();
    run_with(execution, cx, false, &mut keys).await?;
    finish(keys, cx).await
}

/// Runs the writes of a statement's WITH to their ends, those before the statement or those `late`.
/// All of them see what the statement sees, and none what another does; what they return is kept
/// for the statement. Foreign keys wait for the statement's end.
pub async fn run_with(
    execution: &mut Execution,
    cx: &Context<'_>,
    late: bool,
    waiting: &mut Vec<ForeignKeys>,
) -> Result<()> {
    if !late {
        cx.deferred.triggers.begin();
    }
    while let Some(write) = execution.begin_write(late) {
        // In a box: every connection has room for what a statement is while it waits.
        let mut kept = Box::new(RowStore::new(cx.work_mem, cx.env.store));
        let mut returning = match write.read {
            true => Returning::Kept(&mut kept),
            false => Returning::Unread,
        };
        run_one(execution, cx, &mut returning, waiting).await?;
        execution.end_write(kept.into_rows());
    }
    Ok(())
}

/// What foreign keys, keys that need not be unique row by row, and AFTER triggers ask for at a
/// statement's end.
pub async fn finish(keys: Vec<ForeignKeys>, cx: &Context<'_>) -> Result<()> {
    cascade::finish(keys, cx).await?;
    cx.deferred.end_statement(cx).await?;
    cx.deferred.triggers.end(cx).await
}

async fn run_one(
    execution: &mut Execution,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
    waiting: &mut Vec<ForeignKeys>,
) -> Result<u64> {
    let plan = execution.plan().clone();
    let (count, keys) = match &execution.current(&plan).node {
        Node::Insert(node) if !node.table.has_rows() => {
            let count = trigger::instead::insert(execution, node, cx, returning).await?;
            (count, Vec::new())
        }
        Node::Update(node) if !node.table.has_rows() => {
            let count = trigger::instead::update(execution, node, cx, returning).await?;
            (count, Vec::new())
        }
        Node::Delete(node) if !node.table.has_rows() => {
            let count = trigger::instead::delete(execution, node, cx, returning).await?;
            (count, Vec::new())
        }
        Node::Insert(node) => arrival::insert(execution, node, cx, returning).await?,
        Node::Update(node) => modify::update(execution, node, cx, returning).await?,
        Node::Delete(node) => modify::delete(execution, node, cx, returning).await?,
        Node::Merge(node) => merge::run(execution, node, cx, returning).await?,
        _ => return Err(Error::internal("a statement that writes nothing")),
    };
    waiting.extend(keys);
    Ok(count)
}

/// Evaluates expressions of a write, waiting for what they need: locks, too, where a subquery takes
/// them.
async fn evaluate<T>(
    execution: &mut Execution,
    cx: &Context<'_>,
    mut f: impl FnMut(&Plan, &mut Cx) -> Step<T>,
) -> Result<T> {
    let env = cx.env;
    let mut patience = Patience::default();
    loop {
        match execution.evaluate(env, &mut f) {
            Ok(value) => {
                env.effects.done();
                return Ok(value);
            }
            Err(Suspension::Lock(request)) => {
                env.effects.again();
                let locked = lock(request, env, cx.txn).await?;
                execution.answer(locked);
            }
            Err(stop) => wait(stop, env, &mut patience).await?,
        }
    }
}

async fn give(
    execution: &mut Execution,
    cx: &Context<'_>,
    row: &[Datum],
    returning: &mut Returning<'_>,
) -> Result<()> {
    if !returning.is_wanted() {
        return Ok(());
    }
    let mut out = Row::new();
    evaluate(execution, cx, |plan, cx| {
        let exprs: &[Expr] = match &plan.node {
            Node::Insert(node) => &node.returning,
            Node::Update(node) => &node.returning,
            Node::Delete(node) => &node.returning,
            Node::Merge(node) => &node.returning,
            _ => &[],
        };
        crate::run::build::evaluate_all(exprs, row, cx, &mut out)
    })
    .await?;
    returning.row(&out, cx.env).await
}

/// What the plan that is run knows of a row's table.
#[derive(Clone, Copy)]
enum RowOf {
    /// The table that the statement names.
    Statement,
    /// A leaf that rows are routed to.
    Leaf(usize),
    /// A member of the family that is written to.
    Member(usize),
}

impl RowOf {
    fn inserted(self) -> (RowOf, Arrival) {
        (self, Arrival::Inserted)
    }

    fn updated(self) -> (RowOf, Arrival) {
        (self, Arrival::Updated)
    }

    fn leaf(self, plan: &Plan) -> Option<&Leaf> {
        match self {
            RowOf::Statement => None,
            RowOf::Leaf(at) => partition::routing_of(plan)?.known_leaf(at),
            RowOf::Member(at) => {
                let family = match &plan.node {
                    Node::Update(node) => node.family.as_deref(),
                    Node::Merge(node) => node.family.as_deref(),
                    _ => None,
                };
                Some(&family?.members.get(at)?.leaf)
            }
        }
    }

    /// The columns that are computed from a row's others.
    fn generated(self, plan: &Plan) -> &[(u16, Expr)] {
        match (self, &plan.node) {
            (RowOf::Statement, Node::Insert(node)) => &node.generated,
            (RowOf::Statement, Node::Update(node)) => &node.generated,
            (RowOf::Statement, Node::Merge(node)) => &node.generated,
            _ => self.leaf(plan).map_or(&[], |leaf| &leaf.generated),
        }
    }

    fn checks(self, plan: &Plan) -> &[CheckExpr] {
        match (self, &plan.node) {
            (RowOf::Statement, Node::Insert(node)) => &node.checks,
            (RowOf::Statement, Node::Update(node)) => &node.checks,
            (RowOf::Statement, Node::Merge(node)) => &node.checks,
            _ => self.leaf(plan).map_or(&[], |leaf| &leaf.checks),
        }
    }
}

/// Completes a row with what is computed from it; 42501, 23502 and 23514 where it is not what a row
/// must be before it is stored.
async fn complete(
    execution: &mut Execution,
    cx: &Context<'_>,
    def: &TableDef,
    (of, arrival): (RowOf, Arrival),
    row: &mut [Datum],
) -> Result<()> {
    let computed = evaluate(execution, cx, |plan, cx| {
        let generated = of.generated(plan).iter();
        let value = |(attnum, expr): &(u16, Expr)| Ok((*attnum, eval(expr, row, cx)?));
        generated.map(value).collect::<Step<Vec<_>>>()
    });
    for (attnum, value) in computed.await? {
        row[usize::from(attnum) - 1] = value;
    }
    policy::check(execution, cx, (of, arrival), row).await?;
    row::check_not_null(def, row, cx.env)?;
    check(execution, cx, def, of, row, false).await
}

/// 44000: what views ask of a row that was stored through them, after all that its table asks.
async fn check_views(
    execution: &mut Execution,
    cx: &Context<'_>,
    def: &TableDef,
    row: &[Datum],
) -> Result<()> {
    check(execution, cx, def, RowOf::Statement, row, true).await
}

async fn check(
    execution: &mut Execution,
    cx: &Context<'_>,
    def: &TableDef,
    of: RowOf,
    row: &[Datum],
    of_views: bool,
) -> Result<()> {
    let failed = evaluate(execution, cx, |plan, cx| {
        let checks = of.checks(plan);
        // A table's own come before those of views.
        let first_view = checks.iter().position(|check| check.of == CheckOf::View);
        let (own, views) = checks.split_at(first_view.unwrap_or(checks.len()));
        let checks = if of_views { views } else { own };
        let asked = |c: &&CheckExpr| !matches!(c.of, CheckOf::Policy(_));
        for check in checks.iter().filter(asked) {
            // A check that is NULL is satisfied.
            if eval(&check.expr, row, cx)? == Datum::Bool(false) {
                return Ok(Some((check.of, check.name.clone())));
            }
        }
        Ok(None)
    });
    match failed.await? {
        None => Ok(()),
        Some((of, name)) => Err(row::violation(def, of, &name, row, cx.env)),
    }
}

/// Appends what a new row's system columns are, in the order of [`throng_plan::NEW_SYSTEM`].
/// `locked`: this transaction had locked the row before it replaced it, which its `xmax` tells.
fn push_system(row: &mut Row, tid: Tid, locked: bool, cx: &Context<'_>) {
    let xid = cx.txn.xid().0 as u32;
    let cid = cx.txn.cid().0;
    row.push(Datum::Tid(tid));
    row.push(Datum::Oid(xid));
    row.push(Datum::Oid(if locked { xid } else { 0 }));
    row.push(Datum::Oid(cid));
    row.push(Datum::Oid(cid));
}

/// Stores a new row and its index entries.
pub async fn insert_row(target: &Target, row: &[Datum], cx: &Context<'_>) -> Result<Tid> {
    let tid = store_row(target, row, cx).await?;
    row::enter(target, row, tid, cx).await?;
    Ok(tid)
}

/// Stores a new row; its index entries are the caller's to make.
async fn store_row(target: &Target, row: &[Datum], cx: &Context<'_>) -> Result<Tid> {
    let heap = &target.table.heap;
    cx.env.store.pool.wal().check_space()?;
    cx.txn.xid();
    let bytes = large::encode(heap, cx.txn, &target.table.layout, row).await?;
    let tid = retry(|| heap.insert(cx.txn, &bytes)).await?;
    cx.txn.wrote_new_row(heap.file())?;
    Ok(tid)
}

/// Whether one of these columns has another value.
fn changed(columns: &[bool], old: &[Datum], new: &[Datum]) -> bool {
    let mut pairs = columns.iter().zip(old.iter().zip(new));
    pairs.any(|(is_in, (old, new))| *is_in && old != new)
}

/// Replaces a row by `new`; the tid of the new version.
pub async fn store_update(
    target: &Target,
    at: RowRef,
    old: &[Datum],
    new: &[Datum],
    turn: &mut RowTurn<'_>,
    cx: &Context<'_>,
) -> Result<RowOutcome<Tid>> {
    let mode = if target.changes_key(old, new) {
        RowLockMode::Update
    } else {
        RowLockMode::NoKeyUpdate
    };
    let hot = !changed(&target.indexed, old, new);
    let rows = target.table.rows();
    cx.env.store.pool.wal().check_space()?;
    let bytes = large::encode(rows.heap, cx.txn, rows.layout, new).await?;
    let stored = rows.update(cx.txn, at, &bytes, (mode, hot), turn).await?;
    let version = match stored.done() {
        Ok(version) => version,
        Err(instead) => return Ok(instead),
    };
    if !version.hot {
        row::enter(target, new, version.tid, cx).await?;
    }
    Ok(RowOutcome::Done(version.tid))
}

/// The value of an expression without input row.
pub async fn constant(expr: Expr, env: Env<'_>) -> Result<Datum> {
    let mut run = Execution::of_expression(expr);
    let mut row = Row::new();
    wait_for(env, || run.next(env, &mut row)).await?;
    row.pop()
        .ok_or_else(|| Error::internal("an expression without a value"))
}

/// As [`constant`], waiting on this thread: for the rare default that a definition evaluates.
pub fn constant_blocking(expr: Expr, env: Env<'_>) -> Result<Datum> {
    let mut run = Execution::of_expression(expr);
    let mut row = Row::new();
    loop {
        match run.next(env, &mut row) {
            Ok(_) => break,
            Err(Suspension::Wait(wait)) => wait.block()?,
            Err(Suspension::Yield) => {}
            Err(Suspension::Lock(_) | Suspension::Part(_)) => return Err(not_of_an_expression()),
            Err(Suspension::Long(call)) => {
                call.answer_here(env)?;
                env.effects.again();
            }
            Err(Suspension::Call(request)) => {
                let what = format!("calling the function {} here", request.def.name);
                return Err(Error::unsupported(what));
            }
            Err(Suspension::Error(e)) => return Err(e),
        }
    }
    row.pop()
        .ok_or_else(|| Error::internal("an expression without a value"))
}

/// Expressions over rows that come from no plan.
pub struct Compute {
    run: Execution,
}

impl Compute {
    /// `exprs` speak of the row by [`Expr::Slot`].
    pub fn new(exprs: Vec<Expr>) -> Compute {
        Compute {
            run: Execution::of_expressions(exprs),
        }
    }

    /// Their values over `row`.
    pub async fn row(&mut self, row: &[Datum], env: Env<'_>) -> Result<Row> {
        let mut out = Row::new();
        let mut compute = |plan: &Plan, cx: &mut Cx| {
            let Node::Values { rows } = &plan.node else {
                return Ok(());
            };
            crate::run::build::evaluate_all(&rows[0], row, cx, &mut out)
        };
        wait_for(env, || self.run.evaluate(env, &mut compute)).await?;
        Ok(out)
    }
}

/// Calls until there is an answer, waiting for what each call asks for.
async fn wait_for<T>(env: Env<'_>, mut f: impl FnMut() -> Result<T, Suspension>) -> Result<T> {
    let mut patience = Patience::default();
    loop {
        match f() {
            Ok(value) => {
                env.effects.done();
                return Ok(value);
            }
            Err(stop) => wait(stop, env, &mut patience).await?,
        }
    }
}
