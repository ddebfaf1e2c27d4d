//! Routes of a partitioned table's rows, read from its definition and those of its partitions.

use std::sync::{Arc, OnceLock};

use throng_types::Result;

use super::{row_expr, stored_checks, stored_context, stored_values};
use crate::route::{Division, Leaf, Level, Next, Routing, Tree};
use crate::tree::expr::Expr;
use throng_catalog::partition::columns_in_parent;
use throng_catalog::{Catalog, TableDef};
use throng_values::func::EvalContext;

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
pub fn partition_tree(
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
            true => partition_tree(table, catalog, eval)?,
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
}
