//! What is inside a `jsonb`: parts by key, subscript and path; containment; what it is.

use super::super::array::array;
use super::super::number::int;
use super::super::string::text;
use super::super::{EvalContext, EvalResult};
use super::{invalid, jsonb, path};
use throng_types::jsonb::{JsonRef, View, contains};
use throng_types::{Datum, Result};

/// The part as `jsonb`.
fn part(part: Option<JsonRef<'_>>) -> EvalResult {
    Ok(part.map_or(Datum::Null, |p| Datum::Jsonb(p.to_owned())))
}

/// The part as text: a string's own, and none for null.
pub fn as_text(part: Option<JsonRef<'_>>) -> Datum {
    match part.map(|p| (p, p.view())) {
        None | Some((_, View::Null)) => Datum::Null,
        Some((_, View::String(text))) => text.into(),
        Some((part, _)) => part.to_text().into(),
    }
}

pub fn object_field(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    part(jsonb(&args[0]).root().member(text(&args[1])))
}
pub fn object_field_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(as_text(jsonb(&args[0]).root().member(text(&args[1]))))
}
/// An element of the whole value. One that is neither array nor object counts as an array of
/// itself.
fn element_of<'a>(args: &'a [Datum]) -> Option<JsonRef<'a>> {
    let (root, at) = (jsonb(&args[0]).root(), int(&args[1]));
    match root.is_container() {
        true => root.element(at),
        false => matches!(at, 0 | -1).then_some(root),
    }
}
pub fn array_element(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    part(element_of(args))
}
pub fn array_element_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(as_text(element_of(args)))
}

fn follow<'a>(root: JsonRef<'a>, steps: &[&str]) -> Option<JsonRef<'a>> {
    steps.iter().try_fold(root, |value, step| {
        if value.is_object() {
            value.member(step)
        } else {
            value.element(path::subscript(step)?.into())
        }
    })
}
fn at_path(args: &[Datum]) -> Option<JsonRef<'_>> {
    follow(jsonb(&args[0]).root(), &path::steps(array(&args[1]))?)
}
pub fn extract_path(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    part(at_path(args))
}
pub fn extract_path_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(as_text(at_path(args)))
}
/// The same with each step an argument.
fn at_steps(args: &[Datum]) -> Option<JsonRef<'_>> {
    let steps: Option<Vec<&str>> = args[1..].iter().map(Datum::as_str).collect();
    follow(jsonb(&args[0]).root(), &steps?)
}
pub fn extract_steps(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    part(at_steps(args))
}
pub fn extract_steps_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(as_text(at_steps(args)))
}

pub fn contains_value(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(contains(jsonb(&args[0]).root(), jsonb(&args[1]).root()).into())
}
pub fn contained_value(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(contains(jsonb(&args[1]).root(), jsonb(&args[0]).root()).into())
}

/// Is the string a key of the object, an element of the array, or the value?
fn has_key(root: JsonRef<'_>, key: &str) -> bool {
    let is_key = |value: JsonRef<'_>| matches!(value.view(), View::String(s) if s == key);
    match root.view() {
        View::Object(members) => members.find(key).is_some(),
        View::Array(elements) => elements.iter().any(is_key),
        _ => is_key(root),
    }
}
pub fn exists(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(has_key(jsonb(&args[0]).root(), text(&args[1])).into())
}
/// NULLs among the keys are passed over.
fn keys(args: &[Datum]) -> impl Iterator<Item = &str> {
    array(&args[1]).items.iter().filter_map(Datum::as_str)
}
pub fn exists_any(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let root = jsonb(&args[0]).root();
    Ok(keys(args).any(|key| has_key(root, key)).into())
}
pub fn exists_all(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let root = jsonb(&args[0]).root();
    Ok(keys(args).all(|key| has_key(root, key)).into())
}

pub fn type_name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(kind(&jsonb(&args[0]).root().view()).into())
}
fn kind(view: &View<'_>) -> &'static str {
    match view {
        View::Null => "null",
        View::Bool(_) => "boolean",
        View::Number(_) => "number",
        View::String(_) => "string",
        View::Array(_) => "array",
        View::Object(_) => "object",
    }
}
pub fn array_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match jsonb(&args[0]).root().view() {
        View::Array(elements) => Ok((elements.len() as i32).into()),
        View::Object(_) => Err(invalid("cannot get array length of a non-array").into()),
        _ => Err(invalid("cannot get array length of a scalar").into()),
    }
}
pub fn pretty(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut out = Vec::new();
    jsonb(&args[0]).root().write_pretty(&mut out);
    Ok(utf8(out)?.into())
}
pub fn compare(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((jsonb(&args[0]).compare(jsonb(&args[1])) as i32).into())
}

/// What was written of strings and ASCII.
pub fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| throng_types::Error::internal("JSON is not UTF-8"))
}
