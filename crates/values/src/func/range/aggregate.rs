//! `range_agg` and `range_intersect_agg`.

use super::{multi, of_multirange, of_range, range, type_of_value};
use crate::func::aggregate::other::value_finish;
use crate::func::aggregate::table::{aggregates, undo};
use crate::func::aggregate::{AggState, Step, empty, mixed};
use crate::func::{AggKind, Aggregate, EvalContext, EvalResult};
use crate::range::{gather, intersect};
use throng_types::oid::*;
use throng_types::{Datum, Oid};

fn gather_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    match (state, &args[0]) {
        (_, Datum::Null) => {}
        (AggState::Items(items), value) => items.push(value.clone()),
        (state, value) => *state = AggState::Items(vec![value.clone()]),
    }
    Ok(())
}

fn gather_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (&mut *state, other) {
        (AggState::Items(items), AggState::Items(more)) => items.extend(more),
        (AggState::Empty, other) => *state = other,
        (_, AggState::Empty) => {}
        _ => return Err(mixed()),
    }
    Ok(())
}

fn gather_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    let AggState::Items(items) = state else {
        return Ok(Datum::Null);
    };
    let Some(first) = items.first() else {
        return Ok(Datum::Null);
    };
    let ty = type_of_value(first)?;
    let ranges = items.iter().flat_map(multi::parts).cloned().collect();
    Ok(of_multirange(gather(&ty, ranges)?))
}

fn shared(a: &Datum, b: &Datum) -> EvalResult {
    Ok(match a {
        Datum::Range(a) => of_range(intersect(a, range(b))),
        a => of_multirange(multi::intersection(&type_of_value(a)?, a, b)?),
    })
}

fn intersect_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    let value = match (&*state, &args[0]) {
        (_, Datum::Null) => return Ok(()),
        (AggState::Value(Datum::Null) | AggState::Empty, value) => value.clone(),
        (AggState::Value(old), value) => shared(old, value)?,
        _ => return Err(mixed()),
    };
    *state = AggState::Value(value);
    Ok(())
}

fn intersect_combine(cx: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match other {
        AggState::Value(value) => intersect_step(cx, state, &[value]),
        AggState::Empty => Ok(()),
        _ => Err(mixed()),
    }
}

/// What the aggregates keep, as functions.
pub(super) fn intersect_values(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    shared(&args[0], &args[1])
}

aggregates! {
    4301 range_agg(ANYRANGE) ANYMULTIRANGE empty gather_step gather_combine gather_finish;
    6227 range_agg(ANYMULTIRANGE) ANYMULTIRANGE empty gather_step gather_combine gather_finish;
    4450 range_intersect_agg(ANYRANGE) ANYRANGE empty intersect_step intersect_combine value_finish;
    4389 range_intersect_agg(ANYMULTIRANGE) ANYMULTIRANGE empty intersect_step intersect_combine
        value_finish;
}
