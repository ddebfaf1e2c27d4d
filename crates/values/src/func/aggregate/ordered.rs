//! Ordered-set and hypothetical-set aggregates: of a group's rows in an order, by place.
//!
//! The caller gathers and sorts the rows; what is computed of them is one function of the whole.

use crate::func::number::float;
use crate::func::{
    AggKind, Aggregate, EvalContext, EvalResult, EvalStop, aggregate, aggregate::other,
    resolve_operator,
};
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Oid, oid};

/// A group in order.
pub struct OrderedSet<'a> {
    /// The direct arguments' values.
    pub direct: &'a [Datum],
    /// The key of each row, with the row's values of WITHIN GROUP's ORDER BY.
    pub rows: &'a [(Box<[u8]>, Vec<Datum>)],
    /// Hypothetical sets: the key of the direct arguments as if they were a row.
    pub own_key: &'a [u8],
}

pub type OrderedFn = fn(&EvalContext<'_>, &OrderedSet<'_>) -> EvalResult;

impl OrderedSet<'_> {
    /// The values of a single column, in order, but for the NULLs.
    fn values(&self) -> Vec<&Datum> {
        let values = self.rows.iter().filter_map(|(_, row)| row.first());
        values.filter(|v| !v.is_null()).collect()
    }

    /// How many rows come before the hypothetical one.
    fn before(&self) -> usize {
        self.rows.partition_point(|(key, _)| **key < *self.own_key)
    }
}

/// The fraction asked for; None for NULL.
fn fraction(value: &Datum) -> Result<Option<f64>, EvalStop> {
    if value.is_null() {
        return Ok(None);
    }
    let fraction = float(value);
    if (0.0..=1.0).contains(&fraction) {
        return Ok(Some(fraction));
    }
    let message = format!("percentile value {fraction} is not between 0 and 1");
    Err(Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message).into())
}

/// The first value that at least this share of the values do not come after.
fn discrete(values: &[&Datum], fraction: f64) -> Datum {
    let place = (fraction * values.len() as f64).ceil() as usize;
    values[place.max(1) - 1].clone()
}

/// The value at this share of the way, between two values if it falls there.
fn continuous(ctx: &EvalContext<'_>, values: &[&Datum], fraction: f64) -> EvalResult {
    let place = fraction * (values.len() - 1) as f64;
    let (low, high) = (place.floor(), place.ceil());
    let (first, second) = (values[low as usize], values[high as usize]);
    if low == high {
        return Ok(first.clone());
    }
    let part = place - low;
    match (first, second) {
        (Datum::Interval(_), Datum::Interval(_)) => {
            let apply = |name: &str, left: Datum, right: Datum| {
                let types = (left.natural_type(), right.natural_type());
                let operator = resolve_operator(name, Some(types.0), types.1)?.operator;
                operator.call(ctx, &[left, right])
            };
            let apart = apply("-", second.clone(), first.clone())?;
            let way = apply("*", apart, Datum::Float8(part))?;
            apply("+", way, first.clone())
        }
        _ => {
            let (first, second) = (float(first), float(second));
            Ok(Datum::Float8(first + part * (second - first)))
        }
    }
}

fn percentile_disc(_: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    let values = set.values();
    Ok(match fraction(&set.direct[0])? {
        Some(fraction) if !values.is_empty() => discrete(&values, fraction),
        _ => Datum::Null,
    })
}
fn percentile_cont(ctx: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    let values = set.values();
    match fraction(&set.direct[0])? {
        Some(fraction) if !values.is_empty() => continuous(ctx, &values, fraction),
        _ => Ok(Datum::Null),
    }
}

/// A value for each fraction of an array, in an array of the same shape.
fn each(set: &OrderedSet<'_>, f: impl Fn(&[&Datum], f64) -> EvalResult) -> EvalResult {
    let Datum::Array(fractions) = &set.direct[0] else {
        return Ok(Datum::Null);
    };
    let wanted = fractions.items.iter().map(fraction);
    let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
    let values = set.values();
    let Some(first) = values.first() else {
        return Ok(Datum::Null);
    };
    let items = wanted.into_iter().map(|fraction| match fraction {
        Some(fraction) => f(&values, fraction),
        None => Ok(Datum::Null),
    });
    Ok(Datum::array(Array {
        element: first.natural_type(),
        dims: fractions.dims.clone(),
        items: items.collect::<Result<_, _>>()?,
    }))
}
fn percentiles_disc(_: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    each(set, |values, fraction| Ok(discrete(values, fraction)))
}
fn percentiles_cont(ctx: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    each(set, |values, fraction| continuous(ctx, values, fraction))
}

/// The value that is there most often; of several the first.
fn mode(_: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    let rows = set.rows.iter().filter(|(_, row)| !row[0].is_null());
    let rows: Vec<_> = rows.collect();
    let mut best: Option<(usize, &Datum)> = None;
    for alike in rows.chunk_by(|(a, _), (b, _)| a == b) {
        if best.is_none_or(|(count, _)| alike.len() > count) {
            best = Some((alike.len(), &alike[0].1[0]));
        }
    }
    Ok(best.map_or(Datum::Null, |(_, value)| value.clone()))
}

fn hypothetical_rank(_: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    Ok(Datum::Int8(set.before() as i64 + 1))
}
fn hypothetical_dense_rank(_: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    let before = &set.rows[..set.before()];
    Ok(Datum::Int8(
        before.chunk_by(|(a, _), (b, _)| a == b).count() as i64 + 1,
    ))
}
fn hypothetical_percent_rank(_: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    Ok(Datum::Float8(match set.rows.len() {
        0 => 0.0,
        count => set.before() as f64 / count as f64,
    }))
}
fn hypothetical_cume_dist(_: &EvalContext<'_>, set: &OrderedSet<'_>) -> EvalResult {
    let up_to = set.rows.partition_point(|(key, _)| **key <= *set.own_key);
    Ok(Datum::Float8(
        (up_to + 1) as f64 / (set.rows.len() + 1) as f64,
    ))
}

/// An aggregate that is computed of all of its rows at once.
const fn row(
    oid: u32,
    name: &'static str,
    args: &'static [Oid],
    ret: Oid,
    kind: AggKind,
) -> Aggregate {
    Aggregate {
        oid: Oid(oid),
        name,
        args,
        ret,
        variadic: match kind {
            AggKind::Hypothetical(_) => oid::ANY,
            _ => Oid::NONE,
        },
        kind,
        init: aggregate::empty,
        step: nothing,
        combine: nothing_to_combine,
        undo: None,
        finish: other::value_finish,
    }
}

/// An ordered set is computed over all its rows at once.
fn nothing_to_combine(
    _: &EvalContext<'_>,
    _: &mut aggregate::AggState,
    _: aggregate::AggState,
) -> Result<(), EvalStop> {
    Err(aggregate::mixed())
}

fn nothing(_: &EvalContext<'_>, _: &mut aggregate::AggState, _: &[Datum]) -> Result<(), EvalStop> {
    Ok(())
}

const fn set(direct: u8, f: OrderedFn) -> AggKind {
    AggKind::OrderedSet { direct, compute: f }
}
const fn guess(f: OrderedFn) -> AggKind {
    AggKind::Hypothetical(f)
}

const FRACTION: &[Oid] = &[oid::FLOAT8, oid::FLOAT8];
const FRACTION_OF_TIME: &[Oid] = &[oid::FLOAT8, oid::INTERVAL];
const FRACTIONS: &[Oid] = &[oid::FLOAT8_ARRAY, oid::FLOAT8];
const FRACTIONS_OF_TIME: &[Oid] = &[oid::FLOAT8_ARRAY, oid::INTERVAL];
const ANY_FRACTION: &[Oid] = &[oid::FLOAT8, oid::ANYELEMENT];
const ANY_FRACTIONS: &[Oid] = &[oid::FLOAT8_ARRAY, oid::ANYELEMENT];

pub static AGGREGATES: &[Aggregate] = &[
    row(
        3984,
        "mode",
        &[oid::ANYELEMENT],
        oid::ANYELEMENT,
        set(0, mode),
    ),
    row(
        3974,
        "percentile_cont",
        FRACTION,
        oid::FLOAT8,
        set(1, percentile_cont),
    ),
    row(
        3976,
        "percentile_cont",
        FRACTION_OF_TIME,
        oid::INTERVAL,
        set(1, percentile_cont),
    ),
    row(
        3980,
        "percentile_cont",
        FRACTIONS,
        oid::FLOAT8_ARRAY,
        set(1, percentiles_cont),
    ),
    row(
        3982,
        "percentile_cont",
        FRACTIONS_OF_TIME,
        oid::INTERVAL_ARRAY,
        set(1, percentiles_cont),
    ),
    row(
        3972,
        "percentile_disc",
        ANY_FRACTION,
        oid::ANYELEMENT,
        set(1, percentile_disc),
    ),
    row(
        3978,
        "percentile_disc",
        ANY_FRACTIONS,
        oid::ANYARRAY,
        set(1, percentiles_disc),
    ),
    row(
        3986,
        "rank",
        &[oid::ANY],
        oid::INT8,
        guess(hypothetical_rank),
    ),
    row(
        3988,
        "percent_rank",
        &[oid::ANY],
        oid::FLOAT8,
        guess(hypothetical_percent_rank),
    ),
    row(
        3990,
        "cume_dist",
        &[oid::ANY],
        oid::FLOAT8,
        guess(hypothetical_cume_dist),
    ),
    row(
        3992,
        "dense_rank",
        &[oid::ANY],
        oid::INT8,
        guess(hypothetical_dense_rank),
    ),
];
