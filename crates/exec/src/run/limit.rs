//! Operators that pass rows on: limit, filter, projection, kept rows.

use throng_bind::expr::{Expr, SortKey};
use throng_types::Datum;
use throng_types::error::state;
use throng_types::{Error, Result};

use super::context::RowMemory;
use super::eval::{eval, holds};
use super::sort::sort_key;
use super::{BoxOperator, Cx, Operator, Row, Step, copy_row, empty};
use crate::spill::RowList;

/// LIMIT and OFFSET.
pub struct Limit {
    input: BoxOperator,
    limit: &'static Option<Expr>,
    offset: &'static Option<Expr>,
    /// With these keys the last row's peers are given too.
    ties: &'static [SortKey],
    /// The key of the last row, once it has been given.
    last: Option<Box<[u8]>>,
    /// Rows still to pass over and to give, once the expressions have been evaluated.
    left: Option<(u64, u64)>,
}

impl Limit {
    pub fn new(
        input: BoxOperator,
        limit: &'static Option<Expr>,
        offset: &'static Option<Expr>,
        ties: &'static [SortKey],
    ) -> Limit {
        Limit {
            input,
            limit,
            offset,
            ties,
            last: None,
            left: None,
        }
    }
}

/// A row count: NULL is none given.
fn count(value: Datum, negative: impl FnOnce() -> Error) -> Result<Option<u64>> {
    match value.as_i64() {
        None => Ok(None),
        Some(n) => u64::try_from(n).map(Some).map_err(|_| negative()),
    }
}

impl Operator for Limit {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if self.left.is_none() {
            let value = |e: &'static Option<Expr>, cx: &mut Cx| match e {
                Some(e) => eval(e, &[], cx),
                None => Ok(Datum::Null),
            };
            let offset = count(value(self.offset, cx)?, || {
                Error::new(
                    state::INVALID_ROW_COUNT_IN_OFFSET,
                    "OFFSET must not be negative",
                )
            })?;
            let limit = count(value(self.limit, cx)?, || {
                Error::new(
                    state::INVALID_ROW_COUNT_IN_LIMIT,
                    "LIMIT must not be negative",
                )
            })?;
            self.left = Some((offset.unwrap_or(0), limit.unwrap_or(u64::MAX)));
        }
        if let Some(last) = &self.last {
            let more = self.input.next(cx, row)? && sort_key(self.ties, row, cx)? == *last;
            if !more {
                (self.last, self.left) = (None, Some((0, 0)));
            }
            return Ok(more);
        }
        while let Some((skip, give)) = &mut self.left {
            if *give == 0 || !self.input.next(cx, row)? {
                break;
            }
            if *skip > 0 {
                *skip -= 1;
                cx.tick()?;
                continue;
            }
            *give -= 1;
            if *give == 0 && !self.ties.is_empty() {
                self.last = Some(sort_key(self.ties, row, cx)?);
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.last = None;
        self.left = None;
    }

    fn reset(&mut self) -> bool {
        self.last = None;
        self.left = None;
        self.input.reset()
    }
}

/// Lets through the rows for which a condition holds.
pub struct Filter {
    input: BoxOperator,
    condition: &'static Expr,
    /// The condition does not look at the row: it is asked once.
    once: bool,
    /// What it said.
    open: Option<bool>,
    have_row: bool,
    input_row: Row,
}

impl Filter {
    pub fn new(input: BoxOperator, condition: &'static Expr, once: bool) -> Filter {
        Filter {
            input,
            condition,
            once,
            open: None,
            have_row: false,
            input_row: Row::new(),
        }
    }
}

impl Operator for Filter {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if self.once {
            if self.open.is_none() {
                self.open = Some(holds(self.condition, &[], cx)?);
            }
            return if self.open == Some(true) {
                self.input.next(cx, row)
            } else {
                Ok(false)
            };
        }
        loop {
            if !self.have_row {
                if !self.input.next(cx, &mut self.input_row)? {
                    return Ok(false);
                }
                self.have_row = true;
            }
            let passes = holds(self.condition, &self.input_row, cx)?;
            cx.evaluated();
            self.have_row = false;
            if passes {
                std::mem::swap(row, &mut self.input_row);
                return Ok(true);
            }
            cx.tick()?;
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.open = None;
        self.have_row = false;
    }

    fn reset(&mut self) -> bool {
        self.open = None;
        self.have_row = false;
        empty(&mut self.input_row);
        self.input.reset()
    }
}

/// Computes new rows from old ones.
pub struct Project {
    input: BoxOperator,
    exprs: &'static [Expr],
    have_row: bool,
    input_row: Row,
}

impl Project {
    pub fn new(input: BoxOperator, exprs: &'static [Expr]) -> Project {
        Project {
            input,
            exprs,
            have_row: false,
            input_row: Row::new(),
        }
    }
}

impl Operator for Project {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if !self.have_row {
            if !self.input.next(cx, &mut self.input_row)? {
                return Ok(false);
            }
            self.have_row = true;
        }
        row.clear();
        for expr in self.exprs {
            row.push(eval(expr, &self.input_row, cx)?);
        }
        cx.evaluated();
        self.have_row = false;
        Ok(true)
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.have_row = false;
    }

    fn reset(&mut self) -> bool {
        self.have_row = false;
        empty(&mut self.input_row);
        self.input.reset()
    }
}

/// Rows of expressions.
pub struct Values {
    rows: &'static [Vec<Expr>],
    at: usize,
}

impl Values {
    pub fn new(rows: &'static [Vec<Expr>]) -> Values {
        Values { rows, at: 0 }
    }
}

impl Operator for Values {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        let Some(exprs) = self.rows.get(self.at) else {
            return Ok(false);
        };
        row.clear();
        for expr in exprs {
            row.push(eval(expr, &[], cx)?);
        }
        cx.evaluated();
        self.at += 1;
        Ok(true)
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.at = 0;
    }
}

/// Keeps its input's rows, so that they can be read again without running it again.
pub struct Materialize {
    input: BoxOperator,
    rows: RowList,
    at: usize,
    complete: bool,
    /// Whether the input depends on outer values and must run again when they change.
    depends: bool,
    kept: RowMemory,
}

impl Materialize {
    pub fn new(input: BoxOperator, depends: bool) -> Materialize {
        Materialize {
            input,
            rows: RowList::default(),
            at: 0,
            complete: false,
            depends,
            kept: RowMemory::default(),
        }
    }
}

impl Operator for Materialize {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if let Some(kept) = self.rows.get(self.at)? {
            copy_row(kept, row);
            self.at += 1;
            return Ok(true);
        }
        if self.complete {
            return Ok(false);
        }
        if !self.input.next(cx, row)? {
            self.complete = true;
            return Ok(false);
        }
        self.rows.keep(row.clone(), &mut self.kept, cx)?;
        self.at += 1;
        Ok(true)
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.at = 0;
        if self.depends {
            self.rows.clear();
            self.kept.release(cx);
            self.complete = false;
            self.input.rewind(cx);
        }
    }
}
