//! UTF-8, as the server keeps text.

use throng_types::error::state;
use throng_types::{Error, Result};

/// UTF-8 without NUL, or 22021.
pub fn check_text(bytes: &[u8]) -> Result<&str> {
    let wrong = |at: usize| {
        let shown: Vec<String> = bytes[at..]
            .iter()
            .take(wrong_length(&bytes[at..]))
            .map(|b| format!("0x{b:02x}"))
            .collect();
        Error::new(
            state::CHARACTER_NOT_IN_REPERTOIRE,
            format!(
                "invalid byte sequence for encoding \"UTF8\": {}",
                shown.join(" ")
            ),
        )
    };
    let text = std::str::from_utf8(bytes).map_err(|e| wrong(e.valid_up_to()))?;
    match memchr::memchr(0, bytes) {
        Some(at) => Err(wrong(at)),
        None => Ok(text),
    }
}

/// How many bytes the first one says its character has.
fn wrong_length(bytes: &[u8]) -> usize {
    match bytes[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}
