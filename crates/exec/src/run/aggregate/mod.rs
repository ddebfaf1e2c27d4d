//! GROUP BY and aggregates: one group, also of nothing, without GROUP BY; else groups by hash, in
//! order of first row. Grouping sets are groupings of the same rows beside each other, given one
//! after the other.
//!
//! ```text
//!   row ──► group in memory ─────────────────────────────────► given last
//!    └────► no room: what it brings, sorted by group ──► group by group, going on with what is in memory of it
//! ```
//! Once there is no room for further groups, rows of others wait for the end of the input. Where
//! groups grow with each row (`array_agg`, DISTINCT, ORDER BY), all rows do. A value that an
//! aggregate makes is in memory, however long.

mod accumulator;

use throng_plan::{AggStrategy, AggregateNode};
use throng_types::Datum;

use super::context::RowMemory;
use super::eval::{eval, holds};
use super::hashed::{self, Key, RowTable};
use super::{BoxOperator, Cx, Operator, Row, Step};
use crate::spill::Sorter;
use accumulator::{Accumulator, Direct, Intake, is_simple, sorts, values};

pub struct AggregateOp {
    plan: &'static AggregateNode,
    input: BoxOperator,
    /// One for each grouping set.
    sets: Vec<Groups>,
    key: Key,
    pending: Row,
    have_pending: bool,
    /// One set of groups, and all aggregates take each row as it comes.
    is_simple: bool,
    /// Room for the values that they take of a row.
    values: Row,
    /// The direct arguments of each aggregate.
    direct: Vec<Direct>,
    input_ended: bool,
    /// There is no room for further groups, nor for larger ones.
    full: bool,
    /// Groups take more memory with each row.
    grows: bool,
    /// The groups, by set, whose users' aggregates have not taken in the last row.
    draining: Vec<(usize, usize)>,
    /// What rows bring that found no room, by set and group.
    late: Sorter,
    late_row: Row,
    have_late: bool,
    /// The group whose rows are being taken from those, by set and key.
    current: Option<(Vec<u8>, Group)>,
    /// What it has taken of those.
    current_kept: RowMemory,
    /// The next group in memory to give: its set, its place in it.
    at: (usize, usize),
    /// A group that is being finished.
    finishing: Option<Group>,
    /// A finished group's row that waits for `having`.
    result: Option<Row>,
    kept: RowMemory,
}

/// The groups of one grouping set.
#[derive(Default)]
struct Groups {
    /// Group values by key.
    rows: RowTable,
    /// The states of each group's aggregates, by the group's place in `rows`; none once they are
    /// taken out.
    states: Vec<Option<Vec<Accumulator>>>,
}

/// A group that will get no more rows, or is getting the last of them.
struct Group {
    set: usize,
    /// The group's values, then those of the aggregates that are finished.
    row: Row,
    states: Vec<Accumulator>,
}

impl AggregateOp {
    pub fn new(plan: &'static AggregateNode, input: BoxOperator) -> AggregateOp {
        AggregateOp {
            plan,
            input,
            is_simple: plan.sets.is_empty() && plan.aggs.iter().all(is_simple),
            values: Row::new(),
            sets: Vec::new(),
            key: Key::default(),
            pending: Row::new(),
            have_pending: false,
            direct: plan.aggs.iter().map(|_| Direct::default()).collect(),
            input_ended: false,
            full: false,
            grows: plan.aggs.iter().any(sorts),
            draining: Vec::new(),
            late: Sorter::default(),
            late_row: Row::new(),
            have_late: false,
            current: None,
            current_kept: RowMemory::default(),
            at: (0, 0),
            finishing: None,
            result: None,
            kept: RowMemory::default(),
        }
    }

    fn intakes(&mut self, cx: &mut Cx) -> Step<Vec<Intake>> {
        let calls = self.plan.aggs.iter().zip(&mut self.direct);
        calls
            .map(|(call, direct)| Intake::of(call, direct, &self.pending, cx))
            .collect()
    }

    fn accumulators(&self) -> Vec<Accumulator> {
        self.plan.aggs.iter().map(Accumulator::new).collect()
    }

    fn new_group(&mut self, set: usize, key: Option<&Key>, values: Row) -> usize {
        let accumulators = self.accumulators();
        self.sets[set].states.push(Some(accumulators));
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

    /// Whether all rows are one group of a set.
    fn is_of_all(&self, set: usize) -> bool {
        match self.plan.sets.get(set) {
            Some(places) => places.is_empty(),
            None => self.plan.strategy == AggStrategy::Plain,
        }
    }

    /// Takes the pending row into its group, where all aggregates are [simple](is_simple): in the
    /// room that the row before left.
    fn take_simple(&mut self, cx: &mut Cx) -> Step<()> {
        let plan = self.plan;
        let args = plan.aggs.iter().flat_map(|call| &call.args);
        self.values.clear();
        for expr in plan.group.iter().chain(args) {
            self.values.push(eval(expr, &self.pending, cx)?);
        }
        // From here on nothing stops: the row is taken exactly once.
        cx.evaluated();
        self.have_pending = false;
        let (group, mut args) = self.values.split_at(plan.group.len());
        let types = plan.group.iter().map(|e| e.ty().oid);
        hashed::key_of_row(group, types, &mut self.key)?;
        let groups = &mut self.sets[0];
        let found = groups.rows.first(&self.key);
        let states = found.and_then(|group| groups.states[group].as_mut());
        let Some(states) = states.filter(|_| !self.full && !self.grows) else {
            return self.take_simple_elsewhere(cx);
        };
        let mut fits = true;
        for (call, accumulator) in plan.aggs.iter().zip(states) {
            let (own, others) = args.split_at(call.args.len());
            fits &= accumulator.step(call, own, &mut self.kept, cx)?;
            args = others;
        }
        if !fits && !self.is_of_all(0) {
            (self.full, self.grows) = (true, true);
        }
        Ok(())
    }

    /// Takes its values into a new group, or has them wait.
    fn take_simple_elsewhere(&mut self, cx: &mut Cx) -> Step<()> {
        let mut values = std::mem::take(&mut self.values).into_iter();
        let group = values.by_ref().take(self.plan.group.len()).collect();
        let calls = self.plan.aggs.iter();
        let intakes = calls.map(|call| Intake::of_args(values.by_ref().take(call.args.len())));
        let intakes = intakes.collect();
        self.full = self.full || self.grows && !cx.has_room();
        self.take_in(0, group, intakes, cx)
    }

    /// Takes the pending row into its groups.
    fn take(&mut self, cx: &mut Cx) -> Step<()> {
        if self.is_simple {
            return self.take_simple(cx);
        }
        let mut values = values(&self.plan.group, &self.pending, cx)?;
        let mut intakes = self.intakes(cx)?;
        // From here on nothing stops: the row is taken exactly once.
        cx.evaluated();
        self.have_pending = false;
        self.full = self.full || self.grows && !cx.has_room();
        for set in 0..self.sets.len() {
            let last = set + 1 == self.sets.len();
            let values = match last && self.plan.sets.is_empty() {
                true => std::mem::take(&mut values),
                false => self.values_in(set, &values),
            };
            let intakes = match last {
                true => std::mem::take(&mut intakes),
                false => intakes.clone(),
            };
            self.take_in(set, values, intakes, cx)?;
        }
        Ok(())
    }

    /// Takes what a row brings into its group of a set, or has it wait.
    fn take_in(
        &mut self,
        set: usize,
        mut values: Row,
        intakes: Vec<Intake>,
        cx: &mut Cx,
    ) -> Step<()> {
        let types = self.plan.group.iter().map(|e| e.ty().oid);
        hashed::key_of_row(&values, types, &mut self.key)?;
        let alone = self.is_of_all(set);
        let group = match self.sets[set].rows.first(&self.key) {
            _ if self.full && self.grows && !alone => None,
            Some(group) => Some(group),
            None => {
                let bytes = hashed::row_bytes(&values) + self.key.len() + 64 * self.plan.aggs.len();
                let fits = alone || !self.full && self.kept.fits(bytes, cx);
                self.full |= !fits;
                let key = self.key.clone();
                fits.then(|| self.new_group(set, Some(&key), std::mem::take(&mut values)))
            }
        };
        let states = group.and_then(|group| self.sets[set].states[group].as_mut());
        let Some(states) = states else {
            let key = [&(set as u16).to_be_bytes(), self.key.bytes()].concat();
            let mut row = values;
            intakes
                .into_iter()
                .for_each(|intake| intake.write(&mut row));
            return Ok(self.late.add(key.into(), row, cx)?);
        };
        if let Some(group) = group
            && self.plan.aggs.iter().any(|call| call.agg.own().is_some())
        {
            self.draining.push((set, group));
        }
        for ((call, accumulator), intake) in self.plan.aggs.iter().zip(states).zip(intakes) {
            if !accumulator.take(call, intake, &mut self.kept, cx)? && !alone {
                (self.full, self.grows) = (true, true);
            }
        }
        Ok(())
    }

    fn consume(&mut self, cx: &mut Cx) -> Step<()> {
        if self.sets.is_empty() {
            let count = self.plan.sets.len().max(1);
            self.sets.resize_with(count, Groups::default);
        }
        loop {
            self.drain(cx)?;
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
            if self.is_of_all(set) && self.sets[set].rows.is_empty() {
                self.new_group(set, None, vec![Datum::Null; self.plan.group.len()]);
            }
        }
        self.input_ended = true;
        Ok(())
    }

    /// Has users' aggregates take in the last row. May stop, to be called again.
    fn drain(&mut self, cx: &mut Cx) -> Step<()> {
        while let Some((set, group)) = self.draining.last().copied() {
            if let Some(states) = &mut self.sets[set].states[group] {
                for (call, accumulator) in self.plan.aggs.iter().zip(states) {
                    accumulator.drain(call, cx)?;
                }
            }
            self.draining.pop();
        }
        Ok(())
    }

    /// Begins to finish the next group; false where there is none.
    fn begin_group(&mut self, cx: &mut Cx) -> Step<bool> {
        if !self.late.is_empty() || self.have_late || self.current.is_some() {
            self.late.finish(cx)?;
            if self.begin_late_group(cx)? {
                return Ok(true);
            }
        }
        while let Some(groups) = self.sets.get_mut(self.at.0) {
            let (set, group) = self.at;
            if group == groups.rows.len() {
                self.at = (set + 1, 0);
                continue;
            }
            self.at.1 += 1;
            if let Some(states) = groups.states[group].take() {
                let row = groups.rows.row(group).clone();
                self.finishing = Some(Group { set, row, states });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next group of which rows waited, with all of them.
    fn begin_late_group(&mut self, cx: &mut Cx) -> Step<bool> {
        loop {
            if let Some((_, group)) = &mut self.current {
                for (call, accumulator) in self.plan.aggs.iter().zip(&mut group.states) {
                    accumulator.drain(call, cx)?;
                }
            }
            if !self.have_late {
                self.have_late = self.late.next(cx, &mut self.late_row)?;
            }
            let key = self.late.key();
            let of_this = self.current.as_ref().map(|(current, _)| current == key);
            match of_this {
                Some(true) if self.have_late => {}
                Some(_) => {
                    self.finishing = self.current.take().map(|(_, group)| group);
                    return Ok(true);
                }
                None if !self.have_late => return Ok(false),
                None => {
                    let key = key.to_vec();
                    let group = self.group_of(&key);
                    self.current = Some((key, group));
                }
            }
            self.have_late = false;
            let mut row = std::mem::take(&mut self.late_row).into_iter();
            row.by_ref().take(self.plan.group.len()).for_each(drop);
            if let Some((_, group)) = &mut self.current {
                for (call, accumulator) in self.plan.aggs.iter().zip(&mut group.states) {
                    let intake = Intake::read(call, &mut row);
                    accumulator.take(call, intake, &mut self.current_kept, cx)?;
                }
            }
            cx.tick()?;
        }
    }

    /// The group of a row that waited, by its set and key: with what is in memory of it.
    fn group_of(&mut self, key: &[u8]) -> Group {
        let (set, key) = key.split_first_chunk().unwrap_or((&[0; 2], &[]));
        let set = u16::from_be_bytes(*set).into();
        self.key.set(key);
        let groups: &mut Groups = &mut self.sets[set];
        if let Some(at) = groups.rows.first(&self.key)
            && let Some(states) = groups.states[at].take()
        {
            let row = groups.rows.row(at).clone();
            return Group { set, row, states };
        }
        Group {
            set,
            row: self.late_row[..self.plan.group.len()].to_vec(),
            states: self.accumulators(),
        }
    }

    /// Finishes the group in hand. May stop, to be called again.
    fn finish(&mut self, cx: &mut Cx) -> Step<()> {
        let Some(group) = &mut self.finishing else {
            return Ok(());
        };
        let first = self.plan.group.len();
        while let Some(at) = Some(group.row.len() - first).filter(|at| *at < group.states.len()) {
            let call = &self.plan.aggs[at];
            let value = group.states[at].finish(call, cx)?;
            group.row.push(value);
        }
        let Group { set, mut row, .. } = match self.finishing.take() {
            Some(group) => group,
            None => return Ok(()),
        };
        if let Some(places) = self.plan.sets.get(set) {
            let groupings = self.plan.groupings.iter();
            row.extend(groupings.map(|asked| Datum::Int4(left_out(asked, places))));
        }
        self.result = Some(row);
        if self.current.is_none() {
            self.current_kept.release(cx);
        }
        Ok(())
    }
}

/// GROUPING: a bit for each place asked about that is not in the set.
fn left_out(asked: &[u32], set: &[u32]) -> i32 {
    asked
        .iter()
        .fold(0, |bits, at| (bits << 1) | i32::from(!set.contains(at)))
}

impl Operator for AggregateOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if !self.input_ended {
            self.consume(cx)?;
        }
        loop {
            if self.result.is_none() {
                if self.finishing.is_none() && !self.begin_group(cx)? {
                    return Ok(false);
                }
                self.finish(cx)?;
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
        let in_memory = self.sets.drain(..).flat_map(|set| set.states).flatten();
        let current = self.current.take().map(|(_, group)| group.states);
        let finishing = self.finishing.take().map(|group| group.states);
        for states in in_memory.chain(current).chain(finishing) {
            states.into_iter().for_each(|state| state.release(cx));
        }
        self.late.clear(cx);
        self.kept.release(cx);
        self.current_kept.release(cx);
        self.have_pending = false;
        self.direct.fill_with(Direct::default);
        self.have_late = false;
        self.input_ended = false;
        self.full = false;
        self.grows = self.plan.aggs.iter().any(sorts);
        self.at = (0, 0);
        self.draining.clear();
        self.result = None;
    }
}
