//! `hstore`: its bytes, and its forms as text and in binary.
//!
//! ```text
//! count │ key length, key, value length or NULL, value │ …     numbers are u32, little endian
//! ```
//! Keys are in PostgreSQL's order, the shorter ones first, and each is there once; so equal values
//! have equal bytes.

use crate::eval::EvalContext;
use crate::io::base::BaseInputOutput;
use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Error, Result, interrupt};

pub(super) static HSTORE: BaseInputOutput = BaseInputOutput {
    ty: made::HSTORE,
    input: |_: &EvalContext<'_>, text, _| Ok(to_bytes(parse(text)?)),
    output: |_, value, out| write(value, out),
    receive: |_, binary| receive(binary),
    send: |_, value, out| {
        send(value, out);
        Ok(())
    },
    modifier: None,
};

/// A key and its value, which may be NULL.
pub type Pair<'a> = (&'a str, Option<&'a str>);
/// The same as it is built.
pub type OwnPair = (String, Option<String>);

const NULL: u32 = u32::MAX;

/// The pairs of a value, in order.
pub fn pairs(value: &[u8]) -> Pairs<'_> {
    Pairs(value.get(4..).unwrap_or_default())
}

pub struct Pairs<'a>(&'a [u8]);

impl<'a> Pairs<'a> {
    /// A text with its length before it; None for NULL.
    fn text(&mut self) -> Option<&'a str> {
        let (len, rest) = self.0.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len);
        self.0 = rest;
        if len == NULL {
            return None;
        }
        let (text, rest) = rest.split_at_checked(len as usize)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;
    fn next(&mut self) -> Option<Pair<'a>> {
        let key = self.text()?;
        Some((key, self.text()))
    }
}

/// The bytes of a value of these pairs; of those with one key the first stays.
pub fn to_bytes(mut pairs: Vec<OwnPair>) -> Vec<u8> {
    pairs.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
    pairs.dedup_by(|(later, _), (first, _)| later == first);
    let mut out = (pairs.len() as u32).to_le_bytes().to_vec();
    for (key, value) in &pairs {
        push(&mut out, Some(key));
        push(&mut out, value.as_deref());
    }
    out
}

fn push(out: &mut Vec<u8>, text: Option<&str>) {
    let len = text.map_or(NULL, |text| text.len() as u32);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(text.unwrap_or_default().as_bytes());
}

fn write(value: &[u8], out: &mut Vec<u8>) {
    let quoted = |text: &str, out: &mut Vec<u8>| {
        out.push(b'"');
        for byte in text.bytes() {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b'"');
    };
    for (place, (key, value)) in pairs(value).enumerate() {
        if place > 0 {
            out.extend_from_slice(b", ");
        }
        quoted(key, out);
        out.extend_from_slice(b"=>");
        match value {
            Some(value) => quoted(value, out),
            None => out.extend_from_slice(b"NULL"),
        }
    }
}

fn send(value: &[u8], out: &mut Vec<u8>) {
    let count = pairs(value).count() as u32;
    out.extend_from_slice(&count.to_be_bytes());
    for (key, value) in pairs(value) {
        out.extend_from_slice(&(key.len() as u32).to_be_bytes());
        out.extend_from_slice(key.as_bytes());
        let len = value.map_or(NULL, |value| value.len() as u32);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
}

fn receive(binary: &[u8]) -> Result<Vec<u8>> {
    let damaged = || {
        let message = "insufficient data left in message";
        Error::new(state::PROTOCOL_VIOLATION, message)
    };
    let mut rest = binary;
    let number = |rest: &mut &[u8]| -> Option<u32> {
        let (number, after) = rest.split_first_chunk::<4>()?;
        *rest = after;
        Some(u32::from_be_bytes(*number))
    };
    let text = |rest: &mut &[u8], len: u32| -> Option<String> {
        let (text, after) = rest.split_at_checked(len as usize)?;
        *rest = after;
        String::from_utf8(text.to_vec()).ok()
    };
    let count = number(&mut rest).ok_or_else(damaged)?;
    let mut found = Vec::new();
    for _ in 0..count {
        interrupt::poll()?;
        let len = number(&mut rest).ok_or_else(damaged)?;
        if len == NULL {
            let message = "null value not allowed for hstore key";
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message));
        }
        let key = text(&mut rest, len).ok_or_else(damaged)?;
        let len = number(&mut rest).ok_or_else(damaged)?;
        let value = match len {
            NULL => None,
            len => Some(text(&mut rest, len).ok_or_else(damaged)?),
        };
        found.push((key, value));
    }
    match rest.is_empty() {
        true => Ok(to_bytes(found)),
        false => Err(damaged()),
    }
}

/// Reads the text of a value.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        let blank = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
        self.at += rest.len() - rest.trim_start_matches(blank).len();
    }

    /// A word, quoted or not; `is_value`: a comma ends it, an unquoted one of NULL is none.
    fn word(&mut self, is_value: bool) -> Result<Option<String>> {
        self.skip_blanks();
        let mut word = String::new();
        let quoted = self.peek() == Some('"');
        self.at += usize::from(quoted);
        loop {
            interrupt::poll()?;
            let Some(c) = self.peek() else {
                match quoted || word.is_empty() {
                    true => return Err(self.unexpected_end()),
                    false => break,
                }
            };
            match c {
                '"' if quoted => {
                    self.at += 1;
                    return Ok(Some(word));
                }
                '\\' => {
                    self.at += 1;
                    let Some(escaped) = self.peek() else {
                        return Err(self.unexpected_end());
                    };
                    word.push(escaped);
                    self.at += escaped.len_utf8();
                    continue;
                }
                _ if quoted => {}
                '=' if !is_value && word.is_empty() => return Err(self.unexpected()),
                '=' if !is_value => break,
                ',' if is_value && !word.is_empty() => break,
                c if c.is_ascii_whitespace() => break,
                _ => {}
            }
            word.push(c);
            self.at += c.len_utf8();
        }
        let is_null = is_value && word.eq_ignore_ascii_case("null");
        Ok((!is_null).then_some(word))
    }

    #[cold]
    fn unexpected(&self) -> Error {
        let near = self.peek().unwrap_or(' ');
        let message = format!(
            "syntax error in hstore, near \"{near}\" at position {}",
            self.at
        );
        Error::new(state::SYNTAX_ERROR, message)
    }

    #[cold]
    fn unexpected_end(&self) -> Error {
        let message = "syntax error in hstore: unexpected end of string";
        Error::new(state::SYNTAX_ERROR, message)
    }
}

fn parse(text: &str) -> Result<Vec<OwnPair>> {
    let mut reader = Reader { text, at: 0 };
    let mut found = Vec::new();
    reader.skip_blanks();
    while reader.peek().is_some() {
        let key = reader.word(false)?.unwrap_or_default();
        reader.skip_blanks();
        match reader.peek() {
            None => return Err(reader.unexpected_end()),
            Some('=') => reader.at += 1,
            Some(_) => return Err(reader.unexpected()),
        }
        match reader.peek() {
            None => return Err(reader.unexpected_end()),
            Some('>') => reader.at += 1,
            Some(_) => return Err(reader.unexpected()),
        }
        let value = reader.word(true)?;
        found.push((key, value));
        reader.skip_blanks();
        match reader.peek() {
            None => break,
            Some(',') => reader.at += 1,
            Some(_) => return Err(reader.unexpected()),
        }
        reader.skip_blanks();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String> {
        let mut out = Vec::new();
        write(&to_bytes(parse(text)?), &mut out);
        Ok(String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn text_comes_back_in_order() {
        let cases = [
            ("", ""),
            ("bb=>1, a=>2", r#""a"=>"2", "bb"=>"1""#),
            (r#""a"=>null,b=>"NULL""#, r#""a"=>NULL, "b"=>"NULL""#),
            (r#"a=>1,a=>2"#, r#""a"=>"1""#),
            (r#""x\"y" => "\\""#, r#""x\"y"=>"\\""#),
            ("a>b=>c,", r#""a>b"=>"c""#),
            ("a=>,", r#""a"=>",""#),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text).ok().as_deref(), Some(expected), "{text}");
        }
        for text in ["a", "a=>", "a=>1 b=>2", "=>1", ",", "a=b=>c"] {
            assert!(shown(text).is_err(), "{text}");
        }
    }

    #[test]
    fn binary_is_read_as_it_is_sent() {
        let value = to_bytes(vec![("a".into(), None), ("b".into(), Some("c".into()))]);
        let mut sent = Vec::new();
        send(&value, &mut sent);
        assert_eq!(receive(&sent).ok(), Some(value));
        assert!(receive(&[0, 0, 0, 9]).is_err());
    }
}
