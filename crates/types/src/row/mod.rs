//! Rows as bytes.
//!
//! ```text
//!   | head u16 | null bitmap, if any is NULL | values in column order, none for NULL |
//!   head: bits 0..10 number of attributes, bit 14 a value is external, bit 15 there is a bitmap
//!   bitmap: one bit a column, set where NULL, low bit first
//!   fixed-width value: its bytes, little endian
//!   varying value: a length byte 0..=253, or FE and a u32 length, then that many bytes;
//!                  or FF and a 16-byte reference to a value stored outside the row
//! ```
//! Nothing is aligned. A row may have fewer attributes than its table has now: the missing ones
//! read as NULL here, and the caller puts in the column's missing value.

mod nested;
#[cfg(test)]
mod tests;

use crate::base::base_type;
use crate::datum::{Datum, EnumValue, Interval, Text, TimeTz};
use crate::jsonb::Jsonb;
use crate::numeric::Numeric;
use crate::sqltype::{made, oid};
use crate::{Error, Oid, Result, Tid, shared};
use nested::{read_array, read_record, write_array, write_record};
use std::ops::Range;
use std::sync::Arc;

/// Columns a table may have.
pub const MAX_COLUMNS: usize = 1600;
/// Bytes of a reference to a value outside its row.
pub const REFERENCE_LEN: usize = 16;

const COUNT_MASK: u16 = 0x07ff;
const HAS_EXTERNAL: u16 = 1 << 14;
const HAS_NULLS: u16 = 1 << 15;
const LONG: u8 = 0xfe;
const EXTERNAL: u8 = 0xff;
const MAX_SHORT: usize = 0xfd;

const _: () = assert!(MAX_COLUMNS <= COUNT_MASK as usize);

/// How a column's values lie in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phys {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Char,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
    Interval,
    Uuid,
    Oid,
    Tid,
    Numeric,
    Text,
    Bytea,
    /// Its place, eight bytes.
    Enum(Oid),
    Json,
    Jsonb,
    /// Of that type.
    Base(Oid),
    Array,
    Record,
}

impl Phys {
    /// How values of a type are kept; None for a type no column may have.
    pub fn of(ty: Oid) -> Option<Phys> {
        Some(match ty {
            oid::BOOL => Phys::Bool,
            oid::BYTEA => Phys::Bytea,
            oid::CHAR => Phys::Char,
            oid::INT2 => Phys::Int2,
            oid::INT4 => Phys::Int4,
            oid::INT8 | oid::XID8 | oid::PG_LSN => Phys::Int8,
            oid::FLOAT4 => Phys::Float4,
            oid::FLOAT8 => Phys::Float8,
            oid::DATE => Phys::Date,
            oid::TIME => Phys::Time,
            oid::TIMETZ => Phys::TimeTz,
            oid::TIMESTAMP => Phys::Timestamp,
            oid::TIMESTAMPTZ => Phys::TimestampTz,
            oid::INTERVAL => Phys::Interval,
            oid::NUMERIC => Phys::Numeric,
            oid::UUID => Phys::Uuid,
            oid::TID => Phys::Tid,
            oid::JSON => Phys::Json,
            oid::JSONB => Phys::Jsonb,
            oid::RECORD => Phys::Record,
            oid::NAME
            | oid::TEXT
            | oid::BPCHAR
            | oid::VARCHAR
            | oid::UNKNOWN
            | oid::CSTRING
            | oid::PG_NODE_TREE
            | oid::REFCURSOR
            | oid::JSONPATH
            | oid::ACLITEM => Phys::Text,
            oid::OID
            | oid::XID
            | oid::CID
            | oid::REGPROC
            | oid::REGPROCEDURE
            | oid::REGOPER
            | oid::REGOPERATOR
            | oid::REGCLASS
            | oid::REGTYPE
            | oid::REGNAMESPACE
            | oid::REGROLE
            | oid::REGCOLLATION => Phys::Oid,
            _ if base_type(ty).is_some() => Phys::Base(ty),
            _ if made::is_enum(ty) => Phys::Enum(ty),
            _ if made::is_composite(ty) => Phys::Record,
            _ if crate::sqltype::element_of(ty).is_some() => Phys::Array,
            _ => return None,
        })
    }
    /// Bytes of a fixed-width value; None for the varying ones.
    pub const fn width(self) -> Option<usize> {
        Some(match self {
            Phys::Bool | Phys::Char => 1,
            Phys::Int2 => 2,
            Phys::Int4 | Phys::Float4 | Phys::Date | Phys::Oid => 4,
            Phys::Tid => 6,
            Phys::Int8
            | Phys::Float8
            | Phys::Time
            | Phys::Timestamp
            | Phys::TimestampTz
            | Phys::Enum(_) => 8,
            Phys::TimeTz => 12,
            Phys::Interval | Phys::Uuid => 16,
            Phys::Numeric
            | Phys::Text
            | Phys::Bytea
            | Phys::Json
            | Phys::Jsonb
            | Phys::Base(_)
            | Phys::Array
            | Phys::Record => return None,
        })
    }
}

/// A table's columns, as its rows lay them out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLayout {
    columns: Box<[Phys]>,
    /// Bytes of each column's values; none for the varying ones.
    widths: Box<[Option<u8>]>,
    /// Where each column starts if nothing before it is NULL or varying.
    fixed_offsets: Box<[Option<u32>]>,
}

#[cold]
fn damaged() -> Error {
    Error::corrupted("a stored row is damaged")
}

impl RowLayout {
    pub fn new(columns: &[Phys]) -> RowLayout {
        assert!(
            columns.len() <= MAX_COLUMNS,
            "checked when the table is made"
        );
        let mut at = Some(2u32);
        let fixed_offsets = columns
            .iter()
            .map(|c| {
                let here = at;
                at = at.zip(c.width()).map(|(at, w)| at + w as u32);
                here
            })
            .collect();
        RowLayout {
            columns: columns.into(),
            widths: columns.iter().map(|c| c.width().map(|w| w as u8)).collect(),
            fixed_offsets,
        }
    }

    pub fn columns(&self) -> &[Phys] {
        &self.columns
    }

    /// So many of a row's first bytes are enough to decode its first columns, whichever of them are
    /// NULL. None where values of varying length are among them.
    pub fn reach(&self, columns: usize) -> Option<usize> {
        let bitmap = self.columns.len().div_ceil(8);
        let values = match columns.checked_sub(1) {
            None => 2,
            Some(last) => self.fixed_offsets[last]? as usize + usize::from(self.widths[last]?),
        };
        Some(values + bitmap)
    }

    /// Appends all of a row's values to `out`, as many as the layout has columns; NULL where the
    /// row has fewer.
    pub fn decode(&self, row: &[u8], out: &mut Vec<Datum>) -> Result<()> {
        self.decode_first(row, self.columns.len(), out)
    }

    /// Appends the first `wanted` values of a row.
    pub fn decode_first(&self, row: &[u8], wanted: usize, out: &mut Vec<Datum>) -> Result<()> {
        let row = Parsed::new(row)?;
        let present = row.count.min(wanted);
        out.reserve(wanted);
        let mut at = row.start;
        for i in 0..present {
            if row.is_null(i) {
                out.push(Datum::Null);
                continue;
            }
            let (datum, next) = read_value(row.bytes, at, self.columns[i])?;
            out.push(datum);
            at = next;
        }
        out.resize(out.len() + wanted - present, Datum::Null);
        Ok(())
    }

    /// Puts values of a row into `out`: of each wanted column (places in the layout, ascending) at
    /// the place beside it.
    pub fn decode_into(
        &self,
        row: &[u8],
        wanted: &[(usize, usize)],
        out: &mut [Datum],
    ) -> Result<()> {
        let row = Parsed::new(row)?;
        let mut from = (0, row.start);
        for &(column, place) in wanted {
            if column >= row.count || row.is_null(column) {
                out[place] = Datum::Null;
                continue;
            }
            let at = self.start_of(&row, column, from)?;
            let (datum, next) = read_value(row.bytes, at, self.columns[column])?;
            out[place] = datum;
            from = (column + 1, next);
        }
        Ok(())
    }

    /// One value of a row.
    pub fn decode_column(&self, row: &[u8], column: usize) -> Result<Datum> {
        let row = Parsed::new(row)?;
        if column >= row.count || row.is_null(column) {
            return Ok(Datum::Null);
        }
        let at = self.start_of(&row, column, (0, row.start))?;
        read_value(row.bytes, at, self.columns[column]).map(|(datum, _)| datum)
    }

    /// Calls `f` with where each of `columns` (places in the layout, ascending) lies: its place in
    /// `columns` and its bytes.
    #[inline]
    pub fn stored<'a>(
        &self,
        row: &'a [u8],
        columns: &[usize],
        mut f: impl FnMut(usize, Stored<'a>) -> Result<()>,
    ) -> Result<()> {
        let row = Parsed::new(row)?;
        let (mut at, mut next) = (row.start, 0);
        for (nth, &column) in columns.iter().enumerate() {
            if column >= row.count {
                f(nth, Stored::Absent)?;
                continue;
            }
            at = self.start_of(&row, column, (next, at))?;
            next = column + 1;
            if row.is_null(column) {
                f(nth, Stored::Null)?;
                continue;
            }
            let (range, end) = match self.widths[column] {
                Some(width) => {
                    let end = at + usize::from(width);
                    (Some(at..end), end)
                }
                None => varying_range(row.bytes, at)?,
            };
            f(
                nth,
                match range {
                    Some(range) => Stored::Bytes(row.bytes.get(range).ok_or_else(damaged)?),
                    None => Stored::External,
                },
            )?;
            at = end;
        }
        Ok(())
    }

    /// Where a column begins, when an earlier one (or itself) is known to begin `at`.
    #[inline]
    fn start_of(
        &self,
        row: &Parsed<'_>,
        column: usize,
        (earlier, mut at): (usize, usize),
    ) -> Result<usize> {
        if row.bitmap.is_none()
            && let Some(fixed) = self.fixed_offsets[column]
        {
            return Ok(fixed as usize);
        }
        for (i, width) in (earlier..).zip(&self.widths[earlier..column]) {
            if !row.is_null(i) {
                at = match width {
                    Some(width) => at + usize::from(*width),
                    None => varying_range(row.bytes, at)?.1,
                };
            }
        }
        Ok(at)
    }

    /// How many attributes a row was written with.
    pub fn attributes(row: &[u8]) -> Result<usize> {
        Parsed::new(row).map(|r| r.count)
    }

    /// Does the row refer to values outside of it?
    pub fn has_external(row: &[u8]) -> bool {
        row.get(1)
            .is_some_and(|high| u16::from(*high) << 8 & HAS_EXTERNAL != 0)
    }

    /// The references a row holds, with their columns.
    pub fn references(&self, row: &[u8]) -> Result<Vec<(usize, [u8; REFERENCE_LEN])>> {
        let mut found = Vec::new();
        if !RowLayout::has_external(row) {
            return Ok(found);
        }
        self.varying(row, |column, bytes, range| {
            if bytes[range.start] == EXTERNAL {
                let reference = bytes[range.start + 1..range.end].try_into();
                found.push((column, reference.map_err(|_| damaged())?));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The varying values kept in a row itself: column, and where its bytes (without length) are.
    /// For choosing what to move out.
    pub fn inline_values(&self, row: &[u8]) -> Result<Vec<(usize, Range<usize>)>> {
        let mut found = Vec::new();
        self.varying(row, |column, bytes, range| {
            match bytes[range.start] {
                EXTERNAL => {}
                LONG => found.push((column, range.start + 5..range.end)),
                _ => found.push((column, range.start + 1..range.end)),
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn varying(
        &self,
        row: &[u8],
        mut f: impl FnMut(usize, &[u8], Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let row = Parsed::new(row)?;
        let mut at = row.start;
        for (i, phys) in self.columns.iter().enumerate().take(row.count) {
            if row.is_null(i) {
                continue;
            }
            let next = skip_value(row.bytes, at, *phys)?;
            if phys.width().is_none() {
                f(i, row.bytes, at..next)?;
            }
            at = next;
        }
        Ok(())
    }

    /// The row with some columns' values replaced by references to where their bytes were put.
    pub fn externalize(
        &self,
        row: &[u8],
        moved: &[(usize, [u8; REFERENCE_LEN])],
    ) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(row.len());
        let mut copied = 0;
        self.varying(row, |column, bytes, range| {
            if let Some((_, reference)) = moved.iter().find(|(c, _)| *c == column) {
                out.extend_from_slice(&bytes[copied..range.start]);
                out.push(EXTERNAL);
                out.extend_from_slice(reference);
                copied = range.end;
            }
            Ok(())
        })?;
        out.extend_from_slice(&row[copied..]);
        if !moved.is_empty() {
            out[1] |= (HAS_EXTERNAL >> 8) as u8;
        }
        Ok(out)
    }

    /// A value from its bytes as [`RowLayout::inline_values`] showed them, fetched from outside the
    /// row.
    pub fn value(phys: Phys, bytes: Arc<[u8]>) -> Result<Datum> {
        let text = |bytes| shared::text(bytes).map_err(|_| damaged());
        match phys {
            Phys::Text => Ok(Datum::Text(text(bytes)?)),
            Phys::Json => Ok(Datum::Json(text(bytes)?)),
            Phys::Bytea => Ok(Datum::Bytea(bytes)),
            Phys::Jsonb => Ok(Datum::Jsonb(Jsonb::from_shared(bytes))),
            Phys::Base(ty) => Ok(Datum::base(ty, bytes)),
            _ => read_varying(phys, &bytes),
        }
    }
}

/// Appends a row. Values must be of their columns' kinds; a `Datum::External` is kept as the
/// reference it is.
pub fn encode_row(layout: &RowLayout, values: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    debug_assert!(values.len() <= layout.columns.len());
    let start = out.len();
    let nulls = values.iter().any(Datum::is_null);
    let head = values.len() as u16 | if nulls { HAS_NULLS } else { 0 };
    out.extend_from_slice(&head.to_le_bytes());
    if nulls {
        let bitmap = out.len();
        out.resize(bitmap + values.len().div_ceil(8), 0);
        for (i, _) in values.iter().enumerate().filter(|(_, v)| v.is_null()) {
            out[bitmap + i / 8] |= 1 << (i % 8);
        }
    }
    let mut external = false;
    for (value, phys) in values.iter().zip(&layout.columns) {
        external |= matches!(value, Datum::External(_));
        write_value(value, *phys, out)?;
    }
    if external {
        out[start + 1] |= (HAS_EXTERNAL >> 8) as u8;
    }
    Ok(())
}

/// Where a row keeps a column's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    Null,
    /// The row is older than the column.
    Absent,
    /// A fixed-width value, or a varying one without its length.
    Bytes(&'a [u8]),
    /// Outside of the row.
    External,
}

/// Appends the row of one column that holds a value of these bytes, as [`encode_row`] writes it.
#[inline]
pub fn encode_stored(phys: Phys, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&1u16.to_le_bytes());
    if phys.width().is_none() {
        // It came out of a row, which has no room for more.
        write_length(bytes.len() as u32, out);
    }
    out.extend_from_slice(bytes);
}

/// The bytes of the value that a row of one column holds; None where it is NULL, long or outside of
/// the row.
#[inline]
pub fn short_value(row: &[u8]) -> Option<&[u8]> {
    match row {
        [1, 0, length, value @ ..] if usize::from(*length) == value.len() => Some(value),
        _ => None,
    }
}

/// A row with its head read and checked.
struct Parsed<'a> {
    bytes: &'a [u8],
    count: usize,
    bitmap: Option<&'a [u8]>,
    /// Where values start.
    start: usize,
}

impl<'a> Parsed<'a> {
    #[inline]
    fn new(bytes: &'a [u8]) -> Result<Parsed<'a>> {
        let Some(head) = bytes.first_chunk::<2>() else {
            return Err(damaged());
        };
        let head = u16::from_le_bytes(*head);
        let count = usize::from(head & COUNT_MASK);
        let (bitmap, start) = if head & HAS_NULLS != 0 {
            let end = 2 + count.div_ceil(8);
            (Some(bytes.get(2..end).ok_or_else(damaged)?), end)
        } else {
            (None, 2)
        };
        Ok(Parsed {
            bytes,
            count,
            bitmap,
            start,
        })
    }
    #[inline]
    fn is_null(&self, i: usize) -> bool {
        self.bitmap.is_some_and(|b| b[i / 8] & (1 << (i % 8)) != 0)
    }
}

/// The bytes of a varying value and where the next value starts; None for a reference.
#[inline]
fn varying_range(row: &[u8], at: usize) -> Result<(Option<Range<usize>>, usize)> {
    let (start, len, inline) = match *row.get(at).ok_or_else(damaged)? {
        EXTERNAL => (at + 1, REFERENCE_LEN, false),
        LONG => {
            let len = row.get(at + 1..at + 5).ok_or_else(damaged)?;
            let len = u32::from_le_bytes(len.try_into().map_err(|_| damaged())?);
            (at + 5, len as usize, true)
        }
        short => (at + 1, usize::from(short), true),
    };
    let end = start + len;
    if end > row.len() {
        return Err(damaged());
    }
    Ok((inline.then_some(start..end), end))
}

fn skip_value(row: &[u8], at: usize, phys: Phys) -> Result<usize> {
    match phys.width() {
        Some(width) => Ok(at + width),
        None => varying_range(row, at).map(|(_, next)| next),
    }
}

#[inline]
fn read_value(row: &[u8], at: usize, phys: Phys) -> Result<(Datum, usize)> {
    let Some(width) = phys.width() else {
        let (range, next) = varying_range(row, at)?;
        let datum = match range {
            Some(range) => read_varying(phys, &row[range])?,
            None => Datum::External(take(row, at + 1)?),
        };
        return Ok((datum, next));
    };
    let datum = match phys {
        Phys::Bool => Datum::Bool(*row.get(at).ok_or_else(damaged)? != 0),
        Phys::Char => Datum::Char(*row.get(at).ok_or_else(damaged)?),
        Phys::Int2 => Datum::Int2(i16::from_le_bytes(take(row, at)?)),
        Phys::Int4 => Datum::Int4(i32::from_le_bytes(take(row, at)?)),
        Phys::Int8 => Datum::Int8(i64::from_le_bytes(take(row, at)?)),
        Phys::Float4 => Datum::Float4(f32::from_le_bytes(take(row, at)?)),
        Phys::Float8 => Datum::Float8(f64::from_le_bytes(take(row, at)?)),
        Phys::Date => Datum::Date(i32::from_le_bytes(take(row, at)?)),
        Phys::Time => Datum::Time(i64::from_le_bytes(take(row, at)?)),
        Phys::TimeTz => Datum::TimeTz(TimeTz {
            micros: i64::from_le_bytes(take(row, at)?),
            zone: i32::from_le_bytes(take(row, at + 8)?),
        }),
        Phys::Timestamp => Datum::Timestamp(i64::from_le_bytes(take(row, at)?)),
        Phys::TimestampTz => Datum::TimestampTz(i64::from_le_bytes(take(row, at)?)),
        Phys::Interval => Datum::Interval(read_interval(row, at)?),
        Phys::Enum(ty) => Datum::Enum(EnumValue {
            ty,
            place: f64::from_le_bytes(take(row, at)?),
        }),
        Phys::Uuid => Datum::Uuid(take(row, at)?),
        Phys::Oid => Datum::Oid(u32::from_le_bytes(take(row, at)?)),
        Phys::Tid => Datum::Tid(Tid::new(
            u32::from_le_bytes(take(row, at)?),
            u16::from_le_bytes(take(row, at + 4)?),
        )),
        _ => return Err(Error::internal("a varying column has no width")),
    };
    Ok((datum, at + width))
}

#[inline]
fn take<const N: usize>(row: &[u8], at: usize) -> Result<[u8; N]> {
    match row.get(at..).and_then(|r| r.first_chunk::<N>()) {
        Some(bytes) => Ok(*bytes),
        None => Err(damaged()),
    }
}

fn read_interval(row: &[u8], at: usize) -> Result<Interval> {
    Ok(Interval {
        micros: i64::from_le_bytes(take(row, at)?),
        days: i32::from_le_bytes(take(row, at + 8)?),
        months: i32::from_le_bytes(take(row, at + 12)?),
    })
}

fn read_varying(phys: Phys, bytes: &[u8]) -> Result<Datum> {
    match phys {
        Phys::Text => {
            let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
            Ok(Datum::Text(Text::new(text)))
        }
        Phys::Bytea => Ok(Datum::Bytea(bytes.into())),
        Phys::Json => {
            let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
            Ok(Datum::Json(Text::new(text)))
        }
        Phys::Jsonb => Ok(Datum::Jsonb(Jsonb::from_stored(bytes))),
        Phys::Base(ty) => Ok(Datum::base(ty, bytes)),
        Phys::Numeric => Numeric::read_stored(bytes)
            .map(Datum::Numeric)
            .ok_or_else(damaged),
        Phys::Array => read_array(bytes),
        Phys::Record => read_record(bytes),
        _ => Err(Error::internal(
            "a fixed-width column is never stored outside its row",
        )),
    }
}

fn write_value(value: &Datum, phys: Phys, out: &mut Vec<u8>) -> Result<()> {
    match (value, phys) {
        (Datum::Null, _) => {}
        (Datum::Bool(v), Phys::Bool) => out.push((*v).into()),
        (Datum::Char(v), Phys::Char) => out.push(*v),
        (Datum::Int2(v), Phys::Int2) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Int4(v), Phys::Int4) | (Datum::Date(v), Phys::Date) => {
            out.extend_from_slice(&v.to_le_bytes());
        }
        (Datum::Int8(v), Phys::Int8)
        | (Datum::Time(v), Phys::Time)
        | (Datum::Timestamp(v), Phys::Timestamp)
        | (Datum::TimestampTz(v), Phys::TimestampTz) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Float4(v), Phys::Float4) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Float8(v), Phys::Float8) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::TimeTz(v), Phys::TimeTz) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.zone.to_le_bytes());
        }
        (Datum::Interval(v), Phys::Interval) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.months.to_le_bytes());
        }
        (Datum::Enum(v), Phys::Enum(ty)) if v.ty == ty => {
            out.extend_from_slice(&v.place.to_le_bytes());
        }
        (Datum::Uuid(v), Phys::Uuid) => out.extend_from_slice(v),
        (Datum::Oid(v), Phys::Oid) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Tid(v), Phys::Tid) => {
            out.extend_from_slice(&v.block.to_le_bytes());
            out.extend_from_slice(&v.slot.to_le_bytes());
        }
        (Datum::Text(v), Phys::Text) => write_varying(v.as_bytes(), out)?,
        (Datum::Bytea(v), Phys::Bytea) => write_varying(v, out)?,
        (Datum::Json(v), Phys::Json) => write_varying(v.as_bytes(), out)?,
        (Datum::Base(v), Phys::Base(ty)) if v.ty == ty => write_varying(&v.bytes, out)?,
        (Datum::Jsonb(v), Phys::Jsonb) => write_varying(v.as_bytes(), out)?,
        (Datum::Numeric(v), Phys::Numeric) => {
            if v.as_small().is_some() {
                // Ten bytes at most.
                let at = out.len();
                out.push(0);
                v.write_stored(out);
                out[at] = (out.len() - at - 1) as u8;
            } else {
                let mut stored = Vec::new();
                v.write_stored(&mut stored);
                write_varying(&stored, out)?;
            }
        }
        (Datum::Array(v), Phys::Array) => {
            let mut stored = Vec::new();
            write_array(v, &mut stored)?;
            write_varying(&stored, out)?;
        }
        (Datum::Record(v), Phys::Record) => {
            let mut stored = Vec::new();
            write_record(v, &mut stored)?;
            write_varying(&stored, out)?;
        }
        (Datum::External(reference), _) if phys.width().is_none() => {
            out.push(EXTERNAL);
            out.extend_from_slice(reference);
        }
        (value, phys) => {
            return Err(Error::internal(format_args!(
                "{value:?} stored in a {phys:?} column"
            )));
        }
    }
    Ok(())
}

fn write_varying(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let len = u32::try_from(bytes.len()).map_err(|_| Error::internal("a value over 4 GiB"))?;
    write_length(len, out);
    out.extend_from_slice(bytes);
    Ok(())
}

#[inline]
fn write_length(len: u32, out: &mut Vec<u8>) {
    if len as usize <= MAX_SHORT {
        out.push(len as u8);
    } else {
        out.push(LONG);
        out.extend_from_slice(&len.to_le_bytes());
    }
}
