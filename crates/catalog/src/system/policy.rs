//! Row security policies: `pg_policy`, `pg_policies`.

use throng_types::{Array, Datum, Oid, oid};

use super::view::schema_name;
use super::{Rows, SystemState, constraint::dependency, row};
use crate::builtin::class;
use crate::{Catalog, PolicyCondition, PolicyDef};

pub(super) fn pg_policy(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let text = |condition: &Option<PolicyCondition>| -> Datum {
        condition.as_ref().map(|c| c.text.as_str()).into()
    };
    let row = |policy: &std::sync::Arc<PolicyDef>| {
        let roles = policy.roles.iter().map(|role| Datum::Oid(role.0));
        row![
            policy.oid,
            policy.name.as_str(),
            policy.table,
            Datum::Char(policy.command.letter()),
            policy.permissive,
            Datum::array(Array::from_items(oid::OID, roles.collect())),
            text(&policy.using),
            text(&policy.check),
        ]
    };
    catalog.policies().into_iter().map(row).collect()
}

pub(super) fn pg_policies(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row = |policy: &std::sync::Arc<PolicyDef>| {
        let table = catalog.table(policy.table)?;
        let text = |condition: &Option<PolicyCondition>| -> Datum {
            let shown = condition.as_ref().map(|c| state.policy_text(table, c));
            shown.into()
        };
        let name = |role: &Oid| match *role {
            Oid::NONE => Datum::from("public"),
            role => catalog.role(role).map_or("", |r| &r.name).into(),
        };
        let mut roles: Vec<Datum> = policy.roles.iter().map(name).collect();
        roles.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        let permissive = match policy.permissive {
            true => "PERMISSIVE",
            false => "RESTRICTIVE",
        };
        Some(row![
            schema_name(catalog, table.schema),
            table.name.as_str(),
            policy.name.as_str(),
            permissive,
            Datum::array(Array::from_items(oid::NAME, roles)),
            policy.command.keyword(),
            text(&policy.using),
            text(&policy.check),
        ])
    };
    catalog.policies().into_iter().filter_map(row).collect()
}

/// The roles that policies are for; nothing else is told of what roles are needed for.
pub(super) fn pg_shdepend(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let database = catalog.current_database_oid();
    let of = |policy: &std::sync::Arc<PolicyDef>| {
        let oid = policy.oid;
        let roles = policy
            .roles
            .clone()
            .into_iter()
            .filter(|role| *role != Oid::NONE);
        roles.map(move |role| {
            row![
                database,
                class::POLICY,
                oid,
                0,
                class::ROLE,
                role,
                Datum::Char(b'r'),
            ]
        })
    };
    catalog.policies().into_iter().flat_map(of).collect()
}

pub(super) fn dependencies(catalog: &Catalog, rows: &mut Rows) {
    for policy in catalog.policies() {
        let own = (class::POLICY, policy.oid, 0);
        rows.push(dependency(own, (class::RELATION, policy.table, 0), b'a'));
        for used in policy.conditions().flat_map(|c| &c.uses) {
            let of = |column| (class::RELATION, used.object, column);
            for column in &used.columns {
                rows.push(dependency(own, of(*column), b'n'));
            }
            if used.columns.is_empty() && used.object != policy.table {
                let object = match catalog.routine(used.object) {
                    Some(_) => (class::PROCEDURE, used.object, 0),
                    None if catalog.made_type(used.object).is_some() => {
                        (class::TYPE, used.object, 0)
                    }
                    None => of(0),
                };
                rows.push(dependency(own, object, b'n'));
            }
        }
    }
}
