//! Calls: which function is meant, its arguments in order, defaults filled in; and what a call of a
//! user's function becomes.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{array_of, made, type_name};
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::expr::call::ResolvedCall;
use crate::binder::query::scope::Scope;
use crate::binder::{Binder, Clause, at};
use crate::tree::expr::{Expr, RoutineCall};
use throng_catalog::{ArgDef, RoutineDef, RoutineKind, builtin};
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::{
    Callee, CastContext, CastMethod, Filler, Function, Given, RelColumn, Resolved, Signature,
    actual_type, find_cast, named, resolve_call,
};

/// Where the texts of defaults are bound: they name everything else with its schema.
const STORED_PATH: &[Oid] = &[builtin::PG_CATALOG];

/// Functions of values of any type that make text of them.
const SHOW_ARGUMENTS: [&str; 5] = [
    "concat",
    "concat_ws",
    "format",
    "quote_literal",
    "quote_nullable",
];

/// A routine as the choice among overloads needs it; `rank` is its schema's place in the path.
pub(in crate::binder) fn signature((rank, def): &(usize, Arc<RoutineDef>)) -> Signature {
    Signature {
        rank: *rank,
        types: def.call_args().map(|a| a.ty).collect(),
        names: def.call_args().map(|a| a.name.clone()).collect(),
        defaults: def.defaults(),
        is_variadic: def.is_variadic(),
        ret: def.ret,
    }
}

/// The error of a call that nothing answers, with the name as it is written.
fn not_found(call: &ast::Call, name: &str, mut e: Error, pos: Pos) -> Error {
    if call.name.parts.len() > 1 && !call.name.parts[0].is_empty() {
        let written = call.name.to_string();
        let message = e.message().replacen(name, &written, 1);
        // What the grammar makes of SQL's own forms is called by the name alone.
        if call.name.parts[0] != "pg_catalog" {
            e.fields_mut().message = message;
        }
    }
    at(e, pos)
}

impl Binder<'_> {
    /// Users' functions that a call by this name may mean, with their schemas' places in the path.
    pub(in crate::binder) fn routines_named(
        &self,
        name: &ast::Name,
    ) -> Vec<(usize, Arc<RoutineDef>)> {
        let catalog = self.catalog();
        let in_schema = |(rank, schema): (usize, Oid)| {
            let found = catalog.routines_in(schema, name.last()).into_iter();
            found.map(move |def| (rank, def.clone()))
        };
        match name.schema() {
            Some(schema) => self
                .schema_named(schema)
                .into_iter()
                .flat_map(|schema| in_schema((0, schema)))
                .collect(),
            None => {
                let path = self.search_path.iter().copied().enumerate();
                // Functions are never sought in the temporary schema unless it is named.
                path.filter(|(_, schema)| Some(*schema) != self.ctx.temporary_schema)
                    .flat_map(in_schema)
                    .collect()
            }
        }
    }

    /// Arguments of polymorphic parameters as what tells their type, where values do not.
    fn tell_types(&mut self, declared: &[Oid], args: &mut [Expr], pos: Pos) -> Result<()> {
        for (nth, arg) in args.iter_mut().enumerate() {
            if declared.get(nth) == Some(&arg.type_oid()) {
                continue;
            }
            if let Some(ty) = throng_values::func::json::telling_type(arg.type_oid()) {
                *arg = self.explicit_cast(arg.clone(), SqlType::plain(ty), pos)?;
            }
        }
        Ok(())
    }

    /// Binds the arguments and chooses the function; None where the name is a type's to be cast to.
    pub(in crate::binder) fn resolve_call(
        &mut self,
        call: &ast::Call,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Option<ResolvedCall>> {
        let name = call.name.last();
        let args_clause = if call.over.is_some() && self.clause.allows_windows() {
            Clause::WindowArgs
        } else if call.over.is_some() || !self.may_be_aggregate(&call.name) {
            self.clause
        } else {
            if self.clause == Clause::Aggregate {
                self.check_aggregate_place(pos)?;
            }
            Clause::Aggregate
        };
        let args = self.in_clause(args_clause, |b| {
            call.args
                .iter()
                .map(|a| Ok((b.expr(a, scope)?, a.pos)))
                .collect::<Result<Vec<_>>>()
        })?;
        // Of JDBC's calls: a parameter of type void stands for what comes back and is no argument.
        let is_void = |e: &Expr| matches!(e, Expr::Param(..)) && e.type_oid() == oid::VOID;
        let args: Vec<_> = args.into_iter().filter(|(e, _)| !is_void(e)).collect();
        let types: Vec<_> = args.iter().map(|(e, _)| e.type_oid()).collect();
        if let Some(schema) = call.name.schema() {
            self.schema(schema).map_err(|e| at(e, pos))?;
        }
        let routines = self.routines_named(&call.name);
        let signatures: Vec<Signature> = routines.iter().map(signature).collect();
        let given = Given {
            name,
            args: &types,
            names: &call.names,
            variadic: call.variadic,
            routines: &signatures,
            builtin: self.built_in_rank(&call.name),
            casts: &|from, to| self.casts_anywhere(from, to),
        };
        let may_be_cast = args.len() == 1 && !call.star && !call.variadic && call.names.is_empty();
        let found = match resolve_call(&given) {
            // What need not be computed is a cast before it is any function that does not take just
            // this type.
            Ok(found)
                if may_be_cast
                    && found.arg_types != types
                    && self.is_relabelling(types[0], &call.name) =>
            {
                return Ok(None);
            }
            Ok(found) => found,
            Err(e) if e.code() == state::UNDEFINED_FUNCTION && !may_be_cast => {
                match self.range_constructor(call, &args)? {
                    Some(made) => return Ok(Some(made)),
                    None => return Err(not_found(call, name, e, pos)),
                }
            }
            Err(_) if may_be_cast && self.is_type_name(&call.name) => return Ok(None),
            Err(e)
                if matches!(
                    e.code(),
                    state::UNDEFINED_FUNCTION | state::AMBIGUOUS_FUNCTION
                ) =>
            {
                return Err(not_found(call, name, e, pos));
            }
            // PostgreSQL tells no place for a type it cannot determine.
            Err(e) if e.code() == state::DATATYPE_MISMATCH && !call.variadic => return Err(e),
            // It is about the array.
            Err(e) if e.code() == state::DATATYPE_MISMATCH => {
                let pos = args.last().map_or(pos, |(_, pos)| *pos);
                return Err(at(e, pos));
            }
            Err(e) => return Err(at(e, pos)),
        };
        let mut args = args
            .into_iter()
            .zip(&found.arg_types)
            .map(|((e, pos), ty)| self.coerce(e, SqlType::plain(*ty), pos))
            .collect::<Result<Vec<_>>>()?;
        if let Callee::Routine(place) = found.callee {
            let def = routines[place].1.clone();
            let routine = self.routine_call(def, &found, args, &types, pos)?;
            return Ok(Some(ResolvedCall {
                ty: routine.ty,
                callee: found.callee,
                args: vec![],
                routine: Some(Box::new(routine)),
                given: types,
            }));
        }
        if name.contains("json") || SHOW_ARGUMENTS.contains(&name) {
            // What these make of a value depends on its type, which not every value tells.
            let declared = match found.callee {
                Callee::Scalar(func) | Callee::Set(func) => func.args,
                _ => &[],
            };
            self.tell_types(declared, &mut args, pos)?;
        }
        if let Callee::Scalar(func) = found.callee
            && throng_values::func::enums::takes_type(func)
        {
            let ty = found.arg_types[0].0;
            args.push(Expr::Const(Datum::Oid(ty), SqlType::OID));
        }
        if let Callee::Scalar(func) | Callee::Set(func) = found.callee
            && !found.fill.is_empty()
        {
            args = self.filled(func, &found.fill, args)?;
        }
        if call.variadic
            && let Some(last) = args.pop()
        {
            args.push(Expr::Variadic(Box::new(last)));
        }
        let ty = SqlType::plain(found.ret);
        Ok(Some(ResolvedCall {
            callee: found.callee,
            args,
            ty,
            routine: None,
            given: types,
        }))
    }

    pub(in crate::binder) fn is_type_name(&self, name: &ast::Name) -> bool {
        let plain = name.schema().is_none_or(|s| s == "pg_catalog");
        plain && throng_types::sqltype::type_by_name(name.last()).is_some()
            || self.made_type(name).is_some()
            || self.array_type_named(name).is_some()
    }

    /// The place in the path of what is built in, if a name may mean that.
    fn built_in_rank(&self, name: &ast::Name) -> Option<usize> {
        let mut path = self.search_path.iter();
        match name.schema() {
            None => path.position(|schema| *schema == builtin::PG_CATALOG),
            Some("pg_catalog") => Some(0),
            Some(_) => None,
        }
    }

    /// Whether a name is also that of an aggregate.
    fn may_be_aggregate(&self, name: &ast::Name) -> bool {
        let is_aggregate = |(_, def): &(usize, Arc<RoutineDef>)| def.kind == RoutineKind::Aggregate;
        !throng_values::func::aggregates_named(name.last()).is_empty()
            || self.routines_named(name).iter().any(is_aggregate)
    }

    /// Whether a value of this type, or a literal of none yet, is one of the named type as it is.
    fn is_relabelling(&self, from: Oid, name: &ast::Name) -> bool {
        let to = throng_types::sqltype::type_by_name(name.last()).map(|info| info.oid);
        self.is_type_name(name)
            && (from == oid::UNKNOWN
                || to
                    .and_then(|to| find_cast(from, to, CastContext::Explicit))
                    .is_some_and(|cast| matches!(cast.method, CastMethod::Binary)))
    }

    /// The arguments of a built-in function in its own order.
    fn filled(&mut self, func: &Function, fill: &[Filler], args: Vec<Expr>) -> Result<Vec<Expr>> {
        fill.iter()
            .map(|filler| match filler {
                Filler::Given(i) => Ok(args[*i].clone()),
                Filler::Default(place) => {
                    let text = named::default(func.oid, *place).ok_or_else(|| {
                        Error::unsupported(format!(
                            "leaving out an argument of {} before others",
                            func.name
                        ))
                    })?;
                    let ty = SqlType::plain(func.args[*place]);
                    let value = throng_values::io::input_text(&self.ctx.eval, text, ty)?;
                    Ok(Expr::Const(value, ty))
                }
            })
            .collect()
    }

    /// A call of a user's function: arguments gathered, defaults bound, the types of what it
    /// returns.
    fn routine_call(
        &mut self,
        def: Arc<RoutineDef>,
        found: &Resolved,
        mut args: Vec<Expr>,
        given: &[Oid],
        pos: Pos,
    ) -> Result<RoutineCall> {
        self.may_execute(&def)?;
        let written: Vec<ArgDef> = def.call_args().cloned().collect();
        let actual = |ty: Oid| actual_type(ty, &found.declared, given).unwrap_or(ty);
        if let Some(fixed) = found.variadic_from {
            let items = args.split_off(fixed);
            let element = items.first().map_or(oid::TEXT, Expr::type_oid);
            let array = array_of(element).ok_or_else(|| {
                let message = format!(
                    "could not find array type for data type {}",
                    type_name(element)
                );
                Error::new(state::UNDEFINED_OBJECT, message).position(pos + 1)
            })?;
            args.push(Expr::Array(items, SqlType::plain(array)));
        } else {
            let given = std::mem::take(&mut args);
            for filler in &found.fill {
                args.push(match filler {
                    Filler::Given(i) => given[*i].clone(),
                    Filler::Default(place) => {
                        let arg = written.get(*place);
                        let text = arg.and_then(|a| a.default.as_deref()).unwrap_or("NULL");
                        let declared = arg.map_or(oid::TEXT, |a| a.ty);
                        self.stored_default(text, actual(declared))?
                    }
                });
            }
        }
        // What only comes back is not handed over.
        let mut modes = written.iter().map(|a| a.mode.is_input());
        args.retain(|_| modes.next().unwrap_or(true));
        for (arg, declared) in args.iter_mut().zip(def.inputs()) {
            if let Some(domain) = declared.domain {
                let value = std::mem::replace(arg, Expr::bool(true));
                *arg = self.as_domain(value, domain, pos)?;
            }
        }
        let columns = self.routine_columns(&def, &actual);
        let row_type = def.row_of.and_then(made::composite_oid);
        let ty = SqlType::plain(row_type.unwrap_or(found.ret));
        let mut call = RoutineCall {
            def,
            args,
            ty,
            columns,
            inline: None,
        };
        call.inline = self.inline_value(&call).map(Arc::new);
        Ok(call)
    }

    fn stored_default(&mut self, text: &str, ty: Oid) -> Result<Expr> {
        let ast = throng_syntax::parse::parse_expr(text)?;
        let path = std::mem::replace(&mut self.search_path, STORED_PATH.to_vec());
        let arguments = self.arguments.take();
        let bound = self.expr(&ast, &Scope::empty());
        self.arguments = arguments;
        self.search_path = path;
        let ty = match throng_values::func::is_polymorphic(ty) {
            true => bound.as_ref().map_or(oid::TEXT, |e| e.type_oid()),
            false => ty,
        };
        let cast = self.coerce(bound?, SqlType::plain(ty), ast.pos);
        cast.map_err(|mut e| {
            e.fields_mut().position = None;
            e
        })
    }

    /// The columns of the rows a function returns; none where it returns values, or records of any
    /// kind.
    pub(in crate::binder) fn routine_columns(
        &self,
        def: &RoutineDef,
        actual: &dyn Fn(Oid) -> Oid,
    ) -> Vec<RelColumn> {
        let row_type = def.row_of.and_then(made::composite_oid);
        if let Some(columns) = self.composite_columns(row_type.unwrap_or(actual(def.ret))) {
            return columns;
        }
        if def.ret != oid::RECORD {
            return vec![];
        }
        let named = def.outputs().zip(1..).map(|(arg, n)| RelColumn {
            name: match arg.name.as_str() {
                "" => format!("column{n}"),
                name => name.to_owned(),
            },
            ty: SqlType::plain(actual(arg.ty)),
        });
        named.collect()
    }

    /// CALL of a procedure.
    pub(in crate::binder) fn call_procedure(
        &mut self,
        call: &ast::Call,
        pos: Pos,
    ) -> Result<RoutineCall> {
        let scope = Scope::empty();
        let clause = Clause::Other("CALL arguments");
        let resolved = self.in_clause(clause, |b| b.resolve_call(call, pos, &scope));
        let resolved = resolved.map_err(|mut e| {
            if e.code() == state::UNDEFINED_FUNCTION {
                let fields = e.fields_mut();
                fields.message = fields.message.replacen("function ", "procedure ", 1);
                fields.hint = Some("No procedure matches the given name and argument types. You might need to add explicit type casts.".into());
            }
            e
        })?;
        match resolved {
            Some(ResolvedCall {
                routine: Some(routine),
                ..
            }) if routine.def.kind == RoutineKind::Procedure => {
                let of_query = |arg: &Expr| arg.any(&mut |e| matches!(e, Expr::Subquery(_)));
                if let Some(at) = routine.args.iter().position(of_query) {
                    let message = "cannot use subquery in CALL argument";
                    let pos = call.args.get(at).map_or(pos, |arg| arg.pos);
                    let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
                    return Err(error.position(pos + 1));
                }
                Ok(*routine)
            }
            _ => {
                let given = resolved.map_or(vec![], |found| found.given);
                let types: Vec<String> = given.iter().map(|ty| type_name(*ty)).collect();
                let message = format!("{}({}) is not a procedure", call.name, types.join(", "));
                Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                    .hint("To call a function, use SELECT.")
                    .position(pos + 1))
            }
        }
    }

    /// What a call of a user's function is in an expression.
    pub(in crate::binder) fn routine_value(
        &mut self,
        call: &ast::Call,
        routine: Box<RoutineCall>,
        given: &[Oid],
        pos: Pos,
    ) -> Result<Expr> {
        self.plain_call(call, pos)?;
        if routine.def.kind == RoutineKind::Procedure {
            let args: Vec<String> = given.iter().map(|ty| type_name(*ty)).collect();
            let message = format!("{}({}) is a procedure", call.name, args.join(", "));
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                .hint("To call a procedure, use CALL.")
                .position(pos + 1));
        }
        if !routine.def.set {
            let domain = routine.def.ret_domain;
            let value = Expr::Routine(routine);
            // A row is looked at here; other values are where the body gives them.
            return match made::is_composite(value.type_oid()) {
                true => self.in_domain(value, domain),
                false => Ok(value),
            };
        }
        if routine.def.ret_domain.is_some() && made::is_composite(routine.ty.oid) {
            return Err(set_of_row_domain(pos));
        }
        if !self.clause.allows_sets() {
            let message = format!(
                "set-returning functions are not allowed in {}",
                self.clause.name()
            );
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1));
        }
        Ok(Expr::SetRoutine(routine))
    }
}

#[cold]
pub(in crate::binder) fn set_of_row_domain(pos: Pos) -> Error {
    let what = "a function that returns a set of a domain over a composite type";
    Error::unsupported(what).position(pos + 1)
}
