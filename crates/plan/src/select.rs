//! Queries: SELECT, VALUES, set operations, with what comes after them.
//!
//! ```text
//! FROM, WHERE ─► Aggregate ─► HAVING ─► Windows ─► Project (targets, then sort keys that are none, then tids to lock)
//!             ─► Distinct ─► Sort ─► LockRows ─► Limit ─► Project (targets alone)
//! ```

use throng_syntax::vocabulary::TableLock;
use throng_types::{Result, SqlType, interrupt, oid, stack};

use super::access::Wanted;
use super::cost;
use super::grouping::Grouped;
use super::row_source::{Source, tables_in};
use super::window::sort_ranks;
use super::{
    Append, AppendInput, Built, Columns, Cost, LockRowsNode, LockTarget, Node, OrderedBy,
    OutputColumn, Planner, SetExpr,
};
use throng_bind::expr::{Expr, SortKey, Var, system};
use throng_bind::query::{Body, Distinct, FromItem, Query, RelKind, RowLock, Select, SetOp};

/// The sides of a query that is no more than a UNION, in one whose equal rows count each (`all`) or
/// once.
fn union_sides(query: &Query, all: bool) -> Option<[&Query; 2]> {
    let plain = query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locks.is_empty()
        && query.ctes.is_empty();
    match &query.body {
        Body::SetOp {
            op: SetOp::Union,
            all: inner,
            left,
            right,
            ..
        } if plain && (*inner || !all) => Some([left, right]),
        _ => None,
    }
}

fn is_chain(left: &Query, right: &Query, all: bool) -> bool {
    union_sides(left, all).is_some() || union_sides(right, all).is_some()
}

impl Planner<'_> {
    pub(super) fn query(&mut self, query: &Query) -> Result<Built> {
        stack::check()?;
        interrupt::poll()?;
        match &query.body {
            Body::Select(select) => self.select(query, select),
            Body::Values { rows, columns } => {
                let nothing = Columns::default();
                let rows: Vec<Vec<Expr>> = rows
                    .iter()
                    .map(|row| self.place_all(row.clone(), &nothing))
                    .collect::<Result<_>>()?;
                let types: Vec<SqlType> = columns.iter().map(|t| t.expr.ty()).collect();
                let count = rows.len() as f64;
                let total = count * cost::TUPLE;
                let cost = Cost {
                    startup: 0.0,
                    total,
                    rows: count,
                    width: cost::width(&types),
                };
                let plan = self.node(Node::Values { rows }, types, cost);
                self.finish_set(plan, query)
            }
            Body::SetOp {
                op: SetOp::Union,
                all,
                left,
                right,
                columns,
            } if is_chain(left, right, *all) => {
                let types = columns.iter().map(|t| t.expr.ty()).collect();
                self.union_chain(query, [left, right], *all, types)
            }
            Body::SetOp {
                op,
                all,
                left,
                right,
                columns,
            } => {
                let types: Vec<SqlType> = columns.iter().map(|t| t.expr.ty()).collect();
                let left = self.query(left)?.plan;
                let right = self.query(right)?.plan;
                let rows = match op {
                    SetOp::Union => left.cost.rows + right.cost.rows,
                    SetOp::Intersect => left.cost.rows.min(right.cost.rows),
                    SetOp::Except => left.cost.rows,
                };
                let total = left.cost.total + right.cost.total + rows * cost::TUPLE;
                let cost = Cost {
                    startup: 0.0,
                    total,
                    rows,
                    width: cost::width(&types),
                };
                let (left, right) = (Box::new(left), Box::new(right));
                let node = Node::SetOp {
                    op: *op,
                    all: *all,
                    left,
                    right,
                };
                let plan = self.node(node, types, cost);
                self.finish_set(plan, query)
            }
        }
    }

    /// UNIONs of UNIONs as one `Append`, rows that are equal left out above it where they count
    /// once.
    fn union_chain(
        &mut self,
        query: &Query,
        sides: [&Query; 2],
        all: bool,
        types: Vec<SqlType>,
    ) -> Result<Built> {
        let mut inputs = Vec::new();
        let mut cost = Cost {
            width: cost::width(&types),
            ..Cost::default()
        };
        let [left, right] = sides;
        let mut rest = vec![right, left];
        while let Some(branch) = rest.pop() {
            if let Some([left, right]) = union_sides(branch, all) {
                rest.extend([right, left]);
                continue;
            }
            let plan = self.query(branch)?.plan;
            cost.rows += plan.cost.rows;
            cost.total += plan.cost.total + plan.cost.rows * cost::TUPLE;
            inputs.push(AppendInput {
                rel: self.new_rel(),
                leaf: inputs.len(),
                plan,
                slots: Vec::new(),
            });
        }
        let pruning = None;
        let node = Node::Append(Box::new(Append { inputs, pruning }));
        let plan = self.node(node, types, cost);
        if all {
            return self.finish_set(plan, query);
        }
        let slot = |(at, ty): (usize, &SqlType)| Expr::Slot(at as u32, *ty);
        let keys = plan.types.iter().enumerate().map(slot).collect();
        let built = Built {
            plan,
            columns: Columns::default(),
            order: Vec::new(),
        };
        let distinct = self.distinct(built, keys);
        self.finish_set(distinct.plan, query)
    }

    /// ORDER BY and LIMIT over VALUES and set operations: keys are output columns.
    fn finish_set(&mut self, plan: super::Plan, query: &Query) -> Result<Built> {
        let columns = Columns::of(query.output, 1..=plan.types.len() as i16);
        let built = Built {
            plan,
            columns,
            order: Vec::new(),
        };
        let mut keys = Vec::new();
        for key in &query.order {
            let expr = self.place(key.expr.clone(), &built.columns)?;
            keys.push(SortKey {
                expr,
                ..key.clone()
            });
        }
        let ties = keys.clone();
        let sorted = self.sort(built, keys);
        self.limit(sorted, query, ties)
    }

    fn select(&mut self, query: &Query, select: &Select) -> Result<Built> {
        let sources = match query.locks.is_empty() {
            true => Vec::new(),
            false => tables_in(&select.from),
        };
        for (rel, table, only) in &sources {
            self.need_row_source(*rel, table, *only);
        }
        let mut conditions = Vec::new();
        if let Some(filter) = &select.filter {
            filter.clone().conjuncts(&mut conditions);
        }
        // A grouping set without the column gives it as NULL, whatever the rows had.
        let mut order = match select.grouping_sets.is_empty() {
            true => super::order::deciding(&query.order, &conditions),
            false => query.order.clone(),
        };
        let wanted = self.wanted(query, select, &order);
        let mut built = self.from(&select.from, conditions, &wanted)?;

        let mut targets: Vec<Expr> = select.targets.iter().map(|t| t.expr.clone()).collect();
        let mut distinct_on = match &select.distinct {
            Distinct::On(exprs) => exprs.clone(),
            _ => Vec::new(),
        };
        let ranks = sort_ranks(query, select);
        let mut windows = select.windows.clone();
        if select.grouped {
            let mut grouped = Grouped::new(
                self.new_rel(),
                self.new_rel(),
                select.group_by.clone(),
                select.grouping_sets.clone(),
            );
            let mut rewrite = |e: &mut Expr| {
                *e = grouped.rewrite(std::mem::replace(e, Expr::bool(true)));
            };
            targets.iter_mut().for_each(&mut rewrite);
            order.iter_mut().for_each(|k| rewrite(&mut k.expr));
            distinct_on.iter_mut().for_each(&mut rewrite);
            for window in &mut windows {
                window.for_each_expr_mut(&mut rewrite);
            }
            let mut having = Vec::new();
            if let Some(condition) = &select.having {
                let mut condition = condition.clone();
                rewrite(&mut condition);
                condition.conjuncts(&mut having);
            }
            let lifted = select.lifted.iter().cloned();
            let lifted: Vec<Expr> = lifted.map(|e| grouped.rewrite(e)).collect();
            built = self.aggregate(built, grouped)?;
            for (expr, number) in lifted.iter().zip(1..) {
                if let Expr::Var(var) = expr {
                    let slot = built.columns.get(var.rel, var.column).unwrap_or_default();
                    built.columns.also((query.output, number), slot);
                }
            }
            built = self.filter(built, having)?;
        }
        let above = targets
            .iter_mut()
            .chain(order.iter_mut().map(|k| &mut k.expr))
            .chain(&mut distinct_on)
            .collect();
        built = self.windows(built, windows, &ranks, above)?;
        let sorted = is_sorted(&built.order, &order);
        let width = targets.len();
        let mut exprs = targets;
        let place =
            |exprs: &mut Vec<Expr>, wanted: Expr| match exprs.iter().position(|e| *e == wanted) {
                Some(at) => at,
                None => {
                    exprs.push(wanted);
                    exprs.len() - 1
                }
            };
        let keys: Vec<(usize, SortKey)> = order
            .into_iter()
            .map(|key| (place(&mut exprs, key.expr.clone()), key))
            .collect();
        let distinct_on: Vec<usize> = distinct_on
            .into_iter()
            .map(|expr| place(&mut exprs, expr))
            .collect();
        let mut told = Vec::new();
        for source in sources {
            let (rel, table, only) = source;
            let mut slot = |column, ty| {
                let ty = SqlType::plain(ty);
                let is_there = built.columns.get(rel, column).is_some();
                is_there.then(|| place(&mut exprs, Expr::Var(Var { rel, column, ty })) as u32)
            };
            // A join that nobody needs is not made.
            let Some(tid) = slot(system::CTID, oid::TID) else {
                continue;
            };
            let tableoid = match !only && self.has_kin(table) {
                true => slot(system::TABLEOID, oid::OID),
                false => None,
            };
            told.push((source, tid, tableoid));
        }

        let Built { plan, columns, .. } = built;
        let mut plan = self.targets(plan, exprs, &columns)?;
        let slot = |plan: &super::Plan, at: usize| Expr::Slot(at as u32, plan.types[at]);
        let sort_keys = |plan: &super::Plan| -> Vec<SortKey> {
            keys.iter()
                .map(|(at, key)| SortKey {
                    expr: slot(plan, *at),
                    ..key.clone()
                })
                .collect()
        };
        let mut built = Built {
            plan,
            columns: Columns::default(),
            order: Vec::new(),
        };
        match &select.distinct {
            Distinct::No if sorted => {}
            Distinct::No => {
                let keys = sort_keys(&built.plan);
                built = self.sort(built, keys);
            }
            Distinct::All => {
                let all: Vec<Expr> = (0..width).map(|at| slot(&built.plan, at)).collect();
                built = self.distinct(built, all);
                let keys = sort_keys(&built.plan);
                built = self.sort(built, keys);
            }
            // The first row of each group in the order asked for.
            Distinct::On(_) => {
                let keys = sort_keys(&built.plan);
                built = self.sort(built, keys);
                let on = distinct_on
                    .iter()
                    .map(|at| slot(&built.plan, *at))
                    .collect();
                built = self.distinct(built, on);
            }
        }
        plan = built.plan;
        if !query.locks.is_empty() {
            plan = self.lock_rows(plan, &query.locks, told)?;
        }
        let ties = sort_keys(&plan);
        let built = self.limit(
            Built {
                plan,
                columns: Columns::default(),
                order: Vec::new(),
            },
            query,
            ties,
        )?;
        let exprs = (0..width).map(|at| slot(&built.plan, at)).collect();
        let plan = self.project(built.plan, exprs);
        let columns = Columns::of(query.output, 1..=width as i16);
        Ok(Built {
            plan,
            columns,
            order: Vec::new(),
        })
    }

    /// The order that would spare a sort: of plain columns of a single table.
    fn wanted(&self, query: &Query, select: &Select, keys: &[SortKey]) -> Wanted {
        let plain = !select.grouped && select.windows.is_empty() && select.distinct == Distinct::No;
        let limit = match &query.limit {
            Some(Expr::Const(value, _)) => value.as_i64().map(|n| n.max(1) as f64),
            Some(_) => Some(100.0),
            None => None,
        };
        let mut order = Vec::new();
        for key in keys {
            let Expr::Var(var) = &key.expr else {
                return Wanted::default();
            };
            order.push(OrderedBy {
                rel: var.rel,
                column: var.column,
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
        }
        let has_sets = select
            .targets
            .iter()
            .any(|t| t.expr.any(&mut |e| e.is_set()));
        if plain && !has_sets {
            Wanted { order, limit }
        } else {
            Wanted::default()
        }
    }

    /// The select list, set-returning functions included.
    pub(super) fn targets(
        &mut self,
        input: super::Plan,
        exprs: Vec<Expr>,
        columns: &Columns,
    ) -> Result<super::Plan> {
        if super::sets::are_nested(&exprs) {
            return self.nested_sets(input, exprs, columns);
        }
        if !exprs.iter().any(|e| e.is_set()) {
            let exprs = self.place_all(exprs, columns)?;
            return Ok(self.project(input, exprs));
        }
        let mut set_exprs = Vec::with_capacity(exprs.len());
        for expr in exprs {
            set_exprs.push(match expr {
                Expr::SetCall { func, args, ty } => SetExpr::Set {
                    func,
                    args: self.place_all(args, columns)?,
                    ty,
                },
                Expr::SetRoutine(mut call) => {
                    let args = std::mem::take(&mut call.args);
                    call.args = self.place_all(args, columns)?;
                    SetExpr::Routine(call)
                }
                scalar => SetExpr::Scalar(self.place(scalar, columns)?),
            });
        }
        let types: Vec<SqlType> = set_exprs
            .iter()
            .map(|e| match e {
                SetExpr::Scalar(e) => e.ty(),
                SetExpr::Set { ty, .. } => *ty,
                SetExpr::Routine(call) => call.ty,
            })
            .collect();
        let rows = input.cost.rows * 1000.0;
        let total = input.cost.total + rows * cost::TUPLE;
        let cost = Cost {
            startup: input.cost.startup,
            total,
            rows,
            width: cost::width(&types),
        };
        Ok(self.node(
            Node::ProjectSet {
                input: Box::new(input),
                exprs: set_exprs,
            },
            types,
            cost,
        ))
    }

    pub(super) fn sort(&mut self, input: Built, keys: Vec<SortKey>) -> Built {
        if keys.is_empty() {
            return input;
        }
        let Built { plan, columns, .. } = input;
        let cost = cost::sort(&plan.cost);
        let types = plan.types.clone();
        let plan = self.node(
            Node::Sort {
                input: Box::new(plan),
                keys,
            },
            types,
            cost,
        );
        Built {
            plan,
            columns,
            order: Vec::new(),
        }
    }

    fn distinct(&mut self, input: Built, keys: Vec<Expr>) -> Built {
        let Built {
            plan,
            columns,
            order,
        } = input;
        let types = plan.types.clone();
        let cost = cost::per_row(&plan.cost, keys.len() as f64);
        let node = Node::Distinct {
            input: Box::new(plan),
            keys,
            sorted: false,
        };
        Built {
            plan: self.node(node, types, cost),
            columns,
            order,
        }
    }

    /// `keys`: the query's order over the input row.
    fn limit(&mut self, input: Built, query: &Query, keys: Vec<SortKey>) -> Result<Built> {
        if query.limit.is_none() && query.offset.is_none() {
            return Ok(input);
        }
        let nothing = Columns::default();
        let limit = query
            .limit
            .clone()
            .map(|e| self.place(e, &nothing))
            .transpose()?;
        let offset = query
            .offset
            .clone()
            .map(|e| self.place(e, &nothing))
            .transpose()?;
        let Built {
            plan,
            columns,
            order,
        } = input;
        let rows = match &limit {
            Some(Expr::Const(value, _)) => {
                value.as_i64().map_or(plan.cost.rows, |n| n.max(0) as f64)
            }
            _ => plan.cost.rows * 0.1,
        };
        let cost = Cost {
            total: plan.cost.until(rows),
            rows: rows.min(plan.cost.rows),
            ..plan.cost
        };
        let types = plan.types.clone();
        let node = Node::Limit {
            input: Box::new(plan),
            limit,
            offset,
            ties: if query.ties { keys } else { Vec::new() },
        };
        Ok(Built {
            plan: self.node(node, types, cost),
            columns,
            order,
        })
    }

    /// `sources`: which tables' rows the input's are made of, and where they tell it.
    fn lock_rows(
        &mut self,
        input: super::Plan,
        locks: &[RowLock],
        sources: Vec<(Source<'_>, u32, Option<u32>)>,
    ) -> Result<super::Plan> {
        let (mut rows, mut others) = (Vec::new(), Vec::new());
        for (source, tid, tableoid) in sources {
            let lock = locks.iter().find(|lock| lock.rel == source.0);
            let Some(lock) = lock else {
                others.push(self.row_source(source, tid, tableoid, TableLock::AccessShare)?);
                continue;
            };
            self.lock(source.1.oid, TableLock::RowShare);
            self.row_lock.get_or_insert(lock.strength);
            rows.push(LockTarget {
                source: self.row_source(source, tid, tableoid, TableLock::RowShare)?,
                strength: lock.strength,
                wait: lock.wait,
            });
        }
        // In the order in which the clauses name them.
        let place = |row: &LockTarget| locks.iter().position(|lock| lock.rel == row.source.rel);
        rows.sort_by_key(place);
        let (types, cost) = (input.types.clone(), input.cost);
        Ok(self.node(
            Node::LockRows(Box::new(LockRowsNode {
                input,
                rows,
                others,
            })),
            types,
            cost,
        ))
    }
}

pub(super) fn output_columns(query: &Query) -> Vec<OutputColumn> {
    let targets = match &query.body {
        Body::Select(select) => &select.targets,
        Body::Values { columns, .. } | Body::SetOp { columns, .. } => columns,
    };
    let from = match &query.body {
        Body::Select(select) => &select.from[..],
        _ => &[],
    };
    targets
        .iter()
        .map(|t| output_column(&t.name, &t.expr, from))
        .collect()
}

/// What a client is told of an output column: where it comes from, if it is a table's column as it
/// is.
pub(super) fn output_column(name: &str, expr: &Expr, from: &[FromItem]) -> OutputColumn {
    let mut column = OutputColumn {
        name: name.to_owned(),
        ty: expr.ty(),
        table: throng_types::Oid::NONE,
        attnum: 0,
    };
    if let Expr::Var(var) = expr {
        let table = from.iter().find_map(|item| table_of(item, var.rel));
        if let Some(table) = table {
            column.table = table;
            column.attnum = var.column;
        }
    }
    column
}

fn table_of(item: &FromItem, wanted: throng_bind::expr::RelId) -> Option<throng_types::Oid> {
    match item {
        FromItem::Rel(rel) if rel.id == wanted => match &rel.kind {
            RelKind::Table(table) => Some(table.oid),
            RelKind::View { view, .. } => Some(view.oid),
            RelKind::Virtual(table) => Some(table.oid),
            _ => None,
        },
        FromItem::Rel(_) => None,
        FromItem::Join { left, right, .. } => {
            table_of(left, wanted).or_else(|| table_of(right, wanted))
        }
    }
}

pub(super) fn is_sorted(given: &[OrderedBy], wanted: &[SortKey]) -> bool {
    wanted.len() <= given.len()
        && wanted.iter().zip(given).all(|(want, have)| {
            matches!(&want.expr, Expr::Var(var) if var.rel == have.rel && var.column == have.column)
                && want.descending == have.descending
                && want.nulls_first == have.nulls_first
        })
}
