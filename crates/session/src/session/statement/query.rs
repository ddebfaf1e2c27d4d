//! Data statements: from a bound query to its rows and its tag.

use std::borrow::Cow;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use throng_catalog::{Catalog, IndexDef, IndexMethod};
use throng_plan::{PlannedStatement, StatementTag, is_constant};
use throng_syntax::parse::ast::Statement;
use throng_syntax::vocabulary::TableLock;
use throng_txn::{Isolation, LockMode, Snapshot};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, SqlType};

use crate::session::Session;
use crate::session::answers::eval_host::SessionHost;
use crate::session::definition::in_use::{Held, Using};
use crate::session::statement::plans::{self, CachedPlan, Knowledge, PlanKey};
use crate::session::statement::prepared::is_data;
use crate::session::statement::shape::Shape;
use crate::session::transaction::Block;
use throng_exec::client::Turns;
use throng_exec::client::{Client, Field, Format, RowShape};
use throng_exec::drive::{Returning, next, next_after, next_now};
use throng_exec::outgoing;
use throng_exec::run::build::Execution;
use throng_exec::run::context::{Env, NodeCounters};
use throng_exec::run::{Row, Suspension, constant};
use throng_exec::spill::{RowList, RowStore};
use throng_exec::write;

impl Session {
    /// Binds, plans and runs a data statement of the simple protocol.
    pub(in crate::session) async fn run_data(
        &mut self,
        statement: &Arc<Statement>,
        sql: &str,
        client: &mut dyn Client,
    ) -> Result<()> {
        let planned = loop {
            let version = self.database.version();
            // What it takes is no part of an idle session.
            let understood = self.understand_data(statement, sql, &[], None);
            let understood = Box::pin(understood).await?;
            self.notices(understood.notices, client);
            if self.lock_planned(&understood.plan, &[], version).await? {
                break understood.plan;
            }
        };
        let shape = columns(&planned);
        self.run_planned(planned, Vec::new(), shape.as_deref(), client)
            .await?;
        Ok(())
    }

    /// Runs a plan whose tables are locked, and tells its columns, rows and tag.
    /// Gives back the values' room.
    pub(in crate::session) async fn run_planned(
        &self,
        planned: Arc<PlannedStatement>,
        values: Vec<Datum>,
        shape: Option<&RowShape>,
        client: &mut dyn Client,
    ) -> Result<Vec<Datum>> {
        let mut run = self.start(planned, values, Rows::Given)?;
        self.find_position(run.execution.plan(), &run.snapshot)
            .await?;
        if let Some(shape) = shape {
            client.row_description(shape);
        }
        let ran = self.run_whole(&mut run, shape, client).await;
        if let (Err(_), Some(shape)) = (&ran, shape)
            && is_constant(run.execution.plan())
        {
            // Who plans such a statement by computing it fails before it tells the columns.
            client.take_back(shape);
        }
        ran?;
        Ok(run.retire())
    }

    /// Runs to the end, and tells rows and tag.
    pub(in crate::session) async fn run_whole(
        &self,
        run: &mut Run,
        shape: Option<&RowShape>,
        client: &mut dyn Client,
    ) -> Result<()> {
        let ran = self.run_to(run, shape, u64::MAX, client).await?;
        client.command_complete(&tag(run.execution.plan().tag, ran.rows));
        Ok(())
    }

    /// Runs a text whose shape was run before without parsing it; false if it has none.
    pub(in crate::session) async fn run_known(
        &mut self,
        sql: &str,
        client: &mut dyn Client,
    ) -> Result<bool> {
        if self.block == Block::Failed {
            return Ok(false);
        }
        let Some(mut shape) = Shape::of(sql) else {
            return Ok(false);
        };
        let ran = self.run_shape(&mut shape, client).await;
        shape.give_back();
        ran
    }

    async fn run_shape(&mut self, shape: &mut Shape, client: &mut dyn Client) -> Result<bool> {
        self.begin_if_idle();
        plans::add_types(&shape.types, &mut shape.name);
        let (known, plan) = loop {
            let version = self.database.version();
            let knowledge = plans::find(self.plan_key(), &shape.name);
            let fresh = |known: &Rc<CachedPlan>| !known.is_outgrown(&self.engine.store);
            let knowledge = match knowledge {
                Some(None) => return Ok(false),
                Some(Some(known)) if fresh(&known) => Some(known),
                _ => Box::pin(self.learn_shape(shape)).await?,
            };
            let Some(known) = knowledge else {
                return Ok(false);
            };
            let plan = known.plan.clone().filter(|plan| !plan.wants_values);
            let Some(plan) = plan else {
                return Ok(false);
            };
            if self.lock_planned(&plan, &shape.values, version).await? {
                break (known, plan);
            }
        };
        let values = std::mem::take(&mut shape.values);
        let ran = self.run_planned(plan, values, known.columns.as_deref(), client);
        shape.values = ran.await?;
        Ok(true)
    }

    /// Understands a shape met for the first time. That one cannot be understood by itself is known
    /// from then on too: its texts are run as they are, and complain as they should.
    #[cold]
    async fn learn_shape(&mut self, shape: &Shape) -> Result<Knowledge> {
        let parsed = self.parsed(shape.text()).await;
        let key = self.plan_key();
        let known = match parsed {
            Ok(mut parsed) if parsed.len() == 1 && is_data(&parsed[0].statement) => {
                let statement = Arc::new(parsed.remove(0).statement);
                self.known_data(statement, shape.text(), &shape.types).await
            }
            Ok(_) => return Ok(self.keep_shape(key, shape, None)),
            Err(e) => Err(e),
        };
        // The statement's end is none of its meaning.
        self.handle.cancel_flag().check()?;
        let known = known.ok().filter(|k| k.params == shape.types);
        let known = known.filter(|k| !self.asks_for_constants(k)).map(Rc::new);
        Ok(self.keep_shape(key, shape, known))
    }

    fn keep_shape(&self, key: PlanKey, shape: &Shape, known: Knowledge) -> Knowledge {
        plans::keep(key, &shape.name, known.clone());
        known
    }

    /// Whether the constants of a statement may decide how it is run: which indexes on expressions
    /// and of a part of the rows serve it, or, where it takes long anyway, in which order its
    /// tables are read.
    fn asks_for_constants(&mut self, known: &CachedPlan) -> bool {
        /// A statement that costs more is planned each time.
        const DEAR: f64 = 1000.0;
        if known
            .plan
            .as_ref()
            .is_some_and(|plan| plan.root.cost.total > DEAR || plan.wants_values)
        {
            return true;
        }
        let catalog = self.catalog();
        let of = |table: Oid| catalog.indexes_of(table).iter().any(|i| !i.is_plain());
        // How many rows an inverted index finds hangs on what it is asked for.
        let is_inverted = |i: &Arc<IndexDef>| i.terms.method == IndexMethod::Gin;
        let searched = |table: Oid| catalog.indexes_of(table).iter().any(is_inverted);
        let mut locks = known
            .plan
            .iter()
            .flat_map(|plan| plan.all_locks().map(move |(table, _)| (plan, table)));
        locks.any(|(plan, table)| of(table) || searched(table) && plan.reads_in_bulk(table))
    }

    /// Takes the locks a plan needs. A deferrable transaction first waits for its snapshot.
    pub(in crate::session) async fn lock_tables(&self, locks: &[(Oid, TableLock)]) -> Result<()> {
        let transaction = self.transaction()?;
        let txn = &transaction.txn;
        let only_reads = transaction.read_only.get() && txn.isolation() == Isolation::Serializable;
        if transaction.deferrable.get() && only_reads {
            txn.take_safe_snapshot().await?;
        }
        self.lock_families(txn, locks).await
    }

    /// Takes the locks that a plan of the definitions of `version` needs. False if the definitions
    /// are others by then: while a lock was waited for, what it protects may have become another.
    pub(in crate::session) async fn lock_planned(
        &self,
        plan: &PlannedStatement,
        values: &[Datum],
        version: u64,
    ) -> Result<bool> {
        self.lock_plan(plan, values).await?;
        Ok(self.database.version() == version)
    }

    /// A statement about to run: it sees what is committed now.
    pub(in crate::session) fn start(
        &self,
        plan: Arc<PlannedStatement>,
        params: Vec<Datum>,
        rows: Rows,
    ) -> Result<Run> {
        self.start_seeing(plan, params, rows, None)
    }

    /// The same, of one within another statement, which `sees` what that one does.
    pub(in crate::session) fn start_seeing(
        &self,
        plan: Arc<PlannedStatement>,
        params: Vec<Datum>,
        rows: Rows,
        sees: Option<&Snapshot>,
    ) -> Result<Run> {
        if plan.wants_values {
            return Err(Error::internal("a plan for values that are not known"));
        }
        let changes = plan.changes();
        if let Some(command) = changes {
            self.may_change(&plan, command)?;
        }
        if let Some(view) = &plan.unpopulated {
            return Err(not_populated(view));
        }
        let work_mem = self.work_mem();
        let transaction = self.transaction()?;
        transaction.used.set(true);
        let snapshot = match sees {
            Some(snapshot) => snapshot.clone(),
            None => transaction.txn.snapshot(),
        };
        // What gives one row is over before it makes a difference to those who write.
        let only_reads = rows == Rows::Given && changes.is_none();
        if only_reads && sees.is_none() && !plan.gives_one_row {
            snapshot.only_read();
        }
        let using = self.in_use.hold(Held::Plan(plan.clone()));
        let elsewhere = self.start_elsewhere(&plan, &params, &snapshot, work_mem);
        let pool = self.pool(&plan, &snapshot, work_mem);
        let mut execution = Execution::again(plan, work_mem);
        if let Some(pool) = pool {
            execution.share_with(pool);
        }
        if elsewhere.is_some() {
            self.check_constants(&mut execution, &snapshot, &params)?;
        }
        let row = execution.room();
        Ok(Run {
            execution,
            elsewhere,
            params,
            snapshot,
            row,
            using,
        })
    }

    /// Fails where a constant part of a plan does without parameters, as the planner of PostgreSQL
    /// at Bind.
    pub(in crate::session) fn check_at_bind(
        &mut self,
        known: &CachedPlan,
        params: &[Datum],
    ) -> Result<()> {
        let Some(plan) = known.plan.as_ref().filter(|plan| plan.fails_at_bind) else {
            return Ok(());
        };
        let snapshot = self.transaction()?.txn.snapshot();
        let mut execution = Execution::again(plan.clone(), self.work_mem());
        self.check_constants(&mut execution, &snapshot, params)
    }

    /// Fails where a constant part of a plan does that runs elsewhere.
    fn check_constants(
        &self,
        execution: &mut Execution,
        snapshot: &Snapshot,
        params: &[Datum],
    ) -> Result<()> {
        let plan = execution.plan().clone();
        if plan.suspects.is_empty() {
            return Ok(());
        }
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let env = self.env(&catalog, &host, snapshot, params);
        match execution.evaluate(env, |_, cx| constant::check(&plan.suspects, cx)) {
            Err(Suspension::Error(e)) => Err(e),
            // Its job computes it.
            _ => Ok(()),
        }
    }

    /// What operators and expressions run in.
    pub(in crate::session) fn env<'a>(
        &'a self,
        catalog: &'a Catalog,
        host: &'a SessionHost<'a>,
        snapshot: &'a Snapshot,
        params: &'a [Datum],
    ) -> Env<'a> {
        Env {
            store: &self.engine.store,
            catalog,
            snapshot,
            eval: host.eval(),
            cancel: self.handle.cancel_flag(),
            params,
            system: host,
            effects: &self.effects,
            routines: Some(host),
        }
    }

    /// Runs until `limit` rows have been given, or to the end.
    pub(in crate::session) async fn run_to(
        &self,
        run: &mut Run,
        shape: Option<&RowShape>,
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<Ran> {
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let env = self.env(&catalog, &host, &run.snapshot, &run.params);
        let txn = &self.transaction()?.txn;
        let client = Turns::new(client);
        if run.execution.plan().tag != StatementTag::Select {
            let mut returning = Returning::Client {
                client: &client,
                shape,
            };
            let work_mem = self.work_mem();
            let write = write::Context {
                env,
                txn,
                work_mem,
                deferred: &self.deferred,
            };
            let writing = pin!(write::run(&mut run.execution, &write, &mut returning));
            let rows = self.telling(&client, writing).await?;
            txn.next_command()?;
            return Ok(Ran {
                rows,
                complete: true,
            });
        }
        if !run.execution.is_ready() {
            let work_mem = self.work_mem();
            let write = write::Context {
                env,
                txn,
                work_mem,
                deferred: &self.deferred,
            };
            let writing = pin!(write::run_first(&mut run.execution, &write));
            self.telling(&client, writing).await?;
        }
        let mut given = 0;
        let gives_one = run.execution.plan().gives_one_row && run.snapshot.reads().is_none();
        while given < limit {
            let more = match &mut run.elsewhere {
                _ if gives_one && given > 0 => false,
                Some(elsewhere) => elsewhere.next(env, &mut run.row).await?,
                // Most rows are there at once, without a future that waits for them.
                None => match next_now(&mut run.execution, env, &mut run.row) {
                    Ok(more) => {
                        client.with(|client| self.say(client));
                        more
                    }
                    Err(stop) => {
                        let row = &mut run.row;
                        let next = pin!(next_after(stop, &mut run.execution, env, txn, row));
                        self.telling(&client, next).await?
                    }
                },
            };
            if !more {
                txn.next_command()?;
                return Ok(Ran {
                    rows: given,
                    complete: true,
                });
            }
            if let Some(shape) = shape {
                outgoing::give(&client, &run.row, shape, env).await?;
            }
            given += 1;
            client.drain().await?;
        }
        Ok(Ran {
            rows: given,
            complete: false,
        })
    }
}

/// What becomes of the rows that a statement gives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Rows {
    /// Somebody has them, and that is all.
    Given,
    /// One on which a cursor stands may be changed, then as it is in its newest version.
    Followed,
}

/// A statement under way.
pub(in crate::session) struct Run {
    pub execution: Box<Execution>,
    /// Where its rows come from instead, if it runs on the analytics pool.
    elsewhere: Option<crate::session::statement::pooled_query::PooledQuery>,
    pub params: Vec<Datum>,
    pub snapshot: Snapshot,
    row: Row,
    using: Using,
}

impl Run {
    /// The next row, which is the [last](Self::last) then; false where there is none.
    pub async fn next(&mut self, env: Env<'_>, txn: &throng_txn::Txn) -> Result<bool> {
        match &mut self.elsewhere {
            Some(elsewhere) => elsewhere.next(env, &mut self.row).await,
            None => next(&mut self.execution, env, txn, &mut self.row).await,
        }
    }

    /// Nobody will ask it for more. Gives back its parameters' room.
    pub fn retire(self) -> Vec<Datum> {
        self.end().0
    }

    /// It gave its last row; what it has open stays so for whoever it belongs to.
    pub fn end(mut self) -> (Vec<Datum>, Using) {
        self.execution.give_back(self.row);
        self.execution.retire();
        (self.params, self.using)
    }

    /// The row that was given last.
    pub fn last(&self) -> &Row {
        &self.row
    }

    /// From the start, over what was there then.
    pub fn again(
        plan: Arc<PlannedStatement>,
        params: Vec<Datum>,
        snapshot: Snapshot,
        work_mem: usize,
        using: Using,
    ) -> Run {
        Run {
            execution: Execution::again(plan, work_mem),
            elsewhere: None,
            params,
            snapshot,
            row: Row::new(),
            using,
        }
    }
}

impl Run {
    /// What the operators did, if it was counted.
    pub fn take_counters(&mut self) -> Option<Vec<NodeCounters>> {
        if let Some(elsewhere) = &self.elsewhere {
            self.execution.tell(&elsewhere.counts);
        }
        self.execution.take_counters()
    }
}

/// How far a run came.
pub(in crate::session) struct Ran {
    /// Rows given or, by a write, changed.
    pub rows: u64,
    pub complete: bool,
}

#[cold]
fn not_populated(view: &str) -> Error {
    let message = format!("materialized view \"{view}\" has not been populated");
    Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .hint("Use the REFRESH MATERIALIZED VIEW command.")
}

/// Runs a statement within another: a write to its end, a query until it has given `most` rows; how
/// many rows there were, and those that are kept. Where none is wanted a query runs to its end all
/// the same, for what it may do.
pub(in crate::session) async fn run_within(
    execution: &mut Execution,
    cx: &write::Context<'_>,
    most: usize,
) -> Result<(u64, RowList)> {
    let mut kept = RowStore::new(cx.work_mem, cx.env.store);
    if execution.plan().tag != StatementTag::Select {
        let is_read = most > 0 && !execution.plan().output.is_empty();
        let mut returning = match is_read {
            true => Returning::Kept(&mut kept),
            false => Returning::Unread,
        };
        let count = write::run(execution, cx, &mut returning).await?;
        return Ok((count, kept.into_rows()));
    }
    write::run_first(execution, cx).await?;
    let mut row = Row::new();
    let mut count = 0;
    while most == 0 || kept.len() < most {
        if !next(execution, cx.env, cx.txn, &mut row).await? {
            break;
        }
        count += 1;
        if most > 0 {
            kept.keep(&row)?;
        }
    }
    Ok((count, kept.into_rows()))
}

pub(in crate::session) fn lock_mode(mode: TableLock) -> LockMode {
    match mode {
        TableLock::AccessShare => LockMode::AccessShare,
        TableLock::RowShare => LockMode::RowShare,
        TableLock::RowExclusive => LockMode::RowExclusive,
        TableLock::ShareUpdateExclusive => LockMode::ShareUpdateExclusive,
        TableLock::Share => LockMode::Share,
        TableLock::ShareRowExclusive => LockMode::ShareRowExclusive,
        TableLock::Exclusive => LockMode::Exclusive,
        TableLock::AccessExclusive => LockMode::AccessExclusive,
    }
}

/// A column that comes from no table.
pub(in crate::session) fn field(name: &str, ty: SqlType) -> Field {
    Field {
        name: name.to_owned(),
        table: Oid::NONE,
        column: 0,
        ty,
        size: ty.info().map_or(-1, |info| info.len),
    }
}

/// The columns of a plan's result, as text; None where it gives no rows to the client.
pub(in crate::session) fn columns(plan: &PlannedStatement) -> Option<Arc<RowShape>> {
    if plan.tag != StatementTag::Select && plan.output.is_empty() {
        return None;
    }
    let fields = plan.output.iter().map(|column| Field {
        name: column.name.clone(),
        table: column.table,
        column: column.attnum,
        ty: column.ty,
        size: column.ty.info().map_or(-1, |info| info.len),
    });
    Some(as_text(fields.collect()))
}

pub(in crate::session) fn as_text(fields: Vec<Field>) -> Arc<RowShape> {
    let formats = vec![Format::Text; fields.len()];
    Arc::new(RowShape::new(fields, formats))
}

/// The format of each of `count` columns from the codes of a message: none is text for all, one is
/// for all.
pub(in crate::session) fn formats_of(codes: &[i16], count: usize) -> Result<Vec<Format>> {
    let format = |code: i16| match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        other => Err(Error::new(
            state::PROTOCOL_VIOLATION,
            format!("unsupported format code: {other}"),
        )),
    };
    match codes {
        [] => Ok(vec![Format::Text; count]),
        [one] => Ok(vec![format(*one)?; count]),
        many if many.len() == count => many.iter().map(|code| format(*code)).collect(),
        many => Err(Error::new(
            state::PROTOCOL_VIOLATION,
            format!(
                "bind message has {} result formats but query has {count} columns",
                many.len(),
            ),
        )),
    }
}

/// What CommandComplete says. Most statements of a crowd are about one row.
pub(in crate::session) fn tag(tag: StatementTag, rows: u64) -> Cow<'static, str> {
    let one = match tag {
        StatementTag::Select => "SELECT 1",
        StatementTag::Insert => "INSERT 0 1",
        StatementTag::Update => "UPDATE 1",
        StatementTag::Delete => "DELETE 1",
        StatementTag::Merge => "MERGE 1",
    };
    match rows {
        1 => one.into(),
        _ => format!("{}{rows}", &one[..one.len() - 1]).into(),
    }
}
