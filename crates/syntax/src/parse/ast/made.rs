//! Types that users make, and parts of their values.

use super::{ColumnConstraint, ColumnDef, Expr, Name, Pos, Source};

#[derive(Clone, Debug, PartialEq)]
pub struct CreateDomain {
    pub name: Name,
    pub ty: TypeName,
    pub collation: Option<Name>,
    pub constraints: Vec<ColumnConstraint>,
}

/// `ALTER TYPE … ATTRIBUTE …`
#[derive(Clone, Debug, PartialEq)]
pub enum FieldChange {
    Add(ColumnDef),
    Drop { name: String, if_exists: bool },
    SetType { name: String, ty: TypeName },
    Rename { from: String, to: String },
}

/// ALTER DOMAIN, but for what other objects have too.
#[derive(Clone, Debug, PartialEq)]
pub enum DomainChange {
    SetDefault(Option<Source>),
    SetNotNull,
    DropNotNull,
    AddNotNull(Option<String>),
    AddCheck {
        name: Option<String>,
        source: Source,
        not_valid: bool,
    },
    DropConstraint {
        name: String,
        if_exists: bool,
    },
    RenameConstraint {
        from: String,
        to: String,
    },
    Validate(String),
}

/// `ALTER TYPE … ADD VALUE`, `RENAME VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub enum EnumChange {
    Add {
        label: String,
        if_not_exists: bool,
        /// The label it comes before, or after (true).
        neighbour: Option<(String, bool)>,
    },
    Rename {
        from: String,
        to: String,
    },
}

/// What follows a column's name that is assigned to: `.field`, `[1]`, `[1:2]`.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetPart {
    Field(String, Pos),
    Index(Expr),
    Slice(Option<Expr>, Option<Expr>, Pos),
}

/// The part of the `i`th column of a list.
pub fn part(parts: &[Vec<TargetPart>], i: usize) -> &[TargetPart] {
    parts.get(i).map_or(&[], Vec::as_slice)
}

/// DO: a body that is run at once.
#[derive(Clone, Debug, PartialEq)]
pub struct DoBlock {
    pub text: String,
    /// Where it begins, if its characters are those of the statement.
    pub at: Option<Pos>,
    pub language: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    pub name: Name,
    /// `(10,2)`, `(5)`.
    pub modifiers: Vec<i32>,
    /// A modifier computed by the grammar (interval fields).
    pub typmod: Option<i32>,
    pub array: bool,
    pub setof: bool,
}
