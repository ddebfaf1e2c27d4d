//! GROUP BY and aggregates: one group, also of nothing, without GROUP BY; else groups by hash, in order of first row
//! (so input sorted by group gives groups in that order). Grouping sets are groupings of the same rows beside each other,
//! given one after the other.

use throng_sql::expr::{AggCall, Expr};
use throng_sql::func::aggregate::AggState;
use throng_sql::func::{AggKind, OrderedFn, OrderedSet};
use throng_sql::plan::{AggStrategy, AggregateNode};
use throng_types::Datum;
use throng_types::key::{self, KeyOrder};

use super::context::Kept;
use super::eval::{eval, holds};
use super::hashed::{self, Key, RowTable};
use super::sort::sort_key;
use super::{BoxOperator, Cx, Operator, Row, Step};

pub struct AggregateOp {
    plan: &'static AggregateNode,
    input: BoxOperator,
    /// One for each grouping set.
    sets: Vec<Groups>,
    key: Key,
    pending: Row,
    have_pending: bool,
    input_ended: bool,
    /// The next group to give: its set, its place in it.
    at: (usize, usize),
    /// A finished group's row that waits for `having`.
    result: Option<Row>,
    kept: Kept,
}

/// The groups of one grouping set.
#[derive(Default)]
struct Groups {
    /// Group values by key.
    rows: RowTable,
    /// The states of each group's aggregates, by the group's place in `rows`.
    states: Vec<Vec<Accumulator>>,
}

/// One aggregate of one group.
struct Accumulator {
    state: Option<AggState>,
    /// With DISTINCT: the arguments seen.
    seen: RowTable,
    /// With ORDER BY: the arguments by their key, until the group ends.
    ordered: Vec<(Box<[u8]>, Row)>,
    /// Of an ordered-set aggregate: the direct arguments over the group's first row.
    direct: Option<Row>,
}

impl Accumulator {
    fn new(call: &AggCall) -> Accumulator {
        Accumulator {
            state: Some((call.agg.init)()),
            seen: RowTable::default(),
            ordered: Vec::new(),
            direct: None,
        }
    }

    fn finish(&mut self, call: &AggCall, cx: &mut Cx) -> Step<Datum> {
        let mut state = self.state.take().unwrap_or_else(call.agg.init);
        for (_, args) in self.ordered.drain(..) {
            (call.agg.step)(&cx.eval, &mut state, &args)?;
        }
        Ok((call.agg.finish)(&cx.eval, state)?)
    }

    fn finish_set(&mut self, call: &AggCall, compute: OrderedFn, cx: &mut Cx) -> Step<Datum> {
        let direct = self.direct.take().unwrap_or_default();
        let mut own_key = Vec::new();
        for (value, key) in direct.iter().zip(&call.order) {
            if matches!(call.agg.kind, AggKind::Hypothetical(_)) {
                let order = KeyOrder::new(key.expr.ty().oid, key.descending, key.nulls_first);
                key::encode_one(value, order, &mut own_key)?;
            }
        }
        let set = OrderedSet {
            direct: &direct,
            rows: &self.ordered,
            own_key: &own_key,
        };
        Ok(compute(&cx.eval, &set)?)
    }
}

/// What one aggregate takes from one row; computed for all aggregates before any state changes, so that a row whose
/// evaluation stops can be evaluated again.
#[derive(Clone)]
struct Intake {
    direct: Option<Row>,
    /// None where FILTER keeps the row out.
    taken: Option<Taken>,
}

#[derive(Clone)]
struct Taken {
    args: Row,
    order: Option<Box<[u8]>>,
}

fn values(exprs: &'static [Expr], row: &[Datum], cx: &mut Cx) -> Step<Row> {
    exprs.iter().map(|e| eval(e, row, cx)).collect()
}

fn direct_values(call: &'static AggCall, row: &[Datum], cx: &mut Cx) -> Step<Option<Row>> {
    match call.agg.kind.is_plain() {
        true => Ok(None),
        false => values(&call.direct, row, cx).map(Some),
    }
}

impl AggregateOp {
    pub fn new(plan: &'static AggregateNode, input: BoxOperator) -> AggregateOp {
        AggregateOp {
            plan,
            input,
            sets: Vec::new(),
            key: Key::default(),
            pending: Row::new(),
            have_pending: false,
            input_ended: false,
            at: (0, 0),
            result: None,
            kept: Kept::default(),
        }
    }

    fn intakes(&self, cx: &mut Cx) -> Step<Vec<Intake>> {
        let mut intakes = Vec::with_capacity(self.plan.aggs.len());
        for call in &self.plan.aggs {
            let direct = direct_values(call, &self.pending, cx)?;
            if let Some(filter) = &call.filter
                && !holds(filter, &self.pending, cx)?
            {
                let taken = None;
                intakes.push(Intake { direct, taken });
                continue;
            }
            let args = values(&call.args, &self.pending, cx)?;
            let order = match call.order.is_empty() {
                true => None,
                false => Some(sort_key(&call.order, &self.pending, cx)?),
            };
            let taken = Some(Taken { args, order });
            intakes.push(Intake { direct, taken });
        }
        Ok(intakes)
    }

    fn new_group(&mut self, set: usize, key: Option<&Key>, values: Row) -> usize {
        let accumulators = self.plan.aggs.iter().map(Accumulator::new).collect();
        self.sets[set].states.push(accumulators);
        self.sets[set].rows.insert(key, values)
    }

    /// The group values with those that a set leaves out as NULL.
    fn values_in(&self, set: usize, values: &Row) -> Row {
        match self.plan.sets.get(set) {
            None => values.clone(),
            Some(places) => (0..)
                .zip(values)
                .map(|(at, value)| match places.contains(&at) {
                    true => value.clone(),
                    false => Datum::Null,
                })
                .collect(),
        }
    }

    /// Takes the pending row into its groups.
    fn take(&mut self, cx: &mut Cx) -> Step<()> {
        let mut values = values(&self.plan.group, &self.pending, cx)?;
        let mut intakes = self.intakes(cx)?;
        // From here on nothing stops: the row is taken exactly once.
        cx.evaluated();
        self.have_pending = false;
        for set in 0..self.sets.len() {
            let last = set + 1 == self.sets.len();
            let values = match last && self.plan.sets.is_empty() {
                true => std::mem::take(&mut values),
                false => self.values_in(set, &values),
            };
            let group = self.group_of(set, values, cx)?;
            let intakes = match last {
                true => std::mem::take(&mut intakes),
                false => intakes.clone(),
            };
            let states = &mut self.sets[set].states[group];
            for ((call, accumulator), intake) in self.plan.aggs.iter().zip(states).zip(intakes) {
                if accumulator.direct.is_none() {
                    accumulator.direct = intake.direct;
                }
                if let Some(taken) = intake.taken {
                    accumulate(call, accumulator, taken, &mut self.kept, cx)?;
                }
            }
        }
        Ok(())
    }

    /// The group of these values, a new one if need be.
    fn group_of(&mut self, set: usize, values: Row, cx: &mut Cx) -> Step<usize> {
        let types = self.plan.group.iter().map(|e| e.ty().oid);
        hashed::key_of_row(&values, types, &mut self.key)?;
        if let Some(group) = self.sets[set].rows.first(&self.key) {
            return Ok(group);
        }
        let bytes = hashed::row_bytes(&values) + 64 * self.plan.aggs.len();
        self.kept.add(bytes, cx)?;
        let key = self.key.clone();
        Ok(self.new_group(set, Some(&key), values))
    }

    fn consume(&mut self, cx: &mut Cx) -> Step<()> {
        if self.sets.is_empty() {
            let count = self.plan.sets.len().max(1);
            self.sets.resize_with(count, Groups::default);
        }
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
        // Where all rows are one group there is one even of no rows.
        for set in 0..self.sets.len() {
            let of_all = match self.plan.sets.get(set) {
                Some(places) => places.is_empty(),
                None => self.plan.strategy == AggStrategy::Plain,
            };
            if of_all && self.sets[set].rows.is_empty() {
                self.new_group(set, None, vec![Datum::Null; self.plan.group.len()]);
            }
        }
        self.input_ended = true;
        Ok(())
    }

    fn finish(&mut self, (set, group): (usize, usize), cx: &mut Cx) -> Step<Row> {
        let groups = &mut self.sets[set];
        // An ordered-set aggregate of no rows still has its direct arguments: they may stop, so they come first.
        for (call, accumulator) in self.plan.aggs.iter().zip(&mut groups.states[group]) {
            if accumulator.direct.is_none() {
                accumulator.direct = direct_values(call, &[], cx)?;
            }
        }
        let mut row = groups.rows.row(group).clone();
        for (call, accumulator) in self.plan.aggs.iter().zip(&mut groups.states[group]) {
            accumulator.ordered.sort_by(|(a, _), (b, _)| a.cmp(b));
            row.push(match call.agg.kind {
                AggKind::Plain => accumulator.finish(call, cx)?,
                AggKind::OrderedSet { compute, .. } | AggKind::Hypothetical(compute) => {
                    accumulator.finish_set(call, compute, cx)?
                }
            });
        }
        if let Some(places) = self.plan.sets.get(set) {
            let groupings = self.plan.groupings.iter();
            row.extend(groupings.map(|asked| Datum::Int4(left_out(asked, places))));
        }
        Ok(row)
    }
}

/// GROUPING: a bit for each place asked about that is not in the set.
fn left_out(asked: &[u32], set: &[u32]) -> i32 {
    asked
        .iter()
        .fold(0, |bits, at| (bits << 1) | i32::from(!set.contains(at)))
}

fn accumulate(
    call: &AggCall,
    accumulator: &mut Accumulator,
    taken: Taken,
    kept: &mut Kept,
    cx: &mut Cx,
) -> Step<()> {
    let Taken { args, order } = taken;
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
            if state.gathers() {
                kept.add(args.iter().map(hashed::datum_bytes).sum(), cx)?;
            }
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
                let (set, group) = self.at;
                let Some(groups) = self.sets.get(set) else {
                    return Ok(false);
                };
                if group == groups.rows.len() {
                    self.at = (set + 1, 0);
                    continue;
                }
                let finished = self.finish(self.at, cx)?;
                self.at.1 += 1;
                self.result = Some(finished);
            }
            if let Some(finished) = &self.result {
                let shown = match &self.plan.having {
                    Some(having) => holds(having, finished, cx)?,
                    None => true,
                };
                cx.evaluated();
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
        self.sets.clear();
        self.kept.release(cx);
        self.have_pending = false;
        self.input_ended = false;
        self.at = (0, 0);
        self.result = None;
    }
}
