//! Positions in the log: how far one is from another, and the one so many bytes on or back.

use crate::func::number::{int, numeric};
use crate::func::{EvalContext, EvalResult, Function, Operator};
use crate::io::scalar::{wide, wide_number};
use throng_types::error::state;
use throng_types::{Datum, Error, Numeric, oid::*};

fn position(value: &Datum) -> i128 {
    i128::from(wide_number(int(value)))
}

fn difference(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Numeric::from(position(&args[0]) - position(&args[1])).into())
}

fn moved(lsn: &Datum, bytes: &Numeric, back: bool) -> EvalResult {
    if bytes.is_nan() {
        let message = match back {
            true => "cannot subtract NaN from pg_lsn",
            false => "cannot add NaN to pg_lsn",
        };
        return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).into());
    }
    if !bytes.is_finite() {
        let message = "cannot convert infinity to pg_lsn";
        return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).into());
    }
    let from = Numeric::from(position(lsn));
    let moved = match back {
        true => from.sub(bytes)?,
        false => from.add(bytes)?,
    };
    match moved.to_i128().and_then(|n| u64::try_from(n).ok()) {
        Some(position) => Ok(wide(position)),
        None => Err(Error::new(state::INVALID_PARAMETER_VALUE, "pg_lsn out of range").into()),
    }
}

fn further(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    moved(&args[0], numeric(&args[1]), false)
}

fn further_from(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    moved(&args[1], numeric(&args[0]), false)
}

fn back(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    moved(&args[0], numeric(&args[1]), true)
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(
        3165,
        "pg_wal_lsn_diff",
        &[PG_LSN, PG_LSN],
        NUMERIC,
        difference,
    ),
    Function::new(3237, "pg_lsn_mi", &[PG_LSN, PG_LSN], NUMERIC, difference),
    Function::new(5022, "pg_lsn_pli", &[PG_LSN, NUMERIC], PG_LSN, further),
    Function::new(
        5023,
        "numeric_pl_pg_lsn",
        &[NUMERIC, PG_LSN],
        PG_LSN,
        further_from,
    ),
    Function::new(5024, "pg_lsn_mii", &[PG_LSN, NUMERIC], PG_LSN, back),
];

pub static OPERATORS: &[Operator] = &[
    Operator::new(
        3228,
        "-",
        PG_LSN,
        PG_LSN,
        NUMERIC,
        (3237, "pg_lsn_mi"),
        difference,
    ),
    Operator::new(
        5025,
        "+",
        PG_LSN,
        NUMERIC,
        PG_LSN,
        (5022, "pg_lsn_pli"),
        further,
    )
    .related(5026, 0),
    Operator::new(
        5026,
        "+",
        NUMERIC,
        PG_LSN,
        PG_LSN,
        (5023, "numeric_pl_pg_lsn"),
        further_from,
    )
    .related(5025, 0),
    Operator::new(
        5027,
        "-",
        PG_LSN,
        NUMERIC,
        PG_LSN,
        (5024, "pg_lsn_mii"),
        back,
    ),
];
