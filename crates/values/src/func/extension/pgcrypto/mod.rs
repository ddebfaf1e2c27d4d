//! `pgcrypto`: hashes, password hashes, ciphers over raw bytes, and OpenPGP with passwords.
//!
//! | file | functions |
//! | --- | --- |
//! | here | `digest`, `hmac`, `gen_random_bytes`, `gen_random_uuid` |
//! | `crypt` | `crypt`, `gen_salt` |
//! | `cipher` | `encrypt`, `decrypt` and their forms with an initialization vector |
//! | `armor` | `armor`, `dearmor`, `pgp_armor_headers` |

mod armor;
mod cipher;
mod crypt;
mod des;

use super::hash::{HASHES, Hash};
use super::{Extension, Native, bytes, rows, scalar};
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult};
use rand::RngCore;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, interrupt};

pub(super) static EXTENSION: Extension = Extension {
    name: "pgcrypto",
    version: "1.4",
    comment: "cryptographic functions",
    functions: FUNCTIONS,
    ..Extension::PLAIN
};

const FUNCTIONS: &[Native] = &[
    scalar("digest(text, text) returns bytea immutable strict", digest),
    scalar("digest(bytea, text) returns bytea immutable strict", digest),
    scalar(
        "hmac(text, text, text) returns bytea immutable strict",
        hmac,
    ),
    scalar(
        "hmac(bytea, bytea, text) returns bytea immutable strict",
        hmac,
    ),
    scalar(
        "crypt(text, text) returns text immutable strict",
        crypt::crypt,
    ),
    scalar("gen_salt(text) returns text strict", crypt::gen_salt),
    scalar(
        "gen_salt(text, integer) returns text strict",
        crypt::gen_salt,
    ),
    scalar(
        "encrypt(bytea, bytea, text) returns bytea immutable strict",
        cipher::encrypt,
    ),
    scalar(
        "decrypt(bytea, bytea, text) returns bytea immutable strict",
        cipher::decrypt,
    ),
    scalar(
        "encrypt_iv(bytea, bytea, bytea, text) returns bytea immutable strict",
        cipher::encrypt_iv,
    ),
    scalar(
        "decrypt_iv(bytea, bytea, bytea, text) returns bytea immutable strict",
        cipher::decrypt_iv,
    ),
    scalar(
        "gen_random_bytes(integer) returns bytea strict",
        gen_random_bytes,
    ),
    scalar("gen_random_uuid() returns uuid", gen_random_uuid),
    scalar("armor(bytea) returns text immutable strict", armor::armor),
    scalar(
        "armor(bytea, text[], text[]) returns text immutable strict",
        armor::armor,
    ),
    scalar(
        "dearmor(text) returns bytea immutable strict",
        armor::dearmor,
    ),
    rows(
        "pgp_armor_headers(text, OUT key text, OUT value text) returns setof record \
         immutable strict",
        armor::headers,
    ),
];

/// An error of the library: `external_routine_invocation_exception`.
#[cold]
fn failed(message: impl Into<String>) -> Error {
    Error::new(state::EXTERNAL_ROUTINE_INVOCATION, message)
}

#[cold]
fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

/// The bytes of a text or of a byte string.
fn raw(value: &Datum) -> &[u8] {
    match value {
        Datum::Bytea(_) => bytes(value),
        _ => text(value).as_bytes(),
    }
}

fn hash_named(name: &Datum) -> Result<&'static Hash> {
    let lower = text(name).to_lowercase();
    let found = HASHES.iter().find(|hash| hash.name == lower);
    found.ok_or_else(|| invalid(format!("Cannot use \"{lower}\": No such hash algorithm")))
}

fn digest(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let hash = hash_named(&args[1])?;
    let data = raw(&args[0]);
    interrupt::expect(data.len())?;
    Ok(Datum::bytea((hash.of)(data)))
}

fn hmac(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let hash = hash_named(&args[2])?;
    let (data, key) = (raw(&args[0]), raw(&args[1]));
    interrupt::expect(data.len() + key.len())?;
    Ok(Datum::bytea(hash.keyed(key, data)))
}

fn gen_random_bytes(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    const MOST: usize = 1024;
    let count = match args[0] {
        Datum::Int4(count) => usize::try_from(count).unwrap_or(0),
        _ => 0,
    };
    if !(1..=MOST).contains(&count) {
        return Err(failed("Length not in range").into());
    }
    Ok(Datum::bytea(random(count)))
}

/// Bytes of a generator that is fit for keys.
fn random(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

fn gen_random_uuid(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    let mut bytes: [u8; 16] = rand::random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Datum::Uuid(bytes))
}
