//! CREATE, ALTER, DROP and COMMENT of row security policies, and ALTER TABLE … ROW LEVEL SECURITY.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use crate::vocabulary::PolicyCommand;

impl Parser<'_> {
    /// From POLICY on.
    pub(super) fn create_policy(&mut self) -> Result<Statement> {
        let (name, table) = self.policy_name()?;
        let mut permissive = true;
        if self.word("as") {
            let pos = self.pos();
            let word = self.label()?;
            permissive = match word.as_str() {
                "permissive" => true,
                "restrictive" => false,
                _ => {
                    let message = format!("unrecognized row security option \"{word}\"");
                    let error = self.error(message, pos);
                    let hint = "Only PERMISSIVE or RESTRICTIVE policies are supported currently.";
                    return Err(error.hint(hint));
                }
            };
        }
        let mut command = PolicyCommand::All;
        if self.word("for") {
            let word = self.peek_word().map(str::to_owned);
            command = match word.as_deref() {
                Some("all") => PolicyCommand::All,
                Some("select") => PolicyCommand::Select,
                Some("insert") => PolicyCommand::Insert,
                Some("update") => PolicyCommand::Update,
                Some("delete") => PolicyCommand::Delete,
                _ => return Err(self.unexpected()),
            };
            self.advance();
        }
        let change = PolicyChange::Create {
            permissive,
            command,
            roles: self.policy_roles()?.unwrap_or_default(),
            using: self.policy_using()?,
            check: self.policy_check()?,
        };
        Ok(policy(name, table, change))
    }

    /// From POLICY on.
    pub(super) fn alter_policy(&mut self) -> Result<Statement> {
        self.keyword("policy")?;
        if self.if_exists() {
            // PostgreSQL's grammar has it for RENAME alone, and for no policy that is missing.
            let (name, table) = self.policy_on()?;
            self.keywords(&["rename", "to"])?;
            let change = PolicyChange::Rename(self.name()?);
            return Ok(policy(name, table, change));
        }
        let (name, table) = self.policy_on()?;
        if self.words(&["rename", "to"]) {
            let change = PolicyChange::Rename(self.name()?);
            return Ok(policy(name, table, change));
        }
        let change = PolicyChange::Alter {
            roles: self.policy_roles()?,
            using: self.policy_using()?,
            check: self.policy_check()?,
        };
        Ok(policy(name, table, change))
    }

    /// Behind DROP POLICY.
    pub(super) fn drop_policy(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let (name, table) = self.policy_on()?;
        let cascade = self.cascade();
        let change = PolicyChange::Drop { if_exists, cascade };
        Ok(policy(name, table, change))
    }

    /// Behind COMMENT ON, from POLICY on.
    pub(super) fn comment_on_policy(&mut self) -> Result<Statement> {
        let (name, table) = self.policy_name()?;
        self.keyword("is")?;
        let text = match self.word("null") {
            true => None,
            false => Some(self.string()?),
        };
        Ok(policy(name, table, PolicyChange::Comment(text)))
    }

    fn policy_name(&mut self) -> Result<(String, Name)> {
        self.keyword("policy")?;
        self.policy_on()
    }

    fn policy_on(&mut self) -> Result<(String, Name)> {
        let name = self.name()?;
        self.keyword("on")?;
        Ok((name, self.any_name()?))
    }

    fn policy_roles(&mut self) -> Result<Option<Vec<String>>> {
        match self.word("to") {
            true => self.list(Self::role_name).map(Some),
            false => Ok(None),
        }
    }

    fn policy_using(&mut self) -> Result<Option<Source>> {
        match self.word("using") {
            true => self.check_source().map(Some),
            false => Ok(None),
        }
    }

    fn policy_check(&mut self) -> Result<Option<Source>> {
        match self.words(&["with", "check"]) {
            true => self.check_source().map(Some),
            false => Ok(None),
        }
    }

    /// Triggers or row security switched on or off, behind the first word of an action of ALTER
    /// TABLE; None where it is about something else.
    pub(super) fn switched(&mut self, word: &str) -> Result<Option<AlterAction>> {
        if (word == "enable" || word == "disable")
            && let Some(action) = self.enable_trigger(word == "enable")?
        {
            return Ok(Some(action));
        }
        Ok(self.row_security(word).map(AlterAction::RowSecurity))
    }

    fn row_security(&mut self, word: &str) -> Option<RowSecurity> {
        let words: &[&str] = match word {
            "no" => &["force", "row", "level", "security"],
            _ => &["row", "level", "security"],
        };
        let security = match word {
            "enable" => RowSecurity::Enable,
            "disable" => RowSecurity::Disable,
            "force" => RowSecurity::Force,
            "no" => RowSecurity::NoForce,
            _ => return None,
        };
        self.words(words).then_some(security)
    }
}

fn policy(name: String, table: Name, change: PolicyChange) -> Statement {
    Statement::Policy(Box::new(PolicyStatement {
        name,
        table,
        change,
    }))
}
