//! The rows that UPDATE and DELETE look for, and where each of them is when its change came to
//! something else.

use std::borrow::Cow;

use throng_bind::expr::RelId;
use throng_txn::Isolation;
use throng_txn::rows::{RowOutcome, RowRef, RowTurn};
use throng_types::{Datum, Result};

use super::{Context, Target, newest_of, row_found, self_modified};
use crate::drive::next;
use crate::run::Row;
use crate::run::build::Execution;

/// These columns of the input, not copied where they follow one another there.
pub(super) fn taken_out<'i>(slots: &[u32], input: &'i [Datum]) -> Cow<'i, [Datum]> {
    let first = slots.first().copied().unwrap_or(0);
    match slots.iter().zip(first..).all(|(slot, at)| *slot == at) {
        true => Cow::Borrowed(&input[first as usize..][..slots.len()]),
        false => slots
            .iter()
            .map(|slot| input[*slot as usize].clone())
            .collect(),
    }
}

/// What UPDATE or DELETE looks for: rows of a table, which its input names.
pub(super) struct TargetRows<'t> {
    target: &'t Target,
    rel: RelId,
    /// The input's column with the row's tid.
    tid: u32,
    /// Its columns with the row's own.
    old: &'t [u32],
    is_delete: bool,
    /// Whether what the statement sees may go while it waits for its row: it reads nothing more by
    /// its snapshot, and neither do triggers.
    without_snapshot: bool,
}

impl<'t> TargetRows<'t> {
    pub(super) fn new(
        execution: &Execution,
        target: &'t Target,
        (rel, tid, old): (RelId, u32, &'t [u32]),
        is_delete: bool,
        cx: &Context<'_>,
    ) -> TargetRows<'t> {
        let without_snapshot = execution.plan().changes_one_row
            && target.triggers.is_none()
            && cx.txn.isolation() == Isolation::ReadCommitted;
        TargetRows {
            target,
            rel,
            tid,
            old,
            is_delete,
            without_snapshot,
        }
    }

    pub(super) fn turn<'a>(&self, cx: &Context<'a>) -> RowTurn<'a> {
        match self.without_snapshot {
            true => RowTurn::letting_go(cx.env.snapshot),
            false => RowTurn::default(),
        }
    }

    /// The row that `input` is of; most likely the statement's own scan has found it just now.
    pub(super) async fn found(&self, execution: &Execution, input: &Row) -> Result<Option<RowRef>> {
        row_found(execution, self.rel, self.target, &input[self.tid as usize]).await
    }

    /// The row as it was.
    pub(super) fn old<'i>(&self, input: &'i [Datum]) -> Cow<'i, [Datum]> {
        taken_out(self.old, input)
    }

    /// Where the change of a row came to something else: the row as it is now, which `input` then
    /// is of. None where the statement is through with it.
    pub(super) async fn now<T>(
        &self,
        instead: RowOutcome<T>,
        at: RowRef,
        execution: &mut Execution,
        turn: &mut RowTurn<'_>,
        cx: &Context<'_>,
        input: &mut Row,
    ) -> Result<Option<RowRef>> {
        if let RowOutcome::LookAnew = instead {
            turn.renew();
            execution.restart();
            return match next(execution, cx.env, cx.txn, input).await? {
                true => self.found(execution, input).await,
                false => Ok(None),
            };
        }
        self_modified(&instead, self.target, at, self.is_delete, cx).await?;
        newest_of(instead, execution, self.rel, cx, input).await
    }
}
