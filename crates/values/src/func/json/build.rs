//! JSON of SQL's values.
//!
//! Numbers and booleans become themselves (but for NaN and the infinities), dates and timestamps
//! ISO 8601's strings, arrays arrays, rows objects, `json` and `jsonb` what they are, and
//! everything else a string of its text.

use super::super::array::array;
use super::super::{EvalContext, EvalResult};
use super::access::utf8;
use super::{invalid, is_opaque};
use crate::io::datetime::output;
use crate::io::json::parse_tree;
use crate::io::{DateFormat, DateOrder, DateStyle, FormatSettings, to_text};
use std::borrow::Cow;
use throng_types::datum::Dim;
use throng_types::error::state;
use throng_types::jsonb::{Json, write_string};
use throng_types::{Array, Datum, Error, Oid, Record, Result, SqlType, Text, oid};

const ISO: DateStyle = DateStyle {
    format: DateFormat::Iso,
    order: DateOrder::Ymd,
};

/// A moment as XML Schema writes it: a `T` between date and time, minutes in the zone.
fn moment(mut text: String, zoned: bool) -> String {
    let Some(at) = text.find(' ') else {
        // Infinite.
        return text;
    };
    text.replace_range(at..=at, "T");
    if zoned {
        let end = text.strip_suffix(" BC").map_or(text.len(), str::len);
        let zone = text[at..end].rfind(['+', '-']).map_or(end, |z| at + z);
        if !text[zone..end].contains(':') {
            text.insert_str(end, ":00");
        }
    }
    text
}

/// The text of a value that is written as a string.
pub(in crate::func) fn string_of(ctx: &EvalContext<'_>, value: &Datum, ty: Oid) -> String {
    let mut out = Vec::new();
    match value {
        Datum::Date(v) => output::date(*v, ISO, &mut out),
        Datum::Timestamp(v) => output::timestamp(*v, ISO, &mut out),
        Datum::TimestampTz(v) => {
            let format = FormatSettings {
                date_style: ISO,
                ..ctx.format.clone()
            };
            output::timestamptz(*v, &format, &mut out);
        }
        _ => return to_text(ctx, value, SqlType::plain(ty)),
    }
    let text = String::from_utf8(out).unwrap_or_default();
    match value {
        Datum::Date(_) => text,
        _ => moment(text, matches!(value, Datum::TimestampTz(_))),
    }
}

/// The type a value is of, as far as it tells.
fn natural(value: &Datum) -> Oid {
    value.natural_type()
}

fn is_number(value: &Datum, ty: Oid) -> bool {
    match value {
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => !is_opaque(ty),
        Datum::Float4(v) => v.is_finite(),
        Datum::Float8(v) => v.is_finite(),
        Datum::Numeric(v) => v.is_finite(),
        _ => false,
    }
}

/// The name of a row's field.
fn field_name(record: &Record, i: usize) -> Cow<'_, str> {
    match record.names.as_ref().and_then(|names| names.get(i)) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("f{}", i + 1)),
    }
}

/// Appends a value as `json`; `lines` puts the parts of an array or a row on lines of their own.
pub fn write(ctx: &EvalContext<'_>, value: &Datum, ty: Oid, lines: bool, out: &mut Vec<u8>) {
    match value {
        Datum::Null => out.extend_from_slice(b"null"),
        Datum::Bool(v) => out.extend_from_slice(if *v { b"true" } else { b"false" }),
        Datum::Json(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Jsonb(value) => value.root().write_text(out),
        Datum::Array(array) if !is_opaque(ty) => {
            write_level(ctx, array, &array.dims, &mut array.items.iter(), lines, out);
        }
        Datum::Record(record) => write_record(ctx, record, lines, out),
        value if is_number(value, ty) => {
            crate::io::output_text(ctx, value, SqlType::plain(ty), out);
        }
        value => write_string(&string_of(ctx, value, ty), out),
    }
}

fn separate(i: usize, lines: bool, out: &mut Vec<u8>) {
    match (i, lines) {
        (0, _) => {}
        (_, true) => out.extend_from_slice(b",\n "),
        (_, false) => out.push(b','),
    }
}

fn write_level<'a>(
    ctx: &EvalContext<'_>,
    array: &Array,
    dims: &[Dim],
    items: &mut impl Iterator<Item = &'a Datum>,
    lines: bool,
    out: &mut Vec<u8>,
) {
    out.push(b'[');
    let count = dims.first().map_or(0, |d| d.len as usize);
    for i in 0..count {
        separate(i, lines, out);
        match innermost(dims, items) {
            Some(item) => write(ctx, item, array.element, false, out),
            None => write_level(ctx, array, &dims[1..], items, false, out),
        }
    }
    out.push(b']');
}

/// The next item where this dimension is the last; above it there are none.
fn innermost<'a>(dims: &[Dim], items: &mut impl Iterator<Item = &'a Datum>) -> Option<&'a Datum> {
    if dims.len() == 1 { items.next() } else { None }
}

fn write_record(ctx: &EvalContext<'_>, record: &Record, lines: bool, out: &mut Vec<u8>) {
    out.push(b'{');
    for (i, (value, ty)) in record.values.iter().zip(record.types.iter()).enumerate() {
        separate(i, lines, out);
        write_string(&field_name(record, i), out);
        out.push(b':');
        write(ctx, value, *ty, false, out);
    }
    out.push(b'}');
}

/// A value as the tree of a `jsonb`.
pub fn tree<'a>(ctx: &EvalContext<'_>, value: &'a Datum, ty: Oid) -> Result<Json<'a>> {
    Ok(match value {
        Datum::Null => Json::Null,
        Datum::Bool(v) => Json::Bool(*v),
        Datum::Json(text) => parse_tree(text)?,
        Datum::Jsonb(value) => value.root().into(),
        Datum::Array(array) if !is_opaque(ty) => {
            tree_level(ctx, array, &array.dims, &mut array.items.iter())?
        }
        Datum::Record(record) => {
            let fields = record.values.iter().zip(record.types.iter()).enumerate();
            Json::Object(
                fields
                    .map(|(i, (value, ty))| Ok((field_name(record, i), tree(ctx, value, *ty)?)))
                    .collect::<Result<_>>()?,
            )
        }
        Datum::Numeric(v) if v.is_finite() => Json::Number(v.clone()),
        value if is_number(value, ty) => {
            let text = to_text(ctx, value, SqlType::plain(ty));
            Json::Number(crate::io::scalar::parse_numeric(&text)?)
        }
        value => Json::String(Cow::Owned(string_of(ctx, value, ty))),
    })
}

fn tree_level<'a>(
    ctx: &EvalContext<'_>,
    array: &Array,
    dims: &[Dim],
    items: &mut impl Iterator<Item = &'a Datum>,
) -> Result<Json<'a>> {
    let count = dims.first().map_or(0, |d| d.len as usize);
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(match innermost(dims, items) {
            Some(item) => tree(ctx, item, array.element)?,
            None => tree_level(ctx, array, &dims[1..], items)?,
        });
    }
    Ok(Json::Array(all))
}

/// A value as an object's key: a scalar's text.
pub fn key(ctx: &EvalContext<'_>, value: &Datum) -> Result<String> {
    match value {
        Datum::Json(_) | Datum::Jsonb(_) | Datum::Array(_) | Datum::Record(_) => Err(invalid(
            "key value must be scalar, not array, composite, or json",
        )),
        Datum::Bool(v) => Ok(v.to_string()),
        value => Ok(string_of(ctx, value, natural(value))),
    }
}

fn finished(out: Vec<u8>) -> EvalResult {
    Ok(Datum::Json(utf8(out)?.into()))
}
fn encoded(value: Json<'_>) -> EvalResult {
    Ok(Datum::Jsonb(value.encode()?))
}

pub fn to_json(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let lines = args.get(1).is_some_and(Datum::is_true);
    let mut out = Vec::new();
    write(ctx, &args[0], natural(&args[0]), lines, &mut out);
    finished(out)
}
pub fn to_jsonb(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    encoded(tree(ctx, &args[0], natural(&args[0]))?)
}

#[cold]
fn odd_arguments(function: &str) -> Error {
    invalid("argument list must have even number of elements").hint(format!(
        "The arguments of {function}() must consist of alternating keys and values."
    ))
}
#[cold]
pub fn null_key() -> Error {
    Error::new(
        state::NULL_VALUE_NOT_ALLOWED,
        "null value not allowed for object key",
    )
}

pub fn build_array(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut out = vec![b'['];
    for (i, value) in args.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write(ctx, value, natural(value), false, &mut out);
    }
    out.push(b']');
    finished(out)
}
pub fn build_array_b(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let items = args.iter().map(|v| tree(ctx, v, natural(v)));
    encoded(Json::Array(items.collect::<Result<_>>()?))
}
pub fn build_object(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if !args.len().is_multiple_of(2) {
        return Err(odd_arguments("json_build_object").into());
    }
    let mut out = vec![b'{'];
    for (i, pair) in args.chunks(2).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        if pair[0].is_null() {
            return Err(null_key().into());
        }
        write_string(&key(ctx, &pair[0])?, &mut out);
        out.extend_from_slice(b" : ");
        write(ctx, &pair[1], natural(&pair[1]), false, &mut out);
    }
    out.push(b'}');
    finished(out)
}
pub fn build_object_b(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if !args.len().is_multiple_of(2) {
        return Err(odd_arguments("jsonb_build_object").into());
    }
    let mut members = Vec::with_capacity(args.len() / 2);
    for (i, pair) in args.chunks(2).enumerate() {
        if pair[0].is_null() {
            return Err(invalid(format!("argument {}: key must not be null", 2 * i + 1)).into());
        }
        let name = Cow::Owned(key(ctx, &pair[0])?);
        members.push((name, tree(ctx, &pair[1], natural(&pair[1]))?));
    }
    encoded(Json::Object(members))
}

#[cold]
fn subscripts(message: &str) -> Error {
    Error::new(state::ARRAY_SUBSCRIPT_ERROR, message)
}

/// The pairs that one array of strings holds, or two arrays.
fn pairs(args: &[Datum]) -> Result<Vec<(Text, Datum)>> {
    let first = array(&args[0]);
    let named = |(key, value): (&Datum, &Datum)| match key {
        Datum::Text(key) => Ok((key.clone(), value.clone())),
        _ => Err(null_key()),
    };
    if let Some(second) = args.get(1).map(array) {
        if first.dims.len() > 1 || first.dims.len() != second.dims.len() {
            return Err(subscripts("wrong number of array subscripts"));
        }
        if first.items.len() != second.items.len() {
            return Err(subscripts("mismatched array dimensions"));
        }
        return first.items.iter().zip(&second.items).map(named).collect();
    }
    match first.dims[..] {
        [] => {}
        [_] if first.items.len().is_multiple_of(2) => {}
        [_] => return Err(subscripts("array must have even number of elements")),
        [_, Dim { len: 2, .. }] => {}
        [_, _] => return Err(subscripts("array must have two columns")),
        _ => return Err(subscripts("wrong number of array subscripts")),
    }
    first
        .items
        .chunks(2)
        .map(|p| named((&p[0], &p[1])))
        .collect()
}
pub fn object(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut out = vec![b'{'];
    for (i, (key, value)) in pairs(args)?.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write_string(key, &mut out);
        out.extend_from_slice(b" : ");
        match value.as_str() {
            Some(value) => write_string(value, &mut out),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    finished(out)
}
pub fn object_b(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let pairs = pairs(args)?;
    let members = pairs.iter().map(|(key, value)| {
        let value = value
            .as_str()
            .map_or(Json::Null, |v| Json::String(v.into()));
        (Cow::Borrowed(&key[..]), value)
    });
    encoded(Json::Object(members.collect()))
}

/// Types whose arrays and rows are set apart by lines where they are aggregated.
pub fn is_structured(value: &Datum) -> bool {
    matches!(value, Datum::Array(_) | Datum::Record(_))
}

/// The type an argument of any type must be cast to before it is given to these functions.
pub fn telling_type(ty: Oid) -> Option<Oid> {
    if is_opaque(ty) {
        return Some(oid::TEXT);
    }
    let element = throng_types::sqltype::element_of(ty)?;
    is_opaque(element).then_some(oid::TEXT_ARRAY)
}
