//! Equality, order and containment.
//!
//! The order is that of PostgreSQL's B-trees: null, strings, numbers, booleans, arrays, objects; of
//! containers the longer one is greater; then part by part, an object's keys and values in the
//! order they are kept. An empty array that is the whole value comes before everything, as it does
//! there.

use super::*;
use crate::ordered::write_bytes;
use std::cmp::Ordering;

/// What ranks first, by kind.
const EMPTY_ROOT: u8 = 0x40;
const NULL_CLASS: u8 = 0x41;
const STRING_CLASS: u8 = 0x42;
const NUMBER_CLASS: u8 = 0x43;
const FALSE_CLASS: u8 = 0x44;
const TRUE_CLASS: u8 = 0x45;
const ARRAY_CLASS: u8 = 0x46;
const OBJECT_CLASS: u8 = 0x47;

fn class(value: &View<'_>, root: bool) -> u8 {
    match value {
        View::Array(elements) if root && elements.is_empty() => EMPTY_ROOT,
        View::Null => NULL_CLASS,
        View::String(_) => STRING_CLASS,
        View::Number(_) => NUMBER_CLASS,
        View::Bool(false) => FALSE_CLASS,
        View::Bool(true) => TRUE_CLASS,
        View::Array(_) => ARRAY_CLASS,
        View::Object(_) => OBJECT_CLASS,
    }
}

impl Jsonb {
    /// The order of two values.
    pub fn compare(&self, other: &Jsonb) -> Ordering {
        compare(self.root(), other.root(), true)
    }
}

fn compare(a: JsonRef<'_>, b: JsonRef<'_>, root: bool) -> Ordering {
    let (a, b) = (a.view(), b.view());
    let classes = class(&a, root).cmp(&class(&b, root));
    if classes.is_ne() {
        return classes;
    }
    match (a, b) {
        (View::String(a), View::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (View::Number(a), View::Number(b)) => a.compare(&b),
        (View::Array(a), View::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            let pairs = a.iter().zip(b.iter());
            pairs
                .map(|(a, b)| compare(a, b, false))
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        (View::Object(a), View::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
            let pairs = a.iter().zip(b.iter());
            pairs
                .map(|((k, v), (l, w))| {
                    let keys = k.as_bytes().cmp(l.as_bytes());
                    keys.then_with(|| compare(v, w, false))
                })
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        _ => Ordering::Equal,
    }
}

/// Appends bytes whose order is the values' order, none a prefix of another.
pub fn write_key(value: JsonRef<'_>, root: bool, out: &mut Vec<u8>) {
    let view = value.view();
    out.push(class(&view, root));
    match view {
        View::Null | View::Bool(_) => {}
        View::String(text) => write_bytes(text.as_bytes(), out),
        View::Number(number) => number.write_ordered(out),
        View::Array(elements) => {
            out.extend_from_slice(&(elements.len() as u32).to_be_bytes());
            elements.iter().for_each(|e| write_key(e, false, out));
        }
        View::Object(members) => {
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (key, value) in members.iter() {
                write_bytes(key.as_bytes(), out);
                write_key(value, false, out);
            }
        }
    }
}

/// `outer @> inner`.
pub fn contains(outer: JsonRef<'_>, inner: JsonRef<'_>) -> bool {
    match (outer.view(), inner.view()) {
        // Where they are the whole value, an array contains a scalar that is one of its elements.
        (View::Array(elements), inner_view)
            if !matches!(inner_view, View::Array(_) | View::Object(_)) =>
        {
            elements.iter().any(|e| same_scalar(e, inner))
        }
        _ => within(outer, inner),
    }
}

/// Containment below the root.
fn within(outer: JsonRef<'_>, inner: JsonRef<'_>) -> bool {
    match (outer.view(), inner.view()) {
        (View::Array(outer), View::Array(inner)) => inner.iter().all(|wanted| {
            outer.iter().any(|has| match wanted.is_container() {
                true => has.is_container() && within(has, wanted),
                false => same_scalar(has, wanted),
            })
        }),
        (View::Object(outer), View::Object(inner)) => {
            outer.len() >= inner.len()
                && inner
                    .iter()
                    .all(|(key, wanted)| outer.get(key).is_some_and(|has| within(has, wanted)))
        }
        _ => same_scalar(outer, inner),
    }
}

fn same_scalar(a: JsonRef<'_>, b: JsonRef<'_>) -> bool {
    !a.is_container() && !b.is_container() && compare(a, b, false).is_eq()
}
