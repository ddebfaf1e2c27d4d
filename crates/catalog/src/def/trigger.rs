//! Triggers.

use serde::{Deserialize, Serialize};
pub use throng_syntax::vocabulary::{Enabled, fires};
use throng_types::Oid;

use super::{Deferral, id};

/// A trigger of a table or a view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerDef {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    /// The table or view.
    #[serde(with = "id")]
    pub table: Oid,
    /// A user's function, or one that is built in.
    #[serde(with = "id")]
    pub function: Oid,
    /// See [`fires`].
    pub fires: i16,
    /// UPDATE OF: attribute numbers in the order given; empty: any.
    #[serde(default)]
    pub columns: Vec<u16>,
    #[serde(default)]
    pub when: Option<TriggerCondition>,
    #[serde(default)]
    pub args: Vec<String>,
    /// REFERENCING: what the function calls the rows that were and those that are.
    #[serde(default)]
    pub old_table: Option<String>,
    #[serde(default)]
    pub new_table: Option<String>,
    /// CREATE CONSTRAINT TRIGGER.
    #[serde(default)]
    pub constraint: Option<TriggerConstraint>,
    #[serde(default)]
    pub enabled: Enabled,
    /// The trigger of the partitioned table that it is a part of.
    #[serde(default, with = "id")]
    pub parent: Option<Oid>,
}

/// WHEN: the function is called only where it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerCondition {
    /// SQL text over the rows `old` and `new`.
    pub text: String,
    /// Attribute numbers that it uses, in order.
    pub columns: Vec<u16>,
    /// Objects of users that it names.
    #[serde(with = "id")]
    pub uses: Vec<Oid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerConstraint {
    pub deferral: Deferral,
    /// FROM.
    #[serde(with = "id")]
    pub other: Option<Oid>,
}

impl TriggerDef {
    pub fn for_each_row(&self) -> bool {
        self.fires & fires::ROW != 0
    }
    pub fn is_before(&self) -> bool {
        self.fires & fires::BEFORE != 0
    }
    pub fn is_instead(&self) -> bool {
        self.fires & fires::INSTEAD != 0
    }
    pub fn is_after(&self) -> bool {
        self.fires & fires::TIMING == 0
    }
    /// Whether it is about an event: one of [`fires`].
    pub fn is_on(&self, event: i16) -> bool {
        self.fires & event != 0
    }
    pub fn has_transition_tables(&self) -> bool {
        self.old_table.is_some() || self.new_table.is_some()
    }
    /// Whether it has to do with a column.
    pub fn names(&self, attnum: u16) -> bool {
        let in_condition = |when: &TriggerCondition| when.columns.contains(&attnum);
        self.columns.contains(&attnum) || self.when.as_ref().is_some_and(in_condition)
    }
    pub fn deferral(&self) -> Deferral {
        self.constraint
            .map_or(Deferral::NotDeferrable, |constraint| constraint.deferral)
    }
}
