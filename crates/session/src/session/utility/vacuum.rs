//! VACUUM and ANALYZE, when asked for.

use std::sync::Arc;
use std::time::Duration;

use throng_access::Heap;
use throng_bind::command::{Ddl, Maintained, VacuumOptions};
use throng_buffer::{retry, retry_blocking};
use throng_txn::vacuum::CostDelay;
use throng_txn::{LockMode, LockTag};
use throng_types::error::{Severity, state};
use throng_types::{Error, Oid, Result};
use throng_values::settings::Id;
use throng_values::settings::value::parse_bool;

use crate::cleaner;
use crate::maintenance::By;
use crate::session::{Session, now};
use throng_exec::client::Client;

impl Session {
    /// Cleans tables, each in a transaction of its own so that its lock is short.
    pub(in crate::session) async fn vacuum(
        &mut self,
        tables: Vec<Maintained>,
        options: VacuumOptions,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.must_be_outside_block("VACUUM")?;
        let tables = match options.skip_locked {
            true => self.not_locked(tables, "vacuum", client)?,
            false => self.still_there(tables).await?,
        };
        for one in tables {
            // What was looked at for the table before is nothing to this one.
            self.commit().await?;
            self.begin_if_idle();
            let mode = match options.full {
                true => LockMode::AccessExclusive,
                false => LockMode::ShareUpdateExclusive,
            };
            let skip = options.skip_locked;
            if !self.lock_one(&one, "vacuum", mode, skip, client).await? {
                continue;
            }
            if !options.skip_main {
                self.vacuum_table(one.table, &options, client).await?;
            }
            if options.analyze {
                self.commit().await?;
                self.begin_if_idle();
                self.analyze_one(&one, skip, client).await?;
            }
        }
        self.commit().await?;
        self.begin_if_idle();
        Ok(())
    }

    async fn vacuum_table(
        &mut self,
        table: Oid,
        options: &VacuumOptions,
        client: &mut dyn Client,
    ) -> Result<()> {
        let catalog = Arc::clone(&self.catalog());
        let Some(def) = catalog.table(table).filter(|t| !t.is_partitioned()) else {
            return Ok(());
        };
        if options.full {
            return self.vacuum_full(def.oid, client).await;
        }
        let def = def.clone();
        let of_table = def.options.iter().find(|(n, _)| n == "vacuum_truncate");
        let (limit, delay, truncate) = {
            let settings = self.settings.borrow();
            (
                settings.int(Id::VacuumCostLimit) as u32,
                settings.real(Id::VacuumCostDelay) / 1000.0,
                options
                    .truncate
                    .or_else(|| parse_bool(&of_table?.1))
                    .unwrap_or_else(|| settings.bool(Id::VacuumTruncate)),
            )
        };
        let began = now();
        let engine = self.engine.clone();
        let heap = engine.store.relations.heap(def.file);
        let flag = self.handle.entry().clone();
        // Cleaning waits for pages and the log: it has a thread to itself.
        let cleaned = tokio::task::spawn_blocking(move || {
            let stop = || flag.cancel_flag().check().is_err();
            let mut pacing = CostDelay::new(limit, Duration::from_secs_f64(delay), stop);
            cleaner::clean(&engine, &catalog, &def, &mut pacing)
        })
        .await
        .map_err(|e| Error::internal(format!("VACUUM: {e}")))??;
        if cleaned.stopped {
            self.handle.cancel_flag().check()?;
        }
        let maintenance = &self.engine.maintenance;
        maintenance.vacuumed(table, By::Statement, began);
        match truncate {
            true => self.truncate_tail(table, heap).await,
            false => Ok(()),
        }
    }

    /// Cuts empty pages off a table's end, if it is worth it and nobody uses the table.
    async fn truncate_tail(&mut self, table: Oid, heap: Heap) -> Result<()> {
        /// PostgreSQL's measures of what is worth it: so many pages, or such a part of them.
        const PAGES: u32 = 1000;
        const PART: u32 = 16;
        let (blocks, keep) = retry(|| heap.kept_blocks()).await?;
        let gain = blocks - keep;
        let worth = gain > 0 && (gain >= PAGES || gain >= blocks / PART);
        let tag = LockTag::Relation(table);
        let txn = &self.transaction()?.txn;
        if worth && txn.try_lock(tag, LockMode::AccessExclusive) {
            tokio::task::spawn_blocking(move || retry_blocking(|| heap.truncate_tail()))
                .await
                .map_err(|e| Error::internal(format!("VACUUM: {e}")))??;
        }
        Ok(())
    }

    async fn vacuum_full(&mut self, table: Oid, client: &mut dyn Client) -> Result<()> {
        let engine = self.engine.clone();
        // Else what was deleted a moment ago would be taken along for transactions that are gone.
        tokio::task::spawn_blocking(move || engine.sys.advance_horizon(true))
            .await
            .map_err(|e| Error::internal(format!("VACUUM: {e}")))??;
        let order = None;
        let (_, notices) = self.define(&Ddl::Repack { table, order }).await?;
        self.notices(notices, client);
        Ok(())
    }

    /// Gathers statistics about tables; outside a block, each in a transaction of its own.
    pub(in crate::session) async fn analyze(
        &mut self,
        tables: Vec<Maintained>,
        skip_locked: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        let tables = match skip_locked {
            true => self.not_locked(tables, "analyze", client)?,
            false => self.still_there(tables).await?,
        };
        for one in tables {
            if !self.is_in_block() {
                self.commit().await?;
                self.begin_if_idle();
            }
            self.analyze_one(&one, skip_locked, client).await?;
        }
        Ok(())
    }

    /// ANALYZE inside a function, and so inside its transaction.
    pub(in crate::session) async fn analyze_inside(
        &self,
        tables: Vec<Maintained>,
        skip_locked: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        let tables = match skip_locked {
            true => self.not_locked(tables, "analyze", client)?,
            false => self.still_there(tables).await?,
        };
        for one in tables {
            self.analyze_one(&one, skip_locked, client).await?;
        }
        Ok(())
    }

    /// The tables, once those that were named may be looked at; 42P01 if one of them has gone
    /// meanwhile.
    async fn still_there(&self, tables: Vec<Maintained>) -> Result<Vec<Maintained>> {
        for one in &tables {
            let Some(name) = &one.name else { continue };
            let txn = &self.transaction()?.txn;
            txn.lock_relation(one.table, LockMode::AccessShare).await?;
            if self.catalog().table(one.table).is_none() {
                let message = format!("relation \"{name}\" does not exist");
                return Err(Error::new(state::UNDEFINED_TABLE, message));
            }
        }
        Ok(tables)
    }

    /// Without the tables whose names lead to their children, and that others have locked against
    /// being looked at.
    fn not_locked(
        &self,
        tables: Vec<Maintained>,
        verb: &str,
        client: &mut dyn Client,
    ) -> Result<Vec<Maintained>> {
        let txn = &self.transaction()?.txn;
        let is_parent = |one: &Maintained| tables.iter().any(|t| t.child_of == Some(one.table));
        let free = |table| txn.try_lock(LockTag::Relation(table), LockMode::AccessShare);
        let named = tables.iter().filter(|one| one.name.is_some());
        let (mut locked, mut warnings) = (Vec::new(), Vec::new());
        for one in named.filter(|one| is_parent(one) && !free(one.table)) {
            locked.push(one.table);
            warnings.extend(skipping(one, verb, true));
        }
        self.notices(warnings, client);
        let left = |one: &Maintained| {
            !locked.contains(&one.table) && one.child_of.is_none_or(|t| !locked.contains(&t))
        };
        Ok(tables.into_iter().filter(left).collect())
    }

    /// Locks a table; false where it is locked by others, or gone, which is told of one that was
    /// named.
    async fn lock_one(
        &self,
        one: &Maintained,
        verb: &str,
        mode: LockMode,
        skip_locked: bool,
        client: &mut dyn Client,
    ) -> Result<bool> {
        let txn = &self.transaction()?.txn;
        let locked = if skip_locked {
            txn.try_lock(LockTag::Relation(one.table), mode)
        } else {
            txn.lock_relation(one.table, mode).await?;
            true
        };
        if locked && self.catalog().table(one.table).is_some() {
            return Ok(true);
        }
        let warning = skipping(one, verb, !locked);
        self.notices(warning.into_iter().collect(), client);
        Ok(false)
    }

    async fn analyze_one(
        &self,
        one: &Maintained,
        skip_locked: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        let mode = LockMode::ShareUpdateExclusive;
        match self
            .lock_one(one, "analyze", mode, skip_locked, client)
            .await?
        {
            true => self.analyze_table(one.table, &one.columns).await,
            false => Ok(()),
        }
    }
}

/// The warning about a table that was named and is passed over.
fn skipping(one: &Maintained, verb: &str, locked: bool) -> Option<Error> {
    let name = one.name.as_ref()?;
    let (code, why) = match locked {
        true => (state::LOCK_NOT_AVAILABLE, "lock not available"),
        false => (state::UNDEFINED_TABLE, "relation no longer exists"),
    };
    let message = format!("skipping {verb} of \"{name}\" --- {why}");
    Some(Error::new(code, message).severity(Severity::Warning))
}
