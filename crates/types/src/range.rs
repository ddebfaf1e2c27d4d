//! Ranges and multiranges: their values, and which range type is over which.
//!
//! A built-in range type's relatives are in a table. Those of a type that a user made are told to
//! the process once ([`declare`]), when the type is made or a catalog that has it is read: its oid
//! is given only once and its subtype never changes, so that whoever meets the oid may ask.
//!
//! ```text
//!   order of ranges   empty, then by lower bound, then by upper bound
//!   lower bounds      -∞ < [v < (v
//!   upper bounds      v) < v] < +∞
//! ```

use crate::Oid;
pub use crate::datum::{Bound, Bounds, Multirange, Range};
use crate::sqltype::{made, oid};
use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

impl Range {
    pub fn empty(ty: &RangeType) -> Range {
        Range {
            ty: ty.range,
            subtype: ty.subtype,
            bounds: None,
        }
    }
}

/// A range type and its relatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeType {
    pub range: Oid,
    pub multirange: Oid,
    pub subtype: Oid,
    /// The subtype's values have neighbours, so that every range has a form `[a,b)`.
    pub discrete: bool,
}

macro_rules! built_in {
    ($($range:ident $multirange:ident $subtype:ident $discrete:literal;)*) => {
        /// The built-in range types.
        pub static BUILT_IN: &[RangeType] = &[
            $(RangeType {
                range: oid::$range,
                multirange: oid::$multirange,
                subtype: oid::$subtype,
                discrete: $discrete,
            },)*
        ];
    };
}

built_in! {
    INT4RANGE INT4MULTIRANGE INT4 true;
    INT8RANGE INT8MULTIRANGE INT8 true;
    NUMRANGE NUMMULTIRANGE NUMERIC false;
    DATERANGE DATEMULTIRANGE DATE true;
    TSRANGE TSMULTIRANGE TIMESTAMP false;
    TSTZRANGE TSTZMULTIRANGE TIMESTAMPTZ false;
}

/// The subtypes of range types that users made.
static SUBTYPES: LazyLock<RwLock<HashMap<Oid, Oid>>> = LazyLock::new(RwLock::default);

/// Tells the process of a range type that a user made.
pub fn declare(range: Oid, subtype: Oid) {
    let known = SUBTYPES.read().unwrap_or_else(PoisonError::into_inner);
    if known.get(&range) == Some(&subtype) {
        return;
    }
    drop(known);
    let mut known = SUBTYPES.write().unwrap_or_else(PoisonError::into_inner);
    known.insert(range, subtype);
}

fn made_range(range: Oid) -> Option<RangeType> {
    let known = SUBTYPES.read().unwrap_or_else(PoisonError::into_inner);
    Some(RangeType {
        range,
        multirange: made::multirange_of(range),
        subtype: *known.get(&range)?,
        discrete: false,
    })
}

/// What is known of a range type; None for other types.
pub fn range_type(range: Oid) -> Option<RangeType> {
    match BUILT_IN.iter().find(|known| known.range == range) {
        Some(known) => Some(*known),
        None if made::is_range(range) => made_range(range),
        None => None,
    }
}

/// The range type that a multirange type is over; None for other types.
pub fn multirange_type(multirange: Oid) -> Option<RangeType> {
    match BUILT_IN.iter().find(|known| known.multirange == multirange) {
        Some(known) => Some(*known),
        None if made::is_multirange(multirange) => made_range(made::range_of(multirange)),
        None => None,
    }
}

/// Whether this is a range type.
pub fn is_range(ty: Oid) -> bool {
    made::is_range(ty) || BUILT_IN.iter().any(|known| known.range == ty)
}

/// Whether this is a multirange type.
pub fn is_multirange(ty: Oid) -> bool {
    made::is_multirange(ty) || BUILT_IN.iter().any(|known| known.multirange == ty)
}
