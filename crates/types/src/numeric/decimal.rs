//! Numerics of up to 38 digits, computed in 128 bits: the form of columns.
//!
//! An operation answers only where [`Numeric`]'s could give nothing else, scale included; `None`
//! sends the caller there.

use std::cmp::Ordering;

use super::{MAX_SCALE, Numeric, POWERS, Repr};

/// `coefficient × 10^-scale`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decimal {
    pub coefficient: i128,
    pub scale: u16,
}

impl Decimal {
    /// None for what is not finite or has too many digits.
    #[inline]
    pub fn of(value: &Numeric) -> Option<Decimal> {
        match &value.0 {
            Repr::Small { coefficient, scale } => Some(Decimal {
                coefficient: (*coefficient).into(),
                scale: *scale,
            }),
            Repr::Big(big) => Some(Decimal {
                coefficient: i128::try_from(&big.coefficient).ok()?,
                scale: big.scale,
            }),
            _ => None,
        }
    }

    /// Reads what [`Numeric::write_stored`] wrote.
    #[inline]
    pub fn read_stored(bytes: &[u8]) -> Option<Decimal> {
        let (head, coefficient) = bytes.split_first_chunk::<2>()?;
        if coefficient.len() <= 8 {
            let mut word = [0; 8];
            word[..coefficient.len()].copy_from_slice(coefficient);
            return Decimal::of_word(*head, word, coefficient.len());
        }
        let scale = u16::from_le_bytes(*head);
        if scale >> 14 != 0 || coefficient.len() > 16 {
            return None;
        }
        let negative = coefficient.last().is_some_and(|b| b & 0x80 != 0);
        let mut raw = if negative { [0xff; 16] } else { [0; 16] };
        raw[..coefficient.len()].copy_from_slice(coefficient);
        let coefficient = i128::from_le_bytes(raw);
        Some(Decimal { coefficient, scale })
    }

    /// The same where the coefficient is a word's first `len` bytes, at most eight: what is behind
    /// them may be anything.
    #[inline]
    pub fn of_word(head: [u8; 2], word: [u8; 8], len: usize) -> Option<Decimal> {
        let scale = u16::from_le_bytes(head);
        if scale >> 14 != 0 || len > 8 {
            return None;
        }
        let coefficient = match 64 - 8 * len as u32 {
            64 => 0,
            beyond => (i64::from_le_bytes(word) << beyond) >> beyond,
        };
        Some(Decimal {
            coefficient: coefficient.into(),
            scale,
        })
    }

    /// Appends what [`Numeric::write_stored`] would write.
    #[inline]
    pub fn write_stored(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.scale.to_le_bytes());
        if self.coefficient == 0 {
            return;
        }
        // One sign bit must stay.
        let same = match self.coefficient < 0 {
            true => self.coefficient.leading_ones(),
            false => self.coefficient.leading_zeros(),
        };
        let len = (129 - same).div_ceil(8) as usize;
        out.extend_from_slice(&self.coefficient.to_le_bytes()[..len]);
    }

    /// The value itself.
    pub fn to_numeric(self) -> Numeric {
        Numeric::from_i128(self.coefficient, self.scale)
    }

    /// Both coefficients at the larger scale.
    #[inline]
    fn align(self, other: Decimal) -> Option<(i128, i128, u16)> {
        if self.scale == other.scale {
            return Some((self.coefficient, other.coefficient, self.scale));
        }
        let power = *POWERS.get(usize::from(self.scale.abs_diff(other.scale)))?;
        Some(match self.scale < other.scale {
            true => (
                self.coefficient.checked_mul(power)?,
                other.coefficient,
                other.scale,
            ),
            false => (
                self.coefficient,
                other.coefficient.checked_mul(power)?,
                self.scale,
            ),
        })
    }

    #[inline]
    pub fn compare(self, other: Decimal) -> Option<Ordering> {
        self.align(other).map(|(a, b, _)| a.cmp(&b))
    }

    #[inline]
    pub fn checked_add(self, other: Decimal) -> Option<Decimal> {
        let (a, b, scale) = self.align(other)?;
        let coefficient = a.checked_add(b)?;
        Some(Decimal { coefficient, scale })
    }

    #[inline]
    pub fn checked_sub(self, other: Decimal) -> Option<Decimal> {
        let (a, b, scale) = self.align(other)?;
        let coefficient = a.checked_sub(b)?;
        Some(Decimal { coefficient, scale })
    }

    #[inline]
    pub fn checked_mul(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale + other.scale;
        if i32::from(scale) > MAX_SCALE {
            return None;
        }
        // Most products are of words.
        let coefficient = match (
            i64::try_from(self.coefficient),
            i64::try_from(other.coefficient),
        ) {
            (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
            _ => self.coefficient.checked_mul(other.coefficient)?,
        };
        Some(Decimal { coefficient, scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(value: &Numeric) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.write_stored(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn what_is_sure_is_what_numerics_give(
            a in "-?[0-9]{1,30}(\\.[0-9]{1,12})?",
            b in "-?[0-9]{1,20}(\\.[0-9]{1,12})?",
        ) {
            let (a, b): (Numeric, Numeric) = (a.parse().unwrap(), b.parse().unwrap());
            let (Some(x), Some(y)) = (Decimal::of(&a), Decimal::of(&b)) else { return Ok(()) };
            prop_assert_eq!(Decimal::read_stored(&stored(&a)), Some(x));
            let mut bytes = Vec::new();
            x.write_stored(&mut bytes);
            prop_assert_eq!(bytes, stored(&a));
            prop_assert_eq!(x.to_numeric().to_string(), a.to_string());
            let same = |fast: Option<Decimal>, slow: Numeric| {
                fast.is_none_or(|fast| fast.to_numeric().to_string() == slow.to_string())
            };
            prop_assert!(same(x.checked_add(y), a.add(&b).unwrap()));
            prop_assert!(same(x.checked_sub(y), a.sub(&b).unwrap()));
            prop_assert!(same(x.checked_mul(y), a.mul(&b).unwrap()));
            prop_assert!(x.compare(y).is_none_or(|order| order == a.compare(&b)));
        }
    }

    #[test]
    fn what_is_not_finite_is_not_sure() {
        for value in [Numeric::NAN, Numeric::INFINITY, Numeric::NEG_INFINITY] {
            assert_eq!(Decimal::of(&value), None);
            assert_eq!(Decimal::read_stored(&stored(&value)), None);
        }
    }
}
