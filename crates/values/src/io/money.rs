//! `money`: an amount in hundredths, as the locale "C" writes it.
//!
//! Kept as eight bytes, big endian with the sign flipped, so that their order is that of amounts.

use super::base::BaseInputOutput;
use super::binary::Reader;
use super::scalar::is_space;
use super::{invalid_syntax, out_of_range};
use throng_types::{Datum, Result, oid};

/// Digits behind the point.
const DIGITS: usize = 2;

pub fn stored(hundredths: i64) -> [u8; 8] {
    (hundredths ^ i64::MIN).to_be_bytes()
}

pub fn from_stored(bytes: &[u8]) -> i64 {
    let word = bytes.try_into().map_or(0, i64::from_be_bytes);
    word ^ i64::MIN
}

/// The amount of a value, in hundredths.
pub fn hundredths(value: &Datum) -> i64 {
    match value {
        Datum::Base(value) => from_stored(&value.bytes),
        _ => unreachable!("not money: {value:?}"),
    }
}

pub fn datum(hundredths: i64) -> Datum {
    Datum::base(oid::MONEY, stored(hundredths))
}

/// Blanks, a `$` and a sign in front; digits with commas and a point, the rest rounded; blanks, a
/// sign, a parenthesis and a `$` behind.
fn parse(text: &str) -> Result<i64> {
    let invalid = || invalid_syntax(oid::MONEY, text);
    let blank = |text: &'_ str| text.trim_start_matches(is_space).len();
    let after_blank = |rest: &mut &str| *rest = &rest[rest.len() - blank(rest)..];
    let mut rest = text;
    after_blank(&mut rest);
    let dollar = |rest: &mut &str| {
        if let Some(after) = rest.strip_prefix('$') {
            *rest = after;
        }
        after_blank(rest);
    };
    dollar(&mut rest);
    let negative_mark = rest.starts_with(['-', '(']);
    rest = rest.strip_prefix(['-', '(', '+']).unwrap_or(rest);
    after_blank(&mut rest);
    dollar(&mut rest);

    let (mut value, mut fraction, mut rounds_up) = (0i128, None, false);
    while let Some(c) = rest.chars().next() {
        match (c.to_digit(10), fraction) {
            (Some(digit), None | Some(..DIGITS)) => {
                // Down to what no digits that follow bring back into range.
                value = (value * 10 + i128::from(digit)).min(1 << 100);
                fraction = fraction.map(|n| n + 1);
            }
            (Some(digit), Some(DIGITS)) => {
                rounds_up = digit >= 5;
                fraction = Some(DIGITS + 1);
            }
            (Some(_), Some(_)) => {}
            (None, None) if c == '.' => fraction = Some(0),
            (None, _) if c == ',' => {}
            _ => break,
        }
        rest = &rest[1..];
    }
    for _ in fraction.unwrap_or(0)..DIGITS {
        value *= 10;
    }
    value += i128::from(rounds_up);
    let mut negative = negative_mark;
    while let Some(c) = rest.chars().next() {
        match c {
            ')' | '+' | '$' => {}
            '-' => negative = true,
            c if is_space(c) => {}
            _ => return Err(invalid()),
        }
        rest = &rest[1..];
    }
    let value = if negative { -value } else { value };
    i64::try_from(value).map_err(|_| out_of_range(oid::MONEY, text))
}

fn write(hundredths: i64, out: &mut Vec<u8>) {
    let digits = hundredths.unsigned_abs().to_string();
    let digits = format!("{digits:0>3}");
    let (whole, cents) = digits.split_at(digits.len() - DIGITS);
    if hundredths < 0 {
        out.push(b'-');
    }
    out.push(b'$');
    for (at, digit) in whole.bytes().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(b',');
        }
        out.push(digit);
    }
    out.push(b'.');
    out.extend_from_slice(cents.as_bytes());
}

pub(super) static MONEY: BaseInputOutput = BaseInputOutput {
    ty: oid::MONEY,
    input: |_, text, _| parse(text).map(|value| stored(value).to_vec()),
    output: |_, value, out| write(from_stored(value), out),
    receive: |_, binary| {
        let mut reader = Reader(binary);
        let value = i64::from_be_bytes(reader.take()?);
        reader.end()?;
        Ok(stored(value).to_vec())
    },
    send: |_, value, out| {
        out.extend_from_slice(&from_stored(value).to_be_bytes());
        Ok(())
    },
    modifier: None,
};
