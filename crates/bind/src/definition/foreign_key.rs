//! Foreign keys as constraints that are added to a table.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result};

use super::exclusion::{check_period_actions, key_operator};
use super::{Run, Work};
use crate::command::{NewConstraint, NewConstraintKind};
use throng_catalog::{ConstraintKind, ForeignKey, TableDef};

impl Run<'_> {
    pub(super) fn foreign_key(
        &mut self,
        table: &TableDef,
        new: &NewConstraint,
        fresh: bool,
    ) -> Result<()> {
        let NewConstraintKind::ForeignKey {
            columns,
            ref_table,
            ref_columns,
            on_update,
            on_delete,
            match_full,
            periods,
        } = &new.kind
        else {
            return Err(Error::internal("not a foreign key"));
        };
        let key = self.key_columns(table, columns)?;
        let target = match ref_table {
            Some(oid) => self.table(*oid)?,
            None => self.table(table.oid)?,
        };
        let period = self.check_periods(&target, *periods, ref_columns.is_empty())?;
        let (ref_columns, ref_index) =
            self.referenced_key(&target, ref_columns, key.len(), period)?;
        if period {
            check_period_actions(*on_update, *on_delete)?;
        }
        if self.catalog().is_deferrable(ref_index) {
            let message = format!(
                "cannot use a deferrable unique constraint for referenced table \"{}\"",
                target.name
            );
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        let name = match &new.name {
            Some(name) => name.clone(),
            None => {
                let part = columns.join("_");
                self.free_constraint_name(table.schema, &table.name, &part, "fkey")
            }
        };
        for (at, (attnum, other)) in key.iter().zip(&ref_columns).enumerate() {
            let (a, b) = (table.column(*attnum), target.column(*other));
            let period = period && at + 1 == key.len();
            if !key_operator(period, b.ty.oid, a.ty.oid) {
                let message = format!("foreign key constraint \"{name}\" cannot be implemented");
                return Err(Error::new(state::DATATYPE_MISMATCH, message).detail(format!(
                    "Key columns \"{}\" of the referencing table and \"{}\" of the referenced table are of incompatible types: {} and {}.",
                    a.name,
                    b.name,
                    type_name(a.ty.oid),
                    type_name(b.ty.oid)
                )));
            }
        }
        if target.oid != table.oid {
            self.refer_to(target.oid);
        }
        let kind = ConstraintKind::ForeignKey(ForeignKey {
            columns: key,
            ref_table: target.oid,
            ref_columns,
            ref_index,
            period,
            on_update: *on_update,
            on_delete: *on_delete,
            match_full: *match_full,
        });
        let valid = (fresh || !new.not_valid) && new.deferral.is_enforced();
        let how = (new.deferral, new.lineage);
        let constraint = self.put_constraint(table.oid, name, kind, valid, how);
        if !fresh && new.is_checked() {
            self.work(Work::CheckForeignKey { constraint });
        }
        self.spread_foreign_key(constraint, fresh)
    }

    /// The referenced columns, in the order written, and the unique index over them.
    fn referenced_key(
        &self,
        target: &Arc<TableDef>,
        names: &[String],
        wanted: usize,
        period: bool,
    ) -> Result<(Vec<u16>, Oid)> {
        let disagree = || {
            let message = "number of referencing and referenced columns for foreign key disagree";
            Err(Error::new(state::INVALID_FOREIGN_KEY, message))
        };
        if names.is_empty() {
            let key = self.catalog().primary_key(target.oid);
            let Some(index) = key.filter(|key| self.catalog().is_valid(key)) else {
                let message = format!(
                    "there is no primary key for referenced table \"{}\"",
                    target.name
                );
                return Err(Error::new(state::UNDEFINED_OBJECT, message));
            };
            if index.columns.len() != wanted {
                return disagree();
            }
            return Ok((index.columns.iter().map(|c| c.attnum).collect(), index.oid));
        }
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let attnum = target.attnum(name).ok_or_else(|| {
                let message = format!(
                    "column \"{name}\" referenced in foreign key constraint does not exist"
                );
                Error::new(state::UNDEFINED_COLUMN, message)
            })?;
            columns.push(attnum);
        }
        if columns.len() != wanted {
            return disagree();
        }
        let mut sorted = columns.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            let message = "foreign key referenced-columns list must not contain duplicates";
            return Err(Error::new(state::INVALID_FOREIGN_KEY, message));
        }
        let found = self.catalog().indexes_of(target.oid).iter().find(|index| {
            let mut key: Vec<u16> = index.columns.iter().map(|c| c.attnum).collect();
            key.sort_unstable();
            let is_key = match period {
                true => self.catalog().is_without_overlaps(index),
                false => index.unique,
            };
            // The period is the last column of both.
            let last = index.columns.last().map(|c| c.attnum);
            let ends_alike = !period || last == columns.last().copied();
            let is_whole = index.is_plain() && key == sorted && ends_alike;
            is_key && is_whole && self.catalog().is_valid(index)
        });
        match found {
            Some(index) => Ok((columns, index.oid)),
            None => {
                self.must_use_period(target, &sorted)?;
                let message = format!(
                    "there is no unique constraint matching given keys for referenced table \"{}\"",
                    target.name
                );
                Err(Error::new(state::INVALID_FOREIGN_KEY, message))
            }
        }
    }
}
