//! Foreign keys: a row that points must find what it points at; a row pointed at takes its action before it goes.
//!
//! | what happened | what is checked or done |
//! | --- | --- |
//! | a referencing row came or changed its key | the referenced row exists now, and is locked FOR KEY SHARE until we end |
//! | a referenced row went or changed its key | CASCADE, SET NULL, SET DEFAULT change the referencing rows; RESTRICT and NO ACTION refuse if there are any |
//!
//! Everything is looked for in what is committed now and what this transaction did, not in the statement's snapshot, and at the
//! statement's end, so that one statement may bring a row and what it points at, or take both away. At REPEATABLE READ and SERIALIZABLE a row that
//! is pointed at must be in the transaction's snapshot besides: what the transaction cannot see it cannot point at.

use std::rc::Rc;
use std::sync::Arc;

use throng_access::btree::{Cursor, Direction, KeyRange};
use throng_access::{RowLockMode, TupleBatch};
use throng_buffer::{Ring, retry};
use throng_sql::bind;
use throng_sql::catalog::partition::columns_in_child;
use throng_sql::catalog::{
    Catalog, ColumnDef, ConstraintDef, ConstraintKind, FkAction, ForeignKey, IndexDef, TableDef,
};
use throng_sql::expr::Expr;
use throng_sql::func::compare::comparator;
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, delete_row, lock_row, too_late};
use throng_txn::{LockMode, Snapshot, WaitPolicy};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Tid};

use super::deferred::Due;
use super::{Compute, Context, Target, store_update};
use crate::large;
use crate::run::Row;
use crate::table::{Index, Table};

/// Checks waiting for the statement's end before some are made early, so that a bulk load's list stays short.
const MOST_PENDING: usize = 10_000;

/// The foreign keys around one table, for one statement.
pub struct ForeignKeys {
    table: Arc<TableDef>,
    /// This table points at others.
    outgoing: Vec<Arc<ConstraintDef>>,
    /// Others (or itself) point at this one.
    incoming: Vec<Arc<ConstraintDef>>,
    /// The statement writes to no other table.
    alone: bool,
    /// Rows whose outgoing keys are to be checked.
    to_check: Vec<(usize, Row)>,
    /// Referenced rows that went or changed: the constraint, the old row, and the new one if there is one.
    departed: Vec<(usize, Row, Option<Row>)>,
}

fn places(columns: &[u16]) -> Vec<usize> {
    columns
        .iter()
        .map(|attnum| usize::from(*attnum) - 1)
        .collect()
}

fn key_of(row: &[Datum], columns: &[u16]) -> Row {
    places(columns)
        .into_iter()
        .map(|at| row[at].clone())
        .collect()
}

fn foreign(constraint: &ConstraintDef) -> Result<&ForeignKey> {
    constraint
        .foreign_key()
        .ok_or_else(|| Error::internal("a constraint that is no foreign key"))
}

impl ForeignKeys {
    pub fn new(table: &Arc<TableDef>, cx: &Context<'_>) -> Result<ForeignKeys> {
        let catalog = cx.env.catalog;
        let outgoing = catalog
            .constraints_of(table.oid)
            .iter()
            .filter(|c| c.foreign_key().is_some())
            .cloned()
            .collect();
        Ok(ForeignKeys {
            table: table.clone(),
            outgoing,
            incoming: incoming(table, catalog),
            alone: true,
            to_check: Vec::new(),
            departed: Vec::new(),
        })
    }

    /// `alone`: the statement writes to no other table; else it may bring what this table's rows point at.
    pub fn beside_others(self, alone: bool) -> ForeignKeys {
        ForeignKeys { alone, ..self }
    }

    /// Whether checks of rows that come wait for the transaction's end: then each row is to be told of.
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
        let fk = foreign(&self.outgoing[at])?;
        if cx.deferred.waits(&self.outgoing[at]) {
            cx.deferred.add(&self.outgoing[at], tid, Due::Points);
            return Ok(());
        }
        // What another table holds cannot be brought by this statement: no need to wait for its end.
        if self.alone && fk.ref_table != self.table.oid {
            return check(&self.table, &self.outgoing[at], row, cx).await;
        }
        self.to_check.push((at, row.to_vec()));
        if self.to_check.len() > MOST_PENDING {
            let pending = std::mem::take(&mut self.to_check);
            for (at, row) in pending {
                if check(&self.table, &self.outgoing[at], &row, cx)
                    .await
                    .is_err()
                {
                    self.to_check.push((at, row));
                }
            }
        }
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
        for (at, constraint) in self.incoming.iter().enumerate() {
            let columns = &foreign(constraint)?.ref_columns;
            if key_of(old, columns) == key_of(new, columns) {
                continue;
            }
            match waits_for_nobody(constraint, Due::Updated, cx)? {
                true => cx.deferred.add(constraint, old_tid, Due::Updated),
                false => self.departed.push((at, old.to_vec(), Some(new.to_vec()))),
            }
        }
        Ok(())
    }

    /// A row that is in another partition now, as it was and as it would be here: to those who pointed at it, it was updated.
    pub fn moved(&mut self, old: &[Datum], new: &[Datum]) -> Result<()> {
        for (at, constraint) in self.incoming.iter().enumerate() {
            let columns = &foreign(constraint)?.ref_columns;
            if key_of(old, columns) != key_of(new, columns) {
                self.departed.push((at, old.to_vec(), Some(new.to_vec())));
            }
        }
        Ok(())
    }

    /// Whether others point at the table.
    pub fn is_referenced(&self) -> bool {
        !self.incoming.is_empty()
    }

    pub async fn deleted(&mut self, old: &[Datum], tid: Tid, cx: &Context<'_>) -> Result<()> {
        for (at, constraint) in self.incoming.iter().enumerate() {
            match waits_for_nobody(constraint, Due::Deleted, cx)? {
                true => cx.deferred.add(constraint, tid, Due::Deleted),
                false => self.departed.push((at, old.to_vec(), None)),
            }
        }
        Ok(())
    }

    /// The statement has changed its rows: actions, then the checks that were put off.
    pub async fn finish(mut self, cx: &Context<'_>) -> Result<()> {
        if self.departed.is_empty() && self.to_check.is_empty() {
            return Ok(());
        }
        // What this statement did is to be seen by the looks that follow.
        cx.txn.next_command()?;
        for (at, old, new) in std::mem::take(&mut self.departed) {
            act(&self.table, &self.incoming[at], &old, new.as_deref(), cx).await?;
        }
        cx.txn.next_command()?;
        for (at, row) in self.to_check {
            check(&self.table, &self.outgoing[at], &row, cx).await?;
        }
        Ok(())
    }
}

/// Whether it is only checked that nobody points at what goes, and only at the transaction's end. Other actions are never put off.
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
    act(table, constraint, old, is_update.then_some(old), cx).await
}

/// The values by which a row points at another.
pub fn key(constraint: &ConstraintDef, row: &[Datum]) -> Result<Row> {
    Ok(key_of(row, &foreign(constraint)?.columns))
}

/// As the check of a row that was written, for one that was there: the referenced table is locked, no row need be.
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
    for (leaf, index, ref_columns) in places_of_key(referenced, index, fk, catalog) {
        if leaf.oid != referenced.oid {
            cx.txn.lock_relation(leaf.oid, LockMode::RowShare).await?;
        }
        let target = Table::of(leaf, cx.env.store, &cx.env.eval)?;
        let index = Index::of(index, leaf, cx.env.store);
        // The index's columns may stand in another order than the constraint's.
        let mut values = vec![Datum::Null; leaf.columns.len()];
        for (value, attnum) in key.iter().zip(&ref_columns) {
            values[usize::from(*attnum) - 1] = value.clone();
        }
        let mut bytes = Vec::new();
        index.key(&values, &mut bytes)?;
        if lock_by_key(&target, &index, &bytes, &values, lock, cx).await? {
            return Ok(());
        }
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

/// The tables that may have a referenced key, each with its index and the key's columns in it: of a partitioned table its
/// leaves.
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

/// The foreign keys that point at a table or at partitioned tables it is a partition of, as keys that point at it. A key goes to
/// one partition only, so that nobody else can have one that it had.
fn incoming(table: &TableDef, catalog: &Catalog) -> Vec<Arc<ConstraintDef>> {
    let mut found = catalog.referencing(table.oid).to_vec();
    for ancestor in catalog.ancestors(table) {
        let Some(above) = catalog.table(ancestor) else {
            continue;
        };
        for constraint in catalog.referencing(ancestor) {
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
async fn find_by_key(
    table: &Table,
    index: &Index,
    key: &[u8],
    snapshot: &Snapshot,
) -> Result<Option<RowRef>> {
    let mut tids = Vec::new();
    let mut bytes = Vec::new();
    retry(|| index.tree.get(key, &mut tids)).await?;
    for root in tids {
        if let Some(tid) = retry(|| table.heap.fetch(root, snapshot, &mut bytes)).await? {
            return Ok(Some(RowRef { tid, root }));
        }
    }
    Ok(None)
}

/// Finds the row with this key and, with `lock`, locks it FOR KEY SHARE; false if there is none.
async fn lock_by_key(
    table: &Table,
    index: &Index,
    key: &[u8],
    values: &[Datum],
    lock: bool,
    cx: &Context<'_>,
) -> Result<bool> {
    let fixed = cx.txn.isolation().keeps_snapshot();
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
                return Err(too_late("delete"));
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
            RowOutcome::Deleted | RowOutcome::Busy => {}
        }
        cx.env.cancel.check()?;
    }
}

/// What a referenced row's departure does to the rows that point at it.
fn act<'a>(
    table: &'a Arc<TableDef>,
    constraint: &'a Arc<ConstraintDef>,
    old: &'a [Datum],
    new: Option<&'a [Datum]>,
    cx: &'a Context<'_>,
) -> std::pin::Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
    // Boxed: a cascade leads back here.
    Box::pin(async move {
        let fk = foreign(constraint)?;
        let key = key_of(old, &fk.ref_columns);
        if key.iter().any(Datum::is_null) {
            return Ok(());
        }
        // The key may have come back in another row: then nobody is left pointing at nothing.
        let action = if new.is_some() {
            fk.on_update
        } else {
            fk.on_delete
        };
        let referencing = cx
            .env
            .catalog
            .table(constraint.table)
            .ok_or_else(|| Error::internal("a foreign key of a table that is gone"))?;
        cx.txn
            .lock_relation(referencing.oid, LockMode::RowExclusive)
            .await?;
        let target = Target::of(referencing, cx)?;
        let mut rows = Matching::new(&target, fk, &key);
        let mut keys = ForeignKeys::new(referencing, cx)?;
        let mut computed = Computed::of(referencing, cx)?;
        while let Some((at, row)) = rows.next(cx).await? {
            match action {
                FkAction::NoAction if replaced(table, fk, &key, cx).await? => return Ok(()),
                FkAction::NoAction | FkAction::Restrict => {
                    return Err(still_referenced(
                        table,
                        constraint,
                        referencing,
                        fk,
                        old,
                        action,
                        cx,
                    ));
                }
                FkAction::Cascade if new.is_none() => {
                    let turn = &mut RowTurn::default();
                    match delete_row(cx.txn, &target.table.heap, at, turn).await? {
                        RowOutcome::Done(()) => keys.deleted(&row, at.tid, cx).await?,
                        RowOutcome::Updated(_) => rows.again(),
                        _ => {}
                    }
                }
                FkAction::Cascade | FkAction::SetNull | FkAction::SetDefault => {
                    let mut changed = row.clone();
                    for (place, attnum) in places(&fk.columns).into_iter().zip(&fk.ref_columns) {
                        changed[place] = match (action, new) {
                            (FkAction::Cascade, Some(new)) => new[usize::from(*attnum) - 1].clone(),
                            (FkAction::SetDefault, _) => default_of(referencing, place, cx).await?,
                            _ => Datum::Null,
                        };
                    }
                    computed.complete(&mut changed, cx).await?;
                    super::row::check_not_null(referencing, &changed, cx.env)?;
                    stays_in_partition(referencing, &changed, cx).await?;
                    let turn = &mut RowTurn::default();
                    match store_update(&target, at, &row, &changed, turn, cx).await? {
                        RowOutcome::Done(tid) => {
                            keys.updated((&row, at.tid), (&changed, tid), cx).await?;
                        }
                        RowOutcome::Updated(_) => rows.again(),
                        _ => {}
                    }
                }
            }
        }
        keys.finish(cx).await
    })
}

/// 0A000 for a row that a foreign key's action would take to another partition.
async fn stays_in_partition(table: &Arc<TableDef>, row: &[Datum], cx: &Context<'_>) -> Result<()> {
    if table.bound.is_none() {
        return Ok(());
    }
    let mut fit = super::partition::Fit::of(table, table.oid, cx.env.catalog, cx.env.eval)?;
    if fit.takes(row, cx.env).await? {
        return Ok(());
    }
    Err(Error::unsupported(
        "a foreign key's action that moves a row to another partition",
    ))
}

/// Whether another row of the referenced table has the key now.
async fn replaced(
    table: &Arc<TableDef>,
    fk: &ForeignKey,
    key: &[Datum],
    cx: &Context<'_>,
) -> Result<bool> {
    let Some(index) = cx.env.catalog.index(fk.ref_index) else {
        return Ok(false);
    };
    let target = Table::of(table, cx.env.store, &cx.env.eval)?;
    let index = Index::of(index, table, cx.env.store);
    let mut values = vec![Datum::Null; table.columns.len()];
    for (value, attnum) in key.iter().zip(&fk.ref_columns) {
        values[usize::from(*attnum) - 1] = value.clone();
    }
    let mut bytes = Vec::new();
    index.key(&values, &mut bytes)?;
    let found = find_by_key(&target, &index, &bytes, &cx.txn.latest_snapshot()).await?;
    Ok(found.is_some())
}

fn still_referenced(
    table: &TableDef,
    constraint: &ConstraintDef,
    referencing: &TableDef,
    fk: &ForeignKey,
    old: &[Datum],
    action: FkAction,
    cx: &Context<'_>,
) -> Error {
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
        table.name, constraint.name, referencing.name
    );
    let (code, message) = match action {
        FkAction::Restrict => (
            state::RESTRICT_VIOLATION,
            message.replacen(
                "violates foreign",
                "violates RESTRICT setting of foreign",
                1,
            ),
        ),
        _ => (state::FOREIGN_KEY_VIOLATION, message),
    };
    let key = super::row::shown_key(table, &places(&fk.ref_columns), old, cx.env);
    let key = key.map_or_else(String::new, |key| format!(" {key}"));
    let verb = if action == FkAction::Restrict {
        "is"
    } else {
        "is still"
    };
    let error = Error::new(code, message)
        .detail(format!(
            "Key{key} {verb} referenced from table \"{}\".",
            referencing.name
        ))
        .constraint(&constraint.name);
    super::row::about(error, referencing, cx.env.catalog)
}

/// What a table's definition is bound in.
fn bind_context<'a>(search_path: &'a [Oid], cx: &Context<'a>) -> bind::BindContext<'a> {
    bind::BindContext {
        catalog: cx.env.catalog,
        search_path,
        creation_schema: None,
        temporary_schema: None,
        user: Oid::NONE,
        params: &[],
        eval: cx.env.eval,
        prepared: &|_| None,
    }
}

/// A column's default, for SET DEFAULT.
async fn default_of(def: &TableDef, at: usize, cx: &Context<'_>) -> Result<Datum> {
    let column = &def.columns[at];
    let Some(text) = &column.default else {
        return Ok(Datum::Null);
    };
    let search_path = cx.env.catalog.search_path(&[], "", None);
    let expr = bind::row_expr(&bind_context(&search_path, cx), def, text, Some(column.ty))?;
    super::constant(expr, cx.env).await
}

/// The columns that a row's others make.
struct Computed {
    /// Places in the row.
    places: Vec<usize>,
    values: Compute,
}

impl Computed {
    fn of(def: &Arc<TableDef>, cx: &Context<'_>) -> Result<Computed> {
        let is_made = |c: &ColumnDef| c.generated.is_some() || c.domain.is_some();
        if !def.columns.iter().any(is_made) {
            return Ok(Computed {
                places: vec![],
                values: Compute::new(vec![]),
            });
        }
        let search_path = cx.env.catalog.search_path(&[], "", None);
        let stored = bind::completion(&bind_context(&search_path, cx), def)?;
        let (columns, values): (Vec<u16>, Vec<Expr>) = stored.into_iter().unzip();
        Ok(Computed {
            places: places(&columns),
            values: Compute::new(values),
        })
    }

    async fn complete(&mut self, row: &mut [Datum], cx: &Context<'_>) -> Result<()> {
        if self.places.is_empty() {
            return Ok(());
        }
        let values = self.values.row(row, cx.env).await?;
        for (place, value) in self.places.iter().zip(values) {
            row[*place] = value;
        }
        Ok(())
    }
}

/// The rows of a table that point at a key: by an index that begins with the key's columns if there is one, else by
/// reading all.
struct Matching<'t> {
    target: &'t Target,
    columns: Vec<usize>,
    key: Row,
    by_index: Option<(Rc<Index>, Vec<u8>)>,
    /// How far the index has been read: a leaf at a time, however many rows there are.
    cursor: Option<Cursor>,
    snapshot: Option<Snapshot>,
    block: u32,
    found: Vec<(RowRef, Row)>,
}

impl<'t> Matching<'t> {
    fn new(target: &'t Target, fk: &ForeignKey, key: &[Datum]) -> Matching<'t> {
        let columns = places(&fk.columns);
        // Not by one that may lack a row.
        let whole = |index: &&Rc<Index>| index.def.terms.predicate.is_none();
        let by_index = target.indexes.iter().filter(whole).find_map(|index| {
            let lead = index.columns.get(..columns.len())?;
            if !columns.iter().all(|c| lead.contains(c)) {
                return None;
            }
            let mut bytes = Vec::new();
            for (at, order) in lead.iter().zip(&index.orders) {
                let place = columns.iter().position(|c| c == at)?;
                throng_types::key::encode_one(&key[place], *order, &mut bytes).ok()?;
            }
            Some((index.clone(), bytes))
        });
        Matching {
            target,
            columns,
            key: key.to_vec(),
            by_index,
            cursor: None,
            snapshot: None,
            block: 0,
            found: Vec::new(),
        }
    }

    /// A row changed under us: look again from the beginning, in what is committed by then.
    fn again(&mut self) {
        self.cursor = None;
        self.snapshot = None;
        self.block = 0;
        self.found.clear();
    }

    fn take(&mut self, at: RowRef, bytes: &[u8]) -> Result<bool> {
        let mut row = Row::new();
        self.target
            .table
            .decode(bytes, self.target.def().columns.len(), &mut row)?;
        let matches = self.columns.iter().zip(&self.key).all(|(c, k)| {
            let compare = comparator(self.target.table.column_type(*c).oid);
            !row[*c].is_null() && compare(&row[*c], k).is_eq()
        });
        if matches {
            self.found.push((at, row));
        }
        Ok(matches)
    }

    async fn next(&mut self, cx: &Context<'_>) -> Result<Option<(RowRef, Row)>> {
        let heap = &self.target.table.heap;
        loop {
            if let Some((at, mut row)) = self.found.pop() {
                let mut fetch = large::Fetch::default();
                retry(|| self.target.table.fetch_external(&mut row, &mut fetch)).await?;
                return Ok(Some((at, row)));
            }
            let snapshot = match &self.snapshot {
                Some(snapshot) => snapshot.clone(),
                None => self.snapshot.insert(cx.txn.latest_snapshot()).clone(),
            };
            if let Some((index, key)) = &self.by_index {
                let cursor = self.cursor.get_or_insert_with(|| {
                    let range = KeyRange::prefix(key);
                    index.tree.cursor(range, Direction::Forward)
                });
                let mut tids = Vec::new();
                if !retry(|| cursor.next(&mut tids)).await? {
                    return Ok(None);
                }
                let mut bytes = Vec::new();
                for root in tids {
                    if let Some(tid) = retry(|| heap.fetch(root, &snapshot, &mut bytes)).await? {
                        self.take(RowRef { tid, root }, &bytes)?;
                    }
                }
                cx.env.cancel.check()?;
                continue;
            }
            if self.block >= retry(|| heap.blocks()).await? {
                return Ok(None);
            }
            let mut batch = TupleBatch::new();
            let block = self.block;
            let mut ring = Ring::for_scan(heap.pool(), block);
            retry(|| {
                batch.clear();
                heap.scan_page(block, &snapshot, &mut ring, &mut batch)
            })
            .await?;
            self.block += 1;
            for i in 0..batch.len() {
                self.take(
                    RowRef {
                        tid: batch.tid(i),
                        root: batch.root(i),
                    },
                    batch.row(i),
                )?;
            }
            cx.env.cancel.check()?;
        }
    }
}
