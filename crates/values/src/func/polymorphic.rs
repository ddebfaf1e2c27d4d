//! Types that stand for whatever a call gives, and what they are in a call.

use super::coerce::common_type;
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
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
    )
}

pub(super) fn is_compatible_family(ty: Oid) -> bool {
    matches!(
        ty,
        oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLEARRAY | oid::ANYCOMPATIBLENONARRAY
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

/// Replaces polymorphic parameter types by actual ones and gives the actual result type; None where
/// the arguments contradict each other.
pub(super) fn actualize(params: &mut [Oid], given: &[Oid], ret: Oid) -> Option<Oid> {
    let mut element = None;
    let mut compatible: Vec<Oid> = Vec::new();
    for (&param, &arg) in params.iter().zip(given) {
        let seen = match param {
            _ if arg == oid::UNKNOWN => continue,
            oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM => arg,
            // `anyarray` itself is what some catalog columns are declared as.
            oid::ANYARRAY if arg == oid::ANYARRAY => oid::ANYELEMENT,
            oid::ANYARRAY => element_of(arg)?,
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => {
                compatible.push(arg);
                continue;
            }
            oid::ANYCOMPATIBLEARRAY => {
                compatible.push(element_of(arg)?);
                continue;
            }
            _ => continue,
        };
        match element {
            None => element = Some(seen),
            Some(e) if e == seen => {}
            Some(_) => return None,
        }
    }
    let needs_compatible = params.iter().any(|&p| {
        matches!(
            p,
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLEARRAY | oid::ANYCOMPATIBLENONARRAY
        )
    });
    let common = if needs_compatible {
        if compatible.is_empty() {
            // All unknown: text, as in any other common type.
            Some(oid::TEXT)
        } else {
            Some(common_type(&compatible)?)
        }
    } else {
        None
    };
    for (param, &arg) in params.iter_mut().zip(given) {
        *param = match *param {
            oid::ANYELEMENT | oid::ANYNONARRAY => element.unwrap_or(oid::TEXT),
            oid::ANYENUM => element?,
            oid::ANYARRAY if arg != oid::UNKNOWN => arg,
            oid::ANYARRAY => element.and_then(array_of).unwrap_or(oid::TEXT_ARRAY),
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => common?,
            oid::ANYCOMPATIBLEARRAY => array_of(common?)?,
            oid::ANY if arg == oid::UNKNOWN => oid::TEXT,
            oid::ANY => arg,
            plain => plain,
        };
    }
    Some(match ret {
        oid::ANYELEMENT | oid::ANYNONARRAY => element.unwrap_or(oid::TEXT),
        oid::ANYENUM => element?,
        oid::ANYARRAY => array_of(element.unwrap_or(oid::TEXT))?,
        oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => common.unwrap_or(oid::TEXT),
        oid::ANYCOMPATIBLEARRAY => array_of(common.unwrap_or(oid::TEXT))?,
        plain => plain,
    })
}
