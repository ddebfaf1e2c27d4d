//! Window functions over rows that come in a window's order.
//!
//! ```text
//!             rows.base        current                   read so far
//!                ▼                ▼                           ▼
//!  forgotten ····│ kept for frames│ kept because read ahead   │ input … next partition
//! ```
//! Rows are read no further than the values of the current row ask for, and forgotten when no frame
//! to come can reach them: `row_number()` keeps one row, a total over the partition keeps all of
//! it. An aggregate over a frame that only grows takes each row once; where the frame's start
//! moves, rows are taken out again if the aggregate can do that ([`throng_values::func::Undo`]),
//! else the frame is gone through anew.
//!
//! What stops is begun again: the frame's ends and the aggregates only ever move forward, so that
//! what was done is kept.

mod call;
mod frame;
mod rows;

use throng_plan::WindowNode;
use throng_types::Datum;

use super::{BoxOperator, Cx, Operator, Row, Step};
use call::Call;
use frame::Frame;
use rows::Rows;

pub struct WindowOp {
    rows: Rows,
    frame: Frame,
    calls: Vec<Call>,
    /// The current row's place in its partition.
    current: usize,
    /// What the calls have come to for the current row so far.
    values: Vec<Datum>,
    in_partition: bool,
}

impl WindowOp {
    pub fn new(plan: &'static WindowNode, input: BoxOperator) -> WindowOp {
        let calls: Vec<Call> = plan.calls.iter().map(Call::new).collect();
        let reads_frame = calls.iter().any(Call::reads_frame);
        WindowOp {
            rows: Rows::new(plan, input),
            frame: Frame::new(plan, reads_frame),
            calls,
            current: 0,
            values: Vec::new(),
            in_partition: false,
        }
    }

    /// Computes the current row's values, going on after those that are there.
    fn compute(&mut self, cx: &mut Cx) -> Step<()> {
        self.frame.move_to(self.current, &mut self.rows, cx)?;
        while let Some(call) = self.calls.get_mut(self.values.len()) {
            let value = call.value(self.current, &self.frame, &mut self.rows, cx)?;
            self.values.push(value);
        }
        Ok(())
    }

    /// The first row that a later row's values may look at.
    fn needed_from(&self) -> usize {
        let next = self.current + 1;
        let calls = self
            .calls
            .iter()
            .map(|c| c.needs(self.current, &self.frame));
        calls.fold(next.min(self.frame.needs()), usize::min)
    }
}

impl Operator for WindowOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            if !self.in_partition {
                if !self.rows.begin(cx)? {
                    return Ok(false);
                }
                self.current = 0;
                self.frame.begin();
                for call in &mut self.calls {
                    call.begin(cx);
                }
                self.in_partition = true;
            }
            if !self.rows.has(self.current, cx)? {
                self.in_partition = false;
                continue;
            }
            self.compute(cx)?;
            cx.evaluated();
            let needed = self.needed_from();
            self.rows.give(self.current, needed, cx, row)?;
            row.append(&mut self.values);
            self.current += 1;
            return Ok(true);
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.rows.rewind(cx);
        self.frame.rewind();
        self.values.clear();
        self.in_partition = false;
    }
}
