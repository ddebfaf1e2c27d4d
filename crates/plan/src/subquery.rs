//! Subqueries in conditions: joins where SQL's three values allow it, else plans that expressions
//! call.

use throng_bind::fold::is_steady;
use throng_types::Result;
use throng_types::key::same_keys;

use super::join::rels_of;
use super::{Columns, Node, Plan, Planner};
use throng_bind::expr::{
    Expr, ParamId, RelId, SubPlanKind, SubPlanRef, Subquery, SubqueryKind, Var, VolatileSubPlan,
};
use throng_bind::fold::is_volatile;
use throng_bind::query::walk::QueryPartMut;
use throng_bind::query::{
    Body, BoundQuery, CteBody, Distinct, FromItem, JoinKind, Query, RelKind, Select,
};
use throng_values::func::{Operator, Strategy};

/// A condition that keeps rows with (or without) a partner in a subquery.
pub(super) struct SemiJoin {
    pub kind: JoinKind,
    pub right: Inner,
    /// Conditions on the inner side alone.
    pub own: Vec<Expr>,
    /// Conditions on both sides.
    pub on: Vec<Expr>,
}

/// The inner side of a semi-join.
pub(super) enum Inner {
    From(Vec<FromItem>),
    Query(Box<Query>),
}

impl Inner {
    /// The entries whose columns conditions may speak of.
    pub fn rels(&self) -> Vec<RelId> {
        let mut rels = Vec::new();
        match self {
            Inner::From(items) => items.iter().for_each(|item| item.rels(&mut rels)),
            Inner::Query(query) => rels.push(query.output),
        }
        rels
    }
}

/// A SELECT of which only whether it has rows matters: its FROM and WHERE are all of it.
pub(super) fn bare_select(query: &Query) -> Option<&Select> {
    plain_select(query).filter(|select| !select.from.is_empty())
}

/// The same, be there a FROM or not.
fn plain_select(query: &Query) -> Option<&Select> {
    let Body::Select(select) = &query.body else {
        return None;
    };
    let plain = !select.grouped
        && select.distinct == Distinct::No
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locks.is_empty()
        && query.outside.is_empty()
        && !select
            .targets
            .iter()
            .any(|t| t.expr.any(&mut |e| e.is_set()));
    plain.then_some(select)
}

/// Leaves of the selects that are only asked whether they have rows nothing else to compute.
pub(super) fn trim_exists(query: &mut BoundQuery) {
    let mut trim = |part: QueryPartMut<'_>| {
        if let QueryPartMut::Expr(Expr::Subquery(sub)) = part
            && sub.kind == SubqueryKind::Exists
            && plain_select(&sub.query).is_some()
            && let Body::Select(select) = &mut sub.query.body
        {
            select.targets.truncate(1);
            for target in &mut select.targets {
                target.expr = Expr::bool(true);
            }
            sub.query.order.clear();
        }
    };
    query.kind.walk_mut(&mut trim);
    for cte in &mut query.ctes {
        match &mut cte.body {
            CteBody::Query(query) => query.walk_mut(&mut trim),
            CteBody::Recursive { init, term, .. } => {
                init.walk_mut(&mut trim);
                term.walk_mut(&mut trim);
            }
            CteBody::Write(kind) => kind.walk_mut(&mut trim),
        }
    }
}

impl Planner<'_> {
    /// Takes out of the conjuncts those that can be semi- and anti-joins of the relations in
    /// `local`. `present`: items none of which may be missing from a row.
    pub(super) fn semi_joins(
        &self,
        conditions: Vec<Expr>,
        local: &[RelId],
        present: &[&FromItem],
    ) -> (Vec<SemiJoin>, Vec<Expr>) {
        let mut joins = Vec::new();
        let mut rest = Vec::new();
        for condition in conditions {
            match semi_join(&condition, local, present) {
                Some(join) => joins.push(join),
                None => rest.push(condition),
            }
        }
        (joins, rest)
    }

    /// A subquery in an expression, as a plan of its own.
    pub(super) fn place_subquery(&mut self, subquery: Subquery, columns: &Columns) -> Result<Expr> {
        let Subquery { query, kind, ty } = subquery;
        if kind == SubqueryKind::Exists
            && let Some(members) = self.as_membership(&query)?
        {
            return Ok(Expr::IsBool {
                arg: Box::new(self.place_subquery(members, columns)?),
                value: Some(true),
                negated: false,
            });
        }
        let before = self.subplans.len() as u32;
        let (built, free) = self.attached(|p| p.query(&query))?;
        self.subplans.push(built.plan);
        let plan = self.subplans.len() as u32 - 1;
        let volatile = self.volatile_subplan(&query, before, &free, columns);
        let args = self.arguments(free, columns)?;
        let kind = match kind {
            SubqueryKind::Exists => SubPlanKind::Exists,
            SubqueryKind::Scalar => SubPlanKind::Scalar,
            SubqueryKind::Array => SubPlanKind::Array,
            SubqueryKind::Any { left, compare } => SubPlanKind::Any {
                left: self.place_all(left, columns)?,
                compare,
            },
            SubqueryKind::All { left, compare } => SubPlanKind::All {
                left: self.place_all(left, columns)?,
                compare,
            },
        };
        Ok(Expr::SubPlan(Box::new(SubPlanRef {
            plan,
            kind,
            args,
            ty,
            volatile,
        })))
    }

    /// Whether a subquery planned since there were `before` subplans runs for each row anew. One
    /// that reads nothing of the row runs once in any case, as PostgreSQL's InitPlans do.
    fn volatile_subplan(
        &self,
        query: &Query,
        before: u32,
        free: &[(ParamId, Var)],
        columns: &Columns,
    ) -> Option<VolatileSubPlan> {
        if free.is_empty() {
            return None;
        }
        let of_row = |var: &Var| columns.get(var.rel, var.column).is_some();
        let mut ctes = Vec::new();
        let mut volatile = !is_steady(query);
        for (shared, cte) in self.shared.iter().zip(self.ctes.iter()) {
            let Some(shared) = shared else { continue };
            if shared.subplan >= before && shared.free.iter().any(|(_, var)| of_row(var)) {
                ctes.push(shared.subplan);
                volatile |= !cte.body.is_steady();
            }
        }
        volatile.then_some(VolatileSubPlan { ctes })
    }

    /// The WITH queries of the right side of a join that read the left row, if one of them is
    /// volatile.
    pub(super) fn volatile_ctes(&self, right: &Plan, left: &Columns) -> Vec<u32> {
        let of_left = |(_, var): &(ParamId, Var)| left.get(var.rel, var.column).is_some();
        let all = self.shared.iter().zip(self.ctes.iter());
        let of_left: Vec<_> = all
            .filter_map(|(shared, cte)| Some((shared.as_ref()?, cte)))
            .filter(|(shared, _)| shared.free.iter().any(of_left))
            .collect();
        if of_left.iter().all(|(_, cte)| cte.body.is_steady()) {
            return Vec::new();
        }
        let subplans = of_left.iter().map(|(shared, _)| shared.subplan);
        subplans
            .filter(|subplan| self.reads_subplan(right, *subplan))
            .collect()
    }

    /// Whether a plan reads a WITH query, itself or in a subquery.
    fn reads_subplan(&self, plan: &Plan, wanted: u32) -> bool {
        let inside = |at: u32| {
            let subplan = self.subplans.get(at as usize);
            subplan.is_some_and(|subplan| self.reads_subplan(subplan, wanted))
        };
        if let Node::CteScan { subplan, .. } = &plan.node
            && (*subplan == wanted || inside(*subplan))
        {
            return true;
        }
        let mut found = false;
        plan.own_exprs(&mut |expr| {
            found = found
                || expr.any(&mut |e| match e {
                    Expr::SubPlan(sub) => inside(sub.plan),
                    _ => false,
                });
        });
        found
            || plan
                .children()
                .iter()
                .any(|child| self.reads_subplan(child, wanted))
    }
}

fn semi_join(condition: &Expr, local: &[RelId], present: &[&FromItem]) -> Option<SemiJoin> {
    match condition {
        Expr::Subquery(sub) => match &sub.kind {
            SubqueryKind::Exists => exists(&sub.query, JoinKind::Semi, local),
            SubqueryKind::Any { left, compare } => {
                any(&sub.query, left, compare, JoinKind::Semi, local)
            }
            _ => None,
        },
        Expr::Not(inner) => match &**inner {
            Expr::Subquery(sub) => match &sub.kind {
                SubqueryKind::Exists => exists(&sub.query, JoinKind::Anti, local),
                SubqueryKind::Any { left, compare }
                    if is_never_unknown(&sub.query, left, compare, present) =>
                {
                    any(&sub.query, left, compare, JoinKind::Anti, local)
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Whether an IN is true or false of every row: both sides are columns declared NOT NULL, of tables
/// that are not missing. Then a row without a partner is one of which NOT IN is true.
fn is_never_unknown(
    query: &Query,
    left: &[Expr],
    compare: &[&Operator],
    present: &[&FromItem],
) -> bool {
    let Some(select) = bare_select(query) else {
        return false;
    };
    let from: Vec<&FromItem> = select.from.iter().collect();
    let columns = query.columns();
    left.iter().all(|e| is_never_null(e, present))
        && select.targets.len() == left.len()
        && select.targets.iter().all(|t| is_never_null(&t.expr, &from))
        && compare
            .iter()
            .zip(left.iter().zip(&columns))
            .all(|(op, (left, column))| {
                op.strategy == Some(Strategy::Equal) && op.strict && same_keys(left.ty(), column.ty)
            })
}

pub(super) fn has_volatile(expr: &Expr) -> bool {
    expr.any(&mut is_volatile)
}

/// Whether an expression is a column declared NOT NULL of one of the items.
fn is_never_null(expr: &Expr, items: &[&FromItem]) -> bool {
    match expr {
        Expr::Cast { arg, to, .. } if same_keys(arg.ty(), *to) => is_never_null(arg, items),
        Expr::Var(var) => items.iter().any(|item| match item {
            FromItem::Rel(rel) if rel.id == var.rel => match &rel.kind {
                RelKind::Table(table) => usize::try_from(var.column - 1)
                    .ok()
                    .and_then(|at| table.columns.get(at))
                    .is_some_and(|column| column.not_null && !column.not_null_alone),
                _ => false,
            },
            _ => false,
        }),
        _ => false,
    }
}

/// A row's partners are the rows of a query whose columns are equal to `left`.
fn any(
    query: &Query,
    left: &[Expr],
    compare: &[&'static Operator],
    kind: JoinKind,
    local: &[RelId],
) -> Option<SemiJoin> {
    let mut correlated = false;
    query.for_each_var(&mut |var| correlated |= local.contains(&var.rel));
    let about_us = left
        .iter()
        .all(|e| rels_of(e).iter().any(|rel| local.contains(rel)));
    if correlated || !about_us || left.iter().any(has_volatile) {
        return None;
    }
    let columns = query.columns();
    let on = left
        .iter()
        .zip(compare)
        .zip(columns.iter().zip(1..))
        .map(|((left, op), (column, number))| Expr::Op {
            op,
            args: vec![
                left.clone(),
                Expr::Var(Var {
                    rel: query.output,
                    column: number,
                    ty: column.ty,
                }),
            ],
            ty: throng_types::SqlType::BOOL,
        })
        .collect();
    Some(SemiJoin {
        kind,
        right: Inner::Query(Box::new(query.clone())),
        own: Vec::new(),
        on,
    })
}

fn exists(query: &Query, kind: JoinKind, local: &[RelId]) -> Option<SemiJoin> {
    let select = bare_select(query)?;
    // A lateral reference from inside FROM would have to be computed for each row: a subplan does
    // that.
    let mut from_refers = false;
    for item in &select.from {
        item.for_each_expr(&mut |e| {
            e.for_each_var(&mut |var| from_refers |= local.contains(&var.rel))
        });
    }
    let mut conditions = Vec::new();
    if let Some(filter) = &select.filter {
        filter.clone().conjuncts(&mut conditions);
    }
    let (on, own): (Vec<Expr>, Vec<Expr>) = conditions
        .into_iter()
        .partition(|c| rels_of(c).iter().any(|rel| local.contains(rel)));
    if from_refers || on.is_empty() || on.iter().chain(&own).any(has_volatile) {
        return None;
    }
    Some(SemiJoin {
        kind,
        right: Inner::From(select.from.clone()),
        own,
        on,
    })
}
