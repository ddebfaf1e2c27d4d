//! `information_schema` on constraints. A NOT NULL is a constraint of kind CHECK there.

use throng_types::Datum;

use super::constraint::constrained_columns;
use super::definition::{action_name, not_null_name, not_nulls};
use super::info_relation::{catalog_name, own_tables, schema_name, yes};
use super::{Rows, SystemState, row};
use crate::{Catalog, ConstraintDef, ConstraintKind, Deferral, TableDef};

/// The database and schema of a table, its name.
fn table_name(catalog: &Catalog, table: &TableDef) -> Vec<Datum> {
    row![
        catalog_name(catalog),
        schema_name(catalog, table.schema),
        table.name.as_str()
    ]
}

/// A constraint's full name: it is in its table's schema.
fn constraint_name(catalog: &Catalog, table: &TableDef, name: &str) -> Vec<Datum> {
    row![
        catalog_name(catalog),
        schema_name(catalog, table.schema),
        name
    ]
}

fn joined(mut start: Vec<Datum>, parts: impl IntoIterator<Item = Vec<Datum>>) -> Vec<Datum> {
    parts.into_iter().for_each(|part| start.extend(part));
    start
}

/// A row for each constraint of the tables the reader may use, given its table, its name, and
/// itself; an `Err` is the NOT NULL of the column named.
fn each(
    catalog: &Catalog,
    state: &dyn SystemState,
    mut row: impl FnMut(&TableDef, &str, Result<&ConstraintDef, &str>) -> Option<Vec<Datum>>,
) -> Rows {
    let mut rows = Rows::new();
    for table in own_tables(catalog, state) {
        for c in catalog.constraints_of(table.oid) {
            rows.extend(row(table, &c.name, Ok(c)));
        }
        for (_, column) in not_nulls(table) {
            rows.extend(row(table, &not_null_name(table, column), Err(&column.name)));
        }
    }
    rows
}

pub(super) fn table_constraints(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    each(catalog, state, |table, name, constraint| {
        let kind = match constraint.map(|c| &c.kind) {
            Ok(ConstraintKind::PrimaryKey { .. }) => "PRIMARY KEY",
            Ok(ConstraintKind::Unique { .. }) => "UNIQUE",
            Ok(ConstraintKind::ForeignKey(_)) => "FOREIGN KEY",
            // The standard has none.
            Ok(ConstraintKind::Exclusion { .. }) => return None,
            Ok(ConstraintKind::Check { .. }) | Err(_) => "CHECK",
        };
        let nulls_distinct = match constraint.map(|c| &c.kind) {
            Ok(ConstraintKind::Unique { index }) => {
                catalog.index(*index).map(|i| yes(!i.nulls_not_distinct))
            }
            _ => None,
        };
        let deferral = constraint.map_or(Deferral::NotDeferrable, |c| c.deferral);
        let (deferrable, deferred) = (deferral.is_deferrable(), deferral.is_deferred());
        let rest = row![
            kind,
            yes(deferrable),
            yes(deferred),
            yes(deferral.is_enforced()),
            nulls_distinct
        ];
        let name = constraint_name(catalog, table, name);
        Some(joined(name, [table_name(catalog, table), rest]))
    })
}

pub(super) fn check_constraints(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = each(catalog, state, |table, name, constraint| {
        let clause = match constraint.map(|c| &c.kind) {
            Ok(ConstraintKind::Check { expr, .. }) => format!("({expr})"),
            Err(column) => format!("{column} IS NOT NULL"),
            Ok(_) => return None,
        };
        Some(joined(
            constraint_name(catalog, table, name),
            [row![clause]],
        ))
    });
    super::domain::check_rows(catalog, state, &mut rows);
    rows
}

pub(super) fn referential_constraints(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    each(catalog, state, |table, name, constraint| {
        let key = constraint.ok()?.foreign_key()?;
        let referenced = catalog.table(key.ref_table)?;
        let unique = catalog.constraints_of(key.ref_table).iter();
        // A key may also reference an index that no constraint owns.
        let unique = match unique
            .into_iter()
            .find(|c| c.index() == Some(key.ref_index))
        {
            Some(c) => constraint_name(catalog, referenced, &c.name),
            None => vec![Datum::Null; 3],
        };
        let rules = row![
            if key.match_full { "FULL" } else { "NONE" },
            action_name(key.on_update),
            action_name(key.on_delete),
        ];
        Some(joined(
            constraint_name(catalog, table, name),
            [unique, rules],
        ))
    })
}

pub(super) fn key_column_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for table in own_tables(catalog, state) {
        for c in catalog.constraints_of(table.oid) {
            if matches!(c.kind, ConstraintKind::Check { .. }) {
                continue;
            }
            // The place of each column's counterpart in the key referenced.
            let counterpart = |i: usize| {
                let key = c.foreign_key()?;
                let index = catalog.index(key.ref_index)?;
                let place = index
                    .columns
                    .iter()
                    .position(|k| k.attnum == key.ref_columns[i])?;
                Some(place as i32 + 1)
            };
            for (i, attnum) in constrained_columns(catalog, c).into_iter().enumerate() {
                let column = table.column(attnum).name.as_str();
                let rest = row![column, i as i32 + 1, counterpart(i)];
                let name = constraint_name(catalog, table, &c.name);
                rows.push(joined(name, [table_name(catalog, table), rest]));
            }
        }
    }
    rows
}

/// Columns a constraint uses: of the table referenced, for a foreign key.
pub(super) fn constraint_column_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let mut rows = Rows::new();
    for table in own_tables(catalog, state) {
        let mut add = |used: &TableDef, column: &str, name: &str| {
            let start = table_name(catalog, used);
            let name = constraint_name(catalog, table, name);
            rows.push(joined(start, [row![column], name]));
        };
        for c in catalog.constraints_of(table.oid) {
            let referenced = c
                .foreign_key()
                .and_then(|k| Some((catalog.table(k.ref_table)?, k)));
            let (used, columns) = match referenced {
                Some((referenced, key)) => (&**referenced, key.ref_columns.clone()),
                None => (table, constrained_columns(catalog, c)),
            };
            for attnum in columns {
                add(used, &used.column(attnum).name, &c.name);
            }
        }
        for (_, column) in not_nulls(table) {
            add(table, &column.name, &not_null_name(table, column));
        }
    }
    rows
}

/// Tables a key is about: the one referenced, for a foreign key.
pub(super) fn constraint_table_usage(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    each(catalog, state, |table, name, constraint| {
        let used = match &constraint.ok()?.kind {
            ConstraintKind::ForeignKey(key) => catalog.table(key.ref_table)?,
            ConstraintKind::Check { .. } | ConstraintKind::Exclusion { .. } => return None,
            ConstraintKind::PrimaryKey { .. } | ConstraintKind::Unique { .. } => table,
        };
        Some(joined(
            table_name(catalog, used),
            [constraint_name(catalog, table, name)],
        ))
    })
}
