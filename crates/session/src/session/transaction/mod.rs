//! Transactions as SQL sees them: blocks, savepoints, what happens after an error.
//!
//! ```text
//!            statement            BEGIN              error
//!   None ──────────────► None    None ──► Open      Open ──► Failed ── ROLLBACK, COMMIT ──► None
//!         (its own, ended by                ▲                  │
//!          the end of the string or Sync)   └── ROLLBACK TO ───┘
//! ```

pub(super) mod constraints;
pub(super) mod notify;
mod prepared;
pub(super) mod temporary;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use throng_bind::command::{Isolation as SqlIsolation, TransactionModes};
use throng_catalog::{Catalog, Change, TableDef};
use throng_plan::PlannedStatement;
use throng_syntax::parse::ast::Statement;
use throng_syntax::vocabulary::{TableLock, TwoPhase};
use throng_txn::{Isolation, Txn};
use throng_types::dispose::dispose;
use throng_types::error::{Severity, state};
use throng_types::{Error, Oid, Result};

use super::portal::Portal;
use super::settings::hot::HotSettings;
use super::{Session, SharedCatalog, now, shared};
use crate::database::Own;
use crate::objects;
use throng_exec::write::deferred;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// No BEGIN: a transaction, if there is one, ends with the string or at Sync.
    None,
    Open,
    /// An error in a block: only its end, or a savepoint, helps.
    Failed,
}

/// Whether what runs in no block shares its transaction with other statements, which makes a block
/// of it: a string of several, or what was executed since the last Sync.
#[derive(Default)]
pub(super) struct Joined {
    pub others: bool,
    /// A statement that allows no others has begun: what it did is committed when it ends.
    alone: Cell<bool>,
}

/// A transaction under way.
pub(super) struct Transaction {
    pub txn: Txn,
    /// The definitions with this transaction's own changes, once it has made some.
    own: RefCell<Option<Own<SharedCatalog>>>,
    pub changes: RefCell<Vec<Change>>,
    pub savepoints: RefCell<Vec<Savepoint>>,
    pub read_only: Cell<bool>,
    /// It may wait for a snapshot that nothing can harm, if it is serializable and only reads.
    pub deferrable: Cell<bool>,
    /// What SHOW transaction_isolation says; READ UNCOMMITTED runs as READ COMMITTED.
    pub isolation: Cell<SqlIsolation>,
    pub began: i64,
    /// A statement has run in it: SET TRANSACTION comes too late.
    pub used: Cell<bool>,
}

pub(super) struct Savepoint {
    pub name: String,
    pub settings_mark: usize,
    roles_mark: usize,
    outbox_mark: notify::Mark,
    deferred_mark: deferred::Mark,
    own: Option<Own<SharedCatalog>>,
    changes: usize,
    read_only: bool,
}

impl Transaction {
    /// The catalog with this transaction's own changes, as it was made last.
    pub fn own_catalog(&self) -> Option<SharedCatalog> {
        Some(self.own.borrow().as_ref()?.catalog.clone())
    }

    /// A savepoint ends: what may be written is what it was before it.
    fn back_to(&self, read_only: bool) {
        self.read_only.set(read_only);
    }
}

/// Whether it is not itself made of another one, nor takes tables for children that are none.
pub(super) fn is_plain(published: &Catalog) -> bool {
    published.base().is_none() && published.detaching().is_empty()
}

fn level(isolation: SqlIsolation) -> Isolation {
    match isolation {
        SqlIsolation::ReadUncommitted | SqlIsolation::ReadCommitted => Isolation::ReadCommitted,
        SqlIsolation::RepeatableRead => Isolation::RepeatableRead,
        SqlIsolation::Serializable => Isolation::Serializable,
    }
}

pub(super) fn parse_isolation(text: &str) -> SqlIsolation {
    match text {
        "serializable" => SqlIsolation::Serializable,
        "repeatable read" => SqlIsolation::RepeatableRead,
        "read uncommitted" => SqlIsolation::ReadUncommitted,
        _ => SqlIsolation::ReadCommitted,
    }
}

pub(super) fn isolation_name(isolation: SqlIsolation) -> &'static str {
    match isolation {
        SqlIsolation::ReadUncommitted => "read uncommitted",
        SqlIsolation::ReadCommitted => "read committed",
        SqlIsolation::RepeatableRead => "repeatable read",
        SqlIsolation::Serializable => "serializable",
    }
}

fn warning(code: throng_types::SqlState, message: &str) -> Error {
    Error::new(code, message).severity(Severity::Warning)
}

impl Session {
    /// Begins a transaction if none is under way.
    pub(super) fn begin_if_idle(&mut self) {
        if self.transaction.is_some() || self.block == Block::Failed {
            return;
        }
        let HotSettings {
            isolation,
            read_only,
            deferrable,
            ..
        } = self.hot_settings();
        let txn = self.handle.begin(level(isolation));
        txn.set_read_only(read_only);
        self.transaction = Some(Transaction {
            txn,
            own: RefCell::default(),
            changes: RefCell::default(),
            savepoints: RefCell::default(),
            read_only: Cell::new(read_only),
            deferrable: Cell::new(deferrable),
            isolation: Cell::new(isolation),
            began: self.statement_time,
            used: Cell::new(false),
        });
    }

    /// The transaction under way.
    pub(super) fn transaction(&self) -> Result<&Transaction> {
        self.transaction
            .as_ref()
            .ok_or_else(|| Error::internal("no transaction is under way"))
    }

    pub(super) fn transaction_mut(&mut self) -> Result<&mut Transaction> {
        self.transaction
            .as_mut()
            .ok_or_else(|| Error::internal("no transaction is under way"))
    }

    /// In a failed block, everything but its end is refused.
    pub(super) fn refuse_if_failed(&self, statement: &Statement) -> Result<()> {
        let ends = matches!(
            statement,
            Statement::Commit { .. }
                | Statement::TwoPhase(TwoPhase::Prepare(_))
                | Statement::Rollback { .. }
                | Statement::RollbackTo(_)
        );
        if self.block != Block::Failed || ends {
            return Ok(());
        }
        Err(Error::new(
            state::IN_FAILED_SQL_TRANSACTION,
            "current transaction is aborted, commands ignored until end of transaction block",
        ))
    }

    /// Commits what is in no block.
    pub(super) async fn end_implicit(&mut self) -> Result<()> {
        if self.block == Block::None && self.transaction.is_some() {
            self.commit().await?;
        }
        Ok(())
    }

    /// An Execute of the extended protocol has ended well.
    pub(super) async fn executed(&mut self) -> Result<()> {
        if self.joined.alone.take() {
            self.end_implicit().await?;
        }
        self.joined.others = self.block == Block::None && self.transaction.is_some();
        Ok(())
    }

    /// Whether the running statement is in a block, be it one that nobody began.
    pub(super) fn is_in_block(&self) -> bool {
        self.block != Block::None || self.joined.others
    }

    /// An error: outside a block everything is rolled back, in one up to the last savepoint.
    pub(super) async fn statement_failed(&mut self) {
        self.joined = Joined::default();
        match self.block {
            Block::None => self.rollback().await,
            Block::Open | Block::Failed => {
                self.block = Block::Failed;
                let inner = self.savepoint_depth();
                if inner > 0 {
                    self.undo_to(inner - 1).await;
                } else {
                    let ended = self.portals.borrow_mut().fail();
                    ended.drop_in_turns().await;
                    self.deferred.clear();
                    self.failed_modes = self.chained_modes();
                    self.drop_transaction().await;
                }
            }
        }
    }

    /// Closes all portals, those too that would outlive their transaction.
    pub(super) async fn close_portals(&self) {
        let ended = self.portals.borrow_mut().retain(|_| false);
        ended.drop_in_turns().await;
    }

    async fn drop_transaction(&mut self) {
        /// Definitions that are thrown away in some tens of microseconds.
        const FEW: usize = 64;
        let Some(transaction) = self.transaction.take() else {
            return;
        };
        self.database.count_ended(false);
        let Transaction {
            txn,
            own,
            changes,
            savepoints,
            ..
        } = transaction;
        let own = own.into_inner().map(|own| Arc::clone(&own.catalog));
        drop(savepoints);
        if changes.borrow().len() > FEW {
            dispose((own, changes.into_inner()));
        }
        txn.abort_in_turns().await;
    }

    /// Rolls everything back.
    pub(super) async fn rollback(&mut self) {
        /// Settings taken back between two turns: some hundred microseconds.
        const SETTINGS: usize = 512;
        let ended = self.portals.borrow_mut().retain(Portal::outlives_rollback);
        ended.drop_in_turns().await;
        self.deferred.clear();
        self.drop_transaction().await;
        self.failed_modes = TransactionModes::default();
        self.block = Block::None;
        while !self.settings.get_mut().rollback_some(0, SETTINGS) {
            tokio::task::yield_now().await;
        }
        self.rollback_roles(0);
        self.outbox.get_mut().rollback_to(notify::Mark::default());
    }

    /// Commits. Afterwards there is no transaction, whatever came of it.
    pub(super) async fn commit(&mut self) -> Result<()> {
        if self.transaction.is_some() {
            let mut ready = self.check_deferred(None).await;
            if ready.is_ok() {
                ready = self.hold_cursors().await;
            }
            if ready.is_ok() {
                let ended = self.portals.borrow_mut().committing();
                ended.drop_in_turns().await;
                ready = self.temporary_on_commit().await;
            }
            if let Err(e) = ready {
                self.rollback().await;
                return Err(e);
            }
        }
        self.deferred.clear();
        self.block = Block::None;
        let ended = self.portals.borrow_mut().committed();
        ended.drop_in_turns().await;
        match self.commit_unwritten() {
            Ok(true) => {
                let durable = match self.hot_settings().synchronous_commit {
                    true => self.handle.entry().seen_is_durable().await,
                    false => Ok(()),
                };
                return self.committed(durable).await;
            }
            Ok(false) => {}
            Err(e) => {
                self.rollback().await;
                return Err(e);
            }
        }
        let Some(transaction) = self.transaction.take() else {
            return Ok(());
        };
        let changes = transaction.changes.take();
        if !changes.is_empty() {
            let databases = (&*self.database, &**self.engine.databases.first());
            let store = &self.engine.store;
            if let Err(e) = objects::write(store, &transaction.txn, databases, &changes).await {
                return self.committed(Err(e)).await;
            }
            let (engine, database) = (self.engine.clone(), self.database.clone());
            let own = transaction.own.take().map(|own| Own {
                catalog: Arc::clone(&own.catalog),
                over: own.over,
            });
            transaction.txn.on_commit(move |_| {
                // The definitions were made by this server from the same text a moment ago.
                engine
                    .databases
                    .publish(&database, &changes, own)
                    .expect("a definition that was written can be read");
            });
        }
        if let Err(e) = self.commit_notifications(&transaction.txn) {
            return self.committed(Err(e)).await;
        }
        let settings = self.hot_settings();
        let (sync, standbys) = (settings.synchronous_commit, settings.waits_for_standbys);
        let committed = transaction.txn.commit(sync).await;
        if committed.is_ok()
            && let Some(level) = standbys
        {
            self.wait_for_standbys(level).await;
        }
        self.committed(committed).await
    }

    /// Ends a transaction that has written nothing and has nothing to tell, as most of a crowd's:
    /// where it lies. What it has seen may not be on disk yet. False of another.
    fn commit_unwritten(&mut self) -> Result<bool> {
        let Some(transaction) = &mut self.transaction else {
            return Ok(false);
        };
        if !transaction.changes.get_mut().is_empty() || !self.outbox.get_mut().is_empty() {
            return Ok(false);
        }
        let ended = transaction.txn.commit_unwritten()?;
        if ended {
            self.transaction = None;
        }
        Ok(ended)
    }

    /// What becomes of the session's own with its transaction, which it has no more.
    async fn committed(&mut self, outcome: Result<()>) -> Result<()> {
        self.database.count_ended(outcome.is_ok());
        match &outcome {
            Ok(()) => {
                self.settings.get_mut().commit();
                self.commit_roles();
            }
            Err(_) => self.rollback().await,
        }
        outcome
    }

    pub(super) fn begin_block(&mut self, modes: TransactionModes) -> Result<Option<Error>> {
        if self.block == Block::Open {
            self.set_transaction_modes(modes)?;
            return Ok(Some(warning(
                state::ACTIVE_SQL_TRANSACTION,
                "there is already a transaction in progress",
            )));
        }
        self.begin_if_idle();
        self.set_transaction_modes(modes)?;
        self.block = Block::Open;
        Ok(None)
    }

    pub(super) fn set_transaction_modes(&mut self, modes: TransactionModes) -> Result<()> {
        let transaction = self.transaction_mut()?;
        if let Some(isolation) = modes.isolation
            && !transaction.used.get()
            && transaction.savepoints.get_mut().is_empty()
            && transaction.txn.set_isolation(level(isolation))
        {
            transaction.isolation.set(isolation);
        }
        self.change_modes(modes)
    }

    /// The modes that a transaction may take while a statement of it runs.
    pub(super) fn change_modes(&self, modes: TransactionModes) -> Result<()> {
        let transaction = self.transaction()?;
        let is_within_savepoint = !transaction.savepoints.borrow().is_empty();
        if let Some(isolation) = modes.isolation {
            if level(isolation) != level(transaction.isolation.get()) {
                let message = match transaction.used.get() || !is_within_savepoint {
                    true => "SET TRANSACTION ISOLATION LEVEL must be called before any query",
                    false => {
                        "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
                    }
                };
                return Err(Error::new(state::ACTIVE_SQL_TRANSACTION, message));
            }
            transaction.isolation.set(isolation);
        }
        if let Some(read_only) = modes.read_only {
            let opens = !read_only && transaction.read_only.get();
            if opens && is_within_savepoint {
                return Err(Error::new(
                    state::ACTIVE_SQL_TRANSACTION,
                    "cannot set transaction read-write mode inside a read-only transaction",
                ));
            }
            if opens && transaction.used.get() {
                return Err(Error::new(
                    state::ACTIVE_SQL_TRANSACTION,
                    "transaction read-write mode must be set before any query",
                ));
            }
            transaction.read_only.set(read_only);
            // Within a savepoint it may be undone: a serializable transaction is then watched as
            // one that may write.
            if !is_within_savepoint {
                transaction.txn.set_read_only(read_only);
            }
        }
        if let Some(deferrable) = modes.deferrable {
            if deferrable != transaction.deferrable.get() && transaction.used.get() {
                return Err(Error::new(
                    state::ACTIVE_SQL_TRANSACTION,
                    "SET TRANSACTION [NOT] DEFERRABLE must be called before any query",
                ));
            }
            transaction.deferrable.set(deferrable);
        }
        Ok(())
    }

    /// COMMIT. The tag, and a warning where there was nothing to commit.
    pub(super) async fn commit_block(
        &mut self,
        chain: bool,
    ) -> Result<(&'static str, Option<Error>)> {
        match self.block {
            Block::Failed => {
                self.rollback_block(chain).await?;
                Ok(("ROLLBACK", None))
            }
            Block::None => {
                if chain {
                    return Err(not_in_block("COMMIT AND CHAIN"));
                }
                self.commit().await?;
                Ok(("COMMIT", Some(no_transaction())))
            }
            Block::Open => {
                let modes = self.chained_modes();
                self.commit().await?;
                if chain {
                    self.begin_block(modes)?;
                }
                Ok(("COMMIT", None))
            }
        }
    }

    pub(super) async fn rollback_block(&mut self, chain: bool) -> Result<Option<Error>> {
        let was = self.block;
        if was == Block::None && chain {
            return Err(not_in_block("ROLLBACK AND CHAIN"));
        }
        let modes = self.chained_modes();
        self.rollback().await;
        if chain {
            self.begin_block(modes)?;
        }
        Ok((was == Block::None).then(no_transaction))
    }

    /// What AND CHAIN carries over.
    pub(super) fn chained_modes(&self) -> TransactionModes {
        match &self.transaction {
            Some(transaction) => TransactionModes {
                isolation: Some(transaction.isolation.get()),
                read_only: Some(transaction.read_only.get()),
                deferrable: Some(transaction.deferrable.get()),
            },
            None => self.failed_modes,
        }
    }

    pub(super) fn savepoint(&mut self, name: String) -> Result<()> {
        if self.block == Block::None {
            return Err(not_in_block("SAVEPOINT"));
        }
        self.push_savepoint(name)
    }

    /// A savepoint, whatever block it is in; one without a name is nobody's but who made it.
    pub(super) fn push_savepoint(&self, name: String) -> Result<()> {
        let settings_mark = self.settings.borrow().mark();
        let roles_mark = self.roles_mark();
        let outbox_mark = self.outbox.borrow_mut().mark();
        let deferred_mark = self.deferred.mark();
        let transaction = self.transaction()?;
        transaction.txn.savepoint();
        let own = transaction.own.borrow().clone();
        let changes = transaction.changes.borrow().len();
        transaction.savepoints.borrow_mut().push(Savepoint {
            name,
            settings_mark,
            roles_mark,
            outbox_mark,
            deferred_mark,
            own,
            changes,
            read_only: transaction.read_only.get(),
        });
        Ok(())
    }

    /// How many savepoints there are.
    pub(super) fn savepoint_depth(&self) -> usize {
        self.transaction
            .as_ref()
            .map_or(0, |t| t.savepoints.borrow().len())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        let named = |t: &Transaction| t.savepoints.borrow().iter().rposition(|s| s.name == name);
        self.transaction.as_ref().and_then(named).ok_or_else(|| {
            Error::new(
                state::INVALID_SAVEPOINT,
                format!("savepoint \"{name}\" does not exist"),
            )
        })
    }

    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<()> {
        if self.block == Block::None {
            return Err(not_in_block("RELEASE SAVEPOINT"));
        }
        let at = self.find_savepoint(name)?;
        self.release_savepoints(at)
    }

    /// Releases savepoint `at` and those inside it.
    pub(super) fn release_savepoints(&self, at: usize) -> Result<()> {
        let transaction = self.transaction()?;
        transaction.txn.release(at);
        let mut savepoints = transaction.savepoints.borrow_mut();
        if let Some(savepoint) = savepoints.get(at) {
            transaction.back_to(savepoint.read_only);
        }
        savepoints.truncate(at);
        drop(savepoints);
        self.portals.borrow_mut().released(at);
        self.deferred.release(at);
        Ok(())
    }

    pub(super) async fn rollback_to_savepoint(&mut self, name: &str) -> Result<()> {
        if self.block == Block::None {
            return Err(not_in_block("ROLLBACK TO SAVEPOINT"));
        }
        let at = self.find_savepoint(name)?;
        self.undo_to(at).await;
        self.block = Block::Open;
        Ok(())
    }

    /// Undoes what came after savepoint `at`, which stays.
    async fn undo_to(&mut self, at: usize) {
        let stays = |portal: &Portal| portal.outlives_savepoint(at);
        let ended = self.portals.get_mut().retain(stays);
        ended.drop_in_turns().await;
        self.undo_beneath(at);
    }

    /// Undoes what came after savepoint `at` but for cursors.
    pub(super) fn undo_beneath(&self, at: usize) {
        let Some(transaction) = &self.transaction else {
            return;
        };
        transaction.txn.rollback_to(at);
        let mut savepoints = transaction.savepoints.borrow_mut();
        savepoints.truncate(at + 1);
        let Some(savepoint) = savepoints.get(at) else {
            return;
        };
        transaction.back_to(savepoint.read_only);
        *transaction.own.borrow_mut() = savepoint.own.clone();
        transaction.changes.borrow_mut().truncate(savepoint.changes);
        let (roles_mark, outbox_mark) = (savepoint.roles_mark, savepoint.outbox_mark);
        self.deferred.rollback_to(&savepoint.deferred_mark, at + 1);
        self.settings
            .borrow_mut()
            .rollback_to(savepoint.settings_mark);
        self.outbox.borrow_mut().rollback_to(outbox_mark);
        self.rollback_roles(roles_mark);
    }

    /// The catalog as the running statement sees it.
    pub(super) fn catalog(&self) -> SharedCatalog {
        let definitions = self.definitions();
        self.as_taken(definitions)
    }

    /// Whether [`catalog`](Self::catalog) would be what is published, as this session has seen it,
    /// and nothing else.
    pub(super) fn sees_what_is_published(&self) -> bool {
        self.published_version.get() == self.database.version()
            && self.published_is_plain.get()
            && !self.has_own_definitions()
            && self.families.are_as_defined()
    }

    /// Whether the transaction has changed definitions.
    pub(super) fn has_own_definitions(&self) -> bool {
        let own = |t: &Transaction| t.own.borrow().is_some();
        self.transaction.as_ref().is_some_and(own)
    }

    /// What is published, with this transaction's own changes.
    pub(super) fn definitions(&self) -> SharedCatalog {
        if self.published_version.get() != self.database.version() {
            let published = shared::catalog(self.database.catalog());
            self.temporary.catalog_published(&published);
            self.published_version.set(published.version());
            self.published_is_plain.set(is_plain(&published));
            *self.published.borrow_mut() = published;
        }
        let published = self.published.borrow().clone();
        let Some(transaction) = &self.transaction else {
            return published;
        };
        let mut own = transaction.own.borrow_mut();
        match &*own {
            None => published,
            Some(own) if own.over == published.version() => own.catalog.clone(),
            Some(_) => {
                // Others published meanwhile: the own changes go on top of theirs.
                let changes = transaction.changes.borrow();
                let rebased = crate::database::with_changes(&published, changes.iter())
                    .expect("a definition that was made can be read");
                let catalog = Rc::new(Arc::new(rebased));
                *own = Some(Own {
                    catalog: catalog.clone(),
                    over: published.version(),
                });
                catalog
            }
        }
    }

    /// Makes an edited catalog this transaction's. It was made of its
    /// [definitions](Self::definitions) of version `before`; where those are others by now, as a
    /// function that ran for the edit has changed some or another session has, only the changes
    /// count.
    pub(super) fn keep_definitions(
        &self,
        edited: Arc<Catalog>,
        changes: Vec<Change>,
        before: u64,
    ) -> Result<()> {
        let now = self.definitions();
        let edited = match now.version() == before {
            true => edited,
            false => Arc::new(crate::database::with_changes(&now, &changes)?),
        };
        let transaction = self.transaction()?;
        transaction.changes.borrow_mut().extend(changes);
        *transaction.own.borrow_mut() = Some(Own {
            catalog: Rc::new(edited),
            over: self.published_version.get(),
        });
        transaction.txn.next_command()
    }

    /// Whether the table's file was made since the last savepoint (or the transaction's beginning),
    /// by CREATE or TRUNCATE.
    pub(super) fn is_file_of_this_level(&self, table: &TableDef) -> bool {
        let of_savepoint = |t: &Transaction| {
            let savepoints = t.savepoints.borrow();
            Some(savepoints.last()?.own.as_ref()?.catalog.clone())
        };
        let before = self.transaction.as_ref().and_then(of_savepoint);
        let before = before.unwrap_or_else(|| self.published.borrow().clone());
        before
            .table(table.oid)
            .is_none_or(|before| before.file != table.file)
    }

    fn is_read_only(&self) -> bool {
        self.transaction.as_ref().is_some_and(|t| t.read_only.get())
    }

    /// Refuses a write in a read-only transaction.
    pub(super) fn must_be_writable(&self, what: &str) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::new(
                state::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {what} in a read-only transaction"),
            ));
        }
        Ok(())
    }

    /// Refuses a statement that changes other tables than temporary ones in a read-only
    /// transaction.
    pub(super) fn may_change(&self, plan: &PlannedStatement, command: &str) -> Result<()> {
        if !self.is_read_only() {
            return Ok(());
        }
        let catalog = self.catalog();
        let is_temporary = |table: Oid| {
            let def = catalog.table(table);
            def.is_some_and(|def| def.persistence.is_temporary())
        };
        let mut changed = plan
            .all_locks()
            .filter(|(_, lock)| *lock > TableLock::AccessShare);
        match changed.all(|(table, _)| is_temporary(table)) {
            true => Ok(()),
            false => self.must_be_writable(command),
        }
    }

    /// Refuses what cannot run inside a block.
    pub(super) fn must_be_outside_block(&self, what: &str) -> Result<()> {
        if !self.is_in_block() {
            self.joined.alone.set(true);
            return Ok(());
        }
        Err(Error::new(
            state::ACTIVE_SQL_TRANSACTION,
            format!("{what} cannot run inside a transaction block"),
        ))
    }

    pub(super) fn transaction_time(&self) -> i64 {
        self.transaction.as_ref().map_or_else(now, |t| t.began)
    }
}

fn not_in_block(what: &str) -> Error {
    Error::new(
        state::NO_ACTIVE_SQL_TRANSACTION,
        format!("{what} can only be used in transaction blocks"),
    )
}

fn no_transaction() -> Error {
    warning(
        state::NO_ACTIVE_SQL_TRANSACTION,
        "there is no transaction in progress",
    )
}
