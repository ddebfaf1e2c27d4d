//! Expressions over a row.
//!
//! One walk of the tree, no compilation: what a row costs here is small beside fetching it. An
//! evaluation that stops (a subquery that waits for a page, a sequence) is simply done again from
//! the start when its row is asked for again.

use throng_bind::expr::{ComputedOnce, DomainRules, Expr, ValuePart};
use throng_types::datum::{Array, Record};
use throng_types::error::state;
use throng_types::sqltype::{element_of, part_of};
use throng_types::{Datum, Error, SqlType, stack};
use throng_values::func::{Cast, CastContext, Function, Operator};
use throng_values::io::{geometric, typmod};

use super::{Cx, Row, Step};
use super::{items, replace, routine, subplan};
use crate::offload::{self, Callee, Site};

/// Whether a condition is true of a row: NULL is not true. Parts behind one that is not true are
/// not asked: they must not see rows that row security hides.
pub fn holds(condition: &Expr, row: &[Datum], cx: &mut Cx) -> Step<bool> {
    let Expr::And(parts) = condition else {
        return Ok(eval(condition, row, cx)?.is_true());
    };
    for part in parts {
        if !holds(part, row, cx)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Gives out a row that an operator has made, where it meets the operator's filter; `made` is false
/// then, either way.
pub fn show(
    filter: Option<&Expr>,
    pending: &mut Row,
    made: &mut bool,
    cx: &mut Cx,
    row: &mut Row,
) -> Step<bool> {
    let shown = match filter {
        Some(filter) => holds(filter, pending, cx)?,
        None => true,
    };
    cx.evaluated();
    *made = false;
    match shown {
        true => std::mem::swap(row, pending),
        false => cx.tick()?,
    }
    Ok(shown)
}

/// The value of `expr` over `row`.
pub fn eval(expr: &Expr, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    match expr {
        Expr::Const(value, _) => {
            cx.meet(value);
            Ok(value.clone())
        }
        Expr::Slot(at, _) => Ok(row[*at as usize].clone()),
        _ => compute(expr, row, cx),
    }
}

#[cold]
fn set_as_value() -> Step<Datum> {
    Err(Error::internal("a set-returning function as a value").into())
}

/// The same of what is computed.
fn compute(expr: &Expr, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    stack::check()?;
    Ok(match expr {
        Expr::Const(value, _) => value.clone(),
        Expr::Slot(at, _) => row[*at as usize].clone(),
        Expr::Param(at, _) => match cx.params.get(usize::from(*at)) {
            Some(value) => value.clone(),
            None => return Err(no_parameter(*at).into()),
        },
        Expr::Outer(param, _) => cx.outer[param.0 as usize].clone(),
        Expr::Call { func, args, .. } if matches!(args.last(), Some(Expr::Variadic(_))) => {
            let value = call_spread(func, args, row, cx)?;
            cx.weigh(&value)?;
            value
        }
        Expr::Call { func, args, .. } => {
            let value = call(args, row, cx, Callee::Function(func))?;
            cx.weigh(&value)?;
            value
        }
        Expr::Op { op, args, .. } => {
            let value = call(args, row, cx, Callee::Operator(op))?;
            cx.weigh(&value)?;
            value
        }
        Expr::Routine(routine) => return routine::value(routine, row, cx),
        Expr::Own(form) => return eval(&form.value, row, cx),
        Expr::SetCall { .. } | Expr::SetRoutine(_) | Expr::Variadic(_) => return set_as_value(),
        Expr::Cast {
            arg,
            cast: how,
            to,
            context,
        } => {
            let at = cx.env.effects.at();
            let site = Site {
                args: std::slice::from_ref(arg),
                other: None,
                at,
            };
            if let (Some(_), Some(value)) = (how, offload::answered(site, cx)) {
                cx.weigh(&value)?;
                return fitted(value, *to, *context);
            }
            let value = eval(arg, row, cx)?;
            return cast(value, *how, (*to, *context), site, cx);
        }
        Expr::ToDomain(arg, rules) => {
            let value = eval(arg, row, cx)?;
            check_domain(&value, rules, cx)?;
            value
        }
        Expr::And(parts) => return connective(parts, row, cx, false),
        Expr::Or(parts) => return connective(parts, row, cx, true),
        Expr::Not(arg) => match eval(arg, row, cx)? {
            Datum::Bool(b) => Datum::Bool(!b),
            _ => Datum::Null,
        },
        Expr::IsNull(arg) => Datum::Bool(null_test(&eval(arg, row, cx)?, true)),
        Expr::IsNotNull(arg) => Datum::Bool(null_test(&eval(arg, row, cx)?, false)),
        Expr::IsBool {
            arg,
            value,
            negated,
        } => {
            let is = match (eval(arg, row, cx)?, value) {
                (Datum::Bool(b), Some(v)) => b == *v,
                (Datum::Null, None) => true,
                _ => false,
            };
            Datum::Bool(is != *negated)
        }
        Expr::IsDistinct {
            equal,
            left,
            right,
            negated,
        } => {
            let pair = [eval(left, row, cx)?, eval(right, row, cx)?];
            let distinct = match (pair[0].is_null(), pair[1].is_null()) {
                (true, true) => false,
                (false, false) => !equal.call(&cx.eval, &pair)?.is_true(),
                _ => true,
            };
            Datum::Bool(distinct != *negated)
        }
        Expr::Case {
            operand,
            whens,
            default,
            ..
        } => {
            return match operand {
                None => branches(whens, default, row, cx),
                Some(operand) => {
                    let operand = eval(operand, row, cx)?;
                    cx.case_operands.push(operand);
                    let result = branches(whens, default, row, cx);
                    cx.case_operands.pop();
                    result
                }
            };
        }
        Expr::CaseOperand(_) => match cx.case_operands.last() {
            Some(operand) => operand.clone(),
            None => return Err(Error::internal("a CASE operand outside of CASE").into()),
        },
        Expr::Coalesce(args, _) => {
            for arg in args {
                let value = eval(arg, row, cx)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Datum::Null
        }
        Expr::NullIf {
            equal, left, right, ..
        } => {
            let pair = [eval(left, row, cx)?, eval(right, row, cx)?];
            if equal.call(&cx.eval, &pair)?.is_true() {
                return Ok(Datum::Null);
            }
            let [left, _] = pair;
            left
        }
        Expr::MinMax {
            greatest,
            less,
            args,
            ..
        } => {
            let mut best = Datum::Null;
            for arg in args {
                let value = eval(arg, row, cx)?;
                if value.is_null() {
                    continue;
                }
                let pair = [value, best];
                let better = pair[1].is_null() || {
                    let [value, best] = &pair;
                    let (low, high) = if *greatest {
                        (best, value)
                    } else {
                        (value, best)
                    };
                    less.call(&cx.eval, &[low.clone(), high.clone()])?.is_true()
                };
                let [value, kept] = pair;
                best = if better { value } else { kept };
            }
            best
        }
        Expr::ArrayCompare {
            op,
            left,
            array,
            all,
        } => {
            return array_compare(op, *all, (left, array), row, cx);
        }
        Expr::Array(items, ty) => {
            let value = array(items, *ty, row, cx)?;
            cx.weigh(&value)?;
            value
        }
        Expr::Subscript { array, index, .. } => {
            let array = eval(array, row, cx)?;
            item_at(&array, eval(index, row, cx)?)
        }
        Expr::Field { row: of, index, .. } => match eval(of, row, cx)? {
            Datum::Record(record) => {
                let field = record.values.get(usize::from(*index));
                field.cloned().unwrap_or_default()
            }
            _ => Datum::Null,
        },
        Expr::Items { array, place, .. } => return items_of(array, place, row, cx),
        Expr::Replace { base, place, value } => {
            let value = replaced(base, place, value, row, cx)?;
            cx.weigh(&value)?;
            value
        }
        Expr::Row(items, names) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(eval(item, row, cx)?);
            }
            throng_types::height::check(&values)?;
            let types = items.iter().map(|e| e.ty().oid).collect();
            let names = names.clone();
            Datum::Record(
                Record {
                    types,
                    names,
                    values,
                }
                .into(),
            )
        }
        Expr::SubPlan(sub) => return subplan::eval(sub, row, cx),
        Expr::Once(once) => return computed_once(once, row, cx),
        Expr::Var(_)
        | Expr::Aggregate(_)
        | Expr::Window(_)
        | Expr::Grouping(_)
        | Expr::Subquery(_) => {
            return Err(Error::internal("an unplanned expression reached the executor").into());
        }
    })
}

fn computed_once(once: &ComputedOnce, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    let number = once.number as usize;
    if let Some(Some(known)) = cx.once.get(number) {
        return Ok(known.clone());
    }
    let value = eval(&once.expr, row, cx)?;
    if let Some(place) = cx.once.get_mut(number) {
        *place = Some(value.clone());
    }
    Ok(value)
}

/// A parameter in a statement that came without values.
#[cold]
fn no_parameter(at: u16) -> Error {
    Error::new(
        state::UNDEFINED_PARAMETER,
        format!("there is no parameter ${}", at + 1),
    )
}

/// `left op ANY (array)`, or ALL.
fn array_compare(
    op: &'static Operator,
    all: bool,
    (left, array): (&Expr, &Expr),
    row: &[Datum],
    cx: &mut Cx,
) -> Step<Datum> {
    let site = Site {
        args: std::slice::from_ref(array),
        other: Some(left),
        at: cx.env.effects.at(),
    };
    if let Some(value) = offload::answered(site, cx) {
        return Ok(value);
    }
    let left = eval(left, row, cx)?;
    let array = eval(array, row, cx)?;
    items::compare(op, all, [left, array], site, cx)
}

/// Evaluates the arguments, without a heap allocation where there are three or fewer, and calls.
fn call(args: &[Expr], row: &[Datum], cx: &mut Cx, callee: Callee) -> Step<Datum> {
    let at = cx.env.effects.at();
    let site = Site {
        args,
        other: None,
        at,
    };
    if let Some(value) = offload::answered(site, cx) {
        return Ok(value);
    }
    let f = |cx: &Cx, args: &[Datum]| offload::call(callee, args, site, cx);
    Ok(match args {
        [] => f(cx, &[])?,
        [a] => {
            let args = [eval(a, row, cx)?];
            f(cx, &args)?
        }
        [a, b] => {
            let args = [eval(a, row, cx)?, eval(b, row, cx)?];
            f(cx, &args)?
        }
        [a, b, c] => {
            let args = [eval(a, row, cx)?, eval(b, row, cx)?, eval(c, row, cx)?];
            f(cx, &args)?
        }
        many => {
            let mut values = Vec::with_capacity(many.len());
            for arg in many {
                values.push(eval(arg, row, cx)?);
            }
            f(cx, &values)?
        }
    })
}

/// Calls a function with the items of an array, its last argument; NULL where that is NULL.
fn call_spread(func: &'static Function, args: &[Expr], row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    let at = cx.env.effects.at();
    let site = Site {
        args,
        other: None,
        at,
    };
    if let Some(value) = offload::answered(site, cx) {
        return Ok(value);
    }
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        values.push(match arg {
            Expr::Variadic(array) => eval(array, row, cx)?,
            arg => eval(arg, row, cx)?,
        });
    }
    match values.last() {
        Some(Datum::Array(_)) => {}
        // To `format` it is as if nothing were given.
        _ if func.name == "format" => {}
        _ => return Ok(Datum::Null),
    }
    offload::call(Callee::Spread(func), &values, site, cx)
}

/// AND (`decisive` false) and OR (`decisive` true): the decisive value ends it, NULL makes it
/// unknown.
fn connective(parts: &[Expr], row: &[Datum], cx: &mut Cx, decisive: bool) -> Step<Datum> {
    let mut unknown = false;
    for part in parts {
        match eval(part, row, cx)? {
            Datum::Bool(b) if b == decisive => return Ok(Datum::Bool(decisive)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown {
        Datum::Null
    } else {
        Datum::Bool(!decisive)
    })
}

/// IS [NOT] NULL: a row value is null if all its fields are, and not null if none is.
fn null_test(value: &Datum, null: bool) -> bool {
    match value {
        Datum::Record(record) => record.values.iter().all(|v| v.is_null() == null),
        value => value.is_null() == null,
    }
}

fn branches(whens: &[(Expr, Expr)], default: &Expr, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    for (when, then) in whens {
        if eval(when, row, cx)?.is_true() {
            return eval(then, row, cx);
        }
    }
    eval(default, row, cx)
}

/// Converts a value, then fits it to the target's modifier.
fn cast(
    value: Datum,
    how: Option<&'static Cast>,
    (to, context): (SqlType, CastContext),
    site: Site<'_>,
    cx: &mut Cx,
) -> Step<Datum> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let converted = match how {
        Some(cast) => {
            let value = std::slice::from_ref(&value);
            let value = offload::call(Callee::Cast(cast, to.typmod), value, site, cx)?;
            cx.weigh(&value)?;
            value
        }
        None => value,
    };
    fitted(converted, to, context)
}

/// A value under its type's modifier.
fn fitted(value: Datum, to: SqlType, context: CastContext) -> Step<Datum> {
    if to.typmod < 0 {
        return Ok(value);
    }
    Ok(typmod::apply(value, to, context == CastContext::Explicit)?)
}

/// What a subscript tells: an item of an array, a part of a point.
fn item_at(whole: &Datum, index: Datum) -> Datum {
    let item = match (whole, index) {
        (Datum::Array(array), Datum::Int4(index)) => array.get(&[index]).cloned(),
        (Datum::Base(value), Datum::Int4(index)) => geometric::part(value, index),
        _ => None,
    };
    item.unwrap_or_default()
}

/// Subscripts; None where one is NULL.
fn subscripts(at: &[Expr], row: &[Datum], cx: &mut Cx) -> Step<Option<Vec<i32>>> {
    let mut all = Vec::with_capacity(at.len());
    for at in at {
        match eval(at, row, cx)? {
            Datum::Int4(at) => all.push(at),
            _ => return Ok(None),
        }
    }
    Ok(Some(all))
}

/// An item or a slice of an array; NULL where a subscript is.
fn items_of(array: &Expr, place: &ValuePart, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    let whole = eval(array, row, cx)?;
    let Datum::Array(whole) = whole else {
        return Ok(Datum::Null);
    };
    match place {
        ValuePart::Item(at) => {
            let at = subscripts(at, row, cx)?;
            Ok(at
                .and_then(|at| whole.get(&at).cloned())
                .unwrap_or_default())
        }
        ValuePart::Slice { lower, upper } => {
            let mut bounds = Vec::with_capacity(lower.len());
            for (lower, upper) in lower.iter().zip(upper) {
                let mut bound = |at: &Option<Expr>| match at {
                    None => Ok(Some(None)),
                    Some(at) => match eval(at, row, cx)? {
                        Datum::Int4(at) => Step::Ok(Some(Some(at))),
                        _ => Ok(None),
                    },
                };
                let (Some(lower), Some(upper)) = (bound(lower)?, bound(upper)?) else {
                    return Ok(Datum::Null);
                };
                bounds.push((lower, upper));
            }
            Ok(replace::taken(&whole, &bounds))
        }
        ValuePart::Field { .. } => Err(Error::internal("a field of an array").into()),
    }
}

/// A value with a part of it replaced.
fn replaced(
    base: &Expr,
    place: &ValuePart,
    value: &Expr,
    row: &[Datum],
    cx: &mut Cx,
) -> Step<Datum> {
    let element = element_of(base.ty().oid);
    let known = || element.ok_or_else(|| Error::internal("an item of what is no array"));
    let whole = eval(base, row, cx)?;
    let value = eval(value, row, cx)?;
    Ok(match place {
        ValuePart::Field { index, fields } => {
            replace::field(&whole, usize::from(*index), fields, value)
        }
        ValuePart::Item(at) => {
            let mut subscripts = Vec::with_capacity(at.len());
            for at in at {
                subscripts.push(assigned_subscript(at, row, cx)?);
            }
            match (element, &whole, &subscripts[..]) {
                (None, Datum::Base(whole), [at]) => geometric::with_part(whole, *at, &value)?,
                // A value that is not there has no parts.
                (None, Datum::Null, _) if part_of(base.ty().oid).is_some() => Datum::Null,
                _ => replace::item(&whole, known()?, &subscripts, value)?,
            }
        }
        ValuePart::Slice { lower, upper } => {
            let mut bounds = Vec::with_capacity(lower.len());
            for (lower, upper) in lower.iter().zip(upper) {
                let mut bound = |at: &Option<Expr>| match at {
                    Some(at) => assigned_subscript(at, row, cx).map(Some),
                    None => Ok(None),
                };
                bounds.push((bound(lower)?, bound(upper)?));
            }
            replace::slice(&whole, known()?, &bounds, &value)?
        }
    })
}

fn assigned_subscript(at: &Expr, row: &[Datum], cx: &mut Cx) -> Step<i32> {
    match eval(at, row, cx)? {
        Datum::Int4(at) => Ok(at),
        _ => {
            let message = "array subscript in assignment must not be null";
            Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message).into())
        }
    }
}

/// 23502 and 23514 for a value that is none of the domain's.
pub fn check_domain(value: &Datum, rules: &DomainRules, cx: &mut Cx) -> Step<()> {
    if rules.not_null && value.is_null() {
        return Err(rules.refuses_null().into());
    }
    for rule in &rules.checks {
        let row = std::slice::from_ref(value);
        // A check that is NULL is satisfied.
        if eval(&rule.expr, row, cx)? == Datum::Bool(false) {
            return Err(rules.violated(rule).into());
        }
    }
    if let (Some(rules), Datum::Array(array)) = (&rules.items, value) {
        for item in &array.items {
            check_domain(item, rules, cx)?;
        }
    }
    Ok(())
}

/// `left op ANY (array)` and `left op ALL (array)`, with SQL's three values.
/// `ARRAY[…]`: items of the element type, or arrays of the same shape one dimension down.
fn array(items: &[Expr], ty: SqlType, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(eval(item, row, cx)?);
    }
    let element = element_of(ty.oid).unwrap_or(ty.oid);
    let nested = items.first().is_some_and(|e| e.ty().oid == ty.oid);
    if !nested {
        return Ok(Datum::array(Array::from_items(element, values)));
    }
    let mismatch = || {
        Error::new(
            state::ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions",
        )
    };
    // Nothing but NULLs and empty arrays makes an empty one.
    let is_empty = |v: &Datum| !matches!(v, Datum::Array(inner) if !inner.dims.is_empty());
    if values.iter().all(is_empty) {
        return Ok(Datum::array(Array::from_items(element, vec![])));
    }
    let mut inner_dims = None;
    let mut flat = Vec::new();
    for value in &values {
        let Datum::Array(inner) = value else {
            return Err(mismatch().into());
        };
        if *inner_dims.get_or_insert_with(|| inner.dims.clone()) != inner.dims {
            return Err(mismatch().into());
        }
        flat.extend_from_slice(&inner.items);
    }
    let mut dims = vec![throng_types::datum::Dim {
        len: values.len() as i32,
        lower: 1,
    }];
    dims.extend(inner_dims.unwrap_or_default());
    Ok(Datum::array(Array {
        element,
        dims,
        items: flat,
    }))
}
