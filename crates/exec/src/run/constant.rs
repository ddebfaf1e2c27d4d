//! Computing the constant parts of expressions before any row is met, as PostgreSQL's planner does:
//! see [`throng_plan::PlannedStatement::suspects`].
//!
//! AND, OR, CASE and COALESCE keep what they would not come to from being computed, where a
//! constant tells.

use throng_bind::expr::Expr;
use throng_bind::fold::varies;
use throng_plan::is_immutable;
use throng_types::Datum;

use super::eval::eval;
use super::{Cx, Step};

/// Fails where a constant part does.
pub fn check(exprs: &[Expr], cx: &mut Cx) -> Step<()> {
    for expr in exprs {
        known(expr, false, cx)?;
    }
    Ok(())
}

/// The value of an expression that is constant. `constants`: the operand of the CASE around it is.
fn known(expr: &Expr, constants: bool, cx: &mut Cx) -> Step<Option<Datum>> {
    match expr {
        Expr::Const(value, _) => Ok(Some(value.clone())),
        Expr::And(parts) | Expr::Or(parts) => connective(expr, parts, constants, cx),
        Expr::Case {
            operand: None,
            whens,
            default,
            ..
        } => branches(whens, default, constants, cx),
        Expr::Case {
            operand: Some(operand),
            whens,
            default,
            ..
        } => {
            let operand = known(operand, constants, cx)?;
            let constants = operand.is_some();
            cx.case_operands.push(operand.unwrap_or_default());
            let result = branches(whens, default, constants, cx);
            cx.case_operands.pop();
            result
        }
        Expr::CaseOperand(_) if constants => Ok(cx.case_operands.last().cloned()),
        Expr::Coalesce(args, _) => {
            let mut all = true;
            for arg in args {
                match known(arg, constants, cx)? {
                    Some(Datum::Null) => {}
                    Some(value) => return Ok(all.then_some(value)),
                    None => all = false,
                }
            }
            Ok(all.then_some(Datum::Null))
        }
        _ => whole(expr, constants, cx),
    }
}

/// An expression whose operands are all computed. Their values stand for them: one that a constant
/// decides (`a OR true`) may hold what is not.
fn whole(expr: &Expr, constants: bool, cx: &mut Cx) -> Step<Option<Datum>> {
    let mut operands = Vec::new();
    expr.for_each_child(&mut |child| operands.push(child));
    let mut values = Vec::with_capacity(operands.len());
    for operand in operands {
        values.push(known(operand, constants, cx)?);
    }
    let Some(values) = values.into_iter().collect::<Option<Vec<Datum>>>() else {
        return Ok(None);
    };
    if !is_immutable(expr) || varies(expr) {
        return Ok(None);
    }
    let mut over_values = expr.clone();
    let mut values = values.into_iter();
    over_values.for_each_child_mut(&mut |child| {
        if let Some(value) = values.next() {
            *child = Expr::Const(value, child.ty());
        }
    });
    Ok(Some(eval(&over_values, &[], cx)?))
}

/// AND and OR: nothing after the value that decides is looked at.
fn connective(expr: &Expr, parts: &[Expr], constants: bool, cx: &mut Cx) -> Step<Option<Datum>> {
    let decisive = matches!(expr, Expr::Or(_));
    let (mut constant, mut null) = (true, false);
    for part in parts {
        match known(part, constants, cx)? {
            Some(Datum::Bool(b)) if b == decisive => return Ok(Some(Datum::Bool(b))),
            Some(value) => null |= value.is_null(),
            None => constant = false,
        }
    }
    let undecided = match null {
        true => Datum::Null,
        false => Datum::Bool(!decisive),
    };
    Ok(constant.then_some(undecided))
}

fn branches(
    whens: &[(Expr, Expr)],
    default: &Expr,
    constants: bool,
    cx: &mut Cx,
) -> Step<Option<Datum>> {
    let mut certain = true;
    for (when, then) in whens {
        match known(when, constants, cx)? {
            Some(Datum::Bool(true)) => return Ok(known(then, constants, cx)?.filter(|_| certain)),
            Some(_) => {}
            None => {
                known(then, constants, cx)?;
                certain = false;
            }
        }
    }
    Ok(known(default, constants, cx)?.filter(|_| certain))
}
