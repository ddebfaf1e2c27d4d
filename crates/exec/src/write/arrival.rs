//! A new row on its way into its table: INSERT's and MERGE's.
//!
//! ```text
//! new row ─► its leaf (23514) ─► BEFORE INSERT ─► computed columns, NOT NULL, CHECK ─► stored, or its ON CONFLICT settled
//!                                                                                          │
//!                              RETURNING ◄─ AFTER INSERT is queued ◄─ foreign keys ◄───────┘
//! ```
//! A table without partitions is the one leaf of itself, whose rows need no other form.

use std::sync::Arc;

use throng_bind::route::Routing;
use throng_catalog::{TableDef, fires};
use throng_plan::InsertNode;
use throng_types::{Datum, Error, Oid, Result, Tid};

use super::conflict::{self, Settled};
use super::foreign::ForeignKeys;
use super::partition::{
    WriteTarget, WriteTargets, leaf_or_error, must_take, place_of, still_takes,
};
use super::trigger::{Named, Triggers};
use super::{Context, RowOf, Target, check_views, complete, give, insert_row, push_system};
use crate::drive::{Returning, next};
use crate::run::Row;
use crate::run::build::Execution;

/// What the new rows of a statement have in common.
pub(super) struct Arrivals<'a> {
    /// The table that the statement names.
    pub table: &'a Arc<TableDef>,
    pub routing: Option<&'a Routing>,
    pub named: &'a Named,
}

/// A row's leaf and the row as the leaf has it; none where the row goes to the table that the
/// statement names.
pub(super) type Routed = Option<(usize, Row)>;

/// The row as its table has it.
pub(super) fn own_row<'r>(routed: &'r Routed, row: &'r Row) -> &'r [Datum] {
    routed.as_ref().map_or(row, |(_, own)| own)
}

impl Arrivals<'_> {
    /// Finds a row's leaf; 23514 where it has none.
    pub async fn routed(
        &self,
        execution: &mut Execution,
        row: &Row,
        cx: &Context<'_>,
    ) -> Result<Routed> {
        let Some(routing) = self.routing else {
            return Ok(None);
        };
        let found = place_of(execution, cx, row).await?;
        let at = leaf_or_error(found, &routing.table, routing.divisions(), row, cx.env)?;
        let leaf = routing.leaf(at, cx.env.catalog, cx.env.eval)?;
        let own = leaf.row(row);
        still_takes(&leaf.table, &own, cx).await?;
        Ok(Some((at, own)))
    }

    /// Makes a row what may be stored; false where a trigger keeps it out.
    ///
    /// # Errors
    /// 23502, 23514.
    pub async fn complete(
        &self,
        execution: &mut Execution,
        target: &Target,
        routed: &mut Routed,
        row: &mut Row,
        cx: &Context<'_>,
    ) -> Result<bool> {
        let triggers = target.locks_first(fires::INSERT);
        let (Some(routing), Some((at, own))) = (self.routing, routed) else {
            if let Some(triggers) = triggers
                && !triggers.before_insert(row, cx).await?
            {
                return Ok(false);
            }
            complete(
                execution,
                cx,
                target.def(),
                RowOf::Statement.inserted(),
                row,
            )
            .await?;
            return Ok(true);
        };
        let at = *at;
        let leaf = routing.leaf(at, cx.env.catalog, cx.env.eval)?;
        if let Some(triggers) = triggers {
            if !triggers.before_insert(own, cx).await? {
                return Ok(false);
            }
            must_take(&leaf.table, own, cx.env.catalog, cx).await?;
            *row = leaf.row_of_top(own, row.len());
        }
        complete(execution, cx, &leaf.table, RowOf::Leaf(at).inserted(), own).await?;
        leaf.give_computed(own, row);
        Ok(true)
    }

    /// A row was stored: views, foreign keys and triggers learn of it. `own`, `row`: as its table
    /// has it, and as the one that the statement names.
    pub async fn stored(
        &self,
        execution: &mut Execution,
        place: &mut WriteTarget,
        (own, row): (&[Datum], &[Datum]),
        tid: Tid,
        cx: &Context<'_>,
    ) -> Result<()> {
        check_views(execution, cx, self.table, row).await?;
        place.keys.inserted(own, tid, cx).await?;
        place.target.after_insert(own, tid, cx).await?;
        self.named.changed(fires::INSERT, None, Some(row))
    }
}

pub(super) async fn insert(
    execution: &mut Execution,
    node: &InsertNode,
    cx: &Context<'_>,
    returning: &mut Returning<'_>,
) -> Result<(u64, Vec<ForeignKeys>)> {
    let routing = node.routing.as_deref();
    let alone = execution.writes_once();
    let arbiters = node.on_conflict.as_ref().map_or(&[][..], |c| &c.arbiters);
    let mut whole = match routing {
        None => Some(WriteTarget::of(&node.table, arbiters, alone, cx)?),
        Some(_) => None,
    };
    let mut leaves = WriteTargets::default();
    let triggers = match &whole {
        Some(place) => place.target.triggers.clone(),
        None => Triggers::of(&node.table, cx)?,
    };
    let set: Vec<u16> = match triggers.is_some() || routing.is_some() {
        true => set_by(node).collect(),
        false => Vec::new(),
    };
    let named = Named::begin(triggers.as_ref(), events(node), &set, cx).await?;
    let arrivals = Arrivals {
        table: &node.table,
        routing,
        named: &named,
    };
    let mut row = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut row).await? {
        let mut routed = arrivals.routed(execution, &row, cx).await?;
        let place = match (&mut whole, routing, &routed) {
            (Some(place), ..) => place,
            (None, Some(routing), Some((at, _))) => {
                leaves.get(*at, &routing.tree.leaves[*at], arbiters, alone, cx)?
            }
            _ => return Err(Error::internal("a new row without a table")),
        };
        if !arrivals
            .complete(execution, &place.target, &mut routed, &mut row, cx)
            .await?
        {
            continue;
        }
        let own = own_row(&routed, &row);
        let settled = match &node.on_conflict {
            None => Settled::Inserted(insert_row(&place.target, own, cx).await?),
            Some(on_conflict) => {
                let upsert = conflict::Upsert {
                    node,
                    on_conflict,
                    named: &named,
                    set: &set,
                    leaf: routed.as_ref().map(|(at, _)| *at),
                    proposed: &row,
                    own,
                };
                upsert.settle(execution, place, cx).await?
            }
        };
        match settled {
            Settled::Inserted(tid) => {
                arrivals
                    .stored(execution, place, (own, &row), tid, cx)
                    .await?;
                count += 1;
                push_new(&mut row, (tid, place.target.def().oid), None, node, cx);
                give(execution, cx, &row, returning).await?;
            }
            Settled::Updated(new) => {
                count += 1;
                give(execution, cx, &new, returning).await?;
            }
            Settled::KeptOut => {}
        }
    }
    named.end(&set, cx).await?;
    let mut keys = leaves.keys();
    keys.extend(whole.map(|place| place.keys));
    Ok((count, keys))
}

/// What an INSERT is to triggers: with DO UPDATE an UPDATE, too.
fn events(node: &InsertNode) -> &'static [i16] {
    let update = node.on_conflict.as_ref().and_then(|c| c.update.as_ref());
    match update {
        None => &[fires::INSERT],
        Some(_) => &[fires::INSERT, fires::UPDATE],
    }
}

/// The columns that DO UPDATE sets, of the table that the statement names.
pub(super) fn set_by(node: &InsertNode) -> impl Iterator<Item = u16> {
    let update = node.on_conflict.as_ref().and_then(|c| c.update.as_ref());
    let set = update.map_or(&[][..], |update| &update.set);
    set.iter().map(|(attnum, _)| *attnum)
}

/// The row that an INSERT returns: the new one, with its table if that is one of several, and where
/// that is asked for the one it has replaced.
pub(super) fn push_new(
    row: &mut Row,
    (tid, table): (Tid, Oid),
    replaced: Option<(&[Datum], Tid)>,
    node: &InsertNode,
    cx: &Context<'_>,
) {
    push_system(row, tid, replaced.is_some(), cx);
    if node.routing.is_some() {
        row.push(Datum::Oid(table.0));
    }
    if !node.returns_old {
        return;
    }
    match replaced {
        Some((old, tid)) => {
            row.extend_from_slice(old);
            row.push(Datum::Tid(tid));
        }
        None => row.extend(std::iter::repeat_n(
            Datum::Null,
            node.table.columns.len() + 1,
        )),
    }
}
