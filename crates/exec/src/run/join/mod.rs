//! Joins: nested loop (with parameters for the inner side) and hash join, all of SQL's kinds.

mod hash;
mod sorted;

use throng_bind::expr::Expr;
use throng_bind::query::JoinKind;
use throng_plan::NestedLoop;
use throng_types::Datum;

use super::eval::{eval, holds};
use super::{BoxOperator, Cx, Operator, Row, Step, empty, subplan};

pub use hash::HashJoinOp;

/// Replaces `row` by `left ++ right`, or `left ++ NULLs`.
fn combine(row: &mut Row, left: &[Datum], right: Option<&[Datum]>, right_width: usize) {
    row.clear();
    row.extend_from_slice(left);
    match right {
        Some(right) => row.extend_from_slice(right),
        None => row.resize(left.len() + right_width, Datum::Null),
    }
}

/// Whether an optional condition lets a row through.
fn passes(condition: &'static Option<Expr>, cx: &mut Cx, row: &[Datum]) -> Step<bool> {
    match condition {
        Some(condition) => holds(condition, row, cx),
        None => Ok(true),
    }
}

/// Makes the row of a left one without partner; whether a condition lets it through.
fn alone(
    row: &mut Row,
    left: &[Datum],
    kind: JoinKind,
    right_width: usize,
    filter: &'static Option<Expr>,
    cx: &mut Cx,
) -> Step<bool> {
    let width = match kind {
        JoinKind::Anti => 0,
        _ => right_width,
    };
    combine(row, left, None, width);
    let shown = passes(filter, cx, row)?;
    cx.evaluated();
    Ok(shown)
}

/// For each left row, runs the right side anew. Kinds: inner, left, semi, anti.
pub struct NestedLoopJoin {
    plan: &'static NestedLoop,
    left: BoxOperator,
    right: BoxOperator,
    right_width: usize,
    left_row: Row,
    right_row: Row,
    state: LoopState,
    matched: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopState {
    /// No left row in hand.
    NeedLeft,
    /// A left row whose parameters are not set yet.
    SetParams,
    /// The right side is running for it.
    Inner,
    /// A joined row waits for `on` and `filter`.
    Test,
    /// The left row, without partner, waits for `filter`.
    Extend,
}

impl NestedLoopJoin {
    pub fn new(plan: &'static NestedLoop, left: BoxOperator, right: BoxOperator) -> NestedLoopJoin {
        NestedLoopJoin {
            plan,
            left,
            right,
            right_width: plan.right.types.len(),
            left_row: Row::new(),
            right_row: Row::new(),
            state: LoopState::NeedLeft,
            matched: false,
        }
    }

    /// What happens when the right side has no more rows for this left row: the state to go on in.
    fn exhausted(&self) -> LoopState {
        match self.plan.kind {
            JoinKind::Left | JoinKind::Anti if !self.matched => LoopState::Extend,
            _ => LoopState::NeedLeft,
        }
    }
}

impl Operator for NestedLoopJoin {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            match self.state {
                LoopState::NeedLeft => {
                    if !self.left.next(cx, &mut self.left_row)? {
                        return Ok(false);
                    }
                    self.matched = false;
                    self.state = LoopState::SetParams;
                }
                LoopState::SetParams => {
                    cx.tick()?;
                    for (param, value) in &self.plan.params {
                        let value = eval(value, &self.left_row, cx)?;
                        cx.outer[param.0 as usize] = value;
                    }
                    cx.evaluated();
                    subplan::forget(&self.plan.volatile_ctes, cx);
                    self.right.rewind(cx);
                    self.state = LoopState::Inner;
                }
                LoopState::Inner => {
                    self.state = if self.right.next(cx, &mut self.right_row)? {
                        LoopState::Test
                    } else {
                        self.exhausted()
                    };
                }
                LoopState::Test => {
                    cx.tick()?;
                    combine(row, &self.left_row, Some(&self.right_row), self.right_width);
                    // `on` and `filter` may stop and be asked again: the state stays `Test` until
                    // both have answered.
                    if !passes(&self.plan.on, cx, row)? {
                        cx.evaluated();
                        self.state = LoopState::Inner;
                        continue;
                    }
                    match self.plan.kind {
                        JoinKind::Semi => {
                            combine(row, &self.left_row, None, 0);
                            let shown = passes(&self.plan.filter, cx, row)?;
                            cx.evaluated();
                            self.state = LoopState::NeedLeft;
                            if shown {
                                return Ok(true);
                            }
                        }
                        JoinKind::Anti => {
                            cx.evaluated();
                            self.state = LoopState::NeedLeft;
                        }
                        _ => {
                            let shown = passes(&self.plan.filter, cx, row)?;
                            cx.evaluated();
                            self.matched = true;
                            self.state = LoopState::Inner;
                            if shown {
                                return Ok(true);
                            }
                        }
                    }
                }
                LoopState::Extend => {
                    let (plan, width) = (self.plan, self.right_width);
                    let shown = alone(row, &self.left_row, plan.kind, width, &plan.filter, cx)?;
                    self.state = LoopState::NeedLeft;
                    if shown {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.left.rewind(cx);
        self.state = LoopState::NeedLeft;
    }

    fn reset(&mut self) -> bool {
        self.state = LoopState::NeedLeft;
        empty(&mut self.left_row);
        empty(&mut self.right_row);
        self.left.reset() && self.right.reset()
    }
}
