//! Roles.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use crate::command::RoleOptions;
use throng_catalog::{DatabaseDef, RoleDef, RoleSettings, builtin};
use throng_syntax::vocabulary::SettingsOf;

impl Run<'_> {
    pub(super) fn create_role(&mut self, name: &str, changes: &RoleOptions) -> Result<()> {
        if self.catalog().role_by_name(name).is_some() {
            let message = format!("role \"{name}\" already exists");
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        let oid = self.host.next_oid();
        self.edit.put(RoleDef::new(oid, name));
        self.alter_role(oid, changes)?;
        self.join_new_role(oid, changes)
    }

    pub(super) fn role(&self, oid: Oid) -> Result<RoleDef> {
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
            Some(Some(password)) => def.password = self.secret(password)?,
        }
        if let Some(until) = &changes.valid_until {
            def.valid_until = Some(until.clone());
        }
        if def.password.is_some() {
            self.warn_of_first_password(oid);
        }
        self.edit.put(def);
        Ok(())
    }

    /// From the first password on, passwords are asked for: roles without one are told of.
    fn warn_of_first_password(&mut self, of: Oid) {
        let roles = self.catalog().roles();
        if roles.iter().any(|role| role.password.is_some()) {
            return;
        }
        let without = roles.iter().filter(|role| role.login && role.oid != of);
        let names: Vec<_> = without.map(|role| format!("\"{}\"", role.name)).collect();
        let Some(first) = names.first() else { return };
        let message = "roles without a password can no longer log in over TCP/IP";
        let hint = format!(
            "Run ALTER ROLE {first} PASSWORD '...', in this session or through the Unix socket as the operating-system user that runs the server."
        );
        self.warning(
            Error::new(state::WARNING, message)
                .detail(format!("There are: {}.", names.join(", ")))
                .hint(hint),
        );
    }

    pub(super) fn alter_role_set(
        &mut self,
        role: SettingsOf<Oid>,
        database: Option<Oid>,
        name: Option<&str>,
        value: Option<&str>,
    ) -> Result<()> {
        let change = |settings: &mut Vec<(String, String)>| match name {
            None => settings.clear(),
            Some(name) => {
                let known = settings.iter().position(|(n, _)| n == name);
                match (known, value) {
                    (Some(at), Some(value)) => settings[at].1 = value.to_string(),
                    (None, Some(value)) => settings.push((name.to_string(), value.to_string())),
                    (Some(at), None) => {
                        settings.remove(at);
                    }
                    (None, None) => {}
                }
            }
        };
        match (role, database) {
            (SettingsOf::Role(role), Some(database)) => {
                let mut def = self.database(database)?;
                let list = &mut def.role_settings;
                let at = list.iter().position(|own| own.role == role);
                let mut own = match at {
                    Some(at) => list.remove(at),
                    None => RoleSettings {
                        role,
                        settings: vec![],
                    },
                };
                change(&mut own.settings);
                if !own.settings.is_empty() {
                    list.push(own);
                }
                self.edit.put(def);
            }
            (SettingsOf::Role(role), None) => {
                let mut def = self.role(role)?;
                change(&mut def.settings);
                self.edit.put(def);
            }
            (_, Some(database)) => {
                let mut def = self.database(database)?;
                change(&mut def.settings);
                self.edit.put(def);
            }
            (SettingsOf::Everyone | SettingsOf::Database, None) => {
                // They are kept with the role that is always there.
                let mut def = self.role(builtin::SUPERUSER)?;
                change(&mut def.everyones_settings);
                self.edit.put(def);
            }
        }
        Ok(())
    }

    /// What databases keep for a role goes with it.
    fn drop_role_settings(&mut self, role: Oid) {
        let databases = self.catalog().databases().into_iter();
        let with = databases.filter(|d| d.role_settings.iter().any(|own| own.role == role));
        let changed: Vec<DatabaseDef> = with.map(|d| (**d).clone()).collect();
        for mut def in changed {
            def.role_settings.retain(|own| own.role != role);
            self.edit.put(def);
        }
    }

    pub(super) fn drop_roles(&mut self, roles: &[Oid]) -> Result<()> {
        let mut dropped = Vec::with_capacity(roles.len());
        for oid in roles {
            let def = self.role(*oid)?;
            if *oid == self.host.current_user() {
                return Err(Error::new(
                    state::OBJECT_IN_USE,
                    "current user cannot be dropped",
                ));
            }
            if builtin::is_system_role(*oid) {
                let message = format!(
                    "cannot drop role {} because it is required by the database system",
                    def.name
                );
                return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            self.leave_memberships(*oid);
            dropped.push(def);
        }
        for def in dropped {
            let lines = self.role_dependents(def.oid);
            if !lines.is_empty() {
                let message = format!(
                    "role \"{}\" cannot be dropped because some objects depend on it",
                    def.name
                );
                return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .detail(lines.join("\n")));
            }
            self.drop_comments(def.oid, None);
            self.drop_role_settings(def.oid);
            self.edit.delete(def.oid);
        }
        Ok(())
    }
}
