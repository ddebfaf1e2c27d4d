//! VACUUM and ANALYZE, when asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use throng_sql::catalog::{CatalogEdit, ColumnStats, Object, StatsDef, TableDef};
use throng_txn::LockMode;
use throng_txn::clean::CostDelay;
use throng_types::key::{self, KeyOrder};
use throng_types::{Datum, Error, Oid, Result};

use super::Session;
use crate::cleaner;
use crate::rows::PageRows;
use crate::table::Table;

/// Rows looked at for statistics: 300 for each unit of PostgreSQL's default statistics target, 100.
const SAMPLE: f64 = 30_000.0;

impl Session {
    /// Cleans tables, each in a transaction of its own so that its lock is short; no table is all of them.
    pub(super) async fn vacuum(
        &mut self,
        tables: Vec<Oid>,
        full: bool,
        analyze: bool,
    ) -> Result<()> {
        self.must_be_outside_block("VACUUM")?;
        if full {
            return Err(Error::unsupported("VACUUM FULL")
                .hint("VACUUM makes the room of dead rows free for new ones."));
        }
        for table in self.all_if_none(tables) {
            self.begin_if_idle();
            let txn = &self.transaction()?.txn;
            txn.lock_relation(table, LockMode::ShareUpdateExclusive)
                .await?;
            let catalog = self.catalog();
            if let Some(def) = catalog.table(table).cloned() {
                let engine = self.engine.clone();
                let flag = self.handle.entry().clone();
                // Cleaning waits for pages and the log: it has a thread to itself.
                let cleaned = tokio::task::spawn_blocking(move || {
                    let stop = || flag.cancel_flag().check().is_err();
                    let mut pacing = CostDelay::new(u32::MAX, Duration::ZERO, stop);
                    cleaner::clean(&engine, &catalog, &def, &mut pacing)
                })
                .await
                .map_err(|e| Error::internal(format!("VACUUM: {e}")))??;
                if cleaned.stopped {
                    self.handle.cancel_flag().check()?;
                }
            }
            self.commit().await?;
            if analyze {
                self.begin_if_idle();
                self.analyze_table(table).await?;
                self.commit().await?;
            }
        }
        self.begin_if_idle();
        Ok(())
    }

    /// Gathers statistics about tables; no table is all of them.
    pub(super) async fn analyze(&mut self, tables: Vec<Oid>) -> Result<()> {
        let mut all = self.all_if_none(tables);
        let catalog = self.definitions();
        let mut next = 0;
        while next < all.len() {
            // Of a partitioned table the rows are its partitions'.
            if catalog.table(all[next]).is_some_and(|t| t.is_partitioned()) {
                let parts = catalog.children_of(all[next]).iter();
                let new: Vec<Oid> = parts.filter(|p| !all.contains(p)).copied().collect();
                all.splice(next + 1..next + 1, new);
            }
            next += 1;
        }
        for table in all {
            self.analyze_table(table).await?;
        }
        Ok(())
    }

    fn all_if_none(&mut self, tables: Vec<Oid>) -> Vec<Oid> {
        if !tables.is_empty() {
            return tables;
        }
        self.catalog().tables().iter().map(|def| def.oid).collect()
    }

    async fn analyze_table(&mut self, table: Oid) -> Result<()> {
        let txn = &self.transaction()?.txn;
        txn.lock_relation(table, LockMode::ShareUpdateExclusive)
            .await?;
        let catalog = self.definitions();
        let Some(def) = catalog.table(table) else {
            return Ok(());
        };
        let mut stats = self.sample(def).await?;
        let known = catalog.stats_of(table);
        stats.oid = known.map_or_else(|| self.engine.sys.new_oid(), |s| s.oid);
        let mut edit = CatalogEdit::new(&catalog);
        edit.put(Object::Stats(Arc::new(stats)));
        let (edited, changes) = edit.finish();
        let transaction = self.transaction_mut()?;
        transaction.changes.extend(changes);
        transaction.catalog = Some(Arc::new(edited));
        transaction.txn.next_command()
    }

    async fn sample(&self, def: &Arc<TableDef>) -> Result<StatsDef> {
        let catalog = self.published.clone();
        let host = self.host(&catalog);
        let table = Table::unshared(def, &self.engine.store, &host.eval())?;
        let txn = &self.transaction()?.txn;
        let mut scan = PageRows::new(&table, txn.latest_snapshot()).await?;
        let pages = scan.pages();
        scan.spread(SAMPLE);
        let mut columns: Vec<Sample> = def.columns.iter().map(|_| Sample::default()).collect();
        let mut page = Vec::new();
        let mut rows = 0.0;
        while scan.next(&mut page).await? {
            self.handle.cancel_flag().check()?;
            rows += page.len() as f64;
            for (_, row) in &page {
                for ((sample, value), column) in columns.iter_mut().zip(row).zip(&def.columns) {
                    sample.take(value, KeyOrder::new(column.ty.oid, false, false))?;
                }
            }
        }
        let total = if scan.pages_read() == 0 {
            0.0
        } else {
            rows / f64::from(scan.pages_read()) * f64::from(pages)
        };
        self.engine
            .store
            .relations
            .rel(def.file)
            .set_counts(total as i64, 0, 0);
        Ok(StatsDef {
            oid: Oid::NONE,
            table: def.oid,
            rows: total,
            pages,
            columns: columns
                .iter()
                .map(|sample| sample.stats(rows, total))
                .collect(),
        })
    }
}

/// What is seen of one column's values.
#[derive(Default)]
struct Sample {
    seen: HashMap<Box<[u8]>, u32, FixedState>,
    nulls: f64,
    bytes: usize,
}

impl Sample {
    fn take(&mut self, value: &Datum, order: KeyOrder) -> Result<()> {
        if value.is_null() {
            self.nulls += 1.0;
            return Ok(());
        }
        let mut bytes = Vec::new();
        // What has no order has no statistics either.
        if key::encode_one(value, order, &mut bytes).is_ok() {
            self.bytes += bytes.len();
            *self.seen.entry(bytes.into()).or_default() += 1;
        }
        Ok(())
    }

    /// `rows` were sampled of `total`. Distinct values by Haas and Stokes' Duj1 estimator ("Sampling-based estimation of
    /// the number of distinct values", VLDB 1995), as PostgreSQL does.
    fn stats(&self, rows: f64, total: f64) -> ColumnStats {
        let sampled = rows - self.nulls;
        if sampled <= 0.0 {
            let null_fraction = if rows > 0.0 { 1.0 } else { 0.0 };
            return ColumnStats {
                distinct: 0.0,
                null_fraction,
                width: 0,
            };
        }
        let distinct = self.seen.len() as f64;
        let once = self.seen.values().filter(|count| **count == 1).count() as f64;
        let present = total * (1.0 - self.nulls / rows);
        let estimate = if once == sampled {
            present
        } else {
            sampled * distinct / (sampled - once + once * sampled / present.max(1.0))
        };
        ColumnStats {
            distinct: estimate.clamp(distinct, present.max(distinct)).round(),
            null_fraction: self.nulls / rows,
            width: (self.bytes as f64 / sampled) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_values_are_extrapolated() -> Result<()> {
        let mut unique = Sample::default();
        let mut few = Sample::default();
        for i in 0..1000 {
            unique.take(&Datum::Int4(i), KeyOrder::ASCENDING)?;
            few.take(&Datum::Int4(i % 10), KeyOrder::ASCENDING)?;
        }
        assert_eq!(unique.stats(1000.0, 50_000.0).distinct, 50_000.0);
        assert_eq!(few.stats(1000.0, 50_000.0).distinct, 10.0);
        Ok(())
    }
}
