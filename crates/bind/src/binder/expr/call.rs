//! Function calls, aggregates among them, and what a column is called.

use throng_types::error::state;
use throng_types::sqltype::{type_by_name, type_name};
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::ddl::domain::Declared;
use crate::binder::query::scope::Scope;
use crate::binder::query::select::{has_aggregate, has_window};
use crate::binder::{Binder, at};
use crate::tree::aggregate::AggFunction;
use crate::tree::expr::{Expr, RoutineCall};
use throng_catalog::RoutineKind;
use throng_syntax::parse::ast::{self, Node, Pos};
use throng_values::func::compare::is_ordered;
use throng_values::func::system::current::CURRENT;
use throng_values::func::{Callee, CastContext, resolve_function, written};

/// A call with its function chosen and its arguments cast.
pub(in crate::binder) struct ResolvedCall {
    pub callee: Callee,
    pub args: Vec<Expr>,
    pub ty: SqlType,
    /// A user's function, with its arguments.
    pub routine: Option<Box<RoutineCall>>,
    /// The types of the arguments as they were given.
    pub given: Vec<Oid>,
}

/// Functions that print arguments of any type.
const PRINTING: [&str; 11] = [
    "concat",
    "concat_ws",
    "format",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "quote_literal",
    "quote_nullable",
    "to_json",
    "to_jsonb",
];

impl Binder<'_> {
    pub(in crate::binder) fn call(
        &mut self,
        call: &ast::Call,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if let Some(value) = self.special_value(call, pos)? {
            return Ok(value);
        }
        if call.name.last() == "merge_action" && call.name.schema() == Some("pg_catalog") {
            return self.merged_how(pos);
        }
        if let Some(value) = self.json_populate(call, pos, scope)? {
            return Ok(value);
        }
        if call.within_group {
            return self.ordered_set(call, pos, scope);
        }
        if let Some(over) = &call.over {
            return self.window_call(call, over, pos, scope);
        }
        let resolved = match self.resolve_call(call, pos, scope) {
            Err(e) if e.code() == state::UNDEFINED_FUNCTION => {
                return self.field_call(call, scope).ok_or(e);
            }
            resolved => resolved?,
        };
        let Some(resolved) = resolved else {
            return self.type_call(call, pos, scope);
        };
        if let Some(routine) = resolved.routine {
            if routine.def.kind == RoutineKind::Aggregate {
                return self.own_aggregate_call(call, *routine, pos, scope);
            }
            return self.routine_value(call, routine, &resolved.given, pos);
        }
        match resolved.callee {
            Callee::Routine(_) => Err(Error::internal("a function without its arguments")),
            Callee::Scalar(func) => {
                self.plain_call(call, pos)?;
                if func.name == "pg_typeof" {
                    // A value does not know all of its type; the expression does.
                    let ty = match call.args.first().map(|a| &a.node) {
                        Some(Node::Null | Node::Text(_)) => oid::UNKNOWN,
                        _ => resolved.args.first().map_or(oid::UNKNOWN, |a| {
                            self.domain_of(a).unwrap_or_else(|| a.type_oid())
                        }),
                    };
                    let name = Expr::Const(Datum::Oid(ty.0), SqlType::plain(oid::REGTYPE));
                    return Ok(keeping(resolved.args, name));
                }
                let func = match call.label == Some(func.name) {
                    true => written::with_words(func),
                    false => func,
                };
                let args = match PRINTING.contains(&func.name) {
                    true => self.objects_named(resolved.args, pos)?,
                    false => resolved.args,
                };
                Ok(Expr::Call {
                    func,
                    args,
                    ty: resolved.ty,
                })
            }
            Callee::Set(func) => {
                self.plain_call(call, pos)?;
                if !self.clause.allows_sets() {
                    let message = format!(
                        "set-returning functions are not allowed in {}",
                        self.clause.name()
                    );
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1));
                }
                Ok(Expr::SetCall {
                    func,
                    args: resolved.args,
                    ty: resolved.ty,
                })
            }
            Callee::Window(function) => {
                let message = format!("window function {} requires an OVER clause", function.name);
                Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(pos + 1))
            }
            Callee::Aggregate(agg) => {
                let agg = AggFunction::BuiltIn(agg);
                self.aggregate(call, agg, resolved.args, resolved.ty, pos, scope)
            }
        }
    }

    /// What only aggregates take.
    pub(in crate::binder) fn plain_call(&self, call: &ast::Call, pos: Pos) -> Result<()> {
        let name = call.name.last();
        let wrong = |what: &str| {
            let message = format!("{what} specified, but {name} is not an aggregate function");
            Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(pos + 1))
        };
        if call.star {
            let message = format!("{name}(*) specified, but {name} is not an aggregate function");
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(pos + 1));
        }
        if call.distinct {
            return wrong("DISTINCT");
        }
        if !call.order.is_empty() {
            return wrong("ORDER BY");
        }
        if call.filter.is_some() {
            return wrong("FILTER");
        }
        Ok(())
    }

    /// `int4(x)`: a type's name called is a cast.
    fn type_call(&mut self, call: &ast::Call, pos: Pos, scope: &Scope<'_>) -> Result<Expr> {
        self.plain_call(call, pos)?;
        let name = call.name.last();
        let plain = |oid| Declared {
            ty: SqlType::plain(oid),
            domain: None,
        };
        let ty = match type_by_name(name) {
            Some(info) => Some(plain(info.oid)),
            None => match self.made_type(&call.name) {
                Some(def) if def.domain.is_some() => Some(self.of_domain(&def, false)?),
                Some(def) => Some(plain(def.oid)),
                None => self.array_type_named(&call.name).map(plain),
            },
        };
        let (Some(Declared { ty: to, domain }), [arg]) = (ty, &call.args[..]) else {
            return Err(Error::internal("a call that is neither function nor cast"));
        };
        let bound = self.expr(arg, scope)?;
        let from = bound.type_oid();
        let cast = self.try_coerce(bound, to, CastContext::Explicit, arg.pos)?;
        let cast = cast.ok_or_else(|| {
            let message = format!("function {name}({}) does not exist", type_name(from));
            Error::new(state::UNDEFINED_FUNCTION, message)
                .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
                .position(pos + 1)
        })?;
        self.in_domain(cast, domain)
    }

    /// A function of one's own choosing applied to arguments.
    pub(in crate::binder) fn apply(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        pos: Pos,
    ) -> Result<Expr> {
        let types: Vec<_> = args.iter().map(|e| e.type_oid()).collect();
        let found = resolve_function(name, &types).map_err(|e| at(e, pos))?;
        let args = args
            .into_iter()
            .zip(&found.arg_types)
            .map(|(e, ty)| self.coerce(e, SqlType::plain(*ty), pos))
            .collect::<Result<Vec<_>>>()?;
        match found.callee {
            Callee::Scalar(func) => Ok(Expr::Call {
                func,
                args,
                ty: SqlType::plain(found.ret),
            }),
            _ => Err(Error::internal(format!("{name} is not a plain function"))),
        }
    }

    /// `CURRENT_DATE` and its kin, which are the transaction's time in some type.
    fn special_value(&mut self, call: &ast::Call, pos: Pos) -> Result<Option<Expr>> {
        let Some(label) = call.label else {
            return Ok(None);
        };
        let ty = match label {
            "current_date" => SqlType::DATE,
            "current_time" => SqlType::TIMETZ,
            "current_timestamp" => SqlType::TIMESTAMPTZ,
            "localtime" => SqlType::TIME,
            "localtimestamp" => SqlType::TIMESTAMP,
            _ => return Ok(None),
        };
        let now = match self.defining {
            true => Expr::Call {
                func: &CURRENT,
                args: vec![],
                ty: SqlType::TIMESTAMPTZ,
            },
            false => self.apply("now", vec![], pos)?,
        };
        let mut to = ty;
        if let Some(ast::Expr {
            node: Node::Integer(digits),
            ..
        }) = call.args.first()
        {
            to.typmod = digits.parse().unwrap_or(6).clamp(0, 6);
        }
        Ok(Some(self.explicit_cast(now, to, pos)?))
    }

    /// What a value's column is called where it is given no name.
    pub(in crate::binder) fn label_of(&self, ast: &ast::Expr) -> String {
        label(&ast.node).map_or("?column?".into(), |(name, _)| name)
    }

    /// 42883 for a type that has no equality to group by.
    pub(in crate::binder) fn check_groupable(&self, expr: &Expr, pos: Pos) -> Result<()> {
        let ty = expr.type_oid();
        if ty == oid::RECORD || is_ordered(ty) {
            return Ok(());
        }
        let message = format!(
            "could not identify an equality operator for type {}",
            type_name(ty)
        );
        Err(Error::new(state::UNDEFINED_FUNCTION, message).position(pos + 1))
    }

    /// 42883 for a type that has no order.
    pub(in crate::binder) fn check_sortable(&self, expr: &Expr, pos: Pos) -> Result<()> {
        let ty = expr.type_oid();
        if ty == oid::RECORD || is_ordered(ty) {
            return Ok(());
        }
        let message = format!(
            "could not identify an ordering operator for type {}",
            type_name(ty)
        );
        Err(Error::new(state::UNDEFINED_FUNCTION, message)
            .hint("Use an explicit ordering operator or modify the query.")
            .position(pos + 1))
    }
}

/// A value that does not depend on its argument, which still decides what its query computes.
fn keeping(mut args: Vec<Expr>, value: Expr) -> Expr {
    let computed = |e: &Expr| has_aggregate(e) || has_window(e);
    match args.pop() {
        Some(arg) if computed(&arg) => Expr::Case {
            operand: None,
            ty: value.ty(),
            whens: vec![(Expr::IsNull(Box::new(arg)), value.clone())],
            default: Box::new(value),
        },
        _ => value,
    }
}

/// A column's name by PostgreSQL's rules, and how sure it is: a weak one gives way to a cast's.
fn label(node: &Node) -> Option<(String, bool)> {
    const STRONG: bool = true;
    const WEAK: bool = false;
    match node {
        Node::Column(parts) => parts.last().map(|n| (n.clone(), STRONG)),
        Node::Field { name, .. } => Some((name.clone(), STRONG)),
        Node::Subscript { arg, .. }
        | Node::Slice { arg, .. }
        | Node::Parenthesised(arg)
        | Node::Collate { arg, .. } => label(&arg.node),
        Node::Call(call) => Some((
            call.label
                .map_or(call.name.last().to_string(), str::to_string),
            STRONG,
        )),
        Node::Cast { arg, ty } => match label(&arg.node) {
            Some((name, STRONG)) => Some((name, STRONG)),
            _ => Some((ty.name.last().to_string(), WEAK)),
        },
        Node::Case { default, .. } => match default.as_ref().and_then(|d| label(&d.node)) {
            Some((name, STRONG)) => Some((name, STRONG)),
            _ => Some(("case".into(), WEAK)),
        },
        Node::Array(_) | Node::ArrayQuery(_) => Some(("array".into(), STRONG)),
        Node::Row { .. } => Some(("row".into(), STRONG)),
        Node::Coalesce(_) => Some(("coalesce".into(), STRONG)),
        Node::MinMax { greatest: true, .. } => Some(("greatest".into(), STRONG)),
        Node::MinMax {
            greatest: false, ..
        } => Some(("least".into(), STRONG)),
        Node::Grouping(_) => Some(("grouping".into(), STRONG)),
        Node::NullIf(..) => Some(("nullif".into(), STRONG)),
        Node::Exists(_) => Some(("exists".into(), STRONG)),
        Node::Subquery(query) => subquery_label(query),
        Node::Json(json) => json.label().map(|l| (l.to_string(), STRONG)),
        _ => None,
    }
}

fn subquery_label(query: &ast::Query) -> Option<(String, bool)> {
    match &query.body {
        ast::Body::Select(select) => {
            let item = select.targets.first()?;
            match &item.alias {
                Some(alias) => Some((alias.clone(), true)),
                None if matches!(item.expr.node, Node::Star(_) | Node::FieldStar(_)) => None,
                None => Some((
                    label(&item.expr.node).map_or("?column?".into(), |(name, _)| name),
                    true,
                )),
            }
        }
        ast::Body::Nested(query) => subquery_label(query),
        ast::Body::SetOp { left, .. } => subquery_label(left),
        ast::Body::Values(_) => Some(("column1".into(), true)),
    }
}
