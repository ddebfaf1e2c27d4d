//! GRANT and REVOKE of rights on objects, and ALTER DEFAULT PRIVILEGES.

use std::collections::BTreeMap;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use crate::command::{AlterDefaultPrivileges, Grant, Granted};
use throng_catalog::acl::{self, Revoke, Update};
use throng_catalog::{AclItem, DefaultPrivilegesDef, PrivilegesDef, Relation, TableDef, builtin};
use throng_values::acl::{Kind, right};

/// A thing whose grants are changed.
struct Subject {
    kind: Kind,
    class: Oid,
    object: Oid,
    column: u16,
    name: String,
    /// A column's relation.
    relation: String,
    owner: Oid,
    /// What messages call it.
    what: &'static str,
}

impl Run<'_> {
    pub(super) fn grant(&mut self, grant: &Grant) -> Result<()> {
        for object in &grant.objects {
            match object.kind {
                Kind::Relation | Kind::Sequence => self.grant_on_relation(grant, *object)?,
                Kind::Database | Kind::Schema | Kind::Type | Kind::Function => {
                    self.grant_on(grant, *object)?;
                }
                kind => {
                    let what = format!("GRANT of privileges on a {}", kind.name());
                    return Err(Error::unsupported(what));
                }
            }
        }
        Ok(())
    }

    fn grant_on(&mut self, grant: &Grant, object: Granted) -> Result<()> {
        let missing = || Error::new(state::UNDEFINED_OBJECT, "an object to grant on is gone");
        let catalog = self.catalog();
        let (class, name, owner, items) = match object.kind {
            Kind::Database => {
                let def = catalog.database(object.oid).ok_or_else(missing)?;
                let items = catalog.database_acl(def.oid);
                (builtin::class::DATABASE, def.name.clone(), def.owner, items)
            }
            Kind::Schema => {
                let def = catalog.schema(object.oid).ok_or_else(missing)?;
                let items = catalog.schema_acl(def.oid);
                (
                    builtin::class::NAMESPACE,
                    def.name.clone(),
                    def.owner,
                    items,
                )
            }
            Kind::Function => {
                let def = catalog.routine(object.oid).ok_or_else(missing)?;
                let items = catalog.routine_acl(def);
                (
                    builtin::class::PROCEDURE,
                    def.name.clone(),
                    def.owner,
                    items,
                )
            }
            _ => {
                let def = catalog.made_type(object.oid).ok_or_else(missing)?;
                let items = catalog.type_acl(def.oid, def.owner);
                (builtin::class::TYPE, def.name.clone(), def.owner, items)
            }
        };
        let subject = Subject {
            kind: object.kind,
            class,
            object: object.oid,
            column: 0,
            name,
            relation: String::new(),
            owner,
            what: object.kind.name(),
        };
        let rights = grant.rights.unwrap_or(object.kind.all());
        let held = items.clone();
        let new = self.changed(
            grant,
            &subject,
            rights,
            grant.rights.is_none(),
            &items,
            &held,
        )?;
        self.put_acl(&subject, new);
        Ok(())
    }

    fn grant_on_relation(&mut self, grant: &Grant, object: Granted) -> Result<()> {
        let Some(relation) = self.catalog().relation(object.oid) else {
            let message = format!("relation with OID {} does not exist", object.oid);
            return Err(Error::new(state::UNDEFINED_TABLE, message));
        };
        let name = relation.name().to_owned();
        let is_sequence = matches!(relation, Relation::Sequence(_));
        let kind = relation.acl_kind();
        let mut rights = match (grant.rights, grant.columns.is_empty()) {
            (Some(rights), _) => rights,
            (None, true) => kind.all(),
            (None, false) => 0,
        };
        if is_sequence && rights & !right::SEQUENCE != 0 {
            let message =
                format!("sequence \"{name}\" only supports USAGE, SELECT, and UPDATE privileges");
            self.warning(Error::new(state::INVALID_GRANT_OPERATION, message));
            rights &= right::SEQUENCE;
        }
        if !is_sequence && rights & !right::RELATION != 0 {
            let message = "invalid privilege type USAGE for table";
            return Err(Error::new(state::INVALID_GRANT_OPERATION, message));
        }
        let mut columns: BTreeMap<u16, u32> = BTreeMap::new();
        if grant.revoke && rights & right::COLUMN != 0 {
            // Who loses a right on the whole loses it on each part.
            let stored = self
                .catalog()
                .stored_acls(builtin::class::RELATION, object.oid);
            let granted = stored.filter(|(column, _)| *column != 0);
            columns.extend(granted.map(|(column, _)| (column, rights & right::COLUMN)));
        }
        let before = self.catalog().relation_acl(&relation);
        let mut subject = Subject {
            kind,
            class: builtin::class::RELATION,
            object: object.oid,
            column: 0,
            name: name.clone(),
            relation: name.clone(),
            owner: relation.owner(self.catalog()),
            what: relation.privilege_name(),
        };
        if rights != 0 {
            let all = grant.rights.is_none();
            let new = self.changed(grant, &subject, rights, all, &before, &before)?;
            self.put_acl(&subject, new);
        }
        self.named_columns(grant, &relation, &mut columns)?;
        for (column, rights) in columns {
            let stored = self
                .catalog()
                .stored_acl(builtin::class::RELATION, object.oid, column);
            let items = stored.map_or_else(Vec::new, |def| def.items.clone());
            let both: Vec<AclItem> = before.iter().chain(&items).copied().collect();
            subject.kind = Kind::Column;
            subject.what = "column";
            subject.column = column;
            subject.name = column_name(&relation, column);
            let all = rights == right::COLUMN;
            let new = self.changed(grant, &subject, rights, all, &items, &both)?;
            self.put_acl(&subject, new);
        }
        Ok(())
    }

    /// Adds the columns named in a grant, with their rights.
    fn named_columns(
        &mut self,
        grant: &Grant,
        relation: &Relation,
        into: &mut BTreeMap<u16, u32>,
    ) -> Result<()> {
        for (rights, names) in &grant.columns {
            let mut rights = rights.unwrap_or(right::COLUMN);
            if matches!(relation, Relation::Sequence(_)) && rights & !right::SELECT != 0 {
                let message = format!(
                    "sequence \"{}\" only supports SELECT column privileges",
                    relation.name()
                );
                self.warning(Error::new(state::INVALID_GRANT_OPERATION, message));
                rights &= right::SELECT;
            }
            for name in names {
                let Some(column) = column_number(relation, name) else {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" does not exist",
                        relation.name()
                    );
                    return Err(Error::new(state::UNDEFINED_COLUMN, message));
                };
                *into.entry(column).or_default() |= rights;
            }
        }
        Ok(())
    }

    /// The grants on a subject after this one. `held`: what the grantor's options are looked for
    /// in.
    fn changed(
        &mut self,
        grant: &Grant,
        subject: &Subject,
        rights: u32,
        all: bool,
        items: &[AclItem],
        held: &[AclItem],
    ) -> Result<Vec<AclItem>> {
        let user = self.host.current_user();
        let (grantor, options) =
            acl::best_grantor(self.catalog(), user, rights, held, subject.owner);
        let rights = self.grantable(grant.revoke, subject, rights, all, grantor, options, held)?;
        let mut items = items.to_vec();
        for grantee in &grant.grantees {
            if grant.option && !grant.revoke && *grantee == Oid::NONE {
                let message = "grant options can only be granted to roles";
                return Err(Error::new(state::INVALID_GRANT_OPERATION, message));
            }
            let update = update(grant.revoke, grant.option, grant.cascade, |bits| AclItem {
                grantee: *grantee,
                grantor,
                rights: bits.of(rights),
            });
            items = acl::updated(self.catalog(), &items, update, subject.owner)?;
        }
        Ok(items)
    }

    /// What of the rights the grantor can grant or revoke, with PostgreSQL's warnings about the
    /// rest. 42501 where it has nothing to do with the object at all.
    #[allow(clippy::too_many_arguments)] // What a grant consists of.
    fn grantable(
        &mut self,
        revoke: bool,
        subject: &Subject,
        rights: u32,
        all: bool,
        grantor: Oid,
        options: u32,
        held: &[AclItem],
    ) -> Result<u32> {
        if options == 0 {
            let any = subject.kind.all() | right::options(subject.kind.all());
            if self.catalog().granted(grantor, held, subject.owner, any) == 0 {
                let message = match subject.kind {
                    Kind::Column => format!(
                        "permission denied for column \"{}\" of relation \"{}\"",
                        subject.name, subject.relation
                    ),
                    _ => format!("permission denied for {} {}", subject.what, subject.name),
                };
                return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
            }
        }
        let possible = rights & right::of_options(options);
        let of = match subject.kind {
            Kind::Column => format!(
                "column \"{}\" of relation \"{}\"",
                subject.name, subject.relation
            ),
            _ => format!("\"{}\"", subject.name),
        };
        let (code, verb) = match revoke {
            false => (state::PRIVILEGE_NOT_GRANTED, "were granted"),
            true => (state::PRIVILEGE_NOT_REVOKED, "could be revoked"),
        };
        if possible == 0 {
            let message = format!("no privileges {verb} for {of}");
            self.warning(Error::new(code, message));
        } else if !all && possible != rights {
            let message = format!("not all privileges {verb} for {of}");
            self.warning(Error::new(code, message));
        }
        Ok(possible)
    }

    fn put_acl(&mut self, subject: &Subject, items: Vec<AclItem>) {
        self.store_acl(subject.class, subject.object, subject.column, items);
    }

    /// Keeps a list of grants; a column without any has no list.
    pub(super) fn store_acl(&mut self, class: Oid, object: Oid, column: u16, items: Vec<AclItem>) {
        let old = self.catalog().stored_acl(class, object, column);
        let old = old.map(|def| def.oid);
        if column != 0 && items.is_empty() {
            old.into_iter().for_each(|oid| self.edit.delete(oid));
            return;
        }
        let oid = old.unwrap_or_else(|| self.host.next_oid());
        self.edit.put(PrivilegesDef {
            oid,
            class,
            object,
            column,
            items,
        });
    }

    /// The grants a new object is born with, where ALTER DEFAULT PRIVILEGES said something.
    pub(super) fn grant_defaults(
        &mut self,
        class: Oid,
        object: Oid,
        owner: Oid,
        schema: Oid,
        kind: Kind,
    ) {
        if let Some(items) = self.catalog().new_object_acl(owner, schema, kind) {
            self.store_acl(class, object, 0, items);
        }
    }

    /// The grants on an object, or on a column, that is going.
    pub(super) fn drop_privileges(&mut self, object: Oid, column: Option<u16>) {
        let mut gone: Vec<Oid> = Vec::new();
        for class in [
            builtin::class::RELATION,
            builtin::class::NAMESPACE,
            builtin::class::TYPE,
            builtin::class::PROCEDURE,
            builtin::class::DATABASE,
        ] {
            let stored = self.catalog().stored_acls(class, object);
            let about = stored.filter(|(n, _)| column.is_none_or(|column| column == *n));
            gone.extend(about.map(|(_, def)| def.oid));
        }
        gone.into_iter().for_each(|oid| self.edit.delete(oid));
    }

    /// An object got another owner: so do the grants that name the old one.
    pub(super) fn grants_change_owner(&mut self, class: Oid, object: Oid, old: Oid, new: Oid) {
        let stored = self.catalog().stored_acls(class, object);
        let changed: Vec<(u16, Vec<AclItem>)> = stored
            .map(|(column, def)| (column, acl::changed_owner(&def.items, old, new)))
            .collect();
        for (column, items) in changed {
            self.store_acl(class, object, column, items);
        }
    }

    pub(super) fn alter_default_privileges(
        &mut self,
        alter: &AlterDefaultPrivileges,
    ) -> Result<()> {
        let letter = match alter.kind {
            Kind::Relation => b'r',
            Kind::Sequence => b'S',
            Kind::Function => b'f',
            Kind::Type => b'T',
            _ => b'n',
        };
        let user = self.host.current_user();
        for role in &alter.roles {
            if !self.catalog().acts_as(user, *role) {
                let message = "permission denied to change default privileges";
                return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
            }
            for schema in &alter.schemas {
                self.alter_default_privileges_of(alter, *role, *schema, letter)?;
            }
        }
        Ok(())
    }

    fn alter_default_privileges_of(
        &mut self,
        alter: &AlterDefaultPrivileges,
        role: Oid,
        schema: Oid,
        letter: u8,
    ) -> Result<()> {
        let born = match schema {
            Oid::NONE => acl::defaults(alter.kind, role),
            _ => vec![],
        };
        let old = self.catalog().default_acl(role, schema, letter);
        let (oid, mut items) = match old {
            Some(def) => (Some(def.oid), def.items.clone()),
            None => (None, born.clone()),
        };
        let rights = alter.rights.unwrap_or(alter.kind.all());
        for grantee in &alter.grantees {
            if alter.option && !alter.revoke && *grantee == Oid::NONE {
                let message = "grant options can only be granted to roles";
                return Err(Error::new(state::INVALID_GRANT_OPERATION, message));
            }
            let update = update(alter.revoke, alter.option, alter.cascade, |bits| AclItem {
                grantee: *grantee,
                grantor: role,
                rights: bits.of(rights),
            });
            items = acl::updated(self.catalog(), &items, update, role)?;
        }
        if acl::same(&items, &born) {
            oid.into_iter().for_each(|oid| self.edit.delete(oid));
            return Ok(());
        }
        let oid = oid.unwrap_or_else(|| self.host.next_oid());
        self.edit.put(DefaultPrivilegesDef {
            oid,
            role,
            schema,
            kind: letter,
            items,
        });
        Ok(())
    }
}

/// Which bits of a right a change is about.
#[derive(Clone, Copy)]
enum Bits {
    Right,
    Option,
    Both,
}

impl Bits {
    fn of(self, rights: u32) -> u32 {
        match self {
            Bits::Right => rights,
            Bits::Option => right::options(rights),
            Bits::Both => rights | right::options(rights),
        }
    }
}

/// GRANT gives the right, and its option WITH GRANT OPTION; REVOKE takes both, or the option alone.
fn update(revoke: bool, option: bool, cascade: bool, item: impl Fn(Bits) -> AclItem) -> Update {
    let behavior = match cascade {
        true => Revoke::Cascade,
        false => Revoke::Restrict,
    };
    match (revoke, option) {
        (false, false) => Update::Grant(item(Bits::Right)),
        (false, true) => Update::Grant(item(Bits::Both)),
        (true, false) => Update::Revoke(item(Bits::Both), behavior),
        (true, true) => Update::Revoke(item(Bits::Option), behavior),
    }
}

fn column_number(relation: &Relation, name: &str) -> Option<u16> {
    let place = match relation {
        Relation::Table(def) => return TableDef::attnum(def, name),
        Relation::View(def) => def.columns.iter().position(|c| c.name == name),
        Relation::Virtual(def) => def.columns.iter().position(|(n, _)| *n == name),
        Relation::Sequence(_) => ["last_value", "log_cnt", "is_called"]
            .iter()
            .position(|n| *n == name),
        Relation::Index(_) => None,
    };
    place.map(|place| place as u16 + 1)
}

/// A column's name by its number.
pub(super) fn column_name(relation: &Relation, column: u16) -> String {
    let place = usize::from(column) - 1;
    let name = match relation {
        Relation::Table(def) => def.columns.get(place).map(|c| c.name.clone()),
        Relation::View(def) => def.columns.get(place).map(|c| c.name.clone()),
        Relation::Virtual(def) => def.columns.get(place).map(|(n, _)| (*n).to_owned()),
        _ => None,
    };
    name.unwrap_or_default()
}
