//! ALTER TABLE … DETACH PARTITION.
//!
//! ```text
//!              ┌── transaction 1 ──┐                                          ┌── transaction 2 ──┐
//! CONCURRENTLY  the partition is     who has locked the table is waited for:   it becomes a table
//!               marked, its keys     nobody plans with the partition any       of its own
//!               are nobody's         more, nobody is kept waiting
//! ```
//! Cancelled between the two, the rest is FINALIZE's.

use std::sync::Arc;

use throng_bind::command::{Ddl, Detach};
use throng_catalog::Catalog;
use throng_txn::LockMode;
use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::session::Session;
use throng_exec::client::Client;
use throng_exec::write;

/// How the table and the partition are locked.
pub(in crate::session) fn strengths(step: Detach) -> (LockMode, LockMode) {
    use LockMode::{AccessExclusive, ShareUpdateExclusive};
    match step {
        Detach::AtOnce => (AccessExclusive, AccessExclusive),
        Detach::Concurrently | Detach::Begin(_) => (ShareUpdateExclusive, ShareUpdateExclusive),
        Detach::Finish => (ShareUpdateExclusive, AccessExclusive),
    }
}

impl Session {
    pub(in crate::session) async fn run_detach(
        &mut self,
        table: Oid,
        partition: Oid,
        step: Detach,
        client: &mut dyn Client,
    ) -> Result<()> {
        match step {
            Detach::Concurrently => self.detach_concurrently(table, partition).await?,
            step => {
                if step == Detach::Finish {
                    self.wait_for_who_sees(partition).await?;
                }
                self.detach(table, partition, step).await?;
            }
        }
        client.command_complete("ALTER TABLE");
        Ok(())
    }

    async fn detach(&mut self, table: Oid, partition: Oid, step: Detach) -> Result<()> {
        let ddl = Ddl::DetachPartition {
            table,
            partition,
            step,
        };
        self.define(&ddl).await.map(drop)
    }

    async fn detach_concurrently(&mut self, table: Oid, partition: Oid) -> Result<()> {
        self.must_be_outside_block("ALTER TABLE ... DETACH CONCURRENTLY")?;
        let catalog = self.definitions();
        let name = |oid: Oid| {
            catalog
                .table(oid)
                .map_or_else(String::new, |t| t.name.clone())
        };
        let xid = self.transaction()?.txn.assign_top_xid();
        self.detach(table, partition, Detach::Begin(xid)).await?;
        self.commit().await?;
        self.begin_if_idle();
        let txn = &self.transaction()?.txn;
        txn.wait_for_holders(table, LockMode::AccessExclusive)
            .await?;
        let (of_table, of_partition) = strengths(Detach::Finish);
        txn.lock_relation(table, of_table).await?;
        txn.lock_relation(partition, of_partition).await?;
        let now = self.definitions();
        let removed = match (now.table(table), now.table(partition)) {
            (None, _) => Some(format!("partitioned table \"{}\"", name(table))),
            (_, None) => Some(format!("partition \"{}\"", name(partition))),
            _ => None,
        };
        if let Some(what) = removed {
            let message = format!("{what} was removed concurrently");
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        self.lock_who_points(partition).await?;
        self.detach(table, partition, Detach::Finish).await
    }

    /// Locks the tables whose foreign keys lose a part with the partition: what checks that part's
    /// rows goes.
    async fn lock_who_points(&mut self, partition: Oid) -> Result<()> {
        let catalog = self.definitions();
        let txn = &self.transaction()?.txn;
        let mut tables: Vec<Oid> = Vec::new();
        let part = catalog.table(partition);
        for above in part.map_or_else(Vec::new, |p| catalog.ancestors(p)) {
            tables.extend(catalog.referencing(above).iter().map(|c| c.table));
        }
        tables.sort_unstable();
        tables.dedup();
        for table in tables {
            txn.lock_relation(table, LockMode::AccessExclusive).await?;
        }
        Ok(())
    }

    /// Waits for who still takes what is being detached for a partition.
    async fn wait_for_who_sees(&mut self, partition: Oid) -> Result<()> {
        let catalog = self.definitions();
        let txn = &self.transaction()?.txn;
        match catalog.table(partition).and_then(|t| t.detaching) {
            Some(xid) => txn.wait_for_older_snapshots(xid).await,
            None => Ok(()),
        }
    }

    /// 23503 if a row of a foreign key's table points at a row of `partition`; `catalog`: in which
    /// it is one.
    pub(in crate::session) async fn check_points_elsewhere(
        &self,
        constraint: Oid,
        partition: Oid,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let gone = || Error::internal("what is detached is gone");
        let constraint = catalog.constraint(constraint).ok_or_else(gone)?;
        let def = catalog.table(constraint.table).ok_or_else(gone)?;
        let host = self.host(catalog);
        let part = catalog.table(partition).ok_or_else(gone)?;
        let leaves = catalog.leaves(part, host.eval())?;
        self.each_row_in(
            def,
            catalog,
            async |row, cx| match write::foreign::points_into(constraint, row, &leaves, cx).await? {
                true => Err(write::foreign::partition_goes(part, constraint, row, cx)?),
                false => Ok(()),
            },
        )
        .await
    }
}
