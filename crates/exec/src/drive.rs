//! What drives operators: the next row, with all that has to be waited for or answered before it.

use throng_bind::query::LockWait;
use throng_buffer::Patience;
use throng_txn::WaitPolicy;
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, lock_row};
use throng_types::error::state;
use throng_types::{Datum, Error, Result};

use crate::client::{RowShape, Turns};
use crate::copy::Records;
use crate::outgoing;
use crate::run::build::Execution;
use crate::run::context::{Env, too_much_kept};
use crate::run::hashed::row_bytes;
use crate::run::lock::Locked;
use crate::run::{LockRequest, Row, Step, Suspension, routine};
use crate::spill::RowStore;

/// The next row, waiting for whatever it needs without holding the core.
pub async fn next(
    execution: &mut Execution,
    env: Env<'_>,
    txn: &throng_txn::Txn,
    row: &mut Row,
) -> Result<bool> {
    match next_now(execution, env, row) {
        Ok(more) => Ok(more),
        Err(stop) => next_after(stop, execution, env, txn, row).await,
    }
}

/// The same, of a statement that has stopped.
pub async fn next_after(
    mut stop: Suspension,
    execution: &mut Execution,
    env: Env<'_>,
    txn: &throng_txn::Txn,
    row: &mut Row,
) -> Result<bool> {
    let mut patience = Patience::default();
    loop {
        settle(stop, execution, env, txn, &mut patience).await?;
        match next_now(execution, env, row) {
            Ok(more) => return Ok(more),
            Err(again) => stop = again,
        }
    }
}

/// The next row, or what must be [settled](settle) before it can be asked for again.
pub fn next_now(execution: &mut Execution, env: Env<'_>, row: &mut Row) -> Step<bool> {
    env.effects.again();
    let more = execution.next(env, row)?;
    env.effects.done();
    Ok(more)
}

/// Waits for what stopped a statement, or does what it asks for.
async fn settle(
    stop: Suspension,
    execution: &mut Execution,
    env: Env<'_>,
    txn: &throng_txn::Txn,
    patience: &mut Patience,
) -> Result<()> {
    match stop {
        Suspension::Lock(request) => {
            let locked = lock(request, env, txn).await?;
            execution.answer(locked);
            Ok(())
        }
        Suspension::Call(request) => {
            execution.called();
            routine::answer(&request, env).await
        }
        Suspension::Long(call) => call.answer(env).await,
        Suspension::Part(part) => execution.run_part(part, env).await,
        stop => wait(stop, env, patience).await,
    }
}

/// Waits for what stopped an evaluation that locks no rows. `patience` keeps what was waited for
/// until the next attempt.
pub async fn wait(stop: Suspension, env: Env<'_>, patience: &mut Patience) -> Result<()> {
    // Answers are noted where the evaluation has stopped, before it begins again.
    let stop = match stop {
        Suspension::Call(request) => {
            let answered = routine::answer(&request, env).await;
            env.effects.again();
            return answered;
        }
        Suspension::Long(call) => {
            let answered = call.answer(env).await;
            env.effects.again();
            return answered;
        }
        other => other,
    };
    env.effects.again();
    match stop {
        Suspension::Wait(wait) => env.cancel.guard(patience.wait(wait)).await,
        Suspension::Yield => {
            env.cancel.check()?;
            crate::turns::next_turn().await;
            Ok(())
        }
        Suspension::Lock(_) | Suspension::Part(_) | Suspension::Call(_) | Suspension::Long(_) => {
            Err(not_of_an_expression())
        }
        Suspension::Error(e) => Err(e),
    }
}

/// Only operators lock rows or are the pool's.
pub fn not_of_an_expression() -> Error {
    Error::internal("an expression that stops for what an operator stops for")
}

/// Locks a row for an operator, waiting as it asks.
pub async fn lock(request: LockRequest, env: Env<'_>, txn: &throng_txn::Txn) -> Result<Locked> {
    let policy = match request.wait {
        LockWait::Wait => WaitPolicy::Block,
        LockWait::SkipLocked | LockWait::NoWait => WaitPolicy::NoWait,
    };
    let heap = env.store.relations.heap(request.file);
    let row = RowRef {
        tid: request.tid,
        root: request.tid,
    };
    let outcome = lock_row(
        txn,
        &heap,
        row,
        request.mode,
        policy,
        &mut RowTurn::default(),
    )
    .await?;
    Ok(match outcome {
        RowOutcome::Done(()) => Locked::Done,
        RowOutcome::Updated(newest) => Locked::Changed(newest.tid),
        RowOutcome::Deleted | RowOutcome::SelfModified => Locked::Gone,
        RowOutcome::LookAnew => return Err(Error::internal("a snapshot that was kept is gone")),
        RowOutcome::Busy if request.wait == LockWait::SkipLocked => Locked::Skipped,
        RowOutcome::Busy => {
            let table = env
                .catalog
                .tables()
                .into_iter()
                .find(|t| t.file == request.file);
            let name = table.map_or("", |t| t.name.as_str());
            return Err(Error::new(
                state::LOCK_NOT_AVAILABLE,
                format!("could not obtain lock on row in relation \"{name}\""),
            ));
        }
    })
}

/// Where RETURNING's rows go.
pub enum Returning<'a> {
    Client {
        client: &'a Turns<'a>,
        shape: Option<&'a RowShape>,
    },
    /// Away, by COPY.
    Copied(Records<'a>),
    /// To the rest of the statement.
    Kept(&'a mut RowStore),
    /// To nobody; they are computed all the same.
    Unread,
}

impl Returning<'_> {
    /// Whether anybody looks at the rows.
    pub fn is_wanted(&self) -> bool {
        match self {
            Returning::Client { shape, .. } => shape.is_some(),
            Returning::Copied(_) | Returning::Kept(_) | Returning::Unread => true,
        }
    }

    pub async fn row(&mut self, row: &[Datum], env: Env<'_>) -> Result<()> {
        match self {
            Returning::Client { client, shape } => {
                if let Some(shape) = shape {
                    outgoing::give(client, row, shape, env).await?;
                }
                client.drain().await?;
            }
            Returning::Copied(records) => records.row(row, env).await?,
            Returning::Kept(kept) => {
                kept.keep(row)?;
            }
            Returning::Unread => {}
        }
        Ok(())
    }

    /// Ends a COPY; how many rows it had.
    pub async fn end(self) -> Result<u64> {
        match self {
            Returning::Copied(records) => records.end().await,
            _ => Ok(0),
        }
    }
}

/// Rows that are kept for the rest of a statement.
pub struct KeptRows {
    pub rows: Vec<Row>,
    bytes: usize,
    /// `work_mem` in bytes.
    limit: usize,
}

impl KeptRows {
    pub fn new(limit: usize) -> KeptRows {
        KeptRows {
            rows: Vec::new(),
            bytes: 0,
            limit,
        }
    }

    /// 53200 past the limit.
    pub fn keep(&mut self, row: &[Datum]) -> Result<()> {
        self.bytes += row_bytes(row);
        if self.bytes > self.limit {
            return Err(too_much_kept(self.limit));
        }
        self.rows.push(row.to_vec());
        Ok(())
    }
}
