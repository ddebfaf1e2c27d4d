//! Users' functions in expressions and in FROM.
//!
//! An evaluation cannot run statements: it stops ([`Suspension::Call`]), whoever drives it has the
//! function's body run, and the evaluation is done again and finds the answer among its effects.
//!
//! ```text
//! SELECT f(a) + g(a)     f(1)                     stop, the body of f runs      log: [f(1) = 2]
//! again                  f(1) is 2, g(1)          stop, the body of g runs      log: [f(1) = 2, g(1) = 3]
//! again                  5                        the row is done: the log is emptied
//! ```
//! Arguments that may be others when they are computed again (`f(random())`) are not: the call's
//! answer is found by the place of the call, and of the log where its arguments began.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use throng_bind::binder::BodyResult;
use throng_bind::expr::{Expr, RoutineCall};
use throng_bind::fold::is_volatile;
use throng_catalog::{Catalog, RoutineDef};
use throng_plan::RoutineScan;
use throng_txn::Snapshot;
use throng_types::datum::Record;
use throng_types::{Datum, Error, Oid, Result, SqlType, Text};
use throng_values::func::RelColumn;

use super::eval::{eval, show};
use super::{BoxOperator, Cx, Operator, Row, Step, Suspension};
use crate::run::context::Env;
use crate::run::effects::Effect;
use crate::trigger::TriggerCall;

/// A function to run, with its arguments.
pub struct CallRequest {
    pub def: Arc<RoutineDef>,
    pub args: Vec<Datum>,
    pub types: Vec<SqlType>,
    pub result: BodyResult,
    /// For which trigger, if it is not called by a statement.
    pub trigger: Option<Arc<TriggerCall>>,
    /// Where its arguments began, if they may be others when they are computed again.
    pub place: Option<CallPlace>,
}

/// A call in a statement, and the place in the log of effects where its arguments began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPlace {
    /// Its address: a plan's expressions stay where they are.
    pub(crate) call: usize,
    pub(crate) at: usize,
}

/// What a function gave: rows of its columns, or of one value.
#[derive(Debug, Default)]
pub struct CallResult {
    pub rows: Vec<Row>,
    pub columns: Vec<RelColumn>,
}

pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<CallResult>> + 'a>>;

/// Who runs users' functions: the session.
pub trait Routines {
    /// What is defined now, whatever was when the statement began.
    fn definitions(&self) -> Arc<Catalog>;

    /// Whether nothing may be left for later: code of an owner runs for somebody else.
    fn is_restricted(&self) -> bool;

    /// `snapshot`: what the calling statement sees.
    fn call<'a>(&'a self, request: &'a CallRequest, snapshot: &'a Snapshot) -> CallFuture<'a>;
}

/// Answers a [`Suspension::Call`], for the evaluation to find.
pub(crate) async fn answer(request: &CallRequest, env: Env<'_>) -> Result<()> {
    let Some(routines) = env.routines else {
        return Err(Error::unsupported(format!(
            "calling the function {} here",
            request.def.name
        )));
    };
    env.cancel.check()?;
    let result = routines.call(request, env.snapshot).await?;
    env.effects.record(Effect::Called {
        routine: request.def.oid,
        args: request.args.as_slice().into(),
        result: Some(Arc::new(result)),
        place: request.place,
    });
    Ok(())
}

/// Whether a call's arguments may be others when they are computed again.
fn may_vary(call: &RoutineCall) -> bool {
    let varies = |e: &Expr| is_volatile(e) || matches!(e, Expr::SubPlan { .. });
    call.args.iter().any(|arg| arg.any(&mut |e| varies(e)))
}

/// What a call gives for these arguments; none where it is strict and one of them NULL.
fn result(call: &RoutineCall, row: &[Datum], cx: &mut Cx) -> Step<Option<Arc<CallResult>>> {
    let place = may_vary(call).then(|| CallPlace {
        call: std::ptr::from_ref(call).addr(),
        at: cx.env.effects.at(),
    });
    if let Some(place) = place
        && let Some(result) = cx.env.effects.answer_at(place)
    {
        return Ok(result);
    }
    let mut args = Vec::with_capacity(call.args.len());
    for arg in &call.args {
        args.push(eval(arg, row, cx)?);
    }
    let unasked = call.def.strict && args.iter().any(Datum::is_null);
    if unasked && place.is_none() {
        return Ok(None);
    }
    let same = |effect: &Effect| match effect {
        Effect::Called {
            routine, args: had, ..
        } => *routine == call.def.oid && **had == args[..],
        _ => false,
    };
    let effect = cx.env.effects.had_or(same, || {
        if unasked {
            return Ok(Effect::Called {
                routine: call.def.oid,
                args: args.as_slice().into(),
                result: None,
                place,
            });
        }
        Err(Suspension::Call(Box::new(CallRequest {
            def: call.def.clone(),
            args: args.clone(),
            types: call.args.iter().map(|a| a.ty()).collect(),
            result: BodyResult::of_call(call),
            trigger: None,
            place,
        })))
    })?;
    match effect {
        Effect::Called { result, .. } => Ok(result),
        _ => Err(Error::internal("another effect in the place of a call").into()),
    }
}

/// A row of what a call gives, as a value; one without fields is NULL.
fn as_value(call: &RoutineCall, columns: &[RelColumn], row: &[Datum]) -> Datum {
    if row.is_empty() {
        return Datum::Null;
    }
    if call.columns.is_empty() && !matches!(BodyResult::of_call(call), BodyResult::AnyRow) {
        return row.first().cloned().unwrap_or_default();
    }
    let columns = match call.columns.is_empty() {
        true => columns,
        false => &call.columns,
    };
    let types: Box<[Oid]> = columns.iter().map(|c| c.ty.oid).collect();
    let names: Arc<[Text]> = columns.iter().map(|c| Text::new(&c.name)).collect();
    Datum::Record(
        Record {
            types: types.into(),
            names: Some(names),
            values: row.to_vec(),
        }
        .into(),
    )
}

/// The value of a call.
pub fn value(call: &RoutineCall, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    if let Some(native) = call.def.native() {
        let args = call.args.iter().map(|arg| eval(arg, row, cx));
        let args: Vec<Datum> = args.collect::<Step<_>>()?;
        return Ok(native.call(&cx.eval, &args)?);
    }
    let Some(result) = result(call, row, cx)? else {
        return Ok(Datum::Null);
    };
    let first = result.rows.first();
    Ok(first.map_or(Datum::Null, |row| as_value(call, &result.columns, row)))
}

/// The values of a call in a select list, one at a time.
pub struct Values {
    result: Option<Arc<CallResult>>,
    at: usize,
}

impl Values {
    pub fn start(call: &RoutineCall, row: &[Datum], cx: &mut Cx) -> Step<Values> {
        let result = result(call, row, cx)?;
        Ok(Values { result, at: 0 })
    }

    pub fn next(&mut self, call: &RoutineCall) -> Option<Datum> {
        let result = self.result.as_ref()?;
        let row = result.rows.get(self.at)?;
        self.at += 1;
        Some(as_value(call, &result.columns, row))
    }
}

/// Functions in FROM side by side.
pub struct RowsFromOp {
    inputs: Vec<Input>,
    /// The input to ask next for the row in hand.
    asking: usize,
    ordinality: bool,
    count: i64,
}

struct Input {
    operator: BoxOperator,
    width: usize,
    row: Row,
    /// It has no more rows.
    ended: bool,
}

impl RowsFromOp {
    /// The inputs with the widths of their rows.
    pub fn new(inputs: Vec<(BoxOperator, usize)>, ordinality: bool) -> RowsFromOp {
        let input = |(operator, width)| Input {
            operator,
            width,
            row: Row::new(),
            ended: false,
        };
        RowsFromOp {
            inputs: inputs.into_iter().map(input).collect(),
            asking: 0,
            ordinality,
            count: 0,
        }
    }
}

impl Operator for RowsFromOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        while let Some(input) = self.inputs.get_mut(self.asking) {
            if !input.ended && !input.operator.next(cx, &mut input.row)? {
                input.ended = true;
            }
            self.asking += 1;
        }
        self.asking = 0;
        if self.inputs.iter().all(|input| input.ended) {
            return Ok(false);
        }
        row.clear();
        for input in &self.inputs {
            let end = row.len() + input.width;
            if !input.ended {
                row.extend_from_slice(&input.row);
            }
            row.resize(end, Datum::Null);
        }
        self.count += 1;
        if self.ordinality {
            row.push(Datum::Int8(self.count));
        }
        Ok(true)
    }

    fn rewind(&mut self, cx: &mut Cx) {
        for input in &mut self.inputs {
            input.operator.rewind(cx);
            input.ended = false;
        }
        self.asking = 0;
        self.count = 0;
    }
}

/// A user's function in FROM.
pub struct RoutineScanOp {
    plan: &'static RoutineScan,
    width: usize,
    /// Once it has been called.
    result: Option<Arc<CallResult>>,
    at: usize,
    pending: Row,
    have_pending: bool,
}

impl RoutineScanOp {
    /// `width`: columns of the output, ordinality included.
    pub fn new(plan: &'static RoutineScan, width: usize) -> RoutineScanOp {
        RoutineScanOp {
            plan,
            width,
            result: None,
            at: 0,
            pending: Row::new(),
            have_pending: false,
        }
    }

    fn fetch(&mut self, cx: &mut Cx) -> Step<bool> {
        if self.result.is_none() {
            let result = result(&self.plan.call, &[], cx)?;
            cx.evaluated();
            self.result = Some(result.unwrap_or_default());
            self.at = 0;
        }
        let Some(result) = &self.result else {
            return Ok(false);
        };
        let columns = self.width - usize::from(self.plan.ordinality);
        self.pending.clear();
        match result.rows.get(self.at) {
            Some(row) => self.pending.extend_from_slice(row),
            // What returns no set gives one row whatever it is.
            None if self.at == 0 && !self.plan.call.def.set => {}
            None => return Ok(false),
        }
        if !self.plan.call.def.set && self.at > 0 {
            return Ok(false);
        }
        self.pending.resize(columns, Datum::Null);
        self.at += 1;
        if self.plan.ordinality {
            self.pending.push(Datum::Int8(self.at as i64));
        }
        Ok(true)
    }
}

impl Operator for RoutineScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            if !self.have_pending {
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
        self.result = None;
        self.at = 0;
        self.have_pending = false;
    }
}
