//! How a client enters: the server's handshake (version 10), the answer to it, and two ways to
//! prove a password.
//!
//! ```text
//! server   handshake: version, nonce, what it can, its usual method
//! client   what we can, user, database, method and proof
//! server   OK │ ERR │ another method and nonce ──► proof │ of caching_sha2_password: known ──► OK
//!                                                        └ not known: the password itself, see [`Proof::whole`]
//! ```
//!
//! `mysql_native_password`: SHA1(p) ⊕ SHA1(nonce, SHA1(SHA1(p))). `caching_sha2_password`:
//! SHA256(p) ⊕ SHA256(SHA256(SHA256(p)), nonce), which a server checks only if it has seen the
//! password since it started.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::packet::{Reader, malformed};
use super::rsa;
use crate::load::trouble::{Result, Trouble};
use crate::load::url::{Address, Target};

/// What we and the server can (MySQL's internals documentation, "Capability Flags").
pub mod can {
    pub const LONG_PASSWORD: u32 = 1;
    /// Rows that an UPDATE found are counted, changed or not: as PostgreSQL counts.
    pub const FOUND_ROWS: u32 = 1 << 1;
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    pub const PROTOCOL_41: u32 = 1 << 9;
    pub const TRANSACTIONS: u32 = 1 << 13;
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    /// Rows end with an OK packet, and nothing stands between columns and rows.
    pub const DEPRECATE_EOF: u32 = 1 << 24;
}

/// Without these (MySQL 5.5, MariaDB 5.2) nothing here works.
const NEEDED: u32 = can::PROTOCOL_41 | can::SECURE_CONNECTION | can::PLUGIN_AUTH;
const WANTED: u32 = NEEDED
    | can::LONG_PASSWORD
    | can::FOUND_ROWS
    | can::CONNECT_WITH_DB
    | can::TRANSACTIONS
    | can::DEPRECATE_EOF;
/// utf8mb4_general_ci, which every server of ours knows.
const CHARACTER_SET: u8 = 45;
/// What we would take, said in the answer; the server's own limit is what counts.
const LONGEST_PACKET: u32 = 1 << 24;
const NONCE: usize = 20;

/// What the server says first.
#[derive(Debug)]
pub struct Handshake {
    pub capabilities: u32,
    nonce: [u8; NONCE],
    method: String,
}

impl Handshake {
    pub fn read(body: &[u8]) -> Result<Handshake> {
        let mut reader = Reader(body);
        let version = reader.u8()?;
        if version != 10 {
            return Err(Trouble::broken(format!(
                "a handshake of version {version}, where MySQL's is 10"
            )));
        }
        reader.terminated();
        reader.u32()?;
        let mut nonce = [0; NONCE];
        let (front, back) = nonce.split_at_mut(8);
        front.copy_from_slice(reader.bytes(8)?);
        reader.u8()?;
        let low = reader.u16()?;
        // Character set, status.
        reader.bytes(1 + 2)?;
        let capabilities = u32::from(reader.u16()?) << 16 | u32::from(low);
        if capabilities & NEEDED != NEEDED {
            return Err(Trouble::broken(
                "the server is too old: it lacks what MySQL 5.5 can",
            ));
        }
        // The nonce's length, which is 21 with its zero byte, and what is reserved.
        reader.bytes(1 + 10)?;
        back.copy_from_slice(reader.bytes(12)?);
        reader.u8()?;
        Ok(Handshake {
            capabilities,
            nonce,
            method: text(reader.terminated())?,
        })
    }

    /// What both can.
    pub fn shared(&self) -> u32 {
        WANTED & (self.capabilities | can::LONG_PASSWORD)
    }

    /// The answer, with a proof by the server's usual method, if we know it.
    pub fn answer(&self, target: &Target) -> (Vec<u8>, Proof) {
        let method = match Method::of(&self.method) {
            Ok(method) => method,
            // The server knows which one the user has, and will name it.
            Err(_) => Method::Native,
        };
        let proof = Proof::new(method, self.nonce);
        let mut out = Vec::new();
        out.extend_from_slice(&self.shared().to_le_bytes());
        out.extend_from_slice(&LONGEST_PACKET.to_le_bytes());
        out.push(CHARACTER_SET);
        out.extend_from_slice(&[0; 23]);
        out.extend_from_slice(target.user.as_bytes());
        out.push(0);
        let proven = proof.of(target);
        // A digest: 32 bytes at most.
        out.push(proven.len() as u8);
        out.extend_from_slice(&proven);
        out.extend_from_slice(target.database.as_bytes());
        out.push(0);
        out.extend_from_slice(method.name().as_bytes());
        out.push(0);
        (out, proof)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Native,
    CachingSha2,
}

impl Method {
    fn of(name: &str) -> Result<Method> {
        match name {
            "mysql_native_password" => Ok(Method::Native),
            "caching_sha2_password" => Ok(Method::CachingSha2),
            _ => Err(Trouble::broken(format!(
                "authentication by {name} is not spoken here: give the bench a user of its own, IDENTIFIED WITH \
                 mysql_native_password or caching_sha2_password"
            ))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Method::Native => "mysql_native_password",
            Method::CachingSha2 => "caching_sha2_password",
        }
    }
}

/// A method and the nonce to use it with.
#[derive(Debug)]
pub struct Proof {
    method: Method,
    nonce: [u8; NONCE],
}

/// What a server that knows only a digest's digest wants next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// It knows the password; OK follows.
    Nothing,
    /// This answer.
    Answer(Vec<u8>),
}

/// Asks for the server's public key.
const ASK_KEY: u8 = 2;
/// It knows the password already, or wants to see it.
const KNOWN: u8 = 3;
const UNKNOWN: u8 = 4;

impl Proof {
    fn new(method: Method, nonce: [u8; NONCE]) -> Proof {
        Proof { method, nonce }
    }

    /// From the server's wish for another method.
    pub fn switched(body: &[u8]) -> Result<Proof> {
        let mut reader = Reader(body);
        reader.u8()?;
        if reader.0.is_empty() {
            return Err(Trouble::broken(
                "the server wants a password in the form of before MySQL 4.1, which is not spoken here",
            ));
        }
        let method = Method::of(&text(reader.terminated())?)?;
        Ok(Proof::new(method, reader.array()?))
    }

    /// The answer. Without a password it is empty.
    pub fn of(&self, target: &Target) -> Vec<u8> {
        let password = target.password.as_deref().unwrap_or_default().as_bytes();
        match (password, self.method) {
            ([], _) => Vec::new(),
            (_, Method::Native) => {
                let once = Sha1::digest(password);
                let mask = Sha1::new()
                    .chain_update(self.nonce)
                    .chain_update(Sha1::digest(once));
                xor(&once, &mask.finalize())
            }
            (_, Method::CachingSha2) => {
                let once = Sha256::digest(password);
                let mask = Sha256::new()
                    .chain_update(Sha256::digest(once))
                    .chain_update(self.nonce);
                xor(&once, &mask.finalize())
            }
        }
    }

    /// What to answer to more that the server says on its method, behind the byte that says that it
    /// is more.
    pub fn go_on(&self, target: &Target, said: &[u8]) -> Result<Next> {
        match (self.method, said) {
            (Method::CachingSha2, [KNOWN]) => Ok(Next::Nothing),
            (Method::CachingSha2, [UNKNOWN]) => self.whole(target),
            (Method::CachingSha2, pem) if pem.starts_with(b"-----BEGIN") => {
                let mut secret = secret(target);
                for (byte, mask) in secret.iter_mut().zip(self.nonce.iter().cycle()) {
                    *byte ^= mask;
                }
                rsa::encrypt(pem, &secret).map(Next::Answer)
            }
            _ => Err(malformed()),
        }
    }

    /// The password itself, to a server that does not know it yet: in the clear over a Unix socket,
    /// under the key that the server sends over a loopback address. Anybody could send a key from
    /// elsewhere.
    fn whole(&self, target: &Target) -> Result<Next> {
        match &target.address {
            Address::Unix(_) => Ok(Next::Answer(secret(target))),
            Address::Tcp(at) if at.ip().is_loopback() => Ok(Next::Answer(vec![ASK_KEY])),
            Address::Tcp(_) => Err(Trouble::broken(
                "caching_sha2_password: the server has not seen this password since it started and wants it whole, \
                 which is not sent over a network without TLS: log in once with another client, or use a Unix socket, \
                 or a user with mysql_native_password",
            )),
        }
    }
}

/// The password as it is sent, with its zero byte.
fn secret(target: &Target) -> Vec<u8> {
    let mut secret = target
        .password
        .as_deref()
        .unwrap_or_default()
        .as_bytes()
        .to_vec();
    secret.push(0);
    secret
}

fn xor(one: &[u8], two: &[u8]) -> Vec<u8> {
    one.iter().zip(two).map(|(a, b)| a ^ b).collect()
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed())
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).expect("valid")
    }

    /// As MariaDB 10.11 says it.
    pub fn handshake(method: &str) -> Vec<u8> {
        let mut body = b"\x0a5.5.5-10.11\0\x07\0\0\0abcdefgh\0".to_vec();
        body.extend_from_slice(&(NEEDED as u16).to_le_bytes());
        body.extend_from_slice(&[45, 2, 0]);
        body.extend_from_slice(&((NEEDED >> 16) as u16).to_le_bytes());
        body.extend_from_slice(&[21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        body.extend_from_slice(b"ijklmnopqrst\0");
        body.extend_from_slice(method.as_bytes());
        body.push(0);
        body
    }

    const NONCE_OF_TESTS: [u8; NONCE] = *b"abcdefghijklmnopqrst";

    #[test]
    fn a_handshake_and_its_answer() {
        let read = Handshake::read(&handshake("mysql_native_password")).expect("well formed");
        assert_eq!(read.nonce, NONCE_OF_TESTS);
        let (out, _) = read.answer(&target("mysql://ada@127.0.0.1/books"));
        assert_eq!(out[..4], read.shared().to_le_bytes());
        assert!(out.ends_with(b"\0ada\0\0books\0mysql_native_password\0"));
        assert_eq!(read.shared() & can::DEPRECATE_EOF, 0);

        let whole = handshake("x");
        for cut in 0..whole.len() - 2 {
            assert!(Handshake::read(&whole[..cut]).is_err(), "{cut}");
        }
        assert!(Handshake::read(b"\x09old").is_err());
    }

    /// Computed by another implementation (Python's hashlib).
    #[test]
    fn proofs() {
        let ada = target("mysql://ada:pencil@127.0.0.1/books");
        let native = Proof::new(Method::Native, NONCE_OF_TESTS).of(&ada);
        assert_eq!(hex(&native), "5279aebaa4562b3363b3e2c4329e2c19e8fb2797");
        let caching = Proof::new(Method::CachingSha2, NONCE_OF_TESTS).of(&ada);
        assert_eq!(
            hex(&caching),
            "a4768237b040eef7295d9c34845afb4d4adbf9571c705e77f616caa29fa4edc8"
        );
        let nobody = target("mysql://ada@127.0.0.1/books");
        assert!(
            Proof::new(Method::Native, NONCE_OF_TESTS)
                .of(&nobody)
                .is_empty()
        );
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn another_method() {
        let switched =
            Proof::switched(b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0").expect("known");
        assert_eq!(
            (switched.method, switched.nonce),
            (Method::CachingSha2, NONCE_OF_TESTS)
        );
        let unknown = Proof::switched(b"\xfeclient_ed25519\0abcdefgh").expect_err("unknown");
        assert!(unknown.to_string().contains("client_ed25519"), "{unknown}");
        for wrong in [
            &b"\xfe"[..],
            b"\xfemysql_native_password\0short",
            b"\xfe\xff\xff\0",
        ] {
            assert!(Proof::switched(wrong).is_err());
        }
    }

    #[test]
    fn a_server_that_does_not_know_the_password() {
        let proof = Proof::new(Method::CachingSha2, NONCE_OF_TESTS);
        let next = |url: &str| proof.go_on(&target(url), &[UNKNOWN]);
        let unix = next("mysql://ada:pencil@%2Ftmp%2Fs/books").expect("in the clear");
        assert_eq!(unix, Next::Answer(b"pencil\0".to_vec()));
        let near = next("mysql://ada:pencil@127.0.0.1/books").expect("by key");
        assert_eq!(near, Next::Answer(vec![ASK_KEY]));
        let far = next("mysql://ada:pencil@192.0.2.1/books").expect_err("a network");
        assert!(far.to_string().contains("log in once"), "{far}");
        assert_eq!(
            proof
                .go_on(&target("mysql://a@127.0.0.1/b"), &[KNOWN])
                .expect("known"),
            Next::Nothing
        );
        assert!(proof.go_on(&target("mysql://a@127.0.0.1/b"), b"?").is_err());
        let native = Proof::new(Method::Native, NONCE_OF_TESTS);
        assert!(
            native
                .go_on(&target("mysql://a:p@%2Fs/b"), &[UNKNOWN])
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_or_understood(body in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Handshake::read(&body);
            let _ = Proof::switched(&body);
            let proof = Proof::new(Method::CachingSha2, NONCE_OF_TESTS);
            let _ = proof.go_on(&target("mysql://a:p@127.0.0.1/b"), &body);
        }
    }
}
