//! Roles.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use crate::catalog::{DatabaseDef, Object, RoleDef, builtin};
use crate::command::RoleOptions;

impl Run<'_> {
    pub(super) fn create_role(&mut self, name: &str, changes: &RoleOptions) -> Result<()> {
        if self.catalog().role_by_name(name).is_some() {
            let message = format!("role \"{name}\" already exists");
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        let oid = self.host.next_oid();
        self.edit.put(RoleDef::new(oid, name));
        self.alter_role(oid, changes)
    }

    fn role(&self, oid: Oid) -> Result<RoleDef> {
        self.catalog()
            .role(oid)
            .map(|d| (**d).clone())
            .ok_or_else(|| {
                Error::new(
                    state::UNDEFINED_OBJECT,
                    format!("role with OID {oid} does not exist"),
                )
            })
    }

    pub(super) fn alter_role(&mut self, oid: Oid, changes: &RoleOptions) -> Result<()> {
        let mut def = self.role(oid)?;
        if oid == builtin::SUPERUSER && changes.superuser == Some(false) {
            let message = "permission denied to alter role";
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message)
                .detail("The bootstrap superuser must have the SUPERUSER attribute."));
        }
        def.superuser = changes.superuser.unwrap_or(def.superuser);
        def.inherit = changes.inherit.unwrap_or(def.inherit);
        def.create_role = changes.create_role.unwrap_or(def.create_role);
        def.create_db = changes.create_db.unwrap_or(def.create_db);
        def.login = changes.login.unwrap_or(def.login);
        def.replication = changes.replication.unwrap_or(def.replication);
        def.bypass_rls = changes.bypass_rls.unwrap_or(def.bypass_rls);
        def.connection_limit = changes.connection_limit.unwrap_or(def.connection_limit);
        match &changes.password {
            None => {}
            Some(None) => def.password = None,
            Some(Some(password)) if password.is_empty() => {
                let message = "empty string is not a valid password, clearing password";
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                def.password = None;
            }
            Some(Some(password)) => def.password = Some(self.host.password_verifier(password)?),
        }
        if let Some(until) = &changes.valid_until {
            def.valid_until = Some(until.clone());
        }
        self.edit.put(def);
        self.grant_role(&changes.in_roles, &[oid], false)?;
        self.grant_role(&[oid], &changes.members, false)
    }

    pub(super) fn alter_role_set(
        &mut self,
        role: Option<Oid>,
        name: Option<&str>,
        value: Option<&str>,
    ) -> Result<()> {
        let change = |settings: &mut Vec<(String, String)>| match name {
            None => settings.clear(),
            Some(name) => {
                settings.retain(|(n, _)| n != name);
                if let Some(value) = value {
                    settings.push((name.to_string(), value.to_string()));
                }
            }
        };
        match role {
            Some(role) => {
                let mut def = self.role(role)?;
                change(&mut def.settings);
                self.edit.put(def);
            }
            None => {
                let Some(database) = self.catalog().database(builtin::DATABASE) else {
                    return Ok(());
                };
                let mut def: DatabaseDef = (**database).clone();
                change(&mut def.settings);
                self.edit.put(def);
            }
        }
        Ok(())
    }

    pub(super) fn drop_roles(&mut self, roles: &[Oid]) -> Result<()> {
        for oid in roles {
            let def = self.role(*oid)?;
            if *oid == self.host.current_user() {
                return Err(Error::new(
                    state::OBJECT_IN_USE,
                    "current user cannot be dropped",
                ));
            }
            if *oid == builtin::SUPERUSER {
                let message = format!(
                    "cannot drop role {} because it is required by the database system",
                    def.name
                );
                return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            let mut owned: Vec<Oid> = self
                .catalog()
                .objects()
                .filter(|o| match o {
                    Object::Table(d) => d.owner == *oid,
                    Object::View(d) => d.owner == *oid,
                    Object::Sequence(d) => d.owner == *oid,
                    Object::Schema(d) => d.owner == *oid,
                    Object::Database(d) => d.owner == *oid,
                    _ => false,
                })
                .map(|o| o.oid())
                .collect();
            if !owned.is_empty() {
                owned.sort_unstable();
                let message = format!(
                    "role \"{}\" cannot be dropped because some objects depend on it",
                    def.name
                );
                let lines: Vec<String> = owned
                    .iter()
                    .map(|o| format!("owner of {}", self.describe(*o)))
                    .collect();
                return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .detail(lines.join("\n")));
            }
            let members: Vec<RoleDef> = self
                .catalog()
                .roles()
                .into_iter()
                .filter(|r| r.member_of.contains(oid))
                .map(|r| (**r).clone())
                .collect();
            for mut member in members {
                member.member_of.retain(|r| r != oid);
                self.edit.put(member);
            }
            self.drop_comments(*oid, None);
            self.edit.delete(*oid);
        }
        Ok(())
    }

    pub(super) fn grant_role(
        &mut self,
        roles: &[Oid],
        members: &[Oid],
        revoke: bool,
    ) -> Result<()> {
        for role in roles {
            for member in members {
                let mut def = self.role(*member)?;
                if revoke {
                    def.member_of.retain(|r| r != role);
                } else if self.is_member(*role, *member) {
                    let message = format!(
                        "role \"{}\" is a member of role \"{}\"",
                        self.role(*role)?.name,
                        def.name
                    );
                    return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
                } else if !def.member_of.contains(role) {
                    def.member_of.push(*role);
                }
                self.edit.put(def);
            }
        }
        Ok(())
    }

    /// Whether `role` is `of`, or belongs to it over any number of steps.
    fn is_member(&self, role: Oid, of: Oid) -> bool {
        let mut seen = vec![role];
        let mut next = 0;
        while next < seen.len() {
            if seen[next] == of {
                return true;
            }
            let groups = self.catalog().role(seen[next]).map(|r| r.member_of.clone());
            for group in groups.unwrap_or_default() {
                if !seen.contains(&group) {
                    seen.push(group);
                }
            }
            next += 1;
        }
        false
    }
}
