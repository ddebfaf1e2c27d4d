//! UNION, INTERSECT and EXCEPT, with and without ALL.
//!
//! The right side is counted by row (except for UNION), then the left is streamed past the counts:
//!
//! | | gives a left row when |
//! | --- | --- |
//! | UNION ALL | always, then every right row |
//! | UNION | it is the first of its kind on either side |
//! | INTERSECT ALL / INTERSECT | a right twin is left to use up / exists, first time only |
//! | EXCEPT ALL / EXCEPT | no right twin is left to use up / exists, first time only |
//!
//! Counts are in memory. Where they do not fit, rows of further kinds wait for the end of both
//! sides, when they are sorted, the right side's before the left's: what is said of a kind is then
//! known when its rows come.

use throng_bind::query::SetOp;
use throng_types::{Datum, SqlType};

use super::context::RowMemory;
use super::hashed::{self, Key, RowTable};
use super::{BoxOperator, Cx, Operator, Row, Step};
use crate::spill::Sorter;

pub struct SetOperation {
    op: SetOp,
    all: bool,
    types: &'static [SqlType],
    left: BoxOperator,
    right: BoxOperator,
    /// Right rows with how many are left, and, without ALL, left rows given already.
    counts: RowTable,
    phase: Phase,
    key: Key,
    row: Row,
    kept: RowMemory,
    late: Option<Box<LateRows>>,
}

/// Rows whose kinds are not among the counts, by kind and side.
#[derive(Default)]
struct LateRows {
    sorter: Sorter,
    /// The kind in hand, and what its count would be.
    kind: Vec<u8>,
    count: i64,
}

/// The side of a row that waits.
const COUNTED: u8 = 0;
const SHOWN: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    CountRight,
    Left,
    Right,
    Late,
}

impl SetOperation {
    pub fn new(
        op: SetOp,
        all: bool,
        types: &'static [SqlType],
        left: BoxOperator,
        right: BoxOperator,
    ) -> SetOperation {
        SetOperation {
            op,
            all,
            types,
            left,
            right,
            counts: RowTable::default(),
            phase: first_phase(op),
            key: Key::default(),
            row: Row::new(),
            kept: RowMemory::default(),
            late: None,
        }
    }

    /// Makes room for the count of the current key; false if there is none, and the row is to wait.
    fn has_count(&mut self, cx: &mut Cx) -> bool {
        if self.counts.first(&self.key).is_some() {
            return true;
        }
        let bytes = hashed::row_bytes(&[]) + self.key.len();
        let fits = self.late.is_none() && self.kept.fits(bytes, cx);
        if fits {
            self.counts.insert(Some(&self.key), vec![Datum::Int8(0)]);
        }
        fits
    }

    fn wait(&mut self, side: u8, row: Row, cx: &mut Cx) -> Step<()> {
        let late = self.late.get_or_insert_default();
        let key = [self.key.bytes(), &[side]].concat();
        Ok(late.sorter.add(key.into(), row, cx)?)
    }

    fn count_up(&mut self) {
        if let Some(at) = self.counts.first(&self.key) {
            self.counts.row_mut(at)[0] = Datum::Int8(self.count_at(at) + 1);
        }
    }

    /// Whether a row with the current key is shown; false, too, of one that is to wait, which is
    /// taken.
    fn shows(&mut self, row: &mut Row, cx: &mut Cx) -> Step<bool> {
        if (self.op, self.all) == (SetOp::Union, true) {
            return Ok(true);
        }
        let notes_new = self.notes_new();
        let known = match notes_new {
            true => self.has_count(cx),
            false => self.counts.first(&self.key).is_some(),
        };
        if !known && (notes_new || self.late.is_some()) {
            self.wait(SHOWN, std::mem::take(row), cx)?;
            return Ok(false);
        }
        let place = self.counts.first(&self.key);
        let mut count = place.map_or(0, |at| self.count_at(at));
        let shown = self.shows_at(&mut count);
        if let Some(at) = place {
            self.counts.row_mut(at)[0] = Datum::Int8(count);
        }
        Ok(shown)
    }

    fn count_at(&self, at: usize) -> i64 {
        self.counts.row(at)[0].as_i64().unwrap_or(0)
    }

    /// Whether rows that have no twin on the right are noted when they come first.
    fn notes_new(&self) -> bool {
        !self.all && self.op != SetOp::Intersect
    }

    /// Whether a row is shown whose kind has this count, which changes accordingly.
    fn shows_at(&self, count: &mut i64) -> bool {
        let before = *count;
        match (self.op, self.all) {
            (SetOp::Union, true) => true,
            (SetOp::Union | SetOp::Except, false) => {
                *count += 1;
                before == 0
            }
            (SetOp::Intersect, all) => {
                *count = if all { before - 1 } else { 0 };
                before > 0
            }
            (SetOp::Except, true) => {
                *count -= 1;
                before <= 0
            }
        }
    }

    /// The next of the rows that waited.
    fn next_late(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        let Some(mut late) = self.late.take() else {
            return Ok(false);
        };
        let next = self.next_of(&mut late, cx, row);
        self.late = Some(late);
        next
    }

    fn next_of(&self, late: &mut LateRows, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        late.sorter.finish(cx)?;
        while late.sorter.next(cx, row)? {
            let (kind, side) = late.sorter.key().split_at(late.sorter.key().len() - 1);
            if kind != late.kind {
                late.kind.clear();
                late.kind.extend_from_slice(kind);
                late.count = 0;
            }
            if side == [COUNTED] {
                late.count += 1;
            } else if self.shows_at(&mut late.count) {
                return Ok(true);
            }
            cx.tick()?;
        }
        Ok(false)
    }
}

fn first_phase(op: SetOp) -> Phase {
    if op == SetOp::Union {
        Phase::Left
    } else {
        Phase::CountRight
    }
}

impl Operator for SetOperation {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            cx.tick()?;
            match self.phase {
                Phase::CountRight => {
                    if self.right.next(cx, &mut self.row)? {
                        let types = self.types.iter().map(|t| t.oid);
                        hashed::key_of_row(&self.row, types, &mut self.key)?;
                        match self.has_count(cx) {
                            true => self.count_up(),
                            false => self.wait(COUNTED, Row::new(), cx)?,
                        }
                    } else {
                        self.phase = Phase::Left;
                    }
                }
                Phase::Left | Phase::Right => {
                    let side = match self.phase {
                        Phase::Left => &mut self.left,
                        _ => &mut self.right,
                    };
                    if side.next(cx, row)? {
                        hashed::key_of_row(row, self.types.iter().map(|t| t.oid), &mut self.key)?;
                        if self.shows(row, cx)? {
                            return Ok(true);
                        }
                    } else if (self.phase, self.op) == (Phase::Left, SetOp::Union) {
                        self.phase = Phase::Right;
                    } else {
                        self.phase = Phase::Late;
                    }
                }
                Phase::Late => return self.next_late(cx, row),
            }
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.left.rewind(cx);
        self.right.rewind(cx);
        self.counts = RowTable::default();
        self.kept.release(cx);
        if let Some(mut late) = self.late.take() {
            late.sorter.clear(cx);
        }
        self.phase = first_phase(self.op);
    }
}
