//! Queries that run on the analytics pool: which ones, and how their rows come back.

use std::sync::Arc;

use throng_observe::{Object, WaitEvent, waited};
use throng_sql::plan::{PlannedStatement, StatementTag};
use throng_sql::settings::Id;
use throng_txn::Snapshot;
use throng_types::{Datum, Result};

use super::Session;
use crate::analytics::{Job, RowStream};
use crate::run::Row;
use crate::run::context::Env;

/// A query on the analytics pool, and the rows of it that are here.
pub(super) struct Elsewhere {
    stream: Box<dyn RowStream>,
    rows: std::vec::IntoIter<Row>,
}

impl Elsewhere {
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
    /// Whether a plan is one for the analytics pool, if it may run there.
    pub(super) fn is_big(&self, plan: &PlannedStatement) -> bool {
        let above = self.settings.borrow().int(Id::AnalyticsAboveCost) as f64;
        above >= 0.0 && plan.root.cost.total > above && plan.tag == StatementTag::Select
    }

    /// Begins a big query on the analytics pool, if it may run there. `work_mem` in bytes.
    pub(super) fn start_elsewhere(
        &mut self,
        plan: &Arc<PlannedStatement>,
        params: &[Datum],
        snapshot: &Snapshot,
        work_mem: usize,
    ) -> Option<Elsewhere> {
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
        let job = Job::new(
            plan.clone(),
            params.to_vec(),
            snapshot.clone(),
            self.engine.store.clone(),
            catalog.clone(),
            &host.eval(),
            work_mem,
        );
        Some(Elsewhere {
            stream: analytics.start(job),
            rows: Vec::new().into_iter(),
        })
    }
}
