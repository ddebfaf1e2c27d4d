//! The order in which the parts of one ALTER TABLE are done: PostgreSQL's passes, whatever order
//! they are written in.
//!
//! ```text
//! DROP  ALTER TYPE  ADD COLUMN  SET EXPRESSION | indexes anew | NOT NULL  keys  defaults  other constraints | the rest
//! ```
//! So a key can be replaced, and a constraint can name a column that the same statement adds.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::binder::ddl::alter::no_constraint;
use crate::binder::ddl::index_order::check_indexable;
use crate::binder::ddl::table::no_position;
use crate::command::{AlterTable, NewConstraint, NewConstraintKind};
use throng_catalog::{ConstraintKind, IndexDef, TableDef};
use throng_syntax::parse::ast::{AlterAction, TableConstraintKind as T};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::binder) enum Pass {
    Drop,
    AlterType,
    AddColumn,
    SetExpression,
    /// Indexes whose expressions use a column of another type now; no action is in it.
    OldIndex,
    ColumnAttributes,
    AddKey,
    /// Defaults and identity.
    Defaults,
    AddOther,
    Rest,
}

impl Pass {
    pub(in crate::binder) fn of(action: &AlterAction) -> Pass {
        match action {
            AlterAction::DropColumn { .. }
            | AlterAction::DropConstraint { .. }
            | AlterAction::DropNotNull(_)
            | AlterAction::DropExpression { .. }
            | AlterAction::DropIdentity { .. }
            | AlterAction::SetDefault { default: None, .. } => Pass::Drop,
            AlterAction::SetType { .. } => Pass::AlterType,
            AlterAction::AddColumn { .. } => Pass::AddColumn,
            AlterAction::SetExpression { .. } => Pass::SetExpression,
            AlterAction::SetNotNull(_) => Pass::ColumnAttributes,
            AlterAction::AddConstraint(constraint) => match constraint.kind {
                T::NotNull(_) => Pass::ColumnAttributes,
                T::PrimaryKey { .. } | T::Unique { .. } | T::Exclude(_) | T::UsingIndex { .. } => {
                    Pass::AddKey
                }
                T::Check(_) | T::ForeignKey { .. } => Pass::AddOther,
            },
            AlterAction::SetDefault { .. } | AlterAction::AddIdentity { .. } => Pass::Defaults,
            _ => Pass::Rest,
        }
    }
}

/// The actions by their passes; those of one pass stay in the order in which they are written.
pub(in crate::binder) fn in_passes(actions: &[AlterAction]) -> Vec<&AlterAction> {
    let mut sorted: Vec<&AlterAction> = actions.iter().collect();
    sorted.sort_by_key(|action| Pass::of(action));
    sorted
}

/// Columns whose types the statement changes, with the table as it was.
pub(in crate::binder) struct Retyped<'a> {
    before: &'a Arc<TableDef>,
    columns: Vec<u16>,
}

impl<'a> Retyped<'a> {
    pub(in crate::binder) fn new(before: &'a Arc<TableDef>) -> Retyped<'a> {
        Retyped {
            before,
            columns: Vec::new(),
        }
    }

    /// 0A000 for a column that has another type by now.
    pub(in crate::binder) fn must_be_first(
        &mut self,
        action: &AlterAction,
        now: &TableDef,
    ) -> Result<()> {
        let AlterAction::SetType { column, .. } = action else {
            return Ok(());
        };
        let Some(attnum) = now.attnum(column) else {
            return Ok(());
        };
        if self.columns.contains(&attnum)
            && now.column(attnum).shown_type() != self.before.column(attnum).shown_type()
        {
            let message = format!("cannot alter type of column \"{column}\" twice");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        self.columns.push(attnum);
        Ok(())
    }

    /// The indexes whose expressions or conditions use such a column, their texts bound anew;
    /// checks are bound to try them.
    ///
    /// # Errors
    /// 42883 and others for what does not go with the new type.
    pub(in crate::binder) fn take_indexes(
        &mut self,
        binder: &mut Binder<'_>,
        now: &TableDef,
        out: &mut Vec<AlterTable>,
    ) -> Result<()> {
        let columns = std::mem::take(&mut self.columns);
        if columns.is_empty() {
            return Ok(());
        }
        let now = Arc::new(now.clone());
        let is_dropped = |constraint: Oid| {
            out.iter().any(|action| match action {
                AlterTable::DropConstraint { constraint: c, .. } => *c == constraint,
                _ => false,
            })
        };
        // A check must mean something over the new types.
        let checks = binder.catalog().constraints_of(now.oid).iter().cloned();
        let checks: Vec<Oid> = checks
            .filter(|c| match &c.kind {
                ConstraintKind::Check { columns: used, .. } => {
                    used.iter().any(|a| columns.contains(a))
                        && used.iter().all(|a| !now.column(*a).dropped)
                }
                _ => false,
            })
            .map(|c| c.oid)
            .filter(|check| !is_dropped(*check))
            .collect();
        for check in checks {
            binder.stored_check(&now, check).map_err(no_position)?;
        }
        let kept = |i: &&Arc<IndexDef>| !i.constraint.is_some_and(is_dropped);
        for index in binder.catalog().indexes_of(now.oid).iter().filter(kept) {
            for (place, key) in index.columns.iter().enumerate() {
                if columns.contains(&key.attnum) && !now.column(key.attnum).dropped {
                    let class = index.terms.words_of(place).1;
                    let ty = now.column(key.attnum).ty.oid;
                    check_indexable(index.terms.method, class, ty)?;
                }
            }
        }
        let indexes = binder.catalog().indexes_of(now.oid).iter().cloned();
        let indexes: Vec<_> = indexes
            .filter(|i| i.terms.uses.iter().any(|a| columns.contains(a)))
            // One that uses a column that goes, goes with it.
            .filter(|i| i.terms.uses.iter().all(|a| !now.column(*a).dropped))
            .filter(|i| !i.constraint.is_some_and(is_dropped))
            .collect();
        for index in indexes {
            let terms = binder.terms_anew(&index, &now)?;
            out.push(AlterTable::IndexTerms {
                index: index.oid,
                terms,
            });
        }
        Ok(())
    }
}

pub(in crate::binder) fn is_foreign_key(action: &AlterTable) -> bool {
    match action {
        AlterTable::AddConstraint(new) => matches!(new.kind, NewConstraintKind::ForeignKey { .. }),
        _ => false,
    }
}

/// The constraint of that name that the statement adds.
pub(in crate::binder) fn added_constraint<'a>(
    name: &str,
    bound: &'a mut [AlterTable],
) -> Option<&'a mut NewConstraint> {
    let mut new = bound.iter_mut().flat_map(|action| match action {
        AlterTable::AddConstraint(new) => std::slice::from_mut(new),
        AlterTable::AddColumn { constraints, .. } => constraints,
        _ => &mut [],
    });
    new.find(|new| new.name.as_deref() == Some(name))
}

/// VALIDATE of what comes with the statement: it comes as one whose rows are looked at.
pub(in crate::binder) fn validate_new(
    new: &mut NewConstraint,
    name: &str,
    table: &str,
) -> Result<()> {
    match new.kind {
        NewConstraintKind::Check { .. } | NewConstraintKind::ForeignKey { .. } => {}
        _ => return Err(not_validated(name, table)),
    }
    if !new.deferral.is_enforced() {
        let message = "cannot validate NOT ENFORCED constraint";
        return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    new.not_valid = false;
    Ok(())
}

#[cold]
pub(in crate::binder) fn not_validated(name: &str, table: &str) -> Error {
    let message = format!("cannot validate constraint \"{name}\" of relation \"{table}\"");
    Error::new(state::WRONG_OBJECT_TYPE, message)
        .detail("This operation is not supported for this type of constraint.")
}

impl Binder<'_> {
    /// A constraint of the table that no earlier part of the statement drops.
    pub(in crate::binder) fn constraint_that_stays(
        &self,
        table: &TableDef,
        name: &str,
        bound: &[AlterTable],
    ) -> Result<Oid> {
        let found = self.table_constraint_named(table, name)?;
        let drops = |action: &AlterTable| match action {
            AlterTable::DropConstraint { constraint, .. } => *constraint == found,
            _ => false,
        };
        match bound.iter().any(drops) {
            true => Err(no_constraint(table, name)),
            false => Ok(found),
        }
    }

    /// 22023 for another type of an identity column, whatever else is done to the column.
    pub(in crate::binder) fn identities_stay_numbers(
        &mut self,
        table: &TableDef,
        actions: &[AlterAction],
    ) -> Result<()> {
        for action in actions {
            let AlterAction::SetType { column, ty, .. } = action else {
                continue;
            };
            let found = table.attnum(column).map(|attnum| table.column(attnum));
            if found.is_some_and(|column| column.identity.is_some()) {
                let to = self.declared_for_new(ty)?.ty;
                self.identity_options(to, &[])?;
            }
        }
        Ok(())
    }
}
