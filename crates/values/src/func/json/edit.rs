//! Changing a `jsonb`: joining, removing, setting.

use super::super::array::array;
use super::super::number::int;
use super::super::string::text;
use super::super::{EvalContext, EvalResult};
use super::{invalid, jsonb, path};
use std::borrow::Cow;
use throng_types::error::state;
use throng_types::jsonb::{Elements, Json, JsonRef, Members, View};
use throng_types::{Array, Datum, Error, Result};

fn done(value: Json<'_>) -> EvalResult {
    Ok(Datum::Jsonb(value.encode()?))
}

/// The value as the elements it adds to an array.
fn elements(value: JsonRef<'_>) -> Vec<Json<'_>> {
    match value.view() {
        View::Array(elements) => elements.iter().map(Json::Part).collect(),
        _ => vec![Json::Part(value)],
    }
}
fn members<'a>(members: Members<'a>) -> Vec<(Cow<'a, str>, Json<'a>)> {
    let each = members.iter();
    each.map(|(key, value)| (Cow::Borrowed(key), Json::Part(value)))
        .collect()
}

pub fn concat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = (jsonb(&args[0]).root(), jsonb(&args[1]).root());
    if let (View::Object(a), View::Object(b)) = (a.view(), b.view()) {
        let mut all = members(a);
        all.extend(members(b));
        return done(Json::Object(all));
    }
    let mut all = elements(a);
    all.extend(elements(b));
    done(Json::Array(all))
}

/// A container, or 22023.
fn container(args: &[Datum]) -> Result<JsonRef<'_>> {
    let root = jsonb(&args[0]).root();
    match root.is_container() {
        true => Ok(root),
        false => Err(invalid("cannot delete from scalar")),
    }
}
fn without_keys(root: JsonRef<'_>, keys: &[&str]) -> EvalResult {
    let gone = |key: &str| keys.contains(&key);
    match root.view() {
        View::Object(all) => {
            let mut all = members(all);
            all.retain(|(key, _)| !gone(key));
            done(Json::Object(all))
        }
        View::Array(all) => {
            let stays = |e: &JsonRef<'_>| !matches!(e.view(), View::String(s) if gone(s));
            done(Json::Array(
                all.iter().filter(stays).map(Json::Part).collect(),
            ))
        }
        _ => done(root.into()),
    }
}
pub fn delete_key(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    without_keys(container(args)?, &[text(&args[1])])
}
pub fn delete_keys(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let keys = one_dimension(&args[1])?;
    let keys: Vec<&str> = keys.items.iter().filter_map(Datum::as_str).collect();
    without_keys(container(args)?, &keys)
}
pub fn delete_element(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let root = container(args)?;
    let View::Array(all) = root.view() else {
        return Err(invalid("cannot delete from object using integer index").into());
    };
    let index = int(&args[1]);
    let at = if index < 0 {
        index + all.len() as i64
    } else {
        index
    };
    let stays = all.iter().enumerate().filter(|(i, _)| *i as i64 != at);
    done(Json::Array(stays.map(|(_, e)| Json::Part(e)).collect()))
}

fn one_dimension(value: &Datum) -> Result<&Array> {
    let array: &Array = array(value);
    match array.dims.len() {
        0 | 1 => Ok(array),
        _ => Err(Error::new(
            state::ARRAY_SUBSCRIPT_ERROR,
            "wrong number of array subscripts",
        )),
    }
}

/// What is done at a path's end.
#[derive(Clone, Copy, PartialEq)]
enum Edit<'a> {
    Delete,
    /// Puts the value in the place of what is there; where nothing is, adds it if told to.
    Set {
        value: JsonRef<'a>,
        create: bool,
    },
    Insert {
        value: JsonRef<'a>,
        after: bool,
    },
}

impl<'a> Edit<'a> {
    /// What to add where nothing is.
    fn addition(self) -> Option<JsonRef<'a>> {
        match self {
            Edit::Set {
                value,
                create: true,
            }
            | Edit::Insert { value, .. } => Some(value),
            _ => None,
        }
    }
}

/// The value with the edit done at the path's end.
fn at_path<'a>(
    value: JsonRef<'a>,
    path: &'a [Datum],
    level: usize,
    edit: Edit<'a>,
) -> Result<Json<'a>> {
    let Some(step) = path[level].as_str() else {
        return Err(Error::new(
            state::NULL_VALUE_NOT_ALLOWED,
            format!("path element at position {} is null", level + 1),
        ));
    };
    match value.view() {
        View::Object(all) => in_object(all, path, level, step, edit),
        View::Array(all) => in_array(all, path, level, step, edit),
        _ => Ok(value.into()),
    }
}

fn in_object<'a>(
    all: Members<'a>,
    path: &'a [Datum],
    level: usize,
    step: &'a str,
    edit: Edit<'a>,
) -> Result<Json<'a>> {
    let last = level + 1 == path.len();
    let mut edited = members(all);
    let Some(at) = all.find(step) else {
        if let (true, Some(value)) = (last, edit.addition()) {
            edited.push((Cow::Borrowed(step), value.into()));
        }
        return Ok(Json::Object(edited));
    };
    if !last {
        edited[at].1 = at_path(all.value(at), path, level + 1, edit)?;
        return Ok(Json::Object(edited));
    }
    match edit {
        Edit::Delete => {
            edited.remove(at);
        }
        Edit::Set { value, .. } => edited[at].1 = value.into(),
        Edit::Insert { .. } => {
            return Err(invalid("cannot replace existing key")
                .hint("Try using the function jsonb_set to replace key value."));
        }
    }
    Ok(Json::Object(edited))
}

fn in_array<'a>(
    all: Elements<'a>,
    path: &'a [Datum],
    level: usize,
    step: &'a str,
    edit: Edit<'a>,
) -> Result<Json<'a>> {
    let last = level + 1 == path.len();
    let Some(index) = path::subscript(step) else {
        return Err(Error::new(
            state::INVALID_TEXT_REPRESENTATION,
            format!(
                "path element at position {} is not an integer: \"{step}\"",
                level + 1
            ),
        ));
    };
    let count = all.len() as i64;
    let at = match i64::from(index) {
        index if index < 0 => index + count,
        index => index.min(count),
    };
    let mut edited: Vec<Json<'a>> = all.iter().map(Json::Part).collect();
    if at < 0 || at >= count {
        // Before the first, or after the last.
        if let (true, Some(value)) = (last, edit.addition()) {
            let end = if at < 0 { 0 } else { edited.len() };
            edited.insert(end, value.into());
        }
        return Ok(Json::Array(edited));
    }
    let at = at as usize;
    if !last {
        if let Some(inside) = all.get(at) {
            edited[at] = at_path(inside, path, level + 1, edit)?;
        }
        return Ok(Json::Array(edited));
    }
    match edit {
        Edit::Delete => {
            edited.remove(at);
        }
        Edit::Set { value, .. } => edited[at] = value.into(),
        Edit::Insert { value, after } => edited.insert(at + usize::from(after), value.into()),
    }
    Ok(Json::Array(edited))
}

fn is_empty(root: JsonRef<'_>) -> bool {
    match root.view() {
        View::Array(all) => all.is_empty(),
        View::Object(all) => all.is_empty(),
        _ => false,
    }
}

fn edit(args: &[Datum], edit: Edit<'_>, in_scalar: &str) -> EvalResult {
    let path = one_dimension(&args[1])?;
    let root = jsonb(&args[0]).root();
    if !root.is_container() {
        return Err(invalid(in_scalar).into());
    }
    if path.items.is_empty() || (is_empty(root) && edit.addition().is_none()) {
        return Ok(args[0].clone());
    }
    done(at_path(root, &path.items, 0, edit)?)
}
pub fn delete_path(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    edit(args, Edit::Delete, "cannot delete path in scalar")
}
pub fn set(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = jsonb(&args[2]).root();
    let create = args.get(3).is_none_or(Datum::is_true);
    edit(
        args,
        Edit::Set { value, create },
        "cannot set path in scalar",
    )
}
pub fn insert(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = jsonb(&args[2]).root();
    let after = args.get(3).is_some_and(Datum::is_true);
    edit(
        args,
        Edit::Insert { value, after },
        "cannot set path in scalar",
    )
}

/// `jsonb_set` with a say in what a NULL value does.
pub fn set_lax(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let create = args.get(3).cloned().unwrap_or(Datum::Bool(true));
    if args[0].is_null() || args[1].is_null() || create.is_null() {
        return Ok(Datum::Null);
    }
    let treatment = match args.get(4) {
        None => Some("use_json_null"),
        Some(given) => given.as_str(),
    };
    if !args[2].is_null() && treatment.is_some() {
        return set(
            ctx,
            &[args[0].clone(), args[1].clone(), args[2].clone(), create],
        );
    }
    match treatment {
        Some("raise_exception") => Err(Error::new(
            state::NULL_VALUE_NOT_ALLOWED,
            "JSON value must not be null",
        )
        .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
        .hint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")
        .into()),
        Some("use_json_null") => {
            let null = Datum::Jsonb(Json::Null.encode()?);
            set(ctx, &[args[0].clone(), args[1].clone(), null, create])
        }
        Some("delete_key") => delete_path(ctx, &args[..2]),
        Some("return_target") => Ok(args[0].clone()),
        _ => Err(invalid("null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"").into()),
    }
}

fn stripped(value: JsonRef<'_>, in_arrays: bool) -> Json<'_> {
    match value.view() {
        View::Array(all) => {
            let stays = all.iter().filter(|e| !(in_arrays && e.is_null()));
            Json::Array(stays.map(|e| stripped(e, in_arrays)).collect())
        }
        View::Object(all) => {
            let stays = all.iter().filter(|(_, value)| !value.is_null());
            let each = stays.map(|(key, value)| (Cow::Borrowed(key), stripped(value, in_arrays)));
            Json::Object(each.collect())
        }
        _ => value.into(),
    }
}
pub fn strip_nulls(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let in_arrays = args.get(1).is_some_and(Datum::is_true);
    done(stripped(jsonb(&args[0]).root(), in_arrays))
}
