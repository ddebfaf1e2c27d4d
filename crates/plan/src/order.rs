//! Which keys of an ORDER BY decide anything: not those that an equality holds at one value, nor
//! what came before.

use throng_bind::expr::{Expr, SortKey};
use throng_bind::fold;
use throng_types::key::same_keys;

/// The keys that are left, over rows that meet the conditions.
pub(super) fn deciding(order: &[SortKey], conditions: &[Expr]) -> Vec<SortKey> {
    let mut kept: Vec<SortKey> = Vec::with_capacity(order.len());
    for key in order {
        let came = kept.iter().any(|before| before.expr == key.expr);
        if !came && !conditions.iter().any(|c| fixes(c, &key.expr)) {
            kept.push(key.clone());
        }
    }
    kept
}

/// Whether a condition leaves an expression one value only.
fn fixes(condition: &Expr, expr: &Expr) -> bool {
    let Expr::Op { op, args, .. } = condition else {
        return false;
    };
    let [left, right] = &args[..] else {
        return false;
    };
    op.strategy == Some(throng_values::func::Strategy::Equal)
        && (is_of(left, expr) && is_constant(right) || is_of(right, expr) && is_constant(left))
}

/// Whether it is the expression under conversions that leave its order as it is.
fn is_of(side: &Expr, expr: &Expr) -> bool {
    side == expr
        || matches!(side, Expr::Cast { arg, to, .. }
            if to.typmod < 0 && same_keys(arg.ty(), *to) && is_of(arg, expr))
}

fn is_constant(expr: &Expr) -> bool {
    let mut varies = false;
    expr.for_each_var(&mut |_| varies = true);
    !varies && !expr.any(&mut |e| matches!(e, Expr::Subquery(_)) || fold::is_volatile(e))
}
