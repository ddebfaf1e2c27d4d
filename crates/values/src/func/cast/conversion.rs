//! The functions behind casts.

use crate::func::cast::Cast;
use crate::func::number::{
    bigint_out_of_range, float, float_overflow, float_underflow, int, integer_out_of_range,
    numeric, smallint_out_of_range,
};
use crate::func::{EvalContext, EvalResult};
use crate::io::scalar::{self, wide_number};
use std::sync::Arc;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::sqltype::element_of;
use throng_types::{Array, Datum, Error, Interval, Numeric, Oid, Text, TimeTz, oid};

/// A value seen as a binary-compatible type.
pub fn relabel(value: &Datum, to: Oid) -> Datum {
    match (value, to) {
        (Datum::Int4(v), _) if to != oid::INT4 => Datum::Oid(*v as u32),
        (Datum::Oid(v), oid::INT4) => Datum::Int4(*v as i32),
        (Datum::Base(v), oid::TEXT | oid::VARCHAR | oid::BPCHAR) if v.ty == oid::XML => {
            Datum::text(crate::io::xml::text_of(value))
        }
        (Datum::Base(v), _) if v.ty != to => Datum::base(to, v.bytes.clone()),
        (Datum::Array(a), _) => match element_of(to) {
            Some(element) if element != a.element => Datum::Array(Arc::new(Array {
                element,
                dims: a.dims.clone(),
                items: a.items.iter().map(|i| relabel(i, element)).collect(),
            })),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Casts each item of an array.
pub fn array_items(ctx: &EvalContext<'_>, value: &Datum, cast: &Cast, typmod: i32) -> EvalResult {
    let Datum::Array(array) = value else {
        return Ok(value.clone());
    };
    let items = array.items.iter();
    let items: Result<Vec<Datum>, _> = items.map(|i| cast.apply_to(ctx, i, typmod)).collect();
    Ok(Datum::array(Array {
        element: cast.to,
        dims: array.dims.clone(),
        items: items?,
    }))
}

pub(in crate::func) fn to_int2(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(i16::try_from(int(&args[0]))
        .map_err(|_| smallint_out_of_range())?
        .into())
}
pub(in crate::func) fn to_int4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(i32::try_from(int(&args[0]))
        .map_err(|_| integer_out_of_range())?
        .into())
}
pub(in crate::func) fn to_int8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(int(&args[0]).into())
}
pub(in crate::func) fn to_float4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((int(&args[0]) as f32).into())
}
pub(in crate::func) fn to_float8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((int(&args[0]) as f64).into())
}
pub(in crate::func) fn to_numeric(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Numeric::from(int(&args[0])).into())
}
pub(in crate::func) fn to_oid(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    // A narrow negative number wraps, as its bits do.
    let narrow = matches!(args[0], Datum::Int2(_) | Datum::Int4(_));
    let value = int(&args[0]);
    match u32::try_from(value) {
        Ok(oid) => Ok(Datum::Oid(oid)),
        Err(_) if narrow => Ok(Datum::Oid(value as u32)),
        Err(_) => Err(Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range").into()),
    }
}

/// The nearest integer, halves to even; NaN has none.
fn rounded(value: &Datum, low: f64, high: f64) -> Option<i64> {
    let whole = float(value).round_ties_even();
    (whole >= low && whole < high).then_some(whole as i64)
}
pub(in crate::func) fn float_int2(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = rounded(&args[0], -32_768.0, 32_768.0).ok_or_else(smallint_out_of_range)?;
    Ok(Datum::Int2(value as i16))
}
pub(in crate::func) fn float_int4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let limit = 2f64.powi(31);
    let value = rounded(&args[0], -limit, limit).ok_or_else(integer_out_of_range)?;
    Ok(Datum::Int4(value as i32))
}
pub(in crate::func) fn float_int8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let limit = 2f64.powi(63);
    Ok(rounded(&args[0], -limit, limit)
        .ok_or_else(bigint_out_of_range)?
        .into())
}
pub(in crate::func) fn ftod(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(float(&args[0]).into())
}
fn narrow_float(wide: f64) -> Result<Datum, Error> {
    let value = wide as f32;
    if value.is_infinite() && wide.is_finite() {
        return Err(float_overflow());
    }
    if value == 0.0 && wide != 0.0 {
        return Err(float_underflow());
    }
    Ok(value.into())
}
pub(in crate::func) fn dtof(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(narrow_float(float(&args[0]))?)
}
pub(in crate::func) fn float4_numeric(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Numeric::from_f32(float(&args[0]) as f32).into())
}
pub(in crate::func) fn float8_numeric(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Numeric::from_f64(float(&args[0])).into())
}
pub(in crate::func) fn numeric_float4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = numeric(&args[0]);
    let text = value.to_string();
    let narrow: f32 = text.parse().unwrap_or(f32::NAN);
    if (narrow.is_infinite() && value.is_finite()) || (narrow == 0.0 && !value.is_zero()) {
        return Err(Error::new(
            state::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{text}\" is out of range for type real"),
        )
        .into());
    }
    Ok(narrow.into())
}
pub(in crate::func) fn numeric_float8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = numeric(&args[0]);
    let double = value.to_f64();
    if (double.is_infinite() && value.is_finite()) || (double == 0.0 && !value.is_zero()) {
        return Err(Error::new(
            state::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{value}\" is out of range for type double precision"),
        )
        .into());
    }
    Ok(double.into())
}

fn whole<T: TryFrom<i64>>(value: &Datum, name: &str, overflow: fn() -> Error) -> Result<T, Error> {
    let value = numeric(value);
    if !value.is_finite() {
        let what = if value.is_nan() { "NaN" } else { "infinity" };
        return Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            format!("cannot convert {what} to {name}"),
        ));
    }
    value
        .to_i64()
        .and_then(|v| T::try_from(v).ok())
        .ok_or_else(overflow)
}
pub(in crate::func) fn numeric_int2(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(whole::<i16>(&args[0], "smallint", smallint_out_of_range)?.into())
}
pub(in crate::func) fn numeric_int4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(whole::<i32>(&args[0], "integer", integer_out_of_range)?.into())
}
pub(in crate::func) fn numeric_int8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(whole::<i64>(&args[0], "bigint", bigint_out_of_range)?.into())
}

pub(in crate::func) fn bool_int4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Int4(args[0].is_true().into()))
}
pub(in crate::func) fn int4_bool(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((int(&args[0]) != 0).into())
}
pub(in crate::func) fn booltext(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::text(if args[0].is_true() {
        "true"
    } else {
        "false"
    }))
}

/// An integer's bytes, most significant first.
pub(in crate::func) fn int_bytea(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(match args[0] {
        Datum::Int2(v) => Datum::bytea(v.to_be_bytes()),
        Datum::Int4(v) => Datum::bytea(v.to_be_bytes()),
        ref v => Datum::bytea(int(v).to_be_bytes()),
    })
}
fn bytea_int<const N: usize>(value: &Datum, overflow: fn() -> Error) -> Result<[u8; N], Error> {
    let Datum::Bytea(bytes) = value else {
        unreachable!("not bytes: {value:?}")
    };
    if bytes.len() > N {
        return Err(overflow());
    }
    let mut raw = [0; N];
    raw[N - bytes.len()..].copy_from_slice(bytes);
    Ok(raw)
}
pub(in crate::func) fn bytea_int2(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(i16::from_be_bytes(bytea_int(&args[0], smallint_out_of_range)?).into())
}
pub(in crate::func) fn bytea_int4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(i32::from_be_bytes(bytea_int(&args[0], integer_out_of_range)?).into())
}
pub(in crate::func) fn bytea_int8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(i64::from_be_bytes(bytea_int(&args[0], bigint_out_of_range)?).into())
}

fn text(value: &Datum) -> &Text {
    match value {
        Datum::Text(s) => s,
        _ => unreachable!("not a string: {value:?}"),
    }
}
pub(in crate::func) fn same(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(args[0].clone())
}
pub(in crate::func) fn rtrim1(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let s = text(&args[0]);
    let trimmed = s.trim_end_matches(' ');
    Ok(if trimmed.len() == s.len() {
        args[0].clone()
    } else {
        Datum::text(trimmed)
    })
}
pub(in crate::func) fn text_name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::text(scalar::clip_name(text(&args[0]))))
}
pub(in crate::func) fn bpchar_name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::text(scalar::clip_name(
        text(&args[0]).trim_end_matches(' '),
    )))
}
pub(in crate::func) fn text_char(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Char(scalar::parse_char(text(&args[0]))))
}
pub(in crate::func) fn char_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Char(c) = args[0] else {
        unreachable!("not a \"char\": {:?}", args[0])
    };
    let mut out = Vec::new();
    scalar::write_char(c, &mut out);
    Ok(String::from_utf8_lossy(&out).into_owned().into())
}
pub(in crate::func) fn chartoi4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Char(c) = args[0] else {
        unreachable!("not a \"char\": {:?}", args[0])
    };
    Ok(Datum::Int4((c as i8).into()))
}
pub(in crate::func) fn i4tochar(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = i8::try_from(int(&args[0]))
        .map_err(|_| Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range"))?;
    Ok(Datum::Char(value as u8))
}
pub(in crate::func) fn text_regclass(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ctx
        .host
        .object_oid(crate::func::ObjectKind::Class, text(&args[0]))?
        .into())
}
pub(in crate::func) fn xid8toxid(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Oid(wide_number(int(&args[0])) as u32))
}

fn micros(value: &Datum) -> i64 {
    match *value {
        Datum::Timestamp(v) | Datum::TimestampTz(v) | Datum::Time(v) => v,
        _ => unreachable!("not a time: {value:?}"),
    }
}
fn is_infinite(micros: i64) -> bool {
    micros == TIMESTAMP_INFINITY || micros == TIMESTAMP_NEG_INFINITY
}
#[cold]
fn timestamp_out_of_range() -> Error {
    crate::io::datetime::timestamp_out_of_range()
}

/// A date's midnight; 22008 beyond the range of timestamps.
pub fn date_midnight(days: i32) -> Result<i64, Error> {
    match days {
        DATE_INFINITY => Ok(TIMESTAMP_INFINITY),
        DATE_NEG_INFINITY => Ok(TIMESTAMP_NEG_INFINITY),
        _ => i64::from(days)
            .checked_mul(MICROS_PER_DAY)
            .filter(|&t| timestamp_in_range(t))
            .ok_or_else(|| {
                Error::new(
                    state::DATETIME_FIELD_OVERFLOW,
                    "date out of range for timestamp",
                )
            }),
    }
}
/// The day a local time is on.
fn day_of(local: i64) -> i32 {
    match local {
        TIMESTAMP_INFINITY => DATE_INFINITY,
        TIMESTAMP_NEG_INFINITY => DATE_NEG_INFINITY,
        _ => local.div_euclid(MICROS_PER_DAY) as i32,
    }
}
fn local(ctx: &EvalContext<'_>, utc: i64) -> i64 {
    if is_infinite(utc) {
        utc
    } else {
        ctx.format.time_zone.to_local(utc)
    }
}
fn moment(ctx: &EvalContext<'_>, local: i64) -> Result<Datum, Error> {
    if is_infinite(local) {
        return Ok(Datum::TimestampTz(local));
    }
    let utc = ctx.format.time_zone.to_utc(local);
    if timestamp_in_range(utc) {
        Ok(Datum::TimestampTz(utc))
    } else {
        Err(timestamp_out_of_range())
    }
}
fn days(value: &Datum) -> i32 {
    match *value {
        Datum::Date(v) => v,
        _ => unreachable!("not a date: {value:?}"),
    }
}

pub(in crate::func) fn date_timestamp(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Timestamp(date_midnight(days(&args[0]))?))
}
pub(in crate::func) fn date_timestamptz(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(moment(ctx, date_midnight(days(&args[0]))?)?)
}
pub(in crate::func) fn timestamp_date(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Date(day_of(micros(&args[0]))))
}
pub(in crate::func) fn timestamptz_date(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Date(day_of(local(ctx, micros(&args[0])))))
}
pub(in crate::func) fn timestamp_time(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let t = micros(&args[0]);
    Ok(if is_infinite(t) {
        Datum::Null
    } else {
        Datum::Time(t.rem_euclid(MICROS_PER_DAY))
    })
}
pub(in crate::func) fn timestamptz_time(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let t = local(ctx, micros(&args[0]));
    Ok(if is_infinite(t) {
        Datum::Null
    } else {
        Datum::Time(t.rem_euclid(MICROS_PER_DAY))
    })
}
pub(in crate::func) fn timestamp_timestamptz(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(moment(ctx, micros(&args[0]))?)
}
pub(in crate::func) fn timestamptz_timestamp(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Timestamp(local(ctx, micros(&args[0]))))
}
pub(in crate::func) fn timestamptz_timetz(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let utc = micros(&args[0]);
    if is_infinite(utc) {
        return Ok(Datum::Null);
    }
    let micros = local(ctx, utc).rem_euclid(MICROS_PER_DAY);
    Ok(Datum::TimeTz(TimeTz {
        micros,
        zone: -ctx.format.time_zone.east_at(utc),
    }))
}
pub(in crate::func) fn time_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Interval::new(0, 0, micros(&args[0])).into())
}
pub(in crate::func) fn interval_time(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Interval(value) = args[0] else {
        unreachable!("not an interval: {:?}", args[0])
    };
    if !value.is_finite() {
        return Err(Error::new(
            state::DATETIME_FIELD_OVERFLOW,
            "cannot convert infinite interval to time",
        )
        .into());
    }
    Ok(Datum::Time(value.micros.rem_euclid(MICROS_PER_DAY)))
}
pub(in crate::func) fn time_timetz(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let east = ctx
        .format
        .time_zone
        .east_at(ctx.host.transaction_timestamp());
    Ok(Datum::TimeTz(TimeTz {
        micros: micros(&args[0]),
        zone: -east,
    }))
}
pub(in crate::func) fn timetz_time(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::TimeTz(value) = args[0] else {
        unreachable!("not a timetz: {:?}", args[0])
    };
    Ok(Datum::Time(value.micros))
}
