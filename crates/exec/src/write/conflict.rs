//! INSERT … ON CONFLICT.
//!
//! ```text
//! look in the arbiter indexes ── a live row has the key ──► Conflict
//!        │ nobody has                     (somebody is about to: wait for him, look again)
//!        ▼
//! insert under a savepoint ── meanwhile somebody has ──► roll back to it, look again
//!        │
//!        ▼ Inserted
//! ```

use throng_access::RowLockMode;
use throng_access::btree::Conflict;
use throng_access::{TxContext, Visibility};
use throng_buffer::retry;
use throng_sql::plan::ConflictNode;
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, lock_row_here, too_late, wait_for_unique};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, Tid};

use super::row::{conflict_with, enter_unless, is_unique_for};
use super::{Context, Target, store_row};
use crate::large;
use crate::run::Row;
use crate::table::Index;

pub enum Outcome {
    Inserted(Tid),
    /// This row has the key.
    Conflict(Tid),
}

fn arbiters(target: &Target, node: &ConflictNode) -> Result<Vec<usize>> {
    let is_arbiter = |index: &Index| {
        index.def.unique && (node.arbiters.is_empty() || node.arbiters.contains(&index.def.oid))
    };
    let mut found = Vec::new();
    let indexes = target.indexes.iter().zip(&target.deferrable);
    for (number, (index, deferrable)) in indexes.enumerate() {
        if !is_arbiter(index) {
            continue;
        }
        if deferrable.is_some() {
            let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        found.push(number);
    }
    Ok(found)
}

/// Inserts the row unless one with the same key is there.
pub async fn insert(
    target: &Target,
    node: &ConflictNode,
    row: &[Datum],
    cx: &Context<'_>,
) -> Result<Outcome> {
    let arbiters = arbiters(target, node)?;
    loop {
        if let Some(existing) = find(target, &arbiters, row, cx).await? {
            return Ok(Outcome::Conflict(existing));
        }
        let level = cx.txn.savepoint();
        match insert_unless(target, &arbiters, row, cx).await {
            Ok(Some(tid)) => {
                cx.txn.release(level);
                return Ok(Outcome::Inserted(tid));
            }
            Ok(None) => {
                cx.txn.rollback_to(level);
                cx.txn.release(level);
            }
            Err(e) => {
                cx.txn.release(level);
                return Err(e);
            }
        }
        cx.env.cancel.check()?;
    }
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
        let Some(computed) = target.computed(number, row, cx).await? else {
            continue;
        };
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

/// REPEATABLE READ and SERIALIZABLE: 40001 if the row in the way is one that the transaction's snapshot does not show.
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

/// Inserts the row; `None` if another got its key in first. What was written is then to be rolled back.
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
pub fn second_time() -> Error {
    Error::new(
        state::CARDINALITY_VIOLATION,
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
    )
    .hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}

/// Locks the row in the way and reads it; `None` if it is gone or has changed, so that the key is to be looked for again. `columns`: those that DO UPDATE sets, a key's
/// among them as if it came to be another.
pub async fn lock(
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
    if retry(|| heap.read_version(at.tid, &mut bytes))
        .await?
        .is_none()
    {
        return Ok(None);
    }
    let mut row = Row::new();
    target
        .table
        .decode(&bytes, target.def().columns.len(), &mut row)?;
    let mut fetch = large::Fetch::default();
    retry(|| target.table.fetch_external(&mut row, &mut fetch)).await?;
    Ok(Some((at, row)))
}
