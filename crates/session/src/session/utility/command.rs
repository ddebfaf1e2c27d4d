//! Statements that neither read rows nor define anything: transactions, settings, cursors,
//! maintenance.

use throng_bind::command::{Command, Discard, TransactionModes};
use throng_bind::expr::Expr;
use throng_catalog::builtin;
use throng_syntax::vocabulary::TableLock;
use throng_types::error::{Severity, state};
use throng_types::{Datum, Error, Oid, Result, SqlType};
use throng_values::settings::{Caller, Scope, SessionSettings, is_private};

use crate::session::Session;
use crate::session::statement::query::{as_text, field, lock_mode};
use crate::session::transaction::isolation_name;
use throng_exec::client::{Client, Field};
use throng_exec::write;

/// The columns of SHOW, and of SHOW ALL.
pub(in crate::session) fn show_fields(name: Option<&str>) -> Vec<Field> {
    match name {
        Some(name) => vec![field(SessionSettings::canonical_name(name), SqlType::TEXT)],
        None => ["name", "setting", "description"]
            .map(|n| field(n, SqlType::TEXT))
            .into(),
    }
}

fn not_in_block(what: &str) -> Error {
    Error::new(
        state::NO_ACTIVE_SQL_TRANSACTION,
        format!("{what} can only be used in transaction blocks"),
    )
}

/// RESET ROLE is SET ROLE NONE, but for its tag.
fn set_or_reset(text: &str) -> &'static str {
    match text
        .get(..5)
        .is_some_and(|t| t.eq_ignore_ascii_case("reset"))
    {
        true => "RESET",
        false => "SET",
    }
}

impl Session {
    /// Runs a command to its end and says so to the client.
    pub(in crate::session) async fn run_command(
        &mut self,
        command: Command,
        text: &str,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.refuse_restricted(&command)?;
        let tag: &str = match command {
            Command::Empty => {
                client.empty_query();
                return Ok(());
            }
            Command::Begin(modes) => {
                let warning = self.begin_block(modes)?;
                self.notices(warning.into_iter().collect(), client);
                match text
                    .get(..5)
                    .is_some_and(|t| t.eq_ignore_ascii_case("start"))
                {
                    true => "START TRANSACTION",
                    false => "BEGIN",
                }
            }
            Command::Commit { chain } => {
                let (tag, warning) = self.commit_block(chain).await?;
                self.notices(warning.into_iter().collect(), client);
                tag
            }
            Command::Rollback { chain } => {
                let warning = self.rollback_block(chain).await?;
                self.notices(warning.into_iter().collect(), client);
                "ROLLBACK"
            }
            Command::TwoPhase(step) => self.two_phase(step, client).await?,
            Command::Savepoint(name) => {
                self.savepoint(name)?;
                "SAVEPOINT"
            }
            Command::RollbackTo(name) => {
                self.rollback_to_savepoint(&name).await?;
                "ROLLBACK"
            }
            Command::Release(name) => self.release_savepoint(&name).map(|()| "RELEASE")?,
            Command::SetTransaction { modes, session } => {
                self.set_modes(modes, session, client)?;
                "SET"
            }
            Command::Set { name, value, local } => {
                self.set(&name, value.as_deref(), local, client)?;
                "SET"
            }
            Command::Reset(name) => {
                self.reset(name.as_deref(), client)?;
                "RESET"
            }
            Command::Show(name) => {
                self.show_to(name.as_deref(), client)?;
                "SHOW"
            }
            Command::SetRole { role, local } => {
                self.set_role(role.as_deref(), local)?;
                set_or_reset(text)
            }
            Command::SetSessionAuthorization { role, local } => {
                self.set_session_authorization(role.as_deref(), local)?;
                set_or_reset(text)
            }
            Command::Prepare {
                name,
                types,
                statement,
            } => {
                self.prepare_named(name, types, statement, text).await?;
                "PREPARE"
            }
            Command::Execute { name, args } => {
                let values = self.values_of(args).await?;
                return self.execute_prepared(&name, values, client).await;
            }
            Command::Deallocate(name) => {
                self.deallocate(name.as_deref())?;
                if name.is_none() {
                    "DEALLOCATE ALL"
                } else {
                    "DEALLOCATE"
                }
            }
            Command::Declare {
                name,
                query,
                options,
            } => {
                self.declare(name, *query, options, text).await?;
                "DECLARE CURSOR"
            }
            Command::Fetch {
                name,
                direction,
                moving,
            } => {
                self.start_if_ready(&name).await?;
                let rows = self.fetch(&name, direction, moving, client).await?;
                let verb = if moving { "MOVE" } else { "FETCH" };
                client.command_complete(&format!("{verb} {rows}"));
                return Ok(());
            }
            Command::Close(name) => {
                self.close_cursor(name.as_deref()).await?;
                if name.is_none() {
                    "CLOSE CURSOR ALL"
                } else {
                    "CLOSE CURSOR"
                }
            }
            Command::Copy(copy) => {
                let rows = self.run_copy(*copy, client).await?;
                self.say(client);
                client.command_complete(&format!("COPY {rows}"));
                return Ok(());
            }
            Command::LockTable {
                tables,
                mode,
                nowait,
            } => {
                if !self.is_in_block() {
                    return Err(not_in_block("LOCK TABLE"));
                }
                self.lock_named(&tables, mode, nowait).await?;
                "LOCK TABLE"
            }
            Command::NothingTo(tag) => tag,
            Command::Vacuum { tables, options } => {
                self.vacuum(tables, options, client).await?;
                "VACUUM"
            }
            Command::Analyze {
                tables,
                skip_locked,
            } => {
                self.analyze(tables, skip_locked, client).await?;
                "ANALYZE"
            }
            Command::Cluster { table, index } => {
                self.cluster(table, index, client).await?;
                "CLUSTER"
            }
            Command::ClusterAll => {
                self.cluster_all(client).await?;
                "CLUSTER"
            }
            Command::Reindex {
                indexes,
                concurrently,
                alone,
            } => {
                self.reindex(indexes, concurrently, alone, client).await?;
                "REINDEX"
            }
            Command::Call(call) => {
                self.call_procedure(*call, client).await?;
                "CALL"
            }
            Command::Do(block) => {
                self.run_do(&block, client).await?;
                "DO"
            }
            Command::Checkpoint => {
                self.checkpoint().await?;
                "CHECKPOINT"
            }
            Command::Discard(what) => self.discard(what).await?,
            Command::SetConstraints {
                all,
                constraints,
                deferred,
            } => {
                self.warn_outside_block("SET CONSTRAINTS", client);
                self.set_constraints((!all).then_some(&constraints), deferred)
                    .await?;
                "SET CONSTRAINTS"
            }
            Command::Listen(channel) => {
                self.listen(channel);
                "LISTEN"
            }
            Command::Notify { channel, payload } => {
                self.notify(&channel, &payload)?;
                "NOTIFY"
            }
            Command::Unlisten(channel) => {
                self.unlisten(channel);
                "UNLISTEN"
            }
        };
        self.say(client);
        client.command_complete(tag);
        Ok(())
    }

    /// 42501 for what would stay in the session, in a security-restricted operation.
    pub(in crate::session) fn refuse_restricted(&self, command: &Command) -> Result<()> {
        let what = match command {
            Command::Close(_) => "CLOSE",
            Command::Prepare { .. } => "PREPARE",
            Command::Deallocate(_) => "DEALLOCATE",
            Command::Listen(_) => "LISTEN",
            Command::Unlisten(_) => "UNLISTEN",
            Command::Discard(_) => "DISCARD",
            Command::Declare { options, .. } if options.hold && self.is_restricted() => {
                let message =
                    "cannot create a cursor WITH HOLD within security-restricted operation";
                return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
            }
            _ => return Ok(()),
        };
        self.must_not_be_restricted(what)
    }

    // Settings

    fn warn_outside_block(&self, what: &str, client: &mut dyn Client) {
        if !self.is_in_block() {
            self.notices(vec![not_in_block(what).severity(Severity::Warning)], client);
        }
    }

    fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        if local {
            self.warn_outside_block("SET LOCAL", client);
        }
        let scope = if local { Scope::Local } else { Scope::Session };
        self.set_first(name, value, scope)?;
        let idle = self.settings.borrow_mut().take_notices();
        let notices = idle.into_iter().map(|n| n.severity(Severity::Notice));
        self.notices(notices.collect(), client);
        Ok(())
    }

    fn reset(&mut self, name: Option<&str>, client: &mut dyn Client) -> Result<()> {
        match name {
            Some(name) => self.set(name, None, false, client),
            None => {
                self.settings.borrow_mut().reset_all(self.caller())?;
                self.settings_changed();
                Ok(())
            }
        }
    }

    /// A setting as SHOW tells it, those that belong to the transaction or the session included.
    pub(in crate::session) fn show(&self, name: &str) -> Result<String> {
        let transaction = self.transaction.as_ref();
        match name.to_ascii_lowercase().as_str() {
            "transaction_isolation" => {
                if let Some(transaction) = transaction {
                    return Ok(isolation_name(transaction.isolation.get()).to_owned());
                }
                self.settings.borrow().show("default_transaction_isolation")
            }
            "transaction_read_only" => {
                if let Some(transaction) = transaction {
                    return Ok(if transaction.read_only.get() {
                        "on"
                    } else {
                        "off"
                    }
                    .to_owned());
                }
                self.settings.borrow().show("default_transaction_read_only")
            }
            "transaction_deferrable" => {
                if let Some(transaction) = transaction {
                    return Ok(if transaction.deferrable.get() {
                        "on"
                    } else {
                        "off"
                    }
                    .to_owned());
                }
                self.settings
                    .borrow()
                    .show("default_transaction_deferrable")
            }
            "role" => Ok(match self.outer_role().oid == self.session_role().oid {
                true => "none".to_owned(),
                false => self.outer_role().name.clone(),
            }),
            _ => self.settings.borrow().show(name),
        }
    }

    fn show_to(&mut self, name: Option<&str>, client: &mut dyn Client) -> Result<()> {
        let rows: Vec<Vec<Datum>> = match name {
            Some(name) => {
                self.may_examine(name)?;
                vec![vec![self.show(name)?.into()]]
            }
            None => {
                let settings = self.settings.borrow();
                let mut rows: Vec<_> = settings
                    .all()
                    .map(|(s, ..)| (s.name, s.description))
                    .collect();
                drop(settings);
                let sees_all = self.may_see_all_settings();
                rows.retain(|(name, _)| sees_all || !is_private(name));
                rows.sort_by_key(|(name, _)| name.to_ascii_lowercase());
                rows.into_iter()
                    .map(|(name, about)| {
                        Ok(vec![name.into(), self.show(name)?.into(), about.into()])
                    })
                    .collect::<Result<_>>()?
            }
        };
        let shape = as_text(show_fields(name));
        client.row_description(&shape);
        let catalog = self.catalog();
        let host = self.host(&catalog);
        for row in &rows {
            client.row(row, &shape, &host.eval())?;
        }
        Ok(())
    }

    fn set_modes(
        &mut self,
        modes: TransactionModes,
        session: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        if !session {
            self.warn_outside_block("SET TRANSACTION", client);
            return self.set_transaction_modes(modes);
        }
        if let Some(isolation) = modes.isolation {
            self.set_for_session("default_transaction_isolation", isolation_name(isolation))?;
        }
        if let Some(read_only) = modes.read_only {
            let on = if read_only { "on" } else { "off" };
            self.set_for_session("default_transaction_read_only", on)?;
        }
        if let Some(deferrable) = modes.deferrable {
            let on = if deferrable { "on" } else { "off" };
            self.set_for_session("default_transaction_deferrable", on)?;
        }
        Ok(())
    }

    fn set_for_session(&mut self, name: &str, value: &str) -> Result<()> {
        self.settings
            .borrow_mut()
            .set(name, Some(value), Scope::Session, self.caller())
    }

    // The rest

    /// The values of expressions without input row.
    pub(in crate::session) async fn values_of(&self, exprs: Vec<Expr>) -> Result<Vec<Datum>> {
        if exprs.is_empty() {
            return Ok(Vec::new());
        }
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let snapshot = self.transaction()?.txn.snapshot();
        let given = self.command_values.borrow().clone();
        let env = self.env(&catalog, &host, &snapshot, &given);
        let mut values = Vec::with_capacity(exprs.len());
        for expr in exprs {
            values.push(write::constant(expr, env).await?);
        }
        Ok(values)
    }

    pub(in crate::session) async fn lock_named(
        &self,
        tables: &[Oid],
        mode: TableLock,
        nowait: bool,
    ) -> Result<()> {
        let catalog = self.catalog();
        let txn = &self.transaction()?.txn;
        for table in tables {
            let mode = lock_mode(mode);
            if nowait {
                let name = catalog.table(*table).map_or("", |t| t.name.as_str());
                txn.lock_relation_nowait(*table, name, mode)?;
            } else {
                txn.lock_relation(*table, mode).await?;
            }
        }
        Ok(())
    }

    async fn checkpoint(&mut self) -> Result<()> {
        if !self
            .catalog()
            .acts_as(self.role().oid, builtin::PG_CHECKPOINT)
        {
            let message = "permission denied to execute CHECKPOINT command";
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).detail(
                "Only roles with privileges of the \"pg_checkpoint\" role may execute this command.",
            ));
        }
        self.handle
            .cancel_flag()
            .guard(self.engine.sys.checkpoint())
            .await
    }

    async fn discard(&mut self, what: Discard) -> Result<&'static str> {
        match what {
            Discard::All => {
                self.must_be_outside_block("DISCARD ALL")?;
                self.close_portals().await;
                self.set_session_authorization(None, false)?;
                self.settings.borrow_mut().reset_all(Caller {
                    superuser: self.login_role.superuser,
                    starting: false,
                })?;
                self.settings_changed();
                self.prepared.get_mut().clear();
                self.unlisten(None);
                self.handle.entry().release_session_locks();
                self.sequences.borrow_mut().clear();
                self.discard_temporary().await?;
                Ok("DISCARD ALL")
            }
            Discard::Plans => {
                crate::session::statement::plans::forget();
                self.prepared
                    .borrow()
                    .values()
                    .for_each(|prepared| prepared.forget());
                Ok("DISCARD PLANS")
            }
            Discard::Sequences => {
                self.sequences.borrow_mut().clear();
                Ok("DISCARD SEQUENCES")
            }
            Discard::Temp => {
                self.discard_temporary().await?;
                Ok("DISCARD TEMP")
            }
        }
    }
}
