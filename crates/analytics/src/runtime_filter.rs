//! What a join's table lets through, told to the scan under its other side: rows without a partner
//! are not even taken out of their pages.
//!
//! ```text
//! build side ─► GatherStep ─► HashJoinExec ◄─ … ◄─ Scan
//!                   └─ keys seen, once all are ──────▲      a Bloom filter of a word a key (Putze, Sanders and Singler, 2007)
//! ```
//! A join reads its build side to the end before it asks for the first row of the other, so the
//! filter is there in time; a scan that is asked earlier goes without. It lets through what it
//! must, and little else.

use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, Int16Type, Int32Type, Int64Type, UInt32Type,
};
use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use futures::StreamExt;
use throng_bind::expr::Expr;
use throng_bind::query::JoinKind;
use throng_plan::{HashJoin, Node, Plan};

use crate::column::Kind;
use crate::execution_node::{Batches, PlanRef, Step};

/// Words of a filter: 512 bytes at least, 4 MB at most.
const LEAST: usize = 1 << 6;
const MOST: usize = 1 << 19;
/// Keys for each word beyond which it lets too much through.
const KEYS_A_WORD: usize = 8;

/// The keys of a join's table, once they are known.
#[derive(Default)]
pub struct RuntimeFilter {
    words: OnceLock<Box<[u64]>>,
}

/// Whether a filter can be made of values of a kind.
pub fn takes(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid | Kind::Date | Kind::Timestamp
    )
}

/// A key's word, and its bits there.
fn place(key: i64, words: usize) -> (usize, u64) {
    let mut hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
    ((hash >> 40) as usize & (words - 1), bits)
}

/// Calls `f` with each value of a key column; NULLs meet nobody and are left out.
fn each(kind: Kind, column: &ArrayRef, f: &mut dyn FnMut(usize, i64)) {
    fn all<T: ArrowPrimitiveType>(column: &ArrayRef, f: &mut dyn FnMut(usize, i64))
    where
        T::Native: Into<i64>,
    {
        let column = column.as_primitive::<T>();
        for (at, value) in column.values().iter().enumerate() {
            if column.is_valid(at) {
                f(at, (*value).into());
            }
        }
    }
    match kind {
        Kind::Int2 => all::<Int16Type>(column, f),
        Kind::Int4 | Kind::Date => all::<Int32Type>(column, f),
        Kind::Oid => all::<UInt32Type>(column, f),
        _ => all::<Int64Type>(column, f),
    }
}

impl RuntimeFilter {
    pub fn is_ready(&self) -> bool {
        self.words.get().is_some()
    }

    /// Clears the marks of the rows whose key has no partner; `rows` are the places of the column's
    /// values.
    pub fn pass(&self, kind: Kind, column: &ArrayRef, rows: &[usize], marks: &mut [bool]) {
        let Some(words) = self.words.get() else {
            return;
        };
        for row in rows {
            marks[*row] = false;
        }
        each(kind, column, &mut |at, key| {
            let (word, bits) = place(key, words.len());
            marks[rows[at]] = words[word] & bits == bits;
        });
    }
}

/// A key column to be gathered.
#[derive(Clone)]
pub struct Gathered {
    pub sieve: Arc<RuntimeFilter>,
    pub column: usize,
    pub kind: Kind,
}

/// Notes the keys of the rows that go by.
pub struct GatherStep {
    pub keys: Vec<Gathered>,
    /// About how many rows there will be.
    pub rows: f64,
}

impl Step for GatherStep {
    fn run(&self, partition: usize, inputs: &[PlanRef], cx: Arc<TaskContext>) -> DfResult<Batches> {
        let words = (self.rows / (KEYS_A_WORD / 2) as f64) as usize;
        let words = words.clamp(LEAST, MOST).next_power_of_two();
        let mut filters: Vec<(Gathered, Box<[u64]>)> = self
            .keys
            .iter()
            .map(|key| (key.clone(), vec![0; words].into_boxed_slice()))
            .collect();
        let mut seen = 0;
        let input = inputs[0].execute(partition, cx)?;
        let batches = input.map(Some).chain(futures::stream::iter([None]));
        let batches = batches.filter_map(move |batch| {
            match &batch {
                Some(Ok(batch)) => {
                    seen += batch.num_rows();
                    for (key, words) in &mut filters {
                        each(key.kind, batch.column(key.column), &mut |_, value| {
                            let (word, bits) = place(value, words.len());
                            words[word] |= bits;
                        });
                    }
                }
                Some(Err(_)) => seen = usize::MAX / 2,
                // All went by.
                None if seen <= words * KEYS_A_WORD => {
                    for (key, words) in filters.drain(..) {
                        // Who is told twice knew it before.
                        let _ = key.sieve.words.set(words);
                    }
                }
                None => {}
            }
            std::future::ready(batch)
        });
        Ok(batches.boxed())
    }
}

/// Whether rows of the side that looks up need not be looked up where they have no partner.
pub fn drops_unmatched(join: &HashJoin, builds_left: bool) -> bool {
    builds_left
        || matches!(
            join.kind,
            JoinKind::Inner | JoinKind::Semi | JoinKind::Right
        )
}

/// The scan whose column an expression over a plan's rows is, where leaving out rows there leaves
/// out those alone that it is of: its operator's number, and the column's place.
pub fn origin(plan: &Plan, expr: &Expr) -> Option<(u32, usize)> {
    let Expr::Slot(at, ty) = expr else {
        return None;
    };
    let below = |plan: &Plan, at: u32| origin(plan, &Expr::Slot(at, *ty));
    match &plan.node {
        Node::SeqScan(_) => Some((plan.id, *at as usize)),
        Node::Filter { input, .. } | Node::Materialize { input } => below(input, *at),
        Node::Project { input, exprs } => origin(input, exprs.get(*at as usize)?),
        Node::HashJoin(join) => {
            let width = join.left.types.len() as u32;
            let (keeps_left, keeps_right) = match join.kind {
                JoinKind::Inner => (true, true),
                JoinKind::Left | JoinKind::Semi | JoinKind::Anti => (true, false),
                JoinKind::Right => (false, true),
                JoinKind::Full => (false, false),
            };
            match *at < width {
                true if keeps_left => below(&join.left, *at),
                false if keeps_right => below(&join.right, *at - width),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int32Array;

    #[test]
    fn all_keys_pass_and_few_others() {
        let mut words = vec![0u64; 1 << 10].into_boxed_slice();
        for key in 0..4000 {
            let (word, bits) = place(key * 7, words.len());
            words[word] |= bits;
        }
        let sieve = RuntimeFilter::default();
        assert!(!sieve.is_ready() && sieve.words.set(words).is_ok());
        let values: Vec<Option<i32>> = (0..28_000).map(|i| (i % 1000 != 3).then_some(i)).collect();
        let column: ArrayRef = Arc::new(Int32Array::from(values));
        let rows: Vec<usize> = (0..28_000).collect();
        let mut marks = vec![true; 28_000];
        sieve.pass(Kind::Int4, &column, &rows, &mut marks);
        assert!((0..28_000).all(|i| i % 7 != 0 || i % 1000 == 3 || marks[i]));
        let wrong = (0..28_000).filter(|i| i % 7 != 0 && marks[*i]).count();
        assert!(wrong < 2400, "{wrong}");
        assert!(!marks[3] && !marks[1003]);
    }
}
