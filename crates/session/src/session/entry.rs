//! Who may begin a session, and what it begins with.

use throng_catalog::{Catalog, builtin};
use throng_types::error::state;
use throng_types::{Error, Result};
use throng_values::acl::right;

use super::{Login, Role};
use crate::engine::Engine;

pub(super) fn no_database(name: &str) -> Error {
    let message = format!("database \"{name}\" does not exist");
    Error::new(state::INVALID_CATALOG_NAME, message)
}

/// Whether a role may connect to a catalog's database.
pub(super) fn may_enter(catalog: &Catalog, role: &Role) -> Result<()> {
    let Some(def) = catalog.current_database() else {
        return Ok(());
    };
    if !def.allow_connections {
        let message = format!(
            "database \"{}\" is not currently accepting connections",
            def.name
        );
        return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    if catalog.database_rights(role.oid, right::CONNECT) == 0 {
        let message = format!("permission denied for database \"{}\"", def.name);
        return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message)
            .detail("User does not have CONNECT privilege."));
    }
    Ok(())
}

/// 53300 where a role or a database has more sessions than it may have, the one that begins among
/// them.
pub(super) fn must_be_few_enough(engine: &Engine, catalog: &Catalog, role: &Role) -> Result<()> {
    if role.superuser {
        return Ok(());
    }
    let too_many = |of: &str, name: &str| {
        let message = format!("too many connections for {of} \"{name}\"");
        Err(Error::new(state::TOO_MANY_CONNECTIONS, message))
    };
    let of_role = catalog
        .role(role.oid)
        .map_or(-1, |def| def.connection_limit);
    if usize::try_from(of_role).is_ok_and(|limit| engine.clients_as(role.oid) > limit) {
        return too_many("role", &role.name);
    }
    let Some(def) = catalog.current_database() else {
        return Ok(());
    };
    let of_database = usize::try_from(def.connection_limit);
    if of_database.is_ok_and(|limit| engine.clients_of(&def.name).len() > limit) {
        return too_many("database", &def.name);
    }
    Ok(())
}

/// A setting that a session starts with.
pub(super) struct OwnSetting {
    pub name: String,
    pub value: String,
    /// Kept for the database or the role, and not asked for by the client.
    pub stored: bool,
}

/// Settings a session starts with beside the server's, later ones winning: everybody's, the
/// database's, the role's, the role's in the database, the client's.
pub(super) fn role_settings(catalog: &Catalog, role: &Role, login: &Login) -> Vec<OwnSetting> {
    let own = |stored| {
        move |(name, value): &(String, String)| OwnSetting {
            name: name.clone(),
            value: value.clone(),
            stored,
        }
    };
    let mut settings = Vec::new();
    let database = catalog.database_by_name(&login.database);
    if let Some(first) = catalog.role(builtin::SUPERUSER) {
        settings.extend(first.everyones_settings.iter().map(own(true)));
    }
    if let Some(database) = database {
        settings.extend(database.settings.iter().map(own(true)));
    }
    if let Some(role) = catalog.role(role.oid) {
        settings.extend(role.settings.iter().map(own(true)));
    }
    if let Some(database) = database {
        let both = database.role_settings.iter();
        let both = both.filter(|both| both.role == role.oid);
        settings.extend(both.flat_map(|both| both.settings.iter().map(own(true))));
    }
    let name = (
        "application_name".to_owned(),
        login.application_name.clone(),
    );
    settings.push(own(false)(&name));
    settings.extend(login.options.iter().map(own(false)));
    settings
}
