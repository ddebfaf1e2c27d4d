//! A row compared with the rows of a query, which is bound as a query over that one.

use std::collections::BTreeMap;

use super::Writer;
use crate::tree::expr::{Expr, Subquery, SubqueryKind};
use crate::tree::query::{Body, FromItem, Query, Rel, RelKind};

/// `(a, b) < ANY (SELECT …)`, by its parts.
pub(super) struct ComparedRow<'a> {
    row: Vec<&'a Expr>,
    op: &'a str,
    /// ` ANY ` or ` ALL `, where all rows are meant.
    word: &'static str,
    query: &'a Query,
}

impl<'a> ComparedRow<'a> {
    pub fn of(sub: &'a Subquery) -> Option<ComparedRow<'a>> {
        let word = match sub.kind {
            SubqueryKind::Scalar => " ",
            SubqueryKind::Any { .. } => " ANY ",
            SubqueryKind::All { .. } => " ALL ",
            _ => return None,
        };
        let Body::Select(select) = &sub.query.body else {
            return None;
        };
        let ([FromItem::Rel(rel)], [target]) = (&select.from[..], &select.targets[..]) else {
            return None;
        };
        let RelKind::Subquery { query, .. } = &rel.kind else {
            return None;
        };
        if rel.alias != Rel::COMPARED {
            return None;
        }
        let mut pairs = BTreeMap::new();
        gather(&target.expr, rel, &mut pairs);
        let (_, (_, op)) = pairs.last_key_value()?;
        let op = *op;
        Some(ComparedRow {
            row: pairs.into_values().map(|(left, _)| left).collect(),
            op,
            word,
            query,
        })
    }
}

/// By the query's column what it is compared with, and how it is where it decides alone.
fn gather<'a>(expr: &'a Expr, rel: &Rel, pairs: &mut BTreeMap<i16, (&'a Expr, &'a str)>) {
    match expr {
        Expr::And(parts) | Expr::Or(parts) => {
            parts.iter().for_each(|part| gather(part, rel, pairs));
        }
        Expr::Op { op, args, .. } => {
            if let [left, right] = &args[..]
                && let Some(column) = column_of(right, rel)
            {
                pairs.entry(column).or_insert((left, op.name));
            }
        }
        _ => {}
    }
}

fn column_of(expr: &Expr, rel: &Rel) -> Option<i16> {
    match expr {
        Expr::Var(var) => (var.rel == rel.id).then_some(var.column),
        Expr::Cast { arg, .. } => column_of(arg, rel),
        _ => None,
    }
}

impl Writer<'_> {
    pub(super) fn compared_row(&mut self, compared: &ComparedRow<'_>) {
        self.push("((");
        for (i, item) in compared.row.iter().enumerate() {
            self.push(if i == 0 { "" } else { ", " });
            self.bare(item);
        }
        self.push(") ");
        self.push(compared.op);
        self.push(compared.word);
        self.push("(");
        self.nested(compared.query, false);
        self.push("))");
    }
}
