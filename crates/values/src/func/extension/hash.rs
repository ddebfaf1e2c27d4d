//! Hashes that several extensions use, and HMAC over any of them (RFC 2104).

use sha2::Digest;

/// A hash by name: what computes it, and the bytes that it takes at a time.
#[derive(Clone, Copy)]
pub(super) struct Hash {
    pub name: &'static str,
    pub of: fn(&[u8]) -> Vec<u8>,
    block: usize,
}

pub(super) static HASHES: [Hash; 6] = [
    Hash {
        name: "md5",
        of: md5,
        block: 64,
    },
    Hash {
        name: "sha1",
        of: sha1,
        block: 64,
    },
    Hash {
        name: "sha224",
        of: |b| sha2::Sha224::digest(b).to_vec(),
        block: 64,
    },
    Hash {
        name: "sha256",
        of: sha256,
        block: 64,
    },
    Hash {
        name: "sha384",
        of: |b| sha2::Sha384::digest(b).to_vec(),
        block: 128,
    },
    Hash {
        name: "sha512",
        of: sha512,
        block: 128,
    },
];

pub(super) fn md5(bytes: &[u8]) -> Vec<u8> {
    // Another version of the trait than the rest have.
    <md5::Md5 as md5::Digest>::digest(bytes).to_vec()
}

pub(super) fn sha1(bytes: &[u8]) -> Vec<u8> {
    sha1::Sha1::digest(bytes).to_vec()
}

pub(super) fn sha256(bytes: &[u8]) -> Vec<u8> {
    sha2::Sha256::digest(bytes).to_vec()
}

pub(super) fn sha512(bytes: &[u8]) -> Vec<u8> {
    sha2::Sha512::digest(bytes).to_vec()
}

impl Hash {
    /// The keyed hash of a message.
    pub fn keyed(&self, key: &[u8], message: &[u8]) -> Vec<u8> {
        let mut key = match key.len() > self.block {
            true => (self.of)(key),
            false => key.to_vec(),
        };
        key.resize(self.block, 0);
        let padded = |byte: u8| key.iter().map(move |k| k ^ byte);
        let inner: Vec<u8> = padded(0x36).chain(message.iter().copied()).collect();
        let inner = (self.of)(&inner);
        let outer: Vec<u8> = padded(0x5c).chain(inner).collect();
        (self.of)(&outer)
    }
}
