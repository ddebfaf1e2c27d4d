//! What ANALYZE found: `pg_statistic`, and `pg_stats`, which shows each reader the columns that it
//! may read.

use throng_types::datum::Array;
use throng_types::{Datum, Oid, oid};

use super::view::schema_name;
use super::{Rows, SystemState, attribute, row};
use crate::{Catalog, ColumnDef, ColumnStats, Relation, TableDef};
use throng_values::acl::right;
use throng_values::func::{Strategy, operators_named};

/// What is known of a column.
struct Analyzed<'c> {
    table: &'c TableDef,
    attnum: u16,
    column: &'c ColumnDef,
    /// Of the table's rows and its children's together.
    inherited: bool,
    stats: &'c ColumnStats,
    /// Rows that it is about.
    rows: f64,
}

fn analyzed(catalog: &Catalog) -> impl Iterator<Item = Analyzed<'_>> {
    let tables = catalog.tables().into_iter();
    let with_stats = tables.filter_map(|t| Some((&**t, &**catalog.stats_of(t.oid)?)));
    with_stats.flat_map(|(table, known)| {
        table.live_columns().flat_map(move |(attnum, column)| {
            [false, true].into_iter().filter_map(move |inherited| {
                let (stats, rows) = known.column(attnum, inherited)?;
                // Of a column that nobody wants statistics of there are none.
                (*stats != ColumnStats::default()).then_some(Analyzed {
                    table,
                    attnum,
                    column,
                    inherited,
                    stats,
                    rows,
                })
            })
        })
    })
}

/// Distinct values as `pg_stats` tells them: a count, or, where it grows with the table, the
/// negative share of rows.
fn n_distinct(stats: &ColumnStats, rows: f64) -> f32 {
    match stats.grows(rows) {
        true => -((stats.distinct / rows).min(1.0)) as f32,
        false => stats.distinct as f32,
    }
}

fn values(ty: Oid, values: &[Datum]) -> Datum {
    match values.is_empty() {
        true => Datum::Null,
        false => Datum::array(Array::from_items(ty, values.to_vec())),
    }
}

fn numbers(of: impl IntoIterator<Item = f64>) -> Datum {
    let items: Vec<Datum> = of.into_iter().map(|n| Datum::Float4(n as f32)).collect();
    values(oid::FLOAT4, &items)
}

pub(super) fn pg_stats(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let reader = state.current_user();
    let readable = |table: &TableDef, attnum: u16| {
        let relation = catalog.relation(table.oid);
        !catalog.has_row_security(table, reader)
            && relation.is_some_and(|r: Relation| {
                catalog.relation_rights(reader, &r, right::SELECT) != 0
                    || catalog.column_rights(reader, &r, attnum, right::SELECT) != 0
            })
    };
    analyzed(catalog)
        .filter(|one| readable(one.table, one.attnum))
        .map(|one| {
            let stats = one.stats;
            let mut row = row![
                schema_name(catalog, one.table.schema),
                one.table.name.as_str(),
                one.column.name.as_str(),
                one.inherited,
                stats.null_fraction as f32,
                stats.width as i32,
                n_distinct(stats, one.rows),
                values(stats.ty, &stats.common),
                numbers(stats.frequencies.iter().copied()),
                values(stats.ty, &stats.bounds),
                stats
                    .correlation
                    .map(|c| Datum::Float4(c as f32))
                    .unwrap_or_default(),
            ];
            // Of items of arrays and of ranges nothing is gathered.
            row.resize(PG_STATS_COLUMNS, Datum::Null);
            row
        })
        .collect()
}
const PG_STATS_COLUMNS: usize = 17;

/// A slot of `pg_statistic`: its kind, the operator it is about, its numbers and values.
type Slot = (i16, Oid, Datum, Datum);
const SLOTS: usize = 5;

fn slots(stats: &ColumnStats) -> Vec<Slot> {
    const COMMON: i16 = 1;
    const BOUNDS: i16 = 2;
    const CORRELATION: i16 = 3;
    let mut slots = Vec::new();
    if !stats.common.is_empty() {
        let frequencies = numbers(stats.frequencies.iter().copied());
        let equal = operator(stats.ty, "=", Strategy::Equal);
        slots.push((COMMON, equal, frequencies, values(stats.ty, &stats.common)));
    }
    let less = operator(stats.ty, "<", Strategy::Less);
    if !stats.bounds.is_empty() {
        slots.push((BOUNDS, less, Datum::Null, values(stats.ty, &stats.bounds)));
    }
    if let Some(correlation) = stats.correlation {
        slots.push((CORRELATION, less, numbers([correlation]), Datum::Null));
    }
    slots
}

/// The operator of that name over values of a type.
fn operator(ty: Oid, name: &str, strategy: Strategy) -> Oid {
    let ty = match ty {
        oid::VARCHAR => oid::TEXT,
        other => other,
    };
    let mut named = operators_named(name).iter();
    let found = named.find(|op| op.left == ty && op.right == ty && op.strategy == Some(strategy));
    found.map_or(Oid::NONE, |op| op.oid)
}

/// It has values of all tables: for superusers' eyes only.
pub(super) fn pg_statistic(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    if !catalog
        .role(state.current_user())
        .is_some_and(|r| r.superuser)
    {
        return Rows::new();
    }
    analyzed(catalog)
        .map(|one| {
            let (column, stats) = (one.column, one.stats);
            let mut row = row![
                one.table.oid,
                one.attnum as i16,
                one.inherited,
                stats.null_fraction as f32,
                stats.width as i32,
                n_distinct(stats, one.rows),
            ];
            let collation = attribute::collation_oid(column.collation.as_deref(), column.ty.oid);
            let mut slots = slots(stats);
            slots.resize(SLOTS, (0, Oid::NONE, Datum::Null, Datum::Null));
            row.extend(slots.iter().map(|slot| Datum::Int2(slot.0)));
            row.extend(slots.iter().map(|slot| Datum::from(slot.1)));
            row.extend(slots.iter().map(|slot| match slot.0 {
                0 => Datum::Oid(0),
                _ => Datum::from(collation),
            }));
            row.extend(slots.iter().map(|slot| slot.2.clone()));
            row.extend(slots.iter().map(|slot| slot.3.clone()));
            row
        })
        .collect()
}
