//! Values of base types that are kept as bytes, in memory as on a page.
//!
//! A [`BaseType`] tells what the lower rooms must know of such a type: how its values are ordered.
//! How they are read and written as text is told in `throng_values::io::base`, where the type has a
//! description of the same oid. A new type is a line in both tables, and its functions.
//!
//! Bytes are canonical: two values that print alike have the same bytes.

use crate::Oid;
use crate::ordered::write_bytes;
use crate::sqltype::{made, oid};
use crate::text_search::{query, vector};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// A value by its type and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseValue {
    pub ty: Oid,
    pub bytes: Arc<[u8]>,
}

/// What is known of a base type below its functions.
pub struct BaseType {
    pub ty: Oid,
    pub order: BaseOrder,
}

/// How values of a base type are ordered, which is also how they are told equal and hashed.
#[derive(Clone, Copy)]
pub enum BaseOrder {
    /// The type has no order and no equality, as `point`.
    None,
    /// By their bytes, the shorter one first where it begins the other.
    Bytes,
    /// By the bytes that this makes of theirs.
    Form(fn(&[u8]) -> Cow<'_, [u8]>),
}

const fn base(ty: Oid, order: BaseOrder) -> BaseType {
    BaseType { ty, order }
}

/// Every type of this kind, by oid.
static BASE_TYPES: &[BaseType] = &[
    base(oid::XML, BaseOrder::None),
    base(oid::POINT, BaseOrder::None),
    base(oid::LSEG, BaseOrder::None),
    base(oid::PATH, BaseOrder::None),
    base(oid::BOX, BaseOrder::None),
    base(oid::POLYGON, BaseOrder::None),
    base(oid::LINE, BaseOrder::None),
    base(oid::CIDR, BaseOrder::Bytes),
    base(oid::CIRCLE, BaseOrder::None),
    base(oid::MACADDR8, BaseOrder::Bytes),
    base(oid::MONEY, BaseOrder::Bytes),
    base(oid::MACADDR, BaseOrder::Bytes),
    base(oid::INET, BaseOrder::Bytes),
    base(oid::BIT, BaseOrder::Form(bits)),
    base(oid::VARBIT, BaseOrder::Form(bits)),
    base(oid::TXID_SNAPSHOT, BaseOrder::None),
    base(oid::TSVECTOR, BaseOrder::Form(vector::ordered_form)),
    base(oid::TSQUERY, BaseOrder::Form(query::ordered_form)),
    base(oid::PG_SNAPSHOT, BaseOrder::None),
    base(made::CITEXT, BaseOrder::Form(lowered)),
    base(made::HSTORE, BaseOrder::Bytes),
    base(made::VECTOR, BaseOrder::Form(ordered_floats)),
];

/// Floats of four bytes, which are no NaN, one by one; the shorter vector first.
fn ordered_floats(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut form = Vec::with_capacity(bytes.len());
    for part in bytes.chunks_exact(4) {
        let number = f32::from_le_bytes([part[0], part[1], part[2], part[3]]);
        // Zero has one form.
        let bits = if number == 0.0 { 0 } else { number.to_bits() };
        let flipped = match bits >> 31 {
            1 => !bits,
            _ => bits | 1 << 31,
        };
        form.extend_from_slice(&flipped.to_be_bytes());
    }
    Cow::Owned(form)
}

/// Text in lower case, letter by letter.
fn lowered(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.is_ascii() {
        return match bytes.iter().any(u8::is_ascii_uppercase) {
            true => Cow::Owned(bytes.to_ascii_lowercase()),
            false => Cow::Borrowed(bytes),
        };
    }
    let text = String::from_utf8_lossy(bytes);
    Cow::Owned(lower_case(&text).into_bytes())
}

/// A text in lower case, letter by letter.
pub fn lower_case(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => text.chars().map(lower_letter).collect(),
    }
}

/// A letter's lower case, where that is one letter.
pub fn lower_letter(c: char) -> char {
    let mut counterparts = c.to_lowercase();
    match (counterparts.next(), counterparts.next()) {
        (Some(one), None) => one,
        // The one letter whose full mapping is longer and that has a simple one.
        _ if c == 'İ' => 'i',
        _ => c,
    }
}

/// The types, by oid.
pub fn all() -> impl Iterator<Item = Oid> {
    BASE_TYPES.iter().map(|base| base.ty)
}

/// The description of a type, if its values are kept as bytes.
pub fn base_type(ty: Oid) -> Option<&'static BaseType> {
    let found = BASE_TYPES.binary_search_by_key(&ty, |base| base.ty);
    found.ok().map(|at| &BASE_TYPES[at])
}

/// Strings of bits are kept as bytes, and how many bits of the last one they do not use. The
/// shorter one is first where it begins the other.
fn bits(value: &[u8]) -> Cow<'_, [u8]> {
    let (unused, bytes) = value.split_last().unwrap_or((&0, &[]));
    let mut form = Vec::with_capacity(bytes.len() + 3);
    write_bytes(bytes, &mut form);
    form.push(7 - unused.min(&7));
    Cow::Owned(form)
}

impl BaseValue {
    pub fn new(ty: Oid, bytes: impl Into<Arc<[u8]>>) -> BaseValue {
        BaseValue {
            ty,
            bytes: bytes.into(),
        }
    }

    /// Bytes in whose order values of the type are; None where the type has no order.
    pub fn ordered_form(&self) -> Option<Cow<'_, [u8]>> {
        match base_type(self.ty)?.order {
            BaseOrder::None => None,
            BaseOrder::Bytes => Some(Cow::Borrowed(&self.bytes)),
            BaseOrder::Form(form) => Some(form(&self.bytes)),
        }
    }

    /// SQL's order of two values of one type; by their bytes where the type has none.
    pub fn compare(&self, other: &BaseValue) -> Ordering {
        match (self.ordered_form(), other.ordered_form()) {
            (Some(a), Some(b)) if self.ty == other.ty => a.cmp(&b),
            _ => (self.ty, &self.bytes).cmp(&(other.ty, &other.bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_oids() {
        assert!(BASE_TYPES.is_sorted_by_key(|base| base.ty));
        for base in BASE_TYPES {
            assert_eq!(base_type(base.ty).map(|found| found.ty), Some(base.ty));
        }
    }

    /// Strings of bits as PostgreSQL orders them.
    #[test]
    fn bits_are_ordered() {
        let ordered: [&[u8]; 6] = [
            &[0],
            &[0, 7],
            &[0, 0],
            &[0x80, 7],
            &[0x80, 6],
            &[0x80, 0x80, 7],
        ];
        let values = ordered.map(|bytes| BaseValue::new(oid::VARBIT, bytes));
        assert!(values.is_sorted_by(|a, b| a.compare(b).is_lt()));
    }
}
