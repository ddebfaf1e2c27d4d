//! Clients between a portal and its own: for what is not to reach that one, or otherwise.

use std::sync::Arc;

use throng_exec::client::{Client, ClientFuture, Format, Notification, RowShape};
use throng_exec::spill::RowStore;
use throng_types::{Datum, Error, Result};
use throng_values::func::EvalContext;

use super::position;

/// Passes everything on but the rows, which it keeps where somebody wants them.
pub(super) struct Collect<'a> {
    pub inner: &'a mut dyn Client,
    pub rows: Option<&'a mut RowStore>,
}

/// A client that has been told the result's columns, and in which formats it wants them.
pub(super) struct Described<'a> {
    pub inner: &'a mut dyn Client,
    pub shape: Option<Arc<RowShape>>,
}

macro_rules! pass_on {
    () => {
        fn command_complete(&mut self, tag: &str) {
            self.inner.command_complete(tag);
        }
        fn empty_query(&mut self) {
            self.inner.empty_query();
        }
        fn portal_suspended(&mut self) {
            self.inner.portal_suspended();
        }
        fn notice(&mut self, notice: &Error) {
            self.inner.notice(notice);
        }
        fn hears_at_once(&self) -> bool {
            self.inner.hears_at_once()
        }
        fn parameter_status(&mut self, name: &str, value: &str) {
            self.inner.parameter_status(name, value);
        }
        fn notification(&mut self, pid: i32, notification: &Notification) {
            self.inner.notification(pid, notification);
        }
        fn copy_in_start(&mut self, format: Format, columns: usize) {
            self.inner.copy_in_start(format, columns);
        }
        fn copy_read<'a>(&'a mut self, into: &'a mut Vec<u8>) -> ClientFuture<'a, bool> {
            self.inner.copy_read(into)
        }
        fn copy_out_start(&mut self, format: Format, columns: usize) {
            self.inner.copy_out_start(format, columns);
        }
        fn copy_data(&mut self, bytes: &[u8]) {
            self.inner.copy_data(bytes);
        }
        fn copy_out_done(&mut self) {
            self.inner.copy_out_done();
        }
        fn backlog(&self) -> usize {
            self.inner.backlog()
        }
        fn flush(&mut self) -> ClientFuture<'_, ()> {
            self.inner.flush()
        }
    };
}

impl Client for Collect<'_> {
    fn row_description(&mut self, _: &RowShape) {}
    fn row(&mut self, row: &[Datum], _: &RowShape, _: &EvalContext<'_>) -> Result<()> {
        match &mut self.rows {
            Some(rows) => rows.keep(row),
            None => Ok(()),
        }
    }
    pass_on!();
}

/// A client that is not to see the places of a cursor's rows.
pub(super) struct WithoutPlaces<'a> {
    pub inner: &'a mut dyn Client,
}

impl Client for WithoutPlaces<'_> {
    fn row_description(&mut self, shape: &RowShape) {
        self.inner.row_description(shape);
    }
    fn row(&mut self, row: &[Datum], shape: &RowShape, ctx: &EvalContext<'_>) -> Result<()> {
        self.inner
            .row(position::shown(row, shape.fields.len()), shape, ctx)
    }
    fn written_by<'a>(&'a self, shape: &'a RowShape) -> Option<&'a RowShape> {
        self.inner.written_by(shape)
    }
    pass_on!();
}

impl Client for Described<'_> {
    fn row_description(&mut self, _: &RowShape) {}
    fn row(&mut self, row: &[Datum], shape: &RowShape, ctx: &EvalContext<'_>) -> Result<()> {
        match &self.shape {
            Some(told) if told.fields.len() == shape.fields.len() => self.inner.row(row, told, ctx),
            _ => self.inner.row(row, shape, ctx),
        }
    }
    fn written_by<'a>(&'a self, shape: &'a RowShape) -> Option<&'a RowShape> {
        let told = self.shape.as_deref();
        let told = told.filter(|told| told.fields.len() == shape.fields.len());
        self.inner.written_by(told.unwrap_or(shape))
    }
    pass_on!();
}
