//! What a definition checks of each row of a table: a walk over its pages, which a cancel ends.

use std::sync::Arc;

use throng_catalog::{Catalog, IndexDef, TableDef};
use throng_txn::rows::RowRef;
use throng_types::{Datum, Error, Result, Tid};

use crate::session::Session;
use throng_exec::rows::PageRows;
use throng_exec::run::Row;
use throng_exec::table::Table;
use throng_exec::write;

impl Session {
    /// Checks each row of a table, and where its version is.
    pub(in crate::session) async fn each_row(
        &self,
        def: &Arc<TableDef>,
        catalog: &Arc<Catalog>,
        mut check: impl FnMut(&[Datum], Tid) -> Result<()>,
    ) -> Result<()> {
        let host = self.host(catalog);
        let table = Table::unshared(def, &self.engine.store, &host.eval())?;
        let mut scan = PageRows::new(&table, self.transaction()?.txn.latest_snapshot()).await?;
        let mut page: Vec<(RowRef, Row)> = Vec::new();
        while scan.next(&mut page).await? {
            self.handle.cancel_flag().check()?;
            for (at, row) in &page {
                check(row, at.tid)?;
            }
        }
        Ok(())
    }

    /// The same where the check itself looks into tables, with the definitions in `catalog`.
    /// 23P01 where rows of a new index's table are in conflict, if that index excludes any.
    pub(in crate::session) async fn check_exclusion(
        &self,
        index: &IndexDef,
        mut roots: Vec<Tid>,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        if roots.is_empty() {
            return Ok(());
        }
        let host = self.host(catalog);
        let txn = &self.transaction()?.txn;
        let snapshot = txn.latest_snapshot();
        let cx = write::Context {
            env: self.env(catalog, &host, &snapshot, &[]),
            txn,
            work_mem: self.work_mem(),
            deferred: &self.deferred,
        };
        let gone = || Error::internal("an index that is not its table's");
        let def = catalog.table(index.table).ok_or_else(gone)?;
        let target = write::Target::of(def, &cx)?;
        let mut indexes = target.indexes.iter();
        let number = indexes.position(|i| i.def.oid == index.oid);
        // The first that is refused is the first in the heap.
        roots.sort_unstable();
        write::exclusion::check_all(&target, number.ok_or_else(gone)?, &roots, &cx).await
    }

    pub(in crate::session) async fn each_row_in(
        &self,
        def: &Arc<TableDef>,
        catalog: &Arc<Catalog>,
        mut check: impl AsyncFnMut(&[Datum], &write::Context<'_>) -> Result<()>,
    ) -> Result<()> {
        let host = self.host(catalog);
        let txn = &self.transaction()?.txn;
        let table = Table::unshared(def, &self.engine.store, &host.eval())?;
        let mut scan = PageRows::new(&table, txn.latest_snapshot()).await?;
        let mut page: Vec<(RowRef, Row)> = Vec::new();
        while scan.next(&mut page).await? {
            self.handle.cancel_flag().check()?;
            let snapshot = txn.latest_snapshot();
            let cx = write::Context {
                env: self.env(catalog, &host, &snapshot, &[]),
                txn,
                work_mem: self.work_mem(),
                deferred: &self.deferred,
            };
            for (_, row) in &page {
                check(row, &cx).await?;
            }
        }
        Ok(())
    }
}
