//! `array_ops`: the keys of an array are its elements.

use throng_types::key::{self, KeyOrder};
use throng_types::{Array, Datum, Result, oid};

use super::{Keys, OperatorClass, Search, Strategy};
use crate::func::EvalContext;

const OVERLAPS: i16 = 1;
const CONTAINS: i16 = 2;
const CONTAINED: i16 = 3;
const EQUAL: i16 = 4;

pub static ARRAY_OPS: OperatorClass = OperatorClass {
    oid: 10064,
    name: "array_ops",
    family: 2745,
    input: oid::ANYARRAY,
    key: oid::ANYELEMENT,
    default: true,
    extension: None,
    strategies: &[
        Strategy {
            number: OVERLAPS,
            operator: "&&",
            query: oid::ANYARRAY,
        },
        Strategy {
            number: CONTAINS,
            operator: "@>",
            query: oid::ANYARRAY,
        },
        Strategy {
            number: CONTAINED,
            operator: "<@",
            query: oid::ANYARRAY,
        },
        Strategy {
            number: EQUAL,
            operator: "=",
            query: oid::ANYARRAY,
        },
    ],
    support: &[
        (2, 2743, "ginarrayextract"),
        (3, 2774, "ginqueryarrayextract"),
        (4, 2744, "ginarrayconsistent"),
        (6, 3920, "ginarraytriconsistent"),
    ],
    extract_value,
    extract_query,
};

fn order_of(array: &Array) -> KeyOrder {
    KeyOrder::new(array.element, false, false)
}

fn extract_value(value: &Datum, keys: &mut Keys) -> Result<()> {
    let Datum::Array(array) = value else {
        return Ok(());
    };
    let order = order_of(array);
    for item in &array.items {
        match item.is_null() {
            true => keys.null(),
            false => keys.key(|out| key::encode_one(item, order, out))?,
        }
    }
    Ok(())
}

fn extract_query(query: &Datum, strategy: i16, _: &EvalContext<'_>) -> Result<Search> {
    let Datum::Array(array) = query else {
        return Ok(Search::Nothing);
    };
    let order = order_of(array);
    let mut keys = Vec::with_capacity(array.items.len());
    let mut has_null = false;
    for item in &array.items {
        match item.is_null() {
            true => has_null = true,
            false => keys.push(Search::key(|out| key::encode_one(item, order, out))?),
        }
    }
    Ok(match strategy {
        OVERLAPS => Search::Any(keys),
        // No element is equal to NULL.
        CONTAINS if has_null => Search::Nothing,
        CONTAINS => Search::All(keys),
        CONTAINED => {
            keys.push(Search::empty());
            Search::Any(keys)
        }
        EQUAL => {
            if has_null {
                keys.push(Search::null());
            }
            match keys.is_empty() {
                true => Search::empty(),
                false => Search::All(keys),
            }
        }
        _ => Search::Everything,
    })
}
