//! `bit` and `bit varying`: strings of bits.
//!
//! Kept as their bytes, the first bit highest and 0 behind the last one, and a byte that tells how
//! many bits of the last byte are not used.

use super::base::{BaseInputOutput, Modifier};
use super::binary::{Reader, invalid};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, interrupt, oid};

/// The longest length a type may have.
const LONGEST_TYPE: i32 = 83_886_080;
/// The most bits of a value.
const LONGEST: usize = 0x7fff_fff8;

/// A string of bits that is read.
#[derive(Clone, Copy)]
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    pub len: usize,
}

impl<'a> Bits<'a> {
    pub fn from_stored(stored: &'a [u8]) -> Bits<'a> {
        let (unused, bytes) = stored.split_last().unwrap_or((&0, &[]));
        Bits {
            bytes,
            len: (bytes.len() * 8).saturating_sub((*unused).into()),
        }
    }

    pub fn of(value: &'a Datum) -> Bits<'a> {
        match value {
            Datum::Base(value) => Bits::from_stored(&value.bytes),
            _ => unreachable!("not a string of bits: {value:?}"),
        }
    }

    pub fn get(self, at: usize) -> bool {
        self.bytes[at / 8] >> (7 - at % 8) & 1 == 1
    }

    /// Eight bits from one on, 0 beyond the end.
    #[inline]
    fn eight(self, from: usize) -> u8 {
        let byte = |at: usize| self.bytes.get(at).copied().unwrap_or(0);
        let (at, shift) = (from / 8, from % 8);
        match shift {
            0 => byte(at),
            _ => byte(at) << shift | byte(at + 1) >> (8 - shift),
        }
    }

    /// Whether the other's bits are here from one on.
    pub fn has(self, other: Bits<'_>, from: usize) -> bool {
        let whole = other.len / 8;
        let same = (0..whole).all(|i| self.eight(from + 8 * i) == other.bytes[i]);
        let rest = other.len % 8;
        same && (rest == 0
            || (self.eight(from + 8 * whole) ^ other.bytes[whole]) >> (8 - rest) == 0)
    }

    /// All of them as a number.
    pub fn number(self) -> u64 {
        let number = self
            .bytes
            .iter()
            .fold(0u128, |n, b| n << 8 | u128::from(*b));
        (number >> (self.bytes.len() * 8 - self.len)) as u64
    }
}

/// A string of bits that is written.
#[derive(Default)]
pub struct BitBuffer {
    bytes: Vec<u8>,
    len: usize,
}

impl BitBuffer {
    pub fn with_capacity(bits: usize) -> BitBuffer {
        BitBuffer {
            bytes: Vec::with_capacity(bits / 8 + 2),
            len: 0,
        }
    }

    #[inline]
    fn push_eight(&mut self, byte: u8, count: usize) {
        let byte = byte & (0xff00u32 >> count) as u8;
        match self.len % 8 {
            0 => self.bytes.push(byte),
            used => {
                if let Some(last) = self.bytes.last_mut() {
                    *last |= byte >> used;
                }
                if count > 8 - used {
                    self.bytes.push(byte << (8 - used));
                }
            }
        }
        self.len += count;
    }

    pub fn push(&mut self, bit: bool) {
        self.push_eight(u8::from(bit) << 7, 1);
    }

    /// Appends bits of another string: those from one on, up to another.
    pub fn append(&mut self, bits: Bits<'_>, from: usize, to: usize) {
        let (from, to) = (from.min(bits.len), to.min(bits.len));
        for at in (from..to).step_by(8) {
            self.push_eight(bits.eight(at), (to - at).min(8));
        }
    }

    /// Appends the same bit many times.
    pub fn fill(&mut self, bit: bool, count: usize) {
        let byte = if bit { 0xff } else { 0 };
        for at in (0..count).step_by(8) {
            self.push_eight(byte, (count - at).min(8));
        }
    }

    pub fn stored(mut self) -> Vec<u8> {
        let unused = self.bytes.len() * 8 - self.len;
        self.bytes.push(unused as u8);
        self.bytes
    }
}

#[cold]
fn wrong_digit(digit: char, of: &str) -> Error {
    let message = format!("\"{digit}\" is not a valid {of} digit");
    Error::new(state::INVALID_TEXT_REPRESENTATION, message)
}

/// Digits, of two kinds or of sixteen.
pub fn parse_digits(digits: &str, hexadecimal: bool) -> Result<Vec<u8>> {
    let width = if hexadecimal { 4 } else { 1 };
    if digits.len() > LONGEST / width {
        let message = format!("bit string length exceeds the maximum allowed ({LONGEST})");
        return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let mut bits = BitBuffer::with_capacity(digits.len() * width);
    for (at, digit) in digits.char_indices() {
        if at % 1024 == 0 {
            interrupt::poll()?;
        }
        match (digit, digit.to_digit(16)) {
            ('0' | '1', _) if !hexadecimal => bits.push(digit == '1'),
            (_, Some(value)) if hexadecimal => bits.push_eight((value << 4) as u8, 4),
            _ if hexadecimal => return Err(wrong_digit(digit, "hexadecimal")),
            _ => return Err(wrong_digit(digit, "binary")),
        }
    }
    Ok(bits.stored())
}

fn parse(text: &str) -> Result<Vec<u8>> {
    match text.as_bytes().first() {
        Some(b'x' | b'X') => parse_digits(&text[1..], true),
        Some(b'b' | b'B') => parse_digits(&text[1..], false),
        _ => parse_digits(text, false),
    }
}

fn write(value: &[u8], out: &mut Vec<u8>) {
    let bits = Bits::from_stored(value);
    out.reserve(bits.len);
    out.extend((0..bits.len).map(|at| b'0' + u8::from(bits.get(at))));
}

fn receive(binary: &[u8]) -> Result<Vec<u8>> {
    let mut incoming = Reader(binary);
    let length = i32::from_be_bytes(incoming.take()?);
    let len = usize::try_from(length)
        .ok()
        .filter(|len| *len <= LONGEST)
        .ok_or_else(|| invalid("invalid length in external bit string"))?;
    let bytes = incoming.bytes(len.div_ceil(8))?;
    incoming.end()?;
    let mut bits = BitBuffer::with_capacity(len);
    let given = Bits {
        bytes,
        len: bytes.len() * 8,
    };
    bits.append(given, 0, len);
    Ok(bits.stored())
}

fn send(value: &[u8], out: &mut Vec<u8>) {
    let bits = Bits::from_stored(value);
    out.extend_from_slice(&(bits.len as i32).to_be_bytes());
    out.extend_from_slice(bits.bytes);
}

fn length_written(modifiers: &[i32], name: &str) -> Result<i32> {
    let invalid = |message: String| Error::new(state::INVALID_PARAMETER_VALUE, message);
    match modifiers {
        [] => Ok(-1),
        [length @ 1..=LONGEST_TYPE] => Ok(*length),
        [..=0] => Err(invalid(format!(
            "length for type {name} must be at least 1"
        ))),
        [_] => Err(invalid(format!(
            "length for type {name} cannot exceed {LONGEST_TYPE}"
        ))),
        _ => Err(invalid("invalid type modifier".into())),
    }
}

/// So many bits: the first ones, with 0 behind them where there are fewer.
pub fn resized(value: &[u8], len: usize) -> Vec<u8> {
    let bits = Bits::from_stored(value);
    let mut out = BitBuffer::with_capacity(len);
    out.append(bits, 0, len);
    out.fill(false, len.saturating_sub(bits.len));
    out.stored()
}

/// As `bit` of a length.
pub fn fitted(value: &[u8], length: i32, explicit: bool) -> Result<Option<Vec<u8>>> {
    let bits = Bits::from_stored(value);
    match usize::try_from(length) {
        Ok(len) if len > 0 && len != bits.len => {
            if !explicit {
                let message = format!(
                    "bit string length {} does not match type bit({length})",
                    bits.len
                );
                return Err(Error::new(state::STRING_DATA_LENGTH_MISMATCH, message));
            }
            Ok(Some(resized(value, len)))
        }
        _ => Ok(None),
    }
}

/// As `bit varying` of a length at most.
pub fn cut(value: &[u8], length: i32, explicit: bool) -> Result<Option<Vec<u8>>> {
    let bits = Bits::from_stored(value);
    match usize::try_from(length) {
        Ok(len) if len > 0 && len < bits.len => {
            if !explicit {
                let message = format!("bit string too long for type bit varying({length})");
                return Err(Error::new(state::STRING_DATA_RIGHT_TRUNCATION, message));
            }
            Ok(Some(resized(value, len)))
        }
        _ => Ok(None),
    }
}

/// What both types have in common.
const EITHER: BaseInputOutput = BaseInputOutput {
    ty: oid::BIT,
    input: |_, text, _| parse(text),
    output: |_, value, out| write(value, out),
    receive: |_, binary| receive(binary),
    send: |_, value, out| {
        send(value, out);
        Ok(())
    },
    modifier: None,
};

pub(super) static BIT: BaseInputOutput = BaseInputOutput {
    modifier: Some(Modifier {
        from_written: |modifiers| length_written(modifiers, "bit"),
        apply: fitted,
    }),
    ..EITHER
};

pub(super) static VARBIT: BaseInputOutput = BaseInputOutput {
    ty: oid::VARBIT,
    modifier: Some(Modifier {
        from_written: |modifiers| length_written(modifiers, "varbit"),
        apply: cut,
    }),
    ..EITHER
};
