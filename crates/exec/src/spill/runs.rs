//! Rows in memory, sorted run by run, so that no call takes long.
//!
//! ```text
//! add ─► the run in hand ──full──► sorted ─► runs ─┬─ finish ─► a heap of their first rows ─► next
//!                                                  └─ take: into a file
//! ```
//! Rows with equal keys keep the order in which they were added: within a run by a stable sort,
//! beyond it by the run's number.

use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use super::merge::Top;
use crate::run::Row;

/// Rows of a run: sorting them takes about a millisecond.
const RUN: usize = if cfg!(test) { 4 } else { 4096 };

pub(super) type Keyed = (Box<[u8]>, Row);

#[derive(Default)]
pub(super) struct Runs {
    /// All but the last are sorted; that one is, too, once there are [`tops`](Self::tops).
    runs: VecDeque<VecDeque<Keyed>>,
    /// Of each run, once rows are given out.
    tops: Option<BinaryHeap<Top<Box<[u8]>, Row>>>,
}

impl Runs {
    pub fn add(&mut self, row: Keyed) {
        match self.runs.back_mut() {
            Some(run) if run.len() < RUN => run.push_back(row),
            _ => {
                self.sort_last();
                self.runs.push_back(VecDeque::from([row]));
            }
        }
    }

    fn sort_last(&mut self) {
        if let Some(run) = self.runs.back_mut() {
            let rows = run.make_contiguous();
            rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
    }

    pub fn is_empty(&self) -> bool {
        let given = self.tops.as_ref().is_none_or(BinaryHeap::is_empty);
        given && self.runs.iter().all(VecDeque::is_empty)
    }

    /// One of the rows, while none has been given in order: of equal keys the first one that was
    /// added.
    pub fn take(&mut self) -> Option<Keyed> {
        if self.runs.len() == 1 {
            // It may not be full, and goes on to be filled.
            self.sort_last();
        }
        let run = self.runs.front_mut()?;
        let row = run.pop_front();
        if run.is_empty() {
            self.runs.pop_front();
        }
        row
    }

    /// All rows have been added.
    pub fn finish(&mut self) {
        if self.tops.is_some() {
            return;
        }
        self.sort_last();
        let first = |(run, rows): (usize, &mut VecDeque<Keyed>)| {
            let (key, row) = rows.pop_front()?;
            Some(Top { key, run, row })
        };
        let tops = self.runs.iter_mut().enumerate().filter_map(first).collect();
        self.tops = Some(tops);
    }

    /// The next row, after [`finish`](Self::finish).
    pub fn next(&mut self) -> Option<Keyed> {
        let mut top = self.tops.as_mut()?.peek_mut()?;
        let Some((key, row)) = self.runs[top.run].pop_front() else {
            let last = PeekMut::pop(top);
            return Some((last.key, last.row));
        };
        let key = std::mem::replace(&mut top.key, key);
        Some((key, std::mem::replace(&mut top.row, row)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use throng_types::Datum;

    use super::*;

    fn keyed(key: u8, number: usize) -> Keyed {
        (Box::from([key]), vec![Datum::Int4(number as i32)])
    }

    proptest! {
        /// As a stable sort of all rows, whether they are given in order or taken in part first.
        #[test]
        fn rows_come_as_by_a_stable_sort(keys in prop::collection::vec(0..5u8, 0..60), taken in 0..60usize) {
            let mut runs = Runs::default();
            let rows = keys.iter().enumerate().map(|(number, key)| keyed(*key, number));
            rows.clone().for_each(|row| runs.add(row));
            let mut early: Vec<Keyed> = (0..taken).map_while(|_| runs.take()).collect();
            prop_assert_eq!(early.len(), taken.min(keys.len()));
            runs.finish();
            let rest: Vec<Keyed> = std::iter::from_fn(|| runs.next()).collect();
            prop_assert!(rest.is_sorted_by(|a, b| a.0 <= b.0));
            prop_assert!(runs.is_empty() || rest.is_empty());
            // Taken ones are of the first runs, so a stable sort of both together is one of all.
            early.extend(rest);
            early.sort_by(|a, b| a.0.cmp(&b.0));
            let mut all: Vec<Keyed> = rows.collect();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            prop_assert_eq!(early, all);
        }
    }
}
