//! Running a plan: a tree of row operators that can stop anywhere and go on later.
//!
//! Promise: `next` never blocks. What it cannot have at once — a page, a row lock, a turn on the
//! core — it asks for by returning [`Suspension`], after leaving its state such that calling `next`
//! again goes on exactly there. The session awaits what is asked and calls again; nothing on the
//! way holds a latch.
//!
//! ```text
//! session ──► drive ──next──► Limit ──next──► HashJoin ──next──► SeqScan ──► heap page
//!               ▲                                                   │
//!               └───────── Err(Suspension::Wait(page 17)) ◄─────────┘     await, then next again
//! ```
//! Rules for an operator: what it has taken from its input stays in `self` until it is done with
//! it; expressions may be evaluated again for the same row; an error ends the statement.

pub mod aggregate;
pub mod append;
pub mod build;
pub mod constant;
pub mod context;
mod dead_rows;
pub mod distinct;
pub mod effects;
pub mod eval;
pub mod follow;
pub mod function;
pub mod hashed;
pub mod items;
pub mod join;
pub mod limit;
pub mod lock;
mod own_aggregate;
pub mod part;
mod quantified;
pub mod recursive;
mod replace;
pub mod routine;
pub mod scan;
pub mod setop;
pub mod sort;
mod spare;
pub mod subplan;
pub mod window;

use throng_access::RowLockMode;
use throng_buffer::{Interrupt, Wait};
use throng_types::Datum;
use throng_types::Tid;
use throng_types::{Error, FileId};
use throng_values::func::EvalStop;

use crate::offload::Long;

pub use context::Cx;

/// A row on its way: cleared and filled by each `next`, so that its memory serves all rows.
pub type Row = Vec<Datum>;

/// Why an operator cannot go on now.
pub enum Suspension {
    /// A page is being read, or another thing that `Wait` stands for.
    Wait(Wait),
    /// A row must be locked first; the answer is left in [`Cx::locked`].
    Lock(LockRequest),
    /// A user's function must be run first; the answer is left among the effects.
    Call(Box<routine::CallRequest>),
    /// A value must be computed by another thread first; it is left where the evaluation looks for
    /// it.
    Long(Box<Long>),
    /// The analytics pool must run this part of the plan first; its rows are left in [`Cx::part`].
    Part(&'static throng_plan::Plan),
    /// This statement has used its share of the core for now.
    Yield,
    Error(Error),
}

/// What `LockRows` needs of the lock manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRequest {
    pub file: FileId,
    pub tid: Tid,
    pub mode: RowLockMode,
    pub wait: throng_bind::query::LockWait,
}

pub type Step<T> = Result<T, Suspension>;

impl From<Error> for Suspension {
    fn from(e: Error) -> Suspension {
        Suspension::Error(e)
    }
}

impl From<Interrupt> for Suspension {
    fn from(i: Interrupt) -> Suspension {
        match i {
            Interrupt::Wait(wait) => Suspension::Wait(wait),
            Interrupt::Yield => Suspension::Yield,
            Interrupt::Error(e) => Suspension::Error(e),
        }
    }
}

impl From<EvalStop> for Suspension {
    fn from(stop: EvalStop) -> Suspension {
        match stop {
            EvalStop::Error(e) => Suspension::Error(e),
            EvalStop::Wait(opaque) => match opaque.downcast::<Suspension>() {
                Ok(stop) => *stop,
                Err(_) => {
                    Suspension::Error(Error::internal("a function waits for an unknown thing"))
                }
            },
        }
    }
}

impl From<Suspension> for EvalStop {
    fn from(stop: Suspension) -> EvalStop {
        match stop {
            Suspension::Error(e) => EvalStop::Error(e),
            stop => EvalStop::Wait(Box::new(stop)),
        }
    }
}

/// One node of a running plan.
pub trait Operator {
    /// Clears `row` and fills it with the next one; false when there is none.
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool>;
    /// Starts over, with the outer values as they are now in `cx`.
    fn rewind(&mut self, cx: &mut Cx);
    /// Makes ready for another run of the statement, under another snapshot and with other
    /// parameters: no row stays, and no more memory than a few short rows take. False from
    /// operators that are rather made anew.
    fn reset(&mut self) -> bool {
        false
    }
}

/// Empties room for rows that is to be used again.
fn empty(row: &mut Row) {
    const WIDE: usize = 64;
    match row.capacity() > WIDE {
        true => *row = Row::new(),
        false => row.clear(),
    }
}

/// Makes `to` a copy of a row.
pub fn copy_row(row: &[Datum], to: &mut Row) {
    to.clear();
    to.extend_from_slice(row);
}

pub type BoxOperator = Box<dyn Operator>;
