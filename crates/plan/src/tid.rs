//! `ctid = value`: the row at one place.

use throng_types::{Result, SqlType};

use super::access::{TableRef, column_type};
use super::index_key::comparison;
use super::{Built, Columns, Cost, Node, Planner, SeqScan, TidPlace, cost};
use throng_bind::expr::{Expr, system};
use throng_values::func::{Strategy, cursor};

/// Which of the conditions says where the row is.
pub(super) fn told_by(conditions: &[Expr], source: &TableRef<'_>) -> Option<usize> {
    conditions.iter().position(|c| {
        let said = comparison(c, source.rel);
        matches!(said, Some((system::CTID, Strategy::Equal, _)))
    })
}

/// The cursor whose row a value is.
fn cursor_of(value: &Expr) -> Option<String> {
    let Expr::Call { func, args, .. } = value else {
        return None;
    };
    match &args[..] {
        [Expr::Const(name, _)] if func.oid == cursor::ROW.oid => {
            Some(name.as_str().unwrap_or_default().to_owned())
        }
        _ => None,
    }
}

impl Planner<'_> {
    /// Reads the row at the place that condition number `at` tells.
    pub(super) fn row_at(
        &mut self,
        source: &TableRef<'_>,
        mut conditions: Vec<Expr>,
        at: usize,
    ) -> Result<Built> {
        let condition = conditions.remove(at);
        let place = match comparison(&condition, source.rel) {
            None => None,
            Some((_, _, value)) => Some(TidPlace {
                cursor: cursor_of(value),
                value: self.place(value.clone(), &Columns::default())?,
            }),
        };
        let columns = self.needed_columns(source.rel);
        let types: Vec<SqlType> = columns
            .iter()
            .map(|c| column_type(source.table, *c))
            .collect();
        let places = Columns::of(source.rel, columns.iter().copied());
        let scan = SeqScan {
            rel: source.rel,
            alias: source.alias.to_owned(),
            table: source.table.clone(),
            columns,
            filter: Expr::all_of(self.place_all(conditions, &places)?),
            place,
            sample: None,
        };
        let cost = Cost {
            startup: 0.0,
            total: cost::RANDOM_PAGE + cost::TUPLE,
            rows: 1.0,
            width: cost::width(&types),
        };
        Ok(Built {
            plan: self.node(Node::SeqScan(scan), types, cost),
            columns: places,
            order: Vec::new(),
        })
    }
}
