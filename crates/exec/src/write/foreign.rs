//! Foreign keys: a row that points must find what it points at; a row pointed at takes its action
//! before it goes.
//!
//! | what happened | what is checked or done |
//! | --- | --- |
//! | a referencing row came or changed its key | the referenced row exists now, and is locked FOR KEY SHARE until we end |
//! | a referenced row went or changed its key | CASCADE, SET NULL, SET DEFAULT change the referencing rows; RESTRICT and NO ACTION refuse if there are any |
//!
//! Everything is looked for in what is committed now and what this transaction did, not in the
//! statement's snapshot: at once, or at the statement's end where the statement may still bring the
//! row that is pointed at or take both away (it points at its own table, writes others, or has run
//! a function). At REPEATABLE READ and SERIALIZABLE a row that is pointed at
//! must be in the transaction's snapshot besides: what the transaction cannot see it cannot point
//! at.

use std::rc::Rc;
use std::sync::Arc;

use throng_access::RowLockMode;
use throng_buffer::retry;
use throng_catalog::partition::columns_in_child;
use throng_catalog::{
    Catalog, ConstraintDef, ConstraintKind, FkAction, ForeignKey, IndexDef, TableDef,
};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, lock_row, too_late};
use throng_txn::{LockMode, Snapshot, WaitPolicy};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Tid};
use throng_values::func::range::cover;

use super::Context;
use super::cascade::{KeyChange, Pointing, Work};
use super::deferred::Due;
use super::period::{Lookup, Period};
use crate::run::Row;
use crate::table::{Index, Table};

/// Checks waiting for the statement's end before some are made early, so that a bulk load's list
/// stays short. What those leave is looked at again when there are twice as many: rows that point
/// at rows of the same statement stay to its end.
const MOST_PENDING: usize = 10_000;

/// The foreign keys around one table, for one statement.
pub struct ForeignKeys {
    table: Arc<TableDef>,
    /// This table points at others.
    outgoing: Vec<Arc<ConstraintDef>>,
    /// Which of them point at the table's own family, whose other tables the statement may write.
    within_family: Vec<bool>,
    /// Others (or itself) point at this one.
    incoming: Vec<Arc<ConstraintDef>>,
    /// The statement writes to no other table.
    alone: bool,
    /// Rows whose outgoing keys are to be checked.
    to_check: Vec<Pointing>,
    /// How many of them there are before some are checked early.
    most_pending: usize,
    /// Referenced rows that went or changed.
    departed: Vec<KeyChange>,
}

pub(super) fn places(columns: &[u16]) -> Vec<usize> {
    columns
        .iter()
        .map(|attnum| usize::from(*attnum) - 1)
        .collect()
}

pub(super) fn key_of(row: &[Datum], columns: &[u16]) -> Row {
    places(columns)
        .into_iter()
        .map(|at| row[at].clone())
        .collect()
}

pub(super) fn foreign(constraint: &ConstraintDef) -> Result<&ForeignKey> {
    constraint
        .foreign_key()
        .ok_or_else(|| Error::internal("a constraint that is no foreign key"))
}

impl ForeignKeys {
    pub fn new(table: &Arc<TableDef>, cx: &Context<'_>) -> Result<ForeignKeys> {
        let catalog = cx.env.catalog;
        let is_foreign =
            |c: &&Arc<ConstraintDef>| c.foreign_key().is_some() && c.deferral.is_enforced();
        let is_on = |c: &Arc<ConstraintDef>| !table.keys_off.contains(&c.oid);
        let outgoing = catalog.constraints_of(table.oid).iter().filter(is_foreign);
        let mut outgoing: Vec<_> = outgoing.filter(|c| is_on(c)).cloned().collect();
        // The first that is violated is told, and the oldest is the first.
        outgoing.sort_by_key(|c| c.oid);
        let mut incoming = incoming(table, catalog);
        incoming.retain(is_on);
        let has_keys = !outgoing.is_empty() || !incoming.is_empty();
        if has_keys && super::trigger::replays(&cx.env) {
            // Its origin has looked at what is replayed here.
            outgoing.clear();
            incoming.clear();
        }
        let is_within = |c: &Arc<ConstraintDef>| {
            let key = c.foreign_key();
            key.is_some_and(|key| catalog.are_one_family(table.oid, key.ref_table))
        };
        Ok(ForeignKeys {
            table: table.clone(),
            within_family: outgoing.iter().map(is_within).collect(),
            outgoing,
            incoming,
            alone: true,
            to_check: Vec::new(),
            most_pending: MOST_PENDING,
            departed: Vec::new(),
        })
    }

    /// `alone`: the statement writes to no other table; else it may bring what this table's rows
    /// point at.
    pub fn beside_others(self, alone: bool) -> ForeignKeys {
        ForeignKeys { alone, ..self }
    }

    /// Whether checks of rows that come wait for the transaction's end: then each row is to be told
    /// of.
    pub fn waits(&self, cx: &Context<'_>) -> bool {
        self.outgoing.iter().any(|c| cx.deferred.waits(c))
    }

    pub async fn inserted(&mut self, row: &[Datum], tid: Tid, cx: &Context<'_>) -> Result<()> {
        for at in 0..self.outgoing.len() {
            self.note(at, row, tid, cx).await?;
        }
        Ok(())
    }

    async fn note(&mut self, at: usize, row: &[Datum], tid: Tid, cx: &Context<'_>) -> Result<()> {
        if cx.deferred.waits(&self.outgoing[at]) {
            cx.deferred.add(&self.outgoing[at], tid, Due::Points);
            return Ok(());
        }
        // What another table holds cannot be brought by this statement, unless by a function that
        // it has called: no need to wait for its end.
        let others = !self.alone || cx.txn.has_run_others();
        if !others && !self.within_family[at] {
            return check(&self.table, &self.outgoing[at], row, cx).await;
        }
        self.to_check.push(Pointing {
            table: self.table.clone(),
            constraint: self.outgoing[at].clone(),
            row: row.to_vec(),
            tid,
        });
        if self.to_check.len() > self.most_pending {
            self.check_early(cx).await?;
        }
        Ok(())
    }

    /// Checks what can be checked by now.
    async fn check_early(&mut self, cx: &Context<'_>) -> Result<()> {
        for pointing in std::mem::take(&mut self.to_check) {
            let Pointing {
                table,
                constraint,
                row,
                ..
            } = &pointing;
            match check(table, constraint, row, cx).await {
                Ok(()) => {}
                Err(e) if e.code() == state::FOREIGN_KEY_VIOLATION => self.to_check.push(pointing),
                Err(e) => return Err(e),
            }
        }
        self.most_pending = MOST_PENDING.max(2 * self.to_check.len());
        Ok(())
    }

    /// The row as it was and as it is, each with its version's place.
    pub async fn updated(
        &mut self,
        (old, old_tid): (&[Datum], Tid),
        (new, new_tid): (&[Datum], Tid),
        cx: &Context<'_>,
    ) -> Result<()> {
        for at in 0..self.outgoing.len() {
            let columns = &foreign(&self.outgoing[at])?.columns;
            if key_of(old, columns) != key_of(new, columns) {
                self.note(at, new, new_tid, cx).await?;
            }
        }
        for at in 0..self.incoming.len() {
            self.departs(at, (old, old_tid), new, cx)?;
        }
        Ok(())
    }

    /// A row is in another partition now: to who points at a table above this one it has another
    /// key, if that is another; who points at this very table has lost it. `new`: as it would be
    /// here.
    pub fn moved(
        &mut self,
        (old, old_tid): (&[Datum], Tid),
        new: &[Datum],
        cx: &Context<'_>,
    ) -> Result<()> {
        let own = cx.env.catalog.referencing(self.table.oid);
        for at in 0..self.incoming.len() {
            let constraint = self.incoming[at].oid;
            match own.iter().any(|c| c.oid == constraint) {
                true => self.goes(at, old, old_tid, cx)?,
                false => self.departs(at, (old, old_tid), new, cx)?,
            }
        }
        Ok(())
    }

    fn departs(
        &mut self,
        at: usize,
        (old, old_tid): (&[Datum], Tid),
        new: &[Datum],
        cx: &Context<'_>,
    ) -> Result<()> {
        let constraint = &self.incoming[at];
        let columns = &foreign(constraint)?.ref_columns;
        if key_of(old, columns) == key_of(new, columns) {
            return Ok(());
        }
        match waits_for_nobody(constraint, Due::Updated, cx)? {
            true => cx.deferred.add(constraint, old_tid, Due::Updated),
            false => self.departs_now(at, old, Some(new)),
        }
        Ok(())
    }

    /// Whether others point at the table.
    pub fn is_referenced(&self) -> bool {
        !self.incoming.is_empty()
    }

    pub async fn deleted(&mut self, old: &[Datum], tid: Tid, cx: &Context<'_>) -> Result<()> {
        for at in 0..self.incoming.len() {
            self.goes(at, old, tid, cx)?;
        }
        Ok(())
    }

    fn goes(&mut self, at: usize, old: &[Datum], tid: Tid, cx: &Context<'_>) -> Result<()> {
        let constraint = &self.incoming[at];
        match waits_for_nobody(constraint, Due::Deleted, cx)? {
            true => cx.deferred.add(constraint, tid, Due::Deleted),
            false => self.departs_now(at, old, None),
        }
        Ok(())
    }

    fn departs_now(&mut self, at: usize, old: &[Datum], new: Option<&[Datum]>) {
        self.departed.push(KeyChange {
            table: self.table.clone(),
            constraint: self.incoming[at].clone(),
            old: old.to_vec(),
            new: new.map(<[Datum]>::to_vec),
        });
    }

    /// What is to be done at the statement's end is left to the queue.
    pub(super) fn leave_to(self, work: &mut Work) {
        work.departed.extend(self.departed);
        work.pointing.extend(self.to_check);
    }
}

/// Whether it is only checked that nobody points at what goes, and only at the transaction's end.
/// Other actions are never put off.
fn waits_for_nobody(constraint: &ConstraintDef, due: Due, cx: &Context<'_>) -> Result<bool> {
    let fk = foreign(constraint)?;
    let action = match due {
        Due::Updated => fk.on_update,
        _ => fk.on_delete,
    };
    Ok(action == FkAction::NoAction && cx.deferred.waits(constraint))
}

/// 23503 if rows point at what `old` was, unless another row has come to have its key.
pub async fn check_departed(
    table: &Arc<TableDef>,
    constraint: &Arc<ConstraintDef>,
    old: &[Datum],
    is_update: bool,
    cx: &Context<'_>,
) -> Result<()> {
    // As a key that points at this table, which may be a partition of what the constraint names.
    let incoming = incoming(table, cx.env.catalog);
    let Some(own) = incoming.into_iter().find(|c| c.oid == constraint.oid) else {
        return Ok(());
    };
    let departed = KeyChange {
        table: table.clone(),
        constraint: own,
        old: old.to_vec(),
        new: is_update.then(|| old.to_vec()),
    };
    Work::of(departed, cx).await
}

/// The values by which a row points at another.
pub fn key(constraint: &ConstraintDef, row: &[Datum]) -> Result<Row> {
    Ok(key_of(row, &foreign(constraint)?.columns))
}

/// As the check of a row that was written, for one that was there: the referenced table is locked,
/// no row need be.
pub async fn check_exists(
    table: &TableDef,
    constraint: &ConstraintDef,
    row: &[Datum],
    cx: &Context<'_>,
) -> Result<()> {
    find_referenced(table, constraint, row, false, cx).await
}

/// 23503 unless the row that `row` points at exists; it is locked so that it stays.
pub async fn check(
    table: &TableDef,
    constraint: &ConstraintDef,
    row: &[Datum],
    cx: &Context<'_>,
) -> Result<()> {
    find_referenced(table, constraint, row, true, cx).await
}

/// Whether a row points at one of these leaves of what its constraint names.
pub async fn points_into(
    constraint: &ConstraintDef,
    row: &[Datum],
    leaves: &[Oid],
    cx: &Context<'_>,
) -> Result<bool> {
    let fk = foreign(constraint)?;
    let key = key_of(row, &fk.columns);
    let catalog = cx.env.catalog;
    let (Some(referenced), Some(index)) =
        (catalog.table(fk.ref_table), catalog.index(fk.ref_index))
    else {
        return Ok(false);
    };
    if key.iter().any(Datum::is_null) {
        return Ok(false);
    }
    for (leaf, index, ref_columns) in places_of_key(referenced, index, fk, catalog) {
        if !leaves.contains(&leaf.oid) {
            continue;
        }
        let sought = WantedKey::new(&key, leaf, index, &ref_columns, cx)?;
        if fk.period {
            let period = Period {
                table: &sought.target,
                index: &sought.index,
                values: &sought.values,
            };
            let how = Lookup {
                lock: false,
                fixed: false,
            };
            let mut pieces = Vec::new();
            period.gather(how, &mut pieces, cx).await?;
            match pieces.is_empty() {
                true => continue,
                false => return Ok(true),
            }
        }
        let snapshot = cx.txn.latest_snapshot();
        let found = find_by_key(&sought.target, &sought.index, &sought.bytes, &snapshot);
        if found.await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// 23503: a partition cannot go that a row points into.
pub fn partition_goes(
    partition: &TableDef,
    constraint: &ConstraintDef,
    row: &[Datum],
    cx: &Context<'_>,
) -> Result<Error> {
    let catalog = cx.env.catalog;
    let fk = foreign(constraint)?;
    let (name, by) = named(constraint, partition.oid, catalog);
    let gone = || Error::internal("a foreign key of a table that is gone");
    let (by, referencing) = (
        by.ok_or_else(gone)?,
        catalog.table(constraint.table).ok_or_else(gone)?,
    );
    let message = format!(
        "removing partition \"{}\" violates foreign key constraint \"{name}\"",
        partition.name
    );
    let key = super::row::shown_key(referencing, &places(&fk.columns), row, cx.env);
    let key = key.map_or_else(String::new, |key| format!(" {key}"));
    let error = Error::new(state::FOREIGN_KEY_VIOLATION, message)
        .detail(format!(
            "Key{key} is still referenced from table \"{}\".",
            by.name
        ))
        .constraint(&name);
    Ok(super::row::about(error, by, catalog))
}

/// A constraint as messages about a referenced row name it, and the table it is of: a partition of
/// what it points at counts as pointed at by a constraint of its own, which PostgreSQL names by
/// number.
pub fn named<'c>(
    constraint: &'c ConstraintDef,
    leaf: Oid,
    catalog: &'c Catalog,
) -> (String, Option<&'c Arc<TableDef>>) {
    let mut whole = catalog.constraint(constraint.oid).map_or(constraint, |c| c);
    while let Some(above) = whole.lineage.parent.and_then(|oid| catalog.constraint(oid)) {
        whole = above;
    }
    let of = catalog.table(whole.table);
    let number = whole.foreign_key().and_then(|fk| {
        parts_below(fk.ref_table, catalog)
            .iter()
            .position(|p| *p == leaf)
    });
    match number {
        Some(at) => (format!("{}_{}", whole.name, at + 1), of),
        None => (whole.name.clone(), of),
    }
}

/// The partitions below a table, each followed by its own.
fn parts_below(table: Oid, catalog: &Catalog) -> Vec<Oid> {
    let mut found = Vec::new();
    if catalog.table(table).is_some_and(|t| t.is_partitioned()) {
        let detaching = catalog.detaching_of(table).map(|t| t.oid);
        let children = catalog.children_of(table).iter().copied();
        let mut children: Vec<Oid> = children.chain(detaching).collect();
        children.sort();
        children.dedup();
        for child in children {
            found.push(child);
            found.extend(parts_below(child, catalog));
        }
    }
    found
}

async fn find_referenced(
    table: &TableDef,
    constraint: &ConstraintDef,
    row: &[Datum],
    lock: bool,
    cx: &Context<'_>,
) -> Result<()> {
    let fk = foreign(constraint)?;
    let key = key_of(row, &fk.columns);
    let nulls = key.iter().filter(|v| v.is_null()).count();
    if nulls > 0 {
        if fk.match_full && nulls < key.len() {
            let message = format!(
                "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                table.name, constraint.name
            );
            let error = Error::new(state::FOREIGN_KEY_VIOLATION, message)
                .detail("MATCH FULL does not allow mixing of null and nonnull key values.")
                .constraint(&constraint.name);
            return Err(super::row::about(error, table, cx.env.catalog));
        }
        return Ok(());
    }
    let catalog = cx.env.catalog;
    let referenced = catalog
        .table(fk.ref_table)
        .ok_or_else(|| Error::internal("a foreign key to a table that is gone"))?;
    let index = catalog
        .index(fk.ref_index)
        .ok_or_else(|| Error::internal("a foreign key to an index that is gone"))?;
    cx.txn
        .lock_relation(referenced.oid, LockMode::RowShare)
        .await?;
    let mut pieces = Vec::new();
    for (leaf, index, ref_columns) in places_of_key(referenced, index, fk, catalog) {
        if leaf.oid != referenced.oid {
            cx.txn.lock_relation(leaf.oid, LockMode::RowShare).await?;
        }
        let WantedKey {
            target,
            index,
            values,
            bytes,
        } = WantedKey::new(&key, leaf, index, &ref_columns, cx)?;
        let how = Lookup {
            lock,
            // PostgreSQL finds a partition's rows by what is committed, whatever the transaction
            // sees.
            fixed: leaf.oid == referenced.oid && cx.txn.isolation().keeps_snapshot(),
        };
        if fk.period {
            let period = Period {
                table: &target,
                index: &index,
                values: &values,
            };
            period.gather(how, &mut pieces, cx).await?;
        } else if lock_by_key(&target, &index, &bytes, &values, how, cx).await? {
            return Ok(());
        }
    }
    if let Some(period) = key.last()
        && !pieces.is_empty()
        && cover(&pieces, period)?
    {
        return Ok(());
    }
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        table.name, constraint.name
    );
    let key = super::row::shown_key(table, &places(&fk.columns), row, cx.env);
    let key = key.map_or_else(String::new, |key| format!(" {key}"));
    let error = Error::new(state::FOREIGN_KEY_VIOLATION, message)
        .detail(format!(
            "Key{key} is not present in table \"{}\".",
            referenced.name
        ))
        .constraint(&constraint.name);
    Err(super::row::about(error, table, cx.env.catalog))
}

/// A key as it is looked for in a leaf of what is referenced.
struct WantedKey {
    target: Rc<Table>,
    index: Rc<Index>,
    /// A row of the leaf that has nothing but the key.
    values: Row,
    bytes: Vec<u8>,
}

impl WantedKey {
    fn new(
        key: &[Datum],
        leaf: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        ref_columns: &[u16],
        cx: &Context<'_>,
    ) -> Result<WantedKey> {
        let target = Table::of(leaf, cx.env.store, &cx.env.eval)?;
        let index = Index::of(index, leaf, cx.env.store);
        // The index's columns may stand in another order than the constraint's.
        let mut values = vec![Datum::Null; leaf.columns.len()];
        for (value, attnum) in key.iter().zip(ref_columns) {
            values[usize::from(*attnum) - 1] = value.clone();
        }
        let mut bytes = Vec::new();
        index.key(&values, &mut bytes)?;
        Ok(WantedKey {
            target,
            index,
            values,
            bytes,
        })
    }
}

/// The tables that may have a referenced key, each with its index and the key's columns in it: of a
/// partitioned table its leaves.
fn places_of_key<'c>(
    referenced: &'c Arc<TableDef>,
    index: &'c Arc<IndexDef>,
    fk: &ForeignKey,
    catalog: &'c Catalog,
) -> Vec<(&'c Arc<TableDef>, &'c Arc<IndexDef>, Vec<u16>)> {
    if !referenced.is_partitioned() {
        return vec![(referenced, index, fk.ref_columns.clone())];
    }
    let mut found = Vec::new();
    for oid in catalog.descendants(referenced.oid) {
        let Some(leaf) = catalog.table(oid).filter(|t| !t.is_partitioned()) else {
            continue;
        };
        // What is being detached is nobody's to point at, even for whom it is still a partition.
        let mut above = catalog.ancestors(leaf);
        above.push(oid);
        if above.iter().any(|oid| catalog.detaching().contains(oid)) {
            continue;
        }
        if let Some(part) = part_of_index(leaf, index.oid, catalog) {
            let columns = mapped(&fk.ref_columns, referenced, leaf);
            found.push((leaf, part, columns));
        }
    }
    found
}

/// A leaf's part of an index of a partitioned table above it.
fn part_of_index<'c>(
    leaf: &TableDef,
    whole: Oid,
    catalog: &'c Catalog,
) -> Option<&'c Arc<IndexDef>> {
    catalog.indexes_of(leaf.oid).iter().find(|index| {
        let mut at = Some(index.oid);
        while let Some(oid) = at.filter(|oid| *oid != whole) {
            at = catalog.index(oid).and_then(|i| i.parent);
        }
        at.is_some()
    })
}

/// Columns of a table as those of one of its partitions.
fn mapped(columns: &[u16], table: &TableDef, leaf: &TableDef) -> Vec<u16> {
    let own = columns_in_child(table, leaf);
    columns
        .iter()
        .map(|attnum| own[usize::from(*attnum) - 1])
        .collect()
}

/// The foreign keys that point at a table or at partitioned tables it is a partition of, as keys
/// that point at it. A key goes to one partition only, so that nobody else can have one that it
/// had.
pub(super) fn incoming(table: &TableDef, catalog: &Catalog) -> Vec<Arc<ConstraintDef>> {
    // Keys of partitions are looked at with those of their tables.
    let whole = |c: &&Arc<ConstraintDef>| c.lineage.parent.is_none() && c.deferral.is_enforced();
    let mut found: Vec<_> = catalog
        .referencing(table.oid)
        .iter()
        .filter(whole)
        .cloned()
        .collect();
    for ancestor in catalog.ancestors(table) {
        let Some(above) = catalog.table(ancestor) else {
            continue;
        };
        for constraint in catalog.referencing(ancestor).iter().filter(whole) {
            let Some(fk) = constraint.foreign_key() else {
                continue;
            };
            let Some(index) = part_of_index(table, fk.ref_index, catalog) else {
                continue;
            };
            found.push(Arc::new(ConstraintDef {
                kind: ConstraintKind::ForeignKey(ForeignKey {
                    ref_table: table.oid,
                    ref_columns: mapped(&fk.ref_columns, above, table),
                    ref_index: index.oid,
                    ..fk.clone()
                }),
                ..(**constraint).clone()
            }));
        }
    }
    found
}

/// The row with this key that the snapshot shows.
pub(super) async fn find_by_key(
    table: &Table,
    index: &Index,
    key: &[u8],
    snapshot: &Snapshot,
) -> Result<Option<RowRef>> {
    let mut tids = Vec::new();
    let mut bytes = Vec::new();
    retry(|| index.tree.get(key, &mut tids)).await?;
    for root in tids.into_iter().rev() {
        if let Some(tid) = retry(|| table.heap.fetch(root, snapshot, &mut bytes)).await? {
            return Ok(Some(RowRef { tid, root }));
        }
    }
    Ok(None)
}

/// Finds, and perhaps locks, the row with this key; false if there is none.
async fn lock_by_key(
    table: &Table,
    index: &Index,
    key: &[u8],
    values: &[Datum],
    Lookup { lock, fixed }: Lookup,
    cx: &Context<'_>,
) -> Result<bool> {
    if fixed
        && find_by_key(table, index, key, &cx.txn.snapshot())
            .await?
            .is_none()
    {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    loop {
        let snapshot = cx.txn.latest_snapshot();
        let Some(at) = find_by_key(table, index, key, &snapshot).await? else {
            if fixed {
                return Err(too_late("update"));
            }
            return Ok(false);
        };
        if !lock {
            return Ok(true);
        }
        let mode = RowLockMode::KeyShare;
        let turn = &mut RowTurn::default();
        match lock_row(cx.txn, &table.heap, at, mode, WaitPolicy::Block, turn).await? {
            RowOutcome::Done(()) => return Ok(true),
            RowOutcome::SelfModified => return Ok(false),
            // Its newest version is locked: it counts if it still has the key.
            RowOutcome::Updated(newest) => {
                let mut row = Row::new();
                if retry(|| table.heap.read_version(newest.tid, &mut bytes))
                    .await?
                    .is_some()
                {
                    table.decode(&bytes, table.def.columns.len(), &mut row)?;
                    if index.columns.iter().all(|c| row[*c] == values[*c]) {
                        return Ok(true);
                    }
                }
            }
            RowOutcome::LookAnew | RowOutcome::Deleted | RowOutcome::Busy => {}
        }
        cx.env.cancel.check()?;
    }
}
