//! What an index has of a row beside its columns: the values of its expressions, and whether it has
//! the row at all.

use std::cell::Cell;
use std::sync::Arc;

use throng_bind::binder;
use throng_bind::expr::Expr;
use throng_catalog::{IndexDef, TableDef};
use throng_types::{Datum, Result};

use super::Compute;
use crate::run::Row;
use crate::run::context::Env;

/// An index's expressions and its condition, ready to be evaluated.
pub struct Terms {
    /// The condition, then the expressions, which are only computed where it holds.
    exprs: Vec<Expr>,
    /// Between rows.
    compute: Cell<Option<Compute>>,
}

impl Terms {
    /// None for an index on plain columns of all rows.
    pub fn of(index: &IndexDef, table: &Arc<TableDef>, env: Env<'_>) -> Result<Option<Terms>> {
        if index.is_plain() {
            return Ok(None);
        }
        let bound = binder::index_terms(index, table, env.catalog, env.eval)?.over_row();
        let mut exprs = Vec::with_capacity(bound.exprs.len() + 1);
        let condition = bound.predicate;
        exprs.push(condition.clone().unwrap_or_else(|| Expr::bool(true)));
        for expr in bound.exprs {
            let ty = expr.ty();
            exprs.push(match &condition {
                None => expr,
                Some(condition) => Expr::Case {
                    operand: None,
                    whens: vec![(condition.clone(), expr)],
                    default: Box::new(Expr::null(ty)),
                    ty,
                },
            });
        }
        Ok(Some(Terms {
            exprs,
            compute: Cell::new(None),
        }))
    }

    /// The expressions' values over a row; none where the index does not have it.
    pub async fn of_row(&self, row: &[Datum], env: Env<'_>) -> Result<Option<Row>> {
        let kept = self.compute.take();
        let mut compute = kept.unwrap_or_else(|| Compute::new(self.exprs.clone()));
        let values = compute.row(row, env).await;
        self.compute.set(Some(compute));
        let mut values = values?;
        let has = !values.is_empty() && values.remove(0) == Datum::Bool(true);
        Ok(has.then_some(values))
    }
}
