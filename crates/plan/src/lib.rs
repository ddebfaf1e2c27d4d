//! From a bound query to a tree of row operators.
//!
//! Filters sink to the lowest operator that has their columns; a table is read by the index whose
//! leading columns are met by equalities, then by a range, if that is estimated cheaper than
//! reading it all ([`access`]); the order of joins is the cheapest that a search finds ([`join`],
//! [`enumerate`]), an inner side with a usable index probed by key where that is cheaper than
//! hashing. Estimates come from what ANALYZE found ([`selectivity`]).
//!
//! A [`Var`] is placed by [`Columns`]: which slot of an operator's row holds it. One that is in
//! none belongs to an enclosing query or to the left side of a nested loop: it becomes a parameter,
//! and the place where the inner plan is attached ([`Planner::attached`]) says how the parameter is
//! computed.
//!
//! Promises: planning changes nothing and waits for nothing; what it takes is bounded by the
//! statement and by how many joins it searches.
//!
//! Imported by: `analytics`, `session`, `exec`.

mod access;
mod alternatives;
mod bitmap;
mod bitmap_path;
mod constant;
mod cost;
mod enumerate;
mod facts;
mod from;
mod graph;
mod grouping;
mod index_expression;
mod index_key;
mod inheritance;
mod join;
mod joining;
mod leaf_locks;
mod like;
mod membership;
mod merge;
mod node;
mod order;
mod present;
pub mod prune;
mod pullup;
mod pushdown;
mod repeat;
mod row_source;
pub mod sample;
mod security;
mod select;
mod selectivity;
mod sets;
#[cfg(test)]
mod shape_tests;
mod subquery;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tid;
mod uses;
mod window;
mod with;
mod write;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use throng_bind::fold;
use throng_syntax::vocabulary::TableLock;
use throng_types::{Datum, Error, Oid, Result, SqlType, interrupt, stack};

use throng_bind::expr::{ComputedOnce, Expr, ParamId, RelId, Var};
use throng_bind::query::walk::QueryPartMut;
use throng_bind::query::{BoundQuery, Cte, CteBody, QueryKind, RowLockStrength};
use throng_catalog::Catalog;
use throng_values::func::EvalContext;

pub use bitmap::{Bitmap, BitmapLookUp, BitmapScan, InvertedMatch, LookUpBy};
pub use constant::{is_constant, is_immutable};
pub use leaf_locks::{Chosen, LeafLocks};
pub use node::*;

/// What the planner is told about tables' sizes.
pub trait Stats {
    /// Blocks and estimated rows of a table's heap now.
    fn table_size(&self, table: Oid) -> TableSize;
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableSize {
    pub pages: u32,
    pub rows: f64,
}

/// What a plan is made from besides the query.
pub struct PlanContext<'a> {
    pub catalog: &'a Catalog,
    pub stats: &'a dyn Stats,
    /// For folding constants.
    pub eval: EvalContext<'a>,
    /// The session's own: temporary tables of others have no rows for it.
    pub temporary_schema: Option<Oid>,
    pub enable_seqscan: bool,
    pub enable_indexscan: bool,
    pub enable_bitmapscan: bool,
    pub enable_hashjoin: bool,
    pub enable_nestloop: bool,
    /// So many items of joins, or of queries in FROM and what stands beside them, are ordered
    /// together. 1: they stay as written.
    pub join_collapse_limit: i64,
    pub from_collapse_limit: i64,
    /// Values tell which of more partitions than this are read: then only what is told of the
    /// statement's columns is made of it, see [`PlannedStatement::wants_values`]. None: it is
    /// planned for all of them.
    pub most_unknown: Option<usize>,
}

/// Puts values in the places of a statement's parameters, for a plan that is made for these alone.
pub fn set_parameters(query: &mut BoundQuery, values: &[Datum]) {
    query.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(expr) = part
            && let Expr::Param(at, ty) = expr
            && let Some(value) = values.get(usize::from(*at))
        {
            *expr = Expr::Const(value.clone(), *ty);
        }
    });
}

/// Plans a data statement.
///
/// # Errors
/// 0A000 for what the row operators do not do.
pub fn plan(mut query: BoundQuery, ctx: &PlanContext<'_>) -> Result<PlannedStatement> {
    let output = match &query.kind {
        QueryKind::Select(query) => select::output_columns(query),
        _ => Vec::new(),
    };
    throng_bind::inline::inline_routines(&mut query);
    present::tell_presence(&mut query);
    pullup::pull_up(&mut query);
    subquery::trim_exists(&mut query);
    let BoundQuery {
        kind,
        ctes,
        params,
        rel_count,
        views,
        security,
    } = query;
    let mut planner = Planner {
        ctx,
        needed: HashMap::default(),
        frames: Vec::new(),
        subplans: Vec::new(),
        shared: vec![None; ctes.len()],
        steps: vec![None; ctes.len()],
        ctes: ctes.into(),
        work_tables: 0,
        next_param: 0,
        next_once: 0,
        next_plan: 0,
        next_rel: rel_count,
        tables: HashMap::default(),
        families: HashMap::default(),
        join_limit: usize::try_from(ctx.join_collapse_limit).unwrap_or(1),
        // Who replaces or drops a view waits for those who read it.
        locks: views.iter().map(|v| (*v, TableLock::AccessShare)).collect(),
        leaf_locks: Vec::new(),
        kindred: HashMap::default(),
        kin: HashMap::default(),
        kept: HashMap::default(),
        wants_values: false,
        target: None,
        row_lock: None,
        unpopulated: None,
        cursor: None,
        weighing: false,
        security: Map::default(),
    };
    planner.note_security(security);
    planner.note_needed(&kind);
    let (writes, late_writes) = planner.writes(&kind)?;
    let (tag, root, output) = match kind {
        QueryKind::Select(query) => (StatementTag::Select, planner.query(&query)?.plan, output),
        QueryKind::Insert(insert) => planner.insert(*insert)?,
        QueryKind::Update(update) => planner.update(*update)?,
        QueryKind::Delete(delete) => planner.delete(*delete)?,
        QueryKind::Merge(merge) => planner.merge(*merge)?,
    };
    let suspects = constant::suspects(planner.subplans.iter().chain([&root]));
    let alone = writes.is_empty() && late_writes.is_empty() && planner.subplans.is_empty();
    Ok(PlannedStatement {
        tag,
        changes_one_row: alone && root.changes_one_row(),
        gives_one_row: alone && tag == StatementTag::Select && root.is_of_single_scan(),
        root,
        subplans: planner.subplans,
        writes,
        late_writes,
        parts: Vec::new(),
        outer_params: planner.next_param,
        once: planner.next_once,
        fails_at_bind: constant::fail_at_bind(&suspects),
        suspects,
        params,
        output,
        locks: planner.locks.into_iter().collect(),
        leaf_locks: planner.leaf_locks,
        row_lock: planner.row_lock,
        unpopulated: planner.unpopulated,
        cursor: planner.cursor,
        wants_values: planner.wants_values,
    })
}

type Map<K, V> = HashMap<K, V, FixedState>;

/// Which slot of a row holds which column; one slot may go by several names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    slots: Map<(RelId, i16), u32>,
    width: u32,
}

impl Columns {
    /// A row of a relation's columns by these numbers.
    fn of(rel: RelId, numbers: impl IntoIterator<Item = i16>) -> Columns {
        let mut columns = Columns::default();
        for number in numbers {
            columns.push(Some((rel, number)));
        }
        columns
    }

    /// Adds a slot at the end.
    fn push(&mut self, name: Option<(RelId, i16)>) {
        if let Some(name) = name {
            self.slots.insert(name, self.width);
        }
        self.width += 1;
    }

    fn also(&mut self, name: (RelId, i16), slot: u32) {
        self.slots.insert(name, slot);
    }

    fn get(&self, rel: RelId, column: i16) -> Option<u32> {
        self.slots.get(&(rel, column)).copied()
    }

    fn has_rel(&self, rel: RelId) -> bool {
        self.slots.keys().any(|(r, _)| *r == rel)
    }

    /// The columns of a joined row.
    fn join(mut self, right: &Columns) -> Columns {
        for (name, slot) in &right.slots {
            self.slots.insert(*name, self.width + slot);
        }
        self.width += right.width;
        self
    }
}

/// A plan with the meaning of its output row.
pub(crate) struct Built {
    plan: Plan,
    columns: Columns,
    /// The order its rows come in, as far as it is known.
    order: Vec<OrderedBy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderedBy {
    rel: RelId,
    column: i16,
    descending: bool,
    nulls_first: bool,
}

impl Built {
    fn rows(&self) -> f64 {
        self.plan.cost.rows
    }
    fn types(&self) -> &[SqlType] {
        &self.plan.types
    }
}

/// Variables from outside that a plan under construction has asked for.
#[derive(Default)]
struct Frame {
    params: Map<(RelId, i16), ParamId>,
    free: Vec<(ParamId, Var)>,
}

pub(crate) struct Planner<'a> {
    ctx: &'a PlanContext<'a>,
    /// The columns of each relation that anything in the statement looks at.
    needed: Map<RelId, BTreeSet<i16>>,
    frames: Vec<Frame>,
    subplans: Vec<Plan>,
    ctes: Arc<[Cte]>,
    /// Each WITH query that has been planned as a subplan.
    shared: Vec<Option<with::Shared>>,
    /// Each WITH RECURSIVE whose recursive term is being planned, or was.
    steps: Vec<Option<with::WorkingRows>>,
    work_tables: u32,
    next_param: u32,
    next_once: u32,
    next_plan: u32,
    next_rel: u32,
    /// The tables that entries stand for, as far as they were met.
    tables: Map<RelId, Arc<throng_catalog::TableDef>>,
    /// Of those that are read with their children: the rows of all together.
    families: Map<RelId, (Oid, OnceCell<f64>)>,
    join_limit: usize,
    locks: BTreeMap<Oid, TableLock>,
    leaf_locks: Vec<LeafLocks>,
    /// The tables behind the entries of tables with children.
    kindred: Map<RelId, Arc<inheritance::Kindred>>,
    kin: Map<(RelId, Oid), inheritance::Kin>,
    /// Places of those that are read.
    kept: Map<RelId, BTreeSet<usize>>,
    /// See [`PlannedStatement::wants_values`].
    wants_values: bool,
    /// The entry that rows are written to.
    target: Option<RelId>,
    /// See [`PlannedStatement::row_lock`].
    row_lock: Option<RowLockStrength>,
    /// See [`PlannedStatement::unpopulated`].
    unpopulated: Option<String>,
    /// WHERE CURRENT OF.
    cursor: Option<CursorUse>,
    /// Plans are made to be compared.
    weighing: bool,
    /// What rows of tables' entries must meet first: see [`security`].
    security: Map<RelId, Vec<Expr>>,
}

impl Planner<'_> {
    fn node(&mut self, node: Node, types: Vec<SqlType>, cost: Cost) -> Plan {
        let id = self.next_plan;
        self.next_plan += 1;
        Plan {
            id,
            node,
            types,
            cost,
        }
    }

    fn new_rel(&mut self) -> RelId {
        self.next_rel += 1;
        RelId(self.next_rel - 1)
    }

    fn lock(&mut self, table: Oid, mode: TableLock) {
        let held = self.locks.entry(table).or_insert(mode);
        *held = (*held).max(mode);
    }

    /// Columns asked for, whole rows of what is written included.
    fn note_needed(&mut self, kind: &QueryKind) {
        let mut needed: Map<RelId, BTreeSet<i16>> = Map::default();
        let written = self.ctes.iter().filter_map(|cte| match &cte.body {
            CteBody::Write(kind) => Some(&**kind),
            _ => None,
        });
        let kinds: Vec<&QueryKind> = written.chain([kind]).collect();
        for kind in &kinds {
            kind.for_each_var(&mut |var| {
                needed.entry(var.rel).or_default().insert(var.column);
            });
        }
        for query in self.ctes.iter().flat_map(|cte| cte.body.queries()) {
            query.for_each_var(&mut |var| {
                needed.entry(var.rel).or_default().insert(var.column);
            });
        }
        let whole = kinds.iter().filter_map(|kind| match kind {
            QueryKind::Update(update) => Some((update.rel, &update.table, update.only)),
            QueryKind::Delete(delete) => Some((delete.rel, &delete.table, delete.only)),
            QueryKind::Merge(merge) => Some((merge.rel, &merge.table, merge.only)),
            QueryKind::Select(_) | QueryKind::Insert(_) => None,
        });
        for (rel, table, only) in whole {
            let columns = table.columns.len();
            let set = needed.entry(rel).or_default();
            if !only && self.has_kin(table) {
                set.insert(throng_bind::expr::system::TABLEOID);
            }
            set.extend(1..=columns as i16);
            if table.has_rows() {
                set.insert(throng_bind::expr::system::CTID);
            }
        }
        for condition in self.security.values().flatten() {
            condition.for_each_var(&mut |var| {
                needed.entry(var.rel).or_default().insert(var.column);
            });
        }
        let sources = row_source::of_writes(&kinds);
        self.needed = needed;
        for (rel, table, only) in sources {
            self.need_row_source(rel, &table, only);
        }
    }

    fn needed_columns(&self, rel: RelId) -> Vec<i16> {
        let mut columns: Vec<i16> = self
            .needed
            .get(&rel)
            .map(|set| set.iter().copied().collect())
            .unwrap_or_default();
        // Ordinary columns first, so that a row's prefix is often just what is stored.
        columns.sort_by_key(|c| (*c < 0, *c));
        columns
    }

    /// Builds an inner plan; gives it with the variables from outside that it needs, by parameter.
    fn attached<T>(
        &mut self,
        build: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<(ParamId, Var)>)> {
        self.frames.push(Frame::default());
        let built = build(self);
        let frame = self.frames.pop().unwrap_or_default();
        Ok((built?, frame.free))
    }

    /// How the parameters of an inner plan are computed from a row of the outer one.
    fn arguments(
        &mut self,
        free: Vec<(ParamId, Var)>,
        columns: &Columns,
    ) -> Result<Vec<(ParamId, Expr)>> {
        free.into_iter()
            .map(|(param, var)| Ok((param, self.place(Expr::Var(var), columns)?)))
            .collect()
    }

    /// The expression over a row of `columns`: variables placed, subqueries planned, constants
    /// folded.
    fn place(&mut self, expr: Expr, columns: &Columns) -> Result<Expr> {
        match expr {
            Expr::Var(var) => self.place_var(var, columns),
            Expr::Subquery(subquery) => self.place_subquery(*subquery, columns),
            Expr::Aggregate(_) => Err(Error::internal("an aggregate where there is no grouping")),
            Expr::Grouping(_) => Err(Error::internal("GROUPING where there is no grouping")),
            Expr::Window(_) => Err(Error::internal(
                "a window function where there is no window",
            )),
            Expr::SetCall { .. } | Expr::SetRoutine(_) => Err(Error::unsupported(
                "a set-returning function inside another expression",
            )),
            mut other => {
                stack::check()?;
                interrupt::poll()?;
                let mut failed = None;
                other.for_each_child_mut(&mut |child| {
                    if failed.is_none() {
                        match self.place(std::mem::replace(child, Expr::bool(true)), columns) {
                            Ok(placed) => *child = placed,
                            Err(e) => failed = Some(e),
                        }
                    }
                });
                match failed {
                    Some(e) => Err(e),
                    None => Ok(self.items_once(fold::fold(other, &self.ctx.eval))),
                }
            }
        }
    }

    /// Has an array that a value is compared with computed once, where it is the same for all rows.
    fn items_once(&mut self, mut expr: Expr) -> Expr {
        if let Expr::ArrayCompare { array, .. } = &mut expr
            && !matches!(**array, Expr::Const(..) | Expr::Param(..))
            && fold::is_fixed(array)
        {
            let number = self.next_once;
            self.next_once += 1;
            let expr = std::mem::replace(&mut **array, Expr::bool(true));
            **array = Expr::Once(Box::new(ComputedOnce { number, expr }));
        }
        expr
    }

    fn place_all(&mut self, exprs: Vec<Expr>, columns: &Columns) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|e| self.place(e, columns)).collect()
    }

    fn place_var(&mut self, var: Var, columns: &Columns) -> Result<Expr> {
        if let Some(slot) = columns.get(var.rel, var.column) {
            return Ok(Expr::Slot(slot, var.ty));
        }
        let next = ParamId(self.next_param);
        let Some(frame) = self.frames.last_mut() else {
            return Err(Error::internal(format!(
                "column {} of relation {} is not in the row",
                var.column, var.rel.0
            )));
        };
        let ty = var.ty;
        let param = *frame
            .params
            .entry((var.rel, var.column))
            .or_insert_with(|| {
                frame.free.push((next, var));
                next
            });
        if param == next {
            self.next_param += 1;
        }
        Ok(Expr::Outer(param, ty))
    }

    /// Adds a condition over the rows of a plan.
    fn filter(&mut self, input: Built, conditions: Vec<Expr>) -> Result<Built> {
        if conditions.is_empty() {
            return Ok(input);
        }
        let Built {
            plan,
            columns,
            order,
        } = input;
        let share = self.shares(&conditions, None);
        let conditions = security::cheap_first(self.place_all(conditions, &columns)?);
        let Some(condition) = Expr::all_of(conditions) else {
            return Ok(Built {
                plan,
                columns,
                order,
            });
        };
        let once = !condition.any(&mut |e| matches!(e, Expr::Slot(..)) || fold::is_volatile(e));
        let cost = cost::filter(&plan.cost, share);
        let types = plan.types.clone();
        let node = Node::Filter {
            input: Box::new(plan),
            condition,
            once,
        };
        Ok(Built {
            plan: self.node(node, types, cost),
            columns,
            order,
        })
    }

    /// A plan that computes `exprs` from each row.
    fn project(&mut self, input: Plan, exprs: Vec<Expr>) -> Plan {
        let identity = exprs.len() == input.types.len()
            && exprs
                .iter()
                .enumerate()
                .all(|(i, e)| matches!(e, Expr::Slot(s, _) if *s as usize == i));
        if identity {
            return input;
        }
        let types: Vec<SqlType> = exprs.iter().map(Expr::ty).collect();
        let cost = Cost {
            width: cost::width(&types),
            ..cost::per_row(&input.cost, exprs.len() as f64)
        };
        self.node(
            Node::Project {
                input: Box::new(input),
                exprs,
            },
            types,
            cost,
        )
    }
}

impl Plan {
    /// Whether its rows are those of an index scan that gives one at most.
    fn is_of_single_scan(&self) -> bool {
        match &self.node {
            Node::Project { input, .. } => input.is_of_single_scan(),
            Node::IndexScan(scan) => scan.is_single,
            _ => false,
        }
    }

    /// See [`PlannedStatement::changes_one_row`]. What a user's function reads is not told, be it
    /// called in a domain's check.
    fn changes_one_row(&self) -> bool {
        let input = match &self.node {
            Node::Update(node) if node.family.is_none() => &node.input,
            Node::Delete(node) if node.family.is_none() => &node.input,
            _ => return false,
        };
        let is_single = input.is_of_single_scan();
        let mut reads_more = false;
        self.for_each_expr(&mut |e| {
            reads_more |= e.any(&mut |part| {
                matches!(
                    part,
                    Expr::Routine(_) | Expr::SetRoutine(_) | Expr::ToDomain(..)
                )
            });
        });
        is_single && !reads_more
    }

    /// The plans below this one, subplans of expressions not included.
    pub fn children(&self) -> Vec<&Plan> {
        match &self.node {
            Node::Values { .. }
            | Node::SeqScan(_)
            | Node::IndexScan(_)
            | Node::BitmapScan(_)
            | Node::VirtualScan { .. }
            | Node::FunctionScan(_)
            | Node::RoutineScan(_)
            | Node::CteScan { .. }
            | Node::WorkTableScan { .. } => vec![],
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::ProjectSet { input, .. }
            | Node::Sort { input, .. }
            | Node::Limit { input, .. }
            | Node::Distinct { input, .. }
            | Node::Materialize { input } => vec![input],
            Node::LockRows(node) => vec![&node.input],
            Node::Aggregate(node) => vec![&node.input],
            Node::Window(node) => vec![&node.input],
            Node::NestedLoop(node) => vec![&node.left, &node.right],
            Node::HashJoin(node) => vec![&node.left, &node.right],
            Node::SetOp { left, right, .. } => vec![left, right],
            Node::Append(node) => node.inputs.iter().map(|input| &input.plan).collect(),
            Node::RecursiveUnion(node) => vec![&node.init, &node.term],
            Node::RowsFrom { inputs, .. } => inputs.iter().collect(),
            Node::Insert(node) => vec![&node.input],
            Node::Update(node) => vec![&node.input],
            Node::Delete(node) => vec![&node.input],
            Node::Merge(node) => vec![&node.input],
        }
    }

    /// The highest number of this plan's operators.
    pub fn highest_id(&self) -> u32 {
        let below = self.children().into_iter().map(Plan::highest_id);
        below.fold(self.id, u32::max)
    }

    /// Calls `f` on every expression of this plan and those below it.
    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.own_exprs(f);
        for child in self.children() {
            child.for_each_expr(f);
        }
    }

    fn own_exprs<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match &self.node {
            Node::Values { rows } => rows.iter().flatten().for_each(f),
            Node::SeqScan(scan) => {
                scan.filter.iter().for_each(&mut *f);
                scan.place.iter().for_each(|place| f(&place.value));
                let sample = scan.sample.iter().flat_map(|s| s.exprs());
                sample.for_each(f);
            }
            Node::IndexScan(scan) => {
                scan.spans.iter().for_each(|span| span.for_each_expr(f));
                scan.condition.iter().chain(&scan.filter).for_each(f);
            }
            Node::BitmapScan(scan) => scan.for_each_expr(f),
            Node::VirtualScan { key, filter, .. } => {
                if let Some((_, matching)) = key {
                    matching.for_each_expr(f);
                }
                filter.iter().for_each(f);
            }
            Node::CteScan { args, filter, .. } => {
                args.iter().for_each(|(_, e)| f(e));
                filter.iter().for_each(f);
            }
            Node::WorkTableScan { step, filter, .. } => {
                f(step);
                filter.iter().for_each(f);
            }
            Node::RecursiveUnion(node) => node.args.iter().for_each(|(_, e)| f(e)),
            Node::FunctionScan(scan) => scan.args.iter().chain(&scan.filter).for_each(f),
            Node::RoutineScan(scan) => scan.call.args.iter().chain(&scan.filter).for_each(f),
            Node::Filter { condition, .. } => f(condition),
            Node::Project { exprs, .. } => exprs.iter().for_each(f),
            Node::ProjectSet { exprs, .. } => exprs.iter().for_each(|e| match e {
                SetExpr::Scalar(e) => f(e),
                SetExpr::Set { args, .. } => args.iter().for_each(&mut *f),
                SetExpr::Routine(call) => call.args.iter().for_each(&mut *f),
            }),
            Node::NestedLoop(join) => {
                join.params.iter().for_each(|(_, e)| f(e));
                join.on.iter().chain(&join.filter).for_each(f);
            }
            Node::HashJoin(join) => {
                join.left_keys
                    .iter()
                    .chain(&join.right_keys)
                    .for_each(&mut *f);
                join.on.iter().chain(&join.filter).for_each(f);
            }
            Node::Sort { keys, .. } => keys.iter().for_each(|k| f(&k.expr)),
            Node::Limit {
                limit,
                offset,
                ties,
                ..
            } => {
                limit.iter().chain(offset).for_each(&mut *f);
                ties.iter().for_each(|k| f(&k.expr));
            }
            Node::Aggregate(node) => {
                node.group.iter().for_each(&mut *f);
                for call in &node.aggs {
                    call.direct.iter().chain(&call.args).for_each(&mut *f);
                    call.filter.iter().for_each(&mut *f);
                    call.order.iter().for_each(|k| f(&k.expr));
                }
                node.having.iter().for_each(f);
            }
            Node::Window(node) => {
                node.partition.iter().for_each(&mut *f);
                node.order.iter().for_each(|k| f(&k.expr));
                node.frame.offsets().for_each(&mut *f);
                for call in &node.calls {
                    call.args.iter().chain(&call.filter).for_each(&mut *f);
                }
            }
            Node::Distinct { keys, .. } => keys.iter().for_each(f),
            Node::SetOp { .. }
            | Node::LockRows(_)
            | Node::RowsFrom { .. }
            | Node::Materialize { .. } => {}
            Node::Append(node) => node
                .pruning
                .iter()
                .for_each(|p| p.values.iter().for_each(&mut *f)),
            Node::Insert(node) => {
                node.generated.iter().for_each(|(_, e)| f(e));
                node.checks.iter().for_each(|c| f(&c.expr));
                node.returning.iter().for_each(f);
            }
            Node::Update(node) => {
                node.set.iter().for_each(|(_, e)| f(e));
                node.generated.iter().for_each(|(_, e)| f(e));
                node.checks.iter().for_each(|c| f(&c.expr));
                node.returning.iter().for_each(f);
            }
            Node::Delete(node) => node.returning.iter().for_each(f),
            Node::Merge(node) => node.own_exprs(f),
        }
    }
}
