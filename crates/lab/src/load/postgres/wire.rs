//! The messages of PostgreSQL's protocol 3.0 that a load sends and understands
//! (PostgreSQL's documentation, "Frontend/Backend Protocol", chapter "Message Formats").
//!
//! ```text
//! message   tag u8 | length u32 (itself included, the tag not) | body
//! ```

use crate::load::rows::Rows;
use crate::load::sql::Arg;
use crate::load::trouble::{Refusal, Result, Trouble};

/// Longer than anything a load asks for: a length beyond it means that the stream is not what we
/// think.
const LONGEST: usize = 1 << 30;
const HEADER: usize = 5;

/// Builds messages at the end of a buffer.
pub struct Out<'a>(pub &'a mut Vec<u8>);

impl Out<'_> {
    fn message(&mut self, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.0.push(tag);
        self.lengthed(body);
    }

    /// A length, which counts itself, and a body.
    fn lengthed(&mut self, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        body(self.0);
        let length = (self.0.len() - start) as u32;
        self.0[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    pub fn startup(&mut self, user: &str, database: &str) {
        self.lengthed(|out| {
            out.extend_from_slice(&(3u32 << 16).to_be_bytes());
            for (name, value) in [
                ("user", user),
                ("database", database),
                ("application_name", "throng bench"),
                ("client_encoding", "UTF8"),
                // The server's own default may be another; MySQL's sessions are told the same.
                ("default_transaction_isolation", "read committed"),
            ] {
                push_string(out, name);
                push_string(out, value);
            }
            out.push(0);
        });
    }

    pub fn sasl_first(&mut self, mechanism: &str, data: &str) {
        self.message(b'p', |out| {
            push_string(out, mechanism);
            out.extend_from_slice(&(data.len() as u32).to_be_bytes());
            out.extend_from_slice(data.as_bytes());
        });
    }

    pub fn sasl_next(&mut self, data: &str) {
        self.message(b'p', |out| out.extend_from_slice(data.as_bytes()));
    }

    pub fn query(&mut self, text: impl FnOnce(&mut Vec<u8>)) {
        self.message(b'Q', |out| {
            text(out);
            out.push(0);
        });
    }

    pub fn parse(&mut self, statement: &str, text: &str) {
        self.message(b'P', |out| {
            push_string(out, statement);
            push_string(out, text);
            out.extend_from_slice(&0u16.to_be_bytes());
        });
    }

    /// Binds the unnamed portal; parameters and results as text.
    pub fn bind(&mut self, statement: &str, args: &[Arg<'_>]) {
        self.message(b'B', |out| {
            out.push(0);
            push_string(out, statement);
            out.extend_from_slice(&0u16.to_be_bytes());
            out.extend_from_slice(&(args.len() as u16).to_be_bytes());
            for arg in args {
                let start = out.len();
                out.extend_from_slice(&(-1i32).to_be_bytes());
                if *arg != Arg::Null {
                    arg.write(out);
                    let length = (out.len() - start - 4) as u32;
                    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
                }
            }
            out.extend_from_slice(&0u16.to_be_bytes());
        });
    }

    /// Asks for the columns of the unnamed portal.
    pub fn describe_portal(&mut self) {
        self.message(b'D', |out| out.extend_from_slice(b"P\0"));
    }

    /// Runs the unnamed portal to its end.
    pub fn execute(&mut self) {
        self.message(b'E', |out| out.extend_from_slice(&[0; 5]));
    }

    pub fn sync(&mut self) {
        self.message(b'S', |_| {});
    }

    pub fn copy_data(&mut self, data: impl FnOnce(&mut Vec<u8>)) {
        self.message(b'd', data);
    }

    pub fn copy_done(&mut self) {
        self.message(b'c', |_| {});
    }

    pub fn terminate(&mut self) {
        self.message(b'X', |_| {});
    }
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// A message from the server, in the bytes that were read.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    pub tag: u8,
    pub body: &'a [u8],
}

/// The first message of `bytes` and how long it is, once it is all there.
#[inline]
pub fn first(bytes: &[u8]) -> Result<Option<(Message<'_>, usize)>> {
    let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    if !(4..LONGEST).contains(&length) {
        return Err(Trouble::broken(format!(
            "a message of {length} bytes and tag {:?}",
            char::from(header[0])
        )));
    }
    let message = rest.get(..length - 4).map(|body| Message {
        tag: header[0],
        body,
    });
    Ok(message.map(|message| (message, length + 1)))
}

/// A refusal from an ErrorResponse.
pub fn refusal(body: &[u8]) -> Refusal {
    let mut refusal = Refusal::default();
    for field in body.split(|&b| b == 0) {
        let Some((&kind, text)) = field.split_first() else {
            continue;
        };
        let text = String::from_utf8_lossy(text).into_owned();
        match kind {
            b'V' => refusal.severity = text,
            b'S' if refusal.severity.is_empty() => refusal.severity = text,
            b'C' => refusal.state = text,
            b'M' => refusal.message = text,
            b'D' => refusal.detail = Some(text),
            _ => {}
        }
    }
    refusal
}

/// The columns that a RowDescription names.
pub fn column_names(body: &[u8]) -> Result<Vec<String>> {
    /// What follows a name: table, column, type, type's length and modifier, format.
    const BEHIND_NAME: usize = 4 + 2 + 4 + 2 + 4 + 2;
    let malformed = || Trouble::broken("a malformed row description");
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(malformed)?;
    let mut names = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|&b| b == 0).ok_or_else(malformed)?;
        names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        rest = rest.get(end + 1 + BEHIND_NAME..).ok_or_else(malformed)?;
    }
    Ok(names)
}

/// The rows that a CommandComplete tells of: the number at its end.
pub fn affected(body: &[u8]) -> u64 {
    let text = body.strip_suffix(&[0]).unwrap_or(body);
    let number = text.rsplit(|&b| b == b' ').next().unwrap_or_default();
    std::str::from_utf8(number)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// Takes a DataRow.
pub fn row(body: &[u8], rows: &mut Rows) -> Result<()> {
    let malformed = || Trouble::broken("a malformed row");
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(malformed)?;
    let columns = u16::from_be_bytes(*count);
    rows.begin_row(usize::from(columns));
    for _ in 0..columns {
        let (length, cells) = rest.split_first_chunk::<4>().ok_or_else(malformed)?;
        let length = i32::from_be_bytes(*length);
        rest = cells;
        if length < 0 {
            rows.null();
            continue;
        }
        let (cell, more) = rest
            .split_at_checked(length as usize)
            .ok_or_else(malformed)?;
        rows.cell(|out| out.extend_from_slice(cell))?;
        rest = more;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_out() {
        let mut bytes = Vec::new();
        let mut out = Out(&mut bytes);
        out.query(|text| text.extend_from_slice(b"select 1"));
        out.bind("s1", &[Arg::Int(-5), Arg::Null]);
        out.sync();
        let expected = b"Q\0\0\0\x0dselect 1\0\
            B\0\0\0\x18\0s1\0\0\0\0\x02\0\0\0\x02-5\xff\xff\xff\xff\0\0\
            S\0\0\0\x04";
        assert_eq!(bytes, expected);
    }

    #[test]
    fn messages_in() {
        let bytes = b"C\0\0\0\x0dUPDATE 7\0Z\0\0\0\x05I";
        for cut in 0..14 {
            assert!(
                first(&bytes[..cut]).expect("well formed").is_none(),
                "{cut}"
            );
        }
        let (message, length) = first(bytes).expect("well formed").expect("whole");
        assert_eq!((message.tag, length, affected(message.body)), (b'C', 14, 7));
        assert_eq!(affected(b"INSERT 0 3\0"), 3);
        assert_eq!(affected(b"BEGIN\0"), 0);
        assert!(first(b"C\0\0\0\x01").is_err());
        assert!(first(b"Z\xff\xff\xff\xff").is_err());
    }

    #[test]
    fn errors() {
        let refusal = refusal(b"SFEHLER\0VERROR\0C40001\0Mno\0Dwhy\0\0");
        assert_eq!(
            (refusal.severity.as_str(), refusal.state.as_str()),
            ("ERROR", "40001")
        );
        assert_eq!(
            (refusal.message.as_str(), refusal.detail.as_deref()),
            ("no", Some("why"))
        );
    }

    #[test]
    fn rows() {
        let mut rows = Rows::default();
        row(b"\0\x02\0\0\0\x0212\xff\xff\xff\xff", &mut rows).expect("well formed");
        row(b"\0\x02\0\0\0\x03-.5\0\0\0\x01x", &mut rows).expect("well formed");
        assert_eq!((rows.len(), rows.int(0, 0).expect("12")), (2, 12));
        assert_eq!(rows.text(0, 1).expect("UTF-8"), None);
        assert_eq!(rows.string(1, 1).expect("text"), "x");
        assert!(rows.int(1, 1).is_err());
        assert!(row(b"\0\x01\0\0\0\x09abc", &mut rows).is_err());
    }
}
