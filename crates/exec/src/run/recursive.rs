//! WITH RECURSIVE: steps, each of which reads what the one before gave.
//!
//! ```text
//! init ──► rows ──► given on, and kept for the next step
//!                        │ swap: what was kept becomes the work table
//!                        ▼
//! term, reading the work table ──► rows ──► given on, and kept … until a step gives none
//! ```
//! UNION passes over rows that were given before. At most two steps' rows are kept, and with UNION
//! the keys of all. A row is given on as it is made, so a recursion without end serves a LIMIT, and
//! gives way and heeds a cancel like any operator.

use throng_bind::expr::Expr;
use throng_plan::RecursiveUnion;
use throng_types::{Datum, SqlType};

use super::context::RowMemory;
use super::eval::{eval, holds};
use super::hashed::{self, Key, RowTable};
use super::{BoxOperator, Cx, Operator, Row, Step, copy_row};
use crate::spill::RowList;

pub struct RecursiveUnionOp {
    plan: &'static RecursiveUnion,
    types: &'static [SqlType],
    init: BoxOperator,
    term: BoxOperator,
    /// Whether the non-recursive term has ended.
    recurring: bool,
    /// Steps so far, those of runs before included.
    steps: i64,
    /// The rows of this step so far.
    next_rows: RowList,
    next_kept: RowMemory,
    /// Those of the step before, in the work table.
    last_kept: RowMemory,
    /// With UNION: all rows given.
    seen: RowTable,
    seen_kept: RowMemory,
    key: Key,
    done: bool,
}

impl RecursiveUnionOp {
    pub fn new(
        plan: &'static RecursiveUnion,
        types: &'static [SqlType],
        init: BoxOperator,
        term: BoxOperator,
        cx: &mut Cx,
    ) -> RecursiveUnionOp {
        let tables = plan.work_table as usize + 1;
        if cx.work_tables.len() < tables {
            cx.work_tables.resize_with(tables, RowList::default);
        }
        RecursiveUnionOp {
            plan,
            types,
            init,
            term,
            recurring: false,
            steps: 0,
            next_rows: RowList::default(),
            next_kept: RowMemory::default(),
            last_kept: RowMemory::default(),
            seen: RowTable::default(),
            seen_kept: RowMemory::default(),
            key: Key::default(),
            done: false,
        }
    }

    /// Whether a row is given: with UNION, the first of its kind.
    fn is_new(&mut self, row: &[Datum], cx: &mut Cx) -> Step<bool> {
        if self.plan.all {
            return Ok(true);
        }
        hashed::key_of_row(row, self.types.iter().map(|t| t.oid), &mut self.key)?;
        if self.seen.first(&self.key).is_some() {
            return Ok(false);
        }
        // Each row asks for all rows before it, so their keys stay in memory.
        self.seen_kept
            .need(hashed::row_bytes(&[]) + self.key.len(), cx)?;
        self.seen.insert(Some(&self.key), Row::new());
        Ok(true)
    }

    /// The step has ended: its rows are the next one's input. False if it gave none.
    fn next_step(&mut self, cx: &mut Cx) -> Step<bool> {
        let mut args = Vec::with_capacity(self.plan.args.len());
        for (param, expr) in &self.plan.args {
            args.push((*param, eval(expr, &[], cx)?));
        }
        for (param, value) in args {
            cx.outer[param.0 as usize] = value;
        }
        self.recurring = true;
        self.steps += 1;
        if let Some(param) = self.plan.step {
            cx.outer[param.0 as usize] = Datum::Int8(self.steps);
        }
        let table = &mut cx.work_tables[self.plan.work_table as usize];
        table.clear();
        std::mem::swap(table, &mut self.next_rows);
        let empty = table.is_empty();
        self.last_kept.release(cx);
        std::mem::swap(&mut self.last_kept, &mut self.next_kept);
        if !empty {
            self.term.rewind(cx);
        }
        Ok(!empty)
    }
}

impl Operator for RecursiveUnionOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        while !self.done {
            cx.tick()?;
            let source = match self.recurring {
                false => &mut self.init,
                true => &mut self.term,
            };
            if !source.next(cx, row)? {
                self.done = !self.next_step(cx)?;
                continue;
            }
            if self.is_new(row, cx)? {
                self.next_rows.keep(row.clone(), &mut self.next_kept, cx)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.init.rewind(cx);
        self.recurring = false;
        self.next_rows.clear();
        self.next_kept.release(cx);
        cx.work_tables[self.plan.work_table as usize].clear();
        self.last_kept.release(cx);
        self.seen = RowTable::default();
        self.seen_kept.release(cx);
        self.done = false;
    }
}

/// Reads the work table of the recursion around it.
pub struct WorkTableScanOp {
    work_table: usize,
    filter: &'static Option<Expr>,
    at: usize,
}

impl WorkTableScanOp {
    pub fn new(work_table: usize, filter: &'static Option<Expr>) -> WorkTableScanOp {
        WorkTableScanOp {
            work_table,
            filter,
            at: 0,
        }
    }
}

impl Operator for WorkTableScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            let table = cx.work_tables.get_mut(self.work_table);
            let kept = table.map_or(Ok(None), |table| table.get(self.at))?;
            let Some(kept) = kept else {
                return Ok(false);
            };
            copy_row(kept, row);
            let shown = match self.filter {
                Some(filter) => holds(filter, row, cx)?,
                None => true,
            };
            cx.evaluated();
            self.at += 1;
            if shown {
                return Ok(true);
            }
            cx.tick()?;
        }
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.at = 0;
    }
}
