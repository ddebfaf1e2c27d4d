//! CREATE TYPE … AS RANGE and AS ENUM, and the calls that make values of such a type.

use throng_types::error::state;
use throng_types::range::{multirange_type, range_type};
use throng_types::sqltype::{array_of, has_collation, made, type_info, type_name};
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::Binder;
use crate::binder::expr::call::ResolvedCall;
use crate::command::Ddl;
use crate::tree::expr::Expr;
use throng_catalog::system::operator_class;
use throng_catalog::{IndexMethod, RangeDef, TypeDef, builtin};
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::range::{MADE_MULTIRANGE, MADE_RANGE};
use throng_values::func::{Callee, CastContext, can_coerce, functions_named, resolve_operator};

/// What was said of a range type, each once.
#[derive(Default)]
struct Said<'a> {
    subtype: Option<&'a ast::RangeOption>,
    class: Option<&'a ast::RangeOption>,
    collation: Option<&'a ast::RangeOption>,
    difference: Option<&'a ast::RangeOption>,
    multirange: Option<&'a ast::RangeOption>,
}

impl<'a> Said<'a> {
    fn of(options: &'a [ast::RangeOption]) -> Result<Said<'a>> {
        let mut said = Said::default();
        for option in options {
            let place = match option.name.as_str() {
                "subtype" => &mut said.subtype,
                "subtype_opclass" => &mut said.class,
                "collation" => &mut said.collation,
                "subtype_diff" => &mut said.difference,
                "multirange_type_name" => &mut said.multirange,
                "canonical" => {
                    let message =
                        "cannot specify a canonical function without a pre-created shell type";
                    return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message).hint(
                        "Create the type as a shell type, then create its canonicalization function, then do a full CREATE TYPE.",
                    ));
                }
                other => {
                    let message = format!("type attribute \"{other}\" not recognized");
                    return Err(Error::new(state::SYNTAX_ERROR, message));
                }
            };
            if place.replace(option).is_some() {
                let message = "conflicting or redundant options";
                return Err(Error::new(state::SYNTAX_ERROR, message).position(option.pos + 1));
            }
        }
        Ok(said)
    }
}

impl Binder<'_> {
    pub(in crate::binder) fn create_enum(
        &mut self,
        name: &ast::Name,
        labels: &[String],
    ) -> Result<Ddl> {
        Ok(Ddl::CreateEnum {
            schema: self.place_beside_relations(name)?,
            name: name.last().to_owned(),
            owner: self.ctx.user,
            labels: labels.to_vec(),
        })
    }

    pub(in crate::binder) fn create_range(
        &mut self,
        name: &ast::Name,
        options: &[ast::RangeOption],
    ) -> Result<Ddl> {
        let schema = self.place_beside_relations(name)?;
        let said = Said::of(options)?;
        let Some(subtype) = said.subtype else {
            let message = "type attribute \"subtype\" is required";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        };
        let declared = self.declared(&subtype.value)?;
        if declared.domain.is_some() {
            return Err(Error::unsupported("a range over a domain"));
        }
        let subtype = declared.ty.oid;
        if type_info(subtype).is_none_or(|info| info.is_pseudo()) {
            let message = format!("range subtype cannot be {}", type_name(subtype));
            return Err(Error::new(state::DATATYPE_MISMATCH, message));
        }
        let class = match said.class {
            Some(option) => range_class(&option.value.name, subtype)?,
            None => default_class(subtype)?,
        };
        let collation = range_collation(said.collation.map(|option| &option.value.name), subtype)?;
        let difference = match said.difference {
            Some(option) => self.range_difference(&option.value.name, subtype)?,
            None => Oid::NONE,
        };
        let multirange = said.multirange.map(|option| &option.value.name);
        let def = TypeDef {
            oid: Oid::NONE,
            schema,
            name: name.last().to_owned(),
            owner: self.ctx.user,
            labels: vec![],
            domain: None,
            fields: None,
            array_name: None,
            range: Some(RangeDef {
                subtype,
                class,
                collation,
                difference,
            }),
        };
        Ok(Ddl::CreateRange {
            def,
            multirange: multirange.map(|name| name.last().to_owned()),
        })
    }

    /// The function of that name that tells how far two values are apart.
    fn range_difference(&mut self, name: &ast::Name, subtype: Oid) -> Result<Oid> {
        let args = [subtype, subtype];
        let written = || {
            let ty = type_name(subtype);
            format!("{name}({ty}, {ty})")
        };
        let routines = self.routines_named(name);
        let own = routines
            .iter()
            .map(|(_, def)| def)
            .find(|def| def.input_types() == args);
        let (oid, ret) = match own {
            Some(def) => (def.oid, def.ret),
            None => {
                let mut known = functions_named(name.last()).iter();
                let found = known.find(|f| f.args == args).ok_or_else(|| {
                    let message = format!("function {} does not exist", written());
                    Error::new(state::UNDEFINED_FUNCTION, message)
                })?;
                (found.oid, found.ret)
            }
        };
        if ret != oid::FLOAT8 {
            let message = format!(
                "range subtype diff function {} must return type double precision",
                written()
            );
            return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
        }
        Ok(oid)
    }

    /// A call of a range type's name, or of a multirange type's: None where it is none.
    pub(in crate::binder) fn range_constructor(
        &mut self,
        call: &ast::Call,
        args: &[(Expr, Pos)],
    ) -> Result<Option<ResolvedCall>> {
        if call.star || !call.names.is_empty() || call.over.is_some() {
            return Ok(None);
        }
        let Some(def) = self.made_type(&call.name) else {
            return Ok(None);
        };
        let ty = def.oid;
        if let Some(range) = range_type(ty).filter(|_| made::is_range(ty)) {
            let subtype = SqlType::plain(range.subtype);
            let wanted = [subtype, subtype, SqlType::TEXT];
            let fits = matches!(args.len(), 2 | 3) && !call.variadic;
            if !fits || !all_go(args, &wanted) {
                return Ok(None);
            }
            let values = self.all_to(args, &wanted)?;
            return Ok(Some(constructor(&MADE_RANGE, values, ty, ty, args)));
        }
        let Some(range) = multirange_type(ty).filter(|_| made::is_multirange(ty)) else {
            return Ok(None);
        };
        let array = array_of(range.range).unwrap_or(oid::UNKNOWN);
        let values = if call.variadic {
            let wanted = [SqlType::plain(array)];
            if args.len() != 1 || !all_go(args, &wanted) {
                return Ok(None);
            }
            self.all_to(args, &wanted)?
        } else {
            let wanted = vec![SqlType::plain(range.range); args.len()];
            if !all_go(args, &wanted) {
                return Ok(None);
            }
            let items = self.all_to(args, &wanted)?;
            vec![Expr::Array(items, SqlType::plain(array))]
        };
        let made = constructor(&MADE_MULTIRANGE, values, range.range, ty, args);
        Ok(Some(made))
    }

    fn all_to(&mut self, args: &[(Expr, Pos)], wanted: &[SqlType]) -> Result<Vec<Expr>> {
        let pairs = args.iter().zip(wanted);
        pairs
            .map(|((arg, pos), ty)| self.coerce(arg.clone(), *ty, *pos))
            .collect()
    }
}

/// Whether all arguments go where they are given without being asked.
fn all_go(args: &[(Expr, Pos)], wanted: &[SqlType]) -> bool {
    let mut pairs = args.iter().zip(wanted);
    pairs.all(|((arg, _), ty)| can_coerce(arg.type_oid(), ty.oid, CastContext::Implicit))
}

/// A call that is told the range type by a last argument.
fn constructor(
    func: &'static throng_values::func::Function,
    mut values: Vec<Expr>,
    range: Oid,
    ty: Oid,
    args: &[(Expr, Pos)],
) -> ResolvedCall {
    values.push(Expr::Const(Datum::Oid(range.0), SqlType::OID));
    ResolvedCall {
        callee: Callee::Scalar(func),
        args: values,
        ty: SqlType::plain(ty),
        routine: None,
        given: args.iter().map(|(arg, _)| arg.type_oid()).collect(),
    }
}

/// The B-tree operator class of that name for a type.
fn range_class(name: &ast::Name, subtype: Oid) -> Result<Oid> {
    match operator_class::accepts(IndexMethod::Btree, name.last(), subtype) {
        Some(true) => Ok(operator_class::class_of(
            IndexMethod::Btree,
            name.last(),
            subtype,
        )),
        Some(false) => {
            let message = format!(
                "operator class \"{name}\" does not accept data type {}",
                type_name(subtype)
            );
            Err(Error::new(state::DATATYPE_MISMATCH, message))
        }
        None => {
            let message =
                format!("operator class \"{name}\" does not exist for access method \"btree\"");
            Err(Error::new(state::UNDEFINED_OBJECT, message))
        }
    }
}

fn default_class(subtype: Oid) -> Result<Oid> {
    if resolve_operator("<", Some(subtype), subtype).is_ok() {
        return Ok(operator_class::default_for(subtype));
    }
    let message = format!(
        "data type {} has no default operator class for access method \"btree\"",
        type_name(subtype)
    );
    Err(Error::new(state::UNDEFINED_OBJECT, message).hint(
        "You must specify an operator class for the range type or define a default operator class for the subtype.",
    ))
}

/// The collation of the bounds' order: all are one order.
fn range_collation(name: Option<&ast::Name>, subtype: Oid) -> Result<Oid> {
    match name {
        Some(_) if !has_collation(subtype) => {
            let message = "range collation specified but subtype does not support collation";
            Err(Error::new(state::WRONG_OBJECT_TYPE, message))
        }
        Some(name) => throng_catalog::system::named::collation(name.last()).ok_or_else(|| {
            let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
            Error::new(state::UNDEFINED_OBJECT, message)
        }),
        None if has_collation(subtype) => Ok(builtin::DEFAULT_COLLATION),
        None => Ok(Oid::NONE),
    }
}
