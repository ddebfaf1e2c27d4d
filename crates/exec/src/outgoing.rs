//! Values on their way out whose text takes long to write: another thread writes it.
//!
//! What is written stands in the row in place of the value, as the text or the bytes that it is to
//! be sent as; a client writes those as they are.

use std::sync::Arc;

use throng_types::{Datum, Error, Result, SqlType, interrupt};
use throng_values::func::{EvalContext, EvalStop};
use throng_values::io::{output_binary, output_text};

use crate::client::{Format, RowShape, Turns};
use crate::offload;
use crate::run::Row;
use crate::run::context::Env;

/// Whether writing a value takes longer than an event loop should be held. A text only moves.
#[inline]
fn is_long(value: &Datum) -> bool {
    match value {
        Datum::Text(_) | Datum::Json(_) => false,
        value => interrupt::are_long(std::slice::from_ref(value)),
    }
}

/// Whether a row has a value that is written beside the event loop.
#[inline]
pub fn has_long(row: &[Datum]) -> bool {
    row.iter().any(is_long)
}

/// The row with its long values written. The rest, and what only the session can write, stays as
/// it is.
///
/// # Errors
/// That a value cannot be sent so, and what interrupts the statement.
#[cold]
pub async fn written(
    row: &[Datum],
    columns: impl Iterator<Item = (SqlType, Format)>,
    env: Env<'_>,
) -> Result<Row> {
    let mut written = row.to_vec();
    for (value, (ty, format)) in written.iter_mut().zip(columns) {
        if !is_long(value) {
            continue;
        }
        let taken = value.clone();
        let work =
            move |eval: EvalContext<'_>| write(&eval, &taken, ty, format).map_err(EvalStop::Error);
        if let Some(done) = offload::aside(work, env.eval, None, env.cancel).await? {
            *value = done;
        }
    }
    Ok(written)
}

fn write(eval: &EvalContext<'_>, value: &Datum, ty: SqlType, format: Format) -> Result<Datum> {
    let mut out = Vec::new();
    match format {
        Format::Text => {
            output_text(eval, value, ty, &mut out);
            let text = String::from_utf8(out);
            let text = text.map_err(|_| Error::internal("a value whose text is not UTF-8"))?;
            Ok(Datum::from(text))
        }
        Format::Binary => {
            output_binary(eval, value, ty, &mut out)?;
            Ok(Datum::Bytea(Arc::from(out)))
        }
    }
}

/// Gives a row to a client.
///
/// # Errors
/// That a value cannot be sent as the client asks, and what interrupts the statement.
#[inline]
pub async fn give(client: &Turns<'_>, row: &[Datum], shape: &RowShape, env: Env<'_>) -> Result<()> {
    if has_long(row) {
        return give_long(client, row, shape, env).await;
    }
    let given = client.with(|client| client.row(row, shape, &env.eval));
    given.transpose().map(drop)
}

#[cold]
async fn give_long(
    client: &Turns<'_>,
    row: &[Datum],
    shape: &RowShape,
    env: Env<'_>,
) -> Result<()> {
    // A client that keeps rows keeps them as they are.
    let columns = client.with(|client| {
        let shape = client.written_by(shape)?;
        let types = shape.fields.iter().map(|field| field.ty);
        Some(types.zip(shape.formats.iter().copied()).collect::<Vec<_>>())
    });
    let written = match columns.flatten() {
        Some(columns) => Some(written(row, columns.into_iter(), env).await?),
        None => None,
    };
    let row = written.as_deref().unwrap_or(row);
    let given = client.with(|client| client.row(row, shape, &env.eval));
    given.transpose().map(drop)
}
