//! What a trigger's function is told, and what it answers.

use std::sync::Arc;

use throng_types::Oid;
use throng_values::func::RelColumn;

use crate::run::Row;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerWhen {
    Before,
    After,
    InsteadOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerEvent {
    Insert,
    Update,
    Delete,
    Truncate,
}

/// Why a trigger's function runs.
#[derive(Debug, Clone)]
pub struct TriggerCall {
    pub name: String,
    pub when: TriggerWhen,
    pub event: TriggerEvent,
    /// For each row, not once a statement.
    pub for_each_row: bool,
    /// The table or view with the rows: for a partition's row the partition.
    pub relation: Oid,
    pub relation_name: String,
    pub schema_name: String,
    /// Its columns, dropped ones left out; the rows have their values.
    pub columns: Arc<[RelColumn]>,
    pub old: Option<Row>,
    pub new: Option<Row>,
    /// What the trigger's definition passes on.
    pub args: Vec<String>,
    /// What the function's SQL may name as tables: the rows that the statement has changed.
    pub transitions: Vec<Transition>,
    /// The role that queued the call, as which it runs; None: whoever acts now.
    pub queued_as: Option<Oid>,
}

/// A transition table, whose columns are those of the trigger's table.
#[derive(Debug, Clone)]
pub struct Transition {
    pub name: String,
    pub rows: Arc<[Row]>,
}

impl TriggerCall {
    pub fn when_name(&self) -> &'static str {
        match self.when {
            TriggerWhen::Before => "BEFORE",
            TriggerWhen::After => "AFTER",
            TriggerWhen::InsteadOf => "INSTEAD OF",
        }
    }

    pub fn event_name(&self) -> &'static str {
        match self.event {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Delete => "DELETE",
            TriggerEvent::Truncate => "TRUNCATE",
        }
    }

    pub fn level_name(&self) -> &'static str {
        match self.for_each_row {
            true => "ROW",
            false => "STATEMENT",
        }
    }
}
