//! What an index's expressions and its condition have to do with the conditions of a query.
//!
//! A partial index serves a query whose conditions imply the index's: each of its conjuncts is one
//! of them, or follows from one: a comparison with a constant from a narrower one, IS NOT NULL from
//! anything that is not true of NULL.

use std::cmp::Ordering;

use super::Planner;
use super::access::{TableRef, same_keys};
use super::fold::fold;
use super::inline::inline_in;
use crate::bind::{index_terms, same_term};
use crate::catalog::IndexDef;
use crate::expr::{Expr, system};
use throng_values::func::compare::comparator;
use throng_values::func::{EvalContext, Strategy};

/// What an index has for a query.
#[derive(Default)]
pub(super) struct Served {
    /// Its expressions over the entry.
    pub exprs: Vec<Expr>,
    /// Which of the conditions its own condition says already.
    pub said: Vec<usize>,
}

impl Planner<'_> {
    /// The index's expressions over the entry; none where the index does not have all rows that the
    /// conditions ask for.
    pub(super) fn terms(
        &self,
        source: &TableRef<'_>,
        index: &IndexDef,
        conditions: &[Expr],
    ) -> Option<Served> {
        if index.is_plain() {
            return Some(Served::default());
        }
        let terms = index_terms(index, source.table, self.ctx.catalog, self.ctx.eval).ok()?;
        let mut terms = terms.under(source.rel);
        terms
            .exprs
            .iter_mut()
            .chain(&mut terms.predicate)
            .for_each(inline_in);
        let mut served = Served {
            exprs: terms.exprs,
            said: Vec::new(),
        };
        let Some(predicate) = terms.predicate else {
            return Some(served);
        };
        if !implied(&predicate, conditions, &self.ctx.eval) {
            return None;
        }
        // A row that is locked or written is looked at again if it has changed, and may have left
        // the index then.
        if !self.needed_columns(source.rel).contains(&system::CTID) {
            let known = [predicate];
            let said = |at: &usize| implied(&conditions[*at], &known, &self.ctx.eval);
            served.said = (0..conditions.len()).filter(said).collect();
        }
        Some(served)
    }
}

fn folded(mut expr: Expr, eval: &EvalContext<'_>) -> Expr {
    expr.for_each_child_mut(&mut |child| {
        *child = folded(std::mem::replace(child, Expr::bool(true)), eval);
    });
    fold(expr, eval)
}

/// Whether rows that meet all conditions meet this one.
pub fn implied(condition: &Expr, conditions: &[Expr], eval: &EvalContext<'_>) -> bool {
    let known: Vec<Expr> = conditions.iter().map(|c| folded(c.clone(), eval)).collect();
    let mut parts = Vec::new();
    folded(condition.clone(), eval).conjuncts(&mut parts);
    parts
        .iter()
        .all(|part| known.iter().any(|known| follows(part, known)))
}

/// Whether `wanted` is true wherever `known` is.
fn follows(wanted: &Expr, known: &Expr) -> bool {
    if same_term(wanted, known) {
        return true;
    }
    if let Expr::And(parts) = known {
        return parts.iter().any(|part| follows(wanted, part));
    }
    if let Expr::Or(parts) = known {
        return parts.iter().all(|part| follows(wanted, part));
    }
    match wanted {
        Expr::Or(parts) => parts.iter().any(|part| follows(part, known)),
        Expr::And(parts) => parts.iter().all(|part| follows(part, known)),
        Expr::IsNotNull(arg) => not_true_of_null(known, arg),
        Expr::Op { .. } => narrower(wanted, known),
        _ => false,
    }
}

/// Whether a condition that holds says that `arg` is not NULL.
fn not_true_of_null(known: &Expr, arg: &Expr) -> bool {
    match known {
        Expr::Op { op, args, .. } => {
            op.strict
                && args
                    .iter()
                    .any(|a| same_term(a, arg) || strict_over(a, arg))
        }
        Expr::ArrayCompare { left, all, .. } => !all && same_term(left, arg),
        _ => false,
    }
}

/// Whether an expression is NULL where `arg` is.
fn strict_over(expr: &Expr, arg: &Expr) -> bool {
    let args = match expr {
        Expr::Op { op, args, .. } if op.strict => args.as_slice(),
        Expr::Call { func, args, .. } if func.strict => args.as_slice(),
        Expr::Cast { arg, .. } => std::slice::from_ref(&**arg),
        _ => return false,
    };
    args.iter()
        .any(|a| same_term(a, arg) || strict_over(a, arg))
}

/// `expression op constant`, whichever side it is on.
fn bound(condition: &Expr) -> Option<(&Expr, Strategy, &Expr)> {
    let Expr::Op { op, args, .. } = condition else {
        return None;
    };
    let strategy = op.strategy?;
    match &args[..] {
        [left, right @ Expr::Const(value, _)] if !value.is_null() => Some((left, strategy, right)),
        [left @ Expr::Const(value, _), right] if !value.is_null() => {
            Some((right, strategy.commuted(), left))
        }
        _ => None,
    }
}

/// Whether one comparison with a constant follows from another.
fn narrower(wanted: &Expr, known: &Expr) -> bool {
    let (Some((a, want, limit)), Some((b, know, value))) = (bound(wanted), bound(known)) else {
        return false;
    };
    let (Expr::Const(limit, limit_type), Expr::Const(value, value_type)) = (limit, value) else {
        return false;
    };
    if !same_term(a, b) || !same_keys(*limit_type, *value_type) {
        return false;
    }
    let order = comparator(limit_type.oid)(value, limit);
    match (want, know) {
        (Strategy::Equal, Strategy::Equal) => order == Ordering::Equal,
        (Strategy::Less, Strategy::Equal | Strategy::LessEqual) => order.is_lt(),
        (Strategy::Less, Strategy::Less) => order.is_le(),
        (Strategy::LessEqual, Strategy::Equal | Strategy::LessEqual | Strategy::Less) => {
            order.is_le()
        }
        (Strategy::Greater, Strategy::Equal | Strategy::GreaterEqual) => order.is_gt(),
        (Strategy::Greater, Strategy::Greater) => order.is_ge(),
        (Strategy::GreaterEqual, Strategy::Equal | Strategy::GreaterEqual | Strategy::Greater) => {
            order.is_ge()
        }
        _ => false,
    }
}
