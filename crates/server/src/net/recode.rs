//! Messages to and from clients that speak another character set than UTF-8.
//!
//! Names and statements are text whatever the message; values of parameters and rows are converted
//! where their types are known. A message is put together anew, with its length.

use throng_types::Result;
use throng_values::io::Charset;

/// Bytes of the tag and the length.
const HEAD: usize = 5;

/// What of a message's body is text: bytes before it, and how many strings.
fn texts(tag: u8) -> (usize, usize) {
    match tag {
        b'Q' | b'E' | b'f' => (0, 1),
        b'P' | b'B' => (0, 2),
        b'D' | b'C' => (1, 1),
        _ => (0, 0),
    }
}

/// Makes UTF-8 of the texts of a client's message.
///
/// # Errors
/// 22021, 22P05; then the message is as it was.
pub fn message(charset: Charset, message: &mut Vec<u8>) -> Result<()> {
    let (skipped, count) = texts(message[0]);
    let mut at = HEAD + skipped;
    if count == 0 || message.is_ascii() {
        return Ok(());
    }
    let Some(head) = message.get(..at) else {
        return Ok(());
    };
    let mut whole = head.to_vec();
    for _ in 0..count {
        // What has no end is found out where messages are read.
        let Some(length) = memchr::memchr(0, &message[at..]) else {
            return Ok(());
        };
        let text = charset.decode(&message[at..at + length])?;
        whole.extend_from_slice(text.as_bytes());
        whole.push(0);
        at += length + 1;
    }
    whole.extend_from_slice(&message[at..]);
    put_length(&mut whole, 0);
    *message = whole;
    Ok(())
}

/// Writes an answer of UTF-8, which begins at `start`, in the client's character set. Its body is
/// text, and the zeros between texts, after `skipped` bytes.
pub fn answer(charset: Charset, start: usize, skipped: usize, out: &mut Vec<u8>) {
    let body = start + HEAD + skipped;
    if out[body..].is_ascii() {
        return;
    }
    let text = out.split_off(body);
    charset.encode_all(&String::from_utf8_lossy(&text), out);
    put_length(out, start);
}

/// The length of the message that begins at `start` and is the last.
fn put_length(out: &mut [u8], start: usize) {
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + HEAD].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::wire::{self, Frontend};

    #[test]
    fn texts_are_converted_and_the_rest_is_not() {
        let latin1 = Charset::named("latin1").expect("known");
        let mut parse = Vec::new();
        wire::message(&mut parse, b'P', |b| {
            b.extend_from_slice(b"\xe9\0select '\xe8'\0\0\x01\0\0\0\xe9");
        });
        message(latin1, &mut parse).expect("all of it is there");
        match wire::frontend(&parse).expect("well formed") {
            Frontend::Parse { name, sql, types } => {
                assert_eq!((name, sql), ("é", "select 'è'".as_bytes()));
                assert_eq!(types.iter().collect::<Vec<_>>(), [0xe9]);
            }
            other => panic!("{other:?}"),
        }
        let mut out = b"before".to_vec();
        wire::message(&mut out, b'A', |b| {
            wire::put_i32(b, -1);
            wire::put_cstr(b, "é");
            wire::put_cstr(b, "€");
        });
        answer(latin1, 6, 4, &mut out);
        assert_eq!(out, b"beforeA\0\0\0\x0c\xff\xff\xff\xff\xe9\0?\0");
    }
}
