//! UPDATE and DELETE of the rows of a table and of those below it, of which a plain table is a
//! family of one; MERGE changes and removes rows by the same.
//!
//! ```text
//! row of the input ─► its table, its row there ─► BEFORE triggers ─┬─► stays: a new version
//!        ▲                                             │           ├─► leaves: out here, in there
//!        │                                             │           └─► goes: deleted
//!        └── others were first: its newest version ◄───┘                 │
//!            (READ COMMITTED, if it still qualifies)                     ▼
//!                                              foreign keys, AFTER triggers, RETURNING
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use throng_bind::expr::RelId;
use throng_bind::route::Routing;
use throng_buffer::retry;
use throng_catalog::{TableDef, fires};
use throng_plan::{DeleteNode, InheritedTarget, Member, MergeNode, Node, RowSource, UpdateNode};
use throng_txn::Isolation;
use throng_txn::rows::{RowOutcome, RowRef, RowTurn};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Tid};

use super::foreign::ForeignKeys;
use super::partition::{WriteTarget, WriteTargets, leaf_or_error, must_fit, must_take, place_of};
use super::trigger::{self, Named, Triggers, Updated};
use super::{
    Context, RowOf, Target, check_views, complete, evaluate, give, insert_row, push_system,
    store_update,
};
use crate::drive::{Returning, next};
use crate::run::Row;
use crate::run::build::Execution;
use crate::run::eval::eval;
use crate::run::lock::add_versions;

/// The table that a statement names, and where the rows of it and of those below it are in the
/// input.
#[derive(Clone, Copy)]
pub(super) struct TargetTable<'n> {
    pub table: &'n Arc<TableDef>,
    /// None: there are none below it.
    pub family: Option<&'n InheritedTarget>,
    pub routing: Option<&'n Routing>,
    pub rel: RelId,
    /// The input's column with a row's tid.
    pub tid: u32,
    /// The other tables of the input.
    pub others: &'n [RowSource],
    /// Its columns with the row, as the named table has it.
    pub old: &'n [u32],
    pub is_merge: bool,
}

impl<'n> From<&'n UpdateNode> for TargetTable<'n> {
    fn from(node: &'n UpdateNode) -> TargetTable<'n> {
        TargetTable {
            table: &node.table,
            family: node.family.as_deref(),
            routing: node.routing.as_deref(),
            rel: node.rel,
            tid: node.tid,
            others: &node.others,
            old: &node.old,
            is_merge: false,
        }
    }
}

impl<'n> From<&'n DeleteNode> for TargetTable<'n> {
    fn from(node: &'n DeleteNode) -> TargetTable<'n> {
        TargetTable {
            table: &node.table,
            family: node.family.as_deref(),
            routing: None,
            rel: node.rel,
            tid: node.tid,
            others: &node.others,
            old: &node.old,
            is_merge: false,
        }
    }
}

impl<'n> From<&'n MergeNode> for TargetTable<'n> {
    fn from(node: &'n MergeNode) -> TargetTable<'n> {
        TargetTable {
            table: &node.table,
            family: node.family.as_deref(),
            routing: node.routing.as_deref(),
            rel: node.rel,
            tid: node.tid,
            // What it asks again, it asks of the row in hand.
            others: &[],
            old: &node.old,
            is_merge: true,
        }
    }
}

/// The table of a row that is there.
#[derive(Clone, Copy)]
pub(super) enum Source<'n> {
    /// The one that the statement names, which is alone.
    Named,
    /// One of a family, by its place among those that are read.
    Member(usize, &'n Member),
}

impl<'n> Source<'n> {
    /// For each of the named table's columns the one here; none where they are one table.
    fn columns(self) -> Option<&'n [u16]> {
        match self {
            Source::Named => None,
            Source::Member(_, member) => Some(&member.columns),
        }
    }

    /// The column here for one of the named table's.
    pub fn attnum(self, top: u16) -> u16 {
        self.columns()
            .map_or(top, |columns| columns[usize::from(top) - 1])
    }
}

/// A row that is there.
#[derive(Clone, Copy)]
pub(super) struct Existing<'n> {
    pub source: Source<'n>,
    pub at: RowRef,
}

/// Where a changed row is now.
pub(super) struct Stored {
    pub tid: Tid,
    pub table: Oid,
    /// As the named table has it.
    pub row: Row,
}

/// The write of a statement to rows that are there.
pub(super) struct ModifyTable<'n, 'c> {
    of: TargetTable<'n>,
    /// The columns that are set; not told where nobody asks.
    set: Vec<u16>,
    pub named: Named,
    /// By the place of a table among all of the family; without one it is the first.
    pub targets: WriteTargets,
    /// The statement writes to nothing else.
    pub alone: bool,
    /// Whether what the statement sees may go while it waits for its row: it reads nothing more by
    /// its snapshot, and neither do triggers.
    without_snapshot: bool,
    cx: &'n Context<'c>,
}

/// These columns of the input, not copied where they follow one another there.
fn taken_out<'i>(slots: &[u32], input: &'i [Datum]) -> Cow<'i, [Datum]> {
    let first = slots.first().copied().unwrap_or(0);
    match slots.iter().zip(first..).all(|(slot, at)| *slot == at) {
        true => Cow::Borrowed(&input[first as usize..][..slots.len()]),
        false => slots
            .iter()
            .map(|slot| input[*slot as usize].clone())
            .collect(),
    }
}

/// Which member a row of the input is of; none where an outer join has no row here.
fn member_of(family: &InheritedTarget, input: &[Datum]) -> Option<usize> {
    let Datum::Oid(oid) = input[family.tableoid as usize] else {
        return None;
    };
    let tables = &family.by_table;
    let found = tables.binary_search_by_key(&Oid(oid), |(table, _)| *table);
    found.ok().map(|at| tables[at].1)
}

/// A whole row of a table; none if it is gone.
pub(super) async fn read_row(target: &Target, tid: Tid) -> Result<Option<Row>> {
    let mut bytes = Vec::new();
    let heap = &target.table.heap;
    if retry(|| heap.read_version(tid, &mut bytes))
        .await?
        .is_none()
    {
        return Ok(None);
    }
    let mut row = Row::new();
    target
        .table
        .decode(&bytes, target.def().columns.len(), &mut row)?;
    target.table.read_external(&mut row).await?;
    Ok(Some(row))
}

/// A member's row as one of the table that the statement names.
fn top_row(member: &Member, own: &[Datum], width: usize) -> Row {
    let mut top = vec![Datum::Null; width];
    for (value, column) in top.iter_mut().zip(&*member.columns) {
        if *column > 0 {
            *value = own[usize::from(*column) - 1].clone();
        }
    }
    top
}

/// 0A000 for a row that others may point at in a part of the table alone that is partitioned
/// itself: it cannot go to another.
fn may_leave(leaf: &TableDef, cx: &Context<'_>) -> Result<()> {
    let catalog = cx.env.catalog;
    let above = catalog.ancestors(leaf);
    let Some((root, parts)) = above.split_last() else {
        return Ok(());
    };
    let name = |oid: &Oid| catalog.table(*oid).map_or("", |t| t.name.as_str());
    match parts.iter().find(|oid| !catalog.referencing(**oid).is_empty()) {
        None => Ok(()),
        Some(pointed) => Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            "cannot move tuple across partitions when a non-root ancestor of the source partition is directly referenced in a foreign key",
        )
        .detail(format!(
            "A foreign key points to ancestor \"{}\" but not the root ancestor \"{}\".",
            name(pointed),
            name(root)
        ))
        .hint(format!(
            "Consider defining the foreign key on table \"{}\".",
            name(root)
        ))),
    }
}

impl<'n, 'c> ModifyTable<'n, 'c> {
    /// Runs BEFORE STATEMENT triggers on the events.
    pub async fn begin(
        of: TargetTable<'n>,
        events: &[i16],
        set: impl Iterator<Item = u16>,
        execution: &Execution,
        cx: &'n Context<'c>,
    ) -> Result<ModifyTable<'n, 'c>> {
        let alone = execution.writes_once();
        let mut targets = WriteTargets::default();
        // Of a partitioned table itself there are no rows, and its leaves have numbers from 0.
        let is_plain = of.family.is_none() && !of.table.is_partitioned();
        let triggers = match is_plain && of.table.has_rows() {
            true => {
                let only = targets.get(0, of.table, &[], alone, cx)?;
                only.target.triggers.clone()
            }
            false => Triggers::of(of.table, cx)?,
        };
        let set: Vec<u16> = match triggers.is_some() || of.family.is_some() {
            true => set.collect(),
            false => Vec::new(),
        };
        let without_snapshot = execution.plan().changes_one_row
            && triggers.is_none()
            && of.family.is_none()
            && cx.txn.isolation() == Isolation::ReadCommitted;
        Ok(ModifyTable {
            of,
            named: Named::begin(triggers.as_ref(), events, &set, cx).await?,
            set,
            targets,
            alone,
            without_snapshot,
            cx,
        })
    }

    /// Queues AFTER STATEMENT triggers; the foreign keys that wait for the statement's end.
    pub async fn end(self) -> Result<Vec<ForeignKeys>> {
        self.named.end(&self.set, self.cx).await?;
        Ok(self.targets.keys())
    }

    pub fn turn(&self) -> RowTurn<'n> {
        match self.without_snapshot {
            true => RowTurn::letting_go(self.cx.env.snapshot),
            false => RowTurn::default(),
        }
    }

    /// Where rows of a table are written.
    pub fn target(&mut self, source: Source<'n>) -> Result<&mut WriteTarget> {
        let (at, table) = match source {
            Source::Named => (0, self.of.table),
            Source::Member(_, member) => (member.place, &member.leaf.table),
        };
        self.targets.get(at, table, &[], self.alone, self.cx)
    }

    /// The row that the input names, if it names one. Most likely the statement's own scan has just
    /// found it.
    pub async fn existing(
        &mut self,
        execution: &Execution,
        input: &[Datum],
    ) -> Result<Option<Existing<'n>>> {
        let (source, rel) = match self.of.family {
            None => (Source::Named, self.of.rel),
            Some(family) => match member_of(family, input) {
                None => return Ok(None),
                Some(at) => {
                    let member = &family.members[at];
                    (Source::Member(at, member), member.rel)
                }
            },
        };
        // The nullable side of an outer join has no row here.
        let Datum::Tid(tid) = input[self.of.tid as usize] else {
            return Ok(None);
        };
        let root = match execution.root_found(rel, tid) {
            Some(root) => root,
            None => {
                let heap = &self.target(source)?.target.table.heap;
                retry(|| heap.root_of(tid)).await?
            }
        };
        let at = RowRef { tid, root };
        Ok(Some(Existing { source, at }))
    }

    /// The row as its table has it; none where it is gone.
    pub async fn old<'i>(
        &mut self,
        row: Existing<'n>,
        input: &'i [Datum],
    ) -> Result<Option<Cow<'i, [Datum]>>> {
        match row.source {
            Source::Named => Ok(Some(self.old_top(input))),
            Source::Member(..) => {
                let target = &self.target(row.source)?.target;
                Ok(read_row(target, row.at.tid).await?.map(Cow::Owned))
            }
        }
    }

    /// The row in the input, as the named table has it.
    pub fn old_top<'i>(&self, input: &'i [Datum]) -> Cow<'i, [Datum]> {
        taken_out(self.of.old, input)
    }

    /// A row of a table as the named table has it.
    pub fn as_top(&self, source: Source<'n>, own: Row) -> Row {
        match source {
            Source::Named => own,
            Source::Member(_, member) => top_row(member, &own, self.of.table.columns.len()),
        }
    }

    /// Where the change of a row came to something else: the row as it is now, which `input` then
    /// is of. None where the statement is through with it.
    async fn now<T>(
        &mut self,
        instead: RowOutcome<T>,
        row: Existing<'n>,
        is_delete: bool,
        execution: &mut Execution,
        turn: &mut RowTurn<'_>,
        input: &mut Row,
    ) -> Result<Option<Existing<'n>>> {
        let cx = self.cx;
        if let RowOutcome::LookAnew = instead {
            turn.renew();
            execution.restart();
            return match next(execution, cx.env, cx.txn, input).await? {
                true => self.existing(execution, input).await,
                false => Ok(None),
            };
        }
        if let RowOutcome::SelfModified = instead {
            let target = &self.target(row.source)?.target;
            trigger::changed_by_function(target, row.at, is_delete, cx).await?;
        }
        // Others have changed it first.
        let RowOutcome::Updated(at) = instead else {
            return Ok(None);
        };
        let rel = match row.source {
            Source::Named => self.of.rel,
            Source::Member(_, member) => member.rel,
        };
        let mut versions = vec![(rel, Some(at.tid))];
        for other in self.of.others {
            add_versions(other, input, &mut versions);
        }
        let mut recheck = execution.recheck(versions.into(), cx.work_mem);
        // What is run again may lock rows, as a subquery with FOR UPDATE does.
        let qualifies = next(&mut recheck, cx.env, cx.txn, input).await?;
        Ok(qualifies.then_some(Existing { at, ..row }))
    }

    /// Puts `own` in the place of a row, or where it belongs then, which may be another partition;
    /// foreign keys and triggers learn of it. None: a trigger keeps it from that.
    pub async fn put(
        &mut self,
        execution: &mut Execution,
        row: Existing<'n>,
        old: &[Datum],
        mut own: Row,
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<Option<Stored>>> {
        let (cx, of, source) = (self.cx, self.of, row.source);
        let target = self.target(source)?.target.clone();
        if let Some(triggers) = target.locks_first(fires::UPDATE) {
            let mut columns = self.set.iter().map(|top| source.attnum(*top));
            let key = columns.any(|attnum| target.is_key(attnum));
            match trigger::lock_for(&target, row.at, key, turn, cx).await? {
                RowOutcome::Done(()) => {}
                instead => return Ok(instead.map(|()| None)),
            }
            let updated = self.updated(source);
            if !triggers.before_update(old, &mut own, updated, cx).await? {
                return Ok(RowOutcome::Done(None));
            }
        }
        let Source::Member(at, member) = source else {
            if of.routing.is_some() {
                must_fit(execution, cx, of.table, &own).await?;
            }
            complete(
                execution,
                cx,
                of.table,
                RowOf::Statement.updated(),
                &mut own,
            )
            .await?;
            return self.replace(execution, row, old, own, None, turn).await;
        };
        let mut top = top_row(member, &own, of.table.columns.len());
        if let Some(routing) = of.routing {
            let leaf = place_of(execution, cx, &top).await?;
            let leaf = leaf_or_error(leaf, of.table, routing.divisions(), &top, cx.env)?;
            if leaf != member.place {
                let moved = self.move_to((routing, leaf), execution, row, old, (own, top), turn);
                return Box::pin(moved).await;
            }
        }
        complete(
            execution,
            cx,
            &member.leaf.table,
            RowOf::Member(at).updated(),
            &mut own,
        )
        .await?;
        member.leaf.give_computed(&own, &mut top);
        self.replace(execution, row, old, own, Some(top), turn)
            .await
    }

    fn updated(&self, source: Source<'n>) -> Updated<'_> {
        Updated {
            set: &self.set,
            columns: source.columns(),
        }
    }

    /// Stores the new version of a row in its table. `top`: as the named table has it, where that
    /// is another one.
    async fn replace(
        &mut self,
        execution: &mut Execution,
        row: Existing<'n>,
        old: &[Datum],
        own: Row,
        top: Option<Row>,
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<Option<Stored>>> {
        let (cx, of, at) = (self.cx, self.of, row.at);
        let target = self.target(row.source)?.target.clone();
        let stored = store_update(&target, at, old, &own, turn, cx).await?;
        let tid = match stored.done() {
            Ok(tid) => tid,
            Err(instead) => return Ok(instead),
        };
        // The next in the row's queue may come.
        drop(std::mem::take(turn));
        check_views(execution, cx, of.table, top.as_ref().unwrap_or(&own)).await?;
        let keys = &mut self.target(row.source)?.keys;
        keys.updated((old, at.tid), (&own, tid), cx).await?;
        let updated = self.updated(row.source);
        target
            .after_update((old, at.tid), (&own, tid), updated, cx)
            .await?;
        let new = top.unwrap_or(own);
        self.tell_update(row.source, old, &new)?;
        Ok(RowOutcome::Done(Some(Stored {
            tid,
            table: target.def().oid,
            row: new,
        })))
    }

    /// Takes a row out of its partition and puts it into another one.
    async fn move_to(
        &mut self,
        (routing, leaf): (&'n Routing, usize),
        execution: &mut Execution,
        row: Existing<'n>,
        old: &[Datum],
        (own, mut top): (Row, Row),
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<Option<Stored>>> {
        let (cx, of, at) = (self.cx, self.of, row.at);
        let source = self.target(row.source)?.target.clone();
        may_leave(source.def(), cx)?;
        if let Some(triggers) = source.locks_first(fires::DELETE) {
            match trigger::lock_for(&source, at, true, turn, cx).await? {
                RowOutcome::Done(()) => {}
                instead => return Ok(instead.map(|()| None)),
            }
            if !triggers.before_delete(old, cx).await? {
                return Ok(RowOutcome::Done(None));
            }
        }
        let next = routing.leaf(leaf, cx.env.catalog, cx.env.eval)?;
        let mut moved = next.row(&top);
        let to = self.targets.get(leaf, &next.table, &[], self.alone, cx)?;
        let to = to.target.clone();
        let mut arrives = true;
        if let Some(triggers) = to.locks_first(fires::INSERT) {
            arrives = triggers.before_insert(&mut moved, cx).await?;
            must_take(&next.table, &moved, cx.env.catalog, cx).await?;
            top = next.row_of_top(&moved, of.table.columns.len());
        }
        complete(
            execution,
            cx,
            &next.table,
            RowOf::Leaf(leaf).updated(),
            &mut moved,
        )
        .await?;
        next.give_computed(&moved, &mut top);
        let taken_out = source.table.rows().take_out(cx.txn, at, turn).await?;
        if let Err(instead) = taken_out.done() {
            return Ok(instead);
        }
        drop(std::mem::take(turn));
        source.after_delete(old, at.tid, cx).await?;
        if !arrives {
            return Ok(RowOutcome::Done(None));
        }
        let tid = insert_row(&to, &moved, cx).await?;
        let arrived = self.targets.get(leaf, &next.table, &[], self.alone, cx)?;
        arrived.keys.inserted(&moved, tid, cx).await?;
        to.after_insert(&moved, tid, cx).await?;
        check_views(execution, cx, of.table, &top).await?;
        let keys = &mut self.target(row.source)?.keys;
        keys.moved((old, at.tid), &own, cx)?;
        self.tell_move(row.source, old, &top)?;
        Ok(RowOutcome::Done(Some(Stored {
            tid,
            table: next.table.oid,
            row: top,
        })))
    }

    /// Triggers of the statement learn of a changed row.
    fn tell_update(&self, source: Source<'n>, old: &[Datum], top: &[Datum]) -> Result<()> {
        if !self.named.keeps_rows() {
            return Ok(());
        }
        let old = self.as_top(source, old.to_vec());
        self.named.changed(fires::UPDATE, Some(&old), Some(top))
    }

    /// The same of a row that went to another partition, which MERGE tells as what it is.
    fn tell_move(&self, source: Source<'n>, old: &[Datum], top: &[Datum]) -> Result<()> {
        if !self.of.is_merge || !self.named.keeps_rows() {
            return self.tell_update(source, old, top);
        }
        let old = self.as_top(source, old.to_vec());
        self.named.changed(fires::DELETE, Some(&old), None)?;
        self.named.changed(fires::INSERT, None, Some(top))
    }

    /// Deletes a row; foreign keys and triggers learn of it. False: a trigger keeps it from that.
    pub async fn remove(
        &mut self,
        row: Existing<'n>,
        input: &[Datum],
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<bool>> {
        let (cx, at) = (self.cx, row.at);
        let keeps_rows = self.named.keeps_rows();
        let place = self.target(row.source)?;
        let target = place.target.clone();
        let is_read = place.keys.is_referenced() || target.triggers.is_some() || keeps_rows;
        let old = match is_read {
            true => self.old(row, input).await?,
            false => None,
        };
        if let (Some(triggers), Some(old)) = (target.locks_first(fires::DELETE), &old) {
            match trigger::lock_for(&target, at, true, turn, cx).await? {
                RowOutcome::Done(()) => {}
                instead => return Ok(instead.map(|()| false)),
            }
            if !triggers.before_delete(old, cx).await? {
                return Ok(RowOutcome::Done(false));
            }
        }
        let gone = target.table.rows().delete(cx.txn, at, turn).await?;
        if let Err(instead) = gone.done() {
            return Ok(instead);
        }
        drop(std::mem::take(turn));
        if let Some(old) = old {
            let keys = &mut self.target(row.source)?.keys;
            keys.deleted(&old, at.tid, cx).await?;
            target.after_delete(&old, at.tid, cx).await?;
            if keeps_rows {
                let top = self.as_top(row.source, old.into_owned());
                self.named.changed(fires::DELETE, Some(&top), None)?;
            }
        }
        Ok(RowOutcome::Done(true))
    }
}

pub(super) async fn update(
    execution: &mut Execution,
    node: &UpdateNode,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<(u64, Vec<ForeignKeys>)> {
    let set = node.set.iter().map(|(attnum, _)| *attnum);
    let begun = ModifyTable::begin(node.into(), &[fires::UPDATE], set, execution, cx);
    let mut modify = begun.await?;
    let mut input = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut input).await? {
        let Some(mut row) = modify.existing(execution, &input).await? else {
            continue;
        };
        let mut turn = modify.turn();
        while let Some(old) = modify.old(row, &input).await? {
            let mut own = old.to_vec();
            evaluate(execution, cx, |plan, cx| {
                let Node::Update(node) = &plan.node else {
                    return Ok(());
                };
                for (attnum, expr) in &node.set {
                    own[usize::from(row.source.attnum(*attnum)) - 1] = eval(expr, &input, cx)?;
                }
                Ok(())
            })
            .await?;
            match modify.put(execution, row, &old, own, &mut turn).await? {
                RowOutcome::Done(None) => break,
                RowOutcome::Done(Some(stored)) => {
                    count += 1;
                    if returning.is_wanted() {
                        let mut new = stored.row;
                        push_system(&mut new, stored.tid, false, cx);
                        if node.family.is_some() {
                            new.push(Datum::Oid(stored.table.0));
                        }
                        new.extend_from_slice(&input);
                        give(execution, cx, &new, returning).await?;
                    }
                    break;
                }
                instead => {
                    let now = modify.now(instead, row, false, execution, &mut turn, &mut input);
                    let Some(now) = now.await? else { break };
                    row = now;
                }
            }
        }
    }
    Ok((count, modify.end().await?))
}

pub(super) async fn delete(
    execution: &mut Execution,
    node: &DeleteNode,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<(u64, Vec<ForeignKeys>)> {
    let set = std::iter::empty();
    let begun = ModifyTable::begin(node.into(), &[fires::DELETE], set, execution, cx);
    let mut modify = begun.await?;
    let mut input = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut input).await? {
        let Some(mut row) = modify.existing(execution, &input).await? else {
            continue;
        };
        let mut turn = modify.turn();
        loop {
            match modify.remove(row, &input, &mut turn).await? {
                RowOutcome::Done(false) => break,
                RowOutcome::Done(true) => {
                    count += 1;
                    give(execution, cx, &input, returning).await?;
                    break;
                }
                instead => {
                    let now = modify.now(instead, row, true, execution, &mut turn, &mut input);
                    let Some(now) = now.await? else { break };
                    row = now;
                }
            }
        }
    }
    Ok((count, modify.end().await?))
}
