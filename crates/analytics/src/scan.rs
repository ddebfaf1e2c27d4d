//! The leaf: a heap's visible rows, by extents of blocks handed out to whoever is free.
//!
//! ```text
//!            all columns kept, pages unchanged?        worth keeping?
//!   extent ──────────────────────────► no ──► read pages ──► no ──► by rows: the condition's columns, the keys of joins,
//!                 │ yes                          │ yes              then the others of the rows that are left
//!                 ▼                              ▼
//!          whole columns ◄────────────── take them out, keep them ([`ColumnCache`])
//!                 └──► condition, keys of joins ──► the rows that are left
//! ```

mod columns;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{concat_batches, filter, filter_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use futures::StreamExt;
use throng_access::TupleBatch;
use throng_bind::expr::Expr;
use throng_buffer::{Ring, retry};
use throng_exec::analytics::Job;
use throng_exec::table::Table;
use throng_types::{BlockNo, Datum, Lsn, Result};

use self::columns::{Columns, whole};
use crate::cache::{Attribute, CachedColumn, ColumnCache, Extent};
use crate::column::{self, Kind};
use crate::execution_node::{Batches, PlanRef, Step, theirs};
use crate::runtime_filter::{self, RuntimeFilter};
use crate::vector::{Program, arrow, assemble};

/// Blocks taken at a time: enough for read-ahead and for columns worth keeping, few enough that
/// nobody is left with much more than the others.
const EXTENT: BlockNo = 32;

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

/// A join's keys, of which a column of the scan has to be one.
#[derive(Clone)]
pub struct SievedBy {
    pub sieve: Arc<RuntimeFilter>,
    /// Its place among the scan's columns.
    pub column: usize,
}

/// A sieve in use, by one partition.
struct Sieving {
    by: SievedBy,
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
        self.by.sieve.is_ready() && !useless
    }

    /// Clears the marks of rows without a partner; `keys` are those of the rows that are marked.
    fn test(&mut self, keys: &ArrayRef, marks: &mut [bool]) {
        let rows: Vec<usize> = (0..marks.len()).filter(|row| marks[*row]).collect();
        self.by.sieve.pass(self.kind, keys, &rows, marks);
        self.tested += rows.len();
        self.passed += rows.iter().filter(|row| marks[**row]).count();
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
    /// A batch ends at so many bytes of varying values, if it has not ended at DataFusion's number
    /// of rows.
    batch_bytes: usize,
    cache: Arc<ColumnCache>,
}

impl Scan {
    #[expect(
        clippy::too_many_arguments,
        reason = "what a plan's node and its layout know, each once"
    )]
    pub fn new(
        job: &Arc<Job>,
        table: Table,
        columns: &[i16],
        kinds: Vec<Kind>,
        schema: SchemaRef,
        filter: Option<&Expr>,
        batch_bytes: usize,
        cache: Arc<ColumnCache>,
    ) -> Result<Scan> {
        let filter = filter
            .map(|f| Filter::new(&job.settled(f), &kinds))
            .transpose()?;
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
            cache,
        })
    }

    /// What the cache is asked for; None: a column is none of the table's.
    fn attributes(&self) -> Option<Vec<Attribute>> {
        let attribute = |(number, kind): (&i16, &Kind)| Attribute {
            number: *number,
            kind: *kind,
        };
        let mut attributes: Vec<Attribute> = self
            .columns
            .iter()
            .zip(&self.kinds)
            .map(attribute)
            .collect();
        if attributes.is_empty() {
            attributes.push(Attribute::ROWS);
        } else if attributes.iter().any(|a| a.number <= 0) {
            return None;
        }
        self.cache.is_open().then_some(attributes)
    }

    /// With joins above whose keys its rows have to meet.
    pub fn sieved(mut self, by: Vec<SievedBy>) -> Scan {
        self.sieves = by;
        self.sieves.retain(|by| {
            self.kinds
                .get(by.column)
                .is_some_and(|k| runtime_filter::takes(*k))
        });
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
                by: by.clone(),
                kind,
                columns: Columns::new(vec![self.columns[by.column]], &[kind]),
                tested: 0,
                passed: 0,
            }
        });
        let part = PartitionShare {
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
            ring: Ring::for_scan(self.table.heap.pool(), self.end),
            pages: Vec::new(),
            values: Vec::new(),
            looked_at: 0,
            passed: 0,
            attributes: self.attributes(),
            cache: self.cache.clone(),
            sifted: Vec::new(),
            ready: VecDeque::new(),
        };
        let batches = futures::stream::try_unfold(part, async |mut part| {
            let batch = part.batch().await.map_err(theirs)?;
            Ok(batch.map(|batch| (batch, part)))
        });
        Ok(batches.boxed())
    }
}

/// One partition's share as it is read.
struct PartitionShare {
    job: Arc<Job>,
    table: Arc<Table>,
    filter: Option<(Arc<Filter>, Columns)>,
    sieves: Vec<Sieving>,
    /// Rows that were taken one by one.
    columns: Columns,
    rows: usize,
    batch_rows: usize,
    batch_bytes: usize,
    schema: SchemaRef,
    end: BlockNo,
    next: Arc<AtomicU32>,
    ring: Ring,
    /// The pages of the extent in hand; their room is kept for those of the next.
    pages: Vec<TupleBatch>,
    values: Vec<Datum>,
    /// Rows so far, and those of them that were wanted.
    looked_at: usize,
    passed: usize,
    attributes: Option<Vec<Attribute>>,
    cache: Arc<ColumnCache>,
    /// What is left of extents' columns, too few rows yet for a batch.
    sifted: Vec<RecordBatch>,
    ready: VecDeque<RecordBatch>,
}

impl PartitionShare {
    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            // Pages that are in memory never make this wait: give way to other jobs, and to a
            // cancel, once an extent.
            tokio::task::yield_now().await;
            let Some(blocks) = self.next_extent() else {
                self.end_rows()?;
                self.end_sifted()?;
                return Ok(self.ready.pop_front());
            };
            self.take(blocks).await?;
        }
    }

    fn next_extent(&self) -> Option<Range<BlockNo>> {
        // A count alone is shared; what it hands out is published by the pages' own latches.
        let start = self.next.fetch_add(EXTENT, Ordering::Relaxed);
        if start >= self.end {
            // Kept from wrapping around by a partition that asks again and again.
            self.next.store(self.end, Ordering::Relaxed);
            return None;
        }
        Some(start..self.end.min(start.saturating_add(EXTENT)))
    }

    async fn take(&mut self, blocks: Range<BlockNo>) -> Result<()> {
        let extent = Extent {
            file: self.table.heap.file(),
            start: blocks.start,
        };
        let found = self.found(extent, blocks.clone()).await?;
        if let Some(columns) = all_of(&found) {
            return self.sift(columns);
        }
        let lsns = self.read(blocks).await?;
        if let Some(lsns) = lsns
            && let Some(columns) = self.keep(extent, lsns, found)?
        {
            return self.sift(columns);
        }
        let pages = std::mem::take(&mut self.pages);
        let taken = self.take_rows(&pages).await;
        self.pages = pages;
        taken
    }

    /// What the cache has of the columns, and still holds; nothing of none.
    async fn found(
        &mut self,
        extent: Extent,
        blocks: Range<BlockNo>,
    ) -> Result<Vec<Option<CachedColumn>>> {
        let Some(attributes) = &self.attributes else {
            return Ok(Vec::new());
        };
        let mut found = self.cache.get(extent, attributes);
        if found.iter().any(Option::is_some) {
            let mut lsns = Vec::with_capacity(blocks.len());
            for block in blocks {
                lsns.push(retry(|| self.table.heap.page_lsn(block, &mut self.ring)).await?);
            }
            keep_those_of(&mut found, &lsns);
        }
        Ok(found)
    }

    /// Reads an extent's rows; its pages' LSNs if all of it is what everybody sees.
    async fn read(&mut self, blocks: Range<BlockNo>) -> Result<Option<Arc<[Lsn]>>> {
        let mut lsns = Vec::with_capacity(blocks.len());
        self.pages.resize_with(blocks.len(), TupleBatch::new);
        for (tuples, block) in self.pages.iter_mut().zip(blocks) {
            let PartitionShare {
                job, table, ring, ..
            } = self;
            let lsn = retry(|| {
                tuples.clear();
                table.heap.scan_settled(block, &job.snapshot, ring, tuples)
            });
            lsns.push(lsn.await?);
        }
        Ok(lsns.into_iter().collect())
    }

    /// Takes the columns that were not found out of the pages and keeps them, if they are worth it.
    fn keep(
        &self,
        extent: Extent,
        lsns: Arc<[Lsn]>,
        mut found: Vec<Option<CachedColumn>>,
    ) -> Result<Option<Vec<ArrayRef>>> {
        let Some(attributes) = &self.attributes else {
            return Ok(None);
        };
        keep_those_of(&mut found, &lsns);
        // Where most rows are wanted keeping costs next to nothing; else it has to be likely that
        // it will be of use.
        let takes_all = self.filter.is_none() && !self.sieves.iter().any(Sieving::is_worth_it);
        let wants_most = takes_all || 2 * self.passed > self.looked_at;
        let at_rest = self.cache.is_at_rest(extent, &lsns);
        if !wants_most && !at_rest && found.iter().all(Option::is_none) {
            return Ok(None);
        }
        let missing = attributes
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none());
        let missing: Vec<Attribute> = missing.map(|(attribute, _)| *attribute).collect();
        let Some(made) = whole(&self.table, &self.pages, &missing)? else {
            return Ok(None);
        };
        let places = found.iter_mut().filter(|found| found.is_none());
        for ((place, attribute), values) in places.zip(missing).zip(made) {
            let kept = CachedColumn {
                values,
                lsns: lsns.clone(),
            };
            self.cache.put(extent, attribute, kept.clone());
            *place = Some(kept);
        }
        Ok(all_of(&found))
    }

    /// Takes in what is wanted of an extent's rows.
    fn sift(&mut self, mut columns: Vec<ArrayRef>) -> Result<()> {
        let rows = columns.first().map_or(0, |column| column.len());
        columns.truncate(self.schema.fields().len());
        let mut kept: Option<BooleanBuffer> = None;
        if let Some((filter, _)) = &self.filter {
            let own = filter.columns.iter().map(|at| columns[*at].clone());
            let batch = assemble(&filter.schema, own.collect(), rows)?;
            kept = Some(
                self.job
                    .with_cx(|cx| filter.program.holds(&batch, &None, cx))?,
            );
        }
        for sieving in self.sieves.iter_mut().filter(|s| s.is_worth_it()) {
            let mut keys = columns[sieving.by.column].clone();
            if let Some(kept) = &kept {
                keys = filter(&keys, &BooleanArray::new(kept.clone(), None)).map_err(arrow)?;
            }
            let mut marks = kept.map_or_else(|| vec![true; rows], |kept| kept.iter().collect());
            sieving.test(&keys, &mut marks);
            kept = Some(marks.into());
        }
        let mut batch = assemble(&self.schema, columns, rows)?;
        if let Some(kept) = kept.filter(|kept| kept.count_set_bits() < rows) {
            batch = filter_record_batch(&batch, &BooleanArray::new(kept, None)).map_err(arrow)?;
        }
        self.looked_at += rows;
        self.passed += batch.num_rows();
        if batch.num_rows() > 0 {
            // What came before, one by one, goes before.
            self.end_rows()?;
            self.sifted.push(batch);
        }
        let rows: usize = self.sifted.iter().map(RecordBatch::num_rows).sum();
        match 2 * rows >= self.batch_rows {
            true => self.end_sifted(),
            false => Ok(()),
        }
    }

    fn end_sifted(&mut self) -> Result<()> {
        match &self.sifted[..] {
            [] => {}
            [batch] => self.ready.push_back(batch.clone()),
            batches => self
                .ready
                .push_back(concat_batches(&self.schema, batches).map_err(arrow)?),
        }
        self.sifted.clear();
        Ok(())
    }

    /// Takes in the rows of an extent for which the condition holds, one by one.
    async fn take_rows(&mut self, pages: &[TupleBatch]) -> Result<()> {
        self.end_sifted()?;
        let mut rest = pages;
        while !rest.is_empty() {
            let most = CHUNK.min(self.batch_rows - self.rows);
            let (mut pages, mut rows, mut bytes) = (0, 0, 0);
            while rows < most && bytes < self.batch_bytes && pages < rest.len() {
                rows += rest[pages].len();
                bytes += rest[pages].bytes();
                pages += 1;
            }
            let (chunk, after) = rest.split_at(pages);
            rest = after;
            let kept = self.wanted(chunk).await?;
            let PartitionShare {
                table,
                columns,
                values,
                ..
            } = self;
            let taken = columns.take(table, chunk, kept.as_deref(), values).await?;
            self.rows += taken;
            self.looked_at += rows;
            self.passed += taken;
            if self.rows >= self.batch_rows || self.columns.bytes() >= self.batch_bytes {
                self.end_rows()?;
            }
        }
        Ok(())
    }

    fn end_rows(&mut self) -> Result<()> {
        if self.rows > 0 {
            let columns = self.columns.finish();
            let rows = std::mem::take(&mut self.rows);
            self.ready.push_back(assemble(&self.schema, columns, rows)?);
        }
        Ok(())
    }

    /// Which rows are wanted; None: all.
    async fn wanted(&mut self, pages: &[TupleBatch]) -> Result<Option<Vec<bool>>> {
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
            sieving
                .columns
                .take(&self.table, pages, Some(marks.as_slice()), &mut self.values)
                .await?;
            if let [keys] = &sieving.columns.finish()[..] {
                sieving.test(keys, marks);
            }
        }
        Ok(kept)
    }
}

fn all_of(found: &[Option<CachedColumn>]) -> Option<Vec<ArrayRef>> {
    if found.is_empty() {
        return None;
    }
    found
        .iter()
        .map(|kept| Some(kept.as_ref()?.values.clone()))
        .collect()
}

/// Leaves what was taken out of pages that have other LSNs now.
fn keep_those_of(found: &mut [Option<CachedColumn>], lsns: &[Lsn]) {
    for kept in found {
        if kept.as_ref().is_some_and(|kept| *kept.lsns != *lsns) {
            *kept = None;
        }
    }
}
