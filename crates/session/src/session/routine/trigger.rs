//! Triggers as a session has them: which calls run for one, and their definitions as SQL.

use std::cell::RefCell;
use std::sync::Arc;

use throng_bind::binder;
use throng_bind::command::Ddl;
use throng_catalog::system::trigger::{Written, definition};
use throng_catalog::{Catalog, TriggerDef, fires};
use throng_txn::{LockMode, Snapshot};
use throng_types::{Error, Oid, Result};
use throng_values::func::TransitionTable;

use crate::session::Session;
use crate::session::answers::eval_host::SessionHost;
use throng_exec::trigger::TriggerCall;
use throng_exec::write;
use throng_exec::write::trigger::Named;

/// The calls of users' functions inside each other: for each the trigger that it runs for, if it
/// does.
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

    /// Whether one of them runs for a trigger of the relation.
    pub fn is_about(&self, relation: Oid) -> bool {
        let calls = self.0.borrow();
        calls.iter().flatten().any(|call| call.relation == relation)
    }

    /// A transition table of the trigger that the innermost function runs for.
    pub fn table(&self, name: &str) -> Option<TransitionTable> {
        let calls = self.0.borrow();
        let call = calls.last()?.as_ref()?;
        let found = call.transitions.iter().find(|t| t.name == name)?;
        Some((call.columns.clone(), found.rows.clone()))
    }
}

impl Session {
    pub(in crate::session) fn trigger_depth(&self) -> i32 {
        self.trigger_calls.depth()
    }
}

impl Session {
    /// TRUNCATE, with the triggers of the tables that it empties before and after it.
    pub(in crate::session) async fn truncate(
        &mut self,
        ddl: &Ddl,
    ) -> Result<(Option<u64>, Vec<Error>)> {
        let catalog = self.definitions();
        let on_truncate = |table: &Oid| {
            let triggers = catalog.triggers_of(*table).iter();
            triggers.into_iter().any(|t| t.is_on(fires::TRUNCATE))
        };
        let mut tables = emptied(ddl, &catalog);
        tables.retain(on_truncate);
        if tables.is_empty() {
            return self.define(ddl).await;
        }
        let txn = &self.transaction()?.txn;
        for table in &tables {
            txn.lock_relation(*table, LockMode::AccessExclusive).await?;
        }
        self.deferred.triggers.begin();
        let mut begun = Vec::with_capacity(tables.len());
        {
            let host = self.host(&catalog);
            let snapshot = self.transaction()?.txn.snapshot();
            let cx = self.write_context(&catalog, &host, &snapshot)?;
            for def in tables.iter().filter_map(|oid| catalog.table(*oid)) {
                begun.push(Named::begin_over(def, &[fires::TRUNCATE], &[], &cx).await?);
            }
        }
        let done = self.define(ddl).await?;
        let catalog = self.definitions();
        let host = self.host(&catalog);
        let snapshot = self.transaction()?.txn.snapshot();
        let cx = self.write_context(&catalog, &host, &snapshot)?;
        for named in begun {
            named.end(&[], &cx).await?;
        }
        self.deferred.triggers.end(&cx).await?;
        Ok(done)
    }

    fn write_context<'a>(
        &'a self,
        catalog: &'a Catalog,
        host: &'a SessionHost<'a>,
        snapshot: &'a Snapshot,
    ) -> Result<write::Context<'a>> {
        Ok(write::Context {
            env: self.env(catalog, host, snapshot, &[]),
            txn: &self.transaction()?.txn,
            work_mem: self.work_mem(),
            deferred: &self.deferred,
        })
    }
}

/// The tables that a TRUNCATE empties: those named, their children, and those that point at them.
fn emptied(ddl: &Ddl, catalog: &Catalog) -> Vec<Oid> {
    let Ddl::Truncate {
        tables,
        only,
        cascade,
        ..
    } = ddl
    else {
        return Vec::new();
    };
    let mut all = tables.clone();
    let mut next = 0;
    while let Some(oid) = all.get(next).copied() {
        next += 1;
        let mut more = Vec::new();
        if !only.contains(&oid) {
            more.extend(catalog.children_of(oid));
        }
        if *cascade && let Some(table) = catalog.table(oid) {
            let above = catalog.ancestors(table);
            for named in std::iter::once(oid).chain(above) {
                more.extend(catalog.referencing(named).iter().map(|key| key.table));
            }
        }
        more.retain(|oid| !all.contains(oid));
        all.extend(more);
    }
    all
}

impl SessionHost<'_> {
    /// `pg_get_triggerdef`
    pub(in crate::session) fn trigger_definition(
        &self,
        trigger: &TriggerDef,
        pretty: bool,
    ) -> Result<String> {
        let path = self.search_path();
        let condition = match self.catalog.relation(trigger.table) {
            Some(relation) => binder::trigger_condition_shown(
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
