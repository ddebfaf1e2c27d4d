//! Counts, sums and averages of a batch that has few groups: added up by group over whole columns,
//! then merged into the groups' states once a batch.
//!
//! What is added up is exact, so the order does not matter; where a sum does not fit 128 bits, or a
//! value is not finite, the rows are stepped through one by one.

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{Int16Type, Int32Type, Int64Type};
use throng_types::numeric::Decimal;
use throng_types::row::Phys;
use throng_values::func::aggregate::AggState;

use crate::column::{Kind, decimals};
use crate::table::{AggPlan, GroupPlan};

/// More groups than this in a batch are not few.
const MOST: usize = 64;

/// The groups of a batch's rows.
#[derive(Default)]
pub struct FewGroups {
    /// Tables and groups in them.
    pub places: Vec<(u32, u32)>,
    /// Each row's place among these.
    of_row: Vec<u8>,
}

const _: () = assert!(MOST <= u8::MAX as usize);

impl FewGroups {
    /// The next row's group; false where that is one too many.
    pub fn push(&mut self, place: (u32, u32)) -> bool {
        let last = self.of_row.last().copied().unwrap_or(0);
        let found = match self.places.get(usize::from(last)) {
            Some(same) if *same == place => Some(last),
            _ => self
                .places
                .iter()
                .position(|p| *p == place)
                .map(|at| at as u8),
        };
        let at = match found {
            Some(at) => at,
            None if self.places.len() == MOST => return false,
            None => {
                self.places.push(place);
                self.places.len() as u8 - 1
            }
        };
        self.of_row.push(at);
        true
    }

    /// What the rows make of an aggregate, by group; None where they must be taken one by one.
    pub fn parts(
        &self,
        plan: &GroupPlan,
        agg: usize,
        batch: &RecordBatch,
        filter: Option<&BooleanArray>,
    ) -> Option<Vec<AggState>> {
        let call = &plan.aggs[agg];
        if call.gathers() || self.of_row.len() < 4 * self.places.len() {
            return None;
        }
        let counts = |row: usize| filter.is_none_or(|f| f.is_valid(row) && f.value(row));
        match (call.agg.name, call.args.len()) {
            ("count", 0) => Some(self.count(counts)),
            ("count", 1) => {
                let column = batch.column(call.args.start);
                Some(self.count(|row| counts(row) && column.is_valid(row)))
            }
            ("sum" | "avg", 1) => self.sums(plan.kinds[call.args.start], call, batch, counts),
            _ => None,
        }
    }

    fn count(&self, counts: impl Fn(usize) -> bool) -> Vec<AggState> {
        let mut found = vec![0; self.places.len()];
        for (row, at) in self.of_row.iter().enumerate() {
            found[usize::from(*at)] += i64::from(counts(row));
        }
        found.into_iter().map(AggState::Count).collect()
    }

    fn sums(
        &self,
        kind: Kind,
        call: &AggPlan,
        batch: &RecordBatch,
        counts: impl Fn(usize) -> bool,
    ) -> Option<Vec<AggState>> {
        let column = batch.column(call.args.start);
        let counts = |row: usize| counts(row) && column.is_valid(row);
        match kind {
            Kind::Int2 => {
                let values = column.as_primitive::<Int16Type>().values();
                Some(self.integers(counts, |row| values[row].into()))
            }
            Kind::Int4 => {
                let values = column.as_primitive::<Int32Type>().values();
                Some(self.integers(counts, |row| values[row].into()))
            }
            Kind::Int8 => {
                let values = column.as_primitive::<Int64Type>().values();
                Some(self.integers(counts, |row| values[row].into()))
            }
            Kind::Packed(Phys::Numeric) => self.numerics(counts, &decimals(column)?),
            _ => None,
        }
    }

    fn integers(
        &self,
        counts: impl Fn(usize) -> bool,
        value: impl Fn(usize) -> i128,
    ) -> Vec<AggState> {
        let mut sums = vec![(0, 0); self.places.len()];
        for (row, at) in self
            .of_row
            .iter()
            .enumerate()
            .filter(|(row, _)| counts(*row))
        {
            let (count, sum) = &mut sums[usize::from(*at)];
            *count += 1;
            // Of no more values than a batch has.
            *sum += value(row);
        }
        let state = |(count, sum)| match count {
            0 => AggState::Empty,
            count => AggState::Integers { count, sum },
        };
        sums.into_iter().map(state).collect()
    }

    fn numerics(
        &self,
        counts: impl Fn(usize) -> bool,
        values: &[Decimal],
    ) -> Option<Vec<AggState>> {
        let mut sums = vec![(0, Decimal::default(), 0); self.places.len()];
        for (row, at) in self
            .of_row
            .iter()
            .enumerate()
            .filter(|(row, _)| counts(*row))
        {
            let (count, sum, with_scale) = &mut sums[usize::from(*at)];
            let value = values[row];
            if value.scale > sum.scale {
                *with_scale = 0;
            }
            *count += 1;
            *sum = sum.checked_add(value)?;
            *with_scale += i64::from(value.scale == sum.scale);
        }
        let state = |(count, sum, with_scale)| match count {
            0 => AggState::Empty,
            count => AggState::of_numerics(count, sum, with_scale),
        };
        Some(sums.into_iter().map(state).collect())
    }
}
