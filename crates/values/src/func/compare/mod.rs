//! The comparison operators, over the order that `crate::order` has for each type.

pub mod hashes;
pub(super) mod table;

use super::{EvalContext, EvalResult};
use crate::io::Zone;
use std::cmp::Ordering;
use throng_types::base::{BaseOrder, base_type};
use throng_types::calendar::*;
use throng_types::sqltype::element_of;
use throng_types::{Datum, Oid, oid};

pub use crate::order::{
    comparator, compare, compare_checked, compare_padded, compare_sorted, date_to_timestamp, floats,
};

/// Whether a type whose values can be compared has a hash in PostgreSQL, too.
pub fn is_hashable(ty: Oid) -> bool {
    let item = element_of(ty).unwrap_or(ty);
    !matches!(
        item,
        oid::BIT | oid::VARBIT | oid::MONEY | oid::TSVECTOR | oid::TSQUERY
    )
}

/// Whether a type's values have an order: for sorting, grouping and indexes. That of some types
/// which have an operator `<`, as `circle`, is one of sizes.
pub fn is_ordered(ty: Oid) -> bool {
    let item = element_of(ty).unwrap_or(ty);
    match base_type(item) {
        // Be its operators called as they may.
        Some(base) => !matches!(base.order, BaseOrder::None),
        None => super::resolve_operator("<", Some(ty), ty).is_ok(),
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
