//! Set-returning functions: in FROM, and at the top of a select list.

use throng_bind::expr::RoutineCall;
use throng_plan::{FunctionScan, SetExpr};
use throng_types::Datum;
use throng_values::func::{Body, Function, SetIterator};

use super::eval::{eval, show};
use super::{BoxOperator, Cx, Operator, Row, Step, routine};
use crate::offload::{self, Site};

/// What a function gives: many values, or one.
enum Rows {
    Set(SetIterator),
    One(Option<Datum>),
    Routine(&'static RoutineCall, routine::Values),
}

impl Rows {
    fn start(func: &'static Function, args: &[Datum], site: Site<'_>, cx: &Cx) -> Step<Rows> {
        match func.body {
            Body::Set(_) if func.strict && args.iter().any(Datum::is_null) => Ok(Rows::One(None)),
            Body::Set(begin) => Ok(Rows::Set(offload::start(func, begin, args, site, cx)?)),
            Body::Scalar(_) => Ok(Rows::One(Some(func.call(&cx.eval, args)?))),
        }
    }

    fn next(&mut self) -> Step<Option<Datum>> {
        match self {
            Rows::Set(rows) => rows.next().transpose().map_err(Into::into),
            Rows::One(value) => Ok(value.take()),
            Rows::Routine(call, values) => Ok(values.next(call)),
        }
    }
}

pub struct FunctionScanOp {
    plan: &'static FunctionScan,
    width: usize,
    rows: Option<Rows>,
    count: i64,
    pending: Row,
    have_pending: bool,
}

impl FunctionScanOp {
    /// `width`: columns of the output, ordinality included.
    pub fn new(plan: &'static FunctionScan, width: usize) -> FunctionScanOp {
        FunctionScanOp {
            plan,
            width,
            rows: None,
            count: 0,
            pending: Row::new(),
            have_pending: false,
        }
    }

    fn fetch(&mut self, cx: &mut Cx) -> Step<bool> {
        if self.rows.is_none() {
            let site = Site {
                args: &self.plan.args,
                other: None,
                at: cx.env.effects.at(),
            };
            let mut args = Vec::with_capacity(self.plan.args.len());
            for arg in &self.plan.args {
                args.push(eval(arg, &[], cx)?);
            }
            self.rows = Some(Rows::start(self.plan.func, &args, site, cx)?);
            cx.evaluated();
            self.count = 0;
        }
        let Some(rows) = &mut self.rows else {
            return Ok(false);
        };
        let Some(value) = rows.next()? else {
            return Ok(false);
        };
        self.pending.clear();
        let columns = self.width - usize::from(self.plan.ordinality);
        match value {
            // A row of a function with several columns comes as a record.
            Datum::Record(record) if columns > 1 || self.plan.composite => {
                self.pending.extend_from_slice(&record.values);
            }
            value => self.pending.push(value),
        }
        self.pending.resize(columns, Datum::Null);
        self.count += 1;
        if self.plan.ordinality {
            self.pending.push(Datum::Int8(self.count));
        }
        Ok(true)
    }
}

impl Operator for FunctionScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            if !self.have_pending {
                // A set may have no end, and who reads it need not end its turns.
                cx.tick()?;
                if !self.fetch(cx)? {
                    return Ok(false);
                }
                self.have_pending = true;
            }
            let filter = self.plan.filter.as_ref();
            if show(filter, &mut self.pending, &mut self.have_pending, cx, row)? {
                return Ok(true);
            }
        }
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.rows = None;
        self.have_pending = false;
    }
}

/// Set-returning functions in a select list: each input row gives as many rows as the longest of
/// them.
pub struct ProjectSetOp {
    input: BoxOperator,
    exprs: &'static [SetExpr],
    input_row: Row,
    have_row: bool,
    /// The sets of this input row, once started; scalars are evaluated with them.
    sets: Vec<Option<Rows>>,
    scalars: Row,
    started: bool,
}

impl ProjectSetOp {
    pub fn new(input: BoxOperator, exprs: &'static [SetExpr]) -> ProjectSetOp {
        ProjectSetOp {
            input,
            exprs,
            input_row: Row::new(),
            have_row: false,
            sets: Vec::new(),
            scalars: Row::new(),
            started: false,
        }
    }

    fn start(&mut self, cx: &mut Cx) -> Step<()> {
        // What was started stays so where another stops.
        for expr in &self.exprs[self.sets.len()..] {
            match expr {
                SetExpr::Scalar(expr) => {
                    self.scalars.push(eval(expr, &self.input_row, cx)?);
                    self.sets.push(None);
                }
                SetExpr::Set { func, args, .. } => {
                    let at = cx.env.effects.at();
                    let site = Site {
                        args,
                        other: None,
                        at,
                    };
                    let mut values = Vec::with_capacity(args.len());
                    for arg in args {
                        values.push(eval(arg, &self.input_row, cx)?);
                    }
                    self.sets.push(Some(Rows::start(func, &values, site, cx)?));
                    self.scalars.push(Datum::Null);
                }
                SetExpr::Routine(call) => {
                    let values = routine::Values::start(call, &self.input_row, cx)?;
                    self.scalars.push(Datum::Null);
                    self.sets.push(Some(Rows::Routine(call, values)));
                }
            }
            cx.evaluated();
        }
        self.started = true;
        Ok(())
    }
}

impl Operator for ProjectSetOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            if !self.have_row {
                if !self.input.next(cx, &mut self.input_row)? {
                    return Ok(false);
                }
                self.have_row = true;
                self.started = false;
                self.sets.clear();
                self.scalars.clear();
            }
            if !self.started {
                self.start(cx)?;
            }
            cx.tick()?;
            row.clone_from(&self.scalars);
            let mut any = false;
            for (place, set) in row.iter_mut().zip(&mut self.sets) {
                if let Some(value) = set.as_mut().map(Rows::next).transpose()?.flatten() {
                    *place = value;
                    any = true;
                }
            }
            if any {
                return Ok(true);
            }
            self.have_row = false;
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.have_row = false;
        self.started = false;
    }
}
