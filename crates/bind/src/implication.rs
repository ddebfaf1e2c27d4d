//! Whether a condition follows from others: each of its conjuncts is one of them, or follows from
//! one: a comparison with a constant from a narrower one, IS NOT NULL from anything that is not
//! true of NULL.

use std::cmp::Ordering;

use crate::fold::fold;
use crate::tree::expr::{Expr, same_term};
use throng_types::key::same_keys;
use throng_values::func::compare::comparator;
use throng_values::func::{EvalContext, Strategy};

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
