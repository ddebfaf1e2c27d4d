//! Roles and databases: `pg_authid` and the views over it, `pg_auth_members`, `pg_database`,
//! `pg_tablespace`, `pg_db_role_setting`.

use throng_types::{Array, Datum, Oid, oid};

use super::{Rows, SystemState, relation::text_array, row};
use crate::{Catalog, RoleDef, builtin};

fn settings(settings: &[(String, String)]) -> Datum {
    text_array(
        settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect(),
    )
}

/// When the role's password ends to be good.
fn valid_until(role: &RoleDef, state: &dyn SystemState) -> Datum {
    let moment = role
        .valid_until
        .as_deref()
        .and_then(|text| state.moment(text));
    moment.map_or(Datum::Null, Datum::TimestampTz)
}

/// The verifier, for superusers' eyes only.
fn password(role: &RoleDef, catalog: &Catalog, state: &dyn SystemState) -> Datum {
    match catalog.role(state.current_user()) {
        Some(reader) if reader.superuser => role.password.as_deref().into(),
        _ => Datum::Null,
    }
}

pub(super) fn pg_authid(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let roles = catalog.roles().into_iter();
    roles
        .map(|r| {
            row![
                r.oid,
                r.name.as_str(),
                r.superuser,
                r.inherit,
                r.create_role,
                r.create_db,
                r.login,
                r.replication,
                r.bypass_rls,
                r.connection_limit,
                password(r, catalog, state),
                valid_until(r, state),
            ]
        })
        .collect()
}

pub(super) fn pg_roles(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let roles = catalog.roles().into_iter();
    roles
        .map(|r| {
            row![
                r.name.as_str(),
                r.superuser,
                r.inherit,
                r.create_role,
                r.create_db,
                r.login,
                r.replication,
                r.connection_limit,
                "********",
                valid_until(r, state),
                r.bypass_rls,
                settings(&r.settings),
                r.oid,
            ]
        })
        .collect()
}

/// Rows of `pg_user` and `pg_shadow`, which differ in the password.
fn users(catalog: &Catalog, state: &dyn SystemState, password: impl Fn(&RoleDef) -> Datum) -> Rows {
    let users = catalog.roles().into_iter().filter(|r| r.login);
    users
        .map(|r| {
            row![
                r.name.as_str(),
                r.oid,
                r.create_db,
                r.superuser,
                r.replication,
                r.bypass_rls,
                password(r),
                valid_until(r, state),
                settings(&r.settings),
            ]
        })
        .collect()
}

pub(super) fn pg_user(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    users(catalog, state, |_| "********".into())
}

pub(super) fn pg_shadow(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    users(catalog, state, |r| password(r, catalog, state))
}

pub(super) fn pg_group(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let roles = catalog.roles();
    let groups = roles.iter().filter(|r| !r.login);
    groups
        .map(|group| {
            let members = catalog.memberships().into_iter();
            let members = members.filter(|m| m.role == group.oid);
            let members = members.map(|m| m.member.into()).collect();
            row![
                group.name.as_str(),
                group.oid,
                Datum::array(Array::from_items(oid::OID, members)),
            ]
        })
        .collect()
}

pub(super) fn pg_auth_members(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let all = catalog.memberships().into_iter();
    all.map(|m| {
        row![
            m.oid, m.role, m.member, m.grantor, m.admin, m.inherit, m.set
        ]
    })
    .collect()
}

pub(super) fn pg_database(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    const UTF8: i32 = 6;
    let databases = catalog.databases().into_iter();
    databases
        .map(|d| {
            row![
                d.oid,
                d.name.as_str(),
                d.owner,
                UTF8,
                Datum::Char(b'c'),
                d.is_template,
                d.allow_connections,
                false,
                d.connection_limit,
                Datum::Oid(state.oldest_xid() as u32),
                // Multixacts: the first is still to come.
                Datum::Oid(1),
                builtin::DEFAULT_TABLESPACE,
                "C.UTF-8",
                "C.UTF-8",
                Datum::Null,
                Datum::Null,
                Datum::Null,
                super::relation::privileges(catalog, builtin::class::DATABASE, d.oid, 0),
            ]
        })
        .collect()
}

pub(super) fn pg_tablespace(_: &Catalog, _: &dyn SystemState) -> Rows {
    let spaces = [
        (builtin::DEFAULT_TABLESPACE, "pg_default"),
        (builtin::GLOBAL_TABLESPACE, "pg_global"),
    ];
    let rows = spaces
        .into_iter()
        .map(|(oid, name)| row![oid, name, builtin::SUPERUSER, Datum::Null, Datum::Null]);
    rows.collect()
}

pub(super) fn pg_db_role_setting(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let databases = catalog
        .databases()
        .into_iter()
        .map(|d| (d.oid, Oid::NONE, &d.settings));
    let roles = catalog
        .roles()
        .into_iter()
        .map(|r| (Oid::NONE, r.oid, &r.settings));
    let both = catalog.databases().into_iter().flat_map(|d| {
        let own = d.role_settings.iter();
        own.map(|own| (d.oid, own.role, &own.settings))
    });
    let first = catalog.role(builtin::SUPERUSER);
    let everyones = first.map(|r| (Oid::NONE, Oid::NONE, &r.everyones_settings));
    let set = databases.chain(roles).chain(both).chain(everyones);
    let set = set.filter(|(.., list)| !list.is_empty());
    set.map(|(database, role, list)| row![database, role, settings(list)])
        .collect()
}

/// ALTER DEFAULT PRIVILEGES.
pub(super) fn pg_default_acl(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let all = catalog.all_default_privileges().iter();
    all.map(|d| {
        row![
            d.oid,
            d.role,
            d.schema,
            Datum::Char(d.kind),
            crate::acl::datum(catalog, Some(&d.items)),
        ]
    })
    .collect()
}
