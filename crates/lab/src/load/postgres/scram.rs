//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the client's side, without channel binding.
//!
//! ```text
//!   first():      n,,n=,r=<nonce>
//!   server:       r=<nonce><server's>,s=<salt>,i=<iterations>
//!   answer():     c=biws,r=<nonce><server's>,p=<proof>
//!   server:       v=<signature>            verified: the server knows the password's verifier too
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use rand::RngCore;
use sha2::{Digest, Sha256};

use crate::load::trouble::{Result, Trouble};

/// The only mechanism offered.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// The GS2 header "n,," (no channel binding), as the final message repeats it.
const BINDING: &str = "biws";

/// More than this and a hostile server could keep the load busy for minutes.
const MOST_ITERATIONS: u32 = 10_000_000;

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// A conversation that has sent its first message.
pub struct Scram {
    password: String,
    nonce: String,
}

/// A conversation that has sent its proof.
pub struct Proved {
    signature: [u8; 32],
}

impl Scram {
    pub fn new(password: &str) -> Scram {
        let mut nonce = [0; 18];
        rand::rng().fill_bytes(&mut nonce);
        Scram {
            password: stringprep::saslprep(password)
                .unwrap_or(password.into())
                .into_owned(),
            nonce: BASE64.encode(nonce),
        }
    }

    /// client-first-message. PostgreSQL takes the user from the start-up message and wants none
    /// here.
    pub fn first(&self) -> String {
        format!("n,,n=,r={}", self.nonce)
    }

    /// client-final-message, from server-first-message.
    pub fn answer(&self, server_first: &str) -> Result<(String, Proved)> {
        let wrong = || Trouble::broken("malformed SCRAM challenge");
        let mut parts = server_first.split(',');
        let mut part = |name: &str| parts.next().and_then(|p| p.strip_prefix(name));
        let nonce = part("r=").ok_or_else(wrong)?;
        let salt = part("s=")
            .and_then(|s| BASE64.decode(s).ok())
            .ok_or_else(wrong)?;
        let iterations = part("i=").and_then(|i| i.parse().ok()).ok_or_else(wrong)?;
        if !nonce.starts_with(&self.nonce) || !(1..=MOST_ITERATIONS).contains(&iterations) {
            return Err(wrong());
        }
        let mut salted = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(self.password.as_bytes(), &salt, iterations, &mut salted);
        let client_key = hmac(&salted, b"Client Key");
        let stored_key: [u8; 32] = Sha256::digest(client_key).into();
        let without_proof = format!("c={BINDING},r={nonce}");
        let transcript = format!("n=,r={},{server_first},{without_proof}", self.nonce);
        let mut proof = hmac(&stored_key, transcript.as_bytes());
        proof.iter_mut().zip(client_key).for_each(|(p, k)| *p ^= k);
        let signature = hmac(&hmac(&salted, b"Server Key"), transcript.as_bytes());
        let message = format!("{without_proof},p={}", BASE64.encode(proof));
        Ok((message, Proved { signature }))
    }
}

impl Proved {
    /// Checks server-final-message.
    pub fn verify(&self, server_final: &str) -> Result<()> {
        let signature = server_final
            .strip_prefix("v=")
            .and_then(|v| BASE64.decode(v).ok());
        match signature {
            Some(s) if s == self.signature => Ok(()),
            _ => Err(Trouble::broken("the server's SCRAM signature is wrong")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3, but for the user name, which PostgreSQL leaves out: the
    /// proof then differs, so it was computed with RFC 5802's formulas by another implementation
    /// (Python's hmac and hashlib).
    #[test]
    fn an_exchange() {
        let scram = Scram {
            password: "pencil".into(),
            nonce: "rOprNGfwEbeRWgbNEkqO".into(),
        };
        assert_eq!(scram.first(), "n,,n=,r=rOprNGfwEbeRWgbNEkqO");
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                         s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (message, proved) = scram.answer(challenge).expect("well formed");
        assert_eq!(
            message,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=qvT2SWdEH5Q06albL+hjSYuUhCG7VndFyzIb7CK4n9k="
        );
        proved
            .verify("v=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg=")
            .expect("the server's");
        assert!(proved.verify("v=AAAA").is_err());
        assert!(scram.answer("r=another,s=AAAA,i=4096").is_err());
    }
}
