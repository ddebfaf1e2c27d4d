//! Sizes for people, counting NULLs, UUIDs.

use super::number::int;
use super::string::text;
use super::{EvalContext, EvalResult, Function};
use crate::io::scalar::is_space;
use std::time::{SystemTime, UNIX_EPOCH};
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, Numeric, oid::*};

/// A unit's name, from what size on the next one is used, and the power of two it is.
const UNITS: [(&str, i64, u32); 6] = [
    ("bytes", 10 * 1024, 0),
    ("kB", 20 * 1024 - 1, 10),
    ("MB", 20 * 1024 - 1, 20),
    ("GB", 20 * 1024 - 1, 30),
    ("TB", 20 * 1024 - 1, 40),
    ("PB", 20 * 1024 - 1, 50),
];

/// A size in the largest unit that leaves it some digits. Above bytes it is kept in halves, to be
/// rounded at the end.
fn size_pretty(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut size = match &args[0] {
        Datum::Numeric(size) => size.clone(),
        size => Numeric::from(int(size)),
    };
    for (i, (name, limit, _)) in UNITS.iter().enumerate() {
        let last = i + 1 == UNITS.len();
        if last || size.abs().compare(&Numeric::from(*limit)).is_lt() {
            if i > 0 {
                let away = Numeric::from(i64::from(size.signum()));
                size = size.add(&away)?.div_trunc(&Numeric::from(2i64))?;
            }
            return Ok(format!("{size} {name}").into());
        }
        let step = if i == 0 { 1 << 9 } else { 1 << 10 };
        size = size.div_trunc(&Numeric::from(step as i64))?;
    }
    Ok(Datum::Null)
}

fn size_bytes(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = text(&args[0]);
    let invalid = || {
        Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("invalid size: \"{whole}\""),
        )
    };
    let s = whole.trim_matches(is_space);
    let number_end = |s: &str| {
        let mut end = s.starts_with(['-', '+']) as usize;
        let digits = |from: usize| s[from..].bytes().take_while(u8::is_ascii_digit).count();
        let before = digits(end);
        end += before;
        let mut some = before > 0;
        if s[end..].starts_with('.') {
            let after = digits(end + 1);
            some |= after > 0;
            end += 1 + after;
        }
        if some && s[end..].starts_with(['e', 'E']) {
            let sign = usize::from(s[end + 1..].starts_with(['-', '+']));
            let power = digits(end + 1 + sign);
            if power > 0 {
                end += 1 + sign + power;
            }
        }
        some.then_some(end)
    };
    let end = number_end(s).ok_or_else(invalid)?;
    let number = crate::io::scalar::parse_numeric(&s[..end])?;
    let unit = s[end..].trim_matches(is_space);
    let power = match unit {
        "" => 0,
        _ if unit.eq_ignore_ascii_case("b") => 0,
        _ => {
            let known = UNITS.iter().find(|u| u.0.eq_ignore_ascii_case(unit));
            known.map(|u| u.2).ok_or_else(|| {
                invalid()
                    .detail(format!("Invalid size unit: \"{unit}\"."))
                    .hint("Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".")
            })?
        }
    };
    let size = number.mul(&Numeric::from(1i64 << power))?.round(0);
    Ok(size
        .to_i64()
        .ok_or_else(super::number::bigint_out_of_range)?
        .into())
}

fn num_nulls(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((args.iter().filter(|a| a.is_null()).count() as i32).into())
}
fn num_nonnulls(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((args.iter().filter(|a| !a.is_null()).count() as i32).into())
}

/// Marks 16 bytes as a UUID of this version (RFC 9562).
fn marked(mut uuid: [u8; 16], version: u8) -> Datum {
    uuid[6] = uuid[6] & 0x0f | version << 4;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Datum::Uuid(uuid)
}
fn uuidv4(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(marked(rand::random(), 4))
}

thread_local! {
    /// The time of the last UUID made by this thread, in nanoseconds since 1970.
    static LAST_UUID: std::cell::Cell<i128> = const { std::cell::Cell::new(0) };
}
/// The fraction of a millisecond that a UUID keeps: 12 bits.
const TICK: i128 = 1_000_000 / 4096;

/// Milliseconds since 1970 in 48 bits, the fraction in 12, then chance. Those of a thread ascend.
fn uuidv7(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = since_1970.as_nanos() as i128;
    let mut nanos = LAST_UUID.get().saturating_add(TICK + 1).max(now);
    LAST_UUID.set(nanos);
    if let Some(Datum::Interval(span)) = args.first() {
        let refused = |detail: &str| {
            let message = "interval out of range for UUID version 7";
            Error::new(state::DATETIME_FIELD_OVERFLOW, message).detail(detail)
        };
        if !span.is_finite() {
            return Err(refused("UUID version 7 does not support infinite intervals.").into());
        }
        let micros = (nanos / 1000) as i64 - UNIX_EPOCH_MICROS;
        let shifted = super::datetime::timestamp_plus(micros, *span)?;
        nanos = i128::from(shifted + UNIX_EPOCH_MICROS) * 1000 + nanos % 1000;
        if !(0..1 << 48).contains(&nanos.div_euclid(1_000_000)) {
            let message = "timestamp out of range for UUID version 7";
            let detail =
                "UUID version 7 supports timestamps from 1970-01-01 to approximately year 10889.";
            let error = Error::new(state::DATETIME_FIELD_OVERFLOW, message);
            return Err(error.detail(detail).into());
        }
    }
    let mut uuid: [u8; 16] = rand::random();
    let (millis, rest) = (nanos.div_euclid(1_000_000), nanos.rem_euclid(1_000_000));
    uuid[..6].copy_from_slice(&(millis as u64).to_be_bytes()[2..]);
    let fraction = (rest * 4096 / 1_000_000) as u16;
    uuid[6..8].copy_from_slice(&fraction.to_be_bytes());
    Ok(marked(uuid, 7))
}

fn uuid(value: &Datum) -> &[u8; 16] {
    match value {
        Datum::Uuid(uuid) => uuid,
        _ => unreachable!("not a UUID: {value:?}"),
    }
}
/// The version, of those that are made as the RFC says.
fn version(uuid: &[u8; 16]) -> Option<i16> {
    (uuid[8] & 0xc0 == 0x80).then_some(i16::from(uuid[6] >> 4))
}
fn extract_version(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(version(uuid(&args[0])).into())
}
fn extract_timestamp(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    /// From 1582-10-15, where version 1 counts from, to 2000.
    const GREGORIAN: i64 = 152_384 * MICROS_PER_DAY;
    let uuid = uuid(&args[0]);
    let number = |bytes: &[u8]| bytes.iter().fold(0i64, |v, b| v << 8 | i64::from(*b));
    Ok(match version(uuid) {
        Some(1) => {
            let ticks = (number(&uuid[6..8]) & 0xfff) << 48
                | number(&uuid[4..6]) << 32
                | number(&uuid[..4]);
            Datum::TimestampTz(ticks / 10 - GREGORIAN)
        }
        Some(7) => Datum::TimestampTz(number(&uuid[..6]) * 1000 - UNIX_EPOCH_MICROS),
        _ => Datum::Null,
    })
}

/// Bytes of log between two positions.
pub static FUNCTIONS: &[Function] = &[
    Function::new(3432, "gen_random_uuid", &[], UUID, uuidv4).volatile(),
    Function::new(6428, "uuidv4", &[], UUID, uuidv4).volatile(),
    Function::new(6429, "uuidv7", &[], UUID, uuidv7).volatile(),
    Function::new(6430, "uuidv7", &[INTERVAL], UUID, uuidv7).volatile(),
    Function::new(6343, "uuid_extract_version", &[UUID], INT2, extract_version),
    Function::new(
        6342,
        "uuid_extract_timestamp",
        &[UUID],
        TIMESTAMPTZ,
        extract_timestamp,
    ),
    Function::new(2288, "pg_size_pretty", &[INT8], TEXT, size_pretty),
    Function::new(3166, "pg_size_pretty", &[NUMERIC], TEXT, size_pretty),
    Function::new(3334, "pg_size_bytes", &[TEXT], INT8, size_bytes),
    Function::new(438, "num_nulls", &[ANY], INT4, num_nulls)
        .lenient()
        .variadic(ANY),
    Function::new(440, "num_nonnulls", &[ANY], INT4, num_nonnulls)
        .lenient()
        .variadic(ANY),
];
