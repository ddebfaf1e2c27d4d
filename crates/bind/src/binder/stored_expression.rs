//! Defaults and CHECKs as definitions keep them: SQL written from what was bound, so that it means
//! the same on any search path and under any settings. A text that would be read as something else
//! is kept as it was written.

use std::sync::Arc;

use throng_types::sqltype::element_of;
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use super::ddl::view::{STORED_PATH, stored_context, stored_expr};
use super::dml::generated::kept_text;
use super::dml::row_names;
use super::query::scope::Scope;
use super::{Binder, Clause};
use crate::deparse::{self, Style};
use crate::tree::expr::{Expr, RelId, same_term};
use throng_catalog::{Catalog, ColumnDef, TableDef};
use throng_syntax::parse::{self, ast};
use throng_values::func::is_polymorphic;
use throng_values::func::{CastContext, EvalContext};

/// What a text is kept for.
#[derive(Clone, Copy)]
pub enum StoredKind<'a> {
    /// What this column gets when it is given nothing.
    Default(&'a ColumnDef),
    /// A condition over the table's row.
    Check,
    /// Any value over it: what a column or an index computes, or partitions go by.
    Term,
}

/// A kept text as a session with this search path would write it.
pub fn kept_shown(
    (text, of): (&str, StoredKind<'_>),
    table: &Arc<TableDef>,
    catalog: &Catalog,
    search_path: &[Oid],
    pretty: bool,
    eval: EvalContext<'_>,
) -> Result<String> {
    let (bound, rel) = Binder::defining(&stored_context(catalog, eval)).kept(text, of, table)?;
    let style = Style {
        kept: false,
        catalog,
        search_path,
        pretty,
        eval,
    };
    let shown = match of {
        StoredKind::Default(_) => without_assignment(bound),
        StoredKind::Check | StoredKind::Term => bound,
    };
    Ok(deparse::row_expr(&shown, table, rel, &style))
}

/// Types whose values a column makes to fit its length, which a constant does not say.
fn made_to_fit(ty: Oid) -> bool {
    matches!(
        ty,
        oid::VARCHAR
            | oid::BPCHAR
            | oid::TIME
            | oid::TIMETZ
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::NUMERIC
    )
}

/// Whether a column of that type makes values fit its modifier: then even NULL is computed, and
/// kept as a default.
pub(super) fn is_made_to_fit(ty: SqlType) -> bool {
    let item = element_of(ty.oid).unwrap_or(ty.oid);
    ty.typmod >= 0 && made_to_fit(item)
}

/// A default without the casts that its column makes, and a string without the column's length.
fn without_assignment(mut value: Expr) -> Expr {
    loop {
        value = match value {
            Expr::Cast { arg, context, .. } if context != CastContext::Explicit => *arg,
            Expr::Const(Datum::Null, ty) if is_made_to_fit(ty) => {
                return Expr::Const(Datum::Null, SqlType::plain(ty.oid));
            }
            Expr::Const(value, ty) if made_to_fit(ty.oid) => {
                let value = match (ty.oid, value) {
                    (oid::BPCHAR, Datum::Text(text)) => Datum::text(text.trim_end_matches(' ')),
                    (_, value) => value,
                };
                return Expr::Const(value, SqlType::plain(ty.oid));
            }
            other => return other,
        };
    }
}

/// A kept text as it has to be after something it names got another name in `renamed`.
pub(super) fn kept_again(
    (text, of): (&str, StoredKind<'_>),
    table: &Arc<TableDef>,
    catalog: &Catalog,
    renamed: &Catalog,
    eval: EvalContext<'_>,
) -> Result<String> {
    let (bound, rel) = Binder::defining(&stored_context(catalog, eval)).kept(text, of, table)?;
    let table = renamed.table(table.oid).unwrap_or(table);
    Ok(kept_text(&bound, table, rel, renamed, eval))
}

/// The same of a value that is no table's.
pub(super) fn value_again(
    text: &str,
    ty: SqlType,
    catalog: &Catalog,
    renamed: &Catalog,
    eval: EvalContext<'_>,
) -> Result<String> {
    let ctx = stored_context(catalog, eval);
    let mut binder = Binder::defining(&ctx);
    let rel = binder.new_rel();
    let bound = match is_polymorphic(ty.oid) {
        true => binder.default_expr(&parse::parse_expr(text)?)?,
        false => binder.kept_default(text, ty)?,
    };
    let none = TableDef::of_columns(Vec::new());
    Ok(kept_text(&bound, &none, rel, renamed, eval))
}

impl Binder<'_> {
    /// The text to keep of a default, which is cast already to the type that it is for.
    pub(super) fn text_of_default(
        &mut self,
        value: &Expr,
        ty: SqlType,
        source: &ast::Source,
    ) -> String {
        // The column has a collation of its own.
        let written = match &source.expr.node {
            ast::Node::Collate { arg, .. } => arg,
            _ => &source.expr,
        };
        let written = self.as_written(|b| b.value_of_default(written, ty));
        let value = written.as_ref().unwrap_or(value);
        let Ok((text, _)) = stored_expr(self.ctx, value) else {
            return source.text.clone();
        };
        let path = std::mem::replace(&mut self.search_path, STORED_PATH.to_vec());
        let again = self.as_written(|b| b.kept_default(&text, ty));
        self.search_path = path;
        match again {
            Ok(again) if again == *value => text,
            _ => source.text.clone(),
        }
    }

    /// The text to keep of a CHECK over the row of an entry.
    pub(super) fn check_text(
        &mut self,
        bound: &Expr,
        table: &Arc<TableDef>,
        rel: RelId,
        source: &ast::Source,
    ) -> String {
        let seen = std::mem::take(&mut self.seen);
        let written = self.as_written(|b| b.check_condition(&source.expr, table, rel));
        let bound = written.as_ref().unwrap_or(bound);
        let text = kept_text(bound, table, rel, self.catalog(), self.ctx.eval);
        let path = std::mem::replace(&mut self.search_path, STORED_PATH.to_vec());
        let again = self.as_written(|b| b.kept_check(&text, table, rel));
        self.search_path = path;
        self.seen = seen;
        match again {
            Ok(again) if same_term(&again, bound) => text,
            _ => source.text.clone(),
        }
    }

    /// Whether what is bound is a text that was kept, where an array's cast is one of the whole
    /// array.
    pub(super) fn reads_kept_text(&self) -> bool {
        self.search_path == STORED_PATH
    }

    fn kept(
        &mut self,
        text: &str,
        of: StoredKind<'_>,
        table: &Arc<TableDef>,
    ) -> Result<(Expr, RelId)> {
        let rel = self.new_rel();
        let bound = match of {
            StoredKind::Default(column) => self.kept_default(text, column.ty)?,
            StoredKind::Check => self.kept_check(text, table, rel)?,
            StoredKind::Term => self.kept_term(text, table, rel)?,
        };
        Ok((bound, rel))
    }

    fn kept_default(&mut self, text: &str, ty: SqlType) -> Result<Expr> {
        self.value_of_default(&parse::parse_expr(text)?, ty)
    }

    fn value_of_default(&mut self, ast: &ast::Expr, ty: SqlType) -> Result<Expr> {
        let bound = self.default_expr(ast)?;
        self.try_coerce(bound, ty, CastContext::Assignment, ast.pos)?
            .ok_or_else(|| Error::internal("a default of another type than its column"))
    }

    fn kept_check(&mut self, text: &str, table: &Arc<TableDef>, rel: RelId) -> Result<Expr> {
        self.check_condition(&parse::parse_expr(text)?, table, rel)
    }

    fn kept_term(&mut self, text: &str, table: &Arc<TableDef>, rel: RelId) -> Result<Expr> {
        let ast = parse::parse_expr(text)?;
        let names = row_names(table, &table.name, rel);
        let scope = Scope::within(&names, None);
        self.in_clause(Clause::Other("expressions over a table's row"), |b| {
            b.expr(&ast, &scope)
        })
    }

    fn check_condition(
        &mut self,
        ast: &ast::Expr,
        table: &Arc<TableDef>,
        rel: RelId,
    ) -> Result<Expr> {
        let names = row_names(table, &table.name, rel);
        let scope = Scope::within(&names, None);
        self.in_clause(Clause::Check, |b| {
            let bound = b.expr(ast, &scope)?;
            b.condition(bound, "CHECK", ast.pos)
        })
    }
}
