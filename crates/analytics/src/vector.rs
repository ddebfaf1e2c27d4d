//! Expressions over columns.
//!
//! What an expression means is defined once, on single values; [`Program::column`] applies that
//! definition row by row ([`throng_exec::run::eval`]). The commonest comparisons, arithmetic and
//! connectives also have a form that runs over whole columns. It gives an answer only where it is
//! sure: at the first overflow, division by zero or infinity it gives up and the rows decide, with
//! their errors. A test holds both equal.
//!
//! Rows that an earlier condition has excluded are never evaluated: `a <> 0 AND 1 / a > 2` divides
//! by no zero.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use throng_bind::expr::Expr;
use throng_exec::analytics::Job;
use throng_exec::run::eval::eval;
use throng_exec::run::{Cx, Suspension};
use throng_types::{Datum, Error, Result};

use crate::column::{ColumnBuilder, Kind, Reader};
use crate::kernel;

/// Which rows are to be evaluated: None is all of them.
pub type Selection = Option<BooleanBuffer>;

/// An expression with what its input's columns are.
pub struct Program {
    pub expr: Expr,
    pub kind: Kind,
    input: Arc<[Kind]>,
    /// The input columns it reads.
    slots: Vec<usize>,
}

impl Program {
    pub fn new(expr: &Expr, input: &Arc<[Kind]>) -> Result<Program> {
        let kind =
            Kind::of(expr.ty()).ok_or_else(|| Error::internal("a type without stored form"))?;
        let mut slots = Vec::new();
        expr.any(&mut |e| {
            if let Expr::Slot(at, _) = e {
                slots.push(*at as usize);
            }
            false
        });
        slots.sort_unstable();
        slots.dedup();
        Ok(Program {
            expr: expr.clone(),
            kind,
            input: input.clone(),
            slots,
        })
    }

    pub fn of_all<'a>(
        exprs: impl IntoIterator<Item = &'a Expr>,
        input: &Arc<[Kind]>,
    ) -> Result<Vec<Program>> {
        exprs.into_iter().map(|e| Program::new(e, input)).collect()
    }

    /// The expression's values over a batch; NULL where `selected` leaves a row out.
    pub fn column(
        &self,
        batch: &RecordBatch,
        selected: &Selection,
        cx: &mut Cx,
    ) -> Result<ArrayRef> {
        self.sub(&self.expr, self.kind, batch, selected, cx)
    }

    fn sub(
        &self,
        expr: &Expr,
        kind: Kind,
        batch: &RecordBatch,
        selected: &Selection,
        cx: &mut Cx,
    ) -> Result<ArrayRef> {
        if let Expr::Slot(at, _) = expr {
            return Ok(batch.column(*at as usize).clone());
        }
        match kernel::column(expr, batch, &self.input, selected, cx.params) {
            Some(column) => Ok(column),
            None => self.by_rows(expr, kind, batch, selected, cx),
        }
    }

    fn by_rows(
        &self,
        expr: &Expr,
        kind: Kind,
        batch: &RecordBatch,
        selected: &Selection,
        cx: &mut Cx,
    ) -> Result<ArrayRef> {
        let readers = Reader::of_all(&self.input, batch.columns());
        let mut row = vec![Datum::Null; readers.len()];
        let mut out = ColumnBuilder::new(kind);
        for i in 0..batch.num_rows() {
            if selected.as_ref().is_some_and(|s| !s.value(i)) {
                out.push(&Datum::Null)?;
                continue;
            }
            for at in &self.slots {
                row[*at] = readers[*at].get(i)?;
            }
            out.push(&value(expr, &row, cx)?)?;
        }
        Ok(out.finish())
    }

    /// The rows for which the condition is true, among those selected.
    pub fn holds(
        &self,
        batch: &RecordBatch,
        selected: &Selection,
        cx: &mut Cx,
    ) -> Result<BooleanBuffer> {
        let whole = std::slice::from_ref(&self.expr);
        let conjuncts = match &self.expr {
            Expr::And(parts) => &parts[..],
            _ => whole,
        };
        // A part that is not true ends the condition for its row: what stands behind row security
        // must not see the rows that it hides.
        let mut holds = selected.clone();
        for part in conjuncts {
            if holds.as_ref().is_some_and(|s| s.count_set_bits() == 0) {
                break;
            }
            let column = self.sub(part, Kind::Bool, batch, &holds, cx)?;
            let true_now = truths(column.as_boolean());
            holds = Some(match &holds {
                Some(before) => before & &true_now,
                None => true_now,
            });
        }
        Ok(holds.unwrap_or_else(|| BooleanBuffer::new_set(batch.num_rows())))
    }
}

/// Where a column is true and not NULL.
pub fn truths(column: &BooleanArray) -> BooleanBuffer {
    match column.nulls() {
        Some(nulls) => column.values() & nulls.inner(),
        None => column.values().clone(),
    }
}

/// One value, away from the session: nothing can be waited for.
pub fn value(expr: &Expr, row: &[Datum], cx: &mut Cx) -> Result<Datum> {
    eval(expr, row, cx).map_err(|stop| match stop {
        Suspension::Error(e) => e,
        _ => Error::internal("an expression stopped away from its session"),
    })
}

/// A filter and a projection in one pass.
pub struct Compute {
    pub filter: Option<Program>,
    /// None: the columns as they are.
    pub exprs: Option<Vec<Program>>,
    pub schema: SchemaRef,
}

impl Compute {
    pub fn apply(&self, batch: RecordBatch, job: &Job) -> Result<RecordBatch> {
        job.with_cx(|cx| {
            let batch = match &self.filter {
                Some(filter) => {
                    let kept = filter.holds(&batch, &None, cx)?;
                    if kept.count_set_bits() == batch.num_rows() {
                        batch
                    } else {
                        filter_record_batch(&batch, &BooleanArray::new(kept, None))
                            .map_err(arrow)?
                    }
                }
                None => batch,
            };
            let Some(exprs) = &self.exprs else {
                return Ok(batch);
            };
            let columns = exprs
                .iter()
                .map(|e| e.column(&batch, &None, cx))
                .collect::<Result<_>>()?;
            assemble(&self.schema, columns, batch.num_rows())
        })
    }
}

/// A batch of columns, which may be none.
pub fn assemble(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow)
}

pub fn arrow(error: datafusion::arrow::error::ArrowError) -> Error {
    Error::internal(format!("analytics: {error}"))
}
