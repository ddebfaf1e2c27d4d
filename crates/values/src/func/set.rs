//! Functions that return rows: series, and the items and subscripts of arrays.

use super::datetime::{interval, moment, timestamp_plus, timestamptz_plus};
use super::number::{int, numeric};
use super::{EvalContext, EvalResult, EvalStop, Function, SetIterator, extension};
use crate::io::Zone;
use std::sync::Arc;
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Interval, Numeric, Record, Result, oid::*};

#[cold]
fn bad_bound(message: &str) -> EvalStop {
    Error::new(state::INVALID_PARAMETER_VALUE, message).into()
}

/// The values from `start` in steps, as long as they are not beyond the end. A value that cannot be
/// computed ends the series with its error, or without where it only leaves the type's range.
fn series<T: Clone + Send + 'static>(
    start: T,
    beyond: impl Fn(&T) -> bool + Send + 'static,
    step: impl Fn(&T) -> Option<Result<T>> + Send + 'static,
    datum: impl Fn(T) -> Datum + Send + 'static,
) -> SetIterator {
    let mut next = Some(Ok(start));
    Box::new(std::iter::from_fn(move || {
        let value: T = match next.take()? {
            Ok(value) => value,
            Err(e) => return Some(Err(EvalStop::Error(e))),
        };
        if beyond(&value) {
            return None;
        }
        next = step(&value);
        Some(Ok(datum(value)))
    }))
}

fn int_series(args: &[Datum], narrow: bool) -> Result<SetIterator, EvalStop> {
    let (start, end) = (int(&args[0]), int(&args[1]));
    let by = args.get(2).map_or(1, int);
    if by == 0 {
        return Err(bad_bound("step size cannot equal zero"));
    }
    let datum = move |v: i64| {
        if narrow {
            Datum::Int4(v as i32)
        } else {
            Datum::Int8(v)
        }
    };
    Ok(series(
        start,
        move |v| if by > 0 { *v > end } else { *v < end },
        move |v| v.checked_add(by).map(Ok),
        datum,
    ))
}
fn generate_series_int4(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    int_series(args, true)
}
fn generate_series_int8(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    int_series(args, false)
}
fn generate_series_numeric(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    for (value, name) in args
        .iter()
        .map(numeric)
        .zip(["start value", "stop value", "step size"])
    {
        if value.is_nan() {
            return Err(bad_bound(&format!("{name} cannot be NaN")));
        }
        if value.is_infinite() {
            return Err(bad_bound(&format!("{name} cannot be infinity")));
        }
    }
    let (start, end) = (numeric(&args[0]).clone(), numeric(&args[1]).clone());
    let by = args.get(2).map_or(Numeric::ONE, |by| numeric(by).clone());
    if by.is_zero() {
        return Err(bad_bound("step size cannot equal zero"));
    }
    let rising = by.signum() > 0;
    Ok(series(
        start,
        move |v| {
            if rising {
                v.compare(&end).is_gt()
            } else {
                v.compare(&end).is_lt()
            }
        },
        move |v| Some(v.add(&by)),
        Datum::Numeric,
    ))
}

fn moment_series(
    args: &[Datum],
    step: impl Fn(i64, Interval) -> Result<i64> + Send + 'static,
    datum: fn(i64) -> Datum,
) -> Result<SetIterator, EvalStop> {
    let (start, end, by) = (moment(&args[0]), moment(&args[1]), interval(&args[2]));
    if !by.is_finite() {
        return Err(bad_bound("step size cannot be infinite"));
    }
    let sign = by.comparable().signum();
    if sign == 0 {
        return Err(bad_bound("step size cannot equal zero"));
    }
    Ok(series(
        start,
        move |v| if sign > 0 { *v > end } else { *v < end },
        move |v| Some(step(*v, by)),
        datum,
    ))
}
fn generate_series_timestamp(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    moment_series(args, timestamp_plus, Datum::Timestamp)
}
fn zoned_series(args: &[Datum], zone: Zone) -> Result<SetIterator, EvalStop> {
    moment_series(
        args,
        move |t, by| timestamptz_plus(&zone, t, by),
        Datum::TimestampTz,
    )
}
fn generate_series_timestamptz(
    ctx: &EvalContext<'_>,
    args: &[Datum],
) -> Result<SetIterator, EvalStop> {
    zoned_series(args, ctx.format.time_zone.clone())
}
fn generate_series_timestamptz_at_zone(
    _: &EvalContext<'_>,
    args: &[Datum],
) -> Result<SetIterator, EvalStop> {
    zoned_series(
        args,
        super::datetime::timezone::zone_named(args[3].as_str().unwrap_or_default())?,
    )
}

fn array(value: &Datum) -> &Arc<Array> {
    match value {
        Datum::Array(array) => array,
        _ => unreachable!("not an array: {value:?}"),
    }
}
fn array_unnest(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let array = Arc::clone(array(&args[0]));
    Ok(Box::new(
        (0..array.items.len()).map(move |i| Ok(array.items[i].clone())),
    ))
}
fn generate_subscripts(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let wanted = usize::try_from(int(&args[1]) - 1).ok();
    let Some(dim) = wanted.and_then(|d| array(&args[0]).dims.get(d).copied()) else {
        return Ok(Box::new(std::iter::empty()));
    };
    let reverse = args.get(2).is_some_and(Datum::is_true);
    let subscript = move |i: i32| -> EvalResult {
        Ok(Datum::Int4(
            dim.lower + if reverse { dim.len - 1 - i } else { i },
        ))
    };
    Ok(Box::new((0..dim.len).map(subscript)))
}

/// No relation is a partition.
fn partition_ancestors(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let found = ctx.host.system_function("pg_partition_ancestors", args)?;
    Ok(Box::new(array(&found).items.clone().into_iter().map(Ok)))
}

fn partition_tree(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let found = ctx.host.system_function("pg_partition_tree", args)?;
    Ok(Box::new(array(&found).items.clone().into_iter().map(Ok)))
}

/// The host answers with an array.
fn listening_channels(ctx: &EvalContext<'_>, _: &[Datum]) -> Result<SetIterator, EvalStop> {
    let channels = ctx.host.system_function("pg_listening_channels", &[])?;
    Ok(Box::new(array(&channels).items.clone().into_iter().map(Ok)))
}

fn log_files(ctx: &EvalContext<'_>, _: &[Datum]) -> Result<SetIterator, EvalStop> {
    let files = ctx.host.system_function("pg_ls_waldir", &[])?;
    Ok(Box::new(array(&files).items.clone().into_iter().map(Ok)))
}

/// What is there already, and what can be installed.
fn available_extensions(_: &EvalContext<'_>, _: &[Datum]) -> Result<SetIterator, EvalStop> {
    let born = (extension::NAME, extension::VERSION, extension::DESCRIPTION);
    let known = extension::EXTENSIONS.iter();
    let known = known.map(|e| (e.name, e.version, e.comment));
    let all = std::iter::once(born).chain(known);
    Ok(Box::new(all.map(|(name, version, comment)| {
        let record = Record {
            types: [NAME, TEXT, TEXT].into(),
            names: None,
            values: vec![name.into(), version.into(), comment.into()],
        };
        Ok(Datum::Record(Arc::new(record)))
    })))
}

pub static FUNCTIONS: &[Function] = &[
    Function::set(
        3082,
        "pg_available_extensions",
        &[],
        RECORD,
        available_extensions,
    )
    .columns(&[("name", NAME), ("default_version", TEXT), ("comment", TEXT)]),
    Function::set(3354, "pg_ls_waldir", &[], RECORD, log_files)
        .volatile()
        .columns(&[
            ("name", TEXT),
            ("size", INT8),
            ("modification", TIMESTAMPTZ),
        ]),
    Function::set(3035, "pg_listening_channels", &[], TEXT, listening_channels).volatile(),
    Function::set(
        938,
        "generate_series",
        &[TIMESTAMP, TIMESTAMP, INTERVAL],
        TIMESTAMP,
        generate_series_timestamp,
    ),
    Function::set(
        939,
        "generate_series",
        &[TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL],
        TIMESTAMPTZ,
        generate_series_timestamptz,
    )
    .stable(),
    Function::set(
        1066,
        "generate_series",
        &[INT4, INT4, INT4],
        INT4,
        generate_series_int4,
    ),
    Function::set(
        1067,
        "generate_series",
        &[INT4, INT4],
        INT4,
        generate_series_int4,
    ),
    Function::set(
        1068,
        "generate_series",
        &[INT8, INT8, INT8],
        INT8,
        generate_series_int8,
    ),
    Function::set(
        1069,
        "generate_series",
        &[INT8, INT8],
        INT8,
        generate_series_int8,
    ),
    Function::set(
        3259,
        "generate_series",
        &[NUMERIC, NUMERIC, NUMERIC],
        NUMERIC,
        generate_series_numeric,
    ),
    Function::set(
        3260,
        "generate_series",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        generate_series_numeric,
    ),
    Function::set(
        6274,
        "generate_series",
        &[TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL, TEXT],
        TIMESTAMPTZ,
        generate_series_timestamptz_at_zone,
    ),
    Function::set(2331, "unnest", &[ANYARRAY], ANYELEMENT, array_unnest),
    Function::set(
        1191,
        "generate_subscripts",
        &[ANYARRAY, INT4, BOOL],
        INT4,
        generate_subscripts,
    ),
    Function::set(
        1192,
        "generate_subscripts",
        &[ANYARRAY, INT4],
        INT4,
        generate_subscripts,
    ),
    Function::set(
        3425,
        "pg_partition_ancestors",
        &[REGCLASS],
        REGCLASS,
        partition_ancestors,
    )
    .volatile()
    .columns(&[("relid", REGCLASS)]),
    Function::set(
        3423,
        "pg_partition_tree",
        &[REGCLASS],
        RECORD,
        partition_tree,
    )
    .volatile()
    .columns(&[
        ("relid", REGCLASS),
        ("parentrelid", REGCLASS),
        ("isleaf", BOOL),
        ("level", INT4),
    ]),
];
