//! Hash join: a table of the right side, probed with the left. Where the table does not fit in
//! memory, both sides are sorted by their keys instead and walked together ([`super::sorted`]):
//! whatever the keys, each row is then written a few times and no more.

use throng_bind::query::JoinKind;
use throng_plan::HashJoin;
use throng_types::Datum;

use super::sorted::{Found, SortedSides};
use super::{alone, combine, passes};
use crate::run::context::RowMemory;
use crate::run::hashed::{self, Key, RowTable};
use crate::run::{BoxOperator, Cx, Operator, Row, Step};

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
    kept: RowMemory,
    /// The sides, where the right one does not fit in memory.
    sorted: Option<Box<SortedSides>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HashState {
    Build,
    /// The left side is being sorted.
    SortLeft,
    NeedLeft,
    /// Of sorted sides: the right rows that have the left row's key are being looked for.
    Seek,
    /// A left row whose key is not computed yet.
    Probe,
    /// The entry of the table to try next.
    Candidate(Option<usize>),
    Extend,
    /// The right row to look at next for one without partner.
    Leftover(usize),
    /// A right row that has no partner waits for `filter`.
    Alone,
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
            kept: RowMemory::default(),
            sorted: None,
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
                let key = if whole { Some(&self.key) } else { None };
                let row = std::mem::take(&mut self.pending);
                let bytes = hashed::row_bytes(&row) + self.key.len();
                match &mut self.sorted {
                    Some(sorted) => sorted.add_right(key, row, cx)?,
                    None if self.kept.fits(bytes, cx) => {
                        self.table.insert(key, row);
                    }
                    None => {
                        self.kept.release(cx);
                        let mut sorted = Box::new(SortedSides::new(self.keeps_right()));
                        sorted.take_table(std::mem::take(&mut self.table), cx)?;
                        sorted.add_right(key, row, cx)?;
                        self.sorted = Some(sorted);
                    }
                }
            }
            cx.tick()?;
        }
        if self.keeps_right() {
            self.met = vec![false; self.table.len()];
        }
        Ok(())
    }

    /// Sorts the left side, once the right side's rows are sorted.
    fn sort_left(&mut self, cx: &mut Cx) -> Step<()> {
        let Some(sorted) = &mut self.sorted else {
            return Ok(());
        };
        while !sorted.has_left() {
            if !self.have_pending {
                if !self.left.next(cx, &mut self.pending)? {
                    sorted.end_left();
                    break;
                }
                self.have_pending = true;
            }
            let whole = hashed::key_of(&self.plan.left_keys, &self.pending, cx, &mut self.key)?;
            cx.evaluated();
            self.have_pending = false;
            let key = if whole { Some(&self.key) } else { None };
            sorted.add_left(key, std::mem::take(&mut self.pending), cx)?;
            cx.tick()?;
        }
        sorted.finish(cx)
    }

    /// The next left row; false at the end.
    fn next_left(&mut self, cx: &mut Cx) -> Step<bool> {
        match &mut self.sorted {
            None => self.left.next(cx, &mut self.left_row),
            Some(sorted) => Ok(sorted.next_left(cx, &mut self.left_row)?),
        }
    }

    /// The candidate after this one.
    fn following(&self, at: usize) -> HashState {
        HashState::Candidate(match &self.sorted {
            None => self.table.following(at, &self.key),
            Some(sorted) => Some(at + 1).filter(|at| *at < sorted.partners()),
        })
    }

    fn right_row(&mut self, at: usize) -> Step<&[Datum]> {
        Ok(match &mut self.sorted {
            None => self.table.row(at),
            Some(sorted) => sorted.partner(at)?,
        })
    }

    /// The row of the right side alone.
    fn extend_left(left_width: usize, right: &[Datum], row: &mut Row) {
        row.clear();
        row.resize(left_width, Datum::Null);
        row.extend_from_slice(right);
    }

    /// Goes on among the right rows of sorted sides.
    fn seek(&mut self, cx: &mut Cx) -> Step<()> {
        let Some(sorted) = &mut self.sorted else {
            return Ok(());
        };
        let found = sorted.seek(cx)?;
        self.state = match found {
            Found::Partners(count) => {
                let met = if self.keeps_right() { count } else { 0 };
                self.met = vec![false; met];
                HashState::Candidate((count > 0).then_some(0))
            }
            Found::Alone => HashState::Alone,
            Found::End => HashState::Done,
        };
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
                    self.state = match self.sorted {
                        None => HashState::NeedLeft,
                        Some(_) => HashState::SortLeft,
                    };
                }
                HashState::SortLeft => {
                    self.sort_left(cx)?;
                    self.state = HashState::NeedLeft;
                }
                HashState::NeedLeft => {
                    let more = self.next_left(cx)?;
                    self.matched = false;
                    self.state = match more {
                        false if self.keeps_right() => HashState::Leftover(0),
                        false => HashState::Done,
                        true => match &self.sorted {
                            None => HashState::Probe,
                            Some(sorted) => match sorted.known_partners() {
                                Some(count) => HashState::Candidate((count > 0).then_some(0)),
                                // Those who have no partner go first.
                                None if self.keeps_right() => HashState::Leftover(0),
                                None => HashState::Seek,
                            },
                        },
                    };
                }
                HashState::Seek => {
                    cx.tick()?;
                    self.seek(cx)?;
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
                    let (width, after) = (self.right_width, self.following(at));
                    let left = std::mem::take(&mut self.left_row);
                    let combined = self
                        .right_row(at)
                        .map(|right| combine(row, &left, Some(right), width));
                    self.left_row = left;
                    combined?;
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
                    let (plan, width) = (self.plan, self.right_width);
                    let shown = alone(row, &self.left_row, plan.kind, width, &plan.filter, cx)?;
                    self.state = HashState::NeedLeft;
                    if shown {
                        return Ok(true);
                    }
                }
                HashState::Leftover(at) => {
                    cx.tick()?;
                    let Some(met) = self.met.get(at) else {
                        self.state = match self.sorted {
                            None => HashState::Done,
                            Some(_) => HashState::Seek,
                        };
                        continue;
                    };
                    if !met {
                        let width = self.left_width;
                        Self::extend_left(width, self.right_row(at)?, row);
                        let shown = passes(&self.plan.filter, cx, row)?;
                        cx.evaluated();
                        self.state = HashState::Leftover(at + 1);
                        if shown {
                            return Ok(true);
                        }
                    }
                    self.state = HashState::Leftover(at + 1);
                }
                HashState::Alone => {
                    if let Some(sorted) = &self.sorted {
                        Self::extend_left(self.left_width, sorted.alone(), row);
                    }
                    let shown = passes(&self.plan.filter, cx, row)?;
                    cx.evaluated();
                    self.state = HashState::Seek;
                    if shown {
                        return Ok(true);
                    }
                }
                HashState::Done => return Ok(false),
            }
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.left.rewind(cx);
        let built = !matches!(self.state, HashState::Build);
        if !self.depends && built && self.sorted.is_none() {
            self.met.fill(false);
            self.state = HashState::NeedLeft;
            return;
        }
        self.right.rewind(cx);
        self.table = RowTable::default();
        self.kept.release(cx);
        if let Some(mut sorted) = self.sorted.take() {
            sorted.release(cx);
        }
        self.met.clear();
        self.have_pending = false;
        self.state = HashState::Build;
    }
}
