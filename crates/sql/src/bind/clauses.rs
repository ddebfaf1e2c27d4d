//! What comes after a SELECT's list and FROM: grouping, DISTINCT, order, row locks.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::scope::{Names, Scope};
use super::select::{has_aggregate, lock_name, ordinal};
use super::{Binder, Clause};
use crate::expr::{Expr, RelId, SortKey, Var};
use crate::parse::ast::{self, Node};
use crate::query::{Body, Distinct, FromItem, Query, RelKind, RowLock, Select, Target};

impl Binder<'_> {
    pub(super) fn order_by(
        &mut self,
        order: &[ast::OrderBy],
        targets: &[Target],
        scope: &Scope<'_>,
    ) -> Result<Vec<SortKey>> {
        order
            .iter()
            .map(|item| {
                let expr = self.output_or_input(&item.expr, targets, "ORDER BY", true, scope)?;
                self.check_sortable(&expr, item.expr.pos)?;
                Ok(SortKey {
                    expr,
                    descending: item.descending,
                    nulls_first: item.nulls_first.unwrap_or(item.descending),
                })
            })
            .collect()
    }

    pub(super) fn group_by(
        &mut self,
        items: &[ast::Expr],
        targets: &[Target],
        scope: &Scope<'_>,
    ) -> Result<Vec<Expr>> {
        let places = std::mem::take(&mut self.target_places);
        let mut keys: Vec<Expr> = Vec::new();
        for item in items {
            let expr = self.output_or_input(item, targets, "GROUP BY", false, scope)?;
            if has_aggregate(&expr) {
                let message = "aggregate functions are not allowed in GROUP BY";
                let target = targets.iter().position(|t| t.expr == expr);
                let place = target
                    .and_then(|i| places.get(i).copied())
                    .unwrap_or(item.pos);
                return Err(Error::new(state::GROUPING_ERROR, message).position(place + 1));
            }
            self.check_sortable(&expr, item.pos)?;
            let fields = match expr {
                Expr::Row(fields, _) => fields,
                expr => vec![expr],
            };
            for expr in fields {
                if !keys.contains(&expr) {
                    keys.push(expr);
                }
            }
        }
        Ok(keys)
    }

    /// An ORDER BY or GROUP BY item: an output column by name or number, or an expression over
    /// the input. For ORDER BY a bare name means the output first, for GROUP BY the input first.
    pub(super) fn output_or_input(
        &mut self,
        item: &ast::Expr,
        targets: &[Target],
        what: &str,
        output_first: bool,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        match &item.node {
            Node::Integer(digits) => {
                let index = ordinal(digits, targets.len(), what, item.pos)?;
                return Ok(targets[index].expr.clone());
            }
            Node::Null | Node::Bool(_) | Node::Decimal(_) | Node::Text(_) => {
                let message = format!("non-integer constant in {what}");
                return Err(Error::new(state::SYNTAX_ERROR, message).position(item.pos + 1));
            }
            Node::Column(parts) if parts.len() == 1 => {
                let input = !output_first && scope.names.columns.iter().any(|c| c.name == parts[0]);
                if !input {
                    let mut found = targets.iter().filter(|t| t.name == parts[0]);
                    if let Some(first) = found.next() {
                        if found.any(|t| t.expr != first.expr) {
                            let message = format!("{what} \"{}\" is ambiguous", parts[0]);
                            return Err(
                                Error::new(state::AMBIGUOUS_COLUMN, message).position(item.pos + 1)
                            );
                        }
                        return Ok(first.expr.clone());
                    }
                }
            }
            _ => {}
        }
        let expr = self.expr(item, scope)?;
        self.settle(expr, item.pos)
    }

    pub(super) fn distinct(
        &mut self,
        select: &ast::Select,
        targets: &[Target],
        order: &[SortKey],
        ast: &ast::Query,
        scope: &Scope<'_>,
    ) -> Result<Distinct> {
        let Some(on) = &select.distinct else {
            return Ok(Distinct::No);
        };
        if on.is_empty() {
            for target in targets {
                self.check_sortable(&target.expr, ast.pos)?;
            }
            for (key, item) in order.iter().zip(&ast.order) {
                if !targets.iter().any(|t| t.expr == key.expr) {
                    let message =
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                    return Err(Error::new(state::INVALID_COLUMN_REFERENCE, message)
                        .position(item.expr.pos + 1));
                }
            }
            return Ok(Distinct::All);
        }
        let exprs = self.in_clause(Clause::DistinctOn, |b| {
            on.iter()
                .map(|e| b.output_or_input(e, targets, "DISTINCT ON", true, scope))
                .collect::<Result<Vec<_>>>()
        })?;
        let leading = order.len().min(exprs.len());
        let distinct_order = order.iter().take(leading).all(|k| exprs.contains(&k.expr));
        if !distinct_order {
            let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
            return Err(
                Error::new(state::INVALID_COLUMN_REFERENCE, message).position(on[0].pos + 1)
            );
        }
        Ok(Distinct::On(exprs))
    }

    /// Every column outside an aggregate must be a grouping expression, or depend on a primary key
    /// that is (it is then added to the group, which changes nothing).
    pub(super) fn check_grouping(
        &mut self,
        select: &mut Select,
        order: &[SortKey],
        names: &Names,
    ) -> Result<()> {
        let mut local = Vec::new();
        select.from.iter().for_each(|item| item.rels(&mut local));
        let mut add: Vec<Expr> = Vec::new();
        let mut bad: Option<Var> = None;
        {
            let mut check = |e: &Expr| {
                ungrouped(e, &select.group_by, &mut |var| {
                    if !local.contains(&var.rel) || bad.is_some() {
                        return;
                    }
                    match self.depends_on_key(var, &select.group_by, names) {
                        true => add.push(Expr::Var(var.clone())),
                        false => bad = Some(var.clone()),
                    }
                })
            };
            select.targets.iter().for_each(|t| check(&t.expr));
            select.having.iter().for_each(&mut check);
            order.iter().for_each(|k| check(&k.expr));
            if let Distinct::On(exprs) = &select.distinct {
                exprs.iter().for_each(check);
            }
        }
        for expr in add {
            if !select.group_by.contains(&expr) {
                select.group_by.push(expr);
            }
        }
        let Some(var) = bad else { return Ok(()) };
        let table = names.tables.iter().find(|t| t.rel == Some(var.rel));
        let column = table.and_then(|t| {
            t.columns
                .iter()
                .find(|c| c.expr == Expr::Var(var.clone()))
                .map(|c| &c.name)
        });
        let name = match (table, column) {
            (Some(table), Some(column)) => format!("{}.{column}", table.name),
            (Some(table), None) => format!("{}.?", table.name),
            _ => "?column?".to_string(),
        };
        let message = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        let place = self
            .seen
            .iter()
            .find(|(rel, column, _)| (*rel, *column) == (var.rel, var.column));
        let error = Error::new(state::GROUPING_ERROR, message);
        Err(match place {
            Some((.., pos)) => error.position(pos + 1),
            None => error,
        })
    }

    pub(super) fn depends_on_key(&self, var: &Var, group_by: &[Expr], names: &Names) -> bool {
        let Some(table) = names
            .tables
            .iter()
            .find(|t| t.rel == Some(var.rel))
            .and_then(|t| t.table.as_ref())
        else {
            return false;
        };
        let Some(key) = self.catalog().primary_key(table.oid) else {
            return false;
        };
        key.columns.iter().all(|c| {
            group_by.iter().any(
                |e| matches!(e, Expr::Var(v) if v.rel == var.rel && v.column == c.attnum as i16),
            )
        })
    }

    pub(super) fn locks(
        &mut self,
        ast: &ast::Query,
        query: &Query,
        names: &Names,
    ) -> Result<Vec<RowLock>> {
        let Some(first) = ast.locks.first() else {
            return Ok(vec![]);
        };
        let Body::Select(select) = &query.body else {
            return Ok(vec![]);
        };
        let refuse = |what: &str| {
            let message = format!("{} is not allowed with {what}", lock_name(first.strength));
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
        };
        if select.distinct != Distinct::No {
            return refuse("DISTINCT clause");
        }
        if !select.group_by.is_empty() {
            return refuse("GROUP BY clause");
        }
        if select.having.is_some() {
            return refuse("HAVING clause");
        }
        if select.grouped {
            return refuse("aggregate functions");
        }
        let mut locks: Vec<RowLock> = Vec::new();
        for clause in &ast.locks {
            let mut add = |rel: RelId| match locks.iter_mut().find(|l| l.rel == rel) {
                Some(lock) => {
                    lock.strength = lock.strength.max(clause.strength);
                    lock.wait = lock.wait.max(clause.wait);
                }
                None => {
                    let (strength, wait) = (clause.strength, clause.wait);
                    locks.push(RowLock {
                        rel,
                        strength,
                        wait,
                    });
                }
            };
            if clause.of.is_empty() {
                let unlockable = select.from.iter().any(has_subquery);
                if unlockable {
                    let what = format!("{} over a subquery in FROM", lock_name(clause.strength));
                    return Err(Error::unsupported(what).position(clause.pos + 1));
                }
                names
                    .tables
                    .iter()
                    .filter(|t| t.table.is_some())
                    .for_each(|t| {
                        t.rel.into_iter().for_each(&mut add);
                    });
            }
            for name in &clause.of {
                let found = names.tables.iter().find(|t| t.name == name.last());
                let Some(found) = found else {
                    let message = format!(
                        "relation \"{name}\" in {} clause not found in FROM clause",
                        lock_name(clause.strength)
                    );
                    return Err(Error::new(state::UNDEFINED_TABLE, message).position(name.pos + 1));
                };
                match (found.rel, &found.table) {
                    (Some(rel), Some(_)) => add(rel),
                    _ => {
                        let what = format!(
                            "{} of something other than a table",
                            lock_name(clause.strength)
                        );
                        return Err(Error::unsupported(what).position(name.pos + 1));
                    }
                }
            }
        }
        Ok(locks)
    }
}

fn has_subquery(item: &FromItem) -> bool {
    match item {
        FromItem::Rel(rel) => matches!(rel.kind, RelKind::Subquery { .. } | RelKind::View { .. }),
        FromItem::Join { left, right, .. } => has_subquery(left) || has_subquery(right),
    }
}

/// Variables outside aggregates and grouping expressions.
fn ungrouped(expr: &Expr, group_by: &[Expr], f: &mut dyn FnMut(&Var)) {
    if group_by.contains(expr) {
        return;
    }
    match expr {
        Expr::Aggregate(_) => {}
        Expr::Var(var) => f(var),
        Expr::Subquery(sub) => {
            sub.query.for_each_var(&mut |var| {
                if !group_by.contains(&Expr::Var(var.clone())) {
                    f(var)
                }
            });
            expr.for_each_child(&mut |e| ungrouped(e, group_by, f));
        }
        _ => expr.for_each_child(&mut |e| ungrouped(e, group_by, f)),
    }
}
