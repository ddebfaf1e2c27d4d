//! CREATE, ALTER and DROP DATABASE.

use throng_types::Result;

use super::ast::{DatabaseOption, Name, ObjectKind, Statement};
use super::{Kind, Parser};
use crate::vocabulary::SettingsOf;

impl Parser<'_> {
    pub(super) fn create_database(&mut self) -> Result<Statement> {
        self.keyword("database")?;
        let name = self.name()?;
        self.word("with");
        let options = self.database_options()?;
        Ok(Statement::CreateDatabase { name, options })
    }

    pub(super) fn alter_database(&mut self) -> Result<Statement> {
        self.keyword("database")?;
        let pos = self.pos();
        let name = self.name()?;
        if self.any_of(&["set", "reset"]) && !self.is_at(1, "tablespace") {
            let (setting, value) = self.stored_setting()?;
            return Ok(Statement::AlterRoleSet {
                role: SettingsOf::Database,
                database: Some(name),
                name: setting,
                value,
            });
        }
        if self.any_of(&["rename", "owner"]) {
            return Ok(Statement::AlterObject {
                kind: ObjectKind::Database,
                name: Name {
                    parts: vec![name],
                    pos,
                },
                if_exists: false,
                change: self.object_change()?,
            });
        }
        if self.any_of(&["set", "refresh"]) {
            return Ok(self.skip_unsupported("this ALTER DATABASE"));
        }
        self.word("with");
        let options = self.database_options()?;
        Ok(Statement::AlterDatabase { name, options })
    }

    /// `name [=] value …`, where DEFAULT is no value.
    fn database_options(&mut self) -> Result<Vec<DatabaseOption>> {
        let mut options = Vec::new();
        while !self.at_end() && !self.is_punct(';') {
            let pos = self.pos();
            let name = match self.words(&["connection", "limit"]) {
                true => "connection_limit".to_owned(),
                false => self.label()?,
            };
            self.op("=");
            let value = match self.kind() {
                Kind::Word(word) if word == "default" => {
                    self.advance();
                    None
                }
                _ => Some(self.option_value()?),
            };
            options.push(DatabaseOption { name, value, pos });
        }
        Ok(options)
    }

    pub(super) fn drop_database(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let name = self.name()?;
        let with = self.word("with");
        let mut force = false;
        if with || self.is_punct('(') {
            self.parens(|p| p.list(|p| p.keyword("force")))?;
            force = true;
        }
        Ok(Statement::DropDatabase {
            name,
            if_exists,
            force,
        })
    }
}
