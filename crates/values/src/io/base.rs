//! Base types that are kept as bytes: each type's input and output, as text and in binary.
//!
//! How their values are ordered is told in `throng_types::base`, by a description of the same oid.

use super::{
    bits, citext, geometric, hardware, hstore, money, network, snapshot, text_search, vector, xml,
};
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
    pub apply: ApplyModifier,
}

/// Of a value, the modifier and whether the cast is an explicit one.
pub type ApplyModifier = fn(&[u8], i32, bool) -> Result<Option<Vec<u8>>>;

/// Every type of this kind, by oid.
static BASE_TYPES: &[&BaseInputOutput] = &[
    &xml::XML,
    &geometric::POINT,
    &geometric::LSEG,
    &geometric::PATH,
    &geometric::BOX,
    &geometric::POLYGON,
    &geometric::LINE,
    &network::CIDR,
    &geometric::CIRCLE,
    &hardware::MACADDR8,
    &money::MONEY,
    &hardware::MACADDR,
    &network::INET,
    &bits::BIT,
    &bits::VARBIT,
    &snapshot::TXID_SNAPSHOT,
    &text_search::TSVECTOR,
    &text_search::TSQUERY,
    &snapshot::PG_SNAPSHOT,
    &citext::CITEXT,
    &hstore::HSTORE,
    &vector::VECTOR,
];

/// The description of a type, if its values are kept as bytes.
pub fn base_type(ty: Oid) -> Option<&'static BaseInputOutput> {
    let found = BASE_TYPES.binary_search_by_key(&ty, |base| base.ty);
    found.ok().map(|at| BASE_TYPES[at])
}

/// The description of a type that a value has.
///
/// # Errors
/// XX000 where there is none.
pub fn described(ty: Oid) -> Result<&'static BaseInputOutput> {
    base_type(ty).ok_or_else(|| Error::internal(format_args!("no base type has oid {}", ty.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_types::base;

    #[test]
    fn both_tables_know_the_same_types() {
        assert!(BASE_TYPES.is_sorted_by_key(|base| base.ty));
        assert!(base::all().eq(BASE_TYPES.iter().map(|base| base.ty)));
    }
}
