//! Constraints whose checks wait: SET CONSTRAINTS, and what is due when a transaction ends or a table is changed.

use throng_sql::catalog::Catalog;
use throng_sql::command::{Ddl, TargetKind};
use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Session;
use crate::write;

impl Session {
    /// `SET CONSTRAINTS`; no list: all. What is no longer deferred is checked at once.
    pub(super) async fn set_constraints(
        &self,
        constraints: Option<&Vec<Oid>>,
        deferred: bool,
    ) -> Result<()> {
        let catalog = self.definitions();
        let all = constraints.map(|named| with_parts(named, &catalog));
        self.deferred.set(all.as_deref(), deferred);
        if deferred {
            return Ok(());
        }
        self.check_deferred(all.as_deref()).await
    }

    /// Checks what waits, of these constraints or of all.
    pub(super) async fn check_deferred(&self, constraints: Option<&[Oid]>) -> Result<()> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let transaction = self.transaction()?;
        let txn = &transaction.txn;
        let snapshot = txn.latest_snapshot();
        let cx = write::Context {
            env: self.env(&catalog, &host, &snapshot, &[]),
            txn,
            work_mem: self.work_mem(),
            deferred: &self.deferred,
        };
        let is_due = |oid: Oid| constraints.is_none_or(|list| list.contains(&oid));
        let depth = self.savepoint_depth();
        self.deferred.check(is_due, depth, &cx).await
    }

    /// 55006: the definition is of a table with rows still to be checked.
    pub(super) fn must_have_nothing_due(&self, ddl: &Ddl, catalog: &Catalog) -> Result<()> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        let dropped = |kind: TargetKind, oid: Oid| match kind {
            TargetKind::Table | TargetKind::MaterializedView => Some(("DROP TABLE", oid)),
            TargetKind::Index => Some(("DROP INDEX", catalog.index(oid)?.table)),
            _ => None,
        };
        let tables: Vec<(&str, Oid)> = match ddl {
            Ddl::AlterTable { table, .. } => vec![("ALTER TABLE", *table)],
            Ddl::Repack { table, order } => {
                let what = order.map_or("VACUUM", |_| "CLUSTER");
                vec![(what, *table)]
            }
            Ddl::Truncate { tables, .. } => tables.iter().map(|t| ("TRUNCATE", *t)).collect(),
            Ddl::Drop { targets, .. } => {
                let targets = targets.iter();
                targets.filter_map(|t| dropped(t.kind, t.oid)).collect()
            }
            _ => Vec::new(),
        };
        for (what, table) in tables {
            if self.deferred.concerns(table) {
                let name = catalog.table(table).map_or("", |t| t.name.as_str());
                let message =
                    format!("cannot {what} \"{name}\" because it has pending trigger events");
                return Err(Error::new(state::OBJECT_IN_USE, message));
            }
        }
        Ok(())
    }
}

/// Constraints, and those of partitions that are parts of them.
fn with_parts(named: &[Oid], catalog: &Catalog) -> Vec<Oid> {
    let mut all = named.to_vec();
    let mut next = 0;
    while let Some(oid) = all.get(next).copied() {
        next += 1;
        if let Some(trigger) = catalog.trigger(oid) {
            let children = catalog.children_of(trigger.table).iter();
            let triggers = children.flat_map(|child| catalog.triggers_of(*child));
            let parts = triggers.filter(|part| part.parent == Some(oid));
            all.extend(parts.map(|part| part.oid));
        }
        let Some(constraint) = catalog.constraint(oid) else {
            continue;
        };
        for child in catalog.children_of(constraint.table) {
            let own = catalog.constraints_of(*child).iter();
            let parts = own.filter(|c| c.lineage.parent == Some(oid));
            all.extend(parts.map(|c| c.oid));
        }
    }
    all
}
