//! Dates and times made of numbers, ages, justified intervals, overlaps, and the clock.

use crate::func::datetime::timezone::zone_named;
use crate::func::datetime::{
    checked_timestamp, days, finite, interval, interval_out_of_range, is_infinite, moment, negate,
    overflow, shift_clock, timestamp_plus, timestamptz_plus,
};
use crate::func::number::{float, float_overflow, int};
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult, Function};
use crate::io::typmod;
use crate::zone::{Zone, parse_displacement};
use std::time::{SystemTime, UNIX_EPOCH};
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, Interval, Oid, Result, SqlType, TimeTz, oid::*};

/// Microseconds since 2000 by the machine's clock.
fn wall_clock() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    since_1970.as_micros() as i64 - UNIX_EPOCH_MICROS
}
fn now(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::TimestampTz(ctx.host.transaction_timestamp()))
}
fn statement_timestamp(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::TimestampTz(ctx.host.statement_timestamp()))
}
fn clock_timestamp(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::TimestampTz(wall_clock()))
}
fn timeofday(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    let now = Datum::TimestampTz(wall_clock());
    crate::func::to_char::timestamp_text(ctx, &now, "Dy Mon DD HH24:MI:SS.US YYYY TZ")
        .map(Datum::from)
}

/// The transaction's time with the digits asked for.
fn rounded(args: &[Datum], value: Datum, ty: Oid) -> EvalResult {
    let digits = args.first().map_or(-1, |d| int(d).clamp(0, 6) as i32);
    Ok(typmod::apply(value, SqlType::new(ty, digits), true)?)
}
fn local_now(ctx: &EvalContext<'_>) -> i64 {
    ctx.format
        .time_zone
        .to_local(ctx.host.transaction_timestamp())
}
fn current_date(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Date(local_now(ctx).div_euclid(MICROS_PER_DAY) as i32))
}
fn current_timestamp(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let now = Datum::TimestampTz(ctx.host.transaction_timestamp());
    rounded(args, now, TIMESTAMPTZ)
}
fn current_time(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let east = ctx
        .format
        .time_zone
        .east_at(ctx.host.transaction_timestamp());
    let micros = local_now(ctx).rem_euclid(MICROS_PER_DAY);
    rounded(
        args,
        Datum::TimeTz(TimeTz {
            micros,
            zone: -east,
        }),
        TIMETZ,
    )
}
fn localtimestamp(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    rounded(args, Datum::Timestamp(local_now(ctx)), TIMESTAMP)
}
fn localtime(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let time = Datum::Time(local_now(ctx).rem_euclid(MICROS_PER_DAY));
    rounded(args, time, TIME)
}

/// Days since 2000 of a date in numbers; a negative year is before Christ.
fn date_of(args: &[Datum]) -> Result<i64> {
    let (year, month, day) = (int(&args[0]), int(&args[1]), int(&args[2]));
    let fields = || format!("{year}-{month:02}-{day:02}");
    let wrong = || overflow(&format!("date field value out of range: {}", fields()));
    let astronomical = if year < 0 { year + 1 } else { year };
    let astronomical = i32::try_from(astronomical).map_err(|_| wrong())?;
    if year == 0 || year == i64::from(i32::MIN) || !(1..=12).contains(&month) {
        return Err(wrong());
    }
    if !(1..=i64::from(days_in_month(astronomical, month as i32))).contains(&day) {
        return Err(wrong());
    }
    let days = days_from_date(astronomical, month as i32, day as i32);
    if !date_in_range(days) {
        return Err(overflow(&format!("date out of range: {}", fields())));
    }
    Ok(days)
}
/// Microseconds of a time in numbers.
fn time_of(args: &[Datum]) -> Result<i64> {
    let (hour, minute, second) = (int(&args[0]), int(&args[1]), float(&args[2]));
    let micros = (second * 1e6).round_ties_even();
    let in_range =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60e6).contains(&micros);
    let total = hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE;
    let total = total.saturating_add(micros as i64);
    if !in_range || total > MICROS_PER_DAY {
        let seconds = match second == second.trunc() {
            _ if second.is_infinite() => match second > 0.0 {
                true => "Infinity".to_owned(),
                false => "-Infinity".to_owned(),
            },
            true => format!("{second:02}"),
            false => format!("{second}"),
        };
        let fields = format!("{hour}:{minute:02}:{seconds}");
        return Err(overflow(&format!(
            "time field value out of range: {fields}"
        )));
    }
    Ok(total)
}
fn make_date(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Date(date_of(args)? as i32))
}
fn make_time(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Time(time_of(args)?))
}
fn timestamp_of(args: &[Datum]) -> Result<i64> {
    let (day, time) = (date_of(args)?, time_of(&args[3..])?);
    checked_timestamp(
        day.checked_mul(MICROS_PER_DAY)
            .and_then(|t| t.checked_add(time)),
    )
}
fn make_timestamp(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Timestamp(timestamp_of(args)?))
}
/// A zone as `make_timestamptz` takes it: a displacement counts east, with its sign.
fn made_zone(name: &str) -> Result<Zone> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("invalid input syntax for type numeric time zone: \"{name}\""),
        )
        .hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    if name.starts_with(['+', '-']) {
        return parse_displacement(name)
            .and_then(Zone::fixed)
            .ok_or_else(|| {
                let message = format!("numeric time zone \"{name}\" out of range");
                Error::new(state::INVALID_PARAMETER_VALUE, message)
            });
    }
    zone_named(name)
}
fn make_timestamptz(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let local = timestamp_of(args)?;
    let utc = match args.get(6) {
        Some(zone) => made_zone(text(zone))?.to_utc(local),
        None => ctx.format.time_zone.to_utc(local),
    };
    Ok(Datum::TimestampTz(checked_timestamp(Some(utc))?))
}
fn make_interval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let part = |i: usize| args.get(i).map_or(0, int);
    let seconds = args.get(6).map_or(0.0, float);
    if !seconds.is_finite() {
        return Err(interval_out_of_range().into());
    }
    let seconds = seconds * 1e6;
    if seconds.is_infinite() {
        return Err(float_overflow().into());
    }
    if seconds.abs() >= i64::MAX as f64 {
        return Err(interval_out_of_range().into());
    }
    let months = i32::try_from(part(0) * 12 + part(1)).ok();
    let days = i32::try_from(part(2) * 7 + part(3)).ok();
    let clock = part(4) * MICROS_PER_HOUR + part(5) * MICROS_PER_MINUTE;
    Ok(finite(
        months,
        days,
        clock.checked_add(seconds.round_ties_even() as i64),
    )?
    .into())
}

fn date_finite(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((!matches!(days(&args[0]), DATE_INFINITY | DATE_NEG_INFINITY)).into())
}
fn timestamp_finite(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((!is_infinite(moment(&args[0]))).into())
}
fn interval_finite(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(interval(&args[0]).is_finite().into())
}

/// 24 hours become a day; hours and days get one sign.
fn justified_hours(span: Interval) -> Result<Interval> {
    let days = span.micros / MICROS_PER_DAY;
    let mut micros = span.micros % MICROS_PER_DAY;
    let mut days = i64::from(span.days) + days;
    if days > 0 && micros < 0 {
        (micros, days) = (micros + MICROS_PER_DAY, days - 1);
    } else if days < 0 && micros > 0 {
        (micros, days) = (micros - MICROS_PER_DAY, days + 1);
    }
    finite(Some(span.months), i32::try_from(days).ok(), Some(micros))
}
/// 30 days become a month; days and months get one sign.
fn justified_days(span: Interval) -> Result<Interval> {
    let mut days = span.days % 30;
    let mut months = i64::from(span.months) + i64::from(span.days / 30);
    if months > 0 && days < 0 {
        (days, months) = (days + 30, months - 1);
    } else if months < 0 && days > 0 {
        (days, months) = (days - 30, months + 1);
    }
    finite(i32::try_from(months).ok(), Some(days), Some(span.micros))
}
fn justified(span: Interval) -> Result<Interval> {
    // Days enough to take the hours are turned first, lest an overflow come that is none.
    let carried = span.micros / MICROS_PER_DAY;
    let mut micros = span.micros % MICROS_PER_DAY;
    let total = i64::from(span.days) + carried;
    let mut months = i64::from(span.months) + total / 30;
    let mut days = total % 30;
    if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
        (days, months) = (days + 30, months - 1);
    } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
        (days, months) = (days - 30, months + 1);
    }
    if days > 0 && micros < 0 {
        (micros, days) = (micros + MICROS_PER_DAY, days - 1);
    } else if days < 0 && micros > 0 {
        (micros, days) = (micros - MICROS_PER_DAY, days + 1);
    }
    finite(
        i32::try_from(months).ok(),
        i32::try_from(days).ok(),
        Some(micros),
    )
}
macro_rules! justify {
    ($($name:ident: $how:ident;)*) => { $(
        fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            let span = interval(&args[0]);
            Ok(if span.is_finite() { $how(span)? } else { span }.into())
        }
    )* };
}
justify! {
    justify_hours: justified_hours;
    justify_days: justified_days;
    justify_interval: justified;
}

/// Years, months, days and hours between two local times, each field by itself as on paper.
fn age_between(a: i64, b: i64) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        return crate::func::datetime::between(a, b);
    }
    let fields = |t: i64| {
        let (year, month, day) = date_from_days(t.div_euclid(MICROS_PER_DAY));
        (year, month, day, t.rem_euclid(MICROS_PER_DAY))
    };
    let (later, earlier) = if a >= b { (a, b) } else { (b, a) };
    let (y1, m1, d1, t1) = fields(later);
    let (y2, m2, d2, t2) = fields(earlier);
    let (mut months, mut days, mut micros) = ((y1 - y2) * 12 + m1 - m2, d1 - d2, t1 - t2);
    if micros < 0 {
        (micros, days) = (micros + MICROS_PER_DAY, days - 1);
    }
    // A month borrowed has as many days as the one the second argument is in, or the first if that
    // is earlier.
    while days < 0 {
        let (year, month) = fields_month(b, a);
        (days, months) = (days + days_in_month(year, month), months - 1);
    }
    let span = Interval::new(months, days, micros);
    if a >= b { Ok(span) } else { negate(span) }
}
fn fields_month(b: i64, a: i64) -> (i32, i32) {
    let (year, month, _) = date_from_days(a.min(b).div_euclid(MICROS_PER_DAY));
    (year, month)
}
fn local_of(ctx: &EvalContext<'_>, value: &Datum) -> i64 {
    match *value {
        Datum::TimestampTz(t) if !is_infinite(t) => ctx.format.time_zone.to_local(t),
        ref value => moment(value),
    }
}
fn age(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(age_between(local_of(ctx, &args[0]), local_of(ctx, &args[1]))?.into())
}
/// The age at this day's midnight.
fn age_today(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let midnight = local_now(ctx).div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY;
    Ok(age_between(midnight, local_of(ctx, &args[0]))?.into())
}

/// The beginning of the bin of `stride` that a moment is in, bins being counted from `origin`.
fn bin(args: &[Datum]) -> Result<i64> {
    let (stride, t, origin) = (interval(&args[0]), moment(&args[1]), moment(&args[2]));
    if is_infinite(t) {
        return Ok(t);
    }
    if is_infinite(origin) {
        return Err(overflow("origin out of range"));
    }
    if !stride.is_finite() {
        return Err(overflow(
            "timestamps cannot be binned into infinite intervals",
        ));
    }
    if stride.months != 0 {
        return Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let step = i64::from(stride.days)
        .checked_mul(MICROS_PER_DAY)
        .and_then(|d| d.checked_add(stride.micros))
        .ok_or_else(interval_out_of_range)?;
    if step <= 0 {
        return Err(overflow("stride must be greater than zero"));
    }
    begin_of_bin(t, origin, step)
}
/// The beginning of the bin of `t`; bins are `step` microseconds wide, and one begins at `origin`.
pub(in crate::func) fn begin_of_bin(t: i64, origin: i64, step: i64) -> Result<i64> {
    let since = t.checked_sub(origin).ok_or_else(interval_out_of_range)?;
    checked_timestamp(origin.checked_add(since.div_euclid(step) * step))
}
fn timestamp_bin(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Timestamp(bin(args)?))
}
fn timestamptz_bin(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::TimestampTz(bin(args)?))
}

fn plus_at_zone(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let zone = zone_named(text(&args[2]))?;
    Ok(Datum::TimestampTz(timestamptz_plus(
        &zone,
        moment(&args[0]),
        interval(&args[1]),
    )?))
}
fn minus_at_zone(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (zone, span) = (zone_named(text(&args[2]))?, negate(interval(&args[1]))?);
    Ok(Datum::TimestampTz(timestamptz_plus(
        &zone,
        moment(&args[0]),
        span,
    )?))
}

/// The end of a period that may be given by its length.
fn period_end(ctx: &EvalContext<'_>, start: &Datum, end: &Datum) -> EvalResult {
    let (false, Datum::Interval(span)) = (start.is_null(), end) else {
        return Ok(if end.is_null() || !matches!(end, Datum::Interval(_)) {
            end.clone()
        } else {
            Datum::Null
        });
    };
    Ok(match *start {
        Datum::Timestamp(t) => Datum::Timestamp(timestamp_plus(t, *span)?),
        Datum::TimestampTz(t) => {
            Datum::TimestampTz(timestamptz_plus(&ctx.format.time_zone, t, *span)?)
        }
        Datum::Time(t) => Datum::Time(shift_clock(t, *span, true)?),
        ref other => other.clone(),
    })
}
/// Do two periods share a moment? Either end of each may come first, and be NULL; an end is not
/// part of its period unless it is also the beginning.
fn overlaps(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    use crate::func::compare::compare;
    let period =
        |start: &Datum, end: &Datum| -> Result<Option<(Datum, Datum)>, crate::func::EvalStop> {
            let end = period_end(ctx, start, end)?;
            Ok(match (start.is_null(), end.is_null()) {
                (true, true) => None,
                (true, false) => Some((end, Datum::Null)),
                (false, true) => Some((start.clone(), Datum::Null)),
                (false, false) if compare(start, &end).is_gt() => Some((end, start.clone())),
                (false, false) => Some((start.clone(), end)),
            })
        };
    let (first, second) = (period(&args[0], &args[1])?, period(&args[2], &args[3])?);
    let (Some((s1, e1)), Some((s2, e2))) = (first, second) else {
        return Ok(Datum::Null);
    };
    // The later beginning must lie in the other period.
    let (later, earlier_end, later_end) = match compare(&s1, &s2) {
        std::cmp::Ordering::Equal => {
            return Ok(if e1.is_null() || e2.is_null() {
                Datum::Null
            } else {
                true.into()
            });
        }
        std::cmp::Ordering::Greater => (s1, e2, e1),
        std::cmp::Ordering::Less => (s2, e1, e2),
    };
    if earlier_end.is_null() {
        return Ok(Datum::Null);
    }
    if compare(&later, &earlier_end).is_lt() {
        return Ok(true.into());
    }
    Ok(if later_end.is_null() {
        Datum::Null
    } else {
        false.into()
    })
}

/// Seconds since 1970.
fn float8_timestamptz(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let seconds = float(&args[0]);
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN").into());
    }
    if seconds.is_infinite() {
        let t = if seconds > 0.0 {
            TIMESTAMP_INFINITY
        } else {
            TIMESTAMP_NEG_INFINITY
        };
        return Ok(Datum::TimestampTz(t));
    }
    let micros = ((seconds - UNIX_EPOCH_MICROS as f64 / 1e6) * 1e6).round_ties_even();
    if !(micros >= MIN_TIMESTAMP as f64 && micros < END_TIMESTAMP as f64) {
        let shown = seconds.to_string();
        return Err(overflow(&format!("timestamp out of range: \"{shown}\"")).into());
    }
    Ok(Datum::TimestampTz(micros as i64))
}

/// Functions the grammar calls that PostgreSQL has no row in `pg_proc` for; it numbers its own
/// below 9700.
const SPECIAL: u32 = 9800;

/// Whether a function is one of those.
pub fn is_grammars(function: Oid) -> bool {
    (SPECIAL..SPECIAL + 5).contains(&function.0) || crate::func::xml::GRAMMAR.contains(&function.0)
}

/// A date and a time of day in the session's zone.
fn date_time_timestamptz(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let moment = crate::func::datetime::datetime_timestamp(ctx, args)?;
    crate::func::cast::conversion::timestamp_timestamptz(ctx, &[moment])
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(
        2025,
        "timestamp",
        &[DATE, TIME],
        TIMESTAMP,
        crate::func::datetime::datetime_timestamp,
    ),
    Function::new(
        1176,
        "timestamptz",
        &[DATE, TIME],
        TIMESTAMPTZ,
        date_time_timestamptz,
    )
    .stable(),
    Function::new(
        1359,
        "timestamptz",
        &[DATE, TIMETZ],
        TIMESTAMPTZ,
        crate::func::datetime::datetimetz_timestamptz,
    ),
    Function::new(SPECIAL, "current_date", &[], DATE, current_date).stable(),
    Function::new(SPECIAL + 1, "current_time", &[INT4], TIMETZ, current_time)
        .stable()
        .defaults(1),
    Function::new(
        SPECIAL + 2,
        "current_timestamp",
        &[INT4],
        TIMESTAMPTZ,
        current_timestamp,
    )
    .stable()
    .defaults(1),
    Function::new(SPECIAL + 3, "localtime", &[INT4], TIME, localtime)
        .stable()
        .defaults(1),
    Function::new(
        SPECIAL + 4,
        "localtimestamp",
        &[INT4],
        TIMESTAMP,
        localtimestamp,
    )
    .stable()
    .defaults(1),
    Function::new(1299, "now", &[], TIMESTAMPTZ, now).stable(),
    Function::new(2647, "transaction_timestamp", &[], TIMESTAMPTZ, now).stable(),
    Function::new(
        2648,
        "statement_timestamp",
        &[],
        TIMESTAMPTZ,
        statement_timestamp,
    )
    .stable(),
    Function::new(2649, "clock_timestamp", &[], TIMESTAMPTZ, clock_timestamp).volatile(),
    Function::new(274, "timeofday", &[], TEXT, timeofday).volatile(),
    Function::new(1199, "age", &[TIMESTAMPTZ, TIMESTAMPTZ], INTERVAL, age),
    Function::new(1386, "age", &[TIMESTAMPTZ], INTERVAL, age_today).stable(),
    Function::new(2058, "age", &[TIMESTAMP, TIMESTAMP], INTERVAL, age),
    Function::new(2059, "age", &[TIMESTAMP], INTERVAL, age_today).stable(),
    Function::new(3846, "make_date", &[INT4, INT4, INT4], DATE, make_date),
    Function::new(3847, "make_time", &[INT4, INT4, FLOAT8], TIME, make_time),
    Function::new(
        3461,
        "make_timestamp",
        &[INT4, INT4, INT4, INT4, INT4, FLOAT8],
        TIMESTAMP,
        make_timestamp,
    ),
    Function::new(
        3462,
        "make_timestamptz",
        &[INT4, INT4, INT4, INT4, INT4, FLOAT8],
        TIMESTAMPTZ,
        make_timestamptz,
    )
    .stable(),
    Function::new(
        3463,
        "make_timestamptz",
        &[INT4, INT4, INT4, INT4, INT4, FLOAT8, TEXT],
        TIMESTAMPTZ,
        make_timestamptz,
    )
    .stable(),
    Function::new(
        3464,
        "make_interval",
        &[INT4, INT4, INT4, INT4, INT4, INT4, FLOAT8],
        INTERVAL,
        make_interval,
    )
    .defaults(7),
    Function::new(1373, "isfinite", &[DATE], BOOL, date_finite),
    Function::new(1389, "isfinite", &[TIMESTAMPTZ], BOOL, timestamp_finite),
    Function::new(1390, "isfinite", &[INTERVAL], BOOL, interval_finite),
    Function::new(2048, "isfinite", &[TIMESTAMP], BOOL, timestamp_finite),
    Function::new(1295, "justify_days", &[INTERVAL], INTERVAL, justify_days),
    Function::new(1175, "justify_hours", &[INTERVAL], INTERVAL, justify_hours),
    Function::new(
        2711,
        "justify_interval",
        &[INTERVAL],
        INTERVAL,
        justify_interval,
    ),
    Function::new(
        1271,
        "overlaps",
        &[TIMETZ, TIMETZ, TIMETZ, TIMETZ],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        1304,
        "overlaps",
        &[TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        1305,
        "overlaps",
        &[TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, INTERVAL],
        BOOL,
        overlaps,
    )
    .stable()
    .lenient(),
    Function::new(
        1306,
        "overlaps",
        &[TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL],
        BOOL,
        overlaps,
    )
    .stable()
    .lenient(),
    Function::new(
        1307,
        "overlaps",
        &[TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ],
        BOOL,
        overlaps,
    )
    .stable()
    .lenient(),
    Function::new(1308, "overlaps", &[TIME, TIME, TIME, TIME], BOOL, overlaps).lenient(),
    Function::new(
        1309,
        "overlaps",
        &[TIME, INTERVAL, TIME, INTERVAL],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        1310,
        "overlaps",
        &[TIME, TIME, TIME, INTERVAL],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        1311,
        "overlaps",
        &[TIME, INTERVAL, TIME, TIME],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        2041,
        "overlaps",
        &[TIMESTAMP, TIMESTAMP, TIMESTAMP, TIMESTAMP],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        2042,
        "overlaps",
        &[TIMESTAMP, INTERVAL, TIMESTAMP, INTERVAL],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        2043,
        "overlaps",
        &[TIMESTAMP, TIMESTAMP, TIMESTAMP, INTERVAL],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        2044,
        "overlaps",
        &[TIMESTAMP, INTERVAL, TIMESTAMP, TIMESTAMP],
        BOOL,
        overlaps,
    )
    .lenient(),
    Function::new(
        6177,
        "date_bin",
        &[INTERVAL, TIMESTAMP, TIMESTAMP],
        TIMESTAMP,
        timestamp_bin,
    ),
    Function::new(
        6178,
        "date_bin",
        &[INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ],
        TIMESTAMPTZ,
        timestamptz_bin,
    ),
    Function::new(
        6221,
        "date_add",
        &[TIMESTAMPTZ, INTERVAL],
        TIMESTAMPTZ,
        crate::func::datetime::timestamptz_pl_interval,
    )
    .stable(),
    Function::new(
        6222,
        "date_add",
        &[TIMESTAMPTZ, INTERVAL, TEXT],
        TIMESTAMPTZ,
        plus_at_zone,
    ),
    Function::new(
        6223,
        "date_subtract",
        &[TIMESTAMPTZ, INTERVAL],
        TIMESTAMPTZ,
        crate::func::datetime::timestamptz_mi_interval,
    )
    .stable(),
    Function::new(
        6273,
        "date_subtract",
        &[TIMESTAMPTZ, INTERVAL, TEXT],
        TIMESTAMPTZ,
        minus_at_zone,
    ),
    Function::new(
        1158,
        "to_timestamp",
        &[FLOAT8],
        TIMESTAMPTZ,
        float8_timestamptz,
    ),
];
