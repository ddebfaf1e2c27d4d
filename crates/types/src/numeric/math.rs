//! Roots, powers and logarithms of numerics, with PostgreSQL's choice of how many digits to give.
//!
//! The values come from binary fixed-point series on big integers, computed with guard digits and
//! then rounded once.

use super::arith::division_by_zero;
use super::{
    MAX_DISPLAY_SCALE, MAX_INTEGER_DIGITS, MIN_SIGNIFICANT_DIGITS, Numeric, overflow, power_of_ten,
};
use crate::error::state;
use crate::{Error, Result, interrupt};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, Zero};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::f64::consts::{LN_10, LOG10_E};

/// Results whose natural logarithm is beyond this overflow (or are zero).
const MAX_EXPONENT: f64 = 6000.0;
/// Decimal digits computed beyond those given.
const GUARD: i32 = 12;

fn scale_for(significant_from: i32, shown: i32) -> i32 {
    (MIN_SIGNIFICANT_DIGITS - significant_from)
        .max(shown)
        .clamp(0, MAX_DISPLAY_SCALE)
}

/// So many digits are to be computed.
fn expect_digits(decimal: i32) -> Result<()> {
    /// What a digit takes, as work is counted; some hundreds of digits are much.
    const WORK: usize = 5_000;
    interrupt::expect(decimal.max(0) as usize * WORK)
}

/// Binary digits that hold this many decimal ones.
fn bits_for(decimal: i32) -> u64 {
    (f64::from(decimal.max(1)) * std::f64::consts::LOG2_10) as u64 + 8
}

fn log_error(value: &Numeric) -> Error {
    let what = if value.is_zero() {
        "zero"
    } else {
        "a negative number"
    };
    Error::new(
        state::INVALID_ARGUMENT_FOR_LOG,
        format!("cannot take logarithm of {what}"),
    )
}

/// A finite numeric as fixed point with `bits` after the point.
fn to_fixed(value: &Numeric, bits: u64) -> BigInt {
    (value.coefficient() << bits) / power_of_ten(value.scale() as u32)
}

/// Fixed point with `bits` after the point, rounded to `scale` decimals.
fn from_fixed(fixed: &BigInt, bits: u64, scale: i32) -> Result<Numeric> {
    let scaled: BigInt = fixed * power_of_ten(scale as u32) * 2;
    let half: BigInt = (scaled.abs() >> bits) + 1;
    let magnitude: BigInt = half >> 1;
    Numeric::from_big(
        if fixed.is_negative() {
            -magnitude
        } else {
            magnitude
        },
        scale as u16,
    )
}

/// `2 × atanh(numerator/denominator)` in fixed point, for a ratio well below one.
fn twice_atanh(numerator: &BigInt, denominator: &BigInt, bits: u64) -> BigInt {
    let ratio: BigInt = (numerator << bits) / denominator;
    let square: BigInt = (&ratio * &ratio) >> bits;
    let (mut power, mut sum, mut k) = (ratio.clone(), ratio, 3u32);
    loop {
        power = (power * &square) >> bits;
        let term: BigInt = &power / k;
        // An arithmetic shift takes a small negative power to -1, never to 0.
        if term.is_zero() || term == -BigInt::one() {
            return sum << 1;
        }
        sum += term;
        k += 2;
    }
}

thread_local! {
    /// The logarithms of 2 that were computed last, by their precision.
    static LN_2: RefCell<VecDeque<(u64, BigInt)>> = const { RefCell::new(VecDeque::new()) };
}

/// ln 2 in fixed point. A power asks for it twice, and takes most of its time for that.
fn ln_2(bits: u64) -> BigInt {
    const KEPT: usize = 4;
    LN_2.with_borrow_mut(|kept| {
        if let Some((_, known)) = kept.iter().find(|(of, _)| *of == bits) {
            return known.clone();
        }
        let value = twice_atanh(&BigInt::one(), &BigInt::from(3), bits);
        kept.truncate(KEPT - 1);
        kept.push_front((bits, value.clone()));
        value
    })
}

/// ln of a positive finite value, in fixed point. `decimals` digits after the point are good.
fn ln_fixed(value: &Numeric, decimals: i32) -> (BigInt, u64) {
    let numerator = value.coefficient();
    let denominator = power_of_ten(value.scale() as u32);
    // value = m × 2^k with m between 0.5 and 2.
    let k = numerator.bits() as i64 - denominator.bits() as i64;
    let bits = bits_for(decimals + GUARD) + 64;
    let mantissa: BigInt = if k >= 0 {
        (numerator << bits) / (denominator << k)
    } else {
        (numerator << (bits + k.unsigned_abs())) / denominator
    };
    // Square roots bring m near one, where the series is short; each doubles the logarithm.
    const ROOTS: u32 = 6;
    let wide = bits + u64::from(ROOTS) + 4;
    let mut m: BigInt = mantissa << (wide - bits);
    for _ in 0..ROOTS {
        m = (m << wide).sqrt();
    }
    let one = BigInt::one() << wide;
    let ln_m = twice_atanh(&(&m - &one), &(&m + &one), wide) << ROOTS;
    (ln_m + ln_2(wide) * k, wide)
}

/// e^x of fixed point x, in the same fixed point.
fn exp_fixed(x: &BigInt, bits: u64) -> BigInt {
    const HALVINGS: u64 = 12;
    let wide = bits + 2 * HALVINGS + 16;
    let x: BigInt = x << (wide - bits);
    let ln2 = ln_2(wide);
    let k = x.div_floor(&ln2);
    let rest = (&x - &k * &ln2) >> HALVINGS;
    let one = BigInt::one() << wide;
    let (mut term, mut sum, mut n) = (rest.clone(), one + &rest, 2u32);
    while !term.is_zero() {
        term = ((term * &rest) >> wide) / n;
        sum += &term;
        n += 1;
    }
    for _ in 0..HALVINGS {
        sum = (&sum * &sum) >> wide;
    }
    let k = i64::try_from(k).expect("exponents are limited before");
    let shift = k - (wide - bits) as i64;
    if shift >= 0 {
        sum << shift
    } else {
        sum >> shift.unsigned_abs()
    }
}

impl Numeric {
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.signum() < 0 {
            return Err(Error::new(
                state::INVALID_ARGUMENT_FOR_POWER,
                "cannot take square root of a negative number",
            ));
        }
        if self.is_infinite() {
            return Ok(self.clone());
        }
        self.sqrt_to_scale(scale_for(self.weight() * 2 + 1, self.scale()))
    }

    /// The root of a finite value that is not negative, to so many digits after the point.
    pub fn sqrt_to_scale(&self, scale: i32) -> Result<Numeric> {
        // One digit more than wanted, then round; an exact tie shows in that digit.
        let work = scale + 1;
        expect_digits(work)?;
        let lift = 2 * work - self.scale();
        let radicand = if lift >= 0 {
            self.coefficient() * power_of_ten(lift as u32)
        } else {
            self.coefficient() / power_of_ten(lift.unsigned_abs())
        };
        super::arith::rescale(radicand.sqrt(), work, scale)
    }

    /// e to this power.
    pub fn exp(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_infinite() {
            return Ok(if self.signum() > 0 {
                Numeric::INFINITY
            } else {
                Numeric::ZERO
            });
        }
        let weight = (self.to_f64() * LOG10_E).clamp(-2000.0, 2000.0) as i32;
        self.exp_to_scale(scale_for(weight, self.scale()))
    }

    fn exp_to_scale(&self, scale: i32) -> Result<Numeric> {
        let approximate = self.to_f64();
        if approximate.abs() >= MAX_EXPONENT {
            if approximate > 0.0 {
                return Err(overflow());
            }
            return Ok(Numeric::ZERO.round(scale));
        }
        let digits = scale + (approximate * LOG10_E).max(0.0) as i32 + GUARD;
        expect_digits(digits)?;
        let bits = bits_for(digits);
        from_fixed(&exp_fixed(&to_fixed(self, bits), bits), bits, scale)
    }

    /// The natural logarithm; 2201E for zero and below.
    pub fn ln(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.signum() <= 0 {
            return Err(log_error(self));
        }
        if self.is_infinite() {
            return Ok(self.clone());
        }
        self.ln_to_scale(scale_for(self.ln_weight(), self.scale()))
    }

    fn ln_to_scale(&self, scale: i32) -> Result<Numeric> {
        expect_digits(scale)?;
        let (fixed, bits) = ln_fixed(self, scale);
        from_fixed(&fixed, bits, scale)
    }

    /// The decimal exponent of this value's natural logarithm, about.
    fn ln_weight(&self) -> i32 {
        let (low, high) = (Numeric::new(9, 1), Numeric::new(11, 1));
        if self.compare(&low) != Ordering::Less && self.compare(&high) != Ordering::Greater {
            // ln(1 + x) is about x.
            let Ok(x) = self.sub(&Numeric::ONE) else {
                return 0;
            };
            if x.is_zero() {
                return 0;
            }
            return x.weight() * 4 + f64::from(x.leading_group()).log10() as i32;
        }
        if self.is_zero() {
            return 0;
        }
        let digits = self.leading_groups(2) as f64;
        let ln = digits.ln() + f64::from((self.weight() - 1) * 4) * LN_10;
        ln.abs().log10() as i32
    }

    /// The logarithm of this value to a base.
    pub fn log(&self, base: &Numeric) -> Result<Numeric> {
        if self.is_nan() || base.is_nan() {
            return Ok(Numeric::NAN);
        }
        // Beside an infinity a negative argument is reported before a zero one.
        let negative_first = base.is_infinite() || self.is_infinite();
        let negative = [base, self]
            .into_iter()
            .find(|v| negative_first && v.signum() < 0);
        if let Some(wrong) = negative.or([base, self].into_iter().find(|v| v.signum() <= 0)) {
            return Err(log_error(wrong));
        }
        match (base.is_infinite(), self.is_infinite()) {
            (true, true) => return Ok(Numeric::NAN),
            (true, false) => return Ok(Numeric::ZERO),
            (false, true) => return Ok(Numeric::INFINITY),
            (false, false) => {}
        }
        let (base_weight, weight) = (base.ln_weight(), self.ln_weight());
        let scale = scale_for(weight - base_weight, self.scale().max(base.scale()));
        let decimals = scale + weight.max(base_weight).max(0) - base_weight.min(0) * 2 + GUARD;
        expect_digits(decimals)?;
        let ((numerator, bits), (denominator, base_bits)) =
            (ln_fixed(self, decimals), ln_fixed(base, decimals));
        if denominator.is_zero() {
            return Err(division_by_zero());
        }
        debug_assert_eq!(bits, base_bits);
        from_fixed(&((numerator << bits) / denominator), bits, scale)
    }

    /// This value to a power.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(if exponent.is_zero() {
                Numeric::ONE
            } else {
                Numeric::NAN
            });
        }
        if exponent.is_nan() {
            let one = self.compare(&Numeric::ONE) == Ordering::Equal;
            return Ok(if one { Numeric::ONE } else { Numeric::NAN });
        }
        let power_error = |message: &str| Error::new(state::INVALID_ARGUMENT_FOR_POWER, message);
        if self.is_zero() && exponent.signum() < 0 {
            return Err(power_error("zero raised to a negative power is undefined"));
        }
        if self.signum() < 0 && !exponent.is_integral() {
            return Err(power_error(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if self.is_infinite() || exponent.is_infinite() {
            return Ok(self.infinite_power(exponent));
        }
        if exponent.is_integral()
            && let Some(n) = exponent.to_i64().and_then(|n| i32::try_from(n).ok())
        {
            return self.integer_power(n, exponent.scale());
        }
        if self.is_zero() {
            return Ok(Numeric::ZERO.round(MIN_SIGNIFICANT_DIGITS));
        }
        self.real_power(exponent)
    }

    fn infinite_power(&self, exponent: &Numeric) -> Numeric {
        if self.compare(&Numeric::ONE) == Ordering::Equal {
            return Numeric::ONE;
        }
        if exponent.is_infinite() {
            let grows = match self.abs().compare(&Numeric::ONE) {
                Ordering::Equal => return Numeric::ONE,
                Ordering::Greater => exponent.signum() > 0,
                Ordering::Less => exponent.signum() < 0,
            };
            return if grows {
                Numeric::INFINITY
            } else {
                Numeric::ZERO
            };
        }
        match exponent.signum() {
            0 => Numeric::ONE,
            -1 => Numeric::ZERO,
            _ if self.signum() > 0 || !exponent.is_odd() => Numeric::INFINITY,
            _ => Numeric::NEG_INFINITY,
        }
    }

    fn is_odd(&self) -> bool {
        self.trunc(0).coefficient().is_odd()
    }

    fn integer_power(&self, exponent: i32, exponent_scale: i32) -> Result<Numeric> {
        // The result's decimal exponent, from the value's first sixteen digits.
        let weight = if self.is_zero() {
            0.0
        } else {
            let lead = self.leading_groups(4) as f64;
            f64::from(exponent) * (lead.log10() + f64::from((self.weight() - 3) * 4))
        };
        if weight > MAX_INTEGER_DIGITS as f64 {
            return Err(overflow());
        }
        if weight + 1.0 < -f64::from(MAX_DISPLAY_SCALE) {
            return Ok(Numeric::ZERO.round(MAX_DISPLAY_SCALE));
        }
        let scale = scale_for(weight as i32, self.scale().max(exponent_scale));
        match exponent {
            0 => return Ok(Numeric::ONE.round(scale)),
            1 => return Ok(self.round(scale)),
            -1 => return Numeric::ONE.div_to_scale(self, scale),
            _ if self.is_zero() && exponent < 0 => return Err(division_by_zero()),
            _ if self.is_zero() => return Ok(Numeric::ZERO.round(scale)),
            _ => {}
        }
        // Square and multiply on significant digits; each multiplication rounds once, so guard
        // digits cover their number.
        let significant = scale + weight as i32 + 24 + (exponent.unsigned_abs().ilog2() as i32) * 2;
        let significant = significant.max(24);
        expect_digits(significant)?;
        let (mut base, mut result) = (self.clone(), Numeric::ONE);
        let mut n = exponent.unsigned_abs();
        let mut shift = (0i64, 0i64);
        loop {
            if n & 1 == 1 {
                (result, shift.0) =
                    multiply_floating(&result, shift.0, &base, shift.1, significant)?;
            }
            n >>= 1;
            if n == 0 {
                break;
            }
            (base, shift.1) = multiply_floating(&base, shift.1, &base, shift.1, significant)?;
        }
        place_floating(&result, shift.0, exponent < 0, scale)
    }

    fn real_power(&self, exponent: &Numeric) -> Result<Numeric> {
        let (base, negative) = (self.abs(), self.signum() < 0 && exponent.is_odd());
        let ln_weight = base.ln_weight();
        // First to eight digits, to learn how large the result is.
        let rough_scale = (8 - ln_weight).clamp(0, 16_000);
        let rough_ln = base.ln_to_scale(rough_scale)?;
        let rough = rough_ln.mul(exponent)?.round(rough_scale).to_f64();
        if rough.abs() > MAX_EXPONENT * 1.003_34 {
            if rough > 0.0 {
                return Err(overflow());
            }
            return Ok(Numeric::ZERO.round(MAX_DISPLAY_SCALE));
        }
        let weight = (rough * LOG10_E) as i32;
        let scale = scale_for(weight, base.scale().max(exponent.scale()));
        let significant = (scale + weight).max(0);
        let decimals = significant + exponent.exponent().clamp(0, 16_000) as i32 + GUARD;
        expect_digits(decimals)?;
        let (ln, bits) = ln_fixed(&base, decimals);
        let product: BigInt = ln * exponent.coefficient() / power_of_ten(exponent.scale() as u32);
        if rough.abs() >= MAX_EXPONENT {
            return if rough > 0.0 {
                Err(overflow())
            } else {
                Ok(Numeric::ZERO.round(scale))
            };
        }
        let result_bits = bits_for(scale + weight.max(0) + GUARD).max(bits);
        let power = exp_fixed(&(product << (result_bits - bits)), result_bits);
        let result = from_fixed(&power, result_bits, scale)?;
        Ok(if negative { result.neg() } else { result })
    }

    /// `n!`
    pub fn factorial(n: i64) -> Result<Numeric> {
        if n < 0 {
            return Err(Error::new(
                state::NUMERIC_VALUE_OUT_OF_RANGE,
                "factorial of a negative number is undefined",
            ));
        }
        // The largest whose result the format holds.
        if n > 32_177 {
            return Err(overflow());
        }
        expect_digits(n as i32)?;
        let mut product = BigInt::one();
        for k in 2..=n {
            product *= k;
        }
        Numeric::from_big(product, 0)
    }

    pub fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        self.by_coefficients(other, |a, b| a.gcd(b))
    }
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        self.by_coefficients(other, |a, b| a.lcm(b))
    }
    fn by_coefficients(
        &self,
        other: &Numeric,
        f: impl Fn(&BigInt, &BigInt) -> BigInt,
    ) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NAN);
        }
        let scale = self.scale().max(other.scale());
        Numeric::from_big(
            f(&self.coefficient_at(scale), &other.coefficient_at(scale)),
            scale as u16,
        )
    }
}

/// `a × 10^x` times `b × 10^y`, its coefficient kept to so many digits; the value is an integer and
/// its power of ten.
fn multiply_floating(
    a: &Numeric,
    x: i64,
    b: &Numeric,
    y: i64,
    digits: i32,
) -> Result<(Numeric, i64)> {
    let mut product = a.coefficient() * b.coefficient();
    let mut exponent = x + y - i64::from(a.scale()) - i64::from(b.scale());
    let excess = super::decimal_digits(&product) - i64::from(digits);
    if excess > 0 {
        product = super::arith::divide_rounding(&product, &power_of_ten(excess as u32));
        exponent += excess;
    }
    Ok((Numeric::from_big(product, 0)?, exponent))
}

/// `value × 10^exponent`, or its reciprocal, at a scale.
fn place_floating(value: &Numeric, exponent: i64, reciprocal: bool, scale: i32) -> Result<Numeric> {
    let coefficient = value.coefficient();
    if reciprocal {
        // 10^scale / (c × 10^e)
        let lift = i64::from(scale) - exponent;
        if lift < 0 {
            return Ok(Numeric::ZERO.round(scale));
        }
        let dividend = power_of_ten(lift as u32);
        return Numeric::from_big(
            super::arith::divide_rounding(&dividend, &coefficient),
            scale as u16,
        );
    }
    let lift = i64::from(scale) + exponent;
    if super::decimal_digits(&coefficient) + exponent > MAX_INTEGER_DIGITS {
        return Err(overflow());
    }
    let placed = if lift >= 0 {
        coefficient * power_of_ten(lift as u32)
    } else {
        super::arith::divide_rounding(&coefficient, &power_of_ten(lift.unsigned_abs() as u32))
    };
    Numeric::from_big(placed, scale as u16)
}
