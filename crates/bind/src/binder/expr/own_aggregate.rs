//! Calls of aggregates that users made: their functions bound to the types of the call.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use crate::binder::query::scope::Scope;
use crate::binder::routine::call::signature;
use crate::binder::{Binder, at};
use crate::inline::inline_in;
use crate::tree::aggregate::{AggFunction, OwnAggregate, Transition};
use crate::tree::expr::{AggCall, Expr, RoutineCall};
use throng_catalog::{
    AggregateDef, AggregateKind, RoutineDef, RoutineKind, TransitionDef, builtin,
};
use throng_syntax::parse::ast::{self, Pos};
use throng_types::sqltype::{made, type_name};
use throng_values::acl::right;
use throng_values::func::aggregate::support;
use throng_values::func::{
    Aggregate, Callee, CastContext, Given, Resolved, actual_type, function_by_oid, resolve_call,
};

/// Who computes an aggregate.
pub(in crate::binder) enum Computation {
    Functions,
    BuiltIn(&'static Aggregate),
}

/// What an aggregate is declared to take and what a call gives it.
struct Types<'a> {
    declared: &'a [Oid],
    given: &'a [Oid],
}

impl Types<'_> {
    fn actual(&self, ty: Oid) -> Oid {
        actual_type(ty, self.declared, self.given).unwrap_or(ty)
    }
}

impl Binder<'_> {
    /// Who computes it: its functions, or what is built in where those are.
    ///
    /// # Errors
    /// 0A000: a function that cannot be called is not one of a built-in aggregate either.
    pub(in crate::binder) fn computation(&self, def: &RoutineDef) -> Result<Computation> {
        let Some(aggregate) = def.aggregate() else {
            return Err(Error::internal("an aggregate without its functions"));
        };
        let callable =
            |oid: &Oid| self.catalog().routine(*oid).is_some() || function_by_oid(*oid).is_some();
        let transitions = [Some(&aggregate.plain), aggregate.moving.as_ref()];
        let called = transitions
            .into_iter()
            .flatten()
            .flat_map(|t| [Some(t.function), t.inverse, t.finish]);
        let Some(missing) = called.flatten().find(|oid| !callable(oid)) else {
            return Ok(Computation::Functions);
        };
        let plain = &aggregate.plain;
        match support::aggregate_of(plain.function, plain.finish) {
            Some(built_in) => Ok(Computation::BuiltIn(built_in)),
            None => {
                let name = throng_catalog::system::routine::procedure(missing);
                let name = name.map_or("a function", |p| p.name);
                Err(Error::unsupported(format!(
                    "an aggregate that calls {name}"
                )))
            }
        }
    }

    /// `f(…)` where `f` is a user's aggregate.
    pub(in crate::binder) fn own_aggregate_call(
        &mut self,
        call: &ast::Call,
        routine: RoutineCall,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let agg = self.own_aggregate_of(&routine, 0).map_err(|e| at(e, pos))?;
        self.aggregate(call, agg, routine.args, routine.ty, pos, scope)
    }

    /// The function that a call of an aggregate is computed by; the first `direct` of its arguments
    /// are direct.
    pub(in crate::binder) fn own_aggregate_of(
        &mut self,
        call: &RoutineCall,
        direct: usize,
    ) -> Result<AggFunction> {
        let def = &call.def;
        let Some(aggregate) = def.aggregate() else {
            return Err(Error::internal("an aggregate without its functions"));
        };
        if let Computation::BuiltIn(agg) = self.computation(def)? {
            return Ok(AggFunction::Renamed(def.clone(), agg));
        }
        let declared: Vec<Oid> = def.call_args().map(|arg| arg.ty).collect();
        let given: Vec<Oid> = call.args.iter().map(Expr::type_oid).collect();
        let types = Types {
            declared: &declared,
            given: &given,
        };
        let args: Vec<SqlType> = call.args.iter().map(Expr::ty).collect();
        let plain = self.transition_of(def, aggregate, &aggregate.plain, &types, &args, direct)?;
        let moving = match &aggregate.moving {
            None => None,
            Some(moving) => {
                Some(self.transition_of(def, aggregate, moving, &types, &args, direct)?)
            }
        };
        Ok(AggFunction::Own(Arc::new(OwnAggregate {
            def: def.clone(),
            kind: aggregate.kind,
            plain,
            moving,
        })))
    }

    /// Which function a call with WITHIN GROUP means; a user's aggregate with its definition.
    pub(in crate::binder) fn resolve_ordered_set(
        &mut self,
        call: &ast::Call,
        types: &[Oid],
        pos: Pos,
    ) -> Result<(Resolved, Option<Arc<RoutineDef>>)> {
        let routines = self.routines_named(&call.name);
        let signatures: Vec<_> = routines.iter().map(signature).collect();
        let mut path = self.search_path.iter();
        let resolved = resolve_call(&Given {
            name: call.name.last(),
            args: types,
            names: &[],
            variadic: false,
            routines: &signatures,
            builtin: match call.name.schema() {
                None => path.position(|schema| *schema == builtin::PG_CATALOG),
                Some("pg_catalog") => Some(0),
                Some(_) => None,
            },
            casts: &|from, to| self.casts_anywhere(from, to),
        });
        let found = resolved.map_err(|mut e| {
            if e.code() == state::UNDEFINED_FUNCTION && call.name.parts.len() > 1 {
                let written = call.name.to_string();
                e.fields_mut().message = e.message().replacen(call.name.last(), &written, 1);
            }
            at(e, pos)
        })?;
        let def = match found.callee {
            Callee::Routine(place) => Some(routines[place].1.clone()),
            _ => None,
        };
        Ok((found, def.filter(|def| def.kind == RoutineKind::Aggregate)))
    }

    /// `f(…) WITHIN GROUP (ORDER BY …)` where `f` is a user's aggregate.
    pub(in crate::binder) fn own_ordered_set(
        &mut self,
        call: &ast::Call,
        def: Arc<RoutineDef>,
        found: &Resolved,
        bound: Vec<(Expr, Pos)>,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let name = &def.name;
        let wrong = |code, message: String| Err(Error::new(code, message).position(pos + 1));
        self.may_execute(&def)?;
        let (direct, order) = (call.args.len(), call.order.len());
        let Some(aggregate) = def.aggregate() else {
            return Err(Error::internal("an aggregate without its functions"));
        };
        let repeated = def.is_variadic();
        let takes = usize::from(aggregate.direct);
        let mut wanted = found.arg_types.clone();
        match aggregate.kind {
            AggregateKind::Normal => {
                let message = format!(
                    "{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
                );
                return wrong(state::WRONG_OBJECT_TYPE, message);
            }
            AggregateKind::Hypothetical if repeated && direct != order => {
                let message = format!("function {name} does not exist");
                let hint = format!(
                    "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {direct}) must match the number of ordering columns (here {order})."
                );
                let error = Error::new(state::UNDEFINED_FUNCTION, message);
                return Err(error.hint(hint).position(pos + 1));
            }
            _ if !repeated && takes != direct => {
                let message = format!("function {name} does not exist");
                let plural = if takes == 1 { "" } else { "s" };
                let hint = format!(
                    "There is an ordered-set aggregate {name}, but it requires {takes} direct argument{plural}, not {direct}."
                );
                let error = Error::new(state::UNDEFINED_FUNCTION, message);
                return Err(error.hint(hint).position(pos + 1));
            }
            AggregateKind::Hypothetical => {
                // The last direct arguments are what the ordered ones are compared with.
                for i in 0..order.min(direct) {
                    let (one, other) = (direct - order.min(direct) + i, direct + i);
                    let pair = [bound[other].0.ty(), bound[one].0.ty()];
                    let common = self
                        .common_type(&pair, "WITHIN GROUP")
                        .map_err(|e| at(e, bound[one].1))?;
                    (wanted[one], wanted[other]) = (common.oid, common.oid);
                }
            }
            AggregateKind::OrderedSet => {}
        }
        if call.over.is_some() {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return wrong(state::FEATURE_NOT_SUPPORTED, message);
        }
        let mut args = Vec::with_capacity(bound.len());
        for ((expr, pos), ty) in bound.into_iter().zip(&wanted) {
            args.push(self.coerce(expr, SqlType::plain(*ty), pos)?);
        }
        let routine = RoutineCall {
            def,
            args,
            ty: SqlType::plain(found.ret),
            columns: vec![],
            inline: None,
        };
        let agg = self
            .own_aggregate_of(&routine, direct)
            .map_err(|e| at(e, pos))?;
        let mut values = routine.args;
        let args = values.split_off(direct);
        let call_of = AggCall {
            agg,
            direct: values,
            args,
            distinct: false,
            order: vec![],
            filter: None,
            ty: routine.ty,
        };
        self.within_group(call, call_of, pos, scope)
    }

    fn transition_of(
        &mut self,
        def: &RoutineDef,
        aggregate: &AggregateDef,
        transition: &TransitionDef,
        types: &Types<'_>,
        args: &[SqlType],
        direct: usize,
    ) -> Result<Transition> {
        let state = SqlType::plain(types.actual(transition.state));
        let slots = |args: &[SqlType]| -> Vec<Expr> {
            let slots = [state].into_iter().chain(args.iter().copied());
            (0..)
                .zip(slots)
                .map(|(at, ty)| Expr::Slot(at, ty))
                .collect()
        };
        let (directly, aggregated) = args.split_at(direct);
        let (step, strict) = self.applied(def, transition.function, slots(aggregated), state)?;
        let inverse = match transition.inverse {
            None => None,
            Some(inverse) => Some(self.applied(def, inverse, slots(aggregated), state)?.0),
        };
        let finish = match transition.finish {
            None => None,
            Some(finish) => {
                let mut given = slots(directly);
                if transition.finish_extra {
                    let extra = match aggregate.kind {
                        AggregateKind::Normal => args,
                        _ => aggregated,
                    };
                    given.extend(extra.iter().map(|ty| Expr::null(*ty)));
                }
                let ret = SqlType::plain(types.actual(def.ret));
                Some(self.applied(def, finish, given, ret)?.0)
            }
        };
        let init = match &transition.init {
            None => Datum::Null,
            Some(text) => throng_values::io::input_text(&self.ctx.eval, text, state)?,
        };
        Ok(Transition {
            state,
            init,
            step,
            strict,
            inverse,
            finish,
            keeps_state: transition.finish.is_none() || transition.finish_modify == 'r',
        })
    }

    /// A function that an aggregate calls, and whether it is strict.
    fn applied(
        &mut self,
        aggregate: &RoutineDef,
        function: Oid,
        args: Vec<Expr>,
        ret: SqlType,
    ) -> Result<(Expr, bool)> {
        if let Some(def) = self.catalog().routine(function).cloned() {
            let owner = aggregate.owner;
            if self.catalog().routine_rights(owner, &def, right::EXECUTE) == 0 && !self.definition {
                let message = format!("permission denied for function {}", def.name);
                return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
            }
            let strict = def.strict;
            let value = self.routine_of_values(def, args)?;
            let mut inlined = value.clone();
            inline_in(&mut inlined);
            // No plan is made of what an aggregate calls.
            let queries = inlined.any(&mut |e| matches!(e, Expr::Subquery(_)));
            return Ok((if queries { value } else { inlined }, strict));
        }
        let strict = function_by_oid(function).is_some_and(|func| func.strict);
        let value = self.built_in_of_values(function, args, ret)?;
        Ok((value, strict))
    }

    /// What a function that is known by its number gives for values; a user's must be allowed.
    pub(in crate::binder) fn function_of_values(
        &mut self,
        function: Option<Oid>,
        args: Vec<Expr>,
        ret: SqlType,
    ) -> Result<Expr> {
        let function = function.unwrap_or(Oid::NONE);
        let Some(def) = self.catalog().routine(function).cloned() else {
            return self.built_in_of_values(function, args, ret);
        };
        self.may_execute(&def)?;
        self.routine_of_values(def, args)
    }

    fn built_in_of_values(&mut self, function: Oid, args: Vec<Expr>, ty: SqlType) -> Result<Expr> {
        let Some(func) = function_by_oid(function) else {
            let name = throng_catalog::system::routine::procedure(function);
            let name = name.map_or("a function", |p| p.name);
            return Err(Error::unsupported(format!("calling {name}")));
        };
        let given: Vec<Oid> = args.iter().map(Expr::type_oid).collect();
        let args = args.into_iter().zip(func.args).map(|(arg, declared)| {
            let to = actual_type(*declared, func.args, &given).unwrap_or(*declared);
            self.as_it_is(arg, to)
        });
        let args = args.collect::<Result<Vec<_>>>()?;
        Ok(Expr::Call { func, args, ty })
    }

    /// A value as one of a type that it can be taken for without being computed.
    fn as_it_is(&mut self, value: Expr, to: Oid) -> Result<Expr> {
        if value.type_oid() == to || matches!(to, oid::ANY | oid::INTERNAL) {
            return Ok(value);
        }
        let from = value.type_oid();
        let cast = self.try_coerce(value, SqlType::plain(to), CastContext::Explicit, 0)?;
        cast.ok_or_else(|| {
            let message = format!("cannot cast type {} to {}", type_name(from), type_name(to));
            Error::new(state::CANNOT_COERCE, message)
        })
    }

    /// A user's function of values that are there.
    pub(in crate::binder) fn routine_of_values(
        &mut self,
        def: Arc<RoutineDef>,
        args: Vec<Expr>,
    ) -> Result<Expr> {
        let declared: Vec<Oid> = def.inputs().map(|arg| arg.ty).collect();
        let given: Vec<Oid> = args.iter().map(Expr::type_oid).collect();
        let actual = |ty: Oid| actual_type(ty, &declared, &given).unwrap_or(ty);
        let mut values = Vec::with_capacity(args.len());
        for (arg, declared) in args.into_iter().zip(def.inputs()) {
            let value = self.as_it_is(arg, actual(declared.ty))?;
            values.push(match declared.domain {
                Some(domain) => self.as_domain(value, domain, 0)?,
                None => value,
            });
        }
        let row_type = def.row_of.and_then(made::composite_oid);
        let ty = SqlType::plain(row_type.unwrap_or_else(|| actual(def.ret)));
        let columns = self.routine_columns(&def, &actual);
        let domain = def.ret_domain;
        let mut call = RoutineCall {
            def,
            args: values,
            ty,
            columns,
            inline: None,
        };
        call.inline = self.inline_value(&call).map(Arc::new);
        let value = Expr::Routine(Box::new(call));
        match made::is_composite(ty.oid) {
            true => self.in_domain(value, domain),
            false => Ok(value),
        }
    }
}
