//! Constraints whose checks wait: SET CONSTRAINTS, and what is due when a transaction ends or a
//! table is changed.

use throng_catalog::Catalog;
use throng_types::{Oid, Result};

use crate::session::Session;
use throng_exec::write;

impl Session {
    /// `SET CONSTRAINTS`; no list: all. What is no longer deferred is checked at once.
    pub(in crate::session) async fn set_constraints(
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
    pub(in crate::session) async fn check_deferred(
        &self,
        constraints: Option<&[Oid]>,
    ) -> Result<()> {
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
