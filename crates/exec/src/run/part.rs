//! A part of a plan that the analytics pool runs by itself: a big aggregate below operators that run here.
//!
//! The pool is asked when the first row is, and the part's rows, few as they are an aggregate's, are kept. Where nobody can
//! ask it (a function's body, a recheck), the part runs here as any other.

use throng_sql::plan::Plan;

use super::context::Kept;
use super::hashed::row_bytes;
use super::{Cx, Operator, Row, Step, Stop};

pub struct PartOp {
    plan: &'static Plan,
    /// None until the pool has given them.
    rows: Option<Vec<Row>>,
    at: usize,
    kept: Kept,
}

impl PartOp {
    pub fn new(plan: &'static Plan) -> PartOp {
        PartOp {
            plan,
            rows: None,
            at: 0,
            kept: Kept::default(),
        }
    }
}

impl Operator for PartOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if self.rows.is_none() {
            match cx.part.take() {
                Some((id, rows)) if id == self.plan.id => {
                    self.kept.add(rows.iter().map(|r| row_bytes(r)).sum(), cx)?;
                    self.rows = Some(rows);
                }
                _ => return Err(Stop::Part(self.plan)),
            }
        }
        let next = self.rows.as_ref().and_then(|rows| rows.get(self.at));
        if let Some(next) = next {
            row.clone_from(next);
            self.at += 1;
        }
        Ok(next.is_some())
    }

    fn rewind(&mut self, _: &mut Cx) {
        // Nothing from outside goes into it: its rows stay what they are.
        self.at = 0;
    }
}
