//! ASCII armor of OpenPGP (RFC 4880, section 6): base64 with a checksum between two lines.

use super::{failed, invalid};
use crate::func::extension::bytes;
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult, EvalStop, SetIterator};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use throng_types::datum::Record;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, interrupt, oid};

const BEGIN: &str = "-----BEGIN PGP MESSAGE-----\n";
const END: &str = "-----END PGP MESSAGE-----\n";
const LINE: usize = 76;

fn checksum(bytes: &[u8]) -> [u8; 3] {
    let mut crc = 0x00b7_04ce_u32;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= 0x0186_4cfb;
            }
        }
    }
    let [_, a, b, c] = crc.to_be_bytes();
    [a, b, c]
}

/// The texts of an array of keys or of values.
fn words(array: &Datum) -> Result<Vec<&str>> {
    let Datum::Array(array) = array else {
        return Ok(Vec::new());
    };
    if array.dims.len() > 1 {
        let message = "wrong number of array subscripts";
        return Err(Error::new(state::ARRAY_SUBSCRIPT_ERROR, message));
    }
    let word = |item| match item {
        &Datum::Null => Err(Error::new(
            state::NULL_VALUE_NOT_ALLOWED,
            "null value not allowed for header key",
        )),
        item => Ok(text(item)),
    };
    array.items.iter().map(word).collect()
}

pub(super) fn armor(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let data = bytes(&args[0]);
    interrupt::expect(data.len())?;
    let mut out = BEGIN.to_owned();
    if let [_, keys, values] = args {
        let (keys, values) = (words(keys)?, words(values)?);
        if keys.len() != values.len() {
            let message = "mismatched array dimensions";
            return Err(Error::new(state::ARRAY_SUBSCRIPT_ERROR, message).into());
        }
        for (key, value) in keys.into_iter().zip(values) {
            let wrong = if !key.is_ascii() {
                Some("header key must not contain non-ASCII characters")
            } else if key.contains(": ") {
                Some("header key must not contain \": \"")
            } else if key.contains('\n') {
                Some("header key must not contain newlines")
            } else if !value.is_ascii() {
                Some("header value must not contain non-ASCII characters")
            } else if value.contains('\n') {
                Some("header value must not contain newlines")
            } else {
                None
            };
            if let Some(wrong) = wrong {
                return Err(invalid(wrong).into());
            }
            out += &format!("{key}: {value}\n");
        }
    }
    out.push('\n');
    let encoded = STANDARD.encode(data);
    for line in encoded.as_bytes().chunks(LINE) {
        out += &String::from_utf8_lossy(line);
        out.push('\n');
    }
    out.push('=');
    out += &STANDARD.encode(checksum(data));
    out.push('\n');
    out += END;
    Ok(out.into())
}

#[cold]
fn corrupt() -> Error {
    failed("Corrupt ascii-armor")
}

/// The lines between the first line of an armor and its last, and the text of its headers.
fn parts(armor: &str) -> Option<(&str, &str)> {
    let begins = |at: usize| at == 0 || armor.as_bytes()[at - 1] == b'\n';
    let line = |from: usize, word: &str| {
        let mut found = armor[from..].match_indices(word).map(|(at, _)| from + at);
        found.find(|at| begins(*at))
    };
    let start = line(0, "-----BEGIN")?;
    let headers = start + armor[start..].find('\n')? + 1;
    let end = line(headers, "-----END")?;
    let inner = &armor[headers..end];
    let mut at = 0;
    for line in inner.split_inclusive('\n') {
        if line.trim_end_matches(['\r', '\n']).is_empty() {
            return Some((&inner[..at], &inner[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

pub(super) fn dearmor(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let armor = text(&args[0]);
    interrupt::expect(armor.len())?;
    let (_, body) = parts(armor).ok_or_else(corrupt)?;
    let at = body.rfind("\n=").map(|at| at + 1);
    let at = at.or(body.starts_with('=').then_some(0));
    let at = at.ok_or_else(corrupt)?;
    let plain = |part: &str| -> Option<Vec<u8>> {
        let letters: String = part.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        STANDARD.decode(letters).ok()
    };
    let data = plain(&body[..at]).ok_or_else(corrupt)?;
    let sum = plain(&body[at + 1..]).ok_or_else(corrupt)?;
    match sum == checksum(&data) {
        true => Ok(Datum::bytea(data)),
        false => Err(corrupt().into()),
    }
}

pub(super) fn headers(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let armor = text(&args[0]);
    interrupt::expect(armor.len())?;
    let (headers, _) = parts(armor).ok_or_else(corrupt)?;
    let mut found = Vec::new();
    for line in headers.lines() {
        let (key, value) = line.split_once(": ").ok_or_else(corrupt)?;
        let record = Record {
            types: [oid::TEXT, oid::TEXT].into(),
            names: None,
            values: vec![key.into(), value.into()],
        };
        found.push(Ok(Datum::Record(Arc::new(record))));
    }
    Ok(Box::new(found.into_iter()))
}
