//! Virtual relations read by key, and piece by piece.
//!
//! ```text
//! WHERE attrelid = 16384 ─ a key ─► its objects ─┐
//! all of them ───────────────────────────────────┴─ some at a time ─► a catalog that lists these alone ─► rows
//! ```
//! The functions that make rows list what a catalog has of a kind and look up everything else. So a
//! copy of the catalog that lists a few objects gives the rows of those. A key may lead to more
//! rows than it asks for: whoever reads them tests them.

use std::ops::ControlFlow;

use throng_types::sqltype::made;
use throng_types::{Datum, Oid};

use super::super::{Object, ObjectKind, Oids};
use super::{Catalog, Rows, SystemState, VirtualTable};

/// Where the objects are found whose rows have a value in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The relation of that oid.
    Relation,
    /// That, and those whose foreign keys reference it.
    Referenced,
    /// Those that inherit from it.
    Parent,
    /// Its indexes.
    Indexed,
    /// The relations of that name, in every schema.
    RelationName,
    /// The type of that oid.
    Type,
    /// The types of that name.
    TypeName,
}

use Key::{Indexed, Parent, Referenced, Relation, RelationName, Type, TypeName};

/// The virtual relations whose rows are made of relations and types one by one, and the columns by
/// which these are found.
const PARTED: &[(&str, &[(&str, Key)])] = &[
    ("pg_attrdef", &[("adrelid", Relation)]),
    ("pg_attribute", &[("attrelid", Relation)]),
    ("pg_class", &[("oid", Relation), ("relname", RelationName)]),
    (
        "pg_constraint",
        &[("conrelid", Relation), ("confrelid", Referenced)],
    ),
    ("pg_depend", &[]),
    ("pg_enum", &[("enumtypid", Type)]),
    (
        "pg_index",
        &[("indexrelid", Relation), ("indrelid", Indexed)],
    ),
    ("pg_indexes", &[("indexname", RelationName)]),
    (
        "pg_inherits",
        &[("inhrelid", Relation), ("inhparent", Parent)],
    ),
    ("pg_rewrite", &[("ev_class", Relation)]),
    ("pg_sequence", &[("seqrelid", Relation)]),
    ("pg_trigger", &[("tgrelid", Referenced)]),
    ("pg_type", &[("oid", Type), ("typname", TypeName)]),
    ("columns", &[("table_name", RelationName)]),
    ("key_column_usage", &[("table_name", RelationName)]),
    ("table_constraints", &[("table_name", RelationName)]),
    ("tables", &[("table_name", RelationName)]),
];

/// The kinds whose objects are read piece by piece, in this order.
const KINDS: [ObjectKind; 5] = [
    ObjectKind::Table,
    ObjectKind::Index,
    ObjectKind::Sequence,
    ObjectKind::View,
    ObjectKind::Type,
];

/// Objects of a piece: their rows take less than a millisecond.
const PIECE: usize = if cfg!(test) { 2 } else { 64 };

/// What is left to read of a virtual relation.
#[derive(Debug)]
pub struct Left {
    objects: std::vec::IntoIter<Oid>,
    /// The rows of what is built in are yet to come.
    built_in: bool,
    /// All rows come at once.
    whole: bool,
}

impl VirtualTable {
    fn keys(&self) -> Option<&'static [(&'static str, Key)]> {
        let (_, keys) = PARTED.iter().find(|(name, _)| *name == self.name)?;
        Some(keys)
    }

    /// The columns by which it can be read, with their numbers.
    pub fn key_columns(&self) -> impl Iterator<Item = (i16, Key)> {
        let keys = self.keys().unwrap_or_default().iter();
        keys.filter_map(|(name, key)| {
            let place = self.columns.iter().position(|(column, _)| column == name)?;
            Some((i16::try_from(place + 1).ok()?, *key))
        })
    }

    /// All rows are to be read.
    pub fn all(&self, catalog: &Catalog) -> Left {
        let parted = self.keys().is_some();
        let oids = |kind: &ObjectKind| catalog.kinds[kind.place()].iter().copied();
        let objects: Vec<Oid> = match parted {
            true => KINDS.iter().flat_map(oids).collect(),
            false => Vec::new(),
        };
        Left {
            objects: objects.into_iter(),
            built_in: true,
            whole: !parted,
        }
    }

    /// The rows with one of these values are to be read, perhaps with others.
    pub fn by_key(&self, key: Key, values: &[Datum], catalog: &Catalog) -> Left {
        let mut found = Found::default();
        for value in values.iter().filter(|value| !value.is_null()) {
            if catalog.objects_by(key, value, &mut found).is_break() {
                return self.all(catalog);
            }
        }
        found.objects.sort_unstable();
        found.objects.dedup();
        Left {
            objects: found.objects.into_iter(),
            built_in: found.built_in,
            whole: false,
        }
    }

    /// The next rows; None once there are no more.
    pub fn next_rows(
        &self,
        left: &mut Left,
        catalog: &Catalog,
        state: &dyn SystemState,
    ) -> Option<Rows> {
        if std::mem::take(&mut left.built_in) {
            return Some(match left.whole {
                true => (self.rows)(catalog, state),
                false => (self.rows)(&catalog.listing(&[], true), state),
            });
        }
        let piece: Vec<Oid> = left.objects.by_ref().take(PIECE).collect();
        (!piece.is_empty()).then(|| (self.rows)(&catalog.listing(&piece, false), state))
    }
}

#[derive(Default)]
struct Found {
    objects: Vec<Oid>,
    /// What is built in may have rows, too.
    built_in: bool,
}

impl Catalog {
    /// Adds where a value leads to; breaks off where it may be anywhere.
    fn objects_by(&self, key: Key, value: &Datum, found: &mut Found) -> ControlFlow<()> {
        let objects = &mut found.objects;
        if matches!(key, RelationName | TypeName) {
            let Datum::Text(name) = value else {
                return ControlFlow::Break(());
            };
            found.built_in = true;
            for schema in self.schemas() {
                let named = (schema.oid, name.to_string());
                let relation = self.relations.get(&named).copied();
                let ty = self.types.get(&named).copied();
                let of_array = self.array_names.get(&named).copied();
                let of_array = of_array.filter(|_| key == TypeName);
                objects.extend([relation, ty].into_iter().flatten());
                objects.extend(of_array.into_iter().flat_map(of_type));
            }
            return ControlFlow::Continue(());
        }
        let number = value.as_i64().and_then(|number| u32::try_from(number).ok());
        let Some(oid) = number.map(Oid).filter(|oid| *oid != Oid::NONE) else {
            return ControlFlow::Break(());
        };
        found.built_in |= oid < Oid::FIRST_USER;
        let of_constraint = |c: &std::sync::Arc<super::super::ConstraintDef>| c.table;
        match key {
            Type => objects.extend(of_type(oid)),
            Indexed => objects.extend(self.indexes_of(oid).iter().map(|index| index.oid)),
            Parent => match self.index(oid) {
                Some(_) => return ControlFlow::Break(()),
                None => objects.extend(self.children_of(oid).iter().chain(self.detaching())),
            },
            _ => {
                objects.extend([oid].into_iter().chain(made::composite_oid(oid)));
                if key == Referenced {
                    objects.extend(self.referencing(oid).iter().map(of_constraint));
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether what is built in is listed, too.
    pub(super) fn has_built_in(&self) -> bool {
        !self.without_built_in
    }

    /// The same definitions, of which only these are listed, and what is built in where `built_in`
    /// is set.
    fn listing(&self, objects: &[Oid], built_in: bool) -> Catalog {
        let mut part = self.clone();
        part.without_built_in = !built_in;
        let parted = KINDS.iter().chain(&[ObjectKind::Trigger]);
        let rest = [ObjectKind::Routine, ObjectKind::Extension];
        for kind in parted.chain(rest.iter().filter(|_| !built_in)) {
            part.kinds[kind.place()] = Oids::default();
        }
        for oid in objects {
            let Some(kind) = self.object(*oid).map(Object::kind) else {
                continue;
            };
            if KINDS.contains(&kind) {
                part.kinds[kind.place()].insert(*oid);
            }
            let triggers = self.triggers_of(*oid).iter().map(|trigger| trigger.oid);
            part.kinds[ObjectKind::Trigger.place()].extend(triggers);
        }
        part
    }
}

/// The objects that a type's row is made of: it, the type of its elements, the relation whose rows
/// it has.
fn of_type(ty: Oid) -> impl Iterator<Item = Oid> {
    let element = made::is_made(ty).then_some(Oid(ty.0.saturating_sub(1)));
    let relation = made::serial(ty);
    [Some(ty), element, relation].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_columns() {
        for (name, keys) in PARTED {
            let table = super::super::all().iter().find(|table| table.name == *name);
            let table = table.unwrap_or_else(|| panic!("{name}"));
            assert_eq!(table.key_columns().count(), keys.len(), "{name}");
        }
    }
}
