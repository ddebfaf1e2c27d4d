//! Casts that users made.

use std::sync::Arc;

use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::Binder;
use crate::tree::expr::{Expr, OwnForm, Written};
use throng_catalog::CastDef;
use throng_catalog::system::routine;
use throng_values::func::CastContext;

/// Whether a cast that is made in one context is made in another.
pub(super) fn allows(made: char, context: CastContext) -> bool {
    match context {
        CastContext::Implicit => made == 'i',
        CastContext::Assignment => made != 'e',
        CastContext::Explicit => true,
    }
}

impl Binder<'_> {
    pub(super) fn own_cast(
        &mut self,
        def: &Arc<CastDef>,
        expr: Expr,
        to: SqlType,
        context: CastContext,
    ) -> Result<Expr> {
        let plain = SqlType::plain(to.oid);
        let value = match (def.method, def.function) {
            (method, _) if method == 'i' || def.to == oid::JSON => {
                let text = self.without_own_cast(expr, SqlType::TEXT)?;
                self.without_own_cast(text, plain)?
            }
            ('f', Some(function)) => {
                let mut args = vec![expr];
                let takes = self.arguments_of(function);
                if takes > 1 {
                    args.push(Expr::int4(to.typmod));
                }
                if takes > 2 {
                    let explicit = context == CastContext::Explicit;
                    args.push(Expr::Const(Datum::Bool(explicit), SqlType::BOOL));
                }
                self.function_of_values(Some(function), args, plain)?
            }
            _ => Expr::Cast {
                arg: Box::new(expr),
                cast: None,
                to: plain,
                context,
            },
        };
        // What a function gives may be of a type that is taken for the other.
        let value = match value.type_oid() == to.oid {
            true => value,
            false => Expr::Cast {
                arg: Box::new(value),
                cast: None,
                to: plain,
                context,
            },
        };
        let value = Expr::Own(Box::new(OwnForm {
            written: Written::Cast(def.clone(), context),
            value,
        }));
        Ok(match to.typmod {
            -1 => value,
            _ => Expr::Cast {
                arg: Box::new(value),
                cast: None,
                to,
                context,
            },
        })
    }

    /// How many arguments a function takes.
    pub(in crate::binder) fn arguments_of(&self, function: Oid) -> usize {
        match self.catalog().routine(function) {
            Some(def) => def.inputs().count(),
            None => routine::procedure(function).map_or(1, |p| p.args.len()),
        }
    }

    /// A value through text, whatever casts users made.
    fn without_own_cast(&mut self, expr: Expr, to: SqlType) -> Result<Expr> {
        let from = expr.type_oid();
        if from == to.oid {
            return Ok(expr);
        }
        let cast = throng_values::func::find_cast(from, to.oid, CastContext::Explicit);
        let cast = cast.ok_or_else(|| Error::unsupported("a cast of such types through text"))?;
        Ok(Expr::Cast {
            arg: Box::new(expr),
            cast: Some(cast),
            to,
            context: CastContext::Explicit,
        })
    }
}
