//! What a JSON value becomes as a value of an SQL type.

use crate::func::EvalContext;
use crate::io::input_text;
use crate::io::json::parse_jsonb;
use throng_types::datum::Dim;
use throng_types::error::state;
use throng_types::jsonb::{JsonRef, View};
use throng_types::sqltype::{element_of, type_name};
use throng_types::{Array, Datum, Error, Jsonb, Result, SqlType, oid};

/// The value as JSON_QUERY returns it. `omit_quotes`: a string is what is in it.
pub fn populate(
    ctx: &EvalContext<'_>,
    value: &Jsonb,
    ty: SqlType,
    omit_quotes: bool,
) -> Result<Datum> {
    let root = value.root();
    if omit_quotes && let View::String(text) = root.view() {
        return match ty.oid {
            oid::JSONB => Ok(Datum::Jsonb(parse_jsonb(text)?)),
            _ => input_text(ctx, text, ty),
        };
    }
    if ty.oid == oid::JSONB {
        return Ok(Datum::Jsonb(value.clone()));
    }
    part(ctx, root, ty, true)
}

/// `quoted`: strings keep their quotes, as they do at the top.
fn part(ctx: &EvalContext<'_>, value: JsonRef<'_>, ty: SqlType, quoted: bool) -> Result<Datum> {
    if ty.oid == oid::JSONB {
        return Ok(Datum::Jsonb(value.to_owned()));
    }
    let info = ty.info();
    if info.is_some_and(|i| i.is_array()) {
        return match value.view() {
            View::Null => Ok(Datum::Null),
            _ => array(ctx, value, ty),
        };
    }
    if ty.oid == oid::RECORD {
        return Err(Error::unsupported(format!(
            "JSON as a value of type {}",
            type_name(ty.oid)
        )));
    }
    match value.view() {
        View::Null if !quoted => Ok(Datum::Null),
        View::String(text) if !quoted && ty.oid != oid::JSON => input_text(ctx, text, ty),
        _ => input_text(ctx, &value.to_text(), ty),
    }
}

#[cold]
fn expected_array() -> Error {
    Error::new(state::INVALID_TEXT_REPRESENTATION, "expected JSON array")
}
#[cold]
fn malformed() -> Error {
    Error::new(state::INVALID_TEXT_REPRESENTATION, "malformed JSON array")
        .detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
}

fn array(ctx: &EvalContext<'_>, value: JsonRef<'_>, ty: SqlType) -> Result<Datum> {
    let Some(element) = element_of(ty.oid) else {
        return Err(Error::internal("an array type without elements"));
    };
    let element_type = SqlType::new(element, ty.typmod);
    // Items of a type that takes whole arrays are not taken apart.
    let whole = matches!(element, oid::JSON | oid::JSONB);
    let View::Array(_) = value.view() else {
        return Err(expected_array());
    };
    let (mut items, mut lengths) = (Vec::new(), Vec::new());
    gather(ctx, value, element_type, whole, 0, &mut lengths, &mut items)?;
    if items.is_empty() {
        lengths.clear();
    }
    let dims = lengths.into_iter().map(|len| Dim { len, lower: 1 });
    Ok(Datum::array(Array {
        element,
        dims: dims.collect(),
        items,
    }))
}

/// Dimensions that an array may have.
const MAX_DIMENSIONS: usize = 6;

/// Items of an array at a depth; `lengths` tells those of the dimensions met, and that the
/// innermost is reached.
fn gather(
    ctx: &EvalContext<'_>,
    value: JsonRef<'_>,
    element: SqlType,
    whole: bool,
    depth: usize,
    lengths: &mut Vec<i32>,
    items: &mut Vec<Datum>,
) -> Result<()> {
    let View::Array(elements) = value.view() else {
        return Err(malformed());
    };
    let is_first = lengths.len() == depth;
    if is_first {
        if depth >= MAX_DIMENSIONS {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
                    depth + 1
                ),
            ));
        }
        lengths.push(elements.len() as i32);
    } else if lengths[depth] != elements.len() as i32 {
        return Err(malformed());
    }
    let nested = |e: JsonRef<'_>| !whole && e.is_array();
    let inner = elements.get(0).is_some_and(nested);
    if !is_first && inner != (lengths.len() > depth + 1) && !elements.is_empty() {
        return Err(malformed());
    }
    for item in elements.iter() {
        if nested(item) != inner {
            return Err(malformed());
        }
        match inner {
            true => gather(ctx, item, element, whole, depth + 1, lengths, items)?,
            false => items.push(part(ctx, item, element, false)?),
        }
    }
    Ok(())
}
