//! Arithmetic among dates, times, timestamps and intervals.
//!
//! An interval is added months first (the day clipped to the month's last), then days, then
//! microseconds. For a `timestamptz` the first two happen in local time, the last in UTC: a day may
//! have 23 hours, an hour is always 3600 seconds. Infinite values absorb finite ones; what would be
//! infinity minus infinity is out of range.

pub(super) mod extract;
pub mod make;
pub(super) mod timezone;

use super::cast::conversion::date_midnight;
use super::number::{division_by_zero, float};
use super::{EvalContext, EvalResult, Operator};
use crate::io::Zone;
use crate::io::datetime::timestamp_out_of_range;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, Interval, Oid, Result, TimeTz, oid::*};

const DAYS_PER_MONTH: f64 = 30.0;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// A timestamp argument of either kind.
pub fn moment(value: &Datum) -> i64 {
    match *value {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => t,
        _ => unreachable!("not a timestamp: {value:?}"),
    }
}
pub fn days(value: &Datum) -> i32 {
    match *value {
        Datum::Date(d) => d,
        _ => unreachable!("not a date: {value:?}"),
    }
}
pub fn interval(value: &Datum) -> Interval {
    match *value {
        Datum::Interval(i) => i,
        _ => unreachable!("not an interval: {value:?}"),
    }
}
/// Microseconds of a `time`.
pub fn clock(value: &Datum) -> i64 {
    match *value {
        Datum::Time(t) => t,
        _ => unreachable!("not a time: {value:?}"),
    }
}
pub fn zoned_clock(value: &Datum) -> TimeTz {
    match *value {
        Datum::TimeTz(t) => t,
        _ => unreachable!("not a time with zone: {value:?}"),
    }
}

pub fn is_infinite(t: i64) -> bool {
    t == TIMESTAMP_INFINITY || t == TIMESTAMP_NEG_INFINITY
}

#[cold]
pub fn overflow(message: &str) -> Error {
    Error::new(state::DATETIME_FIELD_OVERFLOW, message)
}
#[cold]
pub fn interval_out_of_range() -> Error {
    overflow("interval out of range")
}
#[cold]
fn date_out_of_range() -> Error {
    overflow("date out of range")
}

/// Microseconds that may be a timestamp, or none.
pub fn checked_timestamp(micros: Option<i64>) -> Result<i64> {
    micros
        .filter(|&t| timestamp_in_range(t))
        .ok_or_else(timestamp_out_of_range)
}

/// Adds the months and days of an interval to a finite local time.
fn add_calendar(local: i64, span: Interval) -> Result<i64> {
    let mut day = local.div_euclid(MICROS_PER_DAY);
    let time = local.rem_euclid(MICROS_PER_DAY);
    if span.months != 0 {
        let (year, month, mday) = date_from_days(day);
        let months = i64::from(year) * 12 + i64::from(month - 1) + i64::from(span.months);
        let year = i32::try_from(months.div_euclid(12)).map_err(|_| timestamp_out_of_range())?;
        let month = months.rem_euclid(12) as i32 + 1;
        day = days_from_date(year, month, mday.min(days_in_month(year, month)));
    }
    day += i64::from(span.days);
    checked_timestamp(
        day.checked_mul(MICROS_PER_DAY)
            .and_then(|t| t.checked_add(time)),
    )
}

/// The result where either side is infinite.
fn add_infinite(t: i64, span: Interval) -> Option<Result<i64>> {
    if !span.is_finite() {
        let (same, other) = match span == Interval::INFINITY {
            true => (TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY),
            false => (TIMESTAMP_NEG_INFINITY, TIMESTAMP_INFINITY),
        };
        return Some(if t == other {
            Err(timestamp_out_of_range())
        } else {
            Ok(same)
        });
    }
    is_infinite(t).then_some(Ok(t))
}

/// A timestamp plus an interval.
pub fn timestamp_plus(t: i64, span: Interval) -> Result<i64> {
    if let Some(result) = add_infinite(t, span) {
        return result;
    }
    let t = if span.months != 0 || span.days != 0 {
        add_calendar(t, span)?
    } else {
        t
    };
    checked_timestamp(t.checked_add(span.micros))
}

/// A moment plus an interval, days and months counted in the zone.
pub fn timestamptz_plus(zone: &Zone, t: i64, span: Interval) -> Result<i64> {
    if let Some(result) = add_infinite(t, span) {
        return result;
    }
    let mut t = t;
    for part in [
        Interval::new(span.months, 0, 0),
        Interval::new(0, span.days, 0),
    ] {
        if part != Interval::default() {
            t = checked_timestamp(Some(zone.to_utc(add_calendar(zone.to_local(t), part)?)))?;
        }
    }
    checked_timestamp(t.checked_add(span.micros))
}

pub fn negate(span: Interval) -> Result<Interval> {
    if span == Interval::INFINITY {
        return Ok(Interval::NEG_INFINITY);
    }
    if span == Interval::NEG_INFINITY {
        return Ok(Interval::INFINITY);
    }
    let months = span.months.checked_neg();
    finite(months, span.days.checked_neg(), span.micros.checked_neg())
}

/// An interval of parts that did not overflow and are not the mark of infinity.
pub fn finite(months: Option<i32>, days: Option<i32>, micros: Option<i64>) -> Result<Interval> {
    match (months, days, micros) {
        (Some(months), Some(days), Some(micros)) => {
            let span = Interval {
                months,
                days,
                micros,
            };
            if span.is_finite() {
                Ok(span)
            } else {
                Err(interval_out_of_range())
            }
        }
        _ => Err(interval_out_of_range()),
    }
}

pub fn add(a: Interval, b: Interval) -> Result<Interval> {
    if !a.is_finite() || !b.is_finite() {
        if !a.is_finite() && !b.is_finite() && a != b {
            return Err(interval_out_of_range());
        }
        return Ok(if a.is_finite() { b } else { a });
    }
    finite(
        a.months.checked_add(b.months),
        a.days.checked_add(b.days),
        a.micros.checked_add(b.micros),
    )
}
pub fn subtract(a: Interval, b: Interval) -> Result<Interval> {
    if a.is_finite() && b.is_finite() {
        return finite(
            a.months.checked_sub(b.months),
            a.days.checked_sub(b.days),
            a.micros.checked_sub(b.micros),
        );
    }
    add(
        a,
        if b == Interval::INFINITY {
            Interval::NEG_INFINITY
        } else if b.is_finite() {
            b
        } else {
            Interval::INFINITY
        },
    )
}

/// What is left of a second below a microsecond is noise.
fn round_second(seconds: f64) -> f64 {
    (seconds * 1e6).round_ties_even() / 1e6
}
fn to_i32(value: f64) -> Option<i32> {
    (value > -2_147_483_649.0 && value < 2_147_483_648.0).then_some(value as i32)
}
fn to_i64(value: f64) -> Option<i64> {
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
        .contains(&value)
        .then_some(value as i64)
}

/// Each part scaled; the fraction of a month goes to days, of a day to seconds. Months have 30 days
/// here.
fn scale(span: Interval, by: impl Fn(f64) -> f64) -> Result<Interval> {
    let (month_part, day_part) = (by(f64::from(span.months)), by(f64::from(span.days)));
    let months = to_i32(month_part).ok_or_else(interval_out_of_range)?;
    let mut days = to_i32(day_part).ok_or_else(interval_out_of_range)?;
    let month_days = round_second((month_part - f64::from(months)) * DAYS_PER_MONTH);
    let mut seconds = round_second(
        (day_part - f64::from(days) + month_days - month_days.trunc()) * SECONDS_PER_DAY,
    );
    if seconds.abs() >= SECONDS_PER_DAY {
        let carried = (seconds / SECONDS_PER_DAY) as i32;
        days = days
            .checked_add(carried)
            .ok_or_else(interval_out_of_range)?;
        seconds -= f64::from(carried) * SECONDS_PER_DAY;
    }
    let days = days.checked_add(month_days as i32);
    let micros = (by(span.micros as f64) + seconds * 1e6).round_ties_even();
    finite(Some(months), days, to_i64(micros))
}

fn signed_infinity(positive: bool) -> Interval {
    if positive {
        Interval::INFINITY
    } else {
        Interval::NEG_INFINITY
    }
}

pub fn multiply(span: Interval, factor: f64) -> Result<Interval> {
    if factor.is_nan() {
        return Err(interval_out_of_range());
    }
    if !span.is_finite() {
        if factor == 0.0 {
            return Err(interval_out_of_range());
        }
        return Ok(signed_infinity(
            (span == Interval::INFINITY) == (factor > 0.0),
        ));
    }
    if factor.is_infinite() {
        let sign = span.comparable().signum();
        if sign == 0 {
            return Err(interval_out_of_range());
        }
        return Ok(signed_infinity((sign > 0) == (factor > 0.0)));
    }
    scale(span, |part| part * factor)
}
pub fn divide(span: Interval, divisor: f64) -> Result<Interval> {
    if divisor == 0.0 {
        return Err(division_by_zero());
    }
    if divisor.is_nan() {
        return Err(interval_out_of_range());
    }
    if !span.is_finite() {
        if divisor.is_infinite() {
            return Err(interval_out_of_range());
        }
        return Ok(signed_infinity(
            (span == Interval::INFINITY) == (divisor > 0.0),
        ));
    }
    scale(span, |part| part / divisor)
}

/// The time between two moments: days and hours.
pub fn between(a: i64, b: i64) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        if a == b {
            return Err(interval_out_of_range());
        }
        return Ok(signed_infinity(
            a == TIMESTAMP_INFINITY || b == TIMESTAMP_NEG_INFINITY,
        ));
    }
    let micros = a.checked_sub(b).ok_or_else(interval_out_of_range)?;
    let days = (micros / MICROS_PER_DAY) as i32;
    Ok(Interval::new(0, days, micros % MICROS_PER_DAY))
}

fn interval_mul(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(multiply(interval(&args[0]), float(&args[1]))?.into())
}
fn mul_d_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(multiply(interval(&args[1]), float(&args[0]))?.into())
}
fn interval_div(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(divide(interval(&args[0]), float(&args[1]))?.into())
}
fn interval_pl(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(add(interval(&args[0]), interval(&args[1]))?.into())
}
fn interval_mi(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(subtract(interval(&args[0]), interval(&args[1]))?.into())
}
fn interval_um(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(negate(interval(&args[0]))?.into())
}

fn date_pl_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let t = date_midnight(days(&args[0]))?;
    Ok(Datum::Timestamp(timestamp_plus(t, interval(&args[1]))?))
}
fn date_mi_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let t = date_midnight(days(&args[0]))?;
    Ok(Datum::Timestamp(timestamp_plus(
        t,
        negate(interval(&args[1]))?,
    )?))
}
fn shift_date(date: i32, by: i64) -> EvalResult {
    if date == DATE_INFINITY || date == DATE_NEG_INFINITY {
        return Ok(Datum::Date(date));
    }
    let shifted = i64::from(date) + by;
    if !date_in_range(shifted) {
        return Err(date_out_of_range().into());
    }
    Ok(Datum::Date(shifted as i32))
}
fn date_pli(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    shift_date(days(&args[0]), super::number::int(&args[1]))
}
fn date_mii(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    shift_date(days(&args[0]), -super::number::int(&args[1]))
}
fn date_mi(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = (days(&args[0]), days(&args[1]));
    if [a, b]
        .iter()
        .any(|&d| d == DATE_INFINITY || d == DATE_NEG_INFINITY)
    {
        return Err(overflow("cannot subtract infinite dates").into());
    }
    Ok(Datum::Int4(a - b))
}
pub(super) fn datetime_timestamp(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let midnight = date_midnight(days(&args[0]))?;
    if is_infinite(midnight) {
        return Ok(Datum::Timestamp(midnight));
    }
    Ok(Datum::Timestamp(checked_timestamp(
        midnight.checked_add(clock(&args[1])),
    )?))
}
pub(super) fn datetimetz_timestamptz(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let midnight = date_midnight(days(&args[0]))?;
    if is_infinite(midnight) {
        return Ok(Datum::TimestampTz(midnight));
    }
    let TimeTz { micros, zone } = zoned_clock(&args[1]);
    let utc = midnight.checked_add(micros + i64::from(zone) * MICROS_PER_SECOND);
    let in_range = utc.filter(|&t| timestamp_in_range(t));
    Ok(Datum::TimestampTz(in_range.ok_or_else(|| {
        overflow("date out of range for timestamp")
    })?))
}

fn timestamp_pl_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Timestamp(timestamp_plus(
        moment(&args[0]),
        interval(&args[1]),
    )?))
}
fn timestamp_mi_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Timestamp(timestamp_plus(
        moment(&args[0]),
        negate(interval(&args[1]))?,
    )?))
}
pub(super) fn timestamptz_pl_interval(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let t = timestamptz_plus(&ctx.format.time_zone, moment(&args[0]), interval(&args[1]))?;
    Ok(Datum::TimestampTz(t))
}
pub(super) fn timestamptz_mi_interval(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let span = negate(interval(&args[1]))?;
    Ok(Datum::TimestampTz(timestamptz_plus(
        &ctx.format.time_zone,
        moment(&args[0]),
        span,
    )?))
}
fn timestamp_mi(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(between(moment(&args[0]), moment(&args[1]))?.into())
}

/// A time of day moved on: it wraps at midnight, and months and days do not count.
pub(super) fn shift_clock(time: i64, span: Interval, add: bool) -> Result<i64> {
    if !span.is_finite() {
        return Err(overflow(match add {
            true => "cannot add infinite interval to time",
            false => "cannot subtract infinite interval from time",
        }));
    }
    let by = span.micros % MICROS_PER_DAY;
    Ok((if add { time + by } else { time - by }).rem_euclid(MICROS_PER_DAY))
}
fn time_pl_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Time(shift_clock(
        clock(&args[0]),
        interval(&args[1]),
        true,
    )?))
}
fn time_mi_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Time(shift_clock(
        clock(&args[0]),
        interval(&args[1]),
        false,
    )?))
}
fn timetz_pl_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let time = zoned_clock(&args[0]);
    let micros = shift_clock(time.micros, interval(&args[1]), true)?;
    Ok(Datum::TimeTz(TimeTz { micros, ..time }))
}
fn timetz_mi_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let time = zoned_clock(&args[0]);
    let micros = shift_clock(time.micros, interval(&args[1]), false)?;
    Ok(Datum::TimeTz(TimeTz { micros, ..time }))
}
fn time_mi_time(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Interval::new(0, 0, clock(&args[0]) - clock(&args[1])).into())
}

/// The same function with its operands exchanged.
macro_rules! swapped {
    ($eval:ident) => {{
        fn swapped(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            $eval(ctx, &[args[1].clone(), args[0].clone()])
        }
        swapped
    }};
}

pub static OPERATORS: &[Operator] = &[
    Operator::new(
        1583,
        "*",
        INTERVAL,
        FLOAT8,
        INTERVAL,
        (1618, "interval_mul"),
        interval_mul,
    )
    .related(1584, 0),
    Operator::new(
        1584,
        "*",
        FLOAT8,
        INTERVAL,
        INTERVAL,
        (1624, "mul_d_interval"),
        mul_d_interval,
    )
    .related(1583, 0),
    Operator::new(
        1076,
        "+",
        DATE,
        INTERVAL,
        TIMESTAMP,
        (2071, "date_pl_interval"),
        date_pl_interval,
    )
    .related(2551, 0),
    Operator::new(1100, "+", DATE, INT4, DATE, (1141, "date_pli"), date_pli).related(2555, 0),
    Operator::new(
        1327,
        "+",
        TIMESTAMPTZ,
        INTERVAL,
        TIMESTAMPTZ,
        (1189, "timestamptz_pl_interval"),
        timestamptz_pl_interval,
    )
    .related(2554, 0)
    .stable(),
    Operator::new(
        1337,
        "+",
        INTERVAL,
        INTERVAL,
        INTERVAL,
        (1169, "interval_pl"),
        interval_pl,
    )
    .related(1337, 0),
    Operator::new(
        1360,
        "+",
        DATE,
        TIME,
        TIMESTAMP,
        (1272, "datetime_pl"),
        datetime_timestamp,
    )
    .related(1363, 0),
    Operator::new(
        1361,
        "+",
        DATE,
        TIMETZ,
        TIMESTAMPTZ,
        (1297, "datetimetz_pl"),
        datetimetz_timestamptz,
    )
    .related(1366, 0),
    Operator::new(
        1363,
        "+",
        TIME,
        DATE,
        TIMESTAMP,
        (1296, "timedate_pl"),
        swapped!(datetime_timestamp),
    )
    .related(1360, 0),
    Operator::new(
        1366,
        "+",
        TIMETZ,
        DATE,
        TIMESTAMPTZ,
        (1298, "timetzdate_pl"),
        swapped!(datetimetz_timestamptz),
    )
    .related(1361, 0),
    Operator::new(
        1800,
        "+",
        TIME,
        INTERVAL,
        TIME,
        (1747, "time_pl_interval"),
        time_pl_interval,
    )
    .related(1849, 0),
    Operator::new(
        1802,
        "+",
        TIMETZ,
        INTERVAL,
        TIMETZ,
        (1749, "timetz_pl_interval"),
        timetz_pl_interval,
    )
    .related(2552, 0),
    Operator::new(
        1849,
        "+",
        INTERVAL,
        TIME,
        TIME,
        (1848, "interval_pl_time"),
        swapped!(time_pl_interval),
    )
    .related(1800, 0),
    Operator::new(
        2066,
        "+",
        TIMESTAMP,
        INTERVAL,
        TIMESTAMP,
        (2032, "timestamp_pl_interval"),
        timestamp_pl_interval,
    )
    .related(2553, 0),
    Operator::new(
        2551,
        "+",
        INTERVAL,
        DATE,
        TIMESTAMP,
        (2546, "interval_pl_date"),
        swapped!(date_pl_interval),
    )
    .related(1076, 0),
    Operator::new(
        2552,
        "+",
        INTERVAL,
        TIMETZ,
        TIMETZ,
        (2547, "interval_pl_timetz"),
        swapped!(timetz_pl_interval),
    )
    .related(1802, 0),
    Operator::new(
        2553,
        "+",
        INTERVAL,
        TIMESTAMP,
        TIMESTAMP,
        (2548, "interval_pl_timestamp"),
        swapped!(timestamp_pl_interval),
    )
    .related(2066, 0),
    Operator::new(
        2554,
        "+",
        INTERVAL,
        TIMESTAMPTZ,
        TIMESTAMPTZ,
        (2549, "interval_pl_timestamptz"),
        swapped!(timestamptz_pl_interval),
    )
    .related(1327, 0)
    .stable(),
    Operator::new(
        2555,
        "+",
        INT4,
        DATE,
        DATE,
        (2550, "integer_pl_date"),
        swapped!(date_pli),
    )
    .related(1100, 0),
    Operator::new(
        1077,
        "-",
        DATE,
        INTERVAL,
        TIMESTAMP,
        (2072, "date_mi_interval"),
        date_mi_interval,
    ),
    Operator::new(1099, "-", DATE, DATE, INT4, (1140, "date_mi"), date_mi),
    Operator::new(1101, "-", DATE, INT4, DATE, (1142, "date_mii"), date_mii),
    Operator::new(
        1328,
        "-",
        TIMESTAMPTZ,
        TIMESTAMPTZ,
        INTERVAL,
        (1188, "timestamptz_mi"),
        timestamp_mi,
    ),
    Operator::new(
        1329,
        "-",
        TIMESTAMPTZ,
        INTERVAL,
        TIMESTAMPTZ,
        (1190, "timestamptz_mi_interval"),
        timestamptz_mi_interval,
    )
    .stable(),
    Operator::new(
        1336,
        "-",
        Oid::NONE,
        INTERVAL,
        INTERVAL,
        (1168, "interval_um"),
        interval_um,
    ),
    Operator::new(
        1338,
        "-",
        INTERVAL,
        INTERVAL,
        INTERVAL,
        (1170, "interval_mi"),
        interval_mi,
    ),
    Operator::new(
        1399,
        "-",
        TIME,
        TIME,
        INTERVAL,
        (1690, "time_mi_time"),
        time_mi_time,
    ),
    Operator::new(
        1801,
        "-",
        TIME,
        INTERVAL,
        TIME,
        (1748, "time_mi_interval"),
        time_mi_interval,
    ),
    Operator::new(
        1803,
        "-",
        TIMETZ,
        INTERVAL,
        TIMETZ,
        (1750, "timetz_mi_interval"),
        timetz_mi_interval,
    ),
    Operator::new(
        2067,
        "-",
        TIMESTAMP,
        TIMESTAMP,
        INTERVAL,
        (2031, "timestamp_mi"),
        timestamp_mi,
    ),
    Operator::new(
        2068,
        "-",
        TIMESTAMP,
        INTERVAL,
        TIMESTAMP,
        (2033, "timestamp_mi_interval"),
        timestamp_mi_interval,
    ),
    Operator::new(
        1585,
        "/",
        INTERVAL,
        FLOAT8,
        INTERVAL,
        (1326, "interval_div"),
        interval_div,
    ),
];
