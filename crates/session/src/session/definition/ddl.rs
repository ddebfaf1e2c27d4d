//! Definitions: changed in a copy of the catalog, carried out on files and rows, published when the
//! transaction commits.
//!
//! 1. Lock what is named.
//! 2. Apply to a copy; lock what the change reached and the names it takes.
//! 3. If others published meanwhile, begin again from their catalog.
//! 4. Do the work on files and rows.
//! 5. Keep the copy as this transaction's catalog; commit writes the changed objects and publishes
//!    them.

use std::collections::HashSet;
use std::sync::Arc;

use throng_access::admit_write;
use throng_access::btree::BTree;
use throng_bind::command::{Ddl, DomainTest};
use throng_bind::definition::{self, DdlHost, Work};
use throng_bind::expr::Expr;
use throng_buffer::retry;
use throng_catalog::{Catalog, CatalogEdit, Change, TableDef};
use throng_txn::rows::RowRef;
use throng_txn::{LockMode, LockTag, WaitPolicy};
use throng_types::error::state;
use throng_types::{Datum, Error, FileId, Oid, Result};
use throng_values::func::EvalContext;
use throng_values::inverted;
use throng_values::io::output_text;
use throng_values::settings::Id;

use crate::engine::Engine;
use crate::session::Session;
use crate::session::definition::fill_index::Filling;
use crate::session::definition::locks::{
    name_lock, relation_name, relations_changed, row_locks, strength, tables_of, type_lock,
    types_of,
};
use crate::session::definition::repack::EveryVersion;
use throng_exec::client::Client;
use throng_exec::rows::PageRows;
use throng_exec::run::Row;
use throng_exec::run::context::Env;
use throng_exec::sequence;
use throng_exec::store::Store;
use throng_exec::table::{Index, Table};
use throng_exec::write;
use throng_exec::write::index_expression::Terms;

/// A file is gone: so is what memory holds about it.
fn forget_file(store: &Store, file: FileId) {
    store.relations.forget(file);
    sequence::forget(store, file);
}

/// What carrying out a definition asks of the engine.
struct DefinitionHost<'a> {
    engine: &'a Engine,
    txn: &'a throng_txn::Txn,
    env: Env<'a>,
    search_path: &'a [Oid],
    user: Oid,
    temporary: &'a str,
    database: Oid,
    /// `password_encryption` asks for MD5.
    md5: bool,
    scram_iterations: u32,
    /// Files that are named and yet to be made.
    files: Vec<FileId>,
}

impl DdlHost for DefinitionHost<'_> {
    fn next_oid(&mut self) -> Oid {
        self.engine.sys.new_oid()
    }

    fn next_file(&mut self) -> FileId {
        let file = self.txn.name_file();
        // What is known of a file in memory goes with it.
        let store = self.engine.store.clone();
        self.txn.on_abort(move || forget_file(&store, file));
        self.files.push(file);
        file
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<Option<String>> {
        let value = write::constant_blocking(expr.clone(), self.env)?;
        if value.is_null() {
            return Ok(None);
        }
        let mut text = Vec::new();
        output_text(&self.env.eval, &value, expr.ty(), &mut text);
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }

    fn password_verifier(&mut self, password: &str) -> Result<String> {
        /// Bytes of a verifier that is given as such.
        const LONGEST: usize = 512;
        if self.md5 {
            if password.len() > LONGEST {
                let message = "encrypted password is too long";
                let detail = format!("Encrypted passwords must be no longer than {LONGEST} bytes.");
                return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).detail(detail));
            }
            let message = "password encryption failed: unsupported";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Ok((self.engine.passwords.of_password)(
            password,
            self.scram_iterations,
        ))
    }

    fn opens(&self, secret: &str, password: &str) -> Option<bool> {
        (self.engine.passwords.opens)(secret, password)
    }

    fn search_path(&self) -> &[Oid] {
        self.search_path
    }

    fn current_user(&self) -> Oid {
        self.user
    }

    fn eval(&self) -> EvalContext<'_> {
        self.env.eval
    }

    fn temporary_schema(&self) -> String {
        self.temporary.to_owned()
    }

    fn is_being_named(&self, schema: Oid, name: &str) -> bool {
        let tag = name_lock(schema, name);
        self.engine.sys.is_held_beside(tag, self.txn.session())
    }

    fn needed_elsewhere(&self, role: Oid) -> Vec<(String, usize)> {
        let databases = self.engine.databases.all().into_iter();
        let others = databases.map(|database| database.catalog());
        let others = others.filter(|other| other.current_database_oid() != self.database);
        let needs = others.map(|other| {
            (
                other.current_database_name().to_owned(),
                definition::owned::needs_of(&other, role),
            )
        });
        needs.filter(|(_, count)| *count > 0).collect()
    }
}

impl Session {
    pub(in crate::session) async fn run_ddl(
        &mut self,
        ddl: Ddl,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.must_be_writable(&ddl.command())?;
        if let Ddl::DetachPartition {
            table,
            partition,
            step,
        } = ddl
        {
            return self.run_detach(table, partition, step, client).await;
        }
        if let Some(what) = ddl.alone() {
            self.must_be_outside_block(what)?;
        }
        let (rows, notices) = match &ddl {
            Ddl::Truncate { .. } => self.truncate(&ddl).await?,
            ddl => self.define(ddl).await?,
        };
        self.command_values.borrow_mut().clear();
        self.notices(notices, client);
        let tag = match rows {
            Some(rows) => format!("SELECT {rows}"),
            None => ddl.tag(),
        };
        client.command_complete(&tag);
        Ok(())
    }

    /// Locks the relations that a definition names.
    async fn lock_targets(&self, ddl: &Ddl) -> Result<()> {
        let txn = &self.transaction()?.txn;
        for (relation, mode) in tables_of(ddl, &self.definitions()) {
            let mut policy = WaitPolicy::Block;
            if ddl.concurrently().is_some() {
                // One of these at a time, and nobody else waits for it while it waits.
                txn.lock_relation(relation, LockMode::ShareUpdateExclusive)
                    .await?;
                policy = WaitPolicy::LetPast;
            }
            txn.lock(LockTag::Relation(relation), mode, policy).await?;
        }
        Ok(())
    }

    /// Locks them ahead, so that the definition is of what its names mean then.
    pub(in crate::session) async fn lock_targets_ahead(&self, ddl: &Ddl) -> Result<()> {
        let in_steps = ddl.concurrently().is_some() || ddl.alone().is_some();
        match in_steps || matches!(ddl, Ddl::DetachPartition { .. }) {
            // Each step locks what it needs, in a transaction of its own.
            true => Ok(()),
            false => self.lock_targets(ddl).await,
        }
    }

    /// Carries out a definition; the rows of CREATE TABLE AS, and notices.
    pub(in crate::session) async fn define(&self, ddl: &Ddl) -> Result<(Option<u64>, Vec<Error>)> {
        loop {
            let catalog = self.definitions();
            let seen = self.published_version.get();
            self.transaction()?.used.set(true);
            if self.is_restricted() && self.makes_temporary(ddl, &catalog) {
                let message = "cannot create temporary table within security-restricted operation";
                return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
            }
            self.lock_targets(ddl).await?;
            self.must_be_free(ddl, &catalog)?;
            let txn = &self.transaction()?.txn;
            for (ty, mode) in types_of(ddl) {
                txn.lock(type_lock(ty), mode, WaitPolicy::Block).await?;
            }
            let mut edit = CatalogEdit::new(&catalog);
            let outcome = match self.apply(&mut edit, ddl, &catalog).await {
                Err(e) if e.code() == state::DEPENDENT_OBJECTS_STILL_EXIST => {
                    // Those that depend may be about to go.
                    self.lock_dependents(ddl, &catalog).await?;
                    match self.database.version() != seen {
                        true => continue,
                        false => return Err(e),
                    }
                }
                outcome => outcome?,
            };
            let txn = &self.transaction()?.txn;
            for table in &outcome.touched {
                txn.lock_relation(*table, strength(ddl)).await?;
            }
            for table in &outcome.referenced {
                txn.lock_relation(*table, LockMode::ShareRowExclusive)
                    .await?;
            }
            let (edited, changes) = edit.finish();
            self.must_be_free_too(ddl, &outcome, &changes, &catalog)?;
            for (relation, mode) in relations_changed(&changes, &catalog) {
                txn.lock_relation(relation, mode).await?;
            }
            for change in &changes {
                let Change::Put { oid, .. } = change else {
                    continue;
                };
                let new_name = edited.object(*oid).and_then(relation_name);
                let old_name = catalog.object(*oid).and_then(relation_name);
                if let Some((schema, name)) = new_name.filter(|n| Some(*n) != old_name) {
                    txn.lock(
                        name_lock(schema, name),
                        LockMode::Exclusive,
                        WaitPolicy::Block,
                    )
                    .await?;
                }
            }
            for tag in row_locks(&changes, &catalog, &edited) {
                txn.lock(tag, LockMode::Exclusive, WaitPolicy::Block)
                    .await?;
            }
            // What others published while we waited for a lock may be about the same things.
            if self.database.version() != seen {
                continue;
            }
            let edited = Arc::new(edited);
            let mut filled = None;
            let _using = self.hold_for(ddl, &outcome.touched);
            for work in outcome.work {
                let writes = matches!(
                    work,
                    Work::Rewrite { .. }
                        | Work::Repack { .. }
                        | Work::Fill { .. }
                        | Work::Refresh(_)
                        | Work::RefreshInPlace(_)
                );
                if let Some(rows) = self.work(work, &catalog, &edited).await? {
                    filled = Some(rows);
                }
                if writes {
                    // The rows are for the indexes and checks that follow to see.
                    self.transaction()?.txn.next_command()?;
                }
            }
            self.temporary.note(&edited);
            self.keep_definitions(edited, changes, catalog.version())?;
            return Ok((filled, outcome.notices));
        }
    }

    /// Locks the views over the tables that a definition is about, and those over these.
    async fn lock_dependents(&self, ddl: &Ddl, catalog: &Catalog) -> Result<()> {
        let txn = &self.transaction()?.txn;
        let mut under: Vec<Oid> = tables_of(ddl, catalog)
            .into_iter()
            .map(|(oid, _)| oid)
            .collect();
        let mut locked: HashSet<Oid> = HashSet::new();
        while let Some(oid) = under.pop() {
            for view in catalog.views() {
                let reads = view.uses.iter().any(|used| used.object == oid);
                if reads && locked.insert(view.oid) {
                    txn.lock_relation(view.oid, LockMode::AccessExclusive)
                        .await?;
                    under.push(view.oid);
                }
            }
        }
        Ok(())
    }

    async fn apply(
        &self,
        edit: &mut CatalogEdit,
        ddl: &Ddl,
        catalog: &Arc<Catalog>,
    ) -> Result<definition::Outcome> {
        let search_path = self.search_path(catalog);
        let txn = &self.transaction()?.txn;
        let snapshot = txn.latest_snapshot();
        let host = self.host(catalog);
        let mut host = DefinitionHost {
            engine: &self.engine,
            txn,
            env: self.env(catalog, &host, &snapshot, &[]),
            search_path: &search_path,
            user: self.role().oid,
            temporary: &self.temporary.name,
            database: self.database.oid,
            md5: self.settings.borrow().text(Id::PasswordEncryption) == "md5",
            scram_iterations: self.settings.borrow().int(Id::ScramIterations) as u32,
            files: Vec::new(),
        };
        let outcome = definition::apply(edit, ddl, &mut host)?;
        let files = host.files;
        if !files.is_empty() {
            let made = tokio::task::spawn_blocking(txn.make_files(files)).await;
            made.map_err(|e| Error::internal(format!("making files: {e}")))??;
        }
        Ok(outcome)
    }

    /// One piece of work; rows, if it filled a table.
    async fn work(
        &self,
        work: Work,
        before: &Arc<Catalog>,
        edited: &Arc<Catalog>,
    ) -> Result<Option<u64>> {
        // Users' functions that it calls were chosen by the table's owner.
        let owner = owner_of_code(&work, edited);
        let _acting = owner.map(|owner| self.restricted(owner)).transpose()?;
        match work {
            // The file was made with its number.
            Work::CreateHeap(_) => {}
            Work::CreateIndex { index, build } => {
                let build = match build {
                    true => Build::Rows,
                    false => Build::Nothing,
                };
                self.create_index(index, build, edited).await?;
            }
            Work::IndexVersions(index) => {
                self.create_index(index, Build::Versions, edited).await?;
            }
            Work::Repack { table, from, order } => {
                self.repack(table, from, order, before, edited).await?;
            }
            Work::CreateSequence(oid) => {
                let def = edited.sequence(oid).ok_or_else(|| gone("sequence"))?;
                let txn = &self.transaction()?.txn;
                sequence::create(&self.engine.store, txn, def.file, def).await?;
                let (store, file) = (self.engine.store.clone(), def.file);
                txn.on_abort(move || sequence::forget(&store, file));
            }
            Work::RestartSequence { sequence, value } => {
                let def = edited.sequence(sequence).ok_or_else(|| gone("sequence"))?;
                sequence::set(&self.engine.store, def.file, value, false).await?;
            }
            Work::DropFile(file) => {
                self.carry_reads(file, before, edited)?;
                self.drop_file(file)?;
            }
            Work::Rewrite {
                table,
                from,
                old,
                values,
            } => {
                self.rewrite(table, from, &old, values, edited).await?;
            }
            Work::CheckNotNull {
                table,
                attnum,
                value,
            } => self.check_not_null(table, attnum, value, edited).await?,
            Work::CheckRows { table, name, expr } => {
                self.check_rows(table, &name, expr, edited).await?;
            }
            Work::CheckPartition {
                table,
                partition,
                default,
            } => {
                self.check_partition(table, partition, default, edited)
                    .await?;
            }
            Work::CheckDomain(test) => self.check_domain(test, edited).await?,
            Work::CheckForeignKey { constraint } => {
                self.check_foreign_key(constraint, before, edited).await?;
            }
            Work::CheckPointsElsewhere {
                constraint,
                partition,
            } => {
                self.check_points_elsewhere(constraint, partition, before)
                    .await?;
            }
            Work::Refresh(table) => self.refresh(table, edited).await?,
            Work::RefreshInPlace(table) => self.refresh_in_place(table, edited).await?,
            Work::CreateDatabase { database, template } => {
                self.create_database(database, template, edited).await?;
            }
            Work::CloseDatabase { database, force } => {
                self.close_database(database, force).await?;
            }
            Work::DropDatabase(database) => self.drop_database(database).await?,
            Work::Fill { table, query } => return self.fill(table, *query, edited).await.map(Some),
        }
        Ok(None)
    }

    /// What serializable transactions have read of a file that goes they have read of the table
    /// that stays.
    fn carry_reads(&self, file: FileId, before: &Catalog, edited: &Catalog) -> Result<()> {
        let txn = &self.transaction()?.txn;
        if !txn.is_read(file) {
            return Ok(());
        }
        txn.wrote_all(file)?;
        let has_file = |table: &&Arc<TableDef>| {
            let indexes = before.indexes_of(table.oid);
            table.file == file || indexes.iter().any(|index| index.file == file)
        };
        let table = before.tables().into_iter().find(has_file);
        if let Some(stays) = table.and_then(|table| edited.table(table.oid)) {
            txn.moved_to(file, stays.file);
        }
        Ok(())
    }

    pub(in crate::session) fn drop_file(&self, file: FileId) -> Result<()> {
        let txn = &self.transaction()?.txn;
        txn.drop_file(file);
        let store = self.engine.store.clone();
        txn.on_commit(move |_| forget_file(&store, file));
        Ok(())
    }

    async fn create_index(&self, index: Oid, build: Build, catalog: &Arc<Catalog>) -> Result<()> {
        let def = catalog.index(index).ok_or_else(|| gone("index"))?;
        let table_def = catalog.table(def.table).ok_or_else(|| gone("table"))?;
        let store = &self.engine.store;
        let txn = &self.transaction()?.txn;
        let xid = txn.assign_top_xid();
        retry(|| admit_write(&store.pool)).await?;
        retry(|| BTree::create(store.pool.clone(), def.file, xid)).await?;
        if build == Build::Nothing {
            return Ok(());
        }
        let host = self.host(catalog);
        let ctx = host.eval();
        let table = Table::of(table_def, store, &ctx)?;
        let index = Index::of(def, table_def, store);
        let snapshot = txn.latest_snapshot();
        let env = self.env(catalog, &host, &snapshot, &[]);
        let terms = Terms::of(def, table_def, env)?;
        let mut keys = Filling::new(&index, xid);
        let mut found = inverted::Keys::default();
        let mut scan = match build {
            Build::Versions => PageRows::new(&table, EveryVersion).await?,
            _ => PageRows::new(&table, txn.latest_snapshot()).await?,
        };
        let mut page: Vec<(RowRef, Row)> = Vec::new();
        let mut key = Vec::new();
        while scan.next(&mut page).await? {
            self.handle.cancel_flag().check()?;
            for (at, row) in &page {
                let computed = match &terms {
                    None => Row::new(),
                    Some(terms) => match terms.of_row(row, env).await? {
                        Some(computed) => computed,
                        None => continue,
                    },
                };
                if let Some(classes) = &index.inverted {
                    index.inverted_keys(classes, row, &computed, &mut found)?;
                    let found = found.sorted().into_iter();
                    found.for_each(|key| keys.push(key, at.root, false));
                    continue;
                }
                key.clear();
                let any_null = index.append_key(row, &computed, &mut key)?;
                keys.push(&key, at.root, any_null);
            }
            keys.flush().await?;
        }
        keys.sort().await?;
        // A row's past may have a key that another row has now.
        if def.unique
            && build != Build::Versions
            && let Some(root) = keys.first_duplicate(def.nulls_not_distinct)
        {
            let mut bytes = Vec::new();
            let mut row = Row::new();
            let snapshot = txn.latest_snapshot();
            if retry(|| table.heap.fetch(root, &snapshot, &mut bytes))
                .await?
                .is_some()
            {
                table.decode(&bytes, table.def.columns.len(), &mut row)?;
            }
            let message = format!("could not create unique index \"{}\"", def.name);
            let computed = match &terms {
                Some(terms) => terms.of_row(&row, env).await?.unwrap_or_default(),
                None => Row::new(),
            };
            let key = write::row::index_key_text(table_def, &index, &row, &computed, &ctx);
            return Err(Error::new(state::UNIQUE_VIOLATION, message)
                .detail(format!("Key {key} is duplicated."))
                .constraint(&def.name));
        }
        let mut roots = Vec::new();
        if build != Build::Versions && !def.terms.exclusion.is_empty() {
            roots = keys.rows();
        }
        keys.fill().await?;
        self.check_exclusion(&index.def, roots, catalog).await
    }

    /// Copies a table's rows into its new heap.
    async fn rewrite(
        &self,
        table: Oid,
        from: FileId,
        old: &Arc<TableDef>,
        values: Vec<Expr>,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let new_def = catalog.table(table).ok_or_else(|| gone("table"))?;
        let old_def = Arc::new(TableDef {
            file: from,
            ..old.as_ref().clone()
        });
        let store = &self.engine.store;
        let txn = &self.transaction()?.txn;
        let host = self.host(catalog);
        let ctx = host.eval();
        let source = Table::unshared(&old_def, store, &ctx)?;
        let target = Table::unshared(new_def, store, &ctx)?;
        let mut compute = write::Compute::new(values);
        let mut scan = PageRows::new(&source, txn.latest_snapshot()).await?;
        let mut page: Vec<(RowRef, Row)> = Vec::new();
        txn.assign_top_xid();
        while scan.next(&mut page).await? {
            self.handle.cancel_flag().check()?;
            let snapshot = txn.latest_snapshot();
            let env = self.env(catalog, &host, &snapshot, &[]);
            for (_, row) in &page {
                let new = compute.row(row, env).await?;
                write::row::check_not_null(new_def, &new, env)?;
                let bytes =
                    throng_exec::large::encode(&target.heap, txn, &target.layout, &new).await?;
                retry(|| target.heap.insert(txn, &bytes)).await?;
            }
        }
        Ok(())
    }

    /// `value`: the column's, where rows do not hold it.
    async fn check_not_null(
        &self,
        table: Oid,
        attnum: u16,
        value: Option<Expr>,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let def = catalog.table(table).ok_or_else(|| gone("table"))?;
        let column = &def.columns[usize::from(attnum) - 1].name;
        let message = format!(
            "column \"{column}\" of relation \"{}\" contains null values",
            def.name
        );
        if let Some(value) = value {
            let is_there = Expr::IsNotNull(Box::new(value));
            let error = Error::new(state::NOT_NULL_VIOLATION, message).column(column);
            return self.all_hold(def, is_there, &error, catalog).await;
        }
        self.each_row(def, catalog, |row, _| {
            if row[usize::from(attnum) - 1].is_null() {
                return Err(Error::new(state::NOT_NULL_VIOLATION, message.clone()).column(column));
            }
            Ok(())
        })
        .await
    }

    async fn check_rows(
        &self,
        table: Oid,
        name: &str,
        expr: Expr,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let def = catalog.table(table).ok_or_else(|| gone("table"))?;
        let message = format!(
            "check constraint \"{name}\" of relation \"{}\" is violated by some row",
            def.name
        );
        let error = Error::new(state::CHECK_VIOLATION, message).constraint(name);
        self.all_hold(def, expr, &error, catalog).await
    }

    /// Whether a column's values are such as its domain allows from now on.
    async fn check_domain(&self, test: DomainTest, catalog: &Arc<Catalog>) -> Result<()> {
        let def = catalog.table(test.table).ok_or_else(|| gone("table"))?;
        let column = def.column(test.attnum);
        let value = Expr::Slot(u32::from(test.attnum) - 1, column.ty);
        let of = format!("column \"{}\" of table \"{}\"", column.name, def.name);
        let (code, message, condition) = match test.condition {
            Some(condition) => (
                state::CHECK_VIOLATION,
                format!("{of} contains values that violate the new constraint"),
                condition.over_value(&value),
            ),
            None => (
                state::NOT_NULL_VIOLATION,
                format!("{of} contains null values"),
                Expr::IsNotNull(Box::new(value)),
            ),
        };
        let error = write::row::about(Error::new(code, message), def, catalog);
        let error = error.column(&column.name);
        self.all_hold(def, condition, &error, catalog).await
    }

    /// `error` where a row's condition is false.
    async fn all_hold(
        &self,
        def: &Arc<TableDef>,
        expr: Expr,
        error: &Error,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let store = &self.engine.store;
        let txn = &self.transaction()?.txn;
        let host = self.host(catalog);
        let table = Table::unshared(def, store, &host.eval())?;
        let mut compute = write::Compute::new(vec![expr]);
        let mut scan = PageRows::new(&table, txn.latest_snapshot()).await?;
        let mut page: Vec<(RowRef, Row)> = Vec::new();
        while scan.next(&mut page).await? {
            self.handle.cancel_flag().check()?;
            let snapshot = txn.latest_snapshot();
            let env = self.env(catalog, &host, &snapshot, &[]);
            for (_, row) in &page {
                if compute.row(row, env).await?[0] == Datum::Bool(false) {
                    return Err(error.clone());
                }
            }
        }
        Ok(())
    }

    /// Rows of `table`, which `partition` is or is above, that `partition` does not take.
    async fn check_partition(
        &self,
        table: Oid,
        partition: Oid,
        default: bool,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let def = catalog.table(table).ok_or_else(|| gone("table"))?;
        let store = &self.engine.store;
        let txn = &self.transaction()?.txn;
        let host = self.host(catalog);
        let mut fit = write::partition::Fit::of(def, partition, catalog, host.eval())?;
        let table = Table::unshared(def, store, &host.eval())?;
        let mut scan = PageRows::new(&table, txn.latest_snapshot()).await?;
        let mut page: Vec<(RowRef, Row)> = Vec::new();
        while scan.next(&mut page).await? {
            self.handle.cancel_flag().check()?;
            let snapshot = txn.latest_snapshot();
            let env = self.env(catalog, &host, &snapshot, &[]);
            for (_, row) in &page {
                if !fit.takes(row, env).await? {
                    let message = match default {
                        true => format!(
                            "updated partition constraint for default partition \"{}\" would be violated by some row",
                            def.name
                        ),
                        false => format!(
                            "partition constraint of relation \"{}\" is violated by some row",
                            def.name
                        ),
                    };
                    let error = Error::new(state::CHECK_VIOLATION, message);
                    return Err(write::row::about(error, def, env.catalog));
                }
            }
        }
        Ok(())
    }

    async fn check_foreign_key(
        &self,
        constraint: Oid,
        _before: &Arc<Catalog>,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let constraint = catalog
            .constraint(constraint)
            .ok_or_else(|| gone("constraint"))?;
        let def = catalog
            .table(constraint.table)
            .ok_or_else(|| gone("table"))?;
        let mut last: Option<Row> = None;
        self.each_row_in(def, catalog, async |row, cx| {
            let key = write::foreign::key(constraint, row)?;
            // Rows that follow each other often point at the same.
            if last.as_ref() != Some(&key) {
                write::foreign::check_exists(def, constraint, row, cx).await?;
                last = Some(key);
            }
            Ok(())
        })
        .await
    }
}

/// Whose code runs in a piece of work for whoever asked for it: the table's owner's.
fn owner_of_code(work: &Work, catalog: &Catalog) -> Option<Oid> {
    let table = match work {
        Work::CreateIndex { index, build: true } | Work::IndexVersions(index) => {
            catalog.index(*index)?.table
        }
        Work::Repack { table, .. } | Work::Refresh(table) | Work::RefreshInPlace(table) => *table,
        Work::Fill { table, .. } if catalog.table(*table)?.is_materialized() => *table,
        _ => return None,
    };
    catalog.table(table).map(|def| def.owner)
}

pub(in crate::session) fn gone(what: &str) -> Error {
    Error::internal(format!("a {what} that was just defined is gone"))
}

/// What a new index is filled from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    Nothing,
    /// The rows there are.
    Rows,
    /// Every version in the heap, each of which is a root: one that was just repacked.
    Versions,
}
