//! Exclusion constraints, keys WITHOUT OVERLAPS and what foreign keys with a PERIOD ask of them.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Oid, Result, oid};

use super::Run;
use crate::command::{NewConstraint, NewExclusion};
use throng_catalog::{
    Catalog, ConstraintKind, FkAction, IndexColumn, IndexDef, IndexTerms, TableDef,
    index_column_names,
};
use throng_values::func::resolve_operator;

/// What a key is beside its columns.
#[derive(Clone, Copy)]
pub(super) struct KeyForm {
    pub primary: bool,
    pub nulls_not_distinct: bool,
    /// Of the last column.
    pub without_overlaps: bool,
}

/// The operators of a key WITHOUT OVERLAPS: its last column's ranges do not overlap where all
/// others are equal.
pub(super) fn overlap_operators(table: &TableDef, key: &[u16]) -> Result<Vec<Oid>> {
    let last = key.len().saturating_sub(1);
    let operator = |(at, attnum): (usize, &u16)| {
        let ty = table.column(*attnum).ty.oid;
        let name = if at == last { "&&" } else { "=" };
        let found = resolve_operator(name, Some(ty), ty).map_err(|_| {
            let message = format!(
                "data type {} has no default operator class for access method \"gist\"",
                type_name(ty)
            );
            Error::new(state::UNDEFINED_OBJECT, message)
        });
        found.map(|found| found.operator.oid)
    };
    key.iter().enumerate().map(operator).collect()
}

/// 0A000 for an action of a foreign key with a PERIOD that would change rows.
pub(super) fn check_period_actions(update: FkAction, delete: FkAction) -> Result<()> {
    for (event, action) in [("UPDATE", update), ("DELETE", delete)] {
        if action != FkAction::NoAction {
            let message =
                format!("unsupported ON {event} action for foreign key constraint using PERIOD");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
    }
    Ok(())
}

/// The same sort of constraint as that of an index, kept by another one.
pub(super) fn kind_of_index(catalog: &Catalog, of: &IndexDef, index: Oid) -> ConstraintKind {
    let constraint = of.constraint.and_then(|oid| catalog.constraint(oid));
    match constraint.map(|c| &c.kind) {
        Some(ConstraintKind::Exclusion { .. }) => ConstraintKind::Exclusion { index },
        _ if of.primary => ConstraintKind::PrimaryKey { index },
        _ => ConstraintKind::Unique { index },
    }
}

impl Run<'_> {
    pub(super) fn exclude(
        &mut self,
        table: &TableDef,
        new: &NewConstraint,
        exclusion: &NewExclusion,
        fresh: bool,
    ) -> Result<()> {
        let attnum = |name: &String| {
            table.attnum(name).ok_or_else(|| {
                let message = format!("column \"{name}\" named in key does not exist");
                Error::new(state::UNDEFINED_COLUMN, message)
            })
        };
        let mut columns = Vec::with_capacity(exclusion.keys.len());
        for (name, column) in &exclusion.keys {
            let attnum = name.as_ref().map_or(Ok(0), attnum)?;
            columns.push(IndexColumn { attnum, ..*column });
        }
        let terms = IndexTerms {
            include: exclusion
                .include
                .iter()
                .map(attnum)
                .collect::<Result<_>>()?,
            uses: exclusion.uses.iter().map(attnum).collect::<Result<_>>()?,
            ..exclusion.terms.clone()
        };
        self.excludes_within_partitions(table, &columns, &terms)?;
        let names = index_column_names(&columns, &terms, table);
        let name = match &new.name {
            Some(name) => name.clone(),
            None => self.free_relation_name(table.schema, &table.name, &names.join("_"), "excl"),
        };
        let index = self.host.next_oid();
        let kind = ConstraintKind::Exclusion { index };
        let how = (new.deferral, new.lineage);
        let constraint = self.put_constraint(table.oid, name.clone(), kind, true, how);
        self.edit.put(IndexDef {
            oid: index,
            schema: table.schema,
            name,
            table: table.oid,
            file: self.host.next_file(),
            columns,
            unique: false,
            primary: false,
            nulls_not_distinct: false,
            constraint: Some(constraint),
            options: exclusion.options.clone(),
            parent: None,
            clustered: false,
            terms,
            targets: vec![],
        });
        self.fill_index(index, fresh, new.only)
    }

    /// Rows in different partitions are never compared: what divides them must be among the keys
    /// that are equal.
    fn excludes_within_partitions(
        &self,
        table: &TableDef,
        columns: &[IndexColumn],
        terms: &IndexTerms,
    ) -> Result<()> {
        let Some(partitioned) = &table.partitioned else {
            return Ok(());
        };
        let key: Vec<u16> = columns.iter().map(|c| c.attnum).collect();
        self.key_covers_partitions(table, &key, "EXCLUDE")?;
        for part in &partitioned.parts {
            let at = key.iter().position(|attnum| *attnum == part.attnum);
            let op = at.and_then(|at| terms.exclusion.get(at));
            let is_equal = op
                .and_then(|op| throng_values::func::operator_by_oid(*op))
                .is_some_and(|op| op.strategy == Some(throng_values::func::Strategy::Equal));
            if !is_equal {
                let column = &table.column(part.attnum).name;
                let message = format!(
                    "cannot match partition key to index on column \"{column}\" using non-equal operator \"{}\"",
                    op.and_then(|op| throng_values::func::operator_by_oid(*op))
                        .map_or("", |op| op.name)
                );
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
        }
        Ok(())
    }

    /// Whether a foreign key has a PERIOD; 42830 where one side has one alone. `implied`: the
    /// primary key is referenced, which tells whether it has one.
    pub(super) fn check_periods(
        &self,
        target: &Arc<TableDef>,
        (referencing, referenced): (bool, bool),
        implied: bool,
    ) -> Result<bool> {
        let primary = self.catalog().primary_key(target.oid);
        let temporal = primary.is_some_and(|key| self.catalog().is_without_overlaps(key));
        let referenced = if implied { temporal } else { referenced };
        let sides = match (referencing, referenced) {
            (true, false) => ("referencing", "referenced"),
            (false, true) => ("referenced", "referencing"),
            (both, _) => return Ok(both),
        };
        let message = format!(
            "foreign key uses PERIOD on the {} table but not the {} table",
            sides.0, sides.1
        );
        Err(Error::new(state::INVALID_FOREIGN_KEY, message))
    }

    /// 42830 where the columns are those of a key WITHOUT OVERLAPS, which only a PERIOD may point
    /// at.
    pub(super) fn must_use_period(&self, target: &TableDef, columns: &[u16]) -> Result<()> {
        let mut indexes = self.catalog().indexes_of(target.oid).iter();
        let is_it = |index: &&Arc<IndexDef>| {
            let mut key: Vec<u16> = index.columns.iter().map(|c| c.attnum).collect();
            key.sort_unstable();
            key == columns && self.catalog().is_without_overlaps(index)
        };
        if indexes.any(|index| is_it(&index)) {
            let message =
                "foreign key must use PERIOD when referencing a primary key using WITHOUT OVERLAPS";
            return Err(Error::new(state::INVALID_FOREIGN_KEY, message));
        }
        Ok(())
    }
}

/// The operator that tells whether a pair of columns of a foreign key fits together.
pub(super) fn key_operator(period: bool, referenced: Oid, referencing: Oid) -> bool {
    let name = if period { "&&" } else { "=" };
    resolve_operator(name, Some(referenced), referencing).is_ok_and(|op| op.ret == oid::BOOL)
}
