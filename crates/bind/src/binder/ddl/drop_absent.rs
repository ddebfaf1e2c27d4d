//! DROP of kinds of objects that only PostgreSQL has: a user's is never there, and what is built in
//! stays.

use throng_types::error::state;
use throng_types::{Error, Result};

use crate::binder::Binder;
use crate::binder::routine::change::written_type;
use crate::command::Ddl;
use throng_catalog::Relation;
use throng_syntax::parse::ast::{AbsentObject, DropAbsent, Name, RoutineType};
use throng_values::func::cast::CastMethod;
use throng_values::func::{
    CastContext, aggregates_named, find_cast, functions_named, operators_named,
};

/// The collations, languages, access methods and tablespaces that are built in.
const BUILT_IN: [(&str, &[&str]); 4] = [
    (
        "COLLATION",
        &["default", "C", "POSIX", "ucs_basic", "C.utf8", "pg_c_utf8"],
    ),
    ("LANGUAGE", &["internal", "c", "sql", "plpgsql"]),
    (
        "ACCESS METHOD",
        &["heap", "btree", "hash", "gist", "gin", "spgist", "brin"],
    ),
    ("TABLESPACE", &["pg_default", "pg_global"]),
];

impl Binder<'_> {
    pub(in crate::binder) fn drop_absent(&mut self, drop: &DropAbsent) -> Result<Ddl> {
        for object in &drop.objects {
            if self.is_built_in(drop.kind, object) {
                return Err(Error::unsupported(format!("DROP {}", drop.kind)));
            }
            let (code, message) = self.absence(drop.kind, object)?;
            if !drop.if_exists {
                return Err(Error::new(code, message));
            }
            let notice = format!("{message}, skipping");
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, notice));
        }
        Ok(Ddl::Nothing {
            tag: tag_of(drop.kind),
        })
    }

    fn is_built_in(&self, kind: &str, object: &AbsentObject) -> bool {
        match object {
            AbsentObject::Named(name) => BUILT_IN
                .iter()
                .any(|(of, names)| *of == kind && names.contains(&name.last())),
            AbsentObject::Aggregate(routine) => {
                let name = routine.name.last();
                !aggregates_named(name).is_empty()
                    || !functions_named(name).is_empty()
                    || !self.routines_named(&routine.name).is_empty()
            }
            AbsentObject::Operator(name, _) => {
                !operators_named(name.rsplit('.').next().unwrap_or(name)).is_empty()
            }
            // Casts are between built-in types, and those are built in.
            AbsentObject::Cast(from, to) => {
                use throng_types::sqltype::type_by_name;
                let built_in = |name: &Name| type_by_name(name.last()).map(|t| t.oid);
                match (built_in(&from.name), built_in(&to.name)) {
                    (Some(from), Some(to)) => {
                        let cast = find_cast(from, to, CastContext::Explicit);
                        // Any type goes through text without a cast of its own.
                        let by_text = |m| matches!(m, CastMethod::Text | CastMethod::Unknown);
                        cast.is_some_and(|c| !by_text(c.method))
                    }
                    _ => false,
                }
            }
            AbsentObject::On { .. } | AbsentObject::Class { .. } | AbsentObject::Numbered(_) => {
                false
            }
        }
    }

    /// That there is no such object, as PostgreSQL says it.
    pub(in crate::binder) fn absence(
        &mut self,
        kind: &str,
        object: &AbsentObject,
    ) -> Result<(throng_types::SqlState, String)> {
        let noun = match kind {
            "STATISTICS" => "statistics object".to_owned(),
            "FOREIGN DATA WRAPPER" => "foreign-data wrapper".to_owned(),
            kind => kind.to_ascii_lowercase(),
        };
        let missing = match object {
            AbsentObject::Named(name) => {
                if let Some(schema) = name.schema()
                    && self.catalog().schema_by_name(schema).is_none()
                {
                    let message = format!("schema \"{schema}\" does not exist");
                    return Ok((state::INVALID_SCHEMA_NAME, message));
                }
                if kind == "FOREIGN TABLE" {
                    self.must_not_be_a_table(name)?;
                }
                format!("{noun} \"{name}\" does not exist")
            }
            AbsentObject::On { name, relation } => match self.find_relation(relation)? {
                None => {
                    let message = format!("relation \"{relation}\" does not exist");
                    return Ok((state::UNDEFINED_TABLE, message));
                }
                Some(_) => format!(
                    "{noun} \"{name}\" for relation \"{}\" does not exist",
                    relation.last()
                ),
            },
            AbsentObject::Numbered(number) => format!("{noun} {number} does not exist"),
            AbsentObject::Class { name, method } => {
                format!("{noun} \"{name}\" does not exist for access method \"{method}\"")
            }
            AbsentObject::Operator(name, _) => {
                let message = format!("operator {name} does not exist");
                return Ok((state::UNDEFINED_FUNCTION, message));
            }
            AbsentObject::Aggregate(routine) => {
                let args = routine.args.iter().flatten().map(|a| match &a.ty {
                    RoutineType::Plain(ty) => written_type(ty),
                    RoutineType::Column { column, .. } => format!("{column}%TYPE"),
                });
                let args: Vec<String> = args.collect();
                let message = format!(
                    "aggregate {}({}) does not exist",
                    routine.name,
                    args.join(",")
                );
                return Ok((state::UNDEFINED_FUNCTION, message));
            }
            AbsentObject::Cast(from, to) => {
                let (from, to) = (written_type(from), written_type(to));
                format!("cast from type {from} to type {to} does not exist")
            }
        };
        Ok((state::UNDEFINED_OBJECT, missing))
    }

    fn must_not_be_a_table(&mut self, name: &Name) -> Result<()> {
        let hint = match self.find_relation(name)? {
            None => return Ok(()),
            Some(Relation::View(_)) => "Use DROP VIEW to remove a view.",
            Some(Relation::Index(_)) => "Use DROP INDEX to remove an index.",
            Some(Relation::Sequence(_)) => "Use DROP SEQUENCE to remove a sequence.",
            Some(_) => "Use DROP TABLE to remove a table.",
        };
        let message = format!("\"{}\" is not a foreign table", name.last());
        Err(Error::new(state::WRONG_OBJECT_TYPE, message).hint(hint))
    }
}

fn tag_of(kind: &str) -> &'static str {
    match kind {
        "PUBLICATION" => "DROP PUBLICATION",
        "SUBSCRIPTION" => "DROP SUBSCRIPTION",
        "COLLATION" => "DROP COLLATION",
        "CONVERSION" => "DROP CONVERSION",
        "STATISTICS" => "DROP STATISTICS",
        "SERVER" => "DROP SERVER",
        "LANGUAGE" => "DROP LANGUAGE",
        "TABLESPACE" => "DROP TABLESPACE",
        "RULE" => "DROP RULE",
        "CAST" => "DROP CAST",
        "AGGREGATE" => "DROP AGGREGATE",
        "ACCESS METHOD" => "DROP ACCESS METHOD",
        "EVENT TRIGGER" => "DROP EVENT TRIGGER",
        "FOREIGN TABLE" => "DROP FOREIGN TABLE",
        "FOREIGN DATA WRAPPER" => "DROP FOREIGN DATA WRAPPER",
        "OPERATOR CLASS" => "DROP OPERATOR CLASS",
        "OPERATOR FAMILY" => "DROP OPERATOR FAMILY",
        "OPERATOR" => "DROP OPERATOR",
        "TEXT SEARCH CONFIGURATION" => "DROP TEXT SEARCH CONFIGURATION",
        "TEXT SEARCH DICTIONARY" => "DROP TEXT SEARCH DICTIONARY",
        "TEXT SEARCH PARSER" => "DROP TEXT SEARCH PARSER",
        _ => "DROP TEXT SEARCH TEMPLATE",
    }
}
