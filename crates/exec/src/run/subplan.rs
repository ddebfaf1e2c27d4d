//! Subqueries inside expressions.
//!
//! A subquery without correlation runs once and its answer is kept for the statement; a correlated
//! one runs for each row whose arguments differ from the last, or for each row if it is volatile. A
//! run that stops half-way stays where it is and goes on when the same expression is evaluated
//! again: of a volatile one the effects of the evaluation in hand tell.

use throng_bind::expr::{Expr, ParamId};
use throng_bind::expr::{SubPlanKind, SubPlanRef};
use throng_types::datum::Array;
use throng_types::error::state;
use throng_types::sqltype::element_of;
use throng_types::{Datum, Error};

use super::context::RowMemory;
use super::eval::{eval as eval_expr, show};
use super::hashed::datum_bytes;
use super::limit::Values;
use super::quantified::{Answers, Question};
use super::{BoxOperator, Cx, Operator, Row, Step, copy_row};
use crate::spill::RowList;

/// A subquery's operators and what is known of its answer.
pub struct SubPlan {
    root: BoxOperator,
    /// The arguments of the run in hand.
    args: Vec<Datum>,
    run: Run,
    row: Row,
    answers: Answers,
    array: Made,
    kept: RowMemory,
}

/// The array of a run's rows, made once.
#[derive(Default)]
struct Made {
    items: Vec<Datum>,
    bytes: usize,
    value: Option<Datum>,
}

enum Run {
    Fresh,
    /// Started; there may be more rows than those so far.
    Running(RowList),
    /// These are all.
    Finished(RowList),
}

impl SubPlan {
    pub fn new(root: BoxOperator) -> SubPlan {
        SubPlan {
            root,
            args: Vec::new(),
            run: Run::Fresh,
            row: Row::new(),
            answers: Answers::default(),
            array: Made::default(),
            kept: RowMemory::default(),
        }
    }

    /// A plan that has been run: its rows.
    pub fn of_rows(rows: RowList) -> SubPlan {
        SubPlan {
            run: Run::Finished(rows),
            ..SubPlan::new(Box::new(Values::new(&[])))
        }
    }

    /// Takes the arguments of a run, which begins anew if they are others than before.
    fn with_args(&mut self, args: Vec<Datum>, cx: &mut Cx) {
        if self.args != args {
            self.begin(args, cx);
        }
    }

    /// A run that begins anew.
    fn begin(&mut self, args: Vec<Datum>, cx: &mut Cx) {
        self.args = args;
        self.run = Run::Fresh;
        self.answers = Answers::default();
        self.array = Made::default();
        self.kept.release(cx);
    }

    /// Runs until there are `enough` rows, or all.
    fn complete(&mut self, enough: usize, cx: &mut Cx) -> Step<()> {
        if matches!(self.run, Run::Fresh) {
            self.root.rewind(cx);
            self.run = Run::Running(RowList::default());
        }
        let Run::Running(rows) = &mut self.run else {
            return Ok(());
        };
        while rows.len() < enough {
            cx.tick()?;
            if !self.root.next(cx, &mut self.row)? {
                self.run = Run::Finished(std::mem::take(rows));
                break;
            }
            rows.keep(std::mem::take(&mut self.row), &mut self.kept, cx)?;
        }
        Ok(())
    }

    /// The row of this number, if it is there.
    fn row(&mut self, number: usize) -> Step<Option<&[Datum]>> {
        Ok(match &mut self.run {
            Run::Running(rows) | Run::Finished(rows) => rows.get(number)?,
            Run::Fresh => None,
        })
    }
}

/// How many rows decide a subquery of this kind.
fn enough(kind: &SubPlanKind) -> usize {
    match kind {
        SubPlanKind::Exists => 1,
        SubPlanKind::Scalar => 2,
        SubPlanKind::Array | SubPlanKind::Any { .. } | SubPlanKind::All { .. } => usize::MAX,
    }
}

/// The value of a subquery over `row`.
pub fn eval(sub: &SubPlanRef, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    let mut args = Vec::with_capacity(sub.args.len());
    for (_, expr) in &sub.args {
        args.push(eval_expr(expr, row, cx)?);
    }
    let slot = sub.plan as usize;
    let Some(mut plan) = cx.subplans[slot].take() else {
        return Err(Error::internal("a subquery that contains itself").into());
    };
    match &sub.volatile {
        None => plan.with_args(args, cx),
        Some(volatile) => {
            if cx.env.effects.begins_run(sub.plan) {
                plan.begin(args, cx);
                forget(&volatile.ctes, cx);
            }
        }
    }
    // The outer values are set at each try: another use of the same parameters may have come
    // between.
    for ((param, _), value) in sub.args.iter().zip(&plan.args) {
        cx.outer[param.0 as usize] = value.clone();
    }
    // What the subquery's rows do is done when they are; what this row's other expressions did is
    // not.
    let outside = cx.env.effects.enter();
    let complete = plan.complete(enough(&sub.kind), cx);
    cx.env.effects.leave(outside);
    let answer = complete.and_then(|()| answer(sub, &mut plan, row, cx));
    cx.subplans[slot] = Some(plan);
    answer
}

/// Shared WITH queries begin anew when they are read next.
pub(super) fn forget(ctes: &[u32], cx: &mut Cx) {
    for cte in ctes {
        let slot = *cte as usize;
        if let Some(mut plan) = cx.subplans[slot].take() {
            plan.begin(Vec::new(), cx);
            cx.subplans[slot] = Some(plan);
        }
    }
}

fn answer(sub: &SubPlanRef, plan: &mut SubPlan, row: &[Datum], cx: &mut Cx) -> Step<Datum> {
    let SubPlan {
        run,
        answers,
        array,
        kept,
        ..
    } = plan;
    let mut none = RowList::default();
    let rows = match run {
        Run::Running(rows) | Run::Finished(rows) => rows,
        Run::Fresh => &mut none,
    };
    match &sub.kind {
        SubPlanKind::Exists => Ok(Datum::Bool(!rows.is_empty())),
        SubPlanKind::Scalar if rows.len() > 1 => Err(Error::new(
            state::CARDINALITY_VIOLATION,
            "more than one row returned by a subquery used as an expression",
        )
        .into()),
        SubPlanKind::Scalar => Ok(rows.get(0)?.map_or(Datum::Null, |row| row[0].clone())),
        SubPlanKind::Array => {
            if let Some(made) = &array.value {
                return Ok(made.clone());
            }
            while let Some(row) = rows.get(array.items.len())? {
                let bytes = datum_bytes(&row[0]);
                kept.need(bytes, cx)?;
                array.bytes += bytes;
                array.items.push(row[0].clone());
                cx.tick()?;
            }
            // Nobody asks for the rows any more.
            *rows = RowList::default();
            kept.release(cx);
            kept.insist(array.bytes, cx);
            let element = element_of(sub.ty.oid).unwrap_or(sub.ty.oid);
            let items = std::mem::take(&mut array.items);
            let made = Datum::array(Array::from_items(element, items));
            array.value = Some(made.clone());
            Ok(made)
        }
        SubPlanKind::Any { left, compare } | SubPlanKind::All { left, compare } => {
            let question = Question {
                left,
                compare,
                all: matches!(sub.kind, SubPlanKind::All { .. }),
            };
            answers.answer(&question, rows, row, kept, cx)
        }
    }
}

/// Reads a WITH query that several may read: it runs as far as its readers ask, its rows are kept.
pub struct CteScanOp {
    subplan: usize,
    args: &'static [(ParamId, Expr)],
    filter: &'static Option<Expr>,
    at: usize,
    pending: Row,
    have_pending: bool,
}

impl CteScanOp {
    pub fn new(
        subplan: usize,
        args: &'static [(ParamId, Expr)],
        filter: &'static Option<Expr>,
    ) -> CteScanOp {
        CteScanOp {
            subplan,
            args,
            filter,
            at: 0,
            pending: Row::new(),
            have_pending: false,
        }
    }

    fn fetch(&mut self, cx: &mut Cx) -> Step<bool> {
        let mut args = Vec::with_capacity(self.args.len());
        for (_, expr) in self.args {
            args.push(eval_expr(expr, &[], cx)?);
        }
        let Some(mut cte) = cx.subplans[self.subplan].take() else {
            return Err(Error::internal("a WITH query that reads itself").into());
        };
        cte.with_args(args, cx);
        for ((param, _), value) in self.args.iter().zip(&cte.args) {
            cx.outer[param.0 as usize] = value.clone();
        }
        let ran = cte.complete(self.at + 1, cx);
        let found = cte.row(self.at).map(|row| {
            if let Some(row) = row {
                copy_row(row, &mut self.pending);
                self.have_pending = true;
                self.at += 1;
            }
        });
        cx.subplans[self.subplan] = Some(cte);
        found.and(ran).map(|()| self.have_pending)
    }
}

impl Operator for CteScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            if !self.have_pending && !self.fetch(cx)? {
                return Ok(false);
            }
            let filter = self.filter.as_ref();
            if show(filter, &mut self.pending, &mut self.have_pending, cx, row)? {
                return Ok(true);
            }
        }
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.at = 0;
        self.have_pending = false;
    }
}
