//! Exact decimal numbers of any size, with PostgreSQL's display scales, NaN and the infinities.
//!
//! A finite value is `coefficient × 10^-scale`. The scale is part of what is shown (`1.50` is not
//! `1.5`) but not of what is compared. A coefficient that fits 64 bits is held inline and computed
//! in 128 bits; a longer one is shared.
//!
//! The rules for the scale of a result follow PostgreSQL's `numeric.c`, whose digits are groups of
//! four decimal ones; where its choice depends on them, [`Numeric::weight`] and
//! [`Numeric::leading_group`] say what those groups would be.

mod arith;
mod decimal;
mod math;
mod text;
mod wire;

use crate::error::state;
use crate::{Error, Result};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

pub use decimal::Decimal;
pub use text::ParseError;
pub use wire::{Groups, WireSign};

/// Digits before the decimal point that a value may have.
pub const MAX_INTEGER_DIGITS: i64 = 131_072;
/// Digits after the decimal point that a value may have.
pub const MAX_SCALE: i32 = 16_383;
/// Digits after the decimal point that a computed result is given at most.
const MAX_DISPLAY_SCALE: i32 = 1000;
/// Significant digits that an inexact result is given at least.
const MIN_SIGNIFICANT_DIGITS: i32 = 16;
/// The largest precision and scale a column may declare.
pub const MAX_PRECISION: i32 = 1000;

#[derive(Clone)]
pub struct Numeric(Repr);

#[derive(Clone)]
enum Repr {
    Small {
        coefficient: i64,
        scale: u16,
    },
    /// Only coefficients that do not fit `Small`.
    Big(Arc<Big>),
    NaN,
    Infinity,
    NegInfinity,
}

struct Big {
    coefficient: BigInt,
    scale: u16,
}

const _: () = assert!(size_of::<Numeric>() <= 16);

/// The powers of ten that fit 128 bits.
static POWERS: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

static TEN: LazyLock<BigInt> = LazyLock::new(|| BigInt::from(10));

fn power_of_ten(exponent: u32) -> BigInt {
    match POWERS.get(exponent as usize) {
        Some(&p) => BigInt::from(p),
        None => TEN.pow(exponent),
    }
}

#[cold]
pub(crate) fn overflow() -> Error {
    Error::new(
        state::NUMERIC_VALUE_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

impl Numeric {
    pub const ZERO: Numeric = Numeric(Repr::Small {
        coefficient: 0,
        scale: 0,
    });
    pub const ONE: Numeric = Numeric(Repr::Small {
        coefficient: 1,
        scale: 0,
    });
    pub const NAN: Numeric = Numeric(Repr::NaN);
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    pub const NEG_INFINITY: Numeric = Numeric(Repr::NegInfinity);

    /// `coefficient × 10^-scale`.
    pub const fn new(coefficient: i64, scale: u16) -> Numeric {
        Numeric(Repr::Small { coefficient, scale })
    }
    /// `coefficient × 10^-scale`.
    pub fn from_i128(coefficient: i128, scale: u16) -> Numeric {
        match i64::try_from(coefficient) {
            Ok(coefficient) => Numeric::new(coefficient, scale),
            Err(_) => Numeric(Repr::Big(Arc::new(Big {
                coefficient: coefficient.into(),
                scale,
            }))),
        }
    }
    /// `coefficient × 10^-scale`; 22003 for more digits than the format has.
    pub fn from_big(coefficient: BigInt, scale: u16) -> Result<Numeric> {
        if let Some(small) = coefficient.to_i64() {
            return Ok(Numeric::new(small, scale));
        }
        let digits = decimal_digits(&coefficient);
        if digits - i64::from(scale) > MAX_INTEGER_DIGITS {
            return Err(overflow());
        }
        Ok(Numeric(Repr::Big(Arc::new(Big { coefficient, scale }))))
    }

    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }
    pub fn is_infinite(&self) -> bool {
        matches!(self.0, Repr::Infinity | Repr::NegInfinity)
    }
    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small { .. } | Repr::Big(_))
    }
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small { coefficient: 0, .. })
    }
    /// -1, 0 or 1; NaN has none and counts as 1.
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Repr::Small { coefficient, .. } => coefficient.signum() as i32,
            Repr::Big(big) => {
                if big.coefficient.is_negative() {
                    -1
                } else {
                    1
                }
            }
            Repr::NegInfinity => -1,
            Repr::Infinity | Repr::NaN => 1,
        }
    }
    /// Digits after the point that are shown; 0 for NaN and the infinities.
    pub fn scale(&self) -> i32 {
        match &self.0 {
            Repr::Small { scale, .. } => i32::from(*scale),
            Repr::Big(big) => i32::from(big.scale),
            _ => 0,
        }
    }
    /// The coefficient of a finite value; 0 otherwise.
    pub fn coefficient(&self) -> BigInt {
        match &self.0 {
            Repr::Small { coefficient, .. } => BigInt::from(*coefficient),
            Repr::Big(big) => big.coefficient.clone(),
            _ => BigInt::zero(),
        }
    }
    /// Coefficient and scale where the coefficient fits 64 bits.
    #[inline]
    pub fn as_small(&self) -> Option<(i64, u16)> {
        match self.0 {
            Repr::Small { coefficient, scale } => Some((coefficient, scale)),
            _ => None,
        }
    }

    /// Whether it has so many digits, a thousand or more, that computing with it takes its time.
    #[inline]
    pub fn is_wide(&self) -> bool {
        const BITS: u64 = 3_300;
        matches!(&self.0, Repr::Big(big) if big.coefficient.bits() > BITS)
    }

    /// About how many bytes its digits take, as they are kept.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Repr::Big(big) => (big.coefficient.bits() / 8) as usize,
            _ => 0,
        }
    }

    /// SQL's order: by value whatever the scale; NaN equals itself and is above everything.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        if let (
            Repr::Small {
                coefficient: a,
                scale: s,
            },
            Repr::Small {
                coefficient: b,
                scale: t,
            },
        ) = (&self.0, &other.0)
        {
            if s == t {
                return a.cmp(b);
            }
            let (more, less) = (*s.max(t), *s.min(t));
            // 10^19 times an i64 fits 128 bits.
            if more - less <= 19 {
                let lift = POWERS[usize::from(more - less)];
                let (a, b) = (i128::from(*a), i128::from(*b));
                return if s < t {
                    (a * lift).cmp(&b)
                } else {
                    a.cmp(&(b * lift))
                };
            }
        }
        self.compare_slow(other)
    }

    #[cold]
    fn compare_slow(&self, other: &Numeric) -> Ordering {
        let rank = |n: &Numeric| match n.0 {
            Repr::NegInfinity => 0,
            Repr::Infinity => 2,
            Repr::NaN => 3,
            _ => 1,
        };
        match rank(self).cmp(&rank(other)) {
            Ordering::Equal if self.is_finite() => {}
            unequal => return unequal,
        }
        match self.signum().cmp(&other.signum()) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
        // Far-apart magnitudes are told by their digits alone.
        let magnitudes = self.exponent().cmp(&other.exponent());
        if magnitudes != Ordering::Equal {
            return if self.signum() < 0 {
                magnitudes.reverse()
            } else {
                magnitudes
            };
        }
        let scale = self.scale().max(other.scale());
        self.coefficient_at(scale).cmp(&other.coefficient_at(scale))
    }

    /// The coefficient this value has at a scale that is not smaller than its own.
    fn coefficient_at(&self, scale: i32) -> BigInt {
        let lift = (scale - self.scale()) as u32;
        let coefficient = self.coefficient();
        if lift == 0 {
            coefficient
        } else {
            coefficient * power_of_ten(lift)
        }
    }

    /// Decimal exponent of the leading digit: 0 for 1 to 9.99…, -1 for 0.1. `i64::MIN` for zero.
    pub fn exponent(&self) -> i64 {
        let digits = match &self.0 {
            Repr::Small { coefficient: 0, .. } => return i64::MIN,
            Repr::Small { coefficient, .. } => i64::from(coefficient.unsigned_abs().ilog10()) + 1,
            Repr::Big(big) => decimal_digits(&big.coefficient),
            _ => return i64::MIN,
        };
        digits - 1 - i64::from(self.scale())
    }

    /// Where the first nonzero group of four digits stands: 0 for 1 to 9999, -1 for 0.0001 to
    /// 0.9999. 0 for zero.
    fn weight(&self) -> i32 {
        if self.is_zero() {
            0
        } else {
            self.exponent().div_euclid(4) as i32
        }
    }

    /// The first nonzero group of four digits, 1 to 9999; 0 for zero.
    fn leading_group(&self) -> i32 {
        self.leading_groups(1) as i32
    }

    /// The first `n` groups (up to four) as one number, padded with zeros.
    fn leading_groups(&self, n: i32) -> i64 {
        if self.is_zero() {
            return 0;
        }
        // The digit just before position `low` is the last one wanted.
        let low = (self.weight() - n + 1) * 4;
        let shift = self.scale() + low;
        let coefficient = self.coefficient().abs();
        let groups = if shift >= 0 {
            coefficient / power_of_ten(shift as u32)
        } else {
            coefficient * power_of_ten(shift.unsigned_abs())
        };
        groups.to_i64().unwrap_or(i64::MAX)
    }

    /// The nearest integer, halves away from zero, where it fits.
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128().and_then(|v| i64::try_from(v).ok())
    }

    /// The nearest integer, halves away from zero, where it fits.
    pub fn to_i128(&self) -> Option<i128> {
        if let Some((c, 0)) = self.as_small() {
            return Some(c.into());
        }
        if !self.is_finite() {
            return None;
        }
        let rounded = self.round(0);
        match &rounded.0 {
            Repr::Small { coefficient, .. } => Some(i128::from(*coefficient)),
            Repr::Big(big) => big.coefficient.to_i128(),
            _ => None,
        }
    }

    /// The nearest double; too large a value is an infinity.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Repr::Small {
                coefficient,
                scale: 0,
            } => *coefficient as f64,
            Repr::NaN => f64::NAN,
            Repr::Infinity => f64::INFINITY,
            Repr::NegInfinity => f64::NEG_INFINITY,
            // The standard library's reading of decimal text rounds correctly.
            _ => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// As PostgreSQL casts: to 15 significant digits.
    pub fn from_f64(value: f64) -> Numeric {
        Numeric::from_float_digits(value, 15)
    }
    /// As PostgreSQL casts: to 6 significant digits.
    pub fn from_f32(value: f32) -> Numeric {
        Numeric::from_float_digits(f64::from(value), 6)
    }
    fn from_float_digits(value: f64, digits: usize) -> Numeric {
        if value.is_nan() {
            return Numeric::NAN;
        }
        if value.is_infinite() {
            return if value > 0.0 {
                Numeric::INFINITY
            } else {
                Numeric::NEG_INFINITY
            };
        }
        let shown = format!("{value:.*e}", digits - 1);
        let parsed: Numeric = shown.parse().unwrap_or(Numeric::ZERO);
        // `%g` drops trailing zeros.
        parsed.trim_scale()
    }

    fn unary(&self, f: impl FnOnce(BigInt) -> BigInt) -> Numeric {
        match &self.0 {
            Repr::Small { .. } | Repr::Big(_) => {
                Numeric::from_big(f(self.coefficient()), self.scale() as u16)
                    .expect("a change of sign adds no digits")
            }
            _ => self.clone(),
        }
    }
    pub fn abs(&self) -> Numeric {
        match &self.0 {
            Repr::Small { coefficient, scale } if *coefficient != i64::MIN => {
                Numeric::new(coefficient.abs(), *scale)
            }
            Repr::NegInfinity => Numeric::INFINITY,
            _ => self.unary(|c| c.abs()),
        }
    }
    /// -1, 0 or 1, or NaN.
    pub fn sign(&self) -> Numeric {
        if self.is_nan() {
            Numeric::NAN
        } else {
            Numeric::new(self.signum().into(), 0)
        }
    }
}

/// How many decimal digits a nonzero integer has.
fn decimal_digits(value: &BigInt) -> i64 {
    /// More than the error of the logarithm below, up to the longest value.
    const UNSURE: f64 = 1e-6;
    let mut limbs = value.magnitude().iter_u64_digits();
    let after = limbs.len().saturating_sub(1);
    let Some(high) = limbs.next_back() else {
        return 1;
    };
    let low = limbs.next_back().unwrap_or(0);
    let leading = high as f64 + low as f64 / 2f64.powi(64);
    let log = leading.log10() + after as f64 * 64.0 * std::f64::consts::LOG10_2;
    if (log - log.round()).abs() > UNSURE {
        return log as i64 + 1;
    }
    // A power of ten is near: the value is at least that or not.
    let power = log.round() as i64;
    power + i64::from(value.magnitude() >= power_of_ten(power as u32).magnitude())
}

impl From<i64> for Numeric {
    fn from(v: i64) -> Numeric {
        Numeric::new(v, 0)
    }
}
impl From<i32> for Numeric {
    fn from(v: i32) -> Numeric {
        Numeric::new(v.into(), 0)
    }
}
impl From<i16> for Numeric {
    fn from(v: i16) -> Numeric {
        Numeric::new(v.into(), 0)
    }
}
impl From<i128> for Numeric {
    fn from(v: i128) -> Numeric {
        Numeric::from_i128(v, 0)
    }
}

impl PartialEq for Numeric {
    /// Structural: value and scale. SQL's equality is [`Numeric::compare`].
    fn eq(&self, other: &Numeric) -> bool {
        match (&self.0, &other.0) {
            (
                Repr::Small {
                    coefficient: a,
                    scale: s,
                },
                Repr::Small {
                    coefficient: b,
                    scale: t,
                },
            ) => a == b && s == t,
            (Repr::Big(a), Repr::Big(b)) => a.scale == b.scale && a.coefficient == b.coefficient,
            (Repr::NaN, Repr::NaN)
            | (Repr::Infinity, Repr::Infinity)
            | (Repr::NegInfinity, Repr::NegInfinity) => true,
            _ => false,
        }
    }
}
impl Eq for Numeric {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn n(text: &str) -> Numeric {
        text.parse().unwrap()
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?[0-9]{1,12}(\\.[0-9]{1,9})?",
            "-?[0-9]{1,45}(\\.[0-9]{1,45})?"
        ]
    }

    #[test]
    fn digits_are_counted_beside_powers_of_ten() {
        for power in (0..60).chain([1_000, 4_095, 131_000]) {
            let ten = power_of_ten(power);
            assert_eq!(decimal_digits(&ten), i64::from(power) + 1);
            assert_eq!(decimal_digits(&(&ten * 3)), i64::from(power) + 1);
            let less: BigInt = ten - 1;
            assert_eq!(decimal_digits(&-less), i64::from(power).max(1));
        }
    }

    #[test]
    fn long_digits_are_read_in_halves() {
        for length in [1, 1_023, 1_024, 1_025, 2_048, 2_049, 4_097, 10_000, 30_001] {
            let digits: String = (0..length)
                .map(|i| (b'0' + (i * i % 10) as u8) as char)
                .collect();
            let value: Option<num_bigint::BigUint> = digits.parse().ok();
            assert_eq!(text::from_digits(&digits), value);
            let value = value.expect("digits");
            assert_eq!(text::to_digits(&value), value.to_str_radix(10));
            let power = num_bigint::BigUint::from(10u8).pow(length);
            assert_eq!(
                text::to_digits(&power),
                format!("1{}", "0".repeat(length as usize))
            );
            assert_eq!(text::to_digits(&(power - 1u8)), "9".repeat(length as usize));
        }
    }

    proptest! {
        /// The inline form and the long form compute alike: moved far away and back, sums and
        /// products agree.
        #[test]
        fn small_and_large_agree(a in text(), b in text()) {
            let (a, b) = (n(&a), n(&b));
            let far = n("1e60");
            let moved = a.add(&far).unwrap().add(&b).unwrap().sub(&far).unwrap();
            prop_assert_eq!(a.add(&b).unwrap().compare(&moved), Ordering::Equal);
            let product = a.mul(&far).unwrap().mul(&b).unwrap();
            prop_assert_eq!(a.mul(&b).unwrap().mul(&far).unwrap().compare(&product), Ordering::Equal);
        }

        #[test]
        fn division_and_remainder_fit(a in text(), b in text()) {
            let (a, b) = (n(&a), n(&b));
            prop_assume!(!b.is_zero());
            let back = a.div_trunc(&b).unwrap().mul(&b).unwrap().add(&a.rem(&b).unwrap()).unwrap();
            prop_assert_eq!(back.compare(&a), Ordering::Equal);
        }

        #[test]
        fn text_groups_and_stored_bytes_come_back(a in text()) {
            let a = n(&a);
            prop_assert_eq!(&n(&a.to_string()), &a);
            prop_assert_eq!(&Numeric::from_groups(&a.to_groups()).unwrap(), &a);
            let mut stored = Vec::new();
            a.write_stored(&mut stored);
            prop_assert_eq!(&Numeric::read_stored(&stored).unwrap(), &a);
        }
    }

    #[test]
    fn scales_of_results() {
        let shown = |r: Result<Numeric>| r.unwrap().to_string();
        assert_eq!(shown(n("1").div(&n("3"))), "0.33333333333333333333");
        assert_eq!(shown(n("10000").div(&n("3"))), "3333.3333333333333333");
        assert_eq!(shown(n("1.10").mul(&n("2.0"))), "2.200");
        assert_eq!(shown(n("2").sqrt()), "1.414213562373095");
        assert_eq!(shown(n("2").power(&n("0.5"))), "1.4142135623730950");
        assert_eq!(shown(n("1").exp()), "2.7182818284590452");
        assert_eq!(n("2.5").round(0).to_string(), "3");
        assert_eq!(n("-1250").round(-2).to_string(), "-1300");
        assert_eq!(n("NaN").compare(&n("Infinity")), Ordering::Greater);
    }

    #[test]
    fn limits() {
        assert!("1e131071".parse::<Numeric>().is_ok());
        assert_eq!("1e131072".parse::<Numeric>(), Err(ParseError::Overflow));
        let precise = |v: &str, p, s| n(v).apply_modifier(crate::SqlType::numeric_modifier(p, s));
        assert_eq!(precise("999.994", 5, 2).unwrap().to_string(), "999.99");
        let error = precise("999.995", 5, 2).unwrap_err();
        assert_eq!(error.message(), "numeric field overflow");
        let detail =
            "A field with precision 5, scale 2 must round to an absolute value less than 10^3.";
        assert_eq!(error.fields().detail.as_deref(), Some(detail));
    }
}
