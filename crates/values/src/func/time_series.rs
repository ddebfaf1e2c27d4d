//! What TimescaleDB's users expect of a database for time series, by the names they know.
//!
//! | function | meaning |
//! | --- | --- |
//! | `time_bucket(width, time, …)` | the beginning of the bucket of so wide a span |
//! | `first(value, time)`, `last(value, time)` | the value at the earliest, the latest time |
//! | `histogram(value, low, high, n)` | how many values are below, in each of `n` parts, above |
//!
//! Buckets are counted from the origin: Monday, 2000-01-03, or January 2000 where the width is
//! months, unless another is given. An offset moves all of them.

use std::cmp::Ordering;

use throng_types::calendar::{MICROS_PER_DAY, date_from_days, days_from_date};
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Interval, Oid, Result, oid::*};

use super::aggregate::table::{aggregates, undo};
use super::aggregate::{AggState, Step, empty, mixed};
use super::compare::comparator;
use super::datetime::make::begin_of_bin;
use super::datetime::timezone::zone_named;
use super::datetime::{
    checked_timestamp, days, interval, interval_out_of_range, is_infinite, moment, negate,
    timestamp_plus,
};
use super::number::math::width_bucket_float8;
use super::number::{int, integer_out_of_range};
use super::string::text;
use super::{AggKind, Aggregate, EvalContext, EvalResult, Function};

/// 2000-01-03, a Monday.
const MONDAY: i64 = 2 * MICROS_PER_DAY;

#[cold]
fn invalid(message: &str) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

/// How wide buckets are.
#[derive(Clone, Copy)]
enum Width {
    Micros(i64),
    Months(i64),
}

impl Width {
    fn of(span: Interval) -> Result<Width> {
        if !span.is_finite() {
            return Err(invalid("invalid interval: infinity"));
        }
        if span.months != 0 {
            if span.days != 0 || span.micros != 0 {
                return Err(invalid("month intervals cannot have day or time component"));
            }
            return Width::Months(span.months.into()).checked();
        }
        let days = i64::from(span.days).checked_mul(MICROS_PER_DAY);
        let micros = days.and_then(|days| days.checked_add(span.micros));
        Width::Micros(micros.ok_or_else(interval_out_of_range)?).checked()
    }

    fn checked(self) -> Result<Width> {
        let (Width::Micros(width) | Width::Months(width)) = self;
        match width > 0 {
            true => Ok(self),
            false => Err(invalid("period must be greater than 0")),
        }
    }

    /// The beginning of the bucket of `t`, where one begins at `origin`.
    fn bucket(self, t: i64, origin: Option<i64>) -> Result<i64> {
        if is_infinite(t) {
            return Ok(t);
        }
        if origin.is_some_and(is_infinite) {
            return Err(invalid("invalid origin: infinity"));
        }
        match self {
            Width::Micros(width) => begin_of_bin(t, origin.unwrap_or(MONDAY), width),
            Width::Months(width) => {
                let origin = months(origin.unwrap_or(0));
                let since = (months(t) - origin).div_euclid(width) * width;
                let begin = origin + since;
                let year =
                    i32::try_from(begin.div_euclid(12)).map_err(|_| integer_out_of_range())?;
                let day = days_from_date(year, begin.rem_euclid(12) as i32 + 1, 1);
                checked_timestamp(day.checked_mul(MICROS_PER_DAY))
            }
        }
    }
}

/// Months since the year 0.
fn months(t: i64) -> i64 {
    let (year, month, _) = date_from_days(t.div_euclid(MICROS_PER_DAY));
    i64::from(year) * 12 + i64::from(month - 1)
}

/// The bucket of `t`; `place` is an origin, an offset, or not given.
fn bucket_at(width: &Datum, t: i64, place: Option<&Datum>) -> Result<i64> {
    let width = Width::of(interval(width))?;
    match place {
        None | Some(Datum::Null) => width.bucket(t, None),
        Some(Datum::Interval(offset)) => moved(width, t, None, *offset),
        Some(Datum::Date(origin)) => width.bucket(t, Some(i64::from(*origin) * MICROS_PER_DAY)),
        Some(origin) => width.bucket(t, Some(moment(origin))),
    }
}

fn moved(width: Width, t: i64, origin: Option<i64>, offset: Interval) -> Result<i64> {
    let t = timestamp_plus(t, negate(offset)?)?;
    timestamp_plus(width.bucket(t, origin)?, offset)
}

fn timestamp_bucket(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let begin = bucket_at(&args[0], moment(&args[1]), args.get(2))?;
    Ok(Datum::Timestamp(begin))
}

fn timestamptz_bucket(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let begin = bucket_at(&args[0], moment(&args[1]), args.get(2))?;
    Ok(Datum::TimestampTz(begin))
}

fn date_bucket(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if interval(&args[0]).micros % MICROS_PER_DAY != 0 {
        return Err(invalid("interval must not have sub-day precision").into());
    }
    let t = i64::from(days(&args[1])).checked_mul(MICROS_PER_DAY);
    let begin = bucket_at(&args[0], checked_timestamp(t)?, args.get(2))?;
    Ok(Datum::Date(begin.div_euclid(MICROS_PER_DAY) as i32))
}

/// `time_bucket(width, time, zone, origin, offset)`: by the clock of a zone. NULL for the last two
/// is the same as none.
fn zoned_bucket(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[..3].iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let (t, zone) = (moment(&args[1]), zone_named(text(&args[2]))?);
    let width = Width::of(interval(&args[0]))?;
    if is_infinite(t) {
        return Ok(args[1].clone());
    }
    let given = |nth: usize| args.get(nth).filter(|arg| !arg.is_null());
    let origin = given(3).map(|origin| zone.to_local(moment(origin)));
    let local = zone.to_local(t);
    let begin = match given(4) {
        Some(offset) => moved(width, local, origin, interval(offset))?,
        None => width.bucket(local, origin)?,
    };
    let utc = checked_timestamp(Some(zone.to_utc(begin)))?;
    Ok(Datum::TimestampTz(utc))
}

/// Buckets of whole numbers: `time_bucket(width, time, offset)`.
fn integer_bucket(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (width, t) = (int(&args[0]), int(&args[1]));
    let offset = args.get(2).map_or(0, int);
    if width <= 0 {
        return Err(invalid("period must be greater than 0").into());
    }
    let begin = i128::from(t) - (i128::from(t) - i128::from(offset)).rem_euclid(width.into());
    Ok(match args[1] {
        Datum::Int2(_) => Datum::Int2(fits(begin)?),
        Datum::Int4(_) => Datum::Int4(fits(begin)?),
        _ => Datum::Int8(fits(begin)?),
    })
}

fn fits<T: TryFrom<i128>>(number: i128) -> Result<T> {
    T::try_from(number)
        .map_err(|_| Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "timestamp out of range"))
}

/// One row a function: oid, arguments, result, what computes it. The oids are Throng's own, below
/// those that catalogs give out and above PostgreSQL's.
macro_rules! buckets {
    ($($oid:literal ($($arg:ident),*) $ret:ident $eval:ident;)*) => {
        &[$(Function::new($oid, "time_bucket", &[$($arg),*], $ret, $eval),)* ZONED]
    };
}

const ZONED: Function = Function::new(
    15_013,
    "time_bucket",
    &[INTERVAL, TIMESTAMPTZ, TEXT, TIMESTAMPTZ, INTERVAL],
    TIMESTAMPTZ,
    zoned_bucket,
)
.lenient()
.defaults(2);

pub static FUNCTIONS: &[Function] = buckets! {
    15_001 (INTERVAL, TIMESTAMP) TIMESTAMP timestamp_bucket;
    15_002 (INTERVAL, TIMESTAMPTZ) TIMESTAMPTZ timestamptz_bucket;
    15_003 (INTERVAL, DATE) DATE date_bucket;
    15_004 (INTERVAL, TIMESTAMP, TIMESTAMP) TIMESTAMP timestamp_bucket;
    15_005 (INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ) TIMESTAMPTZ timestamptz_bucket;
    15_006 (INTERVAL, DATE, DATE) DATE date_bucket;
    15_007 (INTERVAL, TIMESTAMP, INTERVAL) TIMESTAMP timestamp_bucket;
    15_008 (INTERVAL, TIMESTAMPTZ, INTERVAL) TIMESTAMPTZ timestamptz_bucket;
    15_009 (INTERVAL, DATE, INTERVAL) DATE date_bucket;
    15_010 (INT2, INT2) INT2 integer_bucket;
    15_011 (INT4, INT4) INT4 integer_bucket;
    15_012 (INT8, INT8) INT8 integer_bucket;
    15_014 (INT2, INT2, INT2) INT2 integer_bucket;
    15_015 (INT4, INT4, INT4) INT4 integer_bucket;
    15_016 (INT8, INT8, INT8) INT8 integer_bucket;
};

// Aggregates

/// Keeps `value` where it comes `wanted` by its time; of equal times the first one stays. Values
/// without a time do not count; NULL at the time that is looked for is the answer.
fn choose(state: &mut AggState, value: &Datum, time: &Datum, wanted: Ordering) -> Step {
    if time.is_null() {
        return Ok(());
    }
    match state {
        AggState::Chosen(chosen) => {
            if comparator(ANY)(time, &chosen.1) == wanted {
                **chosen = (value.clone(), time.clone());
            }
        }
        AggState::Empty => *state = AggState::Chosen(Box::new((value.clone(), time.clone()))),
        _ => return Err(mixed()),
    }
    Ok(())
}

macro_rules! chosen_by {
    ($($step:ident $combine:ident $wanted:ident;)*) => { $(
        fn $step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
            choose(state, &args[0], &args[1], Ordering::$wanted)
        }
        fn $combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
            match other {
                AggState::Chosen(other) => choose(state, &other.0, &other.1, Ordering::$wanted),
                _ => Ok(()),
            }
        }
    )* };
}
chosen_by! {
    first_step first_combine Less;
    last_step last_combine Greater;
}

fn chosen_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Chosen(chosen) => Ok(chosen.0),
        _ => Ok(Datum::Null),
    }
}

/// A histogram of more parts is refused: each takes memory in each group.
const MOST_PARTS: i64 = 100_000;

fn histogram_step(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args.iter().any(Datum::is_null) {
        return Ok(());
    }
    let bucket = int(&width_bucket_float8(ctx, args)?);
    let parts = int(&args[3]);
    if parts > MOST_PARTS {
        let message = format!("a histogram has at most {MOST_PARTS} buckets");
        return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message).into());
    }
    let length = parts as usize + 2;
    if matches!(state, AggState::Empty) {
        *state = AggState::Counts(vec![0; length]);
    }
    let AggState::Counts(counts) = state else {
        return Err(mixed());
    };
    if counts.len() != length {
        return Err(invalid("number of buckets must not change between calls").into());
    }
    if let Some(count) = counts.get_mut(bucket as usize) {
        *count = count.checked_add(1).ok_or_else(integer_out_of_range)?;
    }
    Ok(())
}

fn histogram_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (&mut *state, other) {
        (_, AggState::Empty) => {}
        (AggState::Empty, other) => *state = other,
        (AggState::Counts(counts), AggState::Counts(more)) if counts.len() == more.len() => {
            for (count, more) in counts.iter_mut().zip(more) {
                *count = count.checked_add(more).ok_or_else(integer_out_of_range)?;
            }
        }
        _ => return Err(invalid("number of buckets must not change between calls").into()),
    }
    Ok(())
}

fn histogram_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Counts(counts) => {
            let items = counts.into_iter().map(Datum::Int4).collect();
            Ok(Datum::array(Array::from_items(INT4, items)))
        }
        _ => Ok(Datum::Null),
    }
}

aggregates! {
    15_020 first(ANYELEMENT, ANY) ANYELEMENT empty first_step first_combine chosen_finish;
    15_021 last(ANYELEMENT, ANY) ANYELEMENT empty last_step last_combine chosen_finish;
    15_022 histogram(FLOAT8, FLOAT8, FLOAT8, INT4) INT4_ARRAY empty histogram_step histogram_combine histogram_finish;
}
