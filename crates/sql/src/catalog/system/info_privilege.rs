//! `information_schema` on roles and on who may do what. Rights are owners' and cannot be granted;
//! everybody may read the system's relations.

use throng_types::{Datum, Oid};

use super::info_relation::{catalog_name, own_tables, schema_name, yes};
use super::role::held_roles;
use super::view::role_name;
use super::{Rows, SystemState, all, role, row, types};
use crate::catalog::{Catalog, builtin};

/// Memberships of the roles picked: member, role.
fn memberships(catalog: &Catalog, members: &[Oid]) -> Rows {
    let roles = catalog
        .roles()
        .into_iter()
        .filter(|r| members.contains(&r.oid));
    roles
        .flat_map(|member| {
            let groups = member.member_of.iter();
            groups.map(|g| row![member.name.as_str(), role_name(catalog, *g), "NO"])
        })
        .collect()
}

/// The roles whose rights the reader has; a superuser has everybody's.
fn enabled(catalog: &Catalog, state: &dyn SystemState) -> Vec<Oid> {
    let reader = state.current_user();
    match catalog.role(reader).is_some_and(|r| r.superuser) {
        true => catalog.roles().into_iter().map(|r| r.oid).collect(),
        false => held_roles(catalog, reader),
    }
}

pub(super) fn applicable_roles(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    memberships(catalog, &enabled(catalog, state))
}

pub(super) fn enabled_roles(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let roles = enabled(catalog, state).into_iter();
    roles.map(|r| vec![role_name(catalog, r)]).collect()
}

const TABLE_RIGHTS: [&str; 7] = [
    "INSERT",
    "SELECT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
];
const COLUMN_RIGHTS: [&str; 4] = ["INSERT", "SELECT", "UPDATE", "REFERENCES"];

/// A relation with the column names a grant on it covers.
struct Relation<'a> {
    owner: Oid,
    schema: Oid,
    name: &'a str,
    columns: Vec<&'a str>,
    public: bool,
}

/// The relations the reader may use.
fn relations<'a>(catalog: &'a Catalog, state: &dyn SystemState) -> Vec<Relation<'a>> {
    let system = all().iter().map(|t| Relation {
        owner: builtin::SUPERUSER,
        schema: t.schema,
        name: t.name,
        columns: t.columns.iter().map(|(name, _)| *name).collect(),
        // Passwords are not for everybody.
        public: !matches!(t.name, "pg_authid" | "pg_shadow"),
    });
    let tables = own_tables(catalog, state).map(|t| Relation {
        owner: t.owner,
        schema: t.schema,
        name: &t.name,
        columns: t.live_columns().map(|(_, c)| c.name.as_str()).collect(),
        public: false,
    });
    system.chain(tables).collect()
}

/// Grantees of a relation with their rights out of `rights`: grantee, right, may pass it on.
fn grants(
    catalog: &Catalog,
    state: &dyn SystemState,
    relation: &Relation<'_>,
    rights: &[&'static str],
) -> Vec<(Datum, &'static str, bool)> {
    let mut found = Vec::new();
    if role::owns(catalog, state.current_user(), relation.owner) {
        let owner = role_name(catalog, relation.owner);
        found.extend(rights.iter().map(|right| (owner.clone(), *right, true)));
    }
    if relation.public {
        found.push(("PUBLIC".into(), "SELECT", false));
    }
    found
}

pub(super) fn table_privileges(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for relation in relations(catalog, state) {
        for (grantee, right, passes_on) in grants(catalog, state, &relation, &TABLE_RIGHTS) {
            rows.push(row![
                role_name(catalog, relation.owner),
                grantee,
                catalog_name(catalog),
                schema_name(catalog, relation.schema),
                relation.name,
                right,
                yes(passes_on),
                yes(right == "SELECT"),
            ]);
        }
    }
    rows
}

pub(super) fn role_table_grants(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    table_privileges(catalog, state)
}

pub(super) fn column_privileges(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for relation in relations(catalog, state) {
        for (grantee, right, passes_on) in grants(catalog, state, &relation, &COLUMN_RIGHTS) {
            for column in &relation.columns {
                rows.push(row![
                    role_name(catalog, relation.owner),
                    grantee.clone(),
                    catalog_name(catalog),
                    schema_name(catalog, relation.schema),
                    relation.name,
                    *column,
                    right,
                    yes(passes_on),
                ]);
            }
        }
    }
    rows
}

pub(super) fn role_column_grants(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    column_privileges(catalog, state)
}

/// Who may use sequences, and collations, which everybody may.
pub(super) fn usage_privileges(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let reader = state.current_user();
    let database = catalog_name(catalog);
    let collations = types::COLLATIONS.iter().map(|(_, name)| {
        row![
            role_name(catalog, builtin::SUPERUSER),
            "PUBLIC",
            database.clone(),
            "pg_catalog",
            *name,
            "COLLATION",
            "USAGE",
            "NO",
        ]
    });
    let sequences = catalog
        .sequences()
        .into_iter()
        .filter(|s| role::owns(catalog, reader, s.owner));
    let sequences = sequences.map(|s| {
        row![
            role_name(catalog, s.owner),
            role_name(catalog, s.owner),
            database.clone(),
            schema_name(catalog, s.schema),
            s.name.as_str(),
            "SEQUENCE",
            "USAGE",
            "YES",
        ]
    });
    collations.chain(sequences).collect()
}

pub(super) fn role_usage_grants(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    usage_privileges(catalog, state)
}
