//! `has_…_privilege` and `pg_has_role`, and rights on sequences, which are looked at when their
//! functions run.

use throng_catalog::{Relation, SequenceDef, Through};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result};
use throng_values::acl::{Kind, right};
use throng_values::func::{EvalHost, EvalResult, ObjectKind};

use crate::session::answers::eval_host::SessionHost;

fn oid(value: &Datum) -> Oid {
    Oid(value.as_i64().unwrap_or_default() as u32)
}

fn text(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}

/// The bits of a list of privileges; 22023 for one that such a thing has not.
fn wanted(list: &str, kinds: &[Kind]) -> Result<Vec<u32>> {
    let wrong = |name: &str| {
        let message = format!("unrecognized privilege type: \"{name}\"");
        Error::new(state::INVALID_PARAMETER_VALUE, message)
    };
    let bits = right::list(list).map_err(wrong)?;
    let all = kinds.iter().fold(0, |sum, kind| sum | kind.all());
    for (bit, name) in bits.iter().zip(list.split(',')) {
        if bit & (all | right::options(all)) == 0 {
            return Err(wrong(name.trim()));
        }
    }
    Ok(bits)
}

/// 22023 for a privilege that is none of these, with its grant option or without.
fn each_privilege(list: &str, known: &[&str]) -> Result<()> {
    for word in list.split(',').map(str::trim) {
        let upper = word.to_ascii_uppercase();
        let plain = upper.strip_suffix(" WITH GRANT OPTION").unwrap_or(&upper);
        if !known.contains(&plain) {
            let message = format!("unrecognized privilege type: \"{word}\"");
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
    }
    Ok(())
}

impl SessionHost<'_> {
    /// Whether policies stand between the role and a table's rows, `row_security` apart.
    pub(in crate::session) fn row_security_active(&self, table: &Datum) -> Result<bool> {
        let table = match table.as_str() {
            Some(name) => self.relation(name)?.oid(),
            None => oid(table),
        };
        let role = self.session.current_role_oid();
        let table = self.catalog.table(table);
        Ok(table.is_some_and(|table| self.catalog.has_row_security(table, role)))
    }

    /// A role by name or oid; `public` is everybody.
    fn role_or_public(&self, value: &Datum) -> Result<Oid> {
        match value {
            Datum::Text(name) if name.as_str() == "public" => Ok(Oid::NONE),
            Datum::Text(name) => self.role_oid(name),
            value => Ok(oid(value)),
        }
    }

    /// A relation by name; by oid None where there is none.
    fn relation_of(&self, value: &Datum) -> Result<Option<Relation>> {
        match value {
            Datum::Text(name) => self.relation(name).map(Some),
            value => Ok(self.catalog.relation(oid(value))),
        }
    }

    /// `has_…_privilege([role,] object, …, privileges)`: whether one of them is there. NULL for an
    /// object that is not.
    pub(in crate::session) fn has_privilege(&self, what: &str, args: &[Datum]) -> EvalResult {
        let columns = usize::from(what == "column");
        let (role, rest) = match args.len() == 2 + columns {
            true => (self.session.role().oid, args),
            false => (self.role_or_public(&args[0])?, &args[1..]),
        };
        let list = rest.last().map(text).unwrap_or_default();
        let catalog = self.catalog;
        let held = match what {
            "table" | "sequence" | "any_column" | "column" => {
                return self.has_relation_privilege(what, role, rest, list);
            }
            "schema" => {
                let bits = wanted(list, &[Kind::Schema])?;
                let schema = match &rest[0] {
                    Datum::Text(name) => Some(self.schema_named_or_error(name)?),
                    value => catalog.schema(oid(value)).map(|s| s.oid),
                };
                let has = |schema| {
                    bits.iter()
                        .any(|b| catalog.schema_rights(role, schema, *b) != 0)
                };
                schema.map(has)
            }
            "database" => {
                let bits = wanted(list, &[Kind::Database])?;
                let database = match &rest[0] {
                    Datum::Text(name) => {
                        let found = catalog.database_by_name(name);
                        Some(found.map(|d| d.oid).ok_or_else(|| {
                            let message = format!("database \"{name}\" does not exist");
                            Error::new(state::INVALID_CATALOG_NAME, message)
                        })?)
                    }
                    value => catalog.database(oid(value)).map(|d| d.oid),
                };
                let has = |database| {
                    let held = |b: &u32| catalog.rights_on_database(role, database, *b) != 0;
                    bits.iter().any(held)
                };
                database.map(has)
            }
            "type" => {
                let bits = wanted(list, &[Kind::Type])?;
                let ty = match &rest[0] {
                    Datum::Text(name) => self.type_oid(name)?,
                    value => oid(value),
                };
                let of_user = catalog.made_type(ty);
                Some(match of_user {
                    Some(def) => {
                        let has = |b: &u32| catalog.type_rights(role, ty, def.owner, *b) != 0;
                        bits.iter().any(has)
                    }
                    None => self.born_with(role, Kind::Type, &bits),
                })
            }
            "function" => {
                let bits = wanted(list, &[Kind::Function])?;
                let routine = match &rest[0] {
                    Datum::Text(name) => {
                        self.object_oid(ObjectKind::ProcedureWithArguments, name)?
                    }
                    value => oid(value),
                };
                Some(match catalog.routine(routine) {
                    Some(def) => {
                        let has = |b: &u32| catalog.routine_rights(role, def, *b) != 0;
                        bits.iter().any(has)
                    }
                    None => self.born_with(role, Kind::Function, &bits),
                })
            }
            "language" => {
                let bits = wanted(list, &[Kind::Language])?;
                Some(self.born_with(role, Kind::Language, &bits))
            }
            "server" | "foreign_data_wrapper" => return self.of_foreign(what, role, rest, list),
            "parameter" => {
                each_privilege(list, &["SET", "ALTER SYSTEM"])?;
                // Nothing is granted on parameters.
                Some(catalog.is_superuser(role))
            }
            _ => {
                let own = right::CREATE | right::options(right::CREATE);
                let bits = right::list(list).unwrap_or_default();
                Some(catalog.is_superuser(role) && bits.iter().any(|b| b & own != 0))
            }
        };
        Ok(held.into())
    }

    /// There are no servers and no foreign-data wrappers.
    fn of_foreign(&self, what: &str, role: Oid, rest: &[Datum], list: &str) -> EvalResult {
        if let Datum::Text(name) = &rest[0] {
            let what = match what {
                "server" => "server",
                _ => "foreign-data wrapper",
            };
            let message = format!("{what} \"{name}\" does not exist");
            return Err(Error::new(state::UNDEFINED_OBJECT, message).into());
        }
        each_privilege(list, &["USAGE"])?;
        Ok(match self.catalog.is_superuser(role) {
            true => true.into(),
            false => Datum::Null,
        })
    }

    /// What is there from the start, and nothing was ever granted on.
    fn born_with(&self, role: Oid, kind: Kind, bits: &[u32]) -> bool {
        let owner = throng_catalog::builtin::SUPERUSER;
        let items = throng_catalog::acl::defaults(kind, owner);
        let has = |bit: &u32| self.catalog.granted(role, &items, owner, *bit) != 0;
        self.catalog.is_superuser(role) || bits.iter().any(has)
    }

    fn has_relation_privilege(
        &self,
        what: &str,
        role: Oid,
        rest: &[Datum],
        list: &str,
    ) -> EvalResult {
        let relation = self.relation_of(&rest[0])?;
        let kind = match what {
            "sequence" => Kind::Sequence,
            "table" => Kind::Relation,
            _ => Kind::Column,
        };
        if let (Some(relation), "sequence") = (&relation, what)
            && !matches!(relation, Relation::Sequence(_))
        {
            let Datum::Text(written) = &rest[0] else {
                return Ok(Datum::Null);
            };
            let message = format!("\"{written}\" is not a sequence");
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message).into());
        }
        let column = match (&relation, what) {
            (Some(relation), "column") => match self.column_number(relation, &rest[1])? {
                Some(column) => Some(column),
                None => return Ok(Datum::Null),
            },
            _ => None,
        };
        let bits = wanted(list, &[kind])?;
        let Some(relation) = relation else {
            return Ok(Datum::Null);
        };
        let catalog = self.catalog;
        let on = |column: u16, bit: u32| catalog.column_rights(role, &relation, column, bit) != 0;
        let held = |bit: &u32| {
            catalog.relation_rights(role, &relation, *bit) != 0
                || column.is_some_and(|column| on(column, *bit))
                || what == "any_column"
                    && catalog
                        .stored_acls(throng_catalog::builtin::class::RELATION, relation.oid())
                        .any(|(column, _)| column != 0 && on(column, *bit))
        };
        Ok(bits.iter().any(held).into())
    }

    /// A column by name, which must be there, or by number.
    pub(in crate::session) fn column_number(
        &self,
        relation: &Relation,
        value: &Datum,
    ) -> Result<Option<u16>> {
        let names: Vec<Option<&str>> = match relation {
            Relation::Table(def) => {
                let live = |c: &throng_catalog::ColumnDef| !c.dropped;
                let columns = def.columns.iter();
                columns
                    .map(|c| live(c).then_some(c.name.as_str()))
                    .collect()
            }
            Relation::View(def) => def.columns.iter().map(|c| Some(c.name.as_str())).collect(),
            Relation::Virtual(def) => def.columns.iter().map(|(n, _)| Some(*n)).collect(),
            _ => vec![],
        };
        match value {
            Datum::Text(name) => {
                let place = names.iter().position(|n| *n == Some(name.as_str()));
                place.map(|place| Some(place as u16 + 1)).ok_or_else(|| {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" does not exist",
                        relation.name()
                    );
                    Error::new(state::UNDEFINED_COLUMN, message)
                })
            }
            value => {
                let number = value.as_i64().unwrap_or_default();
                let number = u16::try_from(number).ok().filter(|n| *n > 0);
                let there = |n: &u16| matches!(names.get(usize::from(*n) - 1), Some(Some(_)));
                Ok(number.filter(there))
            }
        }
    }

    fn schema_named_or_error(&self, name: &str) -> Result<Oid> {
        let found = self.catalog.schema_by_name(name);
        found.map(|schema| schema.oid).ok_or_else(|| {
            let message = format!("schema \"{name}\" does not exist");
            Error::new(state::INVALID_SCHEMA_NAME, message)
        })
    }

    /// `pg_has_role([member,] role, mode)`.
    pub(in crate::session) fn has_role(&self, args: &[Datum]) -> Result<Datum> {
        let role = |value: &Datum| match value {
            Datum::Text(name) => self.role_oid(name),
            value => Ok(oid(value)),
        };
        let (member, group, mode) = match args {
            [member, group, mode] => (role(member)?, role(group)?, text(mode)),
            [group, mode] => (self.session.role().oid, role(group)?, text(mode)),
            _ => return Ok(Datum::Null),
        };
        let catalog = self.catalog;
        let mut any = false;
        for word in mode.split(',') {
            let upper = word.trim().to_ascii_uppercase();
            any |= match upper.as_str() {
                "USAGE" => catalog.acts_as(member, group),
                "MEMBER" => catalog.in_role(member, group, Through::Any),
                "SET" => catalog.in_role(member, group, Through::Set),
                "USAGE WITH ADMIN OPTION"
                | "MEMBER WITH ADMIN OPTION"
                | "SET WITH ADMIN OPTION"
                | "USAGE WITH GRANT OPTION"
                | "MEMBER WITH GRANT OPTION"
                | "SET WITH GRANT OPTION" => catalog.is_admin_of(member, group),
                _ => {
                    let message = format!("unrecognized privilege type: \"{}\"", word.trim());
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
            };
        }
        Ok(any.into())
    }

    /// 42501 unless the role has one of these rights on a sequence.
    pub(in crate::session) fn may_use(&self, sequence: &SequenceDef, rights: u32) -> Result<()> {
        let role = self.session.current_role_oid();
        if role == sequence.owner && !self.catalog.has_grants() || self.catalog.is_superuser(role) {
            return Ok(());
        }
        if let Some(relation) = self.catalog.relation(sequence.oid)
            && self.catalog.relation_rights(role, &relation, rights) == 0
        {
            let message = format!("permission denied for sequence {}", sequence.name);
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
        Ok(())
    }
}
