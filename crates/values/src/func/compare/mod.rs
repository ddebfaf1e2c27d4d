//! Comparison: one order for each type, and the operators over it.
//!
//! Floats: NaN equals itself and is above everything, -0 equals 0. `char(n)`: trailing blanks do
//! not count. Strings: by bytes, which for UTF-8 is by code point (collations "C" and the default).
//! Intervals: a month is 30 days. Arrays and records: item by item, NULLs above values.

pub(super) mod hashes;
pub(super) mod table;

use super::{EvalContext, EvalResult};
use crate::io::Zone;
use std::cmp::Ordering;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::sqltype::format_type as type_text;
use throng_types::{Array, Datum, Error, Oid, Record, Result, SqlType, TimeTz, oid};

/// SQL's order of two values of one type, or of two integers or two floats of any width. Neither is
/// NULL.
///
/// Values of types that have no order in common are fields of rows alone, as binding lets no others
/// through: by their types. [`compare_checked`] refuses them.
#[inline]
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
        (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => compare_other(a, b),
    }
}

fn compare_other(a: &Datum, b: &Datum) -> Ordering {
    use Datum::*;
    match (a, b) {
        (Bool(a), Bool(b)) => a.cmp(b),
        (Numeric(a), Numeric(b)) => a.compare(b),
        (Date(a), Date(b)) => a.cmp(b),
        (Time(a), Time(b)) | (Timestamp(a), Timestamp(b)) | (TimestampTz(a), TimestampTz(b)) => {
            a.cmp(b)
        }
        (Date(a), Timestamp(b)) => date_to_timestamp(*a).cmp(b),
        (Timestamp(a), Date(b)) => a.cmp(&date_to_timestamp(*b)),
        (Float4(a), Float4(b)) => floats(f64::from(*a), f64::from(*b)),
        (Float8(a), Float8(b)) => floats(*a, *b),
        (Float4(a), Float8(b)) => floats(f64::from(*a), *b),
        (Float8(a), Float4(b)) => floats(*a, f64::from(*b)),
        (Bytea(a), Bytea(b)) => a.cmp(b),
        (Char(a), Char(b)) => a.cmp(b),
        (Uuid(a), Uuid(b)) => a.cmp(b),
        (Interval(a), Interval(b)) => a.comparable().cmp(&b.comparable()),
        (TimeTz(a), TimeTz(b)) => zoned_times(a, b),
        (Tid(a), Tid(b)) => a.cmp(b),
        (Jsonb(a), Jsonb(b)) => a.compare(b),
        (Base(a), Base(b)) => a.compare(b),
        (Enum(a), Enum(b)) => a.place.total_cmp(&b.place),
        (Array(a), Array(b)) => arrays(a, b),
        // Fields of rows alone come here: what rows hold is not known before.
        (Json(a), Json(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Record(a), Record(b)) => a
            .values
            .iter()
            .zip(&b.values)
            .zip(a.types.iter())
            .map(|((a, b), ty)| items(a, b, *ty))
            .find(|o| o.is_ne())
            .unwrap_or_else(|| a.values.len().cmp(&b.values.len())),
        _ => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.natural_type().cmp(&b.natural_type()),
        },
    }
}

/// The order of two rows, or of two arrays of rows; rows are refused where, up to their first
/// difference, fields are of different types or one has none.
pub fn compare_checked(a: &Datum, b: &Datum) -> Result<Ordering> {
    match (a, b) {
        (Datum::Record(a), Datum::Record(b)) => records(a, b),
        (Datum::Array(a), Datum::Array(b)) => {
            if a.items.iter().any(|i| matches!(i, Datum::Record(_))) {
                for (x, y) in a.items.iter().zip(&b.items) {
                    let order = items_checked(x, y, a.element)?;
                    if order.is_ne() {
                        return Ok(order);
                    }
                }
            }
            Ok(arrays(a, b))
        }
        _ => Ok(compare(a, b)),
    }
}

fn items_checked(a: &Datum, b: &Datum, ty: Oid) -> Result<Ordering> {
    match (a, b) {
        (Datum::Record(_), Datum::Record(_)) | (Datum::Array(_), Datum::Array(_)) => {
            compare_checked(a, b)
        }
        _ => Ok(items(a, b, ty)),
    }
}

fn records(a: &Record, b: &Record) -> Result<Ordering> {
    let fields = a.types.iter().zip(b.types.iter());
    for (at, (left, right)) in fields.enumerate() {
        if left != right {
            let message = format!(
                "cannot compare dissimilar column types {} and {} at record column {}",
                type_text(SqlType::plain(*left)),
                type_text(SqlType::plain(*right)),
                at + 1
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message));
        }
        let order = items_checked(&a.values[at], &b.values[at], *left)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    if a.types.len() != b.types.len() {
        let message = "cannot compare record types with different numbers of columns";
        return Err(Error::new(state::DATATYPE_MISMATCH, message));
    }
    Ok(Ordering::Equal)
}

/// NaN above everything, -0 as 0.
pub fn floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// By the moment, then by zone.
fn zoned_times(a: &TimeTz, b: &TimeTz) -> Ordering {
    let moment = |t: &TimeTz| t.micros + i64::from(t.zone) * MICROS_PER_SECOND;
    moment(a).cmp(&moment(b)).then(a.zone.cmp(&b.zone))
}

/// Items of an array or a record: NULL equals NULL and is above values.
fn items(a: &Datum, b: &Datum, ty: Oid) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (false, false) => comparator(ty)(a, b),
        (a, b) => a.cmp(&b),
    }
}

fn arrays(a: &Array, b: &Array) -> Ordering {
    a.items
        .iter()
        .zip(&b.items)
        .map(|(x, y)| items(x, y, a.element))
        .find(|o| o.is_ne())
        .unwrap_or_else(|| a.items.len().cmp(&b.items.len()))
        .then_with(|| a.dims.len().cmp(&b.dims.len()))
        .then_with(|| {
            let bounds = a.dims.iter().zip(&b.dims);
            bounds
                .map(|(x, y)| x.len.cmp(&y.len).then(x.lower.cmp(&y.lower)))
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        })
}

/// Strings without their trailing blanks.
pub fn compare_padded(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Text(a), Datum::Text(b)) => a
            .trim_end_matches(' ')
            .as_bytes()
            .cmp(b.trim_end_matches(' ').as_bytes()),
        _ => compare(a, b),
    }
}

/// The order of a type's values: for sorting, grouping, min and max.
pub fn comparator(ty: Oid) -> fn(&Datum, &Datum) -> Ordering {
    if ty == oid::BPCHAR {
        compare_padded
    } else {
        compare
    }
}

/// Two values that may be NULL, as ORDER BY wants them.
pub fn compare_sorted(
    compare: fn(&Datum, &Datum) -> Ordering,
    a: &Datum,
    b: &Datum,
    descending: bool,
    nulls_first: bool,
) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if descending => compare(b, a),
        (false, false) => compare(a, b),
    }
}

/// A date's midnight; beyond the range of timestamps, the nearest infinity (the order is what
/// counts).
pub fn date_to_timestamp(days: i32) -> i64 {
    match days {
        DATE_INFINITY => TIMESTAMP_INFINITY,
        DATE_NEG_INFINITY => TIMESTAMP_NEG_INFINITY,
        _ => i64::from(days)
            .checked_mul(MICROS_PER_DAY)
            .unwrap_or(TIMESTAMP_INFINITY - 1),
    }
}

/// The moment a local time is in a zone; the infinities stay.
fn to_utc(zone: &Zone, local: i64) -> i64 {
    match local {
        TIMESTAMP_INFINITY | TIMESTAMP_NEG_INFINITY => local,
        _ => zone.to_utc(local),
    }
}

fn zoned_compare(ctx: &EvalContext<'_>, a: &Datum, b: &Datum) -> Ordering {
    let moment = |d: &Datum| match d {
        Datum::Date(v) => to_utc(&ctx.format.time_zone, date_to_timestamp(*v)),
        Datum::Timestamp(v) => to_utc(&ctx.format.time_zone, *v),
        Datum::TimestampTz(v) => *v,
        _ => unreachable!("not a date or timestamp: {d:?}"),
    };
    moment(a).cmp(&moment(b))
}

/// The six operators over an order; the last ones for the types whose speed counts most.
macro_rules! operators {
    ($($module:ident = |$ctx:ident, $a:ident, $b:ident| $order:expr;)*) => { $(
        pub(super) mod $module {
            use super::*;
            operators!(@each |$ctx, $a, $b| $order;
                eq is_eq, ne is_ne, lt is_lt, le is_le, gt is_gt, ge is_ge);
        }
    )* };
    (@each |$ctx:ident, $a:ident, $b:ident| $order:expr; $($name:ident $test:ident),*) => {
        operators!(@go |$ctx, $a, $b| $order; $($name $test)*);
    };
    (@go |$ctx:ident, $a:ident, $b:ident| $order:expr;) => {};
    (@go |$ctx:ident, $a:ident, $b:ident| $order:expr; $name:ident $test:ident $($rest:tt)*) => {
        pub fn $name($ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            let ($a, $b) = (&args[0], &args[1]);
            Ok(Datum::Bool($order.$test()))
        }
        operators!(@go |$ctx, $a, $b| $order; $($rest)*);
    };
}

/// A transaction's id beside an integer, which is taken for the id with its bits.
pub(super) mod xid {
    use super::*;

    fn same(args: &[Datum]) -> bool {
        let id = |value: &Datum| value.as_i64().map(|id| id as u32);
        id(&args[0]) == id(&args[1])
    }
    pub fn eq(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
        Ok(same(args).into())
    }
    pub fn ne(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
        Ok((!same(args)).into())
    }
}

operators! {
    any = |_ctx, a, b| compare(a, b);
    checked = |_ctx, a, b| compare_checked(a, b)?;
    padded = |_ctx, a, b| compare_padded(a, b);
    zoned = |ctx, a, b| zoned_compare(ctx, a, b);
    int4 = |_ctx, a, b| match (a, b) {
        (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
        _ => compare(a, b),
    };
    int8 = |_ctx, a, b| match (a, b) {
        (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
        _ => compare(a, b),
    };
    text = |_ctx, a, b| match (a, b) {
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => compare(a, b),
    };
}
