//! The leaf: a heap's visible rows, by ranges of blocks handed out to whoever is free.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use futures::StreamExt;
use throng_access::TupleBatch;
use throng_buffer::{Ring, retry};
use throng_exec::analytics::Job;
use throng_exec::large::Fetch;
use throng_exec::table::Table;
use throng_sql::expr::system;
use throng_types::row::RowLayout;
use throng_types::{BlockNo, Datum, Result, Tid};

use crate::column::{ColumnBuilder, Kind};
use crate::stage::{Batches, PlanRef, Step, theirs};
use crate::vector::assemble;

/// Blocks taken at a time: enough for read-ahead, few enough that nobody is left with much more than the others.
const RANGE: BlockNo = 64;

pub struct Scan {
    job: Arc<Job>,
    table: Arc<Table>,
    columns: Vec<i16>,
    kinds: Vec<Kind>,
    schema: SchemaRef,
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
        batch_bytes: usize,
    ) -> Result<Scan> {
        let end = throng_buffer::retry_blocking(|| table.heap.blocks())?;
        Ok(Scan {
            job: job.clone(),
            table: Arc::new(table),
            columns: columns.to_vec(),
            kinds,
            schema,
            end,
            next: Arc::new(AtomicU32::new(0)),
            batch_bytes,
        })
    }
}

impl Step for Scan {
    fn run(&self, _: usize, _: &[PlanRef], cx: Arc<TaskContext>) -> DfResult<Batches> {
        let wanted = self.columns.iter().copied().max().unwrap_or(0).max(0) as usize;
        let part = Part {
            job: self.job.clone(),
            table: self.table.clone(),
            columns: self.columns.clone(),
            wanted,
            builders: ColumnBuilder::of_all(&self.kinds),
            rows: 0,
            batch_rows: cx.session_config().batch_size(),
            batch_bytes: self.batch_bytes,
            schema: self.schema.clone(),
            end: self.end,
            next: self.next.clone(),
            range: 0..0,
            ring: Ring::for_scan(self.table.heap.pool(), self.end),
            tuples: TupleBatch::new(),
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
    columns: Vec<i16>,
    /// Columns to decode: up to the last one wanted.
    wanted: usize,
    builders: Vec<ColumnBuilder>,
    rows: usize,
    batch_rows: usize,
    batch_bytes: usize,
    schema: SchemaRef,
    end: BlockNo,
    next: Arc<AtomicU32>,
    range: std::ops::Range<BlockNo>,
    ring: Ring,
    tuples: TupleBatch,
    values: Vec<Datum>,
}

impl Part {
    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        // Pages that are in memory never make this wait: give way to other jobs, and to a cancel, once a batch.
        tokio::task::yield_now().await;
        while self.rows < self.batch_rows && self.bytes() < self.batch_bytes {
            let Some(block) = self.next_block() else {
                break;
            };
            let Part {
                job,
                table,
                ring,
                tuples,
                ..
            } = self;
            retry(|| {
                tuples.clear();
                table.heap.scan_page(block, &job.snapshot, ring, tuples)
            })
            .await?;
            let tuples = std::mem::take(&mut self.tuples);
            for (tid, bytes) in tuples.iter() {
                self.take(tid, bytes).await?;
            }
            self.tuples = tuples;
        }
        if self.rows == 0 {
            return Ok(None);
        }
        let columns = self
            .builders
            .iter_mut()
            .map(ColumnBuilder::finish)
            .collect();
        assemble(&self.schema, columns, std::mem::take(&mut self.rows)).map(Some)
    }

    fn bytes(&self) -> usize {
        self.builders.iter().map(ColumnBuilder::bytes).sum()
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

    async fn take(&mut self, tid: Tid, bytes: &[u8]) -> Result<()> {
        self.table.decode(bytes, self.wanted, &mut self.values)?;
        if RowLayout::has_external(bytes) {
            let mut fetch = Fetch::default();
            retry(|| self.table.fetch_external(&mut self.values, &mut fetch)).await?;
        }
        for (column, builder) in self.columns.iter().zip(&mut self.builders) {
            match *column {
                n if n > 0 => builder.push(&self.values[n as usize - 1])?,
                system::CTID => builder.push(&Datum::Tid(tid))?,
                _ => builder.push(&Datum::Oid(self.table.def.oid.0))?,
            }
        }
        self.rows += 1;
        Ok(())
    }
}
