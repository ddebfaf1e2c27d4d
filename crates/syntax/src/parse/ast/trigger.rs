//! The syntax tree of triggers.

use super::{Name, Source};
use crate::vocabulary::{Deferral, Enabled};

#[derive(Clone, Debug, PartialEq)]
pub enum TriggerStatement {
    Create(Box<CreateTrigger>),
    Change(ChangeTrigger),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTrigger {
    pub or_replace: bool,
    pub name: String,
    /// [`crate::vocabulary::fires`].
    pub fires: i16,
    /// UPDATE OF.
    pub columns: Vec<String>,
    pub table: Name,
    pub transitions: Vec<Transition>,
    pub when: Option<Source>,
    pub function: Name,
    pub args: Vec<String>,
    /// CREATE CONSTRAINT TRIGGER: its properties, and what stands behind FROM.
    pub constraint: Option<(Deferral, Option<Name>)>,
}

/// `OLD TABLE AS name` behind REFERENCING.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub new: bool,
    /// TABLE; else ROW.
    pub table: bool,
    pub name: String,
}

/// Which triggers ALTER TABLE … ENABLE or DISABLE TRIGGER is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Triggers {
    Named(String),
    All,
    User,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EnableTrigger {
    pub which: Triggers,
    pub enabled: Enabled,
}

/// What is done to a trigger that is there.
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerChange {
    Drop { if_exists: bool, cascade: bool },
    Rename(String),
    Comment(Option<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChangeTrigger {
    pub name: String,
    pub table: Name,
    pub change: TriggerChange,
}
