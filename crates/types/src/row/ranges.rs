//! Ranges and multiranges inside rows.
//!
//! ```text
//!   | the subtype u32 | ranges: one, or those of a multirange |
//!   range: | flags u8 | lower bound's value, if it has one | upper bound's |
//!   flags: 1 empty, 2 no lower bound, 4 no upper bound, 8 lower inclusive, 16 upper inclusive
//! ```

use super::{Phys, damaged, read_value, take, write_value};
use crate::datum::Datum;
use crate::range::{Bound, Bounds, Multirange, Range, multirange_type};
use crate::{Error, Oid, Result};
use std::sync::Arc;

const EMPTY: u8 = 1;
const NO_LOWER: u8 = 2;
const NO_UPPER: u8 = 4;
const LOWER_INCLUSIVE: u8 = 8;
const UPPER_INCLUSIVE: u8 = 16;

fn phys(subtype: Oid) -> Result<Phys> {
    Phys::of(subtype).ok_or_else(|| Error::internal("a range over values without a stored form"))
}

fn write_one(range: &Range, phys: Phys, out: &mut Vec<u8>) -> Result<()> {
    let Some(Bounds { lower, upper }) = &range.bounds else {
        out.push(EMPTY);
        return Ok(());
    };
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(
        flag(lower.is_infinite(), NO_LOWER)
            | flag(upper.is_infinite(), NO_UPPER)
            | flag(lower.inclusive, LOWER_INCLUSIVE)
            | flag(upper.inclusive, UPPER_INCLUSIVE),
    );
    write_value(&lower.value, phys, out)?;
    write_value(&upper.value, phys, out)
}

fn read_one(bytes: &[u8], at: usize, ty: Oid, subtype: Oid, phys: Phys) -> Result<(Range, usize)> {
    let flags = *bytes.get(at).ok_or_else(damaged)?;
    if flags & EMPTY != 0 {
        let bounds = None;
        return Ok((
            Range {
                ty,
                subtype,
                bounds,
            },
            at + 1,
        ));
    }
    let mut at = at + 1;
    let mut bound = |infinite: u8, inclusive: u8| -> Result<Bound> {
        if flags & infinite != 0 {
            return Ok(Bound::INFINITE);
        }
        let (value, next) = read_value(bytes, at, phys)?;
        at = next;
        Ok(Bound::new(value, flags & inclusive != 0))
    };
    let lower = bound(NO_LOWER, LOWER_INCLUSIVE)?;
    let upper = bound(NO_UPPER, UPPER_INCLUSIVE)?;
    let bounds = Some(Bounds { lower, upper });
    Ok((
        Range {
            ty,
            subtype,
            bounds,
        },
        at,
    ))
}

pub(super) fn write_range(range: &Range, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&range.subtype.0.to_le_bytes());
    write_one(range, phys(range.subtype)?, out)
}

pub(super) fn read_range(ty: Oid, bytes: &[u8]) -> Result<Datum> {
    let subtype = Oid(u32::from_le_bytes(take(bytes, 0)?));
    let (range, end) = read_one(
        bytes,
        4,
        ty,
        subtype,
        Phys::of(subtype).ok_or_else(damaged)?,
    )?;
    match end == bytes.len() {
        true => Ok(Datum::Range(Arc::new(range))),
        false => Err(damaged()),
    }
}

pub(super) fn write_multirange(multirange: &Multirange, out: &mut Vec<u8>) -> Result<()> {
    let subtype = multirange.ranges.first().map_or(Oid::NONE, |r| r.subtype);
    out.extend_from_slice(&subtype.0.to_le_bytes());
    for range in &multirange.ranges {
        write_one(range, phys(subtype)?, out)?;
    }
    Ok(())
}

pub(super) fn read_multirange(ty: Oid, bytes: &[u8]) -> Result<Datum> {
    let subtype = Oid(u32::from_le_bytes(take(bytes, 0)?));
    let range_type = multirange_type(ty).ok_or_else(damaged)?.range;
    let mut ranges = Vec::new();
    let mut at = 4;
    while at < bytes.len() {
        let phys = Phys::of(subtype).ok_or_else(damaged)?;
        let (range, next) = read_one(bytes, at, range_type, subtype, phys)?;
        ranges.push(Arc::new(range));
        at = next;
    }
    Ok(Datum::Multirange(Arc::new(Multirange { ty, ranges })))
}
