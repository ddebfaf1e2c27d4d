//! Which tables a statement takes for the children of others, where that is not what the
//! definitions say.
//!
//! | when | a table's children are |
//! | --- | --- |
//! | a lock on a child was waited for | those that it had when its own lock was had |
//! | DETACH CONCURRENTLY has begun after the transaction's snapshot was taken | also the partition that it is about |
//!
//! Both are PostgreSQL's: children are found once, when their parent is locked, and locked then.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use throng_bind::expr::Expr;
use throng_catalog::{Catalog, FamilyOf};
use throng_plan::PlannedStatement;
use throng_syntax::vocabulary::TableLock;
use throng_txn::Txn;
use throng_types::{Datum, Oid, Result};

use crate::session::statement::query::lock_mode;
use crate::session::{Session, SharedCatalog};
use throng_exec::write::constant_blocking;

/// What a statement takes for children.
#[derive(Default)]
pub(in crate::session) struct Families {
    /// As they were when their parents were locked.
    found: RefCell<Vec<FamilyOf>>,
    made: RefCell<Option<Made>>,
}

/// A catalog with other families, and of what it was made.
struct Made {
    from: SharedCatalog,
    families: Vec<FamilyOf>,
    catalog: SharedCatalog,
}

impl Families {
    /// Nothing but the definitions says which they are.
    pub fn are_as_defined(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// A statement begins.
    pub fn forget(&mut self) {
        self.found.get_mut().clear();
    }
}

impl Session {
    /// Takes the locks that a plan needs with these values of its parameters; without values, all
    /// that it may need.
    pub(in crate::session) async fn lock_plan(
        &self,
        plan: &PlannedStatement,
        values: &[Datum],
    ) -> Result<()> {
        if plan.leaf_locks.is_empty() {
            return self.lock_tables(&plan.locks).await;
        }
        let locks = self.chosen_locks(plan, values)?;
        self.lock_tables(&locks).await
    }

    fn chosen_locks(
        &self,
        plan: &PlannedStatement,
        values: &[Datum],
    ) -> Result<Vec<(Oid, TableLock)>> {
        let catalog = self.catalog();
        let host = self.host(&catalog);
        let snapshot = self.transaction()?.txn.latest_snapshot();
        let env = self.env(&catalog, &host, &snapshot, values);
        let mut locks: BTreeMap<Oid, TableLock> = plan.locks.iter().copied().collect();
        for leaves in &plan.leaf_locks {
            let mut eval = |value: &Expr| constant_blocking(value.clone(), env);
            let chosen = match values.len() < plan.params.len() {
                true => None,
                false => leaves.needed(&mut eval).ok(),
            };
            for (leaf, mode) in chosen.unwrap_or_else(|| leaves.all().collect()) {
                let held = locks.entry(leaf).or_insert(mode);
                *held = (*held).max(mode);
            }
        }
        Ok(locks.into_iter().collect())
    }

    /// Takes the locks of a plan: those of tables that are named before those of their children,
    /// each in order of oid so that plans do not deadlock on them.
    pub(in crate::session) async fn lock_families(
        &self,
        txn: &Txn,
        locks: &[(Oid, TableLock)],
    ) -> Result<()> {
        if let [(table, mode)] = locks {
            return txn.lock_relation(*table, lock_mode(*mode)).await;
        }
        let catalog = self.catalog();
        let is_child = |oid: Oid| is_below(oid, &catalog, &|oid| locks.iter().any(|l| l.0 == oid));
        let version = self.database.version();
        for (table, mode) in locks.iter().filter(|(oid, _)| !is_child(*oid)) {
            txn.lock_relation(*table, lock_mode(*mode)).await?;
        }
        let found_at = self.database.version();
        let mut any = false;
        for (table, mode) in locks.iter().filter(|(oid, _)| is_child(*oid)) {
            txn.lock_relation(*table, lock_mode(*mode)).await?;
            any = true;
        }
        if any && version == found_at && self.database.version() != found_at {
            let mut parents: Vec<Oid> = Vec::new();
            for (oid, _) in locks {
                parents.extend(catalog.descendants(*oid));
            }
            parents.sort();
            parents.dedup();
            let family = |oid: Oid| (oid, catalog.children_of(oid).to_vec());
            let families = parents.into_iter().map(family);
            let families = families.filter(|(_, children)| !children.is_empty());
            *self.families.found.borrow_mut() = families.collect();
        }
        Ok(())
    }

    /// The definitions with the families that the statement goes by.
    pub(in crate::session) fn as_taken(&self, catalog: SharedCatalog) -> SharedCatalog {
        let found = self.families.found.borrow();
        if found.is_empty() && catalog.detaching().is_empty() {
            return catalog;
        }
        let mut families = found.clone();
        for family in catalog.families_with(&self.still_attached(&catalog)) {
            if families.iter().all(|(table, _)| *table != family.0) {
                families.push(family);
            }
        }
        if families.is_empty() {
            return catalog;
        }
        let mut made = self.families.made.borrow_mut();
        if let Some(made) = &*made
            && Rc::ptr_eq(&made.from, &catalog)
            && made.families == families
        {
            return made.catalog.clone();
        }
        let with = Rc::new(Arc::new(catalog.with_families(&families)));
        *made = Some(Made {
            from: catalog,
            families,
            catalog: with.clone(),
        });
        with
    }

    /// Partitions that are being detached, which the transaction's snapshot does not show yet.
    fn still_attached(&self, catalog: &Catalog) -> Vec<Oid> {
        let Some(transaction) = &self.transaction else {
            return Vec::new();
        };
        let unseen = |oid: &&Oid| {
            let by = catalog.table(**oid).and_then(|t| t.detaching);
            by.is_some_and(|xid| transaction.txn.overlooks(xid))
        };
        catalog.detaching().iter().filter(unseen).copied().collect()
    }
}

/// Whether a table is a descendant of one that is `wanted`.
fn is_below(table: Oid, catalog: &Catalog, wanted: &dyn Fn(Oid) -> bool) -> bool {
    let parents = catalog.table(table).map_or(&[][..], |t| &t.parents);
    let mut parents = parents.iter();
    parents.any(|parent| wanted(*parent) || is_below(*parent, catalog, wanted))
}
