//! Conditions on the rows of a query in FROM, moved into it where they pass the same rows and
//! sooner: a view that groups or unites then reads only what is asked of it.
//!
//! | the query | conditions that go in |
//! | --- | --- |
//! | has LIMIT or OFFSET, or locks rows | none: which rows it gives depends on all of them |
//! | groups | on columns of every grouping set: a group is kept or not as a whole |
//! | has windows | on columns that all of them are partitioned by, likewise |
//! | DISTINCT ON | on its columns, likewise |
//! | UNION, INTERSECT | all, into both sides |
//! | EXCEPT | none: what is equal need not look the same, and the right side would take away less |

use throng_bind::expr::{Expr, RelId};
use throng_bind::fold::is_volatile;
use throng_bind::query::walk::QueryPartMut;
use throng_bind::query::{Body, Distinct, Query, Select, SetOp};

/// Moves into `query`, which the entry `rel` stands for, those of the conditions that can be; the
/// rest are left.
pub(super) fn push_down(query: &mut Query, rel: RelId, conditions: &mut Vec<Expr>) {
    let mut moved = Vec::new();
    conditions.retain(|condition| {
        let goes = is_plain(condition, rel) && accepts(query, rel, condition);
        if goes {
            moved.push(condition.clone());
        }
        !goes
    });
    for condition in moved {
        add(query, rel, condition);
    }
}

/// Nothing in it that may be met more often or in another order than it is written.
fn is_plain(condition: &Expr, rel: RelId) -> bool {
    let mut about = false;
    let mut plain = true;
    condition.for_each_var(&mut |var| about |= var.rel == rel);
    condition.any(&mut |e| {
        plain &= !(is_volatile(e) || e.is_set() || matches!(e, Expr::Subquery(_)));
        false
    });
    about && plain
}

fn accepts(query: &Query, rel: RelId, condition: &Expr) -> bool {
    if query.limit.is_some() || query.offset.is_some() || !query.locks.is_empty() {
        return false;
    }
    match &query.body {
        Body::Values { .. } => false,
        Body::SetOp {
            op, left, right, ..
        } => {
            *op != SetOp::Except && accepts(left, rel, condition) && accepts(right, rel, condition)
        }
        Body::Select(select) => {
            let mut good = true;
            condition.for_each_var(&mut |var| {
                if var.rel == rel {
                    good &= var.column > 0
                        && select
                            .targets
                            .get(var.column as usize - 1)
                            .is_some_and(|t| passes(&t.expr, select));
                }
            });
            good
        }
    }
}

/// Whether a condition on this output column may be met before grouping, windows and DISTINCT.
fn passes(expr: &Expr, select: &Select) -> bool {
    let computed_once = !expr.any(&mut |e| {
        is_volatile(e)
            || matches!(
                e,
                Expr::SetCall { .. }
                    | Expr::SetRoutine(_)
                    | Expr::Aggregate(_)
                    | Expr::Grouping(_)
                    | Expr::Window(_)
                    | Expr::Subquery(_)
            )
    });
    let in_every_set = |at: usize| {
        let mut sets = select.grouping_sets.iter();
        sets.all(|set| set.contains(&(at as u32)))
    };
    let grouped = !select.grouped
        || select
            .group_by
            .iter()
            .position(|key| key == expr)
            .is_some_and(in_every_set);
    let partitioned = select.windows.iter().all(|w| w.partition.contains(expr));
    let distinct = match &select.distinct {
        Distinct::On(exprs) => exprs.contains(expr),
        Distinct::No | Distinct::All => true,
    };
    // With a set-returning function beside it a row's fate is still the same for all it becomes.
    computed_once && grouped && partitioned && distinct
}

fn add(query: &mut Query, rel: RelId, mut condition: Expr) {
    match &mut query.body {
        Body::Values { .. } => {}
        Body::SetOp { left, right, .. } => {
            add(left, rel, condition.clone());
            add(right, rel, condition);
        }
        Body::Select(select) => {
            condition.walk_mut(&mut |part| {
                if let QueryPartMut::Expr(e) = part
                    && let Expr::Var(var) = e
                    && var.rel == rel
                {
                    *e = select.targets[var.column as usize - 1].expr.clone();
                }
            });
            let both = select.filter.take().into_iter().chain([condition]);
            select.filter = Expr::all_of(both.collect());
        }
    }
}
