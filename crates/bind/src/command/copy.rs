//! COPY, bound.

pub use throng_syntax::vocabulary::CopyTarget;
use throng_types::Oid;

use crate::tree::expr::Expr;
use crate::tree::query::BoundQuery;
use throng_values::io::Charset;

#[derive(Clone, Debug)]
pub struct Copy {
    pub subject: CopySubject,
    pub target: CopyTarget,
    pub options: CopyOptions,
}

#[derive(Clone, Debug)]
pub enum CopySubject {
    /// COPY t (columns) FROM: `insert` takes one source row a line: the listed columns' values.
    From {
        table: Oid,
        /// Attribute numbers in the order of the file.
        columns: Vec<u16>,
        /// For each column of the table (by attribute number): the default, where it is not in the
        /// file; Slot-free.
        defaults: Vec<Option<Expr>>,
        /// Listed columns of domains, as the domains have them, over the row.
        domains: Vec<(u16, Expr)>,
        /// Columns to compute when the others are there, over the row.
        generated: Vec<(u16, Expr)>,
        /// Over the new row.
        checks: Vec<crate::tree::query::CheckExpr>,
        /// WHERE, over the new row.
        filter: Option<Expr>,
        /// The table is partitioned, or a partition.
        routing: Option<Box<crate::route::Routing>>,
    },
    /// COPY t (columns) TO, or COPY (query) TO.
    To { query: Box<BoundQuery> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub delimiter: u8,
    pub null: String,
    pub default: Option<String>,
    pub header: CopyHeader,
    pub quote: u8,
    pub escape: u8,
    /// The columns by their place in the file; `All` for `*`. So are the next two.
    pub force_quote: ColumnSet,
    pub force_not_null: ColumnSet,
    pub force_null: ColumnSet,
    pub freeze: bool,
    pub ignore_errors: bool,
    pub reject_limit: Option<i64>,
    pub verbosity: CopyVerbosity,
    /// None: the client's.
    pub encoding: Option<Charset>,
}

/// How much is said of rows that ON_ERROR ignores: nothing, their number, or each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyVerbosity {
    Silent,
    Default,
    Verbose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFormat {
    Text,
    Csv,
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyHeader {
    No,
    Yes,
    Match,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnSet {
    None,
    All,
    /// Places in the file, from 1.
    Some(Vec<u16>),
}
