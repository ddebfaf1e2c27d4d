//! The functions behind casts.

use super::cast::Cast;
use super::{EvalContext, EvalResult};
use std::sync::Arc;
use throng_types::sqltype::element_of;
use throng_types::{Array, Datum, Oid, oid};

/// A value seen as a binary-compatible type.
pub fn relabel(value: &Datum, to: Oid) -> Datum {
    match (value, to) {
        (Datum::Int4(v), _) if to != oid::INT4 => Datum::Oid(*v as u32),
        (Datum::Oid(v), oid::INT4) => Datum::Int4(*v as i32),
        (Datum::Array(a), _) => match element_of(to) {
            Some(element) if element != a.element => Datum::Array(Arc::new(Array {
                element,
                dims: a.dims.clone(),
                items: a.items.iter().map(|i| relabel(i, element)).collect(),
            })),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Casts each item of an array.
pub fn array_items(ctx: &EvalContext<'_>, value: &Datum, cast: &Cast) -> EvalResult {
    let Datum::Array(array) = value else { return Ok(value.clone()) };
    let items: Result<Vec<Datum>, _> = array.items.iter().map(|i| cast.apply(ctx, i)).collect();
    Ok(Datum::array(Array { element: cast.to, dims: array.dims.clone(), items: items? }))
}
