//! Functions of `pg_snapshot` and `txid_snapshot`.

use crate::func::number::int;
use crate::func::table::functions;
use crate::func::{EvalContext, EvalResult, EvalStop, Function, SetIterator};
use crate::io::scalar::{wide, wide_number};
use crate::io::snapshot::TransactionSnapshot;
use throng_types::{Datum, oid::*};

fn pg_current_snapshot(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    ctx.host.system_function("pg_current_snapshot", args)
}
fn txid_current_snapshot(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let snapshot = pg_current_snapshot(ctx, args)?;
    let bytes = TransactionSnapshot::of(&snapshot).stored();
    Ok(Datum::base(TXID_SNAPSHOT, bytes))
}

fn xmin(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(wide(TransactionSnapshot::of(&args[0]).xmin))
}
fn xmax(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(wide(TransactionSnapshot::of(&args[0]).xmax))
}
fn txid_xmin(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((TransactionSnapshot::of(&args[0]).xmin as i64).into())
}
fn txid_xmax(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((TransactionSnapshot::of(&args[0]).xmax as i64).into())
}
fn is_visible(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let xid = wide_number(int(&args[0]));
    Ok(TransactionSnapshot::of(&args[1]).shows(xid).into())
}
fn txid_is_visible(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let xid = int(&args[0]) as u64;
    Ok(TransactionSnapshot::of(&args[1]).shows(xid).into())
}

fn running(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let running = TransactionSnapshot::of(&args[0]).running.into_iter();
    Ok(Box::new(running.map(|xid| Ok(wide(xid)))))
}
fn txid_running(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let running = TransactionSnapshot::of(&args[0]).running.into_iter();
    Ok(Box::new(running.map(|xid| Ok((xid as i64).into()))))
}

pub static SETS: &[Function] = &[
    Function::set(
        2947,
        "txid_snapshot_xip",
        &[TXID_SNAPSHOT],
        INT8,
        txid_running,
    ),
    Function::set(5064, "pg_snapshot_xip", &[PG_SNAPSHOT], XID8, running),
];

functions! {
    2944 "txid_current_snapshot" () TXID_SNAPSHOT txid_current_snapshot, stable;
    2945 "txid_snapshot_xmin" (TXID_SNAPSHOT) INT8 txid_xmin;
    2946 "txid_snapshot_xmax" (TXID_SNAPSHOT) INT8 txid_xmax;
    2948 "txid_visible_in_snapshot" (INT8, TXID_SNAPSHOT) BOOL txid_is_visible;
    5061 "pg_current_snapshot" () PG_SNAPSHOT pg_current_snapshot, stable;
    5062 "pg_snapshot_xmin" (PG_SNAPSHOT) XID8 xmin;
    5063 "pg_snapshot_xmax" (PG_SNAPSHOT) XID8 xmax;
    5065 "pg_visible_in_snapshot" (XID8, PG_SNAPSHOT) BOOL is_visible;
}
