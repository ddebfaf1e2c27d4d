//! `hstore`: texts by key, with every function and operator but those of records.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::{Extension, ExtensionType, Native, operator, rows, scalar};
use crate::func::compare::compare;
use crate::func::string::text;
use crate::func::{
    Cast, CastContext, EvalContext, EvalFn, EvalResult, EvalStop, Operator, SetIterator, Strategy,
};
use crate::io::hstore::{OwnPair, Pairs, pairs, to_bytes};
use throng_types::datum::Record;
use throng_types::error::state;
use throng_types::sqltype::made::HSTORE;
use throng_types::{Array, Datum, Error, Oid, Result, SqlType, interrupt, oid::*};

pub(super) static EXTENSION: Extension = Extension {
    name: "hstore",
    version: "1.8",
    comment: "data type for storing sets of (key, value) pairs",
    functions: FUNCTIONS,
    types: &[ExtensionType {
        oid: HSTORE,
        name: "hstore",
    }],
    operators: OPERATORS,
    casts: CASTS,
    ..Extension::PLAIN
};

pub(crate) const NUMBER: u32 = 1;

const fn of(
    number: u32,
    name: &'static str,
    right: Oid,
    ret: Oid,
    code: &'static str,
    related: (u32, u32),
    eval: EvalFn,
) -> Operator {
    operator(
        (NUMBER, number),
        name,
        (HSTORE, right, ret),
        code,
        related,
        eval,
    )
}

const fn prefix(number: u32, name: &'static str, code: &'static str, eval: EvalFn) -> Operator {
    let types = (Oid::NONE, HSTORE, TEXT_ARRAY);
    operator((NUMBER, number), name, types, code, (0, 0), eval)
}

static OPERATORS: &[Operator] = &[
    of(1, "->", TEXT, TEXT, "fetchval", (0, 0), fetch),
    of(
        2,
        "->",
        TEXT_ARRAY,
        TEXT_ARRAY,
        "slice_array",
        (0, 0),
        slice_array,
    ),
    of(3, "?", TEXT, BOOL, "exist", (0, 0), exist),
    of(4, "?|", TEXT_ARRAY, BOOL, "exists_any", (0, 0), exists_any),
    of(5, "?&", TEXT_ARRAY, BOOL, "exists_all", (0, 0), exists_all),
    of(6, "-", TEXT, HSTORE, "delete", (0, 0), delete),
    of(7, "-", TEXT_ARRAY, HSTORE, "delete", (0, 0), delete_keys),
    of(8, "-", HSTORE, HSTORE, "delete", (0, 0), delete_pairs),
    of(9, "||", HSTORE, HSTORE, "hs_concat", (0, 0), concat),
    of(10, "@>", HSTORE, BOOL, "hs_contains", (11, 0), contains),
    of(11, "<@", HSTORE, BOOL, "hs_contained", (10, 0), contained),
    prefix(12, "%%", "hstore_to_array", to_array),
    prefix(13, "%#", "hstore_to_matrix", to_matrix),
    of(14, "<>", HSTORE, BOOL, "hstore_ne", (14, 15), ne),
    of(15, "=", HSTORE, BOOL, "hstore_eq", (15, 14), eq).orders(Strategy::Equal),
    of(16, "#>#", HSTORE, BOOL, "hstore_gt", (18, 19), gt).orders(Strategy::Greater),
    of(17, "#>=#", HSTORE, BOOL, "hstore_ge", (19, 18), ge).orders(Strategy::GreaterEqual),
    of(18, "#<#", HSTORE, BOOL, "hstore_lt", (16, 17), lt).orders(Strategy::Less),
    of(19, "#<=#", HSTORE, BOOL, "hstore_le", (17, 16), le).orders(Strategy::LessEqual),
];

const CASTS: &[Cast] = &[
    Cast::by(TEXT_ARRAY, HSTORE, CastContext::Explicit, 0, from_array),
    Cast::by(HSTORE, JSON, CastContext::Explicit, 0, to_json),
    Cast::by(HSTORE, JSONB, CastContext::Explicit, 0, to_jsonb),
];

const FUNCTIONS: &[Native] = &[
    scalar(
        "hstore_version_diag(hstore) returns integer immutable strict",
        |_, _| Ok(2.into()),
    ),
    scalar(
        "fetchval(hstore, text) returns text immutable strict",
        fetch,
    ),
    scalar(
        "slice_array(hstore, text[]) returns text[] immutable strict",
        slice_array,
    ),
    scalar(
        "slice(hstore, text[]) returns hstore immutable strict",
        slice,
    ),
    scalar(
        "isexists(hstore, text) returns boolean immutable strict",
        exist,
    ),
    scalar(
        "exist(hstore, text) returns boolean immutable strict",
        exist,
    ),
    scalar(
        "exists_any(hstore, text[]) returns boolean immutable strict",
        exists_any,
    ),
    scalar(
        "exists_all(hstore, text[]) returns boolean immutable strict",
        exists_all,
    ),
    scalar(
        "isdefined(hstore, text) returns boolean immutable strict",
        defined,
    ),
    scalar(
        "defined(hstore, text) returns boolean immutable strict",
        defined,
    ),
    scalar(
        "delete(hstore, text) returns hstore immutable strict",
        delete,
    ),
    scalar(
        "delete(hstore, text[]) returns hstore immutable strict",
        delete_keys,
    ),
    scalar(
        "delete(hstore, hstore) returns hstore immutable strict",
        delete_pairs,
    ),
    scalar(
        "hs_concat(hstore, hstore) returns hstore immutable strict",
        concat,
    ),
    scalar(
        "hs_contains(hstore, hstore) returns boolean immutable strict",
        contains,
    ),
    scalar(
        "hs_contained(hstore, hstore) returns boolean immutable strict",
        contained,
    ),
    scalar("tconvert(text, text) returns hstore immutable", from_texts),
    scalar("hstore(text, text) returns hstore immutable", from_texts),
    scalar(
        "hstore(text[], text[]) returns hstore immutable",
        from_arrays,
    ),
    scalar("hstore(text[]) returns hstore immutable strict", from_array),
    scalar(
        "hstore_to_json(hstore) returns json immutable strict",
        to_json,
    ),
    scalar(
        "hstore_to_json_loose(hstore) returns json immutable strict",
        to_json_loose,
    ),
    scalar(
        "hstore_to_jsonb(hstore) returns jsonb immutable strict",
        to_jsonb,
    ),
    scalar(
        "hstore_to_jsonb_loose(hstore) returns jsonb immutable strict",
        to_jsonb_loose,
    ),
    scalar("hstore(record) returns hstore immutable", from_record),
    scalar(
        "hstore_to_array(hstore) returns text[] immutable strict",
        to_array,
    ),
    scalar(
        "hstore_to_matrix(hstore) returns text[] immutable strict",
        to_matrix,
    ),
    scalar("akeys(hstore) returns text[] immutable strict", keys),
    scalar("avals(hstore) returns text[] immutable strict", values),
    rows(
        "skeys(hstore) returns setof text immutable strict",
        key_rows,
    ),
    rows(
        "svals(hstore) returns setof text immutable strict",
        value_rows,
    ),
    rows(
        "each(hs hstore, OUT key text, OUT value text) returns setof record immutable strict",
        each,
    ),
    scalar(
        "populate_record(anyelement, hstore) returns anyelement immutable",
        |_, _| Err(Error::unsupported("populate_record() of hstore").into()),
    ),
    scalar(
        "hstore_eq(hstore, hstore) returns boolean immutable strict",
        eq,
    ),
    scalar(
        "hstore_ne(hstore, hstore) returns boolean immutable strict",
        ne,
    ),
    scalar(
        "hstore_gt(hstore, hstore) returns boolean immutable strict",
        gt,
    ),
    scalar(
        "hstore_ge(hstore, hstore) returns boolean immutable strict",
        ge,
    ),
    scalar(
        "hstore_lt(hstore, hstore) returns boolean immutable strict",
        lt,
    ),
    scalar(
        "hstore_le(hstore, hstore) returns boolean immutable strict",
        le,
    ),
    scalar(
        "hstore_cmp(hstore, hstore) returns integer immutable strict",
        |_, args| Ok((compare(&args[0], &args[1]) as i32).into()),
    ),
];

fn pairs_of(value: &Datum) -> Pairs<'_> {
    match value {
        Datum::Base(value) => pairs(&value.bytes),
        _ => pairs(&[]),
    }
}

/// Says that all of a value is to be gone through.
fn expect(value: &Datum) -> Result<()> {
    match value {
        Datum::Base(value) => interrupt::expect(value.bytes.len().saturating_mul(8)),
        _ => Ok(()),
    }
}

fn own(value: &Datum) -> Result<Vec<OwnPair>> {
    expect(value)?;
    let own = |(key, value): (&str, Option<&str>)| (key.to_owned(), value.map(str::to_owned));
    Ok(pairs_of(value).map(own).collect())
}

/// A value's pairs, to be looked up.
fn index(value: &Datum) -> Result<HashMap<&str, Option<&str>, FixedState>> {
    expect(value)?;
    Ok(pairs_of(value).collect())
}

/// The keys of an array that are not NULL.
fn key_set(array: &Datum) -> Result<HashSet<&str, FixedState>> {
    interrupt::expect(items(array).len().saturating_mul(64))?;
    Ok(keys_in(array).collect())
}

fn hstore(pairs: Vec<OwnPair>) -> Datum {
    Datum::base(HSTORE, to_bytes(pairs))
}

/// A key's value; None where there is no such key.
fn value_at<'a>(store: &'a Datum, key: &str) -> Option<Option<&'a str>> {
    let mut pairs = pairs_of(store);
    pairs.find(|(k, _)| *k == key).map(|(_, value)| value)
}

fn items(array: &Datum) -> &[Datum] {
    match array {
        Datum::Array(array) => &array.items,
        _ => &[],
    }
}

/// The keys of an array that are not NULL.
fn keys_in(array: &Datum) -> impl Iterator<Item = &str> {
    items(array).iter().filter(|item| !item.is_null()).map(text)
}

fn or_null(value: Option<&str>) -> Datum {
    value.map_or(Datum::Null, Datum::from)
}

fn text_array(items: Vec<Datum>) -> Datum {
    Datum::array(Array::from_items(TEXT, items))
}

fn fetch(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(or_null(value_at(&args[0], text(&args[1])).flatten()))
}

fn slice_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let store = index(&args[0])?;
    let value = |key: &Datum| match key {
        Datum::Null => Datum::Null,
        key => or_null(store.get(text(key)).copied().flatten()),
    };
    Ok(text_array(items(&args[1]).iter().map(value).collect()))
}

fn slice(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (mut pairs, keys) = (own(&args[0])?, key_set(&args[1])?);
    pairs.retain(|(key, _)| keys.contains(key.as_str()));
    Ok(hstore(pairs))
}

fn exist(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(value_at(&args[0], text(&args[1])).is_some().into())
}
fn defined(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(value_at(&args[0], text(&args[1]))
        .flatten()
        .is_some()
        .into())
}
fn exists_any(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let store = index(&args[0])?;
    Ok(keys_in(&args[1]).any(|key| store.contains_key(key)).into())
}
fn exists_all(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let store = index(&args[0])?;
    Ok(keys_in(&args[1]).all(|key| store.contains_key(key)).into())
}

fn delete(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut pairs = own(&args[0])?;
    pairs.retain(|(key, _)| key != text(&args[1]));
    Ok(hstore(pairs))
}
fn delete_keys(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (mut pairs, keys) = (own(&args[0])?, key_set(&args[1])?);
    pairs.retain(|(key, _)| !keys.contains(key.as_str()));
    Ok(hstore(pairs))
}
fn delete_pairs(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (mut pairs, gone) = (own(&args[0])?, index(&args[1])?);
    pairs.retain(|(key, value)| gone.get(key.as_str()) != Some(&value.as_deref()));
    Ok(hstore(pairs))
}

/// The right one's values come before the left one's.
fn concat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut pairs = own(&args[1])?;
    pairs.extend(own(&args[0])?);
    Ok(hstore(pairs))
}

fn holds(whole: &Datum, part: &Datum) -> EvalResult {
    let whole = index(whole)?;
    expect(part)?;
    let mut pairs = pairs_of(part);
    Ok(pairs
        .all(|(key, value)| whole.get(key) == Some(&value))
        .into())
}
fn contains(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    holds(&args[0], &args[1])
}
fn contained(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    holds(&args[1], &args[0])
}

#[cold]
fn null_key() -> Error {
    let message = "null value not allowed for hstore key";
    Error::new(state::NULL_VALUE_NOT_ALLOWED, message)
}

fn pair(key: &Datum, value: &Datum) -> Result<OwnPair> {
    if key.is_null() {
        return Err(null_key());
    }
    let value = (!value.is_null()).then(|| text(value).to_owned());
    Ok((text(key).to_owned(), value))
}

fn from_texts(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match args[0].is_null() {
        true => Ok(Datum::Null),
        false => Ok(hstore(vec![pair(&args[0], &args[1])?])),
    }
}

fn dimensions(array: &Datum) -> usize {
    match array {
        Datum::Array(array) => array.dims.len(),
        _ => 0,
    }
}

#[cold]
fn wrong_array(message: &str) -> EvalStop {
    Error::new(state::ARRAY_SUBSCRIPT_ERROR, message).into()
}

fn from_arrays(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let (keys, values) = (items(&args[0]), items(&args[1]));
    if dimensions(&args[0]) > 1 || dimensions(&args[1]) > 1 {
        return Err(wrong_array("wrong number of array subscripts"));
    }
    if !args[1].is_null() && keys.len() != values.len() {
        return Err(wrong_array("arrays must have same bounds"));
    }
    let value = |at: usize| values.get(at).unwrap_or(&Datum::Null);
    let pairs = keys.iter().enumerate();
    let pairs = pairs.map(|(at, key)| pair(key, value(at)));
    Ok(hstore(pairs.collect::<Result<_>>()?))
}

/// From keys and values in turn, or from rows of both.
fn from_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Array(array) = &args[0] else {
        return Ok(Datum::Null);
    };
    match &array.dims[..] {
        [] => {}
        [_] if array.items.len() % 2 == 1 => {
            return Err(wrong_array("array must have even number of elements"));
        }
        [_] => {}
        [_, columns] if columns.len == 2 => {}
        [_, _] => return Err(wrong_array("array must have two columns")),
        _ => return Err(wrong_array("wrong number of array subscripts")),
    }
    let pairs = array.items.chunks(2).map(|both| pair(&both[0], &both[1]));
    Ok(hstore(pairs.collect::<Result<_>>()?))
}

fn from_record(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Record(record) = &args[0] else {
        return Err(Error::unsupported("hstore() of a NULL record").into());
    };
    let mut pairs = Vec::with_capacity(record.values.len());
    for (at, value) in record.values.iter().enumerate() {
        let name = record.names.as_ref().and_then(|names| names.get(at));
        let name = name.map_or_else(|| format!("f{}", at + 1), |name| name.as_str().to_owned());
        let shown = match value {
            Datum::Null => None,
            value => {
                let ty = record.types.get(at).copied().unwrap_or(TEXT);
                Some(crate::io::to_text(ctx, value, SqlType::plain(ty)))
            }
        };
        pairs.push((name, shown));
    }
    Ok(hstore(pairs))
}

fn to_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let both = pairs_of(&args[0]).flat_map(|(key, value)| [key.into(), or_null(value)]);
    Ok(text_array(both.collect()))
}

fn to_matrix(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Array(flat) = to_array(ctx, args)? else {
        return Ok(Datum::Null);
    };
    let mut matrix = (*flat).clone();
    if let [dim] = &matrix.dims[..] {
        let (mut rows, mut columns) = (*dim, *dim);
        rows.len /= 2;
        columns.len = 2;
        matrix.dims = [rows, columns].into();
    }
    Ok(Datum::array(matrix))
}

fn keys(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(text_array(
        pairs_of(&args[0]).map(|(key, _)| key.into()).collect(),
    ))
}
fn values(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let values = pairs_of(&args[0]).map(|(_, value)| or_null(value));
    Ok(text_array(values.collect()))
}
fn key_rows(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let pairs = own(&args[0])?.into_iter();
    Ok(Box::new(pairs.map(|(key, _)| Ok(key.into()))))
}
fn value_rows(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let pairs = own(&args[0])?.into_iter();
    Ok(Box::new(
        pairs.map(|(_, value)| Ok(or_null(value.as_deref()))),
    ))
}
fn each(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let pairs = own(&args[0])?.into_iter();
    Ok(Box::new(pairs.map(|(key, value)| {
        let record = Record {
            types: [TEXT, TEXT].into(),
            names: None,
            values: vec![key.into(), or_null(value.as_deref())],
        };
        Ok(Datum::Record(Arc::new(record)))
    })))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether a text is a number as JSON writes it.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.starts_with(|c: char| c.is_ascii_digit());
    plain && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// An object of the pairs; `loose`: numbers and the letters t and f are what they look like.
fn json(store: &Datum, loose: bool) -> String {
    let value = |value: Option<&str>| match value {
        None => "null".to_owned(),
        Some("t") if loose => "true".to_owned(),
        Some("f") if loose => "false".to_owned(),
        Some(number) if loose && is_number(number) => number.to_owned(),
        Some(text) => quoted(text),
    };
    let pairs = pairs_of(store).map(|(key, v)| format!("{}: {}", quoted(key), value(v)));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
}

fn to_json(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Json(json(&args[0], false).into()))
}
fn to_json_loose(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Json(json(&args[0], true).into()))
}
fn as_jsonb(ctx: &EvalContext<'_>, text: &str) -> EvalResult {
    let ty = SqlType::plain(JSONB);
    Ok(crate::io::input_text(ctx, text, ty)?)
}
fn to_jsonb(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    as_jsonb(ctx, &json(&args[0], false))
}
fn to_jsonb_loose(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    as_jsonb(ctx, &json(&args[0], true))
}

fn eq(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_eq().into())
}
fn ne(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_ne().into())
}
fn lt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_lt().into())
}
fn le(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_le().into())
}
fn gt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_gt().into())
}
fn ge(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(compare(&args[0], &args[1]).is_ge().into())
}
