//! Plans made for a prepared statement's parameters, where `plan_cache_mode` is `force_custom_plan`
//! or the values choose among many partitions.
//!
//! Otherwise a prepared statement has one plan, which knows no values: the setting is looked at
//! when it changes, and a statement that runs by the usual way tests one flag.

use std::sync::Arc;

use throng_bind::command::BoundStatement;
use throng_plan::PlannedStatement;
use throng_types::{Datum, Error, Result};
use throng_values::settings::{Id, SessionSettings};

use crate::session::Session;
use crate::session::statement::prepared::Prepared;

/// Among more partitions than this a statement that is planned once does not choose by its
/// parameters' values: it is planned for them. Planning for a few takes as long as locking and
/// passing over this many.
pub(in crate::session) const MOST_UNKNOWN: usize = 64;

/// Whether prepared statements are planned anew for each of their parameters' values.
pub(in crate::session) fn is_forced(settings: &SessionSettings) -> bool {
    settings.text(Id::PlanCacheMode) == "force_custom_plan"
}

impl Session {
    /// The plan by which a prepared data statement runs with these values, its tables locked.
    pub(in crate::session) async fn plan_with(
        &mut self,
        prepared: &Prepared,
        values: &[Datum],
    ) -> Result<Arc<PlannedStatement>> {
        let forced = self.hot_settings().custom_plans && !values.is_empty();
        if !forced && let Some(plan) = self.plan_of(prepared, values).await? {
            return Ok(plan);
        }
        Box::pin(self.custom_plan(prepared, values)).await
    }

    #[cold]
    async fn custom_plan(
        &mut self,
        prepared: &Prepared,
        values: &[Datum],
    ) -> Result<Arc<PlannedStatement>> {
        loop {
            let version = self.database.version();
            // It is the one without values that must still have the columns that were told.
            let known = self.current(prepared, self.plan_key()).await?;
            let Some(statement) = &known.statement else {
                return Err(Error::internal("a statement without a text has a plan"));
            };
            let bound = self
                .bind_statement(statement, &known.sql, &known.params)
                .await?;
            let BoundStatement::Query(mut query) = bound.statement else {
                return Err(Error::internal("a data statement that is none"));
            };
            throng_plan::set_parameters(&mut query, values);
            let plan = Arc::new(self.plan(*query).await?);
            if self.lock_planned(&plan, values, version).await? {
                return Ok(plan);
            }
        }
    }
}
