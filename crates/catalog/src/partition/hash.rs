//! The hash that rows of a hash-partitioned table are placed by: PostgreSQL's, so that a row goes to the partition it would go to there. Types
//! whose hash PostgreSQL takes from a form of its own (`numeric`, `jsonb` and others) are hashed by
//! their ordered key.

use throng_types::{Datum, Result, SqlType, oid};

use super::key_bytes;
use throng_values::func::EvalStop;
use throng_values::func::compare::hashes::{base_hash, hashed};
use throng_values::hash::{folded, hash_any_extended, hash_uint32_extended};
use throng_values::io::scalar::wide_number;

/// `HASH_PARTITION_SEED`.
const SEED: u64 = 0x7a5b_2236_7996_dcfd;

/// The hash of a key's values; NULLs do not count.
pub fn row_hash(values: &[Datum], types: &[SqlType]) -> Result<u64> {
    let mut hash = 0u64;
    for (value, ty) in values.iter().zip(types) {
        if !value.is_null() {
            hash = combine(hash, value_hash(value, *ty)?);
        }
    }
    Ok(hash)
}

fn combine(a: u64, b: u64) -> u64 {
    a ^ b
        .wrapping_add(0x49a0_f4dd_15e5_a8e3)
        .wrapping_add(a << 54)
        .wrapping_add(a >> 7)
}

fn value_hash(value: &Datum, ty: SqlType) -> Result<u64> {
    Ok(match (value, ty.oid) {
        (Datum::Bool(v), _) => word(u32::from(*v)),
        (Datum::Char(v), _) => word(i32::from(*v as i8) as u32),
        (Datum::Int2(v), _) => word(i32::from(*v) as u32),
        (Datum::Int4(v), _) => word(*v as u32),
        (Datum::Oid(v), _) => word(*v),
        (Datum::Int8(v), oid::XID8 | oid::PG_LSN) => long(wide_number(*v) as i64),
        (Datum::Int8(v), _) => long(*v),
        (Datum::Date(v), _) => word(*v as u32),
        (Datum::Timestamp(v) | Datum::TimestampTz(v) | Datum::Time(v), _) => long(*v),
        (Datum::Uuid(v), _) => bytes(v),
        (Datum::Base(v), _) => match base_hash(v, SEED) {
            Some(hash) => hash,
            None => bytes(&key_bytes(value, ty)?),
        },
        (Datum::Bytea(v), _) => bytes(v),
        (Datum::Text(text), oid::BPCHAR) => bytes(text.trim_end_matches(' ').as_bytes()),
        (Datum::Text(text), _) => bytes(text.as_bytes()),
        (Datum::Range(_) | Datum::Multirange(_), _) => {
            hashed(value, ty.oid, SEED).map_err(EvalStop::into_error)?
        }
        _ => bytes(&key_bytes(value, ty)?),
    })
}

/// 64-bit integers hash as narrower ones of the same value do.
fn long(v: i64) -> u64 {
    word(folded(v))
}

fn word(k: u32) -> u64 {
    hash_uint32_extended(k, SEED)
}

fn bytes(k: &[u8]) -> u64 {
    hash_any_extended(k, SEED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hashint4extended(1, s)` and its kin with the partition seed, as PostgreSQL 18 answers.
    #[test]
    fn as_postgresql_hashes() {
        assert_eq!(word(1) as i64, 5_968_994_663_651_403_477);
        assert_eq!(long(-1) as i64, -5_017_072_347_659_237_694);
        assert_eq!(bytes(b"abc") as i64, 3_628_778_498_291_917_250);
        assert_eq!(
            bytes(b"0123456789abcdef") as i64,
            -4_129_830_718_427_646_609
        );
    }
}
