//! Functions and procedures: made, replaced, changed; what of a table depends on one.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use crate::command::RoutineAttributes;
use throng_catalog::builtin::class;
use throng_catalog::{ConstraintKind, IndexDef, OperatorDef, RoutineDef};
use throng_values::acl::Kind;
use throng_values::func::Operator;

impl Run<'_> {
    pub(super) fn create_routine(
        &mut self,
        def: &RoutineDef,
        old: Option<&Arc<RoutineDef>>,
    ) -> Result<()> {
        self.uses_are_there(&def.uses)?;
        let mut def = def.clone();
        match old {
            Some(old) if self.catalog().routine(old.oid) == Some(old) => {}
            Some(old) => {
                // Another transaction was quicker.
                let what = match self.catalog().routine(old.oid) {
                    Some(_) => "updated",
                    None => "deleted",
                };
                let message = format!("tuple concurrently {what}");
                return Err(Error::new(state::INTERNAL_ERROR, message));
            }
            None => {
                def.schema = self.place(def.schema);
                self.routine_name_is_free(&def, def.schema, &def.name)?;
                def.oid = self.host.next_oid();
                let (oid, owner, schema) = (def.oid, def.owner, def.schema);
                self.grant_defaults(class::PROCEDURE, oid, owner, schema, Kind::Function);
            }
        }
        self.edit.put(def);
        Ok(())
    }

    pub(super) fn routine_name_is_free(
        &self,
        def: &RoutineDef,
        schema: Oid,
        name: &str,
    ) -> Result<()> {
        let inputs = def.input_types();
        let rivals = self.catalog().routines_in(schema, name).into_iter();
        if !rivals.into_iter().any(|r| r.input_types() == inputs) {
            return Ok(());
        }
        let message = match (schema == def.schema, self.catalog().schema(schema)) {
            (false, Some(to)) => format!(
                "function {} already exists in schema \"{}\"",
                arguments(def, name),
                to.name
            ),
            _ if name != def.name => {
                let place = self.catalog().schema(schema).map_or("", |s| &s.name);
                format!(
                    "function {} already exists in schema \"{place}\"",
                    arguments(def, name)
                )
            }
            _ => format!("function \"{name}\" already exists with same argument types"),
        };
        Err(Error::new(state::DUPLICATE_FUNCTION, message))
    }

    fn routine(&self, oid: Oid) -> Result<Arc<RoutineDef>> {
        self.catalog().routine(oid).cloned().ok_or_else(|| {
            let message = format!("function with OID {oid} does not exist");
            Error::new(state::UNDEFINED_FUNCTION, message)
        })
    }

    pub(super) fn rename_routine(&mut self, oid: Oid, name: &str) -> Result<()> {
        let mut def = (*self.routine(oid)?).clone();
        self.routine_name_is_free(&def, def.schema, name)?;
        def.name = name.to_owned();
        self.edit.put(def);
        Ok(())
    }

    pub(super) fn move_routine(&mut self, oid: Oid, schema: Oid) -> Result<()> {
        if self.catalog().operator(oid).is_some() {
            return self.move_operator(oid, schema);
        }
        let mut def = (*self.routine(oid)?).clone();
        if def.schema == schema {
            return Ok(());
        }
        self.routine_name_is_free(&def, schema, &def.name)?;
        def.schema = schema;
        self.edit.put(def);
        Ok(())
    }

    /// A routine or an operator gets another owner.
    pub(super) fn give(&mut self, oid: Oid, owner: Oid) -> Result<()> {
        if self.catalog().operator(oid).is_some() {
            self.own_operator(oid, owner);
            return Ok(());
        }
        let mut def = (*self.routine(oid)?).clone();
        def.owner = owner;
        self.edit.put(def);
        Ok(())
    }

    pub(super) fn alter_routine(&mut self, oid: Oid, changes: &RoutineAttributes) -> Result<()> {
        let mut def = (*self.routine(oid)?).clone();
        def.settings = changes.changed_settings(&def.settings);
        let RoutineAttributes {
            volatility,
            strict,
            security_definer,
            leakproof,
            parallel,
            cost,
            rows,
            settings: _,
        } = changes;
        def.volatility = volatility.unwrap_or(def.volatility);
        def.strict = strict.unwrap_or(def.strict);
        def.security_definer = security_definer.unwrap_or(def.security_definer);
        def.leakproof = leakproof.unwrap_or(def.leakproof);
        def.parallel = parallel.unwrap_or(def.parallel);
        def.cost = cost.unwrap_or(def.cost);
        def.rows = rows.unwrap_or(def.rows);
        self.edit.put(def);
        Ok(())
    }

    /// Columns whose values, and constraints and indexes whose conditions and expressions, call a
    /// function.
    pub(super) fn callers_of(&self, def: &RoutineDef) -> (Vec<(Oid, u16)>, Vec<Oid>) {
        self.texts_that(&def.name, &|text| {
            throng_syntax::parse::symbols(text).is_ok_and(|symbols| {
                symbols.windows(2).any(|pair| {
                    pair[0].name.as_deref() == Some(def.name.as_str()) && pair[1].text == "("
                })
            })
        })
    }

    /// The same of a user's operator.
    pub(super) fn writers_of(&self, def: &OperatorDef) -> (Vec<(Oid, u16)>, Vec<Oid>) {
        let schema = self.catalog().schema(def.schema);
        let schema = schema.map_or(String::new(), |schema| schema.name.clone());
        self.texts_with_operator(&schema, &|name| name == def.name)
    }

    /// Those that have one of these operators of a schema: kept texts write them with it.
    pub(super) fn operator_users(
        &self,
        schema: &str,
        operators: &[Operator],
    ) -> (Vec<(Oid, u16)>, Vec<Oid>) {
        self.texts_with_operator(schema, &|name| operators.iter().any(|o| o.name == name))
    }

    fn texts_with_operator(
        &self,
        schema: &str,
        meant: &dyn Fn(&str) -> bool,
    ) -> (Vec<(Oid, u16)>, Vec<Oid>) {
        self.texts_that("operator", &|text| {
            throng_syntax::parse::symbols(text).is_ok_and(|symbols| {
                symbols.windows(5).any(|s| {
                    s[0].text.eq_ignore_ascii_case("operator")
                        && s[1].text == "("
                        && s[2].name.as_deref() == Some(schema)
                        && meant(s[4].text)
                })
            })
        })
    }

    /// The same of what says a word, where its text is of that kind.
    fn texts_that(&self, word: &str, calls: &dyn Fn(&str) -> bool) -> (Vec<(Oid, u16)>, Vec<Oid>) {
        let mut defaults = Vec::new();
        let catalog = self.catalog();
        let saying = catalog.saying(word);
        let tables = match &saying {
            None => catalog.tables(),
            Some(all) => all.iter().filter_map(|oid| catalog.table(*oid)).collect(),
        };
        for table in tables {
            for (attnum, column) in table.live_columns() {
                let generated = column.generated.as_ref().map(|g| g.expr.as_str());
                if column.default.as_deref().or(generated).is_some_and(calls) {
                    defaults.push((table.oid, attnum));
                }
            }
        }
        let views = match &saying {
            None => catalog.views(),
            Some(all) => all.iter().filter_map(|oid| catalog.view(*oid)).collect(),
        };
        for view in views {
            let own = view.defaults.iter();
            let calling = own.filter(|own| own.text.as_deref().is_some_and(calls));
            defaults.extend(calling.map(|own| (view.oid, own.attnum)));
        }
        let constraints = self.constraints_saying(word).into_iter();
        let constraints = constraints
            .filter(|c| matches!(&c.kind, ConstraintKind::Check { expr, .. } if calls(expr)))
            .map(|c| c.oid);
        let called = |index: &&Arc<IndexDef>| {
            let texts = index.terms.exprs.iter().map(|e| &e.text);
            texts.chain(&index.terms.predicate).any(|text| calls(text))
        };
        let indexes = match &saying {
            None => catalog.indexes(),
            Some(all) => all.iter().filter_map(|oid| catalog.index(*oid)).collect(),
        };
        let indexes = indexes.into_iter();
        let indexes = indexes.filter(called).map(|index| index.oid);
        (defaults, constraints.chain(indexes).collect())
    }
}

fn arguments(def: &RoutineDef, name: &str) -> String {
    let types = def.input_types();
    let list: Vec<String> = types
        .iter()
        .map(|t| throng_types::sqltype::type_name(*t))
        .collect();
    format!("{name}({})", list.join(", "))
}
