//! RSA with OAEP and SHA-1 (RFC 8017, 7.1.1), of which a client needs to encrypt one short secret,
//! once a connection at most, with the key that a server sends: no secret key is here, so nothing
//! is to be kept from who measures time.
//!
//! ```text
//! block = 0 | seed ⊕ mask(db) | db ⊕ mask(seed)        db = SHA1("") | 0 … 0 | 1 | secret
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use num_bigint::BigUint;
use rand::RngCore;
use sha1::{Digest, Sha1};

use super::packet::{Reader, malformed};
use crate::load::trouble::{Result, Trouble};

/// Bytes of SHA-1.
const HASH: usize = 20;
/// Bytes of a modulus: less cannot be meant, more would keep the load busy.
const MODULUS: std::ops::RangeInclusive<usize> = 128..=1024;
/// Bytes of the public exponent, which is 65537 as a rule.
const MOST_EXPONENT: usize = 4;

/// Tags of DER.
const INTEGER: u8 = 2;
const BIT_STRING: u8 = 3;
const SEQUENCE: u8 = 0x30;

/// Encrypts under a public key in PEM.
pub fn encrypt(pem: &[u8], secret: &[u8]) -> Result<Vec<u8>> {
    let key = Key::read(pem).map_err(|_| Trouble::broken("a public key that is none of RSA's"))?;
    let mut seed = [0; HASH];
    rand::rng().fill_bytes(&mut seed);
    let block = pad(key.length, seed, secret)?;
    let number = BigUint::from_bytes_be(&block).modpow(&key.exponent, &key.modulus);
    let digits = number.to_bytes_be();
    let mut encrypted = vec![0; key.length - digits.len()];
    encrypted.extend_from_slice(&digits);
    Ok(encrypted)
}

struct Key {
    modulus: BigUint,
    exponent: BigUint,
    /// The modulus's bytes.
    length: usize,
}

impl Key {
    /// A SubjectPublicKeyInfo (RFC 5280, 4.1) in PEM.
    fn read(pem: &[u8]) -> Result<Key> {
        let text = std::str::from_utf8(pem).map_err(|_| malformed())?;
        let text = text.trim_matches(['\0', '\n', '\r', ' ']);
        let inner = text
            .strip_prefix("-----BEGIN PUBLIC KEY-----")
            .and_then(|t| t.strip_suffix("-----END PUBLIC KEY-----"))
            .ok_or_else(malformed)?;
        let digits: String = inner.split_ascii_whitespace().collect();
        let bytes = BASE64.decode(digits).map_err(|_| malformed())?;
        let mut info = Reader(element(&mut Reader(&bytes), SEQUENCE)?);
        element(&mut info, SEQUENCE)?;
        let mut bits = Reader(element(&mut info, BIT_STRING)?);
        // How many bits of the last byte are left out: none.
        bits.u8()?;
        let mut key = Reader(element(&mut bits, SEQUENCE)?);
        let modulus = unsigned(&mut key)?;
        let exponent = unsigned(&mut key)?;
        if !MODULUS.contains(&modulus.len()) || exponent.len() > MOST_EXPONENT {
            return Err(malformed());
        }
        Ok(Key {
            modulus: BigUint::from_bytes_be(modulus),
            exponent: BigUint::from_bytes_be(exponent),
            length: modulus.len(),
        })
    }
}

/// An element's contents.
fn element<'a>(reader: &mut Reader<'a>, tag: u8) -> Result<&'a [u8]> {
    if reader.u8()? != tag {
        return Err(malformed());
    }
    let length = match reader.u8()? {
        short @ 0..=0x7f => usize::from(short),
        0x81 => usize::from(reader.u8()?),
        0x82 => usize::from(u16::from_be_bytes(reader.array()?)),
        _ => return Err(malformed()),
    };
    reader.bytes(length)
}

/// An integer above zero, without the zeros before it.
fn unsigned<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let digits = element(reader, INTEGER)?;
    let zeros = digits.iter().take_while(|b| **b == 0).count();
    match &digits[zeros..] {
        [] => Err(malformed()),
        digits => Ok(digits),
    }
}

fn pad(length: usize, seed: [u8; HASH], secret: &[u8]) -> Result<Vec<u8>> {
    let room = length - 2 * HASH - 2;
    if secret.len() > room {
        return Err(Trouble::usage(
            "the password is too long for the server's key",
        ));
    }
    let mut block = vec![0; length];
    let (front, db) = block.split_at_mut(1 + HASH);
    db[..HASH].copy_from_slice(&Sha1::digest(b""));
    let at = db.len() - secret.len();
    db[at - 1] = 1;
    db[at..].copy_from_slice(secret);
    mask(db, &seed);
    front[1..].copy_from_slice(&seed);
    mask(&mut front[1..], db);
    Ok(block)
}

/// MGF1 (RFC 8017, B.2.1).
fn mask(bytes: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in bytes.chunks_mut(HASH).enumerate() {
        let hash = Sha1::new()
            .chain_update(seed)
            .chain_update((counter as u32).to_be_bytes());
        chunk
            .iter_mut()
            .zip(hash.finalize())
            .for_each(|(b, m)| *b ^= m);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made by OpenSSL for this test, 1024 bits.
    const PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCv8BwD1GgQoK6OI7JwGtYp2tFa
OfxdbmTLzDuVhnPQWiWOvsGJgl10QpxflbqGzMxjQpQt4cqWaO4xECgMDYPyb15/
YvLIsa4Uq/3+W2t2GYRv56o6pBxF+esFSSSKH3Y7GDg5l92Tc+Q5XcPr93mm4lAJ
/Q/kks15/IeYUEWQywIDAQAB
-----END PUBLIC KEY-----
";
    const PRIVATE_EXPONENT: &[u8] = b"\
53fff5c036578128d66e72c8ad118312f4b063bdafaa041d07d878d249215e66cbebbd53b60d920502109aea67e6183db55e\
8254edaac5e94f600970b56076902c49e57107d7264c7a377b8d1d12c538b4eb456ff04d1ca89b990c19b67aba56427a2f1d\
f1d74868ab93475f036becd2d44ba3c20523aced476108602d938891\
";

    #[test]
    fn who_has_the_key_reads_the_secret() {
        let key = Key::read(PUBLIC.as_bytes()).expect("a key");
        let d: Vec<u8> = PRIVATE_EXPONENT
            .iter()
            .copied()
            .filter(u8::is_ascii_hexdigit)
            .collect();
        let d = BigUint::parse_bytes(&d, 16).expect("hexadecimal");
        for secret in [&b"pencil\0"[..], b"", &[b'x'; 86]] {
            let encrypted = encrypt(PUBLIC.as_bytes(), secret).expect("encrypted");
            assert_eq!(encrypted.len(), 128);
            let digits = BigUint::from_bytes_be(&encrypted)
                .modpow(&d, &key.modulus)
                .to_bytes_be();
            let mut block = vec![0; key.length - digits.len()];
            block.extend_from_slice(&digits);
            let (front, db) = block.split_at_mut(1 + HASH);
            mask(&mut front[1..], db);
            mask(db, &front[1..]);
            assert_eq!((front[0], &db[..HASH]), (0, &Sha1::digest(b"")[..]));
            let one = HASH + db[HASH..].iter().position(|b| *b == 1).expect("a one");
            assert!(db[HASH..one].iter().all(|b| *b == 0));
            assert_eq!(&db[one + 1..], secret);
        }
        assert!(encrypt(PUBLIC.as_bytes(), &[b'x'; 87]).is_err(), "too long");
    }

    proptest! {
        #[test]
        fn garbage_is_no_key(at in 0usize..216, byte in any::<u8>()) {
            let inner: String = PUBLIC.lines().filter(|l| !l.starts_with('-')).collect();
            let mut bytes = BASE64.decode(inner).expect("base 64");
            let at = at % bytes.len();
            bytes[at] = byte;
            let pem = format!("-----BEGIN PUBLIC KEY-----{}-----END PUBLIC KEY-----", BASE64.encode(&bytes));
            let _ = encrypt(pem.as_bytes(), b"secret");
        }
    }
}
