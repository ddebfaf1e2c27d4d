//! What a definition locks, and how: the relations and types that it names, those that it changes,
//! the names that it takes, and rows of catalogs that have no lock of their kind's.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use throng_bind::command::{AlterTable, Ddl, NewConstraintKind, Target, TargetKind};
use throng_catalog::{Catalog, Change, Object, PolicyDef, ViewUse, builtin};
use throng_txn::{LockMode, LockTag};
use throng_types::Oid;
use throng_types::sqltype::made;

use crate::session::definition::detach;

/// How a definition locks the tables it is about: readers go on beside a foreign key that comes,
/// writers too beside one whose rows are checked.
pub(in crate::session) fn strength(ddl: &Ddl) -> LockMode {
    let of = |action: &AlterTable| match action {
        AlterTable::ValidateConstraint { .. } => LockMode::ShareUpdateExclusive,
        AlterTable::EnableTriggers(_) => LockMode::ShareRowExclusive,
        AlterTable::AddConstraint(new)
            if matches!(new.kind, NewConstraintKind::ForeignKey { .. }) =>
        {
            LockMode::ShareRowExclusive
        }
        _ => LockMode::AccessExclusive,
    };
    match ddl {
        Ddl::AlterTable { actions, .. } => actions.iter().map(of).max(),
        Ddl::CreateTrigger { .. } => Some(LockMode::ShareRowExclusive),
        // Whose rows are looked at: nobody writes them meanwhile.
        Ddl::DetachPartition { .. } => Some(LockMode::Share),
        _ => None,
    }
    .unwrap_or(LockMode::AccessExclusive)
}

/// The tables a definition is about, and how they are locked.
pub(in crate::session) fn tables_of(ddl: &Ddl, catalog: &Catalog) -> Vec<(Oid, LockMode)> {
    let of_target = |kind: TargetKind, oid: Oid| match kind {
        TargetKind::Table
        | TargetKind::MaterializedView
        | TargetKind::Column(_)
        | TargetKind::View
        | TargetKind::ViewColumn(_)
        | TargetKind::Sequence => Some(oid),
        TargetKind::Index => catalog.index(oid).map(|index| index.table),
        TargetKind::Constraint => catalog.constraint(oid).map(|constraint| constraint.table),
        TargetKind::Trigger => catalog.trigger(oid).map(|trigger| trigger.table),
        TargetKind::Policy => catalog.policy(oid).map(|policy| policy.table),
        _ => None,
    };
    let tables = match ddl {
        Ddl::CreateIndex(create) => return vec![(create.table, LockMode::Share)],
        Ddl::RefreshMaterialized {
            table,
            concurrently,
            ..
        } => {
            let mode = match concurrently {
                true => LockMode::Exclusive,
                false => LockMode::AccessExclusive,
            };
            // Its query is read by what is there now.
            let of = catalog.rule_of(*table);
            let over = of.iter().flat_map(|view| locks_over(&view.uses, catalog));
            return std::iter::once((*table, mode)).chain(over).collect();
        }
        Ddl::CreateTrigger { def, .. } => {
            let other = def.constraint.and_then(|c| c.other).into_iter();
            let mut locks: Vec<_> = other.map(|oid| (oid, LockMode::AccessShare)).collect();
            locks.push((def.table, LockMode::ShareRowExclusive));
            return locks;
        }
        Ddl::Policy(policy) => return locks_of_policy(&policy.def, catalog),
        Ddl::CreateRoutine { reads, .. } => return read_by(reads),
        Ddl::CreateView(create) => {
            // What it reads must stay as it is; the view it replaces is nobody else's to change.
            let mut locks = locks_over(&create.view.uses, catalog);
            locks.extend(
                create
                    .old
                    .iter()
                    .map(|old| (old.oid, LockMode::AccessExclusive)),
            );
            return locks;
        }
        Ddl::CreateTable(create) => {
            let mode = match create.bound {
                Some(_) => LockMode::AccessExclusive,
                None => LockMode::ShareUpdateExclusive,
            };
            let of = create.materialized.iter();
            let over = of.flat_map(|m| locks_over(&m.uses, catalog));
            let parents = create.parents.iter().map(|oid| (*oid, mode));
            return parents.chain(over).collect();
        }
        Ddl::AttachPartition {
            table, partition, ..
        } => {
            return vec![
                (*table, LockMode::ShareUpdateExclusive),
                (*partition, LockMode::AccessExclusive),
            ];
        }
        Ddl::DetachPartition {
            table,
            partition,
            step,
        } => {
            let (of_table, of_partition) = detach::strengths(*step);
            return vec![(*table, of_table), (*partition, of_partition)];
        }
        Ddl::AttachIndex { index, partition } => [index, partition]
            .into_iter()
            .filter_map(|oid| catalog.index(*oid))
            .map(|index| index.table)
            .collect(),
        // Who takes values goes on beside who looks, and not beside who alters.
        Ddl::AlterSequence { sequence, .. } => {
            return vec![(*sequence, LockMode::ShareRowExclusive)];
        }
        Ddl::AlterView { view, .. } => vec![*view],
        Ddl::AlterIndex { index, .. } => of_target(TargetKind::Index, *index).into_iter().collect(),
        Ddl::AlterTable { table, .. } | Ddl::Repack { table, .. } => vec![*table],
        Ddl::DropIndexConcurrently(index) => of_target(index.kind, index.oid).into_iter().collect(),
        Ddl::Reindex { indexes, .. } => {
            let table = |oid: &Oid| catalog.index(*oid).map(|index| index.table);
            let mut tables: Vec<Oid> = indexes.iter().filter_map(table).collect();
            tables.sort_unstable();
            tables.dedup();
            tables
        }
        Ddl::Truncate { tables, .. } => tables.clone(),
        Ddl::Drop { targets, .. } => targets
            .iter()
            .filter_map(|t| Some((t.kind, of_target(t.kind, t.oid)?)))
            // An index of a partitioned table goes with those of its partitions.
            .flat_map(|(kind, oid)| match kind {
                TargetKind::Index => catalog.descendants(oid),
                _ => vec![oid],
            })
            // Whoever uses a partitioned table must not find a partition gone.
            .flat_map(|oid| {
                let table = catalog.table(oid).filter(|t| t.bound.is_some());
                let parents = table.map_or(&[][..], |t| &t.parents);
                parents.iter().copied().chain([oid])
            })
            .collect(),
        Ddl::Rename { target, .. }
        | Ddl::SetSchema { target, .. }
        | Ddl::SetOwner { target, .. } => of_target(target.kind, target.oid).into_iter().collect(),
        _ => Vec::new(),
    };
    let exclusive = tables.into_iter();
    exclusive.map(|oid| (oid, strength(ddl))).collect()
}

/// What a body names stays while it is made.
fn read_by(relations: &[Oid]) -> Vec<(Oid, LockMode)> {
    let relations = relations.iter();
    relations.map(|oid| (*oid, LockMode::AccessShare)).collect()
}

/// A policy's table, alone; and what its conditions read stays as it is.
fn locks_of_policy(policy: &PolicyDef, catalog: &Catalog) -> Vec<(Oid, LockMode)> {
    let uses = policy.conditions().flat_map(|c| &c.uses);
    let mut locks = locks_over(uses, catalog);
    locks.retain(|(oid, _)| *oid != policy.table);
    locks.push((policy.table, LockMode::AccessExclusive));
    locks
}

/// What a view reads stays as it is while the view is made of it.
fn locks_over<'u>(
    uses: impl IntoIterator<Item = &'u ViewUse>,
    catalog: &Catalog,
) -> Vec<(Oid, LockMode)> {
    let relations = uses.into_iter().map(|used| used.object);
    let relations = relations.filter(|oid| catalog.relation(*oid).is_some());
    relations.map(|oid| (oid, LockMode::AccessShare)).collect()
}

/// The types that users made which a definition is about, and how they are locked: whoever uses one
/// keeps it from going.
pub(in crate::session) fn types_of(ddl: &Ddl) -> Vec<(Oid, LockMode)> {
    let is_type = |kind| matches!(kind, TargetKind::Type | TargetKind::Domain);
    let of_target = |target: &Target| is_type(target.kind).then_some(target.oid);
    let alone = |ty: Oid| (ty, LockMode::AccessExclusive);
    let used = |columns: &mut dyn Iterator<Item = Oid>| -> Vec<(Oid, LockMode)> {
        let made = columns.filter(|ty| made::is_made(*ty));
        let element = |ty| throng_types::sqltype::element_of(ty).unwrap_or(ty);
        made.map(|ty| (element(ty), LockMode::AccessShare))
            .collect()
    };
    match ddl {
        Ddl::AlterEnum { ty, .. } => vec![alone(*ty)],
        Ddl::AlterDomain(alter) => vec![alone(alter.def.oid)],
        Ddl::AlterComposite(def) => vec![alone(def.oid)],
        Ddl::CreateComposite(def) => {
            let fields = def.fields.iter().flatten();
            used(&mut fields.map(|f| f.shown_type()))
        }
        Ddl::CreateOperator(create) => used(&mut create.def.uses.iter().map(|used| used.object)),
        Ddl::CreateCast(def) => used(&mut def.uses.iter().map(|used| used.object)),
        Ddl::CreateDomain(def) => used(&mut def.domain.iter().filter_map(|domain| domain.over)),
        Ddl::Drop { targets, .. } => targets.iter().filter_map(of_target).map(alone).collect(),
        Ddl::Rename { target, .. }
        | Ddl::SetSchema { target, .. }
        | Ddl::SetOwner { target, .. } => of_target(target).into_iter().map(alone).collect(),
        Ddl::CreateView(create) => used(&mut create.view.uses.iter().map(|used| used.object)),
        Ddl::CreateTable(create) => used(&mut create.columns.iter().map(|c| c.def.shown_type())),
        Ddl::AlterTable { actions, .. } => used(&mut actions.iter().filter_map(|a| match a {
            AlterTable::AddColumn { column, .. } => Some(column.def.shown_type()),
            AlterTable::SetType { ty, domain, .. } => Some(domain.unwrap_or(ty.oid)),
            _ => None,
        })),
        _ => Vec::new(),
    }
}

pub(in crate::session) fn type_lock(ty: Oid) -> LockTag {
    LockTag::Object {
        class: builtin::class::TYPE,
        object: ty,
    }
}

/// The lock that stands for a relation's name: two sessions that take one name come one after the
/// other.
pub(in crate::session) fn name_lock(schema: Oid, name: &str) -> LockTag {
    let hash = FixedState::default().hash_one((schema.0, name)) as u32;
    LockTag::Object {
        class: builtin::class::NAMESPACE,
        object: Oid(hash),
    }
}

/// The relations that are changed or dropped, be it by what happens to something else (a label of
/// an enum is renamed, which a column's default says), and how they are locked: two that change one
/// come one after the other. Who reads a view must not find it replaced.
pub(in crate::session) fn relations_changed(
    changes: &[Change],
    before: &Catalog,
) -> Vec<(Oid, LockMode)> {
    let locks = changes.iter().filter_map(|change| {
        let oid = change.oid();
        match before.object(oid)? {
            Object::View(_) => Some((oid, LockMode::AccessExclusive)),
            Object::Table(_) | Object::Sequence(_) => Some((oid, LockMode::ShareUpdateExclusive)),
            Object::Index(index) => Some((index.table, LockMode::ShareUpdateExclusive)),
            _ => None,
        }
    });
    let mut locks: Vec<(Oid, LockMode)> = locks.collect();
    locks.sort_unstable_by_key(|(oid, _)| *oid);
    locks.dedup();
    locks
}

/// The locks that stand for rows of catalogs which have no lock of their kind's: two that change
/// one come one after the other, as they would wait for each other's row in PostgreSQL. All rights
/// on an object are its row's.
pub(in crate::session) fn row_locks(
    changes: &[Change],
    before: &Catalog,
    edited: &Catalog,
) -> Vec<LockTag> {
    use builtin::class;
    let row = |class, object| Some(LockTag::Object { class, object });
    let mut tags: Vec<LockTag> = changes
        .iter()
        .filter_map(|change| {
            let oid = &change.oid();
            match (before.object(*oid), edited.object(*oid)) {
                (_, Some(Object::Privileges(def))) | (Some(Object::Privileges(def)), _) => {
                    row(def.class, def.object)
                }
                (Some(Object::Membership(_)), _) => row(class::AUTH_MEMBERS, *oid),
                (Some(Object::DefaultPrivileges(_)), _) => row(class::DEFAULT_ACL, *oid),
                (Some(Object::Role(_)), _) => row(class::ROLE, *oid),
                (Some(Object::Schema(_)), _) => row(class::NAMESPACE, *oid),
                (Some(Object::Database(_)), _) => row(class::DATABASE, *oid),
                (Some(Object::Routine(_)), _) => row(class::PROCEDURE, *oid),
                (Some(Object::Trigger(_)), _) => row(class::TRIGGER, *oid),
                (Some(Object::Policy(_)), _) => row(class::POLICY, *oid),
                (Some(Object::Extension(_)), _) => row(class::EXTENSION, *oid),
                (Some(Object::Operator(_)), _) => row(class::OPERATOR, *oid),
                (Some(Object::Cast(_)), _) => row(class::CAST, *oid),
                // Whoever grants rights on it has its row.
                (Some(Object::Table(_) | Object::View(_) | Object::Sequence(_)), None) => {
                    row(class::RELATION, *oid)
                }
                _ => None,
            }
        })
        .collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

pub(in crate::session) fn relation_name(object: &Object) -> Option<(Oid, &str)> {
    match object {
        Object::Table(def) => Some((def.schema, &def.name)),
        Object::Index(def) => Some((def.schema, &def.name)),
        Object::Sequence(def) => Some((def.schema, &def.name)),
        Object::Type(def) => Some((def.schema, &def.name)),
        Object::View(def) => Some((def.schema, &def.name)),
        Object::Routine(def) => Some((def.schema, &def.name)),
        Object::Operator(def) => Some((def.schema, &def.name)),
        Object::Schema(def) => Some((Oid::NONE, &def.name)),
        Object::Role(def) => Some((Oid(1), &def.name)),
        Object::Database(def) => Some((Oid(2), &def.name)),
        Object::Extension(def) => Some((Oid(3), &def.name)),
        _ => None,
    }
}
