//! What a running statement may say to whoever asked for it.
//!
//! A session produces rows, tags and notices and consumes COPY data; the server's network code is
//! the one real implementation and turns each call into a protocol message in an output buffer.
//! Nothing here is sent until `flush` or until the connection has no more input, so a whole batch
//! of messages leaves in one write.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;

use throng_types::{Datum, Error, Oid, Result, SqlType};
use throng_values::func::EvalContext;

/// One column of a result, as RowDescription tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    /// The table the column comes from, or none.
    pub table: Oid,
    /// Its number in that table, from 1; 0 if it is computed.
    pub column: i16,
    pub ty: SqlType,
    /// The type's `typlen`: bytes, or -1 for variable length.
    pub size: i16,
}

/// How a column travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Binary,
}

/// A result's columns and their formats: fixed for all its rows.
#[derive(Debug)]
pub struct RowShape {
    pub fields: Vec<Field>,
    pub formats: Vec<Format>,
    told: OnceLock<Box<[u8]>>,
}

impl RowShape {
    pub fn new(fields: Vec<Field>, formats: Vec<Format>) -> RowShape {
        RowShape {
            fields,
            formats,
            told: OnceLock::new(),
        }
    }

    /// How the client's protocol tells the columns: worked out once, for a shape lives as long as
    /// its statement is known.
    pub fn told(&self, as_bytes: impl FnOnce(&RowShape) -> Vec<u8>) -> &[u8] {
        self.told.get_or_init(|| as_bytes(self).into_boxed_slice())
    }
}

pub type ClientFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// Bytes after which a statement should let the client drain: `if client.backlog() > HIGH_WATER {
/// client.flush().await? }`.
pub const HIGH_WATER: usize = 64 * 1024;

pub trait Client {
    fn row_description(&mut self, shape: &RowShape);
    /// The columns told last come to nothing: their statement failed before its first row.
    fn take_back(&mut self, _shape: &RowShape) {}
    /// Fails only where a value cannot be sent in the asked format. `ctx` has the settings that
    /// shape text output.
    fn row(&mut self, row: &[Datum], shape: &RowShape, ctx: &EvalContext<'_>) -> Result<()>;
    /// The columns that a row of this shape is written by at once; none from a client that keeps
    /// rows.
    fn written_by<'a>(&'a self, _shape: &'a RowShape) -> Option<&'a RowShape> {
        None
    }
    fn command_complete(&mut self, tag: &str);
    /// Takes back the tag that was told last, if it has not left, for what is to come before it.
    fn take_tag(&mut self) -> Option<Vec<u8>> {
        None
    }
    /// Tells a tag that was taken back.
    fn give_tag(&mut self, _tag: Vec<u8>) {}
    fn empty_query(&mut self);
    fn portal_suspended(&mut self);
    /// A notice or warning; the level filter (`client_min_messages`) is the session's.
    fn notice(&mut self, notice: &Error);
    /// Whether a notice goes to the client itself, and not back into the statement or nowhere.
    fn hears_at_once(&self) -> bool {
        true
    }
    /// A reported setting's new value.
    fn parameter_status(&mut self, name: &str, value: &str);
    /// What the session with this number told a channel that this one listens to.
    fn notification(&mut self, pid: i32, notification: &Notification);

    fn copy_in_start(&mut self, format: Format, columns: usize);
    /// Appends the COPY data that is there, or the next to come, at no particular boundary; false
    /// after CopyDone. A CopyFail is a 57014 error.
    fn copy_read<'a>(&'a mut self, into: &'a mut Vec<u8>) -> ClientFuture<'a, bool>;
    fn copy_out_start(&mut self, format: Format, columns: usize);
    fn copy_data(&mut self, bytes: &[u8]);
    fn copy_out_done(&mut self);

    /// Bytes written but not yet sent.
    fn backlog(&self) -> usize;
    /// Sends what is there; waits for the client to take it, never holding the core.
    fn flush(&mut self) -> ClientFuture<'_, ()>;
}

/// A client that a statement gives rows to and that is told of what functions say meanwhile:
/// whoever has it is alone with it.
pub struct Turns<'a>(Cell<Option<&'a mut (dyn Client + 'a)>>);

impl<'a> Turns<'a> {
    pub fn new(client: &'a mut (dyn Client + 'a)) -> Turns<'a> {
        Turns(Cell::new(Some(client)))
    }

    /// None while somebody else has it.
    pub fn with<T>(&self, f: impl FnOnce(&mut dyn Client) -> T) -> Option<T> {
        let client = self.0.take()?;
        let given = f(client);
        self.0.set(Some(client));
        Some(given)
    }

    pub async fn flush(&self) -> Result<()> {
        let Some(client) = self.0.take() else {
            return Ok(());
        };
        let flushed = client.flush().await;
        self.0.set(Some(client));
        flushed
    }

    /// Lets the client take what has gathered, if that is much.
    pub async fn drain(&self) -> Result<()> {
        match self.with(|client| client.backlog() > HIGH_WATER) {
            Some(true) => self.flush().await,
            _ => Ok(()),
        }
    }
}

/// A message on a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    pub channel: String,
    pub payload: String,
}
