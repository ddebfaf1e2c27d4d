//! Rows as bytes: each value with its kind, so that whoever reads them back need know no types.
//!
//! ```text
//!   row     count u16 | value …
//!   value   kind u8 | fixed-width: its bytes, little endian; varying: length u32, bytes
//! ```

use std::sync::Arc;

use throng_types::datum::{Array, Dim, EnumValue, Interval, Record, Text, TimeTz};
use throng_types::jsonb::Jsonb;
use throng_types::numeric::Numeric;
use throng_types::{Datum, Error, Oid, Result, Tid, stack};

use crate::run::Row;

/// Appends a row.
///
/// # Errors
/// 54001 for values nested too deeply; XX000 for a value over 4 GiB.
pub fn write_row(row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    let count = u16::try_from(row.len()).map_err(|_| Error::internal("a row too wide"))?;
    out.extend_from_slice(&count.to_le_bytes());
    row.iter().try_for_each(|value| write(value, out))
}

/// Replaces `row` by the one in `bytes`.
///
/// # Errors
/// XX001 for bytes that [`write_row`] has not written.
pub fn read_row(bytes: &[u8], row: &mut Row) -> Result<()> {
    let mut bytes = Bytes(bytes);
    let count = u16::from_le_bytes(bytes.take()?);
    row.clear();
    row.reserve(count.into());
    for _ in 0..count {
        row.push(bytes.value()?);
    }
    Ok(())
}

#[cold]
fn damaged() -> Error {
    Error::new(
        throng_types::error::state::DATA_CORRUPTED,
        "a temporary file holds other bytes than were written",
    )
}

fn length(len: usize, out: &mut Vec<u8>) -> Result<()> {
    let len = u32::try_from(len).map_err(|_| Error::internal("a value over 4 GiB"))?;
    out.extend_from_slice(&len.to_le_bytes());
    Ok(())
}

fn varying(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    length(bytes.len(), out)?;
    out.extend_from_slice(bytes);
    Ok(())
}

fn fixed<const N: usize>(kind: u8, bytes: [u8; N], out: &mut Vec<u8>) -> Result<()> {
    out.push(kind);
    out.extend_from_slice(&bytes);
    Ok(())
}

/// The byte that says which kind of value follows.
mod kind {
    pub const NULL: u8 = 0;
    pub const BOOL: u8 = 1;
    pub const INT2: u8 = 2;
    pub const INT4: u8 = 3;
    pub const INT8: u8 = 4;
    pub const FLOAT4: u8 = 5;
    pub const FLOAT8: u8 = 6;
    pub const NUMERIC: u8 = 7;
    pub const TEXT: u8 = 8;
    pub const BYTEA: u8 = 9;
    pub const CHAR: u8 = 10;
    pub const DATE: u8 = 11;
    pub const TIME: u8 = 12;
    pub const TIMETZ: u8 = 13;
    pub const TIMESTAMP: u8 = 14;
    pub const TIMESTAMPTZ: u8 = 15;
    pub const INTERVAL: u8 = 16;
    pub const UUID: u8 = 17;
    pub const OID: u8 = 18;
    pub const TID: u8 = 19;
    pub const ARRAY: u8 = 20;
    pub const ENUM: u8 = 21;
    pub const JSON: u8 = 22;
    pub const JSONB: u8 = 23;
    pub const RECORD: u8 = 24;
    pub const EXTERNAL: u8 = 25;
    pub const BASE: u8 = 26;
}

fn write(value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => fixed(kind::NULL, [], out),
        Datum::Bool(v) => fixed(kind::BOOL, [u8::from(*v)], out),
        Datum::Int2(v) => fixed(kind::INT2, v.to_le_bytes(), out),
        Datum::Int4(v) => fixed(kind::INT4, v.to_le_bytes(), out),
        Datum::Int8(v) => fixed(kind::INT8, v.to_le_bytes(), out),
        Datum::Float4(v) => fixed(kind::FLOAT4, v.to_le_bytes(), out),
        Datum::Float8(v) => fixed(kind::FLOAT8, v.to_le_bytes(), out),
        Datum::Numeric(v) => {
            fixed(kind::NUMERIC, [0; 4], out)?;
            let at = out.len();
            v.write_stored(out);
            let len = (out.len() - at) as u32;
            out[at - 4..at].copy_from_slice(&len.to_le_bytes());
            Ok(())
        }
        Datum::Text(v) => fixed(kind::TEXT, [], out).and_then(|()| varying(v.as_bytes(), out)),
        Datum::Bytea(v) => fixed(kind::BYTEA, [], out).and_then(|()| varying(v, out)),
        Datum::Char(v) => fixed(kind::CHAR, [*v], out),
        Datum::Date(v) => fixed(kind::DATE, v.to_le_bytes(), out),
        Datum::Time(v) => fixed(kind::TIME, v.to_le_bytes(), out),
        Datum::TimeTz(v) => {
            fixed(kind::TIMETZ, v.micros.to_le_bytes(), out)?;
            out.extend_from_slice(&v.zone.to_le_bytes());
            Ok(())
        }
        Datum::Timestamp(v) => fixed(kind::TIMESTAMP, v.to_le_bytes(), out),
        Datum::TimestampTz(v) => fixed(kind::TIMESTAMPTZ, v.to_le_bytes(), out),
        Datum::Interval(v) => {
            fixed(kind::INTERVAL, v.micros.to_le_bytes(), out)?;
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.months.to_le_bytes());
            Ok(())
        }
        Datum::Uuid(v) => fixed(kind::UUID, *v, out),
        Datum::Oid(v) => fixed(kind::OID, v.to_le_bytes(), out),
        Datum::Tid(v) => {
            fixed(kind::TID, v.block.to_le_bytes(), out)?;
            out.extend_from_slice(&v.slot.to_le_bytes());
            Ok(())
        }
        Datum::Array(v) => write_array(v, out),
        Datum::Enum(v) => {
            fixed(kind::ENUM, v.ty.0.to_le_bytes(), out)?;
            out.extend_from_slice(&v.place.to_le_bytes());
            Ok(())
        }
        Datum::Json(v) => fixed(kind::JSON, [], out).and_then(|()| varying(v.as_bytes(), out)),
        Datum::Jsonb(v) => fixed(kind::JSONB, [], out).and_then(|()| varying(v.as_bytes(), out)),
        Datum::Base(v) => {
            fixed(kind::BASE, v.ty.0.to_le_bytes(), out).and_then(|()| varying(&v.bytes, out))
        }
        Datum::Record(v) => write_record(v, out),
        Datum::External(v) => fixed(kind::EXTERNAL, *v, out),
    }
}

fn write_array(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    stack::check()?;
    fixed(kind::ARRAY, array.element.0.to_le_bytes(), out)?;
    length(array.dims.len(), out)?;
    for dim in &array.dims {
        out.extend_from_slice(&dim.len.to_le_bytes());
        out.extend_from_slice(&dim.lower.to_le_bytes());
    }
    length(array.items.len(), out)?;
    array.items.iter().try_for_each(|item| write(item, out))
}

fn write_record(record: &Record, out: &mut Vec<u8>) -> Result<()> {
    stack::check()?;
    fixed(kind::RECORD, [u8::from(record.names.is_some())], out)?;
    length(record.types.len(), out)?;
    for ty in record.types.iter() {
        out.extend_from_slice(&ty.0.to_le_bytes());
    }
    for name in record.names.iter().flat_map(|names| names.iter()) {
        varying(name.as_bytes(), out)?;
    }
    length(record.values.len(), out)?;
    record.values.iter().try_for_each(|value| write(value, out))
}

/// Bytes not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn length(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.take()?) as usize)
    }

    /// How many values follow, each of a byte at least.
    fn count(&mut self) -> Result<usize> {
        let count = self.length()?;
        match count <= self.0.len() {
            true => Ok(count),
            false => Err(damaged()),
        }
    }

    fn varying(&mut self) -> Result<&'a [u8]> {
        let len = self.length()?;
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn text(&mut self) -> Result<Text> {
        let bytes = self.varying()?;
        Ok(Text::new(
            std::str::from_utf8(bytes).map_err(|_| damaged())?,
        ))
    }

    fn value(&mut self) -> Result<Datum> {
        let [kind] = self.take()?;
        Ok(match kind {
            kind::NULL => Datum::Null,
            kind::BOOL => Datum::Bool(self.take()? != [0]),
            kind::INT2 => Datum::Int2(i16::from_le_bytes(self.take()?)),
            kind::INT4 => Datum::Int4(i32::from_le_bytes(self.take()?)),
            kind::INT8 => Datum::Int8(i64::from_le_bytes(self.take()?)),
            kind::FLOAT4 => Datum::Float4(f32::from_le_bytes(self.take()?)),
            kind::FLOAT8 => Datum::Float8(f64::from_le_bytes(self.take()?)),
            kind::NUMERIC => {
                let stored = self.varying()?;
                Datum::Numeric(Numeric::read_stored(stored).ok_or_else(damaged)?)
            }
            kind::TEXT => Datum::Text(self.text()?),
            kind::BYTEA => Datum::Bytea(self.varying()?.into()),
            kind::CHAR => Datum::Char(u8::from_le_bytes(self.take()?)),
            kind::DATE => Datum::Date(i32::from_le_bytes(self.take()?)),
            kind::TIME => Datum::Time(i64::from_le_bytes(self.take()?)),
            kind::TIMETZ => Datum::TimeTz(TimeTz {
                micros: i64::from_le_bytes(self.take()?),
                zone: i32::from_le_bytes(self.take()?),
            }),
            kind::TIMESTAMP => Datum::Timestamp(i64::from_le_bytes(self.take()?)),
            kind::TIMESTAMPTZ => Datum::TimestampTz(i64::from_le_bytes(self.take()?)),
            kind::INTERVAL => Datum::Interval(Interval {
                micros: i64::from_le_bytes(self.take()?),
                days: i32::from_le_bytes(self.take()?),
                months: i32::from_le_bytes(self.take()?),
            }),
            kind::UUID => Datum::Uuid(self.take()?),
            kind::OID => Datum::Oid(u32::from_le_bytes(self.take()?)),
            kind::TID => Datum::Tid(Tid {
                block: u32::from_le_bytes(self.take()?),
                slot: u16::from_le_bytes(self.take()?),
            }),
            kind::ARRAY => self.array()?,
            kind::ENUM => Datum::Enum(EnumValue {
                ty: Oid(u32::from_le_bytes(self.take()?)),
                place: f64::from_le_bytes(self.take()?),
            }),
            kind::JSON => Datum::Json(self.text()?),
            kind::JSONB => Datum::Jsonb(Jsonb::from_stored(self.varying()?)),
            kind::BASE => {
                let ty = Oid(u32::from_le_bytes(self.take()?));
                Datum::base(ty, self.varying()?)
            }
            kind::RECORD => self.record()?,
            kind::EXTERNAL => Datum::External(self.take()?),
            _ => return Err(damaged()),
        })
    }

    fn array(&mut self) -> Result<Datum> {
        stack::check()?;
        let element = Oid(u32::from_le_bytes(self.take()?));
        let count = self.count()?;
        let mut dims = Vec::with_capacity(count);
        for _ in 0..count {
            dims.push(Dim {
                len: i32::from_le_bytes(self.take()?),
                lower: i32::from_le_bytes(self.take()?),
            });
        }
        let items = self.values()?;
        Ok(Datum::array(Array {
            element,
            dims,
            items,
        }))
    }

    fn record(&mut self) -> Result<Datum> {
        stack::check()?;
        let named = self.take()? != [0];
        let count = self.count()?;
        let mut types = Vec::with_capacity(count);
        for _ in 0..count {
            types.push(Oid(u32::from_le_bytes(self.take()?)));
        }
        let mut names = Vec::new();
        for _ in 0..if named { count } else { 0 } {
            names.push(self.text()?);
        }
        let values = self.values()?;
        Ok(Datum::Record(Arc::new(Record {
            types: types.into(),
            names: named.then(|| names.into()),
            values,
        })))
    }

    fn values(&mut self) -> Result<Vec<Datum>> {
        let count = self.count()?;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(self.value()?);
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_types::oid;

    #[test]
    fn values_come_back_as_they_were() -> Result<()> {
        let nested = Datum::array(Array::from_items(
            oid::TEXT,
            vec![Datum::text("a"), Datum::Null],
        ));
        let record = Datum::Record(Arc::new(Record {
            types: vec![oid::INT4, oid::TEXT].into(),
            names: Some(
                vec![
                    Text::new("n"),
                    Text::new("long name of a field, on the heap"),
                ]
                .into(),
            ),
            values: vec![Datum::Int4(7), Datum::text("x".repeat(300))],
        }));
        let row = vec![
            Datum::Null,
            Datum::Bool(true),
            Datum::Int2(-2),
            Datum::Int4(i32::MIN),
            Datum::Int8(i64::MAX),
            Datum::Float4(f32::NAN),
            Datum::Float8(-0.0),
            Datum::Numeric(Numeric::from_i128(10i128.pow(30) + 7, 5)),
            Datum::text("é".repeat(100)),
            Datum::bytea(vec![0u8, 255]),
            Datum::Char(200),
            Datum::Date(-1),
            Datum::Time(5),
            Datum::TimeTz(TimeTz {
                micros: 1,
                zone: -3600,
            }),
            Datum::Timestamp(i64::MIN),
            Datum::TimestampTz(3),
            Datum::Interval(Interval {
                micros: 1,
                days: -2,
                months: 3,
            }),
            Datum::Uuid([9; 16]),
            Datum::base(Oid(9), *b"\0kept"),
            Datum::Oid(77),
            Datum::Tid(Tid { block: 8, slot: 9 }),
            nested.clone(),
            Datum::Enum(EnumValue {
                ty: Oid(1),
                place: 1.5,
            }),
            Datum::Json(Text::new("{ }")),
            record,
            Datum::External([3; 16]),
            Datum::array(Array::from_items(oid::RECORD, vec![nested])),
        ];
        let mut bytes = Vec::new();
        write_row(&row, &mut bytes)?;
        let mut back = Row::new();
        read_row(&bytes, &mut back)?;
        assert_eq!(back, row);
        for len in 0..bytes.len() {
            assert!(read_row(&bytes[..len], &mut back).is_err());
        }
        Ok(())
    }
}
