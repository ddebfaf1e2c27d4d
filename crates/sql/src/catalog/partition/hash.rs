//! The hash that rows of a hash-partitioned table are placed by: PostgreSQL's (Bob Jenkins'
//! lookup3, 64 bits of it, seeded), so that a row goes to the partition it would go to there. Types
//! whose hash PostgreSQL takes from a form of its own (`numeric`, `jsonb` and others) are hashed by
//! their ordered key.

use throng_types::{Datum, Result, SqlType, oid};

use super::key_bytes;
use crate::io::scalar::wide_number;

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
        (Datum::Bytea(v), _) => bytes(v),
        (Datum::Text(text), oid::BPCHAR) => bytes(text.trim_end_matches(' ').as_bytes()),
        (Datum::Text(text), _) => bytes(text.as_bytes()),
        _ => bytes(&key_bytes(value, ty)?),
    })
}

/// 64-bit integers hash as narrower ones of the same value do.
fn long(v: i64) -> u64 {
    word(folded(v))
}

/// The word that an integer of any width is hashed as.
pub fn folded(v: i64) -> u32 {
    let (low, high) = (v as u32, (v >> 32) as u32);
    low ^ if v >= 0 { high } else { !high }
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> u64 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    u64::from(b) << 32 | u64::from(c)
}

fn start(length: usize) -> u32 {
    0x9e37_79b9u32
        .wrapping_add(length as u32)
        .wrapping_add(3_923_095)
}

fn begin(length: usize, seed: u64) -> [u32; 3] {
    let start = start(length);
    if seed == 0 {
        return [start; 3];
    }
    mix([
        start.wrapping_add((seed >> 32) as u32),
        start.wrapping_add(seed as u32),
        start,
    ])
}

fn word(k: u32) -> u64 {
    let [a, b, c] = begin(4, SEED);
    finish([a.wrapping_add(k), b, c])
}

/// PostgreSQL's `hash_any`.
pub fn hash_any(k: &[u8]) -> u32 {
    hash_any_extended(k, 0) as u32
}

/// PostgreSQL's `hash_any_extended`.
pub fn hash_any_extended(k: &[u8], seed: u64) -> u64 {
    bytes_from(begin(k.len(), seed), k)
}

fn bytes(k: &[u8]) -> u64 {
    hash_any_extended(k, SEED)
}

fn bytes_from(mut state: [u32; 3], k: &[u8]) -> u64 {
    let little = |part: &[u8]| {
        let mut word = [0u8; 4];
        word[..part.len()].copy_from_slice(part);
        u32::from_le_bytes(word)
    };
    let mut parts = k.chunks_exact(12);
    for part in &mut parts {
        let [a, b, c] = state;
        state = mix([
            a.wrapping_add(little(&part[..4])),
            b.wrapping_add(little(&part[4..8])),
            c.wrapping_add(little(&part[8..])),
        ]);
    }
    let rest = parts.remainder();
    let take = |from: usize, to: usize| {
        let to = to.min(rest.len());
        if from < to {
            little(&rest[from..to])
        } else {
            0
        }
    };
    let [a, b, c] = state;
    // The lowest byte of the last word is the length's.
    finish([
        a.wrapping_add(take(0, 4)),
        b.wrapping_add(take(4, 8)),
        c.wrapping_add(take(8, 11) << 8),
    ])
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
