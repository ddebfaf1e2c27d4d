//! `json_agg`, `json_object_agg` and their kin. Those of `json` gather text, those of `jsonb` the
//! values themselves.

use super::super::aggregate::{AggState, Joined, Step, mixed};
use super::super::{EvalContext, EvalResult};
use super::access::utf8;
use super::build::{is_structured, key, null_key, tree, write};
use std::borrow::Cow;
use throng_types::error::state;
use throng_types::jsonb::{Json, write_string};
use throng_types::{Datum, Error, Result};

fn finish_text(state: AggState, start: &[u8], end: &[u8]) -> EvalResult {
    match state {
        AggState::Joined(joined) => {
            let text = [start, joined.shown(), end].concat();
            Ok(Datum::Json(utf8(text)?.into()))
        }
        _ => Ok(Datum::Null),
    }
}

pub fn array_step(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    let value = &args[0];
    let next: &[u8] = if is_structured(value) {
        b", \n "
    } else {
        b", "
    };
    let out = state.separate(next)?;
    write(ctx, value, value.natural_type(), false, out);
    Ok(())
}
pub fn array_step_strict(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    match args[0].is_null() {
        true => Ok(()),
        false => array_step(ctx, state, args),
    }
}
pub fn array_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    finish_text(state, b"[", b"]")
}

/// What separates an object's members.
const MEMBERS: &[u8] = b", ";

pub fn object_step(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args[0].is_null() {
        return Err(null_key().into());
    }
    let name = key(ctx, &args[0])?;
    let out = state.separate(MEMBERS)?;
    write_string(&name, out);
    out.extend_from_slice(b" : ");
    write(ctx, &args[1], args[1].natural_type(), false, out);
    Ok(())
}
pub fn object_step_strict(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args[0].is_null() || !args[1].is_null() {
        return object_step(ctx, state, args);
    }
    // There is an object even if it stays empty.
    if matches!(state, AggState::Empty) {
        *state = AggState::Joined(Joined::new(MEMBERS.len()));
    }
    Ok(())
}
pub fn object_finish(_: &EvalContext<'_>, state: AggState) -> EvalResult {
    finish_text(state, b"{ ", b" }")
}

fn items(state: &mut AggState) -> Result<&mut Vec<Datum>, super::super::EvalStop> {
    if matches!(state, AggState::Empty) {
        *state = AggState::Items(Vec::new());
    }
    match state {
        AggState::Items(items) => Ok(items),
        _ => Err(mixed()),
    }
}

pub fn array_b_step(_: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    items(state)?.push(args[0].clone());
    Ok(())
}
pub fn array_b_step_strict(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    match args[0].is_null() {
        true => Ok(()),
        false => array_b_step(ctx, state, args),
    }
}
pub fn array_b_finish(ctx: &EvalContext<'_>, state: AggState) -> EvalResult {
    let AggState::Items(items) = state else {
        return Ok(Datum::Null);
    };
    let items = items.iter().map(|v| tree(ctx, v, v.natural_type()));
    let array = Json::Array(items.collect::<Result<_>>()?);
    Ok(Datum::Jsonb(array.encode()?))
}

/// Keys and values in turn.
pub fn object_b_step(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args[0].is_null() {
        let message = "field name must not be null";
        return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).into());
    }
    let name = key(ctx, &args[0])?;
    let items = items(state)?;
    items.push(name.into());
    items.push(args[1].clone());
    Ok(())
}
pub fn object_b_step_strict(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    if args[0].is_null() || !args[1].is_null() {
        return object_b_step(ctx, state, args);
    }
    items(state).map(drop)
}
pub fn object_b_finish(ctx: &EvalContext<'_>, state: AggState) -> EvalResult {
    let AggState::Items(items) = state else {
        return Ok(Datum::Null);
    };
    let members = items.chunks(2).map(|pair| {
        let name = Cow::Borrowed(pair[0].as_str().unwrap_or_default());
        Ok((name, tree(ctx, &pair[1], pair[1].natural_type())?))
    });
    let object = Json::Object(members.collect::<Result<_>>()?);
    Ok(Datum::Jsonb(object.encode()?))
}

/// Pairs gathered by [`object_b_step`] or [`object_unique_step`], of which no two may have the same
/// key.
fn unique_pairs(state: AggState, named: bool) -> Result<Option<Vec<Datum>>> {
    let AggState::Items(items) = state else {
        return Ok(None);
    };
    let mut names = std::collections::HashSet::new();
    for pair in items.chunks(2) {
        let name = pair[0].as_str().unwrap_or_default();
        if !names.insert(name) {
            let message = match named {
                true => format!("duplicate JSON object key value: \"{name}\""),
                false => "duplicate JSON object key value".to_string(),
            };
            return Err(Error::new(state::DUPLICATE_JSON_OBJECT_KEY_VALUE, message));
        }
    }
    Ok(Some(items))
}
pub fn object_unique_step(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    match args[0].is_null() {
        true => Err(null_key().into()),
        false => object_b_step(ctx, state, args),
    }
}
fn write_pairs(ctx: &EvalContext<'_>, items: &[Datum], absent: bool) -> EvalResult {
    let mut out = b"{ ".to_vec();
    let shown = items.chunks(2).filter(|pair| !absent || !pair[1].is_null());
    for (i, pair) in shown.enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write_string(pair[0].as_str().unwrap_or_default(), &mut out);
        out.extend_from_slice(b" : ");
        write(ctx, &pair[1], pair[1].natural_type(), false, &mut out);
    }
    out.extend_from_slice(b" }");
    Ok(Datum::Json(utf8(out)?.into()))
}
pub fn object_unique_finish(ctx: &EvalContext<'_>, state: AggState) -> EvalResult {
    match unique_pairs(state, true)? {
        Some(items) => write_pairs(ctx, &items, false),
        None => Ok(Datum::Null),
    }
}
pub fn object_unique_finish_strict(ctx: &EvalContext<'_>, state: AggState) -> EvalResult {
    match unique_pairs(state, true)? {
        Some(items) => write_pairs(ctx, &items, true),
        None => Ok(Datum::Null),
    }
}
pub fn object_b_unique_finish(ctx: &EvalContext<'_>, state: AggState) -> EvalResult {
    match unique_pairs(state, false)? {
        Some(items) => object_b_finish(ctx, AggState::Items(items)),
        None => Ok(Datum::Null),
    }
}
pub fn object_b_unique_finish_strict(ctx: &EvalContext<'_>, state: AggState) -> EvalResult {
    let Some(items) = unique_pairs(state, false)? else {
        return Ok(Datum::Null);
    };
    let shown = items.chunks(2).filter(|pair| !pair[1].is_null());
    let items = shown.flatten().cloned().collect();
    object_b_finish(ctx, AggState::Items(items))
}
