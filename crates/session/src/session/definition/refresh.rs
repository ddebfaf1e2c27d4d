//! REFRESH MATERIALIZED VIEW: its query run as its owner, into new files or, CONCURRENTLY, by
//! changing the rows that differ.
//!
//! ```text
//! rows there are ─► what they are ─┐
//!                                  ├─► rows in both stay; the others go, then those that are new come
//! rows of the query ───────────────┘
//! ```
//! No more than `work_mem` is kept of either. Past that the rest is replaced, whether it differs or
//! not.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::{FixedState, RandomState};
use throng_access::TxContext;
use throng_bind::binder;
use throng_buffer::retry;
use throng_catalog::{Catalog, TableDef};
use throng_exec::drive::{KeptRows, next};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn};
use throng_types::error::state;
use throng_types::row::{RowLayout, encode_row};
use throng_types::{Datum, Error, Oid, Record, Result, SqlType};
use throng_values::io::output_text;

use crate::session::Session;
use crate::session::definition::ddl::gone;
use crate::session::statement::query::Rows;
use throng_exec::rows::PageRows;
use throng_exec::run::Row;
use throng_exec::table::Table;
use throng_exec::write::{self, Context, Target};

/// Two hashes of a row, whose seeds nobody can know.
type Print = (u64, u64);

struct Prints {
    seeds: [RandomState; 2],
    bytes: Vec<u8>,
}

impl Prints {
    fn of(&mut self, layout: &RowLayout, row: &[Datum]) -> Result<Print> {
        self.bytes.clear();
        encode_row(layout, row, &mut self.bytes)?;
        let [a, b] = &self.seeds;
        Ok((a.hash_one(&self.bytes), b.hash_one(&self.bytes)))
    }
}

/// What the rows there are may still be found to be.
type Old = std::collections::HashMap<Print, Vec<RowRef>, FixedState>;

/// Bytes that an entry of a map of rows takes, about.
const ENTRY: usize = 64;

impl Session {
    /// The rows of its query into the new heap of a materialized view.
    pub(in crate::session) async fn refresh(
        &self,
        table: Oid,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let query = self.materialized_query(table, catalog)?;
        self.fill(table, query, catalog).await.map(|_| ())
    }

    /// CREATE TABLE AS: the query's rows into the new table.
    pub(in crate::session) async fn fill(
        &self,
        table: Oid,
        query: throng_bind::query::BoundQuery,
        catalog: &Arc<Catalog>,
    ) -> Result<u64> {
        let def = catalog.table(table).cloned().ok_or_else(|| gone("table"))?;
        let planned = Arc::new(self.plan(query).await?);
        self.lock_plan(&planned, &[]).await?;
        let values = self.command_values.borrow().clone();
        let mut run = self.start(planned, values, Rows::Given)?;
        let txn = &self.transaction()?.txn;
        let host = self.host(catalog);
        let target = Table::unshared(&def, &self.engine.store, &host.eval())?;
        let mut row = Row::new();
        let mut count = 0;
        txn.assign_top_xid();
        loop {
            let env = self.env(catalog, &host, &run.snapshot, &run.params);
            if !next(&mut run.execution, env, txn, &mut row).await? {
                return Ok(count);
            }
            let bytes = throng_exec::large::encode(&target.heap, txn, &target.layout, &row).await?;
            retry(|| target.heap.insert(txn, &bytes)).await?;
            count += 1;
        }
    }

    /// REFRESH CONCURRENTLY, beside who reads the rows that were there.
    pub(in crate::session) async fn refresh_in_place(
        &self,
        table: Oid,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let query = self.materialized_query(table, catalog)?;
        self.replace_rows(table, query, catalog).await
    }

    fn materialized_query(
        &self,
        table: Oid,
        catalog: &Arc<Catalog>,
    ) -> Result<throng_bind::query::BoundQuery> {
        let def = catalog.table(table).ok_or_else(|| gone("table"))?;
        let host = self.host(catalog);
        binder::materialized_query(def, catalog, host.eval())
    }

    async fn replace_rows(
        &self,
        table: Oid,
        query: throng_bind::query::BoundQuery,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let def = catalog.table(table).cloned().ok_or_else(|| gone("table"))?;
        let planned = Arc::new(self.plan(query).await?);
        self.lock_plan(&planned, &[]).await?;
        let values = self.command_values.borrow().clone();
        let mut run = self.start(planned, values, Rows::Given)?;
        let work_mem = self.work_mem();
        let txn = &self.transaction()?.txn;
        let host = self.host(catalog);
        let cx = Context {
            env: self.env(catalog, &host, &run.snapshot, &run.params),
            txn,
            work_mem,
            deferred: &self.deferred,
        };
        txn.assign_top_xid();
        let target = Target::of(&def, &cx)?;
        let mut prints = Prints {
            seeds: [RandomState::default(), RandomState::default()],
            bytes: Vec::new(),
        };
        let mut change = Change {
            old: Some(self.rows_there(&target, &mut prints, &cx).await?),
            seen: HashSet::default(),
            new: KeptRows::new(work_mem),
            target,
        };
        let mut row = Row::new();
        while next(&mut run.execution, cx.env, txn, &mut row).await? {
            change.row(&row, &mut prints, &cx).await?;
        }
        change.finish(&cx).await
    }

    async fn rows_there(
        &self,
        target: &Target,
        prints: &mut Prints,
        cx: &Context<'_>,
    ) -> Result<Old> {
        let mut old = Old::default();
        let mut count = 0;
        let mut scan = PageRows::new(&target.table, cx.txn.snapshot()).await?;
        let mut page: Vec<(RowRef, Row)> = Vec::new();
        while scan.next(&mut page).await? {
            self.handle.cancel_flag().check()?;
            for (at, row) in &page {
                count += 1;
                match count * ENTRY > cx.work_mem {
                    true => remove(target, *at, cx).await?,
                    false => {
                        let print = prints.of(&target.table.layout, row)?;
                        old.entry(print).or_default().push(*at);
                    }
                }
            }
        }
        Ok(old)
    }
}

/// A refresh under way.
struct Change {
    target: Target,
    /// Rows that the query has not given yet; none once those have gone.
    old: Option<Old>,
    /// Rows that it has given, without NULLs.
    seen: HashSet<Print, FixedState>,
    new: KeptRows,
}

impl Change {
    async fn row(&mut self, row: &Row, prints: &mut Prints, cx: &Context<'_>) -> Result<()> {
        let print = prints.of(&self.target.table.layout, row)?;
        let room = self.seen.len() * ENTRY < cx.work_mem;
        if room && !row.iter().any(Datum::is_null) && !self.seen.insert(print) {
            return Err(twice(self.target.def(), row, cx));
        }
        if let Some(old) = &mut self.old {
            if let Some(same) = old.get_mut(&print)
                && same.pop().is_some()
            {
                return Ok(());
            }
            if self.new.keep(row).is_ok() {
                return Ok(());
            }
            self.finish(cx).await?;
        }
        write::insert_row(&self.target, row, cx).await.map(|_| ())
    }

    /// The old rows that were not given again go, and the new ones kept come.
    async fn finish(&mut self, cx: &Context<'_>) -> Result<()> {
        for at in self.old.take().into_iter().flatten().flat_map(|(_, at)| at) {
            remove(&self.target, at, cx).await?;
        }
        for row in std::mem::take(&mut self.new.rows) {
            write::insert_row(&self.target, &row, cx).await?;
        }
        Ok(())
    }
}

async fn remove(target: &Target, at: RowRef, cx: &Context<'_>) -> Result<()> {
    cx.env.store.pool.wal().check_space()?;
    cx.txn.xid();
    let mut turn = RowTurn::default();
    match target.table.rows().delete(cx.txn, at, &mut turn).await? {
        RowOutcome::Done(()) => Ok(()),
        // Who refreshes is alone with the rows.
        _ => Err(Error::internal(
            "a materialized view's row was changed beside",
        )),
    }
}

fn twice(def: &TableDef, row: &[Datum], cx: &Context<'_>) -> Error {
    let message = format!(
        "new data for materialized view \"{}\" contains duplicate rows without any null columns",
        def.name
    );
    let record = Record {
        types: def.live_columns().map(|(_, c)| c.ty.oid).collect(),
        names: None,
        values: row.to_vec(),
    };
    let mut shown = Vec::new();
    output_text(
        &cx.env.eval,
        &Datum::Record(Arc::new(record)),
        SqlType::RECORD,
        &mut shown,
    );
    Error::new(state::CARDINALITY_VIOLATION, message)
        .detail(format!("Row: {}", String::from_utf8_lossy(&shown)))
}
