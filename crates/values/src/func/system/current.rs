//! The transaction's time as `CURRENT_DATE` and its kin ask for it: `now()`, but known apart from
//! it where a definition is written again.

use throng_types::{Datum, Oid, oid};

use crate::func::{Body, EvalContext, EvalResult, Function, Volatility};

/// No function of PostgreSQL's has it.
const OID: Oid = Oid(0xffff_ff21);

pub static CURRENT: Function = Function {
    oid: OID,
    name: "now",
    args: &[],
    ret: oid::TIMESTAMPTZ,
    strict: true,
    volatility: Volatility::Stable,
    variadic: Oid::NONE,
    defaults: 0,
    columns: &[],
    body: Body::Scalar(current),
};

fn current(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::TimestampTz(ctx.host.transaction_timestamp()))
}

/// The keyword for it in some type.
pub fn keyword(ty: Oid) -> Option<&'static str> {
    Some(match ty {
        oid::DATE => "CURRENT_DATE",
        oid::TIMETZ => "CURRENT_TIME",
        oid::TIMESTAMPTZ => "CURRENT_TIMESTAMP",
        oid::TIME => "LOCALTIME",
        oid::TIMESTAMP => "LOCALTIMESTAMP",
        _ => return None,
    })
}
