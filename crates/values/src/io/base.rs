//! Base types that are kept as bytes: each type's input and output, as text and in binary.
//!
//! How their values are ordered is told in `throng_types::base`, by a description of the same oid.

use crate::eval::EvalContext;
use throng_types::{Error, Oid, Result};

/// What PostgreSQL calls a type's input, output, receive, send and modifier functions.
pub struct BaseInputOutput {
    pub ty: Oid,
    /// The value's bytes; the modifier is -1 or the one it will be cut to, which few types look at.
    pub input: fn(ctx: &EvalContext<'_>, text: &str, typmod: i32) -> Result<Vec<u8>>,
    pub output: fn(ctx: &EvalContext<'_>, value: &[u8], out: &mut Vec<u8>),
    /// From all of the binary form.
    pub receive: fn(ctx: &EvalContext<'_>, binary: &[u8]) -> Result<Vec<u8>>,
    pub send: fn(ctx: &EvalContext<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<()>,
    pub modifier: Option<Modifier>,
}

/// How a type's modifier is written, read and applied.
pub struct Modifier {
    /// From what stands in parentheses after the type's name.
    pub from_written: fn(&[i32]) -> Result<i32>,
    /// Applied to a value's bytes by an assignment or an explicit cast; None where they stay.
    pub apply: fn(value: &[u8], typmod: i32, explicit: bool) -> Result<Option<Vec<u8>>>,
}

/// Every type of this kind.
static BASE_TYPES: &[&BaseInputOutput] = &[];

/// The description of a type, if its values are kept as bytes.
pub fn base_type(ty: Oid) -> Option<&'static BaseInputOutput> {
    BASE_TYPES.iter().find(|base| base.ty == ty).copied()
}

/// The description of a type that a value has.
///
/// # Errors
/// XX000 where there is none.
pub fn described(ty: Oid) -> Result<&'static BaseInputOutput> {
    base_type(ty).ok_or_else(|| Error::internal(format_args!("no base type has oid {}", ty.0)))
}
