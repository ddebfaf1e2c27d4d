//! `EXTRACT`, `date_part` and `date_trunc`: the fields of dates, times and intervals.
//!
//! `extract` gives exact numerics, with PostgreSQL's scales; `date_part` the same as floats. A
//! field that a value of this type has, but that says nothing about an infinite one, is NULL there;
//! one that only grows is infinite.

use crate::func::cast::conversion::date_midnight;
use crate::func::datetime::timezone::zone_named;
use crate::func::datetime::{checked_timestamp, days, finite, interval, is_infinite, moment};
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult, Function};
use crate::io::Zone;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Datum, Error, Interval, Numeric, Oid, Result, oid::*};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Julian,
    Epoch,
    Zone,
    ZoneHour,
    ZoneMinute,
}

/// A unit by any of its names.
fn unit(name: &str) -> Option<Unit> {
    use Unit::*;
    let lower = name.to_ascii_lowercase();
    Some(match lower.as_str() {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" => {
            Microsecond
        }
        "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" | "ms" => {
            Millisecond
        }
        "s" | "sec" | "secs" | "second" | "seconds" => Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Hour,
        "d" | "day" | "days" => Day,
        "w" | "week" | "weeks" => Week,
        "mon" | "mons" | "month" | "months" => Month,
        "qtr" | "quarter" => Quarter,
        "y" | "yr" | "yrs" | "year" | "years" => Year,
        "dec" | "decs" | "decade" | "decades" => Decade,
        "c" | "cent" | "century" | "centuries" => Century,
        "mil" | "mils" | "millennium" | "millennia" => Millennium,
        "isoyear" => IsoYear,
        "dow" => DayOfWeek,
        "isodow" => IsoDayOfWeek,
        "doy" => DayOfYear,
        "j" | "jd" | "julian" => Julian,
        "epoch" => Epoch,
        "timezone" => Zone,
        "timezone_hour" | "timezone_h" => ZoneHour,
        "timezone_minute" | "timezone_m" => ZoneMinute,
        _ => return None,
    })
}
#[cold]
fn not_recognized(name: &str, ty: Oid) -> Error {
    Error::new(
        state::INVALID_PARAMETER_VALUE,
        format!("unit \"{name}\" not recognized for type {}", type_name(ty)),
    )
}
#[cold]
fn not_supported(name: &str, ty: Oid) -> Error {
    Error::new(
        state::FEATURE_NOT_SUPPORTED,
        format!(
            "unit \"{}\" not supported for type {}",
            name.to_ascii_lowercase(),
            type_name(ty)
        ),
    )
}

fn named_unit(name: &str, ty: Oid) -> Result<Unit> {
    unit(name).ok_or_else(|| not_recognized(&name.to_ascii_lowercase(), ty))
}

/// A number with so many digits after the point, the last ones included.
fn scaled(value: i64, scale: u16) -> Numeric {
    Numeric::new(value, scale)
}
fn whole(value: i64) -> Option<Numeric> {
    Some(Numeric::new(value, 0))
}

/// Year, month and day, and what follows from them.
#[derive(Clone, Copy)]
struct Calendar {
    days: i64,
    year: i32,
    month: i32,
    day: i32,
}

impl Calendar {
    fn new(days: i64) -> Calendar {
        let (year, month, day) = date_from_days(days);
        Calendar {
            days,
            year,
            month,
            day,
        }
    }
    /// From Monday, 0, to Sunday, 6. 2000-01-01 was a Saturday.
    fn weekday(self) -> i64 {
        (self.days + 5).rem_euclid(7)
    }
    /// The first day of the ISO year that a Thursday of the same week is in.
    fn iso_year(self) -> i32 {
        date_from_days(self.days - self.weekday() + 3).0
    }
    fn iso_week(self) -> i64 {
        let thursday = self.days - self.weekday() + 3;
        (thursday - days_from_date(self.iso_year(), 1, 1)) / 7 + 1
    }
    /// A field that a date has; None for those of other kinds.
    fn field(self, unit: Unit) -> Option<i64> {
        let year = i64::from(self.year);
        // Years are counted without 0.
        let shown = |year: i64| if year > 0 { year } else { year - 1 };
        Some(match unit {
            Unit::Day => self.day.into(),
            Unit::Week => self.iso_week(),
            Unit::Month => self.month.into(),
            Unit::Quarter => i64::from((self.month - 1) / 3 + 1),
            Unit::Year => shown(year),
            Unit::IsoYear => shown(self.iso_year().into()),
            Unit::Decade => year.div_euclid(10),
            Unit::Century if year > 0 => (year + 99) / 100,
            Unit::Century => -((99 - (year - 1)) / 100),
            Unit::Millennium if year > 0 => (year + 999) / 1000,
            Unit::Millennium => -((999 - (year - 1)) / 1000),
            Unit::DayOfWeek => (self.weekday() + 1) % 7,
            Unit::IsoDayOfWeek => self.weekday() + 1,
            Unit::DayOfYear => self.days - days_from_date(self.year, 1, 1) + 1,
            Unit::Julian => self.days + i64::from(EPOCH_JULIAN),
            _ => return None,
        })
    }
    /// The first day of the unit this day is in.
    fn truncated(self, unit: Unit) -> i64 {
        let first_of = |year: i32, month: i32| days_from_date(year, month, 1);
        // Centuries and millennia begin with their year 1; before Christ they end with it.
        let span = |len: i32| match self.year > 0 {
            true => (self.year - 1).div_euclid(len) * len + 1,
            false => -((-self.year).div_euclid(len) * len + len - 1),
        };
        match unit {
            Unit::Week => self.days - self.weekday(),
            Unit::Month => first_of(self.year, self.month),
            Unit::Quarter => first_of(self.year, (self.month - 1) / 3 * 3 + 1),
            Unit::Year => first_of(self.year, 1),
            Unit::Decade => first_of(self.year.div_euclid(10) * 10, 1),
            Unit::Century => first_of(span(100), 1),
            Unit::Millennium => first_of(span(1000), 1),
            _ => self.days,
        }
    }
}

/// A field of the time of day.
fn clock_field(unit: Unit, micros: i64) -> Option<Numeric> {
    let in_minute = micros % MICROS_PER_MINUTE;
    match unit {
        Unit::Microsecond => whole(in_minute),
        Unit::Millisecond => Some(scaled(in_minute, 3)),
        Unit::Second => Some(scaled(in_minute, 6)),
        Unit::Minute => whole(micros / MICROS_PER_MINUTE % 60),
        Unit::Hour => whole(micros / MICROS_PER_HOUR),
        _ => None,
    }
}
fn zone_field(unit: Unit, east: i32) -> Option<Numeric> {
    let east = i64::from(east);
    match unit {
        Unit::Zone => whole(east),
        Unit::ZoneHour => whole(east / 3600),
        Unit::ZoneMinute => whole(east / 60 % 60),
        _ => None,
    }
}

/// What an infinite value answers: an infinity for what only grows, NULL for the other fields.
fn of_infinity(grows: bool, positive: bool) -> Option<Numeric> {
    grows.then_some(if positive {
        Numeric::INFINITY
    } else {
        Numeric::NEG_INFINITY
    })
}
fn grows(unit: Unit) -> bool {
    use Unit::*;
    matches!(
        unit,
        Year | Decade | Century | Millennium | IsoYear | Julian | Epoch
    )
}

/// A field of a timestamp: `None` inside for NULL. `east` is given for one with a zone, whose local
/// time is `local`.
fn timestamp_field(name: &str, t: i64, zone: Option<&Zone>, ty: Oid) -> Result<Option<Numeric>> {
    let unit = named_unit(name, ty)?;
    let zoned = matches!(unit, Unit::Zone | Unit::ZoneHour | Unit::ZoneMinute);
    if zoned && zone.is_none() {
        return Err(not_supported(name, ty));
    }
    if is_infinite(t) {
        return Ok(of_infinity(grows(unit), t == TIMESTAMP_INFINITY));
    }
    let east = zone.map_or(0, |z| z.east_at(t));
    if zoned {
        return Ok(zone_field(unit, east));
    }
    let local = t + i64::from(east) * MICROS_PER_SECOND;
    let (day, time) = (
        local.div_euclid(MICROS_PER_DAY),
        local.rem_euclid(MICROS_PER_DAY),
    );
    Ok(match unit {
        Unit::Epoch => Some(Numeric::from_i128(
            i128::from(t) + i128::from(UNIX_EPOCH_MICROS),
            6,
        )),
        Unit::Julian => {
            let day = Numeric::from(day + i64::from(EPOCH_JULIAN));
            Some(day.add(&Numeric::from(time).div(&Numeric::from(MICROS_PER_DAY))?)?)
        }
        _ => match Calendar::new(day).field(unit) {
            Some(field) => whole(field),
            None => clock_field(unit, time),
        },
    })
}
fn date_field(name: &str, date: i32) -> Result<Option<Numeric>> {
    let unit = named_unit(name, DATE)?;
    if date == DATE_INFINITY || date == DATE_NEG_INFINITY {
        if unit < Unit::Day || unit >= Unit::Zone {
            return Err(not_supported(name, DATE));
        }
        return Ok(of_infinity(grows(unit), date == DATE_INFINITY));
    }
    match (unit, Calendar::new(date.into()).field(unit)) {
        (_, Some(field)) => Ok(whole(field)),
        (Unit::Epoch, _) => Ok(whole(
            (i64::from(date) + i64::from(UNIX_EPOCH_DAYS)) * 86_400,
        )),
        _ => Err(not_supported(name, DATE)),
    }
}
fn time_field(name: &str, micros: i64, east: Option<i32>, ty: Oid) -> Result<Option<Numeric>> {
    let unit = named_unit(name, ty)?;
    let zone = east.and_then(|east| zone_field(unit, east));
    let utc = micros - i64::from(east.unwrap_or(0)) * MICROS_PER_SECOND;
    let epoch = (unit == Unit::Epoch).then(|| scaled(utc, 6));
    match clock_field(unit, micros).or(zone).or(epoch) {
        Some(field) => Ok(Some(field)),
        None => Err(not_supported(name, ty)),
    }
}
fn interval_field(name: &str, span: Interval) -> Result<Option<Numeric>> {
    use Unit::*;
    let unit = named_unit(name, INTERVAL)?;
    if matches!(
        unit,
        IsoYear | DayOfWeek | IsoDayOfWeek | DayOfYear | Julian
    ) || unit >= Zone
    {
        return Err(not_supported(name, INTERVAL));
    }
    if !span.is_finite() {
        let bounded = matches!(
            unit,
            Microsecond | Millisecond | Second | Minute | Month | Quarter | Week
        );
        return Ok(of_infinity(!bounded, span == Interval::INFINITY));
    }
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    Ok(match unit {
        Day => whole(span.days.into()),
        Week => whole(i64::from(span.days / 7)),
        Month => whole(months),
        // A quarter of years gone by counts from its end.
        Quarter if span.months < 0 => whole(-((-months) / 3 + 1)),
        Quarter => whole(months / 3 + 1),
        Year => whole(years),
        Decade => whole(years / 10),
        Century => whole(years / 100),
        Millennium => whole(years / 1000),
        Epoch => {
            // A year has 365.25 days here.
            let quarter_days = (years * 1461) + (months * 30 + i64::from(span.days)) * 4;
            let seconds = i128::from(quarter_days) * (86_400 / 4);
            Some(Numeric::from_i128(
                seconds * 1_000_000 + i128::from(span.micros),
                6,
            ))
        }
        _ => clock_field(unit, span.micros),
    })
}

fn field_of(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<Option<Numeric>> {
    let name = text(&args[0]);
    match &args[1] {
        Datum::Date(date) => date_field(name, *date),
        Datum::Timestamp(t) => timestamp_field(name, *t, None, TIMESTAMP),
        Datum::TimestampTz(t) => {
            timestamp_field(name, *t, Some(&ctx.format.time_zone), TIMESTAMPTZ)
        }
        Datum::Time(t) => time_field(name, *t, None, TIME),
        Datum::TimeTz(t) => time_field(name, t.micros, Some(-t.zone), TIMETZ),
        value => interval_field(name, interval(value)),
    }
}
fn extract(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(field_of(ctx, args)?.into())
}
fn date_part(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(field_of(ctx, args)?
        .map(|n| Datum::Float8(n.to_f64()))
        .unwrap_or(Datum::Null))
}
/// `date_part` sees a date as its midnight.
fn date_part_of_date(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let midnight = Datum::Timestamp(date_midnight(days(&args[1]))?);
    date_part(ctx, &[args[0].clone(), midnight])
}

/// A finite local time cut off below a unit.
fn truncate_local(name: &str, unit: Unit, local: i64, ty: Oid) -> Result<i64> {
    let step = match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1000,
        Unit::Second => MICROS_PER_SECOND,
        Unit::Minute => MICROS_PER_MINUTE,
        Unit::Hour => MICROS_PER_HOUR,
        Unit::Day => MICROS_PER_DAY,
        unit if unit <= Unit::Millennium => {
            let day = Calendar::new(local.div_euclid(MICROS_PER_DAY)).truncated(unit);
            return checked_timestamp(day.checked_mul(MICROS_PER_DAY));
        }
        _ => return Err(not_supported(name, ty)),
    };
    Ok(local.div_euclid(step) * step)
}
/// Only units of a length can be cut off.
fn truncatable(name: &str, ty: Oid) -> Result<Unit> {
    let unit = named_unit(name, ty)?;
    match unit {
        Unit::Epoch
        | Unit::DayOfWeek
        | Unit::IsoDayOfWeek
        | Unit::DayOfYear
        | Unit::IsoYear
        | Unit::Julian => Err(not_recognized(&name.to_ascii_lowercase(), ty)),
        unit if unit > Unit::Millennium => Err(not_supported(name, ty)),
        unit => Ok(unit),
    }
}
fn timestamp_trunc(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (name, t) = (text(&args[0]), moment(&args[1]));
    let unit = truncatable(name, TIMESTAMP)?;
    if is_infinite(t) {
        truncate_local(name, unit, 0, TIMESTAMP)?;
        return Ok(args[1].clone());
    }
    Ok(Datum::Timestamp(truncate_local(name, unit, t, TIMESTAMP)?))
}
fn truncate_zoned(args: &[Datum], zone: &Zone) -> EvalResult {
    let (name, t) = (text(&args[0]), moment(&args[1]));
    let unit = truncatable(name, TIMESTAMPTZ)?;
    if is_infinite(t) {
        truncate_local(name, unit, 0, TIMESTAMPTZ)?;
        return Ok(args[1].clone());
    }
    let local = zone.to_local(t);
    let cut = truncate_local(name, unit, local, TIMESTAMPTZ)?;
    // Below a day the displacement stays: of an hour that comes twice, each keeps its own.
    let utc = if unit < Unit::Day {
        t - (local - cut)
    } else {
        zone.to_utc(cut)
    };
    Ok(Datum::TimestampTz(checked_timestamp(Some(utc))?))
}
fn timestamptz_trunc(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    truncate_zoned(args, &ctx.format.time_zone)
}
fn timestamptz_trunc_zone(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    truncate_zoned(args, &zone_named(text(&args[2]))?)
}
fn interval_trunc(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (name, span) = (text(&args[0]), interval(&args[1]));
    let unit = truncatable(name, INTERVAL)?;
    if unit == Unit::Week {
        let error = not_supported(name, INTERVAL);
        return Err(error.detail("Months usually have fractional weeks.").into());
    }
    if unit > Unit::Millennium {
        return Err(not_supported(name, INTERVAL).into());
    }
    if !span.is_finite() {
        return Ok(args[1].clone());
    }
    let months_in = match unit {
        Unit::Quarter => 3,
        Unit::Year => 12,
        Unit::Decade => 120,
        Unit::Century => 1200,
        Unit::Millennium => 12_000,
        _ => 1,
    };
    let step = match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1000,
        Unit::Second => MICROS_PER_SECOND,
        Unit::Minute => MICROS_PER_MINUTE,
        Unit::Hour => MICROS_PER_HOUR,
        _ => i64::MAX,
    };
    let days = if unit > Unit::Day { 0 } else { span.days };
    let months = span.months / months_in * months_in;
    Ok(finite(Some(months), Some(days), Some(span.micros / step * step))?.into())
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(6199, "extract", &[TEXT, DATE], NUMERIC, extract),
    Function::new(6200, "extract", &[TEXT, TIME], NUMERIC, extract),
    Function::new(6201, "extract", &[TEXT, TIMETZ], NUMERIC, extract),
    Function::new(6202, "extract", &[TEXT, TIMESTAMP], NUMERIC, extract),
    Function::new(6203, "extract", &[TEXT, TIMESTAMPTZ], NUMERIC, extract).stable(),
    Function::new(6204, "extract", &[TEXT, INTERVAL], NUMERIC, extract),
    Function::new(1171, "date_part", &[TEXT, TIMESTAMPTZ], FLOAT8, date_part).stable(),
    Function::new(1172, "date_part", &[TEXT, INTERVAL], FLOAT8, date_part),
    Function::new(1273, "date_part", &[TEXT, TIMETZ], FLOAT8, date_part),
    Function::new(1384, "date_part", &[TEXT, DATE], FLOAT8, date_part_of_date),
    Function::new(1385, "date_part", &[TEXT, TIME], FLOAT8, date_part),
    Function::new(2021, "date_part", &[TEXT, TIMESTAMP], FLOAT8, date_part),
    Function::new(
        1217,
        "date_trunc",
        &[TEXT, TIMESTAMPTZ],
        TIMESTAMPTZ,
        timestamptz_trunc,
    )
    .stable(),
    Function::new(
        1218,
        "date_trunc",
        &[TEXT, INTERVAL],
        INTERVAL,
        interval_trunc,
    ),
    Function::new(
        1284,
        "date_trunc",
        &[TEXT, TIMESTAMPTZ, TEXT],
        TIMESTAMPTZ,
        timestamptz_trunc_zone,
    ),
    Function::new(
        2020,
        "date_trunc",
        &[TEXT, TIMESTAMP],
        TIMESTAMP,
        timestamp_trunc,
    ),
];
