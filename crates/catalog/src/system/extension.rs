//! Extensions as PostgreSQL's tools look for them: PL/pgSQL, which every database is born with, and
//! those that were installed. A dump leaves their members out.

use throng_types::{Array, Datum, Oid, oid};
use throng_values::func::extension::{DESCRIPTION, EXTENSIONS, NAME, VERSION};

use super::constraint::dependency;
use super::user_routine::PLPGSQL;
use super::{Rows, SystemState, row};
use crate::builtin::class;
use crate::{Catalog, ExtensionDef, Object, builtin};
use std::sync::Arc;
use throng_values::func::Operator;
use throng_values::func::extension::Extension;
use throng_values::inverted::CLASSES;

/// Below the numbers that dumps take for a user's.
pub const EXTENSION: Oid = Oid(13596);
const CLASS: Oid = class::EXTENSION;
pub(super) const LANGUAGE_CLASS: Oid = class::LANGUAGE;
/// What calls a function in the language, runs a DO block, and looks at a function as it is made.
pub(super) const HANDLERS: [(u32, &str); 3] = [
    (13597, "plpgsql_call_handler"),
    (13598, "plpgsql_inline_handler"),
    (13599, "plpgsql_validator"),
];

pub(super) fn pg_extension(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = vec![row![
        EXTENSION,
        NAME,
        builtin::SUPERUSER,
        builtin::PG_CATALOG,
        false,
        VERSION,
        Datum::Null,
        Datum::Null,
    ]];
    rows.extend(catalog.extensions().into_iter().map(|def| {
        let known = throng_values::func::extension::known(&def.name);
        row![
            def.oid,
            def.name.as_str(),
            def.owner,
            def.schema,
            known.is_some_and(|e| e.relocatable),
            def.version.as_str(),
            Datum::Null,
            Datum::Null,
        ]
    }));
    rows
}

pub(super) fn pg_available_extensions(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = vec![row![NAME, VERSION, VERSION, DESCRIPTION]];
    rows.extend(EXTENSIONS.iter().map(|e| {
        let installed = catalog.extension_by_name(e.name);
        let installed = installed.map(|def| def.version.clone());
        row![e.name, e.version, installed, e.comment]
    }));
    rows
}

pub(super) fn pg_available_extension_versions(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows = vec![row![
        NAME,
        VERSION,
        true,
        true,
        true,
        false,
        "pg_catalog",
        Datum::Null,
        DESCRIPTION,
    ]];
    rows.extend(EXTENSIONS.iter().map(|e| {
        let installed = catalog.extension_by_name(e.name);
        let requires: Vec<Datum> = e.requires.iter().map(|name| Datum::from(*name)).collect();
        row![
            e.name,
            e.version,
            installed.is_some_and(|def| def.version == e.version),
            true,
            e.trusted,
            e.relocatable,
            Datum::Null,
            match requires.is_empty() {
                true => Datum::Null,
                false => Datum::array(Array::from_items(oid::NAME, requires)),
            },
            e.comment,
        ]
    }));
    rows
}

/// What belongs to them and what they need, as `pg_depend` says it.
pub(super) fn members(catalog: &Catalog) -> Rows {
    let own = (CLASS, EXTENSION, 0);
    let language = (LANGUAGE_CLASS, PLPGSQL, 0);
    let handlers = HANDLERS.map(|(oid, _)| (builtin::class::PROCEDURE, Oid(oid), 0));
    let mut rows: Rows = std::iter::once(language)
        .chain(handlers)
        .map(|member| dependency(member, own, b'e'))
        .collect();
    for def in catalog.extensions() {
        let own = (CLASS, def.oid, 0);
        rows.push(dependency(own, (class::NAMESPACE, def.schema, 0), b'n'));
        let required = def.requires.iter();
        rows.extend(required.map(|oid| dependency(own, (CLASS, *oid, 0), b'n')));
        let members = def.members.iter();
        rows.extend(built_in_members(&def.name).map(|member| dependency(member, own, b'e')));
        rows.extend(members.map(|oid| {
            let class = match catalog.object(*oid) {
                Some(Object::Type(_)) => class::TYPE,
                _ => class::PROCEDURE,
            };
            dependency((class, *oid, 0), own, b'e')
        }));
    }
    rows
}

/// Operators, casts and operator classes, which are the server's wherever their types are, as
/// `pg_depend` names them.
fn built_in_members(name: &str) -> impl Iterator<Item = (Oid, Oid, u16)> {
    let known = throng_values::func::extension::known(name).into_iter();
    known.flat_map(|e| {
        let operators = e.operators.iter().map(|o| (class::OPERATOR, o.oid, 0));
        let casts = e.cast_oids().map(|(oid, _)| (class::CAST, oid, 0));
        let classes = CLASSES
            .iter()
            .filter(|class| class.extension == Some(e.name));
        let classes = classes.flat_map(|of| {
            let family = (class::OPERATOR_FAMILY, Oid(of.family), 0);
            [(class::OPERATOR_CLASS, Oid(of.oid), 0), family]
        });
        operators.chain(casts).chain(classes)
    })
}

/// The extensions that are installed, with what is known of them.
pub(super) fn installed(catalog: &Catalog) -> Vec<(Arc<ExtensionDef>, &'static Extension)> {
    let defs = catalog.extensions().into_iter();
    let with_description = |def: &Arc<ExtensionDef>| {
        let known = throng_values::func::extension::known(&def.name)?;
        Some((def.clone(), known))
    };
    defs.filter_map(with_description).collect()
}

/// The function behind an operator of an extension.
pub(super) fn code_of(catalog: &Catalog, def: &ExtensionDef, operator: &Operator) -> Oid {
    let operands = [operator.left, operator.right].into_iter();
    let operands: Vec<Oid> = operands.filter(|ty| *ty != Oid::NONE).collect();
    let named = catalog.routines_in(def.schema, operator.code_name);
    let found = named.into_iter().find(|r| r.input_types() == operands);
    found.map_or(Oid::NONE, |routine| routine.oid)
}

/// The rows of `pg_description` about languages and PL/pgSQL.
pub(super) fn descriptions() -> Rows {
    let languages = [
        (Oid(12), "built-in functions"),
        (Oid(13), "dynamically-loaded C functions"),
        (super::user_routine::SQL, "SQL-language functions"),
        (PLPGSQL, DESCRIPTION),
    ];
    let languages = languages.map(|(oid, text)| row![oid, LANGUAGE_CLASS, 0, text]);
    let extension = row![EXTENSION, CLASS, 0, DESCRIPTION];
    languages.into_iter().chain([extension]).collect()
}

/// The extension with this name.
pub fn named(catalog: &Catalog, name: &str) -> Option<Oid> {
    match name {
        NAME => Some(EXTENSION),
        _ => catalog.extension_by_name(name).map(|def| def.oid),
    }
}

/// What the extension with this oid is called.
pub fn name(catalog: &Catalog, oid: Oid) -> Option<String> {
    match oid {
        EXTENSION => Some(NAME.to_owned()),
        _ => catalog.extension(oid).map(|def| def.name.clone()),
    }
}

/// The language with this name.
pub fn language(name: &str) -> Option<Oid> {
    match name {
        "internal" => Some(Oid(12)),
        "c" => Some(Oid(13)),
        "sql" => Some(super::user_routine::SQL),
        "plpgsql" => Some(PLPGSQL),
        _ => None,
    }
}

/// What `obj_description` says of a language or of PL/pgSQL.
pub fn description(class: &str, object: Oid) -> Option<String> {
    let class = match class {
        "pg_language" => LANGUAGE_CLASS,
        "pg_extension" => CLASS,
        _ => return None,
    };
    let rows = descriptions();
    let row = rows
        .iter()
        .find(|row| row[0] == Datum::from(object) && row[1] == Datum::from(class));
    row.and_then(|row| row[3].as_str()).map(str::to_owned)
}
