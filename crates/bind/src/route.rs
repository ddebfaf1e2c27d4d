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

use crate::tree::expr::Expr;
use crate::tree::query::CheckExpr;
use throng_catalog::TableDef;
use throng_catalog::partition::Partitions;

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
    pub(crate) leaves: Vec<OnceLock<Box<Leaf>>>,
    /// The partitioned tables above.
    pub within: Vec<Level>,
}

impl Tree {
    /// Whether all keys are plain columns, so that nothing but tables' definitions tells what it
    /// is.
    pub fn is_of_columns(&self) -> bool {
        let keys = self.divisions.iter().flat_map(|d| &d.table.partitioned);
        keys.flat_map(|key| &key.parts).all(|part| part.attnum != 0)
    }
}

impl Routing {
    pub fn divisions(&self) -> &[Division] {
        &self.tree.divisions
    }

    /// A leaf that was asked for before.
    pub fn known_leaf(&self, at: usize) -> Option<&Leaf> {
        self.leaves.get(at)?.get().map(|leaf| &**leaf)
    }
}

impl Leaf {
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
    /// Whether a row with this key is one of the partition's.
    pub fn takes(&self, key: &[Datum]) -> Result<bool> {
        Ok(self.parts.find(key)? == Some(self.part))
    }
}
