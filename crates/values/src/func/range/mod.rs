//! Ranges and multiranges: their constructors, parts, operators and aggregates.

mod aggregate;
mod multi;
mod operator;
mod table;

pub use aggregate::AGGREGATES;
pub use operator::OPERATORS;
pub use table::{CASTS, CONSTRUCTORS, FUNCTIONS, MADE_MULTIRANGE, MADE_RANGE, SETS};

use crate::func::{EvalContext, EvalResult, EvalStop, Function, SetIterator};
use crate::range::{self, gather, make, type_of};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::range::{Bound, Bounds, RangeType, multirange_type, range_type};
use throng_types::{Array, Datum, Error, Multirange, Oid, Range, Result};

pub(super) fn range(value: &Datum) -> &Arc<Range> {
    match value {
        Datum::Range(range) => range,
        _ => range::no_range(value),
    }
}

fn of_range(range: Range) -> Datum {
    Datum::Range(Arc::new(range))
}

fn of_multirange(multirange: Multirange) -> Datum {
    Datum::Multirange(Arc::new(multirange))
}

/// The range type of a value that is a range or a multirange.
fn type_of_value(value: &Datum) -> Result<RangeType> {
    match value {
        Datum::Multirange(multirange) => multirange_type(multirange.ty)
            .ok_or_else(|| Error::internal("a multirange of no multirange type")),
        value => type_of(range(value).ty),
    }
}

// Constructors

/// `[]`, `[)`, `(]` or `()`: whether the bounds are inclusive.
fn flags(value: &Datum) -> Result<(bool, bool)> {
    let Some(flags) = value.as_str() else {
        let message = "range constructor flags argument must not be null";
        return Err(Error::new(state::DATA_EXCEPTION, message));
    };
    match flags {
        "[]" => Ok((true, true)),
        "[)" => Ok((true, false)),
        "(]" => Ok((false, true)),
        "()" => Ok((false, false)),
        _ => Err(Error::new(state::SYNTAX_ERROR, "invalid range bound flags")
            .hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")),
    }
}

/// From its bounds, and perhaps how they are meant.
pub fn construct(ty: &RangeType, args: &[Datum]) -> EvalResult {
    let (lower, upper) = match args.get(2) {
        Some(written) => flags(written)?,
        None => (true, false),
    };
    let ends = Bounds {
        lower: Bound::new(args[0].clone(), lower),
        upper: Bound::new(args[1].clone(), upper),
    };
    Ok(of_range(make(ty, ends)?))
}

#[cold]
fn has_null() -> Error {
    let message = "multirange values cannot contain null members";
    Error::new(state::NULL_VALUE_NOT_ALLOWED, message)
}

/// From ranges.
pub fn construct_multi(ty: &RangeType, args: &[Datum]) -> EvalResult {
    let ranges = args.iter().map(|arg| match arg {
        Datum::Range(range) => Ok(Arc::clone(range)),
        _ => Err(has_null()),
    });
    let ranges = ranges.collect::<Result<Vec<_>>>()?;
    Ok(of_multirange(gather(ty, ranges)?))
}

/// 21000 where a multirange is to be made of an array of several dimensions.
pub fn must_be_flat(func: &Function, array: &Array) -> Result<()> {
    if array.dims.len() < 2 || range_type(func.variadic).is_none() {
        return Ok(());
    }
    Err(many_dimensions())
}

#[cold]
fn many_dimensions() -> Error {
    let message = "multiranges cannot be constructed from multidimensional arrays";
    Error::new(state::CARDINALITY_VIOLATION, message)
}

/// From an array of ranges.
pub fn construct_from_array(ty: &RangeType, array: &Array) -> EvalResult {
    match array.dims.len() {
        0 | 1 => construct_multi(ty, &array.items),
        _ => Err(many_dimensions().into()),
    }
}

/// The range type that the last argument names, and the arguments before it.
fn told(args: &[Datum]) -> Result<(RangeType, &[Datum])> {
    match args.split_last() {
        Some((Datum::Oid(ty), args)) => Ok((type_of(Oid(*ty))?, args)),
        _ => Err(Error::internal("a constructor was not told its type")),
    }
}

/// What makes a range of a type that a user made: its oid is the last argument.
pub fn made_range(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (ty, args) = told(args)?;
    construct(&ty, args)
}

/// What makes a multirange of such a type: of no range, of one, or of an array of them.
pub fn made_multirange(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (ty, args) = told(args)?;
    match args {
        [Datum::Array(array)] => construct_from_array(&ty, array),
        args => construct_multi(&ty, args),
    }
}

pub(super) fn multirange(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    construct_multi(&type_of_value(&args[0])?, args)
}

// Parts

/// A range's bounds, or those around a multirange's ranges; None where there is nothing in it.
fn ends(value: &Datum) -> Option<(&Bound, &Bound)> {
    let parts = multi::parts(value);
    let first = parts.first()?.bounds.as_ref()?;
    let last = parts.last()?.bounds.as_ref()?;
    Some((&first.lower, &last.upper))
}
fn lower(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ends(&args[0]).map_or(Datum::Null, |(lower, _)| lower.value.clone()))
}
fn upper(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ends(&args[0]).map_or(Datum::Null, |(_, upper)| upper.value.clone()))
}
fn is_empty(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(multi::parts(&args[0]).is_empty().into())
}
fn lower_inc(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ends(&args[0])
        .is_some_and(|(lower, _)| lower.inclusive)
        .into())
}
fn upper_inc(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ends(&args[0])
        .is_some_and(|(_, upper)| upper.inclusive)
        .into())
}
fn lower_inf(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ends(&args[0])
        .is_some_and(|(lower, _)| lower.is_infinite())
        .into())
}
fn upper_inf(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ends(&args[0])
        .is_some_and(|(_, upper)| upper.is_infinite())
        .into())
}

fn range_merge(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(of_range(range::merge(range(&args[0]), range(&args[1]))))
}

/// From the start of the first range to the end of the last.
fn merged(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let ty = type_of_value(&args[0])?;
    let Some((lower, upper)) = ends(&args[0]) else {
        return Ok(of_range(Range::empty(&ty)));
    };
    let (lower, upper) = (lower.clone(), upper.clone());
    Ok(of_range(make(&ty, Bounds { lower, upper })?))
}

fn unnest(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let ranges = multi::parts(&args[0]).to_vec();
    Ok(Box::new(
        ranges.into_iter().map(|range| Ok(Datum::Range(range))),
    ))
}

fn compare(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((crate::order::compare(&args[0], &args[1]) as i32).into())
}

/// Every range there is is canonical.
fn canonical(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(args[0].clone())
}

/// How far the first value is behind the second.
fn difference(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    use crate::func::number::{float_overflow, numeric};
    const SECOND: f64 = 1_000_000.0;
    Ok(match (&args[0], &args[1]) {
        (Datum::Int4(a), Datum::Int4(b)) => f64::from(*a) - f64::from(*b),
        (Datum::Int8(a), Datum::Int8(b)) => *a as f64 - *b as f64,
        (Datum::Date(a), Datum::Date(b)) => f64::from(*a) - f64::from(*b),
        (Datum::Timestamp(a), Datum::Timestamp(b))
        | (Datum::TimestampTz(a), Datum::TimestampTz(b)) => (*a as f64 - *b as f64) / SECOND,
        (a, b) => {
            let difference = numeric(a).sub(numeric(b))?.to_f64();
            match difference.is_infinite() && numeric(a).is_finite() && numeric(b).is_finite() {
                true => return Err(float_overflow().into()),
                false => difference,
            }
        }
    }
    .into())
}

// Periods of foreign keys

/// Whether two ranges, or multiranges, have something in common.
pub fn overlap(a: &Datum, b: &Datum) -> bool {
    multi::overlap(a, b)
}

/// What two ranges, or multiranges, have in common.
pub fn shared(a: &Datum, b: &Datum) -> Result<Datum> {
    let both = multi::intersection(&type_of_value(a)?, a, b)?;
    Ok(of_multirange(both))
}

/// Whether ranges, or multiranges, together have all of another in them.
pub fn cover(pieces: &[Datum], whole: &Datum) -> Result<bool> {
    let ranges = pieces.iter().flat_map(multi::parts).cloned().collect();
    let all = of_multirange(gather(&type_of_value(whole)?, ranges)?);
    Ok(multi::all_within(&all, whole))
}
