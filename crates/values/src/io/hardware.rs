//! `macaddr` and `macaddr8`: addresses of network cards, of six and of eight bytes.

use super::base::BaseInputOutput;
use super::binary::Reader;
use super::invalid_syntax;
use super::scalar::{is_space, write_hex};
use throng_types::error::state;
use throng_types::{Error, Result, oid};

/// What stands between the halves of an address that is widened.
pub const WIDENING: [u8; 2] = [0xff, 0xfe];

/// The forms of `macaddr`: how many hexadecimal digits each number has at most, how many numbers
/// there are, and what is behind each one but the last.
const FORMS: [(usize, &str); 7] = [
    (usize::MAX, ":::::"),
    (usize::MAX, "-----"),
    (2, "  :  "),
    (2, "  -  "),
    (2, " . . "),
    (2, " - - "),
    (2, "     "),
];

/// A hexadecimal number as `scanf` reads it, after blanks; of so many digits at most.
fn number(text: &str, most: usize) -> Option<(i64, &str)> {
    let mut rest = text.trim_start_matches(is_space);
    let mut negative = false;
    if most == usize::MAX {
        negative = rest.starts_with('-');
        rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let prefix = rest.strip_prefix("0x").or(rest.strip_prefix("0X"));
        let digits = prefix.filter(|after| after.starts_with(|c: char| c.is_ascii_hexdigit()));
        rest = digits.unwrap_or(rest);
    }
    let digits = rest.bytes().take(most).take_while(u8::is_ascii_hexdigit);
    let count = digits.count();
    let value = rest[..count].chars().fold(0i64, |value, digit| {
        let digit = digit.to_digit(16).unwrap_or(0);
        (value * 16 + i64::from(digit)).min(1 << 32)
    });
    let value = if negative { -value } else { value };
    (count > 0).then(|| (value, &rest[count..]))
}

fn numbers(text: &str, (digits, marks): (usize, &str)) -> Option<[i64; 6]> {
    let mut numbers = [0; 6];
    let mut rest = text;
    for (at, slot) in numbers.iter_mut().enumerate() {
        (*slot, rest) = number(rest, digits)?;
        match marks.as_bytes().get(at) {
            None | Some(b' ') => {}
            Some(mark) => rest = rest.strip_prefix(char::from(*mark))?,
        }
    }
    rest.trim_start_matches(is_space)
        .is_empty()
        .then_some(numbers)
}

fn parse(text: &str) -> Result<Vec<u8>> {
    let numbers = FORMS.iter().find_map(|form| numbers(text, *form));
    let numbers = numbers.ok_or_else(|| invalid_syntax(oid::MACADDR, text))?;
    let octets: Option<Vec<u8>> = numbers.iter().map(|n| u8::try_from(*n).ok()).collect();
    octets.ok_or_else(|| {
        let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
        Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message)
    })
}

/// Pairs of digits with one kind of mark between any of them; six are widened.
fn parse_wide(text: &str) -> Result<Vec<u8>> {
    let invalid = || invalid_syntax(oid::MACADDR8, text);
    let mut rest = text.trim_matches(is_space).as_bytes();
    let (mut octets, mut mark) = (Vec::new(), None);
    while let [first, second, after @ ..] = rest {
        let digit = |b: &u8| char::from(*b).to_digit(16).ok_or_else(invalid);
        octets.push((digit(first)? << 4 | digit(second)?) as u8);
        rest = after;
        if let [found @ (b':' | b'-' | b'.'), after @ ..] = rest {
            if *mark.get_or_insert(*found) != *found {
                return Err(invalid());
            }
            rest = after;
        }
    }
    match (rest, octets.len()) {
        ([], 6) => Ok(widened(&octets)),
        ([], 8) => Ok(octets),
        _ => Err(invalid()),
    }
}

/// Six bytes as eight.
pub fn widened(octets: &[u8]) -> Vec<u8> {
    [&octets[..3], &WIDENING, &octets[3..]].concat()
}

fn write(octets: &[u8], out: &mut Vec<u8>) {
    for (at, octet) in octets.iter().enumerate() {
        if at > 0 {
            out.push(b':');
        }
        write_hex(&[*octet], out);
    }
}

/// What both types have in common.
const EITHER: BaseInputOutput = BaseInputOutput {
    ty: oid::MACADDR,
    input: |_, text, _| parse(text),
    output: |_, value, out| write(value, out),
    receive: |_, binary| {
        let mut reader = Reader(binary);
        let octets = reader.bytes(6)?.to_vec();
        reader.end()?;
        Ok(octets)
    },
    send: |_, value, out| {
        out.extend_from_slice(value);
        Ok(())
    },
    modifier: None,
};

pub(super) static MACADDR: BaseInputOutput = EITHER;

pub(super) static MACADDR8: BaseInputOutput = BaseInputOutput {
    ty: oid::MACADDR8,
    input: |_, text, _| parse_wide(text),
    receive: |_, binary| {
        if binary.len() == 6 {
            return Ok(widened(binary));
        }
        let mut reader = Reader(binary);
        let octets = reader.bytes(8)?.to_vec();
        reader.end()?;
        Ok(octets)
    },
    ..EITHER
};
