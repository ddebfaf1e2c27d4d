//! `inet` and `cidr`: addresses of hosts and of networks.
//!
//! ```text
//!   | 2 IPv4 or 3 IPv6 | the network: 4 or 16 bytes, 0 behind its bits | how many bits |
//!     the host's bytes, from the one with its first bit on; none where all are 0 |
//! ```
//! The order of these bytes is that of the values: by network, the larger network first, then by
//! host.

use std::io::Write;

use super::base::BaseInputOutput;
use super::binary::{Reader, invalid};
use super::invalid_syntax;
use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{BaseValue, Datum, Error, Oid, Result, oid};

/// An address, and how many of its bits tell the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inet {
    /// IPv6.
    pub wide: bool,
    pub bits: u8,
    pub address: u128,
}

const V4: u8 = 2;
const V6: u8 = 3;

impl Inet {
    pub fn width(self) -> u8 {
        if self.wide { 128 } else { 32 }
    }

    /// A mask of the bits that an address of this width has.
    pub fn all(self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width()))
    }

    pub fn network_mask(self) -> u128 {
        self.all() ^ self.host_mask()
    }

    pub fn host_mask(self) -> u128 {
        let host = u32::from(self.width() - self.bits);
        u128::MAX.checked_shr(128 - host).unwrap_or(0)
    }

    pub fn network(self) -> u128 {
        self.address & self.network_mask()
    }

    /// The first so many bits are equal, and so is the family.
    pub fn shares(self, other: Inet, bits: u8) -> bool {
        let mask = Inet { bits, ..self }.network_mask();
        self.wide == other.wide && self.address & mask == other.address & mask
    }

    /// The network's own address.
    pub fn masked(self) -> Inet {
        Inet {
            address: self.network(),
            ..self
        }
    }

    pub fn octets(self) -> Vec<u8> {
        let octets = self.address.to_be_bytes();
        octets[16 - usize::from(self.width() / 8)..].to_vec()
    }

    pub fn words(self) -> [u16; 8] {
        std::array::from_fn(|i| (self.address >> (112 - 16 * i)) as u16)
    }

    pub fn from_stored(bytes: &[u8]) -> Inet {
        let wide = bytes.first() == Some(&V6);
        let length = if wide { 16 } else { 4 };
        let number = |octets: &[u8]| octets.iter().fold(0u128, |n, b| n << 8 | u128::from(*b));
        let (network, rest) = bytes.get(1..).unwrap_or_default().split_at(length);
        let (bits, host) = rest.split_first().unwrap_or((&0, &[]));
        Inet {
            wide,
            bits: *bits,
            address: number(network) | number(host),
        }
    }

    pub fn stored(self) -> Vec<u8> {
        let mut bytes = vec![if self.wide { V6 } else { V4 }];
        bytes.extend(self.masked().octets());
        bytes.push(self.bits);
        let host = self.address & self.host_mask();
        if host != 0 {
            let length = usize::from(self.width() - self.bits).div_ceil(8);
            bytes.extend_from_slice(&host.to_be_bytes()[16 - length..]);
        }
        bytes
    }

    /// As a value of `inet` or `cidr`.
    pub fn datum(self, ty: Oid) -> Datum {
        Datum::base(ty, self.stored())
    }

    pub fn of(value: &Datum) -> Inet {
        match value {
            Datum::Base(value) => Inet::from_stored(&value.bytes),
            _ => unreachable!("not an address: {value:?}"),
        }
    }

    /// The address alone.
    pub fn write_host(self, out: &mut Vec<u8>) {
        if self.wide {
            self.write_wide(out);
        } else {
            write_dotted(&self.octets(), out);
        }
    }

    fn write_wide(self, out: &mut Vec<u8>) {
        let words = self.words();
        let (mut zeros, mut at) = (0..0, 0);
        for run in words.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
            if run[0] == 0 && run.len() > 1 && run.len() > zeros.len() {
                zeros = at..at + run.len();
            }
            at += run.len();
        }
        let dotted = zeros.start == 0
            && match zeros.len() {
                6 => true,
                7 => words[7] != 1,
                5 => words[5] == 0xffff,
                _ => false,
            };
        for (at, word) in words.iter().enumerate() {
            if zeros.contains(&at) {
                if at == zeros.start {
                    out.push(b':');
                }
                continue;
            }
            if at > 0 {
                out.push(b':');
            }
            if dotted && at == 6 {
                write_dotted(&self.octets()[12..], out);
                return;
            }
            _ = write!(out, "{word:x}");
        }
        if !zeros.is_empty() && zeros.end == 8 {
            out.push(b':');
        }
    }

    pub fn write_bits(self, out: &mut Vec<u8>) {
        _ = write!(out, "/{}", self.bits);
    }

    /// A network's address without what follows from its bits. PostgreSQL's ways with runs of
    /// zeros are kept: one that is no longer than an earlier one is counted on with the next.
    pub fn write_abbreviated(self, out: &mut Vec<u8>) {
        let octets = self.masked().octets();
        if !self.wide {
            let shown = usize::from(self.bits).div_ceil(8).max(1);
            write_dotted(&octets[..shown], out);
        } else if self.bits == 0 {
            out.extend_from_slice(b"::");
        } else {
            self.write_abbreviated_wide(&octets, out);
        }
        self.write_bits(out);
    }

    fn write_abbreviated_wide(self, octets: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let words = self.masked().words();
        let shown = usize::from(self.bits).div_ceil(16).max(2);
        let (mut zeros, mut first, mut count) = (0..0, 0, 0);
        for at in 0..=shown {
            let is_zero = words.get(at).is_some_and(|word| *word == 0);
            if at < shown && is_zero {
                if count == 0 {
                    first = at;
                }
                count += 1;
            } else if count > zeros.len() {
                zeros = first..first + count;
                count = 0;
            }
        }
        let dotted = zeros.len() != shown
            && zeros.start == 0
            && match zeros.len() {
                6 => true,
                5 => words[5] == 0xffff,
                7 => octets[14] != 0 && octets[15] != 1,
                _ => false,
            };
        for (at, word) in words.iter().enumerate().take(shown) {
            if zeros.contains(&at) {
                out.extend((at == zeros.start).then_some(b':'));
                out.extend((at == shown - 1).then_some(b':'));
            } else if dotted && at > 5 {
                out.push(if at == 6 { b':' } else { b'.' });
                _ = write!(out, "{}", octets[2 * at]);
                if at != 7 || self.bits > 120 {
                    _ = write!(out, ".{}", octets[2 * at + 1]);
                }
            } else {
                out.extend((out.len() > start).then_some(b':'));
                _ = write!(out, "{word:x}");
            }
        }
    }
}

fn write_dotted(octets: &[u8], out: &mut Vec<u8>) {
    for (at, octet) in octets.iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        _ = write!(out, "{octet}");
    }
}

fn decimal(digits: &[u8], most: u32) -> Option<u32> {
    let value = digits.iter().try_fold(0u32, |value, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        Some(value * 10 + digit).filter(|value| *value <= most)
    });
    value.filter(|_| !digits.is_empty())
}

fn dotted(text: &[u8]) -> Option<Vec<u8>> {
    let octets = text.split(|b| *b == b'.');
    let octets: Option<Vec<u8>> = octets.map(|o| decimal(o, 255).map(|n| n as u8)).collect();
    octets.filter(|octets| octets.len() <= 4)
}

fn from_octets(octets: &[u8], bits: u8) -> Inet {
    let mut whole = [0; 4];
    whole[..octets.len()].copy_from_slice(octets);
    Inet {
        wide: false,
        bits,
        address: u32::from_be_bytes(whole).into(),
    }
}

/// The address, and the bits behind a slash.
fn divided(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|b| *b == b'/') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// A host: all four numbers, or those that the bits reach into.
fn narrow_host(text: &[u8]) -> Option<Inet> {
    let (address, bits) = divided(text);
    let octets = dotted(address.strip_suffix(b".").unwrap_or(address))?;
    let bits = match bits {
        Some(bits) => decimal(bits, 32)?,
        None if octets.len() == 4 => 32,
        None => return None,
    };
    (bits as usize / 8 <= octets.len()).then(|| from_octets(&octets, bits as u8))
}

/// A network: in decimals, or in hexadecimal digits. Without bits it has those of its class.
fn narrow_network(text: &[u8]) -> Option<Inet> {
    let (address, bits) = divided(text);
    let octets = match address {
        [b'0', b'x' | b'X', digits @ ..] if !digits.is_empty() => {
            let digit = |b: &u8| char::from(*b).to_digit(16).map(|d| d as u8);
            let digits: Option<Vec<u8>> = digits.iter().map(digit).collect();
            let pair = |pair: &[u8]| pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
            let octets: Vec<u8> = digits?.chunks(2).map(pair).collect();
            (octets.len() <= 4).then_some(octets)?
        }
        _ => dotted(address)?,
    };
    let given = 8 * octets.len() as u32;
    let bits = match (bits, octets[0]) {
        (Some(bits), _) => decimal(bits, 32)?,
        (None, 240..) => 32,
        (None, 224) if given == 8 => 4,
        (None, 224..) => given.max(8),
        (None, 192..) => given.max(24),
        (None, 128..) => given.max(16),
        (None, _) => given.max(8),
    };
    Some(from_octets(&octets, bits as u8))
}

/// Groups between colons, the last one perhaps a dotted address.
fn groups(text: &[u8]) -> Option<Vec<u16>> {
    let mut words = Vec::new();
    if text.is_empty() {
        return Some(words);
    }
    let mut groups = text.split(|b| *b == b':').peekable();
    while let Some(group) = groups.next() {
        if groups.peek().is_none() && group.contains(&b'.') {
            let leading = |octet: &[u8]| octet.len() > 1 && octet[0] == b'0';
            if group.split(|b| *b == b'.').any(leading) {
                return None;
            }
            let address = from_octets(&dotted(group)?, 32).address;
            words.extend([(address >> 16) as u16, address as u16]);
        } else {
            if !(1..=4).contains(&group.len()) || !group.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let digits = std::str::from_utf8(group).ok()?;
            words.push(u16::from_str_radix(digits, 16).ok()?);
        }
    }
    Some(words)
}

fn wide(text: &[u8]) -> Option<Inet> {
    let (address, bits) = divided(text);
    let bits = match bits {
        Some([b'0', _, ..]) => return None,
        Some(bits) => decimal(bits, 128)?,
        None => 128,
    };
    let words = match address.windows(2).position(|pair| pair == b"::") {
        Some(at) => {
            let (mut words, last) = (groups(&address[..at])?, groups(&address[at + 2..])?);
            let zeros = 8usize.checked_sub(words.len() + last.len())?;
            (zeros > 0).then_some(())?;
            words.resize(words.len() + zeros, 0);
            words.extend(last);
            words
        }
        None => groups(address)?,
    };
    (words.len() == 8).then(|| Inet {
        wide: true,
        bits: bits as u8,
        address: words.iter().fold(0, |n, word| n << 16 | u128::from(*word)),
    })
}

/// An address as `inet` (or, as `cidr`, a network) writes it.
pub fn parse(text: &str, ty: Oid) -> Result<Inet> {
    let bytes = text.as_bytes();
    let parsed = match (bytes.contains(&b':'), ty) {
        (true, _) => wide(bytes),
        (false, oid::CIDR) => narrow_network(bytes),
        (false, _) => narrow_host(bytes),
    };
    let inet = parsed.ok_or_else(|| invalid_syntax(ty, text))?;
    if ty == oid::CIDR && inet != inet.masked() {
        let message = format!("invalid cidr value: \"{text}\"");
        return Err(bits_beyond(state::INVALID_TEXT_REPRESENTATION, message));
    }
    Ok(inet)
}

#[cold]
fn bits_beyond(code: throng_types::SqlState, message: String) -> Error {
    Error::new(code, message).detail("Value has bits set to right of mask.")
}

/// An address as a value of `inet`; NULL where there is none.
pub fn inet_value(text: Option<&str>) -> Datum {
    let parsed = text.and_then(|text| parse(text, oid::INET).ok());
    parsed.map_or(Datum::Null, |inet| inet.datum(oid::INET))
}

/// The bytes that PostgreSQL hashes a value by.
pub fn hashed_form(value: &BaseValue) -> Vec<u8> {
    let inet = Inet::from_stored(&value.bytes);
    let mut form = vec![if inet.wide { V6 } else { V4 }, inet.bits];
    form.extend(inet.octets());
    form
}

fn receive(binary: &[u8], ty: Oid) -> Result<Vec<u8>> {
    let mut incoming = Reader(binary);
    let [family, bits, _is_cidr, length] = incoming.take()?;
    let wrong = |what: &str| invalid(format!("{what} in external \"{}\" value", type_name(ty)));
    let wide = match family {
        V4 => false,
        V6 => true,
        _ => return Err(wrong("invalid address family")),
    };
    let width = if wide { 128 } else { 32 };
    if bits > width {
        return Err(wrong("invalid bits"));
    }
    if length != width / 8 {
        return Err(wrong("invalid length"));
    }
    let address = match wide {
        true => u128::from_be_bytes(incoming.take()?),
        false => u32::from_be_bytes(incoming.take()?).into(),
    };
    incoming.end()?;
    let inet = Inet {
        wide,
        bits,
        address,
    };
    if ty == oid::CIDR && inet != inet.masked() {
        let message = "invalid external \"cidr\" value".to_owned();
        return Err(bits_beyond(state::INVALID_BINARY_REPRESENTATION, message));
    }
    Ok(inet.stored())
}

fn send(value: &[u8], is_cidr: bool, out: &mut Vec<u8>) -> Result<()> {
    let inet = Inet::from_stored(value);
    let family = if inet.wide { V6 } else { V4 };
    out.extend([family, inet.bits, u8::from(is_cidr), inet.width() / 8]);
    out.extend(inet.octets());
    Ok(())
}

pub(super) static INET: BaseInputOutput = BaseInputOutput {
    ty: oid::INET,
    input: |_, text, _| parse(text, oid::INET).map(Inet::stored),
    output: |_, value, out| {
        let inet = Inet::from_stored(value);
        inet.write_host(out);
        if inet.bits != inet.width() {
            inet.write_bits(out);
        }
    },
    receive: |_, binary| receive(binary, oid::INET),
    send: |_, value, out| send(value, false, out),
    modifier: None,
};

pub(super) static CIDR: BaseInputOutput = BaseInputOutput {
    ty: oid::CIDR,
    input: |_, text, _| parse(text, oid::CIDR).map(Inet::stored),
    output: |_, value, out| {
        let inet = Inet::from_stored(value);
        inet.write_host(out);
        inet.write_bits(out);
    },
    receive: |_, binary| receive(binary, oid::CIDR),
    send: |_, value, out| send(value, true, out),
    modifier: None,
};
