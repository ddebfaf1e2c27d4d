//! Rows by key: the table under hash joins, grouping and DISTINCT.
//!
//! A key is the ordered bytes of its values (`types::key`), in which equal values have equal bytes
//! whatever their scale or sign of zero, so comparing and hashing are plain byte work.

use foldhash::fast::FixedState;
use std::hash::BuildHasher;
use throng_bind::expr::Expr;
use throng_types::key::{self, KeyOrder};
use throng_types::{Datum, Oid, Record, Result, oid};
use throng_values::func::{Operator, Strategy};

use super::eval::eval;
use super::{Cx, Row, Step};

/// A key's bytes, reused from row to row.
#[derive(Default, Clone, PartialEq)]
pub struct Key {
    bytes: Vec<u8>,
    hash: u64,
}

impl Key {
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes it the key with these bytes.
    pub fn set(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.hash = FixedState::default().hash_one(&self.bytes[..]);
    }
}

/// Computes the key of `exprs` over `row`; false if one of them is NULL.
pub fn key_of(exprs: &'static [Expr], row: &[Datum], cx: &mut Cx, key: &mut Key) -> Step<bool> {
    key.bytes.clear();
    let mut whole = true;
    for expr in exprs {
        let value = eval(expr, row, cx)?;
        whole &= !value.is_null();
        key::encode_one(&value, order(expr.ty().oid), &mut key.bytes)?;
    }
    key.hash = FixedState::default().hash_one(&key.bytes[..]);
    Ok(whole)
}

/// Whether an equality's operands are equal exactly where their keys are: both sides are of one
/// type, or of types whose values have the same keys.
pub fn is_equal_by_key(op: &Operator) -> bool {
    let is_int = |ty| matches!(ty, oid::INT2 | oid::INT4 | oid::INT8);
    let is_float = |ty| matches!(ty, oid::FLOAT4 | oid::FLOAT8);
    let both = |is: fn(Oid) -> bool| is(op.left) && is(op.right);
    op.strategy == Some(Strategy::Equal)
        && op.strict
        && op.left != oid::RECORD
        && (op.left == op.right || both(is_int) || both(is_float))
}

fn order(ty: Oid) -> KeyOrder {
    KeyOrder::new(ty, false, false)
}

/// The key of a whole row whose columns have these types.
pub fn key_of_row(row: &[Datum], types: impl Iterator<Item = Oid>, key: &mut Key) -> Result<()> {
    key.bytes.clear();
    for (value, ty) in row.iter().zip(types) {
        key::encode_one(value, order(ty), &mut key.bytes)?;
    }
    key.hash = FixedState::default().hash_one(&key.bytes[..]);
    Ok(())
}

/// About how much memory a kept row takes.
pub fn row_bytes(row: &[Datum]) -> usize {
    64 + row.iter().map(datum_bytes).sum::<usize>()
}

/// About how much memory a kept value takes.
pub fn datum_bytes(value: &Datum) -> usize {
    let mut looks = MOST_LOOKS;
    weigh(value, &mut looks)
}

/// Parts of a value that are looked at to know its size.
const MOST_LOOKS: u32 = 256;
/// Items at either end of an array that stand for all.
const ENDS: usize = 64;

fn weigh(value: &Datum, looks: &mut u32) -> usize {
    let long = match value {
        Datum::Text(s) | Datum::Json(s) if s.len() > 23 => s.len(),
        Datum::Jsonb(v) => v.as_bytes().len(),
        Datum::Bytea(b) => b.len(),
        Datum::Base(v) => v.bytes.len(),
        Datum::Array(a) => weigh_items(&a.items, looks),
        Datum::Record(record) => {
            let mut sum = size_of::<Record>();
            for field in &record.values {
                let Some(left) = looks.checked_sub(1) else {
                    break;
                };
                *looks = left;
                sum += weigh(field, looks);
            }
            sum
        }
        _ => 0,
    };
    size_of::<Datum>() + long
}

fn weigh_items(items: &[Datum], looks: &mut u32) -> usize {
    let all = size_of_val(items);
    let varies = |item: &&Datum| {
        matches!(
            item,
            Datum::Text(_)
                | Datum::Json(_)
                | Datum::Jsonb(_)
                | Datum::Bytea(_)
                | Datum::Base(_)
                | Datum::Record(_)
                | Datum::Numeric(_)
        )
    };
    if items.first().filter(varies).is_none() && items.last().filter(varies).is_none() {
        return all;
    }
    let last = items.len().saturating_sub(ENDS).max(ENDS.min(items.len()));
    let mut looked = 0;
    let mut sum = 0;
    for item in items.iter().take(ENDS).chain(&items[last..]) {
        if *looks == 0 {
            break;
        }
        *looks -= 1;
        looked += 1;
        sum += weigh(item, looks);
    }
    match looked {
        0 => all,
        looked => sum / looked * items.len(),
    }
}

const END: u32 = u32::MAX;

/// Rows with their keys, found by key; several rows may share one. Indices are stable, in order of
/// insertion.
#[derive(Default)]
pub struct RowTable {
    rows: Vec<Entry>,
    /// Heads of chains, a power of two of them.
    buckets: Vec<u32>,
}

struct Entry {
    hash: u64,
    /// None for a row that no probe may find.
    key: Option<Box<[u8]>>,
    next: u32,
    row: Row,
}

impl RowTable {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn row(&self, at: usize) -> &Row {
        &self.rows[at].row
    }

    pub fn row_mut(&mut self, at: usize) -> &mut Row {
        &mut self.rows[at].row
    }

    /// All rows with their keys, in order of insertion.
    pub fn into_entries(self) -> impl Iterator<Item = (Option<Box<[u8]>>, Row)> {
        self.rows.into_iter().map(|entry| (entry.key, entry.row))
    }

    pub fn insert(&mut self, key: Option<&Key>, row: Row) -> usize {
        let at = self.rows.len();
        let (hash, key) = match key {
            Some(key) => (key.hash, Some(key.bytes.as_slice().into())),
            None => (0, None),
        };
        self.rows.push(Entry {
            hash,
            key,
            next: END,
            row,
        });
        if self.rows.len() > self.buckets.len() {
            self.grow();
        } else {
            self.link(at);
        }
        at
    }

    fn link(&mut self, at: usize) {
        if self.rows[at].key.is_some() {
            let bucket = self.rows[at].hash as usize & (self.buckets.len() - 1);
            self.rows[at].next = std::mem::replace(&mut self.buckets[bucket], at as u32);
        }
    }

    fn grow(&mut self) {
        let size = (self.rows.len() * 2).next_power_of_two().max(16);
        self.buckets.clear();
        self.buckets.resize(size, END);
        for at in 0..self.rows.len() {
            self.link(at);
        }
    }

    /// The first row with this key.
    pub fn first(&self, key: &Key) -> Option<usize> {
        if self.buckets.is_empty() {
            return None;
        }
        self.search(
            self.buckets[key.hash as usize & (self.buckets.len() - 1)],
            key,
        )
    }

    /// The next row with this key after `at`.
    pub fn following(&self, at: usize, key: &Key) -> Option<usize> {
        self.search(self.rows[at].next, key)
    }

    fn search(&self, mut at: u32, key: &Key) -> Option<usize> {
        while at != END {
            let entry = &self.rows[at as usize];
            if entry.hash == key.hash && entry.key.as_deref() == Some(&key.bytes[..]) {
                return Some(at as usize);
            }
            at = entry.next;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_key_and_unkeyed_ones_are_not() -> Result<()> {
        let mut table = RowTable::default();
        let mut key = Key::default();
        for i in 0..1000 {
            key_of_row(&[Datum::Int4(i % 10)], [oid::INT4].into_iter(), &mut key)?;
            table.insert((i % 2 == 0).then_some(&key), vec![Datum::Int4(i)]);
        }
        for k in 0..10 {
            key_of_row(&[Datum::Int4(k)], [oid::INT4].into_iter(), &mut key)?;
            let mut found = 0;
            let mut at = table.first(&key);
            while let Some(i) = at {
                assert_eq!(table.row(i)[0].as_i64().map(|v| v % 10), Some(k.into()));
                found += 1;
                at = table.following(i, &key);
            }
            assert_eq!(found, if k % 2 == 0 { 100 } else { 0 });
        }
        Ok(())
    }
}
