//! CREATE, ALTER, DROP and COMMENT of triggers, and ALTER TABLE … ENABLE TRIGGER.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::*;
use super::lexer::Kind;
use crate::vocabulary::{Enabled, fires};

impl Parser<'_> {
    /// From TRIGGER or CONSTRAINT on; `start`: where CREATE stands.
    pub(super) fn create_trigger(&mut self, or_replace: bool, start: Pos) -> Result<Statement> {
        let is_constraint = self.word("constraint");
        self.keyword("trigger")?;
        if is_constraint && or_replace {
            let message = "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported";
            let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
            return Err(error.position(start + 1));
        }
        let name = self.name()?;
        let mut when_fires = match is_constraint {
            true => {
                self.keyword("after")?;
                fires::ROW
            }
            false => self.trigger_timing()?,
        };
        let mut columns = Vec::new();
        loop {
            let pos = self.pos();
            let event = self.trigger_event(&mut columns)?;
            if when_fires & event != 0 {
                let near = self.sql.get(pos as usize..).unwrap_or_default();
                let near: String = near.chars().take_while(char::is_ascii_alphabetic).collect();
                let message = format!("duplicate trigger events specified at or near \"{near}\"");
                return Err(self.error(message, pos));
            }
            when_fires |= event;
            if !self.word("or") {
                break;
            }
        }
        self.keyword("on")?;
        let table = self.any_name()?;
        let mut constraint = None;
        let mut transitions = Vec::new();
        if is_constraint {
            let from = match self.word("from") {
                true => Some(self.any_name()?),
                false => None,
            };
            let attributes = self.constraint_attributes(false)?;
            constraint = Some((attributes.deferral(), from));
            self.keywords(&["for", "each", "row"])?;
        } else {
            if self.word("referencing") {
                transitions = self.transitions()?;
            }
            if self.word("for") {
                self.word("each");
                match self.word("row") {
                    true => when_fires |= fires::ROW,
                    false => self.keyword("statement")?,
                }
            }
        }
        let when = match self.word("when") {
            true => Some(self.check_source()?),
            false => None,
        };
        self.keyword("execute")?;
        if !self.word("procedure") {
            self.keyword("function")?;
        }
        let function = self.routine_name()?;
        self.expect('(')?;
        let args = match self.is_punct(')') {
            true => Vec::new(),
            false => self.list(Self::trigger_arg)?,
        };
        self.expect(')')?;
        let create = CreateTrigger {
            or_replace,
            name,
            fires: when_fires,
            columns,
            table,
            transitions,
            when,
            function,
            args,
            constraint,
        };
        Ok(Statement::Trigger(Box::new(TriggerStatement::Create(
            Box::new(create),
        ))))
    }

    fn trigger_timing(&mut self) -> Result<i16> {
        if self.word("before") {
            return Ok(fires::BEFORE);
        }
        if self.word("after") {
            return Ok(0);
        }
        self.keywords(&["instead", "of"])?;
        Ok(fires::INSTEAD)
    }

    fn trigger_event(&mut self, columns: &mut Vec<String>) -> Result<i16> {
        let word = self.peek_word().map(str::to_owned);
        let event = match word.as_deref() {
            Some("insert") => fires::INSERT,
            Some("delete") => fires::DELETE,
            Some("update") => fires::UPDATE,
            Some("truncate") => fires::TRUNCATE,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        if event == fires::UPDATE && self.word("of") {
            *columns = self.list(Self::name)?;
        }
        Ok(event)
    }

    fn transitions(&mut self) -> Result<Vec<Transition>> {
        let mut found = Vec::new();
        while self.any_of(&["old", "new"]) {
            let new = self.is("new");
            self.advance();
            let table = match self.word("table") {
                true => true,
                false => {
                    self.keyword("row")?;
                    false
                }
            };
            self.word("as");
            let name = self.name()?;
            found.push(Transition { new, table, name });
        }
        match found.is_empty() {
            true => Err(self.unexpected()),
            false => Ok(found),
        }
    }

    fn trigger_arg(&mut self) -> Result<String> {
        let text = match self.kind() {
            Kind::Text(text) | Kind::Integer(text) | Kind::Decimal(text) => text.clone(),
            _ => return self.label(),
        };
        self.advance();
        Ok(text)
    }

    /// `ALTER TRIGGER name ON table RENAME TO name`, from TRIGGER on.
    pub(super) fn alter_trigger(&mut self) -> Result<Statement> {
        self.keyword("trigger")?;
        let name = self.name()?;
        self.keyword("on")?;
        let table = self.any_name()?;
        if self.any_of(&["depends", "no"]) {
            return Ok(self.skip_unsupported("ALTER TRIGGER … DEPENDS ON EXTENSION"));
        }
        self.keywords(&["rename", "to"])?;
        let change = TriggerChange::Rename(self.name()?);
        Ok(changed(name, table, change))
    }

    /// Behind DROP TRIGGER.
    pub(super) fn drop_trigger(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let name = self.name()?;
        self.keyword("on")?;
        let table = self.any_name()?;
        let cascade = self.cascade();
        let change = TriggerChange::Drop { if_exists, cascade };
        Ok(changed(name, table, change))
    }

    /// Behind COMMENT ON, from TRIGGER on.
    pub(super) fn comment_on_trigger(&mut self) -> Result<Statement> {
        self.keyword("trigger")?;
        let name = self.name()?;
        self.keyword("on")?;
        let table = self.any_name()?;
        self.keyword("is")?;
        let text = match self.word("null") {
            true => None,
            false => Some(self.string()?),
        };
        let change = TriggerChange::Comment(text);
        Ok(changed(name, table, change))
    }

    /// Behind ENABLE or DISABLE of ALTER TABLE; None where it is about no trigger.
    pub(super) fn enable_trigger(&mut self, enable: bool) -> Result<Option<AlterAction>> {
        let (enabled, ahead) = match enable {
            true if self.is("replica") => (Enabled::Replica, 1),
            true if self.is("always") => (Enabled::Always, 1),
            true => (Enabled::Origin, 0),
            false => (Enabled::Disabled, 0),
        };
        if !self.is_at(ahead, "trigger") {
            return Ok(None);
        }
        (0..=ahead).for_each(|_| self.advance());
        let which = match ahead == 0 && self.any_of(&["all", "user"]) {
            true if self.word("all") => Triggers::All,
            true => {
                self.advance();
                Triggers::User
            }
            false => Triggers::Named(self.name()?),
        };
        let change = EnableTrigger { which, enabled };
        Ok(Some(AlterAction::EnableTrigger(change)))
    }
}

fn changed(name: String, table: Name, change: TriggerChange) -> Statement {
    let change = ChangeTrigger {
        name,
        table,
        change,
    };
    Statement::Trigger(Box::new(TriggerStatement::Change(change)))
}
