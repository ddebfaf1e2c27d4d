//! From what was written to what it means: names resolved in the catalog, types by PostgreSQL's
//! rules, statements that are not data statements as commands.
//!
//! Binding changes nothing and waits for nothing. Errors carry the position of what they are about.

mod ddl;
mod dml;
mod expr;
mod json;
mod query;
mod renamed;
mod route;
mod routine;
mod row_security;
mod stored_expression;
mod utility;

use std::cell::RefCell;
use std::sync::Arc;

use throng_types::error::{Severity, state};
use throng_types::{Datum, Error, Oid, Result, SqlType, interrupt, oid, stack};

use crate::command::{Bound, BoundStatement};
use crate::tree::expr::{Expr, RelId};
use crate::tree::query::{BoundQuery, Cte, QueryKind};
use crate::tree::window::Window;
use throng_catalog::{Catalog, Relation, TEMPORARY, TableDef};
use throng_syntax::parse::{self, ast};
use throng_values::func::EvalContext;
use throng_values::func::string::collate::COLLATE;

/// What a statement is bound in.
pub struct BindContext<'a> {
    pub catalog: &'a Catalog,
    /// Schemas unqualified names are sought in, see [`Catalog::search_path`].
    pub search_path: &'a [Oid],
    /// Where objects without a schema are made; none: 3F000.
    pub creation_schema: Option<Oid>,
    /// The session's own schema of temporary relations, once it has one.
    pub temporary_schema: Option<Oid>,
    /// The current role.
    pub user: Oid,
    /// Types the client declared for `$1`, …; `unknown` or missing ones are inferred.
    pub params: &'a [SqlType],
    /// For reading constants; their meaning may depend on DateStyle and TimeZone.
    pub eval: EvalContext<'a>,
    /// Parameter types of a prepared statement.
    pub prepared: &'a dyn Fn(&str) -> Option<Vec<SqlType>>,
    /// Where the relations are kept that names were found to mean.
    pub named: Option<&'a RefCell<Vec<Oid>>>,
}

pub use ddl::domain::check_shown;
pub use ddl::domain_value::check_in_domain;
pub(crate) use ddl::extension::{native_routines, not_available};
pub use ddl::index::{BoundTerms, index_shown, index_terms};
pub use ddl::matview::materialized_query;
pub use ddl::policy::{policy_condition_again, policy_condition_shown};
pub use ddl::trigger::{
    SUPPRESS, columns_of, trigger_condition, trigger_condition_again, trigger_condition_shown,
};
pub(crate) use ddl::view::stored_context;
pub use ddl::view::{ctid_source, rewritten, updatable_columns, view_definition};
pub use dml::generated::{completion, generation_shown};
pub(crate) use dml::generated::{other_kind, stored_values};
pub use renamed::Renamed;
pub use route::partition_tree;
pub use routine::body::{
    BodyResult, body_command, body_statement, body_statements, has_plan, no_result,
    routine_body_text,
};
pub use routine::plpgsql::{
    PlTarget, PlValue, RowShape, Variables, Visible, composite_shape, pl_assignment,
    pl_call_outputs, pl_cast, pl_dynamic, pl_expression, pl_statement, pl_with_part, plpgsql_code,
    plpgsql_signature,
};
pub use routine::{body_error, signature as routine_signature};
pub use stored_expression::{StoredKind, kept_shown};

/// Binds a statement of `sql`, which error positions are about.
pub fn bind(statement: &ast::Statement, sql: &str, ctx: &BindContext<'_>) -> Result<Bound> {
    let mut binder = Binder::new(ctx);
    let statement = binder
        .statement(statement)
        .map_err(|e| parse::locate(e, sql))?;
    Ok(Bound {
        statement,
        notices: binder.notices,
    })
}

/// Binds a stored expression (a default, a CHECK) over the columns of a table: `Slot(attnum - 1)`.
/// `to`: cast it so, as when storing.
pub fn row_expr(
    ctx: &BindContext<'_>,
    table: &TableDef,
    text: &str,
    to: Option<SqlType>,
) -> Result<Expr> {
    let ast = parse::parse_expr(text)?;
    let mut binder = Binder::new(ctx);
    let expr = binder.expr_over_table(&ast, table, to)?;
    Ok(slots_of_row(expr))
}

/// A table's CHECK constraints over its row, by `Slot(attnum - 1)`.
pub fn stored_checks(
    table: &std::sync::Arc<TableDef>,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<Vec<crate::tree::query::CheckExpr>> {
    let ctx = stored_context(catalog, eval);
    let mut binder = Binder::new(&ctx);
    let rel = binder.new_rel();
    let checks = binder.checks(table, rel)?.into_iter();
    Ok(checks
        .map(|c| crate::tree::query::CheckExpr {
            of: c.of,
            name: c.name,
            expr: slots_of_row(c.expr),
        })
        .collect())
}

/// Variables of a table's row as slots by attribute number.
pub(crate) fn slots_of_row(mut expr: Expr) -> Expr {
    if let Expr::Var(var) = &expr {
        return Expr::Slot(var.column as u32 - 1, var.ty);
    }
    expr.for_each_child_mut(&mut |e| {
        *e = slots_of_row(std::mem::replace(e, Expr::bool(true)));
    });
    expr
}

/// Where an expression stands, which decides what it may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clause {
    Targets,
    Where,
    On,
    GroupBy,
    Having,
    OrderBy,
    DistinctOn,
    Limit,
    From,
    Values,
    Returning,
    Set,
    Aggregate,
    WindowArgs,
    /// A part of a window's definition.
    Window(&'static str),
    Default,
    Check,
    Other(&'static str),
}

impl Binder<'_> {
    fn notice(&mut self, notice: Error) {
        self.notices.push(notice.severity(Severity::Notice));
    }

    fn warning(&mut self, warning: Error) {
        self.notices.push(warning.severity(Severity::Warning));
    }
}

impl Clause {
    fn name(self) -> &'static str {
        match self {
            Clause::Targets => "SELECT",
            Clause::Where => "WHERE",
            Clause::On => "JOIN conditions",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::Limit => "LIMIT",
            Clause::From => "functions in FROM",
            Clause::Values => "VALUES",
            Clause::Returning => "RETURNING",
            Clause::Set => "UPDATE",
            Clause::Aggregate => "aggregate arguments",
            Clause::WindowArgs => "window function arguments",
            Clause::Window(part) => part,
            Clause::Default => "DEFAULT expressions",
            Clause::Check => "check constraints",
            Clause::Other(name) => name,
        }
    }
    fn allows_aggregates(self) -> bool {
        matches!(
            self,
            Clause::Targets
                | Clause::Having
                | Clause::OrderBy
                | Clause::DistinctOn
                | Clause::WindowArgs
                | Clause::Window("window ORDER BY" | "window PARTITION BY")
        )
    }
    fn allows_windows(self) -> bool {
        matches!(self, Clause::Targets | Clause::OrderBy | Clause::DistinctOn)
    }
    fn allows_sets(self) -> bool {
        matches!(self, Clause::Targets)
    }
}

/// A SELECT being bound.
struct Level {
    /// The entries of its FROM.
    rels: Vec<RelId>,
    /// Where in it the query stands that is being bound inside.
    clause: Clause,
    /// Aggregates over its rows that stand in queries inside it, which know them as columns of
    /// `output`.
    lifted: Vec<Expr>,
    output: RelId,
    /// The first aggregate over its rows.
    aggregate: Option<ast::Pos>,
}

struct Binder<'a> {
    ctx: &'a BindContext<'a>,
    next_rel: u32,
    params: Vec<SqlType>,
    ctes: Vec<Cte>,
    notices: Vec<Error>,
    clause: Clause,
    /// Where columns were named, for complaints about them later.
    seen: Vec<(RelId, i16, ast::Pos)>,
    /// The next select list's untyped constants stay so: the columns they go into decide.
    keep_untyped: bool,
    /// Where each item of the select list just bound was written.
    target_places: Vec<ast::Pos>,
    /// The SELECTs around the place in hand, the innermost last.
    levels: Vec<Level>,
    /// The windows of the SELECT in hand.
    windows: Vec<Window>,
    /// As which role tables are read, and where their names are sought: inside a view, as its owner
    /// defined it.
    user: Oid,
    search_path: Vec<Oid>,
    /// The views whose queries are being bound, outermost first.
    views: Vec<Oid>,
    /// All views whose queries were bound.
    views_met: Vec<Oid>,
    /// The row of the MERGE whose RETURNING is being bound.
    merging: Option<RelId>,
    /// Those of the function whose body is being bound.
    arguments: Option<routine::body::Arguments>,
    /// The functions whose bodies are being bound in the place of their calls.
    inlining: Vec<Oid>,
    /// What the role may not do with relations as a whole.
    accesses: Vec<ddl::privilege::Access>,
    /// As [`BoundQuery::security`].
    security: Vec<(RelId, Vec<Expr>)>,
    /// The tables whose policies are being bound, outermost first.
    policies_in_hand: Vec<Oid>,
    /// What policies read of other tables.
    policy_reads: Vec<(RelId, i16)>,
    /// A view's definition is bound: who may read it is seen when it is read.
    definition: bool,
    /// Entries with columns that are computed when they are read.
    computed: Vec<(RelId, Arc<TableDef>)>,
    /// Columns of subqueries that are records.
    records: Vec<(RelId, i16, ddl::composite::Shape)>,
    /// Entries with columns of domains.
    of_domains: Vec<(RelId, Arc<TableDef>)>,
    /// What is bound is a definition, of which a text will be made: it keeps columns that are
    /// computed, and collations.
    defining: bool,
}

/// Attaches a place to an error that has none.
fn at(error: Error, pos: ast::Pos) -> Error {
    match error.fields().position {
        None => error.position(pos + 1),
        Some(_) => error,
    }
}

impl<'a> Binder<'a> {
    fn new(ctx: &'a BindContext<'a>) -> Binder<'a> {
        Binder {
            ctx,
            next_rel: 0,
            params: ctx.params.to_vec(),
            ctes: vec![],
            notices: vec![],
            clause: Clause::Other("this"),
            seen: vec![],
            keep_untyped: false,
            target_places: vec![],
            levels: vec![],
            windows: vec![],
            user: ctx.user,
            search_path: ctx.search_path.to_vec(),
            views: vec![],
            views_met: vec![],
            merging: None,
            arguments: None,
            inlining: vec![],
            accesses: vec![],
            security: vec![],
            policies_in_hand: vec![],
            policy_reads: vec![],
            definition: false,
            computed: vec![],
            records: vec![],
            of_domains: vec![],
            defining: false,
        }
    }

    /// One that binds what is to be written again.
    fn defining(ctx: &'a BindContext<'a>) -> Binder<'a> {
        Binder {
            defining: true,
            ..Binder::new(ctx)
        }
    }

    /// What a definition keeps and what runs needs not is kept in what `f` binds.
    fn as_written<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let saved = std::mem::replace(&mut self.defining, true);
        let bound = f(self);
        self.defining = saved;
        bound
    }

    /// A value under a collation.
    fn collated(&self, value: Expr, collation: &str) -> Expr {
        if !self.defining {
            return value;
        }
        let ty = value.ty();
        let name = Expr::Const(Datum::from(collation), SqlType::TEXT);
        Expr::Call {
            func: &COLLATE,
            args: vec![value, name],
            ty,
        }
    }

    fn catalog(&self) -> &'a Catalog {
        self.ctx.catalog
    }

    fn new_rel(&mut self) -> RelId {
        self.next_rel += 1;
        RelId(self.next_rel - 1)
    }

    fn in_clause<T>(
        &mut self,
        clause: Clause,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let saved = std::mem::replace(&mut self.clause, clause);
        let result = f(self);
        self.clause = saved;
        result
    }

    /// One level deeper.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        stack::check()?;
        interrupt::poll()?;
        f(self)
    }

    fn statement(&mut self, statement: &ast::Statement) -> Result<BoundStatement> {
        use ast::Statement as S;
        match statement {
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) | S::Merge(_) => {
                Ok(BoundStatement::Query(Box::new(self.data(statement)?)))
            }
            S::Explain { options, statement } => {
                let options = self.explain_options(options)?;
                self.explained(options, statement)
            }
            S::CreateTableAsExecute {
                table,
                names,
                name,
                args,
                with_data,
            } => Ok(BoundStatement::CreateTableAsExecute {
                table: table.clone(),
                names: names.clone(),
                with_data: *with_data,
                execute: Box::new(self.execute(name, args)?),
            }),
            S::CreateSchema {
                name,
                owner,
                elements,
                ..
            } if !elements.is_empty() => {
                self.schema_with_elements(name.as_deref(), owner.as_deref(), elements)
            }
            S::CreateTable(_)
            | S::AlterTable { .. }
            | S::AttachPartition { .. }
            | S::DetachPartition { .. }
            | S::AttachIndex { .. }
            | S::AlterObject { .. }
            | S::RenameColumn { .. }
            | S::RenameConstraint { .. }
            | S::CreateIndex(_)
            | S::CreateView(_)
            | S::RefreshMaterialized(_)
            | S::CreateSchema { .. }
            | S::CreateSequence { .. }
            | S::AlterSequence { .. }
            | S::CreateEnum { .. }
            | S::CreateRange { .. }
            | S::AlterEnum { .. }
            | S::CreateDomain(_)
            | S::CreateComposite { .. }
            | S::AlterComposite { .. }
            | S::AlterDomain { .. }
            | S::Drop { .. }
            | S::CreateRoutine(_)
            | S::AlterRoutine { .. }
            | S::DropRoutine { .. }
            | S::CommentRoutine { .. }
            | S::Truncate { .. }
            | S::Comment { .. }
            | S::CreateDatabase { .. }
            | S::AlterDatabase { .. }
            | S::DropDatabase { .. }
            | S::Define(_)
            | S::DropAbsent(_)
            | S::CommentAbsent(_)
            | S::CreateRole { .. }
            | S::AlterRole { .. }
            | S::AlterRoleSet { .. }
            | S::GrantRole(_)
            | S::Grant(_)
            | S::AlterDefaultPrivileges { .. }
            | S::ReassignOwned { .. }
            | S::DropOwned { .. } => self.ddl(statement),
            S::Unsupported(what) => Err(Error::unsupported(what)),
            S::SecurityLabel(label) => Err(utility::no_label_provider(label.as_deref())),
            S::Extension(statement) => {
                let ddl = self.extension(statement)?;
                Ok(BoundStatement::Ddl(Box::new(ddl)))
            }
            S::Trigger(statement) => {
                let ddl = self.trigger_statement(statement)?;
                Ok(BoundStatement::Ddl(Box::new(ddl)))
            }
            S::Policy(statement) => {
                let ddl = self.policy_statement(statement)?;
                Ok(BoundStatement::Ddl(Box::new(ddl)))
            }
            _ => self
                .utility(statement)
                .map(|c| BoundStatement::Command(Box::new(c))),
        }
    }

    /// A statement that reads or writes rows.
    fn data(&mut self, statement: &ast::Statement) -> Result<BoundQuery> {
        let kind = self.query_kind(statement, None)?;
        self.bound(kind)
    }

    /// A query or a write, by itself or within `outer`.
    fn query_kind(
        &mut self,
        statement: &ast::Statement,
        outer: Option<&query::scope::Scope<'_>>,
    ) -> Result<QueryKind> {
        Ok(match statement {
            ast::Statement::Query(query) => QueryKind::Select(self.query(query, outer)?),
            ast::Statement::Insert(insert) => {
                QueryKind::Insert(Box::new(self.insert(insert, outer)?))
            }
            ast::Statement::Update(update) => {
                QueryKind::Update(Box::new(self.update(update, outer)?))
            }
            ast::Statement::Delete(delete) => {
                QueryKind::Delete(Box::new(self.delete(delete, outer)?))
            }
            ast::Statement::Merge(merge) => QueryKind::Merge(Box::new(self.merge(merge, outer)?)),
            _ => return Err(Error::internal("not a data statement")),
        })
    }

    fn bound(&mut self, kind: QueryKind) -> Result<BoundQuery> {
        if let Some(n) = self.params.iter().position(|p| p.oid == oid::UNKNOWN) {
            return Err(Error::new(
                state::INDETERMINATE_DATATYPE,
                format!("could not determine data type of parameter ${}", n + 1),
            ));
        }
        let mut bound = BoundQuery {
            kind,
            ctes: std::mem::take(&mut self.ctes),
            params: self.params.clone(),
            rel_count: self.next_rel,
            views: std::mem::take(&mut self.views_met),
            security: std::mem::take(&mut self.security),
        };
        self.check_accesses(Some(&bound))?;
        self.compute_virtual(&mut bound)?;
        Ok(bound)
    }

    /// Finds a relation by its written name; 42P01 where there is none.
    fn relation(&self, name: &ast::Name) -> Result<Relation> {
        let found = self.find_relation(name).map_err(|e| at(e, name.pos))?;
        found.ok_or_else(|| {
            let message = format!("relation \"{name}\" does not exist");
            Error::new(state::UNDEFINED_TABLE, message).position(name.pos + 1)
        })
    }

    fn find_relation(&self, name: &ast::Name) -> Result<Option<Relation>> {
        self.check_database(name)?;
        let found = match name.schema() {
            None => self.catalog().find_relation(&self.search_path, name.last()),
            Some(schema) => {
                let Some(schema) = self.schema_named(schema) else {
                    return Ok(None);
                };
                self.may_look_into(schema)?;
                self.catalog().relation_in(schema, name.last())
            }
        };
        if let Some(Relation::Table(_) | Relation::View(_) | Relation::Sequence(_)) = &found
            && let Some(named) = self.ctx.named
        {
            named.borrow_mut().extend(found.as_ref().map(Relation::oid));
        }
        Ok(found)
    }

    fn check_database(&self, name: &ast::Name) -> Result<()> {
        if name.parts.len() == 3 && self.catalog().current_database_name() != name.parts[0] {
            let message = format!("cross-database references are not implemented: \"{name}\"");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(name.pos + 1));
        }
        Ok(())
    }

    /// A schema's oid; 3F000 where there is none.
    fn schema(&self, name: &str) -> Result<Oid> {
        self.schema_named(name).ok_or_else(|| {
            Error::new(
                state::INVALID_SCHEMA_NAME,
                format!("schema \"{name}\" does not exist"),
            )
        })
    }

    fn schema_name(&self, schema: Oid) -> Option<String> {
        self.catalog().schema(schema).map(|s| s.name.clone())
    }

    fn schema_named(&self, name: &str) -> Option<Oid> {
        match name {
            TEMPORARY => self.ctx.temporary_schema,
            name => self.catalog().schema_by_name(name).map(|s| s.oid),
        }
    }
}

#[cfg(test)]
mod tests;
