//! The small steps: expressions over each batch, key columns, neighbours with one key, nothing at
//! all.

use std::sync::Arc;
use std::task::Poll;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use futures::StreamExt;
use throng_exec::analytics::{Job, JobCounts};
use throng_types::Result;

use crate::column::Reader;
use crate::execution_node::{Batches, PlanRef, Step, theirs};
use crate::keys::KeyPlan;
use crate::vector::{Compute, Program, arrow, assemble};

/// Filters and projects.
pub struct ComputeStep {
    pub job: Arc<Job>,
    pub compute: Arc<Compute>,
}

impl Step for ComputeStep {
    fn run(&self, partition: usize, inputs: &[PlanRef], cx: Arc<TaskContext>) -> DfResult<Batches> {
        let (job, compute) = (self.job.clone(), self.compute.clone());
        let input = inputs[0].execute(partition, cx)?;
        let batches = input.filter_map(move |batch| {
            let computed = batch.and_then(|batch| compute.apply(batch, &job).map_err(theirs));
            // A batch of which nothing is left is not passed on.
            let kept = !matches!(&computed, Ok(batch) if batch.num_rows() == 0);
            std::future::ready(kept.then_some(computed))
        });
        Ok(batches.boxed())
    }
}

/// Counts the rows of the plan's operators `ids`, which are one step here.
pub struct CountStep {
    pub counts: Arc<JobCounts>,
    pub ids: Arc<[u32]>,
}

impl Step for CountStep {
    fn run(&self, partition: usize, inputs: &[PlanRef], cx: Arc<TaskContext>) -> DfResult<Batches> {
        let (counts, ids) = (self.counts.clone(), self.ids.clone());
        ids.iter().for_each(|id| counts.begin(*id));
        let count = move |rows| ids.iter().for_each(|id| counts.add(*id, rows));
        let end = count.clone();
        let input = inputs[0].execute(partition, cx)?;
        let batches = input.inspect(move |batch| {
            if let Ok(batch) = batch {
                count(batch.num_rows() as u64);
            }
        });
        let ended = futures::stream::poll_fn(move |_| {
            end(0);
            Poll::Ready(None)
        });
        Ok(batches.chain(ended).boxed())
    }
}

/// What a key column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    Sort,
    /// NULL keys stay NULL.
    Join,
}

/// Adds key columns after those there are.
pub struct KeyStep {
    pub job: Arc<Job>,
    pub keys: Arc<Vec<(Program, KeyPlan)>>,
    pub purpose: KeyUse,
    pub schema: SchemaRef,
}

impl Step for KeyStep {
    fn run(&self, partition: usize, inputs: &[PlanRef], cx: Arc<TaskContext>) -> DfResult<Batches> {
        let (job, keys, schema) = (self.job.clone(), self.keys.clone(), self.schema.clone());
        let purpose = self.purpose;
        let input = inputs[0].execute(partition, cx)?;
        let batches = input.map(move |batch| {
            let batch = batch?;
            let mut columns = batch.columns().to_vec();
            columns.extend(key_columns(&job, &keys, purpose, &batch).map_err(theirs)?);
            assemble(&schema, columns, batch.num_rows()).map_err(theirs)
        });
        Ok(batches.boxed())
    }
}

fn key_columns(
    job: &Job,
    keys: &[(Program, KeyPlan)],
    purpose: KeyUse,
    batch: &RecordBatch,
) -> Result<Vec<ArrayRef>> {
    job.with_cx(|cx| {
        let column = |(program, plan): &(Program, KeyPlan)| {
            let values = program.column(batch, &None, cx)?;
            match purpose {
                KeyUse::Sort => plan.sort_column(&values),
                KeyUse::Join => plan.join_column(&values),
            }
        };
        keys.iter().map(column).collect()
    })
}

/// Lets through the first of neighbouring rows with one key.
pub struct UniqueStep {
    pub job: Arc<Job>,
    pub keys: Arc<Vec<(Program, KeyPlan)>>,
}

impl Step for UniqueStep {
    fn run(&self, partition: usize, inputs: &[PlanRef], cx: Arc<TaskContext>) -> DfResult<Batches> {
        let (job, keys) = (self.job.clone(), self.keys.clone());
        let mut last: Option<Vec<u8>> = None;
        let batches = inputs[0]
            .execute(partition, cx)?
            .map(move |batch| first_of_each(&job, &keys, batch?, &mut last).map_err(theirs));
        Ok(batches.boxed())
    }
}

fn first_of_each(
    job: &Job,
    keys: &[(Program, KeyPlan)],
    batch: RecordBatch,
    last: &mut Option<Vec<u8>>,
) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = job.with_cx(|cx| {
        keys.iter()
            .map(|(p, _)| p.column(&batch, &None, cx))
            .collect::<Result<_>>()
    })?;
    let readers: Vec<(Reader<'_>, &KeyPlan)> = columns
        .iter()
        .zip(keys)
        .map(|(c, (p, key))| (Reader::new(p.kind, &**c), key))
        .collect();
    let mut first = Vec::with_capacity(batch.num_rows());
    let mut key = Vec::new();
    for row in 0..batch.num_rows() {
        key.clear();
        for (reader, plan) in &readers {
            plan.append(reader, row, &mut key)?;
        }
        let new = last.as_ref() != Some(&key);
        if new {
            *last = Some(key.clone());
        }
        first.push(new);
    }
    let first = BooleanArray::new(BooleanBuffer::from(first), None);
    filter_record_batch(&batch, &first).map_err(arrow)
}
