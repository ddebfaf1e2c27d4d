//! Numerics as bytes: PostgreSQL's binary protocol form (groups of four digits), and our rows'
//! form.

use super::{Numeric, Repr};
use num_bigint::{BigInt, Sign};
use num_traits::{ToPrimitive, Zero};

/// A numeric in groups of four decimal digits, as libpq sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    pub sign: WireSign,
    /// The first group counts `digits[0] × 10000^weight`.
    pub weight: i16,
    pub scale: u16,
    /// Each 0 to 9999.
    pub digits: Vec<i16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum WireSign {
    Positive = 0x0000,
    Negative = 0x4000,
    NaN = 0xC000,
    Infinity = 0xD000,
    NegInfinity = 0xF000,
}

impl Numeric {
    pub fn to_groups(&self) -> Groups {
        // PostgreSQL sends the infinities with this scale; it means nothing.
        const INFINITE: u16 = 0x20;
        let special = |sign, scale| Groups {
            sign,
            weight: 0,
            scale,
            digits: vec![],
        };
        match &self.0 {
            Repr::NaN => return special(WireSign::NaN, 0),
            Repr::Infinity => return special(WireSign::Infinity, INFINITE),
            Repr::NegInfinity => return special(WireSign::NegInfinity, INFINITE),
            _ => {}
        }
        let scale = self.scale();
        let sign = if self.signum() < 0 {
            WireSign::Negative
        } else {
            WireSign::Positive
        };
        if self.is_zero() {
            return Groups {
                sign,
                weight: 0,
                scale: scale as u16,
                digits: vec![],
            };
        }
        // Digits aligned so that the point falls between groups.
        let text = super::text::to_digits(self.coefficient().magnitude());
        let fraction_pad = (4 - scale % 4) % 4;
        let mut aligned = text.into_bytes();
        aligned.resize(aligned.len() + fraction_pad as usize, b'0');
        let fraction_groups = (scale + fraction_pad) / 4;
        let lead_pad = (4 - aligned.len() % 4) % 4;
        let mut padded = vec![b'0'; lead_pad];
        padded.append(&mut aligned);
        let mut digits: Vec<i16> = padded
            .chunks_exact(4)
            .map(|c| {
                c.iter()
                    .fold(0i16, |acc, &d| acc * 10 + i16::from(d - b'0'))
            })
            .collect();
        let weight = digits.len() as i32 - fraction_groups - 1;
        let leading = digits.iter().take_while(|&&d| d == 0).count();
        digits.drain(..leading);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Groups {
            sign,
            weight: (weight - leading as i32) as i16,
            scale: scale as u16,
            digits,
        }
    }

    /// None where a group is not 0 to 9999 or the value is out of the format's range. Digits beyond
    /// the scale are cut off.
    pub fn from_groups(groups: &Groups) -> Option<Numeric> {
        match groups.sign {
            WireSign::NaN => return Some(Numeric::NAN),
            WireSign::Infinity => return Some(Numeric::INFINITY),
            WireSign::NegInfinity => return Some(Numeric::NEG_INFINITY),
            _ => {}
        }
        let mut coefficient = BigInt::zero();
        if groups.digits.iter().any(|d| !(0..=9999).contains(d)) {
            return None;
        }
        if groups.digits.len() <= 4 {
            let small = groups
                .digits
                .iter()
                .fold(0i64, |acc, &d| acc * 10_000 + i64::from(d));
            coefficient += small;
        } else {
            let text: String = groups.digits.iter().map(|d| format!("{d:04}")).collect();
            coefficient += BigInt::from(super::text::from_digits(&text)?);
        }
        // The last group counts 10000^(weight - count + 1).
        let exponent = (i32::from(groups.weight) + 1 - groups.digits.len() as i32) * 4;
        let lift = exponent + i32::from(groups.scale);
        if lift >= 0 {
            coefficient *= super::power_of_ten(lift as u32);
        } else {
            coefficient /= super::power_of_ten(lift.unsigned_abs());
        }
        if groups.sign == WireSign::Negative {
            coefficient = -coefficient;
        }
        Numeric::from_big(coefficient, groups.scale).ok()
    }

    /// Appends the form rows keep: a u16 with the scale in its low 14 bits and the kind in its high
    /// two (0 finite, 1 NaN, 2 infinity, 3 minus infinity), then a finite value's coefficient,
    /// little endian, two's complement, as short as it goes.
    pub fn write_stored(&self, out: &mut Vec<u8>) {
        let kind: u16 = match &self.0 {
            Repr::NaN => 1,
            Repr::Infinity => 2,
            Repr::NegInfinity => 3,
            _ => 0,
        };
        out.extend_from_slice(&(kind << 14 | self.scale() as u16).to_le_bytes());
        match &self.0 {
            Repr::Small { coefficient: 0, .. } => {}
            Repr::Small { coefficient, .. } => {
                // One sign bit must stay.
                let significant = 65
                    - if *coefficient < 0 {
                        coefficient.leading_ones()
                    } else {
                        coefficient.leading_zeros()
                    };
                let len = significant.div_ceil(8) as usize;
                out.extend_from_slice(&coefficient.to_le_bytes()[..len]);
            }
            Repr::Big(big) => out.extend_from_slice(&big.coefficient.to_signed_bytes_le()),
            _ => {}
        }
    }

    /// Reads what [`Numeric::write_stored`] wrote; None for bytes it cannot have written.
    pub fn read_stored(bytes: &[u8]) -> Option<Numeric> {
        let (head, coefficient) = bytes.split_first_chunk::<2>()?;
        let head = u16::from_le_bytes(*head);
        match head >> 14 {
            1 => return Some(Numeric::NAN),
            2 => return Some(Numeric::INFINITY),
            3 => return Some(Numeric::NEG_INFINITY),
            _ => {}
        }
        let scale = head & 0x3fff;
        if coefficient.len() > 8 {
            return Numeric::from_big(BigInt::from_signed_bytes_le(coefficient), scale).ok();
        }
        let negative = coefficient.last().is_some_and(|&b| b & 0x80 != 0);
        let mut raw = if negative { [0xff; 8] } else { [0; 8] };
        raw[..coefficient.len()].copy_from_slice(coefficient);
        Some(Numeric::new(i64::from_le_bytes(raw), scale))
    }

    /// Appends bytes whose memcmp order is SQL's order; equal values of different scales give equal
    /// bytes.
    ///
    /// A class byte; then, for a finite nonzero value, the decimal exponent (offset to unsigned,
    /// big endian u32), its significant digits in pairs, each plus one, without trailing zeros, and
    /// a zero byte. A negative value has all but the class inverted.
    pub fn write_ordered(&self, out: &mut Vec<u8>) {
        let class = match &self.0 {
            Repr::NegInfinity => 0x10,
            Repr::Infinity => 0x50,
            Repr::NaN => 0x60,
            _ => [0x20, 0x30, 0x40][(self.signum() + 1) as usize],
        };
        out.push(class);
        if !self.is_finite() || self.is_zero() {
            return;
        }
        let start = out.len();
        let exponent = (self.exponent() + (1 << 31)) as u32;
        out.extend_from_slice(&exponent.to_be_bytes());
        match &self.0 {
            Repr::Small { coefficient, .. } => {
                let mut c = coefficient.unsigned_abs();
                while c.is_multiple_of(10) {
                    c /= 10;
                }
                // Most significant pair first: an odd count is made even by a zero at the end.
                if c.ilog10().is_multiple_of(2) {
                    write_pairs_u128(u128::from(c) * 10, out);
                } else {
                    write_pairs_u128(c.into(), out);
                }
            }
            _ => {
                let text = super::text::to_digits(self.coefficient().magnitude());
                let text = text.trim_end_matches('0').as_bytes();
                for pair in text.chunks(2) {
                    let low = pair.get(1).map_or(0, |d| d - b'0');
                    out.push((pair[0] - b'0') * 10 + low + 1);
                }
            }
        }
        out.push(0);
        if self.signum() < 0 {
            for byte in &mut out[start..] {
                *byte = !*byte;
            }
        }
    }
}

fn write_pairs_u128(mut value: u128, out: &mut Vec<u8>) {
    let start = out.len();
    while value > 0 {
        out.push((value % 100) as u8 + 1);
        value /= 100;
    }
    out[start..].reverse();
}

impl WireSign {
    pub fn from_raw(raw: u16) -> Option<WireSign> {
        [
            WireSign::Positive,
            WireSign::Negative,
            WireSign::NaN,
            WireSign::Infinity,
            WireSign::NegInfinity,
        ]
        .into_iter()
        .find(|&s| s as u16 == raw)
    }
}

impl Numeric {
    /// The integer part, where it fits; the sign of the rest is dropped.
    pub fn truncated_i64(&self) -> Option<i64> {
        if !self.is_finite() {
            return None;
        }
        let whole = self.trunc(0);
        match &whole.0 {
            Repr::Small { coefficient, .. } => Some(*coefficient),
            Repr::Big(big) if big.coefficient.sign() != Sign::NoSign => big.coefficient.to_i64(),
            _ => None,
        }
    }
}
