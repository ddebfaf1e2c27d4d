//! Ciphers over raw bytes: `encrypt`, `decrypt`, by the name `cipher[-mode][/pad:padding]`.

use super::{failed, invalid, raw};
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult};
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, BlockSizeUser, KeyInit};
use throng_types::{Datum, Error, Result, interrupt};

/// A cipher with its key.
pub(super) trait Block {
    fn encrypt(&self, block: &mut [u8]);
    fn decrypt(&self, block: &mut [u8]);
}

impl<C: BlockEncrypt + BlockDecrypt + BlockSizeUser> Block for C {
    fn encrypt(&self, block: &mut [u8]) {
        self.encrypt_block(GenericArray::from_mut_slice(block));
    }
    fn decrypt(&self, block: &mut [u8]) {
        self.decrypt_block(GenericArray::from_mut_slice(block));
    }
}

/// A cipher by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes,
    Blowfish,
    Des,
    TripleDes,
    Cast5,
}

#[cold]
fn no_key() -> Error {
    Error::internal("a key of a length that its cipher does not take")
}

fn with_key<C: KeyInit + Block + 'static>(key: &[u8]) -> Result<Box<dyn Block>> {
    let cipher = C::new_from_slice(key).map_err(|_| no_key())?;
    Ok(Box::new(cipher))
}

impl Cipher {
    fn named(name: &str) -> Option<Cipher> {
        Some(match name {
            "aes" | "rijndael" => Cipher::Aes,
            "bf" | "blowfish" => Cipher::Blowfish,
            "des" => Cipher::Des,
            "3des" => Cipher::TripleDes,
            "cast5" => Cipher::Cast5,
            _ => return None,
        })
    }

    pub fn block(self) -> usize {
        match self {
            Cipher::Aes => 16,
            _ => 8,
        }
    }

    /// Short keys are filled up with zeros, Blowfish's with themselves; long ones are cut, but for
    /// Blowfish's: None.
    pub fn keyed(self, key: &[u8]) -> Option<Result<Box<dyn Block>>> {
        let padded = |len: usize| {
            let mut key = key.to_vec();
            key.resize(len, 0);
            key
        };
        let longest = match self {
            Cipher::Aes => 32,
            Cipher::Blowfish => usize::MAX,
            Cipher::Des => 8,
            Cipher::TripleDes => 24,
            Cipher::Cast5 => 16,
        };
        let key = &key[..key.len().min(longest)];
        Some(match (self, key.len()) {
            (Cipher::Aes, ..=16) => with_key::<aes::Aes128>(&padded(16)),
            (Cipher::Aes, ..=24) => with_key::<aes::Aes192>(&padded(24)),
            (Cipher::Aes, ..=32) => with_key::<aes::Aes256>(&padded(32)),
            (Cipher::Blowfish, ..=56) => {
                const LEAST: usize = 4;
                let key = match key.len() {
                    0 => vec![0; LEAST],
                    1..LEAST => key.repeat(LEAST),
                    _ => key.to_vec(),
                };
                with_key::<blowfish::Blowfish>(&key)
            }
            (Cipher::Des, ..=8) => with_key::<des::Des>(&padded(8)),
            (Cipher::TripleDes, ..=24) => with_key::<des::TdesEde3>(&padded(24)),
            (Cipher::Cast5, len @ ..=16) => with_key::<cast5::Cast5>(&padded(len.max(5))),
            _ => return None,
        })
    }
}

/// A cipher with its mode and padding.
struct Scheme {
    cipher: Cipher,
    chained: bool,
    padded: bool,
}

impl Scheme {
    fn named(name: &Datum) -> Result<Scheme> {
        let written = text(name).to_lowercase();
        let parsed = || {
            let (algorithm, options) = match written.split_once('/') {
                Some((algorithm, options)) => (algorithm, Some(options)),
                None => (&*written, None),
            };
            let (cipher, mode) = match algorithm.split_once('-') {
                Some((cipher, mode)) => (cipher, mode),
                None => (algorithm, "cbc"),
            };
            Some(Scheme {
                cipher: Cipher::named(cipher)?,
                chained: match mode {
                    "cbc" => true,
                    "ecb" => false,
                    _ => return None,
                },
                padded: match options {
                    None | Some("pad:pkcs") => true,
                    Some("pad:none") => false,
                    _ => return None,
                },
            })
        };
        let unknown = || {
            invalid(format!(
                "Cannot use \"{written}\": No such cipher algorithm"
            ))
        };
        parsed().ok_or_else(unknown)
    }

    fn keyed(&self, key: &[u8], verb: &str) -> Result<Box<dyn Block>> {
        let too_big = || failed(format!("{verb} error: Key was too big"));
        self.cipher.keyed(key).ok_or_else(too_big)?
    }

    /// An initialization vector of a block's length.
    fn vector(&self, given: &[u8]) -> Vec<u8> {
        let mut vector = given.to_vec();
        vector.resize(self.cipher.block(), 0);
        vector
    }

    fn encrypt(&self, data: &[u8], key: &[u8], vector: &[u8]) -> Result<Vec<u8>> {
        let block = self.cipher.block();
        let cipher = self.keyed(key, "encrypt")?;
        let mut out = data.to_vec();
        if self.padded {
            let missing = block - out.len() % block;
            out.resize(out.len() + missing, missing as u8);
        } else if !out.len().is_multiple_of(block) {
            return Err(failed("encrypt error: Encryption failed"));
        }
        let mut before = self.vector(vector);
        for part in out.chunks_mut(block) {
            interrupt::poll()?;
            if self.chained {
                part.iter_mut().zip(&before).for_each(|(a, b)| *a ^= b);
            }
            cipher.encrypt(part);
            before.copy_from_slice(part);
        }
        Ok(out)
    }

    fn decrypt(&self, data: &[u8], key: &[u8], vector: &[u8]) -> Result<Vec<u8>> {
        let block = self.cipher.block();
        let cipher = self.keyed(key, "decrypt")?;
        let failure = || failed("decrypt error: Decryption failed");
        let mut out = data.to_vec();
        if !out.len().is_multiple_of(block) || self.padded && out.is_empty() {
            return Err(failure());
        }
        let mut before = self.vector(vector);
        for part in out.chunks_mut(block) {
            interrupt::poll()?;
            let this = part.to_vec();
            cipher.decrypt(part);
            if self.chained {
                part.iter_mut().zip(&before).for_each(|(a, b)| *a ^= b);
            }
            before = this;
        }
        if self.padded {
            let count = usize::from(out.last().copied().unwrap_or(0));
            let kept = out.len().saturating_sub(count);
            let good = (1..=block).contains(&count)
                && out[kept..].iter().all(|byte| usize::from(*byte) == count);
            if !good {
                return Err(failure());
            }
            out.truncate(kept);
        }
        Ok(out)
    }
}

pub(super) fn encrypt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (data, key) = (raw(&args[0]), raw(&args[1]));
    interrupt::expect(data.len())?;
    Ok(Datum::bytea(Scheme::named(&args[2])?.encrypt(
        data,
        key,
        &[],
    )?))
}

pub(super) fn decrypt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (data, key) = (raw(&args[0]), raw(&args[1]));
    interrupt::expect(data.len())?;
    Ok(Datum::bytea(Scheme::named(&args[2])?.decrypt(
        data,
        key,
        &[],
    )?))
}

pub(super) fn encrypt_iv(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (data, key, vector) = (raw(&args[0]), raw(&args[1]), raw(&args[2]));
    interrupt::expect(data.len())?;
    Ok(Datum::bytea(
        Scheme::named(&args[3])?.encrypt(data, key, vector)?,
    ))
}

pub(super) fn decrypt_iv(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (data, key, vector) = (raw(&args[0]), raw(&args[1]), raw(&args[2]));
    interrupt::expect(data.len())?;
    Ok(Datum::bytea(
        Scheme::named(&args[3])?.decrypt(data, key, vector)?,
    ))
}
