//! Materialized views: tables that keep the rows of a query. A table's definition then holds that
//! query as a view's does.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::ddl::alter_other::action_name;
use crate::binder::ddl::table::no_position;
use crate::binder::ddl::view::{stored_context, stored_query};
use crate::binder::{BindContext, Binder};
use crate::command::{Ddl, NewColumn, TableSource};
use crate::tree::expr::Expr;
use crate::tree::query::walk::QueryPart;
use crate::tree::query::{BoundQuery, Query, QueryKind};
use throng_catalog::{Catalog, Materialized, Relation, TableDef, ViewColumn};
use throng_syntax::parse::ast::{self, AlterAction};
use throng_values::acl::right;
use throng_values::func::EvalContext;

/// The query whose rows a materialized view keeps, bound as its owner would run it.
pub fn materialized_query(
    table: &TableDef,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<BoundQuery> {
    let Some(materialized) = &table.materialized else {
        return Err(Error::internal("a table that keeps no query's rows"));
    };
    let ctx = BindContext {
        user: table.owner,
        ..stored_context(catalog, eval)
    };
    let bound = stored_query(&mut Binder::new(&ctx), &materialized.query)?;
    let QueryKind::Select(query) = &bound.kind else {
        return Err(Error::internal("a view that is no query"));
    };
    let same = query
        .columns()
        .iter()
        .map(|c| c.ty)
        .eq(table.live_columns().map(|(_, c)| c.ty));
    match same {
        true => Ok(bound),
        false => {
            let message = format!(
                "the columns of materialized view \"{}\" are not what they were",
                table.name
            );
            Err(Error::new(state::UNDEFINED_COLUMN, message))
        }
    }
}

fn wrong_object(message: String) -> Error {
    Error::new(state::WRONG_OBJECT_TYPE, message)
}

/// The refusal of what is only done to tables.
pub(in crate::binder) fn not_for_materialized(message: String) -> Error {
    wrong_object(message).detail("This operation is not supported for materialized views.")
}

/// 0A000 for the query of a materialized view that refers to what the client binds.
pub(in crate::binder) fn no_parameters(query: &BoundQuery) -> Result<()> {
    let mut refers = false;
    let mut queries: Vec<&Query> = query.ctes.iter().flat_map(|c| c.body.queries()).collect();
    if let QueryKind::Select(select) = &query.kind {
        queries.push(select);
    }
    for query in queries {
        query.walk(false, &mut |part| {
            refers |= matches!(part, QueryPart::Expr(Expr::Param(..)));
        });
    }
    match refers {
        false => Ok(()),
        true => Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            "materialized views may not be defined using bound parameters",
        )),
    }
}

impl Binder<'_> {
    /// 0A000 for what the query of a materialized view must not be, before it is bound.
    pub(in crate::binder) fn may_be_materialized(&self, query: &ast::Query) -> Result<()> {
        let writes = |cte: &ast::Cte| !matches!(cte.statement, ast::Statement::Query(_));
        if query.with.iter().any(writes) {
            let message = "materialized views must not use data-modifying statements in WITH";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(())
    }

    /// What the definition of a materialized view with these columns keeps of its query.
    pub(in crate::binder) fn materialized(
        &mut self,
        ast: &ast::CreateTable,
        of: &ast::CreateTableAs,
        source: &TableSource,
        columns: &[NewColumn],
    ) -> Result<Materialized> {
        no_parameters(&source.query)?;
        let columns: Vec<ViewColumn> = columns
            .iter()
            .map(|c| ViewColumn {
                name: c.def.name.clone(),
                ty: c.def.ty,
            })
            .collect();
        let mut binder = Binder::new(self.ctx);
        let (query, uses) = binder.kept_query(&of.query, &columns)?;
        if uses.iter().any(|used| self.is_temporary(used.object)) {
            let message = "materialized views must not use temporary tables or views";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        if ast.persistence == throng_catalog::Persistence::Unlogged {
            let message = "materialized views cannot be unlogged";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(Materialized {
            query,
            uses,
            populated: of.with_data,
        })
    }

    pub(in crate::binder) fn refresh(&mut self, refresh: &ast::Refresh) -> Result<Ddl> {
        let ast::Refresh {
            ref name,
            concurrently,
            with_data,
        } = *refresh;
        let relation = self.relation(name).map_err(no_position)?;
        let Relation::Table(table) = &relation else {
            let message = format!("\"{}\" is not a table or materialized view", name.last());
            return Err(wrong_object(message));
        };
        crate::binder::ddl::privilege::any_right(
            self.catalog(),
            self.user,
            &relation,
            right::MAINTAIN,
        )?;
        let refused = |message: &str| Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        let Some(materialized) = &table.materialized else {
            return refused(&format!("\"{}\" is not a materialized view", table.name));
        };
        if concurrently && !materialized.populated {
            return refused(
                "CONCURRENTLY cannot be used when the materialized view is not populated",
            );
        }
        if concurrently && !with_data {
            let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        if concurrently {
            self.must_have_key(table)?;
        }
        Ok(Ddl::RefreshMaterialized {
            table: table.oid,
            concurrently,
            with_data,
        })
    }

    /// 55000 without a unique index by which rows are told apart.
    fn must_have_key(&self, table: &TableDef) -> Result<()> {
        let mut indexes = self.catalog().indexes_of(table.oid).iter();
        if indexes.any(|index| index.unique && index.is_plain()) {
            return Ok(());
        }
        let schema = self.schema_name(table.schema).unwrap_or_default();
        let (schema, name) = (
            throng_types::lexical::quote_ident(&schema),
            throng_types::lexical::quote_ident(&table.name),
        );
        let message = format!("cannot refresh materialized view \"{schema}.{name}\" concurrently");
        Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .hint("Create a unique index with no WHERE clause on one or more columns of the materialized view."))
    }

    pub(in crate::binder) fn is_temporary(&self, relation: Oid) -> bool {
        let relation = self.catalog().relation(relation);
        let schema = relation.and_then(|r| self.catalog().schema(r.schema()));
        schema.is_some_and(|s| s.name.starts_with(throng_catalog::TEMPORARY_PREFIX))
    }

    /// 42809 for what ALTER TABLE does not do to a materialized view.
    pub(in crate::binder) fn may_alter(
        &self,
        table: &Arc<TableDef>,
        action: &AlterAction,
    ) -> Result<()> {
        if !table.is_materialized() {
            return Ok(());
        }
        if is_for_materialized(action) {
            return Ok(());
        }
        let what = action_name(action);
        Err(not_for_materialized(format!(
            "ALTER action {what} cannot be performed on relation \"{}\"",
            table.name
        )))
    }
}

fn is_for_materialized(action: &AlterAction) -> bool {
    matches!(
        action,
        AlterAction::SetOptions(_)
            | AlterAction::ResetOptions(_)
            | AlterAction::OwnerTo(_)
            | AlterAction::Mark(_)
            | AlterAction::SetStatistics(..)
            | AlterAction::SetColumnOptions(..)
            | AlterAction::ResetColumnOptions(..)
            | AlterAction::SetTablespace(_)
    )
}
