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
use throng_bind::route::{Division, Level, Next, Routing};
use throng_catalog::{Catalog, TableDef};
use throng_plan::{Node, Plan};
use throng_types::error::state;
use throng_types::lexical::quote_ident;
use throng_types::{Datum, Error, Oid, Result, SqlType};
use throng_values::func::EvalContext;
use throng_values::io::output_text;

use super::foreign::ForeignKeys;
use super::{Compute, Context, Target, evaluate, row};
use crate::run::Step;
use crate::run::build::Execution;
use crate::run::context::{Cx, Env};
use crate::run::eval::eval;

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

pub(super) fn routing_of(plan: &Plan) -> Option<&Routing> {
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
