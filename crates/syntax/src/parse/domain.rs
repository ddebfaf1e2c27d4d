//! CREATE DOMAIN and ALTER DOMAIN; composite types.

use throng_types::Result;

use super::Parser;
use super::ast::*;

impl Parser<'_> {
    pub(super) fn create_domain(&mut self) -> Result<Statement> {
        self.keyword("domain")?;
        let name = self.any_name()?;
        self.word("as");
        let ty = self.type_name()?;
        let mut domain = CreateDomain {
            name,
            ty,
            collation: None,
            constraints: vec![],
        };
        loop {
            if self.word("collate") {
                domain.collation = Some(self.any_name()?);
                continue;
            }
            match self.column_constraint()? {
                Some(constraint) => domain.constraints.push(constraint),
                None => return Ok(Statement::CreateDomain(Box::new(domain))),
            }
        }
    }

    /// After `CREATE TYPE name AS`.
    pub(super) fn create_composite(&mut self, name: Name) -> Result<Statement> {
        self.expect('(')?;
        let fields = match self.is_punct(')') {
            true => vec![],
            false => self.list(Self::field_def)?,
        };
        self.expect(')')?;
        Ok(Statement::CreateComposite { name, fields })
    }

    fn field_def(&mut self) -> Result<ColumnDef> {
        let (name, pos) = self.name_pos()?;
        let ty = self.type_name()?;
        let collation = match self.word("collate") {
            true => Some(self.any_name()?),
            false => None,
        };
        Ok(ColumnDef {
            name,
            ty,
            storage: None,
            compression: None,
            collation,
            constraints: vec![],
            pos,
        })
    }

    /// What ALTER TYPE does to attributes; None where it speaks of something else.
    pub(super) fn field_changes(&mut self) -> Result<Option<Vec<FieldChange>>> {
        if self.words(&["rename", "attribute"]) {
            let from = self.name()?;
            self.keyword("to")?;
            let to = self.name()?;
            self.cascade();
            return Ok(Some(vec![FieldChange::Rename { from, to }]));
        }
        if !self.any_of(&["add", "drop", "alter"]) || !self.is_at(1, "attribute") {
            return Ok(None);
        }
        self.list(Self::field_change).map(Some)
    }

    fn field_change(&mut self) -> Result<FieldChange> {
        let change = if self.words(&["add", "attribute"]) {
            FieldChange::Add(self.field_def()?)
        } else if self.words(&["drop", "attribute"]) {
            let if_exists = self.if_exists();
            let name = self.name()?;
            FieldChange::Drop { name, if_exists }
        } else {
            self.keywords(&["alter", "attribute"])?;
            let name = self.name()?;
            self.words(&["set", "data"]);
            self.keyword("type")?;
            let ty = self.type_name()?;
            if self.word("collate") {
                self.any_name()?;
            }
            FieldChange::SetType { name, ty }
        };
        self.cascade();
        Ok(change)
    }

    pub(super) fn alter_domain(&mut self) -> Result<Statement> {
        self.keyword("domain")?;
        let name = self.any_name()?;
        let change = match self.peek_word() {
            Some("add") => {
                self.advance();
                self.new_domain_constraint()?
            }
            Some("drop") => self.domain_drop()?,
            Some("validate") => {
                self.keywords(&["validate", "constraint"])?;
                DomainChange::Validate(self.name()?)
            }
            Some("set") if self.is_at(1, "default") => {
                self.keywords(&["set", "default"])?;
                DomainChange::SetDefault(Some(self.source(Self::expr)?))
            }
            Some("set") if self.is_at(1, "not") => {
                self.keywords(&["set", "not", "null"])?;
                DomainChange::SetNotNull
            }
            Some("rename") if self.is_at(1, "constraint") => {
                self.keywords(&["rename", "constraint"])?;
                let from = self.name()?;
                self.keyword("to")?;
                let to = self.name()?;
                DomainChange::RenameConstraint { from, to }
            }
            _ => {
                return Ok(Statement::AlterObject {
                    kind: ObjectKind::Domain,
                    name,
                    if_exists: false,
                    change: self.object_change()?,
                });
            }
        };
        Ok(Statement::AlterDomain { name, change })
    }

    fn domain_drop(&mut self) -> Result<DomainChange> {
        self.keyword("drop")?;
        if self.word("default") {
            return Ok(DomainChange::SetDefault(None));
        }
        if self.words(&["not", "null"]) {
            return Ok(DomainChange::DropNotNull);
        }
        self.keyword("constraint")?;
        let if_exists = self.if_exists();
        let name = self.name()?;
        self.cascade();
        Ok(DomainChange::DropConstraint { name, if_exists })
    }

    fn new_domain_constraint(&mut self) -> Result<DomainChange> {
        let name = match self.word("constraint") {
            true => Some(self.name()?),
            false => None,
        };
        if self.words(&["not", "null"]) {
            return Ok(DomainChange::AddNotNull(name));
        }
        self.keyword("check")?;
        let source = self.check_source()?;
        let attributes = self.constraint_attributes(false)?;
        if let Some((at, _)) = attributes.misplaced() {
            let what = "a deferrable constraint of a domain";
            return Err(self.unsupported(what, at));
        }
        if let Some((at, _)) = attributes.enforced_at {
            return Err(self.unsupported("a constraint of a domain that may be NOT ENFORCED", at));
        }
        let not_valid = attributes.not_valid;
        Ok(DomainChange::AddCheck {
            name,
            source,
            not_valid,
        })
    }
}
