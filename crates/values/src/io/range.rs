//! Ranges and multiranges as text: `[1,5)`, `{[1,5),[7,)}`; and in binary.

use super::binary::{Reader, invalid, read_sized, too_short, write_sized};
use super::scalar::is_space;
use super::{input_plain, output_text};
use crate::eval::EvalContext;
use crate::range::{gather, make};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::range::{Bound, Bounds, RangeType, multirange_type, range_type};
use throng_types::sqltype::type_name;
use throng_types::{Datum, Error, Multirange, Oid, Range, Result, SqlType, stack};

#[cold]
fn malformed(what: &str, text: &str, detail: &str) -> Error {
    let message = format!("malformed {what} literal: \"{text}\"");
    Error::new(state::INVALID_TEXT_REPRESENTATION, message).detail(detail)
}

const EMPTY: &str = "empty";

/// The text behind the word `empty`, however it is written.
fn after_empty(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(EMPTY.len())?;
    word.eq_ignore_ascii_case(EMPTY).then_some(rest)
}

/// One bound's text, quotes and backslashes taken away; None where there is none at all. `rest` is
/// left at what ends it.
fn bound_text(rest: &mut &str, text: &str) -> Result<Option<String>> {
    if rest.starts_with([',', ')', ']']) {
        return Ok(None);
    }
    let ended = || malformed("range", text, "Unexpected end of input.");
    let mut out = String::new();
    let mut quoted = false;
    let mut chars = rest.char_indices().peekable();
    loop {
        let (at, c) = chars.next().ok_or_else(ended)?;
        match c {
            ',' | ')' | ']' if !quoted => {
                *rest = &rest[at..];
                return Ok(Some(out));
            }
            '\\' => out.push(chars.next().ok_or_else(ended)?.1),
            '"' if !quoted => quoted = true,
            '"' if chars.peek().is_some_and(|(_, c)| *c == '"') => {
                chars.next();
                out.push('"');
            }
            '"' => quoted = false,
            c => out.push(c),
        }
    }
}

/// Reads a range.
pub fn parse(ctx: &EvalContext<'_>, text: &str, ty: &RangeType) -> Result<Range> {
    stack::check()?;
    let wrong = |detail: &str| malformed("range", text, detail);
    let mut rest = text.trim_start_matches(is_space);
    if let Some(behind) = after_empty(rest) {
        return match behind.trim_start_matches(is_space) {
            "" => Ok(Range::empty(ty)),
            _ => Err(wrong("Junk after \"empty\" key word.")),
        };
    }
    let lower_inclusive = rest.starts_with('[');
    rest = rest
        .strip_prefix(['[', '('])
        .ok_or_else(|| wrong("Missing left parenthesis or bracket."))?;
    let lower = bound_text(&mut rest, text)?;
    rest = rest
        .strip_prefix(',')
        .ok_or_else(|| wrong("Missing comma after lower bound."))?;
    let upper = bound_text(&mut rest, text)?;
    let upper_inclusive = rest.starts_with(']');
    rest = rest
        .strip_prefix([']', ')'])
        .ok_or_else(|| wrong("Too many commas."))?;
    if !rest.trim_start_matches(is_space).is_empty() {
        return Err(wrong("Junk after right parenthesis or bracket."));
    }
    let value = |text: Option<String>| match text {
        Some(text) => input_plain(ctx, &text, ty.subtype, -1),
        None => Ok(Datum::Null),
    };
    let ends = Bounds {
        lower: Bound::new(value(lower)?, lower_inclusive),
        upper: Bound::new(value(upper)?, upper_inclusive),
    };
    make(ty, ends)
}

/// The text of a range at the front of what follows; `rest` is left behind it.
fn one_range<'a>(rest: &mut &'a str, text: &str) -> Result<&'a str> {
    let whole = *rest;
    if after_empty(whole).is_some() {
        let (range, behind) = whole.split_at(EMPTY.len());
        *rest = behind;
        return Ok(range);
    }
    if !whole.starts_with(['[', '(']) {
        return Err(malformed("multirange", text, "Expected range start."));
    }
    let mut quoted = false;
    let mut chars = whole.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' if quoted && chars.peek().is_some_and(|(_, c)| *c == '"') => drop(chars.next()),
            '"' => quoted = !quoted,
            ']' | ')' if !quoted => {
                let (range, behind) = whole.split_at(at + 1);
                *rest = behind;
                return Ok(range);
            }
            _ => {}
        }
    }
    Err(malformed("multirange", text, "Unexpected end of input."))
}

/// Reads a multirange.
pub fn parse_multi(ctx: &EvalContext<'_>, text: &str, ty: &RangeType) -> Result<Multirange> {
    let wrong = |detail: &str| malformed("multirange", text, detail);
    let mut rest = text.trim_start_matches(is_space);
    rest = rest
        .strip_prefix('{')
        .ok_or_else(|| wrong("Missing left brace."))?
        .trim_start_matches(is_space);
    let mut ranges = Vec::new();
    if let Some(behind) = rest.strip_prefix('}') {
        rest = behind;
    } else {
        loop {
            rest = rest.trim_start_matches(is_space);
            if rest.is_empty() {
                return Err(wrong("Unexpected end of input."));
            }
            let range = one_range(&mut rest, text)?;
            ranges.push(Arc::new(parse(ctx, range, ty)?));
            rest = rest.trim_start_matches(is_space);
            let mut chars = rest.chars();
            let next = chars.next();
            rest = chars.as_str();
            match next {
                Some(',') => {}
                Some('}') => break,
                None => return Err(wrong("Unexpected end of input.")),
                Some(_) => return Err(wrong("Expected comma or end of multirange.")),
            }
        }
    }
    match rest.trim_start_matches(is_space) {
        "" => gather(ty, ranges),
        _ => Err(wrong("Junk after closing right brace.")),
    }
}

/// Appends a bound's value, in quotes if it needs them.
fn write_value(ctx: &EvalContext<'_>, value: &Datum, ty: SqlType, out: &mut Vec<u8>) {
    let start = out.len();
    output_text(ctx, value, ty, out);
    super::array::quote_from(
        out,
        start,
        |text| {
            let special = |b: &u8| matches!(b, b'(' | b')' | b'[' | b']' | b',');
            text.iter().any(special)
        },
        true,
    );
}

/// Appends a range's text.
pub fn write(ctx: &EvalContext<'_>, range: &Range, out: &mut Vec<u8>) {
    let Some(Bounds { lower, upper }) = &range.bounds else {
        out.extend_from_slice(EMPTY.as_bytes());
        return;
    };
    let subtype = SqlType::plain(range.subtype);
    out.push(if lower.inclusive { b'[' } else { b'(' });
    if !lower.is_infinite() {
        write_value(ctx, &lower.value, subtype, out);
    }
    out.push(b',');
    if !upper.is_infinite() {
        write_value(ctx, &upper.value, subtype, out);
    }
    out.push(if upper.inclusive { b']' } else { b')' });
}

/// Appends a multirange's text.
pub fn write_multi(ctx: &EvalContext<'_>, multirange: &Multirange, out: &mut Vec<u8>) {
    out.push(b'{');
    for (i, range) in multirange.ranges.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(ctx, range, out);
    }
    out.push(b'}');
}

/// The bits of a range's first byte in binary.
mod flag {
    pub const EMPTY: u8 = 1;
    pub const LOWER_INCLUSIVE: u8 = 2;
    pub const UPPER_INCLUSIVE: u8 = 4;
    pub const NO_LOWER: u8 = 8;
    pub const NO_UPPER: u8 = 16;
}

/// The flags of a range, which are hashed too.
pub fn flags(range: &Range) -> u8 {
    let Some(Bounds { lower, upper }) = &range.bounds else {
        return flag::EMPTY;
    };
    let set = |set: bool, flag: u8| if set { flag } else { 0 };
    set(lower.inclusive, flag::LOWER_INCLUSIVE)
        | set(upper.inclusive, flag::UPPER_INCLUSIVE)
        | set(lower.is_infinite(), flag::NO_LOWER)
        | set(upper.is_infinite(), flag::NO_UPPER)
}

/// Appends a range's binary form.
pub fn send(ctx: &EvalContext<'_>, range: &Range, out: &mut Vec<u8>) -> Result<()> {
    out.push(flags(range));
    let subtype = SqlType::plain(range.subtype);
    for end in range.bounds.iter().flat_map(|b| [&b.lower, &b.upper]) {
        if !end.is_infinite() {
            write_sized(ctx, &end.value, subtype, out)?;
        }
    }
    Ok(())
}

/// Appends a multirange's binary form.
pub fn send_multi(ctx: &EvalContext<'_>, multirange: &Multirange, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&(multirange.ranges.len() as i32).to_be_bytes());
    for range in &multirange.ranges {
        write_sized(
            ctx,
            &Datum::Range(Arc::clone(range)),
            SqlType::plain(range.ty),
            out,
        )?;
    }
    Ok(())
}

/// Reads the binary form of a range or a multirange.
///
/// # Errors
/// 42883 for a type that is neither.
pub(super) fn receive_any(ctx: &EvalContext<'_>, r: &mut Reader<'_>, ty: Oid) -> Result<Datum> {
    if let Some(range) = range_type(ty) {
        return Ok(Datum::Range(receive(ctx, r, &range)?.into()));
    }
    if let Some(range) = multirange_type(ty) {
        return Ok(Datum::Multirange(receive_multi(ctx, r, &range)?.into()));
    }
    Err(Error::new(
        state::UNDEFINED_FUNCTION,
        format!(
            "no binary input function available for type {}",
            type_name(ty)
        ),
    ))
}

/// Reads a range's binary form.
fn receive(ctx: &EvalContext<'_>, r: &mut Reader<'_>, ty: &RangeType) -> Result<Range> {
    stack::check()?;
    let [flags] = r.take()?;
    if flags & flag::EMPTY != 0 {
        return Ok(Range::empty(ty));
    }
    let mut end = |infinite: u8, inclusive: u8| -> Result<Bound> {
        if flags & infinite != 0 {
            return Ok(Bound::INFINITE);
        }
        let value = read_sized(ctx, r, ty.subtype, "range bound")?;
        match value.is_null() {
            true => Err(too_short()),
            false => Ok(Bound::new(value, flags & inclusive != 0)),
        }
    };
    let ends = Bounds {
        lower: end(flag::NO_LOWER, flag::LOWER_INCLUSIVE)?,
        upper: end(flag::NO_UPPER, flag::UPPER_INCLUSIVE)?,
    };
    make(ty, ends)
}

/// Reads a multirange's binary form.
fn receive_multi(ctx: &EvalContext<'_>, r: &mut Reader<'_>, ty: &RangeType) -> Result<Multirange> {
    let count = r.i32()?;
    let mut ranges = Vec::new();
    for _ in 0..count {
        match read_sized(ctx, r, ty.range, "multirange")? {
            Datum::Range(range) => ranges.push(range),
            _ => return Err(invalid("a multirange holds no NULLs")),
        }
    }
    gather(ty, ranges)
}
