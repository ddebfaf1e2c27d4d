//! INSERT … ON CONFLICT: insert, or lock the row in the way, or look again.
//!
//! ```text
//!   ┌─► look in the arbiter indexes ── a live row has the key ──► DO NOTHING: KeptOut
//!   │          │ nobody has                                       DO UPDATE: lock it ── it has changed, or is gone ──┐
//!   │          │   (somebody is about to: wait for him, look)          │                                           │
//!   │          ▼                                                        ▼ WHERE holds, no trigger is against it      │
//!   │   insert under a savepoint                                    update it ──► Updated          else: KeptOut     │
//!   │          │        └─ meanwhile somebody has the key: roll back ──┐                                           │
//!   │          ▼                                                      │                                           │
//!   │       Inserted                                                  │                                           │
//!   └──────────────────────────────────────────────────────────────────┴───────────────────────────────────────────┘
//! ```
//! There is no other way out: a row is inserted, a row in the way is decided about while it is
//! locked, or the search goes on.

use std::borrow::Cow;

use throng_access::RowLockMode;
use throng_access::btree::Conflict;
use throng_access::{TxContext, Visibility};
use throng_bind::route::{Leaf, Routing};
use throng_buffer::retry;
use throng_catalog::fires;
use throng_plan::{ConflictNode, InsertNode, Node};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, lock_row_here, too_late, wait_for_unique};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Tid};

use super::arrival::{push_new, set_by};
use super::exclusion::{self, Entering};
use super::modify::read_row;
use super::partition::{WriteTarget, leaf_or_error, place_of};
use super::row::{conflict_with, enter_unless, is_unique_for};
use super::trigger::{self, Named, Updated};
use super::{
    Context, RowOf, Target, check_views, complete, evaluate, policy, store_row, store_update,
};
use crate::run::Row;
use crate::run::build::Execution;
use crate::run::eval::{eval, holds};
use crate::table::Index;

/// What became of a proposed row.
pub(super) enum Settled {
    Inserted(Tid),
    /// The row in the way was updated: the new one, as it is returned.
    Updated(Row),
    /// DO NOTHING, or the WHERE of DO UPDATE or a trigger is against it.
    KeptOut,
}

/// A row that is complete, on its way into a table where others may have its key.
pub(super) struct Upsert<'a> {
    pub node: &'a InsertNode,
    pub on_conflict: &'a ConflictNode,
    pub named: &'a Named,
    /// The columns that DO UPDATE sets, where triggers ask for them.
    pub set: &'a [u16],
    /// Of a table with partitions the leaf that the row belongs to.
    pub leaf: Option<usize>,
    /// The row as the table has it that the statement names, and as its own has it.
    pub proposed: &'a [Datum],
    pub own: &'a [Datum],
}

impl Upsert<'_> {
    /// Inserts the row or updates the one in the way, however often that one changes or goes
    /// meanwhile.
    pub async fn settle(
        &self,
        execution: &mut Execution,
        place: &mut WriteTarget,
        cx: &Context<'_>,
    ) -> Result<Settled> {
        let arbiters = arbiters(&place.target, &place.arbiters);
        loop {
            match find(&place.target, &arbiters, self.own, cx).await? {
                Some(_) if self.on_conflict.update.is_none() => return Ok(Settled::KeptOut),
                Some(existing) => {
                    let settled = self.update(execution, place, existing, cx).await?;
                    if let Some(settled) = settled {
                        return Ok(settled);
                    }
                }
                None => {
                    let inserted = insert(&place.target, &arbiters, self.own, cx).await?;
                    if let Some(tid) = inserted {
                        return Ok(Settled::Inserted(tid));
                    }
                }
            }
            cx.env.cancel.check()?;
        }
    }

    fn leaf(&self) -> Option<(&Routing, usize, &Leaf)> {
        let routing = self.node.routing.as_deref()?;
        let at = self.leaf?;
        Some((routing, at, routing.known_leaf(at)?))
    }

    /// DO UPDATE: locks the row that is in the way, whatever our snapshot says of it, and updates
    /// it. None if it is not there any more, so that the key is to be looked for again.
    async fn update(
        &self,
        execution: &mut Execution,
        place: &mut WriteTarget,
        existing: Tid,
        cx: &Context<'_>,
    ) -> Result<Option<Settled>> {
        let (node, leaf) = (self.node, self.leaf());
        let target = place.target.clone();
        let attnum = |top: u16| match leaf {
            None => Some(top),
            Some((.., leaf)) => leaf.attnum_of_top(usize::from(top) - 1),
        };
        let set = set_by(node).filter_map(attnum);
        let Some((found, old)) = lock(&target, existing, set, cx).await? else {
            return Ok(None);
        };
        let width = node.table.columns.len();
        let old_top = match leaf {
            None => Cow::Borrowed(&old[..]),
            Some((.., leaf)) => Cow::Owned(leaf.row_of_top(&old, width)),
        };
        let mut both = old_top.to_vec();
        both.push(Datum::Tid(found.tid));
        if leaf.is_some() {
            both.push(Datum::Oid(target.def().oid.0));
        }
        both.extend_from_slice(self.proposed);
        let Some(mut new) = set_over(execution, cx, &old_top, &both).await? else {
            return Ok(Some(Settled::KeptOut));
        };
        let columns: Option<Vec<u16>> = match (&target.triggers, leaf) {
            (Some(_), Some(_)) => Some(
                (1..=width as u16)
                    .map(|top| attnum(top).unwrap_or(0))
                    .collect(),
            ),
            _ => None,
        };
        let updated = Updated {
            set: self.set,
            columns: columns.as_deref(),
        };
        let triggers = target.locks_first(fires::UPDATE);
        let mut own = None;
        match leaf {
            None => {
                if let Some(triggers) = triggers
                    && !triggers.before_update(&old, &mut new, updated, cx).await?
                {
                    return Ok(Some(Settled::KeptOut));
                }
                let of = RowOf::Statement.updated();
                complete(execution, cx, target.def(), of, &mut new).await?;
            }
            Some((routing, at, leaf)) => {
                if let Some(triggers) = triggers {
                    let mut own = leaf.row(&new);
                    if !triggers.before_update(&old, &mut own, updated, cx).await? {
                        return Ok(Some(Settled::KeptOut));
                    }
                    new = leaf.row_of_top(&own, width);
                }
                stays(execution, (routing, at), &new, cx).await?;
                let own = own.insert(leaf.row(&new));
                complete(execution, cx, &leaf.table, RowOf::Leaf(at).updated(), own).await?;
                leaf.give_computed(own, &mut new);
            }
        }
        let stored = own.as_deref().unwrap_or(&new);
        let mut turn = RowTurn::default();
        match store_update(&target, found, &old, stored, &mut turn, cx).await? {
            RowOutcome::Done(tid) => {
                check_views(execution, cx, &node.table, &new).await?;
                let versions = ((&old[..], found.tid), (stored, tid));
                place.keys.updated(versions.0, versions.1, cx).await?;
                target
                    .after_update(versions.0, versions.1, updated, cx)
                    .await?;
                self.named
                    .changed(fires::UPDATE, Some(&old_top), Some(&new))?;
                let replaced = Some((&old_top[..], found.tid));
                push_new(&mut new, (tid, target.def().oid), replaced, node, cx);
                Ok(Some(Settled::Updated(new)))
            }
            RowOutcome::SelfModified => {
                trigger::changed_by_function(&target, found, false, cx).await?;
                Err(second_time())
            }
            RowOutcome::Updated(_)
            | RowOutcome::LookAnew
            | RowOutcome::Deleted
            | RowOutcome::Busy => Ok(None),
        }
    }
}

/// 0A000 for a row that DO UPDATE would take to another leaf.
async fn stays(
    execution: &mut Execution,
    (routing, at): (&Routing, usize),
    new: &[Datum],
    cx: &Context<'_>,
) -> Result<()> {
    let found = place_of(execution, cx, new).await?;
    if leaf_or_error(found, &routing.table, routing.divisions(), new, cx.env)? == at {
        return Ok(());
    }
    Err(Error::new(
        state::FEATURE_NOT_SUPPORTED,
        "invalid ON UPDATE specification",
    )
    .detail("The result tuple would appear in a different partition than the original tuple."))
}

/// What DO UPDATE makes of the row in the way, `old`; none where its WHERE does not hold. `both`:
/// that row, its system columns, then the proposed one.
///
/// # Errors
/// 42501 where policies forbid to update it.
async fn set_over(
    execution: &mut Execution,
    cx: &Context<'_>,
    old: &[Datum],
    both: &[Datum],
) -> Result<Option<Row>> {
    let set = evaluate(execution, cx, |plan, cx| {
        let Node::Insert(node) = &plan.node else {
            return Ok(None);
        };
        let Some(update) = node.on_conflict.as_ref().and_then(|c| c.update.as_ref()) else {
            return Ok(None);
        };
        if let Some(filter) = &update.filter
            && !holds(filter, both, cx)?
        {
            return Ok(None);
        }
        let mut new = old.to_vec();
        for (attnum, expr) in &update.set {
            new[usize::from(*attnum) - 1] = eval(expr, both, cx)?;
        }
        Ok(Some(new))
    });
    let set = set.await?;
    if set.is_some() {
        policy::check_in_the_way(execution, cx, both).await?;
    }
    Ok(set)
}

/// The places of the indexes that decide about a conflict; `named`: those, none: all unique ones.
fn arbiters(target: &Target, named: &[Oid]) -> Vec<usize> {
    let is_arbiter = |index: &Index| {
        let keeps_out = index.def.unique || !index.def.terms.exclusion.is_empty();
        keeps_out && (named.is_empty() || named.contains(&index.def.oid))
    };
    let indexes = target.indexes.iter().enumerate();
    let found = indexes.filter(|(_, index)| is_arbiter(index));
    found.map(|(number, _)| number).collect()
}

/// 55000: nobody waits for who may come to have a key that is not decided yet.
#[cold]
fn is_deferrable() -> Error {
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
    Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

/// Inserts the row under a savepoint; none, and nothing done, if another got its key in first.
async fn insert(
    target: &Target,
    arbiters: &[usize],
    row: &[Datum],
    cx: &Context<'_>,
) -> Result<Option<Tid>> {
    let level = cx.txn.savepoint();
    let inserted = insert_unless(target, arbiters, row, cx).await;
    if let Ok(None) = inserted {
        cx.txn.rollback_to(level);
    }
    cx.txn.release(level);
    inserted
}

/// A live row that has the key in one of the indexes; waits for those that may come to have it.
async fn find(
    target: &Target,
    arbiters: &[usize],
    row: &[Datum],
    cx: &Context<'_>,
) -> Result<Option<Tid>> {
    let mut key = Vec::new();
    let mut tids = Vec::new();
    for &number in arbiters {
        let index = &target.indexes[number];
        if target.deferrable[number].is_some() {
            return Err(is_deferrable());
        }
        let Some(computed) = target.computed(number, row, cx).await? else {
            continue;
        };
        if !index.def.terms.exclusion.is_empty() {
            let entering = Entering {
                row,
                computed: &computed,
                tid: None,
            };
            if let Some(other) = exclusion::find(target, number, entering, cx).await? {
                must_be_seen(target, other.tid, cx).await?;
                return Ok(Some(other.tid));
            }
            continue;
        }
        key.clear();
        let any_null = index.append_key(row, &computed, &mut key)?;
        if !is_unique_for(index, any_null) {
            continue;
        }
        'again: loop {
            retry(|| index.tree.get(&key, &mut tids)).await?;
            for &tid in &tids {
                match retry(|| conflict_with(&target.table, tid, None, cx.txn)).await? {
                    Conflict::Live(found) => {
                        must_be_seen(target, found, cx).await?;
                        return Ok(Some(found));
                    }
                    Conflict::Busy(holder) => {
                        wait_for_unique(cx.txn, holder).await?;
                        continue 'again;
                    }
                    Conflict::None | Conflict::Dead => {}
                }
            }
            break;
        }
    }
    Ok(None)
}

/// REPEATABLE READ and SERIALIZABLE: 40001 if the row in the way is one that the transaction's
/// snapshot does not show.
async fn must_be_seen(target: &Target, existing: Tid, cx: &Context<'_>) -> Result<()> {
    if !cx.txn.isolation().keeps_snapshot() {
        return Ok(());
    }
    let heap = &target.table.heap;
    let mut bytes = Vec::new();
    let header = retry(|| heap.read_version(existing, &mut bytes)).await?;
    let seen = header.is_none_or(|h| cx.txn.is_mine(h.xmin) || cx.env.snapshot.visible(&h));
    if seen {
        return Ok(());
    }
    Err(too_late("update"))
}

/// Inserts the row; `None` if another got its key in first. What was written is then to be rolled
/// back.
async fn insert_unless(
    target: &Target,
    arbiters: &[usize],
    row: &[Datum],
    cx: &Context<'_>,
) -> Result<Option<Tid>> {
    let tid = store_row(target, row, cx).await?;
    let is_arbiter = |index: &Index| {
        let mut own = arbiters
            .iter()
            .map(|number| target.indexes[*number].def.oid);
        own.any(|oid| oid == index.def.oid)
    };
    let entered = enter_unless(target, row, tid, is_arbiter, cx).await?;
    Ok(entered.then_some(tid))
}

/// 21000: the command meets a row that it has made or changed itself.
fn second_time() -> Error {
    Error::new(
        state::CARDINALITY_VIOLATION,
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
    )
    .hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}

/// Locks the row in the way and reads it; `None` if it is gone or has changed, so that the key is
/// to be looked for again. `columns`: those that DO UPDATE sets, a key's among them as if it came
/// to be another.
async fn lock(
    target: &Target,
    existing: Tid,
    mut columns: impl Iterator<Item = u16>,
    cx: &Context<'_>,
) -> Result<Option<(RowRef, Row)>> {
    let heap = &target.table.heap;
    let at = RowRef {
        tid: existing,
        root: retry(|| heap.root_of(existing)).await?,
    };
    let mut turn = RowTurn::default();
    let mut bytes = Vec::new();
    let header = retry(|| heap.read_version(existing, &mut bytes)).await?;
    if header.is_some_and(|h| cx.txn.is_mine(h.xmin) && h.cmin >= cx.txn.cid()) {
        return Err(second_time());
    }
    let mode = match columns.any(|attnum| target.is_key(attnum)) {
        true => RowLockMode::Update,
        false => RowLockMode::NoKeyUpdate,
    };
    match lock_row_here(cx.txn, heap, at, mode, &mut turn).await? {
        RowOutcome::Done(()) | RowOutcome::SelfModified => {}
        // What it has become need not have the key any more. It is ours now, if it has.
        RowOutcome::Updated(_) | RowOutcome::LookAnew | RowOutcome::Deleted | RowOutcome::Busy => {
            return Ok(None);
        }
    }
    let row = read_row(target, at.tid).await?;
    Ok(row.map(|row| (at, row)))
}
