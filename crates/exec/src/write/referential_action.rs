//! What happens to rows that point at one that goes or changes its key.
//!
//! ```text
//!   row of a table, or of a partition ─► each foreign key that points at it ─► its table's rows, or those of its partitions
//!                                                                              as they are once the table is locked
//! ```

use std::rc::Rc;
use std::sync::Arc;

use throng_access::TupleBatch;
use throng_access::btree::{Cursor, Direction, KeyRange};
use throng_bind::binder;
use throng_bind::expr::Expr;
use throng_bind::query::CheckOf;
use throng_buffer::{Ring, retry};
use throng_catalog::{Catalog, ColumnDef, ConstraintDef, FkAction, ForeignKey, TableDef, fires};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, too_late};
use throng_txn::{LockMode, Snapshot};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result};
use throng_values::func::compare::comparator;
use throng_values::func::range::{cover, overlap, shared};

use super::cascade::{KeyChange, Work};
use super::foreign::{ForeignKeys, find_by_key, foreign, key_of, named, places};
use super::period::{Lookup, Period};
use super::trigger::{Named, Updated, lock_for};
use super::{Compute, Context, Target, store_update};
use crate::run::Row;
use crate::run::context::Env;
use crate::table::{Index, Table};

/// What a referenced row's departure does to the rows that point at it. What comes of that is added
/// to the queue.
pub(super) async fn act(departed: &KeyChange, work: &mut Work, cx: &Context<'_>) -> Result<()> {
    let constraint = &departed.constraint;
    let fk = foreign(constraint)?;
    if key_of(&departed.old, &fk.ref_columns)
        .iter()
        .any(Datum::is_null)
    {
        return Ok(());
    }
    let lock = |oid: Oid| cx.txn.lock_relation(oid, LockMode::RowExclusive);
    lock(constraint.table).await?;
    let gone = || Error::internal("a foreign key of a table that is gone");
    let referencing = cx.env.catalog.table(constraint.table).ok_or_else(gone)?;
    if !referencing.is_partitioned() {
        return departed.act_on(referencing, fk, work, cx).await;
    }
    // Others may have made it another partition while the lock was waited for.
    let now = cx.env.routines.map(|session| session.definitions());
    let catalog = now.as_deref().unwrap_or(cx.env.catalog);
    let cx = Context {
        env: Env { catalog, ..cx.env },
        ..*cx
    };
    // What is being detached has the key as a part of its table's until it has gone.
    let going = catalog
        .detaching()
        .iter()
        .flat_map(|p| catalog.descendants(*p));
    let below = catalog.descendants(constraint.table).into_iter();
    for oid in below.chain(going) {
        let Some(leaf) = catalog.table(oid).filter(|t| !t.is_partitioned()) else {
            continue;
        };
        let Some(own) = part_of_key(leaf, constraint.oid, catalog) else {
            continue;
        };
        lock(leaf.oid).await?;
        let fk = ForeignKey {
            columns: foreign(own)?.columns.clone(),
            ..fk.clone()
        };
        departed.act_on(leaf, &fk, work, &cx).await?;
    }
    Ok(())
}

/// A leaf's part of a foreign key of a partitioned table above it.
fn part_of_key<'c>(
    leaf: &TableDef,
    whole: Oid,
    catalog: &'c Catalog,
) -> Option<&'c Arc<ConstraintDef>> {
    catalog.constraints_of(leaf.oid).iter().find(|constraint| {
        let mut at = Some(constraint.oid);
        while let Some(oid) = at.filter(|oid| *oid != whole) {
            at = catalog.constraint(oid).and_then(|c| c.lineage.parent);
        }
        at.is_some()
    })
}

impl KeyChange {
    /// The action on the rows of one table that has rows; `fk`: the key as that table has it.
    async fn act_on(
        &self,
        referencing: &Arc<TableDef>,
        fk: &ForeignKey,
        work: &mut Work,
        cx: &Context<'_>,
    ) -> Result<()> {
        let key = key_of(&self.old, &fk.ref_columns);
        let action = match self.new {
            Some(_) => fk.on_update,
            None => fk.on_delete,
        };
        let target = Target::of(referencing, cx)?;
        let event = match action {
            FkAction::NoAction | FkAction::Restrict => {
                return self.must_be_free(&target, fk, action, cx).await;
            }
            FkAction::Cascade if self.new.is_none() => fires::DELETE,
            _ => fires::UPDATE,
        };
        let mut rows = Matching::new(&target, fk, &key);
        // What it makes its rows point at may be what an action that is still queued brings.
        let mut keys = ForeignKeys::new(referencing, cx)?.beside_others(false);
        let mut asked = RowRequirements::of(referencing, cx)?;
        let events = &[event];
        let named = Named::begin(target.triggers.as_ref(), events, &fk.columns, cx).await?;
        let updated = Updated {
            set: &fk.columns,
            columns: None,
        };
        while let Some((at, row)) = rows.next(cx).await? {
            must_be_seen(&target, at, cx).await?;
            match event {
                fires::DELETE => {
                    let turn = &mut RowTurn::default();
                    if let Some(triggers) = target.locks_first(fires::DELETE) {
                        match lock_for(&target, at, true, turn, cx).await? {
                            RowOutcome::Done(()) => {}
                            RowOutcome::Updated(_) => {
                                rows.again();
                                continue;
                            }
                            _ => continue,
                        }
                        if !triggers.before_delete(&row, cx).await? {
                            continue;
                        }
                    }
                    match target.table.rows().delete(cx.txn, at, turn).await? {
                        RowOutcome::Done(()) => {
                            keys.deleted(&row, at.tid, cx).await?;
                            target.after_delete(&row, at.tid, cx).await?;
                            named.changed(fires::DELETE, Some(&row), None)?;
                            work.changed = true;
                        }
                        RowOutcome::Updated(_) => rows.again(),
                        _ => {}
                    }
                }
                _ => {
                    let mut changed = row.clone();
                    for (place, attnum) in places(&fk.columns).into_iter().zip(&fk.ref_columns) {
                        changed[place] = match (action, &self.new) {
                            (FkAction::Cascade, Some(new)) => new[usize::from(*attnum) - 1].clone(),
                            (FkAction::SetDefault, _) => default_of(referencing, place, cx).await?,
                            _ => Datum::Null,
                        };
                    }
                    let turn = &mut RowTurn::default();
                    if let Some(triggers) = target.locks_first(fires::UPDATE) {
                        match lock_for(&target, at, true, turn, cx).await? {
                            RowOutcome::Done(()) => {}
                            RowOutcome::Updated(_) => {
                                rows.again();
                                continue;
                            }
                            _ => continue,
                        }
                        if !triggers
                            .before_update(&row, &mut changed, updated, cx)
                            .await?
                        {
                            continue;
                        }
                    }
                    asked.complete(&mut changed, cx).await?;
                    stays_in_partition(referencing, &changed, cx).await?;
                    match store_update(&target, at, &row, &changed, turn, cx).await? {
                        RowOutcome::Done(tid) => {
                            keys.updated((&row, at.tid), (&changed, tid), cx).await?;
                            let versions = ((&row[..], at.tid), (&changed[..], tid));
                            target
                                .after_update(versions.0, versions.1, updated, cx)
                                .await?;
                            named.changed(fires::UPDATE, Some(&row), Some(&changed))?;
                            work.changed = true;
                        }
                        RowOutcome::Updated(_) => rows.again(),
                        _ => {}
                    }
                }
            }
        }
        named.end(&fk.columns, cx).await?;
        keys.leave_to(work);
        // And functions of triggers may have changed what they liked.
        work.changed |= target.triggers.is_some();
        if action != FkAction::SetDefault {
            return Ok(());
        }
        // The default may be the very key that goes: such a row has not changed what it points at.
        cx.txn.next_command()?;
        self.must_be_free(&target, fk, FkAction::NoAction, cx).await
    }

    /// 23503 or 23001 if a row points at what has gone.
    async fn must_be_free(
        &self,
        target: &Target,
        fk: &ForeignKey,
        action: FkAction,
        cx: &Context<'_>,
    ) -> Result<()> {
        let key = key_of(&self.old, &fk.ref_columns);
        if fk.period {
            return self.must_be_covered(target, fk, &key, cx).await;
        }
        if Matching::new(target, fk, &key).next(cx).await?.is_none() {
            return Ok(());
        }
        // The key may have come back in another row: then nobody is left pointing at nothing.
        match action == FkAction::NoAction && replaced(&self.table, fk, &key, cx).await? {
            true => Ok(()),
            false => Err(self.still_referenced(fk, action, cx)),
        }
    }

    /// 23503 if a row points at what has gone of a period, and other rows do not have that.
    async fn must_be_covered(
        &self,
        target: &Target,
        fk: &ForeignKey,
        key: &[Datum],
        cx: &Context<'_>,
    ) -> Result<()> {
        let (Some(place), Some(gone)) = (places(&fk.columns).last().copied(), key.last()) else {
            return Ok(());
        };
        let mut rows = Matching::new(target, fk, key);
        let mut pieces: Option<Vec<Datum>> = None;
        while let Some((_, row)) = rows.next(cx).await? {
            let pieces = match &mut pieces {
                Some(pieces) => pieces,
                none => none.insert(pieces_left(&self.table, fk, key, cx).await?),
            };
            let lost = shared(&row[place], gone)?;
            if pieces.is_empty() || !cover(pieces, &lost)? {
                return Err(self.still_referenced(fk, FkAction::NoAction, cx));
            }
        }
        Ok(())
    }

    fn still_referenced(&self, fk: &ForeignKey, action: FkAction, cx: &Context<'_>) -> Error {
        let (name, referencing) = named(&self.constraint, self.table.oid, cx.env.catalog);
        let by = referencing.map_or("", |t| t.name.as_str());
        let (code, violates, verb) = match action {
            FkAction::Restrict => (
                state::RESTRICT_VIOLATION,
                "violates RESTRICT setting of foreign",
                "is",
            ),
            _ => (state::FOREIGN_KEY_VIOLATION, "violates foreign", "is still"),
        };
        let message = format!(
            "update or delete on table \"{}\" {violates} key constraint \"{name}\" on table \"{by}\"",
            self.table.name
        );
        let key = super::row::shown_key(&self.table, &places(&fk.ref_columns), &self.old, cx.env);
        let key = key.map_or_else(String::new, |key| format!(" {key}"));
        let error = Error::new(code, message)
            .detail(format!("Key{key} {verb} referenced from table \"{by}\"."))
            .constraint(&name);
        match referencing {
            Some(table) => super::row::about(error, table, cx.env.catalog),
            None => error,
        }
    }
}

/// REPEATABLE READ and SERIALIZABLE: 40001 for a row that an action would change, but the
/// transaction does not see.
async fn must_be_seen(target: &Target, at: RowRef, cx: &Context<'_>) -> Result<()> {
    if !cx.txn.isolation().keeps_snapshot() {
        return Ok(());
    }
    let snapshot = cx.txn.snapshot();
    let heap = &target.table.heap;
    let mut bytes = Vec::new();
    match retry(|| heap.fetch_version(at.tid, &snapshot, &mut bytes)).await? {
        true => Ok(()),
        false => Err(too_late("update")),
    }
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

/// The ranges that rows of the referenced table have now where they overlap a key's.
async fn pieces_left(
    table: &Arc<TableDef>,
    fk: &ForeignKey,
    key: &[Datum],
    cx: &Context<'_>,
) -> Result<Vec<Datum>> {
    let mut pieces = Vec::new();
    let Some(index) = cx.env.catalog.index(fk.ref_index) else {
        return Ok(pieces);
    };
    let mut values = vec![Datum::Null; table.columns.len()];
    for (value, attnum) in key.iter().zip(&fk.ref_columns) {
        values[usize::from(*attnum) - 1] = value.clone();
    }
    let period = Period {
        table: &*Table::of(table, cx.env.store, &cx.env.eval)?,
        index: &Index::of(index, table, cx.env.store),
        values: &values,
    };
    let how = Lookup {
        lock: false,
        fixed: false,
    };
    period.gather(how, &mut pieces, cx).await?;
    Ok(pieces)
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

/// What a table's definition is bound in.
fn bind_context<'a>(search_path: &'a [Oid], cx: &Context<'a>) -> binder::BindContext<'a> {
    binder::BindContext {
        catalog: cx.env.catalog,
        search_path,
        creation_schema: None,
        temporary_schema: None,
        user: Oid::NONE,
        params: &[],
        eval: cx.env.eval,
        prepared: &|_| None,
        named: None,
    }
}

/// A column's default, for SET DEFAULT.
async fn default_of(def: &TableDef, at: usize, cx: &Context<'_>) -> Result<Datum> {
    let column = &def.columns[at];
    let Some(text) = &column.default else {
        return Ok(Datum::Null);
    };
    let search_path = cx.env.catalog.search_path(&[], "", None);
    let expr = binder::row_expr(&bind_context(&search_path, cx), def, text, Some(column.ty))?;
    super::constant(expr, cx.env).await
}

/// What a table asks of a row that an action makes: columns that others make, and what must hold.
struct RowRequirements<'t> {
    def: &'t Arc<TableDef>,
    /// Places in the row, and their values.
    places: Vec<usize>,
    values: Compute,
    checks: Vec<(CheckOf, String)>,
    conditions: Compute,
}

impl<'t> RowRequirements<'t> {
    fn of(def: &'t Arc<TableDef>, cx: &Context<'_>) -> Result<RowRequirements<'t>> {
        let (catalog, eval) = (cx.env.catalog, cx.env.eval);
        let is_made = |c: &ColumnDef| c.generated.is_some() || c.domain.is_some();
        let (columns, values): (Vec<u16>, Vec<Expr>) = match def.columns.iter().any(is_made) {
            false => (vec![], vec![]),
            true => {
                let search_path = catalog.search_path(&[], "", None);
                let made = binder::completion(&bind_context(&search_path, cx), def)?;
                made.into_iter().unzip()
            }
        };
        let checks = binder::stored_checks(def, catalog, eval)?.into_iter();
        let (checks, conditions) = checks.map(|c| ((c.of, c.name), c.expr)).unzip();
        Ok(RowRequirements {
            def,
            places: places(&columns),
            values: Compute::new(values),
            checks,
            conditions: Compute::new(conditions),
        })
    }

    /// # Errors
    /// 23502, 23514.
    async fn complete(&mut self, row: &mut [Datum], cx: &Context<'_>) -> Result<()> {
        if !self.places.is_empty() {
            let values = self.values.row(row, cx.env).await?;
            for (place, value) in self.places.iter().zip(values) {
                row[*place] = value;
            }
        }
        super::row::check_not_null(self.def, row, cx.env)?;
        if self.checks.is_empty() {
            return Ok(());
        }
        let held = self.conditions.row(row, cx.env).await?;
        // A check that is NULL is satisfied.
        let broken = held.iter().position(|held| *held == Datum::Bool(false));
        match broken.and_then(|at| self.checks.get(at)) {
            None => Ok(()),
            Some((of, name)) => Err(super::row::violation(self.def, *of, name, row, cx.env)),
        }
    }
}

/// The rows of a table that point at a key: by an index that begins with the key's columns if there
/// is one, else by reading all.
struct Matching<'t> {
    target: &'t Target,
    columns: Vec<usize>,
    /// So many of them are equal to the key's; of one more the range overlaps.
    equal: usize,
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
        let equal = columns.len() - usize::from(fk.period);
        // Not by one that may lack a row, or has many entries of one.
        let whole =
            |index: &&Rc<Index>| index.def.terms.predicate.is_none() && index.inverted.is_none();
        let by_index = target.indexes.iter().filter(whole).find_map(|index| {
            let lead = index.columns.get(..equal)?;
            if equal == 0 || !columns[..equal].iter().all(|c| lead.contains(c)) {
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
            equal,
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
        let pairs = self.columns.iter().zip(&self.key).enumerate();
        let matches = pairs.into_iter().all(|(at, (c, k))| {
            if at >= self.equal {
                return !row[*c].is_null() && overlap(&row[*c], k);
            }
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
                self.target.table.read_external(&mut row).await?;
                return Ok(Some((at, row)));
            }
            let snapshot = match &self.snapshot {
                Some(snapshot) => snapshot.clone(),
                None => self.snapshot.insert(cx.txn.latest_snapshot()).clone(),
            };
            if let Some((index, key)) = &self.by_index {
                let cursor = self.cursor.get_or_insert_with(|| {
                    let range = KeyRange::prefix(key.clone());
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
                // They are taken from the end.
                self.found.reverse();
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
            self.found.reverse();
            cx.env.cancel.check()?;
        }
    }
}
