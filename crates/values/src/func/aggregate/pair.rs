//! Aggregates of pairs of numbers: correlation, covariance, linear regression; Youngs and Cramer's
//! running sums, as PostgreSQL's are, so that results agree to the last digit for the same order of
//! rows.

use crate::func::aggregate::{AggState, Step};
use crate::func::number::{float, float_overflow};
use crate::func::{EvalContext, EvalResult};
use throng_types::Datum;

/// Sums over pairs (Y, X): `sxx` and its kin are of deviations from the mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairSums {
    count: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

impl PairSums {
    /// None: out of range.
    fn with(self, y: f64, x: f64) -> Option<PairSums> {
        let mut new = PairSums {
            count: self.count + 1.0,
            sx: self.sx + x,
            sy: self.sy + y,
            ..self
        };
        if self.count > 0.0 {
            let (dx, dy) = (x * new.count - new.sx, y * new.count - new.sy);
            let scale = 1.0 / (new.count * self.count);
            new.sxx += dx * dx * scale;
            new.syy += dy * dy * scale;
            new.sxy += dx * dy * scale;
            let finite_x = !self.sx.is_infinite() && !x.is_infinite();
            let finite_y = !self.sy.is_infinite() && !y.is_infinite();
            let over_x = new.sx.is_infinite() || new.sxx.is_infinite();
            let over_y = new.sy.is_infinite() || new.syy.is_infinite();
            let over_xy = new.sxy.is_infinite();
            if (over_x && finite_x) || (over_y && finite_y) || (over_xy && finite_x && finite_y) {
                return None;
            }
            for sum in [&mut new.sxx, &mut new.syy, &mut new.sxy] {
                if sum.is_infinite() {
                    *sum = f64::NAN;
                }
            }
        } else {
            if !x.is_finite() {
                (new.sxx, new.sxy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (new.syy, new.sxy) = (f64::NAN, f64::NAN);
            }
        }
        Some(new)
    }

    /// The sums of both; None: out of range.
    fn and(self, other: PairSums) -> Option<PairSums> {
        if self.count == 0.0 {
            return Some(other);
        }
        if other.count == 0.0 {
            return Some(self);
        }
        let count = self.count + other.count;
        let dx = self.sx / self.count - other.sx / other.count;
        let dy = self.sy / self.count - other.sy / other.count;
        let scale = self.count * other.count / count;
        let both = PairSums {
            count,
            sx: self.sx + other.sx,
            sxx: self.sxx + other.sxx + scale * dx * dx,
            sy: self.sy + other.sy,
            syy: self.syy + other.syy + scale * dy * dy,
            sxy: self.sxy + other.sxy + scale * dx * dy,
        };
        let over =
            |new: f64, a: f64, b: f64| new.is_infinite() && !a.is_infinite() && !b.is_infinite();
        let out = over(both.sxx, self.sxx, other.sxx)
            || over(both.syy, self.syy, other.syy)
            || over(both.sxy, self.sxy, other.sxy);
        (!out).then_some(both)
    }
}

pub(in crate::func) fn pair_step(
    _: &EvalContext<'_>,
    state: &mut AggState,
    args: &[Datum],
) -> Step {
    if args.iter().any(Datum::is_null) {
        return Ok(());
    }
    let sums = sums(state).with(float(&args[0]), float(&args[1]));
    *state = AggState::Pairs(Box::new(sums.ok_or_else(float_overflow)?));
    Ok(())
}

pub(in crate::func) fn pair_combine(
    _: &EvalContext<'_>,
    state: &mut AggState,
    other: AggState,
) -> Step {
    let both = sums(state).and(sums(&other)).ok_or_else(float_overflow)?;
    *state = AggState::Pairs(Box::new(both));
    Ok(())
}

fn sums(state: &AggState) -> PairSums {
    match state {
        AggState::Pairs(sums) => **sums,
        _ => PairSums::default(),
    }
}

/// What the sums of at least so many pairs come to; NULL for fewer.
fn of_sums(state: &AggState, least: f64, f: impl FnOnce(&PairSums) -> Option<f64>) -> EvalResult {
    let sums = sums(state);
    if sums.count < least {
        return Ok(Datum::Null);
    }
    Ok(f(&sums).into())
}

pub(in crate::func) fn pair_count(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    Ok(Datum::Int8(sums(&state).count as i64))
}
pub(in crate::func) fn pair_sxx(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| Some(s.sxx))
}
pub(in crate::func) fn pair_syy(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| Some(s.syy))
}
pub(in crate::func) fn pair_sxy(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| Some(s.sxy))
}
pub(in crate::func) fn pair_average_x(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| Some(s.sx / s.count))
}
pub(in crate::func) fn pair_average_y(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| Some(s.sy / s.count))
}
pub(in crate::func) fn covar_pop(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| Some(s.sxy / s.count))
}
pub(in crate::func) fn covar_samp(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 2.0, |s| Some(s.sxy / (s.count - 1.0)))
}
/// A horizontal or vertical line correlates with nothing.
pub(in crate::func) fn correlation(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| {
        (s.sxx != 0.0 && s.syy != 0.0).then(|| s.sxy / (s.sxx * s.syy).sqrt())
    })
}
pub(in crate::func) fn regr_r2(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| match (s.sxx == 0.0, s.syy == 0.0) {
        (true, _) => None,
        (_, true) => Some(1.0),
        _ => Some((s.sxy * s.sxy) / (s.sxx * s.syy)),
    })
}
pub(in crate::func) fn regr_slope(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| (s.sxx != 0.0).then(|| s.sxy / s.sxx))
}
pub(in crate::func) fn regr_intercept(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    of_sums(&state, 1.0, |s| {
        (s.sxx != 0.0).then(|| (s.sy - s.sx * s.sxy / s.sxx) / s.count)
    })
}
