//! Functions that give a row for each part: members, elements, keys.

use super::super::{EvalContext, EvalResult, EvalStop, SetIterator};
use super::access::as_text;
use super::text::{Top, piece, piece_text, top};
use super::{invalid, json, jsonb};
use std::sync::{Arc, LazyLock};
use throng_types::jsonb::{JsonRef, View};
use throng_types::{Datum, Jsonb, Oid, Record, Text, oid};

type Set = Result<SetIterator, EvalStop>;

fn pair_names() -> Arc<[Text]> {
    static NAMES: LazyLock<Arc<[Text]>> = LazyLock::new(|| ["key".into(), "value".into()].into());
    Arc::clone(&NAMES)
}
fn pair(key: Datum, value: Datum, types: &Arc<[Oid]>) -> EvalResult {
    Ok(Datum::Record(Arc::new(Record {
        types: Arc::clone(types),
        names: Some(pair_names()),
        values: vec![key, value],
    })))
}

// jsonb

/// One row for each of so many parts, which are read where they lie.
fn parts(
    value: &Jsonb,
    count: usize,
    row: impl Fn(JsonRef<'_>, usize) -> EvalResult + Send + 'static,
) -> SetIterator {
    let value = value.clone();
    Box::new((0..count).map(move |i| row(value.root(), i)))
}
fn member_at(root: JsonRef<'_>, i: usize) -> Option<(&str, JsonRef<'_>)> {
    match root.view() {
        View::Object(members) => Some((members.key(i), members.value(i))),
        _ => None,
    }
}
fn element_at(root: JsonRef<'_>, i: usize) -> Option<JsonRef<'_>> {
    root.element(i as i64)
}
fn own(part: JsonRef<'_>) -> Datum {
    Datum::Jsonb(part.to_owned())
}

fn members(args: &[Datum], function: &str, value_type: Oid) -> Set {
    let value = jsonb(&args[0]);
    let View::Object(all) = value.root().view() else {
        return Err(invalid(format!("cannot call {function} on a non-object")).into());
    };
    let types: Arc<[Oid]> = [oid::TEXT, value_type].into();
    Ok(parts(value, all.len(), move |root, i| {
        let Some((key, value)) = member_at(root, i) else {
            return Ok(Datum::Null);
        };
        let value = match types[1] {
            oid::TEXT => as_text(Some(value)),
            _ => own(value),
        };
        pair(key.into(), value, &types)
    }))
}
pub fn each_b(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    members(args, "jsonb_each", oid::JSONB)
}
pub fn each_text_b(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    members(args, "jsonb_each_text", oid::TEXT)
}

fn element_count(value: &Jsonb) -> Result<usize, EvalStop> {
    match value.root().view() {
        View::Array(all) => Ok(all.len()),
        View::Object(_) => Err(invalid("cannot extract elements from an object").into()),
        _ => Err(invalid("cannot extract elements from a scalar").into()),
    }
}
pub fn elements_b(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    let value = jsonb(&args[0]);
    Ok(parts(value, element_count(value)?, |root, i| {
        Ok(element_at(root, i).map_or(Datum::Null, own))
    }))
}
pub fn elements_text_b(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    let value = jsonb(&args[0]);
    Ok(parts(value, element_count(value)?, |root, i| {
        Ok(as_text(element_at(root, i)))
    }))
}
pub fn keys_b(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    let value = jsonb(&args[0]);
    let count = match value.root().view() {
        View::Object(all) => all.len(),
        View::Array(_) => return Err(invalid("cannot call jsonb_object_keys on an array").into()),
        _ => return Err(invalid("cannot call jsonb_object_keys on a scalar").into()),
    };
    Ok(parts(value, count, |root, i| {
        Ok(member_at(root, i).map_or(Datum::Null, |(key, _)| key.into()))
    }))
}

// json

fn each_member(args: &[Datum], text: bool) -> Set {
    let whole = json(&args[0]);
    let all = match top(whole)? {
        Top::Object(all) => all,
        Top::Array(_) => return Err(invalid("cannot deconstruct an array as an object").into()),
        Top::Scalar(..) => return Err(invalid("cannot deconstruct a scalar").into()),
    };
    let all: Vec<_> = all.into_iter().map(|(k, at)| (Text::new(k), at)).collect();
    let value_type = if text { oid::TEXT } else { oid::JSON };
    let types: Arc<[Oid]> = [oid::TEXT, value_type].into();
    let whole = Text::new(whole);
    Ok(Box::new(all.into_iter().map(move |(key, at)| {
        let value = match text {
            true => piece_text(&whole, at)?,
            false => piece(&whole, at),
        };
        pair(Datum::Text(key), value, &types)
    })))
}
pub fn each(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    each_member(args, false)
}
pub fn each_text(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    each_member(args, true)
}

fn each_element(args: &[Datum], function: &str, text: bool) -> Set {
    let whole = json(&args[0]);
    let all = match top(whole)? {
        Top::Array(all) => all,
        Top::Object(_) => {
            return Err(invalid(format!("cannot call {function} on a non-array")).into());
        }
        Top::Scalar(..) => {
            return Err(invalid(format!("cannot call {function} on a scalar")).into());
        }
    };
    let whole = Text::new(whole);
    Ok(Box::new(all.into_iter().map(move |at| match text {
        true => Ok(piece_text(&whole, at)?),
        false => Ok(piece(&whole, at)),
    })))
}
pub fn elements(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    each_element(args, "json_array_elements", false)
}
pub fn elements_text(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    each_element(args, "json_array_elements_text", true)
}
pub fn keys(_: &EvalContext<'_>, args: &[Datum]) -> Set {
    let all = match top(json(&args[0]))? {
        Top::Object(all) => all,
        Top::Array(_) => return Err(invalid("cannot call json_object_keys on an array").into()),
        Top::Scalar(..) => return Err(invalid("cannot call json_object_keys on a scalar").into()),
    };
    let keys: Vec<Text> = all.into_iter().map(|(key, _)| Text::new(key)).collect();
    Ok(Box::new(keys.into_iter().map(|key| Ok(Datum::Text(key)))))
}
