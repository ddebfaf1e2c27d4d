//! Long bytes that become a value where they lie: filled once, then shared.

use std::str::Utf8Error;
use std::sync::Arc;

use crate::datum::Text;

/// So many zero bytes, to be filled by whoever has them alone (`Arc::get_mut`).
pub fn zeroed(len: usize) -> Arc<[u8]> {
    let bytes = Arc::<[u8]>::new_zeroed_slice(len);
    // SAFETY: every byte is zero, and a zero is a `u8`.
    unsafe { bytes.assume_init() }
}

/// The bytes as text, without copying what is long.
///
/// # Errors
/// Where they are not UTF-8.
pub fn text(bytes: Arc<[u8]>) -> Result<Text, Utf8Error> {
    std::str::from_utf8(&bytes)?;
    // SAFETY: `str` and `[u8]` have the same layout, so what `into_raw` gives of the one `from_raw`
    // may take as the other (as `From<Arc<str>> for Arc<[u8]>` does the other way round); the
    // pointer came from `into_raw` just now; the bytes are UTF-8, which was checked above, and
    // nobody changes what an `Arc` shares.
    let text: Arc<str> = unsafe { Arc::from_raw(Arc::into_raw(bytes) as *const str) };
    Ok(Text::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_the_bytes_were() {
        for len in [0, 1, 22, 23, 24, 100_000] {
            let mut bytes = zeroed(len);
            if let Some(bytes) = Arc::get_mut(&mut bytes) {
                assert!(bytes.iter().all(|b| *b == 0));
                bytes.fill(b'x');
            }
            let at = bytes.as_ptr();
            let text = text(bytes);
            assert_eq!(text.as_deref(), Ok("x".repeat(len).as_str()));
            let same = text.is_ok_and(|text| text.as_ptr() == at);
            assert_eq!(same, len > 23, "{len}");
        }
        let mut wrong = zeroed(30);
        if let Some(bytes) = Arc::get_mut(&mut wrong) {
            bytes[29] = 0xff;
        }
        assert!(text(wrong).is_err());
    }
}
