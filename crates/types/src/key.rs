//! Ordered keys: values as bytes whose memcmp order is SQL's order.
//!
//! Every value starts with a class byte, so that NULL can stand before or after all others and no
//! encoding is a prefix of another. Integers of every width (and oids) share one form, so do both
//! floats: a key made from an `int8` finds its `int4` equal.
//!
//! ```text
//!   NULL first   00
//!   integer      7F - n bytes (negative) or 80 + n (others), then the n significant bytes, big endian
//!   float        40, the double's bits, sign flipped (all bits where negative), big endian; NaN last, -0 as 0
//!   jsonb        see jsonb::write_key
//!   base types   40, their ordered form as bytes
//!   text, bytea  40, the bytes with 00 written as 00 FF, then 00 01
//!   numeric      see Numeric::write_ordered
//!   interval     40, its microseconds as 16 bytes, sign flipped
//!   NULL last    FF
//! ```
//! In a descending column the value's bytes are inverted; where NULLs stand is told apart from
//! that.

use crate::base::{BaseOrder, BaseValue, base_type};
use crate::datum::Datum;
use crate::error::state;
use crate::jsonb;
use crate::ordered::write_bytes;
use crate::sqltype::{made, oid, type_name};
use crate::{Error, Oid, Result, SqlType};

/// The longest key an index holds; a longer one is refused with 54000 by the index's owner.
pub const MAX_KEY: usize = 2704;

const NULL_FIRST: u8 = 0x00;
const NULL_LAST: u8 = 0xff;
const PLAIN: u8 = 0x40;
const INTEGER_ZERO: u8 = 0x80;

/// How a key column is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct KeyOrder {
    pub descending: bool,
    pub nulls_first: bool,
    /// The column is `char(n)`: trailing blanks do not count.
    pub blank_padded: bool,
}

impl KeyOrder {
    /// PostgreSQL's default: ascending, NULLs last.
    pub const ASCENDING: KeyOrder = KeyOrder {
        descending: false,
        nulls_first: false,
        blank_padded: false,
    };

    pub fn new(column_type: Oid, descending: bool, nulls_first: bool) -> KeyOrder {
        KeyOrder {
            descending,
            nulls_first,
            blank_padded: column_type == oid::BPCHAR,
        }
    }
}

/// Can values of this type be index keys?
pub fn supported(column_type: Oid) -> bool {
    matches!(
        column_type,
        oid::BOOL
            | oid::BYTEA
            | oid::CHAR
            | oid::NAME
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::TEXT
            | oid::OID
            | oid::TID
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::BPCHAR
            | oid::VARCHAR
            | oid::DATE
            | oid::TIME
            | oid::TIMETZ
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::INTERVAL
            | oid::NUMERIC
            | oid::UUID
            | oid::JSONB
            | oid::REGCLASS
            | oid::REGTYPE
            | oid::REGPROC
            | oid::REGROLE
            | oid::REGNAMESPACE
    ) || made::is_enum(column_type)
        || base_type(column_type).is_some_and(|base| !matches!(base.order, BaseOrder::None))
}

/// Whether [`part_len`] can tell where a part of a key of this type ends.
pub fn has_parts(column_type: Oid) -> bool {
    shape_of(column_type).is_some()
}

/// How values of a type are written, by how one finds their end.
enum Shape {
    Integer,
    /// So many bytes, the class byte among them.
    Fixed(usize),
    /// With an end that is in no value.
    Bytes,
}

fn shape_of(column_type: Oid) -> Option<Shape> {
    Some(match column_type {
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => Shape::Integer,
        oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ => Shape::Integer,
        oid::BOOL => Shape::Fixed(1),
        oid::CHAR => Shape::Fixed(2),
        oid::TID => Shape::Fixed(7),
        oid::FLOAT4 | oid::FLOAT8 => Shape::Fixed(9),
        oid::UUID | oid::INTERVAL => Shape::Fixed(17),
        oid::TEXT | oid::VARCHAR | oid::NAME | oid::BPCHAR | oid::BYTEA => Shape::Bytes,
        other if made::is_enum(other) => Shape::Fixed(9),
        other if base_type(other).is_some() => Shape::Bytes,
        _ => return None,
    })
}

/// Bytes of the first column's part of a key; None where it is none of such a column, or its end
/// cannot be told ([`has_parts`]).
pub fn part_len(key: &[u8], column_type: Oid, order: KeyOrder) -> Option<usize> {
    let flip = if order.descending { 0xff } else { 0x00 };
    let null = if order.nulls_first {
        NULL_FIRST
    } else {
        NULL_LAST
    };
    let class = *key.first()?;
    if class == null {
        return Some(1);
    }
    let len = match shape_of(column_type)? {
        Shape::Fixed(len) => len,
        Shape::Integer => match class ^ flip {
            class @ INTEGER_ZERO.. => 1 + usize::from(class - INTEGER_ZERO),
            class => 1 + usize::from(INTEGER_ZERO - 1 - class),
        },
        // 00 is followed by FF within a value and by 01 at its end.
        Shape::Bytes => {
            let mut at = 1;
            loop {
                let zero = key.get(at..)?.iter().position(|byte| byte ^ flip == 0x00)?;
                at += zero + 2;
                if key.get(at - 1)? ^ flip == 0x01 {
                    break at;
                }
            }
        }
    };
    (len <= key.len()).then_some(len)
}

/// Appends the key of a row of values. `orders` may be longer: the key is then a prefix.
pub fn encode(values: &[Datum], orders: &[KeyOrder], out: &mut Vec<u8>) -> Result<()> {
    debug_assert!(values.len() <= orders.len());
    for (value, order) in values.iter().zip(orders) {
        encode_one(value, *order, out)?;
    }
    Ok(())
}

/// Appends one column's part of a key. 0A000 for an array or a record holding what has no order.
pub fn encode_one(value: &Datum, order: KeyOrder, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    if value.is_null() {
        out.push(if order.nulls_first {
            NULL_FIRST
        } else {
            NULL_LAST
        });
        return Ok(());
    }
    encode_value(value, order.blank_padded, out)?;
    if order.descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
    Ok(())
}

fn encode_value(value: &Datum, blank_padded: bool, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => out.push(NULL_LAST),
        Datum::Bool(v) => out.push(PLAIN + u8::from(*v)),
        Datum::Int2(v) => integer(i64::from(*v), out),
        Datum::Int4(v) | Datum::Date(v) => integer(i64::from(*v), out),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            integer(*v, out);
        }
        Datum::Oid(v) => integer(i64::from(*v), out),
        Datum::Float4(v) => float(f64::from(*v), out),
        Datum::Float8(v) => float(*v, out),
        Datum::Enum(v) => float(v.place, out),
        Datum::Numeric(v) => v.write_ordered(out),
        Datum::Text(s) if blank_padded => bytes(s.trim_end_matches(' ').as_bytes(), out),
        Datum::Text(s) => bytes(s.as_bytes(), out),
        Datum::Bytea(b) => bytes(b, out),
        Datum::Char(c) => out.extend_from_slice(&[PLAIN, *c]),
        Datum::TimeTz(v) => {
            // By the moment in UTC, then by zone.
            integer(v.micros + i64::from(v.zone) * 1_000_000, out);
            integer(i64::from(v.zone), out);
        }
        Datum::Interval(v) => {
            out.push(PLAIN);
            out.extend_from_slice(&((v.comparable() as u128) ^ (1 << 127)).to_be_bytes());
        }
        Datum::Uuid(v) => {
            out.push(PLAIN);
            out.extend_from_slice(v);
        }
        Datum::Tid(tid) => {
            out.push(PLAIN);
            out.extend_from_slice(&tid.block.to_be_bytes());
            out.extend_from_slice(&tid.slot.to_be_bytes());
        }
        // Item by item; a shorter one that is a prefix comes first.
        Datum::Array(array) => {
            out.push(PLAIN);
            for item in &array.items {
                out.push(0x01);
                encode_value(item, false, out)?;
            }
            out.push(0x00);
            for dim in std::iter::once(array.dims.len() as i32)
                .chain(array.dims.iter().flat_map(|d| [d.len, d.lower]))
            {
                integer(i64::from(dim), out);
            }
        }
        Datum::Record(record) => {
            out.push(PLAIN);
            for (value, ty) in record.values.iter().zip(record.types.iter()) {
                encode_value(value, *ty == oid::BPCHAR, out)?;
            }
        }
        Datum::Jsonb(value) => jsonb::write_key(value.root(), true, out),
        Datum::Base(v) => base_value(v, out)?,
        Datum::Json(_) => return Err(no_order("json")),
        Datum::External(_) => return Err(Error::internal("a stored value was not fetched")),
    }
    Ok(())
}

fn base_value(value: &BaseValue, out: &mut Vec<u8>) -> Result<()> {
    match value.ordered_form() {
        Some(form) => bytes(&form, out),
        None => return Err(no_order(&type_name(value.ty))),
    }
    Ok(())
}

#[cold]
fn no_order(ty: &str) -> Error {
    Error::new(
        state::UNDEFINED_FUNCTION,
        format!("could not identify an equality operator for type {ty}"),
    )
}

fn integer(value: i64, out: &mut Vec<u8>) {
    if value >= 0 {
        let n = (64 - value.leading_zeros()).div_ceil(8) as usize;
        out.push(INTEGER_ZERO + n as u8);
        out.extend_from_slice(&value.to_be_bytes()[8 - n..]);
    } else {
        // -1 is the shortest: no bytes but its class, one below zero's.
        let n = (64 - value.leading_ones()).div_ceil(8) as usize;
        out.push(INTEGER_ZERO - 1 - n as u8);
        out.extend_from_slice(&value.to_be_bytes()[8 - n..]);
    }
}

fn float(value: f64, out: &mut Vec<u8>) {
    let value = if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f64::NAN.abs()
    } else {
        value
    };
    let bits = value.to_bits();
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    out.push(PLAIN);
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn bytes(value: &[u8], out: &mut Vec<u8>) {
    out.push(PLAIN);
    write_bytes(value, out);
}

/// The smallest byte string greater than every one that starts with `prefix`; None where there is
/// none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut next = prefix[..=keep].to_vec();
    next[keep] += 1;
    Some(next)
}

/// Values that one key encoding serves.
fn key_family(ty: Oid) -> Oid {
    match ty {
        oid::INT2 | oid::INT4 | oid::INT8 => oid::INT8,
        oid::FLOAT4 | oid::FLOAT8 => oid::FLOAT8,
        oid::VARCHAR | oid::TEXT | oid::NAME => oid::TEXT,
        other => other,
    }
}

/// Whether keys made from values of one type find values of the other.
pub fn same_keys(a: SqlType, b: SqlType) -> bool {
    key_family(a.oid) == key_family(b.oid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Numeric, TimeTz};
    use proptest::prelude::*;
    use std::cmp::Ordering;

    /// SQL's order, written independently of the encoding.
    fn order(a: &Datum, b: &Datum) -> Ordering {
        match (a, b) {
            (Datum::Float8(a), Datum::Float8(b)) => match (a.is_nan(), b.is_nan()) {
                (false, false) => a.partial_cmp(b).unwrap(),
                (a, b) => a.cmp(&b),
            },
            (Datum::Numeric(a), Datum::Numeric(b)) => a.compare(b),
            (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Datum::Bytea(a), Datum::Bytea(b)) => a.cmp(b),
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
            (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
            (Datum::Char(a), Datum::Char(b)) => a.cmp(b),
            (Datum::Interval(a), Datum::Interval(b)) => a.comparable().cmp(&b.comparable()),
            (Datum::TimeTz(a), Datum::TimeTz(b)) => {
                let moment = |t: &TimeTz| t.micros + i64::from(t.zone) * 1_000_000;
                moment(a).cmp(&moment(b)).then(a.zone.cmp(&b.zone))
            }
            (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
            (Datum::Timestamp(a), Datum::Timestamp(b)) => a.cmp(b),
            _ => a.as_i64().unwrap().cmp(&b.as_i64().unwrap()),
        }
    }

    fn key(values: &[Datum], orders: &[KeyOrder]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(values, orders, &mut out).unwrap();
        out
    }

    /// Every order a column may have keeps SQL's order of two rows, and a row's first column is a
    /// prefix of its key.
    fn check_pair(a: &Datum, b: &Datum) {
        for descending in [false, true] {
            for nulls_first in [false, true] {
                let order_of = KeyOrder {
                    descending,
                    nulls_first,
                    blank_padded: false,
                };
                let null = |d: &Datum| d.is_null();
                let expected = match (null(a), null(b)) {
                    (true, true) => Ordering::Equal,
                    (true, false) => {
                        if nulls_first {
                            Ordering::Less
                        } else {
                            Ordering::Greater
                        }
                    }
                    (false, true) => {
                        if nulls_first {
                            Ordering::Greater
                        } else {
                            Ordering::Less
                        }
                    }
                    (false, false) if descending => order(b, a),
                    (false, false) => order(a, b),
                };
                let (ka, kb) = (
                    key(std::slice::from_ref(a), &[order_of]),
                    key(std::slice::from_ref(b), &[order_of]),
                );
                assert_eq!(ka.cmp(&kb), expected, "{a:?} {b:?} {order_of:?}");
                // A second column decides only between equals.
                let two = [order_of, KeyOrder::ASCENDING];
                let (ka, kb) = (
                    key(&[a.clone(), Datum::Int4(1)], &two),
                    key(&[b.clone(), Datum::Int4(0)], &two),
                );
                let second = if expected.is_eq() {
                    Ordering::Greater
                } else {
                    expected
                };
                assert_eq!(ka.cmp(&kb), second, "{a:?} {b:?} {order_of:?}");
                assert!(ka.starts_with(&key(std::slice::from_ref(a), &[order_of])));
            }
        }
    }

    fn pairs(one: impl Fn() -> BoxedStrategy<Datum>) -> BoxedStrategy<(Datum, Datum)> {
        let nullable = || prop_oneof![8 => one(), 1 => Just(Datum::Null)];
        (nullable(), nullable()).boxed()
    }

    /// A type with parts that has such values.
    fn type_of(value: &Datum) -> Option<Oid> {
        let ty = match value {
            Datum::Bool(_) => oid::BOOL,
            Datum::Int2(_) => oid::INT2,
            Datum::Int4(_) => oid::INT4,
            Datum::Int8(_) => oid::INT8,
            Datum::Float8(_) => oid::FLOAT8,
            Datum::Text(_) => oid::TEXT,
            Datum::Bytea(_) => oid::BYTEA,
            Datum::Interval(_) => oid::INTERVAL,
            Datum::Date(_) => oid::DATE,
            Datum::Timestamp(_) => oid::TIMESTAMP,
            Datum::Oid(_) => oid::OID,
            Datum::Char(_) => oid::CHAR,
            Datum::Uuid(_) => oid::UUID,
            _ => return None,
        };
        assert!(has_parts(ty));
        Some(ty)
    }

    fn any_numeric() -> BoxedStrategy<Datum> {
        let text = prop_oneof![
            "-?[0-9]{1,6}(\\.[0-9]{1,4})?",
            "-?[0-9]{1,40}(\\.[0-9]{1,40})?",
            "-?[0-9]{1,3}e-?[0-9]{1,2}",
            "-?[1-9]0{0,6}",
            Just("NaN".to_string()),
            Just("Infinity".to_string()),
            Just("-Infinity".to_string()),
            Just("0.00".to_string()),
        ];
        text.prop_map(|t| Datum::Numeric(t.parse::<Numeric>().unwrap()))
            .boxed()
    }

    fn any_pair() -> BoxedStrategy<(Datum, Datum)> {
        let int = || {
            prop_oneof![any::<i64>(), -300..300i64]
                .prop_map(Datum::Int8)
                .boxed()
        };
        let mixed = || {
            prop_oneof![
                any::<i16>().prop_map(Datum::Int2),
                any::<i32>().prop_map(Datum::Int4),
                (-300..300i64).prop_map(Datum::Int8)
            ]
            .boxed()
        };
        let float = || {
            prop_oneof![
                any::<f64>(),
                Just(0.0),
                Just(-0.0),
                Just(f64::NAN),
                Just(-f64::NAN),
                Just(f64::INFINITY)
            ]
            .prop_map(Datum::Float8)
            .boxed()
        };
        let text = || "[ab\u{1}é]{0,4}".prop_map(Datum::text).boxed();
        let bytes = || {
            proptest::collection::vec(
                prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()],
                0..5,
            )
            .prop_map(Datum::bytea)
            .boxed()
        };
        let interval = || {
            (-3..3i32, -90..90i32, prop_oneof![any::<i64>(), -5..5i64])
                .prop_map(|(m, d, u)| Interval::new(m, d, u).into())
                .boxed()
        };
        let timetz = || {
            (0..3i64, -2..2i32)
                .prop_map(|(t, z)| {
                    Datum::TimeTz(TimeTz {
                        micros: t * 1_000_000,
                        zone: z,
                    })
                })
                .boxed()
        };
        prop_oneof![
            pairs(int),
            pairs(mixed),
            pairs(float),
            pairs(any_numeric),
            pairs(text),
            pairs(bytes),
            pairs(interval),
            pairs(timetz),
            pairs(|| any::<bool>().prop_map(Datum::Bool).boxed()),
            pairs(|| any::<i32>().prop_map(Datum::Date).boxed()),
            pairs(|| any::<i64>().prop_map(Datum::Timestamp).boxed()),
            pairs(|| any::<u32>().prop_map(Datum::Oid).boxed()),
            pairs(|| any::<u8>().prop_map(Datum::Char).boxed()),
            pairs(|| any::<[u8; 16]>().prop_map(Datum::Uuid).boxed()),
        ]
        .boxed()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn key_order_is_sql_order((a, b) in any_pair()) {
            check_pair(&a, &b);
        }

        #[test]
        fn parts_end_where_the_next_one_begins((a, b) in any_pair()) {
            let Some(ty) = type_of(&a) else { return Ok(()) };
            for descending in [false, true] {
                for nulls_first in [false, true] {
                    let order = KeyOrder::new(ty, descending, nulls_first);
                    for first in [&a, &Datum::Null] {
                        let whole = key(&[first.clone(), b.clone()], &[order; 2]);
                        let part = key(std::slice::from_ref(first), &[order]);
                        prop_assert_eq!(part_len(&whole, ty, order), Some(part.len()));
                        prop_assert_eq!(part_len(&part, ty, order), Some(part.len()));
                    }
                }
            }
        }
    }

    #[test]
    fn equal_values_have_equal_keys() {
        let same = |a: Datum, b: Datum| {
            assert_eq!(
                key(&[a], &[KeyOrder::ASCENDING]),
                key(&[b], &[KeyOrder::ASCENDING])
            );
        };
        let numeric = |s: &str| Datum::Numeric(s.parse().unwrap());
        same(numeric("1.50"), numeric("1.5"));
        same(numeric("100"), numeric("1e2"));
        same(
            numeric("12345678901234567890.0"),
            numeric("12345678901234567890"),
        );
        same(Datum::Float8(-0.0), Datum::Float8(0.0));
        same(Datum::Float4(1.5), Datum::Float8(1.5));
        same(Datum::Int2(7), Datum::Int8(7));
        same(
            Interval::new(1, 0, 0).into(),
            Interval::new(0, 30, 0).into(),
        );
        let padded = KeyOrder::new(oid::BPCHAR, false, false);
        assert_eq!(
            key(&["a ".into()], &[padded]),
            key(&["a".into()], &[padded])
        );
    }

    #[test]
    fn bounds_after_a_prefix() {
        assert_eq!(after_prefix(&[1, 0xff]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xff, 0xff]), None);
        let prefix = key(&[Datum::Int4(5)], &[KeyOrder::ASCENDING]);
        let row = key(&[Datum::Int4(5), "zzz".into()], &[KeyOrder::ASCENDING; 2]);
        let next = key(&[Datum::Int4(6)], &[KeyOrder::ASCENDING]);
        let bound = after_prefix(&prefix).unwrap();
        assert!(row < bound && bound <= next);
    }
}
