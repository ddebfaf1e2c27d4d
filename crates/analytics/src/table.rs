//! Groups by key, with the states of their aggregates.
//!
//! A group's key is the ordered bytes of its values, so equal values are one group whatever their
//! scale or sign of zero. States are those of `throng_values::func`; aggregates with DISTINCT or
//! ORDER BY keep their arguments until the end, when they are sorted and stepped through.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use throng_exec::run::Row;
use throng_exec::run::hashed::row_bytes;
use throng_types::{Datum, Result};
use throng_values::func::aggregate::AggState;
use throng_values::func::{Aggregate, EvalContext, EvalStop};

use crate::column::{Kind, Reader};
use crate::keys::KeyPlan;

/// What is grouped: places in the prepared batch, which has the group's values first.
pub struct GroupPlan {
    pub keys: Vec<KeyPlan>,
    pub kinds: Vec<Kind>,
    pub aggs: Vec<AggPlan>,
}

pub struct AggPlan {
    pub agg: &'static Aggregate,
    pub args: std::ops::Range<usize>,
    /// A boolean column: rows where it is not true are passed over.
    pub filter: Option<usize>,
    /// The columns and keys to be sorted by before stepping.
    pub order: Vec<(usize, KeyPlan)>,
    /// Keys of the arguments, each combination of which counts once.
    pub distinct: Option<Vec<KeyPlan>>,
}

impl AggPlan {
    pub fn gathers(&self) -> bool {
        self.distinct.is_some() || !self.order.is_empty()
    }
}

/// Arguments with the key they are sorted by.
pub type Sortable = (Box<[u8]>, Row);

/// One aggregate of one group.
pub enum Accumulator {
    State(AggState),
    /// Arguments with what they are sorted by.
    Ordered(Vec<Sortable>),
    /// The same by what makes them distinct.
    Distinct(HashMap<Box<[u8]>, Sortable, FixedState>),
}

impl Accumulator {
    pub fn new(plan: &AggPlan) -> Accumulator {
        match (&plan.distinct, plan.order.is_empty()) {
            (Some(_), _) => Accumulator::Distinct(HashMap::default()),
            (None, false) => Accumulator::Ordered(Vec::new()),
            (None, true) => Accumulator::State((plan.agg.init)()),
        }
    }

    /// Takes in another part of the same group.
    fn merge(&mut self, plan: &AggPlan, other: Accumulator, cx: &EvalContext<'_>) -> Result<()> {
        match (self, other) {
            (Accumulator::State(state), Accumulator::State(other)) => {
                (plan.agg.combine)(cx, state, other).map_err(EvalStop::into_error)?;
            }
            (Accumulator::Ordered(rows), Accumulator::Ordered(more)) => rows.extend(more),
            (Accumulator::Distinct(seen), Accumulator::Distinct(more)) => seen.extend(more),
            _ => {
                return Err(throng_types::Error::internal(
                    "parts of different aggregates",
                ));
            }
        }
        Ok(())
    }

    pub fn finish(self, plan: &AggPlan, cx: &EvalContext<'_>) -> Result<Datum> {
        let mut rows = match self {
            Accumulator::State(state) => {
                return (plan.agg.finish)(cx, state).map_err(EvalStop::into_error);
            }
            Accumulator::Ordered(rows) => rows,
            Accumulator::Distinct(seen) => seen.into_values().collect(),
        };
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut state = (plan.agg.init)();
        for (_, args) in rows {
            (plan.agg.step)(cx, &mut state, &args).map_err(EvalStop::into_error)?;
        }
        (plan.agg.finish)(cx, state).map_err(EvalStop::into_error)
    }
}

/// Memory granted to the tables of one task, asked for in larger steps than it is used.
pub struct Budget {
    reservation: Arc<MemoryReservation>,
    used: usize,
}

/// What is asked for at once.
const STEP: usize = 64 << 10;

impl Budget {
    pub fn new(reservation: MemoryReservation) -> Budget {
        Budget {
            reservation: Arc::new(reservation),
            used: 0,
        }
    }

    /// Whether so many more bytes may be kept.
    fn allows(&mut self, bytes: usize) -> DfResult<()> {
        let held = self.reservation.size();
        if self.used + bytes > held {
            self.reservation
                .try_grow((self.used + bytes - held).max(STEP))?;
        }
        self.used += bytes;
        Ok(())
    }

    /// The same without asking.
    fn insist(&mut self, bytes: usize) {
        self.used += bytes;
        let held = self.reservation.size();
        if self.used > held {
            self.reservation.grow(self.used - held);
        }
    }
}

/// An aggregate as it takes in the rows of one batch.
pub struct Stepping<'a> {
    pub plan: &'a GroupPlan,
    pub agg: usize,
    pub readers: &'a [Reader<'a>],
    pub cx: &'a EvalContext<'a>,
}

struct Entry {
    hash: u64,
    start: usize,
    len: u32,
    next: u32,
}

const END: u32 = u32::MAX;
/// Groups a table takes whatever the budget says: a pass over spilled rows gets somewhere.
const AT_LEAST: usize = 256;

/// Groups and their states. What it holds is given back to the budget's reservation when it is
/// dropped.
pub struct Table {
    keys: Vec<u8>,
    entries: Vec<Entry>,
    buckets: Vec<u32>,
    values: Vec<Datum>,
    states: Vec<Accumulator>,
    bytes: usize,
    reservation: Arc<MemoryReservation>,
}

impl Drop for Table {
    fn drop(&mut self) {
        self.reservation
            .shrink(self.bytes.min(self.reservation.size()));
    }
}

impl Table {
    pub fn new(budget: &Budget) -> Table {
        Table::empty(&budget.reservation)
    }

    fn empty(reservation: &Arc<MemoryReservation>) -> Table {
        Table {
            keys: Vec::new(),
            entries: Vec::new(),
            buckets: Vec::new(),
            values: Vec::new(),
            states: Vec::new(),
            bytes: 0,
            reservation: reservation.clone(),
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Charges what it holds to another budget.
    pub fn move_to(&mut self, budget: &mut Budget) {
        budget.insist(self.bytes);
        self.reservation
            .shrink(self.bytes.min(self.reservation.size()));
        self.reservation = budget.reservation.clone();
    }

    pub fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        if self.buckets.is_empty() {
            return None;
        }
        let mut at = self.buckets[hash as usize & (self.buckets.len() - 1)];
        while at != END {
            let entry = &self.entries[at as usize];
            if entry.hash == hash && &self.keys[entry.start..][..entry.len as usize] == key {
                return Some(at as usize);
            }
            at = entry.next;
        }
        None
    }

    /// Makes a group with empty states; None if the budget has no room for it.
    pub fn insert(
        &mut self,
        plan: &GroupPlan,
        hash: u64,
        key: &[u8],
        values: impl Iterator<Item = Result<Datum>>,
        budget: &mut Budget,
    ) -> Result<Option<usize>> {
        let start = self.values.len();
        for value in values {
            self.values.push(value?);
        }
        let bytes = self.group_bytes(plan, key.len(), start);
        if budget.allows(bytes).is_err() {
            if self.len() >= AT_LEAST {
                self.values.truncate(start);
                return Ok(None);
            }
            budget.insist(bytes);
        }
        self.bytes += bytes;
        self.states.extend(plan.aggs.iter().map(Accumulator::new));
        Ok(Some(self.link(hash, key)))
    }

    fn group_bytes(&self, plan: &GroupPlan, key: usize, values: usize) -> usize {
        // The vectors have up to twice the room they need.
        2 * (key + size_of::<Entry>() + plan.aggs.len() * size_of::<Accumulator>())
            + row_bytes(&self.values[values..])
    }

    fn link(&mut self, hash: u64, key: &[u8]) -> usize {
        let at = self.entries.len();
        self.entries.push(Entry {
            hash,
            start: self.keys.len(),
            len: key.len() as u32,
            next: END,
        });
        self.keys.extend_from_slice(key);
        if self.entries.len() > self.buckets.len() {
            let size = (self.entries.len() * 2).next_power_of_two().max(16);
            self.buckets.clear();
            self.buckets.resize(size, END);
            (0..self.entries.len()).for_each(|i| self.chain(i));
        } else {
            self.chain(at);
        }
        at
    }

    fn chain(&mut self, at: usize) {
        let mask = self.buckets.len() - 1;
        let entry = &mut self.entries[at];
        entry.next = std::mem::replace(&mut self.buckets[entry.hash as usize & mask], at as u32);
    }

    /// Takes one row into an aggregate of a group. Err(ResourcesExhausted) inside means the row was
    /// taken in, but what the group keeps has outgrown the budget.
    pub fn step(
        &mut self,
        of: &Stepping<'_>,
        group: usize,
        row: usize,
        args: &mut Row,
        budget: &mut Budget,
    ) -> Result<DfResult<()>> {
        let Stepping {
            plan,
            agg,
            readers,
            cx,
        } = *of;
        let call = &plan.aggs[agg];
        args.clear();
        for at in call.args.clone() {
            args.push(readers[at].get(row)?);
        }
        let accumulator = &mut self.states[group * plan.aggs.len() + agg];
        let kept = match accumulator {
            Accumulator::State(state) => {
                (call.agg.step)(cx, state, args).map_err(EvalStop::into_error)?;
                match state.gathers() {
                    true => row_bytes(args),
                    false => return Ok(Ok(())),
                }
            }
            Accumulator::Ordered(rows) => {
                let sort = sort_key(&call.order, readers, row)?;
                let bytes = row_bytes(args) + sort.len();
                rows.push((sort, std::mem::take(args)));
                bytes
            }
            Accumulator::Distinct(seen) => {
                let mut key = Vec::new();
                for (at, plan) in call.args.clone().zip(call.distinct.iter().flatten()) {
                    plan.append(&readers[at], row, &mut key)?;
                }
                if seen.contains_key(&key[..]) {
                    return Ok(Ok(()));
                }
                let sort = match call.order.is_empty() {
                    true => key.clone().into(),
                    false => sort_key(&call.order, readers, row)?,
                };
                let bytes = row_bytes(args) + sort.len() + key.len() + 64;
                seen.insert(key.into(), (sort, std::mem::take(args)));
                bytes
            }
        };
        self.bytes += kept;
        let allowed = budget.allows(kept);
        if allowed.is_err() {
            budget.insist(kept);
        }
        Ok(allowed)
    }

    /// Takes what some rows made of a plain aggregate into that of a group.
    pub fn merge_part(
        &mut self,
        plan: &GroupPlan,
        group: usize,
        agg: usize,
        part: AggState,
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        let state = &mut self.states[group * plan.aggs.len() + agg];
        state.merge(&plan.aggs[agg], Accumulator::State(part), cx)
    }

    /// Takes in another table of the same plan.
    pub fn merge(
        &mut self,
        plan: &GroupPlan,
        mut other: Table,
        budget: &mut Budget,
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        let entries = std::mem::take(&mut other.entries);
        let mut states = std::mem::take(&mut other.states).into_iter();
        let mut values = std::mem::take(&mut other.values).into_iter();
        let (width, aggs) = (plan.keys.len(), plan.aggs.len());
        for entry in entries {
            let key = &other.keys[entry.start..][..entry.len as usize];
            match self.find(entry.hash, key) {
                Some(group) => {
                    values.by_ref().take(width).for_each(drop);
                    for (agg, state) in plan.aggs.iter().zip(&mut self.states[group * aggs..]) {
                        if let Some(part) = states.next() {
                            state.merge(agg, part, cx)?;
                        }
                    }
                }
                None => {
                    let start = self.values.len();
                    self.values.extend(values.by_ref().take(width));
                    self.states.extend(states.by_ref().take(aggs));
                    let bytes = self.group_bytes(plan, key.len(), start);
                    budget.insist(bytes);
                    self.bytes += bytes;
                    self.link(entry.hash, key);
                }
            }
        }
        Ok(())
    }

    /// Its groups in several tables, chosen by their hash; what it holds is shared out among them.
    pub fn split(
        mut self,
        plan: &GroupPlan,
        parts: usize,
        part: impl Fn(u64) -> usize,
    ) -> Vec<Table> {
        let mut tables: Vec<Table> = (0..parts)
            .map(|_| Table::empty(&self.reservation))
            .collect();
        let entries = std::mem::take(&mut self.entries);
        let mut states = std::mem::take(&mut self.states).into_iter();
        let mut values = std::mem::take(&mut self.values).into_iter();
        let each = self.bytes / entries.len().max(1);
        for entry in entries {
            let table = &mut tables[part(entry.hash)];
            table.values.extend(values.by_ref().take(plan.keys.len()));
            table.states.extend(states.by_ref().take(plan.aggs.len()));
            table.link(entry.hash, &self.keys[entry.start..][..entry.len as usize]);
            table.bytes += each;
            self.bytes -= each;
        }
        tables
    }

    /// A group's values and its aggregates' results; to be asked once.
    pub fn result(&mut self, plan: &GroupPlan, group: usize, cx: &EvalContext<'_>) -> Result<Row> {
        let (width, aggs) = (plan.keys.len(), plan.aggs.len());
        let mut row = Row::with_capacity(width + aggs);
        row.extend(
            self.values[group * width..][..width]
                .iter_mut()
                .map(std::mem::take),
        );
        for (agg, state) in plan
            .aggs
            .iter()
            .zip(&mut self.states[group * aggs..][..aggs])
        {
            let state = std::mem::replace(state, Accumulator::State(AggState::Empty));
            row.push(state.finish(agg, cx)?);
        }
        Ok(row)
    }
}

impl GroupPlan {
    /// Whether a group may come to keep more than its first row needed.
    pub fn grows(&self) -> bool {
        self.aggs.iter().any(|a| a.gathers() || a.agg.keeps_order())
    }
}

fn sort_key(order: &[(usize, KeyPlan)], readers: &[Reader<'_>], row: usize) -> Result<Box<[u8]>> {
    let mut bytes = Vec::with_capacity(16 * order.len());
    for (at, plan) in order {
        plan.append(&readers[*at], row, &mut bytes)?;
    }
    Ok(bytes.into())
}
