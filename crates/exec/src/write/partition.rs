//! Writes to partitioned tables and to tables with children: each row in the table it belongs to.
//!
//! ```text
//! new row ─► the partitioned tables above take it? (23514) ─► its leaf (23514) ─► the leaf's row ─► as into any table
//! ```
//! An UPDATE that changes the key takes the row out of one leaf and puts it into another.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

use throng_bind::expr::Expr;
use throng_bind::route::{Division, Leaf, Level, Next, Routing};
use throng_buffer::retry;
use throng_catalog::{Catalog, TableDef, fires};
use throng_plan::{DeleteNode, InheritedTarget, Node, Plan, UpdateNode};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn};
use throng_types::error::state;
use throng_types::lexical::quote_ident;
use throng_types::{Datum, Error, Oid, Result, SqlType, Tid};
use throng_values::func::EvalContext;
use throng_values::io::output_text;

use super::foreign::ForeignKeys;
use super::trigger::{self, Named, Updated};
use super::{
    Compute, Context, Target, check_views, evaluate, failed_check, give, insert_row, newest_of,
    push_system, row, row_ref, self_modified, store_update,
};
use crate::drive::{Returning, next};
use crate::large;
use crate::run::build::Execution;
use crate::run::context::{Cx, Env};
use crate::run::eval::eval;
use crate::run::{Row, Step};

/// Values longer than this are cut in error details, as in PostgreSQL.
const LONGEST_SHOWN: usize = 64;

/// Where a row belongs.
#[derive(Clone, Debug)]
pub enum Found {
    Leaf(usize),
    /// It is no row of the table written to, which is a partition itself.
    Outside,
    /// No partition of this division takes the key.
    Nowhere(usize, Vec<Datum>),
}

/// Finds a row's leaf; `key` computes a key's values.
fn find(
    key: &mut dyn FnMut(&[Expr]) -> Step<Vec<Datum>>,
    within: &[Level],
    divisions: &[Division],
) -> Step<Found> {
    for level in within {
        let values = key(&level.key)?;
        if !level.takes(&values)? {
            return Ok(Found::Outside);
        }
    }
    let Some(mut division) = divisions.first() else {
        return Ok(Found::Leaf(0));
    };
    let mut at = 0;
    loop {
        let values = key(&division.key)?;
        let part = division.parts.find(&values)?;
        match part.and_then(|part| division.next.get(part)) {
            None => return Ok(Found::Nowhere(at, values)),
            Some(Next::Leaf(leaf)) => return Ok(Found::Leaf(*leaf)),
            Some(Next::Division(next)) => {
                at = *next;
                division = &divisions[at];
            }
        }
    }
}

fn routing_of(plan: &Plan) -> Option<&Routing> {
    match &plan.node {
        Node::Insert(node) => node.routing.as_deref(),
        Node::Update(node) => node.routing.as_deref(),
        Node::Merge(node) => node.routing.as_deref(),
        _ => None,
    }
}

/// Where a row of the table that the statement names belongs.
pub(super) async fn place_of(
    execution: &mut Execution,
    cx: &Context<'_>,
    row: &[Datum],
) -> Result<Found> {
    evaluate(execution, cx, |plan, cx| {
        let Some(routing) = routing_of(plan) else {
            return Ok(Found::Leaf(0));
        };
        let mut key = |exprs: &[Expr]| values(exprs, row, cx);
        find(&mut key, &routing.within, routing.divisions())
    })
    .await
}

fn values(exprs: &[Expr], row: &[Datum], cx: &mut Cx) -> Step<Vec<Datum>> {
    exprs.iter().map(|e| eval(e, row, cx)).collect()
}

/// 23514 unless the row has a leaf.
pub fn leaf_or_error(
    found: Found,
    table: &TableDef,
    divisions: &[Division],
    row: &[Datum],
    env: Env<'_>,
) -> Result<usize> {
    match found {
        Found::Leaf(at) => Ok(at),
        Found::Outside => {
            let message = format!(
                "new row for relation \"{}\" violates partition constraint",
                table.name
            );
            let error = Error::new(state::CHECK_VIOLATION, message);
            let error = row::with_detail(error, row::failing_row(table, row, env));
            Err(row::about(error, table, env.catalog))
        }
        Found::Nowhere(at, key) => {
            let division = &divisions[at];
            let message = format!(
                "no partition of relation \"{}\" found for row",
                division.table.name
            );
            let error = Error::new(state::CHECK_VIOLATION, message).detail(format!(
                "Partition key of the failing row contains {}.",
                key_text(&division.table, &key, &division.parts.types, env)
            ));
            Err(row::about(error, &division.table, env.catalog))
        }
    }
}

/// Whether rows that are there are a partition's, whatever lies between it and their table.
pub struct Fit {
    levels: Vec<(Level, Compute)>,
}

impl Fit {
    pub fn of(
        table: &std::sync::Arc<TableDef>,
        partition: Oid,
        catalog: &Catalog,
        eval: EvalContext<'_>,
    ) -> Result<Fit> {
        let between = match table.oid == partition {
            true => 0,
            false => {
                let above = catalog.ancestors(table);
                above.iter().position(|a| *a == partition).unwrap_or(0) + 1
            }
        };
        let levels = Level::above(table, catalog, eval)?
            .into_iter()
            .skip(between);
        let levels = levels.map(|level| {
            let key = Compute::new(level.key.clone());
            (level, key)
        });
        Ok(Fit {
            levels: levels.collect(),
        })
    }

    pub async fn takes(&mut self, row: &[Datum], env: Env<'_>) -> Result<bool> {
        Ok(self.refusing(row, env).await?.is_none())
    }

    /// How far above the row's table the partitioned table is that would not send it here.
    async fn refusing(&mut self, row: &[Datum], env: Env<'_>) -> Result<Option<usize>> {
        for (at, (level, key)) in self.levels.iter_mut().enumerate() {
            if !level.takes(&key.row(row, env).await?)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// Finds the leaves of rows that come from no plan.
pub struct Router {
    within: Vec<Compute>,
    divisions: Vec<Compute>,
}

impl Router {
    pub fn new(routing: &Routing) -> Router {
        let of = |key: &Vec<Expr>| Compute::new(key.clone());
        Router {
            within: routing.within.iter().map(|level| of(&level.key)).collect(),
            divisions: routing.divisions().iter().map(|d| of(&d.key)).collect(),
        }
    }

    /// # Errors
    /// 23514 for a row that has no leaf.
    pub async fn leaf(&mut self, routing: &Routing, row: &[Datum], env: Env<'_>) -> Result<usize> {
        let refused =
            |found: Found| leaf_or_error(found, &routing.table, routing.divisions(), row, env);
        for (level, key) in routing.within.iter().zip(&mut self.within) {
            if !level.takes(&key.row(row, env).await?)? {
                return refused(Found::Outside);
            }
        }
        let mut at = 0;
        while let Some(division) = routing.divisions().get(at) {
            let key = self.divisions[at].row(row, env).await?;
            let part = division.parts.find(&key)?;
            match part.and_then(|part| division.next.get(part)) {
                None => return refused(Found::Nowhere(at, key)),
                Some(Next::Leaf(leaf)) => return Ok(*leaf),
                Some(Next::Division(next)) => at = *next,
            }
        }
        Ok(0)
    }
}

/// `(a, b) = (1, 2)`
fn key_text(table: &TableDef, key: &[Datum], types: &[SqlType], env: Env<'_>) -> String {
    let parts = table.partitioned.iter().flat_map(|key| &key.parts);
    let names: Vec<String> = parts
        .map(|part| match &part.expr {
            Some(text) => text.clone(),
            None => quote_ident(&table.column(part.attnum).name),
        })
        .collect();
    let shown = |(value, ty): (&Datum, &SqlType)| {
        if value.is_null() {
            return "null".to_owned();
        }
        let mut bytes = Vec::new();
        output_text(&env.eval, value, *ty, &mut bytes);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if text.len() > LONGEST_SHOWN {
            text.truncate(text.floor_char_boundary(LONGEST_SHOWN));
            text.push_str("...");
        }
        text
    };
    let values: Vec<String> = key.iter().zip(types).map(shown).collect();
    format!("({}) = ({})", names.join(", "), values.join(", "))
}

/// 23514 for a new row of a partition that its tables above do not take.
pub async fn must_fit(
    execution: &mut Execution,
    cx: &Context<'_>,
    table: &TableDef,
    row: &[Datum],
) -> Result<()> {
    let found = place_of(execution, cx, row).await?;
    leaf_or_error(found, table, &[], row, cx.env).map(drop)
}

/// 23514 for a row that was routed to a leaf by partitions as they were when their table was
/// locked, where another one takes it by now.
pub(super) async fn still_takes(
    leaf: &std::sync::Arc<TableDef>,
    row: &[Datum],
    cx: &Context<'_>,
) -> Result<()> {
    let Some(now) = cx.env.catalog.base() else {
        return Ok(());
    };
    let Some(leaf) = now.table(leaf.oid) else {
        return Ok(());
    };
    must_take(leaf, row, now, cx).await
}

/// 23514 for a row that a partitioned table above a leaf would not send there.
pub async fn must_take(
    leaf: &std::sync::Arc<TableDef>,
    row: &[Datum],
    now: &Catalog,
    cx: &Context<'_>,
) -> Result<()> {
    let mut fit = Fit::of(leaf, leaf.oid, now, cx.env.eval)?;
    let Some(level) = fit.refusing(row, cx.env).await? else {
        return Ok(());
    };
    // The partition, not what is below it.
    let mut path = vec![leaf.oid];
    path.extend(now.ancestors(leaf));
    let partition = path.get(level).and_then(|oid| now.table(*oid));
    let partition = partition.unwrap_or(leaf);
    let message = format!(
        "new row for relation \"{}\" violates partition constraint",
        partition.name
    );
    let error = Error::new(state::CHECK_VIOLATION, message);
    let error = row::with_detail(error, row::failing_row(leaf, row, cx.env));
    Err(row::about(error, partition, now))
}

/// A table that rows are written to.
pub(super) struct WriteTarget {
    pub target: Rc<Target>,
    pub keys: ForeignKeys,
    /// Which of its indexes decide about a conflict.
    pub arbiters: Vec<Oid>,
}

impl WriteTarget {
    /// `arbiters`: the indexes of the table that the statement names which decide about a conflict.
    pub fn of(
        table: &std::sync::Arc<TableDef>,
        arbiters: &[Oid],
        alone: bool,
        cx: &Context<'_>,
    ) -> Result<WriteTarget> {
        Ok(WriteTarget {
            target: Rc::new(Target::of(table, cx)?),
            keys: ForeignKeys::new(table, cx)?.beside_others(alone),
            arbiters: own_arbiters(table, arbiters, cx)?,
        })
    }
}

/// Those in use, by their place among the leaves or members.
#[derive(Default)]
pub(super) struct WriteTargets(BTreeMap<usize, WriteTarget>);

impl WriteTargets {
    pub fn get(
        &mut self,
        at: usize,
        table: &std::sync::Arc<TableDef>,
        arbiters: &[Oid],
        alone: bool,
        cx: &Context<'_>,
    ) -> Result<&mut WriteTarget> {
        match self.0.entry(at) {
            Entry::Occupied(place) => Ok(place.into_mut()),
            Entry::Vacant(free) => Ok(free.insert(WriteTarget::of(table, arbiters, alone, cx)?)),
        }
    }

    pub fn keys(self) -> Vec<ForeignKeys> {
        self.0.into_values().map(|p| p.keys).collect()
    }
}

/// The leaf's parts of the indexes that decide about a conflict.
fn own_arbiters(table: &TableDef, arbiters: &[Oid], cx: &Context<'_>) -> Result<Vec<Oid>> {
    if arbiters.is_empty() {
        return Ok(Vec::new());
    }
    let catalog = cx.env.catalog;
    let is_part = |oid: Oid| {
        let mut at = Some(oid);
        while let Some(oid) = at {
            if arbiters.contains(&oid) {
                return true;
            }
            at = catalog.index(oid).and_then(|index| index.parent);
        }
        false
    };
    let indexes = catalog.indexes_of(table.oid).iter().map(|i| i.oid);
    let found: Vec<Oid> = indexes.filter(|oid| is_part(*oid)).collect();
    if found.is_empty() {
        let message =
            "there is no unique or exclusion constraint matching the ON CONFLICT specification";
        return Err(Error::new(state::INVALID_COLUMN_REFERENCE, message));
    }
    Ok(found)
}

/// Computes what a leaf's row has of its other columns, and sees that it is what the leaf asks of
/// its rows.
pub(super) async fn complete_leaf(
    execution: &mut Execution,
    cx: &Context<'_>,
    def: &TableDef,
    own: &mut [Datum],
    leaf: LeafOf,
) -> Result<()> {
    let computed = evaluate(execution, cx, |plan, cx| {
        let generated = leaf.find(plan).map_or(&[][..], |leaf| &leaf.generated);
        let value = |(attnum, expr): &(u16, Expr)| Ok((*attnum, eval(expr, own, cx)?));
        generated.iter().map(value).collect::<Step<Vec<_>>>()
    })
    .await?;
    for (attnum, value) in computed {
        own[usize::from(attnum) - 1] = value;
    }
    row::check_not_null(def, own, cx.env)?;
    let failed = failed_check(execution, cx, own, |plan| {
        leaf.find(plan).map_or(&[][..], |leaf| &leaf.checks)
    });
    match failed.await? {
        None => Ok(()),
        Some((_, name)) => Err(row::check_violation(def, &name, own, cx.env)),
    }
}

/// A leaf of the plan that is run.
#[derive(Clone, Copy)]
pub(super) enum LeafOf {
    /// One that rows are routed to.
    Routing(usize),
    /// A member of the family that is written to.
    Family(usize),
}

impl LeafOf {
    fn find(self, plan: &Plan) -> Option<&Leaf> {
        match self {
            LeafOf::Routing(at) => routing_of(plan)?.known_leaf(at),
            LeafOf::Family(at) => {
                let family = match &plan.node {
                    Node::Update(node) => node.family.as_deref(),
                    Node::Merge(node) => node.family.as_deref(),
                    _ => None,
                };
                Some(&family?.members.get(at)?.leaf)
            }
        }
    }
}

/// Which member a row of the input is of; none where an outer join has no row here.
pub(super) fn member_of(family: &InheritedTarget, input: &[Datum]) -> Option<usize> {
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
    let mut fetch = large::Fetch::default();
    retry(|| target.table.fetch_external(&mut row, &mut fetch)).await?;
    Ok(Some(row))
}

pub(super) async fn update(
    execution: &mut Execution,
    node: &UpdateNode,
    family: &InheritedTarget,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<(u64, Vec<ForeignKeys>)> {
    let alone = execution.writes_once();
    let set: Vec<u16> = node.set.iter().map(|(attnum, _)| *attnum).collect();
    let named = Named::begin_over(&node.table, &[fires::UPDATE], &set, cx).await?;
    let goal = Goal {
        table: &node.table,
        family,
        routing: node.routing.as_deref(),
        alone,
        set: &set,
        named: &named,
    };
    let mut places = WriteTargets::default();
    let mut input = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut input).await? {
        let Some(at) = member_of(family, &input) else {
            continue;
        };
        let member = &family.members[at];
        let place = places.get(member.place, &member.leaf.table, &[], alone, cx)?;
        let target = place.target.clone();
        let Some(mut found) = row_ref(&target, &input[node.tid as usize]).await? else {
            continue;
        };
        let mut turn = RowTurn::default();
        loop {
            let Some(old) = read_row(&target, found.tid).await? else {
                break;
            };
            let mut own = old.clone();
            evaluate(execution, cx, |plan, cx| {
                let Node::Update(node) = &plan.node else {
                    return Ok(());
                };
                for (attnum, expr) in &node.set {
                    let column = member.columns[usize::from(*attnum) - 1];
                    own[usize::from(column) - 1] = eval(expr, &input, cx)?;
                }
                Ok(())
            })
            .await?;
            let change = Change {
                at,
                found,
                old: &old,
                own,
            };
            match put(execution, cx, &mut places, &goal, change, &mut turn).await? {
                RowOutcome::Done(None) => break,
                RowOutcome::Done(Some(stored)) => {
                    drop(turn);
                    count += 1;
                    let mut top = stored.top;
                    push_system(&mut top, stored.tid, false, cx);
                    top.push(Datum::Oid(stored.table.0));
                    top.extend_from_slice(&input);
                    give(execution, cx, &top, returning).await?;
                    break;
                }
                others => {
                    let newest = newest_of(others, execution, member.rel, cx, &mut input).await?;
                    let Some(newest) = newest else { break };
                    found = newest;
                }
            }
        }
    }
    named.end(&set, cx).await?;
    Ok((count, places.keys()))
}

/// What a statement writes to.
pub(super) struct Goal<'a> {
    pub table: &'a std::sync::Arc<TableDef>,
    pub family: &'a InheritedTarget,
    pub routing: Option<&'a Routing>,
    /// And to nothing else.
    pub alone: bool,
    /// The columns that are set.
    pub set: &'a [u16],
    pub named: &'a Named,
}

/// A row of a family's member that is to be another.
pub(super) struct Change<'a> {
    pub at: usize,
    pub found: RowRef,
    /// As its table has it.
    pub old: &'a Row,
    pub own: Row,
}

/// Where a changed row is now.
pub(super) struct Stored {
    pub tid: Tid,
    pub table: Oid,
    /// As the table has it that the statement names.
    pub top: Row,
}

/// Puts a changed row where it belongs, which may be another partition; foreign keys and triggers
/// learn of it. None: a trigger keeps it from that.
pub(super) async fn put(
    execution: &mut Execution,
    cx: &Context<'_>,
    places: &mut WriteTargets,
    goal: &Goal<'_>,
    change: Change<'_>,
    turn: &mut RowTurn<'_>,
) -> Result<RowOutcome<Option<Stored>>> {
    let Change {
        at,
        found,
        old,
        mut own,
    } = change;
    let Goal {
        table,
        family,
        routing,
        alone,
        set,
        named,
    } = *goal;
    let member = &family.members[at];
    let width = table.columns.len();
    let updated = Updated {
        set,
        columns: Some(&member.columns),
    };
    let source = places
        .get(member.place, &member.leaf.table, &[], alone, cx)?
        .target
        .clone();
    if let Some(triggers) = source.locks_first(fires::UPDATE) {
        let key = source.changes_key(old, &own);
        match trigger::lock_for(&source, found, key, turn, cx).await? {
            RowOutcome::Done(()) => {}
            others => {
                self_modified(&others, &source, found, false, cx).await?;
                return Ok(others.map(|()| None));
            }
        }
        if !triggers.before_update(old, &mut own, updated, cx).await? {
            return Ok(RowOutcome::Done(None));
        }
    }
    let mut top = top_row(member, &own, width);
    let mut goes_to = member.place;
    if let Some(routing) = routing {
        let leaf = place_of(execution, cx, &top).await?;
        goes_to = leaf_or_error(leaf, table, routing.divisions(), &top, cx.env)?;
    }
    let stays = goes_to == member.place;
    let next = match routing {
        Some(routing) if !stays => routing.leaf(goes_to, cx.env.catalog, cx.env.eval)?,
        _ => &member.leaf,
    };
    let of_plan = match stays {
        true => LeafOf::Family(at),
        false => LeafOf::Routing(goes_to),
    };
    let outcome = if stays {
        complete_leaf(execution, cx, &next.table, &mut own, of_plan).await?;
        next.give_computed(&own, &mut top);
        store_update(&source, found, old, &own, turn, cx).await?
    } else {
        may_leave(&member.leaf.table, cx)?;
        if let Some(triggers) = source.locks_first(fires::DELETE) {
            match trigger::lock_for(&source, found, true, turn, cx).await? {
                RowOutcome::Done(()) => {}
                others => {
                    self_modified(&others, &source, found, false, cx).await?;
                    return Ok(others.map(|()| None));
                }
            }
            if !triggers.before_delete(old, cx).await? {
                return Ok(RowOutcome::Done(None));
            }
        }
        let mut moved = next.row(&top);
        let to = places.get(goes_to, &next.table, &[], alone, cx)?;
        let to = to.target.clone();
        let arrives = match to.locks_first(fires::INSERT) {
            Some(triggers) => triggers.before_insert(&mut moved, cx).await?,
            None => true,
        };
        if to.locks_first(fires::INSERT).is_some() {
            must_take(&next.table, &moved, cx.env.catalog, cx).await?;
            top = next.row_of_top(&moved, width);
        }
        complete_leaf(execution, cx, &next.table, &mut moved, of_plan).await?;
        next.give_computed(&moved, &mut top);
        let taken_out = source.table.rows().take_out(cx.txn, found, turn).await?;
        match taken_out.done() {
            Ok(()) => {
                source.after_delete(old, found.tid, cx).await?;
                if !arrives {
                    return Ok(RowOutcome::Done(None));
                }
                let tid = insert_row(&to, &moved, cx).await?;
                let keys = &mut places.get(goes_to, &next.table, &[], alone, cx)?.keys;
                keys.inserted(&moved, tid, cx).await?;
                to.after_insert(&moved, tid, cx).await?;
                RowOutcome::Done(tid)
            }
            Err(instead) => instead,
        }
    };
    let tid = match outcome {
        RowOutcome::Done(tid) => tid,
        others => {
            self_modified(&others, &source, found, false, cx).await?;
            return Ok(others.map(|_| None));
        }
    };
    check_views(execution, cx, table, &top).await?;
    let keys = &mut places
        .get(member.place, &member.leaf.table, &[], alone, cx)?
        .keys;
    match stays {
        true => {
            keys.updated((old, found.tid), (&own, tid), cx).await?;
            let versions = ((&old[..], found.tid), (&own[..], tid));
            source
                .after_update(versions.0, versions.1, updated, cx)
                .await?;
        }
        false => keys.moved((old, found.tid), &own, cx)?,
    }
    if named.keeps_rows() {
        let old_top = top_row(member, old, width);
        named.changed(fires::UPDATE, Some(&old_top), Some(&top))?;
    }
    Ok(RowOutcome::Done(Some(Stored {
        tid,
        table: next.table.oid,
        top,
    })))
}

/// A member's row as one of the table that the statement names.
pub(super) fn top_row(member: &throng_plan::Member, own: &[Datum], width: usize) -> Row {
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

pub(super) async fn delete(
    execution: &mut Execution,
    node: &DeleteNode,
    family: &InheritedTarget,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<(u64, Vec<ForeignKeys>)> {
    let alone = execution.writes_once();
    let mut places = WriteTargets::default();
    let named = Named::begin_over(&node.table, &[fires::DELETE], &[], cx).await?;
    let mut input = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut input).await? {
        let Some(at) = member_of(family, &input) else {
            continue;
        };
        let member = &family.members[at];
        let place = places.get(member.place, &member.leaf.table, &[], alone, cx)?;
        let Some(mut found) = row_ref(&place.target, &input[node.tid as usize]).await? else {
            continue;
        };
        let mut turn = RowTurn::default();
        loop {
            let has_triggers = place.target.triggers.is_some();
            let old = match place.keys.is_referenced() || has_triggers || named.keeps_rows() {
                true => read_row(&place.target, found.tid).await?,
                false => None,
            };
            if let (Some(triggers), Some(old)) = (place.target.locks_first(fires::DELETE), &old) {
                match trigger::lock_for(&place.target, found, true, &mut turn, cx).await? {
                    RowOutcome::Done(()) => {}
                    others => {
                        self_modified(&others, &place.target, found, true, cx).await?;
                        let newest =
                            newest_of(others, execution, member.rel, cx, &mut input).await?;
                        let Some(newest) = newest else { break };
                        found = newest;
                        continue;
                    }
                }
                if !triggers.before_delete(old, cx).await? {
                    break;
                }
            }
            match place
                .target
                .table
                .rows()
                .delete(cx.txn, found, &mut turn)
                .await?
            {
                RowOutcome::Done(()) => {
                    drop(turn);
                    if let Some(old) = old {
                        place.keys.deleted(&old, found.tid, cx).await?;
                        place.target.after_delete(&old, found.tid, cx).await?;
                        if named.keeps_rows() {
                            let top = top_row(member, &old, node.table.columns.len());
                            named.changed(fires::DELETE, Some(&top), None)?;
                        }
                    }
                    count += 1;
                    give(execution, cx, &input, returning).await?;
                    break;
                }
                others => {
                    self_modified(&others, &place.target, found, true, cx).await?;
                    let newest = newest_of(others, execution, member.rel, cx, &mut input).await?;
                    let Some(newest) = newest else { break };
                    found = newest;
                }
            }
        }
    }
    named.end(&[], cx).await?;
    Ok((count, places.keys()))
}
