//! Aggregates: the state each group keeps, and what it becomes.
//!
//! Integer sums run in 128 bits and averages of integers keep sum and count, so no order of rows can overflow on the way. Float
//! variances follow Youngs and Cramer, as PostgreSQL's do, so that results agree to the last digit for the same order of rows.

use super::aggregate_table;
pub use aggregate_table::AGGREGATES;
use super::compare::comparator;
use super::number::{float, float_overflow, int, numeric};
use super::{EvalContext, EvalResult, EvalStop};
use std::cmp::Ordering;
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Interval, Numeric, Oid};

/// What an aggregate has gathered of a group.
#[derive(Debug, Default)]
pub enum AggState {
    #[default]
    Empty,
    Count(i64),
    /// One value so far: min, max, bool_and, sums of floats…
    Value(Datum),
    /// Integers: how many, and their sum.
    Integers { count: i64, sum: i128 },
    Numerics(Box<NumericSums>),
    Floats { count: f64, sum: f64, squares: f64 },
    /// The sum's parts wide enough not to overflow on the way.
    Intervals { count: i64, months: i64, days: i64, micros: i128, infinite: (i64, i64) },
    Text(String),
    Bytes(Vec<u8>),
    Items(Vec<Datum>),
}

/// Sums for numeric averages and variances. Infinities and NaN are counted apart.
#[derive(Debug)]
pub struct NumericSums {
    count: i64,
    sum: Numeric,
    squares: Numeric,
    with_squares: bool,
    nan: i64,
    positive: i64,
    negative: i64,
}

type Step = Result<(), EvalStop>;

pub(super) fn empty() -> AggState {
    AggState::Empty
}
pub(super) fn zero() -> AggState {
    AggState::Count(0)
}

#[cold]
fn mixed() -> EvalStop {
    Error::internal("states of different aggregates were combined").into()
}

// count

pub(super) fn count_any(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if let AggState::Count(n) = state
        && args.first().is_none_or(|a| !a.is_null())
    {
        *n += 1;
    }
    Ok(())
}
pub(super) fn count_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (state, other) {
        (AggState::Count(a), AggState::Count(b)) => *a += b,
        _ => return Err(mixed()),
    }
    Ok(())
}
pub(super) fn count_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Count(n) => Ok(n.into()),
        _ => Err(mixed()),
    }
}

// Sums and averages of integers

pub(super) fn integer_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args[0].is_null() {
        return Ok(());
    }
    let value = i128::from(int(&args[0]));
    match state {
        AggState::Integers { count, sum } => {
            *count += 1;
            // More than 2^64 rows would be needed to overflow.
            *sum += value;
        }
        _ => *state = AggState::Integers { count: 1, sum: value },
    }
    Ok(())
}
pub(super) fn integer_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (&mut *state, other) {
        (_, AggState::Empty) => {}
        (AggState::Integers { count, sum }, AggState::Integers { count: n, sum: s }) => {
            *count += n;
            *sum += s;
        }
        (AggState::Empty, other) => *state = other,
        _ => return Err(mixed()),
    }
    Ok(())
}
/// `sum(smallint)`, `sum(integer)`: a bigint.
pub(super) fn sum_int8(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Integers { sum, .. } => {
            Ok(i64::try_from(sum).map_err(|_| super::number::bigint_out_of_range())?.into())
        }
        _ => Ok(Datum::Null),
    }
}
/// `sum(bigint)`: a numeric.
pub(super) fn sum_numeric(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Integers { sum, .. } => Ok(Numeric::from(sum).into()),
        _ => Ok(Datum::Null),
    }
}
pub(super) fn average_integers(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Integers { count, sum } => Ok(Numeric::from(sum).div(&Numeric::from(count))?.into()),
        _ => Ok(Datum::Null),
    }
}

// Sums, averages and variances of numerics (and of integers, for variances)

impl NumericSums {
    fn new(with_squares: bool) -> NumericSums {
        NumericSums {
            count: 0,
            sum: Numeric::ZERO,
            squares: Numeric::ZERO,
            with_squares,
            nan: 0,
            positive: 0,
            negative: 0,
        }
    }
    fn add(&mut self, value: &Numeric) -> Result<(), Error> {
        if value.is_nan() {
            self.nan += 1;
        } else if value.is_infinite() {
            *if value.signum() > 0 { &mut self.positive } else { &mut self.negative } += 1;
        } else {
            self.sum = self.sum.add(value)?;
            if self.with_squares {
                self.squares = self.squares.add(&value.mul(value)?)?;
            }
        }
        self.count += 1;
        Ok(())
    }
    fn merge(&mut self, other: &NumericSums) -> Result<(), Error> {
        self.sum = self.sum.add(&other.sum)?;
        self.squares = self.squares.add(&other.squares)?;
        self.count += other.count;
        self.nan += other.nan;
        self.positive += other.positive;
        self.negative += other.negative;
        Ok(())
    }
    /// What infinities and NaN make of the sum.
    fn special(&self) -> Option<Numeric> {
        if self.nan > 0 || (self.positive > 0 && self.negative > 0) {
            Some(Numeric::NAN)
        } else if self.positive > 0 {
            Some(Numeric::INFINITY)
        } else if self.negative > 0 {
            Some(Numeric::NEG_INFINITY)
        } else {
            None
        }
    }
}

fn numeric_add(state: &mut AggState, value: &Numeric, with_squares: bool) -> Step {
    if let AggState::Empty = state {
        *state = AggState::Numerics(Box::new(NumericSums::new(with_squares)));
    }
    match state {
        AggState::Numerics(sums) => Ok(sums.add(value)?),
        _ => Err(mixed()),
    }
}
pub(super) fn numeric_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args[0].is_null() { Ok(()) } else { numeric_add(state, numeric(&args[0]), false) }
}
/// Keeps the sum of squares too; takes integers and numerics.
pub(super) fn squares_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    match &args[0] {
        Datum::Null => Ok(()),
        Datum::Numeric(v) => numeric_add(state, v, true),
        v => numeric_add(state, &Numeric::from(int(v)), true),
    }
}
pub(super) fn numeric_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (&mut *state, other) {
        (_, AggState::Empty) => {}
        (AggState::Numerics(a), AggState::Numerics(b)) => a.merge(&b)?,
        (AggState::Empty, other) => *state = other,
        _ => return Err(mixed()),
    }
    Ok(())
}
pub(super) fn sum_numerics(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Numerics(sums) => Ok(sums.special().unwrap_or(sums.sum).into()),
        _ => Ok(Datum::Null),
    }
}
pub(super) fn average_numerics(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Numerics(sums) => match sums.special() {
            Some(special) => Ok(special.into()),
            None => Ok(sums.sum.div(&Numeric::from(sums.count))?.into()),
        },
        _ => Ok(Datum::Null),
    }
}

/// `(N Σx² - (Σx)²) / (N (N - sample))`, its root for a deviation.
fn numeric_variance(state: &AggState, sample: bool, root: bool) -> EvalResult {
    let AggState::Numerics(sums) = state else { return Ok(Datum::Null) };
    if sample && sums.count <= 1 {
        return Ok(Datum::Null);
    }
    if sums.special().is_some() {
        return Ok(Numeric::NAN.into());
    }
    let n = Numeric::from(sums.count);
    let spread = n.mul(&sums.squares)?.sub(&sums.sum.mul(&sums.sum)?)?;
    if spread.signum() <= 0 {
        return Ok(Numeric::ZERO.into());
    }
    let divisor = n.mul(&Numeric::from(sums.count - i64::from(sample)))?;
    let variance = spread.div(&divisor)?;
    Ok(if root { variance.sqrt()? } else { variance }.into())
}
pub(super) fn numeric_var_pop(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    numeric_variance(&state, false, false)
}
pub(super) fn numeric_var_samp(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    numeric_variance(&state, true, false)
}
pub(super) fn numeric_stddev_pop(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    numeric_variance(&state, false, true)
}
pub(super) fn numeric_stddev_samp(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    numeric_variance(&state, true, true)
}

// Floats

/// `sum(real)` and `sum(double precision)` keep a value of their own type.
pub(super) fn float_sum_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    let sum = match (&*state, &args[0]) {
        (_, Datum::Null) => return Ok(()),
        (AggState::Value(Datum::Float4(a)), Datum::Float4(b)) => {
            let sum = a + b;
            if sum.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(float_overflow().into());
            }
            Datum::Float4(sum)
        }
        (AggState::Value(Datum::Float8(a)), Datum::Float8(b)) => {
            let sum = a + b;
            if sum.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(float_overflow().into());
            }
            Datum::Float8(sum)
        }
        (_, value) => value.clone(),
    };
    *state = AggState::Value(sum);
    Ok(())
}
pub(super) fn float_sum_combine(
    ctx: &EvalContext<'_>,
    state: &mut AggState,
    other: AggState,
) -> Step {
    match other {
        AggState::Value(value) => float_sum_step(ctx, state, &[value]),
        _ => Ok(()),
    }
}

/// Averages and variances of floats: Youngs and Cramer's running sums.
pub(super) fn float_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args[0].is_null() {
        return Ok(());
    }
    let x = float(&args[0]);
    let (n, old_sum, old_squares) = match *state {
        AggState::Floats { count, sum, squares } => (count, sum, squares),
        _ => (0.0, 0.0, 0.0),
    };
    let (count, sum) = (n + 1.0, old_sum + x);
    let mut squares = old_squares;
    if n > 0.0 {
        let t = x * count - sum;
        squares += t * t / (count * n);
        if sum.is_infinite() || squares.is_infinite() {
            if !old_sum.is_infinite() && !x.is_infinite() {
                return Err(float_overflow().into());
            }
            squares = f64::NAN;
        }
    } else if !x.is_finite() {
        squares = f64::NAN;
    }
    *state = AggState::Floats { count, sum, squares };
    Ok(())
}
pub(super) fn float_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    let AggState::Floats { count: n2, sum: s2, squares: q2 } = other else { return Ok(()) };
    let AggState::Floats { count, sum, squares } = state else {
        *state = other;
        return Ok(());
    };
    let (n1, s1, q1) = (*count, *sum, *squares);
    let total = n1 + n2;
    let t = s1 / n1 - s2 / n2;
    let combined = q1 + q2 + n1 * n2 * t * t / total;
    if combined.is_infinite() && !q1.is_infinite() && !q2.is_infinite() {
        return Err(float_overflow().into());
    }
    (*count, *sum, *squares) = (total, s1 + s2, combined);
    Ok(())
}
pub(super) fn float_average(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Floats { count, sum, .. } => Ok((sum / count).into()),
        _ => Ok(Datum::Null),
    }
}
fn float_variance(state: &AggState, sample: f64) -> Option<f64> {
    match *state {
        AggState::Floats { count, squares, .. } if count > sample => Some(squares / (count - sample)),
        _ => None,
    }
}
pub(super) fn float_var_pop(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    Ok(float_variance(&state, 0.0).into())
}
pub(super) fn float_var_samp(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    Ok(float_variance(&state, 1.0).into())
}
pub(super) fn float_stddev_pop(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    Ok(float_variance(&state, 0.0).map(f64::sqrt).into())
}
pub(super) fn float_stddev_samp(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    Ok(float_variance(&state, 1.0).map(f64::sqrt).into())
}

// Intervals

pub(super) fn interval_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    let Datum::Interval(value) = args[0] else { return Ok(()) };
    if let AggState::Empty = state {
        *state = AggState::Intervals { count: 0, months: 0, days: 0, micros: 0, infinite: (0, 0) };
    }
    let AggState::Intervals { count, months, days, micros, infinite } = state else {
        return Err(mixed());
    };
    *count += 1;
    match value {
        Interval::INFINITY => infinite.0 += 1,
        Interval::NEG_INFINITY => infinite.1 += 1,
        _ => {
            *months += i64::from(value.months);
            *days += i64::from(value.days);
            *micros += i128::from(value.micros);
        }
    }
    Ok(())
}
pub(super) fn interval_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (&mut *state, other) {
        (_, AggState::Empty) => {}
        (AggState::Empty, other) => *state = other,
        (
            AggState::Intervals { count, months, days, micros, infinite },
            AggState::Intervals { count: n, months: m, days: d, micros: u, infinite: i },
        ) => {
            *count += n;
            *months += m;
            *days += d;
            *micros += u;
            *infinite = (infinite.0 + i.0, infinite.1 + i.1);
        }
        _ => return Err(mixed()),
    }
    Ok(())
}
#[cold]
fn interval_out_of_range() -> EvalStop {
    Error::new(state::DATETIME_FIELD_OVERFLOW, "interval out of range").into()
}
fn interval_total(state: &AggState) -> Result<Option<(i64, Interval)>, EvalStop> {
    let AggState::Intervals { count, months, days, micros, infinite } = *state else {
        return Ok(None);
    };
    let total = match infinite {
        (0, 0) => {
            let (Ok(months), Ok(days), Ok(micros)) =
                (i32::try_from(months), i32::try_from(days), i64::try_from(micros))
            else {
                return Err(interval_out_of_range());
            };
            Interval { months, days, micros }
        }
        (_, 0) => Interval::INFINITY,
        (0, _) => Interval::NEG_INFINITY,
        _ => return Err(interval_out_of_range()),
    };
    Ok(Some((count, total)))
}
pub(super) fn interval_sum(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    Ok(interval_total(&state)?.map(|(_, total)| total).into())
}
/// The total divided; what does not divide in months goes into days, and from there into time.
pub(super) fn interval_average(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    let Some((count, total)) = interval_total(&state)? else { return Ok(Datum::Null) };
    if !total.is_finite() {
        return Ok(total.into());
    }
    Ok(divide_interval(total, count as f64).ok_or_else(interval_out_of_range)?.into())
}

/// `interval / number`, cascading fractions down as PostgreSQL does. None out of range.
pub fn divide_interval(value: Interval, by: f64) -> Option<Interval> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let to_micro = |x: f64| (x * 1e6).round_ties_even() / 1e6;
    let (months, days) = (f64::from(value.months) / by, f64::from(value.days) / by);
    if !(i32::MIN as f64..=i32::MAX as f64).contains(&months)
        || !(i32::MIN as f64..=i32::MAX as f64).contains(&days)
    {
        return None;
    }
    let (whole_months, whole_days) = (months as i32, days as i32);
    let month_rest = to_micro((months - f64::from(whole_months)) * 30.0);
    let mut seconds =
        to_micro((days - f64::from(whole_days) + month_rest - month_rest.trunc()) * SECONDS_PER_DAY);
    let mut extra_days = month_rest as i32;
    if seconds.abs() >= SECONDS_PER_DAY {
        let carried = (seconds / SECONDS_PER_DAY) as i32;
        extra_days = extra_days.checked_add(carried)?;
        seconds -= f64::from(carried) * SECONDS_PER_DAY;
    }
    let micros = (value.micros as f64 / by + seconds * 1e6).round_ties_even();
    if !(i64::MIN as f64..i64::MAX as f64).contains(&micros) {
        return None;
    }
    Some(Interval {
        months: whole_months,
        days: whole_days.checked_add(extra_days)?,
        micros: micros as i64,
    })
}

// Extremes, booleans, bits

fn keep(state: &mut AggState, value: &Datum, want: Ordering, ty: Oid) {
    let better = match state {
        AggState::Value(best) => comparator(ty)(value, best) == want,
        _ => true,
    };
    if better {
        *state = AggState::Value(value.clone());
    }
}
macro_rules! extremes {
    ($($step:ident $combine:ident $want:ident $ty:ident;)*) => { $(
        pub(super) fn $step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
            if !args[0].is_null() {
                keep(state, &args[0], Ordering::$want, throng_types::oid::$ty);
            }
            Ok(())
        }
        pub(super) fn $combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
            if let AggState::Value(value) = other {
                keep(state, &value, Ordering::$want, throng_types::oid::$ty);
            }
            Ok(())
        }
    )* };
}
extremes! {
    min_step min_combine Less ANY;
    max_step max_combine Greater ANY;
    min_padded_step min_padded_combine Less BPCHAR;
    max_padded_step max_padded_combine Greater BPCHAR;
}

/// Whichever comes first.
pub(super) fn any_value_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if matches!(state, AggState::Empty) && !args[0].is_null() {
        *state = AggState::Value(args[0].clone());
    }
    Ok(())
}
pub(super) fn any_value_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    if matches!(state, AggState::Empty) {
        *state = other;
    }
    Ok(())
}

/// The one value kept, or NULL.
pub(super) fn value_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Value(value) => Ok(value),
        _ => Ok(Datum::Null),
    }
}

fn merge_values(a: &Datum, b: &Datum, f: fn(i64, i64) -> i64) -> Datum {
    match (a, b) {
        (Datum::Bool(a), Datum::Bool(b)) => (f((*a).into(), (*b).into()) != 0).into(),
        (Datum::Int2(a), Datum::Int2(b)) => Datum::Int2(f((*a).into(), (*b).into()) as i16),
        (Datum::Int4(a), Datum::Int4(b)) => Datum::Int4(f((*a).into(), (*b).into()) as i32),
        _ => Datum::Int8(f(int(a), int(b))),
    }
}
macro_rules! bitwise {
    ($($step:ident $combine:ident $f:expr;)*) => { $(
        pub(super) fn $step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
            if !args[0].is_null() {
                *state = AggState::Value(match &*state {
                    AggState::Value(old) => merge_values(old, &args[0], $f),
                    _ => args[0].clone(),
                });
            }
            Ok(())
        }
        pub(super) fn $combine(ctx: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
            match other {
                AggState::Value(value) => $step(ctx, state, &[value]),
                _ => Ok(()),
            }
        }
    )* };
}
bitwise! {
    and_step and_combine |a, b| a & b;
    or_step or_combine |a, b| a | b;
    xor_step xor_combine |a, b| a ^ b;
}

// Strings and arrays

/// `string_agg(text, delimiter)`: the delimiter comes before each value but the first.
pub(super) fn string_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    let Datum::Text(value) = &args[0] else { return Ok(()) };
    match state {
        AggState::Text(text) => {
            text.push_str(args[1].as_str().unwrap_or(""));
            text.push_str(value);
        }
        _ => *state = AggState::Text(value.to_string()),
    }
    Ok(())
}
pub(super) fn string_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Text(text) => Ok(text.into()),
        _ => Ok(Datum::Null),
    }
}
pub(super) fn bytes_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    let Datum::Bytea(value) = &args[0] else { return Ok(()) };
    match state {
        AggState::Bytes(bytes) => {
            if let Datum::Bytea(delimiter) = &args[1] {
                bytes.extend_from_slice(delimiter);
            }
            bytes.extend_from_slice(value);
        }
        _ => *state = AggState::Bytes(value.to_vec()),
    }
    Ok(())
}
pub(super) fn bytes_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Bytes(bytes) => Ok(Datum::bytea(bytes)),
        _ => Ok(Datum::Null),
    }
}
/// The delimiters differ by row and the parts' order matters: these are never computed in parts.
pub(super) fn whole_only(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (&*state, other) {
        (_, AggState::Empty) => Ok(()),
        (AggState::Empty, other) => {
            *state = other;
            Ok(())
        }
        _ => Err(Error::internal("an ordered aggregate was computed in parts").into()),
    }
}

/// `array_agg`: NULLs too. Arrays become one array with a dimension more.
pub(super) fn array_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    match state {
        AggState::Items(items) => items.push(args[0].clone()),
        _ => *state = AggState::Items(vec![args[0].clone()]),
    }
    Ok(())
}
pub(super) fn array_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (&mut *state, other) {
        (AggState::Items(items), AggState::Items(more)) => items.extend(more),
        (AggState::Empty, other) => *state = other,
        (_, AggState::Empty) => {}
        _ => return Err(mixed()),
    }
    Ok(())
}
pub(super) fn array_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    let AggState::Items(items) = state else { return Ok(Datum::Null) };
    // The items' own kind is their type; strings of every type are text to an array's reader.
    let element = items
        .iter()
        .find(|i| !i.is_null())
        .map_or(throng_types::oid::TEXT, Datum::natural_type);
    if !matches!(items[0], Datum::Array(_)) && !items.iter().any(|i| matches!(i, Datum::Array(_))) {
        return Ok(Datum::array(Array::from_items(element, items)));
    }
    stack_arrays(items)
}

fn stack_arrays(items: Vec<Datum>) -> EvalResult {
    let subscript_error = |message: &str| Error::new(state::ARRAY_SUBSCRIPT_ERROR, message);
    let count = items.len() as i32;
    let mut stacked: Option<Array> = None;
    for item in items {
        let Datum::Array(array) = item else {
            let null = "cannot accumulate null arrays";
            return Err(Error::new(throng_types::SqlState::new("22004"), null).into());
        };
        if array.dims.is_empty() {
            return Err(subscript_error("cannot accumulate empty arrays").into());
        }
        match &mut stacked {
            None => {
                let mut first = array.as_ref().clone();
                first.dims.insert(0, throng_types::datum::Dim { len: count, lower: 1 });
                stacked = Some(first);
            }
            Some(all) if all.dims[1..] == array.dims[..] => {
                all.items.extend(array.items.iter().cloned());
            }
            Some(_) => {
                return Err(subscript_error(
                    "cannot accumulate arrays of different dimensionality",
                )
                .into());
            }
        }
    }
    Ok(stacked.map_or(Datum::Null, Datum::array))
}
