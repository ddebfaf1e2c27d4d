//! Byte strings: parts, bits, and their forms as text (hex, base64, escape).

use crate::func::number::{int, integer_out_of_range};
use crate::func::string::{clipped, negative_length, text};
use crate::func::{EvalContext, EvalResult, Function, Operator};
use crate::io::scalar::{decode_escape, decode_hex, write_escaped, write_hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, oid::*};

pub fn bytes(value: &Datum) -> &[u8] {
    match value {
        Datum::Bytea(b) => b,
        _ => unreachable!("not a byte string: {value:?}"),
    }
}

#[cold]
fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

fn slice(b: &[u8], start: i64, len: Option<i64>) -> Result<&[u8]> {
    let (from, to) = clipped(start, len)?;
    let end = to.map_or(b.len(), |to| (to.max(0) as usize).min(b.len()));
    Ok(&b[(from as usize).min(end)..end])
}
fn bytea_substr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::bytea(slice(
        bytes(&args[0]),
        int(&args[1]),
        args.get(2).map(int),
    )?))
}
fn byteacat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::bytea([bytes(&args[0]), bytes(&args[1])].concat()))
}
fn octet_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((bytes(&args[0]).len() as i32).into())
}
fn bit_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((bytes(&args[0]).len() as i32 * 8).into())
}
fn position(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (b, wanted) = (bytes(&args[0]), bytes(&args[1]));
    if wanted.is_empty() {
        return Ok(1.into());
    }
    let found = b.windows(wanted.len()).position(|w| w == wanted);
    Ok(found.map_or(0, |at| at as i32 + 1).into())
}
fn trimmed(args: &[Datum], front: bool, back: bool) -> EvalResult {
    let (mut b, set) = (bytes(&args[0]), bytes(&args[1]));
    while let ([first, rest @ ..], true) = (b, front) {
        if !set.contains(first) {
            break;
        }
        b = rest;
    }
    while let ([rest @ .., last], true) = (b, back) {
        if !set.contains(last) {
            break;
        }
        b = rest;
    }
    Ok(Datum::bytea(b))
}
fn btrim(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    trimmed(args, true, true)
}
fn ltrim(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    trimmed(args, true, false)
}
fn rtrim(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    trimmed(args, false, true)
}
fn reverse(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let reversed: Vec<u8> = bytes(&args[0]).iter().rev().copied().collect();
    Ok(Datum::bytea(reversed))
}
fn overlay(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (b, new, start) = (bytes(&args[0]), bytes(&args[1]), int(&args[2]));
    let len = args.get(3).map_or(new.len() as i64, int);
    if start <= 0 {
        return Err(negative_length().into());
    }
    let after = i64::from(i32::try_from(start + len).map_err(|_| integer_out_of_range())?);
    let before = slice(b, 1, Some(start - 1))?;
    Ok(Datum::bytea([before, new, slice(b, after, None)?].concat()))
}

/// An index below a limit, or PostgreSQL's complaint.
fn index(value: &Datum, limit: usize) -> Result<usize> {
    let index = int(value);
    usize::try_from(index)
        .ok()
        .filter(|&i| i < limit)
        .ok_or_else(|| {
            let last = limit as i64 - 1;
            let message = format!("index {index} out of valid range, 0..{last}");
            Error::new(state::ARRAY_SUBSCRIPT_ERROR, message)
        })
}
fn get_byte(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let b = bytes(&args[0]);
    Ok(i32::from(b[index(&args[1], b.len())?]).into())
}
fn set_byte(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut b = bytes(&args[0]).to_vec();
    let at = index(&args[1], b.len())?;
    b[at] = int(&args[2]) as u8;
    Ok(Datum::bytea(b))
}
/// Bits are counted from the lowest of the first byte.
fn get_bit(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let b = bytes(&args[0]);
    let at = index(&args[1], b.len() * 8)?;
    Ok(i32::from(b[at / 8] >> (at % 8) & 1).into())
}
fn set_bit(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut b = bytes(&args[0]).to_vec();
    let at = index(&args[1], b.len() * 8)?;
    match int(&args[2]) {
        0 => b[at / 8] &= !(1 << (at % 8)),
        1 => b[at / 8] |= 1 << (at % 8),
        _ => return Err(invalid("new bit must be 0 or 1").into()),
    }
    Ok(Datum::bytea(b))
}
fn bit_count(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(bytes(&args[0])
        .iter()
        .map(|b| i64::from(b.count_ones()))
        .sum::<i64>()
        .into())
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters in a line, as MIME has it.
const BASE64_LINE: usize = 76;

fn to_base64(b: &[u8]) -> String {
    let mut out = String::with_capacity(b.len() * 4 / 3 + b.len() / 57 + 4);
    for (number, line) in b.chunks(BASE64_LINE / 4 * 3).enumerate() {
        if number > 0 {
            out.push('\n');
        }
        STANDARD.encode_string(line, &mut out);
    }
    out
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count, mut padding) = (0u32, 0, 0);
    for c in text.chars() {
        let digit = match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '=' if padding == 0 && count < 2 => {
                return Err(invalid("unexpected \"=\" while decoding base64 sequence"));
            }
            '=' => {
                padding += 1;
                0
            }
            _ => BASE64
                .iter()
                .position(|&d| char::from(d) == c)
                .ok_or_else(|| {
                    invalid(format!(
                        "invalid symbol \"{c}\" found while decoding base64 sequence"
                    ))
                })?,
        };
        bits = bits << 6 | digit as u32;
        count += 1;
        if count == 4 {
            let group = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
            out.extend_from_slice(&group[..3usize.saturating_sub(padding)]);
            (bits, count) = (0, 0);
        }
    }
    if count != 0 {
        return Err(invalid("invalid base64 end sequence")
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

fn unrecognized(name: &str) -> Error {
    invalid(format!("unrecognized encoding: \"{name}\""))
}
fn encode(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (b, format) = (bytes(&args[0]), text(&args[1]));
    let mut out = Vec::new();
    match format.to_ascii_lowercase().as_str() {
        "hex" => write_hex(b, &mut out),
        "base64" => return Ok(to_base64(b).into()),
        "escape" => write_escaped(b, |b| b == 0 || b >= 0x80, &mut out),
        _ => return Err(unrecognized(format).into()),
    }
    Ok(String::from_utf8(out).map_err(Error::internal)?.into())
}
fn decode(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, format) = (text(&args[0]), text(&args[1]));
    Ok(Datum::bytea(match format.to_ascii_lowercase().as_str() {
        "hex" => decode_hex(s.as_bytes())?,
        "base64" => from_base64(s)?,
        "escape" => decode_escape(s.as_bytes()).ok_or_else(|| {
            let message = "invalid input syntax for type bytea";
            Error::new(state::INVALID_TEXT_REPRESENTATION, message)
        })?,
        _ => return Err(unrecognized(format).into()),
    }))
}

fn md5(b: &[u8]) -> EvalResult {
    let mut out = Vec::new();
    write_hex(&<Md5 as md5::Digest>::digest(b), &mut out);
    Ok(String::from_utf8(out).map_err(Error::internal)?.into())
}
fn md5_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    md5(text(&args[0]).as_bytes())
}
fn md5_bytea(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    md5(bytes(&args[0]))
}

fn sha<D: Digest>(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::bytea(D::digest(bytes(&args[0])).to_vec()))
}

fn crc32(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(i64::from(crc_fast::crc32_iso_hdlc(bytes(&args[0]))).into())
}
fn crc32c(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(i64::from(crc_fast::crc32_iscsi(bytes(&args[0]))).into())
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(6364, "crc32", &[BYTEA], INT8, crc32),
    Function::new(6365, "crc32c", &[BYTEA], INT8, crc32c),
    Function::new(2010, "length", &[BYTEA], INT4, octet_length),
    Function::new(720, "octet_length", &[BYTEA], INT4, octet_length),
    Function::new(1810, "bit_length", &[BYTEA], INT4, bit_length),
    Function::new(2085, "substr", &[BYTEA, INT4, INT4], BYTEA, bytea_substr),
    Function::new(2086, "substr", &[BYTEA, INT4], BYTEA, bytea_substr),
    Function::new(2012, "substring", &[BYTEA, INT4, INT4], BYTEA, bytea_substr),
    Function::new(2013, "substring", &[BYTEA, INT4], BYTEA, bytea_substr),
    Function::new(2014, "position", &[BYTEA, BYTEA], INT4, position),
    Function::new(2015, "btrim", &[BYTEA, BYTEA], BYTEA, btrim),
    Function::new(6195, "ltrim", &[BYTEA, BYTEA], BYTEA, ltrim),
    Function::new(6196, "rtrim", &[BYTEA, BYTEA], BYTEA, rtrim),
    Function::new(6382, "reverse", &[BYTEA], BYTEA, reverse),
    Function::new(749, "overlay", &[BYTEA, BYTEA, INT4, INT4], BYTEA, overlay),
    Function::new(752, "overlay", &[BYTEA, BYTEA, INT4], BYTEA, overlay),
    Function::new(721, "get_byte", &[BYTEA, INT4], INT4, get_byte),
    Function::new(722, "set_byte", &[BYTEA, INT4, INT4], BYTEA, set_byte),
    Function::new(723, "get_bit", &[BYTEA, INT8], INT4, get_bit),
    Function::new(724, "set_bit", &[BYTEA, INT8, INT4], BYTEA, set_bit),
    Function::new(6163, "bit_count", &[BYTEA], INT8, bit_count),
    Function::new(1946, "encode", &[BYTEA, TEXT], TEXT, encode),
    Function::new(1947, "decode", &[TEXT, TEXT], BYTEA, decode),
    Function::new(2311, "md5", &[TEXT], TEXT, md5_text),
    Function::new(2321, "md5", &[BYTEA], TEXT, md5_bytea),
    Function::new(3419, "sha224", &[BYTEA], BYTEA, sha::<Sha224>),
    Function::new(3420, "sha256", &[BYTEA], BYTEA, sha::<Sha256>),
    Function::new(3421, "sha384", &[BYTEA], BYTEA, sha::<Sha384>),
    Function::new(3422, "sha512", &[BYTEA], BYTEA, sha::<Sha512>),
    Function::new(2011, "byteacat", &[BYTEA, BYTEA], BYTEA, byteacat),
];

pub static OPERATORS: &[Operator] = &[Operator::new(
    2018,
    "||",
    BYTEA,
    BYTEA,
    BYTEA,
    (2011, "byteacat"),
    byteacat,
)];
