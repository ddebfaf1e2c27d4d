//! The views that spell catalogs out by name: `pg_tables`, `pg_indexes`, `pg_views`,
//! `pg_sequences`.

use throng_types::{Datum, Oid};

use super::{Rows, SystemState, all, definition, row};
use crate::{Catalog, TableDef};

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
    let superuser = role_name(catalog, crate::builtin::SUPERUSER);
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
    let plain = catalog
        .tables()
        .into_iter()
        .filter(|t| !t.is_materialized());
    let tables = plain.map(|t| {
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
            t.row_security.enabled,
        ]
    });
    system.chain(tables).collect()
}

pub(super) fn pg_indexes(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |index: &crate::IndexDef| {
        let table = catalog.table(index.table)?;
        let seen = state.index_as_seen(index);
        Some(row![
            schema_name(catalog, table.schema),
            table.name.as_str(),
            index.name.as_str(),
            Datum::Null,
            definition::index_definition(catalog, seen.as_ref().unwrap_or(index), true),
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
    let superuser = role_name(catalog, crate::builtin::SUPERUSER);
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

pub(super) fn pg_matviews(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |t: &TableDef| {
        let view = t.as_view()?;
        Some(row![
            schema_name(catalog, t.schema),
            t.name.as_str(),
            role_name(catalog, t.owner),
            Datum::Null,
            !catalog.indexes_of(t.oid).is_empty(),
            !t.is_unpopulated(),
            state.view_definition(&view),
        ])
    };
    catalog
        .tables()
        .into_iter()
        .filter_map(|t| row_of(t))
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
