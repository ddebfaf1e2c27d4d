//! Calls that stand alone: DO and CALL in no block, which may end the transaction, and the CALLs
//! and DOs inside them.
//!
//! ```text
//!   CALL a ─► a: … CALL b; … ─► b: … COMMIT; …
//!                                      └── both calls lie on one stack, below which the transaction ends and the next begins
//! ```
//! Whatever else calls a function or procedure runs it inside its own statement, where nothing may
//! be ended.

use std::pin::pin;
use std::time::Instant;

use throng_bind::binder::BodyResult;
use throng_bind::command::{BoundStatement, Command, TransactionModes};
use throng_bind::expr::{Expr, RoutineCall};
use throng_catalog::{RoutineBody, RoutineDef};
use throng_syntax::parse::ast::DoBlock;
use throng_syntax::plpgsql::SourceId;
use throng_types::datum::Record;
use throng_types::{Datum, Error, Oid, Result};
use throng_values::func::RelColumn;

use super::super::Session;
use super::super::routine::{DEEPEST, too_deep};
use super::bound_text::within_text;
use super::step::SLICE;
use super::{Machine, Outcome};
use throng_exec::client::Client;
use throng_exec::client::Turns;
use throng_exec::run::routine::{CallRequest, CallResult};

/// Whether a routine may end the transaction, where whoever calls it may.
pub(in super::super) fn may_end(def: &RoutineDef) -> bool {
    matches!(def.body, RoutineBody::Plpgsql(_)) && !def.security_definer && def.settings.is_empty()
}

fn request_of(call: &RoutineCall, args: Vec<Datum>) -> CallRequest {
    CallRequest {
        def: call.def.clone(),
        types: call.args.iter().map(Expr::ty).collect(),
        result: BodyResult::of_call(call),
        args,
        trigger: None,
        place: None,
    }
}

impl Session {
    /// DO, which may end the transaction where it is in no block.
    pub(in super::super) async fn run_do(
        &mut self,
        block: &DoBlock,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.transaction()?.used.set(true);
        let m = self.fresh(self.compile_block(block)?);
        self.run_alone(m, client).await.map(|_| ())
    }

    /// CALL of a procedure in PL/pgSQL, whose arguments have their values: what comes back.
    pub(in super::super) async fn call_alone(
        &mut self,
        call: RoutineCall,
        args: Vec<Datum>,
        client: &mut dyn Client,
    ) -> Result<Datum> {
        let request = request_of(&call, args);
        let m = self.machine(self.compiled(&request)?, &request);
        let given = self.run_alone(m, client).await?;
        let row = given.rows.into_iter().next();
        Ok(match (row, call.columns.is_empty()) {
            (None, _) => Datum::Null,
            (Some(mut row), true) => row.pop().unwrap_or_default(),
            (Some(row), false) => Datum::Record(std::sync::Arc::new(Record {
                types: call
                    .columns
                    .iter()
                    .map(|c| c.ty.oid)
                    .collect::<Box<[Oid]>>()
                    .into(),
                names: None,
                values: row,
            })),
        })
    }

    /// Runs a call, ending the transaction where it, or what it calls, says so.
    async fn run_alone(&mut self, mut m: Machine, client: &mut dyn Client) -> Result<CallResult> {
        let effects = self.effects.suspend();
        m.alone = !self.is_in_block();
        let ran = self.run_stack(vec![m], client).await;
        self.effects.resume(effects);
        let given = ran?;
        self.transaction()?.txn.next_command()?;
        Ok(given)
    }

    async fn run_stack(
        &mut self,
        mut stack: Vec<Machine>,
        client: &mut dyn Client,
    ) -> Result<CallResult> {
        let mut began = Instant::now();
        loop {
            // Calls that are over at once, and transactions without anything, take no turn of their
            // own.
            if began.elapsed() >= SLICE {
                if let Err(e) = self.handle.cancel_flag().check() {
                    self.caught_by(&mut stack, e).await?;
                }
                throng_exec::turns::next_turn().await;
                began = Instant::now();
            }
            let ended = match self.run_top(&mut stack, client).await {
                Ok(Outcome::Done) => {
                    let given = stack.pop().map(Machine::given).unwrap_or_default();
                    match stack.last_mut() {
                        None => return Ok(given),
                        Some(caller) => self.called(caller, given).await,
                    }
                }
                Ok(Outcome::Call(_)) if stack.len() >= DEEPEST as usize => Err(too_deep()),
                Ok(Outcome::Call(callee)) => {
                    stack.push(*callee);
                    Ok(())
                }
                Ok(Outcome::Commit { chain }) => self.end_below(&mut stack, true, chain).await,
                Ok(Outcome::Rollback { chain }) => self.end_below(&mut stack, false, chain).await,
                Err(e) => {
                    stack.pop();
                    Err(match stack.last() {
                        Some(caller) => of_caller(e, caller),
                        None => return Err(e),
                    })
                }
            };
            if let Err(e) = ended {
                self.caught_by(&mut stack, e).await?;
            }
        }
    }

    /// Runs the innermost call; those around it are where they are.
    async fn run_top(&self, stack: &mut [Machine], client: &mut dyn Client) -> Result<Outcome> {
        let Some((top, around)) = stack.split_last_mut() else {
            return Err(Error::internal("no call to run"));
        };
        let frames = &self.procedures.frames;
        let depth = frames.borrow().len();
        let callers = around.iter().map(|m| m.frame.clone());
        frames.borrow_mut().extend(callers);
        let client = Turns::new(client);
        let ran = self.telling(&client, pin!(self.run_machine(top))).await;
        frames.borrow_mut().truncate(depth);
        ran
    }

    /// An error goes on in the innermost handler that is for it, of whichever call.
    async fn caught_by(&self, stack: &mut Vec<Machine>, mut e: Error) -> Result<()> {
        while let Some(m) = stack.last_mut() {
            m.calling = None;
            let compiled = m.compiled.clone();
            match self.caught(m, &compiled.code, e).await {
                Ok(()) => return Ok(()),
                Err(passed) => e = passed,
            }
            stack.pop();
            if let Some(caller) = stack.last() {
                e = of_caller(e, caller);
            }
        }
        Err(e)
    }

    /// Ends the transaction below all calls and begins the next one.
    async fn end_below(&mut self, stack: &mut [Machine], commits: bool, chain: bool) -> Result<()> {
        for m in stack {
            for state in &mut m.loops {
                state.survive(self).await?;
            }
            m.stale();
        }
        let modes = self.chained_modes();
        match commits {
            true => self.commit().await?,
            false => self.rollback().await,
        }
        self.begin_anew(chain.then_some(modes))
    }

    fn begin_anew(&mut self, modes: Option<TransactionModes>) -> Result<()> {
        self.begin_if_idle();
        if let Some(modes) = modes {
            self.set_transaction_modes(modes)?;
        }
        self.transaction()?.used.set(true);
        Ok(())
    }

    /// The call that a CALL or DO of a call that stands alone makes; none where it is to run inside
    /// its statement.
    pub(super) async fn callee(&self, m: &mut Machine, id: SourceId) -> Result<Option<Machine>> {
        let source = m.source(id).clone();
        let bound = self.bound_source(m, &source).await?;
        let BoundStatement::Command(command) = bound.statement else {
            return Ok(None);
        };
        let (mut callee, columns) = match *command {
            Command::Do(block) => {
                let compiled = self.compile_block(&block);
                let compiled = compiled.map_err(|e| within_text(e, &source))?;
                (self.fresh(compiled), vec![])
            }
            Command::Call(call) if may_end(&call.def) => {
                for notice in bound.notices {
                    self.tell(notice)?;
                }
                let mut args = Vec::with_capacity(call.args.len());
                for arg in &call.args {
                    let value = self.evaluate(m, arg, true).await;
                    args.push(value.map_err(|e| within_text(e, &source))?);
                }
                let request = request_of(&call, args);
                let compiled = self.compiled(&request);
                let compiled = compiled.map_err(|e| within_text(e, &source))?;
                (self.machine(compiled, &request), call.columns.clone())
            }
            _ => return Ok(None),
        };
        self.transaction()?.txn.next_command()?;
        callee.alone = true;
        m.calling = Some((id, columns));
        *m.frame.sql.borrow_mut() = Some(source.text.as_str().into());
        Ok(Some(callee))
    }

    /// A call that another one made has ended.
    async fn called(&self, caller: &mut Machine, given: CallResult) -> Result<()> {
        *caller.frame.sql.borrow_mut() = None;
        caller.stale();
        let Some((id, columns)) = caller.calling.take() else {
            return Err(Error::internal("a call that nobody made"));
        };
        self.transaction()?.txn.next_command()?;
        match given.rows.first() {
            Some(row) if !columns.is_empty() => self.give_back(caller, id, row, &columns).await,
            _ => Ok(()),
        }
    }
}

/// An error in what a call has called.
fn of_caller(e: Error, caller: &Machine) -> Error {
    match &caller.calling {
        Some((id, _)) => within_text(e, caller.source(*id)),
        None => e,
    }
}

/// Which CALL runs, and the columns of what it gives.
pub(super) type Calling = (SourceId, Vec<RelColumn>);
