//! INSERT, UPDATE, DELETE.

mod columns;
pub(super) mod copy;
pub(super) mod generated;
pub(super) mod merge;
pub(super) mod updatable;

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Datum, Error, Result, SqlType};

use super::ddl::composite::RowItem;
use super::query::scope::{NamedColumn, NamedTable, Names, Scope, of_entry, renamed};
use super::row_security::reads_rows;
use super::{Binder, Clause};
use crate::tree::expr::{Expr, RelId, Subquery, SubqueryKind, Var};
use crate::tree::query::{
    Body, Check, CheckOf, ConflictAction, Delete, FromItem, Insert, OnConflict, Query, Rel, Select,
    Target, Update,
};
pub(super) use columns::named_columns;
use columns::{must_be_default, part_is_given, written_columns, written_width};
use generated::wrong_value;
use throng_catalog::{ColumnDef, ConstraintKind, Identity, Relation, TableDef};
use throng_syntax::parse::ast::{self, Node, Overriding, Pos};
use throng_values::acl::right;
use updatable::{Verb, WriteTarget};

/// Names of a table's row under an entry.
pub(super) fn row_names(table: &Arc<TableDef>, alias: &str, rel: RelId) -> Names {
    let columns: Vec<NamedColumn> = table
        .live_columns()
        .map(|(attnum, column)| {
            let var = Var {
                rel,
                column: attnum as i16,
                ty: column.ty,
            };
            NamedColumn {
                name: column.name.clone(),
                expr: Expr::Var(var),
            }
        })
        .collect();
    let named = NamedTable {
        name: alias.to_string(),
        schema: None,
        rel: Some(rel),
        columns: columns.clone(),
        table: Some(table.clone()),
        catalog: false,
        function: false,
        row_type: None,
        nullable: false,
    };
    Names {
        tables: vec![named],
        columns,
    }
}

impl Binder<'_> {
    /// The table a statement writes to.
    pub(super) fn target_table(&self, name: &ast::Name) -> Result<Arc<TableDef>> {
        let wrong = |message: String| {
            Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(name.pos + 1))
        };
        match self.relation(name)? {
            Relation::Table(table) if table.is_materialized() => {
                let message = format!("cannot change materialized view \"{}\"", table.name);
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            Relation::Table(table) => Ok(table),
            Relation::Virtual(table) => {
                let message = match self.catalog().is_superuser(self.user) {
                    true => format!("permission denied: \"{}\" is a system catalog", table.name),
                    false => format!("permission denied for table {}", table.name),
                };
                Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
            }
            Relation::View(view) => wrong(format!("\"{}\" is not a table", view.name)),
            Relation::Sequence(sequence) => {
                let message = format!("cannot change sequence \"{}\"", sequence.name);
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            Relation::Index(index) => wrong(format!("cannot open relation \"{}\"", index.name)),
        }
    }

    /// A column to be written.
    pub(super) fn target_column(&self, table: &TableDef, name: &str, pos: Pos) -> Result<u16> {
        table.attnum(name).ok_or_else(|| {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
            Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1)
        })
    }

    /// What a column gets when it is given nothing.
    pub(super) fn default_of(&mut self, column: &ColumnDef) -> Result<Expr> {
        if column.dropped || column.generated.is_some() {
            return Ok(Expr::null(column.ty));
        }
        if let Some(sequence) = column.sequence {
            let regclass = SqlType::plain(throng_types::oid::REGCLASS);
            let sequence = Expr::Const(Datum::Oid(sequence.0), regclass);
            let mut next = self.apply("nextval", vec![sequence], 0)?;
            if let (Some(_), Expr::Call { func, .. }) = (column.identity, &mut next) {
                *func = &throng_values::func::system::NEXT_OF_IDENTITY;
            }
            return self.assign_to(next, column, 0);
        }
        let of_domain = || self.domain_default(column.domain);
        let Some(text) = column.default.clone().or_else(of_domain) else {
            return self.in_domain(Expr::null(column.ty), column.domain);
        };
        let ast = throng_syntax::parse::parse_expr(&text)?;
        let stored = |mut e: Error| {
            e.fields_mut().position = None;
            e
        };
        let bound = self
            .in_clause(Clause::Default, |b| b.expr(&ast, &Scope::empty()))
            .map_err(stored)?;
        self.assign_to(bound, column, 0).map_err(stored)
    }

    /// An expression over a table's columns, under entry 0.
    pub(super) fn expr_over_table(
        &mut self,
        ast: &ast::Expr,
        table: &TableDef,
        to: Option<SqlType>,
    ) -> Result<Expr> {
        let table = Arc::new(table.clone());
        let rel = self.new_rel();
        let names = row_names(&table, &table.name, rel);
        let scope = Scope::within(&names, None);
        let bound = self.in_clause(Clause::Check, |b| b.expr(ast, &scope))?;
        let bound = self.over_stored(bound, &table, rel)?;
        match to {
            Some(ty) => self.assign(bound, "value", ty, ast.pos),
            None => Ok(bound),
        }
    }

    /// The table's CHECK constraints over a row, and what is NOT NULL of what rows do not hold.
    pub(super) fn checks(&mut self, table: &Arc<TableDef>, rel: RelId) -> Result<Vec<Check>> {
        let names = row_names(table, &table.name, rel);
        let scope = Scope::within(&names, None);
        let mut checks = self.virtual_not_nulls(table, rel);
        for constraint in self.catalog().constraints_of(table.oid) {
            let ConstraintKind::Check { expr, .. } = &constraint.kind else {
                continue;
            };
            if !constraint.deferral.is_enforced() {
                continue;
            }
            let ast = throng_syntax::parse::parse_expr(expr)?;
            let expr = self.in_clause(Clause::Check, |b| {
                let bound = b.expr(&ast, &scope)?;
                b.condition(bound, "CHECK", ast.pos)
            })?;
            checks.push(Check {
                name: constraint.name.clone(),
                expr,
                of: CheckOf::Constraint,
            });
        }
        for check in &mut checks {
            let expr = std::mem::replace(&mut check.expr, Expr::bool(true));
            check.expr = self.over_stored(expr, table, rel)?;
        }
        Ok(checks)
    }

    /// `before` and `after`: the target's row under the names OLD and NEW.
    pub(super) fn returning(
        &mut self,
        ast: &ast::Returning,
        names: &Names,
        (before, after): (NamedTable, NamedTable),
        outer: &Scope<'_>,
    ) -> Result<Vec<Target>> {
        let mut rows = Names::default();
        for (mut row, given, plain) in [(before, &ast.old, "old"), (after, &ast.new, "new")] {
            if let Some((name, pos)) = given {
                let mut taken = names.tables.iter().chain(&rows.tables);
                if taken.any(|t| t.name == *name) {
                    let message = format!("table name \"{name}\" specified more than once");
                    return Err(Error::new(state::DUPLICATE_ALIAS, message).position(pos + 1));
                }
            }
            row.name = given.as_ref().map_or(plain, |(name, _)| name).to_owned();
            row.schema = None;
            rows.tables.push(row);
        }
        // A table of these names hides them.
        let rows = Scope::within(&rows, Some(outer));
        let scope = Scope::within(names, Some(&rows));
        self.in_clause(Clause::Returning, |b| b.targets(&ast.items, &scope))
    }

    /// `around`: what it can see from where it stands.
    pub(super) fn insert(
        &mut self,
        ast: &ast::Insert,
        around: Option<&Scope<'_>>,
    ) -> Result<Insert> {
        let ctes = self.bind_ctes(&ast.with, ast.recursive, around)?;
        let outer = Scope::behind(&ctes, around);
        let target = self.write_target(&ast.table, ast.alias.as_deref(), Verb::Insert)?;
        let (table, rel, old) = (target.table.clone(), target.rel, self.new_rel());
        let columns = self.insert_columns(ast, &target)?;
        let (source, columns) = self.insert_source(ast, &target.given, &columns, &outer)?;
        let mut values = Vec::with_capacity(table.columns.len());
        for (i, column) in target.given.columns.iter().enumerate() {
            let attnum = i as u16 + 1;
            let place = columns.iter().position(|(n, _)| *n == attnum);
            let user_value = ast.overriding == Some(Overriding::User) && column.identity.is_some();
            values.push(match place {
                Some(place) if !user_value => {
                    let ty = source.columns()[place].ty;
                    let column = place as i16 + 1;
                    Expr::Var(Var {
                        rel: source.output,
                        column,
                        ty,
                    })
                }
                _ => self.default_of(column)?,
            });
        }
        let names = &target.names;
        let mut on_conflict = match &ast.on_conflict {
            Some(_) if target.instead.is_some() => {
                let what = "ON CONFLICT on a view with INSTEAD OF triggers";
                return Err(Error::unsupported(what));
            }
            Some(clause) => Some(self.on_conflict(clause, &target, &outer)?),
            None => None,
        };
        let generated = self.stored_columns(&table, rel)?;
        let before = match on_conflict {
            Some(_) => {
                self.note_virtual(old, &table);
                may_be_missing(row_of(&renamed(names, rel, old))?)
            }
            None => nulls(row_of(names)?),
        };
        let rows = (before, row_of(names)?);
        let returning = self.returning(&ast.returning, names, rows, &outer)?;
        let inserted: Vec<u16> = columns.iter().map(|(n, _)| *n).collect();
        self.writes(&target.links, right::INSERT, &inserted);
        let mut read: Vec<&Expr> = returning.iter().map(|t| &t.expr).collect();
        let mut rels = vec![rel, old];
        if let Some(clause) = &on_conflict {
            self.reads_arbiters(&target.links, &clause.arbiters);
            if let ConflictAction::Update {
                excluded,
                set,
                filter,
                ..
            } = &clause.action
            {
                rels.push(*excluded);
                let updated: Vec<u16> = set.iter().map(|(n, _)| *n).collect();
                self.writes(&target.links, right::UPDATE, &updated);
                read.extend(set.iter().map(|(_, e)| e).chain(filter));
            }
        }
        self.reads_target(&target.links, &rels, &target.exprs, &read);
        let finds = on_conflict.as_ref().is_some_and(|c| !c.arbiters.is_empty());
        let reads = finds || reads_rows(&read, &rels);
        let mut checks = self.secure_insert(&target, &mut on_conflict, reads)?;
        checks.extend(self.checks(&table, rel)?);
        checks.extend(target.checks);
        Ok(Insert {
            table,
            rel,
            old,
            source,
            values,
            generated,
            on_conflict,
            checks,
            returning,
        })
    }

    /// The columns written to, in the order of the source.
    fn insert_columns(&self, ast: &ast::Insert, target: &WriteTarget) -> Result<Vec<(u16, Pos)>> {
        if ast.columns.is_empty() {
            // Those past the source's width are not written to, and need not be such that can be.
            let width = match &ast.source {
                Some(source) => written_width(source).unwrap_or(usize::MAX),
                None => 0,
            };
            return target
                .all()
                .take(width)
                .map(|name| Ok((target.column(name, ast.table.pos)?, ast.table.pos)))
                .collect();
        }
        named_columns(&ast.columns, &ast.parts, target)
    }

    fn check_width(
        &self,
        ast: &ast::Insert,
        columns: &[(u16, Pos)],
        width: usize,
        pos: Pos,
    ) -> Result<()> {
        if width > columns.len() {
            let message = "INSERT has more expressions than target columns";
            return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
        }
        if width < columns.len() && !ast.columns.is_empty() {
            let message = "INSERT has more target columns than expressions";
            let pos = columns[width].1;
            return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
        }
        Ok(())
    }

    /// The rows to insert, of the columns' types, and which columns they fill.
    fn insert_source(
        &mut self,
        ast: &ast::Insert,
        table: &TableDef,
        columns: &[(u16, Pos)],
        outer: &Scope<'_>,
    ) -> Result<(Query, Vec<(u16, Pos)>)> {
        let Some(source) = &ast.source else {
            return Ok((self.rows_query(vec![vec![]], vec![]), vec![]));
        };
        let mut source: &ast::Query = source;
        while let (ast::Body::Nested(inner), true) = (&source.body, source.is_bare()) {
            source = inner;
        }
        if let (ast::Body::Values(rows), true) = (&source.body, source.is_bare()) {
            return self.insert_values(ast, rows, table, columns, outer);
        }
        let mut query = self.query_untyped(source, outer)?;
        let width = query.columns().len();
        let written = source.as_select();
        let extra = written.and_then(|select| select.targets.get(columns.len()));
        let pos = extra.map_or(source.pos, |target| target.expr.pos);
        self.check_width(ast, columns, width, pos)?;
        for (i, offered) in query.columns().iter().enumerate() {
            let column = table.column(columns[i].0);
            self.check_given(ast.overriding, column, false)?;
            if let (Body::Select(select), throng_types::oid::UNKNOWN) =
                (&mut query.body, offered.ty.oid)
                && ast::part(&ast.parts, i).is_empty()
            {
                let expr = std::mem::replace(&mut select.targets[i].expr, Expr::bool(true));
                select.targets[i].expr = self.assign_to(expr, column, source.pos)?;
            }
        }
        let places = written.iter().flat_map(|select| &select.targets);
        let places: Vec<Pos> = places.map(|t| t.expr.pos).collect();
        let place = |i: usize| {
            *places
                .get(i)
                .filter(|_| places.len() == width)
                .unwrap_or(&source.pos)
        };
        let query = self.assign_columns(query, table, columns, ast, &place, outer)?;
        Ok((query, written_columns(ast, &columns[..width])))
    }

    /// The query with its columns cast as when stored.
    fn assign_columns(
        &mut self,
        query: Query,
        table: &TableDef,
        columns: &[(u16, Pos)],
        ast: &ast::Insert,
        place: &dyn Fn(usize) -> Pos,
        outer: &Scope<'_>,
    ) -> Result<Query> {
        let offered = query.columns();
        let fits = |(i, c): (usize, &throng_values::func::RelColumn)| {
            let column = table.column(columns[i].0);
            column.ty == c.ty && column.domain.is_none()
        };
        if ast.parts.is_empty() && offered.iter().enumerate().all(fits) {
            return Ok(query);
        }
        let id = self.new_rel();
        let distinct = written_columns(ast, &columns[..offered.len()]);
        let mut targets: Vec<Target> = Vec::with_capacity(offered.len());
        for (i, c) in offered.iter().enumerate() {
            let column = table.column(columns[i].0);
            let var = Expr::Var(Var {
                rel: id,
                column: i as i16 + 1,
                ty: c.ty,
            });
            let part = ast::part(&ast.parts, i);
            if part.is_empty() {
                let expr = self.assign_to(var, column, place(i))?;
                targets.push(Target {
                    expr,
                    name: c.name.clone(),
                });
                continue;
            }
            let at = distinct.iter().position(|(n, _)| *n == columns[i].0);
            let at = at.unwrap_or_default();
            let base = match targets.get_mut(at) {
                Some(target) => std::mem::replace(&mut target.expr, Expr::bool(true)),
                None => Expr::null(column.ty),
            };
            let expr = self.with_part(base, column, (part, columns[i].1), var, outer)?;
            match targets.get_mut(at) {
                Some(target) => target.expr = expr,
                None => targets.push(Target {
                    expr,
                    name: c.name.clone(),
                }),
            }
        }
        let rel = Rel::subquery(id, "*SELECT*", query, offered);
        Ok(self.select_query(vec![FromItem::Rel(Box::new(rel))], targets))
    }

    pub(super) fn select_query(&mut self, from: Vec<FromItem>, targets: Vec<Target>) -> Query {
        let select = Select::plain(from, targets);
        let output = self.new_rel();
        Query {
            body: Body::Select(Box::new(select)),
            order: vec![],
            limit: None,
            ties: false,
            offset: None,
            locks: vec![],
            output,
            ctes: vec![],
            outside: vec![],
        }
    }

    fn rows_query(&mut self, rows: Vec<Vec<Expr>>, columns: Vec<Target>) -> Query {
        let output = self.new_rel();
        Query {
            body: Body::Values { rows, columns },
            order: vec![],
            limit: None,
            ties: false,
            offset: None,
            locks: vec![],
            output,
            ctes: vec![],
            outside: vec![],
        }
    }

    fn insert_values(
        &mut self,
        ast: &ast::Insert,
        rows: &[Vec<ast::Expr>],
        table: &TableDef,
        columns: &[(u16, Pos)],
        outer: &Scope<'_>,
    ) -> Result<(Query, Vec<(u16, Pos)>)> {
        let width = rows[0].len();
        let distinct = written_columns(ast, columns.get(..width).unwrap_or(columns));
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != width {
                let message = "VALUES lists must all be the same length";
                return Err(Error::new(state::SYNTAX_ERROR, message).position(row[0].pos + 1));
            }
            let extra = row.get(columns.len()).unwrap_or(&row[0]);
            self.check_width(ast, columns, width, extra.pos)?;
            let mut values: Vec<Expr> = Vec::with_capacity(width);
            for (i, (value, (attnum, _))) in row.iter().zip(columns).enumerate() {
                let column = table.column(*attnum);
                let is_default = matches!(value.node, Node::Default);
                let part = ast::part(&ast.parts, i);
                if !part.is_empty() {
                    part_is_given(value, part, columns[i].1)?;
                    let at = distinct.iter().position(|(n, _)| n == attnum);
                    let at = at.unwrap_or_default();
                    let base = match values.get_mut(at) {
                        Some(base) => std::mem::replace(base, Expr::bool(true)),
                        None => Expr::null(column.ty),
                    };
                    let expr = self.in_clause(Clause::Values, |b| b.expr(value, outer))?;
                    let whole = self.with_part(base, column, (part, columns[i].1), expr, outer)?;
                    match values.get_mut(at) {
                        Some(value) => *value = whole,
                        None => values.push(whole),
                    }
                    continue;
                }
                self.check_given(ast.overriding, column, is_default)?;
                values.push(match is_default {
                    true => self.default_of(column)?,
                    false => {
                        let expr = self.in_clause(Clause::Values, |b| b.expr(value, outer))?;
                        self.assign_to(expr, column, value.pos)?
                    }
                });
            }
            bound.push(values);
        }
        let targets = distinct
            .iter()
            .map(|(attnum, _)| {
                let column = table.column(*attnum);
                Target {
                    expr: Expr::null(column.ty),
                    name: column.name.clone(),
                }
            })
            .collect();
        Ok((self.rows_query(bound, targets), distinct))
    }

    /// Columns whose values are always the table's own take nothing but DEFAULT.
    pub(super) fn check_given(
        &self,
        overriding: Option<Overriding>,
        column: &ColumnDef,
        default: bool,
    ) -> Result<()> {
        if column.generated.is_some() && !default {
            let name = &column.name;
            let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
            return Err(wrong_value(message, name));
        }
        if default || overriding.is_some() || column.identity != Some(Identity::Always) {
            return Ok(());
        }
        let name = &column.name;
        let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
        Err(Error::new(state::GENERATED_ALWAYS, message)
            .detail(format!(
                "Column \"{name}\" is an identity column defined as GENERATED ALWAYS."
            ))
            .hint("Use OVERRIDING SYSTEM VALUE to override."))
    }

    fn on_conflict(
        &mut self,
        ast: &ast::OnConflict,
        target: &WriteTarget,
        outer: &Scope<'_>,
    ) -> Result<OnConflict> {
        let table = &target.table;
        let arbiters = match &ast.target {
            ast::ConflictTarget::None if ast.update.is_some() => {
                let message =
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                return Err(Error::new(state::SYNTAX_ERROR, message)
                    .hint("For example, ON CONFLICT (column_name).")
                    .position(ast.pos + 1));
            }
            ast::ConflictTarget::None => vec![],
            ast::ConflictTarget::Keys { keys, predicate } => {
                self.inferred(keys, predicate.as_ref(), target)?
            }
            ast::ConflictTarget::Constraint(name) => {
                vec![self.arbiter_named(name, target, ast.update.is_some())?]
            }
        };
        let Some((set, filter)) = &ast.update else {
            return Ok(OnConflict {
                arbiters,
                action: ConflictAction::Nothing,
            });
        };
        let excluded = self.new_rel();
        self.note_virtual(excluded, table);
        let mut both = target.names.clone();
        both.join(target.excluded(excluded))?;
        let scope = Scope::within(&both, Some(outer));
        let set = self.assignments(set, target, &scope)?;
        let filter = self.filter(filter.as_ref(), &scope)?;
        Ok(OnConflict {
            arbiters,
            action: ConflictAction::Update {
                excluded,
                set,
                filter,
                guards: vec![],
            },
        })
    }

    pub(super) fn filter(
        &mut self,
        ast: Option<&ast::Expr>,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let Some(ast) = ast else { return Ok(None) };
        self.in_clause(Clause::Where, |b| {
            let bound = b.expr(ast, scope)?;
            b.condition(bound, "WHERE", ast.pos).map(Some)
        })
    }

    /// SET's assignments, by attribute number.
    pub(super) fn assignments(
        &mut self,
        list: &[ast::Assignment],
        target: &WriteTarget,
        scope: &Scope<'_>,
    ) -> Result<Vec<(u16, Expr)>> {
        let mut set: Vec<(u16, Expr)> = Vec::new();
        let mut parts: Vec<u16> = Vec::new();
        for assignment in list {
            let columns = assignment
                .columns
                .iter()
                .map(|(name, pos)| target.column(name, *pos))
                .collect::<Result<Vec<_>>>()?;
            for (i, attnum) in columns.iter().enumerate() {
                let column = target.given.column(*attnum);
                let part = ast::part(&assignment.parts, i);
                if !part.is_empty() {
                    must_be_default(column)?;
                    if assignment.multiple {
                        let what = "assignment of several values to parts of columns";
                        return Err(Error::unsupported(what));
                    }
                    part_is_given(&assignment.value, part, assignment.columns[i].1)?;
                    let before = set.iter().position(|(n, _)| n == attnum);
                    if before.is_some() && !parts.contains(attnum) {
                        let message =
                            format!("multiple assignments to same column \"{}\"", column.name);
                        return Err(Error::new(state::SYNTAX_ERROR, message));
                    }
                    let base = match before {
                        Some(at) => set.remove(at).1,
                        None => Expr::Var(Var {
                            rel: target.rel,
                            column: *attnum as i16,
                            ty: column.ty,
                        }),
                    };
                    let value = self.in_clause(Clause::Set, |b| {
                        let bound = b.expr(&assignment.value, scope)?;
                        b.with_part(base, column, (part, assignment.columns[i].1), bound, scope)
                    })?;
                    parts.push(*attnum);
                    set.push((*attnum, value));
                    continue;
                }
                if set.iter().any(|(n, _)| n == attnum) {
                    let message =
                        format!("multiple assignments to same column \"{}\"", column.name);
                    return Err(Error::new(state::SYNTAX_ERROR, message));
                }
                let value = self.in_clause(Clause::Set, |b| {
                    b.assigned(assignment, i, columns.len(), column, scope)
                })?;
                set.push((*attnum, value));
            }
        }
        Ok(set)
    }

    /// The value of the `i`th of `count` columns of one assignment.
    fn assigned(
        &mut self,
        assignment: &ast::Assignment,
        i: usize,
        count: usize,
        column: &ColumnDef,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let value = &assignment.value;
        let mismatch = || {
            let message = "number of columns does not match number of values";
            Err(Error::new(state::SYNTAX_ERROR, message).position(value.pos + 1))
        };
        let part = match &value.node {
            Node::Row { fields, .. } if assignment.multiple => {
                let Some(item) = self.item_of_row(fields, i, count, scope)? else {
                    return mismatch();
                };
                match item {
                    RowItem::Written(part) => part,
                    RowItem::Spread(expr, pos) => {
                        must_be_default(column)?;
                        return self.assign_to(expr, column, pos);
                    }
                }
            }
            Node::Subquery(query) if assignment.multiple => {
                let query = self.subquery(query, scope)?;
                if query.columns().len() != count {
                    return mismatch();
                }
                must_be_default(column)?;
                let expr = self.column_of_subquery(query, i);
                return self.assign_to(expr, column, value.pos);
            }
            _ if assignment.multiple && count > 1 => {
                let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                return Err(
                    Error::new(state::FEATURE_NOT_SUPPORTED, message).position(value.pos + 1)
                );
            }
            _ => value,
        };
        if matches!(part.node, Node::Default) {
            return self.default_of(column);
        }
        must_be_default(column)?;
        if column.identity == Some(Identity::Always) {
            let name = &column.name;
            let message = format!("column \"{name}\" can only be updated to DEFAULT");
            return Err(Error::new(state::GENERATED_ALWAYS, message).detail(format!(
                "Column \"{name}\" is an identity column defined as GENERATED ALWAYS."
            )));
        }
        let bound = self.expr(part, scope)?;
        self.assign_to(bound, column, part.pos)
    }

    /// One column of a subquery as a scalar.
    fn column_of_subquery(&mut self, query: Query, i: usize) -> Expr {
        let columns = query.columns();
        let ty = columns[i].ty;
        let id = self.new_rel();
        let var = Expr::Var(Var {
            rel: id,
            column: i as i16 + 1,
            ty,
        });
        let target = Target {
            expr: var,
            name: columns[i].name.clone(),
        };
        let rel = Rel::unnamed_subquery(id, query, columns);
        let query = self.select_query(vec![FromItem::Rel(Box::new(rel))], vec![target]);
        Expr::Subquery(Box::new(Subquery {
            query,
            kind: SubqueryKind::Scalar,
            ty,
        }))
    }

    /// `around`: what it can see from where it stands.
    pub(super) fn update(
        &mut self,
        ast: &ast::Update,
        around: Option<&Scope<'_>>,
    ) -> Result<Update> {
        let ctes = self.bind_ctes(&ast.with, ast.recursive, around)?;
        let outer = Scope::behind(&ctes, around);
        let mut target = self.write_target(&ast.table, ast.alias.as_deref(), Verb::Update)?;
        let (table, rel, new) = (target.table.clone(), target.rel, self.new_rel());
        self.note_virtual(new, &table);
        let mut names = target.names.clone();
        let mut from = self.items_beside(&ast.from, &mut names, &outer)?;
        if let Some(rows) = target.instead.clone() {
            from.insert(0, rows);
        }
        let scope = Scope::within(&names, Some(&outer));
        let set = self.assignments(&ast.set, &target, &scope)?;
        let filter = match &ast.current_of {
            Some(cursor) => Some(self.current_of(cursor, &target)?),
            None => self.filter(ast.filter.as_ref(), &scope)?,
        };
        let after = renamed(&names, rel, new);
        let rows = (row_of(&target.names)?, row_of(&after)?);
        let returning = self.returning(&ast.returning, &after, rows, &outer)?;
        let updated: Vec<u16> = set.iter().map(|(n, _)| *n).collect();
        self.writes(&target.links, right::UPDATE, &updated);
        let asked = filter.iter().filter(|_| ast.current_of.is_none());
        let read = set.iter().map(|(_, e)| e).chain(asked);
        let read: Vec<&Expr> = read.chain(returning.iter().map(|t| &t.expr)).collect();
        self.reads_target(&target.links, &[rel, new], &target.exprs, &read);
        let mut checks = self.secure_update(&mut target, new, &read)?;
        checks.extend(self.checks(&table, new)?);
        let filter = Expr::all_of(target.filter.into_iter().chain(filter).collect());
        let generated = self.stored_columns(&table, new)?;
        checks.extend(target.checks.into_iter().map(|mut check| {
            of_entry(&mut check.expr, rel, new);
            check
        }));
        Ok(Update {
            table,
            rel,
            from,
            filter,
            set,
            generated,
            checks,
            returning,
            new,
            only: ast.only || target.only,
            current_of: ast.current_of.clone(),
        })
    }

    /// FROM or USING items beside a target, which lateral ones may not use.
    fn items_beside(
        &mut self,
        items: &[ast::TableRef],
        names: &mut Names,
        outer: &Scope<'_>,
    ) -> Result<Vec<FromItem>> {
        let mut beside = Names::default();
        let from = self.bind_from(items, &mut beside, outer)?;
        names.join(beside)?;
        Ok(from)
    }

    /// `around`: what it can see from where it stands.
    pub(super) fn delete(
        &mut self,
        ast: &ast::Delete,
        around: Option<&Scope<'_>>,
    ) -> Result<Delete> {
        let ctes = self.bind_ctes(&ast.with, ast.recursive, around)?;
        let outer = Scope::behind(&ctes, around);
        let mut target = self.write_target(&ast.table, ast.alias.as_deref(), Verb::Delete)?;
        let (table, rel) = (target.table.clone(), target.rel);
        let mut names = target.names.clone();
        let mut from = self.items_beside(&ast.using, &mut names, &outer)?;
        if let Some(rows) = target.instead.clone() {
            from.insert(0, rows);
        }
        let scope = Scope::within(&names, Some(&outer));
        let filter = match &ast.current_of {
            Some(cursor) => Some(self.current_of(cursor, &target)?),
            None => self.filter(ast.filter.as_ref(), &scope)?,
        };
        let rows = (row_of(&names)?, nulls(row_of(&names)?));
        let returning = self.returning(&ast.returning, &names, rows, &outer)?;
        self.writes(&target.links, right::DELETE, &[]);
        let asked = filter.iter().filter(|_| ast.current_of.is_none());
        let read = asked.chain(returning.iter().map(|t| &t.expr));
        let read: Vec<&Expr> = read.collect();
        self.reads_target(&target.links, &[rel], &target.exprs, &read);
        self.secure_delete(&mut target, &read)?;
        let filter = Expr::all_of(target.filter.into_iter().chain(filter).collect());
        Ok(Delete {
            table,
            rel,
            from,
            filter,
            returning,
            only: ast.only || target.only,
            current_of: ast.current_of.clone(),
        })
    }
}

/// The target's row, which is the first of a statement's names.
pub(super) fn row_of(names: &Names) -> Result<NamedTable> {
    let row = names.tables.first().cloned();
    row.ok_or_else(|| Error::internal("a target without name"))
}

/// A row that is sometimes not there.
pub(super) fn may_be_missing(row: NamedTable) -> NamedTable {
    NamedTable {
        nullable: true,
        ..row
    }
}

/// A row that is never there.
fn nulls(row: NamedTable) -> NamedTable {
    let null = |column: NamedColumn| NamedColumn {
        expr: Expr::null(column.expr.ty()),
        name: column.name,
    };
    NamedTable {
        columns: row.columns.into_iter().map(null).collect(),
        rel: None,
        table: None,
        nullable: true,
        ..row
    }
}
