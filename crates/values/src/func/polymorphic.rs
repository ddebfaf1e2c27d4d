//! Types that stand for whatever a call gives, and what they are in a call.
//!
//! Those of a family say one thing of a call: `anyelement`, `anyarray`, `anyrange` and their like
//! all tell the type of an element. The element of a range type is its subtype; which range type
//! is over a subtype only a range or a multirange tells, for there may be several.

use super::coerce::common_type;
use throng_types::range::{multirange_type, range_type};
use throng_types::sqltype::{array_of, element_of};
use throng_types::{Oid, oid};

/// A type that stands for whatever a call gives.
pub fn is_polymorphic(ty: Oid) -> bool {
    matches!(
        ty,
        oid::ANYELEMENT
            | oid::ANYARRAY
            | oid::ANYNONARRAY
            | oid::ANYENUM
            | oid::ANYRANGE
            | oid::ANYMULTIRANGE
    ) || is_compatible_family(ty)
}

pub(super) fn is_compatible_family(ty: Oid) -> bool {
    matches!(
        ty,
        oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
            | oid::ANYCOMPATIBLERANGE
            | oid::ANYCOMPATIBLEMULTIRANGE
    )
}

/// What an array of any type is an array of.
pub(super) fn polymorphic_element(array: Oid) -> Option<Oid> {
    match array {
        oid::ANYARRAY => Some(oid::ANYELEMENT),
        oid::ANYCOMPATIBLEARRAY => Some(oid::ANYCOMPATIBLE),
        _ => None,
    }
}

/// What a polymorphic type is in a call that gives these types for parameters declared so.
pub fn actual_type(ty: Oid, declared: &[Oid], given: &[Oid]) -> Option<Oid> {
    match is_polymorphic(ty) {
        true => actualize(&mut declared.to_vec(), given, ty),
        false => Some(ty),
    }
}

/// What the arguments of a call tell of a family's types.
#[derive(Default)]
struct PolymorphicTypes {
    element: Option<Oid>,
    range: Option<Oid>,
}

/// Keeps what is seen; None where it contradicts what was seen before.
fn agree(slot: &mut Option<Oid>, seen: Oid) -> Option<()> {
    (*slot.get_or_insert(seen) == seen).then_some(())
}

impl PolymorphicTypes {
    fn see_range(&mut self, range: Oid) -> Option<()> {
        agree(&mut self.range, range)
    }
    fn multirange(&self) -> Option<Oid> {
        Some(range_type(self.range?)?.multirange)
    }
}

/// Replaces polymorphic parameter types by actual ones and gives the actual result type; None where
/// the arguments contradict each other.
pub(super) fn actualize(params: &mut [Oid], given: &[Oid], ret: Oid) -> Option<Oid> {
    let mut plain = PolymorphicTypes::default();
    let mut compatible = PolymorphicTypes::default();
    let mut several: Vec<Oid> = Vec::new();
    for (&param, &arg) in params.iter().zip(given) {
        match param {
            _ if arg == oid::UNKNOWN => {}
            oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM => agree(&mut plain.element, arg)?,
            // `anyarray` itself is what some catalog columns are declared as.
            oid::ANYARRAY if arg == oid::ANYARRAY => agree(&mut plain.element, oid::ANYELEMENT)?,
            oid::ANYARRAY => agree(&mut plain.element, element_of(arg)?)?,
            oid::ANYRANGE => plain.see_range(range_type(arg)?.range)?,
            oid::ANYMULTIRANGE => plain.see_range(multirange_type(arg)?.range)?,
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => several.push(arg),
            oid::ANYCOMPATIBLEARRAY => several.push(element_of(arg)?),
            oid::ANYCOMPATIBLERANGE => compatible.see_range(range_type(arg)?.range)?,
            oid::ANYCOMPATIBLEMULTIRANGE => compatible.see_range(multirange_type(arg)?.range)?,
            _ => {}
        }
    }
    if let Some(range) = plain.range {
        agree(&mut plain.element, range_type(range)?.subtype)?;
    }
    if let Some(range) = compatible.range {
        several.push(range_type(range)?.subtype);
    }
    if params.iter().any(|&p| is_compatible_family(p)) {
        compatible.element = match several.is_empty() {
            // All unknown: text, as in any other common type.
            true => Some(oid::TEXT),
            false => Some(common_type(&several)?),
        };
    }
    // A range's values are not cast.
    if let Some(range) = compatible.range
        && compatible.element != Some(range_type(range)?.subtype)
    {
        return None;
    }
    for (param, &arg) in params.iter_mut().zip(given) {
        *param = match *param {
            oid::ANYENUM => plain.element?,
            oid::ANYARRAY if arg != oid::UNKNOWN => arg,
            oid::ANYARRAY => plain.element.and_then(array_of).unwrap_or(oid::TEXT_ARRAY),
            oid::ANY if arg == oid::UNKNOWN => oid::TEXT,
            oid::ANY => arg,
            other => one_of(other, &plain, &compatible)?,
        };
    }
    one_of(ret, &plain, &compatible)
}

/// What a type is in a call; a range type that no argument tells stays what it is.
fn one_of(ty: Oid, plain: &PolymorphicTypes, compatible: &PolymorphicTypes) -> Option<Oid> {
    let element = plain.element.unwrap_or(oid::TEXT);
    let common = compatible.element.unwrap_or(oid::TEXT);
    Some(match ty {
        oid::ANYELEMENT | oid::ANYNONARRAY => element,
        oid::ANYENUM => plain.element?,
        oid::ANYARRAY => array_of(element)?,
        oid::ANYRANGE => plain.range.unwrap_or(ty),
        oid::ANYMULTIRANGE => plain.multirange().unwrap_or(ty),
        oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => common,
        oid::ANYCOMPATIBLEARRAY => array_of(common)?,
        oid::ANYCOMPATIBLERANGE => compatible.range.unwrap_or(ty),
        oid::ANYCOMPATIBLEMULTIRANGE => compatible.multirange().unwrap_or(ty),
        other => other,
    })
}
