//! One function of a window: its value for the current row.

use std::ops::Range;

use throng_bind::aggregate::{AggFunction, OwnAggregate, Transition};
use throng_bind::expr::Expr;
use throng_bind::window::{Callee, WindowCall};
use throng_types::error::state;
use throng_types::{Datum, Error, Result};
use throng_values::func::aggregate::AggState;
use throng_values::func::{Aggregate, WindowKind};

use super::frame::Frame;
use super::rows::Rows;
use crate::run::context::RowMemory;
use crate::run::eval::{eval, holds};
use crate::run::hashed::datum_bytes;
use crate::run::own_aggregate::OwnState;
use crate::run::{Cx, Row, Step};

pub(super) struct Call {
    plan: &'static WindowCall,
    /// `ntile`: the number of buckets, which the partition's first row says.
    buckets: Option<i64>,
    /// `cume_dist`: one past the last peer of the current row.
    peers_end: usize,
    running: RunningAggregate,
}

/// An aggregate on its way through a partition.
#[derive(Default)]
struct RunningAggregate {
    state: Option<AggState>,
    /// The state of a user's aggregate, in place of the other.
    own: Option<OwnState>,
    /// The rows in the state; with exclusions only the end counts, for the row `of`.
    taken: Range<usize>,
    of: Option<usize>,
    result: Option<Datum>,
    /// The memory of values in the state.
    kept: RowMemory,
}

#[cold]
fn out_of_bounds(code: throng_types::SqlState, function: &str) -> Error {
    Error::new(
        code,
        format!("argument of {function} must be greater than zero"),
    )
}

impl Call {
    pub fn new(plan: &'static WindowCall) -> Call {
        Call {
            plan,
            buckets: None,
            peers_end: 0,
            running: RunningAggregate::default(),
        }
    }

    /// At the start of a partition.
    pub fn begin(&mut self, cx: &mut Cx) {
        self.buckets = None;
        self.peers_end = 0;
        self.start_over(0..0, cx);
    }

    pub fn reads_frame(&self) -> bool {
        match &self.plan.callee {
            Callee::Function(f) => !f.kind.ignores_frame(),
            Callee::Aggregate(_) => true,
        }
    }

    /// The first row that this call may look at for rows after the current one.
    pub fn needs(&self, current: usize, frame: &Frame) -> usize {
        match &self.plan.callee {
            Callee::Aggregate(_) if frame.only_grows() => self.running.taken.end,
            Callee::Aggregate(_) => self.running.taken.start.min(frame.range().start),
            Callee::Function(f) => match f.kind {
                WindowKind::Lag | WindowKind::Lead => {
                    let back = match self.plan.args.get(1) {
                        None => Some(1),
                        Some(Expr::Const(value, _)) => value.as_i64().or(Some(0)),
                        Some(_) => None,
                    };
                    let back = match f.kind {
                        WindowKind::Lag => back,
                        _ => back.map(|n| -n),
                    };
                    match back {
                        Some(n) => (current + 1).saturating_sub(n.max(0) as usize),
                        None => 0,
                    }
                }
                kind if kind.ignores_frame() => usize::MAX,
                _ => frame.range().start,
            },
        }
    }

    pub fn value(
        &mut self,
        current: usize,
        frame: &Frame,
        rows: &mut Rows,
        cx: &mut Cx,
    ) -> Step<Datum> {
        let kind = match &self.plan.callee {
            Callee::Aggregate(agg) => return self.aggregate(agg, current, frame, rows, cx),
            Callee::Function(function) => function.kind,
        };
        Ok(match kind {
            WindowKind::RowNumber => Datum::Int8(current as i64 + 1),
            WindowKind::Rank => Datum::Int8(rows.group_start(current)? as i64 + 1),
            WindowKind::DenseRank => Datum::Int8(rows.group(current)? as i64 + 1),
            WindowKind::PercentRank => {
                let total = rows.all(cx)?;
                let before = rows.group_start(current)?;
                Datum::Float8(match total {
                    0 | 1 => 0.0,
                    n => before as f64 / (n - 1) as f64,
                })
            }
            WindowKind::CumeDist => {
                let total = rows.all(cx)?;
                let group = rows.group(current)?;
                self.peers_end = self.peers_end.max(current);
                while self.peers_end < total && rows.group(self.peers_end)? == group {
                    self.peers_end += 1;
                }
                Datum::Float8(self.peers_end as f64 / total as f64)
            }
            WindowKind::Ntile => self.ntile(current, rows, cx)?,
            WindowKind::Lag | WindowKind::Lead => self.distant(kind, current, rows, cx)?,
            WindowKind::FirstValue => {
                let first = frame.parts().into_iter().find(|r| !r.is_empty());
                self.value_at(first.map(|r| r.start), rows, cx)?
            }
            WindowKind::LastValue => {
                let last = frame.parts().into_iter().rev().find(|r| !r.is_empty());
                self.value_at(last.map(|r| r.end - 1), rows, cx)?
            }
            WindowKind::NthValue => {
                let Some(n) = self.argument(1, current, rows, cx)?.as_i64() else {
                    return Ok(Datum::Null);
                };
                if n <= 0 {
                    return Err(
                        out_of_bounds(state::INVALID_ARGUMENT_FOR_NTH_VALUE, "nth_value").into(),
                    );
                }
                let place = nth_of(frame.parts(), n as usize - 1);
                self.value_at(place, rows, cx)?
            }
        })
    }

    /// An argument over the row at a place.
    fn argument(&self, number: usize, place: usize, rows: &mut Rows, cx: &mut Cx) -> Step<Datum> {
        eval(&self.plan.args[number], rows.row(place)?, cx)
    }

    fn value_at(&self, place: Option<usize>, rows: &mut Rows, cx: &mut Cx) -> Step<Datum> {
        match place {
            Some(place) => self.argument(0, place, rows, cx),
            None => Ok(Datum::Null),
        }
    }

    /// Buckets that differ by one row at most, the larger ones first.
    fn ntile(&mut self, current: usize, rows: &mut Rows, cx: &mut Cx) -> Step<Datum> {
        let buckets = match self.buckets {
            Some(buckets) => buckets,
            None => {
                let Some(n) = self.argument(0, current, rows, cx)?.as_i64() else {
                    return Ok(Datum::Null);
                };
                if n <= 0 {
                    return Err(out_of_bounds(state::INVALID_ARGUMENT_FOR_NTILE, "ntile").into());
                }
                self.buckets = Some(n);
                n
            }
        };
        let (total, at) = (rows.all(cx)? as i64, current as i64);
        let (size, larger) = (total / buckets, total % buckets);
        let in_larger = larger * (size + 1);
        let bucket = if at < in_larger {
            at / (size + 1)
        } else {
            larger + (at - in_larger) / size
        };
        Ok(Datum::Int4(bucket as i32 + 1))
    }

    /// `lag` and `lead`.
    fn distant(
        &self,
        kind: WindowKind,
        current: usize,
        rows: &mut Rows,
        cx: &mut Cx,
    ) -> Step<Datum> {
        let distance = match self.plan.args.len() {
            1 => 1,
            _ => match self.argument(1, current, rows, cx)?.as_i64() {
                Some(n) => n,
                None => return Ok(Datum::Null),
            },
        };
        let place = match kind {
            WindowKind::Lag => current as i64 - distance,
            _ => current as i64 + distance,
        };
        if let Ok(place) = usize::try_from(place)
            && rows.has(place, cx)?
        {
            return self.argument(0, place, rows, cx);
        }
        match self.plan.args.len() {
            3 => self.argument(2, current, rows, cx),
            _ => Ok(Datum::Null),
        }
    }

    fn aggregate(
        &mut self,
        agg: &AggFunction,
        current: usize,
        frame: &Frame,
        rows: &mut Rows,
        cx: &mut Cx,
    ) -> Step<Datum> {
        if frame.excludes() {
            self.gather_anew(agg, current, frame, rows, cx)?;
        } else {
            self.follow(agg, frame, rows, cx)?;
        }
        if let Some(result) = &self.running.result {
            return Ok(result.clone());
        }
        let result = match agg.own() {
            Some(own) => {
                let transition = transition(own, frame);
                let state = self
                    .running
                    .own
                    .get_or_insert_with(|| OwnState::new(transition));
                state.finish(transition, &[], cx)?
            }
            None => {
                let agg = built_in(agg)?;
                let state = self.running.state.clone().unwrap_or_else(agg.init);
                (agg.finish)(&cx.eval, state)?
            }
        };
        self.running.result = Some(result.clone());
        Ok(result)
    }

    /// Forgets what was taken.
    fn start_over(&mut self, taken: Range<usize>, cx: &mut Cx) {
        self.running.kept.release(cx);
        if let Some(own) = &mut self.running.own {
            own.release(cx);
        }
        self.running = RunningAggregate {
            taken,
            ..RunningAggregate::default()
        };
    }

    /// The rows of the frame but those excluded, from the first.
    fn gather_anew(
        &mut self,
        agg: &AggFunction,
        current: usize,
        frame: &Frame,
        rows: &mut Rows,
        cx: &mut Cx,
    ) -> Step<()> {
        let parts = frame.parts();
        if self.running.of != Some(current) {
            self.start_over(parts[0].start..parts[0].start, cx);
            self.running.of = Some(current);
        }
        for part in parts {
            for place in part.start.max(self.running.taken.end)..part.end {
                self.take(agg, place, frame, rows, cx)?;
            }
        }
        Ok(())
    }

    /// The rows of a frame that has moved on.
    fn follow(
        &mut self,
        agg: &AggFunction,
        moved: &Frame,
        rows: &mut Rows,
        cx: &mut Cx,
    ) -> Step<()> {
        let frame = moved.range();
        if frame.is_empty() {
            if !self.running.taken.is_empty() {
                self.start_over(frame.start..frame.start, cx);
            }
            self.running.taken = frame.start..frame.start;
        }
        while self.running.taken.start < frame.start {
            let gone = self.running.taken.start;
            let all_gone = self.running.taken.end <= frame.start;
            if all_gone || !self.give_back(agg, gone, moved, rows, cx)? {
                self.start_over(frame.start..frame.start, cx);
                break;
            }
        }
        while self.running.taken.end < frame.end {
            self.take(agg, self.running.taken.end, moved, rows, cx)?;
        }
        Ok(())
    }

    /// What the aggregate takes of a row; None where FILTER keeps it out.
    fn intake(&self, place: usize, rows: &mut Rows, cx: &mut Cx) -> Step<Option<Row>> {
        let row = rows.row(place)?;
        if let Some(filter) = &self.plan.filter
            && !holds(filter, row, cx)?
        {
            return Ok(None);
        }
        let mut args = Row::with_capacity(self.plan.args.len());
        for arg in &self.plan.args {
            args.push(eval(arg, row, cx)?);
        }
        Ok(Some(args))
    }

    fn take(
        &mut self,
        agg: &AggFunction,
        place: usize,
        frame: &Frame,
        rows: &mut Rows,
        cx: &mut Cx,
    ) -> Step<()> {
        cx.tick()?;
        if let Some(args) = self.intake(place, rows, cx)? {
            if let Some(own) = agg.own() {
                let transition = transition(own, frame);
                let state = self
                    .running
                    .own
                    .get_or_insert_with(|| OwnState::new(transition));
                state.step(transition, &args, cx)?;
                self.running.result = None;
                self.running.taken.end = place + 1;
                cx.evaluated();
                return Ok(());
            }
            let agg = built_in(agg)?;
            let state = self.running.state.get_or_insert_with(agg.init);
            (agg.step)(&cx.eval, state, &args)?;
            if state.gathers() {
                let bytes = args.iter().map(datum_bytes).sum();
                self.running.kept.need(bytes, cx)?;
            }
            self.running.result = None;
        }
        self.running.taken.end = place + 1;
        Ok(())
    }

    /// Takes the oldest row out of a user's aggregate; false where its functions cannot.
    fn give_back_own(
        &mut self,
        transition: &Transition,
        place: usize,
        rows: &mut Rows,
        cx: &mut Cx,
    ) -> Step<bool> {
        cx.tick()?;
        if let Some(args) = self.intake(place, rows, cx)? {
            let state = self
                .running
                .own
                .get_or_insert_with(|| OwnState::new(transition));
            let undone = state.undo(transition, &args, cx)?;
            cx.evaluated();
            if !undone {
                return Ok(false);
            }
            self.running.result = None;
        }
        self.running.taken.start = place + 1;
        Ok(true)
    }

    /// Takes the oldest row out; false where the aggregate cannot.
    fn give_back(
        &mut self,
        agg: &AggFunction,
        place: usize,
        frame: &Frame,
        rows: &mut Rows,
        cx: &mut Cx,
    ) -> Step<bool> {
        if let Some(own) = agg.own() {
            return self.give_back_own(transition(own, frame), place, rows, cx);
        }
        let agg = built_in(agg)?;
        let Some(undo) = agg.undo else {
            return Ok(false);
        };
        cx.tick()?;
        if let Some(args) = self.intake(place, rows, cx)? {
            let state = self.running.state.get_or_insert_with(agg.init);
            if !undo(&cx.eval, state, &args)? {
                return Ok(false);
            }
            self.running.result = None;
        }
        self.running.taken.start = place + 1;
        Ok(true)
    }
}

/// How a user's aggregate is computed over a frame.
fn transition<'a>(own: &'a OwnAggregate, frame: &Frame) -> &'a Transition {
    own.over_frame(!frame.only_grows())
}

/// What computes an aggregate that no user made.
fn built_in(agg: &AggFunction) -> Result<&'static Aggregate> {
    let agg = agg.built_in();
    agg.ok_or_else(|| Error::internal("an aggregate that is not built in"))
}

/// The n-th of the rows in these ranges, from 0.
fn nth_of(parts: [Range<usize>; 3], mut n: usize) -> Option<usize> {
    for part in parts {
        if n < part.len() {
            return Some(part.start + n);
        }
        n -= part.len();
    }
    None
}
