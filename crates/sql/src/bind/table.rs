//! CREATE TABLE and ALTER TABLE.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use super::dml::row_names;
use super::scope::Scope;
use super::{Binder, Clause, slots_of_row};
use crate::catalog::{ColumnDef, ConstraintKind, Identity, Persistence, Relation, TableDef};
use crate::command::{
    AlterTable, CreateTable, Ddl, NewColumn, NewConstraint, NewConstraintKind, SequenceOptions,
};
use crate::expr::Expr;
use crate::func::{CastContext, find_cast};
use crate::parse::ast::{
    self, AlterAction, ColumnConstraintKind as C, Pos, TableConstraintKind as T,
};
use crate::query::QueryKind;

const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];

/// What is known while a table's parts are bound.
struct Draft {
    table: TableDef,
    /// Whether a primary key was declared.
    has_key: bool,
    constraints: Vec<NewConstraint>,
}

fn no_position(mut error: Error) -> Error {
    error.fields_mut().position = None;
    error
}

impl Binder<'_> {
    pub(super) fn create_table(&mut self, ast: &ast::CreateTable) -> Result<Ddl> {
        let schema = self.creation_schema(&ast.name)?;
        let persistence = if ast.unlogged {
            Persistence::Unlogged
        } else {
            Persistence::Permanent
        };
        let options = self.table_options(&ast.options)?;
        let table = TableDef {
            oid: Oid::NONE,
            schema,
            name: ast.name.last().to_string(),
            owner: self.ctx.user,
            file: throng_types::FileId(0),
            columns: vec![],
            persistence,
            options,
        };
        let mut draft = Draft {
            table,
            has_key: false,
            constraints: vec![],
        };
        let mut columns = Vec::new();
        let mut query = None;
        if let Some(select) = &ast.query {
            let (new, bound) = self.columns_of_query(select)?;
            columns = new;
            query = bound;
        }
        // All columns first: constraints may name later ones.
        for column in &ast.columns {
            let new = self.column_def(column, &draft.table)?;
            draft.table.columns.push(new.def.clone());
            columns.push(new);
        }
        for (i, column) in ast.columns.iter().enumerate() {
            self.column_constraints(column, &mut columns[i], &mut draft)?;
            draft.table.columns[i] = columns[i].def.clone();
        }
        for constraint in &ast.constraints {
            if let T::NotNull(name) = &constraint.kind {
                let attnum = self.draft_column(&draft.table, name, constraint.pos)?;
                columns[attnum as usize - 1].def.not_null = true;
                continue;
            }
            let new = self.table_constraint(constraint, &mut draft)?;
            draft.constraints.push(new);
        }
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
            query,
        }))
    }

    #[allow(clippy::type_complexity)] // Columns and the query that fills them.
    fn columns_of_query(
        &mut self,
        ast: &ast::CreateTableAs,
    ) -> Result<(Vec<NewColumn>, Option<Box<crate::query::BoundQuery>>)> {
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
            let def = ColumnDef::new(name, column.ty);
            columns.push(NewColumn {
                def,
                sequence: None,
                default: None,
            });
        }
        let bound = match ast.with_data {
            true => Some(Box::new(self.bound(QueryKind::Select(query))?)),
            false => None,
        };
        Ok((columns, bound))
    }

    fn table_options(&self, list: &[(String, String)]) -> Result<Vec<(String, String)>> {
        for (name, value) in list {
            let known = name.strip_prefix("toast.").unwrap_or(name);
            let range = match known {
                "fillfactor" => Some((10.0, 100.0)),
                "parallel_workers" => Some((0.0, 1024.0)),
                "toast_tuple_target" => Some((128.0, 8160.0)),
                "user_catalog_table" | "vacuum_truncate" | "vacuum_index_cleanup" => None,
                "oids" if value.eq_ignore_ascii_case("false") => None,
                _ if known.starts_with("autovacuum_") || known.starts_with("log_autovacuum_") => {
                    None
                }
                _ => {
                    let message = format!("unrecognized parameter \"{name}\"");
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
            };
            let Some((low, high)) = range else { continue };
            let Ok(number) = value.parse::<f64>() else {
                let message = format!("invalid value for integer option \"{name}\": {value}");
                return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
            };
            if !(low..=high).contains(&number) {
                let message = format!("value {value} out of bounds for option \"{name}\"");
                return Err(
                    Error::new(state::INVALID_PARAMETER_VALUE, message).detail(format!(
                        "Valid values are between \"{low}\" and \"{high}\"."
                    )),
                );
            }
        }
        Ok(list.to_vec())
    }

    fn draft_column(&self, table: &TableDef, name: &str, pos: Pos) -> Result<u16> {
        table.attnum(name).ok_or_else(|| {
            let message = format!("column \"{name}\" named in key does not exist");
            Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1)
        })
    }

    /// A column without its constraints.
    fn column_def(&mut self, ast: &ast::ColumnDef, table: &TableDef) -> Result<NewColumn> {
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
        let ty = match serial {
            Some(ty) => ty,
            None => self.type_of(&ast.ty)?,
        };
        check_storable(name, ty.oid)?;
        let mut def = ColumnDef::new(name, ty);
        def.not_null = serial.is_some();
        def.collation = match &ast.collation {
            Some(collation) => self.column_collation(collation, ty)?,
            None => None,
        };
        let sequence = serial.map(|ty| SequenceOptions {
            ty: Some(ty.oid),
            ..SequenceOptions::default()
        });
        Ok(NewColumn {
            def,
            sequence,
            default: None,
        })
    }

    fn column_collation(&self, name: &ast::Name, ty: SqlType) -> Result<Option<String>> {
        if ty.info().map(|i| i.category) != Some(b'S') {
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

    fn column_constraints(
        &mut self,
        ast: &ast::ColumnDef,
        new: &mut NewColumn,
        draft: &mut Draft,
    ) -> Result<()> {
        let name = &ast.name;
        let table_name = draft.table.name.clone();
        let (mut said_null, mut said_not_null) = (false, new.def.not_null);
        let column = || vec![(name.clone(), ast.pos)];
        for constraint in &ast.constraints {
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
                    new.def.not_null |= not;
                    continue;
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
                C::PrimaryKey { options } => T::PrimaryKey {
                    columns: column(),
                    options: options.clone(),
                },
                C::Unique {
                    nulls_not_distinct,
                    options,
                } => T::Unique {
                    columns: column(),
                    nulls_not_distinct: *nulls_not_distinct,
                    options: options.clone(),
                },
                C::Check(source) => T::Check(source.clone()),
                C::References(references) => T::ForeignKey {
                    columns: column(),
                    references: references.clone(),
                },
            };
            let constraint = ast::TableConstraint {
                name: constraint.name.clone(),
                kind,
                not_valid: false,
                pos,
            };
            let bound = self.table_constraint(&constraint, draft)?;
            draft.constraints.push(bound);
        }
        Ok(())
    }

    pub(super) fn identity_options(
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
    fn set_default(&mut self, column: &mut ColumnDef, source: &ast::Source) -> Result<Expr> {
        let bound = self.default_expr(&source.expr)?;
        if bound.any(&mut |e| matches!(e, Expr::Var(_))) {
            let message = "cannot use column reference in DEFAULT expression";
            return Err(
                Error::new(state::FEATURE_NOT_SUPPORTED, message).position(source.expr.pos + 1)
            );
        }
        let from = bound.type_oid();
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
        column.default = match (sequence, cast.is_null_const()) {
            (None, false) => Some(source.text.clone()),
            _ => None,
        };
        Ok(cast)
    }

    fn default_expr(&mut self, ast: &ast::Expr) -> Result<Expr> {
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

    fn table_constraint(
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
            Ok(names)
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
            T::PrimaryKey { columns, options } => NewConstraintKind::PrimaryKey {
                columns: key_columns(columns)?,
                options: self.index_options(options)?,
            },
            T::Unique {
                columns,
                nulls_not_distinct,
                options,
            } => NewConstraintKind::Unique {
                columns: key_columns(columns)?,
                nulls_not_distinct: *nulls_not_distinct,
                options: self.index_options(options)?,
            },
            T::UsingIndex { index, primary } => {
                let found = self
                    .catalog()
                    .indexes_of(table.oid)
                    .iter()
                    .find(|i| i.name == *index);
                let Some(found) = found else {
                    let message = format!("index \"{index}\" does not exist");
                    return Err(Error::new(state::UNDEFINED_OBJECT, message).position(ast.pos + 1));
                };
                NewConstraintKind::UsingIndex {
                    index: found.oid,
                    primary: *primary,
                }
            }
            T::Check(source) => {
                let (bound, columns) = self.check_source(source, table)?;
                NewConstraintKind::Check {
                    expr: source.text.clone(),
                    columns,
                    bound,
                }
            }
            T::ForeignKey {
                columns,
                references,
            } => self.foreign_key(columns, references, table, ast.pos)?,
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
            name: ast.name.clone(),
            kind,
            not_valid: ast.not_valid,
        })
    }

    pub(super) fn index_options(&self, list: &[(String, String)]) -> Result<Vec<(String, String)>> {
        for (name, value) in list {
            match name.as_str() {
                "fillfactor" => {
                    let ok = value.parse::<u32>().is_ok_and(|n| (10..=100).contains(&n));
                    if !ok {
                        let message =
                            format!("value {value} out of bounds for option \"fillfactor\"");
                        return Err(Error::new(state::INVALID_PARAMETER_VALUE, message)
                            .detail("Valid values are between \"10\" and \"100\"."));
                    }
                }
                "deduplicate_items" => {}
                _ => {
                    let message = format!("unrecognized parameter \"{name}\"");
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
            }
        }
        Ok(list.to_vec())
    }

    /// A CHECK's condition over the table's row, and the columns it uses.
    fn check_source(
        &mut self,
        source: &ast::Source,
        table: &TableDef,
    ) -> Result<(Expr, Vec<String>)> {
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
        Ok((slots_of_row(bound), columns))
    }

    fn foreign_key(
        &mut self,
        columns: &[(String, Pos)],
        references: &ast::References,
        table: &TableDef,
        pos: Pos,
    ) -> Result<NewConstraintKind> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in columns {
            if table.attnum(name).is_none() {
                let message = format!(
                    "column \"{name}\" referenced in foreign key constraint does not exist"
                );
                return Err(Error::new(state::UNDEFINED_COLUMN, message));
            }
            if names.contains(name) {
                let message = "foreign key referenced-columns list must not contain duplicates";
                return Err(Error::new(state::INVALID_FOREIGN_KEY, message).position(pos + 1));
            }
            names.push(name.clone());
        }
        let this = self.refers_to_self(&references.table, table)?;
        let ref_table = match this {
            true => None,
            false => match self.relation(&references.table).map_err(no_position)? {
                Relation::Table(found) => Some(found.oid),
                other => {
                    let message =
                        format!("referenced relation \"{}\" is not a table", other.name());
                    return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
                }
            },
        };
        Ok(NewConstraintKind::ForeignKey {
            columns: names,
            ref_table,
            ref_columns: references.columns.clone(),
            on_update: references.on_update,
            on_delete: references.on_delete,
            match_full: references.match_full,
        })
    }

    /// Whether a written name means the table being made or changed.
    fn refers_to_self(&self, name: &ast::Name, table: &TableDef) -> Result<bool> {
        if name.last() != table.name {
            return Ok(false);
        }
        match name.schema() {
            Some(schema) => Ok(self.schema(schema)? == table.schema),
            None if table.oid == Oid::NONE => Ok(true),
            None => Ok(self
                .find_relation(name)?
                .is_some_and(|r| r.oid() == table.oid)),
        }
    }

    pub(super) fn alter_table(
        &mut self,
        name: &ast::Name,
        if_exists: bool,
        actions: &[AlterAction],
    ) -> Result<Ddl> {
        let Some(table) = self.owned_table(name, if_exists)? else {
            return Ok(Ddl::Nothing { tag: "ALTER TABLE" });
        };
        let has_key = self.catalog().primary_key(table.oid).is_some();
        let mut draft = Draft {
            table: (*table).clone(),
            has_key,
            constraints: vec![],
        };
        let mut bound = Vec::with_capacity(actions.len());
        for action in actions {
            self.alter_action(action, &mut draft, &mut bound)?;
        }
        Ok(Ddl::AlterTable {
            table: table.oid,
            actions: bound,
        })
    }

    fn alter_action(
        &mut self,
        action: &AlterAction,
        draft: &mut Draft,
        out: &mut Vec<AlterTable>,
    ) -> Result<()> {
        let column = |b: &Self, draft: &Draft, name: &str| {
            b.target_column(&draft.table, name, 0).map_err(no_position)
        };
        match action {
            AlterAction::AddColumn {
                column,
                if_not_exists,
            } => {
                if draft.table.attnum(&column.name).is_some() {
                    let message = format!(
                        "column \"{}\" of relation \"{}\" already exists",
                        column.name, draft.table.name
                    );
                    if *if_not_exists {
                        let notice = Error::new(state::DUPLICATE_COLUMN, message + ", skipping");
                        self.notice(notice);
                        return Ok(());
                    }
                    return Err(Error::new(state::DUPLICATE_COLUMN, message));
                }
                let mut new = self.column_def(column, &draft.table)?;
                draft.table.columns.push(new.def.clone());
                self.column_constraints(column, &mut new, draft)?;
                if let Some(last) = draft.table.columns.last_mut() {
                    *last = new.def.clone();
                }
                let constraints = std::mem::take(&mut draft.constraints);
                out.push(AlterTable::AddColumn {
                    column: new,
                    constraints,
                });
            }
            AlterAction::DropColumn {
                column: name,
                if_exists,
                cascade,
            } => {
                let Some(attnum) = draft.table.attnum(name) else {
                    if *if_exists {
                        self.notice(Error::new(
                            state::UNDEFINED_COLUMN,
                            format!(
                                "column \"{name}\" of relation \"{}\" does not exist, skipping",
                                draft.table.name
                            ),
                        ));
                        return Ok(());
                    }
                    return column(self, draft, name).map(|_| ());
                };
                draft.table.columns[attnum as usize - 1].dropped = true;
                out.push(AlterTable::DropColumn {
                    attnum,
                    cascade: *cascade,
                });
            }
            AlterAction::SetDefault {
                column: name,
                default,
            } => {
                let attnum = column(self, draft, name)?;
                let mut def = draft.table.column(attnum).clone();
                if def.identity.is_some() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is an identity column",
                        draft.table.name
                    );
                    let error = Error::new(state::SYNTAX_ERROR, message);
                    return Err(match default {
                        Some(_) => error,
                        None => error
                            .hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."),
                    });
                }
                def.default = None;
                def.sequence = None;
                if let Some(source) = default {
                    self.set_default(&mut def, source).map_err(no_position)?;
                }
                out.push(AlterTable::SetDefault {
                    attnum,
                    default: def.default.clone(),
                    sequence: def.sequence,
                });
                draft.table.columns[attnum as usize - 1] = def;
            }
            AlterAction::SetNotNull(name) => {
                out.push(AlterTable::SetNotNull(column(self, draft, name)?));
            }
            AlterAction::DropNotNull(name) => {
                let attnum = column(self, draft, name)?;
                if draft.table.column(attnum).identity.is_some() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is an identity column",
                        draft.table.name
                    );
                    return Err(Error::new(state::SYNTAX_ERROR, message));
                }
                out.push(AlterTable::DropNotNull(attnum));
            }
            AlterAction::SetType {
                column: name,
                ty,
                collation,
                using,
                pos,
            } => {
                let attnum = column(self, draft, name)?;
                let action = self.set_type(
                    &draft.table,
                    attnum,
                    ty,
                    collation.as_ref(),
                    using.as_ref(),
                    *pos,
                )?;
                if let AlterTable::SetType { ty, .. } = &action {
                    draft.table.columns[attnum as usize - 1].ty = *ty;
                }
                out.push(action);
            }
            AlterAction::AddIdentity {
                column: name,
                always,
                options,
            } => {
                let attnum = column(self, draft, name)?;
                let def = draft.table.column(attnum);
                let of = format!("column \"{name}\" of relation \"{}\"", draft.table.name);
                let wrong = |message: String| {
                    Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
                };
                if def.identity.is_some() {
                    return wrong(format!("{of} is already an identity column"));
                }
                if def.default.is_some() || def.sequence.is_some() {
                    return wrong(format!("{of} already has a default value"));
                }
                if !def.not_null {
                    return wrong(format!(
                        "{of} must be declared NOT NULL before identity can be added"
                    ));
                }
                let options = self.identity_options(def.ty, options)?;
                out.push(AlterTable::AddIdentity {
                    attnum,
                    identity: identity(*always),
                    options,
                });
            }
            AlterAction::SetIdentity {
                column: name,
                always,
                options,
            } => {
                let attnum = column(self, draft, name)?;
                if draft.table.column(attnum).identity.is_none() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is not an identity column",
                        draft.table.name
                    );
                    return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
                }
                let (options, _) = self.sequence_options(options)?;
                let identity = always.map(identity);
                out.push(AlterTable::SetIdentity {
                    attnum,
                    identity,
                    options,
                });
            }
            AlterAction::DropIdentity {
                column: name,
                if_exists,
            } => {
                let attnum = column(self, draft, name)?;
                if draft.table.column(attnum).identity.is_none() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is not an identity column",
                        draft.table.name
                    );
                    let code = state::OBJECT_NOT_IN_PREREQUISITE_STATE;
                    if !if_exists {
                        return Err(Error::new(code, message));
                    }
                    self.notice(Error::new(code, message + ", skipping"));
                    return Ok(());
                }
                out.push(AlterTable::DropIdentity { attnum });
            }
            AlterAction::AddConstraint(constraint) => {
                if let T::NotNull(name) = &constraint.kind {
                    out.push(AlterTable::SetNotNull(column(self, draft, name)?));
                    return Ok(());
                }
                let new = self.table_constraint(constraint, draft);
                let placed = matches!(constraint.kind, T::UsingIndex { .. });
                let new = new.map_err(|e| if placed { e } else { no_position(e) })?;
                out.push(AlterTable::AddConstraint(new));
            }
            AlterAction::DropConstraint {
                name,
                if_exists,
                cascade,
            } => match self.table_constraint_named(&draft.table, name) {
                Ok(constraint) => out.push(AlterTable::DropConstraint {
                    constraint,
                    cascade: *cascade,
                }),
                Err(e) if *if_exists => {
                    let message = format!("{}, skipping", e.message());
                    self.notice(Error::new(e.code(), message));
                }
                Err(e) => return Err(e),
            },
            AlterAction::ValidateConstraint(name) => {
                let constraint = self.table_constraint_named(&draft.table, name)?;
                let check = self.stored_check(&draft.table, constraint)?;
                out.push(AlterTable::ValidateConstraint { constraint, check });
            }
            AlterAction::SetOptions(options) => {
                out.push(AlterTable::SetOptions(self.table_options(options)?));
            }
            AlterAction::ResetOptions(names) => {
                out.push(AlterTable::ResetOptions(names.clone()));
            }
            AlterAction::SetLogged(logged) => out.push(AlterTable::SetPersistence(match logged {
                true => Persistence::Permanent,
                false => Persistence::Unlogged,
            })),
            AlterAction::OwnerTo(role) => {
                out.push(AlterTable::SetOwner(self.role(role)?));
            }
            AlterAction::Nothing => out.push(AlterTable::Nothing),
        }
        Ok(())
    }

    /// A CHECK constraint's condition over the row; None for other constraints.
    fn stored_check(&mut self, table: &TableDef, constraint: Oid) -> Result<Option<Expr>> {
        let kind = self.catalog().constraint(constraint).map(|c| &c.kind);
        let Some(ConstraintKind::Check { expr, .. }) = kind else {
            return Ok(None);
        };
        let ast = crate::parse::parse_expr(expr)?;
        let bound = self.expr_over_table(&ast, table, None)?;
        Ok(Some(slots_of_row(bound)))
    }

    pub(super) fn table_constraint_named(&self, table: &TableDef, name: &str) -> Result<Oid> {
        let found = self.catalog().constraint_by_name(table.oid, name);
        found.map(|c| c.oid).ok_or_else(|| {
            let message = format!(
                "constraint \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
            Error::new(state::UNDEFINED_OBJECT, message)
        })
    }

    fn set_type(
        &mut self,
        table: &TableDef,
        attnum: u16,
        ty: &ast::TypeName,
        collation: Option<&ast::Name>,
        using: Option<&ast::Expr>,
        pos: Pos,
    ) -> Result<AlterTable> {
        let to = self.type_of(ty)?;
        let column = table.column(attnum);
        check_storable(&column.name, to.oid)?;
        let collation = match collation {
            Some(name) => self.column_collation(name, to)?,
            None => None,
        };
        let shared = Arc::new(table.clone());
        let rel = self.new_rel();
        let names = row_names(&shared, &table.name, rel);
        let scope = Scope::within(&names, None);
        let value = match using {
            Some(ast) => self.in_clause(Clause::Other("transform expressions"), |b| {
                b.expr(ast, &scope)
            })?,
            None => self.column(std::slice::from_ref(&column.name), pos, &scope)?,
        };
        if value.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = "cannot use subquery in transform expression";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let cast = self.try_coerce(value, to, CastContext::Assignment, pos)?;
        let Some(cast) = cast else {
            let target = throng_types::sqltype::format_type(to);
            let (message, hint) = match using {
                None => (
                    format!(
                        "column \"{}\" cannot be cast automatically to type {}",
                        column.name,
                        type_name(to.oid)
                    ),
                    format!(
                        "You might need to specify \"USING {}::{target}\".",
                        crate::parse::quote_ident(&column.name)
                    ),
                ),
                Some(_) => (
                    format!(
                        "result of USING clause for column \"{}\" cannot be cast automatically to type {}",
                        column.name,
                        type_name(to.oid)
                    ),
                    "You might need to add an explicit cast.".to_string(),
                ),
            };
            return Err(Error::new(state::DATATYPE_MISMATCH, message).hint(hint));
        };
        self.check_default_fits(column, to)?;
        let same_bytes = using.is_none() && same_bytes(column.ty, to);
        let using = Box::new(slots_of_row(cast));
        Ok(AlterTable::SetType {
            attnum,
            ty: to,
            collation,
            using,
            same_bytes,
        })
    }
}

impl Binder<'_> {
    /// A column's default must go into its new type.
    fn check_default_fits(&mut self, column: &ColumnDef, to: SqlType) -> Result<()> {
        let misfit = || {
            let message = format!(
                "default for column \"{}\" cannot be cast automatically to type {}",
                column.name,
                type_name(to.oid)
            );
            Err(Error::new(state::DATATYPE_MISMATCH, message))
        };
        if column.sequence.is_some() {
            return match find_cast(oid::INT8, to.oid, CastContext::Assignment).is_some()
                || to.oid == oid::INT8
            {
                true => Ok(()),
                false => misfit(),
            };
        }
        let Some(text) = &column.default else {
            return Ok(());
        };
        let ast = crate::parse::parse_expr(text)?;
        let bound = self.default_expr(&ast).map_err(no_position)?;
        match self
            .try_coerce(bound, to, CastContext::Assignment, 0)
            .map_err(no_position)?
        {
            Some(_) => Ok(()),
            None => misfit(),
        }
    }
}

fn identity(always: bool) -> Identity {
    if always {
        Identity::Always
    } else {
        Identity::ByDefault
    }
}

fn key_kind(kind: &T) -> &'static str {
    match kind {
        T::PrimaryKey { .. } => "primary key",
        _ => "unique",
    }
}

/// 42P16 for a type no column can have.
fn check_storable(column: &str, ty: Oid) -> Result<()> {
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

/// Whether every stored value of one type is the same bytes in the other.
fn same_bytes(from: SqlType, to: SqlType) -> bool {
    let text = |ty: SqlType| matches!(ty.oid, oid::TEXT | oid::VARCHAR);
    if from == to {
        return true;
    }
    if text(from) && text(to) {
        return to.typmod == -1 || (from.typmod != -1 && from.typmod <= to.typmod);
    }
    if from.oid == oid::NUMERIC && to.oid == oid::NUMERIC {
        let (old, new) = (
            SqlType::numeric_precision(from.typmod),
            SqlType::numeric_precision(to.typmod),
        );
        return match (old, new) {
            (_, None) => true,
            (Some((p, s)), Some((q, t))) => s == t && p <= q,
            (None, Some(_)) => false,
        };
    }
    false
}
