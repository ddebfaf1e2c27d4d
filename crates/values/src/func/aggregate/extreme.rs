//! The larger and the smaller of two values: what `max` and `min` keep, as functions.

use std::cmp::Ordering;

use throng_types::{Datum, oid::*};

use crate::func::compare::{compare_checked, compare_padded};
use crate::func::{EvalContext, EvalResult, Function};

/// The second where both are equal.
fn larger(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let order = compare_checked(&args[0], &args[1])?;
    Ok(args[usize::from(order != Ordering::Greater)].clone())
}
fn smaller(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let order = compare_checked(&args[0], &args[1])?;
    Ok(args[usize::from(order != Ordering::Less)].clone())
}
/// The first where both are equal but for blanks at their ends.
fn larger_padded(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let order = compare_padded(&args[0], &args[1]);
    Ok(args[usize::from(order == Ordering::Less)].clone())
}
fn smaller_padded(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let order = compare_padded(&args[0], &args[1]);
    Ok(args[usize::from(order == Ordering::Greater)].clone())
}

/// One row a type: the type, the functions' oids and names, and what computes them.
macro_rules! extremes {
    ($($ty:ident $larger:literal $larger_name:literal $smaller:literal $smaller_name:literal
        $larger_eval:ident $smaller_eval:ident;)*) => {
        pub static FUNCTIONS: &[Function] = &[$(
            Function::new($larger, $larger_name, &[$ty, $ty], $ty, $larger_eval),
            Function::new($smaller, $smaller_name, &[$ty, $ty], $ty, $smaller_eval),
        )*];
    };
}
extremes! {
    ANYARRAY 515 "array_larger" 516 "array_smaller" larger smaller;
    MONEY 898 "cashlarger" 899 "cashsmaller" larger smaller;
    INET 3562 "network_larger" 3563 "network_smaller" larger smaller;
    BPCHAR 1063 "bpchar_larger" 1064 "bpchar_smaller" larger_padded smaller_padded;
    BYTEA 6393 "bytea_larger" 6394 "bytea_smaller" larger smaller;
    DATE 1138 "date_larger" 1139 "date_smaller" larger smaller;
    ANYENUM 3525 "enum_larger" 3524 "enum_smaller" larger smaller;
    FLOAT4 209 "float4larger" 211 "float4smaller" larger smaller;
    FLOAT8 223 "float8larger" 224 "float8smaller" larger smaller;
    INT2 770 "int2larger" 771 "int2smaller" larger smaller;
    INT4 768 "int4larger" 769 "int4smaller" larger smaller;
    INT8 1236 "int8larger" 1237 "int8smaller" larger smaller;
    INTERVAL 1198 "interval_larger" 1197 "interval_smaller" larger smaller;
    NUMERIC 1767 "numeric_larger" 1766 "numeric_smaller" larger smaller;
    OID 1965 "oidlarger" 1966 "oidsmaller" larger smaller;
    PG_LSN 4187 "pg_lsn_larger" 4188 "pg_lsn_smaller" larger smaller;
    RECORD 6375 "record_larger" 6376 "record_smaller" larger smaller;
    TEXT 458 "text_larger" 459 "text_smaller" larger smaller;
    TID 2795 "tidlarger" 2796 "tidsmaller" larger smaller;
    TIME 1377 "time_larger" 1378 "time_smaller" larger smaller;
    TIMESTAMP 2036 "timestamp_larger" 2035 "timestamp_smaller" larger smaller;
    TIMESTAMPTZ 1196 "timestamptz_larger" 1195 "timestamptz_smaller" larger smaller;
    TIMETZ 1379 "timetz_larger" 1380 "timetz_smaller" larger smaller;
    XID8 5097 "xid8_larger" 5098 "xid8_smaller" larger smaller;
}
