//! One value, as every room passes it on.

use crate::base::BaseValue;
use crate::jsonb::Jsonb;
use crate::numeric::Numeric;
use crate::{Oid, Tid, dispose};
pub use smol_str::SmolStr as Text;
use std::sync::Arc;

/// A value of any SQL type. Small, and cheap to clone: what is long is shared.
///
/// The type is not part of the value: `text`, `varchar`, `char(n)` (blank-padded, as stored) and
/// `name` are all `Text`; `oid` and the `reg*` types are `Oid`. `==` is structural, for comparing
/// plans: NaN is NaN, and no zero is the other; SQL's equality is a function.
#[derive(Clone, Debug, Default)]
pub enum Datum {
    #[default]
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Numeric(Numeric),
    /// UTF-8 without NUL.
    Text(Text),
    Bytea(Arc<[u8]>),
    /// The one-byte type `"char"`.
    Char(u8),
    /// Days since 2000-01-01; `i32::MIN` and `i32::MAX` are the infinities.
    Date(i32),
    /// Microseconds since midnight, 24:00 included.
    Time(i64),
    TimeTz(TimeTz),
    /// Microseconds since 2000-01-01 00:00; `i64::MIN` and `i64::MAX` are the infinities.
    Timestamp(i64),
    /// The same in UTC.
    TimestampTz(i64),
    Interval(Interval),
    Uuid([u8; 16]),
    /// `oid`, the `reg*` types, `xid`, `cid`.
    Oid(u32),
    Tid(Tid),
    Array(Arc<Array>),
    Enum(EnumValue),
    /// The type `json`: its text as it was given.
    Json(Text),
    Jsonb(Jsonb),
    /// A value of a base type that is kept as bytes: `inet`, `bit` and their like.
    Base(BaseValue),
    Range(Arc<Range>),
    Multirange(Arc<Multirange>),
    /// A row value.
    Record(Arc<Record>),
    /// Where a value too large for its row is kept. Only rows hold it; whoever reads the row
    /// fetches the value.
    External([u8; 16]),
}

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        use Datum as D;
        match (self, other) {
            (D::Null, D::Null) => true,
            (D::Bool(a), D::Bool(b)) => a == b,
            (D::Int2(a), D::Int2(b)) => a == b,
            (D::Int4(a), D::Int4(b)) | (D::Date(a), D::Date(b)) => a == b,
            (D::Int8(a), D::Int8(b))
            | (D::Time(a), D::Time(b))
            | (D::Timestamp(a), D::Timestamp(b))
            | (D::TimestampTz(a), D::TimestampTz(b)) => a == b,
            (D::Float4(a), D::Float4(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (D::Float8(a), D::Float8(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (D::Numeric(a), D::Numeric(b)) => a == b,
            (D::Text(a), D::Text(b)) | (D::Json(a), D::Json(b)) => a == b,
            (D::Bytea(a), D::Bytea(b)) => a == b,
            (D::Char(a), D::Char(b)) => a == b,
            (D::TimeTz(a), D::TimeTz(b)) => a == b,
            (D::Interval(a), D::Interval(b)) => a == b,
            (D::Uuid(a), D::Uuid(b)) | (D::External(a), D::External(b)) => a == b,
            (D::Oid(a), D::Oid(b)) => a == b,
            (D::Tid(a), D::Tid(b)) => a == b,
            (D::Array(a), D::Array(b)) => a == b,
            (D::Enum(a), D::Enum(b)) => a == b,
            (D::Jsonb(a), D::Jsonb(b)) => a == b,
            (D::Base(a), D::Base(b)) => a == b,
            (D::Range(a), D::Range(b)) => a == b,
            (D::Multirange(a), D::Multirange(b)) => a == b,
            (D::Record(a), D::Record(b)) => a == b,
            _ => false,
        }
    }
}

// A row of values is moved and cloned in every operator.
const _: () = assert!(size_of::<Datum>() <= 32);

/// A span of time: three parts that do not convert into each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    pub micros: i64,
    pub days: i32,
    pub months: i32,
}

/// A value of an enum, by its place among the type's values. The catalog knows what it is called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnumValue {
    pub ty: Oid,
    /// Never NaN. A value's place never changes; new ones find theirs between.
    pub place: f64,
}

/// A time of day with its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeTz {
    /// Microseconds since local midnight.
    pub micros: i64,
    /// Seconds WEST of Greenwich, as PostgreSQL stores it.
    pub zone: i32,
}

/// An array of any number of dimensions, its items in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub element: Oid,
    /// None for the empty array.
    pub dims: Vec<Dim>,
    pub items: Vec<Datum>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    pub len: i32,
    /// The subscript of the first item: 1 unless told otherwise.
    pub lower: i32,
}

/// One end of a range that is not empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// NULL where the range has no end on this side.
    pub value: Datum,
    /// Never set where there is no value.
    pub inclusive: bool,
}

impl Bound {
    pub const INFINITE: Bound = Bound {
        value: Datum::Null,
        inclusive: false,
    };

    pub fn new(value: Datum, inclusive: bool) -> Bound {
        let inclusive = inclusive && !value.is_null();
        Bound { value, inclusive }
    }
    pub fn is_infinite(&self) -> bool {
        self.value.is_null()
    }
}

/// The two ends of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    pub lower: Bound,
    pub upper: Bound,
}

/// A range, canonical where its type is discrete.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub ty: Oid,
    pub subtype: Oid,
    /// None for the empty range.
    pub bounds: Option<Bounds>,
}

impl Range {
    pub fn is_empty(&self) -> bool {
        self.bounds.is_none()
    }
}

/// Ranges that are not empty, in their order, with gaps between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Multirange {
    pub ty: Oid,
    pub ranges: Vec<Arc<Range>>,
}

impl Drop for Multirange {
    fn drop(&mut self) {
        if self.ranges.len() > dispose::MANY {
            dispose::dispose(std::mem::take(&mut self.ranges));
        }
    }
}

/// A row value: the types of its fields with their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub types: Arc<[Oid]>,
    /// What the fields are called where the row is a table's or a query's; those of `ROW(…)` have
    /// no names of their own.
    pub names: Option<Arc<[Text]>>,
    pub values: Vec<Datum>,
}

impl Drop for Array {
    fn drop(&mut self) {
        if self.items.len() > dispose::MANY {
            dispose::dispose(std::mem::take(&mut self.items));
        }
    }
}

impl Array {
    /// One dimension, from 1.
    pub fn from_items(element: Oid, items: Vec<Datum>) -> Array {
        let dims = match items.len() {
            0 => vec![],
            n => vec![Dim {
                len: n as i32,
                lower: 1,
            }],
        };
        Array {
            element,
            dims,
            items,
        }
    }
    /// One dimension, from 0, as `int2vector` and `oidvector` count.
    pub fn vector(element: Oid, items: Vec<Datum>) -> Array {
        let dims = vec![Dim {
            len: items.len() as i32,
            lower: 0,
        }];
        Array {
            element,
            dims,
            items,
        }
    }
    /// The item at these subscripts, or None outside the bounds or with the wrong number of them.
    pub fn get(&self, subscripts: &[i32]) -> Option<&Datum> {
        if subscripts.len() != self.dims.len() || self.dims.is_empty() {
            return None;
        }
        let mut index = 0i64;
        for (dim, &s) in self.dims.iter().zip(subscripts) {
            let offset = i64::from(s) - i64::from(dim.lower);
            if offset < 0 || offset >= i64::from(dim.len) {
                return None;
            }
            index = index * i64::from(dim.len) + offset;
        }
        self.items.get(index as usize)
    }
}

impl Datum {
    /// What a function returns that returns nothing: no NULL, and empty in text and in binary.
    pub const VOID: Datum = Datum::Text(Text::new_static(""));

    pub fn text(s: impl AsRef<str>) -> Datum {
        Datum::Text(Text::new(s))
    }
    pub fn bytea(bytes: impl Into<Arc<[u8]>>) -> Datum {
        Datum::Bytea(bytes.into())
    }
    pub fn base(ty: Oid, bytes: impl Into<Arc<[u8]>>) -> Datum {
        Datum::Base(BaseValue::new(ty, bytes))
    }
    pub fn array(array: Array) -> Datum {
        Datum::Array(Arc::new(array))
    }
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }
    /// For conditions: NULL is not true.
    pub fn is_true(&self) -> bool {
        matches!(self, Datum::Bool(true))
    }
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Datum::Text(s) => Some(s),
            _ => None,
        }
    }
    /// Any integer, widened.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Datum::Int2(v) => Some(v.into()),
            Datum::Int4(v) => Some(v.into()),
            Datum::Int8(v) => Some(v),
            Datum::Oid(v) => Some(v.into()),
            _ => None,
        }
    }
    /// The type a value has by itself, where no column or expression says more. NULL has none.
    pub fn natural_type(&self) -> Oid {
        use crate::sqltype::oid;
        match self {
            Datum::Null | Datum::External(_) => oid::UNKNOWN,
            Datum::Bool(_) => oid::BOOL,
            Datum::Int2(_) => oid::INT2,
            Datum::Int4(_) => oid::INT4,
            Datum::Int8(_) => oid::INT8,
            Datum::Float4(_) => oid::FLOAT4,
            Datum::Float8(_) => oid::FLOAT8,
            Datum::Numeric(_) => oid::NUMERIC,
            Datum::Text(_) => oid::TEXT,
            Datum::Bytea(_) => oid::BYTEA,
            Datum::Char(_) => oid::CHAR,
            Datum::Date(_) => oid::DATE,
            Datum::Time(_) => oid::TIME,
            Datum::TimeTz(_) => oid::TIMETZ,
            Datum::Timestamp(_) => oid::TIMESTAMP,
            Datum::TimestampTz(_) => oid::TIMESTAMPTZ,
            Datum::Interval(_) => oid::INTERVAL,
            Datum::Uuid(_) => oid::UUID,
            Datum::Oid(_) => oid::OID,
            Datum::Tid(_) => oid::TID,
            Datum::Array(a) => crate::sqltype::array_of(a.element).unwrap_or(oid::UNKNOWN),
            Datum::Enum(v) => v.ty,
            Datum::Json(_) => oid::JSON,
            Datum::Jsonb(_) => oid::JSONB,
            Datum::Base(v) => v.ty,
            Datum::Range(v) => v.ty,
            Datum::Multirange(v) => v.ty,
            Datum::Record(_) => oid::RECORD,
        }
    }
}

impl From<bool> for Datum {
    fn from(v: bool) -> Datum {
        Datum::Bool(v)
    }
}
impl From<i16> for Datum {
    fn from(v: i16) -> Datum {
        Datum::Int2(v)
    }
}
impl From<i32> for Datum {
    fn from(v: i32) -> Datum {
        Datum::Int4(v)
    }
}
impl From<i64> for Datum {
    fn from(v: i64) -> Datum {
        Datum::Int8(v)
    }
}
impl From<f32> for Datum {
    fn from(v: f32) -> Datum {
        Datum::Float4(v)
    }
}
impl From<f64> for Datum {
    fn from(v: f64) -> Datum {
        Datum::Float8(v)
    }
}
impl From<Numeric> for Datum {
    fn from(v: Numeric) -> Datum {
        Datum::Numeric(v)
    }
}
impl From<Interval> for Datum {
    fn from(v: Interval) -> Datum {
        Datum::Interval(v)
    }
}
impl From<Oid> for Datum {
    fn from(v: Oid) -> Datum {
        Datum::Oid(v.0)
    }
}
impl From<&str> for Datum {
    fn from(v: &str) -> Datum {
        Datum::text(v)
    }
}
impl From<String> for Datum {
    fn from(v: String) -> Datum {
        Datum::Text(v.into())
    }
}
impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(v: Option<T>) -> Datum {
        v.map_or(Datum::Null, Into::into)
    }
}
