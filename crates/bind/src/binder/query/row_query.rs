//! A row compared with the rows of a query: `(a, b) < (SELECT c, d …)`, `(a, b) <= ALL (SELECT c, d
//! …)`.
//!
//! ```text
//! (a, b) <  (SELECT c, d …)        ─►   (SELECT (a, b) < (q.c, q.d) FROM (SELECT c, d …) q)
//! (a, b) <= ALL (SELECT c, d …)    ─►   true = ALL (SELECT (a, b) <= (q.c, q.d) FROM (SELECT c, d …) q)
//! ```

use throng_types::error::state;
use throng_types::{Error, Result, SqlType, oid};

use crate::binder::query::scope::Scope;
use crate::binder::query::select::{has_aggregate, has_window, output_targets};
use crate::binder::{Binder, at};
use crate::tree::expr::{Expr, Subquery, SubqueryKind};
use crate::tree::query::{Body, FromItem, Query, Rel, Select, Target};
use throng_syntax::parse::ast;
use throng_values::func::resolve_operator;

impl Binder<'_> {
    /// A row and the one row that a query may give.
    pub(in crate::binder) fn row_and_query(
        &mut self,
        op: &ast::Operator,
        row: Vec<Expr>,
        query: &ast::Query,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let query = self.subquery(query, scope)?;
        let query = self.compared_rows(op, row, query)?;
        let (kind, ty) = (SubqueryKind::Scalar, SqlType::BOOL);
        Ok(Expr::Subquery(Box::new(Subquery { query, kind, ty })))
    }

    /// A row and all rows of a query.
    pub(in crate::binder) fn row_and_rows(
        &mut self,
        op: &ast::Operator,
        all: bool,
        row: Vec<Expr>,
        query: Query,
    ) -> Result<Expr> {
        let query = self.compared_rows(op, row, query)?;
        let equal = resolve_operator("=", Some(oid::BOOL), oid::BOOL).map_err(|e| at(e, op.pos))?;
        let (left, compare) = (vec![Expr::bool(true)], vec![equal.operator]);
        let kind = match all {
            true => SubqueryKind::All { left, compare },
            false => SubqueryKind::Any { left, compare },
        };
        let ty = SqlType::BOOL;
        Ok(Expr::Subquery(Box::new(Subquery { query, kind, ty })))
    }

    /// What comparing the row with each row of the query gives.
    fn compared_rows(&mut self, op: &ast::Operator, row: Vec<Expr>, query: Query) -> Result<Query> {
        let columns = query.columns();
        if columns.len() != row.len() {
            let message = match columns.len() > row.len() {
                true => "subquery has too many columns",
                false => "subquery has too few columns",
            };
            return Err(Error::new(state::SYNTAX_ERROR, message).position(op.pos + 1));
        }
        if row.iter().any(|e| has_aggregate(e) || has_window(e)) {
            let what = "comparing a row of aggregates with a subquery's row";
            return Err(Error::unsupported(what).position(op.pos + 1));
        }
        let rel = self.new_rel();
        let given = output_targets(rel, &columns);
        let given = given.into_iter().map(|target| target.expr).collect();
        let target = Target {
            expr: self.compare_fields(op, row, given)?,
            name: "?column?".to_owned(),
        };
        let rel = Rel::subquery(rel, Rel::COMPARED, query, columns);
        let select = Select::plain(vec![FromItem::Rel(Box::new(rel))], vec![target]);
        Ok(Query::of_body(
            Body::Select(Box::new(select)),
            self.new_rel(),
        ))
    }
}
