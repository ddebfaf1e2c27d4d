//! Numerics as text: PostgreSQL's input forms, its output form.

use super::{MAX_INTEGER_DIGITS, MAX_SCALE, Numeric, Repr};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{Euclid, Num};
use std::fmt;
use std::str::FromStr;

/// Why text is no numeric; the caller words the error with its type's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    Syntax,
    /// More digits than the format has.
    Overflow,
}

impl FromStr for Numeric {
    type Err = ParseError;
    /// Spaces around, sign, digits with single underscores between them, point, exponent; `NaN`,
    /// `Infinity`, `inf`; `0x`, `0o`, `0b` integers.
    fn from_str(s: &str) -> Result<Numeric, ParseError> {
        let s = s.trim_matches(|c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c'));
        let (negative, body) = match s.as_bytes().first() {
            Some(b'-') => (true, &s[1..]),
            Some(b'+') => (false, &s[1..]),
            _ => (false, s),
        };
        if body
            .as_bytes()
            .first()
            .is_some_and(|b| b.is_ascii_alphabetic())
        {
            return special(body, negative, body.len() != s.len());
        }
        if let [b'0', radix @ (b'x' | b'X' | b'o' | b'O' | b'b' | b'B'), ..] = body.as_bytes() {
            return integer(&body[2..], *radix, negative);
        }
        decimal(body, negative)
    }
}

fn special(body: &str, negative: bool, signed: bool) -> Result<Numeric, ParseError> {
    if body.eq_ignore_ascii_case("nan") && !signed {
        return Ok(Numeric::NAN);
    }
    if body.eq_ignore_ascii_case("infinity") || body.eq_ignore_ascii_case("inf") {
        return Ok(if negative {
            Numeric::NEG_INFINITY
        } else {
            Numeric::INFINITY
        });
    }
    Err(ParseError::Syntax)
}

fn integer(body: &str, radix: u8, negative: bool) -> Result<Numeric, ParseError> {
    let radix = match radix.to_ascii_lowercase() {
        b'x' => 16,
        b'o' => 8,
        _ => 2,
    };
    // An underscore may stand before the first digit here, but never twice or last.
    let bytes = body.as_bytes();
    if body.is_empty() || body.ends_with('_') || bytes.windows(2).any(|w| w == b"__") {
        return Err(ParseError::Syntax);
    }
    let digits: String = body.chars().filter(|&c| c != '_').collect();
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(ParseError::Syntax);
    }
    let magnitude = BigUint::from_str_radix(&digits, radix).map_err(|_| ParseError::Syntax)?;
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    Numeric::from_big(BigInt::from_biguint(sign, magnitude), 0).map_err(|_| ParseError::Overflow)
}

/// Gathers digits in a u64 as long as they fit, then in text.
#[derive(Default)]
struct Digits {
    small: u64,
    count: usize,
    long: Option<String>,
}

impl Digits {
    fn push(&mut self, digit: u8) {
        if let Some(long) = &mut self.long {
            long.push(digit as char);
            return;
        }
        let value = u64::from(digit - b'0');
        match self
            .small
            .checked_mul(10)
            .and_then(|v| v.checked_add(value))
        {
            Some(next) if next <= i64::MAX as u64 => self.small = next,
            _ => {
                let mut long = self.small.to_string();
                long.push(digit as char);
                self.long = Some(long);
            }
        }
        self.count += 1;
    }
}

fn decimal(body: &str, negative: bool) -> Result<Numeric, ParseError> {
    let bytes = body.as_bytes();
    let mut digits = Digits::default();
    let (mut i, mut any, mut fraction, mut seen_point) = (0, false, 0i64, false);
    while i < bytes.len() {
        match bytes[i] {
            d @ b'0'..=b'9' => {
                digits.push(d);
                any = true;
                fraction += i64::from(seen_point);
            }
            b'.' if !seen_point => {
                seen_point = true;
                // `1_.5` and `1._5` are errors.
                if bytes.get(i + 1) == Some(&b'_') {
                    return Err(ParseError::Syntax);
                }
            }
            b'_' => {
                let digit_before = i > 0 && bytes[i - 1].is_ascii_digit();
                let digit_after = bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
                if !digit_before || !digit_after {
                    return Err(ParseError::Syntax);
                }
            }
            _ => break,
        }
        i += 1;
    }
    if !any {
        return Err(ParseError::Syntax);
    }
    let mut exponent = 0i64;
    if i < bytes.len() && matches!(bytes[i], b'e' | b'E') {
        let text = &body[i + 1..];
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let shaped = !unsigned.is_empty()
            && !unsigned.starts_with('_')
            && !unsigned.ends_with('_')
            && !unsigned.contains("__")
            && unsigned.bytes().all(|b| b.is_ascii_digit() || b == b'_');
        if !shaped {
            return Err(ParseError::Syntax);
        }
        exponent = text
            .replace('_', "")
            .parse()
            .map_err(|_| ParseError::Overflow)?;
        if exponent.abs() > i64::from(i32::MAX / 2) {
            return Err(ParseError::Overflow);
        }
        i = bytes.len();
    }
    if i != bytes.len() {
        return Err(ParseError::Syntax);
    }
    assemble(digits, negative, fraction - exponent)
}

/// The value of decimal digits. Halves are read apart and put together by one multiplication, so
/// that long ones take less than the square of their count (Brent and Zimmermann, "Modern Computer
/// Arithmetic", section 1.7.2).
pub(super) fn from_digits(digits: &str) -> Option<BigUint> {
    /// What the library reads as fast in one go.
    const FEW: usize = 1_024;
    if digits.len() <= FEW {
        return BigUint::from_str(digits).ok();
    }
    // The lower parts have FEW times a power of two digits each: the powers of ten are few, each
    // the square of another.
    let mut powers = vec![BigUint::from(10u8).pow(FEW as u32)];
    let mut part = FEW;
    while part * 2 < digits.len() {
        let last = &powers[powers.len() - 1];
        powers.push(last * last);
        part *= 2;
    }
    joined(digits, part, &powers)
}

/// Digits, the last `part` of which are worth less than the last of the powers.
fn joined(digits: &str, part: usize, powers: &[BigUint]) -> Option<BigUint> {
    let Some((power, smaller)) = powers.split_last() else {
        return BigUint::from_str(digits).ok();
    };
    let Some(at) = digits.len().checked_sub(part).filter(|&at| at > 0) else {
        return joined(digits, part / 2, smaller);
    };
    let high = joined(&digits[..at], part / 2, smaller)?;
    Some(high * power + joined(&digits[at..], part / 2, smaller)?)
}

/// A number's decimal digits. Long ones are divided into halves, which are divided again: that
/// takes a fraction of the time of dividing by one word after another (Brent and Zimmermann,
/// section 1.7.2).
pub(super) fn to_digits(value: &BigUint) -> String {
    /// What the library writes as fast in one go.
    const FEW: u32 = 512;
    /// More than the bits of so many digits.
    const FEW_BITS: u64 = FEW as u64 * 10 / 3;
    if value.bits() <= FEW_BITS {
        return value.to_str_radix(10);
    }
    let mut powers = vec![BigUint::from(10u8).pow(FEW)];
    while let Some(last) = powers.last()
        && last.bits() * 2 <= value.bits()
    {
        powers.push(last * last);
    }
    let mut digits = String::new();
    divided(value.clone(), &powers, FEW as usize, &mut digits);
    digits
}

/// Appends the digits of a number, which are no more than twice those of the last of the powers:
/// the first has `few`, each other one twice as many as the one before. Where digits stand before,
/// zeros fill up to all of them.
fn divided(value: BigUint, powers: &[BigUint], few: usize, digits: &mut String) {
    let Some((power, smaller)) = powers.split_last() else {
        let text = value.to_str_radix(10);
        if !digits.is_empty() {
            digits.extend(std::iter::repeat_n('0', few.saturating_sub(text.len())));
            digits.push_str(&text);
        } else if text != "0" {
            digits.push_str(&text);
        }
        return;
    };
    let (high, low) = value.div_rem_euclid(power);
    divided(high, smaller, few, digits);
    divided(low, smaller, few, digits);
}

/// `digits × 10^-scale`, where the scale may be negative.
fn assemble(digits: Digits, negative: bool, scale: i64) -> Result<Numeric, ParseError> {
    if digits.long.is_none() && (0..=i64::from(MAX_SCALE)).contains(&scale) {
        let c = digits.small as i64;
        return Ok(Numeric::new(if negative { -c } else { c }, scale as u16));
    }
    let text = digits.long.unwrap_or_else(|| digits.small.to_string());
    let zero = text.bytes().all(|b| b == b'0');
    if !zero && text.len() as i64 - scale > MAX_INTEGER_DIGITS {
        return Err(ParseError::Overflow);
    }
    if scale > i64::from(MAX_SCALE) {
        return Err(ParseError::Overflow);
    }
    let magnitude = from_digits(&text).ok_or(ParseError::Syntax)?;
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    let mut coefficient = BigInt::from_biguint(sign, magnitude);
    if scale < 0 && !zero {
        coefficient *= super::power_of_ten(scale.unsigned_abs() as u32);
    }
    Numeric::from_big(coefficient, scale.max(0) as u16).map_err(|_| ParseError::Overflow)
}

impl Numeric {
    /// Appends PostgreSQL's text form: all of the scale's digits, no exponent.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::NaN => out.extend_from_slice(b"NaN"),
            Repr::Infinity => out.extend_from_slice(b"Infinity"),
            Repr::NegInfinity => out.extend_from_slice(b"-Infinity"),
            Repr::Small { coefficient, scale } => {
                if *coefficient < 0 {
                    out.push(b'-');
                }
                let mut buffer = [0u8; 20];
                let digits = small_digits(coefficient.unsigned_abs(), &mut buffer);
                write_point(digits, usize::from(*scale), out);
            }
            Repr::Big(big) => {
                if big.coefficient.sign() == Sign::Minus {
                    out.push(b'-');
                }
                let digits = to_digits(big.coefficient.magnitude());
                write_point(digits.as_bytes(), usize::from(big.scale), out);
            }
        }
    }
}

fn small_digits(mut value: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &buffer[at..];
        }
    }
}

fn write_point(digits: &[u8], scale: usize, out: &mut Vec<u8>) {
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(24);
        self.write_text(&mut out);
        f.write_str(std::str::from_utf8(&out).expect("numerics are ASCII"))
    }
}
impl fmt::Debug for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
