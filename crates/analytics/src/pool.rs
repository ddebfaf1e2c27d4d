//! The pool: threads of its own, a few jobs at a time in order of arrival, memory and spill files
//! for each.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use throng_exec::analytics::{Analytics, Job, NextRows, RowStream};
use throng_exec::run::Row;
use throng_plan::{Plan, PlannedStatement};
use throng_sync::{Computing, come_after, topology};
use throng_types::{Error, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::cache::ColumnCache;
use crate::column::{Kind, Reader};
use crate::datafusion_plan::{JoinBy, PlanBuilder, kinds_of, one_partition, refused};
use crate::execution_node::{is_exhausted, ours, theirs};
use crate::memory::{FAN_IN, JobMemory};
use crate::support;

/// Rows handed over at once, and how many such batches may wait to be taken.
const HANDED_ROWS: usize = 1024;
const AHEAD: usize = 4;
/// The least memory of a job: below it DataFusion's sort may not be able to merge what it spilled.
pub const LEAST_MEMORY: usize = 16 << 20;
/// The workers': event loops have nine tenths of a core that both want, and other programs on the
/// machine do not bring big queries to a standstill.
const NICENESS: i32 = 10;
/// Bytes of a scan's batch.
const LEAST_BATCH: usize = 32 << 10;
const LARGEST_BATCH: usize = 4 << 20;
/// Rows of a batch, and the memory of a worker for each of them: with rows of a hundred bytes it
/// can have some 40 batches.
const LEAST_ROWS: usize = 256;
const MOST_ROWS: usize = 8192;
const MEMORY_A_ROW: usize = 4096;

pub struct PoolConfig {
    pub workers: usize,
    /// The cores that the workers are pinned to in turn; none: they go where they like.
    pub cores: Vec<usize>,
    /// Jobs that run at once; others wait in order of arrival.
    pub concurrency: usize,
    /// For spill files. What is in it is removed.
    pub temporary: PathBuf,
    /// Bytes that a job may use whatever `work_mem` says; [`LEAST_MEMORY`] is known to do.
    pub least_memory: usize,
    /// Bytes that columns taken out of rows may take while they are kept; 0: none are.
    pub column_cache: usize,
}

/// Runs big statements.
pub struct AnalyticsPool {
    /// Taken when the pool is dropped.
    runtime: Option<Runtime>,
    /// One permit for each job that may run at a time.
    jobs: Arc<Semaphore>,
    started: AtomicU64,
    temporary: PathBuf,
    least_memory: usize,
    workers: usize,
    /// A worker has a core for a whole time slice when it is given one.
    keeps_cores: Arc<AtomicBool>,
    cache: Arc<ColumnCache>,
}

impl AnalyticsPool {
    /// Starts the workers.
    pub fn start(config: PoolConfig) -> Result<AnalyticsPool> {
        empty_directory(&config.temporary)?;
        let workers = config.workers.max(1);
        let concurrency = config.concurrency.max(1);
        let started = AtomicUsize::new(0);
        let cores = config.cores;
        let keeps_cores = Arc::new(AtomicBool::new(false));
        let keeps = keeps_cores.clone();
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            // Reading spill files back.
            .max_blocking_threads(2 * workers + 2)
            .thread_name("analytics")
            // Expressions are evaluated there too.
            .thread_stack_size(throng_types::stack::SIZE)
            .enable_time()
            .on_thread_start(move || {
                throng_types::interrupt::take_your_time();
                let nth = started.fetch_add(1, Ordering::Relaxed);
                if let Some(core) = cores.get(nth.checked_rem(cores.len()).unwrap_or(0)) {
                    // Best effort: without it the workers merely wander.
                    let _ = topology::pin_current_thread(*core);
                }
                // The event loops, which share the cores, come first. Best effort, too.
                if !matches!(come_after(NICENESS), Ok(true)) {
                    keeps.store(true, Ordering::Relaxed);
                }
            })
            .build()?;
        Ok(AnalyticsPool {
            runtime: Some(runtime),
            jobs: Arc::new(Semaphore::new(concurrency)),
            started: AtomicU64::new(0),
            temporary: config.temporary,
            least_memory: config.least_memory,
            workers,
            keeps_cores,
            cache: Arc::new(ColumnCache::new(config.column_cache)),
        })
    }

    /// Jobs taken on so far.
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// What the column cache takes.
    pub fn cached_bytes(&self) -> usize {
        self.cache.bytes()
    }
}

impl Drop for AnalyticsPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Spill files of a server that was killed are of no use to anybody.
fn empty_directory(path: &Path) -> Result<()> {
    if path.exists() {
        std::fs::remove_dir_all(path)?;
    }
    Ok(std::fs::create_dir_all(path)?)
}

/// What the job's task tells the session.
enum Message {
    Rows(Vec<Row>),
    End,
    Failed(Error),
}

impl Analytics for AnalyticsPool {
    fn accepts(&self, plan: &PlannedStatement) -> bool {
        support::accepts(plan)
    }

    fn accepts_part(&self, part: &Plan) -> bool {
        support::node(part)
    }

    fn start(&self, job: Job) -> Box<dyn RowStream> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let (rows, taken) = mpsc::channel(AHEAD);
        let Some(runtime) = &self.runtime else {
            return Box::new(JobRows {
                rows: taken,
                task: None,
                ended: false,
            });
        };
        let run = Run {
            job: Arc::new(job),
            workers: self.workers,
            temporary: self.temporary.clone(),
            least_memory: self.least_memory,
            cache: self.cache.clone(),
            rows,
            given: false,
        };
        let (jobs, keeps_cores) = (self.jobs.clone(), self.keeps_cores.clone());
        let task = runtime.spawn(async move {
            // Closed by nobody.
            let _turn = jobs.acquire_owned().await;
            let _computing = keeps_cores.load(Ordering::Relaxed).then(Computing::begin);
            run.run().await;
        });
        Box::new(JobRows {
            rows: taken,
            task: Some(task.abort_handle()),
            ended: false,
        })
    }
}

/// The session's end.
struct JobRows {
    rows: mpsc::Receiver<Message>,
    task: Option<AbortHandle>,
    ended: bool,
}

impl Drop for JobRows {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl RowStream for JobRows {
    fn next(&mut self) -> NextRows<'_> {
        Box::pin(async {
            if self.ended {
                return Ok(None);
            }
            match self.rows.recv().await {
                Some(Message::Rows(rows)) => Ok(Some(rows)),
                Some(Message::End) => {
                    self.ended = true;
                    Ok(None)
                }
                Some(Message::Failed(error)) => Err(error),
                // Its task died without a word: what it gave so far is not all.
                None => Err(Error::internal("an analytics job ended early")),
            }
        })
    }
}

/// A job under way.
struct Run {
    job: Arc<Job>,
    workers: usize,
    temporary: PathBuf,
    least_memory: usize,
    cache: Arc<ColumnCache>,
    rows: mpsc::Sender<Message>,
    /// Some rows have left: it cannot be started over.
    given: bool,
}

impl Run {
    async fn run(mut self) {
        let mut outcome = self.attempt(JoinBy::Hash).await;
        if outcome
            .as_ref()
            .is_err_and(|e| is_exhausted(e) && !self.given)
        {
            outcome = self.attempt(JoinBy::Merge).await;
        }
        let last = match outcome {
            Ok(()) => Message::End,
            Err(e) => Message::Failed(ours(&e)),
        };
        // Whoever is not there any more does not want to know.
        let _ = self.rows.send(last).await;
    }

    async fn attempt(&mut self, join_by: JoinBy) -> DfResult<()> {
        // Each worker has several batches in hand, and a sort of them needs as much again.
        let batch_bytes = (self.memory() / (32 * self.workers)).clamp(LEAST_BATCH, LARGEST_BATCH);
        let layout = PlanBuilder {
            job: self.job.clone(),
            partitions: self.workers,
            join_by,
            batch_bytes,
            sieves: Default::default(),
            cache: self.cache.clone(),
        };
        let plan = &self.job.plan.root;
        let root = one_partition(layout.node(plan, None).map_err(theirs)?);
        let kinds = kinds_of(&plan.types).map_err(theirs)?;
        let mut batches = root.execute(0, self.context().map_err(theirs)?)?;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            for from in (0..batch.num_rows()).step_by(HANDED_ROWS) {
                let to = batch.num_rows().min(from + HANDED_ROWS);
                let rows = decode(&kinds, &batch, from..to).map_err(theirs)?;
                self.given = true;
                if self.rows.send(Message::Rows(rows)).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn memory(&self) -> usize {
        self.job.work_mem.max(self.least_memory)
    }

    /// Memory and files for one attempt.
    fn context(&self) -> Result<Arc<TaskContext>> {
        let memory = self.memory();
        let mode = DiskManagerMode::Directories(vec![self.temporary.clone()]);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(JobMemory::new(memory)))
            .with_disk_manager_builder(
                DiskManagerBuilder::default()
                    .with_mode(mode)
                    .with_max_spill_merge_fan_in(FAN_IN),
            )
            .build_arc()
            .map_err(refused)?;
        let batch = (memory / self.workers / MEMORY_A_ROW).clamp(LEAST_ROWS, MOST_ROWS);
        let mut config = SessionConfig::new()
            .with_batch_size(batch)
            .with_target_partitions(self.workers);
        // What a sort keeps free for merging, of its share of the memory.
        let execution = &mut config.options_mut().execution;
        execution.sort_spill_reservation_bytes = (memory / (64 * self.workers)).min(10 << 20);
        execution.sort_in_place_threshold_bytes = (memory / (16 * self.workers)).min(1 << 20);
        Ok(Arc::new(
            TaskContext::default()
                .with_session_config(config)
                .with_runtime(runtime),
        ))
    }
}

fn decode(
    kinds: &[Kind],
    batch: &datafusion::arrow::array::RecordBatch,
    range: std::ops::Range<usize>,
) -> Result<Vec<Row>> {
    let readers = Reader::of_all(kinds, batch.columns());
    range
        .map(|row| readers.iter().map(|r| r.get(row)).collect())
        .collect()
}
