//! Computing before a statement runs what cannot change: immutable functions of constants; and what
//! may change, from row to row or from one execution to the next.

use throng_types::datum::Array;
use throng_types::sqltype::element_of;
use throng_types::{Datum, Oid, interrupt, oid};

use crate::tree::expr::Expr;
use crate::tree::query::{Body, CteBody, FromItem, Query, RelKind};
use throng_values::func::{Cast, EvalContext, EvalResult, Volatility};
use throng_values::io::typmod;

fn constant(expr: &Expr) -> Option<&Datum> {
    match expr {
        Expr::Const(value, _) => Some(value),
        _ => None,
    }
}

fn constants(exprs: &[Expr]) -> Option<Vec<Datum>> {
    exprs.iter().map(|e| constant(e).cloned()).collect()
}

/// What a call gives, unless that takes long: then it is computed when the statement is run, where
/// others need not wait for it.
fn soon(args: &[Datum], call: impl FnOnce(&[Datum]) -> EvalResult) -> Option<EvalResult> {
    match interrupt::are_long(args) {
        true => None,
        false => interrupt::briefly(|| call(args)),
    }
}

/// The same expression, as a constant if it is one. What fails stays as it is: the error is for the
/// one who runs it.
pub fn fold(expr: Expr, ctx: &EvalContext<'_>) -> Expr {
    let ty = expr.ty();
    if has_null_for_null(&expr) {
        return Expr::Const(Datum::Null, ty);
    }
    let computed: Option<EvalResult> = match &expr {
        Expr::Op { op, args, .. } if op.volatility == Volatility::Immutable => {
            constants(args).and_then(|args| soon(&args, |args| op.call(ctx, args)))
        }
        Expr::Call { func, args, .. } if func.volatility == Volatility::Immutable => {
            constants(args).and_then(|args| soon(&args, |args| func.call(ctx, args)))
        }
        Expr::Cast {
            arg,
            cast,
            to,
            context,
        } => match constant(arg) {
            Some(value) if cast.is_none_or(|c| is_immutable_cast(c.from, c.to)) => {
                let converted = match cast {
                    Some(cast) if !value.is_null() => {
                        let value = std::slice::from_ref(value);
                        soon(value, |value| cast.apply_to(ctx, &value[0], to.typmod))
                    }
                    _ => Some(Ok(value.clone())),
                };
                converted.map(|converted| {
                    converted.and_then(|value| {
                        let explicit = *context == throng_values::func::CastContext::Explicit;
                        if to.typmod < 0 || value.is_null() {
                            return Ok(value);
                        }
                        Ok(typmod::apply(value, *to, explicit)?)
                    })
                })
            }
            _ => None,
        },
        Expr::Array(items, ty) => element_of(ty.oid)
            .filter(|element| items.iter().all(|item| item.type_oid() == *element))
            .and_then(|element| {
                constants(items).map(|items| Ok(Datum::array(Array::from_items(element, items))))
            }),
        Expr::Not(arg) => match constant(arg) {
            Some(Datum::Bool(b)) => Some(Ok(Datum::Bool(!b))),
            _ => None,
        },
        _ => None,
    };
    match computed {
        Some(Ok(value)) => Expr::Const(value, ty),
        _ => expr,
    }
}

/// The value of an expression that speaks of no row; none where it can be told only when it is run.
///
/// # Errors
/// What its functions object to.
pub fn constant_value(
    mut expr: Expr,
    ctx: &EvalContext<'_>,
) -> throng_types::Result<Option<Datum>> {
    let mut failed = None;
    expr.for_each_child_mut(&mut |child| {
        let whole = std::mem::replace(child, Expr::bool(true));
        let ty = whole.ty();
        match constant_value(whole.clone(), ctx) {
            Ok(Some(value)) => *child = Expr::Const(value, ty),
            Ok(None) => *child = whole,
            Err(e) => failed = Some(e),
        }
    });
    if let Some(e) = failed {
        return Err(e);
    }
    let called = match &expr {
        Expr::Call { func, args, .. } => {
            constants(args).map(|args| soon(&args, |args| func.call(ctx, args)))
        }
        Expr::Op { op, args, .. } => {
            constants(args).map(|args| soon(&args, |args| op.call(ctx, args)))
        }
        Expr::Cast {
            arg,
            cast: Some(cast),
            to,
            context,
        } => constant(arg).map(|value| {
            if value.is_null() {
                return Some(Ok(Datum::Null));
            }
            let applied = soon(std::slice::from_ref(value), |value| {
                cast.apply_to(ctx, &value[0], to.typmod)
            })?;
            Some(applied.and_then(|value| {
                if to.typmod < 0 || value.is_null() {
                    return Ok(value);
                }
                let explicit = *context == throng_values::func::CastContext::Explicit;
                Ok(typmod::apply(value, *to, explicit)?)
            }))
        }),
        _ => None,
    };
    match called {
        Some(None) => Ok(None),
        Some(Some(value)) => value
            .map(Some)
            .map_err(throng_values::func::EvalStop::into_error),
        None => Ok(constant(&fold(expr, ctx)).cloned()),
    }
}

/// Whether NULL comes out whatever the other arguments are: they are not even computed then, and
/// cannot fail.
fn has_null_for_null(expr: &Expr) -> bool {
    let (strict, args) = match expr {
        Expr::Op { op, args, .. } => (op.strict, args),
        Expr::Call { func, args, .. } => (func.strict, args),
        _ => return false,
    };
    strict
        && args
            .iter()
            .any(|arg| constant(arg).is_some_and(Datum::is_null))
}

/// Whether a cast gives the same under any settings.
pub fn is_steady_cast(cast: &Cast) -> bool {
    is_immutable_cast(cast.from, cast.to)
}

/// Whether a conversion depends on nothing but its input: not on DateStyle, the time zone or the
/// catalog.
pub fn is_immutable_cast(from: Oid, to: Oid) -> bool {
    let zoned = |ty| matches!(ty, oid::TIMESTAMPTZ | oid::TIMETZ);
    let text = |ty| {
        matches!(
            ty,
            oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::UNKNOWN | oid::NAME
        )
    };
    let dated = |ty| matches!(ty, oid::DATE | oid::TIME | oid::TIMESTAMP | oid::INTERVAL);
    let named = |ty| throng_values::io::object_kind(ty).is_some();
    let by_zone = zoned(from) || zoned(to);
    let by_catalog = named(from) || named(to);
    let by_style = (text(from) && dated(to)) || (dated(from) && text(to));
    !(by_zone || by_catalog || by_style)
}

/// Whether a planned expression has one value for all rows of an execution.
pub fn is_fixed(expr: &Expr) -> bool {
    !expr.any(&mut varies)
}

/// Whether this node by itself may have another value for another row.
pub fn varies(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Slot(..)
            | Expr::Outer(..)
            | Expr::Var(_)
            | Expr::CaseOperand(_)
            | Expr::SubPlan(_)
            | Expr::Subquery(_)
            | Expr::Aggregate(_)
            | Expr::Grouping(_)
            | Expr::Window(_)
            | Expr::SetCall { .. }
            | Expr::SetRoutine(_)
            | Expr::Routine(_)
    ) || is_volatile(expr)
}

/// Whether this node, its operands apart, may give another value for the same row; of a subquery
/// all of it counts.
pub fn is_volatile(expr: &Expr) -> bool {
    match expr {
        Expr::Call { func, .. } | Expr::SetCall { func, .. } => {
            func.volatility == Volatility::Volatile
        }
        Expr::Routine(call) | Expr::SetRoutine(call) => call.def.volatility == Volatility::Volatile,
        Expr::Op { op, .. } => op.volatility == Volatility::Volatile,
        Expr::Subquery(sub) => !is_steady(&sub.query),
        Expr::SubPlan(sub) => sub.volatile.is_some(),
        _ => false,
    }
}

/// Whether a query gives the same rows wherever it is run, and does nothing but read.
pub fn is_steady(query: &Query) -> bool {
    let mut steady = query.locks.is_empty();
    query.for_each_expr(&mut |e| {
        steady = steady && !e.any(&mut is_volatile);
    });
    steady && nested_steady(query)
}

fn nested_steady(query: &Query) -> bool {
    match &query.body {
        Body::Select(select) => select.from.iter().all(is_steady_item),
        Body::Values { .. } => true,
        Body::SetOp { left, right, .. } => is_steady(left) && is_steady(right),
    }
}

fn is_steady_item(item: &FromItem) -> bool {
    match item {
        FromItem::Rel(rel) => match &rel.kind {
            RelKind::Subquery { query, .. } | RelKind::View { query, .. } => is_steady(query),
            RelKind::Function { func, .. } => func.volatility != Volatility::Volatile,
            RelKind::RowsFrom { items, .. } => items.iter().all(is_steady_item),
            RelKind::Routine { call, .. } => call.def.volatility != Volatility::Volatile,
            _ => true,
        },
        FromItem::Join { left, right, .. } => is_steady_item(left) && is_steady_item(right),
    }
}

impl CteBody {
    /// See [`is_steady`].
    pub fn is_steady(&self) -> bool {
        match self {
            CteBody::Query(query) => is_steady(query),
            CteBody::Recursive { init, term, .. } => is_steady(init) && is_steady(term),
            CteBody::Write(_) => false,
        }
    }
}
