//! ALTER TABLE of a table with children: what is done to it is done to them, by the names of
//! columns and constraints.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use super::alter::next_value;
use super::names::rename_in_text;
use super::rows::slots_replaced;
use crate::binder::other_kind;
use crate::command::{
    AlterTable, NewColumn, NewConstraint, NewConstraintKind, SetExpression, Target, TargetKind,
};
use crate::tree::expr::Expr;
use throng_catalog::{
    Catalog, ColumnDef, ConstraintDef, ConstraintKind, Generated, Lineage, TableDef,
};

fn bad(message: String) -> Error {
    Error::new(state::INVALID_TABLE_DEFINITION, message)
}

fn misfit(message: String) -> Error {
    Error::new(state::DATATYPE_MISMATCH, message)
}

/// A table as it was before an action and as it is after it.
struct Change<'a> {
    before: &'a Catalog,
    old: &'a TableDef,
    new: &'a TableDef,
}

impl Change<'_> {
    fn column_name(&self, attnum: u16) -> &str {
        let known = self.old.columns.get(usize::from(attnum) - 1);
        &known.unwrap_or_else(|| self.new.column(attnum)).name
    }

    fn constraint_name(&self, oid: Oid) -> Option<&str> {
        self.before.constraint(oid).map(|c| c.name.as_str())
    }

    /// How a column is computed, where it is the child's.
    fn generated_in(&self, child: &TableDef, generated: &Generated) -> Generated {
        let names = generated.columns.iter().map(|n| self.column_name(*n));
        let mut columns: Vec<u16> = names.filter_map(|name| child.attnum(name)).collect();
        columns.sort_unstable();
        Generated {
            columns,
            ..generated.clone()
        }
    }

    /// An expression over the parent's row, over the child's.
    fn over(&self, child: &TableDef, expr: &Expr) -> Expr {
        slots_replaced(expr.clone(), &mut |slot| {
            let name = self.column_name(slot as u16 + 1);
            let at = u32::from(child.attnum(name)?) - 1;
            let ty = child.columns[at as usize].ty;
            Some(Expr::Slot(at, ty))
        })
    }
}

impl Run<'_> {
    pub(super) fn alter_family(
        &mut self,
        oid: Oid,
        actions: &[AlterTable],
        only: bool,
    ) -> Result<()> {
        let children = self.catalog().children_of(oid).to_vec();
        let old = self.table(oid)?;
        if old.detaching.is_some() {
            let message = format!(
                "cannot alter partition \"{}\" with an incomplete detach",
                old.name
            );
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .hint(super::partition::FINALIZE));
        }
        if children.is_empty() && old.parents.is_empty() && !old.is_partitioned() {
            for action in actions {
                match action {
                    AlterTable::Inherit(parent) => self.inherit(oid, *parent)?,
                    AlterTable::NoInherit(parent) => self.no_inherit(oid, *parent)?,
                    _ => {}
                }
            }
            return self.alter_table(oid, actions);
        }
        // A foreign key goes to all partitions at once, which must have the columns that were added
        // before it.
        let adds = |a: &AlterTable| matches!(a, AlterTable::AddColumn { .. });
        let key = |a: &AlterTable| match a {
            AlterTable::AddConstraint(new) => {
                matches!(new.kind, NewConstraintKind::ForeignKey { .. })
            }
            _ => false,
        };
        if let Some(at) = actions.iter().position(key)
            && old.is_partitioned()
            && actions[..at].iter().any(adds)
        {
            self.alter_family(oid, &actions[..at], only)?;
            return self.alter_family(oid, &actions[at..], only);
        }
        let mut actions = actions.to_vec();
        for action in &mut actions {
            self.may_alter(&old, action, only && !children.is_empty())?;
            self.name_constraint(&old, action)?;
            if let (AlterTable::AddConstraint(new), true) = (&mut *action, only) {
                self.key_of_children(&old, new)?;
            }
            match action {
                AlterTable::Inherit(parent) => self.inherit(oid, *parent)?,
                AlterTable::NoInherit(parent) => self.no_inherit(oid, *parent)?,
                _ => {}
            }
        }
        let before = self.catalog().clone();
        self.alter_table(oid, &actions)?;
        let new = self.table(oid)?;
        let change = Change {
            before: &before,
            old: &old,
            new: &new,
        };
        for child in children {
            for action in &actions {
                match only {
                    false => self.alter_child(&change, child, action)?,
                    true => self.left_to_child(&change, child, action)?,
                }
            }
        }
        Ok(())
    }

    /// A key of the table alone: what it makes NOT NULL its children have to be already.
    fn key_of_children(&self, table: &TableDef, new: &mut NewConstraint) -> Result<()> {
        new.only = true;
        let NewConstraintKind::PrimaryKey { columns, .. } = &new.kind else {
            return Ok(());
        };
        for child in self.catalog().children_of(table.oid) {
            let child = self.table(*child)?;
            for name in columns {
                let column = child.attnum(name).map(|attnum| child.column(attnum));
                if column.is_some_and(|c| !c.not_null) {
                    let message = format!(
                        "column \"{name}\" of table \"{}\" is not marked NOT NULL",
                        child.name
                    );
                    return Err(Error::new(state::INTERNAL_ERROR, message));
                }
            }
        }
        Ok(())
    }

    /// A CHECK that goes to children has a name from the start.
    fn name_constraint(&mut self, table: &TableDef, action: &mut AlterTable) -> Result<()> {
        let unnamed = |new: &&mut NewConstraint| {
            new.name.is_none() && matches!(new.kind, NewConstraintKind::Check { .. })
        };
        // A column's second one gets its number when the first has its name.
        let new = match action {
            AlterTable::AddConstraint(new) => Some(new),
            AlterTable::AddColumn { constraints, .. } => constraints.iter_mut().find(unnamed),
            _ => None,
        };
        let Some(new) = new else {
            return Ok(());
        };
        if let (None, NewConstraintKind::Check { columns, .. }) = (&new.name, &new.kind) {
            let part = if columns.len() == 1 {
                columns[0].clone()
            } else {
                String::new()
            };
            new.name = Some(self.free_constraint_name(table.schema, &table.name, &part, "check"));
        }
        Ok(())
    }

    /// What cannot be done to a table because of its parents, its children or its key. `alone`: its
    /// children are not meant.
    fn may_alter(&self, table: &TableDef, action: &AlterTable, alone: bool) -> Result<()> {
        let known = |attnum: u16| table.columns.get(usize::from(attnum) - 1);
        match action {
            AlterTable::AddColumn { .. } if table.bound.is_some() => Err(Error::new(
                state::WRONG_OBJECT_TYPE,
                "cannot add column to a partition",
            )),
            AlterTable::AddColumn { .. } if alone => {
                Err(bad("column must be added to child tables too".to_owned()))
            }
            AlterTable::DropColumn { attnum, .. } => {
                let Some(column) = known(*attnum) else {
                    return Ok(());
                };
                if column.inherited > 0 {
                    return Err(bad(format!(
                        "cannot drop inherited column \"{}\"",
                        column.name
                    )));
                }
                self.not_in_key(table, *attnum, "drop")?;
                if alone && table.is_partitioned() {
                    let message =
                        "cannot drop column from only the partitioned table when partitions exist";
                    return Err(bad(message.to_owned()).hint("Do not specify the ONLY keyword."));
                }
                Ok(())
            }
            AlterTable::SetType { attnum, .. } => {
                let Some(column) = known(*attnum) else {
                    return Ok(());
                };
                if column.inherited > 0 {
                    return Err(bad(format!(
                        "cannot alter inherited column \"{}\"",
                        column.name
                    )));
                }
                self.not_in_key(table, *attnum, "alter")?;
                if alone {
                    return Err(bad(format!(
                        "type of inherited column \"{}\" must be changed in child tables too",
                        column.name
                    )));
                }
                Ok(())
            }
            AlterTable::DropNotNull(attnum) => {
                let Some(column) = known(*attnum) else {
                    return Ok(());
                };
                let above = table.parents.iter().any(|parent| {
                    let parent = self.catalog().table(*parent);
                    parent.is_some_and(|p| {
                        let of_parent = p.attnum(&column.name).map(|n| p.column(n));
                        of_parent.is_some_and(ColumnDef::hands_on_not_null)
                    })
                });
                if above {
                    return Err(bad(format!(
                        "column \"{}\" is marked NOT NULL in parent table",
                        column.name
                    )));
                }
                if alone && table.is_partitioned() {
                    let message = "cannot remove constraint from only the partitioned table when partitions exist";
                    return Err(bad(message.to_owned()).hint("Do not specify the ONLY keyword."));
                }
                Ok(())
            }
            AlterTable::DropExpression { attnum } => {
                if alone {
                    return Err(Error::new(
                        state::FEATURE_NOT_SUPPORTED,
                        "ALTER TABLE / DROP EXPRESSION must be applied to child tables too",
                    ));
                }
                match known(*attnum).is_some_and(|column| column.inherited > 0) {
                    true => Err(bad(
                        "cannot drop generation expression from inherited column".to_owned(),
                    )),
                    false => Ok(()),
                }
            }
            AlterTable::SetNotNull {
                no_inherit: false, ..
            } if alone => Err(bad(
                "constraint must be added to child tables too".to_owned()
            )),
            AlterTable::AddConstraint(new) => {
                let check = matches!(new.kind, NewConstraintKind::Check { .. });
                if check && new.lineage.no_inherit && table.is_partitioned() {
                    let message = format!(
                        "cannot add NO INHERIT constraint to partitioned table \"{}\"",
                        table.name
                    );
                    return Err(bad(message));
                }
                if check && alone && !new.lineage.no_inherit {
                    return Err(bad(
                        "constraint must be added to child tables too".to_owned()
                    ));
                }
                if matches!(new.kind, NewConstraintKind::UsingIndex { .. })
                    && table.is_partitioned()
                {
                    return Err(Error::new(
                        state::FEATURE_NOT_SUPPORTED,
                        "ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables",
                    ));
                }
                Ok(())
            }
            AlterTable::DropConstraint { constraint, .. } => {
                match self.catalog().constraint(*constraint) {
                    Some(c) if c.lineage.inherited > 0 => Err(bad(format!(
                        "cannot drop inherited constraint \"{}\" of relation \"{}\"",
                        c.name, table.name
                    ))),
                    _ => Ok(()),
                }
            }
            AlterTable::SetOptions(_) | AlterTable::ResetOptions(_) if table.is_partitioned() => {
                Err(Error::new(
                    state::WRONG_OBJECT_TYPE,
                    "cannot specify storage parameters for a partitioned table",
                )
                .hint("Specify storage parameters for its leaf partitions instead."))
            }
            AlterTable::Inherit(_) | AlterTable::NoInherit(_) if table.bound.is_some() => {
                Err(Error::new(
                    state::WRONG_OBJECT_TYPE,
                    "cannot change inheritance of a partition",
                ))
            }
            AlterTable::Inherit(_) | AlterTable::NoInherit(_) if table.is_partitioned() => {
                Err(Error::new(
                    state::WRONG_OBJECT_TYPE,
                    "cannot change inheritance of partitioned table",
                ))
            }
            _ => Ok(()),
        }
    }

    fn not_in_key(&self, table: &TableDef, attnum: u16, verb: &str) -> Result<()> {
        let in_key = table
            .partitioned
            .as_ref()
            .is_some_and(|key| key.has_column(attnum));
        if !in_key {
            return Ok(());
        }
        Err(bad(format!(
            "cannot {verb} column \"{}\" because it is part of the partition key of relation \"{}\"",
            table.column(attnum).name,
            table.name
        )))
    }

    /// Does to a child what was done to its parent, and to the child's children.
    fn alter_child(&mut self, change: &Change<'_>, child: Oid, action: &AlterTable) -> Result<()> {
        let old = self.table(child)?;
        self.touch(child);
        let Some(own) = self.for_child(change, &old, action)? else {
            return Ok(());
        };
        let before = self.catalog().clone();
        let children = self.catalog().children_of(child).to_vec();
        self.alter_table(child, std::slice::from_ref(&own))?;
        let new = self.table(child)?;
        let below = Change {
            before: &before,
            old: &old,
            new: &new,
        };
        for grandchild in children {
            self.alter_child(&below, grandchild, &own)?;
        }
        if let AlterTable::AddColumn { constraints, .. } = action {
            for constraint in constraints {
                let action = AlterTable::AddConstraint(constraint.clone());
                self.alter_child(change, child, &action)?;
            }
        }
        Ok(())
    }

    /// An action as it is for a child; none where there is nothing to do but what has been done
    /// here.
    fn for_child(
        &mut self,
        change: &Change<'_>,
        child: &TableDef,
        action: &AlterTable,
    ) -> Result<Option<AlterTable>> {
        let place = |attnum: u16| child.attnum(change.column_name(attnum));
        let missing = |attnum: u16| {
            Error::new(
                state::UNDEFINED_COLUMN,
                format!(
                    "column \"{}\" of relation \"{}\" does not exist",
                    change.column_name(attnum),
                    child.name
                ),
            )
        };
        Ok(match action {
            AlterTable::AddColumn { column, .. } => self.column_for_child(change, child, column)?,
            AlterTable::DropColumn { attnum, cascade } => {
                let Some(at) = place(*attnum) else {
                    return Ok(None);
                };
                let column = child.column(at);
                if column.inherited > 1 || (column.inherited == 1 && column.local) {
                    self.with_column(child, at, |c| c.inherited -= 1);
                    return Ok(None);
                }
                (column.inherited == 1).then_some(AlterTable::DropColumn {
                    attnum: at,
                    cascade: *cascade,
                })
            }
            AlterTable::SetDefault {
                attnum,
                default,
                sequence,
            } => Some(AlterTable::SetDefault {
                attnum: place(*attnum).ok_or_else(|| missing(*attnum))?,
                default: default.clone(),
                sequence: *sequence,
            }),
            AlterTable::SetExpression(set) => Some(AlterTable::SetExpression(SetExpression {
                attnum: place(set.attnum).ok_or_else(|| missing(set.attnum))?,
                generated: change.generated_in(child, &set.generated),
                value: change.over(child, &set.value),
                checks: set
                    .checks
                    .iter()
                    .map(|(name, check)| (name.clone(), change.over(child, check)))
                    .collect(),
            })),
            AlterTable::DropExpression { attnum } => {
                place(*attnum).map(|attnum| AlterTable::DropExpression { attnum })
            }
            AlterTable::SetNotNull {
                no_inherit: true, ..
            } => None,
            AlterTable::SetNotNull { attnum, value, .. } => {
                let value = value.as_ref().map(|value| change.over(child, value));
                // It is called as the parent's, unless it is there already.
                let name = change.new.not_null_name(change.new.column(*attnum));
                place(*attnum).map(|attnum| AlterTable::SetNotNull {
                    attnum,
                    value,
                    name: (!child.column(attnum).not_null).then_some(name),
                    no_inherit: false,
                })
            }
            AlterTable::RenameNotNull { attnum, name } => {
                place(*attnum).map(|attnum| AlterTable::RenameNotNull {
                    attnum,
                    name: name.clone(),
                })
            }
            AlterTable::DropNotNull(attnum) => place(*attnum).map(AlterTable::DropNotNull),
            AlterTable::Mark(mark) => mark.of_child(place).map(AlterTable::Mark),
            AlterTable::SetType {
                attnum,
                ty,
                domain,
                collation,
                using,
                same_bytes,
            } => {
                let at = place(*attnum).ok_or_else(|| missing(*attnum))?;
                if child.column(at).inherited > 1 {
                    let name = &child.column(at).name;
                    return Err(bad(format!(
                        "cannot alter inherited column \"{name}\" of relation \"{}\"",
                        child.name
                    )));
                }
                Some(AlterTable::SetType {
                    attnum: at,
                    ty: *ty,
                    domain: *domain,
                    collation: collation.clone(),
                    using: Box::new(change.over(child, using)),
                    same_bytes: *same_bytes,
                })
            }
            AlterTable::AddIdentity { attnum, .. }
            | AlterTable::SetIdentity { attnum, .. }
            | AlterTable::DropIdentity { attnum } => {
                if let Some(at) = place(*attnum).filter(|_| child.bound.is_some()) {
                    let from = change.new.column(*attnum).clone();
                    self.with_column(child, at, |c| {
                        c.identity = from.identity;
                        c.sequence = from.sequence;
                    });
                    // Those below see the same parent's column.
                    for grandchild in self.catalog().children_of(child.oid).to_vec() {
                        self.alter_child(change, grandchild, action)?;
                    }
                }
                None
            }
            AlterTable::AddConstraint(new) => self.constraint_for_child(change, child, new)?,
            AlterTable::DropConstraint {
                constraint,
                cascade,
            } => {
                let name = change.constraint_name(*constraint).unwrap_or_default();
                let found = self.catalog().constraint_by_name(child.oid, name).cloned();
                let Some(own) = found.filter(|c| c.lineage.inherited > 0) else {
                    return Ok(None);
                };
                if own.lineage.inherited > 1 || own.lineage.local {
                    self.with_lineage(&own, |l| l.inherited -= 1);
                    return Ok(None);
                }
                Some(AlterTable::DropConstraint {
                    constraint: own.oid,
                    cascade: *cascade,
                })
            }
            AlterTable::ValidateConstraint { constraint, check } => {
                let name = change.constraint_name(*constraint).unwrap_or_default();
                let own = self.catalog().constraint_by_name(child.oid, name);
                own.map(|own| AlterTable::ValidateConstraint {
                    constraint: own.oid,
                    check: check.as_ref().map(|e| change.over(child, e)),
                })
            }
            &AlterTable::SetStatistics { attnum, target } => {
                place(attnum).map(|attnum| AlterTable::SetStatistics { attnum, target })
            }
            AlterTable::AlterConstraint { .. }
            | AlterTable::SetColumnOptions { .. }
            | AlterTable::ResetColumnOptions { .. }
            | AlterTable::SetOptions(_)
            | AlterTable::ResetOptions(_)
            | AlterTable::SetPersistence(_)
            | AlterTable::SetOwner(_)
            | AlterTable::Inherit(_)
            | AlterTable::NoInherit(_)
            | AlterTable::IndexTerms { .. }
            | AlterTable::EnableTriggers(_)
            | AlterTable::RowSecurity(_) => None,
        })
    }

    fn column_for_child(
        &mut self,
        change: &Change<'_>,
        child: &TableDef,
        column: &NewColumn,
    ) -> Result<Option<AlterTable>> {
        let name = &column.def.name;
        if let Some(at) = child.attnum(name) {
            if child.column(at).ty != column.def.ty {
                return Err(misfit(format!(
                    "child table \"{}\" has different type for column \"{name}\"",
                    child.name
                )));
            }
            same_generation(&column.def, child.column(at))?;
            self.with_column(child, at, |c| c.inherited += 1);
            let message = format!(
                "merging definition of column \"{name}\" for child \"{}\"",
                child.name
            );
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
            return Ok(None);
        }
        let mut own = column.clone();
        own.def.inherited = 1;
        own.def.local = false;
        if let Some(generated) = &column.def.generated {
            own.def.generated = Some(change.generated_in(child, generated));
            own.generated = column.generated.as_ref().map(|e| change.over(child, e));
        }
        if own.sequence.take().is_some()
            && let Some(made) = change.new.attnum(name).map(|n| change.new.column(n))
        {
            own.def.sequence = made.sequence;
            if child.bound.is_none() {
                own.def.identity = None;
            }
            if let Some(sequence) = made.sequence {
                own.default = Some(next_value(sequence, made.ty)?);
            }
        }
        Ok(Some(AlterTable::AddColumn {
            column: Box::new(own),
            constraints: vec![],
        }))
    }

    fn constraint_for_child(
        &mut self,
        change: &Change<'_>,
        child: &TableDef,
        new: &NewConstraint,
    ) -> Result<Option<AlterTable>> {
        // Keys and foreign keys have gone to the partitions already.
        let NewConstraintKind::Check {
            expr,
            columns,
            bound,
        } = &new.kind
        else {
            return Ok(None);
        };
        if new.lineage.no_inherit {
            return Ok(None);
        }
        let name = new.name.as_deref().unwrap_or_default();
        let found = self.catalog().constraint_by_name(child.oid, name).cloned();
        if let Some(found) = found {
            let same = matches!(&found.kind, ConstraintKind::Check { expr: e, .. } if e == expr);
            if !same {
                let message = format!(
                    "constraint \"{name}\" for relation \"{}\" already exists",
                    child.name
                );
                return Err(Error::new(state::DUPLICATE_OBJECT, message));
            }
            if found.lineage.no_inherit {
                let message = format!(
                    "constraint \"{name}\" conflicts with non-inherited constraint on relation \"{}\"",
                    child.name
                );
                return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
            }
            self.with_lineage(&found, |l| l.inherited += 1);
            let message = format!("merging constraint \"{name}\" with inherited definition");
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
            return Ok(None);
        }
        Ok(Some(AlterTable::AddConstraint(NewConstraint {
            only: false,
            name: new.name.clone(),
            kind: NewConstraintKind::Check {
                expr: expr.clone(),
                columns: columns.clone(),
                bound: change.over(child, bound),
            },
            not_valid: new.not_valid,
            deferral: new.deferral,
            lineage: Lineage {
                inherited: 1,
                local: false,
                ..new.lineage
            },
        })))
    }

    fn with_column(
        &mut self,
        table: &TableDef,
        attnum: u16,
        f: impl FnOnce(&mut throng_catalog::ColumnDef),
    ) {
        let mut def = table.clone();
        f(&mut def.columns[usize::from(attnum) - 1]);
        self.touch(def.oid);
        self.put_table(def);
    }

    fn with_lineage(&mut self, constraint: &Arc<ConstraintDef>, f: impl FnOnce(&mut Lineage)) {
        let mut def = (**constraint).clone();
        f(&mut def.lineage);
        self.touch(def.table);
        self.edit.put(def);
    }

    /// ALTER TABLE ONLY: what the parent lost is the child's own from here on.
    fn left_to_child(
        &mut self,
        change: &Change<'_>,
        child: Oid,
        action: &AlterTable,
    ) -> Result<()> {
        let def = self.table(child)?;
        match action {
            AlterTable::DropColumn { attnum, .. } => {
                if let Some(at) = def.attnum(change.column_name(*attnum)) {
                    self.with_column(&def, at, |c| {
                        c.inherited = c.inherited.saturating_sub(1);
                        c.local = true;
                    });
                }
            }
            AlterTable::DropConstraint { constraint, .. } => {
                let name = change.constraint_name(*constraint).unwrap_or_default();
                let own = self.catalog().constraint_by_name(child, name).cloned();
                if let Some(own) = own {
                    self.with_lineage(&own, |l| {
                        l.inherited = l.inherited.saturating_sub(1);
                        l.local = true;
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// RENAME of a column or a CHECK, in the children too.
    pub(super) fn rename_family(&mut self, target: Target, name: &str, only: bool) -> Result<()> {
        match target.kind {
            TargetKind::Column(attnum) => {
                let def = self.table(target.oid)?;
                let column = def.column(attnum).clone();
                if column.inherited > 0 {
                    return Err(bad(format!(
                        "cannot rename inherited column \"{}\"",
                        column.name
                    )));
                }
                let children = self.catalog().children_of(target.oid);
                if only && !children.is_empty() {
                    return Err(bad(format!(
                        "inherited column \"{}\" must be renamed in child tables too",
                        column.name
                    )));
                }
                self.rename_column(target.oid, &column.name, name, 0)
            }
            TargetKind::Constraint => {
                let Some(def) = self.catalog().constraint(target.oid).cloned() else {
                    return self.rename(target, name);
                };
                if def.lineage.inherited > 0 {
                    return Err(bad(format!(
                        "cannot rename inherited constraint \"{}\"",
                        def.name
                    )));
                }
                let check = matches!(def.kind, ConstraintKind::Check { .. });
                let children = self.catalog().children_of(def.table).to_vec();
                self.rename(target, name)?;
                if !check || def.lineage.no_inherit {
                    return Ok(());
                }
                if only && !children.is_empty() {
                    return Err(bad(format!(
                        "inherited constraint \"{}\" must be renamed in child tables too",
                        def.name
                    )));
                }
                for child in self.catalog().descendants(def.table).into_iter().skip(1) {
                    let own = self.catalog().constraint_by_name(child, &def.name);
                    if let Some(own) = own.filter(|c| c.lineage.inherited > 0).cloned() {
                        self.touch(child);
                        self.edit.put(ConstraintDef {
                            name: name.to_owned(),
                            ..(*own).clone()
                        });
                    }
                }
                Ok(())
            }
            _ => self.rename(target, name),
        }
    }

    /// `above`: how many of the table's parents have the column renamed.
    fn rename_column(&mut self, table: Oid, old: &str, new: &str, above: u16) -> Result<()> {
        let def = self.table(table)?;
        let Some(attnum) = def.attnum(old) else {
            return Ok(());
        };
        if def.column(attnum).inherited > above {
            return Err(bad(format!("cannot rename inherited column \"{old}\"")));
        }
        self.rename(
            Target {
                kind: TargetKind::Column(attnum),
                oid: table,
            },
            new,
        )?;
        let mut def = (*self.table(table)?).clone();
        let name = def.name.clone();
        if let Some(key) = &mut def.partitioned {
            for part in &mut key.parts {
                if let Some(text) = &mut part.expr {
                    *text = rename_in_text(text, (&name, &name), (old, new));
                }
            }
            self.put_table(def);
        }
        for child in self.catalog().children_of(table).to_vec() {
            self.touch(child);
            self.rename_column(child, old, new, 1)?;
        }
        Ok(())
    }

    /// ALTER TABLE … INHERIT.
    fn inherit(&mut self, child: Oid, parent: Oid) -> Result<()> {
        let parent = self.table(parent)?;
        let mut def = (*self.table(child)?).clone();
        if def.parents.contains(&parent.oid) {
            let message = format!(
                "relation \"{}\" would be inherited from more than once",
                parent.name
            );
            return Err(Error::new(state::DUPLICATE_TABLE, message));
        }
        if self.catalog().descendants(child).contains(&parent.oid) {
            let message = "circular inheritance not allowed";
            return Err(Error::new(state::DUPLICATE_TABLE, message).detail(format!(
                "\"{}\" is already a child of \"{}\".",
                parent.name, def.name
            )));
        }
        for (_, column) in parent.live_columns() {
            let Some(at) = def.attnum(&column.name) else {
                return Err(misfit(format!(
                    "child table is missing column \"{}\"",
                    column.name
                )));
            };
            let name = def.name.clone();
            let own = &mut def.columns[usize::from(at) - 1];
            if own.ty != column.ty {
                return Err(misfit(format!(
                    "child table \"{name}\" has different type for column \"{}\"",
                    column.name
                )));
            }
            if column.hands_on_not_null() && !own.not_null {
                return Err(misfit(format!(
                    "column \"{}\" in child table \"{name}\" must be marked NOT NULL",
                    column.name
                )));
            }
            same_generation(column, own)?;
            own.inherited += 1;
        }
        def.parents.push(parent.oid);
        self.put_table(def);
        self.inherit_checks(child, &parent, false)
    }

    /// The child has the parent's CHECK constraints already: they are inherited from here on.
    pub(super) fn inherit_checks(
        &mut self,
        child: Oid,
        parent: &TableDef,
        partition: bool,
    ) -> Result<()> {
        let name = self.table(child)?.name.clone();
        for constraint in self.catalog().constraints_of(parent.oid).to_vec() {
            let ConstraintKind::Check { expr, .. } = &constraint.kind else {
                continue;
            };
            if constraint.lineage.no_inherit {
                continue;
            }
            let own = self.catalog().constraint_by_name(child, &constraint.name);
            let Some(own) = own.cloned() else {
                return Err(misfit(format!(
                    "child table is missing constraint \"{}\"",
                    constraint.name
                )));
            };
            if !matches!(&own.kind, ConstraintKind::Check { expr: e, .. } if e == expr) {
                return Err(misfit(format!(
                    "child table \"{name}\" has different definition for check constraint \"{}\"",
                    constraint.name
                )));
            }
            if own.lineage.no_inherit {
                let message = format!(
                    "constraint \"{}\" conflicts with non-inherited constraint on child table \"{name}\"",
                    constraint.name
                );
                return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
            }
            if constraint.deferral.is_enforced() && !own.deferral.is_enforced() {
                let message = format!(
                    "constraint \"{}\" conflicts with NOT ENFORCED constraint on child table \"{name}\"",
                    constraint.name
                );
                return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
            }
            self.with_lineage(&own, |l| {
                l.inherited += 1;
                l.local &= !partition;
            });
        }
        Ok(())
    }

    /// ALTER TABLE … NO INHERIT.
    fn no_inherit(&mut self, child: Oid, parent: Oid) -> Result<()> {
        let mut def = (*self.table(child)?).clone();
        let parent = self.table(parent)?;
        if !def.parents.contains(&parent.oid) {
            let message = format!(
                "relation \"{}\" is not a parent of relation \"{}\"",
                parent.name, def.name
            );
            return Err(Error::new(state::UNDEFINED_TABLE, message));
        }
        def.parents.retain(|p| *p != parent.oid);
        for column in def.columns.iter_mut() {
            if !column.dropped && parent.attnum(&column.name).is_some() && column.inherited > 0 {
                column.inherited -= 1;
                column.local |= column.inherited == 0;
            }
        }
        self.put_table(def);
        for constraint in self.catalog().constraints_of(parent.oid).to_vec() {
            if !matches!(constraint.kind, ConstraintKind::Check { .. }) {
                continue;
            }
            let own = self.catalog().constraint_by_name(child, &constraint.name);
            if let Some(own) = own.filter(|c| c.lineage.inherited > 0).cloned() {
                self.with_lineage(&own, |l| {
                    l.inherited -= 1;
                    l.local |= l.inherited == 0;
                });
            }
        }
        Ok(())
    }
}

/// A child's columns are computed where its parent's are, in the same way though perhaps from
/// something else.
pub(super) fn same_generation(parent: &ColumnDef, child: &ColumnDef) -> Result<()> {
    let name = &child.name;
    match (&parent.generated, &child.generated) {
        (Some(_), None) => Err(misfit(format!(
            "column \"{name}\" in child table must be a generated column"
        ))),
        (None, Some(_)) => Err(misfit(format!(
            "column \"{name}\" in child table must not be a generated column"
        ))),
        (Some(of_parent), Some(own)) if of_parent.stored != own.stored => {
            Err(other_kind(state::DATATYPE_MISMATCH, name, of_parent, own))
        }
        _ => Ok(()),
    }
}
