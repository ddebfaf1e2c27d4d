//! Queries that run on the analytics pool, whole or in part: which ones, and how their rows come
//! back.

use std::sync::Arc;

use throng_catalog::Catalog;
use throng_observe::{Object, WaitEvent, waited};
use throng_plan::{Plan, PlannedStatement};
use throng_txn::Snapshot;
use throng_types::{Datum, Result};

use crate::analytics::{Analytics, Job, JobCounts, RowStream};
use crate::run::Row;
use crate::run::context::Env;
use crate::session::Session;
use crate::spill::{RowList, RowStore};

/// A query on the analytics pool, and the rows of it that are here.
pub(in crate::session) struct PooledQuery {
    stream: Box<dyn RowStream>,
    rows: std::vec::IntoIter<Row>,
    pub counts: Arc<JobCounts>,
}

impl PooledQuery {
    /// As the row operators' `next`: false when there are no more rows.
    pub async fn next(&mut self, env: Env<'_>, row: &mut Row) -> Result<bool> {
        loop {
            if let Some(next) = self.rows.next() {
                *row = next;
                return Ok(true);
            }
            let next = waited(WaitEvent::AnalyticsRun, Object::NONE, self.stream.next());
            match env.cancel.guard(next).await? {
                Some(rows) => self.rows = rows.into_iter(),
                None => return Ok(false),
            }
        }
    }
}

impl Session {
    /// What runs the parts of a plan that are the pool's, if it may.
    pub(in crate::session) fn pool(
        &self,
        plan: &PlannedStatement,
        snapshot: &Snapshot,
        work_mem: usize,
    ) -> Option<Pool> {
        if plan.parts.is_empty() || snapshot.reads().is_some() {
            return None;
        }
        Some(Pool {
            analytics: self.engine.analytics()?.clone(),
            catalog: Arc::clone(&self.catalog()),
            work_mem,
        })
    }

    /// Begins a big query on the analytics pool, if it may run there. `work_mem` in bytes.
    pub(in crate::session) fn start_elsewhere(
        &self,
        plan: &Arc<PlannedStatement>,
        params: &[Datum],
        snapshot: &Snapshot,
        work_mem: usize,
    ) -> Option<PooledQuery> {
        // What a serializable transaction reads is followed by the row operators.
        if !self.is_big(plan) || snapshot.reads().is_some() {
            return None;
        }
        let analytics = self.engine.analytics()?.clone();
        if !analytics.accepts(plan) {
            return None;
        }
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let env = self.env(&catalog, &host, snapshot, params);
        let job = job(plan.clone(), env, &catalog, work_mem);
        Some(PooledQuery {
            counts: job.counts.clone(),
            stream: analytics.start(job),
            rows: Vec::new().into_iter(),
        })
    }
}

fn job(plan: Arc<PlannedStatement>, env: Env<'_>, catalog: &Arc<Catalog>, work_mem: usize) -> Job {
    Job::new(
        plan,
        env.params.to_vec(),
        env.snapshot.clone(),
        env.store.clone(),
        catalog.clone(),
        &env.eval,
        work_mem,
    )
}

/// What a statement that runs here has to ask the pool with.
pub(crate) struct Pool {
    analytics: Arc<dyn Analytics>,
    catalog: Arc<Catalog>,
    /// Bytes.
    work_mem: usize,
}

impl Pool {
    /// All rows of a part of a plan, and what its operators did.
    pub async fn run(&self, part: &Plan, env: Env<'_>) -> Result<(RowList, Arc<JobCounts>)> {
        let statement = PlannedStatement::of_part(part.clone());
        let job = job(Arc::new(statement), env, &self.catalog, self.work_mem);
        let counts = job.counts.clone();
        let mut stream = self.analytics.start(job);
        let mut kept = RowStore::new(self.work_mem, env.store);
        loop {
            let next = waited(WaitEvent::AnalyticsRun, Object::NONE, stream.next());
            let Some(rows) = env.cancel.guard(next).await? else {
                return Ok((kept.into_rows(), counts));
            };
            for row in &rows {
                kept.keep(row)?;
            }
        }
    }
}
