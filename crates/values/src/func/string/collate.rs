//! `COLLATE` where a definition is bound to be written again: a call that gives its first argument,
//! with the collation's name behind it. Elsewhere the clause is checked and leaves no trace, for
//! all collations order alike.

use throng_types::{Datum, Oid, oid};

use crate::func::{Body, EvalContext, EvalResult, Function, Volatility};

/// No function of PostgreSQL's has it.
const OID: Oid = Oid(0xffff_ff20);

pub static COLLATE: Function = Function {
    oid: OID,
    name: "collate",
    args: &[],
    ret: oid::TEXT,
    strict: false,
    volatility: Volatility::Immutable,
    variadic: Oid::NONE,
    defaults: 0,
    columns: &[],
    body: Body::Scalar(first),
};

fn first(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(args.first().cloned().unwrap_or(Datum::Null))
}
