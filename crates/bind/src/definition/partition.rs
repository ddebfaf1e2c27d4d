//! Partitions coming and going: what a partition must have of its table, ATTACH and DETACH.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::exclusion::kind_of_index;
use super::{Run, Work};
use crate::command::Detach;
use throng_catalog::partition::check::check_bound;
use throng_catalog::partition::{PartitionBound, PartitionStrategy, columns_in_child};
use throng_catalog::system::partition::constraint_definition;
use throng_catalog::{
    ConstraintDef, ConstraintKind, Deferral, ForeignKey, IndexColumn, IndexDef, IndexTerms,
    Lineage, TableDef, index_column_names,
};

/// What helps where a DETACH CONCURRENTLY has not been completed.
pub(super) const FINALIZE: &str =
    "Use ALTER TABLE ... DETACH PARTITION ... FINALIZE to complete the pending detach operation.";

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(state::FEATURE_NOT_SUPPORTED, message)
}

impl Run<'_> {
    /// A partition with its bound is in the catalog: gives it what its table's partitions have, and
    /// sees to the default partition, some of whose rows may be the new one's.
    pub(super) fn join_partitions(
        &mut self,
        oid: Oid,
        parent: &Arc<TableDef>,
        bound: &PartitionBound,
        fresh: bool,
    ) -> Result<()> {
        let name = self.table(oid)?.name.clone();
        let complaint = check_bound(
            parent,
            &name,
            bound,
            self.catalog(),
            Some(oid),
            self.host.eval(),
        )?;
        if let Some((error, _)) = complaint {
            return Err(error);
        }
        for index in self.catalog().indexes_of(parent.oid).to_vec() {
            self.adopt_index(oid, &index, fresh)?;
        }
        for constraint in self.catalog().constraints_of(parent.oid).to_vec() {
            if constraint.foreign_key().is_some() {
                self.adopt_foreign_key(oid, &constraint, fresh)?;
            }
        }
        self.adopt_triggers(oid, parent)?;
        let bounds = self.catalog().bounds_of(parent, self.host.eval())?;
        if let Some(default) = bounds.without(Some(oid)).default_partition() {
            for table in self.catalog().descendants(default) {
                self.touch(table);
                self.work(Work::CheckPartition {
                    table,
                    partition: default,
                    default: true,
                });
            }
        }
        if !fresh {
            for table in self.catalog().descendants(oid) {
                self.touch(table);
                self.work(Work::CheckPartition {
                    table,
                    partition: oid,
                    default: false,
                });
            }
        }
        Ok(())
    }

    /// An index of a partitioned table on all its partitions.
    pub(super) fn spread_index(&mut self, index: Oid, fresh: bool) -> Result<()> {
        let Some(index) = self.catalog().index(index).cloned() else {
            return Ok(());
        };
        let table = self.table(index.table)?;
        if !table.is_partitioned() {
            return Ok(());
        }
        for child in self.catalog().children_of(table.oid).to_vec() {
            self.touch(child);
            self.adopt_index(child, &index, fresh)?;
        }
        Ok(())
    }

    /// Makes one of the table's indexes a part of that of its parent, or makes one that is.
    fn adopt_index(&mut self, child: Oid, index: &Arc<IndexDef>, fresh: bool) -> Result<()> {
        let (table, parent) = (self.table(child)?, self.table(index.table)?);
        let places = columns_in_child(&parent, &table);
        let columns: Vec<IndexColumn> = index
            .columns
            .iter()
            .map(|c| IndexColumn {
                attnum: place_in_child(&places, c.attnum),
                ..*c
            })
            .collect();
        let terms = terms_in_child(&index.terms, &places);
        let fits = |i: &&Arc<IndexDef>| {
            i.parent.is_none()
                && i.columns == columns
                && i.terms == terms
                && i.unique == index.unique
                && i.nulls_not_distinct == index.nulls_not_distinct
                && i.primary == index.primary
                && (index.constraint.is_none() || i.constraint.is_some())
                && self.deferral_of(i.constraint) == self.deferral_of(index.constraint)
        };
        let found = self.catalog().indexes_of(child).iter().find(fits).cloned();
        if let Some(found) = found {
            return self.attach_index(&found, index);
        }
        if index.primary && self.catalog().primary_key(child).is_some() {
            let message = format!(
                "multiple primary keys for table \"{}\" are not allowed",
                table.name
            );
            return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
        }
        let names = index_column_names(&columns, &terms, &table);
        let (part, label) = match (index.primary, index.constraint.is_some()) {
            (true, _) => (String::new(), "pkey"),
            (_, true) if !terms.exclusion.is_empty() => (names.join("_"), "excl"),
            (_, true) => (names.join("_"), "key"),
            _ => (names.join("_"), "idx"),
        };
        let name = self.free_relation_name(table.schema, &table.name, &part, label);
        if index.primary {
            let key: Vec<u16> = columns.iter().map(|c| c.attnum).collect();
            self.columns_not_null(child, &key, fresh)?;
        }
        let oid = self.host.next_oid();
        let constraint = match index.constraint {
            None => None,
            Some(of) => {
                let kind = kind_of_index(self.catalog(), index, oid);
                let lineage = Lineage {
                    inherited: 1,
                    local: false,
                    no_inherit: false,
                    parent: Some(of),
                };
                Some(self.put_constraint(
                    child,
                    name.clone(),
                    kind,
                    true,
                    (self.deferral_of(index.constraint), lineage),
                ))
            }
        };
        let file = self.host.next_file();
        self.edit.put(IndexDef {
            oid,
            schema: table.schema,
            name,
            table: child,
            file,
            columns,
            constraint,
            parent: Some(index.oid),
            clustered: false,
            terms: terms.clone(),
            ..(**index).clone()
        });
        self.work(Work::CreateIndex {
            index: oid,
            build: !fresh,
        });
        self.spread_index(oid, fresh)
    }

    fn deferral_of(&self, constraint: Option<Oid>) -> Deferral {
        let found = constraint.and_then(|c| self.catalog().constraint(c));
        found.map_or(Deferral::default(), |c| c.deferral)
    }

    /// ALTER CONSTRAINT, of a partitioned table for its partitions too.
    pub(super) fn alter_deferral(&mut self, constraint: Oid, deferral: Deferral) -> Result<()> {
        let found = self.catalog().constraint(constraint).cloned();
        if let Some((found, parent)) = found.as_ref().and_then(|c| Some((c, c.lineage.parent?))) {
            let (table, of) = (self.table(found.table)?, self.catalog().constraint(parent));
            let of = of.cloned().unwrap_or_else(|| found.clone());
            let message = format!(
                "cannot alter constraint \"{}\" on relation \"{}\"",
                found.name, table.name
            );
            let detail = format!(
                "Constraint \"{}\" is derived from constraint \"{}\" of relation \"{}\".",
                found.name,
                of.name,
                self.table(of.table)?.name
            );
            return Err(unsupported(message)
                .detail(detail)
                .hint("You may alter the constraint it derives from instead."));
        }
        let mut next = vec![constraint];
        while let Some(oid) = next.pop() {
            let Some(found) = self.catalog().constraint(oid).cloned() else {
                continue;
            };
            self.touch(found.table);
            for child in self.catalog().children_of(found.table) {
                let own = self.catalog().constraints_of(*child).iter();
                next.extend(own.filter(|c| c.lineage.parent == Some(oid)).map(|c| c.oid));
            }
            // What has not been looked after meanwhile is looked at.
            let again = deferral.is_enforced() && !found.deferral.is_enforced();
            if again {
                self.work(Work::CheckForeignKey { constraint: oid });
            }
            self.edit.put(ConstraintDef {
                deferral,
                validated: (found.validated || again) && deferral.is_enforced(),
                ..(*found).clone()
            });
        }
        Ok(())
    }

    fn attach_index(&mut self, part: &Arc<IndexDef>, whole: &IndexDef) -> Result<()> {
        self.edit.put(IndexDef {
            parent: Some(whole.oid),
            ..(**part).clone()
        });
        let constraint = part.constraint.and_then(|c| self.catalog().constraint(c));
        if let (Some(constraint), Some(of)) = (constraint.cloned(), whole.constraint) {
            self.edit.put(ConstraintDef {
                lineage: Lineage {
                    inherited: 1,
                    parent: Some(of),
                    local: false,
                    ..constraint.lineage
                },
                ..(*constraint).clone()
            });
        }
        Ok(())
    }

    /// A foreign key of a partitioned table for one of its partitions.
    pub(super) fn adopt_foreign_key(
        &mut self,
        child: Oid,
        constraint: &Arc<ConstraintDef>,
        fresh: bool,
    ) -> Result<()> {
        let Some(key) = constraint.foreign_key() else {
            return Ok(());
        };
        let (table, parent) = (self.table(child)?, self.table(constraint.table)?);
        let places = columns_in_child(&parent, &table);
        let columns: Vec<u16> = key
            .columns
            .iter()
            .map(|c| places[usize::from(*c) - 1])
            .collect();
        let own = ForeignKey {
            columns,
            ..key.clone()
        };
        let same = |c: &&Arc<ConstraintDef>| {
            c.lineage.parent.is_none()
                && c.foreign_key() == Some(&own)
                && c.validated
                && c.deferral == constraint.deferral
        };
        let lineage = Lineage {
            inherited: 1,
            local: false,
            no_inherit: false,
            parent: Some(constraint.oid),
        };
        let found = self
            .catalog()
            .constraints_of(child)
            .iter()
            .find(same)
            .cloned();
        let oid = match found {
            Some(found) => {
                let oid = found.oid;
                self.edit.put(ConstraintDef {
                    lineage,
                    ..(*found).clone()
                });
                oid
            }
            None => {
                let taken = self.catalog().constraint_by_name(child, &constraint.name);
                let name = match taken {
                    None => constraint.name.clone(),
                    Some(_) => {
                        let names: Vec<&str> = own
                            .columns
                            .iter()
                            .map(|c| table.column(*c).name.as_str())
                            .collect();
                        self.free_constraint_name(
                            table.schema,
                            &table.name,
                            &names.join("_"),
                            "fkey",
                        )
                    }
                };
                let kind = ConstraintKind::ForeignKey(own);
                let oid = self.put_constraint(
                    child,
                    name,
                    kind,
                    constraint.validated,
                    (constraint.deferral, lineage),
                );
                if !fresh && constraint.validated {
                    self.refer_to(key.ref_table);
                    self.work(Work::CheckForeignKey { constraint: oid });
                }
                oid
            }
        };
        self.spread_foreign_key(oid, fresh)
    }

    /// A foreign key of a partitioned table for all its partitions.
    pub(super) fn spread_foreign_key(&mut self, constraint: Oid, fresh: bool) -> Result<()> {
        let Some(constraint) = self.catalog().constraint(constraint).cloned() else {
            return Ok(());
        };
        let table = self.table(constraint.table)?;
        if !table.is_partitioned() {
            return Ok(());
        }
        for child in self.catalog().children_of(table.oid).to_vec() {
            self.touch(child);
            self.adopt_foreign_key(child, &constraint, fresh)?;
        }
        Ok(())
    }

    /// 0A000 where rows with equal `key` may lie in different partitions.
    pub(super) fn key_covers_partitions(
        &self,
        table: &TableDef,
        key: &[u16],
        what: &str,
    ) -> Result<()> {
        let Some(partitioned) = &table.partitioned else {
            return Ok(());
        };
        for part in &partitioned.parts {
            if part.attnum == 0 {
                let message =
                    format!("unsupported {what} constraint with partition key definition");
                return Err(unsupported(message).detail(format!(
                    "{what} constraints cannot be used when partition keys include expressions."
                )));
            }
            if !key.contains(&part.attnum) {
                let message =
                    "unique constraint on partitioned table must include all partitioning columns";
                return Err(unsupported(message).detail(format!(
                    "{what} constraint on table \"{}\" lacks column \"{}\" which is part of the partition key.",
                    table.name,
                    table.column(part.attnum).name
                )));
            }
        }
        Ok(())
    }

    /// ALTER TABLE … ATTACH PARTITION.
    pub(super) fn attach_partition(
        &mut self,
        parent: Oid,
        child: Oid,
        bound: &PartitionBound,
    ) -> Result<()> {
        let parent = self.table(parent)?;
        let mut def = (*self.table(child)?).clone();
        self.may_attach(&parent, &def)?;
        for (_, column) in parent.live_columns() {
            let at = def.attnum(&column.name).unwrap_or(1);
            let own = &mut def.columns[usize::from(at) - 1];
            own.inherited += 1;
            own.local = false;
        }
        def.parents = vec![parent.oid];
        def.bound = Some(bound.clone());
        self.put_table(def);
        self.inherit_checks(child, &parent, true)?;
        self.join_partitions(child, &parent, bound, false)
    }

    fn may_attach(&self, parent: &TableDef, child: &TableDef) -> Result<()> {
        let wrong = |message: String| Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        let misfit = |message: String| Err(Error::new(state::DATATYPE_MISMATCH, message));
        if child.bound.is_some() {
            return wrong(format!("\"{}\" is already a partition", child.name));
        }
        if !child.parents.is_empty() {
            return wrong("cannot attach inheritance child as partition".to_owned());
        }
        if !child.is_partitioned() && !self.catalog().children_of(child.oid).is_empty() {
            return wrong("cannot attach inheritance parent as partition".to_owned());
        }
        if self.catalog().descendants(child.oid).contains(&parent.oid) {
            let message = "circular inheritance not allowed";
            return Err(Error::new(state::DUPLICATE_TABLE, message).detail(format!(
                "\"{}\" is already a child of \"{}\".",
                parent.name, child.name
            )));
        }
        let temporary = parent.persistence.is_temporary();
        if temporary != child.persistence.is_temporary() {
            let (a, b) = match temporary {
                true => ("permanent", "temporary"),
                false => ("temporary", "permanent"),
            };
            return wrong(format!(
                "cannot attach a {a} relation as partition of {b} relation \"{}\"",
                parent.name
            ));
        }
        for (_, column) in child.live_columns() {
            if column.identity.is_some() && parent.attnum(&column.name).is_some() {
                let message = format!(
                    "table \"{}\" being attached contains an identity column \"{}\"",
                    child.name, column.name
                );
                return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message)
                    .detail("The new partition may not contain an identity column."));
            }
            if parent.attnum(&column.name).is_none() {
                let message = format!(
                    "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
                    child.name, column.name, parent.name
                );
                return Err(Error::new(state::DATATYPE_MISMATCH, message)
                    .detail("The new partition may contain only the columns present in parent."));
            }
        }
        for (_, column) in parent.live_columns() {
            let Some(own) = child.attnum(&column.name).map(|n| child.column(n)) else {
                return misfit(format!("child table is missing column \"{}\"", column.name));
            };
            if own.ty != column.ty {
                return misfit(format!(
                    "child table \"{}\" has different type for column \"{}\"",
                    child.name, column.name
                ));
            }
            if column.hands_on_not_null() && !own.not_null {
                return misfit(format!(
                    "column \"{}\" in child table \"{}\" must be marked NOT NULL",
                    column.name, child.name
                ));
            }
            super::inherit::same_generation(column, own)?;
        }
        Ok(())
    }

    /// ALTER TABLE … DETACH PARTITION.
    pub(super) fn detach_partition(&mut self, parent: Oid, child: Oid, step: Detach) -> Result<()> {
        let def = self.table(child)?;
        let refused =
            |message: String| Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
        match step {
            Detach::AtOnce if def.detaching.is_some() => {
                let message = format!("cannot detach partition \"{}\"", def.name);
                let detail =
                    "The partition is being detached concurrently or has an unfinished detach.";
                return Err(refused(message).detail(detail).hint(FINALIZE));
            }
            Detach::Finish if def.detaching.is_none() => {
                let message = format!("cannot complete detaching partition \"{}\"", def.name);
                return Err(refused(message).detail("There's no pending concurrent detach."));
            }
            Detach::Begin(_) | Detach::Concurrently => {
                if let Some(other) = self.catalog().detaching_of(parent) {
                    let above = self.table(parent)?;
                    let schema = self.catalog().schema(above.schema);
                    let message = format!(
                        "partition \"{}\" already pending detach in partitioned table \"{}.{}\"",
                        other.name,
                        schema.map_or("", |s| s.name.as_str()),
                        above.name
                    );
                    return Err(refused(message).hint(FINALIZE));
                }
            }
            _ => {}
        }
        if step != Detach::Finish {
            self.nobody_points_into(parent, child)?;
        }
        match step {
            Detach::Begin(xid) => {
                self.keep_bound(&def)?;
                self.put_table(TableDef {
                    detaching: Some(xid),
                    ..(*def).clone()
                });
                Ok(())
            }
            _ => self.part(parent, child),
        }
    }

    /// What a partition takes becomes a constraint of its own, so that it can come back without its
    /// rows being looked at.
    fn keep_bound(&mut self, part: &TableDef) -> Result<()> {
        let parent = part
            .parents
            .first()
            .and_then(|oid| self.catalog().table(*oid));
        let Some(key) = parent.and_then(|p| Some((p.clone(), p.partitioned.clone()?))) else {
            return Ok(());
        };
        let (parent, key) = key;
        if key.strategy == PartitionStrategy::Hash {
            return Ok(());
        }
        let Some(expr) = constraint_definition(self.catalog(), part) else {
            return Ok(());
        };
        let places = columns_in_child(&parent, part);
        let used = key
            .parts
            .iter()
            .flat_map(|p| p.uses.iter().chain([&p.attnum]));
        let mut columns: Vec<u16> = used
            .filter(|n| **n > 0)
            .map(|n| places[usize::from(*n) - 1])
            .collect();
        columns.sort_unstable();
        columns.dedup();
        let named = match &columns[..] {
            [one] => part.column(*one).name.clone(),
            _ => String::new(),
        };
        let name = self.free_constraint_name(part.schema, &part.name, &named, "check");
        let kind = ConstraintKind::Check { expr, columns };
        let lineage = Lineage::default();
        self.put_constraint(part.oid, name, kind, true, (Deferral::default(), lineage));
        Ok(())
    }

    /// What others point at must not be in a partition that goes.
    fn nobody_points_into(&mut self, parent: Oid, child: Oid) -> Result<()> {
        let mut referenced = vec![parent];
        referenced.extend(self.catalog().ancestors(&*self.table(parent)?));
        for table in referenced {
            let constraints = self.catalog().referencing(table).to_vec().into_iter();
            for constraint in constraints.filter(|c| c.deferral.is_enforced()) {
                self.touch(constraint.table);
                self.work(Work::CheckPointsElsewhere {
                    constraint: constraint.oid,
                    partition: child,
                });
            }
        }
        Ok(())
    }

    /// A partition becomes a table of its own.
    fn part(&mut self, parent: Oid, child: Oid) -> Result<()> {
        let mut def = (*self.table(child)?).clone();
        def.parents.retain(|p| *p != parent);
        def.bound = None;
        def.detaching = None;
        let above = self.table(parent)?;
        for column in def.columns.iter_mut().filter(|c| c.inherited > 0) {
            column.inherited -= 1;
            column.local = true;
            // The identity was the partitioned table's.
            if column.identity.is_some() {
                column.identity = None;
                column.sequence = None;
            }
        }
        self.put_table(def);
        self.part_triggers(child);
        for index in self.catalog().indexes_of(child).to_vec() {
            let of_parent = index
                .parent
                .and_then(|i| self.catalog().index(i))
                .is_some_and(|i| i.table == above.oid);
            if of_parent {
                self.edit.put(IndexDef {
                    parent: None,
                    ..(*index).clone()
                });
            }
        }
        for constraint in self.catalog().constraints_of(child).to_vec() {
            if constraint.lineage.inherited > 0 {
                self.edit.put(ConstraintDef {
                    lineage: Lineage {
                        inherited: constraint.lineage.inherited - 1,
                        local: true,
                        parent: None,
                        ..constraint.lineage
                    },
                    ..(*constraint).clone()
                });
            }
        }
        Ok(())
    }

    /// ALTER INDEX … ATTACH PARTITION.
    pub(super) fn attach_index_partition(&mut self, whole: Oid, part: Oid) -> Result<()> {
        let missing = || Error::new(state::UNDEFINED_OBJECT, "index does not exist");
        let whole = self.catalog().index(whole).cloned().ok_or_else(missing)?;
        let part = self.catalog().index(part).cloned().ok_or_else(missing)?;
        if part.parent == Some(whole.oid) {
            return Ok(());
        }
        let cannot = |detail: String| {
            let message = format!(
                "cannot attach index \"{}\" as a partition of index \"{}\"",
                part.name, whole.name
            );
            Err(Error::new(state::INVALID_OBJECT_DEFINITION, message).detail(detail))
        };
        if part.parent.is_some() {
            return cannot(format!(
                "Index \"{}\" is already attached to another index.",
                part.name
            ));
        }
        let (table, parent) = (self.table(part.table)?, self.table(whole.table)?);
        if table.bound.is_none() || table.parents.first() != Some(&parent.oid) {
            return cannot(format!(
                "Index \"{}\" is not an index on any partition of table \"{}\".",
                part.name, parent.name
            ));
        }
        let places = columns_in_child(&parent, &table);
        let same = whole.columns.len() == part.columns.len()
            && whole.columns.iter().zip(&part.columns).all(|(a, b)| {
                place_in_child(&places, a.attnum) == b.attnum
                    && a.descending == b.descending
                    && a.nulls_first == b.nulls_first
            })
            && whole.unique == part.unique
            && terms_in_child(&whole.terms, &places) == part.terms;
        if !same {
            return cannot("The index definitions do not match.".to_owned());
        }
        if whole.constraint.is_some() && part.constraint.is_none() {
            return cannot(format!(
                "The index \"{}\" belongs to a constraint in table \"{}\" but no constraint exists for index \"{}\".",
                whole.name, parent.name, part.name
            ));
        }
        let taken = self
            .catalog()
            .indexes_of(table.oid)
            .iter()
            .any(|i| i.parent == Some(whole.oid));
        if taken {
            return cannot(format!(
                "Another index is already attached for partition \"{}\".",
                table.name
            ));
        }
        self.attach_index(&part, &whole)
    }
}

/// A key column's number in the child; an expression has none.
fn place_in_child(places: &[u16], attnum: u16) -> u16 {
    match attnum {
        0 => 0,
        attnum => places[usize::from(attnum) - 1],
    }
}

fn terms_in_child(terms: &IndexTerms, places: &[u16]) -> IndexTerms {
    let mut terms = terms.clone();
    for attnum in terms.uses.iter_mut().chain(&mut terms.include) {
        *attnum = place_in_child(places, *attnum);
    }
    terms
}
