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
//! At READ COMMITTED a row that others have changed is looked at again, beside the same row of the
//! source: the join's condition and those of the clauses are evaluated over its newest version.

use std::rc::Rc;

use throng_bind::expr::Expr;
use throng_bind::query::{MergeMatch, MergeWrite};
use throng_catalog::fires;
use throng_plan::{MergeNode, Node};
use throng_txn::rows::{RowOutcome, RowTurn};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Text, Tid};

use super::arrival::{Arrivals, Routed, own_row};
use super::foreign::ForeignKeys;
use super::modify::{Existing, ModifyTable, Stored, read_row};
use super::partition::{WriteTarget, WriteTargets};
use super::trigger::{Triggers, changed_by_function};
use super::{Context, evaluate, give, insert_row, policy};
use crate::drive::{Returning, next};
use crate::run::build::Execution;
use crate::run::eval::{eval, holds};
use crate::run::{Row, Step};

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
    modify: ModifyTable<'a, 'b>,
    cx: &'a Context<'b>,
    count: u64,
    /// Of a view: what does its rows instead.
    instead: Option<Rc<Triggers>>,
}

/// A row that was written, as the table has it that the statement names.
struct Written {
    row: Row,
    tid: Tid,
    table: Oid,
}

pub(super) async fn run(
    execution: &mut Execution,
    node: &MergeNode,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<(u64, Vec<ForeignKeys>)> {
    let (events, set) = events_of(node);
    let set = set.into_iter();
    let modify = ModifyTable::begin(node.into(), &events, set, execution, cx).await?;
    let mut merging = Merging {
        node,
        modify,
        cx,
        count: 0,
        instead: match node.table.has_rows() {
            true => None,
            false => Triggers::of(&node.table, cx)?,
        },
    };
    let mut input = Row::new();
    while next(execution, cx.env, cx.txn, &mut input).await? {
        if !node.table.has_rows() {
            merging.do_instead(execution, &mut input, returning).await?;
            continue;
        }
        let met = match merging.modify.existing(execution, &input).await? {
            Some(found) => {
                merging
                    .existing(execution, found, &mut input, returning)
                    .await?
            }
            None => Met::Parted,
        };
        if matches!(met, Met::Parted) {
            merging.unpaired(execution, &mut input, returning).await?;
        }
    }
    Ok((merging.count, merging.modify.end().await?))
}

/// What a MERGE is to triggers, and the columns that its UPDATEs set.
fn events_of(node: &MergeNode) -> (Vec<i16>, Vec<u16>) {
    let (mut found, mut set) = (0, Vec::new());
    for action in &node.actions {
        found |= match &action.write {
            MergeWrite::Insert(_) => fires::INSERT,
            MergeWrite::Update(values) => {
                set.extend(values.iter().map(|(attnum, _)| *attnum));
                fires::UPDATE
            }
            MergeWrite::Delete => fires::DELETE,
            MergeWrite::Nothing => 0,
        };
    }
    let all = [fires::INSERT, fires::UPDATE, fires::DELETE];
    let events = all.into_iter().filter(|event| found & event != 0);
    (events.collect(), set)
}

/// Where a new row is written.
fn place_for<'t>(
    node: &MergeNode,
    targets: &'t mut WriteTargets,
    alone: bool,
    routed: &Routed,
    cx: &Context<'_>,
) -> Result<&'t mut WriteTarget> {
    let (at, table) = match (routed, &node.routing) {
        (Some((leaf, _)), Some(routing)) => (*leaf, &routing.tree.leaves[*leaf]),
        _ => (0, &node.table),
    };
    targets.get(at, table, &[], alone, cx)
}

/// 21000: two rows of the source belong to one of the target.
fn second_time() -> Error {
    Error::new(
        state::CARDINALITY_VIOLATION,
        "MERGE command cannot affect row a second time",
    )
    .hint("Ensure that not more than one source row matches any one target row.")
}

impl<'a> Merging<'a, '_> {
    /// A row of the target.
    async fn existing(
        &mut self,
        execution: &mut Execution,
        mut found: Existing<'a>,
        input: &mut Row,
        returning: &mut Returning<'_>,
    ) -> Result<Met> {
        let node = self.node;
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
            policy::check_merged(execution, self.cx, place, input).await?;
            let outcome = match &node.actions[place].write {
                MergeWrite::Update(_) => {
                    let changed = self.change(execution, place, found, input, &mut turn);
                    Box::pin(changed).await?
                }
                MergeWrite::Delete => self.remove(found, input, &mut turn).await?,
                MergeWrite::Nothing | MergeWrite::Insert(_) => return Ok(met),
            };
            match outcome {
                // A trigger keeps it from being done.
                RowOutcome::Done(None) => return Ok(met),
                RowOutcome::Done(Some(written)) => {
                    drop(turn);
                    let is_update = matches!(node.actions[place].write, MergeWrite::Update(_));
                    let action = if is_update { "UPDATE" } else { "DELETE" };
                    let row = self.returned(action, &written, is_update, input);
                    give(execution, self.cx, &row, returning).await?;
                    self.count += 1;
                    return Ok(met);
                }
                RowOutcome::Updated(newest) => {
                    found.at = newest;
                    if !self.look_again(found, input).await? {
                        return Ok(Met::Settled);
                    }
                }
                RowOutcome::SelfModified => {
                    let target = self.modify.target(found.source)?.target.clone();
                    let is_delete = matches!(node.actions[place].write, MergeWrite::Delete);
                    changed_by_function(&target, found.at, is_delete, self.cx).await?;
                    return Err(second_time());
                }
                RowOutcome::LookAnew => {
                    return Err(Error::internal("a snapshot that was kept is gone"));
                }
                RowOutcome::Deleted | RowOutcome::Busy => {
                    return Ok(match paired {
                        true => Met::Parted,
                        false => Met::Settled,
                    });
                }
            }
        }
    }

    /// A row of the join of a view: its triggers do what is to be done.
    async fn do_instead(
        &mut self,
        execution: &mut Execution,
        input: &mut Row,
        returning: &mut Returning<'_>,
    ) -> Result<()> {
        if input[self.node.tid as usize].is_null() {
            return self.unpaired(execution, input, returning).await;
        }
        let of = match self.matched(execution, input).await? {
            true => MergeMatch::Matched,
            false => MergeMatch::NotMatchedBySource,
        };
        let Some(place) = self.chosen(execution, of, input).await? else {
            return Ok(());
        };
        let old = self.modify.old_top(input).into_owned();
        let (action, is_update, new) = match &self.node.actions[place].write {
            MergeWrite::Update(_) => {
                let mut new = old.clone();
                for (attnum, value) in self.updated(execution, place, input).await? {
                    new[usize::from(attnum) - 1] = value;
                }
                ("UPDATE", true, Some(new))
            }
            MergeWrite::Delete => ("DELETE", false, None),
            MergeWrite::Nothing | MergeWrite::Insert(_) => return Ok(()),
        };
        let event = if is_update {
            fires::UPDATE
        } else {
            fires::DELETE
        };
        let Some(taken) = self.acted(event, Some(&old), new).await? else {
            return Ok(());
        };
        let written = Written {
            row: taken.unwrap_or(old),
            tid: Tid::NONE,
            table: self.node.table.oid,
        };
        let row = self.returned(action, &written, is_update, input);
        give(execution, self.cx, &row, returning).await?;
        self.count += 1;
        Ok(())
    }

    /// The new row of a view as its triggers leave it; None where one of them does not take the
    /// row.
    async fn acted(
        &self,
        event: i16,
        old: Option<&[Datum]>,
        new: Option<Row>,
    ) -> Result<Option<Option<Row>>> {
        match &self.instead {
            Some(triggers) => triggers.instead(event, old, new, self.cx).await,
            // They are switched off in this session.
            None => Ok(Some(new)),
        }
    }

    async fn change(
        &mut self,
        execution: &mut Execution,
        place: usize,
        found: Existing<'a>,
        input: &Row,
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<Option<Written>>> {
        let set = self.updated(execution, place, input).await?;
        let Some(old) = self.modify.old(found, input).await? else {
            return Ok(RowOutcome::Deleted);
        };
        let mut own = old.to_vec();
        for (attnum, value) in set {
            own[usize::from(found.source.attnum(attnum)) - 1] = value;
        }
        let stored = self.modify.put(execution, found, &old, own, turn).await?;
        let written = |Stored { row, tid, table }| Written { row, tid, table };
        Ok(stored.map(|stored| stored.map(written)))
    }

    async fn remove(
        &mut self,
        found: Existing<'a>,
        input: &Row,
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<Option<Written>>> {
        let gone = self.modify.remove(found, input, turn).await?;
        let row = self.modify.old_top(input).into_owned();
        let table = self.modify.target(found.source)?.target.def().oid;
        let tid = found.at.tid;
        Ok(gone.map(|gone| gone.then_some(Written { row, tid, table })))
    }

    /// A row of the source without partner.
    async fn unpaired(
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
        evaluate(execution, cx, |plan, cx| {
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
        let Some(written) = Box::pin(self.add(execution, new)).await? else {
            return Ok(());
        };
        let row = self.returned("INSERT", &written, true, input);
        give(execution, cx, &row, returning).await?;
        self.count += 1;
        Ok(())
    }

    /// Stores a new row; None where a trigger keeps it out.
    async fn add(&mut self, execution: &mut Execution, mut new: Row) -> Result<Option<Written>> {
        let (node, cx) = (self.node, self.cx);
        if !node.table.has_rows() {
            let taken = self.acted(fires::INSERT, None, Some(new)).await?;
            return Ok(taken.flatten().map(|row| Written {
                row,
                tid: Tid::NONE,
                table: node.table.oid,
            }));
        }
        let ModifyTable {
            named,
            targets,
            alone,
            ..
        } = &mut self.modify;
        let arrivals = Arrivals {
            table: &node.table,
            routing: node.routing.as_deref(),
            named,
        };
        let mut routed = arrivals.routed(execution, &new, cx).await?;
        let place = place_for(node, targets, *alone, &routed, cx)?;
        if !arrivals
            .complete(execution, &place.target, &mut routed, &mut new, cx)
            .await?
        {
            return Ok(None);
        }
        let own = own_row(&routed, &new);
        let tid = insert_row(&place.target, own, cx).await?;
        arrivals
            .stored(execution, place, (own, &new), tid, cx)
            .await?;
        let table = place.target.def().oid;
        Ok(Some(Written {
            row: new,
            tid,
            table,
        }))
    }

    /// Whether the target's row belongs to the source's.
    async fn matched(&self, execution: &mut Execution, input: &Row) -> Result<bool> {
        evaluate(execution, self.cx, |plan, cx| match &plan.node {
            Node::Merge(node) => holds(&node.matched, input, cx),
            _ => Ok(false),
        })
        .await
    }

    /// Whether the target's row is seen through the views.
    async fn visible(&self, execution: &mut Execution, input: &Row) -> Result<bool> {
        evaluate(execution, self.cx, |plan, cx| match &plan.node {
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
        evaluate(execution, self.cx, |plan, cx| {
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

    /// The columns that an UPDATE sets.
    async fn updated(
        &self,
        execution: &mut Execution,
        place: usize,
        input: &Row,
    ) -> Result<Vec<(u16, Datum)>> {
        evaluate(execution, self.cx, |plan, cx| {
            let Node::Merge(node) = &plan.node else {
                return Ok(Vec::new());
            };
            let MergeWrite::Update(set) = &node.actions[place].write else {
                return Ok(Vec::new());
            };
            let value = |(attnum, expr): &(u16, Expr)| Ok((*attnum, eval(expr, input, cx)?));
            set.iter().map(value).collect::<Step<Vec<_>>>()
        })
        .await
    }

    /// Puts the target's newest version into the joined row; false if it is gone.
    async fn look_again(&mut self, found: Existing<'a>, input: &mut Row) -> Result<bool> {
        let target = self.modify.target(found.source)?.target.clone();
        let Some(own) = read_row(&target, found.at.tid).await? else {
            return Ok(false);
        };
        let row = self.modify.as_top(found.source, own);
        for (slot, value) in self.node.old.iter().zip(row) {
            input[*slot as usize] = value;
        }
        input[self.node.tid as usize] = Datum::Tid(found.at.tid);
        Ok(true)
    }

    /// What RETURNING is evaluated over; see [`MergeNode`].
    fn returned(&self, action: &str, written: &Written, is_new: bool, input: &Row) -> Row {
        let in_family = self.node.family.is_some();
        let table = || in_family.then_some(Datum::Oid(written.table.0));
        let mut out = written.row.clone();
        out.push(Datum::Tid(written.tid));
        out.push(Datum::Text(Text::new(action)));
        out.extend(table());
        match is_new {
            true => {
                out.extend_from_slice(&written.row);
                out.push(Datum::Tid(written.tid));
                out.extend(table());
            }
            false => {
                let width = written.row.len() + 1 + usize::from(in_family);
                out.extend(std::iter::repeat_n(Datum::Null, width));
            }
        }
        out.extend_from_slice(input);
        out
    }
}
