//! CREATE TABLE and ALTER TABLE.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::*;
use super::lexer::Kind;
use crate::vocabulary::{OnCommit, Persistence};

const NO_INTO: &str = "SELECT ... INTO is not allowed here";

impl Parser<'_> {
    fn on_commit(&mut self, persistence: &mut Persistence) -> Result<()> {
        let action = if self.words(&["delete", "rows"]) {
            OnCommit::DeleteRows
        } else if self.words(&["preserve", "rows"]) {
            OnCommit::PreserveRows
        } else {
            self.keyword("drop")?;
            OnCommit::Drop
        };
        match persistence {
            Persistence::Temporary(on_commit) => *on_commit = action,
            _ => {
                let message = "ON COMMIT can only be used on temporary tables";
                let code = throng_types::error::state::INVALID_TABLE_DEFINITION;
                return Err(throng_types::Error::new(code, message));
            }
        }
        Ok(())
    }

    pub(super) fn create_table(&mut self, persistence: Persistence) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.any_name()?;
        if self.is("of") {
            return Ok(self.skip_unsupported("CREATE TABLE of a type"));
        }
        let mut table = CreateTable {
            name,
            if_not_exists,
            persistence,
            columns: vec![],
            likes: vec![],
            constraints: vec![],
            options: vec![],
            query: None,
            materialized: false,
            inherits: vec![],
            partition_by: None,
            partition_of: None,
        };
        let mut names = None;
        // Without a list of columns it is made of a query.
        let mut is_bare = false;
        if self.words(&["partition", "of"]) {
            table.partition_of = Some(self.partition_of(&mut table)?);
        } else if self.is_punct('(') {
            // `(a, b) AS query` lists names only.
            let plain = matches!(self.kind_at(2), Kind::Punct(',' | ')'))
                && matches!(self.kind_at(1), Kind::Word(_) | Kind::Quoted(_));
            if plain {
                names = Some(self.name_list()?);
            } else {
                self.expect('(')?;
                if !self.is_punct(')') {
                    self.list(|p| p.table_element(&mut table))?;
                }
                self.expect(')')?;
            }
        } else if self.any_of(&["as", "with", "using", "on", "tablespace"]) {
            is_bare = true;
        } else {
            return Err(self.unexpected());
        }
        if names.is_none() && table.partition_of.is_none() && self.word("inherits") {
            table.inherits = self.parens(|p| p.list(Self::any_name))?;
        }
        if names.is_none() {
            table.partition_by = self.partition_by()?;
        }
        self.heap_method()?;
        table.options = self.with_options()?;
        self.words(&["without", "oids"]);
        if self.words(&["on", "commit"]) {
            self.on_commit(&mut table.persistence)?;
        }
        self.tablespace()?;
        if self.word("as") {
            let plain = table.inherits.is_empty()
                && table.partition_by.is_none()
                && table.partition_of.is_none();
            if !(table.columns.is_empty()
                && table.likes.is_empty()
                && table.constraints.is_empty()
                && plain)
            {
                return Err(self.unexpected());
            }
            let names = names.unwrap_or_default();
            if self.word("execute") {
                let (name, args) = self.execution()?;
                return Ok(Statement::CreateTableAsExecute {
                    table: Box::new(table),
                    names,
                    name,
                    args,
                    with_data: self.with_data(),
                });
            }
            let parens = self.query()?;
            let with_data = self.with_data();
            table.query = Some(CreateTableAs {
                names,
                query: parens,
                with_data,
            });
        } else if names.is_some() || is_bare {
            return Err(self.unexpected());
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// After INTO in a SELECT: the table that is made of its rows, which only a statement's own
    /// SELECT can have.
    pub(super) fn select_into(&mut self) -> Result<()> {
        let mut persistence = Persistence::Permanent;
        if self.any_of(&["local", "global", "temp", "temporary"]) {
            let _ = self.word("local") || self.word("global");
            if !self.word("temp") {
                self.keyword("temporary")?;
            }
            persistence = Persistence::Temporary(OnCommit::PreserveRows);
        } else if self.word("unlogged") {
            persistence = Persistence::Unlogged;
        }
        self.word("table");
        let pos = self.pos();
        let name = self.any_name()?;
        if self.depth > 0 || self.into.is_some() {
            return Err(self.no_into(pos));
        }
        let table = CreateTable {
            name,
            if_not_exists: false,
            persistence,
            columns: vec![],
            likes: vec![],
            constraints: vec![],
            options: vec![],
            query: None,
            materialized: false,
            inherits: vec![],
            partition_by: None,
            partition_of: None,
        };
        self.into = Some((table, pos));
        Ok(())
    }

    fn no_into(&self, pos: Pos) -> throng_types::Error {
        self.error(NO_INTO, pos)
    }

    /// What a statement says instead of its query having an INTO.
    pub(super) fn refused_into(
        message: &'static str,
    ) -> impl Fn(throng_types::Error) -> throng_types::Error {
        move |e| match e.message() == NO_INTO {
            true => {
                throng_types::Error::new(throng_types::error::state::FEATURE_NOT_SUPPORTED, message)
            }
            false => e,
        }
    }

    /// The statement, where it is SELECT INTO as the CREATE TABLE AS that it means.
    pub(super) fn with_into(&mut self, statement: Statement) -> Result<Statement> {
        let Some((mut table, pos)) = self.into.take() else {
            return Ok(statement);
        };
        match statement {
            Statement::Query(query) => {
                table.query = Some(CreateTableAs {
                    names: vec![],
                    query: *query,
                    with_data: true,
                });
                Ok(Statement::CreateTable(Box::new(table)))
            }
            Statement::Explain { options, statement } => {
                self.into = Some((table, pos));
                let statement = Box::new(self.with_into(*statement)?);
                Ok(Statement::Explain { options, statement })
            }
            Statement::Copy(_) => {
                let message = "COPY (SELECT INTO) is not supported";
                let code = throng_types::error::state::FEATURE_NOT_SUPPORTED;
                Err(throng_types::Error::new(code, message))
            }
            _ => Err(self.no_into(pos)),
        }
    }

    /// `USING heap`
    pub(super) fn heap_method(&mut self) -> Result<()> {
        if self.word("using") {
            let at = self.pos();
            let method = self.name()?;
            if method != "heap" {
                return Err(self.unsupported(&format!("access method \"{method}\""), at));
            }
        }
        Ok(())
    }

    pub(super) fn with_data(&mut self) -> bool {
        let with_data = !self.words(&["with", "no", "data"]);
        if with_data {
            self.words(&["with", "data"]);
        }
        with_data
    }

    pub(super) fn tablespace(&mut self) -> Result<()> {
        if self.word("tablespace") {
            let at = self.pos();
            let name = self.name()?;
            if name != "pg_default" {
                return Err(self.unsupported("TABLESPACE", at));
            }
        }
        Ok(())
    }

    /// `WITH (name = value, …)`.
    pub(super) fn with_options(&mut self) -> Result<Vec<(String, String)>> {
        if !(self.is("with") && self.is_punct_at(1, '(')) {
            return Ok(vec![]);
        }
        self.advance();
        self.options()
    }

    pub(super) fn options(&mut self) -> Result<Vec<(String, String)>> {
        self.parens(|p| {
            p.list(|p| {
                let mut name = p.label()?;
                while p.punct('.') {
                    name = format!("{name}.{}", p.label()?);
                }
                let value = match p.op("=") {
                    true => p.option_value()?,
                    false => "true".to_string(),
                };
                Ok((name, value))
            })
        })
    }

    /// A word, number or string as text.
    pub(super) fn option_value(&mut self) -> Result<String> {
        let sign = if self.op("-") { "-" } else { "" };
        if sign.is_empty() {
            self.op("+");
        }
        let value = match self.kind().clone() {
            Kind::Integer(v) | Kind::Decimal(v) => format!("{sign}{v}"),
            Kind::Word(v) | Kind::Quoted(v) | Kind::Text(v) if sign.is_empty() => v,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(value)
    }

    fn table_element(&mut self, table: &mut CreateTable) -> Result<()> {
        if self.is("like") {
            let like = self.like()?;
            table.likes.push((table.columns.len(), like));
            return Ok(());
        }
        if self.constraint_ahead() {
            table.constraints.push(self.table_constraint()?);
        } else {
            table.columns.push(self.column_def()?);
        }
        Ok(())
    }

    fn like(&mut self) -> Result<Like> {
        self.keyword("like")?;
        let mut like = Like {
            source: self.any_name()?,
            comments: false,
            constraints: false,
            defaults: false,
            generated: false,
            identity: false,
            indexes: false,
            storage: false,
            compression: false,
        };
        loop {
            let including = self.word("including");
            if !including && !self.word("excluding") {
                return Ok(like);
            }
            match self.peek_word() {
                Some("comments") => like.comments = including,
                Some("constraints") => like.constraints = including,
                Some("defaults") => like.defaults = including,
                Some("generated") => like.generated = including,
                Some("identity") => like.identity = including,
                Some("indexes") => like.indexes = including,
                // A table has none of these that could be copied.
                Some("statistics") => {}
                Some("compression") => like.compression = including,
                Some("storage") => like.storage = including,
                Some("all") => {
                    like = Like {
                        source: like.source,
                        comments: including,
                        constraints: including,
                        defaults: including,
                        generated: including,
                        identity: including,
                        indexes: including,
                        storage: including,
                        compression: including,
                    }
                }
                _ => return Err(self.unexpected()),
            }
            self.advance();
        }
    }

    pub(super) fn constraint_ahead(&self) -> bool {
        self.any_of(&["constraint", "primary", "unique", "check", "foreign"])
            || (self.is("exclude") && (self.is_at(1, "using") || self.is_punct_at(1, '(')))
            || (self.is("not") && self.is_at(1, "null"))
    }

    pub(super) fn table_constraint(&mut self) -> Result<TableConstraint> {
        let pos = self.pos();
        let name = match self.word("constraint") {
            true => Some(self.name()?),
            false => None,
        };
        let mut no_inherit = false;
        let kind = match self.peek_word() {
            Some("primary") => {
                self.keywords(&["primary", "key"])?;
                self.key_constraint(true)?
            }
            Some("unique") => {
                self.advance();
                self.key_constraint(false)?
            }
            Some("check") => {
                self.advance();
                let source = self.check_source()?;
                no_inherit = self.words(&["no", "inherit"]);
                TableConstraintKind::Check(source)
            }
            Some("foreign") => {
                self.keywords(&["foreign", "key"])?;
                let mut period = false;
                let columns = self.parens(|p| p.list(|p| p.period_column(&mut period)))?;
                let references = self.references()?;
                TableConstraintKind::ForeignKey {
                    columns,
                    period,
                    references,
                }
            }
            Some("not") => {
                self.keywords(&["not", "null"])?;
                let column = self.name()?;
                no_inherit = self.words(&["no", "inherit"]);
                TableConstraintKind::NotNull(column)
            }
            Some("exclude") => {
                self.advance();
                TableConstraintKind::Exclude(self.exclusion_constraint()?)
            }
            _ => return Err(self.unexpected()),
        };
        let what = match &kind {
            TableConstraintKind::Check(_) => Some("CHECK"),
            TableConstraintKind::NotNull(_) => Some("NOT NULL"),
            _ => None,
        };
        let attributes = self.constraint_attributes(false)?;
        if let (Some(what), Some(at)) = (what, attributes.deferrable_at) {
            let message = format!("{what} constraints cannot be marked DEFERRABLE");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(at + 1));
        }
        let what = match &kind {
            TableConstraintKind::Check(_) | TableConstraintKind::ForeignKey { .. } => None,
            TableConstraintKind::PrimaryKey { .. } => Some("PRIMARY KEY"),
            TableConstraintKind::NotNull(_) => Some("NOT NULL"),
            _ => Some("UNIQUE"),
        };
        if let (Some(what), Some(false), Some((at, _))) =
            (what, attributes.enforced, attributes.enforced_at)
        {
            let message = format!("{what} constraints cannot be marked NOT ENFORCED");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(at + 1));
        }
        Ok(TableConstraint {
            name,
            kind,
            not_valid: attributes.not_valid,
            deferral: attributes.deferral(),
            no_inherit,
            pos,
        })
    }

    pub(super) fn check_source(&mut self) -> Result<Source> {
        self.expect('(')?;
        let source = self.source(Self::expr)?;
        self.expect(')')?;
        Ok(source)
    }

    /// An expression with its text.
    pub(super) fn source(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expr>,
    ) -> Result<Source> {
        let start = self.pos();
        let expr = parse(self)?;
        Ok(Source {
            expr,
            text: self.text_from(start),
        })
    }

    /// `(expression) [VIRTUAL | STORED]`
    pub(super) fn generated(&mut self, always: bool, when: Pos) -> Result<ColumnConstraintKind> {
        let source = self.check_source()?;
        let stored = self.word("stored");
        if !stored {
            self.word("virtual");
        }
        if !always {
            let message = "for a generated column, GENERATED ALWAYS must be specified";
            return Err(self.error(message, when));
        }
        Ok(ColumnConstraintKind::Generated { source, stored })
    }

    /// DEFAULT takes a `b_expr`: `NOT NULL` after it is a constraint.
    pub(super) fn default_expr(&mut self) -> Result<Expr> {
        self.restricted_expr()
    }

    pub(super) fn identity_options(&mut self) -> Result<Vec<SequenceOption>> {
        match self.is_punct('(') {
            true => self.parens(|p| p.sequence_options()),
            false => Ok(vec![]),
        }
    }

    pub(super) fn alter_table(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        if self.is("all") && self.is_at(1, "in") {
            return Ok(self.skip_unsupported("ALTER TABLE ALL"));
        }
        let (name, only) = self.table_name_only()?;
        if self.word("rename") {
            if self.word("to") {
                let change = ObjectChange::Rename(self.name()?);
                let kind = ObjectKind::Table;
                return Ok(Statement::AlterObject {
                    kind,
                    name,
                    if_exists,
                    change,
                });
            }
            if self.word("constraint") {
                let constraint = self.name()?;
                self.keyword("to")?;
                let to = self.name()?;
                return Ok(Statement::RenameConstraint {
                    table: name,
                    only,
                    if_exists,
                    constraint,
                    to,
                });
            }
            self.word("column");
            let column = self.name()?;
            self.keyword("to")?;
            let to = self.name()?;
            return Ok(Statement::RenameColumn {
                kind: ObjectKind::Table,
                table: name,
                only,
                if_exists,
                column,
                to,
            });
        }
        if self.words(&["set", "schema"]) {
            let change = ObjectChange::SetSchema(self.name()?);
            let kind = ObjectKind::Table;
            return Ok(Statement::AlterObject {
                kind,
                name,
                if_exists,
                change,
            });
        }
        if self.any_of(&["attach", "detach"]) {
            return self.partition_command(name, if_exists);
        }
        let actions = self.list(Self::alter_action)?;
        Ok(Statement::AlterTable {
            kind: ObjectKind::Table,
            name,
            only,
            if_exists,
            actions,
        })
    }

    pub(super) fn alter_action(&mut self) -> Result<AlterAction> {
        let pos = self.pos();
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Err(self.unexpected());
        };
        self.advance();
        if let Some(action) = self.switched(&word)? {
            return Ok(action);
        }
        match word.as_str() {
            "add" => {
                if self.constraint_ahead() {
                    return Ok(AlterAction::AddConstraint(self.table_constraint()?));
                }
                self.word("column");
                let if_not_exists = self.if_not_exists();
                Ok(AlterAction::AddColumn {
                    column: self.column_def()?,
                    if_not_exists,
                })
            }
            "drop" => {
                if self.word("constraint") {
                    let if_exists = self.if_exists();
                    let name = self.name()?;
                    let cascade = self.cascade();
                    return Ok(AlterAction::DropConstraint {
                        name,
                        if_exists,
                        cascade,
                    });
                }
                self.word("column");
                let if_exists = self.if_exists();
                let column = self.name()?;
                let cascade = self.cascade();
                Ok(AlterAction::DropColumn {
                    column,
                    if_exists,
                    cascade,
                })
            }
            "alter" => {
                if self.word("constraint") {
                    let name = self.name()?;
                    if self.is("inherit") || (self.is("no") && self.is_at(1, "inherit")) {
                        return Err(self.unsupported("ALTER CONSTRAINT … INHERIT", pos));
                    }
                    let attributes = self.constraint_attributes(false)?;
                    if attributes.not_valid {
                        let message = "constraints cannot be altered to be NOT VALID";
                        return Err(
                            Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1)
                        );
                    }
                    return Ok(AlterAction::AlterConstraint {
                        name,
                        said: attributes.said(),
                    });
                }
                self.word("column");
                if matches!(self.kind(), Kind::Integer(_)) {
                    return self.statistics_of_number();
                }
                let (column, at) = self.name_pos()?;
                self.alter_column(column, at)
            }
            "validate" => {
                self.keyword("constraint")?;
                Ok(AlterAction::ValidateConstraint(self.name()?))
            }
            "owner" => {
                self.keyword("to")?;
                Ok(AlterAction::OwnerTo(self.role_name()?))
            }
            "set" if self.is_punct('(') => Ok(AlterAction::SetOptions(self.options()?)),
            "set" if self.word("tablespace") => Ok(AlterAction::SetTablespace(self.name()?)),
            "set" if self.word("logged") => Ok(AlterAction::SetLogged(true)),
            "set" if self.word("unlogged") => Ok(AlterAction::SetLogged(false)),
            "set" | "replica" | "cluster" if self.mark_ahead() => self.mark(&word),
            "reset" => Ok(AlterAction::ResetOptions(
                self.parens(|p| p.list(Self::label))?,
            )),
            "inherit" => Ok(AlterAction::Inherit(self.any_name()?)),
            "no" if self.word("inherit") => Ok(AlterAction::NoInherit(self.any_name()?)),
            "enable" | "disable" | "no" | "of" | "not" | "force" | "set" => {
                Err(self.unsupported(&format!("ALTER TABLE {}", word.to_uppercase()), pos))
            }
            _ => {
                self.at -= 1;
                Err(self.unexpected())
            }
        }
    }

    /// `number SET STATISTICS …`, of an index's column.
    fn statistics_of_number(&mut self) -> Result<AlterAction> {
        let pos = self.pos();
        let number = self.integer()?;
        self.keywords(&["set", "statistics"])?;
        let target = self.statistics_target()?;
        let column = u16::try_from(number).ok();
        match column.filter(|n| (1..=i16::MAX as u16).contains(n)) {
            Some(n) => Ok(AlterAction::SetStatistics(NameOrNumber::Number(n), target)),
            None => {
                let message = "column number must be in range from 1 to 32767";
                Err(Error::new(state::INVALID_PARAMETER_VALUE, message).position(pos + 1))
            }
        }
    }

    pub(super) fn statistics_target(&mut self) -> Result<Option<i64>> {
        match self.word("default") {
            true => Ok(None),
            false => self.integer().map(Some),
        }
    }

    /// `SET GENERATED …`, `SET INCREMENT …`, `RESTART …`, any number of them.
    pub(super) fn set_identity(&mut self, column: String) -> Result<AlterAction> {
        let (mut always, mut options) = (None, Vec::new());
        loop {
            if self.is("restart") {
                options.extend(self.sequence_options()?);
            } else if self.words(&["set", "generated"]) {
                always = Some(self.word("always"));
                if always == Some(false) {
                    self.keywords(&["by", "default"])?;
                }
            } else if self.is("set") {
                self.advance();
                let found = self.sequence_options()?;
                if found.is_empty() {
                    return Err(self.unexpected());
                }
                options.extend(found);
            } else {
                return Ok(AlterAction::SetIdentity {
                    column,
                    always,
                    options,
                });
            }
        }
    }
}
