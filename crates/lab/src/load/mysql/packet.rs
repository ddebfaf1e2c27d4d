//! Packets of MySQL's protocol (MySQL's internals documentation, "Client/Server Protocol", "MySQL
//! Packets"), and what is read from them. Nothing that a server sends is trusted: every length is
//! checked against what is there.
//!
//! ```text
//! packet   length u24 | sequence u8 | body         numbers are little-endian
//! ```
//!
//! A body of [`WHOLE`] bytes or more goes on in the next packet; the last part is shorter, empty if
//! need be.

use std::mem;

use crate::load::stream::Stream;
use crate::load::trouble::{Refusal, Result, Trouble};

/// The longest part: 16 MB less a byte. Smaller under test, so that parts are met there.
pub const WHOLE: usize = if cfg!(test) { 300 } else { 0xff_ffff };
/// Longer than anything a load asks for, all parts together: beyond it the stream is not what we
/// think.
const LONGEST: usize = if cfg!(test) { 2000 } else { 64 << 20 };
const HEADER: usize = 4;

pub const OK: u8 = 0x00;
pub const MORE_DATA: u8 = 0x01;
/// A NULL in a text row; the server wants a file instead of a statement's result.
pub const NULL: u8 = 0xfb;
/// The end of rows, or another way to authenticate.
pub const EOF: u8 = 0xfe;
pub const ERR: u8 = 0xff;

/// Status flags in OK and EOF.
const IN_TRANSACTION: u16 = 1;
const MORE_RESULTS: u16 = 8;

/// A conversation's state beside its stream.
#[derive(Default)]
pub struct Wire {
    /// Of the next packet, whoever sends it.
    sequence: u8,
    /// Where a body of several parts is put together.
    joined: Vec<u8>,
}

impl Wire {
    /// Queues a command, with which the sequence begins anew.
    pub fn command(&mut self, out: &mut Vec<u8>, command: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.sequence = 0;
        self.send(out, |out| {
            out.push(command);
            body(out);
        });
    }

    /// Queues a packet that answers what came last.
    pub fn send(&mut self, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER]);
        body(out);
        let length = out.len() - start - HEADER;
        if length >= WHOLE {
            return self.send_parts(out, start);
        }
        let header = header(length, self.sequence);
        out[start..start + HEADER].copy_from_slice(&header);
        self.sequence = self.sequence.wrapping_add(1);
    }

    #[cold]
    fn send_parts(&mut self, out: &mut Vec<u8>, start: usize) {
        let body = out.split_off(start + HEADER);
        out.truncate(start);
        let last = body.len() / WHOLE * WHOLE;
        for at in (0..=last).step_by(WHOLE) {
            let part = &body[at..body.len().min(at + WHOLE)];
            out.extend_from_slice(&header(part.len(), self.sequence));
            out.extend_from_slice(part);
            self.sequence = self.sequence.wrapping_add(1);
        }
    }

    /// Waits for the next packet's body; parts are put together.
    pub async fn next<'a>(&'a mut self, stream: &'a mut Stream) -> Result<&'a [u8]> {
        while extent(stream.input.unread())?.is_none() {
            stream.fill().await?;
        }
        self.joined.clear();
        let taken = stream.input.take(|bytes| first(bytes, &mut self.joined))?;
        let body = taken.ok_or_else(malformed)?;
        let expected = mem::replace(&mut self.sequence, body.last.wrapping_add(1));
        // An error may come out of turn: the server shuts down, or ends an idle connection.
        if body.first != expected && body.bytes.first() != Some(&ERR) {
            return Err(Trouble::broken("a packet out of turn"));
        }
        Ok(body.bytes)
    }
}

fn header(length: usize, sequence: u8) -> [u8; HEADER] {
    let [a, b, c, ..] = (length as u32).to_le_bytes();
    [a, b, c, sequence]
}

/// A body, and the sequence numbers of its first packet and its last.
struct Body<'a> {
    bytes: &'a [u8],
    first: u8,
    last: u8,
}

/// How many bytes the first body's packets take, once all are there.
fn extent(bytes: &[u8]) -> Result<Option<usize>> {
    let (mut at, mut total) = (0, 0);
    loop {
        let Some(&[a, b, c, _]) = bytes[at..].first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        total += length;
        if total > LONGEST {
            return Err(Trouble::broken(format!(
                "a packet of more than {LONGEST} bytes"
            )));
        }
        at += HEADER + length;
        if at > bytes.len() {
            return Ok(None);
        }
        if length < WHOLE {
            return Ok(Some(at));
        }
    }
}

/// The first body, once it is all there, and how many bytes its packets take.
fn first<'a>(bytes: &'a [u8], joined: &'a mut Vec<u8>) -> Result<Option<(Body<'a>, usize)>> {
    let Some(length) = extent(bytes)? else {
        return Ok(None);
    };
    let sequence = bytes[HEADER - 1];
    let mut body = Body {
        bytes: &bytes[HEADER..length],
        first: sequence,
        last: sequence,
    };
    if length >= HEADER + WHOLE {
        let mut parts = bytes[..length].chunks(HEADER + WHOLE);
        joined.extend(parts.next().into_iter().flat_map(|part| &part[HEADER..]));
        for part in parts {
            body.last = body.last.wrapping_add(1);
            if part[HEADER - 1] != body.last {
                return Err(Trouble::broken("a part out of turn"));
            }
            joined.extend_from_slice(&part[HEADER..]);
        }
        body.bytes = joined;
    }
    Ok(Some((body, length)))
}

pub fn malformed() -> Trouble {
    Trouble::broken("a malformed packet")
}

/// Reads a body from its front.
#[derive(Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length-encoded integer.
    pub fn number(&mut self) -> Result<u64> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(small.into()),
            0xfc => self.u16().map(u64::from),
            0xfd => self
                .array()
                .map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]).into()),
            0xfe => self.array().map(u64::from_le_bytes),
            _ => Err(malformed()),
        }
    }

    /// A length-encoded string.
    pub fn string(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| malformed())?;
        self.bytes(length)
    }

    /// A string up to a zero byte, or to the end, as some servers forget the byte.
    pub fn terminated(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        text
    }
}

/// What OK and EOF packets tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub affected: u64,
    pub in_transaction: bool,
}

impl Ended {
    /// From an OK packet, whichever its first byte.
    pub fn ok(body: &[u8]) -> Result<Ended> {
        let mut reader = Reader(body.get(1..).unwrap_or_default());
        let affected = reader.number()?;
        reader.number()?;
        Ended::of(affected, reader.u16()?)
    }

    /// From an EOF packet.
    pub fn eof(body: &[u8]) -> Result<Ended> {
        let mut reader = Reader(body.get(1..).unwrap_or_default());
        reader.u16()?;
        Ended::of(0, reader.u16()?)
    }

    fn of(affected: u64, status: u16) -> Result<Ended> {
        if status & MORE_RESULTS != 0 {
            return Err(Trouble::broken("a second result, which nobody asked for"));
        }
        Ok(Ended {
            affected,
            in_transaction: status & IN_TRANSACTION != 0,
        })
    }
}

/// From an ERR packet: number, then a SQLSTATE behind `#` unless the server does not know the
/// client yet, and text.
pub fn refusal(body: &[u8]) -> Trouble {
    let mut reader = Reader(body.get(1..).unwrap_or_default());
    let number = reader.u16().unwrap_or(0);
    let mut state = "HY000".to_owned();
    if let Some((b"#", rest)) = reader.0.split_at_checked(1)
        && let Some((code, rest)) = rest.split_at_checked(5)
    {
        state = String::from_utf8_lossy(code).into_owned();
        reader.0 = rest;
    }
    Trouble::Refused(Box::new(Refusal {
        severity: "ERROR".to_owned(),
        state,
        number,
        message: String::from_utf8_lossy(reader.0).into_owned(),
        detail: None,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(bodies: &[&[u8]]) -> Vec<u8> {
        let (mut wire, mut out) = (Wire::default(), Vec::new());
        for body in bodies {
            wire.send(&mut out, |out| out.extend_from_slice(body));
        }
        out
    }

    #[test]
    fn a_packet_and_its_command() {
        let (mut wire, mut out) = (
            Wire {
                sequence: 9,
                ..Wire::default()
            },
            Vec::new(),
        );
        wire.command(&mut out, 3, |out| out.extend_from_slice(b"select 1"));
        assert_eq!(out, b"\x09\0\0\0\x03select 1");
        assert_eq!(wire.sequence, 1);
    }

    #[test]
    fn numbers() {
        let of = |bytes: &[u8]| Reader(bytes).number().ok();
        assert_eq!(of(b"\xfa"), Some(250));
        assert_eq!(of(b"\xfc\x01\x02"), Some(0x201));
        assert_eq!(of(b"\xfd\x01\x02\x03"), Some(0x3_0201));
        assert_eq!(of(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"), Some(u64::MAX));
        for wrong in [&b""[..], b"\xfb", b"\xff", b"\xfc\x01", b"\xfe\x01"] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
        // A length that no memory has.
        assert!(
            Reader(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xffabc")
                .string()
                .is_err()
        );
    }

    #[test]
    fn errors() {
        let Trouble::Refused(refused) = refusal(b"\xff\xbd\x0440001#40001Deadlock") else {
            panic!("refused");
        };
        assert_eq!((refused.number, refused.state.as_str()), (1213, "HY000"));
        let deadlock = refusal(b"\xff\xbd\x04#40001Deadlock");
        assert_eq!(deadlock.to_string(), "ERROR: Deadlock (40001), error 1213");
        assert!(deadlock.is_retryable());
        for short in [&b"\xff"[..], b"\xff\x01", b"\xff\xbd\x04#400", b""] {
            assert!(matches!(refusal(short), Trouble::Refused(_)));
        }
    }

    #[test]
    fn ends() {
        let ok = Ended::ok(b"\0\x03\0\x03\0\0\0").expect("well formed");
        assert_eq!((ok.affected, ok.in_transaction), (3, true));
        let eof = Ended::eof(b"\xfe\0\0\x02\0").expect("well formed");
        assert!(!eof.in_transaction);
        assert!(Ended::ok(b"\0\0\0\x08\0\0\0").is_err(), "more results");
        assert!(Ended::ok(b"\0\0").is_err() && Ended::eof(b"\xfe").is_err());
    }

    #[test]
    fn longer_than_any_and_parts_out_of_turn() {
        let long = vec![0xff; HEADER * (LONGEST / WHOLE + 2) + LONGEST + WHOLE];
        assert!(extent(&long).is_err());
        let mut parts = written(&[&[7; WHOLE + 5]]);
        parts[HEADER + WHOLE + HEADER - 1] = 5;
        assert!(first(&parts, &mut Vec::new()).is_err());
    }

    proptest! {
        /// Whatever was written is read again, however it is cut; not before it is all there.
        #[test]
        fn bodies_return(lengths in prop::collection::vec(0usize..2 * WHOLE + 2, 1..4)) {
            let bodies: Vec<Vec<u8>> = lengths.iter().map(|n| (0..*n).map(|i| i as u8).collect()).collect();
            let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
            let bytes = written(&bodies);
            let mut rest = &bytes[..];
            let mut sequence = 0u8;
            for body in bodies {
                let mut joined = Vec::new();
                let (read, length) = first(rest, &mut joined).unwrap().expect("whole");
                prop_assert_eq!(read.bytes, body);
                prop_assert_eq!(read.first, sequence);
                sequence = read.last + 1;
                for cut in [0, 3, length / 2, length - 1] {
                    prop_assert_eq!(extent(&rest[..cut]).unwrap(), None);
                }
                rest = &rest[length..];
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn garbage_is_an_error_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
            let _ = first(&bytes, &mut Vec::new());
            let _ = Ended::ok(&bytes);
            let _ = Ended::eof(&bytes);
            let _ = refusal(&bytes);
            let mut reader = Reader(&bytes);
            while reader.string().is_ok_and(|s| !s.is_empty()) {}
            reader.terminated();
        }
    }
}
