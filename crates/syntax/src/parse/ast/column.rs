//! Columns as CREATE TABLE and ADD COLUMN say them.

use super::{Name, Pos, References, SequenceOption, Source, TypeName};

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: String,
    pub ty: TypeName,
    /// STORAGE's word.
    pub storage: Option<String>,
    /// COMPRESSION's word.
    pub compression: Option<String>,
    pub collation: Option<Name>,
    pub constraints: Vec<ColumnConstraint>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnConstraint {
    pub name: Option<String>,
    pub kind: ColumnConstraintKind,
    pub deferral: crate::vocabulary::Deferral,
    pub no_inherit: bool,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnConstraintKind {
    NotNull,
    Null,
    Default(Source),
    PrimaryKey {
        options: Vec<(String, String)>,
    },
    Unique {
        nulls_not_distinct: bool,
        options: Vec<(String, String)>,
    },
    Check(Source),
    References(References),
    Identity {
        always: bool,
        options: Vec<SequenceOption>,
    },
    Generated {
        source: Source,
        stored: bool,
    },
}
