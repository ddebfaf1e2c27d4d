//! TLS as the server offers it: what takes a socket in, and what a client may bind its password's
//! proof to (`tls-server-end-point`, RFC 5929 section 4.1).

use std::sync::Arc;

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use tokio_rustls::TlsAcceptor;

/// The listener's side of TLS; cheap to copy.
#[derive(Clone)]
pub struct Tls {
    pub acceptor: TlsAcceptor,
    /// The certificate's hash; None where its signature names no hash of which clients could know.
    pub end_point: Option<Arc<[u8]>>,
}

impl Tls {
    /// `certificate`: the server's own, in DER.
    pub fn new(config: rustls::ServerConfig, certificate: &[u8]) -> Tls {
        Tls {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            end_point: end_point(certificate).map(Arc::from),
        }
    }
}

/// The hash of a certificate by the function that signed it; by SHA-256 where that was MD5 or
/// SHA-1.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match signed_by(certificate)? {
        Hash::Sha224 => Sha224::digest(certificate).to_vec(),
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;

/// One element of DER: its tag, its contents, and what comes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(first), rest),
        _ => {
            let bytes = usize::from(first & 0x7f);
            let (bytes, rest) = rest.split_at_checked(bytes).filter(|_| bytes <= 4)?;
            let join = |length: usize, byte: &u8| length << 8 | usize::from(*byte);
            (bytes.iter().fold(0, join), rest)
        }
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

fn contents_of(wanted: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (tag, contents, rest) = element(der)?;
    (tag == wanted).then_some((contents, rest))
}

/// The hash that a certificate's `signatureAlgorithm` names: its second part, after what was
/// signed.
fn signed_by(certificate: &[u8]) -> Option<Hash> {
    let (parts, _) = contents_of(SEQUENCE, certificate)?;
    let (_, after_signed) = contents_of(SEQUENCE, parts)?;
    let (algorithm, _) = contents_of(SEQUENCE, after_signed)?;
    let (object, _) = contents_of(OBJECT, algorithm)?;
    /// 1.2.840.113549.1.1: signatures by RSA.
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    /// 1.2.840.10045.4: signatures by ECDSA.
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    if let Some(kind) = object.strip_prefix(RSA) {
        return match kind {
            [4 | 5 | 11] => Some(Hash::Sha256),
            [12] => Some(Hash::Sha384),
            [13] => Some(Hash::Sha512),
            [14] => Some(Hash::Sha224),
            _ => None,
        };
    }
    match object.strip_prefix(ECDSA)? {
        [1] | [3, 2] => Some(Hash::Sha256),
        [3, 1] => Some(Hash::Sha224),
        [3, 3] => Some(Hash::Sha384),
        [3, 4] => Some(Hash::Sha512),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
        let length = contents.len();
        let head = match length {
            0..0x80 => vec![tag, length as u8],
            _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
        };
        [&head[..], contents].concat()
    }

    fn certificate(object: &[u8]) -> Vec<u8> {
        let signed = der(SEQUENCE, &[7; 300]);
        let algorithm = der(SEQUENCE, &der(OBJECT, object));
        der(SEQUENCE, &[signed, algorithm, der(3, &[0; 64])].concat())
    }

    #[test]
    fn the_hash_is_the_signatures() {
        let rsa = |last| [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last];
        assert_eq!(signed_by(&certificate(&rsa(11))), Some(Hash::Sha256));
        assert_eq!(signed_by(&certificate(&rsa(5))), Some(Hash::Sha256));
        assert_eq!(signed_by(&certificate(&rsa(13))), Some(Hash::Sha512));
        let ecdsa = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
        assert_eq!(signed_by(&certificate(&ecdsa)), Some(Hash::Sha384));
        // Ed25519 names none.
        assert_eq!(signed_by(&certificate(&[0x2b, 0x65, 0x70])), None);
    }

    #[test]
    fn a_cut_certificate_has_none() {
        let whole = certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]);
        assert!((0..whole.len()).all(|end| end_point(&whole[..end]).is_none()));
        assert_eq!(end_point(&whole).map(|hash| hash.len()), Some(32));
    }
}
