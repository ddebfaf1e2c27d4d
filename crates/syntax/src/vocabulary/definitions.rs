//! Words of definitions.

use serde::{Deserialize, Serialize};

/// How long a relation's rows live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Persistence {
    Permanent,
    /// Accepted and kept as durably as a permanent one; shown as unlogged.
    Unlogged,
    /// Its session's alone: in a schema of the session's, with which it goes.
    Temporary(OnCommit),
}

impl Persistence {
    pub fn is_temporary(self) -> bool {
        matches!(self, Persistence::Temporary(_))
    }

    /// Whether something happens to the table at COMMIT.
    pub fn acts_on_commit(self) -> bool {
        use OnCommit::{DeleteRows, Drop};
        matches!(self, Persistence::Temporary(Drop | DeleteRows))
    }
}

/// What a commit does to a temporary table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnCommit {
    PreserveRows,
    DeleteRows,
    /// The table goes with them.
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckOption {
    /// Of this view's condition alone.
    Local,
    /// And of those of the views below.
    Cascaded,
}

/// When a constraint is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deferral {
    /// Row by row, or at the statement's end; `SET CONSTRAINTS` has no say.
    #[default]
    NotDeferrable,
    /// At the statement's end, unless `SET CONSTRAINTS` says otherwise.
    InitiallyImmediate,
    /// At the transaction's end, unless `SET CONSTRAINTS` says otherwise.
    InitiallyDeferred,
    /// Never: NOT ENFORCED.
    Never,
    /// Never; it would be as `InitiallyImmediate`.
    NeverImmediate,
    /// Never; it would be as `InitiallyDeferred`.
    NeverDeferred,
}

/// What a statement says of it, where it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeferralSaid {
    pub checked: Option<Deferral>,
    pub enforced: Option<bool>,
}

impl Deferral {
    /// How it would be checked if it were enforced.
    fn enforced(self) -> Deferral {
        match self {
            Deferral::Never => Deferral::NotDeferrable,
            Deferral::NeverImmediate => Deferral::InitiallyImmediate,
            Deferral::NeverDeferred => Deferral::InitiallyDeferred,
            other => other,
        }
    }
    /// The same, ENFORCED or NOT.
    pub fn with_enforced(self, enforced: bool) -> Deferral {
        match self.enforced() {
            deferral if enforced => deferral,
            Deferral::InitiallyImmediate => Deferral::NeverImmediate,
            Deferral::InitiallyDeferred => Deferral::NeverDeferred,
            _ => Deferral::Never,
        }
    }
    /// With what ALTER CONSTRAINT says of it.
    pub fn altered(self, said: DeferralSaid) -> Deferral {
        let enforced = said.enforced.unwrap_or(self.is_enforced());
        said.checked.unwrap_or(self).with_enforced(enforced)
    }
    pub fn is_deferrable(self) -> bool {
        self.enforced() != Deferral::NotDeferrable
    }
    pub fn is_enforced(self) -> bool {
        self == self.enforced()
    }
    pub fn is_deferred(self) -> bool {
        self.enforced() == Deferral::InitiallyDeferred
    }
    /// As it stands behind a constraint, with a space before it.
    pub fn sql(self) -> &'static str {
        match self {
            Deferral::NotDeferrable => "",
            Deferral::InitiallyImmediate => " DEFERRABLE",
            Deferral::InitiallyDeferred => " DEFERRABLE INITIALLY DEFERRED",
            Deferral::Never => " NOT ENFORCED",
            Deferral::NeverImmediate => " DEFERRABLE NOT ENFORCED",
            Deferral::NeverDeferred => " DEFERRABLE INITIALLY DEFERRED NOT ENFORCED",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FkAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoutineKind {
    Function,
    Procedure,
    Aggregate,
}

/// How an aggregate comes to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AggregateKind {
    /// One after the other.
    Normal,
    /// Called with WITHIN GROUP.
    OrderedSet,
    /// The same, with its direct arguments as one more row.
    Hypothetical,
}

impl AggregateKind {
    /// As `pg_aggregate.aggkind` has it.
    pub fn letter(self) -> u8 {
        match self {
            AggregateKind::Normal => b'n',
            AggregateKind::OrderedSet => b'o',
            AggregateKind::Hypothetical => b'h',
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgMode {
    In,
    Out,
    InOut,
    Variadic,
    /// A column of RETURNS TABLE.
    Table,
}

impl ArgMode {
    /// A call gives a value for it.
    pub fn is_input(self) -> bool {
        matches!(self, ArgMode::In | ArgMode::InOut | ArgMode::Variadic)
    }
    /// It is a part of the result.
    pub fn is_output(self) -> bool {
        matches!(self, ArgMode::Out | ArgMode::InOut | ArgMode::Table)
    }
    /// As `pg_proc.proargmodes` has it.
    pub fn letter(self) -> u8 {
        match self {
            ArgMode::In => b'i',
            ArgMode::Out => b'o',
            ArgMode::InOut => b'b',
            ArgMode::Variadic => b'v',
            ArgMode::Table => b't',
        }
    }
}

/// The bits of `pg_trigger.tgtype`, which say when a trigger's function runs.
pub mod fires {
    pub const ROW: i16 = 1;
    pub const BEFORE: i16 = 1 << 1;
    pub const INSERT: i16 = 1 << 2;
    pub const DELETE: i16 = 1 << 3;
    pub const UPDATE: i16 = 1 << 4;
    pub const TRUNCATE: i16 = 1 << 5;
    pub const INSTEAD: i16 = 1 << 6;
    /// BEFORE and INSTEAD OF; neither: AFTER.
    pub const TIMING: i16 = BEFORE | INSTEAD;
}

/// In which sessions a trigger runs, as `session_replication_role` says what a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Enabled {
    /// In all that do not replay others' changes.
    #[default]
    Origin,
    Disabled,
    /// In those that do.
    Replica,
    Always,
}

impl Enabled {
    /// As `pg_trigger.tgenabled` has it.
    pub fn letter(self) -> u8 {
        match self {
            Enabled::Origin => b'O',
            Enabled::Disabled => b'D',
            Enabled::Replica => b'R',
            Enabled::Always => b'A',
        }
    }
}

/// Whose sessions begin with a kept setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsOf<R> {
    Role(R),
    /// ALTER ROLE ALL.
    Everyone,
    /// Those of a database.
    Database,
}

/// What a row security policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyCommand {
    All,
    Select,
    Insert,
    Update,
    Delete,
}

impl PolicyCommand {
    /// As `pg_policy.polcmd` has it.
    pub fn letter(self) -> u8 {
        match self {
            PolicyCommand::All => b'*',
            PolicyCommand::Select => b'r',
            PolicyCommand::Insert => b'a',
            PolicyCommand::Update => b'w',
            PolicyCommand::Delete => b'd',
        }
    }
    pub fn keyword(self) -> &'static str {
        match self {
            PolicyCommand::All => "ALL",
            PolicyCommand::Select => "SELECT",
            PolicyCommand::Insert => "INSERT",
            PolicyCommand::Update => "UPDATE",
            PolicyCommand::Delete => "DELETE",
        }
    }
}
