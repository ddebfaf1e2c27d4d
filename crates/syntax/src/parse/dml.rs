//! INSERT, UPDATE, DELETE.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use super::lexer::Kind;

impl Parser<'_> {
    pub(super) fn insert(&mut self, with: Vec<Cte>, recursive: bool) -> Result<Statement> {
        self.keywords(&["insert", "into"])?;
        let table = self.any_name()?;
        let alias = match self.word("as") {
            true => Some(self.name()?),
            false => None,
        };
        let (mut columns, mut parts) = (vec![], vec![]);
        let list = self.is_punct('(')
            && !matches!(self.kind_at(1), Kind::Punct('('))
            && !["select", "values", "table", "with"]
                .iter()
                .any(|w| self.is_at(1, w));
        if list {
            (columns, parts) = self.insert_column_list()?;
        }
        let overriding = self.overriding()?;
        let source = match columns.is_empty() && self.words(&["default", "values"]) {
            true => None,
            false => Some(self.query()?),
        };
        let on_conflict = self.on_conflict()?;
        let returning = self.returning()?;
        Ok(Statement::Insert(Box::new(Insert {
            with,
            recursive,
            table,
            alias,
            columns,
            parts,
            overriding,
            source,
            on_conflict,
            returning,
        })))
    }

    /// The columns an INSERT names with the parts of them that are meant.
    #[allow(clippy::type_complexity)] // Columns and parts, taken apart at once.
    pub(super) fn insert_column_list(
        &mut self,
    ) -> Result<(Vec<(String, Pos)>, Vec<Vec<TargetPart>>)> {
        self.parens(|p| p.target_columns())
    }

    pub(super) fn overriding(&mut self) -> Result<Option<Overriding>> {
        if !self.word("overriding") {
            return Ok(None);
        }
        let overriding = match self.word("system") {
            true => Overriding::System,
            false => {
                self.keyword("user")?;
                Overriding::User
            }
        };
        self.keyword("value")?;
        Ok(Some(overriding))
    }

    pub(super) fn on_conflict(&mut self) -> Result<Option<OnConflict>> {
        let pos = self.pos();
        if !self.words(&["on", "conflict"]) {
            return Ok(None);
        }
        let target = if self.is_punct('(') {
            let keys = self.parens(|p| p.list(|p| Ok(p.index_key()?.expr)))?;
            let predicate = self.where_clause()?;
            ConflictTarget::Keys { keys, predicate }
        } else if self.words(&["on", "constraint"]) {
            ConflictTarget::Constraint(self.name()?)
        } else {
            ConflictTarget::None
        };
        self.keyword("do")?;
        if self.word("nothing") {
            return Ok(Some(OnConflict {
                target,
                update: None,
                pos,
            }));
        }
        self.keywords(&["update", "set"])?;
        let set = self.list(Self::assignment)?;
        let filter = self.where_clause()?;
        Ok(Some(OnConflict {
            target,
            update: Some((set, filter)),
            pos,
        }))
    }

    /// Columns to assign to with the parts of them that are meant.
    #[allow(clippy::type_complexity)] // Columns and parts, taken apart at once.
    fn target_columns(&mut self) -> Result<(Vec<(String, Pos)>, Vec<Vec<TargetPart>>)> {
        let both = self.list(Self::target_column)?;
        let (columns, mut parts): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        if parts.iter().all(Vec::is_empty) {
            parts.clear();
        }
        Ok((columns, parts))
    }

    fn target_column(&mut self) -> Result<((String, Pos), Vec<TargetPart>)> {
        Ok((self.name_pos()?, self.parts()?))
    }

    /// Parts of a value: fields, and items or slices of arrays.
    pub(super) fn parts(&mut self) -> Result<Vec<TargetPart>> {
        let mut parts = Vec::new();
        loop {
            let pos = self.pos();
            if self.punct('.') {
                parts.push(TargetPart::Field(self.label()?, pos));
            } else if self.punct('[') {
                parts.push(self.subscript_part(pos)?);
            } else {
                return Ok(parts);
            }
        }
    }

    /// After `[`.
    fn subscript_part(&mut self, pos: Pos) -> Result<TargetPart> {
        let from = match self.is_punct(':') {
            true => None,
            false => Some(self.expr()?),
        };
        let part = match (self.punct(':'), from) {
            (false, Some(index)) => TargetPart::Index(index),
            (true, from) => {
                let to = match self.is_punct(']') {
                    true => None,
                    false => Some(self.expr()?),
                };
                TargetPart::Slice(from, to, pos)
            }
            (false, None) => return Err(self.unexpected()),
        };
        self.expect(']')?;
        Ok(part)
    }

    pub(super) fn assignment(&mut self) -> Result<Assignment> {
        let multiple = self.is_punct('(');
        let (columns, parts) = match multiple {
            true => self.parens(|p| p.target_columns())?,
            false => {
                let (column, part) = self.target_column()?;
                let parts = if part.is_empty() { vec![] } else { vec![part] };
                (vec![column], parts)
            }
        };
        if !self.op("=") {
            return Err(self.unexpected());
        }
        let value = self.expr()?;
        Ok(Assignment {
            columns,
            parts,
            multiple,
            value,
        })
    }

    pub(super) fn update(&mut self, with: Vec<Cte>, recursive: bool) -> Result<Statement> {
        self.keyword("update")?;
        let (table, only) = self.table_name_only()?;
        let alias = self.target_alias()?;
        self.keyword("set")?;
        let set = self.list(Self::assignment)?;
        let from = match self.word("from") {
            true => self.list(Self::table_ref)?,
            false => vec![],
        };
        let (filter, current_of) = self.dml_where()?;
        let returning = self.returning()?;
        Ok(Statement::Update(Box::new(Update {
            with,
            recursive,
            table,
            only,
            alias,
            set,
            from,
            filter,
            current_of,
            returning,
        })))
    }

    pub(super) fn delete(&mut self, with: Vec<Cte>, recursive: bool) -> Result<Statement> {
        self.keywords(&["delete", "from"])?;
        let (table, only) = self.table_name_only()?;
        let alias = self.target_alias()?;
        let using = match self.word("using") {
            true => self.list(Self::table_ref)?,
            false => vec![],
        };
        let (filter, current_of) = self.dml_where()?;
        let returning = self.returning()?;
        Ok(Statement::Delete(Box::new(Delete {
            with,
            recursive,
            table,
            only,
            alias,
            using,
            filter,
            current_of,
            returning,
        })))
    }

    /// An alias before SET or USING, which are not names then.
    pub(super) fn target_alias(&mut self) -> Result<Option<String>> {
        if self.word("as") {
            return Ok(Some(self.name()?));
        }
        match self.is_name() && !self.is("set") {
            true => Ok(Some(self.name()?)),
            false => Ok(None),
        }
    }

    /// WHERE with its condition or its cursor.
    fn dml_where(&mut self) -> Result<(Option<Expr>, Option<String>)> {
        match self.words(&["where", "current", "of"]) {
            true => Ok((None, Some(self.name()?))),
            false => Ok((self.where_clause()?, None)),
        }
    }

    pub(super) fn returning(&mut self) -> Result<Returning> {
        let mut returning = Returning::default();
        if !self.word("returning") {
            return Ok(returning);
        }
        if self.is("with") && self.is_punct_at(1, '(') {
            self.advance();
            self.parens(|p| {
                p.list(|p| {
                    let pos = p.pos();
                    let (word, place) = match p.word("old") {
                        true => ("OLD", &mut returning.old),
                        false => {
                            p.keyword("new")?;
                            ("NEW", &mut returning.new)
                        }
                    };
                    if place.is_some() {
                        let message = format!("{word} cannot be specified multiple times");
                        return Err(p.error(message, pos));
                    }
                    p.keyword("as")?;
                    *place = Some((p.name()?, pos));
                    Ok(())
                })
            })?;
        }
        returning.items = self.target_list()?;
        Ok(returning)
    }
}
