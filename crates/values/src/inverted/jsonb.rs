//! `jsonb_ops`: the keys of a value are the keys of its objects and its scalars, each by itself.
//!
//! ```text
//!   {"a": [1, "x"], "b": {"c": null}}     keys a, b, c and x, number 1, null
//! ```
//! A string in an array counts as a key, so that `?` finds it (as in PostgreSQL). What is long is
//! kept as a hash.

use throng_types::jsonb::{JsonRef, View};
use throng_types::{Datum, Result, interrupt, oid};

use super::path::{Step, Terms, exists, matches};
use super::{Keys, OperatorClass, Search, Strategy};
use crate::func::EvalContext;
use crate::hash::hash_any_extended;

pub(super) const CONTAINS: i16 = 7;
const HAS: i16 = 9;
const HAS_ANY: i16 = 10;
const HAS_ALL: i16 = 11;
pub(super) const PATH_EXISTS: i16 = 15;
pub(super) const PATH_MATCHES: i16 = 16;

pub(super) const CONTAINS_JSONB: Strategy = Strategy {
    number: CONTAINS,
    operator: "@>",
    query: oid::JSONB,
};
pub(super) const EXISTS_PATH: Strategy = Strategy {
    number: PATH_EXISTS,
    operator: "@?",
    query: oid::JSONPATH,
};
pub(super) const MATCHES_PATH: Strategy = Strategy {
    number: PATH_MATCHES,
    operator: "@@",
    query: oid::JSONPATH,
};

pub static JSONB_OPS: OperatorClass = OperatorClass {
    oid: 10090,
    name: "jsonb_ops",
    family: 4036,
    input: oid::JSONB,
    key: oid::TEXT,
    default: true,
    extension: None,
    strategies: &[
        CONTAINS_JSONB,
        Strategy {
            number: HAS,
            operator: "?",
            query: oid::TEXT,
        },
        Strategy {
            number: HAS_ANY,
            operator: "?|",
            query: oid::TEXT_ARRAY,
        },
        Strategy {
            number: HAS_ALL,
            operator: "?&",
            query: oid::TEXT_ARRAY,
        },
        EXISTS_PATH,
        MATCHES_PATH,
    ],
    support: &[
        (1, 3480, "gin_compare_jsonb"),
        (2, 3482, "gin_extract_jsonb"),
        (3, 3483, "gin_extract_jsonb_query"),
        (4, 3484, "gin_consistent_jsonb"),
        (6, 3488, "gin_triconsistent_jsonb"),
    ],
    extract_value,
    extract_query,
};

/// What a key stands for.
#[derive(Clone, Copy)]
enum Kind {
    Null = b'n' as isize,
    Bool = b'b' as isize,
    Number = b'd' as isize,
    /// A string that is a member's value, or the whole.
    String = b's' as isize,
    /// A member's key, or a string in an array.
    Key = b'k' as isize,
}

/// Longer ones are kept as a hash.
const LONGEST: usize = 125;
/// After the kind: the bytes as they are, or their hash.
const PLAIN: u8 = 0;
const HASHED: u8 = 1;

fn write(kind: Kind, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind as u8);
    // What is whole ends with its length, so that no key is a prefix of another.
    if bytes.len() > LONGEST {
        out.push(HASHED);
        out.extend_from_slice(&hash_any_extended(bytes, 0).to_be_bytes());
    } else {
        out.push(PLAIN);
        out.push(bytes.len() as u8);
        out.extend_from_slice(bytes);
    }
}

fn write_string(kind: Kind, text: &str, out: &mut Vec<u8>) {
    write(kind, text.as_bytes(), out);
}

/// A scalar that is no string in an array.
pub(super) fn write_scalar(view: &View<'_>, out: &mut Vec<u8>) {
    match view {
        View::Null => write(Kind::Null, &[], out),
        View::Bool(value) => write(Kind::Bool, &[u8::from(*value)], out),
        View::Number(number) => {
            let mut bytes = Vec::new();
            number.write_ordered(&mut bytes);
            write(Kind::Number, &bytes, out);
        }
        View::String(text) => write_string(Kind::String, text, out),
        View::Array(_) | View::Object(_) => {}
    }
}

/// What is told of each key: what writes it.
type Found<'a> = &'a mut dyn FnMut(&dyn Fn(&mut Vec<u8>)) -> Result<()>;

/// Calls `found` with what writes each key of a value. `is_item`: it stands in an array, or is a
/// scalar that is the whole.
fn walk(value: JsonRef<'_>, is_item: bool, found: Found<'_>) -> Result<()> {
    match value.view() {
        View::Array(elements) => {
            interrupt::poll()?;
            elements.iter().try_for_each(|e| walk(e, true, found))
        }
        View::Object(members) => {
            interrupt::poll()?;
            for (key, value) in members.iter() {
                found(&|out| write_string(Kind::Key, key, out))?;
                walk(value, false, found)?;
            }
            Ok(())
        }
        View::String(text) if is_item => found(&|out| write_string(Kind::Key, text, out)),
        view => found(&|out| write_scalar(&view, out)),
    }
}

fn extract_value(value: &Datum, keys: &mut Keys) -> Result<()> {
    let Datum::Jsonb(value) = value else {
        return Ok(());
    };
    walk(value.root(), true, &mut |write| {
        keys.key(|out| {
            write(out);
            Ok(())
        })
    })
}

fn key_search(text: &str) -> Result<Search> {
    Search::key(|out| {
        write_string(Kind::Key, text, out);
        Ok(())
    })
}

fn key_searches(query: &Datum) -> Result<Vec<Search>> {
    let Datum::Array(array) = query else {
        return Ok(Vec::new());
    };
    let texts = array.items.iter().filter_map(Datum::as_str);
    texts.map(key_search).collect()
}

fn extract_query(query: &Datum, strategy: i16, _: &EvalContext<'_>) -> Result<Search> {
    Ok(match (strategy, query) {
        (CONTAINS, Datum::Jsonb(value)) => {
            let mut keys = Vec::new();
            walk(value.root(), true, &mut |write| {
                keys.push(Search::key(|out| {
                    write(out);
                    Ok(())
                })?);
                Ok(())
            })?;
            Search::All(keys)
        }
        (HAS, query) => match query.as_str() {
            Some(text) => key_search(text)?,
            None => Search::Nothing,
        },
        (HAS_ANY, query) => Search::Any(key_searches(query)?),
        (HAS_ALL, query) => Search::All(key_searches(query)?),
        (PATH_EXISTS, Datum::Text(path)) => exists(path, &ByKeys)?,
        (PATH_MATCHES, Datum::Text(path)) => matches(path, &ByKeys)?,
        _ => Search::Everything,
    })
}

/// What a path asks of a value that is known by its keys and its scalars.
struct ByKeys;

impl Terms for ByKeys {
    fn there(&self, steps: &[Step<'_>]) -> Result<Search> {
        let keys = steps.iter().filter_map(|step| match step {
            Step::Key(key) => Some(key_search(key)),
            _ => None,
        });
        Ok(Search::All(keys.collect::<Result<_>>()?))
    }

    fn equal(&self, steps: &[Step<'_>], value: &View<'_>) -> Result<Search> {
        let scalar = Search::key(|out| {
            write_scalar(value, out);
            Ok(())
        })?;
        let scalar = match value {
            // It may be an array's.
            View::String(text) => Search::Any(vec![scalar, key_search(text)?]),
            _ => scalar,
        };
        Ok(Search::All(vec![self.there(steps)?, scalar]))
    }
}
