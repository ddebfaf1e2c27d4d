//! Which names are seen from where.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, SqlType, Text};

use crate::binder::ddl::composite::relabelled;
use crate::binder::routine::plpgsql::ambiguous_variable;
use crate::binder::{Binder, expr::misspelled};
use crate::tree::expr::{Expr, RelId, Var, system};
use crate::tree::query::walk::QueryPartMut;
use throng_catalog::TableDef;
use throng_syntax::parse::ast::Pos;
use throng_syntax::plpgsql::Conflict;
use throng_values::func::CastContext;

/// What a FROM item, or several, make visible.
#[derive(Clone, Debug, Default)]
pub(in crate::binder) struct Names {
    /// By table name or alias.
    pub tables: Vec<NamedTable>,
    /// By column name alone, in the order of `*`; columns merged by USING are there once.
    pub columns: Vec<NamedColumn>,
}

#[derive(Clone, Debug)]
pub(in crate::binder) struct NamedTable {
    pub name: String,
    /// Where it is written without alias, its schema's name, so that `schema.table.column` finds
    /// it.
    pub schema: Option<String>,
    /// None for a join's alias.
    pub rel: Option<RelId>,
    pub columns: Vec<NamedColumn>,
    /// For system columns and locking.
    pub table: Option<Arc<TableDef>>,
    /// A catalog of the system's, which has the system column `tableoid`.
    pub catalog: bool,
    /// An alias of a single function value: the name is also the column.
    pub function: bool,
    /// The composite type that its rows are of, where no table says.
    pub row_type: Option<Oid>,
    /// On the side of an outer join that may have no row.
    pub nullable: bool,
}

impl NamedTable {
    /// A name for columns that are of no entry of their own.
    pub fn of_columns(name: &str, columns: Vec<NamedColumn>) -> NamedTable {
        NamedTable {
            name: name.to_owned(),
            schema: None,
            rel: None,
            columns,
            table: None,
            catalog: false,
            function: false,
            row_type: None,
            nullable: false,
        }
    }
}

#[derive(Clone, Debug)]
pub(in crate::binder) struct NamedColumn {
    pub name: String,
    pub expr: Expr,
}

impl Names {
    /// Adds another item's names; 42712 for a table name that is there already.
    pub fn join(&mut self, other: Names) -> Result<()> {
        for table in &other.tables {
            let same = |t: &&NamedTable| {
                t.name == table.name
                    && (t.schema.is_none() || table.schema.is_none() || t.schema == table.schema)
            };
            if self.tables.iter().any(|t| same(&t)) {
                let message = format!("table name \"{}\" specified more than once", table.name);
                return Err(Error::new(state::DUPLICATE_ALIAS, message));
            }
        }
        self.tables.extend(other.tables);
        self.columns.extend(other.columns);
        Ok(())
    }
}

/// The names at one level of query, and outwards.
#[derive(Clone, Copy)]
pub(in crate::binder) struct Scope<'s> {
    pub names: &'s Names,
    pub outer: Option<&'s Scope<'s>>,
    /// WITH queries that can be read at this level.
    pub ctes: &'s [CteName],
    /// Names beside this query that only LATERAL would let it use.
    pub barred: Option<&'s Names>,
}

/// A WITH query's name.
#[derive(Clone, Debug)]
pub(in crate::binder) struct CteName {
    pub name: String,
    pub reading: CteReading,
    pub columns: Vec<throng_values::func::RelColumn>,
}

/// What a WITH query's name stands for, by the query's index in the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::binder) enum CteReading {
    /// Its rows.
    Result(u32),
    /// In its own recursive term: the rows of the step before.
    LastStep(u32),
    /// It is written further on, and cannot be read yet.
    Later,
}

pub(in crate::binder) static NO_NAMES: Names = Names {
    tables: Vec::new(),
    columns: Vec::new(),
};

impl<'s> Scope<'s> {
    pub fn empty() -> Scope<'static> {
        Scope {
            names: &NO_NAMES,
            outer: None,
            ctes: &[],
            barred: None,
        }
    }
    pub fn within(names: &'s Names, outer: Option<&'s Scope<'s>>) -> Scope<'s> {
        Scope {
            names,
            outer,
            ctes: &[],
            barred: None,
        }
    }
    /// What stands behind WITH queries sees: these, and what is around.
    pub fn behind(ctes: &'s [CteName], outer: Option<&'s Scope<'s>>) -> Scope<'s> {
        Scope {
            names: &NO_NAMES,
            outer,
            ctes,
            barred: None,
        }
    }
    pub(in crate::binder) fn levels(&self) -> impl Iterator<Item = &Scope<'s>> {
        std::iter::successors(Some(self), |s| s.outer)
    }
    pub fn find_cte(&self, name: &str) -> Option<&CteName> {
        self.levels()
            .find_map(|s| s.ctes.iter().rev().find(|c| c.name == name))
    }
}

fn undefined_column(message: String, pos: Pos) -> Error {
    Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1)
}

fn ambiguous(name: &str, pos: Pos) -> Error {
    let message = format!("column reference \"{name}\" is ambiguous");
    Error::new(state::AMBIGUOUS_COLUMN, message).position(pos + 1)
}

/// A table's hidden columns.
fn system_column(table: &NamedTable, name: &str) -> Option<Expr> {
    if table.table.is_none() && !(table.catalog && name == "tableoid") {
        return None;
    }
    let (column, ty) = match name {
        "ctid" => (system::CTID, SqlType::TID),
        "xmin" => (system::XMIN, SqlType::XID),
        "cmin" => (system::CMIN, SqlType::CID),
        "xmax" => (system::XMAX, SqlType::XID),
        "cmax" => (system::CMAX, SqlType::CID),
        "tableoid" => (system::TABLEOID, SqlType::OID),
        _ => return None,
    };
    Some(Expr::Var(Var {
        rel: table.rel?,
        column,
        ty,
    }))
}

/// A table that cannot be named so: because it is not there, goes by another name, or is out of
/// reach.
fn missing_table(table: &str, scope: &Scope<'_>) -> Error {
    let invalid = format!("invalid reference to FROM-clause entry for table \"{table}\"");
    for level in scope.levels() {
        let aliased = level
            .names
            .tables
            .iter()
            .find(|t| t.table.as_ref().is_some_and(|def| def.name == table));
        if aliased.is_some_and(|found| found.name == table) {
            // It is there, but of another schema than was written.
            return Error::new(state::UNDEFINED_TABLE, invalid).detail(format!("There is an entry for table \"{table}\", but it cannot be referenced from this part of the query."));
        }
        if let Some(found) = aliased {
            return Error::new(state::UNDEFINED_TABLE, invalid).hint(format!(
                "Perhaps you meant to reference the table alias \"{}\".",
                found.name
            ));
        }
        let barred = level
            .barred
            .is_some_and(|n| n.tables.iter().any(|t| t.name == table));
        if barred {
            return Error::new(state::UNDEFINED_TABLE, invalid)
                .detail(format!("There is an entry for table \"{table}\", but it cannot be referenced from this part of the query."))
                .hint("To reference that table, you must mark this subquery with LATERAL.");
        }
    }
    let message = format!("missing FROM-clause entry for table \"{table}\"");
    Error::new(state::UNDEFINED_TABLE, message)
}

impl Binder<'_> {
    /// `a`, `t.a`, `s.t.a`.
    pub(in crate::binder) fn column(
        &mut self,
        parts: &[String],
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let conflict = self.conflict();
        if conflict == Some(Conflict::UseVariable)
            && let Some(Ok(found)) = self.variable(parts)
        {
            return Ok(found);
        }
        match self.column_in(parts, pos, scope) {
            Err(e) if matches!(e.code(), state::UNDEFINED_COLUMN | state::UNDEFINED_TABLE) => {
                let found = match conflict {
                    Some(_) => self.variable(parts),
                    None => self.argument(parts).map(Ok),
                };
                found
                    .or_else(|| self.computed_column(parts, pos, scope))
                    .unwrap_or(Err(e))
            }
            Ok(_)
                if conflict == Some(Conflict::Error)
                    && matches!(self.variable(parts), Some(Ok(_))) =>
            {
                Err(ambiguous_variable(parts, pos))
            }
            found => found,
        }
    }

    fn column_in(&mut self, parts: &[String], pos: Pos, scope: &Scope<'_>) -> Result<Expr> {
        let expr = match parts {
            [name] => self.plain_column(name, pos, scope)?,
            [table, name] => self.qualified_column(None, table, name, pos, scope)?,
            [schema, table, name] => {
                self.qualified_column(Some(schema), table, name, pos, scope)?
            }
            [database, schema, table, name]
                if self.catalog().current_database_name() == database =>
            {
                self.qualified_column(Some(schema), table, name, pos, scope)?
            }
            _ => {
                let name = parts.join(".");
                let message = format!("improper qualified name (too many dotted names): {name}");
                return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
            }
        };
        if let Expr::Var(var) = &expr {
            self.seen.push((var.rel, var.column, pos));
        }
        Ok(expr)
    }

    fn plain_column(&mut self, name: &str, pos: Pos, scope: &Scope<'_>) -> Result<Expr> {
        for level in scope.levels() {
            let mut found = level.names.columns.iter().filter(|c| c.name == name);
            if let Some(column) = found.next() {
                return match found.next() {
                    Some(_) => Err(ambiguous(name, pos)),
                    None => Ok(column.expr.clone()),
                };
            }
            let mut system = level
                .names
                .tables
                .iter()
                .filter_map(|t| system_column(t, name));
            if let Some(expr) = system.next() {
                return match system.next() {
                    Some(_) => Err(ambiguous(name, pos)),
                    None => Ok(expr),
                };
            }
        }
        // A table's name alone is its whole row.
        for level in scope.levels() {
            if let Some(table) = level.names.tables.iter().find(|t| t.name == name) {
                // As PostgreSQL numbers it.
                self.seen.extend(table.rel.map(|rel| (rel, 0, pos)));
                return self.whole_row(table, pos);
            }
        }
        let error = undefined_column(format!("column \"{name}\" does not exist"), pos);
        Err(misspelled::what_was_meant(error, None, name, scope))
    }

    /// `t.*` where a value stands.
    pub(in crate::binder) fn row_of_table(
        &mut self,
        parts: &[String],
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let (schema, table) = match parts {
            [table] => (None, table),
            [.., schema, table] => (Some(schema), table),
            [] => return Err(Error::internal("the row of no table")),
        };
        let found = self.named_table(schema, table, pos, scope)?;
        self.seen.extend(found.rel.map(|rel| (rel, 0, pos)));
        self.whole_row(found, pos)
    }

    fn whole_row(&mut self, table: &NamedTable, pos: Pos) -> Result<Expr> {
        if let ([column], true) = (&table.columns[..], table.function) {
            return Ok(column.expr.clone());
        }
        let fields = table.columns.iter().map(|c| c.expr.clone()).collect();
        let names = table.columns.iter().map(|c| Text::new(&c.name)).collect();
        let is_null = |c: &NamedColumn| matches!(c.expr, Expr::Const(Datum::Null, _));
        if table.nullable && table.columns.iter().all(is_null) {
            return Ok(Expr::null(SqlType::RECORD));
        }
        let row = Expr::Row(fields, Some(names));
        let row = match (&table.table, table.row_type) {
            (Some(def), _) => self.as_row_type(row, def.oid),
            (None, Some(ty)) => relabelled(row, ty, CastContext::Implicit),
            (None, None) => row,
        };
        if !table.nullable {
            return Ok(row);
        }
        // A row that is not there is NULL, which is not a row of NULLs.
        let present = |rel| {
            Expr::Var(Var {
                rel,
                column: system::PRESENT,
                ty: SqlType::BOOL,
            })
        };
        let place = system_column(table, "ctid").or_else(|| table.rel.map(present));
        let Some(place) = place else {
            let what = "the whole row of a join that an outer join may leave without a row";
            return Err(Error::unsupported(what).position(pos + 1));
        };
        Ok(Expr::Case {
            operand: None,
            whens: vec![(Expr::IsNull(Box::new(place)), Expr::null(row.ty()))],
            ty: row.ty(),
            default: Box::new(row),
        })
    }

    fn qualified_column(
        &mut self,
        schema: Option<&String>,
        table: &str,
        name: &str,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let found = self.named_table(schema, table, pos, scope)?;
        let mut columns = found.columns.iter().filter(|c| c.name == name);
        if let Some(column) = columns.next() {
            return match columns.next() {
                Some(_) => Err(ambiguous(name, pos)),
                None => Ok(column.expr.clone()),
            };
        }
        system_column(found, name).ok_or_else(|| {
            let error = undefined_column(format!("column {table}.{name} does not exist"), pos);
            misspelled::what_was_meant(error, Some(table), name, scope)
        })
    }

    /// The innermost table of that name.
    pub(in crate::binder) fn named_table<'s>(
        &self,
        schema: Option<&String>,
        table: &str,
        pos: Pos,
        scope: &Scope<'s>,
    ) -> Result<&'s NamedTable> {
        let of_schema = |t: &NamedTable| match (schema, &t.schema) {
            (None, _) => true,
            (Some(wanted), Some(own)) => {
                own == wanted
                    || self
                        .schema_named(wanted)
                        .is_some_and(|oid| self.schema_name(oid).as_ref() == Some(own))
            }
            (Some(_), None) => false,
        };
        let mut level = Some(scope);
        while let Some(current) = level {
            let names: &'s Names = current.names;
            let mut found = names
                .tables
                .iter()
                .filter(|t| t.name == table && of_schema(t));
            if let Some(named) = found.next() {
                if found.next().is_some() {
                    let message = format!("table reference \"{table}\" is ambiguous");
                    return Err(Error::new(state::DUPLICATE_ALIAS, message).position(pos + 1));
                }
                return Ok(named);
            }
            level = current.outer;
        }
        Err(missing_table(table, scope).position(pos + 1))
    }
}

/// Takes the columns of one entry from another.
pub(in crate::binder) fn of_entry(expr: &mut Expr, from: RelId, to: RelId) {
    expr.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(Expr::Var(var)) = part
            && var.rel == from
        {
            var.rel = to;
        }
    });
}

/// The same names with one entry's columns taken from another.
pub(in crate::binder) fn renamed(names: &Names, from: RelId, to: RelId) -> Names {
    let change = |columns: &mut Vec<NamedColumn>| {
        for column in columns {
            of_entry(&mut column.expr, from, to);
        }
    };
    let mut names = names.clone();
    change(&mut names.columns);
    for table in &mut names.tables {
        change(&mut table.columns);
        if table.rel == Some(from) {
            table.rel = Some(to);
        }
    }
    names
}
