//! What ALTER TABLE does.

use super::{
    ColumnDef, EnableTrigger, Expr, Name, Pos, SequenceOption, Source, TableConstraint, TypeName,
};

#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    Inherit(Name),
    NoInherit(Name),
    /// Of a column; none: the default.
    SetStatistics(NameOrNumber, Option<i64>),
    SetColumnOptions(String, Vec<(String, String)>),
    ResetColumnOptions(String, Vec<String>),
    AddColumn {
        column: ColumnDef,
        if_not_exists: bool,
    },
    DropColumn {
        column: String,
        if_exists: bool,
        cascade: bool,
    },
    SetDefault {
        column: String,
        default: Option<Source>,
    },
    SetNotNull(String),
    DropNotNull(String),
    SetType {
        column: String,
        ty: TypeName,
        collation: Option<Name>,
        using: Option<Expr>,
        pos: Pos,
    },
    AddIdentity {
        column: String,
        always: bool,
        options: Vec<SequenceOption>,
    },
    SetIdentity {
        column: String,
        always: Option<bool>,
        options: Vec<SequenceOption>,
    },
    DropIdentity {
        column: String,
        if_exists: bool,
    },
    /// Of a generated column.
    SetExpression {
        column: String,
        source: Source,
    },
    DropExpression {
        column: String,
        if_exists: bool,
    },
    AddConstraint(TableConstraint),
    DropConstraint {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    ValidateConstraint(String),
    AlterConstraint {
        name: String,
        said: crate::vocabulary::DeferralSaid,
    },
    EnableTrigger(EnableTrigger),
    RowSecurity(super::RowSecurity),
    SetOptions(Vec<(String, String)>),
    ResetOptions(Vec<String>),
    SetLogged(bool),
    OwnerTo(String),
    SetTablespace(String),
    Mark(Mark),
}

/// What is only kept of a table or of a column: rows stay as they are.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    Storage {
        column: String,
        word: String,
    },
    Compression {
        column: String,
        word: String,
    },
    /// An index's name; none: `SET WITHOUT CLUSTER`.
    ClusterOn(Option<String>),
    ReplicaIdentity(ReplicaIdentity),
    /// None: DEFAULT.
    AccessMethod(Option<String>),
}

/// By what a row is told to those who follow changes.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplicaIdentity {
    Default,
    Nothing,
    Full,
    /// The index's name.
    Index(String),
}

/// A column; an index's may be told by its number.
#[derive(Clone, Debug, PartialEq)]
pub enum NameOrNumber {
    Name(String),
    Number(u16),
}
