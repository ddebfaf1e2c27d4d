//! Row security policies.

use serde::{Deserialize, Serialize};
pub use throng_syntax::vocabulary::PolicyCommand;
use throng_types::Oid;

use super::{ViewUse, id};

/// A policy of a table: which of its rows somebody may see or make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyDef {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub table: Oid,
    pub command: PolicyCommand,
    /// One of the permissive ones must hold, and all of the others.
    pub permissive: bool,
    /// For whom it is; NONE: everybody.
    #[serde(with = "id")]
    pub roles: Vec<Oid>,
    /// USING, of rows that are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub using: Option<PolicyCondition>,
    /// WITH CHECK, of new rows; none: as `using`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<PolicyCondition>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyCondition {
    /// SQL text over the table's row.
    pub text: String,
    /// What it names, its own table's columns among it.
    pub uses: Vec<ViewUse>,
    /// It has queries of its own, which read tables that may have policies, too.
    pub queries: bool,
}

/// Whether a table's policies are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSecurityState {
    pub enabled: bool,
    /// Of its owner, too.
    pub forced: bool,
}

impl RowSecurityState {
    pub fn is_default(&self) -> bool {
        *self == RowSecurityState::default()
    }
}

impl PolicyDef {
    pub fn conditions(&self) -> impl Iterator<Item = &PolicyCondition> {
        self.using.iter().chain(&self.check)
    }
    /// Whether it is asked for this command.
    pub fn is_for(&self, command: PolicyCommand) -> bool {
        self.command == PolicyCommand::All || self.command == command
    }
    /// Whether it names a column of a relation.
    pub fn names(&self, relation: Oid, attnum: u16) -> bool {
        let is = |used: &ViewUse| used.object == relation && used.columns.contains(&attnum);
        self.conditions().any(|c| c.uses.iter().any(is))
    }
    /// Whether it names an object other than its own table.
    pub fn uses(&self, object: Oid) -> bool {
        let is = |used: &ViewUse| used.object == object;
        object != self.table && self.conditions().any(|c| c.uses.iter().any(is))
    }
}
