//! Scans of several look-ups at once: of one inverted index, or of any indexes whose rows are
//! intersected and united.

use std::sync::Arc;

use throng_bind::expr::{Expr, RelId};
use throng_catalog::{IndexDef, TableDef};

use super::{Cost, KeySpan};

/// The rows that a bitmap finds, in the order in which they lie.
#[derive(Clone, Debug, PartialEq)]
pub struct BitmapScan {
    pub rel: RelId,
    pub alias: String,
    pub table: Arc<TableDef>,
    pub columns: Vec<i16>,
    pub bitmap: Bitmap,
    /// All that is asked of a row. What the bitmap says comes first: it may find too many.
    pub filter: Option<Expr>,
    /// So many conditions of the filter are what the bitmap says.
    pub rechecked: usize,
}

/// Which rows are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Bitmap {
    And(Vec<Bitmap>),
    Or(Vec<Bitmap>),
    LookUp(Box<BitmapLookUp>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct BitmapLookUp {
    pub index: Arc<IndexDef>,
    pub by: LookUpBy,
    /// What it says, over the scan's row: for EXPLAIN.
    pub condition: Option<Expr>,
    /// Of finding the entries.
    pub cost: Cost,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LookUpBy {
    /// Stretches of an ordered index, none of which skips a column.
    Spans(Vec<KeySpan>),
    /// What an inverted index is asked for: all of it.
    Keys(Vec<InvertedMatch>),
}

/// `column operator query`, by an operator class's strategy. The query has no input row.
#[derive(Clone, Debug, PartialEq)]
pub struct InvertedMatch {
    /// The place of the key column, from 0.
    pub column: u8,
    pub strategy: i16,
    pub query: Expr,
}

impl BitmapScan {
    pub(super) fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.bitmap.look_ups(&mut |look_up| {
            match &look_up.by {
                LookUpBy::Spans(spans) => spans.iter().for_each(|span| span.for_each_expr(f)),
                LookUpBy::Keys(matches) => matches.iter().for_each(|m| f(&m.query)),
            }
            look_up.condition.iter().for_each(&mut *f);
        });
        self.filter.iter().for_each(f);
    }

    /// What the bitmap says, and what else is asked of a row.
    pub fn conditions(&self) -> (&[Expr], &[Expr]) {
        let all = match &self.filter {
            None => &[],
            Some(Expr::And(parts)) => &parts[..],
            Some(one) => std::slice::from_ref(one),
        };
        all.split_at(self.rechecked.min(all.len()))
    }
}

impl Bitmap {
    /// Calls `f` on each look-up.
    pub fn look_ups<'a>(&'a self, f: &mut dyn FnMut(&'a BitmapLookUp)) {
        match self {
            Bitmap::And(parts) | Bitmap::Or(parts) => parts.iter().for_each(|p| p.look_ups(f)),
            Bitmap::LookUp(look_up) => f(look_up),
        }
    }

    /// Whether it reads an index.
    pub(super) fn reads(&self, index: throng_types::Oid) -> bool {
        let mut found = false;
        self.look_ups(&mut |look_up| found |= look_up.index.oid == index);
        found
    }
}
