//! COMMENT ON objects that are built in, and on those of kinds of which a user makes none.

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::binder::ddl::table::no_position;
use crate::command::{Ddl, Target, TargetKind};
use throng_catalog::builtin::{self, class};
use throng_catalog::system::named;
use throng_syntax::parse::ast::{
    AbsentObject, CommentAbsent, Name, RoutineName, RoutineType, TypeName,
};
use throng_values::func::cast::CastMethod;
use throng_values::func::{
    CastContext, aggregates_named, find_cast, functions_named, operators_named,
};

fn missing(message: String) -> Error {
    Error::new(state::UNDEFINED_OBJECT, message)
}

/// Whether a name may be one of `pg_catalog`.
fn may_be_built_in(name: &Name) -> bool {
    name.schema().is_none_or(|schema| schema == "pg_catalog")
}

impl Binder<'_> {
    pub(in crate::binder) fn comment_built_in(&mut self, comment: &CommentAbsent) -> Result<Ddl> {
        let (class, oid) = self.built_in(comment.kind, &comment.object)?;
        let kind = TargetKind::BuiltIn(class);
        Ok(Ddl::Comment {
            target: Target { kind, oid },
            text: comment.text.clone(),
        })
    }

    /// The catalog that the object is in, and its number there.
    fn built_in(&mut self, kind: &str, object: &AbsentObject) -> Result<(Oid, Oid)> {
        match object {
            AbsentObject::Operator(name, types) => self.built_in_operator(name, types),
            AbsentObject::Aggregate(routine) => self.built_in_aggregate(routine),
            AbsentObject::Cast(from, to) => {
                let (from, to) = (self.type_without_place(from)?, self.type_without_place(to)?);
                let cast = find_cast(from, to, CastContext::Explicit);
                let by_text = |m| matches!(m, CastMethod::Text | CastMethod::Unknown);
                // The numbers of casts are not the same from one version to the next.
                if from != to && cast.is_some_and(|cast| !by_text(cast.method)) {
                    return Err(Error::unsupported("COMMENT ON CAST"));
                }
                Err(missing(format!(
                    "cast from type {} to type {} does not exist",
                    type_name(from),
                    type_name(to)
                )))
            }
            AbsentObject::Class { name, method } => {
                if named::access_method(method).is_none() {
                    let message = format!("access method \"{method}\" does not exist");
                    return Err(missing(message));
                }
                let (class, noun) = match kind {
                    "OPERATOR CLASS" => (class::OPERATOR_CLASS, "operator class"),
                    _ => (class::OPERATOR_FAMILY, "operator family"),
                };
                let found = may_be_built_in(name)
                    .then(|| named::of_method(method, class, name.last()))
                    .flatten();
                match found {
                    Some(oid) => {
                        let called = format!("{method}.{}", name.last());
                        self.must_own(builtin::SUPERUSER, noun, &called)?;
                        Ok((class, oid))
                    }
                    None => self.is_absent(kind, object),
                }
            }
            AbsentObject::Named(name) => self.built_in_named(kind, name, object),
            AbsentObject::On { name, relation } => match self.is_absent(kind, object) {
                Err(e) if kind == "POLICY" && e.code() == state::UNDEFINED_OBJECT => {
                    let table = relation.last();
                    Err(missing(format!(
                        "policy \"{name}\" for table \"{table}\" does not exist"
                    )))
                }
                other => other,
            },
            AbsentObject::Numbered(_) => self.is_absent(kind, object),
        }
    }

    fn built_in_named(
        &mut self,
        kind: &str,
        name: &Name,
        object: &AbsentObject,
    ) -> Result<(Oid, Oid)> {
        let last = name.last();
        match kind {
            "COLLATION" => {
                let found = named::collation(last).filter(|_| may_be_built_in(name));
                let Some(oid) = found else {
                    return match self.is_absent(kind, object) {
                        Err(e) if e.code() == state::UNDEFINED_OBJECT => Err(missing(format!(
                            "collation \"{name}\" for encoding \"UTF8\" does not exist"
                        ))),
                        other => other,
                    };
                };
                self.must_own(builtin::SUPERUSER, "collation", last)?;
                Ok((class::COLLATION, oid))
            }
            "ACCESS METHOD" => match named::access_method(last) {
                Some(_) if !self.catalog().is_superuser(self.user) => Err(Error::new(
                    state::INSUFFICIENT_PRIVILEGE,
                    "must be superuser",
                )),
                Some(oid) => Ok((class::ACCESS_METHOD, oid)),
                None => self.is_absent(kind, object),
            },
            "TABLESPACE" => match named::tablespace(last) {
                Some(oid) => {
                    self.must_own(builtin::SUPERUSER, "tablespace", last)?;
                    Ok((class::TABLESPACE, oid))
                }
                None => self.is_absent(kind, object),
            },
            _ => self.is_absent(kind, object),
        }
    }

    fn built_in_operator(&mut self, name: &str, types: &[Option<TypeName>]) -> Result<(Oid, Oid)> {
        let (schema, last) = match name.rsplit_once('.') {
            Some((schema, last)) => (Some(schema), last),
            None => (None, name),
        };
        if let Some(schema) = schema {
            self.schema(schema)?;
        }
        let mut operands = Vec::with_capacity(types.len());
        for ty in types {
            operands.push(match ty {
                Some(ty) => self.type_without_place(ty)?,
                None => Oid::NONE,
            });
        }
        let (left, right) = match operands[..] {
            [left, right] => (left, right),
            _ => {
                let message = "missing argument";
                return Err(Error::new(state::SYNTAX_ERROR, message)
                    .hint("Use NONE to denote the missing argument of a unary operator."));
            }
        };
        let of_system = schema.is_none_or(|schema| schema == "pg_catalog");
        let mut known = operators_named(last).iter().filter(|_| of_system);
        let Some(found) = known.find(|o| o.left == left && o.right == right) else {
            let operands = match left {
                Oid::NONE => format!("{name} {}", type_name(right)),
                left => format!("{} {name} {}", type_name(left), type_name(right)),
            };
            let message = format!("operator does not exist: {operands}");
            return Err(Error::new(state::UNDEFINED_FUNCTION, message));
        };
        self.must_own(builtin::SUPERUSER, "operator", last)?;
        Ok((class::OPERATOR, found.oid))
    }

    fn built_in_aggregate(&mut self, routine: &RoutineName) -> Result<(Oid, Oid)> {
        let name = &routine.name;
        if let Some(schema) = name.schema() {
            self.schema(schema)?;
        }
        let mut types = Vec::new();
        for arg in routine.args.iter().flatten() {
            let RoutineType::Plain(ty) = &arg.ty else {
                return Err(Error::unsupported("%TYPE of an aggregate's argument"));
            };
            types.push(self.type_without_place(ty)?);
        }
        let last = name.last();
        let of_system = may_be_built_in(name);
        let mut known = aggregates_named(last).iter().filter(|_| of_system);
        if let Some(found) = known.find(|a| a.args == types && a.oid != Oid::NONE) {
            self.must_own(builtin::SUPERUSER, "aggregate", last)?;
            return Ok((class::PROCEDURE, found.oid));
        }
        let list: Vec<String> = types.iter().map(|ty| type_name(*ty)).collect();
        let called = format!("{name}({})", list.join(", "));
        let of_system = of_system && functions_named(last).iter().any(|f| f.args == types);
        let routines = self.routines_named(name);
        let of_user = routines.iter().any(|(_, def)| def.input_types() == types);
        if of_system || of_user {
            let message = format!("function {called} is not an aggregate");
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        }
        let message = format!("aggregate {called} does not exist");
        Err(Error::new(state::UNDEFINED_FUNCTION, message))
    }

    fn type_without_place(&self, ty: &TypeName) -> Result<Oid> {
        Ok(self.type_of(ty).map_err(no_position)?.oid)
    }

    fn is_absent(&mut self, kind: &str, object: &AbsentObject) -> Result<(Oid, Oid)> {
        let (code, message) = self.absence(kind, object)?;
        Err(Error::new(code, message))
    }
}
