//! The syntax tree of row security policies.

use super::{Name, Source};
use crate::vocabulary::PolicyCommand;

#[derive(Clone, Debug, PartialEq)]
pub struct PolicyStatement {
    pub name: String,
    pub table: Name,
    pub change: PolicyChange,
}

/// What is done to a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyChange {
    Create {
        permissive: bool,
        command: PolicyCommand,
        /// None were named: it is for everybody.
        roles: Vec<String>,
        using: Option<Source>,
        check: Option<Source>,
    },
    /// What was not said stays.
    Alter {
        roles: Option<Vec<String>>,
        using: Option<Source>,
        check: Option<Source>,
    },
    Rename(String),
    Drop {
        if_exists: bool,
        cascade: bool,
    },
    Comment(Option<String>),
}

/// ALTER TABLE … ROW LEVEL SECURITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSecurity {
    Enable,
    Disable,
    Force,
    NoForce,
}

impl RowSecurity {
    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            RowSecurity::Enable => "ENABLE ROW SECURITY",
            RowSecurity::Disable => "DISABLE ROW SECURITY",
            RowSecurity::Force => "FORCE ROW SECURITY",
            RowSecurity::NoForce => "NO FORCE ROW SECURITY",
        }
    }
}
