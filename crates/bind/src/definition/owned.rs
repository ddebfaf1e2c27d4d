//! What a role owns and is named in: what stands in the way of DROP ROLE, what REASSIGN OWNED and
//! DROP OWNED go over.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use super::grant::column_name;
use crate::command::{RoutineWord, Target, TargetKind};
use throng_catalog::acl::{self, Revoke, Update};
use throng_catalog::{AclItem, Catalog, Object, builtin};
use throng_types::lexical::quote_ident;
use throng_values::acl::right;

/// Whose an object is, and what. Indexes and constraints are their tables'.
fn owner_and_kind(object: &Object) -> Option<(Oid, TargetKind)> {
    Some(match object {
        Object::Table(d) => (d.owner, TargetKind::Table),
        Object::View(d) => (d.owner, TargetKind::View),
        Object::Sequence(d) => (d.owner, TargetKind::Sequence),
        Object::Schema(d) => (d.owner, TargetKind::Schema),
        Object::Type(d) => (d.owner, TargetKind::Type),
        Object::Database(d) => (d.owner, TargetKind::Database),
        Object::Routine(d) => (d.owner, TargetKind::Routine(RoutineWord::Routine)),
        Object::Extension(d) => (d.owner, TargetKind::Extension),
        Object::Operator(d) => (d.owner, TargetKind::Operator),
        _ => return None,
    })
}

/// Whether grants are a role's, to it or by it.
fn names(items: &[AclItem], role: Oid) -> bool {
    items.iter().any(|i| [i.grantee, i.grantor].contains(&role))
}

/// How many of the database's own objects need a role.
pub fn needs_of(catalog: &Catalog, role: Oid) -> usize {
    let needs = |object: &&Object| match object {
        object if object.is_shared() => false,
        Object::Privileges(def) => names(&def.items, role),
        Object::DefaultPrivileges(def) => def.role == role || names(&def.items, role),
        Object::Policy(def) => def.roles.contains(&role),
        object => owner_and_kind(object).is_some_and(|(owner, _)| owner == role),
    };
    catalog.objects().filter(needs).count()
}

impl Run<'_> {
    /// What a role owns, by age; sequences of columns come with their tables.
    fn owned_by(&self, role: Oid) -> Vec<Target> {
        let mut found: Vec<Target> = self
            .catalog()
            .objects()
            .filter_map(|object| {
                let (owner, kind) = owner_and_kind(object)?;
                (owner == role).then_some(Target {
                    kind,
                    oid: object.oid(),
                })
            })
            .collect();
        found.sort_unstable_by_key(|t| t.oid);
        found
    }

    /// Lines of the detail of an error about what needs a role, by the age of what they are about.
    pub(super) fn role_dependents(&self, role: Oid) -> Vec<String> {
        let owned = self.owned_by(role).into_iter();
        let mut lines: Vec<(Oid, String)> = owned
            .map(|target| {
                (
                    target.oid,
                    format!("owner of {}", self.described(target.oid)),
                )
            })
            .collect();
        lines.extend(self.grants_naming(role));
        lines.sort_by_key(|(oid, _)| *oid);
        let mut lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        let elsewhere = self.host.needed_elsewhere(role).into_iter();
        lines.extend(elsewhere.map(|(database, count)| {
            let objects = if count == 1 { "object" } else { "objects" };
            format!("{count} {objects} in database {}", quote_ident(&database))
        }));
        lines
    }

    fn described(&self, oid: Oid) -> String {
        match self.catalog().database(oid) {
            Some(def) => format!("database {}", quote_ident(&def.name)),
            None => self.describe(oid),
        }
    }

    fn grants_naming(&self, role: Oid) -> Vec<(Oid, String)> {
        let catalog = self.catalog();
        let mut lines = Vec::new();
        for def in catalog.all_privileges() {
            if !names(&def.items, role) || self.owner_of(def.object) == Some(role) {
                continue;
            }
            // An earlier version left those of a database that went.
            if def.class == builtin::class::DATABASE && catalog.database(def.object).is_none() {
                continue;
            }
            let mut of = self.described(def.object);
            if let (1.., Some(relation)) = (def.column, catalog.relation(def.object)) {
                let column = quote_ident(&column_name(&relation, def.column));
                of = format!("column {column} of {of}");
            }
            lines.push((def.object, format!("privileges for {of}")));
        }
        for def in catalog.all_default_privileges() {
            let what = match def.kind {
                b'r' => "relations",
                b'S' => "sequences",
                b'f' => "functions",
                b'T' => "types",
                _ => "schemas",
            };
            let owner = catalog.role(def.role).map_or("", |r| &r.name);
            let mut of = format!("default privileges on new {what} belonging to role {owner}");
            if let Some(schema) = catalog.schema(def.schema) {
                of = format!("{of} in schema {}", quote_ident(&schema.name));
            }
            if def.role == role {
                lines.push((def.oid, format!("owner of {of}")));
            } else if names(&def.items, role) {
                lines.push((def.oid, format!("privileges for {of}")));
            }
        }
        for def in catalog.policies() {
            if def.roles.contains(&role) {
                lines.push((def.oid, format!("target of {}", self.describe(def.oid))));
            }
        }
        for def in catalog.memberships() {
            if def.grantor == role {
                let name = |role: Oid| catalog.role(role).map_or("", |r| &r.name);
                let (member, group) = (name(def.member), name(def.role));
                let line = format!("privileges for membership of role {member} in role {group}");
                lines.push((def.oid, line));
            }
        }
        lines
    }

    pub(super) fn owner_of(&self, object: Oid) -> Option<Oid> {
        let catalog = self.catalog();
        match catalog.object(object) {
            Some(Object::Schema(d)) => Some(d.owner),
            Some(Object::Database(d)) => Some(d.owner),
            Some(Object::Type(d)) => Some(d.owner),
            Some(Object::Routine(d)) => Some(d.owner),
            Some(Object::Extension(d)) => Some(d.owner),
            Some(Object::Operator(d)) => Some(d.owner),
            _ => catalog.relation(object).map(|r| r.owner(catalog)),
        }
    }

    fn acts_for(&self, role: Oid, verb: &str) -> Result<()> {
        let user = self.host.current_user();
        if self.catalog().acts_as(user, role) {
            return Ok(());
        }
        let name = self.role(role)?.name;
        let message = format!("permission denied to {verb} objects");
        let whose = match verb {
            "drop" => format!(
                "Only roles with privileges of role \"{name}\" may drop objects owned by it."
            ),
            _ => format!(
                "Only roles with privileges of role \"{name}\" may reassign objects owned by it."
            ),
        };
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).detail(whose))
    }

    fn not_the_systems(&self, role: Oid, verb: &str) -> Result<()> {
        if !builtin::is_system_role(role) {
            return Ok(());
        }
        let message = format!(
            "cannot {verb} {} because they are required by the database system",
            match verb {
                "drop" => format!("objects owned by role {}", self.role(role)?.name),
                _ => format!(
                    "ownership of objects owned by role {}",
                    self.role(role)?.name
                ),
            }
        );
        Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message))
    }

    pub(super) fn reassign_owned(&mut self, roles: &[Oid], to: Oid) -> Result<()> {
        for role in roles {
            self.acts_for(*role, "reassign")?;
        }
        let user = self.host.current_user();
        if !self.catalog().acts_as(user, to) {
            let name = self.role(to)?.name;
            let message = "permission denied to reassign objects";
            let detail = format!(
                "Only roles with privileges of role \"{name}\" may reassign objects to it."
            );
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail));
        }
        for role in roles {
            self.not_the_systems(*role, "reassign")?;
            for target in self.owned_by(*role) {
                let of_column = self
                    .catalog()
                    .sequence(target.oid)
                    .is_some_and(|s| s.owned_by.is_some());
                if of_column {
                    continue;
                }
                if target.kind == TargetKind::Table {
                    self.touch(target.oid);
                }
                self.set_owner(target, to)?;
            }
        }
        Ok(())
    }

    pub(super) fn drop_owned(&mut self, roles: &[Oid], cascade: bool) -> Result<()> {
        for role in roles {
            self.acts_for(*role, "drop")?;
        }
        let mut targets = Vec::new();
        for role in roles {
            self.not_the_systems(*role, "drop")?;
            self.forget_grants(*role)?;
            self.forget_policy_role(*role);
            targets.extend(
                self.owned_by(*role)
                    .into_iter()
                    .filter(|t| t.kind != TargetKind::Database),
            );
        }
        // What goes with something else is no target of its own.
        let with_another = |t: &Target| {
            let sequence = self.catalog().sequence(t.oid);
            sequence.is_some_and(|s| {
                s.owned_by
                    .is_some_and(|(table, _)| targets.iter().any(|other| other.oid == table))
            })
        };
        let targets: Vec<Target> = targets
            .iter()
            .filter(|t| !with_another(t))
            .copied()
            .collect();
        if targets.is_empty() {
            return Ok(());
        }
        for target in &targets {
            if self.catalog().table(target.oid).is_some() {
                self.touch(target.oid);
            }
        }
        self.drop_targets(&targets, cascade)
    }

    /// What a role was granted, and what it granted as a member of others.
    fn forget_grants(&mut self, role: Oid) -> Result<()> {
        let all = self.catalog().all_privileges().into_iter();
        let about: Vec<_> = all
            .filter(|def| def.items.iter().any(|i| i.grantee == role))
            .cloned()
            .collect();
        let everything = right::ALL | right::options(right::ALL);
        for def in about {
            let owner = self.owner_of(def.object).unwrap_or(Oid::NONE);
            if owner == role {
                continue;
            }
            let mut items = def.items.clone();
            for item in def.items.iter().filter(|i| i.grantee == role) {
                let gone = AclItem {
                    rights: everything,
                    ..*item
                };
                let update = Update::Revoke(gone, Revoke::Cascade);
                items = acl::updated(self.catalog(), &items, update, owner)?;
            }
            self.store_acl(def.class, def.object, def.column, items);
        }
        let defaults = self.catalog().all_default_privileges().to_vec();
        for def in defaults {
            if def.role == role {
                self.edit.delete(def.oid);
            } else if def.items.iter().any(|i| i.grantee == role) {
                let mut def = (*def).clone();
                def.items.retain(|i| i.grantee != role);
                self.edit.put(def);
            }
        }
        let granted = self.catalog().memberships().into_iter();
        let granted: Vec<Oid> = granted
            .filter(|m| m.grantor == role)
            .map(|m| m.oid)
            .collect();
        granted.into_iter().for_each(|oid| self.edit.delete(oid));
        Ok(())
    }
}
