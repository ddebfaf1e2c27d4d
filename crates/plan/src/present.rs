//! Before planning: entries of FROM of which a statement asks whether they have a row get a column
//! that tells.
//!
//! ```text
//! SELECT y IS NULL FROM x LEFT JOIN (SELECT 1 AS i) y ON …
//!   ─►   … FROM x LEFT JOIN (SELECT y.i, true FROM (SELECT 1 AS i) y) y ON …
//! ```
//! A table's row has a place, which tells the same.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use throng_types::SqlType;

use throng_bind::expr::{Expr, RelId, Var, system};
use throng_bind::query::walk::QueryPartMut;
use throng_bind::query::{Body, BoundQuery, FromItem, Query, Rel, RelKind, Select, Target};
use throng_values::func::RelColumn;

pub(super) fn tell_presence(bound: &mut BoundQuery) {
    let mut asked: HashSet<RelId, FixedState> = HashSet::default();
    bound.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(Expr::Var(var)) = part
            && var.column == system::PRESENT
        {
            asked.insert(var.rel);
        }
    });
    if asked.is_empty() {
        return;
    }
    let mut columns: Vec<(RelId, i16)> = Vec::new();
    let mut next = bound.rel_count;
    bound.walk_mut(&mut |part| {
        if let QueryPartMut::Rel(rel) = part
            && asked.contains(&rel.id)
        {
            with_presence(rel, &mut next);
            columns.push((rel.id, rel.columns.len() as i16));
        }
    });
    bound.rel_count = next;
    bound.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(Expr::Var(var)) = part
            && var.column == system::PRESENT
            && let Some((_, column)) = columns.iter().find(|(rel, _)| *rel == var.rel)
        {
            var.column = *column;
        }
    });
}

/// Makes an entry a query over what it was, with `true` for each row as its last column.
fn with_presence(rel: &mut Rel, next: &mut u32) {
    let mut fresh = || {
        let id = RelId(*next);
        *next += 1;
        id
    };
    let (inner, output) = (fresh(), fresh());
    let lateral = match &rel.kind {
        RelKind::Subquery { lateral, .. }
        | RelKind::Function { lateral, .. }
        | RelKind::Routine { lateral, .. } => *lateral,
        RelKind::RowsFrom { .. } => true,
        _ => false,
    };
    let mut targets = Vec::with_capacity(rel.columns.len() + 1);
    for (column, number) in rel.columns.iter().zip(1..) {
        targets.push(Target {
            expr: Expr::Var(Var {
                rel: inner,
                column: number,
                ty: column.ty,
            }),
            name: column.name.clone(),
        });
    }
    targets.push(Target {
        expr: Expr::bool(true),
        name: String::new(),
    });
    let whole = Rel {
        id: inner,
        sample: rel.sample.take(),
        ..rel.clone()
    };
    let select = Select::plain(vec![FromItem::Rel(Box::new(whole))], targets);
    rel.kind = RelKind::Subquery {
        query: Box::new(Query::of_body(Body::Select(Box::new(select)), output)),
        lateral,
    };
    rel.columns.push(RelColumn {
        name: String::new(),
        ty: SqlType::BOOL,
    });
}
