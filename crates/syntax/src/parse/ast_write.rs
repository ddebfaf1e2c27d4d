//! The syntax tree of INSERT, UPDATE, DELETE and MERGE.

use super::ast::*;

/// RETURNING; without items where there is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Returning {
    pub items: Vec<SelectItem>,
    /// `WITH (OLD AS …, NEW AS …)`.
    pub old: Option<(String, Pos)>,
    pub new: Option<(String, Pos)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub with: Vec<Cte>,
    pub recursive: bool,
    pub table: Name,
    pub alias: Option<String>,
    pub columns: Vec<(String, Pos)>,
    /// As in [`Assignment`].
    pub parts: Vec<Vec<TargetPart>>,
    pub overriding: Option<Overriding>,
    /// None: DEFAULT VALUES.
    pub source: Option<Query>,
    pub on_conflict: Option<OnConflict>,
    pub returning: Returning,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    System,
    User,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OnConflict {
    pub target: ConflictTarget,
    /// None: DO NOTHING.
    pub update: Option<(Vec<Assignment>, Option<Expr>)>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConflictTarget {
    None,
    /// Key columns and expressions, and the condition of a partial index.
    Keys {
        keys: Vec<Expr>,
        predicate: Option<Expr>,
    },
    Constraint(String),
}

/// `column = value`, or `(columns) = row`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub columns: Vec<(String, Pos)>,
    /// Which part of each column it is about; empty: of all of them the whole.
    pub parts: Vec<Vec<TargetPart>>,
    pub multiple: bool,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub with: Vec<Cte>,
    pub recursive: bool,
    pub table: Name,
    /// Not its children.
    pub only: bool,
    pub alias: Option<String>,
    pub set: Vec<Assignment>,
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    /// WHERE CURRENT OF, instead of a filter.
    pub current_of: Option<String>,
    pub returning: Returning,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub with: Vec<Cte>,
    pub recursive: bool,
    pub table: Name,
    /// Not its children.
    pub only: bool,
    pub alias: Option<String>,
    pub using: Vec<TableRef>,
    pub filter: Option<Expr>,
    /// WHERE CURRENT OF, instead of a filter.
    pub current_of: Option<String>,
    pub returning: Returning,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    pub with: Vec<Cte>,
    pub recursive: bool,
    pub table: Name,
    /// Not its children.
    pub only: bool,
    pub alias: Option<String>,
    pub source: TableRef,
    pub on: Expr,
    pub whens: Vec<MergeWhen>,
    pub returning: Returning,
}

/// Which rows an action of MERGE is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeMatch {
    Matched,
    NotMatchedBySource,
    NotMatchedByTarget,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MergeWhen {
    pub of: MergeMatch,
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    Nothing,
    Delete,
    Update(Vec<Assignment>),
    Insert {
        columns: Vec<(String, Pos)>,
        overriding: Option<Overriding>,
        /// None: DEFAULT VALUES.
        values: Option<Vec<Expr>>,
    },
}
