//! Columns of CREATE TABLE, and what ALTER TABLE does to one.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::*;

impl Parser<'_> {
    /// What follows STORAGE and COMPRESSION.
    fn word_or_default(&mut self) -> Result<String> {
        match self.word("default") {
            true => Ok("default".to_owned()),
            false => self.name(),
        }
    }

    pub(super) fn column_def(&mut self) -> Result<ColumnDef> {
        let (name, pos) = self.name_pos()?;
        let ty = self.type_name()?;
        let storage = match self.word("storage") {
            true => Some(self.word_or_default()?),
            false => None,
        };
        let compression = match self.word("compression") {
            true => Some(self.word_or_default()?),
            false => None,
        };
        let mut column = ColumnDef {
            name,
            ty,
            storage,
            compression,
            collation: None,
            constraints: vec![],
            pos,
        };
        loop {
            if self.word("collate") {
                column.collation = Some(self.any_name()?);
                continue;
            }
            match self.column_constraint()? {
                Some(constraint) => column.constraints.push(constraint),
                None => return Ok(column),
            }
        }
    }

    pub(super) fn column_constraint(&mut self) -> Result<Option<ColumnConstraint>> {
        let pos = self.pos();
        let name = match self.word("constraint") {
            true => Some(self.name()?),
            false => None,
        };
        let mut no_inherit = false;
        let kind = match self.peek_word() {
            Some("not") if self.is_at(1, "null") => {
                self.at += 2;
                no_inherit = self.words(&["no", "inherit"]);
                ColumnConstraintKind::NotNull
            }
            Some("null") => {
                self.advance();
                ColumnConstraintKind::Null
            }
            Some("default") => {
                self.advance();
                ColumnConstraintKind::Default(self.source(Self::default_expr)?)
            }
            Some("primary") => {
                self.keywords(&["primary", "key"])?;
                ColumnConstraintKind::PrimaryKey {
                    options: self.index_options()?,
                }
            }
            Some("unique") => {
                self.advance();
                let nulls_not_distinct = self.nulls_distinct()?;
                let options = self.index_options()?;
                ColumnConstraintKind::Unique {
                    nulls_not_distinct,
                    options,
                }
            }
            Some("check") => {
                self.advance();
                let source = self.check_source()?;
                no_inherit = self.words(&["no", "inherit"]);
                ColumnConstraintKind::Check(source)
            }
            Some("references") => ColumnConstraintKind::References(self.references()?),
            Some("generated") => {
                self.advance();
                let when = self.pos();
                let always = self.word("always");
                if !always {
                    self.keywords(&["by", "default"])?;
                }
                self.keyword("as")?;
                if self.is_punct('(') {
                    self.generated(always, when)?
                } else {
                    self.keyword("identity")?;
                    ColumnConstraintKind::Identity {
                        always,
                        options: self.identity_options()?,
                    }
                }
            }
            _ if name.is_some() => return Err(self.unexpected()),
            _ => return Ok(None),
        };
        let may_be_deferred = matches!(
            kind,
            ColumnConstraintKind::PrimaryKey { .. }
                | ColumnConstraintKind::Unique { .. }
                | ColumnConstraintKind::References(_)
        );
        let attributes = self.constraint_attributes(true)?;
        if let Some((at, word)) = attributes.misplaced().filter(|_| !may_be_deferred) {
            let message = format!("misplaced {word} clause");
            return Err(Error::new(state::SYNTAX_ERROR, message).position(at + 1));
        }
        let may_be_ignored = matches!(
            kind,
            ColumnConstraintKind::Check(_) | ColumnConstraintKind::References(_)
        );
        if let Some((at, word)) = attributes.enforced_at.filter(|_| !may_be_ignored) {
            let message = format!("misplaced {word} clause");
            return Err(Error::new(state::SYNTAX_ERROR, message).position(at + 1));
        }
        Ok(Some(ColumnConstraint {
            name,
            kind,
            deferral: attributes.deferral(),
            no_inherit,
            pos,
        }))
    }

    pub(super) fn alter_column(&mut self, column: String, pos: Pos) -> Result<AlterAction> {
        if self.words(&["set", "default"]) {
            let default = Some(self.source(Self::expr)?);
            return Ok(AlterAction::SetDefault { column, default });
        }
        if self.words(&["drop", "default"]) {
            return Ok(AlterAction::SetDefault {
                column,
                default: None,
            });
        }
        if self.words(&["set", "not", "null"]) {
            return Ok(AlterAction::SetNotNull(column));
        }
        if self.words(&["drop", "not", "null"]) {
            return Ok(AlterAction::DropNotNull(column));
        }
        if self.words(&["drop", "identity"]) {
            return Ok(AlterAction::DropIdentity {
                column,
                if_exists: self.if_exists(),
            });
        }
        if self.words(&["set", "expression", "as"]) {
            let source = self.check_source()?;
            return Ok(AlterAction::SetExpression { column, source });
        }
        if self.words(&["drop", "expression"]) {
            return Ok(AlterAction::DropExpression {
                column,
                if_exists: self.if_exists(),
            });
        }
        if self.words(&["set", "data", "type"]) || self.word("type") {
            let ty = self.type_name()?;
            let collation = match self.word("collate") {
                true => Some(self.any_name()?),
                false => None,
            };
            let using = match self.word("using") {
                true => Some(self.expr()?),
                false => None,
            };
            return Ok(AlterAction::SetType {
                column,
                ty,
                collation,
                using,
                pos,
            });
        }
        if self.words(&["add", "generated"]) {
            let always = self.word("always");
            if !always {
                self.keywords(&["by", "default"])?;
            }
            self.keywords(&["as", "identity"])?;
            let options = self.identity_options()?;
            return Ok(AlterAction::AddIdentity {
                column,
                always,
                options,
            });
        }
        if self.words(&["set", "storage"]) {
            let word = self.word_or_default()?;
            return Ok(AlterAction::Mark(Mark::Storage { column, word }));
        }
        if self.words(&["set", "compression"]) {
            let word = self.word_or_default()?;
            return Ok(AlterAction::Mark(Mark::Compression { column, word }));
        }
        if self.words(&["set", "statistics"]) {
            let target = self.statistics_target()?;
            let column = NameOrNumber::Name(column);
            return Ok(AlterAction::SetStatistics(column, target));
        }
        if self.is("set") && self.is_punct_at(1, '(') {
            self.advance();
            let options = self.options()?;
            return Ok(AlterAction::SetColumnOptions(column, options));
        }
        if self.is("reset") && self.is_punct_at(1, '(') {
            self.advance();
            let names = self.parens(|p| p.list(Self::label))?;
            return Ok(AlterAction::ResetColumnOptions(column, names));
        }
        if self.is("restart") || self.is("set") {
            return self.set_identity(column);
        }
        Err(self.unexpected())
    }

    /// Whether a [`Mark`] of the table follows SET, REPLICA or CLUSTER, which is taken.
    pub(super) fn mark_ahead(&self) -> bool {
        self.any_of(&["identity", "on"])
            || (self.is("without") && self.is_at(1, "cluster"))
            || (self.is("access") && self.is_at(1, "method"))
    }

    pub(super) fn mark(&mut self, word: &str) -> Result<AlterAction> {
        let mark = match word {
            "set" if self.words(&["without", "cluster"]) => Mark::ClusterOn(None),
            "set" => {
                self.keywords(&["access", "method"])?;
                let name = match self.word("default") {
                    true => None,
                    false => Some(self.name()?),
                };
                Mark::AccessMethod(name)
            }
            "cluster" => {
                self.keyword("on")?;
                Mark::ClusterOn(Some(self.name()?))
            }
            _ => {
                self.keyword("identity")?;
                Mark::ReplicaIdentity(self.replica_identity()?)
            }
        };
        Ok(AlterAction::Mark(mark))
    }

    fn replica_identity(&mut self) -> Result<ReplicaIdentity> {
        if self.words(&["using", "index"]) {
            return Ok(ReplicaIdentity::Index(self.name()?));
        }
        for (word, identity) in [
            ("default", ReplicaIdentity::Default),
            ("full", ReplicaIdentity::Full),
            ("nothing", ReplicaIdentity::Nothing),
        ] {
            if self.word(word) {
                return Ok(identity);
            }
        }
        Err(self.unexpected())
    }
}
