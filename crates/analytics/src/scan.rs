//! The leaf: a heap's visible rows, by ranges of blocks handed out to whoever is free.
//!
//! Of a chunk of rows the columns that the condition reads are taken out first, then the keys of joins that are known to let few
//! rows through; the others only of the rows that are left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use futures::StreamExt;
use throng_access::TupleBatch;
use throng_buffer::{Ring, retry};
use throng_exec::analytics::Job;
use throng_exec::large::Fetch;
use throng_exec::table::Table;
use throng_sql::expr::{Expr, system};
use throng_types::row::{RowLayout, Stored};
use throng_types::{BlockNo, Datum, Result, Tid};

use crate::column::{self, ColumnBuilder, Kind};
use crate::sieve::{self, Sieve};
use crate::stage::{Batches, PlanRef, Step, theirs};
use crate::vector::{Program, assemble};

/// Blocks taken at a time: enough for read-ahead, few enough that nobody is left with much more than the others.
const RANGE: BlockNo = 64;

/// Rows whose condition is looked at together, at the least: those of some pages.
const CHUNK: usize = 1024;

/// A condition, over the columns that it reads alone.
struct Filter {
    program: Program,
    /// Their places among the scan's columns.
    columns: Vec<usize>,
    kinds: Vec<Kind>,
    schema: SchemaRef,
}

impl Filter {
    fn new(condition: &Expr, kinds: &[Kind]) -> Result<Filter> {
        let mut columns = Vec::new();
        condition.any(&mut |e| {
            if let Expr::Slot(at, _) = e {
                columns.push(*at as usize);
            }
            false
        });
        columns.sort_unstable();
        columns.dedup();
        let own: Vec<Kind> = columns.iter().map(|at| kinds[*at]).collect();
        let program = Program::new(&moved(condition.clone(), &columns), &own.clone().into())?;
        Ok(Filter {
            program,
            columns,
            schema: column::schema(&own),
            kinds: own,
        })
    }
}

/// The expression over a row of these columns alone.
fn moved(mut expr: Expr, columns: &[usize]) -> Expr {
    if let Expr::Slot(at, _) = &mut expr {
        *at = columns.partition_point(|c| *c < *at as usize) as u32;
    }
    expr.for_each_child_mut(&mut |e| {
        *e = moved(std::mem::replace(e, Expr::bool(true)), columns);
    });
    expr
}

/// Some of the scan's columns being filled.
struct Columns {
    /// As the plan names them: attribute numbers, or system columns.
    numbers: Vec<i16>,
    /// The attributes among them, ascending from 0, and whose they are.
    stored: Vec<usize>,
    owners: Vec<usize>,
    builders: Vec<ColumnBuilder>,
}

impl Columns {
    fn new(numbers: Vec<i16>, kinds: &[Kind]) -> Columns {
        let mut attributes: Vec<(usize, usize)> = numbers
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(owner, n)| (*n as usize - 1, owner))
            .collect();
        attributes.sort_unstable();
        let (stored, owners) = attributes.into_iter().unzip();
        Columns {
            numbers,
            stored,
            owners,
            builders: ColumnBuilder::of_all(kinds),
        }
    }

    fn bytes(&self) -> usize {
        self.builders.iter().map(ColumnBuilder::bytes).sum()
    }

    fn finish(&mut self) -> Vec<ArrayRef> {
        self.builders
            .iter_mut()
            .map(ColumnBuilder::finish)
            .collect()
    }

    /// Takes in the rows of some pages, all or those that are marked; how many they are.
    async fn take(
        &mut self,
        table: &Table,
        pages: &[TupleBatch],
        marks: Option<&[bool]>,
        values: &mut Vec<Datum>,
    ) -> Result<usize> {
        let (mut first, mut taken) = (0, 0);
        for page in pages {
            let marks = marks.map(|marks| &marks[first..][..page.len()]);
            first += page.len();
            for (row, (tid, bytes)) in page.iter().enumerate() {
                if marks.is_some_and(|marks| !marks[row]) {
                    continue;
                }
                if !self.take_at_once(table, tid, bytes)? {
                    self.take_slowly(table, tid, bytes, values).await?;
                }
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Takes in a row that has all its values in itself; else the answer is false.
    #[inline]
    fn take_at_once(&mut self, table: &Table, tid: Tid, bytes: &[u8]) -> Result<bool> {
        if RowLayout::has_external(bytes) || table.fills_in(bytes)? {
            return Ok(false);
        }
        let Columns {
            numbers,
            stored,
            owners,
            builders,
        } = self;
        table.layout.stored(bytes, stored, |nth, value| {
            let builder = &mut builders[owners[nth]];
            match value {
                Stored::Bytes(bytes) => builder.push_stored(bytes),
                _ => builder.push(&Datum::Null),
            }
        })?;
        if stored.len() < numbers.len() {
            for (number, builder) in numbers.iter().zip(builders) {
                push_system(*number, builder, table, tid)?;
            }
        }
        Ok(true)
    }

    /// A row of which a value lies elsewhere.
    async fn take_slowly(
        &mut self,
        table: &Table,
        tid: Tid,
        bytes: &[u8],
        values: &mut Vec<Datum>,
    ) -> Result<()> {
        let wanted = self.stored.last().map_or(0, |last| last + 1);
        table.decode(bytes, wanted, values)?;
        if RowLayout::has_external(bytes) {
            let mut fetch = Fetch::default();
            retry(|| table.fetch_external(values, &mut fetch)).await?;
        }
        for (number, builder) in self.numbers.iter().zip(&mut self.builders) {
            match *number {
                n if n > 0 => builder.push(&values[n as usize - 1])?,
                n => push_system(n, builder, table, tid)?,
            }
        }
        Ok(())
    }
}

fn push_system(number: i16, builder: &mut ColumnBuilder, table: &Table, tid: Tid) -> Result<()> {
    match number {
        n if n > 0 => Ok(()),
        system::CTID => builder.push(&Datum::Tid(tid)),
        _ => builder.push(&Datum::Oid(table.def.oid.0)),
    }
}

/// A join's keys, of which a column of the scan has to be one.
#[derive(Clone)]
pub struct SievedBy {
    pub sieve: Arc<Sieve>,
    /// Its place among the scan's columns.
    pub column: usize,
}

/// A sieve in use, by one partition.
struct Sieving {
    sieve: Arc<Sieve>,
    kind: Kind,
    columns: Columns,
    /// Rows that were held against it, and those that passed.
    tested: usize,
    passed: usize,
}

impl Sieving {
    /// It is there, and takes enough away to be worth the looking.
    fn is_worth_it(&self) -> bool {
        const TRIAL: usize = 10_000;
        let useless = self.tested > TRIAL && self.passed > self.tested / 10 * 8;
        self.sieve.is_ready() && !useless
    }
}

pub struct Scan {
    job: Arc<Job>,
    table: Arc<Table>,
    columns: Vec<i16>,
    kinds: Vec<Kind>,
    schema: SchemaRef,
    /// The rows wanted.
    filter: Option<Arc<Filter>>,
    sieves: Vec<SievedBy>,
    /// The blocks there were when the job began: rows added later are not for this snapshot.
    end: BlockNo,
    next: Arc<AtomicU32>,
    /// A batch ends at so many bytes of varying values, if it has not ended at DataFusion's number of rows.
    batch_bytes: usize,
}

impl Scan {
    pub fn new(
        job: &Arc<Job>,
        table: Table,
        columns: &[i16],
        kinds: Vec<Kind>,
        schema: SchemaRef,
        filter: Option<&Expr>,
        batch_bytes: usize,
    ) -> Result<Scan> {
        let filter = filter.map(|f| Filter::new(f, &kinds)).transpose()?;
        let end = throng_buffer::retry_blocking(|| table.heap.blocks())?;
        Ok(Scan {
            job: job.clone(),
            table: Arc::new(table),
            columns: columns.to_vec(),
            kinds,
            schema,
            filter: filter.map(Arc::new),
            sieves: Vec::new(),
            end,
            next: Arc::new(AtomicU32::new(0)),
            batch_bytes,
        })
    }
}

impl Scan {
    /// With joins above whose keys its rows have to meet.
    pub fn sieved(mut self, by: Vec<SievedBy>) -> Scan {
        self.sieves = by;
        self.sieves
            .retain(|by| self.kinds.get(by.column).is_some_and(|k| sieve::takes(*k)));
        self
    }
}

impl Step for Scan {
    fn run(&self, _: usize, _: &[PlanRef], cx: Arc<TaskContext>) -> DfResult<Batches> {
        let filter = self.filter.as_ref().map(|filter| {
            let numbers = filter.columns.iter().map(|at| self.columns[*at]).collect();
            (filter.clone(), Columns::new(numbers, &filter.kinds))
        });
        let sieves = self.sieves.iter().map(|by| {
            let kind = self.kinds[by.column];
            Sieving {
                sieve: by.sieve.clone(),
                kind,
                columns: Columns::new(vec![self.columns[by.column]], &[kind]),
                tested: 0,
                passed: 0,
            }
        });
        let part = Part {
            job: self.job.clone(),
            sieves: sieves.collect(),
            table: self.table.clone(),
            filter,
            columns: Columns::new(self.columns.clone(), &self.kinds),
            rows: 0,
            batch_rows: cx.session_config().batch_size(),
            batch_bytes: self.batch_bytes,
            schema: self.schema.clone(),
            end: self.end,
            next: self.next.clone(),
            range: 0..0,
            ring: Ring::for_scan(self.table.heap.pool(), self.end),
            pages: Vec::new(),
            values: Vec::new(),
        };
        let batches = futures::stream::try_unfold(part, async |mut part| {
            let batch = part.batch().await.map_err(theirs)?;
            Ok(batch.map(|batch| (batch, part)))
        });
        Ok(batches.boxed())
    }
}

/// One partition's share as it is read.
struct Part {
    job: Arc<Job>,
    table: Arc<Table>,
    filter: Option<(Arc<Filter>, Columns)>,
    sieves: Vec<Sieving>,
    columns: Columns,
    rows: usize,
    batch_rows: usize,
    batch_bytes: usize,
    schema: SchemaRef,
    end: BlockNo,
    next: Arc<AtomicU32>,
    range: std::ops::Range<BlockNo>,
    ring: Ring,
    /// The pages of the chunk in hand; kept for those of the next.
    pages: Vec<TupleBatch>,
    values: Vec<Datum>,
}

impl Part {
    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.rows < self.batch_rows && self.columns.bytes() < self.batch_bytes {
            // Pages that are in memory never make this wait: give way to other jobs, and to a cancel, once a chunk.
            tokio::task::yield_now().await;
            let pages = self.read().await?;
            if pages == 0 {
                break;
            }
            let taken = std::mem::take(&mut self.pages);
            self.take(&taken[..pages]).await?;
            self.pages = taken;
        }
        if self.rows == 0 {
            return Ok(None);
        }
        let columns = self.columns.finish();
        assemble(&self.schema, columns, std::mem::take(&mut self.rows)).map(Some)
    }

    /// Reads the next chunk; how many pages it has, none after the last.
    async fn read(&mut self) -> Result<usize> {
        let most = CHUNK.min(self.batch_rows - self.rows);
        let (mut pages, mut rows, mut bytes) = (0, 0, 0);
        while rows < most && bytes < self.batch_bytes {
            let Some(block) = self.next_block() else {
                break;
            };
            if pages == self.pages.len() {
                self.pages.push(TupleBatch::new());
            }
            let Part {
                job, table, ring, ..
            } = self;
            let tuples = &mut self.pages[pages];
            retry(|| {
                tuples.clear();
                table.heap.scan_page(block, &job.snapshot, ring, tuples)
            })
            .await?;
            rows += tuples.len();
            bytes += tuples.bytes();
            pages += 1;
        }
        Ok(pages)
    }

    /// Takes in the rows of some pages for which the condition holds.
    async fn take(&mut self, pages: &[TupleBatch]) -> Result<()> {
        let kept = self.kept(pages).await?;
        let Part {
            table,
            columns,
            values,
            ..
        } = self;
        self.rows += columns.take(table, pages, kept.as_deref(), values).await?;
        Ok(())
    }

    /// Which rows are wanted; None: all.
    async fn kept(&mut self, pages: &[TupleBatch]) -> Result<Option<Vec<bool>>> {
        let mut kept: Option<Vec<bool>> = None;
        if let Some((filter, columns)) = &mut self.filter {
            let rows = columns
                .take(&self.table, pages, None, &mut self.values)
                .await?;
            let batch = assemble(&filter.schema, columns.finish(), rows)?;
            let holds = self
                .job
                .with_cx(|cx| filter.program.holds(&batch, &None, cx))?;
            kept = Some(holds.iter().collect());
        }
        for sieving in self.sieves.iter_mut().filter(|s| s.is_worth_it()) {
            let total = pages.iter().map(TupleBatch::len).sum();
            let marks = kept.get_or_insert_with(|| vec![true; total]);
            let rows: Vec<usize> = (0..total).filter(|row| marks[*row]).collect();
            sieving
                .columns
                .take(&self.table, pages, Some(marks.as_slice()), &mut self.values)
                .await?;
            if let [keys] = &sieving.columns.finish()[..] {
                sieving.sieve.pass(sieving.kind, keys, &rows, marks);
            }
            sieving.tested += rows.len();
            sieving.passed += rows.iter().filter(|row| marks[**row]).count();
        }
        Ok(kept)
    }

    fn next_block(&mut self) -> Option<BlockNo> {
        if self.range.is_empty() {
            // A count alone is shared; what it hands out is published by the pages' own latches.
            let start = self.next.fetch_add(RANGE, Ordering::Relaxed);
            if start >= self.end {
                // Kept from wrapping around by a partition that asks again and again.
                self.next.store(self.end, Ordering::Relaxed);
                return None;
            }
            self.range = start..self.end.min(start.saturating_add(RANGE));
        }
        self.range.next()
    }
}
