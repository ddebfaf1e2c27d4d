//! `pg_get_object_address`: the catalog and the number of what a kind and names say, as
//! `pg_identify_object_as_address` tells them.

use std::sync::Arc;

use throng_catalog::Relation;
use throng_catalog::builtin::class;
use throng_catalog::system::{definition, extension, routine};
use throng_syntax::parse::ast::Name;
use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Datum, Error, Oid, Record, Result, oid};
use throng_values::func::{EvalHost, EvalResult, ObjectKind};

use crate::session::answers::eval_host::SessionHost;
use crate::session::answers::identity::{
    ACCESS_METHOD, ACCESS_METHODS, COLLATION, OPERATOR, TABLESPACE, TABLESPACES,
};

/// Catalog, object, column.
type Address = (Oid, Oid, i32);

/// Kinds that have a name and no address.
const UNSUPPORTED: [&str; 10] = [
    "toast table",
    "composite type",
    "index column",
    "sequence column",
    "toast table column",
    "view column",
    "materialized view column",
    "composite type column",
    "role membership",
    "parameter ACL",
];

/// Kinds of what there is nothing of, or that has no names here.
const OTHERS: [&str; 24] = [
    "foreign table",
    "cast",
    "conversion",
    "large object",
    "operator class",
    "operator family",
    "operator of access method",
    "function of access method",
    "text search parser",
    "text search dictionary",
    "text search template",
    "text search configuration",
    "foreign-data wrapper",
    "server",
    "user mapping",
    "default acl",
    "event trigger",
    "publication",
    "publication namespace",
    "publication relation",
    "subscription",
    "transform",
    "statistics object",
    "foreign table column",
];

fn wrong(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message.into())
}

/// The items of an array of text, whatever its shape.
fn texts(value: &Datum) -> Result<Vec<String>> {
    let Datum::Array(array) = value else {
        return Ok(Vec::new());
    };
    let text = |item: &Datum| {
        let text = item.as_str().map(str::to_owned);
        text.ok_or_else(|| wrong("name or argument lists may not contain nulls"))
    };
    array.items.iter().map(text).collect()
}

fn exactly(what: &str, list: &[String], count: usize) -> Result<()> {
    match list.len() == count {
        true => Ok(()),
        false => Err(wrong(format!("{what} list length must be exactly {count}"))),
    }
}

impl SessionHost<'_> {
    pub(in crate::session) fn address(&self, args: &[Datum]) -> EvalResult {
        let kind = args[0].as_str().unwrap_or_default();
        let names = texts(&args[1]);
        let (of, object, column) = self.address_of(kind, names, &args[2])?;
        Ok(Datum::Record(Arc::new(Record {
            types: [oid::OID, oid::OID, oid::INT4].into(),
            names: None,
            values: vec![of.into(), object.into(), column.into()],
        })))
    }

    fn address_of(&self, kind: &str, names: Result<Vec<String>>, args: &Datum) -> Result<Address> {
        if UNSUPPORTED.contains(&kind) {
            return Err(wrong(format!("unsupported object type \"{kind}\"")));
        }
        if OTHERS.contains(&kind) {
            return Err(Error::unsupported(format!("an address of a {kind}")));
        }
        let names = match kind {
            "type" | "domain constraint" => {
                let names = names?;
                exactly("name", &names, 1)?;
                names
            }
            "table" | "index" | "sequence" | "view" | "materialized view" | "table column"
            | "default value" | "table constraint" | "rule" | "trigger" | "policy" | "function"
            | "procedure" | "aggregate" | "operator" | "collation" => {
                let names = names?;
                if names.is_empty() {
                    return Err(wrong("name list length must be at least 1"));
                }
                names
            }
            "schema" | "role" | "database" | "tablespace" | "language" | "extension"
            | "access method" => {
                let names = names?;
                if names.is_empty() {
                    return Err(wrong("name list length must be at least 1"));
                }
                exactly("name", &names, 1)?;
                names
            }
            other => return Err(wrong(format!("unrecognized object type \"{other}\""))),
        };
        match kind {
            "table" | "index" | "sequence" | "view" | "materialized view" => {
                Ok((class::RELATION, self.relation_address(kind, &names)?, 0))
            }
            "table column" | "default value" => self.column_address(kind, &names),
            "table constraint" | "rule" | "trigger" | "policy" => self.part_address(kind, &names),
            "type" => Ok((class::TYPE, self.type_oid(&names[0])?, 0)),
            "domain constraint" => self.domain_constraint(&names[0], &texts(args)?),
            "function" | "procedure" | "aggregate" => {
                let routine = self.routine_address(kind, names, &texts(args)?)?;
                Ok((class::PROCEDURE, routine, 0))
            }
            "operator" => self.operator_address(&names, &texts(args)?),
            "collation" => self.collation_address(&names),
            _ => self.global_address(kind, &names[0]),
        }
    }

    /// A relation whose name is these words.
    fn relation_called(&self, names: &[String]) -> Result<Relation> {
        let written = names.join(".");
        let (schema, name) = match names {
            [name] => (None, name),
            [schema, name] => (Some(schema), name),
            [database, schema, name] => {
                if *database != self.catalog.current_database_name() {
                    let message =
                        format!("cross-database references are not implemented: \"{written}\"");
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
                }
                (Some(schema), name)
            }
            _ => {
                let message = format!("improper relation name (too many dotted names): {written}");
                return Err(Error::new(state::SYNTAX_ERROR, message));
            }
        };
        let found = match schema {
            None => self.catalog.find_relation(&self.search_path(), name),
            Some(schema) => {
                let schema = self.schema_named(schema).ok_or_else(|| {
                    let message = format!("schema \"{schema}\" does not exist");
                    Error::new(state::INVALID_SCHEMA_NAME, message)
                })?;
                self.may_look_into(schema)?;
                self.catalog.relation_in(schema, name)
            }
        };
        found.ok_or_else(|| {
            let message = format!("relation \"{written}\" does not exist");
            Error::new(state::UNDEFINED_TABLE, message)
        })
    }

    fn relation_address(&self, kind: &str, names: &[String]) -> Result<Oid> {
        let relation = self.relation_called(names)?;
        let (fits, what): (&[u8], _) = match kind {
            "table" => (b"rp", "a table"),
            "index" => (b"iI", "an index"),
            "sequence" => (b"S", "a sequence"),
            "view" => (b"v", "a view"),
            _ => (b"m", "a materialized view"),
        };
        if !fits.contains(&relation.relkind()) {
            let message = format!("\"{}\" is not {what}", relation.name());
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        }
        Ok(relation.oid())
    }

    fn column_address(&self, kind: &str, names: &[String]) -> Result<Address> {
        let Some((column, of)) = names.split_last().filter(|(_, of)| !of.is_empty()) else {
            let message = "column name must be qualified";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        };
        let relation = self.relation_called(of)?;
        let attnum = self.column_number(&relation, &Datum::from(column.as_str()));
        let attnum = attnum.ok().flatten().ok_or_else(|| {
            let of = of.join(".");
            let message = format!("column \"{column}\" of relation \"{of}\" does not exist");
            Error::new(state::UNDEFINED_COLUMN, message)
        });
        if kind == "table column" {
            return Ok((class::RELATION, relation.oid(), i32::from(attnum?)));
        }
        let table = self.catalog.table(relation.oid());
        let has_default = |attnum: &u16| {
            let column = table.map(|t| t.column(*attnum));
            column.is_some_and(|c| definition::stored_default(self.catalog, c).is_some())
        };
        let attnum = attnum?;
        if !has_default(&attnum) {
            let of = of.join(".");
            let message = format!(
                "default value for column \"{column}\" of relation \"{of}\" does not exist"
            );
            return Err(Error::new(state::UNDEFINED_COLUMN, message));
        }
        let default = definition::default_oid(relation.oid(), attnum);
        Ok((class::ATTRDEF, default, 0))
    }

    fn part_address(&self, kind: &str, names: &[String]) -> Result<Address> {
        let Some((name, of)) = names.split_last().filter(|(_, of)| !of.is_empty()) else {
            let message = "must specify relation and object name";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        };
        let relation = self.relation_called(of)?;
        let table = relation.oid();
        let (of, found, what) = match kind {
            "rule" => {
                let rule = self.catalog.rule_of(table).filter(|_| name == "_RETURN");
                (
                    class::REWRITE,
                    rule.map(|_| definition::rule_oid(table)),
                    "rule",
                )
            }
            "trigger" => {
                let trigger = self.catalog.trigger_by_name(table, name);
                (class::TRIGGER, trigger.map(|t| t.oid), "trigger")
            }
            "policy" => {
                let policy = self.catalog.policy_by_name(table, name);
                (class::POLICY, policy.map(|p| p.oid), "policy")
            }
            _ => {
                let found = self.constraint_called(table, name);
                (class::CONSTRAINT, found, "constraint")
            }
        };
        let of_what = if kind == "rule" { "relation" } else { "table" };
        let object = found.ok_or_else(|| {
            let relation = relation.name();
            let message = format!("{what} \"{name}\" for {of_what} \"{relation}\" does not exist");
            Error::new(state::UNDEFINED_OBJECT, message)
        })?;
        Ok((of, object, 0))
    }

    /// A table's constraint; a constraint trigger and a NOT NULL are such, too.
    fn constraint_called(&self, table: Oid, name: &str) -> Option<Oid> {
        if let Some(def) = self.catalog.constraint_by_name(table, name) {
            return Some(def.oid);
        }
        let trigger = self.catalog.trigger_by_name(table, name);
        if let Some(trigger) = trigger.filter(|trigger| trigger.constraint.is_some()) {
            return Some(trigger.oid);
        }
        let table = self.catalog.table(table)?;
        let mut all = definition::not_nulls(table);
        let (attnum, _) = all.find(|(_, c)| definition::not_null_name(table, c) == name)?;
        Some(definition::not_null_oid(table.oid, attnum))
    }

    fn domain_constraint(&self, domain: &str, args: &[String]) -> Result<Address> {
        exactly("argument", args, 1)?;
        let ty = self.type_oid(domain)?;
        let def = self.catalog.made_type(ty);
        let of_domain = def.and_then(|def| def.domain.as_ref());
        let Some(of_domain) = of_domain.filter(|_| made::is_domain(ty)) else {
            let shown = self.object_name(ObjectKind::Type, ty).unwrap_or_default();
            let message = format!("\"{shown}\" is not a domain");
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        };
        let name = &args[0];
        let not_null = of_domain.not_null.iter().map(|n| (n.oid, &n.name));
        let checks = of_domain.checks.iter().map(|c| (c.oid, &c.name));
        let mut all = checks.chain(not_null);
        let found = all.find(|(_, called)| *called == name);
        let (object, _) = found.ok_or_else(|| {
            let shown = self.object_name(ObjectKind::Type, ty).unwrap_or_default();
            let message = format!("constraint \"{name}\" for domain {shown} does not exist");
            Error::new(state::UNDEFINED_OBJECT, message)
        })?;
        Ok((class::CONSTRAINT, object, 0))
    }

    fn routine_address(&self, kind: &str, names: Vec<String>, args: &[String]) -> Result<Oid> {
        let types = args.iter().map(|arg| self.type_oid(arg));
        let types = types.collect::<Result<Vec<Oid>>>()?;
        if names.len() > 2 {
            let written = names.join(".");
            let message = format!("improper qualified name (too many dotted names): {written}");
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        let shown = types.iter().map(|ty| {
            let shown = self.object_name(ObjectKind::Type, *ty);
            shown.unwrap_or_default()
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        let signature = format!("{}({shown})", names.join("."));
        let name = Name {
            parts: names,
            pos: 0,
        };
        if let Some(schema) = name.schema()
            && self.schema_named(schema).is_none()
        {
            let message = format!("schema \"{schema}\" does not exist");
            return Err(Error::new(state::INVALID_SCHEMA_NAME, message));
        }
        let found = self
            .procedures_named(&name, Some(&types))
            .into_iter()
            .next();
        let Some(found) = found else {
            let message = match (kind, args.is_empty()) {
                ("aggregate", true) => {
                    let name = name.parts.join(".");
                    format!("aggregate {name}(*) does not exist")
                }
                _ => format!("{kind} {signature} does not exist"),
            };
            return Err(Error::new(state::UNDEFINED_FUNCTION, message));
        };
        let is = match self.catalog.routine(found) {
            Some(def) => def.noun(),
            None => match routine::procedure(found) {
                Some(of) if of.kind == b'a' => "aggregate",
                _ => "function",
            },
        };
        match (kind, is) {
            // An aggregate is a function, too.
            ("function", "procedure") => {
                let message = format!("{signature} is not a function");
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            ("procedure", "function" | "aggregate") => {
                let message = format!("{signature} is not a procedure");
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            ("aggregate", "function" | "procedure") => {
                let message = format!("function {signature} is not an aggregate");
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            _ => Ok(found),
        }
    }

    fn operator_address(&self, names: &[String], args: &[String]) -> Result<Address> {
        exactly("argument", args, 2)?;
        let side = |arg: &String| match arg.to_ascii_lowercase().as_str() {
            "none" => Ok(Oid::NONE),
            _ => self.type_oid(arg),
        };
        let (left, right) = (side(&args[0])?, side(&args[1])?);
        let (schema, name) = match names {
            [name] => (None, name),
            [schema, name] => (Some(schema.as_str()), name),
            _ => return Err(Error::unsupported("an operator's name of more parts")),
        };
        let found = self.operator_of(schema, name, [left, right]);
        let found = found.ok_or_else(|| {
            let side = |ty: Oid| self.object_name(ObjectKind::Type, ty).unwrap_or_default();
            let message = match left {
                Oid::NONE => format!("operator does not exist: {name} {}", side(right)),
                left => {
                    let (left, right) = (side(left), side(right));
                    format!("operator does not exist: {left} {name} {right}")
                }
            };
            Error::new(state::UNDEFINED_FUNCTION, message)
        })?;
        Ok((OPERATOR, found, 0))
    }

    fn collation_address(&self, names: &[String]) -> Result<Address> {
        let quoted = names
            .iter()
            .map(|name| throng_types::lexical::quote_ident(name));
        let written = quoted.collect::<Vec<_>>().join(".");
        let found = self.object_oid(ObjectKind::Collation, &written);
        let object = found.map_err(|stop| stop.into_error())?;
        Ok((COLLATION, object, 0))
    }

    fn global_address(&self, kind: &str, name: &str) -> Result<Address> {
        let listed = |all: &[(Oid, &str)]| {
            let mut all = all.iter();
            all.find(|(_, called)| *called == name).map(|(oid, _)| *oid)
        };
        let (of, found, code) = match kind {
            "schema" => {
                let schema = self.schema_named(name);
                (class::NAMESPACE, schema, state::INVALID_SCHEMA_NAME)
            }
            "role" => return Ok((class::ROLE, self.role_oid(name)?, 0)),
            "database" => {
                let database = self.catalog.database_by_name(name).map(|d| d.oid);
                (class::DATABASE, database, state::INVALID_CATALOG_NAME)
            }
            "tablespace" => {
                let found = listed(&TABLESPACES);
                (TABLESPACE, found, state::UNDEFINED_OBJECT)
            }
            "access method" => {
                let found = listed(&ACCESS_METHODS);
                (ACCESS_METHOD, found, state::UNDEFINED_OBJECT)
            }
            "language" => {
                let found = extension::language(name);
                (class::LANGUAGE, found, state::UNDEFINED_OBJECT)
            }
            _ => {
                let found = extension::named(self.catalog, name);
                (class::EXTENSION, found, state::UNDEFINED_OBJECT)
            }
        };
        let message = || format!("{kind} \"{name}\" does not exist");
        let object = found.ok_or_else(|| Error::new(code, message()))?;
        Ok((of, object, 0))
    }
}
