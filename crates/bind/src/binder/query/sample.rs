//! TABLESAMPLE.

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Result, SqlType, oid};

use crate::binder::query::scope::Scope;
use crate::binder::{Binder, Clause};
use crate::tree::expr::Expr;
use crate::tree::query::{FromItem, RelKind};
use crate::tree::tablesample::{Sample, SampleMethod};
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::CastContext;

impl Binder<'_> {
    /// Makes of a table in FROM a sample of it.
    pub(in crate::binder) fn sample_item(
        &mut self,
        item: &mut FromItem,
        ast: &ast::Sample,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<()> {
        let rel = match item {
            FromItem::Rel(rel) if matches!(rel.kind, RelKind::Table(_)) => rel,
            _ => {
                let message =
                    "TABLESAMPLE clause can only be applied to tables and materialized views";
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1));
            }
        };
        let name = &ast.method;
        let foreign = name.schema().is_some_and(|s| s != "pg_catalog");
        let method = SampleMethod::of_name(name.last()).filter(|_| !foreign);
        let Some(method) = method else {
            let message = format!("tablesample method {name} does not exist");
            return Err(Error::new(state::UNDEFINED_OBJECT, message).position(name.pos + 1));
        };
        let [percent] = &ast.args[..] else {
            let message = format!(
                "tablesample method {name} requires 1 argument, not {}",
                ast.args.len()
            );
            let error = Error::new(state::INVALID_TABLESAMPLE_ARGUMENT, message);
            return Err(error.position(name.pos + 1));
        };
        let real = SqlType::plain(oid::FLOAT4);
        let percent = self.sample_argument(percent, real, "TABLESAMPLE", scope)?;
        let double = SqlType::plain(oid::FLOAT8);
        let seed = match &ast.seed {
            Some(seed) => Some(self.sample_argument(seed, double, "REPEATABLE", scope)?),
            None => None,
        };
        rel.sample = Some(Box::new(Sample {
            method,
            percent,
            seed,
        }));
        Ok(())
    }

    fn sample_argument(
        &mut self,
        ast: &ast::Expr,
        to: SqlType,
        of: &str,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let bound = self.in_clause(Clause::From, |b| b.expr(ast, scope))?;
        let from = bound.type_oid();
        let cast = self.try_coerce(bound, to, CastContext::Assignment, ast.pos)?;
        cast.ok_or_else(|| {
            let message = format!(
                "argument of {of} must be type {}, not type {}",
                type_name(to.oid),
                type_name(from)
            );
            Error::new(state::DATATYPE_MISMATCH, message).position(ast.pos + 1)
        })
    }
}
