//! Planning over the catalogs of [`Workbench`], for tests.

use throng_bind::command::{Bound, BoundStatement};
use throng_bind::testing::{PATH, Workbench};
use throng_catalog::{Catalog, ColumnDef, FamilyStats, StatsDef};
use throng_types::{Datum, Oid, Result};
use throng_values::io::FormatSettings;

use crate::sample::{Sampled, column};
use crate::{PlanContext, PlannedStatement, Stats, TableSize};

/// What tests plan with besides the definitions.
pub struct Planning {
    pub bench: Workbench,
    pub join_collapse_limit: i64,
}

/// Every table has a hundred pages, but for those that something else is known of.
struct SmallTables<'a>(&'a Catalog);

impl Stats for SmallTables<'_> {
    fn table_size(&self, table: Oid) -> TableSize {
        let known = self.0.stats_of(table);
        TableSize {
            pages: known.map_or(100, |s| s.pages),
            rows: known.map_or(5000.0, |s| s.rows),
        }
    }
}

impl Planning {
    /// A fresh catalog with these definitions.
    pub fn new(sql: &str) -> Planning {
        Planning {
            bench: Workbench::new(sql),
            join_collapse_limit: 8,
        }
    }

    pub fn bind_one(&self, sql: &str) -> Result<Bound> {
        self.bench.bind_one(sql)
    }

    /// Plans what a statement bound to; None for what is not planned.
    pub fn plan(&self, bound: Bound) -> Option<Result<PlannedStatement>> {
        let BoundStatement::Query(query) = bound.statement else {
            return None;
        };
        let catalog = &self.bench.catalog;
        let format = FormatSettings::default();
        Some(self.bench.evaluating(&format, |eval| {
            let ctx = PlanContext {
                catalog,
                stats: &SmallTables(catalog),
                eval,
                temporary_schema: None,
                enable_seqscan: true,
                enable_indexscan: true,
                enable_bitmapscan: true,
                enable_hashjoin: true,
                enable_nestloop: true,
                join_collapse_limit: self.join_collapse_limit,
                from_collapse_limit: 8,
                most_unknown: None,
            };
            crate::plan(*query, &ctx)
        }))
    }

    /// As if ANALYZE had found this of a table: its rows, and of columns what a sample of their
    /// values says.
    pub fn know(&mut self, table: &str, rows: f64, columns: &[(&str, Vec<Datum>)]) {
        self.learn(table, rows, columns, false);
    }

    /// As if ANALYZE had found this of a partitioned table.
    pub fn know_family(&mut self, table: &str, rows: f64, columns: &[(&str, Vec<Datum>)]) {
        self.learn(table, rows, columns, true);
    }

    fn learn(&mut self, table: &str, rows: f64, columns: &[(&str, Vec<Datum>)], family: bool) {
        let catalog = &self.bench.catalog;
        let relation = catalog.find_relation(&PATH, table);
        let table = relation.expect("the test's own table").oid();
        let def = catalog.table(table).expect("a table").clone();
        let stats_of = |def: &ColumnDef| {
            let known = columns.iter().find(|(name, _)| *name == def.name);
            let values = known.map_or(&[][..], |(_, values)| values);
            let sampled: Vec<Sampled> = values.iter().cloned().map(Into::into).collect();
            column(def.ty.oid, &sampled, rows, 100)
        };
        let of_columns: Vec<_> = def.columns.iter().map(stats_of).collect();
        self.bench.put(|oid| {
            let (columns, family) = match family {
                true => {
                    let columns = of_columns;
                    (Vec::new(), Some(FamilyStats { rows, columns }))
                }
                false => (of_columns, None),
            };
            StatsDef {
                oid,
                table,
                rows,
                pages: (rows / 60.0).ceil() as u32,
                columns,
                family,
            }
            .into()
        });
    }
}
