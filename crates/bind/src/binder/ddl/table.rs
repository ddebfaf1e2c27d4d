//! CREATE TABLE, and the parts ALTER TABLE shares with it.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{has_collation, type_name};
use throng_types::{Datum, Error, Oid, Result, SqlState, SqlType, oid};

use crate::binder::ddl::domain::Declared;
use crate::binder::ddl::exclusion::may_overlap_not;
use crate::binder::dml::row_names;
use crate::binder::query::scope::Scope;
use crate::binder::stored_expression::is_made_to_fit;
use crate::binder::{Binder, Clause, ddl::inherit, ddl::options, slots_of_row};
use crate::command::{
    CreateTable, Ddl, NewColumn, NewConstraint, NewConstraintKind, SequenceOptions, TableSource,
};
use crate::tree::expr::Expr;
use crate::tree::query::{Body, QueryKind};
use throng_catalog::partition::PartitionBound;
use throng_catalog::{
    ColumnDef, Generated, Identity, IndexMethod, Lineage, OnCommit, Persistence, Storage, TableDef,
};
use throng_syntax::parse::ast::{self, ColumnConstraintKind as C, Pos, TableConstraintKind as T};
use throng_syntax::parse::partition::ColumnOptions;
use throng_values::func::CastContext;

/// A key's index's storage parameters.
fn key_options(given: &[(String, String)]) -> Result<Vec<(String, String)>> {
    options::check(given, options::of_index(IndexMethod::Btree))?;
    Ok(given.to_vec())
}

const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];

/// What is known while a table's parts are bound.
pub(in crate::binder) struct Draft {
    pub table: TableDef,
    /// Whether a primary key was declared.
    pub has_key: bool,
    pub constraints: Vec<NewConstraint>,
}

pub(in crate::binder) fn no_position(mut error: Error) -> Error {
    error.fields_mut().position = None;
    error
}

impl Binder<'_> {
    pub(in crate::binder) fn create_table(&mut self, ast: &ast::CreateTable) -> Result<Ddl> {
        let (schema, temporary) = self.place(&ast.name, ast.persistence.is_temporary())?;
        if ast.persistence == Persistence::Unlogged && temporary {
            let message = "only temporary relations may be created in temporary schemas";
            let error = Error::new(state::INVALID_TABLE_DEFINITION, message);
            return Err(error.position(ast.name.pos + 1));
        }
        if ast.persistence == Persistence::Unlogged && ast.partition_by.is_some() {
            let message = "partitioned tables cannot be unlogged";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let persistence = match ast.persistence {
            Persistence::Permanent if temporary => Persistence::Temporary(OnCommit::PreserveRows),
            as_said => as_said,
        };
        options::check(&ast.options, options::TABLE)?;
        let options = ast.options.clone();
        let table = TableDef {
            schema,
            name: ast.name.last().to_string(),
            owner: self.ctx.user,
            persistence,
            options,
            ..TableDef::of_columns(vec![])
        };
        let mut draft = Draft {
            table,
            has_key: false,
            constraints: vec![],
        };
        let mut columns = Vec::new();
        let mut source = None;
        let mut materialized = None;
        if let Some(select) = &ast.query {
            if ast.materialized {
                self.may_be_materialized(&select.query)?;
            }
            let (new, of) = self.source(select)?;
            if ast.materialized {
                materialized = Some(self.materialized(ast, select, &of, &new)?);
            }
            columns = new;
            source = Some(of);
        }
        let parents = self.parents(ast, persistence)?;
        let is_default =
            |c: &ast::ColumnConstraint| matches!(c.kind, C::Default(_) | C::Generated { .. });
        let with_default = |c: &&ast::ColumnDef| c.constraints.iter().any(is_default);
        let own_defaults: Vec<String> = ast
            .columns
            .iter()
            .filter(with_default)
            .map(|c| c.name.clone())
            .collect();
        let partition = ast.partition_of.is_some();
        columns.extend(self.inherited_columns(&parents, partition, &own_defaults)?);
        // All columns first: constraints may name later ones.
        let mut own = Vec::with_capacity(ast.columns.len());
        let mut copies = Vec::new();
        let mut places = Vec::with_capacity(ast.columns.len());
        for at in 0..=ast.columns.len() {
            for (_, like) in ast.likes.iter().filter(|(before, _)| *before == at) {
                copies.push(self.like_columns(like, &mut draft, &mut own)?);
            }
            if let Some(column) = ast.columns.get(at) {
                let new = self.column_def(column, &draft.table)?;
                places.push(own.len());
                draft.table.columns.push(new.def.clone());
                own.push(new);
            }
        }
        let merged = self.merge_columns(columns, own.clone())?;
        let mut columns = merged.all;
        draft.table.columns = columns.iter().map(|c| c.def.clone()).collect();
        for (column, place) in ast.columns.iter().zip(places) {
            let (mut new, at) = (own[place].clone(), merged.written[place]);
            self.column_constraints(column, &mut new, &mut draft)?;
            match columns[at].def.inherited {
                0 => columns[at] = new,
                _ => inherit::refine(&mut columns[at], new)?,
            }
            draft.table.columns[at] = columns[at].def.clone();
        }
        let mut bound = None;
        if let Some(of) = &ast.partition_of {
            self.options_of_columns(&of.columns, &mut columns, &mut draft)?;
            // Where there is one of that name already, that is what is told.
            let taken = self
                .catalog()
                .relation_in(schema, &draft.table.name)
                .is_some();
            bound = Some(match taken {
                true => PartitionBound::Default,
                false => self.partition_bound(&of.bound, &parents[0], &draft.table.name)?,
            });
        }
        let mut copied = Vec::new();
        for copy in copies {
            self.like_rest(copy, &mut draft, &mut copied)?;
        }
        for (column, def) in columns.iter_mut().zip(&draft.table.columns) {
            column.def.generated = def.generated.clone();
        }
        for constraint in &ast.constraints {
            if let T::NotNull(name) = &constraint.kind {
                let attnum = self.draft_column(&draft.table, name, constraint.pos)?;
                let def = &mut columns[attnum as usize - 1].def;
                let (said, alone) = (constraint.name.as_deref(), constraint.no_inherit);
                // A child may call its own otherwise than its parent does.
                if def.inherited > 0 && def.not_null && !alone {
                    def.not_null_name = constraint.name.clone().or(def.not_null_name.take());
                    continue;
                }
                say_not_null(def, said, alone, state::SYNTAX_ERROR)?;
                continue;
            }
            let new = self.table_constraint(constraint, &mut draft)?;
            draft.constraints.push(new);
        }
        self.inherited_checks(&parents, &mut draft)?;
        let partitioned = match &ast.partition_by {
            Some(by) => Some(self.partition_key(by, &draft.table)?),
            None => None,
        };
        const MOST_COLUMNS: usize = 1600;
        if columns.len() > MOST_COLUMNS {
            let message = format!("tables can have at most {MOST_COLUMNS} columns");
            return Err(Error::new(state::TOO_MANY_COLUMNS, message));
        }
        let Draft {
            table, constraints, ..
        } = draft;
        Ok(Ddl::CreateTable(CreateTable {
            schema,
            name: table.name,
            owner: table.owner,
            if_not_exists: ast.if_not_exists,
            persistence,
            columns,
            constraints,
            options: table.options,
            copied,
            source,
            materialized,
            parents: inherit::oids(&parents),
            partitioned,
            bound,
        }))
    }

    /// What PARTITION OF says of the parent's columns.
    fn options_of_columns(
        &mut self,
        options: &[ColumnOptions],
        columns: &mut [NewColumn],
        draft: &mut Draft,
    ) -> Result<()> {
        let mut seen: Vec<&str> = Vec::new();
        for option in options {
            let at = columns.iter().position(|c| c.def.name == option.name);
            let Some(at) = at else {
                let message = format!("column \"{}\" does not exist", option.name);
                return Err(Error::new(state::UNDEFINED_COLUMN, message));
            };
            if seen.contains(&option.name.as_str()) {
                let message = format!("column \"{}\" specified more than once", option.name);
                return Err(Error::new(state::DUPLICATE_COLUMN, message));
            }
            seen.push(&option.name);
            let mut own = NewColumn {
                def: ColumnDef::new(&option.name, columns[at].def.ty),
                sequence: None,
                default: None,
                generated: None,
            };
            self.constraints_of_column(
                &option.name,
                option.pos,
                &option.constraints,
                &mut own,
                draft,
            )?;
            if own.def.identity.is_some() {
                let message = "identity columns are not supported on partitions";
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            inherit::refine(&mut columns[at], own)?;
            draft.table.columns[at] = columns[at].def.clone();
        }
        Ok(())
    }

    /// The columns that a query gives a table, and the query.
    fn source(&mut self, ast: &ast::CreateTableAs) -> Result<(Vec<NewColumn>, TableSource)> {
        let query = self.query(&ast.query, None)?;
        let offered = query.columns();
        if ast.names.len() > offered.len() {
            let message = "too many column names were specified";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        let mut columns: Vec<NewColumn> = Vec::with_capacity(offered.len());
        for (i, column) in offered.iter().enumerate() {
            let name = ast.names.get(i).unwrap_or(&column.name);
            if columns.iter().any(|c| c.def.name == *name) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(Error::new(state::DUPLICATE_COLUMN, message));
            }
            check_storable(name, column.ty.oid)?;
            let mut def = ColumnDef::new(name, column.ty);
            def.domain = match &query.body {
                Body::Select(select) => self.domain_of(&select.targets[i].expr),
                _ => None,
            };
            columns.push(NewColumn {
                def,
                sequence: None,
                default: None,
                generated: None,
            });
        }
        let source = TableSource {
            query: Box::new(self.bound(QueryKind::Select(query))?),
            with_data: ast.with_data,
        };
        Ok((columns, source))
    }

    fn draft_column(&self, table: &TableDef, name: &str, pos: Pos) -> Result<u16> {
        table.attnum(name).ok_or_else(|| {
            let message = format!("column \"{name}\" named in key does not exist");
            Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1)
        })
    }

    /// A column without its constraints.
    pub(in crate::binder) fn column_def(
        &mut self,
        ast: &ast::ColumnDef,
        table: &TableDef,
    ) -> Result<NewColumn> {
        let name = &ast.name;
        if SYSTEM_COLUMNS.contains(&name.as_str()) {
            let message = format!("column name \"{name}\" conflicts with a system column name");
            return Err(Error::new(state::DUPLICATE_COLUMN, message));
        }
        if table.attnum(name).is_some() && table.oid == Oid::NONE {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(state::DUPLICATE_COLUMN, message));
        }
        let serial = match ast.ty.name.last() {
            "smallserial" | "serial2" => Some(SqlType::INT2),
            "serial" | "serial4" => Some(SqlType::INT4),
            "bigserial" | "serial8" => Some(SqlType::INT8),
            _ => None,
        };
        let serial = serial.filter(|_| ast.ty.name.parts.len() == 1);
        if let (Some(_), true) = (serial, ast.ty.array) {
            let message = "array of serial is not implemented";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let Declared { ty, domain } = match serial {
            Some(ty) => Declared { ty, domain: None },
            None => self.declared_for_new(&ast.ty)?,
        };
        check_storable(name, ty.oid)?;
        let mut def = ColumnDef::new(name, ty);
        def.domain = domain;
        def.not_null = serial.is_some();
        def.collation = match &ast.collation {
            Some(collation) => self.column_collation(collation, ty)?,
            None => None,
        };
        if let Some(word) = &ast.storage {
            def.storage = Storage::said(word, ty, &type_name(def.shown_type()))?;
        }
        if let Some(word) = &ast.compression {
            let shown = type_name(def.shown_type());
            def.compression = self.compression(word, ty, &shown)?;
        }
        let sequence = serial.map(|ty| SequenceOptions {
            ty: Some(ty.oid),
            ..SequenceOptions::default()
        });
        // Expressions of other columns may not use it; its own is bound with the constraints.
        let of = |kind: &C| match kind {
            C::Generated { stored, .. } => Some(*stored),
            _ => None,
        };
        def.generated = ast
            .constraints
            .iter()
            .find_map(|c| of(&c.kind))
            .map(|stored| Generated {
                expr: String::new(),
                columns: vec![],
                stored,
            });
        Ok(NewColumn {
            def,
            sequence,
            default: None,
            generated: None,
        })
    }

    pub(in crate::binder) fn column_collation(
        &self,
        name: &ast::Name,
        ty: SqlType,
    ) -> Result<Option<String>> {
        if !has_collation(ty.oid) {
            let message = format!("collations are not supported by type {}", type_name(ty.oid));
            return Err(Error::new(state::DATATYPE_MISMATCH, message).position(name.pos + 1));
        }
        match name.last() {
            "default" => Ok(None),
            "C" | "POSIX" => Ok(Some(name.last().to_string())),
            other => {
                let message = format!("collation \"{other}\" for encoding \"UTF8\" does not exist");
                Err(Error::new(state::UNDEFINED_OBJECT, message).position(name.pos + 1))
            }
        }
    }

    pub(in crate::binder) fn column_constraints(
        &mut self,
        ast: &ast::ColumnDef,
        new: &mut NewColumn,
        draft: &mut Draft,
    ) -> Result<()> {
        self.constraints_of_column(&ast.name, ast.pos, &ast.constraints, new, draft)
    }

    fn constraints_of_column(
        &mut self,
        name: &str,
        place: Pos,
        constraints: &[ast::ColumnConstraint],
        new: &mut NewColumn,
        draft: &mut Draft,
    ) -> Result<()> {
        let table_name = draft.table.name.clone();
        let (mut said_null, mut said_not_null) = (false, new.def.not_null);
        let column = || vec![(name.to_owned(), place)];
        for constraint in constraints {
            let pos = constraint.pos;
            let kind = match &constraint.kind {
                C::NotNull | C::Null => {
                    let not = constraint.kind == C::NotNull;
                    if (not && said_null) || (!not && said_not_null) {
                        let message = format!(
                            "conflicting NULL/NOT NULL declarations for column \"{name}\" of table \"{table_name}\""
                        );
                        return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
                    }
                    said_null |= !not;
                    said_not_null |= not;
                    if not {
                        let said = constraint.name.as_deref();
                        say_not_null(
                            &mut new.def,
                            said,
                            constraint.no_inherit,
                            state::INTERNAL_ERROR,
                        )?;
                    }
                    continue;
                }
                C::Default(_) if new.generated.is_some() => {
                    let message = format!(
                        "both default and generation expression specified for column \"{name}\" of table \"{table_name}\""
                    );
                    return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
                }
                C::Identity { .. } if new.generated.is_some() => {
                    let message = format!(
                        "both identity and generation expression specified for column \"{name}\" of table \"{table_name}\""
                    );
                    return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
                }
                C::Default(source) => {
                    if new.def.default.is_some() || new.sequence.is_some() {
                        let message = format!(
                            "multiple default values specified for column \"{name}\" of table \"{table_name}\""
                        );
                        let error = Error::new(state::SYNTAX_ERROR, message);
                        return Err(match new.sequence {
                            Some(_) => error,
                            None => error.position(pos + 1),
                        });
                    }
                    new.default = Some(self.set_default(&mut new.def, source)?);
                    continue;
                }
                C::Identity { always, options } => {
                    if new.def.default.is_some() || new.sequence.is_some() {
                        let message = format!(
                            "both default and identity specified for column \"{name}\" of table \"{table_name}\""
                        );
                        return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
                    }
                    new.sequence = Some(self.identity_options(new.def.ty, options)?);
                    new.def.identity = Some(identity(*always));
                    new.def.not_null = true;
                    continue;
                }
                C::Generated { source, stored } => {
                    let twice = |what: &str| {
                        let message = format!(
                            "{what} specified for column \"{name}\" of table \"{table_name}\""
                        );
                        Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1))
                    };
                    if new.generated.is_some() {
                        return twice("multiple generation clauses");
                    }
                    if new.def.identity.is_some() {
                        return twice("both identity and generation expression");
                    }
                    if new.def.default.is_some() || new.default.is_some() || new.sequence.is_some()
                    {
                        return twice("both default and generation expression");
                    }
                    let is_new = draft.table.oid == Oid::NONE;
                    let (kept, value) = self
                        .generation(&draft.table, &new.def, source, *stored)
                        .map_err(|e| if is_new { e } else { no_position(e) })?;
                    if let Some(attnum) = draft.table.attnum(name) {
                        draft.table.columns[attnum as usize - 1].generated = Some(kept.clone());
                    }
                    new.def.generated = Some(kept);
                    new.generated = Some(value);
                    continue;
                }
                C::PrimaryKey { options } => T::PrimaryKey {
                    columns: column(),
                    without_overlaps: false,
                    include: vec![],
                    options: options.clone(),
                },
                C::Unique {
                    nulls_not_distinct,
                    options,
                } => unique_column(column(), *nulls_not_distinct, options),
                C::Check(source) => T::Check(source.clone()),
                C::References(references) => T::ForeignKey {
                    columns: column(),
                    period: false,
                    references: references.clone(),
                },
            };
            let constraint = ast::TableConstraint {
                name: constraint.name.clone(),
                kind,
                not_valid: false,
                deferral: constraint.deferral,
                no_inherit: constraint.no_inherit,
                pos,
            };
            let bound = self.table_constraint(&constraint, draft)?;
            draft.constraints.push(bound);
        }
        let given = new.default.is_some() || new.sequence.is_some() || new.generated.is_some();
        if new.def.domain.is_some() && !given && draft.table.oid != Oid::NONE {
            // Rows that are there get what the domain says, which it must allow.
            new.default = Some(self.default_of(&new.def)?);
        }
        Ok(())
    }

    pub(in crate::binder) fn identity_options(
        &mut self,
        ty: SqlType,
        options: &[ast::SequenceOption],
    ) -> Result<SequenceOptions> {
        if !matches!(ty.oid, oid::INT2 | oid::INT4 | oid::INT8) {
            let message = "identity column type must be smallint, integer, or bigint";
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
        let (mut bound, _) = self.sequence_options(options)?;
        bound.ty = Some(ty.oid);
        Ok(bound)
    }

    /// Checks a default and puts it into the column: as a sequence where it is `nextval('…')`.
    pub(in crate::binder) fn set_default(
        &mut self,
        column: &mut ColumnDef,
        source: &ast::Source,
    ) -> Result<Expr> {
        let bound = self.default_expr(&source.expr)?;
        if bound.any(&mut |e| matches!(e, Expr::Var(_))) {
            let message = "cannot use column reference in DEFAULT expression";
            return Err(
                Error::new(state::FEATURE_NOT_SUPPORTED, message).position(source.expr.pos + 1)
            );
        }
        let from = bound.type_oid();
        // NULL is no default, unless it stands before a domain's or is made to fit.
        let nothing = column.domain.is_none() && !is_made_to_fit(column.ty);
        let sequence = sequence_of(&bound);
        let cast = self.try_coerce(bound, column.ty, CastContext::Assignment, source.expr.pos)?;
        let Some(cast) = cast else {
            let message = format!(
                "column \"{}\" is of type {} but default expression is of type {}",
                column.name,
                type_name(column.ty.oid),
                type_name(from)
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression."));
        };
        column.sequence = sequence;
        column.default = match (sequence, nothing && cast.is_null_const()) {
            (None, false) => Some(self.text_of_default(&cast, column.ty, source)),
            _ => None,
        };
        self.in_domain(cast, column.domain)
    }

    pub(in crate::binder) fn default_expr(&mut self, ast: &ast::Expr) -> Result<Expr> {
        // A column of that name is refused by what it is, not as unknown.
        let bound = self
            .in_clause(Clause::Default, |b| b.expr(ast, &Scope::empty()))
            .map_err(|e| match e.code() == state::UNDEFINED_COLUMN {
                true => {
                    let message = "cannot use column reference in DEFAULT expression";
                    let position = e.fields().position.unwrap_or(ast.pos + 1);
                    Error::new(state::FEATURE_NOT_SUPPORTED, message).position(position)
                }
                false => e,
            })?;
        if bound.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = "cannot use subquery in DEFAULT expression";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(ast.pos + 1));
        }
        Ok(bound)
    }

    pub(in crate::binder) fn table_constraint(
        &mut self,
        ast: &ast::TableConstraint,
        draft: &mut Draft,
    ) -> Result<NewConstraint> {
        let table = &draft.table;
        let key_columns = |columns: &[(String, Pos)]| -> Result<Vec<String>> {
            let mut names: Vec<String> = Vec::new();
            for (name, _) in columns {
                if table.attnum(name).is_none() {
                    let message = format!("column \"{name}\" named in key does not exist");
                    return Err(Error::new(state::UNDEFINED_COLUMN, message).position(ast.pos + 1));
                }
                if names.contains(name) {
                    let message = format!(
                        "column \"{name}\" appears twice in {} constraint",
                        key_kind(&ast.kind)
                    );
                    return Err(Error::new(state::DUPLICATE_COLUMN, message).position(ast.pos + 1));
                }
                names.push(name.clone());
            }
            let computed = |name: &String| {
                let attnum = table.attnum(name);
                attnum.is_some_and(|n| table.column(n).is_virtual())
            };
            if names.iter().any(computed) {
                return Err(virtual_key(&ast.kind));
            }
            Ok(names)
        };
        let included = |include: &[(String, Pos)]| -> Result<Vec<String>> {
            let name = |(name, _): &(String, Pos)| match table.attnum(name) {
                Some(_) => Ok(name.clone()),
                None => {
                    let message = format!("column \"{name}\" named in key does not exist");
                    Err(Error::new(state::UNDEFINED_COLUMN, message).position(ast.pos + 1))
                }
            };
            include.iter().map(name).collect()
        };
        let is_key = matches!(
            ast.kind,
            T::PrimaryKey { .. } | T::UsingIndex { primary: true, .. }
        );
        if is_key && draft.has_key {
            let message = format!(
                "multiple primary keys for table \"{}\" are not allowed",
                table.name
            );
            return Err(Error::new(state::INVALID_TABLE_DEFINITION, message).position(ast.pos + 1));
        }
        let kind = match &ast.kind {
            T::PrimaryKey {
                columns,
                without_overlaps,
                include,
                options,
            } => NewConstraintKind::PrimaryKey {
                columns: key_columns(columns)?,
                without_overlaps: may_overlap_not(*without_overlaps, columns, table, ast.pos)?,
                include: included(include)?,
                options: key_options(options)?,
            },
            T::Exclude(exclusion) => {
                let table = Arc::new(table.clone());
                let new = self.exclusion(exclusion, &table, ast.pos)?;
                NewConstraintKind::Exclude(Box::new(new))
            }
            T::Unique {
                columns,
                without_overlaps,
                include,
                nulls_not_distinct,
                options,
            } => NewConstraintKind::Unique {
                columns: key_columns(columns)?,
                without_overlaps: may_overlap_not(*without_overlaps, columns, table, ast.pos)?,
                include: included(include)?,
                nulls_not_distinct: *nulls_not_distinct,
                options: key_options(options)?,
            },
            T::UsingIndex { index, primary } => NewConstraintKind::UsingIndex {
                index: self.index_of(table, index, ast.pos)?,
                primary: *primary,
                position: ast.pos + 1,
            },
            T::Check(source) => {
                let (expr, bound, columns) = self.check_source(source, table)?;
                NewConstraintKind::Check {
                    expr,
                    columns,
                    bound,
                }
            }
            T::ForeignKey {
                columns,
                period,
                references,
            } => self.foreign_key(columns, *period, references, table)?,
            T::NotNull(_) => {
                return Err(Error::internal("NOT NULL is not kept as a constraint"));
            }
        };
        draft.has_key |= is_key;
        if ast.not_valid
            && !matches!(
                kind,
                NewConstraintKind::Check { .. } | NewConstraintKind::ForeignKey { .. }
            )
        {
            let message = format!(
                "{} constraints cannot be marked NOT VALID",
                key_kind(&ast.kind).to_uppercase()
            );
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(ast.pos + 1));
        }
        Ok(NewConstraint {
            only: false,
            name: ast.name.clone(),
            kind,
            not_valid: ast.not_valid,
            deferral: ast.deferral,
            lineage: Lineage {
                no_inherit: ast.no_inherit,
                ..Lineage::default()
            },
        })
    }

    /// A CHECK's text, its condition over the table's row, and the columns it uses.
    fn check_source(
        &mut self,
        source: &ast::Source,
        table: &TableDef,
    ) -> Result<(String, Expr, Vec<String>)> {
        let table = Arc::new(table.clone());
        let rel = self.new_rel();
        let names = row_names(&table, &table.name, rel);
        let scope = Scope::within(&names, None);
        let bound = self.in_clause(Clause::Check, |b| {
            let bound = b.expr(&source.expr, &scope)?;
            b.condition(bound, "CHECK", source.expr.pos)
        })?;
        if bound.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = "cannot use subquery in check constraint";
            return Err(
                Error::new(state::FEATURE_NOT_SUPPORTED, message).position(source.expr.pos + 1)
            );
        }
        let mut columns: Vec<String> = Vec::new();
        bound.for_each_var(&mut |var| {
            if var.column > 0 {
                let name = &table.column(var.column as u16).name;
                if !columns.contains(name) {
                    columns.push(name.clone());
                }
            }
        });
        let text = self.check_text(&bound, &table, rel, source);
        let bound = self.over_stored(bound, &table, rel)?;
        Ok((text, slots_of_row(bound), columns))
    }
}

pub(in crate::binder) fn identity(always: bool) -> Identity {
    if always {
        Identity::Always
    } else {
        Identity::ByDefault
    }
}

#[cold]
fn virtual_key(kind: &T) -> Error {
    let what = match kind {
        T::PrimaryKey { .. } => "primary keys",
        _ => "unique constraints",
    };
    let message = format!("{what} on virtual generated columns are not supported");
    Error::new(state::FEATURE_NOT_SUPPORTED, message)
}

/// UNIQUE behind a column.
fn unique_column(
    columns: Vec<(String, Pos)>,
    nulls_not_distinct: bool,
    options: &[(String, String)],
) -> T {
    T::Unique {
        columns,
        without_overlaps: false,
        include: vec![],
        nulls_not_distinct,
        options: options.to_vec(),
    }
}

fn key_kind(kind: &T) -> &'static str {
    match kind {
        T::PrimaryKey { .. } => "primary key",
        T::Exclude(_) => "exclude",
        _ => "unique",
    }
}

/// 42P16 for a type no column can have.
pub(in crate::binder) fn check_storable(column: &str, ty: Oid) -> Result<()> {
    let pseudo = throng_types::sqltype::type_info(ty).is_none_or(|t| t.is_pseudo());
    if !pseudo {
        return Ok(());
    }
    let message = format!("column \"{column}\" has pseudo-type {}", type_name(ty));
    Err(Error::new(state::INVALID_TABLE_DEFINITION, message))
}

/// The sequence of `nextval('…')`, with whatever casts around it.
fn sequence_of(expr: &Expr) -> Option<Oid> {
    match expr {
        Expr::Call { func, args, .. } if func.name == "nextval" => match args.first() {
            Some(Expr::Const(Datum::Oid(oid), _)) => Some(Oid(*oid)),
            _ => None,
        },
        _ => None,
    }
}

/// A column is said to be NOT NULL, maybe not for the first time; `conflict`: the error's code
/// where two names are said.
pub(in crate::binder) fn say_not_null(
    column: &mut ColumnDef,
    name: Option<&str>,
    no_inherit: bool,
    conflict: SqlState,
) -> Result<()> {
    if let (Some(said), Some(name)) = (&column.not_null_name, name)
        && said != name
    {
        let message = format!("conflicting not-null constraint names \"{said}\" and \"{name}\"");
        return Err(Error::new(conflict, message));
    }
    if column.not_null && column.not_null_alone != no_inherit {
        let message = format!(
            "conflicting NO INHERIT declaration for not-null constraint on column \"{}\"",
            column.name
        );
        return Err(Error::new(state::SYNTAX_ERROR, message));
    }
    column.not_null = true;
    column.not_null_alone = no_inherit;
    column.not_null_name = column.not_null_name.take().or(name.map(str::to_owned));
    Ok(())
}
