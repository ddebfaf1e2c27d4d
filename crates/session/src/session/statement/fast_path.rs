//! A statement of the extended protocol that runs at once: its Bind came with an Execute for all
//! rows and with Sync, as most drivers send them. Outside a block a portal ends with Sync, so
//! nobody could come back to this one, and none is made.

use std::rc::Rc;
use std::sync::Arc;

use throng_plan::PlannedStatement;
use throng_types::{Datum, Result};

use crate::session::Session;
use crate::session::statement::plans::CachedPlan;
use crate::session::statement::prepared::{Prepared, VALUES};
use crate::session::statement::query::Rows;
use throng_exec::client::{Client, RowShape};

/// A data statement with its parameters, about to run.
pub struct FastPath {
    prepared: Rc<Prepared>,
    known: Rc<CachedPlan>,
    /// The definitions it was understood by.
    version: u64,
    values: Vec<Datum>,
    shape: Option<Arc<RowShape>>,
}

impl FastPath {
    /// Its columns, if it gives rows.
    pub fn shape(&self) -> Option<&RowShape> {
        self.shape.as_deref()
    }
}

impl Session {
    /// As [`bind`](Self::bind) of the unnamed portal to a statement, for
    /// [`run_once`](Self::run_once). None where there is to be a portal: of commands, of what
    /// shares its transaction with other statements, and where something is to be waited for first.
    pub fn bind_once<'p>(
        &mut self,
        statement: &str,
        parameter_formats: &[i16],
        parameters: impl ExactSizeIterator<Item = Option<&'p [u8]>>,
        result_formats: &[i16],
    ) -> Result<Option<FastPath>> {
        if self.is_in_block() {
            return Ok(None);
        }
        let prepared = self.find_prepared(statement)?;
        let known = prepared.known();
        if known.plan.is_none() {
            return Ok(None);
        }
        self.portals.get_mut().drop_unnamed();
        self.message_began(&known.sql)?;
        self.begin_if_idle();
        let version = self.database.version();
        let Some(known) = self.is_current(&prepared, self.plan_key()) else {
            return Ok(None);
        };
        let (values, long) =
            self.read_parameters(&known, statement, parameter_formats, parameters)?;
        if !long.is_empty() {
            return Ok(None);
        }
        self.check_at_bind(&known, &values)?;
        let shape = known.shape(result_formats)?;
        Ok(Some(FastPath {
            prepared,
            known,
            version,
            values,
            shape,
        }))
    }

    /// Runs it to its end and tells its rows and its tag. Its transaction ends with
    /// [`sync`](Self::sync).
    pub async fn run_once(&mut self, once: FastPath, client: &mut dyn Client) -> Result<()> {
        let plan = self.plan_of_once(&once).await?;
        let logged = self
            .hot_settings()
            .logs
            .then(|| self.log_began("execute", &once.known.sql));
        let FastPath { values, shape, .. } = once;
        let mut run = self.start(plan, values, Rows::Given)?;
        self.find_position(run.execution.plan(), &run.snapshot)
            .await?;
        self.run_whole(&mut run, shape.as_deref(), client).await?;
        VALUES.with(|rooms| rooms.give_back(run.retire()));
        if let Some(logged) = logged {
            self.log_ended(logged);
        }
        self.executed().await
    }

    /// Its plan, its tables locked.
    async fn plan_of_once(&mut self, once: &FastPath) -> Result<Arc<PlannedStatement>> {
        if let Some(plan) = &once.known.plan
            && !self.hot_settings().custom_plans
            && !plan.wants_values
            && self.lock_planned(plan, &once.values, once.version).await?
        {
            return Ok(plan.clone());
        }
        self.plan_with(&once.prepared, &once.values).await
    }
}
