//! How deeply rows lie in rows, and how long they would be when printed.
//!
//! Whatever walks a value calls itself once a level, down to the dropping of it, so nobody makes a
//! row that is higher than [`MOST_HIGH`]. Printed, a row in a row stands between quotes and has its
//! own doubled: so each level may double what is in it, and nobody makes a row that might be longer
//! than any value. A row may be in another one many times over, so what was measured is remembered.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::state;
use crate::{Array, Datum, Error, Result};

/// Rows and arrays inside each other.
pub const MOST_HIGH: u32 = 100;
/// The longest value there is.
const MOST_LONG: u64 = 1 << 30;
/// Items of an array that stand for all.
const LOOKS: usize = 256;
/// What a number or a date is taken to be long.
const SHORT: u64 = 16;

#[derive(Clone, Copy, Default)]
struct Size {
    height: u32,
    long: u64,
}

/// # Errors
/// 54001 for values that a row around them would make too high or too long.
pub fn check(values: &[Datum]) -> Result<()> {
    let nests = |v: &Datum| matches!(v, Datum::Record(_) | Datum::Array(_));
    if !values.iter().any(nests) {
        return Ok(());
    }
    let size = around(values, &mut HashMap::new());
    match size.height <= MOST_HIGH && size.long <= MOST_LONG {
        true => Ok(()),
        false => Err(Error::new(
            state::STATEMENT_TOO_COMPLEX,
            "rows are nested too deeply",
        )),
    }
}

/// The size of what holds these values.
fn around(values: &[Datum], known: &mut HashMap<usize, Size>) -> Size {
    let mut whole = Size::default();
    for value in values {
        let size = size_of(value, known);
        whole.height = whole.height.max(size.height);
        whole.long = whole.long.saturating_add(size.long.saturating_mul(2) + 1);
    }
    whole.height += 1;
    whole
}

fn size_of(value: &Datum, known: &mut HashMap<usize, Size>) -> Size {
    let (at, shared, values) = match value {
        Datum::Record(record) => {
            let shared = Arc::strong_count(record) > 1;
            (Arc::as_ptr(record) as usize, shared, &record.values)
        }
        Datum::Array(array) if holds_rows(array) => {
            let shared = Arc::strong_count(array) > 1;
            (Arc::as_ptr(array) as usize, shared, &array.items)
        }
        flat => {
            return Size {
                height: 0,
                long: length(flat),
            };
        }
    };
    if shared && let Some(size) = known.get(&at) {
        return *size;
    }
    let size = around(values, known);
    if shared {
        known.insert(at, size);
    }
    size
}

/// An array's items are of one kind, or NULL.
fn holds_rows(array: &Array) -> bool {
    let first = array.items.iter().find(|item| !item.is_null());
    matches!(first, Some(Datum::Record(_)))
}

fn length(value: &Datum) -> u64 {
    match value {
        Datum::Text(text) | Datum::Json(text) => text.len() as u64,
        Datum::Jsonb(json) => json.as_bytes().len() as u64,
        Datum::Bytea(bytes) => bytes.len() as u64,
        Datum::Base(value) => value.bytes.len() as u64,
        Datum::Array(array) => {
            let looked = array.items.iter().take(LOOKS);
            let sum: u64 = looked.clone().map(|item| 2 * length(item)).sum();
            sum / looked.len().max(1) as u64 * array.items.len() as u64
        }
        _ => SHORT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Record, oid};

    fn row(values: Vec<Datum>) -> Datum {
        Datum::Record(Arc::new(Record {
            types: vec![oid::RECORD; values.len()].into(),
            names: None,
            values,
        }))
    }

    #[test]
    fn rows_that_are_in_others_twice_are_measured_once() {
        let mut value = row(vec![Datum::Int4(1)]);
        let mut levels = 0;
        while check(std::slice::from_ref(&value)).is_ok() {
            value = row(vec![value.clone(), value]);
            levels += 1;
        }
        assert!((5..40).contains(&levels), "{levels}");
    }

    #[test]
    fn a_few_rows_in_rows_are_none_too_many() {
        let mut value = row(vec![Datum::Int4(1), Datum::text("abc")]);
        for _ in 0..12 {
            value = row(vec![value, Datum::Null]);
        }
        assert!(check(&[value]).is_ok());
    }
}
