//! What is inside a `json`: pieces of its text.

use super::super::array::array;
use super::super::number::int;
use super::super::string::text;
use super::super::{EvalContext, EvalResult};
use super::access::utf8;
use super::{invalid, json, path};
use crate::io::json::{JsonPart, Token, Walker};
use std::borrow::Cow;
use std::ops::Range;
use throng_types::jsonb::write_string;
use throng_types::{Datum, Result, Text};

/// A value's parts one level down, each by where it is written.
pub enum Top<'a> {
    /// A string's meaning, or what else is written.
    Scalar(Cow<'a, str>),
    Array(Vec<Range<usize>>),
    Object(Vec<(Cow<'a, str>, Range<usize>)>),
}

/// Reads a value's parts. Strings that mean nothing (`\u0000`) are refused wherever they are.
pub fn top(text: &str) -> Result<Top<'_>> {
    let mut walker = Walker::new(text, true);
    let mut top = Top::Array(Vec::new());
    let (mut start, mut key) = (0, None);
    while let Some(part) = walker.next_part()? {
        let span = walker.span();
        let whole = match (part, walker.depth()) {
            (JsonPart::Scalar(Token::String, _), 0) => {
                top = Top::Scalar(walker.take_string());
                continue;
            }
            (JsonPart::Scalar(_, written), 0) => {
                top = Top::Scalar(Cow::Borrowed(written));
                continue;
            }
            (JsonPart::ObjectStart, 1) => {
                top = Top::Object(Vec::new());
                continue;
            }
            (JsonPart::ObjectStart | JsonPart::ArrayStart, 2) => {
                start = span.start;
                continue;
            }
            (JsonPart::Key(name), 1) => {
                key = Some(name);
                continue;
            }
            (JsonPart::Scalar(..), 1) => span,
            (JsonPart::ObjectEnd | JsonPart::ArrayEnd, 1) => start..span.end,
            _ => continue,
        };
        match &mut top {
            Top::Array(items) => items.push(whole),
            Top::Object(members) => members.push((key.take().unwrap_or_default(), whole)),
            Top::Scalar(..) => {}
        }
    }
    Ok(top)
}

/// Where the member so named is written: of several the last.
fn member(text: &str, name: &str) -> Result<Option<Range<usize>>> {
    Ok(match top(text)? {
        Top::Object(members) => members
            .into_iter()
            .rfind(|(key, _)| key == name)
            .map(|(_, at)| at),
        _ => None,
    })
}

/// Where the element so numbered is written, from the end where negative.
fn element(text: &str, index: i64) -> Result<Option<Range<usize>>> {
    Ok(match top(text)? {
        Top::Array(items) => {
            let at = if index < 0 {
                index + items.len() as i64
            } else {
                index
            };
            usize::try_from(at)
                .ok()
                .and_then(|at| items.get(at).cloned())
        }
        _ => None,
    })
}

/// A piece of a text as `json`.
pub fn piece(text: &str, at: Range<usize>) -> Datum {
    Datum::Json(Text::new(&text[at]))
}
/// A piece of a text as text: a string's own, and none for null.
pub fn piece_text(text: &str, at: Range<usize>) -> Result<Datum> {
    let piece = &text[at];
    Ok(match piece.as_bytes() {
        b"null" => Datum::Null,
        [b'"', ..] => match top(piece)? {
            Top::Scalar(string) => string.into_owned().into(),
            _ => Datum::Null,
        },
        _ => piece.into(),
    })
}

fn found(text: &str, at: Option<Range<usize>>) -> EvalResult {
    Ok(at.map_or(Datum::Null, |at| piece(text, at)))
}
fn found_text(text: &str, at: Option<Range<usize>>) -> EvalResult {
    Ok(at.map_or(Ok(Datum::Null), |at| piece_text(text, at))?)
}

pub fn object_field(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = json(&args[0]);
    found(whole, member(whole, text(&args[1]))?)
}
pub fn object_field_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = json(&args[0]);
    found_text(whole, member(whole, text(&args[1]))?)
}
pub fn array_element(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = json(&args[0]);
    found(whole, element(whole, int(&args[1]))?)
}
pub fn array_element_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = json(&args[0]);
    found_text(whole, element(whole, int(&args[1]))?)
}

fn follow(whole: &str, steps: &[&str]) -> Result<Option<Range<usize>>> {
    let mut at = 0..whole.len();
    for step in steps {
        let inside = &whole[at.clone()];
        let found = match inside.trim_start().as_bytes().first() {
            Some(b'{') => member(inside, step)?,
            _ => match path::subscript(step) {
                Some(index) => element(inside, index.into())?,
                None => None,
            },
        };
        let Some(found) = found else {
            return Ok(None);
        };
        at = at.start + found.start..at.start + found.end;
    }
    Ok(Some(at))
}
/// The whole without the spaces around it, which are not part of it.
fn trimmed(whole: &str, at: Range<usize>) -> Range<usize> {
    let text = &whole[at.clone()];
    let start = at.start + (text.len() - text.trim_start().len());
    start..start + text.trim().len()
}
fn at_path(whole: &str, args: &[Datum]) -> Result<Option<Range<usize>>> {
    match path::steps(array(&args[1])) {
        Some(steps) => follow(whole, &steps),
        None => Ok(None),
    }
}
pub fn extract_path(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = json(&args[0]);
    found(whole, at_path(whole, args)?)
}
pub fn extract_path_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = json(&args[0]);
    let at = at_path(whole, args)?.map(|at| trimmed(whole, at));
    found_text(whole, at)
}
fn at_steps(whole: &str, args: &[Datum]) -> Result<Option<Range<usize>>> {
    let steps: Option<Vec<&str>> = args[1..].iter().map(Datum::as_str).collect();
    steps.map_or(Ok(None), |steps| follow(whole, &steps))
}
pub fn extract_steps(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = json(&args[0]);
    found(whole, at_steps(whole, args)?)
}
pub fn extract_steps_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = json(&args[0]);
    let at = at_steps(whole, args)?.map(|at| trimmed(whole, at));
    found_text(whole, at)
}

pub fn type_name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let first = json(&args[0]).trim_start().as_bytes().first();
    let name = match first {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    };
    Ok(name.into())
}
pub fn array_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match top(json(&args[0]))? {
        Top::Array(items) => Ok((items.len() as i32).into()),
        Top::Object(_) => Err(invalid("cannot get array length of a non-array").into()),
        Top::Scalar(..) => Err(invalid("cannot get array length of a scalar").into()),
    }
}

/// `json_strip_nulls`: the text made anew without the members that are null, and perhaps the
/// elements.
pub fn strip_nulls(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let in_arrays = args.get(1).is_some_and(Datum::is_true);
    let mut walker = Walker::new(json(&args[0]), true);
    let mut out: Vec<u8> = Vec::new();
    // Whether each open container is an object.
    let mut open: Vec<bool> = Vec::new();
    let mut key = None;
    while let Some(part) = walker.next_part()? {
        if let JsonPart::Key(name) = part {
            key = Some(name);
            continue;
        }
        let ends = matches!(part, JsonPart::ObjectEnd | JsonPart::ArrayEnd);
        let drops = open.last().is_some_and(|&object| object || in_arrays);
        if drops && matches!(part, JsonPart::Scalar(Token::Null, _)) {
            key = None;
            continue;
        }
        if !ends {
            if !open.is_empty() && !matches!(out.last(), Some(b'{' | b'[')) {
                out.push(b',');
            }
            if let Some(name) = key.take() {
                write_string(&name, &mut out);
                out.push(b':');
            }
        }
        match part {
            JsonPart::ObjectStart | JsonPart::ArrayStart => {
                let object = part == JsonPart::ObjectStart;
                open.push(object);
                out.push(if object { b'{' } else { b'[' });
            }
            JsonPart::ObjectEnd | JsonPart::ArrayEnd => {
                let object = open.pop() == Some(true);
                out.push(if object { b'}' } else { b']' });
            }
            JsonPart::Scalar(Token::String, _) => write_string(&walker.take_string(), &mut out),
            JsonPart::Scalar(_, written) => out.extend_from_slice(written.as_bytes()),
            JsonPart::Key(_) => {}
        }
    }
    Ok(Datum::Json(utf8(out)?.into()))
}
