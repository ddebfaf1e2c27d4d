//! CREATE, DROP and COMMENT of casts.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{element_of, made, type_info, type_name};
use throng_types::{Error, Oid, Result, oid};

use crate::binder::Binder;
use crate::binder::ddl::table::no_position;
use crate::binder::routine::aggregate::binary_coercible;
use crate::binder::routine::change::written_type;
use crate::command::{Ddl, Target, TargetKind};
use throng_catalog::builtin::{self, class};
use throng_catalog::system::routine::{procedure, procedures};
use throng_catalog::{CastDef, RoutineKind, uses_of};
use throng_syntax::parse::ast::{
    CastDefinition, CastName, CastWhere, CreateCast, RoutineName, TypeName,
};
use throng_syntax::parse::ast::{RoutineType, RoutineWord};
use throng_values::func::{CastContext, CastMethod, find_cast};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_OBJECT_DEFINITION, message)
}

/// A type that a cast is from or to, and the domain over it.
#[derive(Clone, Copy)]
struct Side {
    ty: Oid,
    domain: Option<Oid>,
}

impl Side {
    fn declared(self) -> Oid {
        self.domain.unwrap_or(self.ty)
    }
}

impl Binder<'_> {
    pub(in crate::binder) fn create_cast(&mut self, create: &CreateCast) -> Result<Ddl> {
        let from = self.cast_side(&create.cast.from)?;
        let to = self.cast_side(&create.cast.to)?;
        for (side, which) in [(from, "source"), (to, "target")] {
            if is_pseudo(side.ty) {
                let name = type_name(side.ty);
                let message = format!("{which} data type {name} is a pseudo-type");
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
        }
        self.may_cast(from, to)?;
        self.may_use_type(from.declared())?;
        self.may_use_type(to.declared())?;
        for (side, which) in [(from, "source"), (to, "target")] {
            if side.domain.is_some() {
                let message =
                    format!("cast will be ignored because the {which} data type is a domain");
                self.warning(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
        }
        let mut uses = Vec::new();
        for side in [from, to] {
            let ty = element_of(side.declared()).unwrap_or(side.declared());
            uses.extend(Some(ty).filter(|ty| made::is_made(*ty)));
        }
        let (method, function) = match &create.method {
            CastDefinition::Function(routine) => {
                ('f', Some(self.cast_function(routine, from, to, &mut uses)?))
            }
            CastDefinition::WithoutFunction => {
                self.may_be_binary(from, to)?;
                ('b', None)
            }
            CastDefinition::InOut => ('i', None),
        };
        let several = function.is_some_and(|function| self.arguments_of(function) > 1);
        if from.declared() == to.declared() && !several {
            return Err(invalid(
                "source data type and target data type are the same",
            ));
        }
        if from.declared() == to.declared() {
            return Err(Error::unsupported("a cast that applies a type's modifier"));
        }
        let known = self.catalog().cast_between(from.declared(), to.declared());
        if known.is_some() || is_built_in(from.declared(), to.declared()) {
            let message = format!(
                "cast from type {} to type {} already exists",
                type_name(from.declared()),
                type_name(to.declared())
            );
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        Ok(Ddl::CreateCast(Box::new(CastDef {
            oid: Oid::NONE,
            from: from.declared(),
            to: to.declared(),
            function,
            method,
            context: match create.context {
                CastWhere::Explicit => 'e',
                CastWhere::Assignment => 'a',
                CastWhere::Implicit => 'i',
            },
            uses: uses_of(uses),
        })))
    }

    fn cast_side(&mut self, name: &TypeName) -> Result<Side> {
        let declared = self.declared(name).map_err(no_position)?;
        Ok(Side {
            ty: declared.ty.oid,
            domain: declared.domain,
        })
    }

    /// 42501: casts are for the owners of their types.
    fn may_cast(&self, from: Side, to: Side) -> Result<()> {
        let owns = |side: Side| {
            let ty = element_of(side.declared()).unwrap_or(side.declared());
            let owner = self.catalog().made_type(ty).map(|def| def.owner);
            self.acts_as(owner.unwrap_or(builtin::SUPERUSER))
        };
        if owns(from) || owns(to) {
            return Ok(());
        }
        let message = format!(
            "must be owner of type {} or type {}",
            type_name(from.declared()),
            type_name(to.declared())
        );
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    fn cast_function(
        &mut self,
        routine: &RoutineName,
        from: Side,
        to: Side,
        uses: &mut Vec<Oid>,
    ) -> Result<Oid> {
        let (found, args, ret) = self.named_function(routine)?;
        let [first, others @ ..] = &args[..] else {
            return Err(invalid("cast function must take one to three arguments"));
        };
        if others.len() > 2 {
            return Err(invalid("cast function must take one to three arguments"));
        }
        if !binary_coercible(from.ty, *first) {
            return Err(invalid(
                "argument of cast function must match or be binary-coercible from source data type",
            ));
        }
        for (other, (which, wanted)) in others
            .iter()
            .zip([("second", oid::INT4), ("third", oid::BOOL)])
        {
            if *other != wanted {
                return Err(invalid(format!(
                    "{which} argument of cast function must be type {}",
                    type_name(wanted)
                )));
            }
        }
        if !binary_coercible(ret, to.ty) {
            return Err(invalid(
                "return data type of cast function must match or be binary-coercible to target data type",
            ));
        }
        if let Some(def) = self.catalog().routine(found).cloned() {
            if def.kind != RoutineKind::Function {
                return Err(invalid("cast function must be a normal function"));
            }
            if def.set {
                return Err(invalid("cast function must not return a set"));
            }
            self.may_execute(&def)?;
            uses.push(found);
        }
        Ok(found)
    }

    /// A function that a name with or without arguments means: its number, arguments and result.
    fn named_function(&mut self, routine: &RoutineName) -> Result<(Oid, Vec<Oid>, Oid)> {
        let name = &routine.name;
        let of_system = name.schema().is_none_or(|schema| schema == "pg_catalog");
        let mut types = Vec::new();
        for arg in routine.args.iter().flatten() {
            if let RoutineType::Plain(ty) = &arg.ty {
                types.push(self.type_of(ty).map_err(no_position)?.oid);
            }
        }
        let mut known = procedures()
            .iter()
            .filter(|p| of_system && p.name == name.last());
        let built_in = match &routine.args {
            Some(_) => known.find(|p| p.args == types),
            None => known.next(),
        };
        let routines = self.routines_named(name);
        let own = routines.iter().any(|(_, def)| {
            def.value_types()
                .iter()
                .map(|t| t.oid)
                .eq(types.iter().copied())
        });
        if let Some(found) = built_in.filter(|_| !own) {
            let found = procedure(found.oid).unwrap_or(found);
            return Ok((found.oid, found.args.clone(), found.ret));
        }
        let def = self
            .find_routine(RoutineWord::Function, routine)
            .map_err(no_position)?;
        let args = def.inputs().map(|arg| arg.ty).collect();
        let row_type = def.row_of.and_then(made::composite_oid);
        Ok((def.oid, args, row_type.unwrap_or(def.ret)))
    }

    /// Whether values of one type can be taken for the other's as they are.
    fn may_be_binary(&self, from: Side, to: Side) -> Result<()> {
        if !self.catalog().is_superuser(self.user) {
            let message = "must be superuser to create a cast WITHOUT FUNCTION";
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
        let sides = [from.declared(), to.declared()];
        if layout(from.declared()) != layout(to.declared()) {
            let message = "source and target data types are not physically compatible";
            return Err(invalid(message));
        }
        let is = |test: &dyn Fn(Oid) -> bool| sides.iter().any(|ty| test(*ty));
        let wrong = if is(&made::is_composite) {
            "composite data types are not binary-compatible"
        } else if is(&|ty| element_of(ty).is_some()) {
            "array data types are not binary-compatible"
        } else if from.domain.is_some() || to.domain.is_some() {
            "domain data types must not be marked binary-compatible"
        } else if is(&made::is_enum) {
            "enum data types are not binary-compatible"
        } else {
            // What comes to be JSON is read as such.
            let read = to.ty == oid::JSON && [oid::TEXT, oid::VARCHAR].contains(&from.ty);
            return match read || binary_coercible(from.ty, to.ty) {
                true => Ok(()),
                // Of one layout on PostgreSQL's pages, they are different values here.
                false => Err(Error::unsupported(
                    "a cast WITHOUT FUNCTION between these types",
                )),
            };
        };
        Err(invalid(wrong))
    }

    pub(in crate::binder) fn drop_cast(
        &mut self,
        cast: &CastName,
        if_exists: bool,
        cascade: bool,
    ) -> Result<Ddl> {
        match self.own_cast_between(cast) {
            Ok(Some(def)) => {
                let target = Target {
                    kind: TargetKind::Cast,
                    oid: def.oid,
                };
                let targets = vec![target];
                Ok(Ddl::Drop { targets, cascade })
            }
            Err(e) if !if_exists => Err(e),
            Ok(None) if !if_exists => {
                let (from, to) = (self.cast_side(&cast.from)?, self.cast_side(&cast.to)?);
                Err(missing(
                    type_name(from.declared()),
                    type_name(to.declared()),
                ))
            }
            Err(e) if e.code() != state::UNDEFINED_OBJECT => Err(e),
            found => {
                let notice = match found {
                    Err(e) => e,
                    Ok(_) => missing(written_type(&cast.from), written_type(&cast.to)),
                };
                let notice = format!("{}, skipping", notice.message());
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, notice));
                Ok(Ddl::Nothing { tag: "DROP CAST" })
            }
        }
    }

    pub(in crate::binder) fn comment_cast(
        &mut self,
        cast: &CastName,
        text: Option<String>,
    ) -> Result<Ddl> {
        match self.own_cast_between(cast)? {
            Some(def) => {
                let kind = TargetKind::BuiltIn(class::CAST);
                let target = Target { kind, oid: def.oid };
                Ok(Ddl::Comment { target, text })
            }
            None => {
                let (from, to) = (self.cast_side(&cast.from)?, self.cast_side(&cast.to)?);
                Err(missing(
                    type_name(from.declared()),
                    type_name(to.declared()),
                ))
            }
        }
    }

    /// The cast that a user made between these types; one that is built in cannot be changed.
    fn own_cast_between(&mut self, cast: &CastName) -> Result<Option<Arc<CastDef>>> {
        let (from, to) = (self.cast_side(&cast.from)?, self.cast_side(&cast.to)?);
        let found = self
            .catalog()
            .cast_between(from.declared(), to.declared())
            .cloned();
        match found {
            Some(def) => {
                self.may_cast(from, to)?;
                Ok(Some(def))
            }
            None if is_built_in(from.declared(), to.declared()) => {
                Err(Error::unsupported("changing a built-in cast"))
            }
            None => Ok(None),
        }
    }
}

/// How PostgreSQL lays out a type's values: length, whether in a register, alignment.
fn layout(ty: Oid) -> (i16, bool, u8) {
    match type_info(ty) {
        Some(info) => (info.len, info.by_value, info.align),
        None if made::is_enum(ty) => (4, true, b'i'),
        None => (-1, false, b'd'),
    }
}

fn is_pseudo(ty: Oid) -> bool {
    throng_values::func::is_polymorphic(ty)
        || matches!(
            ty,
            oid::ANY
                | oid::CSTRING
                | oid::INTERNAL
                | oid::VOID
                | oid::TRIGGER
                | oid::RECORD
                | oid::UNKNOWN
                | oid::LANGUAGE_HANDLER
        )
}

/// Any type goes through text without a cast of its own.
fn is_built_in(from: Oid, to: Oid) -> bool {
    let cast = find_cast(from, to, CastContext::Explicit);
    let by_text = |m| matches!(m, CastMethod::Text | CastMethod::Unknown);
    from != to && cast.is_some_and(|cast| !by_text(cast.method))
}

fn missing(from: String, to: String) -> Error {
    let message = format!("cast from type {from} to type {to} does not exist");
    Error::new(state::UNDEFINED_OBJECT, message)
}
