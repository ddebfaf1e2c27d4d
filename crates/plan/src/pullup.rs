//! Before planning: queries in FROM that are no more than a join with conditions become part of the
//! query around them, so that their tables are joined and read by what the whole asks for. A view
//! costs nothing by itself.
//!
//! ```text
//! SELECT v.b FROM (SELECT t.a, t.a + t.b AS b FROM t WHERE t.c) v WHERE v.a = 1
//!   ─►   SELECT t.a + t.b FROM t WHERE t.c AND t.a = 1
//! ```
//! A variable of the query that is gone becomes the expression it stood for, wherever in the
//! statement it is. On a side of an outer join that may be missing that holds only for plain
//! columns: an expression would have to become NULL, too, which is made so only for LATERAL
//! queries. Nor is anything taken into a query with grouping sets, which tells apart two columns
//! even where they stand for one expression.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use throng_types::{Datum, SqlType, oid};

use throng_bind::expr::{Expr, RelId, Var, system};
use throng_bind::query::walk::QueryPartMut;
use throng_bind::query::{
    Body, BoundQuery, Distinct, FromItem, JoinKind, Query, QueryKind, RelKind, RowLock, Select,
};

type Replaced = HashMap<RelId, Vec<Expr>, FixedState>;

/// Where the conditions of a query that is taken in go.
struct FilterTarget<'s> {
    /// Where its row locks go.
    locks: Option<&'s mut Vec<RowLock>>,
    /// The condition that the item's rows have to meet; None where there is no such place.
    sink: Option<&'s mut Vec<Expr>>,
    /// Rows of it may be missing, NULL in their place.
    nullable: bool,
}

pub(super) fn pull_up(bound: &mut BoundQuery) {
    let mut pull = PullUp {
        replaced: Replaced::default(),
    };
    // One query may stand in several places of a statement, as in ORDER BY what is in the select
    // list: what is done to one is done to all.
    bound.walk_mut(&mut |part| {
        if let QueryPartMut::Query(query) = part {
            pull.query(query);
        }
    });
    match &mut bound.kind {
        QueryKind::Update(update) => pull.items_of(&mut update.from, &mut update.filter, None),
        QueryKind::Delete(delete) => pull.items_of(&mut delete.from, &mut delete.filter, None),
        QueryKind::Merge(merge) => pull.items_of(&mut merge.from, &mut merge.filter, None),
        QueryKind::Select(_) | QueryKind::Insert(_) => {}
    }
    if !pull.replaced.is_empty() {
        bound.walk_mut(&mut |part| replace(part, &pull.replaced));
    }
}

fn replace(part: QueryPartMut<'_>, replaced: &Replaced) {
    let QueryPartMut::Expr(e) = part else { return };
    // What a variable stands for may be a variable of another query that is gone.
    while let Expr::Var(var) = e {
        let Some(exprs) = replaced.get(&var.rel) else {
            return;
        };
        let Some(expr) = usize::try_from(var.column - 1)
            .ok()
            .and_then(|at| exprs.get(at))
        else {
            return;
        };
        *e = expr.clone();
    }
}

struct PullUp {
    replaced: Replaced,
}

impl PullUp {
    /// Takes in what can be taken in of a query's FROM.
    fn query(&mut self, query: &mut Query) {
        if let Body::Select(select) = &mut query.body
            && select.grouping_sets.is_empty()
        {
            let locks = Some(&mut query.locks);
            self.items_of(&mut select.from, &mut select.filter, locks);
        }
    }

    fn items_of(
        &mut self,
        items: &mut [FromItem],
        filter: &mut Option<Expr>,
        mut locks: Option<&mut Vec<RowLock>>,
    ) {
        let mut found = Vec::new();
        for item in items.iter_mut() {
            let place = FilterTarget {
                locks: locks.as_deref_mut(),
                sink: Some(&mut found),
                nullable: false,
            };
            self.item(item, place);
        }
        if !found.is_empty() {
            found.extend(filter.take());
            *filter = Expr::all_of(found);
        }
    }

    fn item(&mut self, item: &mut FromItem, place: FilterTarget<'_>) {
        // A view that hides rows stays what comes first.
        if let FromItem::Rel(rel) = item
            && let RelKind::View { view, query } = &mut rel.kind
            && view.is_barrier()
        {
            return self.query(query);
        }
        self.open_item(item, place);
    }

    fn open_item(&mut self, item: &mut FromItem, place: FilterTarget<'_>) {
        match item {
            FromItem::Join {
                kind,
                left,
                right,
                on,
                ..
            } => {
                // Conditions of the sides that go into this join's own.
                let mut own = Vec::new();
                let FilterTarget {
                    mut locks,
                    sink,
                    nullable,
                } = place;
                let (outer, inner) = match kind {
                    JoinKind::Left => (Some(left), vec![right]),
                    JoinKind::Right => (Some(right), vec![left]),
                    _ => (None, vec![left, right]),
                };
                if let Some(side) = outer {
                    let locks = locks.as_deref_mut();
                    let place = FilterTarget {
                        locks,
                        sink,
                        nullable,
                    };
                    self.item(side, place);
                }
                for side in inner {
                    let place = FilterTarget {
                        locks: locks.as_deref_mut(),
                        // Neither side of a full join may lose rows before it.
                        sink: (*kind != JoinKind::Full).then_some(&mut own),
                        nullable: nullable || *kind != JoinKind::Inner,
                    };
                    self.item(side, place);
                }
                if !own.is_empty() {
                    own.extend(on.take());
                    *on = Expr::all_of(own);
                }
            }
            FromItem::Rel(rel) => {
                let lateral = matches!(rel.kind, RelKind::Subquery { lateral: true, .. });
                let (RelKind::Subquery { query, .. } | RelKind::View { query, .. }) = &mut rel.kind
                else {
                    return;
                };
                self.query(query);
                // What a lateral query computes over what is beside it would else be computed for
                // each pair of rows.
                let nullable = place.nullable && !lateral;
                if !is_simple(query, nullable, place.sink.is_some())
                    || !query.locks.is_empty() && place.locks.is_none()
                {
                    return;
                }
                let id = rel.id;
                let Body::Select(select) = &mut query.body else {
                    return;
                };
                // Subqueries in them are copied with them: first what is to be done to these.
                for target in &mut select.targets {
                    target.expr.walk_mut(&mut |part| {
                        if let QueryPartMut::Query(query) = part {
                            self.query(query);
                        }
                    });
                }
                let mut targets: Vec<Expr> =
                    select.targets.iter().map(|t| t.expr.clone()).collect();
                if lateral && place.nullable && !vanish_with_row(&mut targets, select) {
                    return;
                }
                if let Some(locks) = place.locks {
                    locks.append(&mut query.locks);
                }
                select.targets.clear();
                self.replaced.insert(id, targets);
                if let (Some(filter), Some(sink)) = (select.filter.take(), place.sink) {
                    sink.push(filter);
                }
                let from = std::mem::take(&mut select.from);
                let joined = from.into_iter().reduce(|left, right| FromItem::Join {
                    kind: JoinKind::Inner,
                    left: Box::new(left),
                    right: Box::new(right),
                    on: None,
                    using: vec![],
                    alias: None,
                });
                if let Some(joined) = joined {
                    *item = joined;
                }
            }
        }
    }
}

/// Whether a query in FROM is but a join under a condition. `nullable`: its rows may be missing;
/// `filtered`: its condition has somewhere to go.
fn is_simple(query: &Query, nullable: bool, filtered: bool) -> bool {
    let Body::Select(select) = &query.body else {
        return false;
    };
    let plain = query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locks.iter().all(|lock| lock.origin != query.output)
        && query.ctes.is_empty()
        && !select.grouped
        && select.windows.is_empty()
        && select.lifted.is_empty()
        && select.distinct == Distinct::No
        && !select.from.is_empty();
    let condition_fits = filtered || select.filter.is_none();
    let once = |e: &Expr| !e.any(&mut |e| e.is_set()) && !has_volatile(e);
    plain
        && condition_fits
        && select.targets.iter().all(|t| once(&t.expr))
        && select.filter.iter().all(|e| !has_volatile(e))
        && (!nullable
            || select
                .targets
                .iter()
                .all(|t| is_own_column(&t.expr, select)))
}

fn has_volatile(e: &Expr) -> bool {
    e.any(&mut throng_bind::fold::is_volatile)
}

/// Makes what is computed NULL where the query's row is missing, as its own columns are; false
/// where nothing tells that it is.
fn vanish_with_row(targets: &mut [Expr], select: &Select) -> bool {
    if targets.iter().all(|e| is_own_column(e, select)) {
        return true;
    }
    let Some(rel) = select.from.iter().find_map(always_there) else {
        return false;
    };
    let witness = Expr::Var(Var {
        rel,
        column: system::TABLEOID,
        ty: SqlType::plain(oid::OID),
    });
    for target in targets.iter_mut().filter(|e| !is_own_column(e, select)) {
        let ty = target.ty();
        let value = std::mem::replace(target, Expr::bool(true));
        *target = Expr::Case {
            operand: None,
            whens: vec![(Expr::IsNotNull(Box::new(witness.clone())), value)],
            default: Box::new(Expr::Const(Datum::Null, ty)),
            ty,
        };
    }
    true
}

/// A table without which the item has no row.
fn always_there(item: &FromItem) -> Option<RelId> {
    match item {
        FromItem::Rel(rel) => matches!(rel.kind, RelKind::Table(_)).then_some(rel.id),
        FromItem::Join {
            kind, left, right, ..
        } => match kind {
            JoinKind::Left => always_there(left),
            JoinKind::Right => always_there(right),
            JoinKind::Inner => always_there(left).or_else(|| always_there(right)),
            _ => None,
        },
    }
}

/// A column of the query's own tables, which is NULL where their rows are missing.
fn is_own_column(expr: &Expr, select: &Select) -> bool {
    let mut own = Vec::new();
    select.from.iter().for_each(|item| item.rels(&mut own));
    matches!(expr, Expr::Var(var) if own.contains(&var.rel))
}
