//! GROUP BY and DISTINCT.
//!
//! ```text
//!  input partition 0 ─► tables[0..16], spill files[0..16] ─┐   by the first bits of the key's hash
//!  input partition 1 ─► tables[0..16], spill files[0..16] ─┤
//!                                                          ▼
//!  output partition p: for each bucket of its own: merge the tables, feed them the spilled rows, give out the groups
//! ```
//! States stay as they are, in memory, from first row to result. When memory is used up, rows of
//! groups not in a table are written to the bucket's file, and read back once other buckets have
//! been given out; a bucket that is still too large is split again by further bits. Where groups
//! keep their arguments (array_agg, DISTINCT), every further row is written, and the groups there
//! are wait for it: a bucket is then split with its table. One group alone must fit in memory.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::spill_file::SpillFile;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::{ExecutionPlanProperties, SendableRecordBatchStream};
use foldhash::fast::FixedState;
use futures::StreamExt;
use throng_exec::analytics::Job;
use throng_exec::run::Row;
use throng_types::{Datum, Error, Result};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::column::{ColumnBuilder, Kind, Reader};
use crate::execution_node::{Batches, PlanRef, Step, theirs};
use crate::small_groups::FewGroups;
use crate::table::{Accumulator, Budget, GroupPlan, Stepping, Table};
use crate::vector::assemble;

const BUCKET_BITS: u32 = 4;
const BUCKETS: usize = 1 << BUCKET_BITS;
/// How often a bucket can be split by bits that the tables do not use.
const LAST_LEVEL: u32 = 7;
/// Groups of an output batch.
const OUTPUT_ROWS: usize = 4096;

fn bucket(hash: u64, level: u32) -> usize {
    let level = level.min(LAST_LEVEL);
    (hash >> (u64::BITS - BUCKET_BITS * (level + 1))) as usize % BUCKETS
}

/// A bucket's share of what the input gave.
#[derive(Default)]
struct Share {
    tables: Vec<Table>,
    files: Vec<Arc<dyn SpillFile>>,
}

type Shares = Arc<Vec<Mutex<Share>>>;

#[derive(Clone)]
pub struct Group {
    inner: Arc<Inner>,
}

struct Inner {
    job: Arc<Job>,
    plan: GroupPlan,
    /// One group, also of nothing.
    plain: bool,
    input: SchemaRef,
    output: SchemaRef,
    output_kinds: Vec<Kind>,
    partitions: usize,
    shares: OnceCell<Result<Shares, Arc<DataFusionError>>>,
}

impl Group {
    pub fn new(
        job: &Arc<Job>,
        plan: GroupPlan,
        plain: bool,
        input: SchemaRef,
        output: SchemaRef,
        output_kinds: Vec<Kind>,
        partitions: usize,
    ) -> Group {
        let shares = OnceCell::new();
        let job = job.clone();
        Group {
            inner: Arc::new(Inner {
                job,
                plan,
                plain,
                input,
                output,
                output_kinds,
                partitions,
                shares,
            }),
        }
    }
}

impl Step for Group {
    fn run(&self, partition: usize, inputs: &[PlanRef], cx: Arc<TaskContext>) -> DfResult<Batches> {
        let work = Output {
            group: self.inner.clone(),
            input: inputs[0].clone(),
            buckets: (partition..BUCKETS)
                .step_by(self.inner.partitions)
                .collect(),
            spill: self.inner.spill(&cx),
            pending: Vec::new(),
            giving: None,
            given: 0,
            cx,
        };
        let batches = futures::stream::try_unfold(work, async |mut work| {
            Ok(work.next().await?.map(|batch| (batch, work)))
        });
        Ok(batches.boxed())
    }
}

impl Inner {
    fn budget(&self, cx: &TaskContext) -> Budget {
        let consumer = MemoryConsumer::new("groups").with_can_spill(true);
        Budget::new(consumer.register(cx.memory_pool()))
    }

    fn spill(&self, cx: &TaskContext) -> SpillManager {
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        SpillManager::new(cx.runtime_env(), metrics, self.input.clone())
    }

    /// Everything the input gives, by bucket; computed by whoever comes first.
    async fn shares(self: &Arc<Inner>, input: &PlanRef, cx: &Arc<TaskContext>) -> DfResult<Shares> {
        let shares = self.shares.get_or_init(|| async {
            let gathered = self.gather(input, cx).await;
            gathered.map(Arc::new).map_err(Arc::new)
        });
        shares.await.clone().map_err(DataFusionError::Shared)
    }

    async fn gather(
        self: &Arc<Inner>,
        input: &PlanRef,
        cx: &Arc<TaskContext>,
    ) -> DfResult<Vec<Mutex<Share>>> {
        let mut tasks = JoinSet::new();
        for partition in 0..input.output_partitioning().partition_count() {
            let stream = input.execute(partition, cx.clone())?;
            let part = Intake::new(self.clone(), self.budget(cx), self.spill(cx), 0, BUCKETS);
            tasks.spawn(async move { (partition, part.consume(stream).await) });
        }
        let mut taken = Vec::with_capacity(tasks.len());
        while let Some(done) = tasks.join_next().await {
            let (partition, part) =
                done.map_err(|e| theirs(Error::internal(format!("a group task: {e}"))))?;
            taken.push((partition, part?));
        }
        // In the order of the partitions: some aggregates show it.
        taken.sort_unstable_by_key(|(partition, _)| *partition);
        let mut shares: Vec<Share> = std::iter::repeat_with(Share::default)
            .take(BUCKETS)
            .collect();
        for (_, (tables, files)) in taken {
            for (share, table) in shares.iter_mut().zip(tables) {
                if table.len() > 0 {
                    share.tables.push(table);
                }
            }
            for (share, file) in shares.iter_mut().zip(files) {
                share.files.extend(file);
            }
        }
        Ok(shares.into_iter().map(Mutex::new).collect())
    }
}

type Files = Vec<Option<Arc<dyn SpillFile>>>;

/// A spill file being written: takes a batch; asked with none, it ends the file.
type SpillWriter =
    Box<dyn FnMut(Option<&RecordBatch>) -> DfResult<Option<Arc<dyn SpillFile>>> + Send>;

fn spill_writer(spill: &SpillManager) -> DfResult<SpillWriter> {
    let mut file = spill.create_in_progress_file("groups")?;
    Ok(Box::new(move |batch| match batch {
        Some(batch) => file.append_batch(batch).map(|_| None),
        None => file.finish(),
    }))
}

/// Rows on their way into tables: one for each bucket at first, one alone for spilled rows.
struct Intake {
    group: Arc<Inner>,
    tables: Vec<Table>,
    budget: Budget,
    spill: SpillManager,
    files: Vec<Option<SpillWriter>>,
    /// Which bits of the hash choose a file.
    level: u32,
    /// Memory is used up: rows of new groups are to be written and, where groups grow with each
    /// row, every row.
    full: bool,
    key: Vec<u8>,
    args: Row,
    /// Of the batch in hand: the table and group of each row, or none if it is to be written to the
    /// bucket of its hash.
    places: Vec<RowGroup>,
    /// The same where all rows have a group, and these are few.
    few: Option<FewGroups>,
}

enum RowGroup {
    Group(u32, u32),
    File(usize),
}

impl Intake {
    fn new(
        group: Arc<Inner>,
        budget: Budget,
        spill: SpillManager,
        level: u32,
        tables: usize,
    ) -> Intake {
        Intake {
            tables: (0..tables).map(|_| Table::new(&budget)).collect(),
            group,
            budget,
            spill,
            files: std::iter::repeat_with(|| None).take(BUCKETS).collect(),
            level,
            full: false,
            key: Vec::new(),
            args: Row::new(),
            places: Vec::new(),
            few: None,
        }
    }

    async fn consume(
        mut self,
        mut stream: SendableRecordBatchStream,
    ) -> DfResult<(Vec<Table>, Files)> {
        while let Some(batch) = stream.next().await {
            self.take(&batch?)?;
            tokio::task::consume_budget().await;
        }
        let files = self.finish_files()?;
        Ok((self.tables, files))
    }

    fn finish_files(&mut self) -> DfResult<Files> {
        let files = self.files.iter_mut().map(|file| match file {
            Some(file) => file(None),
            None => Ok(None),
        });
        files.collect()
    }

    fn take(&mut self, batch: &RecordBatch) -> DfResult<()> {
        let group = self.group.clone();
        let readers = Reader::of_all(&group.plan.kinds, batch.columns());
        self.place(&group.plan, &readers, batch.num_rows())
            .map_err(theirs)?;
        for agg in 0..group.plan.aggs.len() {
            self.step(&group, agg, batch, &readers)?;
        }
        self.write(batch)
    }

    /// Finds or makes the group of each row.
    fn place(&mut self, plan: &GroupPlan, readers: &[Reader<'_>], rows: usize) -> Result<()> {
        self.places.clear();
        self.few = Some(FewGroups::default());
        for row in 0..rows {
            self.key.clear();
            for (key, reader) in plan.keys.iter().zip(readers) {
                key.append(reader, row, &mut self.key)?;
            }
            let hash = FixedState::default().hash_one(&self.key[..]);
            let table = if self.tables.len() == 1 {
                0
            } else {
                bucket(hash, 0)
            };
            let found = match self.full && plan.grows() {
                true => None,
                false => self.tables[table].find(hash, &self.key),
            };
            let group = match found {
                Some(group) => Some(group),
                None if self.full => None,
                None => {
                    let values = readers[..plan.keys.len()].iter().map(|r| r.get(row));
                    self.tables[table].insert(plan, hash, &self.key, values, &mut self.budget)?
                }
            };
            if let (Some(few), Some(group)) = (&mut self.few, group) {
                let fits = few.push((table as u32, group as u32));
                if !fits {
                    self.few = None;
                }
            } else {
                self.few = None;
            }
            self.places.push(match group {
                Some(group) => RowGroup::Group(table as u32, group as u32),
                None => {
                    self.full = true;
                    RowGroup::File(bucket(hash, self.level))
                }
            });
        }
        Ok(())
    }

    fn step(
        &mut self,
        group: &Inner,
        agg: usize,
        batch: &RecordBatch,
        readers: &[Reader<'_>],
    ) -> DfResult<()> {
        let filter = group.plan.aggs[agg]
            .filter
            .map(|at| batch.column(at).as_boolean());
        if let Some(few) = &self.few
            && let Some(parts) = few.parts(&group.plan, agg, batch, filter)
        {
            return group.job.with_cx(|cx| {
                few.places.iter().zip(parts).try_for_each(|(place, part)| {
                    let table = &mut self.tables[place.0 as usize];
                    let merged =
                        table.merge_part(&group.plan, place.1 as usize, agg, part, &cx.eval);
                    merged.map_err(theirs)
                })
            });
        }
        group.job.with_cx(|cx| {
            let of = Stepping {
                plan: &group.plan,
                agg,
                readers,
                cx: &cx.eval,
            };
            for (row, place) in self.places.iter().enumerate() {
                let RowGroup::Group(table, at) = place else {
                    continue;
                };
                if filter.is_some_and(|f| f.is_null(row) || !f.value(row)) {
                    continue;
                }
                let grown = self.tables[*table as usize].step(
                    &of,
                    *at as usize,
                    row,
                    &mut self.args,
                    &mut self.budget,
                );
                match grown.map_err(theirs)? {
                    Ok(()) => {}
                    // The rows that follow can still be written, to be met by their group later.
                    Err(_) if self.level < LAST_LEVEL => self.full = true,
                    // Nothing can be split any further.
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        })
    }

    /// Writes the rows that have no place in memory.
    fn write(&mut self, batch: &RecordBatch) -> DfResult<()> {
        if !self.places.iter().any(|p| matches!(p, RowGroup::File(_))) {
            return Ok(());
        }
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); BUCKETS];
        for (row, place) in self.places.iter().enumerate() {
            if let RowGroup::File(file) = place {
                rows[*file].push(row as u32);
            }
        }
        for (file, rows) in self
            .files
            .iter_mut()
            .zip(rows)
            .filter(|(_, rows)| !rows.is_empty())
        {
            let file = match file {
                Some(file) => file,
                None => file.insert(spill_writer(&self.spill)?),
            };
            file(Some(&take_record_batch(batch, &UInt32Array::from(rows))?))?;
        }
        Ok(())
    }
}

/// A bucket, or a part of one, not given out yet.
struct Pending {
    level: u32,
    share: Share,
}

/// One output partition under way.
struct Output {
    group: Arc<Inner>,
    input: PlanRef,
    cx: Arc<TaskContext>,
    buckets: Vec<usize>,
    spill: SpillManager,
    pending: Vec<Pending>,
    /// A finished table, and how many of its groups have been given.
    giving: Option<(Table, usize)>,
    given: usize,
}

impl Output {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        loop {
            if let Some((table, from)) = &mut self.giving {
                if *from < table.len() {
                    let to = table.len().min(*from + OUTPUT_ROWS);
                    let batch = self.group.batch(table, *from..to).map_err(theirs)?;
                    *from = to;
                    self.given += batch.num_rows();
                    return Ok(Some(batch));
                }
                self.giving = None;
            }
            if let Some(pending) = self.pending.pop() {
                self.complete(pending).await?;
            } else if let Some(bucket) = self.buckets.pop() {
                let shares = self.group.shares(&self.input, &self.cx).await?;
                let share = std::mem::take(
                    &mut *shares[bucket]
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner),
                );
                self.pending.push(Pending { level: 1, share });
            } else if self.group.plain && self.given == 0 {
                self.given = 1;
                return self.group.nothing().map(Some).map_err(theirs);
            } else {
                return Ok(None);
            }
        }
    }

    /// Merges a bucket's tables and feeds them its spilled rows. What does not fit is left pending.
    async fn complete(&mut self, Pending { level, share }: Pending) -> DfResult<()> {
        let group = self.group.clone();
        let mut tables = share.tables.into_iter();
        let first = tables.next();
        let mut intake = Intake::new(
            group.clone(),
            group.budget(&self.cx),
            self.spill.clone(),
            level,
            1,
        );
        if let Some(mut first) = first {
            first.move_to(&mut intake.budget);
            intake.tables[0] = first;
        }
        for table in tables {
            let Intake { tables, budget, .. } = &mut intake;
            group
                .job
                .with_cx(|cx| tables[0].merge(&group.plan, table, budget, &cx.eval))
                .map_err(theirs)?;
        }
        for file in share.files {
            let mut rows = self.spill.read_spill_as_stream(file, None)?;
            while let Some(batch) = rows.next().await {
                intake.take(&batch?)?;
            }
        }
        let files = intake.finish_files()?;
        let table = intake.tables.pop();
        let split = intake.full && group.plan.grows();
        let mut parts: Vec<Share> = files
            .into_iter()
            .map(|file| Share {
                tables: Vec::new(),
                files: file.into_iter().collect(),
            })
            .collect();
        match table {
            // Its groups wait for the rows that were written.
            Some(table) if split => {
                let tables = table.split(&group.plan, BUCKETS, |hash| bucket(hash, level));
                parts
                    .iter_mut()
                    .zip(tables)
                    .for_each(|(part, table)| part.tables.push(table));
            }
            table => self.giving = table.map(|table| (table, 0)),
        }
        let wanted =
            |part: &Share| !part.files.is_empty() || part.tables.iter().any(|t| t.len() > 0);
        let pending = parts.into_iter().filter(wanted).map(|share| Pending {
            level: level + 1,
            share,
        });
        self.pending.extend(pending);
        Ok(())
    }
}

impl Inner {
    fn batch(&self, table: &mut Table, groups: std::ops::Range<usize>) -> Result<RecordBatch> {
        self.job.with_cx(|cx| {
            let mut builders = ColumnBuilder::of_all(&self.output_kinds);
            let rows = groups.len();
            for group in groups {
                let row = table.result(&self.plan, group, &cx.eval)?;
                builders
                    .iter_mut()
                    .zip(&row)
                    .try_for_each(|(b, v)| b.push(v))?;
            }
            assemble(
                &self.output,
                builders.iter_mut().map(ColumnBuilder::finish).collect(),
                rows,
            )
        })
    }

    /// The one row that aggregates make of no rows.
    fn nothing(&self) -> Result<RecordBatch> {
        self.job.with_cx(|cx| {
            let aggs = self.plan.aggs.iter();
            let row: Vec<Datum> = aggs
                .map(|agg| Accumulator::new(agg).finish(agg, &cx.eval))
                .collect::<Result<_>>()?;
            let mut builders = ColumnBuilder::of_all(&self.output_kinds);
            builders
                .iter_mut()
                .zip(&row)
                .try_for_each(|(b, v)| b.push(v))?;
            assemble(
                &self.output,
                builders.iter_mut().map(ColumnBuilder::finish).collect(),
                1,
            )
        })
    }
}
