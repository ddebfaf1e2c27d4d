//! PL/pgSQL, which every database is born with, as the extension that PostgreSQL's tools look for:
//! a dump leaves its members out.

use throng_types::{Datum, Oid};
use throng_values::extension::{DESCRIPTION, NAME, VERSION};

use super::constraint::dependency;
use super::user_routine::PLPGSQL;
use super::{Rows, SystemState, row};
use crate::builtin::class;
use crate::{Catalog, builtin};

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

pub(super) fn pg_extension(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![row![
        EXTENSION,
        NAME,
        builtin::SUPERUSER,
        builtin::PG_CATALOG,
        false,
        VERSION,
        Datum::Null,
        Datum::Null,
    ]]
}

pub(super) fn pg_available_extensions(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![row![NAME, VERSION, VERSION, DESCRIPTION]]
}

pub(super) fn pg_available_extension_versions(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![row![
        NAME,
        VERSION,
        true,
        true,
        true,
        false,
        "pg_catalog",
        Datum::Null,
        DESCRIPTION,
    ]]
}

/// What belongs to it, as `pg_depend` says it.
pub(super) fn members() -> Rows {
    let own = (CLASS, EXTENSION, 0);
    let language = (LANGUAGE_CLASS, PLPGSQL, 0);
    let handlers = HANDLERS.map(|(oid, _)| (builtin::class::PROCEDURE, Oid(oid), 0));
    std::iter::once(language)
        .chain(handlers)
        .map(|member| dependency(member, own, b'e'))
        .collect()
}

/// The rows of `pg_description` about languages and extensions.
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

/// What `obj_description` says of a language or an extension.
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
