//! The views that spell catalogs out by name: `pg_tables`, `pg_indexes`, `pg_views`, `pg_sequences`,
//! and what ANALYZE found: `pg_statistic`, `pg_stats`.

use throng_types::{Datum, Oid};

use super::{Rows, SystemState, all, definition, relation, row};
use crate::catalog::{Catalog, ColumnDef, ColumnStats, TableDef};

pub(super) fn schema_name(catalog: &Catalog, schema: Oid) -> Datum {
    catalog.schema(schema).map(|s| s.name.as_str()).into()
}

pub(super) fn role_name(catalog: &Catalog, role: Oid) -> Datum {
    catalog.role(role).map(|r| r.name.as_str()).into()
}

/// The virtual relations of a kind: `r` or `v`.
pub(super) fn virtual_relations(kind: u8) -> impl Iterator<Item = &'static super::VirtualTable> {
    all().iter().copied().filter(move |t| t.relkind() == kind)
}

pub(super) fn pg_tables(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let superuser = role_name(catalog, crate::catalog::builtin::SUPERUSER);
    let system = virtual_relations(b'r').map(|t| {
        row![
            schema_name(catalog, t.schema),
            t.name,
            superuser.clone(),
            Datum::Null,
            false,
            false,
            false,
            false,
        ]
    });
    let tables = catalog.tables().into_iter().map(|t| {
        let references = catalog
            .constraints_of(t.oid)
            .iter()
            .any(|c| c.foreign_key().is_some());
        row![
            schema_name(catalog, t.schema),
            t.name.as_str(),
            role_name(catalog, t.owner),
            Datum::Null,
            !catalog.indexes_of(t.oid).is_empty(),
            false,
            references
                || !catalog.referencing(t.oid).is_empty()
                || !catalog.triggers_of(t.oid).is_empty(),
            false,
        ]
    });
    system.chain(tables).collect()
}

pub(super) fn pg_indexes(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let row_of = |index: &crate::catalog::IndexDef| {
        let table = catalog.table(index.table)?;
        Some(row![
            schema_name(catalog, table.schema),
            table.name.as_str(),
            index.name.as_str(),
            Datum::Null,
            definition::index_definition(catalog, index, true),
        ])
    };
    catalog
        .indexes()
        .into_iter()
        .filter_map(|i| row_of(i))
        .collect()
}

/// The system's own views have no text.
pub(super) fn pg_views(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let superuser = role_name(catalog, crate::catalog::builtin::SUPERUSER);
    let own = catalog.views().into_iter().map(|v| {
        row![
            schema_name(catalog, v.schema),
            v.name.as_str(),
            role_name(catalog, v.owner),
            state.view_definition(v),
        ]
    });
    virtual_relations(b'v')
        .map(|v| {
            row![
                schema_name(catalog, v.schema),
                v.name,
                superuser.clone(),
                Datum::Null
            ]
        })
        .chain(own)
        .collect()
}

pub(super) fn pg_sequences(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let sequences = catalog.sequences().into_iter();
    sequences
        .map(|s| {
            row![
                schema_name(catalog, s.schema),
                s.name.as_str(),
                role_name(catalog, s.owner),
                s.ty,
                s.start,
                s.min,
                s.max,
                s.increment,
                s.cycle,
                s.cache,
                state.sequence_value(s.oid),
            ]
        })
        .collect()
}

/// Columns with what ANALYZE found about them.
fn analyzed(
    catalog: &Catalog,
) -> impl Iterator<Item = (&TableDef, u16, &ColumnDef, ColumnStats, f64)> {
    let tables = catalog.tables().into_iter();
    let with_stats = tables.filter_map(|t| Some((&**t, &**catalog.stats_of(t.oid)?)));
    with_stats.flat_map(|(table, stats)| {
        table.live_columns().filter_map(move |(attnum, column)| {
            let found = stats.columns.get(usize::from(attnum) - 1)?;
            Some((table, attnum, column, *found, stats.rows))
        })
    })
}

/// Distinct values as `pg_stats` tells them: a count, or, where it grows with the table, the
/// negative share of rows.
fn n_distinct(stats: ColumnStats, rows: f64) -> f32 {
    match stats.distinct > rows * 0.1 && rows > 0.0 {
        true => -((stats.distinct / rows).min(1.0)) as f32,
        false => stats.distinct as f32,
    }
}

pub(super) fn pg_stats(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    analyzed(catalog)
        .map(|(table, _, column, stats, rows)| {
            let mut row = row![
                schema_name(catalog, table.schema),
                table.name.as_str(),
                column.name.as_str(),
                false,
                stats.null_fraction as f32,
                stats.width as i32,
                n_distinct(stats, rows),
            ];
            // Common values, histograms and the like are not gathered.
            row.resize(PG_STATS_COLUMNS, Datum::Null);
            row
        })
        .collect()
}
const PG_STATS_COLUMNS: usize = 17;

pub(super) fn pg_statistic(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    analyzed(catalog)
        .map(|(table, attnum, column, stats, rows)| {
            let mut row = row![
                table.oid,
                attnum as i16,
                false,
                stats.null_fraction as f32,
                stats.width as i32,
                n_distinct(stats, rows),
            ];
            let collation = relation::collation_oid(column.collation.as_deref(), column.ty.oid);
            row.extend(vec![Datum::Int2(0); 5]);
            row.extend(vec![Datum::Oid(0); 5]);
            row.extend(vec![Datum::from(collation); 5]);
            row.resize(PG_STATISTIC_COLUMNS, Datum::Null);
            row
        })
        .collect()
}
const PG_STATISTIC_COLUMNS: usize = 31;
