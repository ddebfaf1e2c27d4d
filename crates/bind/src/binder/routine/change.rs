//! ALTER and DROP of functions and procedures, and which one a name means.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::command::{Ddl, Target, TargetKind};
use throng_catalog::{RoutineDef, RoutineKind};
use throng_syntax::parse::ast::{self, ObjectChange, RoutineChange, RoutineType, RoutineWord};
use throng_values::func::aggregates_named;

impl Binder<'_> {
    /// The one routine that a name, with or without arguments, means.
    pub(in crate::binder) fn find_routine(
        &mut self,
        word: RoutineWord,
        routine: &ast::RoutineName,
    ) -> Result<Arc<RoutineDef>> {
        let name = &routine.name;
        if let Some(schema) = name.schema() {
            self.schema(schema)?;
        }
        let mut found: Vec<Arc<RoutineDef>> = self
            .routines_named(name)
            .into_iter()
            .map(|(_, def)| def)
            .collect();
        let Some(args) = &routine.args else {
            found.retain(|def| word.means(def.kind));
            return match found.len() {
                1 => Ok(found.remove(0)),
                0 => {
                    let message = format!("could not find a {} named \"{name}\"", word.noun());
                    Err(Error::new(state::UNDEFINED_FUNCTION, message))
                }
                _ => {
                    let message = format!("{} name \"{name}\" is not unique", word.noun());
                    Err(Error::new(state::AMBIGUOUS_FUNCTION, message).hint(format!(
                        "Specify the argument list to select the {} unambiguously.",
                        word.noun()
                    )))
                }
            };
        };
        let mut types = Vec::new();
        let mut uses = Vec::new();
        for arg in args {
            let resolved = self.routine_type(&arg.ty, &mut uses)?.into_value();
            // A procedure may be named with its OUT arguments too.
            if arg.mode.is_input() {
                types.push(resolved.declared());
            }
        }
        let list: Vec<String> = types.iter().map(|t| type_name(*t)).collect();
        let described = match (word, list.is_empty()) {
            (RoutineWord::Aggregate, true) => format!("{name}(*)"),
            _ => format!("{name}({})", list.join(", ")),
        };
        let Some(def) = found.into_iter().find(|def| def.input_types() == types) else {
            let builtin = name.schema().is_none_or(|s| s == "pg_catalog")
                && throng_values::func::functions_named(name.last())
                    .iter()
                    .any(|f| f.args == types);
            if builtin && word == RoutineWord::Aggregate {
                let message = format!("function {described} is not an aggregate");
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
            let aggregate = name.schema().is_none_or(|s| s == "pg_catalog")
                && aggregates_named(name.last())
                    .iter()
                    .any(|a| a.args == types);
            let aggregate = aggregate && word != RoutineWord::Procedure;
            if builtin || aggregate {
                let message = format!("must be owner of function {}", name.last());
                return match self.catalog().role(self.user).is_some_and(|r| r.superuser) {
                    true => Err(Error::unsupported("changing a built-in function")),
                    false => Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message)),
                };
            }
            let message = format!("{} {described} does not exist", word.noun());
            return Err(Error::new(state::UNDEFINED_FUNCTION, message));
        };
        if !word.means(def.kind) {
            let message = match word {
                RoutineWord::Aggregate => format!("function {described} is not an aggregate"),
                _ => format!("{described} is not a {}", word.noun()),
            };
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        }
        Ok(def)
    }

    /// The routine that COMMENT is on; an aggregate may be built in.
    pub(in crate::binder) fn commented_routine(
        &mut self,
        word: RoutineWord,
        routine: &ast::RoutineName,
    ) -> Result<Oid> {
        if word == RoutineWord::Aggregate
            && let Some(built_in) = self.built_in_aggregate(routine)?
        {
            return Ok(built_in);
        }
        let def = self.find_routine(word, routine)?;
        self.must_own(def.owner, word.noun(), &def.name)?;
        Ok(def.oid)
    }

    pub(in crate::binder) fn alter_routine(
        &mut self,
        word: RoutineWord,
        routine: &ast::RoutineName,
        change: &RoutineChange,
    ) -> Result<Ddl> {
        let def = self.find_routine(word, routine)?;
        self.must_own(def.owner, word.noun(), &def.name)?;
        let target = Target {
            kind: TargetKind::Routine(word),
            oid: def.oid,
        };
        Ok(match change {
            RoutineChange::Object(ObjectChange::Rename(name)) => Ddl::Rename {
                target,
                name: name.clone(),
                only: false,
                said: None,
            },
            RoutineChange::Object(ObjectChange::Owner(owner)) => {
                let owner = self.role(owner)?;
                self.may_give(target, owner)?;
                Ddl::SetOwner {
                    target,
                    owner,
                    said: None,
                }
            }
            RoutineChange::Object(ObjectChange::SetSchema(schema)) => Ddl::SetSchema {
                target,
                schema: self.schema_to_move_to(target, schema)?,
                said: None,
            },
            RoutineChange::Options(_) if def.kind == RoutineKind::Aggregate => {
                let message = format!("\"{}\" is an aggregate function", routine.name);
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
            RoutineChange::Options(options) => {
                let attributes = self.attributes(options, def.kind)?;
                if attributes.rows.is_some() && !def.set {
                    let message = "ROWS is not applicable when function does not return a set";
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
                Ddl::AlterRoutine {
                    target,
                    attributes: Box::new(attributes),
                }
            }
        })
    }

    pub(in crate::binder) fn drop_routines(
        &mut self,
        word: RoutineWord,
        routines: &[ast::RoutineName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Ddl> {
        let mut targets: Vec<Target> = Vec::new();
        for routine in routines {
            let def = match self.find_routine(word, routine) {
                Ok(def) => def,
                Err(e)
                    if if_exists
                        && matches!(
                            e.code(),
                            state::UNDEFINED_FUNCTION
                                | state::UNDEFINED_OBJECT
                                | state::INVALID_SCHEMA_NAME
                        ) =>
                {
                    self.missing_routine(word, routine, &e);
                    continue;
                }
                Err(e) => return Err(e),
            };
            self.must_own(def.owner, word.noun(), &def.name)?;
            if def.kind == RoutineKind::Aggregate && word == RoutineWord::Function {
                let message = format!("\"{}\" is an aggregate function", routine.name);
                let hint = "Use DROP AGGREGATE to drop aggregate functions.";
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message).hint(hint));
            }
            let target = Target {
                kind: TargetKind::Routine(word),
                oid: def.oid,
            };
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Ok(match targets.is_empty() {
            true => Ddl::Nothing {
                tag: match word {
                    RoutineWord::Function => "DROP FUNCTION",
                    RoutineWord::Procedure => "DROP PROCEDURE",
                    RoutineWord::Routine => "DROP ROUTINE",
                    RoutineWord::Aggregate => "DROP AGGREGATE",
                },
            },
            false => Ddl::Drop { targets, cascade },
        })
    }

    /// DROP … IF EXISTS of what is not there.
    fn missing_routine(&mut self, word: RoutineWord, routine: &ast::RoutineName, e: &Error) {
        let message = match (&routine.args, e.code()) {
            (Some(args), state::UNDEFINED_FUNCTION) => {
                let list = args
                    .iter()
                    .filter(|a| a.mode.is_input())
                    .map(|a| match &a.ty {
                        RoutineType::Plain(ty) => written_type(ty),
                        RoutineType::Column { column, .. } => format!("{column}%TYPE"),
                    });
                let list: Vec<String> = list.collect();
                format!(
                    "{} {}({}) does not exist, skipping",
                    word.noun(),
                    routine.name,
                    list.join(",")
                )
            }
            (None, state::UNDEFINED_FUNCTION) => format!(
                "{} {}() does not exist, skipping",
                word.noun(),
                routine.name
            ),
            _ => format!("{}, skipping", e.message()),
        };
        self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
    }
}

/// A type as the grammar has it: what is a keyword of SQL's is a name in `pg_catalog`.
pub(in crate::binder) fn written_type(ty: &ast::TypeName) -> String {
    const KEYWORDS: [&str; 13] = [
        "bool",
        "bpchar",
        "float4",
        "float8",
        "int2",
        "int4",
        "int8",
        "interval",
        "numeric",
        "time",
        "timestamp",
        "timestamptz",
        "varchar",
    ];
    let name = ty.name.to_string();
    let array = if ty.array { "[]" } else { "" };
    match KEYWORDS.contains(&name.as_str()) {
        true => format!("pg_catalog.{name}{array}"),
        false => name + array,
    }
}
