//! MERGE: each row of the join is acted on by the first WHEN clause that is for it.
//!
//! ```text
//! row of the join ─► has a row of the target? ── no ───────────────────────────► NOT MATCHED BY TARGET: INSERT
//!                        │ yes                                                          ▲
//!                        ▼                                                              │ and
//!                 still belongs to the source's? ── no ─► NOT MATCHED BY SOURCE ────────┤ (had a row of the source)
//!                        │ yes   ▲                          │                           │
//!                        ▼       └── changed meanwhile ─────┤                           │
//!                     MATCHED: UPDATE, DELETE ──────────────┴─ deleted meanwhile ───────┘
//! ```
//! At READ COMMITTED a row that others have changed is looked at again, beside the same row of the source: the join's
//! condition and those of the clauses are evaluated over its newest version.

use throng_buffer::retry;
use throng_sql::plan::{MergeNode, Node};
use throng_sql::query::{MergeMatch, MergeWrite};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, delete_row};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, Text, Tid};

use super::foreign::ForeignKeys;
use super::{
    Context, Target, check_views, complete_row, evaluate, give, insert_row, row_ref, store_update,
};
use crate::large;
use crate::run::Row;
use crate::run::build::Execution;
use crate::run::eval::{eval, holds};
use crate::session::{Returning, next};

/// What a row of the target turned out to be, once nothing more is to be done to it.
enum Met {
    /// A pair, or one of which the source has no row: it is done with.
    Settled,
    /// What was a pair is none any more: the source's row has no partner.
    Parted,
}

/// A MERGE under way.
struct Merging<'a, 'b> {
    node: &'a MergeNode,
    target: Target,
    keys: ForeignKeys,
    cx: &'a Context<'b>,
    count: u64,
}

pub(super) async fn run(
    execution: &mut Execution,
    node: &MergeNode,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<(u64, ForeignKeys)> {
    let mut merging = Merging {
        node,
        target: Target::of(&node.table, cx)?,
        keys: ForeignKeys::new(&node.table, cx)?.beside_others(execution.writes_once()),
        cx,
        count: 0,
    };
    let mut input = Row::new();
    while next(execution, cx.env, cx.txn, &mut input).await? {
        let met = match row_ref(&merging.target, &input[node.tid as usize]).await? {
            Some(at) => {
                merging
                    .existing(execution, at, &mut input, returning)
                    .await?
            }
            None => Met::Parted,
        };
        if matches!(met, Met::Parted) {
            merging.alone(execution, &mut input, returning).await?;
        }
    }
    Ok((merging.count, merging.keys))
}

/// 21000: two rows of the source belong to one of the target.
fn second_time() -> Error {
    Error::new(
        state::CARDINALITY_VIOLATION,
        "MERGE command cannot affect row a second time",
    )
    .hint("Ensure that not more than one source row matches any one target row.")
}

impl Merging<'_, '_> {
    /// A row of the target.
    async fn existing(
        &mut self,
        execution: &mut Execution,
        mut at: RowRef,
        input: &mut Row,
        returning: &mut Returning<'_>,
    ) -> Result<Met> {
        let (node, cx) = (self.node, self.cx);
        let mut turn = RowTurn::default();
        let mut paired = false;
        loop {
            let matched = self.matched(execution, input).await?;
            paired |= matched;
            let met = match paired && !matched {
                true => Met::Parted,
                false => Met::Settled,
            };
            let of = match matched {
                true => MergeMatch::Matched,
                false => MergeMatch::NotMatchedBySource,
            };
            if !matched && !self.visible(execution, input).await? {
                return Ok(met);
            }
            let Some(place) = self.chosen(execution, of, input).await? else {
                return Ok(met);
            };
            let old: Row = node
                .old
                .iter()
                .map(|slot| input[*slot as usize].clone())
                .collect();
            let outcome = match &node.actions[place].write {
                MergeWrite::Update(_) => {
                    let mut new = self.updated(execution, place, &old, input).await?;
                    let computed = !node.generated.is_empty();
                    complete_row(execution, cx, self.target.def(), computed, &mut new).await?;
                    let stored = store_update(&self.target, at, &old, &new, &mut turn, cx).await?;
                    match stored {
                        RowOutcome::Done(tid) => {
                            drop(turn);
                            check_views(execution, cx, self.target.def(), &new).await?;
                            self.keys.updated((&old, at.tid), (&new, tid), cx).await?;
                            let row = self.returned("UPDATE", new, tid, true, input);
                            give(execution, cx, &row, returning).await?;
                            self.count += 1;
                            return Ok(met);
                        }
                        RowOutcome::Updated(newest) => RowOutcome::Updated(newest),
                        RowOutcome::Deleted => RowOutcome::Deleted,
                        RowOutcome::SelfModified => RowOutcome::SelfModified,
                        RowOutcome::Busy => RowOutcome::Busy,
                    }
                }
                MergeWrite::Delete => {
                    delete_row(cx.txn, &self.target.table.heap, at, &mut turn).await?
                }
                MergeWrite::Nothing | MergeWrite::Insert(_) => return Ok(met),
            };
            match outcome {
                RowOutcome::Done(()) => {
                    drop(turn);
                    self.keys.deleted(&old, at.tid, cx).await?;
                    let row = self.returned("DELETE", old, at.tid, false, input);
                    give(execution, cx, &row, returning).await?;
                    self.count += 1;
                    return Ok(met);
                }
                RowOutcome::Updated(newest) => {
                    at = newest;
                    if !self.look_again(at, input).await? {
                        return Ok(Met::Settled);
                    }
                }
                RowOutcome::SelfModified => return Err(second_time()),
                RowOutcome::Deleted | RowOutcome::Busy => {
                    return Ok(match paired {
                        true => Met::Parted,
                        false => Met::Settled,
                    });
                }
            }
        }
    }

    /// A row of the source without partner.
    async fn alone(
        &mut self,
        execution: &mut Execution,
        input: &mut Row,
        returning: &mut Returning<'_>,
    ) -> Result<()> {
        let (node, cx) = (self.node, self.cx);
        for slot in node.old.iter().chain([&node.tid]) {
            input[*slot as usize] = Datum::Null;
        }
        let of = MergeMatch::NotMatchedByTarget;
        let Some(place) = self.chosen(execution, of, input).await? else {
            return Ok(());
        };
        if !matches!(node.actions[place].write, MergeWrite::Insert(_)) {
            return Ok(());
        }
        let mut new = Row::new();
        evaluate(execution, cx.env, |plan, cx| {
            let Node::Merge(node) = &plan.node else {
                return Ok(());
            };
            match &node.actions[place].write {
                MergeWrite::Insert(values) => {
                    crate::run::build::evaluate_all(values, input, cx, &mut new)
                }
                _ => Ok(()),
            }
        })
        .await?;
        let computed = !node.generated.is_empty();
        complete_row(execution, cx, self.target.def(), computed, &mut new).await?;
        let tid = insert_row(&self.target, &new, cx).await?;
        check_views(execution, cx, self.target.def(), &new).await?;
        self.keys.inserted(&new, tid, cx).await?;
        let row = self.returned("INSERT", new, tid, true, input);
        give(execution, cx, &row, returning).await?;
        self.count += 1;
        Ok(())
    }

    /// Whether the target's row belongs to the source's.
    async fn matched(&self, execution: &mut Execution, input: &Row) -> Result<bool> {
        evaluate(execution, self.cx.env, |plan, cx| match &plan.node {
            Node::Merge(node) => holds(&node.matched, input, cx),
            _ => Ok(false),
        })
        .await
    }

    /// Whether the target's row is seen through the views.
    async fn visible(&self, execution: &mut Execution, input: &Row) -> Result<bool> {
        evaluate(execution, self.cx.env, |plan, cx| match &plan.node {
            Node::Merge(node) => match &node.visible {
                Some(visible) => holds(visible, input, cx),
                None => Ok(true),
            },
            _ => Ok(false),
        })
        .await
    }

    /// The first action for such a row, by its place.
    async fn chosen(
        &self,
        execution: &mut Execution,
        of: MergeMatch,
        input: &Row,
    ) -> Result<Option<usize>> {
        evaluate(execution, self.cx.env, |plan, cx| {
            let Node::Merge(node) = &plan.node else {
                return Ok(None);
            };
            for (place, action) in node.actions.iter().enumerate() {
                if action.of != of {
                    continue;
                }
                match &action.condition {
                    Some(condition) if !holds(condition, input, cx)? => {}
                    _ => return Ok(Some(place)),
                }
            }
            Ok(None)
        })
        .await
    }

    /// The new row of an UPDATE.
    async fn updated(
        &self,
        execution: &mut Execution,
        place: usize,
        old: &Row,
        input: &Row,
    ) -> Result<Row> {
        let mut new = old.clone();
        evaluate(execution, self.cx.env, |plan, cx| {
            if let Node::Merge(node) = &plan.node
                && let MergeWrite::Update(set) = &node.actions[place].write
            {
                for (attnum, expr) in set {
                    new[usize::from(*attnum) - 1] = eval(expr, input, cx)?;
                }
            }
            Ok(())
        })
        .await?;
        Ok(new)
    }

    /// Puts the target's newest version into the joined row; false if it is gone.
    async fn look_again(&self, at: RowRef, input: &mut Row) -> Result<bool> {
        let table = &self.target.table;
        let mut bytes = Vec::new();
        let header = retry(|| table.heap.read_version(at.tid, &mut bytes)).await?;
        if header.is_none() {
            return Ok(false);
        }
        let mut row = Row::new();
        table.decode(&bytes, self.node.old.len(), &mut row)?;
        let mut fetch = large::Fetch::default();
        retry(|| table.fetch_external(&mut row, &mut fetch)).await?;
        for (slot, value) in self.node.old.iter().zip(row) {
            input[*slot as usize] = value;
        }
        input[self.node.tid as usize] = Datum::Tid(at.tid);
        Ok(true)
    }

    /// What RETURNING is evaluated over; see [`MergeNode`].
    fn returned(&self, action: &str, row: Row, tid: Tid, is_new: bool, input: &Row) -> Row {
        let mut out = row.clone();
        out.push(Datum::Tid(tid));
        out.push(Datum::Text(Text::new(action)));
        match is_new {
            true => {
                out.extend(row);
                out.push(Datum::Tid(tid));
            }
            false => out.extend(std::iter::repeat_n(Datum::Null, row.len() + 1)),
        }
        out.extend_from_slice(input);
        out
    }
}
