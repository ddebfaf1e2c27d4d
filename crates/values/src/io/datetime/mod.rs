//! Dates and times as text.
//!
//! Reading goes in two steps, as in PostgreSQL: [`token`] cuts the text into fields by their looks,
//! [`mod@decode`] finds out what each means.

pub mod decode;
pub mod interval;
pub mod output;
pub mod token;

use chrono::{NaiveDate, NaiveDateTime};

use crate::eval::EvalContext;
use crate::io::FormatSettings;
use decode::{Decoded, Moment, decode};
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result, TimeTz, oid};

/// What is wrong with date or time text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Format,
    FieldOverflow,
    /// A month or day out of range: another DateStyle might read it.
    MonthDayOverflow,
    IntervalOverflow,
    /// Each field fits, their sum does not.
    IntervalRange,
    ZoneOverflow,
    /// The field of this number names a zone that there is not.
    UnknownZone(usize),
}

impl Fault {
    #[cold]
    pub fn error(self, ty: Oid, text: &str) -> Error {
        let field = || {
            Error::new(
                state::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            )
        };
        match self {
            Fault::Format => {
                let name = match ty {
                    oid::TIMESTAMP => "timestamp".into(),
                    oid::TIME => "time".into(),
                    _ => type_name(ty),
                };
                Error::new(
                    state::INVALID_DATETIME_FORMAT,
                    format!("invalid input syntax for type {name}: \"{text}\""),
                )
            }
            Fault::FieldOverflow => field(),
            Fault::MonthDayOverflow => {
                field().hint("Perhaps you need a different \"DateStyle\" setting.")
            }
            Fault::IntervalOverflow => Error::new(
                state::INTERVAL_FIELD_OVERFLOW,
                format!("interval field value out of range: \"{text}\""),
            ),
            Fault::IntervalRange => {
                Error::new(state::DATETIME_FIELD_OVERFLOW, "interval out of range")
            }
            Fault::UnknownZone(field) => {
                let name = decode::unknown_zone(text, field);
                let message = format!("time zone \"{name}\" not recognized");
                Error::new(state::INVALID_PARAMETER_VALUE, message)
            }
            Fault::ZoneOverflow => Error::new(
                state::INVALID_TIME_ZONE_DISPLACEMENT,
                format!("time zone displacement out of range: \"{text}\""),
            ),
        }
    }
}

/// A moment as definitions keep it: in UTC, so that it is the same whoever reads it.
pub fn kept_moment(micros: i64) -> String {
    let mut text = Vec::new();
    output::timestamptz(micros, &FormatSettings::default(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// From microseconds since 1970 to microseconds since 2000.
pub fn from_unix(micros: i64) -> i64 {
    micros.saturating_sub(EPOCH)
}

/// From microseconds since 2000 to microseconds since 1970.
pub fn to_unix(micros: i64) -> i64 {
    micros.saturating_add(EPOCH)
}

/// 2000 in microseconds since 1970.
const EPOCH: i64 = 946_684_800_000_000;

/// Whether a [kept moment](kept_moment) is before another, in microseconds since 2000. One that was
/// kept as it was written is read where it is a plain date, with or without a time, in UTC.
pub fn is_kept_before(kept: &str, micros: i64) -> bool {
    if kept == "-infinity" || kept.ends_with(" BC") {
        return true;
    }
    let plain = kept.strip_suffix("+00").unwrap_or(kept);
    let date = || {
        let date = NaiveDate::parse_from_str(plain, "%Y-%m-%d").ok()?;
        date.and_hms_opt(0, 0, 0)
    };
    let moment = NaiveDateTime::parse_from_str(plain, "%Y-%m-%d %H:%M:%S%.f").ok();
    let moment = moment.or_else(date);
    moment.is_some_and(|m| m.and_utc().timestamp_micros() - EPOCH < micros)
}

/// `timestamp out of range`, 22008.
#[cold]
pub fn timestamp_out_of_range() -> Error {
    Error::new(state::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

pub fn parse_date(ctx: &EvalContext<'_>, text: &str) -> Result<i32> {
    if let Some(days) = iso_date(text.as_bytes()) {
        return Ok(days);
    }
    let out_of_range = || {
        Error::new(
            state::DATETIME_FIELD_OVERFLOW,
            format!("date out of range: \"{text}\""),
        )
    };
    match decode(ctx, text, oid::DATE).map_err(|f| f.error(oid::DATE, text))? {
        Decoded::Infinity => Ok(DATE_INFINITY),
        Decoded::NegInfinity => Ok(DATE_NEG_INFINITY),
        Decoded::At(Moment {
            days: Some(days), ..
        }) => {
            if !date_in_range(days) {
                return Err(out_of_range());
            }
            Ok(days as i32)
        }
        Decoded::At(_) => Err(Fault::Format.error(oid::DATE, text)),
    }
}

/// `YYYY-MM-DD` and nothing else: what nearly all dates look like.
fn iso_date(text: &[u8]) -> Option<i32> {
    let [a, b, c, d, b'-', m, n, b'-', x, y] = *text else {
        return None;
    };
    let digits = [a, b, c, d, m, n, x, y];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |s: &[u8]| s.iter().fold(0i32, |v, d| v * 10 + i32::from(d - b'0'));
    let (year, month, day) = (
        number(&digits[..4]),
        number(&digits[4..6]),
        number(&digits[6..]),
    );
    let valid =
        year > 0 && (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    valid.then(|| days_from_date(year, month, day) as i32)
}

pub fn parse_timestamp(ctx: &EvalContext<'_>, text: &str) -> Result<i64> {
    match decode(ctx, text, oid::TIMESTAMP).map_err(|f| f.error(oid::TIMESTAMP, text))? {
        Decoded::Infinity => Ok(TIMESTAMP_INFINITY),
        Decoded::NegInfinity => Ok(TIMESTAMP_NEG_INFINITY),
        Decoded::At(moment) => {
            let local = moment
                .local()
                .ok_or_else(|| Fault::Format.error(oid::TIMESTAMP, text))?;
            checked_timestamp(local, text)
        }
    }
}

pub fn parse_timestamptz(ctx: &EvalContext<'_>, text: &str) -> Result<i64> {
    match decode(ctx, text, oid::TIMESTAMPTZ).map_err(|f| f.error(oid::TIMESTAMPTZ, text))? {
        Decoded::Infinity => Ok(TIMESTAMP_INFINITY),
        Decoded::NegInfinity => Ok(TIMESTAMP_NEG_INFINITY),
        Decoded::At(moment) => {
            let local = moment
                .local()
                .ok_or_else(|| Fault::Format.error(oid::TIMESTAMPTZ, text))?;
            let near = i64::try_from(local).unwrap_or(0);
            let east = match &moment.zone {
                Some(zone) => zone.east_of_local(near),
                None => ctx.format.time_zone.east_of_local(near),
            };
            checked_timestamp(
                local - i128::from(east) * i128::from(MICROS_PER_SECOND),
                text,
            )
        }
    }
}

fn checked_timestamp(micros: i128, text: &str) -> Result<i64> {
    i64::try_from(micros)
        .ok()
        .filter(|&t| timestamp_in_range(t))
        .ok_or_else(|| {
            Error::new(
                state::DATETIME_FIELD_OVERFLOW,
                format!("timestamp out of range: \"{text}\""),
            )
        })
}

pub fn parse_time(ctx: &EvalContext<'_>, text: &str) -> Result<i64> {
    match decode(ctx, text, oid::TIME).map_err(|f| f.error(oid::TIME, text))? {
        Decoded::At(Moment {
            time: Some(time), ..
        }) => Ok(time),
        _ => Err(Fault::Format.error(oid::TIME, text)),
    }
}

pub fn parse_timetz(ctx: &EvalContext<'_>, text: &str) -> Result<TimeTz> {
    match decode(ctx, text, oid::TIMETZ).map_err(|f| f.error(oid::TIMETZ, text))? {
        Decoded::At(Moment {
            time: Some(time),
            days,
            zone,
        }) => {
            let zone = zone.as_ref().unwrap_or(&ctx.format.time_zone);
            // A zone with changing rules takes today's unless the text has a date.
            let east = match days {
                Some(days) => zone.east_of_local(days * MICROS_PER_DAY + time),
                None => zone.east_at(ctx.host.transaction_timestamp()),
            };
            Ok(TimeTz {
                micros: time,
                zone: -east,
            })
        }
        _ => Err(Fault::Format.error(oid::TIMETZ, text)),
    }
}
