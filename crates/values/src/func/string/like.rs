//! LIKE and ILIKE: `%` for any run, `_` for one character, an escape for either.

use crate::func::string::bytes::bytes;
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult, Function, Operator};
use throng_types::base::lower_case;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, oid::*};

#[cold]
fn ends_with_escape() -> Error {
    Error::new(
        state::INVALID_ESCAPE_SEQUENCE,
        "LIKE pattern must not end with escape character",
    )
}

/// Does all of the text match? `width` tells how many bytes the unit has that starts with a byte.
///
/// Only the last `%` is ever tried again, one unit further: what an earlier one could give up, the
/// later one takes anyway. So the time is text times pattern at worst.
fn matches(s: &[u8], pattern: &[u8], width: fn(u8) -> usize) -> Result<bool> {
    let (mut at, mut p) = (0, 0);
    // Where to go on after a mismatch: in the pattern behind `%`, in the text.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some(b'%') => {
                p += 1;
                let Some(next) = candidate(s, at, pattern.get(p)) else {
                    return Ok(false);
                };
                at = next;
                retry = Some((p, at));
                continue;
            }
            Some(b'_') => s.get(at).map(|&b| (width(b), 1)),
            Some(b'\\') => {
                let literal = *pattern.get(p + 1).ok_or_else(ends_with_escape)?;
                s.get(at).filter(|&&b| b == literal).map(|_| (1, 2))
            }
            Some(&literal) => s.get(at).filter(|&&b| b == literal).map(|_| (1, 1)),
            None if at == s.len() => return Ok(true),
            None => None,
        };
        match (step, &mut retry) {
            (Some((text_step, pattern_step)), _) => {
                at += text_step;
                p += pattern_step;
            }
            (None, Some((after, from))) if *from < s.len() => {
                let Some(next) = candidate(s, *from + width(s[*from]), pattern.get(*after)) else {
                    return Ok(false);
                };
                *from = next;
                (p, at) = (*after, next);
            }
            _ => return Ok(false),
        }
    }
}

/// Where in the text, from a place on, what follows `%` may begin.
fn candidate(s: &[u8], from: usize, next: Option<&u8>) -> Option<usize> {
    match next {
        None => Some(s.len()),
        Some(b'%' | b'_' | b'\\') => Some(from),
        Some(&literal) => memchr::memchr(literal, s.get(from..)?).map(|at| from + at),
    }
}

/// Bytes of the UTF-8 character that starts with this one.
fn character_width(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

/// Does a string match a LIKE pattern whose escape is the backslash?
pub fn like(s: &str, pattern: &str) -> Result<bool> {
    matches(s.as_bytes(), pattern.as_bytes(), character_width)
}

fn textlike(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(like(text(&args[0]), text(&args[1]))?.into())
}
fn textnlike(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((!like(text(&args[0]), text(&args[1]))?).into())
}
fn texticlike(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(like(&lower_case(text(&args[0])), &lower_case(text(&args[1])))?.into())
}
fn texticnlike(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((!like(&lower_case(text(&args[0])), &lower_case(text(&args[1])))?).into())
}
fn bytealike(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(matches(bytes(&args[0]), bytes(&args[1]), |_| 1)?.into())
}
fn byteanlike(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((!matches(bytes(&args[0]), bytes(&args[1]), |_| 1)?).into())
}

#[cold]
pub fn bad_escape() -> Error {
    Error::new(state::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
        .hint("Escape string must be empty or one character.")
}

/// A pattern with its escape exchanged for the backslash; an empty escape stands for none.
fn like_escape(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut characters = text(&args[1]).chars();
    let escape = match (characters.next(), characters.next()) {
        (escape, None) => escape,
        _ => return Err(bad_escape().into()),
    };
    let pattern = text(&args[0]);
    if escape == Some('\\') {
        return Ok(args[0].clone());
    }
    let mut out = String::with_capacity(pattern.len() + 4);
    let mut escaped = false;
    for c in pattern.chars() {
        if Some(c) == escape && !escaped {
            out.push('\\');
            escaped = true;
            continue;
        }
        if c == '\\' && !escaped {
            out.push('\\');
        }
        out.push(c);
        escaped = false;
    }
    Ok(out.into())
}
fn like_escape_bytea(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let escape = match bytes(&args[1]) {
        [] => None,
        [one] => Some(*one),
        _ => return Err(bad_escape().into()),
    };
    if escape == Some(b'\\') {
        return Ok(args[0].clone());
    }
    let mut out = Vec::new();
    let mut escaped = false;
    for &b in bytes(&args[0]) {
        if Some(b) == escape && !escaped {
            out.push(b'\\');
            escaped = true;
            continue;
        }
        if b == b'\\' && !escaped {
            out.push(b'\\');
        }
        out.push(b);
        escaped = false;
    }
    Ok(Datum::bytea(out))
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(1569, "like", &[TEXT, TEXT], BOOL, textlike),
    Function::new(1571, "like", &[NAME, TEXT], BOOL, textlike),
    Function::new(2007, "like", &[BYTEA, BYTEA], BOOL, bytealike),
    Function::new(1570, "notlike", &[TEXT, TEXT], BOOL, textnlike),
    Function::new(1572, "notlike", &[NAME, TEXT], BOOL, textnlike),
    Function::new(2008, "notlike", &[BYTEA, BYTEA], BOOL, byteanlike),
    Function::new(1637, "like_escape", &[TEXT, TEXT], TEXT, like_escape),
    Function::new(
        2009,
        "like_escape",
        &[BYTEA, BYTEA],
        BYTEA,
        like_escape_bytea,
    ),
    Function::new(850, "textlike", &[TEXT, TEXT], BOOL, textlike),
    Function::new(851, "textnlike", &[TEXT, TEXT], BOOL, textnlike),
    Function::new(1633, "texticlike", &[TEXT, TEXT], BOOL, texticlike),
    Function::new(1634, "texticnlike", &[TEXT, TEXT], BOOL, texticnlike),
    Function::new(1631, "bpcharlike", &[BPCHAR, TEXT], BOOL, textlike),
    Function::new(1632, "bpcharnlike", &[BPCHAR, TEXT], BOOL, textnlike),
    Function::new(858, "namelike", &[NAME, TEXT], BOOL, textlike),
    Function::new(859, "namenlike", &[NAME, TEXT], BOOL, textnlike),
    Function::new(2005, "bytealike", &[BYTEA, BYTEA], BOOL, bytealike),
    Function::new(2006, "byteanlike", &[BYTEA, BYTEA], BOOL, byteanlike),
    Function::new(1635, "nameiclike", &[NAME, TEXT], BOOL, texticlike),
    Function::new(1636, "nameicnlike", &[NAME, TEXT], BOOL, texticnlike),
    Function::new(1660, "bpchariclike", &[BPCHAR, TEXT], BOOL, texticlike),
    Function::new(1661, "bpcharicnlike", &[BPCHAR, TEXT], BOOL, texticnlike),
];

pub static OPERATORS: &[Operator] = &[
    Operator::new(1208, "!~~", NAME, TEXT, BOOL, (859, "namenlike"), textnlike).related(0, 1207),
    Operator::new(1210, "!~~", TEXT, TEXT, BOOL, (851, "textnlike"), textnlike).related(0, 1209),
    Operator::new(
        1212,
        "!~~",
        BPCHAR,
        TEXT,
        BOOL,
        (1632, "bpcharnlike"),
        textnlike,
    )
    .related(0, 1211),
    Operator::new(
        2017,
        "!~~",
        BYTEA,
        BYTEA,
        BOOL,
        (2006, "byteanlike"),
        byteanlike,
    )
    .related(0, 2016),
    Operator::new(
        1626,
        "!~~*",
        NAME,
        TEXT,
        BOOL,
        (1636, "nameicnlike"),
        texticnlike,
    )
    .related(0, 1625),
    Operator::new(
        1628,
        "!~~*",
        TEXT,
        TEXT,
        BOOL,
        (1634, "texticnlike"),
        texticnlike,
    )
    .related(0, 1627),
    Operator::new(
        1630,
        "!~~*",
        BPCHAR,
        TEXT,
        BOOL,
        (1661, "bpcharicnlike"),
        texticnlike,
    )
    .related(0, 1629),
    Operator::new(1207, "~~", NAME, TEXT, BOOL, (858, "namelike"), textlike).related(0, 1208),
    Operator::new(1209, "~~", TEXT, TEXT, BOOL, (850, "textlike"), textlike).related(0, 1210),
    Operator::new(
        1211,
        "~~",
        BPCHAR,
        TEXT,
        BOOL,
        (1631, "bpcharlike"),
        textlike,
    )
    .related(0, 1212),
    Operator::new(
        2016,
        "~~",
        BYTEA,
        BYTEA,
        BOOL,
        (2005, "bytealike"),
        bytealike,
    )
    .related(0, 2017),
    Operator::new(
        1625,
        "~~*",
        NAME,
        TEXT,
        BOOL,
        (1635, "nameiclike"),
        texticlike,
    )
    .related(0, 1626),
    Operator::new(
        1627,
        "~~*",
        TEXT,
        TEXT,
        BOOL,
        (1633, "texticlike"),
        texticlike,
    )
    .related(0, 1628),
    Operator::new(
        1629,
        "~~*",
        BPCHAR,
        TEXT,
        BOOL,
        (1660, "bpchariclike"),
        texticlike,
    )
    .related(0, 1630),
];
