//! Which types are coerced to which, and the type that several have in common.

use super::cast::{CastContext, find_cast};
use throng_types::error::state;
use throng_types::range::{is_multirange, is_range};
use throng_types::sqltype::{element_of, made, type_info, type_name};
use throng_types::{Error, Oid, Result, oid};

pub(super) fn category(ty: Oid) -> u8 {
    type_info(ty).map_or(b'X', |t| t.category)
}

pub(super) fn is_preferred(ty: Oid) -> bool {
    type_info(ty).is_some_and(|t| t.preferred)
}

pub(super) fn is_array(ty: Oid) -> bool {
    type_info(ty).is_some_and(|t| t.is_array())
}

/// May a value of one type be given where the other is wanted, in this context?
pub fn can_coerce(from: Oid, to: Oid, context: CastContext) -> bool {
    if from == to || from == oid::UNKNOWN {
        return true;
    }
    match to {
        oid::ANY | oid::ANYELEMENT | oid::ANYCOMPATIBLE => true,
        oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY => element_of(from).is_some(),
        oid::ANYNONARRAY | oid::ANYCOMPATIBLENONARRAY => !is_array(from),
        oid::ANYENUM => made::is_enum(from),
        oid::ANYRANGE | oid::ANYCOMPATIBLERANGE => is_range(from),
        oid::ANYMULTIRANGE | oid::ANYCOMPATIBLEMULTIRANGE => is_multirange(from),
        oid::RECORD if made::is_composite(from) => true,
        // Whether its fields fit is seen when it is made one.
        to if from == oid::RECORD && made::is_composite(to) => true,
        _ => find_cast(from, to, context).is_some(),
    }
}

/// The type CASE, UNION, VALUES, ARRAY, COALESCE, GREATEST give these types; unknown alone is text.
/// `context` names the construct in the error (42804): `CASE`, `UNION`, `VALUES`, `ARRAY`…
pub fn select_common_type(types: &[Oid], context: &str) -> Result<Oid> {
    let mut common = oid::UNKNOWN;
    for &ty in types {
        if ty == oid::UNKNOWN || ty == common {
            continue;
        }
        if common == oid::UNKNOWN {
            common = ty;
            continue;
        }
        if category(ty) != category(common) {
            return Err(Error::new(
                state::DATATYPE_MISMATCH,
                format!(
                    "{context} types {} and {} cannot be matched",
                    type_name(common),
                    type_name(ty)
                ),
            ));
        }
        common = wider(common, ty);
    }
    for &ty in types {
        if !can_coerce(ty, common, CastContext::Implicit) {
            return Err(Error::new(
                state::CANNOT_COERCE,
                format!(
                    "{context} could not convert type {} to {}",
                    type_name(ty),
                    type_name(common)
                ),
            ));
        }
    }
    Ok(if common == oid::UNKNOWN {
        oid::TEXT
    } else {
        common
    })
}

/// Of two types of a category: the one the other goes to implicitly, unless the first is preferred
/// or it goes both ways.
fn wider(common: Oid, ty: Oid) -> Oid {
    let to_new = can_coerce(common, ty, CastContext::Implicit);
    let to_old = can_coerce(ty, common, CastContext::Implicit);
    if !is_preferred(common) && to_new && !to_old {
        ty
    } else {
        common
    }
}

pub(super) fn common_type(types: &[Oid]) -> Option<Oid> {
    select_common_type(types, "").ok()
}
