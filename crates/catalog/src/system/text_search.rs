//! Text search: `pg_ts_config`, `pg_ts_config_map`, `pg_ts_dict`, `pg_ts_parser`, `pg_ts_template`.

use throng_types::Oid;
use throng_values::text_search::configuration::{Configuration, DEFAULT_PARSER};
use throng_values::text_search::dictionary::{DICTIONARIES, SIMPLE_TEMPLATE, SNOWBALL_TEMPLATE};
use throng_values::text_search::token::KINDS;

use super::{Rows, SystemState, row};
use crate::{Catalog, builtin};

const DICTIONARY_CLASS: u32 = 3600;
const PARSER_CLASS: u32 = 3601;
const CONFIGURATION_CLASS: u32 = 3602;
const TEMPLATE_CLASS: u32 = 3764;

pub(super) fn pg_ts_config(_: &Catalog, _: &dyn SystemState) -> Rows {
    let rows = Configuration::all().map(|configuration| {
        row![
            configuration.oid,
            configuration.name,
            builtin::PG_CATALOG,
            builtin::SUPERUSER,
            DEFAULT_PARSER,
        ]
    });
    rows.collect()
}

pub(super) fn pg_ts_config_map(_: &Catalog, _: &dyn SystemState) -> Rows {
    let rows = Configuration::all().flat_map(|configuration| {
        KINDS.iter().filter_map(move |(kind, ..)| {
            let dictionary = configuration.dictionary(*kind)?;
            Some(row![configuration.oid, kind.number(), 1, dictionary.oid])
        })
    });
    rows.collect()
}

pub(super) fn pg_ts_dict(_: &Catalog, _: &dyn SystemState) -> Rows {
    let rows = DICTIONARIES.iter().map(|dictionary| {
        row![
            dictionary.oid,
            dictionary.name,
            builtin::PG_CATALOG,
            builtin::SUPERUSER,
            dictionary.template(),
            dictionary.options(),
        ]
    });
    rows.collect()
}

pub(super) fn pg_ts_parser(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![row![
        DEFAULT_PARSER,
        "default",
        builtin::PG_CATALOG,
        Oid(3717),
        Oid(3718),
        Oid(3719),
        Oid(3720),
        Oid(3721),
    ]]
}

pub(super) fn pg_ts_template(_: &Catalog, _: &dyn SystemState) -> Rows {
    let template = |oid: Oid, name: &str, init: u32, lexize: u32| {
        row![oid, name, builtin::PG_CATALOG, Oid(init), Oid(lexize)]
    };
    vec![
        template(SIMPLE_TEMPLATE, "simple", 3725, 3726),
        template(SNOWBALL_TEMPLATE, "snowball", 12360, 12361),
    ]
}

/// The rows of `pg_description` about them.
pub(super) fn descriptions() -> Rows {
    let described = |oid: Oid, class: u32, text: String| row![oid, Oid(class), 0, text];
    let configurations = Configuration::all().map(|configuration| {
        let text = match configuration.name {
            "simple" => "simple configuration".to_owned(),
            language => format!("configuration for {language} language"),
        };
        described(configuration.oid, CONFIGURATION_CLASS, text)
    });
    let dictionaries = DICTIONARIES.iter().map(|dictionary| {
        let text = match dictionary.language {
            None => "simple dictionary: just lower case and check for stopword".to_owned(),
            Some(language) => format!("snowball stemmer for {} language", language.name),
        };
        described(dictionary.oid, DICTIONARY_CLASS, text)
    });
    let others = [
        (DEFAULT_PARSER, PARSER_CLASS, "default word parser"),
        (
            SIMPLE_TEMPLATE,
            TEMPLATE_CLASS,
            "simple dictionary: just lower case and check for stopword",
        ),
        (SNOWBALL_TEMPLATE, TEMPLATE_CLASS, "snowball stemmer"),
    ];
    let others = others.map(|(oid, class, text)| described(oid, class, text.to_owned()));
    configurations.chain(dictionaries).chain(others).collect()
}
