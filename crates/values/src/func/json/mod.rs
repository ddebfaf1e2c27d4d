//! `json` and `jsonb`: their operators, functions, casts and aggregates.
//!
//! `json` is a text and stays one: what is taken out of it is a piece of that text. `jsonb` is read
//! where its bytes lie ([`throng_types::jsonb`]) and edited by building a tree whose untouched
//! branches are copied.

mod access;
mod aggregate;
pub mod assign;
pub(super) mod build;
mod cast;
mod edit;
mod path;
pub mod populate;
mod rows;
mod table;
mod text;

pub use build::telling_type;
pub(super) use table::{AGGREGATES, CASTS, FUNCTIONS, OPERATORS, SETS};

use throng_types::error::state;
use throng_types::{Datum, Error, Jsonb, Oid, oid};

fn json(value: &Datum) -> &str {
    match value {
        Datum::Json(text) => text,
        _ => unreachable!("not a json value: {value:?}"),
    }
}

pub(super) fn jsonb(value: &Datum) -> &Jsonb {
    match value {
        Datum::Jsonb(value) => value,
        _ => unreachable!("not a jsonb value: {value:?}"),
    }
}

/// 22023.
#[cold]
fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

/// Values of these types are kept as values of others and do not tell what they are: a function
/// that takes any type is given their text, which is what it would make of them.
fn is_opaque(ty: Oid) -> bool {
    matches!(ty, oid::XID8 | oid::PG_LSN) || crate::io::object_kind(ty).is_some()
}
