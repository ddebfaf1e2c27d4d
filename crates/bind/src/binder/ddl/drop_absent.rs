//! DROP of kinds of objects that only PostgreSQL has: a user's is never there, and what is built in
//! stays.

use throng_types::error::state;
use throng_types::{Error, Result};

use crate::binder::Binder;
use crate::command::Ddl;
use throng_catalog::Relation;
use throng_syntax::parse::ast::{AbsentObject, DropAbsent, Name};

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
        "ACCESS METHOD" => "DROP ACCESS METHOD",
        "EVENT TRIGGER" => "DROP EVENT TRIGGER",
        "FOREIGN TABLE" => "DROP FOREIGN TABLE",
        "FOREIGN DATA WRAPPER" => "DROP FOREIGN DATA WRAPPER",
        "OPERATOR CLASS" => "DROP OPERATOR CLASS",
        "OPERATOR FAMILY" => "DROP OPERATOR FAMILY",
        "TEXT SEARCH CONFIGURATION" => "DROP TEXT SEARCH CONFIGURATION",
        "TEXT SEARCH DICTIONARY" => "DROP TEXT SEARCH DICTIONARY",
        "TEXT SEARCH PARSER" => "DROP TEXT SEARCH PARSER",
        _ => "DROP TEXT SEARCH TEMPLATE",
    }
}
