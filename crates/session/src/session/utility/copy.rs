//! COPY, as a statement: who may copy what, in which transaction.

use std::path::PathBuf;
use std::sync::Arc;

use throng_bind::binder;
use throng_bind::command::{Copy, CopyOptions, CopySubject, CopyTarget};
use throng_bind::query::BoundQuery;
use throng_catalog::{Relation, TableDef};
use throng_exec::drive::Returning;
use throng_plan::StatementTag;
use throng_types::error::state;
use throng_types::{Error, Oid, Result};
use throng_values::settings::Id;

use crate::session::Session;
use crate::session::definition::in_use::Held;
use crate::session::statement::query::Rows;
use throng_exec::client::Client;
use throng_exec::copy::{Load, Records, Sink, Source};
use throng_exec::write;
use throng_txn::LockMode;

impl Session {
    /// Runs a COPY to its end; the number of rows.
    pub(in crate::session) async fn run_copy(
        &mut self,
        copy: Copy,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let Copy {
            subject,
            target,
            options,
        } = copy;
        let from = matches!(subject, CopySubject::From { .. });
        self.may_copy(&target, if from { "from" } else { "to" })?;
        match subject {
            CopySubject::From {
                table,
                columns,
                defaults,
                domains,
                generated,
                checks,
                filter,
                routing,
            } => {
                let table = self.table_to_load(table, &options).await?;
                // All leaves: which of them get rows is not known.
                for leaf in routing.iter().flat_map(|r| &r.tree.leaves) {
                    self.table_to_load(leaf.oid, &options).await?;
                }
                let notices = self.settings.borrow().text(Id::ClientMinMessages) == "notice";
                let load = Load {
                    table,
                    columns,
                    defaults,
                    domains,
                    generated,
                    checks,
                    filter,
                    routing,
                    options,
                    notices,
                };
                self.copy_from(load, target, client).await
            }
            CopySubject::To { query } => self.copy_to(*query, options, target, client).await,
        }
    }

    /// Files beside the server and programs are for superusers.
    fn may_copy(&self, target: &CopyTarget, way: &str) -> Result<()> {
        let (what, role) = match (target, way) {
            (CopyTarget::Client, _) => return Ok(()),
            (CopyTarget::File(_), "from") => ("from a file", "pg_read_server_files"),
            (CopyTarget::File(_), _) => ("to a file", "pg_write_server_files"),
            (CopyTarget::Program(_), _) => (
                "to or from an external program",
                "pg_execute_server_program",
            ),
        };
        let catalog = self.catalog();
        let needed = catalog.role_by_name(role).map_or(Oid::NONE, |r| r.oid);
        if !catalog.acts_as(self.role().oid, needed) {
            let message = format!("permission denied to COPY {what}");
            let detail =
                format!("Only roles with privileges of the \"{role}\" role may COPY {what}.");
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message)
                .detail(detail)
                .hint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."));
        }
        match target {
            CopyTarget::Program(_) => {
                Err(Error::unsupported("COPY to or from an external program"))
            }
            _ => Ok(()),
        }
    }

    /// The table, locked, if it may be written to as the options want.
    async fn table_to_load(&mut self, oid: Oid, options: &CopyOptions) -> Result<Arc<TableDef>> {
        if let Some(view @ Relation::View(_)) = self.catalog().relation(oid) {
            let txn = &self.transaction()?.txn;
            txn.lock_relation(oid, LockMode::RowExclusive).await?;
            self.must_be_writable("COPY FROM")?;
            let columns = binder::columns_of(&view);
            return columns.ok_or_else(|| Error::internal("a view without columns"));
        }
        let bound = self.catalog().table(oid).cloned();
        self.transaction()?
            .txn
            .lock_relation(oid, LockMode::RowExclusive)
            .await?;
        let table = self.catalog().table(oid).cloned();
        let table = match (table, bound) {
            (Some(table), Some(bound)) if Arc::ptr_eq(&table, &bound) || *table == *bound => table,
            (Some(table), _) => {
                let message = format!(
                    "the definition of table \"{}\" changed while COPY waited for it",
                    table.name
                );
                return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                    .hint("Run the statement again."));
            }
            (None, _) => {
                let message = format!("relation with OID {oid} does not exist");
                return Err(Error::new(state::UNDEFINED_TABLE, message));
            }
        };
        self.must_be_writable("COPY FROM")?;
        if options.freeze && table.is_partitioned() {
            let message = "cannot perform COPY FREEZE on a partitioned table";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        if options.freeze && !self.is_file_of_this_level(&table) {
            return Err(Error::new(
                state::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction",
            ));
        }
        Ok(table)
    }

    async fn copy_from(
        &mut self,
        load: Load,
        target: CopyTarget,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let mut source = match target {
            CopyTarget::File(path) => {
                let directory = PathBuf::from(self.settings.borrow().text(Id::DataDirectory));
                Source::open(&path, &directory).await?
            }
            _ => Source::Client,
        };
        let leaves = load.routing.iter().flat_map(|r| &r.tree.leaves);
        let leaves = leaves.map(|leaf| leaf.oid);
        let loaded = std::iter::once(load.table.oid).chain(leaves).collect();
        let catalog = self.catalog();
        let work_mem = self.work_mem();
        self.transaction()?.used.set(true);
        let host = self.host(&catalog);
        let txn = &self.transaction()?.txn;
        let snapshot = txn.snapshot();
        let env = self.env(&catalog, &host, &snapshot, &[]);
        let context = write::Context {
            env,
            txn,
            work_mem,
            deferred: &self.deferred,
        };
        let _using = self.in_use.hold(Held::Tables(loaded));
        let rows = load.run(&mut source, &context, client).await?;
        txn.next_command()?;
        Ok(rows)
    }

    async fn copy_to(
        &mut self,
        query: BoundQuery,
        options: CopyOptions,
        target: CopyTarget,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let plan = Arc::new(self.plan(query).await?);
        self.lock_plan(&plan, &[]).await?;
        let mut run = self.start(plan.clone(), vec![], Rows::Given)?;
        let mut sink = match target {
            CopyTarget::File(path) => Sink::create(&path).await?,
            _ => Sink::Client,
        };
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let snapshot = run.snapshot.clone();
        let env = self.env(&catalog, &host, &snapshot, &[]);
        let txn = &self.transaction()?.txn;
        let write = write::Context {
            env,
            txn,
            work_mem: self.work_mem(),
            deferred: &self.deferred,
        };
        let records = Records::begin(&options, &plan.output, &mut sink, client, env).await?;
        let mut out = Returning::Copied(records);
        if plan.tag != StatementTag::Select {
            write::run(&mut run.execution, &write, &mut out).await?;
        } else {
            write::run_first(&mut run.execution, &write).await?;
            while run.next(env, txn).await? {
                out.row(run.last(), env).await?;
            }
        }
        let rows = out.end().await?;
        txn.next_command()?;
        Ok(rows)
    }
}
