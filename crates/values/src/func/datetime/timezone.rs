//! `AT TIME ZONE`: the same moment on another clock.

use crate::func::datetime::{checked_timestamp, is_infinite, moment, zoned_clock};
use crate::func::{EvalContext, EvalResult, Function};
use crate::io::datetime::interval as interval_io;
use crate::io::{IntervalStyle, Zone};
use crate::zone::parse_displacement;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, Interval, Result, TimeTz, oid::*};

/// A zone by abbreviation, name or POSIX form (`+3` counts west there, as POSIX does).
pub fn zone_named(name: &str) -> Result<Zone> {
    Zone::abbreviation(name)
        .or_else(|| Zone::by_name(name))
        .or_else(|| Zone::fixed(-parse_displacement(name)?))
        .ok_or_else(|| {
            Error::new(
                state::INVALID_PARAMETER_VALUE,
                format!("time zone \"{name}\" not recognized"),
            )
        })
}

/// A displacement given as an interval, east being positive.
fn zone_of_interval(span: Interval) -> Result<Zone> {
    let refuse = |what: &str| {
        let mut shown = Vec::new();
        interval_io::write(span, IntervalStyle::Postgres, &mut shown);
        let shown = String::from_utf8_lossy(&shown).into_owned();
        Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("interval time zone \"{shown}\" must {what}"),
        )
    };
    if !span.is_finite() {
        return Err(refuse("be finite"));
    }
    if span.months != 0 || span.days != 0 {
        return Err(refuse("not include months or days"));
    }
    let east = (span.micros / MICROS_PER_SECOND) as i32;
    Ok(Zone::fixed(east).unwrap_or_else(|| Zone::Fixed {
        east,
        name: "".into(),
    }))
}

fn zone_argument(value: &Datum) -> Result<Zone> {
    match value {
        Datum::Interval(span) => zone_of_interval(*span),
        other => zone_named(other.as_str().unwrap_or_default()),
    }
}

/// The local time of a moment, checked. An infinite one is none of any zone's, whatever that is
/// called.
fn to_clock(utc: i64, zone: impl FnOnce() -> Result<Zone>) -> EvalResult {
    Ok(Datum::Timestamp(match is_infinite(utc) {
        true => utc,
        false => checked_timestamp(Some(zone()?.to_local(utc)))?,
    }))
}
fn from_clock(local: i64, zone: impl FnOnce() -> Result<Zone>) -> EvalResult {
    Ok(Datum::TimestampTz(match is_infinite(local) {
        true => local,
        false => checked_timestamp(Some(zone()?.to_utc(local)))?,
    }))
}
fn move_clock(ctx: &EvalContext<'_>, zone: &Zone, time: TimeTz) -> EvalResult {
    let east = zone.east_at(ctx.host.transaction_timestamp());
    let micros = time.micros + i64::from(time.zone + east) * MICROS_PER_SECOND;
    Ok(Datum::TimeTz(TimeTz {
        micros: micros.rem_euclid(MICROS_PER_DAY),
        zone: -east,
    }))
}

fn timestamptz_zone(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    to_clock(moment(&args[1]), || zone_argument(&args[0]))
}
fn timestamp_zone(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    from_clock(moment(&args[1]), || zone_argument(&args[0]))
}
fn timetz_zone(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    move_clock(ctx, &zone_argument(&args[0])?, zoned_clock(&args[1]))
}
fn timestamptz_at_local(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    to_clock(moment(&args[0]), || Ok(ctx.format.time_zone.clone()))
}
fn timestamp_at_local(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    from_clock(moment(&args[0]), || Ok(ctx.format.time_zone.clone()))
}
fn timetz_at_local(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    move_clock(ctx, &ctx.format.time_zone, zoned_clock(&args[0]))
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(
        1026,
        "timezone",
        &[INTERVAL, TIMESTAMPTZ],
        TIMESTAMP,
        timestamptz_zone,
    ),
    Function::new(
        1159,
        "timezone",
        &[TEXT, TIMESTAMPTZ],
        TIMESTAMP,
        timestamptz_zone,
    ),
    Function::new(2037, "timezone", &[TEXT, TIMETZ], TIMETZ, timetz_zone).stable(),
    Function::new(2038, "timezone", &[INTERVAL, TIMETZ], TIMETZ, timetz_zone),
    Function::new(
        2069,
        "timezone",
        &[TEXT, TIMESTAMP],
        TIMESTAMPTZ,
        timestamp_zone,
    ),
    Function::new(
        2070,
        "timezone",
        &[INTERVAL, TIMESTAMP],
        TIMESTAMPTZ,
        timestamp_zone,
    ),
    Function::new(
        6334,
        "timezone",
        &[TIMESTAMPTZ],
        TIMESTAMP,
        timestamptz_at_local,
    )
    .stable(),
    Function::new(
        6335,
        "timezone",
        &[TIMESTAMP],
        TIMESTAMPTZ,
        timestamp_at_local,
    )
    .stable(),
    Function::new(6336, "timezone", &[TIMETZ], TIMETZ, timetz_at_local).stable(),
];
