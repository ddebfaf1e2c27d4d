//! Operators by name and by number: `regoper`, `regoperator`, what is visible.

use throng_catalog::builtin;
use throng_types::error::state;
use throng_types::lexical::quote_ident;
use throng_types::sqltype::{format_type, made};
use throng_types::{Error, Oid, Result, SqlType};
use throng_values::func::extension::{extension_of_operator, known};
use throng_values::func::{EvalHost, ObjectKind, operator_by_oid, operators_named};

use super::eval_host::SessionHost;

impl SessionHost<'_> {
    /// Operators of that name, and of those operands where they are given: the first along the path
    /// for each operands.
    fn operators_called(
        &self,
        schema: Option<&str>,
        name: &str,
        types: Option<&[Oid]>,
    ) -> Vec<Oid> {
        let path = match schema {
            None => self.search_path(),
            Some(schema) => self.schema_named(schema).into_iter().collect(),
        };
        let extensions = self.catalog.extensions();
        let mut found: Vec<([Oid; 2], Oid)> = Vec::new();
        for schema in path {
            let own = self.catalog.operators_in(schema, name).into_iter();
            let left = |left: Option<Oid>| left.unwrap_or(Oid::NONE);
            let mut here: Vec<_> = own
                .map(|def| ([left(def.left), def.right], def.oid))
                .collect();
            if schema == builtin::PG_CATALOG {
                let named = operators_named(name).iter();
                here.extend(named.map(|o| ([o.left, o.right], o.oid)));
            }
            let installed = extensions.iter().filter(|def| def.schema == schema);
            let tables = installed.filter_map(|def| known(&def.name));
            let named = tables.flat_map(|e| e.operators).filter(|o| o.name == name);
            here.extend(named.map(|o| ([o.left, o.right], o.oid)));
            for (operands, oid) in here {
                let wanted = types.is_none_or(|types| types == operands);
                if wanted && !found.iter().any(|(seen, _)| *seen == operands) {
                    found.push((operands, oid));
                }
            }
        }
        found.into_iter().map(|(_, oid)| oid).collect()
    }

    /// `schema.name`, with `(left, right)` behind it or not.
    pub(super) fn operator(&self, name: &str) -> Result<Oid> {
        let (written, args) = match name.split_once('(') {
            Some((plain, args)) => (plain.trim(), Some(args.trim_end_matches(')'))),
            None => (name.trim(), None),
        };
        let types: Option<Vec<Oid>> = match args {
            None => None,
            Some(args) => Some(
                args.split(',')
                    .map(|a| match a.trim() {
                        "none" | "NONE" => Ok(Oid::NONE),
                        a => self.type_oid(a),
                    })
                    .collect::<Result<_>>()?,
            ),
        };
        let (schema, plain) = match written.rsplit_once('.') {
            Some((schema, plain)) => (Some(schema), plain),
            None => (None, written),
        };
        match self.operators_called(schema, plain, types.as_deref())[..] {
            [one] => Ok(one),
            [] => Err(Error::new(
                state::UNDEFINED_FUNCTION,
                format!("operator does not exist: {name}"),
            )),
            _ => Err(Error::new(
                state::AMBIGUOUS_FUNCTION,
                format!("more than one operator named {written}"),
            )),
        }
    }

    /// The operator of these operands.
    pub(super) fn operator_of(
        &self,
        schema: Option<&str>,
        name: &str,
        operands: [Oid; 2],
    ) -> Option<Oid> {
        let found = self.operators_called(schema, name, Some(&operands));
        found.first().copied()
    }

    /// Its schema, name and operands.
    pub(super) fn operator_parts(&self, object: Oid) -> Option<(Oid, String, [Oid; 2])> {
        if let Some(built_in) = operator_by_oid(object) {
            let operands = [built_in.left, built_in.right];
            let extension = extension_of_operator(object);
            let def = extension.and_then(|e| self.catalog.extension_by_name(e.name));
            let schema = def.map_or(builtin::PG_CATALOG, |def| def.schema);
            return Some((schema, built_in.name.to_owned(), operands));
        }
        let def = self.catalog.operator(object)?;
        let operands = [def.left.unwrap_or(Oid::NONE), def.right];
        Some((def.schema, def.name.clone(), operands))
    }

    /// What `regoper` shows.
    pub(super) fn operator_name(&self, object: Oid) -> Option<String> {
        let (schema, name, _) = self.operator_parts(object)?;
        if schema == builtin::PG_CATALOG {
            return Some(name);
        }
        match self.operators_called(None, &name, None)[..] {
            [one] if one == object => Some(name),
            _ => {
                let schema = self.catalog.schema(schema)?;
                Some(format!("{}.{name}", quote_ident(&schema.name)))
            }
        }
    }

    /// What `regoperator` shows.
    pub(super) fn operator_signature(&self, object: Oid) -> Option<String> {
        if let Some(def) = self.catalog.operator(object) {
            return Some(self.catalog.operator_signature(&self.search_path(), def));
        }
        let (schema, name, [left, right]) = self.operator_parts(object)?;
        let shown = |ty: Oid| match ty {
            Oid::NONE => "NONE".to_owned(),
            ty => {
                let made = made::is_made(ty).then(|| self.object_name(ObjectKind::Type, ty));
                made.flatten()
                    .unwrap_or_else(|| format_type(SqlType::plain(ty)))
            }
        };
        let place = match self.operator_is_visible(object) {
            Some(true) => String::new(),
            _ => format!("{}.", quote_ident(&self.schema_name(schema))),
        };
        Some(format!("{place}{name}({},{})", shown(left), shown(right)))
    }

    /// Whether its name with its operands means it.
    pub(super) fn operator_is_visible(&self, object: Oid) -> Option<bool> {
        let (_, name, operands) = self.operator_parts(object)?;
        Some(self.operator_of(None, &name, operands) == Some(object))
    }
}
