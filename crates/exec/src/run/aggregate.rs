//! GROUP BY and aggregates: one group, also of nothing, without GROUP BY; else groups by hash, in order of first row
//! (so input sorted by group gives groups in that order).

use throng_sql::expr::AggCall;
use throng_sql::func::aggregate::AggState;
use throng_sql::plan::{AggStrategy, AggregateNode};

use super::context::Kept;
use super::eval::{eval, holds};
use super::hashed::{self, Key, RowTable};
use super::sort::sort_key;
use super::{BoxOperator, Cx, Operator, Row, Step};

pub struct AggregateOp {
    plan: &'static AggregateNode,
    input: BoxOperator,
    /// Group values by key.
    groups: RowTable,
    /// The states of each group's aggregates, by the group's place in `groups`.
    states: Vec<Vec<Accumulator>>,
    key: Key,
    pending: Row,
    have_pending: bool,
    input_ended: bool,
    /// The next group to give.
    at: usize,
    /// A finished group's row that waits for `having`.
    result: Option<Row>,
    kept: Kept,
}

/// One aggregate of one group.
struct Accumulator {
    state: Option<AggState>,
    /// With DISTINCT: the arguments seen.
    seen: RowTable,
    /// With ORDER BY: the arguments by their key, until the group ends.
    ordered: Vec<(Box<[u8]>, Row)>,
}

impl Accumulator {
    fn new(call: &AggCall) -> Accumulator {
        Accumulator {
            state: Some((call.agg.init)()),
            seen: RowTable::default(),
            ordered: Vec::new(),
        }
    }
}

/// What one aggregate takes from one row; computed for all aggregates before any state changes, so that a row whose
/// evaluation stops can be evaluated again.
enum Intake {
    /// FILTER keeps the row out.
    Nothing,
    Args {
        args: Row,
        order: Option<Box<[u8]>>,
    },
}

impl AggregateOp {
    pub fn new(plan: &'static AggregateNode, input: BoxOperator) -> AggregateOp {
        AggregateOp {
            plan,
            input,
            groups: RowTable::default(),
            states: Vec::new(),
            key: Key::default(),
            pending: Row::new(),
            have_pending: false,
            input_ended: false,
            at: 0,
            result: None,
            kept: Kept::default(),
        }
    }

    fn intakes(&self, cx: &mut Cx) -> Step<Vec<Intake>> {
        let mut intakes = Vec::with_capacity(self.plan.aggs.len());
        for call in &self.plan.aggs {
            if let Some(filter) = &call.filter
                && !holds(filter, &self.pending, cx)?
            {
                intakes.push(Intake::Nothing);
                continue;
            }
            let mut args = Row::with_capacity(call.args.len());
            for arg in &call.args {
                args.push(eval(arg, &self.pending, cx)?);
            }
            let order = match call.order.is_empty() {
                true => None,
                false => Some(sort_key(&call.order, &self.pending, cx)?),
            };
            intakes.push(Intake::Args { args, order });
        }
        Ok(intakes)
    }

    fn new_group(&mut self, key: Option<&Key>, values: Row) -> usize {
        self.states
            .push(self.plan.aggs.iter().map(Accumulator::new).collect());
        self.groups.insert(key, values)
    }

    /// Takes the pending row into its group.
    fn take(&mut self, cx: &mut Cx) -> Step<()> {
        let mut values = Row::with_capacity(self.plan.group.len());
        for expr in &self.plan.group {
            values.push(eval(expr, &self.pending, cx)?);
        }
        let intakes = self.intakes(cx)?;
        let types = self.plan.group.iter().map(|e| e.ty().oid);
        hashed::key_of_row(&values, types, &mut self.key)?;
        let group = match self.groups.first(&self.key) {
            Some(group) => group,
            None => {
                let bytes = hashed::row_bytes(&values) + 64 * self.plan.aggs.len();
                self.kept.add(bytes, cx)?;
                let key = self.key.clone();
                self.new_group(Some(&key), values)
            }
        };
        // From here on nothing stops: the row is taken exactly once.
        cx.evaluated();
        self.have_pending = false;
        for ((call, accumulator), intake) in self
            .plan
            .aggs
            .iter()
            .zip(&mut self.states[group])
            .zip(intakes)
        {
            if let Intake::Args { args, order } = intake {
                accumulate(call, accumulator, args, order, &mut self.kept, cx)?;
            }
        }
        Ok(())
    }

    fn consume(&mut self, cx: &mut Cx) -> Step<()> {
        loop {
            if !self.have_pending {
                if !self.input.next(cx, &mut self.pending)? {
                    break;
                }
                self.have_pending = true;
            }
            self.take(cx)?;
            cx.tick()?;
        }
        if self.plan.strategy == AggStrategy::Plain && self.groups.is_empty() {
            self.new_group(None, Row::new());
        }
        self.input_ended = true;
        Ok(())
    }

    fn finish(&mut self, group: usize, cx: &mut Cx) -> Step<Row> {
        let mut row = self.groups.row(group).clone();
        for (call, accumulator) in self.plan.aggs.iter().zip(&mut self.states[group]) {
            accumulator.ordered.sort_by(|(a, _), (b, _)| a.cmp(b));
            let mut state = accumulator
                .state
                .take()
                .unwrap_or_else(|| (call.agg.init)());
            for (_, args) in accumulator.ordered.drain(..) {
                (call.agg.step)(&cx.eval, &mut state, &args)?;
            }
            row.push((call.agg.finish)(&cx.eval, state)?);
        }
        Ok(row)
    }
}

fn accumulate(
    call: &AggCall,
    accumulator: &mut Accumulator,
    args: Row,
    order: Option<Box<[u8]>>,
    kept: &mut Kept,
    cx: &mut Cx,
) -> Step<()> {
    if call.distinct {
        let mut key = Key::default();
        hashed::key_of_row(&args, call.args.iter().map(|e| e.ty().oid), &mut key)?;
        if accumulator.seen.first(&key).is_some() {
            return Ok(());
        }
        kept.add(hashed::row_bytes(&[]) + key.len(), cx)?;
        accumulator.seen.insert(Some(&key), Row::new());
    }
    match order {
        Some(order) => {
            kept.add(order.len() + hashed::row_bytes(&args), cx)?;
            accumulator.ordered.push((order, args));
        }
        None => {
            let state = accumulator.state.get_or_insert_with(call.agg.init);
            (call.agg.step)(&cx.eval, state, &args)?;
        }
    }
    Ok(())
}

impl Operator for AggregateOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if !self.input_ended {
            self.consume(cx)?;
        }
        loop {
            if self.result.is_none() {
                if self.at == self.groups.len() {
                    return Ok(false);
                }
                let finished = self.finish(self.at, cx)?;
                self.at += 1;
                self.result = Some(finished);
            }
            if let Some(finished) = &self.result {
                let shown = match &self.plan.having {
                    Some(having) => holds(having, finished, cx)?,
                    None => true,
                };
                let finished = self.result.take().unwrap_or_default();
                if shown {
                    *row = finished;
                    return Ok(true);
                }
            }
            cx.tick()?;
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.groups = RowTable::default();
        self.kept.release(cx);
        self.states.clear();
        self.have_pending = false;
        self.input_ended = false;
        self.at = 0;
        self.result = None;
    }
}
