//! Constructors, and IS JSON.

use super::JsonKind;
use crate::charset::check_text;
use crate::func::json::build::{key, null_key, to_json, tree, write};
use crate::func::{EvalContext, EvalResult};
use crate::io::json::{JsonPart, Walker};
use std::borrow::Cow;
use std::collections::HashSet;
use throng_types::error::state;
use throng_types::jsonb::{Json, View, write_string};
use throng_types::{Datum, Error, Result};

#[cold]
fn duplicate(name: Option<&str>) -> Error {
    let message = match name {
        Some(name) => format!("duplicate JSON object key value: \"{name}\""),
        None => "duplicate JSON object key value".to_string(),
    };
    Error::new(state::DUPLICATE_JSON_OBJECT_KEY_VALUE, message)
}

fn json_of(bytes: Vec<u8>) -> EvalResult {
    let text = String::from_utf8(bytes).map_err(|_| Error::internal("JSON is not UTF-8"))?;
    Ok(Datum::Json(text.into()))
}

/// `JSON(text WITH UNIQUE KEYS)`
pub fn unique(args: &[Datum]) -> EvalResult {
    let Some(text) = args[0].as_str() else {
        return Ok(Datum::Null);
    };
    if has_unique_keys(text)? {
        Ok(Datum::Json(text.into()))
    } else {
        Err(duplicate(None).into())
    }
}

/// `JSON_SCALAR(…)`
pub fn scalar(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match &args[0] {
        Datum::Null => Ok(Datum::Null),
        _ => to_json(ctx, args),
    }
}

/// Keys and values in turn.
pub fn object(
    ctx: &EvalContext<'_>,
    args: &[Datum],
    absent: bool,
    unique: bool,
    binary: bool,
) -> EvalResult {
    let mut names = HashSet::new();
    let mut members = Vec::with_capacity(args.len() / 2);
    for (i, pair) in args.chunks(2).enumerate() {
        let [name, value] = pair else { continue };
        if name.is_null() {
            return Err(match binary {
                true => Error::new(
                    state::INVALID_PARAMETER_VALUE,
                    format!("argument {}: key must not be null", 2 * i + 1),
                ),
                false => null_key(),
            }
            .into());
        }
        let name = key(ctx, name)?;
        if unique && !names.insert(name.clone()) {
            return Err(duplicate((!binary).then_some(name.as_str())).into());
        }
        if !(absent && value.is_null()) {
            members.push((name, value));
        }
    }
    if binary {
        let members = members.into_iter().map(|(name, value)| {
            let value = tree(ctx, value, value.natural_type())?;
            Ok((Cow::Owned(name), value))
        });
        let object = Json::Object(members.collect::<Result<_>>()?);
        return Ok(Datum::Jsonb(object.encode()?));
    }
    let mut out = vec![b'{'];
    for (i, (name, value)) in members.into_iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write_string(&name, &mut out);
        out.extend_from_slice(b" : ");
        write(ctx, value, value.natural_type(), false, &mut out);
    }
    out.push(b'}');
    json_of(out)
}

pub fn array(ctx: &EvalContext<'_>, args: &[Datum], absent: bool, binary: bool) -> EvalResult {
    let items = args.iter().filter(|v| !(absent && v.is_null()));
    if binary {
        let items = items.map(|v| tree(ctx, v, v.natural_type()));
        let array = Json::Array(items.collect::<Result<_>>()?);
        return Ok(Datum::Jsonb(array.encode()?));
    }
    let mut out = vec![b'['];
    for (i, value) in items.enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write(ctx, value, value.natural_type(), false, &mut out);
    }
    out.push(b']');
    json_of(out)
}

/// What a text of JSON is at its top, and whether no object in it has a key twice.
fn shape(text: &str, unique: bool) -> Result<(JsonKind, bool)> {
    let mut walker = Walker::new(text, unique);
    let mut kind = None;
    let mut open: Vec<HashSet<String>> = Vec::new();
    let mut is_unique = true;
    while let Some(part) = walker.next_part()? {
        kind.get_or_insert(match part {
            JsonPart::ObjectStart => JsonKind::Object,
            JsonPart::ArrayStart => JsonKind::Array,
            _ => JsonKind::Scalar,
        });
        match part {
            JsonPart::ObjectStart | JsonPart::ArrayStart if unique => open.push(HashSet::new()),
            JsonPart::ObjectEnd | JsonPart::ArrayEnd if unique => {
                open.pop();
            }
            JsonPart::Key(name) if unique => {
                if let Some(names) = open.last_mut() {
                    is_unique &= names.insert(name.into_owned());
                }
            }
            _ => {}
        }
    }
    Ok((kind.unwrap_or(JsonKind::Scalar), is_unique))
}

fn has_unique_keys(text: &str) -> Result<bool> {
    shape(text, true).map(|(_, unique)| unique)
}

fn suits(wanted: JsonKind, kind: JsonKind) -> bool {
    matches!(wanted, JsonKind::Any | JsonKind::Value) || wanted == kind
}

pub fn is_json(args: &[Datum], wanted: JsonKind, unique: bool) -> EvalResult {
    let text = match &args[0] {
        Datum::Null => return Ok(Datum::Null),
        Datum::Jsonb(value) => {
            let kind = match value.root().view() {
                View::Array(_) => JsonKind::Array,
                View::Object(_) => JsonKind::Object,
                _ => JsonKind::Scalar,
            };
            return Ok(suits(wanted, kind).into());
        }
        Datum::Bytea(bytes) => check_text(bytes)?,
        Datum::Json(text) | Datum::Text(text) => text,
        _ => return Err(Error::internal("IS JSON of a value that is no text").into()),
    };
    Ok(match shape(text, unique) {
        Ok((kind, is_unique)) => suits(wanted, kind) && (is_unique || !unique),
        // Nested too deeply to be looked at is no answer.
        Err(e) if e.code() == state::STATEMENT_TOO_COMPLEX => return Err(e.into()),
        Err(_) => false,
    }
    .into())
}
