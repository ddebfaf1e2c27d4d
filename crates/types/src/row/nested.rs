//! Arrays and records inside rows.

use super::{Phys, damaged, read_value, take, write_value, write_varying};
use crate::datum::{Array, Datum, Dim, Record, Text};
use crate::{Error, Oid, Result};
use std::sync::Arc;

/// Items and fields lie as in a row: a bitmap would save little, so each has a byte that says NULL
/// (0) or not (1).
fn write_items<'a>(items: impl Iterator<Item = (&'a Datum, Oid)>, out: &mut Vec<u8>) -> Result<()> {
    for (item, ty) in items {
        let phys = Phys::of(ty).ok_or_else(|| Error::internal("an item without a stored form"))?;
        out.push(u8::from(!item.is_null()));
        write_value(item, phys, out)?;
    }
    Ok(())
}

fn read_item(bytes: &[u8], at: usize, ty: Oid) -> Result<(Datum, usize)> {
    match bytes.get(at) {
        Some(0) => Ok((Datum::Null, at + 1)),
        Some(_) => read_value(bytes, at + 1, Phys::of(ty).ok_or_else(damaged)?),
        None => Err(damaged()),
    }
}

pub(super) fn write_array(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&array.element.0.to_le_bytes());
    out.push(array.dims.len() as u8);
    for dim in &array.dims {
        out.extend_from_slice(&dim.len.to_le_bytes());
        out.extend_from_slice(&dim.lower.to_le_bytes());
    }
    write_items(array.items.iter().map(|i| (i, array.element)), out)
}

pub(super) fn read_array(bytes: &[u8]) -> Result<Datum> {
    let element = Oid(u32::from_le_bytes(take(bytes, 0)?));
    let ndims = usize::from(*bytes.get(4).ok_or_else(damaged)?);
    let mut at = 5;
    let mut dims = Vec::with_capacity(ndims);
    for _ in 0..ndims {
        let (len, lower) = (take(bytes, at)?, take(bytes, at + 4)?);
        dims.push(Dim {
            len: i32::from_le_bytes(len),
            lower: i32::from_le_bytes(lower),
        });
        at += 8;
    }
    let mut items = Vec::new();
    while at < bytes.len() {
        let (item, next) = read_item(bytes, at, element)?;
        items.push(item);
        at = next;
    }
    Ok(Datum::Array(Arc::new(Array {
        element,
        dims,
        items,
    })))
}

/// In a record's count: its fields' names follow their types.
const NAMED: u16 = 1 << 15;

pub(super) fn write_record(record: &Record, out: &mut Vec<u8>) -> Result<()> {
    let named = if record.names.is_some() { NAMED } else { 0 };
    out.extend_from_slice(&(record.types.len() as u16 | named).to_le_bytes());
    for ty in record.types.iter() {
        out.extend_from_slice(&ty.0.to_le_bytes());
    }
    for name in record.names.iter().flat_map(|names| names.iter()) {
        write_varying(name.as_bytes(), out)?;
    }
    write_items(record.values.iter().zip(record.types.iter().copied()), out)
}

pub(super) fn read_record(bytes: &[u8]) -> Result<Datum> {
    let head = u16::from_le_bytes(take(bytes, 0)?);
    let count = usize::from(head & !NAMED);
    let mut types = Vec::with_capacity(count);
    for i in 0..count {
        types.push(Oid(u32::from_le_bytes(take(bytes, 2 + i * 4)?)));
    }
    let mut at = 2 + count * 4;
    let mut names: Option<Vec<Text>> = None;
    if head & NAMED != 0 {
        let names = names.get_or_insert_default();
        for _ in 0..count {
            match read_value(bytes, at, Phys::Text)? {
                (Datum::Text(name), next) => {
                    names.push(name);
                    at = next;
                }
                _ => return Err(damaged()),
            }
        }
    }
    let mut values = Vec::with_capacity(count);
    for ty in &types {
        let (value, next) = read_item(bytes, at, *ty)?;
        values.push(value);
        at = next;
    }
    Ok(Datum::Record(Arc::new(Record {
        types: types.into(),
        names: names.map(Into::into),
        values,
    })))
}
