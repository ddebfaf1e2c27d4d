//! Multiranges as sets, beside each other and beside ranges.
//!
//! A range stands here for the multirange of it alone: an empty one for the empty multirange.

use crate::range::{self, before, contains, gather, intersect, overlaps, type_of};
use std::sync::Arc;
use throng_types::range::RangeType;
use throng_types::{Datum, Multirange, Range, Result, interrupt};

/// The ranges of a range or a multirange that are not empty.
pub fn parts(value: &Datum) -> &[Arc<Range>] {
    match value {
        Datum::Range(range) if range.is_empty() => &[],
        Datum::Range(range) => std::slice::from_ref(range),
        Datum::Multirange(multirange) => &multirange.ranges,
        _ => range::no_range(value),
    }
}

/// The first and the last range of both, where neither is empty.
fn ends<'a>(a: &'a Datum, b: &'a Datum) -> Option<[&'a Range; 4]> {
    let (a, b) = (parts(a), parts(b));
    Some([a.first()?, a.last()?, b.first()?, b.last()?])
}

/// Walks through both in their order, from range to range.
fn any_pair(a: &[Arc<Range>], b: &[Arc<Range>], found: impl Fn(&Range, &Range) -> bool) -> bool {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if found(x, y) {
            return true;
        }
        match before(x, y) {
            true => i += a[i..].partition_point(|x| before(x, y)),
            false => j += b[j..].partition_point(|y| before(y, x)).max(1),
        }
    }
    false
}

pub fn overlap(a: &Datum, b: &Datum) -> bool {
    any_pair(parts(a), parts(b), overlaps)
}

/// Whether each range of the second is in one of the first.
pub fn all_within(a: &Datum, b: &Datum) -> bool {
    let mut outer = parts(a);
    parts(b).iter().all(|inner| {
        outer = &outer[outer.partition_point(|range| before(range, inner))..];
        outer.first().is_some_and(|range| contains(range, inner))
    })
}

pub fn has_value(a: &Datum, value: &Datum) -> bool {
    let ranges = parts(a);
    let Some(first) = ranges.first() else {
        return false;
    };
    let Ok(ty) = type_of(first.ty) else {
        return false;
    };
    let at = throng_types::range::Bound::new(value.clone(), true);
    let point = Range {
        ty: ty.range,
        subtype: ty.subtype,
        bounds: Some(throng_types::range::Bounds {
            lower: at.clone(),
            upper: at,
        }),
    };
    let from = ranges.partition_point(|range| before(range, &point));
    ranges
        .get(from)
        .is_some_and(|range| contains(range, &point))
}

pub fn is_before(a: &Datum, b: &Datum) -> bool {
    ends(a, b).is_some_and(|[_, last, first, _]| before(last, first))
}
pub fn is_overleft(a: &Datum, b: &Datum) -> bool {
    ends(a, b).is_some_and(|[_, last, _, end]| range::overleft(last, end))
}
pub fn is_overright(a: &Datum, b: &Datum) -> bool {
    ends(a, b).is_some_and(|[first, _, start, _]| range::overright(first, start))
}
/// Whether the end of the one is beside the start of the other.
pub fn is_adjacent(a: &Datum, b: &Datum) -> Result<bool> {
    let Some([first, last, start, end]) = ends(a, b) else {
        return Ok(false);
    };
    let meet =
        |x: &Range, y: &Range| -> Result<bool> { Ok(before(x, y) && range::adjacent(x, y)?) };
    Ok(meet(last, start)? || meet(end, first)?)
}

pub fn union(ty: &RangeType, a: &Datum, b: &Datum) -> Result<Multirange> {
    gather(ty, parts(a).iter().chain(parts(b)).cloned().collect())
}

pub fn intersection(ty: &RangeType, a: &Datum, b: &Datum) -> Result<Multirange> {
    let (a, b) = (parts(a), parts(b));
    let mut from = 0;
    let mut ranges = Vec::new();
    for range in a {
        interrupt::poll()?;
        from += b[from..].partition_point(|other| before(other, range));
        for other in &b[from..] {
            let shared = intersect(range, other);
            if shared.is_empty() {
                break;
            }
            ranges.push(Arc::new(shared));
        }
    }
    Ok(Multirange {
        ty: ty.multirange,
        ranges,
    })
}

pub fn difference(ty: &RangeType, a: &Datum, b: &Datum) -> Result<Multirange> {
    let (a, b) = (parts(a), parts(b));
    let mut from = 0;
    let mut ranges = Vec::new();
    for range in a {
        interrupt::poll()?;
        from += b[from..].partition_point(|other| before(other, range));
        let mut left = Some(Arc::clone(range));
        for other in &b[from..] {
            let Some(range) = left.take() else { break };
            if before(&range, other) {
                left = Some(range);
                break;
            }
            let [head, tail] = range::rests(&range, other)?;
            ranges.extend(head.map(Arc::new));
            left = tail.map(Arc::new);
        }
        ranges.extend(left);
    }
    Ok(Multirange {
        ty: ty.multirange,
        ranges,
    })
}
