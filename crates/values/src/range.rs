//! Ranges as sets: making them, and what two of them have to do with each other.
//!
//! A range is made by [`make`] alone, so that every one is canonical: `[a,b)` where its values have
//! neighbours, and empty wherever there is nothing between its bounds.

use crate::order::{Side, bounds, comparator};
use std::cmp::Ordering;
use std::sync::Arc;
use throng_types::calendar::{DATE_INFINITY, DATE_NEG_INFINITY, date_in_range};
use throng_types::error::state;
use throng_types::range::{Bound, Bounds, RangeType, range_type};
use throng_types::sqltype::type_name;
use throng_types::{Datum, Error, Multirange, Oid, Range, Result};

#[cold]
fn out_of_order() -> Error {
    Error::new(
        state::DATA_EXCEPTION,
        "range lower bound must be less than or equal to range upper bound",
    )
}

#[cold]
fn not_contiguous(what: &str) -> Error {
    let message = format!("result of range {what} would not be contiguous");
    Error::new(state::DATA_EXCEPTION, message)
}

/// What is known of the type of a value.
///
/// # Errors
/// XX000 where it is no range type.
pub fn type_of(range: Oid) -> Result<RangeType> {
    range_type(range)
        .ok_or_else(|| Error::internal(format_args!("type {} is not a range type", range.0)))
}

fn lower(bound: &Bound) -> (&Bound, Side) {
    (bound, Side::Lower)
}
fn upper(bound: &Bound) -> (&Bound, Side) {
    (bound, Side::Upper)
}

/// The range between two bounds, canonical.
///
/// # Errors
/// 22000 for bounds in the wrong order, 22003 and 22008 where a canonical bound would be beyond the
/// subtype's values.
pub fn make(ty: &RangeType, mut ends: Bounds) -> Result<Range> {
    match between(ty, &ends)? {
        true if ty.discrete => {}
        true => return Ok(whole(ty, ends)),
        false => return Ok(Range::empty(ty)),
    }
    if !ends.lower.inclusive
        && let Some(next) = next_value(&ends.lower.value)?
    {
        ends.lower = Bound::new(next, true);
    }
    if ends.upper.inclusive
        && let Some(next) = next_value(&ends.upper.value)?
    {
        ends.upper = Bound::new(next, false);
    }
    Ok(match between(ty, &ends)? {
        true => whole(ty, ends),
        false => Range::empty(ty),
    })
}

fn whole(ty: &RangeType, ends: Bounds) -> Range {
    Range {
        ty: ty.range,
        subtype: ty.subtype,
        bounds: Some(ends),
    }
}

/// Whether there may be anything between two bounds.
fn between(ty: &RangeType, ends: &Bounds) -> Result<bool> {
    let Bounds { lower, upper } = ends;
    if lower.is_infinite() || upper.is_infinite() {
        return Ok(true);
    }
    match comparator(ty.subtype)(&lower.value, &upper.value) {
        Ordering::Less => Ok(true),
        Ordering::Equal => Ok(lower.inclusive && upper.inclusive),
        Ordering::Greater => Err(out_of_order()),
    }
}

/// The value after one of a discrete type; None where there is none to go to, as after an infinite
/// date.
fn next_value(value: &Datum) -> Result<Option<Datum>> {
    let beyond = |ty: &str| {
        let message = format!("{ty} out of range");
        Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message)
    };
    Ok(Some(match *value {
        Datum::Int4(v) => Datum::Int4(v.checked_add(1).ok_or_else(|| beyond("integer"))?),
        Datum::Int8(v) => Datum::Int8(v.checked_add(1).ok_or_else(|| beyond("bigint"))?),
        Datum::Date(DATE_INFINITY | DATE_NEG_INFINITY) => return Ok(None),
        Datum::Date(v) if date_in_range(i64::from(v) + 1) => Datum::Date(v + 1),
        Datum::Date(_) => {
            let message = "date out of range";
            return Err(Error::new(state::DATETIME_FIELD_OVERFLOW, message));
        }
        _ => return Ok(None),
    }))
}

/// Two bounds of ranges over one type, in the order of that type.
struct Over(fn(&Datum, &Datum) -> Ordering);

impl Over {
    fn of(range: &Range) -> Over {
        Over(comparator(range.subtype))
    }
    fn lowers(&self, a: &Bounds, b: &Bounds) -> Ordering {
        bounds(lower(&a.lower), lower(&b.lower), self.0)
    }
    fn uppers(&self, a: &Bounds, b: &Bounds) -> Ordering {
        bounds(upper(&a.upper), upper(&b.upper), self.0)
    }
    /// The end of the first beside the start of the second.
    fn end_to_start(&self, a: &Bounds, b: &Bounds) -> Ordering {
        bounds(upper(&a.upper), lower(&b.lower), self.0)
    }
    fn overlap(&self, a: &Bounds, b: &Bounds) -> bool {
        self.end_to_start(a, b).is_ge() && self.end_to_start(b, a).is_ge()
    }
    fn contains(&self, a: &Bounds, b: &Bounds) -> bool {
        self.lowers(a, b).is_le() && self.uppers(a, b).is_ge()
    }
    fn has_value(&self, a: &Bounds, value: &Datum) -> bool {
        let at = Bound::new(value.clone(), true);
        bounds(lower(&a.lower), lower(&at), self.0).is_le()
            && bounds(upper(&a.upper), upper(&at), self.0).is_ge()
    }
    /// Whether nothing lies between the end of the one and the start of the other, and nothing in
    /// both.
    fn meet(&self, ty: &RangeType, end: &Bound, start: &Bound) -> bool {
        if end.is_infinite() || start.is_infinite() {
            return false;
        }
        match (self.0)(&end.value, &start.value) {
            Ordering::Equal => end.inclusive != start.inclusive,
            Ordering::Less if ty.discrete => {
                let gap = Bounds {
                    lower: Bound::new(end.value.clone(), !end.inclusive),
                    upper: Bound::new(start.value.clone(), !start.inclusive),
                };
                make(ty, gap).is_ok_and(|gap| gap.is_empty())
            }
            _ => false,
        }
    }
}

/// Both ranges' bounds, where neither is empty.
fn pair<'a>(a: &'a Range, b: &'a Range) -> Option<(Over, &'a Bounds, &'a Bounds)> {
    Some((Over::of(a), a.bounds.as_ref()?, b.bounds.as_ref()?))
}

pub fn overlaps(a: &Range, b: &Range) -> bool {
    pair(a, b).is_some_and(|(over, a, b)| over.overlap(a, b))
}
/// Whether all of the second is in the first.
pub fn contains(a: &Range, b: &Range) -> bool {
    b.is_empty() || pair(a, b).is_some_and(|(over, a, b)| over.contains(a, b))
}
pub fn contains_value(range: &Range, value: &Datum) -> bool {
    let ends = range.bounds.as_ref();
    ends.is_some_and(|ends| Over::of(range).has_value(ends, value))
}
/// Whether the first ends before the second begins.
pub fn before(a: &Range, b: &Range) -> bool {
    pair(a, b).is_some_and(|(over, a, b)| over.end_to_start(a, b).is_lt())
}
/// Whether the first does not reach beyond the end of the second.
pub fn overleft(a: &Range, b: &Range) -> bool {
    pair(a, b).is_some_and(|(over, a, b)| over.uppers(a, b).is_le())
}
/// Whether the first does not reach beyond the start of the second.
pub fn overright(a: &Range, b: &Range) -> bool {
    pair(a, b).is_some_and(|(over, a, b)| over.lowers(a, b).is_ge())
}
pub fn adjacent(a: &Range, b: &Range) -> Result<bool> {
    let ty = type_of(a.ty)?;
    Ok(pair(a, b).is_some_and(|(over, a, b)| {
        over.meet(&ty, &a.upper, &b.lower) || over.meet(&ty, &b.upper, &a.lower)
    }))
}

/// The smallest range that has both in it.
pub fn merge(a: &Range, b: &Range) -> Range {
    let Some((over, x, y)) = pair(a, b) else {
        return if a.is_empty() { b.clone() } else { a.clone() };
    };
    let lower = if over.lowers(x, y).is_le() { x } else { y };
    let upper = if over.uppers(x, y).is_ge() { x } else { y };
    Range {
        bounds: Some(Bounds {
            lower: lower.lower.clone(),
            upper: upper.upper.clone(),
        }),
        ..*a
    }
}

/// # Errors
/// 22000 where there is a gap between them.
pub fn union(a: &Range, b: &Range) -> Result<Range> {
    if !a.is_empty() && !b.is_empty() && !overlaps(a, b) && !adjacent(a, b)? {
        return Err(not_contiguous("union"));
    }
    Ok(merge(a, b))
}

pub fn intersect(a: &Range, b: &Range) -> Range {
    let nothing = Range { bounds: None, ..*a };
    let Some((over, x, y)) = pair(a, b) else {
        return nothing;
    };
    if !over.overlap(x, y) {
        return nothing;
    }
    let lower = if over.lowers(x, y).is_ge() { x } else { y };
    let upper = if over.uppers(x, y).is_le() { x } else { y };
    Range {
        bounds: Some(Bounds {
            lower: lower.lower.clone(),
            upper: upper.upper.clone(),
        }),
        ..*a
    }
}

/// The bound where something begins that ends here, or ends that begins here.
fn turned(bound: &Bound) -> Bound {
    Bound::new(bound.value.clone(), !bound.inclusive)
}

/// What of the first is before the second, and what is behind it.
pub fn rests(a: &Range, b: &Range) -> Result<[Option<Range>; 2]> {
    let Some((over, x, y)) = pair(a, b) else {
        let all = Some(a.clone()).filter(|a| !a.is_empty());
        return Ok([all, None]);
    };
    match () {
        () if over.end_to_start(x, y).is_lt() => return Ok([Some(a.clone()), None]),
        () if over.end_to_start(y, x).is_lt() => return Ok([None, Some(a.clone())]),
        () => {}
    }
    let ty = type_of(a.ty)?;
    let part = |lower: &Bound, upper: &Bound| {
        let (lower, upper) = (lower.clone(), upper.clone());
        make(&ty, Bounds { lower, upper })
    };
    let head = match over.lowers(x, y).is_lt() {
        true => Some(part(&x.lower, &turned(&y.lower))?),
        false => None,
    };
    let tail = match over.uppers(x, y).is_gt() {
        true => Some(part(&turned(&y.upper), &x.upper)?),
        false => None,
    };
    Ok([head, tail].map(|part| part.filter(|part| !part.is_empty())))
}

/// # Errors
/// 22000 where the second splits the first.
pub fn minus(a: &Range, b: &Range) -> Result<Range> {
    match rests(a, b)? {
        [Some(_), Some(_)] => Err(not_contiguous("difference")),
        [Some(rest), None] | [None, Some(rest)] => Ok(rest),
        [None, None] => Ok(Range { bounds: None, ..*a }),
    }
}

/// A multirange of ranges in any order.
pub fn gather(ty: &RangeType, ranges: Vec<Arc<Range>>) -> Result<Multirange> {
    let mut ranges = ranges;
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by(|a, b| crate::order::ranges(a, b));
    let mut out: Vec<Arc<Range>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if overlaps(last, &range) || adjacent(last, &range)? => {
                *last = Arc::new(merge(last, &range));
            }
            _ => out.push(range),
        }
    }
    Ok(Multirange {
        ty: ty.multirange,
        ranges: out,
    })
}

#[cold]
pub fn no_range(value: &Datum) -> ! {
    unreachable!(
        "not a range: {value:?} of {}",
        type_name(value.natural_type())
    )
}
