//! Running the bodies of users' functions.
//!
//! A body runs inside the statement that calls it, in its transaction. What a VOLATILE function's
//! statements see is taken when each begins, its own earlier changes included; a STABLE or
//! IMMUTABLE one sees what its caller does, and changes nothing. Its plans are kept by core, under
//! what they were made for: the catalog, the role, the settings, the types.

pub(super) mod trigger;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use throng_access::TxContext;
use throng_bind::binder::{self, BodyResult};
use throng_bind::expr::{Expr, RoutineCall};
use throng_catalog::{Catalog, RoutineBody};
use throng_syntax::parse::ast::AtomicStatement;
use throng_txn::Snapshot;
use throng_types::error::state;
use throng_types::sqltype::{made, type_name};
use throng_types::{Datum, Error, Oid, Result, SqlType, oid, stack};
use throng_values::func::RelColumn;
use throng_values::func::Volatility;
use throng_values::settings::Scope;

use super::Session;
use super::answers::eval_host::SessionHost;
use super::definition::in_use::Held;
use super::plpgsql::is_row;
use super::statement::plans::{CachedPlan, PlanKey};
use super::statement::query::{as_text, field, run_within};
use throng_exec::client::{Client, RowShape};
use throng_exec::run::Row;
use throng_exec::run::build::Execution;
use throng_exec::run::routine::{CallFuture, CallRequest, CallResult, Routines};
use throng_exec::write;

/// 0A000: what a function that is not volatile must not do.
pub(super) fn not_volatile(command: &str) -> Error {
    let message = format!("{command} is not allowed in a non-volatile function");
    Error::new(state::FEATURE_NOT_SUPPORTED, message)
}

/// Calls inside calls. A level takes stack as well, of which so many leave enough in an optimised
/// build.
pub(super) const DEEPEST: u32 = 1_000;

/// What a statement of a body was planned for.
#[derive(Clone, PartialEq, Eq, Hash)]
struct BodyKey {
    plan: PlanKey,
    routine: Oid,
    /// Which of its statements.
    at: usize,
    types: Vec<SqlType>,
    result: Vec<SqlType>,
}

/// A statement of a body: planned when it is come to, for those before it may change definitions.
struct BodyStatement {
    /// Without a plan: a command.
    known: CachedPlan,
    /// There are others behind it.
    more: bool,
}

/// Statements of bodies that a core keeps; past them the cache begins anew.
const MOST_BODIES: usize = 600;

thread_local! {
    static BODIES: RefCell<HashMap<BodyKey, Rc<BodyStatement>, FixedState>> = RefCell::default();
}

/// Calls in calls between two looks at the clock: what each of them does may be over before it
/// would look itself.
const LEVELS: u32 = 32;

/// How long calls go ever deeper before others have the core.
const SLICE: Duration = Duration::from_millis(1);

/// One call deeper for as long as it lives.
struct Level<'a>(&'a Session);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        let depth = &self.0.routine_depth;
        depth.set(depth.get() - 1);
    }
}

/// 54001.
#[cold]
pub(super) fn too_deep() -> Error {
    let hint = format!("Functions may call functions {DEEPEST} levels deep.");
    Error::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").hint(hint)
}

fn deeper(session: &Session) -> Result<Level<'_>> {
    let depth = session.routine_depth.get();
    if depth >= DEEPEST {
        return Err(too_deep());
    }
    stack::check()?;
    session.routine_depth.set(depth + 1);
    Ok(Level(session))
}

/// Gives the core to others where calls in calls have had it for long.
async fn give_way(session: &Session) -> Result<()> {
    let had = session
        .routine_turn
        .get()
        .is_some_and(|began| began.elapsed() < SLICE);
    if !had {
        session.handle.cancel_flag().check()?;
        throng_exec::turns::next_turn().await;
        session.routine_turn.set(Some(Instant::now()));
    }
    Ok(())
}

/// Adds a line to where an error came about. A place in the body's text is nobody's who called it.
fn within(mut error: Error, line: &str) -> Error {
    error.fields_mut().position = None;
    error.add_context(line);
    error
}

impl Routines for SessionHost<'_> {
    fn definitions(&self) -> Arc<Catalog> {
        Arc::clone(&self.session.definitions())
    }

    fn is_restricted(&self) -> bool {
        self.session.is_restricted()
    }

    fn call<'a>(&'a self, request: &'a CallRequest, snapshot: &'a Snapshot) -> CallFuture<'a> {
        Box::pin(self.session.run_routine(request, snapshot))
    }
}

/// While it lives, settings have the values that a routine gives them.
pub(super) struct SetForRoutine<'a> {
    session: &'a Session,
    /// Where the changes of settings and of roles begin.
    before: Option<(usize, usize)>,
}

impl Drop for SetForRoutine<'_> {
    fn drop(&mut self) {
        if let Some((settings, roles)) = self.before.take() {
            self.session.settings.borrow_mut().rollback_to(settings);
            self.session.rollback_roles(roles);
        }
    }
}

impl Session {
    pub(super) fn set_for_routine(
        &self,
        settings: &[(String, String)],
    ) -> Result<SetForRoutine<'_>> {
        let mark = || (self.settings.borrow().mark(), self.roles_mark());
        let set = SetForRoutine {
            session: self,
            before: (!settings.is_empty()).then(mark),
        };
        for (name, value) in settings {
            self.set_config(name, Some(value), Scope::Local)?;
        }
        Ok(set)
    }

    async fn run_routine(&self, request: &CallRequest, caller: &Snapshot) -> Result<CallResult> {
        let def = &request.def;
        let _level = deeper(self)?;
        if self.routine_depth.get().is_multiple_of(LEVELS) {
            give_way(self).await?;
        }
        let _call = self.trigger_calls.enter(request.trigger.clone());
        // The calling statement goes on as the command that it is.
        let cid = self.transaction()?.txn.cid();
        let effects = self.effects.suspend();
        // A function of its own role's acts as that role did when it was called, and so does a
        // trigger's that was put off.
        let queued_as = request.trigger.as_ref().and_then(|call| call.queued_as);
        let acts_as = match def.security_definer {
            true => Some(def.owner),
            false => queued_as.filter(|role| *role != self.current_role_oid()),
        };
        let acting = acts_as.map(|role| self.acting_as(role)).transpose()?;
        let ran = match self.set_for_routine(&def.settings) {
            Ok(_set) => self.run_body(request, caller).await,
            Err(e) => Err(e),
        };
        drop(acting);
        self.effects.resume(effects);
        self.transaction()?.txn.resume_command(cid);
        ran
    }

    async fn run_body(&self, request: &CallRequest, caller: &Snapshot) -> Result<CallResult> {
        let def = &request.def;
        if matches!(def.body, RoutineBody::Plpgsql(_)) {
            return self.run_procedural(request, caller).await;
        }
        let mut at = 0;
        loop {
            let ran = self.run_body_statement(request, caller, at).await;
            let (more, result) = match ran {
                Ok(ran) => ran,
                Err(BodyError::Startup(e)) => {
                    let line = format!("SQL function \"{}\" during startup", def.name);
                    return Err(within(e, &line));
                }
                Err(BodyError::Statement(number, e)) => {
                    let line = format!("SQL function \"{}\" statement {number}", def.name);
                    return Err(within(e, &line));
                }
            };
            if !more {
                return Ok(result);
            }
            at += 1;
        }
    }

    /// Runs the statement at this place; whether there are more, and what it gave.
    async fn run_body_statement(
        &self,
        request: &CallRequest,
        caller: &Snapshot,
        at: usize,
    ) -> std::result::Result<(bool, CallResult), BodyError> {
        let running = |e| BodyError::Statement(at + 1, e);
        let (catalog, statement) = loop {
            let version = self.database.version();
            let catalog = self.catalog();
            let statement = match self.body_statement(request, &catalog, at) {
                Err(BodyError::Statement(_, e))
                    if self.is_to_bind_again(&e, version).await.map_err(running)? =>
                {
                    continue;
                }
                statement => statement?,
            };
            let Some(statement) = statement else {
                return match request.result {
                    BodyResult::Nothing => Ok((false, CallResult::default())),
                    _ => Err(BodyError::Startup(binder::no_result(
                        &request.def,
                        &catalog,
                    ))),
                };
            };
            if let Some(plan) = &statement.known.plan {
                self.lock_plan(plan, &request.args).await.map_err(running)?;
            }
            // While a lock was waited for, what it protects may have become another.
            if self.catalog().version() == catalog.version() {
                break (catalog, statement);
            }
        };
        let BodyStatement { known, more } = &*statement;
        let ran = match known.plan {
            Some(_) => {
                self.run_known_statement(request, caller, known, &catalog, *more)
                    .await
            }
            None => {
                let ran = Box::pin(self.run_body_command(request, caller, at)).await;
                match (&request.result, more) {
                    (BodyResult::Nothing, _) | (_, true) => ran,
                    _ => ran.and_then(|_| Err(binder::no_result(&request.def, &catalog))),
                }
            }
        };
        Ok((*more, ran.map_err(running)?))
    }

    async fn run_known_statement(
        &self,
        request: &CallRequest,
        caller: &Snapshot,
        known: &CachedPlan,
        catalog: &Catalog,
        more: bool,
    ) -> Result<CallResult> {
        let def = &request.def;
        let Some(plan) = known.plan.clone() else {
            return Err(Error::internal("a statement without a plan"));
        };
        let volatile = def.volatility == Volatility::Volatile;
        if let Some(command) = plan.changes() {
            if !volatile {
                return Err(not_volatile(command));
            }
            self.may_change(&plan, command)?;
        }
        let txn = &self.transaction()?.txn;
        let snapshot = match volatile {
            true => {
                txn.next_command()?;
                txn.snapshot()
            }
            false => caller.clone(),
        };
        let columns: Vec<RelColumn> = plan
            .output
            .iter()
            .map(|c| RelColumn {
                name: c.name.clone(),
                ty: c.ty,
            })
            .collect();
        // Of a function that returns no set only the first row is asked for.
        let wanted = match (&request.result, more) {
            (BodyResult::Nothing, _) | (_, true) => 0,
            _ if def.set => usize::MAX,
            _ => 1,
        };
        let host = self.host(catalog);
        let env = self.env(catalog, &host, &snapshot, &request.args);
        let work_mem = self.work_mem();
        let write = write::Context {
            env,
            txn,
            work_mem,
            deferred: &self.deferred,
        };
        let _using = self.in_use.hold(Held::Plan(plan.clone()));
        let mut execution = Execution::again(plan.clone(), work_mem);
        let (_, rows) = run_within(&mut execution, &write, wanted).await?;
        let mut rows = rows.in_memory(work_mem)?;
        rows.truncate(wanted);
        execution.retire();
        if !more {
            spread_records(&mut rows, &columns, &request.result)?;
        }
        Ok(CallResult { rows, columns })
    }

    /// Runs a command of a body.
    async fn run_body_command(
        &self,
        request: &CallRequest,
        caller: &Snapshot,
        at: usize,
    ) -> Result<CallResult> {
        let def = &request.def;
        let statements = binder::body_statements(def)?;
        let Some(statement) = statements.get(at) else {
            return Err(Error::internal("a statement that is not there"));
        };
        let bind = |catalog: &Catalog| {
            self.with_context(catalog, |ctx| {
                binder::body_command(ctx, def, &request.types, statement)
            })
        };
        let bound = self.by_lasting_definitions(async |version| {
            let mut bound = bind(&self.catalog())?;
            let lasts = self.lock_command(&mut bound.statement, version).await?;
            Ok(lasts.then_some(bound))
        });
        let bound = bound.await?;
        let text = match statement {
            AtomicStatement::Statement(parsed) => {
                &def.body.text()[parsed.start as usize..parsed.end as usize]
            }
            AtomicStatement::Return(_) => "",
        };
        let volatile = def.volatility == Volatility::Volatile;
        let caller = (!volatile).then(|| caller.clone());
        self.run_command_alone(bound, text, request.args.clone(), caller)
            .await?;
        Ok(CallResult::default())
    }

    /// A statement of a body for these types; none past the last.
    fn body_statement(
        &self,
        request: &CallRequest,
        catalog: &Catalog,
        at: usize,
    ) -> std::result::Result<Option<Rc<BodyStatement>>, BodyError> {
        let plan_key = self.plan_key_of(catalog);
        let key = BodyKey {
            plan: plan_key,
            routine: request.def.oid,
            at,
            types: request.types.clone(),
            result: request.result.types(),
        };
        let found = BODIES.with_borrow(|bodies| bodies.get(&key).cloned());
        let outgrown = |s: &Rc<BodyStatement>| s.known.is_outgrown(&self.engine.store);
        if let Some(statement) = found.filter(|statement| !outgrown(statement)) {
            return Ok(Some(statement));
        }
        let Some(statement) = self.plan_body_statement(request, catalog, at)? else {
            return Ok(None);
        };
        let statement = Rc::new(statement);
        if !plan_key.own {
            BODIES.with_borrow_mut(|bodies| {
                if bodies.len() >= MOST_BODIES {
                    bodies.clear();
                }
                bodies.insert(key, statement.clone());
            });
        }
        Ok(Some(statement))
    }

    fn plan_body_statement(
        &self,
        request: &CallRequest,
        catalog: &Catalog,
        at: usize,
    ) -> std::result::Result<Option<BodyStatement>, BodyError> {
        let def = &request.def;
        let statements = binder::body_statements(def).map_err(BodyError::Startup)?;
        let Some(statement) = statements.get(at) else {
            return Ok(None);
        };
        let more = at + 1 < statements.len();
        let mut known = CachedPlan::new("", None, Vec::new(), None);
        if binder::has_plan(statement) {
            let last = (!more).then_some(&request.result);
            let bound = self.with_context(catalog, |ctx| {
                binder::body_statement(ctx, def, &request.types, statement, last)
            });
            let plan = bound.and_then(|bound| self.plan_in(bound, catalog));
            let plan = Arc::new(plan.map_err(|e| BodyError::Statement(at + 1, e))?);
            known = known.planned(plan, &self.engine.store, catalog);
        }
        Ok(Some(BodyStatement { known, more }))
    }

    /// CALL: the arguments that come back are a row for the client.
    pub(super) async fn call_procedure(
        &mut self,
        call: RoutineCall,
        client: &mut dyn Client,
    ) -> Result<()> {
        let catalog = self.catalog();
        self.transaction()?.used.set(true);
        let snapshot = self.transaction()?.txn.snapshot();
        let columns = call.columns.clone();
        let host = self.host(&catalog);
        let values = self.command_values.take();
        let env = self.env(&catalog, &host, &snapshot, &values);
        // What may end the transaction is no part of an expression.
        let value = if super::plpgsql::may_end(&call.def) {
            let mut args = Vec::with_capacity(call.args.len());
            for arg in &call.args {
                args.push(write::constant(arg.clone(), env).await?);
            }
            drop(snapshot);
            self.call_alone(call, args, client).await?
        } else {
            let value = write::constant(Expr::Routine(Box::new(call)), env).await?;
            self.transaction()?.txn.next_command()?;
            value
        };
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let eval = host.eval();
        if columns.is_empty() {
            return Ok(());
        }
        let shape = columns_of_call(&columns);
        let row = match value {
            Datum::Record(record) => record.values.clone(),
            _ => vec![Datum::Null; columns.len()],
        };
        client.row_description(&shape);
        client.row(&row, &shape, &eval)
    }
}

/// The row that CALL of a procedure gives.
pub(super) fn columns_of_call(columns: &[RelColumn]) -> Arc<RowShape> {
    as_text(columns.iter().map(|c| field(&c.name, c.ty)).collect())
}

/// Where in a call an error came up.
enum BodyError {
    Startup(Error),
    /// In the statement of that number.
    Statement(usize, Error),
}

/// Rows that came as one value each, as their fields; a row that is NULL has none.
fn spread_records(rows: &mut [Row], given: &[RelColumn], result: &BodyResult) -> Result<()> {
    let (BodyResult::Row { of, types }, [one]) = (result, given) else {
        return Ok(());
    };
    let whole = match made::is_composite(*of) {
        true => one.ty.oid == *of,
        false => is_row(one.ty),
    };
    if !whole || types.len() == 1 && types[0].oid == oid::RECORD {
        return Ok(());
    }
    for row in rows {
        let [Datum::Record(record)] = &row[..] else {
            row.clear();
            continue;
        };
        if record.values.len() != types.len() {
            let message = "function return row and query-specified return row do not match";
            return Err(
                Error::new(state::DATATYPE_MISMATCH, message).detail(format!(
                    "Returned row contains {} attributes, but query expects {}.",
                    record.values.len(),
                    types.len()
                )),
            );
        }
        let checked = record
            .types
            .iter()
            .zip(types)
            .filter(|_| *of == oid::RECORD);
        for (at, (given, wanted)) in checked.enumerate() {
            if *given != wanted.oid && !record.values[at].is_null() {
                let message = "function return row and query-specified return row do not match";
                let detail = format!(
                    "Returned type {} at ordinal position {}, but query expects {}.",
                    type_name(*given),
                    at + 1,
                    type_name(wanted.oid)
                );
                return Err(Error::new(state::DATATYPE_MISMATCH, message).detail(detail));
            }
        }
        *row = record.values.clone();
    }
    Ok(())
}
