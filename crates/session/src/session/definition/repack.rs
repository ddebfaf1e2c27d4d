//! CLUSTER, and the packing anew that it shares with VACUUM FULL.
//!
//! Versions are copied as they are, with who made and who ended them: a transaction that began
//! before sees what it would have seen. Large values are copied with their versions.

use std::sync::Arc;

use throng_access::heap::VisibleVersion;
use throng_access::{TupleHeader, Visibility};
use throng_bind::command::Ddl;
use throng_buffer::{Ring, retry};
use throng_catalog::{Catalog, Relation, TableDef};
use throng_txn::LockMode;
use throng_types::error::{Severity, state};
use throng_types::{Datum, Error, FileId, Oid, Result};
use throng_values::acl::right;

use crate::session::Session;
use crate::session::definition::ddl::gone;
use crate::session::definition::keys::Keys;
use throng_exec::client::Client;
use throng_exec::large;
use throng_exec::run::Row;
use throng_exec::run::context::Env;
use throng_exec::table::{Index, Table};
use throng_exec::write::index_expression::Terms;

/// Shows all that a heap holds: one that this transaction has just filled.
pub(in crate::session) struct EveryVersion;

impl Visibility for EveryVersion {
    fn visible(&self, _: &TupleHeader) -> bool {
        true
    }
}

/// The old heap of a table and its new one.
struct Repacking<'a> {
    source: Table,
    target: Table,
    txn: &'a throng_txn::Txn,
    live: i64,
    ending: i64,
}

/// What rows are put in order by.
struct Order<'a> {
    index: &'a Index,
    terms: Option<Terms>,
    env: Env<'a>,
}

impl Session {
    /// CLUSTER of a table by one of its indexes; of a partitioned one, of each partition by the
    /// index's part.
    pub(in crate::session) async fn cluster(
        &mut self,
        table: Oid,
        index: Oid,
        client: &mut dyn Client,
    ) -> Result<()> {
        let txn = &self.transaction()?.txn;
        txn.lock_relation(table, LockMode::AccessExclusive).await?;
        let catalog = self.catalog();
        let def = catalog.table(table).ok_or_else(|| {
            let message = format!("relation with OID {table} does not exist");
            Error::new(state::UNDEFINED_TABLE, message)
        })?;
        if !def.is_partitioned() {
            return self.cluster_one(table, index, client).await;
        }
        self.must_be_outside_block("CLUSTER")?;
        if !covers(&catalog, table, index) {
            let name = catalog.index(index).map_or("", |i| &i.name);
            let message = format!("cannot cluster on invalid index \"{name}\"");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let parts = parts_of(&catalog, index);
        self.commit().await?;
        self.cluster_each(parts, false, client).await
    }

    /// CLUSTER of all that was clustered before.
    pub(in crate::session) async fn cluster_all(&mut self, client: &mut dyn Client) -> Result<()> {
        self.must_be_outside_block("CLUSTER")?;
        let catalog = self.catalog();
        let marked = catalog.indexes().into_iter().filter(|i| i.clustered);
        let marked = marked.map(|index| (index.table, index.oid)).collect();
        self.cluster_each(marked, true, client).await
    }

    /// Tables by their indexes, each in a transaction of its own. `marked`: only while it is what
    /// they are clustered by.
    async fn cluster_each(
        &mut self,
        tables: Vec<(Oid, Oid)>,
        marked: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        for (table, index) in tables {
            self.begin_if_idle();
            let catalog = self.catalog();
            if let Some(relation) = catalog.relation(table)
                && self.may_cluster(&catalog, &relation, client)
            {
                let txn = &self.transaction()?.txn;
                txn.lock_relation(table, LockMode::AccessExclusive).await?;
                let catalog = self.catalog();
                let there = catalog.table(table).is_some();
                let found = catalog.index(index).filter(|_| there);
                if found.is_some_and(|i| i.table == table && (i.clustered || !marked)) {
                    self.cluster_one(table, index, client).await?;
                }
            }
            self.commit().await?;
        }
        self.begin_if_idle();
        Ok(())
    }

    async fn cluster_one(&mut self, table: Oid, index: Oid, client: &mut dyn Client) -> Result<()> {
        let order = Some(index);
        let (_, notices) = self.define(&Ddl::Repack { table, order }).await?;
        self.notices(notices, client);
        Ok(())
    }

    fn may_cluster(&self, catalog: &Catalog, relation: &Relation, client: &mut dyn Client) -> bool {
        if catalog.relation_rights(self.role().oid, relation, right::MAINTAIN) != 0 {
            return true;
        }
        let message = format!(
            "permission denied to cluster \"{}\", skipping it",
            relation.name()
        );
        let warning = Error::new(state::INSUFFICIENT_PRIVILEGE, message);
        self.notices(vec![warning.severity(Severity::Warning)], client);
        false
    }

    /// Copies what is in the file `from`, the table's old heap, into its new one.
    pub(in crate::session) async fn repack(
        &self,
        table: Oid,
        from: FileId,
        order: Option<Oid>,
        before: &Arc<Catalog>,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let new_def = catalog.table(table).ok_or_else(|| gone("table"))?;
        let old_def = before.table(table).ok_or_else(|| gone("table"))?;
        let old_def = Arc::new(TableDef {
            file: from,
            ..old_def.as_ref().clone()
        });
        let store = &self.engine.store;
        let host = self.host(catalog);
        let ctx = host.eval();
        let txn = &self.transaction()?.txn;
        txn.assign_top_xid();
        let mut repacking = Repacking {
            source: Table::unshared(&old_def, store, &ctx)?,
            target: Table::unshared(new_def, store, &ctx)?,
            txn,
            live: 0,
            ending: 0,
        };
        match order {
            None => self.copy_in_place_order(&mut repacking).await?,
            Some(index) => {
                let def = catalog.index(index).ok_or_else(|| gone("index"))?;
                let index = Index::of(def, new_def, store);
                let snapshot = txn.latest_snapshot();
                let env = self.env(catalog, &host, &snapshot, &[]);
                let order = Order {
                    terms: Terms::of(def, new_def, env)?,
                    index: &index,
                    env,
                };
                self.copy_in_key_order(&mut repacking, &order).await?;
            }
        }
        let rel = repacking.target.heap.rel();
        rel.set_counts(repacking.live, repacking.ending, 0);
        Ok(())
    }

    async fn copy_in_place_order(&self, repacking: &mut Repacking<'_>) -> Result<()> {
        let end = retry(|| repacking.source.heap.blocks()).await?;
        let mut ring = Ring::for_scan(repacking.source.heap.pool(), end);
        for block in 0..end {
            self.handle.cancel_flag().check()?;
            for version in repacking.versions(block, &mut ring).await? {
                repacking.copy(&version).await?;
            }
            // Others on this core get their turn after each page.
            throng_exec::turns::next_turn().await;
        }
        Ok(())
    }

    async fn copy_in_key_order(
        &self,
        repacking: &mut Repacking<'_>,
        order: &Order<'_>,
    ) -> Result<()> {
        let end = retry(|| repacking.source.heap.blocks()).await?;
        let mut ring = Ring::for_scan(repacking.source.heap.pool(), end);
        let mut keys = Keys::default();
        let mut key = Vec::new();
        for block in 0..end {
            self.handle.cancel_flag().check()?;
            for version in repacking.versions(block, &mut ring).await? {
                let row = repacking.row(&version.row).await?;
                let computed = match &order.terms {
                    Some(terms) => terms.of_row(&row, order.env).await?.unwrap_or_default(),
                    None => Row::new(),
                };
                key.clear();
                let any_null = order.index.append_key(&row, &computed, &mut key)?;
                keys.push(&key, version.tid, any_null);
            }
            throng_exec::turns::next_turn().await;
        }
        let keys = tokio::task::spawn_blocking(move || keys.sorted())
            .await
            .map_err(|e| Error::internal(format!("sorting keys: {e}")))?;
        for (i, (_, tid)) in keys.iter().enumerate() {
            let (source, txn) = (&repacking.source.heap, repacking.txn);
            let version = retry(|| source.kept_version(tid, txn)).await?;
            let version = version.ok_or_else(|| Error::corrupted("a row has gone"))?;
            repacking.copy(&version).await?;
            if i % 100 == 0 {
                self.handle.cancel_flag().check()?;
                throng_exec::turns::next_turn().await;
            }
        }
        Ok(())
    }
}

impl Repacking<'_> {
    async fn versions(&self, block: u32, ring: &mut Ring) -> Result<Vec<VisibleVersion>> {
        let mut found = Vec::new();
        retry(|| {
            found.clear();
            let heap = &self.source.heap;
            heap.kept_versions(block, self.txn, ring, &mut found)
        })
        .await?;
        Ok(found)
    }

    /// A version's values, those fetched that are kept outside of it.
    async fn row(&self, bytes: &[u8]) -> Result<Row> {
        let columns = self.source.def.columns.len();
        let mut row: Vec<Datum> = Vec::with_capacity(columns);
        self.source.decode(bytes, columns, &mut row)?;
        self.source.read_external(&mut row).await?;
        Ok(row)
    }

    async fn copy(&mut self, version: &VisibleVersion) -> Result<()> {
        let row = self.row(&version.row).await?;
        let (heap, txn) = (&self.target.heap, self.txn);
        let bytes = large::encode(heap, txn, &self.target.layout, &row).await?;
        retry(|| heap.insert_kept(txn, &version.header, &bytes)).await?;
        if version.is_ending() {
            self.ending += 1;
            // Nobody will delete a row that is deleted already, and let go of its large values
            // then: they go with this transaction.
            self.target.rows().let_go(txn, &bytes, &[]).await?;
        } else {
            self.live += 1;
        }
        Ok(())
    }
}

/// Whether every partition below a table has its part of the index: one made for the table alone
/// may lack some.
fn covers(catalog: &Catalog, table: Oid, index: Oid) -> bool {
    catalog.children_of(table).iter().all(|child| {
        let parts = catalog.indexes_of(*child);
        let part = parts.iter().find(|i| i.parent == Some(index));
        part.is_some_and(|part| covers(catalog, *child, part.oid))
    })
}

/// The partitions that have rows, each with the part of the index that is on it.
fn parts_of(catalog: &Catalog, index: Oid) -> Vec<(Oid, Oid)> {
    let mut above = vec![index];
    let mut next = 0;
    let mut parts = Vec::new();
    while let Some(whole) = above.get(next).copied() {
        next += 1;
        for part in catalog.indexes() {
            if part.parent != Some(whole) {
                continue;
            }
            match catalog.table(part.table) {
                Some(table) if table.is_partitioned() => above.push(part.oid),
                Some(table) => parts.push((table.oid, part.oid)),
                None => {}
            }
        }
    }
    parts
}
