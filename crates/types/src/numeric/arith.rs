//! Addition to division, and rounding: the results and scales of PostgreSQL.

use super::{
    MAX_DISPLAY_SCALE, MAX_INTEGER_DIGITS, MAX_PRECISION, MAX_SCALE, MIN_SIGNIFICANT_DIGITS,
    Numeric, POWERS, Repr, power_of_ten,
};
use crate::error::state;
use crate::sqltype::SqlType;
use crate::{Error, Result};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};

#[cold]
pub(super) fn division_by_zero() -> Error {
    Error::new(state::DIVISION_BY_ZERO, "division by zero")
}

/// Both coefficients at the larger scale, in 128 bits, where they fit with room for a sum.
#[inline]
fn align(a: &Numeric, b: &Numeric) -> Option<(i128, i128, u16)> {
    let ((ca, sa), (cb, sb)) = (a.as_small()?, b.as_small()?);
    let (ca, cb) = (i128::from(ca), i128::from(cb));
    if sa == sb {
        return Some((ca, cb, sa));
    }
    let lift = sa.abs_diff(sb);
    // An i64 times 10^18 is below 2^123.
    if lift > 18 {
        return None;
    }
    let power = POWERS[usize::from(lift)];
    Some(if sa < sb {
        (ca * power, cb, sb)
    } else {
        (ca, cb * power, sa)
    })
}

/// The quotient nearest to the exact one, halves away from zero. `divisor` is not zero.
pub(super) fn divide_rounding(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let (quotient, remainder) = dividend.div_rem(divisor);
    if remainder.abs() * 2 >= divisor.abs() {
        let away = if dividend.is_negative() == divisor.is_negative() {
            1
        } else {
            -1
        };
        quotient + away
    } else {
        quotient
    }
}

impl Numeric {
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let (Some((a, s)), Some((b, t))) = (self.as_small(), other.as_small())
            && s == t
            && let Some(sum) = a.checked_add(b)
        {
            return Ok(Numeric::new(sum, s));
        }
        if let Some((a, b, scale)) = align(self, other) {
            return Ok(Numeric::from_i128(a + b, scale));
        }
        self.add_slow(other)
    }

    #[cold]
    fn add_slow(&self, other: &Numeric) -> Result<Numeric> {
        match (&self.0, &other.0) {
            (Repr::NaN, _) | (_, Repr::NaN) => Ok(Numeric::NAN),
            (Repr::Infinity, Repr::NegInfinity) | (Repr::NegInfinity, Repr::Infinity) => {
                Ok(Numeric::NAN)
            }
            (Repr::Infinity | Repr::NegInfinity, _) => Ok(self.clone()),
            (_, Repr::Infinity | Repr::NegInfinity) => Ok(other.clone()),
            _ => {
                let scale = self.scale().max(other.scale());
                let sum = self.coefficient_at(scale) + other.coefficient_at(scale);
                Numeric::from_big(sum, scale as u16)
            }
        }
    }

    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        if let Some((a, b, scale)) = align(self, other) {
            return Ok(Numeric::from_i128(a - b, scale));
        }
        self.add_slow(&other.neg())
    }

    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (Some((a, s)), Some((b, t))) = (self.as_small(), other.as_small()) {
            let product = i128::from(a) * i128::from(b);
            let scale = i32::from(s) + i32::from(t);
            if scale <= MAX_SCALE {
                return Ok(Numeric::from_i128(product, scale as u16));
            }
        }
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_infinite() || other.is_infinite() {
            return Ok(match self.signum() * other.signum() {
                0 => Numeric::NAN,
                1 => Numeric::INFINITY,
                _ => Numeric::NEG_INFINITY,
            });
        }
        let scale = self.scale() + other.scale();
        let product = self.coefficient() * other.coefficient();
        rescale(product, scale, scale.min(MAX_SCALE))
    }

    /// What division by zero, NaN and the infinities give; None for finite operands and a divisor
    /// other than zero.
    fn special_quotient(&self, divisor: &Numeric) -> Option<Result<Numeric>> {
        if self.is_nan() || divisor.is_nan() {
            return Some(Ok(Numeric::NAN));
        }
        if self.is_infinite() {
            return Some(
                match (divisor.is_infinite(), divisor.signum() * self.signum()) {
                    (true, _) => Ok(Numeric::NAN),
                    (_, 0) => Err(division_by_zero()),
                    (_, 1) => Ok(Numeric::INFINITY),
                    _ => Ok(Numeric::NEG_INFINITY),
                },
            );
        }
        if divisor.is_infinite() {
            return Some(Ok(Numeric::ZERO));
        }
        if divisor.is_zero() {
            return Some(Err(division_by_zero()));
        }
        None
    }

    /// Digits after the point of a quotient: at least 16 significant ones and no fewer than either
    /// operand shows.
    fn quotient_scale(&self, divisor: &Numeric) -> i32 {
        let mut weight = self.weight() - divisor.weight();
        if self.leading_group() <= divisor.leading_group() {
            weight -= 1;
        }
        (MIN_SIGNIFICANT_DIGITS - weight * 4)
            .max(self.scale())
            .max(divisor.scale())
            .clamp(0, MAX_DISPLAY_SCALE)
    }

    pub fn div(&self, divisor: &Numeric) -> Result<Numeric> {
        match self.special_quotient(divisor) {
            Some(special) => special,
            None => self.div_to_scale(divisor, self.quotient_scale(divisor)),
        }
    }

    /// A finite quotient rounded to a scale. The divisor is finite and not zero.
    pub(super) fn div_to_scale(&self, divisor: &Numeric, scale: i32) -> Result<Numeric> {
        // c1/10^s1 / (c2/10^s2) × 10^scale = c1 × 10^(scale - s1 + s2) / c2
        let lift = scale - self.scale() + divisor.scale();
        if let (Some((a, _)), Some((b, _)), Ok(lift)) =
            (self.as_small(), divisor.as_small(), usize::try_from(lift))
            && lift < POWERS.len()
            && let Some(dividend) = i128::from(a).checked_mul(POWERS[lift])
        {
            let b = i128::from(b);
            let (quotient, remainder) = (dividend / b, dividend % b);
            let away = if (dividend < 0) == (b < 0) { 1 } else { -1 };
            let up = if remainder.abs() * 2 >= b.abs() {
                away
            } else {
                0
            };
            return Ok(Numeric::from_i128(quotient + up, scale as u16));
        }
        let (mut dividend, mut by) = (self.coefficient(), divisor.coefficient());
        if lift >= 0 {
            dividend *= power_of_ten(lift as u32);
        } else {
            by *= power_of_ten(lift.unsigned_abs());
        }
        Numeric::from_big(divide_rounding(&dividend, &by), scale as u16)
    }

    /// The quotient's integer part: `div(a, b)`.
    pub fn div_trunc(&self, divisor: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.special_quotient(divisor) {
            return special;
        }
        let scale = self.scale().max(divisor.scale());
        let quotient = self.coefficient_at(scale) / divisor.coefficient_at(scale);
        Numeric::from_big(quotient, 0)
    }

    /// The remainder, with the dividend's sign.
    pub fn rem(&self, divisor: &Numeric) -> Result<Numeric> {
        if let Some((a, b, scale)) = align(self, divisor)
            && b != 0
        {
            return Ok(Numeric::from_i128(a % b, scale));
        }
        if self.is_nan() || divisor.is_nan() {
            return Ok(Numeric::NAN);
        }
        if divisor.is_zero() {
            return Err(division_by_zero());
        }
        if self.is_infinite() {
            return Ok(Numeric::NAN);
        }
        if divisor.is_infinite() {
            return Ok(self.clone());
        }
        let scale = self.scale().max(divisor.scale());
        let rest = self.coefficient_at(scale) % divisor.coefficient_at(scale);
        Numeric::from_big(rest, scale as u16)
    }

    pub fn neg(&self) -> Numeric {
        match &self.0 {
            Repr::Small { coefficient, scale } if *coefficient != i64::MIN => {
                Numeric::new(-coefficient, *scale)
            }
            Repr::Infinity => Numeric::NEG_INFINITY,
            Repr::NegInfinity => Numeric::INFINITY,
            _ => self.unary(|c| -c),
        }
    }

    /// To `scale` digits after the point (before it where negative), halves away from zero. Adds
    /// zeros where it has fewer.
    pub fn round(&self, scale: i32) -> Numeric {
        self.at_scale(scale, divide_rounding)
    }
    /// The same, towards zero.
    pub fn trunc(&self, scale: i32) -> Numeric {
        self.at_scale(scale, |a, b| a / b)
    }
    pub fn floor(&self) -> Numeric {
        self.at_scale(0, |a, b| a.div_floor(b))
    }
    pub fn ceil(&self) -> Numeric {
        self.at_scale(0, |a, b| a.div_ceil(b))
    }

    fn at_scale(&self, scale: i32, divide: impl Fn(&BigInt, &BigInt) -> BigInt) -> Numeric {
        if !self.is_finite() {
            return self.clone();
        }
        let scale = scale.clamp(-(MAX_INTEGER_DIGITS as i32) - 1, MAX_SCALE);
        let shown = scale.max(0) as u16;
        let drop = self.scale() - scale;
        if drop <= 0 {
            if let Some((c, _)) = self.as_small()
                && drop >= -18
            {
                let lifted = i128::from(c) * POWERS[drop.unsigned_abs() as usize];
                return Numeric::from_i128(lifted, shown);
            }
            return Numeric::from_big(self.coefficient_at(scale), shown)
                .expect("zeros after the point do not overflow");
        }
        let mut kept = divide(&self.coefficient(), &power_of_ten(drop as u32));
        if scale < 0 {
            kept *= power_of_ten(scale.unsigned_abs());
        }
        // Rounding up the largest value could add one digit; the format's edge is past what a
        // column or a client holds.
        Numeric::from_big(kept, shown).unwrap_or(if self.signum() < 0 {
            Numeric::NEG_INFINITY
        } else {
            Numeric::INFINITY
        })
    }

    /// The smallest scale that shows the value: `min_scale`.
    pub fn min_scale(&self) -> i32 {
        let mut scale = self.scale();
        let mut rest = self.coefficient();
        if rest.is_zero() {
            return 0;
        }
        let ten = BigInt::from(10);
        while scale > 0 {
            let (quotient, remainder) = rest.div_rem(&ten);
            if !remainder.is_zero() {
                break;
            }
            rest = quotient;
            scale -= 1;
        }
        scale
    }

    /// Without trailing zeros after the point.
    pub fn trim_scale(&self) -> Numeric {
        if self.is_finite() {
            self.trunc(self.min_scale())
        } else {
            self.clone()
        }
    }

    pub fn is_integral(&self) -> bool {
        self.is_infinite() || (self.is_finite() && self.min_scale() == 0)
    }

    /// As a `numeric(precision, scale)` column takes it: rounded, or 22003.
    pub fn apply_modifier(&self, typmod: i32) -> Result<Numeric> {
        let Some((precision, scale)) = SqlType::numeric_precision(typmod) else {
            return Ok(self.clone());
        };
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_infinite() {
            return Err(field_overflow().detail(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            )));
        }
        let rounded = self.round(scale);
        let integer_digits = i64::from(precision - scale);
        if !rounded.is_zero() && rounded.exponent() >= integer_digits {
            let limit = match integer_digits {
                0 => "1".to_string(),
                n => format!("10^{n}"),
            };
            return Err(field_overflow().detail(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
            )));
        }
        Ok(rounded)
    }
}

#[cold]
fn field_overflow() -> Error {
    Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
}

const _: () = assert!(
    MAX_PRECISION <= 1000,
    "precision and scale fit a type modifier's halves"
);

/// `coefficient × 10^-from` with `to` digits after the point.
pub(super) fn rescale(coefficient: BigInt, from: i32, to: i32) -> Result<Numeric> {
    let coefficient = if to >= from {
        coefficient * power_of_ten((to - from) as u32)
    } else {
        divide_rounding(&coefficient, &power_of_ten((from - to) as u32))
    };
    Numeric::from_big(coefficient, to as u16)
}
