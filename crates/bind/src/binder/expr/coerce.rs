//! Making a value of one type out of another: constants read, parameters typed, casts put in.

use throng_types::error::state;
use throng_types::sqltype::{TypeInfo, type_by_name, type_info, type_name};
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::expr::own_cast::allows;
use crate::binder::{Binder, at};
use crate::tree::expr::Expr;
use throng_catalog::TypeDef;
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::{CastContext, find_cast, select_common_type};
use throng_values::io::typmod;

/// PostgreSQL's types that are known to be missing here.
const NOT_YET: &[&str] = &[
    "datemultirange",
    "daterange",
    "int4multirange",
    "int4range",
    "int8multirange",
    "int8range",
    "nummultirange",
    "numrange",
    "pg_lsn",
    "timetz",
    "tsmultirange",
    "tsrange",
    "tstzmultirange",
    "tstzrange",
];

/// `B'101'` and `X'1F'`.
pub(super) fn bits(letter: char, digits: &str, pos: Pos) -> Result<Expr> {
    let bits = throng_values::io::bits::parse_digits(digits, letter == 'x');
    let bits = bits.map_err(|e| at(e, pos))?;
    Ok(Expr::Const(Datum::base(oid::BIT, bits), SqlType::BIT))
}

impl Binder<'_> {
    /// The type a written name means, with its modifier.
    pub(in crate::binder) fn type_of(&self, name: &ast::TypeName) -> Result<SqlType> {
        let pos = name.name.pos;
        let undefined = || {
            let message = format!("type \"{}\" does not exist", name.name);
            Error::new(state::UNDEFINED_OBJECT, message).position(pos + 1)
        };
        if name.setof {
            return Err(Error::unsupported("SETOF here").position(pos + 1));
        }
        let foreign = name.name.schema().is_some_and(|s| s != "pg_catalog");
        let builtin = self.builtin_type(&name.name);
        let made = match builtin {
            Some(_) => None,
            None => self.made_type(&name.name),
        };
        if made.as_ref().is_some_and(|def| def.domain.is_some()) {
            let what = format!("the domain {} here", name.name);
            return Err(Error::unsupported(what).position(pos + 1));
        }
        let made = made.map(|def| def.oid);
        let info = builtin
            .or_else(|| type_info(made.or_else(|| self.array_type_named(&name.name))?))
            .ok_or_else(|| match name.name.last() {
                known if !foreign && NOT_YET.contains(&known) => {
                    Error::unsupported(format!("type {known}")).position(pos + 1)
                }
                _ => undefined(),
            })?;
        let mut ty = SqlType::plain(info.oid);
        ty.typmod = match name.typmod {
            Some(typmod) => typmod,
            None => typmod::from_written(info.oid, &name.modifiers).map_err(|e| at(e, pos))?,
        };
        if name.array {
            ty.oid = throng_types::sqltype::array_of(ty.oid).ok_or_else(undefined)?;
        }
        Ok(ty)
    }

    /// The type of that name that is built in.
    pub(in crate::binder) fn builtin_type(&self, name: &ast::Name) -> Option<TypeInfo> {
        let foreign = name.schema().is_some_and(|s| s != "pg_catalog");
        type_by_name(name.last()).filter(|_| !foreign)
    }

    /// The type of that name that a user made.
    pub(in crate::binder) fn made_type(&self, name: &ast::Name) -> Option<std::sync::Arc<TypeDef>> {
        let ty = self.named_type(name)?;
        let catalog = self.catalog();
        let made = catalog.made_type(ty).cloned();
        made.or_else(|| catalog.composite(ty))
    }

    /// The array type of that name over a type that a user made; types are mostly called `name[]`
    /// instead.
    pub(in crate::binder) fn array_type_named(&self, name: &ast::Name) -> Option<Oid> {
        self.named_type(name)
            .filter(|ty| throng_types::sqltype::element_of(*ty).is_some())
    }

    fn named_type(&self, name: &ast::Name) -> Option<Oid> {
        let catalog = self.catalog();
        match name.schema() {
            Some(schema) => catalog.type_named_in(self.schema_named(schema)?, name.last()),
            None => catalog.type_named(&self.search_path, name.last()),
        }
    }

    /// Casts where the context allows it; None where it does not.
    pub(in crate::binder) fn try_coerce(
        &mut self,
        expr: Expr,
        to: SqlType,
        context: CastContext,
        pos: Pos,
    ) -> Result<Option<Expr>> {
        let from = expr.ty();
        if from.oid == oid::UNKNOWN && to.oid != oid::UNKNOWN {
            return self.type_unknown(expr, to, context, pos);
        }
        if from.oid == to.oid {
            if to.typmod == -1 || to.typmod == from.typmod {
                return Ok(Some(expr));
            }
            return Ok(Some(Expr::Cast {
                arg: Box::new(expr),
                cast: None,
                to,
                context,
            }));
        }
        if is_pseudo_target(to.oid) {
            return Ok(Some(expr));
        }
        if let Some(def) = self.catalog().cast_between(from.oid, to.oid).cloned()
            && allows(def.context, context)
        {
            return self.own_cast(&def, expr, to, context).map(Some);
        }
        if let Some(row) = self.coerce_row(&expr, to, context, pos)? {
            return Ok(Some(row));
        }
        let Some(cast) = find_cast(from.oid, to.oid, context) else {
            return Ok(None);
        };
        Ok(Some(Expr::Cast {
            arg: Box::new(expr),
            cast: Some(cast),
            to,
            context,
        }))
    }

    /// Whether a user's cast takes a value from one type to another without being written.
    pub(in crate::binder) fn casts_anywhere(&self, from: Oid, to: Oid) -> bool {
        let cast = self.catalog().cast_between(from, to);
        cast.is_some_and(|def| def.context == 'i')
    }

    /// A constant without a type, or a parameter without one, gets its type here.
    fn type_unknown(
        &mut self,
        expr: Expr,
        to: SqlType,
        context: CastContext,
        pos: Pos,
    ) -> Result<Option<Expr>> {
        if is_pseudo_target(to.oid) {
            return self.try_coerce(expr, SqlType::TEXT, context, pos);
        }
        let with_modifier = |arg: Expr| match to.typmod {
            -1 => arg,
            _ => Expr::Cast {
                arg: Box::new(arg),
                cast: None,
                to,
                context,
            },
        };
        match expr {
            Expr::Const(Datum::Null, _) => Ok(Some(Expr::Const(Datum::Null, to))),
            Expr::Const(Datum::Text(text), written) => {
                let pos = if written.typmod >= 0 {
                    written.typmod as Pos
                } else {
                    pos
                };
                Ok(Some(Expr::Const(
                    self.read_constant(&text, to, context, pos)?,
                    to,
                )))
            }
            Expr::Param(n, _) => {
                let plain = SqlType::plain(to.oid);
                let slot = &mut self.params[n as usize];
                if slot.oid == oid::UNKNOWN {
                    *slot = plain;
                }
                let known = *slot;
                if known.oid == to.oid {
                    return Ok(Some(with_modifier(Expr::Param(n, plain))));
                }
                // Typed meanwhile by another use in the same expression.
                self.try_coerce(Expr::Param(n, known), to, context, pos)
            }
            expr => {
                let Some(cast) = find_cast(oid::UNKNOWN, to.oid, context) else {
                    return Ok(None);
                };
                Ok(Some(Expr::Cast {
                    arg: Box::new(expr),
                    cast: Some(cast),
                    to,
                    context,
                }))
            }
        }
    }

    /// What cannot be read is an error at the constant; what the modifier refuses is one of the
    /// value, which has no place.
    fn read_constant(
        &self,
        text: &str,
        to: SqlType,
        context: CastContext,
        pos: Pos,
    ) -> Result<Datum> {
        // An interval's fields decide how its text is read.
        let whole = to.oid == oid::INTERVAL;
        let read_as = if whole { to } else { SqlType::plain(to.oid) };
        let datum =
            throng_values::io::input_text(&self.ctx.eval, text, read_as).map_err(|e| at(e, pos))?;
        if to.typmod == -1 || whole {
            return Ok(datum);
        }
        throng_values::io::typmod::apply(datum, to, context == CastContext::Explicit)
    }

    /// An implicit cast that must succeed.
    pub(in crate::binder) fn coerce(&mut self, expr: Expr, to: SqlType, pos: Pos) -> Result<Expr> {
        self.coerce_for(expr, to, CastContext::Implicit, pos)
    }

    /// `CAST` and `::`.
    pub(in crate::binder) fn explicit_cast(
        &mut self,
        expr: Expr,
        to: SqlType,
        pos: Pos,
    ) -> Result<Expr> {
        self.coerce_for(expr, to, CastContext::Explicit, pos)
    }

    pub(in crate::binder) fn coerce_for(
        &mut self,
        expr: Expr,
        to: SqlType,
        context: CastContext,
        pos: Pos,
    ) -> Result<Expr> {
        let from = expr.type_oid();
        self.try_coerce(expr, to, context, pos)?
            .ok_or_else(|| cannot_cast(from, to.oid, pos))
    }

    /// Arguments of a function that prints any type, those of `regclass` and its kin as texts:
    /// their values are numbers, and only the expression's type tells whose. A definition keeps the
    /// words that were written.
    pub(in crate::binder) fn objects_named(
        &mut self,
        args: Vec<Expr>,
        pos: Pos,
    ) -> Result<Vec<Expr>> {
        if self.defining {
            return Ok(args);
        }
        let name = |arg: Expr| match arg.type_oid() {
            oid::REGCLASS
            | oid::REGTYPE
            | oid::REGPROC
            | oid::REGPROCEDURE
            | oid::REGOPER
            | oid::REGOPERATOR
            | oid::REGROLE
            | oid::REGNAMESPACE
            | oid::REGCOLLATION
            | oid::REGCONFIG
            | oid::REGDICTIONARY => self.explicit_cast(arg, SqlType::TEXT, pos),
            _ => Ok(arg),
        };
        args.into_iter().map(name).collect()
    }

    /// Casts a value stored into a column.
    pub(in crate::binder) fn assign(
        &mut self,
        expr: Expr,
        column: &str,
        to: SqlType,
        pos: Pos,
    ) -> Result<Expr> {
        self.assign_shown(expr, column, to, to.oid, pos)
    }

    /// As [`Binder::assign`]; `shown`: the type that the column is said to be of.
    pub(in crate::binder) fn assign_shown(
        &mut self,
        expr: Expr,
        column: &str,
        to: SqlType,
        shown: Oid,
        pos: Pos,
    ) -> Result<Expr> {
        let from = expr.type_oid();
        self.try_coerce(expr, to, CastContext::Assignment, pos)?
            .ok_or_else(|| {
                let message = format!(
                    "column \"{column}\" is of type {} but expression is of type {}",
                    type_name(shown),
                    type_name(from)
                );
                Error::new(state::DATATYPE_MISMATCH, message)
                    .hint("You will need to rewrite or cast the expression.")
                    .position(pos + 1)
            })
    }

    /// A condition: `argument of WHERE must be type boolean, not type integer`.
    pub(in crate::binder) fn condition(&mut self, expr: Expr, of: &str, pos: Pos) -> Result<Expr> {
        let from = expr.type_oid();
        self.try_coerce(expr, SqlType::BOOL, CastContext::Implicit, pos)?
            .ok_or_else(|| {
                let message = format!(
                    "argument of {of} must be type boolean, not type {}",
                    type_name(from)
                );
                Error::new(state::DATATYPE_MISMATCH, message).position(pos + 1)
            })
    }

    /// Brings expressions to the type PostgreSQL finds common to them (UNION, CASE, …).
    pub(in crate::binder) fn unify(
        &mut self,
        exprs: Vec<(Expr, Pos)>,
        what: &str,
    ) -> Result<(Vec<Expr>, SqlType)> {
        let types: Vec<SqlType> = exprs.iter().map(|(e, _)| e.ty()).collect();
        let ty = self.common_type(&types, what).map_err(|e| {
            let odd = exprs
                .iter()
                .position(|(e, _)| e.type_oid() != oid::UNKNOWN && e.type_oid() != types[0].oid);
            at(e, exprs[odd.unwrap_or(0)].1)
        })?;
        let exprs = exprs
            .into_iter()
            .map(|(e, pos)| {
                let from = e.type_oid();
                self.try_coerce(e, ty, CastContext::Implicit, pos)?
                    .ok_or_else(|| {
                        let message = format!(
                            "{what} could not convert type {} to {}",
                            type_name(from),
                            type_name(ty.oid)
                        );
                        Error::new(state::CANNOT_COERCE, message).position(pos + 1)
                    })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok((exprs, ty))
    }

    pub(in crate::binder) fn common_type(&self, types: &[SqlType], what: &str) -> Result<SqlType> {
        // A modifier that all share is kept.
        if let Some(first) = types.first()
            && first.oid != oid::UNKNOWN
            && types.iter().all(|t| t == first)
        {
            return Ok(*first);
        }
        let oids: Vec<Oid> = types.iter().map(|t| t.oid).collect();
        select_common_type(&oids, what).map(SqlType::plain)
    }

    /// What has no type when everything else has been settled is text.
    pub(in crate::binder) fn settle(&mut self, expr: Expr, pos: Pos) -> Result<Expr> {
        match expr.type_oid() {
            oid::UNKNOWN => self.coerce(expr, SqlType::TEXT, pos),
            _ => Ok(expr),
        }
    }
}

fn cannot_cast(from: Oid, to: Oid, pos: Pos) -> Error {
    let message = format!("cannot cast type {} to {}", type_name(from), type_name(to));
    Error::new(state::CANNOT_COERCE, message).position(pos + 1)
}

/// Types that take anything as it is.
fn is_pseudo_target(ty: Oid) -> bool {
    matches!(
        ty,
        oid::ANY
            | oid::ANYELEMENT
            | oid::ANYARRAY
            | oid::ANYNONARRAY
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
            | oid::ANYRANGE
            | oid::ANYMULTIRANGE
            | oid::ANYCOMPATIBLERANGE
            | oid::ANYCOMPATIBLEMULTIRANGE
    )
}
