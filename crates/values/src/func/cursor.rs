//! The row that a cursor stands on, as WHERE CURRENT OF asks for it: the session knows. No name in
//! SQL leads here.

use throng_types::Datum;
use throng_types::oid::{OID, TEXT, TID};

use super::{EvalContext, EvalResult, Function};

/// Above all numbers that catalogs give out.
const FIRST_OID: u32 = 0xffff_ff10;

/// Where the row is; NULL where the table's rows are none of the cursor's.
pub static ROW: Function = Function::new(FIRST_OID, "cursor_row", &[TEXT], TID, row).stable();
/// The table it is in.
pub static TABLE: Function =
    Function::new(FIRST_OID + 1, "cursor_table", &[TEXT], OID, table).stable();

fn row(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    ctx.host.system_function("cursor_row", args)
}

fn table(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    ctx.host.system_function("cursor_table", args)
}
