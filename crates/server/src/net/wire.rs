//! PostgreSQL's frontend/backend protocol, 3.0 and 3.2: bytes to messages and messages to bytes.
//!
//! Promise: no input panics. A body shorter than its fields, an unknown tag or an impossible length
//! is [`Malformed`], which the connection answers with 08P01. Frontend messages borrow from the
//! read buffer; nothing is copied or allocated to understand one.
//!
//! ```text
//! message:  tag u8 | length i32 (itself included) | body
//! startup:           length i32                   | code i32 | body
//! ```
//! Source: PostgreSQL manual, "Message Formats".

use throng_exec::client::{Field, Format};
use throng_types::Error;
use throng_types::error::{Severity, state};
use throng_values::io::Charset;

/// The longest message body a client may send: 1 GB - 1, PostgreSQL's limit for one value.
pub const MAX_MESSAGE: usize = (1 << 30) - 1;
/// Short messages (everything but query text, parameters and COPY data) may not exceed this, as in
/// PostgreSQL.
pub const MAX_SHORT_MESSAGE: usize = 10_000;
/// A startup packet's limit, as in PostgreSQL.
pub const MAX_STARTUP: usize = 10_000;

const CODE_CANCEL: u32 = 80_877_102;
const CODE_SSL: u32 = 80_877_103;
const CODE_GSS: u32 = 80_877_104;

/// Bytes that are no message, and what was wrong with them.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl From<Malformed> for Error {
    fn from(m: Malformed) -> Error {
        Error::new(state::PROTOCOL_VIOLATION, m.0)
    }
}

type Parsed<T> = Result<T, Malformed>;

/// The first packet of a connection.
#[derive(Debug, PartialEq)]
pub enum Startup<'a> {
    Ssl,
    Gss,
    Cancel {
        pid: i32,
        secret: &'a [u8],
    },
    /// Protocol version and the parameters, in order.
    Start {
        major: u16,
        minor: u16,
        parameters: Vec<(&'a str, &'a str)>,
    },
}

/// What a client says once it is connected.
#[derive(Debug, PartialEq)]
pub enum Frontend<'a> {
    Query(&'a [u8]),
    Parse {
        name: &'a str,
        sql: &'a [u8],
        types: Words<'a, 4>,
    },
    Bind(Bind<'a>),
    DescribeStatement(&'a str),
    DescribePortal(&'a str),
    CloseStatement(&'a str),
    ClosePortal(&'a str),
    Execute {
        portal: &'a str,
        max_rows: u32,
    },
    Flush,
    Sync,
    Terminate,
    CopyData(&'a [u8]),
    CopyDone,
    CopyFail(&'a str),
    /// Password, SASLInitialResponse or SASLResponse: what it is depends on what was asked.
    Authentication(&'a [u8]),
    FunctionCall,
}

#[derive(Debug, PartialEq)]
pub struct Bind<'a> {
    pub portal: &'a str,
    pub statement: &'a str,
    pub parameter_formats: Words<'a, 2>,
    pub parameters: Parameters<'a>,
    pub result_formats: Words<'a, 2>,
}

/// A counted array of big-endian integers, `N` bytes each, still in the read buffer.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Words<'a, const N: usize>(&'a [u8]);

impl Words<'_, 2> {
    pub fn iter(&self) -> impl Iterator<Item = i16> + '_ {
        self.0
            .chunks_exact(2)
            .map(|c| i16::from_be_bytes([c[0], c[1]]))
    }

    /// All of them: in `few`, where that is long enough.
    pub fn read<'b>(&self, few: &'b mut [i16], many: &'b mut Vec<i16>) -> &'b [i16] {
        let count = self.0.len() / 2;
        let Some(few) = few.get_mut(..count) else {
            many.extend(self.iter());
            return many;
        };
        for (word, read) in few.iter_mut().zip(self.iter()) {
            *word = read;
        }
        few
    }
}
impl Words<'_, 4> {
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0
            .chunks_exact(4)
            .map(|c| u32::from_be_bytes([c[0], c[1], c[2], c[3]]))
    }
}

/// Bind's parameter values; bounds were checked when the message was parsed.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Parameters<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Parameters<'a> {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut cursor = Cursor(self.bytes);
        (0..self.count).map(move |_| cursor.value().unwrap_or(None))
    }
}

/// Takes fields off the front of a body.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Parsed<&'a [u8]> {
        let (head, rest) = self
            .0
            .split_at_checked(n)
            .ok_or(Malformed("insufficient data left in message"))?;
        self.0 = rest;
        Ok(head)
    }
    fn u8(&mut self) -> Parsed<u8> {
        Ok(self.take(1)?[0])
    }
    fn u16(&mut self) -> Parsed<u16> {
        let b = self.take(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }
    fn u32(&mut self) -> Parsed<u32> {
        let b = self.take(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
    /// Bytes up to a terminating zero.
    fn cstr(&mut self) -> Parsed<&'a [u8]> {
        let end = memchr::memchr(0, self.0).ok_or(Malformed("invalid string in message"))?;
        let s = self.take(end)?;
        self.take(1)?;
        Ok(s)
    }
    fn name(&mut self) -> Parsed<&'a str> {
        if let [0, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok("");
        }
        std::str::from_utf8(self.cstr()?)
            .map_err(|_| Malformed("invalid byte sequence in a name of a protocol message"))
    }
    fn words<const N: usize>(&mut self) -> Parsed<Words<'a, N>> {
        let count = self.u16()? as usize;
        Ok(Words(self.take(count * N)?))
    }
    /// A length-prefixed value; -1 is NULL.
    fn value(&mut self) -> Parsed<Option<&'a [u8]>> {
        match self.u32()? as i32 {
            -1 => Ok(None),
            n if n >= 0 => Ok(Some(self.take(n as usize)?)),
            _ => Err(Malformed("invalid length in protocol message")),
        }
    }
    fn end(&self) -> Parsed<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed("invalid message format"))
        }
    }
}

/// The length of the packet at the front of `buf`, once four bytes of it are there.
pub fn startup_length(buf: &[u8]) -> Parsed<Option<usize>> {
    let Some(head) = buf.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*head) as usize;
    if !(8..=MAX_STARTUP).contains(&length) {
        return Err(Malformed("invalid length of startup packet"));
    }
    Ok(Some(length))
}

/// What follows the Bind of an unnamed portal that runs at once: it may be described, is executed
/// for all rows, and then comes Sync.
#[derive(Debug, PartialEq)]
pub struct RestOfRun {
    pub describes: bool,
    /// Bytes before Sync.
    pub length: usize,
}

/// Whether that is what comes next in `buf`.
pub fn rest_of_run(buf: &[u8]) -> Option<RestOfRun> {
    const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
    const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
    const SYNC: &[u8] = b"S\0\0\0\x04";
    let after = buf.strip_prefix(DESCRIBE);
    let describes = after.is_some();
    let sync = after.unwrap_or(buf).strip_prefix(EXECUTE)?;
    sync.starts_with(SYNC).then_some(RestOfRun {
        describes,
        length: buf.len() - sync.len(),
    })
}

/// One whole startup packet, its length word included.
pub fn startup(packet: &[u8]) -> Parsed<Startup<'_>> {
    let mut body = Cursor(packet);
    body.take(4)?;
    match body.u32()? {
        CODE_SSL => Ok(Startup::Ssl),
        CODE_GSS => Ok(Startup::Gss),
        CODE_CANCEL => Ok(Startup::Cancel {
            pid: body.u32()? as i32,
            secret: body.0,
        }),
        version => {
            let mut parameters = Vec::new();
            loop {
                let name = body.name()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, body.name()?));
            }
            body.end().map_err(|_| {
                Malformed("invalid startup packet layout: expected terminator as last byte")
            })?;
            Ok(Startup::Start {
                major: (version >> 16) as u16,
                minor: version as u16,
                parameters,
            })
        }
    }
}

/// How many bytes the message at the front of `buf` has, tag included, once its header is there.
pub fn message_length(buf: &[u8]) -> Parsed<Option<usize>> {
    let Some(&[tag, a, b, c, d]) = buf.first_chunk::<5>() else {
        return match buf.first() {
            Some(tag) => known(*tag).map(|_| None),
            None => Ok(None),
        };
    };
    let limit = if known(tag)? {
        MAX_MESSAGE
    } else {
        MAX_SHORT_MESSAGE
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if !(4..=limit).contains(&length) {
        return Err(Malformed("invalid message length"));
    }
    Ok(Some(length + 1))
}

/// Whether a message with this tag may be long.
fn known(tag: u8) -> Parsed<bool> {
    match tag {
        b'Q' | b'P' | b'B' | b'd' | b'F' => Ok(true),
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => Ok(false),
        _ => Err(Malformed("invalid frontend message type")),
    }
}

/// One whole message, tag and length included.
pub fn frontend(message: &[u8]) -> Parsed<Frontend<'_>> {
    let mut body = Cursor(message);
    let tag = body.u8()?;
    body.take(4)?;
    let parsed = match tag {
        b'Q' => Frontend::Query(body.cstr()?),
        b'P' => Frontend::Parse {
            name: body.name()?,
            sql: body.cstr()?,
            types: body.words()?,
        },
        b'B' => Frontend::Bind(bind(&mut body)?),
        b'D' | b'C' => {
            let kind = body.u8()?;
            let name = body.name()?;
            match (tag, kind) {
                (b'D', b'S') => Frontend::DescribeStatement(name),
                (b'D', b'P') => Frontend::DescribePortal(name),
                (b'C', b'S') => Frontend::CloseStatement(name),
                (b'C', b'P') => Frontend::ClosePortal(name),
                (b'D', _) => return Err(Malformed("invalid DESCRIBE message subtype")),
                _ => return Err(Malformed("invalid CLOSE message subtype")),
            }
        }
        b'E' => Frontend::Execute {
            portal: body.name()?,
            max_rows: body.u32()?,
        },
        b'H' => Frontend::Flush,
        b'S' => Frontend::Sync,
        b'X' => Frontend::Terminate,
        b'd' => Frontend::CopyData(body.take(body.0.len())?),
        b'c' => Frontend::CopyDone,
        b'f' => Frontend::CopyFail(body.name()?),
        b'p' => Frontend::Authentication(body.take(body.0.len())?),
        b'F' => {
            body.take(body.0.len())?;
            Frontend::FunctionCall
        }
        _ => return Err(Malformed("invalid frontend message type")),
    };
    body.end()?;
    Ok(parsed)
}

fn bind<'a>(body: &mut Cursor<'a>) -> Parsed<Bind<'a>> {
    let portal = body.name()?;
    let statement = body.name()?;
    let parameter_formats = body.words()?;
    let count = body.u16()? as usize;
    let start = body.0;
    for _ in 0..count {
        body.value()?;
    }
    let bytes = &start[..start.len() - body.0.len()];
    let result_formats = body.words()?;
    Ok(Bind {
        portal,
        statement,
        parameter_formats,
        parameters: Parameters { count, bytes },
        result_formats,
    })
}

/// Appends one message: the tag, a length filled in afterwards, and what `body` writes.
pub fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

pub fn put_cstr(out: &mut Vec<u8>, s: &str) {
    // A zero byte cannot travel inside a string; what follows it is not ours to send.
    let end = memchr::memchr(0, s.as_bytes()).unwrap_or(s.len());
    out.extend_from_slice(&s.as_bytes()[..end]);
    out.push(0);
}

pub fn put_i16(out: &mut Vec<u8>, v: i16) {
    out.extend_from_slice(&v.to_be_bytes());
}

pub fn put_i32(out: &mut Vec<u8>, v: i32) {
    out.extend_from_slice(&v.to_be_bytes());
}

pub fn format_code(format: Format) -> i16 {
    match format {
        Format::Text => 0,
        Format::Binary => 1,
    }
}

pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |b| {
        put_cstr(b, name);
        put_cstr(b, value);
    });
}

pub fn ready_for_query(out: &mut Vec<u8>, status: u8) {
    message(out, b'Z', |b| b.push(status));
}

pub fn row_description(out: &mut Vec<u8>, fields: &[Field], formats: &[Format], charset: Charset) {
    message(out, b'T', |b| {
        put_i16(b, fields.len() as i16);
        for (field, format) in fields.iter().zip(formats) {
            charset.encode_all(&field.name, b);
            b.push(0);
            put_i32(b, field.table.0 as i32);
            put_i16(b, field.column);
            put_i32(b, field.ty.oid.0 as i32);
            put_i16(b, field.size);
            put_i32(b, field.ty.typmod);
            put_i16(b, format_code(*format));
        }
    });
}

pub fn parameter_description(out: &mut Vec<u8>, types: &[u32]) {
    message(out, b't', |b| {
        put_i16(b, types.len() as i16);
        for ty in types {
            put_i32(b, *ty as i32);
        }
    });
}

pub fn copy_response(out: &mut Vec<u8>, tag: u8, format: Format, columns: usize) {
    message(out, tag, |b| {
        b.push(format_code(format) as u8);
        put_i16(b, columns as i16);
        for _ in 0..columns {
            put_i16(b, format_code(format));
        }
    });
}

/// An ErrorResponse, or a NoticeResponse for notices and warnings.
pub fn error(out: &mut Vec<u8>, error: &Error) {
    let fields = error.fields();
    let (tag, severity) = match fields.severity {
        Severity::Debug => (b'N', "DEBUG"),
        Severity::Log => (b'N', "LOG"),
        Severity::Info => (b'N', "INFO"),
        Severity::Notice => (b'N', "NOTICE"),
        Severity::Warning => (b'N', "WARNING"),
        Severity::Error => (b'E', "ERROR"),
        Severity::Fatal => (b'E', "FATAL"),
        Severity::Panic => (b'E', "PANIC"),
    };
    let position = fields.position.map(|p| p.to_string());
    let (file, line) = (fields.place.file(), fields.place.line().to_string());
    let file = file.rsplit('/').next().unwrap_or(file);
    let module = file.strip_suffix(".rs");
    let internal = fields.internal_position.map(|p| p.to_string());
    let texts = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(fields.code.as_str())),
        (b'M', Some(fields.message.as_str())),
        (b'D', fields.detail.as_deref()),
        (b'H', fields.hint.as_deref()),
        (b'P', position.as_deref()),
        (b'p', internal.as_deref()),
        (b'q', fields.internal_query.as_deref()),
        (b'W', fields.context.as_deref()),
        (b's', fields.schema.as_deref()),
        (b't', fields.table.as_deref()),
        (b'c', fields.column.as_deref()),
        (b'd', fields.data_type.as_deref()),
        (b'n', fields.constraint.as_deref()),
        (b'F', Some(file)),
        (b'L', Some(line.as_str())),
        (b'R', fields.routine.or(module)),
    ];
    message(out, tag, |b| {
        for (key, text) in texts {
            if let Some(text) = text {
                b.push(key);
                put_cstr(b, text);
            }
        }
        b.push(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        message(&mut out, tag, |b| b.extend_from_slice(body));
        out
    }

    #[test]
    fn bind_round_trips() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02hi\xff\xff\xff\xff\0\x01\0\x00";
        let bytes = framed(b'B', body);
        assert_eq!(message_length(&bytes), Ok(Some(bytes.len())));
        let Ok(Frontend::Bind(bind)) = frontend(&bytes) else {
            panic!("a Bind")
        };
        assert_eq!((bind.portal, bind.statement), ("p", "s"));
        assert_eq!(bind.parameter_formats.iter().collect::<Vec<_>>(), [1]);
        assert_eq!(
            bind.parameters.iter().collect::<Vec<_>>(),
            [Some(&b"hi"[..]), None]
        );
        assert_eq!(bind.result_formats.iter().collect::<Vec<_>>(), [0]);
    }

    /// Every prefix of a body, framed as if it were whole, is either understood or refused.
    #[test]
    fn truncated_bodies_are_refused() {
        let bodies: [(u8, &[u8]); 5] = [
            (
                b'B',
                b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02hi\xff\xff\xff\xff\0\x01\0\x00",
            ),
            (b'P', b"n\0select 1\0\0\x01\0\0\0\x17"),
            (b'D', b"Sname\0"),
            (b'E', b"\0\0\0\0\x05"),
            (b'Q', b"select 1\0"),
        ];
        for (tag, body) in bodies {
            assert!(frontend(&framed(tag, body)).is_ok());
            for cut in 0..body.len() {
                assert!(
                    frontend(&framed(tag, &body[..cut])).is_err(),
                    "{} {cut}",
                    tag as char
                );
            }
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(
            message_length(b"Q\xff\xff\xff\xff"),
            Err(Malformed("invalid message length"))
        );
        assert_eq!(
            message_length(b"Q\0\0\0\x03"),
            Err(Malformed("invalid message length"))
        );
        assert_eq!(
            message_length(b"S\0\0\xff\xff"),
            Err(Malformed("invalid message length"))
        );
        assert_eq!(message_length(b"Q\0"), Ok(None));
        assert!(message_length(b"\x01").is_err());
        assert!(startup_length(b"\xff\xff\xff\xff").is_err());
    }

    #[test]
    fn startup_packets() {
        let mut packet = vec![0, 0, 0, 0, 0, 3, 0, 2];
        packet.extend_from_slice(b"user\0u\0database\0d\0\0");
        let parsed = startup(&packet).expect("well formed");
        let parameters = vec![("user", "u"), ("database", "d")];
        assert_eq!(
            parsed,
            Startup::Start {
                major: 3,
                minor: 2,
                parameters
            }
        );
        assert!(startup(&packet[..packet.len() - 1]).is_err());
    }

    #[test]
    fn a_run_at_once_is_known_by_its_rest() {
        let described = framed(b'D', b"P\0");
        let executed = framed(b'E', b"\0\0\0\0\0");
        let sync = framed(b'S', b"");
        let rest = [&executed[..], &sync].concat();
        let all = [&described[..], &rest].concat();
        let run = |describes, length| Some(RestOfRun { describes, length });
        assert_eq!(rest_of_run(&rest), run(false, executed.len()));
        assert_eq!(
            rest_of_run(&all),
            run(true, described.len() + executed.len())
        );
        assert_eq!(
            rest_of_run(&[&rest[..], &all].concat()),
            run(false, executed.len())
        );
        for cut in 0..all.len() {
            assert_eq!(rest_of_run(&all[..cut]), None, "{cut}");
        }
        for other in [
            framed(b'E', b"\0\0\0\0\x01"),
            framed(b'E', b"p\0\0\0\0\0"),
            framed(b'D', b"S\0"),
            framed(b'D', b"Pp\0"),
            framed(b'C', b"P\0"),
        ] {
            assert_eq!(rest_of_run(&[&other[..], &rest].concat()), None);
        }
        assert_eq!(rest_of_run(&[&executed[..], &all].concat()), None);
    }
}
