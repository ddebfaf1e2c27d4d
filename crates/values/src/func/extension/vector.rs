//! `vector`, as pgvector has it: vectors of floats, their distances and sums. Search is exact: a
//! sort by distance.

use super::{Extension, ExtensionType, Native, operator, scalar};
use crate::func::aggregate::table::{aggregates, undo};
use crate::func::aggregate::{AggState, Step, empty};
use crate::func::compare::compare;
use crate::func::number::int;
use crate::func::{
    AggKind, Aggregate, Cast, CastContext, EvalContext, EvalFn, EvalResult, Operator, Strategy,
};
use crate::io::vector::{fits, numbers, to_bytes};
use throng_types::error::state;
use throng_types::sqltype::made::VECTOR;
use throng_types::{Array, Datum, Error, Oid, Result, oid::*};

pub(super) static EXTENSION: Extension = Extension {
    name: "vector",
    version: "0.8.6",
    comment: "vector data type",
    trusted: false,
    functions: FUNCTIONS,
    types: &[ExtensionType {
        oid: VECTOR,
        name: "vector",
    }],
    operators: OPERATORS,
    casts: CASTS,
    aggregates: AGGREGATES,
    ..Extension::PLAIN
};

const NUMBER: u32 = 6;

const fn of(
    number: u32,
    name: &'static str,
    ret: Oid,
    code: &'static str,
    related: (u32, u32),
    eval: EvalFn,
) -> Operator {
    operator(
        (NUMBER, number),
        name,
        (VECTOR, VECTOR, ret),
        code,
        related,
        eval,
    )
}

static OPERATORS: &[Operator] = &[
    of(1, "<->", FLOAT8, "l2_distance", (1, 0), l2_distance),
    of(
        2,
        "<#>",
        FLOAT8,
        "vector_negative_inner_product",
        (2, 0),
        negative_product,
    ),
    of(3, "<=>", FLOAT8, "cosine_distance", (3, 0), cosine_distance),
    of(4, "<+>", FLOAT8, "l1_distance", (4, 0), l1_distance),
    of(5, "+", VECTOR, "vector_add", (5, 0), add),
    of(6, "-", VECTOR, "vector_sub", (0, 0), subtract),
    of(7, "*", VECTOR, "vector_mul", (7, 0), multiply),
    of(8, "||", VECTOR, "vector_concat", (0, 0), concat),
    of(9, ">", BOOL, "vector_gt", (11, 12), gt).orders(Strategy::Greater),
    of(10, ">=", BOOL, "vector_ge", (12, 11), ge).orders(Strategy::GreaterEqual),
    of(11, "<", BOOL, "vector_lt", (9, 10), lt).orders(Strategy::Less),
    of(12, "<=", BOOL, "vector_le", (10, 9), le).orders(Strategy::LessEqual),
    of(13, "<>", BOOL, "vector_ne", (13, 14), ne),
    of(14, "=", BOOL, "vector_eq", (14, 13), eq).orders(Strategy::Equal),
];

const CASTS: &[Cast] = &[
    Cast::by(VECTOR, FLOAT4_ARRAY, CastContext::Implicit, 0, to_array),
    Cast::by(INT4_ARRAY, VECTOR, CastContext::Assignment, 0, from_array),
    Cast::by(FLOAT4_ARRAY, VECTOR, CastContext::Assignment, 0, from_array),
    Cast::by(FLOAT8_ARRAY, VECTOR, CastContext::Assignment, 0, from_array),
    Cast::by(
        NUMERIC_ARRAY,
        VECTOR,
        CastContext::Assignment,
        0,
        from_array,
    ),
];

aggregates! {
    1_073_678_024 avg(VECTOR) VECTOR empty sum_step sum_combine average;
    1_073_678_025 sum(VECTOR) VECTOR empty sum_step sum_combine sum;
}

const FUNCTIONS: &[Native] = &[
    scalar(
        "l2_distance(vector, vector) returns double precision immutable strict",
        l2_distance,
    ),
    scalar(
        "inner_product(vector, vector) returns double precision immutable strict",
        inner_product,
    ),
    scalar(
        "cosine_distance(vector, vector) returns double precision immutable strict",
        cosine_distance,
    ),
    scalar(
        "l1_distance(vector, vector) returns double precision immutable strict",
        l1_distance,
    ),
    scalar(
        "vector_dims(vector) returns integer immutable strict",
        dimensions,
    ),
    scalar(
        "vector_norm(vector) returns double precision immutable strict",
        norm,
    ),
    scalar(
        "l2_normalize(vector) returns vector immutable strict",
        normalize,
    ),
    scalar(
        "subvector(vector, integer, integer) returns vector immutable strict",
        subvector,
    ),
    scalar(
        "vector_add(vector, vector) returns vector immutable strict",
        add,
    ),
    scalar(
        "vector_sub(vector, vector) returns vector immutable strict",
        subtract,
    ),
    scalar(
        "vector_mul(vector, vector) returns vector immutable strict",
        multiply,
    ),
    scalar(
        "vector_concat(vector, vector) returns vector immutable strict",
        concat,
    ),
    scalar(
        "vector_lt(vector, vector) returns boolean immutable strict",
        lt,
    ),
    scalar(
        "vector_le(vector, vector) returns boolean immutable strict",
        le,
    ),
    scalar(
        "vector_eq(vector, vector) returns boolean immutable strict",
        eq,
    ),
    scalar(
        "vector_ne(vector, vector) returns boolean immutable strict",
        ne,
    ),
    scalar(
        "vector_ge(vector, vector) returns boolean immutable strict",
        ge,
    ),
    scalar(
        "vector_gt(vector, vector) returns boolean immutable strict",
        gt,
    ),
    scalar(
        "vector_cmp(vector, vector) returns integer immutable strict",
        |_, args| Ok((compare(&args[0], &args[1]) as i32).into()),
    ),
    scalar(
        "vector_l2_squared_distance(vector, vector) returns double precision immutable strict",
        |_, args| Ok(Datum::Float8(squared(args)?.into())),
    ),
    scalar(
        "vector_negative_inner_product(vector, vector) returns double precision immutable strict",
        negative_product,
    ),
    scalar(
        "vector(vector, integer, boolean) returns vector immutable strict",
        |_, args| {
            fits(all(&args[0]).len(), int(&args[1]) as i32)?;
            Ok(args[0].clone())
        },
    ),
    scalar(
        "array_to_vector(integer[], integer, boolean) returns vector immutable strict",
        sized_from_array,
    ),
    scalar(
        "array_to_vector(real[], integer, boolean) returns vector immutable strict",
        sized_from_array,
    ),
    scalar(
        "array_to_vector(double precision[], integer, boolean) returns vector immutable strict",
        sized_from_array,
    ),
    scalar(
        "array_to_vector(numeric[], integer, boolean) returns vector immutable strict",
        sized_from_array,
    ),
    scalar(
        "vector_to_float4(vector, integer, boolean) returns real[] immutable strict",
        to_array,
    ),
];

fn all(value: &Datum) -> Vec<f32> {
    match value {
        Datum::Base(value) => numbers(&value.bytes).collect(),
        _ => Vec::new(),
    }
}

fn vector(numbers: &[f32]) -> EvalResult {
    Ok(Datum::base(VECTOR, to_bytes(numbers)?))
}

#[cold]
fn different(left: usize, right: usize) -> Error {
    let message = format!("different vector dimensions {left} and {right}");
    Error::new(state::DATA_EXCEPTION, message)
}

/// The numbers of two vectors of one length.
fn both(args: &[Datum]) -> Result<(Vec<f32>, Vec<f32>)> {
    let (left, right) = (all(&args[0]), all(&args[1]));
    match left.len() == right.len() {
        true => Ok((left, right)),
        false => Err(different(left.len(), right.len())),
    }
}

/// Sums over pairs are of single precision, as pgvector's are.
fn summed(args: &[Datum], of: impl Fn(f32, f32) -> f32) -> Result<f32> {
    let (left, right) = both(args)?;
    Ok(left.iter().zip(&right).map(|(a, b)| of(*a, *b)).sum())
}

fn squared(args: &[Datum]) -> Result<f32> {
    summed(args, |a, b| (a - b) * (a - b))
}

fn l2_distance(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Float8(f64::from(squared(args)?).sqrt()))
}
fn l1_distance(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Float8(summed(args, |a, b| (a - b).abs())?.into()))
}
fn inner_product(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Float8(summed(args, |a, b| a * b)?.into()))
}
fn negative_product(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Float8(-f64::from(summed(args, |a, b| a * b)?)))
}

fn cosine_distance(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (left, right) = both(args)?;
    let sum = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let product = f64::from(sum(&left, &right));
    let lengths = f64::from(sum(&left, &left)) * f64::from(sum(&right, &right));
    let likeness = product / lengths.sqrt();
    Ok(Datum::Float8(match likeness.is_nan() {
        true => f64::NAN,
        false => 1.0 - likeness.clamp(-1.0, 1.0),
    }))
}

fn dimensions(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((all(&args[0]).len() as i32).into())
}

fn length(numbers: &[f32]) -> f64 {
    let squares = numbers.iter().map(|n| f64::from(*n) * f64::from(*n));
    squares.sum::<f64>().sqrt()
}

fn norm(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Float8(length(&all(&args[0]))))
}

fn normalize(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut found = all(&args[0]);
    let length = length(&found);
    if length > 0.0 {
        found
            .iter_mut()
            .for_each(|n| *n = (f64::from(*n) / length) as f32);
    }
    vector(&in_range(found)?)
}

/// 22003 where a computation has left the range.
fn in_range(numbers: Vec<f32>) -> Result<Vec<f32>> {
    match numbers.iter().any(|n| n.is_infinite()) {
        false => Ok(numbers),
        true => {
            let message = "value out of range: overflow";
            Err(Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message))
        }
    }
}

fn subvector(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (found, start, count) = (all(&args[0]), int(&args[1]), int(&args[2]));
    let end = start
        .saturating_add(count.max(0))
        .min(found.len() as i64 + 1);
    let start = start.max(1);
    let part = match start < end {
        true => &found[start as usize - 1..end as usize - 1],
        false => &[],
    };
    vector(part)
}

fn pairwise(args: &[Datum], of: impl Fn(f32, f32) -> f32) -> EvalResult {
    let (left, right) = both(args)?;
    let numbers = left.iter().zip(&right).map(|(a, b)| of(*a, *b)).collect();
    vector(&in_range(numbers)?)
}
fn add(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    pairwise(args, |a, b| a + b)
}
fn subtract(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    pairwise(args, |a, b| a - b)
}
fn multiply(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (left, right) = both(args)?;
    let vanishes = |(a, b): (&f32, &f32)| a * b == 0.0 && *a != 0.0 && *b != 0.0;
    if left.iter().zip(&right).any(vanishes) {
        let message = "value out of range: underflow";
        return Err(Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message).into());
    }
    pairwise(args, |a, b| a * b)
}
fn concat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut found = all(&args[0]);
    found.extend(all(&args[1]));
    vector(&found)
}

fn eq(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_eq().into())
}
fn ne(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_ne().into())
}
fn lt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_lt().into())
}
fn le(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_le().into())
}
fn gt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_gt().into())
}
fn ge(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_ge().into())
}

fn to_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let items = all(&args[0]).into_iter().map(Datum::Float4).collect();
    Ok(Datum::array(Array::from_items(FLOAT4, items)))
}

fn number(item: &Datum) -> Result<f32> {
    Ok(match item {
        Datum::Int4(n) => *n as f32,
        Datum::Float4(n) => *n,
        Datum::Float8(n) => *n as f32,
        Datum::Numeric(n) => crate::io::scalar::parse_float4(&n.to_string())?,
        _ => {
            let message = "array must not contain nulls";
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message));
        }
    })
}

fn from_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Array(array) = &args[0] else {
        return Ok(Datum::Null);
    };
    if array.dims.len() > 1 {
        return Err(Error::new(state::DATA_EXCEPTION, "array must be 1-D").into());
    }
    let found = array.items.iter().map(number);
    vector(&found.collect::<Result<Vec<f32>>>()?)
}

fn sized_from_array(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let made = from_array(ctx, args)?;
    fits(all(&made).len(), int(&args[1]) as i32)?;
    Ok(made)
}

/// A state is an array: how many vectors, and the sums of their numbers.
fn sums(state: &AggState) -> Option<Vec<f64>> {
    let AggState::Value(Datum::Array(sums)) = state else {
        return None;
    };
    let number = |item: &Datum| match item {
        Datum::Float8(number) => *number,
        _ => 0.0,
    };
    Some(sums.items.iter().map(number).collect())
}

fn add_sums(state: &mut AggState, more: &[f64]) -> Step {
    let now = match sums(state) {
        None => more.to_vec(),
        Some(sums) if sums.len() != more.len() => {
            fits(more.len() - 1, sums.len() as i32 - 1)?;
            return Ok(());
        }
        Some(sums) => sums.iter().zip(more).map(|(a, b)| a + b).collect(),
    };
    let items = now.into_iter().map(Datum::Float8).collect();
    *state = AggState::Value(Datum::array(Array::from_items(FLOAT8, items)));
    Ok(())
}

fn sum_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args[0].is_null() {
        return Ok(());
    }
    let own = all(&args[0]).into_iter().map(f64::from);
    let one: Vec<f64> = std::iter::once(1.0).chain(own).collect();
    add_sums(state, &one)
}

fn sum_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match sums(&other) {
        Some(sums) => add_sums(state, &sums),
        None => Ok(()),
    }
}

fn finished(state: &AggState, of: impl Fn(f64, f64) -> f64) -> EvalResult {
    let Some(sums) = sums(state) else {
        return Ok(Datum::Null);
    };
    let count = sums[0];
    let numbers = sums[1..].iter().map(|sum| of(*sum, count) as f32).collect();
    vector(&in_range(numbers)?)
}

fn average(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    finished(&state, |sum, count| sum / count)
}
fn sum(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    finished(&state, |sum, _| sum)
}
