//! Windows: which rows a window function sees, and in what order.
//!
//! ```text
//!  partition    ┌───────────────────────────────────────────┐   rows with equal PARTITION BY, in ORDER BY's order
//!                 peers   peers        peers      peers          rows equal in ORDER BY
//!  frame                  └──── start … end ────┘               moves with the current row, never backwards
//! ```

pub use throng_syntax::vocabulary::{Exclude, FrameMode};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, SqlType, oid};

use crate::tree::aggregate::AggFunction;
use crate::tree::expr::{Expr, SortKey};
use throng_values::func::number::{float, int, numeric};
use throng_values::func::{
    CastContext, EvalContext, EvalStop, WindowFunction, compare, find_cast, resolve_operator,
};

/// Where a frame starts or ends. Offsets have no input row.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub mode: FrameMode,
    pub start: FrameBound,
    pub end: FrameBound,
    /// Written with BETWEEN: for showing it.
    pub between: bool,
    /// Written at all.
    pub written: bool,
    pub exclude: Exclude,
}

impl Frame {
    /// What holds where none is written: up to the current row and its peers.
    pub const DEFAULT: Frame = Frame {
        mode: FrameMode::Range,
        start: FrameBound::UnboundedPreceding,
        end: FrameBound::CurrentRow,
        between: false,
        written: false,
        exclude: Exclude::Nothing,
    };

    /// The offsets' expressions.
    pub fn offsets(&self) -> impl Iterator<Item = &Expr> {
        [&self.start, &self.end]
            .into_iter()
            .filter_map(FrameBound::offset)
    }

    pub fn offsets_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        [&mut self.start, &mut self.end]
            .into_iter()
            .filter_map(|bound| match bound {
                FrameBound::Preceding(e) | FrameBound::Following(e) => Some(e),
                _ => None,
            })
    }
}

impl FrameBound {
    pub fn offset(&self) -> Option<&Expr> {
        match self {
            FrameBound::Preceding(e) | FrameBound::Following(e) => Some(e),
            _ => None,
        }
    }
}

/// A window of a query, written in a WINDOW clause or an OVER.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub name: Option<String>,
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub frame: Frame,
}

impl Window {
    pub fn same_but_for_name(&self, other: &Window) -> bool {
        self.partition == other.partition && self.order == other.order && self.frame == other.frame
    }

    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.partition.iter().for_each(&mut *f);
        self.order.iter().for_each(|k| f(&k.expr));
        self.frame.offsets().for_each(f);
    }

    pub fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.partition.iter_mut().for_each(&mut *f);
        self.order.iter_mut().for_each(|k| f(&mut k.expr));
        self.frame.offsets_mut().for_each(f);
    }
}

/// What is computed over a window.
#[derive(Clone, Debug, PartialEq)]
pub enum Callee {
    Function(&'static WindowFunction),
    Aggregate(AggFunction),
}

impl Callee {
    pub fn name(&self) -> &str {
        match self {
            Callee::Function(f) => f.name,
            Callee::Aggregate(a) => a.name(),
        }
    }
}

/// A function computed over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    pub callee: Callee,
    pub args: Vec<Expr>,
    pub filter: Option<Expr>,
    /// Index into the query's windows.
    pub window: u32,
    pub ty: SqlType,
}

/// The types of offset that RANGE takes over a column of a type.
pub fn range_offsets(column: Oid) -> &'static [Oid] {
    match column {
        oid::INT2 | oid::INT4 => &[oid::INT2, oid::INT4, oid::INT8],
        oid::INT8 => &[oid::INT8],
        oid::FLOAT4 | oid::FLOAT8 => &[oid::FLOAT8],
        oid::NUMERIC => &[oid::NUMERIC],
        oid::DATE | oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL => {
            &[oid::INTERVAL]
        }
        _ => &[],
    }
}

#[cold]
fn bad_size() -> EvalStop {
    Error::new(
        state::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
        "invalid preceding or following size in window function",
    )
    .into()
}

#[cold]
fn mismatch() -> EvalStop {
    Error::internal("RANGE over values of different types").into()
}

/// One side of a RANGE frame: `value` is within the bound if it is not more (`at_most`) or not less
/// than `base` plus or minus (`back`) the offset.
#[derive(Clone, Copy)]
pub struct Reach {
    pub back: bool,
    pub at_most: bool,
}

/// Whether a value is within reach of the current row's; none of the values is NULL.
///
/// # Errors
/// 22013 for a negative offset; overflow of dates.
pub fn in_range(
    ctx: &EvalContext<'_>,
    value: &Datum,
    base: &Datum,
    offset: &Datum,
    reach: Reach,
) -> Result<bool, EvalStop> {
    let Reach { back, at_most } = reach;
    let within = |order: std::cmp::Ordering| {
        if at_most {
            order.is_le()
        } else {
            order.is_ge()
        }
    };
    match (base, offset) {
        (Datum::Float4(_) | Datum::Float8(_), _) => {
            float_in_range(float(value), float(base), float(offset), reach)
        }
        (Datum::Numeric(_), _) => {
            let (value, base, offset) = (numeric(value), numeric(base), numeric(offset));
            if offset.is_nan() || offset.signum() < 0 {
                return Err(bad_size());
            }
            if value.is_nan() {
                return Ok(base.is_nan() || !at_most);
            }
            if base.is_nan() {
                return Ok(at_most);
            }
            if offset.is_infinite() && base.is_infinite() && (base.signum() > 0) == back {
                return Ok(true);
            }
            let bound = if back {
                base.sub(offset)?
            } else {
                base.add(offset)?
            };
            Ok(within(value.compare(&bound)))
        }
        // The days and months of the offset say nothing about a time of day; nothing wraps at
        // midnight.
        (Datum::Time(base), Datum::Interval(by)) => {
            if by.micros < 0 {
                return Err(bad_size());
            }
            let Datum::Time(value) = value else {
                return Err(mismatch());
            };
            let by = i128::from(by.micros) * if back { -1 } else { 1 };
            Ok(within(i128::from(*value).cmp(&(i128::from(*base) + by))))
        }
        (Datum::TimeTz(base), Datum::Interval(by)) => {
            if by.micros < 0 {
                return Err(bad_size());
            }
            let Datum::TimeTz(value) = value else {
                return Err(mismatch());
            };
            let by = i128::from(by.micros) * if back { -1 } else { 1 };
            let moment = |micros: i64, zone: i32| i128::from(micros) + i128::from(zone) * 1_000_000;
            let bound = (moment(base.micros, base.zone) + by, base.zone);
            Ok(within(
                (moment(value.micros, value.zone), value.zone).cmp(&bound),
            ))
        }
        (_, Datum::Interval(by)) => {
            if by.comparable() < 0 {
                return Err(bad_size());
            }
            moment_in_range(ctx, value, base, offset, reach)
        }
        _ => {
            let by = i128::from(int(offset));
            if by < 0 {
                return Err(bad_size());
            }
            let bound = i128::from(int(base)) + if back { -by } else { by };
            Ok(within(i128::from(int(value)).cmp(&bound)))
        }
    }
}

/// NaN comes after everything, and is in reach of itself only.
fn float_in_range(value: f64, base: f64, offset: f64, reach: Reach) -> Result<bool, EvalStop> {
    let Reach { back, at_most } = reach;
    if offset.is_nan() || offset < 0.0 {
        return Err(bad_size());
    }
    if value.is_nan() {
        return Ok(base.is_nan() || !at_most);
    }
    if base.is_nan() {
        return Ok(at_most);
    }
    if offset.is_infinite() && base.is_infinite() && (base > 0.0) == back {
        return Ok(true);
    }
    let bound = if back { base - offset } else { base + offset };
    Ok(if at_most {
        value <= bound
    } else {
        value >= bound
    })
}

fn moment_in_range(
    ctx: &EvalContext<'_>,
    value: &Datum,
    base: &Datum,
    offset: &Datum,
    reach: Reach,
) -> Result<bool, EvalStop> {
    // A date is taken as its midnight.
    let midnight = |value: &Datum| match (
        value,
        find_cast(oid::DATE, oid::TIMESTAMP, CastContext::Implicit),
    ) {
        (Datum::Date(_), Some(cast)) => cast.apply(ctx, value),
        _ => Ok(value.clone()),
    };
    let (value, base) = (midnight(value)?, midnight(base)?);
    let endless = match &base {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => match *t {
            i64::MAX => Some(true),
            i64::MIN => Some(false),
            _ => None,
        },
        Datum::Interval(throng_types::Interval::INFINITY) => Some(true),
        Datum::Interval(throng_types::Interval::NEG_INFINITY) => Some(false),
        _ => None,
    };
    let unbounded = matches!(offset, Datum::Interval(i) if !i.is_finite());
    if unbounded && endless == Some(reach.back) {
        return Ok(true);
    }
    let name = if reach.back { "-" } else { "+" };
    let operator = resolve_operator(name, Some(base.natural_type()), oid::INTERVAL)?.operator;
    let bound = operator.call(ctx, &[base, offset.clone()])?;
    let order = compare::comparator(oid::ANY)(&value, &bound);
    Ok(if reach.at_most {
        order.is_le()
    } else {
        order.is_ge()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_types::Interval;
    use throng_values::func::testing::with_context;

    fn reach(value: Datum, base: Datum, offset: Datum, back: bool, at_most: bool) -> bool {
        with_context(|ctx| in_range(ctx, &value, &base, &offset, Reach { back, at_most }))
            .unwrap_or_else(|e| panic!("{e:?}"))
    }

    #[test]
    fn integers_do_not_overflow_at_the_ends() {
        let (top, one) = (Datum::Int8(i64::MAX), Datum::Int8(1));
        assert!(reach(top.clone(), top.clone(), one.clone(), false, true));
        assert!(!reach(top.clone(), top.clone(), one.clone(), false, false));
        assert!(reach(
            Datum::Int4(4),
            Datum::Int4(5),
            one.clone(),
            true,
            false
        ));
        assert!(!reach(Datum::Int4(3), Datum::Int4(5), one, true, false));
    }

    #[test]
    fn nan_is_in_reach_of_itself_only() {
        let f = Datum::Float8;
        assert!(reach(f(f64::NAN), f(f64::NAN), f(1.0), true, false));
        assert!(!reach(f(1.0), f(f64::NAN), f(1.0), true, false));
        assert!(!reach(f(f64::NAN), f(1.0), f(1.0), false, true));
        assert!(reach(
            f(f64::INFINITY),
            f(f64::INFINITY),
            f(f64::INFINITY),
            true,
            false
        ));
    }

    #[test]
    fn times_of_day_do_not_wrap() {
        let hour = |h: i64| Datum::Time(h * 3_600_000_000);
        let two_hours = Datum::Interval(Interval {
            months: 0,
            days: 0,
            micros: 7_200_000_000,
        });
        assert!(reach(hour(0), hour(1), two_hours.clone(), true, false));
        assert!(!reach(hour(1), hour(23), two_hours, false, false));
    }
}
