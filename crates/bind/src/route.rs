//! Where rows of a partitioned table go: the table's division, its partitions' divisions, down to
//! the tables that have rows.
//!
//! ```text
//! row of the table ─► key of division 0 ─► partition ─┬─► leaf
//!                                                     └─► key of division 1 ─► … ─► leaf
//! ```
//! All keys are expressions over the row of the table it begins with, whatever the order of a
//! partition's own columns.

use std::sync::{Arc, OnceLock};

use throng_types::{Datum, Result};

use crate::binder::{row_expr, stored_checks, stored_context, stored_values};
use crate::expr::Expr;
use crate::query::CheckExpr;
use throng_catalog::partition::{Partitions, columns_in_parent};
use throng_catalog::{Catalog, TableDef};
use throng_values::func::EvalContext;

/// A partitioned table's division into parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    pub table: Arc<TableDef>,
    /// Over the row of the table at the top, by `Slot(attnum - 1)`.
    pub key: Vec<Expr>,
    pub parts: Arc<Partitions>,
    /// For each part.
    pub next: Vec<Next>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Division(usize),
    Leaf(usize),
}

/// A partitioned table's divisions, its own first, and its leaves in the order of their bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    pub divisions: Vec<Division>,
    pub leaves: Vec<Arc<TableDef>>,
}

/// A partitioned table above a partition, as the partition's rows must fit it.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Over the partition's row.
    pub key: Vec<Expr>,
    pub parts: Arc<Partitions>,
    /// The part that the partition is, or is in.
    pub part: usize,
}

/// A table in which rows are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    pub table: Arc<TableDef>,
    /// For each of its columns the place in the row of the table at the top; empty: the row as it
    /// is.
    pub columns: Vec<Option<u32>>,
    /// The columns that are computed from the others, over its own row.
    pub generated: Vec<(u16, Expr)>,
    /// Over its own row.
    pub checks: Vec<CheckExpr>,
}

/// All that is needed to put rows of a table into its partitions, and to refuse those that a
/// partition does not take.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    pub table: Arc<TableDef>,
    /// Without divisions where the table is not partitioned: then it is the one leaf.
    pub tree: Arc<Tree>,
    /// Those that rows have come to.
    leaves: Vec<OnceLock<Box<Leaf>>>,
    /// The partitioned tables above.
    pub within: Vec<Level>,
}

/// The key of a partitioned table, over the row of `top`.
fn key_over(
    table: &TableDef,
    top: &TableDef,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<Vec<Expr>> {
    let places = columns_in_parent(table, top);
    let ctx = stored_context(catalog, eval);
    let mut key = Vec::new();
    for part in table.partitioned.iter().flat_map(|key| &key.parts) {
        let own = match &part.expr {
            Some(text) => row_expr(&ctx, table, text, None)?,
            None => Expr::Slot(u32::from(part.attnum) - 1, part.ty),
        };
        key.push(moved(own, &places));
    }
    Ok(key)
}

fn moved(mut expr: Expr, places: &[Option<u16>]) -> Expr {
    if let Expr::Slot(slot, ty) = &expr {
        let place = places.get(*slot as usize).copied().flatten();
        return match place {
            Some(attnum) => Expr::Slot(u32::from(attnum) - 1, *ty),
            None => Expr::null(*ty),
        };
    }
    expr.for_each_child_mut(&mut |e| {
        *e = moved(std::mem::replace(e, Expr::bool(true)), places);
    });
    expr
}

/// A partitioned table's divisions and leaves.
///
/// # Errors
/// XX000 for a table that is not partitioned.
pub fn tree_of(
    table: &Arc<TableDef>,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<Arc<Tree>> {
    let kept = catalog.derived_of(table.oid);
    let tree = kept.and_then(|kept| kept.get()?.clone().downcast::<Tree>().ok());
    let is_current = |tree: &Arc<Tree>| {
        let top = tree.divisions.first();
        top.is_some_and(|top| Arc::ptr_eq(&top.table, table))
    };
    if let Some(tree) = tree.filter(is_current) {
        return Ok(tree);
    }
    let tree = Arc::new(Tree::of(table, catalog, eval)?);
    if let Some(kept) = kept.filter(|_| tree.is_of_columns()) {
        // Another thread may have been quicker with the same.
        let _ = kept.set(tree.clone());
    }
    Ok(tree)
}

impl Tree {
    pub fn of(table: &Arc<TableDef>, catalog: &Catalog, eval: EvalContext<'_>) -> Result<Tree> {
        let mut tree = Tree::default();
        tree.add(table, table, catalog, eval)?;
        Ok(tree)
    }

    /// Whether all keys are plain columns, so that nothing but tables' definitions tells what it
    /// is.
    pub fn is_of_columns(&self) -> bool {
        let keys = self.divisions.iter().flat_map(|d| &d.table.partitioned);
        keys.flat_map(|key| &key.parts).all(|part| part.attnum != 0)
    }

    fn add(
        &mut self,
        table: &Arc<TableDef>,
        top: &TableDef,
        catalog: &Catalog,
        eval: EvalContext<'_>,
    ) -> Result<usize> {
        let at = self.divisions.len();
        let parts = catalog.partitions_of(table, eval)?;
        let next = Vec::with_capacity(parts.parts.len());
        self.divisions.push(Division {
            table: table.clone(),
            key: key_over(table, top, catalog, eval)?,
            parts: parts.clone(),
            next,
        });
        for oid in &parts.parts {
            let Some(part) = catalog.table(*oid) else {
                continue;
            };
            let next = match part.is_partitioned() {
                true => Next::Division(self.add(part, top, catalog, eval)?),
                false => {
                    self.leaves.push(part.clone());
                    Next::Leaf(self.leaves.len() - 1)
                }
            };
            self.divisions[at].next.push(next);
        }
        Ok(at)
    }
}

impl Routing {
    /// None where the table is neither partitioned nor a partition: its rows are stored in it.
    pub fn of(
        table: &Arc<TableDef>,
        catalog: &Catalog,
        eval: EvalContext<'_>,
    ) -> Result<Option<Routing>> {
        if !table.is_partitioned() && table.bound.is_none() {
            return Ok(None);
        }
        let within = Level::above(table, catalog, eval)?;
        let tree = match table.is_partitioned() {
            true => tree_of(table, catalog, eval)?,
            false => Arc::new(Tree {
                divisions: Vec::new(),
                leaves: vec![table.clone()],
            }),
        };
        let leaves = tree.leaves.iter().map(|_| OnceLock::new()).collect();
        Ok(Some(Routing {
            table: table.clone(),
            tree,
            leaves,
            within,
        }))
    }

    pub fn divisions(&self) -> &[Division] {
        &self.tree.divisions
    }

    /// Makes known what a leaf asks of its rows, if nobody has asked before.
    ///
    /// # Errors
    /// Those of reading its definition's texts.
    pub fn leaf(&self, at: usize, catalog: &Catalog, eval: EvalContext<'_>) -> Result<&Leaf> {
        if let Some(leaf) = self.leaves[at].get() {
            return Ok(leaf);
        }
        let leaf = Leaf::of(&self.tree.leaves[at], &self.table, catalog, eval)?;
        Ok(self.leaves[at].get_or_init(|| Box::new(leaf)))
    }

    /// A leaf that was asked for before.
    pub fn known_leaf(&self, at: usize) -> Option<&Leaf> {
        self.leaves.get(at)?.get().map(|leaf| &**leaf)
    }
}

impl Leaf {
    pub fn of(
        table: &Arc<TableDef>,
        top: &TableDef,
        catalog: &Catalog,
        eval: EvalContext<'_>,
    ) -> Result<Leaf> {
        let columns: Vec<Option<u32>> = columns_in_parent(table, top)
            .into_iter()
            .map(|place| place.map(|attnum| u32::from(attnum) - 1))
            .collect();
        let same = columns.len() == top.columns.len()
            && columns
                .iter()
                .enumerate()
                .all(|(at, place)| place.is_none_or(|place| place as usize == at));
        Ok(Leaf {
            table: table.clone(),
            columns: if same { Vec::new() } else { columns },
            generated: stored_values(table, catalog, eval)?,
            checks: stored_checks(table, catalog, eval)?,
        })
    }

    /// The attribute number of the column at a place of the table at the top.
    pub fn attnum_of_top(&self, place: usize) -> Option<u16> {
        let at = match self.columns.is_empty() {
            true => place,
            false => {
                let is_it = |c: &Option<u32>| c.is_some_and(|at| at as usize == place);
                self.columns.iter().position(is_it)?
            }
        };
        Some(at as u16 + 1)
    }

    /// The table's row of a row of the table at the top.
    pub fn row(&self, top: &[Datum]) -> Vec<Datum> {
        if self.columns.is_empty() {
            return top[..self.table.columns.len()].to_vec();
        }
        let place = |place: &Option<u32>| place.map_or(Datum::Null, |at| top[at as usize].clone());
        self.columns.iter().map(place).collect()
    }

    /// Puts what was computed in the table's row into that of the table at the top.
    pub fn give_computed(&self, own: &[Datum], top: &mut [Datum]) {
        for (attnum, _) in &self.generated {
            let at = usize::from(*attnum) - 1;
            let place = match self.columns.get(at) {
                Some(place) => *place,
                None => Some(at as u32),
            };
            if let Some(place) = place {
                top[place as usize] = own[at].clone();
            }
        }
    }

    /// The row of the table at the top, `width` columns wide, of a row of this one.
    pub fn row_of_top(&self, own: &[Datum], width: usize) -> Vec<Datum> {
        if self.columns.is_empty() {
            return own[..width].to_vec();
        }
        let mut row = vec![Datum::Null; width];
        for (value, place) in own.iter().zip(&self.columns) {
            if let Some(at) = place {
                row[*at as usize] = value.clone();
            }
        }
        row
    }
}

impl Level {
    /// The partitioned tables above a partition, the nearest first.
    pub fn above(
        table: &Arc<TableDef>,
        catalog: &Catalog,
        eval: EvalContext<'_>,
    ) -> Result<Vec<Level>> {
        let mut levels = Vec::new();
        let mut below = table.oid;
        let attached;
        let mut catalog = catalog;
        if !catalog.detaching().is_empty() {
            // Until it has gone it takes what it took.
            let mut parts = catalog.ancestors(table);
            parts.push(table.oid);
            parts.retain(|oid| catalog.detaching().contains(oid));
            attached = Arc::new(catalog.clone()).with_attached(&parts);
            catalog = &attached;
        }
        for ancestor in catalog.ancestors(table) {
            let Some(def) = catalog.table(ancestor) else {
                break;
            };
            let parts = catalog.partitions_of(def, eval)?;
            let part = parts.parts.iter().position(|part| *part == below);
            levels.push(Level {
                key: key_over(def, table, catalog, eval)?,
                parts,
                part: part.unwrap_or(usize::MAX),
            });
            below = ancestor;
        }
        Ok(levels)
    }

    /// Whether a row with this key is one of the partition's.
    pub fn takes(&self, key: &[Datum]) -> Result<bool> {
        Ok(self.parts.find(key)? == Some(self.part))
    }
}
