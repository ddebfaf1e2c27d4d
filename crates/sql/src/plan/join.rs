//! FROM: inner joins in the order that seems cheapest, outer joins where they stand.

use throng_types::{Error, Result};

use super::access::{TableRef, Wanted, comparison, same_keys};
use super::cost;
use super::subquery::SemiJoin;
use super::{Built, Columns, Cost, FunctionScan, HashJoin, NestedLoop, Node, Planner, RoutineScan};
use super::{alternatives, pushdown, with};
use crate::expr::{Expr, RelId};
use crate::func::{Operator, Strategy};
use crate::query::{FromItem, JoinKind, Rel, RelKind};

/// Pairs of rows that a join which need not be looked at one by one may look at where `enable_hashjoin` is off.
const MOST_PAIRS: f64 = 1e7;

/// A member of a list of inner joins.
struct Unit<'q> {
    item: &'q FromItem,
    rels: Vec<RelId>,
    /// Rels of the same list that it refers to: it comes after them.
    needs: Vec<RelId>,
}

/// Whether a table is read through indexes alone.
fn is_by_key(plan: &super::Plan) -> bool {
    match &plan.node {
        Node::IndexScan(_) => true,
        Node::Append(append) => append.inputs.iter().all(|input| is_by_key(&input.plan)),
        _ => false,
    }
}

/// The relations an expression speaks of.
pub(super) fn rels_of(expr: &Expr) -> Vec<RelId> {
    let mut rels = Vec::new();
    expr.for_each_var(&mut |var| {
        if !rels.contains(&var.rel) {
            rels.push(var.rel);
        }
    });
    rels
}

/// Takes the conditions out that pass a test.
fn take(conditions: &mut Vec<Expr>, mut test: impl FnMut(&Expr) -> bool) -> Vec<Expr> {
    conditions.extract_if(.., |c| test(c)).collect()
}

/// Breaks a list of items into the members of its inner joins and their conditions.
fn flatten<'q>(item: &'q FromItem, units: &mut Vec<&'q FromItem>, conditions: &mut Vec<Expr>) {
    match item {
        FromItem::Join {
            kind: JoinKind::Inner,
            left,
            right,
            on,
            ..
        } => {
            flatten(left, units, conditions);
            flatten(right, units, conditions);
            if let Some(on) = on {
                on.clone().conjuncts(conditions);
            }
        }
        other => units.push(other),
    }
}

impl Planner<'_> {
    /// The join of `items` under `conditions`, conjuncts that may speak of variables from outside.
    pub(super) fn from(
        &mut self,
        items: &[FromItem],
        mut conditions: Vec<Expr>,
        wanted: &Wanted,
    ) -> Result<Built> {
        let mut parts = Vec::new();
        for item in items {
            flatten(item, &mut parts, &mut conditions);
        }
        let mut local = Vec::new();
        parts.iter().for_each(|part| part.rels(&mut local));
        if parts.len() > 1 {
            alternatives::derive(&mut conditions, &local);
        }
        let (semi, mut conditions) = self.semi_joins(conditions, &local);
        let mut units: Vec<Unit<'_>> = parts
            .into_iter()
            .map(|item| {
                let mut rels = Vec::new();
                item.rels(&mut rels);
                let mut needs = Vec::new();
                item.for_each_expr(&mut |e| needs.extend(rels_of(e)));
                needs.retain(|rel| local.contains(rel) && !rels.contains(rel));
                Unit { item, rels, needs }
            })
            .collect();

        let late = self.take_late(&mut conditions, &units, !semi.is_empty(), &local);
        let single = units.len() == 1 && semi.is_empty();
        let mut built = match units.len() {
            0 => self.one_row(),
            1 => {
                let unit = units.remove(0);
                let own = take(&mut conditions, |c| !has_volatile(c) || single);
                let no_wish = Wanted::default();
                self.unit(&unit, own, if single { wanted } else { &no_wish })?
            }
            _ => self.join_units(units, &mut conditions, &local)?,
        };
        for join in semi {
            built = self.semi_join(built, join)?;
        }
        conditions.extend(late);
        self.filter(built, conditions)
    }

    /// Takes out the conditions that run a query for each row, if joins are likely to leave fewer rows to run them for.
    fn take_late(
        &self,
        conditions: &mut Vec<Expr>,
        units: &[Unit<'_>],
        semi: bool,
        local: &[RelId],
    ) -> Vec<Expr> {
        let mut late = take(conditions, |c| runs_for_each_row(c, local));
        if late.is_empty() || semi {
            return late;
        }
        let rows: Vec<f64> = units
            .iter()
            .map(|unit| self.estimate(unit, conditions, local))
            .collect();
        let least = rows.iter().copied().fold(f64::INFINITY, f64::min);
        let early = take(&mut late, |c| {
            let mut own = units.iter().zip(&rows);
            own.any(|(unit, rows)| is_about(c, &unit.rels, local) && *rows <= least)
        });
        conditions.extend(early);
        late
    }

    /// The one row of a query without FROM.
    pub(super) fn one_row(&mut self) -> Built {
        let cost = Cost {
            startup: 0.0,
            total: cost::TUPLE,
            rows: 1.0,
            width: 0,
        };
        let plan = self.node(Node::Values { rows: vec![vec![]] }, Vec::new(), cost);
        Built {
            plan,
            columns: Columns::default(),
            order: Vec::new(),
        }
    }

    fn join_units(
        &mut self,
        mut units: Vec<Unit<'_>>,
        conditions: &mut Vec<Expr>,
        local: &[RelId],
    ) -> Result<Built> {
        // Begin with the unit that gives fewest rows and needs nobody.
        let mut first: Option<(usize, f64)> = None;
        for (at, unit) in units.iter().enumerate().filter(|(_, u)| u.needs.is_empty()) {
            let rows = self.estimate(unit, conditions, local);
            if first.is_none_or(|(_, least)| rows < least) {
                first = Some((at, rows));
            }
        }
        let Some((at, _)) = first else {
            return Err(Error::internal("lateral items that need each other"));
        };
        let unit = units.remove(at);
        let own = take(conditions, |c| {
            is_about(c, &unit.rels, local) && !has_volatile(c)
        });
        let mut built = self.unit(&unit, own, &Wanted::default())?;
        let mut joined = unit.rels;
        while !units.is_empty() {
            // Next: a unit that an equality connects, else one that any condition does, the one with fewest rows; else any
            // that can come.
            let mut next: Option<(usize, (bool, bool, f64))> = None;
            for (at, unit) in units.iter().enumerate() {
                if !unit.needs.iter().all(|rel| joined.contains(rel)) {
                    continue;
                }
                let connected = conditions
                    .iter()
                    .any(|c| connects(c, &joined, &unit.rels, local))
                    || !unit.needs.is_empty();
                let by_equality = conditions
                    .iter()
                    .any(|c| is_equality(c) && connects(c, &joined, &unit.rels, local));
                let rank = (
                    !connected,
                    !by_equality,
                    self.estimate(unit, conditions, local),
                );
                if next.as_ref().is_none_or(|(_, best)| rank < *best) {
                    next = Some((at, rank));
                }
            }
            let Some((at, _)) = next else {
                return Err(Error::internal("lateral items that need each other"));
            };
            let unit = units.remove(at);
            let mut both = joined.clone();
            both.extend(&unit.rels);
            let own = take(conditions, |c| {
                is_about(c, &unit.rels, local) && !has_volatile(c)
            });
            let on = take(conditions, |c| {
                is_about(c, &both, local) && !has_volatile(c)
            });
            built = self.join(JoinKind::Inner, built, &unit, own, on)?;
            joined = both;
        }
        Ok(built)
    }

    /// Rows a unit gives by itself.
    fn estimate(&self, unit: &Unit<'_>, conditions: &[Expr], local: &[RelId]) -> f64 {
        let FromItem::Rel(rel) = unit.item else {
            return 1e6;
        };
        let RelKind::Table(table) = &rel.kind else {
            return 1000.0;
        };
        let own = conditions.iter().filter(|c| is_about(c, &unit.rels, local));
        let source = TableRef {
            rel: rel.id,
            alias: &rel.alias,
            table,
            sample: rel.sample.as_deref(),
        };
        let share: f64 = own.map(|c| self.selectivity(c, &source)).product();
        cost::at_least_one(self.size(rel, table).rows * share)
    }

    /// One member of a join list under conditions on it alone.
    fn unit(&mut self, unit: &Unit<'_>, own: Vec<Expr>, wanted: &Wanted) -> Result<Built> {
        match unit.item {
            FromItem::Rel(rel) => self.rel(rel, own, wanted),
            FromItem::Join {
                kind,
                left,
                right,
                on,
                ..
            } => self.outer_join(*kind, left, right, on.as_ref(), own),
        }
    }

    fn rel(&mut self, rel: &Rel, conditions: Vec<Expr>, wanted: &Wanted) -> Result<Built> {
        match &rel.kind {
            RelKind::Table(table) => {
                let source = TableRef {
                    rel: rel.id,
                    alias: &rel.alias,
                    table,
                    sample: rel.sample.as_deref(),
                };
                match rel.only || !self.has_kin(table) {
                    true => self.table(&source, conditions, wanted),
                    false => self.family(&source, conditions, wanted),
                }
            }
            RelKind::Virtual(table) => {
                let columns = self.needed_columns(rel.id);
                let types = columns
                    .iter()
                    .map(|c| match *c {
                        n if n > 0 => table.columns[n as usize - 1].1,
                        _ => throng_types::SqlType::plain(throng_types::oid::OID),
                    })
                    .collect();
                let places = Columns::of(rel.id, columns.iter().copied());
                let filter = Expr::all_of(self.place_all(conditions, &places)?);
                let cost = Cost {
                    startup: 0.0,
                    total: 10.0,
                    rows: 100.0,
                    width: 64,
                };
                let alias = rel.alias.clone();
                let node = Node::VirtualScan {
                    rel: rel.id,
                    alias,
                    table,
                    columns,
                    filter,
                };
                let plan = self.node(node, types, cost);
                Ok(Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                })
            }
            RelKind::Subquery { query, .. } | RelKind::View { query, .. } => {
                let mut conditions = conditions;
                let inner = match conditions.is_empty() {
                    true => self.query(query)?,
                    false => {
                        let mut query = query.clone();
                        pushdown::push_down(&mut query, rel.id, &mut conditions);
                        self.query(&query)?
                    }
                };
                let built = rename(inner.plan, rel.id);
                self.filter(built, conditions)
            }
            RelKind::Function {
                func,
                args,
                ordinality,
                ..
            } => {
                let types: Vec<_> = rel.columns.iter().map(|c| c.ty).collect();
                let places = Columns::of(rel.id, 1..=types.len() as i16);
                let args = self.place_all(args.clone(), &Columns::default())?;
                let filter = Expr::all_of(self.place_all(conditions, &places)?);
                let rows = if func.returns_set() { 1000.0 } else { 1.0 };
                let total = rows * cost::TUPLE;
                let cost = Cost {
                    startup: 0.0,
                    total,
                    rows,
                    width: cost::width(&types),
                };
                let scan = FunctionScan {
                    rel: rel.id,
                    alias: rel.alias.clone(),
                    func,
                    args,
                    ordinality: *ordinality,
                    filter,
                };
                let plan = self.node(Node::FunctionScan(scan), types, cost);
                Ok(Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                })
            }
            RelKind::Routine {
                call, ordinality, ..
            } => {
                let types: Vec<_> = rel.columns.iter().map(|c| c.ty).collect();
                let places = Columns::of(rel.id, 1..=types.len() as i16);
                let mut call = (**call).clone();
                call.args = self.place_all(call.args, &Columns::default())?;
                let filter = Expr::all_of(self.place_all(conditions, &places)?);
                let rows = call.def.rows.max(1.0);
                let total = rows * cost::TUPLE + call.def.cost * cost::OPERATOR;
                let cost = Cost {
                    startup: 0.0,
                    total,
                    rows,
                    width: cost::width(&types),
                };
                let scan = RoutineScan {
                    rel: rel.id,
                    alias: rel.alias.clone(),
                    call,
                    ordinality: *ordinality,
                    filter,
                };
                let plan = self.node(Node::RoutineScan(scan), types, cost);
                Ok(Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                })
            }
            RelKind::RowsFrom { items, ordinality } => {
                let mut inputs = Vec::with_capacity(items.len());
                for item in items {
                    let FromItem::Rel(rel) = item else {
                        return Err(Error::internal("a join among functions side by side"));
                    };
                    inputs.push(self.rel(rel, vec![], &Wanted::default())?.plan);
                }
                let types: Vec<_> = rel.columns.iter().map(|c| c.ty).collect();
                let rows = inputs.iter().map(|p| p.cost.rows).fold(1.0, f64::max);
                let cost = Cost {
                    startup: 0.0,
                    total: inputs.iter().map(|p| p.cost.total).sum::<f64>() + rows * cost::TUPLE,
                    rows,
                    width: cost::width(&types),
                };
                let places = Columns::of(rel.id, 1..=types.len() as i16);
                let node = Node::RowsFrom {
                    inputs,
                    alias: rel.alias.clone(),
                    ordinality: *ordinality,
                };
                let plan = self.node(node, types, cost);
                let built = Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                };
                self.filter(built, conditions)
            }
            RelKind::Cte(number) => self.cte(rel, *number as usize, conditions),
            RelKind::WorkTable(number) => self.work_table(rel, *number as usize, conditions),
        }
    }

    /// An outer join where it stands; `above`: conditions on its result.
    fn outer_join(
        &mut self,
        kind: JoinKind,
        left: &FromItem,
        right: &FromItem,
        on: Option<&Expr>,
        mut above: Vec<Expr>,
    ) -> Result<Built> {
        // A right join is a left join seen from the other side.
        let (kind, left, right) = match kind {
            JoinKind::Right => (JoinKind::Left, right, left),
            other => (other, left, right),
        };
        let mut local = Vec::new();
        left.rels(&mut local);
        let left_rels = local.clone();
        right.rels(&mut local);
        let mut on_conditions = Vec::new();
        if let Some(on) = on {
            on.clone().conjuncts(&mut on_conditions);
        }
        // Conditions on the preserved side alone may be met before the join.
        let pushed = match kind {
            JoinKind::Left => take(&mut above, |c| {
                is_about(c, &left_rels, &local) && !has_volatile(c)
            }),
            _ => Vec::new(),
        };
        let left = self.from(std::slice::from_ref(left), pushed, &Wanted::default())?;
        let mut rels = Vec::new();
        right.rels(&mut rels);
        let unit = Unit {
            item: right,
            rels,
            needs: Vec::new(),
        };
        // Conditions of ON about the other side alone only decide which of its rows can be partners.
        let own = match kind {
            JoinKind::Left => take(&mut on_conditions, |c| {
                is_about(c, &unit.rels, &local) && !has_volatile(c)
            }),
            _ => Vec::new(),
        };
        let joined = self.join(kind, left, &unit, own, on_conditions)?;
        self.filter(joined, above)
    }

    /// Joins a plan with a unit. `own`: conditions on the unit alone; `on`: on both.
    fn join(
        &mut self,
        kind: JoinKind,
        left: Built,
        unit: &Unit<'_>,
        own: Vec<Expr>,
        on: Vec<Expr>,
    ) -> Result<Built> {
        let lateral = !unit.needs.is_empty() || refers_to(unit.item, &left.columns);
        if lateral {
            if kind == JoinKind::Full {
                return Err(Error::unsupported("a lateral item on a side of FULL JOIN"));
            }
            let (right, free) = self.attached(|p| p.unit(unit, own, &Wanted::default()))?;
            return self.nested_loop(kind, left, right, free, on, false);
        }
        let is_table =
            matches!(unit.item, FromItem::Rel(rel) if matches!(rel.kind, RelKind::Table(_)));
        if is_table && kind != JoinKind::Full && self.ctx.enable_nestloop && !on.is_empty() {
            // The inner side by key: conditions on both sides become conditions on it, the left's columns parameters.
            let mut all = own.clone();
            all.extend(
                on.iter()
                    .map(|c| as_any(c, &unit.rels).unwrap_or_else(|| c.clone())),
            );
            let before = (self.next_plan, self.next_param, self.subplans.len());
            let shared = self.shared.clone();
            let (right, free) = self.attached(|p| p.unit(unit, all, &Wanted::default()))?;
            let by_key = is_by_key(&right.plan) && !free.is_empty();
            let looped = left.rows() * right.plan.cost.total;
            if by_key && looped < self.hash_estimate(&left, unit, &own, &on) {
                return self.nested_loop(kind, left, right, free, Vec::new(), false);
            }
            (self.next_plan, self.next_param) = (before.0, before.1);
            self.subplans.truncate(before.2);
            self.shared = shared;
        }
        let right = self.unit(unit, own, &Wanted::default())?;
        self.join_built(kind, left, right, on)
    }

    /// The size of a table, its children included where they are read.
    fn size(&self, rel: &Rel, table: &crate::catalog::TableDef) -> super::TableSize {
        let mut size = self.ctx.stats.table_size(table.oid);
        if !rel.only && self.has_kin(table) {
            for child in self.ctx.catalog.descendants(table.oid).into_iter().skip(1) {
                let own = self.ctx.stats.table_size(child);
                size.pages = size.pages.saturating_add(own.pages);
                size.rows += own.rows;
            }
        }
        size
    }

    fn hash_estimate(&self, left: &Built, unit: &Unit<'_>, own: &[Expr], on: &[Expr]) -> f64 {
        let FromItem::Rel(rel) = unit.item else {
            return f64::INFINITY;
        };
        let RelKind::Table(table) = &rel.kind else {
            return f64::INFINITY;
        };
        let size = self.size(rel, table);
        let share: f64 = own.iter().map(cost::selectivity).product();
        let scan = f64::from(size.pages) + size.rows * (cost::TUPLE + cost::OPERATOR);
        let hashable = on.iter().any(is_equality);
        if !hashable || !self.ctx.enable_hashjoin {
            return f64::INFINITY;
        }
        scan + (size.rows * share + left.rows()) * 4.0 * cost::OPERATOR
    }

    /// Joins two plans: by hash where an equality allows it.
    pub(super) fn join_built(
        &mut self,
        kind: JoinKind,
        left: Built,
        right: Built,
        on: Vec<Expr>,
    ) -> Result<Built> {
        let (mut left, mut right) = (left, right);
        let (keys, rest) = hash_keys(on, &left.columns, &right.columns);
        // There is no merge join: without hashing, rows beyond count would be met one by one.
        let few = left.rows() * right.rows() <= MOST_PAIRS;
        let may_hash = self.ctx.enable_hashjoin || kind == JoinKind::Full || !few;
        if keys.is_empty() || !may_hash {
            if kind == JoinKind::Full {
                return Err(Error::unsupported(
                    "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
                ));
            }
            let conditions = keys
                .into_iter()
                .map(|key| key.condition)
                .chain(rest)
                .collect();
            let right = self.materialize(right);
            return self.nested_loop(kind, left, right, Vec::new(), conditions, true);
        }
        let mut pairs: Vec<(Expr, Expr)> = keys.into_iter().map(|k| (k.left, k.right)).collect();
        // The table is built of the right side: the smaller one, where the kind of join does not care; or the one that is
        // the same in each step of a recursion.
        let better = match (with::changes(&left.plan), with::changes(&right.plan)) {
            (true, false) => !with::can_be_kept(&right.plan.cost) && left.rows() < right.rows(),
            (false, true) => with::can_be_kept(&left.plan.cost) || left.rows() < right.rows(),
            _ => left.rows() < right.rows(),
        };
        if kind == JoinKind::Inner && better {
            std::mem::swap(&mut left, &mut right);
            pairs.iter_mut().for_each(|(a, b)| std::mem::swap(a, b));
        }
        let mut left_keys = Vec::new();
        let mut right_keys = Vec::new();
        for (l, r) in pairs {
            left_keys.push(self.place(l, &left.columns)?);
            right_keys.push(self.place(r, &right.columns)?);
        }
        let both = left.columns.clone().join(&right.columns);
        let on = Expr::all_of(self.place_all(rest, &both)?);
        let (columns, types) = joined(kind, &left, &right, both);
        let rows = join_rows(kind, left.rows(), right.rows(), true);
        let cost = Cost {
            startup: right.plan.cost.total,
            total: left.plan.cost.total
                + right.plan.cost.total
                + (left.rows() + right.rows()) * 2.0 * cost::OPERATOR
                + rows * cost::TUPLE,
            rows,
            width: cost::width(&types),
        };
        let node = Node::HashJoin(HashJoin {
            kind,
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            left_keys,
            right_keys,
            on,
            filter: None,
        });
        Ok(Built {
            plan: self.node(node, types, cost),
            columns,
            order: Vec::new(),
        })
    }

    /// `kept`: the right side's rows are kept, so that reading them again costs little.
    fn nested_loop(
        &mut self,
        kind: JoinKind,
        left: Built,
        right: Built,
        free: Vec<(crate::expr::ParamId, crate::expr::Var)>,
        on: Vec<Expr>,
        kept: bool,
    ) -> Result<Built> {
        let params = self.arguments(free, &left.columns)?;
        let both = left.columns.clone().join(&right.columns);
        let on = Expr::all_of(self.place_all(on, &both)?);
        let (columns, types) = joined(kind, &left, &right, both);
        let selective = on.as_ref().map_or(1.0, cost::selectivity);
        let rows = match kind {
            JoinKind::Inner => cost::at_least_one(left.rows() * right.rows() * selective),
            _ => join_rows(kind, left.rows(), right.rows(), false),
        };
        let again = if kept {
            let pair = match left.rows() * right.rows() <= MOST_PAIRS {
                true => cost::OPERATOR,
                // Beyond that the work on each pair decides what is to be done.
                false => cost::TUPLE + on.as_ref().map_or(1.0, operators) * cost::OPERATOR,
            };
            right.rows() * pair
        } else {
            right.plan.cost.total
        };
        let cost = Cost {
            startup: left.plan.cost.startup,
            total: left.plan.cost.total
                + right.plan.cost.total
                + left.rows() * again
                + rows * cost::TUPLE,
            rows,
            width: cost::width(&types),
        };
        let order = left.order;
        let node = Node::NestedLoop(NestedLoop {
            kind,
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            params,
            on,
            filter: None,
        });
        Ok(Built {
            plan: self.node(node, types, cost),
            columns,
            order,
        })
    }

    fn materialize(&mut self, input: Built) -> Built {
        let types = input.types().to_vec();
        let cost = input.plan.cost;
        let node = Node::Materialize {
            input: Box::new(input.plan),
        };
        Built {
            plan: self.node(node, types, cost),
            ..input
        }
    }

    fn semi_join(&mut self, left: Built, join: SemiJoin) -> Result<Built> {
        let SemiJoin {
            kind,
            right,
            own,
            on,
        } = join;
        let (right, free) = self.attached(|p| match right {
            super::subquery::Inner::From(items) => p.from(&items, own, &Wanted::default()),
            super::subquery::Inner::Query(query) => {
                let inner = p.query(&query)?;
                Ok(rename(inner.plan, query.output))
            }
        })?;
        if free.iter().any(|(_, var)| left.columns.has_rel(var.rel)) {
            return self.nested_loop(kind, left, right, free, on, false);
        }
        // What the inner side asks for from further out is the same for all rows.
        let params = self.arguments(free, &left.columns)?;
        let joined = self.join_built(kind, left, right, on)?;
        if params.is_empty() {
            return Ok(joined);
        }
        let one = self.one_row();
        let types = joined.plan.types.clone();
        let cost = joined.plan.cost;
        let node = Node::NestedLoop(NestedLoop {
            kind: JoinKind::Inner,
            left: Box::new(one.plan),
            right: Box::new(joined.plan),
            params,
            on: None,
            filter: None,
        });
        Ok(Built {
            plan: self.node(node, types, cost),
            columns: joined.columns,
            order: Vec::new(),
        })
    }
}

/// How many operators a condition asks, about.
fn operators(condition: &Expr) -> f64 {
    match condition {
        Expr::And(parts) | Expr::Or(parts) => parts.iter().map(operators).sum(),
        _ => 1.0,
    }
}

/// A plan's columns under the name of the item that it stands for.
pub(super) fn rename(plan: super::Plan, rel: RelId) -> Built {
    let columns = Columns::of(rel, 1..=plan.types.len() as i16);
    Built {
        plan,
        columns,
        order: Vec::new(),
    }
}

fn joined(
    kind: JoinKind,
    left: &Built,
    right: &Built,
    both: Columns,
) -> (Columns, Vec<throng_types::SqlType>) {
    if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
        return (left.columns.clone(), left.types().to_vec());
    }
    (both, [left.types(), right.types()].concat())
}

fn join_rows(kind: JoinKind, left: f64, right: f64, equal: bool) -> f64 {
    let inner = if equal {
        left.max(right)
    } else {
        left * right * 0.1
    };
    cost::at_least_one(match kind {
        JoinKind::Semi | JoinKind::Anti => left * 0.5,
        JoinKind::Left => inner.max(left),
        JoinKind::Right => inner.max(right),
        JoinKind::Full => inner.max(left + right),
        JoinKind::Inner => inner,
    })
}

/// Whether, of the relations joined here, a condition speaks of these alone.
fn is_about(condition: &Expr, rels: &[RelId], local: &[RelId]) -> bool {
    rels_of(condition)
        .iter()
        .all(|rel| rels.contains(rel) || !local.contains(rel))
}

fn is_equality(condition: &Expr) -> bool {
    matches!(condition, Expr::Op { op, .. } if op.strategy == Some(Strategy::Equal))
}

fn connects(condition: &Expr, joined: &[RelId], rels: &[RelId], local: &[RelId]) -> bool {
    let about = rels_of(condition);
    let mut both = joined.to_vec();
    both.extend(rels);
    is_about(condition, &both, local)
        && about.iter().any(|rel| joined.contains(rel))
        && about.iter().any(|rel| rels.contains(rel))
}

/// A condition with a subquery about the relations that are joined.
fn runs_for_each_row(condition: &Expr, local: &[RelId]) -> bool {
    condition.any(&mut |e| match e {
        Expr::Subquery(sub) => {
            let mut refers = false;
            sub.query
                .for_each_var(&mut |var| refers |= local.contains(&var.rel));
            refers
        }
        _ => false,
    })
}

/// `column = a OR column = b` as `column = ANY (ARRAY[a, b])`, which an index on a column of the one relation in `rels` serves.
fn as_any(condition: &Expr, rels: &[RelId]) -> Option<Expr> {
    let (Expr::Or(arms), [rel]) = (condition, rels) else {
        return None;
    };
    let mut items = Vec::with_capacity(arms.len());
    let mut first: Option<(&'static Operator, Expr)> = None;
    for arm in arms {
        let Expr::Op { op, args, .. } = arm else {
            return None;
        };
        let (column, Strategy::Equal, value) = comparison(arm, *rel)? else {
            return None;
        };
        let left = args.first().filter(|left| column > 0 && *left != value)?;
        match &first {
            None => first = Some((*op, left.clone())),
            Some((same, column)) if same.oid == op.oid && column == left => {}
            Some(_) => return None,
        }
        items.push(value.clone());
    }
    let (op, left) = first?;
    let array = throng_types::sqltype::array_of(op.right)?;
    Some(Expr::ArrayCompare {
        op,
        left: Box::new(left),
        array: Box::new(Expr::Array(items, throng_types::SqlType::plain(array))),
        all: false,
    })
}

/// A condition that must not be met earlier or more often than it is written.
fn has_volatile(condition: &Expr) -> bool {
    condition.any(&mut super::fold::is_volatile)
}

fn refers_to(item: &FromItem, columns: &Columns) -> bool {
    let mut found = false;
    item.for_each_expr(&mut |e| e.for_each_var(&mut |var| found |= columns.has_rel(var.rel)));
    found
}

/// An equality between the two sides of a join.
struct HashKey {
    left: Expr,
    right: Expr,
    condition: Expr,
}

/// Splits join conditions into equalities that a hash table serves, and the rest.
fn hash_keys(on: Vec<Expr>, left: &Columns, right: &Columns) -> (Vec<HashKey>, Vec<Expr>) {
    let side = |expr: &Expr, columns: &Columns, other: &Columns| {
        let mut rels = rels_of(expr);
        rels.retain(|rel| columns.has_rel(*rel) || other.has_rel(*rel));
        !rels.is_empty() && rels.iter().all(|rel| columns.has_rel(*rel))
    };
    let mut keys = Vec::new();
    let mut rest = Vec::new();
    for condition in on {
        let pair = match &condition {
            Expr::Op { op, args, .. } if op.strategy == Some(Strategy::Equal) => match &args[..] {
                [a, b] if same_keys(a.ty(), b.ty()) => {
                    if side(a, left, right) && side(b, right, left) {
                        Some((a.clone(), b.clone()))
                    } else if side(b, left, right) && side(a, right, left) {
                        Some((b.clone(), a.clone()))
                    } else {
                        None
                    }
                }
                _ => None,
            },
            _ => None,
        };
        match pair {
            Some((left, right)) => keys.push(HashKey {
                left,
                right,
                condition,
            }),
            None => rest.push(condition),
        }
    }
    (keys, rest)
}
