//! Aggregates: the state each group keeps, and what it becomes.
//!
//! Integer sums run in 128 bits and averages of integers keep sum and count, so no order of rows
//! can overflow on the way. Float variances follow Youngs and Cramer, as PostgreSQL's do, so that
//! results agree to the last digit for the same order of rows.

pub(super) mod accumulate;
pub(super) mod extreme;
pub(super) mod ordered;
pub(super) mod other;
pub(super) mod pair;
pub mod support;
pub(super) mod table;
pub mod transition;

use std::cmp::Ordering;

use super::number::{float, float_overflow, int, numeric};
use super::{EvalContext, EvalResult, EvalStop};
use pair::PairSums;
pub use table::AGGREGATES;
use throng_types::numeric::Decimal;
use throng_types::{Datum, Error, Numeric};

/// What an aggregate has gathered of a group.
#[derive(Clone, Debug, Default)]
pub enum AggState {
    #[default]
    Empty,
    Count(i64),
    /// One value so far: min, max, bool_and, sums of floats…
    Value(Datum),
    /// Integers: how many, and their sum.
    Integers {
        count: i64,
        sum: i128,
    },
    Numerics(Box<NumericSums>),
    Floats {
        count: f64,
        sum: f64,
        squares: f64,
    },
    /// The sum's parts wide enough not to overflow on the way.
    Intervals {
        count: i64,
        months: i64,
        days: i64,
        micros: i128,
        infinite: (i64, i64),
    },
    /// Of pairs of numbers.
    Pairs(Box<PairSums>),
    /// Values behind each other, each with what separates it from the one before.
    Joined(Joined),
    Items(Vec<Datum>),
    /// A value and what it was chosen by.
    Chosen(Box<(Datum, Datum)>),
    /// How many there are of each kind.
    Counts(Vec<i32>),
}

/// Values behind each other, each after its own separator, the first one's too: so two such
/// states are joined by putting one behind the other.
#[derive(Clone, Debug)]
pub struct Joined {
    bytes: Vec<u8>,
    /// The length of the first separator, which is not shown.
    hidden: usize,
}

impl Joined {
    /// No value yet; the first will come after a separator of `hidden` bytes.
    pub(super) fn new(hidden: usize) -> Joined {
        let bytes = Vec::new();
        Joined { bytes, hidden }
    }

    /// The values, with what separates them.
    pub(super) fn shown(&self) -> &[u8] {
        self.bytes.get(self.hidden..).unwrap_or_default()
    }

    pub(super) fn into_shown(mut self) -> Vec<u8> {
        self.bytes.drain(..self.hidden.min(self.bytes.len()));
        self.bytes
    }
}

/// Sums for numeric averages and variances. Infinities and NaN are counted apart.
#[derive(Clone, Debug)]
pub struct NumericSums {
    count: i64,
    sum: Numeric,
    squares: Numeric,
    with_squares: bool,
    nan: i64,
    positive: i64,
    negative: i64,
    /// The most digits after the point of any finite value, and how many values have so many: the
    /// sum shows them.
    scale: i32,
    with_scale: i64,
}

impl AggState {
    /// What finite numerics make that add up to `sum`, `with_scale` of them with all its digits
    /// after the point.
    pub fn of_numerics(count: i64, sum: Decimal, with_scale: i64) -> AggState {
        AggState::Numerics(Box::new(NumericSums {
            count,
            sum: sum.to_numeric(),
            scale: sum.scale.into(),
            with_scale,
            ..NumericSums::new(false)
        }))
    }
    /// Whether its value takes longer to make than an event loop should be held.
    pub fn ends_long(&self) -> bool {
        /// Bytes and items that are moved in less than a millisecond.
        const MANY: (usize, usize) = (4 << 20, 64 << 10);
        match self {
            AggState::Numerics(sums) => sums.sum.is_wide() || sums.squares.is_wide(),
            AggState::Joined(joined) => joined.bytes.len() > MANY.0,
            AggState::Items(items) => items.len() > MANY.1,
            _ => false,
        }
    }
    /// Whether it grows with every row.
    pub fn gathers(&self) -> bool {
        matches!(self, AggState::Joined(_) | AggState::Items(_))
    }

    /// Adds a separator, for the caller to add the value behind it.
    pub(super) fn separate(&mut self, separator: &[u8]) -> Result<&mut Vec<u8>, EvalStop> {
        if matches!(self, AggState::Empty) {
            *self = AggState::Joined(Joined::new(separator.len()));
        }
        match self {
            AggState::Joined(joined) => {
                joined.bytes.extend_from_slice(separator);
                Ok(&mut joined.bytes)
            }
            _ => Err(mixed()),
        }
    }
}

pub(super) fn joined_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    match (&mut *state, other) {
        (AggState::Joined(joined), AggState::Joined(more)) => {
            joined.bytes.extend_from_slice(&more.bytes);
        }
        (AggState::Empty, other) => *state = other,
        (_, AggState::Empty) => {}
        _ => return Err(mixed()),
    }
    Ok(())
}

pub(super) type Step = Result<(), EvalStop>;
pub(super) type Undone = Result<bool, EvalStop>;

pub(super) fn empty() -> AggState {
    AggState::Empty
}
pub(super) fn zero() -> AggState {
    AggState::Count(0)
}

#[cold]
pub(super) fn mixed() -> EvalStop {
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
pub(super) fn count_undo(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Undone {
    if let AggState::Count(n) = state
        && args.first().is_none_or(|a| !a.is_null())
    {
        *n -= 1;
    }
    Ok(true)
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
        _ => {
            *state = AggState::Integers {
                count: 1,
                sum: value,
            }
        }
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
pub(super) fn integer_undo(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Undone {
    if let AggState::Integers { count, sum } = state
        && !args[0].is_null()
    {
        *count -= 1;
        *sum -= i128::from(int(&args[0]));
        if *count == 0 {
            *state = AggState::Empty;
        }
    }
    Ok(true)
}
/// `sum(smallint)`, `sum(integer)`: a bigint.
pub(super) fn sum_int8(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Integers { sum, .. } => Ok(i64::try_from(sum)
            .map_err(|_| super::number::bigint_out_of_range())?
            .into()),
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
        AggState::Integers { count, sum } => {
            Ok(Numeric::from(sum).div(&Numeric::from(count))?.into())
        }
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
            scale: 0,
            with_scale: 0,
        }
    }
    fn add(&mut self, value: &Numeric) -> Result<(), Error> {
        if value.is_nan() {
            self.nan += 1;
        } else if value.is_infinite() {
            *if value.signum() > 0 {
                &mut self.positive
            } else {
                &mut self.negative
            } += 1;
        } else {
            self.sum = self.sum.add(value)?;
            if self.with_squares {
                self.squares = self.squares.add(&value.mul(value)?)?;
            }
            match value.scale().cmp(&self.scale) {
                Ordering::Greater => (self.scale, self.with_scale) = (value.scale(), 1),
                Ordering::Equal => self.with_scale += 1,
                Ordering::Less => {}
            }
        }
        self.count += 1;
        Ok(())
    }
    /// Takes a value out again; false where nobody knows how many digits the rest of the values
    /// have.
    fn remove(&mut self, value: &Numeric) -> Result<bool, Error> {
        if value.is_nan() {
            self.nan -= 1;
        } else if value.is_infinite() {
            *if value.signum() > 0 {
                &mut self.positive
            } else {
                &mut self.negative
            } -= 1;
        } else {
            if value.scale() == self.scale && self.scale > 0 {
                if self.with_scale == 1 {
                    return Ok(false);
                }
                self.with_scale -= 1;
            }
            self.sum = self.sum.sub(value)?;
            if self.with_squares {
                self.squares = self.squares.sub(&value.mul(value)?)?;
            }
        }
        self.count -= 1;
        Ok(true)
    }
    fn merge(&mut self, other: &NumericSums) -> Result<(), Error> {
        self.sum = self.sum.add(&other.sum)?;
        self.squares = self.squares.add(&other.squares)?;
        self.count += other.count;
        self.nan += other.nan;
        self.positive += other.positive;
        self.negative += other.negative;
        match other.scale.cmp(&self.scale) {
            Ordering::Greater => (self.scale, self.with_scale) = (other.scale, other.with_scale),
            Ordering::Equal => self.with_scale += other.with_scale,
            Ordering::Less => {}
        }
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
    if args[0].is_null() {
        Ok(())
    } else {
        numeric_add(state, numeric(&args[0]), false)
    }
}
/// Keeps the sum of squares too; takes integers and numerics.
pub(super) fn squares_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    match &args[0] {
        Datum::Null => Ok(()),
        Datum::Numeric(v) => numeric_add(state, v, true),
        v => numeric_add(state, &Numeric::from(int(v)), true),
    }
}
pub(super) fn numeric_undo(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Undone {
    let AggState::Numerics(sums) = state else {
        return Ok(true);
    };
    let undone = match &args[0] {
        Datum::Null => return Ok(true),
        _ if sums.count == 1 => {
            *state = AggState::Empty;
            return Ok(true);
        }
        Datum::Numeric(v) => sums.remove(v)?,
        v => sums.remove(&Numeric::from(int(v)))?,
    };
    Ok(undone)
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
    let AggState::Numerics(sums) = state else {
        return Ok(Datum::Null);
    };
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
    // The root has the digits of what it is taken from.
    Ok(if root {
        variance.sqrt_to_scale(variance.scale())?
    } else {
        variance
    }
    .into())
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
        AggState::Floats {
            count,
            sum,
            squares,
        } => (count, sum, squares),
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
    *state = AggState::Floats {
        count,
        sum,
        squares,
    };
    Ok(())
}
pub(super) fn float_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    let AggState::Floats {
        count: n2,
        sum: s2,
        squares: q2,
    } = other
    else {
        return Ok(());
    };
    let AggState::Floats {
        count,
        sum,
        squares,
    } = state
    else {
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
        AggState::Floats { count, squares, .. } if count > sample => {
            Some(squares / (count - sample))
        }
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
