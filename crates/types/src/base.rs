//! Values of base types that are kept as bytes, in memory as on a page.
//!
//! A [`BaseType`] tells what the lower rooms must know of such a type: how its values are ordered.
//! How they are read and written as text is told in `throng_values::io::base`, where the type has a
//! description of the same oid. A new type is a line in both tables, and its functions.
//!
//! Bytes are canonical: two values that print alike have the same bytes.

use crate::sqltype::made;
use crate::text_search::{query, vector};
use crate::{Oid, oid};
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

/// Every type of this kind.
const BASE_TYPES: &[BaseType] = &[
    BaseType {
        ty: oid::TSVECTOR,
        order: BaseOrder::Form(vector::ordered_form),
    },
    BaseType {
        ty: oid::TSQUERY,
        order: BaseOrder::Form(query::ordered_form),
    },
    BaseType {
        ty: made::CITEXT,
        order: BaseOrder::Form(lowered),
    },
    BaseType {
        ty: made::HSTORE,
        order: BaseOrder::Bytes,
    },
    BaseType {
        ty: made::VECTOR,
        order: BaseOrder::Form(ordered_floats),
    },
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
    let lower: String = text.chars().map(lower_letter).collect();
    Cow::Owned(lower.into_bytes())
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

/// The description of a type, if its values are kept as bytes.
pub fn base_type(ty: Oid) -> Option<&'static BaseType> {
    BASE_TYPES.iter().find(|base| base.ty == ty)
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
