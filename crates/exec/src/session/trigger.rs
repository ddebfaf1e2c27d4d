//! Triggers as a session has them: which calls run for one, and their definitions as SQL.

use std::cell::RefCell;
use std::sync::Arc;

use throng_sql::bind;
use throng_sql::catalog::TriggerDef;
use throng_sql::catalog::system::trigger::{Written, definition};
use throng_types::Result;

use super::Session;
use super::host::SessionHost;
use crate::trigger::TriggerCall;

/// The calls of users' functions inside each other: for each the trigger that it runs for, if it does.
#[derive(Default)]
pub struct TriggerCalls(RefCell<Vec<Option<Arc<TriggerCall>>>>);

/// One call, for as long as it lives.
pub struct Calling<'a>(&'a TriggerCalls);

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.0.borrow_mut().pop();
    }
}

impl TriggerCalls {
    pub fn enter(&self, call: Option<Arc<TriggerCall>>) -> Calling<'_> {
        self.0.borrow_mut().push(call);
        Calling(self)
    }

    /// How many triggers run inside each other.
    fn depth(&self) -> i32 {
        self.0.borrow().iter().flatten().count() as i32
    }

    /// The trigger that the innermost function runs for.
    pub fn innermost(&self) -> Option<Arc<TriggerCall>> {
        self.0.borrow().last().cloned().flatten()
    }
}

impl Session {
    pub(super) fn trigger_depth(&self) -> i32 {
        self.trigger_calls.depth()
    }
}

impl SessionHost<'_> {
    /// `pg_get_triggerdef`
    pub(super) fn trigger_definition(&self, trigger: &TriggerDef, pretty: bool) -> Result<String> {
        let path = self.search_path();
        let condition = match self.catalog.relation(trigger.table) {
            Some(relation) => bind::trigger_condition_shown(
                trigger,
                &relation,
                self.catalog,
                &path,
                pretty,
                self.eval(),
            )?,
            None => None,
        };
        let written = Written {
            search_path: &path,
            short: pretty,
            condition: condition.as_deref(),
        };
        Ok(definition(self.catalog, trigger, &written))
    }
}
