//! The rows of a trigger's transition table, as a function in FROM reads them. It has no name that
//! a statement could call.

use throng_types::datum::Record;
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, oid};

use crate::func::{EvalContext, EvalStop, Function, SetIterator};

/// Takes the table's name. Its number is above all that catalogs give out, and beside those of
/// [`crate::func::sqljson`].
pub static TRANSITION: Function = Function::set(
    0xffff_ff03,
    "transition_table",
    &[oid::TEXT],
    oid::RECORD,
    rows,
)
.stable();

fn rows(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let name = args.first().and_then(Datum::as_str).unwrap_or_default();
    let Some((columns, rows)) = ctx.host.transition_table(name) else {
        let message = format!("relation \"{name}\" does not exist");
        return Err(Error::new(state::UNDEFINED_TABLE, message).into());
    };
    let types: std::sync::Arc<[Oid]> = columns.iter().map(|c| c.ty.oid).collect();
    let mut at = 0;
    Ok(Box::new(std::iter::from_fn(move || {
        let row = rows.get(at)?;
        at += 1;
        Some(Ok(match &row[..] {
            [one] => one.clone(),
            values => Datum::Record(
                Record {
                    types: types.clone(),
                    names: None,
                    values: values.to_vec(),
                }
                .into(),
            ),
        }))
    })))
}
