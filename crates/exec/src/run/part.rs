//! A part of a plan that the analytics pool runs by itself: a big aggregate below operators that
//! run here.
//!
//! The pool is asked when the first row is, and the part's rows, few as they are an aggregate's,
//! are kept. Where nobody can ask it (a function's body, a recheck), the part runs here as any
//! other.

use throng_plan::Plan;

use super::{Cx, Operator, Row, Step, Suspension, copy_row};
use crate::spill::RowList;

pub struct PartOp {
    plan: &'static Plan,
    /// None until the pool has given them.
    rows: Option<RowList>,
    at: usize,
}

impl PartOp {
    pub fn new(plan: &'static Plan) -> PartOp {
        PartOp {
            plan,
            rows: None,
            at: 0,
        }
    }
}

impl Operator for PartOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if self.rows.is_none() {
            match cx.part.take() {
                Some((id, rows)) if id == self.plan.id => self.rows = Some(rows),
                _ => return Err(Suspension::Part(self.plan)),
            }
        }
        let Some(rows) = &mut self.rows else {
            return Ok(false);
        };
        let Some(next) = rows.get(self.at)? else {
            return Ok(false);
        };
        copy_row(next, row);
        self.at += 1;
        Ok(true)
    }

    fn rewind(&mut self, _: &mut Cx) {
        // Nothing from outside goes into it: its rows stay what they are.
        self.at = 0;
    }
}
