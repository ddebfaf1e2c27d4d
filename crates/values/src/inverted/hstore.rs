//! `gin_hstore_ops` of the extension `hstore`: the keys of a value are hashes of its own keys, and
//! of these with their values.

use throng_types::sqltype::made::HSTORE;
use throng_types::{Datum, Result, oid};

use super::{Keys, OperatorClass, Search, Strategy};
use crate::func::EvalContext;
use crate::func::extension::class_oid;
use crate::func::extension::hstore::NUMBER;
use crate::hash::hash_any_extended;
use crate::io::hstore::pairs;

const CONTAINS: i16 = 7;
const EXISTS: i16 = 9;
const EXISTS_ANY: i16 = 10;
const EXISTS_ALL: i16 = 11;

const fn asked(number: i16, operator: &'static str, query: throng_types::Oid) -> Strategy {
    Strategy {
        number,
        operator,
        query,
    }
}

pub static HSTORE_OPS: OperatorClass = OperatorClass {
    oid: class_oid(NUMBER, 0),
    name: "gin_hstore_ops",
    family: class_oid(NUMBER, 1),
    input: HSTORE,
    key: oid::TEXT,
    default: true,
    extension: Some("hstore"),
    strategies: &[
        asked(CONTAINS, "@>", HSTORE),
        asked(EXISTS, "?", oid::TEXT),
        asked(EXISTS_ANY, "?|", oid::TEXT_ARRAY),
        asked(EXISTS_ALL, "?&", oid::TEXT_ARRAY),
    ],
    support: &[],
    extract_value,
    extract_query,
};

fn hash(key: &str) -> u64 {
    // Zero is no seed.
    hash_any_extended(key.as_bytes(), 1)
}

fn write_key(key: &str, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'K');
    out.extend_from_slice(&hash(key).to_be_bytes());
    Ok(())
}

fn write_pair(key: &str, value: &str, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'P');
    let hash = hash_any_extended(value.as_bytes(), hash(key).max(1));
    out.extend_from_slice(&hash.to_be_bytes());
    Ok(())
}

fn extract_value(value: &Datum, keys: &mut Keys) -> Result<()> {
    let Datum::Base(value) = value else {
        return Ok(());
    };
    for (key, value) in pairs(&value.bytes) {
        keys.key(|out| write_key(key, out))?;
        if let Some(value) = value {
            keys.key(|out| write_pair(key, value, out))?;
        }
    }
    Ok(())
}

fn extract_query(query: &Datum, strategy: i16, _: &EvalContext<'_>) -> Result<Search> {
    let has_key = |key: &str| Search::key(|out| write_key(key, out));
    Ok(match query {
        Datum::Base(value) => {
            let asked = pairs(&value.bytes).map(|(key, value)| match value {
                Some(value) => Search::key(|out| write_pair(key, value, out)),
                None => has_key(key),
            });
            Search::All(asked.collect::<Result<_>>()?)
        }
        Datum::Text(key) => has_key(key)?,
        Datum::Array(keys) => {
            let keys = keys.items.iter().filter_map(|key| match key {
                Datum::Text(key) => Some(has_key(key)),
                _ => None,
            });
            let keys = keys.collect::<Result<_>>()?;
            match strategy {
                EXISTS_ANY => Search::Any(keys),
                _ => Search::All(keys),
            }
        }
        _ => Search::Everything,
    })
}
