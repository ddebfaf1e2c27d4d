//! Aggregates that are not sums of numbers: intervals, extremes, booleans and bits, strings,
//! arrays.

use crate::func::aggregate::{AggState, Step, Undone, mixed};
use crate::func::compare::comparator;
use crate::func::number::int;
use crate::func::{EvalContext, EvalResult, EvalStop};
use crate::func::{bits, money};
use std::cmp::Ordering;
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Interval, Oid};

// Intervals

/// Counts an interval `sign` times: once more or, with -1, once less. True if it was there to be
/// counted.
fn count_interval(state: &mut AggState, value: &Datum, sign: i64) -> Result<bool, EvalStop> {
    let Datum::Interval(value) = *value else {
        return Ok(false);
    };
    let AggState::Intervals {
        count,
        months,
        days,
        micros,
        infinite,
    } = state
    else {
        return Err(mixed());
    };
    *count += sign;
    match value {
        Interval::INFINITY => infinite.0 += sign,
        Interval::NEG_INFINITY => infinite.1 += sign,
        _ => {
            *months += sign * i64::from(value.months);
            *days += sign * i64::from(value.days);
            *micros += i128::from(sign) * i128::from(value.micros);
        }
    }
    Ok(true)
}
pub(in crate::func) fn interval_step(
    _: &EvalContext<'_>,
    state: &mut AggState,
    args: &[Datum],
) -> Step {
    if let (AggState::Empty, Datum::Interval(_)) = (&*state, &args[0]) {
        *state = AggState::Intervals {
            count: 0,
            months: 0,
            days: 0,
            micros: 0,
            infinite: (0, 0),
        };
    }
    count_interval(state, &args[0], 1).map(drop)
}
pub(in crate::func) fn interval_undo(
    _: &EvalContext<'_>,
    state: &mut AggState,
    args: &[Datum],
) -> Undone {
    count_interval(state, &args[0], -1)?;
    if let AggState::Intervals { count: 0, .. } = state {
        *state = AggState::Empty;
    }
    Ok(true)
}
pub(in crate::func) fn interval_combine(
    _: &EvalContext<'_>,
    state: &mut AggState,
    other: AggState,
) -> Step {
    match (&mut *state, other) {
        (_, AggState::Empty) => {}
        (AggState::Empty, other) => *state = other,
        (
            AggState::Intervals {
                count,
                months,
                days,
                micros,
                infinite,
            },
            AggState::Intervals {
                count: n,
                months: m,
                days: d,
                micros: u,
                infinite: i,
            },
        ) => {
            *count += n;
            *months += m;
            *days += d;
            *micros += u;
            *infinite = (infinite.0 + i.0, infinite.1 + i.1);
        }
        _ => return Err(mixed()),
    }
    Ok(())
}
#[cold]
fn interval_out_of_range() -> EvalStop {
    Error::new(state::DATETIME_FIELD_OVERFLOW, "interval out of range").into()
}
fn interval_total(state: &AggState) -> Result<Option<(i64, Interval)>, EvalStop> {
    let AggState::Intervals {
        count,
        months,
        days,
        micros,
        infinite,
    } = *state
    else {
        return Ok(None);
    };
    let total = match infinite {
        (0, 0) => {
            let (Ok(months), Ok(days), Ok(micros)) = (
                i32::try_from(months),
                i32::try_from(days),
                i64::try_from(micros),
            ) else {
                return Err(interval_out_of_range());
            };
            Interval {
                months,
                days,
                micros,
            }
        }
        (_, 0) => Interval::INFINITY,
        (0, _) => Interval::NEG_INFINITY,
        _ => return Err(interval_out_of_range()),
    };
    Ok(Some((count, total)))
}
pub(in crate::func) fn interval_sum(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    Ok(interval_total(&state)?.map(|(_, total)| total).into())
}
/// The total divided; what does not divide in months goes into days, and from there into time.
pub(in crate::func) fn interval_average(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    let Some((count, total)) = interval_total(&state)? else {
        return Ok(Datum::Null);
    };
    if !total.is_finite() {
        return Ok(total.into());
    }
    Ok(divide_interval(total, count as f64)
        .ok_or_else(interval_out_of_range)?
        .into())
}

/// `interval / number`, cascading fractions down as PostgreSQL does. None out of range.
pub fn divide_interval(value: Interval, by: f64) -> Option<Interval> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let to_micro = |x: f64| (x * 1e6).round_ties_even() / 1e6;
    let (months, days) = (f64::from(value.months) / by, f64::from(value.days) / by);
    if !(i32::MIN as f64..=i32::MAX as f64).contains(&months)
        || !(i32::MIN as f64..=i32::MAX as f64).contains(&days)
    {
        return None;
    }
    let (whole_months, whole_days) = (months as i32, days as i32);
    let month_rest = to_micro((months - f64::from(whole_months)) * 30.0);
    let mut seconds = to_micro(
        (days - f64::from(whole_days) + month_rest - month_rest.trunc()) * SECONDS_PER_DAY,
    );
    let mut extra_days = month_rest as i32;
    if seconds.abs() >= SECONDS_PER_DAY {
        let carried = (seconds / SECONDS_PER_DAY) as i32;
        extra_days = extra_days.checked_add(carried)?;
        seconds -= f64::from(carried) * SECONDS_PER_DAY;
    }
    let micros = (value.micros as f64 / by + seconds * 1e6).round_ties_even();
    if !(i64::MIN as f64..i64::MAX as f64).contains(&micros) {
        return None;
    }
    Some(Interval {
        months: whole_months,
        days: whole_days.checked_add(extra_days)?,
        micros: micros as i64,
    })
}

// Extremes, booleans, bits

fn keep(state: &mut AggState, value: &Datum, want: Ordering, ty: Oid) {
    // Of equal values the last one stays.
    let stays = match state {
        AggState::Value(best) => comparator(ty)(best, value) == want,
        _ => false,
    };
    if !stays {
        *state = AggState::Value(value.clone());
    }
}
macro_rules! extremes {
    ($($step:ident $combine:ident $want:ident $ty:ident;)*) => { $(
        pub(in crate::func) fn $step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
            if !args[0].is_null() {
                keep(state, &args[0], Ordering::$want, throng_types::oid::$ty);
            }
            Ok(())
        }
        pub(in crate::func) fn $combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
            if let AggState::Value(value) = other {
                keep(state, &value, Ordering::$want, throng_types::oid::$ty);
            }
            Ok(())
        }
    )* };
}
extremes! {
    min_step min_combine Less ANY;
    max_step max_combine Greater ANY;
    min_padded_step min_padded_combine Less BPCHAR;
    max_padded_step max_padded_combine Greater BPCHAR;
}

/// Whichever comes first.
pub(in crate::func) fn any_value_step(
    _: &EvalContext<'_>,
    state: &mut AggState,
    args: &[Datum],
) -> Step {
    if matches!(state, AggState::Empty) && !args[0].is_null() {
        *state = AggState::Value(args[0].clone());
    }
    Ok(())
}
pub(in crate::func) fn any_value_combine(
    _: &EvalContext<'_>,
    state: &mut AggState,
    other: AggState,
) -> Step {
    if matches!(state, AggState::Empty) {
        *state = other;
    }
    Ok(())
}

/// The one value kept, or NULL.
pub(in crate::func) fn value_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Value(value) => Ok(value),
        _ => Ok(Datum::Null),
    }
}

fn merge_values(a: &Datum, b: &Datum, f: fn(i64, i64) -> i64) -> Result<Datum, EvalStop> {
    Ok(match (a, b) {
        (Datum::Bool(a), Datum::Bool(b)) => (f((*a).into(), (*b).into()) != 0).into(),
        (Datum::Int2(a), Datum::Int2(b)) => Datum::Int2(f((*a).into(), (*b).into()) as i16),
        (Datum::Int4(a), Datum::Int4(b)) => Datum::Int4(f((*a).into(), (*b).into()) as i32),
        _ => Datum::Int8(f(int(a), int(b))),
    })
}
/// Aggregates that keep a value, and put the next one to it.
macro_rules! merged {
    ($($step:ident $combine:ident $merge:expr;)*) => { $(
        pub(in crate::func) fn $step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
            if !args[0].is_null() {
                *state = AggState::Value(match &*state {
                    AggState::Value(old) => $merge(old, &args[0])?,
                    _ => args[0].clone(),
                });
            }
            Ok(())
        }
        pub(in crate::func) fn $combine(ctx: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
            match other {
                AggState::Value(value) => $step(ctx, state, &[value]),
                _ => Ok(()),
            }
        }
    )* };
}
merged! {
    and_step and_combine |a, b| merge_values(a, b, |a, b| a & b);
    or_step or_combine |a, b| merge_values(a, b, |a, b| a | b);
    xor_step xor_combine |a, b| merge_values(a, b, |a, b| a ^ b);
    bits_and_step bits_and_combine bits::bits_and;
    bits_or_step bits_or_combine bits::bits_or;
    bits_xor_step bits_xor_combine bits::bits_xor;
    money_step money_combine money::sum;
}

// Strings and arrays

/// `string_agg(text, delimiter)`: the delimiter comes before each value but the first.
pub(in crate::func) fn string_step(
    _: &EvalContext<'_>,
    state: &mut AggState,
    args: &[Datum],
) -> Step {
    if let Datum::Text(value) = &args[0] {
        let delimiter = args[1].as_str().unwrap_or("");
        let joined = state.separate(delimiter.as_bytes())?;
        joined.extend_from_slice(value.as_bytes());
    }
    Ok(())
}
pub(in crate::func) fn string_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Joined(joined) => match String::from_utf8(joined.into_shown()) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(Error::internal("text is not UTF-8").into()),
        },
        _ => Ok(Datum::Null),
    }
}
pub(in crate::func) fn bytes_step(
    _: &EvalContext<'_>,
    state: &mut AggState,
    args: &[Datum],
) -> Step {
    if let Datum::Bytea(value) = &args[0] {
        let joined = match &args[1] {
            Datum::Bytea(delimiter) => state.separate(delimiter)?,
            _ => state.separate(b"")?,
        };
        joined.extend_from_slice(value);
    }
    Ok(())
}
pub(in crate::func) fn bytes_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Joined(joined) => Ok(Datum::bytea(joined.into_shown())),
        _ => Ok(Datum::Null),
    }
}

/// `array_agg`: NULLs too. Arrays become one array with a dimension more.
pub(in crate::func) fn array_step(
    _: &EvalContext<'_>,
    state: &mut AggState,
    args: &[Datum],
) -> Step {
    match state {
        AggState::Items(items) => items.push(args[0].clone()),
        _ => *state = AggState::Items(vec![args[0].clone()]),
    }
    Ok(())
}
pub(in crate::func) fn array_combine(
    _: &EvalContext<'_>,
    state: &mut AggState,
    other: AggState,
) -> Step {
    match (&mut *state, other) {
        (AggState::Items(items), AggState::Items(more)) => items.extend(more),
        (AggState::Empty, other) => *state = other,
        (_, AggState::Empty) => {}
        _ => return Err(mixed()),
    }
    Ok(())
}
pub(in crate::func) fn array_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    let AggState::Items(items) = state else {
        return Ok(Datum::Null);
    };
    // The items' own kind is their type; strings of every type are text to an array's reader.
    let element = items
        .iter()
        .find(|i| !i.is_null())
        .map_or(throng_types::oid::TEXT, Datum::natural_type);
    if !matches!(items[0], Datum::Array(_)) && !items.iter().any(|i| matches!(i, Datum::Array(_))) {
        return Ok(Datum::array(Array::from_items(element, items)));
    }
    stack_arrays(items)
}

fn stack_arrays(items: Vec<Datum>) -> EvalResult {
    let subscript_error = |message: &str| Error::new(state::ARRAY_SUBSCRIPT_ERROR, message);
    let count = items.len() as i32;
    let mut stacked: Option<Array> = None;
    for item in items {
        let Datum::Array(array) = item else {
            let null = "cannot accumulate null arrays";
            return Err(Error::new(throng_types::SqlState::new("22004"), null).into());
        };
        if array.dims.is_empty() {
            return Err(subscript_error("cannot accumulate empty arrays").into());
        }
        match &mut stacked {
            None => {
                let mut first = array.as_ref().clone();
                first.dims.insert(
                    0,
                    throng_types::datum::Dim {
                        len: count,
                        lower: 1,
                    },
                );
                stacked = Some(first);
            }
            Some(all) if all.dims[1..] == array.dims[..] => {
                all.items.extend(array.items.iter().cloned());
            }
            Some(_) => {
                return Err(subscript_error(
                    "cannot accumulate arrays of different dimensionality",
                )
                .into());
            }
        }
    }
    Ok(stacked.map_or(Datum::Null, Datum::array))
}
