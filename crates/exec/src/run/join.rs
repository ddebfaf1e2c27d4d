//! Joins: nested loop (with parameters for the inner side) and hash join, all of SQL's kinds.

use throng_sql::expr::Expr;
use throng_sql::plan::{HashJoin, NestedLoop};
use throng_sql::query::JoinKind;
use throng_types::Datum;

use super::context::Kept;
use super::eval::{eval, holds};
use super::hashed::{self, Key, RowTable};
use super::{BoxOperator, Cx, Operator, Row, Step, empty};

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
                    // `on` and `filter` may stop and be asked again: the state stays `Test` until both have answered.
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
                    let width = if self.plan.kind == JoinKind::Anti {
                        0
                    } else {
                        self.right_width
                    };
                    combine(row, &self.left_row, None, width);
                    let shown = passes(&self.plan.filter, cx, row)?;
                    cx.evaluated();
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

/// Builds a table of the right side, probes it with the left.
pub struct HashJoinOp {
    plan: &'static HashJoin,
    left: BoxOperator,
    right: BoxOperator,
    left_width: usize,
    right_width: usize,
    table: RowTable,
    /// For right and full joins: which rows of the table have met a partner.
    met: Vec<bool>,
    left_row: Row,
    pending: Row,
    have_pending: bool,
    state: HashState,
    key: Key,
    matched: bool,
    /// Whether the right side depends on outer values and must be read again when they change.
    depends: bool,
    kept: Kept,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HashState {
    Build,
    NeedLeft,
    /// A left row whose key is not computed yet.
    Probe,
    /// The entry of the table to try next.
    Candidate(Option<usize>),
    Extend,
    /// The table's row to look at next for one without partner.
    Leftover(usize),
    Done,
}

impl HashJoinOp {
    pub fn new(
        plan: &'static HashJoin,
        left: BoxOperator,
        right: BoxOperator,
        depends: bool,
    ) -> HashJoinOp {
        HashJoinOp {
            plan,
            left,
            right,
            left_width: plan.left.types.len(),
            right_width: plan.right.types.len(),
            table: RowTable::default(),
            met: Vec::new(),
            left_row: Row::new(),
            pending: Row::new(),
            have_pending: false,
            state: HashState::Build,
            key: Key::default(),
            matched: false,
            depends,
            kept: Kept::default(),
        }
    }

    fn keeps_left(&self) -> bool {
        matches!(
            self.plan.kind,
            JoinKind::Left | JoinKind::Full | JoinKind::Anti
        )
    }

    fn keeps_right(&self) -> bool {
        matches!(self.plan.kind, JoinKind::Right | JoinKind::Full)
    }

    fn build(&mut self, cx: &mut Cx) -> Step<()> {
        loop {
            if !self.have_pending {
                if !self.right.next(cx, &mut self.pending)? {
                    break;
                }
                self.have_pending = true;
            }
            let whole = hashed::key_of(&self.plan.right_keys, &self.pending, cx, &mut self.key)?;
            cx.evaluated();
            self.have_pending = false;
            // A NULL key meets nobody, but a right or full join shows the row all the same.
            if whole || self.keeps_right() {
                self.kept.add(hashed::row_bytes(&self.pending), cx)?;
                let key = if whole { Some(&self.key) } else { None };
                self.table.insert(key, std::mem::take(&mut self.pending));
            }
            cx.tick()?;
        }
        if self.keeps_right() {
            self.met = vec![false; self.table.len()];
        }
        Ok(())
    }

    fn after_candidates(&self) -> HashState {
        if self.keeps_left() && !self.matched {
            HashState::Extend
        } else {
            HashState::NeedLeft
        }
    }
}

impl Operator for HashJoinOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            match self.state {
                HashState::Build => {
                    self.build(cx)?;
                    self.state = HashState::NeedLeft;
                }
                HashState::NeedLeft => {
                    let more = self.left.next(cx, &mut self.left_row)?;
                    self.matched = false;
                    self.state = match more {
                        true => HashState::Probe,
                        false if self.keeps_right() => HashState::Leftover(0),
                        false => HashState::Done,
                    };
                }
                HashState::Probe => {
                    cx.tick()?;
                    let whole =
                        hashed::key_of(&self.plan.left_keys, &self.left_row, cx, &mut self.key)?;
                    cx.evaluated();
                    let first = if whole {
                        self.table.first(&self.key)
                    } else {
                        None
                    };
                    self.state = HashState::Candidate(first);
                }
                HashState::Candidate(None) => self.state = self.after_candidates(),
                HashState::Candidate(Some(at)) => {
                    cx.tick()?;
                    combine(
                        row,
                        &self.left_row,
                        Some(self.table.row(at)),
                        self.right_width,
                    );
                    let after = HashState::Candidate(self.table.following(at, &self.key));
                    if !passes(&self.plan.on, cx, row)? {
                        cx.evaluated();
                        self.state = after;
                        continue;
                    }
                    if self.plan.kind == JoinKind::Anti {
                        cx.evaluated();
                        self.state = HashState::NeedLeft;
                        continue;
                    }
                    if self.plan.kind == JoinKind::Semi {
                        combine(row, &self.left_row, None, 0);
                    }
                    let shown = passes(&self.plan.filter, cx, row)?;
                    cx.evaluated();
                    self.matched = true;
                    if let Some(met) = self.met.get_mut(at) {
                        *met = true;
                    }
                    self.state = if self.plan.kind == JoinKind::Semi {
                        HashState::NeedLeft
                    } else {
                        after
                    };
                    if shown {
                        return Ok(true);
                    }
                }
                HashState::Extend => {
                    let width = if self.plan.kind == JoinKind::Anti {
                        0
                    } else {
                        self.right_width
                    };
                    combine(row, &self.left_row, None, width);
                    let shown = passes(&self.plan.filter, cx, row)?;
                    cx.evaluated();
                    self.state = HashState::NeedLeft;
                    if shown {
                        return Ok(true);
                    }
                }
                HashState::Leftover(at) => {
                    cx.tick()?;
                    let Some(met) = self.met.get(at) else {
                        self.state = HashState::Done;
                        continue;
                    };
                    if !met {
                        row.clear();
                        row.resize(self.left_width, Datum::Null);
                        row.extend_from_slice(self.table.row(at));
                        let shown = passes(&self.plan.filter, cx, row)?;
                        cx.evaluated();
                        self.state = HashState::Leftover(at + 1);
                        if shown {
                            return Ok(true);
                        }
                    }
                    self.state = HashState::Leftover(at + 1);
                }
                HashState::Done => return Ok(false),
            }
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.left.rewind(cx);
        if !self.depends && self.state != HashState::Build {
            self.met.fill(false);
            self.state = HashState::NeedLeft;
            return;
        }
        self.right.rewind(cx);
        self.table = RowTable::default();
        self.kept.release(cx);
        self.met.clear();
        self.have_pending = false;
        self.state = HashState::Build;
    }
}
