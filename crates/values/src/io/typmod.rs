//! Making a value fit its type's modifier: lengths, precisions, fields.

use crate::io::base::base_type;
use std::sync::Arc;
use throng_types::BaseValue;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::sqltype::{element_of, interval_field, type_name};
use throng_types::{Array, Datum, Error, Interval, Oid, Result, SqlType, TimeTz, oid};

/// Applies the type's modifier. An explicit cast cuts strings; an assignment refuses what is too
/// long (22001), blanks at the end aside.
pub fn apply(value: Datum, ty: SqlType, explicit: bool) -> Result<Datum> {
    if ty.typmod < 0 {
        return Ok(value);
    }
    Ok(match (value, ty.oid) {
        (Datum::Null, _) => Datum::Null,
        (Datum::Text(s), oid::VARCHAR | oid::BPCHAR) => string(s, ty, explicit)?,
        (Datum::Numeric(n), oid::NUMERIC) => Datum::Numeric(n.apply_modifier(ty.typmod)?),
        (Datum::Timestamp(t), oid::TIMESTAMP) => Datum::Timestamp(timestamp(t, ty.typmod)),
        (Datum::TimestampTz(t), oid::TIMESTAMPTZ) => Datum::TimestampTz(timestamp(t, ty.typmod)),
        (Datum::Time(t), oid::TIME) => Datum::Time(round_micros(t, ty.typmod)),
        (Datum::TimeTz(t), oid::TIMETZ) => Datum::TimeTz(TimeTz {
            micros: round_micros(t.micros, ty.typmod),
            ..t
        }),
        (Datum::Interval(i), oid::INTERVAL) => Datum::Interval(interval(i, ty.typmod)?),
        (Datum::Base(v), ty_oid) if v.ty == ty_oid => base_value(v, ty.typmod, explicit)?,
        (Datum::Array(a), array) => {
            let Some(element) = element_of(array) else {
                return Ok(Datum::Array(a));
            };
            let ty = SqlType::new(element, ty.typmod);
            let items: Result<Vec<Datum>> = a
                .items
                .iter()
                .map(|i| apply(i.clone(), ty, explicit))
                .collect();
            Datum::Array(Arc::new(Array {
                element,
                dims: a.dims.clone(),
                items: items?,
            }))
        }
        (value, _) => value,
    })
}

fn base_value(value: BaseValue, typmod: i32, explicit: bool) -> Result<Datum> {
    let modifier = base_type(value.ty).and_then(|base| base.modifier.as_ref());
    let Some(modifier) = modifier else {
        return Ok(Datum::Base(value));
    };
    Ok(match (modifier.apply)(&value.bytes, typmod, explicit)? {
        Some(bytes) => Datum::base(value.ty, bytes),
        None => Datum::Base(value),
    })
}

/// Where the character after the first `n` starts, if there are more.
fn char_limit(s: &str, n: usize) -> Option<usize> {
    if s.len() <= n {
        return None;
    }
    s.char_indices().nth(n).map(|(i, _)| i)
}

fn string(s: throng_types::Text, ty: SqlType, explicit: bool) -> Result<Datum> {
    let Some(limit) = SqlType::string_length(ty.typmod) else {
        return Ok(Datum::Text(s));
    };
    let limit = limit as usize;
    if let Some(end) = char_limit(&s, limit) {
        if !explicit && s[end..].bytes().any(|b| b != b' ') {
            return Err(Error::new(
                state::STRING_DATA_RIGHT_TRUNCATION,
                format!("value too long for type {}({limit})", type_name(ty.oid)),
            ));
        }
        return Ok(Datum::text(&s[..end]));
    }
    if ty.oid == oid::BPCHAR {
        let missing = limit - s.chars().count();
        if missing > 0 {
            let mut padded = String::with_capacity(s.len() + missing);
            padded.push_str(&s);
            padded.extend(std::iter::repeat_n(' ', missing));
            return Ok(padded.into());
        }
    }
    Ok(Datum::Text(s))
}

/// Rounds microseconds to so many digits of a second, halves away from zero.
pub fn round_micros(micros: i64, digits: i32) -> i64 {
    let Ok(drop @ 1..) = u32::try_from(6 - digits) else {
        return micros;
    };
    let step = 10i64.pow(drop.min(6));
    let half = step / 2;
    if micros >= 0 {
        micros.saturating_add(half) / step * step
    } else {
        -(micros.saturating_neg().saturating_add(half) / step * step)
    }
}

fn timestamp(micros: i64, digits: i32) -> i64 {
    if micros == TIMESTAMP_INFINITY || micros == TIMESTAMP_NEG_INFINITY {
        return micros;
    }
    round_micros(micros, digits)
}

/// Keeps the fields the modifier names, and rounds seconds.
fn interval(value: Interval, typmod: i32) -> Result<Interval> {
    use interval_field::*;
    if !value.is_finite() {
        return Ok(value);
    }
    let (range, precision) = ((typmod >> 16) & FULL_RANGE, typmod & FULL_PRECISION);
    let Interval {
        mut months,
        mut days,
        mut micros,
    } = value;
    // What is below the smallest field named is cut off; only YEAR and YEAR TO MONTH drop days.
    const YEAR_MONTH: i32 = YEAR | MONTH;
    match range {
        FULL_RANGE => {}
        YEAR => (months, days, micros) = (months / 12 * 12, 0, 0),
        MONTH | YEAR_MONTH => (days, micros) = (0, 0),
        DAY => micros = 0,
        _ if range & SECOND != 0 => {}
        _ if range & MINUTE != 0 => micros = micros / MICROS_PER_MINUTE * MICROS_PER_MINUTE,
        _ if range & HOUR != 0 => micros = micros / MICROS_PER_HOUR * MICROS_PER_HOUR,
        _ => {}
    }
    if precision != FULL_PRECISION {
        let half = 10i64.pow((6 - precision.clamp(0, 6)) as u32) / 2;
        if micros.unsigned_abs() > i64::MAX as u64 - half as u64 {
            let message = "interval out of range";
            return Err(Error::new(state::DATETIME_FIELD_OVERFLOW, message));
        }
        micros = round_micros(micros, precision);
    }
    Ok(Interval {
        months,
        days,
        micros,
    })
}

/// A type's modifier from what is written in parentheses after its name.
pub fn from_written(ty: Oid, modifiers: &[i32]) -> Result<i32> {
    let bad = |message: String| Error::new(state::INVALID_PARAMETER_VALUE, message);
    const MAX_LENGTH: i32 = 10_485_760;
    match (ty, modifiers) {
        (_, []) => Ok(-1),
        (oid::VARCHAR | oid::BPCHAR, [n]) => {
            let name = if ty == oid::VARCHAR {
                "varchar"
            } else {
                "char"
            };
            match *n {
                ..1 => Err(bad(format!("length for type {name} must be at least 1"))),
                1..=MAX_LENGTH => Ok(SqlType::string_modifier(*n)),
                _ => Err(bad(format!(
                    "length for type {name} cannot exceed {MAX_LENGTH}"
                ))),
            }
        }
        (oid::NUMERIC, [precision, rest @ ..]) if rest.len() < 2 => {
            let scale = rest.first().copied().unwrap_or(0);
            if !(1..=1000).contains(precision) {
                let message = format!("NUMERIC precision {precision} must be between 1 and 1000");
                return Err(bad(message));
            }
            if !(-1000..=1000).contains(&scale) {
                let message = format!("NUMERIC scale {scale} must be between -1000 and 1000");
                return Err(bad(message));
            }
            Ok(SqlType::numeric_modifier(*precision, scale))
        }
        (oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ, [digits]) => {
            match *digits {
                ..0 => Err(bad(format!(
                    "{}({digits}) precision must not be negative",
                    type_name(ty)
                ))),
                // More than six are taken as six, as in PostgreSQL (which warns).
                _ => Ok((*digits).min(6)),
            }
        }
        (oid::INTERVAL, [digits]) => Ok(SqlType::interval_modifier(
            throng_types::sqltype::interval_field::FULL_RANGE,
            (*digits).clamp(0, 6),
        )),
        _ => match base_type(ty).and_then(|base| base.modifier.as_ref()) {
            Some(modifier) => (modifier.from_written)(modifiers),
            None => Err(no_modifier(ty)),
        },
    }
}

#[cold]
fn no_modifier(ty: Oid) -> Error {
    Error::new(
        state::SYNTAX_ERROR,
        format!(
            "type modifier is not allowed for type \"{}\"",
            type_name(ty)
        ),
    )
}
