//! How statements get their meaning and their plans: on the event loop, or on another thread where
//! that takes long.
//!
//! ```text
//! text ─ parse ─► statement ─ bind ─► query ─ plan ─► plan
//!   └────────────────┴── each within a turn of the loop, else begun anew on a thread of its own
//! ```
//! A thread that is not the session's knows the definitions, [`Names`] and [`Ways`]. What asks the
//! session for more, such as a constant of a `reg*` type, is understood on the loop, however long
//! that takes.

use std::cell::RefCell;
use std::sync::Arc;

use throng_bind::binder::{self, BindContext};
use throng_bind::command::{Bound, BoundStatement};
use throng_bind::query::{BoundQuery, QueryKind};
use throng_catalog::{Catalog, TableDef};
use throng_plan::{
    self, Node, Plan, PlanContext, PlannedStatement, StatementTag, Stats, TableSize,
};
use throng_syntax::parse::{
    self,
    ast::{Parsed, Statement},
};
use throng_syntax::vocabulary::TableLock;
use throng_types::error::Severity;
use throng_types::{Error, Oid, Result, SqlType, interrupt};
use throng_values::func::{EvalContext, EvalStop};
use throng_values::settings::Id;

use crate::engine::Engine;
use crate::session::Session;
use crate::session::statement::custom_plan::MOST_UNKNOWN;
use crate::session::statement::declared;
use crate::session::statement::plans::CachedPlan;
use crate::session::statement::query::columns;
use throng_exec::analytics::Analytics;
use throng_exec::offload;
use throng_exec::store::Store;

/// How much dearer than the cheapest plan one may be that the analytics pool can run: it has
/// several cores, works on columns and spills.
const WORTH_OF_THE_POOL: f64 = 4.0;

/// How much dearer than what the pool is for a plan is at least that gives way to such a one: what
/// an index finds sooner has nothing to gain where many want the pool.
const BIG: f64 = 4.0;

/// Bytes of a text that is not parsed on an event loop.
const LONG_TEXT: usize = 1 << 18;

/// Sizes for the planner, from the storage itself.
struct StoreStats<'a> {
    store: &'a Store,
    catalog: &'a Catalog,
}

impl Stats for StoreStats<'_> {
    fn table_size(&self, table: Oid) -> TableSize {
        let Some(def) = self.catalog.table(table) else {
            return TableSize {
                pages: 0,
                rows: 0.0,
            };
        };
        let pages = self.store.pool.blocks(def.file).unwrap_or(0);
        let rows = match self.catalog.stats_of(table) {
            // Rows grow with pages since ANALYZE.
            Some(stats) if stats.pages > 0 => {
                stats.rows / f64::from(stats.pages) * f64::from(pages)
            }
            _ => estimate_rows(def, pages),
        };
        TableSize { pages, rows }
    }
}

/// Rows of a table that was never analyzed: as many as its columns' usual widths let fit.
fn estimate_rows(def: &TableDef, pages: u32) -> f64 {
    /// Tuple header, slot and row head.
    const OVERHEAD: u32 = 40;
    /// PostgreSQL's guess for a column of varying length.
    const VARYING: u32 = 32;
    let width: u32 = def
        .columns
        .iter()
        .map(|c| {
            c.ty.info()
                .map_or(VARYING, |info| u32::try_from(info.len).unwrap_or(VARYING))
        })
        .sum();
    f64::from(pages) * (8160 / (OVERHEAD + width).max(1)).max(1) as f64
}

/// Where a session's names are sought.
struct Names {
    search_path: Vec<Oid>,
    creation_schema: Option<Oid>,
    temporary_schema: Option<Oid>,
    user: Oid,
}

/// What a session's settings let plans do.
struct Ways {
    temporary_schema: Option<Oid>,
    enable_seqscan: bool,
    enable_indexscan: bool,
    enable_bitmapscan: bool,
    enable_hashjoin: bool,
    enable_nestloop: bool,
    join_collapse_limit: i64,
    from_collapse_limit: i64,
    most_unknown: Option<usize>,
    /// SELECTs that cost more run on the analytics pool. Below 0: none does.
    analytics_above_cost: f64,
}

impl Names {
    fn bind(
        &self,
        statement: &Statement,
        sql: &str,
        params: &[SqlType],
        (catalog, eval): (&Catalog, EvalContext<'_>),
        prepared: &dyn Fn(&str) -> Option<Vec<SqlType>>,
    ) -> Result<Bound> {
        let named = RefCell::default();
        let ctx = BindContext {
            catalog,
            search_path: &self.search_path,
            creation_schema: self.creation_schema,
            temporary_schema: self.temporary_schema,
            user: self.user,
            params: &declared::all_plain(catalog, params),
            eval,
            prepared,
            named: Some(&named),
        };
        binder::bind(statement, sql, &ctx).map_err(|e| about(e, named))
    }
}

impl Ways {
    fn plan(
        &self,
        query: BoundQuery,
        engine: &Engine,
        (catalog, eval): (&Catalog, EvalContext<'_>),
    ) -> Result<PlannedStatement> {
        let stats = StoreStats {
            store: &engine.store,
            catalog,
        };
        let mut ctx = PlanContext {
            catalog,
            stats: &stats,
            eval,
            temporary_schema: self.temporary_schema,
            enable_seqscan: self.enable_seqscan,
            enable_indexscan: self.enable_indexscan,
            enable_bitmapscan: self.enable_bitmapscan,
            enable_hashjoin: self.enable_hashjoin,
            enable_nestloop: self.enable_nestloop,
            join_collapse_limit: self.join_collapse_limit,
            from_collapse_limit: self.from_collapse_limit,
            most_unknown: self.most_unknown,
        };
        let analytics = engine.analytics();
        let Some(analytics) = analytics.filter(|_| matches!(query.kind, QueryKind::Select(_)))
        else {
            return throng_plan::plan(query, &ctx);
        };
        let planned = throng_plan::plan(query.clone(), &ctx)?;
        if !self.is_dear(&planned.root) || analytics.accepts(&planned) {
            return Ok(planned);
        }
        // Where only the way to a few rows keeps a big query off the analytics pool, it takes
        // another.
        (ctx.enable_indexscan, ctx.enable_nestloop) = (false, false);
        ctx.enable_bitmapscan = false;
        let by_scans = throng_plan::plan(query, &ctx)?;
        let own = planned.root.cost;
        let is_big = own.of_work() > self.analytics_above_cost * BIG;
        let near = is_big && by_scans.root.cost.total < own.total * WORTH_OF_THE_POOL;
        if near && analytics.accepts(&by_scans) {
            return Ok(by_scans);
        }
        let parts = self.parts_elsewhere(&planned, analytics.as_ref());
        Ok(PlannedStatement { parts, ..planned })
    }

    fn is_dear(&self, plan: &Plan) -> bool {
        let above = self.analytics_above_cost;
        above >= 0.0 && plan.cost.of_work() > above
    }

    /// The operators that the pool is to run where it cannot run the whole query: big aggregates,
    /// as these give few rows.
    fn parts_elsewhere(&self, plan: &PlannedStatement, pool: &dyn Analytics) -> Vec<u32> {
        let mut parts = Vec::new();
        for top in plan.subplans.iter().chain([&plan.root]) {
            self.find_parts(top, pool, &mut parts);
        }
        parts
    }

    fn find_parts(&self, plan: &Plan, pool: &dyn Analytics, parts: &mut Vec<u32>) {
        if !self.is_dear(plan) {
            return;
        }
        if matches!(plan.node, Node::Aggregate(_)) && pool.accepts_part(plan) {
            parts.push(plan.id);
            return;
        }
        for child in plan.children() {
            self.find_parts(child, pool, parts);
        }
    }
}

/// The prepared statement that a statement is to run or explain.
fn executed(statement: &Statement) -> Option<&str> {
    match statement {
        Statement::Execute { name, .. } | Statement::CreateTableAsExecute { name, .. } => {
            Some(name)
        }
        Statement::Explain { statement, .. } => executed(statement),
        _ => None,
    }
}

/// The error of a text that could not be bound, with the relations that it names.
#[cold]
pub(in crate::session) fn about(mut error: Error, named: RefCell<Vec<Oid>>) -> Error {
    error.fields_mut().relations = named.into_inner();
    error
}

/// A data statement that is understood.
pub(in crate::session) struct Understood {
    pub params: Vec<SqlType>,
    pub plan: Arc<PlannedStatement>,
    pub notices: Vec<Error>,
}

fn understand(
    (statement, sql, params): (&Statement, &str, &[SqlType]),
    (names, ways): &(Names, Ways),
    engine: &Engine,
    by: (&Catalog, EvalContext<'_>),
) -> Result<Understood> {
    // EXECUTE, whose parameters are asked for, is no data statement.
    let bound = names.bind(statement, sql, params, by, &|_| None)?;
    let BoundStatement::Query(query) = bound.statement else {
        return Err(Error::internal("a data statement that is none"));
    };
    Ok(Understood {
        params: declared::as_declared(&query.params, params),
        plan: Arc::new(ways.plan(*query, engine, by)?),
        notices: bound.notices,
    })
}

impl Session {
    fn names(&self, catalog: &Catalog) -> Names {
        let role = self.role();
        Names {
            search_path: self.search_path(catalog),
            creation_schema: catalog.creation_schema(&self.path_setting(), &role.name),
            temporary_schema: self.temporary.schema(catalog),
            user: role.oid,
        }
    }

    fn ways(&self, catalog: &Catalog) -> Ways {
        let settings = self.settings.borrow();
        Ways {
            temporary_schema: self.temporary.schema(catalog),
            enable_seqscan: settings.bool(Id::EnableSeqscan),
            enable_indexscan: settings.bool(Id::EnableIndexscan),
            enable_bitmapscan: settings.bool(Id::EnableBitmapscan),
            enable_hashjoin: settings.bool(Id::EnableHashjoin),
            enable_nestloop: settings.bool(Id::EnableNestloop),
            join_collapse_limit: settings.int(Id::JoinCollapseLimit),
            from_collapse_limit: settings.int(Id::FromCollapseLimit),
            most_unknown: None,
            analytics_above_cost: self.hot_settings().analytics_above_cost,
        }
    }

    /// Whether a plan is one for the analytics pool, if it may run there.
    pub(in crate::session) fn is_big(&self, plan: &PlannedStatement) -> bool {
        let above = self.hot_settings().analytics_above_cost;
        let is_dear = above >= 0.0 && plan.root.cost.of_work() > above;
        plan.tag == StatementTag::Select && is_dear
    }

    /// Binds a statement, on another thread where that takes long.
    pub(in crate::session) async fn bind_statement(
        &self,
        statement: &Statement,
        sql: &str,
        params: &[SqlType],
    ) -> Result<Bound> {
        let catalog = self.catalog();
        let names = self.names(&catalog);
        let here = self.within_a_turn(&|eval| {
            let by = (&**catalog, eval);
            names.bind(statement, sql, params, by, &|name| self.parameters_of(name))
        });
        if let Some(bound) = here {
            return bound;
        }
        let types = executed(statement).and_then(|name| self.parameters_of(name));
        let (catalog, statement) = (Arc::clone(&catalog), statement.clone());
        let (sql, params) = (Arc::<str>::from(sql), params.to_vec());
        let there = move |eval: EvalContext<'_>| {
            let by = (&*catalog, eval);
            names.bind(&statement, &sql, &params, by, &|_| types.clone())
        };
        Box::pin(self.on_a_thread(there)).await
    }

    /// Binds a command. It means what it does by definitions that nobody changes any more: what it
    /// names and the tables of its query are locked, and where they became others while that was
    /// waited for, it is bound again.
    pub(in crate::session) async fn bind_command(
        &self,
        statement: &Statement,
        sql: &str,
        params: &[SqlType],
    ) -> Result<Bound> {
        self.by_lasting_definitions(async |version| {
            let mut bound = self.bind_statement(statement, sql, params).await?;
            let lasts = self.lock_command(&mut bound.statement, version).await?;
            Ok(lasts.then_some(bound))
        })
        .await
    }

    /// Does what goes by definitions, of the version that it is given, until they last: it gives
    /// None where they became others while a lock was waited for. What could not be bound is tried
    /// again where somebody was changing what it names.
    pub(in crate::session) async fn by_lasting_definitions<T>(
        &self,
        mut attempt: impl AsyncFnMut(u64) -> Result<Option<T>>,
    ) -> Result<T> {
        loop {
            let version = self.database.version();
            match attempt(version).await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {}
                Err(e) if self.is_to_bind_again(&e, version).await? => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether a text that could not be bound by the definitions of `version` is to be bound again:
    /// what it names is locked as who reads it would lock it, and the definitions are others by
    /// then.
    #[cold]
    pub(in crate::session) async fn is_to_bind_again(
        &self,
        failed: &Error,
        version: u64,
    ) -> Result<bool> {
        let named = &failed.fields().relations;
        if named.is_empty() {
            return Ok(false);
        }
        let read = |table: &Oid| (*table, TableLock::AccessShare);
        let locks: Vec<(Oid, TableLock)> = named.iter().map(read).collect();
        Box::pin(self.lock_tables(&locks)).await?;
        Ok(self.database.version() != version)
    }

    /// Locks what a command of the definitions of `version` names, and the tables of its query.
    /// False if the definitions are others by then: what it names may be something else.
    pub(in crate::session) async fn lock_command(
        &self,
        command: &mut BoundStatement,
        version: u64,
    ) -> Result<bool> {
        let tables = command.tables();
        match command {
            BoundStatement::Ddl(ddl) => self.lock_targets_ahead(ddl).await?,
            _ if tables.is_empty() => return Ok(true),
            _ => {}
        }
        if !tables.is_empty() {
            let read = |table| (table, TableLock::AccessShare);
            let locks: Vec<(Oid, TableLock)> = tables.into_iter().map(read).collect();
            self.lock_tables(&locks).await?;
        }
        Ok(self.database.version() == version)
    }

    /// Plans a query, on another thread where that takes long.
    pub(in crate::session) async fn plan(&self, query: BoundQuery) -> Result<PlannedStatement> {
        let catalog = self.catalog();
        let ways = self.ways(&catalog);
        let (catalog, engine) = (Arc::clone(&catalog), self.engine.clone());
        self.aside(move |eval| ways.plan(query.clone(), &engine, (&catalog, eval)))
            .await
    }

    pub(in crate::session) fn plan_in(
        &self,
        query: BoundQuery,
        catalog: &Catalog,
    ) -> Result<PlannedStatement> {
        let host = self.host(catalog);
        self.ways(catalog)
            .plan(query, &self.engine, (catalog, host.eval()))
    }

    /// A text's statements.
    pub(in crate::session) async fn parsed(&self, sql: &str) -> Result<Vec<Parsed>> {
        if sql.len() < LONG_TEXT
            && let Some(parsed) = interrupt::bounded(|| parse::parse(sql))
        {
            self.tell_cut_names(parse::cut_names(sql))?;
            return parsed;
        }
        let text: Arc<str> = sql.into();
        let work = move |_: EvalContext<'_>| Ok((parse::cut_names(&text), parse::parse(&text)));
        let (cut, parsed) = Box::pin(self.on_a_thread(work)).await?;
        self.tell_cut_names(cut)?;
        parsed
    }

    /// Names of a text that are too long to be kept.
    fn tell_cut_names(&self, names: Vec<Error>) -> Result<()> {
        let mut names = names.into_iter();
        names.try_for_each(|name| self.tell(name.severity(Severity::Notice)))
    }

    /// Binds and plans a data statement. `most_unknown`: see [`PlanContext`].
    pub(in crate::session) async fn understand_data(
        &self,
        statement: &Arc<Statement>,
        sql: &str,
        params: &[SqlType],
        most_unknown: Option<usize>,
    ) -> Result<Understood> {
        self.by_lasting_definitions(async |_| {
            let understood = self.understand_now(statement, sql, params, most_unknown);
            understood.await.map(Some)
        })
        .await
    }

    async fn understand_now(
        &self,
        statement: &Arc<Statement>,
        sql: &str,
        params: &[SqlType],
        most_unknown: Option<usize>,
    ) -> Result<Understood> {
        let catalog = self.catalog();
        let ways = Ways {
            most_unknown,
            ..self.ways(&catalog)
        };
        let by = (self.names(&catalog), ways);
        let here = self.within_a_turn(&|eval| {
            understand(
                (statement, sql, params),
                &by,
                &self.engine,
                (&**catalog, eval),
            )
        });
        if let Some(understood) = here {
            return understood;
        }
        let (catalog, engine) = (Arc::clone(&catalog), self.engine.clone());
        let (statement, sql) = (statement.clone(), Arc::<str>::from(sql));
        let params = params.to_vec();
        let there = move |eval: EvalContext<'_>| {
            understand((&statement, &sql, &params), &by, &engine, (&catalog, eval))
        };
        Box::pin(self.on_a_thread(there)).await
    }

    /// The same, with what is known of it from then on. Where its parameters choose among many
    /// partitions it is to be planned for their values.
    pub(in crate::session) async fn known_data(
        &self,
        statement: Arc<Statement>,
        sql: &str,
        params: &[SqlType],
    ) -> Result<CachedPlan> {
        let understood = self.understand_data(&statement, sql, params, Some(MOST_UNKNOWN));
        let Understood { params, plan, .. } = understood.await?;
        let known = CachedPlan::new(sql, Some(statement), params, columns(&plan));
        Ok(known.planned(plan, &self.engine.store, &self.catalog()))
    }

    /// What `work` gives, which may be begun more than once: here, or on another thread where it
    /// takes longer than a turn.
    pub(in crate::session) async fn aside<T: Send + 'static>(
        &self,
        work: impl Fn(EvalContext<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        match self.within_a_turn(&work) {
            Some(done) => done,
            None => Box::pin(self.on_a_thread(work)).await,
        }
    }

    fn within_a_turn<T>(&self, work: &impl Fn(EvalContext<'_>) -> Result<T>) -> Option<Result<T>> {
        let catalog = self.catalog();
        let host = self.host(&catalog);
        interrupt::bounded(|| work(host.eval()))
    }

    pub(in crate::session) async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl Fn(EvalContext<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let work = Arc::new(work);
        let there = work.clone();
        let plain = self.trigger_depth() == 0;
        let done = offload::aside(
            move |eval| there(eval).map_err(EvalStop::Error),
            host.eval(),
            plain.then(|| Arc::clone(&catalog)),
            self.handle.cancel_flag(),
        );
        match done.await? {
            Some(done) => Ok(done),
            None => work(host.eval()),
        }
    }
}
