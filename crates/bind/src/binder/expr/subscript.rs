//! Arrays, and what lies in them, in names and in `jsonb`.

use throng_types::error::state;
use throng_types::sqltype::{array_of, element_of, part_of, type_info, type_name};
use throng_types::{Error, Oid, Result, SqlType, oid};

use crate::binder::Binder;
use crate::binder::query::scope::Scope;
use crate::tree::expr::Expr;
use throng_syntax::parse::ast::{self, Node, Pos};
use throng_values::func::CastContext;

impl Binder<'_> {
    pub(in crate::binder) fn array(
        &mut self,
        items: &[ast::Expr],
        element: Option<SqlType>,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            bound.push(match &item.node {
                // What is below is of the same elements.
                Node::Array(inner) => (self.array(inner, element, item.pos, scope)?, item.pos),
                _ => (self.expr(item, scope)?, item.pos),
            });
        }
        let nested = bound.iter().any(|(e, _)| is_array(e.type_oid()));
        let (items, ty) = match element {
            Some(ty) if nested => {
                let array = array_of(ty.oid).ok_or_else(|| no_array(ty.oid, pos))?;
                let ty = SqlType::new(array, ty.typmod);
                let items = bound
                    .into_iter()
                    .map(|(e, pos)| self.explicit_cast(e, ty, pos))
                    .collect::<Result<Vec<_>>>()?;
                (items, ty)
            }
            Some(ty) => {
                let items = bound
                    .into_iter()
                    .map(|(e, pos)| self.explicit_cast(e, ty, pos))
                    .collect::<Result<Vec<_>>>()?;
                (items, ty)
            }
            None if bound.is_empty() => {
                let message = "cannot determine type of empty array";
                return Err(Error::new(state::INDETERMINATE_DATATYPE, message)
                    .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
                    .position(pos + 1));
            }
            None => self.unify(bound, "ARRAY")?,
        };
        if is_array(ty.oid) {
            return Ok(Expr::Array(items, ty));
        }
        let array = array_of(ty.oid).ok_or_else(|| no_array(ty.oid, pos))?;
        Ok(Expr::Array(items, SqlType::new(array, ty.typmod)))
    }

    pub(in crate::binder) fn subscript(
        &mut self,
        arg: &ast::Expr,
        index: &ast::Expr,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let array = self.boxed(arg, scope)?;
        if array.type_oid() == oid::JSONB {
            return self.jsonb_subscript(*array, index, pos, scope);
        }
        if array.type_oid() == oid::NAME {
            return self.name_subscript(*array, index, pos);
        }
        let element = element_of(array.type_oid()).or_else(|| part_of(array.type_oid()));
        let Some(element) = element else {
            let message = format!(
                "cannot subscript type {} because it does not support subscripting",
                type_name(array.type_oid())
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message).position(arg.pos + 1));
        };
        let bound = self.expr(index, scope)?;
        let index = self
            .try_coerce(bound, SqlType::INT4, CastContext::Assignment, index.pos)?
            .ok_or_else(|| {
                let message = "array subscript must have type integer";
                Error::new(state::DATATYPE_MISMATCH, message).position(pos + 1)
            })?;
        let ty = SqlType::new(element, array.ty().typmod);
        Ok(Expr::Subscript {
            array,
            index: Box::new(index),
            ty,
        })
    }

    /// `name[0]`, as `pg_dump` asks for a name's first character: names have items of "char" there.
    fn name_subscript(&mut self, name: Expr, index: &ast::Expr, pos: Pos) -> Result<Expr> {
        if !matches!(&index.node, Node::Integer(digits) if digits == "0") {
            let what = "a subscript of a name other than 0";
            return Err(Error::unsupported(what).position(pos + 1));
        }
        let text = self.explicit_cast(name, SqlType::TEXT, pos)?;
        let first = self.apply("substr", vec![text, Expr::int4(1), Expr::int4(1)], pos)?;
        self.explicit_cast(first, SqlType::CHAR, pos)
    }

    /// `value['key']`, `value[0]`: what lies at a path of one step.
    pub(in crate::binder) fn jsonb_subscript(
        &mut self,
        value: Expr,
        index: &ast::Expr,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let (step, _) = self.jsonb_step(index, scope)?;
        let path = Expr::Array(vec![step], SqlType::plain(oid::TEXT_ARRAY));
        self.operator("#>", Some(value), path, pos)
    }

    /// A subscript of a `jsonb` as a step of a path, and whether it is an integer.
    pub(in crate::binder) fn jsonb_step(
        &mut self,
        index: &ast::Expr,
        scope: &Scope<'_>,
    ) -> Result<(Expr, bool)> {
        let bound = self.expr(index, scope)?;
        let from = bound.type_oid();
        let mut step = None;
        for ty in [SqlType::INT4, SqlType::TEXT] {
            if step.is_none() && (from != oid::UNKNOWN || ty == SqlType::TEXT) {
                let cast = self.try_coerce(bound.clone(), ty, CastContext::Implicit, index.pos)?;
                step = cast;
            }
        }
        let Some(step) = step else {
            let message = format!("subscript type {} is not supported", type_name(from));
            return Err(Error::new(state::DATATYPE_MISMATCH, message)
                .hint("jsonb subscript must be coercible to either integer or text.")
                .position(index.pos + 1));
        };
        let integer = step.type_oid() == oid::INT4;
        let step = self.explicit_cast(step, SqlType::TEXT, index.pos)?;
        Ok((step, integer))
    }
}

fn is_array(ty: Oid) -> bool {
    type_info(ty).is_some_and(|t| t.is_array())
}

pub(in crate::binder) fn no_array(element: Oid, pos: Pos) -> Error {
    let message = format!(
        "could not find array type for data type {}",
        type_name(element)
    );
    Error::new(state::UNDEFINED_OBJECT, message).position(pos + 1)
}
