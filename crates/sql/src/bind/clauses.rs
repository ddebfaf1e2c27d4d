//! What comes after a SELECT's list and FROM: DISTINCT, order, row locks.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::scope::{Names, Scope};
use super::select::{has_window, lock_name, ordinal};
use super::{Binder, Clause};
use crate::expr::{Expr, RelId, SortKey};
use crate::parse::ast::{self, Node};
use crate::query::{Body, Distinct, FromItem, Query, RelKind, RowLock, Target};

impl Binder<'_> {
    pub(super) fn order_by(
        &mut self,
        order: &[ast::OrderBy],
        targets: &[Target],
        scope: &Scope<'_>,
    ) -> Result<Vec<SortKey>> {
        let mut keys: Vec<SortKey> = Vec::with_capacity(order.len());
        for item in order {
            let expr = self.output_or_input(&item.expr, targets, "ORDER BY", true, scope)?;
            self.check_sortable(&expr, item.expr.pos)?;
            // What is sorted by already orders nothing more.
            if !keys.iter().any(|key| key.expr == expr) {
                keys.push(SortKey {
                    expr,
                    descending: item.descending,
                    nulls_first: item.nulls_first.unwrap_or(item.descending),
                });
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
        // What the order begins with must be just these expressions, in any order, as far as it goes.
        let mismatch = |at: usize| {
            let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
            Err(Error::new(state::INVALID_COLUMN_REFERENCE, message).position(on[at].pos + 1))
        };
        let mut others = false;
        for key in order {
            match exprs.iter().position(|e| *e == key.expr) {
                Some(at) if others => return mismatch(at),
                Some(_) => {}
                None => others = true,
            }
        }
        let unordered = |e: &Expr| !order.iter().any(|k| k.expr == *e);
        if let (true, Some(at)) = (others, exprs.iter().position(unordered)) {
            return mismatch(at);
        }
        Ok(Distinct::On(exprs))
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
        let windowed = select.targets.iter().any(|t| has_window(&t.expr))
            || query.order.iter().any(|k| has_window(&k.expr));
        if windowed {
            return refuse("window functions");
        }
        let locked = |name: &str| {
            ast.locks
                .iter()
                .any(|l| l.of.is_empty() || l.of.iter().any(|n| n.last() == name))
        };
        for table in &names.tables {
            let kept = table.table.as_ref().filter(|def| def.is_materialized());
            if let Some(def) = kept.filter(|_| locked(&table.name)) {
                let message = format!("cannot lock rows in materialized view \"{}\"", def.name);
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
        }
        let mut items = select.from.iter();
        let sequence = items.find_map(|item| locked_sequence(item, &locked));
        if let Some(def) = sequence.and_then(|oid| self.catalog().sequence(oid)) {
            let message = format!("cannot lock rows in sequence \"{}\"", def.name);
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
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
        for lock in &locks {
            let of_rel = names.tables.iter().find(|t| t.rel == Some(lock.rel));
            if let Some(table) = of_rel.and_then(|t| t.table.as_ref()) {
                self.locks_rows_of(table);
            }
        }
        Ok(locks)
    }
}

fn locked_sequence(item: &FromItem, is_locked: &dyn Fn(&str) -> bool) -> Option<Oid> {
    match item {
        FromItem::Rel(rel) => rel.sequence().filter(|_| is_locked(&rel.alias)),
        FromItem::Join { left, right, .. } => {
            locked_sequence(left, is_locked).or_else(|| locked_sequence(right, is_locked))
        }
    }
}

fn has_subquery(item: &FromItem) -> bool {
    match item {
        FromItem::Rel(rel) => matches!(rel.kind, RelKind::Subquery { .. } | RelKind::View { .. }),
        FromItem::Join { left, right, .. } => has_subquery(left) || has_subquery(right),
    }
}
