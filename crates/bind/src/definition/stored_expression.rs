//! Kept texts after something that they name got another name: they are written anew.
//!
//! | texts | of |
//! | --- | --- |
//! | defaults, generated columns, partition keys, values of rows from before a column | tables |
//! | bounds | partitions |
//! | CHECKs, conditions, expressions | constraints, triggers, indexes |
//! | USING, WITH CHECK | policies, see `policy` |
//! | defaults, CHECKs | domains |
//! | arguments' defaults, bodies that were read when they were made | routines |
//!
//! Views are in `view`. A column's own name is followed in its table's texts by `rename_in_text`,
//! which comes first: what was renamed already stays as it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use throng_types::{Error, Oid, Result, SqlType};

use super::Run;
use crate::binder::{Renamed, StoredKind, columns_of};
use crate::command::{Target, TargetKind};
use throng_catalog::partition::{PartitionBound, RangeEnd};
use throng_catalog::{
    Catalog, ConstraintDef, ConstraintKind, IndexDef, Object, Relation, RoutineBody, TableDef,
};

/// What something was called and is called now, and the schema that it was moved to.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub from: &'a str,
    to: &'a str,
    moved_to: Option<&'a str>,
}

impl Run<'_> {
    /// After an object got another name or schema.
    pub(super) fn rewrite_kept(&mut self, before: &Catalog, target: Target) -> Result<()> {
        let after = self.catalog().clone();
        let name = |catalog: &Catalog| {
            Some(match (catalog.object(target.oid)?, target.kind) {
                (Object::Table(def), TargetKind::Column(attnum)) => def.column(attnum).name.clone(),
                (Object::View(def), TargetKind::ViewColumn(attnum)) => def
                    .columns
                    .get(usize::from(attnum).checked_sub(1)?)?
                    .name
                    .clone(),
                (Object::Type(def), _) => def.name.clone(),
                (Object::Routine(def), _) => def.name.clone(),
                (Object::Operator(def), _) => def.name.clone(),
                (Object::Schema(def), _) => def.name.clone(),
                (Object::Table(def), _) => def.name.clone(),
                (Object::View(def), _) => def.name.clone(),
                (Object::Index(def), _) => def.name.clone(),
                (Object::Sequence(def), _) => def.name.clone(),
                (Object::Constraint(def), _) => def.name.clone(),
                _ => return None,
            })
        };
        let (Some(from), Some(to)) = (name(before), name(&after)) else {
            return Ok(());
        };
        let schema = |catalog: &Catalog| {
            let relation = catalog.relation(target.oid).map(|r| r.schema());
            let schema = relation
                .or_else(|| Some(catalog.made_type(target.oid)?.schema))
                .or_else(|| Some(catalog.routine(target.oid)?.schema))
                .or_else(|| Some(catalog.operator(target.oid)?.schema))?;
            Some(catalog.schema(schema)?.name.clone())
        };
        let moved_to = schema(&after).filter(|now| schema(before).as_ref() != Some(now));
        let names = Names {
            from: &from,
            to: &to,
            moved_to: moved_to.as_deref(),
        };
        self.rewrite_policies(before, names)?;
        match target.kind {
            TargetKind::Column(_) | TargetKind::ViewColumn(_) | TargetKind::Constraint => {
                self.rewrite_routines(before, &after, names)
            }
            _ => self.rewrite_naming(before, names),
        }
    }

    /// After an enum's label got another name.
    pub(super) fn rewrite_label(
        &mut self,
        before: &Catalog,
        (from, to): (&str, &str),
    ) -> Result<()> {
        let names = Names {
            from,
            to,
            moved_to: None,
        };
        self.rewrite_policies(before, names)?;
        self.rewrite_naming(before, names)?;
        let after = self.catalog().clone();
        self.rewrite_values(before, &after, names)
    }

    pub(super) fn renamed<'a>(
        &'a self,
        before: &'a Catalog,
        after: &'a Catalog,
        names: Names<'a>,
    ) -> Renamed<'a> {
        let eval = self.host.eval();
        Renamed {
            from: names.from,
            to: names.to,
            moved_to: names.moved_to,
            before,
            after,
            eval,
        }
    }

    /// Writes anew what holds a name, if only by chance: a text that means the same comes out the
    /// same.
    fn rewrite_naming(&mut self, before: &Catalog, names: Names<'_>) -> Result<()> {
        let after = self.catalog().clone();
        for old in tables_saying(before, names.from) {
            if after.table(old.oid).is_some() {
                self.rewrite_columns(before, &after, old, names)?;
                self.rewrite_checks(before, &after, old, names)?;
                self.rewrite_indexes(before, &after, old, names)?;
                self.rewrite_conditions(before, &after, old, names)?;
            }
        }
        self.rewrite_view_defaults(before, &after, names)?;
        self.rewrite_domains(before, &after, names)?;
        self.rewrite_routines(before, &after, names)
    }

    fn rewrite_view_defaults(
        &mut self,
        before: &Catalog,
        after: &Catalog,
        names: Names<'_>,
    ) -> Result<()> {
        let views = match before.saying(names.from) {
            None => before.views(),
            Some(all) => all.iter().filter_map(|oid| before.view(*oid)).collect(),
        };
        for old in views.into_iter().filter(|view| !view.defaults.is_empty()) {
            let renamed = self.renamed(before, after, names);
            let table = columns_of(&Relation::View(old.clone()));
            let (Some(table), Some(now)) = (table, self.catalog().view(old.oid)) else {
                continue;
            };
            let mut def = (**now).clone();
            for own in &mut def.defaults {
                if let Some(text) = own.text.as_mut().filter(|text| renamed.is_in(text)) {
                    let column = table.column(own.attnum);
                    let again = renamed.over_row(text, StoredKind::Default(column), &table);
                    *text = again.map_err(|e| lost(&e))?;
                }
            }
            if **now != def {
                self.edit.put(def);
            }
        }
        Ok(())
    }

    /// Defaults, what columns compute, and the partition key.
    fn rewrite_columns(
        &mut self,
        before: &Catalog,
        after: &Catalog,
        old: &Arc<TableDef>,
        names: Names<'_>,
    ) -> Result<()> {
        let renamed = self.renamed(before, after, names);
        let mut table = (*self.table(old.oid)?).clone();
        for (was, column) in old.columns.iter().zip(&mut table.columns) {
            if let Some(text) = was.default.as_ref().filter(|text| renamed.is_in(text)) {
                let again = renamed.over_row(text, StoredKind::Default(was), old);
                column.default = Some(again.map_err(|e| lost(&e))?);
            }
            if let (Some(was), Some(now)) = (&was.generated, &mut column.generated)
                && was.expr == now.expr
                && renamed.is_in(&was.expr)
            {
                let again = renamed.over_row(&was.expr, StoredKind::Term, old);
                now.expr = again.map_err(|e| lost(&e))?;
            }
        }
        let key = table.partitioned.iter_mut().flat_map(|key| &mut key.parts);
        let was = old.partitioned.iter().flat_map(|key| &key.parts);
        for (was, part) in was.zip(key) {
            if let (Some(was), Some(now)) = (&was.expr, &mut part.expr)
                && was == now
                && renamed.is_in(was)
            {
                let again = renamed.over_row(was, StoredKind::Term, old);
                *now = again.map_err(|e| lost(&e))?;
            }
        }
        if **self.catalog().table(old.oid).unwrap_or(old) != table {
            self.edit.put(table);
        }
        Ok(())
    }

    fn rewrite_checks(
        &mut self,
        before: &Catalog,
        after: &Catalog,
        old: &Arc<TableDef>,
        names: Names<'_>,
    ) -> Result<()> {
        for constraint in before.constraints_of(old.oid) {
            let ConstraintKind::Check { expr, columns } = &constraint.kind else {
                continue;
            };
            let renamed = self.renamed(before, after, names);
            let Some(now) = self.catalog().constraint(constraint.oid).cloned() else {
                continue;
            };
            let same = matches!(&now.kind, ConstraintKind::Check { expr: e, .. } if e == expr);
            if !same || !renamed.is_in(expr) {
                continue;
            }
            let again = renamed.over_row(expr, StoredKind::Check, old);
            let kind = ConstraintKind::Check {
                expr: again.map_err(|e| lost(&e))?,
                columns: columns.clone(),
            };
            self.edit.put(ConstraintDef {
                kind,
                ..(*now).clone()
            });
        }
        Ok(())
    }

    fn rewrite_indexes(
        &mut self,
        before: &Catalog,
        after: &Catalog,
        old: &Arc<TableDef>,
        names: Names<'_>,
    ) -> Result<()> {
        for index in before.indexes_of(old.oid) {
            let renamed = self.renamed(before, after, names);
            let Some(now) = self.catalog().index(index.oid).cloned() else {
                continue;
            };
            let mut terms = now.terms.clone();
            for (was, expr) in index.terms.exprs.iter().zip(&mut terms.exprs) {
                if was.text == expr.text && renamed.is_in(&was.text) {
                    let again = renamed.over_row(&was.text, StoredKind::Term, old);
                    expr.text = again.map_err(|e| lost(&e))?;
                }
            }
            if let (Some(was), Some(text)) = (&index.terms.predicate, &mut terms.predicate)
                && was == text
                && renamed.is_in(was)
            {
                let again = renamed.over_row(was, StoredKind::Check, old);
                *text = again.map_err(|e| lost(&e))?;
            }
            if terms != now.terms {
                self.edit.put(IndexDef {
                    terms,
                    ..(*now).clone()
                });
            }
        }
        Ok(())
    }

    fn rewrite_domains(
        &mut self,
        before: &Catalog,
        after: &Catalog,
        names: Names<'_>,
    ) -> Result<()> {
        let types = match before.saying(names.from) {
            None => before.made_types(),
            Some(all) => all
                .iter()
                .filter_map(|oid| before.made_type(*oid))
                .collect(),
        };
        for old in types {
            let (Some(was), Some(now)) = (&old.domain, self.catalog().made_type(old.oid)) else {
                continue;
            };
            let renamed = self.renamed(before, after, names);
            let mut def = (**now).clone();
            let Some(domain) = &mut def.domain else {
                continue;
            };
            if let Some(text) = was.default.as_ref().filter(|text| renamed.is_in(text)) {
                let again = renamed.domain_default(text, was.base);
                domain.default = Some(again.map_err(|e| lost(&e))?);
            }
            for (was, check) in was.checks.iter().zip(&mut domain.checks) {
                if renamed.is_in(&was.expr) {
                    let again = renamed.domain_check(&was.expr, domain.base);
                    check.expr = again.map_err(|e| lost(&e))?;
                }
            }
            if **now != def {
                self.edit.put(def);
            }
        }
        Ok(())
    }

    fn rewrite_routines(
        &mut self,
        before: &Catalog,
        after: &Catalog,
        names: Names<'_>,
    ) -> Result<()> {
        let routines = match before.saying(names.from) {
            None => before.routines(),
            Some(all) => all.iter().filter_map(|oid| before.routine(*oid)).collect(),
        };
        for old in routines {
            let standard = matches!(old.body, RoutineBody::Standard { .. });
            if !standard && old.args.iter().all(|arg| arg.default.is_none()) {
                continue;
            }
            let Some(now) = self.catalog().routine(old.oid) else {
                continue;
            };
            let renamed = self.renamed(before, after, names);
            let again = renamed.routine(old).map_err(|e| lost(&e))?;
            if again != **old {
                let mut def = (**now).clone();
                (def.args, def.body) = (again.args, again.body);
                self.edit.put(def);
            }
        }
        Ok(())
    }

    /// Values that are kept as text: what rows have that were written before a column came, and
    /// partitions' bounds.
    fn rewrite_values(
        &mut self,
        before: &Catalog,
        after: &Catalog,
        names: Names<'_>,
    ) -> Result<()> {
        for old in before.tables() {
            let renamed = self.renamed(before, after, names);
            let mut table = (*self.table(old.oid)?).clone();
            for column in table.columns.iter_mut().filter(|c| !c.dropped) {
                if let Some(text) = column.missing.as_mut().filter(|text| renamed.is_in(text)) {
                    *text = renamed.value(text, column.ty)?;
                }
            }
            let parent = old.parents.first().and_then(|oid| before.table(*oid));
            let key = parent.and_then(|parent| parent.partitioned.as_ref());
            if let (Some(key), Some(bound)) = (key, &mut table.bound) {
                let types: Vec<SqlType> = key.parts.iter().map(|part| part.ty).collect();
                rewrite_bound(bound, &types, &renamed)?;
            }
            if **self.catalog().table(old.oid).unwrap_or(old) != table {
                self.edit.put(table);
            }
        }
        Ok(())
    }
}

/// Tables whose kept texts, or those of what belongs to them, may say a name, by oid.
fn tables_saying<'c>(catalog: &'c Catalog, name: &str) -> Vec<&'c Arc<TableDef>> {
    let Some(saying) = catalog.saying(name) else {
        return catalog.tables();
    };
    let table_of = |oid: &Oid| match catalog.object(*oid)? {
        Object::Table(def) => Some(def.oid),
        Object::Constraint(def) => Some(def.table),
        Object::Index(def) => Some(def.table),
        Object::Trigger(def) => Some(def.table),
        _ => None,
    };
    let tables: BTreeSet<Oid> = saying.iter().filter_map(table_of).collect();
    tables
        .iter()
        .filter_map(|oid| catalog.table(*oid))
        .collect()
}

fn rewrite_bound(
    bound: &mut PartitionBound,
    types: &[SqlType],
    renamed: &Renamed<'_>,
) -> Result<()> {
    let anew = |(text, ty): (&mut String, &SqlType)| {
        if renamed.is_in(text) {
            *text = renamed.value(text, *ty)?;
        }
        Ok(())
    };
    match bound {
        PartitionBound::Default | PartitionBound::Hash { .. } => Ok(()),
        PartitionBound::List(values) => {
            let ty = types.first().copied().unwrap_or(SqlType::TEXT);
            let mut values = values.iter_mut().flatten();
            values.try_for_each(|text| anew((text, &ty)))
        }
        PartitionBound::Range { from, to } => {
            for (end, ty) in from.iter_mut().zip(types).chain(to.iter_mut().zip(types)) {
                if let RangeEnd::Value(text) = end {
                    anew((text, ty))?;
                }
            }
            Ok(())
        }
    }
}

/// The text cannot be read: it names what is not found from everywhere.
fn lost(error: &Error) -> Error {
    Error::unsupported(format!(
        "renaming what a kept expression may name, which cannot be read ({})",
        error.message()
    ))
}
