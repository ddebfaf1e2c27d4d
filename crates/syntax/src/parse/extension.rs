//! CREATE EXTENSION and ALTER EXTENSION.

use throng_types::Result;
use throng_types::error::state;

use super::Parser;
use super::ast::{ExtensionAction, ExtensionStatement, Statement};

impl Parser<'_> {
    /// After CREATE.
    pub(super) fn create_extension(&mut self) -> Result<Statement> {
        self.keyword("extension")?;
        let if_not_exists = self.if_not_exists();
        let name = self.name()?;
        self.word("with");
        let (mut schema, mut version, mut cascade) = (None, None, false);
        loop {
            let pos = self.pos();
            let again = if self.word("schema") {
                schema.replace(self.name()?).is_some()
            } else if self.word("version") {
                version.replace(self.extension_version()?).is_some()
            } else if self.word("cascade") {
                std::mem::replace(&mut cascade, true)
            } else if self.word("from") {
                self.extension_version()?;
                let message = "CREATE EXTENSION ... FROM is no longer supported";
                return Err(super::error_at(state::FEATURE_NOT_SUPPORTED, message, pos));
            } else {
                break;
            };
            if again {
                let message = "conflicting or redundant options";
                return Err(super::error_at(state::SYNTAX_ERROR, message, pos));
            }
        }
        let action = ExtensionAction::Create {
            if_not_exists,
            schema,
            version,
            cascade,
        };
        Ok(Statement::Extension(ExtensionStatement { name, action }))
    }

    /// After ALTER.
    pub(super) fn alter_extension(&mut self) -> Result<Statement> {
        self.keyword("extension")?;
        let name = self.name()?;
        let action = if self.word("update") {
            ExtensionAction::Update(match self.word("to") {
                true => Some(self.extension_version()?),
                false => None,
            })
        } else if self.words(&["set", "schema"]) {
            ExtensionAction::SetSchema(self.name()?)
        } else if self.is("add") {
            return Ok(self.skip_unsupported("ALTER EXTENSION ... ADD"));
        } else if self.is("drop") {
            return Ok(self.skip_unsupported("ALTER EXTENSION ... DROP"));
        } else {
            return Err(self.unexpected());
        };
        Ok(Statement::Extension(ExtensionStatement { name, action }))
    }

    fn extension_version(&mut self) -> Result<String> {
        match self.peek_word().is_some() {
            true => self.label(),
            false => self.string(),
        }
    }
}
