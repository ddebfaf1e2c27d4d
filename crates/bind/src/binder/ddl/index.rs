//! CREATE INDEX, and what an index's expressions and condition mean.
//!
//! They are kept as SQL that means the same on any search path, as views are, and bound when rows
//! are written and where conditions of a query are compared with them.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result, SqlType};

use crate::binder::ddl::index_order::check_indexable;
use crate::binder::ddl::table::no_position;
use crate::binder::ddl::view::{STORED_PATH, stored_context};
use crate::binder::dml::generated::{is_mutable, kept_text};
use crate::binder::dml::row_names;
use crate::binder::dml::updatable::WriteTarget;
use crate::binder::query::scope::{Scope, of_entry};
use crate::binder::{BindContext, Binder, Clause, ddl::options};
use crate::command::{CreateIndex, Ddl, Target};
use crate::deparse::{self, Style};
use crate::tree::expr::{Expr, RelId, same_term};
use throng_catalog::{
    Catalog, IndexColumn, IndexDef, IndexExpr, IndexTerms, KeyWords, Relation, TableDef,
};
use throng_syntax::parse::ast;
use throng_values::func::EvalContext;

/// An index's expressions and its condition over the table's row, under an entry.
pub struct BoundTerms {
    pub rel: RelId,
    pub exprs: Vec<Expr>,
    pub predicate: Option<Expr>,
}

impl BoundTerms {
    /// Over the row under another entry.
    pub fn under(mut self, rel: RelId) -> BoundTerms {
        let from = self.rel;
        for expr in self.exprs.iter_mut().chain(&mut self.predicate) {
            of_entry(expr, from, rel);
        }
        self.rel = rel;
        self
    }

    /// Over the row by `Slot(attnum - 1)`.
    pub fn over_row(self) -> BoundTerms {
        BoundTerms {
            exprs: self
                .exprs
                .into_iter()
                .map(crate::binder::slots_of_row)
                .collect(),
            predicate: self.predicate.map(crate::binder::slots_of_row),
            ..self
        }
    }
}

/// What an index's expressions and its condition mean.
pub fn index_terms(
    index: &IndexDef,
    table: &Arc<TableDef>,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<BoundTerms> {
    let ctx = stored_context(catalog, eval);
    terms_of(&mut Binder::new(&ctx), index, table)
}

fn terms_of(
    binder: &mut Binder<'_>,
    index: &IndexDef,
    table: &Arc<TableDef>,
) -> Result<BoundTerms> {
    let rel = binder.new_rel();
    let mut exprs = Vec::with_capacity(index.terms.exprs.len());
    for expr in &index.terms.exprs {
        let ast = throng_syntax::parse::parse_expr(&expr.text)?;
        exprs.push(binder.term(&ast, table, rel, KEY)?);
    }
    let predicate = match &index.terms.predicate {
        Some(text) => {
            let ast = throng_syntax::parse::parse_expr(text)?;
            Some(binder.term(&ast, table, rel, PREDICATE)?)
        }
        None => None,
    };
    Ok(BoundTerms {
        rel,
        exprs,
        predicate,
    })
}

/// The index as a session with this search path would write it; `pretty`: without needless
/// parentheses.
pub fn index_shown(
    index: &IndexDef,
    table: &Arc<TableDef>,
    catalog: &Catalog,
    search_path: &[Oid],
    pretty: bool,
    eval: EvalContext<'_>,
) -> Result<IndexDef> {
    let ctx = stored_context(catalog, eval);
    let bound = terms_of(&mut Binder::defining(&ctx), index, table)?;
    let style = Style {
        kept: false,
        catalog,
        search_path,
        pretty,
        eval,
    };
    let shown = |expr: &Expr| deparse::row_expr(expr, table, bound.rel, &style);
    let mut index = index.clone();
    for (kept, expr) in index.terms.exprs.iter_mut().zip(&bound.exprs) {
        kept.text = shown(expr);
    }
    index.terms.predicate = bound.predicate.as_ref().map(shown);
    Ok(index)
}

/// A part of an index, as messages call it.
type IndexPart = &'static str;
const KEY: IndexPart = "index expressions";
const PREDICATE: IndexPart = "index predicates";

impl Binder<'_> {
    pub(in crate::binder) fn create_index(&mut self, ast: &ast::CreateIndex) -> Result<Ddl> {
        let table = match self.relation(&ast.table) {
            Ok(Relation::Table(table)) => table,
            Ok(other) => {
                let message = format!("cannot create index on relation \"{}\"", other.name());
                let error = Error::new(state::WRONG_OBJECT_TYPE, message);
                return Err(match other {
                    Relation::View(_) => error.detail("This operation is not supported for views."),
                    _ => error,
                });
            }
            Err(mut e) => {
                e.fields_mut().position = None;
                return Err(e);
            }
        };
        self.must_own(table.owner, "table", &table.name)?;
        if ast.concurrently && table.is_partitioned() {
            let message = format!(
                "cannot create index on partitioned table \"{}\" concurrently",
                table.name
            );
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let mut terms = IndexTerms {
            method: self.index_method(ast)?,
            ..IndexTerms::default()
        };
        let mut columns = Vec::with_capacity(ast.columns.len());
        for column in &ast.columns {
            let (key, _) = self.index_element(column, &table, &mut terms)?;
            columns.push(key);
        }
        if terms.words.iter().all(|w| *w == KeyWords::default()) {
            terms.words.clear();
        }
        for (name, _) in &ast.include {
            let attnum = index_column(&table, name)?;
            must_be_stored(&table, attnum)?;
            terms.include.push(attnum);
        }
        if let Some(predicate) = &ast.predicate {
            self.index_predicate(predicate, &table, &mut terms)?;
        }
        const MOST_KEYS: usize = 32;
        if columns.len() + terms.include.len() > MOST_KEYS {
            let message = format!("cannot use more than {MOST_KEYS} columns in an index");
            return Err(Error::new(state::TOO_MANY_COLUMNS, message));
        }
        options::check(&ast.options, options::of_index(terms.method))?;
        self.tell_inert_options(&ast.options);
        Ok(Ddl::CreateIndex(CreateIndex {
            name: ast.name.clone(),
            table: table.oid,
            only: ast.only,
            columns,
            unique: ast.unique,
            nulls_not_distinct: ast.nulls_not_distinct,
            if_not_exists: ast.if_not_exists,
            concurrently: ast.concurrently,
            options: ast.options.clone(),
            terms,
        }))
    }

    /// A key column and its type; what of it is no plain column is added to `terms`.
    pub(in crate::binder) fn index_element(
        &mut self,
        column: &ast::IndexColumn,
        table: &Arc<TableDef>,
        terms: &mut IndexTerms,
    ) -> Result<(IndexColumn, Oid)> {
        let attnum = self.index_key(&column.key.expr, table, terms)?;
        let ty = match attnum {
            0 => terms.exprs.last().map_or(Oid::NONE, |e| e.ty.oid),
            attnum => table.column(attnum).ty.oid,
        };
        self.key_words(&column.key, ty, table, attnum, terms)?;
        let class = terms.words.last().and_then(|words| words.class.as_deref());
        check_indexable(terms.method, class, ty)?;
        let key = IndexColumn {
            attnum,
            descending: column.descending,
            nulls_first: column.nulls_first.unwrap_or(column.descending),
        };
        Ok((key, ty))
    }

    /// The condition of an index, which is added to `terms`.
    pub(in crate::binder) fn index_predicate(
        &mut self,
        predicate: &ast::Expr,
        table: &Arc<TableDef>,
        terms: &mut IndexTerms,
    ) -> Result<()> {
        let rel = self.new_rel();
        let bound = self.term(predicate, table, rel, PREDICATE)?;
        self.must_be_steady(&bound, predicate, table, "predicate")?;
        terms.predicate = Some(self.term_text(predicate, table, rel, PREDICATE)?);
        note_uses(&bound, terms);
        Ok(())
    }

    /// A key column's attribute number; 0 for an expression, which is added to `terms`.
    fn index_key(
        &mut self,
        key: &ast::Expr,
        table: &Arc<TableDef>,
        terms: &mut IndexTerms,
    ) -> Result<u16> {
        if let ast::Node::Column(parts) = &key.node
            && let [name] = &parts[..]
        {
            let attnum = index_column(table, name)?;
            must_be_stored(table, attnum)?;
            return Ok(attnum);
        }
        let rel = self.new_rel();
        let bound = self.term(key, table, rel, KEY)?;
        if let Expr::Var(var) = &bound
            && let Ok(attnum) = u16::try_from(var.column)
        {
            must_be_stored(table, attnum)?;
            return Ok(attnum);
        }
        self.must_be_steady(&bound, key, table, "expression")?;
        let name = match self.label_of(key) {
            unnamed if unnamed == "?column?" => "expr".to_owned(),
            named => named,
        };
        let text = self.term_text(key, table, rel, KEY)?;
        note_uses(&bound, terms);
        terms.exprs.push(IndexExpr {
            text,
            name,
            ty: bound.ty(),
        });
        Ok(0)
    }

    /// An index's terms over a table whose columns have other types by now.
    pub(in crate::binder) fn terms_anew(
        &mut self,
        index: &IndexDef,
        table: &Arc<TableDef>,
    ) -> Result<IndexTerms> {
        let ctx = BindContext {
            search_path: STORED_PATH,
            params: &[],
            ..*self.ctx
        };
        let mut stored = Binder::defining(&ctx);
        let rel = stored.new_rel();
        let mut terms = index.terms.clone();
        let keys = index.keys().enumerate();
        let places = keys.filter(|(_, (_, expr))| expr.is_some());
        let places = places.map(|(place, _)| index.terms.words_of(place).1);
        for (expr, class) in terms.exprs.iter_mut().zip(places) {
            let ast = throng_syntax::parse::parse_expr(&expr.text)?;
            let bound = stored.term(&ast, table, rel, KEY).map_err(no_position)?;
            check_indexable(index.terms.method, class, bound.type_oid())?;
            expr.text = stored.term_text(&ast, table, rel, KEY)?;
            expr.ty = bound.ty();
        }
        if let Some(text) = &mut terms.predicate {
            let ast = throng_syntax::parse::parse_expr(text)?;
            let bound = stored.term(&ast, table, rel, PREDICATE);
            bound.map_err(no_position)?;
            *text = stored.term_text(&ast, table, rel, PREDICATE)?;
        }
        Ok(terms)
    }

    /// DROP INDEX CONCURRENTLY.
    pub(in crate::binder) fn drop_index(&self, targets: &[Target], cascade: bool) -> Result<Ddl> {
        let refused = |message: &str| {
            let message = message.to_owned();
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
        };
        let [target] = targets else {
            return refused("DROP INDEX CONCURRENTLY does not support dropping multiple objects");
        };
        if cascade {
            return refused("DROP INDEX CONCURRENTLY does not support CASCADE");
        }
        let catalog = self.catalog();
        if let Some(index) = catalog.index(target.oid)
            && catalog
                .table(index.table)
                .is_some_and(|t| t.is_partitioned())
        {
            let name = &index.name;
            return refused(&format!(
                "cannot drop partitioned index \"{name}\" concurrently"
            ));
        }
        Ok(Ddl::DropIndexConcurrently(*target))
    }

    /// The unique indexes that ON CONFLICT means by these keys and under this condition.
    pub(in crate::binder) fn inferred(
        &mut self,
        keys: &[ast::Expr],
        predicate: Option<&ast::Expr>,
        target: &WriteTarget,
    ) -> Result<Vec<Oid>> {
        let mut columns: Vec<u16> = Vec::new();
        let mut exprs: Vec<Expr> = Vec::new();
        let scope = Scope::within(&target.names, None);
        for key in keys {
            if let ast::Node::Column(parts) = &key.node
                && let [name] = &parts[..]
            {
                let attnum = target.stored(name).ok_or_else(|| {
                    let message = format!("column \"{name}\" does not exist");
                    Error::new(state::UNDEFINED_COLUMN, message).position(key.pos + 1)
                })?;
                // No index is on what a view computes.
                columns.push(attnum.unwrap_or(0));
                continue;
            }
            let clause = Clause::Other(KEY);
            exprs.push(self.in_clause(clause, |b| b.expr(key, &scope))?);
        }
        let mut conditions = Vec::new();
        if let Some(ast) = predicate {
            let clause = Clause::Other(PREDICATE);
            let bound = self.in_clause(clause, |b| {
                let bound = b.expr(ast, &scope)?;
                b.condition(bound, "WHERE", ast.pos)
            })?;
            bound.conjuncts(&mut conditions);
        }
        columns.sort_unstable();
        columns.dedup();
        let table = &target.table;
        let mut found = Vec::new();
        for index in self
            .catalog()
            .indexes_of(table.oid)
            .iter()
            .filter(|i| i.unique && self.catalog().is_valid(i))
        {
            let mut own: Vec<u16> = index.columns.iter().map(|c| c.attnum).collect();
            own.retain(|attnum| *attnum > 0);
            own.sort_unstable();
            own.dedup();
            if own != columns {
                continue;
            }
            let terms = index_terms(index, table, self.catalog(), self.ctx.eval)?.under(target.rel);
            let same = |a: &[Expr], b: &[Expr]| a.iter().all(|a| b.iter().any(|b| same_term(a, b)));
            let fits = same(&terms.exprs, &exprs) && same(&exprs, &terms.exprs);
            let implied = terms
                .predicate
                .is_none_or(|p| crate::implication::implied(&p, &conditions, &self.ctx.eval));
            if fits && implied {
                found.push(index.oid);
            }
        }
        if found.is_empty() {
            let message =
                "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(Error::new(state::INVALID_COLUMN_REFERENCE, message));
        }
        Ok(found)
    }

    /// An expression of an index over the table's row under `rel`.
    pub(in crate::binder) fn term(
        &mut self,
        ast: &ast::Expr,
        table: &Arc<TableDef>,
        rel: RelId,
        part: IndexPart,
    ) -> Result<Expr> {
        let names = row_names(table, &table.name, rel);
        let scope = Scope::within(&names, None);
        self.in_clause(Clause::Other(part), |b| {
            let bound = b.expr(ast, &scope)?;
            match part {
                PREDICATE => b.condition(bound, "WHERE", ast.pos),
                _ => match bound.type_oid() {
                    throng_types::oid::UNKNOWN => b.coerce(bound, SqlType::TEXT, ast.pos),
                    _ => Ok(bound),
                },
            }
        })
    }

    /// 42P17 for what may have another value another time.
    fn must_be_steady(
        &self,
        bound: &Expr,
        ast: &ast::Expr,
        table: &TableDef,
        what: &str,
    ) -> Result<()> {
        if bound.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = format!("cannot use subquery in index {what}");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(ast.pos + 1));
        }
        // What a function is that is but an expression, that one tells.
        let mut plain = bound.clone();
        crate::inline::inline_in(&mut plain);
        if plain.any(&mut is_mutable) {
            let message = format!("functions in index {what} must be marked IMMUTABLE");
            return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
        }
        let mut columns = Vec::new();
        bound.for_each_var(&mut |var| columns.push(var.column));
        columns
            .into_iter()
            .try_for_each(|column| match u16::try_from(column) {
                Ok(attnum) => must_be_stored(table, attnum),
                Err(_) => {
                    let message = "index creation on system columns is not supported";
                    Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
                }
            })
    }

    /// The text that is kept, after making sure that it is read as what it was written from.
    fn term_text(
        &mut self,
        ast: &ast::Expr,
        table: &Arc<TableDef>,
        rel: RelId,
        part: IndexPart,
    ) -> Result<String> {
        let bound = &self.as_written(|b| b.term(ast, table, rel, part))?;
        let text = kept_text(bound, table, rel, self.catalog(), self.ctx.eval);
        let ctx = BindContext {
            search_path: STORED_PATH,
            params: &[],
            ..*self.ctx
        };
        let again = throng_syntax::parse::parse_expr(&text)
            .and_then(|ast| Binder::defining(&ctx).term(&ast, table, rel, part));
        match again {
            Ok(again) if same_term(&again, bound) => Ok(text),
            _ => Err(Error::unsupported("an index on such an expression")
                .detail(format!("Its text would be: {text}"))),
        }
    }
}

fn note_uses(bound: &Expr, terms: &mut IndexTerms) {
    bound.for_each_var(&mut |var| {
        if let Ok(attnum) = u16::try_from(var.column)
            && !terms.uses.contains(&attnum)
        {
            terms.uses.push(attnum);
        }
    });
}

fn index_column(table: &TableDef, name: &str) -> Result<u16> {
    table.attnum(name).ok_or_else(|| {
        let message = format!("column \"{name}\" does not exist");
        Error::new(state::UNDEFINED_COLUMN, message)
    })
}

fn must_be_stored(table: &TableDef, attnum: u16) -> Result<()> {
    match table.column(attnum).is_virtual() {
        false => Ok(()),
        true => {
            let message = "indexes on virtual generated columns are not supported";
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
        }
    }
}
