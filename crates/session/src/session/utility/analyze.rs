//! Looking at tables for statistics: a sample of the rows of a sample of the blocks, what is said
//! of their columns, and the definition it becomes.
//!
//! A table with children is looked at twice: its own rows, and a sample of all tables' rows, each
//! giving as many as its part of the pages. What rows say of a column that nobody wants to be
//! looked at (`SET STATISTICS 0`, a list of others in ANALYZE) stays what it was.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::Rng;
use throng_access::heap::large::LargeRef;
use throng_access::{TupleHeader, Visibility, XidStatus};
use throng_catalog::partition::columns_in_child;
use throng_catalog::{CatalogEdit, ColumnStats, FamilyStats, Object, StatsDef, TableDef};
use throng_plan::sample::{BlockSampler, ROWS_A_TARGET, Reservoir, Sampled, column};
use throng_txn::{LockMode, LockTag, Snapshot, TxnSystem};
use throng_types::dispose::dispose;
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Tid, Xid};
use throng_values::settings::Id;

use crate::autoanalyze;
use crate::maintenance::By;
use crate::session::{Session, now};
use throng_exec::rows::PageRows;
use throng_exec::table::Table;

/// Rows of a sample that are looked at, or thrown away, in a millisecond.
const FEW: usize = 100;
/// Rows that are sorted in a millisecond or two.
const SORTED_HERE: usize = 30_000;

type SampledRows = Vec<(Tid, Vec<Sampled>)>;

/// Rows of a table that stand for all, in the order of the heap.
#[derive(Default)]
struct Sample {
    rows: SampledRows,
    /// Rows of the whole table, about.
    total: f64,
    pages: u32,
    /// Changes, about, of transactions that have not ended: the next look is for them.
    unsettled: f64,
}

/// How it is gone about.
struct Manner<'a> {
    /// Columns to look at, by name; none: all.
    columns: &'a [String],
    /// None: a client waits for it.
    pace: Option<autoanalyze::Pace<'a>>,
    /// What of the pace's limit is used up.
    spent: Cell<u32>,
}

/// PostgreSQL's cost of a page that may have to be read.
const PAGE_COST: u32 = 2;
/// Of a column's values; its limit lets a look at waiters come at least once in so many.
const COLUMN_COST: u32 = 20;

impl Session {
    /// ANALYZE of a table that is locked for it.
    pub(in crate::session) async fn analyze_table(
        &self,
        table: Oid,
        columns: &[String],
    ) -> Result<()> {
        let manner = Manner {
            columns,
            pace: None,
            spent: Cell::new(0),
        };
        self.analyze_in(table, &manner).await
    }

    /// ANALYZE of a table for nobody in particular, if that is in nobody's way.
    ///
    /// # Errors
    /// 57014 where it gave way.
    pub(crate) async fn analyze_by_itself(
        &mut self,
        table: Oid,
        pace: autoanalyze::Pace<'_>,
    ) -> Result<()> {
        self.statement_time = now();
        // A cancel that came before was for another table.
        self.handle.cancel_flag().statement_ended();
        self.begin_if_idle();
        let mode = LockMode::ShareUpdateExclusive;
        let txn = &self.transaction()?.txn;
        if !txn.try_lock(LockTag::Relation(table), mode) {
            self.rollback().await;
            return Ok(());
        }
        let name = self.definitions().table(table).map(|t| t.name.clone());
        let text = format!("autovacuum: ANALYZE {}", name.unwrap_or_default());
        self.handle
            .entry()
            .statement_began(&text, throng_txn::now_micros());
        let manner = Manner {
            columns: &[],
            pace: Some(pace),
            spent: Cell::new(0),
        };
        let done = match self.analyze_in(table, &manner).await {
            Ok(()) => self.commit().await,
            Err(e) => Err(e),
        };
        if done.is_err() {
            self.rollback().await;
        }
        done
    }

    async fn analyze_in(&self, table: Oid, manner: &Manner<'_>) -> Result<()> {
        let began = now();
        let catalog = self.definitions();
        let Some(def) = catalog.table(table) else {
            return Ok(());
        };
        let known = catalog.stats_of(table).cloned();
        // Before the first row is read: what changes meanwhile counts as not seen.
        let rel = self.engine.store.relations.rel(def.file);
        let changes = rel.counts().changes();
        let mut stats = StatsDef {
            oid: known
                .as_ref()
                .map_or_else(|| self.engine.sys.new_oid(), |s| s.oid),
            table,
            rows: 0.0,
            pages: 0,
            columns: Vec::new(),
            family: None,
        };
        let mut unsettled = 0.0;
        if !def.is_partitioned() {
            let sample = self.sample(def, self.rows_wanted(def), manner).await?;
            let counted = rel.counts();
            rel.set_counts(sample.total as i64, counted.dead, counted.dead_slots);
            (stats.rows, stats.pages) = (sample.total, sample.pages);
            unsettled = sample.unsettled;
            let before = known.as_ref().map_or(&[][..], |s| s.columns.as_slice());
            stats.columns = self.columns_of(def, sample, before, false, manner).await?;
        }
        if !catalog.children_of(table).is_empty() {
            let sample = self.family_sample(def, manner).await?;
            let of = known.as_ref().and_then(|s| s.family.as_ref());
            let before = of.map_or(&[][..], |f| f.columns.as_slice());
            let rows = sample.total;
            if def.is_partitioned() {
                stats.rows = rows;
            }
            let columns = self.columns_of(def, sample, before, true, manner).await?;
            stats.family = Some(FamilyStats { rows, columns });
        }
        self.keep_statistics(stats).await?;
        let by = match manner.pace {
            None => By::Statement,
            Some(_) => By::Background,
        };
        let seen = changes.saturating_sub(unsettled as u64);
        let all = manner.columns.is_empty();
        let maintenance = &self.engine.maintenance;
        maintenance.analyzed(def, by, began, all.then_some(seen));
        Ok(())
    }

    /// Common values and bounds of many columns are megabytes of text, which is written beside the
    /// event loop.
    async fn keep_statistics(&self, stats: StatsDef) -> Result<()> {
        let catalog = self.definitions();
        let version = catalog.version();
        let before = Arc::clone(&catalog);
        let stats = Arc::new(stats);
        let (edited, changes) = self
            .on_a_thread(move |_| {
                let mut edit = CatalogEdit::new(&before);
                edit.put(Object::Stats(stats.clone()));
                Ok(edit.finish())
            })
            .await?;
        self.keep_definitions(Arc::new(edited), changes, version)
    }

    fn target_of(&self, column: &throng_catalog::ColumnDef) -> usize {
        let usual = || self.settings.borrow().int(Id::DefaultStatisticsTarget) as usize;
        column
            .statistics_target
            .map_or_else(usual, |own| own.max(0) as usize)
    }

    /// Rows that the column which asks for most wants to be looked at.
    fn rows_wanted(&self, def: &TableDef) -> usize {
        /// Without any: to know how many rows there are.
        const LEAST: usize = 100;
        let targets = def.live_columns().map(|(_, c)| self.target_of(c));
        (targets.max().unwrap_or(0) * ROWS_A_TARGET).max(LEAST)
    }

    /// A page was read, or a column looked at: others on this core get their turn, and whoever
    /// waits for a lock that is held here.
    async fn turn(&self, held: &[Oid], cost: u32, manner: &Manner<'_>) -> Result<()> {
        self.handle.cancel_flag().check()?;
        throng_exec::turns::next_turn().await;
        let Some(pace) = &manner.pace else {
            return Ok(());
        };
        manner.spent.set(manner.spent.get() + cost);
        if manner.spent.get() < pace.limit {
            return Ok(());
        }
        manner.spent.set(0);
        let sys = &self.engine.sys;
        let mut locks = held.iter().map(|table| LockTag::Relation(*table));
        if (pace.stop)() || locks.any(|tag| sys.is_waited_for(tag)) {
            return Err(gave_way());
        }
        if !pace.delay.is_zero() {
            tokio::time::sleep(pace.delay).await;
        }
        Ok(())
    }

    /// What a sample says of each column.
    async fn columns_of(
        &self,
        def: &TableDef,
        mut sample: Sample,
        before: &[ColumnStats],
        family: bool,
        manner: &Manner<'_>,
    ) -> Result<Vec<ColumnStats>> {
        let said = match family {
            true => "n_distinct_inherited",
            false => "n_distinct",
        };
        let mut columns: Vec<ColumnStats> = Vec::with_capacity(def.columns.len());
        for (at, of) in def.columns.iter().enumerate() {
            let target = self.target_of(of);
            let asked = manner.columns.is_empty() || manner.columns.contains(&of.name);
            if of.dropped || target == 0 || !asked {
                let known = before.get(at).filter(|_| !of.dropped);
                columns.push(known.cloned().unwrap_or_default());
                continue;
            }
            let mut stats = self
                .column_statistics(of.ty.oid, at, &mut sample, target)
                .await?;
            if let Some(said) = of.option(said).filter(|said| *said != 0.0)
                && !sample.rows.is_empty()
            {
                stats.take_distinct(said, sample.total);
            }
            columns.push(stats);
            self.turn(&[def.oid], COLUMN_COST, manner).await?;
        }
        if sample.rows.len() > FEW {
            dispose(sample.rows);
        }
        Ok(columns)
    }

    /// What the sampled values of the column at `at` say; they are taken out of the sample. Those
    /// of a large sample are gathered and sorted beside the event loop.
    async fn column_statistics(
        &self,
        ty: Oid,
        at: usize,
        sample: &mut Sample,
        target: usize,
    ) -> Result<ColumnStats> {
        let total = sample.total;
        let look = move |rows: &mut SampledRows| {
            let taken = rows.iter_mut();
            let values: Vec<Sampled> = taken
                .map(|(_, row)| row.get_mut(at).map_or(Sampled::Null, std::mem::take))
                .collect();
            column(ty, &values, total, target)
        };
        if sample.rows.len() <= FEW {
            return Ok(look(&mut sample.rows));
        }
        let rows = Mutex::new(std::mem::take(&mut sample.rows));
        let (stats, rows) = self
            .on_a_thread(move |_| {
                let mut rows = rows.lock();
                Ok((look(&mut rows), std::mem::take(&mut *rows)))
            })
            .await?;
        sample.rows = rows;
        Ok(stats)
    }

    /// The tables that have rows of a parent's, locked; others' temporary ones apart.
    async fn members(&self, def: &TableDef, manner: &Manner<'_>) -> Result<Vec<Arc<TableDef>>> {
        let mut members = Vec::new();
        let own = self.temporary.schema(&self.catalog());
        for oid in self.catalog().descendants(def.oid) {
            let txn = &self.transaction()?.txn;
            match manner.pace {
                None => txn.lock_relation(oid, LockMode::AccessShare).await?,
                Some(_) if txn.try_lock(LockTag::Relation(oid), LockMode::AccessShare) => {}
                Some(_) => return Err(gave_way()),
            }
            let catalog = self.catalog();
            let member = catalog.table(oid).filter(|t| !t.is_partitioned());
            let here = |t: &&Arc<TableDef>| {
                !t.persistence.is_temporary() || t.oid == def.oid || own == Some(t.schema)
            };
            members.extend(member.filter(here).cloned());
        }
        Ok(members)
    }

    /// Rows of a table and of its children, with the parent's columns.
    async fn family_sample(&self, def: &Arc<TableDef>, manner: &Manner<'_>) -> Result<Sample> {
        let members = self.members(def, manner).await?;
        let blocks = |table: &TableDef| self.engine.store.pool.blocks(table.file).unwrap_or(0);
        let pages: f64 = members.iter().map(|member| f64::from(blocks(member))).sum();
        let wanted = self.rows_wanted(def) as f64;
        let mut all = Sample::default();
        for member in &members {
            let own = f64::from(blocks(member));
            if own == 0.0 {
                continue;
            }
            let share = (wanted * own / pages).round().max(1.0) as usize;
            let sample = self.sample(member, share, manner).await?;
            let places = columns_in_child(def, member);
            let mut taken = 0;
            let row_of = |mut row: Vec<Sampled>| -> Vec<Sampled> {
                let mut value = |attnum: &u16| {
                    let at = usize::from(*attnum).checked_sub(1);
                    let found = at.and_then(|at| row.get_mut(at));
                    found.map_or(Sampled::Null, |v| std::mem::replace(v, Sampled::Null))
                };
                places.iter().map(&mut value).collect()
            };
            for (tid, row) in sample.rows {
                all.rows.push((tid, row_of(row)));
                taken += 1;
                if taken % FEW == 0 {
                    throng_exec::turns::next_turn().await;
                }
            }
            all.total += sample.total;
            all.pages += sample.pages;
        }
        Ok(all)
    }

    /// Reads as many blocks as rows are wanted, or all; the rows are drawn from all that are met
    /// there.
    async fn sample(
        &self,
        def: &Arc<TableDef>,
        wanted: usize,
        manner: &Manner<'_>,
    ) -> Result<Sample> {
        let catalog = self.published.borrow().clone();
        let host = self.host(&catalog);
        let table = Table::unshared(def, &self.engine.store, &host.eval())?;
        let txn = &self.transaction()?.txn;
        let unsettled: Rc<Cell<u64>> = Rc::default();
        let snapshot = Rc::new(txn.latest_snapshot());
        let watched = Watched {
            sys: &self.engine.sys,
            snapshot: snapshot.clone(),
            unsettled: unsettled.clone(),
        };
        let mut pending = 0;
        let mut scan = PageRows::new(&table, watched).await?;
        let pages = scan.pages();
        let mut random = || rand::rng().random::<f64>();
        let mut blocks = BlockSampler::new(pages, wanted);
        let mut reservoir = Reservoir::new(wanted);
        let mut rows: Vec<(Tid, Vec<Sampled>)> = Vec::new();
        let mut read = 0.0;
        while let Some(block) = blocks.next(&mut random) {
            unsettled.set(0);
            let count = scan.read(block).await?;
            pending += unsettled.get();
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
            // No two blocks need be of one moment, and a snapshot that is held keeps what is
            // replaced meanwhile.
            snapshot.move_on();
            self.turn(&[def.oid], PAGE_COST, manner).await?;
        }
        if rows.len() > SORTED_HERE {
            let unsorted = Mutex::new(rows);
            rows = self
                .on_a_thread(move |_| {
                    let mut rows = std::mem::take(&mut *unsorted.lock());
                    rows.sort_unstable_by_key(|(tid, _)| *tid);
                    Ok(rows)
                })
                .await?;
        } else {
            rows.sort_unstable_by_key(|(tid, _)| *tid);
        }
        let of_all = |found: u64| match read > 0.0 {
            true => (found as f64 / read * f64::from(pages)).round(),
            false => 0.0,
        };
        let (total, unsettled) = (of_all(reservoir.seen()), of_all(pending));
        Ok(Sample {
            rows,
            total,
            pages,
            unsettled,
        })
    }
}

fn gave_way() -> Error {
    Error::new(state::QUERY_CANCELED, "canceling autovacuum task")
}

/// A snapshot that counts, on the page looked at, what transactions have made or ended there that
/// it does not know to have committed.
struct Watched<'a> {
    sys: &'a TxnSystem,
    snapshot: Rc<Snapshot>,
    unsettled: Rc<Cell<u64>>,
}

impl Watched<'_> {
    /// Whether what a transaction did, of which the snapshot sees nothing, has been or may be
    /// committed.
    fn may_count(&self, xid: Xid) -> bool {
        xid != Xid::NONE && self.sys.status(xid) != XidStatus::Aborted
    }
}

impl Visibility for Watched<'_> {
    fn visible(&self, header: &TupleHeader) -> bool {
        let visible = self.snapshot.visible(header);
        let as_made = || TupleHeader::new(header.xmin, header.cmin, 0);
        let pending = match visible {
            true => self.may_count(header.xmax),
            false => !self.snapshot.visible(&as_made()) && self.may_count(header.xmin),
        };
        let before = self.unsettled.get();
        self.unsettled.set(before + u64::from(pending));
        visible
    }

    fn again(&self) {
        self.unsettled.set(0);
        self.snapshot.again();
    }
}

/// A value as it is kept for the sample: what lies outside its row is long, and not fetched.
fn sampled(value: Datum) -> Sampled {
    match value {
        Datum::External(reference) => Sampled::Wide(LargeRef::from_bytes(reference).len),
        other => other.into(),
    }
}
