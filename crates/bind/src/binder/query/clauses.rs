//! What comes after a SELECT's list and FROM: DISTINCT and order.

use throng_types::error::state;
use throng_types::{Error, Result};

use crate::binder::query::scope::Scope;
use crate::binder::query::select::ordinal;
use crate::binder::{Binder, Clause};
use crate::tree::expr::{Expr, SortKey};
use crate::tree::query::{Distinct, Target};
use throng_syntax::parse::ast::{self, Node};

impl Binder<'_> {
    pub(in crate::binder) fn order_by(
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
    pub(in crate::binder) fn output_or_input(
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

    pub(in crate::binder) fn distinct(
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
                self.check_groupable(&target.expr, ast.pos)?;
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
        // What the order begins with must be just these expressions, in any order, as far as it
        // goes.
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
}
