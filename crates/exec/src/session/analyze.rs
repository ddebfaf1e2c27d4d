//! Looking at tables for statistics: a sample of the rows of a sample of the blocks, what is said of their columns, and the
//! definition it becomes.

use std::sync::Arc;

use rand::Rng;
use throng_access::heap::large::LargeRef;
use throng_sql::catalog::{CatalogEdit, ColumnStats, Object, StatsDef, TableDef};
use throng_sql::sample::{BlockSampler, ROWS_A_TARGET, Reservoir, Sampled, column};
use throng_sql::settings::Id;
use throng_txn::LockMode;
use throng_types::{Datum, Oid, Result, Tid};

use super::Session;
use crate::rows::PageRows;
use crate::table::Table;

/// Rows of a table that stand for all, in the order of the heap.
struct Sample {
    rows: Vec<(Tid, Vec<Sampled>)>,
    /// Rows of the whole table, about.
    total: f64,
    pages: u32,
}

impl Session {
    pub(super) async fn analyze_table(&self, table: Oid) -> Result<()> {
        let catalog = self.definitions();
        let Some(def) = catalog.table(table) else {
            return Ok(());
        };
        let mut stats = match def.is_partitioned() {
            true => self.sum_of_parts(def).await?,
            false => self.stats_of(def).await?,
        };
        let catalog = self.catalog();
        let known = catalog.stats_of(table);
        stats.oid = known.map_or_else(|| self.engine.sys.new_oid(), |s| s.oid);
        let mut edit = CatalogEdit::new(&catalog);
        edit.put(Object::Stats(Arc::new(stats)));
        let (edited, changes) = edit.finish();
        let transaction = self.transaction()?;
        transaction.changes.borrow_mut().extend(changes);
        *transaction.catalog.borrow_mut() = Some(Arc::new(edited));
        transaction.txn.next_command()
    }

    /// What is known of a partitioned table: how many rows its partitions have, each of which is looked at.
    async fn sum_of_parts(&self, def: &Arc<TableDef>) -> Result<StatsDef> {
        let mut rows = 0.0;
        for part in self.catalog().descendants(def.oid) {
            let txn = &self.transaction()?.txn;
            txn.lock_relation(part, LockMode::AccessShare).await?;
            let catalog = self.catalog();
            if let Some(part) = catalog.table(part).filter(|t| !t.is_partitioned()) {
                rows += self.sample(part, self.statistics_target()).await?.total;
            }
        }
        Ok(StatsDef {
            oid: Oid::NONE,
            table: def.oid,
            rows,
            pages: 0,
            columns: Vec::new(),
        })
    }

    fn statistics_target(&self) -> usize {
        self.settings.borrow().int(Id::DefaultStatisticsTarget) as usize
    }

    async fn stats_of(&self, def: &Arc<TableDef>) -> Result<StatsDef> {
        let target = self.statistics_target();
        let mut sample = self.sample(def, target).await?;
        self.engine
            .store
            .relations
            .rel(def.file)
            .set_counts(sample.total as i64, 0, 0);
        let mut columns: Vec<ColumnStats> = Vec::with_capacity(def.columns.len());
        let mut values: Vec<Sampled> = Vec::with_capacity(sample.rows.len());
        for (at, of) in def.columns.iter().enumerate() {
            self.handle.cancel_flag().check()?;
            if of.dropped {
                columns.push(ColumnStats::default());
                continue;
            }
            values.clear();
            for (_, row) in &mut sample.rows {
                let value = row.get_mut(at).map(|v| std::mem::replace(v, Sampled::Null));
                values.push(value.unwrap_or(Sampled::Null));
            }
            columns.push(column(of.ty.oid, &values, sample.total, target));
            // Others on this core get their turn after each column.
            tokio::task::yield_now().await;
        }
        Ok(StatsDef {
            oid: Oid::NONE,
            table: def.oid,
            rows: sample.total,
            pages: sample.pages,
            columns,
        })
    }

    /// Reads as many blocks as rows are wanted, or all; the rows are drawn from all that are met there.
    async fn sample(&self, def: &Arc<TableDef>, target: usize) -> Result<Sample> {
        let wanted = target * ROWS_A_TARGET;
        let catalog = self.published.borrow().clone();
        let host = self.host(&catalog);
        let table = Table::unshared(def, &self.engine.store, &host.eval())?;
        let txn = &self.transaction()?.txn;
        let mut scan = PageRows::new(&table, txn.latest_snapshot()).await?;
        let pages = scan.pages();
        let mut random = || rand::rng().random::<f64>();
        let mut blocks = BlockSampler::new(pages, wanted);
        let mut reservoir = Reservoir::new(wanted);
        let mut rows: Vec<(Tid, Vec<Sampled>)> = Vec::new();
        let mut read = 0.0;
        while let Some(block) = blocks.next(&mut random) {
            self.handle.cancel_flag().check()?;
            let count = scan.read(block).await?;
            read += 1.0;
            for at in 0..count {
                let Some(place) = reservoir.offer(&mut random) else {
                    continue;
                };
                let (tid, row) = scan.row(at)?;
                let row = (tid, row.into_iter().map(sampled).collect());
                match rows.get_mut(place) {
                    Some(old) => *old = row,
                    None => rows.push(row),
                }
            }
            // Others on this core get their turn after each page.
            tokio::task::yield_now().await;
        }
        rows.sort_by_key(|(tid, _)| *tid);
        let total = match read > 0.0 {
            true => (reservoir.seen() as f64 / read * f64::from(pages)).round(),
            false => 0.0,
        };
        Ok(Sample { rows, total, pages })
    }
}

/// A value as it is kept for the sample: what lies outside its row is long, and not fetched.
fn sampled(value: Datum) -> Sampled {
    match value {
        Datum::External(reference) => Sampled::Wide(LargeRef::from_bytes(reference).len),
        other => other.into(),
    }
}
