//! From texts to vectors and queries, and the steps between.

use super::super::{EvalContext, EvalResult, EvalStop, SetIterator};
use super::{
    configuration, current_configuration, dictionary, from_query, from_vector, query, text,
    with_configuration,
};
use crate::io::json::{JsonPart, Token, Walker};
use crate::text_search::configuration::DEFAULT_PARSER;
use crate::text_search::document::Words;
use crate::text_search::parser::Parser;
use crate::text_search::query::{
    Lexemes, Operands, Operator, QueryBuilder, no_lexemes, only_stop_words, parse, parse_web_search,
};
use crate::text_search::token::KINDS;
use crate::text_search::{Configuration, Dictionary};
use std::borrow::Cow;
use std::sync::Arc;
use throng_types::error::state;
use throng_types::jsonb::View;
use throng_types::text_search::TsVector;
use throng_types::text_search::matching::matches;
use throng_types::{Array, Datum, Error, Oid, Record, Result, Text, oid};

fn words(ctx: &EvalContext<'_>, by: &Configuration, text: &str) -> Result<Vec<u8>> {
    let mut words = Words::default();
    words.add(ctx, by, text)?;
    words.into_vector()
}

pub fn to_vector(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (by, args) = with_configuration(ctx, args)?;
    Ok(from_vector(words(ctx, &by, text(&args[0]))?))
}

pub fn match_text_query(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let by = current_configuration(ctx)?;
    let vector = words(ctx, &by, text(&args[0]))?;
    Ok(matches(TsVector::new(&vector), &query(&args[1]))?.into())
}

pub fn match_text_text(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let by = current_configuration(ctx)?;
    let vector = words(ctx, &by, text(&args[0]))?;
    let plain = plain(ctx, &by, text(&args[1]), Operator::And)?;
    let Datum::Base(value) = plain else {
        return Ok(Datum::Null);
    };
    let wanted = throng_types::text_search::TsQuery::from_bytes(&value.bytes);
    Ok(matches(TsVector::new(&vector), &wanted)?.into())
}

/// Which values of a document are searched.
#[derive(Clone, Copy, Default)]
struct Searched {
    strings: bool,
    numbers: bool,
    booleans: bool,
    keys: bool,
}

impl Searched {
    const ALL: Searched = Searched {
        strings: true,
        numbers: true,
        booleans: true,
        keys: true,
    };
    const STRINGS: Searched = Searched {
        strings: true,
        numbers: false,
        booleans: false,
        keys: false,
    };

    /// From a JSON string or an array of such.
    fn told(filter: &Datum) -> Result<Searched> {
        let wrong = |message: &str| Error::new(state::INVALID_PARAMETER_VALUE, message);
        let Datum::Jsonb(filter) = filter else {
            return Err(wrong(
                "wrong flag type, only arrays and scalars are allowed",
            ));
        };
        let mut searched = Searched::default();
        const HINT: &str = "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", \
                            and \"all\".";
        let mut take = |item: View<'_>| {
            let View::String(flag) = item else {
                return Err(wrong("flag array element is not a string").hint(HINT));
            };
            match &*flag.to_ascii_lowercase() {
                "all" => searched = Searched::ALL,
                "key" => searched.keys = true,
                "string" => searched.strings = true,
                "numeric" => searched.numbers = true,
                "boolean" => searched.booleans = true,
                _ => {
                    let message = format!("wrong flag in flag array: \"{flag}\"");
                    return Err(wrong(&message).hint(HINT));
                }
            }
            Ok(())
        };
        match filter.root().view() {
            View::Array(items) => items.iter().try_for_each(|item| take(item.view()))?,
            View::Object(_) => {
                return Err(wrong(
                    "wrong flag type, only arrays and scalars are allowed",
                ));
            }
            scalar => take(scalar)?,
        }
        Ok(searched)
    }
}

fn document(ctx: &EvalContext<'_>, by: &Configuration, doc: &Datum, of: Searched) -> EvalResult {
    let text = match doc {
        Datum::Json(text) => Cow::Borrowed(text.as_str()),
        Datum::Jsonb(value) => {
            let mut text = Vec::new();
            value.root().write_text(&mut text);
            Cow::Owned(String::from_utf8_lossy(&text).into_owned())
        }
        _ => return Ok(Datum::Null),
    };
    let mut words = Words::default();
    let mut add = |text: &str| -> Result<()> {
        words.leave_gap();
        words.add(ctx, by, text)
    };
    let mut walker = Walker::new(&text, true);
    while let Some(part) = walker.next_part()? {
        match part {
            JsonPart::Key(key) if of.keys => add(&key)?,
            JsonPart::Scalar(Token::String, _) if of.strings => {
                let string = walker.take_string();
                add(&string)?;
            }
            JsonPart::Scalar(Token::Number, number) if of.numbers => add(number)?,
            JsonPart::Scalar(Token::True | Token::False, word) if of.booleans => add(word)?,
            _ => {}
        }
    }
    Ok(from_vector(words.into_vector()?))
}

pub fn json_strings(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (by, args) = with_configuration(ctx, args)?;
    document(ctx, &by, &args[0], Searched::STRINGS)
}

pub fn json_filtered(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (by, args) = with_configuration(ctx, args)?;
    document(ctx, &by, &args[0], Searched::told(&args[1])?)
}

fn finished(ctx: &EvalContext<'_>, builder: QueryBuilder, text: Option<&str>) -> EvalResult {
    let (query, had_stops) = builder.finish()?;
    match (query.is_empty(), text) {
        (true, Some(text)) if !had_stops => ctx.host.warn(no_lexemes(text)),
        (true, _) => ctx.host.warn(only_stop_words()),
        _ => {}
    }
    Ok(from_query(&query))
}

pub fn to_query(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (by, args) = with_configuration(ctx, args)?;
    let mut operands = Lexemes {
        ctx,
        configuration: &by,
        joined_by: Operator::Phrase(1),
    };
    let written = text(&args[0]);
    finished(ctx, parse(written, &mut operands)?, Some(written))
}

fn plain(ctx: &EvalContext<'_>, by: &Configuration, text: &str, joined_by: Operator) -> EvalResult {
    let mut operands = Lexemes {
        ctx,
        configuration: by,
        joined_by,
    };
    let mut builder = QueryBuilder::default();
    operands.add(&mut builder, text, 0, false)?;
    finished(ctx, builder, None)
}

pub fn plain_to_query(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (by, args) = with_configuration(ctx, args)?;
    plain(ctx, &by, text(&args[0]), Operator::And)
}

pub fn phrase_to_query(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (by, args) = with_configuration(ctx, args)?;
    plain(ctx, &by, text(&args[0]), Operator::Phrase(1))
}

pub fn web_search_to_query(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (by, args) = with_configuration(ctx, args)?;
    let mut operands = Lexemes {
        ctx,
        configuration: &by,
        joined_by: Operator::Phrase(1),
    };
    finished(ctx, parse_web_search(text(&args[0]), &mut operands)?, None)
}

pub fn current(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::from(current_configuration(ctx)?.oid))
}

fn texts(lexemes: Vec<String>) -> Datum {
    let items = lexemes.into_iter().map(Datum::from).collect();
    Datum::array(Array::from_items(oid::TEXT, items))
}

pub fn lexize(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let dictionary: &Dictionary = dictionary(&args[0])?;
    Ok(texts(dictionary.lexize(text(&args[1]))))
}

/// There is one parser.
fn check_parser(value: &Datum) -> Result<(), EvalStop> {
    let message = match value {
        Datum::Oid(number) if Oid(*number) == DEFAULT_PARSER => return Ok(()),
        Datum::Oid(number) => format!("cache lookup failed for text search parser {number}"),
        name => match text(name).trim_start_matches("pg_catalog.") {
            "default" | "\"default\"" => return Ok(()),
            name => format!("text search parser \"{name}\" does not exist"),
        },
    };
    Err(Error::new(state::UNDEFINED_OBJECT, message).into())
}

fn rows(types: &[Oid], rows: Vec<Vec<Datum>>) -> SetIterator {
    let types: Arc<[Oid]> = types.into();
    Box::new(rows.into_iter().map(move |values| {
        Ok(Datum::Record(Arc::new(Record {
            types: types.clone(),
            names: None,
            values,
        })))
    }))
}

pub fn token_types(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    check_parser(&args[0])?;
    let kinds = KINDS.iter().map(|(kind, alias, description)| {
        vec![kind.number().into(), (*alias).into(), (*description).into()]
    });
    Ok(rows(&[oid::INT4, oid::TEXT, oid::TEXT], kinds.collect()))
}

pub fn tokens(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    check_parser(&args[0])?;
    let written = text(&args[1]);
    let mut parser = Parser::new(written);
    let mut found = Vec::new();
    while let Some(token) = parser.next_token()? {
        found.push(vec![
            token.kind.number().into(),
            Datum::Text(Text::new(&written[token.range])),
        ]);
    }
    Ok(rows(&[oid::INT4, oid::TEXT], found))
}

pub fn debug(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let (by, args) = match args {
        [first, written] => (configuration(first)?, written),
        _ => (current_configuration(ctx)?, &args[0]),
    };
    let written = text(args);
    let mut parser = Parser::new(written);
    let mut found = Vec::new();
    while let Some(token) = parser.next_token()? {
        let word = &written[token.range];
        let dictionary = by.dictionary(token.kind);
        let number = |dictionary: &Dictionary| Datum::from(dictionary.oid);
        let all = dictionary.iter().map(|d| number(d)).collect();
        found.push(vec![
            token.kind.alias().into(),
            token.kind.description().into(),
            word.into(),
            Datum::array(Array::from_items(oid::REGDICTIONARY, all)),
            dictionary.map_or(Datum::Null, number),
            dictionary.map_or(Datum::Null, |dictionary| texts(dictionary.lexize(word))),
        ]);
    }
    let types = [
        oid::TEXT,
        oid::TEXT,
        oid::TEXT,
        oid::REGDICTIONARY_ARRAY,
        oid::REGDICTIONARY,
        oid::TEXT_ARRAY,
    ];
    Ok(rows(&types, found))
}
