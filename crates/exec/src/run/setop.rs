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

use throng_sql::query::SetOp;
use throng_types::{Datum, SqlType};

use super::context::Kept;
use super::hashed::{self, Key, RowTable};
use super::{BoxOperator, Cx, Operator, Row, Step};

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
    kept: Kept,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    CountRight,
    Left,
    Right,
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
            kept: Kept::default(),
        }
    }

    /// Adds one to the count of the current key and gives the count before.
    fn count_up(&mut self, cx: &mut Cx) -> Step<i64> {
        match self.counts.first(&self.key) {
            Some(at) => {
                let before = self.counts.row(at)[0].as_i64().unwrap_or(0);
                self.counts.row_mut(at)[0] = Datum::Int8(before + 1);
                Ok(before)
            }
            None => {
                self.kept.add(hashed::row_bytes(&[]) + self.key.len(), cx)?;
                self.counts.insert(Some(&self.key), vec![Datum::Int8(1)]);
                Ok(0)
            }
        }
    }

    /// Whether the left row with the current key is shown.
    fn shows_left(&mut self, cx: &mut Cx) -> Step<bool> {
        let twin = self.counts.first(&self.key);
        let left_over = twin.and_then(|at| self.counts.row(at)[0].as_i64());
        Ok(match (self.op, self.all) {
            (SetOp::Union, true) => true,
            (SetOp::Union, false) => self.count_up(cx)? == 0,
            (SetOp::Intersect, _) => match (twin, left_over) {
                (Some(at), Some(n)) if n > 0 => {
                    let n = if self.all { n - 1 } else { 0 };
                    self.counts.row_mut(at)[0] = Datum::Int8(n);
                    true
                }
                _ => false,
            },
            (SetOp::Except, true) => match (twin, left_over) {
                (Some(at), Some(n)) if n > 0 => {
                    self.counts.row_mut(at)[0] = Datum::Int8(n - 1);
                    false
                }
                _ => true,
            },
            (SetOp::Except, false) => self.count_up(cx)? == 0,
        })
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
                        self.count_up(cx)?;
                    } else {
                        self.phase = Phase::Left;
                    }
                }
                Phase::Left => {
                    if self.left.next(cx, row)? {
                        hashed::key_of_row(row, self.types.iter().map(|t| t.oid), &mut self.key)?;
                        if self.shows_left(cx)? {
                            return Ok(true);
                        }
                    } else if self.op == SetOp::Union {
                        self.phase = Phase::Right;
                    } else {
                        return Ok(false);
                    }
                }
                Phase::Right => {
                    if !self.right.next(cx, row)? {
                        return Ok(false);
                    }
                    hashed::key_of_row(row, self.types.iter().map(|t| t.oid), &mut self.key)?;
                    if self.all || self.count_up(cx)? == 0 {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.left.rewind(cx);
        self.right.rewind(cx);
        self.counts = RowTable::default();
        self.kept.release(cx);
        self.phase = first_phase(self.op);
    }
}
