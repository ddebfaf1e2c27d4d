//! Carrying out definitions on a catalog being edited.
//!
//! [`apply`] changes the catalog only. What has to happen to files and rows is the [`Work`] it
//! hands back, in order; the caller does it in the same transaction, before it publishes the
//! catalog, so that an error in it undoes everything.

use throng_types::{Error, FileId, Oid, Result};

use crate::expr::Expr;
use crate::query::BoundQuery;

/// What definitions need from the engine.
pub trait DdlHost {
    fn next_oid(&mut self) -> Oid;
    fn next_file(&mut self) -> FileId;
    /// Evaluates an expression without input row and gives its text form (None: NULL): the
    /// default of a column added to rows that are already there.
    fn evaluate(&mut self, expr: &Expr) -> Result<Option<String>>;
    /// A password's stored form (a SCRAM verifier).
    fn password_verifier(&mut self, password: &str) -> Result<String>;
}

/// Files and rows to see to. Definitions are found in the edited catalog.
#[derive(Clone, Debug)]
pub enum Work {
    /// Make the empty heap of a table, in its definition's file.
    CreateHeap(Oid),
    /// Make an index's file; `build`: and fill it from the table's rows (23505 on a duplicate).
    CreateIndex { index: Oid, build: bool },
    /// Make a sequence's file, at its start value.
    CreateSequence(Oid),
    /// Set a sequence's counter: `called` false means `value` comes next.
    SetSequence { sequence: Oid, value: i64, called: bool },
    /// Remove at commit.
    DropFile(FileId),
    /// Copy all rows from `from` into the table's (new, empty) heap through `values`, one for
    /// each column, over the old row by `Slot(attnum - 1)`. Indexes follow as `CreateIndex`.
    Rewrite { table: Oid, from: FileId, values: Vec<Expr> },
    /// Check rows that are there: 23502 for a NULL.
    CheckNotNull { table: Oid, attnum: u16 },
    /// 23514 for a row for which `expr` (over `Slot(attnum - 1)`) is false.
    CheckRows { table: Oid, name: String, expr: Expr },
    /// 23503 for a row of the constraint's table without its referenced row.
    CheckForeignKey { constraint: Oid },
    /// CREATE TABLE AS: insert the query's rows.
    Fill { table: Oid, query: Box<BoundQuery> },
}

/// What [`apply`] did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub work: Vec<Work>,
    pub notices: Vec<Error>,
    /// Tables to lock AccessExclusive were locked by the caller first; these are others that
    /// CASCADE reached.
    pub touched: Vec<Oid>,
}
