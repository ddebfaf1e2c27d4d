//! What is done with a `tsvector`.

use super::super::{EvalContext, EvalResult, EvalStop, SetIterator};
use super::{from_vector, query, text, vector};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::text_search::matching::matches;
use throng_types::text_search::vector::{MAX_LEXEME, weight_letter, weight_of_letter};
use throng_types::text_search::{Lexeme, Position, TsVector, TsVectorBuilder, Weight};
use throng_types::{Array, Datum, Error, Record, Result, Text, oid};

pub fn match_vector_query(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(matches(vector(&args[0]), &query(&args[1]))?.into())
}

pub fn match_query_vector(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(matches(vector(&args[1]), &query(&args[0]))?.into())
}

/// A vector made of another one's entries, each as it is told to be; None leaves one out.
fn rebuilt(
    from: TsVector<'_>,
    mut entry: impl FnMut(Lexeme<'_>) -> Option<Vec<Position>>,
) -> EvalResult {
    let mut builder = TsVectorBuilder::default();
    for lexeme in from.iter() {
        if let Some(positions) = entry(lexeme) {
            builder.push(lexeme.text.to_owned(), positions);
        }
    }
    Ok(from_vector(builder.build()?))
}

pub fn compare(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((super::super::compare::compare(&args[0], &args[1]) as i32).into())
}

pub fn strip(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    rebuilt(vector(&args[0]), |_| Some(Vec::new()))
}

pub fn length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((vector(&args[0]).count() as i32).into())
}

/// A weight given as `"char"`.
fn weight(value: &Datum) -> Result<Weight> {
    let letter = match value {
        Datum::Char(letter) => *letter,
        _ => 0,
    };
    weight_of_letter(letter).ok_or_else(|| {
        Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("unrecognized weight: \"{}\"", char::from(letter)),
        )
    })
}

/// The items of an array that may hold no NULL.
fn lexemes(value: &Datum) -> Result<Vec<&str>> {
    let Datum::Array(array) = value else {
        return Ok(Vec::new());
    };
    let texts = array.items.iter().map(|item| {
        item.as_str().ok_or_else(|| {
            let message = "lexeme array may not contain nulls";
            Error::new(state::NULL_VALUE_NOT_ALLOWED, message)
        })
    });
    texts.collect()
}

pub fn set_weight(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let weight = weight(&args[1])?;
    let mut of = match args.get(2) {
        Some(array) => Some(lexemes(array)?),
        None => None,
    };
    if let Some(of) = &mut of {
        of.sort_unstable();
    }
    rebuilt(vector(&args[0]), |entry| {
        let changes = of
            .as_ref()
            .is_none_or(|of| of.binary_search(&entry.text).is_ok());
        let positions = entry.positions();
        Some(match changes {
            true => positions
                .map(|position| position.with_weight(weight))
                .collect(),
            false => positions.collect(),
        })
    })
}

pub fn delete(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut unwanted = match &args[1] {
        Datum::Array(_) => lexemes(&args[1])?,
        one => vec![text(one)],
    };
    unwanted.sort_unstable();
    rebuilt(vector(&args[0]), |entry| {
        let stays = unwanted.binary_search(&entry.text).is_err();
        stays.then(|| entry.positions().collect())
    })
}

pub fn filter(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Array(array) = &args[1] else {
        return Ok(Datum::Null);
    };
    let mut wanted = 0u8;
    for item in &array.items {
        if item.is_null() {
            let message = "weight array may not contain nulls";
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        wanted |= 1 << weight(item)?;
    }
    rebuilt(vector(&args[0]), |entry| {
        let positions = entry.positions();
        let left: Vec<Position> = positions
            .filter(|p| wanted & 1 << p.weight() != 0)
            .collect();
        (!left.is_empty()).then_some(left)
    })
}

pub fn to_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let texts = vector(&args[0]).iter().map(|entry| Datum::text(entry.text));
    Ok(Datum::array(Array::from_items(oid::TEXT, texts.collect())))
}

pub fn from_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut builder = TsVectorBuilder::default();
    for lexeme in lexemes(&args[0])? {
        if lexeme.is_empty() {
            let message = "lexeme array may not contain empty strings";
            return Err(Error::new(state::ZERO_LENGTH_CHARACTER_STRING, message).into());
        }
        if lexeme.len() >= MAX_LEXEME {
            let (len, most) = (lexeme.len(), MAX_LEXEME - 1);
            let message = format!("word is too long ({len} bytes, max {most} bytes)");
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message).into());
        }
        builder.push(lexeme.to_owned(), Vec::new());
    }
    Ok(from_vector(builder.build()?))
}

/// The second vector's places come after the first one's.
pub fn concat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (first, second) = (vector(&args[0]), vector(&args[1]));
    let places = first
        .iter()
        .filter_map(|entry| entry.positions().next_back());
    let last = places.map(Position::place).max().unwrap_or(0);
    let mut builder = TsVectorBuilder::default();
    for entry in first.iter() {
        builder.push(entry.text.to_owned(), entry.positions().collect());
    }
    for entry in second.iter() {
        let moved = entry.positions().map(|position| {
            Position::new(position.place().saturating_add(last), position.weight())
        });
        builder.push(entry.text.to_owned(), moved.collect());
    }
    Ok(from_vector(builder.build()?))
}

pub fn unnest(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let types: Arc<[_]> = [oid::TEXT, oid::INT2_ARRAY, oid::TEXT_ARRAY].into();
    let mut rows = Vec::new();
    for entry in vector(&args[0]).iter() {
        let (mut places, mut weights) = (Datum::Null, Datum::Null);
        if entry.count() > 0 {
            let numbers = entry.positions().map(|p| Datum::Int2(p.place() as i16));
            let letters = entry.positions().map(|p| {
                let mut letter = [0; 4];
                Datum::text(weight_letter(p.weight()).encode_utf8(&mut letter))
            });
            places = Datum::array(Array::from_items(oid::INT2, numbers.collect()));
            weights = Datum::array(Array::from_items(oid::TEXT, letters.collect()));
        }
        rows.push(Datum::Record(Arc::new(Record {
            types: types.clone(),
            names: None,
            values: vec![Datum::Text(Text::new(entry.text)), places, weights],
        })));
    }
    Ok(Box::new(rows.into_iter().map(Ok)))
}
