//! Functions and operators of full-text search.

mod headline;
mod parse;
mod query;
mod rank;
mod rewrite;
mod table;
mod vector;

pub(super) use table::{FUNCTIONS, OPERATORS, SETS};

use super::{EvalContext, EvalStop};
use crate::text_search::{Configuration, Dictionary};
use throng_types::error::state;
use throng_types::text_search::{TsQuery, TsVector};
use throng_types::{Datum, Error, Oid, oid};

fn text(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}

fn vector(value: &Datum) -> TsVector<'_> {
    match value {
        Datum::Base(value) => TsVector::new(&value.bytes),
        _ => unreachable!("not a tsvector: {value:?}"),
    }
}

fn query(value: &Datum) -> TsQuery {
    match value {
        Datum::Base(value) => TsQuery::from_bytes(&value.bytes),
        _ => unreachable!("not a tsquery: {value:?}"),
    }
}

fn from_query(query: &TsQuery) -> Datum {
    Datum::base(oid::TSQUERY, query.to_bytes())
}

fn from_vector(bytes: Vec<u8>) -> Datum {
    Datum::base(oid::TSVECTOR, bytes)
}

/// The configuration of an argument of type `regconfig`.
fn configuration(value: &Datum) -> Result<Configuration, EvalStop> {
    let Datum::Oid(number) = *value else {
        unreachable!("not a regconfig: {value:?}");
    };
    let missing = || {
        let message = format!("cache lookup failed for text search configuration {number}");
        Error::new(state::UNDEFINED_OBJECT, message).into()
    };
    Configuration::by_oid(Oid(number)).ok_or_else(missing)
}

/// That of the session.
fn current_configuration(ctx: &EvalContext<'_>) -> Result<Configuration, EvalStop> {
    let name = ctx.host.show_setting("default_text_search_config");
    let name = name.unwrap_or_default();
    let found = ctx
        .host
        .object_oid(super::ObjectKind::TextSearchConfiguration, &name)?;
    configuration(&Datum::Oid(found.0))
}

/// Functions that may be given a configuration before their other arguments.
fn with_configuration<'a>(
    ctx: &EvalContext<'_>,
    args: &'a [Datum],
) -> Result<(Configuration, &'a [Datum]), EvalStop> {
    match args {
        [first @ Datum::Oid(_), rest @ ..] => Ok((configuration(first)?, rest)),
        _ => Ok((current_configuration(ctx)?, args)),
    }
}

fn dictionary(value: &Datum) -> Result<&'static Dictionary, EvalStop> {
    let Datum::Oid(number) = *value else {
        unreachable!("not a regdictionary: {value:?}");
    };
    let missing = || {
        let message = format!("cache lookup failed for text search dictionary {number}");
        Error::new(state::UNDEFINED_OBJECT, message).into()
    };
    Dictionary::by_oid(Oid(number)).ok_or_else(missing)
}
