//! Arrays: their shape, searching them, and containment.

pub(super) mod edit;

use super::compare::{comparator, compare_checked};
use super::number::int;
use super::{EvalContext, EvalResult, Function, Operator};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Oid, Result, oid::*};

pub fn array(value: &Datum) -> &Arc<Array> {
    match value {
        Datum::Array(array) => array,
        _ => unreachable!("not an array: {value:?}"),
    }
}

/// The dimension so numbered, from 1.
fn dim(args: &[Datum]) -> Option<throng_types::datum::Dim> {
    let index = usize::try_from(int(&args[1]) - 1).ok()?;
    array(&args[0]).dims.get(index).copied()
}
fn array_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(dim(args).map(|d| d.len).into())
}
fn array_lower(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(dim(args).map(|d| d.lower).into())
}
fn array_upper(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(dim(args).map(|d| d.lower + d.len - 1).into())
}
fn array_ndims(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let count = array(&args[0]).dims.len() as i32;
    Ok((count > 0).then_some(count).into())
}
fn array_dims(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let dims = &array(&args[0]).dims;
    let shown: String = dims
        .iter()
        .map(|d| format!("[{}:{}]", d.lower, d.lower + d.len - 1))
        .collect();
    Ok((!dims.is_empty()).then_some(shown).into())
}
fn cardinality(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((array(&args[0]).items.len() as i32).into())
}

/// Are two items the same? NULL is like NULL.
pub fn same(ty: Oid, a: &Datum, b: &Datum) -> Result<bool> {
    Ok(match (a, b) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Null, _) | (_, Datum::Null) => false,
        (Datum::Record(_), Datum::Record(_)) => compare_checked(a, b)?.is_eq(),
        _ => comparator(ty)(a, b).is_eq(),
    })
}

fn searchable(value: &Datum) -> Result<&Arc<Array>> {
    let array = array(value);
    if array.dims.len() > 1 {
        return Err(Error::unsupported(
            "searching for elements in multidimensional arrays",
        ));
    }
    Ok(array)
}

fn array_position(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let array = searchable(&args[0])?;
    let from = match args.get(2) {
        Some(Datum::Null) => {
            let message = "initial position must not be null";
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        Some(from) => int(from),
        None => i64::from(i32::MIN),
    };
    let lower = i64::from(array.dims.first().map_or(1, |d| d.lower));
    for (item, at) in array.items.iter().zip(lower..) {
        if at >= from && same(array.element, &args[1], item)? {
            return Ok((at as i32).into());
        }
    }
    Ok(Datum::Null)
}
fn array_positions(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let array = searchable(&args[0])?;
    let lower = array.dims.first().map_or(1, |d| d.lower);
    let mut positions = Vec::new();
    for (item, at) in array.items.iter().zip(lower..) {
        if same(array.element, &args[1], item)? {
            positions.push(Datum::Int4(at));
        }
    }
    Ok(Datum::array(Array::from_items(INT4, positions)))
}

/// Is each item of one among the items of the other? NULLs are among nothing.
fn contains(outer: &Array, inner: &Array) -> bool {
    let compare = comparator(outer.element);
    inner.items.iter().all(|wanted| {
        !wanted.is_null()
            && outer
                .items
                .iter()
                .any(|item| !item.is_null() && compare(item, wanted).is_eq())
    })
}
fn arraycontains(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(contains(array(&args[0]), array(&args[1])).into())
}
fn arraycontained(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(contains(array(&args[1]), array(&args[0])).into())
}
fn arrayoverlap(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = (array(&args[0]), array(&args[1]));
    let compare = comparator(a.element);
    let shared = a.items.iter().filter(|i| !i.is_null()).any(|item| {
        b.items
            .iter()
            .any(|other| !other.is_null() && compare(item, other).is_eq())
    });
    Ok(shared.into())
}

/// How many of the sorted thresholds are at or below the value.
fn width_bucket_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let thresholds = array(&args[1]);
    let wrong = |code, message: &str| Err(Error::new(code, message).into());
    if thresholds.dims.len() > 1 {
        return wrong(
            state::ARRAY_SUBSCRIPT_ERROR,
            "thresholds must be one-dimensional array",
        );
    }
    if thresholds.items.iter().any(Datum::is_null) {
        return wrong(
            state::NULL_VALUE_NOT_ALLOWED,
            "thresholds array must not contain NULLs",
        );
    }
    let compare = comparator(thresholds.element);
    let count = thresholds
        .items
        .partition_point(|t| compare(t, &args[0]).is_le());
    Ok((count as i32).into())
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(
        3277,
        "array_position",
        &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE],
        INT4,
        array_position,
    )
    .lenient(),
    Function::new(
        3278,
        "array_position",
        &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, INT4],
        INT4,
        array_position,
    )
    .lenient(),
    Function::new(
        3279,
        "array_positions",
        &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE],
        INT4_ARRAY,
        array_positions,
    )
    .lenient(),
    Function::new(2176, "array_length", &[ANYARRAY, INT4], INT4, array_length),
    Function::new(2092, "array_upper", &[ANYARRAY, INT4], INT4, array_upper),
    Function::new(2091, "array_lower", &[ANYARRAY, INT4], INT4, array_lower),
    Function::new(748, "array_ndims", &[ANYARRAY], INT4, array_ndims),
    Function::new(747, "array_dims", &[ANYARRAY], TEXT, array_dims),
    Function::new(3179, "cardinality", &[ANYARRAY], INT4, cardinality),
    Function::new(
        2748,
        "arraycontains",
        &[ANYARRAY, ANYARRAY],
        BOOL,
        arraycontains,
    ),
    Function::new(
        2749,
        "arraycontained",
        &[ANYARRAY, ANYARRAY],
        BOOL,
        arraycontained,
    ),
    Function::new(
        2747,
        "arrayoverlap",
        &[ANYARRAY, ANYARRAY],
        BOOL,
        arrayoverlap,
    ),
    Function::new(
        3218,
        "width_bucket",
        &[ANYCOMPATIBLE, ANYCOMPATIBLEARRAY],
        INT4,
        width_bucket_array,
    ),
];

pub static OPERATORS: &[Operator] = &[
    Operator::new(
        2750,
        "&&",
        ANYARRAY,
        ANYARRAY,
        BOOL,
        (2747, "arrayoverlap"),
        arrayoverlap,
    )
    .related(2750, 0),
    Operator::new(
        2752,
        "<@",
        ANYARRAY,
        ANYARRAY,
        BOOL,
        (2749, "arraycontained"),
        arraycontained,
    )
    .related(2751, 0),
    Operator::new(
        2751,
        "@>",
        ANYARRAY,
        ANYARRAY,
        BOOL,
        (2748, "arraycontains"),
        arraycontains,
    )
    .related(2752, 0),
];
