//! COMMENT ON objects that are built in, and on those of kinds of which a user makes none.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::binder::ddl::table::no_position;
use crate::command::{Ddl, Target, TargetKind};
use throng_catalog::builtin::{self, class};
use throng_catalog::system::named;
use throng_syntax::parse::ast::{
    AbsentObject, CommentAbsent, Name, RoutineName, RoutineType, TypeName,
};
use throng_values::func::aggregates_named;

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

    /// COMMENT ON AGGREGATE of one that is built in.
    pub(in crate::binder) fn built_in_aggregate(
        &mut self,
        routine: &RoutineName,
    ) -> Result<Option<Oid>> {
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
            return Ok(Some(found.oid));
        }
        Ok(None)
    }

    fn type_without_place(&self, ty: &TypeName) -> Result<Oid> {
        Ok(self.type_of(ty).map_err(no_position)?.oid)
    }

    fn is_absent(&mut self, kind: &str, object: &AbsentObject) -> Result<(Oid, Oid)> {
        let (code, message) = self.absence(kind, object)?;
        Err(Error::new(code, message))
    }
}
