//! ALTER TABLE, ALTER SEQUENCE, RENAME, SET SCHEMA, OWNER TO.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Datum, Error, Oid, Result, SqlType, oid};

use super::create::{exists, set_sequence};
use super::names::rename_in_text;
use super::password::is_md5;
use super::rows::slots_replaced;
use super::{Run, Work};
use crate::command::{AlterTable, NewColumn, SequenceOptions, SetExpression, Target, TargetKind};
use crate::tree::expr::Expr;
use throng_catalog::{
    ConstraintDef, ConstraintKind, DatabaseDef, ForeignKey, IndexDef, Object, Relation, RoleDef,
    SchemaDef, SequenceDef, TableDef, ViewDef, builtin,
};
use throng_values::func::{CastContext, Volatility, find_cast, functions_named};

/// What an ALTER TABLE does to the rows, gathered so that they are copied once.
pub(super) struct Rows {
    pub old: Arc<TableDef>,
    /// The new row's columns over the old row.
    pub values: Vec<Expr>,
    pub copy: bool,
    /// Indexes whose terms follow the columns' new types.
    pub reindexed: Vec<Oid>,
}

impl Rows {
    /// An expression over the row as it is by now, over the old row.
    fn over_new(&self, expr: &Expr) -> Expr {
        slots_replaced(expr.clone(), &mut |slot| {
            self.values.get(slot as usize).cloned()
        })
    }

    /// An expression over the old row, and over columns that this statement added.
    fn over_old(&self, expr: &Expr) -> Expr {
        let known = self.old.columns.len() as u32;
        slots_replaced(expr.clone(), &mut |slot| {
            (slot >= known).then(|| self.values[slot as usize].clone())
        })
    }
}

fn reindexed(action: &AlterTable) -> Option<Oid> {
    match action {
        AlterTable::IndexTerms { index, .. } => Some(*index),
        _ => None,
    }
}

#[cold]
fn other_name(table: &TableDef, attnum: u16, name: &str, known: &str) -> Error {
    let message = format!(
        "cannot create not-null constraint \"{name}\" on column \"{}\" of table \"{}\"",
        table.column(attnum).name,
        table.name
    );
    let detail = format!("A not-null constraint named \"{known}\" already exists for this column.");
    Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message).detail(detail)
}

impl Run<'_> {
    pub(super) fn alter_table(&mut self, oid: Oid, actions: &[AlterTable]) -> Result<()> {
        let old = self.table(oid)?;
        let before = old.clone();
        self.rows_may_change(&old, actions)?;
        let slot = |(i, c): (usize, &throng_catalog::ColumnDef)| Expr::Slot(i as u32, c.ty);
        let values = old.columns.iter().enumerate().map(slot).collect();
        let mut rows = Rows {
            old,
            values,
            copy: false,
            reindexed: actions.iter().filter_map(reindexed).collect(),
        };
        // Checks of rows come after they have been copied.
        let mut checks = Vec::new();
        for action in actions {
            let before = self.out.work.len();
            self.alter_action(oid, action, &mut rows)?;
            let later = |w: &Work| {
                matches!(
                    w,
                    Work::CheckNotNull { .. }
                        | Work::CheckRows { .. }
                        | Work::CheckForeignKey { .. }
                        | Work::CreateIndex { .. }
                )
            };
            let new: Vec<Work> = self.out.work.drain(before..).collect();
            for work in new {
                if later(&work) {
                    checks.push(work)
                } else {
                    self.out.work.push(work)
                }
            }
        }
        if rows.copy {
            self.copy_rows(oid, rows, &checks)?;
        }
        self.settle_not_null_names(oid, Some(&before))?;
        // Nothing to check of what a later action dropped again.
        let alive = |w: &Work| match w {
            Work::CreateIndex { index, .. } => self.catalog().index(*index).is_some(),
            Work::CheckForeignKey { constraint } => {
                self.catalog().constraint(*constraint).is_some()
            }
            Work::CheckNotNull { table, attnum, .. } => self
                .catalog()
                .table(*table)
                .is_some_and(|t| !t.column(*attnum).dropped),
            _ => true,
        };
        let checks: Vec<Work> = checks.into_iter().filter(alive).collect();
        self.out.work.extend(checks);
        Ok(())
    }

    /// Rows that lie in other tables' columns as values do not change with their table.
    fn rows_may_change(&self, table: &TableDef, actions: &[AlterTable]) -> Result<()> {
        let changes = |a: &AlterTable| match a {
            AlterTable::SetExpression(set) => set.generated.stored,
            a => matches!(
                a,
                AlterTable::AddColumn { .. }
                    | AlterTable::DropColumn { .. }
                    | AlterTable::SetType { .. }
            ),
        };
        let row_type = made::composite_oid(table.oid);
        let Some(ty) = row_type.filter(|_| actions.iter().any(changes)) else {
            return Ok(());
        };
        match self.column_of(ty, 0) {
            None => Ok(()),
            Some(user) => {
                let name = &table.name;
                let message = format!(
                    "cannot alter table \"{name}\" because column {user} uses its row type"
                );
                Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    fn alter_action(&mut self, oid: Oid, action: &AlterTable, rows: &mut Rows) -> Result<()> {
        let mut def = (*self.table(oid)?).clone();
        let index = |attnum: u16| attnum as usize - 1;
        match action {
            AlterTable::AddColumn {
                column,
                constraints,
            } => {
                self.add_column(def, column, rows)?;
                for constraint in constraints {
                    self.add_constraint(oid, constraint, false)?;
                }
                return Ok(());
            }
            AlterTable::DropColumn { attnum, cascade } => {
                return self.drop_column(oid, *attnum, *cascade);
            }
            AlterTable::SetDefault {
                attnum,
                default,
                sequence,
            } => {
                let column = &mut def.columns[index(*attnum)];
                column.default = default.clone();
                column.sequence = *sequence;
            }
            AlterTable::SetNotNull {
                attnum,
                value,
                name,
                no_inherit,
            } => {
                if def.columns[index(*attnum)].not_null {
                    let known = def.not_null_name(&def.columns[index(*attnum)]);
                    if let Some(name) = name.as_ref().filter(|name| **name != known) {
                        return Err(other_name(&def, *attnum, name, &known));
                    }
                } else {
                    let made = def.not_null_name(&def.columns[index(*attnum)]);
                    let column = &mut def.columns[index(*attnum)];
                    column.not_null = true;
                    column.not_null_name = name.clone().filter(|name| *name != made);
                    column.not_null_alone = *no_inherit;
                    self.work(Work::CheckNotNull {
                        table: oid,
                        attnum: *attnum,
                        value: value.clone(),
                    });
                }
            }
            AlterTable::DropNotNull(attnum) => {
                let in_key = self
                    .catalog()
                    .primary_key(oid)
                    .is_some_and(|key| key.columns.iter().any(|c| c.attnum == *attnum));
                let column = &mut def.columns[index(*attnum)];
                if in_key {
                    let message = format!("column \"{}\" is in a primary key", column.name);
                    return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
                }
                column.drop_not_null();
            }
            AlterTable::RenameNotNull { attnum, name } => {
                let taken = self.catalog().constraint_by_name(oid, name).is_some()
                    || def.not_null_named(name).is_some();
                if taken {
                    let message = format!(
                        "constraint \"{name}\" for relation \"{}\" already exists",
                        def.name
                    );
                    return Err(Error::new(state::DUPLICATE_OBJECT, message));
                }
                def.columns[index(*attnum)].not_null_name = Some(name.clone());
            }
            AlterTable::SetType {
                attnum,
                ty,
                domain,
                collation,
                using,
                same_bytes,
            } => {
                self.views_keep_type(oid, *attnum)?;
                self.policies_keep_type(oid, *attnum)?;
                let indexes = self.catalog().indexes_of(oid);
                let stays = |i: &IndexDef| {
                    i.terms.uses.contains(attnum) && !rows.reindexed.contains(&i.oid)
                };
                if indexes.iter().any(|i| stays(i)) {
                    let what = "the type of a column that an index's expression or condition uses";
                    return Err(Error::unsupported(what));
                }
                let column = &mut def.columns[index(*attnum)];
                column.ty = *ty;
                column.domain = *domain;
                column.collation = collation.clone();
                let identity = column.sequence.filter(|_| column.identity.is_some());
                rows.values[index(*attnum)] = rows.over_old(using);
                rows.copy |= !same_bytes;
                if let Some(sequence) = identity {
                    let changes = SequenceOptions {
                        ty: Some(ty.oid),
                        ..SequenceOptions::default()
                    };
                    self.alter_sequence(sequence, &changes, None)?;
                }
            }
            AlterTable::IndexTerms { index, terms } => {
                if let Some(found) = self.catalog().index(*index) {
                    let mut index = (**found).clone();
                    index.terms = terms.clone();
                    self.edit.put(index);
                    rows.copy = true;
                }
                return Ok(());
            }
            AlterTable::AddIdentity {
                attnum,
                identity,
                options,
            } => {
                def.columns[index(*attnum)].identity = Some(*identity);
                let sequence = self.column_sequence(&def, *attnum, options)?;
                def.columns[index(*attnum)].sequence = Some(sequence);
            }
            AlterTable::SetIdentity {
                attnum,
                identity,
                options,
            } => {
                let column = &mut def.columns[index(*attnum)];
                column.identity = identity.or(column.identity);
                let sequence = column.sequence;
                self.put_table(def);
                if let Some(sequence) = sequence {
                    self.alter_sequence(sequence, options, None)?;
                }
                return Ok(());
            }
            AlterTable::DropIdentity { attnum } => {
                let column = &mut def.columns[index(*attnum)];
                column.identity = None;
                let sequence = column.sequence.take();
                self.put_table(def);
                if let Some(sequence) = sequence {
                    self.remove_sequence(sequence);
                }
                return Ok(());
            }
            AlterTable::SetExpression(set) => {
                let column = &mut def.columns[index(set.attnum)];
                column.generated = Some(set.generated.clone());
                let not_null = column.not_null;
                if set.generated.stored {
                    column.missing = None;
                    rows.values[index(set.attnum)] = rows.over_new(&set.value);
                    rows.copy = true;
                } else if not_null {
                    self.work(Work::CheckNotNull {
                        table: oid,
                        attnum: set.attnum,
                        value: Some(set.value.clone()),
                    });
                }
                self.put_table(def);
                self.check_again(oid, set);
                return Ok(());
            }
            AlterTable::DropExpression { attnum } => def.columns[index(*attnum)].generated = None,
            AlterTable::AddConstraint(new) => return self.add_constraint(oid, new, false),
            AlterTable::DropConstraint {
                constraint,
                cascade,
            } => {
                let target = Target {
                    kind: TargetKind::Constraint,
                    oid: *constraint,
                };
                return self.drop_targets(&[target], *cascade);
            }
            AlterTable::ValidateConstraint { constraint, check } => {
                return self.validate(oid, *constraint, check.as_ref());
            }
            AlterTable::AlterConstraint {
                constraint,
                deferral,
            } => {
                return self.alter_deferral(*constraint, *deferral);
            }
            AlterTable::SetOptions(options) => {
                for (name, value) in options {
                    def.options.retain(|(n, _)| n != name);
                    def.options.push((name.clone(), value.clone()));
                }
            }
            AlterTable::ResetOptions(names) => {
                def.options.retain(|(n, _)| !names.contains(n));
            }
            AlterTable::SetPersistence(persistence) => def.persistence = *persistence,
            AlterTable::SetOwner(owner) => {
                return self.set_owner(
                    Target {
                        kind: TargetKind::Table,
                        oid,
                    },
                    *owner,
                );
            }
            AlterTable::Mark(mark) => return self.mark(def, mark),
            AlterTable::EnableTriggers(change) => {
                self.enable_triggers(def.oid, change);
                return Ok(());
            }
            AlterTable::RowSecurity(state) => def.row_security = *state,
            AlterTable::SetStatistics { attnum, target } => {
                def.columns[index(*attnum)].statistics_target = *target;
            }
            AlterTable::SetColumnOptions { attnum, options } => {
                let kept = &mut def.columns[index(*attnum)].options;
                kept.retain(|(known, _)| !options.iter().any(|(name, _)| name == known));
                kept.extend(options.iter().cloned());
            }
            AlterTable::ResetColumnOptions { attnum, names } => {
                let kept = &mut def.columns[index(*attnum)].options;
                kept.retain(|(known, _)| !names.contains(known));
            }
            AlterTable::Inherit(_) | AlterTable::NoInherit(_) => {}
        }
        self.put_table(def);
        Ok(())
    }

    /// What must hold of a column whose values are others now.
    fn check_again(&mut self, table: Oid, set: &SetExpression) {
        for (name, expr) in &set.checks {
            self.work(Work::CheckRows {
                table,
                name: name.clone(),
                expr: expr.clone(),
            });
        }
        for constraint in self.catalog().constraints_of(table).to_vec() {
            let uses = |key: &ForeignKey| key.columns.contains(&set.attnum);
            if constraint.foreign_key().is_some_and(uses) {
                self.work(Work::CheckForeignKey {
                    constraint: constraint.oid,
                });
            }
        }
    }

    /// Rows that are there get the default: as a value kept beside the table where it is the same
    /// for all of them, else by copying.
    fn add_column(&mut self, mut def: TableDef, new: &NewColumn, rows: &mut Rows) -> Result<()> {
        let (oid, attnum) = (def.oid, def.columns.len() as u16 + 1);
        let mut column = new.def.clone();
        let mut value = new.default.clone();
        def.columns.push(column.clone());
        if let Some(options) = &new.sequence {
            self.put_table(def.clone());
            let sequence = self.column_sequence(&def, attnum, options)?;
            column.sequence = Some(sequence);
            value = Some(next_value(sequence, column.ty)?);
        }
        match &value {
            None if column.is_stored() => {
                rows.copy = true;
                value = new.generated.as_ref().map(|e| rows.over_new(e));
            }
            None => {}
            // A domain asks of rows that are there, not of those that are not.
            // Users' functions are called where rows are copied.
            Some(expr)
                if is_volatile(expr)
                    || expr.any(&mut |e| matches!(e, Expr::Routine(_)))
                    || matches!(expr, Expr::ToDomain(..)) =>
            {
                rows.copy = true;
            }
            Some(expr) => column.missing = self.host.evaluate(expr)?,
        }
        let empty = value.is_none() || value.as_ref().is_some_and(Expr::is_null_const);
        if column.not_null && empty {
            let value = new.generated.clone().filter(|_| column.is_virtual());
            self.work(Work::CheckNotNull {
                table: oid,
                attnum,
                value,
            });
        }
        rows.values.push(value.unwrap_or(Expr::null(column.ty)));
        if let Some(last) = def.columns.last_mut() {
            *last = column;
        }
        self.put_table(def);
        Ok(())
    }

    fn validate(&mut self, table: Oid, oid: Oid, check: Option<&Expr>) -> Result<()> {
        let Some(constraint) = self.catalog().constraint(oid).cloned() else {
            return Ok(());
        };
        if !constraint.deferral.is_enforced() {
            let message = "cannot validate NOT ENFORCED constraint";
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        if constraint.validated {
            return Ok(());
        }
        self.edit.put(ConstraintDef {
            validated: true,
            ..(*constraint).clone()
        });
        match (&constraint.kind, check) {
            (ConstraintKind::ForeignKey(_), _) => {
                self.work(Work::CheckForeignKey { constraint: oid })
            }
            (_, Some(expr)) => {
                let (name, expr) = (constraint.name.clone(), expr.clone());
                self.work(Work::CheckRows { table, name, expr });
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn alter_sequence(
        &mut self,
        oid: Oid,
        changes: &SequenceOptions,
        owned_by: Option<&Option<(Oid, u16)>>,
    ) -> Result<()> {
        let Some(def) = self.catalog().sequence(oid) else {
            return Err(Error::new(
                state::UNDEFINED_TABLE,
                "sequence does not exist",
            ));
        };
        let mut def: SequenceDef = (**def).clone();
        if let Some(owner) = owned_by {
            if def.identity {
                let message = "cannot change ownership of identity sequence";
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            if let Some((table, _)) = owner {
                let table = self.table(*table)?;
                if table.schema != def.schema {
                    let message = "sequence must be in same schema as table it is linked to";
                    return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
                }
            }
            def.owned_by = *owner;
        }
        set_sequence(&mut def, changes, false)?;
        if let Some(restart) = changes.restart {
            let value = restart.unwrap_or(def.start);
            self.restart_sequence(def, value);
            return Ok(());
        }
        self.edit.put(def);
        Ok(())
    }

    /// A new file for a sequence: who rolls back has the old one with its counter.
    pub(super) fn restart_sequence(&mut self, def: SequenceDef, value: i64) {
        let (sequence, old) = (def.oid, def.file);
        let file = self.host.next_file();
        self.edit.put(SequenceDef { file, ..def });
        self.work(Work::DropFile(old));
        self.work(Work::CreateSequence(sequence));
        self.work(Work::RestartSequence { sequence, value });
    }

    pub(super) fn name_is_free(&self, schema: Oid, name: &str) -> Result<()> {
        match self.catalog().relation_in(schema, name) {
            Some(_) => Err(exists(name)),
            None => Ok(()),
        }
    }

    pub(super) fn rename(&mut self, target: Target, name: &str) -> Result<()> {
        let missing = || Err(Error::new(state::UNDEFINED_OBJECT, "object does not exist"));
        match target.kind {
            TargetKind::Operator | TargetKind::Cast | TargetKind::Extension => return missing(),
            TargetKind::Language | TargetKind::BuiltIn(_) => return missing(),
            TargetKind::Table | TargetKind::MaterializedView => {
                let mut def = (*self.table(target.oid)?).clone();
                self.name_is_free(def.schema, name)?;
                self.type_name_is_free(def.schema, name)?;
                def.keep_not_null_names();
                let old = std::mem::replace(&mut def.name, name.to_string());
                rename_in_generated(&mut def, (&old, name), ("", ""));
                self.put_table(def);
                self.rename_in_checks(target.oid, (&old, name), ("", ""));
            }
            TargetKind::Type | TargetKind::Domain => self.rename_type(target.oid, name)?,
            TargetKind::Routine(_) => self.rename_routine(target.oid, name)?,
            TargetKind::Trigger => self.rename_trigger(target.oid, name)?,
            TargetKind::Policy => self.rename_policy(target.oid, name)?,
            TargetKind::View => {
                let view = (*self.view(target.oid)?).clone();
                self.name_is_free(view.schema, name)?;
                self.type_name_is_free(view.schema, name)?;
                self.edit.put(ViewDef {
                    name: name.to_string(),
                    ..view
                });
            }
            TargetKind::ViewColumn(attnum) => {
                let mut view = (*self.view(target.oid)?).clone();
                if view.columns.iter().any(|c| c.name == name) {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" already exists",
                        view.name
                    );
                    return Err(Error::new(state::DUPLICATE_COLUMN, message));
                }
                view.columns[attnum as usize - 1].name = name.to_string();
                self.edit.put(view);
            }
            TargetKind::Index => {
                let Some(def) = self.catalog().index(target.oid).cloned() else {
                    return missing();
                };
                self.name_is_free(def.schema, name)?;
                self.rename_index(&def, name);
            }
            TargetKind::Sequence => {
                let Some(def) = self.catalog().sequence(target.oid).cloned() else {
                    return missing();
                };
                self.name_is_free(def.schema, name)?;
                self.edit.put(SequenceDef {
                    name: name.to_string(),
                    ..(*def).clone()
                });
            }
            TargetKind::Schema => {
                let Some(def) = self.catalog().schema(target.oid).cloned() else {
                    return missing();
                };
                if !self.catalog().is_schema_name_free(name) {
                    let message = format!("schema \"{name}\" already exists");
                    return Err(Error::new(state::DUPLICATE_SCHEMA, message));
                }
                if name.starts_with("pg_") {
                    let message = format!("unacceptable schema name \"{name}\"");
                    return Err(Error::new(state::RESERVED_NAME, message)
                        .detail("The prefix \"pg_\" is reserved for system schemas."));
                }
                self.edit.put(SchemaDef {
                    name: name.to_string(),
                    ..(*def).clone()
                });
            }
            TargetKind::Role => {
                let Some(def) = self.catalog().role(target.oid).cloned() else {
                    return missing();
                };
                if self.catalog().role_by_name(name).is_some() {
                    let message = format!("role \"{name}\" already exists");
                    return Err(Error::new(state::DUPLICATE_OBJECT, message));
                }
                let mut def = RoleDef {
                    name: name.to_string(),
                    ..(*def).clone()
                };
                // The name is part of what was hashed.
                if def.password.as_deref().is_some_and(is_md5) {
                    let message = "MD5 password cleared because of role rename";
                    self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                    def.password = None;
                }
                self.edit.put(def);
            }
            TargetKind::Constraint => self.rename_constraint(target.oid, name)?,
            TargetKind::Column(attnum) => {
                let mut def = (*self.table(target.oid)?).clone();
                if def.attnum(name).is_some() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" already exists",
                        def.name
                    );
                    return Err(Error::new(state::DUPLICATE_COLUMN, message));
                }
                def.keep_not_null_names();
                let column = &mut def.columns[attnum as usize - 1];
                let old = std::mem::replace(&mut column.name, name.to_string());
                let table = def.name.clone();
                rename_in_generated(&mut def, (&table, &table), (&old, name));
                self.put_table(def);
                self.rename_in_checks(target.oid, (&table, &table), (&old, name));
                self.rename_in_conditions(target.oid, (&old, name));
            }
            TargetKind::Database => self.rename_database(target.oid, name)?,
        }
        Ok(())
    }

    pub(super) fn alter_index(
        &mut self,
        oid: Oid,
        options: &[(String, String)],
        targets: &[(u16, Option<i16>)],
    ) -> Result<()> {
        let Some(def) = self.catalog().index(oid) else {
            let message = format!("relation with OID {oid} does not exist");
            return Err(Error::new(state::UNDEFINED_TABLE, message));
        };
        let mut def = (**def).clone();
        def.options = options.to_vec();
        for (number, target) in targets {
            def.targets.retain(|(known, _)| known != number);
            def.targets.extend(target.map(|target| (*number, target)));
        }
        self.touch(def.table);
        self.edit.put(def);
        Ok(())
    }

    fn rename_index(&mut self, def: &IndexDef, name: &str) {
        self.edit.put(IndexDef {
            name: name.to_string(),
            ..def.clone()
        });
        let owner = def
            .constraint
            .and_then(|oid| self.catalog().constraint(oid))
            .cloned();
        if let Some(constraint) = owner {
            self.edit.put(ConstraintDef {
                name: name.to_string(),
                ..(*constraint).clone()
            });
        }
    }

    fn rename_constraint(&mut self, oid: Oid, name: &str) -> Result<()> {
        let Some(def) = self.catalog().constraint(oid).cloned() else {
            return Ok(());
        };
        let table = self.table(def.table)?;
        if self.catalog().constraint_by_name(table.oid, name).is_some() {
            let message = format!(
                "constraint \"{name}\" for relation \"{}\" already exists",
                table.name
            );
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        match def
            .index()
            .and_then(|index| self.catalog().index(index))
            .cloned()
        {
            Some(index) => {
                self.name_is_free(index.schema, name)?;
                self.rename_index(&index, name);
            }
            None => self.edit.put(ConstraintDef {
                name: name.to_string(),
                ..(*def).clone()
            }),
        }
        Ok(())
    }

    pub(super) fn set_schema(&mut self, target: Target, schema: Oid) -> Result<()> {
        if matches!(target.kind, TargetKind::Type | TargetKind::Domain) {
            return self.move_type(target.oid, schema);
        }
        if matches!(target.kind, TargetKind::Routine(_) | TargetKind::Operator) {
            return self.move_routine(target.oid, schema);
        }
        let Some(relation) = self.catalog().relation(target.oid) else {
            return Ok(());
        };
        if relation.schema() == schema {
            return Ok(());
        }
        let name = relation.name().to_string();
        let taken = |run: &Self, name: &str| {
            if run.catalog().relation_in(schema, name).is_none() {
                return Ok(());
            }
            let into = run.catalog().schema(schema).map_or("", |s| &s.name);
            let message = format!("relation \"{name}\" already exists in schema \"{into}\"");
            Err(Error::new(state::DUPLICATE_TABLE, message))
        };
        taken(self, &name)?;
        if let Relation::Table(_) | Relation::View(_) = relation
            && let Some(ty) = made::composite_oid(relation.oid())
        {
            self.types_may_move(ty, &name, schema)?;
        }
        match relation {
            Relation::Table(def) => {
                for index in self.catalog().indexes_of(def.oid).to_vec() {
                    taken(self, &index.name)?;
                    self.edit.put(IndexDef {
                        schema,
                        ..(*index).clone()
                    });
                }
                for sequence in self.catalog().sequences_of(def.oid).to_vec() {
                    if let Some(sequence) = self.catalog().sequence(sequence).cloned() {
                        taken(self, &sequence.name)?;
                        self.edit.put(SequenceDef {
                            schema,
                            ..(*sequence).clone()
                        });
                    }
                }
                self.put_table(TableDef {
                    schema,
                    ..(*def).clone()
                });
            }
            Relation::Sequence(def) => {
                if let Some((table, _)) = def.owned_by {
                    let table = self.table(table)?;
                    let message = "cannot move an owned sequence into another schema";
                    return Err(
                        Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(format!(
                            "Sequence \"{}\" is linked to table \"{}\".",
                            def.name, table.name
                        )),
                    );
                }
                self.edit.put(SequenceDef {
                    schema,
                    ..(*def).clone()
                });
            }
            Relation::View(def) => self.edit.put(ViewDef {
                schema,
                ..(*def).clone()
            }),
            Relation::Index(_) | Relation::Virtual(_) => {
                let message = format!("cannot change schema of index \"{name}\"");
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                    .hint("Change the schema of the table instead."));
            }
        }
        Ok(())
    }

    pub(super) fn set_owner(&mut self, target: Target, owner: Oid) -> Result<()> {
        let class = match target.kind {
            TargetKind::Schema => builtin::class::NAMESPACE,
            TargetKind::Type => builtin::class::TYPE,
            TargetKind::Database => builtin::class::DATABASE,
            TargetKind::Routine(_) => builtin::class::PROCEDURE,
            _ => builtin::class::RELATION,
        };
        if let Some(old) = self.owner_of(target.oid) {
            self.grants_change_owner(class, target.oid, old, owner);
        }
        match self.catalog().object(target.oid).cloned() {
            Some(Object::Table(def)) => {
                for sequence in self.catalog().sequences_of(def.oid).to_vec() {
                    if let Some(sequence) = self.catalog().sequence(sequence).cloned() {
                        self.grants_change_owner(class, sequence.oid, sequence.owner, owner);
                        self.edit.put(SequenceDef {
                            owner,
                            ..(*sequence).clone()
                        });
                    }
                }
                self.put_table(TableDef {
                    owner,
                    ..(*def).clone()
                });
            }
            Some(Object::Sequence(def)) => {
                if let Some((table, _)) = def.owned_by {
                    let table = self.table(table)?;
                    let message = format!("cannot change owner of sequence \"{}\"", def.name);
                    return Err(
                        Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(format!(
                            "Sequence \"{}\" is linked to table \"{}\".",
                            def.name, table.name
                        )),
                    );
                }
                self.edit.put(SequenceDef {
                    owner,
                    ..(*def).clone()
                });
            }
            Some(Object::View(def)) => self.edit.put(ViewDef {
                owner,
                ..(*def).clone()
            }),
            Some(Object::Schema(def)) => self.edit.put(SchemaDef {
                owner,
                ..(*def).clone()
            }),
            Some(Object::Type(def)) => self.change_type_owner(def.oid, owner)?,
            Some(Object::Routine(_) | Object::Operator(_)) => self.give(target.oid, owner)?,
            Some(Object::Extension(def)) => self.own_extension(&def, owner),
            Some(Object::Database(def)) => self.edit.put(DatabaseDef {
                owner,
                ..(*def).clone()
            }),
            // The table's owner is the index's.
            Some(Object::Index(def)) if self.table(def.table)?.owner == owner => {}
            Some(Object::Index(def)) => {
                let message = format!("cannot change owner of index \"{}\"", def.name);
                self.warning(
                    Error::new(state::WRONG_OBJECT_TYPE, message)
                        .hint("Change the ownership of the index's table instead."),
                );
            }
            _ => return Err(Error::unsupported("OWNER TO of this object")),
        }
        Ok(())
    }
}

/// So are the expressions of generated columns.
fn rename_in_generated(table: &mut TableDef, names: (&str, &str), columns: (&str, &str)) {
    for column in &mut table.columns {
        if let Some(generated) = &mut column.generated {
            generated.expr = rename_in_text(&generated.expr, names, columns);
        }
    }
}

/// `nextval` of a sequence, in a column's type.
pub(super) fn next_value(sequence: Oid, ty: SqlType) -> Result<Expr> {
    let func = functions_named("nextval")
        .first()
        .copied()
        .ok_or_else(|| Error::internal("there is no function nextval"))?;
    let arg = Expr::Const(Datum::Oid(sequence.0), SqlType::plain(oid::REGCLASS));
    let call = Expr::Call {
        func,
        args: vec![arg],
        ty: SqlType::INT8,
    };
    if ty.oid == oid::INT8 {
        return Ok(call);
    }
    let cast = find_cast(oid::INT8, ty.oid, CastContext::Assignment);
    Ok(Expr::Cast {
        arg: Box::new(call),
        cast,
        to: ty,
        context: CastContext::Assignment,
    })
}

fn is_volatile(expr: &Expr) -> bool {
    expr.any(&mut |e| match e {
        Expr::Call { func, .. } => func.volatility == Volatility::Volatile,
        Expr::Op { op, .. } => op.volatility == Volatility::Volatile,
        _ => false,
    })
}
