//! The syntax tree of a table's constraints, and of what range types are made of.

use super::ast::*;
use crate::vocabulary::{Deferral, FkAction};

#[derive(Clone, Debug, PartialEq)]
pub struct References {
    pub table: Name,
    pub columns: Vec<String>,
    /// The last column is a PERIOD.
    pub period: bool,
    pub match_full: bool,
    pub on_update: FkAction,
    pub on_delete: FkAction,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableConstraint {
    pub name: Option<String>,
    pub kind: TableConstraintKind,
    pub not_valid: bool,
    pub deferral: Deferral,
    pub no_inherit: bool,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableConstraintKind {
    PrimaryKey {
        columns: Vec<(String, Pos)>,
        /// Of the last column the values of two rows with equal others do not overlap.
        without_overlaps: bool,
        include: Vec<(String, Pos)>,
        options: Vec<(String, String)>,
    },
    Unique {
        columns: Vec<(String, Pos)>,
        without_overlaps: bool,
        include: Vec<(String, Pos)>,
        nulls_not_distinct: bool,
        options: Vec<(String, String)>,
    },
    Exclude(Exclusion),
    UsingIndex {
        index: String,
        primary: bool,
    },
    Check(Source),
    ForeignKey {
        columns: Vec<(String, Pos)>,
        /// The last column is a PERIOD.
        period: bool,
        references: References,
    },
    NotNull(String),
}

/// A parenthesized `name = value` of CREATE TYPE … AS RANGE.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeOption {
    pub name: String,
    pub value: TypeName,
    pub pos: Pos,
}

/// EXCLUDE: no two rows for which all operators hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Exclusion {
    pub method: Option<(String, Pos)>,
    pub elements: Vec<(IndexColumn, Operator)>,
    pub include: Vec<(String, Pos)>,
    pub options: Vec<(String, String)>,
    pub predicate: Option<Expr>,
}
