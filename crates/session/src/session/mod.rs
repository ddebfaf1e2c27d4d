//! A client's session: its transaction, its settings, its prepared statements and portals.
//!
//! ```text
//! simple_query ─► parse ─► for each statement: bind ─► plan ─► run ─► rows and a tag to the client
//! parse ─► prepared statement        bind ─► portal        execute ─► run, perhaps in parts
//! ```
//! One statement runs at a time. Whatever must wait is a future; dropped half-way (the client has
//! gone), it leaves a session that can only be closed, and closing rolls back.

pub(crate) mod answers;
mod definition;
mod entry;
mod notices;
mod plpgsql;
mod portal;
mod routine;
mod settings;
mod shared;
mod statement;
mod transaction;
mod utility;

pub use definition::adopt::adopt;
pub use transaction::temporary::drop_leftovers;

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use throng_bind::command::{BoundStatement, Command};
use throng_catalog::{Catalog, RoleDef, builtin};
use throng_observe::SessionWaits;
use throng_sync::fetch_span_ahead;
use throng_txn::{Encryption, SessionEntry, SessionInfo, SessionState};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};
use throng_values::func::number::random::Random;
use throng_values::io::FormatSettings;
use throng_values::io::datetime::from_unix;
use throng_values::settings::{Caller, Id, Scope, SessionSettings, Value};

use crate::database::Database;
use crate::engine::{Admission, CLIENT_BACKEND, Engine};
use entry::{may_enter, must_be_few_enough, no_database, role_settings};
use portal::{Portal, Portals};
use statement::prepared::{Prepared, ReadyToBind, is_data};
use throng_exec::client::{Client, RowShape};
use throng_exec::run::effects::Effects;
use throng_exec::write;
use transaction::{Block, Joined, Transaction};

pub use answers::eval_host::format_settings;

/// Who wants a session.
pub struct Login {
    pub user: String,
    pub database: String,
    pub application_name: String,
    /// Settings given in the startup packet.
    pub options: Vec<(String, String)>,
    /// The client's address, `127.0.0.1:1234` or `[local]`.
    pub client: String,
    /// How the connection is encrypted, where it is.
    pub encryption: Option<Encryption>,
}

/// A role a session acts as.
#[derive(Clone)]
pub(crate) struct Role {
    oid: Oid,
    name: String,
    superuser: bool,
}

impl From<&RoleDef> for Role {
    fn from(role: &RoleDef) -> Role {
        Role {
            oid: role.oid,
            name: role.name.clone(),
            superuser: role.superuser,
        }
    }
}

/// A catalog that all cores share, counted once for a session: a statement that takes it writes
/// nothing that other cores read.
pub(crate) type SharedCatalog = Rc<Arc<Catalog>>;

/// What most statements touch comes first, close together: with a crowd of sessions little of one
/// is still in a core's cache when its next statement comes.
#[repr(C)]
pub struct Session {
    pub(crate) engine: Arc<Engine>,
    database: Arc<Database>,
    /// Ends before the registration below: dropping it rolls back.
    transaction: Option<Transaction>,
    handle: throng_txn::Session,
    block: Block,
    joined: Joined,
    statement_time: i64,
    hot_settings: Cell<settings::hot::HotSettings>,
    settings: RefCell<SessionSettings>,
    settings_number: statement::plans::SettingsNumber,
    /// What values look like, derived from the settings of version `format_version`.
    format_version: Cell<u64>,
    format: RefCell<Rc<FormatSettings>>,
    /// The catalog as this session last saw it published.
    published: RefCell<SharedCatalog>,
    /// Its version, and whether it [is plain](transaction::is_plain).
    published_version: Cell<u64>,
    /// What `random()` draws from, once it has been asked.
    random: Cell<Option<Random>>,
    published_is_plain: Cell<bool>,
    /// Who SET SESSION AUTHORIZATION made of who logged in, who SET ROLE did, and whose code runs.
    roles: RefCell<settings::roles::Roles>,
    temporary: transaction::temporary::Temporary,
    /// What the statement takes for tables' children, where that is not what the definitions say.
    families: statement::families::Families,
    effects: Effects,
    unsaid: notices::PendingNotices,
    /// Room for a statement's name in the plan cache.
    name: String,
    prepared: RefCell<HashMap<String, Rc<Prepared>, RandomState>>,
    portals: RefCell<Portals>,
    /// Constraints still to be checked.
    deferred: write::deferred::Deferred,
    /// What statements under way have open.
    in_use: Rc<definition::in_use::InUse>,
    /// What LISTEN and NOTIFY will do at commit.
    outbox: RefCell<transaction::notify::Outbox>,
    /// None: it has never listened.
    listener: Option<crate::notify::Listener>,
    /// Bodies in PL/pgSQL that were read, and the calls of them that are under way.
    procedures: plpgsql::Procedures,
    /// Calls of users' functions inside each other.
    routine_depth: Cell<u32>,
    /// When calls in calls have given way last.
    routine_turn: Cell<Option<Instant>>,
    trigger_calls: routine::trigger::TriggerCalls,
    sequences: RefCell<answers::sequences::Used>,
    /// Where the cursor of a WHERE CURRENT OF stands.
    position: RefCell<portal::position::Position>,
    /// How the transaction ran that a failed block had.
    failed_modes: throng_bind::command::TransactionModes,
    /// Parameters of the command that is about to run.
    command_values: RefCell<Vec<Datum>>,
    /// The schema whose elements are being made, which is sought before all others.
    schema_first: Option<String>,
    login_role: Role,
    database_name: String,
    secret: Arc<[u8]>,
    _admission: Admission,
}

/// Bytes of a session from its beginning in which lies what most statements touch.
const TOUCHED: usize = std::mem::offset_of!(Session, listener);

/// Bytes of a cancel key (protocol 3.2 allows up to 256; PostgreSQL 18 sends 32).
const SECRET: usize = 32;

/// Hands a session's settings about waiting for locks to the lock manager.
fn steer_waits(entry: &SessionEntry, settings: &SessionSettings) {
    let timeout = |id| Duration::from_millis(settings.int(id) as u64);
    let lock_timeout = timeout(Id::LockTimeout);
    entry.set_lock_timeout(Some(lock_timeout).filter(|limit| !limit.is_zero()));
    entry.set_deadlock_timeout(timeout(Id::DeadlockTimeout));
    entry.set_log_lock_waits(settings.bool(Id::LogLockWaits));
}

impl Session {
    /// # Errors
    /// 53300 when there are too many; 28000 for a role that may not log in; 3D000 where there is no
    /// such database, 55000 where it takes nobody, 42501 for a role that may not connect; what is
    /// wrong with `options`.
    pub fn new(engine: Arc<Engine>, login: Login) -> Result<Session> {
        let admission = engine.admit()?;
        Session::begun(engine, login, admission, CLIENT_BACKEND)
    }

    /// A session that does the server's own work, as the superuser that there always is: nobody is
    /// at its other end, and no setting of a role or database steers it.
    ///
    /// # Errors
    /// 3D000 for a database that has just gone; others of [`Session::new`] would be a bug.
    pub(crate) fn worker(engine: Arc<Engine>, database: String) -> Result<Session> {
        let superuser = engine.shared().role(builtin::SUPERUSER).cloned();
        let login = Login {
            user: superuser.map(|role| role.name.clone()).unwrap_or_default(),
            database,
            application_name: String::new(),
            options: Vec::new(),
            client: String::new(),
            encryption: None,
        };
        let admission = Admission::of_server(&engine);
        let session = Session::begun(engine, login, admission, "autovacuum worker")?;
        {
            let mut settings = session.settings.borrow_mut();
            let level = Value::Text("read committed".to_owned());
            settings.force(Id::DefaultTransactionIsolation, level);
            settings.force(Id::DefaultTransactionReadOnly, Value::Bool(false));
        }
        Ok(session)
    }

    pub(crate) fn begun(
        engine: Arc<Engine>,
        login: Login,
        mut admission: Admission,
        backend_type: &'static str,
    ) -> Result<Session> {
        let of_server = backend_type != CLIENT_BACKEND;
        let database = engine.databases.by_name(&login.database);
        let database = database.ok_or_else(|| no_database(&login.database))?;
        let catalog = database.catalog();
        let role: Role = match catalog.role_by_name(&login.user) {
            Some(role) => role.as_ref().into(),
            None => {
                return Err(Error::new(
                    state::INVALID_AUTHORIZATION_SPECIFICATION,
                    format!("role \"{}\" does not exist", login.user),
                ));
            }
        };
        if !of_server {
            admission.must_have_place(role.oid, &catalog)?;
            may_enter(&catalog, &role)?;
        }
        let mut settings = SessionSettings::new(&engine.settings());
        settings.force(Id::IsSuperuser, Value::Bool(role.superuser));
        settings.force(Id::SessionAuthorization, Value::Text(login.user.clone()));
        let caller = Caller {
            superuser: role.superuser,
            starting: true,
        };
        let own = match of_server {
            true => Vec::new(),
            false => role_settings(&catalog, &role, &login),
        };
        let (mut chosen_role, mut warnings) = (None, Vec::new());
        for own in own {
            if own.name.eq_ignore_ascii_case("role") {
                chosen_role = Some(own);
                continue;
            }
            let set = settings.set(&own.name, Some(&own.value), Scope::Session, caller);
            match set {
                // What was kept long ago is no reason to lock anybody out.
                Err(e) if own.stored => warnings.push(e),
                set => set?,
            }
        }
        settings.take_changed();

        let login_database = login.database;
        let (address, port) = match login.client.rsplit_once(':') {
            Some((address, port)) => (Some(address.to_owned()), port.parse().ok()),
            None => (None, None),
        };
        let handle = engine.sys.register(SessionInfo {
            backend_type,
            user: login.user,
            user_oid: role.oid.0,
            database: login_database.clone(),
            client_addr: address,
            client_port: port,
            application_name: login.application_name,
            encryption: login.encryption,
        });
        // Whoever closes a database looks for sessions after that.
        if database.is_closed() {
            return Err(no_database(&login_database)
                .detail("It seems to have just been dropped or renamed."));
        }
        // So does whoever counts them: of two that come at once one is counted by the other.
        if !of_server {
            must_be_few_enough(&engine, &catalog, &role)?;
        }
        steer_waits(handle.entry(), &settings);
        let mut secret = [0; SECRET];
        rand::fill(&mut secret[..]);
        let secret: Arc<[u8]> = secret.into();
        admission.enter(handle.pid(), secret.clone());
        let temporary = transaction::temporary::Temporary::new(handle.pid() as i32);
        let session = Session {
            format: RefCell::new(shared::format(format_settings(&settings))),
            format_version: Cell::new(settings.version()),
            hot_settings: Cell::new(settings::hot::HotSettings::of(&settings)),
            published_version: Cell::new(catalog.version()),
            random: Cell::new(None),
            published_is_plain: Cell::new(transaction::is_plain(&catalog)),
            published: RefCell::new(shared::catalog(catalog)),
            engine,
            transaction: None,
            failed_modes: Default::default(),
            block: Block::None,
            joined: Joined::default(),
            handle,
            settings: RefCell::new(settings),
            login_role: role.clone(),
            roles: RefCell::new(settings::roles::Roles::new(role)),
            database,
            database_name: login_database,
            prepared: RefCell::default(),
            name: String::new(),
            portals: RefCell::default(),
            families: statement::families::Families::default(),
            position: RefCell::default(),
            deferred: write::deferred::Deferred::default(),
            in_use: Rc::default(),
            sequences: RefCell::default(),
            effects: Effects::default(),
            routine_depth: Cell::default(),
            routine_turn: Cell::default(),
            trigger_calls: routine::trigger::TriggerCalls::default(),
            procedures: plpgsql::Procedures::default(),
            settings_number: statement::plans::SettingsNumber::default(),
            unsaid: notices::PendingNotices::default(),
            outbox: RefCell::default(),
            listener: None,
            temporary,
            command_values: RefCell::default(),
            schema_first: None,
            secret,
            statement_time: now(),
            _admission: admission,
        };
        session.settings_changed();
        if let Some(chosen) = chosen_role {
            let name = Some(chosen.value.as_str()).filter(|name| *name != "none");
            match session.set_role(name, false) {
                Err(e) if chosen.stored => warnings.push(e),
                set => set?,
            }
            session.commit_roles();
        }
        for warning in warnings {
            session.warn(warning);
        }
        Ok(session)
    }

    /// Tells a new client what there is to tell before its first statement.
    pub fn greet(&self, client: &mut dyn Client) {
        self.say(client);
    }

    pub fn pid(&self) -> i32 {
        self.handle.pid() as i32
    }

    /// Where its waits are seen. Whatever the session does is to run in
    /// [`throng_observe::accounted`] with this.
    pub fn waits(&self) -> Arc<SessionWaits> {
        self.handle.entry().waits().clone()
    }

    /// What others see of it.
    pub fn entry(&self) -> Arc<SessionEntry> {
        self.handle.entry().clone()
    }

    /// Has what most statements touch of it brought into the core's cache, for a statement that is
    /// about to come.
    #[inline]
    pub fn fetch_ahead(&self) {
        fetch_span_ahead(self, TOUCHED);
    }

    /// The cancel key.
    pub fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// Settings a new client is told.
    pub fn reported_settings(&self) -> Vec<(String, String)> {
        self.settings.borrow().reported()
    }

    /// The transaction's state as ReadyForQuery tells it.
    pub fn status(&self) -> u8 {
        match self.block {
            Block::None => b'I',
            Block::Open => b'T',
            Block::Failed => b'E',
        }
    }

    /// Ends the session: what is not committed is rolled back.
    pub async fn close(mut self) {
        self.close_portals().await;
        self.rollback().await;
        self.drop_temporary().await;
    }

    fn caller(&self) -> Caller {
        Caller {
            superuser: self.is_superuser(),
            starting: false,
        }
    }

    /// Runs all statements of a string, each with its rows and tag; one implicit transaction around
    /// those that are in no block.
    pub async fn simple_query(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        // A simple query closes the unnamed portal and forgets the unnamed statement.
        self.portals.get_mut().drop_unnamed();
        self.prepared.get_mut().remove("");
        throng_exec::turns::statement_begins();
        self.statement_began(sql);
        let logged = self
            .hot_settings()
            .logs
            .then(|| self.log_began("statement", sql));
        let ran = self.run_string(sql, client).await;
        self.joined = Joined::default();
        let ran = match ran {
            Ok(()) => self.end_string(client).await,
            Err(e) => Err(e),
        };
        let ran = ran.map_err(|e| self.spelled(e));
        if ran.is_err() {
            self.statement_failed().await;
        }
        self.statement_ended(client);
        if let Some(logged) = logged {
            self.log_ended(logged);
        }
        ran
    }

    /// The last statement of a string is done when what it did is committed: what that says comes
    /// before its tag, and the tag only if it went well.
    async fn end_string(&mut self, client: &mut dyn Client) -> Result<()> {
        let ended = self.end_implicit().await;
        if ended.is_ok() && self.unsaid.is_empty() {
            return Ok(());
        }
        let tag = client.take_tag();
        self.say(client);
        if let (Ok(()), Some(tag)) = (&ended, tag) {
            client.give_tag(tag);
        }
        ended
    }

    /// An error as the client is told it: with the names of types that users made, which the
    /// statement's catalog knows.
    pub fn spelled(&self, mut error: Error) -> Error {
        let own = self.transaction.as_ref();
        let own = own.and_then(Transaction::own_catalog);
        let catalog = own.unwrap_or_else(|| self.published.borrow().clone());
        catalog.spell_types(&self.search_path(&catalog), &mut error);
        error
    }

    async fn run_string(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        if self.run_known(sql, client).await? {
            return Ok(());
        }
        let statements = self.parsed(sql).await?;
        if statements.is_empty() {
            client.empty_query();
        }
        self.joined.others = statements.len() > 1;
        for (number, parsed) in statements.into_iter().enumerate() {
            self.refuse_if_failed(&parsed.statement)?;
            if number > 0 {
                // Each has its own time, by what those before it have set.
                self.limit_statement();
            }
            self.begin_if_idle();
            self.families.forget();
            if is_data(&parsed.statement) {
                let statement = Arc::new(parsed.statement);
                self.run_data(&statement, sql, client).await?;
                continue;
            }
            let text = &sql[parsed.start as usize..parsed.end as usize];
            if let Some(command) = Command::of_transaction(&parsed.statement) {
                self.run_command(command, text, client).await?;
                self.settings_changed();
                continue;
            }
            let bound = Box::pin(self.bind_command(&parsed.statement, sql, &[])).await?;
            self.notices(bound.notices, client);
            self.run_bound(bound.statement, text, sql, client).await?;
            self.settings_changed();
        }
        Ok(())
    }

    fn statement_began(&mut self, text: &str) {
        let now = throng_txn::now_micros();
        self.statement_time = from_unix(now);
        self.effects.clear();
        self.families.forget();
        // A cancel that came while nothing ran was for the statement before.
        self.handle.cancel_flag().statement_ended();
        self.handle.entry().statement_began(text, now);
        self.limit_statement();
    }

    fn statement_ended(&mut self, client: &mut dyn Client) {
        self.say(client);
        self.procedures.ended();
        self.handle.cancel_flag().statement_ended();
        let state = match self.block {
            Block::None => SessionState::Idle,
            Block::Open => SessionState::IdleInTransaction,
            Block::Failed => SessionState::IdleInFailedTransaction,
        };
        self.handle.entry().set_state(state);
        self.settings_changed();
        for (name, value) in self.settings.borrow_mut().take_changed() {
            if name == "application_name" {
                self.handle
                    .entry()
                    .update_info(|info| info.application_name = value.clone());
            }
            client.parameter_status(name, &value);
        }
        self.tell_notifications(client);
    }

    /// Derives anew what depends on settings.
    fn settings_changed(&self) {
        let settings = self.settings.borrow();
        if settings.version() == self.format_version.get() {
            return;
        }
        *self.format.borrow_mut() = shared::format(format_settings(&settings));
        self.format_version.set(settings.version());
        steer_waits(self.handle.entry(), &settings);
    }

    // The extended protocol

    pub async fn parse(&mut self, name: &str, sql: &str, types: &[u32]) -> Result<()> {
        self.message_began(sql)?;
        if !name.is_empty() && self.prepared.borrow().contains_key(name) {
            return Err(Error::new(
                state::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        match name.is_empty() {
            true => drop(self.prepared.get_mut().remove("")),
            false => self.has_room_to_prepare()?,
        }
        // 0 leaves the type to us.
        let declared = |oid: &u32| SqlType::plain(if *oid == 0 { oid::UNKNOWN } else { Oid(*oid) });
        let types: Vec<SqlType> = types.iter().map(declared).collect();
        let prepared = self.prepare_text(sql, types).await?;
        self.prepared
            .get_mut()
            .insert(name.to_owned(), Rc::new(prepared));
        Ok(())
    }

    /// Makes a portal; false where something is [to be waited for](Self::wait_to_bind) first.
    pub fn bind<'p>(
        &mut self,
        portal: &str,
        statement: &str,
        parameter_formats: &[i16],
        parameters: impl ExactSizeIterator<Item = Option<&'p [u8]>>,
        result_formats: &[i16],
        ready: Option<ReadyToBind>,
    ) -> Result<bool> {
        self.still_in_time()?;
        let prepared = self.find_prepared(statement)?;
        let known = prepared.known();
        if let Some(ast) = &known.statement {
            self.refuse_if_failed(ast)?;
        }
        if !portal.is_empty() && self.portals.borrow().get(portal).is_some() {
            return Err(Error::new(
                state::DUPLICATE_CURSOR,
                format!("cursor \"{portal}\" already exists"),
            ));
        }
        self.portals.borrow().has_room()?;
        if self.transaction.is_none() {
            // What begins with this message began now.
            self.statement_time = from_unix(throng_txn::now_micros());
        }
        self.begin_if_idle();
        let (known, values) = match ready {
            Some(ReadyToBind { known, values }) => (known, values),
            None if known.plan.is_some() && !prepared.is_of(self.plan_key()) => return Ok(false),
            None => {
                let read =
                    self.read_parameters(&known, statement, parameter_formats, parameters)?;
                match read {
                    (values, long) if long.is_empty() => (known, values),
                    _ => return Ok(false),
                }
            }
        };
        let known = self.known_of_bind(known)?;
        self.check_at_bind(&known, &values)?;
        let made = self.make_portal(prepared, &known, values, result_formats)?;
        self.portals.get_mut().insert(portal, made);
        Ok(true)
    }

    pub async fn describe_statement(
        &mut self,
        name: &str,
    ) -> Result<(Vec<u32>, Option<Arc<RowShape>>)> {
        self.still_in_time()?;
        let prepared = self.find_prepared(name)?;
        let known = prepared.known();
        if let Some(statement) = known.statement.as_ref().filter(|_| known.columns.is_some()) {
            self.refuse_if_failed(statement)?;
        }
        let types = known.params.iter().map(|t| t.oid.0).collect();
        Ok((types, known.columns.clone()))
    }

    pub async fn describe_portal(&mut self, name: &str) -> Result<Option<Arc<RowShape>>> {
        self.still_in_time()?;
        let portal = self.find_portal(name)?;
        let statement = portal
            .prepared
            .as_ref()
            .and_then(|p| p.known().statement.clone());
        if let Some(statement) = statement.filter(|_| portal.shape.is_some()) {
            self.refuse_if_failed(&statement)?;
        }
        Ok(portal.shape.clone())
    }

    /// Runs a portal, or goes on with it: at most `max_rows` rows, 0 for all.
    pub async fn execute(
        &mut self,
        name: &str,
        max_rows: u32,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.still_in_time()?;
        throng_exec::turns::statement_begins();
        let Some(mut portal) = self.portals.get_mut().remove(name) else {
            return Err(no_portal(name));
        };
        let statement = portal
            .prepared
            .as_ref()
            .and_then(|p| p.known().statement.clone());
        let refused = statement.map_or(Ok(()), |ast| self.refuse_if_failed(&ast));
        if let Err(e) = refused.and_then(|()| portal.must_run(name)) {
            self.portals.borrow_mut().insert(name, portal);
            return Err(e);
        }
        self.message_began(&portal.sql)?;
        let logged = self
            .hot_settings()
            .logs
            .then(|| self.log_began("execute", &portal.sql));
        self.begin_if_idle();
        let limit = if max_rows == 0 {
            u64::MAX
        } else {
            max_rows.into()
        };
        let ran = self.run_portal(&mut portal, limit, client).await;
        if ran.is_err() {
            portal.fail();
        }
        let ran = match ran {
            Ok(()) => self.executed().await,
            Err(e) => Err(e),
        };
        if ran.is_ok() {
            // The next message begins another statement.
            self.handle.cancel_flag().set_deadline(None);
        }
        if let Some(logged) = logged {
            self.log_ended(logged);
        }
        // The transaction may have ended inside, and its portals with it.
        if self.transaction.is_some() || self.block == Block::Open {
            self.portals.get_mut().insert(name, portal);
        }
        ran
    }

    pub fn close_statement(&mut self, name: &str) {
        self.prepared.get_mut().remove(name);
    }

    pub fn close_portal(&mut self, name: &str) {
        self.portals.get_mut().remove(name);
    }

    /// The end of a batch of the extended protocol: what was in no block is committed.
    pub async fn sync(&mut self, client: &mut dyn Client) -> Result<()> {
        self.joined = Joined::default();
        let ended = self.end_implicit().await;
        if ended.is_err() {
            self.statement_failed().await;
        }
        self.statement_ended(client);
        ended
    }

    /// A message failed: one of the extended protocol, or one that is no text.
    pub async fn message_failed(&mut self) {
        self.statement_failed().await;
    }

    fn find_prepared(&self, name: &str) -> Result<Rc<Prepared>> {
        self.prepared.borrow().get(name).cloned().ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            Error::new(state::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    fn find_portal(&self, name: &str) -> Result<Ref<'_, Portal>> {
        let found = Ref::filter_map(self.portals.borrow(), |portals| portals.get(name));
        found.map_err(|_| no_portal(name))
    }

    /// Runs one bound command to its end; `text` is how it was written, `sql` all that was written
    /// with it.
    async fn run_bound(
        &mut self,
        statement: BoundStatement,
        text: &str,
        sql: &str,
        client: &mut dyn Client,
    ) -> Result<()> {
        match statement {
            BoundStatement::Query(_) => Err(Error::internal("a data statement among commands")),
            BoundStatement::Explain { options, query } => {
                self.explain(&options, *query, client).await
            }
            BoundStatement::ExplainExecute { options, execute } => {
                self.explain_execute(&options, *execute, client).await
            }
            BoundStatement::CreateTableAsExecute {
                table,
                names,
                with_data,
                execute,
            } => {
                self.create_table_as_execute(*table, names, with_data, *execute, client)
                    .await
            }
            BoundStatement::CreateSchema { schema, elements } => {
                self.create_schema(*schema, &elements, sql, client).await
            }
            BoundStatement::Ddl(ddl) => self.run_ddl(*ddl, client).await,
            BoundStatement::Command(command) => {
                // A prepared statement is shown with all that came with it.
                let text = match *command {
                    Command::Prepare { .. } => sql,
                    _ => text,
                };
                self.run_command(*command, text, client).await
            }
        }
    }
}

fn no_portal(name: &str) -> Error {
    Error::new(
        state::INVALID_CURSOR_NAME,
        format!("portal \"{name}\" does not exist"),
    )
}

/// Microseconds since 2000-01-01 UTC.
pub(crate) fn now() -> i64 {
    from_unix(throng_txn::now_micros())
}
