//! Dates and times as a path's values: made from strings by its methods, compared among each other.
//!
//! What needs the session's time zone fails unless a function whose name ends in `_tz` asked.

use super::exec::{Failure, Walk, Walker, soft};
use super::template;
use super::value::Value;
use super::*;
use crate::func::{EvalContext, EvalFn, cast::conversion};
use crate::io::datetime::output;
use crate::io::typmod::round_micros;
use crate::io::{DateFormat, DateOrder, DateStyle};
use std::cmp::Ordering;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, TimeTz};

#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// A date, time or timestamp, with or without zone.
    pub value: Datum,
    /// Seconds east that a timestamp with zone is shown at.
    pub east: i32,
}

const ISO: DateStyle = DateStyle {
    format: DateFormat::Iso,
    order: DateOrder::Ymd,
};

/// What `datetime()` without a template tries, in turn.
const FORMATS: [&str; 13] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZ",
    "HH24:MI:SSTZ",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZ",
    "yyyy-mm-dd HH24:MI:SSTZ",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZ",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZ",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// The types' short names in messages.
fn short_name(value: &Datum) -> &'static str {
    match value {
        Datum::Date(_) => "date",
        Datum::Time(_) => "time",
        Datum::TimeTz(_) => "timetz",
        Datum::Timestamp(_) => "timestamp",
        _ => "timestamptz",
    }
}

/// 0A000 where the session's zone would be needed and is not to be used.
fn check_zone(use_zone: bool, from: &str, to: &str) -> Walk<()> {
    if use_zone {
        return Ok(());
    }
    let message = format!("cannot convert value from {from} to {to} without time zone usage");
    Err(Failure::Hard(
        Error::new(state::FEATURE_NOT_SUPPORTED, message)
            .hint("Use *_tz() function for time zone support."),
    ))
}

impl Moment {
    /// One that is shown in the session's zone.
    pub fn of(ctx: &EvalContext<'_>, value: Datum) -> Moment {
        let east = match value {
            Datum::TimestampTz(utc) if utc.unsigned_abs() < i64::MAX as u64 => {
                ctx.format.time_zone.east_at(utc)
            }
            _ => 0,
        };
        Moment { value, east }
    }

    pub fn type_name(&self) -> &'static str {
        match self.value {
            Datum::Date(_) => "date",
            Datum::Time(_) => "time without time zone",
            Datum::TimeTz(_) => "time with time zone",
            Datum::Timestamp(_) => "timestamp without time zone",
            _ => "timestamp with time zone",
        }
    }

    /// ISO 8601, with a `T` and minutes in the zone.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        match self.value {
            Datum::Date(days) => output::date(days, ISO, &mut out),
            Datum::Time(micros) => output::time(micros, &mut out),
            Datum::TimeTz(time) => {
                output::time(time.micros, &mut out);
                displacement(-time.zone, &mut out);
            }
            Datum::Timestamp(micros) => timestamp(micros, None, &mut out),
            Datum::TimestampTz(utc) => timestamp(utc, Some(self.east), &mut out),
            _ => {}
        }
        String::from_utf8(out).unwrap_or_default()
    }

    /// None where the types do not compare.
    pub fn compare(
        &self,
        other: &Moment,
        ctx: &EvalContext<'_>,
        use_zone: bool,
    ) -> Walk<Option<Ordering>> {
        if let (Some(a), Some(b)) = (clock(&self.value), clock(&other.value)) {
            return compare_clocks(a, b, ctx, use_zone).map(Some);
        }
        let (a, b) = (&self.value, &other.value);
        let zoned = |value: &Datum| matches!(value, Datum::TimestampTz(_));
        let instant = |value: &Datum, against: &Datum| -> Walk<Option<i128>> {
            let local = match *value {
                Datum::Date(days) => midnight(days),
                Datum::Timestamp(local) => local.into(),
                Datum::TimestampTz(utc) => return Ok(Some(i128::from(utc))),
                _ => return Ok(None),
            };
            if !zoned(against) {
                return Ok(Some(local));
            }
            check_zone(use_zone, short_name(value), "timestamptz")?;
            Ok(Some(match i64::try_from(local) {
                Ok(finite) if finite.unsigned_abs() < i64::MAX as u64 => {
                    ctx.format.time_zone.to_utc(finite).into()
                }
                _ => local,
            }))
        };
        // Times of day compare with nothing else.
        if clock(a).is_some() || clock(b).is_some() {
            return Ok(None);
        }
        let (left, right) = (instant(a, b)?, instant(b, a)?);
        Ok(left.zip(right).map(|(a, b)| a.cmp(&b)))
    }
}

/// A day's midnight in microseconds; the infinities stay what they are among timestamps.
fn midnight(days: i32) -> i128 {
    match days {
        DATE_INFINITY => TIMESTAMP_INFINITY.into(),
        DATE_NEG_INFINITY => TIMESTAMP_NEG_INFINITY.into(),
        days => i128::from(days) * i128::from(MICROS_PER_DAY),
    }
}

/// A time of day, and its zone where it has one.
fn clock(value: &Datum) -> Option<(i64, Option<i32>)> {
    match *value {
        Datum::Time(micros) => Some((micros, None)),
        Datum::TimeTz(TimeTz { micros, zone }) => Some((micros, Some(zone))),
        _ => None,
    }
}

fn compare_clocks(
    a: (i64, Option<i32>),
    b: (i64, Option<i32>),
    ctx: &EvalContext<'_>,
    use_zone: bool,
) -> Walk<Ordering> {
    if a.1.is_none() && b.1.is_none() {
        return Ok(a.0.cmp(&b.0));
    }
    if a.1.is_none() || b.1.is_none() {
        check_zone(use_zone, "time", "timetz")?;
    }
    let now = ctx.host.transaction_timestamp();
    let zone = |zone: Option<i32>| zone.unwrap_or_else(|| -ctx.format.time_zone.east_at(now));
    let utc = |micros: i64, zone: i32| micros + i64::from(zone) * MICROS_PER_SECOND;
    let (left, right) = (zone(a.1), zone(b.1));
    Ok(utc(a.0, left).cmp(&utc(b.0, right)).then(left.cmp(&right)))
}

fn displacement(east: i32, out: &mut Vec<u8>) {
    let at = out.len();
    output::displacement(east, out);
    if !out[at..].contains(&b':') {
        out.extend_from_slice(b":00");
    }
}

fn timestamp(micros: i64, east: Option<i32>, out: &mut Vec<u8>) {
    if micros == TIMESTAMP_INFINITY || micros == TIMESTAMP_NEG_INFINITY {
        return output::timestamp(micros, ISO, out);
    }
    let local = micros.saturating_add(i64::from(east.unwrap_or(0)) * MICROS_PER_SECOND);
    output::timestamp(local, ISO, out);
    let bc = out.ends_with(b" BC");
    if bc {
        out.truncate(out.len() - 3);
    }
    if let Some(blank) = out.iter().position(|&b| b == b' ') {
        out[blank] = b'T';
    }
    if let Some(east) = east {
        displacement(east, out);
    }
    if bc {
        out.extend_from_slice(b" BC");
    }
}

#[cold]
fn unrecognized(method: &Method, text: &str) -> Failure {
    let name = method.name();
    let error = Error::new(
        state::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
        format!("{name} format is not recognized: \"{text}\""),
    );
    Failure::Soft(match method {
        Method::Datetime(_) => {
            error.hint("Use a datetime template argument to specify the input data format.")
        }
        _ => error,
    })
}

impl<'a> Walker<'a> {
    /// A method that reads a string as a date or time.
    pub fn datetime_method(&mut self, method: &Method, value: &Value<'a>) -> Walk<Value<'a>> {
        let Some(text) = value.string() else {
            return Err(soft(
                state::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
                format!(
                    "jsonpath item method .{}() can only be applied to a string",
                    method.name()
                ),
            ));
        };
        let moment = match method {
            Method::Datetime(Some(format)) => template::parse(text, format)?,
            _ => any_format(text).ok_or_else(|| unrecognized(method, text))?,
        };
        let moment = self.converted(method, moment, text)?;
        Ok(Value::Moment(Box::new(moment)))
    }

    /// The moment as the type that a method names.
    fn converted(&self, method: &Method, moment: Moment, text: &str) -> Walk<Moment> {
        use Datum::{Date, Time, TimeTz, Timestamp, TimestampTz};
        let value = &moment.value;
        // The type it becomes, whether the zone is needed, and what converts it.
        type Step = Option<(&'static str, bool, EvalFn)>;
        let step: Step = match (method, value) {
            (Method::Datetime(_), _)
            | (Method::Date, Date(_))
            | (Method::Time(_), Time(_))
            | (Method::TimeTz(_), TimeTz(_))
            | (Method::Timestamp(_), Timestamp(_))
            | (Method::TimestampTz(_), TimestampTz(_)) => None,
            (Method::Date, Timestamp(_)) => Some(("date", false, conversion::timestamp_date)),
            (Method::Date, TimestampTz(_)) => Some(("date", true, conversion::timestamptz_date)),
            (Method::Time(_), TimeTz(_)) => Some(("time", true, conversion::timetz_time)),
            (Method::Time(_), Timestamp(_)) => Some(("time", false, conversion::timestamp_time)),
            (Method::Time(_), TimestampTz(_)) => Some(("time", true, conversion::timestamptz_time)),
            (Method::TimeTz(_), Time(_)) => Some(("timetz", true, conversion::time_timetz)),
            (Method::TimeTz(_), TimestampTz(_)) => {
                Some(("timetz", false, conversion::timestamptz_timetz))
            }
            (Method::Timestamp(_), Date(_)) => {
                Some(("timestamp", false, conversion::date_timestamp))
            }
            (Method::Timestamp(_), TimestampTz(_)) => {
                Some(("timestamp", true, conversion::timestamptz_timestamp))
            }
            (Method::TimestampTz(_), Date(_)) => {
                Some(("timestamptz", true, conversion::date_timestamptz))
            }
            (Method::TimestampTz(_), Timestamp(_)) => {
                Some(("timestamptz", true, conversion::timestamp_timestamptz))
            }
            _ => return Err(unrecognized(method, text)),
        };
        let mut moment = match step {
            None => moment,
            Some((to, needs_zone, convert)) => {
                check_zone(self.use_zone || !needs_zone, short_name(value), to)?;
                let converted = convert(self.ctx, std::slice::from_ref(value));
                let converted = converted.map_err(|stop| Failure::Hard(stop.into_error()))?;
                Moment::of(self.ctx, converted)
            }
        };
        if let Some(digits) = precision(self.ctx, method)? {
            match &mut moment.value {
                Time(micros)
                | TimeTz(throng_types::TimeTz { micros, .. })
                | Timestamp(micros)
                | TimestampTz(micros) => *micros = round_micros(*micros, digits),
                _ => {}
            }
        }
        Ok(moment)
    }
}

fn any_format(text: &str) -> Option<Moment> {
    FORMATS
        .iter()
        .find_map(|format| template::parse(text, format).ok())
}

/// Digits of a second, more than six being taken as six, with a warning.
fn precision(ctx: &EvalContext<'_>, method: &Method) -> Walk<Option<i32>> {
    let (Method::Time(Some(digits))
    | Method::TimeTz(Some(digits))
    | Method::Timestamp(Some(digits))
    | Method::TimestampTz(Some(digits))) = method
    else {
        return Ok(None);
    };
    let digits = digits.to_i64().and_then(|d| i32::try_from(d).ok());
    match digits {
        Some(digits) => {
            if digits > 6 {
                ctx.host.warn(reduced(method, digits));
            }
            Ok(Some(digits.clamp(0, 6)))
        }
        None => Err(soft(
            state::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
            format!(
                "time precision of jsonpath item method .{}() is out of range for type integer",
                method.name()
            ),
        )),
    }
}

/// What is said of a precision that no time has.
fn reduced(method: &Method, digits: i32) -> Error {
    let (name, zone) = match method {
        Method::Time(_) => ("TIME", ""),
        Method::TimeTz(_) => ("TIME", " WITH TIME ZONE"),
        Method::Timestamp(_) => ("TIMESTAMP", ""),
        _ => ("TIMESTAMP", " WITH TIME ZONE"),
    };
    let message = format!("{name}({digits}){zone} precision reduced to maximum allowed, 6");
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}
