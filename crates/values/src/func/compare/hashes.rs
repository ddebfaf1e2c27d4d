//! PostgreSQL's hashes of values, as hash indexes and hash partitions take them: of 32 bits, and of
//! 64 with a seed.
//!
//! The hash of 32 bits is the low half of the other one under the seed 0, for every type.

use throng_types::error::state;
use throng_types::numeric::Groups;
use throng_types::sqltype::type_name;
use throng_types::{BaseValue, Datum, Error, Numeric, Oid, Range, interrupt, oid::*};

use crate::func::number::int;
use crate::func::{EvalContext, EvalResult, EvalStop, Function, datetime};
use crate::hash::{folded, hash_any_extended, hash_uint32_extended};
use crate::io::network;
use crate::io::range::flags;
use crate::io::scalar::wide_number;

fn word(value: u32, seed: u64) -> u64 {
    hash_uint32_extended(value, seed)
}

/// An integer of any width hashes as narrower ones of the same value do.
fn long(value: i64, seed: u64) -> u64 {
    word(folded(value), seed)
}

/// Both zeros are one value, and all that are no number.
fn float(value: f64, seed: u64) -> u64 {
    match value {
        0.0 => seed,
        value if value.is_nan() => hash_any_extended(&f64::NAN.to_le_bytes(), seed),
        value => hash_any_extended(&value.to_le_bytes(), seed),
    }
}

/// Whatever the sign, and however many zeros it is written with.
fn numeric(value: &Numeric, seed: u64) -> u64 {
    if !value.is_finite() {
        return seed;
    }
    let Groups { weight, digits, .. } = value.to_groups();
    let Some(first) = digits.iter().position(|digit| *digit != 0) else {
        return seed.wrapping_sub(1);
    };
    let last = digits.iter().rposition(|digit| *digit != 0);
    let kept = &digits[first..=last.unwrap_or(first)];
    let bytes: Vec<u8> = kept.iter().flat_map(|digit| digit.to_le_bytes()).collect();
    let weight = i64::from(weight) - first as i64;
    hash_any_extended(&bytes, seed) ^ weight as u64
}

#[cold]
fn has_no_hash(ty: Oid) -> EvalStop {
    let message = format!(
        "could not identify a hash function for type {}",
        type_name(ty)
    );
    Error::new(state::UNDEFINED_FUNCTION, message).into()
}

/// The hashes of several values, one after the other; a NULL's is 0.
fn together<'a>(
    values: impl Iterator<Item = (&'a Datum, Oid)>,
    first: u64,
    seed: u64,
) -> Result<u64, EvalStop> {
    let mut all = first;
    for (value, ty) in values {
        interrupt::poll()?;
        if matches!(ty, RECORD | UNKNOWN | JSON) {
            return Err(has_no_hash(ty));
        }
        let own = match value {
            Datum::Null => 0,
            value => hashed(value, ty, seed)?,
        };
        all = (all << 5).wrapping_sub(all).wrapping_add(own);
    }
    Ok(all)
}

/// The hash of a value of a base type, where the type has one.
pub fn base_hash(value: &BaseValue, seed: u64) -> Option<u64> {
    match value.ty {
        INET | CIDR => Some(hash_any_extended(&network::hashed_form(value), seed)),
        MACADDR | MACADDR8 => Some(hash_any_extended(&value.bytes, seed)),
        _ => None,
    }
}

/// The hash of a value of a type.
pub fn hashed(value: &Datum, ty: Oid, seed: u64) -> Result<u64, EvalStop> {
    Ok(match value {
        Datum::Bool(v) => word(u32::from(*v), seed),
        Datum::Char(v) => word(i32::from(*v as i8) as u32, seed),
        Datum::Int2(_) | Datum::Int4(_) => long(int(value), seed),
        Datum::Int8(v) if matches!(ty, XID8 | PG_LSN) => long(wide_number(*v) as i64, seed),
        Datum::Int8(v) => long(*v, seed),
        Datum::Oid(v) => word(*v, seed),
        Datum::Float4(v) => float(f64::from(*v), seed),
        Datum::Float8(v) => float(*v, seed),
        Datum::Numeric(v) => numeric(v, seed),
        Datum::Text(v) if ty == BPCHAR => {
            hash_any_extended(v.trim_end_matches(' ').as_bytes(), seed)
        }
        Datum::Text(v) => hash_any_extended(v.as_bytes(), seed),
        Datum::Bytea(v) => hash_any_extended(v, seed),
        Datum::Uuid(v) => hash_any_extended(v, seed),
        Datum::Date(v) => word(*v as u32, seed),
        Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => long(*v, seed),
        Datum::TimeTz(_) => {
            let clock = datetime::zoned_clock(value);
            long(clock.micros, seed) ^ word(clock.zone as u32, seed)
        }
        Datum::Interval(_) => long(datetime::interval(value).comparable() as i64, seed),
        Datum::Tid(v) => {
            let block = v.block;
            let halves = [(block >> 16) as u16, block as u16, v.slot];
            let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
            hash_any_extended(&bytes, seed)
        }
        Datum::Base(value) => match base_hash(value, seed) {
            Some(hash) => hash,
            None => return Err(Error::unsupported("PostgreSQL's hash of such a value").into()),
        },
        Datum::Array(array) => {
            let items = array.items.iter().map(|item| (item, array.element));
            together(items, 1, seed)?
        }
        Datum::Record(record) => {
            let types = record.types.iter().copied();
            together(record.values.iter().zip(types), 0, seed)?
        }
        Datum::Range(range) => of_range(range, seed)?,
        Datum::Multirange(multirange) => {
            let mut all = 1u64;
            for range in &multirange.ranges {
                interrupt::poll()?;
                let own = of_range(range, seed)?;
                all = (all << 5).wrapping_sub(all).wrapping_add(own);
            }
            all
        }
        _ => return Err(Error::unsupported("PostgreSQL's hash of such a value").into()),
    })
}

/// The flags and both bounds; a bound that there is not is 0.
fn of_range(range: &Range, seed: u64) -> Result<u64, EvalStop> {
    let turned = |all: u64| {
        let (high, low) = ((all >> 32) as u32, all as u32);
        u64::from(high.rotate_left(1)) << 32 | u64::from(low.rotate_left(1))
    };
    let bound = |value: &Datum| match value {
        Datum::Null => Ok(0),
        value => hashed(value, range.subtype, seed),
    };
    let (lower, upper) = match &range.bounds {
        Some(ends) => (bound(&ends.lower.value)?, bound(&ends.upper.value)?),
        None => (0, 0),
    };
    let flags = word(u32::from(flags(range)), seed);
    Ok(turned(flags ^ lower) ^ upper)
}

/// One row a type: the type, the oids and names of both functions. An array's and a record's items
/// tell their own types.
macro_rules! hashes {
    ($($ty:ident $plain:literal $plain_name:literal $seeded:literal $seeded_name:literal;)*) => {
        pub static FUNCTIONS: &[Function] = &[$(
            {
                fn plain(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
                    Ok((hashed(&args[0], $ty, 0)? as i32).into())
                }
                Function::new($plain, $plain_name, &[$ty], INT4, plain)
            },
            {
                fn seeded(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
                    let seed = int(&args[1]) as u64;
                    Ok((hashed(&args[0], $ty, seed)? as i64).into())
                }
                Function::new($seeded, $seeded_name, &[$ty, INT8], INT8, seeded)
            },
        )*];
    };
}
hashes! {
    ANYARRAY 626 "hash_array" 782 "hash_array_extended";
    NUMERIC 432 "hash_numeric" 780 "hash_numeric_extended";
    RECORD 6192 "hash_record" 6193 "hash_record_extended";
    BOOL 6417 "hashbool" 6418 "hashboolextended";
    BPCHAR 1080 "hashbpchar" 972 "hashbpcharextended";
    BYTEA 6413 "hashbytea" 6414 "hashbyteaextended";
    INET 422 "hashinet" 779 "hashinetextended";
    MACADDR 399 "hashmacaddr" 778 "hashmacaddrextended";
    MACADDR8 328 "hashmacaddr8" 781 "hashmacaddr8extended";
    CHAR 454 "hashchar" 446 "hashcharextended";
    CID 6423 "hashcid" 6424 "hashcidextended";
    DATE 6415 "hashdate" 6416 "hashdateextended";
    FLOAT4 451 "hashfloat4" 443 "hashfloat4extended";
    FLOAT8 452 "hashfloat8" 444 "hashfloat8extended";
    NAME 455 "hashname" 447 "hashnameextended";
    OID 453 "hashoid" 445 "hashoidextended";
    TID 2233 "hashtid" 2234 "hashtidextended";
    XID 6419 "hashxid" 6420 "hashxidextended";
    XID8 6421 "hashxid8" 6422 "hashxid8extended";
    INTERVAL 1697 "interval_hash" 3418 "interval_hash_extended";
    PG_LSN 3252 "pg_lsn_hash" 3413 "pg_lsn_hash_extended";
    TIME 1688 "time_hash" 3409 "time_hash_extended";
    TIMESTAMP 2039 "timestamp_hash" 3411 "timestamp_hash_extended";
    TIMESTAMPTZ 6425 "timestamptz_hash" 6426 "timestamptz_hash_extended";
    ANYRANGE 3902 "hash_range" 3417 "hash_range_extended";
    ANYMULTIRANGE 4278 "hash_multirange" 4279 "hash_multirange_extended";
    TIMETZ 1696 "timetz_hash" 3410 "timetz_hash_extended";
    UUID 2963 "uuid_hash" 3412 "uuid_hash_extended";
}
