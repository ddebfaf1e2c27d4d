//! Values as columns: which Arrow type stands for which SQL type, and the way there and back.
//!
//! Types whose values are a machine word travel as themselves, strings as bytes of UTF-8,
//! everything else as the bytes it has in a stored row (`throng_types::row`). No Arrow type is ever
//! asked what a value means: that one `numeric` equals or precedes another is a matter of its
//! ordered key ([`crate::keys`]).

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, LargeBinaryArray, LargeStringArray,
    NullBufferBuilder, PrimitiveBuilder,
};
use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Schema, SchemaRef, UInt32Type,
};
use throng_types::numeric::Decimal;
use throng_types::row::{Phys, RowLayout, encode_row, encode_stored, short_value};
use throng_types::{Datum, Error, Result, SqlType};

/// How the values of a column are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Oid,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Text,
    /// As stored in a row.
    Packed(Phys),
}

impl Kind {
    /// None for types that have no stored form.
    pub fn of(ty: SqlType) -> Option<Kind> {
        Some(match Phys::of(ty.oid)? {
            Phys::Bool => Kind::Bool,
            Phys::Int2 => Kind::Int2,
            Phys::Int4 => Kind::Int4,
            Phys::Int8 => Kind::Int8,
            Phys::Float4 => Kind::Float4,
            Phys::Float8 => Kind::Float8,
            Phys::Oid => Kind::Oid,
            Phys::Date => Kind::Date,
            Phys::Time => Kind::Time,
            Phys::Timestamp => Kind::Timestamp,
            Phys::TimestampTz => Kind::TimestampTz,
            Phys::Text => Kind::Text,
            phys => Kind::Packed(phys),
        })
    }

    pub fn data_type(self) -> DataType {
        match self {
            Kind::Bool => DataType::Boolean,
            Kind::Int2 => DataType::Int16,
            Kind::Int4 | Kind::Date => DataType::Int32,
            Kind::Int8 | Kind::Time | Kind::Timestamp | Kind::TimestampTz => DataType::Int64,
            Kind::Float4 => DataType::Float32,
            Kind::Float8 => DataType::Float64,
            Kind::Oid => DataType::UInt32,
            Kind::Text => DataType::LargeUtf8,
            Kind::Packed(_) => DataType::LargeBinary,
        }
    }
}

/// The kinds of a row; None if a type has none.
pub fn kinds(types: &[SqlType]) -> Option<Vec<Kind>> {
    types.iter().map(|t| Kind::of(*t)).collect()
}

/// Columns without names of their own: `c0`, `c1`, ….
pub fn schema_of(types: impl IntoIterator<Item = DataType>) -> SchemaRef {
    let fields = types.into_iter().enumerate();
    Arc::new(Schema::new(
        fields
            .map(|(i, t)| Field::new(format!("c{i}"), t, true))
            .collect::<Vec<_>>(),
    ))
}

pub fn schema(kinds: &[Kind]) -> SchemaRef {
    schema_of(kinds.iter().map(|k| k.data_type()))
}

/// A value not of its column's type: the plan is wrong.
#[cold]
fn misplaced(kind: Kind, value: &Datum) -> Error {
    Error::internal(format!("a {kind:?} column was given {value:?}"))
}

/// A column being filled.
pub struct ColumnBuilder {
    kind: Kind,
    values: Values,
}

enum Values {
    Bool(BooleanBuilder),
    Int2(PrimitiveBuilder<Int16Type>),
    Int4(PrimitiveBuilder<Int32Type>),
    Int8(PrimitiveBuilder<Int64Type>),
    Float4(PrimitiveBuilder<Float32Type>),
    Float8(PrimitiveBuilder<Float64Type>),
    Oid(PrimitiveBuilder<UInt32Type>),
    Text(Strings),
    Packed {
        phys: Phys,
        layout: RowLayout,
        strings: Strings,
    },
}

/// Values of varying length, one after another.
struct Strings {
    bytes: Vec<u8>,
    ends: Vec<i64>,
    nulls: NullBufferBuilder,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings {
            bytes: Vec::new(),
            ends: vec![0],
            nulls: NullBufferBuilder::new(0),
        }
    }
}

impl Strings {
    /// Ends a value whose bytes were appended.
    #[inline]
    fn end(&mut self) {
        self.ends.push(self.bytes.len() as i64);
        self.nulls.append_non_null();
    }

    #[inline]
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.end();
    }

    fn push_null(&mut self) {
        self.ends.push(self.bytes.len() as i64);
        self.nulls.append_null();
    }

    /// What there is so far, and nothing again; the next are likely to be as many.
    fn take(&mut self) -> (OffsetBuffer<i64>, Buffer, Option<NullBuffer>) {
        let mut next = Strings {
            bytes: Vec::with_capacity(self.bytes.len()),
            ends: Vec::with_capacity(self.ends.len()),
            nulls: NullBufferBuilder::new(0),
        };
        next.ends.push(0);
        let Strings {
            bytes,
            ends,
            mut nulls,
        } = std::mem::replace(self, next);
        (
            OffsetBuffer::new(ends.into()),
            Buffer::from_vec(bytes),
            nulls.finish(),
        )
    }
}

#[cold]
fn damaged() -> Error {
    Error::corrupted("a stored row is damaged")
}

#[inline]
fn word<const N: usize>(stored: &[u8]) -> Result<[u8; N]> {
    stored.try_into().map_err(|_| damaged())
}

impl ColumnBuilder {
    pub fn new(kind: Kind) -> ColumnBuilder {
        let values = match kind {
            Kind::Bool => Values::Bool(BooleanBuilder::new()),
            Kind::Int2 => Values::Int2(PrimitiveBuilder::new()),
            Kind::Int4 | Kind::Date => Values::Int4(PrimitiveBuilder::new()),
            Kind::Int8 | Kind::Time | Kind::Timestamp | Kind::TimestampTz => {
                Values::Int8(PrimitiveBuilder::new())
            }
            Kind::Float4 => Values::Float4(PrimitiveBuilder::new()),
            Kind::Float8 => Values::Float8(PrimitiveBuilder::new()),
            Kind::Oid => Values::Oid(PrimitiveBuilder::new()),
            Kind::Text => Values::Text(Strings::default()),
            Kind::Packed(phys) => Values::Packed {
                phys,
                layout: RowLayout::new(&[phys]),
                strings: Strings::default(),
            },
        };
        ColumnBuilder { kind, values }
    }

    pub fn of_all(kinds: &[Kind]) -> Vec<ColumnBuilder> {
        kinds.iter().map(|k| ColumnBuilder::new(*k)).collect()
    }

    /// Bytes of varying values gathered so far.
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Text(strings) | Values::Packed { strings, .. } => strings.bytes.len(),
            _ => 0,
        }
    }

    pub fn push(&mut self, value: &Datum) -> Result<()> {
        match (&mut self.values, value) {
            (values, Datum::Null) => values.push_null(),
            (Values::Bool(b), Datum::Bool(v)) => b.append_value(*v),
            (Values::Int2(b), Datum::Int2(v)) => b.append_value(*v),
            (Values::Int4(b), Datum::Int4(v) | Datum::Date(v)) => b.append_value(*v),
            (
                Values::Int8(b),
                Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v),
            ) => b.append_value(*v),
            (Values::Float4(b), Datum::Float4(v)) => b.append_value(*v),
            (Values::Float8(b), Datum::Float8(v)) => b.append_value(*v),
            (Values::Oid(b), Datum::Oid(v)) => b.append_value(*v),
            (Values::Text(b), Datum::Text(v)) => b.push(v.as_bytes()),
            (
                Values::Packed {
                    layout, strings, ..
                },
                value,
            ) => {
                encode_row(layout, std::slice::from_ref(value), &mut strings.bytes)?;
                strings.end();
            }
            (_, value) => return Err(misplaced(self.kind, value)),
        }
        Ok(())
    }

    /// A value as a row keeps it ([`throng_types::row::Stored::Bytes`]).
    #[inline]
    pub fn push_stored(&mut self, stored: &[u8]) -> Result<()> {
        match &mut self.values {
            Values::Bool(b) => b.append_value(word::<1>(stored)? != [0]),
            Values::Int2(b) => b.append_value(i16::from_le_bytes(word(stored)?)),
            Values::Int4(b) => b.append_value(i32::from_le_bytes(word(stored)?)),
            Values::Int8(b) => b.append_value(i64::from_le_bytes(word(stored)?)),
            Values::Float4(b) => b.append_value(f32::from_le_bytes(word(stored)?)),
            Values::Float8(b) => b.append_value(f64::from_le_bytes(word(stored)?)),
            Values::Oid(b) => b.append_value(u32::from_le_bytes(word(stored)?)),
            Values::Text(b) => {
                // Letters below 128 need no closer look.
                if !stored.is_ascii() {
                    std::str::from_utf8(stored).map_err(|_| damaged())?;
                }
                b.push(stored);
            }
            Values::Packed { phys, strings, .. } => {
                encode_stored(*phys, stored, &mut strings.bytes);
                strings.end();
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.values {
            Values::Bool(b) => Arc::new(b.finish()),
            Values::Int2(b) => Arc::new(b.finish()),
            Values::Int4(b) => Arc::new(b.finish()),
            Values::Int8(b) => Arc::new(b.finish()),
            Values::Float4(b) => Arc::new(b.finish()),
            Values::Float8(b) => Arc::new(b.finish()),
            Values::Oid(b) => Arc::new(b.finish()),
            Values::Text(b) => {
                let (ends, bytes, nulls) = b.take();
                Arc::new(LargeStringArray::new(ends, bytes, nulls))
            }
            Values::Packed { strings, .. } => {
                let (ends, bytes, nulls) = strings.take();
                Arc::new(LargeBinaryArray::new(ends, bytes, nulls))
            }
        }
    }
}

impl Values {
    #[inline]
    fn push_null(&mut self) {
        match self {
            Values::Bool(b) => b.append_null(),
            Values::Int2(b) => b.append_null(),
            Values::Int4(b) => b.append_null(),
            Values::Int8(b) => b.append_null(),
            Values::Float4(b) => b.append_null(),
            Values::Float8(b) => b.append_null(),
            Values::Oid(b) => b.append_null(),
            Values::Text(b) | Values::Packed { strings: b, .. } => b.push_null(),
        }
    }
}

/// A column of numerics as 128-bit decimals, zero for NULL; None if one of them is none.
pub fn decimals(column: &dyn Array) -> Option<Vec<Decimal>> {
    let column = column.as_binary::<i64>();
    let (bytes, nulls) = (column.value_data(), column.nulls());
    let mut decimals = Vec::with_capacity(column.len());
    for (row, ends) in column.value_offsets().windows(2).enumerate() {
        decimals.push(match nulls.is_some_and(|nulls| nulls.is_null(row)) {
            true => Decimal::default(),
            false => decimal(bytes, ends[0] as usize..ends[1] as usize)?,
        });
    }
    Some(decimals)
}

/// The numeric that is some of a column's bytes. Most are short, and read as a word with what
/// happens to be behind them.
#[inline]
fn decimal(bytes: &[u8], of: Range<usize>) -> Option<Decimal> {
    let stored = short_value(&bytes[of.clone()])?;
    let coefficient = of.end - stored.len() + 2;
    match bytes.get(coefficient..coefficient + 8) {
        Some(word) if (2..=10).contains(&stored.len()) => {
            let word = word.try_into().ok()?;
            Decimal::of_word([stored[0], stored[1]], word, stored.len() - 2)
        }
        _ => Decimal::read_stored(stored),
    }
}

/// The column of these numerics.
pub fn of_decimals(values: impl Iterator<Item = Decimal>, nulls: Option<&NullBuffer>) -> ArrayRef {
    let mut strings = Strings::default();
    let mut stored = Vec::new();
    for (row, value) in values.enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            strings.push_null();
            continue;
        }
        stored.clear();
        value.write_stored(&mut stored);
        encode_stored(Phys::Numeric, &stored, &mut strings.bytes);
        strings.end();
    }
    let (ends, bytes, nulls) = strings.take();
    Arc::new(LargeBinaryArray::new(ends, bytes, nulls))
}

#[inline]
fn at<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

/// Reads a column's values back.
pub struct Reader<'a> {
    kind: Kind,
    array: &'a dyn Array,
    layout: Option<RowLayout>,
}

impl<'a> Reader<'a> {
    pub fn new(kind: Kind, array: &'a dyn Array) -> Reader<'a> {
        let layout = match kind {
            Kind::Packed(phys) => Some(RowLayout::new(&[phys])),
            _ => None,
        };
        Reader {
            kind,
            array,
            layout,
        }
    }

    pub fn of_all(kinds: &[Kind], arrays: &'a [ArrayRef]) -> Vec<Reader<'a>> {
        kinds
            .iter()
            .zip(arrays)
            .map(|(k, a)| Reader::new(*k, &**a))
            .collect()
    }

    pub fn get(&self, row: usize) -> Result<Datum> {
        let array = self.array;
        if array.is_null(row) {
            return Ok(Datum::Null);
        }
        Ok(match self.kind {
            Kind::Bool => Datum::Bool(array.as_boolean().value(row)),
            Kind::Int2 => Datum::Int2(at::<Int16Type>(array, row)),
            Kind::Int4 => Datum::Int4(at::<Int32Type>(array, row)),
            Kind::Date => Datum::Date(at::<Int32Type>(array, row)),
            Kind::Int8 => Datum::Int8(at::<Int64Type>(array, row)),
            Kind::Time => Datum::Time(at::<Int64Type>(array, row)),
            Kind::Timestamp => Datum::Timestamp(at::<Int64Type>(array, row)),
            Kind::TimestampTz => Datum::TimestampTz(at::<Int64Type>(array, row)),
            Kind::Float4 => Datum::Float4(at::<Float32Type>(array, row)),
            Kind::Float8 => Datum::Float8(at::<Float64Type>(array, row)),
            Kind::Oid => Datum::Oid(at::<UInt32Type>(array, row)),
            Kind::Text => Datum::text(array.as_string::<i64>().value(row)),
            Kind::Packed(_) => match &self.layout {
                Some(layout) => layout.decode_column(array.as_binary::<i64>().value(row), 0)?,
                None => Datum::Null,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_types::{Numeric, oid};

    #[test]
    fn values_come_back_as_they_went() -> Result<()> {
        let samples: Vec<(throng_types::Oid, Vec<Datum>)> = vec![
            (
                oid::BOOL,
                vec![Datum::Bool(true), Datum::Null, Datum::Bool(false)],
            ),
            (oid::INT2, vec![Datum::Int2(i16::MIN), Datum::Null]),
            (
                oid::INT4,
                vec![Datum::Int4(i32::MAX), Datum::Null, Datum::Int4(0)],
            ),
            (oid::INT8, vec![Datum::Int8(i64::MIN)]),
            (oid::FLOAT4, vec![Datum::Float4(-0.0), Datum::Float4(1.5)]),
            (oid::FLOAT8, vec![Datum::Float8(f64::INFINITY), Datum::Null]),
            (oid::DATE, vec![Datum::Date(i32::MIN)]),
            (oid::TIMESTAMPTZ, vec![Datum::TimestampTz(i64::MAX)]),
            (
                oid::TEXT,
                vec![Datum::text(""), Datum::Null, Datum::text("straße")],
            ),
            (oid::BYTEA, vec![Datum::bytea([0u8, 1, 255]), Datum::Null]),
            (
                oid::NUMERIC,
                vec![Datum::Numeric(throng_types::Numeric::from(-7)), Datum::Null],
            ),
            (oid::UUID, vec![Datum::Uuid([9; 16])]),
        ];
        for (ty, values) in samples {
            let kind = Kind::of(SqlType::plain(ty)).expect("a stored type");
            let mut builder = ColumnBuilder::new(kind);
            values.iter().try_for_each(|v| builder.push(v))?;
            let array = builder.finish();
            assert_eq!(*array.data_type(), kind.data_type());
            let reader = Reader::new(kind, &*array);
            let back: Vec<Datum> = (0..values.len())
                .map(|i| reader.get(i))
                .collect::<Result<_>>()?;
            assert_eq!(format!("{back:?}"), format!("{values:?}"));
        }
        Ok(())
    }

    /// Wherever a numeric lies among others, it is read as itself.
    #[test]
    fn numerics_are_read_as_decimals() -> Result<()> {
        let texts = [
            "0",
            "-1",
            "7",
            "0.00",
            "-123456.789",
            "9223372036854775807",
            "-9223372036854775808",
            "123456789012345678901234567890",
            "-0.5",
            "127",
            "128",
            "-129",
        ];
        let parsed = texts.iter().filter_map(|text| text.parse().ok());
        let values: Vec<Numeric> = parsed.collect();
        assert_eq!(values.len(), texts.len());
        for first in 0..values.len() {
            let mut builder = ColumnBuilder::new(Kind::Packed(Phys::Numeric));
            for value in &values[first..] {
                builder.push(&Datum::Numeric(value.clone()))?;
            }
            builder.push(&Datum::Null)?;
            let read = decimals(&*builder.finish()).expect("all are of 38 digits");
            let wanted = values[first..].iter().filter_map(Decimal::of);
            assert_eq!(read, wanted.chain([Decimal::default()]).collect::<Vec<_>>());
        }
        let mut builder = ColumnBuilder::new(Kind::Packed(Phys::Numeric));
        builder.push(&Datum::Numeric(Numeric::NAN))?;
        assert_eq!(decimals(&*builder.finish()), None);
        Ok(())
    }

    #[test]
    fn a_misplaced_value_is_an_error() {
        assert!(
            ColumnBuilder::new(Kind::Int4)
                .push(&Datum::text("1"))
                .is_err()
        );
    }
}
