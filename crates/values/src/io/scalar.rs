//! Text forms of numbers, booleans, bytes and identifiers.

use super::{ByteaOutput, invalid_syntax, out_of_range};
use std::io::Write;
use throng_types::error::state;
pub use throng_types::lexical::is_space;
use throng_types::numeric::ParseError;
use throng_types::{Datum, Error, Lsn, Numeric, Oid, Result, Tid, oid};

/// The longest identifier, in bytes.
pub const NAME_LIMIT: usize = 63;

/// Decimal, `0x`, `0o` or `0b`, single underscores between digits, spaces around.
#[inline]
pub fn parse_int<T: TryFrom<i64>>(text: &str, ty: Oid) -> Result<T> {
    // The everyday form first.
    let bytes = text.as_bytes();
    if (1..=18).contains(&bytes.len()) {
        let (negative, digits) = match bytes[0] {
            b'-' => (true, &bytes[1..]),
            _ => (false, bytes),
        };
        // Eighteen digits at most: no overflow.
        let magnitude = digits.iter().try_fold(0i64, |value, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| value * 10 + i64::from(digit))
        });
        if let Some(magnitude) = magnitude.filter(|_| !digits.is_empty()) {
            let value = if negative { -magnitude } else { magnitude };
            return T::try_from(value).map_err(|_| out_of_range(ty, text));
        }
    }
    let value = parse_int_slow(text, ty)?;
    T::try_from(value).map_err(|_| out_of_range(ty, text))
}

#[cold]
fn parse_int_slow(text: &str, ty: Oid) -> Result<i64> {
    let body = text.trim_matches(is_space);
    let (negative, body) = match body.as_bytes().first() {
        Some(b'-') => (true, &body[1..]),
        Some(b'+') => (false, &body[1..]),
        _ => (false, body),
    };
    let (radix, digits, mut before) = match body.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &body[2..], true),
        [b'0', b'o' | b'O', ..] => (8, &body[2..], true),
        [b'0', b'b' | b'B', ..] => (2, &body[2..], true),
        _ => (10, body, false),
    };
    let mut value: i128 = 0;
    let (mut any, mut overflow) = (false, false);
    for c in digits.chars() {
        if c == '_' && before {
            before = false;
            continue;
        }
        let digit = c.to_digit(radix).ok_or_else(|| invalid_syntax(ty, text))?;
        value = value * i128::from(radix) + i128::from(digit);
        overflow |= value > 1 << 64;
        value = value.min(1 << 65);
        any = true;
        before = true;
    }
    if !any || !before {
        return Err(invalid_syntax(ty, text));
    }
    let value = if negative { -value } else { value };
    i64::try_from(value)
        .ok()
        .filter(|_| !overflow)
        .ok_or_else(|| out_of_range(ty, text))
}

/// Appends an integer in decimal.
pub fn write_int(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_uint(value.unsigned_abs(), out);
}

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends an unsigned integer in decimal, two digits at a time.
pub fn write_uint(mut value: u64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        buffer[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Appends an integer with at least `width` digits.
pub fn write_padded(value: u64, width: usize, out: &mut Vec<u8>) {
    let mut limit = 10u64;
    for _ in 1..width {
        if value < limit {
            out.push(b'0');
        }
        limit = limit.saturating_mul(10);
    }
    // The zeros went out widest first; their number is what counts.
    write_uint(value, out);
}

/// Accepts the unique prefixes of true, false, yes, no, on, off, and 1 and 0.
pub fn parse_bool_word(text: &str) -> Option<bool> {
    let word = text.trim_matches(is_space).to_ascii_lowercase();
    let prefix_of = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if prefix_of("true", 1) || prefix_of("yes", 1) || word == "on" || word == "1" {
        Some(true)
    } else if prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || word == "0" {
        Some(false)
    } else {
        None
    }
}

pub fn parse_bool(text: &str) -> Result<bool> {
    match text {
        "t" => Ok(true),
        "f" => Ok(false),
        _ => parse_bool_word(text).ok_or_else(|| invalid_syntax(oid::BOOL, text)),
    }
}

/// A float's word or digits, in the forms `strtod` takes.
fn parse_float_text<T: std::str::FromStr>(text: &str, ty: Oid) -> Result<(T, &str)> {
    let body = text.trim_matches(is_space);
    let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
    let word = unsigned.to_ascii_lowercase();
    let plain = unsigned
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let named = matches!(word.as_str(), "nan" | "inf" | "infinity");
    if body.is_empty() || !(plain || named) {
        return Err(invalid_syntax(ty, text));
    }
    let value = body.parse().map_err(|_| invalid_syntax(ty, text))?;
    Ok((value, body))
}

fn has_nonzero_digit(body: &str) -> bool {
    body.bytes()
        .take_while(|b| !matches!(b, b'e' | b'E'))
        .any(|b| (b'1'..=b'9').contains(&b))
}

pub fn parse_float8(text: &str) -> Result<f64> {
    let (value, body) = parse_float_text::<f64>(text, oid::FLOAT8)?;
    let overflowed = value.is_infinite() && has_nonzero_digit(body);
    if overflowed || (value == 0.0 && has_nonzero_digit(body)) {
        return Err(Error::new(
            state::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{body}\" is out of range for type double precision"),
        ));
    }
    Ok(value)
}

pub fn parse_float4(text: &str) -> Result<f32> {
    let (value, body) = parse_float_text::<f32>(text, oid::FLOAT4)?;
    let overflowed = value.is_infinite() && has_nonzero_digit(body);
    if overflowed || (value == 0.0 && has_nonzero_digit(body)) {
        return Err(Error::new(
            state::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{body}\" is out of range for type real"),
        ));
    }
    Ok(value)
}

/// Appends a double: the shortest text that reads back the same, or rounded to `15 + extra` digits.
pub fn write_float8(value: f64, extra: i32, out: &mut Vec<u8>) {
    if extra > 0 {
        let spacing = (
            value.abs().next_up() - value.abs(),
            value.abs() - value.abs().next_down(),
        );
        write_shortest(
            value,
            |buffer| write!(buffer, "{value:e}"),
            &DOUBLE,
            spacing,
            out,
        );
    } else {
        write_general(value, (15 + extra).max(1) as usize, out);
    }
}

/// Appends a float4 likewise; 6 digits without extra ones.
pub fn write_float4(value: f32, extra: i32, out: &mut Vec<u8>) {
    if extra > 0 {
        let (wide, up, down) = (
            f64::from(value),
            value.abs().next_up(),
            value.abs().next_down(),
        );
        let spacing = (f64::from(up) - wide.abs(), wide.abs() - f64::from(down));
        write_shortest(
            wide,
            |buffer| write!(buffer, "{value:e}"),
            &SINGLE,
            spacing,
            out,
        );
    } else {
        write_general(f64::from(value), (6 + extra).max(1) as usize, out);
    }
}

fn write_special_float(value: f64, out: &mut Vec<u8>) -> bool {
    let name: &[u8] = if value.is_nan() {
        b"NaN"
    } else if value == f64::INFINITY {
        b"Infinity"
    } else if value == f64::NEG_INFINITY {
        b"-Infinity"
    } else {
        return false;
    };
    out.extend_from_slice(name);
    true
}

/// What the two widths of float differ in, when written.
struct FloatWidth {
    /// Plain digits below 10 to this power.
    limit: i32,
    /// From this many digits on, the value may lie halfway between two texts of that length.
    tie: usize,
    /// From here on all values are integers, and one halfway between two of them may have few
    /// digits.
    integers: f64,
}
const DOUBLE: FloatWidth = FloatWidth {
    limit: 15,
    tie: 16,
    integers: 9_007_199_254_740_992.0,
};
const SINGLE: FloatWidth = FloatWidth {
    limit: 6,
    tie: 7,
    integers: 16_777_216.0,
};

/// Lays out the digits that Rust's `{:e}` chose (`1.234e5`) as PostgreSQL does: plain from 1e-4 to
/// below 10^limit. `spacing` is how far the neighbours above and below are.
fn write_shortest(
    value: f64,
    digits: impl FnOnce(&mut &mut [u8]) -> std::io::Result<()>,
    width: &FloatWidth,
    spacing: (f64, f64),
    out: &mut Vec<u8>,
) {
    if write_special_float(value, out) {
        return;
    }
    let mut space = [0u8; 40];
    let mut cursor = &mut space[..];
    let written = digits(&mut cursor);
    let rest = cursor.len();
    debug_assert!(written.is_ok(), "17 digits and an exponent fit");
    let len = space.len() - rest;
    let text = &mut space[..len];
    if value.abs() >= width.integers
        && let Some(longer) = past_boundary(value, text, spacing)
    {
        return layout_digits(longer.as_bytes(), width.limit, out);
    }
    prefer_even(value, text, width.tie);
    layout_digits(text, width.limit, out);
}

/// Rust takes a text that lies exactly halfway to the next value; PostgreSQL then gives another
/// digit.
fn past_boundary(value: f64, text: &[u8], spacing: (f64, f64)) -> Option<String> {
    // Beyond, so few digits are never halfway.
    const LARGEST: f64 = 1.7e38;
    if value.abs() > LARGEST || spacing.0 < 2.0 {
        return None;
    }
    let exact = value.abs() as u128;
    let halfway = |text: &str| -> bool {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut digits = 0u128;
        let mut places = exponent.parse::<i32>().unwrap_or(0);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        places -= fraction.len() as i32;
        for d in whole.bytes().chain(fraction.bytes()) {
            digits = digits * 10 + u128::from(d - b'0');
        }
        let Some(shown) = u32::try_from(places)
            .ok()
            .and_then(|p| 10u128.checked_pow(p))
            .and_then(|p| digits.checked_mul(p))
        else {
            return false;
        };
        let gap = if shown > exact { spacing.0 } else { spacing.1 };
        shown.abs_diff(exact) * 2 == gap as u128
    };
    let text = std::str::from_utf8(text).ok()?.trim_start_matches('-');
    if !halfway(text) {
        return None;
    }
    let digits = text
        .bytes()
        .take_while(|&b| b != b'e')
        .filter(u8::is_ascii_digit)
        .count();
    (digits..=17)
        .map(|n| format!("{value:.n$e}"))
        .find(|t| !halfway(t.trim_start_matches('-')))
}

/// Rust rounds a value halfway between two shortest texts up, PostgreSQL to the even last digit.
fn prefer_even(value: f64, text: &mut [u8], tie: usize) {
    let Some(e) = text.iter().position(|&b| b == b'e') else {
        return;
    };
    let last = e - 1;
    let digits = text[..e].iter().filter(|b| b.is_ascii_digit()).count();
    if digits < tie || (text[last] - b'0').is_multiple_of(2) {
        return;
    }
    let exponent: i32 = std::str::from_utf8(&text[e + 1..])
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    // Halfway means that one more decimal is exact, so that many binary places are enough.
    let places = digits as i32 - exponent;
    if places > 64 || (places > 0 && (value * 2f64.powi(places)).fract() != 0.0) {
        return;
    }
    let longer = format!("{:.*e}", digits + 20, value.abs());
    let after = longer
        .bytes()
        .filter(u8::is_ascii_digit)
        .skip(digits)
        .take(20);
    let halfway = after
        .enumerate()
        .all(|(i, d)| d == if i == 0 { b'5' } else { b'0' });
    if halfway {
        // An odd digit is never 0: no borrow.
        text[last] -= 1;
    }
}

/// As C's `%.*g`.
fn write_general(value: f64, digits: usize, out: &mut Vec<u8>) {
    if write_special_float(value, out) {
        return;
    }
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    layout_digits(
        format!("{mantissa}e{exponent}").as_bytes(),
        digits as i32,
        out,
    );
}

fn layout_digits(scientific: &[u8], limit: i32, out: &mut Vec<u8>) {
    let (negative, body) = match scientific {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, scientific),
    };
    if negative {
        out.push(b'-');
    }
    let e = body.iter().position(|&b| b == b'e').unwrap_or(body.len());
    let exponent: i32 = std::str::from_utf8(body.get(e + 1..).unwrap_or(b"0"))
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    let mut digits = [0u8; 24];
    let mut n = 0;
    for &b in body[..e].iter().filter(|&&b| b != b'.') {
        digits[n] = b;
        n += 1;
    }
    let digits = &digits[..n];
    if (-4..limit).contains(&exponent) {
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-exponent - 1) as usize, b'0');
            out.extend_from_slice(digits);
        } else {
            let whole = exponent as usize + 1;
            if n <= whole {
                out.extend_from_slice(digits);
                out.resize(out.len() + whole - n, b'0');
            } else {
                out.extend_from_slice(&digits[..whole]);
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            }
        }
        return;
    }
    out.push(digits[0]);
    if n > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.push(b'e');
    out.push(if exponent < 0 { b'-' } else { b'+' });
    write_padded(u64::from(exponent.unsigned_abs()), 2, out);
}

pub fn parse_numeric(text: &str) -> Result<Numeric> {
    text.parse().map_err(|e| match e {
        ParseError::Syntax => invalid_syntax(oid::NUMERIC, text),
        ParseError::Overflow => Error::new(
            state::NUMERIC_VALUE_OUT_OF_RANGE,
            "value overflows numeric format",
        ),
    })
}

/// `\x…` hexadecimal, or the old escape form.
pub fn parse_bytea(text: &str) -> Result<Datum> {
    let bytes = match text.strip_prefix("\\x") {
        Some(hex) => decode_hex(hex.as_bytes())?,
        None => decode_escape(text.as_bytes()).ok_or_else(|| {
            Error::new(
                state::INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type bytea",
            )
        })?,
    };
    Ok(Datum::bytea(bytes))
}

/// Pairs of hexadecimal digits, space between pairs allowed.
pub fn decode_hex(text: &[u8]) -> Result<Vec<u8>> {
    let invalid = |byte: &[u8]| {
        let shown = String::from_utf8_lossy(byte);
        Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("invalid hexadecimal digit: \"{shown}\""),
        )
    };
    let digit = |i: usize| -> Result<u8> {
        let c = text[i] as char;
        let character_end = (i + 1..=text.len())
            .find(|&j| j == text.len() || text[j] & 0xc0 != 0x80)
            .unwrap_or(i + 1);
        c.to_digit(16)
            .map(|d| d as u8)
            .ok_or_else(|| invalid(&text[i..character_end]))
    };
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut i = 0;
    while i < text.len() {
        if matches!(text[i], b' ' | b'\n' | b'\t' | b'\r') {
            i += 1;
            continue;
        }
        let high = digit(i)?;
        if i + 1 >= text.len() {
            return Err(Error::new(
                state::INVALID_PARAMETER_VALUE,
                "invalid hexadecimal data: odd number of digits",
            ));
        }
        out.push(high << 4 | digit(i + 1)?);
        i += 2;
    }
    Ok(out)
}

/// `\\` and `\ooo`; None for any other backslash.
pub fn decode_escape(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut i = 0;
    while i < text.len() {
        if text[i] != b'\\' {
            out.push(text[i]);
            i += 1;
            continue;
        }
        match text.get(i + 1..) {
            Some([b'\\', ..]) => {
                out.push(b'\\');
                i += 2;
            }
            Some([a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                i += 4;
            }
            _ => return None,
        }
    }
    Some(out)
}

const HEX: &[u8; 16] = b"0123456789abcdef";

pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() * 2);
    for &b in bytes {
        out.push(HEX[usize::from(b >> 4)]);
        out.push(HEX[usize::from(b & 15)]);
    }
}

pub fn write_bytea(bytes: &[u8], style: ByteaOutput, out: &mut Vec<u8>) {
    match style {
        ByteaOutput::Hex => {
            out.extend_from_slice(b"\\x");
            write_hex(bytes, out);
        }
        ByteaOutput::Escape => write_escaped(bytes, |b| !(0x20..=0x7e).contains(&b), out),
    }
}

/// Backslashes doubled; bytes that need it as three octal digits.
pub fn write_escaped(bytes: &[u8], octal: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    for &b in bytes {
        if b == b'\\' {
            out.extend_from_slice(b"\\\\");
        } else if octal(b) {
            out.extend_from_slice(&[b'\\', b'0' + (b >> 6), b'0' + (b >> 3 & 7), b'0' + (b & 7)]);
        } else {
            out.push(b);
        }
    }
}

/// The type `"char"`: its first byte, or `\ooo` for one outside ASCII; empty is zero.
pub fn parse_char(text: &str) -> u8 {
    match text.as_bytes() {
        [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')
        }
        bytes => bytes.first().copied().unwrap_or(0),
    }
}

pub fn write_char(c: u8, out: &mut Vec<u8>) {
    match c {
        0 => {}
        0x80.. => {
            out.extend_from_slice(&[b'\\', b'0' + (c >> 6), b'0' + (c >> 3 & 7), b'0' + (c & 7)])
        }
        _ => out.push(c),
    }
}

/// Cut to the length of an identifier, between characters.
pub fn clip_name(text: &str) -> &str {
    let mut end = text.len().min(NAME_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// 32 hexadecimal digits, hyphens after any group of four, braces around.
pub fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    let invalid = || invalid_syntax(oid::UUID, text);
    let body = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or_else(invalid)?,
        None => text,
    };
    let bytes = body.as_bytes();
    let (mut uuid, mut at) = ([0u8; 16], 0);
    for (i, byte) in uuid.iter_mut().enumerate() {
        let pair = bytes.get(at..at + 2).ok_or_else(invalid)?;
        let digit = |c: u8| {
            (c as char)
                .to_digit(16)
                .map(|d| d as u8)
                .ok_or_else(invalid)
        };
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        at += 2;
        if i % 2 == 1 && i < 15 && bytes.get(at) == Some(&b'-') {
            at += 1;
        }
    }
    if at == bytes.len() {
        Ok(uuid)
    } else {
        Err(invalid())
    }
}

pub fn write_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    for (i, range) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
        if i > 0 {
            out.push(b'-');
        }
        write_hex(&uuid[range], out);
    }
}

/// Unsigned, or negative and wrapped, as `oid` takes numbers.
pub fn parse_oid(text: &str, ty: Oid) -> Result<u32> {
    let value = parse_as_c(text, ty)?;
    // A negative number is what it is in 32 bits.
    let same = [u64::from(value as u32), i64::from(value as i32) as u64].contains(&value);
    match same {
        true => Ok(value as u32),
        false => Err(out_of_range(ty, text)),
    }
}

/// A number as C reads one: hexadecimal after 0x, octal after 0; negative ones wrap around.
fn parse_as_c(text: &str, ty: Oid) -> Result<u64> {
    let body = text.trim_matches(is_space);
    let (negative, body) = match body.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, body.strip_prefix('+').unwrap_or(body)),
    };
    let (radix, digits) = match body.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &body[2..]),
        [b'0', _, ..] => (8, &body[1..]),
        _ => (10, body),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(invalid_syntax(ty, text));
    }
    let value = u64::from_str_radix(digits, radix).map_err(|_| out_of_range(ty, text))?;
    Ok(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// `xid8` and `pg_lsn`.
pub fn parse_wide(text: &str, ty: Oid) -> Result<Datum> {
    if ty == oid::XID8 {
        return parse_as_c(text, ty).map(wide);
    }
    let parsed = Lsn::from_halves(text);
    parsed
        .map(|lsn| wide(lsn.0))
        .ok_or_else(|| invalid_syntax(ty, text))
}

/// A position in the log or a transaction's id as a value: an integer in whose order they are.
pub fn wide(number: u64) -> Datum {
    Datum::Int8((number ^ 1 << 63) as i64)
}

/// The number that a value of `pg_lsn` or `xid8` is.
pub fn wide_number(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}

pub fn write_lsn(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(Lsn(wide_number(value)).to_halves().as_bytes());
}

pub fn parse_tid(text: &str) -> Result<Tid> {
    // A negative block is what it is in 32 bits.
    let block = |text: &str| {
        let wrapped = || text.parse::<i32>().ok().map(|n| n as u32);
        text.parse::<u32>().ok().or_else(wrapped)
    };
    let parsed = text
        .trim_matches(is_space)
        .strip_prefix('(')
        .and_then(|s| s.strip_suffix(')'))
        .and_then(|s| s.split_once(','))
        .and_then(|(b, s)| Some(Tid::new(block(b.trim())?, s.trim().parse().ok()?)));
    parsed.ok_or_else(|| invalid_syntax(oid::TID, text))
}
