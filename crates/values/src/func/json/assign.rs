//! Assignment to a part of a `jsonb` by subscripts: `SET j['a'][0] = …`.
//!
//! What is missing on the way is made: an array where the next subscript is an integer, else an
//! object. A NULL becomes an empty one first.

use std::borrow::Cow;

use throng_types::error::state;
use throng_types::jsonb::{Elements, Json, JsonRef, Members, View};
use throng_types::oid::{BOOL, JSONB, TEXT_ARRAY};
use throng_types::{Datum, Error, Result};

use super::super::array::array;
use super::super::{EvalContext, EvalResult, Function};
use super::{invalid, jsonb, path};

/// Of the value, the path, what is put there, and whether the path begins with an integer.
pub static ASSIGN: Function = Function::new(
    0,
    "jsonb_assign",
    &[JSONB, TEXT_ARRAY, JSONB, BOOL],
    JSONB,
    assign,
)
.lenient();

fn assign(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let steps = array(&args[1]).items.iter().map(Datum::as_str);
    let Some(steps) = steps.collect::<Option<Vec<&str>>>() else {
        let message = "jsonb subscript in assignment must not be null";
        return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message).into());
    };
    let value = match args[2].is_null() {
        true => Json::Null,
        false => Json::Part(jsonb(&args[2]).root()),
    };
    let whole = match (args[0].is_null(), args[3].is_true()) {
        (false, _) => put(jsonb(&args[0]).root(), &steps, 0, value)?,
        (true, false) => Json::Object(vec![(Cow::Borrowed(steps[0]), made(&steps, 1, value))]),
        (true, true) => made(&steps, 0, value),
    };
    Ok(Datum::Jsonb(whole.encode()?))
}

/// A value with another one put at the path from this level on.
fn put<'a>(value: JsonRef<'a>, steps: &[&'a str], level: usize, new: Json<'a>) -> Result<Json<'a>> {
    match value.view() {
        View::Object(all) => put_in_object(all, steps, level, new),
        View::Array(all) => put_in_array(all, steps, level, new),
        _ => Err(invalid("cannot replace existing key")
            .detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}

fn put_in_object<'a>(
    all: Members<'a>,
    steps: &[&'a str],
    level: usize,
    new: Json<'a>,
) -> Result<Json<'a>> {
    let found = all.find(steps[level]);
    let inside = match found {
        Some(at) if level + 1 < steps.len() => put(all.value(at), steps, level + 1, new)?,
        _ => made(steps, level + 1, new),
    };
    let each = all.iter();
    let mut members: Vec<(Cow<'a, str>, Json<'a>)> = each
        .map(|(key, value)| (Cow::Borrowed(key), Json::Part(value)))
        .collect();
    match found {
        Some(at) => members[at].1 = inside,
        None => members.push((Cow::Borrowed(steps[level]), inside)),
    }
    Ok(Json::Object(members))
}

fn put_in_array<'a>(
    all: Elements<'a>,
    steps: &[&'a str],
    level: usize,
    new: Json<'a>,
) -> Result<Json<'a>> {
    let place = level + 1;
    let Some(index) = path::subscript(steps[level]) else {
        let step = steps[level];
        let message = format!("path element at position {place} is not an integer: \"{step}\"");
        return Err(Error::new(state::INVALID_TEXT_REPRESENTATION, message));
    };
    let count = all.len() as i64;
    let at = match i64::from(index) {
        index if index >= 0 => index,
        index if index + count >= 0 => index + count,
        _ => {
            let message = format!("path element at position {place} is out of range: {index}");
            return Err(invalid(message));
        }
    } as usize;
    let inside = match all.get(at).filter(|_| level + 1 < steps.len()) {
        Some(there) => put(there, steps, level + 1, new)?,
        None => made(steps, level + 1, new),
    };
    let mut elements: Vec<Json<'a>> = all.iter().map(Json::Part).collect();
    fill(&mut elements, at);
    match elements.get_mut(at) {
        Some(element) => *element = inside,
        None => elements.push(inside),
    }
    Ok(Json::Array(elements))
}

/// Puts NULLs before a place.
fn fill(elements: &mut Vec<Json<'_>>, at: usize) {
    while elements.len() < at {
        elements.push(Json::Null);
    }
}

/// The containers that the rest of a path goes through, and the value in the innermost.
fn made<'a>(steps: &[&'a str], level: usize, new: Json<'a>) -> Json<'a> {
    let mut value = new;
    for step in steps[level..].iter().rev() {
        value = match path::subscript(step) {
            Some(index) => {
                let mut elements = Vec::new();
                fill(&mut elements, usize::try_from(index).unwrap_or(0));
                elements.push(value);
                Json::Array(elements)
            }
            None => Json::Object(vec![(Cow::Borrowed(*step), value)]),
        };
    }
    value
}
