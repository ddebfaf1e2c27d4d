//! From a plan to its operators.

use std::sync::Arc;
use std::time::Instant;

use throng_bind::expr::{Expr, RelId};
use throng_plan::{Cost, Node, Plan, PlannedStatement, WithWrite};
use throng_types::{Datum, Error, Result, Tid, stack};

use super::aggregate::AggregateOp;
use super::append::AppendOp;
use super::context::{Cx, Env, Memory, NodeCounters, Recheck};
use super::distinct::Distinct;
use super::function::{FunctionScanOp, ProjectSetOp};
use super::join::{HashJoinOp, NestedLoopJoin};
use super::limit::{Filter, Limit, Materialize, Project, Values};
use super::lock::LockRowsOp;
use super::part::PartOp;
use super::recursive::{RecursiveUnionOp, WorkTableScanOp};
use super::routine::{RoutineScanOp, RowsFromOp};
use super::scan::{CombinedScanOp, SeqScanOp, VirtualScanOp, index_scan};
use super::setop::SetOperation;
use super::sort::Sort;
use super::subplan::{CteScanOp, SubPlan};
use super::window::WindowOp;
use super::{BoxOperator, Operator, Row, Step, empty, spare};
use crate::analytics::JobCounts;
use crate::analytics::Pool;
use crate::spill::RowList;
use crate::table::Table;

/// A statement under way: its plan, its operators and what they keep.
///
/// The operators refer to the plan; the plan is shared and never changes.
pub struct Execution {
    // Dropped in this order: the operators before the plan they refer to.
    root: Option<BoxOperator>,
    memory: Memory,
    plan: Arc<PlannedStatement>,
    /// The write of WITH that is being run, by its subplan; none: the statement itself.
    stage: Option<u32>,
    /// What the writes of WITH that have been run returned, by their subplans.
    written: Vec<(u32, RowList)>,
    /// The subplans have their operators.
    prepared: bool,
    /// Who runs the parts that are the analytics pool's.
    pool: Option<Arc<Pool>>,
    /// The rows that it is run again for; see [`recheck`](Self::recheck).
    recheck: Option<Recheck>,
    /// Room for the rows it gives, while nobody has it.
    room: Row,
}

impl Execution {
    /// `work_mem` in bytes.
    pub fn new(plan: Arc<PlannedStatement>, work_mem: usize) -> Execution {
        let mut memory = Memory::new(plan.outer_params, plan.subplans.len(), work_mem);
        memory.once = vec![None; plan.once as usize];
        Execution {
            root: None,
            memory,
            plan,
            stage: None,
            written: Vec::new(),
            prepared: false,
            pool: None,
            recheck: None,
            room: Row::new(),
        }
    }

    /// As [`Execution::new`], with the operators of an earlier run if one was
    /// [retired](Execution::retire) on this core.
    pub fn again(plan: Arc<PlannedStatement>, work_mem: usize) -> Box<Execution> {
        match spare::take(&plan) {
            Some(mut spare) => {
                spare.memory.limit_to(work_mem);
                spare
            }
            None => Box::new(Execution::new(plan, work_mem)),
        }
    }

    /// Room for the rows it gives, for who will [give it back](Self::give_back).
    pub fn room(&mut self) -> Row {
        std::mem::take(&mut self.room)
    }

    pub fn give_back(&mut self, mut room: Row) {
        empty(&mut room);
        self.room = room;
    }

    /// Nobody will ask it for more: its operators may serve the plan's next run.
    pub fn retire(mut self: Box<Self>) {
        // One whose parts ran in other ways, or with something of its own, is no help.
        let plain = self.plan.subplans.is_empty()
            && self.stage.is_none()
            && self.pool.is_none()
            && self.recheck.is_none()
            && self.memory.counters.is_none();
        if plain && self.root.as_mut().is_some_and(|root| root.reset()) {
            self.memory.reset();
            spare::keep(self);
        }
    }

    /// A run that gives one row, the value of an expression without input row.
    pub fn of_expression(expr: Expr) -> Execution {
        Execution::of_expressions(vec![expr])
    }

    pub fn of_expressions(exprs: Vec<Expr>) -> Execution {
        let types = exprs.iter().map(Expr::ty).collect();
        let root = Plan {
            id: 0,
            node: Node::Values { rows: vec![exprs] },
            types,
            cost: Cost::default(),
        };
        Execution::new(Arc::new(PlannedStatement::of_part(root)), usize::MAX)
    }

    pub fn plan(&self) -> &Arc<PlannedStatement> {
        &self.plan
    }

    /// The plan for as long as the operators live.
    fn static_plan(&self) -> &'static PlannedStatement {
        // SAFETY: the statement is behind an `Arc` that `self` holds, so it stays where it is and
        // is not changed (nobody has it mutably: `Arc` gives shared access only). The reference
        // goes into operators kept in `self.root` and `self.memory`, which are private and dropped
        // before `self.plan`, and into nothing else.
        unsafe { &*Arc::as_ptr(&self.plan) }
    }

    /// Counts what each operator does, from the start.
    pub fn count(&mut self) {
        self.root = None;
        let plans = std::iter::once(&self.plan.root).chain(&self.plan.subplans);
        let nodes = plans.map(Plan::highest_id).max().unwrap_or(0) as usize + 1;
        self.memory.counters = Some(vec![NodeCounters::default(); nodes]);
    }

    pub fn take_counters(&mut self) -> Option<Vec<NodeCounters>> {
        self.memory.counters.take()
    }

    /// The part of this execution's `plan` that is being run: that of a write of WITH, or the
    /// statement's.
    pub fn current<'p>(&self, plan: &'p PlannedStatement) -> &'p Plan {
        match self.stage {
            Some(slot) => &plan.subplans[slot as usize],
            None => &plan.root,
        }
    }

    /// What writes read their rows from: the input of the INSERT, UPDATE, DELETE or MERGE, else the
    /// whole plan.
    fn row_source(&self) -> &'static Plan {
        let plan = self.current(self.static_plan());
        match &plan.node {
            Node::Insert(node) => &node.input,
            Node::Update(node) => &node.input,
            Node::Delete(node) => &node.input,
            Node::Merge(node) => &node.input,
            _ => plan,
        }
    }

    /// From the start, over what the snapshot shows by now: of a statement that [changes one
    /// row](PlannedStatement::changes_one_row) and has changed none.
    pub fn restart(&mut self) {
        self.root = None;
    }

    /// Whether no WITH query writes.
    pub fn writes_once(&self) -> bool {
        self.plan.writes.is_empty() && self.plan.late_writes.is_empty()
    }

    /// Whether the writes of WITH that come before the statement have been run, if there are any.
    pub fn is_ready(&self) -> bool {
        self.written.len() >= self.plan.writes.len()
    }

    /// The next write of WITH that has not been run, of those before the statement or of those
    /// `late`; it is what is run from here on.
    pub fn begin_write(&mut self, late: bool) -> Option<WithWrite> {
        let done = self.written.len();
        let next = match late {
            false => self.plan.writes.get(done),
            true => self.plan.late_writes.get(done - self.plan.writes.len()),
        };
        let next = *next?;
        self.root = None;
        self.stage = Some(next.subplan);
        Some(next)
    }

    /// What the write that was begun returned, for those who read it. The statement itself is run
    /// next.
    pub fn end_write(&mut self, rows: RowList) {
        let Some(slot) = self.stage.take() else {
            return;
        };
        self.root = None;
        self.memory.subplans[slot as usize] = Some(SubPlan::of_rows(rows.clone()));
        self.written.push((slot, rows));
    }

    /// The next row of the plan (of a write: of its input). Goes on where it stopped.
    pub fn next(&mut self, env: Env<'_>, row: &mut Row) -> Step<bool> {
        let source = self.row_source();
        let plan = self.static_plan();
        let current = self.current(plan);
        if self.stage.is_none() && !self.is_ready() {
            return Err(Error::unsupported("data-modifying WITH here").into());
        }
        let mut cx = Cx::new(env, &mut self.memory);
        cx.recheck.clone_from(&self.recheck);
        if !self.prepared {
            let is_write = |slot: usize| {
                let mut writes = plan.writes.iter().chain(&plan.late_writes);
                writes.any(|write| write.subplan as usize == slot)
            };
            for (slot, subplan) in plan.subplans.iter().enumerate() {
                let known = self.written.iter().find(|(s, _)| *s as usize == slot);
                cx.subplans[slot] = Some(match known {
                    Some((_, rows)) => SubPlan::of_rows(rows.clone()),
                    // It is run before anybody reads it.
                    None if is_write(slot) => SubPlan::of_rows(RowList::default()),
                    None => SubPlan::new(operator(subplan, &mut cx)?),
                });
            }
            self.prepared = true;
        }
        if self.root.is_none() {
            super::constant::check(&plan.suspects, &mut cx)?;
            self.root = Some(operator(source, &mut cx)?);
        }
        /// A row written, its indexes and keys included.
        const WRITTEN: u32 = 15;
        if !std::ptr::eq(source, current) {
            cx.worked(WRITTEN);
        }
        match &mut self.root {
            Some(root) => {
                cx.tick()?;
                root.next(&mut cx, row)
            }
            None => Ok(false),
        }
    }

    /// The root of a version that was given, if it is the one that a scan of `rel` has found last.
    pub fn root_found(&self, rel: RelId, tid: Tid) -> Option<Tid> {
        let found = self.memory.found.filter(|f| (f.rel, f.tid) == (rel, tid))?;
        Some(found.root)
    }

    /// Leaves the answer to a [`super::Suspension::Lock`].
    pub fn answer(&mut self, locked: super::lock::Locked) {
        self.memory.locked = Some(locked);
    }

    /// A [`super::Suspension::Call`] is answered.
    pub fn called(&mut self) {
        self.memory.called();
    }

    /// Lets the analytics pool run the parts that are its; `next` asks for them by
    /// [`super::Suspension::Part`].
    pub fn share_with(&mut self, pool: Pool) {
        self.root = None;
        self.pool = Some(Arc::new(pool));
        self.memory.parts.clone_from(&self.plan.parts);
    }

    /// Takes over what the pool's operators did, if somebody wants to know.
    pub fn tell(&mut self, counts: &JobCounts) {
        if let Some(counters) = &mut self.memory.counters {
            counts.tell(counters);
        }
    }

    /// Has the pool run a part, and keeps its rows for who stopped for them.
    pub async fn run_part(&mut self, part: &Plan, env: Env<'_>) -> Result<()> {
        let pool = self.pool.clone();
        let pool = pool.ok_or_else(|| Error::internal("a part of a plan that nobody can run"))?;
        let (rows, counts) = pool.run(part, env).await?;
        self.tell(&counts);
        self.memory.part = Some((part.id, rows));
        Ok(())
    }

    /// The same input for a row of which a table's row has changed.
    pub fn recheck(&self, versions: Recheck, work_mem: usize) -> Execution {
        Execution {
            stage: self.stage,
            written: self.written.clone(),
            recheck: Some(versions),
            ..Execution::new(self.plan.clone(), work_mem)
        }
    }

    /// Evaluates expressions of the plan (RETURNING, SET, checks) over a row of the write.
    pub fn evaluate<T>(
        &mut self,
        env: Env<'_>,
        f: impl FnOnce(&Plan, &mut Cx) -> Step<T>,
    ) -> Step<T> {
        let plan = self.current(self.static_plan());
        f(plan, &mut Cx::new(env, &mut self.memory))
    }
}

/// Makes the operator of a node, its inputs included.
pub(super) fn operator(plan: &'static Plan, cx: &mut Cx) -> Result<BoxOperator> {
    stack::check()?;
    if cx.parts.contains(&plan.id) {
        // What it did is counted where it runs.
        return Ok(Box::new(PartOp::new(plan)));
    }
    let plain = plain_operator(plan, cx)?;
    if cx.counters.is_none() {
        return Ok(plain);
    }
    Ok(Box::new(Counted {
        inner: plain,
        id: plan.id as usize,
        in_loop: false,
    }))
}

/// An operator whose work is counted and timed.
struct Counted {
    inner: BoxOperator,
    id: usize,
    /// The current loop has begun.
    in_loop: bool,
}

impl Operator for Counted {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        let started = Instant::now();
        let next = self.inner.next(cx, row);
        let nanos = started.elapsed().as_nanos() as u64;
        if let Some(counters) = cx.counters.as_mut().and_then(|c| c.get_mut(self.id)) {
            let first = !self.in_loop;
            counters.loops += u64::from(first);
            counters.nanos += nanos;
            if first {
                counters.first_nanos += nanos;
            }
            self.in_loop = true;
            counters.rows += u64::from(matches!(next, Ok(true)));
        }
        next
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.in_loop = false;
        self.inner.rewind(cx);
    }
}

/// Whether expressions just give a row as it is.
fn is_whole_row(exprs: &[Expr], of: &Plan) -> bool {
    let is_slot =
        |(at, expr): (usize, &Expr)| matches!(expr, Expr::Slot(slot, _) if *slot as usize == at);
    exprs.len() == of.types.len() && exprs.iter().enumerate().all(is_slot)
}

fn plain_operator(plan: &'static Plan, cx: &mut Cx) -> Result<BoxOperator> {
    let child = |plan: &'static Plan, cx: &mut Cx| operator(plan, cx);
    Ok(match &plan.node {
        Node::Values { rows } => Box::new(Values::new(rows)),
        Node::SeqScan(scan) => {
            let table = Table::of(&scan.table, cx.env.store, &cx.eval)?;
            Box::new(SeqScanOp::new(scan, table))
        }
        Node::IndexScan(scan) => index_scan(scan, cx)?,
        Node::BitmapScan(scan) => Box::new(CombinedScanOp::new(scan, cx)?),
        Node::VirtualScan {
            table,
            columns,
            key,
            filter,
            ..
        } => Box::new(VirtualScanOp::new(table, columns, key, filter)),
        Node::RowsFrom {
            inputs, ordinality, ..
        } => {
            let mut operators = Vec::with_capacity(inputs.len());
            for input in inputs {
                operators.push((operator(input, cx)?, input.types.len()));
            }
            Box::new(RowsFromOp::new(operators, *ordinality))
        }
        Node::RoutineScan(scan) => Box::new(RoutineScanOp::new(scan, plan.types.len())),
        Node::FunctionScan(scan) => Box::new(FunctionScanOp::new(scan, plan.types.len())),
        Node::CteScan {
            subplan,
            args,
            filter,
            ..
        } => Box::new(CteScanOp::new(*subplan as usize, args, filter)),
        Node::RecursiveUnion(union) => {
            let (init, term) = (child(&union.init, cx)?, child(&union.term, cx)?);
            Box::new(RecursiveUnionOp::new(union, &plan.types, init, term, cx))
        }
        Node::WorkTableScan {
            work_table, filter, ..
        } => Box::new(WorkTableScanOp::new(*work_table as usize, filter)),
        Node::Filter {
            input,
            condition,
            once,
        } => Box::new(Filter::new(child(input, cx)?, condition, *once)),
        Node::Project { input, exprs } => {
            let rows = child(input, cx)?;
            // Nothing is to be computed, and nobody counts what is passed on.
            if cx.counters.is_none() && is_whole_row(exprs, input) {
                return Ok(rows);
            }
            Box::new(Project::new(rows, exprs))
        }
        Node::ProjectSet { input, exprs } => Box::new(ProjectSetOp::new(child(input, cx)?, exprs)),
        Node::NestedLoop(join) => {
            let (left, right) = (child(&join.left, cx)?, child(&join.right, cx)?);
            Box::new(NestedLoopJoin::new(join, left, right))
        }
        Node::HashJoin(join) => {
            let (left, right) = (child(&join.left, cx)?, child(&join.right, cx)?);
            let depends = depends_on_outer(&join.right);
            Box::new(HashJoinOp::new(join, left, right, depends))
        }
        Node::Sort { input, keys } => Box::new(Sort::new(child(input, cx)?, keys)),
        Node::Limit {
            input,
            limit,
            offset,
            ties,
        } => Box::new(Limit::new(child(input, cx)?, limit, offset, ties)),
        Node::Aggregate(aggregate) => {
            Box::new(AggregateOp::new(aggregate, child(&aggregate.input, cx)?))
        }
        Node::Window(window) => Box::new(WindowOp::new(window, child(&window.input, cx)?)),
        Node::Distinct {
            input,
            keys,
            sorted,
        } => Box::new(Distinct::new(child(input, cx)?, keys, *sorted)),
        Node::SetOp {
            op,
            all,
            left,
            right,
        } => {
            let (left, right) = (child(left, cx)?, child(right, cx)?);
            Box::new(SetOperation::new(*op, *all, &plan.types, left, right))
        }
        Node::Append(append) => Box::new(AppendOp::new(append)),
        Node::LockRows(node) => Box::new(LockRowsOp::new(node, child(&node.input, cx)?)),
        Node::Materialize { input } => {
            let depends = depends_on_outer(input);
            Box::new(Materialize::new(child(input, cx)?, depends))
        }
        Node::Insert(_) | Node::Update(_) | Node::Delete(_) | Node::Merge(_) => {
            return Err(Error::internal("a write below the top of a plan"));
        }
    })
}

/// Whether a plan reads values that an enclosing operator sets.
fn depends_on_outer(plan: &Plan) -> bool {
    let mut found = false;
    plan.for_each_expr(&mut |e| {
        found = found || e.any(&mut |e| matches!(e, Expr::Outer(..)));
    });
    found
}

/// A value for each of `exprs` over `row`.
pub fn evaluate_all(exprs: &[Expr], row: &[Datum], cx: &mut Cx, out: &mut Row) -> Step<()> {
    out.clear();
    for expr in exprs {
        out.push(super::eval::eval(expr, row, cx)?);
    }
    cx.evaluated();
    Ok(())
}
