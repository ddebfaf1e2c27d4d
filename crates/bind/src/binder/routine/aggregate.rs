//! CREATE AGGREGATE: which functions compute it, and whether they fit each other.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{made, type_name};
use throng_types::{Error, Oid, Result, SqlType, oid};

use super::{UNMADE, invalid, signature};
use crate::binder::Binder;
use crate::binder::ddl::definition::Definition;
use crate::command::Ddl;
use throng_catalog::system::routine::{self, procedures};
use throng_catalog::{
    AggregateDef, AggregateKind, ArgDef, ArgMode, RoutineBody, RoutineDef, RoutineKind,
    TransitionDef, ViewUse, builtin,
};
use throng_syntax::parse::ast::{self, Name};
use throng_values::func::{
    Callee, CastContext, CastMethod, Given, NO_CASTS, Volatility, find_cast, is_polymorphic,
    resolve_call,
};

/// The attributes of an aggregate, as a definition may name them; the first three are spelled in
/// the old way.
const ATTRIBUTES: [&str; 25] = [
    "sfunc1",
    "stype1",
    "initcond1",
    "sfunc",
    "stype",
    "sspace",
    "initcond",
    "finalfunc",
    "finalfunc_extra",
    "finalfunc_modify",
    "combinefunc",
    "serialfunc",
    "deserialfunc",
    "msfunc",
    "minvfunc",
    "mstype",
    "msspace",
    "minitcond",
    "mfinalfunc",
    "mfinalfunc_extra",
    "mfinalfunc_modify",
    "sortop",
    "basetype",
    "hypothetical",
    "parallel",
];

/// The first number of an object that no system is made of.
const FIRST_NORMAL: u32 = 16_384;

/// A function that an aggregate is to call.
pub(in crate::binder) struct Support {
    pub oid: Oid,
    pub ret: Oid,
    pub strict: bool,
}

/// Whether a value of one type is one of the other as it is.
pub(in crate::binder) fn binary_coercible(from: Oid, to: Oid) -> bool {
    from == to
        || matches!(to, oid::ANY | oid::ANYELEMENT)
        || find_cast(from, to, CastContext::Explicit)
            .is_some_and(|cast| matches!(cast.method, CastMethod::Binary))
}

/// What the definition says of one way to compute the aggregate.
struct Written<'a> {
    function: Option<Name>,
    inverse: Option<Name>,
    finish: Option<Name>,
    extra: bool,
    modify: Option<char>,
    space: i32,
    init: Option<&'a str>,
}

/// The arguments as the functions are given them.
struct Arguments<'a> {
    all: &'a [Oid],
    direct: usize,
    /// Those of the rows.
    aggregated: Vec<Oid>,
}

impl Binder<'_> {
    pub(in crate::binder) fn create_aggregate(
        &mut self,
        create: &ast::CreateAggregate,
    ) -> Result<Ddl> {
        let schema = self.place_beside_relations(&create.name).map_err(|mut e| {
            e.fields_mut().position = None;
            e
        })?;
        let items = Definition::new(&create.items);
        for unknown in items.others(&ATTRIBUTES) {
            let message = format!("aggregate attribute \"{unknown}\" not recognized");
            self.warning(Error::new(state::SYNTAX_ERROR, message));
        }
        let kind = kind_of(create, &items)?;
        let mut uses: Vec<Oid> = Vec::new();
        let (args, direct) = self.aggregate_arguments(create, &items, &mut uses)?;
        let types: Vec<Oid> = args.iter().map(|arg| arg.ty).collect();
        let aggregated = match direct {
            // A repeated last argument stands for both lists.
            direct if direct == types.len() && direct > 0 && kind != AggregateKind::Normal => {
                vec![types[direct - 1]]
            }
            direct => types[direct..].to_vec(),
        };
        let arguments = Arguments {
            all: &types,
            direct,
            aggregated,
        };
        if kind == AggregateKind::Hypothetical && !types.contains(&oid::ANY) {
            let direct = &types[..direct];
            if !direct.ends_with(&arguments.aggregated) {
                return Err(invalid(
                    "a hypothetical-set aggregate must have direct arguments matching its aggregated arguments",
                ));
            }
        }
        let (plain, ret) = self.plain_transition(&items, kind, &arguments, &mut uses)?;
        let moving = self.moving_transition(&items, kind, &arguments, ret, &mut uses)?;
        let mut aggregate = AggregateDef {
            kind,
            direct: direct as u16,
            plain,
            moving,
            combine: None,
            serialize: None,
            deserialize: None,
            sort_operator: None,
        };
        self.parts_of_aggregate(&items, &mut aggregate, &mut uses)?;
        if ret == oid::INTERNAL && !types.contains(&oid::INTERNAL) {
            return Err(invalid("unsafe use of pseudo-type \"internal\"").detail(
                "A result of type internal requires at least one input of type internal.",
            ));
        }
        self.sort_operator_of(&items, &types, &mut aggregate)?;
        let parallel = parallel(&items)?;
        uses.retain(|used| used.0 >= FIRST_NORMAL || made::is_made(*used));
        uses.sort();
        uses.dedup();
        let uses = uses.into_iter().map(|object| ViewUse {
            object,
            columns: vec![],
        });
        let mut def = RoutineDef {
            oid: Oid::NONE,
            schema,
            name: create.name.last().to_owned(),
            owner: self.ctx.user,
            kind: RoutineKind::Aggregate,
            args,
            ret,
            ret_domain: None,
            row_of: None,
            set: false,
            strict: false,
            volatility: Volatility::Immutable,
            security_definer: false,
            leakproof: false,
            parallel,
            cost: 1.0,
            rows: 0.0,
            settings: vec![],
            body: RoutineBody::Aggregate(Box::new(aggregate)),
            uses: uses.collect(),
        };
        let old = self.replaced_aggregate(create, &def)?;
        self.computation(&def)?;
        def.oid = old.as_ref().map_or(UNMADE, |old| old.oid);
        if let Some(old) = &old {
            def.owner = old.owner;
        }
        Ok(Ddl::CreateRoutine {
            def: Box::new(def),
            old,
            reads: vec![],
        })
    }

    /// The arguments, and how many of them are direct.
    fn aggregate_arguments(
        &mut self,
        create: &ast::CreateAggregate,
        items: &Definition<'_>,
        uses: &mut Vec<Oid>,
    ) -> Result<(Vec<ArgDef>, usize)> {
        let Some(written) = &create.args else {
            let Some(base) = items.type_name("basetype")? else {
                return Err(invalid("aggregate input type must be specified"));
            };
            if base.name.to_string().eq_ignore_ascii_case("any") && base.name.parts.len() == 1 {
                return Ok((vec![], 0));
            }
            let ty = self.aggregate_type(&base, uses)?;
            let arg = ArgDef {
                name: String::new(),
                ty,
                domain: None,
                mode: ArgMode::In,
                default: None,
            };
            return Ok((vec![arg], 0));
        };
        if items.has("basetype") {
            let message = "basetype is redundant with aggregate input type specification";
            return Err(invalid(message));
        }
        let direct = match &written.ordered {
            Some(_) => written.direct.len(),
            None => 0,
        };
        let routine = ast::CreateRoutine {
            kind: RoutineKind::Aggregate,
            or_replace: false,
            name: create.name.clone(),
            args: written.clone().into_all(),
            returns: None,
            options: vec![],
            bodies: vec![],
        };
        let args = self.routine_args(&routine, true, uses)?;
        if let Some(arg) = args.iter().find(|arg| arg.domain.is_some()) {
            let message = format!("an aggregate over the domain {}", type_name(arg.declared()));
            return Err(Error::unsupported(message));
        }
        Ok((args, direct))
    }

    fn aggregate_type(&mut self, name: &ast::TypeName, uses: &mut Vec<Oid>) -> Result<Oid> {
        let ty = ast::RoutineType::Plain(name.clone());
        let resolved = self.routine_type(&ty, uses).map_err(|mut e| {
            e.fields_mut().position = None;
            e
        })?;
        let resolved = resolved.into_value();
        if resolved.domain.is_some() {
            return Err(Error::unsupported("an aggregate over a domain"));
        }
        self.may_use_type(resolved.ty)?;
        Ok(resolved.ty)
    }

    /// A state's type.
    fn state_type(&mut self, name: &ast::TypeName, uses: &mut Vec<Oid>) -> Result<Oid> {
        let ty = self.aggregate_type(name, uses)?;
        let superuser = self.catalog().is_superuser(self.user);
        let pseudo = matches!(
            ty,
            oid::ANY
                | oid::CSTRING
                | oid::VOID
                | oid::TRIGGER
                | oid::RECORD
                | oid::UNKNOWN
                | oid::LANGUAGE_HANDLER
        ) || ty == oid::INTERNAL && !superuser;
        match pseudo {
            true => Err(invalid(format!(
                "aggregate transition data type cannot be {}",
                type_name(ty)
            ))),
            false => Ok(ty),
        }
    }

    fn plain_transition(
        &mut self,
        items: &Definition<'_>,
        kind: AggregateKind,
        args: &Arguments<'_>,
        uses: &mut Vec<Oid>,
    ) -> Result<(TransitionDef, Oid)> {
        let either = |new: &'static str, old: &'static str| match items.has(new) {
            true => new,
            false => old,
        };
        let state = items.type_name(either("stype", "stype1"))?;
        let state = state.ok_or_else(|| invalid("aggregate stype must be specified"))?;
        let function = items.name(either("sfunc", "sfunc1"))?;
        let written = Written {
            function,
            inverse: None,
            finish: items.name("finalfunc")?,
            extra: items.boolean("finalfunc_extra")? == Some(true),
            modify: modify(items, "finalfunc_modify")?,
            space: items.integer("sspace")?.unwrap_or(0),
            init: items.text(either("initcond", "initcond1"))?,
        };
        let state = self.state_type(&state, uses)?;
        self.transition(state, &written, kind, args, uses)
    }

    fn moving_transition(
        &mut self,
        items: &Definition<'_>,
        kind: AggregateKind,
        args: &Arguments<'_>,
        ret: Oid,
        uses: &mut Vec<Oid>,
    ) -> Result<Option<TransitionDef>> {
        let Some(state) = items.type_name("mstype")? else {
            let stray = ["msfunc", "minvfunc", "mfinalfunc", "msspace", "minitcond"];
            return match stray.into_iter().find(|name| items.has(name)) {
                None => Ok(None),
                Some(name) => Err(invalid(format!(
                    "aggregate {name} must not be specified without mstype"
                ))),
            };
        };
        let written = Written {
            function: items.name("msfunc")?,
            inverse: items.name("minvfunc")?,
            finish: items.name("mfinalfunc")?,
            extra: items.boolean("mfinalfunc_extra")? == Some(true),
            modify: modify(items, "mfinalfunc_modify")?,
            space: items.integer("msspace")?.unwrap_or(0),
            init: items.text("minitcond")?,
        };
        for (name, given) in [
            ("msfunc", &written.function),
            ("minvfunc", &written.inverse),
        ] {
            if given.is_none() {
                return Err(invalid(format!(
                    "aggregate {name} must be specified when mstype is specified"
                )));
            }
        }
        let state = self.state_type(&state, uses)?;
        let (moving, moved) = self.transition(state, &written, kind, args, uses)?;
        if moved != ret {
            return Err(invalid(format!(
                "moving-aggregate implementation returns type {}, but plain implementation returns type {}",
                type_name(moved),
                type_name(ret)
            )));
        }
        Ok(Some(moving))
    }

    /// One way to compute it, and the type of what that gives.
    fn transition(
        &mut self,
        state: Oid,
        written: &Written<'_>,
        kind: AggregateKind,
        args: &Arguments<'_>,
        uses: &mut Vec<Oid>,
    ) -> Result<(TransitionDef, Oid)> {
        check_decided(state, args.all, "cannot determine transition data type")?;
        let taken: Vec<Oid> = [state].into_iter().chain(args.aggregated.clone()).collect();
        let mut returning_state = |b: &mut Self, name: &Name, what: &str| {
            let found = b.support_function(name, &taken, uses)?;
            if found.ret != state {
                let message = format!("return type of {what} {name} is not {}", type_name(state));
                return Err(Error::new(state::DATATYPE_MISMATCH, message));
            }
            Ok(found)
        };
        let Some(name) = &written.function else {
            return Err(Error::internal(
                "an aggregate without a transition function",
            ));
        };
        let step = returning_state(self, name, "transition function")?;
        let first = args.aggregated.first();
        let starts = first.is_some_and(|first| binary_coercible(*first, state));
        if step.strict && written.init.is_none() && !starts {
            return Err(invalid(
                "must not omit initial value when transition function is strict and transition type is not compatible with input type",
            ));
        }
        let inverse = match &written.inverse {
            None => None,
            Some(name) => {
                let found = returning_state(self, name, "inverse transition function")?;
                if found.strict != step.strict {
                    return Err(invalid(
                        "strictness of aggregate's forward and inverse transition functions must match",
                    ));
                }
                Some(found.oid)
            }
        };
        let mut ret = state;
        let finish = match &written.finish {
            None => None,
            Some(name) => {
                let mut given = vec![state];
                given.extend(&args.all[..args.direct]);
                if written.extra {
                    let extra = match kind {
                        AggregateKind::Normal => args.all,
                        _ => &args.all[args.direct..],
                    };
                    given.extend(extra);
                }
                let found = self.support_function(name, &given, uses)?;
                if written.extra && found.strict {
                    let message = "final function with extra arguments must not be declared STRICT";
                    return Err(invalid(message));
                }
                ret = found.ret;
                Some(found.oid)
            }
        };
        check_decided(ret, args.all, "cannot determine result data type")?;
        if let Some(init) = written.init
            && !is_polymorphic(state)
            && state != oid::INTERNAL
        {
            throng_values::io::input_text(&self.ctx.eval, init, SqlType::plain(state))?;
        }
        let unsaid = match kind {
            AggregateKind::Normal => 'r',
            _ => 'w',
        };
        let transition = TransitionDef {
            function: step.oid,
            inverse,
            finish,
            finish_extra: written.extra,
            finish_modify: written.modify.unwrap_or(unsaid),
            state,
            space: written.space,
            init: written.init.map(str::to_owned),
        };
        Ok((transition, ret))
    }

    /// The functions for computing a group in parts.
    fn parts_of_aggregate(
        &mut self,
        items: &Definition<'_>,
        aggregate: &mut AggregateDef,
        uses: &mut Vec<Oid>,
    ) -> Result<()> {
        let state = aggregate.plain.state;
        let serial = items.name("serialfunc")?;
        let deserial = items.name("deserialfunc")?;
        if (serial.is_some() || deserial.is_some()) && state != oid::INTERNAL {
            return Err(invalid(
                "serialization functions may be specified only when the aggregate transition data type is internal",
            ));
        }
        if serial.is_some() != deserial.is_some() {
            return Err(invalid(
                "must specify both or neither of serialization and deserialization functions",
            ));
        }
        let mut found = |b: &mut Self, name: Option<Name>, given: &[Oid], ret: Oid, what: &str| {
            let Some(name) = name else {
                return Ok(None);
            };
            let found = b.support_function(&name, given, uses)?;
            if found.ret != ret {
                let message = format!("return type of {what} {name} is not {}", type_name(ret));
                return Err(Error::new(state::DATATYPE_MISMATCH, message));
            }
            if found.strict && given == [oid::INTERNAL, oid::INTERNAL] {
                return Err(invalid(format!(
                    "combine function with transition type {} must not be declared STRICT",
                    type_name(state)
                )));
            }
            Ok(Some(found.oid))
        };
        let (internal, bytes) = (oid::INTERNAL, oid::BYTEA);
        let what = "combine function";
        aggregate.combine = found(
            self,
            items.name("combinefunc")?,
            &[state, state],
            state,
            what,
        )?;
        let what = "serialization function";
        aggregate.serialize = found(self, serial, &[internal], bytes, what)?;
        let what = "deserialization function";
        aggregate.deserialize = found(self, deserial, &[bytes, internal], internal, what)?;
        Ok(())
    }

    fn sort_operator_of(
        &mut self,
        items: &Definition<'_>,
        types: &[Oid],
        aggregate: &mut AggregateDef,
    ) -> Result<()> {
        let Some(operator) = items.operator("sortop")? else {
            return Ok(());
        };
        let [ty] = types else {
            return Err(invalid(
                "sort operator can only be specified for single-argument aggregates",
            ));
        };
        aggregate.sort_operator = Some(self.operator_named(&operator, Some(*ty), *ty)?);
        Ok(())
    }

    /// The function of that name which takes these types as they are.
    pub(in crate::binder) fn support_function(
        &mut self,
        name: &Name,
        given: &[Oid],
        uses: &mut Vec<Oid>,
    ) -> Result<Support> {
        let undefined = || {
            let list: Vec<String> = given.iter().map(|ty| type_name(*ty)).collect();
            let message = format!("function {name}({}) does not exist", list.join(", "));
            Error::new(state::UNDEFINED_FUNCTION, message)
        };
        if let Some(schema) = name.schema() {
            self.schema(schema)?;
        }
        let routines = self.routines_named(name);
        let builtin = match name.schema() {
            None => {
                let mut path = self.search_path.iter();
                path.position(|schema| *schema == builtin::PG_CATALOG)
            }
            Some("pg_catalog") => Some(0),
            Some(_) => None,
        };
        let fits = |declared: &[Oid]| {
            let same = |(d, g): (&Oid, &Oid)| d == g || *d == oid::ANY;
            declared.len() == given.len() && declared.iter().zip(given).all(same)
        };
        let exact = routines.iter().find(|(_, def)| fits(&def.input_types()));
        let procedure = procedures()
            .iter()
            .filter(|_| builtin.is_some())
            .find(|p| p.name == name.last() && fits(&p.args));
        let rank = exact.map_or(usize::MAX, |(rank, _)| *rank);
        let (found, declared, ret) = match (exact, procedure) {
            (_, Some(procedure)) if builtin.unwrap_or(usize::MAX) < rank => {
                (procedure.oid, procedure.args.clone(), procedure.ret)
            }
            (Some((_, def)), _) => (def.oid, def.input_types(), def.declared_ret()),
            _ => {
                let signatures: Vec<_> = routines.iter().map(super::call::signature).collect();
                let resolved = resolve_call(&Given {
                    name: name.last(),
                    args: given,
                    names: &[],
                    variadic: false,
                    routines: &signatures,
                    builtin,
                    casts: NO_CASTS,
                })
                .map_err(|_| undefined())?;
                let found = match resolved.callee {
                    Callee::Scalar(function) => function.oid,
                    Callee::Routine(place) => routines[place].1.oid,
                    _ => return Err(undefined()),
                };
                (found, resolved.arg_types, resolved.ret)
            }
        };
        let shown: Vec<String> = declared.iter().map(|ty| type_name(*ty)).collect();
        if given
            .iter()
            .zip(&declared)
            .any(|(given, to)| !binary_coercible(*given, *to))
        {
            let message = format!(
                "function {}({}) requires run-time type coercion",
                name.last(),
                shown.join(", ")
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message));
        }
        let strict = match self.catalog().routine(found).cloned() {
            Some(def) => {
                if def.set {
                    let message = format!("function {name} returns a set");
                    return Err(Error::new(state::DATATYPE_MISMATCH, message));
                }
                if def.kind != RoutineKind::Function {
                    return Err(undefined());
                }
                self.may_execute(&def)?;
                uses.push(def.oid);
                def.strict
            }
            None => routine::procedure(found).is_some_and(|p| p.strict),
        };
        Ok(Support {
            oid: found,
            ret,
            strict,
        })
    }

    /// The routine of that name and those arguments that is there, which OR REPLACE may change.
    fn replaced_aggregate(
        &mut self,
        create: &ast::CreateAggregate,
        def: &RoutineDef,
    ) -> Result<Option<Arc<RoutineDef>>> {
        let inputs = def.input_types();
        let found = self.catalog().routines_in(def.schema, &def.name);
        let old = found.into_iter().find(|r| r.input_types() == inputs);
        let Some(old) = old.cloned() else {
            return Ok(None);
        };
        if !create.or_replace {
            let message = format!(
                "function \"{}\" already exists with same argument types",
                def.name
            );
            return Err(Error::new(state::DUPLICATE_FUNCTION, message));
        }
        self.must_own(old.owner, old.noun(), &old.name)?;
        if old.aggregate().map(|a| a.kind) != def.aggregate().map(|a| a.kind) {
            let error = Error::new(state::WRONG_OBJECT_TYPE, "cannot change routine kind");
            return Err(error.detail(format!("\"{}\" is {}.", old.name, old.described())));
        }
        let drop = format!("Use DROP AGGREGATE {} first.", signature(&old));
        if old.declared_ret() != def.declared_ret() {
            let message = "cannot change return type of existing function";
            return Err(invalid(message).hint(drop));
        }
        for (was, is) in old.inputs().zip(def.inputs()) {
            if !was.name.is_empty() && was.name != is.name {
                let message = format!("cannot change name of input parameter \"{}\"", was.name);
                return Err(invalid(message).hint(drop));
            }
        }
        let direct = |def: &RoutineDef| def.aggregate().map(|a| a.direct);
        if direct(&old) != direct(def) {
            let message = "cannot change number of direct arguments of an aggregate function";
            return Err(invalid(message).hint(drop));
        }
        Ok(Some(old))
    }
}

/// How the aggregate comes to its rows; what every definition says is there.
fn kind_of(create: &ast::CreateAggregate, items: &Definition<'_>) -> Result<AggregateKind> {
    let kind = match &create.args {
        Some(ast::AggregateArgs {
            ordered: Some(_), ..
        }) => match items.boolean("hypothetical")? {
            Some(true) => AggregateKind::Hypothetical,
            _ => AggregateKind::OrderedSet,
        },
        _ => match items.boolean("hypothetical")? {
            Some(true) => {
                return Err(invalid("only ordered-set aggregates can be hypothetical"));
            }
            _ => AggregateKind::Normal,
        },
    };
    if !items.has("stype") && !items.has("stype1") {
        return Err(invalid("aggregate stype must be specified"));
    }
    if !items.has("sfunc") && !items.has("sfunc1") {
        return Err(invalid("aggregate sfunc must be specified"));
    }
    Ok(kind)
}

/// 42P13: a type that calls decide needs an argument that decides it.
fn check_decided(ty: Oid, args: &[Oid], message: &str) -> Result<()> {
    let compatible = |ty: Oid| {
        matches!(
            ty,
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLEARRAY | oid::ANYCOMPATIBLENONARRAY
        )
    };
    let decides = |arg: &Oid| is_polymorphic(*arg) && compatible(*arg) == compatible(ty);
    if !is_polymorphic(ty) || args.iter().any(decides) {
        return Ok(());
    }
    let kinds = match compatible(ty) {
        true => {
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
        }
        false => "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
    };
    Err(invalid(message).detail(format!(
        "A result of type {} requires at least one input of type {kinds}.",
        type_name(ty)
    )))
}

fn modify(items: &Definition<'_>, name: &str) -> Result<Option<char>> {
    Ok(match items.word(name)?.as_deref() {
        None => None,
        Some("read_only") => Some('r'),
        Some("shareable") => Some('s'),
        Some("read_write") => Some('w'),
        Some(_) => {
            let message =
                format!("parameter \"{name}\" must be READ_ONLY, SHAREABLE, or READ_WRITE");
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
    })
}

fn parallel(items: &Definition<'_>) -> Result<char> {
    Ok(match items.word("parallel")?.as_deref() {
        None | Some("unsafe") => 'u',
        Some("safe") => 's',
        Some("restricted") => 'r',
        Some(_) => {
            let message = "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
    })
}
