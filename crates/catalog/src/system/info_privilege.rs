//! `information_schema` on roles and on who may do what: grants that the reader made or has.

use throng_types::{Datum, Oid};

use super::info_relation::{catalog_name, schema_name, yes};
use super::view::role_name;
use super::{Rows, SystemState, all, row, types};
use crate::acl;
use crate::{AclItem, Catalog, Relation, Through, builtin};
use throng_values::acl::right;

/// Memberships of the roles picked: member, role, whether it may be granted on.
fn memberships(catalog: &Catalog, members: &[Oid]) -> Rows {
    let all = catalog.memberships().into_iter();
    all.filter(|m| members.contains(&m.member))
        .map(|m| {
            row![
                role_name(catalog, m.member),
                role_name(catalog, m.role),
                yes(m.admin)
            ]
        })
        .collect()
}

/// The roles whose rights the reader has; a superuser has everybody's.
fn enabled(catalog: &Catalog, state: &dyn SystemState) -> Vec<Oid> {
    let reader = state.current_user();
    match catalog.is_superuser(reader) {
        true => catalog.roles().into_iter().map(|r| r.oid).collect(),
        false => catalog.held_roles(reader, Through::Inherit),
    }
}

pub(super) fn applicable_roles(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    memberships(catalog, &enabled(catalog, state))
}

pub(super) fn enabled_roles(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let roles = enabled(catalog, state).into_iter();
    roles.map(|r| vec![role_name(catalog, r)]).collect()
}

/// A relation with its columns by number.
struct Columns {
    relation: Relation,
    columns: Vec<(u16, String)>,
}

fn relations(catalog: &Catalog) -> Vec<Columns> {
    let numbered =
        |names: &mut dyn Iterator<Item = String>| names.zip(1u16..).map(|(n, i)| (i, n)).collect();
    let system = all().iter().map(|t| Columns {
        relation: Relation::Virtual(t),
        columns: numbered(&mut t.columns.iter().map(|(name, _)| (*name).to_owned())),
    });
    let plain = catalog.tables().into_iter();
    let tables = plain.filter(|t| !t.is_materialized()).map(|t| Columns {
        relation: Relation::Table(t.clone()),
        columns: t.live_columns().map(|(n, c)| (n, c.name.clone())).collect(),
    });
    let views = catalog.views().into_iter().map(|v| Columns {
        relation: Relation::View(v.clone()),
        columns: numbered(&mut v.columns.iter().map(|c| c.name.clone())),
    });
    system.chain(tables).chain(views).collect()
}

/// A right that someone has from someone.
struct Right {
    grantor: Oid,
    grantee: Oid,
    name: &'static str,
    grantable: bool,
}

/// The rights among `of` in a list of grants which concern one of `roles`. An owner's own count as
/// grantable.
fn rights(items: &[AclItem], owner: Oid, of: u32, roles: &[Oid]) -> Vec<Right> {
    let mut found = Vec::new();
    for item in items {
        let seen = [item.grantor, item.grantee];
        if item.grantee != Oid::NONE && !seen.iter().any(|role| roles.contains(role)) {
            continue;
        }
        for (name, _, bit) in right::NAMES {
            if item.rights & of & bit == 0 {
                continue;
            }
            found.push(Right {
                grantor: item.grantor,
                grantee: item.grantee,
                name,
                grantable: item.grantee == owner || item.rights & right::options(bit) != 0,
            });
        }
    }
    found
}

fn grantee_name(catalog: &Catalog, grantee: Oid) -> Datum {
    match grantee {
        Oid::NONE => "PUBLIC".into(),
        role => role_name(catalog, role),
    }
}

/// Those that the standard knows.
const TABLE_RIGHTS: u32 = right::RELATION & !right::MAINTAIN;

fn table_grants(catalog: &Catalog, roles: &[Oid], public: bool) -> Rows {
    let mut rows = Rows::new();
    for Columns { relation, .. } in relations(catalog) {
        let items = catalog.relation_acl(&relation);
        for r in rights(&items, relation.owner(catalog), TABLE_RIGHTS, roles) {
            if r.grantee == Oid::NONE && !public {
                continue;
            }
            rows.push(row![
                role_name(catalog, r.grantor),
                grantee_name(catalog, r.grantee),
                catalog_name(catalog),
                schema_name(catalog, relation.schema()),
                relation.name(),
                r.name,
                yes(r.grantable),
                yes(r.name == "SELECT"),
            ]);
        }
    }
    rows
}

pub(super) fn table_privileges(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    table_grants(catalog, &enabled(catalog, state), true)
}

pub(super) fn role_table_grants(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    table_grants(catalog, &enabled(catalog, state), false)
}

fn column_grants(catalog: &Catalog, roles: &[Oid], public: bool) -> Rows {
    let mut rows = Rows::new();
    for Columns { relation, columns } in relations(catalog) {
        let whole = catalog.relation_acl(&relation);
        let owner = relation.owner(catalog);
        for (number, column) in columns {
            let own = catalog.stored_acl(builtin::class::RELATION, relation.oid(), number);
            let own = own.map_or(&[][..], |def| &def.items);
            let items = acl::merged(&whole, own);
            for r in rights(&items, owner, right::COLUMN, roles) {
                if r.grantee == Oid::NONE && !public {
                    continue;
                }
                rows.push(row![
                    role_name(catalog, r.grantor),
                    grantee_name(catalog, r.grantee),
                    catalog_name(catalog),
                    schema_name(catalog, relation.schema()),
                    relation.name(),
                    column.as_str(),
                    r.name,
                    yes(r.grantable),
                ]);
            }
        }
    }
    rows
}

pub(super) fn column_privileges(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    column_grants(catalog, &enabled(catalog, state), true)
}

pub(super) fn role_column_grants(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    column_grants(catalog, &enabled(catalog, state), false)
}

/// Who may use sequences, and collations, which everybody may.
pub(super) fn usage_privileges(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let roles = enabled(catalog, state);
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
    let mut rows: Rows = collations.collect();
    for s in catalog.sequences() {
        let items = catalog.relation_acl(&Relation::Sequence(s.clone()));
        for r in rights(&items, s.owner, right::USAGE, &roles) {
            rows.push(row![
                role_name(catalog, r.grantor),
                grantee_name(catalog, r.grantee),
                database.clone(),
                schema_name(catalog, s.schema),
                s.name.as_str(),
                "SEQUENCE",
                r.name,
                yes(r.grantable),
            ]);
        }
    }
    rows
}

pub(super) fn role_usage_grants(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    usage_privileges(catalog, state)
}
