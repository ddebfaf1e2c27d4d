//! EXISTS as membership: `EXISTS (SELECT … WHERE b.k = a.k)` is `(a.k IN (SELECT b.k …)) IS TRUE`.
//!
//! An EXISTS that is a condition by itself becomes a semi-join. Under OR, in CASE or in a select
//! list it is a subplan, which runs again for each row around it. Where equality is all that it
//! asks of that row, its rows can be read once and found by key, as in PostgreSQL's hashed
//! subplans:
//!
//! ```text
//!   FROM a WHERE a.x = 1 OR EXISTS (SELECT FROM b WHERE b.k = a.k AND b.y > 2)
//!     each time        read b until b.k = a.k              rows of a × rows of b
//!     as membership    read b once, look a.k up            rows of a + rows of b
//! ```
//! That is done where it pays after a few rows: not where an index finds the partners, nor where
//! each row has so many that the first one comes at once.

use throng_bind::fold::is_steady;
use throng_types::key::same_keys;
use throng_types::{Result, SqlType};

use super::Planner;
use super::join::rels_of;
use super::subquery::{bare_select, has_volatile};
use throng_bind::expr::{Expr, RelId, Subquery, SubqueryKind};
use throng_bind::query::{Body, Query, Target};
use throng_values::func::{Operator, Strategy, operator_by_oid};

/// Rows around it after which membership pays.
const CALLS: f64 = 4.0;
/// Bytes of keys, about, that are kept in memory.
const MOST: f64 = (64 << 20) as f64;
/// Bytes of a kept key beside its own.
const A_KEY: f64 = 48.0;

/// An equality between what is outside and what is inside.
struct Pair<'a> {
    outside: &'a Expr,
    compare: &'static Operator,
    inside: &'a Expr,
}

impl Planner<'_> {
    /// The same as an IN, if that is cheaper for more than a few rows around it.
    pub(super) fn as_membership(&mut self, query: &Query) -> Result<Option<Subquery>> {
        // What is inside is weighed as it is written, else each level would be planned twice for
        // each level around it.
        if self.weighing {
            return Ok(None);
        }
        let Some((members, kind)) = membership(query) else {
            return Ok(None);
        };
        self.weighing = true;
        let each = self.tried(|p| Ok(p.query(query)?.plan.cost));
        let once = self.tried(|p| Ok(p.query(&members)?.plan.cost));
        self.weighing = false;
        let ((each, reads_outside), (once, still_reads)) = (each?, once?);
        let fits = once.rows * (f64::from(once.width) + A_KEY) <= MOST;
        let pays = once.total <= CALLS * each.until(1.0);
        Ok(
            (reads_outside && !still_reads && fits && pays).then(|| Subquery {
                query: members,
                kind,
                ty: SqlType::BOOL,
            }),
        )
    }
}

/// The rows of which one must be the row outside, and how they are compared.
fn membership(query: &Query) -> Option<(Query, SubqueryKind)> {
    let select = bare_select(query).filter(|_| is_steady(query))?;
    let mut inner = Vec::new();
    select.from.iter().for_each(|item| item.rels(&mut inner));
    let mut conditions = Vec::new();
    select.filter.clone()?.conjuncts(&mut conditions);
    if conditions.iter().any(has_volatile) {
        return None;
    }
    let (mut left, mut compare, mut targets, mut rest) = (vec![], vec![], vec![], vec![]);
    for condition in conditions {
        let Some(pair) = pair(&condition, &inner) else {
            rest.push(condition);
            continue;
        };
        left.push(pair.outside.clone());
        compare.push(pair.compare);
        targets.push(Target {
            expr: pair.inside.clone(),
            name: String::new(),
        });
    }
    if left.is_empty() {
        return None;
    }
    let mut query = query.clone();
    let Body::Select(select) = &mut query.body else {
        return None;
    };
    select.targets = targets;
    select.filter = Expr::all_of(rest);
    query.order.clear();
    Some((query, SubqueryKind::Any { left, compare }))
}

fn pair<'a>(condition: &'a Expr, inner: &[RelId]) -> Option<Pair<'a>> {
    let Expr::Op { op, args, .. } = condition else {
        return None;
    };
    let [a, b] = &args[..] else {
        return None;
    };
    let by_key = op.strategy == Some(Strategy::Equal) && op.strict && same_keys(a.ty(), b.ty());
    match (is_inside(a, inner)?, is_inside(b, inner)?) {
        (false, true) if by_key => Some(Pair {
            outside: a,
            compare: op,
            inside: b,
        }),
        (true, false) if by_key => Some(Pair {
            outside: b,
            compare: operator_by_oid(op.commutator)?,
            inside: a,
        }),
        _ => None,
    }
}

/// Whether an expression reads the inner side alone; None where it reads both, or neither.
fn is_inside(expr: &Expr, inner: &[RelId]) -> Option<bool> {
    let rels = rels_of(expr);
    let first = inner.contains(rels.first()?);
    let alike = rels.iter().all(|rel| inner.contains(rel) == first);
    alike.then_some(first)
}
