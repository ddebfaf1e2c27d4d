//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side, with PostgreSQL's form of a stored
//! verifier: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`, base64 throughout. The
//! password itself is never kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use rand::RngCore;
use sha2::{Digest, Sha256};

/// PostgreSQL's default `scram_iterations`.
const ITERATIONS: u32 = 4096;
const SALT: usize = 16;
const NONCE: usize = 18;

/// What is kept of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: [u8; 32],
    server_key: [u8; 32],
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

impl Verifier {
    /// Salts and hashes a password; RFC 4013's preparation is applied where the password allows it.
    pub fn of_password(password: &str, iterations: u32) -> Verifier {
        let mut salt = vec![0; SALT];
        rand::rng().fill_bytes(&mut salt);
        Verifier::derive(password, salt, iterations)
    }

    /// Whether it was made of this password, as far as that is cheap to say.
    pub fn is_of(&self, password: &str) -> bool {
        // Whoever sends a secret chooses how long it takes to look.
        const MOST: u32 = 100_000;
        self.iterations <= MOST
            && Verifier::derive(password, self.salt.clone(), self.iterations) == *self
    }

    fn derive(password: &str, salt: Vec<u8>, iterations: u32) -> Verifier {
        let prepared = stringprep::saslprep(password).unwrap_or(password.into());
        let mut salted = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(prepared.as_bytes(), &salt, iterations, &mut salted);
        Verifier {
            iterations,
            salt,
            stored_key: Sha256::digest(hmac(&salted, b"Client Key")).into(),
            server_key: hmac(&salted, b"Server Key"),
        }
    }

    /// A verifier no password opens, the same at each try for the same user.
    pub fn mock(user: &str) -> Verifier {
        let mut salt = Sha256::digest(user.as_bytes()).to_vec();
        salt.truncate(SALT);
        Verifier {
            iterations: ITERATIONS,
            salt,
            stored_key: [0; 32],
            server_key: [0; 32],
        }
    }

    pub fn parse(text: &str) -> Option<Verifier> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (salting, keys) = rest.split_once('$')?;
        let (iterations, salt) = salting.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        Some(Verifier {
            iterations: iterations.parse().ok()?,
            salt: BASE64.decode(salt).ok()?,
            stored_key: BASE64.decode(stored).ok()?.try_into().ok()?,
            server_key: BASE64.decode(server).ok()?.try_into().ok()?,
        })
    }
}

impl std::fmt::Display for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "SCRAM-SHA-256${}:{}${}:{}",
            self.iterations,
            BASE64.encode(&self.salt),
            BASE64.encode(self.stored_key),
            BASE64.encode(self.server_key)
        )
    }
}

/// What the client may bind its proof to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel<'c> {
    /// Nothing.
    Plain,
    /// The certificate, which it did not choose to.
    Offered,
    /// The certificate of this hash, and it must.
    Bound(&'c [u8]),
}

/// A conversation that has not heard the client yet.
pub struct Exchange {
    verifier: Verifier,
}

/// A conversation that has sent its challenge.
pub struct Challenged {
    verifier: Verifier,
    nonce: String,
    /// client-first-message-bare, server-first-message, joined by a comma.
    transcript: String,
    /// What the final message's channel binding must be: the first message's GS2 header, and what
    /// it is bound to.
    binding: String,
}

impl Exchange {
    pub fn new(verifier: Verifier) -> Exchange {
        Exchange { verifier }
    }

    /// Takes client-first-message, gives server-first-message. `None` if it is malformed or wants
    /// another channel binding.
    pub fn first(self, message: &str, channel: Channel<'_>) -> Option<(Challenged, String)> {
        let mut nonce = [0; NONCE];
        rand::rng().fill_bytes(&mut nonce);
        self.first_with(message, channel, &BASE64.encode(nonce))
    }

    fn first_with(
        self,
        message: &str,
        channel: Channel<'_>,
        server_nonce: &str,
    ) -> Option<(Challenged, String)> {
        // gs2-header = "n", "y" or "p=" and the kind of binding, a comma, an optional authzid, a
        // comma
        let mut parts = message.splitn(3, ',');
        let (flag, authzid, bare) = (parts.next()?, parts.next()?, parts.next()?);
        let agreed = match channel {
            Channel::Plain => matches!(flag, "n" | "y"),
            Channel::Offered => flag == "n",
            Channel::Bound(_) => flag == "p=tls-server-end-point",
        };
        if !agreed || !authzid.is_empty() {
            return None;
        }
        let mut binding = format!("{flag},{authzid},").into_bytes();
        if let Channel::Bound(hash) = channel {
            binding.extend_from_slice(hash);
        }
        let client_nonce = bare.split(',').find_map(|a| a.strip_prefix("r="))?;
        let nonce = format!("{client_nonce}{server_nonce}");
        let Verifier {
            salt, iterations, ..
        } = &self.verifier;
        let reply = format!("r={nonce},s={},i={iterations}", BASE64.encode(salt));
        let challenged = Challenged {
            transcript: format!("{bare},{reply}"),
            binding: BASE64.encode(binding),
            verifier: self.verifier,
            nonce,
        };
        Some((challenged, reply))
    }
}

impl Challenged {
    /// Takes client-final-message. `None` if it is malformed, `Some(None)` if the proof is wrong,
    /// else server-final-message.
    pub fn last(self, message: &str) -> Option<Option<String>> {
        let (without_proof, proof) = message.rsplit_once(",p=")?;
        let mut attributes = without_proof.split(',');
        let binding = attributes.next()?.strip_prefix("c=")?;
        let nonce = attributes.next()?.strip_prefix("r=")?;
        let proof: [u8; 32] = BASE64.decode(proof).ok()?.try_into().ok()?;
        if binding != self.binding || nonce != self.nonce {
            return None;
        }
        let signed = format!("{},{without_proof}", self.transcript);
        let signature = hmac(&self.verifier.stored_key, signed.as_bytes());
        let mut client_key = proof;
        for (k, s) in client_key.iter_mut().zip(signature) {
            *k ^= s;
        }
        let stored: [u8; 32] = Sha256::digest(client_key).into();
        if !same(&stored, &self.verifier.stored_key) {
            return Some(None);
        }
        let server = hmac(&self.verifier.server_key, signed.as_bytes());
        Some(Some(format!("v={}", BASE64.encode(server))))
    }
}

/// Compares in a time that does not tell where the first difference is.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter()
        .zip(b)
        .fold(0, |difference, (x, y)| difference | (x ^ y))
        == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange printed in RFC 7677, section 3.
    #[test]
    fn rfc_7677_example() {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
        let verifier = Verifier::derive("pencil", salt, 4096);
        let (challenged, first) = Exchange::new(verifier)
            .first_with(
                "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
                Channel::Plain,
                "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            )
            .expect("well formed");
        assert_eq!(
            first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = challenged.last(
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        );
        assert_eq!(
            last,
            Some(Some(
                "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_owned()
            ))
        );
    }

    #[test]
    fn a_verifier_survives_its_text() {
        let verifier = Verifier::of_password("secret", ITERATIONS);
        assert!(Verifier::parse(&verifier.to_string()) == Some(verifier));
        assert!(Verifier::parse("md5abc").is_none());
    }

    #[test]
    fn a_wrong_password_is_refused() {
        let salt = b"0123456789abcdef".to_vec();
        let kept = Verifier::derive("right", salt.clone(), 4096);
        let (challenged, first) = Exchange::new(kept)
            .first_with("n,,n=,r=abc", Channel::Plain, "def")
            .expect("well formed");
        // The client signs with another password's key.
        let mut salted = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(b"wrong", &salt, 4096, &mut salted);
        let client_key = hmac(&salted, b"Client Key");
        let stored: [u8; 32] = Sha256::digest(client_key).into();
        let signed = format!("n=,r=abc,{first},c=biws,r=abcdef");
        let mut proof = hmac(&stored, signed.as_bytes());
        for (p, k) in proof.iter_mut().zip(client_key) {
            *p ^= k;
        }
        let message = format!("c=biws,r=abcdef,p={}", BASE64.encode(proof));
        assert_eq!(challenged.last(&message), Some(None));
    }
    #[test]
    fn a_bound_channel_is_the_one_that_was_agreed() {
        let exchange = || Exchange::new(Verifier::mock("x"));
        let bound = "p=tls-server-end-point,,n=,r=abc";
        assert!(exchange().first(bound, Channel::Plain).is_none());
        assert!(exchange().first(bound, Channel::Offered).is_none());
        let plain = "n,,n=,r=abc";
        assert!(exchange().first(plain, Channel::Bound(b"hash")).is_none());
        assert!(exchange().first("y,,n=,r=abc", Channel::Offered).is_none());
        let other = "p=tls-unique,,n=,r=abc";
        assert!(exchange().first(other, Channel::Bound(b"hash")).is_none());
        let agreed = exchange().first_with(bound, Channel::Bound(b"hash"), "def");
        let (challenged, _) = agreed.expect("agreed");
        assert_eq!(
            challenged.binding,
            BASE64.encode(b"p=tls-server-end-point,,hash")
        );
    }
}
