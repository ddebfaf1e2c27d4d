//! Views of how much of relations was read: their relations are listed, but pages are not counted
//! by relation, and what a transaction did is not kept apart from what others did. Such counters
//! are NULL.

use throng_types::Datum;

use super::view::schema_name;
use super::{Rows, SystemState, row};
use crate::{Catalog, IndexDef};

/// The row with as many unknown counters behind it as its view has columns.
fn uncounted(mut row: Vec<Datum>, columns: usize) -> Vec<Datum> {
    row.resize(columns, Datum::Null);
    row
}

fn tables(catalog: &Catalog, columns: usize) -> Rows {
    let tables = catalog.tables().into_iter();
    let row_of = |t: &crate::TableDef| {
        let named = row![t.oid, schema_name(catalog, t.schema), t.name.as_str()];
        uncounted(named, columns)
    };
    tables.map(|t| row_of(t)).collect()
}

pub(super) fn pg_statio_all_tables(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    tables(catalog, 11)
}
pub(super) fn pg_statio_user_tables(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    tables(catalog, 11)
}
pub(super) fn pg_stat_xact_all_tables(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    tables(catalog, 12)
}
pub(super) fn pg_stat_xact_user_tables(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    tables(catalog, 12)
}

pub(super) fn pg_statio_user_indexes(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let row_of = |index: &IndexDef| {
        let table = catalog.table(index.table)?;
        let schema = schema_name(catalog, table.schema);
        let (table_name, name) = (table.name.as_str(), index.name.as_str());
        Some(uncounted(
            row![table.oid, index.oid, schema, table_name, name],
            7,
        ))
    };
    let indexes = catalog.indexes().into_iter();
    indexes.filter_map(|i| row_of(i)).collect()
}
pub(super) fn pg_statio_all_indexes(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    pg_statio_user_indexes(catalog, state)
}

pub(super) fn pg_statio_user_sequences(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let sequences = catalog.sequences().into_iter();
    let row_of = |s: &crate::SequenceDef| {
        let named = row![s.oid, schema_name(catalog, s.schema), s.name.as_str()];
        uncounted(named, 5)
    };
    sequences.map(|s| row_of(s)).collect()
}
pub(super) fn pg_statio_all_sequences(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    pg_statio_user_sequences(catalog, state)
}

/// Conflicts with recovery: there are none where nothing is replayed.
pub(super) fn pg_stat_database_conflicts(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let databases = catalog.databases().into_iter();
    databases
        .map(|d| row![d.oid, d.name.as_str(), 0i64, 0i64, 0i64, 0i64, 0i64, 0i64])
        .collect()
}

/// Reading ahead of what is replayed: none was.
pub(super) fn pg_stat_recovery_prefetch(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![row![
        Datum::Null,
        0i64,
        0i64,
        0i64,
        0i64,
        0i64,
        0i64,
        0,
        0,
        0
    ]]
}
