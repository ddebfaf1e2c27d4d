//! Prepared statements: understood once for each catalog and each set of settings that matter, or
//! found understood.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use throng_bind::command::{BoundStatement, Command, CreateTable, Ddl};
use throng_bind::expr::Expr;
use throng_catalog::Catalog;
use throng_plan::PlannedStatement;
use throng_sync::VectorPool;
use throng_syntax::parse::ast::Statement;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, SqlType, oid};
use throng_values::func::EvalContext;
use throng_values::io;

use crate::session::statement::declared;
use crate::session::statement::plans::{self, CachedPlan, PlanKey};
use crate::session::statement::query::{as_text, columns};
use crate::session::{Session, now};
use throng_exec::client::{Client, RowShape};

/// The types of a command's parameters: as they were declared, or as its arguments take them.
fn parameters(args: &[Expr], declared: &[SqlType]) -> Vec<SqlType> {
    let mut types = declared.to_vec();
    for arg in args {
        arg.any(&mut |e| {
            if let Expr::Param(n, ty) = e {
                let at = usize::from(*n);
                if types.len() <= at {
                    types.resize(at + 1, SqlType::UNKNOWN);
                }
                if types[at].oid == oid::UNKNOWN {
                    types[at] = *ty;
                }
            }
            false
        });
    }
    types
}

thread_local! {
    /// For parameters' values: of statements that have run, for the next ones of any session.
    pub(in crate::session) static VALUES: VectorPool<Datum> = const { VectorPool::new(8, 64) };
}

/// A statement to be run any number of times.
pub(crate) struct Prepared {
    /// The types its maker gave its parameters.
    declared: Vec<SqlType>,
    /// What it means, and when that was so.
    known: RefCell<(PlanKey, Rc<CachedPlan>)>,
    /// Made by PREPARE rather than by the protocol.
    pub from_sql: bool,
    pub made_at: i64,
}

impl Prepared {
    pub fn known(&self) -> Rc<CachedPlan> {
        self.known.borrow().1.clone()
    }

    /// Whether it is SELECT, VALUES or TABLE.
    pub fn is_query(&self) -> bool {
        matches!(self.known().statement.as_deref(), Some(Statement::Query(_)))
    }

    /// Whether it was understood as things are now.
    pub fn is_of(&self, key: PlanKey) -> bool {
        self.known.borrow().0 == key
    }

    /// Makes it be understood anew when it runs next.
    pub fn forget(&self) {
        // Catalogs are numbered from 1.
        self.known.borrow_mut().0.catalog = 0;
    }
}

pub(in crate::session) fn is_data(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
    )
}

/// A statement and its parameters' values, as a Bind takes them.
pub struct ReadyToBind {
    pub(in crate::session) known: Rc<CachedPlan>,
    pub(in crate::session) values: Vec<Datum>,
}

/// A parameter's format code.
#[inline]
fn format_of(formats: &[i16], at: usize) -> i16 {
    match formats {
        [] => 0,
        [one] => *one,
        many => many[at],
    }
}

/// Whether reading a long value of a type is more than taking it as it comes. Domains ask the
/// session.
fn takes_long(ty: SqlType) -> bool {
    let as_it_comes = matches!(ty.oid, oid::TEXT | oid::VARCHAR | oid::BYTEA | oid::UNKNOWN);
    !as_it_comes && !declared::is_of_domain(ty)
}

/// Bytes of a parameter whose reading may take long.
const LONG_VALUE: usize = 1 << 16;

/// A parameter's value.
fn value_of(eval: EvalContext<'_>, bytes: &[u8], format: i16, ty: SqlType) -> Result<Datum> {
    match format {
        0 => io::input_text(&eval, &eval.format.charset.decode(bytes)?, ty),
        1 => io::input_binary(&eval, bytes, ty),
        other => Err(Error::new(
            state::PROTOCOL_VIOLATION,
            format!("unsupported format code: {other}"),
        )),
    }
}

impl Session {
    /// Whether Parse is to know what a statement's names mean; those of other commands are looked
    /// up when they run.
    fn is_understood_at_once(&self, statement: &Statement) -> bool {
        use Statement as S;
        match statement {
            S::CreateTable(create) => create.query.is_some(),
            S::Explain { statement, .. } => self.is_understood_at_once(statement),
            S::Execute { name, .. } => self.prepared.borrow().contains_key(name),
            S::Declare { .. } | S::Call(..) | S::CreateTableAsExecute { .. } => true,
            data => is_data(data),
        }
    }

    /// The types of a prepared statement's parameters.
    pub(in crate::session) fn parameters_of(&self, name: &str) -> Option<Vec<SqlType>> {
        let prepared = self.prepared.borrow().get(name).cloned();
        Some(prepared?.known().params.clone())
    }

    /// 53200 where there are more prepared statements than anybody uses: a loop may prepare for
    /// ever.
    pub(in crate::session) fn has_room_to_prepare(&self) -> Result<()> {
        const MOST: usize = 20_000;
        match self.prepared.borrow().len() < MOST {
            true => Ok(()),
            false => Err(Error::new(state::OUT_OF_MEMORY, "out of memory")
                .detail(format!("The session has {MOST} prepared statements."))),
        }
    }

    /// What a prepared statement means now, to whoever runs it inside another statement.
    pub(in crate::session) async fn prepared_now(&self, name: &str) -> Result<CachedPlan> {
        let prepared = self.find_prepared(name)?;
        let known = prepared.known();
        self.understand(&known.sql, known.statement.clone(), &known.params)
            .await
    }

    /// What a plan made now would be made for.
    pub(in crate::session) fn plan_key(&self) -> PlanKey {
        if self.sees_what_is_published() {
            return self.plan_key_with(self.published_version.get(), false);
        }
        let catalog = self.catalog();
        self.plan_key_of(&catalog)
    }

    pub(in crate::session) fn plan_key_of(&self, catalog: &Catalog) -> PlanKey {
        let own = self.has_own_definitions() || catalog.base().is_some();
        self.plan_key_with(catalog.version(), own)
    }

    fn plan_key_with(&self, catalog: u64, own: bool) -> PlanKey {
        PlanKey {
            engine: self.engine.number,
            catalog,
            own,
            role: self.current_role_oid(),
            temporary: self.temporary.published(),
            settings: self.settings_number.get(&self.settings.borrow()),
        }
    }

    /// Binds a statement to know its parameters, and plans it, if it is one that has a plan, to
    /// know its columns.
    pub(in crate::session) async fn understand(
        &self,
        sql: &str,
        statement: Option<Arc<Statement>>,
        types: &[SqlType],
    ) -> Result<CachedPlan> {
        let Some(ast) = statement.clone() else {
            return Ok(CachedPlan::new(sql, None, types.to_vec(), None));
        };
        let known =
            |params: &[SqlType], columns| CachedPlan::new(sql, statement, params.to_vec(), columns);
        if !self.is_understood_at_once(&ast) {
            return Ok(known(types, self.columns_shown(&ast)?));
        }
        let bound = self.bind_statement(&ast, sql, types).await?;
        Ok(match bound.statement {
            BoundStatement::Query(query) => {
                let params = declared::as_declared(&query.params, types);
                let plan = Arc::new(self.plan(*query).await?);
                let known = known(&params, columns(&plan));
                let catalog = self.catalog();
                known.planned(plan, &self.engine.store, &catalog)
            }
            BoundStatement::Explain { options, query } => {
                let params = declared::as_declared(&query.params, types);
                known(&params, Some(self.explain_shape(&options)))
            }
            BoundStatement::ExplainExecute { options, .. } => {
                known(types, Some(self.explain_shape(&options)))
            }
            BoundStatement::Ddl(ddl) => match *ddl {
                Ddl::CreateTable(CreateTable {
                    source: Some(source),
                    ..
                }) => known(&source.query.params, None),
                _ => known(types, None),
            },
            BoundStatement::CreateTableAsExecute { .. } | BoundStatement::CreateSchema { .. } => {
                known(types, None)
            }
            BoundStatement::Command(command) => {
                let columns = self.command_columns(&command);
                match &*command {
                    Command::Declare { query, .. } => known(&query.params, columns),
                    Command::Call(call) => known(&parameters(&call.args, types), columns),
                    Command::Execute { args, .. } => known(&parameters(args, types), columns),
                    _ => known(types, columns),
                }
            }
        })
    }

    /// As [`understand`](Self::understand), where others may have the loop meanwhile.
    async fn understood(
        &self,
        sql: &str,
        statement: Option<Arc<Statement>>,
        types: &[SqlType],
    ) -> Result<CachedPlan> {
        match statement {
            Some(statement) if is_data(&statement) => self.known_data(statement, sql, types).await,
            other => {
                self.by_lasting_definitions(async |_| {
                    self.understand(sql, other.clone(), types).await.map(Some)
                })
                .await
            }
        }
    }

    /// What Bind knows of a statement: which rows a command shows may have changed since it was
    /// parsed.
    pub(in crate::session) fn known_of_bind(
        &self,
        known: Rc<CachedPlan>,
    ) -> Result<Rc<CachedPlan>> {
        let Some(statement @ Statement::Fetch { .. }) = known.statement.as_deref() else {
            return Ok(known);
        };
        let columns = self.columns_shown(statement)?;
        let (statement, params) = (known.statement.clone(), known.params.clone());
        Ok(Rc::new(CachedPlan::new(
            &known.sql, statement, params, columns,
        )))
    }

    /// The columns of what a command shows that is not understood before it runs.
    fn columns_shown(&self, statement: &Statement) -> Result<Option<Arc<RowShape>>> {
        Ok(match statement {
            Statement::Show(name) => {
                if let Some(name) = name {
                    self.may_examine(name)?;
                    self.show(name)?;
                }
                Some(as_text(crate::session::utility::command::show_fields(
                    name.as_deref(),
                )))
            }
            Statement::Fetch {
                name,
                moving: false,
                ..
            } => {
                let portals = self.portals.borrow();
                let shape = portals.get(name).and_then(|portal| portal.shape.as_ref());
                shape.map(|shape| as_text(shape.fields.clone()))
            }
            _ => None,
        })
    }

    /// The columns of what a command shows.
    fn command_columns(&self, command: &Command) -> Option<Arc<RowShape>> {
        match command {
            Command::Call(call) if !call.columns.is_empty() => {
                Some(crate::session::routine::columns_of_call(&call.columns))
            }
            Command::Execute { name, .. } => {
                let prepared = self.prepared.borrow().get(name).cloned();
                prepared?.known().columns.clone()
            }
            _ => None,
        }
    }

    /// What a text of the extended protocol means: as the core knows it, or by parsing and
    /// understanding it.
    pub(in crate::session) async fn known_text(
        &mut self,
        sql: &str,
        types: &[SqlType],
    ) -> Result<(PlanKey, Rc<CachedPlan>)> {
        let key = self.plan_key();
        let mut name = std::mem::take(&mut self.name);
        plans::name_of(sql, types, &mut name);
        let found = plans::find(key, &name).flatten();
        let known = match found.filter(|known| !known.is_outgrown(&self.engine.store)) {
            Some(known) => Ok((key, known)),
            None => Box::pin(self.learn_text(sql, types, &name)).await,
        };
        self.name = name;
        known
    }

    #[cold]
    async fn learn_text(
        &mut self,
        sql: &str,
        types: &[SqlType],
        name: &str,
    ) -> Result<(PlanKey, Rc<CachedPlan>)> {
        let mut statements = self.parsed(sql).await?;
        if statements.len() > 1 {
            return Err(Error::new(
                state::SYNTAX_ERROR,
                "cannot insert multiple commands into a prepared statement",
            ));
        }
        let statement = statements.pop().map(|parsed| Arc::new(parsed.statement));
        if let Some(statement) = &statement {
            self.refuse_if_failed(statement)?;
        }
        self.begin_if_idle();
        let key = self.plan_key();
        let known = Rc::new(self.understood(sql, statement, types).await?);
        // What a command shows depends on the session.
        if known.plan.is_some() {
            plans::keep(key, name, Some(known.clone()));
        }
        Ok((key, known))
    }

    /// A prepared statement of the protocol.
    pub(in crate::session) async fn prepare_text(
        &mut self,
        sql: &str,
        types: Vec<SqlType>,
    ) -> Result<Prepared> {
        let (key, known) = self.known_text(sql, &types).await?;
        if let Some(statement) = &known.statement {
            self.refuse_if_failed(statement)?;
        }
        self.begin_if_idle();
        Ok(Prepared {
            declared: types,
            known: RefCell::new((key, known)),
            from_sql: false,
            made_at: now(),
        })
    }

    /// The plan of a prepared data statement, its tables locked; None where it is to be planned for
    /// its values.
    pub(in crate::session) async fn plan_of(
        &mut self,
        prepared: &Prepared,
        values: &[Datum],
    ) -> Result<Option<Arc<PlannedStatement>>> {
        loop {
            let version = self.database.version();
            let known = self.current(prepared, self.plan_key()).await?;
            let Some(plan) = known.plan.clone() else {
                return Err(Error::internal("a command has no plan"));
            };
            if plan.wants_values {
                return Ok(None);
            }
            if self.lock_planned(&plan, values, version).await? {
                return Ok(Some(plan));
            }
        }
    }

    /// What is known of a statement as things are now. 0A000 where it would have other columns than
    /// it was told to have.
    pub(in crate::session) async fn current(
        &mut self,
        prepared: &Prepared,
        key: PlanKey,
    ) -> Result<Rc<CachedPlan>> {
        if let Some(known) = self.is_current(prepared, key) {
            return Ok(known);
        }
        let known = prepared.known();
        let known = Box::pin(self.understand_anew(prepared, &known)).await?;
        *prepared.known.borrow_mut() = (key, known.clone());
        Ok(known)
    }

    /// What is known of a statement, if things are as they were.
    #[inline]
    pub(in crate::session) fn is_current(
        &self,
        prepared: &Prepared,
        key: PlanKey,
    ) -> Option<Rc<CachedPlan>> {
        let (of, known) = prepared.known.borrow().clone();
        (of == key && !known.is_outgrown(&self.engine.store)).then_some(known)
    }

    /// What a Bind waits for that cannot be done at once: the statement is understood anew, or a
    /// parameter is long.
    pub async fn wait_to_bind<'p>(
        &mut self,
        statement: &str,
        formats: &[i16],
        parameters: impl Iterator<Item = Option<&'p [u8]>>,
    ) -> Result<ReadyToBind> {
        let prepared = self.find_prepared(statement)?;
        self.begin_if_idle();
        let mut known = prepared.known();
        if known.plan.is_some() {
            known = self.current(&prepared, self.plan_key()).await?;
        }
        let parameters: Vec<Option<&[u8]>> = parameters.collect();
        let given = parameters.iter().copied();
        let (mut values, long) = self.read_parameters(&known, statement, formats, given)?;
        for at in long {
            if let Some(bytes) = parameters[at] {
                let (format, ty) = (format_of(formats, at), known.params[at]);
                values[at] = self.read_long_parameter(bytes, format, ty).await?;
            }
        }
        Ok(ReadyToBind { known, values })
    }

    #[cold]
    async fn understand_anew(
        &mut self,
        prepared: &Prepared,
        known: &CachedPlan,
    ) -> Result<Rc<CachedPlan>> {
        let (sql, types) = (&known.sql, &prepared.declared);
        let now = if prepared.from_sql {
            Rc::new(self.understood(sql, known.statement.clone(), types).await?)
        } else {
            self.known_text(sql, types).await?.1
        };
        let told = |columns: &Option<Arc<RowShape>>| -> Option<Vec<(String, SqlType)>> {
            let fields = columns.as_ref()?.fields.iter();
            Some(fields.map(|f| (f.name.clone(), f.ty)).collect())
        };
        if told(&now.columns) != told(&known.columns) {
            return Err(Error::new(
                state::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            )
            // Drivers that heal this by preparing anew know it by the routine.
            .routine("RevalidateCachedQuery"));
        }
        Ok(now)
    }

    /// The values of a Bind message, and which of them are [read
    /// elsewhere](Self::read_long_parameter), for reading them may take long.
    pub(in crate::session) fn read_parameters<'v>(
        &self,
        known: &CachedPlan,
        name: &str,
        formats: &[i16],
        values: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(Vec<Datum>, Vec<usize>)> {
        let wrong = |message: String| Error::new(state::PROTOCOL_VIOLATION, message);
        if formats.len() > 1 && formats.len() != values.len() {
            return Err(wrong(format!(
                "bind message has {} parameter formats but {} parameters",
                formats.len(),
                values.len()
            )));
        }
        if values.len() != known.params.len() {
            return Err(wrong(format!(
                "bind message supplies {} parameters, but prepared statement \"{name}\" requires {}",
                values.len(),
                known.params.len()
            )));
        }
        let (mut datums, mut long) = (VALUES.with(VectorPool::take), Vec::new());
        datums.reserve(values.len());
        for (i, (value, ty)) in values.zip(&known.params).enumerate() {
            let format = format_of(formats, i);
            datums.push(match value {
                None if declared::is_of_domain(*ty) => self.null_parameter(*ty)?,
                None => Datum::Null,
                Some(bytes) => match plain_integer(bytes, format, *ty) {
                    Some(datum) => datum,
                    None if bytes.len() > LONG_VALUE && takes_long(*ty) => {
                        long.push(i);
                        Datum::Null
                    }
                    None => self.read_parameter(bytes, format, *ty)?,
                },
            });
        }
        Ok((datums, long))
    }

    fn read_parameter(&self, bytes: &[u8], format: i16, ty: SqlType) -> Result<Datum> {
        let catalog = self.catalog();
        let host = self.host(&catalog);
        if format == 0 && declared::is_of_domain(ty) {
            let plain = declared::plain(&catalog, ty);
            let value = value_of(host.eval(), bytes, format, plain)?;
            host.eval().host.check_in_domain(ty.oid, &value)?;
            return Ok(value);
        }
        value_of(host.eval(), bytes, format, ty)
    }

    async fn read_long_parameter(&self, bytes: &[u8], format: i16, ty: SqlType) -> Result<Datum> {
        let bytes = bytes.to_vec();
        self.aside(move |eval| value_of(eval, &bytes, format, ty))
            .await
    }

    /// NULL, where the domain allows it.
    #[cold]
    fn null_parameter(&self, ty: SqlType) -> Result<Datum> {
        let catalog = self.catalog();
        self.host(&catalog)
            .eval()
            .host
            .check_in_domain(ty.oid, &Datum::Null)?;
        Ok(Datum::Null)
    }

    /// PREPARE.
    pub(in crate::session) async fn prepare_named(
        &self,
        name: String,
        types: Vec<SqlType>,
        statement: Arc<Statement>,
        sql: &str,
    ) -> Result<()> {
        if self.prepared.borrow().contains_key(&name) {
            return Err(Error::new(
                state::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        self.has_room_to_prepare()?;
        let (key, known) = loop {
            let (version, key) = (self.database.version(), self.plan_key());
            let known = self
                .understood(sql, Some(statement.clone()), &types)
                .await?;
            let Some(plan) = &known.plan else {
                break (key, known);
            };
            // What was understood stays as it is while the transaction lasts, and its snapshot is
            // of now.
            if self.lock_planned(plan, &[], version).await? {
                let transaction = self.transaction()?;
                transaction.used.set(true);
                if transaction.txn.isolation().keeps_snapshot() {
                    drop(transaction.txn.snapshot());
                }
                break (key, known);
            }
        };
        let prepared = Prepared {
            declared: types,
            known: RefCell::new((key, Rc::new(known))),
            from_sql: true,
            made_at: now(),
        };
        self.prepared.borrow_mut().insert(name, Rc::new(prepared));
        Ok(())
    }

    /// DEALLOCATE.
    pub(in crate::session) fn deallocate(&self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.prepared.borrow_mut().clear(),
            Some(name) => {
                self.find_prepared(name)?;
                self.prepared.borrow_mut().remove(name);
            }
        }
        Ok(())
    }

    /// EXECUTE, with its arguments' values.
    pub(in crate::session) async fn execute_prepared(
        &mut self,
        name: &str,
        values: Vec<Datum>,
        client: &mut dyn Client,
    ) -> Result<()> {
        let prepared = self.find_prepared(name)?;
        let plan = self.plan_with(&prepared, &values).await?;
        let columns = prepared.known().columns.clone();
        self.run_planned(plan, values, columns.as_deref(), client)
            .await?;
        Ok(())
    }
}

/// An int4 or int8 in a few plain digits, as most parameters of a crowd are; None: to be read as
/// any other value.
fn plain_integer(bytes: &[u8], format: i16, ty: SqlType) -> Option<Datum> {
    /// So many fit either type.
    const DIGITS: usize = 9;
    if format != 0 || bytes.is_empty() || bytes.len() > DIGITS {
        return None;
    }
    let mut value = 0;
    for byte in bytes {
        value = value * 10 + i32::from(byte.is_ascii_digit().then(|| byte - b'0')?);
    }
    match ty.oid {
        oid::INT4 => Some(Datum::Int4(value)),
        oid::INT8 => Some(Datum::Int8(value.into())),
        _ => None,
    }
}
