//! FOR UPDATE and its kin: which rows a query locks.
//!
//! The rows of a query in FROM, or of a view, are those of the tables that it reads: they are
//! locked there, under the same conditions as if the clause stood in it. What has no rows of a
//! table's is passed over, unless it is named.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::binder::query::scope::{NamedTable, Names};
use crate::binder::query::select::{has_window, lock_name};
use crate::tree::expr::RelId;
use crate::tree::query::{
    Body, Distinct, FromItem, LockWait, Query, Rel, RelKind, RowLock, RowLockStrength, Select,
};
use throng_catalog::Relation;
use throng_syntax::parse::ast;

/// What a clause asks for, and the query that it stands in.
#[derive(Clone, Copy)]
struct LockClause {
    strength: RowLockStrength,
    wait: LockWait,
    origin: RelId,
}

impl LockClause {
    fn of(self, rel: RelId) -> RowLock {
        RowLock {
            rel,
            strength: self.strength,
            wait: self.wait,
            origin: self.origin,
        }
    }
}

/// Adds a lock to others; of two of one entry the stronger one stays.
fn add(locks: &mut Vec<RowLock>, new: RowLock) {
    match locks.iter_mut().find(|l| l.rel == new.rel) {
        Some(lock) => {
            lock.strength = lock.strength.max(new.strength);
            lock.wait = lock.wait.max(new.wait);
        }
        None => locks.push(new),
    }
}

/// 0A000 for a query whose rows are not those of its tables.
fn check_lockable(query: &Query, select: &Select, strength: RowLockStrength) -> Result<()> {
    let refuse = |what: &str| {
        let message = format!("{} is not allowed with {what}", lock_name(strength));
        Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
    };
    if select.distinct != Distinct::No {
        return refuse("DISTINCT clause");
    }
    if !select.group_by.is_empty() {
        return refuse("GROUP BY clause");
    }
    if select.having.is_some() {
        return refuse("HAVING clause");
    }
    if select.grouped {
        return refuse("aggregate functions");
    }
    let windowed = select.targets.iter().any(|t| has_window(&t.expr))
        || query.order.iter().any(|k| has_window(&k.expr));
    match windowed {
        true => refuse("window functions"),
        false => Ok(()),
    }
}

impl Binder<'_> {
    /// The locks of a query's clauses, in the query and in those that it reads.
    pub(in crate::binder) fn locks(
        &mut self,
        ast: &ast::Query,
        query: &mut Query,
        names: &Names,
    ) -> Result<()> {
        let Some(first) = ast.locks.first() else {
            return Ok(());
        };
        let Body::Select(select) = &query.body else {
            return Ok(());
        };
        check_lockable(query, select, first.strength)?;
        self.check_kinds(ast, select, names)?;
        let mut locks: Vec<RowLock> = Vec::new();
        for clause in &ast.locks {
            let asked = LockClause {
                strength: clause.strength,
                wait: clause.wait,
                origin: query.output,
            };
            for table in &names.tables {
                if let (true, Some(rel)) = (clause.of.is_empty(), table.rel) {
                    add(&mut locks, asked.of(rel));
                }
            }
            for name in &clause.of {
                let found = names.tables.iter().find(|t| t.name == name.last());
                let Some(found) = found else {
                    let message = format!(
                        "relation \"{name}\" in {} clause not found in FROM clause",
                        lock_name(clause.strength)
                    );
                    return Err(Error::new(state::UNDEFINED_TABLE, message).position(name.pos + 1));
                };
                let refuse = |what: &str| {
                    let message =
                        format!("{} cannot be applied to {what}", lock_name(clause.strength));
                    Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(name.pos + 1))
                };
                match (found.rel, unlockable(found, &select.from)) {
                    (Some(rel), None) => add(&mut locks, asked.of(rel)),
                    (_, what) => return refuse(what.unwrap_or("a join")),
                }
            }
        }
        for lock in &locks {
            let of_rel = names.tables.iter().find(|t| t.rel == Some(lock.rel));
            if let Some(table) = of_rel.and_then(|t| t.table.as_ref()) {
                self.locks_rows_of(table);
                self.secure_lock(table, lock.rel, self.user)?;
            }
        }
        let defining = self.defining;
        let Body::Select(select) = &mut query.body else {
            return Ok(());
        };
        let mut own = Vec::new();
        let user = self.user;
        for lock in locks {
            let mut rels = select.from.iter_mut();
            match rels.find_map(|item| entry(item, lock.rel)) {
                Some(rel) => match &rel.kind {
                    RelKind::Table(_) => own.push(lock),
                    // As it is written.
                    RelKind::Subquery { .. } | RelKind::View { .. } if defining => own.push(lock),
                    _ => self.lock_inside(rel, lock, user)?,
                },
                None => own.push(lock),
            }
        }
        query.locks = own;
        Ok(())
    }

    /// 42809 for relations of kinds whose rows nobody locks.
    fn check_kinds(&self, ast: &ast::Query, select: &Select, names: &Names) -> Result<()> {
        let locked = |name: &str| {
            ast.locks
                .iter()
                .any(|l| l.of.is_empty() || l.of.iter().any(|n| n.last() == name))
        };
        for table in &names.tables {
            let kept = table.table.as_ref().filter(|def| def.is_materialized());
            if let Some(def) = kept.filter(|_| locked(&table.name)) {
                let message = format!("cannot lock rows in materialized view \"{}\"", def.name);
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
            }
        }
        let mut items = select.from.iter();
        let sequence = items.find_map(|item| locked_sequence(item, &locked));
        match sequence.and_then(|oid| self.catalog().sequence(oid)) {
            Some(def) => {
                let message = format!("cannot lock rows in sequence \"{}\"", def.name);
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            None => Ok(()),
        }
    }

    /// Locks the rows of the tables that an entry reads; `user`: who reads them.
    fn lock_inside(&mut self, rel: &mut Rel, lock: RowLock, user: Oid) -> Result<()> {
        let (query, user) = match &mut rel.kind {
            RelKind::Subquery { query, .. } => (query, user),
            RelKind::View { view, query } => {
                let relation = Relation::View(view.clone());
                self.locks_relation(&relation, user);
                (query, self.read_as(view))
            }
            _ => return Ok(()),
        };
        let name = lock_name(lock.strength);
        match &mut query.body {
            Body::Select(_) => {}
            Body::Values { .. } => return Ok(()),
            Body::SetOp { .. } => {
                let message = format!("{name} is not allowed with UNION/INTERSECT/EXCEPT");
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
        }
        if let Body::Select(select) = &query.body {
            check_lockable(query, select, lock.strength)?;
        }
        let Body::Select(select) = &mut query.body else {
            return Ok(());
        };
        let mut rels = Vec::new();
        select.from.iter().for_each(|item| item.rels(&mut rels));
        for id in rels {
            let mut items = select.from.iter_mut();
            let Some(rel) = items.find_map(|item| entry(item, id)) else {
                continue;
            };
            let lock = RowLock { rel: id, ..lock };
            match &rel.kind {
                RelKind::Table(table) => {
                    let relation = Relation::Table(table.clone());
                    self.locks_relation(&relation, user);
                    self.secure_lock(table, id, user)?;
                    add(&mut query.locks, lock);
                }
                _ => self.lock_inside(rel, lock, user)?,
            }
        }
        Ok(())
    }
}

/// What an entry is whose rows cannot be locked by its name.
fn unlockable(table: &NamedTable, from: &[FromItem]) -> Option<&'static str> {
    let rel = table.rel?;
    let kind = from.iter().find_map(|item| kind_of(item, rel))?;
    match kind {
        RelKind::Table(_) | RelKind::View { .. } | RelKind::Subquery { .. } => None,
        RelKind::Cte(_) | RelKind::WorkTable(_) => Some("a WITH query"),
        RelKind::Function { .. } | RelKind::Routine { .. } | RelKind::RowsFrom { .. } => {
            Some("a function")
        }
        RelKind::Virtual(_) => Some("a system catalog"),
    }
}

fn kind_of(item: &FromItem, id: RelId) -> Option<&RelKind> {
    match item {
        FromItem::Rel(rel) => (rel.id == id).then_some(&rel.kind),
        FromItem::Join { left, right, .. } => kind_of(left, id).or_else(|| kind_of(right, id)),
    }
}

fn entry(item: &mut FromItem, id: RelId) -> Option<&mut Rel> {
    match item {
        FromItem::Rel(rel) => (rel.id == id).then_some(&mut **rel),
        FromItem::Join { left, right, .. } => entry(left, id).or_else(|| entry(right, id)),
    }
}

/// A sequence among the items that a clause means.
fn locked_sequence(item: &FromItem, locked: &dyn Fn(&str) -> bool) -> Option<Oid> {
    match item {
        FromItem::Rel(rel) => rel.sequence().filter(|_| locked(&rel.alias)),
        FromItem::Join { left, right, .. } => {
            locked_sequence(left, locked).or_else(|| locked_sequence(right, locked))
        }
    }
}
