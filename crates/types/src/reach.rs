//! What a condition on a range column bounds of an index over it.
//!
//! Keys of ranges are in the order of their lower bounds ([`crate::key`]), the empty range's first.
//! A condition as `key && value` says of a key's lower bound that it is not beyond the value's end,
//! and of its upper bound what only the row itself tells: a stretch of keys holds all rows that
//! satisfy the condition, and others too.

use crate::datum::Datum;
use crate::key::{EMPTY_RANGE, SOME_RANGE, encode_value};
use crate::range;
use crate::{Error, Result};
use std::ops::Bound;

/// How a key, which is a range or a multirange, is beside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// They have something in common.
    Overlaps,
    /// The value, a range or a multirange, is in the key.
    Contains,
    /// The value, one of the subtype, is in the key.
    ContainsValue,
    /// The key is in the value.
    Within,
    Before,
    After,
    /// The key does not end behind the value's end.
    OverLeft,
    /// The key does not begin before the value's start.
    OverRight,
    Adjacent,
}

/// Both ends of a stretch of keys. Keys that begin with an end are within it where it is included,
/// and all without where it is excluded.
pub type Stretch = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Where both ends of a range, or of all ranges of a multirange, are; None for an empty one.
fn ends(value: &Datum) -> Result<Option<(&range::Bound, &range::Bound)>> {
    match value {
        Datum::Range(range) => Ok(range.bounds.as_ref().map(|b| (&b.lower, &b.upper))),
        Datum::Multirange(multirange) => {
            let first = multirange.ranges.first().and_then(|r| r.bounds.as_ref());
            let last = multirange.ranges.last().and_then(|r| r.bounds.as_ref());
            Ok(first.zip(last).map(|(a, b)| (&a.lower, &b.upper)))
        }
        _ => Err(Error::internal("a range is compared with what is none")),
    }
}

/// The beginning of keys whose lower bound has this value, inclusive or not.
fn starting_at(value: &Datum, blank_padded: bool) -> Result<Vec<u8>> {
    let mut bytes = SOME_RANGE.to_vec();
    match value.is_null() {
        true => bytes.push(0x00),
        false => {
            bytes.push(0x01);
            encode_value(value, blank_padded, &mut bytes)?;
        }
    }
    Ok(bytes)
}

impl Reach {
    /// The keys among which are all that are so beside `value`; None where none is.
    pub fn stretch(self, value: &Datum, blank_padded: bool) -> Result<Option<Stretch>> {
        let included = |bytes: &[u8]| Bound::Included(bytes.to_vec());
        let some = || included(&SOME_RANGE);
        let at = |value: &Datum| starting_at(value, blank_padded).map(Bound::Included);
        if self == Reach::ContainsValue {
            return Ok(Some((some(), at(value)?)));
        }
        let Some((lower, upper)) = ends(value)? else {
            let empty = || included(&EMPTY_RANGE);
            return Ok(match self {
                // All that there is, the empty range too.
                Reach::Contains => Some((included(&EMPTY_RANGE[..1]), included(&EMPTY_RANGE[..1]))),
                Reach::Within => Some((empty(), empty())),
                _ => None,
            });
        };
        // Keys that begin before the value ends, or where it ends.
        let to_end = || match (upper.is_infinite(), upper.inclusive) {
            (true, _) => Ok(some()),
            (false, true) => at(&upper.value),
            (false, false) => starting_at(&upper.value, blank_padded).map(Bound::Excluded),
        };
        Ok(Some(match self {
            Reach::Overlaps | Reach::OverLeft => (some(), to_end()?),
            Reach::Within => (included(&EMPTY_RANGE), to_end()?),
            Reach::Contains => (some(), at(&lower.value)?),
            Reach::Before if lower.is_infinite() => return Ok(None),
            Reach::Before => (some(), at(&lower.value)?),
            Reach::After if upper.is_infinite() => return Ok(None),
            Reach::After => (at(&upper.value)?, some()),
            Reach::OverRight if lower.is_infinite() => (some(), some()),
            Reach::OverRight => (at(&lower.value)?, some()),
            Reach::Adjacent if upper.is_infinite() => (some(), some()),
            Reach::Adjacent => (some(), at(&upper.value)?),
            Reach::ContainsValue => return Ok(None),
        }))
    }
}
