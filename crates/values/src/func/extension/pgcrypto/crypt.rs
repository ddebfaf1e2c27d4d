//! Password hashes: `crypt` and the salts that choose among its algorithms.
//!
//! | salt begins | algorithm | source |
//! | --- | --- | --- |
//! | `$2a$` | bcrypt | Provos and Mazières, "A Future-Adaptable Password Scheme" (1999) |
//! | `$1$` | MD5 in a thousand rounds | Poul-Henning Kamp's of FreeBSD 2.0 |
//! | `$5$`, `$6$` | SHA-crypt | Drepper, "Unix crypt using SHA-256 and SHA-512" (2008) |
//! | `_` | extended DES | BSDi's |
//! | two letters | traditional DES | crypt(3) of Version 7 |

use super::{des, invalid, random};
use crate::func::extension::hash;
use crate::func::number::int;
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult};
use blowfish::Blowfish;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, interrupt};

/// The letters of all of them but bcrypt, the lowest six bits first.
const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Those of bcrypt, the highest six bits first.
const BCRYPT_LETTERS: &[u8; 64] =
    b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

#[cold]
fn invalid_salt() -> Error {
    invalid("invalid salt")
}

pub(super) fn crypt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (password, setting) = (text(&args[0]), text(&args[1]));
    // A C string ends where a zero byte is, and no text has one.
    let (password, setting) = (password.as_bytes(), setting.as_bytes());
    let made = match setting {
        [b'$', b'2', b'a', b'$', ..] => bcrypt(password, setting)?,
        [b'$', b'2', b'x', b'$', ..] => {
            let what = "crypt() with a salt that begins with $2x$";
            return Err(Error::unsupported(what).into());
        }
        [b'$', b'2', b'$', ..] => return Err(invalid_salt().into()),
        [b'$', b'1', b'$', ..] => md5_crypt(password, setting)?,
        [b'$', b'5', b'$', ..] => sha_crypt(password, setting, &SHA256)?,
        [b'$', b'6', b'$', ..] => sha_crypt(password, setting, &SHA512)?,
        [b'_', ..] => extended_des(password, setting)?,
        [first, second, ..] => traditional_des(password, [*first, *second])?,
        _ => return Err(invalid_salt().into()),
    };
    Ok(made.into())
}

pub(super) fn gen_salt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let name = text(&args[0]).to_lowercase();
    let rounds = args.get(1).map_or(0, int);
    let rounds_of = |usual: i64, least: i64, most: i64| match rounds {
        0 => Ok(usual),
        given if (least..=most).contains(&given) => Ok(given),
        _ => Err(invalid("gen_salt: Incorrect number of rounds")),
    };
    Ok(match name.as_str() {
        "bf" => {
            let cost = rounds_of(6, 4, 31)?;
            format!("$2a${cost:02}${}", bcrypt_base64(&random(16))).into()
        }
        "md5" => {
            rounds_of(1000, 1000, 1000)?;
            format!("$1${}", letters(&random(6))).into()
        }
        "des" => {
            rounds_of(25, 25, 25)?;
            letters(&random(3))[..2].into()
        }
        "xdes" => {
            // An even count would tell that keys are weak.
            let rounds = rounds_of(29 * 25, 1, 0xff_ffff)?;
            if rounds % 2 == 0 {
                return Err(invalid("gen_salt: Incorrect number of rounds").into());
            }
            let mut salt = "_".to_owned();
            push_letters(&mut salt, rounds as u32, 4);
            salt += &letters(&random(3));
            salt.into()
        }
        "sha256crypt" | "sha512crypt" => {
            let rounds = rounds_of(SHA_ROUNDS, LEAST_SHA_ROUNDS, MOST_SHA_ROUNDS)?;
            let number = if name == "sha256crypt" { 5 } else { 6 };
            format!("${number}$rounds={rounds}${}", letters(&random(12))).into()
        }
        _ => return Err(invalid("gen_salt: Unknown salt algorithm").into()),
    })
}

/// Six bits a letter, the highest first.
fn bcrypt_base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = group
            .iter()
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            let letter = bits >> (18 - 6 * place) & 63;
            out.push(BCRYPT_LETTERS[letter as usize].into());
        }
    }
    out
}

/// Six bits a letter, the lowest first, of three bytes that are taken as a number.
fn push_letters(out: &mut String, mut bits: u32, count: usize) {
    for _ in 0..count {
        out.push(LETTERS[(bits & 63) as usize].into());
        bits >>= 6;
    }
}

fn letters(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = group
            .iter()
            .rev()
            .fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        push_letters(&mut out, bits, 4);
    }
    out
}

/// The 16 bytes of a salt of 22 letters.
fn bcrypt_salt(letters: &[u8]) -> Option<[u8; 16]> {
    let mut salt = Vec::with_capacity(18);
    for group in letters.chunks(4) {
        let mut bits = 0u32;
        for letter in group {
            bits = bits << 6 | BCRYPT_LETTERS.iter().position(|l| l == letter)? as u32;
        }
        bits <<= 6 * (4 - group.len());
        salt.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    salt.get(..16)?.try_into().ok()
}

fn bcrypt(password: &[u8], setting: &[u8]) -> Result<String> {
    const PREFIX: usize = "$2a$00$".len();
    const SALT: usize = 22;
    /// Bytes of a key; what comes after them does not count.
    const KEY: usize = 72;
    let text = setting.get(..PREFIX + SALT).ok_or_else(invalid_salt)?;
    let cost = match (text[4], text[5], text[6]) {
        (tens @ b'0'..=b'3', ones @ b'0'..=b'9', b'$') => (tens - b'0') * 10 + ones - b'0',
        _ => return Err(invalid_salt()),
    };
    if !(4..=31).contains(&cost) {
        return Err(invalid_salt());
    }
    let salt = bcrypt_salt(&text[PREFIX..]).ok_or_else(invalid_salt)?;
    interrupt::expect(interrupt::MUCH + 1)?;
    let mut key = password.to_vec();
    key.push(0);
    key.truncate(KEY);
    let mut cipher: Blowfish = Blowfish::bc_init_state();
    cipher.salted_expand_key(&salt, &key);
    for _ in 0..1u64 << cost {
        interrupt::look()?;
        cipher.bc_expand_key(&key);
        cipher.bc_expand_key(&salt);
    }
    let words = b"OrpheanBeholderScryDoubt".chunks(4);
    let mut words: Vec<u32> = words
        .map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]))
        .collect();
    for pair in words.chunks_mut(2) {
        for _ in 0..64 {
            let [left, right] = cipher.bc_encrypt([pair[0], pair[1]]);
            (pair[0], pair[1]) = (left, right);
        }
    }
    let hash: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
    // The last byte of the hash is left out, and unused bits of the salt are zeros.
    let salt = bcrypt_base64(&salt);
    Ok(format!(
        "$2a${cost:02}${salt}{}",
        bcrypt_base64(&hash[..23])
    ))
}

/// The salt between `$1$` and the next dollar, eight letters at most.
fn salt_after(setting: &[u8], prefix: usize, most: usize) -> &[u8] {
    let rest = &setting[prefix..];
    let end = rest.iter().position(|b| *b == b'$').unwrap_or(rest.len());
    &rest[..end.min(most)]
}

fn md5_crypt(password: &[u8], setting: &[u8]) -> Result<String> {
    interrupt::expect(password.len().saturating_mul(1000))?;
    let salt = salt_after(setting, 3, 8);
    let mut sum = hash::md5(&[password, salt, password].concat());
    let mut first = [password, b"$1$", salt].concat();
    first.extend(sum.iter().cycle().take(password.len()));
    let mut bits = password.len();
    while bits > 0 {
        first.push(match bits & 1 {
            1 => 0,
            _ => password[0],
        });
        bits >>= 1;
    }
    sum = hash::md5(&first);
    for round in 0..1000 {
        interrupt::poll()?;
        let mut next = Vec::new();
        next.extend_from_slice(if round % 2 == 1 { password } else { &sum });
        if round % 3 != 0 {
            next.extend_from_slice(salt);
        }
        if round % 7 != 0 {
            next.extend_from_slice(password);
        }
        next.extend_from_slice(if round % 2 == 1 { &sum } else { password });
        sum = hash::md5(&next);
    }
    let mut out = format!("$1${}$", String::from_utf8_lossy(salt));
    let group = |a: usize, b: usize, c: usize| {
        u32::from(sum[a]) << 16 | u32::from(sum[b]) << 8 | u32::from(sum[c])
    };
    for (a, b, c) in [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)] {
        push_letters(&mut out, group(a, b, c), 4);
    }
    push_letters(&mut out, sum[11].into(), 2);
    Ok(out)
}

/// What a letter of a salt stands for.
fn number_of(letter: u8) -> u32 {
    LETTERS.iter().position(|l| *l == letter).unwrap_or(0) as u32
}

fn number_of_all(letters: &[u8]) -> u32 {
    let letters = letters.iter().rev();
    letters.fold(0, |number, letter| number << 6 | number_of(*letter))
}

/// 64 bits as eleven letters, the highest bits first.
fn push_des(out: &mut String, hash: u64) {
    for place in 0..11 {
        let bits = (u128::from(hash) << 2) >> (60 - 6 * place) & 63;
        out.push(LETTERS[bits as usize].into());
    }
}

fn traditional_des(password: &[u8], salt: [u8; 2]) -> Result<String> {
    let hash = des::hash(password, number_of_all(&salt), 25, false)?;
    let mut out = String::from_utf8_lossy(&salt).into_owned();
    push_des(&mut out, hash);
    Ok(out)
}

fn extended_des(password: &[u8], setting: &[u8]) -> Result<String> {
    let setting = setting.get(..9).ok_or_else(invalid_salt)?;
    let times = number_of_all(&setting[1..5]);
    if times == 0 {
        return Err(invalid_salt());
    }
    interrupt::expect(times as usize * 1024)?;
    let hash = des::hash(password, number_of_all(&setting[5..]), times, true)?;
    let mut out = String::from_utf8_lossy(setting).into_owned();
    push_des(&mut out, hash);
    Ok(out)
}

const SHA_ROUNDS: i64 = 5000;
const LEAST_SHA_ROUNDS: i64 = 1000;
const MOST_SHA_ROUNDS: i64 = 999_999_999;

/// One of the two hashes of SHA-crypt.
struct ShaCrypt {
    prefix: &'static str,
    hash: fn(&[u8]) -> Vec<u8>,
    /// The bytes of a hash that are written together, the highest first.
    groups: &'static [&'static [usize]],
}

static SHA256: ShaCrypt = ShaCrypt {
    prefix: "$5$",
    hash: hash::sha256,
    groups: &[
        &[0, 10, 20],
        &[21, 1, 11],
        &[12, 22, 2],
        &[3, 13, 23],
        &[24, 4, 14],
        &[15, 25, 5],
        &[6, 16, 26],
        &[27, 7, 17],
        &[18, 28, 8],
        &[9, 19, 29],
        &[31, 30],
    ],
};

static SHA512: ShaCrypt = ShaCrypt {
    prefix: "$6$",
    hash: hash::sha512,
    groups: &[
        &[0, 21, 42],
        &[22, 43, 1],
        &[44, 2, 23],
        &[3, 24, 45],
        &[25, 46, 4],
        &[47, 5, 26],
        &[6, 27, 48],
        &[28, 49, 7],
        &[50, 8, 29],
        &[9, 30, 51],
        &[31, 52, 10],
        &[53, 11, 32],
        &[12, 33, 54],
        &[34, 55, 13],
        &[56, 14, 35],
        &[15, 36, 57],
        &[37, 58, 16],
        &[59, 17, 38],
        &[18, 39, 60],
        &[40, 61, 19],
        &[62, 20, 41],
        &[63],
    ],
};

/// The first bytes of a hash over and over.
fn repeated(hash: &[u8], len: usize) -> Vec<u8> {
    hash.iter().copied().cycle().take(len).collect()
}

fn sha_crypt(password: &[u8], setting: &[u8], of: &ShaCrypt) -> Result<String> {
    const SALT: usize = 16;
    /// Of a password: as many copies of it as it has bytes are hashed.
    const LONGEST: usize = 4096;
    let mut rest = &setting[of.prefix.len()..];
    let mut said = None;
    if let Some(after) = rest.strip_prefix(b"rounds=")
        && let Some(end) = after.iter().position(|b| *b == b'$')
    {
        let digits = std::str::from_utf8(&after[..end]).ok();
        let rounds = digits.and_then(|digits| digits.parse::<i64>().ok());
        let rounds = rounds.ok_or_else(invalid_salt)?;
        said = Some(rounds.clamp(LEAST_SHA_ROUNDS, MOST_SHA_ROUNDS));
        rest = &after[end + 1..];
    }
    let rounds = said.unwrap_or(SHA_ROUNDS);
    let salt = salt_after(rest, 0, SALT);
    interrupt::expect(rounds as usize * 1024)?;
    if password.len() > LONGEST {
        let message = "password is too long for SHA-crypt";
        return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let mut sum = (of.hash)(&[password, salt, password].concat());
    let mut first = [password, salt].concat();
    first.extend(repeated(&sum, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        first.extend_from_slice(if bits & 1 == 1 { &sum } else { password });
        bits >>= 1;
    }
    sum = (of.hash)(&first);
    let passwords = repeated(&(of.hash)(&password.repeat(password.len())), password.len());
    let salts = salt.repeat(16 + usize::from(sum[0]));
    let salts = repeated(&(of.hash)(&salts), salt.len());
    for round in 0..rounds {
        interrupt::poll()?;
        let mut next = Vec::new();
        next.extend_from_slice(if round % 2 == 1 { &passwords } else { &sum });
        if round % 3 != 0 {
            next.extend_from_slice(&salts);
        }
        if round % 7 != 0 {
            next.extend_from_slice(&passwords);
        }
        next.extend_from_slice(if round % 2 == 1 { &sum } else { &passwords });
        sum = (of.hash)(&next);
    }
    let mut out = of.prefix.to_owned();
    if let Some(rounds) = said {
        out += &format!("rounds={rounds}$");
    }
    out += &String::from_utf8_lossy(salt);
    out.push('$');
    for group in of.groups {
        let bits = group
            .iter()
            .fold(0, |bits, at| bits << 8 | u32::from(sum[*at]));
        push_letters(&mut out, bits, group.len() + 1);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Drepper's text.
    #[test]
    fn sha_crypt_is_that_of_its_text() {
        let hash = |setting: &str, of| sha_crypt(b"Hello world!", setting.as_bytes(), of).ok();
        assert_eq!(
            hash("$5$saltstring", &SHA256).as_deref(),
            Some("$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5")
        );
        assert_eq!(
            hash("$5$rounds=10000$saltstringsaltstring", &SHA256).as_deref(),
            Some("$5$rounds=10000$saltstringsaltst$3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA")
        );
        assert_eq!(
            hash("$6$saltstring", &SHA512).as_deref(),
            Some(concat!(
                "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uB",
                "nIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1"
            ))
        );
    }

    /// From PostgreSQL 15's pgcrypto.
    #[test]
    fn hashes_of_passwords() {
        let salt = b"$1$abcdefghijk";
        let made = md5_crypt(b"x", salt).expect("MD5");
        assert_eq!(made, "$1$abcdefgh$znAnv9M.XU2pRYfmSs46h/");
        let made = traditional_des(b"x", *b"ab").expect("DES");
        assert_eq!(made, "abiQ6Ep3EYTHc");
        let made = extended_des(b"x", b"_J9..rasm").expect("DES");
        assert_eq!(made, "_J9..rasm3I3.7IOQ/Rk");
        let salt = b"$2a$06$RQiOJ.3ELirrXwxIZY8q0O";
        let made = bcrypt(b"foox", salt).expect("bcrypt");
        assert_eq!(
            made,
            "$2a$06$RQiOJ.3ELirrXwxIZY8q0OR3CVJrAfda1z26CCHPnB6mmVZD8p0/C"
        );
    }
}
