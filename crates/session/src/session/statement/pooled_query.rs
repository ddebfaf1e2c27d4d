//! Queries that run on the analytics pool, whole or in part: which ones, and how their rows come
//! back.

use std::sync::Arc;

use throng_bind::command::Isolation;
use throng_observe::{Object, WaitEvent, waited};
use throng_plan::PlannedStatement;
use throng_txn::Snapshot;
use throng_types::{Datum, Result};

use crate::session::Session;
use throng_exec::analytics::{JobCounts, Pool, RowStream, job};
use throng_exec::run::Row;
use throng_exec::run::context::Env;

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

    /// The operators of a plan that would run on the analytics pool, by number, with all that is
    /// below them.
    pub(in crate::session) fn pooled_operators(&self, plan: &PlannedStatement) -> Vec<u32> {
        let transaction = self.transaction.as_ref();
        let followed = transaction.is_some_and(|t| t.isolation.get() == Isolation::Serializable);
        match self.engine.analytics() {
            Some(analytics) if !followed && self.is_big(plan) && analytics.accepts(plan) => {
                vec![plan.root.id]
            }
            Some(_) if !followed => plan.parts.clone(),
            _ => Vec::new(),
        }
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
