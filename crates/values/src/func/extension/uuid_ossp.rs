//! `uuid-ossp`: universally unique identifiers of versions 1, 3, 4 and 5 (RFC 9562).
//!
//! A node is 48 random bits with the multicast bit set, one for the life of the process: what the
//! RFC has for who does not want to tell the address of a network card.

use super::{Extension, Native, hash, scalar};
use crate::func::{EvalContext, EvalResult};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use throng_types::Datum;

pub(super) static EXTENSION: Extension = Extension {
    name: "uuid-ossp",
    version: "1.1",
    comment: "generate universally unique identifiers (UUIDs)",
    functions: FUNCTIONS,
    ..Extension::PLAIN
};

const FUNCTIONS: &[Native] = &[
    scalar("uuid_nil() returns uuid immutable strict", nil),
    scalar("uuid_ns_dns() returns uuid immutable strict", ns_dns),
    scalar("uuid_ns_url() returns uuid immutable strict", ns_url),
    scalar("uuid_ns_oid() returns uuid immutable strict", ns_oid),
    scalar("uuid_ns_x500() returns uuid immutable strict", ns_x500),
    scalar("uuid_generate_v1() returns uuid strict", v1),
    scalar("uuid_generate_v1mc() returns uuid strict", v1mc),
    scalar(
        "uuid_generate_v3(namespace uuid, name text) returns uuid immutable strict",
        v3,
    ),
    scalar("uuid_generate_v4() returns uuid strict", v4),
    scalar(
        "uuid_generate_v5(namespace uuid, name text) returns uuid immutable strict",
        v5,
    ),
];

/// The name spaces differ in one byte.
const fn namespace(last: u8) -> [u8; 16] {
    0x6ba7_b800_9dad_11d1_80b4_00c0_4fd4_30c8_u128
        .wrapping_add((last as u128) << 96)
        .to_be_bytes()
}

fn nil(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Uuid([0; 16]))
}
fn ns_dns(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Uuid(namespace(0x10)))
}
fn ns_url(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Uuid(namespace(0x11)))
}
fn ns_oid(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Uuid(namespace(0x12)))
}
fn ns_x500(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Uuid(namespace(0x14)))
}

/// Writes the version and the variant of the RFC.
fn marked(mut bytes: [u8; 16], version: u8) -> Datum {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Datum::Uuid(bytes)
}

/// Steps of 100 ns since the Gregorian calendar began, each given out once in the process.
fn step() -> u64 {
    /// From then to 1970.
    const BEFORE_UNIX: u64 = 0x01b2_1dd2_1381_4000;
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = BEFORE_UNIX + since.map_or(0, |since| (since.as_nanos() / 100) as u64);
    // Only that no two get the same number matters.
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(now.max(last + 1))
    });
    last.map_or(now, |last| now.max(last + 1))
}

fn timed(node: [u8; 6], sequence: u16) -> Datum {
    let step = step();
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&(step as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&((step >> 32) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&((step >> 48) as u16).to_be_bytes());
    bytes[8..10].copy_from_slice(&sequence.to_be_bytes());
    bytes[10..].copy_from_slice(&node);
    marked(bytes, 1)
}

fn random_node() -> [u8; 6] {
    let mut node: [u8; 6] = rand::random();
    node[0] |= 1;
    node
}

fn v1(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    static NODE: LazyLock<([u8; 6], u16)> = LazyLock::new(|| (random_node(), rand::random()));
    let (node, sequence) = *NODE;
    Ok(timed(node, sequence))
}

fn v1mc(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(timed(random_node(), rand::random()))
}

/// The first bytes of a hash of a name space and a name.
fn named(hash: fn(&[u8]) -> Vec<u8>, args: &[Datum], version: u8) -> EvalResult {
    let [Datum::Uuid(namespace), Datum::Text(name)] = args else {
        return Ok(Datum::Null);
    };
    let hash = hash(&[namespace, name.as_bytes()].concat());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Ok(marked(bytes, version))
}

fn v3(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    named(hash::md5, args, 3)
}

fn v4(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(marked(rand::random(), 4))
}

fn v5(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    named(hash::sha1, args, 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_of_time_differ_and_name_spaces_are_those_of_the_rfc() {
        let mut given: Vec<String> = (0..1000)
            .map(|_| format!("{:?}", timed([1; 6], 1)))
            .collect();
        given.sort();
        given.dedup();
        assert_eq!(given.len(), 1000);
        assert_eq!(namespace(0x10)[..5], [0x6b, 0xa7, 0xb8, 0x10, 0x9d]);
    }
}
