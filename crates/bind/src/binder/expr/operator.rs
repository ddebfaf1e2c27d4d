//! Operators applied: built in, of extensions, or made by a user.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{element_of, made, type_name};
use throng_types::{Error, Oid, Result, SqlType, oid};

use crate::binder::{Binder, at};
use crate::tree::expr::{Expr, OwnForm, Written};
use throng_catalog::{Catalog, OperatorDef, builtin};
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::extension::{extension_of_operator, known};
use throng_values::func::{
    ChosenOperator, GivenOperator, Operator, OperatorSignature, ResolvedOperator, choose_operator,
};

/// The operator that was meant, with what its operands must be cast to.
pub(in crate::binder) enum Found {
    /// Built in, or of an extension.
    Table(ResolvedOperator),
    Own {
        def: Arc<OperatorDef>,
        left: Oid,
        right: Oid,
        ret: Oid,
    },
}

impl Binder<'_> {
    pub(in crate::binder) fn operator_in(
        &mut self,
        op: &ast::Operator,
        left: Option<Expr>,
        right: Expr,
    ) -> Result<Expr> {
        self.operator_of_schema(op.schema.as_deref(), &op.name, left, right, op.pos)
    }

    /// A parameter that was bound before another use of it settled its type.
    fn refreshed(&self, expr: Expr) -> Expr {
        match expr {
            Expr::Param(n, ty) if ty.oid == oid::UNKNOWN => Expr::Param(n, self.params[n as usize]),
            expr => expr,
        }
    }

    /// Operators of installed extensions that this name may mean, with their schemas' places in the
    /// path.
    fn extension_operators(
        &self,
        schema: Option<&str>,
        name: &str,
    ) -> Vec<(usize, &'static Operator)> {
        let name = if name == "!=" { "<>" } else { name };
        let wanted = schema.map(|schema| self.schema_named(schema));
        let mut found = Vec::new();
        for def in self.catalog().extensions() {
            let rank = match wanted {
                None => self.search_path.iter().position(|s| *s == def.schema),
                Some(schema) => (schema == Some(def.schema)).then_some(0),
            };
            if let (Some(rank), Some(extension)) = (rank, known(&def.name)) {
                let named = extension.operators.iter().filter(|o| o.name == name);
                found.extend(named.map(|o| (rank, o)));
            }
        }
        found
    }

    /// Users' operators that this name may mean, with their schemas' places in the path.
    fn own_operators(&self, schema: Option<&str>, name: &str) -> Vec<(usize, Arc<OperatorDef>)> {
        let catalog = self.catalog();
        if !catalog.has_operators() {
            return vec![];
        }
        let in_schema = |(rank, schema): (usize, Oid)| {
            let found = catalog.operators_in(schema, name).into_iter();
            found.map(move |def| (rank, def.clone()))
        };
        match schema {
            Some(schema) => {
                let schema = self.schema_named(schema).map(|schema| (0, schema));
                schema.into_iter().flat_map(in_schema).collect()
            }
            None => {
                let path = self.search_path.iter().copied().enumerate();
                path.flat_map(in_schema).collect()
            }
        }
    }

    /// Whether users made an operator for values of just these types.
    pub(in crate::binder) fn has_own(&self, op: &ast::Operator, left: &Expr, right: &Expr) -> bool {
        let types = (Some(left.type_oid()), right.type_oid());
        let mut own = self
            .own_operators(op.schema.as_deref(), &op.name)
            .into_iter();
        own.any(|(_, def)| (def.left, def.right) == types)
    }

    /// An operator applied, its operands cast to what it takes.
    pub(in crate::binder) fn operator(
        &mut self,
        name: &str,
        left: Option<Expr>,
        right: Expr,
        pos: Pos,
    ) -> Result<Expr> {
        self.operator_of_schema(None, name, left, right, pos)
    }

    /// What the operands' types choose: among built-in operators, those of extensions and users'.
    pub(in crate::binder) fn choose_operator(
        &self,
        schema: Option<&str>,
        name: &str,
        operands: (Option<Oid>, Oid),
        pos: Pos,
    ) -> Result<Found> {
        if let Some(schema) = schema
            && self.schema_named(schema).is_none()
        {
            let message = format!("schema \"{schema}\" does not exist");
            return Err(Error::new(state::INVALID_SCHEMA_NAME, message).position(pos + 1));
        }
        let own = self.own_operators(schema, name);
        let signatures: Vec<OperatorSignature> = own
            .iter()
            .map(|(rank, def)| OperatorSignature {
                rank: *rank,
                left: def.left,
                right: def.right,
                ret: def.ret,
            })
            .collect();
        let mut path = self.search_path.iter();
        let built_in = match schema {
            // Built-in operators are found even where the path does not name their schema.
            None => Some(path.position(|s| *s == builtin::PG_CATALOG).unwrap_or(0)),
            Some("pg_catalog") => Some(0),
            Some(_) => None,
        };
        let chosen = choose_operator(&GivenOperator {
            name,
            left: operands.0,
            right: operands.1,
            own: &signatures,
            extensions: &self.extension_operators(schema, name),
            of_types: schema.is_none(),
            builtin: built_in,
            casts: &|from, to| self.casts_anywhere(from, to),
        });
        let chosen = chosen.map_err(|mut e| {
            if let Some(schema) = schema {
                let written = format!("{schema}.{name}");
                e.fields_mut().message = e.message().replacen(name, &written, 1);
            }
            at(e, pos)
        })?;
        Ok(match chosen {
            ChosenOperator::BuiltIn(found) => Found::Table(found),
            ChosenOperator::Own {
                place,
                left,
                right,
                ret,
            } => Found::Own {
                def: own[place].1.clone(),
                left,
                right,
                ret,
            },
        })
    }

    /// The operator for these operands, where it cannot be a user's.
    pub(in crate::binder) fn operator_at(
        &self,
        schema: Option<&str>,
        name: &str,
        operands: (Oid, Oid),
        pos: Pos,
    ) -> Result<ResolvedOperator> {
        match self.choose_operator(schema, name, (Some(operands.0), operands.1), pos)? {
            Found::Table(found) => Ok(found),
            Found::Own { .. } => {
                let what = "a user's operator with NULLIF or IS DISTINCT FROM";
                Err(Error::unsupported(what).position(pos + 1))
            }
        }
    }

    pub(in crate::binder) fn operator_of_schema(
        &mut self,
        schema: Option<&str>,
        name: &str,
        left: Option<Expr>,
        right: Expr,
        pos: Pos,
    ) -> Result<Expr> {
        let right = self.refreshed(right);
        let left = left.map(|left| self.refreshed(left));
        let operands = (left.as_ref().map(Expr::type_oid), right.type_oid());
        let chosen = self.choose_operator(schema, name, operands, pos)?;
        let (left_type, right_type, ret) = match &chosen {
            Found::Table(found) => (found.left, found.right, found.ret),
            Found::Own {
                left, right, ret, ..
            } => (*left, *right, *ret),
        };
        let mut args = Vec::with_capacity(2);
        if let Some(left) = left {
            args.push(self.coerce(left, SqlType::plain(left_type), pos)?);
        }
        args.push(self.coerce(right, SqlType::plain(right_type), pos)?);
        match chosen {
            Found::Table(found) => {
                if matches!(found.operator.code_name, "textanycat" | "anytextcat") {
                    args = self.objects_named(args, pos)?;
                }
                Ok(Expr::Op {
                    op: found.operator,
                    args,
                    ty: SqlType::plain(ret),
                })
            }
            Found::Own { def, .. } => {
                if def.function.is_none() {
                    let right = type_name(def.right);
                    let operands = match def.left {
                        Some(left) => format!("{} {name} {right}", type_name(left)),
                        None => format!("{name} {right}"),
                    };
                    let message = format!("operator is only a shell: {operands}");
                    return Err(Error::new(state::UNDEFINED_FUNCTION, message).position(pos + 1));
                }
                let value = self.function_of_values(def.function, args, SqlType::plain(ret))?;
                Ok(Expr::Own(Box::new(OwnForm {
                    written: Written::Operator(def),
                    value,
                })))
            }
        }
    }

    /// A user's operator with ANY or ALL of an array that is written item by item.
    pub(in crate::binder) fn own_quantified(
        &mut self,
        op: &ast::Operator,
        left: Expr,
        array: Expr,
        all: bool,
    ) -> Result<Expr> {
        let items = match array {
            Expr::Array(items, _) if items.iter().all(|i| element_of(i.type_oid()).is_none()) => {
                items
            }
            _ => {
                let what = "a user's operator with ANY or ALL of an array";
                return Err(Error::unsupported(what).position(op.pos + 1));
            }
        };
        let mut tests = Vec::with_capacity(items.len());
        for item in items {
            let test = self.operator_in(op, Some(left.clone()), item)?;
            if test.type_oid() != oid::BOOL {
                let message = "op ANY/ALL (array) requires operator to yield boolean";
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(op.pos + 1));
            }
            tests.push(test);
        }
        Ok(match (tests.is_empty(), all) {
            (true, all) => Expr::bool(all),
            (false, true) => Expr::And(tests),
            (false, false) => Expr::Or(tests),
        })
    }

    /// A binary operator that must give a boolean, with its operands cast.
    pub(in crate::binder) fn resolve_binary(
        &mut self,
        name: &str,
        left: Expr,
        right: Expr,
        pos: Pos,
    ) -> Result<(&'static Operator, Expr, Expr)> {
        let (left, right) = (self.refreshed(left), self.refreshed(right));
        let operands = (left.type_oid(), right.type_oid());
        let found = self.operator_at(None, name, operands, pos)?;
        let left = self.coerce(left, SqlType::plain(found.left), pos)?;
        let right = self.coerce(right, SqlType::plain(found.right), pos)?;
        Ok((found.operator, left, right))
    }
}

/// The operator of an extension that an expression has.
pub(in crate::binder) fn own_operator(expr: &Expr) -> Option<Oid> {
    let (Expr::Op { op, .. } | Expr::ArrayCompare { op, .. }) = expr else {
        return None;
    };
    extension_of_operator(op.oid).map(|_| op.oid)
}

/// The relation whose rows' type an object is, the extension whose operator it is, or the object
/// itself.
pub(in crate::binder) fn relation_of(object: Oid, catalog: &Catalog) -> Oid {
    if let Some(extension) = extension_of_operator(object) {
        let def = catalog.extension_by_name(extension.name);
        return def.map_or(object, |def| def.oid);
    }
    match made::is_composite(object) && catalog.made_type(object).is_none() {
        true => made::serial(object).unwrap_or(object),
        false => object,
    }
}
