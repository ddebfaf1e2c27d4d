//! Operators applied: built in, or made by a user.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result, SqlType, oid};

use crate::binder::{Binder, at};
use crate::tree::expr::{Expr, OwnForm, Written};
use throng_catalog::{OperatorDef, builtin};
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::{
    ChosenOperator, GivenOperator, Operator, OperatorSignature, choose_operator, resolve_operator,
};

impl Binder<'_> {
    /// 42883 where an operator is sought in a schema of users', for what only built-in ones serve.
    pub(in crate::binder) fn check_operator_schema(&self, op: &ast::Operator) -> Result<()> {
        match &op.schema {
            Some(schema) if schema != "pg_catalog" => {
                if !self.own_operators(Some(schema), &op.name).is_empty() {
                    let what = "a user's operator with ANY, ALL or a subquery";
                    return Err(Error::unsupported(what).position(op.pos + 1));
                }
                let message = format!("operator does not exist: {schema}.{}", op.name);
                Err(Error::new(state::UNDEFINED_FUNCTION, message).position(op.pos + 1))
            }
            _ => Ok(()),
        }
    }

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

    fn operator_of_schema(
        &mut self,
        schema: Option<&str>,
        name: &str,
        left: Option<Expr>,
        right: Expr,
        pos: Pos,
    ) -> Result<Expr> {
        let right = self.refreshed(right);
        let left = left.map(|left| self.refreshed(left));
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
            left: left.as_ref().map(Expr::type_oid),
            right: right.type_oid(),
            own: &signatures,
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
        let (left_type, right_type, ret) = match &chosen {
            ChosenOperator::BuiltIn(found) => (found.left, found.right, found.ret),
            ChosenOperator::Own {
                left, right, ret, ..
            } => (*left, *right, *ret),
        };
        let mut args = Vec::with_capacity(2);
        if let Some(left) = left {
            args.push(self.coerce(left, SqlType::plain(left_type), pos)?);
        }
        args.push(self.coerce(right, SqlType::plain(right_type), pos)?);
        match chosen {
            ChosenOperator::BuiltIn(found) => {
                if matches!(found.operator.code_name, "textanycat" | "anytextcat") {
                    args = self.objects_named(args, pos)?;
                }
                Ok(Expr::Op {
                    op: found.operator,
                    args,
                    ty: SqlType::plain(ret),
                })
            }
            ChosenOperator::Own { place, .. } => {
                let def = own[place].1.clone();
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

    /// A binary operator that must give a boolean, with its operands cast.
    pub(in crate::binder) fn resolve_binary(
        &mut self,
        name: &str,
        left: Expr,
        right: Expr,
        pos: Pos,
    ) -> Result<(&'static Operator, Expr, Expr)> {
        let (left, right) = (self.refreshed(left), self.refreshed(right));
        let found = resolve_operator(name, Some(left.type_oid()), right.type_oid())
            .map_err(|e| at(e, pos))?;
        let left = self.coerce(left, SqlType::plain(found.left), pos)?;
        let right = self.coerce(right, SqlType::plain(found.right), pos)?;
        Ok((found.operator, left, right))
    }
}
