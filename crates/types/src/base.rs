//! Values of base types that are kept as bytes, in memory as on a page.
//!
//! A [`BaseType`] tells what the lower rooms must know of such a type: how its values are ordered.
//! How they are read and written as text is told in `throng_values::io::base`, where the type has a
//! description of the same oid. A new type is a line in both tables, and its functions.
//!
//! Bytes are canonical: two values that print alike have the same bytes.

use crate::Oid;
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
const BASE_TYPES: &[BaseType] = &[];

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
