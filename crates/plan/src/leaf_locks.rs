//! Locks of partitions that a statement takes only where it comes to them: which ones is told by
//! values that are known when it begins, its parameters' and what `now()` and its kin give.
//!
//! | statement | partitions |
//! | --- | --- |
//! | reads, changes or locks rows of a partitioned table | those that conditions leave over |
//! | INSERT of rows that are written out | those that the rows go to |
//!
//! Where the values are not enough, all are locked.

use std::sync::Arc;

use throng_bind::fold;
use throng_syntax::vocabulary::TableLock;
use throng_types::{Datum, Oid, Result};

use super::{Node, Plan, PlannedStatement, Planner, Pruning, prune};
use throng_bind::expr::{Expr, RelId};
use throng_bind::route::{Division, Next, Tree};

/// More rows of an INSERT than this are not looked at one by one.
const MOST_ROWS: usize = 256;

/// Locks of a partitioned table's leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafLocks {
    /// The entry whose rows they are of.
    pub(super) rel: RelId,
    pub tree: Arc<Tree>,
    pub chosen: Chosen,
    /// The leaf, by place, its table and how it is locked.
    pub locks: Vec<(usize, Oid, TableLock)>,
}

/// What chooses leaves.
#[derive(Clone, Debug, PartialEq)]
pub enum Chosen {
    /// Conditions as those of [`Pruning`], with values that are known when the statement begins.
    ByConditions {
        conditions: Vec<Expr>,
        values: Vec<Expr>,
    },
    /// New rows: of each the columns that the keys are made of, by place, and how wide it is.
    ByRows {
        rows: Vec<Vec<(u32, Expr)>>,
        width: usize,
    },
}

/// Whether a value is known before the statement runs.
fn is_known(expr: &Expr) -> bool {
    !expr.any(&mut |e| fold::varies(e) || fold::is_volatile(e))
}

impl Chosen {
    /// What of a pruning is known when the statement begins; None where nothing is.
    pub(super) fn at_start(pruning: &Pruning) -> Option<Chosen> {
        let known: Vec<bool> = pruning.values.iter().map(is_known).collect();
        let waits = |e: &Expr| match e {
            Expr::Outer(param, _) => !known.get(param.0 as usize).is_some_and(|known| *known),
            _ => false,
        };
        let conditions = pruning.conditions.iter();
        let conditions: Vec<Expr> = conditions
            .filter(|c| !c.any(&mut |e| waits(e)))
            .cloned()
            .collect();
        if conditions.is_empty() {
            return None;
        }
        let value = |(value, known): (&Expr, &bool)| match known {
            true => value.clone(),
            false => Expr::null(value.ty()),
        };
        Some(Chosen::ByConditions {
            conditions,
            values: pruning.values.iter().zip(&known).map(value).collect(),
        })
    }

    /// The leaves that rows of a plan go to; None where that is not known when the statement
    /// begins.
    pub(super) fn of_rows(input: &Plan, tree: &Tree, width: usize) -> Option<Chosen> {
        let mut places: Vec<u32> = Vec::new();
        for key in tree.divisions.iter().flat_map(|division| &division.key) {
            key.any(&mut |e| {
                if let Expr::Slot(slot, _) = e {
                    places.push(*slot);
                }
                false
            });
        }
        places.sort_unstable();
        places.dedup();
        let (rows, exprs) = match &input.node {
            Node::Values { rows } => (rows, None),
            Node::Project { input, exprs } => match &input.node {
                Node::Values { rows } => (rows, Some(exprs)),
                _ => return None,
            },
            _ => return None,
        };
        if rows.len() > MOST_ROWS {
            return None;
        }
        let value = |row: &[Expr], place: u32| {
            let own = match exprs {
                Some(exprs) => over(exprs.get(place as usize)?, row),
                None => row.get(place as usize)?.clone(),
            };
            is_known(&own).then_some((place, own))
        };
        let of_row = |row: &Vec<Expr>| places.iter().map(|place| value(row, *place)).collect();
        Some(Chosen::ByRows {
            rows: rows.iter().map(of_row).collect::<Option<_>>()?,
            width,
        })
    }
}

/// An expression over a row that is written out.
fn over(expr: &Expr, row: &[Expr]) -> Expr {
    if let Expr::Slot(slot, _) = expr
        && let Some(value) = row.get(*slot as usize)
    {
        return value.clone();
    }
    let mut expr = expr.clone();
    expr.for_each_child_mut(&mut |child| *child = over(child, row));
    expr
}

/// The leaf of a new row; None where it has none.
fn leaf_of(
    divisions: &[Division],
    row: &[Datum],
    eval: &mut dyn FnMut(&Expr) -> Result<Datum>,
) -> Result<Option<usize>> {
    let mut at = 0;
    while let Some(division) = divisions.get(at) {
        let mut key = Vec::with_capacity(division.key.len());
        for part in &division.key {
            key.push(match part {
                Expr::Slot(slot, _) => row[*slot as usize].clone(),
                part => eval(&with_row(part, row))?,
            });
        }
        let part = division.parts.find(&key)?;
        match part.and_then(|part| division.next.get(part)) {
            None => return Ok(None),
            Some(Next::Leaf(leaf)) => return Ok(Some(*leaf)),
            Some(Next::Division(next)) => at = *next,
        }
    }
    Ok(None)
}

fn with_row(expr: &Expr, row: &[Datum]) -> Expr {
    if let Expr::Slot(slot, ty) = expr {
        return Expr::Const(row[*slot as usize].clone(), *ty);
    }
    let mut expr = expr.clone();
    expr.for_each_child_mut(&mut |child| *child = with_row(child, row));
    expr
}

impl LeafLocks {
    /// The locks to take. `eval` computes what has no input row.
    ///
    /// # Errors
    /// Those of computing values: then the statement may need any of them.
    pub fn needed(
        &self,
        eval: &mut dyn FnMut(&Expr) -> Result<Datum>,
    ) -> Result<Vec<(Oid, TableLock)>> {
        let leaves = match &self.chosen {
            Chosen::ByConditions { conditions, values } => {
                let values = values.iter().map(&mut *eval).collect::<Result<Vec<_>>>()?;
                prune::leaves(
                    &self.tree.divisions,
                    &prune::with_values(conditions, &values),
                )?
            }
            Chosen::ByRows { rows, width } => {
                let mut leaves = std::collections::BTreeSet::new();
                for columns in rows {
                    let mut row = vec![Datum::Null; *width];
                    for (place, value) in columns {
                        row[*place as usize] = eval(value)?;
                    }
                    leaves.extend(leaf_of(&self.tree.divisions, &row, eval)?);
                }
                leaves
            }
        };
        let taken = self.locks.iter().filter(|(leaf, ..)| leaves.contains(leaf));
        Ok(taken.map(|(_, oid, mode)| (*oid, *mode)).collect())
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (Oid, TableLock)> {
        self.locks.iter().map(|(_, oid, mode)| (*oid, *mode))
    }
}

impl PlannedStatement {
    /// Tables that it may lock, in no order: those that it locks, and those of which values choose.
    pub fn all_locks(&self) -> impl Iterator<Item = (Oid, TableLock)> {
        let leaves = self.leaf_locks.iter().flat_map(LeafLocks::all);
        self.locks.iter().copied().chain(leaves)
    }
}

impl Planner<'_> {
    /// A leaf of an entry is to be locked, as strongly as that where it is locked at all.
    pub(super) fn lock_leaf(&mut self, rel: RelId, place: usize, table: Oid, mode: TableLock) {
        let mut found = false;
        for group in self.leaf_locks.iter_mut().filter(|group| group.rel == rel) {
            if let Ok(at) = group.locks.binary_search_by_key(&place, |(leaf, ..)| *leaf) {
                let held = &mut group.locks[at].2;
                *held = (*held).max(mode);
                found = true;
            }
        }
        if !found {
            self.lock(table, mode);
        }
    }
}
