//! Big statements, run elsewhere: the door to the analytics pool.
//!
//! What runs there knows nothing of the session. So a [`Job`] carries all it may ask: the plan, its
//! parameters, the snapshot, and what functions that are allowed there want of the session. An
//! expression is evaluated by [`super::run::eval`], the very code of the row operators.
//!
//! ```text
//! session ── Job ──► Analytics::start ──► its own threads: scans, joins, groups, sorts (spilling)
//!    ▲                                            │ batches of rows, a few ahead at most
//!    └───────────── RowStream::next ◄─────────────┘ dropping the stream ends the work
//! ```

mod counts;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_bind::expr::Expr;
use throng_bind::fold::is_fixed;
use throng_catalog::system::{
    DatabaseActivity, LockInfo, PreparedInfo, SessionInfo, SettingInfo, StructureInfo, SystemState,
    TableActivity, WaitInfo, WaitingInfo,
};
use throng_catalog::{Catalog, IndexDef, ViewDef, written_type};
use throng_observe::{Object, WaitEvent, waited};
use throng_plan::{Plan, PlannedStatement};
use throng_txn::{CancelFlag, Snapshot};
use throng_types::{Datum, Error, Oid, Result};
use throng_values::func::{EvalContext, EvalHost, EvalResult, EvalStop, ObjectKind, WrittenType};
use throng_values::io::FormatSettings;

pub use counts::JobCounts;

use crate::run::Row;
use crate::run::context::{Cx, Env, Memory};
use crate::run::effects::Effects;
use crate::run::eval::eval;
use crate::run::items::ItemTables;
use crate::spill::{RowList, RowStore};
use crate::store::Store;

/// What runs big statements.
pub trait Analytics: Send + Sync {
    /// Whether the whole plan can run there with the same meaning.
    fn accepts(&self, plan: &PlannedStatement) -> bool;
    /// Whether this part of a plan can run there, while the rest does not.
    fn accepts_part(&self, part: &Plan) -> bool;
    /// Begins a plan that was accepted.
    fn start(&self, job: Job) -> Box<dyn RowStream>;
}

pub type NextRows<'a> = Pin<Box<dyn Future<Output = Result<Option<Vec<Row>>>> + 'a>>;

/// The rows of a job, made a little ahead of who takes them. Dropping it ends the job.
pub trait RowStream {
    /// Some rows, at least one; None after the last. May be dropped and asked again.
    fn next(&mut self) -> NextRows<'_>;
}

/// A statement with all it needs, free of its session.
pub struct Job {
    pub plan: Arc<PlannedStatement>,
    pub params: Vec<Datum>,
    pub snapshot: Snapshot,
    pub store: Store,
    pub catalog: Arc<Catalog>,
    pub facts: SessionFacts,
    pub format: FormatSettings,
    /// Bytes.
    pub work_mem: usize,
    pub counts: Arc<JobCounts>,
    /// Nobody raises it: a job is cancelled by dropping its stream.
    unraised: CancelFlag,
    /// What its expressions have found out about arrays.
    items: Mutex<ItemTables>,
}

/// What a job may know of the session that started it.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    pub transaction_timestamp: i64,
    pub statement_timestamp: i64,
    pub current_user: String,
    pub session_user: String,
    pub database: String,
    pub pid: i32,
}

impl SessionFacts {
    pub fn of(host: &dyn EvalHost) -> SessionFacts {
        SessionFacts {
            transaction_timestamp: host.transaction_timestamp(),
            statement_timestamp: host.statement_timestamp(),
            current_user: host.current_user(),
            session_user: host.session_user(),
            database: host.current_database(),
            pid: host.backend_pid(),
        }
    }
}

impl Job {
    /// `work_mem` in bytes.
    pub fn new(
        plan: Arc<PlannedStatement>,
        params: Vec<Datum>,
        snapshot: Snapshot,
        store: Store,
        catalog: Arc<Catalog>,
        eval: &EvalContext<'_>,
        work_mem: usize,
    ) -> Job {
        Job {
            counts: Arc::new(JobCounts::of(&plan.root)),
            plan,
            params,
            snapshot,
            store,
            catalog,
            facts: SessionFacts::of(eval.host),
            format: eval.format.clone(),
            work_mem,
            unraised: CancelFlag::default(),
            items: Mutex::default(),
        }
    }

    /// Calls `f` with what expressions are evaluated in, on whatever thread this is.
    pub fn with_cx<T>(&self, f: impl FnOnce(&mut Cx) -> T) -> T {
        let env = Env {
            store: &self.store,
            catalog: &self.catalog,
            snapshot: &self.snapshot,
            eval: EvalContext {
                host: &self.facts,
                format: &self.format,
            },
            cancel: &self.unraised,
            params: &self.params,
            system: &self.facts,
            effects: &Effects::default(),
            routines: None,
        };
        let mut memory = Memory::new(0, 0, usize::MAX);
        memory.items = self.items().clone();
        let known = memory.items.len();
        let result = f(&mut Cx::new(env, &mut memory));
        if memory.items.len() != known {
            *self.items() = memory.items;
        }
        result
    }

    fn items(&self) -> MutexGuard<'_, ItemTables> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The expression with all that is the same for every row computed. What fails stays: the error
    /// is for the row that asks for it.
    pub fn settled(&self, expr: &Expr) -> Expr {
        self.with_cx(|cx| settle(expr.clone(), cx))
    }
}

fn settle(mut expr: Expr, cx: &mut Cx) -> Expr {
    if matches!(expr, Expr::Const(..) | Expr::Variadic(_)) {
        return expr;
    }
    if is_fixed(&expr) {
        return match eval(&expr, &[], cx) {
            Ok(value) => Expr::Const(value, expr.ty()),
            Err(_) => expr,
        };
    }
    expr.for_each_child_mut(&mut |child| {
        *child = settle(std::mem::replace(child, Expr::bool(true)), cx);
    });
    expr
}

/// What a plan asked for that [`Analytics::accepts`] should have refused.
fn unknown_here(what: &str) -> Error {
    Error::internal(format!("{what} was asked for away from its session"))
}

impl EvalHost for SessionFacts {
    fn transaction_timestamp(&self) -> i64 {
        self.transaction_timestamp
    }
    fn statement_timestamp(&self) -> i64 {
        self.statement_timestamp
    }
    fn current_user(&self) -> String {
        self.current_user.clone()
    }
    fn session_user(&self) -> String {
        self.session_user.clone()
    }
    fn current_database(&self) -> String {
        self.database.clone()
    }
    fn current_schemas(&self, _: bool) -> Vec<String> {
        Vec::new()
    }
    fn backend_pid(&self) -> i32 {
        self.pid
    }
    fn show_setting(&self, _: &str) -> Option<String> {
        None
    }
    fn set_setting(&self, _: &str, _: Option<&str>, _: bool) -> Result<String, EvalStop> {
        Err(unknown_here("a setting").into())
    }
    fn transaction_id(&self, _: bool) -> Result<Option<u64>, EvalStop> {
        Err(unknown_here("the transaction's id").into())
    }
    fn nextval(&self, _: Oid) -> Result<i64, EvalStop> {
        Err(unknown_here("a sequence").into())
    }
    fn currval(&self, _: Oid) -> Result<i64, EvalStop> {
        Err(unknown_here("a sequence").into())
    }
    fn lastval(&self) -> Result<i64, EvalStop> {
        Err(unknown_here("a sequence").into())
    }
    fn setval(&self, _: Oid, _: i64, _: bool) -> Result<i64, EvalStop> {
        Err(unknown_here("a sequence").into())
    }
    fn parse_type(&self, name: &str) -> Result<WrittenType> {
        written_type(name)
    }
    fn object_oid(&self, _: ObjectKind, _: &str) -> Result<Oid, EvalStop> {
        Err(unknown_here("a catalog object").into())
    }
    fn object_name(&self, _: ObjectKind, _: Oid) -> Option<String> {
        None
    }
    fn system_function(&self, name: &str, _: &[Datum]) -> EvalResult {
        Err(unknown_here(name).into())
    }
}

/// No plan that runs away from its session reads a system catalog; these answer to nobody.
impl SystemState for SessionFacts {
    fn current_user(&self) -> Oid {
        Oid::NONE
    }
    fn now(&self) -> i64 {
        0
    }
    fn oldest_xid(&self) -> u64 {
        0
    }
    fn moment(&self, _: &str) -> Option<i64> {
        None
    }
    fn sessions(&self) -> Vec<SessionInfo> {
        Vec::new()
    }
    fn locks(&self) -> Vec<LockInfo> {
        Vec::new()
    }
    fn settings(&self) -> Vec<SettingInfo> {
        Vec::new()
    }
    fn prepared(&self) -> Vec<PreparedInfo> {
        Vec::new()
    }
    fn waits(&self) -> Vec<WaitInfo> {
        Vec::new()
    }
    fn waiting_now(&self) -> Vec<WaitingInfo> {
        Vec::new()
    }
    fn structures(&self) -> Vec<StructureInfo> {
        Vec::new()
    }
    fn relation_size(&self, _: Oid) -> (u32, f64) {
        (0, 0.0)
    }
    fn sequence_value(&self, _: Oid) -> Option<i64> {
        None
    }
    fn view_definition(&self, _: &ViewDef) -> Option<String> {
        None
    }
    fn index_as_seen(&self, _: &IndexDef) -> Option<IndexDef> {
        None
    }
    fn updatable_columns(&self, _: &Arc<ViewDef>) -> Vec<bool> {
        Vec::new()
    }
    fn database_activity(&self, _: Oid) -> DatabaseActivity {
        DatabaseActivity::default()
    }
    fn table_activity(&self, _: Oid) -> TableActivity {
        TableActivity::default()
    }
}

pub fn job(
    plan: Arc<PlannedStatement>,
    env: Env<'_>,
    catalog: &Arc<Catalog>,
    work_mem: usize,
) -> Job {
    Job::new(
        plan,
        env.params.to_vec(),
        env.snapshot.clone(),
        env.store.clone(),
        catalog.clone(),
        &env.eval,
        work_mem,
    )
}

/// What a statement that runs here has to ask the pool with.
pub struct Pool {
    pub analytics: Arc<dyn Analytics>,
    pub catalog: Arc<Catalog>,
    /// Bytes.
    pub work_mem: usize,
}

impl Pool {
    /// All rows of a part of a plan, and what its operators did.
    pub async fn run(&self, part: &Plan, env: Env<'_>) -> Result<(RowList, Arc<JobCounts>)> {
        let statement = PlannedStatement::of_part(part.clone());
        let job = job(Arc::new(statement), env, &self.catalog, self.work_mem);
        let counts = job.counts.clone();
        let mut stream = self.analytics.start(job);
        let mut kept = RowStore::new(self.work_mem, env.store);
        loop {
            let next = waited(WaitEvent::AnalyticsRun, Object::NONE, stream.next());
            let Some(rows) = env.cancel.guard(next).await? else {
                return Ok((kept.into_rows(), counts));
            };
            for row in &rows {
                kept.keep(row)?;
            }
        }
    }
}
