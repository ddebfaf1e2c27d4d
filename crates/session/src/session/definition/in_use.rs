//! Relations that this session's statements under way have open, which no definition of the session
//! may change under them.
//!
//! ```text
//! a statement starts ──► Using ──────── its plan is in the list ────────► its run is dropped
//! a cursor           ──► Using ──────── also when it has given all ─────► CLOSE, the transaction's end
//! a definition       ──► Using ──────── its tables, while rows are read or written for it
//! a trigger's call   ──► (its call is known anyway: `TriggerCalls`)
//! ```
//! Locks do not help here: a session never waits for its own. The list costs a statement a count; a
//! definition looks through it. Which commands look, and what they are called, is PostgreSQL's
//! `CheckTableNotInUse`.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use throng_bind::command::{Ddl, TargetKind};
use throng_bind::definition::Outcome;
use throng_catalog::{Catalog, Change, Object};
use throng_plan::PlannedStatement;
use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::session::Session;

/// What a statement has open.
pub(in crate::session) enum Held {
    Plan(Arc<PlannedStatement>),
    /// Tables with their indexes.
    Tables(Vec<Oid>),
}

impl Held {
    fn has_table(&self, table: Oid) -> bool {
        match self {
            Held::Plan(plan) => plan.uses_table(table),
            Held::Tables(tables) => tables.contains(&table),
        }
    }

    fn has_index(&self, index: Oid, table: Oid) -> bool {
        match self {
            Held::Plan(plan) => plan.uses_index(index, table),
            Held::Tables(tables) => tables.contains(&table),
        }
    }
}

/// What a session's statements have open; a place that is free is None.
#[derive(Default)]
pub(in crate::session) struct InUse(RefCell<Vec<Option<Held>>>);

/// One statement's, for as long as it lives.
pub(in crate::session) struct Using {
    list: Rc<InUse>,
    at: usize,
}

impl InUse {
    pub fn hold(self: &Rc<Self>, held: Held) -> Using {
        let mut list = self.0.borrow_mut();
        list.push(Some(held));
        Using {
            at: list.len() - 1,
            list: self.clone(),
        }
    }

    fn any(&self, has: impl Fn(&Held) -> bool) -> bool {
        self.0.borrow().iter().flatten().any(has)
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        let mut list = self.list.0.borrow_mut();
        list[self.at] = None;
        // Statements end in the order of a stack, but for cursors.
        while let Some(None) = list.last() {
            list.pop();
        }
    }
}

/// The relations that a definition names, and what messages call it; empty where it may come under
/// a running statement.
fn named(ddl: &Ddl) -> Vec<(&'static str, Oid)> {
    match ddl {
        Ddl::AlterTable { table, .. }
        | Ddl::AttachPartition { table, .. }
        | Ddl::DetachPartition { table, .. } => vec![("ALTER TABLE", *table)],
        Ddl::AlterView { view: oid, .. } | Ddl::AlterIndex { index: oid, .. } => {
            vec![("ALTER TABLE", *oid)]
        }
        Ddl::SetOwner { target, .. } => match target.kind {
            TargetKind::Table | TargetKind::View | TargetKind::MaterializedView => {
                vec![("ALTER TABLE", target.oid)]
            }
            _ => Vec::new(),
        },
        Ddl::Repack { table, order } => {
            vec![(order.map_or("VACUUM", |_| "CLUSTER"), *table)]
        }
        Ddl::RefreshMaterialized { table, .. } => vec![("REFRESH MATERIALIZED VIEW", *table)],
        Ddl::CreateIndex(create) => vec![("CREATE INDEX", create.table)],
        Ddl::CreateView(create) => {
            let old = create.old.iter();
            old.map(|old| ("CREATE OR REPLACE VIEW", old.oid)).collect()
        }
        Ddl::CreateTable(create) if create.bound.is_some() => {
            let parents = create.parents.iter();
            parents
                .map(|oid| ("CREATE TABLE .. PARTITION OF", *oid))
                .collect()
        }
        Ddl::Truncate { tables, .. } => tables.iter().map(|t| ("TRUNCATE", *t)).collect(),
        Ddl::Reindex { indexes, .. } => indexes.iter().map(|i| ("REINDEX INDEX", *i)).collect(),
        _ => Vec::new(),
    }
}

impl Session {
    /// 55006 where a definition names what a statement of this session has open, or has triggers'
    /// events waiting.
    pub(in crate::session) fn must_be_free(&self, ddl: &Ddl, catalog: &Catalog) -> Result<()> {
        for (what, relation) in named(ddl) {
            self.must_be_unused(what, relation, catalog)?;
        }
        if let Ddl::AttachPartition { partition, .. } = ddl {
            // It gets the table's indexes.
            self.must_be_unused("ALTER TABLE", *partition, catalog)?;
        }
        Ok(())
    }

    /// The same of what the definition came to besides: children that change with their parent, and
    /// all that is dropped.
    pub(in crate::session) fn must_be_free_too(
        &self,
        ddl: &Ddl,
        outcome: &Outcome,
        changes: &[Change],
        before: &Catalog,
    ) -> Result<()> {
        let below =
            |table: Oid| -> HashSet<Oid> { before.descendants(table).into_iter().collect() };
        let (what, reached) = match ddl {
            Ddl::AlterTable { table, .. } => ("ALTER TABLE", Some(below(*table))),
            Ddl::CreateIndex(create) => ("CREATE INDEX", Some(below(create.table))),
            Ddl::Truncate { .. } => ("TRUNCATE", None),
            _ => ("", Some(HashSet::new())),
        };
        for table in &outcome.touched {
            let is_reached = reached.as_ref().is_none_or(|tables| tables.contains(table));
            if is_reached && before.table(*table).is_some() {
                self.must_be_unused(what, *table, before)?;
            }
        }
        // The youngest first, as PostgreSQL drops them.
        for change in changes.iter().rev() {
            let Change::Delete { oid, .. } = change else {
                continue;
            };
            let what = match before.object(*oid) {
                Some(Object::Table(_) | Object::View(_)) => "DROP TABLE",
                Some(Object::Index(_)) => "DROP INDEX",
                _ => continue,
            };
            self.must_be_unused(what, *oid, before)?;
        }
        Ok(())
    }

    fn must_be_unused(&self, what: &str, relation: Oid, catalog: &Catalog) -> Result<()> {
        let used = match catalog.index(relation) {
            Some(index) => self
                .in_use
                .any(|held| held.has_index(relation, index.table)),
            None => {
                self.in_use.any(|held| held.has_table(relation))
                    || self.trigger_calls.is_about(relation)
            }
        };
        let why = match used {
            true => "it is being used by active queries in this session",
            false if self.deferred.concerns(relation) => "it has pending trigger events",
            false => return Ok(()),
        };
        let found = catalog.relation(relation);
        let name = found.as_ref().map_or("", |r| r.name());
        let message = format!("cannot {what} \"{name}\" because {why}");
        Err(Error::new(state::OBJECT_IN_USE, message))
    }

    /// A definition reads or writes rows of these tables.
    pub(in crate::session) fn hold_for(&self, ddl: &Ddl, touched: &[Oid]) -> Using {
        let named = named(ddl).into_iter().map(|(_, relation)| relation);
        let tables = named.chain(touched.iter().copied());
        self.in_use.hold(Held::Tables(tables.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_leaves_the_list_in_any_order() {
        let list = Rc::new(InUse::default());
        let hold = |oid: u32| list.hold(Held::Tables(vec![Oid(oid)]));
        let has = |oid: u32| list.any(|held| held.has_table(Oid(oid)));
        let (cursor, first) = (hold(1), hold(2));
        let second = hold(3);
        drop(first);
        assert!(has(1) && !has(2) && has(3));
        drop(second);
        assert!(has(1) && !has(3));
        let third = hold(4);
        drop(cursor);
        assert!(!has(1) && has(4));
        drop(third);
        assert!(list.0.borrow().is_empty());
    }
}
