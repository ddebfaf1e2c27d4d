//! Types that users make.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{element_of, made};
use throng_types::{Error, Oid, Result};

use super::{Run, Work};
use crate::command::{AlterDomain, Ddl, EnumChange};
use throng_catalog::{ConstraintDef, ConstraintKind, EnumLabel, Object, TypeDef, builtin};
use throng_values::acl::Kind;
use throng_values::io::scalar::NAME_LIMIT;

#[cold]
fn label_exists(label: &str) -> Error {
    let message = format!("enum label \"{label}\" already exists");
    Error::new(state::DUPLICATE_OBJECT, message)
}

#[cold]
pub(super) fn no_more_types() -> Error {
    Error::new(
        state::PROGRAM_LIMIT_EXCEEDED,
        "no more numbers for new types are left",
    )
}

fn check_label(label: &str) -> Result<()> {
    if label.len() <= NAME_LIMIT {
        return Ok(());
    }
    let message = format!("invalid enum label \"{label}\"");
    Err(Error::new(state::INVALID_NAME, message)
        .detail(format!("Labels must be {NAME_LIMIT} bytes or less.")))
}

impl Run<'_> {
    pub(super) fn create_type(&mut self, ddl: &Ddl) -> Result<()> {
        match ddl {
            Ddl::CreateEnum {
                schema,
                name,
                owner,
                labels,
            } => self.create_enum(*schema, name, *owner, labels),
            Ddl::CreateRange { def, multirange } => self.create_range(def, multirange.as_deref()),
            Ddl::CreateDomain(def) => self.create_domain(def),
            Ddl::CreateComposite(def) => self.create_composite(def),
            _ => Err(Error::internal("no type is made")),
        }
    }

    pub(super) fn create_enum(
        &mut self,
        schema: Oid,
        name: &str,
        owner: Oid,
        labels: &[String],
    ) -> Result<()> {
        let schema = self.place(schema);
        self.type_name_is_free(schema, name)?;
        let mut made_labels: Vec<EnumLabel> = Vec::with_capacity(labels.len());
        for (label, place) in labels.iter().zip(1..) {
            check_label(label)?;
            if made_labels.iter().any(|l| l.name == *label) {
                // PostgreSQL meets it in its catalog's index.
                let message =
                    "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
                return Err(Error::new(state::UNIQUE_VIOLATION, message)
                    .detail(format!("The label \"{label}\" is there twice.")));
            }
            made_labels.push(EnumLabel {
                oid: self.host.next_oid(),
                name: label.clone(),
                place: f64::from(place),
            });
        }
        let oid = made::enum_oid(self.host.next_oid()).ok_or_else(no_more_types)?;
        self.edit.put(TypeDef {
            oid,
            schema,
            name: name.to_string(),
            owner,
            labels: made_labels,
            domain: None,
            fields: None,
            array_name: None,
            range: None,
        });
        self.grant_defaults(builtin::class::TYPE, oid, owner, schema, Kind::Type);
        Ok(())
    }

    pub(super) fn create_domain(&mut self, def: &TypeDef) -> Result<()> {
        let mut def = def.clone();
        def.schema = self.place(def.schema);
        self.type_name_is_free(def.schema, &def.name)?;
        def.oid = made::domain_oid(self.host.next_oid()).ok_or_else(no_more_types)?;
        self.number_constraints(&mut def);
        self.edit.put(def);
        Ok(())
    }

    pub(super) fn alter_domain(&mut self, alter: &AlterDomain) -> Result<()> {
        let mut def = alter.def.clone();
        self.number_constraints(&mut def);
        self.edit.put(def);
        for test in &alter.tests {
            self.touch(test.table);
            self.work(Work::CheckDomain(test.clone()));
        }
        Ok(())
    }

    pub(super) fn create_composite(&mut self, def: &TypeDef) -> Result<()> {
        let schema = self.place(def.schema);
        self.type_name_is_free(schema, &def.name)?;
        let oid = made::composite_oid(self.host.next_oid()).ok_or_else(no_more_types)?;
        self.edit.put(TypeDef {
            oid,
            schema,
            ..def.clone()
        });
        Ok(())
    }

    /// Values lie in rows as they were made: nothing of a type changes while there are columns of
    /// it.
    pub(super) fn alter_composite(&mut self, def: &TypeDef) -> Result<()> {
        if let Some(user) = self.column_of(def.oid, 0) {
            let message = format!(
                "cannot alter type \"{}\" because column {user} uses it",
                def.name
            );
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let users = self.catalog().views_of(def.oid);
        if let Some(view) = users.first() {
            let what = format!("altering a type that {} uses", self.describe(*view));
            return Err(Error::unsupported(what));
        }
        self.edit.put(def.clone());
        Ok(())
    }

    /// As `"table.column"`, a column whose values have parts of the type.
    pub(super) fn column_of(&self, ty: Oid, depth: u32) -> Option<String> {
        const DEEPEST: u32 = 64;
        if depth > DEEPEST {
            return None;
        }
        let catalog = self.catalog();
        let mut forms = vec![ty, made::array_oid(ty)];
        if made::is_range(ty) {
            let multirange = made::multirange_of(ty);
            forms.extend([multirange, made::array_oid(multirange)]);
        }
        for of in forms {
            if let Some((table, attnum)) = self.columns_of_type(of).first() {
                let table = catalog.table(*table)?;
                return Some(format!("\"{}.{}\"", table.name, table.column(*attnum).name));
            }
            let users = catalog.users_of(of).into_iter();
            for def in users.filter_map(|oid| catalog.made_type(oid)) {
                let over = def.domain.as_ref().and_then(|d| d.over) == Some(of)
                    || def.range.as_ref().is_some_and(|range| range.subtype == of);
                let mut fields = def.fields.iter().flatten().filter(|f| !f.dropped);
                if (over || fields.any(|f| f.shown_type() == of))
                    && let Some(found) = self.column_of(def.oid, depth + 1)
                {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Gives a domain's new constraints their oids.
    fn number_constraints(&mut self, def: &mut TypeDef) {
        let Some(domain) = &mut def.domain else {
            return;
        };
        let checks = domain.checks.iter_mut().map(|c| &mut c.oid);
        let all = checks.chain(domain.not_null.iter_mut().map(|n| &mut n.oid));
        for oid in all.filter(|oid| **oid == Oid::NONE) {
            *oid = self.host.next_oid();
        }
    }

    /// 42710 where there is a type of that name, or a table, whose rows' type it would be.
    pub(super) fn type_name_is_free(&self, schema: Oid, name: &str) -> Result<()> {
        let found = self.catalog().type_named_in(schema, name);
        if found.is_some_and(|ty| element_of(ty).is_none()) {
            let message = format!("type \"{name}\" already exists");
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        Ok(())
    }

    /// The same for a relation that is to be made.
    pub(super) fn row_type_is_free(&self, schema: Oid, name: &str) -> Result<()> {
        self.type_name_is_free(schema, name).map_err(|e| {
            e.hint("A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.")
        })
    }

    /// 42710 where a type and its array type cannot go to a schema by the names they have.
    pub(super) fn types_may_move(&self, ty: Oid, name: &str, to: Oid) -> Result<()> {
        let catalog = self.catalog();
        let array = catalog.array_name(ty);
        for name in [Some(name), array.as_deref()].into_iter().flatten() {
            if catalog.type_named_in(to, name).is_some() {
                let into = catalog.schema(to).map_or("", |s| &s.name);
                let message = format!("type \"{name}\" already exists in schema \"{into}\"");
                return Err(Error::new(state::DUPLICATE_OBJECT, message));
            }
        }
        Ok(())
    }

    fn made_type(&self, oid: Oid) -> Result<Arc<TypeDef>> {
        self.catalog().made_type(oid).cloned().ok_or_else(|| {
            let message = format!("type with OID {oid} does not exist");
            Error::new(state::UNDEFINED_OBJECT, message)
        })
    }

    pub(super) fn alter_enum(&mut self, ty: Oid, change: &EnumChange) -> Result<()> {
        let mut def = (*self.made_type(ty)?).clone();
        let place_of = |def: &TypeDef, label: &str| {
            def.labels
                .iter()
                .position(|l| l.name == label)
                .ok_or_else(|| {
                    let message = format!("\"{label}\" is not an existing enum label");
                    Error::new(state::INVALID_PARAMETER_VALUE, message)
                })
        };
        match change {
            EnumChange::Add {
                label,
                if_not_exists,
                neighbour,
            } => {
                check_label(label)?;
                if def.labels.iter().any(|l| l.name == *label) {
                    if !if_not_exists {
                        return Err(label_exists(label));
                    }
                    let message = format!("enum label \"{label}\" already exists, skipping");
                    self.notice(Error::new(state::DUPLICATE_OBJECT, message));
                    return Ok(());
                }
                let at = match neighbour {
                    None => def.labels.len(),
                    Some((name, after)) => place_of(&def, name)? + usize::from(*after),
                };
                let place = place_between(&def.labels, at)?;
                let oid = self.host.next_oid();
                let name = label.clone();
                def.labels.insert(at, EnumLabel { oid, name, place });
            }
            EnumChange::Rename { from, to } => {
                check_label(to)?;
                let at = place_of(&def, from)?;
                if def.labels.iter().any(|l| l.name == *to) {
                    return Err(label_exists(to));
                }
                def.labels[at].name = to.clone();
            }
        }
        self.edit.put(def);
        Ok(())
    }

    pub(super) fn rename_type(&mut self, ty: Oid, name: &str) -> Result<()> {
        let mut def = (*self.made_type(ty)?).clone();
        self.type_name_is_free(def.schema, name)?;
        def.name = name.to_string();
        self.edit.put(def);
        Ok(())
    }

    pub(super) fn move_type(&mut self, ty: Oid, schema: Oid) -> Result<()> {
        let mut def = (*self.made_type(ty)?).clone();
        if def.schema == schema {
            return Ok(());
        }
        self.types_may_move(def.oid, &def.name, schema)?;
        def.schema = schema;
        self.edit.put(def);
        Ok(())
    }

    pub(super) fn own_type(&mut self, ty: Oid, owner: Oid) -> Result<()> {
        let mut def = (*self.made_type(ty)?).clone();
        def.owner = owner;
        self.edit.put(def);
        if made::is_range(ty) {
            let mut multirange = (*self.made_type(made::multirange_of(ty))?).clone();
            multirange.owner = owner;
            self.edit.put(multirange);
        }
        Ok(())
    }

    /// Tables' columns of a type.
    pub(super) fn columns_of_type(&self, ty: Oid) -> Vec<(Oid, u16)> {
        let mut found = Vec::new();
        let catalog = self.catalog();
        let tables = catalog.tables_with(ty).iter();
        for table in tables.filter_map(|oid| catalog.table(*oid)) {
            // The order in which PostgreSQL tells of them.
            let columns: Vec<_> = table.live_columns().collect();
            for (attnum, column) in columns.into_iter().rev() {
                if column.domain.unwrap_or(column.ty.oid) == ty {
                    found.push((table.oid, attnum));
                }
            }
        }
        found
    }

    /// Constraints whose texts may say a name, by oid.
    pub(super) fn constraints_saying(&self, name: &str) -> Vec<&Arc<ConstraintDef>> {
        let catalog = self.catalog();
        match catalog.saying(name) {
            None => catalog.constraints(),
            Some(all) => all
                .iter()
                .filter_map(|oid| catalog.constraint(*oid))
                .collect(),
        }
    }

    /// CHECKs and defaults, of columns of other types, that name a type.
    pub(super) fn mentions_of_type(&self, ty: Oid) -> Vec<Oid> {
        let Some(Object::Type(def)) = self.catalog().object(ty) else {
            return vec![];
        };
        let mentions = |text: &str| {
            throng_syntax::parse::symbols(text)
                .is_ok_and(|symbols| symbols.iter().any(|s| named(s.text, &def.name)))
        };
        let constraints = self.constraints_saying(&def.name).into_iter();
        let constraints = constraints
            .filter(|c| matches!(&c.kind, ConstraintKind::Check { expr, .. } if mentions(expr)))
            .map(|c| c.oid);
        let catalog = self.catalog();
        let indexes = match catalog.saying(&def.name) {
            None => catalog.indexes(),
            Some(all) => all.iter().filter_map(|oid| catalog.index(*oid)).collect(),
        };
        let indexes = indexes.into_iter().filter(|index| {
            let texts = index.terms.exprs.iter().map(|e| &e.text);
            texts
                .chain(&index.terms.predicate)
                .any(|text| mentions(text))
        });
        constraints.chain(indexes.map(|index| index.oid)).collect()
    }
}

/// Whether a symbol is this name, quoted or not.
fn named(symbol: &str, name: &str) -> bool {
    symbol == name || symbol == throng_types::lexical::quote_ident(name)
}

/// A place for a new value at index `at`: after the last, before the first, or halfway between its
/// neighbours.
fn place_between(labels: &[EnumLabel], at: usize) -> Result<f64> {
    let before = at.checked_sub(1).map(|i| labels[i].place);
    let after = labels.get(at).map(|l| l.place);
    let place = match (before, after) {
        (None, None) => return Ok(1.0),
        (Some(before), None) => return Ok(before + 1.0),
        (None, Some(after)) => return Ok(after - 1.0),
        (Some(before), Some(after)) => before + (after - before) / 2.0,
    };
    let free = before.is_none_or(|b| place > b) && after.is_none_or(|a| place < a);
    // Values lie in rows and indexes by their places, so those cannot be dealt anew. It takes fifty
    // values put between the same two.
    match free {
        true => Ok(place),
        false => Err(Error::new(
            state::PROGRAM_LIMIT_EXCEEDED,
            "there is no more room between these enum labels",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_until_there_are_none() {
        let label = |place: f64| EnumLabel {
            oid: Oid(1),
            name: place.to_string(),
            place,
        };
        let mut labels = vec![label(1.0), label(2.0)];
        assert_eq!(place_between(&labels, 0).unwrap(), 0.0);
        assert_eq!(place_between(&labels, 2).unwrap(), 3.0);
        let mut made = 0;
        while let Ok(place) = place_between(&labels, 1) {
            assert!(place > 1.0 && place < labels[1].place);
            labels.insert(1, label(place));
            made += 1;
        }
        assert!(made > 50);
    }
}
