//! Constant parts of a plan that may fail: PostgreSQL computes them while it plans, so they fail
//! whether or not a row is met.
//!
//! What can be computed without parameters has been by now ([`throng_bind::fold`]). What is left
//! failed then, or waits for values; a plan lists the expressions that hold such parts, and whoever
//! runs it has them computed first.

use throng_types::{Datum, oid};

use super::{Node, Plan, PlannedStatement};
use throng_bind::expr::Expr;
use throng_bind::fold::{self, is_fixed, is_immutable_cast};
use throng_values::func::{EvalContext, Volatility};

/// The expressions of a plan with constant parts that may fail.
pub(super) fn suspects<'a>(plans: impl Iterator<Item = &'a Plan>) -> Vec<Expr> {
    let mut found = Vec::new();
    for plan in plans {
        collect(plan, &mut found);
    }
    found
}

fn collect(plan: &Plan, found: &mut Vec<Expr>) {
    // The rows of VALUES are computed in any case: only what fails without parameters is of
    // interest.
    let is_values = matches!(plan.node, Node::Values { .. });
    plan.own_exprs(&mut |e| {
        if e.any(&mut |node| may_fail(node) && !(is_values && has_parameters(node))) {
            found.push(e.clone());
        }
    });
    plan.children().into_iter().for_each(|p| collect(p, found));
}

/// Whether one of these expressions holds a constant part without parameters: it failed when it was
/// folded.
pub(super) fn fail_at_bind(suspects: &[Expr]) -> bool {
    let failed = |node: &Expr| may_fail(node) && !has_parameters(node);
    suspects.iter().any(|e| e.any(&mut |node| failed(node)))
}

fn has_parameters(expr: &Expr) -> bool {
    expr.any(&mut |node| matches!(node, Expr::Param(..)))
}

/// Whether this node is constant and may still fail.
fn may_fail(expr: &Expr) -> bool {
    let fails = match expr {
        // Comparisons do not, and a sign is part of a number.
        Expr::Op { op, args, .. } => {
            op.volatility == Volatility::Immutable && args.len() > 1 && op.ret != oid::BOOL
        }
        Expr::Call { func, .. } => func.volatility == Volatility::Immutable,
        Expr::Cast {
            arg,
            cast: Some(cast),
            ..
        } => is_text(arg.type_oid()) && is_immutable_cast(cast.from, cast.to),
        _ => false,
    };
    fails && is_fixed(expr)
}

fn is_text(ty: throng_types::Oid) -> bool {
    matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::UNKNOWN)
}

/// Whether a node, its operands apart, gives the same under any settings.
pub fn is_immutable(expr: &Expr) -> bool {
    match expr {
        Expr::Op { op, .. } => op.volatility == Volatility::Immutable,
        Expr::Call { func, .. } => func.volatility == Volatility::Immutable,
        Expr::Cast { cast, .. } => cast.is_none_or(|c| is_immutable_cast(c.from, c.to)),
        Expr::Variadic(_) | Expr::ToDomain(..) => false,
        _ => true,
    }
}

/// Whether a statement reads nothing and computes what is the same at any time: PostgreSQL does so
/// while it plans it.
pub fn is_constant(plan: &PlannedStatement) -> bool {
    computes_only(&plan.root)
}

fn computes_only(plan: &Plan) -> bool {
    match &plan.node {
        Node::Values { rows } => rows.iter().flatten().all(is_steady),
        Node::Project { input, exprs } => computes_only(input) && exprs.iter().all(is_steady),
        _ => false,
    }
}

fn is_steady(expr: &Expr) -> bool {
    let steady = |volatility| volatility == Volatility::Immutable;
    let varies = |expr: &Expr| match expr {
        Expr::Call { func, .. } | Expr::SetCall { func, .. } => !steady(func.volatility),
        Expr::Routine(call) | Expr::SetRoutine(call) => !steady(call.def.volatility),
        Expr::Op { op, .. } => !steady(op.volatility),
        Expr::SubPlan { .. } => true,
        _ => false,
    };
    !expr.any(&mut |e| varies(e))
}

/// The value of an expression that speaks of no row, where it can be told before the statement
/// runs.
pub(super) fn value_now(expr: &Expr, eval: &EvalContext<'_>) -> Option<Datum> {
    let waits = |e: &Expr| fold::varies(e) || matches!(e, Expr::Param(..));
    if let Expr::Const(value, _) = expr {
        return Some(value.clone());
    }
    if expr.any(&mut |e| waits(e)) {
        return None;
    }
    fold::constant_value(expr.clone(), eval).ok().flatten()
}
