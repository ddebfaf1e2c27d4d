//! What may stand behind a constraint: `DEFERRABLE`, `INITIALLY DEFERRED`, `NOT VALID`, `NOT
//! ENFORCED`.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::Pos;
use crate::vocabulary::{Deferral, DeferralSaid};

impl Parser<'_> {
    /// `DEFERRABLE`, `INITIALLY …`, `NOT VALID`, in any order.
    pub(super) fn constraint_attributes(&mut self, of_column: bool) -> Result<Attributes> {
        let mut found = Attributes {
            of_column,
            ..Attributes::default()
        };
        loop {
            let pos = self.pos();
            if self.words(&["not", "deferrable"]) {
                found.note(Some(false), None, pos)?;
                continue;
            }
            if self.word("deferrable") {
                found.note(Some(true), None, pos)?;
                continue;
            }
            if self.words(&["initially", "immediate"]) {
                found.note(None, Some(false), pos)?;
                continue;
            }
            if self.words(&["initially", "deferred"]) {
                found.note(None, Some(true), pos)?;
                continue;
            }
            if self.words(&["not", "valid"]) {
                found.not_valid = true;
                continue;
            }
            if self.words(&["not", "enforced"]) {
                found.enforce(false, pos)?;
                continue;
            }
            if self.word("enforced") {
                found.enforce(true, pos)?;
                continue;
            }
            return Ok(found);
        }
    }
}

/// What stands behind a constraint.
#[derive(Default)]
pub(super) struct Attributes {
    /// Of a column's constraint: each may be said once.
    of_column: bool,
    pub not_valid: bool,
    deferrable: Option<bool>,
    deferred: Option<bool>,
    pub enforced: Option<bool>,
    /// Where it is said to be enforced or not.
    pub enforced_at: Option<(Pos, &'static str)>,
    /// Where it is said to be deferrable, or deferred.
    pub deferrable_at: Option<Pos>,
    first: Option<(Pos, &'static str)>,
}

impl Attributes {
    /// DEFERRABLE or not, INITIALLY DEFERRED or IMMEDIATE, said at `at`.
    fn note(&mut self, deferrable: Option<bool>, deferred: Option<bool>, at: Pos) -> Result<()> {
        let word = match (deferrable, deferred) {
            (Some(true), _) => "DEFERRABLE",
            (Some(false), _) => "NOT DEFERRABLE",
            (None, Some(true)) => "INITIALLY DEFERRED",
            (None, _) => "INITIALLY IMMEDIATE",
        };
        self.first.get_or_insert((at, word));
        if deferrable == Some(true) || deferred == Some(true) {
            self.deferrable_at.get_or_insert(at);
        }
        let again = match (self.deferrable, deferrable, self.deferred, deferred) {
            (Some(_), Some(_), ..) => Some("DEFERRABLE/NOT DEFERRABLE"),
            (.., Some(_), Some(_)) => Some("INITIALLY IMMEDIATE/DEFERRED"),
            _ => None,
        };
        if let Some(what) = again.filter(|_| self.of_column) {
            let message = format!("multiple {what} clauses not allowed");
            return Err(Error::new(state::SYNTAX_ERROR, message).position(at + 1));
        }
        let contradicts = |old: Option<bool>, new: Option<bool>| matches!((old, new), (Some(old), Some(new)) if old != new);
        if contradicts(self.deferrable, deferrable) || contradicts(self.deferred, deferred) {
            let message = "conflicting constraint properties";
            return Err(Error::new(state::SYNTAX_ERROR, message).position(at + 1));
        }
        self.deferrable = self.deferrable.or(deferrable);
        self.deferred = self.deferred.or(deferred);
        if self.deferrable == Some(false) && self.deferred == Some(true) {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            return Err(Error::new(state::SYNTAX_ERROR, message).position(at + 1));
        }
        Ok(())
    }

    /// ENFORCED or NOT ENFORCED, said at `at`.
    fn enforce(&mut self, enforced: bool, at: Pos) -> Result<()> {
        let word = if enforced { "ENFORCED" } else { "NOT ENFORCED" };
        self.enforced_at.get_or_insert((at, word));
        let message = match self.enforced {
            Some(_) if self.of_column => "multiple ENFORCED/NOT ENFORCED clauses not allowed",
            Some(before) if before != enforced => "conflicting constraint properties",
            _ => {
                self.enforced = Some(enforced);
                return Ok(());
            }
        };
        Err(Error::new(state::SYNTAX_ERROR, message).position(at + 1))
    }

    pub fn misplaced(&self) -> Option<(Pos, &'static str)> {
        self.first
    }

    pub fn deferral(&self) -> Deferral {
        Deferral::default().altered(self.said())
    }

    /// When it is checked, where that is said.
    pub fn said(&self) -> DeferralSaid {
        let checked = match (self.deferrable, self.deferred) {
            (None, None) => None,
            (_, Some(true)) => Some(Deferral::InitiallyDeferred),
            (Some(true), _) => Some(Deferral::InitiallyImmediate),
            _ => Some(Deferral::NotDeferrable),
        };
        DeferralSaid {
            checked,
            enforced: self.enforced,
        }
    }
}
